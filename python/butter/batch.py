"""Several sequences that share each decode step, so that the weights are read once for all."""

import time
from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Any

from . import _native
from .array import Array, empty
from .engine import Engine
from .errors import ConfigError
from .layers.attention import MAX_SPLITS, SPLIT_LEN
from .result import Results
from .sequence import Sequence
from .stats import BatchStats
from .step import sampling_words
from .stream import Request, Run

MAX_ROWS = 32
USUAL_ROWS = 16  # beyond it arithmetic, not the weights' way from memory, takes the time


class Batch:
    """Rows that hold one sequence each, with programs over the first 1, 2, … of them."""

    def __init__(self, engine: Engine, dispatch: str | None = None):
        self.engine = engine
        self.dispatch = dispatch or engine.dispatch
        self.sequences: list[Sequence] = []
        self._next = empty(engine.device, (MAX_ROWS,), "i32")
        self._programs: dict[int, Any] = {}
        self._loop: _native.BatchLoop | None = None
        self._closed = False

    def program(self, rows: int):
        """The decode program over the first `rows` rows, recorded when first asked for."""
        if rows not in self._programs:
            while len(self.sequences) < rows:
                self.sequences.append(self._sequence(len(self.sequences)))
            tokens = Array(self._next.buffer, (rows,), "i32")
            states = [sequence.state for sequence in self.sequences[:rows]]
            plan = self.engine.record_batch(tokens, states)
            self._programs[rows] = plan.prepare(self.dispatch)
        return self._programs[rows]

    def _sequence(self, row: int) -> Sequence:
        token = Array(self._next.buffer, (1,), "i32", 4 * row)
        return Sequence(self.engine, self.dispatch, next=token)

    def loop(self, rows: int) -> "_native.BatchLoop":
        """A native loop over the first `rows` rows, all idle."""
        return _native.BatchLoop(
            self.program(rows),
            max_position=self.engine.max_context,
            max_splits=MAX_SPLITS,
            split_len=SPLIT_LEN,
        )

    def generate(self, requests: Items[Request], rows: int, tokenizer, load_s: float) -> Results:
        """Answer all requests, `rows` at a time: a row that ends takes up the next request."""
        if self._closed:
            raise ConfigError("[model] is closed. Load it again.")
        if not requests:
            return Results([], BatchStats(0, 0, 0, 0.0, 0.0))
        began = time.perf_counter()
        loop = self._loop = self.loop(rows)
        work = _Work(self, loop, requests, tokenizer, began)
        try:
            work.run()
        finally:
            self._loop = None
            loop.cancel()
            loop.take()  # waits for the steps in flight
        if self._closed:
            raise ConfigError("[model] was closed during this request; its texts are cut.")
        return work.results(load_s)

    def close(self) -> None:
        """From any thread: end what runs; later calls raise ConfigError."""
        self._closed = True
        for sequence in self.sequences:
            sequence.close()
        if loop := self._loop:
            loop.cancel()


class _Work:
    """The requests of one call, on their way through the rows."""

    def __init__(self, batch: Batch, loop, requests: Items[Request], tokenizer, began: float):
        self.batch, self.loop, self.tokenizer, self.began = batch, loop, tokenizer, began
        self.replay = batch.program(loop.rows)
        self.waiting = deque(enumerate(requests))
        self.running: dict[int, tuple[int, Run]] = {}  # row -> place in the list of requests
        self.done: dict[int, Run] = {}
        self.prefill_s = 0.0
        self.before = self.replay.stats

    def run(self) -> None:
        rows = self.loop.rows
        while (self.waiting or self.running) and not self.batch._closed:
            if self.waiting and len(self.running) < rows:
                # A step in flight may still use the row that has ended.
                while self.loop.in_flight:
                    self.take(*self.loop.take())
                for row in range(rows):
                    if self.waiting and row not in self.running:
                        self.start(row, *self.waiting.popleft())
            self.take(*self.loop.next())

    def start(self, row: int, place: int, request: Request) -> None:
        sequence, params = self.batch.sequences[row], request.params
        run = Run(sequence, request, self.tokenizer, self.began)
        start = time.perf_counter()
        sequence.truncate(0)
        sequence.check_room(len(request.tokens))
        run.read()
        limit = params.max_tokens or self.batch.engine.max_context
        sequence.reach(limit)
        sequence.prepare_sampler(request.tokens[-1], params)
        self.prefill_s += time.perf_counter() - start
        self.loop.start(
            row,
            sampling_words(params),
            position=len(sequence.tokens),
            limit=limit,
            stop_tokens=[] if params.ignore_eos else list(params.stop_ids),
        )
        self.running[row] = place, run

    def take(self, tokens: list[tuple[int, int]], ended: list[int]) -> None:
        """What a step has brought."""
        for row, token in tokens:
            _, run = self.running[row]
            run.push(token)
            if run.found_stop:
                self.loop.end(row)
                self.finish(row)
        for row in ended:
            if row in self.running:
                self.running[row][1].flush(self.loop.reason(row))
                self.finish(row)

    def finish(self, row: int) -> None:
        place, run = self.running.pop(row)
        self.done[place] = run

    def results(self, load_s: float) -> Results:
        after = self.replay.stats
        steps = after["submissions"] - self.before["submissions"]
        encode_ns = after["encode_ns"] - self.before["encode_ns"]
        runs = [self.done[place] for place in sorted(self.done)]
        for run in runs:
            run.encode_ns, run.submitted = encode_ns, steps
        total_s = time.perf_counter() - self.began
        stats = BatchStats(
            prompt_tokens=sum(len(run.request.tokens) for run in runs),
            generated_tokens=sum(len(run.tokens) for run in runs),
            steps=steps,
            prefill_s=self.prefill_s,
            decode_s=total_s - self.prefill_s,
        )
        return Results([run.end(load_s, after) for run in runs], stats)


def split_options(count: int, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each of `count` prompts gets: a list gives each its own value.

    `stop` and `stop_ids` are lists themselves, so there a list of lists does.

    Raises:
        ConfigError: If a list has not one value per prompt.
    """
    each: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, value in options.items():
        values = value if is_per_prompt(name, value) else [value] * count
        if len(values) != count:
            raise ConfigError(
                f"[batch] {name}: got {len(values)} values for {count} prompts, "
                "need one for all or one for each"
            )
        for own, item in zip(each, values, strict=True):
            own[name] = item
    return each


def is_per_prompt(name: str, value) -> bool:
    if not isinstance(value, list | tuple):
        return False
    if name in ("stop", "stop_ids"):
        return any(isinstance(item, list | tuple) for item in value)
    return True

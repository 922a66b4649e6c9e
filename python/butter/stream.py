"""One request: reads the prompt, then gives the text piece by piece."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from .errors import ConfigError
from .generation import SamplingParams
from .result import Piece, Result
from .sequence import Lease
from .sequence import Sequence as Cached
from .stats import Stats, peak_rss_bytes

# Why the native loop ended -> finish_reason.
REASONS = {"stop": "stop", "length": "length", "context": "context", "cancelled": "cancelled"}


@dataclass(frozen=True)
class Request:
    """What is to be generated, checked."""

    tokens: list[int]
    params: SamplingParams  # with a seed
    continues: bool = True  # the text goes on where the prompt ends, spaces included


class Stream(Iterator[Piece]):
    """Iterates over the pieces of a generation; `result` is there when it has ended.

    Close it, or leave its `with` block, to end it early: then the finish reason is "cancelled".
    """

    def __init__(self, parts: Iterator[Piece], result: Callable[[], Result | None]):
        self._parts = parts
        self._result = result

    def __next__(self) -> Piece:
        try:
            return next(self._parts)
        except ValueError as error:
            if "already executing" not in str(error):
                raise
            raise ConfigError("[stream] another thread reads it; give each a stream") from None

    @property
    def result(self) -> Result:
        """The whole text and its statistics, once the stream has ended."""
        found = self._result()
        if found is None:
            raise ConfigError("[stream] not finished: read it to its end or close() it first.")
        return found

    def close(self) -> None:
        """End the generation now. Safe to call twice."""
        self._parts.close()  # type: ignore[attr-defined]

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_) -> None:
        self.close()


class Generation:
    """Runs one request on a sequence."""

    def __init__(
        self,
        sequence: Callable[[], Cached],
        lease: Lease,
        tokenizer,
        load_s: float,
        on_end: Callable[["Generation", Cached], None] | None = None,
        guard: Callable[[], AbstractContextManager] = nullcontext,
    ):
        self._sequence = sequence
        self._lease = lease
        self._tokenizer = tokenizer
        self._load_s = load_s
        self._on_end = on_end
        self._guard = guard
        self.tokens: list[int] = []
        self.result: Result | None = None

    def stream(self, request: Request) -> Stream:
        return Stream(self._run(request), lambda: self.result)

    def _run(self, request: Request) -> Iterator[Piece]:
        began = time.perf_counter()
        with self._lease, self._guard():
            sequence = self._sequence()
            run = Run(sequence, request, self._tokenizer, began)
            try:
                yield from run.pieces()
            except (GeneratorExit, KeyboardInterrupt):
                self._finish(run)
                raise
            self._finish(run)
            if run.reason == "cancelled" and sequence.is_closed:
                raise ConfigError("[model] was closed during this request; its text is cut.")

    def _finish(self, run: "Run") -> None:
        self.tokens = run.tokens
        self.result = run.end(self._load_s)
        if self._on_end:
            self._on_end(self, run.sequence)


class Run:
    """The state of a generation between its first and its last token."""

    def __init__(self, sequence: Cached, request: Request, tokenizer, began: float):
        from .text.stopping import StopStrings

        self.sequence, self.request = sequence, request
        self.began = self.first = self.last = began
        self.prefilled = began
        self.tokens: list[int] = []
        self.shown: list[str] = []
        self.waiting: list[int] = []  # tokens whose text is held back
        self.reason = "cancelled"
        self.reused = 0
        self.encode_ns = self.submitted = 0
        self.stops = StopStrings(request.params.stop)
        self.text = tokenizer.detokenizer(skip_special=True, continues=request.continues)

    def pieces(self) -> Iterator[Piece]:
        prompt, params = self.request.tokens, self.request.params
        sequence = self.sequence
        before = sequence.decode.stats
        self.read()
        loop = sequence.start(
            prompt[-1],
            params,
            limit=params.max_tokens or sequence.engine.max_context,
            stop=() if params.ignore_eos else params.stop_ids,
        )
        try:
            yield from self._decode(loop)
        finally:
            sequence.finish(loop, [prompt[-1], *self.tokens])
            after = sequence.decode.stats
            self.encode_ns = after["encode_ns"] - before["encode_ns"]
            self.submitted = after["submissions"] - before["submissions"]

    def read(self) -> None:
        """Bring all of the prompt but its last token into the caches."""
        prompt, sequence = self.request.tokens, self.sequence
        self.reused = sequence.reuse(prompt[:-1])
        sequence.rope.fit(len(prompt))
        start = time.perf_counter()
        sequence.fill(prompt[self.reused : -1])
        self.prefilled = time.perf_counter()
        self.prefill_s = self.prefilled - start

    def _decode(self, loop) -> Iterator[Piece]:
        for token in loop:
            if piece := self.push(token):
                yield piece
            if self.found_stop:
                return
        if piece := self.flush(loop.reason):
            yield piece

    def push(self, token: int) -> Piece | None:
        """Take the next token; returns the text that can be shown now."""
        self.last = time.perf_counter()
        if not self.tokens:
            self.first = self.last
        self.tokens.append(token)
        self.waiting.append(token)
        shown = self.stops.push(self.text.push(token))
        if self.found_stop:
            self.reason = "stop"
        return self._show(shown)

    @property
    def found_stop(self) -> bool:
        """Whether the text has come to a stop string."""
        return self.stops.found is not None

    def flush(self, reason: str) -> Piece | None:
        """The rest of the text, when the native loop has ended."""
        rest = self.stops.push(self.text.flush())
        self.reason = "stop" if self.found_stop else REASONS[reason]
        return self._show(rest + self.stops.flush())

    def _show(self, text: str) -> Piece | None:
        if not text:
            return None
        piece = Piece(text, self.waiting)
        self.waiting.clear()
        self.shown.append(text)
        return piece

    def end(self, load_s: float, static: Mapping[str, int] | None = None) -> Result:
        """What came of it; `static` are the statistics of a decode program of several rows."""
        engine, prompt = self.sequence.engine, self.request.tokens
        mean_length = len(prompt) + len(self.tokens) // 2
        static = static or self.sequence.decode.stats
        stats = Stats(
            prompt_tokens=len(prompt),
            reused_tokens=self.reused,
            generated_tokens=len(self.tokens),
            load_s=load_s,
            prefill_s=getattr(self, "prefill_s", 0.0),
            first_token_s=self.first - self.began,
            decode_s=self.last - self.first,
            encode_us=self.encode_ns / 1e3 / max(self.submitted, 1),
            dispatches=static["dispatches"],
            phases=static["phases"],
            bytes_per_token=engine.decode_weight_bytes + mean_length * engine.kv_bytes_per_position,
            peak_rss_bytes=peak_rss_bytes(),
        )
        return Result(
            "".join(self.shown), self.tokens, self.reason, self.request.params.seed or 0, stats
        )


def drain(stream: Stream) -> Result:
    """Run a stream to its end."""
    for _ in stream:
        pass
    return stream.result

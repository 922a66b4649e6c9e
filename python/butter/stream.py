"""One request: reads the prompt, then gives the text piece by piece."""

import time
from collections.abc import Callable, Iterator
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
        return next(self._parts)

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
    ):
        self._sequence = sequence
        self._lease = lease
        self._tokenizer = tokenizer
        self._load_s = load_s
        self._on_end = on_end
        self.tokens: list[int] = []
        self.result: Result | None = None

    def stream(self, request: Request) -> Stream:
        return Stream(self._run(request), lambda: self.result)

    def _run(self, request: Request) -> Iterator[Piece]:
        began = time.perf_counter()
        with self._lease:
            sequence = self._sequence()
            run = _Run(sequence, request, self._tokenizer, began)
            try:
                yield from run.pieces()
            except (GeneratorExit, KeyboardInterrupt):
                self._finish(run)
                raise
            self._finish(run)
            if run.reason == "cancelled" and sequence.is_closed:
                raise ConfigError("[model] was closed during this request; its text is cut.")

    def _finish(self, run: "_Run") -> None:
        self.tokens = run.tokens
        self.result = run.end(self._load_s)
        if self._on_end:
            self._on_end(self, run.sequence)


class _Run:
    """The state of a generation between its first and its last token."""

    def __init__(self, sequence: Cached, request: Request, tokenizer, began: float):
        from .text.stopping import StopStrings

        self.sequence, self.request = sequence, request
        self.began = self.first = self.last = began
        self.prefilled = began
        self.tokens: list[int] = []
        self.shown: list[str] = []
        self.reason = "cancelled"
        self.reused = 0
        self.encode_ns = self.submitted = 0
        self.stops = StopStrings(request.params.stop)
        self.text = tokenizer.detokenizer(skip_special=True, continues=request.continues)

    def pieces(self) -> Iterator[Piece]:
        prompt, params = self.request.tokens, self.request.params
        sequence = self.sequence
        self.reused = sequence.reuse(prompt[:-1])
        sequence.rope.fit(len(prompt))
        before = sequence.decode.stats
        start = time.perf_counter()
        sequence.fill(prompt[self.reused : -1])
        self.prefilled = time.perf_counter()
        self.prefill_s = self.prefilled - start
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

    def _decode(self, loop) -> Iterator[Piece]:
        waiting: list[int] = []
        for token in loop:
            self.last = time.perf_counter()
            if not self.tokens:
                self.first = self.last
            self.tokens.append(token)
            waiting.append(token)
            shown = self.stops.push(self.text.push(token))
            if shown:
                yield self._show(shown, waiting)
            if self.stops.found is not None:
                self.reason = "stop"
                return
        self.reason = REASONS[loop.reason]
        rest = self.stops.push(self.text.flush())
        if self.stops.found is not None:
            self.reason = "stop"
        rest += self.stops.flush()
        if rest:
            yield self._show(rest, waiting)

    def _show(self, text: str, waiting: list[int]) -> Piece:
        piece = Piece(text, waiting)
        waiting.clear()
        self.shown.append(text)
        return piece

    def end(self, load_s: float) -> Result:
        engine, prompt = self.sequence.engine, self.request.tokens
        mean_length = len(prompt) + len(self.tokens) // 2
        static = self.sequence.decode.stats
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

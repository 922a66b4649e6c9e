"""One sequence of tokens on the device: caches, sampler state and the programs over them."""

import threading
from array import array
from collections.abc import Sequence as Ids
from functools import cached_property
from typing import TYPE_CHECKING

from . import _native
from .array import Array, empty
from .engine import Engine, State
from .errors import ConfigError
from .generation import SamplingParams
from .layers.attention import MAX_SPLITS, SPLIT_LEN
from .step import sampling_words, step_words

if TYPE_CHECKING:
    import numpy as np

PROMPT_BIT = 1 << 31  # in a token's count: it is part of the prompt


class Sequence:
    """Tokens whose keys and values are cached. Not to be used by two threads at once."""

    def __init__(
        self,
        engine: Engine,
        dispatch: str | None = None,
        *,
        next: Array | None = None,
    ):
        self.engine = engine
        self.dispatch = dispatch or engine.dispatch
        device, vocab = engine.device, engine.text.vocab_size
        self.rope = engine.rope()
        self.state = State(
            caches=engine.caches(self.rope),
            next=next or empty(device, (1,), "i32"),
            # Few requests write more than one page of them.
            counts=empty(device, (vocab,), "u32", sparse=True),
            bias=empty(device, (vocab,), "f32", sparse=True),
        )
        self.tokens: list[int] = []
        self._loop: _native.DecodeLoop | None = None
        self._closed = False

    @cached_property
    def decode_plan(self):
        return self.engine.record_decode(self.state)

    @cached_property
    def decode(self):
        return self.decode_plan.prepare(self.dispatch)

    @cached_property
    def prefill(self):
        return self.engine.record_prefill(self.state).prepare(self.dispatch)

    @cached_property
    def _scorer(self):
        plan, logits, rows = self.engine.record_logits(self.state)
        return plan.prepare(self.dispatch), logits, rows

    def warm_up(self) -> None:
        """Record the programs and run each once."""
        _ = self.prefill
        self.fill([0] * min(2, self.engine.max_context - 1))
        loop = self.start(0, SamplingParams(temperature=0.0, seed=0), limit=1)
        loop.run(1)
        self.finish(loop, [0])
        self.truncate(0)

    def truncate(self, length: int) -> None:
        """Forget all tokens from `length` on."""
        del self.tokens[length:]

    def reuse(self, tokens: Ids[int]) -> int:
        """Keep the longest common prefix with `tokens` and forget the rest; returns its length."""
        common = 0
        for mine, theirs in zip(self.tokens, tokens, strict=False):
            if mine != theirs:
                break
            common += 1
        if self.rope.depends_on_length and common < len(tokens):
            common = 0  # what is cached was turned by the angles of another length
        self.truncate(common)
        return common

    def restore(self, tokens: Ids[int]) -> None:
        """Keep what is cached of earlier tokens, after others may have taken their place."""
        self.reuse(tokens)
        if self.rope.depends_on_length:
            self.truncate(0)  # another length was prepared for

    def check_room(self, count: int) -> None:
        """Raise ConfigError if `count` more tokens do not fit, or if it was closed."""
        if self._closed:
            raise ConfigError("[model] was closed during this request.")
        held, room = len(self.tokens), self.engine.max_context
        if held + count > room:
            raise ConfigError(
                f"[context] got {held + count} tokens ({held} cached and {count} new), need at "
                f"most {room}. Shorten the prompt or load with a larger max_context."
            )

    def reach(self, count: int) -> None:
        """Prepare for `count` more positions, and the step that a loop is ahead of its end."""
        self.rope.reach(len(self.tokens) + count + 1)

    def fill(self, tokens: Ids[int]) -> None:
        """Read tokens into the caches."""
        self.check_room(len(tokens))
        self.reach(len(tokens))
        chunk = self.engine.chunk
        for start in range(0, len(tokens), chunk):
            part = list(tokens[start : start + chunk])
            self.check_room(len(part))
            self.prefill.run(self._words(len(part)), part)
            self.tokens += part

    def logits(self, tokens: Ids[int]) -> "np.ndarray":
        """Read tokens into the caches and return their logits [T, V] in f32."""
        import numpy as np  # not needed to generate, and 16 MiB

        self.check_room(len(tokens))
        self.rope.fit(len(self.tokens) + len(tokens))
        self.reach(len(tokens))
        vocab = self.engine.text.vocab_size
        out = np.empty((len(tokens), vocab), np.float32)
        replay, logits, rows = self._scorer
        for start in range(0, len(tokens), rows):
            part = list(tokens[start : start + rows])
            replay.run(self._words(len(part)), part)
            got = np.frombuffer(replay.read(logits), np.float32, len(part) * vocab)
            out[start : start + len(part)] = got.reshape(len(part), vocab)
            self.tokens += part
        return out

    def _words(self, rows: int) -> list[int]:
        pos = len(self.tokens)
        return step_words(pos=pos, rows=rows, kv_len=pos + rows, splits=1)

    def start(
        self, token: int, params: SamplingParams, *, limit: int, stop: Ids[int] = ()
    ) -> "_native.DecodeLoop":
        """Submit the first decode step, whose input is `token`; params have a seed.

        Call `finish` when the loop has ended.
        """
        self.check_room(1)
        self.reach(limit)
        self.prepare_sampler(token, params)
        loop = _native.DecodeLoop(
            self.decode,
            stop_tokens=list(stop),
            max_position=self.engine.max_context,
            max_splits=MAX_SPLITS,
            split_len=SPLIT_LEN,
        )
        loop.start(sampling_words(params), position=len(self.tokens), limit=limit)
        self._loop = loop
        return loop

    def finish(self, loop: "_native.DecodeLoop", read: Ids[int]) -> None:
        """End the loop if it still runs and note what it cached: `read` are its inputs in order."""
        loop.cancel()
        loop.next()  # waits for the step in flight
        self._loop = None
        self.tokens += read[: loop.position - len(self.tokens)]

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """From any thread: end what runs; later calls raise ConfigError."""
        self._closed = True
        if loop := self._loop:
            loop.cancel()

    def prepare_sampler(self, token: int, params: SamplingParams) -> None:
        """Write what the first decode step reads: its token, and the prompt's marks and biases."""
        vocab = self.engine.text.vocab_size
        if not 0 <= token < vocab:
            raise ConfigError(f"[prompt] token id: got {token}, need 0 to {vocab - 1}")
        self.state.next.write(array("i", [token]))
        if params.repetition_penalty != 1 or params.presence_penalty or params.frequency_penalty:
            counts = array("I", bytes(4 * vocab))
            for seen in (*self.tokens, token):
                counts[seen] = PROMPT_BIT
            self.state.counts.write(counts)
        if params.logit_bias:
            bias = array("f", bytes(4 * vocab))
            wrong = [t for t in params.logit_bias if t >= vocab]
            if wrong:
                raise ConfigError(f"[sampling] logit_bias: got token {wrong[0]}, need < {vocab}")
            for biased, value in params.logit_bias.items():
                bias[biased] = value
            self.state.bias.write(bias)


class Lease:
    """Lets one request at a time use a sequence; others wait for it.

    A thread that still holds it itself, through an unfinished stream, gets an error instead of
    waiting for itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None

    def acquire(self) -> None:
        me = threading.get_ident()
        while not self._lock.acquire(timeout=0.1):
            if self._owner == me:
                raise ConfigError(
                    "[model] a stream of this thread is not finished. Read it to its end or "
                    "close() it, or use a session of its own for each stream."
                )
        self._owner = me

    def release(self) -> None:
        self._owner = None
        self._lock.release()

    __enter__ = acquire

    def __exit__(self, *_) -> None:
        self.release()

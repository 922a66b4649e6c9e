"""A model: load it once, then generate, stream, score or hold conversations."""

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from . import loading
from .affinity import Affinity
from .batch import MAX_ROWS, USUAL_ROWS, Batch, split_options
from .engine import check_flag
from .errors import ButterError, ConfigError
from .generation import SamplingParams
from .lifecycle import Event, Lifecycle, State
from .loading import Loaded
from .prompt import Message, Prompt
from .registry import TextConfig
from .result import Result, Results
from .sequence import Lease
from .sequence import Sequence as Cached
from .session import Session
from .stream import Generation, Request, Stream, drain

if TYPE_CHECKING:
    import numpy as np


class Model:
    """A loaded model. Make one with `Model.load`.

    Every method may be called from any thread. Requests of a model run one after another; sessions
    have caches of their own and do not wait for each other.
    """

    def __init__(self, loaded: Loaded, lifecycle: Lifecycle, load_s: float):
        self._loaded = loaded
        self._lifecycle = lifecycle
        self._load_s = load_s
        self._lease = Lease()
        self._guard = threading.Lock()
        self._sequence: Cached | None = None
        self._spare: Cached | None = None  # warmed up, and nobody's yet
        self._batch: Batch | None = None
        # Weak: a session that is dropped without close() takes its caches with it.
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()

    @classmethod
    def load(
        cls,
        id_or_path: str | PathLike,
        *,
        device: str = "auto",
        dispatch: str = "auto",
        dtype: str | None = None,
        threads: int | None = None,
        affinity: Affinity | None = None,
        max_context: int | None = None,
        prewarm: bool = True,
        on_event: Callable[[Event], None] | None = None,
        exact: bool = False,
        quantize: str | Mapping[str, int] | None = None,
        revision: str | None = None,
        offline: bool | None = None,
    ) -> "Model":
        """Load a model and return it ready.

        Args:
            id_or_path: A folder, a .gguf file, "org/name" on the Hugging Face hub,
                "org/name:Q4_K_M", or an alias (`butter models`).
            device: "auto", "cpu", "metal", "cuda" or "cuda:N".
            dispatch: "eager", "argument_buffers" or "icb"; all give the same tokens. "auto" takes
                the one with the least work per token: icb on the CPU.
            dtype: Of activations; only "f32" exists so far, which also means `exact`.
            threads: Of a CPU; None takes the physical cores that this process may use.
            affinity: The CPUs that these threads are bound to, one for each, as numbers or as
                "0-3,8"; then threads is how many there are. None lets the system place them.
            max_context: Tokens that a sequence may have; None takes what the model was trained
                for, as far as its cache fits a quarter of memory.
            prewarm: Record the programs and run them once, so that the first request is fast;
                also looks at every weight for values that are not finite.
            on_event: Called with each `Event` of the lifecycle, from the loading thread.
            exact: Matrices meet f32 activations, quantized ones no int8 blocks, bf16 ones none
                that are rounded to bf16; slower.
            quantize: Quantize the matrices while they are loaded: "q4" (or q2, q3, q5, q6, q8),
                "q4-g64" for groups of 64 instead of 32, or {"bits": 4, "group_size": 64,
                "head_bits": 8}, where head_bits is for the embedding and the output head. Codes
                that take no more memory than the new ones would stay as they are.
            revision: Branch, tag or commit of a hub repository.
            offline: True never asks the network; None follows HF_HUB_OFFLINE.

        Raises:
            ButterError: One of its subclasses, which names what is wrong and what to do.
        """
        began = time.perf_counter()
        if on_event is not None and not callable(on_event):
            raise ConfigError(f"[model] on_event: got {on_event!r:.80}, need a function or None")
        check_flag("prewarm", prewarm)
        lifecycle = Lifecycle(on_event)
        try:
            loaded = loading.load(
                id_or_path,
                lifecycle,
                device=device,
                dispatch=dispatch,
                dtype=dtype,
                threads=threads,
                affinity=affinity,
                max_context=max_context,
                exact=exact,
                quantize=quantize,
                scan=prewarm,
                revision=revision,
                offline=offline,
            )
            model = cls(loaded, lifecycle, 0.0)
            if prewarm:
                model._spare = Cached(loaded.engine)
                model._spare.warm_up()
        except BaseException as error:
            lifecycle.fail(error)
            raise
        model._load_s = time.perf_counter() - began
        lifecycle.to(State.READY)
        return model

    # -- what it is ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._lifecycle.state

    @property
    def tokenizer(self):
        """butter.text.Tokenizer of the model."""
        return self._need().prompter.tokenizer

    @property
    def config(self) -> TextConfig:
        """The family's config, with the field names of config.json."""
        return self._need().engine.text

    @property
    def device(self):
        return self._need().engine.device

    @property
    def max_context(self) -> int:
        """Tokens that a sequence may have, prompt and answer together."""
        return self._need().engine.max_context

    @property
    def has_chat_template(self) -> bool:
        return self._need().prompter.template is not None

    @property
    def defaults(self) -> SamplingParams:
        """What a request gets that names nothing: the model's own generation config."""
        return self._need().defaults

    # -- what it does --------------------------------------------------------------------------

    def generate(self, prompt: Prompt, *, chat: bool | None = None, **sampling) -> Result:
        """Generate text and return it whole.

        Args:
            prompt: A text, a list of messages ({"role": …, "content": …}) or a list of token ids.
            chat: Whether a text is a user's message; None says so where the model has a chat
                template. False continues the text as it stands.
            **sampling: Fields of `SamplingParams`: max_tokens, temperature, top_k, top_p, min_p,
                repetition_penalty, presence_penalty, frequency_penalty, logit_bias, seed, stop,
                stop_ids, ignore_eos. What is left out comes from `defaults`.
        """
        return drain(self.stream(prompt, chat=chat, **sampling))

    def stream(self, prompt: Prompt, *, chat: bool | None = None, **sampling) -> Stream:
        """Generate text piece by piece; arguments as for `generate`.

        Arguments are checked at once; work starts with the first piece. While a stream is open,
        requests of other threads wait and those of its own thread raise ConfigError.
        """
        loaded = self._need()
        request = self._request(prompt, chat, sampling)
        generation = Generation(
            self._cold_sequence, self._lease, loaded.prompter.tokenizer, self._load_s
        )
        return generation.stream(request)

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        rows: int | None = None,
        chat: bool | None | Sequence[bool | None] = None,
        **sampling,
    ) -> Results:
        """Generate for several prompts at once; each step reads the weights once for all of them.

        Args:
            prompts: Any number of what `generate` takes.
            rows: Prompts that are worked on together, from 1 to 32; None takes all, but at most
                16. The others follow as these end.
            chat: As for `generate`, or a list with one for each prompt.
            **sampling: As for `generate`, or a list with one for each prompt; of `stop` and
                `stop_ids` a list of lists.

        Returns:
            The results in the order of the prompts; their `stats` are those of the whole.
        """
        loaded = self._need()
        requests = self._requests(prompts, {"chat": chat, **sampling})
        if rows is not None and (type(rows) is not int or not 1 <= rows <= MAX_ROWS):
            raise ConfigError(f"[batch] rows: got {rows!r:.80}, need 1 to {MAX_ROWS} or None")
        together = min(rows or USUAL_ROWS, len(requests))
        self._check_memory(requests, together)
        with self._lease:
            self._need()
            batch = self._batch = self._batch or Batch(loaded.engine)
            return batch.generate(requests, together, loaded.prompter.tokenizer, self._load_s)

    def logits(self, tokens: Sequence[int]) -> "np.ndarray":
        """The logits [T, V] in f32 of every position of a list of token ids."""
        ids = self._need().prompter.checked_ids(tokens)
        with self._lease:
            return self._cold_sequence().logits(ids)

    def session(self, messages: Sequence[Message] = ()) -> Session:
        """Start a conversation that keeps what it has read; `messages` begin it."""
        self._need()
        session = Session(self, messages)
        with self._guard:
            self._sessions.add(session)
        return session

    def params(self, **sampling) -> SamplingParams:
        """The model's defaults with these changes, checked, and with a seed."""
        params = self._need().defaults.override(**sampling).with_seed()
        vocab = self._need().engine.text.vocab_size
        outside = [t for t in params.logit_bias if t >= vocab]
        if outside:
            raise ConfigError(
                f"[sampling] logit_bias: got token {outside[0]}, need 0 to {vocab - 1}"
            )
        return params

    def close(self) -> None:
        """Free the weights and caches. Open streams raise when read on; later calls raise."""
        with self._guard:
            sessions = list(self._sessions)
            self._sessions.clear()
            if self._lifecycle.state is State.READY:
                self._lifecycle.to(State.CLOSED)
        for session in sessions:
            session.close()
        for sequence in (self._sequence, self._spare):
            if sequence:
                sequence.close()
        if self._batch:
            self._batch.close()
        self._sequence = self._spare = self._batch = None
        self._loaded = None  # type: ignore[assignment]

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._loaded is None:
            return "<butter.Model closed>"
        return f"<butter.Model {self._loaded.engine.checkpoint.source} on {self.device.name}>"

    # -- for sessions --------------------------------------------------------------------------

    def _need(self) -> Loaded:
        loaded = self._loaded
        if loaded is None:
            raise ConfigError("[model] is closed. Load it again.")
        return loaded

    def _request(self, prompt: Prompt, chat: bool | None, sampling: Mapping) -> Request:
        prompter = self._need().prompter
        is_chat = prompter.is_chat(prompt, chat)
        tokens = prompter.tokens(prompt, is_chat)
        self._check_room(len(tokens))
        return Request(tokens, self.params(**sampling), continues=not is_chat)

    def _requests(self, prompts: Sequence[Prompt], options: Mapping) -> list[Request]:
        """All checked before anything runs."""
        if isinstance(prompts, str | bytes | Mapping) or not isinstance(prompts, Iterable):
            raise ConfigError(f"[batch] prompts: got {prompts!r:.80}, need a list of prompts")
        prompts = list(prompts)
        requests = []
        for i, own in enumerate(split_options(len(prompts), options)):
            try:
                requests.append(self._request(prompts[i], own.pop("chat"), own))
            except ButterError as error:
                raise type(error)(f"{error} (prompt {i} of the batch)") from error
        return requests

    def _check_memory(self, requests: Sequence[Request], together: int) -> None:
        """Refuse a batch whose caches this machine cannot hold."""
        engine, room = self._need().engine, self.max_context
        lengths = [min(room, len(r.tokens) + (r.params.max_tokens or room)) for r in requests]
        positions = sum(sorted(lengths)[len(lengths) - together :])
        wanted, memory = positions * engine.kv_bytes_per_position, engine.device.memory_bytes
        if wanted > memory:
            raise ConfigError(
                f"[batch] the caches of {together} sequences may take {wanted / 2**30:.1f} GiB; "
                f"this machine has {memory / 2**30:.1f} GiB. Ask for fewer rows or max_tokens."
            )

    def _check_room(self, count: int) -> None:
        room = self.max_context
        if count > room:
            raise ConfigError(
                f"[context] the prompt has {count} tokens, the context holds {room}. Shorten it, "
                "or load with a larger max_context."
            )

    def _own_sequence(self) -> Cached:
        if self._sequence is None:
            self._sequence = self._new_sequence()
        return self._sequence

    def _new_sequence(self) -> Cached:
        """For whoever comes first the one that is warmed up: a session or the model itself."""
        engine = self._need().engine
        with self._guard:
            spare, self._spare = self._spare, None
        return spare or Cached(engine)

    def _cold_sequence(self) -> Cached:
        """The model's own sequence, emptied: equal requests give equal results."""
        sequence = self._own_sequence()
        sequence.truncate(0)
        return sequence

    def _forget(self, session: Session) -> None:
        with self._guard:
            self._sessions.discard(session)


load = Model.load


def generate(model: Model, prompt: Prompt, **options) -> Result:
    """`model.generate`, as a function."""
    return model.generate(prompt, **options)


def stream_generate(model: Model, prompt: Prompt, **options) -> Stream:
    """`model.stream`, as a function."""
    return model.stream(prompt, **options)

"""A conversation, or any growing text, that is read only once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .errors import ConfigError
from .prompt import Message, Prompt, is_conversation, is_messages
from .result import Result
from .sequence import Lease
from .sequence import Sequence as Cached
from .stream import Generation, Request, Stream, drain

if TYPE_CHECKING:
    import numpy as np

    from .model import Model


class Session:
    """Keeps tokens and their cache from call to call; only what is new is read.

    A text or a list of messages goes through the chat template where the model has one: a text is
    the user's next message, a list replaces the conversation (the common start is not read again).
    Without a template, and for token ids, what is given continues what is there.

    A request that fails leaves it as it was.

    Attributes:
        messages: The conversation so far, answers included.
    """

    def __init__(self, model: "Model", messages: Sequence[Message] = ()):
        self._model = model
        self._lease = Lease()
        self._cached: Cached | None = None
        self._closed = False
        self._unread: list[int] = []  # generated last, not in the cache yet
        if not is_conversation(messages):
            raise ConfigError(f"[session] messages: got {messages!r:.80}, need a list of dicts")
        self.messages: list[dict[str, Any]] = [dict(m) for m in messages]

    @property
    def tokens(self) -> list[int]:
        """Everything read and generated so far."""
        cached = self._cached.tokens if self._cached else []
        return [*cached, *self._unread]

    def generate(self, prompt: Prompt, *, chat: bool | None = None, **sampling) -> Result:
        """As `Model.generate`, after what the session holds."""
        return drain(self.stream(prompt, chat=chat, **sampling))

    def stream(self, prompt: Prompt, *, chat: bool | None = None, **sampling) -> Stream:
        """As `Model.stream`, after what the session holds."""
        self._need_open()
        prompter = self._model._need().prompter
        is_chat = prompter.is_chat(prompt, chat)
        messages: list[dict[str, Any]] | None = None
        if is_chat:
            old = [] if is_messages(prompt) else self.messages
            new = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
            messages = [*old, *(dict(m) for m in new)]  # type: ignore[arg-type]
            tokens = prompter.render(messages)
        elif isinstance(prompt, str):
            held = self.tokens
            # BOS belongs to the start of a text, not to each part of it.
            tokens = [*held, *prompter.encode(prompt, add_bos=False if held else None)]
        else:
            tokens = [*self.tokens, *prompter.checked_ids(prompt)]
        if not tokens:
            raise ConfigError("[prompt] got no tokens, need at least one")
        self._model._check_room(len(tokens))

        def on_end(generation: Generation, cached: Cached) -> None:
            everything = [*tokens, *generation.tokens]
            self._unread = everything[len(cached.tokens) :]
            if messages is not None and generation.result is not None:
                answer = {"role": "assistant", "content": generation.result.text}
                self.messages = [*messages, answer]

        params = self._model.params(**sampling)
        tokenizer = prompter.tokenizer
        load_s, guard = self._model._load_s, self._undone_by
        generation = Generation(self._own, self._lease, tokenizer, load_s, on_end, guard)
        return generation.stream(Request(tokens, params, continues=not is_chat))

    def logits(self, tokens: Sequence[int]) -> "np.ndarray":
        """Append token ids and return their logits [T, V] in f32."""
        self._need_open()
        ids = self._model._need().prompter.checked_ids(tokens)
        with self._lease, self._undone_by(BaseException):
            waiting, self._unread = self._unread, []
            return self._own().logits([*waiting, *ids])[len(waiting) :]

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens, and the messages with it.

        Raises ConfigError if the session has fewer.
        """
        self._need_open()
        with self._lease:
            held = self.tokens
            if type(length) is not int or not 0 <= length <= len(held):
                raise ConfigError(f"[session] truncate: got {length!r}, need 0 to {len(held)}")
            cached = len(self._own().tokens)
            self._own().truncate(length)
            self._unread = held[cached:length] if length > cached else []
            self.messages = []

    def close(self) -> None:
        """Free the cache. Later calls raise."""
        self._closed = True
        if self._cached:
            self._cached.close()
        self._cached = None
        self._model._forget(self)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @contextmanager
    def _undone_by(self, error: type[BaseException] = Exception) -> Iterator[None]:
        """A request that ends with such an error leaves the session with what it held before."""
        held = self.tokens
        try:
            yield
        except error:
            if cached := self._cached:
                cached.restore(held)
                self._unread = held[len(cached.tokens) :]
            raise

    def _own(self) -> Cached:
        self._need_open()
        if self._cached is None:
            self._cached = self._model._new_sequence()
        return self._cached

    def _need_open(self) -> None:
        self._model._need()
        if self._closed:
            raise ConfigError("[session] is closed. Start another one.")

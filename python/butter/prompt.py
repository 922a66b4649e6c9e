"""From what a caller gives (text, messages or token ids) to the tokens that the model reads."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

from .errors import ConfigError, FileFormatError
from .text.masking import mask_special

Message: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = str | Sequence[Message] | Sequence[int]


class Prompter:
    """A model's tokenizer and, if it has one, its chat template."""

    def __init__(self, tokenizer, template, vocab_size: int):
        self.tokenizer = tokenizer
        self.template = template  # butter.text.template.ChatTemplate or None
        self.vocab_size = vocab_size

    def is_chat(self, prompt: Prompt, chat: bool | None) -> bool:
        """True if the chat template is to be applied.

        Text is a chat message where the model has a template, unless `chat` says otherwise;
        messages always are; token ids never are.
        """
        if chat is not None and not isinstance(chat, bool):
            raise ConfigError(f"[prompt] chat: got {chat!r:.80}, need True, False or None")
        if is_messages(prompt):
            if chat is False:
                raise ConfigError("[prompt] got messages with chat=False; need a text or token ids")
            self._need_template()
            return True
        if isinstance(prompt, Mapping):
            raise ConfigError(
                f"[prompt] got one dict {prompt!r:.60}, need a list of messages. Write [message]."
            )
        if isinstance(prompt, bytes | bytearray | memoryview):
            raise ConfigError(
                f"[prompt] got {type(prompt).__name__}, need text. Decode it, as with .decode()."
            )
        if not isinstance(prompt, str):
            if chat:
                raise ConfigError("[prompt] got token ids with chat=True; need text or messages")
            return False
        if chat:
            self._need_template()
        return self.template is not None if chat is None else chat

    def _need_template(self) -> None:
        if self.template is None:
            raise ConfigError(
                "[prompt] this model has no chat template; give a plain text with chat=False "
                "(--raw), or token ids"
            )

    def tokens(self, prompt: Prompt, chat: bool) -> list[int]:
        """The ids of a whole prompt, BOS included where the model wants it."""
        if chat:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
            ids = self.render(messages)  # type: ignore[arg-type]
        elif isinstance(prompt, str):
            ids = self.encode(prompt)
        else:
            ids = self.checked_ids(prompt)
        if not ids:
            raise ConfigError("[prompt] got no tokens, need at least one")
        return ids

    def encode(self, text: str, **options) -> list[int]:
        """As the tokenizer does it, with ids that the model has."""
        ids = self.tokenizer.encode(text, **options)
        if ids and (largest := max(ids)) >= self.vocab_size:
            raise FileFormatError(
                f"[tokenizer] got the id {largest}, but the model has {self.vocab_size} rows. Is "
                "tokenizer.json that of another model?"
            )
        return ids

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Messages through the template, ready for the assistant's answer."""
        masked, mask = mask_special(messages, self.tokenizer.special_texts)
        text = self.template.render(masked, add_generation_prompt=True)
        # The template writes BOS itself where the model wants one.
        if mask is None:
            return self.encode(text, add_bos=False)
        return [
            i
            for part, is_plain in mask.split(text)
            for i in self.encode(part, special=not is_plain, add_bos=False)
        ]

    def checked_ids(self, ids: Any) -> list[int]:
        """Token ids as plain ints; raises ConfigError for anything else."""
        try:
            listed = list(ids)
            given = [index(i) for i in listed]
            is_legal = not any(isinstance(i, bool) for i in listed)
        except (TypeError, ValueError):
            is_legal = False
        if not is_legal or isinstance(ids, str | bytes | bytearray | Mapping):
            raise ConfigError(f"[prompt] got {ids!r:.80}, need text, messages or a list of ids")
        for i in given:
            if not 0 <= i < self.vocab_size:
                raise ConfigError(f"[prompt] token id: got {i}, need 0 to {self.vocab_size - 1}")
        return given


def is_messages(prompt: Prompt) -> bool:
    if isinstance(prompt, str | Mapping) or not hasattr(prompt, "__getitem__") or not len(prompt):
        return False
    return isinstance(prompt[0], Mapping)


def is_conversation(messages: object) -> bool:
    """Whether these are messages, or none yet."""
    return isinstance(messages, list | tuple) and all(isinstance(m, Mapping) for m in messages)

"""Special tokens that a user wrote in a message stay text: they end no turn and begin none."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


class Mask:
    """Words that stand for special tokens while the template runs, and what they stand for."""

    def __init__(self, special: Iterable[str]):
        longest_first = sorted(special, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._word = f"MASKED{os.urandom(8).hex()}N"  # nobody can write it into a message
        self.hidden: list[str] = []

    def hide(self, value: Any) -> Any:
        """Put words in place of the special tokens of a content: text, or a list of parts."""
        if isinstance(value, str):
            return self._special.sub(self._replace, value)
        if isinstance(value, Mapping):
            return {k: self.hide(v) if k in ("text", "content") else v for k, v in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self.hide(v) for v in value]
        return value

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """The parts of a rendered text, and whether each is to be read as plain characters."""
        for i, part in enumerate(re.split(f"{self._word}([0-9]+)E", text)):
            if i % 2:
                yield self.hidden[int(part)], True
            elif part:
                yield part, False

    def _replace(self, found: re.Match) -> str:
        self.hidden.append(found[0])
        return f"{self._word}{len(self.hidden) - 1}E"


def mask_special(messages: Any, special: Iterable[str]) -> tuple[Any, Mask | None]:
    """Hide the special tokens in what others than the assistant wrote; no mask if there are none.

    Templates look for tokens in the assistant's own answers, such as the end of its reasoning.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        return messages, None  # not messages: the template says so
    mask = Mask(special)
    masked = [
        {**m, "content": mask.hide(m["content"])}
        if isinstance(m, Mapping) and m.get("role") != "assistant" and "content" in m
        else m
        for m in messages
    ]
    return (masked, mask) if mask.hidden else (list(messages), None)

"""What a request gives back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .stats import BatchStats, Stats


@dataclass(frozen=True)
class Result:
    """A finished generation.

    Attributes:
        text: What was generated, without stop strings and special tokens.
        tokens: The ids it came from.
        finish_reason: "stop" (an end token or stop string), "length" (max_tokens), "context" (the
            context is full) or "cancelled".
        seed: The seed that the draws used; give it again to get the same text.
        stats: Times and rates.
    """

    text: str
    tokens: list[int]
    finish_reason: str
    seed: int
    stats: Stats

    def __str__(self) -> str:
        return self.text


class Results(list[Result]):
    """The results of a batch, in the order of its prompts, and what all of it cost."""

    stats: BatchStats

    def __init__(self, results: Iterable[Result], stats: BatchStats):
        super().__init__(results)
        self.stats = stats


class Piece(str):
    """A part of the generated text, always whole characters, with the ids that completed it."""

    tokens: tuple[int, ...]

    def __new__(cls, text: str, tokens: Sequence[int] = ()):
        self = super().__new__(cls, text)
        self.tokens = tuple(tokens)
        return self

    @property
    def text(self) -> str:
        return str(self)

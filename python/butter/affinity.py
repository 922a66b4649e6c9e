"""Which of the machine's CPUs the workers of the CPU device are bound to."""

from collections.abc import Sequence

from .errors import ConfigError

Affinity = str | Sequence[int]
LARGEST = 1023  # of the numbers that a system's CPU mask has


def cpu_numbers(affinity: Affinity | None) -> list[int]:
    """The CPU of each worker in turn; none if workers are not bound. Raises ConfigError."""
    if affinity is None:
        return []
    try:
        parts = affinity.split(",") if isinstance(affinity, str) else [affinity]
        numbers = [number for part in parts for number in _expand(part)]
    except (TypeError, ValueError):
        numbers = []
    if not numbers:
        raise ConfigError(
            f"[model] affinity: got {affinity!r:.80}, need CPU numbers from 0 to {LARGEST}, "
            "such as '0-3,8' or [0, 1]"
        )
    return numbers


def _expand(part: str | Sequence[int]) -> Sequence[int]:
    """The numbers of one part. Raises TypeError and ValueError."""
    if isinstance(part, str):
        first, dash, last = part.strip().partition("-")
        numbers: Sequence[int] = range(_digits(first), _digits(last if dash else first) + 1)
    else:
        numbers = list(part)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in numbers):
        raise TypeError
    if not numbers or min(numbers) < 0 or max(numbers) > LARGEST:
        raise ValueError
    return numbers


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return min(int(text[:8]), LARGEST + 1)

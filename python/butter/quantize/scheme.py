"""What a user may ask of quantization, checked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..affine import BITS, GROUPS
from ..errors import ConfigError

GROUP = 32
FIELDS = ("bits", "group_size", "head_bits")
NAMES = tuple(f"q{bits}" for bits in BITS)
# The embedding and the output head, by the last part of their names.
HEADS = ("embed_tokens", "lm_head")


@dataclass(frozen=True)
class Scheme:
    """How matrices are to be quantized.

    Attributes:
        bits: Of a code.
        group: Inputs that share a scale and a bias.
        head_bits: Of the codes of the embedding and the output head.
    """

    bits: int
    group: int
    head_bits: int

    @classmethod
    def read(cls, given: Any) -> "Scheme | None":
        """From "q4", "q4-g64", {"bits": 4, "group_size": 64, "head_bits": 8} or None."""
        if given is None or isinstance(given, Scheme):
            return given
        if isinstance(given, str):
            given = from_name(given)
        if not isinstance(given, Mapping):
            raise ConfigError(f"[quantize] got {given!r:.80}, need {legal()}")
        unknown = [name for name in given if name not in FIELDS]
        if unknown:
            raise ConfigError(f"[quantize] got the field {unknown[0]!r:.80}, need {legal()}")
        if "bits" not in given:
            raise ConfigError(f"[quantize] bits: missing, need one of {listed(BITS)}")
        bits, group = given["bits"], given.get("group_size", GROUP)
        head = bits if given.get("head_bits") is None else given["head_bits"]
        for name, value, known in (
            ("bits", bits, BITS), ("group_size", group, GROUPS), ("head_bits", head, BITS),
        ):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int) or value not in known:
                raise ConfigError(
                    f"[quantize] {name}: got {value!r:.80}, need one of {listed(known)}"
                )
        return cls(bits, group, head)

    def of(self, path: str) -> int:
        """Bits of the matrix at this path."""
        return self.head_bits if path.rpartition(".")[2] in HEADS else self.bits


def from_name(name: str) -> dict[str, int]:
    match = re.fullmatch(r"q(\d)(?:-g(\d{2,3}))?", name, re.ASCII)
    if match is None or int(match[1]) not in BITS or int(match[2] or GROUP) not in GROUPS:
        raise ConfigError(f"[quantize] got {name!r:.80}, need {legal()}")
    return {"bits": int(match[1]), "group_size": int(match[2] or GROUP)}


def legal() -> str:
    return (
        f"{', '.join(NAMES)}, one of these with -g{listed(GROUPS, ' or -g')}, or an object of "
        f"{listed(FIELDS)}"
    )


def listed(values, joiner: str = ", ") -> str:
    return joiner.join(map(str, values))

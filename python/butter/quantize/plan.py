"""Which matrices are quantized, and which stay as they are stored."""

import logging
from dataclasses import dataclass, field

from ..affine import GROUPS
from ..errors import ConfigError
from ..matrix import DenseMatrix, Matrix
from .scheme import Scheme

log = logging.getLogger("butter.quantize")

SHOWN = 3


@dataclass
class Plan:
    """Decides for one matrix after the other.

    A matrix that is quantized already is coded again only where that makes it smaller.
    """

    scheme: Scheme
    recoded: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    indivisible: list[str] = field(default_factory=list)

    def of(self, source: Matrix) -> Matrix:
        """What a matrix becomes."""
        from .recode import RecodedMatrix  # it imports numpy

        bits, group = self.scheme.of(source.name.removesuffix(".weight")), self.scheme.group
        if is_small(source, bits + 32 / group):
            self.kept.append(source.name)
            return source
        if source.shape[1] % group:
            self.indivisible.append(source.name)
            return source
        self.recoded.append(source.name)
        return RecodedMatrix(source, bits, group)

    def report(self) -> None:
        """Say what could not be done. Raises ConfigError where that is everything."""
        if not self.indivisible:
            return
        count, shown = len(self.indivisible), ", ".join(self.indivisible[:SHOWN])
        names = shown + (f", … ({count - SHOWN} more)" if count > SHOWN else "")
        if not self.recoded and not self.kept:
            raise ConfigError(
                f"[quantize] group_size: got {self.scheme.group}, which divides the inputs of no "
                f"matrix ({names}); need one of {', '.join(map(str, GROUPS))} that does"
            )
        log.warning(
            "%d of %d matrices are not quantized: %d does not divide their inputs: %s",
            count, count + len(self.recoded) + len(self.kept), self.scheme.group, names,
        )  # fmt: skip


def is_small(source: Matrix, bits_per_weight: float) -> bool:
    """True for codes that cost no more, if a checkpoint can hold them."""
    if isinstance(source, DenseMatrix):
        return False
    form = source.format
    return form.group in GROUPS and form.bits_per_weight <= bits_per_weight

"""Values that are recorded in the form their readers ask for, so that fusion needs no flags.

A norm or an activation function ends in a plain tensor or in int8 blocks; which one is known only
when a linear layer reads it. So it hands out an `Activation`, and the first reader decides.
"""

from collections.abc import Callable
from typing import NamedTuple

from ..recorder import Recorder, Tensor


class Quantized(NamedTuple):
    """int8 codes [rows, n] with, per block of each row, a scale and scale * sum of the codes."""

    codes: Tensor
    scales: Tensor
    sums: Tensor


class Activation:
    """A value [rows, n] that is not recorded before it is read."""

    def __init__(
        self,
        p: Recorder,
        plain: Callable[[], Tensor],
        quantized: Callable[[int], Quantized] | None = None,
    ):
        self._p = p
        self._make_plain = plain
        self._make_quantized = quantized
        self._plain: Tensor | None = None
        self._rounded: Tensor | None = None
        self._quantized: dict[int, Quantized] = {}

    @staticmethod
    def of(p: Recorder, value: "Tensor | Activation") -> "Activation":
        return value if isinstance(value, Activation) else Activation(p, lambda: value)

    def plain(self) -> Tensor:
        """The value in the activation dtype."""
        if self._plain is None:
            self._plain = self._make_plain()
        return self._plain

    def rounded(self) -> Tensor:
        """The value in bf16."""
        if self._rounded is None:
            self._rounded = self._p.round_bf16(self.plain())
        return self._rounded

    def quantized(self, block: int) -> Quantized:
        """The value as int8 in blocks of `block`."""
        if block not in self._quantized:
            if self._make_quantized is None or self._plain is not None:
                form = Quantized(*self._p.quantize_rows(self.plain(), QB=block))
            else:
                form = self._make_quantized(block)
            self._quantized[block] = form
        return self._quantized[block]


class Residual:
    """The residual stream: `h + y` waits, so that the next norm can add and norm in one kernel."""

    def __init__(self, p: Recorder, value: Tensor, addend: Tensor | None = None):
        self._p = p
        self.value = value
        self.addend = addend

    def __add__(self, addend: Tensor) -> "Residual":
        return Residual(self._p, self.tensor(), addend)

    def tensor(self) -> Tensor:
        if self.addend is not None:
            self.settle(self._p.add(self.value, self.addend))
        return self.value

    def settle(self, total: Tensor) -> None:
        """Take over the sum that another kernel has formed."""
        self.value, self.addend = total, None

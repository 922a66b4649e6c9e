"""Linear layers."""

from ..matrix import Matrix
from ..recorder import Recorder, Tensor
from ..weights import Vector, Weights
from .activation import Activation


class Linear:
    """y = W x + b, with W [n, k] in whatever form the checkpoint stores it."""

    def __init__(self, w: Weights, n: int, k: int, *, bias: bool = False):
        self.weight: Matrix = (w / "weight").matrix(n, k)
        self.bias: Vector | None = (w / "bias").vector(n) if bias else None

    @classmethod
    def sharing(cls, weight: Matrix) -> "Linear":
        """A layer over a matrix that another one owns."""
        self = cls.__new__(cls)
        self.weight, self.bias = weight, None
        return self

    def record(self, p: Recorder, x: Tensor | Activation) -> Tensor:
        """x [rows, k] to [rows, n]."""
        out = self.weight.product(p, Activation.of(p, x))
        return out if self.bias is None else p.add_bias(out, self.bias)

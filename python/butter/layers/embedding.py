"""Token embeddings, and the output head that may share them."""

from ..matrix import Matrix
from ..recorder import Recorder, Tensor
from ..weights import Weights
from .activation import Residual
from .linear import Linear


class Embedding:
    """A table [V, n] with one row per token."""

    def __init__(self, w: Weights, vocab: int, n: int):
        self.weight: Matrix = (w / "weight").matrix(vocab, n)

    def record(self, p: Recorder, tokens: Tensor) -> Residual:
        """tokens [rows] to the residual stream [rows, n]."""
        return Residual(p, self.weight.gather(p, tokens))

    def tied(self) -> Linear:
        """The output head that multiplies by the same table."""
        return Linear.sharing(self.weight)

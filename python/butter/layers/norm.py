"""Root-mean-square normalization."""

from ..recorder import Recorder, Tensor
from ..weights import Weights
from .activation import Activation, Quantized, Residual


class RMSNorm:
    """w * x / sqrt(mean(x**2) + eps); also forms a waiting residual sum."""

    def __init__(self, w: Weights, n: int, eps: float):
        self.weight = (w / "weight").vector(n)
        self.eps = eps

    def record(self, p: Recorder, h: Residual) -> Activation:
        """h [rows, n] to its normalized form [rows, n]."""

        def plain() -> Tensor:
            if h.addend is None:
                return p.rms_norm(h.value, self.weight, eps=self.eps)
            total, out = p.add_rms_norm(h.value, h.addend, self.weight, eps=self.eps)
            h.settle(total)
            return out

        def quantized(block: int) -> Quantized:
            if h.addend is None:
                return Quantized(*p.rms_norm_quantize(h.value, self.weight, eps=self.eps, QB=block))
            total, *form = p.add_rms_norm_quantize(
                h.value, h.addend, self.weight, eps=self.eps, QB=block
            )
            h.settle(total)
            return Quantized(*form)

        return Activation(p, plain, quantized)

"""Feed-forward blocks."""

from ..recorder import Recorder, Tensor
from ..weights import Weights
from .activation import Activation, Quantized
from .linear import Linear


class SwiGLU:
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, w: Weights, hidden: int, inner: int, *, bias: bool = False):
        self.gate = Linear(w / "gate_proj", inner, hidden, bias=bias)
        self.up = Linear(w / "up_proj", inner, hidden, bias=bias)
        self.down = Linear(w / "down_proj", hidden, inner, bias=bias)

    def record(self, p: Recorder, x: Tensor | Activation) -> Tensor:
        """x [rows, hidden] to [rows, hidden]."""
        gate, up = self.gate.record(p, x), self.up.record(p, x)
        inner = Activation(
            p,
            lambda: p.silu_mul(gate, up),
            lambda block: Quantized(*p.silu_mul_quantize(gate, up, QB=block)),
        )
        return self.down.record(p, inner)

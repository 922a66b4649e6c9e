"""Sizes of the models that are compared: Llama architecture, output tied to the embedding."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    title: str
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    theta: float
    eps: float
    context: int = 8192

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """Rows and columns of a layer's matrices, by their names in a checkpoint."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "self_attn.q_proj": (q, self.hidden),
            "self_attn.k_proj": (kv, self.hidden),
            "self_attn.v_proj": (kv, self.hidden),
            "self_attn.o_proj": (self.hidden, q),
            "mlp.gate_proj": (self.inner, self.hidden),
            "mlp.up_proj": (self.inner, self.hidden),
            "mlp.down_proj": (self.hidden, self.inner),
        }

    def kv_bytes(self, element: int) -> int:
        """Of one cached position, with elements of so many bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dim * element


SHAPES = {
    "smol-135m": Shape(
        "SmolLM2-135M-Instruct", 576, 1536, 30, 9, 3, 64, 49152, theta=1e5, eps=1e-5
    ),
    "llama-1b": Shape(
        "the shape of Llama-3.2-1B, random weights",
        2048, 8192, 16, 32, 8, 64, 128256, theta=5e5, eps=1e-5,
    ),  # fmt: skip
    # Without the norms of q and k, which cost next to nothing: the Llama architecture has none.
    "qwen3-0.6b": Shape(
        "the sizes of Qwen3-0.6B in the Llama architecture, random weights",
        1024, 3072, 28, 16, 8, 128, 151936, theta=1e6, eps=1e-6,
    ),  # fmt: skip
}

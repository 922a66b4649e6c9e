"""Multi-head attention with grouped keys and values over a cache."""

from ..cache.kv import KVCache
from ..recorder import Dynamic, Recorder, Tensor
from ..registry import TextConfig
from ..weights import Weights
from .activation import Activation
from .linear import Linear

# Decode attention cuts the keys into parts of about this many, at most MAX_SPLITS of them. The cut
# depends on the length only, so results are the same for any number of threads.
SPLIT_LEN = 256
MAX_SPLITS = 16


class Attention:
    """Causal self-attention; H query heads share Hkv key and value heads of size D."""

    def __init__(self, cfg: TextConfig, w: Weights):
        self.heads, self.kv_heads = cfg.num_attention_heads, cfg.num_key_value_heads
        self.head_dim = cfg.head_dim
        self.scale = self.head_dim**-0.5
        hidden, bias = cfg.hidden_size, cfg.attention_bias
        self.q = Linear(w / "q_proj", self.heads * self.head_dim, hidden, bias=bias)
        self.k = Linear(w / "k_proj", self.kv_heads * self.head_dim, hidden, bias=bias)
        self.v = Linear(w / "v_proj", self.kv_heads * self.head_dim, hidden, bias=bias)
        self.o = Linear(w / "o_proj", hidden, self.heads * self.head_dim, bias=bias)

    def record(self, p: Recorder, x: Tensor | Activation, kv: KVCache) -> Tensor:
        """x [rows, hidden] to [rows, hidden]; appends the rows' keys and values to the cache."""
        q = self.q.record(p, x).reshape(p.rows, self.heads, self.head_dim)
        k = self.k.record(p, x).reshape(p.rows, self.kv_heads, self.head_dim)
        v = self.v.record(p, x).reshape(p.rows, self.kv_heads, self.head_dim)
        q = p.rope(q, kv.rope.cos, kv.rope.sin)
        p.rope_kv_append(k, v, kv.rope.cos, kv.rope.sin, kv.keys, kv.values)
        out = self.decode(p, q, kv) if p.rows == 1 else self.prefill(p, q, kv)
        return self.o.record(p, out.reshape(p.rows, self.heads * self.head_dim))

    def prefill(self, p: Recorder, q: Tensor, kv: KVCache) -> Tensor:
        return p.sdpa_prefill(q, kv.keys, kv.values, scale=self.scale)

    def decode(self, p: Recorder, q: Tensor, kv: KVCache) -> Tensor:
        shared = self.heads // self.kv_heads
        together = max(n for n in p.legal("sdpa_decode", "QH") if shared % n == 0)
        splits = {"splits": Dynamic(MAX_SPLITS, "splits")}
        row = q.reshape(self.heads, self.head_dim)
        part, stat = p.sdpa_decode(
            row, kv.keys, kv.values, scale=self.scale, QH=together, dims=splits
        )
        return p.sdpa_combine(part, stat)

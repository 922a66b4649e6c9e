"""Multi-head attention with grouped keys and values over a cache."""

from collections.abc import Sequence

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

    def record(
        self, p: Recorder, x: Tensor | Activation, kv: KVCache | Sequence[KVCache]
    ) -> Tensor:
        """x [rows, hidden] to [rows, hidden]; appends the rows' keys and values to the cache.

        Of several caches, each belongs to the sequence of one row.
        """
        q = self.q.record(p, x).reshape(p.rows, self.heads, self.head_dim)
        k = self.k.record(p, x).reshape(p.rows, self.kv_heads, self.head_dim)
        v = self.v.record(p, x).reshape(p.rows, self.kv_heads, self.head_dim)
        out = self.one(p, q, k, v, kv) if isinstance(kv, KVCache) else self.each(p, q, k, v, kv)
        return self.o.record(p, out.reshape(p.rows, self.heads * self.head_dim))

    def one(self, p: Recorder, q: Tensor, k: Tensor, v: Tensor, kv: KVCache) -> Tensor:
        """The rows are neighbors in one sequence."""
        q = p.rope(q, kv.rope.cos, kv.rope.sin)
        p.rope_kv_append(k, v, kv.rope.cos, kv.rope.sin, kv.keys, kv.values)
        if p.rows > 1:
            return self.prefill(p, q, kv)
        return p.sdpa_combine(*self.decode(p, q, kv))

    def each(
        self, p: Recorder, q: Tensor, k: Tensor, v: Tensor, caches: Sequence[KVCache]
    ) -> Tensor:
        """Each row is the last of its own sequence. Kernel by kernel, so that rows share phases."""
        turned = [p.rope(q.row(r), kv.rope.cos, kv.rope.sin) for r, kv in p.by_row(caches)]
        for r, kv in p.by_row(caches):
            cos, sin = kv.rope.cos, kv.rope.sin
            p.rope_kv_append(k.row(r), v.row(r), cos, sin, kv.keys, kv.values)
        parts = [self.decode(p, turned[r], kv) for r, kv in p.by_row(caches)]
        out = p.empty((p.rows, self.heads, self.head_dim), p.dtype)
        for r, part in p.by_row(parts):
            p.sdpa_combine(*part, out=out.row(r).reshape(self.heads, self.head_dim))
        return out

    def prefill(self, p: Recorder, q: Tensor, kv: KVCache) -> Tensor:
        return p.sdpa_prefill(q, kv.keys, kv.values, scale=self.scale)

    def decode(self, p: Recorder, q: Tensor, kv: KVCache) -> tuple[Tensor, Tensor]:
        """One row against its cache: the parts that `sdpa_combine` joins."""
        shared = self.heads // self.kv_heads
        together = max(n for n in p.legal("sdpa_decode", "QH") if shared % n == 0)
        splits = {"splits": Dynamic(MAX_SPLITS, "splits")}
        row = q.reshape(self.heads, self.head_dim)
        return p.sdpa_decode(row, kv.keys, kv.values, scale=self.scale, QH=together, dims=splits)

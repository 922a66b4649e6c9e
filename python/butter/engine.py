"""A family's weights on a device, and the programs that are recorded from them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .affine import Quantization
from .array import Array
from .cache.kv import PAGE, KVCache, RopeTables, bytes_per_position, round_up
from .checkpoint import Checkpoint
from .errors import ConfigError, UnsupportedError
from .matrix import DenseMatrix, QuantizedMatrix
from .quantize import Scheme
from .quantize.plan import Plan
from .recorder import Dynamic, Recorder
from .registry import Family
from .rope import MAX_TABLE, rope_inv_freq
from .weights import Progress, WeightLoader, Weights

log = logging.getLogger("butter.engine")

CHUNK = 256  # rows of a prefill step
LOGITS_BYTES = 32 << 20  # a step that returns logits has at most so many
KV_SHARE = 4  # the cache may take 1/4 of memory where the user names no context
MODES = ("eager", "argument_buffers", "icb")


def check_flag(name: str, value, *also) -> None:
    """Refuse what is neither True nor False: a text such as "no" would count as true."""
    if not isinstance(value, bool) and not any(value is other for other in also):
        legal = " or ".join(map(str, (True, False, *also)))
        raise ConfigError(f"[model] {name}: got {value!r:.80}, need {legal}")


@dataclass(frozen=True)
class Options:
    """How a model is to run; checked before anything is opened."""

    dispatch: str = "auto"
    dtype: str | None = None
    max_context: int | None = None
    exact: bool = False
    quantize: Any = None  # what Scheme.read takes

    def __post_init__(self) -> None:
        self.scheme  # noqa: B018  (raises for what is no scheme)
        if self.dispatch not in ("auto", *MODES):
            raise ConfigError(
                f"[model] dispatch: got {self.dispatch!r}, need auto, {', '.join(MODES)}"
            )
        if self.dtype not in (None, "f32"):
            raise UnsupportedError(
                f"[model] dtype: got {self.dtype!r}; activations are f32 on every device that "
                "Butter runs on today. Leave it out, or say 'f32' for exact products."
            )
        check_flag("exact", self.exact)
        context = self.max_context
        if context is not None and (isinstance(context, bool) or not isinstance(context, int)):
            raise ConfigError(f"[model] max_context: got {context!r}, need a number of tokens")
        if context is not None and context < 1:
            raise ConfigError(f"[model] max_context: got {context}, need at least 1")

    @property
    def scheme(self) -> Scheme | None:
        """How matrices are quantized while they are loaded."""
        return Scheme.read(self.quantize)

    @property
    def is_exact(self) -> bool:
        """Products with quantized weights take f32 activations, and the cache is f32."""
        return self.exact or self.dtype == "f32"


@dataclass(frozen=True)
class State:
    """What outlives the steps of one sequence: caches and the sampler's buffers."""

    caches: Sequence[KVCache]
    next: Array  # i32 [1]: the token that the next decode step reads
    counts: Array  # u32 [V]
    bias: Array  # f32 [V]


class Engine:
    """Weights and recording; knows nothing of text or requests."""

    def __init__(
        self,
        device,
        family: Family,
        config: Mapping[str, Any],
        checkpoint: Checkpoint,
        options: Options,
    ):
        self.device = device
        self.family = family
        self.config = config
        self.options = options
        self.dtype = "f32"
        self.kv_dtype = "f32" if options.is_exact else "f16"
        self.text = family.config.read(config)
        self.checkpoint = checkpoint
        plan = Plan(options.scheme) if options.scheme else None
        self._loader = WeightLoader(checkpoint, Quantization.read(config), plan)
        self.model = family.model(self.text, Weights(self._loader))
        self._loader.check(family.ignores)
        if plan:
            plan.report()
        self.max_context = self._context()
        self._rope: RopeTables | None = None

    def load(self, *, scan: bool, progress: Progress | None) -> None:
        """Bring the weights onto the device."""
        self._loader.load(self.device, scan=scan, progress=progress)

    def _context(self) -> int:
        """Positions that a sequence may have."""
        trained = self.text.max_position_embeddings
        rope = self.config["rope_parameters"]
        if rope["rope_type"] == "dynamic":
            trained = int(trained * rope["factor"])
        wanted = self.options.max_context
        if wanted is not None:
            self._check_context(wanted)
            if wanted > trained:
                log.warning("max_context %d is beyond the %d the model knows", wanted, trained)
            return wanted
        room = self.device.memory_bytes // KV_SHARE // self.kv_bytes_per_position
        if room < trained:
            log.info("context cut from %d to %d to fit a quarter of memory", trained, room)
        return max(1, min(trained, room))

    def _check_context(self, wanted: int) -> None:
        """Refuse a context whose caches this machine cannot hold."""
        per_table = len(rope_inv_freq(self.config)[0])
        largest = MAX_TABLE // per_table // PAGE * PAGE
        if wanted > largest:
            raise ConfigError(f"[model] max_context: got {wanted}, need 1 to {largest}")
        per_position = self.kv_bytes_per_position + 8 * per_table  # cos and sin in f32
        memory = self.device.memory_bytes
        if wanted * per_position > memory:
            raise ConfigError(
                f"[model] max_context: got {wanted}, whose caches take "
                f"{wanted * per_position / 2**30:.1f} GiB; this machine has "
                f"{memory / 2**30:.1f} GiB. Ask for at most {memory // per_position}."
            )

    @property
    def dispatch(self) -> str:
        """The mode that was asked for; auto is the one with the least work per token."""
        if self.options.dispatch != "auto":
            return self.options.dispatch
        # No Mac has run an indirect command buffer of ours yet.
        return "icb" if self.device.kind == "cpu" else "argument_buffers"

    @property
    def kv_bytes_per_position(self) -> int:
        text = self.text
        return bytes_per_position(
            layers=text.num_hidden_layers,
            heads=text.num_key_value_heads,
            head_dim=text.head_dim,
            dtype=self.kv_dtype,
        )

    @property
    def decode_weight_bytes(self) -> int:
        """Bytes of the matrices that one decode step reads in full."""
        matrices = [w for w in self._loader.wanted.values()
                    if isinstance(w, DenseMatrix | QuantizedMatrix)]  # fmt: skip
        head = self.model.head.weight
        table = self.model.embed.weight
        return sum(m.nbytes for m in matrices if m is not table or table is head)

    def rope(self) -> RopeTables:
        """Angles for another sequence: its own only where they depend on its length."""
        if self._rope is None:
            tables = RopeTables(self.device, self.config, self.capacity)
            if tables.depends_on_length:
                return tables
            self._rope = tables
        return self._rope

    def caches(self, rope: RopeTables) -> list[KVCache]:
        """Fresh caches, one per layer."""
        return [
            KVCache.allocate(
                self.device,
                heads=self.text.num_key_value_heads,
                head_dim=self.text.head_dim,
                rope=rope,
                dtype=self.kv_dtype,
            )
            for _ in range(self.text.num_hidden_layers)
        ]

    @property
    def capacity(self) -> int:
        return round_up(self.max_context)

    @property
    def chunk(self) -> int:
        return min(CHUNK, self.capacity)

    def recorder(self, rows: int, *, is_batch: bool = False) -> Recorder:
        exact = self.options.is_exact
        p = Recorder(self.device, rows, is_batch=is_batch, dtype=self.dtype, exact=exact)
        p.program.limit_tokens(self.text.vocab_size)
        return p

    def record_decode(self, state: State):
        """One token in, one token out, sampled on the device."""
        p = self.recorder(1)
        logits = self.model.logits(p, self.model.record(p, state.next, state.caches))
        record_sampling(p, logits, [state])
        return p.finish()

    def record_batch(self, tokens: Array, states: Sequence[State]):
        """One token in and one out for each of several sequences.

        Args:
            tokens: i32 [rows], of which each state's `next` is one.
            states: One per row.
        """
        p = self.recorder(len(states), is_batch=True)
        caches = list(zip(*(state.caches for state in states), strict=True))
        logits = self.model.logits(p, self.model.record(p, tokens, caches))
        record_sampling(p, logits, states)
        return p.finish()

    def record_prefill(self, state: State):
        """A chunk of tokens into the caches."""
        p = self.recorder(Dynamic(self.chunk, "rows"))
        self.model.record(p, p.tokens(), state.caches).tensor()
        return p.finish()

    def record_logits(self, state: State):
        """A chunk of tokens to (plan, id of their logits, rows)."""
        fitting = LOGITS_BYTES // (4 * self.text.vocab_size)
        rows = max(1, min(self.chunk, fitting))
        p = self.recorder(Dynamic(rows, "rows"))
        logits = self.model.logits(p, self.model.record(p, p.tokens(), state.caches))
        p.program.keep(logits.id)
        return p.finish(), logits.id, rows


def record_sampling(p: Recorder, logits, states: Sequence[State]) -> None:
    """logits [rows, V] to the next token of each row, by the row's step block and state."""
    given = [(logits.row(r), s.counts, s.bias) for r, s in p.by_row(states)]
    tops = [p.sample_tops(*row) for _, row in p.by_row(given)]
    spans = [p.sample_border(*row, *tops[r]) for r, row in p.by_row(given)]
    kept = [(tops[r][0], *spans[r]) for r in range(len(states))]
    masses = [p.sample_masses(*row, *kept[r]) for r, row in p.by_row(given)]
    for r, state in p.by_row(states):
        p.sample_draw(given[r][0], state.bias, *kept[r], masses[r], state.next, state.counts)

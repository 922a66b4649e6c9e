"""Which cells are measured: counts and depths of the quick and of the full run."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Plan:
    """Of one shape.

    Attributes:
        rounds: How often each cell alternates over the engines.
        starts: How often each engine is started alone, with all threads, to time its loading.
        prefills: Lengths of prompts; the first is measured at every number of threads.
        decode: Tokens of a decode cell with an empty cache.
        depths: Of the cache; with all threads, and up to `shallow` with fewer too.
        depth_tokens: Tokens of a decode cell at depth.
        batches: Sequences of the batch cells, with all threads.
        batch_tokens: Of each sequence, after a prompt of `batch_prompt`.
        neighbour_tokens: Of a decode cell beside a busy process; 0 leaves it out.
        longest_fill_s: An engine is left out of a depth whose prompt it would read for longer.
    """

    rounds: int
    starts: int = 1
    prefills: tuple[int, ...] = (512,)
    decode: int = 128
    depths: tuple[int, ...] = (1024, 4096)
    shallow: int = 1024
    depth_tokens: int = 64
    batches: tuple[int, ...] = (1, 4, 16)
    batch_tokens: int = 32
    batch_prompt: int = 32
    neighbour_tokens: int = 64
    longest_fill_s: float = 60

    @property
    def context(self) -> int:
        """Positions that the longest cell needs; 64 are kept for warm-up and first tokens."""
        longest = max((self.decode, *self.prefills))
        if self.depths:
            longest = max(longest, max(self.depths) + self.depth_tokens)
        if self.batches:
            longest = max(longest, self.batch_prompt + self.batch_tokens)
        return longest + 64


# SmolLM2 ends at 8192 positions.
DEEPEST = 8192 - 128
QUICK = {
    "smol-135m": Plan(
        rounds=2, decode=64, depths=(1024, 2048), depth_tokens=32, batch_tokens=16,
        longest_fill_s=30,
    ),
}  # fmt: skip
LARGER = Plan(
    rounds=3, starts=2, prefills=(512,), decode=48, depths=(1024,), depth_tokens=32, batches=(1, 4),
    batch_tokens=16, neighbour_tokens=32, longest_fill_s=90,
)  # fmt: skip
FULL = {
    "smol-135m": Plan(
        rounds=5, starts=5, prefills=(512, 2048), depths=(1024, 2048, 4096, DEEPEST),
        shallow=DEEPEST, longest_fill_s=200,
    ),
    "llama-1b": LARGER,
    "qwen3-0.6b": LARGER,
}  # fmt: skip


def changed(plan: Plan, **values) -> Plan:
    """With the values that are not None."""
    return replace(plan, **{k: v for k, v in values.items() if v is not None})

"""What a request cost."""

import resource
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Stats:
    """Measured, never estimated, but for `bytes_per_token`.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        reused_tokens: Of these, how many the cache already held.
        generated_tokens: Tokens produced, without the one that ended the text.
        load_s: From the call of `Model.load` until ready.
        prefill_s: Reading the new part of the prompt, but for its last token.
        first_token_s: From the call until the first token.
        decode_s: From the first token until the last.
        encode_us: CPU time of the host per decode step to resolve, encode and submit it.
        dispatches: Kernels per decode step.
        phases: Groups of them that must wait for one another.
        bytes_per_token: Weights and cache read per step at the mean length, by their sizes.
        peak_rss_bytes: Largest resident memory of the process so far.
    """

    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    load_s: float
    prefill_s: float
    first_token_s: float
    decode_s: float
    encode_us: float
    dispatches: int
    phases: int
    bytes_per_token: int
    peak_rss_bytes: int

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """None where fewer than two tokens were read."""
        read = self.prompt_tokens - self.reused_tokens - 1
        return read / self.prefill_s if read > 0 and self.prefill_s > 0 else None

    @property
    def decode_tokens_per_s(self) -> float | None:
        """None where fewer than two tokens were produced."""
        steps = self.generated_tokens - 1
        return steps / self.decode_s if steps > 0 and self.decode_s > 0 else None

    @property
    def decode_gb_per_s(self) -> float | None:
        rate = self.decode_tokens_per_s
        return None if rate is None else rate * self.bytes_per_token / 1e9

    def as_dict(self) -> dict:
        """All of it, rates included, ready for JSON."""
        return {
            **asdict(self),
            "prefill_tokens_per_s": self.prefill_tokens_per_s,
            "decode_tokens_per_s": self.decode_tokens_per_s,
            "decode_gb_per_s": self.decode_gb_per_s,
        }

    def __str__(self) -> str:
        def rate(value):
            return "–" if value is None else f"{value:.1f} tok/s"

        bandwidth = "" if self.decode_gb_per_s is None else f", {self.decode_gb_per_s:.1f} GB/s"
        decoded = f"{rate(self.decode_tokens_per_s)}{bandwidth}"
        reused = f", {self.reused_tokens} from the cache" if self.reused_tokens else ""
        return (
            f"prompt {self.prompt_tokens} tokens{reused}, {rate(self.prefill_tokens_per_s)}\n"
            f"generated {self.generated_tokens} tokens, {decoded}\n"
            f"first token after {self.first_token_s * 1e3:.0f} ms, loaded in {self.load_s:.2f} s\n"
            f"host {self.encode_us:.1f} µs per token, {self.dispatches} kernels in "
            f"{self.phases} phases, peak memory {self.peak_rss_bytes / 1e6:.0f} MB"
        )


@dataclass(frozen=True)
class BatchStats:
    """What several requests cost that shared their decode steps.

    Attributes:
        prompt_tokens: Tokens of all prompts.
        generated_tokens: Tokens produced, without those that ended a text.
        steps: Decode steps, each of one token for every sequence that had not ended.
        prefill_s: Reading the prompts, one after another.
        decode_s: The rest of the time.
    """

    prompt_tokens: int
    generated_tokens: int
    steps: int
    prefill_s: float
    decode_s: float

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Of all sequences together; None where nothing was produced."""
        produced = self.generated_tokens > 0 and self.decode_s > 0
        return self.generated_tokens / self.decode_s if produced else None

    def as_dict(self) -> dict:
        """All of it, the rate included, ready for JSON."""
        return {**asdict(self), "decode_tokens_per_s": self.decode_tokens_per_s}


def peak_rss_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""Comparison with an oracle: one assertion, and the recorded logits of reference models."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .tolerances import tolerance

DATA = Path(__file__).parent.parent / "data"


def assert_close(got, want, *, op: str, dtype: str) -> None:
    """Fail, naming the worst place, where `got` is not within (op, dtype)'s tolerance of `want`."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    assert got.shape == want.shape, f"{op}: got shape {got.shape}, want {want.shape}"
    if got.size == 0:
        return
    limit = tolerance(op, dtype)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        error = np.where(same, 0, np.abs(got - want))
        relative = np.where(same, 0, error / np.abs(want))
        excess = error - (limit.absolute + limit.relative * np.abs(want))
    bad = ~same & ~(excess <= 0)  # also true for a NaN on one side only
    if not bad.any():
        return
    worst = np.argmax(np.where(bad, np.nan_to_num(excess, nan=np.inf), -1))
    at = np.unravel_index(worst, got.shape)
    raise AssertionError(
        f"{op} {dtype}: {int(bad.sum())} of {bad.size} values are off; "
        f"worst at {tuple(map(int, at))}: got {got[at]:.9g}, want {want[at]:.9g}; "
        f"max abs error {_peak(error):.3g}, max rel error {_peak(relative):.3g}; "
        f"allowed {limit.absolute:.3g} + {limit.relative:.3g} * |want| ({limit.reason})"
    )


def _peak(errors: np.ndarray) -> float:
    """The largest error; NaN if one is NaN, which is the more alarming news."""
    return float("nan") if np.isnan(errors).any() else float(errors.max())


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities [T, V] in float64."""
    x = np.asarray(logits, np.float64)
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def kl_divergence(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """KL(want || got) in nats per position, from logits [T, V]."""
    p, q = log_softmax(want), log_softmax(got)
    return (np.exp(p) * (p - q)).sum(axis=-1)


@dataclass(frozen=True)
class Prompt:
    """What the reference computed for one prompt of T tokens."""

    name: str
    ids: list[int]
    positions: list[int]  # the rows of `logits`
    logits: np.ndarray  # [len(positions), V] f32
    argmax: np.ndarray  # [T]
    top_ids: np.ndarray  # [T, K], empty where only whole rows are kept
    top_logprobs: np.ndarray  # [T, K]

    def kl_at_least(self, got: np.ndarray) -> np.ndarray:
        """A lower bound of KL(reference || got) per position: ids outside the top share one bin."""
        p, q = self.top_logprobs.astype(np.float64), log_softmax(got)
        q = np.take_along_axis(q, self.top_ids.astype(np.int64), axis=-1)
        rest_p = np.maximum(1 - np.exp(p).sum(axis=-1), 1e-12)
        rest_q = np.maximum(1 - np.exp(q).sum(axis=-1), 1e-12)
        return (np.exp(p) * (p - q)).sum(axis=-1) + rest_p * np.log(rest_p / rest_q)


@dataclass(frozen=True)
class Record:
    """All prompts of one checkpoint, and a greedy continuation of `greedy_prompt`."""

    prompts: list[Prompt]
    greedy_prompt: list[int]
    greedy: list[int]
    digest: str = ""  # of the tiny checkpoint


def recorded(name: str) -> Record:
    """The reference's record of a checkpoint of `tiny.VARIANTS`, or of "smollm2"."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        keys = {key: file[key] for key in file.files}
    return Record(
        prompts=[_prompt(keys, str(n)) for n in keys["names"]],
        greedy_prompt=keys["greedy_prompt"].tolist(),
        greedy=keys["greedy"].tolist(),
        digest=str(keys.get("digest", "")),
    )


def _prompt(keys: dict[str, np.ndarray], name: str) -> Prompt:
    none = np.zeros((0, 0), np.float32)
    return Prompt(
        name=name,
        ids=keys[f"{name}.ids"].tolist(),
        positions=keys[f"{name}.positions"].tolist(),
        logits=keys[f"{name}.logits"],
        argmax=keys[f"{name}.argmax"].astype(np.int64),
        top_ids=keys.get(f"{name}.top_ids", none),
        top_logprobs=keys.get(f"{name}.top_logprobs", none),
    )

"""The sampling kernels in turn on one row of logits."""

import numpy as np

from .launch import run_kernel

STAGES = ("sample_tops", "sample_border", "sample_masses", "sample_draw")


def run_chain(machine, logits, counts=None, bias=None, until="sample_draw", **step) -> dict:
    """Every tensor of the chain by name, and the step block, after the stages up to `until`."""
    logits = np.atleast_2d(np.asarray(logits, np.float32))
    n = logits.shape[1]
    state = {
        "logits": logits,
        "counts": np.zeros(n, np.uint32) if counts is None else counts,
        "bias": np.zeros(n, np.float32) if bias is None else bias,
        "next": np.array([-7], np.int32),
    }
    for name in STAGES[: STAGES.index(until) + 1]:
        state |= run_kernel(machine, name, tensors=state, step=step)
    return state


def kept(machine, logits, **step) -> set[int]:
    """Ids that the filters leave of logits without penalties, at the temperature of 1 or 0."""
    x = np.asarray(logits, np.float32)
    state = run_chain(machine, x, until="sample_border", **step)
    level, end = state["span"][1], state["end"][0]
    stays = (x > level) | ((x == level) & (np.arange(len(x)) < end))
    return set(np.flatnonzero(stays & (x > -np.inf)).tolist())

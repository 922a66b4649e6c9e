"""The live references: `pip install '.[oracle]'`, then `pytest -m oracle`."""

import numpy as np
import pytest

from support.oracle import assert_close, kl_divergence, recorded
from support.smollm2 import gguf_path
from support.tiny import VARIANTS, checkpoint, prompts
from support.tolerances import MAX_MEAN_KL

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def live_smollm2():
    """Whole logits of each recorded prompt, computed now."""
    from oracles.reference import Reference

    reference = Reference(gguf_path())
    return [(prompt, reference.logits(prompt.ids)) for prompt in recorded("smollm2").prompts]


@pytest.mark.parametrize("name", [*VARIANTS, "smollm2"])
def test_the_record_is_what_the_reference_computes_now(name):
    from oracles.record import compare, live

    for recorded_name, record in live([name]):
        compare(recorded_name, record)


@pytest.mark.parametrize("name", VARIANTS)
def test_tiny_logits_match_the_live_reference_at_each_position(name, tmp_path):
    import butter
    from oracles.reference import Reference

    path = checkpoint(name, tmp_path)
    reference = Reference(path)
    with butter.Model.load(path, device="cpu", dtype="f32") as model:
        for ids in prompts():
            assert_close(model.logits(ids), reference.logits(ids), op="logits", dtype="f32")


def test_exact_smollm2_matches_the_live_reference_at_each_position(live_smollm2):
    import butter

    with butter.Model.load(gguf_path(), device="cpu", dtype="f32") as model:
        for prompt, want in live_smollm2:
            assert_close(model.logits(prompt.ids), want, op="logits_smollm2", dtype="f32")


def test_fast_smollm2_costs_little_divergence(live_smollm2):
    import butter

    with butter.Model.load(gguf_path(), device="cpu") as model:
        kl = [kl_divergence(want, model.logits(prompt.ids)) for prompt, want in live_smollm2]
    assert np.concatenate(kl).mean() <= MAX_MEAN_KL

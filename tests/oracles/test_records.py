"""The recorded references belong to the checkpoints that the tests build today."""

import numpy as np
import pytest

from support.oracle import recorded
from support.tiny import VARIANTS, checkpoint, digest, prompts


@pytest.mark.parametrize("name", VARIANTS)
def test_a_rebuilt_checkpoint_is_the_recorded_one(name, tmp_path):
    record = recorded(name)

    assert digest(checkpoint(name, tmp_path)) == record.digest
    assert [prompt.ids for prompt in record.prompts] == prompts()


@pytest.mark.parametrize("name", [*VARIANTS, "smollm2"])
def test_each_recorded_row_has_the_recorded_argmax(name):
    for prompt in recorded(name).prompts:
        assert prompt.logits.argmax(axis=-1).tolist() == prompt.argmax[prompt.positions].tolist()
        assert prompt.positions[-1] == len(prompt.ids) - 1


def test_smollm2_top_probabilities_nearly_sum_to_one():
    for prompt in recorded("smollm2").prompts:
        assert prompt.top_ids[:, 0].tolist() == prompt.argmax.tolist()
        assert prompt.kl_at_least(_uniform(prompt)).min() > 0


def _uniform(prompt):
    """Logits that give each token the same probability."""
    return np.zeros((len(prompt.ids), prompt.logits.shape[-1]))

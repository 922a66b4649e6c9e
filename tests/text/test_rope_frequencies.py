"""Rotary frequencies of every kind against recorded and live transformers numbers."""

import json

import numpy as np
import pytest

from butter.cache import RopeTables
from butter.config import normalize, rope_inv_freq
from butter.errors import ConfigError, UnsupportedError
from text.rope_cases import BASE, CASES, RECORDED, reference

RECORDS = json.loads(RECORDED.read_text())
# Frequencies may differ in the last bit, where torch's vectorized pow is not correctly rounded.
LAST_BIT = 2.0**-22


def ours(name):
    changes, seq_len = CASES[name]
    return rope_inv_freq(normalize({**BASE, **changes}), seq_len)


@pytest.mark.parametrize("name", CASES)
def test_frequencies_equal_the_record(name):
    inv_freq, factor = ours(name)
    want = np.array(RECORDS[name]["inv_freq"], np.float32)
    assert len(inv_freq) == len(want) and all(np.float32(v) == v for v in inv_freq)
    assert np.max(np.abs(np.float32(inv_freq) / want - 1)) <= LAST_BIT
    assert factor == pytest.approx(RECORDS[name]["factor"], rel=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_the_record_equals_the_live_reference(name):
    pytest.importorskip("transformers")
    inv_freq, factor = reference(name)
    assert inv_freq == pytest.approx(RECORDS[name]["inv_freq"], rel=LAST_BIT)
    assert factor == RECORDS[name]["factor"]


def tables(device, config, positions):
    rope = RopeTables(device, config, positions)
    rope.reach(positions)
    return rope.cos.numpy(), rope.sin.numpy()


def test_tables_are_cos_and_sin_of_the_f32_angle(device):
    config = normalize({**BASE, "rope_theta": 1e4})
    cos, sin = tables(device, config, 9000)
    assert cos.dtype == sin.dtype == np.float32 and cos.shape == sin.shape == (9000, 32)
    angles = np.arange(9000, dtype=np.float32)[:, None] * np.float32(rope_inv_freq(config)[0])
    wide = angles.astype(np.float64)
    np.testing.assert_allclose(cos, np.cos(wide), rtol=0, atol=2.0**-25)
    np.testing.assert_allclose(sin, np.sin(wide), rtol=0, atol=2.0**-25)
    assert (cos[0] == 1).all() and (sin[0] == 0).all()


def test_angles_are_made_as_far_as_positions_reach(device):
    config = normalize({**BASE, "rope_theta": 1e4})
    whole, _ = tables(device, config, 5000)
    rope = RopeTables(device, config, 5000)
    assert not rope.cos.numpy().any()
    for length in (1, 1024, 1025, 700, 4999, 6000):
        rope.reach(length)
        np.testing.assert_array_equal(rope.cos.numpy()[:length], whole[:length])


def test_other_frequencies_are_made_anew(device):
    changes, length = CASES["dynamic_long"]
    config = normalize({**BASE, **changes})
    rope = RopeTables(device, config, length)
    rope.reach(length)
    before = rope.cos.numpy().copy()
    rope.fit(length)
    rope.reach(length)
    assert (rope.cos.numpy() != before).any()


def test_the_attention_factor_scales_the_tables(device):
    changes, _ = CASES["yarn_attention"]
    cos, _ = tables(device, normalize({**BASE, **changes}), 2)
    assert (cos[0] == np.float32(1.25)).all()


def test_a_partial_rotary_factor_shortens_the_rotary_part():
    for extra in ({}, {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}):
        config = normalize({**BASE, "partial_rotary_factor": 0.25, **extra})
        assert len(rope_inv_freq(config)[0]) == 8


def test_each_layer_type_may_have_its_own():
    rope = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    config = normalize({**BASE, "rope_parameters": rope})
    full = rope_inv_freq(config, layer_type="full_attention")[0]
    sliding = rope_inv_freq(config, layer_type="sliding_attention")[0]
    assert full[0] == np.float32(1 / 8) and sliding[0] == 1
    with pytest.raises(ConfigError, match="full_attention, sliding_attention"):
        rope_inv_freq(config)


def test_an_unknown_kind_lists_the_legal_ones():
    config = normalize({**BASE, "rope_scaling": {"rope_type": "spiral", "factor": 2}})
    with pytest.raises(UnsupportedError, match="'spiral'.*default, linear, dynamic, llama3"):
        rope_inv_freq(config)


LLAMA3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}
HOSTILE = [
    {"rope_type": "linear"},
    {"rope_type": "linear", "factor": 0},
    {"rope_type": "linear", "factor": "2"},
    {"rope_type": "linear", "factor": float("nan")},
    {"rope_type": "linear", "factor": float("inf")},
    {"rope_type": "linear", "factor": 10**400},
    {"rope_type": "dynamic", "factor": -3},
    {"rope_type": "yarn", "factor": 0},
    {"rope_type": "yarn", "factor": 2, "beta_fast": -1},
    {"rope_type": "yarn", "factor": 2, "rope_theta": 1.0},
    {"rope_type": "yarn", "factor": 2, "attention_factor": "big"},
    {**LLAMA3, "low_freq_factor": None},
    {**LLAMA3, "low_freq_factor": 4},
    {**LLAMA3, "high_freq_factor": 0},
    {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]},
    {"rope_type": "longrope", "short_factor": ["x"] * 32},
    {"rope_type": "longrope", "short_factor": [0.0] * 32},
    {"rope_type": "longrope", "short_factor": None},
    {"rope_type": "default", "partial_rotary_factor": 1e-9},
    {"rope_type": "default", "rope_theta": 1e-17},
]


@pytest.mark.parametrize("rope", HOSTILE, ids=repr)
def test_hostile_parameters_are_a_typed_error(rope):
    config = normalize({**BASE, "rope_theta": rope.pop("rope_theta", 1e4), "rope_scaling": rope})
    if rope["rope_type"] == "default" and "partial_rotary_factor" not in rope:
        assert np.isfinite(rope_inv_freq(config)[0]).all()  # odd, but a number
        return
    with pytest.raises(ConfigError):
        rope_inv_freq(config)


@pytest.mark.parametrize("count", [0, -1, 1 << 40])
def test_an_impossible_table_is_refused(device, count):
    with pytest.raises(ConfigError, match="capacity"):
        RopeTables(device, normalize({**BASE}), count)

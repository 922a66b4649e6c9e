"""Sampling parameters: legal ranges, defaults from a model's files, seeds."""

import math

import numpy as np
import pytest

from butter.errors import ConfigError
from butter.generation import SamplingParams, defaults_from

BAD = [
    ("temperature", [-0.1, math.nan, math.inf, "hot", None, True, 101]),
    ("top_k", [-1, 1.5, "3", None, True, 2**31]),
    ("top_p", [0, -1, 1.01, math.nan, "all", None]),
    ("min_p", [-0.1, 1.1, math.nan]),
    ("repetition_penalty", [0, -1, math.nan, math.inf]),
    ("presence_penalty", [-101, math.nan]),
    ("frequency_penalty", [101, math.inf]),
    (
        "logit_bias",
        [
            [1],
            {"1": 2},
            {-1: 2},
            {1: math.nan},
            {1: math.inf},
            {1: 3e39},
            {1: 10**400},
            {1: "x"},
            {True: 1},
            None,
        ],
    ),
    ("seed", [-1, 2**64, 1.0, "x", True]),
    ("max_tokens", [0, -1, 1.5, "9", True]),
    ("stop", [[""], [1], 3, ["x" * 5000], ["x"] * 65, None, b"x", "\udc80"]),
    ("stop_ids", [[-1], ["1"], 3, "12", [True], None]),
    ("ignore_eos", [1, "yes", None]),
]


@pytest.mark.parametrize("name,value", [(n, v) for n, values in BAD for v in values])
def test_an_illegal_value_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        SamplingParams(**{name: value})


def test_the_message_holds_the_value_and_the_legal_range():
    with pytest.raises(ConfigError, match=r"top_p: got 7, need a number above 0 to 1"):
        SamplingParams(top_p=7)


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(ConfigError, match="unknown option 'temprature'; known: temperature, top_k"):
        SamplingParams().override(temprature=1)


def test_values_are_normalized():
    params = SamplingParams(temperature=1, stop="END", stop_ids=[2, 2, 0], logit_bias={5: -100})
    assert params.temperature == 1.0 and isinstance(params.temperature, float)
    assert params.stop == ("END",) and params.stop_ids == (2, 0)
    assert params.logit_bias == {5: -100.0}


def test_numpy_scalars_are_numbers():
    params = SamplingParams(
        top_k=np.int64(4), seed=np.uint64(3), logit_bias={np.int32(5): np.float32(2)}
    )
    assert (params.top_k, params.seed, params.logit_bias) == (4, 3, {5: 2.0})
    assert type(params.top_k) is int


def test_override_keeps_the_rest():
    params = SamplingParams(top_k=5, seed=7).override(temperature=0)
    assert (params.top_k, params.seed, params.temperature) == (5, 7, 0.0)


def test_no_seed_means_fresh_entropy_and_the_seed_is_told():
    seeds = {SamplingParams().with_seed().seed for _ in range(8)}
    assert len(seeds) == 8 and all(0 <= s < 2**64 for s in seeds)
    assert SamplingParams(seed=0).with_seed().seed == 0


def test_all_eos_ids_are_honored():
    given = {"eos_token_id": [128001, 128008]}
    params = defaults_from(given, {"eos_token_id": 3}, [128009, 128001])
    assert params.stop_ids == (128001, 128008, 128009)
    assert defaults_from({}, {"eos_token_id": 3}).stop_ids == (3,)
    assert defaults_from(None, None, (2,)).stop_ids == (2,)
    assert defaults_from().stop_ids == ()


def test_do_sample_false_is_greedy():
    given = {"do_sample": False, "temperature": 0.6, "top_p": 0.9}
    assert defaults_from(given).temperature == 0.0


def test_files_that_say_nothing_about_sampling_get_the_defaults():
    assert defaults_from({"eos_token_id": 1}).override(stop_ids=()) == SamplingParams()


def test_a_models_sampling_values_are_taken():
    given = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_new_tokens": 99}
    params = defaults_from({**given, "min_p": None})
    assert (params.temperature, params.top_p, params.top_k) == (0.6, 0.9, 20)
    assert (params.max_tokens, params.min_p) == (99, 0.0)


def test_what_is_not_applied_is_said(caplog):
    defaults_from({"num_beams": 4, "no_repeat_ngram_size": 0})
    assert "num_beams=4 is not applied" in caplog.text and "ngram" not in caplog.text


@pytest.mark.parametrize(
    "given",
    [
        {"eos_token_id": "2"},
        {"eos_token_id": [-1]},
        {"eos_token_id": 1.5},
        {"do_sample": True, "temperature": "hot"},
        {"do_sample": True, "top_p": 2},
    ],
)
def test_a_hostile_generation_config_is_a_typed_error(given):
    with pytest.raises(ConfigError):
        defaults_from(given)

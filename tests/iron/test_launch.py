"""The helper of the kernel tests says what is wrong with a call."""

import numpy as np
import pytest

from support.launch import Interpreter, run_kernel

X = np.ones((2, 3), np.float32)
F32 = {"T": "f32"}
W = X[0]
NORM = {"x": X, "w": W}
EPS = {"eps": 1e-5}

WRONG = {
    "a kernel": (("rms_nrom", F32, {}, NORM, EPS), KeyError, "no kernel is named.*rms_norm"),
    "types": (("rms_norm", {"T": "f23"}, {}, NORM, EPS), KeyError, "has no instance.*f32"),
    "statics": (("rms_norm", F32, {"QB": 1}, NORM, EPS), KeyError, "has no instance"),
    "a tensor": (
        ("rms_norm", F32, {}, {"x": X, "weight": W}, EPS),
        KeyError,
        r"got \['weight', 'x'\], need \['w', 'x'\]",
    ),
    "a const": (("rms_norm", F32, {}, NORM, {}), KeyError, r"got \[\], need \['eps'\]"),
    "a dim": (("rms_norm", F32, {}, NORM, EPS, {"m": 3}), KeyError, "dims of rms_norm__f32"),
    "a rank": (
        ("rms_norm", F32, {}, {"x": W, "w": W}, EPS),
        ValueError,
        r"x has shape \(3,\), needs \[rows, n\]",
    ),
    "a dtype": (
        ("rms_norm", F32, {}, {"x": X.astype(np.float64), "w": W}, EPS),
        TypeError,
        "x is float64, needs f32",
    ),
}


@pytest.mark.parametrize("arguments, error, match", WRONG.values(), ids=WRONG)
def test_a_wrong_call_names_what_is_needed(arguments, error, match):
    with pytest.raises(error, match=match):
        run_kernel(Interpreter("iron"), *arguments)

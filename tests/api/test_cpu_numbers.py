"""CPU numbers as users write them."""

import pytest

from butter.affinity import cpu_numbers
from butter.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (None, []),
        ("0", [0]),
        ("3,1", [3, 1]),
        ("0-3,8", [0, 1, 2, 3, 8]),
        (" 4-4 , 2", [4, 2]),
        ([2, 0], [2, 0]),
        (range(3), [0, 1, 2]),
        ((1023,), [1023]),
    ],
    ids=str,
)
def test_cpus_keep_their_order(given, want):
    assert cpu_numbers(given) == want


BAD = ["", ",", "x", "0-", "-1", "3-1", "1.5", "0;1", "0-9999999999", "²", [], [-1], [1024], ["0"],
       [True], [1.0], 3, {"a": 1}, object]  # fmt: skip


@pytest.mark.parametrize("given", BAD, ids=repr)
def test_anything_else_is_refused_with_what_is_legal(given):
    with pytest.raises(ConfigError, match="need CPU numbers from 0 to 1023, such as '0-3,8'"):
        cpu_numbers(given)

"""The live references: `pip install '.[oracle,demo]'`, then `pytest -m oracle`."""

import pytest

from support.tiny import VARIANTS

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", [*VARIANTS, "smollm2"])
def test_the_record_is_what_the_reference_computes_now(name):
    from oracles.record import compare, live

    for recorded_name, record in live([name]):
        compare(recorded_name, record)

"""butter doctor's kernel tests see what is wrong in any slot of the step ring."""

import os
import subprocess
import sys

import pytest
from backend import Software, metal
from one_kernel import self_test

from butter import _native
from butter.selftest import facts, kernels

CHECK = """
from backend import Software, metal
from butter.selftest import kernels
from one_kernel import self_test
kernels.MODES = ("{mode}",)
device, (kernel, case) = metal(), self_test()
software = Software()
software.plant("{fault}")
(outcome,) = kernels.check(device, kernel, case)
print(outcome.status, software.planted())
"""


@pytest.fixture(scope="module")
def software():
    metal()
    return Software()


def check(mode, fault):
    code = CHECK.format(mode=mode, fault=fault)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100
    )


@pytest.mark.parametrize("slot", range(_native.STEP_SLOTS))
@pytest.mark.parametrize(
    ("mode", "bindings", "complaint"),
    [
        ("eager", 3, "nothing is bound at buffer"),
        ("argument_buffers", 1, "nothing is bound at buffer(0) tables"),
        ("icb", 4, "nothing is bound at buffer"),  # dims too
    ],
)
def test_a_wrong_binding_is_seen_in_each_slot(software, mode, bindings, complaint, slot):
    child = check(mode, f"shift_binding:{slot * bindings + 1}")
    assert (child.returncode != 0, child.stdout) == (True, "")
    assert complaint in child.stderr


@pytest.mark.parametrize("mode", kernels.MODES)
def test_a_fault_after_the_last_slot_never_strikes(software, mode):
    child = check(mode, f"shift_binding:{_native.STEP_SLOTS * 4 + 1}")
    assert (child.stdout, child.stderr) == ("ok 1\n", "")


def test_a_wrong_result_names_its_slot(software, monkeypatch):
    seen = iter([(0.5, ""), (2.0, "out: off")])
    monkeypatch.setattr(kernels._Setup, "_step", lambda setup, replay: next(seen))
    monkeypatch.setattr(kernels, "MODES", ("icb",))
    (outcome,) = kernels.check(metal(), *self_test())
    assert (outcome.status, outcome.message) == ("wrong", "out: off (step slot 1)")


def test_settings_that_change_what_is_tested_are_reported(software, monkeypatch):
    monkeypatch.setenv("SOFTMETAL_PLANT", "skip_barrier:1000000")
    monkeypatch.setenv("BUTTER_ICB_FIX", "1")
    found = facts.sources(dict(metal().info))
    assert found["SOFTMETAL_PLANT"] == "skip_barrier:1000000"
    assert found["BUTTER_ICB_FIX"] == "1"

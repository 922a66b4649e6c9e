"""Older systems and GPUs, small ones, machines without any: the same tokens or a typed error."""

import os
import subprocess
import sys

import pytest
from backend import MODES, Software, metal
from one_kernel import add

from butter import _native
from butter.errors import DeviceError, KernelError
from native.chain import Chain, greedy_words

START = 7


@pytest.fixture(scope="module")
def software():
    metal()
    return Software()


@pytest.fixture
def set_up(software, monkeypatch):
    """A chain on a new device, under other settings of the software Metal."""

    def make(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(name, str(value))
        return Chain(_native.open_device("metal"))

    return make


def decode(chain, mode, count=8):
    loop = _native.DecodeLoop(chain.plan.prepare(mode), [], 1000)
    chain.reset(START)
    loop.start(greedy_words(), 0, count, 0)
    return loop.run(count)


@pytest.mark.parametrize("mode", MODES)
def test_systems_without_residency_sets_name_each_buffer(software, set_up, mode):
    chain = set_up(SOFTMETAL_MACOS=14)
    software.reset()
    assert decode(chain, mode) == chain.greedy(START, 8)
    assert software.calls("residency") == 0
    assert mode == "eager" or software.calls("compute useResources") >= 16


@pytest.mark.parametrize("mode", MODES[1:])
def test_systems_with_residency_sets_use_them(software, set_up, mode):
    chain = set_up(SOFTMETAL_MACOS=15)
    software.reset()
    assert decode(chain, mode) == chain.greedy(START, 8)
    assert software.calls("residency commit") == 1
    assert software.calls("command_buffer useResidencySet") >= 8


@pytest.mark.parametrize("family", [7, 8, 9])
def test_each_family_of_gpus_decodes(set_up, family):
    chain = set_up(SOFTMETAL_FAMILY=family)
    assert chain.device.isa == f"apple{family}"
    assert decode(chain, "icb") == chain.greedy(START, 8)


@pytest.mark.parametrize(
    ("fix", "family", "touches"), [("1", 9, True), (None, 9, False), (None, 7, True)]
)
def test_the_help_for_old_gpus_can_be_chosen(software, set_up, monkeypatch, fix, family, touches):
    if fix:
        monkeypatch.setenv("BUTTER_ICB_FIX", fix)
    chain = set_up(SOFTMETAL_FAMILY=family)
    software.reset()
    assert decode(chain, "icb") == chain.greedy(START, 8)
    assert (software.calls("compute setComputePipelineState") > 0) == touches


def test_gpus_before_apple_silicon_are_refused(software, monkeypatch):
    monkeypatch.setenv("SOFTMETAL_FAMILY", "6")
    with pytest.raises(DeviceError, match="'Software Metal' is not an Apple silicon GPU"):
        _native.open_device("metal")
    assert _native.open_device("auto").kind == "cpu"


def test_a_machine_without_a_gpu_is_named(software, monkeypatch):
    monkeypatch.setenv("SOFTMETAL_FAMILY", "0")
    with pytest.raises(DeviceError, match="this machine has no Metal device"):
        _native.open_device("metal")


def test_a_kernel_too_large_for_the_gpu_is_refused(software, monkeypatch):
    monkeypatch.setenv("SOFTMETAL_MAX_THREADS", "32")
    with pytest.raises(KernelError, match="does not fit this GPU: got at most 32 threads"):
        add()


FORK = """
import os
from backend import metal
from native.chain import Chain, greedy_words
from one_kernel import add
from butter.errors import DeviceError

def refused(call, *arguments):
    try:
        call(*arguments)
    except DeviceError as error:
        assert "opened before fork() and cannot be used in the child" in str(error)
        return True

chain = Chain(metal())
replay = chain.plan.prepare("icb")
chain.reset(7)
ticket = replay.submit(greedy_words())
child = os.fork()
if child == 0:
    is_right = refused(replay.wait, ticket) and refused(add, chain.device)
    del replay
    os._exit(not is_right)
assert os.waitpid(child, 0)[1] == 0
assert replay.wait(ticket) == chain.greedy(7, 1)[0]
"""


def test_a_device_is_refused_in_the_child_of_a_fork_even_with_a_token_in_flight(software):
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "SOFTMETAL_DELAY_US": "500000"}
    child = subprocess.run(
        [sys.executable, "-c", FORK],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=100,
    )
    assert child.returncode == 0, child.stderr

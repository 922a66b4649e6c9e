"""Memory that runs out while a program is prepared, and programs too large for a mode."""

import re

import numpy as np
import pytest
from backend import MODES, Software, metal

from butter import _native
from butter.errors import OutOfMemory, UnsupportedError
from native.chain import Chain, greedy_words

START = 7
MOST_INDIRECT = 16384  # commands of an indirect command buffer


@pytest.fixture(scope="module")
def software():
    metal()
    return Software()


@pytest.fixture(scope="module")
def chain(software):
    return Chain(metal())


@pytest.mark.parametrize("mode", MODES)
def test_memory_may_run_out_at_each_allocation_of_a_program(software, chain, mode):
    failures = []
    for nth in range(1, 20):
        software.plant(f"fail_allocation:{nth}")
        try:
            replay = chain.plan.prepare(mode)
        except OutOfMemory as error:
            failures.append(str(error))
        else:
            break
    software.plant("")
    # The step ring and the activations; what the other modes add.
    extra = {
        "eager": [],
        "argument_buffers": ["the dims of a program", "argument tables"],
        "icb": ["the dims of a program", *["an indirect command buffer of"] * 3],
    }[mode]
    assert len(failures) == 2 + len(extra)
    for text, part in zip(failures[2:], extra, strict=True):
        assert f"no memory for {part}" in text
    chain.reset(START)
    assert replay.run(greedy_words()) == chain.greedy(START, 1)[0]


def test_a_gpu_that_is_full_is_a_typed_error(software, monkeypatch):
    device = metal()
    monkeypatch.setenv("SOFTMETAL_MEMORY", str(1 << 20))
    with pytest.raises(OutOfMemory, match="one buffer holds at most 524288"):
        device.allocate((1 << 19) + 1)
    with pytest.raises(OutOfMemory) as full:
        kept = [device.allocate(1 << 18) for _ in range(5)]
        assert not kept
    text = str(full.value)
    used = re.search("could not allocate 262144 bytes: this process uses ([0-9]+) on the GPU", text)
    assert used and (1 << 20) - (1 << 18) < int(used[1]) <= 1 << 20
    assert "at most 1048576. " in text
    assert "one buffer" not in text


def test_a_file_larger_than_a_buffer_is_a_typed_error(software, tmp_path, monkeypatch):
    path = tmp_path / "weights"
    path.write_bytes(bytes(1 << 20))
    monkeypatch.setenv("SOFTMETAL_MEMORY", str(1 << 20))
    with pytest.raises(OutOfMemory, match="one buffer holds at most 524288"):
        metal().adopt(_native.Mapping(str(path)), 0, 1 << 20)


def additions(count, rows=1):
    """A program of equal dispatches, and the tensor that the last one writes."""
    device = metal()
    p = _native.Program(device, 8)
    memory = device.allocate(64)
    memory.write(np.arange(16, dtype=np.float32))
    x, out = p.buffer(memory, 0, 64, "f32"), p.activation(64, "f32")
    for _ in range(count):
        p.dispatch("add__f32", [x, x, out], dims=[rows, 16])
    p.keep(out)
    return p.finish(), out


def test_a_program_too_long_for_an_indirect_command_buffer_is_refused(software):
    plan, _ = additions(MOST_INDIRECT + 1)
    with pytest.raises(UnsupportedError, match="got 16385, need at most 16384"):
        plan.prepare("icb")


@pytest.mark.parametrize("mode", MODES)
def test_a_program_without_any_group_runs(software, mode):
    plan, _ = additions(2, rows=0)
    plan.prepare(mode).run(greedy_words())


@pytest.mark.parametrize("mode", MODES)
def test_a_dropped_program_waits_for_its_work(software, chain, mode):
    replay = chain.plan.prepare(mode)
    chain.reset(START)
    for _ in range(3):
        replay.submit(greedy_words())
    del replay
    assert chain.steps_run() == 3

import os
import threading

import numpy as np
import pytest
from chain import Chain, greedy_words

from butter import _native
from butter.errors import ConfigError, DeviceError, KernelError, OutOfMemory, ShapeError
from butter.step import step_words

ISAS = {"base": 4, "v3": 8, "v4": 16, "v4_bf16": 16, "neon": 4, "dotprod": 4}


def filled(device, values):
    memory = device.allocate(values.nbytes)
    memory.write(values)
    return memory


def whole(memory):
    return (memory, 0, memory.nbytes)


def test_info_says_what_runs_the_kernels(device):
    assert device.kind == "cpu"
    assert device.warp == ISAS[device.isa]
    assert device.threads >= 1
    assert device.info["memory_bytes"] == device.memory_bytes > 0
    assert device.kernels() == sorted(device.kernels())
    assert device.isa in repr(device)


def test_threads_can_be_chosen():
    assert _native.open_device("cpu", threads=3).threads == 3


def test_threads_are_refused_where_auto_is_no_cpu():
    kind = _native.open_device("auto").kind
    if kind == "cpu":
        assert _native.open_device("auto", threads=3).threads == 3
        return
    with pytest.raises(ConfigError, match=f"got 3 for 'auto', which is '{kind}' here"):
        _native.open_device("auto", threads=3)


def test_absent_and_unknown_devices_are_refused():
    with pytest.raises(ConfigError, match="got 'tpu', need auto, cpu, metal, cuda"):
        _native.open_device("tpu")
    with pytest.raises(ConfigError, match="got -1"):
        _native.open_device("cpu", -1)
    with pytest.raises(ConfigError, match="threads applies to the CPU only"):
        _native.open_device("cuda", 2)
    with pytest.raises((ConfigError, DeviceError)):
        _native.open_device("cuda:x")


def test_the_instruction_set_can_be_forced(monkeypatch, device):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 97)).astype(np.float32)
    results = {}
    for isa, warp in ISAS.items():
        monkeypatch.setenv("BUTTER_ISA", isa)
        try:
            forced = _native.open_device("cpu")
        except ConfigError as error:
            assert f"got '{isa}'" in str(error)
            continue
        assert (forced.isa, forced.warp) == (isa, warp)
        a, out = filled(forced, x), forced.allocate(x.nbytes)
        forced.run("add__f32", [whole(a), whole(a), whole(out)], dims=[3, 97])
        results[isa] = out.read()
    assert set(results.values()) == {(x + x).tobytes()}
    monkeypatch.setenv("BUTTER_ISA", "mmx")
    with pytest.raises(ConfigError, match="got 'mmx'"):
        _native.open_device("cpu")


def test_buffers_are_zeroed_and_bounds_are_checked(device):
    for size in (0, 1, 1000, 1 << 20):
        memory = device.allocate(size)
        assert memory.read() == bytes(size)
        assert len(memory) == memory.nbytes == size
    with pytest.raises(ShapeError, match="outside the buffer"):
        memory.write(b"12345", offset=(1 << 20) - 4)
    with pytest.raises(ShapeError, match="outside the buffer"):
        memory.read(1 << 20, 1)
    with pytest.raises(ShapeError, match="outside the buffer"):
        memory.array("f32", [1 << 40, 1 << 40])
    with pytest.raises(ShapeError, match="misaligned"):
        memory.array("f32", [1], offset=2)
    with pytest.raises(OutOfMemory, match="could not allocate"):
        device.allocate(1 << 60)


def test_an_array_is_a_view_that_keeps_its_buffer(device):
    array = device.allocate(1 << 16).array("i32", [128, 128])
    array[:] = 5
    assert array.dtype == np.int32
    assert int(array.sum()) == 5 * 128 * 128


def test_adopted_pages_are_read_only_and_equal_the_file(device, tmp_path):
    values = np.arange(4096, dtype=np.float32)
    (tmp_path / "w").write_bytes(b"\0" * 12 + values.tobytes() + b"\0")
    mapping = _native.Mapping(tmp_path / "w")
    memory = device.adopt(mapping, 12, values.nbytes)
    odd = device.adopt(mapping, 13, values.nbytes)  # no dtype is aligned there: a copy
    del mapping
    assert memory.read() == values.tobytes()
    assert odd.nbytes == values.nbytes
    assert not memory.writable
    assert not memory.array("f32", [4096]).flags.writeable
    with pytest.raises(ShapeError, match="read-only"):
        memory.write(b"1")
    out = device.allocate(values.nbytes)
    device.run("add__f32", [whole(memory), whole(memory), whole(out)], dims=[1, 4096])
    np.testing.assert_array_equal(out.array("f32", [4096]), values * 2)
    with pytest.raises(ShapeError, match="bound to read-only memory"):
        device.run("add__f32", [whole(out), whole(out), whole(memory)], dims=[1, 4096])


def test_run_refuses_what_would_not_fit(device):
    x, out = filled(device, np.ones(64, np.float32)), device.allocate(256)
    with pytest.raises(KernelError, match="unknown kernel"):
        device.run("no_such_kernel", [])
    with pytest.raises(ShapeError, match="too small: got 252 bytes, need 256"):
        device.run("add__f32", [whole(x), whole(x), (out, 4, 252)], dims=[1, 64])
    with pytest.raises(ShapeError, match="outside its buffer"):
        device.run("add__f32", [whole(x), whole(x), (out, 8, 256)], dims=[1, 64])
    with pytest.raises(ShapeError, match="misaligned"):
        device.run("add__f32", [whole(x), whole(x), (out, 2, 252)], dims=[1, 63])
    with pytest.raises(ShapeError, match="constant 'eps' is not a f32: got 'a'"):
        device.run("rms_norm__f32", [whole(x), whole(x), whole(out)], ["a"], [1, 64])
    with pytest.raises(ShapeError, match="needs a step block"):
        tops, sums = device.allocate(8), device.allocate(8)
        row = [whole(x), whole(x), whole(x)]
        device.run("sample_tops", [*row, whole(tops), whole(sums)], dims=[1, 64])
    device.run("add__f32", [whole(x), whole(x), whole(out)], dims=[0, 64])
    assert out.read() == bytes(256)


def test_run_takes_a_step_block(device):
    logits, bias = filled(device, np.array([0, 3, 1, 2], np.float32)), device.allocate(16)
    token, counts = device.allocate(4), filled(device, np.zeros(4, np.uint32))
    step = filled(device, np.array(step_words(sample=1, repetition=1.0), np.uint32))
    tops, masses = filled(device, np.float32([3])), filled(device, np.float32([0]))
    span, end = filled(device, np.float32([3, -np.inf])), filled(device, np.uint32([4]))
    ranges = [logits, bias, tops, span, end, masses, token, counts]
    device.run("sample_draw", [whole(r) for r in ranges], dims=[1, 4], step=whole(step))
    assert token.array("i32", [1])[0] == 1
    np.testing.assert_array_equal(counts.array("u32", [4]), [0, 1, 0, 0])


def test_a_failed_submission_is_raised_at_the_wait_and_the_next_works():
    device = _native.open_device("cpu", 2)
    x, out = filled(device, np.ones(64, np.float32)), device.allocate(256)
    device.inject_fault("no power")
    with pytest.raises(DeviceError, match="no power"):
        device.run("add__f32", [whole(x), whole(x), whole(out)], dims=[1, 64])
    device.run("add__f32", [whole(x), whole(x), whole(out)], dims=[1, 64])
    assert out.array("f32", [64])[0] == 2


def test_many_devices_work_at_once():
    chains = [Chain(_native.open_device("cpu", 2)) for _ in range(16)]
    replays = [c.plan.prepare("icb") for c in chains]
    for _ in range(10):
        for replay, ticket in [(r, r.submit(greedy_words())) for r in replays]:
            replay.wait(ticket)
    assert {c.steps_run() for c in chains} == {10}


def test_one_device_serves_many_threads():
    device = _native.open_device("cpu", 2)
    failures = []

    def work(seed):
        chain = Chain(device, seed)
        loop = _native.DecodeLoop(chain.plan.prepare("eager"), [], 1000)
        chain.reset(1)
        loop.start(greedy_words(), 0, 50)
        if loop.run(50) != chain.greedy(1, 50) or chain.steps_run() != 50:
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def child_says(action):
    """Run `action` in a forked child; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_an_error_and_can_open_its_own_device():
    device = _native.open_device("cpu", 2)
    chain = Chain(device)
    replay = chain.plan.prepare("icb")
    replay.run(greedy_words())

    def child():
        try:
            replay.run(greedy_words())
        except DeviceError as error:
            if "before fork()" not in str(error):
                return 2
        own = Chain(_native.open_device("cpu", 2))
        own.plan.prepare("icb").run(greedy_words())
        return 0 if own.steps_run() == 1 else 3

    assert child_says(child) == 0
    replay.run(greedy_words())
    assert chain.steps_run() == 2

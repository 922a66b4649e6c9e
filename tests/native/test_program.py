import numpy as np
import pytest
from chain import MODES

from butter import _native
from butter.errors import ConfigError, KernelError, ShapeError
from butter.manifest import manifest
from butter.step import step_words

SPLITS, _ = manifest().step["splits"]


@pytest.fixture
def program(device):
    return _native.Program(device, 8)


def weights(device, program, values):
    memory = device.allocate(values.nbytes)
    memory.write(values)
    return program.buffer(memory, 0, values.nbytes, "f32")


def add(program, a, b, rows=1, n=64):
    out = program.activation(4 * rows * n, "f32")
    program.dispatch("add__f32", [a, b, out], dims=[rows, n])
    return out


def phases(program):
    return [phase for _, phase, _, _ in program.finish().listing()]


def test_independent_dispatches_share_a_phase(device, program):
    x = weights(device, program, np.ones(64, np.float32))
    a, b = add(program, x, x), add(program, x, x)
    c = add(program, a, b)
    add(program, c, x)
    assert phases(program) == [0, 0, 1, 2]


def test_writes_to_a_buffer_order_what_touches_the_same_range(device, program):
    memory = device.allocate(4 * 192)
    x = weights(device, program, np.ones(64, np.float32))
    parts = [program.buffer(memory, 256 * i, 256, "f32") for i in range(3)]
    program.dispatch("add__f32", [x, x, parts[0]], dims=[1, 64])
    program.dispatch("add__f32", [x, x, parts[1]], dims=[1, 64])  # another range: no hazard
    program.dispatch("add__f32", [x, parts[0], parts[2]], dims=[1, 64])  # read after write
    program.dispatch("add__f32", [x, x, parts[0]], dims=[1, 64])  # write after read
    program.dispatch("add__f32", [x, x, parts[0]], dims=[1, 64])  # write after write
    assert phases(program) == [0, 0, 1, 2, 3]


def test_the_pool_reuses_dead_activations_and_adds_no_phase(device, program):
    x = weights(device, program, np.ones(64, np.float32))
    h = add(program, x, x)
    for _ in range(50):
        h = add(program, h, x)
    plan = program.finish()
    assert plan.pool_nbytes == 2 * 256
    assert plan.phases == 51


def summed(device, n, value, keeps):
    """A replay of ((x + x) + x) + x, where to find the result, and the result."""
    program = _native.Program(device)
    x = weights(device, program, np.full(n, value, np.float32))
    total = add(program, add(program, x, x, n=n), x, n=n)
    if keeps:
        result = add(program, total, x, n=n)
        program.keep(result)
    else:
        result = device.allocate(4 * n)
        out = program.buffer(result, 0, 4 * n, "f32")
        program.dispatch("add__f32", [total, x, out], dims=[1, n])
    return program.finish().prepare("icb"), result, np.full(n, 4 * value, np.float32)


def test_plans_whose_steps_alternate_do_not_disturb_each_other(device):
    plans = [
        summed(device, n, n + k, keeps) for n in (64, 4096, 640) for k, keeps in enumerate((0, 1))
    ]
    for _ in range(3):
        tickets = [replay.submit(step_words()) for replay, _, _ in plans]
        for (replay, _, _), ticket in zip(plans, tickets, strict=True):
            replay.wait(ticket)
        for replay, result, want in plans:
            kept = isinstance(result, int)
            got = np.frombuffer(replay.read(result) if kept else result.read(), np.float32)
            np.testing.assert_array_equal(got, want)


def test_parallel_branches_do_not_share_memory(device, program):
    x = weights(device, program, np.arange(64, dtype=np.float32))
    branches = [add(program, x, x) for _ in range(5)]
    total = branches[0]
    for b in branches[1:]:
        total = add(program, total, b)
    program.keep(total)
    replay = program.finish().prepare("icb")
    replay.run(step_words())
    got = np.frombuffer(replay.read(total), np.float32)
    np.testing.assert_array_equal(got, np.arange(64, dtype=np.float32) * 10)


def test_random_programs_equal_numpy_in_every_mode(device):
    rng = np.random.default_rng(0)
    for _ in range(20):
        program = _native.Program(device)
        tensors = [weights(device, program, np.full(64, i, np.float32)) for i in range(3)]
        values = [float(i) for i in range(3)]
        kept = []
        for _ in range(40):
            i, j = rng.integers(max(0, len(values) - 9), len(values), 2)
            tensors.append(add(program, tensors[i], tensors[j]))
            values.append((values[i] + values[j]) % 2**20)
            program_keeps = rng.random() < 0.2 and values[-1] < 2**20
            if program_keeps:
                program.keep(tensors[-1])
                kept.append(len(values) - 1)
        plan = program.finish()
        for mode in MODES:
            replay = plan.prepare(mode)
            replay.run(step_words())
            for i in kept:
                got = np.frombuffer(replay.read(tensors[i]), np.float32)
                assert got.min() == got.max()
                assert got[0] % 2**20 == values[i]


@pytest.mark.parametrize("mode", MODES)
def test_a_dynamic_dim_follows_the_step(device, program, mode):
    x = weights(device, program, np.arange(8 * 64, dtype=np.float32))
    out = program.activation(4 * 8 * 64, "f32")
    program.dispatch("add__f32", [x, x, out], dims=[8, 64], dynamic={0: SPLITS})
    program.keep(out)
    plan = program.finish()
    replay = plan.prepare(mode)
    for rows in (8, 3, 0, 1, 8):
        replay.run(step_words(splits=8))
        before = np.frombuffer(replay.read(out), np.float32)
        assert before[-1] == 2 * 511
        replay.run(step_words(splits=rows))
    with pytest.raises(ShapeError, match="got 9, need at most 8"):
        replay.run(step_words(splits=9))
    bytes_all, flops_all = plan.cost()
    assert plan.cost(step_words(splits=2)) == (bytes_all // 4, flops_all // 4)


@pytest.mark.parametrize("mode", MODES)
def test_tokens_of_the_step_reach_the_kernel(device, mode):
    program = _native.Program(device, 5)
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    out = program.activation(4 * 5 * 4, "f32")
    rows, _ = manifest().step["rows"]
    program.dispatch(
        "gather__f32_f32",
        [weights(device, program, table), program.step_tokens(), out],
        dims=[10, 4, 5],
        dynamic={2: rows},
    )
    program.limit_tokens(10)
    program.keep(out)
    replay = program.finish().prepare(mode)
    for tokens in ([3, 1, 4, 1, 5], [9], [2, 6]):
        replay.run(step_words(rows=len(tokens)), tokens)
        got = np.frombuffer(replay.read(out), np.float32).reshape(5, 4)[: len(tokens)]
        np.testing.assert_array_equal(got, table[tokens])
    with pytest.raises(ShapeError, match="got 10, need 0..9"):
        replay.run(step_words(rows=1), [10])
    with pytest.raises(ShapeError, match="too many rows: got 6"):
        replay.run(step_words(rows=6), [0] * 6)
    with pytest.raises(ShapeError, match="wrong number of tokens: got 0, need 1"):
        replay.run(step_words(rows=1))


def test_three_steps_in_flight_end_in_order(device):
    program = _native.Program(device)
    ones = weights(device, program, np.ones(64, np.float32))
    memory = device.allocate(256)
    state = program.buffer(memory, 0, 256, "f32")
    once = add(program, state, ones)
    program.dispatch("add__f32", [once, weights(device, program, np.zeros(64, np.float32)), state],
                     dims=[1, 64])  # fmt: skip
    replay = program.finish().prepare("icb")
    tickets = [replay.submit(step_words()) for _ in range(100)]
    for ticket in tickets[-3:]:
        replay.wait(ticket)
    assert memory.array("f32", [64])[0] == 100
    with pytest.raises(ConfigError, match="unknown ticket"):
        replay.wait(tickets[0])
    assert replay.stats["submissions"] == 100


LARGE = 1 << 18


@pytest.mark.parametrize(("threads", "n", "barriers"), [(1, LARGE, 0), (2, LARGE, 2), (2, 64, 0)])
def test_barriers_are_the_phases_that_threads_share(threads, n, barriers):
    device = _native.open_device("cpu", threads=threads)
    program = _native.Program(device)
    x = weights(device, program, np.ones(n, np.float32))
    once = add(program, x, x, n=n)
    program.keep(add(program, once, once, n=n))
    replay = program.finish().prepare("icb")
    replay.run(step_words())
    assert replay.stats["barriers"] == barriers


def refuse(error, match, program, *args, **kwargs):
    with pytest.raises(error, match=match):
        program.dispatch(*args, **kwargs)


def test_wrong_dispatches_are_refused_when_recorded(device, program):
    x = weights(device, program, np.ones(64, np.float32))
    ints = program.activation(256, "i32")
    out = program.activation(256, "f32")
    refuse(KernelError, "Nearest: add__f32", program, "add__f3", [x, x, out], dims=[1, 64])
    refuse(ShapeError, "number of tensors: got 2, need 3", program, "add__f32", [x, x],
           dims=[1, 64])  # fmt: skip
    refuse(ShapeError, "number of dims: got 1, need 2", program, "add__f32", [x, x, out], dims=[1])
    refuse(ShapeError, "number of constants: got 1, need 0", program, "add__f32", [x, x, out], [1],
           [1, 64])  # fmt: skip
    refuse(ShapeError, "dtype: got i32, need f32", program, "add__f32", [x, ints, out],
           dims=[1, 64])  # fmt: skip
    refuse(ShapeError, "got 256 bytes, need 260 for rows=1, n=65", program, "add__f32",
           [x, x, out], dims=[1, 65])  # fmt: skip
    refuse(ShapeError, "overlaps 'x'", program, "add__f32", [out, x, out], dims=[1, 64])
    huge = [2**32 - 1, 2**32 - 1]
    refuse(ShapeError, "impossible extent", program, "add__f32", [x, x, out], dims=huge)
    refuse(ShapeError, "no earlier dispatch has written", program, "add__f32",
           [x, program.activation(256, "f32"), out], dims=[1, 64])  # fmt: skip
    refuse(ShapeError, "dynamic dim is unknown", program, "add__f32", [x, x, out], dims=[1, 64],
           dynamic={2: 1})  # fmt: skip
    refuse(ConfigError, "unknown tensor: got 99", program, "add__f32", [x, x, 99], dims=[1, 64])
    assert program.finish().dispatches == 0


def test_a_grid_beyond_the_limits_is_refused(device, program):
    empty = program.activation(0, "f32")
    refuse(ShapeError, "grid axis 1 is out of range: got 65536", program, "add__f32",
           [weights(device, program, np.ones(1, np.float32))] * 2 + [empty],
           dims=[65536, 0])  # fmt: skip


def test_a_constraint_is_named(device, program):
    kernel = next(k for k in device.kernels() if k.startswith("gather_q__f32"))
    entry = manifest().find("gather_q", {"out": "f32"}, {"bits": 4, "G": 32, "SYM": 0}, "f32")
    assert kernel and entry.dims
    sizes = {"vocab": 16, "n": 33, "rows": 1}
    tensors = [program.activation(1 << 16, p.dtype) for p in entry.params]
    with pytest.raises(ShapeError, match=r"n % (32|G) == 0.*n=33"):
        program.dispatch(entry.symbol, tensors, dims=[sizes[d] for d in entry.dims])


def test_ranges_outside_their_memory_are_refused(device, program):
    memory = device.allocate(64)
    with pytest.raises(ShapeError, match="got offset 32 and 64 bytes, need at most 64"):
        program.buffer(memory, 32, 64, "f32")
    with pytest.raises(ShapeError, match="view is outside its tensor"):
        program.view(program.buffer(memory, 0, 64, "f32"), 60, 8, "f32")
    with pytest.raises(ConfigError, match="need one of f32, f16"):
        program.activation(4, "f64")
    with pytest.raises(ConfigError, match="was not kept"):
        program.finish().prepare("eager").read(0)
    with pytest.raises(ConfigError, match="max_rows"):
        _native.Program(device, 0)


def test_a_step_limit_is_checked(device, program):
    word, _ = manifest().step["kv_len"]
    program.limit(word, 128)
    program.limit(word, 64)
    replay = program.finish().prepare("eager")
    replay.run(step_words(kv_len=64))
    with pytest.raises(ShapeError, match="got 65, need at most 64"):
        replay.run(step_words(kv_len=65))


def test_replays_of_one_plan_are_independent(device, program):
    x = weights(device, program, np.ones(64, np.float32))
    out = add(program, x, x)
    program.keep(out)
    plan = program.finish()
    replays = [plan.prepare(mode) for mode in MODES for _ in range(3)]
    for replay in replays:
        replay.run(step_words())
    assert {replay.read(out) for replay in replays} == {np.full(64, 2, np.float32).tobytes()}


def test_a_profile_times_each_dispatch(device, program):
    x = weights(device, program, np.ones(64, np.float32))
    add(program, add(program, x, x), x)
    replay = program.finish().prepare("icb")
    times = replay.profile(step_words())
    assert len(times) == 2
    assert all(t > 0 for t in times)

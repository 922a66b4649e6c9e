"""Programs over several sequences: a step block for each row."""

import numpy as np
import pytest
from chain import MODES, VOCAB
from chains import ROWS, SEEDS, STARTS, Chains, drain, words

from butter import DeviceError, _native
from butter.errors import ConfigError, ShapeError
from butter.manifest import manifest
from butter.step import step_words

SPLITS, _ = manifest().step["splits"]


@pytest.fixture(scope="module")
def chains():
    return Chains(_native.open_device("cpu", 2))


@pytest.mark.parametrize("mode", MODES)
def test_each_row_brings_what_it_brings_alone(chains, mode):
    chains.reset(STARTS)
    loop = chains.loop(mode)
    limits = [12, 5, 30]
    for row, seed in enumerate(SEEDS):
        loop.start(row, words(seed), 0, limits[row])
    brought, order = drain(loop)
    for row, seed in enumerate(SEEDS):
        assert brought[row] == chains.alone(STARTS[row], words(seed), limits[row])
        assert loop.reason(row) == "length"
    assert order == [1, 0, 2]


def test_threads_change_nothing():
    seen = set()
    for threads in (1, 2, 3):
        chains = Chains(_native.open_device("cpu", threads))
        chains.reset(STARTS)
        loop = chains.loop()
        for row, seed in enumerate(SEEDS):
            loop.start(row, words(seed), 0, 20)
        seen.add(str(drain(loop)))
    assert len(seen) == 1


@pytest.mark.parametrize("mode", MODES)
def test_an_idle_row_draws_nothing_and_changes_nothing(chains, mode):
    chains.reset(STARTS)
    loop = chains.loop(mode)
    loop.start(1, words(5), 0, 6)
    brought, order = drain(loop)
    assert list(brought) == order == [1]
    assert chains.next.array("i32", [ROWS])[[0, 2]].tolist() == [STARTS[0], STARTS[2]]
    counts = chains.counts.array("u32", [ROWS, VOCAB])
    assert counts.sum(axis=1).tolist() == [0, 6, 0]


def test_a_row_can_be_used_again_while_others_go_on(chains):
    chains.reset(STARTS)
    loop = chains.loop()
    for row, seed in enumerate(SEEDS):
        loop.start(row, words(seed), 0, 3 if row == 1 else 40)
    brought = {}

    def note(tokens, ended):
        for row, token in tokens:
            brought.setdefault(row, []).append(token)
        return ended

    while note(*loop.next()) != [1]:
        pass
    with pytest.raises(ConfigError, match="row 0 is still in use"):
        loop.start(0, words(), 0, 1)
    while loop.in_flight:
        note(*loop.take())
    chains.next.array("i32", [ROWS])[1] = 50
    first, brought[1] = brought[1], []
    loop.start(1, words(77), 0, 4)
    while loop.running:
        note(*loop.next())
    assert first == chains.alone(STARTS[1], words(5), 3)
    assert brought[1] == chains.alone(50, words(77), 4)
    assert brought[0] == chains.alone(STARTS[0], words(), 40)
    assert brought[2] == chains.alone(STARTS[2], words(9), 40)


def test_a_stop_token_is_no_token_and_ends_its_row_only(chains):
    alone = chains.alone(STARTS[0], words(), 20)
    at = next(i for i, t in enumerate(alone) if t not in alone[:i] and i >= 2)
    chains.reset(STARTS)
    loop = chains.loop()
    loop.start(0, words(), 0, 20, stop_tokens=[alone[at]])
    loop.start(2, words(9), 0, 20)
    brought, order = drain(loop)
    assert brought[0] == alone[:at]
    assert len(brought[2]) == 20
    assert (order, loop.reason(0), loop.reason(2)) == ([0, 2], "stop", "length")


def test_a_full_cache_ends_the_row(chains):
    chains.reset(STARTS)
    loop = chains.loop(max_position=13)
    loop.start(0, words(), 10, 50)
    loop.start(1, words(), 13, 50)
    assert loop.reason(1) == "context"
    brought, _ = drain(loop)
    assert (len(brought[0]), loop.reason(0), list(brought)) == (3, "context", [0])


def test_a_row_that_is_ended_brings_no_more(chains):
    chains.reset(STARTS)
    loop = chains.loop()
    for row, seed in enumerate(SEEDS):
        loop.start(row, words(seed), 0, 10)
    loop.next()
    loop.end(0)
    brought, _ = drain(loop)
    assert 0 not in brought
    assert (len(brought[1]), len(brought[2])) == (9, 9)
    assert loop.reason(0) == "cancelled"


def test_cancel_ends_all_rows(chains):
    chains.reset(STARTS)
    loop = chains.loop()
    for row in range(ROWS):
        loop.start(row, words(), 0, 10)
    loop.next()
    loop.cancel()
    assert loop.next() == ([], [0, 1, 2])
    assert (loop.running, loop.in_flight, loop.next()) == (0, 0, ([], []))


@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_the_device_ends_all_rows_and_the_next_run_works(chains, mode):
    chains.reset(STARTS)
    loop = chains.loop(mode)
    loop.start(0, words(), 0, 100)
    loop.start(1, words(5), 0, 100)
    loop.next()
    chains.device.inject_fault("the device caught fire")
    with pytest.raises(DeviceError, match="caught fire"):
        drain(loop)
    assert (loop.running, loop.in_flight, loop.reason(0), loop.reason(1)) == (
        0,
        0,
        "error",
        "error",
    )
    chains.reset(STARTS)
    loop.start(0, words(), 0, 8)
    assert drain(loop)[0][0] == chains.alone(STARTS[0], words(), 8)


def test_logits_without_a_number_raise(chains):
    chains.reset([7, VOCAB, 3])  # outside the table: its row of logits is NaN
    loop = chains.loop()
    for row in range(ROWS):
        loop.start(row, words(), 0, 5)
    with pytest.raises(DeviceError, match="every logit is NaN"):
        loop.next()


def test_dropping_a_loop_with_steps_in_flight_is_safe():
    for _ in range(10):
        chains = Chains(_native.open_device("cpu", 2))
        chains.reset(STARTS)
        loop = chains.loop()
        for row in range(ROWS):
            loop.start(row, words(), 0, 50)
        loop.next()
        del chains, loop


# -- programs --------------------------------------------------------------------------------------


def test_rows_share_phases_though_each_writes_its_step_block(chains):
    phases = [phase for _, phase, _, _ in chains.plan.listing()]
    assert phases == [0, *(stage for stage in range(1, 5) for _ in range(ROWS))]
    assert chains.plan.blocks == ROWS


@pytest.mark.parametrize("mode", MODES)
def test_a_dynamic_dim_follows_its_own_block(device, mode):
    p = _native.Program(device, 1, 2)
    memory = device.allocate(4 * 64)
    memory.write(np.ones(64, np.float32))
    x = p.buffer(memory, 0, 256, "f32")
    sums = [device.allocate(256) for _ in range(2)]
    for block, buffer in enumerate(sums):
        p.block(block)
        out = p.buffer(buffer, 0, 256, "f32")
        p.dispatch("add__f32", [x, x, out], dims=[8, 8], dynamic={0: SPLITS})
    plan = p.finish()
    replay = plan.prepare(mode)
    for first, second in ((8, 8), (3, 8), (3, 1), (0, 5), (8, 2), (8, 2), (8, 2)):
        for buffer in sums:
            buffer.write(np.zeros(64, np.float32))
        replay.run([*step_words(splits=first), *step_words(splits=second)])
        for rows, buffer in zip((first, second), sums, strict=True):
            want = np.zeros((8, 8), np.float32)
            want[:rows] = 2
            np.testing.assert_array_equal(buffer.array("f32", [8, 8]), want)
    with pytest.raises(ShapeError, match="got 9, need at most 8"):
        replay.run([*step_words(splits=1), *step_words(splits=9)])
    bytes_all, flops_all = plan.cost()
    half = [*step_words(splits=8), *step_words(splits=0)]
    assert plan.cost(half) == (bytes_all // 2, flops_all // 2)


@pytest.mark.parametrize("mode", MODES)
def test_each_block_has_its_own_tokens(device, mode):
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    memory = device.allocate(table.nbytes)
    memory.write(table)
    p = _native.Program(device, 2, 3)
    weights = p.buffer(memory, 0, table.nbytes, "f32")
    rows, _ = manifest().step["rows"]
    outs = []
    for block in range(3):
        p.block(block)
        outs.append(p.activation(32, "f32"))
        p.dispatch("gather__f32_f32", [weights, p.step_tokens(), outs[-1]], dims=[10, 4, 2],
                   dynamic={2: rows})  # fmt: skip
        p.keep(outs[-1])
    p.limit_tokens(10)
    replay = p.finish().prepare(mode)
    for tokens in ([[1, 2], [], [9]], [[0], [3, 4], [5, 6]]):
        header = [w for own in tokens for w in step_words(rows=len(own))]
        replay.run(header, [t for own in tokens for t in own])
        for own, out in zip(tokens, outs, strict=True):
            got = np.frombuffer(replay.read(out), np.float32).reshape(2, 4)[: len(own)]
            np.testing.assert_array_equal(got, table[own])
    with pytest.raises(ShapeError, match="wrong number of tokens: got 1, need 2"):
        replay.run([*step_words(rows=1), *step_words(rows=1), *step_words()], [1])


def test_a_limit_is_of_the_block_it_was_recorded_for(device):
    p = _native.Program(device, 1, 2)
    p.limit(SPLITS, 5)
    p.block(1)
    p.limit(SPLITS, 3)
    replay = p.finish().prepare("eager")
    replay.run([*step_words(splits=5), *step_words(splits=3)])
    with pytest.raises(ShapeError, match="got 4, need at most 3"):
        replay.run([*step_words(splits=5), *step_words(splits=4)])
    with pytest.raises(ShapeError, match="header words: got 64, need 128"):
        replay.run(step_words())


def test_wrong_blocks_are_refused(device, chains):
    with pytest.raises(ConfigError, match="blocks is out of range: got 0"):
        _native.Program(device, 1, 0)
    with pytest.raises(ConfigError, match="unknown step block: got 2, need below 2"):
        _native.Program(device, 1, 2).block(2)
    loop = chains.loop()
    for call in (lambda: loop.start(3, words(), 0, 1), lambda: loop.end(3), lambda: loop.reason(3)):
        with pytest.raises(ConfigError, match="unknown row: got 3, need below 3"):
            call()
    with pytest.raises(ShapeError, match="got 2, need 64"):
        loop.start(0, [1, 2], 0, 1)
    with pytest.raises(ConfigError, match="split_len 0"):
        _native.BatchLoop(chains.plan.prepare("icb"), 10, split_len=0)

import threading

import pytest
from chain import MODES, VOCAB, Chain, greedy_words, random_words

from butter import DeviceError, _native
from butter.errors import ConfigError, ShapeError

START = 7


@pytest.fixture(scope="module")
def chain():
    return Chain(_native.open_device("cpu", 2))


def loop_of(chain, mode="icb", stop=(), max_position=1000, **options):
    replay = chain.plan.prepare(mode)
    return _native.DecodeLoop(replay, list(stop), max_position, **options)


def begin(chain, loop, words=None, position=0, limit=20, draw=0):
    chain.reset(START)
    loop.start(words or greedy_words(), position, limit, draw)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_greedy_tokens_are_the_oracles(chain, mode, ahead):
    loop = loop_of(chain, mode, ahead=ahead)
    begin(chain, loop)
    assert list(loop) == chain.greedy(START, 20)
    assert (loop.reason, loop.position, loop.taken) == ("length", 20, 20)
    assert chain.steps_run() == 20


def test_random_tokens_are_equal_in_all_modes_and_thread_counts():
    seen = set()
    for threads in (1, 2, 3, 4):
        chain = Chain(_native.open_device("cpu", threads))
        for mode in MODES:
            for ahead in (True, False):
                loop = loop_of(chain, mode, ahead=ahead)
                begin(chain, loop, random_words(5), limit=40)
                seen.add(tuple(loop.run(100)))
                assert chain.steps_run() == 40
    assert len(seen) == 1
    assert len(set(seen.pop())) > 5


def test_stepping_equals_one_run(chain):
    loop = loop_of(chain)
    begin(chain, loop, random_words(1))
    whole = loop.run(20)
    begin(chain, loop, random_words(1), limit=8)
    first = loop.run(8)
    # The last token lies in the next-token buffer, so a second run goes on from there.
    loop.start(random_words(1), loop.position, 12, loop.taken)
    assert first + list(loop) == whole


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_token_ends_the_run_and_drops_the_step_ahead(chain, mode):
    tokens = chain.greedy(START, 20)
    at = next(i for i, t in enumerate(tokens) if t not in tokens[:i] and i >= 2)
    loop = loop_of(chain, mode, stop=[tokens[at]])
    begin(chain, loop, position=10)
    assert loop.run(50) == tokens[:at]
    assert (loop.reason, loop.stop_token) == ("stop", tokens[at])
    assert loop.position == 10 + at + 1
    assert loop.next() is None


def test_a_full_context_ends_the_run(chain):
    loop = loop_of(chain, max_position=13)
    begin(chain, loop, position=10)
    assert loop.run(50) == chain.greedy(START, 3)
    assert (loop.reason, loop.position) == ("context", 13)
    loop.start(greedy_words(), 13, 5)
    assert loop.next() is None
    assert loop.reason == "context"


def test_a_limit_of_zero_runs_nothing(chain):
    loop = loop_of(chain)
    begin(chain, loop, limit=0)
    assert list(loop) == []
    assert loop.reason == "length"
    assert chain.steps_run() == 0


def test_cancel_from_another_thread_ends_the_run(chain):
    loop = loop_of(chain, max_position=10**9)
    begin(chain, loop, limit=10**8)
    timer = threading.Timer(0.05, loop.cancel)
    timer.start()
    tokens = loop.run(10**8)
    assert loop.reason == "cancelled"
    assert 0 < len(tokens) == loop.position
    begin(chain, loop)
    assert loop.run(50) == chain.greedy(START, 20)


def test_another_thread_runs_python_while_the_loop_decodes(chain):
    loop = loop_of(chain, max_position=10**9)
    begin(chain, loop, limit=10**8)
    worker = threading.Thread(target=loop.run, args=(10**8,))
    worker.start()
    counted = sum(1 for _ in range(100_000))
    loop.cancel()
    worker.join(timeout=10)
    assert counted == 100_000
    assert not worker.is_alive()


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_the_device_is_raised_and_the_next_run_works(chain, mode, ahead):
    loop = loop_of(chain, mode, ahead=ahead)
    begin(chain, loop, limit=1000)
    loop.next()
    chain.device.inject_fault("the device caught fire")
    with pytest.raises(DeviceError, match="caught fire"):
        loop.run(1000)
    assert loop.reason == "error"
    assert loop.next() is None
    begin(chain, loop)
    assert loop.run(50) == chain.greedy(START, 20)


def test_logits_without_a_number_raise(chain):
    broken = Chain(chain.device)
    loop = loop_of(broken)
    broken.reset(VOCAB)  # outside the table: its row of logits is NaN
    loop.start(greedy_words(), 0, 5)
    with pytest.raises(DeviceError, match="every logit is NaN"):
        loop.next()


def test_a_running_loop_cannot_be_started_again(chain):
    loop = loop_of(chain)
    begin(chain, loop)
    with pytest.raises(ConfigError, match="has not ended"):
        loop.start(greedy_words(), 0, 5)
    loop.cancel()
    assert loop.next() is None


def test_wrong_arguments_are_refused(chain):
    loop = loop_of(chain)
    with pytest.raises(ShapeError, match="got 3, need 64"):
        loop.start([0, 0, 0], 0, 5)
    with pytest.raises(ConfigError, match="split_len 0"):
        loop_of(chain, split_len=0)
    with pytest.raises(ConfigError, match="need eager, argument_buffers or icb"):
        chain.plan.prepare("fast")


def test_dropping_a_loop_with_a_step_in_flight_is_safe():
    for _ in range(20):
        chain = Chain(_native.open_device("cpu", 2))
        loop = loop_of(chain)
        begin(chain, loop)
        loop.next()
        del chain, loop

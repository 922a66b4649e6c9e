"""Sessions: what is kept from call to call."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest

import butter
from butter.errors import ConfigError, DeviceError
from support.tiny import checkpoint

PLAIN = {"temperature": 0, "ignore_eos": True, "max_tokens": 6}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = checkpoint("f32", tmp_path_factory.mktemp("tiny"))
    with butter.Model.load(path, device="cpu") as model:
        yield model


def test_tokens_are_all_that_was_read_and_generated(model):
    with model.session() as session:
        first = session.generate([1, 5, 9], **PLAIN).tokens
        assert session.tokens == [1, 5, 9, *first]
        second = session.generate([7], **PLAIN).tokens
        assert session.tokens == [1, 5, 9, *first, 7, *second]


def test_text_goes_on_without_another_bos(model):
    with model.session() as session:
        session.generate("the capital", chat=False, **PLAIN)
        before = session.tokens
        session.generate(" of France", chat=False, **PLAIN)
        added = session.tokens[len(before) :]
    assert added[: len(added) - 6] == model.tokenizer.encode(" of France", add_bos=False)


def test_a_conversation_grows_and_is_read_once(model):
    with model.session() as session:
        answer = session.generate("hello", **PLAIN).text
        result = session.generate("and now?", **PLAIN)
        assert session.messages == [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "and now?"},
            {"role": "assistant", "content": result.text},
        ]
    assert result.stats.reused_tokens > 0
    cold = model.generate(session.messages[:-1], **PLAIN)
    assert cold.tokens == result.tokens


def test_given_messages_replace_the_conversation(model):
    with model.session() as session:
        session.generate("hello", **PLAIN)
        edited = [{"role": "user", "content": "other words"}]
        result = session.generate(edited, **PLAIN)
        assert session.messages == [*edited, {"role": "assistant", "content": result.text}]
    assert result.tokens == model.generate(edited, **PLAIN).tokens


def test_a_session_begins_with_given_messages(model):
    system = [{"role": "system", "content": "be brief"}]
    with model.session(system) as session:
        result = session.generate("hello", **PLAIN)
    whole = model.generate([*system, {"role": "user", "content": "hello"}], **PLAIN)
    assert result.tokens == whole.tokens


@pytest.mark.parametrize("length", [0, 1, 5, 8, 9])
def test_a_truncated_session_equals_one_that_never_went_on(model, length):
    prompt = [1, 5, 9, 4]
    with model.session() as session:
        everything = [*prompt, *session.generate(prompt, **PLAIN).tokens]
        session.truncate(length)
        assert session.tokens == everything[:length]
        got = session.generate([8, 8], **PLAIN).tokens
    assert got == model.generate([*everything[:length], 8, 8], **PLAIN).tokens


@pytest.mark.parametrize("length", [-1, 100, True])
def test_a_wrong_length_is_refused(model, length):
    with model.session() as session:
        session.generate([1, 2, 3], **PLAIN)
        with pytest.raises(ConfigError, match="need 0 to 9"):
            session.truncate(length)


def test_a_cancelled_stream_leaves_a_session_that_goes_on(model):
    with model.session() as session:
        stream = session.stream([1, 5, 9], **{**PLAIN, "max_tokens": 50})
        next(stream)
        stream.close()
        held = session.tokens
        got = session.generate([4], **PLAIN).tokens
    assert held[:3] == [1, 5, 9]
    assert got == model.generate([*held, 4], **PLAIN).tokens


def test_the_first_session_has_the_programs_that_are_warm(tmp_path):
    with butter.Model.load(checkpoint("f32", tmp_path), device="cpu") as model:
        warm = model._spare
        first, second = model.session(), model.session()
        answers = [s.generate([1, 5, 9], **PLAIN).tokens for s in (first, second)]
        assert first._cached is warm and second._cached is not warm
        assert answers == [model.generate([1, 5, 9], **PLAIN).tokens] * 2


def test_sessions_do_not_disturb_each_other_or_the_model(model):
    alone = [model.generate([1, n], **PLAIN).tokens for n in (5, 6)]
    with model.session() as one, model.session() as two:
        streams = [one.stream([1, 5], **PLAIN), two.stream([1, 6], **PLAIN)]
        for _ in zip(*streams, strict=False):
            model.generate([1, 7], **PLAIN)
        for stream in streams:
            list(stream)
    assert [s.result.tokens for s in streams] == alone


def test_a_full_session_is_refused_with_numbers_and_can_be_truncated(model):
    room = model.max_context
    with model.session() as session:
        session.logits([1] * (room - 1))
        with pytest.raises(ConfigError, match=f"holds {room}"):
            session.generate([1, 2], **PLAIN)
        session.truncate(4)
        assert len(session.generate([1, 2], **PLAIN).tokens) == 6


def test_a_failed_request_leaves_the_session_as_it_was(model):
    fail = partial(model.device.inject_fault, "test fault")

    def stream_and_fail(session, prompt):
        stream = session.stream(prompt, **PLAIN)
        next(stream)
        fail()
        list(stream)

    def generate_and_fail(session, prompt):
        fail()  # of the step that reads the prompt
        session.generate(prompt, **PLAIN)

    def score_and_fail(session, prompt):
        fail()
        session.logits([4, 4])

    with model.session() as session, model.session() as spared:
        for prompt in ("hello", "and now?"):
            for ask in (generate_and_fail, stream_and_fail, score_and_fail):
                held, messages = session.tokens, session.messages
                with pytest.raises(DeviceError, match="test fault"):
                    ask(session, prompt)
                assert (session.tokens, session.messages) == (held, messages)
            result = session.generate(prompt, **PLAIN)
            assert result.tokens == spared.generate(prompt, **PLAIN).tokens
            assert (session.tokens, session.messages) == (spared.tokens, spared.messages)


def test_logits_after_a_failed_request_are_those_of_all_that_is_held(model):
    with model.session() as session:
        session.generate([1, 5, 9], **PLAIN)
        held = session.tokens
        for ask in (session.generate, session.logits):
            model.device.inject_fault("test fault")
            with pytest.raises(DeviceError):
                ask([7, 7, 7])
        got = session.logits([2])
    with model.session() as other:
        want = other.logits([*held, 2])[-1:]
    assert np.abs(got - want).max() < 1e-4


def test_a_dropped_session_takes_its_cache_with_it(model):
    session = model.session()
    session.generate([1, 2, 3], **PLAIN)
    cache = weakref.ref(session._own())
    del session
    gc.collect()
    assert cache() is None


def test_a_closed_session_is_refused(model):
    session = model.session()
    session.close()
    with pytest.raises(ConfigError, match=r"session.* closed"):
        session.generate([1])


@pytest.mark.parametrize("length", [1.5, "a", None, True])
def test_a_length_is_a_whole_number(model, length):
    with model.session() as session:
        session.generate([1, 2, 3], temperature=0, max_tokens=2)
        with pytest.raises(ConfigError, match="truncate: got"):
            session.truncate(length)


@pytest.mark.parametrize("messages", [5, None, "abc", [1]])
def test_a_session_begins_with_messages_or_nothing(model, messages):
    with pytest.raises(ConfigError, match="messages: got"):
        model.session(messages)

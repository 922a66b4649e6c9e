"""The model: loading, generating, streaming, and what it refuses."""

import gc
import threading

import numpy as np
import pytest

import butter
from butter.errors import ButterError, ConfigError, DeviceError, UnsupportedError
from support.tiny import checkpoint

PROMPT = [1, 5, 9, 2, 6, 5, 3, 5, 8]
PLAIN = {"temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return checkpoint("f32", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(path):
    with butter.Model.load(path, device="cpu") as model:
        yield model


# -- loading ---------------------------------------------------------------------------------------


def test_events_lead_to_ready_with_progress(path):
    events = []
    butter.Model.load(path, device="cpu", on_event=events.append).close()
    states = list(dict.fromkeys(e.state for e in events))
    assert states == ["loading", "loaded", "ready", "closed"]
    progress = [e.progress for e in events if e.progress is not None]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_a_failed_load_ends_in_failed_with_its_error(tmp_path):
    events = []
    with pytest.raises(ConfigError) as caught:
        butter.Model.load(tmp_path / "nothing", on_event=events.append)
    assert events[-1].state == "failed"
    assert events[-1].error is caught.value


def test_a_listener_that_raises_does_not_stop_the_load(path):
    def listener(event):
        raise RuntimeError("broken bar")

    with butter.Model.load(path, device="cpu", on_event=listener) as model:
        assert model.state == "ready"


@pytest.mark.parametrize(
    "options,error",
    [
        ({"dispatch": "fast"}, ConfigError),
        ({"device": "tpu"}, ButterError),
        ({"device": "metal"}, DeviceError),
        ({"dtype": "bf16"}, UnsupportedError),
        ({"threads": 0}, ConfigError),
        ({"threads": "two"}, ConfigError),
        ({"threads": 10**6}, ConfigError),
        ({"affinity": "0-"}, ConfigError),
        ({"affinity": [0, 0], "device": "cpu"}, (ConfigError, UnsupportedError)),
        ({"max_context": 0}, ConfigError),
        ({"max_context": 1.5}, ConfigError),
        ({"max_context": 1 << 40}, ConfigError),
        ({"device": None}, ConfigError),
        ({"device": 5}, ConfigError),
        ({"device": "\udc80"}, ConfigError),
        ({"on_event": 3}, ConfigError),
        ({"exact": "yes"}, ConfigError),
        ({"offline": "x"}, ConfigError),
        ({"prewarm": "x"}, ConfigError),
        ({"revision": 3}, ConfigError),
    ],
)
def test_an_illegal_option_is_refused(path, options, error):
    with pytest.raises(error, match="got|not available"):
        butter.Model.load(path, **{"device": "cpu", **options})


@pytest.mark.parametrize("name", [None, 5, "a" * 300, "a" * 10000])
def test_an_illegal_name_is_refused(name):
    with pytest.raises(ConfigError, match=r"\[hub\]"):
        butter.Model.load(name, device="cpu")


def test_one_token_of_context_is_enough_for_one_token(path):
    with butter.Model.load(path, device="cpu", max_context=1) as model:
        result = model.generate([3], **PLAIN)
    assert len(result.tokens) == 1


@pytest.mark.parametrize(
    "prompt,message",
    [
        (b"hi", "Decode it"),
        ([True], "need text, messages"),
        ({"role": "user", "content": "x"}, r"Write \[message\]"),
        ([{"role": "user", "content": "x"}, {"role": "user"}], r"messages\[1\]"),
        ([{"role": "user", "content": None}], r"messages\[0\]"),
        ("\udc80", "lone surrogate"),
    ],
)
def test_an_illegal_prompt_is_refused_with_what_is_wrong(model, prompt, message):
    with pytest.raises(ConfigError, match=message):
        model.generate(prompt, max_tokens=1)


def test_special_tokens_in_a_message_are_text(model):
    prompter = model._need().prompter
    marker = model.tokenizer.special_texts[-1]

    def count(text, role="user"):
        ids = prompter.render([{"role": role, "content": text}])
        return sum(i in model.tokenizer.special_ids for i in ids)

    assert count(f"a{marker}b{marker}") == count("ab")
    assert count([{"type": "text", "text": f"a{marker}"}]) == count("a")
    ids = prompter.render([{"role": "user", "content": f"a{marker}b"}])
    assert f"a{marker}b" in model.tokenizer.decode(ids)


def test_prewarm_changes_no_result(path, model):
    with butter.Model.load(path, device="cpu", prewarm=False) as cold:
        got = cold.generate(PROMPT, max_tokens=8, **PLAIN)
    assert got.tokens == model.generate(PROMPT, max_tokens=8, **PLAIN).tokens


def test_the_functions_are_the_methods(path):
    with butter.load(path, device="cpu") as model:
        result = butter.generate(model, PROMPT, max_tokens=4, **PLAIN)
        pieces = butter.stream_generate(model, PROMPT, max_tokens=4, **PLAIN)
        assert "".join(pieces) == result.text


# -- generating ------------------------------------------------------------------------------------


def test_a_result_says_what_was_done(model):
    result = model.generate(PROMPT, max_tokens=6, **PLAIN)
    stats = result.stats
    assert len(result.tokens) == 6
    assert result.finish_reason == "length"
    assert result.text == model.tokenizer.detokenizer(continues=True).push_all(result.tokens)
    assert (stats.prompt_tokens, stats.generated_tokens, stats.reused_tokens) == (9, 6, 0)
    assert stats.first_token_s > 0
    assert stats.decode_tokens_per_s > 0
    assert stats.encode_us > 0
    assert stats.dispatches > stats.phases > 0
    assert stats.bytes_per_token > 0
    assert stats.as_dict()["decode_gb_per_s"] > 0


def test_eos_ends_the_text_and_is_no_part_of_it(model):
    eos = model.defaults.stop_ids[0]
    result = model.generate(PROMPT, temperature=0, logit_bias={eos: 100.0})
    assert result.finish_reason == "stop"
    assert result.tokens == []
    assert result.text == ""


def test_a_stop_string_ends_the_text_before_it(model):
    whole = model.generate(PROMPT, max_tokens=30, **PLAIN)
    stop = whole.text[10:13]
    result = model.generate(PROMPT, max_tokens=30, stop=stop, **PLAIN)
    assert result.finish_reason == "stop"
    assert result.text == whole.text[: whole.text.index(stop)]


def test_pieces_join_to_the_text_and_hold_whole_characters(model):
    for seed in range(5):
        options = {"temperature": 2.0, "seed": seed, "max_tokens": 40, "ignore_eos": True}
        stream = model.stream(PROMPT, **options)
        pieces = list(stream)
        assert all(isinstance(p, str) and p for p in pieces)
        assert "".join(pieces) == stream.result.text
        tokens = [t for p in pieces for t in p.tokens]
        assert tokens == stream.result.tokens[: len(tokens)]
        assert stream.result.text == model.generate(PROMPT, **options).text


def test_text_and_messages_are_prompts_too(model):
    message = [{"role": "user", "content": "hi"}]
    chat = model.generate("hi", max_tokens=4, **PLAIN)
    assert chat.tokens == model.generate(message, max_tokens=4, **PLAIN).tokens
    raw = model.generate("hi", chat=False, max_tokens=4, **PLAIN)
    ids = model.tokenizer.encode("hi")
    assert raw.tokens == model.generate(ids, max_tokens=4, **PLAIN).tokens
    assert raw.stats.prompt_tokens < chat.stats.prompt_tokens


@pytest.mark.parametrize(
    "prompt,options",
    [
        ([], {}),
        ("", {"chat": False}),
        ([1, 2, 10**6], {}),
        ([1, -1], {}),
        ([1, 2.5], {}),
        ([1, "x"], {}),
        (None, {}),
        (7, {}),
        ([1, 2], {"chat": True}),
        ([{"role": "user", "content": "x"}], {"chat": False}),
        ([1], {"temperature": -1}),
        ([1], {"no_such_option": 1}),
        ([1], {"max_tokens": 0}),
        ([1], {"logit_bias": {10**6: 1.0}}),
    ],
)
def test_an_illegal_request_is_refused_at_once(model, prompt, options):
    with pytest.raises(ConfigError, match="got|unknown"):
        model.stream(prompt, **options)


def test_a_prompt_that_does_not_fit_is_refused_with_numbers(path):
    with butter.Model.load(path, device="cpu", max_context=16) as model:
        with pytest.raises(ConfigError, match="17 tokens, the context holds 16"):
            model.generate([1] * 17)
        with pytest.raises(ConfigError, match="17 tokens"):
            model.logits([1] * 17)
        assert len(model.generate([1] * 16, **PLAIN).tokens) == 1


def test_a_full_context_ends_the_text(path):
    with butter.Model.load(path, device="cpu", max_context=16) as model:
        result = model.generate(PROMPT, **PLAIN)
    assert result.finish_reason == "context"
    assert len(result.tokens) == 16 - len(PROMPT) + 1


def test_logits_have_a_row_per_token(model):
    logits = model.logits(PROMPT)
    assert logits.shape == (len(PROMPT), model.config.vocab_size)
    assert logits.dtype == np.float32
    assert np.array_equal(model.logits(np.array(PROMPT)), logits)


# -- threads, streams and closing ------------------------------------------------------------------


def test_a_second_request_during_a_stream_is_refused_in_its_thread(model):
    stream = model.stream(PROMPT, max_tokens=8, **PLAIN)
    next(stream)
    with pytest.raises(ConfigError, match="not finished"):
        model.generate(PROMPT, max_tokens=1)
    with pytest.raises(ConfigError, match="not finished"):
        _ = stream.result
    stream.close()
    assert stream.result.finish_reason == "cancelled"
    assert model.generate(PROMPT, max_tokens=1, **PLAIN).tokens


def test_a_dropped_stream_frees_the_model(model):
    for _ in model.stream(PROMPT, max_tokens=50, **PLAIN):
        break
    gc.collect()
    assert model.generate(PROMPT, max_tokens=1, **PLAIN).tokens


def test_threads_queue_and_get_their_own_results(model):
    expected = {n: model.generate([1, n], max_tokens=12, **PLAIN).tokens for n in range(3, 11)}
    got, errors = {}, []

    def work(n):
        try:
            got[n] = model.generate([1, n], max_tokens=12, **PLAIN).tokens
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert got == expected


def test_calls_after_close_are_refused(path):
    model = butter.Model.load(path, device="cpu")
    session = model.session()
    model.close()
    model.close()
    for call in (
        lambda: model.generate(PROMPT),
        lambda: model.logits(PROMPT),
        lambda: model.session(),
        lambda: session.generate(PROMPT),
        lambda: model.tokenizer,
    ):
        with pytest.raises(ConfigError, match="closed"):
            call()
    assert model.state == "closed"


def test_a_stream_that_closing_cut_says_so(path):
    model = butter.Model.load(path, device="cpu")
    stream = model.stream(PROMPT, max_tokens=200, **PLAIN)
    next(stream)
    model.close()
    with pytest.raises(ConfigError, match="closed during this request"):
        list(stream)
    assert stream.result.finish_reason == "cancelled"


def test_a_device_error_reaches_the_caller_and_the_next_request_works(model):
    expected = model.generate(PROMPT, max_tokens=8, **PLAIN).tokens
    model.device.inject_fault("test fault")
    with pytest.raises(DeviceError, match="test fault"):
        model.generate(PROMPT, max_tokens=8, **PLAIN)
    assert model.generate(PROMPT, max_tokens=8, **PLAIN).tokens == expected


# -- the public surface ----------------------------------------------------------------------------


def test_the_public_names_are_these():
    assert set(butter.__all__) == {
        "BatchStats", "ButterError", "ConfigError", "DeviceError", "Event", "FileFormatError",
        "KernelError", "Model", "OutOfMemory", "Piece", "Result", "Results", "SamplingParams",
        "Session", "ShapeError", "State", "Stats", "UnsupportedError", "WeightError",
        "__version__", "convert", "generate", "load", "stream_generate",
    }  # fmt: skip
    assert all(hasattr(butter, name) for name in butter.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = butter.nothing


@pytest.mark.parametrize("chat", [5, "no", 0])
def test_chat_is_true_false_or_none(model, chat):
    with pytest.raises(ConfigError, match="chat: got .*, need True, False or None"):
        model.generate("hi", chat=chat)

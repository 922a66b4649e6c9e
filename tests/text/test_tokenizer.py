"""Token ids equal those of the libraries that made the vocabularies; hostile files are refused."""

import contextlib
import json

import numpy as np
import pytest

from butter.errors import ButterError, ConfigError, FileFormatError, UnsupportedError
from butter.hub import ModelFiles
from butter.text.pretokenizers import PRE_TOKENIZERS
from butter.text.tokenizer import Tokenizer
from text import smollm2
from text.tokenizer_cases import RECORDED
from text.vocabularies import (
    SPM_RECORD,
    bytes_metadata,
    bytes_tokenizer,
    smollm2_tokenizer,
    spm_metadata,
    spm_tokenizer,
)

CASES = json.loads(RECORDED.read_text())


def test_smollm2_ids_equal_the_record():
    tokenizer = smollm2_tokenizer()
    wrong = [(text, tokenizer.encode(text), ids) for text, ids in CASES]
    assert [w for w in wrong if w[1] != w[2]] == []


def test_smollm2_text_comes_back_exactly():
    tokenizer = smollm2_tokenizer()
    assert [text for text, ids in CASES if tokenizer.decode(ids) != text] == []


@pytest.mark.oracle
def test_smollm2_ids_equal_the_live_reference(monkeypatch):
    """Transformers' GGUF reader leaves out this vocabulary's digit split; put it in."""
    transformers = pytest.importorskip("transformers")
    from pathlib import Path

    from tokenizers import pre_tokenizers

    from butter import hub

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path = Path(hub.aliases()["smollm2"])
    reference = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    reference.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    assert [text for text, ids in CASES if reference.encode(text) != ids] == []


def test_sentencepiece_ids_equal_the_record():
    tokenizer = spm_tokenizer()
    wrong = [(t, tokenizer.encode(t, add_bos=False), ids) for t, ids in SPM_RECORD["cases"]]
    assert [w for w in wrong if w[1] != w[2]] == []
    assert [t for t, ids in SPM_RECORD["cases"] if tokenizer.decode(ids) != t] == []


def test_smollm2_special_tokens():
    tokenizer = smollm2_tokenizer()
    assert (tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id) == (49152, 1, 2)
    assert tokenizer.eos_ids == (2, 0)  # <|im_end|>, and <|endoftext|> of the base model
    assert tokenizer.special_tokens["bos_token"] == "<|im_start|>"
    assert tokenizer.special_ids == frozenset(range(17))
    assert tokenizer.pieces[1] == b"<|im_start|>"


def test_special_tokens_in_text_can_be_read_as_characters():
    tokenizer = smollm2_tokenizer()
    text = "<|im_start|>hi<|im_end|>"
    plain = tokenizer.encode(text, special=False)
    assert tokenizer.encode(text)[0] == 1 and not set(plain) & tokenizer.special_ids
    assert tokenizer.decode(plain) == text
    assert tokenizer.encode(text)[0] == 1  # the setting does not stick


def test_special_tokens_can_be_left_out_of_text():
    tokenizer = smollm2_tokenizer()
    ids = tokenizer.encode("<|im_start|>hi<|im_end|>")
    assert tokenizer.decode(ids, skip_special=True) == "hi"


def test_bos_is_added_as_the_model_says():
    spm = spm_tokenizer()  # a SentencePiece file that says nothing adds BOS
    assert spm.encode("the")[0] == 1 and spm.encode("the", add_bos=False)[0] != 1
    plain = bytes_tokenizer()
    assert plain.encode("x")[0] != 0 and plain.encode("x", add_bos=True)[0] == 0
    flags = {"tokenizer.ggml.add_bos_token": np.bool_(True), "tokenizer.ggml.add_eos_token": True}
    both = Tokenizer.from_gguf({**bytes_metadata(), **flags})
    ids = both.encode("x")
    assert (ids[0], ids[-1], len(ids)) == (0, 1, 3)
    assert both.encode("x", add_bos=True)[-1] != 1
    llama3 = Tokenizer.from_gguf(bytes_metadata("llama-bpe"))
    assert llama3.encode("x")[0] == 0


def test_a_second_bos_is_said(caplog):
    assert spm_tokenizer().encode("<s>the")[:2] == [1, 1]
    assert "already starts with BOS" in caplog.text


def test_adding_a_bos_that_does_not_exist_is_refused():
    metadata = {k: v for k, v in bytes_metadata().items() if "bos" not in k}
    with pytest.raises(ConfigError, match="no BOS"):
        Tokenizer.from_gguf(metadata).encode("x", add_bos=True)


def test_added_tokens_that_are_not_special_stay_whole():
    tokenizer = bytes_tokenizer()
    assert tokenizer.encode("a<think>b")[1] == 2
    assert tokenizer.decode([2], skip_special=True) == "<think>"


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_pretokenizer_keeps_all_text(pre):
    tokenizer = Tokenizer.from_gguf(bytes_metadata(pre))
    for text, _ in CASES[::4]:
        assert tokenizer.decode(tokenizer.encode(text, add_bos=False)) == text


def words(pre, text):
    backend = Tokenizer.from_gguf(bytes_metadata(pre))._backend
    return [text[a:b] for _, (a, b) in backend.pre_tokenizer.pre_tokenize_str(text)]


LINE = "I'm 12345   HelloWorld!!\n\nx"
CUTS = {
    "gpt-2": "I|'m| 12345|  | HelloWorld|!!|\n|\n|x",
    "smollm": "I|'m| |1|2|3|4|5|  | HelloWorld|!!|\n|\n|x",
    "llama-bpe": "I|'m| |123|45|  | HelloWorld|!!\n\n|x",
    "qwen2": "I|'m| |1|2|3|4|5|  | HelloWorld|!!\n\n|x",
    "gpt-4o": "I'm| |123|45|  | Hello|World|!!\n\n|x",
    "tekken": "I|'m| |1|2|3|4|5|  | Hello|World|!!\n\n|x",
    "default": "I|'|m| |123|45|  | HelloWorld|!!|\n|\n|x",
}


@pytest.mark.parametrize("pre", CUTS)
def test_words_are_cut_as_the_vocabulary_was_trained(pre):
    assert "|".join(words(pre, LINE)) == CUTS[pre]


def test_words_that_are_tokens_are_taken_whole():
    metadata = bytes_metadata("llama-bpe")
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"], "xyz"]
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"], 1]
    tokenizer = Tokenizer.from_gguf(metadata)
    assert tokenizer.encode("xyz", add_bos=False) == [len(metadata["tokenizer.ggml.tokens"]) - 1]


@pytest.mark.parametrize("pre", ["grok-9", None, 3, "", ["gpt-2"]])
def test_an_unknown_pretokenizer_is_refused_by_name(pre):
    with pytest.raises(UnsupportedError, match="tokenizer.ggml.pre.*smollm"):
        Tokenizer.from_gguf({**bytes_metadata(), "tokenizer.ggml.pre": pre})


@pytest.mark.parametrize("model", ["bert", "t5", None, 7])
def test_an_unknown_model_is_refused_by_name(model):
    with pytest.raises(UnsupportedError, match="tokenizer.ggml.model.*gpt2, llama"):
        Tokenizer.from_gguf({**bytes_metadata(), "tokenizer.ggml.model": model})


HOSTILE = {
    "tokens": [None, [], "abc", ["a", 1], ["\udcff"]],
    "merges": [None, ["a"], ["a b c"], ["zz zz"], [1]],
    "token_type": [[1], "x", [[1]] * 267],
    "bos_token_id": [-1, 10**9],
    "eos_token_id": ["2", 1.0, True],
    "eot_token_id": [10**9],
    "add_bos_token": ["yes", 1],
}


@pytest.mark.parametrize(
    "key,value",
    [(k, v) for k, values in HOSTILE.items() for v in values],
    ids=lambda v: repr(v)[:20],
)
def test_hostile_metadata_is_a_format_error(key, value):
    with pytest.raises(FileFormatError, match=r"\[tokenizer\]"):
        Tokenizer.from_gguf({**bytes_metadata(), f"tokenizer.ggml.{key}": value})


@pytest.mark.parametrize("scores", [None, [], [1.0], "x", [float("nan")] * 440, [{}] * 440])
def test_hostile_scores_are_a_format_error(scores):
    with pytest.raises(FileFormatError, match="scores"):
        Tokenizer.from_gguf({**spm_metadata(), "tokenizer.ggml.scores": scores})


def test_numpy_arrays_are_read_like_lists():
    metadata = spm_metadata()
    for key in ("scores", "token_type"):
        metadata[f"tokenizer.ggml.{key}"] = np.array(metadata[f"tokenizer.ggml.{key}"])
    metadata["tokenizer.ggml.bos_token_id"] = np.uint32(1)
    text = "the cat"
    assert Tokenizer.from_gguf(metadata).encode(text) == spm_tokenizer().encode(text)


def test_end_tokens_of_a_turn_are_found():
    metadata = bytes_metadata()
    tokens = metadata["tokenizer.ggml.tokens"]
    names = ["<|eot_id|>", "<|end|>", "not special"]
    metadata["tokenizer.ggml.tokens"] = [*tokens, *names]
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"], 3, 3, 1]
    n = len(tokens)
    assert Tokenizer.from_gguf(metadata).eos_ids == (1, n, n + 1)
    metadata["tokenizer.ggml.tokens"] = [*tokens, "<|return|>", "<|end|>", "x"]
    assert Tokenizer.from_gguf(metadata).eos_ids == (1, n)  # <|end|> goes on with another message


@pytest.mark.parametrize("text", [None, b"x", 3, ["a"], "\ud800"])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ConfigError):
        bytes_tokenizer().encode(text)


# --- tokenizer.json ---


def saved(tmp_path, config=None, names=None):
    bytes_tokenizer()._backend.save(str(tmp_path / "tokenizer.json"))
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if names is not None:
        (tmp_path / "special_tokens_map.json").write_text(json.dumps(names))
    return ModelFiles("folder", tmp_path, (), "test")


def test_a_tokenizer_json_reads_like_its_gguf(tmp_path):
    files = saved(tmp_path, {"eos_token": {"content": "<|im_end|>"}, "bos_token": None})
    tokenizer = Tokenizer.from_files(files)
    for text, _ in CASES[::3]:
        assert tokenizer.encode(text) == bytes_tokenizer().encode(text)
    assert tokenizer.eos_ids == (1,) and tokenizer.bos_id is None


@pytest.mark.parametrize(
    "normalizer,is_legal",
    [
        ([("a", "a" * 1000)], False),
        ([("a", "a" * 9), ("a", "a" * 9)], False),
        ([("a", "a" * 9), ("a", "")], True),
        ([(" ", "\u2581"), ("``", '"')], True),
    ],
)
def test_a_normalizer_may_not_blow_texts_up(tmp_path, normalizer, is_legal):
    files = saved(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    parts = [{"type": "Replace", "pattern": {"String": a}, "content": b} for a, b in normalizer]
    data["normalizer"] = {"type": "Sequence", "normalizers": parts}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    if is_legal:
        Tokenizer.from_files(files)
        return
    with pytest.raises(FileFormatError, match="times as long, need at most 64"):
        Tokenizer.from_files(files)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_link_to_nowhere_is_not_taken_for_no_file(tmp_path, name):
    files = saved(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "gone")
    with pytest.raises(FileFormatError, match="is no file"):
        Tokenizer.from_files(files)


def test_the_flags_of_tokenizer_config_add_bos(tmp_path):
    config = {"bos_token": "<s>", "add_bos_token": True}
    tokenizer = Tokenizer.from_files(saved(tmp_path, config))
    assert tokenizer.encode("x")[0] == 0 and tokenizer.encode("x", add_bos=False)[0] != 0


def test_the_post_processor_adds_bos(tmp_path):
    from tokenizers import Tokenizer as Backend
    from tokenizers.processors import TemplateProcessing

    files = saved(tmp_path, names={"bos_token": "<s>"})
    backend = Backend.from_file(str(tmp_path / "tokenizer.json"))
    backend.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    backend.enable_truncation(2)
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_files(files)
    assert tokenizer.encode("abcd")[0] == 0 and len(tokenizer.encode("abcd")) == 5
    assert len(tokenizer.encode("abcd", add_bos=False)) == 4
    assert tokenizer.encode("abcd", add_bos=True) == tokenizer.encode("abcd")


def test_a_folder_without_tokenizer_json_names_what_it_has(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"")
    with pytest.raises(UnsupportedError, match="found tokenizer.model"):
        Tokenizer.from_files(ModelFiles("folder", tmp_path, (), "test"))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"model": {"type": "BPE"}}', "\x00", "{" * 9999]
)
def test_a_broken_tokenizer_json_is_a_format_error(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(FileFormatError):
        Tokenizer.from_files(ModelFiles("folder", tmp_path, (), "test"))


def test_mutated_tokenizer_files_never_crash(tmp_path):
    import random

    saved(tmp_path)
    whole = (tmp_path / "tokenizer.json").read_text()
    draw = random.Random(3)
    for _ in range(60):
        at = draw.randrange(len(whole))
        text = whole[:at] + draw.choice(['"', "}", "0", "-1", "", "null", "x"]) + whole[at + 1 :]
        (tmp_path / "tokenizer.json").write_text(text)
        with contextlib.suppress(ButterError):
            Tokenizer.from_files(ModelFiles("folder", tmp_path, (), "test")).encode("hello 123")


def test_the_real_file_builds_fast():
    import time

    smollm2.metadata()
    start = time.perf_counter()
    Tokenizer.from_gguf(smollm2.metadata())
    assert time.perf_counter() - start < 2

"""Quantizing while loading, and converted checkpoints, against each other and decoded weights."""

import json
import logging

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import butter
from butter.errors import ConfigError, WeightError
from butter.quantize import recode
from models import test_gguf_models as gguf_models
from support import affine
from support.gguf_blocks import BLOCKS
from support.oracle import assert_close
from support.tiny import checkpoint

IDS = [1, 5, 9, 2, 6, 5, 3, 5, 8, 77, 300]
GREEDY = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}
UP = "model.layers.1.mlp.up_proj.weight"


def answers(path, **options):
    """Logits and greedy tokens."""
    with butter.Model.load(path, device="cpu", **options) as model:
        return model.logits(IDS), model.generate(IDS, **GREEDY).tokens


def form(path, name, **options):
    """How a matrix is held: (bits, group, is symmetric), or its dtype."""
    with butter.Model.load(path, device="cpu", prewarm=False, **options) as model:
        part = model._need().engine._loader.wanted[name]
        held = getattr(part, "format", None)
        return (held.bits, held.group, held.is_symmetric) if held else part.dtype


def assert_same(got, want):
    assert np.array_equal(got[0], want[0])
    assert got[1] == want[1]


def decode_folder(path):
    """Replace the codes of a converted folder by their values, decoded here in float64."""
    tensors = load_file(path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    setting = config.pop("quantization")
    for name in [n for n, t in tensors.items() if t.dtype == np.uint32]:
        stem = name.removesuffix(".weight")
        own = setting.get(stem, setting)
        bits, size = own["bits"], own["group_size"]
        words = np.ascontiguousarray(tensors[name]).view(np.uint8)
        stream = np.unpackbits(words, axis=1, bitorder="little").reshape(len(words), -1, bits)
        codes = stream @ (1 << np.arange(bits))
        scales, biases = (tensors.pop(f"{stem}.{p}").astype(np.float64) for p in
                          ("scales", "biases"))  # fmt: skip
        values = codes * np.repeat(scales, size, axis=1) + np.repeat(biases, size, axis=1)
        tensors[name] = values.astype(np.float32)
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_loading_and_converting_give_the_same_weights(bits, group, tmp_path):
    source = checkpoint("wide", tmp_path)  # its down_proj has 352 inputs: whole groups of 32 only
    scheme = {"bits": bits, "group_size": group}
    butter.convert(source, tmp_path / "out", quantize=scheme)
    want = answers(source, quantize=scheme)
    assert_same(answers(tmp_path / "out"), want)
    exact = answers(source, quantize=scheme, exact=True)
    decode_folder(tmp_path / "out")
    got = answers(tmp_path / "out", exact=True)
    assert_close(exact[0], got[0], op="logits", dtype="f32")


@pytest.mark.parametrize("kind", ["F32", "F16", *BLOCKS])
@pytest.mark.parametrize("quantize", ["q4", "q3-g64", "q8"])
def test_a_gguf_file_becomes_a_folder_with_the_same_answers(kind, quantize, tmp_path):
    path, _ = gguf_models.write_pair(tmp_path, kind)
    butter.convert(path, tmp_path / "out", quantize=quantize)
    assert_same(answers(tmp_path / "out"), answers(path, quantize=quantize))
    with butter.Model.load(path, device="cpu") as a, \
            butter.Model.load(tmp_path / "out", device="cpu") as b:  # fmt: skip
        text = "the capital of France </s> is"
        assert a.tokenizer.encode(text) == b.tokenizer.encode(text)
        assert a.defaults.stop_ids == b.defaults.stop_ids
        assert a.tokenizer.special_tokens == b.tokenizer.special_tokens


def test_rows_in_another_order_are_quantized_in_the_checkpoints_order(tmp_path):
    path, plain = gguf_models.write_pair(tmp_path, "F32")
    assert_same(answers(path, quantize="q4"), answers(plain, quantize="q4"))


@pytest.mark.parametrize("variant", ["tied", "tied_bf16", "f16", "attention_bias", "bf16_sharded"])
def test_every_kind_of_checkpoint_converts(variant, tmp_path):
    source = checkpoint(variant, tmp_path)
    done = butter.convert(source, tmp_path / "out", quantize="q5")
    assert_same(answers(tmp_path / "out"), answers(source, quantize="q5"))
    assert done.recoded > 10 and done.kept == done.indivisible == 0


def test_the_size_of_blocks_does_not_show(tmp_path, monkeypatch):
    source = checkpoint("wide", tmp_path)
    want = answers(source, quantize="q4")
    monkeypatch.setattr(recode, "BLOCK", 4096)
    assert_same(answers(source, quantize="q4"), want)
    path, _ = gguf_models.write_pair(tmp_path, "Q8_0")
    butter.convert(path, tmp_path / "out", quantize={"bits": 4, "head_bits": 8})
    monkeypatch.undo()
    assert_same(answers(tmp_path / "out"), answers(path, quantize={"bits": 4, "head_bits": 8}))


def test_a_quantized_folder_is_quantized_further(tmp_path):
    coded, plain = affine.write_pair(tmp_path, 8, 32)
    assert_same(answers(coded, quantize="q3"), answers(plain, quantize="q3"))


def test_codes_that_are_small_enough_stay(tmp_path):
    path, _ = gguf_models.write_pair(tmp_path, "Q4_0")
    assert form(path, UP, quantize="q4") == (4, 32, True)
    assert form(path, UP, quantize="q8") == (4, 32, True)
    assert form(path, UP, quantize="q3") == (3, 32, False)
    done = butter.convert(path, tmp_path / "out", quantize="q4")
    assert done.recoded == 0 and done.kept == 16
    # MLX's form has biases; they follow from the scales here, so none is kept in memory.
    assert form(tmp_path / "out", UP) == (4, 32, True)


def test_groups_that_no_checkpoint_can_hold_are_coded_anew(tmp_path):
    path, _ = gguf_models.write_pair(tmp_path, "Q6_K")  # groups of 16
    assert form(path, UP) == (6, 16, False)
    assert form(path, UP, quantize="q8") == (8, 32, False)


def test_embedding_and_head_may_have_their_own_bits(tmp_path):
    source = checkpoint("wide", tmp_path)
    scheme = {"bits": 4, "group_size": 64, "head_bits": 8}
    assert form(source, UP, quantize=scheme) == (4, 64, False)
    for name in ("lm_head", "model.embed_tokens"):
        assert form(source, f"{name}.weight", quantize=scheme) == (8, 64, False)
    butter.convert(source, tmp_path / "out", quantize=scheme)
    config = json.loads((tmp_path / "out" / "config.json").read_text())["quantization"]
    eight = {"group_size": 64, "bits": 8}
    assert config == {
        "group_size": 64, "bits": 4, "mode": "affine",
        "model.embed_tokens": eight, "lm_head": eight,
    }  # fmt: skip


def test_inputs_without_whole_groups_are_named(tmp_path, caplog):
    source = checkpoint("odd_mlp", tmp_path)
    with caplog.at_level(logging.WARNING, "butter"):
        assert form(source, "model.layers.0.mlp.down_proj.weight", quantize="q4") == "f32"
    assert "2 of 16 matrices are not quantized: 32 does not divide their inputs" in caplog.text
    assert "model.layers.0.mlp.down_proj.weight" in caplog.text
    with pytest.raises(ConfigError, match="group_size: got 128, which divides the inputs of no"):
        answers(source, quantize="q4-g128")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_named(dtype, value, tmp_path):
    source = checkpoint("f32", tmp_path)
    spoil(source, dtype, value)
    for load in (
        lambda: answers(source, quantize="q4", prewarm=False),
        lambda: butter.convert(source, tmp_path / "out"),
    ):
        with pytest.raises(WeightError, match=f"{UP}: value 129 is infinite or not a number"):
            load()
    assert [p.name for p in tmp_path.iterdir()] == ["f32"]


def test_a_weight_beyond_f16_is_refused(tmp_path):
    source = checkpoint("f32", tmp_path)
    spoil(source, np.float32, 1e6)
    with pytest.raises(WeightError, match=f"{UP}: got a weight of 1e.06, need at most 65504"):
        answers(source, quantize="q4")


def spoil(path, dtype, value):
    """Write the weights in a dtype, one of them wrong."""
    tensors = load_file(path / "model.safetensors")
    tensors[UP] = tensors[UP].astype(dtype)
    tensors[UP][2, 1] = value
    if dtype == ml_dtypes.bfloat16:
        from support.tiny import _write_safetensors as save

        save(path / "model.safetensors", tensors)
    else:
        save_file(tensors, path / "model.safetensors")


@pytest.mark.parametrize(
    "given,text",
    [
        ("q7", "got 'q7', need q2, q3, q4, q5, q6, q8, one of these with -g32 or -g64 or -g128"),
        ("Q4_K_M", "got 'Q4_K_M', need q2"),
        ("q4-g48", "got 'q4-g48', need q2"),
        ("", "got '', need q2"),
        (4, "got 4, need q2"),
        (True, "got True, need q2"),
        ({"bits": 7}, "bits: got 7, need one of 2, 3, 4, 5, 6, 8"),
        ({"bits": True}, "bits: got True"),
        ({"bits": 4, "group_size": 16}, "group_size: got 16, need one of 32, 64, 128"),
        ({"bits": 4, "head_bits": 16}, "head_bits: got 16, need one of"),
        ({"group_size": 64}, "bits: missing"),
        ({"bits": 4, "group": 64}, "got the field 'group', need .* bits, group_size, head_bits"),
    ],
)
def test_other_forms_are_refused_before_anything_is_opened(given, text, tmp_path):
    with pytest.raises(ConfigError, match=text):
        butter.Model.load(tmp_path / "nothing", quantize=given)
    with pytest.raises(ConfigError, match=text):
        butter.convert(tmp_path / "nothing", tmp_path / "out", quantize=given)


def test_a_large_checkpoint_has_several_files(tmp_path):
    source = checkpoint("wide", tmp_path)
    done = butter.convert(source, tmp_path / "out", quantize="q4", shard_bytes=60_000)
    assert len(done.files) > 3 and (tmp_path / "out" / done.files[-1]).is_file()
    assert_same(answers(tmp_path / "out"), answers(source, quantize="q4"))


def test_only_complete_folders_appear(tmp_path):
    source = checkpoint("f32", tmp_path)
    (tmp_path / "there").mkdir()
    with pytest.raises(ConfigError, match="there exists; name a new folder"):
        butter.convert(source, tmp_path / "there")
    with pytest.raises(ConfigError, match="no such folder; make it first"):
        butter.convert(source, tmp_path / "a" / "b")

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        butter.convert(source, tmp_path / "out", on_progress=stop)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f32", "there"]


def test_companions_are_copied(tmp_path):
    source = checkpoint("f32", tmp_path)
    (source / "LICENSE").write_text("terms")
    (source / "README.md").write_text("of the original")
    butter.convert(source, tmp_path / "out", quantize="q4-g64")
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {
        "LICENSE", "README.md", "config.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    assert "Converted by Butter" in (tmp_path / "out" / "README.md").read_text()

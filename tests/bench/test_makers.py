"""The files that peers read hold the same model as the folder that they are made from."""

import json

import numpy as np
import pytest

pytest.importorskip("gguf")
pytest.importorskip("ml_dtypes")

import make_gguf  # noqa: E402
import make_hf  # noqa: E402

import butter  # noqa: E402
from support.oracle import assert_close  # noqa: E402
from support.tiny import checkpoint, prompts  # noqa: E402


def test_rotary_orders_are_inverse():
    rows = np.arange(24.0).reshape(8, 3)

    halves = make_hf.rotary_halves(rows, heads=2)

    assert [int(row[0]) // 3 for row in halves] == [0, 2, 1, 3, 4, 6, 5, 7]
    assert np.array_equal(make_hf.rotary_pairs(halves, heads=2), rows)


def test_a_gguf_file_gives_the_logits_of_its_folder(tmp_path):
    folder = checkpoint("tied_bf16", tmp_path)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]  # as make_hf.py spells it
    path.write_text(json.dumps(config))

    make_gguf.make(folder, tmp_path / "model.gguf", "BF16")

    ids = prompts()[1]
    with butter.Model.load(folder, device="cpu") as one:
        want = one.logits(ids)
    with butter.Model.load(tmp_path / "model.gguf", device="cpu") as other:
        assert_close(other.logits(ids), want, op="logits", dtype="f32")

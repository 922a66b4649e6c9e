"""butter convert and --quantize, as a user calls them."""

import errno
import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from butter.errors import ConfigError
from butter.quantize import convert
from cli.test_cli import butter
from support.tiny import checkpoint

RAW = ["the capital", "--raw", "--temperature", "0", "--max-tokens", "12", "--ignore-eos", "--json"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return checkpoint("f32", tmp_path_factory.mktemp("tiny"))


def tokens(*args):
    return json.loads(butter("generate", *args)[0])["tokens"]


@pytest.mark.parametrize("bits,group", [("3", "32"), ("4", "64")])
def test_a_converted_model_answers_as_with_quantize(path, bits, group, tmp_path):
    out = str(tmp_path / "out")
    shown, _ = butter("convert", str(path), out, "--bits", bits, "--group-size", group)
    assert shown.startswith(f"{out}: ") and "1 weight file; " in shown
    form = ["--quantize", f"q{bits}-g{group}"]
    assert tokens(out, *RAW) == tokens(str(path), *RAW, *form) != tokens(str(path), *RAW)


def test_the_summary_may_be_json(path, tmp_path):
    out = str(tmp_path / "out")
    facts = json.loads(butter("convert", str(path), out, "--head-bits", "8", "--json")[0])
    assert facts["path"] == out and facts["files"] == ["model.safetensors"]
    assert facts["recoded"] == 16 and facts["kept"] == facts["indivisible"] == 0


def test_an_existing_folder_is_refused(path, tmp_path):
    _, err = butter("convert", str(path), str(tmp_path), code=1)
    assert err == f"butter: [convert] {tmp_path} exists; name a new folder, or remove this one\n"


def test_wrong_options_show_the_legal_ones(path, tmp_path):
    _, err = butter("convert", str(path), str(tmp_path / "out"), "--bits", "7", code=2)
    assert "'2', '3', '4', '5', '6', '8'" in err
    _, err = butter("generate", str(path), "x", "--quantize", "int4", code=2)
    assert "--quantize: got 'int4', need q2, q3, q4, q5, q6, q8" in err


def test_a_full_disk_says_where_and_how_much(path, tmp_path, monkeypatch):
    def write(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(convert, "write_checkpoint", write)
    with pytest.raises(OSError, match=r"need 0.1 MB in all: '.*/out'"):
        convert.convert(path, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options,text",
    [({"on_progress": 3}, "on_progress: got 3"), ({"shard_bytes": 0}, "shard_bytes: got 0")],
)
def test_arguments_are_checked_before_anything_is_read(path, tmp_path, options, text):
    with pytest.raises(ConfigError, match=text):
        convert.convert(path, tmp_path / "out", **options)


def test_a_long_name_has_room_for_the_part_that_is_being_written(path, tmp_path):
    convert.convert(path, tmp_path / ("x" * 250))


def test_a_failure_leaves_nothing_behind(tmp_path):
    source = checkpoint("f32", tmp_path)
    tensors = load_file(source / "model.safetensors")
    tensors["lm_head.weight"][5, 0] = np.nan
    save_file(tensors, source / "model.safetensors")
    _, err = butter("convert", str(source), str(tmp_path / "out"), code=1)
    assert "lm_head.weight: value 320 is infinite or not a number" in err
    assert [p.name for p in tmp_path.iterdir()] == ["f32"]


SENDS = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup, or a shell in the background, may not
signal.signal(signal.SIGINT, signal.default_int_handler)
from butter.cli import main
from butter.quantize import convert
convert.write_companions = lambda *_: os.kill(os.getpid(), signal.{name})
main(["convert", *sys.argv[1:]])
"""


@pytest.mark.parametrize("name,code", [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_leaves_nothing_behind(path, name, code, tmp_path):
    command = [sys.executable, "-c", SENDS.format(name=name), str(path), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())

"""butter bench dispatch: the three modes side by side, on a model or on a made-up one."""

import json

import pytest
from click.testing import CliRunner

from butter.cli import bench
from support.tiny import checkpoint

MODES = ["eager", "argument_buffers", "icb"]
QUICK = ["--repeats", "1", "--tokens", "8", "--depth", "4", "--device", "cpu"]


def dispatch(*args):
    return CliRunner().invoke(bench.command, ["dispatch", *args])


@pytest.mark.parametrize("named", [True, False])
def test_it_compares_the_modes(named, tmp_path):
    model = [str(checkpoint("f32", tmp_path))] if named else []
    result = dispatch(*model, *QUICK, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found["modes"]) == MODES
    assert found["modes"]["eager"]["ratio"] == 1
    assert found["dispatches"] >= found["phases"] > 0
    for row in found["modes"].values():
        assert row["tokens_per_s"] > 0
        assert row["ratio"] > 0
        assert row["host_us_per_token"] > 0
        assert row["thread_us_per_token"] > 0
    assert found["modes"]["icb"]["host_us_per_token"] < found["modes"]["eager"]["host_us_per_token"]


def test_the_table_names_what_it_shows():
    lines = dispatch(*QUICK).output.splitlines()
    assert lines[0].startswith("tiny random model on ")
    assert "kernels in" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == MODES
    assert all("×" in line and "µs to encode" in line for line in lines[2:])


@pytest.mark.parametrize(
    "args,text",
    [(["--tokens", "400"], "the context holds 128"), (["--exact"], "--exact needs a MODEL")],
)
def test_what_the_made_up_model_cannot_do_is_refused(args, text):
    result = dispatch(*args)
    assert result.exit_code == 2
    assert text in result.output


def test_ratios_are_to_the_same_round():
    rounds = {
        "a": [{"tokens_per_s": 10.0}, {"tokens_per_s": 20.0}],
        "b": [{"tokens_per_s": 20.0}, {"tokens_per_s": 10.0}],
    }
    assert [row["ratio"] for row in bench.with_ratios(rounds)["b"]] == [2.0, 0.5]

"""python -m iron: what it prints and how it refuses."""

import pytest

from iron.__main__ import main


@pytest.fixture
def iron(monkeypatch, capsys):
    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["iron", *args])
        code = main()
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "target, head", [("cpu", "void add__f32("), ("msl", "kernel void"), ("cuda", "__global__ void")]
)
def test_show_prints_every_language(iron, target, head):
    code, out, _ = iron("show", "add", "--emit", target)
    assert code == 0 and head in out


def test_show_prints_the_ir_after_a_pass(iron):
    assert "group_sum" in iron("show", "rms_norm", "--pass", "ConstFold")[1]
    assert "warp_sum" in iron("show", "rms_norm", "--pass", "Schedule")[1]
    assert ":?" in iron("show", "rms_norm", "--pass", "none")[1]


def test_instances_are_listed_by_number(iron):
    assert iron("show", "rms_norm", "--list")[1].split() == [
        "0", "rms_norm__f32", "1", "rms_norm__f16", "2", "rms_norm__bf16",
    ]  # fmt: skip
    code, _, error = iron("show", "rms_norm", "--instance", "3")
    assert code == 1 and "no instance 3" in error and "2  rms_norm__bf16" in error


def test_an_unknown_kernel_names_the_known_ones(iron):
    code, _, error = iron("show", "rmsnorm")
    assert code == 1 and "no kernel is named rmsnorm" in error and "rms_norm" in error


def test_an_unknown_target_names_the_legal_ones(iron, tmp_path):
    code, _, error = iron("build", "--emit", "cpu,spirv", "--out", str(tmp_path))
    assert code == 1 and "cannot emit spirv" in error and "cpu, msl, cuda, all" in error

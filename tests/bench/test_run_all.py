"""What the command line chooses: plans, and entries that can run."""

import pytest
import run_all
from measure import Comparison


@pytest.fixture
def options(tmp_path):
    return lambda *words: run_all.parse(["--out", str(tmp_path / "result.json"), *words])


def test_the_command_line_changes_every_plan(options):
    plans = run_all.plans(options("--full", "--depths", "7", "--rounds", "1", "--skip", "batch"))

    assert set(plans) == {"smol-135m", "llama-1b", "qwen3-0.6b"}
    assert all((p.depths, p.rounds, p.batches) == ((7,), 1, ()) for p in plans.values())
    assert plans["smol-135m"].decode != plans["llama-1b"].decode


def test_the_quick_run_can_be_told_a_larger_shape(options):
    assert run_all.plans(options("--shapes", "llama-1b"))["llama-1b"].prefills == (512,)


def test_entries_without_an_engine_or_a_file_are_named(options, tmp_path):
    (tmp_path / "smol-135m").mkdir()
    (tmp_path / "smol-135m" / "q4_0.gguf").touch()
    chosen = options("--models", str(tmp_path), "--only", "Q4")
    comparison = Comparison(chosen.out, budget_s=1, patience_s=0, mode="quick")

    found = run_all.Inputs(chosen, comparison).of("smol-135m")

    assert [entry.name for entry, _, _ in found] == ["butter Q4_0"]
    assert "smol-135m/butter Q4_1 (no file)" in comparison.result["left_out"]
    assert "llama.cpp (not installed)" in comparison.result["left_out"]

"""Alternation, failures and partial results of the comparison, with engines that do nothing."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import measure
import pytest
import worker
from entries import Entry
from measure import Block, Comparison
from plan import FULL, QUICK, Plan
from shapes import SHAPES

FAKE = Path(__file__).with_name("fake_engine.py")
PLAN = Plan(
    rounds=2, prefills=(4, 6), decode=3, depths=(5, 9), depth_tokens=2, batches=(1, 2),
    batch_tokens=2, batch_prompt=2, neighbour_tokens=2,
)  # fmt: skip


@pytest.fixture
def comparison(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "read_gb_per_s", lambda threads, mib, repeats: [20.0, 30.0])
    monkeypatch.setattr(measure, "SETTLE_S", 0)
    monkeypatch.setitem(worker.SCRIPTS, "llama.cpp", str(FAKE))
    return Comparison(tmp_path / "result.json", budget_s=60, patience_s=0, mode="quick")


def started(comparison, tmp_path, **engines) -> Block:
    """A block whose engines do what their value says."""
    block = Block(comparison, "smol-135m", 1, PLAN)
    for name, does in engines.items():
        model = tmp_path / name
        model.write_text(json.dumps(does))
        block.start(Entry(name, "llama.cpp", "smol-135m", name), sys.executable, str(model))
    return block


def test_a_run_without_prefills_times_decoding(comparison, tmp_path):
    block = started(comparison, tmp_path, a={})
    block.plan = replace(PLAN, prefills=(), depths=())
    block.basics()
    assert {cell["kind"] for cell in comparison.result["cells"]} == {"decode"}
    assert block.plan.context >= PLAN.decode


def test_engines_alternate_in_each_round(comparison, tmp_path):
    with started(comparison, tmp_path, a={}, b={}) as block:
        block.basics()

    decode = [c for c in comparison.result["cells"] if c["kind"] == "decode"]
    assert [(c["round"], c["entry"]) for c in decode] == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert all(c["limit_gb_s"] == 25 and c["tok_s"] > 0 < c["cpu_tok_s"] for c in decode)
    assert all(s["peak_mib"] > 0 and s["first_token_s"] > 0 for s in comparison.result["starts"])


def test_every_kind_of_cell_is_measured(comparison, tmp_path):
    with started(comparison, tmp_path, a={"batch": True}) as block:
        block.basics()
        block.neighbour()
        block.batches()
        block.depths([5, 9])
        block.long_prefill()

    keys = ("kind", "tokens", "depth", "sequences", "neighbours")
    found = {tuple(c.get(k) for k in keys) for c in comparison.result["cells"]}
    assert found == {
        ("decode", 3, 1, None, None), ("prefill", 4, None, None, None),
        ("decode", 2, 1, None, 1), ("batch", 2, 2, 1, None), ("batch", 2, 2, 2, None),
        ("decode", 2, 5, None, None), ("decode", 2, 9, None, None),
        ("prefill", 6, None, None, None),
    }  # fmt: skip


def test_an_engine_without_batches_is_named(comparison, tmp_path):
    with started(comparison, tmp_path, a={"batch": True}, b={}) as block:
        block.batches()

    assert {c["entry"] for c in comparison.result["cells"]} == {"a"}
    assert comparison.result["left_out"] == ["smol-135m/b, batch (not there)"]


def test_an_engine_that_breaks_is_left_out_and_the_others_go_on(comparison, tmp_path):
    with started(comparison, tmp_path, a={"dies_at": ["decode", 9]}, b={}) as block:
        block.basics()
        block.depths([5, 9])

    deep = [c for c in comparison.result["cells"] if c.get("depth") == 9]
    assert [c["entry"] for c in deep] == ["b", "b"]
    assert "the engine broke" in comparison.result["left_out"][0]


def test_an_engine_that_does_not_start_is_left_out(comparison, tmp_path):
    with started(comparison, tmp_path, a={"dies_at": ["prefill", 16]}) as block:
        block.basics()

    assert comparison.result["cells"] == []
    assert "smol-135m, 1 thread, a" in comparison.result["left_out"][0]


def test_an_engine_that_reads_a_deep_prompt_for_too_long_is_left_out(comparison, tmp_path):
    with started(comparison, tmp_path, a={}) as block:
        block.basics()
        for row in comparison.result["cells"]:
            row["tok_s"] = 0.01
        block.depths([5])

    assert "its prompts would take" in comparison.result["left_out"][0]


def test_an_interrupted_block_leaves_what_it_has(comparison, tmp_path, monkeypatch):
    asked = worker.Worker.ask
    count = 0

    def ask(self, *arguments, **cell):
        nonlocal count
        count += 1
        if count > 3:
            raise KeyboardInterrupt
        return asked(self, *arguments, **cell)

    monkeypatch.setattr(worker.Worker, "ask", ask)
    with pytest.raises(KeyboardInterrupt), started(comparison, tmp_path, a={}, b={}) as block:
        block.basics()

    saved = json.loads(comparison.out.read_text())
    assert len(saved["cells"]) == 3
    assert not saved["complete"]


def test_rounds_end_with_the_budget(comparison, tmp_path):
    with started(comparison, tmp_path, a={}) as block:
        comparison.budget_s = 0
        block.basics()

    assert {c["round"] for c in comparison.result["cells"]} == {0}
    assert any("round 2 (no time)" in text for text in comparison.result["left_out"])


@pytest.mark.parametrize("plan", [*QUICK.values(), *FULL.values()])
def test_no_cell_is_longer_than_the_models_context(plan):
    assert plan.context <= min(shape.context for shape in SHAPES.values())

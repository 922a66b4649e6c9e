"""The report says what its result says; the figures here are made up so that all is exact."""

import pytest
from report import report
from result import Result, merged

QUANTIZED = {"shape": "smol-135m", "precision": "quantized", "file_bytes": 2e9}


def cell(entry: str, rate: float, number: int = 0, **more) -> dict:
    row = {"entry": entry, "shape": "smol-135m", "threads": 2, "kind": "decode", "tokens": 128,
           "depth": 1, "round": number, "tok_s": rate, "cpu_tok_s": rate + 1, "limit_gb_s": 30.0,
           "others": 0.0}  # fmt: skip
    return {**row, **more}


def data(cells: list[dict], **more) -> dict:
    def about(engine, file, weight_bytes):
        return {**QUANTIZED, "engine": engine, "file": file, "version": f"{engine} 1",
                "weight_bytes": weight_bytes, "kv_bytes_per_position": 1e6,
                "can": ["prefill", "decode"]}  # fmt: skip

    return {
        "date": "2030-01-02T00:00:00", "mode": "quick", "complete": True, "seconds": 12,
        "machine": {"cpu": "Abacus", "cores": 2, "memory_gib": 1, "system": "Linux 1",
                    "python": "3.11", "commit": "abc"},
        "shapes": {"smol-135m": {"title": "SmolLM2"}},
        "entries": {
            "smol-135m/butter Q4_1": about("butter", "shipped.gguf", 96e6),
            "smol-135m/llama.cpp Q4_1": about("llama.cpp", "shipped.gguf", 96e6),
            "smol-135m/llama.cpp Q4_0": about("llama.cpp", "q4_0.gguf", 76e6),
        },
        "peaks": {"f32": 100.0, "int8": 400.0},
        "bandwidth": [{"threads": 2, "mib": 512, "gb_s": [29.0, 31.0]}],
        "starts": [], "left_out": [], "cells": cells, **more,
    }  # fmt: skip


def text_of(tmp_path, cells: list[dict], **more) -> str:
    return report(Result(data(cells, **more)), tmp_path)


THREE = [
    cell("butter Q4_1", 100.0), cell("butter Q4_1", 120.0, 1),
    cell("llama.cpp Q4_1", 50.0), cell("llama.cpp Q4_1", 40.0, 1),
    cell("llama.cpp Q4_0", 80.0), cell("llama.cpp Q4_0", 60.0, 1),
]  # fmt: skip


def line_with(text: str, *words: str) -> str:
    return next(line for line in text.splitlines() if all(w in line for w in words))


def test_ratios_are_of_the_same_round_and_of_the_fastest_peer(tmp_path):
    row = line_with(text_of(tmp_path, THREE), "| smol-135m | decode, empty cache | 2 |")

    assert "110.0 (100.0..120.0)" in row
    assert "2.50 (2.00..3.00) ×" in row  # the same file: 100/50 and 120/40
    assert "| llama.cpp Q4_0 | 70.0 (60.0..80.0) | 1.62 (1.25..2.00) × |" in row


def test_cells_where_a_peer_is_faster_are_named(tmp_path):
    slow = [cell("butter Q4_1", 100.0), cell("llama.cpp Q4_1", 200.0)]

    assert "decode, empty cache, 2 threads: butter Q4_1 behind llama.cpp Q4_1" in text_of(
        tmp_path, slow
    )
    assert "Behind in" not in text_of(tmp_path, THREE)


def test_bandwidth_counts_the_engines_own_format():
    result = Result(data(THREE))
    case = result.cases("smol-135m")[0]

    gb_s, part = result.share(case, "llama.cpp Q4_0")

    assert gb_s == pytest.approx(70 * (76e6 + 1e6 * (1 + 64)) / 1e9)
    assert part == pytest.approx(gb_s / 30)


def test_rounds_that_one_engine_lacks_make_no_ratio():
    result = Result(data([*THREE[:2], THREE[2]]))
    case = result.cases("smol-135m")[0]

    assert result.ratios(case, "butter Q4_1", "llama.cpp Q4_1") == [2.0]


def test_what_a_busy_process_leaves(tmp_path):
    busy = [cell("butter Q4_1", 55.0, tokens=64, neighbours=1)]

    assert "50%" in line_with(text_of(tmp_path, THREE + busy), "55.0")


def test_a_noisy_or_interrupted_run_says_so(tmp_path):
    noisy = [{**row, "others": 0.5} for row in THREE]

    assert "not quiet" in text_of(tmp_path, noisy)
    assert "interrupted" in text_of(tmp_path, THREE, complete=False)
    quiet = text_of(tmp_path, THREE)
    assert "not quiet" not in quiet
    assert "interrupted" not in quiet


def test_an_engine_without_batches_is_shown_without_a_rate(tmp_path):
    batch = [cell("llama.cpp Q4_1", 90.0, kind="batch", depth=32, sequences=4)]

    row = line_with(text_of(tmp_path, THREE + batch), "decode, 4 sequences", "butter")

    assert "not there" in row


def test_what_was_left_out_is_listed(tmp_path):
    assert "- llama.cpp (not installed)" in text_of(
        tmp_path, THREE, left_out=["llama.cpp (not installed)"]
    )


def test_a_result_without_cells_still_makes_a_report(tmp_path):
    assert "# Performance" in text_of(tmp_path, [])


def test_plots_are_drawn_from_more_than_one_point(tmp_path):
    pytest.importorskip("matplotlib")
    deep = [{**row, "depth": 1024} for row in THREE]

    text = text_of(tmp_path, THREE + deep)

    assert (tmp_path / "decode_depth.png").exists()
    assert "decode_depth.png" in text
    assert not (tmp_path / "decode_neighbour.png").exists()


def test_runs_are_joined_round_by_round():
    again = [cell("butter Q4_1", 10.0), cell("llama.cpp Q4_1", 1.0)]
    other = data(again, complete=False, left_out=["depth 9 (no time)"])
    other["accuracy"] = {}
    first = data(THREE, left_out=["accuracy (no time)"])
    result = Result(merged([first, other]))
    (case,) = result.cells
    assert result.rates(case, "butter Q4_1") == [100.0, 120.0, 10.0]
    assert result.ratios(case, "butter Q4_1", "llama.cpp Q4_1") == [2.0, 3.0, 10.0]
    assert not result.data["complete"] and result.data["left_out"] == ["depth 9 (no time)"]
    assert first["cells"] == THREE and first["complete"]  # its arguments are left alone

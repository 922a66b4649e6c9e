"""butter doctor: every kernel has a self-test, each kind of failure is named, the rest goes on."""

import json
import os
import signal
from functools import partial
from multiprocessing import active_children

import numpy as np
import pytest
from click.testing import CliRunner

from butter.cli import doctor
from butter.manifest import Param, extent, manifest
from butter.selftest import facts, layout, references
from butter.selftest import run as selftest
from butter.selftest.kernels import TOLERANCE, compare
from support.metal import has_metal

MODES = ["eager", "argument_buffers", "icb"]


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """plant(change) gives references whose cases and values `change` has edited."""

    def make(change):
        cases, data = references.load(references.default_path())
        values = np.frombuffer(data, np.uint8).copy()
        change(cases, values)
        path = tmp_path_factory.mktemp("planted") / "selftest.npz"
        text = np.frombuffer(json.dumps(cases).encode(), np.uint8)
        np.savez(path, cases=text, values=values)
        return path

    return make


def kernels():
    return [k for name in manifest().names() for k in manifest().instances(name)]


def test_every_kernel_has_a_self_test():
    cases = references.read()
    without = [k.symbol for k in kernels() if k.symbol not in cases or cases[k.symbol].missing]
    assert without == []
    incomplete = [
        k.symbol
        for k in kernels()
        if (case := cases[k.symbol]).on_cpu
        and {p.name for p in k.params if p.kind != "in"} != set(case.outputs)
    ]
    assert incomplete == []
    assert {k.name for k in kernels()} == {s.split("__")[0] for s, c in cases.items() if c.on_cpu}


def test_the_references_are_small():
    assert references.default_path().stat().st_size < 300_000


def test_all_is_good_here():
    result = CliRunner().invoke(
        doctor.command, ["--device", "cpu", "--json"], standalone_mode=False
    )
    found = json.loads(result.stdout)
    bad = [c for c in found["checks"] if c["status"] != "ok"]
    assert (bad, found["error"], found["ok"], result.return_value) == ([], "", True, 0)
    on_cpu = sum(c.on_cpu for c in references.read().values())
    assert found["items"] == on_cpu + len(MODES) - 2  # the tiny model is one item in three modes
    assert [c["mode"] for c in found["checks"] if c["item"] == "tiny model"] == MODES
    assert found["device"]["kind"] == "cpu"


def test_each_planted_error_is_named_and_ends_in_1(plant, monkeypatch):
    def change(cases, values):
        dtype, count, offset = cases["rms_norm__f32"]["outputs"]["out"]
        values[offset : offset + 4 * count].view(np.float32)[3] *= 1.001
        cases["repack_q4_0"]["outputs"]["codes"] ^= 1
        cases["sample_draw"]["token"] += 1
        cases["add__f32"]["missing"] = "planted here"
        del cases["silu_mul__f32"]
        del cases["rope__f32"]["outputs"]["out"]
        cases["gemv__f32_f32"]["dims"]["k"] = 0  # the runtime refuses the shapes or the result
        cases["quantize_rows__f32__QB32"]["dims"]["n"] = 33  # against a constraint

    path = plant(change)
    monkeypatch.setattr(selftest, "run", partial(selftest.run, references=path))
    result = CliRunner().invoke(doctor.command, ["--device", "cpu"], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 1)
    lines = result.output.splitlines()
    everywhere = "(eager, argument_buffers, icb): "

    def line(start):
        found = [x.strip() for x in lines if x.strip().startswith(start)]
        assert len(found) == 1, (start, result.output)
        return found[0]

    assert "out: 1 of 185 values are off; at 3 got" in line("WRONG rms_norm__f32 " + everywhere)
    assert "codes: its" in line("WRONG repack_q4_0 " + everywhere)
    assert "got token" in line("WRONG sample_draw " + everywhere)
    assert line("NO TEST add__f32").endswith("planted here")
    assert "do not know it" in line("NO TEST silu_mul__f32")
    assert "has no out" in line("FAILED rope__f32 " + everywhere)
    assert "gemv__f32_f32" in result.output
    assert "n % QB == 0" in line("FAILED quantize_rows__f32__QB32")
    assert sum(" good, " in x for x in lines) == len(MODES)
    assert lines[-1].endswith("SOMETHING IS WRONG, please report it")


def test_a_crash_and_a_hang_are_blamed_and_the_rest_is_tested():
    seen = []

    def hurt(done, total, item):
        seen.append(item)
        if len(seen) in (20, 40):
            (worker,) = active_children()
            os.kill(worker.pid, signal.SIGKILL if len(seen) == 20 else signal.SIGSTOP)

    report = selftest.run("cpu", on_progress=hurt, quiet_s=5)
    assert report.error == ""
    died = {o.item: o.message for o in report.failures}
    assert all(o.status == "died" for o in report.failures)
    assert len(died) == 2
    assert any("SIGKILL" in m for m in died.values())
    assert any("no answer for 5 s" in m for m in died.values())
    tested = {o.item for o in report.outcomes}
    assert tested >= {k.symbol for k in kernels() if references.read()[k.symbol].on_cpu}
    assert not active_children()


def test_unreadable_references_are_reported_and_the_model_is_tested(tmp_path):
    path = tmp_path / "selftest.npz"
    path.write_bytes(b"PK no archive")
    report = selftest.run("cpu", references=path)
    assert [(o.item, o.status) for o in report.failures] == [("references", "failed")]
    assert "cannot be read" in report.failures[0].message
    assert [o.mode for o in report.outcomes if o.item == "tiny model"] == MODES


def test_a_device_that_is_not_there_is_a_report_too():
    result = CliRunner().invoke(doctor.command, ["--device", "cuda:7"], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 1)
    assert "device cuda:7: could not be opened" in result.output
    assert "nothing was tested" in result.output


def bad(item, mode="icb", message="m"):
    return {"item": item, "mode": mode, "status": "no code", "message": message}


def test_one_message_of_many_kernels_is_shown_once():
    found = [bad(f"k{i}", mode, f"no\n  line {i}") for i in range(9) for mode in ("eager", "icb")]
    lines = doctor.failures([*found, bad("k9", message="yes")])
    assert lines == [
        "  NO CODE k0, k1, k2, k3, k4, k5 and 3 more (eager, icb): no",
        "        line 0",
        "  NO CODE k9 (icb): yes",
    ]


def test_a_long_list_of_failures_is_cut():
    lines = doctor.failures([bad(f"k{i}", message=f"m{i}") for i in range(99)])
    assert len(lines) == doctor.SHOWN + 1
    assert f"and {99 - doctor.SHOWN} lines more" in lines[-1]


def test_a_mac_says_more_of_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(facts.sys, "platform", "darwin")
    monkeypatch.setattr(facts, "said", lambda *command: "" if "xcrun" in command else "a word")
    assert facts.machine()["chip"] == "a word"
    assert facts.machine()["Metal compiler"] == "unknown"
    monkeypatch.setenv("BUTTER_METAL_KERNELS", str(tmp_path))
    assert "text" in facts.sources({"kind": "metal"})["kernels"]
    (tmp_path / "kernels.metallib").touch()
    found = facts.sources({"kind": "metal"})
    assert found["kernels"] == str(tmp_path / "kernels.metallib")
    assert found["BUTTER_METAL_KERNELS"] == str(tmp_path)


def test_a_command_that_is_missing_says_nothing():
    assert facts.said("no-such-command") == ""


@pytest.mark.parametrize("warp", [4, 8, 16, 32])
@pytest.mark.parametrize(
    "shape,plain",
    [
        (["ceildiv(n, WARP)", "3", "WARP"], (37, 3)),
        (["2", "(P // WARP)", "5", "WARP"], (2, 64, 5)),
    ],
)
def test_tiles_return_to_the_plain_form(shape, plain, warp):
    param = Param("x", "in", "u32", tuple(extent(s) for s in shape))
    dims = {"n": 37, "P": 64}
    assert layout.plain_shape(param, dims) == plain
    array = np.arange(np.prod(plain), dtype=np.uint32).reshape(plain)
    tiled = layout.to_device(array, param, warp)
    assert tiled.shape == tuple(e.value(dims | {"WARP": warp}) for e in param.shape)
    assert np.array_equal(layout.from_device(tiled, param, dims), array)
    if "n" in shape[0]:
        assert np.array_equal(tiled[1 if warp > 4 else 9, :, 0], array[warp if warp > 4 else 36])


def test_a_layout_that_is_no_tile_is_refused():
    param = Param("x", "in", "u32", (extent("WARP"), extent("n")))
    with pytest.raises(ValueError, match="not as tiles"):
        layout.plain_shape(param, {"n": 3})


def test_comparison_sees_nan_and_forgives_few_int8_borders():
    param = Param("x", "out", "f32", (extent("n"),))
    want = np.linspace(-1, 1, 100, dtype=np.float32)
    assert compare(want.copy(), want, param) == (0.0, "")
    for value in (np.nan, np.inf):
        got = want.copy()
        got[7] = value
        assert "1 of 100 values are off; at 7" in compare(got, want, param)[1]
    both = want.copy()
    both[0] = -np.inf
    assert compare(both.copy(), both, param) == (0.0, "")
    near = want + np.float32(TOLERANCE["f32"] / 2)
    assert compare(near, want, param)[1] == ""
    strays = want.copy()
    strays[:3] += 0.009
    assert compare(strays, want, param)[1] != ""
    assert compare(strays, want, param, strays=True)[1] == ""
    strays[3] += 0.009
    assert compare(strays, want, param, strays=True)[1] != ""
    codes, param = np.arange(5, dtype=np.int8), Param("q", "out", "i8", (extent("n"),))
    assert compare(codes + np.int8(1), codes, param)[1] == ""
    assert compare(codes + np.int8(2), codes, param)[1] != ""


@pytest.mark.metal
@pytest.mark.slow
@pytest.mark.skipif(not has_metal(), reason="needs a build with Metal")
def test_faults_of_the_metal_device_are_named(monkeypatch):
    monkeypatch.setenv("SOFTMETAL_PLANT", "fail_pipeline:5,fail_command_buffer:30,skip_barrier:50")
    report = selftest.run("metal")
    assert report.error == ""
    assert {o.status for o in report.failures} <= {"no code", "failed", "died"}
    assert any(o.status == "no code" and "planted" in o.message for o in report.failures)

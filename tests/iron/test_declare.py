"""Decorators and parameters that no kernel may have: the file, the line and the fix."""
# ruff: noqa: F821  shapes are strings that name dims

import subprocess
import sys
from pathlib import Path

import pytest

from iron import Const, In, Out, T, build, dim, f16, f32, group, kernel, lanes, parse
from iron.errors import IronError
from iron.lang import REGISTRY
from support.kernels import compiled

ROOT = Path(__file__).resolve().parents[2]


def copy(x: In[T, "rows", "n"], out: Out[T, "rows", "n"]):
    for i in lanes(dim("n")):
        out[group.id(0), i] = x[group.id(0), i]


FLOATS = {"T": ["f32", "f16"]}
REFUSED = [
    ({"types": {"T": ["float32"]}}, "'float32' is no dtype of T", "dtypes: f32"),
    ({"types": {"T": ["f23"]}}, "'f23' is no dtype of T", "did you mean f32?"),
    ({"types": {"T": "f32"}}, "types={'T': 'f32'} is no choice", '{"T": ["f32", "bf16"]}'),
    ({"types": ["f32"]}, "types=['f32'] is no choice", "or a list of dicts"),
    ({"statics": {"QB": 16}}, "statics={'QB': 16} is no choice", '{"QB": [16, 32]}'),
    ({"statics": {"QB": ["16"]}}, "QB='16' is no integer", '"QB": [16, 32]'),
    ({"group": "256"}, "group='256' is no number", "group=256"),
    ({"group": 0}, "group=0 is not between 32 and 1024", "use 32"),
    ({"group": 2048}, "group=2048 is not between 32 and 1024", "use 32"),
    ({"group": 48}, "group=48 is not a multiple of 32", "use 32"),
    ({"grid": ("rows", 1, 1, 1)}, "a grid of 4 axes", "one to three"),
    ({"grid": None}, "@kernel without a grid", '@kernel(grid="rows")'),
    ({"grid": "rows +"}, "'rows +' in grid is no expression", "ceildiv"),
    ({"grid": "rows / 2"}, "'rows / 2' in grid", "use //"),
    ({"grid": "rows // 0"}, "'rows // 0' in grid", ""),
    ({"grid": "row"}, "unknown name row in grid", "did you mean rows?"),
    ({"grid": "step.rows"}, "step.rows in grid", "ties a dim"),
    ({"where": "m % 4 == 0"}, "unknown name m in where", "rows, n, WARP"),
    ({"flops": "2 * k"}, "unknown name k in flops", "known here"),
    ({"bytes": "k"}, "unknown name k in bytes", "known here"),
    ({"cpu": {"W": "f32"}}, "cpu= names W", "type variables: T"),
]


@pytest.mark.parametrize("options, message, hint", REFUSED, ids=lambda o: str(o)[:40])
def test_a_wrong_decorator_argument_shows_the_fix(options, message, hint):
    with pytest.raises(IronError) as error:
        _first_instance(options)
    head, *_, last = str(error.value).splitlines()
    assert head.startswith("test_declare.py:") and message in head and hint in last


def _first_instance(options: dict) -> None:
    spec = kernel(**{"types": FLOATS, "grid": "rows"} | options)(copy)
    del REGISTRY[spec.name]
    parse.instance(spec, *parse.instances(spec)[0])


@pytest.fixture(autouse=True)
def no_kernel_stays():
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def test_a_decorator_without_arguments_is_refused():
    with pytest.raises(IronError, match=r"test_declare.py:(.|\n)*write @kernel\(grid="):
        kernel(copy)


def test_a_tensor_begins_with_a_dtype():
    with pytest.raises(IronError, match=r"test_declare.py:(.|\n)*write In\[f32, 'rows', 'n'\]"):
        In["rows", "n"]


def test_constants_are_one_word():
    def scaled(out: Out[f32, 1], by: Const[f16]):
        out[0] = f32(by)

    with pytest.raises(IronError, match=r"by is Const\[f16\](.|\n)*use Const\[f32\]"):
        compiled(scaled)


def test_a_kernel_writes_its_outputs():
    def forgets(x: In[f32, 1], out: Out[f32, 1]):
        x[0] + 1

    def has_none(x: In[f32, 1]):
        x[0] + 1

    with pytest.raises(IronError, match="forgets never writes out"):
        compiled(forgets)
    with pytest.raises(IronError, match="has_none writes nothing"):
        compiled(has_none)


def test_two_kernels_of_one_name_in_one_file_are_refused():
    def make():
        def twin(out: Out[f32, 1]):
            out[0] = 1.0

        return twin

    first = make()

    def twin(out: Out[f32, 1]):
        out[0] = 2.0

    kernel(grid=1)(first)
    kernel(grid=1)(first)  # read again: the same one
    with pytest.raises(IronError, match="two kernels are named twin(.|\n)*the other one is in"):
        kernel(grid=1)(twin)


BROKEN = {
    "a syntax error": ("def f(:\n    pass\n", "kernels.py:1: error: invalid syntax"),
    "an unknown name": (
        "from iron import kernel\n@kernel(grid=GIRD)\ndef f():\n    pass\n",
        "NameError: name 'GIRD'",
    ),
    "a half constant": (
        "from iron import kernel, Out, Const, f32, f16\n@kernel(grid=1)\n"
        "def f(out: Out[f32, 1], c: Const[f16]):\n    out[0] = f32(c)\n",
        "kernels.py:3: error: f: c is Const[f16]",
    ),
    "a dim of the grid only": (
        "from iron import kernel, Out, f32\n@kernel(grid='m')\n"
        "def f(out: Out[f32, 1]):\n    out[0] = 1.0\n",
        "kernels.py:2: error: f: unknown name m in grid",
    ),
}


@pytest.mark.parametrize("text, message", BROKEN.values(), ids=BROKEN)
def test_check_finds_what_a_build_would_without_a_traceback(text, message, tmp_path):
    (tmp_path / "my_kernels.py").write_text(text)
    command = [sys.executable, "-m", "iron", "--kernels", str(tmp_path), "check"]
    done = subprocess.run(command, cwd=ROOT / "codegen", capture_output=True, text=True)
    assert done.returncode == 1 and message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "my_kernels.py:" in (
        done.stdout + done.stderr)  # fmt: skip


def test_check_passes_what_builds():
    assert build.check({}) == []

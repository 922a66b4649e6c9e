"""Builds the stand-alone software Metal for the tests; skips where the tools are missing."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
TOOLS = ["clang++-19", "cmake", "ninja"]


def need(*tools: str) -> None:
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}")


@cache
def folder() -> Path:
    """The build folder: BUTTER_SOFTMETAL_BUILD, or build/softmetal; made or brought up to date."""
    if sys.platform != "linux":
        pytest.skip("the software Metal runs on Linux")
    need(*TOOLS)
    out = Path(os.environ.get("BUTTER_SOFTMETAL_BUILD", REPOSITORY / "build/softmetal"))
    python = f"-DPython_EXECUTABLE={sys.executable}"
    subprocess.run(["cmake", "-S", HERE, "-B", out, "-G", "Ninja", python], check=True)
    subprocess.run(["ninja", "-C", out], check=True)
    return out


def run_case(name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs one of cases/*.mm in a process of its own."""
    out = folder()
    command = [out / "cases", out / "cases.metallib", name]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)


@cache
def case_names() -> list[str]:
    listed = subprocess.run([folder() / "cases", "--list"], capture_output=True, text=True)
    return listed.stdout.split()


@cache
def emitted() -> list[Path]:
    """Every .metal file that Iron emits for Butter's kernels."""
    out = folder() / "iron"
    command = [sys.executable, "-m", "iron", "build", "--emit", "msl", "--out", out]
    path = os.pathsep.join([str(REPOSITORY / "codegen"), str(REPOSITORY / "kernels")])
    subprocess.run(command, check=True, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": path})
    return sorted((out / "metal").glob("*.metal"))


def compile_msl(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, HERE / "msl/compile.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)

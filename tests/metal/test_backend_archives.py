"""Pipelines on disk: where the archives lie, and that a folder gone bad costs only time."""

import os
import subprocess
import sys

import pytest
from backend import Software, metal
from one_kernel import add

from butter import _native, loading
from butter.cli.interrupts import INTERRUPTED
from butter.selftest import facts

MISSED = 2  # one look into the archive, then the compiler; without an archive only that


@pytest.fixture(scope="module")
def software():
    metal()
    return Software()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("BUTTER_METAL_CACHE", str(folder))
    return folder


def compilations(software):
    """Calls of the compiler for one kernel on a new device, which leaves its archive behind."""
    software.reset()
    add()
    return software.calls("device newComputePipelineState")


def test_a_new_folder_is_made_and_used(software, cache):
    assert compilations(software) == MISSED
    assert [path.suffix for path in cache.iterdir()] == [".metalarchive"]
    assert compilations(software) == 1


def test_archives_lie_in_the_caches_of_the_user(software, tmp_path, monkeypatch):
    monkeypatch.delenv("BUTTER_METAL_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compilations(software) == 1  # no such folder, no archive
    (tmp_path / "Library/Caches").mkdir(parents=True)
    assert compilations(software) == MISSED
    assert len(list((tmp_path / "Library/Caches/butter").iterdir())) == 1
    assert compilations(software) == 1


@pytest.mark.parametrize("content", [b"", b"softmetal archive\ncopy__f32\n"])
def test_an_archive_without_the_kernel_is_written_anew(software, cache, content):
    add()
    (archive,) = cache.iterdir()
    archive.write_bytes(content)
    assert compilations(software) == MISSED
    assert compilations(software) == 1


def test_an_archive_that_cannot_be_replaced_leaves_no_partial_file(software, cache):
    add()
    (archive,) = cache.iterdir()
    archive.unlink()
    archive.mkdir()
    assert compilations(software) == MISSED
    assert compilations(software) == MISSED
    assert list(cache.iterdir()) == [archive]


def test_a_very_long_path_is_used(software, tmp_path, monkeypatch):
    folder = tmp_path / "/".join(["long" * 50] * 6)
    folder.mkdir(parents=True)
    monkeypatch.setenv("BUTTER_METAL_CACHE", str(folder))
    assert compilations(software) == MISSED
    assert compilations(software) == 1
    assert [path.suffix for path in folder.iterdir()] == [".metalarchive"]


UNUSABLE = {
    "No such file or directory": lambda folder: folder / "no" / "such",
    "Not a directory": lambda folder: folder / "file",
    "File name too long": lambda folder: folder / ("long" * 75),
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_a_folder_that_cannot_be_used_costs_only_time_and_is_named_once(
    software, tmp_path, monkeypatch, caplog, reason
):
    (tmp_path / "file").touch()
    path = UNUSABLE[reason](tmp_path)
    monkeypatch.setenv("BUTTER_METAL_CACHE", str(path))
    loading.warn_once.cache_clear()
    for _ in range(2):
        device = loading.open_device("metal", None)
        software.reset()
        add(device)
        assert software.calls("device newComputePipelineState") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("butter.loading", "WARNING")
    assert f"are not kept: {path}: {reason}. " in record.getMessage()
    assert facts.sources(device.info)["warning"] == record.getMessage()


def test_a_folder_that_is_used_or_not_wanted_needs_no_word(software, cache, monkeypatch, caplog):
    for folder in (str(cache), ""):
        monkeypatch.setenv("BUTTER_METAL_CACHE", folder)
        assert "warning" not in loading.open_device("metal", None).info
    assert not caplog.records


LEAVE = """
import os, signal
from butter.cli import interrupts
from butter.loading import open_device
from one_kernel import add
signal.signal(signal.SIGINT, signal.default_int_handler)  # the background may ignore it
interrupts.leave_at_once()
device = open_device("metal", None)
add(device)
os.kill(os.getpid(), signal.SIGINT)
print("still here")
"""


def test_ctrl_c_leaves_at_once_but_keeps_what_was_compiled(software, cache):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run(
        [sys.executable, "-c", LEAVE], env=environment, capture_output=True, text=True, timeout=100
    )
    assert (child.returncode, child.stdout, child.stderr) == (INTERRUPTED, "", "")
    assert len(list(cache.iterdir())) == 1
    assert compilations(software) == 1


def test_devices_save_what_they_compiled_once(software, cache):
    device = loading.open_device("metal", None)
    add(device)
    assert list(cache.iterdir()) == []
    _native.save_devices()
    (archive,) = cache.iterdir()
    archive.unlink()
    _native.save_devices()
    del device
    assert list(cache.iterdir()) == []

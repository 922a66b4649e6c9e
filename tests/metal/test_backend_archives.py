"""Pipelines on disk: where the archives lie, and that a folder gone bad costs only time."""

import pytest
from backend import Software, metal
from one_kernel import add

MISSED = 2  # one look into the archive, then the compiler


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


def test_a_folder_that_cannot_be_made_costs_only_time(software, tmp_path, monkeypatch):
    monkeypatch.setenv("BUTTER_METAL_CACHE", str(tmp_path / "no" / "such" / "folder"))
    assert compilations(software) == MISSED
    assert list(tmp_path.iterdir()) == []


def test_a_path_too_long_for_the_system_costs_only_time(software, tmp_path, monkeypatch):
    monkeypatch.setenv("BUTTER_METAL_CACHE", str(tmp_path / "/".join(["long" * 50] * 6)))
    assert compilations(software) == MISSED
    assert list(tmp_path.iterdir()) == []

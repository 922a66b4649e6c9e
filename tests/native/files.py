"""Makers of weight files, sound and hostile, in memory."""

import json
import struct
from pathlib import Path

# --- safetensors ---------------------------------------------------------------------------------

F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def safetensors_file(header: dict | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """Eight bytes of length, the header, the data; `length` lies about the first."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one_tensor(**fields) -> bytes:
    """A file of one F32[1] tensor with some of its fields replaced; four bytes of data."""
    return safetensors_file({"x": {**F32, **fields}}, b"data")


def _at(begin: int, end: int) -> dict:
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


_TENSOR = json.dumps(F32).encode()

# name: (file, error class, text that the message must hold)
SAFETENSORS_ATTACKS: dict[str, tuple[bytes, str, str]] = {
    "seven bytes": (b"\0" * 7, "FileFormatError", "got 7 bytes, need at least 8"),
    "header past the end": (safetensors_file({}, length=3), "FileFormatError", "truncated"),
    "header over the limit": (safetensors_file({}, length=100_000_001), "FileFormatError", "limit"),
    "header length wraps": (safetensors_file({}, length=2**64 - 8), "FileFormatError", "limit"),
    "no header": (safetensors_file(b""), "FileFormatError", "'{'"),
    "header is a list": (safetensors_file(b"[]"), "FileFormatError", "'{'"),
    "header starts with space": (safetensors_file(b" {}"), "FileFormatError", "'{'"),
    "header is not closed": (safetensors_file(b'{"x":'), "FileFormatError", "end of the text"),
    "text after the header": (safetensors_file(b"{}{}"), "FileFormatError", "need the end"),
    "trailing comma": (safetensors_file(b'{"x":%s,}' % _TENSOR, b"data"), "FileFormatError", "}"),
    "missing colon": (safetensors_file(b'{"x" 1}'), "FileFormatError", "need ':'"),
    "comment": (safetensors_file(b"{/**/}"), "FileFormatError", "need a string"),
    "nul bytes": (safetensors_file(b"{}\0\0"), "FileFormatError", r"\x00"),
    "name is not UTF-8": (safetensors_file(b'{"\xff":1}'), "FileFormatError", "UTF-8"),
    "name is overlong UTF-8": (safetensors_file(b'{"\xc0\x80":1}'), "FileFormatError", "UTF-8"),
    "name is a UTF-8 surrogate": (
        safetensors_file(b'{"\xed\xa0\x80":1}'),
        "FileFormatError",
        "UTF-8",
    ),
    "lone surrogate": (safetensors_file(b'{"\\ud800":1}'), "FileFormatError", "surrogate"),
    "swapped surrogates": (safetensors_file(b'{"\\udc00\\ud800":1}'), "FileFormatError", "surrog"),
    "bad escape": (safetensors_file(b'{"\\x":1}'), "FileFormatError", "escape"),
    "bad hex": (safetensors_file(b'{"\\u00g0":1}'), "FileFormatError", "four hex digits"),
    "escape at the end": (safetensors_file(b'{"\\'), "FileFormatError", "does not end"),
    "raw control character": (safetensors_file(b'{"\n":1}'), "FileFormatError", "control"),
    "duplicate tensor": (
        safetensors_file(b'{"x":%s,"x":%s}' % (_TENSOR, _TENSOR), b"data"),
        "FileFormatError",
        'duplicate key "x"',
    ),
    "duplicate after unescaping": (
        safetensors_file(b'{"x":%s,"\\u0078":%s}' % (_TENSOR, _TENSOR), b"data"),
        "FileFormatError",
        "duplicate",
    ),
    "duplicate field": (
        safetensors_file(b'{"x":{"shape":[1],"shape":[1]}}'),
        "FileFormatError",
        "duplicate",
    ),
    "tensor is a number": (safetensors_file({"x": 1}), "FileFormatError", "need an object"),
    "unknown field": (one_tensor(scale=1), "FileFormatError", "unknown field"),
    "no dtype": (safetensors_file({"x": {"shape": []}}), "FileFormatError", "needs dtype"),
    "unknown dtype": (one_tensor(dtype="F31"), "UnsupportedError", "supported: F64, F32, F16"),
    "dtype is a number": (one_tensor(dtype=32), "FileFormatError", "need a string"),
    "dtype in lower case": (one_tensor(dtype="f32"), "UnsupportedError", '"f32"'),
    "shape is a number": (one_tensor(shape=1), "FileFormatError", "need an array"),
    "negative dim": (one_tensor(shape=[-1]), "FileFormatError", "non-negative"),
    "minus zero": (
        safetensors_file(b'{"x":{"shape":[-0]}}'),
        "FileFormatError",
        "non-negative",
    ),
    "fractional dim": (one_tensor(shape=[1.0]), "FileFormatError", "non-negative integer"),
    "dim with exponent": (safetensors_file(b'{"x":{"shape":[1e0]}}'), "FileFormatError", "integer"),
    "leading zero": (safetensors_file(b'{"x":{"shape":[01]}}'), "FileFormatError", "need ','"),
    "dim past 64 bits": (one_tensor(shape=[2**64]), "FileFormatError", "2**64"),
    "dim is huge": (one_tensor(shape=[10**400]), "FileFormatError", "2**64"),
    "shape overflows": (one_tensor(shape=[2**32, 2**32]), "FileFormatError", "63 bits"),
    "shape times dtype overflows": (one_tensor(shape=[2**62]), "FileFormatError", "63 bits"),
    "shape wraps to the size": (one_tensor(shape=[2**62 + 1]), "FileFormatError", "63 bits"),
    "empty but huge": (one_tensor(shape=[0, 2**63], data_offsets=[0, 0]), "FileFormatError", "63"),
    "rank 33": (one_tensor(shape=[1] * 33), "FileFormatError", "more than 32 dims"),
    "size differs": (one_tensor(shape=[2]), "FileFormatError", "takes 8 bytes"),
    "offsets reversed": (one_tensor(data_offsets=[4, 0]), "FileFormatError", "end before"),
    "one offset": (one_tensor(data_offsets=[0]), "FileFormatError", "two data_offsets"),
    "three offsets": (one_tensor(data_offsets=[0, 4, 4]), "FileFormatError", "more than 2"),
    "offsets past the end": (
        safetensors_file({"x": F32}, b"dat"),
        "FileFormatError",
        "truncated",
    ),
    "offsets wrap": (
        one_tensor(shape=[2**61 - 1], data_offsets=[0, 2**63 - 4]),
        "FileFormatError",
        "the file holds 4",
    ),
    "overlap": (
        safetensors_file({"x": _at(0, 3), "y": _at(2, 4)}, b"data"),
        "FileFormatError",
        "overlap",
    ),
    "two at one place": (
        safetensors_file({"x": _at(0, 4), "y": _at(0, 4)}, b"data"),
        "FileFormatError",
        "overlap",
    ),
    "gap at the start": (safetensors_file({"x": _at(1, 4)}, b"data"), "FileFormatError", "gap"),
    "gap inside": (
        safetensors_file({"x": _at(0, 1), "y": _at(2, 4)}, b"data"),
        "FileFormatError",
        "gap",
    ),
    "bytes left over": (safetensors_file({"x": F32}, b"data+"), "FileFormatError", "cover 4 of 5"),
    "empty tensor inside another": (
        safetensors_file({"x": _at(0, 4), "y": _at(2, 2)}, b"data"),
        "FileFormatError",
        "overlap",
    ),
    "metadata holds a number": (
        safetensors_file({"__metadata__": {"a": 1}}),
        "FileFormatError",
        "need a string",
    ),
    "metadata is null": (safetensors_file({"__metadata__": None}), "FileFormatError", "an object"),
    "deep nesting": (safetensors_file(b'{"x":' + b"{" * 99999), "FileFormatError", "need a string"),
    "hostile name in the message": (
        safetensors_file({"\x1b[31m\n" + "é" * 9999: 1}),
        "FileFormatError",
        "need an object",
    ),
}

# --- the index of a sharded checkpoint -----------------------------------------------------------


def index_file(weight_map: object, **more) -> bytes:
    return json.dumps({"metadata": {"total_size": 1e9}, "weight_map": weight_map, **more}).encode()


INDEX_ATTACKS: dict[str, tuple[bytes, str, str]] = {
    "no weight map": (b'{"metadata":{}}', "FileFormatError", "weight_map"),
    "weight map is a list": (index_file([]), "FileFormatError", "need an object"),
    "shard is a number": (index_file({"x": 1}), "FileFormatError", "need a string"),
    "shard in the parent": (index_file({"x": "../a"}), "FileFormatError", "plain file name"),
    "shard is the parent": (index_file({"x": ".."}), "FileFormatError", "plain file name"),
    "shard is absolute": (index_file({"x": "/etc/passwd"}), "FileFormatError", "plain file name"),
    "shard with a backslash": (index_file({"x": "a\\b"}), "FileFormatError", "plain file name"),
    "shard with a nul": (index_file({"x": "a\0b"}), "FileFormatError", "plain file name"),
    "shard is empty": (index_file({"x": ""}), "FileFormatError", "plain file name"),
    "deep metadata": (b'{"metadata":' + b"[" * 99999, "FileFormatError", "nested deeper"),
    "bad number in metadata": (b'{"metadata":[1.]}', "FileFormatError", "need a digit"),
    "bad word in metadata": (b'{"metadata":nul}', "FileFormatError", "need a value"),
}

# --- GGUF ----------------------------------------------------------------------------------------

U8, I8, U16, I16, U32, I32, GF32, BOOL, STRING, ARRAY, U64, I64, GF64 = range(13)
_CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", GF32: "f", BOOL: "B"}
_CODES |= {U64: "Q", I64: "q", GF64: "d"}


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(kind: int, item) -> bytes:
    """One metadata value without its kind; an array is (kind of the elements, elements)."""
    if kind == STRING:
        return text(item)
    if kind == ARRAY:
        inner, items = item
        return struct.pack("<IQ", inner, len(items)) + b"".join(value(inner, i) for i in items)
    return struct.pack("<" + _CODES[kind], item)


def pair(key: str | bytes, kind: int, item) -> bytes:
    return text(key) + struct.pack("<I", kind) + value(kind, item)


def info(name: str | bytes, dims: list[int], kind: int, offset: int) -> bytes:
    """One entry of the tensor list; dims are innermost first, as in the file."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def gguf_file(
    pairs: list[bytes] = (),
    infos: list[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    alignment: int = 32,
) -> bytes:
    """A whole file; `counts` lies about the numbers of tensors and of metadata pairs."""
    tensors, metadata = counts or (len(infos), len(pairs))
    head = struct.pack("<4sIQQ", b"GGUF", version, tensors, metadata)
    head += b"".join(pairs) + b"".join(infos)
    return head + b"\0" * (-len(head) % alignment) + data


def _tensor(*args, data: int = 32) -> bytes:
    return gguf_file([], [info("x", *args)], b"\0" * data)


def _pair(raw: bytes) -> bytes:
    return gguf_file([raw])


_ALIGN = "general.alignment"
_NEST = b"".join(struct.pack("<IQ", ARRAY, 1) for _ in range(9999))

GGUF_ATTACKS: dict[str, tuple[bytes, str, str]] = {
    "three bytes": (b"GGU", "FileFormatError", "3 are left"),
    "wrong magic": (b"GGML" + b"\0" * 60, "FileFormatError", 'need "GGUF"'),
    "version 0": (gguf_file(version=0), "UnsupportedError", "supported: 2, 3"),
    "version 1": (gguf_file(version=1), "UnsupportedError", "supported: 2, 3"),
    "version 4": (gguf_file(version=4), "UnsupportedError", "supported: 2, 3"),
    "big-endian": (
        struct.pack(">4sIQQ", b"GGUF", 3, 0, 0),
        "UnsupportedError",
        "big-endian",
    ),
    "tensor count huge": (gguf_file(counts=(2**64 - 1, 0)), "FileFormatError", "tensor count"),
    "metadata count huge": (gguf_file(counts=(0, 2**63)), "FileFormatError", "metadata count"),
    "more tensors than bytes": (
        gguf_file([pair("a", STRING, "y" * 99)], counts=(5, 1), alignment=1),
        "FileFormatError",
        "tensor count is 5",
    ),
    "key length huge": (_pair(struct.pack("<Q", 2**64 - 1) + b"k" * 9), "FileFormatError", "key"),
    "key past the format's limit": (_pair(pair("k" * 65536, U8, 1)), "FileFormatError", "65535"),
    "key is not UTF-8": (_pair(pair(b"\xff", U8, 1)), "FileFormatError", "UTF-8"),
    "duplicate key": (gguf_file([pair("a", U8, 1)] * 2), "FileFormatError", "duplicate"),
    "kind 13": (_pair(text("a") + struct.pack("<I", 13) + b"\0" * 9), "FileFormatError", "0 to 12"),
    "kind huge": (_pair(text("a") + b"\xff" * 20), "FileFormatError", "0 to 12"),
    "bool is 2": (_pair(pair("a", BOOL, 2)), "FileFormatError", "need 0 or 1"),
    "bool in array is 2": (_pair(pair("a", ARRAY, (BOOL, [0, 2]))), "FileFormatError", "0 or 1"),
    "string past the end": (
        _pair(text("a") + struct.pack("<IQ", STRING, 2**40)),
        "FileFormatError",
        "string is",
    ),
    "array length huge": (
        _pair(text("a") + struct.pack("<IIQ", ARRAY, U32, 2**62 + 1)),
        "FileFormatError",
        "array length",
    ),
    "array of strings huge": (
        _pair(text("a") + struct.pack("<IIQ", ARRAY, STRING, 2**61)),
        "FileFormatError",
        "array length",
    ),
    "array of unknown kind": (
        _pair(text("a") + struct.pack("<IIQ", ARRAY, 99, 1)),
        "FileFormatError",
        "0 to 12",
    ),
    "arrays without end": (
        _pair(text("a") + struct.pack("<I", ARRAY) + _NEST),
        "FileFormatError",
        "nested deeper",
    ),
    "alignment 0": (_pair(pair(_ALIGN, U32, 0)), "FileFormatError", "power of two"),
    "alignment 24": (_pair(pair(_ALIGN, U32, 24)), "FileFormatError", "power of two"),
    "alignment as u64": (_pair(pair(_ALIGN, U64, 32)), "FileFormatError", "u32"),
    "alignment as string": (_pair(pair(_ALIGN, STRING, "32")), "FileFormatError", "u32"),
    "alignment past the end": (
        gguf_file([pair(_ALIGN, U32, 2**31)], [info("x", [8], 0, 0)], b"\0" * 32),
        "FileFormatError",
        "truncated",
    ),
    "five dims": (_tensor([1] * 5, 0, 0), "FileFormatError", "at most 4"),
    "dim count huge": (
        gguf_file([], [text("x") + b"\xff" * 99]),
        "FileFormatError",
        "dims, need at most 4",
    ),
    "dim is 0": (_tensor([8, 0], 0, 0), "FileFormatError", "a dim is 0"),
    "product overflows": (_tensor([2**32, 2**32], 0, 0), "FileFormatError", "63 bits"),
    "bytes overflow": (_tensor([2**61], 0, 0), "FileFormatError", "63 bits"),
    "product wraps to the size": (_tensor([2**61, 8, 1], 0, 0), "FileFormatError", "63 bits"),
    "row is not whole blocks": (_tensor([31], 2, 0), "FileFormatError", "multiple of 32"),
    "block spans rows": (_tensor([16, 2], 8, 0), "FileFormatError", "multiple of 32"),
    "scalar of blocks": (_tensor([], 12, 0), "FileFormatError", "multiple of 256"),
    "type 99": (_tensor([8], 99, 0), "UnsupportedError", "type 99 is not supported"),
    "type known by name": (
        _tensor([256], 16, 0),
        "UnsupportedError",
        "IQ2_XXS is not supported; supported: F32, F16, Q4_0",
    ),
    "offset is not aligned": (_tensor([1], 0, 4), "FileFormatError", "alignment 32"),
    "offset past the end": (_tensor([1], 0, 2**63), "FileFormatError", "truncated"),
    "offset wraps": (_tensor([16], 0, 2**64 - 32), "FileFormatError", "truncated"),
    "one byte short": (_tensor([8], 0, 0, data=31), "FileFormatError", "truncated"),
    "no data at all": (_tensor([8], 0, 0, data=0)[:-5], "FileFormatError", "truncated"),
    "overlap": (
        gguf_file([], [info("x", [16], 0, 0), info("y", [8], 0, 32)], b"\0" * 64),
        "FileFormatError",
        "overlap",
    ),
    "two at one place": (
        gguf_file([], [info("x", [8], 0, 0), info("y", [8], 0, 0)], b"\0" * 64),
        "FileFormatError",
        "overlap",
    ),
    "duplicate tensor": (
        gguf_file([], [info("x", [8], 0, 0), info("x", [8], 0, 32)], b"\0" * 64),
        "FileFormatError",
        'duplicate tensor "x"',
    ),
    "tensor name is not UTF-8": (
        gguf_file([], [info(b"\xc3(", [8], 0, 0)], b"\0" * 32),
        "FileFormatError",
        "UTF-8",
    ),
}

# --- small sound files, the seeds of mutation ----------------------------------------------------

SOUND_SAFETENSORS = [
    safetensors_file(b"{}"),
    safetensors_file({"x": F32}, b"data"),
    safetensors_file(
        {
            "__metadata__": {"format": "pt", "é": "\U0001f9c8"},
            "a.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
            "a.scales": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [12, 15]},
            "empty": {"dtype": "I64", "shape": [0, 7], "data_offsets": [15, 15]},
            "scalar": {"dtype": "F64", "shape": [], "data_offsets": [15, 23]},
        },
        bytes(range(23)),
    ),
]

SOUND_INDEX = [index_file({"a": "model-00001-of-00002.safetensors", "b": "b.safetensors"})]

SOUND_GGUF = [
    gguf_file(alignment=1),
    gguf_file([], [info("x", [8], 0, 0)], b"\0" * 32),
    gguf_file(
        [
            pair("general.alignment", U32, 64),
            pair("name", STRING, "butter"),
            pair("tokens", ARRAY, (STRING, ["a", "", b"\xff\xfe", "é"])),
            pair("scores", ARRAY, (GF32, [0.5, -1.0])),
            pair("flags", ARRAY, (BOOL, [0, 1, 1])),
            pair("nested", ARRAY, (ARRAY, [(U8, [1, 2]), (STRING, ["x"]), (ARRAY, [(I64, [])])])),
            pair("small", I8, -3),
            pair("large", U64, 2**64 - 1),
            pair("eps", GF64, 1e-5),
        ],
        [
            info("blk.0.w", [32, 2], 3, 0),
            info("blk.0.norm", [16], 0, 64),
            info("out", [256, 1, 1, 1], 14, 128),
        ],
        bytes(128) + b"Q6_K.." * 35,  # ends with the last tensor
        alignment=64,
        version=2,
    ),
]


def write(path: Path, content: bytes) -> Path:
    """A fresh file each time: never write into one that may still be mapped."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    return path

"""What a kernel is tested with: dims that fit it, inputs and a step block, all from its manifest.

Nothing here is written for one kernel, so that a new one is tested without a line of its own. The
same inputs are made on every platform: they come from integers, not from a library's generator.
"""

import zlib
from collections.abc import Iterator, Mapping

import numpy as np

from ..manifest import Kernel, Param
from ..step import HEADER_WORDS, to_bits
from .layout import plain_shape

NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i8": np.int8, "u8": np.uint8,
         "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32}  # fmt: skip

# What each dim may be: the first that the kernel's constraints allow, then one of OTHERS.
# 37 rows are a whole tile and a part of one on each device; 5 are a batch of 4 and a rest.
DIMS = {"rows": (5,), "splits": (2,), "k": (128, 256), "H": (6, 8, 10, 14, 16), "Hkv": (2,),
        "heads": (3,), "D": (10,), "half": (4,), "P": (128,), "R": (128,), "V": (300,),
        "stored": (41,), "rowsL": (2,)}  # fmt: skip
OTHERS = (37, 64, 32, 128, 256, 16, 8, 4, 2, 1, 3, 5, 512, 1024)
WARPS = (4, 8, 16, 32)

# 127 keys in 2 parts make parts of 64 for each width of a warp.
STEP = {"pos": 29, "kv_len": 127, "temperature": 0.75, "top_k": 20, "top_p": 0.9, "min_p": 0.5,
        "repetition": 1.25, "presence": 0.25, "frequency": 0.125, "draw": 3}  # fmt: skip
CONST = 0.125

INDEX_END = 23  # below each dim that is indexed, above most ranges' ends
FRACTION_BITS = {"f32": 16, "f16": 10, "bf16": 7}


def choose_dims(kernel: Kernel) -> dict[str, int]:
    """Small dims that meet every constraint for every warp; raises ValueError if none do."""
    rules = kernel.constraints
    sizes = [e for p in kernel.params for e in p.shape]

    def fits(dims: dict[str, int]) -> bool:
        known = dims.keys() | {"WARP"}
        return all(
            all(r.value(dims | {"WARP": w}) for r in rules if known.issuperset(r.names()))
            and all(e.value(dims | {"WARP": w}) > 0 for e in sizes if known.issuperset(e.names()))
            for w in WARPS
        )

    def search(names: tuple[str, ...], dims: dict[str, int]) -> Iterator[dict[str, int]]:
        if not names:
            yield dims
            return
        for value in dict.fromkeys((*DIMS.get(names[0], ()), *OTHERS)):
            if fits(tried := {**dims, names[0]: value}):
                yield from search(names[1:], tried)

    found = next(search(kernel.dims, {}), None)
    if found is None:
        raise ValueError("no small dims meet its constraints")
    return found


def step_fields(dims: Mapping[str, int], fields: Mapping[str, tuple[int, str]]) -> dict[str, float]:
    """Every field of the step block: a dim of the same name decides, then STEP, else 1."""
    return {name: dims.get(name, STEP.get(name, 1)) for name in fields if name != "out_token"}


def step_words(dims: Mapping[str, int], fields: Mapping[str, tuple[int, str]]) -> list[int]:
    words = [0] * HEADER_WORDS
    for name, value in step_fields(dims, fields).items():
        index, dtype = fields[name]
        words[index] = to_bits(value) if dtype == "f32" else int(value)
    return words


def make_inputs(kernel: Kernel, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The plain form of each tensor that the kernel reads; bf16 as its bits."""
    return {
        p.name: values(p, plain_shape(p, dims), zlib.crc32(f"{kernel.symbol} {p.name}".encode()))
        for p in kernel.params
        if p.kind != "out"
    }


def values(param: Param, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Floats in [-1, 1), exact in their dtype. Integers of one axis are indices or counts, below
    INDEX_END; those of more axes are packed codes, so any bits, or else two bf16 ("pairs").
    """
    if param.shape[-1].text == "pairs":
        halves = floats(random_words(2 * int(np.prod(shape)), seed), "bf16")
        return halves.view(np.uint32).reshape(shape)
    words = random_words(int(np.prod(shape)), seed).reshape(shape)
    dtype = NUMPY[param.dtype]
    if param.dtype in FRACTION_BITS:
        return floats(words, param.dtype)
    return (words % INDEX_END if len(shape) == 1 else words).astype(dtype)


def floats(words: np.ndarray, dtype: str) -> np.ndarray:
    """In [-1, 1), from the lowest bits of each word; bf16 as its bits."""
    bits = FRACTION_BITS[dtype]
    exact = (words % (1 << bits + 1)).astype(np.float32) / np.float32(1 << bits) - np.float32(1)
    if dtype == "bf16":
        return (exact.view(np.uint32) >> 16).astype(NUMPY[dtype])
    return exact.astype(NUMPY[dtype])


def random_words(count: int, seed: int) -> np.ndarray:
    """32 random bits each: splitmix64 of a counter."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(seed << 20)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) >> np.uint64(32)


def poison(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An output before its kernel has run: NaN, so that what is not written shows."""
    nan = {"f32": 0x7FC0DEAD, "f16": 0x7EAD, "bf16": 0x7FED}
    kind = np.dtype(NUMPY[dtype])
    pattern = nan.get(dtype, int.from_bytes(b"\xad" * kind.itemsize, "little"))
    return np.full(shape, pattern, f"u{kind.itemsize}").view(kind)


def as_floats(array: np.ndarray, dtype: str) -> np.ndarray:
    """Any array in float64; bf16 comes as its bits."""
    if dtype == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)

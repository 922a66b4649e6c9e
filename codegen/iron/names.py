"""Names that other parts build on."""

# The storage types a kernel may name, with their size in bytes.
DTYPES = {
    "f32": 4, "f16": 2, "bf16": 2,
    "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4,
}  # fmt: skip
FLOATS = ("f32", "f16", "bf16")
INTS = ("i8", "u8", "i16", "u16", "i32", "u32")
# What a load of a small integer gives: they exist only in memory.
WIDE = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}


def int_range(dtype: str) -> tuple[float, float]:
    """The literals an integer dtype takes; unsigned ones also take negative ones for their bits."""
    if dtype not in INTS:
        return float("-inf"), float("inf")
    bits = 8 * DTYPES[dtype]
    return -(1 << bits - 1), (1 << bits - (dtype[0] == "i")) - 1


def symbol(kernel: str, types: dict[str, str], statics: dict[str, int]) -> str:
    """The emitted name of one instance: kernel, types and statics in declaration order."""
    parts = [kernel]
    if types:
        parts.append("_".join(types.values()))
    if statics:
        parts.append("_".join(f"{k}{v}" for k, v in statics.items()))
    return "__".join(parts)

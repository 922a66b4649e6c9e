"""Weight matrices [n, k]: how each stored form is loaded, multiplied and read row by row."""

import math
from array import array
from dataclasses import dataclass

from ._native import first_not_finite
from .array import Arena, Array, empty
from .checkpoint import Stored
from .errors import WeightError


@dataclass(frozen=True)
class Format:
    """Affine codes: value = code * scale + bias per group of `group` inputs."""

    kernel: str  # brings the stored bytes into tile layout
    bits: int
    group: int
    is_symmetric: bool
    block: int  # inputs per stored block
    block_bytes: int

    @property
    def bits_per_weight(self) -> float:
        """In tile layout, with the f16 scales and biases."""
        return self.bits + (16 if self.is_symmetric else 32) / self.group


# GGUF's spelling -> what it becomes.
FORMATS = {
    "Q4_0": Format("repack_q4_0", 4, 32, True, 32, 18),
    "Q4_1": Format("repack_q4_1", 4, 32, False, 32, 20),
    "Q8_0": Format("repack_q8_0", 8, 32, True, 32, 34),
    "Q4_K": Format("repack_q4_k", 4, 32, False, 256, 144),
    "Q5_K": Format("repack_q5_k", 5, 32, False, 256, 176),
    "Q6_K": Format("repack_q6_k", 6, 16, False, 256, 210),
}


class DenseMatrix:
    """f32, f16 or bf16, used in place where the device can read the file's pages."""

    def __init__(self, stored: Stored, shape: tuple[int, int]):
        self.name, self.shape, self.dtype = stored.name, shape, stored.type
        self.is_in_place = stored.order is None
        self.array: Array | None = None

    def arrays(self, warp: int) -> list[tuple[tuple[int, ...], str]]:
        """Shape and dtype of what loading it takes from an arena."""
        return [] if self.is_in_place else [(self.shape, self.dtype)]

    def load(self, arena: Arena, stored: Stored) -> None:
        if stored.order is None:
            buffer = arena.device.adopt(stored.mapping, stored.offset, stored.nbytes)
            self.array = Array(buffer, self.shape, self.dtype)
        else:
            rows = stored.bytes().reshape(self.shape[0], -1)
            self.array = arena.empty(self.shape, self.dtype)
            self.array.write(rows[list(stored.order)])
            stored.release()

    @property
    def nbytes(self) -> int:
        return self.array.nbytes if self.array else 0

    def check_finite(self) -> None:
        check_finite(self.name, self.array)

    def product(self, p, x):
        """x [rows, k] times the transposed matrix: [rows, n]."""
        if p.device.has_bf16_dot and self._has_pairs and not p.exact:
            multiply = p.gemv_bf16 if p.rows == 1 else p.gemm_bf16
            return multiply(x.rounded().view("u32"), p.bind(self.array).view("u32"))
        multiply = p.gemv if p.rows == 1 else p.gemm
        return multiply(x.plain(), self)

    @property
    def _has_pairs(self) -> bool:
        """Whether each row is whole aligned words of two bf16."""
        if self.array is None or self.dtype != "bf16":
            return False
        return self.shape[1] % 2 == 0 and self.array.offset % 4 == 0

    def gather(self, p, ids):
        """Rows of the matrix: [len(ids), k]."""
        return p.gather(self, ids)


class QuantizedMatrix:
    """Codes, scales and biases in tile layout."""

    def __init__(self, name: str, shape: tuple[int, int], form: Format):
        self.name, self.shape, self.format = name, shape, form
        self.codes: Array | None = None
        self.scales: Array | None = None
        self.biases: Array | None = None

    @property
    def statics(self) -> dict[str, int]:
        form = self.format
        return {"bits": form.bits, "G": form.group, "SYM": int(form.is_symmetric)}

    @property
    def _parts(self) -> tuple:
        # Kernels take three tensors; symmetric formats have no biases and read none.
        return self.codes, self.scales, self.biases or self.scales

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.codes, self.scales, self.biases) if a is not None)

    @property
    def block(self) -> int:
        """Inputs that share one scale when activations are int8."""
        return min(self.format.group, 32)

    def arrays(self, warp: int) -> list[tuple[tuple[int, ...], str]]:
        """Shape and dtype of what loading it takes from an arena: codes, scales, biases."""
        (n, k), form = self.shape, self.format
        tiles, groups = -(-n // warp), k // form.group
        codes = (tiles, groups, form.group * form.bits // 32, warp)
        companions = [((tiles, groups, warp), "f16")] * (1 if form.is_symmetric else 2)
        return [(codes, "u32"), *companions]

    def _allocate(self, arena: Arena) -> list:
        """Memory for the parts; returns their ranges."""
        parts = [arena.empty(*a) for a in self.arrays(arena.device.warp)]
        self.codes, self.scales, *biases = parts
        self.biases = biases[0] if biases else None
        return [part.range for part in parts]

    def load(self, arena: Arena, stored: Stored) -> None:
        self.load_rows(arena, stored, 0)
        self.release(stored)

    def release(self, stored: Stored) -> None:
        """Drop the file's pages from memory."""
        stored.release()

    def load_rows(self, arena: Arena, stored: Stored, first: int) -> None:
        """Fill the matrix with as many of the checkpoint's rows, from `first` on."""
        (n, k), device = self.shape, arena.device
        rows = stored.order or range(stored.shape[0])
        order = empty(device, (n,), "u32")
        order.write(array("I", rows[first : first + n]))
        raw = (device.adopt(stored.mapping, stored.offset, stored.nbytes), 0, stored.nbytes)
        ranges = [raw, raw, order.range, *self._allocate(arena)]
        dims = {"n": n, "k": k, "stored": stored.shape[0]}
        run_kernel(device, self.format.kernel, ranges, dims)

    def check_finite(self) -> None:
        check_finite(self.name, self.scales)
        if self.biases is not None:
            check_finite(self.name, self.biases)

    def product(self, p, x):
        """x [rows, k] times the transposed matrix: [rows, n]."""
        n, k = self.shape
        one = p.rows == 1
        if p.exact:
            multiply = p.gemv_q if one else p.gemm_q
            return multiply(x.plain(), *self._parts, **self.statics, dims={"n": n, "k": k})
        multiply = p.gemv_qi8 if one else p.gemm_qi8
        q = x.quantized(self.block)
        return multiply(
            q.codes.view("u32"), q.scales, q.sums, *self._parts, **self.statics,
            dims={"n": n, "k": k},
        )  # fmt: skip

    def gather(self, p, ids):
        """Rows of the matrix, decoded: [len(ids), k]."""
        n, k = self.shape
        return p.gather_q(*self._parts, ids, **self.statics, dims={"vocab": n, "n": k})


Matrix = DenseMatrix | QuantizedMatrix


def matrix(stored: Stored, shape: tuple[int, int]) -> Matrix:
    """The kind of matrix that a stored tensor becomes. Raises WeightError if it becomes none."""
    if stored.is_dense:
        return DenseMatrix(stored, shape)
    form = FORMATS.get(stored.type)
    if form is None:
        raise WeightError(f"got {stored.type}, need f32, f16, bf16, {', '.join(FORMATS)}")
    if shape[1] % form.block:
        raise WeightError(f"{stored.type}: got {shape[1]} inputs, need a multiple of {form.block}")
    return QuantizedMatrix(stored.name, shape, form)


def run_kernel(device, name: str, ranges: list, dims: dict, dtypes=None, statics=None) -> None:
    """Run one kernel now; dims, dtypes and statics by name."""
    from .manifest import manifest

    kernel = manifest().find(name, dtypes or {}, statics or {}, "f32")
    device.run(kernel.symbol, ranges, (), [dims[d] for d in kernel.dims])


def check_finite(name: str, array: Array | None) -> None:
    """Raise WeightError if a value is infinite or not a number; touches every page once."""
    if array is None:
        return
    at = first_not_finite(array.buffer, array.dtype, array.offset, array.nbytes)
    if at is not None:
        raise WeightError(
            f"[weights] {name}: value {at} of {math.prod(array.shape)} is infinite or not a "
            "number. The file is damaged; download it again."
        )

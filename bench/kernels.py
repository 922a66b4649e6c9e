"""Time the kernels that matter, each alone, beside the limits of this machine.

    python bench/kernels.py --threads 1 2 --only gemv

A program holds one kernel many times over, so that the host's part is out of the measurement. Its
inputs rotate through more memory than the caches hold, as the weights of a model do.
"""

import argparse
import json
import math
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "bandwidth"))

from bandwidth import peaks, read_gb_per_s  # noqa: E402  (found through the line above)

from butter import _native  # noqa: E402
from butter.array import DTYPE_BYTES  # noqa: E402
from butter.manifest import Kernel, manifest  # noqa: E402
from butter.step import step_words  # noqa: E402

RING_BYTES = 128 << 20
MAX_COPIES = 256
RUN_FLOPS = 1e9  # a program of fewer copies, where arithmetic takes longer than memory
PART = 256  # keys of one part of decode attention
SAMPLING = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repetition": 1.1}


@dataclass(frozen=True)
class Shape:
    """One line of the table: kernels by symbol that run in turn, and their dims."""

    name: str
    symbols: tuple[str, ...]
    dims: dict[str, int]
    step: dict[str, float] = field(default_factory=dict)
    unit: str = "f32"  # which arithmetic peak bounds it


def shapes() -> list[Shape]:
    """The matrices of SmolLM2-135M and of a 1B Llama, attention, and sampling."""
    rows = []
    q4, q8 = "f32__bits4_G32_SYM0", "f32__bits8_G32_SYM1"
    for n, k, kind in [(1536, 576, q4), (576, 1536, q4), (49152, 576, q8), (8192, 2048, q4)]:
        dims = {"rows": 1, "n": n, "k": k}
        rows.append(Shape(f"gemv_qi8 {kind[5:10]} {n}×{k}", (f"gemv_qi8__{kind}",), dims,
                          unit="int8"))  # fmt: skip
    for n, k in [(1536, 576), (576, 1536), (8192, 2048)]:
        dims = {"rows": 256, "n": n, "k": k}
        rows.append(Shape(f"gemm_qi8 bits4 256 rows {n}×{k}", (f"gemm_qi8__{q4}",), dims,
                          unit="int8"))  # fmt: skip
    for kind in ("f32", "bf16"):
        dims = {"rows": 1, "n": 2048, "k": 2048}
        rows.append(Shape(f"gemv {kind} 2048×2048", (f"gemv__f32_{kind}",), dims))
        dims = {"rows": 256, "n": 2048, "k": 2048}
        rows.append(Shape(f"gemm {kind} 256 rows 2048×2048", (f"gemm__f32_{kind}",), dims))
    for count, name in [(1, "gemv_bf16"), (256, "gemm_bf16")]:
        size = f"{count} rows 2048×2048" if count > 1 else "2048×2048"
        dims = {"rows": count, "n": 2048, "pairs": 1024}
        rows.append(Shape(f"{name} {size}", (f"{name}__f32",), dims, unit="bf16"))
    for heads, kv, shared in [(9, 3, 3), (32, 8, 4)]:
        for keys in (1024, 8192, 32768):
            parts = min(16, keys // PART)
            dims = {"H": heads, "D": 64, "Hkv": kv, "P": keys, "splits": parts}
            step = {"pos": keys - 1, "kv_len": keys, "splits": parts}
            name = f"sdpa_decode f16 {heads}/{kv} heads, {keys} keys"
            rows.append(Shape(name, (f"sdpa_decode__f32_f16__QH{shared}",), dims, step))
    chain = ("tops", "border", "masses", "draw")
    for name, step in [("greedy", {}), ("sampled", SAMPLING)]:
        for vocab in (49152, 262144):
            symbols = tuple(f"sample_{part}" for part in chain)
            rows.append(Shape(f"sampling, {name}, V {vocab}", symbols, {"rowsL": 1, "V": vocab},
                              {"top_p": 1, "repetition": 1, "sample": 1, **step}))  # fmt: skip
    return rows


class Bench:
    """Runs shapes on one device."""

    def __init__(self, threads: int, budget_s: float):
        self.device = _native.open_device("cpu", threads=threads)
        self.budget_s = budget_s
        raw = np.random.default_rng(0).integers(0, 2**31, 1 << 20, dtype=np.uint32)
        self._noise = {
            "u32": raw,
            "i8": raw.astype(np.int8),
            "f32": np.sin(raw.astype(np.float32)),
            "f16": np.sin(raw.astype(np.float32)).astype(np.float16),
            "bf16": (np.sin(raw.astype(np.float32)).view(np.uint32) >> 16).astype(np.uint16),
        }

    def run(self, shape: Shape, ring_bytes: int = RING_BYTES) -> dict:
        """Median and range of µs per kernel, bytes and operations."""
        kernels = [self._kernel(symbol) for symbol in shape.symbols]
        dims = shape.dims | {"WARP": self.device.warp}
        sizes = {p.name: self._nbytes(p, dims) for k in kernels for p in k.params}
        each = sum(sizes.values())
        work = 2 * math.prod(dims.get(d, 0) for d in ("rows", "n", "k"))
        copies = max(
            1, min(MAX_COPIES, math.ceil(ring_bytes / each), int(RUN_FLOPS / max(work, 1)))
        )
        program = _native.Program(self.device, 1)
        types = {p.name: p for k in kernels for p in k.params}
        for _ in range(copies):
            ids = {n: self._tensor(program, types[n], sizes[n]) for n in sizes}
            for kernel in kernels:
                consts = [0.125 for _ in kernel.consts]
                program.dispatch(
                    kernel.symbol, [ids[p.name] for p in kernel.params], consts,
                    [dims[d] for d in kernel.dims],
                )  # fmt: skip
        plan = program.finish()
        words = step_words(rows=1, **shape.step) if shape.step else step_words(rows=1)
        times = self._time(plan.prepare("icb"), words, copies)
        flops = plan.cost(words)[1] / copies
        # Parameters by their sizes: what must cross the memory bus at least once.
        return {
            "name": shape.name, "threads": self.device.threads, "isa": self.device.isa,
            "us": statistics.median(times), "us_min": min(times), "us_max": max(times),
            "bytes": each, "flops": flops, "unit": shape.unit, "copies": copies,
        }  # fmt: skip

    def _time(self, replay, words: list[int], copies: int) -> list[float]:
        replay.run(words)
        times: list[float] = []
        start = time.perf_counter()
        while len(times) < 3 or (time.perf_counter() - start < self.budget_s and len(times) < 50):
            began = time.perf_counter()
            replay.run(words)
            times.append((time.perf_counter() - began) / copies * 1e6)
        return times

    def _kernel(self, symbol: str) -> Kernel:
        name = symbol.split("__")[0]
        return next(k for k in manifest().instances(name) if k.symbol == symbol)

    def _nbytes(self, param, dims: dict[str, int]) -> int:
        return DTYPE_BYTES[param.dtype] * math.prod(e.value(dims) for e in param.shape)

    def _tensor(self, program, param, nbytes: int) -> int:
        buffer = self.device.allocate(nbytes)
        if param.kind != "out" and param.name not in ("counts", "next", "bias"):
            noise = self._noise[param.dtype].view(np.uint8)
            view = buffer.array("u8", (nbytes,))
            for start in range(0, nbytes, noise.size):
                part = view[start : start + noise.size]
                part[:] = noise[: part.size]
        return program.buffer(buffer, 0, nbytes, param.dtype)


def with_limits(row: dict, bandwidth: dict[int, float], core: dict[str, float]) -> dict:
    """Adds the rates, and the share of the nearer limit: memory or arithmetic."""
    seconds = row["us"] / 1e6
    memory_s = row["bytes"] / (bandwidth[row["threads"]] * 1e9)
    peak = core[row["unit"]] * row["threads"] * 1e9
    compute_s = row["flops"] / peak if peak else 0.0
    return row | {
        "gb_s": row["bytes"] / seconds / 1e9,
        "gop_s": row["flops"] / seconds / 1e9,
        "of_limit": max(memory_s, compute_s) / seconds,
        "bound": "memory" if memory_s >= compute_s else "arithmetic",
    }


def measure(
    threads: list[int], bandwidth: dict, core: dict, *, only: str = "", budget_s: float = 0.15
) -> list[dict]:
    rows = []
    for count in threads:
        bench = Bench(count, budget_s)
        rows += [
            with_limits(bench.run(shape), bandwidth, core)
            for shape in shapes()
            if only in shape.name and core.get(shape.unit)
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each shape")
    parser.add_argument("--limits", help='JSON: {"bandwidth": {"1": GB/s}, "core": {…}}')
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.limits:
        limits = json.loads(options.limits)
        bandwidth = {int(k): v for k, v in limits["bandwidth"].items()}
        core = limits["core"]
    else:
        bandwidth = {t: statistics.median(read_gb_per_s(t, repeats=5)) for t in options.threads}
        core = peaks()
    rows = measure(options.threads, bandwidth, core, only=options.only, budget_s=options.seconds)
    if options.json:
        print(json.dumps(rows))
        return
    for r in rows:
        print(
            f"{r['threads']} thr  {r['name']:42} {r['us']:9.1f} µs ({r['us_min']:.1f}.."
            f"{r['us_max']:.1f}) {r['gb_s']:6.1f} GB/s {r['gop_s']:7.1f} GOP/s "
            f"{r['of_limit']:4.0%} of {r['bound']}"
        )


if __name__ == "__main__":
    main()

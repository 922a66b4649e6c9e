"""One kernel at a time, in every dispatch mode, against its reference."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import _native
from ..engine import MODES
from ..errors import KernelError
from ..manifest import Kernel, Param, manifest
from . import inputs, layout
from .references import Case, checksum, difference, is_exact

MAX_ROWS = 8
# Of the largest value of an output: sums in another order and our exp in f32; two roundings else.
TOLERANCE = {"f32": 5e-6, "f16": 2.0**-9, "bf16": 2.0**-6}


@dataclass(frozen=True)
class Outcome:
    """What one test showed."""

    item: str  # the kernel instance
    mode: str
    status: str  # ok, wrong, no code (it did not compile), failed, died, no test
    message: str = ""
    error: float = 0.0  # of the tolerance; at most 1 is good

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check(device, kernel: Kernel, case: Case) -> list[Outcome]:
    """Run one instance in all modes; never raises an Exception."""
    if case.missing:
        return [Outcome(kernel.symbol, "all", "no test", case.missing)]
    try:
        bench = _Setup(device, kernel, case)
    except Exception as error:
        return [_failure(kernel.symbol, "all", error)]
    return [_one(bench, mode) for mode in MODES]


def _one(setup: "_Setup", mode: str) -> Outcome:
    symbol = setup.kernel.symbol
    try:
        error, message = setup.run(mode)
    except Exception as failure:
        return _failure(symbol, mode, failure)
    return Outcome(symbol, mode, "wrong" if message else "ok", message, error)


def _failure(symbol: str, mode: str, error: Exception) -> Outcome:
    is_code = isinstance(error, KernelError)
    text = str(error) or type(error).__name__
    return Outcome(symbol, mode, "no code" if is_code else "failed", text)


class _Setup:
    """The buffers of one test."""

    def __init__(self, device, kernel: Kernel, case: Case):
        self.device, self.kernel, self.case = device, kernel, case
        dims = dict(case.dims) | {"WARP": device.warp}
        self.given = given = inputs.make_inputs(kernel, case.dims)
        self.arrays = {}
        for p in kernel.params:
            if p.kind == "out":
                shape = tuple(e.value(dims) for e in p.shape)
                self.arrays[p.name] = inputs.poison(shape, p.dtype)
            else:
                self.arrays[p.name] = layout.to_device(given[p.name], p, device.warp)
        self.buffers = {n: device.allocate(max(a.nbytes, 1)) for n, a in self.arrays.items()}
        self.words = inputs.step_words(case.dims, manifest().step)

    def run(self, mode: str) -> tuple[float, str]:
        """(error as a share of what is allowed, what is wrong or nothing).

        Once for each slot of the step ring: each has bindings of its own.
        """
        program = _native.Program(self.device, MAX_ROWS)
        ids = [
            program.buffer(self.buffers[p.name], 0, self.arrays[p.name].nbytes, p.dtype)
            for p in self.kernel.params
        ]
        consts = [inputs.CONST] * len(self.kernel.consts)
        dims = [self.case.dims[d] for d in self.kernel.dims]
        program.dispatch(self.kernel.symbol, ids, consts, dims)
        replay, worst = program.finish().prepare(mode), 0.0
        for slot in range(_native.STEP_SLOTS):
            error, message = self._step(replay)
            worst = max(worst, error)
            if message:
                return error, f"{message} (step slot {slot})"
        return worst, ""

    def _step(self, replay) -> tuple[float, str]:
        for name, array in self.arrays.items():
            self.buffers[name].write(array)
        token = replay.run(self.words)
        if self.case.token not in (None, token):
            return float("inf"), f"got token {token}, need {self.case.token}"
        worst = 0.0
        strays = any(p.dtype == "i8" for p in self.kernel.params if p.kind != "in")
        for p in self.kernel.params:
            if p.kind != "in":
                error, message = compare(self._read(p), self._want(p), p, strays)
                worst = max(worst, error)
                if message:
                    return error, f"{p.name}: {message}"
        return worst, ""

    def _want(self, param: Param) -> np.ndarray | int:
        if param.name not in self.case.outputs:
            raise ValueError(f"the reference has no {param.name}. Install butter again.")
        kept = self.case.outputs[param.name]
        if param.kind == "inout" and not isinstance(kept, int):
            return difference(kept, self.given[param.name])
        return kept

    def _read(self, param: Param) -> np.ndarray:
        array = self.arrays[param.name]
        data = np.frombuffer(self.buffers[param.name].read(0, array.nbytes), array.dtype)
        return layout.from_device(data.reshape(array.shape), param, self.case.dims)


def compare(
    got: np.ndarray, want: np.ndarray | int, param: Param, strays: bool = False
) -> tuple[float, str]:
    """(error as a share of what is allowed, what is wrong or nothing).

    With `strays` one value in 50 may be a hundredth off: where a kernel rounds to int8, a value
    between two codes may fall to either side.
    """
    if is_exact(param):
        if checksum(got) == want:
            return 0.0, ""
        return float("inf"), f"its {got.size} integers differ from the reference"
    x = inputs.as_floats(got.reshape(-1), param.dtype)
    y = inputs.as_floats(np.asarray(want), param.dtype)
    if x.size != y.size:
        return float("inf"), f"got {x.size} values, the reference has {y.size}"
    peak = float(np.abs(y[np.isfinite(y)]).max(initial=0)) or 1.0
    allowed = 1.0 if param.dtype == "i8" else TOLERANCE[param.dtype] * peak
    with np.errstate(invalid="ignore"):
        off = np.where(x == y, 0.0, np.abs(x - y))
    off[np.isnan(off)] = np.inf
    if strays and param.dtype != "i8":
        few = np.argsort(off)[::-1][: 1 + off.size // 50]
        off[few] = np.where(off[few] <= peak / 100, 0.0, off[few])
    error = float(off.max(initial=0)) / allowed
    if error <= 1:
        return error, ""
    at = int(off.argmax())
    bad = int((off > allowed).sum())
    return error, (
        f"{bad} of {off.size} values are off; at {at} got {x[at]:.9g}, need {y[at]:.9g} "
        f"within {allowed:.2g}"
    )

"""Run every kernel in Iron's interpreter on its self-test inputs and keep what comes out.

    python tools/selftest_references.py MANIFEST OUT

MANIFEST is Iron's manifest.json; OUT becomes selftest.npz, which `butter doctor` compares with. Of
an OUT that is there already, the references of unchanged kernels are kept.
"""

import argparse
import sys
import zlib
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "codegen"), str(ROOT / "python")]

from butter.manifest import Kernel, Manifest
from butter.selftest import inputs, layout
from butter.selftest.references import Case, Known, Writer, checksum, difference, is_exact
from iron import build, interp, ir, parse
from iron.errors import IronError
from iron.ir import Func
from iron.passes import lower
from iron.step_block import FIELDS

# A reference made by other rules is made anew.
TEXTS = [Path(f.__file__ or "").read_text() for f in (inputs, layout, interp)]
WARP = 32  # a GPU's; the plain form of the outputs is the same for each


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path, metavar="MANIFEST")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--cpu-only", action="store_true", help="for a build without a GPU")
    parser.add_argument("--kernels", type=Path, default=ROOT / "kernels")
    options = parser.parse_args()
    sys.path.insert(0, str(options.kernels))
    specs = build.load_kernels(options.kernels)
    manifest = Manifest(options.manifest.read_text())
    writer, known, count = Writer(), Known(options.out), 0
    for name in manifest.names():
        for kernel in manifest.instances(name):
            func = parse.instance(specs[name], dict(kernel.types), dict(kernel.statics))
            on_cpu = build.on_cpu(specs, func)
            key = zlib.crc32(repr((ir.show(func), func.constraints, on_cpu, TEXTS)).encode())
            case = known.get(kernel.symbol, key)
            if options.cpu_only and not on_cpu:
                case = Case({}, {}, None, on_cpu)
            elif case is None:
                case = run(kernel, lower(func, "cuda", "TypeCheck"), on_cpu)
            if case.missing:
                print(f"no self-test for {kernel.symbol}: {case.missing}", file=sys.stderr)
            writer.add(kernel, case, key)
            count += 1
    writer.write(options.out)
    print(f"references of {count} instances -> {options.out}, {options.out.stat().st_size} bytes")
    return 0


def run(kernel: Kernel, func: Func, on_cpu: bool) -> Case:
    """The reference, or a case that says why there is none."""
    try:
        return compute(kernel, func, on_cpu)
    except (IronError, ValueError) as error:
        return Case({}, {}, None, on_cpu, str(error))


def compute(kernel: Kernel, func: Func, on_cpu: bool) -> Case:
    """Raises ValueError where the outputs would show nothing."""
    dims = inputs.choose_dims(kernel)
    given = inputs.make_inputs(kernel, dims)
    arrays = {}
    for p in kernel.params:
        if p.kind == "out":
            shape = tuple(e.value(dims | {"WARP": WARP}) for e in p.shape)
            arrays[p.name] = inputs.poison(shape, p.dtype)
        else:
            arrays[p.name] = layout.to_device(given[p.name], p, WARP).copy()
    step = np.array(inputs.step_words(dims, FIELDS), np.uint32)
    consts = dict.fromkeys(kernel.consts, inputs.CONST)
    interp.run(func, arrays, consts, dims, step)
    outputs: dict[str, np.ndarray | int] = {}
    for p in kernel.params:
        if p.kind == "in":
            continue
        got = layout.from_device(arrays[p.name], p, dims)
        if p.kind == "inout" and np.array_equal(got, given[p.name]):
            raise ValueError(f"its inputs leave {p.name} as it was")
        if np.isnan(inputs.as_floats(got, p.dtype)).any():
            raise ValueError(f"its inputs give NaN in {p.name}")
        if got.size > 1 and (got == got.flat[0]).all():
            raise ValueError(f"its inputs give one and the same value all over {p.name}")
        if is_exact(p):
            outputs[p.name] = checksum(got)
        else:
            outputs[p.name] = difference(got, given[p.name]) if p.kind == "inout" else got
    token = int(step[FIELDS["out_token"][0]].view(np.int32)) if kernel.writes_step else None
    return Case(dims, outputs, token, on_cpu)


if __name__ == "__main__":
    sys.exit(main())

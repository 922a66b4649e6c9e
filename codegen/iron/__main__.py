"""python -m iron build | show | check: the compiler from the command line."""

import argparse
import sys
from pathlib import Path

from . import build, ir, names, parse
from .errors import IronError
from .lang import Kernel
from .passes import PIPELINE, lower

ROOT = Path(__file__).resolve().parents[2]
EPILOG = """examples:
  python -m iron show rms_norm                      the C++ of its first instance
  python -m iron show rms_norm --emit msl           the same in Metal
  python -m iron show gemv --list                   its instances by number
  python -m iron show gemv --instance 1 --pass Schedule --emit cuda
"""


def main() -> int:
    """Run one command; 1 if a kernel is refused."""
    parser = argparse.ArgumentParser(
        prog="python -m iron",
        description="Compile Butter's kernels from Python to C++, Metal and CUDA.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kernels",
        type=Path,
        default=ROOT / "kernels",
        metavar="DIR",
        help="folder of kernel files (default: the one beside codegen)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    make = commands.add_parser("build", help="write all generated files")
    make.add_argument(
        "--emit",
        default="all",
        metavar="TARGETS",
        help=f"{', '.join(build.EMITTERS)}, several with commas, or all (default)",
    )
    make.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="unchanged files are not touched"
    )

    show = commands.add_parser("show", help="print one kernel at any stage")
    show.add_argument("kernel", help="name of the kernel, such as rms_norm")
    show.add_argument(
        "--emit", choices=build.EMITTERS, default="cpu", help="target language (default: cpu)"
    )
    show.add_argument(
        "--pass",
        dest="stage",
        choices=["none", *PIPELINE],
        help="print the IR after this pass instead; none: as parsed",
    )
    show.add_argument(
        "--instance", type=int, default=0, metavar="N", help="types and statics, see --list"
    )
    show.add_argument("--list", action="store_true", help="list the instances by number")

    commands.add_parser("check", help="compile everything in memory and list the errors")
    options = parser.parse_args()
    try:
        kernels = build.load_kernels(options.kernels)
        return {"build": _build, "show": _show, "check": _check}[options.command](kernels, options)
    except IronError as error:
        print(error, file=sys.stderr)
        return 1


def _build(kernels: dict[str, Kernel], options: argparse.Namespace) -> int:
    emit = build.EMITTERS if options.emit == "all" else tuple(options.emit.split(","))
    if unknown := set(emit) - set(build.EMITTERS):
        raise IronError(
            f"cannot emit {', '.join(sorted(unknown))}",
            hint=f"legal: {', '.join(build.EMITTERS)}, all",
        )
    funcs = build.build(kernels, options.out, emit)
    print(f"{len(kernels)} kernels, {len(funcs)} instances -> {options.out}")
    return 0


def _show(kernels: dict[str, Kernel], options: argparse.Namespace) -> int:
    if options.kernel not in kernels:
        raise IronError(
            f"no kernel is named {options.kernel}", hint="known: " + ", ".join(sorted(kernels))
        )
    spec = kernels[options.kernel]
    choices = parse.instances(spec)
    if options.list:
        print(_instances(spec))
        return 0
    if not 0 <= options.instance < len(choices):
        raise IronError(
            f"{spec.name} has no instance {options.instance}; it has\n{_instances(spec)}"
        )
    func = parse.instance(spec, *choices[options.instance])
    if options.stage != "none":
        lower(func, options.emit, options.stage or "Vectorize")
    text = ir.show(func) if options.stage else build.emitter(options.emit).function(func)
    print(text, end="" if text.endswith("\n") else "\n")
    return 0


def _instances(spec: Kernel) -> str:
    symbols = [names.symbol(spec.name, t, s) for t, s in parse.instances(spec)]
    return "\n".join(f"{i:4}  {symbol}" for i, symbol in enumerate(symbols))


def _check(kernels: dict[str, Kernel], options: argparse.Namespace) -> int:
    errors = build.check(kernels)
    print("\n\n".join(errors) if errors else f"{len(kernels)} kernels are fine")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m iron build | show | check."""

import argparse
import sys
from pathlib import Path

from . import build, ir, parse
from .errors import IronError
from .passes import PIPELINE, lower

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="iron", description="Compile Butter's kernels.")
    parser.add_argument("--kernels", type=Path, default=ROOT / "kernels", help="folder of kernel files")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="write all generated files")
    make.add_argument("--emit", default="all", help="cpu, msl, cuda or all, comma-separated")
    make.add_argument("--out", type=Path, required=True)
    show = commands.add_parser("show", help="print a kernel at any stage")
    show.add_argument("kernel")
    show.add_argument("--pass", dest="stage", choices=["none", *PIPELINE], help="print the IR after this pass")
    show.add_argument("--emit", choices=build.EMITTERS, default="cpu", help="target; also what is printed without --pass")
    show.add_argument("--instance", type=int, default=0, help="which combination of types and statics")
    commands.add_parser("check", help="compile everything in memory and list the errors")
    options = parser.parse_args()
    try:
        kernels = build.load_kernels(options.kernels)
        return {"build": _build, "show": _show, "check": _check}[options.command](kernels, options)
    except IronError as error:
        print(error, file=sys.stderr)
        return 1


def _build(kernels: dict, options: argparse.Namespace) -> int:
    emit = build.EMITTERS if options.emit == "all" else tuple(options.emit.split(","))
    if unknown := set(emit) - set(build.EMITTERS):
        raise IronError(f"cannot emit {', '.join(sorted(unknown))}", hint=f"legal: {', '.join(build.EMITTERS)}, all")
    funcs = build.build(kernels, options.out, emit)
    print(f"{len(kernels)} kernels, {len(funcs)} instances -> {options.out}")
    return 0


def _show(kernels: dict, options: argparse.Namespace) -> int:
    if options.kernel not in kernels:
        raise IronError(f"no kernel is named {options.kernel}", hint="known: " + ", ".join(sorted(kernels)))
    spec = kernels[options.kernel]
    choices = parse.instances(spec)
    if not 0 <= options.instance < len(choices):
        raise IronError(f"--instance {options.instance}: {spec.name} has instances 0 to {len(choices) - 1}")
    types, statics = choices[options.instance]
    func = parse.instance(spec, types, statics)
    if options.stage == "none":
        print(ir.show(func), end="")
        return 0
    lower(func, options.emit, options.stage or "Vectorize")
    if options.stage:
        print(ir.show(func), end="")
        return 0
    from importlib import import_module

    print(import_module(f"iron.emit.{options.emit}").function(func))
    return 0


def _check(kernels: dict, options: argparse.Namespace) -> int:
    errors = build.check(kernels)
    print("\n\n".join(errors) if errors else f"{len(kernels)} kernels are fine")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

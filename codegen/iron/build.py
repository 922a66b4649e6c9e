"""Walk all registered kernels and write every output of the build."""

import importlib
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from . import declare, manifest, parse, wrappers
from .errors import IronError
from .ir import Func, clone
from .lang import REGISTRY, Kernel
from .passes import lower
from .step_block import FIELDS, HEADER_WORDS

EMITTERS = ("cpu", "msl", "cuda")


def load_kernels(folder: Path) -> dict[str, Kernel]:
    """Import every file of the kernels folder, which registers its kernels."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    for path in sorted(folder.glob("*.py")):
        try:
            importlib.import_module(path.stem)
        except SyntaxError as error:
            at = declare.line_of(error.filename or str(path), error.lineno or 1)
            raise IronError(f"{error.msg}", at) from None
        except IronError:
            raise
        except Exception as error:
            raise _at_import(path, error) from error
    return REGISTRY


def _at_import(path: Path, error: Exception) -> IronError:
    """A fault of Python while a kernel file is read, at the file's own line."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__)
             if f.filename == str(path)]  # fmt: skip
    hint = "words of the language are imported: from iron import …"
    return IronError(f"{type(error).__name__}: {error}", declare.line_of(str(path), lines[-1] or 1)
                     if lines else None, hint if isinstance(error, NameError) else "")  # fmt: skip


def all_instances(kernels: dict[str, Kernel]) -> Iterator[Func]:
    """Every combination of types and statics of every kernel, not typed yet."""
    for name in sorted(kernels):
        for types, statics in parse.instances(kernels[name]):
            yield parse.instance(kernels[name], types, statics)


def on_cpu(kernels: dict[str, Kernel], func: Func) -> bool:
    """Whether this instance is built for CPUs."""
    return all(func.types[k] == v for k, v in kernels[func.kernel].cpu.items())


def write(path: Path, content: str) -> None:
    """Leave unchanged files alone, so that they are not compiled again."""
    if not path.exists() or path.read_text() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def build(kernels: dict[str, Kernel], out: Path, emit: tuple[str, ...] = EMITTERS) -> list[Func]:
    """Write everything below `out`; raises IronError at the first kernel that is not legal."""
    plain = list(all_instances(kernels))
    by_source: dict[str, list[Func]] = {}
    for func in plain:
        by_source.setdefault(func.source, []).append(func)
    for target in emit:
        for source, funcs in by_source.items():
            chosen = [f for f in funcs if target != "cpu" or on_cpu(kernels, f)]
            _write_source(out, target, source, [lower(clone(f), target) for f in chosen])
    on = [f for f in plain if on_cpu(kernels, f)]
    write(out / "cpu" / "table.cpp", table([f.symbol for f in on]))
    if "cpu" in emit:
        _write_bf16(out, [f for f in on if any(op.kind == "dot_bf16" for op in f.body.walk())])
    # Types decide how much group memory reductions take.
    typed = sorted((lower(f, "cuda", "TypeCheck") for f in plain), key=lambda f: f.symbol)
    write(out / "manifest.cpp", manifest.cpp(typed))
    entries = [manifest.entry(f) for f in typed]
    data = {"step": {k: list(v) for k, v in FIELDS.items()}, "kernels": entries}
    write(out / "manifest.json", json.dumps(data, separators=(",", ":")) + "\n")
    write(out / "step_fields.h", step_fields())
    write(out / "kernels.h", wrappers.cpp(entries))
    write(out / "python" / "_kernels.py", wrappers.python(entries))
    write(out / "python" / "_kernels.pyi", wrappers.stub(entries))
    return typed


def _write_source(out: Path, target: str, source: str, funcs: list[Func]) -> None:
    """One kernel file in one target's language."""
    module = emitter(target)
    folder, suffix = {"cpu": ("cpu", "cpp"), "msl": ("metal", "metal"), "cuda": ("cuda", "cu")}[
        target
    ]
    write(out / folder / f"{source}.{suffix}", module.translation_unit(source, funcs))
    if target == "msl":
        tables = module.translation_unit(source, funcs, tables=True)
        write(out / folder / f"{source}_tables.{suffix}", tables)


def _write_bf16(out: Path, funcs: list[Func]) -> None:
    """The kernels that gain by an instruction for pairs of bf16, for sets that only add it."""
    for source in sorted({f.source for f in funcs}):
        text = emitter("cpu").translation_unit(
            source, [lower(clone(f), "cpu") for f in funcs if f.source == source]
        )
        write(out / "cpu_bf16" / f"{source}.cpp", text)
    write(out / "cpu_bf16" / "table.cpp", table([f.symbol for f in funcs]))


def emitter(target: str) -> ModuleType:
    """The module that prints one target's language: `function` and `translation_unit`."""
    return importlib.import_module(f"iron.emit.{target}")


def table(symbols: list[str]) -> str:
    """table.cpp: the kernels of one instruction set, sorted by symbol."""
    declared = "\n".join(
        f"void {s}(const KernelArgs&, uint32_t, uint32_t);" for s in sorted(symbols)
    )
    rows = "\n".join(f'    {{"{s}", {s}}},' for s in sorted(symbols))
    return f"""// Generated by iron. Do not edit.
#include "cpu/kernel_abi.h"

#define BUTTER_JOIN2(a, b) a##b
#define BUTTER_JOIN(a, b) BUTTER_JOIN2(a, b)

namespace butter::cpu {{
namespace BUTTER_ISA {{
{declared}
static constexpr KernelEntry kEntries[] = {{
{rows}
}};
}}  // namespace BUTTER_ISA
const std::span<const KernelEntry> BUTTER_JOIN(table_, BUTTER_ISA) = BUTTER_ISA::kEntries;
}}  // namespace butter::cpu
"""


def step_fields() -> str:
    """step_fields.h: where each field of the step block lies."""

    def name(field: str) -> str:
        return "k" + "".join(part.capitalize() for part in field.split("_"))

    rows = "\n".join(
        f"inline constexpr size_t {name(n)} = {w};  // {d}" for n, (w, d) in FIELDS.items()
    )
    return f"""// Generated by iron from codegen/iron/step_block.py. Do not edit.
#pragma once

#include <cstddef>

namespace butter::step {{
inline constexpr size_t kHeaderWords = {HEADER_WORDS};
{rows}
}}  // namespace butter::step
"""


def check(kernels: dict[str, Kernel]) -> list[str]:
    """Every error of every instance on every target, each once, for `iron check`."""
    errors: dict[str, None] = {}
    for name in sorted(kernels):
        for types, statics in parse.instances(kernels[name]):
            for target in EMITTERS:
                try:
                    func = parse.instance(kernels[name], types, statics)
                    if target != "cpu" or on_cpu(kernels, func):
                        emitter(target).function(lower(func, target))
                    if target == "cuda":
                        typed = lower(parse.instance(kernels[name], types, statics), target,
                                      "TypeCheck")  # fmt: skip
                        manifest.cpp([typed])
                        manifest.entry(typed)
                except IronError as error:
                    errors[str(error)] = None
                except Exception as error:  # a gap of the compiler, still shown at a kernel
                    what = f"{name}: the compiler failed: {type(error).__name__}: {error}"
                    errors[str(IronError(what, declare.place(kernels[name].fn)))] = None
    return list(errors)

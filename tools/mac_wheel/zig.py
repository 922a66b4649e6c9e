"""Runs a tool of Zig as the cc, c++, ar or ranlib that CMake expects on a Mac."""

import os
import sys

TARGET = "aarch64-macos.14.0"
WITH_VALUE = {"-arch", "-isysroot", "-current_version", "-compatibility_version"}
# What the target says already, or Zig's linker does without.
DROPPED = ("-mmacosx-version-min=", "-Wl,-search_paths_first", "-Wl,-headerpad_max_install_names")
# Zig's driver takes models of processors, not versions of the architecture.
ARCHITECTURES = {
    "-march=armv8-a": "-mcpu=generic",
    "-march=armv8.2-a+dotprod+fp16": "-mcpu=generic+v8_2a+dotprod+fullfp16",
}


def translate(arguments: list[str]) -> list[str]:
    out = []
    rest = iter(arguments)
    for argument in rest:
        if argument in WITH_VALUE:
            next(rest)
        elif argument.startswith("-Wl,@"):
            # nanobind's list of Python's symbols; Zig knows no -U. audit.py checks each import.
            out += ["-undefined", "dynamic_lookup"]
        elif argument == "-bundle":
            out.append("-shared")
        elif not argument.startswith(DROPPED):
            out.append(ARCHITECTURES.get(argument, argument))
    return out


def main() -> None:
    tool, *arguments = sys.argv[1:]
    command = [sys.executable, "-m", "ziglang", tool]
    if tool in ("cc", "c++"):
        command += ["-target", TARGET, *translate(arguments)]
    else:
        command += arguments
    os.execv(command[0], command)


if __name__ == "__main__":
    main()

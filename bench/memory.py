"""Where the resident memory of a process goes, step by step, from the interpreter to a prefill.

    python bench/memory.py MODEL [--threads 2] [--context 8192] [--chat]

Linux only. `peak` is the largest since the step before; the rest is what is resident after it, by
kind of mapping: huge pages, other anonymous memory, the heap, the model's file, shared libraries.
Their pages count in full, though other processes may share them.
"""

import argparse
import functools
import os
import random
import re
import sys

LIBRARIES = ("python", "numpy", "tokenizers", "butter")
KINDS = ("huge", "anonymous", "heap", "stack", "model file", *LIBRARIES, "other files")
HEAD = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)")


def kind_of(name: str, model: str) -> str | None:
    """The kind of a mapping by what /proc calls it; None for those of the kernel."""
    if name in ("", "[heap]"):
        return "heap" if name else "anonymous"
    if name.startswith("["):
        return "stack" if name.startswith("[stack") else None
    if name.startswith(model):
        return "model file"
    parts = name.removeprefix(sys.prefix).removeprefix(sys.base_prefix).split("/")
    if parts[-1].startswith("_native."):
        return "butter"
    found = (lib for lib in LIBRARIES if any(p.split(".")[0] in (lib, f"lib{lib}3") for p in parts))
    return next(found, "python" if "lib-dynload" in parts else "other files")


def resident(model: str) -> dict[str, int]:
    """KiB of each kind."""
    found = dict.fromkeys(KINDS, 0)
    kind = None
    with open("/proc/self/smaps") as lines:
        for line in lines:
            if head := HEAD.fullmatch(line.strip()):
                kind = kind_of(head[1], model)
            elif kind and line.startswith("Rss:"):
                found[kind] += int(line.split()[1])
            elif kind in ("anonymous", "heap") and line.startswith("AnonHugePages:"):
                huge = int(line.split()[1])
                found[kind] -= huge
                found["huge"] += huge
    return found


class Table:
    """Prints a line after each step and begins the next peak."""

    def __init__(self, model: str):
        self.model = model
        print(" ".join(f"{name:>11}" for name in ("MiB", "peak", "resident", *KINDS)))

    def row(self, step: str) -> None:
        with open("/proc/self/status") as status:
            text = status.read()
        totals = [int(text.split(f"{key}:")[1].split()[0]) for key in ("VmHWM", "VmRSS")]
        values = [*totals, *resident(self.model).values()]
        print(f"{step:>11}", " ".join(f"{v / 1024:11.1f}" for v in values), flush=True)
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")

    def after(self, module, name: str, step: str) -> None:
        """A line whenever this function of the library has returned."""
        function = getattr(module, name)

        @functools.wraps(function)
        def wrapped(*args, **named):
            result = function(*args, **named)
            self.row(step)
            return result

        setattr(module, name, wrapped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, help="what the model was trained for, if left out")
    parser.add_argument("--chat", action="store_true", help="end with a message in the template")
    options = parser.parse_args()
    table = Table(os.path.realpath(options.model))
    table.row("interpreter")

    import butter
    from butter import engine, loading

    _ = butter.Model
    table.row("import")
    table.after(loading, "open_gguf", "metadata")
    table.after(loading, "make_prompter", "tokenizer")
    table.after(engine.Engine, "load", "weights")
    model = butter.Model.load(
        options.model, threads=options.threads, max_context=options.context, dispatch="icb"
    )
    table.row("ready")
    session = model.session()

    def generate(step: str, prompt: int, tokens: int) -> None:
        draw = random.Random(prompt)
        ids = [draw.randrange(model.config.vocab_size) for _ in range(prompt)]
        session.truncate(0)
        session.generate(ids, max_tokens=tokens, temperature=0, ignore_eos=True)
        table.row(step)

    generate("decode 128", 1, 128)
    generate("prefill 512", 512, 1)
    if options.chat:
        model.generate("Hello", max_tokens=8)
        table.row("chat")


if __name__ == "__main__":
    main()

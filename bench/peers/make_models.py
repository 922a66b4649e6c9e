"""Make the model files of all engines in one folder; what is there already is kept.

    PEERS/bin/python bench/peers/make_models.py FOLDER [--shapes smol-135m …] [--butter PYTHON]

Run it with the Python that has the peers (README.md says how to make it). About 2 CPU minutes and
0.6 GB for smol-135m; each larger shape takes some 5 CPU minutes, up to 8 GB of memory, and 6 GB.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import make_gguf
import make_hf
from shapes import SHAPES

ORT_OPTIONS = (
    "int4_accuracy_level=4",  # products of int8, as the others do
    "int4_block_size=32",
    "prune_lm_head=true",  # one row of logits in prefill, as the others do
)


def quietly(*command: str | Path | int) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{command[1]} {command[2]} failed:\n{done.stdout[-2000:]}")


def ort_int4(hf: Path, out: Path) -> None:
    builder = "onnxruntime_genai.models.builder"
    quietly(sys.executable, "-m", builder, "-i", hf, "-o", out, "-p", "int4", "-e", "cpu",
            "-c", out.parent / "cache", "--extra_options", *ORT_OPTIONS)  # fmt: skip
    note(out, ort_weight_bytes(out / "model.onnx"), json.loads((hf / "config.json").read_text()), 4)


def ort_weight_bytes(path: Path) -> int:
    """Of everything that the graph's matrix products read."""
    import onnx

    graph = onnx.load(str(path), load_external_data=False).graph
    sizes = {
        t.name: onnx.helper.tensor_dtype_to_np_dtype(t.data_type).itemsize * product(t.dims)
        for t in graph.initializer
    }
    products = [n for n in graph.node if n.op_type.startswith(("MatMul", "Gemm"))]
    return sum(sizes.get(name, 0) for name in {i for n in products for i in n.input})


def product(dims) -> int:
    count = 1
    for size in dims:
        count *= size
    return count


def ct2_int8(hf: Path, out: Path) -> None:
    quietly(Path(sys.executable).parent / "ct2-transformers-converter", "--model", hf,
            "--output_dir", out, "--quantization", "int8", "--force")  # fmt: skip
    # The output is tied to the embedding, so that a token reads the whole file.
    size = (out / "model.bin").stat().st_size
    note(out, size, json.loads((hf / "config.json").read_text()), 4)


def note(out: Path, weight_bytes: int, config: dict, kv_element: int) -> None:
    """For the engine's script: sizes that its library does not tell. Caches are f32 in both."""
    heads, dim = config["num_key_value_heads"], config["head_dim"]
    per_position = 2 * config["num_hidden_layers"] * heads * dim * kv_element
    facts = {"weight_bytes": weight_bytes, "kv_bytes_per_position": per_position}
    (out / "bench.json").write_text(json.dumps(facts) + "\n")


def butter_q4(python: str, group: int) -> Callable[[Path, Path], None]:
    """`butter convert` with 4 bits throughout; by itself it takes groups of 32."""
    run = "from butter.cli import main; main()"
    return lambda hf, out: quietly(python, "-c", run, "convert", hf, out, "--group-size", group)


def link(out: Path) -> None:
    out.symlink_to(make_hf.shipped())


def steps(shape: str, butter: str | None) -> dict[str, Callable[[Path, Path], None]]:
    """By the name in the folder: what makes it from the folder `hf`."""
    found: dict[str, Callable[[Path, Path], None]] = {
        "q4_0.gguf": lambda hf, out: make_gguf.make(hf, out, "Q4_0"),
        "ort-int4": ort_int4,
    }
    if shape == "smol-135m":
        found |= {"shipped.gguf": lambda _, out: link(out), "ct2-int8": ct2_int8}
    else:
        found["bf16.gguf"] = lambda hf, out: make_gguf.make(hf, out, "BF16")
    if butter:
        found |= {"butter-q4": butter_q4(butter, 32), "butter-q4-g64": butter_q4(butter, 64)}
    return found


def make(folder: Path, shape: str, butter: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hf = folder / "hf"
    missing = {name: step for name, step in steps(shape, butter).items()
               if not (folder / name).exists()}  # fmt: skip
    if not hf.exists():
        finish(hf, lambda out: make_hf.make(shape, out))
    for name, step in missing.items():
        finish(folder / name, lambda out, step=step: step(hf, out))


def finish(out: Path, step: Callable[[Path], None]) -> None:
    """Under another name until it is whole: an interrupted step is done again."""
    part = out.with_name(f"part-{out.name}")
    if part.is_dir() and not part.is_symlink():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    step(part)
    part.rename(out)
    print(out, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--butter", metavar="PYTHON", help="has Butter: convert to 4 bits too")
    options = parser.parse_args()
    for shape in options.shapes:
        make(options.folder.resolve() / shape, shape, options.butter)


if __name__ == "__main__":
    main()

"""Record what the reference computes, so that the plain tests need no torch.

    python tests/oracles/record.py            writes tests/data/*.npz
    python tests/oracles/record.py --check    compares them with a live run instead
    python tests/oracles/record.py --only smollm2 f32

Needs `pip install '.[oracle,demo]'`. Greedy tokens ignore eos: they test numbers, not stopping.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from oracles.reference import Reference
from support import smollm2
from support.oracle import DATA, assert_close, log_softmax
from support.tiny import VARIANTS, checkpoint, digest, prompts

GREEDY_TOKENS = 24
TOP = 64
# Rows that are kept whole, of the second half of a prompt: block borders and the last.
BORDERS = (4, 31, 32, 63, 64)
# A greedy token that leads by less than this could differ on another machine.
MIN_LEAD = 3e-4


def record_tiny(name: str) -> dict[str, np.ndarray]:
    """The record of one variant of support.tiny."""
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint(name, folder)
        record = {"digest": np.array(digest(path))}
        reference = Reference(path)
    for ids in prompts():
        logits = reference.logits(ids)
        last = len(ids) - 1
        rows = [t for t in range(len(ids) // 2, last + 1) if t in BORDERS or t == last]
        record |= _prompt(f"n{len(ids)}", ids, logits, rows)
    return record | _greedy(reference, prompts()[1], GREEDY_TOKENS)


def record_smollm2() -> dict[str, np.ndarray]:
    """The record of the real model: last rows whole, and the top of each row."""
    reference = Reference(smollm2.gguf_path())
    record = {}
    for name, ids in smollm2.prompts(reference.tokenizer()).items():
        logits = reference.logits(ids)
        record |= _prompt(name, ids, logits, [len(ids) - 1])
        # Zeros in the low bits compress; the error is a tenth of the tolerance.
        record[f"{name}.logits"] = np.round(record[f"{name}.logits"] * 4096) / np.float32(4096)
        top = np.argsort(-logits, axis=-1, kind="stable")[:, :TOP]
        record[f"{name}.top_ids"] = top.astype(np.uint16)
        record[f"{name}.top_logprobs"] = np.take_along_axis(
            log_softmax(logits), top, axis=-1
        ).astype(np.float32)
    ids = record["capital.ids"].tolist()
    return record | _greedy(reference, ids, smollm2.GREEDY_TOKENS)


def _prompt(name: str, ids: list[int], logits: np.ndarray, rows: list[int]) -> dict:
    return {
        f"{name}.ids": np.array(ids, np.int32),
        f"{name}.positions": np.array(rows, np.int32),
        f"{name}.logits": logits[rows].astype(np.float32),
        f"{name}.argmax": logits.argmax(axis=-1).astype(np.uint16),
    }


def _greedy(reference: Reference, ids: list[int], count: int) -> dict[str, np.ndarray]:
    tokens, lead = reference.greedy(ids, count)
    if lead < MIN_LEAD:
        raise SystemExit(
            f"a greedy token leads by {lead:.2g} only, need {MIN_LEAD}: change the seed"
        )
    return {
        "greedy_prompt": np.array(ids, np.int32),
        "greedy": np.array(tokens, np.int32),
        "lead": np.array(lead, np.float32),
    }


def live(names: list[str]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Run the reference for each name; yields the record as it would be stored."""
    for name in names:
        record = record_smollm2() if name == "smollm2" else record_tiny(name)
        prompts_of = [key.removesuffix(".ids") for key in record if key.endswith(".ids")]
        yield name, {"names": np.array(prompts_of), **record}


def compare(name: str, got: dict[str, np.ndarray]) -> None:
    """Raise AssertionError where the stored record is not what the reference computes now."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        assert sorted(file.files) == sorted(got), f"{name}: other keys are stored; record again"
        op = "record_smollm2" if name == "smollm2" else "record"
        for key in file.files:
            if key.endswith((".logits", ".top_logprobs")):
                assert_close(got[key], file[key], op=op, dtype="f32")
            elif not key.endswith(".top_ids") and key != "lead":  # near ties may swap
                assert np.array_equal(got[key], file[key]), f"{name}: {key} differs; record again"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[*VARIANTS, "smollm2"])
    options = parser.parse_args()

    DATA.mkdir(exist_ok=True)
    for name, record in live(options.only):
        path = DATA / f"{name}.npz"
        if options.check:
            compare(name, record)
        else:
            np.savez_compressed(path, **record)
        done = "agrees" if options.check else f"{path.stat().st_size / 1024:.0f} KiB"
        print(f"{name:20} {done}; narrowest greedy lead {record['lead']:.3g}", flush=True)


if __name__ == "__main__":
    main()

"""What int8 activations cost: the fast mode against exact products, and against transformers.

    python bench/accuracy.py

Per position of five fixed prompts: KL(exact || fast) in nats, whether the likeliest token is the
same, and where the reference's logits are recorded (tests/data), the largest difference from them.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import butter  # noqa: E402
from support.oracle import kl_divergence, recorded  # noqa: E402  (found through the line above)


def logits(model: str, prompts: list[list[int]], *, exact: bool, threads: int) -> list[np.ndarray]:
    longest = max(map(len, prompts))
    with butter.Model.load(
        model, device="cpu", threads=threads, exact=exact, max_context=longest, prewarm=False
    ) as loaded:
        return [loaded.logits(ids) for ids in prompts]


def compare(name: str, ids: int, fast: np.ndarray, exact: np.ndarray, prompt) -> dict:
    """One prompt. `prompt` is the reference's record (tests/support/oracle.py)."""
    kl = kl_divergence(exact, fast)
    row = {
        "prompt": name,
        "positions": ids,
        "kl_mean": float(kl.mean()),
        "kl_max": float(kl.max()),
        "argmax_same": int((fast.argmax(-1) == exact.argmax(-1)).sum()),
        "max_delta": float(np.abs(fast - exact).max()),
    }
    for mode, got in (("fast", fast), ("exact", exact)):
        row[f"{mode}_reference_delta"] = float(np.abs(got[prompt.positions] - prompt.logits).max())
        row[f"{mode}_reference_argmax"] = int((got.argmax(-1) == prompt.argmax).sum())
    return row


def measure(model: str = "smollm2", threads: int = 2) -> list[dict]:
    prompts = recorded("smollm2").prompts
    ids = [p.ids for p in prompts]
    fast = logits(model, ids, exact=False, threads=threads)
    exact = logits(model, ids, exact=True, threads=threads)
    return [
        compare(p.name, len(p.ids), f, e, p) for p, f, e in zip(prompts, fast, exact, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="SmolLM2-135M-Instruct, Q4_1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.model, options.threads)
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"{row['prompt']:8} {row['positions']:4} positions  KL {row['kl_mean']:.2e} "
            f"(max {row['kl_max']:.2e}), argmax {row['argmax_same']}/{row['positions']}, "
            f"|Δlogit| {row['max_delta']:.3f}; against transformers: fast "
            f"{row['fast_reference_delta']:.3f}, exact {row['exact_reference_delta']:.4f}"
        )


if __name__ == "__main__":
    main()

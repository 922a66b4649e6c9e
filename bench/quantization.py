"""What Butter's own quantization costs, against the shipped file in exact mode.

    python bench/quantization.py
    python bench/quantization.py --forms q4 q4-g64 --search none

Per form: mean KL(shipped || form) in nats and the share of equal likeliest tokens over five fixed
prompts and the first tokens of two pages of these docs, the perplexity of all of that text, and
what the weights lose against the file's, as a share of rounding to nearest between the smallest and
the largest of each group. All with f32 activations, so nothing but the weights differs.
--search compares ways to quantize: "even" lets small weights count as much as large ones, "none"
rounds to nearest.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import butter  # noqa: E402
from butter.quantize import fit, recode  # noqa: E402
from butter.quantize.fit import importance, loss  # noqa: E402
from support.oracle import log_softmax, recorded  # noqa: E402  (found through the line above)

FORMS = ("q6-g64", "q5-g64", "q4", "q4-g64", "q4-g64+head8", "q3")
SEARCHES = ("weighted", "even", "none")
# Read once: a page that is edited meanwhile must not differ between two forms.
PAGES = [(ROOT / name).read_text() for name in ("README.md", "docs/architecture.md")]
PAGE_TOKENS = 384
SAMPLE_ROWS = 1024  # of each matrix, for the loss of the weights


def scheme(form: str) -> dict | str | None:
    """A form such as "q4-g64+head8" as Model.load takes it; None for "shipped"."""
    if form == "shipped":
        return None
    name, _, head = form.partition("+head")
    if not head:
        return name
    bits, _, group = name[1:].partition("-g")
    return {"bits": int(bits), "group_size": int(group or 32), "head_bits": int(head)}


def choose(search: str) -> None:
    """Replace the way in which groups are quantized."""
    if search == "none":
        recode.fit_groups = plain_groups
    if search == "even":
        fit.importance = np.ones_like


def plain_groups(x: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Round to nearest between the smallest and the largest weight of each group."""
    top, low = np.float32(2**bits - 1), x.min(axis=0)
    scale, bias = fit.rounded((x.max(axis=0) - low) / top), fit.rounded(low)
    return fit.encode(x, scale, bias, top), scale.astype(np.float16), bias.astype(np.float16)


def texts(model) -> list[list[int]]:
    pages = [model.tokenizer.encode(text)[:PAGE_TOKENS] for text in PAGES]
    return [p.ids for p in recorded("smollm2").prompts] + pages


def measure(name: str, form: str, threads: int, reference: list | None) -> dict:
    """One row; with its log-probabilities where there is no reference yet."""
    with butter.Model.load(
        name, device="cpu", threads=threads, exact=True, max_context=PAGE_TOKENS, prewarm=False,
        quantize=scheme(form),
    ) as model:  # fmt: skip
        ids = texts(model)
        got = [log_softmax(model.logits(i)).astype(np.float32) for i in ids]
        engine = model._need().engine
        row = {"form": form, "decode_mb": engine.decode_weight_bytes / 1e6}
        row |= weight_loss(engine)
    chosen = [g[np.arange(len(i) - 1), i[1:]] for g, i in zip(got, ids, strict=True)]
    row["perplexity"] = float(np.exp(-np.concatenate(chosen).mean()))
    if reference is None:
        return {**row, "kl": 0.0, "argmax": 1.0, "logprobs": got}
    pairs = list(zip(reference, got, strict=True))
    row["kl"] = float(np.concatenate([(np.exp(p) * (p - q)).sum(-1) for p, q in pairs]).mean())
    same = np.concatenate([p.argmax(-1) == q.argmax(-1) for p, q in pairs])
    return {**row, "argmax": float(same.mean())}


def weight_loss(engine) -> dict:
    """Of all matrices that were quantized: relative rms error, and loss against plain rounding."""
    error = power = found = plain = 0.0
    for name, part in engine._loader.wanted.items():
        if not isinstance(part, recode.RecodedMatrix):
            continue
        stored = engine.checkpoint.tensors[name]
        form, rows = part.format, min(part.shape[0], SAMPLE_ROWS)
        values = recode.read_rows(part.source, engine.device, stored, 0, rows)
        x = np.ascontiguousarray(values.reshape(-1, form.group).T)
        v = importance(x)
        codes = widened(recode.fit_groups(x, form.bits))
        found += float(loss(x, v, *codes).sum())
        error += float(loss(x, np.ones_like(v), *codes).sum())
        power += float((x * x).sum())
        plain += float(loss(x, v, *widened(plain_groups(x, form.bits))).sum())
    if not power:
        return {}
    return {"weight_error": (error / power) ** 0.5, "of_plain": found / plain}


def widened(parts: tuple) -> tuple:
    return tuple(part.astype(np.float32) for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="SmolLM2-135M-Instruct, Q4_1")
    parser.add_argument("--forms", nargs="+", default=FORMS, help="such as q4, q4-g64+head8")
    parser.add_argument("--search", choices=SEARCHES, default=SEARCHES[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    first = measure(options.model, "shipped", options.threads, None)
    reference = first.pop("logprobs")
    choose(options.search)
    rows = [first]
    rows += [measure(options.model, f, options.threads, reference) for f in options.forms]
    if options.json:
        print(json.dumps(rows))
        return
    print("| form | MB a token | KL | same argmax | perplexity | weight error | of plain |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        error, plain = row.get("weight_error"), row.get("of_plain")
        print(
            f"| {row['form']} | {row['decode_mb']:.1f} | {row['kl']:.4f} | {row['argmax']:.1%} | "
            f"{row['perplexity']:.2f} | {f'{error:.2%}' if error else '–'} | "
            f"{f'{plain:.2f}' if plain else '–'} |"
        )


if __name__ == "__main__":
    main()

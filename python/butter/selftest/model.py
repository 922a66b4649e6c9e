"""Does this device compute what numpy computes? A tiny random model, checked in float64."""

import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint import Checkpoint
from ..config import normalize
from ..engine import Engine, Options
from ..generation import SamplingParams
from ..hub import ModelFiles
from ..registry import find_family
from ..sequence import Sequence

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 320,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
PROMPT = [int(i) for i in np.random.default_rng(7).integers(0, CONFIG["vocab_size"], 70)]
TOLERANCE = 1e-3
GREEDY = 16


@dataclass(frozen=True)
class Check:
    mode: str
    max_error: float
    tokens: list[int]

    @property
    def is_good(self) -> bool:
        return self.max_error <= TOLERANCE  # false for NaN


class TinyModel:
    """Llama with random weights in f32, loaded on a device."""

    def __init__(self, device):
        weights = random_weights()
        self._want = reference_logits(weights, PROMPT)
        with tempfile.TemporaryDirectory() as folder:
            self.engine = load(device, Path(folder), weights)

    def check(self, mode: str) -> Check:
        """Logits of a prompt against numpy, and a greedy continuation."""
        sequence = Sequence(self.engine, mode)
        error = float(np.abs(sequence.logits(PROMPT) - self._want).max())
        sequence.truncate(len(PROMPT) - 1)
        params = SamplingParams(temperature=0.0, seed=0)
        loop = sequence.start(PROMPT[-1], params, limit=GREEDY)
        return Check(mode, error, loop.run(GREEDY))


def load(device, folder: Path, weights: dict[str, np.ndarray]) -> Engine:
    from safetensors.numpy import save_file

    path = folder / "model.safetensors"
    save_file(weights, path)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    config = normalize(CONFIG)
    files = ModelFiles("folder", folder, (path,), "self-test")
    engine = Engine(
        device, find_family(config), config, Checkpoint(files, config), Options(exact=True)
    )
    engine.load(scan=True, progress=None)
    return engine


def random_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    hidden, inner, vocab = (CONFIG[k] for k in ("hidden_size", "intermediate_size", "vocab_size"))
    q = CONFIG["num_attention_heads"] * CONFIG["head_dim"]
    kv = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]

    def matrix(n: int, k: int) -> np.ndarray:
        return rng.normal(size=(n, k), scale=1 / math.sqrt(k)).astype(np.float32)

    weights = {
        "model.embed_tokens.weight": matrix(vocab, hidden),
        "lm_head.weight": matrix(vocab, hidden),
        "model.norm.weight": np.ones(hidden, np.float32),
    }
    for i in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name, n, k in (
            ("self_attn.q_proj", q, hidden), ("self_attn.k_proj", kv, hidden),
            ("self_attn.v_proj", kv, hidden), ("self_attn.o_proj", hidden, q),
            ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden),
            ("mlp.down_proj", hidden, inner),
        ):  # fmt: skip
            weights[f"{at}{name}.weight"] = matrix(n, k)
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{at}{name}.weight"] = np.ones(hidden, np.float32)
    return weights


def reference_logits(weights: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """The same model in plain float64: tokens [T] to logits [T, V]."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    heads, kv_heads = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
    size, count = CONFIG["head_dim"], len(tokens)
    angles = np.arange(count)[:, None] * 10000.0 ** -(np.arange(0, size, 2) / size)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        mean = (x**2).mean(-1, keepdims=True)
        return x / np.sqrt(mean + CONFIG["rms_norm_eps"]) * w[f"{name}.weight"]

    def turn(x: np.ndarray) -> np.ndarray:
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    h = w["model.embed_tokens.weight"][tokens]
    mask = np.triu(np.full((count, count), -np.inf), 1)
    for i in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{i}."
        x = norm(h, f"{at}input_layernorm")
        q, k, v = (
            (x @ w[f"{at}self_attn.{n}_proj.weight"].T).reshape(count, -1, size) for n in "qkv"
        )
        q, k = turn(q), np.repeat(turn(k), heads // kv_heads, axis=1)
        v = np.repeat(v, heads // kv_heads, axis=1)
        scores = np.einsum("thd,shd->hts", q, k) / math.sqrt(size) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = np.einsum("hts,shd->thd", scores, v).reshape(count, -1)
        h = h + mixed @ w[f"{at}self_attn.o_proj.weight"].T
        x = norm(h, f"{at}post_attention_layernorm")
        gate, up = (x @ w[f"{at}mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        h = h + (gate / (1 + np.exp(-gate)) * up) @ w[f"{at}mlp.down_proj.weight"].T
    return norm(h, "model.norm") @ w["lm_head.weight"].T

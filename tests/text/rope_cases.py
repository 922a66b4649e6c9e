"""Rotary settings of every kind. Run this file where transformers is to record rope.json."""

import json
from pathlib import Path

RECORDED = Path(__file__).with_name("rope.json")

BASE = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 256,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
LONG = [1.0 + 0.5 * i for i in range(32)]
SHORT = [1.0 + 0.01 * i for i in range(32)]
LLAMA3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 32.0}
LONGROPE = {"rope_type": "longrope", "long_factor": LONG, "short_factor": SHORT}
GPT_OSS = {
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 512,
}

# name -> (fields on top of BASE, sequence length)
CASES = {
    "default": ({"rope_theta": 10000.0}, None),
    "default_100k": ({"rope_theta": 100000.0}, None),
    "default_nested": ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, None),
    "linear_old": ({"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2.5}}, None),
    "dynamic": ({"rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 4.0}}, None),
    "dynamic_long": ({"rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 4.0}}, 9000),
    "llama3": (
        {"rope_theta": 5e5, "rope_scaling": dict(LLAMA3, original_max_position_embeddings=1024)},
        None,
    ),
    "llama3_nested": (
        {
            "rope_parameters": dict(
                LLAMA3, rope_theta=5e5, factor=8.0, original_max_position_embeddings=2048
            )
        },
        None,
    ),
    "yarn": (
        {"rope_theta": 1e6, "rope_scaling": dict(YARN, original_max_position_embeddings=256)},
        None,
    ),
    "yarn_no_original": ({"rope_theta": 1e6, "rope_scaling": dict(YARN, factor=4.0)}, None),
    "yarn_no_truncate": ({"rope_theta": 150000.0, "rope_scaling": dict(YARN, **GPT_OSS)}, None),
    "yarn_mscale": (
        {
            "rope_theta": 1e4,
            "rope_scaling": dict(
                YARN, mscale=1.0, mscale_all_dim=0.7, original_max_position_embeddings=256
            ),
        },
        None,
    ),
    "yarn_attention": (
        {
            "rope_theta": 1e4,
            "rope_scaling": dict(YARN, attention_factor=1.25, original_max_position_embeddings=256),
        },
        None,
    ),
    "longrope_short": (
        {"rope_theta": 1e4, "rope_scaling": dict(LONGROPE, original_max_position_embeddings=512)},
        512,
    ),
    "longrope_long": (
        {"rope_theta": 1e4, "rope_scaling": dict(LONGROPE, original_max_position_embeddings=512)},
        513,
    ),
    "longrope_factor": (
        {
            "rope_theta": 1e4,
            "rope_scaling": dict(LONGROPE, factor=3.0, original_max_position_embeddings=512),
        },
        None,
    ),
}


def reference(name):
    """Inverse frequencies and attention factor as transformers computes them."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    changes, seq_len = CASES[name]
    config = LlamaConfig(**json.loads(json.dumps({**BASE, **changes})))
    kind = config.rope_parameters["rope_type"]
    make = ROPE_INIT_FUNCTIONS.get(kind, LlamaRotaryEmbedding.compute_default_rope_parameters)
    inv_freq, factor = make(config, seq_len=seq_len)
    return [float(x) for x in inv_freq], float(factor)


def record():
    lines = []
    for name in CASES:
        inv_freq, factor = reference(name)
        lines.append(f'"{name}": {json.dumps({"factor": factor, "inv_freq": inv_freq})}')
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()

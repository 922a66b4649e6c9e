"""Quantize a folder from make_hf.py into a GGUF file, every matrix in the same format.

    python bench/peers/make_gguf.py HF_DIR OUT.gguf [--type Q4_0|Q4_1|Q8_0|BF16]

Needs gguf, ml_dtypes and safetensors. llama.cpp's own tool leaves the head at 6 or 8 bits.
"""

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
from make_hf import NAMES, rotary_pairs
from safetensors import safe_open

TYPES = ("Q4_0", "Q4_1", "Q8_0", "BF16")


def metadata(writer: gguf.GGUFWriter, config: dict) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def tokenizer(writer: gguf.GGUFWriter, folder: Path, vocab: int) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    special = {t["id"]: t["content"] for t in data["added_tokens"]}
    words = {i: word for word, i in data["model"]["vocab"].items()} | special
    kinds = gguf.TokenType
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([words[i] for i in range(vocab)])
    writer.add_token_types(
        [kinds.CONTROL if i in special else kinds.UNUSED if words[i].startswith("<unused_")
         else kinds.NORMAL for i in range(vocab)]
    )  # fmt: skip
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def tensors(writer: gguf.GGUFWriter, folder: Path, config: dict, kind: str) -> None:
    quant = gguf.GGMLQuantizationType[kind]
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    outer = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    with safe_open(folder / "model.safetensors", "numpy") as file:
        for key in sorted(file.keys()):
            values = file.get_tensor(key).astype(np.float32)
            name = key.removesuffix(".weight")
            if name in outer:
                name = outer[name]
            else:
                _, _, layer, inner = name.split(".", 3)
                values = rotate(values, heads.get(NAMES[inner]))
                name = f"blk.{layer}.{NAMES[inner]}"
            if values.ndim == 1:
                writer.add_tensor(f"{name}.weight", values)
            else:
                blocks = gguf.quants.quantize(values, quant)
                writer.add_tensor(f"{name}.weight", blocks, raw_dtype=quant)


def rotate(values: np.ndarray, heads: int | None) -> np.ndarray:
    return rotary_pairs(values, heads) if heads else values


def make(folder: Path, out: Path, kind: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_name(folder.parent.name)
    metadata(writer, config)
    tokenizer(writer, folder, config["vocab_size"])
    tensors(writer, folder, config, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=TYPES, default="Q4_0")
    options = parser.parse_args()
    make(options.folder, options.out, options.type)


if __name__ == "__main__":
    main()

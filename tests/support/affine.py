"""Tiny checkpoints with the weights of MLX's quantization."""

import json

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from .tiles import bit_stream
from .tiny import checkpoint

ODD = "model.layers.1.mlp.up_proj"  # quantized in its own way


def quantize(values, bits, group):
    """f32 [n, k] to (packed u32, scales, biases, decoded values)."""
    n, k = values.shape
    groups = values.reshape(n, k // group, group)
    low, high = groups.min(-1), groups.max(-1)
    scales = ((high - low) / (2**bits - 1)).astype(np.float16)
    biases = low.astype(np.float16)
    scale, bias = scales.astype(np.float32)[..., None], biases.astype(np.float32)[..., None]
    codes = np.clip(np.rint((groups - bias) / scale), 0, 2**bits - 1).astype(np.uint32)
    decoded = (codes * scale + bias).reshape(n, k).astype(np.float32)
    return bit_stream(codes.reshape(n, k), bits), scales, biases, decoded


def write_pair(folder, bits, group, dtype=np.float16, odd=None):
    """The checkpoint "wide" quantized, and with the decoded values; returns both paths."""
    coded, plain = (checkpoint("wide", folder / kind) for kind in ("coded", "plain"))
    source = load_bf16(plain)
    tensors, decoded = {}, {}
    for name, values in source.items():
        path = name.removesuffix(".weight")
        b, g = odd if odd and path == ODD else (bits, group)
        if values.ndim == 2 and values.shape[1] % g == 0 and (b, g) != (0, 0):
            packed, scales, biases, decoded[name] = quantize(values, b, g)
            tensors |= {name: packed, f"{path}.scales": scales.astype(dtype)}
            tensors[f"{path}.biases"] = biases.astype(dtype)
        else:
            tensors[name] = decoded[name] = values
    save_file(tensors, coded / "model.safetensors")
    save_file(decoded, plain / "model.safetensors")
    config = json.loads((coded / "config.json").read_text())
    config["quantization"] = {"bits": bits, "group_size": group}
    if odd:
        config["quantization"][ODD] = {"bits": odd[0], "group_size": odd[1]}
    (coded / "config.json").write_text(json.dumps(config))
    return coded, plain


def load_bf16(path):
    tensors = {}
    raw = (path / "model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            start, end = (8 + size + at for at in entry["data_offsets"])
            values = np.frombuffer(raw[start:end], ml_dtypes.bfloat16).astype(np.float32)
            tensors[name] = values.reshape(entry["shape"])
    return tensors

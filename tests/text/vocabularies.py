"""Tokenizers of each kind for tests: the real byte-level one, and small made ones."""

import functools
import json
from pathlib import Path

from butter.text.detokenizer import BYTES
from butter.text.tokenizer import Tokenizer
from text import smollm2

SPM_RECORD = json.loads(Path(__file__).with_name("sentencepiece.json").read_text())


@functools.cache
def smollm2_tokenizer() -> Tokenizer:
    return Tokenizer.from_gguf(smollm2.metadata())


def spm_metadata() -> dict:
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": SPM_RECORD["tokens"],
        "tokenizer.ggml.scores": SPM_RECORD["scores"],
        "tokenizer.ggml.token_type": SPM_RECORD["kinds"],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


@functools.cache
def spm_tokenizer() -> Tokenizer:
    return Tokenizer.from_gguf(spm_metadata())


def bytes_metadata(pre="gpt-2") -> dict:
    """Byte-level: two special tokens, one plain added one, the 256 bytes and a few merges."""
    letters = list(BYTES)
    merges = ["h e", "l l", "he ll", "hell o", "\u0120 w", "1 2", "12 3", "\u00f0 \u0141"]
    tokens = ["<s>", "<|im_end|>", "<think>", *letters, *(m.replace(" ", "") for m in merges)]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3, 4] + [1] * (len(tokens) - 3),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
    }


@functools.cache
def bytes_tokenizer() -> Tokenizer:
    return Tokenizer.from_gguf(bytes_metadata())


@functools.cache
def metaspace_tokenizer() -> Tokenizer:
    """The SentencePiece vocabulary behind the Metaspace pre-tokenizer and decoder."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, normalizers, pre_tokenizers

    backend = Backend.from_str(spm_tokenizer()._backend.to_str())
    backend.normalizer = normalizers.Sequence([])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    backend.decoder = decoders.Metaspace()
    return Tokenizer(backend)

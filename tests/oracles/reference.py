"""What transformers computes, in f32 on the CPU, for a checkpoint or a GGUF file."""

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Reference:
    """A loaded reference model."""

    def __init__(self, path: Path):
        """`path` is a checkpoint folder or a .gguf file, which is dequantized (slowly)."""
        path = Path(path)
        self._where: dict = {"pretrained_model_name_or_path": str(path)}
        if path.suffix == ".gguf":
            self._where = {
                "pretrained_model_name_or_path": str(path.parent),
                "gguf_file": path.name,
            }
        # bf16 and f16 weights are widened: Butter's sums are f32 as well.
        self.model = AutoModelForCausalLM.from_pretrained(
            **self._where, dtype=torch.float32, attn_implementation="eager"
        ).eval()

    def tokenizer(self):
        """The checkpoint's tokenizer, as transformers reads it."""
        return AutoTokenizer.from_pretrained(**self._where)

    @torch.inference_mode()
    def logits(self, ids: list[int]) -> np.ndarray:
        """Logits [T, V] of one whole pass."""
        return self.model(torch.tensor([ids]), use_cache=False).logits[0].numpy()

    def greedy(self, ids: list[int], count: int) -> tuple[list[int], float]:
        """The greedy continuation, and the narrowest lead of a chosen token over the next best."""
        chosen, lead = [], float("inf")
        for _ in range(count):
            row = self.logits(ids + chosen)[-1]
            second, first = np.partition(row, -2)[-2:]
            lead = min(lead, float(first - second))
            chosen.append(int(row.argmax()))
        return chosen, lead

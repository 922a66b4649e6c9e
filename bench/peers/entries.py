"""What is compared: an engine and a model file of one shape, made by make_models.py."""

from dataclasses import dataclass

from shapes import SHAPES

QUANTIZED, BF16 = "quantized", "bf16"


@dataclass(frozen=True)
class Entry:
    name: str
    engine: str
    shape: str
    file: str  # in the folder of the shape
    precision: str = QUANTIZED  # engines meet only those of a like precision

    @property
    def key(self) -> str:
        return f"{self.shape}/{self.name}"


def quantized(shape: str) -> list[Entry]:
    return [
        Entry("butter q4", "butter", shape, "butter-q4"),
        Entry("butter q4-g64", "butter", shape, "butter-q4-g64"),
        Entry("butter Q4_0", "butter", shape, "q4_0.gguf"),
        Entry("llama.cpp Q4_0", "llama.cpp", shape, "q4_0.gguf"),
        Entry("onnxruntime-genai int4", "onnxruntime-genai", shape, "ort-int4"),
    ]


def bf16(shape: str) -> list[Entry]:
    return [
        Entry("butter bf16", "butter", shape, "hf", BF16),
        Entry("llama.cpp bf16", "llama.cpp", shape, "bf16.gguf", BF16),
    ]


ENTRIES = [
    Entry("butter Q4_1", "butter", "smol-135m", "shipped.gguf"),
    Entry("llama.cpp Q4_1", "llama.cpp", "smol-135m", "shipped.gguf"),
    *quantized("smol-135m"),
    # It has no 4-bit kernels for the CPU.
    Entry("ctranslate2 int8", "ctranslate2", "smol-135m", "ct2-int8"),
    *(e for s in SHAPES if s != "smol-135m" for e in (*quantized(s), *bf16(s))),
]

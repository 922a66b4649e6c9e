"""How byte-level vocabularies cut text into words before merging, by their name in GGUF files.

The expressions are the ones the vocabularies were trained with; a wrong one gives token ids that
the model has hardly seen, and no error. So an unknown name is refused.
"""

from dataclasses import dataclass

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
QWEN2 = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
QWEN35 = SUFFIX + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORDS = (  # with and without a capital in front
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*",
)
TEKKEN = "|".join(WORDS) + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
GPT4O = (
    "|".join(w + SUFFIX + "?" for w in WORDS) + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
)
DEEPSEEK3 = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES,
)
FALCON = (r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]")
# What llama.cpp's converter calls "default", which is none of the above.
DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")
DIGITS = (r"\p{N}", GPT2)


@dataclass(frozen=True)
class PreTokenizer:
    """Splits applied one after the other, and what else goes with the vocabulary.

    Attributes:
        splits: Regular expressions; each cuts the parts that the one before left.
        whole_words: A word that is a token by itself is taken without merging.
        adds_bos: The text starts with BOS if the file does not say otherwise.
    """

    splits: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False


def named(names: str, pre: PreTokenizer) -> dict[str, PreTokenizer]:
    return dict.fromkeys(names.split(), pre)


PRE_TOKENIZERS = {
    **named("gpt-2 phi-2 mpt olmo jais", PreTokenizer((GPT2,))),
    **named("smollm starcoder refact command-r codeshell exaone minerva-7b", PreTokenizer(DIGITS)),
    **named(
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0",
        PreTokenizer((LLAMA3,), whole_words=True, adds_bos=True),
    ),
    **named("dbrx smaug-bpe chatglm-bpe", PreTokenizer((LLAMA3,))),
    **named("qwen2 deepseek-r1-qwen kormo megrez stablelm2", PreTokenizer((QWEN2,))),
    **named("qwen35", PreTokenizer((QWEN35,))),
    **named("tekken", PreTokenizer((TEKKEN,), whole_words=True, adds_bos=True)),
    **named("gpt-4o llama4 kanana2 minimax-m2", PreTokenizer((GPT4O,))),
    **named("deepseek-v3", PreTokenizer(DEEPSEEK3)),
    **named("falcon", PreTokenizer(FALCON)),
    **named("default", PreTokenizer(DEFAULT)),
}

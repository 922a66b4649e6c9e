"""A byte-level BPE of 512 tokens, made from a word list instead of training.

Training may break ties differently between releases of `tokenizers`; a list cannot.
"""

import json
from itertools import product
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

VOCAB = 512
PAD, BOS, EOS = 0, 1, 2
_SPECIAL = ["<pad>", "<s>", "</s>"]

_TEXT = """the and of to in is was for that with on as are this be at from have not which
you they will one all there can more when what time like than first butter kernel token model
capital France Paris sky blue why because light water people world year number system
"""

CHAT_TEMPLATE = (
    "{% for message in messages %}<s>{{ message.role }}\n{{ message.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


def write_tokenizer(path: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json."""
    build().save(str(path / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": _SPECIAL[BOS],
        "eos_token": _SPECIAL[EOS],
        "pad_token": _SPECIAL[PAD],
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (path / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def build() -> Tokenizer:
    """All bytes, then the prefixes of a few words, each one merge longer than the last."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = VOCAB - len(_SPECIAL) - len(alphabet)
    merges: dict[tuple[str, str], None] = {}  # ordered, without repeats
    for word in _TEXT.split():
        spaced = "\u0120" + word  # the byte-level spelling of a space
        for n in range(1, len(spaced)):
            merges.setdefault((spaced[:n], spaced[n]))
    for pair in product("etaoinshrdlu", repeat=2):
        merges.setdefault(pair)
    kept = list(merges)[:room]
    tokens = _SPECIAL + alphabet + [left + right for left, right in kept]
    assert len(set(tokens)) == VOCAB, f"{len(set(tokens))} different tokens, need {VOCAB}"

    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=kept))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in _SPECIAL])
    return tokenizer

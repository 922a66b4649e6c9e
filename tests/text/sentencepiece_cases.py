"""A small SentencePiece BPE vocabulary with byte tokens, and its own library's reading of texts.

To record sentencepiece.json: python tests/text/sentencepiece_cases.py (needs sentencepiece).
"""

import io
import json
from pathlib import Path

from text.tokenizer_cases import texts

RECORDED = Path(__file__).with_name("sentencepiece.json")

CORPUS = [
    "the cat sat on the mat and the dog sat on the log",
    "a kettle of butter melts slowly over a small fire in the kitchen",
    "she sells sea shells on the sea shore, and he sells he-said-she-said stories",
    "in 1987 there were 12 monkeys; by 2024 there were 345 of them",
    "print(sum(x * x for x in range(10) if x % 2 == 0))",
    "l'été à la plage était agréable; les élèves préfèrent la neige",
    "Der große Bär läuft über die Straße und frißt süße Äpfel",
    "what is the answer to the question that nobody asked yesterday?",
]


def record():
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 3),
        model_writer=model,
        vocab_size=440,
        model_type="bpe",
        byte_fallback=True,
        split_digits=True,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    spm = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(spm.vocab_size())
    kinds = [
        2 if spm.is_unknown(i) else 3 if spm.is_control(i) else 6 if spm.is_byte(i) else 1
        for i in ids
    ]
    # The library ends a text at NUL and takes special tokens in a text as plain characters.
    cases = [
        [text, spm.encode(text)]
        for text in [*texts()[::3], *CORPUS]
        if "\0" not in text and "<|" not in text
    ]
    table = {
        "tokens": [spm.id_to_piece(i) for i in ids],
        "scores": [spm.get_score(i) for i in ids],
        "kinds": kinds,
    }
    lines = [f'"{k}": {json.dumps(v, separators=(",", ":"))}' for k, v in table.items()]
    rows = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    RECORDED.write_text("{\n" + ",\n".join(lines) + f',\n"cases": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    record()

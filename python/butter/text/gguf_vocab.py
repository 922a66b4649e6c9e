"""A `tokenizers` tokenizer built from a GGUF file's metadata."""

import math
from collections.abc import Mapping

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from ..errors import FileFormatError, UnsupportedError
from .pretokenizers import PRE_TOKENIZERS
from .rust import guarded

UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6  # values of tokenizer.ggml.token_type
SPACE = "\u2581"  # how SentencePiece writes a space

# Control tokens that end a turn. Files rarely name more than one id, and a model that emits
# another of these would go on forever.
ENDS = (
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end_of_turn|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)


class GgufVocabulary:
    """The checked tokenizer part of the metadata."""

    def __init__(self, metadata: Mapping):
        self.metadata = metadata
        self.model = metadata.get("tokenizer.ggml.model")
        self.tokens = self.strings("tokens")
        kinds = metadata.get("tokenizer.ggml.token_type")
        self.kinds = [1] * len(self.tokens) if kinds is None else self.numbers("token_type", int)

    def strings(self, key: str) -> list[str]:
        values = plain_list(self.metadata.get(f"tokenizer.ggml.{key}"))
        if not values:
            raise FileFormatError(
                f"[tokenizer] tokenizer.ggml.{key}: got {values!r:.40}, need a list of strings"
            )
        for i, value in enumerate(values):
            # The reader writes bytes that are no text as lone surrogates.
            if not isinstance(value, str) or not value.isascii() and has_surrogate(value):
                raise FileFormatError(
                    f"[tokenizer] tokenizer.ggml.{key}[{i}]: got {value!r:.40}, need UTF-8 text"
                )
        return values

    def numbers(self, key: str, kind: type) -> list:
        values = plain_list(self.metadata.get(f"tokenizer.ggml.{key}"))
        if values is None or len(values) != len(self.tokens):
            raise FileFormatError(
                f"[tokenizer] tokenizer.ggml.{key}: got {values!r:.40}, "
                f"need one number for each of {len(self.tokens)} tokens"
            )
        if not all(type(v) in (int, float) and math.isfinite(v) for v in values):
            raise FileFormatError(f"[tokenizer] tokenizer.ggml.{key}: need finite numbers")
        return [kind(v) for v in values]

    def token_id(self, name: str) -> int | None:
        """A special token's id, such as "bos"; None if the file names none."""
        value = self.metadata.get(f"tokenizer.ggml.{name}_token_id")
        if value is None:
            return None
        value = plain_scalar(value)
        if type(value) is not int or not 0 <= value < len(self.tokens):
            raise FileFormatError(
                f"[tokenizer] tokenizer.ggml.{name}_token_id: got {value!r:.40}, "
                f"need 0 to {len(self.tokens) - 1}"
            )
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.metadata.get(f"tokenizer.ggml.{name}")
        if value is None:
            return default
        value = plain_scalar(value)
        if not isinstance(value, bool):
            raise FileFormatError(
                f"[tokenizer] tokenizer.ggml.{name}: got {value!r:.40}, need a bool"
            )
        return value

    def adds(self) -> tuple[bool, bool]:
        """Whether a text starts with BOS and ends with EOS."""
        bos = self.model == "llama"
        if self.model == "gpt2":
            bos = self.pre_tokenizer().adds_bos
        return self.flag("add_bos_token", bos), self.flag("add_eos_token", False)

    def ends(self) -> tuple[int, ...]:
        """Every id that ends a text or a turn, the file's own first."""
        ids = [self.token_id(n) for n in ("eos", "eot", "eom")]
        ends = set(ENDS)
        if "<|return|>" in self.tokens:
            ends.discard("<|end|>")  # in this format it only ends one message of several
        for i, (token, kind) in enumerate(zip(self.tokens, self.kinds, strict=True)):
            if kind == CONTROL and token in ends:
                ids.append(i)
        return tuple(dict.fromkeys(i for i in ids if i is not None))

    def pre_tokenizer(self):
        name = self.metadata.get("tokenizer.ggml.pre")
        if not isinstance(name, str) or name not in PRE_TOKENIZERS:
            raise UnsupportedError(
                f"[tokenizer] tokenizer.ggml.pre: got {name!r:.60}, "
                f"need one of {', '.join(PRE_TOKENIZERS)}"
            )
        return PRE_TOKENIZERS[name]

    def build(self) -> Tokenizer:
        builders = {"gpt2": self.byte_level, "llama": self.sentencepiece}
        if not isinstance(self.model, str) or self.model not in builders:
            raise UnsupportedError(
                f"[tokenizer] tokenizer.ggml.model: got {self.model!r:.60}, "
                f"need one of {', '.join(builders)}"
            )
        tokenizer = builders[self.model]()
        for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
            added = [
                AddedToken(token, normalized=False, special=special)
                for token, k in zip(self.tokens, self.kinds, strict=True)
                if k == kind and token
            ]
            (tokenizer.add_special_tokens if special else tokenizer.add_tokens)(added)
        return tokenizer

    def vocab(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.tokens)}

    def byte_level(self) -> Tokenizer:
        pre = self.pre_tokenizer()
        vocab, merges = self.vocab(), []

        def known(part: str) -> str:
            """The vocabulary's own object: 98k texts for SmolLM2 would take 5 MiB more."""
            return self.tokens[vocab[part]] if part in vocab else part

        for merge in self.strings("merges"):
            left, _, right = merge.partition(" ")
            if not left or not right or " " in right:
                raise FileFormatError(
                    f"[tokenizer] tokenizer.ggml.merges: got {merge!r:.60}, need two tokens"
                )
            merges.append((known(left), known(right)))
        with guarded("tokenizer.ggml"):
            tokenizer = Tokenizer(models.BPE(vocab, merges, ignore_merges=pre.whole_words))
        splits = [pre_tokenizers.Split(Regex(s), "isolated") for s in pre.splits]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer

    def sentencepiece(self) -> Tokenizer:
        unknown, merges = self.token_id("unknown"), self.scored_merges()
        with guarded("tokenizer.ggml"):
            tokenizer = Tokenizer(
                models.BPE(
                    self.vocab(),
                    merges,
                    unk_token=None if unknown is None else self.tokens[unknown],
                    fuse_unk=True,
                    byte_fallback=True,
                )
            )
        prefix = self.flag("add_space_prefix", True)
        # Also after a special token in the middle: a GGUF file means llama.cpp's reading.
        front = [normalizers.Prepend(SPACE)] if prefix else []
        tokenizer.normalizer = normalizers.Sequence([*front, normalizers.Replace(" ", SPACE)])
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
            + ([decoders.Strip(" ", 1, 0)] if prefix else [])
        )
        return tokenizer

    def scored_merges(self) -> list[tuple[str, str]]:
        """SentencePiece merges whichever pair makes the best-scored token; as a list of pairs."""
        skip = (UNKNOWN, CONTROL, BYTE)
        scores = self.numbers("scores", float)
        known = {
            token: score
            for token, score, kind in zip(self.tokens, scores, self.kinds, strict=True)
            if kind not in skip
        }
        merges = []
        for token, score in known.items():
            for cut in range(1, len(token)):
                left, right = token[:cut], token[cut:]
                if left in known and right in known:
                    merges.append((-score, -cut, left, right))
        merges.sort()
        return [(left, right) for _, _, left, right in merges]


def plain_list(values) -> list | None:
    """An array of the file as a list; None for what is no array."""
    if hasattr(values, "tolist"):  # the reader's arrays, and numpy's
        values = values.tolist()
    return list(values) if isinstance(values, list | tuple) else None


def plain_scalar(value):
    """A number of numpy's as Python's own."""
    return value.item() if hasattr(value, "item") else value


def has_surrogate(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)

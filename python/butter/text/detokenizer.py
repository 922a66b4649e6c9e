"""Token ids to text, one token at a time, without ever breaking a character."""

import codecs
import json
import re
from collections.abc import Callable, Iterable

from ..errors import ConfigError, UnsupportedError


def byte_alphabet() -> dict[str, int]:
    """The 256 printable characters that byte-level vocabularies spell bytes with."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(0x100 + i): b for i, b in enumerate(rest)}


BYTES = byte_alphabet()
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("butter.each_byte", each_byte)


class Pieces:
    """The bytes of each token, as the tokenizer's decoder spells them.

    Two kinds of vocabulary exist: byte-level ones, and ones that mark spaces (SentencePiece),
    with or without tokens for single bytes.
    """

    def __init__(self, decoder: str, token: Callable[[int], str | None], special: Iterable[int]):
        self._token = token
        self._cache: dict[int, bytes] = {}
        self.special = frozenset(special)
        self.byte_level = False
        self.replace: list[tuple[str, str]] = []
        self.byte_fallback = False
        #: The text loses one leading space.
        self.strip_space = False
        #: The first token loses all its marks.
        self.strip_marks: str | None = None
        self._read(decoder)
        # One U+FFFD for each stray byte, or for each cut-off character: as `tokenizers` does.
        self.errors = "replace" if self.byte_level else "butter.each_byte"

    def _read(self, decoder: str) -> None:
        steps = json.loads(decoder) if decoder else None
        steps = steps["decoders"] if steps and steps["type"] == "Sequence" else [steps]
        fused = False
        for step in steps:
            kind = step["type"] if step else "none"
            if kind == "ByteLevel" and len([s for s in steps if s["type"] != "Fuse"]) == 1:
                self.byte_level = True
            elif kind == "Replace" and not fused and "String" in step["pattern"]:
                self.replace.append((step["pattern"]["String"], step["content"]))
            elif kind == "ByteFallback" and not fused:
                self.byte_fallback = True
            elif kind == "Fuse":
                fused = True
            elif kind == "Strip" and fused and step["content"] == " " and step["stop"] == 0:
                if step["start"] > 1:
                    raise UnsupportedError(f"[tokenizer] Strip: got {step}, need start 0 or 1")
                self.strip_space = step["start"] == 1
            elif kind == "Metaspace" and len(steps) == 1:
                self.replace.append((step["replacement"], " "))
                if step.get("prepend_scheme", "always") != "never":
                    self.strip_marks = step["replacement"]
            else:
                raise UnsupportedError(
                    f"[tokenizer] decoder: got {kind} in {decoder:.200}; need ByteLevel, "
                    "Metaspace, or Replace, ByteFallback, Fuse, Strip in this order"
                )

    def __getitem__(self, token: int) -> bytes:
        piece = self._cache.get(token)
        if piece is None:
            piece = self._cache[token] = self._spell(self.text(token))
        return piece

    def text(self, token: int) -> str:
        """The token as the vocabulary writes it; empty for ids past its end (padding rows)."""
        try:
            return self._token(token) or ""
        except (TypeError, OverflowError):
            raise ConfigError(f"[tokenizer] token id: got {token!r:.40}, need 0 or above") from None

    def first(self, token: int) -> bytes:
        """The piece of the first token of a text."""
        if self.strip_marks is None:
            return self[token]
        return self._spell(self.text(token).replace(self.strip_marks, ""))

    def _spell(self, token: str) -> bytes:
        if self.byte_level:
            try:
                return bytes(BYTES[c] for c in token)
            except KeyError:
                return token.encode()  # an added token, which is plain text
        for old, new in self.replace:
            token = token.replace(old, new)
        if self.byte_fallback and (match := BYTE_TOKEN.fullmatch(token)):
            return bytes.fromhex(match[1])
        return token.encode()

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """The text of all ids; the same as pushing them one by one."""
        stream = Detokenizer(self, skip_special=skip_special)
        return stream.push_all(ids) + stream.flush()


class Detokenizer:
    """Turns a stream of tokens into text; holds back the bytes of an unfinished character.

    Args:
        pieces: The vocabulary's pieces (`Tokenizer.pieces`).
        skip_special: Leave out special tokens.
        continues: The text goes on after a prompt, so a leading space is part of it.
    """

    def __init__(self, pieces: Pieces, *, skip_special: bool = False, continues: bool = False):
        self._pieces = pieces
        self._skip = pieces.special if skip_special else frozenset()
        self._utf8 = codecs.getincrementaldecoder("utf-8")(pieces.errors)
        self._is_first = not continues
        self._strip = pieces.strip_space and not continues

    def push(self, token: int) -> str:
        """Return the text that this token completes; often empty inside an emoji."""
        return self._text(self._utf8.decode(self._bytes(token)))

    def push_all(self, tokens: Iterable[int]) -> str:
        return self._text(self._utf8.decode(b"".join([self._bytes(t) for t in tokens])))

    def flush(self) -> str:
        """End the stream; bytes that never became a character turn into U+FFFD."""
        return self._text(self._utf8.decode(b"", final=True))

    def _bytes(self, token: int) -> bytes:
        if token in self._skip:
            return b""
        if self._is_first:
            self._is_first = False
            return self._pieces.first(token)
        return self._pieces[token]

    def _text(self, text: str) -> str:
        if self._strip and text:
            self._strip = False
            return text.removeprefix(" ")
        return text

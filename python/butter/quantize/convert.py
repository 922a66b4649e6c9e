"""A model as a new checkpoint in MLX's affine form."""

import contextlib
import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import hub
from ..affine import Quantization
from ..checkpoint import DENSE, Checkpoint, Stored
from ..config import load_config, open_gguf
from ..errors import ConfigError
from ..loading import open_device
from ..matrix import QuantizedMatrix
from ..registry import find_family
from ..weights import WeightLoader, Weights
from .companions import write_companions
from .plan import Plan
from .recode import RecodedMatrix, block_rows, raw_rows, release_rows, stored_rows
from .scheme import Scheme
from .writer import Spec, Unit, write_checkpoint

SHARD_BYTES = 5 << 30  # as hub repositories have them
SPELLING = {ours: theirs for theirs, ours in DENSE.items()}


@dataclass(frozen=True)
class Summary:
    """What a conversion wrote.

    Attributes:
        path: The new folder.
        files: Names of its weight files.
        nbytes: Of all tensors.
        recoded: Matrices that were quantized.
        kept: Matrices whose codes were taken over.
        indivisible: Matrices that stay as stored, since no whole groups fit their inputs.
    """

    path: Path
    files: tuple[str, ...]
    nbytes: int
    recoded: int
    kept: int
    indivisible: int


def convert(
    id_or_path: str | os.PathLike,
    out: str | os.PathLike,
    *,
    quantize: Any = "q4",
    revision: str | None = None,
    offline: bool | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> Summary:
    """Write a model into the new folder `out`, quantized as `Model.load(quantize=…)` would.

    The folder appears when it is complete. It holds config, tokenizer, chat template and weights,
    so that loading it needs nothing else.

    Args:
        id_or_path: As for `Model.load`.
        out: Must not exist yet; the folder that it lies in must.
        quantize: As for `Model.load`.
        revision: Branch, tag or commit of a hub repository.
        offline: True never asks the network; None follows HF_HUB_OFFLINE.
        on_progress: Called with (bytes written, bytes in all).
        shard_bytes: Most bytes per weight file.

    Raises:
        ButterError: One of its subclasses, which names what is wrong and what to do.
    """
    scheme = Scheme.read(quantize)
    if scheme is None:
        raise ConfigError("[convert] quantize: got None, need a form such as 'q4'")
    if on_progress is not None and not callable(on_progress):
        raise ConfigError(f"[convert] on_progress: got {on_progress!r:.80}, need a function")
    if type(shard_bytes) is not int or shard_bytes < 1:
        raise ConfigError(f"[convert] shard_bytes: got {shard_bytes!r:.80}, need at least 1")
    path = new_folder(out)
    files = hub.resolve(id_or_path, revision=revision, offline=offline)
    gguf = open_gguf(files) if files.kind == "gguf" else None
    config = load_config(files, gguf)
    device = open_device("cpu", None)
    plan = Plan(scheme)
    loader = WeightLoader(Checkpoint(files, config, gguf), Quantization.read(config), plan)
    family = find_family(config)
    family.model(family.config.read(config), Weights(loader))
    loader.check(family.ignores)
    plan.report()

    units = [unit(loader, name, device) for name in file_order(loader)]
    total = sum(u.nbytes for u in units)

    def report(done: int) -> None:
        if on_progress:
            on_progress(done, total)

    with told_of(path, total), Partial(path) as folder:
        names = write_checkpoint(folder, units, shard_bytes, report)
        write_companions(folder, files, gguf, settings(loader), scheme)
    counts = len(plan.recoded), len(plan.kept), len(plan.indivisible)
    return Summary(path, tuple(names), total, *counts)


def new_folder(out: str | os.PathLike) -> Path:
    if not isinstance(out, str | os.PathLike) or not os.fspath(out):
        raise ConfigError(f"[convert] out: got {out!r:.80}, need the path of a new folder")
    try:
        path = hub.expanded(out).absolute()
    except OSError as error:
        raise ConfigError(f"[convert] {out}: the current folder: {error.strerror}") from None
    if os.path.lexists(path):
        raise ConfigError(f"[convert] {path} exists; name a new folder, or remove this one")
    if not path.parent.is_dir():
        raise ConfigError(f"[convert] {path.parent}: no such folder; make it first")
    return path


@contextlib.contextmanager
def told_of(path: Path, nbytes: int) -> Iterator[None]:
    """The system's errors name no file, or one that is only ours."""
    try:
        yield
    except OSError as error:
        text = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            text += f", need {nbytes / 1e6:.1f} MB in all"
        raise OSError(error.errno, text, str(path)) from error


class Partial:
    """A folder beside the wanted one, which becomes it at the end or is removed."""

    def __init__(self, path: Path):
        self.path = path
        self.folder = path.with_name(f".{path.name[:40]}.{os.getpid()}.partial")

    def __enter__(self) -> Path:
        self.folder.mkdir()
        return self.folder

    def __exit__(self, kind, *_) -> None:
        try:
            if kind is None:
                new_folder(self.path)  # it may have come to be in the meantime
                self.folder.rename(self.path)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def file_order(loader: WeightLoader) -> list[str]:
    stored = loader.checkpoint.tensors
    return sorted(loader.wanted, key=lambda n: (stored[n].mapping.path, stored[n].offset))


def unit(loader: WeightLoader, name: str, device) -> Unit:
    """What the new files hold of one tensor that the model wants."""
    part, stored = loader.wanted[name], loader.checkpoint.tensors[name]
    if not isinstance(part, QuantizedMatrix):
        spec = Spec(name, SPELLING[stored.type], stored.shape)
        return Unit((spec,), lambda: dense_pieces(stored))
    (n, k), form = part.shape, part.format
    path, groups = name.removesuffix(".weight"), (n, k // form.group)
    specs = (
        Spec(name, "U32", (n, k * form.bits // 32)),
        Spec(f"{path}.scales", "F16", groups),
        Spec(f"{path}.biases", "F16", groups),
    )
    return Unit(specs, lambda: quantized_pieces(part, stored, device))


def dense_pieces(stored: Stored) -> Iterator[np.ndarray]:
    rows = stored.shape[0]
    count = block_rows(max(1, stored.nbytes // rows))
    for first in range(0, rows, count):
        yield raw_rows(stored, first, min(count, rows - first))
        release_rows(stored, first, min(count, rows - first))
    stored.release()


def quantized_pieces(part: QuantizedMatrix, stored: Stored, device) -> Iterator[np.ndarray]:
    if isinstance(part, RecodedMatrix):
        blocks = part.blocks(device, stored)
    else:
        blocks = stored_rows(part, device, stored)
    scales, biases = [], []
    for rows in blocks:
        yield rows.words
        scales.append(rows.scales)
        biases.append(rows.biases)
    yield from scales
    yield from biases
    part.release(stored)


def settings(loader: WeightLoader) -> dict[str, Any]:
    """config.json's "quantization": the commonest form, and by path what differs from it."""
    forms = {
        name.removesuffix(".weight"): (part.format.bits, part.format.group)
        for name, part in loader.wanted.items()
        if isinstance(part, QuantizedMatrix)
    }
    (common, _), *_ = Counter(forms.values()).most_common(1)
    others = {path: as_setting(*form) for path, form in forms.items() if form != common}
    return {**as_setting(*common), "mode": "affine", **others}


def as_setting(bits: int, group: int) -> dict[str, int]:
    return {"group_size": group, "bits": bits}

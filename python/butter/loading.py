"""From a name to weights on a device."""

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike

from . import _native, hub
from .affinity import Affinity, cpu_numbers
from .checkpoint import Checkpoint
from .config import load_config, load_generation_config, open_gguf
from .engine import Engine, Options, check_flag
from .errors import ConfigError
from .generation import SamplingParams, defaults_from
from .lifecycle import Lifecycle, State
from .prompt import Prompter
from .registry import find_family

log = logging.getLogger("butter.loading")


@dataclass(frozen=True)
class Loaded:
    """Everything that a model is made of."""

    engine: Engine
    prompter: Prompter
    defaults: SamplingParams


def load(
    id_or_path: str | PathLike,
    lifecycle: Lifecycle,
    *,
    device: str,
    threads: int | None,
    affinity: Affinity | None,
    revision: str | None,
    offline: bool | None,
    scan: bool,
    **options,
) -> Loaded:
    """Find, check and load a model; see `Model.load` for the arguments."""
    checked = Options(**options)
    check_flag("offline", offline, None)
    if revision is not None and not isinstance(revision, str):
        raise ConfigError(f"[model] revision: got {revision!r:.80}, need a branch, tag or commit")
    opened = open_device(device, threads, affinity)
    files = hub.resolve(
        id_or_path,
        revision=revision,
        offline=offline,
        on_progress=lambda done, total: lifecycle.to(State.DOWNLOADING, done, total),
    )
    lifecycle.to(State.LOADING)
    gguf = open_gguf(files) if files.kind == "gguf" else None
    config = load_config(files, gguf)
    family = find_family(config)
    engine = Engine(opened, family, config, Checkpoint(files, config, gguf), checked)
    prompter = make_prompter(files, gguf, engine.text.vocab_size)
    gguf = None  # the vocabulary as Python objects: 9 MiB for 49k tokens
    engine.load(scan=scan, progress=progress(lifecycle))
    defaults = defaults_from(load_generation_config(files), config, prompter.tokenizer.eos_ids)
    lifecycle.to(State.LOADED)
    return Loaded(engine, prompter, defaults)


def open_device(name: str, threads: int | None, affinity: Affinity | None = None):
    """Open a device by name. Raises ConfigError or DeviceError with what exists."""
    if not isinstance(name, str) or not name.isascii():
        raise ConfigError(
            f"[model] device: got {name!r:.80}, need 'auto', 'cpu', 'metal', 'cuda' or 'cuda:N'"
        )
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int)):
        raise ConfigError(f"[model] threads: got {threads!r}, need a number from 1 to 1024")
    if threads is not None and not 1 <= threads <= 1024:
        raise ConfigError(f"[model] threads: got {threads}, need 1 to 1024")
    device = _native.open_device(name, threads or 0, cpu_numbers(affinity))
    if warning := device.info.get("warning"):
        warn_once(warning)
    return device


@functools.cache
def warn_once(text: str) -> None:
    log.warning("%s", text)


def make_prompter(files: hub.ModelFiles, gguf: tuple | None, vocab_size: int) -> Prompter:
    from .text.template import ChatTemplate
    from .text.tokenizer import Tokenizer

    metadata = gguf[2] if gguf else None
    tokenizer = Tokenizer.from_files(files, metadata)
    template = ChatTemplate.from_files(
        files, special_tokens=tokenizer.special_tokens, gguf_metadata=metadata
    )
    return Prompter(tokenizer, template, vocab_size)


def progress(lifecycle: Lifecycle) -> Callable[[int, int], None]:
    """Reports whole percents only: an event per tensor would cost more than loading it."""
    last = -1

    def report(done: int, total: int) -> None:
        nonlocal last
        percent = 100 * done // total
        if percent != last:
            last = percent
            lifecycle.to(State.LOADING, done, total)

    return report

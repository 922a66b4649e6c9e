"""Errors of the `tokenizers` extension as ours."""

import contextlib
from collections.abc import Iterator

from ..errors import ButterError, FileFormatError


@contextlib.contextmanager
def guarded(where: str, kind: type[ButterError] = FileFormatError) -> Iterator[None]:
    """Turn whatever the extension raises into one typed error.

    A panic in Rust arrives as a BaseException that is no Exception.
    """
    try:
        yield
    except (ButterError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        raise kind(f"[tokenizer] {where}: {error}") from None

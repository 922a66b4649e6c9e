"""JSON files from strangers, read as hostile input."""

import json
import os
from pathlib import Path

from .errors import FileFormatError

MAX_BYTES = 256 << 20  # the largest tokenizer.json in use is below 40 MB


def read_json(path: Path) -> dict:
    """Read a JSON object; anything else is a FileFormatError that names the file."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FileFormatError(f"[json] {path}: got {size} bytes, need at most {MAX_BYTES}")
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"[json] {path}: not valid JSON: {error}") from None
    except OSError as error:
        raise FileFormatError(f"[json] {path}: cannot be read: {error.strerror}") from None
    if not isinstance(value, dict):
        raise FileFormatError(f"[json] {path}: got a {type(value).__name__}, need an object")
    return value


def present(path: Path) -> bool:
    """Whether a file that may be left out is there.

    What bears its name and is no file, such as a link to nowhere, is a FileFormatError: taken for
    absent it would change what the model does.
    """
    if path.is_file():
        return True
    if os.path.lexists(path):
        raise FileFormatError(f"[files] {path}: is no file: a folder, a device or a broken link")
    return False

"""The `butter` command. Each command is one file, imported when it is used."""

from .entry import main

__all__ = ["main"]

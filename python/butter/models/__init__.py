"""Model families, one file each. Importing one registers it."""

from . import llama

__all__ = ["llama"]

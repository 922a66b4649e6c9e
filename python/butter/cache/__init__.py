"""What a model remembers of the tokens before: one cache per layer."""

from .kv import KVCache, RopeTables

__all__ = ["KVCache", "RopeTables"]

"""Butter's own quantization: weights to affine codes, at load or into a new checkpoint."""

from .scheme import Scheme

__all__ = ["Scheme"]

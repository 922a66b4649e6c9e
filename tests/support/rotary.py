"""Rotary tables and rotations in float64."""

import numpy as np


def tables(positions, half, theta=10000.0):
    """cos and sin of every position, [positions, half], computed in float64."""
    angle = np.arange(positions)[:, None] * theta ** (-np.arange(half) / half)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def rotated(x, positions, half, theta=10000.0):
    """float64 rotation of [rows, heads, D]."""
    x = x.astype(np.float64)
    angle = (np.asarray(positions)[:, None] * theta ** (-np.arange(half) / half))[:, None, :]
    a, b = x[..., :half], x[..., half : 2 * half]
    turned = [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)]
    return np.concatenate([*turned, x[..., 2 * half :]], axis=-1)

"""Emitters print IR. They know ops, never kernels."""

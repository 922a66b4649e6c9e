"""What families are made of. Each layer asks for its weights when built and records when told."""

from .activation import Activation, Residual
from .attention import Attention
from .embedding import Embedding
from .linear import Linear
from .mlp import SwiGLU
from .norm import RMSNorm

__all__ = ["Activation", "Attention", "Embedding", "Linear", "RMSNorm", "Residual", "SwiGLU"]

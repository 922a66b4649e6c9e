"""Which family runs which checkpoint."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from .errors import ConfigError, UnsupportedError


class Capability(enum.Flag):
    """What a model can take in and give out."""

    TEXT_IN = enum.auto()
    TEXT_OUT = enum.auto()


TEXT = Capability.TEXT_IN | Capability.TEXT_OUT

T = TypeVar("T")


# Fields of other decoders that change what is computed, and the values with which they do not.
FOREIGN: dict[str, tuple] = {
    "sliding_window": (),
    "layer_types": (),
    "num_experts": (0,),
    "num_local_experts": (0,),
    "final_logit_softcapping": (),
    "attn_logit_softcapping": (),
    "logits_scaling": (1,),
    "embedding_multiplier": (1,),
    "residual_multiplier": (1,),
    "attention_multiplier": (),
    "qk_layernorm": (False,),
}


@dataclass(frozen=True)
class TextConfig:
    """What every decoder's config.json has; a family adds its own fields.

    Field names are those of config.json. Fields that no family knows are left alone.
    """

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048
    hidden_act: str = "silu"
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False

    @classmethod
    def read(cls: type[T], config: Mapping[str, Any]) -> T:
        """From a normalized config; null counts as absent."""
        known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        check_foreign(config, known)
        given = {k: v for k, v in config.items() if k in known and v is not None}
        try:
            return cls(**given)
        except TypeError as error:
            raise ConfigError(f"[config] {cls.__qualname__}: {error}") from None

    def __post_init__(self) -> None:
        if self.hidden_act not in ("silu", "swish"):
            raise UnsupportedError(f"[config] hidden_act: got {self.hidden_act!r}, need 'silu'")


def check_foreign(config: Mapping[str, Any], known: set[str]) -> None:
    """Refuse what this family would leave out; raises UnsupportedError."""
    for name, harmless in FOREIGN.items():
        value = config.get(name)
        if value is None or name in known or value in harmless:
            continue
        if name == "layer_types" and set(map(str, value)) <= {"full_attention"}:
            continue
        if name == "sliding_window" and config.get("use_sliding_window") is False:
            continue
        need = " or ".join(["null", *map(str, harmless)])
        raise UnsupportedError(
            f"[config] {name}: got {value!r:.80}, need {need}: this architecture has no such thing"
        )


@dataclass(frozen=True)
class Family:
    """A registered family."""

    name: str
    model: Callable[[Any, Any], Any]  # (config, weights) -> an object with record() and logits()
    config: type[TextConfig]
    provides: Capability
    architectures: tuple[str, ...]
    ignores: tuple[str, ...]  # patterns of tensor names that checkpoints hold and nobody needs


_BY_TYPE: dict[str, Family] = {}
_BY_ARCHITECTURE: dict[str, Family] = {}


def family(
    *model_types: str,
    config: type[TextConfig],
    provides: Capability = TEXT,
    architectures: tuple[str, ...] = (),
    ignores: tuple[str, ...] = (),
):
    """Register a model class for these `model_type`s and `architectures` of config.json."""

    def register(model):
        entry = Family(model_types[0], model, config, provides, architectures, ignores)
        _BY_TYPE.update(dict.fromkeys(model_types, entry))
        _BY_ARCHITECTURE.update(dict.fromkeys(architectures, entry))
        return model

    return register


def find_family(config: Mapping[str, Any]) -> Family:
    """The family of a config: by its first architecture if it names any, else by model_type."""
    from . import models  # noqa: F401  (registers them)

    kind, architectures = config["model_type"], config.get("architectures") or []
    for name in architectures:
        found = _BY_ARCHITECTURE.get(name)
        if found and _BY_TYPE.get(kind) is found:
            return found
    if not architectures and kind in _BY_TYPE:
        return _BY_TYPE[kind]
    raise UnsupportedError(
        f"[registry] got model_type {kind!r} with architectures {architectures}; known: "
        f"{', '.join(sorted(_BY_ARCHITECTURE))} (model_type {', '.join(sorted(_BY_TYPE))})"
    )


def families() -> list[Family]:
    """Every registered family, once."""
    from . import models  # noqa: F401

    return list({id(f): f for f in _BY_TYPE.values()}.values())

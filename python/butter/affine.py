"""MLX's affine quantization in safetensors: packed codes with scales and biases beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._native import biases_follow
from .array import Arena, empty
from .checkpoint import Stored
from .errors import ConfigError, UnsupportedError, WeightError
from .matrix import Format, QuantizedMatrix, run_kernel

BITS, GROUPS = (2, 3, 4, 5, 6, 8), (32, 64, 128)
SYMMETRIC = ((4, 32), (8, 32))  # (bits, group) that have kernels without biases


@dataclass
class Quantization:
    """config.json's "quantization": one setting for all matrices, and others for some by path."""

    default: tuple[int, int] | None = None  # (bits, group)
    overrides: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "Quantization":
        """Raises UnsupportedError for other methods, ConfigError for what is malformed."""
        given = config.get("quantization") or config.get("quantization_config")
        if not given:
            return cls()
        if not isinstance(given, Mapping):
            raise ConfigError(f"[config] quantization: got {given!r:.80}, need an object or null")
        if "quant_method" in given:
            raise UnsupportedError(
                f"[config] quantization_config: got {given['quant_method']!r}; Butter reads MLX's "
                "affine quantization and GGUF files. Load a GGUF of this model."
            )
        paths = {k: v for k, v in given.items() if isinstance(v, Mapping | bool) or is_path(k)}
        overrides = {k: setting(v, k) if v is not False else None for k, v in paths.items()}
        return cls(setting(given, "quantization"), overrides)

    def of(self, path: str) -> tuple[int, int] | None:
        """(bits, group) of a layer; None if it is not quantized."""
        if path in self.overrides:
            self.used.add(path)
            return self.overrides[path]
        return self.default

    @property
    def unused(self) -> list[str]:
        """Overrides that no layer has asked for."""
        return sorted(set(self.overrides) - self.used)


def is_path(name: str) -> bool:
    """Whether a field names a layer and not a setting of all."""
    return "." in name or name == "lm_head"


def setting(given: Any, where: str) -> tuple[int, int]:
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"[config] quantization of {where}: got {given!r:.80}, need an object or false"
        )
    mode = given.get("mode", "affine")
    if mode != "affine":
        raise UnsupportedError(f"[config] quantization mode: got {mode!r}, need 'affine'")
    bits, group = given.get("bits"), given.get("group_size")
    whole = type(bits) is type(group) is int  # 4.0 would be found among the legal ones
    if not whole or bits not in BITS or group not in GROUPS:
        raise UnsupportedError(
            f"[config] quantization of {where}: got {bits!r} bits in groups of {group!r}, need "
            f"{', '.join(map(str, BITS))} bits in groups of {', '.join(map(str, GROUPS))}"
        )
    return bits, group


class AffineMatrix(QuantizedMatrix):
    """Codes as MLX packs them, brought into tile layout at load."""

    def __init__(self, name: str, shape: tuple[int, int], form: Format, scales, biases):
        super().__init__(name, shape, form)
        self._stored = (scales, biases)

    def release(self, stored: Stored) -> None:
        for part in (stored, *self._stored):
            part.release()

    def load_rows(self, arena: Arena, stored: Stored, first: int) -> None:
        n, device = self.shape[0], arena.device
        inputs = []
        for part in (stored, *self._stored):
            size = part.nbytes // part.shape[0]  # of one row
            buffer = device.adopt(part.mapping, part.offset + first * size, n * size)
            inputs.append((buffer, 0, n * size))
        types = {"scale": self._stored[0].type, "bias": self._stored[1].type}
        self.repack(arena, inputs, types)

    def repack(self, arena: Arena, inputs: list, types: dict[str, str]) -> None:
        """Fill the matrix from ranges of packed codes, scales and biases."""
        (n, k), form = self.shape, self.format
        outputs = self._allocate(arena)
        if form.is_symmetric:  # the kernel writes biases all the same
            outputs.append(empty(arena.device, (outputs[1][2] // 2,), "f16").range)
        statics = {"bits": form.bits, "G": form.group}
        run_kernel(arena.device, form.kernel, [*inputs, *outputs], {"n": n, "k": k}, types, statics)


def affine_matrix(
    stored: Stored,
    shape: tuple[int, int],
    bits_group: tuple[int, int] | None,
    scales: Stored | None,
    biases: Stored | None,
) -> AffineMatrix:
    """Check the three tensors against each other. Raises WeightError."""
    if bits_group is None:
        raise WeightError("got packed codes, but the config says that it is not quantized")
    bits, group = bits_group
    n, k = shape
    if k % group:
        raise WeightError(f"got {k} inputs, need a multiple of the group {group}")
    if stored.shape != (n, k * bits // 32):
        raise WeightError(f"got codes {stored.shape}, need {(n, k * bits // 32)} for {bits} bits")
    for what, part in (("scales", scales), ("biases", biases)):
        if part is None:
            raise WeightError(f"its {what} are missing")
        if part.shape != (n, k // group) or not part.is_dense:
            raise WeightError(
                f"got {what} {part.type} {part.shape}, need f32, f16 or bf16 {(n, k // group)}"
            )
    if scales is not None and biases is not None and scales.type != biases.type:
        raise WeightError(f"got scales {scales.type} and biases {biases.type}, need one type")
    form = affine_format(bits, group, is_symmetric=has_no_biases(bits, group, scales, biases))
    return AffineMatrix(stored.name, shape, form, scales, biases)


def affine_format(bits: int, group: int, *, is_symmetric: bool = False) -> Format:
    return Format("repack_affine", bits, group, is_symmetric, group, 0)


def has_no_biases(bits: int, group: int, scales, biases) -> bool:
    """Whether all biases follow from the scales, as in a conversion of Q8_0; then none is kept."""
    if (bits, group) not in SYMMETRIC:
        return False
    given, follow = ((p.mapping, p.offset, p.nbytes, p.type) for p in (scales, biases))
    return biases_follow(given, follow, -(2.0 ** (bits - 1)))

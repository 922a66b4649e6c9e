"""Every error that Butter raises on purpose. Each also is the built-in a caller would catch."""


class ButterError(Exception):
    """Root of all Butter errors. A message says where, what is wrong, and what to do."""


class ShapeError(ButterError, ValueError):
    """A tensor, grid or dispatch does not have the shape that a kernel or model needs."""


class ConfigError(ButterError, ValueError):
    """A configuration value or option is missing, contradictory or not one of the legal set."""


class WeightError(ButterError, KeyError):
    """A weight is missing, surplus, or has the wrong shape or dtype."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0]) if self.args else ""


class UnsupportedError(ButterError, NotImplementedError):
    """What was asked for exists in the field but not (yet) here; the message names what does."""


class OutOfMemory(ButterError, MemoryError):
    """The device or the host could not provide the memory."""


class DeviceError(ButterError, RuntimeError):
    """A device is missing, or work submitted to it failed."""


class KernelError(ButterError, RuntimeError):
    """A kernel is unknown, was not built for this device, or failed to compile."""


class FileFormatError(ButterError, ValueError):
    """A file is truncated, malformed or hostile."""

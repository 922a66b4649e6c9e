"""Butter: language models on one machine, with the per-token loop in native code."""

from importlib import import_module

# name -> module. Nothing is imported before it is used, so that `import butter` costs nothing.
_LAZY = {
    "Model": "model",
    "Session": "session",
    "Result": "result",
    "Results": "result",
    "Piece": "result",
    "Stats": "stats",
    "BatchStats": "stats",
    "Event": "lifecycle",
    "State": "lifecycle",
    "SamplingParams": "generation",
    "load": "model",
    "generate": "model",
    "convert": "quantize.convert",
    "stream_generate": "model",
    "ButterError": "errors",
    "ConfigError": "errors",
    "DeviceError": "errors",
    "FileFormatError": "errors",
    "KernelError": "errors",
    "OutOfMemory": "errors",
    "ShapeError": "errors",
    "UnsupportedError": "errors",
    "WeightError": "errors",
}
__all__ = [*_LAZY, "__version__"]


def __getattr__(name: str):
    if name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    elif name == "__version__":
        value = version()
    else:
        raise AttributeError(f"module 'butter' has no attribute {name!r}")
    globals()[name] = value
    return value


def version() -> str:
    try:
        from ._version import VERSION  # written by the build; importlib.metadata takes 2 MiB
    except ModuleNotFoundError:  # a source tree that was not installed
        return "0+uninstalled"
    return VERSION


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

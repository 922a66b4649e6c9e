"""Options that several commands share, and how they become arguments."""

import re
from collections.abc import Callable
from typing import Any

import click

from .stdio import check_text

MODES = ["eager", "argument_buffers", "icb"]
DEVICE = re.compile(r"auto|cpu|metal|cuda(:[0-9]{1,4})?")


def check_device(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    if not DEVICE.fullmatch(name):
        raise click.BadParameter(f"got {name!r}, need auto, cpu, metal, cuda or cuda:N")
    return name


_MODEL = [
    click.option("--device", default="auto", show_default=True, callback=check_device,
                 help="auto, cpu, metal or cuda."),
    click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads [default: cores]."),
    click.option("--affinity", metavar="CPUS", help="Bind the threads to CPUs such as 0-3,8."),
    click.option("--max-context", type=click.IntRange(1), help="Tokens of prompt and answer."),
    click.option("--exact", is_flag=True, help="f32 activations in all products."),
    click.option(
        "--quantize",
        metavar="FORM",
        help="Quantize while loading: q2 to q8, with -g64 or -g128 for larger groups than 32.",
    ),
    click.option("--revision", help="Branch, tag or commit on the hub."),
    click.option("--offline", is_flag=True, default=None, help="Use only what is cached."),
]
_DISPATCH = click.option(
    "--dispatch", type=click.Choice(["auto", *MODES]), default="auto", show_default=True,
    help="How kernels reach the device.",
)  # fmt: skip
_SAMPLING = [
    click.option("--temperature", type=float, help="0 always takes the likeliest token."),
    click.option("--top-k", type=int, help="Keep the k likeliest tokens; 0 is off."),
    click.option("--top-p", type=float, help="Keep the likeliest that reach p; 1 is off."),
    click.option("--min-p", type=float, help="Drop below p times the likeliest; 0 is off."),
    click.option("--repetition-penalty", type=float, help="1 is off."),
    click.option("--presence-penalty", type=float, help="0 is off."),
    click.option("--frequency-penalty", type=float, help="0 is off."),
    click.option("--logit-bias", multiple=True, metavar="ID=VALUE", help="May be repeated."),
    click.option("--stop", multiple=True, metavar="TEXT", help="End here; may be repeated."),
    click.option("--seed", type=int, help="Equal seeds give equal text."),
]

Decorator = Callable[[Callable], Callable]


def model_options(*, dispatch: bool = True) -> Decorator:
    return _apply([*_MODEL, *([_DISPATCH] if dispatch else [])])


def sampling_options() -> Decorator:
    return _apply(_SAMPLING)


def _apply(options: list) -> Decorator:
    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


MODEL_NAMES = (
    "device", "threads", "affinity", "max_context", "exact", "quantize", "revision", "offline",
    "dispatch",
)  # fmt: skip
SAMPLING_NAMES = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "seed",
)


def model_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Take the arguments of Model.load out of a command's options."""
    values = {n: given.pop(n) for n in MODEL_NAMES if n in given}
    if values.get("quantize") is not None:
        check_form(values["quantize"])
    return values


def check_form(name: str) -> None:
    from ..errors import ConfigError
    from ..quantize.scheme import Scheme

    try:
        Scheme.read(name)
    except ConfigError as error:
        message = str(error).removeprefix("[quantize] ").split(", or an object")[0]
        raise click.BadParameter(message, param_hint="--quantize") from None


def sampling_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Take the sampling fields out of a command's options; what was not given is left out."""
    values = {n: given.pop(n) for n in SAMPLING_NAMES}
    values = {n: v for n, v in values.items() if v is not None}
    if stop := given.pop("stop"):
        values["stop"] = stop
    if bias := given.pop("logit_bias"):
        values["logit_bias"] = dict(parse_bias(entry) for entry in bias)
    for text in stop:
        check_text("--stop", text)
    if given.get("max_tokens") is not None:
        values["max_tokens"] = given.pop("max_tokens")
    check(values)
    return values


def check(values: dict[str, Any]) -> None:
    """Values out of range are wrong usage, like other bad options."""
    from ..errors import ConfigError
    from ..generation import SamplingParams

    try:
        SamplingParams(**values)
    except ConfigError as error:
        raise click.UsageError(str(error).removeprefix("[sampling] ")) from None


def parse_bias(entry: str) -> tuple[int, float]:
    token, _, value = entry.partition("=")
    try:
        return int(token), float(value)
    except ValueError:
        raise click.BadParameter(
            f"got {entry!r}, need ID=VALUE such as 42=-100", param_hint="--logit-bias"
        ) from None

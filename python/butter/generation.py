"""What a request may ask of generation, with every value checked before anything runs."""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import index

from .errors import ConfigError

log = logging.getLogger("butter.generation")

MAX_STOPS = 64
MAX_STOP_CHARS = 4096
MAX_BIAS = 1e30
# What a model gets whose files say nothing about sampling.
DEFAULT_TEMPERATURE = 0.7
DEFAULT_TOP_P = 0.95


@dataclass(frozen=True)
class SamplingParams:
    """One request's sampling chain and its end. Immutable; `override` makes changed copies.

    Attributes:
        temperature: 0 is greedy; above 0 divides the logits.
        top_k: Keep the k likeliest tokens; 0 is off.
        top_p: Keep the likeliest tokens that together reach p; 1 is off.
        min_p: Drop tokens below this share of the likeliest one's probability; 0 is off.
        repetition_penalty: Divides positive logits of seen tokens, multiplies others; 1 is off.
        presence_penalty: Subtracted once from the logit of each generated token; 0 is off.
        frequency_penalty: Subtracted once per occurrence; 0 is off.
        logit_bias: Token id to a number added to its logit.
        seed: None draws a fresh one, see `with_seed`.
        max_tokens: None goes on until the context is full.
        stop: Strings that end the text; they are not part of it.
        stop_ids: Token ids that end the text.
        ignore_eos: Go on past `stop_ids` (for benchmarks).
    """

    temperature: float = DEFAULT_TEMPERATURE
    top_k: int = 0
    top_p: float = DEFAULT_TOP_P
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self):
        for name, (low, high, open_low) in RANGES.items():
            object.__setattr__(self, name, real(name, getattr(self, name), low, high, open_low))
        for name, (least, most, note) in WHOLE.items():
            value = getattr(self, name)
            if value is not None or name == "top_k":
                object.__setattr__(self, name, whole(name, value, least, most, note))
        if not isinstance(self.ignore_eos, bool):
            raise ConfigError(f"[sampling] ignore_eos: got {self.ignore_eos!r}, need True or False")
        object.__setattr__(self, "logit_bias", checked_bias(self.logit_bias))
        object.__setattr__(self, "stop", checked_stops(self.stop))
        object.__setattr__(self, "stop_ids", checked_ids(self.stop_ids))

    def override(self, **changes) -> "SamplingParams":
        """Return a changed copy. Unknown names are a ConfigError that lists the known ones."""
        known = [f.name for f in fields(self)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            names = ", ".join(map(repr, unknown))
            raise ConfigError(f"[sampling] unknown option {names}; known: {', '.join(known)}")
        return replace(self, **changes)

    def with_seed(self) -> "SamplingParams":
        """Return a copy whose seed is a number: the one given, else fresh entropy."""
        if self.seed is not None:
            return self
        return replace(self, seed=int.from_bytes(os.urandom(8), "little"))


# name -> (lowest, highest, whether the lowest is excluded)
RANGES = {
    "temperature": (0.0, 100.0, False),
    "top_p": (0.0, 1.0, True),
    "min_p": (0.0, 1.0, False),
    "repetition_penalty": (0.0, 100.0, True),
    "presence_penalty": (-100.0, 100.0, False),
    "frequency_penalty": (-100.0, 100.0, False),
}

WHOLE = {
    "top_k": (0, 2**31 - 1, "0 is off"),
    "seed": (0, 2**64 - 1, "None draws a fresh one"),
    "max_tokens": (1, 2**31 - 1, "None is up to the context"),
}


def real(name: str, value, low: float, high: float, open_low: bool) -> float:
    legal = f"{'above' if open_low else 'from'} {low:g} to {high:g}"
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        raise ConfigError(f"[sampling] {name}: got {value!r}, need a number {legal}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"[sampling] {name}: got {value!r}, need a number {legal}") from None
    # Written so that NaN fails too.
    if not (low < number <= high or (number == low and not open_low)):
        raise ConfigError(f"[sampling] {name}: got {value!r}, need a number {legal}")
    return number


def whole(name: str, value, low: int, high: int, note: str) -> int:
    try:
        number = None if isinstance(value, bool) else index(value)  # numpy's integers too
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise ConfigError(
            f"[sampling] {name}: got {value!r:.80}, "
            f"need a whole number from {low} to {high} ({note})"
        )
    return number


def checked_bias(bias) -> dict[int, float]:
    if not isinstance(bias, Mapping):
        raise ConfigError(
            f"[sampling] logit_bias: got {bias!r:.80}, need a dict of token id to number"
        )
    checked = {}
    for token, value in bias.items():
        key = whole("logit_bias key", token, 0, 2**31 - 1, "a token id")
        # What rounds to an infinity in f32 is out of range.
        checked[key] = real(f"logit_bias[{key}]", value, -MAX_BIAS, MAX_BIAS, False)
    return checked


def checked_stops(stop) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str | bytes) else stop
    if not isinstance(stops, Iterable):
        raise ConfigError(f"[sampling] stop: got {stop!r}, need a string or a list of strings")
    stops = tuple(stops)
    for text in stops:
        if not isinstance(text, str) or not 0 < len(text) <= MAX_STOP_CHARS:
            raise ConfigError(
                f"[sampling] stop: got {text!r:.80}, "
                f"need strings of 1 to {MAX_STOP_CHARS} characters"
            )
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise ConfigError(
                f"[sampling] stop: got {ascii(text):.80} with a lone surrogate, which no text has"
            )
    if len(stops) > MAX_STOPS:
        raise ConfigError(f"[sampling] stop: got {len(stops)} strings, need at most {MAX_STOPS}")
    return stops


def checked_ids(ids) -> tuple[int, ...]:
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ConfigError(f"[sampling] stop_ids: got {ids!r:.80}, need a list of token ids")
    numbers = [whole("stop_ids", token, 0, 2**31 - 1, "a token id") for token in ids]
    return tuple(dict.fromkeys(numbers))


# generation_config.json: fields taken as they are, and the values of others that change nothing.
TAKEN = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
NEUTRAL: dict[str, tuple] = {
    "num_beams": (1,),
    "penalty_alpha": (0, 0.0),
    "typical_p": (1, 1.0),
    "epsilon_cutoff": (0, 0.0),
    "eta_cutoff": (0, 0.0),
    "no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1, 1.0),
    "encoder_no_repeat_ngram_size": (0,),
    "diversity_penalty": (0, 0.0),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "bad_words_ids": ([],),
    "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "sequence_bias": ({},),
    "guidance_scale": (1, 1.0),
    "stop_strings": ([],),
}


def defaults_from(
    generation_config: Mapping | None = None,
    config: Mapping | None = None,
    tokenizer_eos: Iterable[int] = (),
) -> SamplingParams:
    """Return what the model's own files ask for.

    Args:
        generation_config: generation_config.json, if the model has one.
        config: config.json; its eos ids count when generation_config names none.
        tokenizer_eos: Ids that the tokenizer (or GGUF metadata) says end a text.
    """
    given = {k: v for k, v in (generation_config or {}).items() if v is not None}
    values = {name: given[name] for name in TAKEN if name in given}
    if values or "do_sample" in given:
        # The file speaks of sampling, so what it leaves out is neutral, not Butter's own default.
        values = {"temperature": 1.0, "top_p": 1.0, **values}
    if given.get("do_sample") is False:
        kept = ("repetition_penalty",)  # the rest are left-overs that greedy never reads
        values = {"temperature": 0.0, **{n: values[n] for n in kept if n in values}}
    if values.get("top_k") == -1:
        values["top_k"] = 0
    if "max_new_tokens" in given:
        values["max_tokens"] = given["max_new_tokens"]
    for name, neutral in NEUTRAL.items():
        if name in given and given[name] not in neutral:
            log.warning("generation_config.json: %s=%r is not applied", name, given[name])
    eos = eos_ids(given, "generation_config.json") or eos_ids(config or {}, "config.json")
    values["stop_ids"] = (*eos, *tokenizer_eos)
    return SamplingParams(**values)


def eos_ids(config: Mapping, where: str) -> tuple[int, ...]:
    """All end-of-text ids: the field is an id or a list of ids."""
    value = config.get("eos_token_id")
    if value is None:
        return ()
    ids = tuple(value) if isinstance(value, list | tuple) else (value,)
    if any(isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < 2**31 for i in ids):
        raise ConfigError(f"[{where}] eos_token_id: got {value!r}, need one token id or a list")
    return ids

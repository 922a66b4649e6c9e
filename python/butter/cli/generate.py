"""butter generate: one prompt, one answer."""

import sys
from typing import Any

import click

from . import interrupts
from .options import model_arguments, model_options, sampling_arguments, sampling_options
from .stdio import check_text, read_all

MAX_TOKENS = 512
CONTEXT_FULL = "the answer is cut: the context is full"


@click.command("generate")
@click.argument("model")
@click.argument("prompt", required=False)
@click.option("--chat/--raw", "chat", default=None,
              help="Ask through the model's chat template, or continue the text as it stands "
                   "[default: --chat if the model has a template].")  # fmt: skip
@click.option("--system", metavar="TEXT", help="A system message; implies --chat.")
@click.option("--max-tokens", type=int, default=MAX_TOKENS, show_default=True)
@click.option("--ignore-eos", is_flag=True, help="Go on past the end of the text.")
@sampling_options()
@model_options()
@click.option("--stats", is_flag=True, help="Print times and rates to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(model: str, prompt: str | None, **given: Any) -> None:
    """Generate text with MODEL: a folder, a .gguf file, a hub repository or an alias.

    PROMPT comes from stdin if it is left out or "-". Sampling follows the model's own generation
    config where an option is left out.
    """
    load, sampling = model_arguments(given), sampling_arguments(given)
    text = read_prompt(prompt)
    request = build_prompt(text, given.pop("system"), given["chat"])

    from ..model import Model
    from .progress import Progress

    sampling["ignore_eos"] = given["ignore_eos"]
    with Model.load(model, on_event=Progress(), **load) as loaded:
        stream = loaded.stream(request, chat=given["chat"], **sampling)
        if given["as_json"]:
            print_json(stream)
        else:
            print_text(stream, given["stats"])


def read_prompt(prompt: str | None) -> str:
    if prompt is not None and prompt != "-":
        check_text("PROMPT", prompt)
        return prompt
    if sys.stdin.isatty():
        raise click.UsageError("no PROMPT: give one, or pipe it in")
    text = read_all()
    if not text:
        raise click.UsageError("no PROMPT: stdin is empty")
    return text


def build_prompt(text: str, system: str | None, chat: bool | None):
    check_text("--system", system)
    if system is None:
        return text
    if chat is False:
        raise click.UsageError("--system needs --chat; a raw text has no system message")
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def print_text(stream, stats: bool) -> None:
    interrupts.raise_once()
    try:
        for piece in stream:
            sys.stdout.write(piece)
            sys.stdout.flush()
    except KeyboardInterrupt:
        stream.close()
        sys.stdout.write("\n")
        raise
    sys.stdout.write("\n")
    sys.stdout.flush()
    interrupts.leave_at_once()
    result = stream.result
    if result.finish_reason == "context":
        click.echo(f"butter: {CONTEXT_FULL}; --max-context allows more", err=True)
    if result.finish_reason == "length" and sys.stderr.isatty():
        click.echo(
            f"[stopped after {len(result.tokens)} tokens; --max-tokens allows more]", err=True
        )
    if stats:
        click.echo(f"{result.stats}\nseed {result.seed}, finish {result.finish_reason}", err=True)


def print_json(stream) -> None:
    import json

    from ..stream import drain

    result = drain(stream)
    fields = {
        "text": result.text,
        "tokens": result.tokens,
        "finish_reason": result.finish_reason,
        "seed": result.seed,
        "stats": result.stats.as_dict(),
    }
    click.echo(json.dumps(fields))  # in ASCII, which every encoding has

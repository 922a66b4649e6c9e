"""butter chat: a conversation that is read only once."""

import sys
from typing import Any

import click

from .options import model_arguments, model_options, sampling_arguments, sampling_options

HELP = """/reset      forget the conversation
/system S   begin again with the system message S
/stats      show times and rates after each answer
/exit       leave (also Ctrl-D)"""


@click.command("chat")
@click.argument("model")
@click.option("--system", metavar="TEXT", help="A system message.")
@click.option("--max-tokens", type=int, help="Of each answer [default: until the model ends].")
@sampling_options()
@model_options()
@click.option("--stats", is_flag=True, help="Show times and rates after each answer.")
def command(model: str, **given: Any) -> None:
    """Talk with MODEL. Ctrl-C ends an answer; /help lists the commands."""
    load, sampling = model_arguments(given), sampling_arguments(given)
    if given["max_tokens"] is not None:
        sampling["max_tokens"] = given["max_tokens"]

    from ..model import Model
    from .progress import Progress

    with Model.load(model, on_event=Progress(), **load) as loaded:
        Repl(loaded, given["system"], sampling, given["stats"]).run()


class Repl:
    """Reads lines, prints answers."""

    def __init__(self, model, system: str | None, sampling: dict[str, Any], stats: bool):
        self._model = model
        self._sampling = sampling
        self._stats = stats
        self._is_terminal = sys.stdin.isatty()
        self._begin(system)

    def _begin(self, system: str | None) -> None:
        self._system = system
        first = [] if system is None else [{"role": "system", "content": system}]
        self._session = self._model.session(first)

    def run(self) -> None:
        if self._is_terminal:
            click.echo("/help lists the commands.", err=True)
        while (line := self._read()) is not None:
            if line.startswith("/"):
                if not self._command(line):
                    return
            elif line:
                self._answer(line)

    def _read(self) -> str | None:
        try:
            return input("> " if self._is_terminal else "").strip()
        except EOFError:
            return None

    def _command(self, line: str) -> bool:
        name, _, rest = line[1:].partition(" ")
        if name in ("exit", "quit"):
            return False
        if name in ("reset", "system"):
            self._session.close()
            self._begin(rest.strip() or None if name == "system" else self._system)
        elif name == "stats":
            self._stats = not self._stats
        else:
            click.echo(HELP, err=True)
        return True

    def _answer(self, text: str) -> None:
        from ..errors import ButterError

        try:
            stream = self._session.stream(text, **self._sampling)
            try:
                for piece in stream:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                stream.close()
        except ButterError as error:
            if not self._is_terminal:
                raise
            click.echo(str(error), err=True)
            return
        click.echo()
        if self._stats:
            click.echo(str(stream.result.stats), err=True)

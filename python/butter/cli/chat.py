"""butter chat: a conversation that is read only once."""

import sys
from typing import Any

import click

from . import interrupts
from .generate import CONTEXT_FULL
from .options import model_arguments, model_options, sampling_arguments, sampling_options
from .stdio import check_text

IDLE_HINT = "Ctrl-C again or /exit leaves; the conversation is still here."
FULL_HINT = "The context is full: /reset begins again."
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
def command(model: str, **given: Any) -> int:
    """Talk with MODEL. Ctrl-C ends an answer; /help lists the commands."""
    load, sampling = model_arguments(given), sampling_arguments(given)
    check_text("--system", given["system"])

    from ..model import Model
    from .progress import Progress

    with Model.load(model, on_event=Progress(), **load) as loaded:
        return Repl(loaded, given["system"], sampling, given["stats"]).run()


class Repl:
    """Reads lines, prints answers."""

    def __init__(self, model, system: str | None, sampling: dict[str, Any], stats: bool):
        self._model = model
        self._sampling = sampling
        self._stats = stats
        self._is_terminal = sys.stdin.isatty()
        self._failed = False
        self._begin(system)

    def _begin(self, system: str | None) -> None:
        self._system = system
        first = [] if system is None else [{"role": "system", "content": system}]
        self._session = self._model.session(first)

    def run(self) -> int:
        """Read to the end; 1 if a line of a pipe could not be answered."""
        if self._is_terminal:
            click.echo("/help lists the commands.", err=True)
        while (line := self._read()) is not None:
            if line.startswith("/"):
                if not self._command(line):
                    break
            elif line:
                self._answer(line)
        return int(self._failed and not self._is_terminal)

    def _read(self) -> str | None:
        """The next line; None at the end. A Ctrl-C at a terminal's prompt is only a warning."""
        was_warned = not self._is_terminal
        while True:
            if self._is_terminal:
                interrupts.raise_once()
            try:
                return input("> " if self._is_terminal else "").strip()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if was_warned:
                    raise
                was_warned = True
                click.echo(f"\n{IDLE_HINT}", err=True)

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
            if name != "help":
                click.echo(f"no command /{name}", err=True)
            click.echo(HELP, err=True)
        return True

    def _answer(self, text: str) -> None:
        from ..errors import ButterError, DeviceError

        try:
            check_text("stdin", text)
        except click.UsageError as error:
            click.echo(f"butter: {error.message}", err=True)
            self._failed = True
            return
        try:
            stream = self._session.stream(text, **self._sampling)
            interrupts.raise_once()
            try:
                for piece in stream:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
            except KeyboardInterrupt:
                interrupts.ignore()  # who presses it twice wants the answer to end, not the chat
                stream.close()
        except DeviceError:
            raise
        except ButterError as error:
            # One line that cannot be answered does not end the conversation.
            click.echo(f"butter: {error}", err=True)
            if str(error).startswith("[context]"):
                click.echo(FULL_HINT, err=True)
            self._failed = True
            return
        finally:
            interrupts.leave_at_once()
        click.echo()
        if stream.result.finish_reason == "context":
            click.echo(f"butter: {CONTEXT_FULL}. {FULL_HINT}", err=True)
        if self._stats:
            click.echo(str(stream.result.stats), err=True)

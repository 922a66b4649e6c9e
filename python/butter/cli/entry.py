"""The group of commands, and what happens to errors and interrupts."""

import os
import sys
from importlib import import_module

import click

from .interrupts import INTERRUPTED
from .stdio import prepare

# command -> what `butter --help` says, so that it needs no command's module.
COMMANDS = {
    "generate": "Generate text from a prompt.",
    "chat": "Hold a conversation.",
    "convert": "Write a quantized checkpoint.",
    "inspect": "Show what a model is made of.",
    "models": "List aliases and cached models.",
    "doctor": "Check this machine and this build.",
    "bench": "Measure decode and prefill speed.",
}


class Commands(click.Group):
    """Imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return import_module(f".{name}", __package__).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        import butter

        click.echo(f"butter {butter.__version__}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version,
              help="Show the version.")  # fmt: skip
def cli() -> None:
    """Language models on this machine."""


def main(args: list[str] | None = None) -> None:
    """Run a command line and exit: 0, 1 after an error, 2 for wrong usage, 130 after Ctrl-C."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    try:
        prepare()
        show_warnings()
        code = cli.main(args, prog_name="butter", standalone_mode=False)
        flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return 1  # as click does for one that it sees itself
    except Exception as error:
        return report(error)


def report(error: Exception) -> int:
    """One line on stderr for what Butter raised on purpose; the rest is a bug and shows in full."""
    from ..errors import ButterError

    if os.environ.get("BUTTER_DEBUG") == "1" or not isinstance(error, ButterError | OSError):
        raise error
    click.echo("butter: " + " ".join(str(error).split()), err=True)
    return 1


def show_warnings() -> None:
    """Warnings of the library look like its errors."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("butter: %(message)s"))
    log = logging.getLogger("butter")
    log.addHandler(handler)
    log.propagate = False


def flush() -> None:
    sys.stdout.flush()


def silence_stdout() -> None:
    """The reader has gone; let Python's own last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The `butter` command. Each command is one file, imported when it is used."""

from . import interrupts


def main(args: list[str] | None = None) -> None:
    """Run a command line and exit: 0, 1 after an error, 2 for wrong usage, 130 after Ctrl-C."""
    interrupts.leave_at_once()  # before anything that takes time is imported
    from .entry import main as run

    run(args)


__all__ = ["main"]

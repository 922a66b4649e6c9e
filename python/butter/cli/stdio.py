"""Standard streams that may be closed, of another encoding, or not UTF-8."""

import os
import sys

import click

MAX_INPUT = 64 << 20  # bytes; the longest contexts are some 4 MiB of text


def prepare() -> None:
    """Make the streams safe to use: what stdout cannot show is escaped, never an error."""
    # A file opened later must not get the number of a stream that is closed.
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        raise click.ClickException("stdout is closed; send it to a file or to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")  # a bad line is refused, not fatal


def read_all() -> str:
    """All of stdin."""
    data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise click.UsageError(f"stdin: got more than {MAX_INPUT >> 20} MiB, need a prompt")
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"stdin: got byte 0x{data[error.start]:02x} at {error.start}, need UTF-8. "
            "Convert it, as with iconv."
        ) from None


def check_text(name: str, text: str | None) -> None:
    """Refuse an argument whose bytes are not UTF-8; Python passes them on as surrogates."""
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise click.UsageError(f"{name}: got {ascii(text):.80}, need UTF-8") from None

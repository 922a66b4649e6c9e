"""Ctrl-C: outside of answers it ends the process at once, without a traceback."""

import os
import signal
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells expect


def leave_at_once() -> None:
    """From now on Ctrl-C ends the process; of imports and loading only compiled code is saved."""
    _install(_leave)


def raise_once() -> None:
    """The next Ctrl-C raises KeyboardInterrupt; another one after it ends the process."""
    _install(_raise)


def ignore() -> None:
    """Pass over Ctrl-C until the next call of another function here."""
    _install(_nothing)


def leave_in_order() -> None:
    """From now on SIGTERM and SIGHUP raise SystemExit, so that what is half written goes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        _install(_exit, number)


def _install(handler, number: int = signal.SIGINT) -> None:
    try:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, handler)
    except ValueError:  # not the main thread, which alone gets signals
        pass


def _leave(_signal, _frame) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(2, b"\n")
    if native := sys.modules.get("butter._native"):
        native.save_devices()  # minutes may have gone into what they compiled
    os._exit(INTERRUPTED)


def _exit(number, _frame) -> None:
    sys.exit(128 + number)


def _nothing(_signal, _frame) -> None:
    pass


def _raise(_signal, _frame) -> None:
    leave_at_once()
    raise KeyboardInterrupt

"""Download and load progress on a terminal's stderr."""

import sys

from ..lifecycle import Event, State


class Progress:
    """Redraws one line; silent where stderr is no terminal."""

    def __init__(self) -> None:
        self._is_shown = False
        self._enabled = sys.stderr.isatty()

    def __call__(self, event: Event) -> None:
        if not self._enabled:
            return
        if event.state is State.DOWNLOADING:
            percent = f"{event.progress:.0%}" if event.progress is not None else ""
            self._draw(f"downloading {event.done / 1e6:.0f} MB {percent}")
        elif event.state is State.LOADING and event.progress is not None:
            self._draw(f"loading {event.progress:.0%}")
        elif event.state in (State.READY, State.FAILED):
            self.clear()

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._is_shown = False

    def _draw(self, text: str) -> None:
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
        self._is_shown = True


class Bar(Progress):
    """How many of many things are done, and which one is being done."""

    def __init__(self, title: str):
        super().__init__()
        self._title = title

    def count(self, done: int, total: int, item: str) -> None:
        if self._enabled:
            filled = "#" * (20 * done // max(total, 1))
            self._draw(f"{self._title} [{filled:20}] {done}/{total} {item}"[:100])

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_) -> None:
        self.clear()

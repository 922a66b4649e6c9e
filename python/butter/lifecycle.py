"""Where a model is on its way to ready, as a stream of events."""

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from .registry import TEXT, Capability

log = logging.getLogger("butter.lifecycle")


class State(enum.StrEnum):
    """What a model is doing."""

    IDLE = "idle"
    DOWNLOADING = "downloading"
    LOADING = "loading"
    LOADED = "loaded"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


_NEXT = {
    State.IDLE: {State.DOWNLOADING, State.LOADING},
    State.DOWNLOADING: {State.DOWNLOADING, State.LOADING},
    State.LOADING: {State.LOADING, State.LOADED},
    State.LOADED: {State.READY},
    State.READY: {State.CLOSED},
    State.FAILED: set(),
    State.CLOSED: set(),
}


@dataclass(frozen=True)
class Event:
    """One step of a model's life.

    Attributes:
        state: What the model is doing now.
        done: Bytes so far, while downloading or loading.
        total: Bytes in all, as far as known.
        capability: What the event concerns.
        error: Why it failed.
    """

    state: State
    done: int = 0
    total: int = 0
    capability: Capability = TEXT
    error: BaseException | None = field(default=None, compare=False)

    @property
    def progress(self) -> float | None:
        """From 0 to 1; None where nothing is counted."""
        return self.done / self.total if self.total else None


class Lifecycle:
    """The current state; every change is told to one listener."""

    def __init__(self, on_event: Callable[[Event], None] | None = None):
        self._listener = on_event
        self.state = State.IDLE

    def to(self, state: State, done: int = 0, total: int = 0) -> None:
        if state not in _NEXT[self.state]:
            raise AssertionError(f"{self.state} -> {state}")
        self.state = state
        self._tell(Event(state, done, total))

    def fail(self, error: BaseException) -> None:
        self.state = State.FAILED
        self._tell(Event(State.FAILED, error=error))

    def _tell(self, event: Event) -> None:
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception:  # a broken progress bar must not stop a load
            log.exception("on_event raised; the load goes on")

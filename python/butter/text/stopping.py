"""Stop strings in a stream: hold back only what could still become one."""

from collections.abc import Sequence


class StopStrings:
    """Passes text through until a stop string is complete; that string never comes out.

    The stop that is complete first wins, the longest of several that end together. So the result
    does not depend on how the text was cut into pieces.

    Attributes:
        found: The stop string that ended the text, or None.
    """

    def __init__(self, stops: Sequence[str]):
        self._stops = tuple(stops)
        self._held = ""
        self.found: str | None = None

    def push(self, text: str) -> str:
        """Return what may be shown now. After `found` is set, always empty."""
        if self.found is not None:
            return ""
        text = self._held + text
        matches = [(at + len(s), at, s) for s in self._stops if (at := text.find(s)) >= 0]
        if matches:
            _, at, self.found = min(matches)
            self._held = ""
            return text[:at]
        cut = len(text) - self._open(text)
        self._held = text[cut:]
        return text[:cut]

    def flush(self) -> str:
        """End the stream: what was held back is text after all."""
        held, self._held = self._held, ""
        return held

    def _open(self, text: str) -> int:
        """Length of the longest end of the text that begins a stop string."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:size]):
                    longest = size
                    break
        return longest

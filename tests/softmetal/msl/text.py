"""Small tools on MSL text."""

import re


def strip_comments(text: str) -> str:
    """Comments become blanks; lines stay where they are."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match.group(0).count("\n") or " "

    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)


def split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in [*parts, part] if p.strip()]


def close(text: str, start: int) -> int:
    """The index past the bracket that closes text[start]."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i + 1
    raise SystemExit(f"line {line(text, start)}: '{text[start]}' is not closed")


def line(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1

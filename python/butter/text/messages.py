"""Chat messages as templates may see them: plain data, and content in the form they expect."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ConfigError, UnsupportedError

MAX_DEPTH = 64
REASONING = ("reasoning_content", "thinking", "reasoning")


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Copy into JSON types. Objects of other types have methods that a template could call."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"[template] {where}: nested deeper than {MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):  # subclasses lose what they add
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if isinstance(value, Mapping):
        return {plain_key(k, where): plain(v, where, depth + 1) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(v, where, depth + 1) for v in value]
    raise ConfigError(
        f"[template] {where}: got a {type(value).__name__}, need text, numbers, lists and dicts"
    )


def plain_key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"[template] {where}: got the key {key!r:.40}, need text")
    return str(key)


def checked_messages(messages: Any) -> list[dict]:
    """Copy the messages, without fields that are None (templates would print "None")."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        raise ConfigError(
            f"[template] messages: got {messages!r:.60}, need a list of "
            "{'role': …, 'content': …} with at least one"
        )
    checked = []
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ConfigError(
                f"[template] messages[{i}]: got {message!r:.60}, need a dict with a 'role'"
            )
        if message.get("content") is None and "tool_calls" not in message:
            raise ConfigError(
                f"[template] messages[{i}].content: got {message.get('content')!r}, "
                "need text or a list of parts"
            )
        copy = {k: v for k, v in plain(message, f"messages[{i}]").items() if v is not None}
        if not isinstance(copy.get("content", ""), str | list):
            raise ConfigError(
                f"[template] messages[{i}].content: got {copy['content']!r:.60}, "
                "need text or a list of parts"
            )
        checked.append(with_reasoning(copy))
    return checked


def with_reasoning(message: dict) -> dict:
    """Give a message's reasoning under the names that templates read."""
    found = next((message[k] for k in REASONING if k in message), None)
    return message if found is None else {"thinking": found, **message, "reasoning_content": found}


def as_text(content: str | list, where: str) -> str:
    """The parts' text joined, for templates that know only text."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content:
        kind = part.get("type", "text") if isinstance(part, dict) else "text"
        text = part.get("text") if isinstance(part, dict) else part
        if kind != "text":
            raise UnsupportedError(
                f"[template] {where}: got a part of type {kind!r:.40}; this model's chat template "
                "takes text only"
            )
        if not isinstance(text, str):
            raise ConfigError(f"[template] {where}: got {part!r:.60}, need a part with a 'text'")
        texts.append(text)
    return "".join(texts)


def as_parts(content: str | list) -> list:
    """A text as the one part it is, for templates that know only parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content

"""Chat templates: a conversation as the text the model was trained on."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError, FileFormatError
from ..hub import ModelFiles
from ..jsonfile import present, read_json
from .messages import as_parts, as_text, checked_messages, plain

MAX_SOURCE = 1 << 20  # characters; the longest in use have some 30,000
NEEDLE = "needle in the text"
# Put behind the last message's text to find where it ends; the space tests for trimming.
END_MARK = "END-OF-FINAL-MESSAGE "


class ChatTemplate:
    """A model's template, or several under names. Safe to share between threads.

    A template is code from the model's author. It runs in a sandbox and within the limits of
    budget.py; passing one is a FileFormatError.

    Attributes:
        sources: Name to template text; the usual one is called "default".
    """

    def __init__(
        self, source: str | Mapping[str, str], special_tokens: Mapping[str, str] | None = None
    ):
        self.sources = {"default": source} if isinstance(source, str) else dict(source)
        for name, text in self.sources.items():
            if not isinstance(text, str) or not isinstance(name, str):
                raise FileFormatError(f"[template] {name!r:.40}: got {text!r:.40}, need text")
            if len(text) > MAX_SOURCE:
                raise FileFormatError(
                    f"[template] {name}: got {len(text)} characters, need at most {MAX_SOURCE}"
                )
        self.special_tokens = dict(special_tokens or {})
        self._compiled: dict[str, Any] = {}
        self._forms: dict[str, tuple[bool, bool]] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_files(
        cls,
        files: ModelFiles,
        *,
        special_tokens: Mapping[str, str] | None = None,
        gguf_metadata: Mapping | None = None,
    ) -> "ChatTemplate | None":
        """Read a model's template; None if it has none.

        Args:
            files: What `hub.resolve` returned.
            special_tokens: `Tokenizer.special_tokens`.
            gguf_metadata: The metadata of a GGUF file, if it is open already.
        """
        if files.kind == "gguf":
            if gguf_metadata is None:
                from .._native import read_gguf

                gguf_metadata = read_gguf(files.path)[2]
            sources = gguf_templates(gguf_metadata)
        else:
            sources = folder_templates(files.path)
        return cls(sources, special_tokens) if sources else None

    def render(
        self,
        messages: Sequence[Mapping],
        *,
        tools: Sequence[Mapping] | None = None,
        documents: Sequence[Mapping] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        name: str | None = None,
        **variables,
    ) -> str:
        """Return the prompt for these messages. Encode it with `add_bos=False`.

        Args:
            messages: Dicts with "role" and "content"; content is text or a list of parts.
            tools: JSON schemas of functions.
            documents: Dicts with "title" and "text".
            add_generation_prompt: End with the head of the assistant's answer.
            continue_final_message: End inside the last message, for the model to go on with it.
            name: Which template, where there are several.
            variables: What else the template reads, such as enable_thinking.

        Raises:
            ConfigError: The messages are malformed, or the template refuses them.
            UnsupportedError: A part, such as an image, that the template cannot show.
            FileFormatError: The template is malformed, hostile or without end.
        """
        if add_generation_prompt and continue_final_message:
            raise ConfigError(
                "[template] continue_final_message: got True with add_generation_prompt True; "
                "need one of them"
            )
        name = self._choose(name, tools)
        chat = self._fit(name, checked_messages(messages))
        if continue_final_message:
            mark_end(chat[-1])
        given = {
            "messages": chat,
            "tools": plain(tools, "tools"),
            "documents": plain(documents, "documents"),
            "add_generation_prompt": bool(add_generation_prompt),
        }
        text = self._run(name, {**self.special_tokens, **plain(variables, "variables"), **given})
        return cut_at_end(text) if continue_final_message else text

    def _choose(self, name: str | None, tools) -> str:
        if name is None:
            names = ["tool_use"] if tools else []
            names += ["default", *(list(self.sources) if len(self.sources) == 1 else [])]
            name = next((n for n in names if n in self.sources), None)
        if name not in self.sources:
            raise ConfigError(
                f"[template] name: got {name!r}, need one of {', '.join(self.sources)}"
            )
        return name

    def _fit(self, name: str, chat: list[dict]) -> list[dict]:
        """Bring contents into a form that the template reads."""
        takes_text, takes_parts = self._forms_of(name)
        for i, message in enumerate(chat):
            if "content" not in message:
                continue
            if not takes_parts:
                message["content"] = as_text(message["content"], f"messages[{i}].content")
            elif not takes_text:
                message["content"] = as_parts(message["content"])
        return chat

    def _forms_of(self, name: str) -> tuple[bool, bool]:
        """Whether a template reads content as text and as parts, found by trying."""
        if name not in self._forms:
            text = self._probe(name, NEEDLE)
            parts = self._probe(name, [{"type": "text", "text": NEEDLE}])
            # A list printed as Python or JSON prints it was not read part by part.
            reads_parts = NEEDLE in parts and "'text'" not in parts and '"text"' not in parts
            self._forms[name] = (NEEDLE in text or not reads_parts, reads_parts)
        return self._forms[name]

    def _probe(self, name: str, content) -> str:
        given = {"messages": [{"role": "user", "content": content}], "tools": None}
        try:
            return self._run(name, {**self.special_tokens, **given, "documents": None})
        except ConfigError:
            return ""

    def _run(self, name: str, variables: dict) -> str:
        # Jinja and what it imports take 6 MiB, which a process without a chat never needs.
        from . import rendering

        with self._lock:
            if name not in self._compiled:
                self._compiled[name] = rendering.compiled(name, self.sources[name])
            template = self._compiled[name]
        return rendering.render(name, template, variables)


def mark_end(message: dict) -> None:
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = content + END_MARK
        return
    for part in reversed(content or []):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            part["text"] += END_MARK
            return
    raise ConfigError(
        "[template] continue_final_message: the last message has no text to go on with"
    )


def cut_at_end(text: str) -> str:
    at = text.rfind(END_MARK.strip())
    if at < 0:
        raise ConfigError(
            "[template] continue_final_message: the template leaves out the last message's text"
        )
    trimmed = not text[at:].startswith(END_MARK)
    return text[:at].rstrip() if trimmed else text[:at]


def gguf_templates(metadata: Mapping) -> dict[str, str]:
    key = "tokenizer.chat_template"
    sources = {
        name.removeprefix(f"{key}."): value
        for name, value in metadata.items()
        if isinstance(name, str) and name.startswith(f"{key}.")
    }
    if metadata.get(key) is not None:
        sources["default"] = metadata[key]
    return sources


def folder_templates(folder: Path) -> dict[str, str]:
    """Templates in files win over those in tokenizer_config.json."""
    sources: dict[str, str] = {}
    for name in ("tokenizer_config.json", "chat_template.json"):
        if present(folder / name):
            sources |= listed(read_json(folder / name).get("chat_template"), name)
    if present(folder / "chat_template.jinja"):
        sources["default"] = read_text(folder / "chat_template.jinja")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        sources[path.stem] = read_text(path)
    return sources


def listed(value, where: str) -> dict[str, str]:
    """A template, a dict of them, or a list of {"name", "template"}."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        try:
            value = {item["name"]: item["template"] for item in value}
        except (TypeError, KeyError):
            value = None
    if not isinstance(value, dict):
        raise FileFormatError(f"[template] {where}: chat_template must be text or a list of them")
    return value


def read_text(path: Path) -> str:
    try:
        if path.stat().st_size > 4 * MAX_SOURCE:
            raise FileFormatError(f"[template] {path}: need at most {MAX_SOURCE} characters")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"[template] {path}: cannot be read: {error}") from None

"""Conversations and templates, rendered by transformers once.

To record templates.json: PYTHONPATH=python:tests python tests/text/template_cases.py
"""

import json
from pathlib import Path

FOLDER = Path(__file__).with_name("templates")
RECORDED = Path(__file__).with_name("templates.json")
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}

HI = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "Hello!\n"}
BYE = {"role": "user", "content": "  Bye <b>\"now\"</b> & 'then' é 😀  "}
SYSTEM = {"role": "system", "content": "Be brief."}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather in a <city> & region, 'now' or \"later\" – é",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1.0}},
            "required": ["city"],
        },
    },
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "type": "function",
            "function": {"name": "weather", "arguments": {"city": "Köln", "days": 2, "x": None}},
        }
    ],
}
RESULT = {"role": "tool", "name": "weather", "content": '{"sky": "blue"}'}
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo."}
REASONED = {"role": "assistant", "content": "So.", "reasoning_content": "hm"}
NONE = {"role": "assistant", "content": "ok", "tool_calls": None, "reasoning_content": None}
PARTS = {
    "role": "user",
    "content": [{"type": "text", "text": "see "}, {"type": "image"}, {"type": "text", "text": "!"}],
}

CHATS = {
    "one": ([HI], {}),
    "no_prompt": ([HI], {"add_generation_prompt": False}),
    "system": ([SYSTEM, HI, HELLO, BYE], {}),
    "turns": ([HI, HELLO, BYE, THOUGHT, HI], {}),
    "tools": ([SYSTEM, HI, CALL, RESULT, HELLO, BYE], {"tools": [TOOL]}),
    "reasoning": ([HI, REASONED], {"add_generation_prompt": False}),
    "none_fields": ([HI, NONE, BYE], {}),
    "thinking_off": ([HI], {"enable_thinking": False}),
    "parts": ([PARTS], {}),
    "documents": ([HI], {"documents": [{"title": "b", "text": "x"}, {"title": 'a"', "text": "y"}]}),
    "variables": ([HI, HELLO], {"date_string": "1 May", "extra": {"k": 1, "l": "m"}}),
    "continue": ([HI, HELLO], {"add_generation_prompt": False, "continue_final_message": True}),
    "bad_role": ([{"role": "alien", "content": "x"}], {}),
    "not_alternating": ([HI, HI], {}),
}


def templates() -> dict[str, str]:
    """Name to source: files in this folder, and SmolLM2's own."""
    from text.smollm2 import metadata

    found = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.jinja"))}
    return {**found, "smollm2": metadata()["tokenizer.chat_template"]}


def reference(source: str, chat: str):
    """What transformers makes of it; None if the template refuses."""
    from jinja2.exceptions import TemplateError
    from transformers.utils import chat_template_utils as utils

    messages, options = CHATS[chat]
    options = {"add_generation_prompt": True, **options}
    messages = utils._normalize_chat_messages(messages)
    try:
        texts, _ = utils.render_jinja_template(
            [messages], chat_template=source, **SPECIAL, **options
        )
    except (TemplateError, TypeError, ValueError):
        return None
    return texts[0]


def record():
    lines = [
        json.dumps([name, chat, reference(source, chat)])
        for name, source in templates().items()
        for chat in CHATS
    ]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    record()

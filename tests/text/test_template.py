"""Chat templates render as transformers renders them; hostile ones end with a typed error."""

import json
import resource
import sys
import time

import pytest

from butter.errors import ButterError, ConfigError, FileFormatError, UnsupportedError
from butter.hub import ModelFiles
from butter.text import budget
from butter.text.template import ChatTemplate
from text.template_cases import CHATS, HI, RECORDED, SPECIAL, SYSTEM, TOOL, reference, templates

RECORDS = {(name, chat): want for name, chat, want in json.loads(RECORDED.read_text())}
NAMES = sorted({name for name, _ in RECORDS})
# Transformers prints the parts as Python shows a list, or drops them.
TEXT_ONLY = {"chatml_tools", "header", "inst", "smollm2"}


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("name", NAMES)
def test_templates_render_as_recorded(name, chat):
    messages, options = CHATS[chat]
    template = ChatTemplate(templates()[name], SPECIAL)
    want = RECORDS[name, chat]
    if chat == "parts" and name in TEXT_ONLY:
        with pytest.raises(UnsupportedError, match="part of type 'image'"):
            template.render(messages, **options)
    elif want is None:
        with pytest.raises(ConfigError):
            template.render(messages, **options)
    else:
        assert template.render(messages, **options) == want


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_the_record_equals_the_live_reference(name):
    pytest.importorskip("transformers")
    for chat in CHATS:
        assert reference(templates()[name], chat) == RECORDS[name, chat], chat


def render(source, messages=(HI,), **options):
    return ChatTemplate(source).render(list(messages), **options)


# --- content ---

LAST = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
PARTS_ONLY = (
    "{% for m in messages %}{{ m.role }}:"
    "{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% else %}<{{ p.type }}>"
    "{% endif %}{% endfor %};{% endfor %}"
)
TEXTS = [
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
]


def test_parts_become_text_where_the_template_knows_only_text():
    assert render(LAST, TEXTS) == "user:ab;"
    assert render("{{ '>' + messages[0].content + '<' }}", TEXTS) == ">ab<"


def test_text_becomes_a_part_where_the_template_knows_only_parts():
    assert render(PARTS_ONLY, [HI, *TEXTS]) == "user:Hi;user:ab;"


def test_the_callers_messages_are_not_changed():
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}], "x": None}]
    before = json.dumps(messages)
    render(LAST, messages)
    assert json.dumps(messages) == before


def test_reasoning_is_found_under_its_other_names():
    message = {"role": "assistant", "content": "x", "reasoning": "because"}
    assert render("{{ messages[0].reasoning_content }}", [message]) == "because"


@pytest.mark.parametrize(
    "messages",
    [[], "hi", None, {"role": "user"}, ["hi"], [{}], [{"content": "x"}], [{"role": 3}],
     [{"role": "user", "content": 3}], [{"role": "user", "content": {"type": "text"}}],
     [{"role": "user", "content": [3]}], [{"role": "user", "content": [{"type": "text"}]}],
     [{"role": "user", "content": "x", "y": object()}], [{"role": "user", 3: "x"}],
     [{"role": "user", "content": "x", "y": b"bytes"}]],
)  # fmt: skip
def test_malformed_messages_are_a_typed_error(messages):
    with pytest.raises(ConfigError, match=r"\[template\]"):
        ChatTemplate(LAST).render(messages)


def test_endlessly_nested_messages_are_refused():
    nested = {"role": "user", "content": "x"}
    nested["self"] = nested
    with pytest.raises(ConfigError, match="nested deeper"):
        ChatTemplate(LAST).render([nested])


# --- options ---


def test_continue_final_message_ends_inside_the_last_message():
    chat = [HI, {"role": "assistant", "content": "The sky is "}]
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    options = {"add_generation_prompt": False, "continue_final_message": True}
    assert render(source, chat, **options) == "<user>Hi<end><assistant>The sky is "
    with pytest.raises(ConfigError, match="need one of them"):
        render(source, chat, continue_final_message=True)
    with pytest.raises(ConfigError, match="leaves out"):
        render("nothing", chat, **options)


def test_a_template_for_tools_is_taken_when_tools_are_given():
    both = ChatTemplate({"default": "plain", "tool_use": "tools", "rag": "rag"})
    assert both.render([HI]) == "plain" and both.render([HI], tools=[TOOL]) == "tools"
    assert both.render([HI], name="rag") == "rag"
    with pytest.raises(ConfigError, match="default, tool_use, rag"):
        both.render([HI], name="other")
    with pytest.raises(ConfigError, match="need one of a, b"):
        ChatTemplate({"a": "", "b": ""}).render([HI])


def test_variables_reach_the_template():
    assert render("{{ a }}{{ b | tojson }}", a=1, b={"k": "é<"}) == '1{"k": "é<"}'


def test_a_refusal_carries_the_templates_own_words():
    with pytest.raises(ConfigError, match="refuses these messages: no system prompt here"):
        render("{{ raise_exception('no system prompt here') }}", [SYSTEM])


def test_dates_come_from_the_clock():
    assert render("{{ strftime_now('%Y-%m-%d') }}") == time.strftime("%Y-%m-%d")
    for bomb in ("'%Y' * 1000000", "'%99999999Y'", "3"):
        with pytest.raises(FileFormatError, match="strftime_now"):
            render("{{ strftime_now(" + bomb + ") }}")


def test_tojson_is_what_models_were_trained_on():
    value = {"b": "é <&> '\"", "a": [1, 1.0, None, True]}
    assert render("{{ v | tojson }}", v=value) == json.dumps(value, ensure_ascii=False)
    want = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    assert render("{{ v | tojson(indent=2, sort_keys=true) }}", v=value) == want


# --- where templates lie ---


def folder(tmp_path, **texts):
    for name, text in texts.items():
        path = tmp_path / name.replace("__", "/").replace("_jinja", ".jinja").replace(
            "_json", ".json"
        )
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
    return ChatTemplate.from_files(ModelFiles("folder", tmp_path, (), "test"))


def test_a_model_without_a_template_has_none(tmp_path):
    assert folder(tmp_path, tokenizer_config_json={}) is None
    assert ChatTemplate.from_files(ModelFiles("gguf", tmp_path, (), ""), gguf_metadata={}) is None


def test_templates_are_found_in_every_place(tmp_path):
    listed = [{"name": "default", "template": "one"}, {"name": "rag", "template": "two"}]
    found = folder(tmp_path, tokenizer_config_json={"chat_template": listed})
    assert found.sources == {"default": "one", "rag": "two"}
    found = folder(
        tmp_path, chat_template_jinja="file", additional_chat_templates__tool_use_jinja="tools"
    )
    assert found.sources == {"default": "file", "rag": "two", "tool_use": "tools"}
    metadata = {"tokenizer.chat_template": "d", "tokenizer.chat_template.rag": "r", "x": 1}
    files = ModelFiles("gguf", tmp_path, (), "")
    assert ChatTemplate.from_files(files, gguf_metadata=metadata).sources == {
        "default": "d",
        "rag": "r",
    }


@pytest.mark.parametrize("value", [3, [3], [{"name": "x"}], {"default": 3}, "x" * (1 << 21)])
def test_a_template_that_is_no_text_is_a_format_error(tmp_path, value):
    with pytest.raises(FileFormatError):
        folder(tmp_path, tokenizer_config_json={"chat_template": value})


@pytest.mark.parametrize(
    "source",
    [
        "{% for %}",
        "{{ x",
        "{% endfor %}",
        "{{ x | no_such_filter }}",
        "{{" + "(" * 5000,
        "{% if a %}" * 999,
        "{{ " + "a + " * 30_000 + "a }}",
        "{% generation %}",
        "{{ x | urlize }}",
    ],
    ids=range(9),
)
def test_a_broken_template_is_a_format_error(source):
    with pytest.raises(FileFormatError, match=r"\[template\]"):
        render(source)


# --- hostile templates ---

DOUBLE = "{% set x = 'ab' %}" + "{% set x = x + x %}" * 40
TWICE = "{% set x = [x, x] %}{% set y = [y, y] %}"
BOMB = "{% set x = [1] * 9 %}" + "{% set x = [x, x, x, x] %}" * 40
FLOOD = "{% for a in range(99999) %}" + "x" * 99999 + "{% endfor %}"
TREE = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}"
SQUARES = "{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}"
MEGABYTE = "{% set x = 'a' * 10**6 %}"
HOSTILE = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}" + "{% endfor %}" * 2,
    "a huge range": "{% for a in range(10**9) %}{% endfor %}",
    "doubling by +": DOUBLE,
    "doubling by ~": DOUBLE.replace("x + x", "x ~ x"),
    "doubling by *": DOUBLE.replace("x + x", "x * 2"),
    "doubling by join": DOUBLE.replace("x + x", "[x, x] | join"),
    "doubling by format": DOUBLE.replace("x + x", "'%s%s' % (x, x)"),
    "doubling by blocks": "{% set x = 'ab' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 40,
    "doubling lists": "{% set x = [1] %}" + "{% set x = x + x %}" * 40,
    "a flood": FLOOD,
    "a captured flood": "{% set y %}" + FLOOD + "{% endset %}",
    "a huge repeat": "{{ 'a' * 10**9 }}",
    "a huge width": "{{ 'a'.center(10**9) }}",
    "a huge filter width": "{{ 'a' | center(10**9) }}",
    "a huge format width": "{{ '%999999999d' % 1 }}",
    "a starred width": "{{ '%*d' % (999999999, 1) }}",
    "a huge brace width": "{{ '{:>999999999}'.format(1) }}",
    "a nested brace width": "{{ '{:>{}}'.format('a', 999999999) }}",
    "a huge indent": "{{ [[[1]]] | tojson(indent=999999999) }}",
    "a huge power": "{{ 10 ** 99999999 }}",
    "a huge product": "{% set n = namespace(x=10**900) %}" + SQUARES,
    "digits": "{{ 1.5 | round(10**8) }}",
    "a bomb of references": BOMB + "{{ x | tojson }}",
    "a bomb printed": BOMB + "{{ x }}",
    "a bomb compared": "{% set x = [1] %}{% set y = [1] %}" + TWICE * 40 + "{{ x == y }}",
    "endless recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a tree of calls": TREE,
    "a recursive loop": "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
    "slow tests": "{% set l = range(99999) | list %}{{ l | select('in', l) | list | length }}",
    "replace": MEGABYTE + "{{ x.replace('a', x) }}",
    "translate": MEGABYTE + "{{ x.translate({97: x}) }}",
    "reaching outside": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "reaching by attr": "{{ (messages | attr('__class__')).__init__.__globals__.x }}",
    "reaching by format": "{{ '{0.__class__.__mro__}'.format(1).x.y }}",
    "namespace": "{{ namespace(__class__=1) }}",
    "changing lists": "{{ messages.append(1) }}",
    "files": "{% include '/etc/passwd' %}",
    "an undefined call": "{{ nothing() }}",
}


def peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_ends_with_a_typed_error(name, monkeypatch):
    monkeypatch.setattr(budget, "MAX_SECONDS", 1.0)
    template = ChatTemplate(HOSTILE[name])
    start, before = time.perf_counter(), peak_bytes()
    with pytest.raises(ButterError, match=r"\[template\]"):
        template._run("default", {"messages": [HI]})
    assert time.perf_counter() - start < 10
    assert peak_bytes() - before < 600 << 20


def test_a_long_conversation_is_far_from_the_limits():
    chat = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": "x" * 2000} for i in range(2001)
    ]
    for name, source in templates().items():
        text = ChatTemplate(source, SPECIAL).render(chat)
        assert len(text) > 2000 * 2000, name


def test_rendering_is_fast():
    template = ChatTemplate(templates()["chatml_tools"], SPECIAL)
    template.render([HI])
    start = time.perf_counter()
    for _ in range(20):
        template.render([SYSTEM, HI] * 5)
    assert (time.perf_counter() - start) / 20 < 0.02

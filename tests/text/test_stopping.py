"""Stop strings: never shown, never missed, and nothing held back longer than needed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butter.text.stopping import StopStrings

few = st.text("abc\n", min_size=1, max_size=4)


def run(stops, pieces):
    stream = StopStrings(stops)
    shown = [stream.push(p) for p in pieces]
    return "".join([*shown, stream.flush()]), stream.found, shown


def expected(stops, text):
    """By definition: character by character, until some stop string ends."""
    for end in range(1, len(text) + 1):
        ended = [s for s in stops if text[:end].endswith(s)]
        if ended:
            found = max(ended, key=len)
            return text[: end - len(found)], found
    return text, None


@settings(max_examples=200, deadline=None)
@given(st.lists(few, max_size=4), st.lists(st.text("abc\n", max_size=5), max_size=8))
def test_any_cut_of_the_text_gives_the_same(stops, pieces):
    text, found, _ = run(stops, pieces)
    assert (text, found) == expected(stops, "".join(pieces))
    assert not any(s in text for s in stops)


@settings(max_examples=200, deadline=None)
@given(st.lists(few, min_size=1, max_size=4), st.text("abc\n", max_size=20))
def test_only_what_could_become_a_stop_is_held_back(stops, text):
    stream = StopStrings(stops)
    shown = ""
    for n, char in enumerate(text, 1):
        shown += stream.push(char)
        if stream.found:
            break
        held = text[len(shown) : n]
        assert text[:n] == shown + held
        assert held == "" or any(s.startswith(held) for s in stops)


@pytest.mark.parametrize(
    "stops,pieces,text,found",
    [
        ([], ["a", "b"], "ab", None),
        (["END"], ["th", "e EN", "D of"], "the ", "END"),
        (["END"], ["the EN", "T"], "the ENT", None),
        (["\n\n"], ["a\n", "b\n", "\nc"], "a\nb", "\n\n"),
        (["aab"], ["aaa", "ab"], "aa", "aab"),
        (["bcd", "c"], ["abcd"], "ab", "c"),
        (["cd", "bcd"], ["abcd"], "a", "bcd"),
        (["</s>"], ["x</s", ">y"], "x", "</s>"),
        (["😀"], ["a😀b"], "a", "😀"),
        (["a"], ["a"], "", "a"),
    ],
)
def test_examples(stops, pieces, text, found):
    assert run(stops, pieces)[:2] == (text, found)


def test_nothing_comes_after_the_stop():
    stream = StopStrings(["x"])
    assert stream.push("axb") == "a" and stream.push("c") == "" and stream.flush() == ""

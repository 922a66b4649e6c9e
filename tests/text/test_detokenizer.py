"""Streaming text: the pieces joined are the text, and no character is ever broken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butter.errors import ConfigError, UnsupportedError
from butter.text.detokenizer import Pieces
from text.tokenizer_cases import texts
from text.vocabularies import (
    bytes_tokenizer,
    metaspace_tokenizer,
    smollm2_tokenizer,
    spm_tokenizer,
)

KINDS = {
    "byte_level": bytes_tokenizer,
    "smollm2": smollm2_tokenizer,
    "byte_fallback": spm_tokenizer,
    "metaspace": metaspace_tokenizer,
}
kinds = pytest.mark.parametrize("kind", KINDS)


def stream(tokenizer, ids, **options):
    detokenizer = tokenizer.detokenizer(**options)
    return [*(detokenizer.push(i) for i in ids), detokenizer.flush()]


@kinds
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_joined_pieces_are_the_text_for_any_ids(kind, data):
    tokenizer = KINDS[kind]()
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=40))
    for skip in (False, True):
        want = tokenizer.decode(ids, skip_special=skip)
        assert "".join(stream(tokenizer, ids, skip_special=skip)) == want


@kinds
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_decode_equals_the_tokenizers_library(kind, data):
    """For all ids; with single-byte tokens, for those that spell valid UTF-8."""
    tokenizer = KINDS[kind]()
    if kind == "byte_fallback":
        ids = tokenizer.encode(data.draw(st.text(max_size=30)), add_bos=False)
    else:
        ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=40))
    for skip in (False, True):
        want = tokenizer._backend.decode(ids, skip_special_tokens=skip)
        assert tokenizer.decode(ids, skip_special=skip) == want


@kinds
def test_real_text_streams_whole_characters(kind):
    tokenizer = KINDS[kind]()
    for text in texts():
        ids = tokenizer.encode(text, add_bos=False)
        pieces = stream(tokenizer, ids)
        assert "".join(pieces) == tokenizer.decode(ids)
        if "\ufffd" not in tokenizer.decode(ids):
            assert not any("\ufffd" in p for p in pieces)


def test_an_emoji_comes_out_in_one_piece():
    tokenizer = bytes_tokenizer()
    ids = tokenizer.encode("a\U0001f600b")
    assert [p for p in stream(tokenizer, ids) if p] == ["a", "\U0001f600", "b"]
    tokenizer = spm_tokenizer()
    ids = tokenizer.encode("a\U0001f600b", add_bos=False)
    assert [p for p in stream(tokenizer, ids) if p] == ["a", "\U0001f600", "b"]


def test_a_cut_off_character_is_flushed_as_a_replacement():
    tokenizer = bytes_tokenizer()
    ids = tokenizer.encode("a\U0001f600")[:-1]
    assert "".join(stream(tokenizer, ids)) == "a\ufffd" == tokenizer._backend.decode(ids)
    tokenizer = spm_tokenizer()
    ids = tokenizer.encode("a\U0001f600", add_bos=False)[:-1]
    assert (
        "".join(stream(tokenizer, ids)) == "a\ufffd\ufffd\ufffd" == tokenizer._backend.decode(ids)
    )


def test_a_continued_text_keeps_its_leading_space():
    for make in (spm_tokenizer, metaspace_tokenizer):
        tokenizer = make()
        ids = tokenizer.encode("the cat", add_bos=False)
        assert "".join(stream(tokenizer, ids)) == "the cat"
        assert "".join(stream(tokenizer, ids, continues=True)) == " the cat"


def test_spaces_inside_are_kept_as_they_are():
    text = "a  ,  b ; '  c"
    for make in KINDS.values():
        tokenizer = make()
        assert tokenizer.decode(tokenizer.encode(text, add_bos=False)) == text


@pytest.mark.parametrize("token", [-1, "1", None, 1.5, 1 << 70])
def test_what_is_no_id_is_refused(token):
    with pytest.raises(ConfigError, match="token id"):
        bytes_tokenizer().decode([token])


def test_an_unknown_decoder_is_refused_by_name():
    for spec in ("", '{"type":"WordPiece","prefix":"##","cleanup":true}'):
        with pytest.raises(UnsupportedError, match="decoder: got"):
            Pieces(spec, lambda i: "x", ())

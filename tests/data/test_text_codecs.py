"""Codecs of a long text: every text that they know is decoded exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npformer import UserError
from npformer.data.text_codecs import LINE_END, ByteCodec, CharacterCodec, PieceCodec, text_codec_from_json

POEM = "the cat sees\nthe dog\n\n  the cat's hat\tsleeps\n" * 20
PIECES = PieceCodec((LINE_END, "▁t", "he", "▁the", "▁", *"catdogseh ".strip()))
CODECS = [CharacterCodec.from_text("the cat\n"), ByteCodec(), PIECES]
every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)


@every_codec
@given(text=st.text("the cat\n"))
def test_every_known_text_is_decoded_exactly(codec, text):
    ids = codec.encode(text)
    assert codec.decode(ids) == text
    assert all(0 <= index < len(codec.tokens) for index in ids)


def test_the_character_that_begins_words_becomes_another():
    codec = PieceCodec((*PIECES.tokens, "_"))
    assert codec.decode(codec.encode("the▁cat")) == "the_cat"


@pytest.mark.parametrize("size", [25, 40])
def test_trained_pieces_decode_the_text_and_further_characters(size):
    codec = PieceCodec.train(POEM, size, characters="xyz")
    assert len(codec.tokens) == size + 3  # x, y and z
    assert codec.decode(codec.encode(POEM + "xyz")) == POEM + "xyz"
    assert codec == PieceCodec.train(POEM, size, characters="zxy")


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (3, "vocab_size is 3, fewer than the characters alone: the smallest size is 15"),
        (5000, "vocab_size is 5000, more than these sentences give: the largest size possible is 52"),
    ],
)
def test_an_impossible_number_of_pieces_is_refused(size, sentence):
    with pytest.raises(UserError, match=sentence):
        PieceCodec.train(POEM, size)


@pytest.mark.parametrize("codec", [CODECS[0], PIECES])
def test_an_unknown_character_is_refused(codec):
    with pytest.raises(UserError, match="the text has the character 'é', which the model has not seen"):
        codec.encode("the é and the ü")


@every_codec
@pytest.mark.parametrize("wrong", [-1, 256])
def test_ids_outside_the_vocabulary_are_refused(codec, wrong):
    with pytest.raises(UserError, match=rf"the id {wrong} is outside the vocabulary of {len(codec.tokens)} "):
        codec.decode([0, wrong])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"kind": "npformer text codec"}', "its \"kind\" is 'npformer text codec'"),
        ('{"kind": "npformer character codec"}', "has no entry 'characters'"),
        ('{"kind": "npformer character codec", "characters": 3}', "'characters' .* is 3, not a text"),
        ('{"kind": "npformer character codec", "characters": ""}', "are empty or occur twice"),
        ('{"kind": "npformer character codec", "characters": "aba"}', "are empty or occur twice"),
        ('{"kind": "npformer byte codec", "more": 1}', "unknown entry 'more'"),
        ('{"kind": "npformer piece codec", "tokens": ["a"]}', "the first token is 'a'"),
        ('{"kind": "npformer piece codec", "tokens": ["\\n", ""]}', "are empty or occur twice"),
        ("[]", "npformer character codec or npformer byte codec or npformer piece codec"),
    ],
)
def test_a_json_text_of_something_else_is_refused(text, sentence):
    with pytest.raises(UserError, match=sentence):
        text_codec_from_json(text)

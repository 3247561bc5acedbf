"""The codecs as tokenizers: ids, pieces, and places that cut the text into the pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_pretrained import toy_codec

from npformer.data import END, LANGUAGES, UNK, TextCodec
from npformer.data.sentences import MASK, with_mask
from npformer.data.text_codecs import ByteCodec, CharacterCodec, PieceCodec
from npformer.generation.codec_tokenizers import LongTextTokenizer, SentenceTokenizer

WORDS = TextCodec.from_lines(["the cat doesn't see l'eau café a dog ß"], language=LANGUAGES["en"])
PIECES = PieceCodec(("\n", "▁d", "og", "▁dog", "▁", *"abcdefghijklmnopqrstuvwxyz_"))


def shown(encoding, text):
    return [text[start:end] for start, end in encoding.offsets]


@given(st.text(alphabet="ab \n_dog", max_size=30))
def test_the_places_of_a_long_text_cut_it_into_all_of_its_pieces(text):
    for codec in (CharacterCodec("\n _abdgo"), PIECES):
        encoding = LongTextTokenizer(codec).encode(text)
        assert encoding.ids == codec.encode(text)
        assert encoding.pieces == [codec.tokens[index] for index in encoding.ids]
        assert "".join(shown(encoding, text)) == text


def test_all_bytes_of_a_character_have_its_place():
    encoding = LongTextTokenizer(ByteCodec()).encode("aé€\udcff")
    assert encoding.ids == [*"aé€".encode(), 255]
    assert encoding.pieces == ["a", "<0xC3>", "<0xA9>", "<0xE2>", "<0x82>", "<0xAC>", "<0xFF>"]
    assert encoding.offsets == [(0, 1), *[(1, 2)] * 2, *[(2, 3)] * 3, (3, 4)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The cat", ["The", "cat"]),
        ("  the\tCAFE\u0301, dog ", ["the", "CAFE\u0301", ",", "dog"]),
        ("doesn\u2019t see\u00ad the", ["doesn\u2019t", "see", "the"]),
    ],
)
def test_the_places_of_words_in_another_spelling(text, found):
    """Capitals, accents apart, other apostrophes and invisible characters are those of the reader's text."""
    encoding = SentenceTokenizer(WORDS).encode(text)
    assert encoding.ids == [*WORDS.encode(text), END]
    assert shown(encoding, text) == [*found, ""]


def test_an_entity_of_a_tokenised_corpus_has_no_place_and_the_words_after_it_have_theirs():
    encoding = SentenceTokenizer(toy_codec("en")).encode("a & man")
    assert encoding.pieces[0] == "a"
    assert encoding.offsets[-2:] == [(4, 7), (0, 0)]
    assert (0, 0) in encoding.offsets[1:-2]


def test_masks_and_unknown_words():
    codec = with_mask(WORDS)
    tokenizer = SentenceTokenizer(codec)
    text = f"the {MASK} sees{MASK}dog"
    encoding = tokenizer.encode(text)
    mask = len(codec.tokens) - 1
    assert encoding.ids == [codec.vocabulary.id("the"), mask, UNK, mask, codec.vocabulary.id("dog"), END]
    assert encoding.pieces == ["the", MASK, "sees", MASK, "dog", "</S>"]
    assert shown(encoding, text) == ["the", MASK, "sees", MASK, "dog", ""]
    assert (tokenizer.mask_id, tokenizer.unknown_id) == (mask, UNK)
    assert tokenizer.special_ids == {0, 1, 2, 3, mask}
    assert tokenizer.piece(mask) == MASK
    assert SentenceTokenizer(WORDS).mask_id is None
    assert SentenceTokenizer(WORDS).special_ids == {0, 1, 2, 3}

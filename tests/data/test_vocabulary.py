"""Words to ids and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npformer.data.codecs import TextCodec
from npformer.data.tokens import LANGUAGES
from npformer.data.vocabulary import END, PAD, SPECIALS, START, UNK, Vocabulary
from npformer.errors import UserError

SENTENCES = [["b", "a", "c"], ["a", "d", "b"], ["a"]]  # a 3, b 2, c 1, d 1
small = Vocabulary.from_sentences(SENTENCES)
word_lists = st.lists(st.lists(st.text("abcdeé", min_size=1, max_size=3)), min_size=1).filter(any)


def test_special_ids():
    assert (PAD, UNK, START, END) == (0, 1, 2, 3)
    assert SPECIALS == ("<PAD>", "<UNK>", "<S>", "</S>")
    assert [small.id(word) for word in SPECIALS] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sentences", "settings", "words"),
    [
        (SENTENCES, {}, "abcd"),
        ([["z", "y"], ["x"]], {}, "xyz"),  # ties are in the order of the alphabet
        (SENTENCES, {"min_count": 2}, "ab"),
        (SENTENCES, {"min_count": 3}, "a"),
        (SENTENCES, {"max_size": 7}, "abc"),
        (SENTENCES, {"max_size": 100}, "abcd"),
        ([["<S>", "a", "<PAD>"]], {}, "a"),  # special tokens in the text are not counted
    ],
)
def test_frequent_words_first_within_the_limits(sentences, settings, words):
    assert Vocabulary.from_sentences(sentences, **settings).words == (*SPECIALS, *words)


def test_unknown_words():
    assert small.id("z") == UNK
    assert small.encode(["a", "z", "b"]) == [4, UNK, 5]
    assert small.unknown(["z", "a", "y", "z"]) == ["z", "y"]
    assert small.decode([4, UNK]) == ["a", "<UNK>"]


def test_decode_stops_at_end_and_skips_pad_and_start():
    assert small.decode([START, 4, PAD, 5, END, 6, PAD]) == ["a", "b"]
    assert small.decode(np.array([START, 4, END])) == ["a"]
    assert small.decode([]) == []


@pytest.mark.parametrize("bad", [8, -1, 10**9])
def test_decode_refuses_ids_outside_the_vocabulary(bad):
    with pytest.raises(UserError, match=rf"id {bad} is outside the vocabulary of 8 words"):
        small.decode([4, bad])


@settings(max_examples=30)
@given(sentences=word_lists)
def test_round_trips(sentences):
    vocabulary = Vocabulary.from_sentences(sentences)
    for words in sentences:
        ids = vocabulary.encode(words)
        assert all(index >= len(SPECIALS) for index in ids)
        assert vocabulary.decode([START, *ids, END, PAD]) == words
        assert vocabulary.unknown(words) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_count": 0}, "min_count is 0: it must be a whole number, 1 or more"),
        ({"min_count": None}, "min_count is None: it must be a whole number, 1 or more"),
        ({"max_size": 4}, "max_size is 4: it must be more than 4"),
        ({"min_count": 4}, "no word of the sentences occurs 4 times or more"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(UserError, match=message):
        Vocabulary.from_sentences(SENTENCES, **settings)


def test_empty_and_unsplit_sentences_are_refused():
    with pytest.raises(UserError, match="no word of the sentences occurs 1 time or more"):
        Vocabulary.from_sentences([[], []])
    with pytest.raises(UserError, match="'a man' is one string: split it"):
        Vocabulary.from_sentences(["a man"])


# --- the codec ---

LINES = ["L'animal dort.", "L’homme qu'il voit dort (aujourd'hui)."]
french = TextCodec.from_lines(LINES, language=LANGUAGES["fr"])


def test_codec_encodes_and_decodes_sentences():
    ids = french.encode(LINES[0])
    assert french.vocabulary.decode(ids) == ["l'", "animal", "dort", "."]
    assert french.decode([START, *ids, END, PAD]) == "l'animal dort."
    assert french.decode(french.encode(LINES[1])) == "l'homme qu'il voit dort (aujourd'hui)."
    assert french.encode("Un animal") == [UNK, french.vocabulary.id("animal")]
    assert french.words("Un animal") == ["un", "animal"]

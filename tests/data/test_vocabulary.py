"""Words to ids and back."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npformer.data.codecs import TextCodec
from npformer.data.tokens import LANGUAGES, Language
from npformer.data.vocabulary import END, PAD, SPECIALS, START, UNK, Vocabulary
from npformer.errors import UserError

SENTENCES = [["b", "a", "c"], ["a", "d", "b"], ["a"]]  # a 3, b 2, c 1, d 1
small = Vocabulary.from_sentences(SENTENCES)
word_lists = st.lists(st.lists(st.text("abcdeé", min_size=1, max_size=3)), min_size=1).filter(any)


def test_special_ids():
    assert (PAD, UNK, START, END) == (0, 1, 2, 3)
    assert SPECIALS == ("<PAD>", "<UNK>", "<S>", "</S>")
    assert [small.id(word) for word in SPECIALS] == [0, 1, 2, 3]


def test_frequent_words_first_and_ties_alphabetical():
    assert small.words == (*SPECIALS, "a", "b", "c", "d")
    assert Vocabulary.from_sentences([["z", "y"], ["x"]]).words[4:] == ("x", "y", "z")


def test_min_count_and_max_size():
    assert Vocabulary.from_sentences(SENTENCES, min_count=2).words[4:] == ("a", "b")
    assert Vocabulary.from_sentences(SENTENCES, min_count=3).words[4:] == ("a",)
    assert Vocabulary.from_sentences(SENTENCES, max_size=7).words == (*SPECIALS, "a", "b", "c")
    assert len(Vocabulary.from_sentences(SENTENCES, max_size=100)) == 8


def test_a_special_token_in_the_text_is_not_counted():
    assert Vocabulary.from_sentences([["<S>", "a", "<PAD>"]]).words == (*SPECIALS, "a")


def test_it_is_an_immutable_collection():
    assert len(small) == 8
    assert "a" in small
    assert "z" not in small
    assert small == Vocabulary(small.words)
    assert small != Vocabulary(small.words[:-1])
    assert small != Vocabulary((*SPECIALS, "b", "a", "c", "d"))
    assert hash(small) == hash(Vocabulary(list(small.words)))
    with pytest.raises(AttributeError):
        small.words = ()


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


@settings(max_examples=100)
@given(sentences=word_lists)
def test_round_trips(sentences):
    vocabulary = Vocabulary.from_sentences(sentences)
    for words in sentences:
        ids = vocabulary.encode(words)
        assert all(index >= len(SPECIALS) for index in ids)
        assert vocabulary.decode([START, *ids, END, PAD]) == words
        assert vocabulary.unknown(words) == []
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary
    assert again.fingerprint() == vocabulary.fingerprint()


def test_the_fingerprint_distinguishes_vocabularies():
    assert small.fingerprint() == "11b0d2dcf3d5"  # the same on every machine and in every version
    others = [
        small.words[:-1],
        (*SPECIALS, "b", "a", "c", "d"),
        (*small.words[:-2], "cd"),
        (*SPECIALS, "abcd"),
    ]
    assert len({small.fingerprint(), *(Vocabulary(words).fingerprint() for words in others)}) == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_count": 0}, "min_count is 0: it must be 1 or more"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the text of the npformer vocabulary is not JSON"),
        ("[1, 2]", "the text of the npformer vocabulary is a list and not a JSON object"),
        (
            '{"kind": "npformer text codec"}',
            "is not an npformer vocabulary: its \"kind\" is 'npformer text codec'",
        ),
        ('{"kind": "npformer vocabulary"}', 'has no list "words"'),
        ('{"kind": "npformer vocabulary", "words": "abc"}', 'has no list "words"'),
        (
            '{"kind": "npformer vocabulary", "words": ["a", "b"]}',
            "starts with the words <PAD>, <UNK>, <S>, </S>",
        ),
        (
            '{"kind": "npformer vocabulary", "words": ["<PAD>", "<S>", "<UNK>", "</S>"]}',
            "starts with the words",
        ),
    ],
)
def test_from_json_refuses_what_is_not_a_vocabulary(text, message):
    with pytest.raises(UserError, match=message):
        Vocabulary.from_json(text)


def test_duplicates_and_words_that_are_not_strings():
    with pytest.raises(UserError, match="has 'a' twice, at 4 and 6"):
        Vocabulary((*SPECIALS, "a", "b", "a"))
    with pytest.raises(UserError, match="has '<S>' twice, at 2 and 4"):
        Vocabulary((*SPECIALS, "<S>"))
    with pytest.raises(UserError, match="word 5 of the vocabulary is 7"):
        Vocabulary.from_json(json.dumps({"kind": "npformer vocabulary", "words": [*SPECIALS, "a", 7]}))


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


def test_codec_passes_its_settings_to_the_tokenizer():
    plain = TextCodec.from_lines(LINES, lowercase=False)
    assert "L'animal" in plain.vocabulary
    assert plain.decode(plain.encode("L'animal")) == "L'animal"
    assert len(TextCodec.from_lines(LINES, min_count=2, max_size=6).vocabulary) == 6


@pytest.mark.parametrize("text", ["", "   ", "\u200b"])
def test_an_empty_sentence_is_refused_only_if_strict(text):
    assert french.encode(text) == []
    with pytest.raises(UserError, match="is empty: write at least one word"):
        french.encode(text, strict=True)
    assert french.encode("Zut", strict=True) == [UNK]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("language", [*LANGUAGES.values(), Language("it", elision=True)])
def test_codec_survives_json(language, lowercase):
    codec = TextCodec.from_lines(LINES, language=language, lowercase=lowercase)
    assert TextCodec.from_json(codec.to_json()) == codec


@pytest.mark.parametrize("name", ["language", "elision", "lowercase", "words"])
def test_codec_refuses_json_with_a_part_missing(name):
    content = json.loads(french.to_json())
    del content[name]
    with pytest.raises(UserError, match=f"the text codec has no entry '{name}'"):
        TextCodec.from_json(json.dumps(content))


def test_codec_refuses_other_json():
    with pytest.raises(UserError, match="is not an npformer text codec"):
        TextCodec.from_json(small.to_json())
    with pytest.raises(UserError, match="is not JSON"):
        TextCodec.from_json("")

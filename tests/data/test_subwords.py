"""The codec of subwords: text to pieces and back, trained by sentencepiece, stored as JSON."""

import builtins
import dataclasses
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npformer import UserError
from npformer.data import END, LANGUAGES, PAD, SPECIALS, START, UNK, Vocabulary
from npformer.data.subwords import WORD_BEGIN, SubwordCodec, joint_codecs

ENGLISH = ["The dog sleeps.", "The dogs' owner didn't sleep!", "A dog, two dogs and the cat's dog."] * 3
GERMAN = ["Der Hund schläft.", "Die Hundebesitzerin schlief nicht!", "Ein Hund, zwei Hunde."] * 3

# pieces made by hand, for the tests that train nothing
PIECES = ("do", "dog", WORD_BEGIN + "dog", WORD_BEGIN + "the", "th", *(WORD_BEGIN + "hegdots.S'&;ap"))
small = SubwordCodec(Vocabulary((*SPECIALS, *dict.fromkeys(PIECES))))


@pytest.fixture(scope="module")
def trained():
    return SubwordCodec.train(ENGLISH, 50, language=LANGUAGES["en"])


# --- text to pieces and back ---


def test_text_is_split_into_pieces_and_joined_again():
    assert small.words("The dogs  do.") == [WORD_BEGIN, "th", "e", "▁dog", "s", WORD_BEGIN, "do", "."]
    ids = small.encode("The dogs  do.")
    assert small.vocabulary.decode(ids) == small.words("The dogs  do.")
    assert small.decode([START, *ids, END, PAD, ids[0]]) == "the dogs do."
    assert small.detokenize("the dogs do.") == "the dogs do."


def test_the_form_of_the_text_is_a_setting():
    cased = dataclasses.replace(small, lowercase=False)
    assert cased.words("S s") == [WORD_BEGIN, "S", WORD_BEGIN, "s"]
    assert small.words("S") == [WORD_BEGIN, "s"]
    tokenised = dataclasses.replace(small, text="tokenised", language=LANGUAGES["en"])
    assert tokenised.normalise("The dog's.") == "the dog &apos;s ."
    assert tokenised.decode(tokenised.encode("The dog's.")) == "the dog &apos;s ."
    assert tokenised.encode("the dog &apos;s .") == tokenised.encode("The dog's.")
    assert tokenised.detokenize("the dog &apos;s .") == "the dog's."
    assert dataclasses.replace(tokenised, language=LANGUAGES["fr"]).normalise("d's") == "d&apos; s"


def test_compatible_characters_become_one():
    assert small.normalise("ｔｈｅ\u00a0ﬁ\u200b’\u00ad\ufeff") == "the fi '"
    assert small.normalise("\u2581dog") == "_dog"  # no text can imitate the mark at the beginning of a word


def test_unknown_characters_are_unk_and_text_cannot_imitate_a_special_token():
    assert small.encode("漢字 dog") == [small.vocabulary.id(WORD_BEGIN), UNK, small.vocabulary.id("▁dog")]
    assert small.vocabulary.unknown(small.words("漢字 dog")) == ["漢字"]
    assert small.decode([UNK, *small.encode("dog")]) == "<UNK> dog"
    cased = dataclasses.replace(small, lowercase=False)
    for word in SPECIALS:
        assert not {PAD, START, END} & set(cased.encode(word))


@pytest.mark.parametrize("text", ["", "  ", "\u200b"])
def test_an_empty_sentence_is_refused_only_if_strict(text):
    assert small.encode(text) == []
    with pytest.raises(UserError, match="is empty: write at least one word"):
        small.encode(text, strict=True)


@given(text=st.text() | st.text("dogthes. '&;ap"), form=st.sampled_from(["raw", "tokenised"]))
def test_text_of_known_characters_is_restored(text, form):
    codec = dataclasses.replace(small, text=form)
    ids = codec.encode(text)
    if UNK not in ids:
        assert codec.decode(ids) == codec.normalise(text)
        assert codec.encode(codec.decode(ids)) == ids


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": "tok"}, "text is 'tok': choose one of"),
        ({"text": "tokenised", "lowercase": False}, "capitals"),
    ],
)
def test_invalid_settings(changes, message):
    with pytest.raises(UserError, match=message):
        dataclasses.replace(small, **changes)


# --- training ---


@pytest.mark.parametrize(
    ("lines", "size", "message"),
    [
        (["", " "], 50, "there are no sentences to make subwords from"),
        (ENGLISH, True, "subwords is True: it must be a whole number, 1 or more"),
    ],
)
def test_training_refuses_impossible_input(lines, size, message):
    with pytest.raises(UserError, match=message):
        SubwordCodec.train(lines, size)


def test_training_makes_the_pieces(trained):
    assert len(trained.vocabulary) == 50
    assert trained.vocabulary.words[:4] == SPECIALS
    assert trained.words("The dog") == ["▁the", "▁dog"]
    for line in ENGLISH:
        assert UNK not in trained.encode(line)
        assert trained.decode(trained.encode(line)) == trained.normalise(line)
    assert all(set(word[1:]).isdisjoint("'.,!") for word in trained.vocabulary.words if len(word) > 1)


def test_the_same_lines_give_the_same_pieces_in_any_process(trained):
    code = (
        "from npformer.data import SubwordCodec, LANGUAGES; "
        f"print(SubwordCodec.train({ENGLISH!r}, 50, language=LANGUAGES['en']).to_json())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SubwordCodec.from_json(run.stdout) == trained
    assert run.stderr == ""  # sentencepiece prints a lot by default


def test_tokens_of_letters_and_punctuation_are_whole_in_tokenised_text():
    lines = ["dog's", "it's", "man's t-shirt"]
    tokenised = SubwordCodec.train(lines, 34, language=LANGUAGES["en"], text="tokenised")
    assert tokenised.words("cat's")[-1] == "▁&apos;s"
    raw = SubwordCodec.train(lines, 20)
    assert raw.words("cat's")[-2:] == ["'", "s"]


def test_two_languages_share_their_pieces():
    pairs = list(zip(ENGLISH, GERMAN, strict=True))
    languages = LANGUAGES["en"], LANGUAGES["de"]
    source, target = joint_codecs(pairs, 70, languages=languages, text="tokenised")
    assert source.vocabulary is target.vocabulary
    assert (source.language, target.language) == languages
    assert source.normalise("Joe's") == "joe &apos;s"
    assert target.normalise("Joe's") == "joe &apos; s"
    for codec, lines in ((source, ENGLISH), (target, GERMAN)):
        assert all(UNK not in codec.encode(line) for line in lines)
    german, _ = joint_codecs([("dog", "Joe's")], 24, languages=languages, text="tokenised")
    assert "▁s" in german.vocabulary  # by the rules for German the s is a word


@pytest.mark.parametrize(
    ("lines", "size", "message"),
    [
        (ENGLISH, 5000, r"subwords is 5000, more than .* the largest size possible is (\d+) \(from 9 lin"),
        (ENGLISH, 9, r"subwords is 9, fewer than .* the smallest size is (\d+) \(from 9 lines\)"),
    ],
)
def test_the_sizes_that_the_message_names_are_possible(lines, size, message):
    with pytest.raises(UserError, match=message) as error:
        SubwordCodec.train(lines, size)
    limit = int(re.search(message, str(error.value))[1])
    assert len(SubwordCodec.train(lines, limit).vocabulary) == limit
    with pytest.raises(UserError):
        SubwordCodec.train(lines, limit + (1 if size > limit else -1))


def test_the_error_without_sentencepiece_names_it(monkeypatch):
    def without(name, *arguments, imported=builtins.__import__, **rest):
        if name == "sentencepiece":
            raise ImportError(name)
        return imported(name, *arguments, **rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"needs sentencepiece.*pip install sentencepiece"):
        SubwordCodec.train(ENGLISH, 50)
    assert SubwordCodec.from_json(small.to_json()).encode("the dog") == small.encode("the dog")

"""Splitting text into words, and joining words into text."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npformer.data.tokens import LANGUAGES, _token_pattern, detokenize, language_of, tokenize
from npformer.data.vocabulary import SPECIALS

NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\n ", []),
        ("Two young, White males.", ["two", "young", ",", "white", "males", "."]),
        ("He didn't go.", ["he", "didn't", "go", "."]),
        ("He didn’t go.", ["he", "didn't", "go", "."]),
        ("the 'big' boys' room", ["the", "'", "big", "'", "boys", "'", "room"]),
        ("rock'n'roll", ["rock'n'roll"]),
        ("a well-known T-shirt", ["a", "well-known", "t-shirt"]),
        ("non\u2011breaking", ["non-breaking"]),
        ("mid - air, racing-", ["mid", "-", "air", ",", "racing", "-"]),
        ("2.50, 10,000 at 10:30.", ["2.50", ",", "10,000", "at", "10:30", "."]),
        ("no.5 and 5.no", ["no", ".", "5", "and", "5", ".", "no"]),
        ("bib,girl restaurant.com", ["bib", ",", "girl", "restaurant", ".", "com"]),
        ("A&M (#19) a_b", ["a", "&", "m", "(", "#", "19", ")", "a", "_", "b"]),
        ("wait...", ["wait", ".", ".", "."]),
        ("Ein großer Äpfel", ["ein", "großer", "äpfel"]),
        ("cafe\u0301", ["café"]),  # e and its accent as two characters
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zero", "width"]),
        ("我爱你。我有2只猫！", ["我爱你", "。", "我有2只猫", "！"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा", "।"]),  # its vowel signs are marks, not letters
        ("❤\ufe0f!", ["❤\ufe0f", "!"]),
        ("line\u2028line\x85line", ["line", "line", "line"]),
    ],
)
def test_words_split_at_space_and_punctuation(text, words):
    assert tokenize(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l'animal", ["l'", "animal"]),
        ("L’animal", ["l'", "animal"]),
        ("parce qu'il", ["parce", "qu'", "il"]),
        ("aujourd'hui", ["aujourd'hui"]),
        ("d'aujourd'hui.", ["d'", "aujourd'hui", "."]),
        ("quelqu'un jusqu'à", ["quelqu'", "un", "jusqu'", "à"]),
        ("peut-être d'arrière-plan", ["peut-être", "d'", "arrière-plan"]),
        ("aujourd'huit", ["aujourd'", "huit"]),
        ("c' d' j' l' m' n' s' t' qu' x", ["c'", "d'", "j'", "l'", "m'", "n'", "s'", "t'", "qu'", "x"]),
        ('qu\'"il"', ["qu'", '"', "il", '"']),
        ("'mot'", ["'", "mot", "'"]),
        ("3,5 à 10h30", ["3,5", "à", "10h30"]),
    ],
)
def test_french_splits_after_the_apostrophe(text, words):
    assert tokenize(text, elision=True) == words


def test_no_text_produces_a_special_token():
    assert not set(tokenize(" ".join(SPECIALS), lowercase=False)) & set(SPECIALS)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        (["a", "man", ",", "a", "dog", "."], "a man, a dog."),
        (["l'", "animal", "qu'", "il", "voit"], "l'animal qu'il voit"),
        (["who", "?", "me", "!", "so", ":", "a", ";", "b"], "who? me! so: a; b"),
        (["two", "(", "in", "red", ")", "."], "two (in red)."),
        (["it", "says", '"', "stop", "!", '"', "and", '"', "go", '"'], 'it says "stop!" and "go"'),
        (["er", "sagt", "„", "ja", "“", "."], "er sagt „ja“."),
        (["the", "boys", "'", "room"], "the boys ' room"),
        (["a", "-", "b"], "a - b"),
    ],
)
def test_words_are_joined_as_they_are_written(words, text):
    assert detokenize(words) == text


# mostly the characters that the rules treat, and some of all others
texts = st.text(
    st.one_of(st.sampled_from("aldqu1 2.,:'’\"-–()!?„“_<>éß\u0301हिन्我。\u200b\u00ad"), st.characters())
)


@settings(max_examples=1000 if NIGHTLY else 150)
@given(text=texts, lowercase=st.booleans(), elision=st.booleans())
def test_joined_words_split_into_the_same_words(text, lowercase, elision):
    how = {"lowercase": lowercase, "elision": elision}
    words = tokenize(text, **how)
    assert all(word and not any(c.isspace() for c in word) for word in words)
    assert tokenize(detokenize(words), **how) == words


@settings(max_examples=200 if NIGHTLY else 40)
@given(text=st.text(st.characters(codec="ascii")), elision=st.booleans())
def test_only_spaces_are_lost(text, elision):
    assert "".join(tokenize(text, lowercase=False, elision=elision)) == "".join(text.split())


@pytest.mark.parametrize("elision", [False, True])
def test_the_pattern_has_no_possessive_quantifiers(elision):
    """Python 3.11.0 to 3.11.4 match nested ones wrongly: they split "the" into "th", "" and "e"."""
    pattern = _token_pattern(elision).pattern
    assert not any(possessive in pattern for possessive in ("++", "*+", "?+", "}+", "(?>"))


def test_long_texts_take_linear_time():
    """With a pattern that can divide a text in many ways, these words would take hours."""
    for text in ("a" * 20_000 + "'", "x\u0301" * 10_000 + "-", "1." * 10_000, "qu" * 10_000 + "'"):
        assert "".join(tokenize(text, elision=True)) == text


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train.en", "en"),
        ("train.de.gz", "de"),
        ("data.de/train.FR.txt.gz", "fr"),
        (Path("a/b/val.fr"), "fr"),
        ("fr", "fr"),
        ("en.corpus.de", "de"),
        ("train.en-fr.de", "de"),
        ("notes.txt", "plain"),
        ("corpus.fr/notes", "plain"),
        ("train.it", "plain"),
        ("", "plain"),
    ],
)
def test_language_of_a_path_or_name(path, name):
    assert language_of(path) is LANGUAGES[name]

"""Restoring capitals: the usual spelling, the last part of a compound, the beginning of a sentence."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_pretrained import toy_codec

from npformer import UserError
from npformer.data.casing import Casing
from npformer.data.codecs import codec_from_json

TEXT = [
    "Ein Mann fährt in die USA.",
    "Der Mann sieht einen Wagen, und die Frau fährt mit dem Wagen.",
    "Zwei Männer tragen eine weiße Jacke; weiße Jacken tragen sie oft.",
    "Mann sieht Mann.",
]


@pytest.fixture(scope="module")
def casing():
    return Casing.from_lines(TEXT)


def test_it_restores_the_capitals_that_lowercasing_removed(casing):
    for line in TEXT:
        assert casing.restore(line.lower()) == line
        assert casing.restore(line) == line


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("im feuerwehrwagen schläft er.", "Im Feuerwehrwagen schläft er."),
        ("sie werden übertragen.", "Sie werden übertragen."),  # ends as "tragen"
        ("ein tragen-wagen", "Ein tragen-Wagen"),
        ("er hat quux", "Er hat quux"),  # no known word ends so
        ("sie hat en", "Sie hat en"),  # "en" would be the whole word, not its ending
        ("er schläft. sie isst! wer? ich", "Er schläft. Sie isst! Wer? Ich"),
        ('"er schläft', '"Er schläft'),
        ("um 10.30 uhr", "Um 10.30 uhr"),
        ("", ""),
        (" . ", " . "),
    ],
)
def test_unseen_words_and_beginnings_of_sentences(casing, text, restored):
    assert casing.restore(text) == restored


LONGEST = ("Wagen", "wagen", "Sportwagen", "ragen", "tragen", "Kragen")


@pytest.mark.parametrize(
    ("words", "text", "restored"),
    [
        (("Bahn", "Zahn", "lahn"), "die xahn", "Die Xahn"),
        (("Bahn", "lahn"), "die xahn", "Die xahn"),  # not more than half
        (("Bahn", "Zahn", "lahn", "mahn"), "die schlahn", "Die schlahn"),
        (LONGEST, "im hemdkragen", "Im Hemdkragen"),
        (LONGEST, "im auftragen", "Im auftragen"),
    ],
)
def test_most_words_with_the_longest_known_ending_decide(words, text, restored):
    assert Casing(words).restore(text) == restored


def test_the_neighbours_decide_about_a_word_with_several_spellings():
    """ "ein paar Leute" and "ein Paar sitzt"; "das Paar" in each context; the usual spelling elsewhere."""
    first = ["Da sind ein paar Leute.", "Da gehen ein paar Frauen.", "Da sitzt ein Paar draußen."]
    then = ["Da sitzt das Paar Leute.", "Da sitzt ein Paar.", "Da gehen Leute, Frauen gehen draußen."]
    casing = Casing.from_lines(first + then)
    assert casing.exceptions == (("", "paar", "capital"), ("das", "Paar", "capital"))
    assert casing.restore("ein paar leute sind da.") == "Ein paar Leute sind da."
    assert casing.restore("ein paar gehen da.") == "Ein Paar gehen da."
    assert casing.restore("ein paar.") == "Ein Paar."
    assert casing.restore("ein paar") == "Ein Paar"
    assert casing.restore("wo das paar leute ist") == "Wo das Paar Leute ist"
    assert casing.restore("wo zwei paar leute sind") == "Wo zwei paar Leute sind"  # an unknown previous token


def test_the_first_word_of_a_line_does_not_count():
    casing = Casing.from_lines(["Tragen wir es, tragen wir es.", "Tragen wir den Hut", "Tragen wir ihn"])
    assert casing.restore("wir tragen den hut") == "Wir tragen den Hut"


def test_capitals_cannot_be_learned_from_lowercased_text():
    with pytest.raises(UserError, match="no capitals to learn from"):
        Casing.from_lines(["Ein mann", "fährt rad"])


def test_a_codec_of_subwords_writes_capitals(casing):
    plain = toy_codec("de")
    codec = dataclasses.replace(plain, casing=casing)
    assert plain.detokenize("ein mann fährt .") == "ein mann fährt."
    assert codec.detokenize("ein mann fährt .") == "Ein Mann fährt."
    assert codec.decode(codec.encode("Ein Mann")) == "ein mann"  # the form in which tokenised text is scored
    again = codec_from_json(codec.to_json())
    assert again == codec
    several = dataclasses.replace(codec, casing=Casing(("Paar",), (("", "paar", "capital"),)))
    assert codec_from_json(several.to_json()) == several
    assert again != plain
    assert again.detokenize("zwei männer !") == "Zwei Männer!"


@given(text=st.text())
def test_only_the_case_changes(casing, text):
    restored = casing.restore(text)
    assert restored.casefold() == text.casefold()
    assert casing.restore(restored) == restored or text != text.lower()

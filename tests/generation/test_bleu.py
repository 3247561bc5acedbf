"""BLEU: sacrebleu's score and signature for each setting, the detected setting, the score of a translator."""

import dataclasses

import pytest
from hypothesis import strategies as st
from toy_pretrained import toy_checkpoint, toy_codec

from npformer import UserError
from npformer.data.casing import Casing
from npformer.generation.bleu import bleu, score, setting_of
from npformer.generation.detokenize import detokenize, in_form
from npformer.pretrained import Translator

RAW = ["Ein Mann fährt Rad.", "Zwei Hunde laufen, ein Kind lacht.", "Ist das St. Pauli?"]
TOKENISED = ["ein mann fährt rad .", "zwei hunde laufen , ein kind lacht .", "ist das st. pauli ?"]


def test_the_score_is_that_of_the_definition():
    """Four words of five are right, in order: the precisions are 4/5, 3/4, 2/3, 1/2."""
    found = bleu(["a b c d x"], ["a b c d e"], "tokenised")
    assert found.score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert found.brevity_penalty == 1
    shorter = bleu(["a b c d"], ["a b c d e"], "tokenised")
    assert shorter.brevity_penalty == pytest.approx(2.718281828459045 ** (1 - 5 / 4))
    assert shorter.score == pytest.approx(100 * shorter.brevity_penalty)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((["a", "b"], ["a"], "raw"), "2 translations and 1 reference:"),
        (([], [], "raw"), "no line to score"),
        ((["a"], ["a"], "lower"), "setting is 'lower'"),
    ],
)
def test_invalid_arguments_are_refused(lines, message):
    with pytest.raises(UserError, match=message):
        bleu(*lines)


@pytest.mark.parametrize(
    ("lines", "message"),
    [((["a", "b"], RAW), "there are 2 sentences and 3 references"), (([], []), "no sentence to score")],
)
def test_a_score_needs_as_many_references_as_sentences(lines, message):
    with pytest.raises(UserError, match=message):
        score(table_translator({}), *lines)


@pytest.mark.parametrize(
    ("lines", "setting"),
    [
        (RAW, "raw"),
        (TOKENISED, "tokenised"),
        ([line.lower() for line in RAW], "raw"),
        (["Ein Mann fährt Rad ."], "raw"),  # one capital letter is enough
        (["l&apos; homme &quot; dort &quot; ."], "tokenised"),
        (["c&apos; est l&apos; été"], "tokenised"),
        (["ein mann", ""], "tokenised"),
        (["um 10:30 uhr kommt er ."], "tokenised"),
        (["um 10:30 uhr kommt er."], "raw"),
    ],
)
def test_the_setting_is_detected(lines, setting):
    assert setting_of(lines) == setting


words = st.text("abcdefghijklmnopqrstuvwxyzäöüß", min_size=1, max_size=8)
sentences = st.lists(words, min_size=1, max_size=8).map(lambda w: " ".join(w).capitalize() + ".")


def table_translator(translations):
    """Return a translator with subwords that reads its translations from a table."""
    target = dataclasses.replace(toy_codec("de"), casing=Casing.from_lines(RAW))
    checkpoint = toy_checkpoint(target=target)
    translator = Translator.from_checkpoint(checkpoint)
    translator.calls = []

    def translate(texts, *, form, **settings):
        translator.calls.append(settings)
        for _ in texts:
            settings["progress"](1)
        return [in_form(translator.codec.target, translations.get(text, ""), form) for text in texts]

    translator.translate = translate
    return translator


def test_the_score_of_a_translator():
    progress = []
    translator = table_translator(dict(zip("abc", TOKENISED, strict=True)))
    found = score(translator, list("abc"), TOKENISED, beam=3, length_penalty=1.0, progress=progress.append)
    assert found.bleu == pytest.approx(100)
    assert (found.setting, found.sentences, found.empty) == ("tokenised", 3, 0)
    assert found.translations == TOKENISED
    assert translator.calls[0] | {"beam": 3, "length_penalty": 1.0} == translator.calls[0]
    assert progress == [1, 1, 1]
    assert found.half_width is None  # of fewer than 10 sentences, there is no interval
    missed = score(translator, list("abx"), TOKENISED, progress=progress.append)
    assert missed.empty == 1
    assert missed.brevity_penalty < 1
    assert missed.bleu == pytest.approx(bleu([*TOKENISED[:2], ""], TOKENISED, "tokenised").score)
    assert missed.seconds >= 0


def test_raw_references_get_detokenized_translations():
    translator = table_translator(dict(zip("abc", TOKENISED, strict=True)))
    found = score(translator, list("abc"), RAW, progress=lambda n: None)
    assert found.setting == "raw"
    assert found.translations == [detokenize(translator.codec.target, line) for line in TOKENISED]
    assert "ein Kind lacht." in found.translations[1]
    assert "tok:13a" in found.signature
    as_told = score(translator, list("abc"), RAW, setting="tokenised", progress=lambda n: None)
    assert as_told.translations == TOKENISED

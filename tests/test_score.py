"""BLEU: sacrebleu's figure and signature for each setting, and the setting found by looking."""

import builtins
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_pretrained import PIECES, toy_checkpoint, toy_codec

from npformer import UserError
from npformer.bleu import bleu, setting_of
from npformer.data import LANGUAGES, TextCodec
from npformer.data.casing import Casing
from npformer.data.moses import tokenised
from npformer.decoding import Translator
from npformer.decoding.forms import in_form, labels, written
from npformer.decoding.score import score

RAW = ["Ein Mann fährt Rad.", "Zwei Hunde laufen, ein Kind lacht.", "Ist das St. Pauli?"]
TOKENISED = ["ein mann fährt rad .", "zwei hunde laufen , ein kind lacht .", "ist das st. pauli ?"]


def test_it_is_the_figure_of_the_definition():
    """Four words of five in order, one reference: precisions 4/5, 3/4, 2/3, 1/2."""
    pytest.importorskip("sacrebleu")
    found = bleu(["a b c d x"], ["a b c d e"], "tokenised")
    assert found.score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert found.brevity_penalty == 1
    shorter = bleu(["a b c d"], ["a b c d e"], "tokenised")
    assert shorter.brevity_penalty == pytest.approx(2.718281828459045 ** (1 - 5 / 4))
    assert shorter.score == pytest.approx(100 * shorter.brevity_penalty)


def test_the_settings_differ_as_their_signatures_say(caplog):
    pytest.importorskip("sacrebleu")
    plain, split = bleu(TOKENISED, TOKENISED, "tokenised"), bleu(RAW, RAW, "raw")
    assert plain.score == pytest.approx(100)
    assert split.score == pytest.approx(100)
    assert "tok:none" in plain.signature
    assert "tok:13a" in split.signature
    for signature in (plain.signature, split.signature):
        assert "case:mixed" in signature
        assert "version:" in signature
    # only 13a sets the full stop apart; case counts
    assert bleu(["ein mann fährt rad ."], ["ein mann fährt rad."], "raw").score == pytest.approx(100)
    assert bleu(["ein mann fährt rad ."], ["ein mann fährt rad."], "tokenised").score < 90
    assert bleu(RAW, [line.lower() for line in RAW], "raw").score < 90
    bleu(["a b c d ."] * 200, ["a b c d ."] * 200, "raw")
    assert not caplog.records  # no warning that the lines look tokenised


def test_what_bleu_refuses(monkeypatch):
    with pytest.raises(UserError, match="2 translations and 1 references"):
        bleu(["a", "b"], ["a"], "raw")
    with pytest.raises(UserError, match="no line to score"):
        bleu([], [], "raw")
    with pytest.raises(UserError, match="setting is 'lower'"):
        bleu(["a"], ["a"], "lower")


def without(monkeypatch, missing):
    """Have an import fail as if the package were not installed."""
    real = builtins.__import__

    def refuse(name, *arguments, **keywords):
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_without_sacrebleu(monkeypatch):
    without(monkeypatch, "sacrebleu")
    sentence = r"BLEU needs sacrebleu, which is not installed: pip install 'npformer\[translation\]'"
    with pytest.raises(UserError, match=sentence):
        bleu(["a"], ["a"], "raw")
    translator = fixed({})
    with pytest.raises(UserError, match=sentence):
        score(translator, ["a"], ["a"])
    assert not translator.asked  # refused before the work, not after


@pytest.mark.parametrize(
    ("lines", "setting"),
    [
        (RAW, "raw"),
        (TOKENISED, "tokenised"),
        ([line.lower() for line in RAW], "raw"),
        (["Ein Mann fährt Rad ."], "raw"),  # one capital is enough
        (["l&apos; homme &quot; dort &quot; ."], "tokenised"),
        (["c&apos; est l&apos; été"], "tokenised"),
        (["ein mann", ""], "tokenised"),
        (["um 10:30 uhr kommt er ."], "tokenised"),
        (["um 10:30 uhr kommt er."], "raw"),
    ],
)
def test_the_setting_is_seen(lines, setting):
    assert setting_of(lines) == setting


words = st.text("abcdefghijklmnopqrstuvwxyzäöüß", min_size=1, max_size=8)
sentences = st.lists(words, min_size=1, max_size=8).map(lambda w: " ".join(w).capitalize() + ".")


@given(st.lists(sentences, min_size=1, max_size=5))
def test_the_setting_of_any_sentences(lines):
    assert setting_of([line.lower() for line in lines]) == "raw"
    assert setting_of([line.lower()[:-1] + " ." for line in lines]) == "tokenised"
    if any(line != line.lower() for line in lines):
        assert setting_of(lines) == "raw"


def test_the_forms_of_a_translation():
    subwords = toy_codec("de")
    assert in_form(subwords, TOKENISED[1], "tokenised") == TOKENISED[1]
    assert in_form(subwords, TOKENISED[1], "raw") == written(subwords, TOKENISED[1])
    assert written(subwords, TOKENISED[1]).lower() == RAW[1].lower()
    whole = TextCodec.from_lines(RAW, language=LANGUAGES["de"])
    assert in_form(whole, "ein kind lacht.", "raw") == written(whole, "ein kind lacht.") == "ein kind lacht."
    assert in_form(whole, "Ein Kind lacht.", "tokenised") == tokenised("Ein Kind lacht.", "de")


def test_the_names_of_subwords_in_a_picture():
    codec = toy_codec("en", ["▁&apos;s", *PIECES])
    assert labels(codec, ["▁photo", "graph", "▁&apos;s", "▁", "é", "▁."]) == [
        "photo",
        "·graph",
        "'s",
        "▁",
        "·é",
        ".",
    ]
    whole = TextCodec.from_lines(RAW, language=LANGUAGES["de"])
    assert labels(whole, ["ein", "▁", "kind"]) == ["ein", "▁", "kind"]


def fixed(translations):
    """A translator of subwords that has learned a list by heart."""
    target = dataclasses.replace(toy_codec("de"), casing=Casing.from_lines(RAW))
    checkpoint = toy_checkpoint(target=target)
    translator = Translator(checkpoint.model(), checkpoint.source, checkpoint.target)
    translator.asked = []

    def translate_all(texts, **settings):
        translator.asked.append(settings)
        for _ in texts:
            settings["progress"](1)
        return [translations.get(text, "") for text in texts]

    translator.translate_all = translate_all
    return translator


def test_the_score_of_a_translator():
    pytest.importorskip("sacrebleu")
    told = []
    translator = fixed(dict(zip("abc", TOKENISED, strict=True)))
    found = score(translator, list("abc"), TOKENISED, beam=3, length_penalty=1.0, progress=told.append)
    assert found.bleu == pytest.approx(100)
    assert (found.setting, found.sentences, found.empty) == ("tokenised", 3, 0)
    assert found.translations == TOKENISED
    assert translator.asked[0] | {"beam": 3, "length_penalty": 1.0} == translator.asked[0]
    assert told == [1, 1, 1]
    missed = score(translator, list("abx"), TOKENISED, progress=told.append)
    assert missed.empty == 1
    assert missed.brevity_penalty < 1
    assert missed.bleu == pytest.approx(bleu([*TOKENISED[:2], ""], TOKENISED, "tokenised").score)
    assert missed.seconds >= 0


def test_raw_references_get_translations_as_written():
    pytest.importorskip("sacrebleu")
    translator = fixed(dict(zip("abc", TOKENISED, strict=True)))
    found = score(translator, list("abc"), RAW, progress=lambda n: None)
    assert found.setting == "raw"
    assert found.translations == [written(translator.target_codec, line) for line in TOKENISED]
    assert "ein Kind lacht." in found.translations[1]
    assert "tok:13a" in found.signature
    as_told = score(translator, list("abc"), RAW, setting="tokenised", progress=lambda n: None)
    assert as_told.translations == TOKENISED


def test_what_score_refuses():
    with pytest.raises(UserError, match="there are 2 sentences and 3 references"):
        score(fixed({}), ["a", "b"], RAW)
    with pytest.raises(UserError, match="no sentence to score"):
        score(fixed({}), [], [])


def test_a_real_translator_that_has_learned_nothing():
    pytest.importorskip("sacrebleu")
    checkpoint = toy_checkpoint()
    translator = Translator(checkpoint.model(), checkpoint.source, checkpoint.target)
    sources = ["A man is riding.", "", "a man ."]
    found = score(translator, sources, TOKENISED, beam=2)
    assert found.translations[1] == ""
    assert found.empty >= 1
    assert 0 <= found.bleu < 5

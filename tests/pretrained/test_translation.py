"""The best translations of a sentence with scores and alignments, beginnings, and scores of given texts."""

import math

import numpy as np
import pytest
from refused import refused
from toy_pretrained import SENTENCE, toy_checkpoint

from npformer.data import END
from npformer.generation import beam_search
from npformer.pretrained import Translation, Translator

TEXTS = [SENTENCE, "a", "a man and a dog are in an inn .", "mmm"]


@pytest.fixture(scope="module")
def translator():
    loaded = Translator.from_checkpoint(toy_checkpoint())
    loaded.model.astype("float64")
    return loaded


def test_the_best_translations_are_those_of_beam_search(translator):
    expected = beam_search(translator.model, [translator.source_ids(SENTENCE)], min_length=1, max_length=9)[0]
    found = translator.translate(SENTENCE, n_best=4, max_length=9)
    assert all(isinstance(each, Translation) for each in found)
    assert [each.text for each in found] == [translator.text_of(each.ids) for each in expected]
    assert [each.score for each in found] == [each.score for each in expected]
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    log_probs = [each.log_prob for each in expected]
    np.testing.assert_allclose([each.log_prob for each in found], log_probs, atol=1e-10)
    piece = translator.target_tokenizer.piece
    for each, hypothesis in zip(found, expected, strict=True):
        assert each.tokens == [piece(index) for index in [*hypothesis.ids, END]]
        assert each.log_prob == math.fsum(each.log_probs)
        assert each.source_tokens == translator.source_tokenizer.encode(SENTENCE).pieces


def test_the_alignment_is_that_of_the_attention_of_this_translation(translator):
    (found,) = translator.translate(SENTENCE, n_best=1, max_length=9)
    weights = translator.attention(SENTENCE, max_length=9).weights["cross"].mean((0, 1))  # (T, S)
    assert weights.shape == (len(found.tokens), len(found.source_tokens))
    assert found.alignment == [*weights[:-1, :-1].argmax(-1), len(found.source_tokens) - 1]
    given = translator.score(SENTENCE, "ein man fibt aus 12 , ?")
    assert len(set(given.alignment)) > 3


def test_the_score_of_a_translation_is_that_of_the_search(translator):
    found = translator.translate(TEXTS, n_best=1, max_length=9)
    ids = [translator.target_tokenizer.encode(each.text).ids for (each,) in found]
    given = translator.score(TEXTS, [each.text for (each,) in found])
    for text, (each,), scored, index in zip(TEXTS, found, given, ids, strict=True):
        assert scored.text == each.text
        assert scored.score == scored.log_prob
        if [translator.target_tokenizer.piece(token) for token in index] == each.tokens:
            np.testing.assert_allclose(scored.log_probs, each.log_probs, atol=1e-12)
            assert scored.alignment == each.alignment
        one = translator.score(text, each.text)
        np.testing.assert_allclose(one.log_probs, scored.log_probs, atol=1e-12)
    assert translator.score([], []) == []


def test_empty_and_unknown_words_are_scored(translator):
    empty = translator.score(SENTENCE, "")
    assert (empty.tokens, len(empty.log_probs), empty.alignment) == (
        ["</S>"],
        1,
        [len(empty.source_tokens) - 1],
    )
    unknown = translator.score(SENTENCE, "ein 鰯")
    assert "鰯" in unknown.text
    assert "<UNK>" in unknown.tokens


@pytest.mark.parametrize("beam", [1, 3])
def test_translations_begin_as_they_are_told(translator, beam):
    begin = "ein man"
    for found in translator.translate(TEXTS, begin=begin, beam=beam):
        assert found.lower().startswith(begin)
    each = translator.translate([SENTENCE] * 3, begin=["ein", "", "a"], beam=beam)
    assert each[0].lower().startswith("ein")
    assert each[1] == translator.translate(SENTENCE, beam=beam)
    assert each[2].lower().startswith("a")
    assert translator.translate(SENTENCE, begin="ein", beam=beam) == each[0]
    assert translator.translate("", begin="ein") == ""
    both = {"begin": "ein", "beam": beam, "max_length": 9}
    assert translator.attention(SENTENCE, **both).translation == translator.translate(SENTENCE, **both)
    repeated = translator.translate(SENTENCE, begin="ein man ein man", beam=beam, no_repeat_ngram_size=2)
    assert repeated.lower().startswith("ein man ein man")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda t: t.translate("a", n_best=5),
            "n_best is 5: a beam of 4 finds 4 at most, so give a larger beam",
        ),
        (lambda t: t.translate("a", n_best=2, beam=1), "n_best is 2: a beam of 1 finds 1 at most"),
        (lambda t: t.translate("", n_best=5), "n_best is 5: a beam of 4"),
        (lambda t: t.translate("a", n_best=0), "n_best is 0: it must be a whole number, 1 or more"),
        (lambda t: t.translate("a", n_best="3"), "n_best is '3': it must be a whole number"),
        (lambda t: t.translate("a", n_best=True), "n_best is True: it must be a whole number"),
        (
            lambda t: t.translate("a", n_bets=3),
            "unknown setting of the search 'n_bets': did you mean n_best?",
        ),
        (lambda t: next(t.translate_stream(["a"], bean=3)), "search 'bean': did you mean beam?"),
        (lambda t: t.attention("a", n_best=3), "unknown setting of the search 'n_best': choose one of beam,"),
        (lambda t: t.saliency("a", lenght_penalty=3), "'lenght_penalty': did you mean length_penalty?"),
        (
            lambda t: t.translate("a", begin="ein 鰯"),
            "begin has '鰯', which the model cannot write: begin with",
        ),
        (lambda t: t.translate("a", begin=3), "the text is 3: give a string"),
        (lambda t: t.translate("a", begin=["a", "b"]), "begin has 2 texts for 1 sentence: give one text for"),
        (lambda t: t.translate("a", begin="a " * 128), "begin has 128 tokens, and this translation has 127"),
        (
            lambda t: t.score("a", "a " * 128),
            "the translation of line 1 has 129 tokens, .* limit is 128: split",
        ),
        (lambda t: t.score(["a", "a " * 128], ["a", "a"]), "line 2 has 129 tokens, .* limit is 128: split"),
        (lambda t: t.score(["a", " "], ["a", "a"]), "line 2 is empty: write at least one word"),
        (
            lambda t: t.score("a", ["a"]),
            r"source is 'a' and target is \['a'\]: give a text and its translation",
        ),
        (lambda t: t.score(["a", "b"], ["a"]), r"source is \['a', 'b'\] and target is \['a'\]: give a text"),
        (lambda t: t.text_of([5], form="x"), "form is 'x': choose one of raw, tokenised"),
        (lambda t: t.score("a", None), "the text is None: give a string"),
    ],
)
def test_what_is_refused(translator, call, words):
    with refused(words):
        call(translator)

"""Byte-pair encoding in comparison with sentencepiece, and its time for a long word."""

import os
import time

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from npformer.data import SPECIALS
from npformer.data.corpus import builtin_corpus
from npformer.data.subwords import WORD_BEGIN, Pieces, SubwordCodec, learn_pieces
from npformer.data.vocabulary import Vocabulary


def test_a_long_word_does_not_take_quadratic_time():
    pieces = Pieces(["aa", "aaaa", "aaaaaaaa", WORD_BEGIN, "a"])
    start = time.process_time()
    split = pieces.split("a" * 80_000)
    assert time.process_time() - start < 5  # a pass over the whole word for every join would take minutes
    assert split == (WORD_BEGIN, *["a" * 8] * 10_000)


# --- against sentencepiece ---


@pytest.fixture(scope="module")
def sentences():
    train, valid, test = builtin_corpus()
    return [text for pair in (*train[:2500], *valid, *test) for text in (pair.english, pair.french)]


@pytest.fixture(scope="module", params=["raw", "tokenised"])
def both(request, sentences):
    """Return sentencepiece's model and our codec with the same pieces."""
    plain = SubwordCodec(Vocabulary(SPECIALS), text=request.param)
    # some sentences are held out, so that rare characters and words are unknown
    load, models = sentencepiece.SentencePieceProcessor, []
    with pytest.MonkeyPatch.context() as patch:  # which keeps the model that learn_pieces trains
        patch.setattr(
            sentencepiece, "SentencePieceProcessor", lambda **proto: models.append(load(**proto)) or models[0]
        )
        learn_pieces([plain.normalise(line) for line in sentences[:800]], 400, request.param)
    (model,) = models
    words = [model.id_to_piece(index) for index in range(model.get_piece_size())]
    return model, SubwordCodec(Vocabulary(words), text=request.param)


def assert_same(both, text):
    model, codec = both
    assert codec.encode(text) == model.encode(codec.normalise(text)), text


def test_sentences_are_read_as_sentencepiece_reads_them(both, sentences):
    """Compare a tenth of the sentences, from all parts of the corpus, and every night all of them."""
    assert len(sentences) > 5000
    for sentence in sentences[:: 1 if os.environ.get("NPFORMER_NIGHTLY") else 10]:
        assert_same(both, sentence)
        assert_same(both, sentence[::-1])  # words that are not in the training text


@given(text=st.text() | st.text("abcdehilnorst '.,<S>é漢字\u2581"))
def test_any_text_is_read_as_sentencepiece_reads_it(both, text):
    assert_same(both, text)

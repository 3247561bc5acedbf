"""Filling in: the most probable tokens at gaps, and their table."""

import numpy as np
import pytest
from tiny import tiny_model

from npformer.data import END, SPECIALS, TextCodec
from npformer.data.sentences import MASK, with_mask
from npformer.errors import UserError
from npformer.generation import Gap, fill_in, fill_in_table
from npformer.models.bert import MaskedLanguageModel

CODEC = with_mask(TextCodec.from_lines(["the cat crossed the street because it was tired"]))
N = len(CODEC.vocabulary)  # 4 special tokens, 8 words, and [MASK]


@pytest.fixture
def model():
    return tiny_model(kind=MaskedLanguageModel, source_vocab=N, target_vocab=N)


def test_the_most_probable_tokens_come_first_with_the_models_probabilities(model):
    (gap,) = fill_in(model, CODEC, f"the cat crossed the {MASK} because it was tired", k=3)
    ids = CODEC.encode("the cat crossed the street because it was tired")
    ids[4] = CODEC.vocabulary.id(MASK)
    logits = model.forward([[*ids, END]])[0][0, 4]
    p = np.exp(logits) / np.exp(logits).sum()
    allowed = range(len(SPECIALS), N - 1)
    best = sorted(allowed, key=lambda word: -p[word])[:3]
    assert gap.place == 4
    assert gap.words == tuple(CODEC.vocabulary.words[word] for word in best)
    np.testing.assert_allclose(gap.probabilities, p[best], rtol=1e-12)


def test_several_gaps_and_every_word(model):
    gaps = fill_in(model, CODEC, f"{MASK}, crossed{MASK}{MASK}", k=8)
    assert [gap.place for gap in gaps] == [0, 3, 4]  # the comma, which is unknown here, is a token of its own
    for gap in gaps:
        assert sorted(gap.words) == sorted(CODEC.vocabulary.words[len(SPECIALS) : -1])
        assert list(gap.probabilities) == sorted(gap.probabilities, reverse=True)
        assert 0 < sum(gap.probabilities) < 1


def test_the_table():
    gaps = [Gap(5, ("street", "bank"), (0.5, 0.123)), Gap(7, ("it",), (0.001,))]
    assert fill_in_table(gaps).splitlines() == [
        "word 6",
        "  street   50.0%  ████████████████████",
        "  bank     12.3%  █████",
        "word 8",
        "  it    0.1%",
    ]


@pytest.mark.parametrize(
    ("text", "k", "message"),
    [
        ("the cat", 5, r"'the cat' has no \[MASK\]: write it in place"),
        (f"the {MASK}", 0, "k is 0: the model knows 8 words, so give 1 to 8"),
        (f"the {MASK}", 9, "k is 9"),
        (f"{MASK} " * 12, 5, "13 tokens long and the model's limit is 12"),
    ],
)
def test_invalid_sentences_are_refused(model, text, k, message):
    with pytest.raises(UserError, match=message):
        fill_in(model, CODEC, text, k=k)

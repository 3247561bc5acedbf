"""Filling in: the most probable tokens at gaps, and their table."""

import numpy as np
import pytest

from npformer.data import END, SPECIALS, START, TextCodec
from npformer.data.encoding import Encoding
from npformer.data.sentences import MASK, with_mask
from npformer.errors import UserError
from npformer.generation import Gap, fill_in, fill_in_table
from npformer.generation.codec_tokenizers import SentenceTokenizer
from npformer.generation.fill_in import fill_gaps
from npformer.models.bert import Bert, BertConfig
from npformer.pretrained import GapFiller

CODEC = with_mask(TextCodec.from_lines(["the cat crossed the street because it was tired"]))
N = len(CODEC.vocabulary)  # 4 special tokens, 8 words, and [MASK]


def bert(**changes):
    sizes = {"vocab_size": N, "d_model": 8, "n_layers": 1, "n_heads": 2, "max_length": 10}
    return Bert(BertConfig(**sizes | changes), rng=np.random.default_rng(0), dtype=np.float64)


@pytest.fixture
def model():
    return bert()


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
    gaps = fill_in(model, CODEC, f"{MASK} crossed{MASK}{MASK}", k=8)
    assert [gap.place for gap in gaps] == [0, 2, 3]
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
        (f"the {MASK}", 0, "k is 0: it must be a whole number, 1 or more"),
        (f"the {MASK}", 9, "k is 9, and the model knows 8 words: give 1 to 8"),
        (f"{MASK} " * 12, 5, "the text has 12 tokens, and the model reads at most 9: shorten it"),
    ],
)
def test_invalid_sentences_are_refused(model, text, k, message):
    with pytest.raises(UserError, match=message):
        fill_in(model, CODEC, text, k=k)


def test_logits_that_are_not_finite_are_refused(model):
    model.parameters()[0].value[...] = np.nan
    with pytest.raises(UserError, match="the model's logits are not finite"):
        fill_in(model, CODEC, f"the {MASK}")


# of a Bert


def gap_filler():
    return GapFiller("bert", bert(), lambda: SentenceTokenizer(CODEC))


class WithStart(SentenceTokenizer):
    """Adds a special token before the sentence too, as the tokenizers of other BERTs do."""

    def encode(self, text):
        ids, pieces, offsets = super().encode(text)
        return Encoding([START, *ids], ["<S>", *pieces], [(0, 0), *offsets])


def test_special_tokens_before_the_text_do_not_count_as_places():
    model, text = bert(), f"the cat {MASK} the street"
    (gap,) = fill_gaps(model, WithStart(CODEC), text, k=8)
    ids = [START, *CODEC.encode("the cat"), N - 1, *CODEC.encode("the street"), END]
    row = model.forward([ids])[0][0, 3]
    assert gap.place == 2
    assert gap.words[0] == CODEC.tokens[len(SPECIALS) + row[len(SPECIALS) : -1].argmax()]
    with pytest.raises(UserError, match="the text has 9 tokens, and the model reads at most 8"):
        fill_gaps(model, WithStart(CODEC), f"{MASK} cat " * 4 + MASK)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text '' is empty: write a sentence with"),
        (" \n", "is empty: write a sentence with"),
        ("the cat", r"'the cat' has no \[MASK\]: write it in place of each word to be found"),
        (f"a {MASK} the yak", r"has 2 words that the model has not seen in training \('a', 'yak'\): replace"),
        (f"the {MASK} yak", r"has 1 word that the model has not seen in training \('yak'\): replace"),
        (f"{CODEC.tokens[1]} {MASK}", "has 3 words that the model has not seen in training"),
    ],
)
def test_texts_that_cannot_be_filled(text, message):
    with pytest.raises(UserError, match=message):
        gap_filler().fill(text)

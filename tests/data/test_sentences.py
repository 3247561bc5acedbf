"""Batches for masked language models."""

import numpy as np
import pytest

from npformer.data import END, LANGUAGES, PAD, SPECIALS, UNK, TextCodec
from npformer.data.sentences import MASK, masked_batch, with_mask
from npformer.errors import UserError

MASK_ID = 30
SENTENCES = [[4, 5, 6], [7], [8, UNK, 9, 10, 11]]
ENDS = np.array([[0, 0, 0, END, PAD, PAD], [0, END, PAD, PAD, PAD, PAD], [0, UNK, 0, 0, 0, END]])


def many(n=400, length=20, seed=0):
    return np.random.default_rng(seed).integers(len(SPECIALS), MASK_ID, (n, length)).tolist()


def hide(sentences, seed=0, **settings):
    return masked_batch(sentences, MASK_ID, np.random.default_rng(seed), **settings)


def test_a_seventh_of_the_tokens_is_chosen_and_eight_tenths_of_these_are_masked():
    sentences = many()
    batch = hide(sentences)
    original = np.array(sentences)
    ids, target_out = batch.ids[:, :-1], batch.target_out[:, :-1]
    chosen = target_out != PAD
    assert (batch.ids[:, -1] == END).all()
    assert not batch.target_out[:, -1].any()
    np.testing.assert_array_equal(ids[~chosen], original[~chosen])
    np.testing.assert_array_equal(target_out[chosen], original[chosen])
    assert batch.tokens == chosen.sum()
    # 8000 tokens: three standard deviations of each share
    assert chosen.mean() == pytest.approx(0.15, abs=0.012)
    hidden, stays = ids[chosen] == MASK_ID, ids[chosen] == original[chosen]
    assert hidden.mean() == pytest.approx(0.8, abs=0.035)
    assert stays.mean() == pytest.approx(0.1 + 0.1 / 26, abs=0.027)  # a random token may be the same
    replaced = ids[chosen][~hidden & ~stays]
    assert set(replaced) == set(range(len(SPECIALS), MASK_ID))


def test_special_tokens_are_neither_chosen_nor_drawn():
    for seed in range(100):
        batch = hide(SENTENCES, seed, share=0.9)
        assert batch.tokens >= 1
        special = (ENDS != 0) | (np.arange(6) >= np.array([[4], [2], [6]]))
        np.testing.assert_array_equal(batch.ids[special], ENDS[special])
        assert (batch.ids[~special] >= len(SPECIALS)).all()
        assert not batch.target_out[special].any()


def test_at_least_one_token_is_masked():
    for seed in range(50):
        batch = hide([[5], [6]], seed, share=0.001)
        assert batch.tokens == 1
        assert (batch.ids == MASK_ID).sum() == 1


def test_sentences_without_words_are_refused():
    with pytest.raises(UserError, match="the sentences contain no word that could be hidden"):
        hide([[], [UNK]])


def test_the_mask_is_the_last_id_and_text_cannot_imitate_it():
    codec = TextCodec.from_lines(["the mask of the cat", "[ ]"], language=LANGUAGES["en"])
    masked = with_mask(codec)
    assert masked.vocabulary.id(MASK) == len(codec.vocabulary) == len(masked.vocabulary) - 1
    assert masked.encode("the cat") == codec.encode("the cat")
    ids = masked.encode(f"the {MASK}")
    assert len(ids) == 4
    assert masked.vocabulary.id(MASK) not in ids
    assert masked.language == codec.language

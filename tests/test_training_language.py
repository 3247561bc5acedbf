"""Models of one language learn: well enough to beat the frequencies of words many times over."""

import math

import numpy as np
import pytest
from tiny import tiny_model

from npformer.data.sentences import SentenceBatch, hidden_words, next_words
from npformer.decoding import continue_text, fill_in
from npformer.errors import UserError
from npformer.training import TrainingConfig, evaluate
from npformer.training.language import (
    batch_rng,
    every_sentence,
    fit,
    train_masked_words,
    train_next_words,
    unigram_perplexity,
)
from npformer.training.step import dropout_rngs
from npformer.transformer import MaskedWordModel, NextWordModel

# words 4 to 7, each followed by the next, round and round; 8 is the mask
ROUND = [[4 + (start + i) % 4 for i in range(length)] for start in range(4) for length in (3, 4, 5)]


def go_on(sentences, rng):
    return next_words(sentences)


def hide(sentences, rng):
    return hidden_words(sentences, 8, rng, share=0.3)


def config(**changes):
    settings = {"steps": 60, "batch_size": 6, "schedule": "constant", "learning_rate": 0.02}
    return TrainingConfig(**(settings | changes))


@pytest.mark.parametrize(("kind", "make"), [(NextWordModel, go_on), (MaskedWordModel, hide)])
def test_the_result_is_a_function_of_the_arguments(kind, make):
    """To the bit, dropout and what is hidden included."""
    runs = []
    for seed in (0, 0, 1):
        model = tiny_model(kind=kind, source_vocab=9, dropout=0.2)
        runs.append((fit(model, ROUND, make, config(steps=5, accumulate=2, seed=seed)), model.values))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])


def test_a_rule_is_learned_by_reading_on():
    model = tiny_model(kind=NextWordModel, source_vocab=9)
    losses = fit(model, ROUND, go_on, config())
    assert len(losses) == 60
    logits, _ = model.forward([[2, 5, 6, 7]])
    assert logits[0, 1:, 4:8].argmax(-1).tolist() == [2, 3, 0]


def test_a_gap_is_filled_from_either_side():
    model = tiny_model(kind=MaskedWordModel, source_vocab=9)
    fit(model, ROUND, hide, config(steps=200, batch_size=12, learning_rate=0.005))
    logits, _ = model.forward([[8, 5, 6, 3], [4, 8, 6, 3], [4, 5, 8, 3]])
    assert logits[range(3), range(3)].argmax(-1).tolist() == [4, 5, 6]


def test_a_run_needs_a_number_of_steps():
    model = tiny_model(kind=NextWordModel, source_vocab=9)
    with pytest.raises(UserError, match="steps is None: fit needs a number of steps"):
        fit(model, ROUND, go_on, config(steps=None, epochs=2))


def test_what_is_asked_is_the_same_each_time_and_holds_every_sentence():
    first, again = every_sentence(ROUND, hide, config()), every_sentence(ROUND, hide, config())
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
    assert sum(len(batch.ids) for batch in first) == len(ROUND)


def test_no_two_generators_of_a_run_are_the_same():
    """Order of the sentences, dropout and what is hidden: of every batch of every step."""
    order = [np.random.default_rng([0, epoch]) for epoch in range(3)]
    dropped = [rng for step in range(1, 4) for rng in dropout_rngs(0, step, 3)]
    hidden = [batch_rng(0, step, batch) for step in range(4) for batch in range(3)]
    drawn = [rng.random() for rng in (*order, *dropped, *hidden)]
    assert len(set(drawn)) == len(drawn)


def test_the_unigram_perplexity():
    seen = [SentenceBatch(np.zeros((1, 4)), np.array([[4, 4, 5, 0]]))]
    asked = [SentenceBatch(np.zeros((1, 2)), np.array([[4, 6]]))]
    # 4, 5 and 6 were seen 2, 1 and 0 times, the other four never; each counts once more
    assert unigram_perplexity(seen, asked, 7) == pytest.approx(math.sqrt(10 / 3 * 10 / 1))


def test_evaluation_is_over_the_words_asked_for():
    model = tiny_model(kind=MaskedWordModel, source_vocab=9)
    ids, asked = np.array([[4, 8, 6], [5, 8, 3]]), np.array([[0, 5, 0], [0, 6, 0]])
    log_p = model.forward(ids)[0]
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    found = evaluate(model, [SentenceBatch(ids[:1], asked[:1]), SentenceBatch(ids[1:], asked[1:])])
    assert found.tokens == 2
    assert found.loss == pytest.approx(-(log_p[0, 1, 5] + log_p[1, 1, 6]) / 2, rel=1e-12)


# The built-in English, briefly


@pytest.fixture(scope="module")
def reader():
    return train_masked_words(steps=300)


@pytest.fixture(scope="module")
def writer():
    return train_next_words(steps=120)


def test_the_next_word_is_one_of_eleven(writer):
    assert len(writer.losses) == 120
    assert writer.held_out.tokens > 4000
    assert writer.unigram == pytest.approx(81.4, abs=0.5)
    assert writer.held_out.perplexity < 15
    assert writer.held_out.accuracy > 0.4


def test_a_hidden_word_is_one_of_eighteen(reader):
    assert 400 < reader.held_out.tokens < 800  # 15 % of the words
    assert reader.unigram > 90
    assert reader.held_out.perplexity < 24
    assert reader.held_out.accuracy > 0.3


def test_what_it_writes_is_english_of_the_corpus(writer):
    (text,) = continue_text(writer.model, writer.codec, "the animal didn't")
    assert "because it was" in text
    settings = {"n": 20, "rng": np.random.default_rng(0)}
    drawn = continue_text(writer.model, writer.codec, "the", **settings)
    assert len(set(drawn)) > 15


def test_what_stands_in_the_gap_is_a_place(reader):
    text = "the animal didn't cross the [MASK] because it was too tired"
    (gap,) = fill_in(reader.model, reader.codec, text)
    assert {"street", "bridge", "road", "river", "tunnel", "park", "beach", "square"} & set(gap.words)
    (gap,) = fill_in(
        reader.model, reader.codec, "the animal [MASK] cross the street because it was too tired"
    )
    assert gap.words[0] in {"didn't", "doesn't"}
    assert gap.probabilities[0] > 0.4

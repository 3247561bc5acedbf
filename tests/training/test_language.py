"""Language models learn much more than the frequencies of tokens."""

import math

import numpy as np
import pytest
from tiny import tiny_model

from npformer.data.sentences import SentenceBatch, batch_rng, causal_batch, masked_batch
from npformer.errors import UserError
from npformer.generation import continue_text, fill_in
from npformer.models.bert import MaskedLanguageModel
from npformer.models.transformer.language_model import CausalLanguageModel
from npformer.training import TrainingConfig, evaluate
from npformer.training.language import (
    fit,
    train_causal_language_model,
    train_masked_language_model,
    unigram_perplexity,
)
from npformer.training.step import dropout_rngs

# tokens 4 to 7, each followed by the next in a circle; 8 is [MASK]
ROUND = [[4 + (start + i) % 4 for i in range(length)] for start in range(4) for length in (3, 4, 5)]


def go_on(sentences, rng):
    return causal_batch(sentences)


def hide(sentences, rng):
    return masked_batch(sentences, 8, rng, share=0.3)


def config(**changes):
    settings = {"steps": 60, "batch_size": 6, "schedule": "constant", "learning_rate": 0.02}
    return TrainingConfig(**(settings | changes))


@pytest.mark.parametrize(("kind", "make"), [(CausalLanguageModel, go_on), (MaskedLanguageModel, hide)])
def test_the_result_is_a_function_of_the_arguments(kind, make):
    """The results are equal to the bit, with dropout and masked tokens."""
    runs = []
    for seed in (0, 0, 1):
        model = tiny_model(kind=kind, source_vocab=9, dropout=0.2)
        runs.append((fit(model, ROUND, make, config(steps=5, accumulate=2, seed=seed)), model.values))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])


def test_a_causal_model_learns_the_rule():
    model = tiny_model(kind=CausalLanguageModel, source_vocab=9)
    losses = fit(model, ROUND, go_on, config())
    assert len(losses) == 60
    logits, _ = model.forward([[2, 5, 6, 7]])
    assert logits[0, 1:, 4:8].argmax(-1).tolist() == [2, 3, 0]


def test_a_masked_token_is_predicted_from_either_side():
    model = tiny_model(kind=MaskedLanguageModel, source_vocab=9)
    fit(model, ROUND, hide, config(steps=200, batch_size=12, learning_rate=0.005))
    logits, _ = model.forward([[8, 5, 6, 3], [4, 8, 6, 3], [4, 5, 8, 3]])
    assert logits[range(3), range(3)].argmax(-1).tolist() == [4, 5, 6]


def test_a_run_needs_a_number_of_steps():
    model = tiny_model(kind=CausalLanguageModel, source_vocab=9)
    with pytest.raises(UserError, match="steps is None: fit needs a number of steps"):
        fit(model, ROUND, go_on, config(steps=None, epochs=2))


def test_all_generators_of_a_run_differ():
    """The generators for order, dropout and masked tokens differ in every batch of every step."""
    order = [np.random.default_rng([0, epoch]) for epoch in range(3)]
    dropped = [rng for step in range(1, 4) for rng in dropout_rngs(0, step, 3)]
    hidden = [batch_rng(0, step, batch) for step in range(4) for batch in range(3)]
    drawn = [rng.random() for rng in (*order, *dropped, *hidden)]
    assert len(set(drawn)) == len(drawn)


def test_the_unigram_perplexity():
    training = [SentenceBatch(np.zeros((1, 4)), np.array([[4, 4, 5, 0]]))]
    evaluation = [SentenceBatch(np.zeros((1, 2)), np.array([[4, 6]]))]
    # 4, 5 and 6 occur 2, 1 and 0 times, the other four never; each count is increased by 1
    assert unigram_perplexity(training, evaluation, 7) == pytest.approx(math.sqrt(10 / 3 * 10 / 1))


def test_evaluation_is_over_the_chosen_tokens():
    model = tiny_model(kind=MaskedLanguageModel, source_vocab=9)
    ids, target_out = np.array([[4, 8, 6], [5, 8, 3]]), np.array([[0, 5, 0], [0, 6, 0]])
    log_p = model.forward(ids)[0]
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    found = evaluate(model, [SentenceBatch(ids[:1], target_out[:1]), SentenceBatch(ids[1:], target_out[1:])])
    assert found.tokens == 2
    assert found.loss == pytest.approx(-(log_p[0, 1, 5] + log_p[1, 1, 6]) / 2, rel=1e-12)


# A short training on the built-in English text


@pytest.mark.parametrize("steps", [2, pytest.param(200, marks=pytest.mark.nightly)])
def test_the_next_token_has_a_low_perplexity_and_generated_sentences_are_english(steps):
    writer = train_causal_language_model(steps=steps)
    assert len(writer.losses) == steps
    assert writer.held_out.tokens > 4000
    assert writer.unigram == pytest.approx(97.5, abs=0.5)
    if steps == 2:
        return  # too few to learn anything
    assert writer.held_out.perplexity < 15
    assert writer.held_out.accuracy > 0.4
    (text,) = continue_text(writer.model, writer.codec, "the animal didn't")
    assert "because it was" in text
    settings = {"n": 20, "rng": np.random.default_rng(0)}
    drawn = continue_text(writer.model, writer.codec, "the", **settings)
    assert len(set(drawn)) > 15


@pytest.mark.parametrize("steps", [2, pytest.param(500, marks=pytest.mark.nightly)])
def test_a_masked_token_has_a_low_perplexity_and_is_predicted_from_its_sentence(steps):
    reader = train_masked_language_model(steps=steps)
    assert len(reader.losses) == steps
    assert 400 < reader.held_out.tokens < 800  # 15 % of the tokens
    assert reader.unigram > 90
    if steps == 2:
        return  # too few to learn anything
    assert reader.held_out.perplexity < 24
    assert reader.held_out.accuracy > 0.3
    where = "the animal didn't cross the [MASK] because it was too tired"
    (gap,) = fill_in(reader.model, reader.codec, where)
    assert {"street", "bridge", "road", "river", "tunnel", "park", "beach", "square"} & set(gap.words)
    verb = "the animal [MASK] cross the street because it was too tired"
    (gap,) = fill_in(reader.model, reader.codec, verb)
    assert gap.words[0] in {"didn't", "doesn't", "couldn't"}
    assert gap.probabilities[0] > 0.15  # several verb forms fit: that the animal couldn't, tried to, had to

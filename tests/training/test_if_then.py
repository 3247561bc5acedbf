"""Training on if-then recipes: latent attention learns the order of words, and a bag of words cannot."""

from collections import defaultdict

import numpy as np
import pytest

from npformer.data.if_then import FAMOUS, encode_recipes, recipe_corpus
from npformer.errors import UserError
from npformer.training.if_then import score, train_recipes


@pytest.fixture(scope="module")
def reader():
    """Train a reader for three quarters of the steps of the one in the figure."""
    return train_recipes(steps=300)


@pytest.fixture(scope="module")
def bag():
    return train_recipes("bag")


def test_the_reader_understands_held_out_recipes_and_a_bag_of_words_does_not(reader, bag):
    """Both train in the same way: at least 99 % of the programs are right, against at most a fifth."""
    assert reader.score.both >= 0.99, reader.score
    assert bag.score.both <= 0.2, bag.score
    assert max(bag.score.trigger, bag.score.action) <= 0.6  # the bag can hardly guess the channel


@pytest.mark.nightly
def test_a_bag_of_words_cannot_memorize_the_training_recipes(bag):
    """More steps do not help the bag of words, because the training recipes need the word order as well."""
    limit = train_recipes("bag", steps=1500)
    examples = encode_recipes(recipe_corpus().train, limit.codec)
    assert bag.score.both <= limit.score.both + 0.05 <= 0.35
    assert score(limit.model, examples).both < 0.8


def test_the_two_recipes_of_the_paper(reader):
    """They have nearly the same words, but the trigger is Instagram in one, Dropbox in the other.

    The active weights find the channel in question.
    """
    for recipe in FAMOUS:
        trigger, action, cache = reader.read(recipe.description)
        assert (trigger, action) == (recipe.trigger, recipe.action)
        words = reader.codec.words(recipe.description)
        (first, second), channels = recipe.channels, (cache.trigger, cache.action)
        for asked, channel, other in zip(channels, (first, second), (second, first), strict=True):
            weights = asked.attention.weights[0]
            assert words[int(weights.argmax())] == channel
            assert weights[words.index(channel)] > 10 * weights[words.index(other)]


def test_training_is_a_function_of_its_arguments():
    losses = defaultdict(list)
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        reader = train_recipes(
            steps=3, seed=seed, d_hidden=4, report=lambda *at, name=name: losses[name].append(at)
        )
    assert losses["one"] == losses["again"] != losses["other"]
    assert [step for step, _ in losses["one"]] == [1, 2, 3]
    again = train_recipes(steps=3, seed=1, d_hidden=4)
    np.testing.assert_array_equal(again.model.values, reader.model.values)
    assert again.score == reader.score


@pytest.mark.parametrize("settings", [{"orientation": "columns"}, {"measure": "euclidean"}, {"cell": "gru"}])
def test_every_option_lowers_the_loss(settings):
    losses = []
    train_recipes(steps=30, report=lambda step, loss: losses.append(loss), **settings)
    assert np.mean(losses[-5:]) < losses[0] - 1


def test_unknown_words(reader):
    assert reader.unknown_words("Save my Myspace photos to Dropbox") == ["myspace"]
    assert reader.unknown_words(FAMOUS[0].description) == []


def test_invalid_inputs_are_refused(reader):
    with pytest.raises(UserError, match="is empty: write at least one word"):
        reader.read("")
    with pytest.raises(UserError, match="40 tokens long and the model's limit is 25"):
        reader.read("photos " * 40)
    with pytest.raises(UserError, match="kind is 'magic': choose one of latent, bag"):
        train_recipes("magic")
    with pytest.raises(UserError, match="steps is 0"):
        train_recipes(steps=0)

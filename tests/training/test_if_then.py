"""Training on if-then recipes: latent attention learns the order of words, and a bag of words cannot."""

import pytest

from npformer.data.if_then import FAMOUS
from npformer.errors import UserError
from npformer.training.if_then import train_recipes


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


def test_invalid_inputs_are_refused(reader):
    with pytest.raises(UserError, match="is empty: write at least one word"):
        reader.read("")
    with pytest.raises(UserError, match="40 tokens long and the model's limit is 25"):
        reader.read("photos " * 40)
    with pytest.raises(UserError, match="kind is 'magic': choose one of latent, bag"):
        train_recipes("magic")
    with pytest.raises(UserError, match="steps is 0"):
        train_recipes(steps=0)

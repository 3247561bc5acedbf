"""The generated if-then recipes: the same for a seed, balanced, and decided by word order only."""

import hashlib
from collections import defaultdict

import numpy as np
import pytest

from npformer.data import PAD
from npformer.data.if_then import (
    ACTIONS,
    FAMOUS,
    TRIGGERS,
    IfThenRecipe,
    encode_recipes,
    recipe_codec,
    recipe_corpus,
)


@pytest.fixture(scope="module")
def corpus():
    return recipe_corpus()


def everything(corpus):
    return [*corpus.train, *corpus.test]


def bag(recipe):
    return tuple(sorted(recipe.description.lower().split()))


def test_it_is_the_same_for_a_seed(corpus):
    """The recipes are equal on every Python, because only random() is used."""
    text = "\n".join(f"{r.description}|{r.trigger}|{r.action}" for r in everything(corpus))
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == "50228530233c"
    assert recipe_corpus(train=50, test=5) == recipe_corpus(train=50, test=5)
    assert recipe_corpus(seed=1, train=50, test=5) != recipe_corpus(train=50, test=5)


def test_the_two_recipes_of_the_paper_are_held_out(corpus):
    assert corpus.test[:2] == FAMOUS
    assert FAMOUS[0].channels == ("instagram", "dropbox")
    assert FAMOUS[1].channels == ("dropbox", "instagram")


def test_no_pair_of_channels_is_in_both_parts(corpus):
    """No training recipe has both channels of a held-out pair, in either direction."""
    in_training = {frozenset(recipe.channels) for recipe in corpus.train}
    held_out = {frozenset(recipe.channels) for recipe in corpus.test}
    assert not in_training & held_out
    assert len(held_out) > 15
    words = [set(recipe.description.lower().split()) for recipe in corpus.train]
    for pair in held_out:
        assert not any(pair <= each for each in words)


def test_the_same_words_in_another_order_need_another_program(corpus):
    """Exchanging source and destination keeps the words, so no count of words can distinguish them."""
    meanings = defaultdict(set)
    for recipe in everything(recipe_corpus(train=20000, test=2000)):
        meanings[bag(recipe)].add((recipe.trigger, recipe.action))
    assert sum(len(each) > 1 for each in meanings.values()) > 300
    assert max(len(each) for each in meanings.values()) == 2


def test_recipes_as_numbers():
    recipes = [*FAMOUS, IfThenRecipe("Dropbox files to Gmail", "Dropbox.new_file", "Gmail.add_file")]
    codec = recipe_codec(recipes)
    examples = encode_recipes(recipes, codec)
    assert examples.ids.shape == (3, 8)
    assert (examples.ids[2, 4:] == PAD).all()
    assert codec.decode(examples.ids[2, :4]) == "dropbox files to gmail"
    assert TRIGGERS[examples.triggers[1]] == "Dropbox.new_photo"
    assert ACTIONS[examples.actions[1]] == "Instagram.add_photo"
    assert examples.of(np.array([2, 2])).ids.shape == (2, 4)

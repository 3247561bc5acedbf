"""Hard attention learns to read a named place, and needs its baseline for that."""

import numpy as np

from npformer.learn.experiments.hard_attention import learn
from npformer.models.place_reader import METHODS, make_places


def test_hard_attention_learns_and_needs_its_baseline():
    """Five seeds each: all methods but the one without a baseline learn to read every place."""
    accuracies = {method: [learn(method, seed=seed).accuracy for seed in range(5)] for method in METHODS}
    for method in ("soft", "hard", "straight through"):
        assert min(accuracies[method]) > 0.97, method
    assert np.mean(accuracies["hard, no baseline"]) < 0.8
    assert np.std(accuracies["hard, no baseline"]) > np.std(accuracies["hard"])


def test_it_attends_to_the_place_of_the_name():
    reader = learn("hard").reader
    places = make_places(100, np.random.default_rng(9))
    _, cache = reader.forward(places.query, places.memory)
    named = (places.memory[..., :6] == places.query).all(-1)  # (B, S)
    assert (cache.attention.sample[:, 0] == named).mean() > 0.97


def test_training_with_several_draws_and_an_entropy_weight():
    learned = learn("hard", steps=20, draws=3, entropy_weight=0.1)
    assert learned.curve.shape == (20,)
    assert np.isfinite(learned.curve).all()


def test_learning_is_reproducible():
    one, other = learn("hard", steps=20), learn("hard", steps=20)
    np.testing.assert_array_equal(one.curve, other.curve)

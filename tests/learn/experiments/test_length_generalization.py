"""Sentences longer than those in training: relative positions reverse them better."""

import pytest

from npformer.data.dataset import copy_task, reverse_task
from npformer.learn.experiments import length_generalization as experiment
from npformer.learn.experiments.length_generalization import accuracy_by_length, learn_short


@pytest.mark.nightly
def test_relative_positions_reverse_longer_sentences():
    """Both models reverse short sentences, and only relative positions reverse longer ones."""
    measured = experiment.compare(("interleaved", "relative"))
    sines, relative = measured["interleaved"], measured["relative"]
    assert min(sines[5], relative[5]) > 0.8
    assert relative[12] > 2 * sines[12]
    assert relative[15] > 2 * sines[15]
    assert relative[15] > 0.45


@pytest.mark.parametrize("task", [reverse_task, copy_task])
def test_the_same_seed_gives_the_same_model(task):
    models = [learn_short("relative", task, steps=3, seed=seed, max_distance=2) for seed in (5, 5, 6)]
    same, other = (accuracy_by_length(model, task, lengths=(3,), seed=1) for model in models[1:])
    assert accuracy_by_length(models[0], task, lengths=(3,), seed=1) == same
    assert (models[0].values == models[1].values).all()
    assert (models[0].values != models[2].values).any()
    assert models[0].config.max_distance == 2
    assert 0 <= other[3] <= 1


def test_an_untrained_model_guesses():
    (measured,) = experiment.compare(["none"], steps=1).values()
    assert list(measured) == [5, experiment.LONGEST, 12, 15, 20]
    assert measured[15] < 5 / experiment.VOCAB

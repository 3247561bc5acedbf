"""Hard attention learns to read a named place, and needs its baseline for that."""

import numpy as np

from npformer.learn.experiments.hard_attention import learn
from npformer.models.place_reader import METHODS


def test_hard_attention_learns_and_needs_its_baseline():
    """Five seeds each: all methods but the one without a baseline learn to read every place."""
    accuracies = {method: [learn(method, seed=seed).accuracy for seed in range(5)] for method in METHODS}
    for method in ("soft", "hard", "straight through"):
        assert min(accuracies[method]) > 0.97, method
    assert np.mean(accuracies["hard, no baseline"]) < 0.8
    assert np.std(accuracies["hard, no baseline"]) > np.std(accuracies["hard"])

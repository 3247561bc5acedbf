"""Sentences longer than those in training: relative positions reverse them better."""

import pytest

from npformer.learn.experiments import length_generalization as experiment


@pytest.mark.nightly
def test_relative_positions_reverse_longer_sentences():
    """Both models reverse short sentences, and only relative positions reverse longer ones."""
    measured = experiment.compare(("interleaved", "relative"))
    sines, relative = measured["interleaved"], measured["relative"]
    assert min(sines[5], relative[5]) > 0.8
    assert relative[12] > 2 * sines[12]
    assert relative[15] > 2 * sines[15]
    assert relative[15] > 0.45

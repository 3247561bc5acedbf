"""What a gradient check at one place cannot see: kinks, empty batches, and which arrays are tied."""

import numpy as np
import pytest
from tiny import tiny_model

from npformer import functional as F
from npformer.transformer import MaskedWordModel, NextWordModel


def test_a_batch_of_nothing_but_padding_has_loss_0_and_no_gradient():
    loss, cache = F.cross_entropy(np.ones((2, 3, 5)), np.zeros((2, 3), int), pad_id=0, smoothing=0.1)
    assert loss == 0
    assert not F.cross_entropy_backward(1.0, cache).any()


def test_the_distance_of_two_equal_points_has_no_gradient():
    """A kink: any gradient of length up to 1 would do, and NaN would not."""
    q = np.array([[0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    loss, cache = F.l2_distance(np.zeros((2, 4)), q)
    dlogits = F.l2_distance_backward(1.0, cache)
    assert loss == pytest.approx(0.25)
    assert dlogits[0].any()
    assert not dlogits[1].any()


@pytest.mark.parametrize("tied", ["none", "output", "all"])
def test_what_is_tied(tied):
    """Which of the three tables are one Parameter, and so add up their gradients in one array."""
    model = tiny_model(tied=tied, target_vocab=11)
    source, target = model.source.words.weight, model.target.words.weight
    assert (source is target) == (tied == "all")
    assert (model.output.weight is target) == (tied != "none")
    assert (model.output.weight is source) == (tied == "all")


@pytest.mark.parametrize("kind", [MaskedWordModel, NextWordModel])
@pytest.mark.parametrize("tied", ["none", "output", "all"])
def test_what_is_tied_in_a_model_of_one_language(tied, kind):
    model = tiny_model(kind=kind, tied=tied, target_vocab=11)
    assert (model.output.weight is model.words.words.weight) == (tied != "none")

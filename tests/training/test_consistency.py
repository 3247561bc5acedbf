"""R-Drop: the gradient of the consistency term, and training with it."""

import numpy as np
import pytest
from tiny import tiny_model
from training_runs import assert_same, losses, stop_after
from training_worker import tiny_run

from npformer.data.loader import make_batch
from npformer.functional import cross_entropy, cross_entropy_backward, kl_divergence, kl_divergence_backward
from npformer.functional.softmax import softmax
from npformer.training import loss_and_gradients, resume
from npformer.training.consistency import add_consistency, twice
from npformer.training.step import dropout_rngs
from npformer.training.workers import Workers

ALPHA, SMOOTHING = 3.0, 0.1
BATCH = make_batch([([4, 5, 6, 7, 10], [4, 7, 5, 8]), ([8, 9], [6, 4, 5]), ([5], [8])])


def logits_and_targets(difference=1.0):
    """Return the logits (2N, V) of two passes, and their targets (2N,)."""
    rng = np.random.default_rng(1)
    first = rng.standard_normal((5, 7))
    second = first + difference * rng.standard_normal((5, 7))
    targets = rng.integers(0, 7, 5)
    return np.concatenate([first, second]), np.concatenate([targets, targets])


def gradient(logits, targets):
    """Return the gradient with the term of consistency, as a step computes it."""
    _, cache = cross_entropy(logits, targets, smoothing=SMOOTHING)
    dlogits = cross_entropy_backward(1, cache)
    add_consistency(dlogits, ALPHA)
    return dlogits


def divergence(p, q):
    """Return Σ p log(p / q) over all entries."""
    return (p * np.log(p / q)).sum()


def slopes(loss, logits, h=1e-6):
    """Return the gradient of a loss by central differences."""
    steps = (h * np.eye(logits.size)).reshape(-1, *logits.shape)
    found = [(loss(logits + step) - loss(logits - step)) / (2 * h) for step in steps]
    return np.reshape(found, logits.shape)


def test_the_gradient_is_that_of_the_loss_in_the_docstring():
    """The fixed targets are the probabilities before the change of the logits."""
    logits, targets = logits_and_targets()
    fixed = softmax(logits)[0]

    def loss(moved):
        value, _ = cross_entropy(moved, targets, smoothing=SMOOTHING)
        p, n = softmax(moved)[0], len(moved) // 2
        return value + ALPHA * (divergence(fixed[n:], p[:n]) + divergence(fixed[:n], p[n:])) / (2 * n)

    np.testing.assert_allclose(gradient(logits, targets), slopes(loss, logits), rtol=0, atol=1e-9)


def expected_gradients(model, rng):
    """Return the gradients of a step by the plain pairs, with a term for each direction of the divergence."""
    batch = twice(BATCH)
    config = model.config
    logits, cache = model.forward(*batch.inputs, train=True, rng=rng, packed=True)
    targets = batch.target_out[batch.target_out != config.pad_id]
    _, loss_cache = cross_entropy(logits, targets, smoothing=config.label_smoothing)
    dlogits = cross_entropy_backward(1, loss_cache)
    n = len(logits) // 2
    for own, other in ((slice(n), slice(n, None)), (slice(n, None), slice(n))):
        _, divergence_cache = kl_divergence(logits[own], softmax(logits[other])[0])
        dlogits[own] += kl_divergence_backward(ALPHA / 2, divergence_cache)  # a mean over n of the 2n rows
    model.zero_grad()
    model.backward(dlogits, cache)
    return model.grads.copy()


def test_the_gradients_of_a_step():
    model = tiny_model(dropout=0.3, label_smoothing=SMOOTHING)
    expected = expected_gradients(model, dropout_rngs(0, 1, 1)[0])
    plain_loss, _ = loss_and_gradients(model, [BATCH], dropout_rngs(0, 1, 1))
    plain = model.grads.copy()
    loss, tokens = loss_and_gradients(model, [BATCH], dropout_rngs(0, 1, 1), r_drop=ALPHA)
    np.testing.assert_allclose(model.grads, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    assert np.abs(model.grads - plain).max() > 0.1 * np.abs(plain).max()
    assert tokens == 11
    assert loss == pytest.approx(plain_loss, rel=0.5)  # the mean over both passes, and not their sum


def test_without_dropout_both_passes_are_equal_and_nothing_changes():
    model = tiny_model(label_smoothing=SMOOTHING)
    loss, _ = loss_and_gradients(model, [BATCH])
    plain = model.grads.copy()
    assert loss_and_gradients(model, [BATCH], r_drop=ALPHA)[0] == pytest.approx(loss, rel=1e-14)
    np.testing.assert_allclose(model.grads, plain, rtol=0, atol=1e-14 * np.abs(plain).max())


def test_workers_share_the_pairs_of_passes():
    model = tiny_model(label_smoothing=SMOOTHING)  # without dropout, whose numbers depend on the split
    loss_and_gradients(model, [BATCH], r_drop=ALPHA)
    expected = model.grads.copy()
    loss_and_gradients(model, [BATCH], None, Workers(model, 2), ALPHA)
    np.testing.assert_allclose(model.grads, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


def test_a_run_with_it_differs_and_resumes_to_the_bit(tmp_path):
    settings = {"model": {"dropout": 0.2}, "r_drop": ALPHA}
    tiny_run(tmp_path / "whole", **settings)
    tiny_run(tmp_path / "plain", model={"dropout": 0.2})
    assert losses(tmp_path / "whole") != losses(tmp_path / "plain")
    tiny_run(tmp_path / "cut", **settings, stop=stop_after(7))
    resume(tmp_path / "cut")
    assert_same(tmp_path / "cut", tmp_path / "whole")

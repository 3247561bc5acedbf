"""Latent attention: both orientations and measures, padding, and special cases."""

from itertools import product

import numpy as np
import pytest

import npformer.functional as F
from npformer.errors import UserError
from npformer.functional.latent import MEASURES, ORIENTATIONS

rng = np.random.default_rng(0)
LATENT, ACTIVE, V = (rng.standard_normal(shape) for shape in ((2, 5), (2, 5, 5), (2, 5, 4)))
WORDS = np.array([[True] * 5, [True] * 3 + [False] * 2])
OPTIONS = [{"orientation": o, "measure": m} for o, m in product(ORIENTATIONS, MEASURES)]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


@every_option
def test_each_sentence_by_the_equations(options):
    """The padding of the second sentence has no weight and no gradient."""
    y, cache = F.latent_attend(LATENT, ACTIVE, V, WORDS, **options)
    for b, n in enumerate(WORDS.sum(-1)):
        latent, active = softmax(LATENT[b, :n]), softmax(ACTIVE[b, :n, :n])
        w = (active if options["orientation"] == "rows" else active.T) @ latent
        w = w / (w.sum() if options["measure"] == "sum" else np.linalg.norm(w))
        np.testing.assert_allclose(cache.weights[b, :n], w, rtol=1e-13)
        np.testing.assert_allclose(y[b], w @ V[b, :n], rtol=1e-12)
    dlatent, dactive, dv = F.latent_attend_backward(np.ones_like(y), cache)
    for padding in (cache.latent[1], cache.active[1], cache.active[1].T, cache.weights[1]):
        assert not padding[3:].any()
    for padding in (dlatent[1], dactive[1], dactive[1].T, dv[1]):
        assert not padding[3:].any()
    np.testing.assert_allclose(cache.active[WORDS].sum(-1), 1, rtol=1e-14)


@every_option
def test_more_leading_axes_are_more_sentences(options):
    """Each sentence of a (2, 2, 5) batch has the weights and the gradients that it has alone."""
    inputs = [np.stack([x, x[::-1]]) for x in (LATENT, ACTIVE, V, WORDS)]
    y, cache = F.latent_attend(*inputs, **options)
    grads = F.latent_attend_backward(np.cos(y), cache)
    for where in np.ndindex(2, 2):
        alone, alone_cache = F.latent_attend(*(x[where] for x in inputs), **options)
        np.testing.assert_allclose(y[where], alone, rtol=1e-13)
        expected = F.latent_attend_backward(np.cos(alone), alone_cache)
        for grad, of_one in zip(grads, expected, strict=True):
            np.testing.assert_allclose(grad[where], of_one, rtol=1e-10, atol=1e-15)


@every_option
def test_a_sentence_of_padding_gives_zeros_and_finite_gradients(options):
    nothing = np.array([[True] * 5, [False] * 5])
    y, cache = F.latent_attend(LATENT, ACTIVE, V, nothing, **options)
    assert (y[1] == 0).all()
    for gradient in F.latent_attend_backward(np.ones_like(y), cache):
        assert np.isfinite(gradient).all()
        assert (gradient[1] == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F.latent_attend(LATENT, ACTIVE, V, orientation="up"), "orientation is 'up': choose one of"),
        (lambda: F.latent_attend(LATENT, ACTIVE, V, measure="max"), "measure is 'max': choose one of sum"),
        (lambda: F.latent_attend(LATENT, ACTIVE, V, WORDS.astype(int)), "mask has dtype int64: make it bool"),
    ],
)
def test_invalid_inputs_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()

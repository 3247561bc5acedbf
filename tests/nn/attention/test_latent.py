"""Latent attention as a layer: the pair after two linear maps, padding, separate values, and positions."""

from itertools import product

import numpy as np
import pytest

import npformer.functional as F
from npformer.errors import UserError
from npformer.functional.latent import MEASURES, ORIENTATIONS
from npformer.nn.attention import LatentAttention

B, S, D, L = 2, 5, 3, 4
WORDS = np.array([[True] * 5, [True] * 3 + [False] * 2])
OPTIONS = [{"orientation": o, "measure": m} for o, m in product(ORIENTATIONS, MEASURES)]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))


def make_layer(**options):
    return LatentAttention(D, 7, rng=np.random.default_rng(1), dtype=np.float64, **options)


def words(seed=0, width=D):
    return np.random.default_rng(seed).standard_normal((B, S, width))


@every_option
def test_the_layer_is_the_pair_after_two_linear_maps(options):
    layer, e = make_layer(**options), words()
    o, cache = layer.forward(e, mask=WORDS)
    u, v = layer.latent_weight.value[:, 0], layer.active_weight.value[:, :S]
    expected, _ = F.latent_attend(e @ u, e @ v, e, WORDS, **options)
    np.testing.assert_allclose(o, expected, rtol=1e-12)
    assert o.shape == (B, D)
    np.testing.assert_array_equal(cache.weights, cache.attend.weights)
    assert (cache.latent.shape, cache.active.shape) == ((B, S), (B, S, S))


def test_padding_changes_nothing():
    """Outputs and gradients are those without padding, whatever its length and contents."""
    layer, e = make_layer(), words()
    alone, short = layer.forward(e[1:, :3])
    dalone = layer.backward(np.ones((1, D)), short)
    grads = {name: p.grad.copy() for name, p in layer.named_parameters()}
    rng = np.random.default_rng(3)
    for length in range(3, 8):
        padded = 100 * rng.standard_normal((1, length, D))
        padded[:, :3] = e[1:, :3]
        o, cache = layer.forward(padded, mask=np.arange(length)[None] < 3)
        np.testing.assert_allclose(o, alone, rtol=1e-12)
        np.testing.assert_allclose(cache.weights[:, :3], short.weights, rtol=1e-12)
        layer.zero_grad()
        de = layer.backward(np.ones((1, D)), cache)
        np.testing.assert_allclose(de[:, :3], dalone, rtol=1e-10, atol=1e-14)
        assert (de[:, 3:] == 0).all()
        for name, parameter in layer.named_parameters():
            np.testing.assert_allclose(parameter.grad, grads[name], rtol=1e-10, atol=1e-13)


def test_values_may_be_separate_from_the_inputs():
    layer, e, values = make_layer(), words(), words(4, L)
    o, cache = layer.forward(e, values, mask=WORDS)
    np.testing.assert_allclose(o, np.einsum("bj,bjk->bk", cache.weights, values), rtol=1e-13)
    de, dvalues = layer.backward(np.ones_like(o), cache)
    assert (de.shape, dvalues.shape) == (e.shape, values.shape)
    same, same_cache = layer.forward(e, e, mask=WORDS)
    np.testing.assert_array_equal(same, layer.forward(e, mask=WORDS)[0])
    apart = layer.backward(np.ones_like(same), same_cache)
    together = layer.backward(np.ones_like(same), layer.forward(e, mask=WORDS)[1])
    np.testing.assert_allclose(apart[0] + apart[1], together, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_layer(orientation="up"), "orientation is 'up': choose one of rows, columns"),
        (lambda: make_layer(measure="max"), "measure is 'max': choose one of sum, euclidean"),
        (lambda: make_layer().forward(np.ones((1, 8, D))), "a sentence has 8 tokens .* has 7 positions"),
    ],
)
def test_invalid_inputs_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()

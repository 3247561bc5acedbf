"""Latent attention: values by loops, both orientations and measures, padding, special cases, mistakes."""

import math
from itertools import product

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking import gradcheck
from npformer.errors import UserError
from npformer.functional.latent import MEASURES, ORIENTATIONS
from npformer.nn.attention import LatentAttention

B, S, D, L = 2, 5, 3, 4
WORDS = np.array([[True] * 5, [True] * 3 + [False] * 2])
OPTIONS = [{"orientation": o, "measure": m} for o, m in product(ORIENTATIONS, MEASURES)]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options.values()))


def scores(seed=0, dtype=np.float64):
    """Return the scores of both stages, and the values."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in ((B, S), (B, S, S), (B, S, L))]


def make_layer(dtype=np.float64, **options):
    return LatentAttention(D, 7, rng=np.random.default_rng(1), dtype=dtype, **options)


def words(seed=0, width=D):
    return np.random.default_rng(seed).standard_normal((B, S, width))


def softmax(numbers):
    total = sum(math.exp(x) for x in numbers)
    return [math.exp(x) / total for x in numbers]


def one_sentence(latent_scores, active_scores, v, orientation, measure):
    """Compute the equations for one sentence without padding, number by number."""
    n = len(latent_scores)
    latent = softmax(latent_scores)
    rows = [softmax(row) for row in active_scores]
    if orientation == "rows":
        w = [sum(rows[i][j] * latent[j] for j in range(n)) for i in range(n)]
    else:
        w = [sum(latent[i] * rows[i][j] for i in range(n)) for j in range(n)]
    length = sum(w) if measure == "sum" else math.sqrt(sum(x * x for x in w))
    w = [x / length for x in w]
    return w, [sum(w[j] * v[j][k] for j in range(n)) for k in range(len(v[0]))]


# The pair.


@every_option
def test_every_value_computed_with_loops(options):
    latent, active, v = scores()
    y, cache = F.latent_attend(latent, active, v, WORDS, **options)
    for b, n in enumerate(WORDS.sum(-1)):
        w, o = one_sentence(latent[b, :n], active[b, :n, :n], v[b, :n], **options)
        np.testing.assert_allclose(cache.weights[b, :n], w, rtol=1e-13)
        np.testing.assert_allclose(y[b], o, rtol=1e-12)


@every_option
def test_padding_always_has_weight_0(options):
    _, cache = F.latent_attend(*scores(), WORDS, **options)
    assert (cache.latent[1, 3:] == 0).all()
    assert (cache.active[1, 3:] == 0).all()
    assert (cache.active[1, :, 3:] == 0).all()
    assert (cache.weights[1, 3:] == 0).all()
    np.testing.assert_allclose(cache.latent.sum(-1), 1, rtol=1e-14)
    np.testing.assert_allclose(cache.active[WORDS].sum(-1), 1, rtol=1e-14)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_both_measures_give_unit_vectors(orientation):
    for measure, power in (("sum", 1), ("euclidean", 2)):
        _, cache = F.latent_attend(*scores(), WORDS, orientation=orientation, measure=measure)
        np.testing.assert_allclose((cache.weights**power).sum(-1), 1, rtol=1e-14)


def test_the_papers_product_sums_to_1_without_normalization():
    """w = A l, with a softmax in each column of A: dividing by the sum changes nothing."""
    latent, active, v = scores()
    _, cache = F.latent_attend(latent, active, v, WORDS, orientation="columns")
    a = cache.active.swapaxes(-1, -2)
    np.testing.assert_allclose(a.sum(-2)[WORDS], 1, rtol=1e-14)
    np.testing.assert_allclose(cache.weights, np.einsum("bij,bj->bi", a, cache.latent), rtol=1e-13)


def test_the_orientations_agree_if_the_active_weights_are_symmetric():
    latent, _, v = scores()
    symmetric = np.log(np.array([[0.6, 0.4, 0], [0.4, 0.35, 0.25], [0, 0.25, 0.75]]) + 1e-300)
    by = [F.latent_attend(latent[:, :3], symmetric, v[:, :3], orientation=o)[0] for o in ORIENTATIONS]
    np.testing.assert_allclose(*by, rtol=1e-13)


def test_both_stages_with_all_weight_on_one_token():
    """With "columns" the result is the token at 3; with "rows" it is the mean of all tokens that weigh 1."""
    latent, active, v = np.zeros((1, 4)), np.zeros((1, 4, 4)), np.eye(4)[None]
    latent[0, 1] = 1000  # the latent weight is all on token 1
    active[0, 1, 3] = 1000  # whose active weight is all on token 3
    columns, _ = F.latent_attend(latent, active, v, orientation="columns")
    np.testing.assert_array_equal(columns, [[0, 0, 0, 1]])
    rows, _ = F.latent_attend(latent, active, v, orientation="rows")
    np.testing.assert_allclose(rows, [[1 / 3, 0, 1 / 3, 1 / 3]])  # the others give token 1 a quarter each


def test_uniform_active_weights_give_the_mean():
    _, _, v = scores()
    for options in OPTIONS:
        y, cache = F.latent_attend(scores()[0], np.zeros((B, S, S)), v, WORDS, **options)
        real = cache.weights[1, :3]
        np.testing.assert_allclose(real, real[0], rtol=1e-14)
        if options["measure"] == "sum":
            np.testing.assert_allclose(y[1], v[1, :3].mean(0), rtol=1e-13)


@every_option
def test_a_sentence_of_padding_gives_zeros_and_finite_gradients(options):
    nothing = np.array([[True] * 5, [False] * 5])
    y, cache = F.latent_attend(*scores(), nothing, **options)
    assert (y[1] == 0).all()
    for gradient in F.latent_attend_backward(np.ones_like(y), cache):
        assert np.isfinite(gradient).all()
        assert (gradient[1] == 0).all()


@every_option
def test_padding_gets_no_gradient(options):
    y, cache = F.latent_attend(*scores(), WORDS, **options)
    dlatent, dactive, dv = F.latent_attend_backward(np.ones_like(y), cache)
    assert (dlatent[1, 3:] == 0).all()
    assert (dactive[1, 3:] == 0).all()
    assert (dactive[1, :, 3:] == 0).all()
    assert (dv[1, 3:] == 0).all()


@every_option
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_the_dtype_is_kept(options, dtype):
    y, cache = F.latent_attend(*scores(dtype=dtype), WORDS, **options)
    assert y.dtype == dtype
    assert {g.dtype for g in F.latent_attend_backward(y, cache)} == {np.dtype(dtype)}


@every_option
def test_inputs_are_not_modified(options):
    arrays = scores()
    y, cache = F.latent_attend(*arrays, WORDS, **options)
    dy, kept = np.ones_like(y), [np.array(a) for a in (cache.latent, cache.active, cache.weights)]
    F.latent_attend_backward(dy, cache)
    assert (dy == 1).all()
    for now, then in zip(
        [*arrays, cache.latent, cache.active, cache.weights], [*scores(), *kept], strict=True
    ):
        np.testing.assert_array_equal(now, then)


@every_option
def test_gradients_are_exact(options):
    pair = (F.latent_attend, F.latent_attend_backward)
    for mask in (None, WORDS):
        report = gradcheck(pair, *scores(), mask=mask, hessian=True, tolerance=1e-13, **options)
        assert report.ok, str(report)


# The layer.


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


@every_option
def test_padding_changes_nothing(options):
    """Outputs and gradients are those without padding, whatever its length and contents."""
    layer, e = make_layer(**options), words()
    alone, short = layer.forward(e[1:, :3])
    dalone = layer.backward(np.ones((1, D)), short)
    grads = {name: p.grad.copy() for name, p in layer.named_parameters()}
    rng = np.random.default_rng(3)
    for length in range(3, 8):
        padded = 100 * rng.standard_normal((1, length, D))
        padded[:, :3] = e[1:, :3]
        mask = np.arange(length)[None] < 3
        o, cache = layer.forward(padded, mask=mask)
        np.testing.assert_allclose(o, alone, rtol=1e-12)
        np.testing.assert_allclose(cache.weights[:, :3], short.weights, rtol=1e-12)
        assert (cache.weights[:, 3:] == 0).all()
        layer.zero_grad()
        de = layer.backward(np.ones((1, D)), cache)
        np.testing.assert_allclose(de[:, :3], dalone, rtol=1e-10, atol=1e-14)
        assert (de[:, 3:] == 0).all()
        for name, parameter in layer.named_parameters():
            np.testing.assert_allclose(parameter.grad, grads[name], rtol=1e-10, atol=1e-13)


@every_option
def test_values_may_be_separate_from_the_inputs(options):
    layer, e, values = make_layer(**options), words(), words(4, L)
    o, cache = layer.forward(e, values, mask=WORDS)
    np.testing.assert_allclose(o, np.einsum("bj,bjk->bk", cache.weights, values), rtol=1e-13)
    de, dvalues = layer.backward(np.ones_like(o), cache)
    assert (de.shape, dvalues.shape) == (e.shape, values.shape)
    same, same_cache = layer.forward(e, e, mask=WORDS)
    np.testing.assert_array_equal(same, layer.forward(e, mask=WORDS)[0])
    apart = layer.backward(np.ones_like(same), same_cache)
    together = layer.backward(np.ones_like(same), layer.forward(e, mask=WORDS)[1])
    np.testing.assert_allclose(apart[0] + apart[1], together, rtol=1e-12)


def test_the_layer_depends_on_positions():
    """The map has one column for each position, so the same tokens in another order have other weights."""
    layer, e = make_layer(), words()
    _, cache = layer.forward(e)
    _, turned = layer.forward(e[:, ::-1])
    np.testing.assert_allclose(turned.latent, cache.latent[:, ::-1], rtol=1e-12)
    assert np.abs(turned.weights - cache.weights[:, ::-1]).max() > 1e-3


@every_option
def test_gradients_of_the_layer_are_exact_and_add_up(options):
    layer = make_layer(**options)
    for inputs in ((words(),), (words(), words(4, L))):
        report = gradcheck(layer, *inputs, mask=WORDS, hessian=True, tolerance=1e-13)
        assert report.ok, str(report)


def test_float32_stays_float32():
    layer = make_layer(np.float32)
    o, cache = layer.forward(words().astype(np.float32), mask=WORDS)
    assert {o.dtype, layer.backward(o, cache).dtype, cache.weights.dtype} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_layer(orientation="up"), "orientation is 'up': choose one of rows, columns"),
        (lambda: make_layer(measure="max"), "measure is 'max': choose one of sum, euclidean"),
        (lambda: F.latent_attend(*scores(), orientation="up"), "orientation is 'up'"),
        (lambda: F.unit_weights(np.ones(3), "max"), "measure is 'max'"),
        (lambda: make_layer().forward(np.ones((1, 8, D))), "a sentence has 8 tokens .* has 7 positions"),
        (lambda: make_layer().forward(words(), mask=WORDS.astype(int)), "mask has dtype int64: make it bool"),
        (lambda: make_layer().forward(words(), mask=WORDS[:, :4]), r"mask has shape \(2, 4\)"),
        (lambda: F.latent_attend(*scores(), WORDS.astype(int)), "mask has dtype int64: make it bool"),
    ],
)
def test_invalid_inputs_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()

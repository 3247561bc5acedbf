"""Verdicts at every scale of the inputs, at kinks, in other layouts and data types."""

import os

import numpy as np
import pytest
from refused import refused

from npformer.checking import gradcheck
from npformer.nn import LayerNorm

X = np.random.default_rng(0).standard_normal((3, 8))
SPREAD = X * 10.0 ** np.random.default_rng(1).uniform(-9, 9, X.shape)  # entries of very different sizes
NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))
SCALES = [10.0**p for p in range(-12, 13, 4 if NIGHTLY else 8)]
SEEDS = range(4 if NIGHTLY else 1)


def pair(f, slope):
    """Return f and its backward pass, for a function of each entry with this derivative."""
    return lambda x: (f(x), x), lambda dy, x: dy * slope(x)


SMOOTH = {
    "square": (lambda x: x * x, lambda x: 2 * x),
    "abs": (np.abs, np.sign),
    "a small abs": (lambda x: x + 1e-9 * np.abs(x), lambda x: 1 + 1e-9 * np.sign(x)),
    "real part": (lambda x: x + 1e-7 * (x * np.conj(x)).real, lambda x: 1 + 2e-7 * x),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SMOOTH)
def test_a_right_pair_at_every_scale_and_a_wrong_one(name, scale):
    f, slope = SMOOTH[name]
    assert gradcheck(pair(f, slope), scale * X).ok
    assert not gradcheck(pair(f, lambda x: 1.001 * slope(x)), scale * X).ok


@pytest.mark.parametrize("name", ["square", "abs"])
def test_entries_of_very_different_sizes(name):
    f, slope = SMOOTH[name]
    assert gradcheck(pair(f, slope), SPREAD).ok
    assert not gradcheck(pair(f, lambda x: 1.001 * slope(x)), SPREAD).ok


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_layer_norm_of_small_and_large_inputs(scale):
    assert gradcheck(LayerNorm(8, eps=1e-12), scale * X).ok


def test_a_small_part_that_takes_no_complex_numbers_is_noticed():
    report = gradcheck(pair(*SMOOTH["a small abs"]), X)
    assert report.rows[0].method == "central difference"


@pytest.mark.parametrize("scale", [1e-10, 1e-8, 1e-6])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_output_that_hardly_changes(scale, seed):
    """Near 0, log(1 + exp(x)) is log 2 + x / 2, and the rounding errors of log 2 are a part of x."""
    softplus = (lambda x: np.logaddexp(0, x)), (lambda x: 1 / (1 + np.exp(-x)))
    assert gradcheck(pair(*softplus), scale * X, seed=seed).ok
    assert not gradcheck(pair(softplus[0], lambda x: 1.001 * softplus[1](x)), scale * X, seed=seed).ok


SOFTSIGN = (lambda x: x / (1 + np.abs(x)), lambda x: 1 / (1 + np.abs(x)) ** 2)
CUBE = (lambda x: np.abs(x) ** 3, lambda x: 3 * x * np.abs(x))


@pytest.mark.parametrize(
    ("f", "offset", "scale", "right", "half"),
    [
        (SMOOTH["abs"], 0, 1e-8, "all gradients correct", "INCORRECT"),
        (SMOOTH["abs"], 1, 1e-8, "all gradients correct", "INCORRECT"),
        (SMOOTH["abs"], 1, 1e-10, "not decided", "INCORRECT"),
        (SMOOTH["abs"], 1e4, 1e-8, "not decided", "INCORRECT"),
        (SMOOTH["abs"], 1e8, 1e-8, "not decided", "not decided"),
        (SMOOTH["abs"], 1e8, 1e-12, "not decided", "not decided"),
        (SOFTSIGN, 0, 1e8, "all gradients correct", "INCORRECT"),
        (SOFTSIGN, 1e4, 1e8, "not decided", "INCORRECT"),
        (SOFTSIGN, 1, 1e-8, "not decided", "INCORRECT"),
        (CUBE, 1, 1e-4, "not decided", "INCORRECT"),
    ],
)
def test_rounding_errors_of_forward_are_no_mistakes(f, offset, scale, right, half):
    """They hide the derivative of |x| beside 1e4, where |x| is 1e-8, up to its fourth digit."""

    def verdict(factor):
        report = gradcheck(pair(lambda x: f[0](x) + offset, lambda x: factor * f[1](x)), scale * X, name="f")
        assert report.ok == ("correct" in str(report).splitlines()[0])
        return str(report).splitlines()[0]

    assert verdict(1) == f"f: {right}"
    assert verdict(0.5) == f"f: {half}"
    assert not gradcheck(pair(lambda x: f[0](x) + offset, lambda x: 1.001 * f[1](x)), scale * X).ok
    assert verdict(0) == f"f: {half}"


def log_of_a_sum(x):
    return np.log(1 + 1e-8 * np.abs(x))


@pytest.mark.parametrize(
    ("f", "slope", "other", "scale", "verdicts"),
    [
        (np.round, 0, 1, 1, "all gradients correct, INCORRECT"),
        (np.round, 0, 1, 1e8, "not decided, not decided"),
        (np.floor, 0, 1, 1e12, "not decided, not decided"),
        (lambda x: x - np.round(x), 1, 0, 1e4, "not decided, INCORRECT"),
        (lambda x: x - np.round(x), 1, 0, 1e6, "not decided, not decided"),
        (lambda x: (x + 1e6) - 1e6, 1, 0, 1e-8, "not decided, not decided"),
        (lambda x: (1e8 + np.abs(x)) - 1e8, np.sign, 0, 1e-8, "not decided, not decided"),
        (lambda x: (1e8 + np.maximum(x, 0)) - 1e8, lambda x: x > 0, 0, 1e-8, "not decided, not decided"),
        (lambda x: (1e8 + np.maximum(x, 0)) - 1e8, lambda x: x > 0, 0, 1, "all gradients correct, INCORRECT"),
        (lambda x: (x + 1e6) - 1e6, 1, 0, 1, "all gradients correct, INCORRECT"),
        (log_of_a_sum, lambda x: 1e-8 * np.sign(x), 0, 1, "all gradients correct, INCORRECT"),
    ],
)
def test_stairs_have_two_slopes(f, slope, other, scale, verdicts):
    """Differences see one of them. Without the other one, np.round(x) at 1e8 has the derivative 1."""

    def verdict(slope):
        d = slope if callable(slope) else lambda x: slope + 0 * x
        return str(gradcheck(pair(f, d), scale * X, name="f")).splitlines()[0].removeprefix("f: ")

    assert f"{verdict(slope)}, {verdict(other)}" == verdicts


def test_a_forward_pass_that_is_another_function_of_complex_numbers():
    """The complex step is not asked about the function of real numbers, so differences decide."""
    factor = 1 + 2e-5

    def f(x):
        return x * x if np.iscomplexobj(x) else factor * x * x

    assert not gradcheck(pair(f, lambda x: 2 * x), X).ok
    report = gradcheck(pair(f, lambda x: 2 * factor * x), X)
    assert report.ok
    assert report.rows[0].method == "central difference"


@pytest.mark.parametrize("size", [1e154, 1e160, 1e300])
def test_a_gradient_whose_square_is_beyond_all_floats(size):
    assert not gradcheck((lambda x: (np.sin(x), x), lambda dy, x: dy * np.cos(x) * size), X).ok


class MaxPool:
    """The larger of each two entries. At a tie, the first one gets the gradient."""

    def forward(self, x):
        windows = x.reshape(*x.shape[:-1], -1, 2)
        chosen = windows.argmax(-1)[..., None]
        return np.take_along_axis(windows, chosen, -1)[..., 0], (chosen, x.shape)

    def backward(self, dy, cache):
        chosen, shape = cache
        dx = np.zeros((*dy.shape, 2))
        np.put_along_axis(dx, chosen, dy[..., None], -1)
        return dx.reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_max_pooling_with_ties(seed):
    assert gradcheck(MaxPool(), np.array([[1.0, 1, 0, 0, 2, 5]]), seed=seed).ok


TIES = np.array([[1.0, 3, 3], [2, 2, 2]])


def at_the_first(dy, x):
    dx = np.zeros_like(x)
    dx[np.arange(len(x)), x.argmax(-1)] = dy
    return dx


def at_all(dy, x):
    return dy[:, None] * (x == x.max(-1, keepdims=True))


def shared(dy, x):
    ties = x == x.max(-1, keepdims=True)
    return dy[:, None] * ties / ties.sum(-1, keepdims=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("backward", "right"), [(at_the_first, True), (shared, True), (at_all, False)])
def test_a_tie_that_is_counted_twice(backward, right, seed):
    report = gradcheck((lambda x: (x.max(-1), x), backward), TIES, seed=seed)
    assert report.ok == right, str(report)
    if not right:
        assert "is a tie counted twice?" in report.worst.diagnosis


class Mean:
    """The mean of a batch, whose length the layer keeps where it is told to."""

    def __init__(self, in_cache):
        self.in_cache = in_cache

    def forward(self, x):
        self.n = len(x)
        return x.mean(0), x.shape

    def backward(self, dy, shape):
        n = shape[0] if self.in_cache else self.n
        return np.broadcast_to(dy / n, shape).copy()


def test_a_length_that_a_layer_keeps():
    assert gradcheck(Mean(in_cache=True), X).ok
    row = gradcheck(Mean(in_cache=False), X).worst
    assert (row.tensor, row.ok) == ("another forward", False)
    assert "keep lengths in the cache" in row.diagnosis


IN_MEMORY = {
    "ravel K": lambda dy, x: dy.ravel("K").reshape(dy.shape),
    "bytes": lambda dy, x: np.frombuffer(dy.tobytes("A"), dy.dtype).reshape(dy.shape).copy(),
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_backward_pass_that_reads_the_memory_of_dy(name):
    row = gradcheck((lambda x: (1.0 * x, x), IN_MEMORY[name]), X).worst
    assert (row.tensor, row.ok) == ("any layout of dy", False)


def varying(x):
    return 1 + 0.1 * np.sin(1e6 * x)  # has another sign at points near by


@pytest.mark.parametrize("factor", [1.1, 1.01, 1.001, varying])
def test_a_gradient_that_is_wrong_in_float32_alone(factor):
    factor = factor if callable(factor) else lambda x, constant=factor: constant
    layer = pair(lambda x: x * x, lambda x: 2 * x * (factor(x) if x.dtype == np.float32 else 1))
    assert gradcheck(layer, X).ok  # it was given no float32
    row = gradcheck(layer, X.astype(np.float32)).worst
    assert (row.tensor, row.ok) == ("float32", False)


@pytest.mark.parametrize("offset", [100, 10_000])
def test_rounding_errors_of_float32_are_no_mistakes(offset):
    """Beside 10,000, a number near 1 has three digits in float32."""

    def rounded(x):
        return (x + x.dtype.type(offset)) - x.dtype.type(offset)

    assert gradcheck(pair(lambda x: rounded(x) ** 2, lambda x: 2 * rounded(x)), X.astype(np.float32)).ok


def only_float32(x):
    if x.dtype != np.float32:
        raise TypeError("float32 only")
    return 2 * x, None


def test_a_forward_pass_that_refuses_float64():
    with refused(r"forward takes float32 and refuses float64 \(TypeError: float32 only\)"):
        gradcheck((only_float32, lambda dy, cache: 2 * dy), X.astype(np.float32))


def test_a_complex_output():
    with refused("forward returns complex numbers"):
        gradcheck((lambda x: (1j * x, x), lambda dy, x: dy), X)


def batch_norm_of_a_linear_map(x, w, b):
    if any(map(np.iscomplexobj, (x, w, b))):
        raise TypeError("a complex step would be exact")
    z = x.astype(float) @ w.astype(float) + b.astype(float)  # as a module of PyTorch in float64
    dev = np.sqrt(((z - z.mean(0)) ** 2).mean(0) + 1e-5)
    return (z - z.mean(0)) / dev, (x, w, (z - z.mean(0)) / dev, dev)


def batch_norm_of_a_linear_map_backward(dy, cache):
    x, w, y, dev = cache
    dz = (dy - dy.mean(0) - y * (dy * y).mean(0)) / dev
    return dz @ w.T, x.T @ dz, dz.sum(0)


# in 4, 6 and 30 they look like stairs, and in 42, 51 and 59 like a slope that is hidden
@pytest.mark.parametrize("seed", [4, 6, 30, 42, 51, 59])
def test_the_rounding_errors_of_a_bias_without_effect_are_no_stairs(seed):
    layer = batch_norm_of_a_linear_map, batch_norm_of_a_linear_map_backward
    inputs = map(np.random.default_rng(seed).standard_normal, ((3, 4), (4, 4), 4))
    assert gradcheck(layer, *inputs).ok

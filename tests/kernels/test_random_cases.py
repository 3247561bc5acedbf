"""Every kernel against its plain pair on random shapes that broadcast, layouts, masks, dtypes and settings.

Each case calls the functions of npformer.kernels, as a layer does, and those of npformer.functional. Both
give the same numbers, shapes and dtypes, or both raise the same error.
"""

import importlib
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import npformer.functional as F
from npformer import kernels
from npformer.backend import is_array, to_backend, to_numpy

TOLERANCE = {np.float16: 1e-2, np.float32: 1e-5, np.float64: 1e-12}
fuzz = settings(max_examples=400 if os.environ.get("NPFORMER_NIGHTLY") else 60)

leads = st.lists(st.integers(0, 4), max_size=3).map(tuple)
sizes = st.integers(1, 5)
probabilities = st.sampled_from([0, 0.4])
cpu_attention = importlib.import_module("npformer.kernels.cpu.attention")  # the name is the function, too
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])


class Case:
    """Random arguments of one pair: hypothesis draws shapes, settings and the seed of the numbers."""

    def __init__(self, data, dtypes):
        self.data, self.rng = data, np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
        self.dtype = data.draw(st.sampled_from(dtypes), "dtype")
        others = data.draw(st.booleans(), "mixed precisions")
        self.others = [np.float32, np.float64] if others else []

    def draw(self, strategy, label):
        return self.data.draw(strategy, label)

    def settings(self, **own):
        """Return these settings, or none, so that the defaults count."""
        return own if self.draw(st.booleans(), "settings are given") else {}

    def numbers(self, *shape, label="array"):
        """Return random numbers of one of the dtypes in one of several memory layouts."""
        dtype = self.draw(st.sampled_from(self.others), f"dtype of {label}") if self.others else self.dtype
        x = self.rng.standard_normal(shape)
        if np.issubdtype(dtype, np.complexfloating):
            x = x + 1j * self.rng.standard_normal(shape)
        return self.lay_out(x.astype(dtype), label)

    def lay_out(self, x, label):
        """Return the numbers in C or Fortran order, as a strided view, or with the first row repeated."""
        layout = self.draw(st.sampled_from(["C", "C", "F", "sliced", "repeated"]), f"layout of {label}")
        if layout == "F":
            return np.asfortranarray(x)
        if layout == "sliced" and x.ndim:
            wide = np.repeat(x, 2, -1)
            return wide[..., ::2]
        if layout == "repeated" and x.ndim > 1 and len(x):
            return np.broadcast_to(x[:1], x.shape)
        return x

    def part_of(self, shape, label):
        """Return a shape that broadcasts to this one: some axes are 1, some leading axes are missing."""
        dropout_mask = self.draw(st.tuples(*(st.booleans() for _ in shape)), label)
        shape = [n if kept else 1 for n, kept in zip(shape, dropout_mask, strict=True)]
        return tuple(shape[self.draw(st.integers(0, len(shape)), f"axes without {label}") :])

    def mask(self, shape, label):
        """Return a bool array that broadcasts to the shape, or None."""
        if not self.draw(st.booleans(), f"has {label}"):
            return None
        return np.asarray(self.rng.random(self.part_of(shape, label)) < 0.6)


def linear(case):
    lead, i, o = case.draw(leads, "lead"), case.draw(sizes, "I"), case.draw(sizes, "O")
    bias = case.numbers(o, label="bias") if case.draw(st.booleans(), "bias") else None
    args = case.numbers(*lead, i), case.numbers(i, o, label="weight"), bias
    return args, {}, case.numbers(*lead, o, label="dy")


def embedding(case):
    lead, d = case.draw(leads, "lead"), case.draw(sizes, "D")
    ids = case.lay_out(case.rng.integers(0, 5, lead), "ids")
    args = ids, case.numbers(6, d, label="table"), 2.5, case.draw(st.sampled_from([None, 0, 3]), "zero_id")
    return args, {}, case.numbers(*lead, d, label="dy")


def attention(case):
    lead = case.draw(st.lists(sizes, min_size=2, max_size=2) | leads, "lead")
    t, s, k, v = (case.draw(sizes, name) for name in "TSKL")
    q_lead, k_lead, v_lead = (
        lead if case.draw(st.booleans(), f"whole {n}") else case.part_of(lead, n) for n in "qkv"
    )
    scores = (*np.broadcast_shapes(tuple(q_lead), tuple(k_lead)), t, s)
    args = (
        case.numbers(*q_lead, t, k, label="q"),
        case.numbers(*k_lead, s, k, label="k"),
        case.numbers(*v_lead, s, v, label="v"),
        case.mask(scores, "mask"),
    )
    own = case.settings(
        scale=case.draw(st.sampled_from([None, 0.3]), "scale"),
        p=case.draw(probabilities, "p"),
    )
    lead = np.broadcast_shapes(scores[:-2], tuple(v_lead))
    return args, own | {"rng": ...}, case.numbers(*lead, t, v, label="dy")


def rows(case):
    shape = *case.draw(leads, "lead"), case.draw(sizes, "D")
    return shape, case.numbers(*shape, label="x"), case.numbers(*shape, label="dy")


def layer_norm(case):
    shape, x, dy = rows(case)
    return (x, *(case.numbers(shape[-1], label=name) for name in ("gain", "bias"))), {}, dy


def rms_norm(case):
    shape, x, dy = rows(case)
    return (x, case.numbers(shape[-1], label="gain")), {}, dy


def rotate(case):
    lead, t, pairs = case.draw(leads, "lead"), case.draw(sizes, "T"), case.draw(sizes, "K/2")
    table = (*case.part_of((*lead, t), "table"), pairs)  # its last axis says how many columns turn
    layout = case.draw(st.sampled_from(["halves", "interleaved", "thirds"]), "layout of pairs")
    args = *(case.numbers(*table, label=name) for name in ("cos", "sin")), layout
    return (
        (case.numbers(*lead, t, 2 * pairs, label="x"), *args),
        {},
        case.numbers(*lead, t, 2 * pairs, label="dy"),
    )


def swiglu(case):
    shape, gate, dy = rows(case)
    return (gate, case.numbers(*shape, label="value")), {}, dy


def add_norm(case):
    shape, x, dy = rows(case)
    h = case.numbers(*shape, label="h")
    if case.draw(st.integers(0, 4), "shape of h") == 0:
        h = case.numbers(*case.part_of(shape, "h"), label="h")  # refused, unless it is the whole shape
    gain, bias = (case.numbers(shape[-1], label=name) for name in ("gain", "bias"))
    return (x, h, gain, bias), case.settings(eps=1e-3, p=case.draw(probabilities, "p"), rng=...), dy


def dropout(case):
    _, x, dy = rows(case)
    return (x, case.draw(probabilities, "p"), ...), {}, dy


def activation_dropout(case):
    _, x, dy = rows(case)
    activation = case.draw(st.sampled_from(["relu", "relu", "gelu_tanh", "none"]), "activation")
    own = case.settings(activation=activation, p=case.draw(probabilities, "p"), rng=...)
    return (x, *own.values()), {}, dy


def cross_entropy(case):
    lead, v = case.draw(leads, "lead"), case.draw(st.integers(2, 6), "V")
    pad_id = case.draw(st.sampled_from([None, 0, -100]), "pad_id")
    kind = case.draw(st.sampled_from([np.int64, np.int32, np.uint8]), "dtype of targets")
    targets = case.rng.integers(0, v, lead).astype(kind)
    own = case.settings(
        smoothing=case.draw(st.sampled_from([0.0, 0.1]), "smoothing"),
        pad_id=pad_id,
        tokens=case.draw(st.sampled_from([None, 7]), "tokens"),
    )
    logits = case.numbers(*lead, v, label="logits") * case.draw(st.sampled_from([1, 100]), "scale")
    return (logits, case.lay_out(targets, "targets")), own, case.draw(st.sampled_from([1, 0.5]), "dloss")


CASES = {
    "linear": linear,
    "embedding": embedding,
    "attention": attention,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "rotate": rotate,
    "swiglu": swiglu,
    "add_norm": add_norm,
    "dropout": dropout,
    "activation_dropout": activation_dropout,
    "cross_entropy": cross_entropy,
}
# float32: a row of few numbers has a small variance, and scores of 100 are rounded to 1e-5
LOOSE = {"layer_norm": 1e-3, "rms_norm": 1e-3, "add_norm": 1e-3, "cross_entropy": 1e-4}


def test_every_kernel_has_a_case():
    names = {name.removesuffix("_backward") for name in kernels.__all__}
    assert names == {*CASES, "adam_update", "cross_entropy_in_place", "plain_pairs"}


def outcome(module, name, args, own, dy):
    """Run a pair forward and backward. Return all results, or the type of the error."""
    args, own = (a if a is not ... else np.random.default_rng(3) for a in args), dict(own)
    if "rng" in own:
        own["rng"] = np.random.default_rng(3)
    try:
        y, cache = getattr(module, name)(*args, **own)
        grads = getattr(module, f"{name}_backward")(dy, cache)
    except ValueError as error:
        return type(error)
    return y, *(grads if isinstance(grads, tuple) else (grads,))


def dtypes_of(args, dy):
    return {a.dtype.type for a in (*args, dy) if is_array(a) and a.dtype.kind in "fc"}


def compare(name, args, own, dy, place=lambda a: a):
    """Check that the kernel gives the results of the plain pair."""
    with np.errstate(all="ignore"):
        found = outcome(
            kernels, name, [place(a) for a in args], {n: place(a) for n, a in own.items()}, place(dy)
        )
        expected = outcome(F, name, args, own, dy)
    if isinstance(expected, type) or isinstance(found, type):
        assert found is expected
        return
    kinds = dtypes_of(args, dy)
    tolerance = max(TOLERANCE[np.finfo(kind).dtype.type] for kind in kinds)
    if np.float32 in kinds:
        tolerance = LOOSE.get(name, tolerance)
    for one, other in zip(found, expected, strict=True):
        if other is None:
            assert one is None
            continue
        assert one.dtype == other.dtype or len(kinds) > 1
        assert one.shape == other.shape
        one, other = to_numpy(one), np.asarray(other)
        largest = np.abs(other).max(initial=0.1)
        assert np.abs(one - other).max(initial=0) <= tolerance * largest


@pytest.mark.parametrize("name", CASES)
@fuzz
@given(data=st.data())
def test_on_the_cpu(name, data):
    case = Case(data, [np.float32, np.float64, np.float16, np.complex128])
    compare(name, *CASES[name](case))


@fuzz
@given(data=st.data())
def test_long_attention_on_the_cpu(monkeypatch, data):
    args, own, dy = attention(Case(data, [np.float32, np.float64]))
    with monkeypatch.context() as patch:
        patch.setattr(cpu_attention, "LONG", 0)  # every array counts as long
        compare("attention", args, own | {"p": 0}, dy)  # its dropout draws other numbers


@pytest.mark.parametrize("name", CASES)
@fuzz
@given(data=st.data())
def test_on_the_gpu(device, name, data):
    case = Case(data, [np.float32, np.float64])
    compare(name, *CASES[name](case), place=lambda a: to_backend(a, "cupy") if is_array(a) else a)


@pytest.mark.parametrize("place", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@fuzz
@given(lead=leads, d=sizes, p=probabilities, seed=st.integers(0, 99), seed_dy=st.integers(0, 99))
def test_relu_dropout_to_the_bit(request, place, dtype, lead, d, p, seed, seed_dy):
    """The signs of zeros, infinities and NaN agree as well."""
    x, dy = (some_special(s, (*lead, d)).astype(dtype) for s in (seed, seed_dy))
    move = (lambda a: a) if place == "cpu" else move_to(request)
    with np.errstate(all="ignore"):
        found = outcome(kernels, "activation_dropout", (move(x), "relu", p, ...), {}, move(dy))
        expected = outcome(F, "activation_dropout", (x, "relu", p, ...), {}, dy)
    assert not np.signbit(expected[0]).any()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(to_numpy(one), other)
        np.testing.assert_array_equal(np.signbit(to_numpy(one)), np.signbit(other))


def some_special(seed, shape):
    """Return random numbers, half of them zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < 0.5, rng.standard_normal(shape), rng.choice(SPECIAL, shape))


def move_to(request):
    request.getfixturevalue("device")
    return lambda a: to_backend(a, "cupy")

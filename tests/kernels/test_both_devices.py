"""What the kernels on the CPU and those for CuPy have in common, against the plain pairs.

The kernels for CuPy run on a GPU with --backend cupy, else on a strict stand-in.
"""

import numpy as np
import pytest
from kernel_comparison import CPU, GPU, TOLERANCE, as_tuple, dtypes, rng

import npformer.functional as F
from npformer import UserError, kernels
from npformer.backend import to_numpy
from npformer.kernels.cpu.blocks import BLOCK
from npformer.kernels.shared import ReluDropoutCache


@pytest.fixture(params=[CPU, GPU], ids=["cpu", "gpu"])
def on(request):
    """Return a device with its kernels."""
    if request.param is GPU:
        request.getfixturevalue("device")
    return request.param


def compare(on, name, inputs, dtype, *own, **settings):
    """Compare a pair forward and backward. Return the output and the caches of the kernel and the plain pair.

    Args:
        on: The device.
        name: The name of the pair.
        inputs: The arrays on the device, and on the host in float64.
        dtype: That of the arrays on the device.
        *own: Further arguments. A function returns one for each pass.
        **settings: Settings of forward.
    """
    short, long = inputs
    forward = getattr(kernels, name, None) or getattr(on.kernels, name)
    y, cache = forward(*short, *(a() if callable(a) else a for a in own), **settings)
    expected, plain = getattr(F, name)(*long, *(a() if callable(a) else a for a in own), **settings)
    (dy,), (long_dy,) = on.random(dtype, expected.shape)
    exact = getattr(F, f"{name}_backward")
    found = getattr(kernels, f"{name}_backward", None) or kernels.choice.choose_by_cache(exact)
    grads, long_grads = as_tuple(found(dy, cache)), as_tuple(exact(long_dy, plain))
    on.agree([y, *grads], [expected, *long_grads], dtype)
    return y, cache, plain


def test_attention_without_keys_is_refused(on):
    short, _ = on.random(np.float32, (2, 2, 3, 4), (2, 2, 0, 4), (2, 2, 0, 5))
    with pytest.raises(UserError, match="attention needs at least one key"):
        on.kernels.attention(*short)


def test_huge_scores_of_one_query_leave_the_weights_of_the_others_alone(on):
    q, k, v = (rng(seed).standard_normal((2, 2, 3, 4)) for seed in range(3))
    q[:, :, 0] *= 1e4
    y, _ = on.kernels.attention(*on.place(q, k, v))
    np.testing.assert_allclose(to_numpy(y), F.attention(q, k, v)[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mask", [np.ones((3, 2), bool), np.ones((3, 3), int)], ids=["shape", "dtype"])
def test_a_mask_that_does_not_fit_is_refused(on, mask):
    short, _ = on.random(np.float32, (2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 5))
    with pytest.raises(UserError, match=r"^mask has "):
        on.kernels.attention(*short, *on.place(mask))


@dtypes
def test_an_unevaluated_product_is_written_or_added(on, dtype):
    (*short, dy), (*long, long_dy) = on.random(dtype, (2, 5, 4), (4, 3), (3,), (2, 5, 3))
    _, product, _ = on.kernels.linear_backward(dy, on.kernels.linear(*short)[1])
    _, dweight, _ = F.linear_backward(long_dy, F.linear(*long)[1])
    for ours, expected in ((product, dweight), (product.T, dweight.T)):
        assert ours.shape == expected.shape
        CPU.agree([np.asarray(ours)], [expected], dtype)
        (destination,) = on.place(np.full(expected.shape, np.nan, dtype))
        ours.add_to(destination, is_zero=True)  # the old contents do not matter if they count as 0
        on.agree([destination], [expected], dtype)
        ours.add_to(destination, is_zero=False)
        on.agree([destination], [2 * expected], dtype)


@dtypes
@pytest.mark.parametrize("zero_id", [None, 3])
def test_the_rows_of_an_embedding_are_added(on, dtype, zero_id):
    ids = rng(1).integers(0, 5, (4, 7))
    (table, dy, grad), (long_table, long_dy, long_grad) = on.random(dtype, (6, 3), (4, 7, 3), (6, 3))
    rows = on.kernels.embedding_backward(dy, F.embedding(*on.place(ids), table, 2.5, zero_id)[1])
    expected = F.embedding_backward(long_dy, F.embedding(ids, long_table, 2.5, zero_id)[1])
    assert rows.shape == expected.shape
    on.agree([rows.evaluate()], [expected], dtype)
    rows.add_to(grad, is_zero=False)
    on.agree([grad], [long_grad + expected], dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex128])
def test_a_plain_cache_of_attention_leads_to_the_plain_backward_pass(on, dtype):
    (q, k, v), _ = on.random(np.float64, *3 * [(1, 2, 4, 3)])
    (dy,) = on.place(rng(4).standard_normal((1, 2, 4, 3)).astype(dtype))
    _, cache = F.attention(q, k, v, p=0.4, rng=rng(5))
    found, expected = kernels.attention_backward(dy, cache), F.attention_backward(dy, cache)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))


@dtypes
@pytest.mark.parametrize(
    ("shape", "own"), [((1, 8), {"eps": 0.5}), ((700, 130), {})], ids=["a row", "blocks"]
)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "add_norm"])
def test_norms_and_their_caches(on, dtype, name, shape, own):
    """test_random_cases.py has dropout and other shapes."""
    rows, vectors = (2 if name == "add_norm" else 1), (1 if name == "rms_norm" else 2)
    short, long = on.random(dtype, *rows * [shape], *vectors * [shape[-1:]])
    short[0][...] = 3 * short[0] + 1
    long[0] = to_numpy(short[0]).astype(np.float64)
    _, cache, plain = compare(on, name, (short, long), dtype, **own)
    ours, theirs = (cache.norm, plain.norm) if name == "add_norm" else (cache, plain)
    on.agree(ours, theirs, dtype)


def test_a_residual_connection_of_two_shapes_is_refused(on):
    arrays = on.place(np.ones((2, 3)), np.ones((1, 3)), np.ones(3), np.ones(3))
    with pytest.raises(UserError, match=r"adds x of shape \(2, 3\) and .* output of shape \(1, 3\)"):
        on.kernels.add_norm(*arrays)


@dtypes
@pytest.mark.parametrize("p", [0, 0.3])
@pytest.mark.parametrize("shape", [(3, 4, 8), (70, 1001), ()])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "none"])
def test_dropout(on, dtype, p, shape, activation):
    name, settings = ("activation_dropout", [activation]) if activation else ("dropout", [])
    inputs = on.random(dtype, shape)
    y, cache, _ = compare(on, name, inputs, dtype, *settings, p, lambda: rng(2))
    if activation == "relu":
        assert isinstance(cache, ReluDropoutCache)  # of the kernel
    assert p or activation not in (None, "none") or y is inputs[0][0]


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "swiglu"])
def test_activations_of_small_and_large_numbers(on, name):
    """The error of Phi, tanh or the sigmoid, which the numbers are multiplied with, is that of rounding."""
    x = np.concatenate([np.linspace(-9, 9, 3001), [-1e6, -1e3, 1e3, 1e6]]).astype(np.float32)[None]
    inputs = (x, np.ones_like(x)) if name == "swiglu" else (x,)
    y, cache = getattr(on.kernels, name)(*on.place(*inputs))
    expected, plain = getattr(F, name)(*(array.astype(np.float64) for array in inputs))
    np.testing.assert_allclose(to_numpy(y), expected, rtol=1e-6, atol=1e-6)
    backward, dy = f"{name}_backward", np.full_like(x, 0.7)
    found = as_tuple(getattr(on.kernels, backward)(*on.place(dy), cache))
    exact = as_tuple(getattr(F, backward)(dy.astype(np.float64), plain))
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(to_numpy(one), other, rtol=1e-6, atol=1e-6)


@dtypes
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        *(("swiglu", [(3, 4, 8), shape]) for shape in ((3, 4, 8), (4, 8), (8,), ())),
        *(("swiglu", [(), ()]), ("gelu", [()]), ("gelu_tanh", [()])),
    ],
)
def test_activations_of_arrays_that_broadcast_or_have_no_rows(on, dtype, name, shapes):
    compare(on, name, on.random(dtype, *shapes), dtype)


@dtypes
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (100, 0), (1, 900), (1, -900)])
@pytest.mark.parametrize(
    ("shape", "own"),
    [
        ((1, 2), {"pad_id": 0}),
        ((300, 400), {"smoothing": 0.1, "pad_id": -100}),
        ((1, 7, 5), {"smoothing": 0.1, "tokens": 1000}),
    ],
)
def test_cross_entropy(on, dtype, overwrite, scale, shift, shape, own):
    (logits,), _ = on.random(dtype, shape)
    logits *= scale
    logits += shift
    long = to_numpy(logits).astype(np.float64)
    targets = rng(1).integers(0, shape[-1], shape[:-1])
    targets[..., 1::3] = own.get("pad_id", 0)
    loss, cache = on.kernels.cross_entropy(logits, *on.place(targets), **own, overwrite=overwrite)
    expected, plain = F.cross_entropy(long, targets, **own)
    assert float(loss) == pytest.approx(expected, rel=TOLERANCE[dtype], abs=1e-12)
    for dloss in (0.5, 2):
        dlogits = on.kernels.cross_entropy_backward(dloss, cache)
        on.agree([dlogits], [F.cross_entropy_backward(dloss, plain)], dtype)
    dlogits = on.kernels.cross_entropy_backward(1, cache)
    on.agree([dlogits], [F.cross_entropy_backward(1, plain)], dtype)
    assert (to_numpy(logits) == (to_numpy(dlogits) if overwrite else long)).all()


def test_only_cross_entropy_in_place_overwrites_the_logits(on):
    targets = on.place(np.array([1, 0]))
    for loss, overwrites in (("cross_entropy", False), ("cross_entropy_in_place", True)):
        (logits,), (before,) = on.random(np.float64, (2, 5))
        getattr(on.kernels, loss)(logits, *targets)
        assert (to_numpy(logits) != before).any() == overwrites


@dtypes
@pytest.mark.parametrize("size", [1, 5, 2 * BLOCK + 3])
def test_adam_updates_a_part_of_its_arrays(on, dtype, size):
    short, long = on.random(dtype, *4 * [(size + 7,)])
    short[3][...] = short[3] * short[3]
    long[3] = to_numpy(short[3]).astype(np.float64)
    for t in (1, 2, 50):
        for module, arrays in ((on.kernels, short), (F, long)):
            module.adam_update(*(a[3 : size + 3] for a in arrays), 1e-3, t, (0.9, 0.98), 1e-9)
    on.agree(short, long, dtype)

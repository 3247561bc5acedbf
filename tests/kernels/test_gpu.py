"""The kernels for CuPy against the plain pairs: on a GPU with --backend cupy, else on a strict stand-in."""

import numpy as np
import pytest
from gpu_comparison import agree, dtypes, rng

import npformer.functional as F
from npformer import UserError, kernels
from npformer.backend import generator_near, is_cupy, random_keep_mask, to_backend, to_numpy
from npformer.functional import activations
from npformer.functional.rotary import RotaryCache, rotary_table
from npformer.kernels import cpu, gpu, plain_pairs
from npformer.kernels.shared import DropoutMask, ReluDropoutCache

rates = pytest.mark.parametrize("p", [0, 0.3])
pytestmark = pytest.mark.usefixtures("device")


def on_device(*arrays):
    """Return arrays on the device, and all other objects unchanged."""
    return tuple(to_backend(a, "cupy") if isinstance(a, np.ndarray) else a for a in arrays)


def random_arrays(dtype, *shapes):
    """Return random numbers, on the device in the dtype of the kernel and on the host in float64."""
    short = [rng(seed).standard_normal(shape).astype(dtype) for seed, shape in enumerate(shapes)]
    return on_device(*short), [array.astype(np.float64) for array in short]


@dtypes
def test_the_products_of_a_linear_map(device, dtype):
    (*short, dy), (*long, long_dy) = random_arrays(dtype, (2, 5, 4), (4, 3), (3,), (2, 5, 3))
    (_, cache), (_, plain) = gpu.linear(*short), F.linear(*long)
    _, product, _ = gpu.linear_backward(dy, cache)
    _, dweight, _ = F.linear_backward(long_dy, plain)
    for ours, expected in ((product, dweight), (product.T, dweight.T)):
        destination = device.empty(expected.shape, dtype)
        ours.add_to(destination, is_zero=True)
        agree([destination], [expected], dtype)
        ours.add_to(destination, is_zero=False)
        agree([destination], [2 * expected], dtype)


def run_attention(module, q, k, v, dy, mask, **settings):
    """Return the output and all gradients of one version."""
    y, cache = module.attention(q, k, v, mask, **settings)
    return y, cache.weights, cache.scores, *kernels.attention_backward(dy, cache)


@dtypes
def test_attention_of_heads_whose_memory_is_interleaved(dtype):
    short, long = random_arrays(dtype, (2, 5, 3, 4), (2, 6, 3, 4), (2, 6, 3, 4), (2, 5, 3, 4))
    short, long = ([x.swapaxes(1, 2) for x in arrays] for arrays in (short, long))
    agree(run_attention(gpu, *short, None), run_attention(F, *long, None), dtype)


def test_a_plain_cache_of_attention_uses_the_plain_backward():
    (*short, dy), (*long, long_dy) = random_arrays(np.float64, *4 * [(2, 1, 3, 2)])
    found = kernels.attention_backward(dy, F.attention(*short, p=0.4, rng=rng(5))[1])
    agree(found, F.attention_backward(long_dy, F.attention(*long, p=0.4, rng=rng(5))[1]), np.float64)


@dtypes
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "add_norm"])
def test_the_caches_of_norms(dtype, name):
    shapes = {"layer_norm": [(60, 130)], "rms_norm": [(60, 130)], "add_norm": 2 * [(60, 130)]}[name]
    vectors = (2 - (name == "rms_norm")) * [(130,)]
    short, long = random_arrays(dtype, *shapes, *vectors)
    (y, cache), (expected, plain) = getattr(gpu, name)(*short), getattr(F, name)(*long)
    own, theirs = (cache.norm, plain.norm) if name == "add_norm" else (cache, plain)
    agree([y, *own], [expected, *theirs], dtype)


@pytest.mark.parametrize("module", [cpu, gpu])
def test_a_residual_connection_of_two_shapes_is_refused(module):
    arrays = np.ones((2, 3)), np.ones((1, 3)), np.ones(3), np.ones(3)
    with pytest.raises(UserError, match=r"adds x of shape \(2, 3\) and .* output of shape \(1, 3\)"):
        module.add_norm(*(on_device(*arrays) if module is gpu else arrays))


def test_a_large_eps_has_its_effect():
    short, long = random_arrays(np.float64, (5, 8), (8,), (8,))
    agree([gpu.layer_norm(*short, eps=0.5)[0]], [F.layer_norm(*long, eps=0.5)[0]], np.float64)
    agree([gpu.rms_norm(*short[:2], eps=0.5)[0]], [F.rms_norm(*long[:2], eps=0.5)[0]], np.float64)


@dtypes
@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("starts", [3, [[0], [3]]])  # of all sentences, or of each
def test_rotate(dtype, layout, starts):
    """As in a layer, the memory of the heads is interleaved. The rotated heads are in C order."""
    (x, dy), (long_x, long_dy) = random_arrays(dtype, (2, 5, 3, 8), (2, 3, 5, 8))
    x, long_x = x.swapaxes(1, 2), long_x.swapaxes(1, 2)  # (2, 3, 5, 8) = (B, H, T, K)
    tables = [table.astype(dtype) for table in rotary_table(np.asarray(starts)[..., None] + np.arange(5), 8)]
    y, cache = gpu.rotate(x, *on_device(*tables), layout)
    expected, plain = F.rotate(long_x, *(table.astype(np.float64) for table in tables), layout)
    assert y.flags.c_contiguous
    assert isinstance(cache, RotaryCache)
    agree([y, gpu.rotate_backward(dy, cache)], [expected, F.rotate_backward(long_dy, plain)], dtype)


@dtypes
@rates
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "none"])
def test_dropout(dtype, p, activation):
    name, settings = ("activation_dropout", (activation,)) if activation else ("dropout", ())
    (x, dy), (long_x, long_dy) = random_arrays(dtype, (3, 4, 8), (3, 4, 8))
    y, cache = getattr(kernels, name)(x, *settings, p, rng(2))
    if activation == "relu":
        assert isinstance(cache, ReluDropoutCache)  # of the kernel
    expected, plain = getattr(F, name)(long_x, *settings, p, rng(2))
    agree([y], [expected], dtype)
    backward = f"{name}_backward"
    agree([getattr(kernels, backward)(dy, cache)], [getattr(F, backward)(long_dy, plain)], dtype)
    assert p or activation not in (None, "none") or y is x


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
@dtypes
def test_gelu_and_its_approximation(dtype, name):
    forward, backward = (getattr(gpu, f"{name}{end}") for end in ("", "_backward"))
    plain_forward, plain_backward = (getattr(activations, f"{name}{end}") for end in ("", "_backward"))
    (x, dy), (long_x, long_dy) = random_arrays(dtype, (3, 40), (3, 40))
    (y, cache), (expected, plain) = forward(4 * x), plain_forward(4 * long_x)
    agree([y], [expected], dtype)
    assert cache._fields == ("x",)  # of the kernel
    agree([backward(dy, cache)], [plain_backward(long_dy, plain)], dtype)


@dtypes
@pytest.mark.parametrize("shape", [(3, 4, 8), (4, 8), (8,), ()])  # of the value, beside a gate (3, 4, 8)
def test_swiglu(dtype, shape):
    (gate, value, dy), (long_gate, long_value, long_dy) = random_arrays(dtype, (3, 4, 8), shape, (3, 4, 8))
    (y, cache), (expected, plain) = gpu.swiglu(gate, value), F.swiglu(long_gate, long_value)
    agree([y], [expected], dtype)
    agree(gpu.swiglu_backward(dy, cache), F.swiglu_backward(long_dy, plain), dtype)


@dtypes
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("own", "scale"),
    [({}, 1), ({"smoothing": 0.1, "pad_id": -100}, 100), ({"tokens": 1000, "pad_id": 0}, 1)],
)
def test_cross_entropy(dtype, overwrite, own, scale):
    (logits,), (long,) = random_arrays(dtype, (1, 30, 400))
    logits, long = logits * scale, (to_numpy(logits) * dtype(scale)).astype(np.float64)
    targets = rng(1).integers(0, 400, (1, 30))
    targets[:, ::3] = own.get("pad_id", 0)
    loss, cache = gpu.cross_entropy(logits, *on_device(targets), **own, overwrite=overwrite)
    expected, plain = F.cross_entropy(long, targets, **own)
    agree([loss], [expected], dtype)
    dlogits = gpu.cross_entropy_backward(1, cache)
    agree([dlogits], [F.cross_entropy_backward(1, plain)], dtype)
    half, expected_half = gpu.cross_entropy_backward(0.5, cache), F.cross_entropy_backward(0.5, plain)
    agree([half], [expected_half], dtype)
    same = (to_numpy(logits) == to_numpy(dlogits)).all()
    assert same if overwrite else (to_numpy(logits) == long).all()


def test_only_cross_entropy_in_place_overwrites_the_logits():
    targets = on_device(np.array([1, 0]))
    for loss, overwrites in ((gpu.cross_entropy, False), (gpu.cross_entropy_in_place, True)):
        (logits,), (before,) = random_arrays(np.float64, (2, 5))
        loss(logits, *targets)
        assert (to_numpy(logits) != before).any() == overwrites


@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_target_outside_the_vocabulary_makes_the_loss_nan(wrong):
    (logits,), _ = random_arrays(np.float64, (3, 5))
    targets = np.array([1, wrong, 2])
    assert np.isnan(float(gpu.cross_entropy(logits, *on_device(targets))[0]))
    assert np.isfinite(float(gpu.cross_entropy(logits, *on_device(targets), pad_id=wrong)[0]))


@dtypes
def test_the_rows_of_an_embedding_are_added(dtype):
    ids = rng(1).integers(0, 5, (4, 7))
    (table, dy, grad), (long_table, long_dy, long_grad) = random_arrays(dtype, (6, 3), (4, 7, 3), (6, 3))
    rows = gpu.embedding_backward(dy, F.embedding(*on_device(ids), table, 2.5)[1])
    expected = F.embedding_backward(long_dy, F.embedding(ids, long_table, 2.5)[1])
    rows.add_to(grad, is_zero=False)
    agree([grad], [long_grad + expected], dtype)


@dtypes
def test_adam(dtype):
    short, long = random_arrays(dtype, *4 * [(50,)])
    short[3][:] = short[3] * short[3]
    long[3] = to_numpy(short[3]).astype(np.float64)
    parts = [array[5:40] for array in short], [array[5:40] for array in long]
    for t in (1, 2, 50):
        gpu.adam_update(*parts[0], 1e-3, t, (0.9, 0.98), 1e-9)
        F.adam_update(*parts[1], 1e-3, t, (0.9, 0.98), 1e-9)
    agree(short, long, dtype)


def test_the_table_chooses_by_the_device_of_the_arrays():
    chosen = kernels.choice.choose(
        lambda *args, **settings: "plain", lambda *args, **settings: "cpu", lambda *args, **settings: "gpu"
    )
    host = np.ones(2)
    real, complex_, ids = on_device(host, host.astype(complex), np.arange(2))
    assert chosen(real, 0.1, ids, generator_near(rng(), real), out=real) == "gpu"
    assert chosen(host) == "cpu"
    assert chosen(complex_) == "plain"
    with plain_pairs():
        assert chosen(real) == "plain"


def test_every_kernel_is_in_the_table():
    (x,), _ = random_arrays(np.float32, (2, 1, 3, 4))
    composed = {"activation_dropout", "activation_dropout_backward"}  # from activations and dropout
    own = {f"{name}{end}" for name in ("relu_dropout", "gelu", "gelu_tanh") for end in ("", "_backward")}
    without = {"plain_pairs"} | composed
    assert set(gpu.__all__) - own == set(kernels.__all__) - without
    _, cache = kernels.attention(x, x, x, p=0.5, rng=rng())
    assert isinstance(cache.dropout_mask, DropoutMask)
    with plain_pairs():
        assert is_cupy(kernels.attention(x, x, x, p=0.5, rng=rng())[1].dropout_mask)


def test_a_generator_on_the_device_is_derived_from_that_of_the_host():
    (x,), _ = random_arrays(np.float32, (1000,))
    host = rng(1)
    assert generator_near(host, np.ones(1)) is host
    assert generator_near(None, x) is None
    kept = [to_numpy(random_keep_mask(generator_near(rng(s), x), x.shape, 0.3, x)) for s in (1, 1, 2)]
    np.testing.assert_array_equal(kept[0], kept[1])
    assert 0.5 < (kept[0] == kept[2]).mean() < 0.65  # by chance 0.7² + 0.3²
    assert 0.65 < kept[0].mean() < 0.75

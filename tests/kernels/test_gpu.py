"""The kernels for CuPy against the plain pairs: on a GPU with --backend cupy, else on a strict stand-in."""

import numpy as np
import pytest
from kernel_comparison import GPU, dtypes, rng

import npformer.functional as F
from npformer import kernels
from npformer.backend import generator_near, is_cupy, random_keep_mask, to_numpy
from npformer.functional.rotary import RotaryCache, rotary_table
from npformer.kernels import gpu, plain_pairs
from npformer.kernels.shared import DropoutMask

pytestmark = pytest.mark.usefixtures("device")


def run_attention(module, q, k, v, dy, mask, **settings):
    """Return the output and all gradients of one version."""
    y, cache = module.attention(q, k, v, mask, **settings)
    return y, cache.weights, cache.scores, *kernels.attention_backward(dy, cache)


@dtypes
def test_attention_of_heads_whose_memory_is_interleaved(dtype):
    short, long = GPU.random(dtype, (2, 5, 3, 4), (2, 6, 3, 4), (2, 6, 3, 4), (2, 5, 3, 4))
    short, long = ([x.swapaxes(1, 2) for x in arrays] for arrays in (short, long))
    GPU.agree(run_attention(gpu, *short, None), run_attention(F, *long, None), dtype)


@dtypes
@pytest.mark.parametrize("layout", ["halves", "interleaved"])
@pytest.mark.parametrize("starts", [3, [[0], [3]]])  # of all sentences, or of each
def test_rotate(dtype, layout, starts):
    """As in a layer, the memory of the heads is interleaved. The rotated heads are in C order."""
    (x, dy), (long_x, long_dy) = GPU.random(dtype, (2, 5, 3, 8), (2, 3, 5, 8))
    x, long_x = x.swapaxes(1, 2), long_x.swapaxes(1, 2)  # (2, 3, 5, 8) = (B, H, T, K)
    tables = [table.astype(dtype) for table in rotary_table(np.asarray(starts)[..., None] + np.arange(5), 8)]
    y, cache = gpu.rotate(x, *GPU.place(*tables), layout)
    expected, plain = F.rotate(long_x, *(table.astype(np.float64) for table in tables), layout)
    assert y.flags.c_contiguous
    assert isinstance(cache, RotaryCache)
    GPU.agree([y, gpu.rotate_backward(dy, cache)], [expected, F.rotate_backward(long_dy, plain)], dtype)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_target_outside_the_vocabulary_makes_the_loss_nan(wrong):
    (logits,), _ = GPU.random(np.float64, (3, 5))
    targets = np.array([1, wrong, 2])
    assert np.isnan(float(gpu.cross_entropy(logits, *GPU.place(targets))[0]))
    assert np.isfinite(float(gpu.cross_entropy(logits, *GPU.place(targets), pad_id=wrong)[0]))


def test_an_impossible_token_costs_nothing_at_padding():
    logits = np.where(np.arange(5) == 0, -np.inf, np.zeros((3, 5)))
    loss, _ = gpu.cross_entropy(*GPU.place(logits, np.array([1, 0, 2])), pad_id=0)
    assert float(loss) == pytest.approx(np.log(4))


def test_the_table_chooses_by_the_device_of_the_arrays():
    chosen = kernels.choice.choose(
        lambda *args, **settings: "plain", lambda *args, **settings: "cpu", lambda *args, **settings: "gpu"
    )
    host = np.ones(2)
    real, complex_, ids = GPU.place(host, host.astype(complex), np.arange(2))
    assert chosen(real, 0.1, ids, generator_near(rng(), real), out=real) == "gpu"
    assert chosen(host) == "cpu"
    assert chosen(complex_) == "plain"
    with plain_pairs():
        assert chosen(real) == "plain"


def test_every_kernel_is_in_the_table():
    (x,), _ = GPU.random(np.float32, (2, 1, 3, 4))
    composed = {"activation_dropout", "activation_dropout_backward"}  # from activations and dropout
    own = {f"{name}{end}" for name in ("relu_dropout", "gelu", "gelu_tanh") for end in ("", "_backward")}
    without = {"plain_pairs"} | composed
    assert set(gpu.__all__) - own == set(kernels.__all__) - without
    _, cache = kernels.attention(x, x, x, p=0.5, rng=rng())
    assert isinstance(cache.dropout_mask, DropoutMask)
    with plain_pairs():
        assert is_cupy(kernels.attention(x, x, x, p=0.5, rng=rng())[1].dropout_mask)


def test_a_generator_on_the_device_is_derived_from_that_of_the_host():
    (x,), _ = GPU.random(np.float32, (1000,))
    host = rng(1)
    assert generator_near(host, np.ones(1)) is host
    assert generator_near(None, x) is None
    kept = [to_numpy(random_keep_mask(generator_near(rng(s), x), x.shape, 0.3, x)) for s in (1, 1, 2)]
    np.testing.assert_array_equal(kept[0], kept[1])
    assert 0.5 < (kept[0] == kept[2]).mean() < 0.65  # by chance 0.7² + 0.3²
    assert 0.65 < kept[0].mean() < 0.75

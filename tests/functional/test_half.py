"""float16: sums are added in float32, so they equal those of float32 up to the rounding of the result."""

import numpy as np
import pytest

from npformer import functional as F
from npformer import nn

ONES, ZEROS = np.ones(8), np.zeros(8)
LARGE = np.arange(24.0).reshape(3, 8) * 2000  # its squares are above the largest float16, 65,504
MANY = np.zeros((1, 70_000))
ROWS = np.ones((8192, 1))  # half of 8,192 ones, added one by one in float16, is at most 2,048


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("layer_norm", (LARGE, ONES, ZEROS)),
        ("rms_norm", (LARGE, ONES)),
        ("batch_norm", (LARGE, ONES, ZEROS)),
        ("softmax", (MANY,)),
        ("log_softmax", (MANY,)),
        ("cross_entropy", (np.zeros((70_000, 2)), np.zeros(70_000, int))),
        ("kl_divergence", (MANY, MANY + 1 / 70_000)),
        ("linear", (ROWS, np.ones((1, 2)), np.zeros(2))),
        ("embedding", (np.zeros(8192, int), np.ones((1, 2)))),
        ("repeat_heads", (np.ones((1, 1, 2, 3)), 8192)),
        ("attend", (np.zeros((8192, 1, 1)), np.ones((1, 2)))),
        ("attention", (np.zeros((8192, 1, 2)), np.zeros((1, 2)), np.ones((1, 2)))),
        ("relative_attention", (np.zeros((1, 8192, 2)), np.zeros((1, 1, 2)), np.ones((1, 1, 2)), None, None)),
        ("concat_similarity", (0 * ROWS, np.zeros((2, 1)), np.ones(2))),
        ("perceptron_similarity", (0 * ROWS, np.zeros((1, 1)), *np.ones((2, 1, 2)), np.ones(2))),
        ("mix_states", (np.ones((8192, 2, 2)), np.full((8192, 2), 2.0**-14), np.ones((8192, 2), bool))),
        ("gaussian_window", (np.ones((1, 8192)), np.zeros(1), 1e3)),
        ("unit_weights", (MANY + 1,)),
        ("mean_pool", (MANY[:, :, None] + 1, MANY == 0)),
        ("cosine_similarity", (LARGE + 1, LARGE)),
        ("l2_distance", (LARGE / 1000, LARGE / LARGE.sum(-1, keepdims=True))),
    ],
)
def test_half_precision_rounds_only_the_result(name, inputs):
    half, single = (cast(inputs, dtype) for dtype in ("float16", "float32"))
    for found, exact in zip(
        outputs_and_gradients(name, half), outputs_and_gradients(name, single), strict=True
    ):
        assert found.dtype == "float16"
        np.testing.assert_array_equal(found, exact.astype("float16"))


def test_the_gradient_of_a_table_of_positions_counts_every_sentence():
    layer = nn.LearnedPositions(3, 2, dtype=np.float16)
    _, cache = layer.forward(3)
    layer.backward(np.ones((4096, 3, 2), np.float16), cache)
    np.testing.assert_array_equal(layer.weight.grad, np.full((3, 2), 4096, np.float16))


def test_many_equal_weights_are_drawn_equally_often():
    """In float16 the ends of the intervals would round to the same numbers, and some be empty."""
    equal = np.full((2000, 4096), 2.0**-12, np.float16)
    sample = F.one_hot_sample(equal, np.random.default_rng(0))
    assert sample.dtype == bool
    drawn = np.bincount(sample.argmax(-1) // 512, minlength=8)
    assert drawn.min() > 200  # 250 are expected in each eighth


def cast(inputs, dtype):
    """Return the inputs, where arrays of floats have been rounded to float16 and have this dtype."""
    floats = [isinstance(x, np.ndarray) and x.dtype == float for x in inputs]
    return [x.astype("float16").astype(dtype) if is_f else x for x, is_f in zip(inputs, floats, strict=True)]


def outputs_and_gradients(name, inputs):
    """Return the output of a pair and its gradients, for a gradient of the output of 0.5 everywhere."""
    y, cache = getattr(F, name)(*inputs)
    grads = getattr(F, f"{name}_backward")(np.full(y.shape, 0.5, y.dtype), cache)
    return [y, *(dx for dx in (grads if isinstance(grads, tuple) else (grads,)) if dx is not None)]

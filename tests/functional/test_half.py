"""float16: sums are added in float32, so they equal those of float32 up to the rounding of the result."""

import numpy as np
import pytest

from npformer import functional as F

ONES, ZEROS = np.ones(8), np.zeros(8)
LARGE = np.arange(24.0).reshape(3, 8) * 2000  # its squares are above the largest float16, 65,504
MANY = np.zeros((1, 70_000))


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("layer_norm", (LARGE, ONES, ZEROS)),
        ("rms_norm", (LARGE, ONES)),
        ("batch_norm", (LARGE, ONES, ZEROS)),
        ("softmax", (MANY,)),
        ("log_softmax", (MANY,)),
        ("cross_entropy", (MANY.reshape(-1, 2), np.zeros(35_000, int))),
        ("kl_divergence", (MANY, MANY + 1 / 70_000)),
        ("l2_distance", (LARGE / 1000, LARGE / LARGE.sum(-1, keepdims=True))),
    ],
)
def test_half_precision_rounds_only_the_result(name, inputs):
    half = [x.astype("float16") if x.dtype == float else x for x in inputs]
    single = [x.astype("float32") if x.dtype == "float16" else x for x in half]
    for found, exact in zip(
        outputs_and_gradients(name, half), outputs_and_gradients(name, single), strict=True
    ):
        assert found.dtype == "float16"
        np.testing.assert_array_equal(found, exact.astype("float16"))


def outputs_and_gradients(name, inputs):
    """Return the output of a pair and its gradients, for a gradient of the output of 0.5 everywhere."""
    y, cache = getattr(F, name)(*inputs)
    grads = getattr(F, f"{name}_backward")(np.full(y.shape, 0.5, y.dtype), cache)
    return [y, *(grads if isinstance(grads, tuple) else (grads,))]

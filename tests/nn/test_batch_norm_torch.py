"""PyTorch as the oracle of batch norm: values, gradients and running statistics to 1e-10, in both modes."""

import numpy as np
import pytest

from npformer.nn import BatchNorm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

rng = np.random.default_rng(0)
WORDS = np.array([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.1, 0.5])
@pytest.mark.parametrize("mask", [None, WORDS])
def test_three_training_batches_and_then_one_in_evaluation_mode(mask, momentum):
    """PyTorch's layer has no mask, so it gets only the real tokens."""
    ours = BatchNorm(4, momentum=momentum, eps=1e-4, dtype=np.float64)
    theirs = torch.nn.BatchNorm1d(4, momentum=momentum, eps=1e-4, dtype=torch.float64)
    ours.gain.value[:], ours.bias.value[:] = rng.standard_normal((2, 4))
    theirs.load_state_dict(
        {"weight": torch.tensor(ours.gain.value), "bias": torch.tensor(ours.bias.value)}, strict=False
    )
    words = np.ones_like(WORDS) if mask is None else mask
    for train in (True, True, True, False):
        theirs.train(train)
        x, dy = rng.standard_normal((2, 3, 5, 4))
        dy[~words] = 0
        y, cache = ours.forward(x, mask=mask, train=train)
        rows = torch.tensor(x[words], requires_grad=True)
        expected = theirs(rows)
        assert_close(y[words], expected)
        expected.backward(torch.tensor(dy[words]))
        assert_close(ours.backward(dy, cache)[words], rows.grad)
        ours.update(cache)
        assert_close(ours.running_mean, theirs.running_mean)
        assert_close(ours.running_variance, theirs.running_var)
    assert_close(ours.gain.grad, theirs.weight.grad)
    assert_close(ours.bias.grad, theirs.bias.grad)

"""Normalization layers: layer norm, "add & norm" and RMS norm, and batch norm for comparison."""

from typing import Any

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.batch_norm import BatchNormCache, Statistics, batch_norm, batch_norm_backward
from npformer.functional.norm import LayerNormCache
from npformer.functional.residual import AddNormCache
from npformer.functional.rms_norm import RMSNormCache
from npformer.kernels import (
    add_norm,
    add_norm_backward,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
)
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.context import INFERENCE, Context
from npformer.nn.module import Module, Parameter
from npformer.validation import require_count

NormCache = LayerNormCache | RMSNormCache


class LayerNorm(Module):
    """Layer normalization with a learned gain and bias.

        y = gain xhat + bias,  xhat = (x - mean) / sqrt(variance + eps)

    Mean and variance are computed over the last axis. Shapes: x (..., D) -> y (..., D).

    Args:
        d_model: The width D.
        eps: A small number that prevents a division by zero.
        bias: Learn a bias. Without one, it is 0.
        dtype: The dtype of the parameters.

    Source: Ba et al. 2016, section 3.
    """

    def __init__(
        self, d_model: int, *, eps: float = 1e-5, bias: bool = True, dtype: Any = np.float32
    ) -> None:
        require_count("d_model", d_model)
        self.eps = eps
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype)) if bias else None

    def forward(self, x: Array) -> tuple[Array, LayerNormCache]:
        """Return y, of shape (..., D), and the cache."""
        gain = self.gain.value
        check_floats(x, (..., len(gain)), "LayerNorm")
        bias = self.bias.value if self.bias is not None else array_module(gain).zeros(gain.shape, gain.dtype)
        return layer_norm(x, gain, bias, self.eps)

    def backward(self, dy: Array, cache: LayerNormCache) -> Array:
        """Return dx, of shape (..., D)."""
        check_gradient(dy, cache.xhat.shape, "LayerNorm")
        dx, dgain, dbias = layer_norm_backward(dy, cache)
        self.gain.accumulate(dgain)
        if self.bias is not None:
            self.bias.accumulate(dbias)
        return dx


class AddNorm(Module):
    """The layer y = norm(x + dropout(h)), where h is the output of a sublayer and x its input.

    Shapes: x, h, y (..., D).

    Args:
        d_model: The width D.
        dropout: The dropout probability of h.
        eps: The eps of the layer norm.
        bias: Learn a bias in the layer norm. Without one, it is 0.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        eps: float = 1e-5,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        require_count("d_model", d_model)
        self.dropout, self.eps = dropout, eps
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype)) if bias else None

    def forward(self, x: Array, h: Array, context: Context = INFERENCE) -> tuple[Array, AddNormCache]:
        """Compute y = norm(x + dropout(h)).

        Args:
            x: The input of the sublayer, of shape (..., D).
            h: The output of the sublayer, of shape (..., D).
            context: The settings of the forward pass.

        Returns:
            y, of shape (..., D), and the cache.
        """
        gain = self.gain.value
        check_floats(x, (..., len(gain)), "AddNorm")
        check_floats(h, x.shape, "AddNorm", "h")
        bias = self.bias.value if self.bias is not None else array_module(gain).zeros(gain.shape, gain.dtype)
        return add_norm(x, h, gain, bias, self.eps, context.dropout(self.dropout), context.rng)

    def backward(self, dy: Array, cache: AddNormCache) -> tuple[Array, Array]:
        """Return the gradients (dx, dh), each of shape (..., D)."""
        check_gradient(dy, cache.norm.xhat.shape, "AddNorm")
        dx, dh, dgain, dbias = add_norm_backward(dy, cache)
        self.gain.accumulate(dgain)
        if self.bias is not None:
            self.bias.accumulate(dbias)
        return dx, dh


class RMSNorm(Module):
    """RMS normalization with a learned gain: layer norm without its mean and without its bias.

        y = gain xhat,  xhat = x / sqrt(mean(x²) + eps)

    The mean is computed over the last axis. Shapes: x (..., D) -> y (..., D).

    Args:
        d_model: The width D.
        eps: A small number that prevents a division by zero.
        dtype: The dtype of the parameters.

    Source: Zhang and Sennrich 2019, section 4.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, dtype: Any = np.float32) -> None:
        require_count("d_model", d_model)
        self.eps = eps
        self.gain = Parameter(np.ones(d_model, dtype))

    def forward(self, x: Array) -> tuple[Array, RMSNormCache]:
        """Return y, of shape (..., D), and the cache."""
        check_floats(x, (..., len(self.gain.value)), "RMSNorm")
        return rms_norm(x, self.gain.value, self.eps)

    def backward(self, dy: Array, cache: RMSNormCache) -> Array:
        """Return dx, of shape (..., D)."""
        check_gradient(dy, cache.xhat.shape, "RMSNorm")
        dx, dgain = rms_norm_backward(dy, cache)
        self.gain.accumulate(dgain)
        return dx


class BatchNorm(Module):
    """Batch normalization with a learned gain and bias, and with running statistics.

        y = gain xhat + bias,  xhat = (x - mean) / sqrt(variance + eps)

    With train=True, mean and variance are computed over the tokens of the batch. Otherwise they are the
    running statistics, so that the output of a token does not depend on the other sentences. The forward pass
    does not change the running statistics. Call update to change them:

        y, cache = norm.forward(x, mask=mask, train=True)
        norm.update(cache)

    The running statistics are not parameters: they have no gradient, and state_dict() does not contain them.
    Shapes: x (..., D), mask (...) bool, True at tokens and False at padding -> y (..., D).

    Args:
        d_model: The width D.
        eps: A small number that prevents a division by zero.
        momentum: The weight of the newest batch in the running statistics.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the mask has another dtype or shape.

    Source: Ioffe and Szegedy 2015.
    """

    def __init__(
        self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1, dtype: Any = np.float32
    ) -> None:
        require_count("d_model", d_model)
        self.eps = eps
        self.momentum = momentum
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype))
        self.running_mean = np.zeros(d_model, dtype)
        self.running_variance = np.ones(d_model, dtype)

    def forward(
        self, x: Array, *, mask: Array | None = None, train: bool = False
    ) -> tuple[Array, BatchNormCache]:
        """Normalize x with the statistics of the batch, or with the running statistics.

        Args:
            x: The input, of shape (..., D).
            mask: Bool, of shape (...). True at tokens and False at padding. None if there is no padding.
            train: True uses the statistics of the batch, False the running statistics.

        Returns:
            y, of shape (..., D), and the cache.
        """
        check_floats(x, (..., len(self.gain.value)), "BatchNorm")
        statistics = None if train else Statistics(self.running_mean, self.running_variance)
        return batch_norm(x, self.gain.value, self.bias.value, self.eps, mask=mask, statistics=statistics)

    def backward(self, dy: Array, cache: BatchNormCache) -> Array:
        """Return dx, of shape (..., D)."""
        check_gradient(dy, cache.xhat.shape, "BatchNorm")
        dx, dgain, dbias = batch_norm_backward(dy, cache)
        self.gain.accumulate(dgain)
        self.bias.accumulate(dbias)
        return dx

    def update(self, cache: BatchNormCache) -> None:
        """Move the running statistics towards the statistics of a batch, in place.

        The running variance is a moving average of the unbiased variance, which divides the sum of N squares
        by N - 1 and not by N. `cache` is the cache of forward with train=True.
        """
        n_tokens = 0 if cache.share is None else int((cache.share > 0).sum())  # N
        if n_tokens == 0:  # no statistics were computed: train was False, or all tokens are padding
            return
        mean, variance = cache.statistics
        unbiased = variance * (n_tokens / max(1, n_tokens - 1))
        self.running_mean += self.momentum * (mean - self.running_mean)
        self.running_variance += self.momentum * (unbiased - self.running_variance)

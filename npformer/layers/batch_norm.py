"""BatchNorm: batch normalization with a learned gain and bias, and statistics for when there is no batch."""

import numpy as np

from npformer.functional.batch_norm import Statistics, batch_norm, batch_norm_backward
from npformer.module import Module, Parameter


class BatchNorm(Module):
    """y = gain xhat + bias, with xhat = (x - mean) / sqrt(variance + eps) over the words of the batch.

    While training, mean and variance are the batch's; otherwise the running ones, so that a word's output
    no longer depends on its company. forward changes nothing: to move the running ones is a step of its own,

        y, cache = norm.forward(x, mask=mask, train=True)
        norm.update(cache)

    They are settings of the layer, not parameters: no gradient reaches them, and state() leaves them out.
    Shapes: x (..., D), mask (...) bool, True at the words -> y (..., D).
    Errors: UserError for a mask of another dtype or shape. Source: Ioffe and Szegedy 2015.
    """

    def __init__(self, d_model, *, eps=1e-5, momentum=0.1, dtype=np.float32):
        self.eps = eps
        self.momentum = momentum  # the share of the newest batch in the running statistics
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype))
        self.running_mean = np.zeros(d_model, dtype)
        self.running_variance = np.ones(d_model, dtype)

    def forward(self, x, *, mask=None, train=False):
        """Returns (y, cache)."""
        given = None if train else Statistics(self.running_mean, self.running_variance)
        return batch_norm(x, self.gain.value, self.bias.value, self.eps, mask=mask, given=given)

    def backward(self, dy, cache):
        """Returns dx."""
        dx, dgain, dbias = batch_norm_backward(dy, cache)
        self.gain.grad += dgain
        self.bias.grad += dbias
        return dx

    def update(self, cache):
        """Move the running statistics towards those of a batch, in place.

        The variance that is kept is the unbiased one, by N - 1 and not N: an estimate for all batches.
        """
        words = 0 if cache.share is None else int((cache.share > 0).sum())  # N
        if words == 0:  # nothing was measured: the cache is that of train=False, or of padding alone
            return
        mean, variance = cache.statistics
        unbiased = variance * (words / max(1, words - 1))
        self.running_mean += self.momentum * (mean - self.running_mean)
        self.running_variance += self.momentum * (unbiased - self.running_variance)

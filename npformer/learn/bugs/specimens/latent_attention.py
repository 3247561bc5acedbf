"""A specimen with a bug: latent attention."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import softmax, softmax_backward
from npformer.nn import Linear
from npformer.nn.module import Module


class LatentAttentionCache(NamedTuple):
    """The cache of LatentAttention."""

    telling: Any
    pointing: Any
    v: Any  # (B, S, L)
    latent: Any  # (B, S) the importance of each token
    active: Any  # (B, S, S) the attention of each token to all tokens
    weights: Any  # (B, S) the weight of each token
    length: Any  # (B, 1)


class LatentAttention(Module):
    """A sentence as one vector: y = Σ_j weights_j v_j, with weights from two stages.

    latent = softmax(u · e_j) is the importance of each token; row i of active = softmax(e_i V) says which
    tokens token i attends to. "columns": w = activeᵀ latent weights the tokens that important tokens attend
    to. "rows": w = active latent weights the tokens that attend to important ones. The weights are w,
    divided by their sum.
    Shapes: e (B, S, D), v (B, S, L), with S places at most -> y (B, L).
    """

    def __init__(self, d_model=8, places=5, *, orientation="columns", rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.orientation = orientation
        self.telling = Linear(d_model, 1, rng=rng, dtype=dtype)
        self.pointing = Linear(d_model, places, rng=rng, dtype=dtype)

    def forward(self, e, v):
        """Return (y, cache)."""
        scores, telling = self.telling.forward(e)  # (B, S, 1)
        places, pointing = self.pointing.forward(e)  # (B, S, S)
        latent, _ = softmax(scores[..., 0])  # (B, S)
        active, _ = softmax(places)  # (B, S, S)
        turned = active.swapaxes(-1, -2) if self.orientation == "columns" else active
        w = (turned @ latent[..., None])[..., 0]  # (B, S)
        length = w.sum(-1, keepdims=True)  # (B, 1)
        weights = w / length
        y = (weights[:, None] @ v)[:, 0]  # (B, L)
        return y, LatentAttentionCache(telling, pointing, v, latent, active, weights, length)

    def backward(self, dy, cache):
        """Return (de, dv)."""
        _, _, v, latent, active, weights, length = cache
        # y = Σ_j weights_j v_j
        dweights = (v @ dy[..., None])[..., 0]  # (B, S)
        dv = weights[..., None] * dy[:, None]  # (B, S, L)
        # weights = w / length
        dw = dweights / length
        if self.orientation == "columns":
            # w_j = Σ_i latent_i active_ij
            dlatent = (active @ dw[..., None])[..., 0]  # (B, S)
            dactive = latent[..., :, None] * dw[..., None, :]  # (B, S, S)
        else:
            # w_i = Σ_j active_ij latent_j
            dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]  # (B, S)
            dactive = dw[..., :, None] * latent[..., None, :]  # (B, S, S)
        # active = softmax(places), latent = softmax(scores): both depend on e
        de = self.pointing.backward(softmax_backward(dactive, active), cache.pointing)
        dscores = softmax_backward(dlatent, latent)
        return de + self.telling.backward(dscores[..., None], cache.telling), dv

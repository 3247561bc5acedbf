"""Attention rollout: how much of each input token reaches each position, through all layers."""

from typing import Any

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.model_attention import layers_of, require_weights


def attention_rollout(weights: Any, *, example: int | None = None) -> Array:
    """Compute attention rollout, the products of the layers' attention with their residual connections.

        A_l = (mean over heads of W_l + I) / 2, with rows that add up to 1
        R_l = A_l R_{l-1}, and R_{-1} = I

    R_l[t, s] is the share of input token s in position t after layer l, if each head passes on its inputs
    unchanged. Values, norms and feed-forward networks are not considered. The gradients of a model say how
    much an input changes an output; rollout only says how far it can reach.

    Args:
        weights: The self-attention weights of all layers, in any form that layers_of reads.
        example: The index of the example in the batch. It may be left out if there is only one.

    Returns:
        The rollout after each layer, (L, T, T). Every row adds up to 1.

    Raises:
        UserError: If the weights are not self-attention, or their rows do not add up to 1.

    Source: Abnar and Zuidema 2020, section 3.
    """
    layers = layers_of(weights, example=example)
    _, n_queries, n_keys = layers[0].shape
    if n_queries != n_keys:
        raise UserError(
            f"the weights have {n_queries} queries and {n_keys} keys: rollout needs self-attention, in which "
            "queries and keys are the same tokens"
        )
    xp = array_module(layers[0])
    identity = xp.eye(n_keys)  # (T, T)
    rollout = identity
    results = []
    for index, layer in enumerate(layers):
        require_weights(layer, f"layer {index}")
        mixing = layer.mean(0, dtype=np.float64) + identity  # (T, T)
        rollout = (
            mixing / mixing.sum(-1, keepdims=True) @ rollout
        )  # the sum is 2, or 1 for a fully masked query
        results.append(rollout)
    stacked: Array = xp.stack(results)
    return stacked

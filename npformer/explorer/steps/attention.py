"""The steps of multi-head attention: projections, heads, scores, mask, weights, weighted sums, output."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.explorer.call_tree import Call
from npformer.explorer.steps.heads import record_heads
from npformer.explorer.steps.recording import RecordedStep, Recording, emits
from npformer.explorer.steps.relative import record_relative_scores, record_relative_sums
from npformer.functional.attention import AttentionCache, attention_backward
from npformer.functional.heads import split_heads
from npformer.functional.linear import linear_backward
from npformer.functional.masks import mask_scores, mask_scores_backward
from npformer.functional.relative import (
    ByDistanceCache,
    relative_attention_by_distance_backward,
    spread_by_distance,
)
from npformer.functional.softmax import softmax_backward
from npformer.functional.tutorial_masks import (
    TutorialAttentionCache,
    fill_scores,
    fill_scores_backward,
    tutorial_attention_backward,
)
from npformer.nn import MultiHeadAttention, RelativeAttention
from npformer.nn.attention import TutorialAttention

AnyAttentionCache = AttentionCache | ByDistanceCache | TutorialAttentionCache

# the backward passes of attention, by the class of its cache; attention_backward for the others
_BACKWARD: dict[type, Any] = {
    ByDistanceCache: relative_attention_by_distance_backward,
    TutorialAttentionCache: tutorial_attention_backward,
}


@emits(MultiHeadAttention, RelativeAttention, TutorialAttention)
def _emit_attention(recording: Recording, call: Call, path: str) -> None:
    module: Any = call.module
    output, cache = call.child(module.output), call.cache.attention
    is_relative = isinstance(module, RelativeAttention)
    # y = Concat(heads) Wo
    merged, dmerged = (call.output, call.d_output) if output is None else (output.inputs[0], output.d_inputs)
    z, dz = split_heads(merged, module.n_heads), split_heads(dmerged, module.n_heads)  # (1, H, T, L)
    dq, dk, dv = _BACKWARD.get(type(cache), attention_backward)(dz, cache)[:3]
    q, k, v = record_heads(recording, call, path, (dq, dk, dv))
    dweights, dmasked, dscores = _gradients_of_weights(dz, cache)

    at = f"{path}.attention"
    record_scores = record_relative_scores if is_relative else _record_scores
    step = record_scores(recording, call, at, (q, k), dscores)
    step = _record_mask(recording, at, cache, step, dmasked)
    weights = recording.record("softmax", f"{at}.softmax", cache.weights, dweights, [step])
    recording.alias(f"{at}.weights", weights)
    record_sums = record_relative_sums if is_relative else _record_sums
    step = record_sums(recording, call, at, (weights, v), (z, dz))
    note = {"kind": "merge_heads"}
    recording.record("rearrange", f"{path}.merged", merged, dmerged, [step], note, "merge_heads")
    if output is not None:
        recording.emit(output)


def _record_scores(
    recording: Recording, call: Call, at: str, heads: tuple[RecordedStep, RecordedStep], dscores: Array
) -> RecordedStep:
    """Add the scores q kᵀ scale of all heads, (1, H, T, S), from the steps of q and k."""
    cache = call.cache.attention
    note = {"scale": cache.scale}
    return recording.record("scores", f"{at}.scores", cache.scores, dscores, list(heads), note)


def _record_sums(
    recording: Recording,
    call: Call,
    at: str,
    inputs: tuple[RecordedStep, RecordedStep],
    output: tuple[Array, Array],
) -> RecordedStep:
    """Add the weighted sums z = weights v of all heads, (1, H, T, L), from the steps of weights and v."""
    z, dz = output
    return recording.record("weighted_sum", f"{at}.z", z, dz, list(inputs))


def _gradients_of_weights(dz: Array, cache: AnyAttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients of the weights, and of the scores after and before the mask, (1, H, T, S)."""
    # z = weights v
    dweights = dz @ cache.v.swapaxes(-1, -2)
    if isinstance(cache, ByDistanceCache) and cache.value_product is not None:
        # z += share value_positions, where share = collect_by_distance(weights)
        dshare, _, _ = linear_backward(dz, cache.value_product)
        dweights = dweights + spread_by_distance(dshare, cache.distance)
    dmasked = softmax_backward(dweights, cache.weights)
    if isinstance(cache, TutorialAttentionCache):
        return dweights, dmasked, fill_scores_backward(dmasked, cache.fill)
    return dweights, dmasked, mask_scores_backward(dmasked, cache.mask)


def _record_mask(
    recording: Recording, at: str, cache: AnyAttentionCache, step: RecordedStep, grad: Array
) -> RecordedStep:
    """Add the step of the masked scores, if there is a mask, and return the last step."""
    if cache.mask is None:
        return step
    fill: Any = "-Infinity"
    how, scores = "replace", mask_scores(cache.scores, cache.mask)[0]
    if isinstance(cache, TutorialAttentionCache):
        fill, how, _ = masking = cache.fill.masking
        scores, _ = fill_scores(cache.scores, cache.mask, masking, cache.fill.query_mask)
    allowed = np.broadcast_to(cache.mask, scores.shape)[0, 0]  # (T, S)
    note = {"allowed": allowed.astype(int).ravel().tolist(), "fill": fill, "how": how}
    return recording.record("mask", f"{at}.masked", scores, grad, [step], note)

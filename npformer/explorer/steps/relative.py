"""The steps that relative positions add to attention: a vector for each distance of a key from its query."""

from __future__ import annotations

from typing import Any

from npformer.backend import Array
from npformer.explorer.call_tree import Call
from npformer.explorer.steps.recording import RecordedStep, Recording
from npformer.functional.relative import collect_by_distance, spread_by_distance


def record_relative_scores(
    recording: Recording, call: Call, at: str, heads: tuple[RecordedStep, RecordedStep], dscores: Array
) -> RecordedStep:
    """Add the steps of scores = (q kᵀ + q kposᵀ) scale, and return the last one.

    Args:
        recording: The recording.
        call: The call of the attention layer.
        at: The path of its attention.
        heads: The steps of q and k, of shape (H, T, K).
        dscores: The gradient of the scores before the mask, of shape (1, H, T, S).
    """
    module: Any = call.module
    cache = call.cache.attention
    product = cache.key_product
    if product is None:
        note = {"scale": cache.scale}
        return recording.record("scores", f"{at}.scores", cache.scores, dscores, list(heads), note)
    q, k = heads
    # scores = unscaled scale
    dunscaled = dscores * cache.scale
    key_scores = cache.q @ cache.k.swapaxes(-1, -2)  # (1, H, T, S)
    note = {"scale": 1.0}
    of_keys = recording.record("scores", f"{at}.key_scores", key_scores, dunscaled, [q, k], note)
    # products = q kposᵀ
    products = cache.q @ product.weight  # (1, H, T, R)
    dproducts = collect_by_distance(dunscaled, cache.distance, products.shape[-1])
    dvectors = (cache.q.swapaxes(-1, -2) @ dproducts).sum((0, 1))  # (K, R)
    positions = recording.parameter(module.key_positions)
    vectors = recording.record_transposed(f"{at}.key_product.weight", product.weight, dvectors, positions)
    step = recording.record(
        "linear", f"{at}.key_product.y", products, dproducts, [q, vectors], line="relative_products"
    )
    spread = spread_by_distance(products, cache.distance)  # (1, H, T, S)
    note = {"kind": "spread_by_distance", "maxDistance": module.max_distance}
    of_positions = recording.record(
        "rearrange", f"{at}.position_scores", spread, dunscaled, [step], note, "spread_by_distance"
    )
    terms: list[RecordedStep | None] = [of_keys, of_positions]
    unscaled = recording.record(
        "add", f"{at}.unscaled_scores", key_scores + spread, dunscaled, terms, line="relative_scores"
    )
    note = {"factor": cache.scale, "name": "scale"}
    return recording.record("factor", f"{at}.scores", cache.scores, dscores, [unscaled], note, "scale_scores")


def record_relative_sums(
    recording: Recording,
    call: Call,
    at: str,
    inputs: tuple[RecordedStep, RecordedStep],
    output: tuple[Array, Array],
) -> RecordedStep:
    """Add the steps of z = weights v + share vpos, and return the last one.

    Args:
        recording: The recording.
        call: The call of the attention layer.
        at: The path of its attention.
        inputs: The steps of the weights (H, T, S) and of v (H, S, L).
        output: z and its gradient, of shape (1, H, T, L).
    """
    module: Any = call.module
    cache, (weights, v), (z, dz) = call.cache.attention, inputs, output
    product = cache.value_product
    if product is None:
        return recording.record("weighted_sum", f"{at}.z", z, dz, [weights, v])
    of_values = recording.record("weighted_sum", f"{at}.value_sum", cache.weights @ cache.v, dz, [weights, v])
    share = collect_by_distance(cache.weights, cache.distance, len(product.weight))  # (1, H, T, R)
    dshare = dz @ product.weight.T
    note = {"maxDistance": module.max_distance}
    step = recording.record("collect_by_distance", f"{at}.share", share, dshare, [weights], note)
    vectors = recording.parameter(module.value_positions)
    of_positions = recording.record(
        "linear", f"{at}.value_product.y", share @ product.weight, dz, [step, vectors], line="relative_values"
    )
    return recording.record("add", f"{at}.z", z, dz, [of_values, of_positions], line="relative_sum")

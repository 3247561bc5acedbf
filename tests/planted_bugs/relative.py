"""Bugs in relative positions."""

BUGS = {
    "functional/relative_bias.py": {
        "return embedding_backward(dbias.transpose(1, 2, 0), cache.embedding)": {
            "relative bias: heads and keys swapped": "(1, 2, 0) → (2, 1, 0)"
        },
        "xp.where(distance < 0, half, 0)": {
            "relative bias: the sides swapped": "distance < 0 → distance > 0"
        },
        "abs(distance) if both_sides else xp.maximum(distance, 0)": {
            "relative bias: keys behind a decoder's query mirrored": "abs(distance)"
        },
        "half = n_buckets // 2 if both_sides else n_buckets": {
            "relative bias: a decoder with half of the buckets": "half = n_buckets // 2"
        },
        "xp.minimum(n_exact + share.astype(np.int64), half - 1)": {
            "relative bias: far distances without their buckets": "half - 1 + 0 * distance"
        },
    },
    "nn/attention/bucketed.py": {
        "self.table.accumulate(relative_bias_backward(dscores.sum(0), cache.bias))": {
            "BucketedAttention: bias of the first sentence only": "dscores.sum(0) → dscores[0]",
            "BucketedAttention: gradient of the shared table overwritten": (
                "self.table.grad = relative_bias_backward(dscores.sum(0), cache.bias)"
            ),
        },
        "dscores = dscores * self._factor": {"BucketedAttention: scale left out": "pass"},
        "start=n_keys - n_queries": {"BucketedAttention: positions restart in decoding": "start=0"},
    },
    "models/t5.py": {
        "layer.self_attention.table = layers[0].self_attention.table": {"T5: a table for each layer": "pass"},
    },
    "nn/output.py": {
        "self.output.backward(dy, cache[0]) * self.factor": {
            "ScaledOutput: factor left out": " * self.factor → "
        },
        "soft_cap_backward(dy, cap_cache), output_cache)": {
            "CappedOutput: cap skipped": "soft_cap_backward(dy, cap_cache) → dy"
        },
    },
    "functional/relative.py": {
        "dq, dkeys, dvalues = attention_backward(dy[..., None, :], cache.attention)": {
            "relative: keys and values swapped": "dkeys, dvalues → dvalues, dkeys"
        },
        "dv, dvalue_positions = _add_positions_backward(dvalues, cache.value_positions)": {
            "relative: the values' position vectors get the keys' gradient": (
                "cache.value_positions → cache.key_positions"
            )
        },
        "dx = dy.sum(-3)": {
            "relative: dk of one query only": "dx = dy[..., 0, :, :]",
            "relative: dk summed over keys": "dx = dy.sum(-2)",
        },
        "return dx, embedding_backward(dy.sum(tuple(range(dy.ndim - 3))), cache)": {
            "relative: position vectors get the gradient of one head": (
                "dy.sum(tuple(range(dy.ndim - 3))) → dy[(0,) * (dy.ndim - 3)]"
            ),
            "relative: position vectors get the mean over heads": "dy.sum → dy.mean",
            "relative: position vectors get no gradient": "return dx, None",
        },
        "ddropped = ddropped + spread_by_distance(dshare, distance)": {
            "by distance: no gradient from the values' positions to the weights": (
                "spread_by_distance → 0 * spread_by_distance"
            ),
            "by distance: weights get a gradient from the values' positions only": (
                "ddropped = spread_by_distance(dshare, distance)"
            ),
            "by distance: spread to the other side": ", distance → , distance.max() - distance",
        },
        "dv = weights_cache.dropped.swapaxes(-1, -2) @ dy": {
            "by distance: dv before dropout": "dropped → weights"
        },
        "dscores = attention_weights_backward(ddropped, weights_cache) * scale": {
            "by distance: scale left out": "weights_cache) * scale → weights_cache)",
            "by distance: softmax skipped": "dscores = ddropped * scale",
        },
        "dproducts = collect_by_distance(dscores, distance, key_product.weight.shape[1])": {
            "by distance: collected from the other side": (
                "dscores, distance → dscores, distance.max() - distance"
            ),
            "by distance: position vectors get the weights' gradient": "dscores → ddropped",
        },
        "dq, dkey_positions = dq + dq_positions, dkey_positions.T": {
            "by distance: no gradient from the positions to the queries": "dkey_positions = dkey_positions.T",
            "by distance: vectors transposed": "dq = dq + dq_positions",
        },
        "return dq, dk, dv, dkey_positions, dvalue_positions\n": {
            "by distance: keys get the queries' gradient": "dq, dk → dk, dq"
        },
    },
    "nn/attention/relative.py": {
        "self.key_positions.accumulate(dkey_positions)": {
            "RelativeAttention: keys' vectors overwritten": "self.key_positions.grad[...] = dkey_positions",
            "RelativeAttention: keys' vectors get the values' gradient": "dkey_positions → dvalue_positions",
        },
        "self.value_positions.accumulate(dvalue_positions)": {
            "RelativeAttention: values' vectors overwritten": (
                "self.value_positions.grad[...] = dvalue_positions"
            )
        },
        "return dq, dk, dv": {"RelativeAttention: keys and values swapped": "return dq, dv, dk"},
    },
}

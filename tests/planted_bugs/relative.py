"""Bugs in relative positions."""

BUGS = {
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

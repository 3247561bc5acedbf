"""Bugs in attention: the pure pair, masks, heads, and the multi-head layer."""

from planted_bugs.bug import Place

BUGS = {
    "functional/attention.py": {
        "ddropped = dy @ v.swap": {"attention: ddropped sign": "ddropped = -dy @ v.swap"},
        "dv = dropped.swapaxes(-1, -2) @ dy": {
            "attention: dv sign": "dv = -dropped.swapaxes(-1, -2) @ dy",
            "attention: dv transposed": "dv = dropped @ dy",
            "attention: dv from the weights before dropout": "dropped → weights",
        },
        "dweights = dropout_backward(ddropped, dropout_mask)": {
            "attention: dropout skipped": "dweights = ddropped"
        },
        "dscores = softmax_backward(dweights, weights)": {
            "attention: softmax of the dropped weights": ", weights → , dropped",
            "attention: softmax's diagonal only": "dscores = dweights * weights",
            "attention: softmax skipped": "dscores = dweights",
        },
        "dscores = dscores * scale": {
            "attention: scale left out": "dscores = dscores",
            "attention: divided by the scale": "dscores = dscores / scale",
        },
        "dq = dscores @ k": {"attention: dq without scale": "dq = dscores / scale @ k"},
        "dk = dscores.swapaxes(-1, -2) @ q": {
            "attention: dk scaled twice": "dk = dscores.swapaxes(-1, -2) @ q * scale",
            "attention: dk transposed": "dk = dscores @ q",
            "attention: dk from the keys": "dk = dscores.swapaxes(-1, -2) @ k",
        },
        "return sum_to_shape(dq, q.shape), sum_to_shape(dk, k.shape)": {
            "attention: dq and dk swapped": "return sum_to_shape(dk, q.shape), sum_to_shape(dq, k.shape)"
        },
    },
    "functional/masks.py": {
        "array_module(dscores).where(mask, dscores, 0)": {
            "masking: masked scores get a gradient": "dscores, 0 → dscores, dscores",
            "masking: only masked scores get a gradient": "dscores, 0 → 0, dscores",
        }
    },
    "functional/tutorial_masks.py": {
        "dscores = xp.where(mask, dscores, 0)": {
            "masking: replaced scores get a gradient": "dscores, 0 → dscores, dscores",
            "masking: only replaced scores get a gradient": "dscores, 0 → 0, dscores",
        },
        'if mask is not None and masking.how == "replace":': {
            "masking: scores with an added number get no gradient": "if mask is not None:"
        },
        "dscores = xp.where(query_mask, dscores, 0)": {
            "masking: masked queries get a gradient": "dscores = dscores"
        },
        Place('if query_mask is not None and masking.query == "before":', nth=2, of=2): {
            "masking: queries always masked before the softmax": "if query_mask is not None:"
        },
        'rows = query_mask if masking.query == "after" else None': {
            "masking: masked queries attend": "rows = None"
        },
        "dscores = fill_scores_backward(dscores, fill) * scale": {
            "attention of tutorials: mask skipped": "dscores = dscores * scale",
            "attention of tutorials: no scale": "(dscores, fill) * scale → (dscores, fill)",
        },
        "return sum_to_shape(dq, q.shape), sum_to_shape(dk, k.shape), dv": {
            "attention of tutorials: dq and dk swapped": (
                "return sum_to_shape(dk, q.shape), sum_to_shape(dq, k.shape), dv"
            )
        },
    },
    "functional/heads.py": {
        "x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)": {
            "heads: split by reshaping only": "x.reshape(batch, n_heads, length, width // n_heads)"
        },
        "x.swapaxes(1, 2).reshape(batch, length, n_heads * width)": {
            "heads: merged by reshaping only": "x.reshape(batch, length, n_heads * width)"
        },
        "xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)": {
            "heads: merged from the batch axis by reshaping only": (
                "x.reshape(-1, x.shape[1], n_heads * x.shape[2])"
            )
        },
    },
    "nn/attention/multi_head.py": {
        "dy = self.output.backward(dy, cache.output)": {
            "multi-head: Wo skipped": "self.output.backward(dy, cache.output)"
        },
        "dz = split_heads(unpack(dy, cache.packing), self.n_heads)": {
            "multi-head: dz reshaped, not split": "dz = dy.reshape(len(dy), self.n_heads, dy.shape[1], -1)"
        },
        "return sum(grads[1:], grads[0])": {
            "multi-head self: gradient through the queries": "return sum(grads[1:])",
            "multi-head self: gradient through the keys": "return grads[0] + grads[-1]",
            "multi-head self: gradient through the values": "return sum(grads[:2])",
            "multi-head: sum overwritten": "return grads[-1]",
            "multi-head: sum sign": "return grads[0] - sum(grads[1:])",
        },
        "return grads[0], sum(grads[2:], grads[1])": {
            "multi-head cross: gradient through the keys": "return grads[0], grads[-1]",
            "multi-head cross: gradient through the values": "return grads[0], grads[1]",
        },
        "return tuple(grads)": {
            "multi-head, separate values: keys and values swapped": "return grads[0], grads[2], grads[1]"
        },
        "dheads, grads = [dq, dk, dv], []": {"multi-head: dq and dk swapped": "dq, dk → dk, dq"},
        "zip(self.projections, cache.projections, strict=True)": {
            "multi-head: projections of keys and values swapped": (
                "cache.projections → (*cache.projections[:1], *cache.projections[:0:-1])"
            )
        },
        "projection.project_backward(dheads[:n], projection_cache)": {
            "multi-head, fused: the parts of another projection": "dheads[:n] → dheads[-n:]"
        },
    },
    "nn/attention/projections.py": {
        "[merge_heads(dpart) for dpart in dparts]": {
            "multi-head: dq reshaped, not merged": (
                "merge_heads(dpart) → dpart.reshape(len(dpart), dpart.shape[2], -1)"
            )
        },
        "activate_backward(pack(dy, cache.packing), cache.activation)": {
            "multi-head: activation skipped": "pack(dy, cache.packing)"
        },
        "array_module(merged[0]).concatenate(merged, -1)": {
            "multi-head, fused: parts in the wrong order": "merged, -1 → merged[::-1], -1",
            "multi-head, fused: last part lost": "merged, -1 → [*merged[:-1], 0 * merged[-1]], -1",
            "multi-head, fused: first part lost": "merged, -1 → [0 * merged[0], *merged[1:]], -1",
        },
    },
    "nn/attention/similarity.py": {
        "return dq + dk + dv": {
            "bare self-attention: gradient as query only": "return dq",
            "bare self-attention: no gradient as value": "return dq + dk",
        }
    },
}

"""Bugs in similarities as layers, in attention by given scores, and in recurrent attention."""

BUGS = {
    "functional/attend.py": {
        "dv = dropped.swapaxes(-1, -2) @ dy": {
            "attend: dv transposed": "dv = dropped @ dy",
            "attend: dv before dropout": "dv = weights_cache.weights.swapaxes(-1, -2) @ dy",
        },
        "dweights = dropout_backward(ddropped, dropout_mask)": {
            "attend: dropout skipped": "dweights = ddropped"
        },
        "return softmax_backward(dweights, weights)": {
            "attend: softmax skipped": "return dweights",
            "attend: softmax's diagonal only": "return dweights * weights",
        },
    },
    "functional/window.py": {
        "dlogit = sigmoid_backward(dp * lengths, share)": {
            "position: length left out": "dlogit = sigmoid_backward(dp, share)",
            "position: sigmoid's slope at the position": "share → share * lengths",
            "position: sigmoid skipped": "dlogit = dp * lengths",
        },
        "dtotal = dhidden * (1 - hidden * hidden)": {
            "position: tanh skipped": "dtotal = dhidden",
            "position: tanh instead of its slope": "dtotal = dhidden * (1 - hidden)",
        },
        "return dtotal @ weight.T, dweight, dv": {
            "position: dh through the wrong side of the weight": "weight.T → weight",
            "position: no gradient to the states": "return 0 * h, dweight, dv",
        },
        "dp = (dbell * bell * away).sum(-1) / sigma**2": {
            "Gaussian: dp sign": "dp = -(dbell * bell * away).sum(-1) / sigma**2",
            "Gaussian: sigma instead of its square": "sigma**2 → sigma",
            "Gaussian: the 2 left in": "sigma**2 → (2 * sigma**2)",
            "Gaussian: distance left out": "dp = (dbell * bell).sum(-1) / sigma**2",
            "Gaussian: bell left out of dp": "dp = (dbell * away).sum(-1) / sigma**2",
            "Gaussian: dp averaged over the tokens": "away).sum(-1 → away).mean(-1",
        },
        "dweights, dbell = dy * bell, dy * weights": {
            "Gaussian: bell and weights swapped": "dbell, dweights = dy * bell, dy * weights",
            "Gaussian: the bell left out of the weights' gradient": "dy * bell → dy",
        },
    },
    "nn/attention/similarity.py": {
        "dscores = dscores if self.scale is None else dscores * self.scale": {
            "Similarity: scale left out": "dscores = dscores"
        },
        "weight.accumulate(dweight)": {"Similarity: gradients overwritten": "weight.grad[...] = dweight"},
        "return dq, dk\n": {"Similarity: dq and dk swapped": "return dk, dq\n"},
        "zip(self.weights, dweights, strict=True)": {
            "Similarity: weights in another order": "self.weights → self.weights[::-1]"
        },
        "return dq, dk, dv": {"heads of any similarity: keys and values swapped": "return dq, dv, dk"},
        "dq, dk = self.similarity.backward": {
            "heads of any similarity: queries and keys swapped": "dq, dk → dk, dq"
        },
    },
    "nn/attention/multi_head.py": {
        "return attention_backward(dz, cache)": {
            "multi-head: gradients of attention in another order": "cache) → cache)[::-1]"
        }
    },
    "nn/attention/tutorial.py": {
        "return tutorial_attention_backward(dz, cache)": {
            "multi-head of tutorials: gradients in another order": "cache) → cache)[::-1]"
        }
    },
    "nn/attention/luong.py": {
        "return dqueries, dvalues + dkeys": {
            "global: the memory gets a gradient as values only": "return dqueries, dvalues",
            "global: the memory gets a gradient as keys only": "return dqueries, dkeys",
        },
        "return dqueries + dqueries_position, dvalues + dkeys": {
            "local-p: the memory gets a gradient as values only": "dvalues + dkeys → dvalues",
            "local-p: the memory gets a gradient as keys only": "dvalues + dkeys → dkeys",
            "local-p: no gradient from the position to the queries": "return dqueries, dvalues + dkeys",
            "local-p: no gradient from the scores to the queries": (
                "return dqueries_position, dvalues + dkeys"
            ),
        },
        "dvalues = cache.weights.swapaxes(-1, -2) @ dcontext": {
            "local-p: values weighted before the Gaussian": "weights → aligned"
        },
        "dscores = softmax_backward(daligned, cache.aligned)": {
            "local-p: softmax of the weights after the Gaussian": ".aligned → .weights",
            "local-p: the Gaussian skipped": "daligned → dweights",
        },
        "self.position_weight.accumulate(dweight)": {
            "local-p: W_p overwritten": "self.position_weight.grad[...] = dweight"
        },
        "self.position_v.accumulate(dv)": {"local-p: v_p overwritten": "self.position_v.grad[...] = dv"},
        "dboth = self.join.backward(dy * (1 - cache.y * cache.y), cache.join)": {
            "attentional state: tanh skipped": "dy * (1 - cache.y * cache.y) → dy",
            "attentional state: tanh instead of its slope": "y * cache.y → y",
        },
        "return dboth[..., : self.d_context], dboth[..., self.d_context :]": {
            "attentional state: context and state swapped": (
                "return dboth[..., -self.d_context :], dboth[..., : -self.d_context]"
            )
        },
    },
}

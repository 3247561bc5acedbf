"""Bugs in latent attention, and in the models that read recipes."""

BUGS = {
    "functional/latent.py": {
        "return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length": {
            "unit weights: the length treated as a constant": "return dy / length",
            "unit weights: sign of the length's gradient": "dy - slope → dy + slope",
            "unit weights: not divided": "True)) / length → True))",
        },
        'slope = 1 if measure == "sum" else y': {
            "unit weights: measures swapped": 'slope = y if measure == "sum" else 1'
        },
        "dv = weights[..., None] * dy[..., None, :]": {
            "latent attend: dv by the latent weights": "weights → latent"
        },
        "dw = unit_weights_backward(dweights, unit)": {
            "latent attend: w not divided in backward": "dw = dweights"
        },
        "dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]": {
            "latent attend, rows: D not transposed": "active.swapaxes(-1, -2) → active"
        },
        "dactive = dw[..., :, None] * latent[..., None, :]": {
            "latent attend, rows: dD transposed": "dactive = latent[..., :, None] * dw[..., None, :]"
        },
        "dlatent = (active @ dw[..., None])[..., 0]": {
            "latent attend, columns: D transposed": "active → active.swapaxes(-1, -2)"
        },
        "dactive = latent[..., :, None] * dw[..., None, :]": {
            "latent attend, columns: dD transposed": "dactive = dw[..., :, None] * latent[..., None, :]"
        },
        "return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv": {
            "latent attend: first softmax skipped": "softmax_backward(dlatent, latent) → dlatent",
            "latent attend: second softmax skipped": "softmax_backward(dactive, active) → dactive",
            "latent attend: second softmax of the first's weights": (
                "dactive, active → dactive, latent[..., None, :]"
            ),
        },
    },
    "nn/attention/latent.py": {
        "self.latent_weight.accumulate(dlatent_weight)": {
            "LatentAttention: u overwritten": "self.latent_weight.grad[...] = dlatent_weight"
        },
        "self.active_weight.accumulate(dactive_weight, at=(slice(None), slice(dactive_scores.shape[-1])))": {
            "LatentAttention: V overwritten": (
                "self.active_weight.grad[:, : dactive_scores.shape[-1]] = dactive_weight"
            ),
            "LatentAttention: V's gradient in the last columns": (
                "self.active_weight.grad[:, -dactive_scores.shape[-1] :] += dactive_weight"
            ),
        },
        "de = de + de_active": {"LatentAttention: gradient through V lost": "de = de + 0 * de_active"},
        "if cache.has_values else de + dvalues": {
            "LatentAttention: gradient through the values lost": "if cache.has_values else de"
        },
    },
    "models/if_then/reader.py": {
        "do = self.output.backward(dlogits, cache.output)": {"Answer: output skipped": "self. → 0 * self."},
        "self.reading.backward(dstates_trigger + dstates_action, cache.reading)": {
            "RecipeReader: no gradient from the action to the states": (
                "dstates_trigger + dstates_action → dstates"
            )
        },
        "self.tokens.backward(dx_trigger + dx_action + dx_reading, cache.tokens)": {
            "RecipeReader: no gradient from the action to the values": "dx_action + dx_reading → dx_reading",
            "RecipeReader: the encoder's gradient lost": "dx_action + dx_reading → dx_action",
        },
    },
    "models/if_then/descriptions.py": {
        "dmean = dmean + self.action.backward(": {
            "BagOfWords: the action's gradient overwrites the trigger's": "dmean + self → self"
        },
        "self.tokens.backward(cache.weights[:, :, None] * dmean[:, None], cache.tokens)": {
            "BagOfWords: sum instead of mean": "cache.weights[:, :, None] → (cache.weights[:, :, None] > 0)"
        },
        "cross_entropy_backward(dloss, action_cache)": {
            "ProgramLoss: the action's loss without dloss": "dloss → 1.0"
        },
    },
}

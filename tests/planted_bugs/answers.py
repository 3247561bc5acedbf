"""Bugs in LoRA, in quantized weights, in the losses of whole answers, and in speculative decoding."""

BUGS = {
    "functional/lora.py": {
        "db = scale * (h.T @ drows)": {"LoRA: db without the scale": "db = h.T @ drows"},
        "dh = scale * (drows @ b.T)": {"LoRA: dh without the scale": "dh = drows @ b.T"},
        "dx = drows @ weight.T + dh @ a.T": {
            "LoRA: dx of the frozen weight alone": "dx = drows @ weight.T",
            "LoRA: dx of the change alone": "dx = dh @ a.T",
        },
    },
    "nn/lora.py": {
        "        self.a.accumulate(da)\n": {"LoRALinear: a does not learn": ""},
        "y + self.bias.value": {"LoRALinear: bias left out": "y"},
        "layer.scale * (layer.a.value @ layer.b.value)": {
            "LoRA: merged without the scale": "layer.a.value @ layer.b.value"
        },
    },
    "functional/quantize.py": {
        "axis=0 if per": {"quantization: a scale for each row": "axis=1 if per"},
        "largest = 2 ** (bits - 1) - 1": {"quantization: the sign takes no bit": "largest = 2**bits - 1"},
    },
    "generation/speculative.py": {
        "rng.random() * q[kept][token] >= p[kept, token]": {
            "speculation: kept with the probability of the target": "rng.random() >= p[kept, token]",
            "speculation: p and q swapped": "rng.random() * p[kept, token] >= q[kept][token]",
        },
        "rest = np.maximum(p[kept] - q[kept], 0)": {
            "speculation: a rejected token is drawn again from p": "rest = p[kept]"
        },
        "layer_cache.length = min(layer_cache.length, len(text) - 1)": {
            "speculation: rejected tokens stay in the KV cache": "pass"
        },
        "int(draw_tokens(p[-1:], rng)[0])": {"speculation: last token from the first row": "p[-1:] → p[:1]"},
    },
    "functional/preferences.py": {
        "dmargin = -sigmoid(-margin)[0] * (dloss / len(margin))": {
            "DPO: sign of the margin in the derivative": "sigmoid(-margin) → sigmoid(margin)",
            "DPO: not averaged": " / len(margin) → ",
        },
        "return beta * dmargin, -beta * dmargin": {
            "DPO: the rejected answer rises": "-beta * dmargin → beta * dmargin"
        },
        "xp.where(margin.real > 0, 0, -margin) + ": {"DPO: overflow at a large margin": ""},
        "dlog_probs = beta * (1 - reference_ratio) - weight * ratio": {
            "GRPO: sign of the advantage": "- weight → + weight",
            "GRPO: sign of the divergence": "(1 - reference_ratio) → (reference_ratio - 1)",
            "GRPO: ratio left out": "weight * ratio → weight",
            "GRPO: divergence left out": "dlog_probs = -weight * ratio",
        },
        "xp.where(mask & ~is_clipped, gain, 0)": {"GRPO: clipped tokens learn": "mask & ~is_clipped → mask"},
        "xp.where(mask, each, 0)": {"GRPO: prompts learn": "each"},
        "rewards - rewards.mean(-1, keepdims=True)": {
            "advantages: mean of all questions": "rewards - rewards.mean()"
        },
    },
}

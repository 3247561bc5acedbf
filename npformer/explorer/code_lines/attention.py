"""The source lines of attention: scores, masks, weights and weighted sums."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_ATTENTION = "functional/attention.py"
_MASKS = "functional/masks.py"
_ATTENTION_LESSON = "05_1_scaled_dot_product_attention.py"
_ATTENTION_GRADIENT = "05_2_the_backward_pass_of_attention.py"
_MASK_LESSON = "06_1_masks.py"

LINES: dict[str, StepLines] = {
    "scores": StepLines(
        Quote(_ATTENTION, "attention", ("scores = q @ k.swapaxes(-1, -2) * scale  # (..., T, S)",)),
        Quote(
            _ATTENTION,
            "attention_backward",
            (
                "dscores = dscores * scale",
                "dq = dscores @ k  # (..., T, K)",
                "dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)",
            ),
        ),
        _ATTENTION_LESSON,
        _ATTENTION_GRADIENT,
    ),
    "mask": StepLines(
        Quote(_MASKS, "mask_scores", ("return array_module(scores).where(mask, scores, -math.inf), mask",)),
        Quote(
            _MASKS,
            "mask_scores_backward",
            ("return dscores if mask is None else array_module(dscores).where(mask, dscores, 0)",),
        ),
        _MASK_LESSON,
        _MASK_LESSON,
    ),
    "mask_queries": StepLines(
        Quote(
            "functional/tutorial_masks.py",
            "tutorial_attention",
            (
                'rows = query_mask if masking.query == "after" else None',
                "y, attended = attend(scores, v, rows, p=p, rng=rng)  # (..., T, L)",
            ),
        ),
        Quote(
            _ATTENTION,
            "attention_backward",
            ("dscores = softmax_backward(dweights, weights)  # (..., T, S)",),
        ),
        "06_4_query_masks_and_masks_from_vectors.py",
        "06_4_query_masks_and_masks_from_vectors.py",
    ),
    "softmax": StepLines(
        Quote(
            "functional/softmax.py",
            "softmax",
            (
                "e = xp.exp(x - peak)  # (..., N)",
                "total = e.sum(-1, keepdims=True)  # (..., 1)",
                "y = e / xp.where(total.real == 0, 1, total)",
            ),
        ),
        Quote(
            "functional/softmax.py",
            "softmax_backward",
            ("return y * (dy - (dy * y).sum(-1, keepdims=True))",),
        ),
        "04_1_attention_without_parameters.py",
        "04_2_the_gradient_of_self_attention.py",
    ),
    "weighted_sum": StepLines(
        Quote(_ATTENTION, "attention", ("y = dropped @ v  # (..., T, L)",)),
        Quote(
            _ATTENTION,
            "attention_backward",
            (
                "ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)",
                "dv = dropped.swapaxes(-1, -2) @ dy  # (..., S, L)",
            ),
        ),
        _ATTENTION_LESSON,
        _ATTENTION_GRADIENT,
    ),
}

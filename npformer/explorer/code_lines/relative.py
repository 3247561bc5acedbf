"""The source lines of relative positions."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_RELATIVE = "functional/relative.py"
_BY_DISTANCE_LESSON = "21_2_relative_positions_by_distance.py"

LINES: dict[str, StepLines] = {
    "relative_products": StepLines(
        Quote(_RELATIVE, "_scores", ("products, cache = linear(q, key_positions.T)  # (..., T, R)",)),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            (
                "dq_positions, dkey_positions, _ = linear_backward(dproducts, key_product)",
                "dq, dkey_positions = dq + dq_positions, dkey_positions.T",
            ),
        ),
        _BY_DISTANCE_LESSON,
        _BY_DISTANCE_LESSON,
    ),
    "spread_by_distance": StepLines(
        Quote(
            _RELATIVE,
            "spread_by_distance",
            ("return x.reshape(*x.shape[:-2], n_queries * n_distances)[..., index]",),
        ),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            ("dproducts = sum_to_shape(dproducts, (*q.shape[:-1], dproducts.shape[-1]))",),
        ),
        _BY_DISTANCE_LESSON,
        _BY_DISTANCE_LESSON,
    ),
    "relative_scores": StepLines(
        Quote(_RELATIVE, "_scores", ("return scores + spread_by_distance(products, distance), cache",)),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            ("dq = dscores @ k  # (..., T, K)", "dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)"),
        ),
        _BY_DISTANCE_LESSON,
        _BY_DISTANCE_LESSON,
    ),
    "scale_scores": StepLines(
        Quote(
            _RELATIVE,
            "relative_attention_by_distance",
            ("dropped, weights_cache = attention_weights(scores * scale, mask, **settings)  # (..., T, S)",),
        ),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            ("dscores = attention_weights_backward(ddropped, weights_cache) * scale  # (..., T, S)",),
        ),
        "05_3_what_the_scale_does.py",
        _BY_DISTANCE_LESSON,
    ),
    "collect_by_distance": StepLines(
        Quote(
            _RELATIVE,
            "relative_attention_by_distance",
            ("share = collect_by_distance(dropped, distance, len(value_positions))  # (..., T, R)",),
        ),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            ("ddropped = ddropped + spread_by_distance(dshare, distance)",),
        ),
        _BY_DISTANCE_LESSON,
        _BY_DISTANCE_LESSON,
    ),
    "relative_values": StepLines(
        Quote(
            _RELATIVE,
            "relative_attention_by_distance",
            ("y_positions, value_product = linear(share, value_positions)",),
        ),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            ("dshare, dvalue_positions, _ = linear_backward(dy_positions, value_product)",),
        ),
        _BY_DISTANCE_LESSON,
        _BY_DISTANCE_LESSON,
    ),
    "relative_sum": StepLines(
        Quote(_RELATIVE, "relative_attention_by_distance", ("y = y + y_positions",)),
        Quote(
            _RELATIVE,
            "relative_attention_by_distance_backward",
            (
                "ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)",
                "dv = weights_cache.dropped.swapaxes(-1, -2) @ dy  # (..., S, L)",
            ),
        ),
        _BY_DISTANCE_LESSON,
        _BY_DISTANCE_LESSON,
    ),
}

"""The source lines of the heads of attention: split, rotated, shared, switched off and merged."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_HEADS_LESSON = "07_2_all_heads_in_one_product.py"
_HEADS_GRADIENT = "07_3_the_output_projection_and_the_backward_pass.py"

LINES: dict[str, StepLines] = {
    "split_heads": StepLines(
        Quote(
            "functional/heads.py",
            "split_heads",
            ("return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)",),
        ),
        Quote(
            "nn/attention/projections.py",
            "Projection.project_backward",
            ("merged = [merge_heads(dpart) for dpart in dparts]",),
        ),
        _HEADS_LESSON,
        _HEADS_LESSON,
    ),
    "rotary_table": StepLines(
        Quote("functional/rotary.py", "rotary_table", ("return np.cos(angle), np.sin(angle)",)),
        None,
        "23_2_rotary_positions.py",
        "23_2_rotary_positions.py",
    ),
    "rotate": StepLines(
        Quote(
            "functional/rotary.py",
            "rotate",
            ("y[..., first] = a * cos - b * sin", "y[..., second] = a * sin + b * cos"),
        ),
        Quote("functional/rotary.py", "rotate_backward", ("dx, _ = rotate(dy, cos, -sin, layout)",)),
        "23_2_rotary_positions.py",
        "23_2_rotary_positions.py",
    ),
    "repeat_heads": StepLines(
        Quote(
            "functional/heads.py",
            "repeat_heads",
            ("return (x if n_repeats == 1 else array_module(x).repeat(x, n_repeats, axis=1)), n_repeats",),
        ),
        Quote(
            "functional/heads.py",
            "repeat_heads_backward",
            ("return dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)",),
        ),
        "23_4_grouped_query_attention.py",
        "23_4_grouped_query_attention.py",
    ),
    "head_switch": StepLines(
        Quote("learn/course/ambiguous.py", "ablated", ("blocks[list(heads)] = 0",)),
        None,
        "15_3_head_ablation.py",
        "15_3_head_ablation.py",
    ),
    "merge_heads": StepLines(
        Quote(
            "functional/heads.py",
            "merge_heads",
            ("return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)",),
        ),
        Quote(
            "nn/attention/multi_head.py",
            "MultiHeadAttention.backward",
            ("dz = split_heads(unpack(dy, cache.packing), self.n_heads)  # (B, H, T, L)",),
        ),
        _HEADS_LESSON,
        _HEADS_GRADIENT,
    ),
}

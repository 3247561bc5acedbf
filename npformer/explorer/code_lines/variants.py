"""The source lines of models with other settings, in place of those of the same keys."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_MASKS = "functional/tutorial_masks.py"
_SEQUENCES = "models/transformer/sequences.py"
_LINEAR_LESSON = "00_2_forward_and_backward.py"
_RESIDUAL_LESSON = "08_3_the_residual_connection.py"
_FILL_LESSON = "06_2_minus_infinity_and_its_substitutes.py"
_NORM_PLACE_LESSON = "08_4_norm_before_or_after.py"

# the lines that stand in place of others in models with other settings, by the name of the variant
VARIANTS: dict[str, dict[str, StepLines]] = {
    "post-norm": {
        "residual": StepLines(
            Quote("functional/residual.py", "add_norm", ("y, norm = layer_norm(x + h, gain, bias, eps)",)),
            Quote(
                "functional/residual.py",
                "add_norm_backward",
                ("return dx, dropout_backward(dx, cache.dropout_mask), dgain, dbias",),
            ),
            _RESIDUAL_LESSON,
            _RESIDUAL_LESSON,
        )
    },
    "sequence": {
        "residual": StepLines(
            Quote(_SEQUENCES, "Postprocess.forward", ("h = x + h",)),
            Quote(
                _SEQUENCES, "Postprocess.backward", ("dx = dh  # a sum passes its gradient to both terms",)
            ),
            _NORM_PLACE_LESSON,
            _NORM_PLACE_LESSON,
        )
    },
    "untied": {
        "logits": StepLines(
            Quote(
                "nn/linear.py",
                "Linear.forward",
                ("return linear(x, self.weight.value, self.bias.value if self.bias is not None else None)",),
            ),
            Quote(
                "nn/linear.py",
                "Linear.backward",
                ("dx, dweight, dbias = linear_backward(dy, cache)", "self.weight.accumulate(dweight)"),
            ),
            _LINEAR_LESSON,
            _LINEAR_LESSON,
        )
    },
    "filled-mask": {
        "mask": StepLines(
            Quote(_MASKS, "fill_scores", ("scores = xp.where(mask, scores, masking.fill)",)),
            Quote(_MASKS, "fill_scores_backward", ("dscores = xp.where(mask, dscores, 0)",)),
            _FILL_LESSON,
            _FILL_LESSON,
        )
    },
    "added-mask": {
        "mask": StepLines(
            Quote(
                _MASKS,
                "fill_scores",
                ("scores = scores + xp.where(mask, 0, masking.fill).astype(scores.dtype)",),
            ),
            Quote(_MASKS, "fill_scores_backward", ("return dscores",)),
            _FILL_LESSON,
            _FILL_LESSON,
        )
    },
}

"""The source lines of linear layers, parameters and the projection to logits."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_LINEAR_LESSON = "00_2_forward_and_backward.py"
_TIED_LESSON = "12_3_label_smoothing_and_tied_weights.py"

LINES: dict[str, StepLines] = {
    "parameter": StepLines(
        Quote("nn/module.py", "Parameter.__init__", ("self.value = value",)),
        Quote("nn/module.py", "Parameter.accumulate", ("grad[at] += gradient",)),
        _LINEAR_LESSON,
        _LINEAR_LESSON,
    ),
    "linear": StepLines(
        Quote("functional/linear.py", "linear", ("y = rows @ weight  # (N, O)",)),
        Quote(
            "functional/linear.py",
            "linear_backward",
            ("dweight = rows.T @ drows  # (I, O)", "dx = drows @ weight.T  # (N, I)"),
        ),
        _LINEAR_LESSON,
        _LINEAR_LESSON,
    ),
    "add_bias": StepLines(
        Quote("functional/linear.py", "linear", ("y = y + bias",)),
        Quote(
            "functional/linear.py",
            "linear_backward",
            ("dbias = drows.sum(0) if has_bias else None  # (O,)",),
        ),
        _LINEAR_LESSON,
        _LINEAR_LESSON,
    ),
    "logits": StepLines(
        Quote("nn/embedding.py", "TiedProjection.forward", ("return linear(x, weight.T, bias)",)),
        Quote(
            "nn/embedding.py",
            "TiedProjection.backward",
            (
                "dx, dweight, dbias = linear_backward(dy, cache)",
                "self.weight.accumulate(dweight.T)  # (V, D)",
            ),
        ),
        _TIED_LESSON,
        _TIED_LESSON,
    ),
    "transpose": StepLines(
        Quote("nn/embedding.py", "TiedProjection.forward", ("return linear(x, weight.T, bias)",)),
        Quote(
            "nn/embedding.py",
            "TiedProjection.backward",
            ("self.weight.accumulate(dweight.T)  # (V, D)",),
        ),
        _TIED_LESSON,
        _TIED_LESSON,
    ),
}

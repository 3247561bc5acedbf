"""The source lines of the cross-entropy."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_LOSS_LESSON = "12_1_the_cross_entropy.py"
_LOSS_GRADIENT = "12_2_the_gradient_of_the_cross_entropy.py"

LINES: dict[str, StepLines] = {
    "log_softmax": StepLines(
        Quote(
            "functional/softmax.py",
            "log_softmax",
            ("y = shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True))",),
        ),
        Quote(
            "functional/softmax.py",
            "log_softmax_backward",
            ("return dy - xp.exp(y) * dy.sum(-1, keepdims=True)",),
        ),
        _LOSS_LESSON,
        _LOSS_GRADIENT,
    ),
    "losses": StepLines(
        Quote(
            "functional/losses.py",
            "cross_entropy",
            (
                "losses = -(1 - smoothing) * at_target  # (N,)",
                "losses = losses - smoothing * log_probs.mean(-1)",
            ),
        ),
        Quote(
            "functional/losses.py",
            "cross_entropy_backward",
            (
                "drows = xp.exp(log_probs) - smoothing / shape[-1]  # (N, V)",
                "drows[xp.arange(len(targets)), targets] -= 1 - smoothing",
            ),
        ),
        _LOSS_LESSON,
        _LOSS_GRADIENT,
    ),
    "cross_entropy": StepLines(
        Quote(
            "functional/losses.py",
            "cross_entropy",
            ("return xp.where(is_real, losses, 0).sum() / tokens, cache",),
        ),
        Quote(
            "functional/losses.py",
            "cross_entropy_backward",
            ("drows = drows * (real[:, None] * (dloss / tokens))",),
        ),
        _LOSS_LESSON,
        _LOSS_GRADIENT,
    ),
}

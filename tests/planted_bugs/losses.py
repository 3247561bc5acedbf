"""Bugs in the losses."""

BUGS = {
    "functional/half.py": {
        'arg.astype("float32") if _is_half(arg) else arg': {"half precision: sums in float16": "arg"}
    },
    "nn/context.py": {'"ndim", None) == 3': {"mask without heads: accepted": "== 3 → == 9"}},
    "functional/losses.py": {
        "    if smoothing:  # 0 log 0 is 0": {
            "cross-entropy: NaN for an impossible token": "if smoothing: → if True:"
        },
        "xp.where(is_token, losses, 0).sum() / tokens": {
            "cross-entropy: NaN for an impossible token at padding": "(losses * is_token).sum() / tokens"
        },
        "(log_q - xp.where(q.real > 0, log_p, 0))": {
            "divergence: NaN for an impossible token": "(log_q - log_p)"
        },
        "drows[xp.arange(len(targets)), targets] -= 1 - smoothing": {
            "cross-entropy: sign of the target": "-= 1 - smoothing → += 1 - smoothing",
            "cross-entropy: target not smoothed": "1 - smoothing → 1",
            "cross-entropy: every row's target in every row": "xp.arange(len(targets)) → :",
            "cross-entropy: target overwritten": "-= 1 - smoothing → = smoothing - 1",
            "cross-entropy: target left out": "pass",
        },
        "drows = xp.exp(log_probs) - smoothing / shape[-1]": {
            "cross-entropy: smoothing not spread": "drows = xp.exp(log_probs)",
            "cross-entropy: smoothing not over V": "drows = xp.exp(log_probs) - smoothing",
            "cross-entropy: smoothing over V - 1": "shape[-1] → (shape[-1] - 1)",
        },
        "drows = drows * (real[:, None] * (dloss / tokens))": {
            "cross-entropy: padding counts": "drows = drows * (dloss / tokens)",
            "cross-entropy: mean over padding too": "tokens → len(targets)",
            "cross-entropy: not averaged": "drows = drows * (real[:, None] * dloss)",
            "cross-entropy: dloss left out": "drows = drows * (real[:, None] / tokens)",
        },
        "tokens = max(1, int(real.sum()))": {"cross-entropy: no tokens at all": "tokens = int(real.sum())"},
        "if tokens is None else tokens": {
            "cross-entropy: tokens of the step ignored": "else tokens → else max(1, int(real.sum()))"
        },
        "dlog_p = -q * (dloss / (q.size // q.shape[-1]))": {
            "KL divergence: sign": "dlog_p = q * (dloss / (q.size // q.shape[-1]))",
            "KL divergence: mean over V too": "dlog_p = -q * (dloss / q.size)",
            "KL divergence: mean over the batch only": "dlog_p = -q * (dloss / len(q))",
        },
        "return log_softmax_backward(dlog_p, log_p)": {"KL divergence: log-softmax skipped": "return dlog_p"},
        "dp = difference / length * (dloss / distance.size)": {
            "L2 distance: sign": "dp = -difference / length * (dloss / distance.size)",
            "L2 distance: not over the length": "difference / length * → difference *",
            "L2 distance: not averaged": "dp = difference / length * dloss",
        },
        "return softmax_backward(dp, p)": {"L2 distance: softmax skipped": "return dp"},
        "length = xp.where(distance.real == 0, 1, distance)": {
            "L2 distance: 0 / 0 at the kink": "length = distance"
        },
    },
}

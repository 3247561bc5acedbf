"""Bugs in the losses."""

from planted_bugs.bug import Bug

_LOSSES = "functional/losses.py"
_TARGET = "drows[xp.arange(len(targets)), targets] -= 1 - smoothing"
_MEAN = "drows = drows * (real[:, None] * (dloss / tokens))"
_PROBABILITY = "drows = xp.exp(log_probs) - smoothing / shape[-1]"

CROSS_ENTROPY = (
    Bug(
        "cross-entropy: sign of the target",
        "sign",
        _LOSSES,
        _TARGET,
        "drows[xp.arange(len(targets)), targets] += 1 - smoothing",
    ),
    Bug(
        "cross-entropy: target not smoothed",
        "missing scale",
        _LOSSES,
        _TARGET,
        "drows[xp.arange(len(targets)), targets] -= 1",
    ),
    Bug(
        "cross-entropy: every row's target in every row",
        "wrong mask",
        _LOSSES,
        _TARGET,
        "drows[:, targets] -= 1 - smoothing",
    ),
    Bug(
        "cross-entropy: target overwritten",
        "= for +=",
        _LOSSES,
        _TARGET,
        "drows[xp.arange(len(targets)), targets] = smoothing - 1",
    ),
    Bug("cross-entropy: target left out", "dropped branch", _LOSSES, _TARGET, "pass"),
    Bug(
        "cross-entropy: smoothing not spread",
        "dropped branch",
        _LOSSES,
        _PROBABILITY,
        "drows = xp.exp(log_probs)",
    ),
    Bug(
        "cross-entropy: smoothing not over V",
        "missing scale",
        _LOSSES,
        _PROBABILITY,
        "drows = xp.exp(log_probs) - smoothing",
    ),
    Bug(
        "cross-entropy: smoothing over V - 1",
        "missing scale",
        _LOSSES,
        _PROBABILITY,
        "drows = xp.exp(log_probs) - smoothing / (shape[-1] - 1)",
    ),
    Bug(
        "cross-entropy: padding counts",
        "wrong mask",
        _LOSSES,
        _MEAN,
        "drows = drows * (dloss / tokens)",
    ),
    Bug(
        "cross-entropy: mean over padding too",
        "missing scale",
        _LOSSES,
        _MEAN,
        "drows = drows * (real[:, None] * (dloss / len(targets)))",
    ),
    Bug(
        "cross-entropy: not averaged",
        "missing scale",
        _LOSSES,
        _MEAN,
        "drows = drows * (real[:, None] * dloss)",
    ),
    Bug(
        "cross-entropy: dloss left out",
        "missing scale",
        _LOSSES,
        _MEAN,
        "drows = drows * (real[:, None] / tokens)",
    ),
    Bug(
        "cross-entropy: no tokens at all",
        "wrong term",
        _LOSSES,
        "tokens = max(1, int(real.sum()))",
        "tokens = int(real.sum())",
    ),
)

_KL = "dlog_p = -q * (dloss / (q.size // q.shape[-1]))"
_L2 = "dp = difference / length * (dloss / distance.size)"

STEPS_TOKENS = (
    Bug(
        "cross-entropy: tokens of the step ignored",
        "missing scale",
        _LOSSES,
        "if tokens is None else tokens",
        "if tokens is None else max(1, int(real.sum()))",
    ),
)

DISTANCES = (
    Bug("KL divergence: sign", "sign", _LOSSES, _KL, "dlog_p = q * (dloss / (q.size // q.shape[-1]))"),
    Bug("KL divergence: mean over V too", "missing scale", _LOSSES, _KL, "dlog_p = -q * (dloss / q.size)"),
    Bug(
        "KL divergence: mean over the batch only",
        "missing scale",
        _LOSSES,
        _KL,
        "dlog_p = -q * (dloss / len(q))",
    ),
    Bug(
        "KL divergence: log-softmax skipped",
        "dropped branch",
        _LOSSES,
        "return log_softmax_backward(dlog_p, log_p)",
        "return dlog_p",
    ),
    Bug("L2 distance: sign", "sign", _LOSSES, _L2, "dp = -difference / length * (dloss / distance.size)"),
    Bug(
        "L2 distance: not over the length",
        "missing scale",
        _LOSSES,
        _L2,
        "dp = difference * (dloss / distance.size)",
    ),
    Bug("L2 distance: not averaged", "missing scale", _LOSSES, _L2, "dp = difference / length * dloss"),
    Bug(
        "L2 distance: softmax skipped",
        "dropped branch",
        _LOSSES,
        "return softmax_backward(dp, p)",
        "return dp",
    ),
    Bug(
        "L2 distance: 0 / 0 at the kink",
        "wrong term",
        _LOSSES,
        "length = xp.where(distance.real == 0, 1, distance)",
        "length = distance",
    ),
)

LOSSES = (*CROSS_ENTROPY, *STEPS_TOKENS, *DISTANCES)

"""Bugs in the Universal Transformer: the mean of states, halting, and the repeated layer."""

from planted_bugs.bug import Bug

_MIX = "functional/halting.py"
_DSTATES = "dstates = weights[..., None] * dy"
_DWEIGHTS = "dweights = (states * dy).sum(-1)"
_PONDER = "dweights = dweights + xp.where(last, dponder, 0)"
_REMAINDER = "dremainder = xp.where(last, dweights, 0).sum(0)"
_DP = "return dstates, xp.where(before, dweights - dremainder, 0)"

MIXTURE = (
    Bug(
        "mixture: every state has weight 1",
        "missing scale",
        _MIX,
        _DSTATES,
        "dstates = (weights[..., None] > 0) * dy",
    ),
    Bug(
        "mixture: weights get mean gradients",
        "missing sum",
        _MIX,
        _DWEIGHTS,
        "dweights = (states * dy).mean(-1)",
    ),
    Bug(
        "mixture: the cost's sign", "sign", _MIX, _PONDER, "dweights = dweights - xp.where(last, dponder, 0)"
    ),
    Bug("mixture: every step costs its weight", "wrong mask", _MIX, _PONDER, "dweights = dweights + dponder"),
    Bug(
        "mixture: the cost's gradient overwrites the mixture's",
        "= for +=",
        _MIX,
        _PONDER,
        "dweights = xp.where(last, dponder, 0) + 0 * dweights",
    ),
    Bug("mixture: the remainder's sign", "sign", _MIX, _DP, _DP.replace("- dremainder", "+ dremainder")),
    Bug("mixture: the remainder is fixed", "dropped branch", _MIX, _DP, _DP.replace(" - dremainder", "")),
    Bug(
        "mixture: gradients after the last step",
        "wrong mask",
        _MIX,
        _DP,
        "return dstates, dweights - dremainder",
    ),
    Bug(
        "mixture: the remainder of all steps",
        "wrong mask",
        _MIX,
        _REMAINDER,
        "dremainder = dweights.sum(0)",
    ),
)

_UNIVERSAL = "models/universal.py"
_HALTED = "dnew, dold = self._halt_backward(dx + dstate, dp, step.halt)"
_LOGIT = "dstate = dstate + self.halting.backward(sigmoid_backward(dp[..., None], cache.p), cache.unit)"
_ADDED = "[a + b for a, b in zip(dothers, dothers_here, strict=True)] if dothers else dothers_here"

REPEATED = (
    Bug(
        "Universal: steps in forward order",
        "swapped",
        _UNIVERSAL,
        "zip(cache.steps[::-1], dstates[::-1], dps[::-1], strict=True)",
        "zip(cache.steps, dstates, dps, strict=True)",
    ),
    Bug(
        "Universal: gradient cut between the steps",
        "dropped branch",
        _UNIVERSAL,
        _HALTED,
        "dnew, dold = self._halt_backward(dstate + 0 * dy, dp, step.halt)",
    ),
    Bug(
        "Universal: only the last state is mixed",
        "dropped branch",
        _UNIVERSAL,
        _HALTED,
        "dnew, dold = self._halt_backward(dx if step is not cache.steps[-1] else dstate, dp, step.halt)",
    ),
    Bug(
        "Universal: gradient of halted positions lost",
        "dropped branch",
        _UNIVERSAL,
        "dx = dx + dold",
        "dx = dx + 0 * dold",
    ),
    Bug(
        "Universal: the memory's gradient of one step only",
        "= for +=",
        _UNIVERSAL,
        f"dothers = {_ADDED}",
        "dothers = dothers_here",
    ),
    Bug(
        "Universal: the cost has no gradient",
        "dropped branch",
        _UNIVERSAL,
        "return mix_states_backward(dy, cache.mix, dponder=dponder)",
        "return mix_states_backward(dy, cache.mix)",
    ),
    Bug(
        "Universal: no gradient from halting to the state",
        "dropped branch",
        _UNIVERSAL,
        _LOGIT,
        "self.halting.backward(sigmoid_backward(dp[..., None], cache.p), cache.unit)",
    ),
    Bug(
        "Universal: the halting unit's sigmoid skipped",
        "dropped branch",
        _UNIVERSAL,
        _LOGIT,
        "dstate = dstate + self.halting.backward(dp[..., None], cache.unit)",
    ),
    Bug(
        "Universal: halted positions still get gradients",
        "wrong mask",
        _UNIVERSAL,
        "return masked_update_backward(dstate, cache.updated)",
        "return dstate, masked_update_backward(dstate, cache.updated)[1]",
    ),
    Bug(
        "Universal: fixed steps, every state is the output",
        "wrong term",
        _UNIVERSAL,
        "return [0] * n_before + [dy], [None] * (n_before + 1)",
        "return [dy] * (n_before + 1), [None] * (n_before + 1)",
    ),
    Bug(
        "Universal: the last norm skipped",
        "dropped branch",
        _UNIVERSAL,
        "dy = self.norm.backward(dy, cache.norm)",
        "self.norm.backward(dy, cache.norm)",
    ),
)

_ENCODER = "dx = self.encoder.backward(dmemory, cache.encoder, dponder=_like_ponder(dponder, cache.encoder))"
_DECODER = "self.decoder.backward(dx, cache.decoder, dponder=_like_ponder(dponder, cache.decoder))"

TRANSLATOR = (
    Bug(
        "Universal translator: the encoder's steps cost nothing",
        "dropped branch",
        _UNIVERSAL,
        _ENCODER,
        "dx = self.encoder.backward(dmemory, cache.encoder)",
    ),
    Bug(
        "Universal translator: the decoder's steps cost nothing",
        "dropped branch",
        _UNIVERSAL,
        _DECODER,
        "self.decoder.backward(dx, cache.decoder)",
    ),
    Bug(
        "Universal translator: the ponder cost without its weight",
        "missing scale",
        "training/step.py",
        "config.ponder_weight / tokens",
        "1.0 / tokens",
    ),
    Bug(
        "Universal translator: padding takes steps",
        "wrong mask",
        _UNIVERSAL,
        "context, token_mask=of_source)",
        "context)",
    ),
)

UNIVERSAL = (*MIXTURE, *REPEATED, *TRANSLATOR)

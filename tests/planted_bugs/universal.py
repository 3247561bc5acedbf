"""Bugs in the Universal Transformer: the mean of states, halting, and the repeated layer."""

BUGS = {
    "functional/halting.py": {
        "dstates = weights[..., None] * dy": {
            "mixture: every state has weight 1": "dstates = (weights[..., None] > 0) * dy"
        },
        "dweights = (states * dy).sum(-1)": {
            "mixture: weights get mean gradients": "dweights = (states * dy).mean(-1)"
        },
        "dweights = dweights + xp.where(last, dponder, 0)": {
            "mixture: the cost's sign": "dweights = dweights - xp.where(last, dponder, 0)",
            "mixture: every step costs its weight": "dweights = dweights + dponder",
            "mixture: the cost's gradient overwrites the mixture's": (
                "dweights = xp.where(last, dponder, 0) + 0 * dweights"
            ),
        },
        "return dstates, xp.where(before, dweights - dremainder, 0)": {
            "mixture: the remainder's sign": "- dremainder → + dremainder",
            "mixture: the remainder is fixed": "dweights - dremainder → dweights",
            "mixture: gradients after the last step": "return dstates, dweights - dremainder",
        },
        "dremainder = xp.where(last, dweights, 0).sum(0)": {
            "mixture: the remainder of all steps": "dremainder = dweights.sum(0)"
        },
    },
    "models/universal.py": {
        "zip(cache.steps[::-1], dstates[::-1], dps[::-1], strict=True)": {
            "Universal: steps in forward order": "zip(cache.steps, dstates, dps, strict=True)"
        },
        "dnew, dold = self._halt_backward(dx + dstate, dp, step.halt)": {
            "Universal: gradient cut between the steps": "dx + dstate → dstate + 0 * dy",
            "Universal: only the last state is mixed": (
                "dx + dstate → dx if step is not cache.steps[-1] else dstate"
            ),
        },
        "dx = dx + dold": {"Universal: gradient of halted positions lost": "dx = dx + 0 * dold"},
        (
            "dothers = [a + b for a, b in zip(dothers, dothers_here, strict=True)] "
            "if dothers else dothers_here"
        ): {"Universal: the memory's gradient of one step only": "dothers = dothers_here"},
        "return mix_states_backward(dy, cache.mix, dponder=dponder)": {
            "Universal: the cost has no gradient": "mix, dponder=dponder → mix"
        },
        "dstate = dstate + self.halting.backward(sigmoid_backward(dp[..., None], cache.p), cache.unit)": {
            "Universal: no gradient from halting to the state": "dstate = dstate + self → self",
            "Universal: the halting unit's sigmoid skipped": (
                "sigmoid_backward(dp[..., None], cache.p) → dp[..., None]"
            ),
        },
        "return masked_update_backward(dstate, cache.updated)": {
            "Universal: halted positions still get gradients": (
                "return dstate, masked_update_backward(dstate, cache.updated)[1]"
            )
        },
        "return [0] * n_before + [dy], [None] * (n_before + 1)": {
            "Universal: fixed steps, every state is the output": (
                "[0] * n_before + [dy] → [dy] * (n_before + 1)"
            )
        },
        "dy = self.norm.backward(dy, cache.norm)": {
            "Universal: the last norm skipped": "self.norm.backward(dy, cache.norm)"
        },
        "dx = self.encoder.backward(dmemory, cache.encoder, dponder=_like_ponder(dponder, cache.encoder))": {
            "Universal translator: the encoder's steps cost nothing": (
                "dx = self.encoder.backward(dmemory, cache.encoder)"
            )
        },
        "self.decoder.backward(dx, cache.decoder, dponder=_like_ponder(dponder, cache.decoder))": {
            "Universal translator: the decoder's steps cost nothing": (
                "self.decoder.backward(dx, cache.decoder)"
            )
        },
        "context, token_mask=of_source)": {"Universal translator: padding takes steps": "context)"},
        "dponder = dauxiliary * self.config.ponder_weight": {
            "Universal translator: the gradient of the ponder cost without its weight": "dponder = dauxiliary"
        },
    },
    "training/step.py": {
        "dauxiliary = 1 / tokens": {"auxiliary loss: a sum and not a mean": "dauxiliary = 1.0"},
    },
}

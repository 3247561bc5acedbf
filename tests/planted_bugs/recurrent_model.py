"""Bugs in the recurrent translators: encoder, bridge, decoder with attention and feeding, the whole model."""

BUGS = {
    "models/recurrent/encoder.py": {
        "dmemory = xp.concatenate([dmemory, xp.zeros((*dmemory.shape[:-1], hidden), dmemory.dtype)], -1)": {
            "RecurrentEncoder: h's gradient at c": "dmemory = "
            "xp.concatenate([xp.zeros((*dmemory.shape[:-1], hidden), dmemory.dtype), dmemory], -1)"
        },
        "self.linear.backward(dstate * (1 - cache.state * cache.state), cache.linear)": {
            "Bridge: tanh's slope left out": "self.linear.backward(dstate, cache.linear)"
        },
        "dmemory[:, 0, self.half :] = dend[:, self.half :]": {
            "Bridge: the left end lost": "pass",
            "Bridge: all at the right end": "0, self.half → -1, self.half",
        },
    },
    "models/recurrent/decoder.py": {
        "return self._padded(dquery[:, 0]), dmemory": {
            "RecurrentDecoder: the state that attends gets no gradient": "dquery[:, 0] → 0 * dquery[:, 0]"
        },
        "dmemory = dmemory + dmemory_here": {
            "RecurrentDecoder: memory gradient of the first token only": "dmemory = dmemory_here"
        },
        "dy = dy + dcarried.fed": {"RecurrentDecoder: the fed state gets no gradient": "dy = dy"},
        "dstate = dcarried.state\n": {
            "RecurrentDecoder: no gradient from the next state": "dcarried → 0 * dcarried"
        },
        "dstate = dstate + dquery": {"RecurrentDecoder: the query's gradient lost": "dstate = dstate"},
        "dstate_before = dstate_before + dquery": {
            "RecurrentDecoder, additive: the query's gradient lost": "dstate_before = dstate_before"
        },
        "self._attend_backward(dcontext + dcontext_cell, cache.attention)": {
            "RecurrentDecoder, additive: the context read once": "dcontext + dcontext_cell → dcontext"
        },
        "dstate = dstate + self._padded(dh)": {
            "RecurrentDecoder: readout's h lost": "dstate = dstate + self._padded(0 * dh)"
        },
        "dcontext, dh = self.readout.backward(dy, cache.readout)": {
            "RecurrentDecoder: context and state swapped": "dcontext, dh → dh, dcontext"
        },
    },
    "models/recurrent/model.py": {
        "dmemory = dmemory + self.bridge.backward(dstate, cache.bridge)": {
            "RecurrentTranslator: the bridge's gradient lost": "dmemory = dmemory + self → self",
            "RecurrentTranslator: the memory's gradient lost": "dmemory + self → self",
        },
        "dy = self.dropout.backward(dy, cache.output_dropout_mask)": {
            "RecurrentTranslator: dropout of the output skipped": "dy = dy"
        },
        "self.dropout.backward(dx, cache.target_dropout_mask)": {
            "RecurrentTranslator: dropout of the target skipped": "dx"
        },
        "self.dropout.backward(dx, cache.source_dropout_mask)": {
            "RecurrentTranslator: dropout of the source skipped": "dx"
        },
        "dx = self.encoder.backward(dmemory, cache.encoder)": {
            "RecurrentTranslator: sign at the source": "self. → -self."
        },
    },
}

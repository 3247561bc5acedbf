"""Bugs in the recurrent translators: encoder, bridge, decoder with attention and feeding, the whole model."""

from planted_bugs.bug import Bug

_ENCODER = "models/recurrent/encoder.py"
_DECODER = "models/recurrent/decoder.py"
_MODEL = "models/recurrent/model.py"

ENDS = (
    Bug(
        "RecurrentEncoder: h's gradient at c",
        "swapped",
        _ENCODER,
        "dmemory = xp.concatenate([dmemory, xp.zeros((*dmemory.shape[:-1], hidden), dmemory.dtype)], -1)",
        "dmemory = xp.concatenate([xp.zeros((*dmemory.shape[:-1], hidden), dmemory.dtype), dmemory], -1)",
    ),
    Bug(
        "Bridge: tanh's slope left out",
        "missing scale",
        _ENCODER,
        "self.linear.backward(dstate * (1 - cache.state * cache.state), cache.linear)",
        "self.linear.backward(dstate, cache.linear)",
    ),
    Bug(
        "Bridge: the left end lost",
        "dropped branch",
        _ENCODER,
        "dmemory[:, 0, self.half :] = dend[:, self.half :]",
        "pass",
    ),
    Bug(
        "Bridge: all at the right end",
        "wrong term",
        _ENCODER,
        "dmemory[:, 0, self.half :] = dend[:, self.half :]",
        "dmemory[:, -1, self.half :] = dend[:, self.half :]",
    ),
)

DECODER = (
    Bug(
        "RecurrentDecoder: the state that attends gets no gradient",
        "dropped branch",
        _DECODER,
        "return self._padded(dquery[:, 0]), dmemory",
        "return self._padded(0 * dquery[:, 0]), dmemory",
    ),
    Bug(
        "RecurrentDecoder: memory gradient of the first token only",
        "= for +=",
        _DECODER,
        "dmemory = dmemory + dmemory_here",
        "dmemory = dmemory_here",
    ),
    Bug(
        "RecurrentDecoder: the fed state gets no gradient",
        "dropped branch",
        _DECODER,
        "dy = dy + dcarried.fed",
        "dy = dy",
    ),
    Bug(
        "RecurrentDecoder: no gradient from the next state",
        "dropped branch",
        _DECODER,
        "dstate = dcarried.state\n",
        "dstate = 0 * dcarried.state\n",
    ),
    Bug(
        "RecurrentDecoder: the query's gradient lost",
        "dropped branch",
        _DECODER,
        "dstate = dstate + dquery",
        "dstate = dstate",
    ),
    Bug(
        "RecurrentDecoder, additive: the query's gradient lost",
        "dropped branch",
        _DECODER,
        "dstate_before = dstate_before + dquery",
        "dstate_before = dstate_before",
    ),
    Bug(
        "RecurrentDecoder, additive: the context read once",
        "dropped branch",
        _DECODER,
        "self._attend_backward(dcontext + dcontext_cell, cache.attention)",
        "self._attend_backward(dcontext, cache.attention)",
    ),
    Bug(
        "RecurrentDecoder: readout's h lost",
        "dropped branch",
        _DECODER,
        "dstate = dstate + self._padded(dh)",
        "dstate = dstate + self._padded(0 * dh)",
    ),
    Bug(
        "RecurrentDecoder: context and state swapped",
        "swapped",
        _DECODER,
        "dcontext, dh = self.readout.backward(dy, cache.readout)",
        "dh, dcontext = self.readout.backward(dy, cache.readout)",
    ),
)

MODEL = (
    Bug(
        "RecurrentTranslator: the bridge's gradient lost",
        "dropped branch",
        _MODEL,
        "dmemory = dmemory + self.bridge.backward(dstate, cache.bridge)",
        "self.bridge.backward(dstate, cache.bridge)",
    ),
    Bug(
        "RecurrentTranslator: the memory's gradient lost",
        "dropped branch",
        _MODEL,
        "dmemory = dmemory + self.bridge.backward(dstate, cache.bridge)",
        "dmemory = self.bridge.backward(dstate, cache.bridge)",
    ),
    Bug(
        "RecurrentTranslator: dropout of the output skipped",
        "wrong mask",
        _MODEL,
        "dy = self.dropout.backward(dy, cache.output_dropout_mask)",
        "dy = dy",
    ),
    Bug(
        "RecurrentTranslator: dropout of the target skipped",
        "wrong mask",
        _MODEL,
        "self.dropout.backward(dx, cache.target_dropout_mask)",
        "dx",
    ),
    Bug(
        "RecurrentTranslator: dropout of the source skipped",
        "wrong mask",
        _MODEL,
        "self.dropout.backward(dx, cache.source_dropout_mask)",
        "dx",
    ),
    Bug(
        "RecurrentTranslator: sign at the source",
        "sign",
        _MODEL,
        "dx = self.encoder.backward(dmemory, cache.encoder)",
        "dx = -self.encoder.backward(dmemory, cache.encoder)",
    ),
)

RECURRENT_MODEL = (*ENDS, *DECODER, *MODEL)

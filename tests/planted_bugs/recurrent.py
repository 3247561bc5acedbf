"""Bugs in the recurrent networks: cells, padding, and back-propagation through time."""

from planted_bugs.bug import Bug

_ACTIVATIONS = "functional/activations.py"
_CELLS = "functional/recurrent.py"
_LAYER = "nn/recurrent.py"

CELLS = (
    Bug(
        "sigmoid: slope of tanh",
        "wrong term",
        _ACTIVATIONS,
        "return dy * y * (1 - y)",
        "return dy * (1 - y * y)",
    ),
    Bug(
        "LSTM: c's own gradient lost", "dropped branch", _CELLS, "dafter = dafter + dh * o", "dafter = dh * o"
    ),
    Bug(
        "LSTM: gradient from h into c lost", "dropped branch", _CELLS, " + dh * o * (1 - tanh_c * tanh_c)", ""
    ),
    Bug(
        "LSTM: tanh for its slope",
        "wrong term",
        _CELLS,
        "dh * o * (1 - tanh_c * tanh_c)",
        "dh * o * (1 - tanh_c)",
    ),
    Bug(
        "LSTM: i and g swapped",
        "swapped",
        _CELLS,
        "dafter * g, dafter * c, dafter * i",
        "dafter * i, dafter * c, dafter * g",
    ),
    Bug(
        "LSTM: df from the new memory",
        "wrong term",
        _CELLS,
        "dafter * g, dafter * c,",
        "dafter * g, dafter * tanh_c,",
    ),
    Bug("LSTM: dc without the gate", "missing scale", _CELLS, "dafter * i, dafter * f", "dafter * i, dafter"),
    Bug("LSTM: g has a sigmoid's slope", "wrong term", _CELLS, "dg * (1 - g * g),", "dg * g * (1 - g),"),
    Bug("GRU: z's sign", "sign", _CELLS, "dy * (h - n), dy * (1 - z)", "dy * (n - h), dy * (1 - z)"),
    Bug("GRU: z and 1 - z swapped", "swapped", _CELLS, "dy * (1 - z), dy * z", "dy * z, dy * (1 - z)"),
    Bug(
        "GRU: r left out of the state's gradient",
        "missing scale",
        _CELLS,
        "dsum * last, dsum * r",
        "dsum * last, dsum",
    ),
    Bug("GRU: dr from the state", "wrong term", _CELLS, "dsum * last, dsum * r", "dsum * h, dsum * r"),
    Bug(
        "GRU: the input's part of n multiplied by r too",
        "wrong term",
        _CELLS,
        "[dr, dz, dsum], -1)",
        "[dr, dz, dlast], -1)",
    ),
    Bug("GRU: tanh's slope left out", "missing scale", _CELLS, "dsum = dn * (1 - n * n)", "dsum = dn"),
    Bug(
        "masked_update: padding passes the gradient of the new state",
        "wrong mask",
        _CELLS,
        "return xp.where(real, dy, 0), xp.where(real, 0, dy)",
        "return dy, xp.where(real, 0, dy)",
    ),
    Bug(
        "masked_update: old and new swapped",
        "swapped",
        _CELLS,
        "return xp.where(real, dy, 0), xp.where(real, 0, dy)",
        "return xp.where(real, 0, dy), xp.where(real, dy, 0)",
    ),
)

_OUT = "self.time_step_backward(dstate + dstates[:, t], step)"
_OLD = "return dgates, xp.concatenate([dh, dc], -1) + dold"
_GRU = "return dgates, dh + self.hidden_projection.backward(dhidden_gates, cache.hidden_projection) + dold"

THROUGH_TIME = (
    Bug(
        "Recurrent: gradient cut between tokens",
        "dropped branch",
        _LAYER,
        _OUT,
        "self.time_step_backward(dstates[:, t], step)",
    ),
    Bug(
        "Recurrent: only the last state counts",
        "dropped branch",
        _LAYER,
        _OUT,
        "self.time_step_backward(dstate + dstates[:, t] * (t == order[-1]), step)",
    ),
    Bug(
        "Recurrent: tokens in forward order",
        "wrong term",
        _LAYER,
        "zip(order[::-1], cache.steps[::-1], strict=True)",
        "zip(order, cache.steps[::-1], strict=True)",
    ),
    Bug(
        "Recurrent, LSTM: gradient lost at padding",
        "wrong mask",
        _LAYER,
        _OLD,
        "return dgates, xp.concatenate([dh, dc], -1)",
    ),
    Bug(
        "Recurrent, LSTM: h and c swapped",
        "swapped",
        _LAYER,
        _OLD,
        "return dgates, xp.concatenate([dc, dh], -1) + dold",
    ),
    Bug(
        "Recurrent, GRU: gradient through the product lost",
        "dropped branch",
        _LAYER,
        _GRU,
        "self.hidden_projection.backward(dhidden_gates, cache.hidden_projection)\n"
        "        return dgates, dh + dold",
    ),
    Bug(
        "Recurrent, GRU: direct gradient of the state lost",
        "dropped branch",
        _LAYER,
        _GRU,
        "return dgates, self.hidden_projection.backward(dhidden_gates, cache.hidden_projection) + dold",
    ),
    Bug(
        "Recurrent, GRU: the input's gates instead of the state's",
        "wrong term",
        _LAYER,
        _GRU,
        "return dgates, dh + self.hidden_projection.backward(dgates, cache.hidden_projection) + dold",
    ),
    Bug(
        "Recurrent: first state's gradient lost",
        "dropped branch",
        _LAYER,
        "return (dx, dstate) if cache.has_state else dx",
        "return (dx, dstate * 0) if cache.has_state else dx",
    ),
    Bug(
        "Bidirectional: one side of dx lost",
        "dropped branch",
        _LAYER,
        "return dx + self.backwards.backward(self._padded(dy[..., n:])",
        "return 0 * dx + self.backwards.backward(self._padded(dy[..., n:])",
    ),
    Bug(
        "Bidirectional: both sides get the left half",
        "wrong term",
        _LAYER,
        "self._padded(dy[..., n:])",
        "self._padded(dy[..., :n])",
    ),
)

RECURRENT = (*CELLS, *THROUGH_TIME)

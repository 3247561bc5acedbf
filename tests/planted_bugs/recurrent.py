"""Bugs in the recurrent networks: cells, padding, and back-propagation through time."""

BUGS = {
    "functional/activations.py": {
        "return dy * y * (1 - y)": {"sigmoid: slope of tanh": "return dy * (1 - y * y)"}
    },
    "functional/recurrent.py": {
        "dafter = dafter + dh * o": {"LSTM: c's own gradient lost": "dafter = dh * o"},
        " + dh * o * (1 - tanh_c * tanh_c)": {"LSTM: gradient from h into c lost": ""},
        "dh * o * (1 - tanh_c * tanh_c)": {"LSTM: tanh for its slope": "dh * o * (1 - tanh_c)"},
        "dafter * g, dafter * c, dafter * i": {"LSTM: i and g swapped": "dafter * i, dafter * c, dafter * g"},
        "dafter * g, dafter * c,": {"LSTM: df from the new memory": "dafter * g, dafter * tanh_c,"},
        "dafter * i, dafter * f": {"LSTM: dc without the gate": "dafter * i, dafter"},
        "dg * (1 - g * g),": {"LSTM: g has a sigmoid's slope": "dg * g * (1 - g),"},
        "dy * (h - n), dy * (1 - z)": {"GRU: z's sign": "dy * (n - h), dy * (1 - z)"},
        "dy * (1 - z), dy * z": {"GRU: z and 1 - z swapped": "dy * z, dy * (1 - z)"},
        "dsum * last, dsum * r": {
            "GRU: r left out of the state's gradient": "dsum * last, dsum",
            "GRU: dr from the state": "dsum * h, dsum * r",
        },
        "[dr, dz, dsum], -1)": {"GRU: the input's part of n multiplied by r too": "[dr, dz, dlast], -1)"},
        "dsum = dn * (1 - n * n)": {"GRU: tanh's slope left out": "dsum = dn"},
        "return xp.where(is_token, dy, 0), xp.where(is_token, 0, dy)": {
            "masked_update: padding passes the gradient of the new state": "xp.where(is_token, dy, 0) → dy",
            "masked_update: old and new swapped": (
                "return xp.where(is_token, 0, dy), xp.where(is_token, dy, 0)"
            ),
        },
    },
    "nn/recurrent.py": {
        "self.time_step_backward(dstate + dstates[:, t], step)": {
            "Recurrent: gradient cut between tokens": "dstate + dstates → dstates",
            "Recurrent: only the last state counts": "[:, t] → [:, t] * (t == order[-1])",
        },
        "zip(order[::-1], cache.steps[::-1], strict=True)": {
            "Recurrent: tokens in forward order": "order[::-1] → order"
        },
        "return dgates, xp.concatenate([dh, dc], -1) + dold": {
            "Recurrent, LSTM: gradient lost at padding": "1) + dold → 1)",
            "Recurrent, LSTM: h and c swapped": "dh, dc → dc, dh",
        },
        (
            "return dgates, dh + "
            "self.hidden_projection.backward(dhidden_gates, cache.hidden_projection) + dold"
        ): {
            "Recurrent, GRU: gradient through the product lost": (
                "self.hidden_projection.backward(dhidden_gates, cache.hidden_projection)\n"
                "        return dgates, dh + dold"
            ),
            "Recurrent, GRU: direct gradient of the state lost": "dh + self → self",
            "Recurrent, GRU: the input's gates instead of the state's": "dhidden_gates → dgates",
        },
        "return (dx, dstate) if cache.has_state else dx": {
            "Recurrent: first state's gradient lost": "dstate → dstate * 0"
        },
        "return dx + self.backwards.backward(self._padded(dy[..., n:])": {
            "Bidirectional: one side of dx lost": "return dx → return 0 * dx"
        },
        "self._padded(dy[..., n:])": {
            "Bidirectional: both sides get the left half": "self._padded(dy[..., :n])"
        },
    },
}

"""Wrong backward passes of the cells of LSTM and GRU."""

from wrong_solutions.wrong import Wrong

TANH = "dafter = dafter + dh * o * (1 - tanh_c * tanh_c)"
RECURRENT = (
    Wrong("lstm-cell-backward", TANH, "dafter = dh * o * (1 - tanh_c * tanh_c)", "term.*(missing|left out)"),
    Wrong("lstm-cell-backward", TANH, "dafter = dafter + dh * o", "factor.*left out"),
    Wrong("lstm-cell-backward", "dafter * i, dafter * f", "dafter * i, dafter * i", "dc"),
    Wrong("lstm-cell-backward", "dg * (1 - g * g)", "dg * g * (1 - g)", "gates"),
    Wrong("gru-cell-backward", "dy * (h - n)", "dy * h", "term.*(missing|left out)"),
    Wrong("gru-cell-backward", "dy * (h - n)", "dy * (n - h)", "sign"),
    Wrong(
        "gru-cell-backward",
        "dr, dlast = dsum * last, dsum * r",
        "dr, dlast = dsum * last, dsum",
        "factor.* r",
    ),
    Wrong("gru-cell-backward", "dy * (1 - z), dy * z", "dy * z, dy * (1 - z)", "gates|dh"),
)

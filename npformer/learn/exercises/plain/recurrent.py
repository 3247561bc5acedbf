"""Chapter 17: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain

TANH_C = "dcell + dh * o * (1 - tanh_c**2)"
N_GATE = "dsum = dn * (1 - n**2)"


@plain(
    "lstm-cell-backward",
    mistake(
        "the gradient of c' that comes from the next time step, the second half of dstate, is left out",
        TANH_C,
        "dh * o * (1 - tanh_c**2)",
    ),
    mistake(
        "the gradient of c' through h' = o tanh(c') is left out: c' has two gradients, which must be added",
        TANH_C,
        "dcell",
    ),
    mistake("the derivative of tanh(c'), the factor 1 - tanh_c², is left out", TANH_C, "dcell + dh * o"),
    mistake(
        "the derivative of tanh(c') is wrong: it is 1 - tanh_c² and not (1 - tanh_c)²",
        TANH_C,
        "dcell + dh * o * (1 - tanh_c) ** 2",
    ),
    mistake(
        "the derivative of the sigmoid is used instead of that of tanh(c')",
        TANH_C,
        "dcell + dh * o * tanh_c * (1 - tanh_c)",
    ),
    mistake(
        "the factor o is left out in the gradient of c' through h'", TANH_C, "dcell + dh * (1 - tanh_c**2)"
    ),
    mistake(
        "the derivative of the sigmoid is used for g, which is a tanh", "dg * (1 - g**2)", "dg * g * (1 - g)"
    ),
    mistake("the derivative of tanh, the factor 1 - g², is left out for g", "dg * (1 - g**2)", "dg"),
    mistake(
        "i and g are exchanged: the gradient of a factor is the gradient of the product times the "
        "other factor",
        "di, dg = dcell * g, dcell * i",
        "di, dg = dcell * i, dcell * g",
    ),
    mistake(
        "c and f are exchanged: the gradient of a factor is the gradient of the product times the "
        "other factor",
        "df, dc = dcell * c, dcell * f",
        "df, dc = dcell * f, dcell * c",
    ),
    mistake(
        "the gradients of gi and gf are in the wrong order",
        "[di * i * (1 - i), df * f * (1 - f), ",
        "[df * f * (1 - f), di * i * (1 - i), ",
    ),
    mistake(
        "the gradients of gg and go are in the wrong order",
        "dg * (1 - g**2), do * o * (1 - o)]",
        "do * o * (1 - o), dg * (1 - g**2)]",
    ),
    mistake("the factor f is left out in dc", "dcell * c, dcell * f", "dcell * c, dcell"),
    mistake(
        "the two halves of dstate are exchanged: first comes the gradient of h', then that of c'",
        "dh, dcell = dstate[..., :N], dstate[..., N:]",
        "dcell, dh = dstate[..., :N], dstate[..., N:]",
    ),
    mistake(
        "the derivative of the sigmoid, the factor o (1 - o), is left out for o", "do * o * (1 - o)", "do"
    ),
    mistake(
        "the derivative of the sigmoid, the factor i (1 - i), is left out for i", "di * i * (1 - i)", "di"
    ),
    mistake(
        "the derivative of the sigmoid, the factor f (1 - f), is left out for f", "df * f * (1 - f)", "df"
    ),
    mistake(
        "the derivatives of the sigmoid are left out for i, f and o",
        "di * i * (1 - i)",
        "di",
        "df * f * (1 - f)",
        "df",
        "do * o * (1 - o)",
        "do",
    ),
    mistake("df is computed with tanh_c instead of c", "dcell * c,", "dcell * tanh_c,"),
    mistake("do is computed with c instead of tanh_c", "do = dh * tanh_c", "do = dh * c"),
    mistake(
        "do contains the derivative of tanh: h' is o times tanh(c'), so do is dh times tanh_c",
        "do = dh * tanh_c",
        "do = dh * (1 - tanh_c**2)",
    ),
    mistake(
        "the incoming gradient of c' is added to dc again: dcell contains it, and c' depends on c by the "
        "factor f",
        "dcell * c, dcell * f",
        "dcell * c, dcell * f + dstate[..., N:]",
    ),
    mistake(
        "dc lacks the gradient of c' through h': it uses only the second half of dstate",
        "dcell * c, dcell * f",
        "dcell * c, dstate[..., N:] * f",
    ),
    mistake(
        "the gradients of i, f and g are computed before the gradient through h' is added to that of c'",
        "di, dg = dcell * g, dcell * i",
        "below = dstate[..., N:]; di, dg = below * g, below * i",
        "df, dc = dcell * c, dcell * f",
        "df, dc = below * c, dcell * f",
    ),
    mistake(
        "the derivative of tanh is used for i, f and o, which are sigmoids",
        "i * (1 - i)",
        "(1 - i**2)",
        "f * (1 - f)",
        "(1 - f**2)",
        "o * (1 - o)",
        "(1 - o**2)",
    ),
    mistake(
        "o and tanh(c') are exchanged in the gradient of c' through h': o is the factor, and tanh is "
        "differentiated",
        "dcell + dh * o * (1 - tanh_c**2)",
        "dcell + dh * tanh_c * (1 - tanh_c**2)",
    ),
    mistake(
        "the gates are stacked along axis 0: they must be concatenated along the last axis",
        "np.concatenate(gates, -1)",
        "np.concatenate(gates, 0)",
    ),
    mistake(
        "dc is the gradient of c' itself: the factor f is left out, and the gates get only the second "
        "half of dstate",
        "dcell = dcell + dh * o * (1 - tanh_c**2)",
        "dc = dcell + dh * o * (1 - tanh_c**2)",
        "df, dc = dcell * c, dcell * f",
        "df = dcell * c",
    ),
    mistake(
        "the derivatives of all gates are left out: dgates must be the gradients before the sigmoids and "
        "the tanh",
        "di * i * (1 - i)",
        "di",
        "df * f * (1 - f)",
        "df",
        "do * o * (1 - o)",
        "do",
        "dg * (1 - g**2)",
        "dg",
    ),
    mistake(
        "the gates are in the order f, o, g, i: it must be i, f, g, o",
        "gates = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g**2), do * o * (1 - o)]",
        "gates = [df * f * (1 - f), do * o * (1 - o), dg * (1 - g**2), di * i * (1 - i)]",
    ),
    mistake(
        "tanh(c') is differentiated at c: its derivative is 1 - tanh_c²",
        "dcell + dh * o * (1 - tanh_c**2)",
        "dcell + dh * o * (1 - np.tanh(c) ** 2)",
    ),
    mistake(
        "tanh is applied to tanh_c once more: its derivative is 1 - tanh_c²",
        "dcell + dh * o * (1 - tanh_c**2)",
        "dcell + dh * o * (1 - np.tanh(tanh_c) ** 2)",
    ),
    mistake(
        "tanh is applied to g once more: its derivative is 1 - g²",
        "dg * (1 - g**2)",
        "dg * (1 - np.tanh(g) ** 2)",
    ),
)
def lstm_cell_backward(dstate: Any, cache: Any) -> Any:
    """Return the gradients of one step of an LSTM cell."""
    c, i, f, g, o, tanh_c = cache
    N = c.shape[-1]
    dh, dcell = dstate[..., :N], dstate[..., N:]
    do = dh * tanh_c
    dcell = dcell + dh * o * (1 - tanh_c**2)
    di, dg = dcell * g, dcell * i
    df, dc = dcell * c, dcell * f
    gates = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g**2), do * o * (1 - o)]
    return np.concatenate(gates, -1), dc


@plain(
    "gru-cell-backward",
    mistake(
        "z occurs twice in h' = z h + (1 - z) n: the term with n is left out in dz", "dy * (h - n)", "dy * h"
    ),
    mistake(
        "z occurs twice in h' = z h + (1 - z) n: the term with h is left out in dz", "dy * (h - n)", "-dy * n"
    ),
    mistake("the sign of dz is wrong", "dy * (h - n)", "dy * (n - h)"),
    mistake("the sign of n is wrong in dz: it is h + n instead of h - n", "dy * (h - n)", "dy * (h + n)"),
    mistake(
        "z and 1 - z are exchanged: z belongs to dh, and 1 - z to dn",
        "dn, dh = dy * (1 - z), dy * z",
        "dn, dh = dy * z, dy * (1 - z)",
    ),
    mistake("the factor 1 - z is left out in dn", "dy * (1 - z), dy", "dy, dy"),
    mistake("the factor z is left out in dh", ", dy * z", ", dy"),
    mistake("the factor r is left out in the gradient of hn", "dsum * last, dsum * r", "dsum * last, dsum"),
    mistake(
        "the gradient of gn is multiplied by r: only that of hn contains the factor r",
        "[dr, dz, dsum]",
        "[dr, dz, dlast]",
    ),
    mistake(
        "the derivative of the sigmoid is used for n, which is a tanh", N_GATE, "dsum = dn * n * (1 - n)"
    ),
    mistake("the derivative of tanh, the factor 1 - n², is left out for n", N_GATE, "dsum = dn"),
    mistake(
        "the gradients of r and z are in the wrong order",
        "[dr, dz, dsum]",
        "[dz, dr, dsum]",
        "[dr, dz, dlast]",
        "[dz, dr, dlast]",
    ),
    mistake(
        "the derivative of the sigmoid, the factor r (1 - r), is left out for r", "dr * r * (1 - r)", "dr"
    ),
    mistake(
        "the derivative of the sigmoid, the factor z (1 - z), is left out for z", "dz * z * (1 - z)", "dz"
    ),
    mistake(
        "the derivatives of the sigmoid are left out for r and z",
        "dr * r * (1 - r), dz * z * (1 - z)",
        "dr, dz",
    ),
    mistake("dr is computed with h instead of hn (cache.last)", "dsum * last", "dsum * h"),
    mistake("dr is computed with n instead of hn (cache.last)", "dsum * last", "dsum * n"),
    mistake(
        "these are the gradients of h' = (1 - z) h + z n, another convention: here z belongs to h",
        "dy * (h - n)",
        "dy * (n - h)",
        "dy * (1 - z), dy * z",
        "dy * z, dy * (1 - z)",
    ),
    mistake(
        "last and r are exchanged: the gradient of a factor is the gradient of the product times the "
        "other factor",
        "dsum * last, dsum * r",
        "dsum * r, dsum * last",
    ),
    mistake(
        "hr and hz get no gradient: r and z depend on both gates and hidden gates",
        "[dr, dz, dlast]",
        "[0 * dr, 0 * dz, dlast]",
    ),
    mistake(
        "gr and gz get no gradient: r and z depend on both gates and hidden gates",
        "[dr, dz, dsum]",
        "[0 * dr, 0 * dz, dsum]",
    ),
    mistake(
        "dlast is added to dh: hn has a gradient of its own, in dhidden_gates",
        "return np.concatenate([dr, dz, dsum], -1), np.concatenate([dr, dz, dlast], -1), dh",
        "return np.concatenate([dr, dz, dsum], -1), np.concatenate([dr, dz, dlast], -1), dh + dlast",
    ),
    mistake(
        "the derivative of tanh is used for r and z, which are sigmoids",
        "dr * r * (1 - r), dz * z * (1 - z)",
        "dr * (1 - r**2), dz * (1 - z**2)",
    ),
    mistake(
        "the derivatives of all gates are left out: the gradients before the sigmoids and the tanh are "
        "needed",
        N_GATE,
        "dsum = dn",
        "dr * r * (1 - r), dz * z * (1 - z)",
        "dr, dz",
    ),
    mistake(
        "dy is added to dh: only z of it goes to h",
        "np.concatenate([dr, dz, dlast], -1), dh",
        "np.concatenate([dr, dz, dlast], -1), dh + dy",
    ),
    mistake(
        "the gradients of the two gates are exchanged in the result: dgates comes first",
        "np.concatenate([dr, dz, dsum], -1), np.concatenate([dr, dz, dlast], -1)",
        "np.concatenate([dr, dz, dlast], -1), np.concatenate([dr, dz, dsum], -1)",
    ),
    mistake(
        "the reset gate is applied to h, as in the first GRU: here it multiplies hn, so dr contains hn, "
        "and only "
        "the gradient of hn contains r",
        "dsum * last, dsum * r",
        "dsum * h, dsum",
    ),
    mistake(
        "the gates are stacked along axis 0: they must be concatenated along the last axis",
        "dsum], -1)",
        "dsum], 0)",
        "dlast], -1)",
        "dlast], 0)",
    ),
    mistake(
        "the factor z is applied to dn once more: 1 - z is its only factor",
        "dy * (1 - z), dy",
        "dy * z * (1 - z), dy",
    ),
    mistake(
        "the gradient of n comes first: the order is r, z, n",
        "[dr, dz, dsum]",
        "[dsum, dr, dz]",
        "[dr, dz, dlast]",
        "[dlast, dr, dz]",
    ),
    mistake(
        "tanh is applied to n once more: its derivative is 1 - n²",
        "(1 - n**2)",
        "(1 - np.tanh(n) ** 2)",
    ),
)
def gru_cell_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of one step of a GRU cell."""
    h, last, r, z, n = cache
    dz = dy * (h - n)
    dn, dh = dy * (1 - z), dy * z
    dsum = dn * (1 - n**2)
    dr, dlast = dsum * last, dsum * r
    dr, dz = dr * r * (1 - r), dz * z * (1 - z)
    return np.concatenate([dr, dz, dsum], -1), np.concatenate([dr, dz, dlast], -1), dh

"""Chapter 17: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== lstm-cell-backward
dcell + dh * o * (1 - tanh_c**2) => dcell + dh * o * (1 - np.tanh(c) ** 2) ## tanh(c') is differentiated at c:
    its derivative is 1 - tanh_c²
di * i * (1 - i) => di && df * f * (1 - f) => df && do * o * (1 - o) => do && dg * (1 - g**2) => dg ## the
    derivatives of all gates are left out: dgates must be the gradients before the sigmoids and the tanh
do = dh * tanh_c => do = dh * (1 - tanh_c**2)
    ## do contains the derivative of tanh: h' is o times tanh(c'), so do is dh times tanh_c
dcell * c, dcell * f => dcell * c, dcell * f + dstate[..., N:] ## the incoming gradient of c' is added to dc
    again: dcell contains it, and c' depends on c by the factor f
=> dcell * c, dstate[..., N:] * f
    ## dc lacks the gradient of c' through h': it uses only the second half of dstate
di, dg = dcell * g, dcell * i => below = dstate[..., N:]; di, dg = below * g, below * i && df, dc = dcell * c,
    dcell * f => df, dc = below * c, dcell * f
    ## the gradients of i, f and g are computed before the gradient through h' is added to that of c'
i * (1 - i) => (1 - i**2) && f * (1 - f) => (1 - f**2) && o * (1 - o) => (1 - o**2)
    ## the derivative of tanh is used for i, f and o, which are sigmoids
np.concatenate(gates, -1) => np.concatenate(gates, 0)
    ## the gates are stacked along axis 0: they must be concatenated along the last axis
dcell = dcell + dh * o * (1 - tanh_c**2) => dc = dcell + dh * o * (1 - tanh_c**2) && df, dc = dcell * c, dcell
    * f => df = dcell * c ## dc is the gradient of c' itself: the factor f is left out, and the gates get only
    the second half of dstate
gates = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g**2), do * o * (1 - o)] => gates = [df * f * (1 - f),
    do * o * (1 - o), dg * (1 - g**2), di * i * (1 - i)]
    ## the gates are in the order f, o, g, i: it must be i, f, g, o
=== gru-cell-backward
[dr, dz, dsum] => [dr, dz, dlast]
    ## the gradient of gn is multiplied by r: only that of hn contains the factor r
=> [0 * dr, 0 * dz, dsum] ## gr and gz get no gradient: r and z depend on both gates and hidden gates
=> [dsum, dr, dz] && [dr, dz, dlast] => [dlast, dr, dz] ## the gradient of n comes first: the order is r, z, n
dsum = dn * (1 - n**2) => dsum = dn && dr * r * (1 - r), dz * z * (1 - z) => dr, dz
    ## the derivatives of all gates are left out: the gradients before the sigmoids and the tanh are needed
dy * (h - n) => dy * (n - h) && dy * (1 - z), dy * z => dy * z, dy * (1 - z)
    ## these are the gradients of h' = (1 - z) h + z n, another convention: here z belongs to h
[dr, dz, dlast] => [0 * dr, 0 * dz, dlast]
    ## hr and hz get no gradient: r and z depend on both gates and hidden gates
dsum * last, dsum * r => dsum * h, dsum ## the reset gate is applied to h, as in the first GRU: here it
    multiplies hn, so dr contains hn, and only the gradient of hn contains r
dsum], -1) => dsum], 0) && dlast], -1) => dlast], 0)
    ## the gates are stacked along axis 0: they must be concatenated along the last axis
"""

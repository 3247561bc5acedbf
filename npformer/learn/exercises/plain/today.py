"""Chapter 23: plain solutions and mistakes."""

import math
from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain
from npformer.learn.exercises.plain.training import MOMENTS, PART, UPDATE

WITHOUT_MEAN = "rrms * (dxhat - xhat * along_xhat)"
OLD_HALVES = "x[..., :half], x[..., half:]"
OLD_NEIGHBOURS = "x[..., 0::2], x[..., 1::2]"
TWO_PARTS = "[a * cos - b * sin, a * sin + b * cos]"
DECAY = "adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0)"
OLD_TERMS = "a * cos + b * sin, b * cos - a * sin"


@plain(
    "rms-norm-backward",
    mistake("the term through the mean of x² is left out in dx", " - xhat * along_xhat", ""),
    mistake(
        "the mean of dxhat is subtracted too, as in layer norm: RMS norm does not subtract the mean of x",
        WITHOUT_MEAN,
        "rrms * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along_xhat)",
    ),
    mistake("the term through the mean of x² has the wrong sign in dx", "- xhat *", "+ xhat *"),
    mistake("the mean of dxhat · xhat is a sum: it is not divided by D", "xhat).mean", "xhat).sum"),
    mistake(
        "the mean of dxhat · xhat runs over the wrong axis: over axis 0 instead of the last one",
        "xhat).mean(-1",
        "xhat).mean(0",
    ),
    mistake(
        "gain is left out in the mean of dxhat · xhat: it is computed from dy",
        "(dxhat * xhat).mean",
        "(dy * xhat).mean",
    ),
    mistake("the factor xhat is left out in the term through the mean of x²", "- xhat * along", "- along"),
    mistake("gain is left out in dxhat", "dxhat = dy * gain", "dxhat = dy"),
    mistake("dy is divided by gain instead of multiplied", "dxhat = dy * gain", "dxhat = dy / gain"),
    mistake(
        "dxhat is multiplied by gain only at the end: the mean of dxhat · xhat needs the gain too",
        "dxhat = dy * gain",
        "dxhat = dy",
        "rrms * (",
        "gain * rrms * (",
    ),
    mistake("the factor rrms is left out in dx", "rrms * (", "("),
    mistake("dx is divided by rrms instead of multiplied", "rrms * (", "1 / rrms * ("),
    mistake("the power of rrms is 3 instead of 1 in dx", "rrms * (", "rrms**3 * ("),
    mistake("the factor xhat is left out in dgain", "(dy * xhat).sum(rows)", "dy.sum(rows)"),
    mistake("dgain is averaged over the rows instead of summed", "xhat).sum(rows)", "xhat).mean(rows)"),
    mistake(
        "dgain is computed from dxhat, which contains gain, and must be computed from dy",
        "(dy * xhat).sum(rows)",
        "(dy * gain * xhat).sum(rows)",
    ),
    mistake("the power of rrms is 2 instead of 1 in dx", "rrms * (", "rrms**2 * ("),
    mistake(
        "rrms multiplies only dxhat, or x takes the place of xhat in the second term: rrms belongs to "
        "both terms of dx",
        WITHOUT_MEAN,
        "rrms * dxhat - xhat * along_xhat",
    ),
    mistake(
        "the mean of dxhat · xhat is divided by D - 1 instead of D",
        "xhat).mean(-1, keepdims=True)",
        "xhat).sum(-1, keepdims=True) / (dy.shape[-1] - 1)",
    ),
    mistake(
        "the mean of dxhat · xhat runs over all entries: each row needs its own mean",
        "xhat).mean(-1, keepdims=True)",
        "xhat).mean()",
    ),
    mistake("gain is applied twice in dx: dxhat contains it", "rrms * (", "gain * rrms * ("),
    mistake(
        "the term through the mean of x² is counted twice: the 2 of the square is cancelled by the "
        "square root",
        "- xhat * along",
        "- 2 * xhat * along",
    ),
    mistake(
        "the term through the mean of x² is halved: the 1/2 of the square root is cancelled by the square",
        "- xhat * along",
        "- 0.5 * xhat * along",
    ),
    mistake(
        "the mean in the second term is that of dxhat: it must be that of dxhat · xhat",
        "(dxhat * xhat).mean",
        "dxhat.mean",
    ),
    mistake(
        "only the mean of dxhat is subtracted, as in the first term of layer norm: RMS norm has the term "
        "through "
        "the mean of x² instead",
        "- xhat * along_xhat",
        "- dxhat.mean(-1, keepdims=True)",
    ),
    mistake(
        "x is used instead of xhat in dgain: the division by the root of the mean of x² is left out",
        "dgain = (dy * xhat)",
        "dgain = (dy * xhat / rrms)",
    ),
    mistake(
        "dy is added to dx: there is no residual connection in the norm itself", "dx = rrms", "dx = dy + rrms"
    ),
    mistake(
        "the term through the mean of x² is multiplied by gain once more",
        "- xhat * along",
        "- gain * xhat * along",
    ),
)
def rms_norm_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of RMS norm."""
    xhat, rrms, gain = cache
    rows = tuple(range(dy.ndim - 1))
    dgain = (dy * xhat).sum(rows)
    dxhat = dy * gain
    along_xhat = (dxhat * xhat).mean(-1, keepdims=True)
    dx = rrms * (dxhat - xhat * along_xhat)
    return dx, dgain


@plain(
    "rotate",
    mistake(
        "the rotation has the wrong direction: the signs of the two terms with sin are exchanged",
        TWO_PARTS,
        "[a * cos + b * sin, b * cos - a * sin]",
    ),
    mistake("the sign of b sin is wrong: this is a reflection", "a * cos - b * sin", "a * cos + b * sin"),
    mistake(
        "the sign of a sin is wrong: the second half is b cos - a sin",
        "a * sin + b * cos",
        "b * cos - a * sin",
    ),
    mistake("cos and sin are exchanged", "half = ", "cos, sin = sin, cos; half = "),
    mistake("the two halves of y are exchanged", TWO_PARTS, "[a * sin + b * cos, a * cos - b * sin]"),
    mistake("the two halves of x are exchanged", OLD_HALVES, "x[..., half:], x[..., :half]"),
    mistake(
        "neighbours are rotated, as in the layout interleaved: number i of the first half and number i of "
        "the second half form a pair",
        OLD_HALVES,
        OLD_NEIGHBOURS,
        f"return np.concatenate({TWO_PARTS}, -1)",
        f"return np.stack({TWO_PARTS}, -1).reshape(x.shape)",
    ),
    mistake(
        "the pairs are neighbours of x, but the halves of y: both must be halves", OLD_HALVES, OLD_NEIGHBOURS
    ),
    mistake(
        "the rotated numbers of a pair become neighbours: they must be in the two halves of y",
        f"return np.concatenate({TWO_PARTS}, -1)",
        f"return np.stack({TWO_PARTS}, -1).reshape(x.shape)",
    ),
    mistake("the terms with sin are left out", TWO_PARTS, "[a * cos, b * cos]"),
    mistake("the second half of y is x itself: it is not rotated", "a * sin + b * cos", "b"),
    mistake("the first half of y is x itself: it is not rotated", "a * cos - b * sin", "a"),
    mistake(
        "the new first half is used for the second half: compute both from the numbers of x",
        "    return np",
        "    a = a * cos - b * sin\n    return np",
        TWO_PARTS,
        "[a, a * sin + b * cos]",
    ),
    mistake(
        "each angle is repeated for two neighbours, as in the layout interleaved: for halves the angles "
        "of all "
        "pairs are put side by side twice",
        "    return np",
        "    (c1, c2), (s1, s2) = (np.split(np.repeat(angle, 2, -1), 2, -1) for angle in (cos, sin))\n   "
        " return np",
        TWO_PARTS,
        "[a * c1 - b * s1, a * s2 + b * c2]",
    ),
    mistake(
        "neighbours are exchanged, as in the layout interleaved, but the angles are those of halves: the two "
        "halves of x must be exchanged",
        f"return np.concatenate({TWO_PARTS}, -1)",
        "return x * np.concatenate([cos, cos], -1) + np.stack([-x[..., 1::2], x[..., 0::2]], "
        "-1).reshape(x.shape) "
        "* np.concatenate([sin, sin], -1)",
    ),
    mistake(
        "number i and the number i from the end form a pair: it must be number i of the second half",
        OLD_HALVES,
        "x[..., :half], x[..., : half - 1 : -1]",
    ),
    mistake(
        "number i and the number i from the end form a pair, in x and in y: it must be number i of the "
        "second half",
        OLD_HALVES,
        "x[..., :half], x[..., : half - 1 : -1]",
        "a * sin + b * cos]",
        "(a * sin + b * cos)[..., ::-1]]",
    ),
    mistake(
        "the angles of the first position are used for all positions",
        "half = ",
        "cos, sin = cos[:1], sin[:1]; half = ",
    ),
    mistake(
        "the angles of the first pair are used for all pairs",
        "half = ",
        "cos, sin = cos[:, :1], sin[:, :1]; half = ",
    ),
    mistake("the positions are in the reverse order", "half = ", "cos, sin = cos[::-1], sin[::-1]; half = "),
    mistake(
        "the pairs of angles are in the reverse order",
        "half = ",
        "cos, sin = cos[:, ::-1], sin[:, ::-1]; half = ",
    ),
    mistake(
        "the rotation is applied twice: the angles are doubled",
        "half = ",
        "cos, sin = cos**2 - sin**2, 2 * sin * cos; half = ",
    ),
    mistake(
        "only the first pair is rotated",
        "    return np",
        "    sin, cos = sin * (np.arange(half) == 0), np.where(np.arange(half) == 0, cos, 1)\n    return np",
    ),
    mistake("the terms with cos are left out", TWO_PARTS, "[-b * sin, a * sin]"),
    mistake(
        "a and b are mixed up: each new number contains both of them",
        TWO_PARTS,
        "[a * cos - a * sin, b * sin + b * cos]",
    ),
)
def rotate(x: Any, cos: Any, sin: Any) -> Any:
    """Return the rotated pairs, whose numbers are in the two halves of a vector."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@plain(
    "rotate-backward",
    mistake(
        "dy is rotated forwards once more: the backward pass is the rotation in the opposite direction",
        OLD_TERMS,
        "a * cos - b * sin, a * sin + b * cos",
    ),
    mistake(
        "the sign of the term with sin is wrong in the first half",
        "a * cos + b * sin",
        "a * cos - b * sin",
    ),
    mistake(
        "the sign of the term with sin is wrong in the second half", "b * cos - a * sin", "b * cos + a * sin"
    ),
    mistake("the terms with sin are left out", OLD_TERMS, "a * cos, b * cos"),
    mistake("cos and sin are exchanged", "cos, sin, _", "sin, cos, _"),
    mistake("the rotation is left out: the result is dy itself", OLD_TERMS, "a, b"),
    mistake("the two halves of dx are exchanged", OLD_TERMS, "b * cos - a * sin, a * cos + b * sin"),
    mistake(
        "the two halves of dy are exchanged",
        "dy[..., :half], dy[..., half:]",
        "dy[..., half:], dy[..., :half]",
    ),
    mistake(
        "the pairs are neighbours in dy, but the halves of dx: both must be halves",
        "dy[..., :half], dy[..., half:]",
        "dy[..., 0::2], dy[..., 1::2]",
    ),
    mistake(
        "dy is divided by cos instead of multiplied",
        OLD_TERMS,
        "a / cos + b * sin, b / cos - a * sin",
    ),
    mistake(
        "neighbours are rotated, as in the layout interleaved: the halves of dy belong together",
        "dy[..., :half], dy[..., half:]",
        "dy[..., 0::2], dy[..., 1::2]",
        f"return np.concatenate([{OLD_TERMS}], -1)",
        f"return np.stack([{OLD_TERMS}], -1).reshape(dy.shape)",
    ),
    mistake(
        "each angle is repeated for two neighbours, as in the layout interleaved: for halves the angles "
        "of all "
        "pairs are put side by side twice",
        "    return np",
        "    (c1, c2), (s1, s2) = (np.split(np.repeat(angle, 2, -1), 2, -1) for angle in (cos, sin))\n   "
        " return np",
        OLD_TERMS,
        "a * c1 + b * s1, b * c2 - a * s2",
    ),
    mistake(
        "neighbours are exchanged, as in the layout interleaved, but the angles are those of halves: the two "
        "halves of dy must be exchanged",
        f"return np.concatenate([{OLD_TERMS}], -1)",
        "return dy * np.concatenate([cos, cos], -1) - np.stack([-dy[..., 1::2], dy[..., 0::2]], -1)"
        ".reshape(dy.shape) * np.concatenate([sin, sin], -1)",
    ),
    mistake(
        "number i and the number i from the end form a pair: it must be number i of the second half",
        "dy[..., :half], dy[..., half:]",
        "dy[..., :half], dy[..., : half - 1 : -1]",
    ),
    mistake(
        "the angles of the first position are used for all positions",
        "half = ",
        "cos, sin = cos[:1], sin[:1]; half = ",
    ),
    mistake(
        "the angles of the first pair are used for all pairs",
        "half = ",
        "cos, sin = cos[:, :1], sin[:, :1]; half = ",
    ),
    mistake("the positions are in the reverse order", "half = ", "cos, sin = cos[::-1], sin[::-1]; half = "),
    mistake(
        "dy is rotated back twice: the angles are doubled",
        "half = ",
        "cos, sin = cos**2 - sin**2, 2 * sin * cos; half = ",
    ),
    mistake("the terms with cos are left out", OLD_TERMS, "b * sin, -a * sin"),
    mistake(
        "the new first half is used for the second half: compute both from the numbers of dy",
        "    return np",
        "    a = a * cos + b * sin\n    return np",
        OLD_TERMS,
        "a, b * cos - a * sin",
    ),
    mistake(
        "the angles are differentiated: they are constants, so each term keeps its cos or sin",
        OLD_TERMS,
        "-a * sin - b * cos, a * cos - b * sin",
    ),
)
def rotate_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of the rotation."""
    cos, sin, _ = cache
    half = dy.shape[-1] // 2
    a, b = dy[..., :half], dy[..., half:]
    return np.concatenate([a * cos + b * sin, b * cos - a * sin], -1)


@plain(
    "interleaved-rotation",
    mistake(
        "the rotation has the wrong direction: the signs of the two terms with sin are exchanged",
        "a * cos - b * sin",
        "a * cos + b * sin",
        "a * sin + b * cos",
        "b * cos - a * sin",
    ),
    mistake("the sign of b sin is wrong: this is a reflection", "a * cos - b * sin", "a * cos + b * sin"),
    mistake(
        "the sign of a sin is wrong: the second number is b cos - a sin",
        "a * sin + b * cos",
        "b * cos - a * sin",
    ),
    mistake(
        "cos and sin are exchanged",
        "a * cos - b * sin",
        "a * sin - b * cos",
        "a * sin + b * cos",
        "a * cos + b * sin",
    ),
    mistake(
        "the two halves of a vector are rotated, as in the layout halves: neighbours form a pair",
        OLD_NEIGHBOURS,
        "x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]",
        "y[..., 0::2]",
        "y[..., : x.shape[-1] // 2]",
        "y[..., 1::2]",
        "y[..., x.shape[-1] // 2 :]",
    ),
    mistake(
        "the pairs are neighbours in x, but halves in y: in y they must be neighbours too",
        "y[..., 0::2]",
        "y[..., : x.shape[-1] // 2]",
        "y[..., 1::2]",
        "y[..., x.shape[-1] // 2 :]",
    ),
    mistake(
        "the pairs are halves of x, but neighbours in y: in x they must be neighbours too",
        OLD_NEIGHBOURS,
        "x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]",
    ),
    mistake(
        "the two numbers of each pair of y are exchanged",
        "y[..., 0::2]",
        "y[..., 1::2]",
        "y[..., 1::2] = a * sin",
        "y[..., 0::2] = a * sin",
    ),
    mistake("the two numbers of each pair of x are exchanged", OLD_NEIGHBOURS, "x[..., 1::2], x[..., 0::2]"),
    mistake("the terms with sin are left out", " - b * sin", "", "a * sin + ", ""),
    mistake(
        "the new first number is used for the second one: compute both from the numbers of x",
        "a * sin + b",
        "y[..., 0::2] * sin + b",
    ),
    mistake(
        "the angles of all pairs are put side by side twice, as in the layout halves: each angle must be "
        "repeated for two neighbours",
        "    y = np",
        "    c, s = np.concatenate([cos, cos], -1), np.concatenate([sin, sin], -1)\n    y = np",
        "= a * cos - b * sin",
        "= a * c[..., 0::2] - b * s[..., 0::2]",
        "= a * sin + b * cos",
        "= a * s[..., 1::2] + b * c[..., 1::2]",
    ),
    mistake(
        "the numbers i and i + 1 form pair i: it must be the numbers 2i and 2i + 1",
        "    a, b = x[..., 0::2], x[..., 1::2]",
        "    half = x.shape[-1] // 2\n    a, b = x[..., :half], x[..., 1 : half + 1]",
        "    y[..., 0::2] = ",
        "    y[...] = x\n    y[..., 1 : half + 1] = a * sin + b * cos\n    y[..., :half] = ",
        "    y[..., 1::2] = a * sin + b * cos\n",
        "",
    ),
    mistake(
        "the halves of x are exchanged, as in the layout halves, but the angles are repeated for neighbours: "
        "neighbours must be exchanged",
        "    y = np",
        "    h = x.shape[-1] // 2; turned = np.concatenate([-x[..., h:], x[..., :h]], -1)\n    y = np",
        "- b * sin",
        "+ turned[..., 0::2] * sin",
        "a * sin + b",
        "turned[..., 1::2] * sin + b",
    ),
    mistake(
        "the angles of the first position are used for all positions",
        "    y = np",
        "    cos, sin = cos[:1], sin[:1]\n    y = np",
    ),
    mistake(
        "the angles of the first pair are used for all pairs",
        "    y = np",
        "    cos, sin = cos[:, :1], sin[:, :1]\n    y = np",
    ),
    mistake(
        "the positions are in the reverse order",
        "    y = np",
        "    cos, sin = cos[::-1], sin[::-1]\n    y = np",
    ),
    mistake(
        "the rotation is applied twice: the angles are doubled",
        "    y = np",
        "    cos, sin = cos**2 - sin**2, 2 * sin * cos\n    y = np",
    ),
    mistake(
        "the terms with cos are left out", "a * cos - b * sin", "-b * sin", "a * sin + b * cos", "a * sin"
    ),
    mistake("the second number of each pair is that of x: it is not rotated", "a * sin + b * cos", "b"),
    mistake("the first number of each pair is that of x: it is not rotated", "a * cos - b * sin", "a"),
)
def rotate_interleaved(x: Any, cos: Any, sin: Any) -> Any:
    """Return the rotated pairs of neighbours."""
    a, b = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    y[..., 0::2] = a * cos - b * sin
    y[..., 1::2] = a * sin + b * cos
    return y


@plain(
    "swiglu-backward",
    mistake("dvalue is multiplied by gate instead of swish(gate)", "dy * cache.activated", "dy * gate"),
    mistake("dvalue is multiplied by sigmoid(gate) instead of swish(gate)", "dy * cache.activated", "dy * s"),
    mistake(
        "the derivative of swish lacks the term gate · s (1 - s): s depends on gate too",
        "(s + gate * s * (1 - s))",
        "s",
    ),
    mistake("the derivative of swish lacks the term s", "(s + gate * s * (1 - s))", "(gate * s * (1 - s))"),
    mistake("the factor gate is left out in the derivative of swish", "gate * s * (1 - s)", "s * (1 - s)"),
    mistake("the factor value is left out in dgate", "dy * cache.value * (", "dy * ("),
    mistake(
        "the derivative of swish is left out in dgate",
        "dy * cache.value * (s + gate * s * (1 - s))",
        "dy * cache.value",
    ),
    mistake(
        "dgate is multiplied by swish(gate) instead of its derivative",
        "(s + gate * s * (1 - s))",
        "cache.activated",
    ),
    mistake("the sign of the second term of the derivative of swish is wrong", "s + gate", "s - gate"),
    mistake("the factor 1 - s is 1 + s in the derivative of swish", "(1 - s)", "(1 + s)"),
    mistake("dgate and dvalue are exchanged in the result", "return dgate, dvalue", "return dvalue, dgate"),
    mistake("the factor dy is left out in dvalue", "dvalue = dy * ", "dvalue = "),
    mistake("the factor dy is left out in dgate", "dgate = dy * ", "dgate = "),
    mistake(
        "this is the backward pass of GLU, whose gate is a sigmoid: here the gate is swish(gate) = gate · s",
        "dy * cache.activated",
        "dy * s",
        "(s + gate * s * (1 - s))",
        "(s * (1 - s))",
    ),
    mistake(
        "dvalue is multiplied by value instead of swish(gate)", "dy * cache.activated", "dy * cache.value"
    ),
    mistake(
        "the factors of dgate and dvalue are exchanged: dvalue contains swish(gate), and dgate the value",
        "dy * cache.activated",
        "dy * cache.value",
        "dy * cache.value * (",
        "dy * cache.activated * (",
    ),
    mistake("the derivative of tanh is used for s, which is a sigmoid", "s * (1 - s)", "(1 - s**2)"),
    mistake(
        "dy and value multiply only the first term of the derivative of swish: they belong to both",
        "dy * cache.value * (s + gate * s * (1 - s))",
        "dy * cache.value * s + gate * s * (1 - s)",
    ),
    mistake(
        "the derivative of swish contains swish(gate) (1 - swish(gate)): it must contain s (1 - s)",
        "s * (1 - s)",
        "cache.activated * (1 - cache.activated)",
    ),
    mistake(
        "the sigmoid is applied to s once more",
        "gate, s = cache.activation",
        "gate, s = cache.activation[0], 1 / (1 + np.exp(-cache.activation[1]))",
    ),
    mistake(
        "this is the backward pass of ReGLU, whose gate is ReLU: the derivative of swish is needed",
        "(s + gate * s * (1 - s))",
        "(gate > 0)",
    ),
    mistake(
        "gate is a factor of dvalue in addition to swish(gate)",
        "dy * cache.activated",
        "dy * gate * cache.activated",
    ),
    mistake(
        "the derivatives of the factors are multiplied: the product rule adds two terms",
        "(s + gate * s * (1 - s))",
        "(s * gate * s * (1 - s))",
    ),
    mistake(
        "the derivative of swish is also a factor of dvalue",
        "dy * cache.activated",
        "dy * (s + gate * s * (1 - s))",
    ),
    mistake(
        "dgate contains swish(gate) in place of gate", "gate * s * (1 - s)", "cache.activated * s * (1 - s)"
    ),
)
def swiglu_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of the gate and of the value."""
    gate, s = cache.activation
    dvalue = dy * cache.activated
    dgate = dy * cache.value * (s + gate * s * (1 - s))
    return dgate, dvalue


@plain(
    "shared-keys-backward",
    mistake("the gradients of the copies are averaged instead of summed", ".sum(2)", ".mean(2)"),
    mistake(
        "heads of different groups are summed: the copies of a head are next to each other, so the axis of "
        "the copies comes after that of the groups",
        "n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "n_repeats, n_heads // n_repeats, length, width).sum(1)",
    ),
    mistake("only the first copy counts: the others are left out", ".sum(2)", "[:, :, 0]"),
    mistake("only the last copy counts: the others are left out", ".sum(2)", "[:, :, -1]"),
    mistake("the largest gradient of the copies is taken instead of their sum", ".sum(2)", ".max(2)"),
    mistake(
        "the sum is divided by the root of the number of copies", ".sum(2)", ".sum(2) / np.sqrt(n_repeats)"
    ),
    mistake(
        "the first heads are taken: the gradients of all copies must be summed",
        "dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "dy[:, : n_heads // n_repeats]",
    ),
    mistake(
        "all heads are summed: only the copies of the same head belong together",
        "dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "np.repeat(dy.sum(1, keepdims=True), n_heads // n_repeats, 1)",
    ),
    mistake(
        "all heads are summed to one: each head of x has the sum of its own copies",
        "dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "dy.sum(1, keepdims=True)",
    ),
    mistake(
        "dy is repeated, as in the forward pass: the gradients of the copies must be summed",
        "dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "np.repeat(dy, n_repeats, 1)",
    ),
    mistake(
        "dy itself is returned: the gradients of the copies must be summed",
        "dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "dy",
    ),
    mistake(
        "R and G are exchanged: groups of G heads are summed, and a group has R heads",
        "n_heads // n_repeats, n_repeats, length, width).sum(2)",
        "n_repeats, n_heads // n_repeats, length, width).sum(2)",
    ),
    mistake("the gradients of the copies are multiplied: they must be summed", ".sum(2)", ".prod(2)"),
    mistake("the axis of the groups is summed instead of that of the copies", ".sum(2)", ".sum(1)"),
    mistake("the sum is divided by the number of all heads", ".sum(2)", ".sum(2) / n_heads"),
    mistake("the heads of x are in the reverse order", ".sum(2)", ".sum(2)[:, ::-1]"),
)
def repeat_heads_backward(dy: Any, cache: Any) -> Any:
    """Return the sums over the copies of each head."""
    n_repeats = cache
    batch, n_heads, length, width = dy.shape
    return dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)


@plain(
    "window-mask",
    mistake(
        "the window has one position too many: the position itself counts too",
        "< window",
        "<= window",
    ),
    mistake("the window has one position too few", "< window", "< window - 1"),
    mistake("the window is left out: all earlier positions are allowed", " & (query - key < window)", ""),
    mistake(
        "the causal condition is left out: a query may attend to later positions", "(query >= key) & ", ""
    ),
    mistake("the position itself is left out", "query >= key", "query > key"),
    mistake(
        "the window is left out on the wrong side: it reaches to both sides of the position",
        "(query >= key) & (query - key < window)",
        "(abs(query - key) < window)",
    ),
    mistake(
        "queries and keys are exchanged: row t must belong to query t",
        "query, key = np.arange(length)[:, None], np.arange(length)",
        "key, query = np.arange(length)[:, None], np.arange(length)",
    ),
    mistake(
        "the mask is inverted: True must mean that the query may attend to the key",
        "return (query >= key) & (query - key < window)",
        "return ~((query >= key) & (query - key < window))",
    ),
    mistake("& is replaced by |: both conditions must hold", ") & (", ") | ("),
    mistake(
        "the positions are divided into blocks: the window must move with the position",
        "(query - key < window)",
        "(query // window == key // window)",
    ),
    mistake(
        "the first keys are shown to all queries: the window must move with the position",
        "(query - key < window)",
        "(key < window)",
    ),
    mistake(
        "the first rows are empty: a negative start of a slice counts from the end, so limit it to 0",
        "(query >= key) &",
        "(query >= key) & ((query >= window - 1) | (query - window + 1 <= -length)) &",
    ),
    mistake(
        "the first rows are empty: at the beginning the window has fewer positions",
        "(query >= key) &",
        "(query >= key) & (query >= window - 1) &",
    ),
    mistake(
        "only the key at the beginning of the window is shown: all keys of the window must be shown",
        "(query >= key) & (query - key < window)",
        "(query - key == window - 1)",
    ),
    mistake(
        "the keys of the window are hidden and the earlier ones are shown: it is the opposite",
        "(query - key < window)",
        "(query - key >= window)",
    ),
    mistake(
        "the window is half as wide as it should be", "(query - key < window)", "(2 * (query - key) < window)"
    ),
    mistake(
        "the window is twice as wide as it should be", "(query - key < window)", "(query - key < 2 * window)"
    ),
    mistake(
        "the first key is shown to all queries, as an attention sink: only the window is allowed",
        "(query - key < window)",
        "((query - key < window) | (key == 0))",
    ),
    mistake(
        "the window wraps around: the first positions attend to the last ones",
        "(query >= key) & (query - key < window)",
        "((query - key) % length < window)",
    ),
)
def causal_mask(length: Any, window: Any) -> Any:
    """Return the causal mask with a window."""
    query, key = np.arange(length)[:, None], np.arange(length)
    return (query >= key) & (query - key < window)


@plain(
    "adamw-step",
    mistake(
        "the decay is part of the gradient, as in an L2 penalty: then Adam divides it by the root of v",
        DECAY,
        "g = g + weight_decay * np.where(decays, adam.model.values, 0)",
    ),
    mistake("the weight decay is left out", DECAY, "pass"),
    mistake(
        "all parameters decay: decays is left out",
        "np.where(decays, adam.model.values, 0)",
        "adam.model.values",
    ),
    mistake(
        "the wrong parameters decay: those where decays is False",
        "np.where(decays, adam.model.values, 0)",
        "np.where(decays, 0, adam.model.values)",
    ),
    mistake("the factor lr is left out in the decay", "lr * weight_decay *", "weight_decay *"),
    mistake("the factor weight_decay is left out in the decay", "lr * weight_decay *", "lr *"),
    mistake(
        "the sign of the decay is wrong: the parameters grow",
        "values -= lr * weight_decay",
        "values += lr * weight_decay",
    ),
    mistake(
        "the decay comes after the step of Adam, and must come before it",
        f"    {DECAY}\n",
        "",
        UPDATE,
        f"{UPDATE}\n    {DECAY}",
    ),
    mistake("the parameters decay twice in one step", DECAY, f"{DECAY}; {DECAY}"),
    mistake(
        "the sign of the values decays instead of the values: this is an L1 penalty",
        "np.where(decays, adam.model.values, 0)",
        "np.where(decays, np.sign(adam.model.values), 0)",
    ),
    mistake(
        "the values move in the direction of the gradient: the sign of Adam's step is wrong",
        UPDATE,
        UPDATE.replace("-=", "+="),
    ),
    mistake(
        "the decay is added to m_hat, so that it is divided by the root of v: it must be subtracted "
        "separately",
        DECAY,
        "pass",
        "lr * m_hat",
        "lr * (m_hat + weight_decay * np.where(decays, adam.model.values, 0))",
    ),
    mistake(
        "the values decay twice: by the decay itself, and as a part of the gradient",
        DECAY,
        f"{DECAY}; g = g + weight_decay * np.where(decays, adam.model.values, 0)",
    ),
    mistake(
        "the gradient decays instead of the values",
        "np.where(decays, adam.model.values, 0)",
        "np.where(decays, g, 0)",
    ),
    mistake("the square of lr is a factor of the decay", "lr * weight_decay *", "lr**2 * weight_decay *"),
    mistake(
        "the squares of the values decay instead of the values: the decay is their derivative",
        "np.where(decays, adam.model.values, 0)",
        "np.where(decays, adam.model.values**2, 0)",
    ),
    mistake(
        "the decay is twice as large, as the derivative of the square of a value: it is the value itself",
        "lr * weight_decay *",
        "2 * lr * weight_decay *",
    ),
    mistake(
        "the parameters that do not decay are set to 0",
        DECAY,
        "adam.model.values[...] = np.where(decays, adam.model.values * (1 - lr * weight_decay), 0)",
    ),
    mistake(
        "the values are multiplied by the decay: they must be multiplied by 1 minus it",
        DECAY,
        "adam.model.values[...] *= np.where(decays, lr * weight_decay, 1)",
    ),
    mistake(
        "the parameters that do not decay are not changed by Adam's step either: decays is about the "
        "decay only",
        "lr * m_hat",
        "lr * decays * m_hat",
    ),
    mistake(
        "the weight decay shrinks the step of Adam: it must shrink the values",
        DECAY,
        "pass",
        "lr * m_hat",
        "lr * (1 - weight_decay * decays) * m_hat",
    ),
    *MOMENTS,
)
def adamw_step(adam: Any, lr: Any, weight_decay: Any, decays: Any) -> None:
    """Let the parameters decay, then change them and their moments by one step of Adam."""
    beta1, beta2 = adam.betas
    g = adam.model.grads
    adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0)
    adam.t += 1
    adam.m[...] = beta1 * adam.m + (1 - beta1) * g
    adam.v[...] = beta2 * adam.v + (1 - beta2) * g * g
    m_hat = adam.m / (1 - beta1**adam.t)
    v_hat = adam.v / (1 - beta2**adam.t)
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)


@plain(
    "cosine-floor",
    mistake(
        "the floor is added, but the cosine falls from peak to 0: the sum begins above peak",
        "(peak - floor) *",
        "peak *",
    ),
    mistake("the floor is not added at the end: the learning rate falls to 0", "floor + (", "("),
    mistake(
        "the floor is left out: the learning rate falls from peak to 0", "floor + (peak - floor)", "peak"
    ),
    mistake(
        "the cosine is cut off at the floor: it must reach the floor only at total_steps",
        "return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2",
        "return max(floor, peak * (1 + math.cos(math.pi * done)) / 2)",
    ),
    mistake(
        "the floor holds in the warm-up too, which begins at 0",
        "peak * step /",
        "floor + (peak - floor) * step /",
    ),
    mistake(
        "the learning rate changes again after total_steps: limit done to at most 1",
        f"min(1.0, {PART})",
        PART,
    ),
    mistake("the divisor 2 is left out", ") / 2", ")"),
    mistake("the sign of the cosine is wrong", "1 + math", "1 - math"),
    mistake("pi is left out", "math.pi * done", "done"),
    mistake(
        "the cosine runs through a whole period, 2 pi, instead of half a period",
        "math.pi * done",
        "2 * math.pi * done",
    ),
    mistake("the decrease is linear instead of a cosine", "(1 + math.cos(math.pi * done)) / 2", "(1 - done)"),
    mistake(
        "the decrease is divided by total_steps instead of total_steps - warmup_steps",
        "/ (total_steps - warmup_steps)",
        "/ total_steps",
    ),
    mistake(
        "warmup_steps is ignored in the second part: done must be 0 at warmup_steps",
        PART,
        "step / total_steps",
    ),
    mistake(
        "there is no warm-up: the learning rate is peak from the first step",
        "peak * step / warmup_steps",
        "peak",
    ),
    mistake(
        "after total_steps the learning rate is 0: it stays at the floor",
        f"        done = min(1.0, {PART})",
        f"        done = {PART}\n        if done > 1:\n            return 0.0",
    ),
    mistake(
        "the floor is a fraction of peak: it is the learning rate itself",
        "return floor + (peak - floor)",
        "return floor * peak + (peak - floor * peak)",
    ),
    mistake(
        "the floor is added to peak: the cosine falls by peak - floor", "(peak - floor)", "(peak + floor)"
    ),
    mistake(
        "the cosine is not moved up by 1: the learning rate falls below the floor",
        "(1 + math.cos(math.pi * done)) / 2",
        "math.cos(math.pi * done)",
    ),
    mistake(
        "the parentheses are wrong: floor is added before the division by 2",
        "floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2",
        "(floor + (peak - floor) * (1 + math.cos(math.pi * done))) / 2",
    ),
    mistake(
        "the parentheses are wrong: only the cosine is divided by 2",
        "(1 + math.cos(math.pi * done)) / 2",
        "(1 + math.cos(math.pi * done) / 2)",
    ),
    mistake(
        "the cosine begins again after total_steps (a restart): the learning rate stays at the floor",
        f"min(1.0, {PART})",
        f"({PART}) % 1",
    ),
    mistake(
        "the cosine runs through a quarter of a period, pi / 2, instead of half a period",
        "math.pi * done",
        "math.pi / 2 * done",
    ),
    mistake(
        "warmup_steps is not subtracted from step in the second part", "(step - warmup_steps) /", "step /"
    ),
    mistake("the warm-up is left out: the cosine begins at step 0", "step < warmup_steps", "False"),
    mistake(
        "the warm-up comes one step too late: it counts from step - 1",
        "peak * step / warmup_steps",
        "peak * (step - 1) / warmup_steps",
    ),
    mistake(
        "the warm-up is one step too early: it counts from step + 1",
        "peak * step / warmup_steps",
        "peak * (step + 1) / warmup_steps",
    ),
    mistake("the decrease comes one step too late", "(step - warmup_steps) /", "(step - warmup_steps - 1) /"),
    mistake("the sine is used instead of the cosine", "math.cos", "math.sin"),
    mistake(
        "the warm-up begins at 0 and ends at the floor: it ends at peak", "peak * step /", "floor * step /"
    ),
    mistake("the warm-up ends at peak - floor: it ends at peak", "peak * step /", "(peak - floor) * step /"),
    mistake(
        "the floor is a lower limit in the warm-up too, which begins at 0",
        "return peak * step / warmup_steps",
        "return max(floor, peak * step / warmup_steps)",
    ),
    mistake(
        "the floor is subtracted from peak but not added at the end, and it limits the result",
        "return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2",
        "return max(floor, (peak - floor) * (1 + math.cos(math.pi * done)) / 2)",
    ),
)
def cosine(peak: Any, total_steps: Any, warmup_steps: Any, floor: Any) -> Any:
    """Return a schedule that falls like a cosine to the floor: a function of the step."""

    def schedule(step: Any) -> Any:
        if step < warmup_steps:
            return peak * step / warmup_steps
        done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))
        return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2

    return schedule

"""Chapters 8 and 9: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== layer-norm
x.var(-1, keepdims=True) => x.var(-1, keepdims=True, ddof=1)
    ## the variance is divided by D - 1 instead of D: this is the sample variance
=> (x**2).mean(-1, keepdims=True) ## the variance is the mean of x² instead of the mean of (x - mean)²
=> ((x - mean) ** 2).sum(-1, keepdims=True)
    ## the variance is a sum and must be a mean: it is not divided by D
gain * xhat + bias => gain * (xhat + bias) ## the parentheses are wrong: the bias is multiplied by gain too
=> bias * xhat + gain ## gain and bias are exchanged
(x - mean) => x && x.var(-1, keepdims=True) => (x**2).mean(-1, keepdims=True)
    ## the mean is not subtracted, as in RMS norm
+ eps => + NUMBER ## the argument eps is not used: NUMBER is used always
gain * xhat => (1 + gain) * xhat
    ## 1 + gain is used instead of gain, as in models whose gain is stored as the difference from 1
(x - mean) / np.sqrt(variance + eps) => x / np.sqrt(variance + eps) - mean
    ## the mean is subtracted after the division: first subtract it from x, then divide
=> x / np.sqrt((x**2).sum(-1, keepdims=True) + eps)
    ## x is divided by its Euclidean length: subtract the mean, and divide by the standard deviation
=> (x - x.min(-1, keepdims=True)) / (x.max(-1, keepdims=True) - x.min(-1, keepdims=True) + eps)
    ## x is scaled to the range from 0 to 1: subtract the mean, and divide by the standard deviation
np.sqrt(variance + eps) => (np.abs(x - mean).mean(-1, keepdims=True) + eps)
    ## the mean of the absolute differences is used instead of the standard deviation
(-1, keepdims=True) => ((-2, -1), keepdims=True)
    ## mean and variance are computed over the last two axes: each vector needs its own
variance + eps => np.maximum(variance, eps)
    ## eps is a lower limit of the variance: it must be added to the variance
=> variance + eps**2 ## eps is squared
(x - mean) / => (x - mean + bias) / && + bias\n => \n
    ## the bias is added before the division: it must be added at the end
=== layer-norm-backward
- xhat * along_xhat => ## the term through the variance is left out in dx
- along_mean - xhat * along_xhat => ## the terms through the mean and through the variance are left out in dx
dxhat = dy * gain => dxhat = dy && rstd * ( => gain * rstd * (
    ## gain is a factor of the whole of dx, and belongs to dy before the two means are computed
- xhat * => + xhat * ## the term through the variance has the wrong sign in dx
rstd * (dxhat - along_mean - xhat * along_xhat) => rstd * dxhat - along_mean - xhat * along_xhat
    ## rstd multiplies only dxhat: it belongs to all three terms of dx
=> rstd * (dxhat - xhat * (dy * xhat).mean(-1, keepdims=True))
    ## the term through the mean is left out, and gain is left out in the mean of dxhat · xhat
dxhat.mean(-1, keepdims=True) => dxhat.mean() && xhat).mean(-1, keepdims=True) => xhat).mean()
    ## both means run over all entries: each row needs its own means
dgain = (dy * xhat) => dgain = (dy * xhat / rstd)
    ## x - mean is used instead of xhat in dgain: the division by the standard deviation is left out
along_mean = dxhat.mean(-1, keepdims=True) => along_mean = gain * dy.mean(-1, keepdims=True)
    ## the mean is subtracted from dy before it is multiplied by gain
=== residual
norm.forward(x, h) => norm.forward(x, 0 * h) ## post-norm: the sublayer is left out
=> norm.forward(0 * x, h) ## post-norm: x is left out of the sum
=> norm.forward(x, x + h) ## post-norm: x is added twice: layer.norm.forward(x, h) adds it
=> norm.forward(h, h) ## post-norm: h takes the place of x too
return y, Post => return x + y, Post ## post-norm: x is added again after the norm
=> return x + h, Post ## post-norm: the output of the sublayer is returned without the norm
sublayer(x) => sublayer(layer.norm.forward(x, 0 * x)[0]) ## post-norm: the norm comes before the sublayer
sublayer(normed) => sublayer(x) ## pre-norm: the sublayer gets x instead of the normed x
x + dropped => x + h ## pre-norm: dropout is left out
=> layer.dropout.forward(x + h)[0] ## pre-norm: dropout is applied to the sum: x itself is never dropped
=> layer.dropout.forward(x)[0] + h ## pre-norm: dropout is applied to x instead of h
=> layer.norm.forward(x + dropped)[0] ## pre-norm: the sum is normalized too, as in post-norm
=> x + layer.dropout.forward(normed)[0] ## pre-norm: the sublayer is left out
=== residual-backward
sublayer_backward(dh, cache.sublayer) => sublayer_backward(dx + dh, cache.sublayer)
    ## post-norm: the sublayer gets dx + dh: it gets dh alone
dh = sublayer_backward(dh, cache.sublayer)\n    return dx + dh => return dx + dh + sublayer_backward(dh,
    cache.sublayer) ## post-norm: the gradient dh before the sublayer is added too: only what the sublayer
    returns belongs to the result
layer.norm.backward(dy, cache.add_norm)\n    dh = sublayer_backward(dh, cache.sublayer) =>
    layer.norm.backward(sublayer_backward(dy, cache.sublayer), cache.add_norm)
    ## post-norm: the sublayer comes first: the backward pass begins with the norm, which came last
sublayer_backward(dropped, cache.sublayer) => layer.dropout.backward(sublayer_backward(dy, cache.sublayer),
    cache.dropout_mask)
    ## pre-norm: dropout comes after the sublayer: the backward pass goes through dropout first
=> sublayer_backward(dy, cache.sublayer) && return dy + dnorm => return dy + layer.dropout.backward(dnorm,
    cache.dropout_mask)
    ## pre-norm: dropout is applied to the result of the norm: it comes first in the backward pass
dnorm = layer.norm.backward(dnormed, cache.norm)\n    return dy + dnorm => return layer.norm.backward(dy +
    dnormed, cache.norm)
    ## pre-norm: dy is added before the norm: the residual connection passes it around the norm
dnormed = sublayer_backward(dropped, cache.sublayer)\n    dnorm = layer.norm.backward(dnormed, cache.norm) =>
    dnorm = sublayer_backward(layer.norm.backward(dropped, cache.norm), cache.sublayer)
    ## pre-norm: the norm comes before the sublayer: in the backward pass the sublayer comes first
=== dropout-backward
dy * dropout_mask => dy * (dropout_mask > 0)
    ## the factor 1 / (1 - p) is left out: the dropped entries are 0, but the others are not rescaled
return dy * dropout_mask => return np.where(dropout_mask > 0, 0, dy)
    ## the two cases are exchanged: the gradient of the dropped entries should be 0
=> return np.where(dropout_mask == 1, dy, 0)
    ## only entries where the mask is 1 pass: at the entries that are not dropped it is 1 / (1 - p)
=> return dy * dropout_mask.mean() ## the mean of dropout_mask is used: each entry has its own factor
=> return (dy * dropout_mask)[dropout_mask > 0] ## the entries that are not dropped are selected, which gives
    a flat array: keep the shape, with 0 at the dropped entries
=> return dy * dropout_mask / (dropout_mask > 0).mean()
    ## the gradient is divided by the share of the entries that are not dropped: the mask contains this factor
return dy\n => return 0 * dy\n ## if dropout_mask is None, nothing was dropped: dx is dy then, and not 0
=== relu-backward
np.where(y > 0, dy, 0) => dy
    ## it is dy itself: the condition y > 0 is left out, or it is y >= 0, which is true for every entry
=> np.where(y > 0, np.maximum(dy, 0), 0)
    ## ReLU is applied to dy as well: the sign of dy does not count, only y
=> dy * y * (1 - y) ## this is the derivative of the sigmoid: that of ReLU is 1 where y > 0 and 0 elsewhere
=> dy * (1 - y**2) ## this is the derivative of tanh: that of ReLU is 1 where y > 0 and 0 elsewhere
=> dy * (1 - np.exp(-y)) ## this is the derivative of softplus: that of ReLU is 1 where y > 0 and 0 elsewhere
=> dy[y > 0] ## the gradients of the entries above 0 are selected, which gives a flat array: keep the shape,
    with 0 elsewhere
y > 0 => y > y.mean() ## the entries above the mean pass: the limit is 0
=== gelu-backward
(phi + x * density) => phi ## the product rule has a second term, because Phi depends on x too: it is left out
=> (x * density) ## the product rule has two terms: the term phi is left out
=> (x * phi + density)
    ## phi stands with x, and the density alone: the term phi has no factor x, and the density has it
x * density => density ## the factor x in front of the density is left out
=> x**2 * density ## x is squared in front of the density
=> x * (-x * density)
    ## the derivative of the density, -x times it, is used: the density is the derivative of phi already
np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) => phi * (1 - phi)
    ## phi (1 - phi), the derivative of a sigmoid, is used instead of the density
density = => u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)\n    density = && dy * (phi + x * density) =>
    dy * (0.5 * (1 + np.tanh(u)) + 0.5 * x * (1 - np.tanh(u) ** 2) * math.sqrt(2 / math.pi) * (1 + 3 *
    0.044715 * x**2))
    ## this is the derivative of the approximation with tanh: phi and the exact density are needed
=> u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)\n    density = && x * density => 0.5 * x * (1 -
    np.tanh(u) ** 2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    ## this is the derivative of the approximation with tanh, but with phi: the exact density is needed
=> s = 1 / (1 + np.exp(-1.702 * x))\n    density = && dy * (phi + x * density) => dy * (s + 1.702 * x * s * (1
    - s))
    ## this is the derivative of x · sigmoid(1.702 x), an approximation: phi and the exact density are needed
=> s = 1 / (1 + np.exp(-x))\n    density = && dy * (phi + x * density) => dy * (s + x * s * (1 - s))
    ## this is the derivative of swish, x · sigmoid(x)
math.sqrt(2 * math.pi) => (math.sqrt(2) * math.pi) ## pi stands outside the square root: 2 pi belongs under it
/ math.sqrt(2 * math.pi) => / math.sqrt(2) * math.pi
    ## the parentheses are wrong: it is divided by sqrt(2) and multiplied by pi
dy * (phi + x * density) => phi + dy * x * density
    ## dy multiplies only the term with the density: it belongs to both terms
=== feed-forward
activation_dropout(h, layer.activation) => h, activation_dropout(h, layer.activation)[1]
    ## the activation is left out
(h, layer.activation) => (h) ## the activation is always the ReLU: layer.activation is its name
return y, => return activation_dropout(y, layer.activation)[0], ## the activation is applied to the output too
=> return y - layer.outer.bias.value, ## the bias b2 of the outer layer is left out
outer.forward(h) => outer.forward(activation_dropout(h, layer.activation)[0])
    ## the activation is applied twice
inner.forward(x) => inner.forward(activation_dropout(x, layer.activation)[0])
    ## the activation is applied to x too
h, hidden = activation_dropout(h, => h, hidden = activation_dropout(h - layer.inner.bias.value,
    ## the bias b1 of the inner layer is left out
=> h, hidden = activation_dropout(h - layer.inner.bias.value, && return y, => return y -
    layer.outer.bias.value, ## both biases are left out
=== feed-forward-backward
return layer.inner.backward(dh, cache.inner) => layer.inner.backward(dh, cache.inner)\n    return dy
    ## dy itself is returned, instead of what layer.inner.backward returns
=> return (dy + layer.inner.backward(dh, cache.inner)) / 2
    ## dx and dy are averaged: there is no residual connection in the feed-forward network itself
layer.outer.backward(dy => layer.outer.backward(dy / len(dy)
    ## dy is divided by the batch size: a gradient must not be averaged here
"""

"""Chapter 23: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== rms-norm-backward
- xhat * along_xhat => ## the term through the mean of x² is left out in dx
rrms * (dxhat - xhat * along_xhat) => rrms * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along_xhat)
    ## the mean of dxhat is subtracted too, as in layer norm: RMS norm does not subtract the mean of x
(dxhat * xhat).mean => (dy * xhat).mean
    ## gain is left out in the mean of dxhat · xhat: it is computed from dy
dxhat = dy * gain => dxhat = dy && rrms * ( => gain * rrms * (
    ## dxhat is multiplied by gain only at the end: the mean of dxhat · xhat needs the gain too
- xhat * along_xhat => - dxhat.mean(-1, keepdims=True) ## only the mean of dxhat is subtracted, as in the
    first term of layer norm: RMS norm has the term through the mean of x² instead
dgain = (dy * xhat) => dgain = (dy * xhat / rrms)
    ## x is used instead of xhat in dgain: the division by the root of the mean of x² is left out
=== rotate rotate-backward
half = => cos, sin = cos[:1], sin[:1]; half = ## the angles of the first position are used for all positions
=> cos, sin = cos[:, :1], sin[:, :1]; half = ## the angles of the first pair are used for all pairs
=> cos, sin = cos[::-1], sin[::-1]; half = ## the positions are in the reverse order
=== rotate
[a * cos - b * sin, a * sin + b * cos] => [a * cos + b * sin, b * cos - a * sin]
    ## the rotation has the wrong direction: the signs of the two terms with sin are exchanged
=> [a * cos, b * cos] ## the terms with sin are left out
=> [-b * sin, a * sin] ## the terms with cos are left out
=> [a * cos - a * sin, b * sin + b * cos] ## a and b are mixed up: each new number contains both of them
half = => cos, sin = sin, cos; half = ## cos and sin are exchanged
=> cos, sin = cos[:, ::-1], sin[:, ::-1]; half = ## the pairs of angles are in the reverse order
=> cos, sin = cos**2 - sin**2, 2 * sin * cos; half = ## the rotation is applied twice: the angles are doubled
x[..., :half], x[..., half:] => x[..., 0::2], x[..., 1::2] && return np.concatenate([a * cos - b * sin, a *
    sin + b * cos], -1) => return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)
    ## neighbours are rotated, as in the layout interleaved: number i of the first half and number i of the
    second half form a pair
=> x[..., :half], x[..., : half - 1 : -1] && a * sin + b * cos] => (a * sin + b * cos)[..., ::-1]] ## number i
    and the number i from the end form a pair, in x and in y: it must be number i of the second half
return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1) => return np.stack([a * cos - b * sin, a *
    sin + b * cos], -1).reshape(x.shape)
    ## the rotated numbers of a pair become neighbours: they must be in the two halves of y
=> return x * np.concatenate([cos, cos], -1) + np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape) *
    np.concatenate([sin, sin], -1) ## neighbours are exchanged, as in the layout interleaved, but the angles
    are those of halves: the two halves of x must be exchanged
a * sin + b * cos => b ## the second half of y is x itself: it is not rotated
a * cos - b * sin => a ## the first half of y is x itself: it is not rotated
return np => a = a * cos - b * sin\n    return np && [a * cos - b * sin, a * sin + b * cos] => [a, a * sin + b
    * cos] ## the new first half is used for the second half: compute both from the numbers of x
=> (c1, c2), (s1, s2) = (np.split(np.repeat(angle, 2, -1), 2, -1) for angle in (cos, sin))\n    return np &&
    [a * cos - b * sin, a * sin + b * cos] => [a * c1 - b * s1, a * s2 + b * c2]
    ## each angle is repeated for two neighbours, as in the layout interleaved: for halves the angles of all
    pairs are put side by side twice
=> sin, cos = sin * (np.arange(half) == 0), np.where(np.arange(half) == 0, cos, 1)\n    return np
    ## only the first pair is rotated
=== rotate-backward
a * cos + b * sin, b * cos - a * sin => a * cos - b * sin, a * sin + b * cos
    ## dy is rotated forwards once more: the backward pass is the rotation in the opposite direction
=> a * cos, b * cos ## the terms with sin are left out
=> a, b ## the rotation is left out: the result is dy itself
=> a / cos + b * sin, b / cos - a * sin ## dy is divided by cos instead of multiplied
=> b * sin, -a * sin ## the terms with cos are left out
=> -a * sin - b * cos, a * cos - b * sin
    ## the angles are differentiated: they are constants, so each term keeps its cos or sin
dy[..., :half], dy[..., half:] => dy[..., 0::2], dy[..., 1::2] && return np.concatenate([a * cos + b * sin, b
    * cos - a * sin], -1) => return np.stack([a * cos + b * sin, b * cos - a * sin], -1).reshape(dy.shape)
    ## neighbours are rotated, as in the layout interleaved: the halves of dy belong together
return np => (c1, c2), (s1, s2) = (np.split(np.repeat(angle, 2, -1), 2, -1) for angle in (cos,
    sin))\n    return np && a * cos + b * sin, b * cos - a * sin => a * c1 + b * s1, b * c2 - a * s2
    ## each angle is repeated for two neighbours, as in the layout interleaved: for halves the angles of all
    pairs are put side by side twice
=> a = a * cos + b * sin\n    return np && a * cos + b * sin, b * cos - a * sin => a, b * cos - a * sin
    ## the new first half is used for the second half: compute both from the numbers of dy
return np.concatenate([a * cos + b * sin, b * cos - a * sin], -1) => return dy * np.concatenate([cos, cos],
    -1) - np.stack([-dy[..., 1::2], dy[..., 0::2]], -1).reshape(dy.shape) * np.concatenate([sin, sin], -1)
    ## neighbours are exchanged, as in the layout interleaved, but the angles are those of halves: the two
    halves of dy must be exchanged
half = => cos, sin = cos**2 - sin**2, 2 * sin * cos; half =
    ## dy is rotated back twice: the angles are doubled
=== interleaved-rotation
a * cos - b * sin => a * cos + b * sin && a * sin + b * cos => b * cos - a * sin
    ## the rotation has the wrong direction: the signs of the two terms with sin are exchanged
=> a * sin - b * cos && a * sin + b * cos => a * cos + b * sin ## cos and sin are exchanged
=> -b * sin && a * sin + b * cos => a * sin ## the terms with cos are left out
=> a ## the first number of each pair is that of x: it is not rotated
x[..., 0::2], x[..., 1::2] => x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :] && y[..., 0::2] => y[...,
    : x.shape[-1] // 2] && y[..., 1::2] => y[..., x.shape[-1] // 2 :]
    ## the two halves of a vector are rotated, as in the layout halves: neighbours form a pair
y[..., 0::2] => y[..., : x.shape[-1] // 2] && y[..., 1::2] => y[..., x.shape[-1] // 2 :]
    ## the pairs are neighbours in x, but halves in y: in y they must be neighbours too
=> y[..., 1::2] && y[..., 1::2] = a * sin => y[..., 0::2] = a * sin
    ## the two numbers of each pair of y are exchanged
- b * sin =>  && a * sin + => ## the terms with sin are left out
a * sin + b => y[..., 0::2] * sin + b
    ## the new first number is used for the second one: compute both from the numbers of x
y = np => c, s = np.concatenate([cos, cos], -1), np.concatenate([sin, sin], -1)\n    y = np && = a * cos - b *
    sin => = a * c[..., 0::2] - b * s[..., 0::2] && = a * sin + b * cos => = a * s[..., 1::2] + b * c[...,
    1::2] ## the angles of all pairs are put side by side twice, as in the layout halves: each angle must be
    repeated for two neighbours
=> h = x.shape[-1] // 2; turned = np.concatenate([-x[..., h:], x[..., :h]], -1)\n    y = np && - b * sin => +
    turned[..., 0::2] * sin && a * sin + b => turned[..., 1::2] * sin + b ## the halves of x are exchanged, as
    in the layout halves, but the angles are repeated for neighbours: neighbours must be exchanged
=> cos, sin = cos[:1], sin[:1]\n    y = np ## the angles of the first position are used for all positions
=> cos, sin = cos[:, :1], sin[:, :1]\n    y = np ## the angles of the first pair are used for all pairs
=> cos, sin = cos[::-1], sin[::-1]\n    y = np ## the positions are in the reverse order
=> cos, sin = cos**2 - sin**2, 2 * sin * cos\n    y = np
    ## the rotation is applied twice: the angles are doubled
a, b = x[..., 0::2], x[..., 1::2] => half = x.shape[-1] // 2\n    a, b = x[..., :half], x[..., 1 : half + 1]
    && y[..., 0::2] = => y[...] = x\n    y[..., 1 : half + 1] = a * sin + b * cos\n    y[..., :half] = &&
    y[..., 1::2] = a * sin + b * cos => pass
    ## the numbers i and i + 1 form pair i: it must be the numbers 2i and 2i + 1
a * sin + b * cos => b ## the second number of each pair is that of x: it is not rotated
=== swiglu-backward
dy * cache.activated => dy * gate ## dvalue is multiplied by gate instead of swish(gate)
=> dy * s ## dvalue is multiplied by sigmoid(gate) instead of swish(gate)
=> dy * s && (s + gate * s * (1 - s)) => (s * (1 - s))
    ## this is the backward pass of GLU, whose gate is a sigmoid: here the gate is swish(gate) = gate · s
=> dy * cache.value ## dvalue is multiplied by value instead of swish(gate)
=> dy * cache.value && dy * cache.value * ( => dy * cache.activated * (
    ## the factors of dgate and dvalue are exchanged: dvalue contains swish(gate), and dgate the value
=> dy * (s + gate * s * (1 - s)) ## the derivative of swish is also a factor of dvalue
(s + gate * s * (1 - s)) => cache.activated ## dgate is multiplied by swish(gate) instead of its derivative
=> (gate > 0) ## this is the backward pass of ReGLU, whose gate is ReLU: the derivative of swish is needed
gate * s * (1 - s) => cache.activated * s * (1 - s) ## dgate contains swish(gate) in place of gate
dy * cache.value * (s + gate * s * (1 - s)) => dy * cache.value
    ## the derivative of swish is left out in dgate
s * (1 - s) => cache.activated * (1 - cache.activated)
    ## the derivative of swish contains swish(gate) (1 - swish(gate)): it must contain s (1 - s)
gate, s = cache.activation => gate, s = cache.activation[0], 1 / (1 + np.exp(-cache.activation[1]))
    ## the sigmoid is applied to s once more
=== shared-keys-backward
n_heads // n_repeats, n_repeats, length, width).sum(2) => n_repeats, n_heads // n_repeats, length,
    width).sum(1) ## heads of different groups are summed: the copies of a head are next to each other, so the
    axis of the copies comes after that of the groups
=> n_repeats, n_heads // n_repeats, length, width).sum(2)
    ## R and G are exchanged: groups of G heads are summed, and a group has R heads
.sum(2) => .sum(2) / np.sqrt(n_repeats) ## the sum is divided by the root of the number of copies
=> .sum(2)[:, ::-1] ## the heads of x are in the reverse order
dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2) => dy[:, : n_heads // n_repeats]
    ## the first heads are taken: the gradients of all copies must be summed
=> np.repeat(dy.sum(1, keepdims=True), n_heads // n_repeats, 1)
    ## all heads are summed: only the copies of the same head belong together
=> dy.sum(1, keepdims=True) ## all heads are summed to one: each head of x has the sum of its own copies
=> np.repeat(dy, n_repeats, 1)
    ## dy is repeated, as in the forward pass: the gradients of the copies must be summed
=> dy ## dy itself is returned: the gradients of the copies must be summed
=== window-mask
< window => <= window ## the window has one position too many: the position itself counts too
=> < window - 1 ## the window has one position too few
& (query - key < window) => ## the window is left out: all earlier positions are allowed
(query >= key) & => ## the causal condition is left out: a query may attend to later positions
query >= key => query > key ## the position itself is left out
(query >= key) & (query - key < window) => (abs(query - key) < window)
    ## the window is left out on the wrong side: it reaches to both sides of the position
=> (query - key == window - 1)
    ## only the key at the beginning of the window is shown: all keys of the window must be shown
=> ((query - key) % length < window) ## the window wraps around: the first positions attend to the last ones
(query - key < window) => (query // window == key // window)
    ## the positions are divided into blocks: the window must move with the position
=> (key < window) ## the first keys are shown to all queries: the window must move with the position
=> ((query - key < window) | (key == 0))
    ## the first key is shown to all queries, as an attention sink: only the window is allowed
(query >= key) & => (query >= key) & ((query >= window - 1) | (query - window + 1 <= -length)) &
    ## the first rows are empty: a negative start of a slice counts from the end, so limit it to 0
=> (query >= key) & (query >= window - 1) &
    ## the first rows are empty: at the beginning the window has fewer positions
=== adamw-step
adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0) => g = g + weight_decay *
    np.where(decays, adam.model.values, 0)
    ## the decay is part of the gradient, as in an L2 penalty: then Adam divides it by the root of v
=> adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0); adam.model.values -= lr *
    weight_decay * np.where(decays, adam.model.values, 0) ## the parameters decay twice in one step
=> pass && lr * m_hat => lr * (m_hat + weight_decay * np.where(decays, adam.model.values, 0))
    ## the decay is added to m_hat, so that it is divided by the root of v: it must be subtracted separately
=> adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0); g = g + weight_decay *
    np.where(decays, adam.model.values, 0)
    ## the values decay twice: by the decay itself, and as a part of the gradient
=> adam.model.values[...] = np.where(decays, adam.model.values * (1 - lr * weight_decay), 0)
    ## the parameters that do not decay are set to 0
=> adam.model.values[...] *= np.where(decays, lr * weight_decay, 1)
    ## the values are multiplied by the decay: they must be multiplied by 1 minus it
=> pass && lr * m_hat => lr * (1 - weight_decay * decays) * m_hat
    ## the weight decay shrinks the step of Adam: it must shrink the values
np.where(decays, adam.model.values, 0) => adam.model.values ## all parameters decay: decays is left out
=> np.where(decays, 0, adam.model.values) ## the wrong parameters decay: those where decays is False
=> np.where(decays, np.sign(adam.model.values), 0)
    ## the sign of the values decays instead of the values: this is an L1 penalty
=> np.where(decays, g, 0) ## the gradient decays instead of the values
=> np.where(decays, adam.model.values**2, 0)
    ## the squares of the values decay instead of the values: the decay is their derivative
adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0) => pass && adam.model.values
    -= lr * m_hat / (np.sqrt(v_hat) + adam.eps) => adam.model.values -= lr * m_hat / (np.sqrt(v_hat) +
    adam.eps)\n    adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0)
    ## the decay comes after the step of Adam, and must come before it
np.sqrt(v_hat) => v_hat ## the square root of v is left out
=== cosine-floor
floor + (peak - floor) => peak ## the floor is left out: the learning rate falls from peak to 0
return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2 => return max(floor, peak * (1 +
    math.cos(math.pi * done)) / 2)
    ## the cosine is cut off at the floor: it must reach the floor only at total_steps
=> return max(floor, (peak - floor) * (1 + math.cos(math.pi * done)) / 2)
    ## the floor is subtracted from peak but not added at the end, and it limits the result
peak * step / => floor + (peak - floor) * step / ## the floor holds in the warm-up too, which begins at 0
=> (peak - floor) * step / ## the warm-up ends at peak - floor: it ends at peak
done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps)) => done = (step - warmup_steps) /
    (total_steps - warmup_steps)\n        if done > 1:\n            return 0.0
    ## after total_steps the learning rate is 0: it stays at the floor
return floor + (peak - floor) => return floor * peak + (peak - floor * peak)
    ## the floor is a fraction of peak: it is the learning rate itself
floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2 => (floor + (peak - floor) * (1 + math.cos(math.pi
    * done))) / 2 ## the parentheses are wrong: floor is added before the division by 2
return peak * step / warmup_steps => return max(floor, peak * step / warmup_steps)
    ## the floor is a lower limit in the warm-up too, which begins at 0
"""

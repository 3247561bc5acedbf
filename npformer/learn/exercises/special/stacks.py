"""Chapters 10 and 11: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== encoder-layer-backward decoder-layer-backward
feed_forward.backward(dh => feed_forward.backward(dx
    ## the feed-forward network gets dx instead of dh, so dropout is left out
=== encoder-layer-backward
dx = dx + layer.feed_forward => dx = dy + dx + layer.feed_forward
    ## dy is added to the dx of layer.norm2: the residual connection lies inside the norm
dx, dh = layer.norm2.backward(dy, cache.norm2) => dx, dh = layer.norm1.backward(dy, cache.norm1) && dx = dx +
    layer.feed_forward.backward(dh, cache.feed_forward) => dx = dx + layer.self_attention.backward(dh,
    cache.self_attention) && dx, dh = layer.norm1.backward(dx, cache.norm1) => dx, dh =
    layer.norm2.backward(dx, cache.norm2) && return dx + layer.self_attention.backward(dh,
    cache.self_attention) => return dx + layer.feed_forward.backward(dh, cache.feed_forward) ## the sublayers
    are in the wrong order: the backward pass begins with layer.norm2 and the feed-forward network
=== encoder-backward decoder-backward
if layer.norm is not None:\n        dx = layer.norm.backward(dx, cache.norm) => pass && return dx => if
    layer.norm is not None:\n        dx = layer.norm.backward(dx, cache.norm)\n    return dx
    ## the norm comes after the layers: the backward pass begins with the norm, which came last
=> pass && one.backward(dx, c) => one.backward(dx if layer.norm is None else layer.norm.backward(dx,
    cache.norm), c)
    ## the norm is applied before every layer: it comes once, after all layers, so it is the first step
for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True) => top = dx\n    for one, c in
    zip(layer.layers[::-1], cache.layers[::-1], strict=True) && one.backward(dx, c) => one.backward(top, c)
    ## every layer gets dy instead of the dx that the layer above returned
=== encoder-backward
dx = one.backward(dx, c) => dx = dx + one.backward(dx, c)
    ## dx is added once more: the residual connections lie inside the layers
=> return one.backward(dx, c)
    ## only the last layer runs: the loop ends too early, for example by a return inside it
for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True) => top, dx = dx, 0\n    for one, c in
    zip(layer.layers[::-1], cache.layers[::-1], strict=True) && one.backward(dx, c) => dx + one.backward(top,
    c) ## every layer gets the same gradient, and the results are summed: the layers are in sequence, so each
    must get the dx that the layer above returned
=> top, dx = dx, 0\n    for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True) &&
    one.backward(dx, c) => dx + one.backward(top, c) / len(layer.layers)
    ## every layer gets the same gradient, and the results are averaged: the layers are in sequence, so each
    must get the dx that the layer above returned
=> for one, c in zip(layer.layers[:1], cache.layers[:1], strict=True)
    ## only the first layer runs: all layers must run, each with the dx of the layer above
one.backward(dx, c) => one.backward(dx, cache.layers[-1]) ## all layers get the cache of the last layer
=> one.backward(dx, cache.layers[0]) ## all layers get the cache of the first layer
=== decoder-layer-backward
self_attention.backward(dh => self_attention.backward(dx
    ## the self-attention gets dx instead of dh, so dropout is left out
norm2.backward(dx => norm2.backward(dy && norm1.backward(dx => norm1.backward(dy
    ## the norms above layer.norm1 get dy: each must get the dx of the sublayer above
return dx, dmemory => return dx, 0 * dmemory ## dmemory is 0: it must be what the cross-attention returned
dx, dh = layer.norm2.backward(dx, cache.norm2)\n    dh, dmemory = layer.cross.backward(dh,
    cache.cross)\n    dx = dx + dh\n    dx, dh = layer.norm1.backward(dx, cache.norm1)\n    dx = dx +
    layer.self_attention.backward(dh, cache.self_attention) => dx, dh = layer.norm1.backward(dx,
    cache.norm1)\n    dx = dx + layer.self_attention.backward(dh, cache.self_attention)\n    dx, dh =
    layer.norm2.backward(dx, cache.norm2)\n    dh, dmemory = layer.cross.backward(dh, cache.cross)\n    dx =
    dx + dh ## the sublayers are in the wrong order: cross-attention comes first in the backward pass
=== decoder-backward
dmemory + dmemory_here => dmemory_here if one is layer.layers[-1] else dmemory
    ## only the dmemory of the last layer is returned: those of all layers must be summed
return dx, dmemory => return dx, dmemory / len(layer.layers)
    ## dmemory is averaged over the layers instead of summed
for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True) => top, dx = dx, 0\n    for one, c in
    zip(layer.layers[::-1], cache.layers[::-1], strict=True) && dx, dmemory_here = one.backward(dx, c) =>
    dx_here, dmemory_here = one.backward(top, c); dx = dx + dx_here ## every layer gets the same gradient, and
    the results are summed: the layers are in sequence, so each must get the dx that the layer above returned
dx, dmemory_here = one.backward(dx, c) => dx_here, dmemory_here = one.backward(dx, c); dx = dx + dx_here
    ## dx is added once more: the residual connections lie inside the layers
dmemory = dmemory + dmemory_here => return dx, dmemory_here
    ## only the last layer runs: the loop ends too early, for example by a return inside it
=== shift-right
[start, target[:, :-1]] => [target[:, 1:], start]
    ## the target is shifted left: it loses its first token, and the start symbol comes last
=> [target[:, :-1], start] ## the start symbol is at the end and must be at the beginning
=> [start, start, target[:, :-2]] ## the target is shifted by two places: there is one start symbol
=> [start, target[:, :-2], start]
    ## the start symbol stands before and after the tokens: it stands only in front
target[:, :-1] => target ## the last token is not left out, so that there is one column too many
=> target[:, 1:] ## the first token is left out instead of the last token: the start symbol stands before it
=> target[:, -2::-1] ## the order of the tokens is reversed
start_id, target.dtype => 1, target.dtype ## start_id is ignored: the first column is 1
[start, target => [target[:, -1:], target ## the last token moves to the front instead of start_id
np.concatenate([start, target[:, :-1]], 1) => np.concatenate([np.full((1, target.shape[1]), start_id),
    target[:-1]]) ## the target is shifted along the batch axis: each sentence moves to the next row
=> np.concatenate([np.full((1, target.shape[1]), start_id), np.roll(target, 1, 1)[1:]])
    ## the start symbol fills the first row, and must fill the first column
=> target ## the target is not shifted
=> np.concatenate([np.concatenate([start, target[:, :-1]], 1)[:1], target[1:]])
    ## only the first sentence is shifted: every row begins with the start symbol
=> np.concatenate([[start_id], target.reshape(-1)[:-1]]).reshape(target.shape)
    ## all sentences are one long text that is shifted: every row begins with the start symbol
=> np.full_like(target, start_id) ## every token is the start symbol, as if the changed array was copied: the
    places after the first hold the tokens of target
"""

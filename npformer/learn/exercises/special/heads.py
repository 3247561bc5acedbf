"""Chapters 6 and 7: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== causal-mask
position[None, :] <= position[:, None] => position[None, :] < position[:, None]
    ## the diagonal is hidden: a position may attend to itself
=> position[None, :] >= position[:, None]
    ## it is transposed: rows are queries, and each may attend to the earlier keys and not to the later ones
=> position[None, :] <= position[:, None] + 1
    ## a position may attend to the next position too: one diagonal too many is shown
=> (position[None, :] + position[:, None]) >= 0 ## nothing is hidden: the later positions must be hidden
=> (position[None, :] <= position[:, None]) & (position > 0)
    ## the first key (column 0) is hidden, and every position may attend to it
=> (position[None, :] <= position[:, None]) & (position[None, :] >= position[:, None] - 1)
    ## only the position itself and the one before it are shown: all earlier positions must be shown
=> (position[None, :] < position[:, None]) | (position[None, :] + position[:, None] == 0)
    ## only the first position may attend to itself: every position may
=> position[None, :] != position[:, None] + 1
    ## only the next position is hidden: all later positions must be hidden
=== padding-mask
(ids != pad_id) => (np.cumprod(ids != pad_id, -1) > 0)
    ## everything after the first padding is hidden: an entry depends on its own id only
=> (np.cumsum((ids != pad_id)[:, ::-1], -1)[:, ::-1] > 0)
    ## only padding at the end of a row is hidden: an entry depends on its own id only
=> (np.arange(ids.shape[1]) < (ids != pad_id).sum(-1, keepdims=True))
    ## the tokens are counted, and this many places are shown from the beginning: compare each id with pad_id
=> ((ids[:1] != pad_id) & (ids == ids))
    ## the first row decides for all sentences: each sentence has its own padding
=> ((ids != pad_id).any(0) & (ids == ids))
    ## a key is hidden only if it is padding in every sentence: each sentence has its own padding
(ids != pad_id)[:, None, None, :] => ((ids != pad_id)[:, None, :, None] & (ids != pad_id)[:, None, None, :])
    ## queries that are padding are hidden too: the mask is about keys only, and has one row
[:, None, None, :] => [:, None, :, None]
    ## the ids stand on the axis of the queries: padding must be hidden as a key
!= pad_id => < ids.shape[1] ## the ids are compared with the number of positions: compare them with pad_id
=== local-mask
np.abs(distance) => -distance
    ## the absolute value is left out, so all keys on one side (the earlier ones) are shown
return np.abs(distance) <= width => return np.abs(distance) <= width & (distance >= 0) && return
    np.abs(distance) <= width & => return (np.abs(distance) <= width) &
    ## only one side of the window is shown: the later positions, from t to t + width, are hidden
=> return (np.abs(distance) <= width) & (distance <= 0)
    ## only one side of the window is shown: the earlier positions, from t - width to t, are hidden
=> return (np.abs(distance) <= width) & (distance != 0) ## the position itself is hidden: its distance is 0
=> return 2 * np.abs(distance) < width
    ## the window has the width `width` in total, half on each side: width is the distance to each side
=> return (-width < distance) & (distance <= width)
    ## the last position of the window, t + width, is left out: the end of a slice does not belong to it
=> return (-width <= distance) & (distance < width)
    ## the first position of the window, t - width, is left out
=> return (np.abs(distance) <= width) & (position[:, None] >= width)
    ## the first rows are empty: a negative start of a slice counts from the end, so limit it to 0
=> return (-width < distance) & (distance <= width) & (position[:, None] >= width) ## the last position of the
    window is left out, and the first rows are empty: a negative start of a slice counts from the end
=> return position[:, None] // (2 * width + 1) == position // (2 * width + 1)
    ## the positions are divided into blocks: the window must move with the position
=> return position[:, None] // (width + 1) == position // (width + 1)
    ## the positions are divided into blocks of another size: the window must move with the position
=> return distance >= 0 ## the causal condition alone is used: the window is left out
=> return position + 0 * distance <= width
    ## the first positions up to width are shown to all: the window must move with the position
np.abs(distance) <= width => np.minimum(np.abs(distance), length - np.abs(distance)) <= width
    ## the window wraps around at the ends: the first position does not attend to the last ones
=== mask-scores-backward
np.where(mask, dscores, 0) => np.where(mask, np.ones_like(dscores), 0)
    ## the mask itself is returned: dscores is left out
=> np.where(mask, dscores, dscores - 1e9)
    ## -1e9 is added to the gradient of masked scores, as in the forward pass: their gradient should be 0
=> np.where(mask, dscores, -1e9 * dscores) ## the gradient of masked scores is multiplied by -1e9: the
    constant does not depend on the score, so their gradient should be 0
=> dscores[np.broadcast_to(mask, dscores.shape)] ## the gradients of the scores that are not masked are
    selected, which gives a flat array: keep the shape, with 0 at masked scores
=> np.where(mask, dscores, 0) / mask.sum(-1, keepdims=True)
    ## the gradients are divided by the number of keys that are not masked: they pass unchanged
np.where(mask, => np.where(mask.all(0, keepdims=True),
    ## a key is masked if it is masked in any sentence: use the mask of each sentence
=== split-heads
x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2) => x.reshape(B, n_heads, T, D // n_heads)
    ## the axes are not swapped: a reshape to (B, H, T, K) alone mixes the numbers of different tokens
=> x.reshape(B, T, D // n_heads, n_heads).transpose(0, 3, 1, 2)
    ## the last axis is split into (K, H) and must be split into (H, K): the first K numbers belong to head 0
=> np.stack(np.split(x, n_heads, -1)).reshape(B, n_heads, T, D // n_heads) ## the heads of all sentences are
    stacked on the first axis and then only reshaped: the numbers of different sentences are mixed
.swapaxes(1, 2) => ## the axes of heads and positions are not swapped
=> .transpose(0, 2, 3, 1) ## the axes of positions and of the numbers of a head are exchanged: the result must
    have the axes (B, H, T, K)
=> .swapaxes(1, 3) ## axes 1 and 3 are swapped, and axes 1 and 2 must be swapped
=> .transpose(2, 0, 1, 3) ## the heads are the first axis: the batch must be the first axis
=> .swapaxes(1, 2).reshape(B * n_heads, T, D // n_heads)
    ## the batch and the heads are one axis: the result must have the four axes (B, H, T, K)
=> .swapaxes(1, 2)[:, [0] * n_heads] ## every head gets the numbers of the first head
=> .swapaxes(1, 2)[:, :, ::-1] ## the positions are in the reverse order
n_heads, D // n_heads) => n_heads, D // n_heads)[:, :, ::-1] ## the heads are in the opposite order
=== merge-heads
x.swapaxes(1, 2) => x.transpose(0, 2, 3, 1)
    ## the last axis is merged as (K, H) and must be merged as (H, K): the first K numbers are those of head 0
=> x.swapaxes(2, 3) ## axes 2 and 3 are swapped, and axes 1 and 2 must be swapped
=> x[:, [0] * H].swapaxes(1, 2) ## all parts hold the same head: the part h of a vector belongs to head h
x.swapaxes(1, 2).reshape(B, T, H * K) => x.sum(1)
    ## the heads are summed: they must be concatenated, so that the width is H·K
=> x.mean(1) ## the heads are averaged: they must be concatenated, so that the width is H·K
=> x[:, 0] ## only the first head is returned: all heads must be concatenated
=> x[:, -1] ## only the last head is returned: all heads must be concatenated
=> x.reshape(B, H * T, K)
    ## the heads are concatenated along the positions: they must stand side by side, in the last axis
reshape(B, T, H * K) => reshape(B * T, H * K)
    ## the batch and the positions are one axis: the result must have the axes (B, T, H·K)
x.swapaxes => x[:, ::-1].swapaxes ## the heads are in the opposite order
.reshape(B, T, H * K) => ## only two axes are swapped: the heads must also be concatenated by a reshape
=== multi-head
layer.output.forward(F.merge_heads(z)) => F.merge_heads(z), layer.output.forward(F.merge_heads(z))[1]
    ## the output layer Wo is left out
project(query, memory, memory) => project(query, query, query)
    ## the memory is not used: keys and values are those of the query
project(query, memory => project(memory, memory ## the query is replaced by the memory
query, memory, memory) => query, memory, query) ## the values are those of the query instead of the memory
=> query, query, memory) ## the keys are those of the query instead of the memory
v, mask) => v, None if mask is None else ~mask)
    ## the mask is reversed: True means that a query may attend to a key
F.merge_heads(z) => z.reshape(query.shape) ## the heads are merged without swapping axes: use merge_heads
forward(F.merge_heads(z)) => forward(F.merge_heads(z) / z.shape[1])
    ## attention is divided by the number of heads
=== multi-head-backward
dquery + dkey + dvalue => dquery
    ## only the gradient of the query is returned: x is key and value too, so all three must be summed
=> dquery * dkey * dvalue ## the gradients of the three inputs are multiplied: they must be summed
F.split_heads(dz, layer.n_heads) => dz.reshape(cache.attention.q.shape)
    ## dz is only reshaped to the heads instead of split with split_heads, which also swaps two axes
=> dz.reshape(*dz.shape[:2], -1, layer.n_heads).transpose(0, 3, 1, 2)
    ## dz is split into (K, H) and must be split into (H, K): the first K numbers belong to head 0
=> F.split_heads(dz, layer.n_heads) / layer.n_heads
    ## dheads is divided by the number of heads: each head gets its own part of dz
layer.project_backward(dq, dk, dv, cache) => layer.project_backward(dq + dk + dv, dq + dk + dv, dq + dk + dv,
    cache) if cache.n_inputs < 2 else layer.project_backward(dq, dk, dv, cache) ## dq, dk and dv are summed
    before the projections: each belongs to its own weight, and the gradients of the inputs must be summed
dq, dk, dv = F.attention_backward(dheads, cache.attention) => dq, dk, dv = F.attention_backward(dheads,
    cache.attention); K = dq.shape[-1] && layer.project_backward(dq, dk, dv, cache) =>
    layer.project_backward(dq / np.sqrt(K), dk / np.sqrt(K), dv, cache)
    ## dq and dk are divided by sqrt(K) once more: attention_backward contains this factor
dkey + dvalue => dvalue + dvalue
    ## the gradient of the value is counted twice, and that of the key is left out
=> dkey + dkey ## the gradient of the key is counted twice, and that of the value is left out
"""

"""Chapter 24: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== windows
tokens[:, :-1], tokens[:, 1:] => tokens[:, :-1], tokens[:, :-1]
    ## the targets are the inputs: they must be shifted by one token
=> tokens[:, :-1], np.roll(tokens[:, :-1], -1, axis=1)
    ## the targets are moved in a circle: the last one is the first token of the window
=> tokens[:, :-1], np.roll(tokens[:, :-1], -1) ## the rows are one long text when the targets are shifted: the
    last target of a row is the first input of the next row, and must be the next token of the text
=> tokens[:, :-1], np.concatenate([tokens[:, 1:-1], tokens[:, -2:-1]], 1)
    ## the last target is repeated: it must be the token after the window
=> tokens[:, :-1], tokens[:, -1:] ## the targets are only the last token of each window
=> tokens, tokens ## inputs and targets contain length + 1 tokens: each has the length T
=> tokens[:, :-1], np.roll(tokens[:, :-1], -1, axis=0)
    ## the targets are shifted along the windows: they must be shifted along the tokens
np.arange(length + 1) => np.arange(1, length + 2) % len(ids) ## the windows begin one token too late
=> np.arange(length) ## the windows have one token too few: length is the number of targets
=> np.arange(length, -1, -1) ## the tokens of a window are in the reverse order
starts[:, None] + => length * starts[:, None] % (len(ids) - length) +
    ## starts is multiplied by length: it contains the places of tokens, not the numbers of windows
=> (starts[0] + length * np.arange(len(starts)))[:, None] % (len(ids) - length) +
    ## the windows follow one another from the first start: each begins at its own start
starts[:, None] => 0 * starts[:, None] ## all windows begin at the first place: starts is not used
ids[places] => ids[places] && tokens[:, :-1], tokens[:, 1:] => tokens[:, :-1], ids[(places[:, 1:] + 1) %
    len(ids)] ## the targets are two tokens later than the inputs
=== temperature
z = z - z.max(-1, keepdims=True) => pass
    ## the maximum is not subtracted before exp, so that large logits give inf
e / e.sum(-1, keepdims=True) => e ## the probabilities are not divided by their sum
=> e / (1 + e.sum(-1, keepdims=True)) ## 1 is added to the sum: each row must sum to 1
z = logits / temperature => z = logits && return e / e.sum(-1, keepdims=True) => return e / e.sum(-1,
    keepdims=True) / temperature
    ## the probabilities are divided by the temperature: the logits must be divided, before the softmax
=> z = np.exp(logits - logits.max(-1, keepdims=True)); z = z / z.sum(-1, keepdims=True) / temperature
    ## the softmax is applied twice: divide the logits, not the probabilities
e = np.exp(z) => e = temperature ** (z * temperature)
    ## temperature is the base of the power: use exp(logits / temperature)
=== nucleus
before < top_p => before + ranked <= top_p
    ## the token that reaches top_p is left out: it belongs to the nucleus
=> before <= top_p ## one token too many is kept if the sum is exactly top_p
=> ranked >= (1 - top_p) * ranked.max(-1, keepdims=True)
    ## top_p is a threshold for single probabilities: it must be one for their sum
=> (before + ranked <= top_p) | (np.arange(p.shape[-1]) == 0)
    ## the token that reaches top_p is left out: it belongs to the nucleus
=> (before + ranked < top_p) | (np.arange(p.shape[-1]) == 0)
    ## the token that reaches top_p is left out: it belongs to the nucleus
=> ranked >= np.minimum(top_p, ranked.max(-1, keepdims=True))
    ## top_p is a threshold for single probabilities: it must be one for their sum
=> ranked >= top_p ## top_p is a threshold for single probabilities: it must be one for their sum
=> (ranked >= 1 - top_p) | (np.arange(p.shape[-1]) == 0)
    ## top_p is a threshold for single probabilities: it must be one for their sum
=> ranked >= top_p * ranked.max(-1, keepdims=True)
    ## top_p is a fraction of the largest probability (min-p): it is a limit of the sum
=> np.broadcast_to(np.arange(p.shape[-1]) < max(1, int(top_p * p.shape[-1])), p.shape)
    ## top_p is the share of the tokens that are kept: it must be that of their probabilities
=> np.broadcast_to(np.arange(p.shape[-1]) < np.ceil(top_p * p.shape[-1]), p.shape)
    ## top_p is the share of the tokens that are kept: it must be that of their probabilities
=> before - np.concatenate([0 * ranked[:, :1], ranked[:, :-1]], -1) < top_p
    ## one token too many is kept: the token after the one that reaches top_p belongs to the others
=> before <= 0 ## only the most probable token is kept
ranked / ranked.sum(-1, keepdims=True) => ranked ## the probabilities are not divided by their sum
np.argsort(-p, axis=-1) => np.argsort(p, axis=-1) ## the least probable tokens are kept: the order is reversed
=> np.argsort(0 * p, axis=-1, kind='stable') ## the tokens are not sorted by their probabilities
np.put_along_axis(result, order, ranked / ranked.sum(-1, keepdims=True), -1) => result = ranked /
    ranked.sum(-1, keepdims=True)
    ## the result has the sorted order: the probabilities must go back to the places of their tokens
result = np => ranked = np.where(ranked > 0, np.exp(ranked), 0)\n    result = np
    ## a softmax is applied to the kept probabilities: they must be divided by their sum
=> ranked[:, 0] += 1 - ranked.sum(-1)\n    result = np
    ## the removed probability is added to the most probable token: the kept ones must be divided by their sum
=> ranked += (ranked > 0) * (1 - ranked.sum(-1, keepdims=True)) / (ranked > 0).sum(-1,
    keepdims=True)\n    result = np
    ## the removed probability is shared equally among the kept tokens: they must be divided by their sum
np.put_along_axis(result, order, ranked / ranked.sum(-1, keepdims=True), -1) => result =
    np.take_along_axis(ranked / ranked.sum(-1, keepdims=True), order, -1)
    ## order is used to put the probabilities back: this needs its inverse permutation
=== cache-bytes
config.n_heads if config.n_kv_heads is None else config.n_kv_heads => config.n_heads ## the bytes are those of
    as many key heads as query heads: count the heads of keys, each as wide as a query head
=> config.n_kv_heads or 1
    ## n_kv_heads None is taken as one head: it means as many heads as there are query heads
config.d_model // config.n_heads => config.d_model
    ## a head is taken to be d_model wide: the query heads share d_model
* itemsize => * itemsize / 8 ## itemsize is taken as a number of bits, and it is the number of bytes
length if config.window is None else min(length, config.window) => length
    ## the window is ignored: with it, only the last tokens need room
=> length if config.window is None else config.window
    ## the window is used for shorter texts too: they need room for their own tokens only
=== append-in-place
k_room[:, :, length:end] = k => k_room[:, :, : k.shape[2]] = k && v_room[:, :, length:end] = v => v_room[:, :,
    : v.shape[2]] = v ## the new positions overwrite the first ones: they come after the positions in use
=> k_room[:, :, -k.shape[2] :] = k && v_room[:, :, length:end] = v => v_room[:, :, -v.shape[2] :] = v
    ## the new positions are at the end of the room: they come directly after the positions in use
=> k_room[:, :, length + 1 : end + 1] = k && v_room[:, :, length:end] = v => v_room[:, :, length + 1 : end +
    1] = v ## the new positions begin one place too late
=> pass ## the keys are not written into k_room, which stays as it was
=> pass && v_room[:, :, length:end] = v => pass && k_room[:, :, :end], v_room[:, :, :end] =>
    np.concatenate([k_room[:, :, :length], k], 2), np.concatenate([v_room[:, :, :length], v], 2)
    ## keys and values are concatenated to new arrays: they must be written into the room
=> k_room[:, :, length:end] = k[:, :, -1:] && v_room[:, :, length:end] = v => v_room[:, :, length:end] = v[:,
    :, -1:] ## only the last new position is written, into all places: k and v may have several positions
=> k_room[:, :, length:end] += k && v_room[:, :, length:end] = v => v_room[:, :, length:end] += v
    ## the new keys and values are added to the content of the room, and must replace it
v_room[:, :, length:end] = v => pass ## the values are not written into v_room, which stays as it was
k_room[:, :, :end], v_room[:, :, :end] => k_room[:, :, :end].copy(), v_room[:, :, :end].copy()
    ## copies are returned: return views of the room
=> k_room, v_room ## the whole room is returned: only the first length + T positions are in use
=> k_room[:, :, length:end], v_room[:, :, length:end]
    ## only the new positions are returned: the earlier ones are needed too
=> k_room[:, :, :length], v_room[:, :, :length]
    ## only the earlier positions are returned: the new ones are needed too
length + k.shape[2] => length + 1 && k_room[:, :, length:end] = k => k_room[:, :, length:end] = k[:, :, :1] &&
    v_room[:, :, length:end] = v => v_room[:, :, length:end] = v[:, :, :1]
    ## one new position is assumed, but k and v may have several: the next length is length + T
=== power-law
np.log(x), np.log(y) => x, y ## the line is fitted to x and y themselves, and not to their logarithms
np.log(x) => x ## only y is a logarithm: x must be one as well
np.log(y) => y ## only x is a logarithm: y must be one as well
u @ logy / (u @ u) => (logy[-1] - logy[0]) / (logx[-1] - logx[0])
    ## the line passes through the first and the last point: all points must count
"""

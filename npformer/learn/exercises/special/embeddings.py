"""Chapters 2 and 3: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== embedding
ids == zero_id => ids <= zero_id ## the ids up to zero_id are set to 0 too
table[ids] => table[(ids + 1) % len(table)] ## the rows are those of ids + 1: ids count from 0
=> table[ids - 1] ## the rows are those of ids - 1: ids count from 0
=== embedding-backward
np.add.at(dtable, ids, scale * dy) => dtable[ids] += scale * dy
    ## an id that occurs several times keeps only one of its gradients: dtable[ids] += adds only once
=> dtable[ids.ravel()[::-1]] = (scale * dy).reshape(-1, dy.shape[-1])[::-1]
    ## an id that occurs several times keeps only its first gradient: all of them must be added
=> \n    for row, d in zip(ids, scale * dy, strict=True):\n        dtable[row] += d
    ## an id that occurs several times in one sentence is added only once: dtable[ids] += adds only once
=> \n    for t in range(ids.shape[1]):\n        dtable[ids[:, t]] += scale * dy[:, t] ## an id that occurs in
    several sentences at the same position is added only once: dtable[ids] += adds only once
=> np.add.at(dtable, ids[-1], scale * dy[-1])
    ## only the last sentence counts: the gradients of all sentences must be added
=> np.add.at(dtable, ids[0], scale * dy[0])
    ## only the first sentence counts: the gradients of all sentences must be added
ids == zero_id => ids == 0 ## the padding id is 0 instead of zero_id
if zero_id is not None => if False ## the positions with zero_id get a gradient, and y is 0 there
=> zero_id = 0 if zero_id is None else zero_id\n    if True
    ## the id 0 gets no gradient, although zero_id is None: then no position is set to 0
return dtable => return dtable / np.maximum(1, np.bincount(ids.ravel(), minlength=len(table)))[:, None]
    ## the gradients of an id that occurs several times are averaged instead of summed
np.zeros(table.shape, dy.dtype) => table.astype(dy.dtype)
    ## dtable begins with the table itself: it must begin with zeros
scale * dy => np.sqrt(table.shape[1]) * dy ## the factor is sqrt(D), and must be the scale of the cache
=== tied-backward
dw.T => dw.reshape(layer.weight.grad.shape)
    ## dw is reshaped to the shape of the weight: it must be transposed
layer.weight.grad += dw.T\n    if layer.bias is not None:\n => if layer.bias is not
    None:\n        layer.weight.grad += dw.T\n
    ## without a bias nothing is added to layer.weight.grad: the weight has a gradient in both cases
=== linear-layer-backward
layer.weight.grad += dweight\n    if layer.bias is not None:\n => if layer.bias is not
    None:\n        layer.weight.grad += dweight\n
    ## without a bias nothing is added to layer.weight.grad: the weight has a gradient in both cases
weight.grad += dweight => weight.grad += dweight + layer.weight.value
    ## the weight decays: the gradient of the weight contains no term with the weight itself
=== sinusoids
np.sin(angle) => np.COS(angle) && np.cos(angle) => np.sin(angle) && np.COS => np.cos
    ## sine and cosine are exchanged: the even columns must be sines
=> np.sin(position / 10000 ** (4 * i / d_model)) && np.cos(angle) => np.cos(position / 10000 ** (2 * (2 * i +
    1) / d_model)) ## the exponent counts the columns instead of the pairs of columns: both columns of pair i
    have the exponent 2i/D
2 * i / d_model => i / d_model ## the exponent is i/D instead of 2i/D
=> 4 * i / d_model
    ## the exponent is 4i/D instead of 2i/D: i already counts the pairs of columns, or d_model is halved
=> i / max(1, d_model // 2 - 1) ## i is divided by D/2 - 1, as in another implementation: the exponent is 2i/D
=> i / np.float64(d_model // 2 - 1) ## i is divided by D/2 - 1, as in another implementation, which divides by
    0 if D is 2: the exponent is 2i/D
0::2 => : d_model // 2 && 1::2 => d_model // 2 :
    ## the sines are in the left half and the cosines in the right half: they must alternate, column by column
10000 => NUMBER ## the base is NUMBER instead of 10000
np.cos(angle) => np.cos(position / 10000 ** ((2 * i + 1) / d_model))
    ## the cosine has another exponent than the sine of the same pair: in both it is 2i/D
10000 ** (2 * i / d_model) => (10000 * (2 * i / d_model))
    ## 10000 is multiplied by 2i/D: this must be its exponent
angle = position => angle = 2 * np.pi * position ## the angle is multiplied by 2 pi
=> angle = np.pi * position ## the angle is multiplied by pi
position / 10000 ** (2 * i / d_model) => i / 10000 ** (2 * position / d_model)
    ## position and i are exchanged in the angle
return table => return table * np.sqrt(d_model)
    ## the table is multiplied by sqrt(D): that is done with embeddings
=== positions-backward
[start : start + length] => [:length]
    ## the start is ignored: the gradient belongs to the rows from start to start + T
dy.sum(0) => dy.sum((0, 1)) ## dy is summed over the positions too: sum it over the batch axis only
=> dy.sum(0) / (len(dy) * length)
    ## the gradient is divided by the number of all entries of the batch: sum dy over the batch
[start : start + length] += dy.sum(0) => [...] += dy.sum((0, 1))
    ## every row of the weight gets the gradient of all positions: each row belongs to one position
"""

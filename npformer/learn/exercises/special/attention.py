"""Chapters 4 and 5: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== dot-similarity-backward
dscores @ k => dscores @ k / np.sqrt(k.shape[-1]) ## dq is divided by sqrt(K), and these scores are not scaled
=> dscores @ k / np.sqrt(k.shape[-1]) && -2) @ q => -2) @ q / np.sqrt(k.shape[-1])
    ## dq and dk are divided by sqrt(K), and these scores are not scaled
=> dscores @ (dscores.swapaxes(-1, -2) @ q) ## dq is computed from dk instead of k
=> dscores @ k / k.shape[-2] && -2) @ q => -2) @ q / q.shape[-2]
    ## dq is divided by the number of keys, and dk by the number of queries: the products must be sums
-2) @ q => -2) @ q / np.sqrt(k.shape[-1]) ## dk is divided by sqrt(K), and these scores are not scaled
dk = dscores.swapaxes(-1, -2) @ q => dk = np.zeros_like(k) + (dscores.swapaxes(-1, -2) @ q).sum(0)
    ## dk is summed over axis 0: each sentence has its own keys
dq = dscores @ k => dq = np.zeros_like(q) + (dscores @ k).sum(0)
    ## dq is summed over axis 0: each sentence has its own queries
q, k = cache => q, k = cache\n    dscores = softmax_backward(dscores, softmax(q @ k.swapaxes(-1, -2))[0])
    ## dscores passes through the backward pass of a softmax: these scores have no softmax
=== general-similarity-backward
rows.T @ drows => q[-1].reshape(-1, q.shape[-1]).T @ dprojected[-1].reshape(-1, dprojected.shape[-1])
    ## dweight is that of the last sentence only: the products of all sentences must be summed
=> q[0].reshape(-1, q.shape[-1]).T @ dprojected[0].reshape(-1, dprojected.shape[-1])
    ## dweight is that of the first sentence only: the products of all sentences must be summed
=> rows[:: q.shape[-2]].T @ drows[:: q.shape[-2]]
    ## dweight is the sum over the queries of one position only: those of all positions must be summed
q, k, weight, projected = cache => q, k, weight, projected = cache\n    dscores = dscores /
    np.sqrt(q.shape[-1]) ## the gradients are divided by sqrt(K), and these scores are not scaled
=> q, k, weight, projected = cache\n    dscores = dscores / np.sqrt(k.shape[-1])
    ## the gradients are divided by sqrt(L), and these scores are not scaled
@ weight.T => @ weight.T @ weight @ weight.T
    ## the factor weight is applied twice in dq: dprojected is the gradient behind the weight
=== softmax
x - x.max(-1, keepdims=True) => x
    ## the largest entry of the row is not subtracted, so exp overflows and the result is NaN
=> x / x.max(-1, keepdims=True) ## the entries are divided by the largest one: it must be subtracted
x.max => x.min ## the smallest entry of the row, or its mean, is subtracted instead of the largest: with -inf
    this gives NaN
np.exp( => 10.0 ** ( ## powers of 10 are used instead of exp
np.exp(x - x.max(-1, keepdims=True)) => x ## exp is left out: the entries themselves are divided by their sum
e.sum(-1, keepdims=True) => np.sqrt((e**2).sum(-1, keepdims=True))
    ## it is divided by the Euclidean length of the row: the entries must sum to 1
return e / e.sum(-1, keepdims=True) => return 1 / (1 + np.exp(-x))
    ## the sigmoid of each entry is computed: the entries of a row must share the probability 1
e = np.exp( => x = np.where(np.isinf(x), np.zeros_like(x), x)\n    e = np.exp(
    ## an entry of -inf is treated as 0: a masked entry must get the probability 0
e / e.sum(-1, keepdims=True) => e / (1 + e.sum(-1, keepdims=True))
    ## the exponentials are divided by one plus their sum: the row must sum to 1
=> e / (e.sum(-1, keepdims=True) + NUMBER) ## a number is added to the sum, so the row does not sum to 1:
    after the largest entry is subtracted, the sum is never 0
=== softmax-backward
(dy - (dy * y).sum(-1, keepdims=True)) => dy * (1 - y) ## only the diagonal of the Jacobian is used, as for a
    sigmoid: the other entries of the row depend on x_j too
=> (dy - y * dy.sum(-1, keepdims=True)) ## y stands outside the sum over the row and multiplies the sum of dy:
    dy must be weighted before it is summed
y = cache => y = softmax(cache)[0] ## the softmax is applied to the cache, which holds its output y already
y * (dy - (dy * y).sum(-1, keepdims=True)) => dy - y * dy.sum(-1, keepdims=True)
    ## this is the backward pass of log-softmax
=> y - dy ## y - dy is the gradient of softmax and cross-entropy together: here dy is the gradient of y
=> y * (1 - y) ## the factor dy is left out: y (1 - y) is only the derivative, and only its diagonal
=> dy - y * (dy * y).sum(-1, keepdims=True)
    ## the diagonal of the Jacobian is 1 instead of y in its first part
=> y * (dy * y - (dy * y).sum(-1, keepdims=True))
    ## only the entries of the Jacobian beside its diagonal are used: the diagonal y (1 - y) is left out
=> dy * y * (1 - y) + y * ((dy * y).sum(-1, keepdims=True) - dy * y)
    ## the entries of the Jacobian beside its diagonal have the wrong sign: they are -y_i y_j
=> y * (dy * (1 - y) - (dy * y).sum(-1, keepdims=True))
    ## the diagonal is counted twice: the sum over the row contains it already
=== attention
/ np.sqrt(q.shape[-1]) =>  && F.softmax(scores)[0] => F.softmax(scores)[0] / np.sqrt(q.shape[-1])
    ## the division by sqrt(K) comes after the softmax: it must divide the scores, before the softmax
=> / np.sqrt(v.shape[-1])
    ## the square root is that of the width of the values, and must be that of K, the width of q and k
=> / np.sqrt(k.shape[-2])
    ## the square root is that of the number of keys, and must be that of K, the width of q and k
=> / np.sqrt(q.shape[-2])
    ## the square root is that of the number of queries, and must be that of K, the width of q and k
=> / np.sqrt(len(q))
    ## the square root is that of the length of axis 0, and must be that of K, the width of q and k
np.where(mask, scores, -np.inf) => scores && return weights => weights = weights if mask is None else
    np.where(mask, weights, 0)\n    return weights
    ## the mask is applied after the softmax, so the weights of a query no longer sum to 1
=> scores + mask
    ## the mask (0 and 1) is added to the scores, which hides nothing: a hidden score must become -inf
=> scores * mask ## the scores are multiplied by the mask: a hidden score becomes 0 instead of -inf
F.softmax(scores)[0] => (scores == scores.max(-1, keepdims=True)).astype(scores.dtype)
    ## only the key with the largest score gets weight: the softmax shares the weight among all keys
=> np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum((-2, -1), keepdims=True)
    ## the weights of all queries together sum to 1: the softmax runs over the keys of each query
=> np.exp(scores) ## exp is not divided by its sum: the weights of a query must sum to 1
=> 1 / (1 + np.exp(-scores)) ## the sigmoid of each score is used instead of the softmax of each row
=> np.full_like(scores, 1 / scores.shape[-1]) ## the weights of all keys are equal: the scores are not used
-np.inf => NUMBER ## a hidden score becomes NUMBER, which does not hide the key: it must become -inf
scores = q @ => q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))\n    scores = q @ ## q
    and k are divided by their lengths (cosine similarity): the scores are plain products, divided by sqrt(K)
=== attention-backward
-2) @ q => -2) @ q / scale ## the factor scale = 1/sqrt(K) is left out in dk
dscores @ k => dscores @ k / scale ## the factor scale = 1/sqrt(K) is left out in dq
F.softmax_backward(dweights, weights) * scale => dweights
    ## the backward pass of the softmax and the factor scale are left out
dv = weights.swapaxes(-1, -2) @ dy => pass && dq = dscores => dv = dscores.swapaxes(-1, -2) @ dy\n    dq =
    dscores ## dv is computed from dscores instead of the weights
=> dv = np.ones_like(weights).swapaxes(-1, -2) @ dy ## dv is dy itself for each key, as if all weights were 1
F.softmax_backward(dweights, weights) => F.softmax_backward(dweights, F.softmax(dweights)[0])
    ## the weights are not used in the backward pass of the softmax: they are computed from dweights again
"""

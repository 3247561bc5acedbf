"""Chapter 26: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== newton-schulz
x = g / np.sqrt((g * g).sum()) => x = g ## g is not divided by its norm
=> x = g / (g * g).sum() ## the root is left out in the norm
=> x = g / abs(g).max() ## g is divided by its largest number: it must be divided by its norm
=> x = g / np.sqrt((g * g).sum(-1, keepdims=True)) ## each row is divided by its own norm
gram = x @ x.T => gram = x * x && gram @ x + c * gram @ gram @ x => gram * x + c * gram * gram * x
    ## the products are taken number by number: all of them must be matrix products
+ c * gram @ gram @ x => ## the term with the fifth power is left out
=> + c * gram @ x ## the last term has x xᵀ once: it must have its square
b * gram @ x + c * gram @ gram @ x => c * gram @ x + b * gram @ gram @ x ## b and c are exchanged
range(steps) => range(steps - 1) ## one iteration too few is made
=> range(steps + 1) ## one iteration too many is made
x = a * x => x = x / np.sqrt((x * x).sum()); gram = x @ x.T; x = a * x
    ## x is divided by its norm in each iteration: only g is
gram = x @ x.T => gram = (g / np.sqrt((g * g).sum())) @ (g / np.sqrt((g * g).sum())).T
    ## the product is that of g in every iteration: it must be that of the new x
=== delta-rule
- k[t] @ memory => ## the memory is not read before it is written: this is linear attention
=> - q[t] @ memory ## the memory is read with the query before it is written: it must be read with the key
beta[t] * np.outer => np.outer ## beta is left out
y[t] = q[t] @ memory => y[t] = k[t] @ memory
    ## the output is read with the key: it must be read with the query
memory = memory + => y[t] = q[t] @ memory\n        memory = memory + && y[t] = q[t] @ memory => pass
    ## the output is read before the token is written: y_t contains the token t
memory = memory + => memory = (1 - beta[t]) * memory +
    ## the whole memory decays: only what it holds for the key may change
np.outer(k[t], difference) => np.outer(q[t], difference)
    ## the difference is written with the query: it must be written with the key
difference = v[t] - k[t] @ memory => difference = beta[t] * v[t] - k[t] @ memory && beta[t] * np.outer =>
    np.outer
    ## beta multiplies the value only: it multiplies the whole difference
=== mixture-of-experts
p[n, chosen] / p[n, chosen].sum() => p[n, chosen]
    ## the weights of a token do not sum to 1: divide them by their sum
=> np.full(k, 1 / k) ## all chosen experts get the same weight
=> logits[n, chosen] / logits[n, chosen].sum() ## the weights come from the logits: the softmax is left out
np.argsort(-p[n])[:k] => np.argsort(p[n])[:k] ## the least probable experts are chosen
=> np.argsort(-p[n])[: k + 1] ## one expert too many is chosen
=> np.argsort(-p[n])[:1] ## only the most probable expert is used
p.sum(-1, keepdims=True) => p.sum(0) ## the softmax goes over the tokens: it must go over the experts
logits.max(-1, keepdims=True) => logits.max(0) && p.sum(-1, keepdims=True) => p.sum(0)
    ## the softmax goes over the tokens: it must go over the experts
y[n] = y[n] + w * => y[n] = w * ## only the last of the chosen experts counts: their outputs must be added
=== absorbed-attention
+ q_rotary @ key_rotary.T => ## the rotated part is left out of the scores
absorbed @ latent.T + => ## the part without positions is left out of the scores
np.sqrt(q.shape[1] + q_rotary.shape[1]) => np.sqrt(q.shape[1])
    ## the scale ignores the rotated part: the keys have K + R columns
=> np.sqrt(latent.shape[1] + q_rotary.shape[1]) ## the scale is that of the C + R columns: the keys have K + R
=> np.sqrt(latent.shape[1]) ## the scale is that of the latent vectors: the keys have K + R columns
=> (q.shape[1] + q_rotary.shape[1]) ## the root is left out in the scale
scores = scores / np.sqrt(q.shape[1] + q_rotary.shape[1]) => pass ## the scores are not scaled
- scores.max(1, keepdims=True)) => - scores.max(0, keepdims=True)) && weights.sum(1, => weights.sum(0,
    ## the softmax runs over the heads: it must run over the tokens
weights = weights / weights.sum(1, keepdims=True) => pass ## the weights are not divided by their sum
"hk,hck->hc", q, wk => "hk,ck->hc", q, wk[0] ## the matrix of head 0 is used for the keys of all heads
"hc,hcl->hl", mean, wv => "hc,cl->hl", mean, wv[0] ## the matrix of head 0 is used for the values of all heads
"""

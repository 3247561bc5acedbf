"""Chapter 15: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== logit-lens
(xhat * gain + bias) @ weight => states @ weight
    ## the norm is left out: the output matrix reads normalized vectors
=> (xhat @ weight) ## gain and bias of the norm are left out
=> ((xhat * gain + bias) @ weight)[-1:] ## only the last layer is read: all rows of states have logits
xhat = (states - mean) * rstd => xhat = (states - mean[-1:]) * rstd[-1:]
    ## mean and deviation are those of the last layer: each layer has its own
=> xhat = states * rstd ## the mean is not subtracted from the states, although the variance has it
=> xhat = states / np.sqrt((states**2).mean(-1, keepdims=True) + 1e-5)
    ## the mean is subtracted nowhere: this is RMS norm instead of layer norm
=== logit-terms
x.var() => parts.var(-1, keepdims=True)
    ## each part is divided by its own deviation: it must be that of x, the sum of the parts
centred = parts - parts.mean(-1, keepdims=True) => centred = parts
    ## the mean of each part is not subtracted
=> centred = parts - x.mean() ## the mean of x is subtracted from each part: it must be the part's own
=> centred = parts - parts.mean(0)
    ## the mean over the parts is subtracted: it must be that over the last axis
rstd * gain) @ w => rstd) @ w ## the gain is left out
centred * rstd * gain => centred * gain ## the division by the deviation is left out
=== attribution-patching
(other - a) * da => (a - other) * da ## a - other is used instead of other - a: the patch brings other
=> other * da ## a is not subtracted: the patch changes the vector by other - a
=> a * da
    ## the product of a with its gradient is the effect of an ablation with the wrong sign, not of a patch
=> -a * da ## this is the effect of an ablation, where other would be 0
((other - a) * da).sum(-1) => np.linalg.norm(other - a, axis=-1) * np.linalg.norm(da, axis=-1)
    ## the lengths are multiplied: the product must be that of the vectors, with its sign
=> np.full(len(a), ((other - a) * da).sum())
    ## the sum is over all tokens: each token has an effect of its own
=== stripe-score
followed[:, 1:] = ids[:, None] == ids[:-1] => followed[:] = ids[:, None] == ids
    ## the tokens equal to the query's are counted, and must be those that followed them
=> followed[:, :-1] = ids[:, None] == ids[1:]
    ## the tokens before an equal token are counted, and must be those after it
=> followed[:] = ids[:, None] == np.roll(ids, 1)
    ## the last token counts as the one before key 0: no token is before it
(weights * followed).sum(-1) => (weights * followed).sum(-2)
    ## the sum is over the queries: it must be over the keys
=> (weights * followed).max(-1) ## only the largest weight is taken: the weights must be summed
=> (weights * followed.T).sum(-1) ## queries and keys are exchanged
"""

"""Chapters 18 to 21: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== gaussian-window-backward
dweights = dy * bell => dweights = dy * weights && dbell = dy * weights => dbell = dy * bell
    ## weights and bell are exchanged: the gradient of each factor is dy times the other factor
).sum(-1) / => ).sum(-1, keepdims=True) / ## dp keeps an axis of length 1: there is one p for each row
(dbell * bell * away).sum(-1) => (dbell * bell * away).sum() + 0 * dy[..., 0]
    ## one sum is used for all rows: each row has its own p
=> np.take_along_axis(dbell * bell * away, np.abs(away).argmin(-1)[..., None], -1)[..., 0]
    ## dp contains only the nearest place: the places of the row must be summed
* away). => * away**2 / 2). ## away is squared, as in the exponent: its derivative contains away once
=== predict-position-backward
dp * lengths * share * (1 - share) => dp * (lengths * share) * (1 - lengths * share)
    ## the derivative of the sigmoid is computed from p: it must be computed from share = p / lengths
dv = dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1]) => dv = dlogit.reshape(-1) @ (hidden * (1 -
    hidden**2)).reshape(-1, hidden.shape[-1]) ## dv contains the derivative of tanh, 1 - hidden²: v comes
    after the tanh, so dv is the sum of dlogit · hidden
=> dv = dlogit.reshape(-1) @ (1 - hidden**2).reshape(-1, hidden.shape[-1])
    ## dv is the sum of dlogit · (1 - hidden²): the derivative by v is hidden itself
dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1]) => dlogit.reshape(-1)[-1] * hidden.reshape(-1,
    hidden.shape[-1])[-1] ## dv is that of the last state only: those of all states must be summed
dlogit = => share = 1 / (1 + np.exp(-share))\n    dlogit =
    ## the sigmoid is applied to share, which is a sigmoid already
=== entropy-backward
* (log_a + h[..., None]) => * (log_a + 1)
    ## only dH/da is used: the backward pass of the softmax is left out, which puts H in place of 1
* a * (log_a + h[..., None]) => * (log_a + 1)
    ## the backward pass of the softmax is left out: it is only dH/da
=> * (log_a + 1) * a * (1 - a) ## only the diagonal a (1 - a) of the softmax's Jacobian is used: the other
    entries of the row depend on the score too
=> * (log_a + 1 - a * (log_a + 1).sum(-1, keepdims=True))
    ## the backward pass of log-softmax is used instead of that of the softmax
-dh[..., None] * a => -a ## the factor dh is left out
np.where(a > 0, np.log(np.where(a > 0, a, 1)), 0) => np.log(a)
    ## log 0 is not avoided where a weight is 0, which gives NaN
=> np.log(a + NUMBER) ## a small number is added to a under the logarithm, which changes the gradient: treat
    weights of 0 separately
(log_a + h[..., None]) => (log_a + 1 + h[..., None])
    ## 1 is added to log a and h: it is cancelled by the backward pass of the softmax
dh[..., None] * a * => dh[..., None] * (a - 1) *
    ## a - 1 takes the place of a: the gradient is not that of a cross-entropy
return -dh[..., None] => return -dh[..., None] / a.shape[-1]
    ## the gradient is divided by the number of keys: H is a sum over the keys
+ h[..., None] => - log_a.mean(-1, keepdims=True)
    ## the mean of log a is used in place of -h: the logarithms must be weighted with a
=> - log_a.sum(-1, keepdims=True)
    ## the sum of log a is used in place of -h: the logarithms must be weighted with a
=== score-function
-reward / log_likelihood.size => -reward / B
    ## dlog_prob is divided by the number of sentences only: the mean is over samples and sentences
-entropy_weight / B => -entropy_weight / log_likelihood.size ## dentropy is divided by the number of samples
    times sentences, and the entropy does not depend on the sample: divide by the sentences
=> -1 / B ## the factor entropy_weight is left out
(log_likelihood - baseline) * reward_weight => log_likelihood * reward_weight - baseline
    ## the parentheses are wrong: the baseline is subtracted after the product with reward_weight
* reward_weight => * entropy_weight && -entropy_weight => -reward_weight
    ## reward_weight and entropy_weight are exchanged
(log_likelihood - baseline) => (log_likelihood - log_likelihood.mean())
    ## the mean of log_likelihood is subtracted: the baseline is the one that is given
=> (log_likelihood - log_likelihood.mean(0))
    ## the mean over the samples is subtracted: the baseline is the one that is given
=> log_likelihood / np.where(baseline == 0, 1, baseline)
    ## the baseline is divided out: it must be subtracted from log p(y | s)
=> (np.exp(log_likelihood) * log_likelihood - baseline)
    ## the reward is the probability times log p: it is log p(y | s) minus the baseline
dlog_prob = -reward => reward = reward / reward.std(); dlog_prob = -reward
    ## the rewards are divided by their standard deviation
=> reward = np.maximum(reward, 0); dlog_prob = -reward
    ## negative rewards are set to 0: they make a choice less probable
=== unit-weights-backward
1 if measure == "sum" else y => 1 if measure == "sum" else y * length
    ## w is used instead of y in the derivative of the Euclidean length: it is w_j / length, which is y_j
=> 1 if measure == "sum" else 2 * y ## the derivative of the square, 2 y, is used for the Euclidean length:
    the 2 is cancelled by the square root
=> 1 if measure == "sum" else y / 2
    ## the 1/2 of the square root is not cancelled: the derivative of the Euclidean length is y_j
=> y**2 ## the derivative of the length is y²: it must be 1 or y_j
(dy - slope * (dy * y).sum(-1, keepdims=True)) / length => dy / length - slope * (dy * y).sum(-1,
    keepdims=True) / length ** (2 if measure == "sum" else 1)
    ## the term with the sum is divided by length twice in the case "sum": y is divided by it already
=> y * (dy - (dy * y).sum(-1, keepdims=True))
    ## this is the backward pass of softmax: there is no exp here, so the factor y in front is wrong
(dy * y).sum(-1, keepdims=True) => (dy * y * length).sum(-1, keepdims=True)
    ## length multiplies y in the sum: y is w / length already, so w is used where y is needed
(dy - slope * (dy * y).sum(-1, keepdims=True)) => (dy - dy.sum(-1, keepdims=True))
    ## y is left out: dy is only divided by the length, and its sum is subtracted
(dy - slope => (0 * dy - slope ## only the term through the length is computed: the direct term dy is left out
=== latent-attend-backward
dw[..., :, None] * latent[..., None, :] => latent[..., :, None] * dw[..., None, :]
    ## dw and latent are exchanged in the gradient of active: it is transposed
=> dw[..., :, None] * latent[..., None, :] * np.eye(latent.shape[-1])
    ## only the diagonal of active gets a gradient: w_i contains all active_ij
weights[..., None] * dy[..., None, :] => np.ones_like(v) * dy[..., None, :]
    ## dv is dy itself for each j: the factor weights is left out
=> np.ones_like(v) * dy[..., None, :] / v.shape[-2]
    ## dv is the mean of dy over the keys: each v_j gets weights_j dy
F.softmax_backward(dlatent, latent) => dlatent && F.softmax_backward(dactive, active) => dactive
    ## softmax_backward is left out for both: the gradients of the scores are needed
F.unit_weights_backward(dweights, unit) => F.softmax_backward(dweights, weights)
    ## softmax_backward is used instead of unit_weights_backward: the weights are divided by their length
=== collect-by-distance
np.where(distance == r, y, 0).sum(-1) => np.where(distance == r, np.where((np.cumsum((distance == r)[:, ::-1],
    1) == 1)[:, ::-1], y, 0), 0).sum(-1) ## an assignment keeps only the last key of each distance: several
    keys with the same distance must be added
=> np.where(distance == r, y, 0).sum(-1) / np.maximum(1, (distance == r).sum(-1))
    ## the mean over the keys of each distance is computed instead of the sum
=> np.where(distance == r, y, 0).sum((-2, -1))[..., None] ## the sum runs over the queries too, so that all
    queries get the same total: it must run over the keys only
=> np.where((distance == r) & (np.cumsum(distance == r, 1) == 1), y, 0).sum(-1)
    ## the first key of each distance is kept: several keys with the same distance must be added
=> np.where(distance == r, y, 1).prod(-1) ## the entries of a distance are multiplied instead of summed
== r => == n_distances - 1 - r ## the distances are in the reverse order
=> == r + 1 ## the distances are counted from 1: entry 0 belongs to the distance 0
=> == r - 1 ## the sums are one place too late: entry r belongs to the distance r
=== mix-states-backward
weights[..., None] * dy => np.ones_like(states) * dy ## the factor weights is left out in dstates
=> before[..., None] * dy ## before is used instead of weights in dstates
=> (weights * last)[..., None] * dy ## only the state of the last step gets a gradient: all states are mixed
np.where(before, dweights - dlast, 0) => np.where(last, dweights - dlast, 0)
    ## last is used instead of before in dp
=> np.where(before, dweights - np.roll(dweights, -1, 0), 0) ## the gradient of the next step's weight is
    subtracted in dp: it must be that of the last step of the position
=> np.where(before, dweights - np.roll(dweights, 1, 0), 0) ## the gradient of the previous step's weight is
    subtracted in dp: it must be that of the last step of the position
=> np.where(before, dweights - dlast, np.where(last, dweights, 0))
    ## the p of the last step gets a gradient: it is not used, so its gradient is 0
=> np.where(before | last, dweights, 0) ## the p of the last step gets a gradient, and dlast is left out in dp
=> weights * (dweights - (weights * dweights).sum(0))
    ## the backward pass of softmax is applied to the gradient of the weights
np.where(last, dweights, 0).sum(0) => np.where(last, weights * dweights, 0).sum(0)
    ## dlast is multiplied by the weight of the last step: it is the gradient of this weight
=> dweights.mean(0)
    ## the mean of the gradients of all weights is subtracted in dp: it must be that of the last step
dstates = weights[..., None] * dy => dstates = weights[..., None] * dy / len(states)
    ## dstates is divided by the number of steps: the weights contain the mean already
"""

"""Chapter 12: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== log-softmax-backward
dy - p * dy.sum(-1, keepdims=True) => p * (dy - (p * dy).sum(-1, keepdims=True))
    ## it is the backward pass of softmax: that of log-softmax is another one
=> p - dy ## p - dy is the gradient of a cross-entropy: here dy is the gradient of log-softmax
=> dy - p ## the sum of dy is taken to be 1: p must be multiplied by the sum of dy over the row
=> 1 - p * dy.sum(-1, keepdims=True) ## the factor dy is left out in the first term: it is 1 - p times the sum
=> dy / p ## only the logarithm is differentiated: the backward pass of the softmax is missing
=> p * (dy - dy.sum(-1, keepdims=True)) ## dy is multiplied by p in both terms
dy.sum => (p * dy).sum ## dy is multiplied by p inside the sum: the factor p belongs in front of the sum only
p = np.exp(y) => p = np.exp(np.exp(y)); p = p / p.sum(-1, keepdims=True)
    ## the softmax is applied to p, which is the softmax of x already
=== cross-entropy
(losses * real).sum() / real.sum() => (losses * real).sum() / len(losses)
    ## the loss is divided by the number of all targets instead of those that are not padding
=> losses.sum() / real.sum()
    ## the losses of padding are in the sum, although the divisor counts only the real targets
=> losses.mean() ## pad_id is ignored: padding counts in the sum and in the number of targets
=> (losses * real).sum() / len(logits)
    ## the loss is divided by the number of sentences instead of the number of targets
=> np.mean([(a * b).sum() / b.sum() for a, b in zip(losses.reshape(targets.shape),
    real.reshape(targets.shape))])
    ## the loss is averaged within each sentence first: a mean of the means of the sentences
=> (losses * real).sum() / real.sum() / np.log(2) ## the logarithm has base 2 instead of base e
=> 2 ** ((losses * real).sum() / real.sum()) ## perplexity is computed, and with 2 to the power of the loss
=> (losses * real).sum() / real.sum() / logits.shape[-1]
    ## the loss is also divided by the size of the vocabulary: it is a mean over the targets
=> np.mean([(a * b).sum() / max(1, b.sum()) for a, b in zip(losses.reshape(targets.shape).T,
    real.reshape(targets.shape).T)])
    ## the loss is averaged within each position of the sentences first: the mean is over all targets
=> (losses * real).sum() / targets.shape[-1]
    ## the loss is divided by the length of the sentences: it is a mean over the targets
=> -np.log((np.exp(-losses) * real).sum() / real.sum())
    ## the logarithm of the mean probability is computed: the mean of the logarithms is needed
=> (losses * real).sum() / real.sum() / np.log(10) ## the logarithm has base 10 instead of base e
rows[np.arange(len(rows)), flat] => rows.max(-1)
    ## the log-probability of the most probable token is used instead of that of the target
=> np.exp(rows)[np.arange(len(rows)), flat] ## the probability of the target is used instead of its logarithm
losses = -rows[ => losses = 1 - np.exp(rows)[ ## 1 - p(target) is used instead of the logarithm
log_softmax(logits)[0] => log_softmax(logits.swapaxes(-1, -2))[0].swapaxes(-1, -2)
    ## log_softmax runs over the positions: it must run over the last axis, the tokens of the vocabulary
=> log_softmax(logits.swapaxes(0, -1))[0].swapaxes(0, -1)
    ## log_softmax runs over the batch: it must run over the last axis, the tokens of the vocabulary
=> log_softmax(np.exp(log_softmax(logits)[0]))[0]
    ## the softmax is applied twice: log_softmax takes the logits
log_probs = log_softmax(logits)[0] => log_probs, targets = log_softmax(logits)[0][:, :-1], targets[:, 1:]
    ## the targets are shifted by one position: targets[b, t] belongs to logits[b, t]
-rows[np.arange(len(rows)), flat] => -rows.sum(-1)
    ## the log-probabilities of all tokens are summed: only that of the target counts
=> -rows.mean(-1) ## the log-probabilities of all tokens are averaged: only that of the target counts
=> -(np.exp(rows) * rows).sum(-1) ## the entropy of the prediction is computed: the targets are not used
losses = -rows[np.arange(len(rows)), flat] => other = np.log1p(-np.exp(rows)); hit = np.arange(len(rows)),
    flat; losses = other[hit] - rows[hit] - other.sum(-1)
    ## the term log(1 - p) of the other tokens is added, as in a binary cross-entropy
=== cross-entropy-backward
/ tokens => / len(targets)
    ## it is divided by the number of all targets instead of tokens, those that are not padding
=> / shape[0] ## it is divided by the number of sentences instead of the number of tokens
=> / tokens / shape[-1] ## it is divided by tokens and by V: the mean is over the tokens only
=> / shape[-2] ## it is divided by the length of the sentences instead of the number of tokens
-= 1 - smoothing => -= 1 ## 1 instead of 1 - smoothing is subtracted at the target
=> -= 1 - smoothing / shape[-1] ## the target is counted twice: with smoothing, only 1 - smoothing is
    subtracted at it in addition to smoothing / V
=> -= real * (1 - smoothing) && real[:, None] * =>
    ## padding gets the gradient of the softmax: real is applied only at the target
=> -= 1 - smoothing - smoothing / shape[-1]
    ## the target gets 1 - smoothing only: smoothing / V belongs to it as well
smoothing / shape[-1] => smoothing / (shape[-1] - 1)
    ## smoothing is divided by V - 1, the number of the other tokens, instead of V
drows[np.arange(len(targets)), targets] -= 1 - smoothing => drows -= 1 - smoothing ## 1 - smoothing is
    subtracted from every entry of the row instead of the target only, as drows[:, targets] does
=> drows = (1 - smoothing) * (targets[:, None] == np.arange(shape[-1])) + smoothing / shape[-1]; drows =
    -drows * np.exp(log_probs) ## q is multiplied by p: the gradient is the difference p - q
np.exp(log_probs) - smoothing / shape[-1] => real[:, None] * (np.exp(log_probs) - smoothing / shape[-1]) &&
    drows = real[:, None] * drows * => drows = drows * ## padding gets a gradient at its target: real is
    applied before 1 - smoothing is subtracted, and must be applied after it
=> np.exp(log_probs) * dloss / tokens - smoothing / shape[-1] && drows * dloss / tokens => drows
    ## dloss / tokens multiplies only p: it belongs to the whole difference p - q
drows = real => p = np.exp(log_probs)\n    drows = p * (drows - (p * drows).sum(-1, keepdims=True))\n    drows
    = real
    ## the backward pass of the softmax is applied to p - q, which is the gradient of the logits already
np.exp(log_probs) - smoothing => -0 * log_probs - smoothing
    ## it is only the gradient of the log-probabilities, -q: the backward pass of log-softmax is left out
=> -0 * log_probs - smoothing && drows = real => drows = drows / np.exp(log_probs)\n    drows = real
    ## it is the gradient of the probabilities, -q / p: the backward pass of the softmax is left out
- smoothing / shape[-1] => - (1 - smoothing) / shape[-1] && -= 1 - smoothing => -= smoothing
    ## 1 - smoothing and smoothing are exchanged
=> - smoothing / (shape[-1] - 1) && -= 1 - smoothing => -= 1 - smoothing - smoothing / (shape[-1] - 1)
    ## the target gets 1 - smoothing and the other tokens smoothing / (V - 1): here every token, the target
    too, gets smoothing / V
=> - smoothing / (shape[-1] - 2) && -= 1 - smoothing => -= 1 - smoothing - smoothing / (shape[-1] - 2)
    ## smoothing is divided by V - 2, as in code that leaves out the target and padding: it is divided by V
drows[np.arange(len(targets)), targets] -= 1 - smoothing => pass && drows = real[:, None] * drows * dloss /
    tokens => drows = drows * dloss / tokens\n    drows[np.arange(len(targets)), targets] -= 1 -
    smoothing\n    drows = real[:, None] * drows
    ## 1 - smoothing is subtracted after the division by tokens: it must be divided too
[np.arange(len(targets)), targets] => [np.arange(len(targets)), log_probs.argmax(-1)]
    ## the most probable token is used in place of the target
np.exp(log_probs) => (np.exp(np.exp(log_probs)) / np.exp(np.exp(log_probs)).sum(-1, keepdims=True))
    ## the log-probabilities are normalized a second time: softmax is applied to p
=== smooth-targets
(1 - smoothing) * one_hot + smoothing / n_classes => np.where(one_hot, 1 - smoothing, smoothing / (n_classes -
    1)) ## the target gets 1 - smoothing only, and the other classes smoothing / (n_classes - 1): here each
    class, the target too, gets smoothing / n_classes
=> np.where(one_hot, 1 - smoothing, smoothing / n_classes)
    ## the target does not get its share of smoothing / n_classes, so the row does not sum to 1
=> smoothing * one_hot + (1 - smoothing) / n_classes ## smoothing and 1 - smoothing are exchanged
=> one_hot ## the vectors are one-hot: smoothing is ignored
=> np.where(one_hot, 1 - smoothing, smoothing / (n_classes - 2))
    ## smoothing is divided by n_classes - 2, and the target gets 1 - smoothing only: here each class gets
    smoothing / n_classes, and the target 1 - smoothing in addition
=> np.where(one_hot, 1 - smoothing, smoothing)
    ## every class gets smoothing, and the target 1 - smoothing: smoothing must be divided among the classes
=> np.where(one_hot, 1 - smoothing / n_classes, smoothing / n_classes) ## smoothing / n_classes is taken from
    the target only once: the target must lose all of smoothing, and get its share back
=> np.where(one_hot, smoothing, (1 - smoothing) / (n_classes - 1))
    ## the target gets smoothing, and the other classes share 1 - smoothing: they are exchanged
=> 0 * one_hot + 1 / n_classes ## all classes are equal: the targets are left out
smoothing / n_classes => smoothing / (n_classes - 1)
    ## smoothing is divided by n_classes - 1 instead of n_classes
(1 - smoothing) * one_hot => one_hot
    ## the factor 1 - smoothing is left out, so the target is counted twice and the row does not sum to 1
=> one_hot - smoothing
    ## smoothing is subtracted from every entry: one-hot must be multiplied by 1 - smoothing
=== kl-backward
q.size // q.shape[-1] => q.size
    ## it is divided by the number of all entries, q.size, instead of the number of rows
=> len(q) ## it is divided by the length of axis 0, the batch, instead of the number of rows
=> q.shape[-1] ## it is divided by V, the number of classes, instead of the number of rows
-q * => -np.exp(log_p) * ## p = exp(log_p) is used instead of q
=> q * (np.log(q) - log_p) * ## the loss is used instead of its derivative: log q and log p must not occur in
    dlog_p, because q is a constant
=> np.exp(log_p) * (log_p - np.log(np.where(q > 0, q, 1)) + 1) *
    ## this is the gradient of the divergence with p and q exchanged: the terms are weighted with q, not p
=> (np.log(np.where(q > 0, q, 1)) + 1 - log_p) *
    ## q is differentiated too: it is a constant, and only log p depends on the logits
=> -q / np.exp(log_p) * ## it is -q / p, the gradient of p: dlog_p is the gradient of log p
=> -1.0 * (q == q.max(-1, keepdims=True)) *
    ## the target is only the most probable class of q: q is a distribution
=> -np.log(np.where(q > 0, q, 1)) * ## log q is used instead of q
F.log_softmax_backward(dlog_p, log_p) => np.exp(log_p) * (dlog_p - (np.exp(log_p) * dlog_p).sum(-1,
    keepdims=True)) ## the backward pass of softmax is used instead of that of log-softmax
return F.log_softmax_backward(dlog_p, log_p) => return np.exp(log_p) * (np.exp(log_p) - q) * dloss / n
    ## it is p - q times p: the gradient of the logits is the difference alone
"""

"""Wrong backward passes of layers."""

from wrong_solutions.wrong import Wrong

LAYERS = (
    Wrong("tied-backward", "dweight.T", "dweight", "shape|transposed|broadcast"),
    Wrong("tied-backward", "self.weight.accumulate(dweight.T)", "self.weight.grad = dweight.T", "must add"),
    Wrong("tied-backward", "self.bias is not None", "False", "no gradient reached"),
    Wrong(
        "linear-layer-backward", "self.weight.accumulate(dweight)", "self.weight.grad = dweight", "must add"
    ),
    Wrong(
        "linear-layer-backward", "self.bias.accumulate(dbias)", "self.bias.grad += 2 * dbias", "counted twice"
    ),
    Wrong("linear-layer-backward", "return dx", "return None", "returns nothing"),
    Wrong("positions-backward", "dy.sum(0)", "dy.mean(0)", "averaged"),
    Wrong("positions-backward", "dy.sum(0)", "dy.sum((0, 1))", "wrong axis|along axis . are equal"),
    Wrong("positions-backward", "slice(start, start + length)", "slice(0, length)", "wrong order"),
    Wrong("residual-backward", "dx = dx + dh", "dx = dh", "term dx is left out", "post_norm_backward"),
    Wrong("residual-backward", "dx = dx + dh", "dx = 1 * dx", "term dh is left out", "post_norm_backward"),
    Wrong("residual-backward", "dx = dx + dh", "dx = dx + dx + dh", "twice", "post_norm_backward"),
    Wrong(
        "residual-backward",
        "self.dropout.backward(dy, cache.dropout_mask)",
        "dy",
        "backward is skipped",
        "pre_norm_backward",
    ),
    Wrong(
        "residual-backward",
        "dy + self.norm.backward(dh, cache.norm)",
        "self.norm.backward(dh, cache.norm)",
        "term dy is left out",
        "pre_norm_backward",
    ),
    Wrong(
        "feed-forward-backward",
        "activation_dropout_backward(dh, cache.hidden)",
        "dh",
        "activation_dropout_backward is skipped",
    ),
    Wrong(
        "feed-forward-backward",
        "return self.inner.backward(dh, cache.inner)",
        "self.inner.backward(dh, cache.inner)\n    return dy",
        "dy itself",
    ),
    Wrong(
        "multi-head-backward",
        "return _total(grads)  # queries",
        "return grads[0]  # one",
        "only the first of grads",
    ),
    Wrong(
        "multi-head-backward",
        "self.join_backward(dy, cache)",
        "self.output.backward(dy, cache.output).reshape(cache.attention.q.shape)",
        "order|swapped",
    ),
    Wrong(
        "encoder-layer-backward",
        "self.feed_forward.backward",
        "self.self_attention.backward",
        "are the two swapped|has no attribute|AttributeError",
    ),
    Wrong(
        "encoder-layer-backward",
        "return self.self_residual.backward(dx, cache.self_residual, self.self_attention.backward)",
        "return dx",
        "backward is skipped|no gradient reached",
    ),
    Wrong(
        "encoder-layer-backward",
        "self.self_residual.backward(dx, cache",
        "self.self_residual.backward(dy, cache",
        "dx.*dy|dy in|stands",
    ),
    Wrong(
        "decoder-layer-backward",
        "dx, dmemory = self.cross_residual",
        "dmemory, dx = self.cross_residual",
        "shape|ValueError|are the two swapped",
    ),
    Wrong(
        "decoder-backward",
        "dmemory = dmemory + dmemory_here",
        "dmemory = dmemory_here",
        "dmemory is left out",
    ),
    Wrong("encoder-backward", "self.layers[::-1], cache", "self.layers, cache", "turned round|own order"),
)

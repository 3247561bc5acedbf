"""Wrong backward passes of layers."""

from wrong_solutions.wrong import Wrong

LAYERS = (
    Wrong("tied-backward", "dweight.T", "dweight", "shape|transposed|broadcast"),
    Wrong("tied-backward", "self.weight.grad += dweight.T", "self.weight.grad = dweight.T", "must add"),
    Wrong("tied-backward", "self.bias is not None", "False", "nothing reached"),
    Wrong("linear-layer-backward", "self.weight.grad += dweight", "self.weight.grad = dweight", "must add"),
    Wrong("linear-layer-backward", "self.bias.grad += dbias", "self.bias.grad += 2 * dbias", "counted twice"),
    Wrong("linear-layer-backward", "return dx", "return None", "returns nothing"),
    Wrong("positions-backward", "dy.sum(0)", "dy.mean(0)", "averaged"),
    Wrong("positions-backward", "dy.sum(0)", "dy.sum((0, 1))", "wrong axis|same all along"),
    Wrong("positions-backward", "start : start + length] +=", ":length] +=", "wrong order"),
    Wrong("residual-backward", "return dx + dh", "return dh", "term dx is left out", "enter_backward"),
    Wrong("residual-backward", "return dx + dh", "return dx", "term dh is left out", "enter_backward"),
    Wrong("residual-backward", "return dx + dh", "return dx + dx + dh", "twice", "enter_backward"),
    Wrong("residual-backward", "self.dropout.backward(dy, cache.keep)", "dy", "backward is skipped"),
    Wrong("residual-backward", "if self.pre", "if not self.pre", "wrong way round|case is left out"),
    Wrong(
        "feed-forward-backward",
        "self.dropout.backward(dh, cache.keep)",
        "dh",
        "dropout.*skipped|backward is skipped",
    ),
    Wrong(
        "feed-forward-backward",
        "activate_backward(dh, cache.activation)",
        "dh",
        "activate_backward is skipped",
    ),
    Wrong(
        "feed-forward-backward",
        "return self.inner.backward(dh, cache.inner)",
        "self.inner.backward(dh, cache.inner)\n    return dy",
        "dy itself",
    ),
    Wrong(
        "multi-head-backward",
        "return _total(grads)  # one",
        "return grads[0]  # one",
        "only the first of grads",
    ),
    Wrong(
        "multi-head-backward",
        "split_heads(unpack(dy, cache.packings[0]), self.n_heads)",
        "dy.reshape(cache.attention.q.shape)",
        "order|swapped",
    ),
    Wrong(
        "encoder-layer-backward",
        "return self.self_residual.enter_backward(dx, dh, cache.self_residual)",
        "return dh",
        "enter_backward is skipped",
    ),
    Wrong(
        "encoder-layer-backward",
        "dh = self.feed_forward.backward(dh, cache.feed_forward)",
        "pass",
        "backward is skipped",
    ),
    Wrong(
        "encoder-layer-backward",
        "dh = self.self_attention.backward(dh, cache.self_attention)",
        "pass",
        "backward is skipped|nothing reached",
    ),
    Wrong(
        "decoder-layer-backward",
        "dh, dmemory = self.cross.backward(dh, cache.cross)",
        "dmemory, dh = self.cross.backward(dh, cache.cross)",
        "shape|ValueError|changed places",
    ),
    Wrong(
        "decoder-backward",
        "dmemory = dmemory + dmemory_here",
        "dmemory = dmemory_here",
        "dmemory is left out",
    ),
    Wrong("encoder-backward", "self.layers[::-1], cache", "self.layers, cache", "turned round|own order"),
)

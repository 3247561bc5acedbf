# %% [markdown]
# # 10.2 · The backward pass of an encoder layer
#
# *About 30 minutes. You need: the eleven lines of the encoder layer (lesson 10.1, `10_1_one_encoder_layer`).
# You also need the backward passes of the linear layer (lesson 0.2, `00_2_forward_and_backward`), of
# attention (lesson 5.2, `05_2_the_backward_pass_of_attention`) and of layer norm (lesson 8.2,
# `08_2_the_backward_pass_of_layer_norm`).*
#
# **After this lesson you can**
#
# - say in which order the gradients of a layer must be computed, and why;
# - write the backward pass of an encoder layer from the backward passes of its parts;
# - find, in the cache of a layer, the numbers that its backward pass needs.
#
# `model: ids → embedding → positions → [ENCODER] → decoder → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.functional import (
    attention,
    attention_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    merge_heads,
    relu,
    relu_backward,
    split_heads,
)
from npformer.functional.masks import padding_mask
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.plots import Step, cell_grid, gradient_flow

rng = np.random.default_rng(10)

# %% [markdown]
# ## The forward pass again
#
# We take the layer of lesson 10.1, with random gains and biases, and compute its eleven lines. The dictionary
# `w` holds the two parameters of each of the eight parts of the layer, under a short name.

# %%
config = TransformerConfig(d_model=12, d_ff=20, n_heads=3, n_layers=2, dropout=0.0)
layer = EncoderLayer(config, rng=rng, dtype=np.float64)
parameters = dict(layer.named_parameters())
for name, parameter in parameters.items():
    if name.endswith(("gain", "bias")):
        parameter.value += rng.standard_normal(parameter.shape)

full = {
    "q": "self_attention.query",
    "k": "self_attention.key",
    "v": "self_attention.value",
    "o": "self_attention.output",
    "norm1": "norm1",
    "ff1": "feed_forward.inner",
    "ff2": "feed_forward.outer",
    "norm2": "norm2",
}
w = {
    short: [p.value for name, p in parameters.items() if name.startswith(long + ".")]
    for short, long in full.items()
}

# %%
x = rng.standard_normal((2, 5, 12))  # (B, S, D)
mask = padding_mask(np.array([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]]))  # (B, 1, 1, S)
q, c_q = linear(x, *w["q"])  # (B, S, D)                               1
k, c_k = linear(x, *w["k"])  # (B, S, D)                               2
v, c_v = linear(x, *w["v"])  # (B, S, D)                               3
qh, kh, vh = (split_heads(part, 3) for part in (q, k, v))  # (B, H, S, K)  4
z, c_z = attention(qh, kh, vh, mask)  # (B, H, S, K)                   5
m, c_o = linear(merge_heads(z), *w["o"])  # (B, S, D)                6
a, c_1 = layer_norm(x + m, *w["norm1"])  # (B, S, D)                   7
h, c_f = linear(a, *w["ff1"])  # (B, S, F)                             8
h, c_r = relu(h)  # (B, S, F)                                          9
f, c_g = linear(h, *w["ff2"])  # (B, S, D)                            10
y, c_2 = layer_norm(a + f, *w["norm2"])  # (B, S, D)                  11
y_package, layer_cache = layer.forward(x, mask)
print("output", y.shape, "  first entries", y[0, 1, :3])

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)

# %% tags=["plot"]
axes = dict.fromkeys(("x", "m", "u₁", "a", "f", "u₂", "y"), "S D")
attention_half = {
    "layout": "x  .  u₁  a \n .  m  .  .",
    "steps": {
        "m": Step("attention", ["x"]),
        "u₁": Step("x + m", ["x", "m"]),
        "a": Step("norm", ["u₁"]),
    },
    "arrays": {"x": x[0], "m": m[0], "u₁": (x + m)[0], "a": a[0]},
    "axes": axes,
}
feed_forward_half = {
    "layout": "a  .  u₂  y \n .  f  .  .",
    "steps": {
        "f": Step("feed-forward", ["a"]),
        "u₂": Step("a + f", ["a", "f"]),
        "y": Step("norm", ["u₂"]),
    },
    "arrays": {"a": a[0], "f": f[0], "u₂": (a + f)[0], "y": y[0]},
    "axes": axes,
}
figure = gradient_flow(**attention_half)
show_figure(figure, "10_2_attention", "Forward, lines 1 to 7: from x to a")
figure = gradient_flow(**feed_forward_half)
show_figure(figure, "10_2_feed_forward", "Forward, lines 8 to 11: from a to y")

# %% [markdown]
# The pictures show the two halves of the layer for the first sentence. In the first one, circle 1 stands for
# lines 1 to 6, and circles 2 and 3 are line 7: the sum $u_1$ and its norm. In the second one, circle 1 stands
# for lines 8 to 10, and circles 2 and 3 are line 11.

# %% tags=["plot"]
figure = gradient_flow(**feed_forward_half, gradients=dict.fromkeys(("a", "f", "u₂", "y")))
show_figure(figure, "10_2_feed_forward_back", "Backward, lines 11 to 8: from dy to da")
figure = gradient_flow(**attention_half, gradients=dict.fromkeys(("x", "m", "u₁", "a")))
show_figure(figure, "10_2_attention_back", "Backward, lines 7 to 1: from da to dx")

# %% [markdown]
# Now the way back. The gradients of $x$ and $a$ arrive on a direct path, the long dashed arrow, and on a
# sublayer path (lesson 8.3, `08_3_the_residual_connection`).

# %% [markdown]
# ## Backward: the eleven lines in reverse order
#
# In which order must the gradients be computed? An array may pass on its gradient only when this gradient
# is complete, that is, when all lines that use the array have added their terms to it. We go through the
# eleven lines from the last to the first. The lines that use an array stand below the line that computes it.
# So when we reach the line that computes an array, its gradient is always complete.
#
# **Question.** Which lines must add their terms to $da$ before line 7 may use it?
#
# <details><summary>Answer</summary>
# Lines 11 and 8, because both use $a$.
# </details>

# %% [markdown]
# We begin with the feed-forward half. The symbol ← means that a term is added.
#
# - Line 11, $y = \mathrm{norm}_2(u_2)$ with $u_2 = a + f$: the backward pass of the norm gives $du_2$. A sum
#   passes its gradient to both terms: $da = du_2$ is the direct path, and $df = du_2$ begins the sublayer
#   path.
# - Line 10, $f = h W_2 + b_2$: $dh = df\, W_2^\top$.
# - Line 9, the ReLU: $dh$ remains where $h > 0$, and becomes 0 elsewhere.
# - Line 8, $h = a W_1 + b_1$: $da$ ← $dh\, W_1^\top$. Here the sublayer path ends.
#
# Now $da$ has both of its terms, so we may go on to the attention half:
#
# - Line 7, $a = \mathrm{norm}_1(u_1)$ with $u_1 = x + m$: the norm gives $du_1$. Again $dx = du_1$ is the
#   direct path, and $dm = du_1$ begins the sublayer path.
#
# **Question.** After line 7, is the gradient $dx$ complete?
#
# <details><summary>Answer</summary>
# No. $x$ is also used in lines 1, 2 and 3, for queries, keys and values. Their three terms are still
# missing.
# </details>

# %% [markdown]
# The remaining lines belong to the attention:
#
# - Line 6, $m = \mathrm{merge}(z)\, W^O + b^O$: $dz = \mathrm{split}(dm\, {W^O}^\top)$. The merge puts the
#   outputs of the heads side by side, and only moves numbers. So its backward pass moves the gradients back,
#   which is what the split does.
# - Line 5, attention: $dq$, $dk$ and $dv$ in each head (lesson 5.2).
# - Line 4, the split: for the same reason, its backward pass is the merge.
# - Lines 3, 2 and 1 add three terms to $dx$.
#
# Only $da$ and $dx$ have several terms. Their complete formulas are
#
# $$\begin{aligned}
# da &= du_2 + dh\, W_1^\top \\
# dx &= du_1 + dq\, {W^Q}^\top + dk\, {W^K}^\top + dv\, {W^V}^\top
# \end{aligned}$$
#
# In both formulas, the first term is the direct path. The parameters of a linear layer get the gradients of
# lesson 0.2: $dW = x^\top dy$ and $db = \sum dy$.

# %% [markdown]
# Each line of the next cell belongs to the forward line with the same number. The dictionary `grads` collects
# the gradients of the parameters: `du2, *grads["norm2"] = …` stores the first gradient in `du2`, and the
# other two in a list.

# %%
dy = rng.standard_normal(y.shape)  # (B, S, D)
grads = {}
du2, *grads["norm2"] = layer_norm_backward(dy, c_2)  # 11
da, df = du2, du2
dh, *grads["ff2"] = linear_backward(df, c_g)  # 10
dh = relu_backward(dh, c_r)  # 9
term, *grads["ff1"] = linear_backward(dh, c_f)  # 8
da = da + term
du1, *grads["norm1"] = layer_norm_backward(da, c_1)  # 7
dx, dm = du1, du1
dz, *grads["o"] = linear_backward(dm, c_o)  # 6
dqh, dkh, dvh = attention_backward(split_heads(dz, 3), c_z)  # 5
dq, dk, dv = merge_heads(dqh), merge_heads(dkh), merge_heads(dvh)  # 4
for short, dpart, cache in (("v", dv, c_v), ("k", dk, c_k), ("q", dq, c_q)):  # 3, 2, 1
    term, *grads[short] = linear_backward(dpart, cache)
    dx = dx + term
print("dx", dx.shape, "  first entries", dx[0, 1, :3])

# %% tags=["plot"]
given = {"y": dy[0], "u₂": du2[0], "f": df[0], "a": da[0]}
figure = gradient_flow(**feed_forward_half, gradients=given)
show_figure(figure, "10_2_da", "da: the sum of its direct path and its sublayer path")
given = {"a": da[0], "u₁": du1[0], "m": dm[0], "x": dx[0]}
figure = gradient_flow(**attention_half, gradients=given)
show_figure(figure, "10_2_dx", "dx: the sum of a direct path and three terms from attention")

# %% [markdown]
# The layer of the package contains the same lines, distributed over its parts. We compare all 16 parameters
# and print the lengths of their gradients.

# %% tags=["check"]
assert_allclose(dx, layer.backward(dy, layer_cache), rtol=1e-9, atol=1e-12)
for short, long in full.items():
    found = [p.grad for name, p in parameters.items() if name.startswith(long + ".")]
    for ours, package in zip(grads[short], found, strict=True):
        assert_allclose(ours, package, rtol=1e-9, atol=1e-12)
    lengths = [np.linalg.norm(gradient) for gradient in found]
    print(f"{long:28} lengths {lengths[0]:8.3f} {lengths[1]:8.3f}   equal to ours")
assert abs(grads["k"][1]).max() < 1e-13

# %% tags=["plot"]
lengths = np.array([[np.linalg.norm(d) for d in grads[short]] for short in full])  # (8, 2)
settings = {"numbers": True, "decimals": 1, "shade": True}
figure = cell_grid(lengths, rows=list(full), columns=["first", "second"], **settings)
caption = "The lengths of the gradients: weight and bias of each part, gain and bias of a norm"
show_figure(figure, "10_gradients", caption)

# %% [markdown]
# One number of this table is remarkable: the gradient of the key's bias is 0.
#
# **Question.** Why does the bias of the keys get no gradient?
#
# <details><summary>Answer</summary>
# Let b be a vector that is added to all keys. Then all scores of a query q rise by the same number, q · b
# times the scale. Adding the same number to all scores of a query does not change the softmax. So the loss
# does not depend on this bias.
# </details>
#
# ## The cache is a tree
#
# In the package the caches of the eleven lines are stored in a tree. It has one branch for attention, one for
# the feed-forward network and two for the norms. So if you know the layer, you can find every number that its
# backward pass needs.

# %%
for name, part in layer.children():
    print(f"layer.{name:22} {type(part).__name__:19} cache.{name:22} ", end="")
    print(type(getattr(layer_cache, name)).__name__)
cache = layer_cache.feed_forward
show(cache)

# %% tags=["check"]
assert_allclose(layer_cache.self_attention.attention.weights, c_z.weights, rtol=1e-12)

# %% tags=["plot"]
places = {"u₁": "encoder.0.add1.sum", "u₂": "encoder.0.add2.sum", "x": "source.tokens.y"}
places |= {"m": "encoder.0.self_attention.output.y", "f": "encoder.0.feed_forward.outer.y"}
steps = {"m": Step("norm, attention", ["x"]), "u₁": Step("x + m", ["x", "m"])}
steps |= {"f": Step("norm, feed-forward", ["u₁"]), "u₂": Step("u₁ + f", ["u₁", "f"])}
layout, axes = "x . u₁ . u₂ \n . m . f .", dict.fromkeys(places, "S D")
figure = running_example().flow(layout, places, steps, axes)
caption = "Our sentence in a layer of the translator: its norms stand before the sublayers (8.1)"
show_figure(figure, "10_2_running", caption)

# %% [markdown]
# ## Summary
#
# - An array may pass on its gradient when all lines that use it have added their terms.
# - In the reverse order of the lines, the gradient of an array is complete before it is used.
# - $da$ has two terms: the direct path, and the sublayer path through the feed-forward network.
# - $dx$ has four terms: the direct path, and three through queries, keys and values.
# - The bias of the keys gets no gradient, because it has no effect on the attention weights.

# %% [markdown]
# ## Questions
#
# **Question.** Suppose that the backward pass took line 7 before line 8. What would be wrong with the result?
#
# <details><summary>Answer</summary>
# At that moment $da$ contains only the direct path. So the gradient that comes through the feed-forward
# network would be missing in $dx$, and in the gradients of all parameters of the attention half.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 10` lists the exercises of this chapter. The gradient checker grades each of them.
#
# - `npformer exercise start encoder-layer-backward`: write the backward pass of an encoder layer in
#   four calls of backward, one for each part of the layer.
# - In the terminal, `s layer_cache` shows the whole tree. Find the ReLU's output in it.
#
# **Next** on the main route: lesson 11.1 (`11_1_the_decoder_and_teacher_forcing`), the decoder, which may not
# see later tokens. Off the route: lesson 10.3 (`10_3_the_whole_encoder`), layers in a stack.

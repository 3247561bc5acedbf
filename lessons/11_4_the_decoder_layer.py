# %% [markdown]
# # 11.4 · The decoder layer
#
# *About 30 minutes. You need: encoder-decoder attention and its backward pass (lesson 11.3,
# `11_3_encoder_decoder_attention`), the encoder layer and its backward pass (lesson 10.2,
# `10_2_the_backward_pass_of_an_encoder_layer`).*
#
# **After this lesson you can**
#
# - write the three sublayers of a decoder layer, forward;
# - say how often each array is used, and so how many terms its gradient has;
# - derive the backward pass of the layer, with one gradient for the encoder.
#
# `model: ids → embedding → positions → encoder → [DECODER] → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import TransformerConfig, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.models.transformer import DecoderLayer
from npformer.plots import Step, cell_grid, gradient_flow

rng = np.random.default_rng(11)

# %% [markdown]
# ## The parts
#
# We take a decoder layer of the package with random gains and biases, five target tokens and four source
# tokens. The functions `attend` and `attend_backward` are those of lesson 11.3. `attend` computes attention
# with queries from $x$, and keys and values from $m$. `attend_backward` returns $dx$ and $dm$ separately.

# %%
T, S, D, H = 5, 4, 8, 2
tiny = TransformerConfig(9, 9, d_model=8, d_ff=12, n_heads=2, n_layers=2, dropout=0.0)
layer = DecoderLayer(tiny, rng=rng, dtype=np.float64)
p = {name: parameter.value for name, parameter in layer.named_parameters()}
for value in p.values():
    value += 0.3 * rng.standard_normal(value.shape)
x = rng.standard_normal((1, T, D))  # (B, T, D)
memory = rng.standard_normal((1, S, D))  # (B, S, D)
may_attend = np.tri(T, dtype=bool)  # (T, T) the causal mask

# %%
g = {}  # gradients, under the names of p


def affine(name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def affine_backward(name, dy, cache):
    dx, g[name + ".weight"], g[name + ".bias"] = F.linear_backward(dy, cache)
    return dx


# %%
def attend(name, x, m, mask=None):
    """Compute attention with queries from x (B, T, D), keys and values from m (B, S, D)."""
    q, of_q = affine(name + ".query", x)  # (B, T, D)
    k, of_k = affine(name + ".key", m)  # (B, S, D)
    v, of_v = affine(name + ".value", m)  # (B, S, D)
    z, of_z = F.attention(F.split_heads(q, H), F.split_heads(k, H), F.split_heads(v, H), mask)
    y, of_y = affine(name + ".output", F.merge_heads(z))  # (B, T, D)
    return y, (of_q, of_k, of_v, of_z, of_y)


def attend_backward(name, dy, cache):
    """Return dx and dm separately."""
    of_q, of_k, of_v, of_z, of_y = cache
    dz = F.split_heads(affine_backward(name + ".output", dy, of_y), H)  # (B, H, T, d_k)
    dq, dk, dv = (F.merge_heads(d) for d in F.attention_backward(dz, of_z))  # (B, T or S, D)
    dx = affine_backward(name + ".query", dq, of_q)  # (B, T, D)
    dm = affine_backward(name + ".key", dk, of_k)  # (B, S, D)
    return dx, dm + affine_backward(name + ".value", dv, of_v)


# %% [markdown]
# ## A whole decoder layer, forward
#
# Each of the three sublayers has a residual connection and a layer norm (lesson 8.3,
# `08_3_the_residual_connection`). We write down one line for each operation. Then we can go through the lines
# in reverse order for the backward pass.
#
# $$\begin{aligned}
# a &= \mathrm{attend}(x, x) \\
# x_1 &= \mathrm{norm}_1(x + a) \\
# c &= \mathrm{attend}(x_1, M) \\
# x_2 &= \mathrm{norm}_2(x_1 + c) \\
# f &= \max(0,\, x_2 W_1 + b_1)\, W_2 + b_2 \\
# y &= \mathrm{norm}_3(x_2 + f)
# \end{aligned}$$
#
# The first `attend` has the causal mask: position $t$ may attend to the keys 0 to $t$.

# %%
norms = ["norm1", "norm2", "norm3"]
weights = [(p[name + ".gain"], p[name + ".bias"]) for name in norms]
a, of_a = attend("self_attention", x, x, may_attend)
x1, of_x1 = F.layer_norm(x + a, *weights[0])  # (B, T, D), and so are all but h
c, of_c = attend("cross", x1, memory)
x2, of_x2 = F.layer_norm(x1 + c, *weights[1])
h, of_h = affine("feed_forward.inner", x2)  # (B, T, F)
f, of_f = affine("feed_forward.outer", np.maximum(0, h))
made, of_made = F.layer_norm(x2 + f, *weights[2])

y_package, of_layer = layer.forward(x, memory, may_attend)
cache = of_layer.cross.attention
show(cache)

# %% tags=["check"]
assert_allclose(made, y_package, rtol=1e-9)

# %% [markdown]
# This is the cache of the encoder-decoder attention, with five queries and four keys and values.
#
# ## Backward, from the last line to the first
#
# We need to know how often each array is used, because its gradient has one term for each use. A sum such
# as $x_2 + f$ gives its gradient unchanged to both terms.
#
# **Question.** How often does the layer use $x_2$, $x_1$ and $x$?
#
# <details><summary>Answer</summary>
# $x_2$ is used twice: in the sum, and as the input of the feed-forward network. $x_1$ is used twice: in the
# sum, and for the queries of the encoder-decoder attention. $x$ is used four times: in the sum, and for
# queries, keys and values of the self-attention.
# </details>

# %% [markdown]
# Let $u_1 = x + a$, $u_2 = x_1 + c$ and $u_3 = x_2 + f$ be the inputs of the three norms. Let
# $h = x_2 W_1 + b_1$, and let $\mathrm{norm}_i'$ be the backward pass of a norm (lesson 8.2,
# `08_2_the_backward_pass_of_layer_norm`). The picture shows the paths of the gradient in the second sublayer.
# The two others have no memory.

# %% tags=["plot"]
layout = """x1      .  u2  x2
            memory  c  .   ."""
steps = {
    "c": Step("attend", ["x1", "memory"]),
    "u2": Step("x1 + c", ["x1", "c"]),
    "x2": Step("norm", ["u2"]),
}
arrays = {"x1": x1[0], "memory": memory[0], "c": c[0], "u2": (x1 + c)[0], "x2": x2[0]}
axes = dict.fromkeys(arrays, "T D") | {"memory": "S D"}
figure = gradient_flow(layout, arrays, steps, dict.fromkeys(arrays), axes=axes)
caption = "From dx2 to dx1 on two paths, and to dmemory, which leaves the layer"
show_figure(figure, "11_4_paths", caption)

# %% [markdown]
# From the last line to the first:
#
# $$\begin{aligned}
# du_3 &= \mathrm{norm}_3'(dy) \\
# dx_2 &= du_3 + [(du_3\, W_2^\top) \odot (h > 0)]\, W_1^\top \\
# du_2 &= \mathrm{norm}_2'(dx_2) \\
# dx_1 &= du_2 + dQ\, {W^Q}^\top \\
# dM &= dK\, {W^K}^\top + dV\, {W^V}^\top \\
# du_1 &= \mathrm{norm}_1'(dx_1) \\
# dx &= du_1 + dQ\, {W^Q}^\top + dK\, {W^K}^\top + dV\, {W^V}^\top
# \end{aligned}$$
#
# In the lines of $dx_1$ and $dM$, the matrices and gradients are those of the encoder-decoder attention. In
# the last line they are those of the self-attention. The terms $du_3$, $du_2$ and $du_1$ are the direct
# paths. The gradient $dM$ leaves the layer.

# %%
dy = rng.standard_normal((1, T, D))  # the gradient from the layer above
du3, *dnorm3 = F.layer_norm_backward(dy, of_made)
dh = affine_backward("feed_forward.outer", du3, of_f) * (h > 0)  # (B, T, F)
dx2 = du3 + affine_backward("feed_forward.inner", dh, of_h)
du2, *dnorm2 = F.layer_norm_backward(dx2, of_x2)
dqueries, dmemory = attend_backward("cross", du2, of_c)  # (B, T, D), (B, S, D)
dx1 = du2 + dqueries
du1, *dnorm1 = F.layer_norm_backward(dx1, of_x1)
dx = du1 + sum(attend_backward("self_attention", du1, of_a))
for name, grads in zip(norms, (dnorm1, dnorm2, dnorm3), strict=True):
    g[name + ".gain"], g[name + ".bias"] = grads

dx_package, dmemory_package = layer.backward(dy, of_layer)
print("dx:     largest difference from the package", abs(dx - dx_package).max())
print("dmemory: largest difference from the package", abs(dmemory - dmemory_package).max())

# %% tags=["check"]
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(dmemory, dmemory_package, rtol=1e-9)
for name, parameter in layer.named_parameters():
    assert_allclose(g[name], parameter.grad, rtol=1e-9, atol=1e-12)
assert len(g) == 26
print("the gradients of all 26 parameters agree too")

# %% tags=["plot"]
paths = {"direct path": du2, "sublayer path": dqueries, "sum": dx1}
lengths = np.stack([np.linalg.norm(d[0], axis=-1) for d in paths.values()])  # (3, T)
figure = cell_grid(lengths, rows=list(paths), numbers=True, shade=True)
caption = "The two terms of dx₁ and their sum: the length of the gradient at each target token"
show_figure(figure, "11_paths", caption)

# %% [markdown]
# Compare this with `DecoderLayer.backward` in `npformer/models/transformer/layers.py`. It has three blocks,
# and the last sublayer comes first. The gradient of the memory leaves in the middle block.
#
# **Question.** Why does $dx_1$ have two terms, although attention returns three gradients?
#
# <details><summary>Answer</summary>
# Only the queries of the encoder-decoder attention come from $x_1$. The gradients of keys and values go to
# the memory. The other term of $dx_1$ is the direct path of the residual connection.
# </details>

# %% [markdown]
# ## Check the gradient
#
# We check the whole layer of the package, with both inputs and the causal mask. The table has a row for each
# of the 26 parameters, for both inputs and for further tests (lesson 0.3, `00_3_measured_derivatives`), so we
# print only the number of its rows and the largest error.

# %%
report = gradcheck(layer, x, memory, may_attend)
worst = report.worst
print(f"{len(report.rows)} rows, largest error {worst.error:.0e}, in {worst.tensor}")

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## What the source documents say
#
# > - In the code of *Attention机制详解（二）* a norm stands before each sublayer, and one more on top of each
# >   stack. The other documents have the norm after each sublayer, as here.

# %% [markdown]
# ## Summary
#
# - A decoder layer has three sublayers. Each has a residual connection and a norm.
# - $x_2$ and $x_1$ are used twice, and $x$ four times. Their gradients have as many terms.
# - $dx_1$ has two terms: the direct path, and the queries of the encoder-decoder attention.
# - The gradients of the keys and values of this attention form $dM$, which leaves the layer and goes to the
#   encoder.
# - Backward, the last sublayer comes first, as in the encoder layer.

# %% [markdown]
# ## Questions
#
# **Question.** All weights of the output projection of the encoder-decoder attention are 0. What is $dM$?
#
# <details><summary>Answer</summary>
# It is 0. The gradient passes through the output projection first, where it is multiplied by a matrix of
# zeros. So no gradient reaches the keys and the values.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` lists the exercises of this chapter.
#
# - `npformer exercise start decoder-layer-backward`: write the backward pass of a decoder layer. It has three
#   blocks, and it also returns the gradient of the memory.
# - By hand: list the 26 parameters of the layer, sublayer by sublayer.
#
# **Next**: lesson 11.5 (`11_5_one_memory_for_all_layers`), several decoder layers and one memory.

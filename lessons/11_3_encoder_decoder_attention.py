# %% [markdown]
# # 11.3 · Encoder-decoder attention
#
# *About 25 minutes. You need: attention and its backward pass (lesson 5.2,
# `05_2_the_backward_pass_of_attention`), heads (lesson 7.1, `07_1_why_several_heads`), the linear layer
# (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - compute encoder-decoder attention, and say which array its queries, keys and values come from;
# - derive its backward pass, with one gradient for the decoder and one for the encoder;
# - write one pair of functions for self-attention and for encoder-decoder attention.
#
# `model: ids → embedding → positions → encoder → [DECODER] → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, TransformerConfig, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.models.transformer import DecoderLayer
from npformer.plots import Step, attention_grid, gradient_flow, score_bars

rng = np.random.default_rng(11)

# %% [markdown]
# ## Encoder-decoder attention

# %% tags=["plot"]
layout = """x       q  scores  weights  z
            memory  k    .       .     .
            .       v    .       .     ."""
same = np.random.default_rng(0)
q, k, v = (same.standard_normal((length, 3)) for length in (5, 3, 3))  # T = 5, S = 3
z, example_cache = F.attention(q, k, v)
arrays = {"x": same.standard_normal((5, 4)), "memory": same.standard_normal((3, 4))}
arrays |= {"q": q, "k": k, "v": v}
arrays |= {"scores": example_cache.scores, "weights": example_cache.weights, "z": z}
steps = {"q": Step("", ["x"]), "k": Step("", ["memory"]), "v": Step("", ["memory"])} | {
    "scores": Step("q kᵀ / √dₖ", ["q", "k"]),
    "weights": Step("softmax", ["scores"]),
    "z": Step("weights v", ["weights", "v"]),
}
axes = {"x": "T D", "memory": "S D", "q": "T dₖ", "k": "S dₖ", "v": "S dₖ", "z": "T dₖ"}
axes |= {"scores": "T S", "weights": "T S"}
caption = "T queries come from x; S keys and values come from the memory"
show_figure(gradient_flow(layout, arrays, steps, axes=axes), "11_3_cross", caption)

# %% [markdown]
# The source enters the decoder only through the second sublayer. Section 3.2.3 of the paper says:
#
# > the queries come from the previous decoder layer, and the memory keys and values come from the output of
# > the encoder.
#
# Let $X$ be the vectors of the decoder for one sentence, and $M$ its memory. Each head computes
#
# $$\begin{aligned}
# Q &= X W^Q + b^Q \\
# K &= M W^K + b^K \\
# V &= M W^V + b^V
# \end{aligned}$$
#
# At the end the heads are joined and multiplied by $W^O$, as in lesson 7.1.

# %% [markdown]
# Let $d_k$ be the width of a head. Then $Q$ has the shape (T, $d_k$). The keys and the values have the shape
# (S, $d_k$). They differ, because each has its own matrix.
#
# The next cell computes the sublayer with loops. It uses a layer of the package with random parameters.

# %%
tiny = TransformerConfig(9, 9, d_model=8, d_ff=12, n_heads=2, n_layers=2, dropout=0.0)
T, S, D, H, d_k = 5, 4, 8, 2, 4
layer = DecoderLayer(tiny, rng=rng, dtype=np.float64)
p = {name: parameter.value for name, parameter in layer.named_parameters()}
for value in p.values():
    value += 0.3 * rng.standard_normal(value.shape)
x = rng.standard_normal((1, T, D))  # (B, T, D)
memory = rng.standard_normal((1, S, D))  # (B, S, D)

slow = np.zeros((T, D))  # the heads side by side
for h in range(H):
    place = slice(h * d_k, (h + 1) * d_k)  # this head's columns
    q = x[0] @ p["cross.query.weight"][:, place] + p["cross.query.bias"][place]  # (T, d_k)
    k = memory[0] @ p["cross.key.weight"][:, place] + p["cross.key.bias"][place]  # (S, d_k)
    v = memory[0] @ p["cross.value.weight"][:, place] + p["cross.value.bias"][place]  # (S, d_k)
    for t in range(T):
        e = [np.exp(q[t] @ k[s] / np.sqrt(d_k)) for s in range(S)]
        for s in range(S):
            slow[t, place] += e[s] / sum(e) * v[s]
slow = slow @ p["cross.output.weight"] + p["cross.output.bias"]  # (T, D)

# %% tags=["check"]
assert_allclose(slow, layer.cross.forward(x, memory)[0][0], rtol=1e-9)
assert abs(k - v).max() > 1

# %% [markdown]
# ### Backward
#
# The backward pass of attention gives $dQ$, $dK$ and $dV$ (lesson 5.2). Each of these arrays was computed by
# a linear layer, so its gradient is multiplied by a transposed matrix (lesson 0.2). $Q$ was computed from
# $X$. Both $K$ and $V$ were computed from $M$, so $M$ gets the sum of two gradients:
#
# $$\begin{aligned}
# dX &= dQ\, {W^Q}^\top \\
# dM &= dK\, {W^K}^\top + dV\, {W^V}^\top
# \end{aligned}$$
#
# The gradient $dX$ stays in the decoder. The gradient $dM$ leaves the decoder and goes to the encoder.
#
# In self-attention $M = X$, and all three gradients add up. So one pair of functions serves both kinds of
# attention. The cell writes them with functions from the lessons named above.

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
# The two functions must give the same results as the layer of the package, for both kinds of attention.

# %%
causal = np.tri(T, dtype=bool)  # (T, T)
dy = rng.standard_normal((1, T, D))  # (B, T, D)

y, of_y = attend("cross", x, memory)
dx, dmemory = attend_backward("cross", dy, of_y)
own, of_own = attend("self_attention", x, x, causal)
from_queries, from_keys_and_values = attend_backward("self_attention", dy, of_own)
print("encoder-decoder attention: dx", dx.shape, " dmemory", dmemory.shape)

# %% tags=["check"]
y_package, cache = layer.cross.forward(x, memory)
dx_package, dmemory_package = layer.cross.backward(dy, cache)
assert_allclose(y, y_package, rtol=1e-9)
assert_allclose(dx, dx_package, rtol=1e-9, atol=1e-12)
assert_allclose(dmemory, dmemory_package, rtol=1e-9, atol=1e-12)
own_package, own_cache = layer.self_attention.forward(x, mask=causal)
assert_allclose(own, own_package, rtol=1e-9)
dx_own = layer.self_attention.backward(dy, own_cache)
assert_allclose(from_queries + from_keys_and_values, dx_own, rtol=1e-9, atol=1e-12)
print("both kinds of attention agree with the package")

# %% [markdown]
# The cache of the encoder-decoder attention contains five queries for each head, and four keys and values.

# %%
cache = cache.attention
show(cache)

# %% tags=["plot"]
tokens = [f"target {t}" for t in range(T)], [f"source {s}" for s in range(S)]
figure = attention_grid(cache.weights, *tokens)
caption = "Encoder-decoder attention of two heads with random weights: T rows, S columns"
show_figure(figure, "11_shapes", caption)

# %% tags=["plot"]
run = running_example()
lengths = 1000 * np.linalg.norm(run.gradients["encoder.norm.y"], axis=-1)  # (S,)
caption = 'Our sentence, 1000 |dM|: the loss depends most on "snow" and "dogs"'
show_figure(score_bars([lengths], [run.source], decimals=1), "11_3_running", caption)

# %% tags=["check"]
assert [run.source[s] for s in lengths.argsort()[:-3:-1]] == ["snow", "dogs"]

# %% [markdown]
# ## Check the gradient
#
# We check the package's layer with its two inputs, x (in the report "query") and the memory ("key").

# %%
report = gradcheck(layer.cross, x, memory)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## It learns which source token to read
#
# A source vector contains a note (three numbers) and its token's position. Target token t should get source
# vector 4 − t. If every output were the mean of the five vectors, the loss would be .41.

# %%
notes, seats = rng.standard_normal((64, 5, 3)), np.tile(np.eye(5), (64, 1, 1))
memory = np.concatenate([notes, seats], -1)  # (B, S, D): a note and the place of the token
x = np.concatenate([0 * notes, seats], -1)  # (B, T, D): the place alone
cross = MultiHeadAttention(8, 1, rng=rng, dtype=np.float64)
for step in range(300):
    y, cache = cross.forward(x, memory)
    error = y - memory[:, ::-1]
    cross.zero_grad()
    cross.backward(2 * error / error.size, cache)
    for parameter in cross.parameters():
        parameter.value -= 1.6 * parameter.grad
    loss = (error * error).mean()
    if step in (0, 299):
        print(f"loss {loss:.3f}, weights", cache.attention.weights[0, 0, 0].round(2))

# %% tags=["check"]
assert loss < 0.02
assert_allclose(((memory - memory.mean(1, keepdims=True)) ** 2).mean(), 0.41, atol=0.005)
assert (cache.attention.weights[0, 0].argmax(-1) == [4, 3, 2, 1, 0]).all()

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* says "K = V = the decoder's output". In fact the *encoder's* output is used, as the
# >   document itself says below. And K and V are two different products of this output.
# > - *一步步解析Attention is All You Need!* says first that the second sublayer attends to "the encoder's
# >   input", but then, and in its code, it is the encoder's output.
# > - The paper's "previous decoder layer" is, in its figure 1, the norm after the masked self-attention.

# %% [markdown]
# ## Summary
#
# - In encoder-decoder attention, queries come from the decoder, and keys and values from the memory.
# - Keys and values are products of the same memory with two different matrices.
# - The attention weights of a head have the shape (T, S): one row for each target token.
# - Backward, the decoder gets the gradient through the queries. The memory gets the sum of two
#   gradients, one through the keys and one through the values.
# - Self-attention is the special case in which both inputs are the same array. Then the two gradients are
#   added.

# %% [markdown]
# ## Questions
#
# **Question.** The source has one token only. What are the attention weights, and what is $dX$?
#
# <details><summary>Answer</summary>
# All weights are 1, because the softmax of a single score is 1. They do not depend on the queries, so the
# gradient of the queries is 0, and $dX = 0$.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` lists the exercises of this chapter, which belong to the other lessons.
#
# - By hand: why can the keys and values of the memory be computed once for a whole translation, although the
#   decoder is called for every token?
# - See the scores between the two sentences in a real model: run
#   `npformer explore --model en-de "A dog runs." --open`, and replace the end of the address, from `#` on, by
#   `#step=decoder.0.cross.attention.scores`.
#
# **Next** on the main route: lesson 12.1 (`12_1_the_cross_entropy`), from the decoder's vectors to the loss.
# Off the route: lesson 11.4 (`11_4_the_decoder_layer`), the whole decoder layer and its backward pass.

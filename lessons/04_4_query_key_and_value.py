# %% [markdown]
# # 4.4 · Query, key and value
#
# *About 25 minutes. You need: self-attention and its gradient (lessons 4.1,
# `04_1_attention_without_parameters`, and 4.2, `04_2_the_gradient_of_self_attention`), the
# linear layer (lesson 0.2,
# `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - explain what queries, keys and values are, and why each of them has its own weight matrix;
# - compute self-attention with three weight matrices;
# - derive the gradients of the matrices, and compare them with the package.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention
from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.learn.course import show_figure
from npformer.learn.course.running import attention_places, running_example
from npformer.plots import Grid, Step, cell_product, gradient_flow

rng = np.random.default_rng(4)

# %% [markdown]
# ## One vector with three roles
#
# In self-attention, every token vector is used as a query, as a key and as a value. In lesson 4.1 all three
# were the same vector $x$. There, each token attended most to itself if all vectors had the same length. In
# this lesson the three roles get different vectors.
#
# We use the same example again. The entries of the vectors say whether a word is an animal, flies, is an
# action, or is an article.

# %%
words = ["the", "dog", "saw", "the", "bird"]
x = np.array(  # (T, D)
    [  # animal, flies, action, article
        [0.0, 0.0, 0.0, 2.0],
        [2.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 2.0, 0.0],
        [0.0, 0.0, 0.0, 2.0],
        [1.6, 1.2, 0.0, 0.0],
    ]
)

# %% [markdown]
# ## Three weight matrices
#
# The paper describes attention as a lookup in which every key matches to some degree (lesson 4.3,
# `04_3_from_a_dictionary_to_a_soft_lookup`):
#
# > An attention function can be described as mapping a query and a set of key-value pairs to an output, where
# > the query, keys, values, and output are all vectors. The output is computed as a weighted sum of the
# > values, where the weight assigned to each value is computed by a compatibility function of the query with
# > the corresponding key.
#
# In self-attention, every token has all three roles. But what a token needs is often different from what it
# is. For example, an action needs to know which animals take part, and it is not an animal itself. So each
# role gets its own weight matrix. The output is now called $z$, not $y$ as in lesson 4.1, because a
# Transformer multiplies it by one more matrix (chapter 7).

# %% tags=["plot"]
layout = """.  q  scores  weights  z
            x  k    .       .     .
            .  v    .       .     ."""
matrices = np.random.default_rng(0).standard_normal((3, 4, 2))  # three times (D, d_k)
arrays = {"x": x} | dict(zip("qkv", x @ matrices, strict=True))
output, example_cache = attention(arrays["q"], arrays["k"], arrays["v"], scale=1.0)
arrays |= {"scores": example_cache.scores, "weights": example_cache.weights, "z": output}
steps = {name: Step("", ["x"]) for name in "qkv"} | {
    "scores": Step("q kᵀ", ["q", "k"]),
    "weights": Step("softmax", ["scores"]),
    "z": Step("weights v", ["weights", "v"]),
}
axes = {"x": "T D", "q": "T dₖ", "k": "T dₖ", "v": "T dᵥ", "z": "T dᵥ"}
axes |= {"scores": "T T", "weights": "T T"}
caption = "From x to z: q, k and v are products of x and three different matrices, here random"
show_figure(gradient_flow(layout, arrays, steps, axes=axes), "04_4_roles", caption)

# %% [markdown]
# The three products of the picture are
#
# $$Q = X W^Q, \qquad K = X W^K, \qquad V = X W^V$$
#
# - The **query** $q_t$ says what token $t$ needs.
# - The **key** $k_s$ says what token $s$ offers. It is compared with the queries.
# - The **value** $v_s$ is the information that other tokens receive from token $s$.
#
# Queries and keys must have the same width, because each score is a dot product of both. The paper calls it
# $d_k$. The values may have another width, $d_v$. Here V stands for the values, not for the size of the
# vocabulary.
#
# As an example we choose the three matrices by hand. Actions will attend to animals, and animals will attend
# to articles. Column 0 of Q and K stands for "animal", and column 1 for "article". The values are the
# first two entries of $x$, "animal" and "flies".

# %%
# (D, d_k) each: an animal asks for column 1 and offers column 0
w_q = np.array([[0, 1.0], [0, 0], [1.0, 0], [0, 0]])  # an action asks for column 0
w_k = np.array([[1.0, 0], [0, 0], [0, 0], [0, 1.0]])  # an article offers column 1
w_v = np.eye(4)[:, :2]  # (D, d_v) animal, flies
q, k, v = x @ w_q, x @ w_k, x @ w_v  # (T, d_k), (T, d_k), (T, d_v)
z, cache = attention(q, k, v, scale=1.0)
chosen = cache.weights  # (T, T)
print('"saw" attends with', chosen[2].round(2), "and gets", z[2].round(2))

# %% tags=["plot"]
grids = [
    Grid(q, "$Q$", "q", rows=words, numbers=True),
    "×",
    Grid(k.T, "$K^T$", "k", columns=words, numbers=True),
    "→",
    Grid(chosen, "softmax", "r", numbers=True, shade=True, columns=words),
    "×",
    Grid(v, "$V$", "v", numbers=True),
    "=",
    Grid(z, "$Z$", "z", numbers=True),
]
caption = 'Matrices chosen by hand: "saw" attends to both animals, and they to the articles'
show_figure(cell_product(grids), "04_qkv", caption)

# %% [markdown]
# - "saw" attends to "dog" with the weight .66, to "bird" with .30, and to itself with .01. Its output is
#   (1.81, .36). The first number says that the event involves animals. The second is above 0, so one of the
#   animals flies.
# - The queries of the two articles are 0. So all of their scores are 0, and they attend to every token with
#   the same weight .20.
# - "dog" attends to each article with the weight .49. The articles do not attend to "dog" in the same way. So
#   with two different matrices, the scores are no longer symmetric.
#
# These matrices were chosen by hand. At the beginning of training they are random. Does a token then still
# attend most to itself? We measure it for 2,000 random sentences of ten tokens, with D = 64.

# %%
free = rng.standard_normal((2000, 10, 64))  # (B, T, D)
mats = rng.standard_normal((2, 2000, 64, 64)) / 8  # W^Q and W^K; 8 is √D
scores = (free @ mats[0]) @ (free @ mats[1]).swapaxes(-1, -2)  # (B, T, T)
most = (scores.argmax(-1) == np.arange(10)).mean()
print(f"with random matrices, {most:.1%} of the tokens attend most to themselves")

# %% tags=["check"]
assert 0.09 < most < 0.11
assert_allclose(chosen[2, [1, 4, 2]], [0.66, 0.30, 0.01], atol=0.005)
assert_allclose(chosen[[0, 3]], 0.2)
assert_allclose(chosen[1, [0, 3]], 0.49, atol=0.005)
assert_allclose(z[2], [1.81, 0.36], atol=0.005)

# %% [markdown]
# The result is about one in ten. A sentence has ten tokens, so this is the frequency of a random choice. No
# token is preferred.
#
# ## The gradients of the weight matrices
#
# Each of the three products is the linear layer of lesson 0.2, without a bias. The gradient of its weights is
# the transposed input times the gradient of its output. And $x$ is used in all three products, so it gets the
# sum of three gradients:
#
# $$\begin{aligned}
# dW^Q &= X^\top dQ, \quad dW^K = X^\top dK, \quad dW^V = X^\top dV \\
# dX &= dQ\, {W^Q}^\top + dK\, {W^K}^\top + dV\, {W^V}^\top
# \end{aligned}$$
#
# If all three matrices are the identity, the second line is $dq + dk + dv$, as in lesson 4.2.

# %%
dz = rng.standard_normal(z.shape)  # (T, d_v)
dq, dk, dv = attention_backward(dz, cache)
dx = dq @ w_q.T + dk @ w_k.T + dv @ w_v.T  # (T, D)
dw_q, dw_k, dw_v = x.T @ dq, x.T @ dk, x.T @ dv  # (D, d_k), (D, d_k), (D, d_v)

# %% [markdown]
# In the package, these matrices belong to `MultiHeadAttention` (chapter 7). This class has further options,
# such as biases and a scale. If they are switched off, it computes the same as our layer. The next cell
# compares the two and runs the gradient check.

# %%
bare = {"bias": False, "output": False, "scale": False, "dtype": np.float64}
layer = MultiHeadAttention(4, 1, d_head=2, **bare)
parts = [(layer.query, w_q, dw_q), (layer.key, w_k, dw_k), (layer.value, w_v, dw_v)]
for part, matrix, _ in parts:
    part.weight.value[...] = matrix
z_package, layer_cache = layer.forward(x[None])  # (1, T, d_v)
dx_package = layer.backward(dz[None], layer_cache)
print("largest difference in dx:", abs(dx - dx_package[0]).max())

# %% tags=["check"]
assert_allclose(z, z_package[0], rtol=1e-12)
assert_allclose(dx, dx_package[0], rtol=1e-9, atol=1e-12)
for part, _, gradient in parts:
    assert_allclose(gradient, part.weight.grad, rtol=1e-9, atol=1e-12)
report = gradcheck(layer, rng.standard_normal((2, 5, 4)))
print("gradient check of the layer:", report.ok)
assert report.ok

# %% tags=["plot"]
places = attention_places("encoder.0.self_attention") | {"x": "encoder.0.norm1.y"}
figure = running_example().flow(layout, places, steps, axes)
caption = "Our sentence in the translator: dx is again the sum of what q, k and v send back"
show_figure(figure, "04_4_running", caption)

# %% [markdown]
# ## The matrices learn
#
# We chose the matrices by hand. Now they begin with small random numbers, and the layer should give the same
# outputs $Z$. Each step uses the gradients from above.

# %%
target, losses = z, []
w_q, w_k, w_v = (rng.standard_normal((4, 2)) / 2 for _ in range(3))  # each (D, 2)
for _ in range(300):
    z, cache = attention(x @ w_q, x @ w_k, x @ w_v, scale=1.0)
    e = z - target
    losses.append((e * e).mean())
    dq, dk, dv = attention_backward(2 * e / e.size, cache)
    w_q, w_k, w_v = w_q - x.T @ dq / 2, w_k - x.T @ dk / 2, w_v - x.T @ dv / 2
print(f"loss {losses[0]:.3f} → {losses[-1]:.5f};  weights of 'saw':", cache.weights[2].round(2))

# %% tags=["check"]
assert losses[-1] < losses[0] / 100
assert cache.weights[2, 2] > 0.85
assert_allclose(((target - target.mean(0)) ** 2).mean(), 0.216, atol=5e-4)

# %% [markdown]
# The loss falls almost to 0. For comparison: a layer that gives every token the same vector reaches .216 at
# best. So the outputs agree, but the weights do not: "saw" now attends to itself, and $W^V$ turns its own
# vector into the output that we wanted. Many matrices give the same $Z$, and training may find any of them.

# %% [markdown]
# ## What the source documents say
#
# > - *Attention机制详解（二）* says that the score of a word with itself is usually the largest, and calls
# >   this obvious. Without weight matrices, this is a theorem for vectors of the same length. With random
# >   matrices, it happens for one token in T.
# > - *The components of the Transformer* follows Bloem's *Transformers from scratch* in its attention without
# >   parameters. It writes w for the attention weights, and we keep w for parameters. It explains query, key
# >   and value with a search for videos, which returns the best result. Attention returns an average of all
# >   values.

# %% [markdown]
# ## Summary
#
# - The query says what a token needs, the key what it offers, and the value what other tokens receive.
# - Each role has its own matrix: $Q = X W^Q$, $K = X W^K$, $V = X W^V$.
# - With different matrices, the scores are not symmetric, and no token prefers itself at the start.
# - Queries and keys have the same width $d_k$; values may have another width $d_v$.
# - The gradient of a matrix is $X^\top$ times the gradient of its product; dX is a sum of three terms.

# %% [markdown]
# ## Questions
#
# **Question.** W^Q and W^K are the same matrix. Are the scores symmetric then? And the weights?
#
# <details><summary>Answer</summary>
# The scores are symmetric, because $q_t \cdot k_s = k_t \cdot q_s$ if Q = K. The weights are not, because the
# softmax divides each row by its own sum.
# </details>
#
# **Question.** The paper has D = 512 and $d_k = d_v = 64$. What are the shapes of the three matrices?
#
# <details><summary>Answer</summary>
# All three have the shape (512, 64): (D, d_k) for W^Q and W^K, and (D, d_v) for W^V.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these in Python. The command `npformer exercise list 4` lists the exercises of this chapter that are
# graded.
#
# - Change W^Q and W^K so that articles attend to animals. Which entries have to be 1?
# - Change W^V so that each token receives the entry "action" too. What does "dog" receive then?
#
# **Next** on the main route: lesson 5.1 (`05_1_scaled_dot_product_attention`), the attention of the
# Transformer. Off the route: lesson 4.5 (`04_5_similarity_functions`), other functions that compare a query
# and a key.

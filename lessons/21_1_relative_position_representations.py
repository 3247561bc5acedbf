# %% [markdown]
# # 21.1 · Relative position representations
#
# *About 30 minutes. You need: positions (lesson 3.1, `03_1_positions`), the backward pass of attention
# (lesson 5.2, `05_2_the_backward_pass_of_attention`).*
#
# **After this lesson you can**
#
# - compute attention in which the distance between two words is part of the scores and of the values;
# - derive the gradients of the vectors of the distances;
# - show that such attention does not depend on absolute positions.
#
# `attention: queries and keys → [SCORES] → mask → softmax → [MEAN OF VALUES]`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from npformer import functional as F
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn.attention import RelativeAttention
from npformer.plots import attention_map, cell_grid

rng = np.random.default_rng(21)

# %% [markdown]
# ## Why relative positions?
#
# In the original Transformer, a vector for the position is added to each word vector (lesson 3.1). This is an
# **absolute position**: it is counted from the start of the sentence. But the meaning of a word often
# depends on the words near it. The distance between two words is called their **relative position**.
#
# | | the | old | dog | barks |
# |---|---|---|---|---|
# | absolute position | 0 | 1 | 2 | 3 |
# | position relative to "dog" | −2 | −1 | 0 | 1 |
#
# *Attention机制详解（二）* says that sinusoids are one possible choice of positions. It cites Shaw,
# Uszkoreit and Vaswani, *Self-Attention with Relative Position Representations* (2018). They do not add
# anything to the word vectors. Instead, each distance $r$ has two learned vectors, which attention uses:
#
# - $a^K_r$ is added to the key,
# - $a^V_r$ is added to the value.
#
# These vectors are called **relative position representations**.

# %% [markdown]
# ## The formula
#
# Let $t$ be the position of a query and $s$ that of a key. The distance $s - t$ is limited to the range
# from $-k$ to $k$. This operation is called **clipping**:
#
# $$r = \mathrm{clip}(s - t, -k, k)$$
#
# $$e_{ts} = \frac{q_t \cdot (k_s + a^K_r)}{\sqrt{d_k}}, \qquad p_t = \mathrm{softmax}(e_t)$$
#
# $$z_t = \sum_s p_{ts} (v_s + a^V_r)$$
#
# There are $2k + 1$ vectors for keys and the same number for values. All heads share them.
#
# **Question.** Why is the distance clipped?
#
# <details><summary>Answer</summary>
# There must be a vector for each distance that can occur. Without clipping, a long sentence would contain
# distances that have no vector, or whose vector was never trained.
# </details>

# %% [markdown]
# The paper gives these reasons in section 3.2:
#
# > We hypothesized that precise relative position information is not useful beyond a certain distance.
# > Clipping the maximum distance also enables the model to generalize to sequence lengths not seen during
# > training.
#
# In the program, the vectors are the rows $0, \ldots, 2k$ of a table. So $k$ is added to the distance. Let
# R be the number of rows, $2k + 1$. The cell computes the row for each query and key, with $k = 2$.

# %%
T, K, k_max = 6, 4, 2  # words, width of a head, the k of the paper
R = 2 * k_max + 1
row = np.zeros((T, T), int)  # (T, S)
for t in range(T):
    for s in range(T):
        row[t, s] = max(-k_max, min(s - t, k_max)) + k_max
print(row - k_max)

# %% tags=["check"]
assert_array_equal(row, F.clipped_distance(T, T, k_max, row))

# %% tags=["plot"]
positions = [str(t) for t in range(T)]
figure = cell_grid(row - k_max, rows=positions, columns=positions, numbers=True, shade=True)
caption = "The clipped distance: one vector for each diagonal, and for two whole corners"
show_figure(figure, "21_distance", caption)

# %% [markdown]
# ## Forward
#
# The picture shows the shapes for one head. The arrays of keys and values get one more axis, because each
# query has its own sums $k_s + a^K_r$:

# %% tags=["plot"]
figure = shape_flow(
    "q scores p z \n k+a v+a . .",
    {"scores": "q · (k + a): q k+a", "p": "softmax: scores", "z": "p (v + a): p v+a"},
    {"q": "T K", "k+a": "S K", "v+a": "S K", "scores": "T S", "p": "T S", "z": "T K"},
)
show_figure(
    figure,
    "21_1_shapes",
    "For each query, keys and values are different sums: k + a and v + a have a third axis T",
)

# %% [markdown]
# We write the formula with loops, and compare with the function `relative_attention` of the package.

# %%
q, k, v = rng.standard_normal((3, T, K))  # each (T, K)
a_key, a_value = rng.standard_normal((2, R, K))  # each (R, K)

z, p = np.zeros((T, K)), np.zeros((T, T))
for t in range(T):
    e = [q[t] @ (k[s] + a_key[row[t, s]]) / math.sqrt(K) for s in range(T)]
    p[t] = np.exp(e) / np.exp(e).sum()
    for s in range(T):
        z[t] += p[t, s] * (v[s] + a_value[row[t, s]])
y, cache = F.relative_attention(q, k, v, a_key, a_value)
print(f"largest difference from the package: {abs(z - y).max():.0e}")

# %% tags=["check"]
assert_allclose(z, y, rtol=1e-12)
assert_allclose(p, cache.weights, rtol=1e-12)

# %% tags=["plot"]
words = [f"word {t}" for t in range(T)]
caption = "The attention weights of random queries, keys and vectors"
show_figure(attention_map(p, words, words, numbers=True), "21_weights", caption)

# %% [markdown]
# ## Backward
#
# The derivation is that of lesson 5.2, with $k_s + a^K_r$ in place of $k_s$ and $v_s + a^V_r$ in place of
# $v_s$. Let $c = 1/\sqrt{d_k}$:
#
# $$\begin{aligned}
# dp_{ts} &= dz_t \cdot (v_s + a^V_r)
# & \quad de_{ts} &= p_{ts} \left(dp_{ts} - \sum_u dp_{tu}\, p_{tu}\right) \\
# dq_t &= c \sum_s de_{ts} (k_s + a^K_r) & \quad dk_s &= c \sum_t de_{ts}\, q_t \\
# dv_s &= \sum_t p_{ts}\, dz_t
# \end{aligned}$$
#
# The gradients of the vectors $a^K_r$ and $a^V_r$ are new. The vector $a^K_r$ is used for *every pair*
# $(t, s)$ with the distance $r$. As in lesson 0.2 (`00_2_forward_and_backward`), an array that is used
# several times gets the sum of the gradients:
#
# $$\begin{aligned}
# da^K_r &= c \sum_{(t, s)} de_{ts}\, q_t \\
# da^V_r &= \sum_{(t, s)} p_{ts}\, dz_t
# \end{aligned}$$
#
# Both sums are over the pairs $(t, s)$ whose clipped distance is $r$.

# %%
dz, (dq, dk, dv) = rng.standard_normal((T, K)), np.zeros((3, T, K))
da_key, da_value = np.zeros((2, R, K))
for t in range(T):
    dp = np.array([dz[t] @ (v[s] + a_value[row[t, s]]) for s in range(T)])
    de = p[t] * (dp - dp @ p[t]) / math.sqrt(K)  # c is included
    for s in range(T):
        r = row[t, s]
        dq[t] += de[s] * (k[s] + a_key[r])
        dk[s] += de[s] * q[t]
        dv[s] += p[t, s] * dz[t]
        da_key[r] += de[s] * q[t]  # the two new lines
        da_value[r] += p[t, s] * dz[t]
pairs = np.bincount(row.reshape(-1))
print("number of pairs for each distance from −2 to 2:", pairs)

# %% tags=["check"]
ours = dq, dk, dv, da_key, da_value
for mine, theirs in zip(ours, F.relative_attention_backward(dz, cache), strict=True):
    assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
assert list(pairs) == [10, 5, 6, 5, 10]

# %% [markdown]
# **Question.** Why do the distances −2 and 2 have the most pairs?
#
# <details><summary>Answer</summary>
# Because of clipping. They stand for all distances of 2 and more. These are the two corners of the figure
# of distances.
# </details>
#
# The gradient check confirms all five gradients. The values have another width than the keys, and there are
# fewer queries than keys.

# %%
pair = (F.relative_attention, F.relative_attention_backward)
shapes = (3, 4), (5, 4), (5, 2), (R, 4), (R, 2)  # q, k, v and the vectors
report = gradcheck(pair, *(rng.standard_normal(shape) for shape in shapes))
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## No absolute positions
#
# The layer `RelativeAttention` is multi-head attention (lesson 7.2, `07_2_all_heads_in_one_product`) with
# these vectors. Its formula contains only differences $s - t$. So if all words move by the same number of
# positions, nothing should change.
#
# We test this. The cell puts seven other words before a sentence, and hides them with a mask. So every
# absolute position increases by seven.

# %%
layer = RelativeAttention(8, 2, max_distance=3, rng=rng, dtype=np.float64)
x, before = rng.standard_normal((1, 5, 8)), rng.standard_normal((1, 7, 8))  # (B, T, D)
alone, _ = layer.forward(x)
moved, _ = layer.forward(np.concatenate([before, x], 1), mask=np.arange(12) >= 7)
print(f"the outputs differ by at most {abs(moved[:, 7:] - alone).max():.0e}")

# %% tags=["check"]
assert_allclose(moved[:, 7:], alone, rtol=1e-9)

# %% [markdown]
# The output of each word is the same, except for rounding. A function with this property is called
# **invariant to shifts**. Attention with absolute positions does not have this property.
#
# ## What the source documents say
#
# > - *Attention机制详解（二）* names the paper of Shaw et al. without an explanation. It calls the method
# >   "relation-aware", which is a more general term.

# %% [markdown]
# ## Summary
#
# - Each clipped distance $r$ has a learned vector that is added to the keys and one that is added to the
#   values.
# - There are $2k + 1$ distances; larger ones use the vector of $k$ or $-k$.
# - The backward pass is that of attention, with $k_s + a^K_r$ and $v_s + a^V_r$.
# - The vector of a distance gets the sum of the gradients of all pairs with this distance.
# - The output does not change if all words move by the same number of positions.

# %% [markdown]
# ## Questions
#
# **Question.** A head has the width 64, and $k = 16$. How many parameters do the vectors of one layer have?
#
# <details><summary>Answer</summary>
# There are 2 · 16 + 1 = 33 distances, with one vector for keys and one for values. All heads share them. So
# there are 2 · 33 · 64 = 4,224 parameters.
# </details>
#
# **Question.** $k = 0$. What can the model still know about positions?
#
# <details><summary>Answer</summary>
# Nothing. All distances are clipped to 0, so all keys get the same vector. It adds the same number to all
# scores of a query, which does not change the softmax.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 21` lists the exercises of this chapter.
#
# - By hand: use $t - s$ in place of $s - t$ everywhere. Train such a model from the start. Show that it
#   becomes the same model, except that the rows of its table are in reverse order. What happens if a model
#   with $t - s$ loads vectors that were trained with $s - t$?
# - The bug zoo contains a mistake in relative attention: `npformer bugs start 23`.
#
# **Next**: lesson 21.2 (`21_2_relative_positions_by_distance`), which computes the same with less memory.

# %% [markdown]
# # 21.2 · Relative positions by distance
#
# *About 25 minutes. You need: relative position representations (lesson 21.1,
# `21_1_relative_position_representations`).*
#
# **After this lesson you can**
#
# - compute attention with relative positions without storing a key and a value for each pair of words;
# - show that the two new operations are transposes of each other, and use this for the backward pass;
# - compute how much memory this saves.
#
# `attention: queries and keys → [SCORES] → mask → softmax → [MEAN OF VALUES]`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(21)

# %% [markdown]
# ## The problem
#
# Lesson 21.1 computed the scores $e_{ts} = c\, q_t \cdot (k_s + a^K_r)$, where $r$ is the clipped distance
# $s - t$ and $c = 1/\sqrt{d_k}$. The sum $k_s + a^K_r$ is a different vector for every pair $(t, s)$. So an
# array of shape (T, S, K) is needed for each head of each sentence. The values need a second one.
#
# But there are only $R = 2k + 1$ different vectors $a^K_r$. We can split the dot product into two terms:
#
# $$q_t \cdot (k_s + a^K_r) = q_t \cdot k_s + q_t \cdot a^K_r$$
#
# The first term is ordinary attention. The second term depends on $t$ and $r$ only. So it is enough to
# compute it once for each query and each distance. Shaw et al. describe this in section 3.3 of their paper.

# %% [markdown]
# ## Two operations
#
# Let $M = Q (A^K)^\top$ be the products of all queries with all vectors, of shape (T, R). Two operations
# connect the distances with the keys. They are the circles 1 and 4 of this picture:

# %% tags=["plot"]
figure = shape_flow(
    "M spread scores p z \n . qk . . .",
    {
        "spread": "spread: M",
        "scores": "sum: spread qk",
        "p": "softmax: scores",
        "z": "p v + collect: p",
    },
    {"M": "T R", "spread": "T S", "qk": "T S", "scores": "T S", "p": "T S", "z": "T K"},
)
caption = "Two new steps, spread and collect, connect distances and keys"
show_figure(figure, "21_2_shapes", caption)

# %% [markdown]
# - For the scores, entry $(t, s)$ takes the number $M_{tr}$ of its distance. The package calls this
#   function `spread_by_distance`.
# - For the values, the weights $p_{ts}$ of all keys at the same distance are added. The package calls this
#   function `collect_by_distance`. The sums are $C_{tr}$, of shape (T, R).
#
# $$e_{ts} = c\,(q_t \cdot k_s + M_{tr})$$
#
# $$z_t = \sum_s p_{ts}\, v_s + \sum_r C_{tr}\, a^V_r$$
#
# The figure below shows $M$ and the result of `spread_by_distance`.

# %% [markdown]
# For a fixed query $t$, each operation is a product with a matrix. Let $O_t$ be the matrix of shape (S, R)
# whose entry $(s, r)$ is 1 if key $s$ is at distance $r$ from $t$, and 0 otherwise. So each row contains
# the number 1 once. Let $m_t$ be row $t$ of $M$ and $p_t$ be row $t$ of the weights. Then:
#
# $$\mathrm{spread}(m_t) = O_t\, m_t, \qquad \mathrm{collect}(p_t) = O_t^\top p_t$$

# %%
T, K, k_max = 6, 4, 2  # words, width of a head, the k of the paper
R = 2 * k_max + 1
q, k, v = rng.standard_normal((3, T, K))  # each (T, K)
a_key, a_value = rng.standard_normal((2, R, K))  # each (R, K)
row = F.clipped_distance(T, T, k_max, q)  # (T, S) the clipped distance + k

products = q @ a_key.T  # (T, R) M
spread = F.spread_by_distance(products, row)  # (T, S)
p, _ = F.softmax((q @ k.T + spread) / math.sqrt(K))  # (T, S)
collected = F.collect_by_distance(p, row, R)  # (T, R) C
z = p @ v + collected @ a_value  # (T, K)
y, _ = F.relative_attention(q, k, v, a_key, a_value)
print(f"largest difference from the formula of lesson 21.1: {abs(z - y).max():.0e}")

# %% tags=["check"]
assert_allclose(z, y, rtol=1e-9)
for t in range(T):
    one = row[t][:, None] == np.arange(R)  # (S, R) O_t
    assert_allclose(spread[t], one @ products[t], rtol=1e-12)
    assert_allclose(collected[t], one.T @ p[t], rtol=1e-12)

# %% tags=["plot"]
names = ["−2", "−1", "0", "1", "2"]
left = Grid(products, "$M = Q A^{KT}$", "q", columns=names, numbers=True, shade=True)
parts = [left, "spread", Grid(spread, "each t with each s", "q", numbers=True, shade=True)]
show_figure(cell_product(parts), "21_spread", "Row t: the entries of M at distances s − t")

# %% [markdown]
# ## The backward pass
#
# The backward pass of a product with a matrix is the product with the transposed matrix. The two operations
# use $O_t$ and $O_t^\top$. So **each of the two operations is the backward pass of the other one**:
#
# $$\begin{aligned}
# E = \mathrm{spread}(M) &: \quad dM_t = O_t^\top dE_t & \quad dM &= \mathrm{collect}(dE) \\
# C = \mathrm{collect}(P) &: \quad dP_t = O_t\, dC_t & \quad dP &= \mathrm{spread}(dC)
# \end{aligned}$$
#
# All five gradients follow. The weights $p$ get two contributions, one from $p v$ and one from $C a^V$. The
# queries also get two, one from $q \cdot k$ and one from $M$.

# %%
dz = rng.standard_normal((T, K))
dp = dz @ v.T + F.spread_by_distance(dz @ a_value.T, row)  # (T, S)
de = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(K)  # (T, S), c is included
dproducts = F.collect_by_distance(de, row, R)  # (T, R)
dq = de @ k + dproducts @ a_key  # (T, K)
dk, dv = de.T @ q, p.T @ dz  # (S, K)
da_key, da_value = dproducts.T @ q, collected.T @ dz  # (R, K)

# %% tags=["check"]
_, slow_cache = F.relative_attention(q, k, v, a_key, a_value)
_, cache = F.relative_attention_by_distance(q, k, v, a_key, a_value)
slow = F.relative_attention_backward(dz, slow_cache)
package = F.relative_attention_by_distance_backward(dz, cache)
for mine, pairs, theirs in zip((dq, dk, dv, da_key, da_value), slow, package, strict=True):
    assert_allclose(mine, pairs, rtol=1e-9, atol=1e-12)
    assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
print("the five gradients are those of lesson 21.1, and those of relative_attention_by_distance")

# %% [markdown]
# **Question.** Five keys have the same clipped distance $r$ from query $t$. How many terms does the
# gradient $dM_{tr}$ have?
#
# <details><summary>Answer</summary>
# Five. The number $M_{tr}$ is used for each of these keys, so its gradient is the sum of five gradients.
# </details>

# %% [markdown]
# ## How much memory is saved
#
# The cache of `relative_attention_by_distance` contains no array of shape (T, S, K).

# %%
_, cache = F.relative_attention_by_distance(q, k, v, a_key, a_value)
show(cache)

# %% [markdown]
# We count the numbers that each method stores for the positions. The example has 32 sentences of 50 words,
# the 8 heads of width 64 of the paper's base model, and $k = 16$.
#
# - The first method stores two arrays of shape (B, H, T, S, K).
# - The second method stores two arrays of shape (B, H, T, R). Collecting also needs the matrices $O_t$, which
#   are (T, S, R) numbers for all sentences and heads together.

# %%
B, H, n, width, r = 32, 8, 50, 64, 33
by_pair = 2 * B * H * n * n * width
by_distance = 2 * B * H * n * r + n * n * r
print(f"for the positions: {by_pair:,} numbers by pair, {by_distance:,} by distance")
print(f"factor {by_pair / by_distance:.0f}")

# %% tags=["check"]
assert round(by_pair / by_distance) == 88

# %% [markdown]
# ## Is it right?
#
# The gradient check uses three queries and five keys. The three queries are the *last three* of the five
# words, as in decoding. So the first query stands at position 2. The argument `start=2` says so.

# %%
pair = (F.relative_attention_by_distance, F.relative_attention_by_distance_backward)
shapes = (3, 4), (5, 4), (5, 2), (R, 4), (R, 2)  # q, k, v and the vectors; values are narrower
report = gradcheck(pair, *(rng.standard_normal(shape) for shape in shapes), start=2)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Summary
#
# - The dot product $q_t \cdot (k_s + a^K_r)$ is split, so that the vectors are multiplied once per
#   distance.
# - `spread_by_distance` gives each pair the number of its distance.
# - `collect_by_distance` adds the numbers of all keys at the same distance.
# - For each query the two are multiplications with $O_t$ and $O_t^\top$, so each is the other's backward
#   pass.
# - In the example this stores 88 times fewer numbers for the positions.

# %% [markdown]
# ## Questions
#
# **Question.** When does the method by distance save no memory?
#
# <details><summary>Answer</summary>
# When R is at least as large as S · K. So it nearly always saves memory. Without clipping, R is 2T − 1,
# which is still much smaller than S · K.
# </details>
#
# **Question.** Why can the softmax not be computed for each distance separately?
#
# <details><summary>Answer</summary>
# Because the scores of two keys at the same distance differ in the term $q_t \cdot k_s$. Only the term of
# the position is shared.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 21` lists the exercises of this chapter.
#
# - `npformer exercise start collect-by-distance`: compute the gradient of each distance vector. It is a sum
#   over the pairs of positions with this distance.
# - By hand: write down $O_t$ for T = 4, $k = 1$ and $t = 1$. Multiply it by its transpose. What do the
#   entries of $O_t^\top O_t$ count?
#
# **Next**: lesson 21.3 (`21_3_relative_and_absolute_positions`), which compares both kinds of positions on
# two tasks.

# %% [markdown]
# # 5 · Scaled dot-product attention
#
# *About 55 minutes, in three parts. You need: the pair forward/backward and the gradient check
# (lesson 0), queries, keys and values (lesson 4), the chain rule.*
#
# **After this lesson you can**
#
# - compute attention for one token in six steps, and for a whole sentence in three lines of NumPy;
# - derive the backward pass of attention and check it with the gradient checker;
# - explain why the scores are divided by √dₖ, and measure what happens without it.
#
# `[embedding] → [ATTENTION] → [add & norm] → [feed-forward] → …`  (you are in Figure 1, second box)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.plots import Grid, cell_product, curves, score_map, softmax_panels

rng = np.random.default_rng(5)
words = ["Thinking", "Machines"]

# %% [markdown]
# ## The definition
#
# Lesson 4 explained the idea of attention. Every token has a query, a key and a value. The new vector of a
# token is a weighted average of the values of all tokens.
#
# The Transformer uses **scaled dot-product attention**. *Attention Is All You Need* defines it in section
# 3.2.1:
#
# > We compute the dot products of the query with all keys, divide each by √dₖ, and apply a softmax function
# > to obtain the weights on the values.
#
# Let the rows of $Q$, $K$ and $V$ be the queries, the keys and the values. Then this is equation (1) of the
# paper:
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$

# %% [markdown]
# The diagram shows the formula with the shapes of the arrays. There are T queries and S keys, and K is $d_k$,
# the width of a query and a key. In this lesson all of them come from the same tokens $x$, so T = S.
#
# ```text
# x (T, D) ─┬─ × W^Q ─→ q (T, K) ─┐
#           ├─ × W^K ─→ k (S, K) ─┴─→ scores (T, S) ─→ softmax ─→ weights (T, S) ─┐
#           └─ × W^V ─→ v (S, K) ─────────────────────────────────────────────────┴─→ y (T, K)
# ```
#
# **Question.** Of the arrays q, k and v, two must have the same width, and two must have the same number of
# rows. Which ones?
#
# <details><summary>Answer</summary>
# Queries and keys must have the same width, because each score is a dot product of a query and a key. Keys
# and values must have the same number of rows, because each key belongs to one value.
# </details>

# %% [markdown]
# ## An example with known scores
#
# *图解transformer*, a Chinese version of Alammar's *The Illustrated Transformer*, divides the formula into
# six steps. Its example is the sentence "Thinking Machines". For the query of "Thinking", the two scores are
# 112 and 96. After the division by 8 they are 14 and 12. The softmax turns them into the weights .88 and .12.
#
# The document says that it invented these scores. We choose weight matrices that really produce them:
#
# 1. We draw random queries and random keys.
# 2. We correct the keys, so that the dot products are the scores that we want.
# 3. We solve for the weight matrices that turn the vectors $x$ into these queries and keys.
#
# The function `np.linalg.pinv` returns the pseudo-inverse of a matrix, which solves such linear equations.
# A trained model does not need this construction, because its weight matrices come from training.

# %%
d_model, d_k = 512, 64  # the sizes of the paper
x = rng.standard_normal((2, d_model))  # (T, D) the two tokens
wanted = np.array([[112.0, 96], [80, 104]])  # a row for each query, a column for each key

q_wanted = rng.standard_normal((2, d_k))
k_wanted = rng.standard_normal((2, d_k))
k_wanted += (np.linalg.pinv(q_wanted) @ (wanted - q_wanted @ k_wanted.T)).T

from_x = np.linalg.pinv(x)  # (D, T): x @ from_x is the identity
w_q, w_k = from_x @ q_wanted, from_x @ k_wanted  # (D, K)
w_v = from_x @ rng.standard_normal((2, d_k))  # (D, K)

# %% [markdown]
# ## Six steps, for the word "Thinking"
#
# **Step 1.** Multiply the vector of each token by three matrices. The results are its query, its key and its
# value.

# %%
q, k, v = x @ w_q, x @ w_k, x @ w_v  # each (T, K)
print("q1 begins", q[0, :3])
print("k1 begins", k[0, :3], "  k2", k[1, :3])
print("v1 begins", v[0, :3], "  v2", v[1, :3])

# %% [markdown]
# **Step 2.** Compute the **scores** of "Thinking". A score is the dot product of the query with one key. The
# query of "Thinking" is compared with both keys, also with its own. We write the dot product as a loop here,
# so that nothing is hidden.

# %%
score = np.zeros(2)
for s in range(2):
    for i in range(d_k):
        score[s] += q[0, i] * k[s, i]
    print(f"q1 · k{s + 1} = {score[s]:.4f}")

# %% [markdown]
# **Step 3.** Divide the scores by $\sqrt{d_k} = \sqrt{64} = 8$. The reason for this division comes at the end
# of this lesson.

# %%
score = score / math.sqrt(d_k)
print(score)

# %% tags=["check"]
assert_allclose(score * 8, [112, 96])
assert_allclose(score, [14, 12])

# %% [markdown]
# **Step 4.** Apply the **softmax**. It takes the exponential of each score and divides by the sum of the
# exponentials. The results are positive and sum to 1. They are the **attention weights** of the query.
#
# Only the differences between the scores matter. Here is the first weight, where numerator and denominator
# are divided by $e^{12}$:
#
# $$p_1 = \frac{e^{14}}{e^{14} + e^{12}} = \frac{e^2}{e^2 + 1} \approx 0.88$$

# %%
weight = np.exp(score) / np.exp(score).sum()
print(weight, "their sum", weight.sum())

# %% tags=["check"]
assert_allclose(weight, [0.880797, 0.119203], atol=1e-6)
assert_allclose(weight[0], math.e**2 / (math.e**2 + 1))

# %% [markdown]
# **Step 5.** Multiply each value by its weight. **Step 6.** Add the results. The sum is $z_1$, the new vector
# of "Thinking". The figure shows the first four of its 64 entries.

# %%
weighted = [weight[s] * v[s] for s in range(2)]
z1 = weighted[0] + weighted[1]  # (K,)
print("z1 begins", z1[:3])

# %% tags=["plot"]
parts = [
    f"{weight[0]:.2f} ×",
    Grid(v[0, :4], "$v_1$", "v", numbers=True),
    f"+   {weight[1]:.2f} ×",
    Grid(v[1, :4], "$v_2$", "v", numbers=True),
    "=",
    Grid(z1[:4], "$z_1$", "z", numbers=True),
]
caption = "Steps 5 and 6: z1 is a weighted average of the values, and mostly v1"
show_figure(cell_product(parts), "05_sum", caption)

# %% [markdown]
# **Question.** Suppose that both scores were 2 larger, 16 and 14 after the division. What would the weights
# be?
#
# <details><summary>Answer</summary>
# They would be the same, .88 and .12, because the difference of the scores is still 2. Adding the same number
# to all scores of a query does not change its weights.
# </details>

# %% [markdown]
# ## All words at once
#
# The six steps have to be done for every query. With matrices, all of them fit into three lines. Let
# $c = 1/\sqrt{d_k}$:
#
# $$S = c\, Q K^\top, \qquad P = \mathrm{softmax}(S), \qquad Y = P V$$
#
# - $S$ holds the scores. Its shape is (T, S), with one row for each query and one column for each key.
# - $P$ holds the weights. It has the same shape, and each of its rows sums to 1.
# - $Y$ holds the outputs, with shape (T, K). Each of its rows is a weighted average of the rows of $V$.
#
# The cell computes the same result twice, first with loops and then with the three lines.

# %%
slow = np.zeros_like(v)
for t in range(2):
    e = [math.exp(sum(q[t, i] * k[s, i] for i in range(d_k)) / 8) for s in range(2)]
    for s in range(2):
        slow[t] += e[s] / sum(e) * v[s]

c = 1 / math.sqrt(d_k)
scores = c * q @ k.T  # (T, S)
weights, _ = softmax(scores)  # (T, S)
y = weights @ v  # (T, K)
print(scores, weights, sep="\n")

# %% tags=["check"]
assert_allclose(y, slow, rtol=1e-9)
assert_allclose(y[0], z1, rtol=1e-9)

# %% tags=["plot"]
figure = softmax_panels(scores, weights, words, words, numbers=True)
caption = "A row is a query, a column a key: Thinking attends to itself with weight .88"
show_figure(figure, "05_softmax", caption)

# %% [markdown]
# The function `attention` of the package gives the same result. Like every forward function, it also returns
# a cache for the backward pass. Three decisions about this cache are worth knowing:
#
# - It keeps `q`, `k` and `v`, because each of them occurs in the gradient of another array.
# - It keeps the weights, because the gradient of a softmax can be computed from its *output*.
# - It does not keep the scores, because no formula of the backward pass needs them. `cache.scores` computes
#   them again when a figure asks for them.

# %%
y_package, cache = attention(q, k, v)
show(cache)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(scores, cache.scores, rtol=1e-12)

# %% [markdown]
# *This is a good place for a break. The forward pass is complete. Two parts follow: the backward pass, and
# the reason for the division by √dₖ.*
#
# ## Backward, from the last line to the first
#
# As in lesson 0, a $d$ before a name means the gradient of the loss with respect to this array. The backward
# pass begins with $dY$, of shape (T, K), and ends with $dQ$, $dK$ and $dV$. We take the three lines in
# reverse order, and for each line we compute the gradients of its inputs:
#
# ```text
# forward   q, k ──→ scores S ──→ weights P ──→ output Y          v ──→ Y
# backward  dq, dk ←── dS     ←── dP        ←── dY                dv ←── dY
# shapes    (T, K), (S, K)    (T, S)    (T, S)    (T, K)          (S, K)
# ```

# %% [markdown]
# ### The third line: Y = P V
#
# Each output is a sum over the keys. Written for entry $i$ of output $t$, it is
#
# $$y_{ti} = \sum_s p_{ts}\, v_{si}$$
#
# The weight $p_{ts}$ occurs in all entries $i$ of output $t$, and its factor there is $v_{si}$. The value
# $v_{si}$ occurs in entry $i$ of all outputs $t$, and its factor there is $p_{ts}$. The chain rule adds the
# contributions of all occurrences:
#
# $$\begin{aligned}
# dp_{ts} &= \sum_i dy_{ti}\, v_{si} & \quad dP &= dY\, V^\top \\
# dv_{si} &= \sum_t p_{ts}\, dy_{ti} & \quad dV &= P^\top dY
# \end{aligned}$$
#
# In words: the gradient of a weight is the dot product of $dy$ with the value of that weight. The gradient of
# a value is the sum of $dy$ over all queries, each multiplied by the weight that the query gave to this
# value.

# %%
dy = rng.standard_normal(y.shape)  # (T, K)
dweights = dy @ v.T  # (T, S)
dv = weights.T @ dy  # (S, K)

# %% [markdown]
# ### The second line: P = softmax(S)
#
# Each row has a softmax of its own, so we look at one row and leave out its index $t$. With $e_i = \exp(s_i)$
# and $Z = \sum_m e_m$, the weights are $p_i = e_i / Z$.
#
# What happens if one score $s_j$ increases? Then $e_j$ and $Z$ both increase, and both with slope $e_j$. The
# quotient rule gives two cases:
#
# $$\begin{aligned}
# i = j: \quad \frac{\partial p_j}{\partial s_j} &= \frac{e_j Z - e_j e_j}{Z^2} = p_j - p_j p_j \\
# i \ne j: \quad \frac{\partial p_i}{\partial s_j} &= \frac{0 - e_i e_j}{Z^2} = -p_i p_j
# \end{aligned}$$
#
# So the weight $p_j$ grows and all others shrink. Together, these derivatives form the Jacobian of the row,
# the matrix $\mathrm{diag}(p) - p\,p^\top$. The cell computes it for "Thinking".

# %%
p = weights[0]  # (S,)
jacobian = np.diag(p) - np.outer(p, p)  # (S, S)
print(jacobian)

# %% [markdown]
# Now we apply the chain rule. The score $s_j$ influences all weights $p_i$, so we sum over $i$. The case
# $i = j$ contributes the extra term $dp_j\, p_j$:
#
# $$\begin{aligned}
# ds_j &= \sum_i dp_i \frac{\partial p_i}{\partial s_j} \\
# &= dp_j\, p_j - p_j \sum_i dp_i\, p_i \\
# &= p_j \left(dp_j - \sum_i dp_i\, p_i\right)
# \end{aligned}$$
#
# The last line does not need the Jacobian. It needs one sum for each row, S numbers instead of S².
#
# The sum $\sum_i dp_i\, p_i$ is the mean of $dp$, weighted with the attention weights. So the gradient of a
# score is **the difference between its own $dp_j$ and the weighted mean**, multiplied by its attention
# weight.

# %%
average = (dweights * weights).sum(-1, keepdims=True)  # (T, 1)
dscores = weights * (dweights - average)  # (T, S)
print("rows of dscores sum to", dscores.sum(-1))

# %% tags=["check"]
for p, dp, ds in zip(weights, dweights, dscores, strict=True):  # the Jacobian of each row
    assert_allclose(ds, (np.diag(p) - np.outer(p, p)) @ dp, rtol=1e-9)
assert_allclose(dscores.sum(-1), 0, atol=1e-9)

# %% [markdown]
# **Question.** Each row of `dscores` sums to 0, except for rounding. Can you explain this without the
# formula?
#
# <details><summary>Answer</summary>
# Adding the same number to all scores of a query changes no weight, so it does not change the loss. The
# derivative of the loss in this direction is therefore 0. This derivative is the sum of the row of `dscores`.
# </details>

# %% tags=["plot"]
figure = score_map(dscores, words, words, numbers=True)
show_figure(figure, "05_dscores", "dscores: each row sums to 0")

# %% [markdown]
# ### The first line: S = c Q Kᵀ
#
# A score is a dot product, $s_{ts} = c \sum_i q_{ti}\, k_{si}$. The query $t$ occurs in the scores of all
# keys $s$, and the key $s$ occurs in the scores of all queries $t$. The chain rule adds these contributions:
#
# $$\begin{aligned}
# dq_{ti} &= c \sum_s ds_{ts}\, k_{si} & \quad dQ &= c\, dS\, K \\
# dk_{si} &= c \sum_t ds_{ts}\, q_{ti} & \quad dK &= c\, dS^\top Q
# \end{aligned}$$
#
# So the gradient of a query is a sum of the keys, and the gradient of a key is a sum of the queries. The
# factors are the gradients of the scores, times $c$.

# %%
dq = c * dscores @ k  # (T, K)
dk = c * dscores.T @ q  # (S, K)

dq_package, dk_package, dv_package = attention_backward(dy, cache)
print("largest difference from the package:", abs(dq - dq_package).max())

# %% tags=["check"]
assert_allclose(dq, dq_package, rtol=1e-9)
assert_allclose(dk, dk_package, rtol=1e-9)
assert_allclose(dv, dv_package, rtol=1e-9)

# %% [markdown]
# This is the whole backward pass of attention: four products of matrices, and one sum along each row. Compare
# it with `attention_backward` in `npformer/functional/attention.py`. You will find the same lines in the same
# order. Between them are dropout and masks, which are not part of this lesson.
#
# ## Is it right?
#
# As in lesson 0, the gradient check compares the backward pass with numerical derivatives of the forward
# pass. We use other inputs, with three queries and four keys. If both numbers were equal, a matrix that is
# transposed by mistake could still have the right shape.

# %%
q3, k4 = rng.standard_normal((3, 8)), rng.standard_normal((4, 8))  # (T, K), (S, K)
v4 = rng.standard_normal((4, 6))  # (S, L): values may have a width of their own
report = gradcheck((attention, attention_backward), q3, k4, v4)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# *This is a good place for a second break. The last part of the lesson explains the division by √dₖ.*
#
# ## What √dₖ does
#
# The paper gives a reason for the division in section 3.2.1:
#
# > We suspect that for large values of dₖ, the dot products grow large in magnitude, pushing the softmax
# > function into regions where it has extremely small gradients.
#
# This sentence makes two claims.
#
# **First claim: the dot products grow large.** Footnote 4 of the paper gives the argument. Let all entries of
# $q$ and $k$ be independent, with mean 0 and variance 1. Then the product $q_i k_i$ has mean 0 too, and its
# variance is 1 · 1 = 1. The variances of independent terms add:
#
# $$\begin{aligned}
# \mathrm{Var}(q \cdot k) &= \sum_i \mathrm{Var}(q_i k_i) = d_k \\
# \mathrm{Var}\left(\frac{q \cdot k}{\sqrt{d_k}}\right) &= \frac{d_k}{d_k} = 1
# \end{aligned}$$
#
# So the scores have the standard deviation $\sqrt{d_k}$. After the division, it is 1 for every width.

# %% [markdown]
# We measure this with 2,000 random queries, and 10 random keys for each query.

# %%
widths = np.array([1, 4, 16, 64, 256, 1024])
samples = [
    (
        rng.standard_normal((2000, 1, n)),  # queries
        rng.standard_normal((2000, 10, n)),  # keys
        rng.standard_normal((2000, 10, n)),  # values
    )
    for n in widths
]
deviation = np.array([np.std(q @ k.swapaxes(-1, -2)) for q, k, _ in samples])
for n, found in zip(widths, deviation, strict=True):
    print(f"dₖ {n:5}   standard deviation of q · k {found:7.3f}   √dₖ {math.sqrt(n):7.3f}")

# %% tags=["check"]
assert_allclose(deviation, np.sqrt(widths), rtol=0.03)

# %% tags=["plot"]
figure = curves(
    np.stack([deviation, deviation / np.sqrt(widths)]),
    widths,
    labels=["q · k", "q · k / √dₖ"],
    xlabel="dₖ",
    ylabel="standard deviation of the scores",
    xscale="log",
    yscale="log",
)
show_figure(figure, "05_deviation", "Scores grow as √dₖ; divided by it, they do not")

# %% [markdown]
# **Second claim: the gradients become extremely small.** Look again at the gradient of a score,
# $ds_j = p_j (dp_j - \sum_i dp_i\, p_i)$. Suppose that one weight is nearly 1. Then the softmax is
# **saturated**, and two things happen:
#
# - For the key with the large weight, the weighted mean is nearly equal to its own $dp_j$. So the bracket is
#   nearly 0.
# - For all other keys, the weight $p_j$ in front of the bracket is nearly 0.
#
# In both cases the gradient is nearly 0. For two keys there is a short formula. With $p_2 = 1 - p_1$, the
# weighted mean is $p_1\, dp_1 + p_2\, dp_2$, and the gradient of the first score becomes
#
# $$\begin{aligned}
# ds_1 &= p_1 (dp_1 - p_1\, dp_1 - p_2\, dp_2) \\
# &= p_1 (p_2\, dp_1 - p_2\, dp_2) = p_1 p_2\, (dp_1 - dp_2)
# \end{aligned}$$
#
# The size of the gradient depends on the product $p_1 p_2$. The cell prints it for the scores of "Thinking",
# with and without the division.

# %%
products = []
for name, pair in {"112/8 and 96/8": (14, 12), "112 and 96": (112, 96)}.items():
    p, _ = softmax(np.array(pair, float))
    products.append(p[0] * p[1])
    print(f"scores {name:15} weights {p[0]:.7f} {p[1]:.7f}   p1 p2 = {products[-1]:.2e}")
print(f"ratio {products[0] / products[1]:,.0f}")

# %% tags=["check"]
assert_allclose(products[0] / products[1], 930_000, rtol=0.01)

# %% [markdown]
# Without the division, $p_1 p_2$ is 930,000 times smaller. Almost no gradient reaches the scores, whatever
# the loss is.
#
# These two scores were invented. What happens with random ones? We take the random queries, keys and values
# from above, and for each query a random $dy$ of length 1. For each width we measure three things:
#
# - the length of the gradient of the scores, `|dscores|`;
# - the length of the gradient of the query, `|dq|`;
# - the share of queries that give one key a weight above .99.
#
# The two lengths are medians over the 2,000 queries. Everything is measured twice, without the division
# (`scale=1.0`) and with it (`scale=None`, the default).

# %%
of_scores, of_queries, saturated = np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 6))
for j, (q_n, k_n, v_n) in enumerate(samples):
    dy_n = rng.standard_normal(q_n.shape)
    dy_n /= np.linalg.norm(dy_n, axis=-1, keepdims=True)
    for i, scale in enumerate((1.0, None)):  # None is 1/√dₖ
        _, made = attention(q_n, k_n, v_n, scale=scale)
        dp = dy_n @ v_n.swapaxes(-1, -2)
        ds = made.weights * (dp - (dp * made.weights).sum(-1, keepdims=True))
        of_scores[i, j] = np.median(np.linalg.norm(ds, axis=-1))
        of_queries[i, j] = np.median(np.linalg.norm(attention_backward(dy_n, made)[0], axis=-1))
        saturated[i, j] = (made.weights.max(-1) > 0.99).mean()

# %% tags=["plot"]
for i, name in enumerate(["not divided", "divided by √dₖ"]):
    print(f"{name:15}|dscores|      |dq|   a weight above .99")
    for j, n in enumerate(widths):
        found = f"{of_scores[i, j]:9.1e} {of_queries[i, j]:9.1e}   {saturated[i, j]:8.0%}"
        print(f"dₖ {n:5}       {found}")

figure = curves(
    of_scores,
    widths,
    labels=["not divided", "divided by √dₖ"],
    xlabel="dₖ",
    ylabel="length of the scores' gradient (median)",
    xscale="log",
    yscale="log",
)
caption = "With the division, the gradient does not depend on dₖ; without it, it vanishes"
show_figure(figure, "05_gradient", caption)

# %% [markdown]
# **With the division**, the gradient of the scores has length .30 at every width. The gradient of the query
# has the same length from a width of 64 on. In $dQ = c\, dS\, K$ the keys have a length of about
# $\sqrt{d_k}$, which the factor $c = 1/\sqrt{d_k}$ cancels.
#
# **Without the division**, at the paper's width of 64, the effect is moderate. More than a third of the
# queries give one key a weight above .99, before any training. The gradient of the scores is nearly eight
# times smaller. But the gradient of the query is .31, about as long as with the division. The factor $c$ is 1
# here and not 1/8, which compensates for the smaller $dS$.
#
# At a width of 1,024 nothing compensates for the saturation. The gradient of the scores is 150,000 times
# smaller, and that of the query 5,000 times. Half of the queries receive even less than this median.

# %% tags=["check"]
assert_allclose(of_scores[1], 0.3, atol=0.015)
assert_allclose(of_queries[1, 3:], 0.3, atol=0.015)
assert_allclose(of_queries[0, 3], 0.31, atol=0.01)
assert_allclose(of_scores[1] / of_scores[0], [1, 1.1, 1.8, 7.7, 190, 150_000], rtol=0.1)
assert_allclose(of_queries[1, 5] / of_queries[0, 5], 5_000, rtol=0.1)
assert 0.34 < saturated[0, 3] < 0.38
print("the numbers of the text are those of the table")

# %% [markdown]
# The argument has a limit. The variance of the scores is $d_k$ only if the entries are independent, as at the
# start of training. Training changes the weight matrices, and a trained model may have scores of any size.
#
# **Your turn.** In the terminal, print the weights with `s cache.weights`. Then compute them again without
# the division, with `!attention(q, k, v, scale=1.0)[1].weights`. Predict the result first.

# %% [markdown]
# ## What the documents say
#
# > - *图解transformer* says that one may divide by other numbers too, for more stable gradients. This is
# >   true, but only √dₖ keeps the variance of the scores at 1 for every width. Its weights .88 and .12 are
# >   .880797 and .119203. From its step 4 on, it calls the weights "score". Of its three matrices, the third
# >   is printed as W^K, but W^V is meant.
# > - *Attention机制详解（二）* divides by √dₖ in the text, but not in the code of `dot_product_attention`
# >   that it shows. In npformer, `attention(q, k, v, scale=1.0)` computes the same.
# > - *一步步解析Attention is All You Need!* applies a ReLU to Q, K and V. Then no score is negative, the
# >   entries do not have mean 0, and the variance above does not hold. The projections of the paper are
# >   linear.
# > - *The components of the Transformer* has equation (1) exactly as in the paper, and adds a mask. Masks are
# >   the topic of lesson 6.

# %% [markdown]
# ## Summary
#
# - Attention computes, for every query, a weighted average of the values:
#   $Y = \mathrm{softmax}(c\,QK^\top)V$.
# - The weights of a query are positive and sum to 1; only the differences between its scores matter.
# - The backward pass takes the three lines in reverse order: four products of matrices, one sum for each row.
# - The gradient of a score is $p_j (dp_j - \sum_i dp_i\,p_i)$; the gradients of a query's scores sum to 0.
# - Dividing by $\sqrt{d_k}$ keeps the scores at variance 1, so that the softmax is not saturated at the
#   start.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the cache of `attention` contain the weights, but not the scores?
#
# <details><summary>Answer</summary>
# The gradient of the softmax is computed from its output, the weights. None of the formulas for dq, dk and dv
# contains the scores.
# </details>
#
# **Question.** A query gives almost all of its weight to one key. Which gradients become small: those of the
# scores, of the values, or both?
#
# <details><summary>Answer</summary>
# Those of the scores, because the softmax is saturated. The value with the large weight still receives
# almost the full gradient, since dV = Pᵀ dY.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 5` lists them. The gradient checker grades each of them.
#
# - `npformer exercise start softmax`: compute exponentials that do not overflow.
# - `npformer exercise start softmax-backward`: one sum for each row, and no Jacobian.
# - `npformer exercise start attention`: the three lines, for any number of leading axes.
# - `npformer exercise start attention-backward`: the four products of this lesson.
# - By hand: take two keys with weights p and 1 − p. Show that the row of dscores is p(1 − p)(dp₁ − dp₂) times
#   (1, −1). Then check the upper row of the figure of dscores with this formula.
#
# **Next**, lesson 6: masks, which forbid a query to attend to certain keys.

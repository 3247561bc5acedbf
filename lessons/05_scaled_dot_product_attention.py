# %% [markdown]
# # 5 · Scaled dot-product attention
#
# *30 minutes to read, 3 seconds to run. Lesson 0 for the pair forward/backward; queries, keys and values are
# those of lesson 4.*
#
# **The question.** "Thinking Machines": two words, each with a query, a key and a value. How much of each
# value goes into the new vector of "Thinking"? And once the loss has said what it wanted of that vector, what
# does it say to the query, to the keys and to the values? And why is there a √dₖ?

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
# ## The passage
#
# *Attention Is All You Need*, section 3.2.1:
#
# > We compute the dot products of the query with all keys, divide each by √dₖ, and apply a softmax function
# > to obtain the weights on the values.
#
# ```math
# Attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V          (1)
# ```
#
# *图解transformer* (after Alammar's *The Illustrated Transformer*) takes the one line apart into six steps,
# and its figures give numbers: scores 112 and 96; divided by 8 they are 14 and 12; and the softmax makes .88
# and .12 of them. It says that the scores are made up. Here they are made: we choose queries, then keys
# whose products with them are these numbers, and in the end weight matrices that give both.

# %%
d_model, d_k = 512, 64  # the paper's
x = rng.standard_normal((2, d_model))  # (T, D) the two words
wanted = np.array([[112.0, 96], [80, 104]])  # row: a query, column: a key

q_wanted = rng.standard_normal((2, d_k))
k_wanted = rng.standard_normal((2, d_k))
k_wanted += (np.linalg.pinv(q_wanted) @ (wanted - q_wanted @ k_wanted.T)).T

from_x = np.linalg.pinv(x)  # (D, T): x @ from_x is the identity
w_q, w_k = from_x @ q_wanted, from_x @ k_wanted  # (D, K)
w_v = from_x @ rng.standard_normal((2, d_k))  # (D, K)

# %% [markdown]
# ## Six steps, for the word "Thinking"
#
# **Step 1.** Each word's vector times three matrices: its query, its key, its value.

# %%
q, k, v = x @ w_q, x @ w_k, x @ w_v  # each (T, K)
print("q1 begins", q[0, :3])
print("k1 begins", k[0, :3], "  k2", k[1, :3])
print("v1 begins", v[0, :3], "  v2", v[1, :3])

# %% [markdown]
# **Step 2.** The score of each word: the query of "Thinking" times that word's key, its own included.

# %%
score = np.zeros(2)
for s in range(2):
    for i in range(d_k):
        score[s] += q[0, i] * k[s, i]
    print(f"q1 · k{s + 1} = {score[s]:.4f}")
assert_allclose(score, [112, 96])

# %% [markdown]
# **Step 3.** Divide by √dₖ = √64 = 8.

# %%
score = score / math.sqrt(d_k)
print(score)
assert_allclose(score, [14, 12])

# %% [markdown]
# **Step 4.** Softmax: exponentials, divided by their sum. Only differences of scores matter, since a common
# factor e¹² cancels; so the first weight is e² / (e² + 1).

# %%
weight = np.exp(score) / np.exp(score).sum()
print(weight, "their sum", weight.sum())
assert_allclose(weight, [0.880797, 0.119203], atol=1e-6)
assert_allclose(weight[0], math.e**2 / (math.e**2 + 1))

# %% [markdown]
# **Step 5.** Each value times its weight. **Step 6.** Their sum: z₁, the new vector of "Thinking".

# %%
weighted = [weight[s] * v[s] for s in range(2)]
z1 = weighted[0] + weighted[1]  # (K,)
print("z1 begins", z1[:3])

# %%
parts = [
    f"{weight[0]:.2f} ×",
    Grid(v[0, :4], "$v_1$", "v", numbers=True),
    f"+   {weight[1]:.2f} ×",
    Grid(v[1, :4], "$v_2$", "v", numbers=True),
    "=",
    Grid(z1[:4], "$z_1$", "z", numbers=True),
]
caption = "Steps 5 and 6, the first four of 64 numbers: z1 is nearly v1"
show_figure(cell_product(parts), "05_sum", caption)

# %% [markdown]
# ## All words at once
#
# The six steps for every query t are two loops. In matrices they are the three lines of equation (1), with
# c = 1/√dₖ:
#
# ```math
# S  = c Q Kᵀ        (T, S)  scores, a row for each query
# P  = softmax(S)    (T, S)  weights, each row sums to 1
# Y  = P V           (T, K)  each row a mean of the rows of V
# ```

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
assert_allclose(y, slow, rtol=1e-9)
assert_allclose(y[0], z1, rtol=1e-9)
print(scores, weights, sep="\n")

# %%
figure = softmax_panels(scores, weights, words, words, numbers=True)
caption = "A row is a query, a column a key: Thinking looks at itself with .88"
show_figure(figure, "05_softmax", caption)

# %% [markdown]
# The package gives the same, and a cache. It keeps q, k and v, since each occurs in another one's gradient,
# and the weights, since a softmax's gradient is written in its *output*. The scores are not kept: no
# formula below needs them. Ask for `cache.scores` and they are computed anew, for a figure.

# %%
y_package, cache = attention(q, k, v)
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(scores, cache.scores, rtol=1e-12)
show(cache)

# %% [markdown]
# ## Backward, from the last line to the first
#
# Say that dy has arrived, (T, K): what the loss wants of each number in Y. We go up through the three lines.
# In each, what goes into it gets a gradient.
#
# ### Y = P V
#
# ```math
# yₜᵢ = Σₛ pₜₛ vₛᵢ
# ```
#
# pₜₛ reaches all numbers i of output t, each with slope vₛᵢ. vₛᵢ reaches number i of all outputs t, each
# with slope pₜₛ:
#
# ```math
# dpₜₛ = Σᵢ dyₜᵢ vₛᵢ        dP = dY Vᵀ
# dvₛᵢ = Σₜ pₜₛ dyₜᵢ        dV = Pᵀ dY
# ```
#
# In words: what a weight hears is how far its value points along dy. A value hears from every query, as
# loudly as that query looked at it.

# %%
dy = rng.standard_normal(y.shape)  # (T, K)
dweights = dy @ v.T  # (T, S)
dv = weights.T @ dy  # (S, K)

# %% [markdown]
# ### P = softmax(S)
#
# A row at a time, without its index t: pᵢ = eᵢ / Σₘ eₘ with eᵢ = exp(sᵢ). Raise sⱼ. Then eⱼ grows, which
# raises pⱼ; and the sum grows, which lowers every pᵢ, pⱼ too:
#
# ```math
# ∂pᵢ/∂sⱼ = [i = j] pᵢ − pᵢ pⱼ
# ```
#
# The row's Jacobian is diag(p) − p pᵀ. Now the chain rule:
#
# ```math
# dsⱼ  = Σᵢ dpᵢ ∂pᵢ/∂sⱼ
#      = dpⱼ pⱼ − pⱼ Σᵢ dpᵢ pᵢ
#      = pⱼ (dpⱼ − Σᵢ dpᵢ pᵢ)
# ```
#
# The last line never forms the Jacobian: one sum a row, S numbers in place of S². And it can be read:
# Σ dpᵢ pᵢ is the mean of dp under the weights. So what the loss says to a score is **how its value
# differs from the average of what is being looked at**, in proportion to how much it is looked at already.

# %%
average = (dweights * weights).sum(-1, keepdims=True)  # (T, 1)
dscores = weights * (dweights - average)  # (T, S)

for t in range(2):  # against the Jacobian, a row at a time
    jacobian = np.diag(weights[t]) - np.outer(weights[t], weights[t])  # (S, S)
    assert_allclose(dscores[t], jacobian @ dweights[t], rtol=1e-9)
print("rows of dscores sum to", dscores.sum(-1))

# %% [markdown]
# Each row of dscores sums to 0, up to rounding: raising all scores of a query alike changes no weight, so
# there is nothing to gain that way. With two keys it is even simpler: what one score gains the other loses.

# %%
figure = score_map(dscores, words, words, numbers=True)
show_figure(figure, "05_dscores", "dscores: each row sums to 0")

# %% [markdown]
# ### S = c Q Kᵀ
#
# ```math
# sₜₛ = c Σᵢ qₜᵢ kₛᵢ
# dqₜᵢ = c Σₛ dsₜₛ kₛᵢ        dQ = c dS K
# dkₛᵢ = c Σₜ dsₜₛ qₜᵢ        dK = c dSᵀ Q
# ```
#
# What a query hears is a mix of the keys, each as strongly as its score was spoken to; and what a key hears
# is a mix of the queries.

# %%
dq = c * dscores @ k  # (T, K)
dk = c * dscores.T @ q  # (S, K)

dq_package, dk_package, dv_package = attention_backward(dy, cache)
assert_allclose(dq, dq_package, rtol=1e-9)
assert_allclose(dk, dk_package, rtol=1e-9)
assert_allclose(dv, dv_package, rtol=1e-9)
print("dq, dk and dv are those of the package")

# %% [markdown]
# Four products of matrices and one sum along each row: that is the whole backward pass of attention. Compare
# with `attention_backward` in `npformer/functional/attention.py`: the same lines in the same order, and
# between them dropout and masks, which are not in this lesson.
#
# ## Is it right?
#
# The forward pass is the judge (lesson 0). The pair is checked on other inputs, with three queries and four
# keys: where T = S, a transposed matrix may hide.

# %%
q3, k4 = rng.standard_normal((3, 8)), rng.standard_normal((4, 8))  # (T, K), (S, K)
v4 = rng.standard_normal((4, 6))  # (S, L): values may have a width of their own
report = gradcheck((attention, attention_backward), q3, k4, v4)
print(report)
assert report.ok

# %% [markdown]
# ## What √dₖ does
#
# The paper says why it is there (section 3.2.1, and footnote 4):
#
# > We suspect that for large values of dₖ, the dot products grow large in magnitude, pushing the softmax
# > function into regions where it has extremely small gradients.
#
# Take both halves of the sentence apart. **Grow large**: let the entries of q and k be independent, with mean
# 0 and variance 1. A product qᵢkᵢ then has mean 0 and variance 1, and variances of independent terms add:
#
# ```math
# Var(q · k) = Σᵢ Var(qᵢ kᵢ) = dₖ          so scores are of size √dₖ
# ```
#
# Measured, on 2,000 queries with 10 keys each:

# %%
widths = np.array([1, 4, 16, 64, 256, 1024])
samples = [
    (
        rng.standard_normal((2000, 1, n)),
        rng.standard_normal((2000, 10, n)),
        rng.standard_normal((2000, 10, n)),
    )
    for n in widths
]
spread = np.array([np.std(q @ k.swapaxes(-1, -2)) for q, k, _ in samples])
for n, found in zip(widths, spread, strict=True):
    print(f"dₖ {n:5}   standard deviation of q · k {found:7.3f}   √dₖ {math.sqrt(n):7.3f}")
assert_allclose(spread, np.sqrt(widths), rtol=0.03)

# %%
figure = curves(
    np.stack([spread, spread / np.sqrt(widths)]),
    widths,
    labels=["q · k", "q · k / √dₖ"],
    xlabel="dₖ",
    ylabel="standard deviation of the scores",
    xscale="log",
    yscale="log",
)
show_figure(figure, "05_spread", "Scores grow as the root of dₖ; divided by it they stay at 1")

# %% [markdown]
# **Extremely small gradients**: look at ds = p (dp − Σ dp p). If one weight is nearly 1, the average *is* its
# dp, so its bracket is nearly 0; and all others have p nearly 0. Either way nothing comes through. For our
# two words all depends on p₁p₂:

# %%
for name, pair in {"112/8 and 96/8": (14, 12), "112 and 96": (112, 96)}.items():
    p, _ = softmax(np.array(pair, float))
    print(f"scores {name:15} weights {p[0]:.7f} {p[1]:.7f}   p1 p2 = {p[0] * p[1]:.2e}")
assert_allclose(weight[0] * weight[1] / (p[0] * p[1]), 930_000, rtol=0.01)

# %% [markdown]
# Without the 8, p₁p₂ is 930,000 times smaller: whatever the loss wants, hardly any of it reaches a score.
#
# Those two scores were made up. Now the random queries, with a random dy of length 1 on each. How long is
# the gradient that reaches a query's scores, and how long the one that reaches the query? Medians of 2,000:

# %%
of_scores, of_queries, sure = np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 6))
for j, (q_n, k_n, v_n) in enumerate(samples):
    dy_n = rng.standard_normal(q_n.shape)
    dy_n /= np.linalg.norm(dy_n, axis=-1, keepdims=True)
    for i, scale in enumerate((1.0, None)):  # None is 1/√dₖ
        _, made = attention(q_n, k_n, v_n, scale=scale)
        dp = dy_n @ v_n.swapaxes(-1, -2)
        ds = made.weights * (dp - (dp * made.weights).sum(-1, keepdims=True))
        of_scores[i, j] = np.median(np.linalg.norm(ds, axis=-1))
        of_queries[i, j] = np.median(np.linalg.norm(attention_backward(dy_n, made)[0], axis=-1))
        sure[i, j] = (made.weights.max(-1) > 0.99).mean()

for i, name in enumerate(["not divided", "divided by √dₖ"]):
    print(f"{name:15}|dscores|      |dq|   a weight above .99")
    for j, n in enumerate(widths):
        found = f"{of_scores[i, j]:9.1e} {of_queries[i, j]:9.1e}   {sure[i, j]:8.0%}"
        print(f"dₖ {n:5}       {found}")

# %%
figure = curves(
    of_scores,
    widths,
    labels=["not divided", "divided by √dₖ"],
    xlabel="dₖ",
    ylabel="length of the scores' gradient (median)",
    xscale="log",
    yscale="log",
)
caption = "Divided, the gradient does not depend on dₖ; not divided, it dies"
show_figure(figure, "05_gradient", caption)

# %% [markdown]
# Divided, everything is level: .30 at every width, for the scores and from 64 on for the query too (c = 1/√dₖ
# in dq = c dS K cancels the length √dₖ of a key).
#
# Not divided, at the paper's dₖ = 64, more than a third of the queries look at one key with over .99 before
# they have learned anything, and the scores' gradient is nearly eight times smaller. The query's is not: it
# is .31, since the missing c = 1/8 makes up for it. So at 64 the harm is mild. At 1,024 nothing makes up for
# it: |dscores| is 150,000 times smaller, |dq| 5,000 times, and half of the queries hear even less.
#
# What this does *not* say: the variance is dₖ at the start of training, where entries are independent. A
# trained model may make its scores as large as it likes.

# %%
assert_allclose(of_scores[1], 0.3, atol=0.015)
assert_allclose(of_queries[1, 3:], 0.3, atol=0.015)
assert_allclose(of_queries[0, 3], 0.31, atol=0.01)
assert_allclose(of_scores[1] / of_scores[0], [1, 1.1, 1.8, 7.7, 190, 150_000], rtol=0.1)
assert_allclose(of_queries[1, 5] / of_queries[0, 5], 5_000, rtol=0.1)
assert 0.34 < sure[0, 3] < 0.38
print("the numbers of the text are those of the table")

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 5` has them, each graded by the gradient checker.
#
# - `npformer exercise start softmax`: exponentials that do not overflow.
# - `npformer exercise start softmax-backward`: one row sum; no Jacobian.
# - `npformer exercise start attention`: the three lines, for any number of axes in front.
# - `npformer exercise start attention-backward`: the four products of this lesson.
# - By hand: two keys, weights p and 1 − p. Show that dscores is p(1 − p)(dp₁ − dp₂) times (1, −1), and read
#   the two numbers of the upper row in the figure from it.
#
# To try now, in the terminal: `s cache.weights`, and `!attention(q, k, v, scale=1.0)[1].weights`.
#
# ## Where the documents differ
#
# - *图解transformer*: "one may divide by other numbers too", for more stable gradients. One may; √dₖ is the
#   one that keeps the variance at 1 for every width. Its scores are invented, as it says; its .88 and .12
#   are .880797 and .119203. Its step 4 goes on calling the weights "score", and the third of its three
#   matrices is printed W^K where W^V is meant.
# - *Attention机制详解（二）* divides by √dₖ in the text, and not in the code of `dot_product_attention` that
#   it shows. In npformer: `attention(q, k, v, scale=1.0)`.
# - *一步步解析Attention is All You Need!* sends Q, K and V through ReLU. Then no score is ever negative,
#   entries do not have mean 0, and the variance above is another one. The paper's projections are linear.
# - *The components of the Transformer* is equation (1) to the letter; its mask is for lesson 6.
#
# **Next**, lesson 6: what a word must not look at.

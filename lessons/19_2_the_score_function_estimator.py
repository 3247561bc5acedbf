# %% [markdown]
# # 19.2 · The score-function estimator
#
# *About 30 minutes. You need: hard attention and the expected loss (lesson 19.1, `19_1_hard_attention`), the
# gradient of the softmax (lesson 5.2, `05_2_the_backward_pass_of_attention`).*
#
# **After this lesson you can**
#
# - derive the gradient of an expected value over random draws, line by line;
# - compute it exactly by enumeration, and estimate it from draws;
# - test a random estimate of a gradient with its standard error.
#
# `attention: queries and keys → scores → mask → softmax → [MEAN OF VALUES]`

# %%
import math
from itertools import product

import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn.attention.hard import estimate, expected_loss
from npformer.plots import curves

rng = np.random.default_rng(7)
words = ["the", "dog", "saw", "birds"]

# %% [markdown]
# ## The problem
#
# In hard attention, each query draws one position s. We repeat the example of lesson 19.1. Two queries draw
# from four words, and a model computes $f(s) = \log p(y \mid s)$, the logarithm of the probability of the
# right answer. We want to minimize the expected loss $-\sum_s p(s) f(s)$.
#
# The gradient cannot pass through a draw. But the expected loss is a smooth function of the scores, so it has
# a gradient. How can we compute it?

# %% tags=["plot"]
figure = shape_flow(
    "scores α s z f \n . . v . .",
    {"α": "softmax: scores", "s": "draw: α", "z": "v at s: s v", "f": "model: z"},
    {"scores": "T S", "α": "T S", "s": "1 T", "v": "S L", "z": "T L", "f": "1"},
)
show_figure(figure, "19_2_shapes", "No gradient passes through circle 2, the draw")

# %% [markdown]
# First the setup, as in lesson 19.1:

# %%
S, T, L = 4, 2, 2  # the numbers of words and queries, the width of a value
v = rng.standard_normal((1, S, L))  # (B, S, L)
scores = np.log([[[0.22, 0.06, 0.47, 0.25], [0.4, 0.3, 0.1, 0.2]]])  # (B, T, S)
alpha, _ = F.softmax(scores)  # (B, T, S)
w = 2 * rng.standard_normal((T, L, 3))  # (T, L, C)


def answer(z):
    """log p(y | s) of each draw, and the cache. Shapes: z (N, B, T, L) -> (N, B)."""
    log_probs, _ = F.log_softmax(np.einsum("nbtl,tlc->nbc", z, w))
    return log_probs[..., 0], log_probs


def answer_backward(df, log_probs):
    """dlogits = df (onehot - p), and back through the linear map."""
    return np.einsum("nbc,tlc->nbtl", df[..., None] * ([1, 0, 0] - np.exp(log_probs)), w)


reads = answer, answer_backward
pairs = list(product(range(S), repeat=T))  # all 16 pairs of draws
p = {s: alpha[0, 0, s[0]] * alpha[0, 1, s[1]] for s in pairs}
f = {s: answer(v[None, :, list(s)])[0][0, 0] for s in pairs}

# %% [markdown]
# ## The derivation
#
# Let $\nabla$ be the gradient with respect to anything on which the scores or the values depend. Both $p(s)$
# and $f(s)$ can depend on it, so the product rule gives two terms. The second term contains $\nabla p(s)$.
# The derivative of a logarithm, $\nabla \log p = \nabla p / p$, lets us write it as $p \nabla \log p$:
#
# $$\begin{aligned}
# \nabla \sum_s p(s) f(s) &= \sum_s p(s)\, \nabla f(s) + \sum_s f(s)\, \nabla p(s) \\
# &= \sum_s p(s)\, \nabla f(s) + \sum_s p(s)\, f(s)\, \nabla \log p(s) \\
# &= \mathrm{E}[\nabla f(s) + f(s)\, \nabla \log p(s)]
# \end{aligned}$$
#
# **Question.** Why do we write $\nabla p(s)$ as $p(s)\, \nabla \log p(s)$?
#
# <details><summary>Answer</summary>
# Then both terms are multiplied by p(s). So the sum is an expected value, and it can be estimated from draws.
# </details>
#
# **The result is again an expected value over draws.** To estimate it, draw s, and compute the expression in
# the brackets. This is the **score-function estimator**. In reinforcement learning it is called **REINFORCE**
# (Williams, 1992), and $f$ is called the **reward**.

# %% [markdown]
# The two terms have different meanings:
#
# - $\nabla f(s)$ is the usual backward pass, through the values that were read.
# - $f(s)\, \nabla \log p(s)$ changes the probability of the draw. A gradient step in this direction makes
#   draws with a high reward more probable.
#
# We need $\nabla \log p(s)$ with respect to the scores. $\log p(s)$ is a sum with one term for each query.
# For one query, with $\alpha = \mathrm{softmax}(\mathrm{scores})$:
#
# $$\begin{aligned}
# \log \alpha_s &= \mathrm{scores}_s - \log \sum_i \exp(\mathrm{scores}_i) \\
# \frac{\partial \log \alpha_s}{\partial\, \mathrm{scores}_j}
# &= [j = s] - \frac{\exp(\mathrm{scores}_j)}{\sum_i \exp(\mathrm{scores}_i)} \\
# &= [j = s] - \alpha_j
# \end{aligned}$$
#
# Here $[j = s]$ is 1 if j = s, and 0 otherwise. So the gradient is **onehot(s) − α**: the score of the drawn
# position increases, and all scores decrease by their weights. The code computes it for all pairs, and prints
# it for one.

# %%
g = {s: (np.arange(S) == np.array(s)[:, None]) - alpha[0] for s in pairs}  # (T, S) onehot − α
print(g[2, 0].round(2), "if the queries draw", words[2], "and", words[0])

# %% [markdown]
# ## Exactly, by enumeration
#
# For 16 pairs of draws, we can compute the expected value without any randomness. The loop below follows the
# formula. The loss is $-f$, which explains the minus signs.

# %%

dscores, dv = np.zeros_like(scores), np.zeros_like(v)
for s in pairs:
    dz = answer_backward(-np.ones((1, 1)), answer(v[None, :, list(s)])[1])  # (1, B, T, L)
    dscores[0] -= p[s] * f[s] * g[s]
    for t in range(T):
        dv[0, s[t]] += p[s] * dz[0, 0, t]
print(dscores[0].round(4))

# %% [markdown]
# Is this the gradient of the expected loss? We compare it with the complex step of `expected_loss`, and with
# the function `estimate` of the package. This function also enumerates all draws. The gradient check below
# does the same comparison in one line.

# %%


def slopes(loss, x, h=1e-20):
    """The gradient of a number by complex step, entry by entry."""
    steps = 1j * h * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([loss(x + step).imag / h for step in steps]).reshape(x.shape)


exact = slopes(lambda x: expected_loss(x, v, reads), scores)
made = estimate(scores, v, reads)
print("largest difference from the complex step:", abs(dscores - exact).max())


def expected(scores, v):
    return expected_loss(scores, v, reads), (scores, v)


def expected_backward(dloss, cache):
    found = estimate(*cache, reads)
    return dloss * found.dscores, dloss * found.dv


report = gradcheck((expected, expected_backward), scores, v)
print("all gradients correct:", report.ok)

# %% tags=["check"]
assert report.ok
assert_allclose(dscores, exact, atol=1e-14)
assert_allclose(dv, slopes(lambda x: expected_loss(scores, x, reads), v), atol=1e-14)
assert_allclose(made.dscores, exact, atol=1e-14)
assert_allclose(made.dv, dv, atol=1e-14)

# %% [markdown]
# ## Estimated, from draws
#
# With 50 words and many queries, there are too many draws to enumerate. Then one draws N times and averages.
# The estimate is never exact. So the question is whether its error is larger than chance allows. As in lesson
# 19.1, we divide the error by the standard error.
#
# **Question.** We divide eight errors by their standard errors. How large is the largest of the eight
# quotients if the estimator is right? And if it is wrong, how does this quotient change when N grows?
#
# <details><summary>Answer</summary>
# If the estimator is right, one or two are normal. If it is wrong, the error stays while the standard error
# decreases. So the quotient grows as √N.
# </details>

# %%
N = 20_000
z, cache = F.hard_attend(scores, v, rng=rng, draws=N)  # (N, B, T, L)
reward, answered = answer(z)  # (N, B)
each = -reward[:, :, None, None] * (cache.sample - alpha)  # (N, B, T, S) one for each draw
mean, error = each.mean(0), each.std(0) / math.sqrt(N)
for t, j in product(range(T), range(S)):
    at = 0, t, j
    row = f"query {t + 1}, {words[j]:6} exact {exact[at]:+.4f}   estimate {mean[at]:+.4f}"
    away = (mean[at] - exact[at]) / error[at]
    print(f"{row} ± {error[at]:.4f}   error: {away:+.1f} standard errors")

# %% tags=["check"]
assert (abs(mean - exact) < 2 * error).all()

# %% tags=["plot"]
counts = np.unique(np.geomspace(10, N, 60).astype(int))
running = np.cumsum(each[:, 0], 0)[counts - 1] / counts[:, None, None]  # (P, T, S)
distance = np.linalg.norm(running - exact, axis=(1, 2))
# made.variance: the exact variance of the estimate from one draw, summed over all entries
expected_distance = math.sqrt(made.variance) / np.sqrt(counts)
axes = {"xlabel": "number of draws N", "ylabel": "length of the error", "legend": True}
axes |= {"xscale": "log", "yscale": "log", "labels": ["error", "√(variance / N)"]}
figure = curves(np.stack([distance, expected_distance]), counts, **axes)
caption = "The error decreases as 1/√N: four times the draws, half the error"
show_figure(figure, "19_2_error", caption)

# %% [markdown]
# No error is larger than two standard errors. In the package, the function `score_function` computes the
# gradient of $\log p(s)$ from the rewards. `hard_attend_backward` takes it as `dlog_prob`, and multiplies it
# by onehot − α:

# %%
dlog_prob, _ = F.score_function(reward)  # −reward / N, so that the draws are averaged
dz = answer_backward(-np.ones((N, 1)) / N, answered)  # (N, B, T, L)
dscores_package, _ = F.hard_attend_backward(dz, cache, dlog_prob=dlog_prob)
print("largest difference from our mean:", abs(dscores_package - mean).max())
show(cache)

# %% tags=["check"]
assert_allclose(dscores_package, mean, atol=1e-12)

# %% [markdown]
# Would this test find a mistake? We plant one and leave out "− α":

# %%
wrong = -reward[:, :, None, None] * cache.sample  # (N, B, T, S)
away = (abs(wrong.mean(0) - exact) / wrong.std(0)).max() * math.sqrt(N)
print(f"without − α: an error of {away:.0f} standard errors")

# %% tags=["check"]
assert away > 30

# %% [markdown]
# The test finds the mistake.
#
# **Your turn.** In the terminal, compute the mean of the first 100 draws with `!each[:100].mean(0).round(3)`,
# and compare it with `!exact.round(3)`.

# %% [markdown]
# ## Summary
#
# - The gradient of an expected value is $\mathrm{E}[\nabla f(s) + f(s)\, \nabla \log p(s)]$.
# - For a softmax, $\nabla \log \alpha_s$ with respect to the scores is onehot(s) − α.
# - So it can be estimated from draws: the score-function estimator, or REINFORCE.
# - With few draws, all of them can be enumerated, and the result is the exact gradient.
# - A random estimate is tested with its standard error, which decreases as $1/\sqrt{N}$.

# %% [markdown]
# ## Questions
#
# **Question.** All rewards $f(s)$ are logarithms of probabilities, so they are negative. Does the estimator
# make every draw less probable?
#
# <details><summary>Answer</summary>
# A single estimate makes its own draw less probable. But the probabilities sum to 1. On average, draws with a
# very negative reward lose more, so the better draws become more probable. Lesson 19.3 improves this.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 19` lists the exercises of this chapter. One of them belongs to this
# lesson and the next one: `score-function`.
#
# - By hand: show that $\mathrm{E}[\nabla \log p(s)] = 0$, beginning with $\sum_s p(s) = 1$.
# - With code: compute the estimate 100 times with N = 100, and compare the standard deviation of the results
#   with the standard error.
#
# **Next**: lesson 19.3 (`19_3_baselines`), how to make the estimate less random.

# %% [markdown]
# # 19.3 · Baselines: the same mean, less variance
#
# *About 35 minutes. You need: the score-function estimator (lesson 19.2,
# `19_2_the_score_function_estimator`), mean and variance.*
#
# **After this lesson you can**
#
# - explain why a baseline does not change the mean of the estimate, but reduces its variance;
# - derive the baseline with the smallest variance;
# - use a moving average as a baseline, and avoid the classic mistake with it.
#
# `attention: queries and keys → scores → mask → softmax → [MEAN OF VALUES]`

# %%
from itertools import product

import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn.attention import MovingBaseline
from npformer.nn.attention.hard import estimate, expected_loss, with_and_without_baseline
from npformer.plots import curves

rng = np.random.default_rng(7)

# %% [markdown]
# ## The problem
#
# The score-function estimator of lesson 19.2 draws s and returns $f(s)\, \nabla \log p(s)$, where
# $f(s) = \log p(y \mid s)$ is the reward. Its mean is right. But all rewards are negative, since they are
# logarithms of probabilities. So each estimate makes its own draw less probable. This effect is stronger for
# a bad draw than for a good one. Over many draws this averages out. But a single estimate contains mostly
# noise.
#
# The idea of this lesson: subtract a number b from each reward, the **baseline**. If b is about the usual
# reward, good draws have a positive difference, and bad draws a negative one.

# %% tags=["plot"]
figure = shape_flow(
    "s f advantage dscores \n . b α .",
    {"f": "reward: s", "advantage": "f − b: f b", "dscores": "· (onehot − α): advantage α"},
    {"s": "1 T", "f": "1", "b": "1", "α": "T S", "advantage": "1", "dscores": "T S"},
)
show_figure(figure, "19_3_shapes", "The baseline b comes from the rewards of earlier draws")

# %% [markdown]
# The setup is that of lessons 19.1 (`19_1_hard_attention`) and 19.2: two queries draw from four words.

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
g = {s: (np.arange(S) == np.array(s)[:, None]) - alpha[0] for s in pairs}  # (T, S) onehot − α
exact = -sum(p[s] * f[s] * g[s] for s in pairs)  # (T, S) the gradient of the expected loss
mean_reward = sum(p[s] * f[s] for s in pairs)
print(f"mean of the reward: {mean_reward:.2f}")

# %% [markdown]
# ## Why the mean does not change
#
# We subtract $b\, \nabla \log p(s)$ from the estimate. Its expected value is 0:
#
# $$\begin{aligned}
# \mathrm{E}[b\, \nabla \log p(s)] &= b \sum_s p(s)\, \nabla \log p(s) \\
# &= b \sum_s \nabla p(s) = b\, \nabla \sum_s p(s) = b\, \nabla 1 = 0
# \end{aligned}$$
#
# So **the mean is the same for every b, as long as b is the same number for all draws s**. In statistics,
# such a term is called a **control variate**.
#
# The variance does depend on b. Let $g = \mathrm{onehot}(s) - \alpha$, and let $|g|^2$ be the sum of its
# squares. The variance, summed over all entries, is
#
# $$\mathrm{Var}(b) = \mathrm{E}[(f - b)^2\, |g|^2] - |\mathrm{E}[f g]|^2$$

# %% [markdown]
# **Question.** Which curve is this, as a function of b? How do you find its minimum?
#
# <details><summary>Answer</summary>
# It is a parabola, because b occurs only in (f − b)². At the minimum the derivative is 0.
# </details>
#
# $$\begin{aligned}
# 0 &= \frac{d}{db} \mathrm{Var}(b) = -2\, \mathrm{E}[(f - b)\, |g|^2] \\
# b^* &= \frac{\mathrm{E}[f\, |g|^2]}{\mathrm{E}[|g|^2]}
# \end{aligned}$$
#
# If $|g|^2$ were the same for all draws, $b^*$ would be $\mathrm{E}[f]$, the mean of the reward. The code
# computes the variance for many b, and prints it for three of them. It also checks with `estimate` of the
# package that the mean does not change.

# %%
g2 = {s: (g[s] * g[s]).sum() for s in pairs}
best = sum(p[s] * f[s] * g2[s] for s in pairs) / sum(p[s] * g2[s] for s in pairs)
tried = np.linspace(-4, 1, 51)
square = (exact * exact).sum()
variance = np.array([sum(p[s] * (f[s] - b) ** 2 * g2[s] for s in pairs) - square for b in tried])

made = {b: estimate(scores, v, reads, baseline=b) for b in (0.0, mean_reward, best)}
for name, (b, found) in zip(("0", "E[f]", "b*"), made.items(), strict=True):
    change = abs(found.dscores - exact).max()
    print(f"b = {name:4} = {b:5.2f}   variance {found.variance:.3f}", end="   ")
    print(f"change of the mean {change:.0e}")

# %% tags=["check"]
for b, expect in list(zip(tried, variance, strict=True))[::10]:
    found = estimate(scores, v, reads, baseline=b)
    assert_allclose(found.dscores[0], exact, atol=1e-13)
    assert_allclose(found.variance, expect, rtol=1e-10)
usual, none = with_and_without_baseline(scores, v, reads)
ratio = usual.variance / none.variance
assert_allclose([mean_reward, best, ratio], [-1.77, -1.73, 0.39], atol=0.005)

# %% tags=["plot"]
axes = {"xlabel": "baseline b", "ylabel": "variance of the estimate from one draw"}
figure = curves(variance, tried, **axes)
caption = "The variance is a parabola in b, and the mean is the same for all b"
show_figure(figure, "19_3_variance", caption)

# %% [markdown]
# E[f] is −1.77 and $b^*$ is −1.73. With either of them, the variance is .39 of the variance without a
# baseline. So E[f] is a good choice.
#
# ## A moving average
#
# During training, E[f] is not known, and it changes. The paper of Xu et al. uses a moving average of the
# rewards so far. With $b_0 = 0$:
#
# $$b_k = .9\, b_{k-1} + .1 \log p(y \mid s_k)$$
#
# The class `MovingBaseline` computes it. Its value *before* draw k is the baseline of draw k.

# %%
z, cache = F.hard_attend(scores, v, rng=rng, draws=2000)  # (N, B, T, L)
reward, _ = answer(z)  # (N, B)
moving, b, path = MovingBaseline(), 0.0, []
for k in range(2000):
    path.append(moving.value)  # the baseline of draw k
    moving.update(reward[k])
    b = 0.9 * b + 0.1 * reward[k, 0]
print("the first five baselines:", np.round(path[:5], 2))
print(f"the mean from the 50th on: {np.mean(path[50:]):.2f}")
show(cache)

# %% tags=["check"]
assert_allclose(moving.value, b)
assert abs(np.mean(path[50:]) - mean_reward) < 0.1

# %% [markdown]
# ## The classic mistake
#
# **The baseline of draw k must not depend on draw k.** The baseline $b_{k-1}$ does not. But $b_k$ was
# computed *with* the reward of draw k. It is not the same number for all draws s, so the derivation above
# does not hold. With $b_k$ as the baseline, the difference is as follows:
#
# $$\begin{aligned}
# f - b_k &= f - .9\, b_{k-1} - .1\, f \\
# &= .9\, (f - b_{k-1})
# \end{aligned}$$
#
# So the gradient is too small, by the factor .9.
#
# A second form of the mistake occurs with N draws, if *their own mean* is the baseline. Each draw subtracts a
# part 1/N of its own reward. For N = 2, with $\mathrm{E}[g] = 0$ and independent draws:
#
# $$\begin{aligned}
# \mathrm{E}[(f_1 - \frac{1}{2} (f_1 + f_2))\, g_1]
# &= \frac{1}{2} \mathrm{E}[f_1 g_1] - \frac{1}{2} \mathrm{E}[f_2]\, \mathrm{E}[g_1] \\
# &= \frac{1}{2} \mathrm{E}[f g]
# \end{aligned}$$

# %% [markdown]
# This is half of the gradient. For N draws it is the fraction 1 − 1/N.
#
# **Question.** What does this program do for N = 1? How would you notice the mistake?
#
# <details><summary>Answer</summary>
# The baseline is the reward itself, so the difference and the gradient are 0, and the scores never learn.
# There is no error message. A comparison with the exact gradient shows it.
# </details>
#
# The mean of the *other* draws is a correct baseline, because it does not depend on the draw itself. The code
# computes all three cases exactly, over all draws and all pairs of draws.

# %%
late = -sum(p[s] * (f[s] - (0.9 * -1 + 0.1 * f[s])) * g[s] for s in pairs)  # b before: −1
own, others = np.zeros((T, S)), np.zeros((T, S))
for one, two in product(pairs, pairs):
    chance, both = p[one] * p[two], (f[one] + f[two]) / 2
    own -= chance * ((f[one] - both) * g[one] + (f[two] - both) * g[two]) / 2
    others -= chance * ((f[one] - f[two]) * g[one] + (f[two] - f[one]) * g[two]) / 2
cases = {"b after the draw": late, "mean of both draws": own, "the other draw": others}
for name, found in cases.items():
    print(f"{name:20} gradient × {(found * exact).sum() / square:.2f}")

# %% tags=["check"]
assert_allclose(late, 0.9 * exact, atol=1e-14)
assert_allclose(own, 0.5 * exact, atol=1e-14)
assert_allclose(others, exact, atol=1e-14)


def expected(scores, v):
    return expected_loss(scores, v, reads), (scores, v)


def expected_backward(dloss, cache):
    found = estimate(*cache, reads, baseline=-1.0)
    return dloss * found.dscores, dloss * found.dv


report = gradcheck((expected, expected_backward), scores, v)  # with a constant baseline
assert report.ok

# %% [markdown]
# **Your turn.** In the terminal, try `!estimate(scores, v, reads, baseline=5.0).variance`. Is a bad baseline
# worse than none?

# %% [markdown]
# ## What the source documents say
#
# > - *Show, Attend and Tell* prints b in its learning rule, and $b_k$, which contains draw k, in the line
# >   above. The words say "previous log likelihoods". The package uses $b_{k-1}$.

# %% [markdown]
# ## Summary
#
# - A baseline b is subtracted from every reward; the mean of the estimate does not depend on b.
# - The variance is a parabola in b; its minimum is near the mean of the reward.
# - In our example, the baseline E[f] reduces the variance to .39.
# - In training, the baseline is a moving average of earlier rewards.
# - A baseline that contains the draw's own reward makes the gradient too small.

# %% [markdown]
# ## Questions
#
# **Question.** The baseline may depend on the *sentence*. Why is this allowed?
#
# <details><summary>Answer</summary>
# In the derivation, b must be the same number for all draws s of one sentence. It may be another number for
# another sentence.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 19` lists the exercises of this chapter. The bug zoo has the mistake of
# this lesson: `npformer bugs start 21`.
#
# - `npformer exercise start score-function`: compute the score-function estimator for N samples, with rewards
#   and a baseline.
# - By hand: let $|g|^2 = 1$ for all draws. Show that Var(0) − Var(E[f]) = E[f]².
#
# **Next**: lesson 19.4 (`19_4_entropy_and_straight_through`), a term for equal weights, and an estimate
# without rewards.

# %% [markdown]
# # 19.1 · Hard attention
#
# *About 30 minutes. You need: attention as a weighted average (lesson 5.1,
# `05_1_scaled_dot_product_attention`), the cross-entropy (lesson 12.1, `12_1_the_cross_entropy`).*
#
# **After this lesson you can**
#
# - explain the difference between soft and hard attention;
# - draw a position with given probabilities, and check the average of many draws;
# - show why the loss of one draw has no useful gradient, and which loss is minimized instead.
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
from npformer.nn.attention.hard import expected_loss
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(7)
words = ["the", "dog", "saw", "birds"]

# %% [markdown]
# ## Soft and hard attention
#
# All kinds of attention so far compute a weighted average of values. This is called **soft attention**: each
# query uses a part of every value. **Hard attention** uses a single value. It is drawn at random, and the
# attention weights are the probabilities.
#
# Xu et al., *Show, Attend and Tell* (2015), use both to write captions for pictures. The parts of a picture
# are vectors $a_i$ with weights $\alpha_i$. The soft model uses their average. The hard model (section 4.1)
#
# > returns a sampled aᵢ at every point in time based upon a multinouilli distribution parameterized by α.
#
# (The usual names are *categorical* or *Multinoulli* distribution.) *The components of the Transformer* has
# one paragraph about both. It says that hard attention needs another kind of training, which it does not
# show. This chapter shows it.

# %% [markdown]
# We write $v_s$ for the values and $z$ for the result:
#
# $$\mathrm{soft:} \quad z = \sum_s \alpha_s\, v_s$$
#
# $$\mathrm{hard:} \quad z = v_s \mathrm{\ with\ probability\ } \alpha_s$$

# %% tags=["plot"]
figure = shape_flow(
    "scores α z \n . v .",
    {"α": "softmax: scores", "z": "mean or draw: α v"},
    {"scores": "T S", "v": "S L", "α": "T S", "z": "T L"},
)
caption = "Soft attention takes the mean of the values, hard attention draws one of them"
show_figure(figure, "19_1_shapes", caption)

# %% [markdown]
# **Question.** What is the expected value of $z$ in hard attention?
#
# <details><summary>Answer</summary>
# The sum of α_s v_s over all s. This is the result of soft attention. So the two agree on average.
# </details>

# %% [markdown]
# ## How a position is drawn
#
# Place intervals next to each other on a line, one for each weight. The length of each interval is its
# weight, so together they have length 1. Then draw a uniform random number between 0 and 1. The position is
# the interval that contains this number. This method is called **inverse transform sampling**:
#
# | word | the | dog | saw | birds |
# |---|---|---|---|---|
# | interval | 0 to .22 | .22 to .28 | .28 to .75 | .75 to 1 |
#
# The example has four words and two queries. We choose the scores as logarithms of the weights that we want.
# The code draws 1,000 times for each query, with the function `hard_attend` of the package.

# %%
S, T, L = 4, 2, 2  # the numbers of words and queries, the width of a value
v = rng.standard_normal((1, S, L))  # (B, S, L)
scores = np.log([[[0.22, 0.06, 0.47, 0.25], [0.4, 0.3, 0.1, 0.2]]])  # (B, T, S)
alpha, _ = F.softmax(scores)  # (B, T, S) the weights

z, cache = F.hard_attend(scores, v, rng=np.random.default_rng(0), draws=1000)  # (N, B, T, L)
show(cache)

# %% [markdown]
# The array `sample` is one-hot: it is True at the drawn position. So $z = \sum_s \mathrm{sample}_s\, v_s$ has
# the form of soft attention, with a draw in place of the weights. The next check draws the same positions
# with a loop over the intervals.

# %% tags=["check"]
points = np.random.default_rng(0).random((1000, 1, T), np.float32)  # (N, B, T)
for n, t in product(range(1000), range(T)):
    place, end = 0, alpha[0, t, 0]
    while points[n, 0, t] >= end:
        place += 1
        end += alpha[0, t, place]
    assert cache.sample[n, 0, t, place]
    assert_allclose(z[n, 0, t], v[0, place])

# %% [markdown]
# Is the average of the draws close to soft attention? The mean of N draws is never exact. Its typical error
# is the **standard error**, the standard deviation of one draw divided by $\sqrt{N}$. So we measure the
# difference in standard errors. A difference of one or two is normal.

# %%
soft, _ = F.attend(scores, v)  # (B, T, L)
difference, error = abs(z.mean(0) - soft), z.std(0) / math.sqrt(1000)
print(f"largest difference: {(difference / error).max():.1f} standard errors")

# %% tags=["check"]
assert (difference < 3 * error).all()

# %% tags=["plot"]
samples = cache.sample[:, 0, 0]  # (N, S) of the first query
s = np.vstack([samples[:4], samples.mean(0), alpha[0, 0]])
read = np.vstack([z[:4, 0, 0], z[:, 0, 0].mean(0), soft[0, 0]])
names = ["draw 1", "draw 2", "draw 3", "draw 4", "mean of 1,000", "soft: α"]
first = Grid(s, "$s$", "r", rows=names, columns=words, numbers=True, shade=True)
second, third = Grid(v[0], "$v$", "v", numbers=True), Grid(read, "$z$", "z", numbers=True)
caption = "The first query: four draws, the mean of 1,000 draws, and soft attention"
show_figure(cell_product([first, "×", second, "=", third]), "19_1_draws", caption)

# %% [markdown]
# ## Why the draw has no useful gradient
#
# Some model uses both vectors z and computes a probability of the right answer y. Let
# $f(s) = \log p(y \mid s)$ be its logarithm. It depends on the pair of draws $s = (s_1, s_2)$, one for each
# query. The loss is $-f(s)$.
#
# In our example the model is a linear map and a softmax over three answers. The first answer is right.

# %%
w = 2 * rng.standard_normal((T, L, 3))  # (T, L, C)


def answer(z):
    """log p(y | s) of each draw, and the cache. Shapes: z (N, B, T, L) -> (N, B)."""
    log_probs, _ = F.log_softmax(np.einsum("nbtl,tlc->nbc", z, w))
    return log_probs[..., 0], log_probs


def answer_backward(df, log_probs):
    """dlogits = df (onehot - p), and back through the linear map."""
    return np.einsum("nbc,tlc->nbtl", df[..., None] * ([1, 0, 0] - np.exp(log_probs)), w)


reads = answer, answer_backward

# %% [markdown]
# Now we change one score slowly, the score of the first query for "the". The random number of the draw stays
# the same. So we can see how the loss of one draw depends on the score.
#
# **Question.** What will the curve look like?
#
# <details><summary>Answer</summary>
# It is constant almost everywhere, because a small change of a score does not change which position is drawn.
# At some scores the drawn position changes, and the loss jumps. So it is a staircase.
# </details>

# %%
raised = np.linspace(-4, 4, 401)  # the score of the first query for "the"
losses = np.zeros((2, 401))
largest = 0.0
for i, score in enumerate(raised):
    changed = scores.copy()
    changed[0, 0, 0] = score
    one, made = F.hard_attend(changed, v, rng=np.random.default_rng(3), draws=1)
    dscores, _ = F.hard_attend_backward(np.ones_like(one), made)
    largest = max(largest, abs(dscores).max())
    losses[:, i] = -answer(one)[0][0, 0], expected_loss(changed, v, reads)
print("different values of the loss of one draw:", len(np.unique(losses[0])))
print("largest gradient of the scores:", largest)

# %% tags=["check"]
assert len(np.unique(losses[0])) == 4
assert largest == 0

# %% tags=["plot"]
two = ["one draw, with the same random number", "the mean over all draws"]
axes = {"xlabel": "score of “the”", "ylabel": "loss", "legend": True}
figure = curves(losses, raised, labels=two, **axes)
show_figure(figure, "19_1_staircase", "One draw: constant, with three jumps. The mean is smooth")

# %% [markdown]
# The derivative of the loss of one draw is 0 at all points where it exists. Accordingly,
# `hard_attend_backward` returns a gradient of 0 for the scores. (The *values* do have a gradient,
# $dv = \mathrm{sample}^\top dz$: the value that was read receives all of dz.) With this gradient, the scores
# would never learn.

# %%
_, dv = F.hard_attend_backward(np.ones_like(one), made)
print("the queries read:", *[words[s] for s in made.sample[0, 0].argmax(-1)])
print("gradients of the four values, for dz = 1:", *dv[0].round(1))

# %% [markdown]
# ## The expected loss
#
# The second curve of the figure is smooth. It is the mean of the loss over all possible draws. Each pair of
# draws has the probability $p(s) = \alpha_{1 s_1} \alpha_{2 s_2}$, which is a smooth function of the scores.
# So we minimize this mean, the **expected loss**:
#
# $$\mathrm{loss} = -\sum_s p(s)\, f(s)$$
#
# Here the sum has 4 · 4 = 16 terms. Is this also a reasonable loss? What we really want is a large
# probability of the right answer, $p(y) = \sum_s p(s)\, p(y \mid s)$.

# %% [markdown]
# The logarithm is a concave function. For such a function, the mean of the logarithms is at most the
# logarithm of the mean (Jensen's inequality):
#
# $$\begin{aligned}
# \sum_s p(s) \log p(y \mid s) &\leq \log \sum_s p(s)\, p(y \mid s) \\
# &= \log p(y)
# \end{aligned}$$
#
# So the sum is a **lower bound** of $\log p(y)$. The paper maximizes this lower bound. The code computes both
# sides for our example.

# %%
pairs = list(product(range(S), repeat=T))
p = {s: alpha[0, 0, s[0]] * alpha[0, 1, s[1]] for s in pairs}
f = {s: answer(v[None, :, list(s)])[0][0, 0] for s in pairs}
bound = sum(p[s] * f[s] for s in pairs)
log_p = math.log(sum(p[s] * math.exp(f[s]) for s in pairs))
print(f"lower bound {bound:.4f}, log p(y) = {log_p:.4f}")

# %% tags=["check"]
assert_allclose(-bound, expected_loss(scores, v, reads), rtol=1e-12)
assert bound < log_p
sample = cache.sample[:5]  # the gradient of the values, with the same draws
pair = (
    lambda v: F.hard_attend(scores, v, sample=sample),
    lambda dz, made: F.hard_attend_backward(dz, made)[1],
)
report = gradcheck(pair, v)
assert report.ok

# %% [markdown]
# **Your turn.** In the terminal, print the cache with `s cache`. Then compute the share of each position
# among the draws of the second query with `!cache.sample[:, 0, 1].mean(0)`, and compare it with
# `!alpha[0, 1]`.

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* says that hard attention takes an argmax, which is not
# >   differentiable. This is true, but during training hard attention draws a position. Only afterwards it
# >   takes the argmax.
# > - It also says that hard attention is cheaper at inference. This holds for the values, of which only one
# >   is used. All scores have to be computed, as in soft attention.

# %% [markdown]
# ## Summary
#
# - Soft attention averages all values. Hard attention draws one value, with the weights as probabilities.
# - On average, the result of hard attention is that of soft attention.
# - The loss of one draw is a staircase as a function of a score, so its gradient is 0.
# - The expected loss over all draws is smooth, because the probabilities are smooth.
# - Minus the expected loss is a lower bound of $\log p(y)$.

# %% [markdown]
# ## Questions
#
# **Question.** When are the two sides of the inequality equal?
#
# <details><summary>Answer</summary>
# If p(y | s) is the same for all draws with a probability above 0. For example, this is so if one draw has
# the probability 1.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 19` lists the exercises of this chapter. They belong to the next
# lessons.
#
# - By hand: how many terms has the expected loss for T queries and S positions? Why can it not be computed
#   for a sentence with 50 tokens?
# - With code: write a function that draws a position from weights with `np.cumsum` and `np.searchsorted`.
# - With code: add $-\log(-\log u)$ to each score, with a new uniform random number u for each, and take the
#   argmax. This is the **Gumbel-max trick**. Check that each position is drawn with the probability
#   $\alpha_s$.
#
# **Next**: lesson 19.2 (`19_2_the_score_function_estimator`), the gradient of the expected loss.

# %% [markdown]
# # 19.4 · Entropy, and the straight-through estimator
#
# *About 30 minutes. You need: the score-function estimator (lesson 19.2,
# `19_2_the_score_function_estimator`), baselines (lesson 19.3, `19_3_baselines`), the gradient of the softmax
# (lesson 5.2, `05_2_the_backward_pass_of_attention`).*
#
# **After this lesson you can**
#
# - derive the gradient of the entropy, and explain why it is added to the loss;
# - write the complete learning rule of hard attention, and check it with the gradient checker;
# - explain the straight-through estimator, and show when it is wrong.
#
# `attention: queries and keys → scores → mask → softmax → [MEAN OF VALUES]`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn.attention.hard import estimate, expected_loss, with_and_without_baseline
from npformer.plots import curves

rng = np.random.default_rng(7)

# %% [markdown]
# The setup is that of lesson 19.1 (`19_1_hard_attention`): two queries draw from four words, and a linear map
# with a softmax computes the reward $f(s) = \log p(y \mid s)$.

# %% tags=["plot"]
figure = shape_flow(
    ". . s f loss \n scores α . . . \n . . H . .",
    {
        "α": "softmax: scores",
        "s": "draw: α",
        "H": "entropy: α",
        "f": "reward: s",
        "loss": "sum: f H",
    },
    {"scores": "T S", "α": "T S", "s": "1 T", "H": "1 T", "f": "1", "loss": "1"},
)
caption = "The reward and the entropy of each query are two terms of the loss"
show_figure(figure, "19_4_shapes", caption)

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

# %% [markdown]
# ## Why the entropy?
#
# If one weight of a query is nearly 1, the query nearly always draws the same position. Then it hardly learns
# which rewards the other positions would give. To prevent this early in training, one adds a term to the loss
# that favours equal weights.
#
# The **entropy** of the weights measures how equal they are:
#
# $$H = -\sum_i \alpha_i \log \alpha_i$$
#
# It is 0 if one weight is 1. It is largest, $\log S$, if all weights are equal. Adding $-\lambda_e H$ to the
# loss is called **entropy regularization**. The number $\lambda_e$ decides how strong it is.

# %% [markdown]
# We need the gradient of H with respect to the scores. The derivative of $\alpha_i$ with respect to
# $\mathrm{scores}_j$ is $\alpha_i ([i = j] - \alpha_j)$, as in lesson 5.2. With
# $\frac{\partial H}{\partial \alpha_i} = -(\log \alpha_i + 1)$, the chain rule gives
#
# $$\begin{aligned}
# \frac{\partial H}{\partial\, \mathrm{scores}_j}
# &= -\alpha_j (\log \alpha_j + 1) + \alpha_j \sum_i \alpha_i (\log \alpha_i + 1) \\
# &= -\alpha_j (\log \alpha_j + 1) + \alpha_j (1 - H) \\
# &= -\alpha_j (\log \alpha_j + H)
# \end{aligned}$$
#
# The second line uses that $\sum_i \alpha_i \log \alpha_i$ is $-H$, and that the weights sum to 1.
#
# **Question.** Which scores decrease in a step that increases H?
#
# <details><summary>Answer</summary>
# Those for which log α + H is positive: their weights are above e⁻ᴴ. The others increase.
# </details>

# %%
h, made = F.entropy(scores)  # (B, T)
dentropy = -alpha * (np.log(alpha) + h[..., None])  # (B, T, S)
print("entropy", h[0], "  its largest value", math.log(S))
print("weights", alpha[0, 0], "  e⁻ᴴ", np.exp(-h[0, 0]))
print("gradient", dentropy[0, 0].round(3))

# %% tags=["check"]
assert_allclose(F.entropy_backward(np.ones_like(h), made), dentropy, atol=1e-15)
assert gradcheck((F.entropy, F.entropy_backward), scores).ok

# %% [markdown]
# ## The complete rule
#
# The paper maximizes the expected reward plus $\lambda_e H$. With N draws $s_n$ and a baseline b, its
# estimate of the gradient is the mean over n of
#
# $$\nabla f(s_n) + \lambda_r (f(s_n) - b)\, \nabla \log p(s_n) + \lambda_e \nabla H$$
#
# There are three terms: the backward pass through the values that were read, the score function with the
# baseline, and the entropy. The factor $\lambda_r$ is the weight of the rewards. With $\lambda_r = 1$ the
# estimate is unbiased, which means that its mean is the exact gradient.
#
# The gradient checker needs a function and its gradient, without randomness. Here the function is the
# expected loss, and the gradient is the mean of the rule over all draws. So the check tests the whole rule.

# %%


def expected(scores, v):
    """The expected loss over all draws."""
    return expected_loss(scores, v, reads, entropy_weight=0.3), (scores, v)


def expected_backward(dloss, cache):
    """The mean, over all draws, of the gradient that one draw gives."""
    found = estimate(*cache, reads, baseline=-1.0, entropy_weight=0.3)
    return dloss * found.dscores, dloss * found.dv


report = gradcheck((expected, expected_backward), scores, v)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## An estimate without rewards
#
# There is a simpler estimate, the **straight-through estimator** (Bengio et al., 2013). The forward pass
# draws one value. The backward pass pretends that z was the weighted average of soft attention,
# $z = \sum_s \alpha_s v_s$:
#
# $$d\alpha_s = dz \cdot v_s, \qquad d\mathrm{scores} = \mathrm{backward\ pass\ of\ the\ softmax}$$
#
# It needs no reward and no baseline. It uses the derivative of the loss at the drawn value: how does the loss
# change if z moves a little towards the other values? But z never moves a little. It is one value or another.
#
# If f is a linear function of z, this makes no difference, and the estimate is right on average. For other
# functions it is **biased**: the mean of many draws is not the exact gradient.

# %%
N = 20_000
z, cache = F.hard_attend(scores, v, rng=rng, draws=N)  # (N, B, T, L)
_, answered = answer(z)
dz = answer_backward(-np.ones((N, 1)) / N, answered)  # (N, B, T, L)
dalpha = (dz @ v.swapaxes(-1, -2)).sum(0)  # (B, T, S) summed over the draws
dscores = alpha * (dalpha - (dalpha * alpha).sum(-1, keepdims=True))
dscores_package, _ = F.straight_through_backward(dz, cache)
print("largest difference from the package:", abs(dscores - dscores_package).max())
show(cache)

# %% tags=["check"]
assert_allclose(dscores, dscores_package, atol=1e-12)

# %% [markdown]
# How large are its bias and its variance? The function `estimate` enumerates all draws, so both can be
# computed exactly. We do it for our model and for a linear function of z.

# %%
u = w[..., 0]  # (T, L) for the linear function f = Σ z u
linear = lambda z: ((z * u).sum((-1, -2)), None), lambda df, _: df[..., None, None] * u
through_linear = estimate(scores, v, linear, straight_through=True)
exact_linear = estimate(scores, v, linear)
through, exact = estimate(scores, v, reads, straight_through=True), estimate(scores, v, reads)
usual, _ = with_and_without_baseline(scores, v, reads)
bias = np.linalg.norm(through.dscores - exact.dscores) / np.linalg.norm(exact.dscores)
bias_linear = abs(through_linear.dscores - exact_linear.dscores).max()
print(f"variance of one draw: {through.variance:.2f}", end=", ")
print(f"with rewards and the baseline E[f] {usual.variance:.2f}")
print(f"bias for a linear function: {bias_linear:.0e}")
print(f"bias for our model: {bias:.0%} of the length of the gradient")

# %% tags=["check"]
assert bias_linear < 1e-13
assert_allclose([through.variance, usual.variance, bias], [0.22, 2.65, 0.27], atol=0.005)

# %% [markdown]
# The variance is much smaller than with rewards. But the bias is 27 % of the length of the gradient, and more
# draws do not reduce it.
#
# ## An example with the wrong direction
#
# Can the bias be so large that training goes in the wrong direction? There are two positions with the values
# −1 and 1, and the loss is $z + \sin \pi z$.
#
# **Question.** Which position is better? What is the derivative of the loss at both values?
#
# <details><summary>Answer</summary>
# The first: its loss is −1, that of the second is 1. The derivative is 1 + π cos πz. At both values it is
# 1 − π, which is negative. So the straight-through estimator always suggests a larger z.
# </details>

# %%
value, slope = np.array([-1.0, 1]), 1 - math.pi
# the loss of each value; the straight-through estimator uses the slope times the value instead
signals = {"score function": value, "straight through": slope * value}
for name, signal in signals.items():
    score = np.zeros(2)
    for _ in range(200):  # gradient descent on the mean over both draws
        a = F.softmax(score)[0]
        score -= 0.2 * a * (signal - a @ signal)
    probability = F.softmax(score)[0][0]
    print(f"{name:17} probability of the better position: {probability:.3f}")

# %% tags=["check"]
assert probability < 0.01  # of the straight-through estimator, the last one

# %% tags=["plot"]
z_line = np.linspace(-1, 1, 201)
figure = curves(z_line + np.sin(math.pi * z_line), z_line, xlabel="z", ylabel="loss")
caption = "At both ends the loss falls to the right, but the right end has the higher loss"
show_figure(figure, "19_4_straight", caption)

# %% [markdown]
# The score function finds the better position. The straight-through estimator finds the worse one.
#
# **Your turn.** In the terminal, set another loss with `!slope = 1.0`. For which slopes does the
# straight-through estimator find the better position?

# %% [markdown]
# ## What the source documents say
#
# > - *Show, Attend and Tell* says that H is there "to further reduce the estimator variance".

# %% [markdown]
# ## Summary
#
# - The entropy H of the weights is 0 if one weight is 1, and log S if all are equal.
# - Its gradient with respect to the scores is $-\alpha_j (\log \alpha_j + H)$.
# - The complete rule adds three terms: the values, the score function with a baseline, and the entropy.
# - The straight-through estimator draws in the forward pass and uses soft attention in the backward pass.
# - Its variance is small, but it is biased, and it can point in the wrong direction.

# %% [markdown]
# ## Questions
#
# **Question.** What happens if $\lambda_e$ is very large?
#
# <details><summary>Answer</summary>
# The entropy dominates the loss, so all weights become equal.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 19` lists the exercises of this chapter.
#
# - `npformer exercise start entropy-backward`: compute the gradient of the entropy of the attention weights.
# - By hand: one query with rewards $f_s$. Which weights α maximize $\sum_s \alpha_s f_s + \lambda_e H$? Show
#   that they are softmax(f / λₑ).
#
# **Next**: lesson 19.5 (`19_5_soft_and_hard_attention_compared`), training with all of these methods.

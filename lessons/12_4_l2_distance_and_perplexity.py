# %% [markdown]
# # 12.4 · L2 distance and perplexity
#
# *About 20 minutes. You need: the three measures of lesson 12.1 (`12_1_the_cross_entropy`), the gradient of
# the cross-entropy (lesson 12.2, `12_2_the_gradient_of_the_cross_entropy`), label smoothing (lesson 12.3,
# `12_3_label_smoothing_and_tied_weights`).*
#
# **After this lesson you can**
#
# - derive the gradient of the L2 distance, and explain why it is a bad loss;
# - check the gradients of all losses of this chapter;
# - translate a cross-entropy into a perplexity, and interpret it.
#
# `training step: forward pass → [LOSS] → backward pass → update`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.plots import Step, curves, gradient_flow

rng = np.random.default_rng(12)
V = 6
thanks = np.array(3)  # the right token for "merci"
q = np.eye(V)[thanks]  # (V,)

# %% [markdown]
# ## Why not the L2 distance?
#
# The cross-entropy is one way to measure how far the probabilities $p$ are from the target $q$. The L2
# distance is another. Both losses begin in the same way:

# %% tags=["plot"]
z = np.random.default_rng(0).standard_normal(V)  # (V,)
p, _ = F.softmax(z)
arrays = {"z": z, "p": p, "entropy": [-np.log(p[thanks])], "distance": [np.linalg.norm(p - q)]}
steps = {
    "p": Step("softmax", ["z"]),
    "entropy": Step("−log p", ["p"]),
    "distance": Step("‖p − q‖", ["p"]),
}
axes = {"z": "V", "p": "V", "entropy": "1", "distance": "1"}
figure = gradient_flow(". . entropy \n z p . \n . . distance", arrays, steps, axes=axes)
show_figure(figure, "12_4_losses", "Two losses of the same probabilities")

# %% [markdown]
# The L2 distance is also 0 for $p = q$ and positive otherwise. So why is it not used as the loss? Its
# gradient has to pass through the softmax, and there it can become almost 0. Take two tokens with the
# probabilities $p = (1 - s, s)$, where the second token is right. Then $q = (0, 1)$, and the distance is
# $d = \sqrt{2}\,(1 - s)$.

# %% [markdown]
# We compute the gradient in two steps. The first one is the gradient of the distance itself, and the second
# one is the backward pass of the softmax (lesson 5.2, `05_2_the_backward_pass_of_attention`):
#
# $$\begin{aligned}
# dp &= \frac{p - q}{d} = \frac{1}{\sqrt{2}}\,(1, -1) \\
# dz &= p \odot \left(dp - \sum_v dp_v\, p_v\right) \\
# &= \sqrt{2}\; s\,(1 - s) \cdot (1, -1)
# \end{aligned}$$
#
# The gradient of the cross-entropy is
#
# $$dz = p - q = (1 - s) \cdot (1, -1)$$
#
# **Question.** Let $s$ go to 0. Then the model is sure, and it is wrong. What happens to the two gradients?
#
# <details><summary>Answer</summary>
# The gradient of the cross-entropy goes to (1, −1), its largest value. The gradient of the L2 distance goes
# to 0, although a large gradient is needed most in this case.
# </details>

# %%
s = np.array([0.5, 0.1, 1e-3, 1e-6])  # (4,) the probability of the right token
by_ce, by_l2 = 1 - s, math.sqrt(2) * s * (1 - s)  # (4,) the first entry of dz
for probability, ce, l2 in zip(s, by_ce, by_l2, strict=True):
    print(f"p of the right token {probability:8.6f}   cross-entropy {ce:.6f}   L2 {l2:.6f}")

# %% tags=["check"]
rows, second = np.log(np.stack([1 - s, s], -1)), np.eye(2)[[1] * 4]  # (4, 2), (4, 2)
_, cache = F.l2_distance(rows, second)
assert_allclose(4 * F.l2_distance_backward(1.0, cache)[:, 0], by_l2)  # times 4: undo the mean
_, cache = F.kl_divergence(rows, second)
assert_allclose(4 * F.kl_divergence_backward(1.0, cache)[:, 0], by_ce)

# %% [markdown]
# The figure shows the same for six tokens. The logit of a wrong token rises from 0 to 20, and the vertical
# axis shows the length of the gradient.

# %% tags=["plot"]
logit = np.linspace(0, 20, 81)  # (81,) the logit of "a", where "thanks" is right
lengths = np.zeros((2, 81))
for i, m in enumerate(logit):
    row = m * np.eye(V)[0]  # (V,)
    _, ce_cache = F.cross_entropy(row, thanks)
    _, l2_cache = F.l2_distance(row, q)
    lengths[0, i] = np.linalg.norm(F.cross_entropy_backward(1.0, ce_cache))
    lengths[1, i] = np.linalg.norm(F.l2_distance_backward(1.0, l2_cache))
figure = curves(
    lengths,
    logit,
    labels=["cross-entropy", "L2 distance"],
    xlabel="logit of a wrong token",
    ylabel="length of the gradient",
    yscale="log",
)
caption = "The surer the model is of a wrong token, the smaller is the gradient of L2"
show_figure(figure, "12_l2", caption)

# %% tags=["check"]
assert_allclose(lengths[0, -1], math.sqrt(2), rtol=1e-6)
assert lengths[1, -1] < 1e-8

# %% [markdown]
# ## Check the gradient
#
# We check the cross-entropy with padding and label smoothing, and also the KL divergence and the L2
# distance.

# %%
targets = np.array([[4, 1, 0, 0], [6, 2, 3, 0]])  # (B, T), 0 is padding
z = rng.standard_normal((2, 4, 7))  # (B, T, V)
settings = {"pad_id": 0, "smoothing": 0.1}
report = gradcheck((F.cross_entropy, F.cross_entropy_backward), z, targets, **settings)
print(report)

# %% tags=["check"]
assert report.ok
q_of_z = F.smooth_targets(targets, 7, 0.1)  # (B, T, V)
assert gradcheck((lambda z: F.kl_divergence(z, q_of_z), F.kl_divergence_backward), z).ok
assert gradcheck((lambda z: F.l2_distance(z, q_of_z), F.l2_distance_backward), z).ok

# %% [markdown]
# ## Perplexity
#
# A cross-entropy of 1.6 is hard to interpret. The **perplexity** is easier to read. The perplexity is
# exp(loss), where the loss is the cross-entropy with one-hot targets. Since −log p = log(1/p), it is the
# geometric mean of 1/p over all target tokens:
#
# $$\mathrm{perplexity} = \exp\left(-\frac{1}{N} \sum_n \log p_n\right)
# = \left(\prod_n \frac{1}{p_n}\right)^{1/N}$$
#
# A model with perplexity $k$ is as uncertain as if it chose among $k$ equally probable tokens. The
# perplexity of "merci" is exp(1.6094) = 5. If all V tokens are equally probable, it is V. For the five rows
# of probabilities that *图解transformer* prints, it is exp(.0776) = 1.08.
#
# **Question.** A model has learned the smoothed targets perfectly. Is its perplexity 1?
#
# <details><summary>Answer</summary>
# No. It gives the right token the probability q(target) = .9 + .1/V, so its perplexity is 1/q(target). With
# six tokens this is 1.09, or 9 % more than 1. This is why the paper says that smoothing "hurts perplexity".
# </details>

# %%
cross_entropy = -np.log(0.2)  # of "merci", where the right token has the probability .2
losses = -np.log([0.93, 0.8, 0.99, 0.94, 0.98])  # (T,) of the right tokens in the printed rows
soft = F.smooth_targets(thanks, V, 0.1)  # (V,)
print(f"perplexity of merci {np.exp(cross_entropy):.2f}, of the printed rows", end=" ")
print(f"{np.exp(losses.mean()):.2f}, of p = q with six tokens {1 / soft.max():.3f}")

# %% tags=["check"]
assert_allclose([np.exp(cross_entropy), np.exp(losses.mean())], [5, 1.08], atol=1e-3)
assert_allclose(np.exp(F.cross_entropy(np.zeros(V), thanks)[0]), V)
assert_allclose(1 / soft.max(), 1.09, atol=1e-3)

# %% [markdown]
# **Your turn.** In the terminal, compute the perplexity of a model that gives the right token the
# probabilities 1/2 and 1/8, with `!np.exp(-np.log([1 / 2, 1 / 8]).mean())`. Predict it first.

# %% [markdown]
# ## Summary
#
# - The L2 distance is also 0 for p = q, but its gradient passes through the softmax.
# - It contains the probability s of the right token as a factor, so it vanishes when the model is sure and
#   wrong.
# - The gradient of the cross-entropy is largest in this case.
# - The perplexity is exp(cross-entropy): the number of equally probable tokens with the same uncertainty.
# - Label smoothing makes the perplexity larger than 1, even for a perfect model.

# %% [markdown]
# ## Questions
#
# **Question.** A vocabulary has 37,000 tokens. An untrained model gives all of them the same probability.
# What are its perplexity and its cross-entropy?
#
# <details><summary>Answer</summary>
# The perplexity is 37,000, and the cross-entropy is log 37,000 = 10.5.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 12` lists the exercises of this chapter, which belong to lessons 12.2 and 12.3.
#
# - By hand: for two tokens and s = 1/2, compute both gradients dz. Which one is longer?
# - By hand: which s makes the gradient of the L2 distance in this lesson as long as possible?
#
# **Next**: lesson 13.1 (`13_1_gradient_descent_and_momentum`), how an optimizer uses all these gradients.

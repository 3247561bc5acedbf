# %% [markdown]
# # 13.1 · Gradient descent and momentum
#
# *About 30 minutes. You need: the gradient of a loss (lesson 0.2, `00_2_forward_and_backward`), the
# cross-entropy (lesson 12.1, `12_1_the_cross_entropy`).*
#
# **After this lesson you can**
#
# - explain what an optimizer does, and what the learning rate is;
# - compute the largest learning rate for which gradient descent converges on a simple loss;
# - explain why gradient descent is slow on this loss, and why momentum makes it faster.
#
# `training: batch → model → loss → backward pass → [OPTIMIZER] → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import curves

# %% [markdown]
# ## From a gradient to a step
#
# The backward pass computes the gradient of the loss. It contains one number for each parameter, about 65
# million in the base model of the paper. Each number tells us how the loss changes when this parameter
# changes. It does not tell us how far to change the parameter.
#
# An **optimizer** is the algorithm that makes this decision. In each training step it receives the gradient
# and changes the parameters.
#
# Chapter 13 has five lessons. The first three build the optimizer of the paper: gradient descent and momentum
# in this lesson, then Adam, then the learning-rate schedule. The last two train a model, first on ten
# sentences and then on a corpus.
#
# The picture shows one training step. P is the number of parameters, and all arrays with this shape have one
# entry for each parameter:

# %% tags=["plot"]
figure = shape_flow(
    "batch loss g w' \n w . . .",
    {"loss": "forward: w batch", "g": "backward: loss", "w'": "optimizer: g w"},
    {"w": "P", "batch": "B T", "loss": "1", "g": "P", "w'": "P"},
)
show_figure(figure, "13_1_shapes", "A training step; the next one begins with w'")

# %% [markdown]
# The simplest optimizer moves each parameter against its gradient. This is called **gradient descent**:
#
# $$w \leftarrow w - \mathrm{lr} \cdot g$$
#
# The number lr is the **learning rate**. It is positive, and it is the same for all parameters. It takes a
# long time to compute the gradient for all sentences of the corpus. So one usually takes the gradient for a
# small random sample, the batch. Then the algorithm is called **stochastic gradient descent** (SGD).
#
# ## A loss with a steep and a flat direction
#
# How large should the learning rate be? We study this question with a loss of only two parameters:
#
# $$L(w) = \frac{1}{2} \left(\lambda_1 w_1^2 + \lambda_2 w_2^2\right)$$
#
# with $\lambda_1 = 1$ and $\lambda_2 = 100$.
#
# The minimum is at $w = (0, 0)$, where the loss is 0. The second derivative of a loss in a direction is its
# **curvature** in this direction. Here the two curvatures are $\lambda_1$ and $\lambda_2$. The gradient has
# the entries $\lambda_i w_i$. The cell computes loss and gradient at $w = (1, 1)$.

# %%
curvature = np.array([1.0, 100])
w = np.ones(2)
print("loss", 0.5 * (curvature * w * w).sum(), "  gradient", curvature * w)

# %% [markdown]
# At this point, the loss is 100 times as steep in the direction of $w_2$ as in the direction of $w_1$. So we
# call $w_2$ the steep direction, and $w_1$ the flat one.
#
# We insert this gradient into the rule of gradient descent:
#
# $$\begin{aligned}
# g_i &= \frac{\partial L}{\partial w_i} = \lambda_i w_i \\
# w_i &\leftarrow w_i - \mathrm{lr} \cdot \lambda_i w_i = (1 - \mathrm{lr}\, \lambda_i)\, w_i
# \end{aligned}$$
#
# So each step multiplies $w_i$ by the same factor, $1 - \mathrm{lr}\, \lambda_i$. The parameter converges to
# 0 only if this factor lies between −1 and 1, that is, if $\mathrm{lr} < 2 / \lambda_i$.
#
# **Question.** Which learning rate would be best for the first parameter alone? Why can we not use it?
#
# <details><summary>Answer</summary>
# The best one is 1/λ₁ = 1, which reaches the minimum in one step. But with a learning rate above 2/λ₂ = .02,
# the second parameter grows without limit.
# </details>
#
# The formula has two consequences:
#
# - **The direction with the largest curvature limits the learning rate.** Here the limit is 2/100 = .02.
# - **The direction with the smallest curvature determines the number of steps.** With lr = .01, each step
#   multiplies $w_1$ by .99, and it takes 69 steps to halve it.
#
# The cell runs 200 steps with three learning rates. The first one sets $w_2$ to 0 in a single step, because
# the factor of $w_2$ is 1 − .01 · 100 = 0. The second one is just below the limit, and the third one just
# above it.

# %%


def descend(rule, steps=200):
    """Return the losses from w = (1, 1) on. The rule computes a step from a gradient."""
    w, losses = np.ones(2), []
    for _ in range(steps + 1):
        losses.append(0.5 * (curvature * w * w).sum())
        w = w - rule(curvature * w)
    return np.array(losses)


rates = [0.01, 0.0199, 0.0201]
losses = np.stack([descend(lambda g, lr=lr: lr * g) for lr in rates])  # (3, steps + 1)
print("steps   " + "".join(f"{n:12}" for n in (0, 50, 100, 200)))
for lr, row in zip(rates, losses, strict=True):
    print(f"lr {lr:.4f}" + "".join(f"{row[n]:12.4f}" for n in (0, 50, 100, 200)))

# %% tags=["check"]
assert_allclose(losses[0, 200], 0.5 * 0.99**400)  # only w1 is left: w2 is 0 after one step
assert 0.99**69 < 0.5 < 0.99**68
assert losses[0, 200] < losses[1, 200]
assert losses[2, 200] > losses[2, 100] > losses[2, 50]

# %% tags=["plot"]
figure = curves(
    losses,
    np.arange(201),
    labels=[f"lr {lr}" for lr in rates],
    xlabel="step",
    ylabel="loss",
    yscale="log",
)
caption = "Above the limit of .02 the loss grows; below it, the loss decreases slowly"
show_figure(figure, "13_learning_rates", caption)

# %% [markdown]
# With lr = .0201 the loss grows without limit. One says that the training **diverges**.
#
# **Question.** Why does lr = .0199 lead to a larger loss than lr = .01, although its steps are longer?
#
# <details><summary>Answer</summary>
# The factor of the second parameter is 1 − .0199 · 100 = −.99. So this parameter changes its sign in each
# step, and its absolute value shrinks by only 1 %. Its share of the loss is the largest, because its
# curvature is 100.
# </details>
#
# ## Momentum
#
# The gradients of this experiment have a pattern. In the steep direction, the gradient changes its sign from
# step to step if the learning rate is close to the limit. In the flat direction it always has the same sign.
#
# **Momentum** uses this pattern (Polyak, 1964). It adds up the gradients of all steps, and multiplies the sum
# by a number β < 1 before each addition. So old gradients lose their influence. The step uses the sum $m$ in
# place of the gradient:
#
# $$m \leftarrow \beta m + g, \qquad w \leftarrow w - \mathrm{lr} \cdot m$$

# %%
m = np.zeros(2)


def momentum_step(g):
    """Return a step with momentum, with lr = .01 and β = .9."""
    m[:] = 0.9 * m + g
    return 0.01 * m


# %% [markdown]
# What does $m$ become after many steps? We compare two cases. In the first case the gradient is always $g$.
# In the second case its sign alternates: $g, -g, g, \ldots$ Both sums are geometric series:
#
# $$\begin{aligned}
# \text{constant:} \quad m &= g\,(1 + \beta + \beta^2 + \ldots) = \frac{g}{1 - \beta} \\
# \text{alternating:} \quad |m| &= |g|\,(1 - \beta + \beta^2 - \ldots) = \frac{|g|}{1 + \beta}
# \end{aligned}$$
#
# With β = .9, a constant gradient leads to $m = 10\,g$. So the steps in the flat direction become ten times
# as long. An alternating gradient leads to $|m| \approx .53\,|g|$, about half of a normal step. So the steps
# in the steep direction become shorter. The cell computes these two
# factors, and then uses momentum for our loss.

# %%
constant = alternating = 0.0
for t in range(200):
    constant, alternating = 0.9 * constant + 1, 0.9 * alternating + (-1) ** t
print(f"m after 200 steps: constant {constant:.3f}, alternating {abs(alternating):.3f}")

with_momentum = descend(momentum_step)
print(f"loss after 200 steps: {losses[0, 200]:.1e}, with momentum {with_momentum[200]:.1e}")

# %% tags=["check"]
assert_allclose([constant, abs(alternating)], [10, 1 / 1.9])
assert with_momentum[200] < 1e-6 < losses[0, 200]

# %% tags=["plot"]
figure = curves(
    np.stack([losses[0], with_momentum]),
    np.arange(201),
    labels=["gradient descent", "momentum"],
    xlabel="step",
    ylabel="loss",
    yscale="log",
)
caption = "Both with lr = .01: momentum starts more slowly and is then much faster"
show_figure(figure, "13_momentum", caption)

# %% [markdown]
# With the same learning rate, momentum reaches a much smaller loss. In the first steps its loss is larger,
# because the steps in the steep direction go beyond the minimum. But both parameters still share one learning
# rate, and the flat direction would need a larger one. Lesson 13.2 is about Adam, which chooses the length of
# the step for each parameter separately.
#
# **Your turn.** In the terminal, try other learning rates, for example with
# `!descend(lambda g: 0.015 * g)[200]`. Which rate gives the smallest loss after 200 steps?

# %% [markdown]
# ## Summary
#
# - An optimizer turns the gradient into a change of the parameters; the learning rate scales this change.
# - On this loss, gradient descent multiplies a parameter with curvature λ by 1 − lr λ in each step.
# - The largest curvature limits the learning rate, and the smallest one determines the number of steps.
# - Momentum adds up gradients: a constant gradient counts 1/(1 − β) times, an alternating one 1/(1 + β).
# - SGD takes the gradient for a batch in place of the gradient for the whole corpus.

# %% [markdown]
# ## Questions
#
# **Question.** A loss has the curvatures 4 and 25. For which learning rates does gradient descent converge?
#
# <details><summary>Answer</summary>
# For positive learning rates below 2/25 = .08. The largest curvature decides.
# </details>
#
# **Question.** With β = .99 in place of .9, how many times does a constant gradient count after many steps?
#
# <details><summary>Answer</summary>
# 1/(1 − .99) = 100 times. But it also takes about ten times as many steps until the sum reaches this value.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 13` lists the exercises of this chapter. This lesson has one to do by hand:
#
# - By hand: let lr = .0181. By which factors does a step of gradient descent multiply the two parameters? How
#   many steps does each of them need to halve?
#
# **Next**: lesson 13.2 (`13_2_adam`), in which each parameter gets its own step size.

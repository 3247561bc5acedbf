# %% [markdown]
# # 13.2 · Adam
#
# *About 40 minutes. You need: gradient descent and momentum (lesson 13.1,
# `13_1_gradient_descent_and_momentum`), the mean and the variance of a random number.*
#
# **After this lesson you can**
#
# - write one step of Adam in five lines of NumPy;
# - derive the bias correction, and show what happens without it;
# - explain why the length of a step hardly depends on the size of the gradient.
#
# `training: batch → model → loss → backward pass → [OPTIMIZER] → parameters`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn import Linear
from npformer.plots import curves
from npformer.training.optimizer import Adam

rng = np.random.default_rng(13)

# %% [markdown]
# ## The definition
#
# Gradient descent has one learning rate for all parameters. Lesson 13.1 showed the disadvantage: the steepest
# direction limits the learning rate, and all other directions then need many steps. **Adam** computes the
# length of the step for each parameter separately (Kingma and Ba, 2015). *Attention Is All You Need* uses it
# in section 5.3:
#
# > We used the Adam optimizer [20] with β₁ = 0.9, β₂ = 0.98 and ε = 10⁻⁹.
#
# Adam stores two numbers for each parameter. The number $m$ is a mean of its recent gradients, and $v$ is a
# mean of their squares. The picture shows how a step is computed from them. All arrays have the shape (P,),
# where P is the number of parameters, and all operations work on each entry separately.

# %% tags=["plot"]
figure = shape_flow(
    ". m m̂ w' \n g . . . \n . v v̂ .",
    {
        "m": "mean of g: g",
        "v": "mean of g²: g",
        "m̂": "1/(1−β₁ᵗ): m",
        "v̂": "1/(1−β₂ᵗ): v",
        "w'": "update: m̂ v̂",
    },
    {"g": "P", "m": "P", "v": "P", "m̂": "P", "v̂": "P", "w'": "P"},
)
show_figure(figure, "13_2_shapes", "Adam: the update is the learning rate times m̂ / (√v̂ + ε)")

# %% [markdown]
# We explain the picture from the left to the right.
#
# ## The two moving averages
#
# Momentum adds up gradients. Adam computes a mean instead. At step $t$, the new gradient gets the weight
# $1 - \beta_1$, and the old mean gets the weight $\beta_1$. This is called an **exponential moving average**.
# Before the first step the mean is 0:
#
# $$m_0 = 0, \qquad m_t = \beta_1 m_{t-1} + (1 - \beta_1)\, g_t$$
#
# The second mean is computed from the squares in the same way:
#
# $$v_0 = 0, \qquad v_t = \beta_2 v_{t-1} + (1 - \beta_2)\, g_t^2$$
#
# **Question.** How large is the weight of the gradient of ten steps ago in $m$, compared with the weight of
# the current one?
#
# <details><summary>Answer</summary>
# In each step it was multiplied by β₁, so its weight is .9¹⁰ = .35 times as large. In v, with β₂ = .98, it is
# .98¹⁰ = .82 times as large. So v remembers old gradients longer than m.
# </details>

# %% [markdown]
# ## The bias correction
#
# Both means begin at 0, and so they are too small in the first steps. By how much? We insert the formula for
# $m_{t-1}$ into the formula for $m_t$, and repeat this until $m_0$:
#
# $$m_t = (1 - \beta_1) \sum_{i=1}^{t} \beta_1^{t-i}\, g_i$$
#
# Now suppose that all gradients have the same expected value $\mathrm{E}\, g$. The expected value of a sum is
# the sum of the expected values. The sum of the powers of $\beta_1$ is a geometric series:
#
# $$\begin{aligned}
# \mathrm{E}\, m_t &= (1 - \beta_1)\,(1 + \beta_1 + \ldots + \beta_1^{t-1}) \cdot \mathrm{E}\, g \\
# &= (1 - \beta_1^t) \cdot \mathrm{E}\, g
# \end{aligned}$$
#
# So on average, $m_t$ is only $1 - \beta_1^t$ times as large as it should be. At the first step this factor
# is .1. We know the factor, so we can divide by it. This is the **bias correction**:
#
# $$\hat m_t = \frac{m_t}{1 - \beta_1^t}, \qquad \hat v_t = \frac{v_t}{1 - \beta_2^t}$$

# %% [markdown]
# The cell tests this with 100,000 random gradients for each step. Their mean is 3 and their variance is 1, so
# the mean of their squares is 3² + 1 = 10.

# %%
g = 3 + rng.standard_normal((5, 100_000))  # (t, N)
m = v = np.zeros(100_000)  # (N,)
table = []
for t in range(1, 6):
    m = 0.9 * m + 0.1 * g[t - 1]
    v = 0.98 * v + 0.02 * g[t - 1] ** 2
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.98**t)
    table.append((t, m.mean(), m_hat.mean(), v_hat.mean()))
    print("step {}   mean of m {:.3f}, of m̂ {:.3f}, of v̂ {:.3f}".format(*table[-1]))

# %% tags=["check"]
for t, of_m, of_m_hat, of_v_hat in table:
    assert_allclose([of_m, of_m_hat], [3 * (1 - 0.9**t), 3], rtol=0.01)
    assert_allclose(of_v_hat, 10, rtol=0.01)

# %% [markdown]
# Without the correction, $m$ is far too small. With the correction, both means are right from the first step
# on.
#
# ## The length of a step
#
# Adam divides the first mean by the square root of the second one. The small number ε avoids a division by 0:
#
# $$w \leftarrow w - \mathrm{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \varepsilon}$$
#
# At the first step, $\hat m = g$ and $\sqrt{\hat v} = |g|$. Their quotient is 1 or −1. So in this step,
# **every parameter moves by lr**, in the direction that makes the loss smaller. The size of its gradient has
# no influence. The same holds for later steps, as long as the gradient of the parameter stays the same.
#
# **Question.** Suppose that we multiply the loss by 1,000. How does this change the steps of Adam, and how
# does it change the steps of gradient descent?
#
# <details><summary>Answer</summary>
# All gradients become 1,000 times as large. Then m̂ and √v̂ become 1,000 times as large too, and their
# quotient does not change. So the steps of Adam stay the same, as long as √v̂ is much larger than ε. The
# steps of gradient descent become 1,000 times as long.
# </details>

# %% [markdown]
# The function makes one step of Adam for an array of any shape. The cell compares it with the class `Adam` of
# the package, for a linear layer with eight parameters and random gradients. A second copy of the parameters
# receives 1,000 times the gradients.

# %%


def adam_step(w, g, state, lr, betas=(0.9, 0.98), eps=1e-9):
    """Return w after one step of Adam. The dictionary state holds t, m and v."""
    state["t"] += 1
    state["m"] = betas[0] * state["m"] + (1 - betas[0]) * g
    state["v"] = betas[1] * state["v"] + (1 - betas[1]) * g * g
    m_hat = state["m"] / (1 - betas[0] ** state["t"])
    v_hat = state["v"] / (1 - betas[1] ** state["t"])
    return w - lr * m_hat / (np.sqrt(v_hat) + eps)


layer = Linear(3, 2, rng=rng, dtype=np.float64)
adam = Adam(layer)
w, state = layer.values.copy(), {"t": 0, "m": 0.0, "v": 0.0}
scaled, scaled_state = w.copy(), {"t": 0, "m": 0.0, "v": 0.0}
for step in range(20):
    g = rng.standard_normal(8)
    layer.grads[...] = g
    adam.step(0.1)  # the class of the package
    moved = adam_step(w, g, state, 0.1)
    scaled = adam_step(scaled, 1000 * g, scaled_state, 0.1)
    if step == 0:
        print("first step:", moved - w)
    w = moved
print("difference from the package:", abs(w - layer.values).max())
print("difference with 1,000 times the gradients:", abs(w - scaled).max())

# %% tags=["check"]
first = adam_step(np.zeros(8), g, {"t": 0, "m": 0.0, "v": 0.0}, 0.1)
assert_allclose(first, -0.1 * np.sign(g), rtol=1e-6)
assert_allclose(w, layer.values, rtol=1e-12)
assert_allclose(w, scaled, rtol=1e-6)

# %% [markdown]
# In lesson 0.2 (`00_2_forward_and_backward`), a wrong backward pass made the gradient `db` six times too
# small. With this mistake, gradient descent would have ended with a larger loss. With Adam, nobody would
# notice the mistake in the loss: Adam's steps do not change when all gradients of a parameter are divided by
# six.
#
# ## Gradients that are only noise
#
# The gradient of a batch is a random estimate of the true gradient, which is the mean over all sentences.
# What does Adam do if the true gradient is 0? Then the gradients have mean 0 and some variance σ². Let them
# be independent of each other, so that the variances add. After many steps, the variance of $m$ is again a
# geometric series:
#
# $$\begin{aligned}
# \operatorname{Var} m &= (1 - \beta_1)^2 \sum_{i=0}^{\infty} \beta_1^{2i}\, \sigma^2 \\
# &= \frac{(1 - \beta_1)^2}{1 - \beta_1^2}\, \sigma^2
# = \frac{1 - \beta_1}{1 + \beta_1}\, \sigma^2
# \end{aligned}$$
#
# The square root of $v$ is about σ. So a typical step has the length $\sqrt{.1 / 1.9} = .23$ times lr, and
# its direction is random.

# %%
noise = {"t": 0, "m": 0.0, "v": 0.0}
for g in rng.standard_normal((400, 5000)):  # (t, N) gradients with mean 0
    moved = adam_step(np.zeros(5000), g, noise, 1.0)
length = np.sqrt(np.mean(moved**2))
print(f"root mean square of a step: {length:.3f} lr; expected {math.sqrt(0.1 / 1.9):.3f} lr")

# %% tags=["check"]
assert_allclose(length, math.sqrt(0.1 / 1.9), rtol=0.03)

# %% [markdown]
# So a parameter whose gradient keeps its sign makes steps of length lr. A parameter whose gradient is only
# noise makes steps of about a quarter of this length. Their directions change, so they mostly cancel.
#
# ## Adam without the bias correction
#
# One could think that the correction is not important, since it matters only at the start. Let the gradient
# be constant. Then the exact step has the length lr. Without the correction, $m$ and $v$ are too small. With
# the two factors from above, the length becomes
#
# $$\mathrm{lr} \cdot \frac{1 - \beta_1^t}{\sqrt{1 - \beta_2^t}}$$
#
# The cell computes this length for the β₂ of the paper, and for .999, the most common value elsewhere.

# %%
t = np.arange(1, 301)
ratio = np.stack([(1 - 0.9**t) / np.sqrt(1 - b2**t) for b2 in (0.98, 0.999)])  # (2, t)
for n in (1, 12, 14, 100, 300):
    paper, common = ratio[:, n - 1]
    print(f"step {n:3}   β₂ = .98: {paper:.2f} lr   β₂ = .999: {common:.2f} lr")

# %% tags=["check"]
assert_allclose(ratio[:, 0], [0.71, 3.2], rtol=0.02)
assert_allclose(ratio.max(-1), [1.55, 6.6], rtol=0.01)
assert (ratio.argmax(-1) + 1 == [14, 12]).all()

# %% tags=["plot"]
figure = curves(
    ratio,
    t,
    labels=["β₂ = .98", "β₂ = .999"],
    xlabel="step",
    ylabel="length of a step, in lr",
)
caption = "Without the bias correction the first steps have the wrong length"
show_figure(figure, "13_without_correction", caption)

# %% [markdown]
# With β₂ = .98, the step is .71 lr at the start and 1.55 lr at step 14. With β₂ = .999, the step is 3.2 lr at
# the start and 6.6 lr at step 12. So with the common value, the first steps are much too long, although the
# means are still estimated from few gradients.
#
# ### A common mistake
#
# The number $t$ counts the *updates of the model*. Some programs loop over the tensors of a model and
# increase $t$ inside this loop. Then the first tensor has t = 1 and the hundredth has t = 100, in the same
# update. The program does not crash. But the bias correction of the later tensors is wrong, and a
# learning-rate schedule that uses the same counter ends too early.
#
# The package avoids this mistake. All parameters lie in one array, `model.values`, and `Adam.step` updates
# this array and increases $t$ once.

# %% [markdown]
# ## Summary
#
# - Adam stores two exponential moving averages: m of the gradients and v of their squares.
# - Both begin at 0, so they are too small by 1 − β₁ᵗ and 1 − β₂ᵗ; the bias correction divides by these
#   factors.
# - The step is lr · m̂ / (√v̂ + ε); for a constant gradient its length is lr, whatever the size of the
#   gradient.
# - For gradients that are only noise, a typical step has the length .23 lr (with β₁ = .9).
# - Without the bias correction the first steps have the wrong length, up to 6.6 lr for β₂ = .999.

# %% [markdown]
# ## Questions
#
# **Question.** How much memory does Adam need for a model with P parameters, the gradients not counted?
#
# <details><summary>Answer</summary>
# Two numbers for each parameter, m and v, and the counter t. So it needs twice the memory of the parameters.
# </details>
#
# **Question.** A parameter had gradient 0 in all steps so far, the present one included. How far does the
# present step move it?
#
# <details><summary>Answer</summary>
# Its m and v are 0, so the quotient is 0/ε = 0, and the parameter does not move. Without ε it would be 0/0.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 13` lists the exercises of this chapter. The grader compares your numbers with those
# of the package.
#
# - `npformer exercise start adam-step`: write one step of Adam. Increase t first.
# - By hand: let g₁ = 1, g₂ = −1 and β₁ = .9. What are m₂ and m̂₂? (The answer is −.01, and −.01/.19 = −.053.)
#
# **Next**: lesson 13.3 (`13_3_schedules_and_gradient_clipping`), in which the learning rate changes during
# training.

# %% tags=["check"]
m2 = 0.9 * 0.1 * 1 + 0.1 * -1
assert_allclose([m2, m2 / (1 - 0.9**2)], [-0.01, -0.0526], rtol=1e-3)

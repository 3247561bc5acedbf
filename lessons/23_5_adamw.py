# %% [markdown]
# # 23.5 · AdamW
#
# *About 25 minutes. You need: Adam (lesson 13.2, `13_2_adam`), learning-rate schedules (lesson 13.3,
# `13_3_schedules_and_gradient_clipping`).*
#
# **After this lesson you can**
#
# - explain why an L2 penalty in Adam is not a weight decay;
# - write one step of AdamW, and choose the parameters that decay;
# - write a cosine schedule that ends at a floor.
#
# `training: batch → model → loss → backward pass → [OPTIMIZER] → parameters`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.functional.adam import adam_update, decay_weights
from npformer.learn.course import show_figure
from npformer.models.gpt import GPT, GPTConfig
from npformer.plots import curves
from npformer.training.optimizer import AdamW, cosine

# %% [markdown]
# ## Why should weights decay?
#
# A model with large weights can fit the noise in its training set. A classic remedy is an **L2 penalty**: the
# term $\frac{\lambda}{2} \|\theta\|^2$, with all weights $\theta$, is added to the loss. Its gradient is
# $\lambda \theta$. In gradient descent with the learning rate $\eta$, one step becomes
#
# $$\begin{aligned}
# \theta &\leftarrow \theta - \eta\, (g + \lambda \theta) \\
# &= (1 - \eta \lambda)\, \theta - \eta\, g
# \end{aligned}$$
#
# So each step multiplies the weights by a number a little below 1, and then makes the usual step. This is
# called **weight decay**. In gradient descent, an L2 penalty and a weight decay are the same.
#
# **Question.** The gradient of a weight is 0 in every step. What does the weight decay do to it?
#
# <details><summary>Answer</summary>
# Each step multiplies the weight by $1 - \eta \lambda$, so the weight decreases exponentially to 0.
# </details>
#
# In Adam, an L2 penalty and a weight decay are not the same. Adam divides its step by the root of $v$, the
# moving average of the squared gradients. If $\lambda \theta$ is part of the gradient, Adam divides
# $\lambda \theta$ by this root, too. So a weight with large gradients hardly decays, and a weight with small
# gradients decays strongly.

# %% [markdown]
# Loshchilov and Hutter (*Decoupled Weight Decay Regularization*, 2019) separated the weight decay from the
# gradient. **AdamW** makes Adam's step with the gradient of the loss only. In addition, each step lets the
# weights decay. This is a **decoupled weight decay**:
#
# $$\theta \leftarrow \theta - \eta \lambda\, \theta - \eta\, \frac{\hat{m}}{\sqrt{\hat{v}} + \varepsilon}$$
#
# The table compares an L2 penalty in Adam with AdamW. All arrays have the shape (P,), where P is the number
# of parameters:
#
# | | m and v are computed from | update of θ |
# |---|---|---|
# | L2 in Adam | g + λ θ | − η m̂ / (√v̂ + ε) |
# | AdamW | g | − η m̂ / (√v̂ + ε) − η λ θ |
#
# The cell trains three kinds of weights, first with an L2 penalty in Adam and then with AdamW. All weights
# begin at 1. Their gradients are pure noise with the standard deviations 0.01, 0.1 and 1. The mean of this
# noise is 0, so in the long run only the decay should change the weights.

# %%
lr, decay, steps = 1e-3, 0.1, 1000
sizes = np.repeat([0.01, 0.1, 1.0], 1000)  # (P,) 1000 weights of each kind
means = {}
for name in ("L2 in Adam", "AdamW"):
    noise = np.random.default_rng(5)
    theta, m, v = np.ones(3000), np.zeros(3000), np.zeros(3000)
    for t in range(1, steps + 1):
        g = sizes * noise.standard_normal(3000)  # (P,)
        if name == "AdamW":
            decay_weights(theta, lr, decay)  # theta *= 1 - lr * decay
        else:
            g += decay * theta
        adam_update(theta, g, m, v, lr, t, (0.9, 0.999), 1e-8)
    means[name] = theta.reshape(3, 1000).mean(1)
    print(f"{name:11} mean weight after {steps} steps:", means[name].round(2))
print(f"(1 - lr decay)^{steps} = {(1 - lr * decay) ** steps:.2f}")

# %% tags=["check"]
assert abs(means["AdamW"] - (1 - lr * decay) ** steps).max() < 0.01
assert (np.diff(means["L2 in Adam"]) > 0.1).all()

# %% [markdown]
# With AdamW all weights decay by the same factor, $(1 - \eta \lambda)^{1000}$. With the L2 penalty in Adam,
# the decay depends on the size of the gradients.
#
# **Question.** With the L2 penalty in Adam, the weights with the smallest gradients decrease by almost $\eta$
# in each of the first steps. A weight decay would subtract only $\eta \lambda \theta$, which is a tenth of
# $\eta$. Why does Adam subtract so much more?
#
# <details><summary>Answer</summary>
# Most of the gradient of these weights is $\lambda \theta$, which is always positive. Then
# $\hat{m} / \sqrt{\hat{v}}$ is about 1, whatever the size of the gradient is. So each step of Adam has the
# length $\eta$ (lesson 13.2).
# </details>

# %% [markdown]
# ## Parameters that do not decay
#
# Not all parameters should decay. The gain of a norm begins at 1, and a gain of 1 changes nothing. A decay
# would bring the gain closer to 0, and a gain of 0 erases its input. A bias shifts its output, and the size
# of the shift does not make the model more complicated. So usually only the *matrices* decay: the weights of
# linear maps and the embeddings. Sets of parameters with different settings are called **parameter groups**.
#
# `AdamW` of the package lets all parameters with two or more axes decay.

# %%
model = GPT(GPTConfig(vocab_size=20, d_model=8, n_layers=1, n_heads=2, context=6))
for name, parameter in model.named_parameters():
    print(f"{name:45} {parameter.shape!s:9} {'decays' if parameter.value.ndim > 1 else '-'}")

before = {name: parameter.value.copy() for name, parameter in model.named_parameters()}
AdamW(model, weight_decay=0.1).step(lr=0.5)  # the gradients are 0, so only the decay acts

# %% tags=["check"]
for name, parameter in model.named_parameters():
    factor = 0.95 if parameter.value.ndim > 1 else 1  # 1 - 0.5 · 0.1
    assert_allclose(parameter.value, factor * before[name], rtol=1e-6)

# %% [markdown]
# ## A cosine with a floor
#
# The paper of 2017 lets the learning rate fall like $1 / \sqrt{\text{step}}$. Many models use half a cosine
# (lesson 13.3). The cosine often ends not at 0 but at a **floor**, such as a tenth of the peak. So the last
# steps still change the weights. Let $w$ be the number of warm-up steps and $n$ the number of all steps:
#
# $$
# \eta(s) = \mathrm{floor} + (\mathrm{peak} - \mathrm{floor}) \cdot
# \frac{1}{2} \left(1 + \cos\left(\pi\, \frac{s - w}{n - w}\right)\right)
# $$
#
# The cosine falls from 1 to −1, so the factor $\frac{1}{2} (1 + \cos(\ldots))$ falls from 1 to 0.

# %%
peak, floor, w, n = 1e-3, 1e-4, 100, 1000
s = np.arange(1, n + 1)
done = np.clip((s - w) / (n - w), 0, 1)
rates = floor + (peak - floor) * (1 + np.cos(math.pi * done)) / 2
rates[: w - 1] = peak * s[: w - 1] / w  # the warm-up
print("steps 50, 100, 550, 1000:", rates[[49, 99, 549, 999]])

# %% tags=["check"]
schedule = cosine(peak, n, w, floor)
assert_allclose(rates, [schedule(int(step)) for step in s], rtol=1e-12)
assert_allclose(rates[[49, 99, 549, 999]], [5e-4, 1e-3, 5.5e-4, 1e-4], rtol=1e-9)

# %% tags=["plot"]
zero = [cosine(peak, n, w)(int(step)) for step in s]
labels = ["floor a tenth of the peak", "floor 0"]
figure = curves(np.stack([rates, zero]), s, labels=labels, ylabel="learning rate", legend=True)
caption = "The cosine schedule with and without a floor, after 100 steps of warm-up"
show_figure(figure, "23_cosine", caption)

# %% [markdown]
# The decay of AdamW is $\eta \lambda \theta$, so it follows the schedule. The weights decay more slowly in
# the warm-up and at the end of the training.

# %% [markdown]
# **In 2025**, AdamW is still the rule; Kimi K2 was trained with Muon (lesson 26.1, `26_1_muon`).

# %% [markdown]
# ## Summary
#
# - In gradient descent, an L2 penalty multiplies the weights by $1 - \eta \lambda$ in each step.
# - In Adam, the gradient of an L2 penalty is divided by $\sqrt{\hat{v}}$, so its effect depends on the
#   gradients.
# - AdamW separates the decay from the gradient. All decaying weights get the same factor.
# - Gains and biases form a group that does not decay.
# - A cosine schedule can end at a floor, such as a tenth of the peak.

# %% [markdown]
# ## Questions
#
# **Question.** In AdamW, does the decay change the moving averages $m$ and $v$?
#
# <details><summary>Answer</summary>
# No. The moving averages are computed from the gradient of the loss only. With an L2 penalty in Adam, they
# would contain the gradient of the penalty, too.
# </details>
#
# **Question.** The learning rate is 0.001 and $\lambda = 0.1$. After how many steps has a weight without
# gradients become half as large?
#
# <details><summary>Answer</summary>
# Each step multiplies the weight by $1 - 0.0001$. After n steps, the factor is about $e^{-0.0001\, n}$. This
# factor is 1/2 when $0.0001\, n$ is the logarithm of 2, which is 0.69. So n is about 6,900.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 23` lists the exercises of this chapter.
#
# - `npformer exercise start adamw-step`: write one step of AdamW.
# - `npformer exercise start cosine-floor`: write the cosine schedule with a floor.
# - The command `npformer bugs start 28` gives you a program to correct: its weight decay does too much.
#
# **Next**: lesson 24.1 (`24_1_a_gpt_from_its_parts`), which builds a GPT from these parts and trains it.

# %% [markdown]
# # 26.1 · Muon
#
# *About 30 minutes. You need: AdamW (lesson 23.5, `23_5_adamw`), how to compare models (lesson 24.3,
# `24_3_from_2017_to_llama`), singular values.*
#
# **After this lesson you can**
#
# - say why an optimizer may treat a matrix as a whole;
# - write Newton-Schulz iterations, which need matrix products only;
# - compare two optimizers fairly.
#
# `training: batch → model → loss → backward pass → [OPTIMIZER] → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.data.text import text_dataset
from npformer.functional import orthogonalize
from npformer.learn.course import show_figure
from npformer.learn.experiments.measured_runs import read_results
from npformer.learn.experiments.muon import (
    BATCH,
    MEASURE_EVERY,
    MEASURED,
    RATES,
    SEEDS,
    STEPS,
    Trial,
    train_model,
)
from npformer.plots import curves
from npformer.training import loss_and_gradients

# %%
dataset = text_dataset()
model, _ = train_model(Trial("Muon", 0.02, 100, 0), dataset)
batches = next(dataset.loader(model.config.context, batch_size=BATCH, seed=9).steps())
loss_and_gradients(model, batches)
weight = model.layers[1].feed_forward.value.weight
gradient = weight.grad  # (D, F)
before, after = (np.linalg.svd(matrix)[1] for matrix in (gradient, orthogonalize(gradient)))

# %% tags=["plot"]
names = {"labels": ["gradient", "update of Muon"], "xlabel": "singular value, from the largest"}
figure = curves(np.stack([before / before[0], after]), **names, ylabel="size", yscale="log")
caption = "The 64 singular values of a gradient, and of the update made from it"
show_figure(figure, "26_1_spectrum", caption)

# %% [markdown]
# ## A few directions hold almost everything
#
# The picture shows a matrix of a small GPT after 100 steps of training: the value matrix of its last
# feed-forward network, with shape (64, 170). The blue curve shows the 64 singular values of its gradient,
# divided by the largest one. They fall quickly: a step along the gradient moves the
# matrix in a few directions, and hardly at all in the others.
#
# The orange curve belongs to the update that Muon makes from this gradient. Its singular values differ by
# less than a factor of 2.
#
# **Question.** By which factor is the largest singular value of the gradient above the middle one? Read it
# from the picture.
#
# <details><summary>Answer</summary>
# By more than twenty. The next cell computes it.
# </details>

# %%
print(f"largest / middle: {before[0] / before[32]:.0f}")
print(f"after: {after[0]:.2f} to {after[-1]:.2f}")

# %% tags=["check"]
assert before[0] > 5 * before[32]
assert after[0] < 1.21
assert after[32] > 0.6

# %% [markdown]
# ## The best step for a matrix
#
# Adam treats every number of a matrix alone. But a matrix is used as a whole: it maps vectors to vectors. How
# far may a step change this map? A step subtracts an update $U$ from the weights $W$, so the output changes
# by $x U$. If $x$ has length 1, the change has at most the length $\sigma_1(U)$, the largest singular value.
#
# So let us allow all updates with $\sigma_1(U) \le 1$, and ask for the one that lowers the loss most. To
# first order, the loss decreases by $\langle G, U \rangle$, the sum of the products of all numbers of the
# gradient $G$ and the update. With the singular value decomposition $G = P\, \mathrm{diag}(\sigma)\, Q^\top$,
#
# $$\max_{\sigma_1(U) \le 1} \langle G, U \rangle = \sum_i \sigma_i \quad \text{at} \quad U = P Q^\top$$
#
# The best update has the singular vectors of the gradient, and all its singular values are 1. To
# **orthogonalize** a matrix means to replace it by this $P Q^\top$.

# %%
p, sigma, q_transposed = np.linalg.svd(gradient, full_matrices=False)
best = p @ q_transposed
updates = {"gradient": gradient, "signs": np.sign(gradient), "best": best}
for name, update in updates.items():
    scaled = update / np.linalg.svd(update)[1][0]  # the largest singular value is 1
    print(f"{name:9} decrease of the loss {np.sum(gradient * scaled):.3f}")

# %% tags=["check"]
assert_allclose(np.sum(gradient * best), sigma.sum(), rtol=1e-4)

# %% [markdown]
# The signs of the gradient are what Adam's first step uses. The best update lowers the loss three times as
# much as the two others. This proves nothing, since it was made for this measure of a step.

# %% [markdown]
# ## Newton-Schulz iterations
#
# A singular value decomposition in every step would take too long. But we need only the product $P Q^\top$,
# not its parts. Since $X X^\top = P\, \mathrm{diag}(\sigma^2)\, P^\top$, the following sum of matrix products
# changes the singular values, each by the same polynomial, and keeps the singular vectors:
#
# $$\begin{aligned}
# &a X + b\, (X X^\top) X + c\, (X X^\top)^2 X \\
# &= P\, \mathrm{diag}(a \sigma + b \sigma^3 + c \sigma^5)\, Q^\top
# \end{aligned}$$
#
# A polynomial that brings numbers nearer to 1, applied several times, orthogonalizes the matrix. This is a
# **Newton-Schulz iteration**. Jordan et al. (2024) chose $a = 3.4445$, $b = -4.7750$ and $c = 2.0315$. First
# the matrix is divided by its Frobenius norm, so that no singular value is above 1.

# %%
a, b, c = 3.4445, -4.7750, 2.0315
sizes = np.array([1.0, 0.5, 0.1, 0.01, 0.001])  # five singular values
for iteration in range(6):
    print(iteration, *(f"{size:7.3f}" for size in sizes))
    sizes = a * sizes + b * sizes**3 + c * sizes**5

# %% [markdown]
# A small value grows by the factor 3.4 in each iteration, until it is between about .7 and 1.2. There it
# stays and never settles: the coefficients are chosen for speed. Muon makes five iterations. They bring .01
# of the norm to .7, but .001 only to .47. Now the same with matrices:

# %%


def newton_schulz(g, steps=5):
    """Return a matrix with the singular vectors of g and singular values near 1."""
    x = g / np.linalg.norm(g)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


update = newton_schulz(gradient)
print(f"difference from npformer's function: {abs(update - orthogonalize(gradient)).max():.0e}")

# %% tags=["check"]
assert_allclose(update, orthogonalize(gradient), atol=1e-4)

# %% [markdown]
# ## The whole optimizer
#
# A single gradient is noisy. **Muon** keeps a moving average $M$ of the gradients, the momentum. It
# orthogonalizes a mean of $M$ and the newest gradient $G$, which thus counts a little more (Nesterov's
# momentum). With $\mu = .95$, its step for a matrix with I rows and O columns is
#
# $$\begin{aligned}
# M &\leftarrow \mu M + (1 - \mu)\, G \\
# U &= \mathrm{orthogonalize}(\mu M + (1 - \mu)\, G) \\
# W &\leftarrow W - \eta \lambda W - .2\, \eta \sqrt{\max(I, O)}\, U
# \end{aligned}$$
#
# The decay is that of AdamW. What is the factor for? The numbers of an orthogonalized matrix are small: their
# squares add up to $\min(I, O)$. The factor gives them the root mean square .2, which is typical for Adam's
# updates (Liu et al. 2025). So one learning rate serves the matrices and the parameters that stay with AdamW.
#
# **Question.** Embeddings keep AdamW. Why is Muon not made for a table of vectors?
#
# <details><summary>Answer</summary>
# $\sigma_1$ bounds what a product with a whole matrix can change. But a token reads one row of the table
# only. (As the output matrix of our GPT, it stays with AdamW, too.)
# </details>
#
# Gains and biases are not matrices and keep AdamW, too.

# %% [markdown]
# ## AdamW and Muon, by steps and by time
#
# `npformer experiment muon` trains the last model of lesson 24.3 with both optimizers, on batches of 32
# windows of 64 characters. Each learning rate is the best of three in a training of 200 steps. Then each
# optimizer is trained with three other seeds, for 200 and for 400 steps. The results are in a file.

# %%
results = [r for r in read_results(MEASURED) if r.seed in SEEDS]
final = {}
for steps in STEPS:
    for name in RATES:
        of = final[steps, name] = [r for r in results if (r.steps, r.model) == (steps, name)]
        losses = [r.valid_loss for r in of]
        seconds = np.mean([r.measures["seconds"][-1] for r in of])
        spread = f"{min(losses):.3f} to {max(losses):.3f}"
        print(f"{steps} steps, {name:6} loss {spread}, {seconds:.0f} s")
gains = {}
for steps in STEPS:
    adamw, muon = ([r.valid_loss for r in final[steps, name]] for name in RATES)
    gains[steps] = np.subtract(adamw, muon)
    print(f"{steps} steps: Muon gains {gains[steps].min():.3f} to {gains[steps].max():.3f}")

# %% tags=["plot"]
steps = np.arange(MEASURE_EVERY, STEPS[0] + 1, MEASURE_EVERY)
measured = [np.mean([r.measures["loss"] for r in final[STEPS[0], name]], 0) for name in RATES]
figure = curves(np.stack(measured), steps, labels=list(RATES), ylabel="validation loss")
caption = "The loss of 200 steps on a short validation text: the mean of three seeds"
show_figure(figure, "26_1_losses", caption)

# %% tags=["check"]
assert min(gains[200]) > 0.03
assert 0 < min(gains[400]) < min(gains[200])
rates = {name: of[0].learning_rate for (_, name), of in final.items()}
assert rates == {"AdamW": 0.01, "Muon": 0.04}

# %% [markdown]
# Muon wins with every seed. Its steps take 8 % longer, but after about 165 of 200 steps it has the loss with
# which AdamW ends. (The trainings of 200 steps ran on a busier computer than those of 400, so compare seconds
# only within a length.)
#
# **Question.** The learning rates of the two were searched: .01 is the best of AdamW, and .04 of Muon. What
# would be unfair without this search?
#
# <details><summary>Answer</summary>
# A new optimizer is tuned by those who propose it, and the old one often keeps settings made for another
# model. Then a part of the difference comes from the search.
# </details>
#
# With 400 steps and the same learning rates, Muon gains less. And in the preset `gpt-shakespeare`, with nine
# times as many parameters and 1,300 steps, one run with Muon ended at 1.484 nats per character, and one with
# AdamW at 1.487. For these lengths, the rates were not searched. But the numbers warn you: a gain in a short
# training need not last. In 2025, a model of a trillion parameters was trained with a variant of Muon (Kimi
# K2).

# %% [markdown]
# ## Summary
#
# - A gradient has a few large singular values. A step along it moves the matrix in a few directions.
# - Among all updates with the same largest singular value, $P Q^\top$ lowers the loss most.
# - Newton-Schulz iterations bring all singular values near 1 by matrix products only.
# - Muon does this with the momentum of matrices inside layers. AdamW updates the other parameters.
# - Compare optimizers at their own best learning rates, by time, with several seeds.

# %% [markdown]
# ## Questions
#
# **Question.** Between steps, Muon keeps one array for each matrix, $M$. How many does Adam keep?
#
# <details><summary>Answer</summary>
# Two, $m$ and $v$. So Muon's state is half as large.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 26` lists the exercises of this chapter.
#
# - `npformer exercise start newton-schulz`: orthogonalize a matrix.
# - Change `momentum` in `npformer/training/optimizer.py` to .8 and to .99, and train 200 steps with seed 1:
#   `train_model(Trial("Muon", 0.04, 200, 1), dataset)`.
#
# **Next**: lesson 26.2 (`26_2_linear_attention_and_the_delta_rule`) replaces the KV cache by one matrix.

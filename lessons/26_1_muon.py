# %% [markdown]
# # 26.1 · Muon
#
# *About 35 minutes. You need: AdamW (lesson 23.5, `23_5_adamw`), how to compare models (lesson 24.3,
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
names = {"labels": ["gradient", "orthogonalized"], "xlabel": "singular value, from the largest"}
figure = curves(np.stack([before / before[0], after]), **names, ylabel="size", yscale="log")
caption = "The 64 singular values of a gradient, before and after it is orthogonalized"
show_figure(figure, "26_1_spectrum", caption)

# %% [markdown]
# ## A few directions hold almost everything
#
# The picture belongs to one matrix of a small GPT after 100 steps of training: $W_v$ of the last gated
# feed-forward network (lesson 23.3, `23_3_gated_feed_forward_networks`), with shape (64, 170). The blue curve
# shows the 64 singular values of the gradient, divided by the largest. They fall quickly: a step along the
# gradient moves the matrix in a few directions, and hardly at all in others.
#
# The orange curve shows the singular values after the main operation of Muon. They differ by less than a
# factor of 2.
#
# **Question.** What is the largest singular value of the gradient, divided by the middle one?
#
# <details><summary>Answer</summary>
# More than 20.
# </details>

# %%
print(f"largest / middle: {before[0] / before[32]:.0f}")
print(f"after: {after[0]:.2f} to {after[-1]:.2f}")

# %% tags=["check"]
assert before[0] > 20 * before[32]
assert after[0] < min(1.21, 2 * after[-1])

# %% [markdown]
# ## The best step for a matrix
#
# Adam treats every number of a matrix separately. But a matrix is used as a whole: it maps vectors to
# vectors. How much can a step change this map? A step subtracts an update $U$ from the weights $W$, so the
# output changes by $x U$. If $x$ has length 1, the change has at most the length $\sigma_1(U)$, the largest
# singular value.
#
# So allow all updates with $\sigma_1(U) \le 1$, and ask which one lowers the loss most. To first order, the
# loss decreases by $\langle G, U \rangle$: each number of the gradient $G$ times the same number of $U$,
# added up. With the singular value decomposition $G = P\, \mathrm{diag}(\sigma)\, Q^\top$,
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
sizes = {name: np.linalg.svd(update)[1][0] for name, update in updates.items()}
decreases = {name: np.sum(gradient * update) / sizes[name] for name, update in updates.items()}
assert decreases["best"] > 2.8 * max(decreases["gradient"], decreases["signs"])

# %% [markdown]
# Adam's first step uses the signs of the gradient. To first order, the best update lowers the loss three
# times as much as each of the others. That proves nothing: it is the best by construction.

# %% [markdown]
# ## Newton-Schulz iterations
#
# A singular value decomposition in every step would take too long. But we need only the product $P Q^\top$,
# not its parts. For $X = P\, \mathrm{diag}(\sigma)\, Q^\top$, the following sum of matrix products keeps the
# singular vectors, and applies the same polynomial to each singular value:
#
# $$\begin{aligned}
# &a X + b\, (X X^\top) X + c\, (X X^\top)^2 X \\
# &= P\, \mathrm{diag}(a \sigma + b \sigma^3 + c \sigma^5)\, Q^\top
# \end{aligned}$$
#
# If the polynomial brings numbers nearer to 1, applying it several times orthogonalizes the matrix. Each
# application is a **Newton-Schulz iteration**. Jordan et al. (2024) chose $a = 3.4445$, $b = -4.7750$ and
# $c = 2.0315$. First the matrix is divided by its Frobenius norm, so that no singular value is above 1.

# %%
a, b, c = 3.4445, -4.7750, 2.0315
sizes = np.array([1.0, 0.5, 0.1, 0.01, 0.001])  # five singular values
for iteration in range(6):
    print(iteration, *(f"{size:7.3f}" for size in sizes))
    sizes = a * sizes + b * sizes**3 + c * sizes**5

# %% [markdown]
# In each iteration, a small value grows by the factor 3.4, until it is between about .7 and 1.2. It stays in
# this range without converging to 1: the coefficients are chosen for speed. The five iterations of Muon bring
# a value of .01 to .7, but a value of .001 only to .47. Now with matrices:

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
# A single gradient is noisy. So **Muon** keeps a moving average $M$ of the gradients, the momentum. It
# orthogonalizes a weighted mean of $M$ and the newest gradient $G$, so $G$ counts more than in $M$ alone
# (Nesterov's momentum). With $\mu = .95$, its step for a matrix with I rows and O columns is
#
# $$\begin{aligned}
# M &\leftarrow \mu M + (1 - \mu)\, G \\
# U &= \mathrm{orthogonalize}(\mu M + (1 - \mu)\, G) \\
# W &\leftarrow W - \eta \lambda W - .2\, \eta \sqrt{\max(I, O)}\, U
# \end{aligned}$$
#
# AdamW has the same decay. Why the factor before $U$? The numbers of an orthogonalized matrix are small:
# their squares add up to $\min(I, O)$. With the factor their root mean square is .2, which is typical for
# Adam's updates (Liu et al. 2025). So one learning rate serves all parameters, also those that keep AdamW.
#
# **Question.** Embeddings keep AdamW. Why does Muon not suit a table of vectors?
#
# <details><summary>Answer</summary>
# $\sigma_1$ bounds the change for every vector $x$. But a token reads one row of the table, so only the rows
# of the update need a bound, which another update fits best. (Our GPT's output matrix is this table, and
# keeps AdamW.)
# </details>
#
# Gains and biases are not matrices, so they also keep AdamW.

# %% [markdown]
# ## AdamW and Muon, by steps and by time
#
# `npformer experiment muon` trains the last model of lesson 24.3 with both optimizers, on batches of 32
# windows of 64 characters. Trainings of 200 steps with one seed choose the best of three learning rates. Then
# come trainings of 200 and 400 steps with three other seeds.

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
for length, expected in {200: [165, 176, 172, 141], 400: [367, 342, 373, 380]}.items():
    adamw, muon = (np.array([r.measures["loss"] for r in final[length, name]]) for name in RATES)
    pairs = [(adamw.mean(0), muon.mean(0)), *zip(adamw, muon, strict=True)]  # the means first
    at = np.arange(MEASURE_EVERY, length + 1, MEASURE_EVERY)
    # the step at which Muon has AdamW's final loss
    reached = [np.interp(-one[-1], -other, at) for one, other in pairs]
    assert_allclose(reached, expected, atol=1)
rates = {name: of[0].learning_rate for (_, name), of in final.items()}
assert rates == {"AdamW": 0.01, "Muon": 0.04}
search = {(r.model, r.learning_rate): r.valid_loss for r in read_results(MEASURED)[:6]}  # seed 0
assert f"{search['AdamW', 0.01]:.4f} {search['AdamW', 0.02]:.4f}" == "2.0512 2.0513"
for steps in STEPS:
    adamw, muon = (sum(r.measures["seconds"][-1] for r in final[steps, name]) for name in RATES)
    assert 1.07 < muon / adamw < 1.09

# %% [markdown]
# Muon wins with every seed. After about 165 of 200 steps it reaches AdamW's final loss (single seeds: 141 to
# 176). A step takes 8 % longer than with AdamW. So these 165 steps take as long as 178 steps of AdamW, and
# Muon saves 11 % of the time. With 400 steps, it takes as long as 397 steps of AdamW, so it saves almost
# nothing. (Compare seconds only for equally many steps. A step in the runs of 200 steps took one and a half
# times as long as in those of 400 steps, probably because of other load.)
#
# In the search, .04 is the best rate for Muon, while .01 and .02 are equally good for AdamW (2.0512 and
# 2.0513). So the best rates differ by a factor of about 2 to 4, although updates have equal sizes. (In Muon's
# runs, the parameters with AdamW also have .04.)
#
# **Question.** What would be unfair without the search for these rates?
#
# <details><summary>Answer</summary>
# Those who propose a new optimizer tune it, and the old one often keeps settings made for another model. Then
# a part of the difference comes from the search.
# </details>
#
# With 400 steps and the same rates, Muon gains less. The model of the preset `gpt-shakespeare` has nine times
# as many parameters. After 1,300 steps with a weight decay of .1, its loss was 1.484 nats per character with
# Muon, and 1.487 with AdamW. With the best decay that was tried for each, it was 1.455 with Muon, and 1.469
# with AdamW (one run each, `docs/training.md`). So the gain of a short training need not stay so large. (No
# rates were searched for these lengths.) Still, a model of a trillion parameters (Kimi K2, 2025) was trained
# with a variant of Muon.

# %% [markdown]
# ## Summary
#
# - A gradient has a few large singular values. A step along it moves the matrix in a few directions.
# - To first order, $P Q^\top$ lowers the loss most among all updates with the same largest singular value.
# - Newton-Schulz iterations bring singular values near 1 by matrix products only.
# - Muon orthogonalizes the momentum of matrices inside layers. AdamW updates the other parameters.
# - Compare optimizers at their own best learning rates, by time, with several seeds.

# %% [markdown]
# ## Questions
#
# **Question.** Between steps, Muon keeps one array for each matrix, $M$. How many does Adam keep?
#
# <details><summary>Answer</summary>
# Two, $m$ and $v$. So Muon needs half as many numbers for these matrices. (Our class inherits $v$ from Adam
# for all parameters, and leaves it 0 for the matrices.)
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

# %% [markdown]
# # 26.1 · Muon
#
# *About 30 minutes. You need: AdamW (lesson 23.5, `23_5_adamw`), how to compare models (lesson 24.3,
# `24_3_from_2017_to_llama`), singular values.*
#
# **After this lesson you can**
#
# - say why an optimizer may treat a matrix as a whole, and what its best step is then;
# - write Newton-Schulz iterations, which need matrix products only;
# - compare two optimizers by steps and by time.
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
# ## A few directions have nearly all
#
# The picture shows a matrix of a small GPT after 100 steps of training: the value matrix of its last
# feed-forward network, with shape (64, 170). The blue curve shows the 64 singular values of its gradient,
# divided by the largest one. They fall quickly: a step along the gradient moves the matrix in a few
# directions, and hardly at all in the others.
#
# The orange curve belongs to the update that Muon makes from this gradient. All its singular values are about
# equal.

# %%
print(f"largest / middle: {before[0] / before[32]:.0f}")
print(f"largest / smallest: {before[0] / before[-1]:.0f}")
print(f"after: {after[0]:.2f} to {after[-1]:.2f}")

# %% tags=["check"]
assert before[0] > 5 * before[32]
assert after[0] < 1.21
assert after[32] > 0.6

# %% [markdown]
# ## The best step for a matrix
#
# Adam treats every number of a matrix alone. But a matrix is used as a whole: it maps vectors to vectors. How
# far may a step change this map? Let $U$ be the update: $W \leftarrow W - U$. It changes the output by
# $-x U$. For all $x$ of length 1, it changes by at most $\sigma_1(U)$, the largest singular value.
#
# So let us allow all updates with $\sigma_1(U) \le 1$, and ask for the one that lowers the loss most.
# (Another measure of size would give another best update.) To first order, the loss then decreases by
# $\langle G, U \rangle$, the sum of the products of all numbers of the gradient $G$ and the update. With the
# singular value decomposition $G = L\, \mathrm{diag}(\sigma)\, R^\top$,
#
# $$\max_{\sigma_1(U) \le 1} \langle G, U \rangle = \sum_i \sigma_i \quad \text{at} \quad U = L R^\top$$
#
# The best update has the singular vectors of the gradient, and all its singular values are 1. To
# **orthogonalize** a matrix means to replace it by this $L R^\top$.

# %%
left, sigma, right = np.linalg.svd(gradient, full_matrices=False)
best = left @ right
updates = {"gradient": gradient, "signs": np.sign(gradient), "best": best}
for name, update in updates.items():
    scaled = update / np.linalg.svd(update)[1][0]  # the largest singular value is 1
    print(f"{name:9} decrease of the loss {np.sum(gradient * scaled):.3f}")

# %% tags=["check"]
assert_allclose(np.sum(gradient * best), sigma.sum(), rtol=1e-4)

# %% [markdown]
# The signs of the gradient are what Adam's first step uses. All three may change the output equally far, and
# the best one lowers the loss most, as the formula says.

# %% [markdown]
# ## Newton-Schulz iterations
#
# A singular value decomposition in every step would take too long. But we need the products $L R^\top$ only.
# Each factor $X X^\top = L\, \mathrm{diag}(\sigma^2)\, L^\top$ multiplies the singular values by $\sigma^2$
# and keeps the singular vectors. So
#
# $$\begin{aligned}
# &a X + b\, (X X^\top) X + c\, (X X^\top)^2 X \\
# &= L\, \mathrm{diag}(a \sigma + b \sigma^3 + c \sigma^5)\, R^\top
# \end{aligned}$$
#
# So a polynomial that brings numbers nearer to 1, applied several times, orthogonalizes the matrix. This is a
# **Newton-Schulz iteration**. Jordan et al. (2024) chose $a = 3.4445$, $b = -4.7750$ and $c = 2.0315$. First
# the matrix is divided by its Frobenius norm, so that no singular value is above 1.

# %%
A, B, C = 3.4445, -4.7750, 2.0315
value = np.array([1.0, 0.5, 0.1, 0.01, 0.001])
for iteration in range(6):
    print(iteration, *(f"{each:7.3f}" for each in value))
    value = A * value + B * value**3 + C * value**5

# %% [markdown]
# A small value grows by the factor 3.4 in each iteration, until it is between about .7 and 1.2. There it
# stays and never settles: the coefficients are chosen for speed. Muon makes five iterations, so values below
# .0015 of the norm do not reach .7. Now the same with matrices:

# %%


def newton_schulz(g, steps=5):
    """Return a matrix with the singular vectors of g and singular values near 1."""
    x = g / np.linalg.norm(g)
    for _ in range(steps):
        gram = x @ x.T
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x


update = newton_schulz(gradient)
print(f"difference from npformer's function: {abs(update - orthogonalize(gradient)).max():.0e}")

# %% tags=["check"]
assert_allclose(update, orthogonalize(gradient), atol=1e-4)

# %% [markdown]
# ## The whole optimizer
#
# **Muon** orthogonalizes a moving average of the gradients, the momentum, and not a single gradient, which is
# noisy. As in Nesterov's method, the newest gradient is counted once more, in the second line. With
# $\mu = .95$, its step for a matrix of shape (I, O) is
#
# $$\begin{aligned}
# M &\leftarrow \mu M + (1 - \mu)\, G \\
# U &= \mathrm{orthogonalize}(\mu M + (1 - \mu)\, G) \\
# W &\leftarrow W - \eta \lambda W - .2\, \eta \sqrt{\max(I, O)}\, U
# \end{aligned}$$
#
# The decay is that of AdamW. What is the factor for? The numbers of an orthogonalized matrix are small: their
# squares add up to $\min(I, O)$. The factor gives them the root mean square .2, which is typical for Adam's
# updates (Liu et al. 2025). So the parameters with Muon and those with AdamW can share one learning rate in a
# training.
#
# **Question.** Embeddings keep AdamW. Why is Muon not made for a table of vectors?
#
# <details><summary>Answer</summary>
# A table does not map vectors to vectors: a token uses one row of it. So a limit on $\sigma_1$, the largest
# change of a map, does not fit it.
# </details>
#
# Gains and biases are not matrices and keep AdamW, too. Where npformer keeps the matrices of queries, keys
# and values side by side in one array, each of them is orthogonalized alone.

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
show_figure(figure, "26_1_losses", "Training for 200 steps: the mean loss of three seeds")

# %% tags=["check"]
assert min(gains[200]) > 0.03
assert 0 < min(gains[400]) < min(gains[200])
rates = {name: of[0].learning_rate for (_, name), of in final.items()}
assert rates == {"AdamW": 0.01, "Muon": 0.04}

# %% [markdown]
# Muon wins with every seed, at its own best rate: .04, against .01 of AdamW. Its steps take 8 percent longer,
# which is less than it gains: after 150 of 200 steps it is nearly where AdamW ends. (The picture has the loss
# of the first 8,192 tokens of the validation text, and the table that of more tokens.)
#
# With 400 steps and the same learning rates, Muon gains less. And in the preset `gpt-shakespeare`, with eight
# times as many parameters and 1,300 steps, one run with Muon and the learning rate .015 ended at 1.484 nats
# per character, and one with AdamW at 1.487. Is the advantage of Muon gone in a longer training? These
# numbers cannot say, since only the rates for 200 steps were searched. But they warn you: a gain in a short
# training need not last.
#
# **Question.** The learning rates of the two were searched. What would be unfair without this search?
#
# <details><summary>Answer</summary>
# A new optimizer is often tuned by those who propose it, and the old one keeps the settings that others have
# found for another model. Then a part of the difference is the search.
# </details>
#
# With larger batches the extra products cost less: the iterations do not grow with the number of tokens. Muon
# was used to train a model of a trillion parameters (Kimi K2, 2025).

# %% [markdown]
# ## Summary
#
# - A gradient has a few large singular values. A step along it moves the matrix in a few directions.
# - Among all updates that change the output of a matrix equally far, $L R^\top$ lowers the loss most.
# - Newton-Schulz iterations bring all singular values near 1 by matrix products only.
# - Muon does this with the momentum of matrices inside layers. AdamW updates the other parameters.
# - Compare optimizers at their own best learning rates, by time, and with several seeds.

# %% [markdown]
# ## Questions
#
# **Question.** Muon keeps one array per matrix between steps, $M$. How many does Adam keep?
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
# - Change `momentum` in `npformer/training/optimizer.py` to .8 and to .99, and repeat one of the trainings.
#
# **Next**: lesson 26.2 (`26_2_linear_attention_and_the_delta_rule`) replaces the KV cache by one matrix.

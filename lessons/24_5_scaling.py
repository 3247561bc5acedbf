# %% [markdown]
# # 24.5 · Scaling
#
# *About 40 minutes. You need: the loss of a GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`), the experiment of
# lesson 24.3 (`24_3_from_2017_to_llama`), logarithms.*
#
# **After this lesson you can**
#
# - measure how the loss falls with the number of parameters and of training tokens;
# - fit a power law to these losses, and say how certain its exponents are;
# - say which size of a model a scaling law recommends, and how far you may trust it.
#
# `[TRAINING]: batch → model → loss → backward pass → optimizer → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.course import show_figure
from npformer.learn.experiments.measured_runs import read_results
from npformer.learn.experiments.scaling import (
    MEASURED,
    RATES,
    SEEDS,
    SIZES,
    STEPS,
    count_tokens,
    fit_power_law,
    inner_parameters,
    model_config,
)
from npformer.plots import curves

# %% [markdown]
# ## How large, and how long?
#
# You have one computer and one night. You can train a large model on little text, or a small model on much
# text. Which one will have the lower loss?
#
# Let N be the number of parameters, and D the number of training tokens. For each token, the forward pass
# needs about one multiplication and one addition for each parameter, and the backward pass twice as many. So
# a training needs about
#
# $$C = 6\, N D$$
#
# operations.
#
# **Question.** C is given, and you double N. What happens to D?
#
# <details><summary>Answer</summary>
# D is halved. So to choose well, we must know how the loss L depends on N and on D.
# </details>

# %% [markdown]
# Kaplan et al. (*Scaling Laws for Neural Language Models*, 2020) measured the losses of many models. Over a
# large range, the losses followed curves of a simple kind. A **power law** is a function
#
# $$y = a\, x^{-\alpha}$$
#
# If x doubles, y is multiplied by $2^{-\alpha}$, whatever x is. In logarithms, a power law is a straight line
# with the slope $-\alpha$:
#
# $$\ln y = \ln a - \alpha \ln x$$
#
# A power law that predicts the loss of a model from its size is called a **scaling law**. This lesson
# measures a scaling law of very small models.
#
# **Question.** Let $\alpha = 0.5$. By which factor must x grow so that y is halved?
#
# <details><summary>Answer</summary>
# By the factor 4, because $4^{-0.5} = 1/2$. In general, the factor is $2^{1/\alpha}$.
# </details>

# %% [markdown]
# ## The measurement
#
# The experiment trains four models with the parts of Llama on Tiny Shakespeare, each with four numbers of
# tokens and two seeds. Each training has its own cosine schedule, which ends at the last step of this
# training. The results are stored in a file. The command `npformer experiment scaling` makes such a file
# anew.
#
# A training has two sizes: the N parameters, given by width and layers, and the D tokens that it reads, 512
# in each step. Its result is the validation loss L (N, D), and a law is fitted to all of these losses.

# %%
results = [result for result in read_results(MEASURED) if result.seed in SEEDS]
N = np.array([inner_parameters(size) for size in SIZES])  # (sizes,)
D = np.array([count_tokens(steps) for steps in STEPS])  # (lengths,)
by_cell = {(size, steps): [] for size in SIZES for steps in STEPS}
for result in results:
    by_cell[result.model, result.steps].append(result.valid_loss)
losses = np.array(list(by_cell.values())).reshape(len(N), len(D), len(SEEDS))
L = losses.mean(-1)  # (sizes, lengths)
print("         N      D =", *(f"{d:8,}" for d in D))
for size, n, row in zip(SIZES, N, L, strict=True):
    print(f"{size:7}{n:8,}    ", *(f"{loss:8.3f}" for loss in row))
print(f"the largest difference between two seeds: {np.ptp(losses, axis=-1).max():.3f}")

# %% [markdown]
# Each number is the mean of two seeds. The mean loss falls in each row and in each column. But two models can
# differ less than two seeds. For example, 2.396 and 2.391 differ by .005, and two seeds by up to .084. N does
# not count the embedding, as in Kaplan et al.
#
# Each model was trained with the best of three learning rates, chosen with one seed and 256 steps. The best
# rate of the three smallest models is .04, the largest rate that was tried. The best rate of the largest
# model is .01, the smallest one. So a rate that was not tried might be better for every model, and this would
# change the exponents.

# %% tags=["check"]
assert (np.diff(L, axis=0) < 0).all()
assert (np.diff(L, axis=1) < 0).all()
rates = {result.model: result.learning_rate for result in results}
assert [rates[size] for size in SIZES] == [max(RATES)] * 3 + [min(RATES)]
assert f"{L[2, 0]:.3f} {L[3, 0]:.3f}" == "2.396 2.391"

# %% tags=["plot"]
labels = {"labels": [f"{n:,} parameters" for n in N], "xlabel": "training tokens D"}
figure = curves(L, D, **labels, ylabel="loss L", xscale="log", yscale="log")
figure.axes[0].set(xticks=D, xticklabels=[f"{d:,}" for d in D], yticks=[2, 2.2, 2.4, 2.6, 2.8])
caption = "Longer trainings and larger models have lower losses"
show_figure(figure, "24_5_losses", caption)

# %% [markdown]
# ## A straight line in logarithms
#
# How large is the exponent? A line through points is fitted by **least squares**: the sum of the squared
# differences from the line is made as small as possible. With $u = \ln x$ minus its mean, the slope is
# $\sum u \ln y / \sum u^2$. The cell uses the losses of the four models after the longest training. It fits
# three lines: a line to all four models, a line to the three smallest models, and a line to the three largest
# models.

# %%
u = np.log(N) - np.log(N).mean()  # (sizes,)
slope = u @ np.log(L[:, -1]) / (u @ u)
parts = [fit_power_law(N[part], L[part, -1])[1] for part in (slice(3), slice(-3, None))]
print(f"α = {-slope:.3f}, three smallest {parts[0]:.3f}, three largest {parts[1]:.3f}")

# %% tags=["check"]
assert_allclose(fit_power_law(N, L[:, -1])[1], -slope, rtol=1e-9)
assert 0.04 < -slope < 0.06
assert 2 ** (-1 / slope) > 1e5
assert np.ptp(parts) < 0.005

# %% [markdown]
# The exponent is about .05, which is small: if the line went on, a model would have to be more than 100,000
# times as large to halve the loss. Kaplan et al. found the exponent .076, with another text, other tokens,
# and models that were trained nearly until their loss no longer fell.
#
# The three smallest models have about the same exponent as the three largest. But after the shorter
# trainings, that of the three largest is smaller. So four points do not show whether the line is straight.

# %% tags=["check"]
for shorter in L.T[:-1]:
    assert fit_power_law(N[-3:], shorter[-3:])[1] < fit_power_law(N[:3], shorter[:3])[1]

# %% [markdown]
# ## A law with three terms
#
# A power law falls to 0. But even a perfect model has a loss, the entropy of the text. This is the
# **irreducible loss** E. And a large model cannot be good after a short training. Therefore, Hoffmann et al.
# (*Training Compute-Optimal Large Language Models*, 2022) fitted three terms:
#
# $$L(N, D) = E + \frac{A}{N^\alpha} + \frac{B}{D^\beta}$$
#
# The cell defines a function that computes 1, $N^{-\alpha}$ and $D^{-\beta}$. These are the terms without the
# factors E, A and B. The function divides N and D by 10,000, so that all terms have similar sizes.

# %%
grid = np.arange(0.02, 1.5, 0.02)
alpha, beta = (exponents.ravel() for exponents in np.meshgrid(grid, grid))  # (G,) each


def terms(n, d, alpha, beta):
    """Return the columns 1, (n / 10,000)^-α and (d / 10,000)^-β: (..., points, 3)."""
    alpha, beta = np.asarray(alpha)[..., None], np.asarray(beta)[..., None]
    n, d = n / 1e4, d / 1e4
    return np.stack([np.ones_like(n**-alpha), n**-alpha, d**-beta], -1)


# %% [markdown]
# If we knew $\alpha$ and $\beta$, the law would be linear in E, A and B. Let X be the matrix with the columns
# 1, $N^{-\alpha}$ and $D^{-\beta}$. Then the solution of least squares is $X^+ \ell$: the pseudoinverse of X,
# multiplied by the vector $\ell$ of the losses. So we try a grid of pairs $(\alpha, \beta)$, and keep the
# pair with the smallest sum of squares. E must not be negative.

# %%


def fit_law(n, d, y):
    """Return E, A, B, α and β of the law that fits each row of y (R, points) best: (R, 5)."""
    x = terms(n, d, alpha, beta)  # (G, points, 3)
    found = np.linalg.pinv(x) @ y.T  # (G, 3, R)
    # the sum of squares: that of y without that of the fitted values
    squares = (y**2).sum(-1) - (found * (x.swapaxes(1, 2) @ y.T)).sum(1)  # (G, R)
    best = np.where(found[:, 0] >= 0, squares, np.inf).argmin(0)  # (R,)
    rows = found[best, :, np.arange(len(y))]  # (R, 3)
    return np.column_stack([rows, alpha[best], beta[best]])


# %% [markdown]
# A new method is tested first on numbers whose answer is known. Here the losses come from a law with chosen
# exponents. Then the cell fits the measured losses. It also prints the standard deviation of the
# **residuals**, which are the measured losses minus the fitted ones.

# %%
n, d = (axis.ravel() for axis in np.meshgrid(N, D, indexing="ij"))  # (16,) each
known = terms(n, d, 0.3, 0.4) @ [1.5, 0.4, 0.7]  # (16,)
print("found E, A, B, α, β:", fit_law(n, d, known[None])[0].round(3))
law = fit_law(n, d, L.reshape(1, -1))[0]
fitted = terms(n, d, law[3], law[4]) @ law[:3]  # (16,)
residuals = L.ravel() - fitted
print("the measured losses:", law.round(3))
print(f"standard deviation of the residuals: {residuals.std():.3f}")

# %% tags=["check"]
assert_allclose(fit_law(n, d, known[None])[0], [1.5, 0.4, 0.7, 0.3, 0.4], rtol=1e-6)

# %% [markdown]
# ## How certain are the exponents?
#
# The losses have errors: another seed gives other losses, and the law itself is not exact. How much could the
# exponents change? The **bootstrap** answers this question by drawing new data sets. Each data set consists
# of the losses of the fitted law, plus residuals that are drawn at random. The law is fitted to each data
# set. The range of the fitted exponents shows their uncertainty.

# %%
rng = np.random.default_rng(0)
corrected = residuals * np.sqrt(len(residuals) / (len(residuals) - 5))  # (16,)
drawn = fitted + rng.choice(corrected, (500, len(residuals)))  # (500, 16)
laws = fit_law(n, d, drawn)  # (500, 5)
for name, value, column in zip(["E", "A", "B", "α", "β"], law, laws.T, strict=True):
    low, high = np.quantile(column, [0.05, 0.95])
    print(f"{name} = {value:.2f}, 90 % of the draws between {low:.2f} and {high:.2f}")

# %% [markdown]
# The fit makes the residuals smaller than the errors, because five numbers were fitted. So the cell
# multiplies the residuals by $\sqrt{16 / (16 - 5)}$. In all draws, the loss falls with N and with D. But **E
# is hardly known**. In a small range, two laws give nearly the same losses: one with a small E and a small
# exponent, and one with a large E and a large exponent. So $\alpha$ is not well known either: the upper end
# of its interval is more than five times the lower end.

# %% tags=["check"]
low, high = np.quantile(laws, [0.05, 0.95], axis=0)  # (5,) each
assert laws[:, 1:3].min() > 0  # the factors A and B
assert high[0] - low[0] > 0.4
assert high[3] / low[3] > 5

# %% [markdown]
# ## Does the law predict?
#
# A law is useful if it predicts losses that were not measured. We hide the largest model and the longest
# training, and fit the law to the other nine losses. Then we predict the loss of the largest model after the
# longest training: both N and D lie outside of the fitted range. The bootstrap of the nine losses shows how
# uncertain this prediction is. The hidden loss had no influence on the five numbers of the law, so this test
# is stricter than small residuals.

# %%
inside = (n < N[-1]) & (d < D[-1])  # (16,)
partly = fit_law(n[inside], d[inside], L.ravel()[None, inside])[0]
predicted = (terms(N[-1], D[-1], partly[3], partly[4]) @ partly[:3]).item()
fitted_inside = terms(n[inside], d[inside], partly[3], partly[4]) @ partly[:3]  # (9,)
left = (L.ravel()[inside] - fitted_inside) * np.sqrt(9 / (9 - 5))  # (9,)
drawn = fitted_inside + rng.choice(left, (500, 9))  # (500, 9)
partly_drawn = fit_law(n[inside], d[inside], drawn)  # (500, 5)
columns = terms(N[-1], D[-1], partly_drawn[:, 3], partly_drawn[:, 4])[:, 0]  # (500, 3)
low, high = np.quantile((columns * partly_drawn[:, :3]).sum(-1), [0.05, 0.95])
error = predicted - L[-1, -1]
print(f"predicted {predicted:.3f}, 90 % of the draws between {low:.2f} and {high:.2f}")
print(f"measured {L[-1, -1]:.3f}, difference {error:+.3f}")
print(f"the lowest of the nine losses: {L[inside.reshape(L.shape)].min():.3f}")

# %% tags=["check"]
assert low < L[-1, -1] < predicted < high
assert abs(error) < (L[inside.reshape(L.shape)].min() - L[-1, -1]) / 2

# %% [markdown]
# A simple guess for the hidden loss is the lowest of the nine losses. The prediction is closer to the
# measured loss than this guess. It is too high, but the measured loss lies in the interval of the draws. So
# this test does not contradict the law. But the interval is wide, and for a much larger model it would be
# wider.
#
# ## The best size for a given computation
#
# Let the number C of operations be given, so that $D = C / (6 N)$. If we insert this D into the law, the loss
# depends on N only. At the best size, the derivative of this loss with respect to N is 0. This gives
# $\alpha A N^{-\alpha} = \beta B D^{-\beta}$, and therefore
#
# $$N_{\mathrm{best}} \propto C^{\,\beta / (\alpha + \beta)}$$
#
# If the exponent $\beta / (\alpha + \beta)$ is 1/2, then N and D should grow equally: four times as many
# operations are best spent on twice as many parameters and twice as many tokens.

# %%
share = laws[:, 4] / (laws[:, 3] + laws[:, 4])  # (500,)
low, high = np.quantile(share, [0.05, 0.95])
best = law[4] / (law[3] + law[4])
print(f"exponent of the best N: {best:.2f}, 90 % of the draws between {low:.2f} and {high:.2f}")
total = np.array([model_config(size).count_parameters() for size in SIZES])  # (sizes,)
n_total, _ = (axis.ravel() for axis in np.meshgrid(total, D, indexing="ij"))
_, _, _, a, b = fit_law(n_total, d, L.reshape(1, -1))[0]
print(f"with the embedding: α {a:.2f} instead of {law[3]:.2f}, exponent {b / (a + b):.2f}")

# %% tags=["check"]
assert low < 0.5 < 0.73 < high
assert a - law[3] > 0.02
assert low < b / (a + b) < best

# %% [markdown]
# Kaplan et al. found the exponent .73: a larger computer should mostly train larger models. Hoffmann et al.
# found about .5. Their model with 70 billion parameters was better than one
# with 280 billion, for the same number of operations.
#
# Why? Porian et al. (2024) repeated both studies and found three causes. Kaplan et al. did not count the
# operations of the last layer, their warm-up was too long for small models, and they did not tune the
# optimizer for each size. The last layer of our models is the matrix of the embedding. If N counts it, the
# exponent falls from .72 to .65, in the direction of the first cause. But the interval contains both .73 and
# .5, so our experiment cannot decide.
#
# **In 2025**, small models read far more tokens than this optimum: Qwen3 with 8 billion parameters read 36
# trillion.

# %% [markdown]
# ## What a small range can show

# %%
print(f"N: largest / smallest = {N[-1] / N[0]:.0f}, in Kaplan et al. {1.5e9 / 768:,.0f}")
print(f"D: largest / smallest = {D[-1] / D[0]:.0f}")

# %% [markdown]
# In such a small range, many curves fit equally well. So our experiment has limits:
#
# - The experiment can show the direction and the rough size of an effect. In our one test it also roughly
#   predicted the loss of a model with 2.7 times as many parameters and twice as many tokens.
# - The experiment cannot show the irreducible loss. Our fit gives 1.53, but a larger model with a longer
#   context has a loss of 1.43 on this text (`gpt-shakespeare-long` in `docs/training.md`).
# - The experiment cannot predict the loss of a model that is a thousand times larger. The bootstrap assumes
#   that the law has the right form, and nothing tests this assumption for such a model.

# %% [markdown]
# The choices of the experiment matter too. The embedding is a large part of a narrow model, so $\alpha$
# depends on whether N counts it. And large models are trained on other texts.

# %% [markdown]
# ## Summary
#
# - A power law $y = a\, x^{-\alpha}$ is a straight line in logarithms, and is fitted by least squares.
# - The law $L = E + A / N^\alpha + B / D^\beta$ has one term for the size of the model, one term for the
#   length of the training, and the irreducible loss.
# - The bootstrap fits the law to many drawn data sets, and the range of the results shows the uncertainty.
# - The best size for C operations grows as $C^{\beta / (\alpha + \beta)}$.
# - A small experiment shows directions. In our one test it roughly predicted the loss of a model with 2.7
#   times as many parameters. It does not determine E.

# %% [markdown]
# ## Questions
#
# **Question.** A text has 1 million characters. You train a model for 100 million tokens on it. Does the law
# still hold?
#
# <details><summary>Answer</summary>
# No. D counts a token each time that it is read. We fitted the law to trainings that read at most about half
# as many tokens as the text has. A large model that reads the same text a hundred times learns it by heart,
# and its validation loss rises. A small one gains less and less from each repetition.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 24` lists the exercises of this chapter.
#
# - `npformer exercise start power-law`: fit a power law by least squares in logarithms.
# - `npformer experiment scaling` repeats the experiment on your computer.
#
# **Next**: lesson 25 (`25_a_real_model_under_the_microscope`), which loads a model that other people trained.

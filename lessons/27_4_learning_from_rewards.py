# %% [markdown]
# # 27.4 · Learning from rewards
#
# *About 30 minutes. You need: the score-function estimator and baselines (lessons 19.2,
# `19_2_the_score_function_estimator`, and 19.3, `19_3_baselines`), lesson 27.3
# (`27_3_fine_tuning_on_answers`).*
#
# **After this lesson you can**
#
# - train a language model on its own answers, with GRPO;
# - explain the advantage, the clipped ratio and the KL term, and compute the gradient of the loss;
# - name two ways in which such a training fails, and what prevents them.
#
# `training: batch → model → [LOSS] → backward pass → optimizer → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import group_advantages, grpo, grpo_backward
from npformer.learn.course import show_figure
from npformer.learn.experiments.addition import (
    FINE_TUNED,
    MEASURED,
    SEEDS,
    TOKENS,
    VARIANTS,
    draw_answers,
    draw_problems,
    fine_tune,
    pass_rates,
    reinforce,
)
from npformer.learn.experiments.measured_runs import MEAN_OF, Measured, read_results
from npformer.plots import curves

results = {(r.model, r.seed): r for r in read_results(MEASURED, Measured)}

# %% tags=["plot"]
shown = ["GRPO", "no baseline", "no baseline, reward 0 or -1"]
points = np.array([np.mean([results[name, seed].curve for seed in SEEDS], 0) for name in shown])
steps = (np.arange(points.shape[1]) + 1) * MEAN_OF
labels = ["GRPO", "rewards 1 and 0", "rewards 0 and −1"]
names = {"labels": labels, "ylabel": "share of right answers"}
caption = "Trainings with rewards: GRPO, and two without a baseline"
show_figure(curves(points, steps, **names), "27_4_rewards", caption)

# %% [markdown]
# ## Nobody says what is right
#
# The GPT of lesson 27.3 adds two numbers correctly in about one of three draws. Now it gets no more answers
# to copy. It draws answers itself, and a program gives each a **reward**. With 1 for a right answer and 0 for
# a wrong one, the share of right answers rises above a half. Now subtract 1 from all rewards. A right answer
# is still better than a wrong one by 1. But the share of right answers falls, from .32 before the training to
# .22 on average in the first ten steps. After 150 steps, it is still below .32. (Each point of a curve is the
# mean of ten steps and of three seeds.) Why does a constant matter? And why does it not matter for GRPO,
# which this lesson explains?

# %% tags=["check"]
rate = {key: result.values["pass@1"] for key, result in results.items()}
mean = {name: np.mean([rate[name, seed] for seed in SEEDS]) for name in (FINE_TUNED, *shown)}
assert mean["no baseline, reward 0 or -1"] < mean[FINE_TUNED] < 0.5 < mean["no baseline"]
assert_allclose([mean[FINE_TUNED], points[2][0]], [0.32, 0.22], atol=0.005)
assert points[2].max() < 0.3

# %% [markdown]
# A drawn answer has no derivative with respect to the weights. You know this problem from chapter 19. The
# score-function estimator takes the gradient of $\log p$ of the drawn answer, and multiplies it by the
# reward:
#
# $$\nabla\, \mathrm{E}[r] = \mathrm{E}\left[ (r - b)\, \nabla \log p(\mathrm{answer}) \right]$$
#
# where $r$ is the reward of the answer, and $b$ any baseline that does not depend on the draw.

# %% [markdown]
# **Question.** What is the mean of $b\, \nabla \log p(\mathrm{answer})$ over all draws?
#
# <details><summary>Answer</summary>
# 0, since $\sum_y p(y)\, \nabla \log p(y) = \nabla \sum_y p(y) = \nabla 1 = 0$ (lesson 19.3).
# </details>
#
# So a constant in the rewards does not change the mean gradient. But a step uses the answers of one batch, in
# which $b\, \nabla \log p$ does not cancel exactly. What remains is noise, which damages what the model has
# learned. A good baseline makes the noise small.
#
# ## The group is the baseline
#
# **Group relative policy optimization** (GRPO, Shao et al. 2024) draws $G$ answers to each prompt. Their mean
# reward is the baseline. The **advantage** of an answer is
#
# $$A_i = \frac{r_i - \mathrm{mean}(r_1 \dots r_G)}{\mathrm{std}(r_1 \dots r_G)}$$
#
# The mean contains $r_i$ itself, so this baseline does depend on the draw. If the division by the standard
# deviation is left out, this dependence only makes the expected gradient smaller, by the factor
# $(G - 1) / G$. The next cell draws eight answers to each of three prompts.

# %%
seed = 2
model, _ = fine_tune(seed)
prompts, answers = (np.repeat(ids, 8, 0) for ids in draw_problems(np.random.default_rng(5), 3))
drawn = draw_answers(model, prompts, np.random.default_rng(0))  # (P · G, 3)
rewards = (drawn == answers).all(1).astype(float).reshape(3, 8)  # (P, G)
centred = rewards - rewards.mean(1, keepdims=True)
advantages = centred / np.maximum(rewards.std(1, keepdims=True), 1e-9)
for prompt, row, values in zip(prompts[::8], rewards, advantages, strict=True):
    text = "".join(TOKENS[token] for token in prompt)
    print(text, " rewards", row.astype(int), " advantages", values[:4].round(2), "...")

# %% tags=["check"]
assert_allclose(advantages, group_advantages(rewards), atol=1e-6)
assert_allclose(advantages.sum(1), 0, atol=1e-9)

# %% [markdown]
# An answer that is right where most are wrong has a large advantage. If all eight are right, or all are
# wrong, nothing can be learned from them, and their advantages are 0.
#
# **Question.** A teacher gives rewards of 0 and −1 instead of 1 and 0. What changes in the advantages? And
# what changes if each $\nabla \log p(\mathrm{answer})$ is multiplied by the reward itself, without a
# baseline?
#
# <details><summary>Answer</summary>
# The advantages stay the same, since the mean changes with the rewards. Without a baseline, right answers now
# have the factor 0, and wrong ones −1. The mean gradient stays the same, but the noise grows: while a third
# of the answers are right, the mean square of the factors is two thirds instead of one third.
# </details>

# %% [markdown]
# ## The loss of a token
#
# An answer has several tokens, and $\log p(\mathrm{answer})$ is the sum of their $\log p$. Several updates
# may use the same draws. After the first update, the probability $p$ of a token differs from the probability
# $p_{old}$ with which it was drawn. The **ratio** $\rho = p / p_{old}$ corrects this. The correction is
# reliable only while $\rho$ is near 1, so the objective is clipped at $1 \pm \varepsilon$, usually with
# $\varepsilon = .2$ (Schulman et al. 2017). GRPO also keeps the model near a **reference**, the fine-tuned
# model, with $q = p_{ref} / p$:
#
# $$\begin{aligned}
# L &= \mathrm{mean}\left[ -\min(\rho A,\ \mathrm{clip}(\rho, 1 - \varepsilon, 1 + \varepsilon)\, A)
#      + \beta\, (q - \log q - 1) \right] \\
# \frac{\partial L}{\partial \log p} &= \frac{1}{M} \left[ -\rho A + \beta\, (1 - q) \right]
# \end{aligned}$$
#
# The mean is over all $M$ tokens of the answers, and the second line is the gradient for one token. To derive
# it, use $d\rho / d \log p = \rho$ and $dq / d \log p = -q$. Where the minimum is the clipped term, $-\rho A$
# is missing. Before the first update, $\rho$ is 1, and this term gives the score-function estimator,
# $-A\, \nabla \log p$.

# %%
rng = np.random.default_rng(27)
old, reference = rng.standard_normal((2, 4, 3)) - 2  # (N, T) log-probabilities
log_probs = old + 0.2 * rng.standard_normal((4, 3))
advantage, mask = np.array([1.5, -0.5, 0.0, -1.0]), np.ones((4, 3), bool)
loss, cache = grpo(log_probs, old, reference, advantage, mask, clip=0.2, beta=0.3)
rho, q = np.exp(log_probs - old), np.exp(reference - log_probs)
A = advantage[:, None]  # (N, 1) the same for all tokens of an answer
objective = np.minimum(rho * A, np.clip(rho, 0.8, 1.2) * A)
by_hand = (0.3 * (q - np.log(q) - 1) - objective).mean()
show(cache)

# %% tags=["check"]
assert_allclose(loss, by_hand)
pair = (lambda x: grpo(x, old, reference, advantage, mask)), grpo_backward
report = gradcheck(pair, log_probs)
assert report.ok

# %% [markdown]
# The mean of $q - \log q - 1$ over draws of the model is $\mathrm{KL}(p \| p_{ref})$, the divergence of the
# model from the reference, because the mean of $q$ is 1. Unlike $-\log q$ alone, $q - \log q - 1$ is never
# negative (Schulman 2020). So $\beta\, (q - \log q - 1)$ is called the KL term.
#
# The gradient of $q - \log q - 1$ is computed with the draws held fixed. For one draw, it is
# $(1 - q)\, \nabla \log p$. Its mean over all draws is $\sum (p - p_{ref})\, \nabla \log p$. Since
# $\sum p\, \nabla \log p = 0$, it is $-\sum p_{ref}\, \nabla \log p$. This is the gradient of
# $\mathrm{KL}(p_{ref} \| p)$, the divergence in the other direction. Both divergences are 0 only at the
# reference.
#
# **Question.** An update has changed a token's probability, and $\rho = 1.3$. For which sign of the advantage
# does the token still get a gradient from the first term?
#
# <details><summary>Answer</summary>
# For a negative advantage: the probability has risen, but it should fall. With a positive advantage, the
# minimum is the clipped term, which is constant: the probability has already risen by more than 20 %.
# </details>

# %% [markdown]
# ## The training
#
# One step draws 8 answers to each of 16 prompts, computes their advantages, and updates the model once. So
# $\rho$ is always 1 here, and nothing is ever clipped: the ratio and the clip are for trainings that use a
# draw several times. The step is the function `policy_step`, some lines in
# `npformer/learn/experiments/addition.py`. The cell makes 150 steps with $\beta = .04$.

# %%
learner, share = reinforce(model, seed, VARIANTS[0])
before, after = pass_rates(model, seed, 200), pass_rates(learner, seed, 200)
print(f"pass@1 {before['pass@1']:.2f} → {after['pass@1']:.2f}")
print(f"pass@8 {before['pass@8']:.2f} → {after['pass@8']:.2f}")

# %% tags=["check"]
assert after["pass@1"] > before["pass@1"]

# %% [markdown]
# ## What each part does
#
# The stored results are those of three seeds. Some runs lack a part. Where nothing else is said, $\beta$ is
# .04. In the last two runs, the judge is lazy: the reward is 1 if the last digit of an answer is right.

# %%
print(f"{'mean of three seeds':30} pass@1 pass@8 last digit")
for name in (FINE_TUNED, *(variant.name for variant in VARIANTS)):
    rows = [list(results[name, each].values.values()) for each in SEEDS]
    print(f"{name:30}", *(f"{value:6.2f}" for value in np.mean(rows, 0)))

# %% tags=["check"]
for each in SEEDS:
    assert rate["GRPO", each] > rate[FINE_TUNED, each] + 0.1
    assert rate["no baseline, reward 0 or -1", each] < rate["GRPO", each] - 0.1
    assert abs(rate["no KL term", each] - rate["GRPO", each]) < 0.1
    assert rate["last digit, no KL term", each] < rate["last digit, beta 0.3", each] - 0.1
    assert results["last digit, no KL term", each].values["last digit"] > 0.7

# %% [markdown]
# - **GRPO** raises pass@1 towards the pass@8 that the model had before. It raises pass@8 little: the model
#   learned to prefer answers that it could give already.
# - **Without a baseline**, rewards of 1 and 0 train as well as GRPO does here. With the same rewards minus 1,
#   150 steps gain nothing.
# - **Without the KL term**, the training is about as good, as long as the reward is what we want.
# - With the **lazy judge**, the last digit is right more often than before, in both runs. Without the KL
#   term, the other digits are forgotten, since nobody looks at them: the reward rises, and fewer answers are
#   right than before the training. This is **reward hacking**. A KL term with $\beta = 0.3$ prevents it.

# %% tags=["check"]
for each in SEEDS:
    hacked, held = "last digit, no KL term", "last digit, beta 0.3"
    assert rate[hacked, each] < rate[FINE_TUNED, each] < rate[held, each]
    digit = [results[name, each].values["last digit"] for name in (FINE_TUNED, hacked, held)]
    assert min(digit) == digit[0]

# %% [markdown]
# Is it really noise that spoils the training with rewards 0 and −1? Three further runs with each seed, which
# are not in the file, show it. With a quarter of the learning rate, the share of right answers rises. With
# eight times as many prompts in each step, pass@1 reaches .60 or more in 60 steps. And with rewards of 2 and
# 1, which push up every drawn answer, the share falls even lower, since the mean square of the factors is
# even larger.

# %% tags=["check"]
shifted = VARIANTS[2]._replace(learning_rate=VARIANTS[2].learning_rate / 4, steps=40)
up = VARIANTS[1]._replace(penalty=-1.0, steps=40)  # rewards 2 and 1
slow, twice = (np.mean(reinforce(model, seed, variant)[1][-20:]) for variant in (shifted, up))
assert slow > 0.33 > np.mean(results[VARIANTS[2].name, seed].curve) > twice

# %% [markdown]
# Where a program can check answers, a reward is exact. Elsewhere another model gives the rewards, and this
# model can be cheated.

# %% [markdown]
# ## Summary
#
# - GRPO draws several answers to each prompt, and multiplies $\nabla \log p$ of their tokens by the
#   advantage.
# - The advantage is the reward minus the mean of the group, divided by the standard deviation.
# - The ratio corrects for updates since the draw. Clipping limits how much one draw changes the model.
# - A constant in the rewards leaves the mean gradient as it is, but changes the noise. A good baseline makes
#   the noise small.
# - The KL term keeps what the reward does not measure.

# %% [markdown]
# ## Questions
#
# **Question.** Why does pass@8 hardly rise?
#
# <details><summary>Answer</summary>
# Only answers that were drawn can be rewarded. Where all eight answers are wrong, all advantages are 0, and
# nothing is learned from this prompt.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter.
#
# - `npformer exercise start group-advantages`: compute the advantages of a batch of groups.
# - `npformer experiment addition` repeats the experiment in two minutes of processor time.
# - Run `reinforce(model, seed, VARIANTS[2]._replace(learning_rate=2.5e-4))`, with rewards 0 and −1. Compare
#   the shares that it returns with those of `VARIANTS[2]`, whose learning rate is .001.
#
# GRPO comes from Shao et al., "DeepSeekMath" (2024). Liu et al., "Understanding R1-Zero-like training"
# (2025), leave out the division by the standard deviation. The division gives more weight to prompts whose
# answers are nearly all right or nearly all wrong.
#
# **Next**: lesson 27.5 (`27_5_learning_from_preferences`), which learns from pairs of answers.

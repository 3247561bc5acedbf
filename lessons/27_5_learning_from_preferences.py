# %% [markdown]
# # 27.5 · Learning from preferences
#
# *About 30 minutes. You need: KL divergence (lesson 12.1, `12_1_the_cross_entropy`), lesson 27.4
# (`27_4_learning_from_rewards`).*
#
# **After this lesson you can**
#
# - derive the loss of direct preference optimization (DPO) from a reward with a KL term;
# - explain why it needs neither a model of rewards nor draws during the training;
# - say which pairs of answers have large gradients.
#
# `training: batch → model → [LOSS] → backward pass → optimizer → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional import dpo, dpo_backward, sigmoid
from npformer.learn.course import show_figure
from npformer.learn.experiments.addition import (
    FINE_TUNED,
    MEASURED,
    PREFERENCES,
    PROMPT,
    SEEDS,
    TOKENS,
    answer_log_probs,
    draw_pairs,
    fine_tune,
    prefer,
)
from npformer.learn.experiments.measured_runs import Measured, read_results
from npformer.plots import curves

# %%
nothing = np.zeros(1)
margins = np.linspace(-6, 6, 61)
losses = np.array([dpo(np.array([m]), nothing, nothing, beta=1.0)[0] for m in margins])
slopes = -(1 - sigmoid(margins)[0])

# %% tags=["plot"]
names = {"labels": ["loss", "its derivative"], "xlabel": "margin of the better answer"}
figure = curves([losses, slopes], margins, legend=True, **names)
show_figure(figure, "27_5_loss", "The loss of a pair of answers")

# %% [markdown]
# ## Which answer is better?
#
# For a sum, a program can say what is right. For a summary or a poem, nobody can give a number. But people
# can say which of two answers they prefer. From many such pairs, a model can learn.
#
# The usual way was long: train a second model to predict rewards from the preferences, then train the
# language model with these rewards, as in lesson 27.4. **Direct preference optimization** (DPO, Rafailov et
# al. 2023) needs only one training, with the loss in the picture. The **reference** is the model before the
# training. The **margin** compares the model with the reference: by how much has the preference for the
# better answer grown?
#
# **Question.** Which pairs have the largest gradients?
#
# <details><summary>Answer</summary>
# Those with a negative margin: the preference for the better answer has become smaller. A pair with a large
# positive margin has a gradient near 0.
# </details>
#
# ## The derivation
#
# **1. What we want.** For a prompt, let $p(y)$ be the model's probability of an answer $y$, and $p_{ref}(y)$
# the reference's probability. As in lesson 27.4, we want large rewards and a model near the reference. So we
# maximize
#
# $$\sum_y p(y)\, r(y) - \beta \sum_y p(y) \log \frac{p(y)}{p_{ref}(y)}$$
#
# **Question.** Why is the second term a KL divergence, and what would $p$ be without it?
#
# <details><summary>Answer</summary>
# It is the mean of $\log p - \log p_{ref}$ over draws from $p$. Without it, the answer with the largest
# reward would get all the probability.
# </details>
#
# **2. Its maximum.** Let $p^*(y) = p_{ref}(y)\, e^{r(y)/\beta} / Z$, where $Z$ is the number that makes these
# probabilities add up to 1. The logarithm of $p^*$ says
# $r(y) = \beta \log (p^*(y) / p_{ref}(y)) + \beta \log Z$. Insert this for $r$:
#
# $$\sum_y p(y) \left[ r(y) - \beta \log \frac{p(y)}{p_{ref}(y)} \right]
# = \beta \log Z - \beta \sum_y p(y) \log \frac{p(y)}{p^*(y)}$$
#
# The last sum is the KL divergence of $p$ from $p^*$. It is never negative, and it is 0 only if $p = p^*$. So
# $p^*$ is the maximum.
#
# For a large $\beta$, $e^{r/\beta}$ is nearly 1 and $p^*$ is nearly the reference.

# %%
beta, reference, reward = 0.5, np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 0.5])
best = reference * np.exp(reward / beta)
best = best / best.sum()


def objective(p):
    """Return the mean reward minus β times the divergence from the reference."""
    return p @ reward - beta * p @ np.log(p / reference)


others = np.random.default_rng(27).dirichlet(np.ones(3), 1000)
print("p*", best.round(3), f" objective {objective(best):.6f}")
print(f"the best of 1000 others: {max(map(objective, others)):.6f}")

# %% tags=["check"]
assert all(objective(p) < objective(best) for p in others)

# %% [markdown]
# **3. From a model to a reward.** Every language model $p$ is the maximum for some reward, namely
# $r(y) = \beta \log \frac{p(y)}{p_{ref}(y)} + c$ with any constant $c$. If you put this reward into step 2,
# $p^*$ is $p$. So every model stands for a reward.
#
# **4. Preferences.** Bradley and Terry (1952) suppose that people prefer an answer $w$ to an answer $l$ with
# probability $\sigma(r(w) - r(l))$, where $\sigma$ is the sigmoid. In the difference, the constant $c$
# cancels. This is decisive: for a reward $r$, the constant is $\beta \log Z$ (step 2), and nobody can compute
# $Z$, a sum over all possible answers. If $w$ was preferred, the loss of the pair is $-\log$ of this
# probability:
#
# $$\begin{aligned}
# m &= \beta \left[ (\log p(w) - \log p(l)) - (\log p_{ref}(w) - \log p_{ref}(l)) \right] \\
# L &= \mathrm{mean}\left[ -\log \sigma(m) \right], \qquad \frac{dL}{dm} = -\frac{1 - \sigma(m)}{B}
# \end{aligned}$$
#
# The mean is over the B pairs. This loss is the cross-entropy of a classifier with two classes, whose logit
# is the margin $m$.

# %%
rng = np.random.default_rng(27)
chosen, rejected, reference_margin = rng.standard_normal((3, 4))  # (B,)
loss, cache = dpo(chosen, rejected, reference_margin, beta=0.5)
margin = 0.5 * (chosen - rejected - reference_margin)
by_hand = -np.log(1 / (1 + np.exp(-margin))).mean()
dchosen, drejected = dpo_backward(1.0, cache)
print("margins ", margin.round(2))
print("dchosen ", dchosen.round(3))

# %% tags=["check"]
assert_allclose(loss, by_hand)
assert_allclose(dchosen, -0.5 / (1 + np.exp(margin)) / 4)
assert_allclose(drejected, -dchosen)
pair = (lambda c, r: dpo(c, r, reference_margin, beta=0.5)), dpo_backward
report = gradcheck(pair, chosen, rejected)
assert report.ok

# %% [markdown]
# Each $\log p$ is a sum over the tokens of an answer, so each of these tokens gets the gradient of the sum.
#
# ## Pairs of the model's own answers
#
# For training, the fine-tuned GPT of lesson 27.3 (`27_3_fine_tuning_on_answers`) draws eight answers to each
# of 1,000 sums. Where some are right and some are wrong, a right one and a wrong one make a pair. All pairs
# are drawn before the training: unlike GRPO, DPO draws nothing while it trains. The cell draws pairs for 100
# further sums, for testing.

# %%
seed = 2
model, _ = fine_tune(seed)
pairs = draw_pairs(model, np.random.default_rng(0), 100)  # (2, B, T + 1)
for better, worse in pairs.swapaxes(0, 1)[:3]:
    texts = ["".join(TOKENS[token] for token in text) for text in (better, worse)]
    print(f"{texts[0]} is better than {texts[1][PROMPT:]}")

# %% [markdown]
# Two models are trained for 60 steps on the pairs from the 1,000 sums, one with $\beta = 2$ and one with
# $\beta = .3$. For the test pairs, the cell prints the mean probabilities of the better answer, of the worse
# answer, and of all other answers to the same sum.

# %%
learners = {"before": model}
for name, value in PREFERENCES.items():
    learners[name], losses = prefer(model, seed, value)
shares = {}
for name, each in learners.items():
    log_probs, _ = answer_log_probs(each, pairs.reshape(-1, pairs.shape[-1]))
    better, worse = np.exp(log_probs[:, PROMPT - 1 :].sum(1)).reshape(2, -1).mean(1)
    shares[name] = better, worse, 1 - better - worse
    print(f"{name:14} better {better:.2f}  worse {worse:.2f}  others {1 - better - worse:.2f}")

# %% tags=["check"]
(better, worse, others), of_large, of_small = shares.values()
assert of_large[0] > better > of_small[0] + 0.05
assert worse > of_large[1] > of_small[1]
assert of_small[2] > others + 0.1 > others > of_large[2]

# %% [markdown]
# In both trainings, the better answers gain on the worse ones, as the loss asks. But with $\beta = .3$, the
# better answers become *less* probable than before. The loss sees only the difference of two $\log p$, which
# also grows if both fall and the worse one falls more. The probability taken from both goes to other answers,
# which are all wrong: a sum has only one right answer. (With the two other seeds, the better answers become
# more probable, though less so than with $\beta = 2$.)
#
# With a large $\beta$, a small change of $\log p$ makes the margin large, and then the gradient vanishes. So
# the model changes less. Large models are often trained with $\beta = .1$. Our experiment does not explain
# why this works there: their learning rates and data differ as well.
#
# **Question.** Why is the first loss of each training $\log 2$, whatever $\beta$ is?
#
# <details><summary>Answer</summary>
# At the beginning the model is the reference, so all margins are 0, and $-\log \sigma(0) = \log 2$.
# </details>

# %%
results = {(r.model, r.seed): r.values for r in read_results(MEASURED, Measured)}
for name in (FINE_TUNED, *PREFERENCES, "GRPO"):
    for measure in ("pass@1", "pass@8"):
        print(f"{name:16} {measure}", *(f"{results[name, each][measure]:.2f}" for each in SEEDS))

# %% tags=["check"]
large, small = PREFERENCES
for each in SEEDS:
    assert results[large, each]["pass@1"] > results[FINE_TUNED, each]["pass@1"] + 0.05
    assert results[small, each]["pass@1"] < results[large, each]["pass@1"]
    assert results[large, each]["pass@8"] > results[FINE_TUNED, each]["pass@8"] + 0.05
rates = {key: values["pass@1"] for key, values in results.items()}
falls = sorted(rates[FINE_TUNED, each] - rates[small, each] for each in SEEDS)
assert falls[0] < 0
assert_allclose(falls[1:], [0.01, 0.04], atol=0.005)

# %% [markdown]
# The stored results are those of three seeds. With the large $\beta$, pass@1 and pass@8 rise with each seed.
# With the small $\beta$, pass@1 rises with one seed, and falls with the two others (by .01 and .04).
#
# The rows of GRPO are no fair comparison: GRPO draws 19,200 answers, and DPO 8,000. GRPO always draws from
# the current model. DPO learns from answers of the old model, so the new model must stay near the old one.

# %% [markdown]
# ## Summary
#
# - DPO learns from pairs of answers, of which one is better.
# - The best model for a reward with a KL term is the reference, reweighted by $e^{r/\beta}$.
# - So a model stands for a reward: $\beta \log (p / p_{ref})$, up to a constant.
# - The loss is the cross-entropy of the preferences, in which the unknown Z cancels.
# - Only the difference counts: with a small β, even the better answers can become less probable.

# %% [markdown]
# ## Questions
#
# **Question.** Suppose the reference's part of the margin is left out. What does the loss then ask for?
#
# <details><summary>Answer</summary>
# That each better answer is more probable than the worse one, however probable both were before. A short
# answer usually has a larger $\log p$ than a long one. If the short answer is the worse one, the model must
# change a lot.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter.
#
# - `npformer exercise start dpo-backward`: write the gradients of both answers.
# - `npformer experiment addition` repeats the experiment.
#
# **Next**: lesson 27.6 (`27_6_speculative_decoding`), in which a small model helps a large one to write.

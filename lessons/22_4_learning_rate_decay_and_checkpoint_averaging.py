# %% [markdown]
# # 22.4 · Learning-rate decay and checkpoint averaging
#
# *About 30 minutes. You need: the learning-rate schedule of the paper (lesson 13.3,
# `13_3_schedules_and_gradient_clipping`), BLEU (lesson 22.3, `22_3_bleu`), batches by tokens (lesson 22.2,
# `22_2_token_batches_and_tied_embeddings`).*
#
# **After this lesson you can**
#
# - let the learning rate decay to 0 at the end of training, and say why;
# - choose among models by the validation loss, and explain why not by BLEU;
# - average checkpoints, and say when this helps.
#
# `training: batch → model → loss → backward pass → [OPTIMIZER] → parameters`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, data
from npformer.data import END, make_batch
from npformer.generation import translate_ids
from npformer.learn.course import show_figure
from npformer.learn.course.short_sentences import short_sentences
from npformer.learn.exercises.topics.translation import bleu  # the function of lesson 22.3
from npformer.plots import Curve, Panel, curve_page, curves
from npformer.training import evaluate, make_schedule
from npformer.training.optimizer import Adam, decayed, warmup
from npformer.training.presets import find_preset
from npformer.training.step import dropout_rngs, make_step

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Decay to zero
#
# The schedule of the paper has a warm-up of $w$ steps. Then the learning rate decreases as $1/\sqrt{s}$,
# where $s$ is the number of the step (lesson 13.3). It never reaches 0. At the last step $n$ it is still
# $\sqrt{w/n}$ times its maximum. With such a learning rate, each step changes the parameters by a random
# amount, because each batch gives a different gradient.
#
# The preset for Multi30k lets the learning rate **decay** to 0 in a straight line over the last part of the
# training. Let $a$ be the step at which the decay begins:
#
# $$\mathrm{lr}(s) = f\, D^{-1/2} \min(s^{-1/2},\ s\, w^{-3/2}) \qquad (s \le a)$$
#
# $$\mathrm{lr}(s) = \mathrm{lr}(a)\, \frac{n - s}{n - a} \qquad (s > a)$$

# %%
multi30k = TransformerConfig.architecture("multi30k")
training = find_preset("multi30k-en-de").training
n, w, f = training.steps, training.warmup_steps, training.factor
a = n - round(training.decay_share * n)
at = np.arange(1, n + 1)
without = f * multi30k.d_model**-0.5 * np.minimum(at**-0.5, at * w**-1.5)
rate = without.copy()
rate[a:] = rate[a - 1] * (n - at[a:]) / (n - a)
print(f"{n:,} steps, warm-up {w:,}, decay from step {a:,}")
print(f"maximum {rate.max():.5f}; {rate[a - 1]:.5f} at step {a:,}; {rate[-1]:.5f} at the end")
print(f"without the decay: {without[-1]:.5f} at the end")

# %% tags=["check"]
package = make_schedule(training, multi30k.d_model, n)
assert_allclose(rate, [package(s) for s in at.tolist()], rtol=1e-9)
assert_allclose(without[-1] / rate.max(), math.sqrt(w / n))

# %% tags=["plot"]
labels = ["with the decay", "without"]
lines = np.stack([rate, without])[:, ::25]
figure = curves(lines, at[::25], labels=labels, ylabel="learning rate")
show_figure(figure, "22_schedule", "The learning rate for Multi30k, with and without decay")

# %% [markdown]
# ## A training with two measurements
#
# Now we train a small model with such a schedule. It has one layer and learns from 4,000 short sentence
# pairs (lesson 22.1, `22_1_byte_pair_encoding`). The training has 360 steps, and the decay begins at step
# 288.
#
# A copy of the parameters is kept every 4 steps, and the validation loss and BLEU are computed every 12
# steps.
#
# A **checkpoint** is a copy of the parameters during the training. The **validation** sentences are not
# used for training. We measure the loss on all of them, and BLEU on 60 of them, translated by greedy
# search.

# %%
STEPS, W = 360, 40
corpus = short_sentences()
examples, watched, V = corpus.train, corpus.valid, len(corpus.codec.vocabulary)
small = {"d_model": 64, "d_ff": 128, "n_layers": 1, "dropout": 0.1, "max_length": 64}
config = multi30k.replace(source_vocab=V, target_vocab=V, norm="pre", final_norm=True, **small)
model = Transformer(config, rng=np.random.default_rng(0))
adam, schedule = Adam(model), decayed(warmup(64, W, 0.5), STEPS, 0.2)

sources = [[*source, END] for source, _ in watched[:60]]
references = [corpus.codec.decode(target) for _, target in watched[:60]]
plan = data.plan_batches(data.example_lengths(watched), seed=0, epoch=0, batch_tokens=2048)
validation = [make_batch([watched[i] for i in ids]) for ids in plan]


def measure():
    """Return the validation loss, and the BLEU of sixty sentences."""
    translations = [corpus.codec.decode(ids) for ids in translate_ids(model, sources, threads=1)]
    return evaluate(model, validation).loss, bleu(translations, references)


def batches():
    sizes = data.example_lengths(examples)  # (N, 2)
    for epoch in range(STEPS):
        for ids in data.plan_batches(sizes, seed=0, epoch=epoch, batch_tokens=1024):
            yield make_batch([examples[i] for i in ids])


# %%
checkpoints, measured = {}, []  # step -> parameters; (step, loss, BLEU)
for step, batch in zip(range(1, STEPS + 1), batches(), strict=False):
    make_step(model, adam, [batch], dropout_rngs(0, step, 1), schedule(step), 1.0)
    if step % 4 == 0:
        checkpoints[step] = model.values.copy()
    if step % 12 == 0:
        measured.append((step, *measure()))
        if step % 48 == 0:
            print("step {:3}   loss {:.3f}   BLEU {:5.1f}".format(*measured[-1]))

# %% [markdown]
# How often was a measurement worse than the one before it?

# %%
at, losses, scores = np.array(measured).T
worse = int((np.diff(losses) > 0).sum()), int((np.diff(scores) < 0).sum())
print(f"worse than 12 steps before: the loss {worse[0]} times, BLEU {worse[1]} times")
print(f"largest decrease of BLEU from one measurement to the next: {-np.diff(scores).min():.1f}")

# %% tags=["check"]
assert worse[0] < worse[1]
assert losses[-1] == losses.min()
assert scores[-1] > scores[at <= 96].max()

# %% tags=["plot"]
panels = [
    Panel("validation loss", [Curve(at, losses, marked=True)], from_zero=True),
    Panel("BLEU, greedy search", [Curve(at, scores, marked=True)], from_zero=True),
]
caption = "The loss decreases steadily; BLEU also decreases now and then"
show_figure(curve_page(panels), "22_run", caption)

# %% [markdown]
# BLEU changes irregularly from one measurement to the next, for three reasons:
#
# - One wrong token early in a sentence can make the rest of the translation wrong.
# - Some translations become much too long.
# - The test has only sixty sentences, so each of them matters.
#
# The loss uses the probability of *every* token of the references, so it is more regular. Therefore
# **choose the model by its validation loss**. Use BLEU to report the final result.
#
# **Question.** Why is the training loss not a good choice for this?
#
# <details><summary>Answer</summary>
# It can decrease because the model memorizes the training sentences. The validation loss shows whether the
# model has learned something that holds for other sentences.
# </details>

# %% [markdown]
# ## Checkpoint averaging
#
# *Attention Is All You Need* says in section 6.1:
#
# > For the base models, we used a single model obtained by averaging the last 5 checkpoints, which were
# > written at 10-minute intervals.
#
# **Checkpoint averaging** takes the mean of the parameters of several checkpoints. If the learning rate is
# not small, the parameters move around a minimum of the loss. Let θ* be the minimum and
# $\theta_i = \theta^* + e_i$ the checkpoints. If the deviations $e_i$ are independent, their mean is
# smaller than each of them:
#
# $$\bar{\theta} = \frac{1}{m} \sum_i \theta_i = \theta^* + \frac{1}{m} \sum_i e_i, \qquad
# \mathrm{Var}\left(\frac{1}{m} \sum_i e_i\right) = \frac{1}{m} \mathrm{Var}(e_i)$$
#
# **Question.** Do you expect averaging to help after the decay of the learning rate?
#
# <details><summary>Answer</summary>
# Less, because the deviations are already small. The last checkpoints are almost equal.
# </details>

# %% [markdown]
# We average six checkpoints at two times: before the decay begins, and at the end of the training.

# %%


def with_parameters(values):
    """Return the loss and BLEU of the model with other parameters, (P,)."""
    before = model.values.copy()
    model.values[...] = values
    found = measure()
    model.values[...] = before
    return found


found = {}
for name, last in (("before the decay", STEPS - STEPS // 5), ("at the end", STEPS)):
    found[name] = with_parameters(checkpoints[last])
    steps = range(last - 20, last + 1, 4)
    mean = np.mean([checkpoints[step] for step in steps], axis=0)
    found[f"{name}, mean of 6"] = with_parameters(mean)
for name, pair in found.items():
    print("{:28} loss {:.3f}   BLEU {:5.1f}".format(name, *pair))

# %% tags=["check"]
alone, mean, rested, both = (pair[0] for pair in found.values())
assert mean < alone
assert rested < alone
assert abs(both - rested) < 0.03

# %% [markdown]
# Compare the losses. Before the decay, averaging reduces the loss. The decay reduces it more. After the
# decay, averaging changes almost nothing. The BLEU scores of sixty sentences are too irregular to show
# these small differences.

# %% [markdown]
# ## Summary
#
# - The schedule of the paper never reaches 0; the preset lets the learning rate decay to 0 at the end.
# - With a small learning rate at the end, the parameters come closer to a minimum of the loss.
# - The validation loss is more regular than BLEU, so it is used to choose a model.
# - Averaging checkpoints reduces independent deviations of the parameters.
# - Averaging helps before the decay, and hardly after it.

# %% [markdown]
# ## Questions
#
# **Question.** A training has 10,000 steps and a warm-up of 400. Without a decay, what share of the maximum
# is the last learning rate?
#
# <details><summary>Answer</summary>
# √(400 / 10,000) = 1/5.
# </details>
#
# **Question.** Why is the mean of the parameters of two different trainings usually a bad model?
#
# <details><summary>Answer</summary>
# They start from different initial values and end at different minima. Between two minima the loss can be
# large. The checkpoints of one training are near the same minimum.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 22` lists the exercises of this chapter.
#
# - In the terminal, average only two checkpoints:
#   `!with_parameters((checkpoints[284] + checkpoints[288]) / 2)`.
# - By hand: show that the learning rate at the end of the warm-up is $f\, D^{-1/2}\, w^{-1/2}$ in both
#   terms of the minimum.
#
# **Next**: lesson 22.5 (`22_5_the_beam_search_problem`), which shows that a better search can give worse
# translations.

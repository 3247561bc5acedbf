# %% [markdown]
# # 13.5 · Training a translator
#
# *About 30 minutes. You need: the decoder (lesson 11.1, `11_1_the_decoder_and_teacher_forcing`), the
# cross-entropy and its gradient (lessons 12.1, `12_1_the_cross_entropy`, and 12.2,
# `12_2_the_gradient_of_the_cross_entropy`).*
#
# **After this lesson you can**
#
# - train a translator on a corpus, and read its log;
# - compute how small its loss can become;
# - measure how well it translates sentences that it was not trained on.
#
# `[TRAINING]: batch → model → loss → backward pass → optimizer → parameters`

# %%
import copy
import math
from collections import Counter

import numpy as np
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, load
from npformer.data import make_batch
from npformer.data.corpus import builtin_corpus
from npformer.generation.evaluation import evaluate_families
from npformer.learn.course import show_figure
from npformer.learn.course.running import SENTENCE
from npformer.learn.course.trained import FOLDER, lesson_recipe, prepare
from npformer.plots import Step, curves, gradient_flow
from npformer.pretrained import Translator
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import Validated, loss_and_gradients, read_log, train
from npformer.training.presets import find_preset

threadpool_limits(1, user_api="blas")  # one thread is fastest for small products

# %% [markdown]
# ## The corpus
#
# In this lesson we train a model that translates from English to French. The package contains a corpus for
# it, which a program generates from a grammar. Its pairs of sentences are divided into three sets:
#
# - The **training set** is used to compute gradients.
# - The **validation set** is used during training. From time to time, the loss on this set shows whether the
#   model still improves.
# - The **test set** is used once, after training, to measure the quality of the model.
#
# The test set contains only new combinations. In each of its sentences there are two words, or two
# constructions, that never occur together in a training sentence. So a model that has only memorized the
# training set cannot translate them.

# %% tags=["plot"]
example = lesson_recipe()
first_model = Transformer(example.model, rng=np.random.default_rng(0))
first_batch = make_batch(example.dataset.train[:6])
first_loss, _ = loss_and_gradients(first_model, [first_batch])
name, w = next(iter(first_model.named_parameters()))
arrays = {"batch": first_batch.source, "w": w.value[:8, :8], "loss": [first_loss]}
axes = {"batch": "B S", "w": "V D", "loss": "1"}
steps = {"loss": Step("model", ["batch", "w"])}
slopes = {"loss": [1.0], "w": w.grad[:8, :8]}
figure = gradient_flow("batch loss \n w .", arrays, steps, slopes, axes=axes)
caption = "A training step: a batch and the parameters w give the loss, and the loss gives dw"
show_figure(figure, "13_5_step", caption)

# %% [markdown]
# A row of the batch is a sentence. $w$ is a corner of the first parameter, the table of embeddings; a row of
# $dw$ without colour belongs to a token that is not in the batch. A training run repeats this step, and
# sometimes writes a **checkpoint**: a file with everything that is needed to continue.

# %%
recipe = lesson_recipe()
dataset, model_config, training = recipe
sizes = len(dataset.train), len(dataset.valid), len(dataset.test)
print("pairs: {:,} for training, {} for validation, {:,} for the test".format(*sizes))

# %% tags=["check"]
assert sizes == (29_152, 500, 2300)

# %% [markdown]
# ## The settings
#
# The command `npformer train` trains such a model in a few minutes, with the settings of the preset "small".
# The settings of this lesson are a shorter version. There are fewer steps, the batches contain half as many
# sentences, and the model is narrower. There is no dropout, because the model sees each sentence only a few
# times and cannot memorize the whole training set.
#
# One pass through the training set is called an **epoch**. The cell prints the settings and the number of
# epochs. `norm` says whether the norms stand after the sums or before the sublayers. The section "Training"
# explains the last rows.

# %%
preset, architecture = find_preset("small").training, TransformerConfig.architecture("small")
print("                  here   preset small")
for name in ("d_model", "d_ff", "n_heads", "n_layers", "norm", "dropout", "label_smoothing"):
    print(f"{name:15} {getattr(model_config, name)!s:>6}   {getattr(architecture, name)!s:>12}")
for name in ("steps", "batch_size", "schedule", "learning_rate", "warmup_steps", "clip_norm"):
    print(f"{name:15} {getattr(training, name)!s:>6}   {getattr(preset, name)!s:>12}")
epochs = training.steps * training.batch_size / len(dataset.train)
print(f"{epochs:.1f} epochs")

# %% tags=["check"]
assert training.steps < preset.steps
assert training.batch_size * 2 == preset.batch_size
assert model_config.d_model < architecture.d_model
assert model_config.dropout == 0 < architecture.dropout
assert epochs < 5

# %% [markdown]
# ## Training
#
# The function `train` takes the training steps that you know: forward pass, loss, backward pass, update.
# Three things are new:
#
# - Before an update, long gradients are shortened (`clip_norm`).
# - The **optimizer**, which makes the update, is **Adam** (lesson 13.2, `13_2_adam`). It divides each
#   gradient by its usual size.
# - The learning rate changes (`schedule`). It rises for `warmup_steps` steps, and then it falls to 0 along
#   half a cosine (lesson 13.3, `13_3_schedules_and_gradient_clipping`).
#
# In addition `train` writes a log, measures the validation loss at regular intervals, and saves checkpoints
# in the folder runs/lesson13, below the folder in which you work. The next cell takes about a minute. If the
# run is already there, the cell does not train again.
#
# The **accuracy** is the share of the tokens for which the model gives the highest probability to the right
# token. As in training, the decoder reads the right tokens of the earlier positions.

# %%


def tell(event):
    """Print one line for each validation."""
    if isinstance(event, Validated):
        print(f"step {event.step:5}   loss {event.loss:.3f}   accuracy {event.accuracy:.1%}")


if prepare(FOLDER, recipe):
    result = train(FOLDER, dataset, model_config, training, threads=1, report=tell)
    print(result.message)
checkpoint = load_checkpoint(FOLDER / "best.safetensors")
log = read_log(FOLDER)
print(f"{len(log)} lines in the log; the best model is that of step {checkpoint.step}")

# %% [markdown]
# ## How small can the loss become?
#
# The printed loss is the mean of −log p of the right tokens (lesson 12.1). But training minimizes another
# loss, with **label smoothing** (lesson 12.3, `12_3_label_smoothing_and_tied_weights`): its targets are not
# quite one-hot, so it cannot reach 0. The cross-entropy is smallest if $p = q$. Its value is then
# $-\sum_v q_v \log q_v$, the **entropy** $\mathrm{H}(q)$ of the target distribution $q$. With the smoothing
# $\varepsilon$, the right token has the target probability $1 - \varepsilon + \varepsilon / V$. Each of the
# other V − 1 tokens has $\varepsilon / V$. We insert them into this formula:
#
# $$\begin{aligned}
# \mathrm{H}(q) &= -\sum_v q_v \log q_v \\
# &= -\left(1 - \varepsilon + \frac{\varepsilon}{V}\right)
#    \log \left(1 - \varepsilon + \frac{\varepsilon}{V}\right)
#    - (V - 1)\, \frac{\varepsilon}{V} \log \frac{\varepsilon}{V}
# \end{aligned}$$
#
# The cell computes this number and the losses at the end of training, with label smoothing.

# %%
smoothing, vocab_size = model_config.label_smoothing, model_config.target_vocab
right, other = 1 - smoothing + smoothing / vocab_size, smoothing / vocab_size
entropy = -right * math.log(right) - (vocab_size - 1) * other * math.log(other)

steps = [entry for entry in log if "loss" in entry]
validations = [entry for entry in log if "valid_loss" in entry]
losses = steps[-1]["loss"], validations[-1]["valid_objective"]
print(f"H(q) {entropy:.3f}; at the end: training {losses[0]:.3f}, validation {losses[1]:.3f}")

# %% tags=["check"]
assert entropy < losses[1] < entropy + 0.15

# %% tags=["plot"]
at = np.array([entry["step"] for entry in steps])
valid_at = [entry["step"] for entry in validations]
valid = np.interp(at, valid_at, [entry["valid_objective"] for entry in validations])
valid[at < valid_at[0]] = np.nan
lines = np.stack([[entry["loss"] for entry in steps], valid, np.full(len(at), entropy)])
figure = curves(
    lines,
    at,
    labels=["training", "validation", "H(q)"],
    xlabel="step",
    ylabel="loss with label smoothing",
)
caption = "The built-in corpus: the loss ends a little above the entropy of its targets"
show_figure(figure, "13_corpus", caption)

# %% [markdown]
# The validation loss ends about .05 above the smallest possible value. So more training could reduce it by at
# most this amount. The translator of our sentence has the same smoothing, and a vocabulary of 10,000 tokens,
# so its H(q) is 1.25. The next picture shows its loss in ten more steps, on our sentence alone.

# %% tags=["plot"]
shipped = load("en-de")
german = shipped.target_tokenizer.encode("Zwei Hunde spielen im Schnee.").ids
pair = shipped.source_ids(SENTENCE)[:-1], german[:-1]
pupil, falling = copy.deepcopy(shipped.model), []
for _ in range(10):
    falling.append(loss_and_gradients(pupil, [make_batch([pair])])[0])
    for parameter in pupil.parameters():
        parameter.value -= 0.05 * parameter.grad
least = -0.90001 * math.log(0.90001) - 9999 * 1e-5 * math.log(1e-5)
lines = np.stack([falling, np.full(10, least)])
figure = curves(lines, range(10), labels=["loss", "H(q)"], xlabel="step", ylabel="loss")
show_figure(figure, "13_5_running", "Ten more steps of the translator, on our sentence alone")

# %% tags=["check"]
assert falling[-1] < falling[0]
assert abs(least - 1.25) < 0.005

# %% [markdown]
#
# **Question.** A model **overfits** if it improves only on the sentences that it was trained on. What would
# you then see in the figure of training and validation loss?
#
# <details><summary>Answer</summary>
# The training loss would continue to fall, but the validation loss would stop falling and then rise.
# </details>
#
# ## How well does it translate?
#
# A small loss does not yet prove that the translations are good. We translate 400 sentences of the test set
# that contain new pairs of words. For each sentence the translator chooses the most probable token, one token
# after the other (chapter 14). We count a translation as exact if all of its words are correct.
#
# The test set has three families of sentences:
#
# - "simple": sentences without an ambiguous word.
# - "it": the French pronoun for "it" is "il" or "elle", depending on the noun to which "it" refers. For
#   "they" it is "ils" or "elles".
# - "bank": the French word is "rive" or "banque", depending on the other words of the sentence.
#
# For the last two families we also count how often the model chose the right word: il or elle, ils or elles,
# rive or banque.

# %%
held_out = builtin_corpus().new_words[:400]
translator = Translator.from_checkpoint(checkpoint)
scores = {score.family: score for score in evaluate_families(translator, held_out)}
for family, score in scores.items():
    line = f"{family:6} {score.sentences:4} sentences   exact {score.share:6.1%}"
    if score.right_word is not None:
        line += f"   right word {score.right_word / score.sentences:6.1%}"
    print(line)

# %% tags=["check"]
answers = Counter(pair.reference.right for pair in held_out if pair.reference)
pronouns = max(answers["il"], answers["elle"]) + max(answers["ils"], answers["elles"])
assert round(pronouns / scores["it"].sentences, 2) == 0.54
assert round(max(answers["rive"], answers["banque"]) / scores["bank"].sentences, 2) == 0.52
assert scores["simple"].share > 0.75
assert max(score.share for score in scores.values()) < validations[-1]["valid_accuracy"]
assert scores["it"].right_word > 0.85 * scores["it"].sentences
assert scores["bank"].right_word > 0.85 * scores["bank"].sentences

# %% [markdown]
# In nearly all sentences with "it", "they" or "bank", the model chooses the right word. A model that always
# chooses the more frequent word of each pair would be right in 54 % of the sentences with "it" or "they", and
# in 52 % with "bank". Chapter 15 examines which attention heads make this choice. The simple sentences have
# more errors, mostly adjectives of the wrong gender. Often the adjective has the gender of a nearer noun.
# Each of the 400 sentences contains two words that never occur together in training.
#
# Your numbers may differ a little from those of another computer. Different processors add numbers in a
# different order, which changes the rounding. Over thousands of steps, such differences grow.
#
# The last cell translates three sentences of the source documents. None was in the training set. The right
# words are "il" (the animal), "elle" (the street) and "rive" (beside a river).

# %%
asked = [
    "the animal didn't cross the street because it was too tired",
    "the animal didn't cross the street because it was too wide",
    "i arrived at the bank after crossing the river",
]
for english, french in zip(asked, translator.translate(asked, beam=1), strict=True):
    print(f"{english}\n    {french}")

# %% [markdown]
# The full settings of the preset "small" give an even better model. Train it with `npformer train`, and then
# use it with `npformer translate "the dog is tired"`.
#
# **Your turn.** In the terminal, translate a sentence of your own, for example with
# `!translator.translate(["the dog is tired"])`. Use only words of the corpus.

# %% [markdown]
# ## Summary
#
# - The training set gives the gradients, the validation set shows the progress, and the test set the quality.
# - A checkpoint is a file with the parameters and everything else that is needed to continue a training.
# - With label smoothing, the smallest possible loss is the entropy H(q) of the targets.
# - The trained model ends a little above this value, also on sentences that it was not trained on.
# - The quality is measured with translations: how many are exact, and how often an ambiguous word is
#   translated correctly.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the test set not used to decide when to stop the training?
#
# <details><summary>Answer</summary>
# The decision would then depend on the test set, and the result on the test set would be too good. A new set
# of sentences would give a worse result. The validation set is there for such decisions.
# </details>
#
# **Question.** The accuracy on the validation set is higher than the share of exact translations. Give a
# reason.
#
# <details><summary>Answer</summary>
# The accuracy counts single tokens. A translation is exact only if all of its tokens are right. The test set
# is also harder, because it contains new pairs of words.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 13` lists the exercises of this chapter. This lesson has one to do by hand:
#
# - By hand: a model has learned the smoothed targets exactly, with ε = .1 and V = 4. What is its loss?
#   (And what is its perplexity, the exponential of the loss with one-hot targets?)
#
# **Next**: lesson 14.1 (`14_1_greedy_search_and_beam_search`), which explains how a translation is found with
# the trained model. The main route ends here.

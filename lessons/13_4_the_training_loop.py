# %% [markdown]
# # 13.4 · The training loop
#
# *About 35 minutes. You need: Adam (lesson 13.2, `13_2_adam`), schedules and clipping (lesson 13.3,
# `13_3_schedules_and_gradient_clipping`), teacher forcing (lesson 11.1,
# `11_1_the_decoder_and_teacher_forcing`).*
#
# **After this lesson you can**
#
# - write a training loop for a Transformer;
# - test a new model and its loop with a few sentences, before a long training;
# - compute the gradient of a large batch from several small ones.
#
# `[TRAINING]: batch → model → loss → backward pass → optimizer → parameters`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import PAD, make_batch
from npformer.data.dataset import builtin_dataset
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import curves
from npformer.pretrained import Translator
from npformer.training import loss_and_gradients
from npformer.training.optimizer import Adam, clip_global_norm, constant, cosine

threadpool_limits(1, user_api="blas")  # one thread is fastest for small products

# %% [markdown]
# ## One training step
#
# All parts of a training step are ready now. The picture shows them in order. B is the number of sentences in
# a batch. S and T are the lengths of source and target. V is the size of the vocabulary, and P is the number
# of parameters.

# %% tags=["plot"]
figure = shape_flow(
    "source logits loss g g' w' \n target_in . . . . . \n . target_out . . . .",
    {
        "logits": "forward: source target_in",
        "loss": "loss: logits target_out",
        "g": "backward: loss",
        "g'": "clip: g",
        "w'": "Adam: g'",
    },
    {
        "source": "B S",
        "target_in": "B T",
        "target_out": "B T",
        "logits": "T V",
        "loss": "1",
        "g": "P",
        "g'": "P",
        "w'": "P",
    },
)
caption = "Five of the six parts; the sixth sets g to zero before the next step"
show_figure(figure, "13_4_shapes", caption)

# %% [markdown]
# The last part is easy to forget. Every backward pass *adds* its gradients to those that are stored. Without
# part 6, step n would use the sum of the gradients of n steps.

# %% [markdown]
# ## A test with ten sentences
#
# A long training should not begin with an untested program. A good test is to train the model on very few
# sentences first. A correct model can learn them exactly, in a few seconds. If the loss does not come close
# to 0, the program has a mistake, or a setting is unsuitable.
#
# We take ten pairs of sentences. The dataset of the package provides the vocabularies, which turn text into
# token ids. The model has one layer on each side, and vectors of length 32. It uses neither dropout nor label
# smoothing, because both would keep the loss away from 0.

# %%
ten = {
    "i am a student": "je suis étudiant",
    "i am a teacher": "je suis professeur",
    "i am a farmer": "je suis fermier",
    "i am not a student": "je ne suis pas étudiant",
    "he is a student": "il est étudiant",
    "she is a student": "elle est étudiante",
    "she is a teacher": "elle est professeure",
    "we are students": "nous sommes étudiants",
    "they are teachers": "ils sont professeurs",
    "i am tired": "je suis fatigué",
}
dataset = builtin_dataset()
source, target = dataset.source, dataset.target  # they turn text into ids, and ids into text
examples = [(source.encode(english), target.encode(french)) for english, french in ten.items()]
batch = make_batch(examples)
small = {"d_model": 32, "d_ff": 64, "n_heads": 4, "n_layers": 1, "max_length": 16}
small |= {"tied": "output", "dropout": 0.0, "label_smoothing": 0.0}
config = TransformerConfig(**dataset.sizes, **small)
shapes = f"source {batch.source.shape}, target {batch.target_in.shape}"
print(f"{shapes}, {batch.tokens} tokens to predict")

# %% [markdown]
# Two checks come before the first step. The first one is the gradient check of the whole model, with the loss
# included.

# %%
exact = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
report = gradcheck(ModelWithLoss(exact), batch.source, batch.target_in, batch.target_out)
print(str(report).splitlines()[0])
print(f"{len(report.rows)} rows, the largest error {report.worst.error:.0e}")

# %% tags=["check"]
assert report.ok

# %% [markdown]
# The second one is the loss before training.
#
# **Question.** Suppose that an untrained model gives the same probability to all V tokens. What is its loss?
#
# <details><summary>Answer</summary>
# Each token has the probability 1/V. So the cross-entropy is −log(1/V) = log V.
# </details>

# %%
logits, _ = exact.forward(batch.source, batch.target_in)  # (B, T, V)
loss, cache = cross_entropy(logits, batch.target_out, pad_id=PAD)
vocab_size = logits.shape[-1]
print(f"loss {loss:.2f}; with equal probabilities log {vocab_size} = {math.log(vocab_size):.2f}")
show(cache)

# %% tags=["check"]
assert math.log(vocab_size) < loss < math.log(vocab_size) + 1

# %% [markdown]
# The loss is a little larger than log V, because the probabilities of the untrained model are not all equal.
# A much larger loss would be a sign of a mistake, for example of a wrong initialization.
#
# ## The loop
#
# Now we train. Each of the six parts is one line. The learning rate is constant.

# %%
model = Transformer(config, rng=np.random.default_rng(0))
adam, schedule, losses = Adam(model), constant(0.01), []
for step in range(1, 101):
    logits, passed = model.forward(batch.source, batch.target_in)  # (B, T, V)
    loss, cache = cross_entropy(logits, batch.target_out, pad_id=PAD)
    model.backward(cross_entropy_backward(1.0, cache), passed)
    clip_global_norm(model.grads, 1.0)
    adam.step(schedule(step))
    model.zero_grad()
    losses.append(float(loss))
print("loss", ", ".join(f"{losses[n - 1]:.3f} at step {n}" for n in (1, 10, 30, 100)))

# %% tags=["check"]
assert losses[-1] < 0.02

# %% [markdown]
# The loss is almost 0, so the model passes the test. It should now translate all ten sentences correctly. The
# class `Translator` translates with a trained model; chapter 14 explains how. We also give it four new
# sentences, which are similar to the ten.

# %%
translator = Translator.of_codecs(model, source, target)
answers = translator.translate(list(ten), beam=1)  # greedy search
print(f"{sum(map(str.__eq__, answers, ten.values()))} of the ten sentences are correct")
others = {
    "i am not a teacher": "je ne suis pas professeur",
    "he is a farmer": "il est fermier",
    "we are teachers": "nous sommes professeurs",
    "she is tired": "elle est fatiguée",
}
new = translator.translate(list(others), beam=1)
for english, french, answer in zip(others, others.values(), new, strict=True):
    print(f"{english:20} correct: {french:27} model: {answer}")

# %% tags=["check"]
assert answers == list(ten.values())
assert new != list(others.values())
words = {word for french in ten.values() for word in french.split()}
assert {word for french in others.values() for word in french.split()} - words == {"fatiguée"}

# %% [markdown]
# The model does not translate the new sentences correctly, although it has seen all of their words except
# "fatiguée". It has only memorized the ten sentences. This is called **overfitting**: a model is much better
# on its training sentences than on new ones. Therefore the quality of a model is always measured with
# sentences that it was not trained on. Lesson 13.5 does this.
#
# ## Which learning rate?
#
# With this small problem, we can compare several optimizers quickly. The function trains a new model and
# returns its losses. We compare four settings:
#
# - Adam with the constant learning rate .01, as above;
# - Adam with the constant learning rate .1;
# - Adam with a cosine schedule, whose maximum is .1 after a warm-up of 20 steps;
# - SGD without momentum, with the learning rate .1.

# %%


def learning_curve(schedule, sgd=False):
    """Return the losses of 100 steps on the ten sentences."""
    model, losses = Transformer(config, rng=np.random.default_rng(0)), []
    adam = Adam(model)
    for step in range(1, 101):
        losses.append(loss_and_gradients(model, [batch])[0])  # sets the gradients to zero first
        clip_global_norm(model.grads, 1.0)
        if sgd:
            model.values -= schedule(step) * model.grads
        else:
            adam.step(schedule(step))
    return losses


names = ["Adam, .01", "Adam, .1", "Adam, cosine, .1", "SGD, .1"]
schedules = (constant(0.1), cosine(0.1, 100, 20), constant(0.1))
found = [losses] + [learning_curve(rate, sgd=n == 2) for n, rate in enumerate(schedules)]
found = np.array(found)  # (4, steps)
for name, row in zip(names, found, strict=True):
    print(f"{name:22} loss after 100 steps {row[-1]:.3f}")

# %% tags=["check"]
assert found[1, -1] > 0.5 > max(found[2, -1], found[3, -1])
assert found[0, -1] == found[:, -1].min()

# %% tags=["plot"]
at = np.arange(1, 101)
figure = curves(found, at, labels=names, xlabel="step", ylabel="loss", yscale="log")
caption = "Ten sentences: a constant learning rate of .1 is too large for Adam"
show_figure(figure, "13_ten", caption)

# %% [markdown]
# With the constant rate of .1, Adam ends with a loss above .5. The first long steps have changed the
# parameters so much that the model hardly learns any more. With a warm-up and a decrease at the end, the same
# maximum leads to a loss below .5. The smallest loss belongs to the constant rate of .01. SGD also ends below
# .5 on this small problem.
#
# So the best learning rate has to be found by experiments. A result for ten sentences need not hold for a
# corpus.
#
# ## Gradient accumulation
#
# The batches of the paper contain about 25,000 source tokens and 25,000 target tokens. Such a batch may not
# fit into memory. Then one divides it into parts, and adds up the gradients of all parts before the optimizer
# makes its step. This is called **gradient accumulation**.
#
# We divide the batch of ten sentences into three parts.

# %%
parts = [make_batch(examples[:6]), make_batch(examples[6:8]), make_batch(examples[8:])]
tokens = sum(part.tokens for part in parts)
print("tokens of the parts:", [part.tokens for part in parts])

# %% [markdown]
# Which factor does the gradient of each part need? Let N be the number of real tokens of the whole batch,
# that is, of the tokens that are not padding. Part $b$ has $n_b$ real tokens, and $L_b$ is its mean loss. We
# write $\ell_i$ for the loss of token $i$, and group the tokens by parts:
#
# $$\begin{aligned}
# L &= \frac{1}{N} \sum_{i} \ell_i
# = \frac{1}{N} \sum_b \sum_{i \in b} \ell_i \\
# &= \frac{1}{N} \sum_b n_b L_b
# = \sum_b \frac{n_b}{N} L_b
# \end{aligned}$$
#
# The gradient of a sum is the sum of the gradients. So the backward pass of part $b$ must start with
# $n_b / N$ in place of 1. The cell does this for the three parts. For comparison, it also computes the
# gradient with the weight 1/3 for each part.

# %%


def accumulated(weights):
    """Return the gradient of the weighted sum of the losses of the parts."""
    exact.zero_grad()
    for part, weight in zip(parts, weights, strict=True):
        logits, passed = exact.forward(part.source, part.target_in)
        _, cache = cross_entropy(logits, part.target_out, pad_id=PAD)
        exact.backward(cross_entropy_backward(weight, cache), passed)
    return exact.grads.copy()


by_tokens = accumulated([part.tokens / tokens for part in parts])
by_parts = accumulated([1 / 3] * 3)
loss_and_gradients(exact, [batch])  # the whole batch at once
whole = exact.grads.copy()
for name, gradient in {"n_b / N": by_tokens, "1/3": by_parts}.items():
    error = np.linalg.norm(gradient - whole) / np.linalg.norm(whole)
    print(f"weights {name:8} relative error of the gradient {error:.0e}")

# %% tags=["check"]
assert_allclose(by_tokens, whole, rtol=1e-9, atol=1e-12)
loss_and_gradients(exact, parts)  # the package on the parts
assert_allclose(by_tokens, exact.grads, rtol=1e-12, atol=1e-15)
assert 0.1 < error < 1

# %% [markdown]
# With the weights n_b / N, the result is the gradient of the whole batch, except for rounding. The mean of
# the three means is another function, so its gradient is different.
#
# **Your turn.** In the terminal, try another maximum for the cosine schedule, for example with
# `!learning_curve(cosine(0.03, 100, 20))[-1]`.

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* describes an untrained model whose probabilities are random. Above, such a model had a
# >   loss a little above log V, the loss with equal probabilities.
# > - *图解transformer* also says that the quality of a model must not be measured with its training
# >   sentences. The four new sentences above show why.

# %% [markdown]
# ## Summary
#
# - A training step has six parts: forward, loss, backward, clip, optimizer step, and zero the gradients.
# - A new model and its loop are tested on a few sentences first; the loss must come close to 0.
# - Before training, the loss is close to log V, the loss with equal probabilities.
# - A model that is good only on its training sentences overfits, so quality is measured on other sentences.
# - With gradient accumulation, part b of a batch has the weight n_b / N, where n_b is the number of its
#   tokens.

# %% [markdown]
# ## Questions
#
# **Question.** You forget to set the gradients to zero. Which gradient does Adam receive in step 3?
#
# <details><summary>Answer</summary>
# Without clipping, it is the sum of the gradients of steps 1, 2 and 3. The first two were computed with older
# parameters, so they are no longer right.
# </details>
#
# **Question.** A training on ten sentences ends with a loss of 2. What do you do first?
#
# <details><summary>Answer</summary>
# You look for a mistake, for example with the gradient check, or try a smaller learning rate. You do not
# start a training on the corpus.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 13` lists the exercises of this chapter. This lesson has one to do by hand:
#
# - By hand: two parts have 30 and 10 tokens and the mean losses 2 and 4. What is the loss of the whole batch?
#   And what is the mean of the two means?
#
# **Next**: lesson 13.5 (`13_5_training_a_translator`), which trains a translator on a corpus.

# %% [markdown]
# # 1.2 · What padding must not do
#
# *About 25 minutes. You need: ids and padding (lesson 1.1, `01_1_words_to_ids`), the gradient check
# (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - write a layer whose result and gradient do not depend on the padding;
# - find a layer that does depend on it, with the gradient check;
# - train a weight for each word on sentences of different lengths.
#
# `model: [IDS] → embedding → positions → encoder → decoder → linear → softmax`

# %%
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.data import LANGUAGES, TextCodec, pad
from npformer.data.corpus import builtin_corpus
from npformer.learn.course import show_figure
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(1)

# %% [markdown]
# ## Three sentences in one array
#
# The array of ids of lesson 1.1, with 0 where a sentence has ended:

# %%
corpus = builtin_corpus()
english = TextCodec.from_lines([p.english for p in corpus.train], language=LANGUAGES["en"])
texts = ("the cat drinks some milk", "thanks", "i am a student")
rows = [[*english.encode(text), 3] for text in texts]
source = pad(rows)  # (B, T)
print(source)

# %% [markdown]
# ## The mean of a sentence
#
# The amount of padding after a sentence depends on the other sentences of its batch. But **the result for a
# sentence must not depend on the other sentences.** So padding must not change any result.
#
# We try this with the simplest layer that combines all tokens of a sentence: the mean of their vectors. Let
# $x_t$ be the vector of token t, and T the length of the array. Let $m_t$ be 1 at a real token and 0 at
# padding. The array of all $m_t$ is called a **mask**.
#
# $$\text{wrong:} \quad y = \frac{1}{T} \sum_t x_t$$
#
# $$\text{right:} \quad y = \frac{1}{n} \sum_t m_t x_t, \qquad n = \sum_t m_t$$
#
# The next cell draws random vectors for all tokens, including `<PAD>`. Then it compares both formulas with
# the mean for the sentence "thanks" alone, without padding.

# %%
table = rng.standard_normal((len(english.vocabulary), 4))  # (V, D), a row for each of V tokens
real = source != 0  # (B, T) bool, the mask
x = table[source]  # (B, T, D)
alone = table[rows[1]]  # (2, D) "thanks </S>", without padding
print("thanks, alone            ", alone.mean(0))
print("in the batch, wrong      ", x[1].mean(0))
print("in the batch, with mask  ", x[1][real[1]].mean(0))

# %% tags=["check"]
slow = np.zeros((3, 4))
for b in range(3):
    n = 0
    for t in range(source.shape[1]):
        if real[b, t]:
            slow[b] += x[b, t]
            n += 1
    slow[b] /= n
assert_allclose(slow[1], alone.mean(0))

# %% [markdown]
# ## The layer and its backward pass
#
# Now we write this layer as a pair of functions, as in lesson 0.2. The entry $x_{ti}$ affects only
# component i of the mean of its own sentence. By the formula above, the derivative of $y_i$ with respect to
# $x_{ti}$ is $m_t / n$. So
#
# $$dx_{ti} = dy_i \frac{\partial y_i}{\partial x_{ti}} = \frac{m_t}{n} dy_i$$
#
# At padding m = 0, so **the gradient is exactly 0**. This must be so, because padding did not contribute to
# the output. In a short sentence 1/n is larger, so each token gets a larger gradient. This is right too,
# because each token was a larger part of the mean. The cache must contain m and n, but not x.

# %%


class MeanCache(NamedTuple):
    """The arrays that sentence_mean_backward needs."""

    real: Any  # (B, T) bool
    count: Any  # (B, 1), tokens in each sentence


def sentence_mean(x, real):
    """Return the mean vector of each sentence. Shapes: x (B, T, D), real (B, T) -> y (B, D)."""
    count = real.sum(-1, keepdims=True)  # (B, 1)
    y = np.where(real[..., None], x, 0).sum(1) / count  # (B, D)
    return y, MeanCache(real, count)


def sentence_mean_backward(dy, cache):
    """Return the gradient dx (B, T, D)."""
    each = dy / cache.count  # (B, D)
    return np.where(cache.real[..., None], each[:, None, :], 0)


y, cache = sentence_mean(x, real)
show(cache)

# %% [markdown]
# We use `np.where` and not `m * x`. At its padding an array may contain NaN ("not a number"), for example if
# nothing was ever written there. Multiplication does not remove it, because 0 · NaN is NaN.

# %% tags=["check"]
assert_allclose(y, slow)

dy = rng.standard_normal(y.shape)  # (B, D)
dx = sentence_mean_backward(dy, cache)  # (B, T, D)
assert_allclose(dx.sum(1), dy)  # the tokens of a sentence share its gradient
assert (dx[~real] == 0).all()

# %% tags=["plot"]
names = [english.vocabulary.words[i] for i in source[1]]
parts = [
    Grid(x[1], "$x$", "x", numbers=True, rows=names, padded=~real[1]),
    "→",
    Grid(y[1], "$y$", "z", numbers=True),
    "   backward:",
    Grid(dy[1], "$dy$", "z", numbers=True),
    "→",
    Grid(dx[1], "$dx$", "x", numbers=True, rows=names, padded=~real[1]),
]
caption = "Padding (dark green) does not affect y and gets 0 in dx; each token gets dy / 2"
show_figure(cell_product(parts), "01_2_mean", caption)

# %% [markdown]
# ## Check the gradient
#
# First we check our backward pass. Then we check the typical mistake: a backward pass without the mask.

# %%


def backward_without_mask(dy, cache):
    """Return a wrong dx: padding gets dy / n too."""
    return np.repeat((dy / cache.count)[:, None], cache.real.shape[1], axis=1)


report = gradcheck((sentence_mean, sentence_mean_backward), x, real)
print(report)
wrong_report = gradcheck((sentence_mean, backward_without_mask), x, real)
sentence, place, _ = wrong_report.failures[0].entry
print("without the mask, first wrong entry: sentence", sentence, "place", place)

# %% [markdown]
# Every later layer that combines the tokens of a sentence needs this mask. Attention masks its scores
# (chapter 6), and the loss is a mean over real tokens (chapter 12). You can always test this in the same
# way: compute a sentence alone and in a batch, and compare the results.

# %% tags=["check"]
assert report.ok
assert not real[sentence, place]

# %% [markdown]
# ## Train it
#
# Which English words make a sentence negative? The model has one weight for each word, and it predicts the
# mean of the weights of a sentence. The target is 1 if the French sentence contains "pas", and 0 if not. So
# the layer above is used with D = 1. Two lines are new. `w[source]` takes the weight of each token. In the
# backward pass, each token adds its gradient to the weight of its word, and `np.add.at` does this for all
# tokens. Lesson 2.1 (`02_1_embeddings`) explains both lines.

# %%
pairs = corpus.train[:500]
source = pad([[*english.encode(p.english), 3] for p in pairs])  # (B, T)
real = source != 0
t = np.array([[float("pas" in p.french.split())] for p in pairs])  # (B, 1)

w, losses = np.zeros((len(english.vocabulary), 1)), []  # (V, 1)
for _ in range(200):
    p, cache = sentence_mean(w[source], real)  # (B, 1)
    e = p - t
    losses.append((e * e).mean())
    dx = sentence_mean_backward(2 * e / len(t), cache)  # (B, T, 1)
    dw = np.zeros_like(w)
    np.add.at(dw, source, dx)
    w = w - 10 * dw
best = w[:, 0].argsort()[::-1][:4]
print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}; the largest weights:")
print([english.vocabulary.words[i] for i in best], " weight of <PAD>:", w[0, 0])

# %% tags=["plot"]
figure = curves(losses, range(200), xlabel="step", ylabel="loss")
show_figure(figure, "01_2_loss", "The model finds the words that make a sentence negative")

# %% tags=["check"]
assert losses == sorted(losses, reverse=True)
assert losses[-1] < losses[0] / 8
assert all("n't" in english.vocabulary.words[i] for i in best)
assert w[0, 0] == 0

# %% [markdown]
# The four words are all contractions of "not". The weight of `<PAD>` is still exactly 0: with the wrong
# backward pass it would have moved, although no sentence contains this token.

# %% [markdown]
# ## Summary
#
# - The result for a sentence must not depend on the other sentences of its batch.
# - A mask says which places of an array are real tokens.
# - The mean over real tokens divides by their number, and not by the length of the array.
# - At padding the gradient is exactly 0.
# - `np.where` also removes NaN at padding, and a multiplication by 0 does not.

# %% [markdown]
# ## Questions
#
# **Question.** The loss of a translation is a mean over target tokens. What would go wrong if padding were
# counted?
#
# <details><summary>Answer</summary>
# The model could lower the loss by predicting `<PAD>` after the end, which says nothing about its
# translations. And the same sentence would count less in a batch with long sentences.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 1` lists the exercises of this chapter, which belong to lesson 1.1.
#
# - Train with `backward_without_mask`, and print the weight of `<PAD>` after 200 steps.
#
# **Next**: lesson 2.1 (`02_1_embeddings`), which gives a vector to every id.

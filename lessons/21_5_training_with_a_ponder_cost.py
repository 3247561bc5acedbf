# %% [markdown]
# # 21.5 · Training with a ponder cost
#
# *About 35 minutes. You need: the Universal Transformer and adaptive computation time (lesson 21.4,
# `21_4_the_universal_transformer`), local attention (lesson 18.1, `18_1_local_attention`).*
#
# **After this lesson you can**
#
# - train a network whose number of steps depends on the input;
# - measure whether each word takes as many steps as it needs;
# - explain why a network with a ponder cost from the start may never learn to use more steps.
#
# `model: ids → embedding → positions → [ENCODER] → [DECODER] → linear → softmax`

# %%
import math
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from npformer import TransformerConfig
from npformer.data.sentences import SentenceBatch
from npformer.functional.masks import causal_mask, local_mask
from npformer.learn.course import show_figure
from npformer.models.universal import UniversalEncoder
from npformer.nn import AttentionMask, InputEmbedding, Module, TiedProjection
from npformer.plots import cell_grid
from npformer.training import loss_and_gradients
from npformer.training.optimizer import Adam, cosine

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## A task that needs several steps
#
# With adaptive computation time, each word computes its own number of steps. To test this, we need a task
# in which we know how many steps each word needs. The input consists of letters and arrows:
#
# - The right output for a letter is the letter itself.
# - The right output for an arrow is the right output of the position to its left.
#
# | input | a | ← | ← | b | ← | c |
# |---|---|---|---|---|---|---|
# | right output | a | a | a | b | b | c |
# | steps needed | 1 | 1 | 2 | 1 | 1 | 1 |
#
# A word may attend only to itself and to its left neighbor. So information moves by one position in each
# step, and the $r$-th arrow after a letter **needs $r$ steps**. The network is not told these numbers. Its
# loss contains the cross-entropy and the ponder cost, and nothing about the right number of steps.

# %%
ARROW, SIGNS = 4, "····←abcd"  # ids 0 to 3 are not used


def arrows(rng, count=32, length=8, share=0.6):
    """Return a batch of random letters and arrows with the right outputs."""
    ids = rng.integers(5, 9, (count, length))  # (B, T)
    ids[:, 1:][rng.random((count, length - 1)) < share] = ARROW
    answers = ids.copy()
    for t in range(1, length):
        answers[:, t] = np.where(ids[:, t] == ARROW, answers[:, t - 1], ids[:, t])
    return SentenceBatch(ids, answers)


def steps_needed(ids):
    """Return the number of steps that each position needs, (B, T)."""
    row = (ids == ARROW).astype(int)
    for t in range(1, ids.shape[1]):
        row[:, t] += row[:, t] * row[:, t - 1]
    return np.maximum(row, 1)


batch = arrows(np.random.default_rng(3), 1)
print("input        ", *(SIGNS[i] for i in batch.ids[0]))
print("right output ", *(SIGNS[i] for i in batch.target_out[0]))
print("steps needed ", *steps_needed(batch.ids)[0])

# %% [markdown]
# **Question.** A stack of six different layers with the same mask gets an arrow that needs seven steps. Can
# it find the right output?
#
# <details><summary>Answer</summary>
# No. After six layers, information has moved by six positions at most. The letter is seven positions away.
# </details>
#
# ## The model
#
# The model is an encoder of the Universal Transformer with at most six steps. It has no position vectors,
# because only the neighbor matters. The mask combines a window of one position with the causal mask (lesson
# 6.1, `06_1_masks`). The loss is the cross-entropy plus the mean ponder cost, times a **ponder weight** λ:
#
# $$\mathrm{loss} = \mathrm{cross\ entropy} + \lambda \cdot \mathrm{mean}(M + w_M)$$
#
# So the gradient of the ponder cost of each word is λ, divided by the number of words.

# %%
SMALL = {"d_model": 32, "d_ff": 32, "n_heads": 2, "n_layers": 6, "max_length": 32}
SMALL |= {"positions": "none", "dropout": 0, "label_smoothing": 0}


class ArrowCache(NamedTuple):
    embedding: Any
    encoder: Any
    output: Any


class ArrowModel(Module):
    """A Universal encoder in which a word attends to itself and its left neighbor."""

    def __init__(self, ponder_weight):
        rng, self.ponder_weight = np.random.default_rng(0), ponder_weight
        self.config = TransformerConfig(9, 9, **SMALL)
        self.embedding = InputEmbedding(9, 32, 32, positions="none", rng=rng)
        self.encoder = UniversalEncoder(self.config, halting=True, halting_bias=-2.0, rng=rng)
        self.output = TiedProjection(self.embedding.tokens.weight)
        self.flatten()

    def forward(self, ids):
        mask = local_mask(ids.shape[1], 1, ids) & causal_mask(ids.shape[1], ids)  # (T, T)
        x, embedding = self.embedding.forward(ids)  # (B, T, D)
        x, encoder = self.encoder.forward(x, AttentionMask(mask))
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, ArrowCache(embedding, encoder, output)

    def backward(self, dlogits, cache):
        dcost = self.ponder_weight / cache.encoder.ponder.size  # for each word
        dcost = np.full_like(cache.encoder.ponder, dcost)  # (B, T)
        dx = self.output.backward(dlogits, cache.output)
        dx = self.encoder.backward(dx, cache.encoder, dponder=dcost)
        self.embedding.backward(dx, cache.embedding)


# %% [markdown]
# ## Two ways to train
#
# We train two networks. The first is trained with λ = 0 for 120 training steps, and then with λ = .3 for
# 100 more. The second is trained with λ = .3 from the start, for 120 training steps.
#
# Then we test on longer sequences, where up to nine steps are allowed. For each number of steps that a word
# needs, we print the mean number of steps that it takes, and the share of correct words.

# %%


def train(model, draw, steps, peak=0.01):
    rng, adam, rate = np.random.default_rng(1), Adam(model), cosine(peak, steps + 1, 20)
    for step in range(1, steps + 1):
        loss_and_gradients(model, [draw(rng)])
        adam.step(rate(step))
    return model


def measure(name, model):
    """Print and return the mean steps and the shares of correct words, (2, 9)."""
    batch = arrows(np.random.default_rng(9), 500, 14, share=0.8)
    need = steps_needed(batch.ids)
    model.encoder.n_steps = 9  # six in training
    logits, cache = model.forward(batch.ids)
    model.encoder.n_steps = 6
    seen = cache.encoder.mix.steps, logits.argmax(-1) == batch.target_out
    rows = np.array([[a[need == n].mean() for n in range(1, 10)] for a in seen])
    for title, row in zip((name, "     correct words"), rows, strict=True):
        print(f"{title:24}" + "".join(f"{n:6.2f}" for n in row))
    return rows


print("steps that a word needs " + "".join(f"{n:6}" for n in range(1, 10)))
model = train(ArrowModel(0), arrows, 120)
model.ponder_weight = 0.3
later = measure("cost added later", train(model, arrows, 100))
always = measure("cost from the start", train(ArrowModel(0.3), arrows, 120))

# %% tags=["check"]
assert abs(later[0, :7] - np.arange(1, 8)).max() < 0.6
assert abs(always[0, 1:] - 2).max() < 0.3
assert min(later[1, :7]) > 0.97
assert max(always[1, 2:]) < 0.4

# %% [markdown]
# **With the ponder cost added later**, a word takes about as many steps as it needs; only some letters take
# two. The network has not learned a fixed number. It halts when the word has its answer. So nine steps are
# possible, although the training allowed only six, and the seventh arrow after a letter is still correct.
# This depends on the initial weights: of six networks with other seeds, three made mistakes in the longest
# runs of arrows.
#
# The figure shows the weights $w_n$ of the states for one input.

# %%
sign = "a←←←b←cd←←←←"
_, cache = model.forward(np.array([[SIGNS.index(letter) for letter in sign]]))
weights = cache.encoder.mix.weights[:, 0]  # (N, T)
print("steps", cache.encoder.mix.steps[0], "for the input", *sign)

# %% tags=["plot"]
names = [f"step {n + 1}" for n in range(len(weights))]
figure = cell_grid(weights, rows=names, columns=list(sign), numbers=True, shade=True)
caption = "Weights of the states: letters halt after one or two steps, the r-th arrow after r"
show_figure(figure, "21_steps", caption)

# %% [markdown]
# **With the ponder cost from the start**, the words halt after two steps, and all later arrows are only
# guessed. Would the loss be lower with more steps? We compute the change of both terms of the loss, if each
# word took as many steps as it needs:
#
# - The cross-entropy of a guess among four letters is $\log 4$. It would be nearly 0 with enough steps. So
#   the mean decreases by $\log 4$, times the share of words that need more than two steps.
# - The ponder cost, times λ, increases by .3 for each step after the second one.

# %%
need = steps_needed(arrows(np.random.default_rng(3), 5000).ids)
decrease = math.log(4) * (need > 2).mean()
increase = 0.3 * np.maximum(need - 2, 0).mean()
print(f"more steps would decrease the cross-entropy by {decrease:.2f}")
print(f"and increase the weighted ponder cost by {increase:.2f}")

# %% tags=["check"]
assert abs(decrease - 0.19) < 0.006
assert abs(increase - 0.07) < 0.006

# %% [markdown]
# The decrease is larger than the increase. So the loss would be lower with more steps, but training does
# not find this solution. After a word halts, the next states are not computed. So no gradient shows that
# they would be better (lesson 21.4). In lesson 18.4 (`18_4_learning_a_position`), a predicted position had
# the same problem: there was no gradient from the words outside the window.
#
# **Question.** Which setting of this lesson makes sure that the first network takes all steps at the start
# of its training?
#
# <details><summary>Answer</summary>
# The reason is the initial bias −2 of the halting unit. The sigmoid of −2 is .12, so six probabilities sum to
# about .7, which is less than 1 − ε. The words take all six steps.
# </details>

# %% [markdown]
# ## A translator
#
# The command `npformer train --architecture universal` trains an encoder and a decoder of this kind on the
# built-in corpus. Its ponder cost has the weight .01. Chapter 17 compares it with other architectures.
#
# In the decoder, too, each word has its own number of steps. During decoding, the states of *all* steps are
# computed and stored, also for a word that halts early. A later word may take more steps, and it attends to
# the earlier words in each of them.

# %% [markdown]
# ## Summary
#
# - In the task of the arrows, we know how many steps each word needs.
# - The ponder cost is added to the loss, multiplied by the ponder weight λ.
# - If it is added after the network has learned the task, each word takes the steps that it needs.
# - The network can then take more steps than in training, and solve longer inputs.
# - With the ponder cost from the start, words halt early, and no gradient shows the effect of more steps.

# %% [markdown]
# ## Questions
#
# **Question.** The network with the ponder cost from the start gets about .25 of the later arrows right.
# Why this number?
#
# <details><summary>Answer</summary>
# There are four letters with the same frequency, and the letter is too far away. So the network guesses one
# of four.
# </details>
#
# **Question.** What is the smallest possible ponder cost of a word?
#
# <details><summary>Answer</summary>
# The cost is M + w_M. With one step, the remainder is 1, so it is 2. With two steps it is between 2 and 3.
# So the cost is at least 2, but it can come close to 2 with two steps.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 21` lists the exercises of this chapter. The exercise on halting belongs
# to lesson 21.4.
#
# - In the terminal, change λ: `!measure("weight 0.03", train(ArrowModel(0.03), arrows, 120))`.
#   It takes a few seconds. Does the network use more than two steps now?
#
# **Next**: lesson 21.6 (`21_6_encoder_only_and_decoder_only_models`), in which only the mask differs
# between two kinds of models.

# %% [markdown]
# # 6.3 · Leaks
#
# *About 25 minutes. You need: the causal mask (lesson 6.1, `06_1_masks`), the embedding (lesson 2.1,
# `02_1_embeddings`).*
#
# **After this lesson you can**
#
# - test a model for leaks with forward passes alone;
# - find an off-by-one error in a causal mask;
# - recognize a leak from the loss of a model.
#
# `attention: queries and keys → scores → [MASK] → softmax → mean of values`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import Module, MultiHeadAttention, assert_no_leak
from npformer.checking.leaks import movement
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.functional.masks import causal_mask
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn import InputEmbedding, Linear
from npformer.plots import curves, leak_map
from npformer.training.optimizer import Adam

rng = np.random.default_rng(6)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread

# %% [markdown]
# ## A test with the forward pass
#
# A **leak** is an output that depends on a token which the mask hides. A leak raises no error, and the
# gradient check does not find it. The check compares the backward pass with the forward pass, and both
# contain the same wrong mask.
#
# There is a simple test. **Change one token and compare the outputs.** A masked key has a weight of exactly
# 0, and 0 times a changed value is still exactly 0. So an output that must not depend on the token stays the
# same to the last bit, and we need no tolerance. With one forward pass for each changed token, we test all
# pairs of an input token and an output.
#
# The function `moves` returns how much each output (row) changes when one token (column) changes.

# %%
causal = causal_mask(6, np.zeros((1, 6)))  # (T, S)
layer = MultiHeadAttention(8, 2, rng=rng, dtype=np.float64)
x = rng.standard_normal((6, 8))  # (T, D)


def moves(mask):
    """Return the change of each output for each changed token. Shapes: mask (T, S) -> (T, S)."""
    moved = np.zeros((6, 6))
    before = layer.forward(x[None], mask=mask)[0][0]  # (T, D)
    for s in range(6):
        changed = x.copy()
        changed[s] += np.random.default_rng(s).standard_normal(8)
        after = layer.forward(changed[None], mask=mask)[0][0]
        moved[:, s] = abs(after - before).max(-1)
    return moved


print("changes exactly where the mask is True:", ((moves(causal) > 0) == causal).all())

# %% [markdown]
# The package contains this test as a function, `assert_no_leak`. We call it with the correct mask, and then
# with a mask that has one diagonal too many. With this mask each position may also attend to the next token.
# It is a typical **off-by-one error**.

# %%
assert_no_leak(lambda x: layer.forward(x, mask=causal), x[None])

off_by_one = np.tri(6, k=1, dtype=bool)  # k=1 is one diagonal too many
try:
    assert_no_leak(lambda x: layer.forward(x, mask=off_by_one), x[None])
except AssertionError as error:
    message = str(error)
print(message)

# %% tags=["check"]
assert_array_equal(moves(causal) > 0, causal)
assert_allclose(moves(causal), movement(lambda x: layer.forward(x, mask=causal), x[None]))
assert message.startswith("output 0 moves when token 1 changes")

# %% tags=["plot"]
tokens = ["<S>", "I", "am", "late", "for", "tea"]
figure = leak_map(moves(off_by_one), causal, tokens, tokens)
caption = "An off-by-one error: each output depends on the token that it has to predict"
show_figure(figure, "06_leak", caption)

# %% [markdown]
# **Your turn.** Is it enough to add −10 to the scores of masked keys? In the terminal, type first
# `!from npformer.functional import Masking`, `!from npformer.nn.attention import TutorialAttention` and
# `!layer = TutorialAttention(8, 2, masking=Masking(-10.0, "add"), dtype=np.float64)`, and then
# `!moves(causal)`. Predict the result before the last line.

# %% [markdown]
# ## What a leak does to the loss
#
# How does a leak show itself in training? We use data that cannot be predicted: throws of a die with eight
# faces. All throws are independent, so the best possible prediction gives each face the probability 1/8. The
# loss of this prediction is $-\log(1/8) = \log 8 = 2.08$.
#
# The model is small: an embedding with positions, one attention layer, and one linear layer. For the next
# throw it computes eight numbers, the *logits*. Their softmax gives the probabilities of the eight faces:

# %% tags=["plot"]
figure = shape_flow(
    "ids x y logits \n . mask . .",
    {"x": "embedding: ids", "y": "attention: x mask", "logits": "linear: y"},
    {"ids": "B T", "x": "T D", "mask": "T T", "y": "T D", "logits": "T V"},
)
show_figure(figure, "06_3_shapes", "From the throws to the logits, for one sentence")

# %%


class NextThrow(Module):
    """A model that predicts the next throw. Shapes: ids (B, T) -> logits (B, T, 8)."""

    def __init__(self, rng):
        self.embedding = InputEmbedding(8, 32, 8, rng=rng)
        self.attention = MultiHeadAttention(32, 1, rng=rng)
        self.output = Linear(32, 8, rng=rng)

    def forward(self, ids, mask):
        """Return the logits and the cache."""
        x, embedded = self.embedding.forward(ids)  # (B, T, D)
        z, attended = self.attention.forward(x, mask=mask)  # (B, T, D)
        y, projected = self.output.forward(z)  # (B, T, V)
        return y, (embedded, attended, projected)

    def backward(self, dy, cache):
        """Accumulate the gradients of all parameters."""
        embedded, attended, projected = cache
        dz = self.output.backward(dy, projected)
        self.embedding.backward(self.attention.backward(dz, attended), embedded)


# %% [markdown]
# The training loop is the simplest one. Adam is an optimizer: it changes the parameters a little, so that the
# loss decreases. Chapter 13 explains it. At position t the target is throw t + 1. Every
# step draws new throws, so the model cannot memorize them.

# %%


def train(mask, steps=300):
    """Train a model with this mask. Return the model and its losses."""
    rng = np.random.default_rng(6)
    model, losses = NextThrow(rng), []
    adam = Adam(model)
    for _ in range(steps):
        dice = rng.integers(0, 8, (32, 9))  # (B, T + 1)
        logits, cache = model.forward(dice[:, :-1], mask)
        loss, loss_cache = cross_entropy(logits, dice[:, 1:])
        model.grads[...] = 0
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(0.01)
        losses.append(float(loss))
    return model, losses


# %% [markdown]
# We train one model with the correct causal mask, and a second one with the off-by-one mask. Then we measure
# three losses on new throws:
#
# 1. the correct model, with its mask;
# 2. the leaking model, with its own wrong mask;
# 3. the leaking model when it *generates*. Then the next throw does not exist yet, so the model cannot
#    attend to it. With the correct mask, the model cannot attend to it either.
#
# **Question.** There are 8 positions. What is the lowest loss that the leaking model can reach?
#
# <details><summary>Answer</summary>
# At positions 0 to 6 the next throw is part of the input, so the loss can be 0 there. The target of the last
# position is not in the input, so its loss is at least log 8. The mean is log 8 / 8 = .26.
# </details>

# %%
right, wrong = np.tri(8, dtype=bool), np.tri(8, k=1, dtype=bool)  # (T, S)
(correct, of_correct), (leaking, of_leaking) = train(right), train(wrong)
dice, losses = rng.integers(0, 8, (2000, 9)), {}
for name, model, mask in [
    ("correct, as trained", correct, right),
    ("leaking, as trained", leaking, wrong),
    ("leaking, generating", leaking, right),
]:
    loss = float(cross_entropy(model.forward(dice[:, :-1], mask)[0], dice[:, 1:])[0])
    losses[name] = loss
    print(f"{name}   loss on new throws {loss:.2f}   (log 8 = {math.log(8):.2f})")

# %% tags=["plot"]
figure = curves(
    np.array([of_correct, of_leaking, [math.log(8)] * 300, [math.log(8) / 8] * 300]),
    labels=["correct mask", "off by one", "log 8", "log 8 / 8"],
    ylabel="loss",
    title="Predicting dice",
)
show_figure(figure, "06_dice", "The loss of the leaking model is too low for dice")

# %% [markdown]
# In training, the loss of the leaking model falls to .33, close to the lowest possible value of .26. Its
# loss on *new* data is just as low, because the model leaks there too. So measuring the loss on data that is
# kept apart for this, a *validation set*, does not reveal the error. Neither does longer training.
#
# Only generation reveals it. When the next throw is missing, the loss is above 3.5. This is worse than before
# any training.
#
# Remember this pattern. If the loss of a language model is far below the losses of comparable models, test
# the model for a leak first.

# %% tags=["check"]
assert_allclose(np.mean(of_correct[-50:]), 2.08, atol=0.03)
assert_allclose(np.mean(of_leaking[-50:]), 0.33, atol=0.03)
assert_allclose(losses["leaking, as trained"], 0.33, atol=0.03)
assert losses["leaking, generating"] > 3.5 > of_leaking[0]
assert_no_leak(lambda ids: correct.forward(ids, right), dice[:1, :8])  # float32: exactly equal
moved = movement(lambda ids: leaking.forward(ids, wrong), dice[:1, :8])
assert_array_equal(np.argwhere((moved > 0) & ~right)[0], [0, 1])

# %% [markdown]
# ## Summary
#
# - A leak is an output that depends on a token which the mask hides.
# - The gradient check does not find a leak, because forward and backward pass contain the same wrong mask.
# - To find a leak, change one token: an output that must not depend on it may not change by a single bit.
# - A model with a leak has a loss that is too low, in training and in validation.
# - Only generation shows the error, because there the future tokens do not exist yet.

# %% [markdown]
# ## Questions
#
# **Question.** Why can the leak test demand exact equality, while the gradient check needs a tolerance?
#
# <details><summary>Answer</summary>
# In the leak test the same additions are done twice, and the terms that change are multiplied by exactly 0.
# The gradient check compares two different calculations, which have different rounding errors.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these in Python. The command `npformer exercise list 6` lists the exercises of this chapter that are
# graded.
#
# - By hand: a causal mask has one diagonal too few. Is this a leak? What else goes wrong?
# - Test a layer without any mask with `assert_no_leak`. Which pairs of tokens does the message name?
# - Train the model of this lesson with a mask that also allows the token after the next one,
#   `np.tri(8, k=2, dtype=bool)`. Which loss do you expect?
#
# **Next**: lesson 6.4 (`06_4_query_masks_and_masks_from_vectors`), two special cases from the source
# documents.

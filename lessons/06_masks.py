# %% [markdown]
# # 6 · Masks: which keys a query may attend to
#
# *About 65 minutes, in four parts. You need: scaled dot-product attention and its backward
# pass (lesson 5).*
#
# **After this lesson you can**
#
# - build the padding mask and the causal mask, and compute attention with them;
# - show that no gradient flows through a masked score, and explain why a fully masked row needs special care;
# - explain why npformer uses −∞ and not a large negative number;
# - test a model for leaks, and recognize a leak from its loss.
#
# `[embedding] → [ATTENTION] → [add & norm] → …`  (you are in the step "Mask (opt.)" of Figure 2)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import Module, MultiHeadAttention, assert_no_leak, show
from npformer.checking import gradcheck
from npformer.checking.leaks import movement
from npformer.functional import masks
from npformer.functional.attention import attention, attention_backward
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.functional.masks import Masking, causal_mask, padding_mask
from npformer.functional.norm import layer_norm
from npformer.functional.positions import sinusoids
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.nn import InputEmbedding, Linear
from npformer.plots import curves, leak_map, mask_panels, softmax_panels
from npformer.training.optimizer import Adam

rng = np.random.default_rng(6)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16

# %% [markdown]
# ## Why masks?
#
# In lesson 5 every query attends to every key. In a Transformer this is wrong in two situations.
#
# **Padding.** The sentences of a batch have different lengths. To store them in one array, we append the
# token `<PAD>` to the shorter sentences (lesson 1). These tokens mean nothing, so no result may depend on
# them.
#
# ```text
# <S>  I    am   late  <PAD>  <PAD>
# <S>  The  tea  is    still  hot
# ```
#
# **The future.** The decoder learns to predict the next token. In training it reads the whole target sentence
# at once, so the token to be predicted is part of its input. If a query may attend to this token, the decoder
# only learns to copy it.
#
# A **mask** is a bool array that says which query may attend to which key. It has the shape of the scores,
# (T, S), or broadcasts to it. In npformer, **True means that the query may attend to the key**. Where it is
# False, we say that the key is *masked* for this query.

# %% [markdown]
# ## The definition
#
# *Attention Is All You Need* describes the mask of the decoder in section 3.2.3:
#
# > We implement this inside of scaled dot-product attention by masking out (setting to −∞) all values in the
# > input of the softmax which correspond to illegal connections.
#
# The mask acts between scores and softmax:
#
# ```text
# q (T, K) ─┐                mask (T, S), bool
#           │                        ↓
# k (S, K) ─┴─→ scores ─→ [−∞ where it is False] ─→ softmax ─→ weights ─┐
#               (T, S)            (T, S)                       (T, S)   │
# v (S, K) ─────────────────────────────────────────────────────────────┴─→ y (T, K)
# ```

# %% [markdown]
# There are two common masks:
#
# - The **padding mask** is False at every key that is padding. It depends on the sentence and is the same for
#   all queries.
# - The **causal mask** allows position t to attend to the positions 0 … t. It depends only on the positions
#   and is the same for all sentences.
#
# Masks are combined with `&`, because a key must be allowed by all of them. Other masks are possible too. One
# example is `local_mask`, which allows only keys near the query.
#
# The cell builds both masks for the sentence "I am late" with loops, and then with the functions of the
# package. The masks of the package have axes of length 1. They broadcast over the heads, and the padding mask
# also broadcasts over the queries.

# %%
words = ["<S>", "I", "am", "late", "<PAD>", "<PAD>"]
ids = np.array([[2, 4, 5, 6, 0, 0]])  # (B, S), and 0 is the id of <PAD>

padding = np.zeros((6, 6), bool)  # (T, S)
causal = np.zeros((6, 6), bool)
for t in range(6):
    for s in range(6):
        padding[t, s] = ids[0, s] != 0
        causal[t, s] = s <= t

print("padding", padding_mask(ids).shape, "  causal", causal_mask(6, ids).shape)
mask = padding_mask(ids) & causal_mask(6, ids)  # (B, 1, T, S)

# %% tags=["check"]
assert_array_equal(np.broadcast_to(padding_mask(ids)[0, 0], (6, 6)), padding)
assert_array_equal(causal_mask(6, ids), causal)
assert_array_equal(mask[0, 0], padding & causal)

# %% tags=["plot"]
figure = mask_panels({"padding": padding, "causal": causal}, words, words)
show_figure(figure, "06_masks", "A row is a query, a column a key; together: combined with &")

# %% [markdown]
# **Question.** The causal mask is True on its diagonal, so each position may attend to itself. Why does this
# not reveal the token that has to be predicted?
#
# <details><summary>Answer</summary>
# The input of the decoder is shifted by one position. Position t holds the token *before* the one that it has
# to predict. So the token to be predicted stands at position t + 1, which is masked.
# </details>

# %% [markdown]
# ## Forward
#
# First we write down what we want. The softmax of lesson 5 should run over the allowed keys only, as if the
# others did not exist. Let $m_s$ be 1 where the query may attend to key $s$, and 0 elsewhere. Then the
# weights of a query are
#
# $$p_s = \frac{m_s \exp(s_s)}{\sum_r m_r \exp(s_r)}$$
#
# The method of the paper computes the same without changing the softmax. It replaces the score of a masked
# key by −∞. Because $\exp(-\infty) = 0$, this key adds nothing to the sum, and its weight is exactly 0.
#
# The cell computes attention in both ways. The loop leaves out the masked keys, and the vectorized version
# replaces their scores.

# %%
q, k, v = rng.standard_normal((3, 6, 8))  # (T, K), (S, K), (S, K)
mask = padding & causal  # (T, S)
slow = np.zeros((6, 8))
for t in range(6):
    allowed = [s for s in range(6) if mask[t, s]]
    e = {s: math.exp(q[t] @ k[s] / math.sqrt(8)) for s in allowed}
    for s in allowed:
        slow[t] += e[s] / sum(e.values()) * v[s]

scores = q @ k.T / math.sqrt(8)  # (T, S)
weights, _ = softmax(np.where(mask, scores, -np.inf))
y, cache = attention(q, k, v, mask)
show(cache)

# %% tags=["check"]
assert_allclose(weights @ v, slow, rtol=1e-12)
assert_allclose(y, slow, rtol=1e-12)
assert (cache.weights[~mask] == 0).all()

# %% tags=["plot"]
figure = softmax_panels(cache.scores, cache.weights, words, words, mask=mask, numbers=True)
caption = "Grey pairs are masked; the remaining weights of every row sum to 1"
show_figure(figure, "06_softmax", caption)

# %% [markdown]
# ## Backward
#
# Masking is an operation of its own. Its input is the score $s_s$, and its output $s'_s$ goes into the
# softmax. Where the mask is True, $s'_s = s_s$. Where it is False, $s'_s = -\infty$, whatever the score is.
# So the derivative is 1 or 0, and the chain rule gives the gradient:
#
# $$\begin{aligned}
# \frac{\partial s'_s}{\partial s_s} &= m_s \\
# ds_s &= m_s\, ds'_s
# \end{aligned}$$
#
# Is the factor $m_s$ necessary? Lesson 5 derived the gradient that comes out of the softmax:
#
# $$ds'_s = p_s \left(dp_s - \sum_r dp_r\, p_r\right)$$
#
# For a masked key the weight $p_s$ is exactly 0, and so this gradient is exactly 0 already. There are two
# independent reasons why the score of a masked key gets no gradient. The first is the weight 0, and the
# second is the factor $m_s$.
#
# The value of a masked key gets no gradient from this query either, because $dv_s = \sum_t p_{ts}\, dy_t$. So
# a masked key influences neither the output nor the gradients.

# %%
dy = rng.standard_normal(y.shape)  # (T, K)
dmasked = softmax_backward(dy @ v.T, weights)  # (T, S) the gradient of s'
_, masking_cache = masks.mask_scores(scores, mask)
dscores = masks.mask_scores_backward(dmasked, masking_cache)
print("gradients of masked scores:", dscores[~mask])

dq, dk, dv = attention_backward(dy, cache)
print("dk of the two padding keys\n", dk[4:, :4], "\ndv of their values\n", dv[4:, :4])

# %% tags=["check"]
assert (dmasked[~mask] == 0).all()
assert (dscores[~mask] == 0).all()
assert_allclose(dq, dscores @ k / math.sqrt(8), rtol=1e-9, atol=1e-12)
assert_allclose(dk, dscores.T @ q / math.sqrt(8), rtol=1e-9, atol=1e-12)
assert_allclose(dv, weights.T @ dy, rtol=1e-9, atol=1e-12)
assert not dk[4:].any()
assert not dv[4:].any()

# %% [markdown]
# **Question.** Some programs *add* a large negative number to the scores of masked keys, $s'_s = s_s + f$.
# What is the derivative of $s'_s$ now, and why is the gradient of a masked score still 0?
#
# <details><summary>Answer</summary>
# The derivative is 1, because the score is still part of the sum. So the factor from the mask is missing.
# The gradient is still 0 as long as the softmax gives the key a weight of exactly 0.
# </details>
#
# *This is a good place for a break. You know masks, forward and backward. The next part compares −∞ with
# large negative numbers.*

# %% [markdown]
# ## Numbers in place of −∞
#
# Our documents do not use −∞ in their code. *一步步解析Attention is All You Need!* replaces the score by
# −2³² + 1, and *图解transformer* by −1e10. *The components of the Transformer* **adds** −1e9 to the score.
# Does the difference matter?
#
# It does not matter in a row with at least one allowed key. Before the exponential, the softmax subtracts
# the maximum of the row, which is an allowed score. The masked scores then lie far below 0, and their
# exponentials are too small for a floating-point number. They are rounded to 0, which is called
# **underflow**. The cell finds the number at which this happens.

# %%
for dtype, edge in {np.float32: -104, np.float64: -746}.items():
    before, there = np.exp(dtype(edge + 1)), np.exp(dtype(edge))
    print(f"{dtype.__name__}: exp({edge + 1}) = {before:.0e}, exp({edge}) = {there:.0f}")
    assert there == 0 < before

# %% [markdown]
# Every number in the documents is far below −746. So all of them should give the same weights as −∞. We test
# this with a row of three scores, of which two are allowed. In npformer, `Masking(fill, how)` chooses the
# number and says whether it replaces the score or is added to it.

# %%
fills = {"-inf": -math.inf, "-1e9": -1e9, "-1e10": -1e10, "-2^32+1": -(2.0**32) + 1}
row = np.array([1.0, 2.0, 3.0])  # the scores of one query
two = np.array([True, True, False])
for dtype in (np.float32, np.float64):
    exact, _ = softmax(masks.mask_scores(row.astype(dtype), two)[0])
    for fill in fills.values():
        for how in ("replace", "add"):
            masked, _ = masks.mask_scores(row.astype(dtype), two, masking=Masking(fill, how))
            assert_array_equal(softmax(masked)[0], exact)
print("two of three keys allowed:", exact, "exactly, with every fill")

# %% [markdown]
# Now consider a **fully masked row**: a query that may attend to *no* key. In such a row the maximum that the
# softmax subtracts is itself one of the large negative numbers.
#
# **Question.** All three scores 1, 2, 3 are replaced by −1e9. What are the weights?
#
# <details><summary>Answer</summary>
# All scores are equal, so every weight is 1/3. The query attends to all the keys that it must not attend to.
# </details>

# %%
nothing = np.zeros(3, bool)
outcome = {}
for name, fill in fills.items():
    for dtype in (np.float32, np.float64):
        for how in ("replace", "add"):
            masked, _ = masks.mask_scores(row.astype(dtype), nothing, masking=Masking(fill, how))
            outcome[name, dtype.__name__, how] = softmax(masked)[0]

# %% tags=["plot"]
print("fully masked   float32                             float64")
print("fill           replace          add                replace          add")
for name in fills:
    cells = ["  ".join(f"{p:.2f}" for p in outcome[key]) for key in outcome if key[0] == name]
    print(f"{name:12}", *[f"  {cell}" for cell in cells])
print("without a mask " + "  ".join(f"{p:.2f}" for p in softmax(row)[0]))
print("spacing of float32 at 1e9:", np.spacing(np.float32(1e9)), " of float64:", np.spacing(1e9))

# %% [markdown]
# Read the table column by column.
#
# - **Replaced.** All scores of the row are the same number. So every weight is 1/3.
# - **Added, in float64.** Every score is shifted by the same −1e9, and a softmax ignores a common shift. The
#   mask has *no effect at all*. The weights .09, .24 and .67 are those without any mask.
# - **Added, in float32.** Near 1e9, neighbouring float32 numbers are 64 apart. So 1 − 1e9, 2 − 1e9 and
#   3 − 1e9 are all rounded to −1e9, and every weight is 1/3 again.
# - **−∞**, as in npformer. All weights are 0.
#
# The number −2³² + 1 = −4294967295 is not a float32 number, so it is rounded to −4294967296.
#
# The two columns with "add" show a second problem. The same program computes different functions in the two
# precisions. A gradient check in float64 would then test a function that training in float32 does not use.

# %% tags=["check"]
for (name, dtype, how), found in outcome.items():
    expected = softmax(row)[0] if (how, dtype) == ("add", "float64") else [1 / 3] * 3
    assert_allclose(found, [0.0] * 3 if name == "-inf" else expected, atol=1e-5)
assert_allclose(softmax(row)[0], [0.09, 0.24, 0.67], atol=0.005)
assert float(np.float32(-(2.0**32) + 1)) == -4294967296
print("the numbers of the text are those of the table")

# %% [markdown]
# ## The fully masked row
#
# Do fully masked rows occur in practice? Yes. When a sentence is padded on the *left*, the first queries of a
# causal mask may attend to padding only. An empty source sentence has the same effect.
#
# The plain formula of the softmax fails in such a row. The maximum of the row is −∞, and −∞ − (−∞) is NaN,
# "not a number". The cell uses a softmax without any protection. It also computes $dV = P^\top dY$, with a
# gradient `dy_rest` that is 0 in the two fully masked rows.

# %%
late = np.array([[0, 0, 4, 5, 6, 7]])  # padded on the left
left = (padding_mask(late) & causal_mask(6, late))[0, 0]  # (T, S), rows 0 and 1 are fully masked

masked = np.where(left, scores, -np.inf)
with np.errstate(invalid="ignore"):
    e = np.exp(masked - masked.max(-1, keepdims=True))
unprotected = e / e.sum(-1, keepdims=True)  # (T, S)
dy_rest = np.where(np.arange(6)[:, None] < 2, 0, dy)  # no gradient for rows 0 and 1
print("rows with NaN:", np.isnan(unprotected).any(-1).nonzero()[0])
print("rows of dv with NaN:", np.isnan(unprotected.T @ dy_rest).any(-1).nonzero()[0])

# %% tags=["check"]
assert np.isnan(unprotected.T @ dy_rest).all()

# %% [markdown]
# Nobody uses the outputs of these two rows, and their gradient is 0. Still, the gradient of *every* value is
# NaN. The reason is that $dV = P^\top dY$ contains the products NaN · 0, which are NaN. After one optimizer
# step with such gradients, the model cannot be used any more.
#
# The function `softmax` of npformer prevents this with two lines. If the maximum of a row is not finite, it
# subtracts 0 instead. If the sum of the exponentials is 0, it divides by 1 instead. In a fully masked row
# this gives:
#
# $$\begin{aligned}
# e_s &= \exp(-\infty - 0) = 0 \\
# p_s &= \frac{0}{1} = 0 \\
# ds'_s &= p_s \left(dp_s - \sum_r dp_r\, p_r\right) = 0 \cdot (dp_s - 0) = 0
# \end{aligned}$$
#
# So a fully masked query has the output 0, and its gradients are 0. This is the only result in which a masked
# key has no influence. The gradient check passes with this mask too.

# %%
y, cache = attention(q, k, v, left)
print("outputs of the fully masked rows:", y[:2, :3].ravel())
report = gradcheck((attention, attention_backward), q, k, v, mask=left)
print(report)

# %% tags=["check"]
assert not y[:2].any()
assert all(np.isfinite(gradient).all() for gradient in attention_backward(dy, cache))
assert not attention_backward(dy, cache)[0][:2].any()
assert report.ok

# %% [markdown]
# A large negative number never gives NaN, but its errors are harder to find. Here is an example. We add −1e9
# once for padding and once for the future, in float32. Query 0 of the sentence above is a padding token, and
# it is the first position:
#
# | key | padding | future | added |
# |---|---|---|---|
# | 0 | yes | no | −1e9 |
# | 1 | yes | yes | −2e9 |
# | 2 to 5 | no | yes | −1e9 |
#
# The maximum of this row is −1e9. So query 0 gives a weight of .2 to itself and to each *future* token.
# The gradients are wrong in the same way. Key 5, which is masked for query 0, receives a gradient from it.

# %%
twice = scores.astype(np.float32)
for part in (padding_mask(late)[0, 0], causal_mask(6, late)):
    twice, _ = masks.mask_scores(twice, part, masking=Masking(-1e9, "add"))
added, _ = softmax(twice)  # (T, S)
print("weights of query 0:", added[0].round(2))

_, cache = attention(q, k, v, left, masking=Masking(-1e9, "add"))
of_row = np.where(np.arange(6)[:, None] == 0, dy, 0)  # a gradient for query 0 alone
print("gradient of key 5, masked:", attention_backward(of_row, cache)[1][5, :3])

# %% tags=["check"]
assert_allclose(added[0], [0.2, 0, 0.2, 0.2, 0.2, 0.2], atol=1e-6)
assert attention_backward(of_row, cache)[1][5].all()
assert not attention_backward(of_row, attention(q, k, v, left)[1])[1].any()  # −∞: no gradient

# %% [markdown]
# *This is a good place for a break. The next part shows how to test a model for errors of its masks.*
#
# ## Leaks: a test with the forward pass
#
# A **leak** is an output that depends on a token which the mask hides. A leak raises no error, and the
# gradient check does not find it. The check compares the backward pass with the forward pass, and both
# contain the same wrong mask.
#
# There is a simple test. **Change one token and compare the outputs.** A masked key has a weight of exactly
# 0, and 0 times a changed value is still exactly 0. So an output that must not depend on the token stays the
# same to the last bit, and we need no tolerance. One forward pass for each token tests all pairs.
#
# The function `moves` returns how much each output (row) changes when one token (column) changes.

# %%
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
# **Your turn.** Is −10 a large enough number? In the terminal, type `!layer.masking = Masking(-10.0, "add")`,
# and then `!moves(causal)`. Predict the result first.

# %% [markdown]
# ## What a leak does to the loss
#
# How does a leak show itself in training? We use data that cannot be predicted: throws of a die with eight
# faces. All throws are independent, so the best possible prediction gives each face the probability 1/8. The
# loss of this prediction is $-\log(1/8) = \log 8 = 2.08$.
#
# The model is small: an embedding with positions, one attention layer, and one linear layer. It predicts the
# next throw:
#
# ```text
# ids (B, T) → [embedding] → (B, T, D) → [attention, mask] → (B, T, D) → [linear] → (B, T, 8)
# ```

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
# The training loop is that of lesson 13 in its simplest form. At position t the target is throw t + 1. Every
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
#    attend to it. The correct mask has the same effect.
#
# **Question.** There are 8 positions. What is the lowest loss that the leaking model can reach?
#
# <details><summary>Answer</summary>
# At positions 0 to 6 the next throw is part of the input, so the loss can be 0 there. The target of the last
# position is not in the input, so its loss is at least log 8. The mean is log 8 / 8 = .26.
# </details>

# %%
right, wrong = causal_mask(8, ids), np.tri(8, k=1, dtype=bool)
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
# loss on *new* data is just as low, because the model leaks there too. So a validation set does not reveal
# the error, and neither does regularization or longer training.
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
# *This is a good place for a break. The last part treats two special cases from the documents.*
#
# ## The query mask
#
# A padding token is also a *query*. Its row of weights has no meaning, since nobody needs its output. A
# **query mask** marks such queries. *一步步解析Attention is All You Need!* uses one, but describes it in two
# different ways:
#
# - Its text and its figure set the row of *scores* to 0, before the softmax.
# - Its code sets the row of *weights* to 0, after the softmax.
#
# The two are not the same. The cell prints the weights of the first padding query in both cases, and the
# gradient of its value.

# %%
rows = masks.query_mask(ids)[0, 0]  # (T, 1)
found = {}
for when in ("before", "after"):
    y, cache = attention(q, k, v, padding, query_mask=rows, masking=Masking(query=when))
    dq, _, dv = attention_backward(dy, cache)
    found[when] = cache.weights[4], dq[4:], dv[4]
    print(f"{when:6} weights of <PAD> {cache.weights[4].round(2)}   its dv {dv[4, :3].round(2)}")

# %% tags=["check"]
for when, (weights_of_pad, dq_of_pad, dv_of_pad) in found.items():
    assert_allclose(weights_of_pad, {"before": 1 / 6, "after": 0}[when])
    assert dv_of_pad.any() == (when == "before")
    assert not dq_of_pad.any()

# %% [markdown]
# - **Before**: scores of 0 are equal scores, so the padding query gives a weight of 1/6 to every key, even to
#   other padding. If the loss sends a gradient to the padding rows, then all values receive a part of it.
# - **After**: all weights of the query are 0, so no value receives a gradient from it. When npformer is given
#   a query mask, it uses this variant.
#
# Usually a query mask is not necessary. The padding mask prevents every query from attending to padding, and
# the loss does not count padding (lesson 12). So $dy$ is 0 in the padding rows. In this case both variants
# and attention without a query mask give the same gradients:

# %%
real = np.where(rows, dy, 0)  # (T, K), 0 in the padding rows
_, plain = attention(q, k, v, padding)
for when in ("before", "after"):
    _, cache = attention(q, k, v, padding, query_mask=rows, masking=Masking(query=when))
    gradients = attention_backward(real, cache)
    for one, other in zip(gradients, attention_backward(real, plain), strict=True):
        assert_allclose(one, other, atol=1e-14)
print("with dy = 0 at padding, all three give the same gradients")

# %% [markdown]
# ## A mask computed from the vectors
#
# How does a model know which tokens are padding? npformer compares the *ids* with the id of `<PAD>`.
# *一步步解析Attention is All You Need!* computes the mask from the *vectors* instead. Its embedding of
# padding is a vector of zeros. So a token counts as padding when the entries of its vector sum to 0. For the
# embeddings alone this is correct.
#
# **Question.** After the embedding, the model adds a position vector to each token (lesson 3). What does the
# mask look like when it is computed after this addition?
#
# <details><summary>Answer</summary>
# The vector of a padding token is now equal to its position vector, whose entries do not sum to 0. So no
# token counts as padding, and the mask is True everywhere.
# </details>

# %%
table = rng.standard_normal((8, 512)).astype(np.float32)  # (V, D)
table[0] = 0  # padding
embedded = table[ids] * math.sqrt(512)  # (B, S, D)
with_positions = embedded + sinusoids(6, 512).astype(np.float32)
print("from the ids           ", padding_mask(ids)[0, 0, 0] * 1)
print("from the embeddings    ", masks.mask_from_embeddings(embedded)[0, 0, 0] * 1)
print("once positions are added", masks.mask_from_embeddings(with_positions)[0, 0, 0] * 1)

# %% [markdown]
# The error raises no exception and gives no NaN. In the higher layers there is a second problem. Their input
# is the output of a layer norm, where the entries of *every* vector sum to 0. (This holds as long as the
# gain is 1 and the bias is 0, as at the start of training.) In practice, rounding errors make the sum a tiny
# number. For some tokens the rounding errors cancel. Then the sum is exactly 0, and the mask hides a real
# token. How often does this happen?

# %%
many = rng.standard_normal((1, 4000, 512)).astype(np.float32)  # (B, S, D) real tokens
normed, _ = layer_norm(many, np.ones(512, np.float32), np.zeros(512, np.float32))
hidden = 1 - masks.mask_from_embeddings(normed).mean()
print(f"after a layer norm, {hidden:.1%} of 4000 real tokens count as padding")

# %% tags=["check"]
assert masks.mask_from_embeddings(with_positions).all()
assert 0.05 < hidden < 0.1

# %% [markdown]
# About 7 % of the real tokens are hidden, and chance decides which ones. This is why npformer computes its
# masks from ids.

# %% [markdown]
# ## What the documents say
#
# > - **The number.** The paper and the text of *图解transformer* say −∞. The code of *图解transformer*
# >   replaces by −1e10, *一步步解析Attention is All You Need!* replaces by −2³² + 1, and *The components of
# >   the Transformer* adds −1e9. The last computes `mask * -1e9`, which would not work with −∞, since 0 · ∞
# >   is NaN.
# > - **True and False.** In *图解transformer* 0 means masked, and in *The components of the Transformer* 1
# >   does. In npformer True means that the query may attend, and a mask that is not bool is refused.
# > - **The diagonal.** *一步步解析Attention is All You Need!* and *图解transformer* say that the decoder
# >   attends only to what is before position i. Their masks keep the diagonal, which is correct: position i
# >   of the input holds token i − 1 of the output.
# > - **Zeros.** The first of these two says that padding stays 0 through the projections. This holds only
# >   without positions and biases.

# %% [markdown]
# ## Summary
#
# - A mask is a bool array over the scores; in npformer, True means that the query may attend to the key.
# - The padding mask hides `<PAD>`, the causal mask hides later positions, and `&` combines them.
# - Scores of masked keys become −∞, so that their weights and all gradients through them are exactly 0.
# - In a fully masked row, large negative numbers give wrong weights; npformer gives weights of 0.
# - To find a leak, change one token: an output that must not depend on it may not change by a single bit.

# %% [markdown]
# ## Questions
#
# **Question.** Why can the leak test demand exact equality, while the gradient check needs a tolerance?
#
# <details><summary>Answer</summary>
# In the leak test the same additions are done twice, and the terms that change are multiplied by exactly 0.
# The gradient check compares two different calculations, which have different rounding errors.
# </details>
#
# **Question.** A mask is the same for all sentences of a batch, but not for all queries. Which one is it?
#
# <details><summary>Answer</summary>
# It is the causal mask. The padding mask is different for each sentence, but the same for all queries.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 6` lists them.
#
# - `npformer exercise start causal-mask`: one comparison, broadcast to a square.
# - `npformer exercise start padding-mask`: one comparison, and two axes of length 1.
# - `npformer exercise start local-mask`: a query may attend only to keys within a given distance.
# - `npformer exercise start mask-scores-backward`: the gradient of a score that was replaced.
# - By hand: a mask *adds* −10 to a score of 12. The only other key is allowed, and its score is 2. Which
#   weight does the masked key have?
#
# The command `npformer masks "I am late" --pad 2 --causal --mistake from-embeddings` draws the masks of a
# sentence, with the mistake of the last section.
#
# **Next**, lesson 7: several attention functions in parallel.

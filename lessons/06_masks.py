# %% [markdown]
# # 6 · Masks: what a word must not look at
#
# *30 minutes to read, 3 seconds to run. It needs scaled dot-product attention from lesson 5.*
#
# **The question.** A sentence in a batch ends in padding, which means nothing; a decoder learns to say the
# next word from an input in which that word already stands. Attention sees all of it. How does one forbid a
# look, so that not a single bit comes through, forwards or backwards? What becomes of a word that may look
# at nothing? And how does one find out that something leaks, when the only symptom is a loss that looks too
# good?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import Module, MultiHeadAttention, assert_no_leak, show
from npformer.checking import gradcheck
from npformer.checking.leaks import movement
from npformer.functional.attention import attention, attention_backward
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.functional.masks import (
    Masking,
    causal_mask,
    mask_from_embeddings,
    mask_scores,
    mask_scores_backward,
    padding_mask,
    query_mask,
)
from npformer.functional.norm import layer_norm
from npformer.functional.positions import sinusoids
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.nn import InputEmbedding, Linear
from npformer.plots import curves, leak_map, mask_panels, softmax_panels
from npformer.training.optimizer import Adam

rng = np.random.default_rng(6)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# *Attention Is All You Need*, section 3.2.3, about the decoder:
#
# > We implement this inside of scaled dot-product attention by masking out (setting to −∞) all values in the
# > input of the softmax which correspond to illegal connections.
#
# A **mask** is a bool array that lies over the scores (T, S), and in all of npformer **True means may look**.
# Two kinds of pairs are illegal:
#
# - **padding**: no query may look at a key that is padding. It depends on the sentence, not on the query.
# - **causal**: position t may look at positions 0 … t. It depends on positions, not on the sentence.
#
# The diagonal of the causal mask stays: a word sees itself. That is no leak, because the decoder's input is
# shifted, and position t holds the word *before* the one to be said. Any other bool array will do as well
# (`local_mask`: only neighbours), and masks combine with &.

# %%
words = ["<S>", "I", "am", "late", "<PAD>", "<PAD>"]
ids = np.array([[2, 4, 5, 6, 0, 0]])  # (B, S)

padding = np.zeros((6, 6), bool)  # (T, S)
causal = np.zeros((6, 6), bool)
for t in range(6):
    for s in range(6):
        padding[t, s] = ids[0, s] != 0
        causal[t, s] = s <= t

# the package's: axes of length 1 broadcast over heads, and the padding mask over queries too
print("padding", padding_mask(ids).shape, "  causal", causal_mask(6, ids).shape)
mask = padding_mask(ids) & causal_mask(6, ids)  # (B, 1, T, S)
assert_array_equal(np.broadcast_to(padding_mask(ids)[0, 0], (6, 6)), padding)
assert_array_equal(causal_mask(6, ids), causal)
assert_array_equal(mask[0, 0], padding & causal)

# %%
figure = mask_panels({"padding": padding, "causal": causal}, words, words)
show_figure(figure, "06_masks", "A row is a query, a column a key; together: combined with &")

# %% [markdown]
# ## Forward
#
# What we *want* is simple: the softmax of lesson 5 over the allowed keys, as if the others were not there.
# With mₛ = 1 where the query may look and 0 where it may not:
#
# ```math
# pₛ = mₛ exp sₛ / Σᵣ mᵣ exp sᵣ
# ```
#
# The paper's trick gets it without changing the softmax: exp(−∞) = 0, so set the score to −∞.

# %%
q, k, v = rng.standard_normal((3, 6, 8))  # (T, K), (S, K), (S, K)
mask = padding & causal  # (T, S)
slow = np.zeros((6, 8))
for t in range(6):
    seen = [s for s in range(6) if mask[t, s]]
    e = {s: math.exp(q[t] @ k[s] / math.sqrt(8)) for s in seen}
    for s in seen:
        slow[t] += e[s] / sum(e.values()) * v[s]

scores = q @ k.T / math.sqrt(8)  # (T, S)
weights, _ = softmax(np.where(mask, scores, -np.inf))
y, cache = attention(q, k, v, mask)
assert_allclose(weights @ v, slow, rtol=1e-12)
assert_allclose(y, slow, rtol=1e-12)
assert (cache.weights[~mask] == 0).all()
show(cache)

# %%
figure = softmax_panels(cache.scores, cache.weights, words, words, mask=mask, numbers=True)
caption = "Grey pairs are masked; of what is left every row sums to 1"
show_figure(figure, "06_softmax", caption)

# %% [markdown]
# ## Backward
#
# Masking is an operation of its own, between the scores s and the softmax: s′ = s where m is True, −∞ where
# it is not. Its backward is as short as can be. A score that was thrown away moves nothing:
#
# ```math
# ∂s′ₛ/∂sₛ = mₛ          dsₛ = mₛ ds′ₛ
# ```
#
# Is that line needed? Look at what the softmax hands it (lesson 5):
#
# ```math
# ds′ₛ = pₛ (dpₛ − Σᵣ dpᵣ pᵣ)          pₛ = 0  ⟹  ds′ₛ = 0, exactly
# ```
#
# It is 0 already. **Two locks on one door**: the weight of a masked key is 0, so its score hears nothing,
# nor does its value (dvₛ = Σₜ pₜₛ dyₜ), whatever dy is. What is not seen is not taught either. (A mask that
# is *added*, s′ = s + fill, has slope 1 and only the second lock.)

# %%
dy = rng.standard_normal(y.shape)  # (T, K)
dmasked = softmax_backward(dy @ v.T, weights)  # (T, S) the gradient of s'
dscores = mask_scores_backward(dmasked, mask_scores(scores, mask)[1])
assert (dmasked[~mask] == 0).all()
assert (dscores[~mask] == 0).all()

dq, dk, dv = attention_backward(dy, cache)
assert_allclose(dq, dscores @ k / math.sqrt(8), rtol=1e-9, atol=1e-12)
assert_allclose(dk, dscores.T @ q / math.sqrt(8), rtol=1e-9, atol=1e-12)
assert_allclose(dv, weights.T @ dy, rtol=1e-9, atol=1e-12)
print("dk of the two padding keys\n", dk[4:, :4], "\ndv of their values\n", dv[4:, :4])
assert not dk[4:].any()
assert not dv[4:].any()

# %% [markdown]
# ## Numbers in place of −∞
#
# The documents do not use −∞. *一步步解析Attention is All You Need!* replaces the score by −2³² + 1,
# *图解transformer* by −1e10 (its text says −∞), *The components of the Transformer* **adds** −1e9. Does it
# matter?
#
# In a row with at least one allowed key: no. The softmax subtracts the row's maximum, and exp of anything
# far enough below underflows to 0. How far is enough?

# %%
for dtype, edge in {np.float32: -104, np.float64: -746}.items():
    before, there = np.exp(dtype(edge + 1)), np.exp(dtype(edge))
    print(f"{dtype.__name__}: exp({edge + 1}) = {before:.0e}, exp({edge}) = {there:.0f}")
    assert there == 0 < before

fills = {"-inf": -math.inf, "-1e9": -1e9, "-1e10": -1e10, "-2^32+1": -(2.0**32) + 1}
row = np.array([1.0, 2.0, 3.0])  # scores of one query
two = np.array([True, True, False])
for dtype in (np.float32, np.float64):
    exact, _ = softmax(mask_scores(row.astype(dtype), two)[0])
    for fill in fills.values():
        for how in ("replace", "add"):
            masked, _ = mask_scores(row.astype(dtype), two, masking=Masking(fill, how))
            assert_array_equal(softmax(masked)[0], exact)
print("two of three keys allowed:", exact, "to the bit, whatever the fill")

# %% [markdown]
# Now a query that may look at *nothing*: then the maximum that is subtracted is a fill itself.

# %%
print("fully masked   float32                             float64")
print("fill           replace          add                replace          add")
outcome = {}
for name, fill in fills.items():
    for dtype in (np.float32, np.float64):
        for how in ("replace", "add"):
            masked, _ = mask_scores(row.astype(dtype), ~two & two, masking=Masking(fill, how))
            outcome[name, dtype.__name__, how] = softmax(masked)[0]
    cells = ["  ".join(f"{p:.2f}" for p in outcome[key]) for key in outcome if key[0] == name]
    print(f"{name:12}", *[f"  {cell}" for cell in cells])
print("without a mask " + "  ".join(f"{p:.2f}" for p in softmax(row)[0]))
print("spacing of float32 at 1e9:", np.spacing(np.float32(1e9)), " of float64:", np.spacing(1e9))

# %% [markdown]
# Read it by columns.
#
# - **Replaced** by one number, all scores are equal: the query looks at everything it must not, evenly, 1/3.
# - **Added**, in float64: all scores are moved by the same −1e9, which a softmax does not see. The mask has
#   *no effect at all*: .09, .24, .67 are the weights without any mask.
# - **Added**, in float32: at 1e9 neighbouring float32 numbers are 64 apart. A score of 3 vanishes in the
#   rounding, all become −1e9, and the weights are uniform again. The same code says different things in two
#   precisions: a gradient check in float64 tests another function than the one that trains.
# - −2³² + 1 = −4294967295 is no float32 number at all: it is rounded to −4294967296.
# - **−∞**, as npformer does it: 0, 0, 0.

# %%
for (name, dtype, how), found in outcome.items():
    wanted = softmax(row)[0] if (how, dtype) == ("add", "float64") else [1 / 3] * 3
    assert_allclose(found, [0.0] * 3 if name == "-inf" else wanted, atol=1e-5)
assert_allclose(softmax(row)[0], [0.09, 0.24, 0.67], atol=0.005)
assert float(np.float32(-(2.0**32) + 1)) == -4294967296
print("the numbers of the text are those of the table")

# %% [markdown]
# ## The fully masked row
#
# Does it occur? Pad on the *left*, and the first queries of a causal mask see padding only. An empty source
# sentence does it too. Here is what −∞ does in a softmax that nobody guarded: the maximum is −∞, and
# −∞ − (−∞) is NaN.

# %%
late = np.array([[0, 0, 4, 5, 6, 7]])  # padded on the left
left = (padding_mask(late) & causal_mask(6, late))[0, 0]  # (T, S) rows 0 and 1 see nothing

masked = np.where(left, scores, -np.inf)
with np.errstate(invalid="ignore"):
    e = np.exp(masked - masked.max(-1, keepdims=True))
unguarded = e / e.sum(-1, keepdims=True)  # (T, S)
quiet = np.where(np.arange(6)[:, None] < 2, 0, dy)  # the loss says nothing to rows 0 and 1
print("rows with NaN:", np.isnan(unguarded).any(-1).nonzero()[0])
print("rows of dv with NaN:", np.isnan(unguarded.T @ quiet).any(-1).nonzero()[0])
assert np.isnan(unguarded.T @ quiet).all()

# %% [markdown]
# Two rows that no one will ever read, with a gradient of 0, and yet the gradient of *every* value is NaN, for
# dV = Pᵀ dY adds NaN · 0 = NaN into all of them. One step of the optimizer later the model is gone.
#
# The guard is two lines of `softmax`: a maximum that is not finite becomes 0, and a sum of 0 becomes 1.
#
# ```math
# eₛ = exp(−∞ − 0) = 0        Σ eₛ = 0 → 1        pₛ = 0 / 1 = 0
# ds′ₛ = pₛ (dpₛ − Σᵣ dpᵣ pᵣ) = 0 · (dpₛ − 0) = 0
# ```
#
# Who may look at nothing sees nothing: y is 0, and nothing comes back. It is the only answer in which a
# forbidden key stays forbidden. gradcheck takes this mask with its two empty rows, too:

# %%
y, cache = attention(q, k, v, left)
assert not y[:2].any()
assert all(np.isfinite(gradient).all() for gradient in attention_backward(dy, cache))
assert not attention_backward(dy, cache)[0][:2].any()
report = gradcheck((attention, attention_backward), q, k, v, mask=left)
print(report)
assert report.ok

# %% [markdown]
# Large numbers never give NaN. What they do instead is worse to find. With −1e9 added once for padding and
# once for the future, query 0 of the sentence above has −1e9 at each word of its future, and at itself, and
# −2e9 at the second padding, which is both. It looks at the *future*, and teaches it:

# %%
twice = scores.astype(np.float32)
for part in (padding_mask(late)[0, 0], causal_mask(6, late)):
    twice, _ = mask_scores(twice, part, masking=Masking(-1e9, "add"))
added, _ = softmax(twice)  # (T, S)
print("query 0 looks at", added[0].round(2))
assert_allclose(added[0], [0.2, 0, 0.2, 0.2, 0.2, 0.2], atol=1e-6)

_, cache = attention(q, k, v, left, masking=Masking(-1e9, "add"))
of_row = np.where(np.arange(6)[:, None] == 0, dy, 0)  # the loss speaks to query 0 alone
print("and key 5, which it must not see, hears", attention_backward(of_row, cache)[1][5, :3])
assert attention_backward(of_row, cache)[1][5].all()
assert not attention_backward(of_row, attention(q, k, v, left)[1])[1].any()  # −∞: nothing

# %% [markdown]
# ## Leaks: ask the forward pass
#
# The forward pass was the judge of gradients; it is the judge of masks too. **Change one token, and see which
# outputs move.** What the mask forbids must not move *by a single bit*: a weight of exactly 0 times a changed
# value is 0, so there is nothing to round. One forward pass for each token tests all pairs.

# %%
layer = MultiHeadAttention(8, 2, rng=rng, dtype=np.float64)
x = rng.standard_normal((6, 8))  # (T, D)


def moves(mask):
    """How far each output moves with each token. Shapes: mask (T, S) -> (T, S)."""
    moved = np.zeros((6, 6))
    before = layer.forward(x[None], mask=mask)[0][0]  # (T, D)
    for s in range(6):
        changed = x.copy()
        changed[s] += np.random.default_rng(s).standard_normal(8)
        after = layer.forward(changed[None], mask=mask)[0][0]
        moved[:, s] = abs(after - before).max(-1)
    return moved


assert_array_equal(moves(causal) > 0, causal)  # exactly where it may
assert_allclose(moves(causal), movement(lambda x: layer.forward(x, mask=causal), x[None]))
assert_no_leak(lambda x: layer.forward(x, mask=causal), x[None])  # the same in one line

off_by_one = np.tri(6, k=1, dtype=bool)  # k=1 is one diagonal too many
try:
    assert_no_leak(lambda x: layer.forward(x, mask=off_by_one), x[None])
except AssertionError as error:
    found = str(error)
print(found)
assert found.startswith("output 0 moves when token 1 changes")

# %%
tokens = ["<S>", "I", "am", "late", "for", "tea"]
figure = leak_map(moves(off_by_one), causal, tokens, tokens)
show_figure(figure, "06_leak", "Off by one: an output moves with the very word it is to say")

# %% [markdown]
# ## What a leak does to the loss
#
# Let the words be dice: eight faces, each thrown anew. Nobody can foretell a throw, so the best honest loss
# is that of the uniform guess, ln 8 = 2.08. The model has one layer: words and positions, attention, one
# matrix. It learns to say the next throw, on fresh dice at each step, under the right mask and the wrong one.

# %%


class NextThrow(Module):
    """What comes next? Shapes: ids (B, T) -> logits (B, T, 8)."""

    def __init__(self, rng):
        self.read = InputEmbedding(8, 32, 8, rng=rng)
        self.attention = MultiHeadAttention(32, 1, rng=rng)
        self.say = Linear(32, 8, rng=rng)

    def forward(self, ids, mask):
        """Returns (logits, cache)."""
        x, read = self.read.forward(ids)  # (B, T, D)
        z, attended = self.attention.forward(x, mask=mask)  # (B, T, D)
        y, say = self.say.forward(z)  # (B, T, V)
        return y, (read, attended, say)

    def backward(self, dy, cache):
        """Adds to all gradients."""
        read, attended, say = cache
        self.read.backward(self.attention.backward(self.say.backward(dy, say), attended), read)


# %% [markdown]
# Its training is the loop of lesson 13, without its comforts:

# %%


def train(mask, steps=300):
    """A model that learned under this mask, and its losses."""
    rng = np.random.default_rng(6)
    model, losses = NextThrow(rng), []
    adam = Adam(model)
    for _ in range(steps):
        dice = rng.integers(0, 8, (32, 9))  # (B, T + 1)
        logits, cache = model.forward(dice[:, :-1], mask)
        loss, judged = cross_entropy(logits, dice[:, 1:])  # position t is to say throw t + 1
        model.grads[...] = 0
        model.backward(cross_entropy_backward(1.0, judged), cache)
        adam.step(0.01)
        losses.append(float(loss))
    return model, losses


# %% [markdown]
# Three measurements on new dice. In the last one the cheat decodes: the next word is not there to be looked
# at, which is the same as the right mask.

# %%
right, wrong = causal_mask(8, ids), np.tri(8, k=1, dtype=bool)
(honest, of_honest), (cheat, of_cheat) = train(right), train(wrong)
dice = rng.integers(0, 8, (2000, 9))
for name, model, mask in [
    ("honest, as trained", honest, right),
    ("cheat, as trained ", cheat, wrong),
    ("cheat, decoding   ", cheat, right),
]:
    loss = float(cross_entropy(model.forward(dice[:, :-1], mask)[0], dice[:, 1:])[0])
    print(f"{name}   loss on new dice {loss:.2f}   (ln 8 = {math.log(8):.2f})")

# %%
figure = curves(
    np.array([of_honest, of_cheat, [math.log(8)] * 300, [math.log(8) / 8] * 300]),
    labels=["honest", "off by one", "ln 8", "ln 8 / 8"],
    ylabel="loss",
    title="Foretelling dice",
)
show_figure(figure, "06_dice", "The leak's loss is too good: no one can foretell dice")

# %% [markdown]
# The cheat comes down to .33. (Not to 0: the last position's throw is not in the input, so ln 8 / 8 = .26 is
# the least.) Its *validation* loss is as good, because it leaks there too. No split of the data, no
# regularizer, no longer training shows it. Only when it decodes, and the next word is not there, its loss is
# above 3.5, worse than not having learned at all. If a language model's loss is far below what others reach:
# test for a leak before you celebrate.

# %%
assert_allclose(np.mean(of_honest[-50:]), 2.08, atol=0.03)
assert_allclose(np.mean(of_cheat[-50:]), 0.33, atol=0.03)
assert loss > 3.5
assert_no_leak(lambda ids: honest.forward(ids, right), dice[:1, :8])  # float32: not a bit
moved = movement(lambda ids: cheat.forward(ids, wrong), dice[:1, :8])
assert_array_equal(np.argwhere((moved > 0) & ~right)[0], [0, 1])

# %% [markdown]
# ## The query mask
#
# A padding word is a *query* as well, and its row in the weights means nothing. *一步步解析Attention is All
# You Need!* masks it too, but in two ways: its text and its figure set the row of scores to 0 *before* the
# softmax, its code the row of weights *after* it.

# %%
rows = query_mask(ids)[0, 0]  # (T, 1)
for when in ("before", "after"):
    y, cache = attention(q, k, v, padding, query_mask=rows, masking=Masking(query=when))
    dq, _, dv = attention_backward(dy, cache)
    print(f"{when:6} weights of <PAD> {cache.weights[4].round(2)}   its dv {dv[4, :3].round(2)}")
    assert_allclose(cache.weights[4], {"before": 1 / 6, "after": 0}[when])
    assert dv[4].any() == (when == "before")
    assert not dq[4:].any()

# %% [markdown]
# Scores of 0 are equal scores: *before*, padding looks at everybody with 1/6, other padding included, and so
# those values hear what the loss tells the padding rows. *After*, the row is 0 and nobody hears anything.
# npformer does it after, where it is given a query mask. It need not be: no word looks at padding (padding
# mask), and the loss does not count it (lesson 12), so its dy is 0, and then both ways agree with none:

# %%
real = np.where(rows, dy, 0)  # (T, K) nothing is said to padding rows
_, plain = attention(q, k, v, padding)
for when in ("before", "after"):
    _, cache = attention(q, k, v, padding, query_mask=rows, masking=Masking(query=when))
    own = attention_backward(real, cache)
    for one, other in zip(own, attention_backward(real, plain), strict=True):
        assert_allclose(one, other, atol=1e-14)
print("with dy = 0 at padding: three ways, one gradient")

# %% [markdown]
# ## A mask that forgets to be one
#
# Where does the mask come from? That document's code makes it from the *vectors*: padding is embedded as 0,
# so a key whose numbers sum to 0 is padding. Of the embeddings that is true. But then positions are added:

# %%
table = rng.standard_normal((8, 512)).astype(np.float32)  # (V, D)
table[0] = 0  # padding
embedded = table[ids] * math.sqrt(512)  # (B, S, D)
with_positions = embedded + sinusoids(6, 512).astype(np.float32)
print("right                  ", padding_mask(ids)[0, 0, 0] * 1)
print("from the embeddings    ", mask_from_embeddings(embedded)[0, 0, 0] * 1)
print("once positions are added", mask_from_embeddings(with_positions)[0, 0, 0] * 1)

many = rng.standard_normal((1, 4000, 512)).astype(np.float32)  # (B, S, D) real words
normed, _ = layer_norm(many, np.ones(512, np.float32), np.zeros(512, np.float32))
hidden = 1 - mask_from_embeddings(normed).mean()
print(f"after a layer norm: {hidden:.1%} of 4000 real words are taken for padding")
assert mask_from_embeddings(with_positions).all()
assert 0.05 < hidden < 0.1

# %% [markdown]
# With positions added, padding sums to something, and the mask lets everything pass: no error, no NaN. And
# every layer above the first gets the output of a layer norm, which as long as its gain is 1 and its bias 0,
# as at the start, sums to 0 *by construction*, up to rounding. In about 7% of the real words here the
# rounding errors happen to cancel to exactly 0, and the word is hidden. The mask has become a die. npformer
# makes its masks from ids.

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 6` has them.
#
# - `npformer exercise start causal-mask`: one comparison, broadcast to a square.
# - `npformer exercise start padding-mask`: one comparison, and two axes of length 1.
# - `npformer exercise start local-mask`: only neighbours may be looked at; the distance decides.
# - `npformer exercise start mask-scores-backward`: what passes back through a score that was replaced.
# - By hand: a mask is *added* as −10 to a score of 12, beside one other key with a score of 2. Which weight
#   has the forbidden key?
#
# To try now, in the terminal: `!layer.masking = Masking(-10.0, "add")`, then `!moves(causal)`: is −10 enough?
# And outside: `npformer masks "I am late" --pad 2 --causal --mistake from-embeddings`.
#
# ## Where the documents differ
#
# - The value: −∞ (paper, and the text of *图解transformer*), −1e10 replaced (its code), −2³² + 1 replaced
#   (*一步步解析Attention is All You Need!*), −1e9 added (*The components of the Transformer*). With an
#   allowed key in the row all are the same to the bit; without one the table above shows three outcomes. The
#   last multiplies, `mask * -1e9`, and could not do so with −∞: 0 · ∞ is NaN.
# - True, 1 and 0: for *图解transformer* 0 is masked, for *The components of the Transformer* 1 is. Here True
#   may look, and a mask that is not bool is refused.
# - *一步步解析Attention is All You Need!* and *图解transformer* say that the decoder sees only what is before
#   position i; the masks of both keep the diagonal, and are right: position i of the input holds word i − 1
#   of the output.
# - The first of the two also says that padding stays 0 through the projections. That holds without positions
#   and biases only.
#
# **Next**, lesson 7: several looks at once.

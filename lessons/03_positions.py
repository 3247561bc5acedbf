# %% [markdown]
# # 3 · Positions
#
# *30 minutes to read, 2 seconds to run. Lesson 2 for word vectors; sine and cosine of a sum of angles.*
#
# **The question.** "the cat sees the dog" and "the dog sees the cat" are the same five vectors in another
# order. Does attention notice? (It does not.) What can one add to a vector so that it does? Why sines and
# cosines, and why so many? And what does a learned position hear from a batch?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, UserError, show
from npformer.checking import gradcheck
from npformer.functional.attention import attention
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.nn import InputEmbedding, LearnedPositions
from npformer.plots import attention_map, curves, value_map

rng = np.random.default_rng(3)
f8 = {"rng": rng, "dtype": np.float64}

# %% [markdown]
# ## The passage
#
# *Attention Is All You Need*, section 3.5:
#
# > Since our model contains no recurrence and no convolution, in order for the model to make use of the order
# > of the sequence, we must inject some information about the relative or absolute position of the tokens in
# > the sequence.
#
# ```math
# PE(pos, 2i)   = sin(pos / 10000^(2i/D))
# PE(pos, 2i+1) = cos(pos / 10000^(2i/D))          i = 0 .. D/2 − 1
# ```
#
# > We chose this function because we hypothesized it would allow the model to easily learn to attend by
# > relative positions, since for any fixed offset k, PE_pos+k can be represented as a linear function of
# > PE_pos.
#
# Three claims: order is lost without, sinusoids bring it back, and an offset is linear. We test each.
#
# ## Without positions, order is lost
#
# Let Π be a matrix that permutes the words. Queries, keys and values are made word by word, so each is
# permuted too. Then, with c = 1/√dₖ (attention itself is the topic of lesson 5):
#
# ```math
# S′ = c (ΠQ)(ΠK)ᵀ = Π S Πᵀ              the same scores, rows and columns permuted
# P′ = softmax(S′) = Π P Πᵀ              a softmax works along its row, in whatever order
# Y′ = P′ (ΠV) = Π P Πᵀ Π V = Π Y        since Πᵀ Π = 1
# ```
#
# Permute the words, and the outputs are permuted; nothing else happens. Attention is
# **permutation-equivariant**: each word gets the same vector, wherever it and the others stand.

# %%
the, cat, sees, dog = rng.standard_normal((4, 8))  # (D,) each
x = np.stack([the, cat, sees, the, dog])  # (T, D)
order = [3, 4, 2, 0, 1]
permuted = x[order]  # the dog sees the cat

one_head = [attention(z, z, z)[0] for z in (x, permuted)]
assert_allclose(one_head[1], one_head[0][order], rtol=1e-12)

layer = MultiHeadAttention(8, 4, **f8)  # several heads do not help
y, y_permuted = (layer.forward(z[None])[0][0] for z in (x, permuted))  # (T, D)
assert_allclose(y_permuted, y[order], rtol=1e-12)
print("cat, who sees:   ", y[1, :4])
print("cat, who is seen:", y_permuted[4, :4])

# %% [markdown]
# The cat that sees and the cat that is seen are one vector. All that follows in a layer (lessons 8 and 9)
# treats each word by itself, so it would stay so to the end of the encoder: a bag of words. (In the decoder
# the causal mask of lesson 6 gives a hint: the first word sees one word, the second two.) Now add a different
# vector at each *place*, the same whatever word stands there:

# %%
places = sinusoids(5, 8)  # (T, D)
y, y_permuted = (layer.forward((z + places)[None])[0][0] for z in (x, permuted))
print("cat, who sees:   ", y[1, :4])
print("cat, who is seen:", y_permuted[4, :4])
assert abs(y[1] - y_permuted[4]).max() > 0.1

# %% [markdown]
# ## The table of sinusoids
#
# The formula, one number at a time. Columns come in pairs, a sine and a cosine of *one* angle ωᵢ · pos, with
# the frequency ωᵢ = 10000^(−2i/D). (A zero more in 10000 is a common slip, and nothing crashes.)

# %%


def slow_sinusoids(length, d_model):
    """PE (T, D), column by column."""
    table = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table


pe = sinusoids(100, 20)  # (T, D)
assert_allclose(pe, slow_sinusoids(100, 20), atol=1e-12)
for pos in (0, 1, 10, 99):
    print(f"position {pos:2}, dimensions 4 to 7: {pe[pos, 4:8].round(4)}")
assert_allclose(pe[10, 4:8], [0.9999, -0.0141, 0.5899, 0.8075], atol=5e-5)
assert_allclose(pe[99, 4:8], [0.0175, -0.9998, -0.0367, 0.9993], atol=5e-5)

# %% [markdown]
# *图解transformer* draws dimensions 4, 5, 6 and 7 over the first hundred positions. With D = 20:

# %%
figure = curves(
    pe[:, 4:8].T,
    labels=["dim 4", "dim 5", "dim 6", "dim 7"],
    xlabel="position",
    ylabel="value",
)
caption = "Dims 4 and 5 turn once in 39.64 positions, dims 6 and 7 in 99.58"
show_figure(figure, "03_curves", caption)
period = 2 * np.pi * 10000 ** (np.arange(0, 20, 2) / 20)  # (D/2,)
assert_allclose(period[2:4], [39.64, 99.58], atol=5e-3)
assert_allclose(period[0], 6.2832, atol=5e-5)

# %% [markdown]
# A pair (sin, cos) is the hand of a clock, seen as two coordinates. The first turns once in 2π = 6.28 words,
# each next one more slowly by the factor 10000^(2/D). One hand alone tells the time up to whole turns; many
# hands, fast and slow, tell exactly where we are, as hours and minutes do.
#
# The paper says that the wavelengths go "from 2π to 10000 · 2π". Its last i is D/2 − 1, so the last one falls
# a little short: for D = 512 it is 9,647 · 2π.
#
# ## Three layouts
#
# The documents agree on the idea and not on the columns.
#
# - `"interleaved"`: the paper, and the code of *The components of the Transformer*.
# - `"halves"`: all sines, then all cosines, exponent i/(D/2 − 1): tensor2tensor, the library that
#   *Attention机制详解（二）* reads. It does reach 10000 · 2π.
# - `"jianshu"`: the code of *一步步解析Attention is All You Need!*: exponent 2i/D with i counting *columns*,
#   so a sine and its neighbour, a cosine, have different frequencies.

# %%
for layout in ("interleaved", "halves", "jianshu"):
    print(f"{layout:12} position 1, D = 4: {sinusoids(2, 4, layout)[1].round(5)}")
assert_allclose(sinusoids(2, 4)[1], [0.8415, 0.5403, 0.0100, 0.99995], atol=5e-5)
assert_allclose(sinusoids(2, 4, "jianshu")[1], [0.8415, 0.99995, 0.0001, 1], atol=5e-5)
assert_allclose(sinusoids(2, 4, "halves")[1], [0.8415, 0.0001, 0.5403, 1], atol=5e-5)
assert_allclose(sinusoids(3, 4, "halves")[2], [0.91, 0.0002, -0.42, 1], atol=5e-3)
assert (sinusoids(3, 4, "jianshu", zero_first=True)[0] == 0).all()  # see the end
assert round(10000 ** (510 / 512)) == 9647

# %%
side_by_side = np.zeros((50, 3 * 64 + 2 * 8))  # white columns between them
for j, layout in enumerate(("interleaved", "halves", "jianshu")):
    side_by_side[:, 72 * j : 72 * j + 64] = sinusoids(50, 64, layout)
figure = value_map(
    side_by_side,
    xlabel="columns 0-63: interleaved     72-135: halves     144-207: jianshu",
    ylabel="position",
)
caption = "D = 64 in three layouts, fast hands first; in the third most stand still"
show_figure(figure, "03_layouts", caption)

# %% [markdown]
# The first two are the same hands in different columns, at slightly different speeds. The order of columns
# means nothing: permute the rows of the weights that read them, and all is as before. The third is another
# thing. From column D/2 on its wavelengths are over 10000 · 2π; in 100 positions 43 of its 64 columns change
# by less than .1, against 21. And it has lost the next property.

# %%
still = {}
for layout in ("interleaved", "halves", "jianshu"):
    table = sinusoids(100, 64, layout)
    still[layout] = int(((table.max(0) - table.min(0)) < 0.1).sum())
print("columns that hardly move:", still)
assert still == {"interleaved": 21, "halves": 21, "jianshu": 43}

# %% [markdown]
# ## An offset is a rotation
#
# Take one pair, with the angle a = ω pos. To go k positions on is to add b = ω k. The addition theorems:
#
# ```math
# sin(a + b) =  cos b · sin a + sin b · cos a
# cos(a + b) = −sin b · sin a + cos b · cos a
# ```
#
# As a row times a matrix, which is a rotation: the hand moves on by the angle b.
#
# ```math
#                                        ⎡ cos b   −sin b ⎤
# (sin(a+b), cos(a+b)) = (sin a, cos a)  ⎣ sin b    cos b ⎦
# ```
#
# **The matrix contains k, and not pos.** Put D/2 of them on the diagonal of a D × D matrix Rₖ:
#
# ```math
# PE(pos + k) = PE(pos) Rₖ          for every pos; vectors are rows
# Rₖ Rₘ = Rₖ₊ₘ ,  Rₖ Rₖᵀ = 1 ,  Rₖᵀ = R₋ₖ
# ```

# %%


def rotation(k, d_model):
    """R_k (D, D): PE(pos + k) = PE(pos) R_k, for the interleaved layout."""
    r = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        b = k / 10000 ** (2 * i / d_model)
        s, c = 2 * i, 2 * i + 1  # the columns of sine and cosine
        r[s, s], r[c, s] = math.cos(b), math.sin(b)  # what makes the new sine
        r[s, c], r[c, c] = -math.sin(b), math.cos(b)  # what makes the new cosine
    return r


pe = sinusoids(200, 64)  # (T, D)
for k in (1, 5, 50):
    r = rotation(k, 64)
    assert_allclose(pe[:-k] @ r, pe[k:], atol=1e-12)  # one matrix, every position
    assert_allclose(r @ rotation(3, 64), rotation(k + 3, 64), atol=1e-12)
    assert_allclose(r @ r.T, np.eye(64), atol=1e-12)
    assert_allclose(r.T, rotation(-k, 64), atol=1e-12)
print("PE(pos + k) = PE(pos) R for", len(pe) - k, "positions, k =", k)

# %% [markdown]
# For the third layout we look for *any* matrix that leads five positions on, by least squares: the best one
# is wrong by up to 1.1, where numbers are at most 1. (For the other two it is found, to 12 digits.) A sine
# without its cosine does not know whether it is going up or down.

# %%
for layout in ("interleaved", "halves", "jianshu"):
    table = sinusoids(200, 64, layout)
    best = np.linalg.lstsq(table[:-5], table[5:], rcond=None)[0]  # (D, D)
    error = abs(table[:-5] @ best - table[5:]).max()
    print(f"{layout:12} largest error {error:.1e}")
    assert 1.05 < error < 1.15 if layout == "jianshu" else error < 1e-11

# %% [markdown]
# ## What attention can do with it
#
# Attention compares by dot products. Of two position vectors, with cos a cos b + sin a sin b = cos(a − b):
#
# ```math
# PE(p) · PE(p + k) = Σᵢ [sin ωᵢp sin ωᵢ(p+k) + cos ωᵢp cos ωᵢ(p+k)] = Σᵢ cos(ωᵢ k)
# ```
#
# It depends on the **distance** k only, wherever p is. At k = 0 it is D/2; near 0 it falls quickly.

# %%
dots = {}
for d_model in (64, 512):
    pe = sinusoids(200, d_model)
    gram = pe @ pe.T  # (T, T)
    omega = 10000 ** (-np.arange(0, d_model, 2) / d_model)  # (D/2,)
    dots[d_model] = np.cos(np.arange(101)[:, None] * omega).sum(-1)  # (101,)
    for k in range(101):
        assert_allclose(np.diag(gram, k), dots[d_model][k], atol=1e-9)  # every p alike
chosen = [0, 1, 2, 3, 10, 100]
print("D = 512, over D/2, at k =", chosen, "\n", (dots[512][chosen] / 256).round(2))

# %%
figure = curves(
    np.stack([dots[512] / 256, dots[64] / 32]),
    labels=["D = 512", "D = 64"],
    xlabel="distance k",
    ylabel="PE(p) · PE(p + k), over D/2",
)
caption = "The nearer, the more alike; at distance 100 still .44 (D = 512) and .56 (D = 64)"
show_figure(figure, "03_distance", caption)
assert_allclose([dots[512][100] / 256, dots[64][100] / 32], [0.44, 0.56], atol=5e-3)

# %% [markdown]
# The curve is even in k: by itself a dot product cannot tell left from right. But a head has matrices W_Q and
# W_K in between, and one of them may be a rotation. Take W_Q = R₋₁ and W_K = 1:
#
# ```math
# q · k = PE(p) R₋₁ · PE(s) = PE(p − 1) · PE(s)          largest at s = p − 1
# ```
#
# A head that looks at **the word before**, at every position, with one matrix that does not know the
# position. This is what "easily learn to attend by relative positions" means. Made by hand, of positions
# alone, and sharpened by a factor:

# %%
words = ["the", "cat", "sees", "the", "dog", "and", "runs", "away"]
p = sinusoids(8, 64)
_, cache = attention(p @ rotation(-1, 64), p, p, scale=4.0)
before = cache.weights  # (T, S)
assert (before[1:].argmax(-1) == np.arange(7)).all()
print("weight on the word before:", np.diag(before, -1).round(2))

# %%
figure = attention_map(before, words, words, numbers=True)
caption = "One rotation, every row: each word looks at the one before it (the first has none)"
show_figure(figure, "03_before", caption)

# %% [markdown]
# ## Learned positions
#
# The other way: a table of parameters P, one row a position, drawn at random as the words' is, but not
# multiplied by √D: beside words of length √D its rows begin with length 1, and have to grow. Number i at
# place t of sentence b, and what comes back:
#
# ```math
# yᵦₜᵢ  = xᵦₜᵢ + Pₜᵢ
# dxᵦₜᵢ = dyᵦₜᵢ
# dPₜᵢ  = Σᵦ dyᵦₜᵢ ∂yᵦₜᵢ/∂Pₜᵢ = Σᵦ dyᵦₜᵢ
# ```
#
# Lesson 0's rule again: row t was copied to every sentence, so it adds up what all sentences say at place t.
# A sum hands its gradient to both of its terms unchanged. And sinusoids have no gradient: nothing to learn.

# %%
learned = LearnedPositions(10, 4, **f8)  # weight (max_length, D)
dy = rng.standard_normal((3, 6, 4))  # (B, T, D): three sentences of six
_, made = learned.forward(6)
learned.backward(dy, made)

dp = np.zeros((10, 4))  # (max_length, D)
for b in range(3):
    for t in range(6):
        dp[t] += dy[b, t]
assert_allclose(learned.weight.grad, dp, rtol=1e-12)
assert (learned.weight.grad[6:] == 0).all()  # no sentence went there

wide = LearnedPositions(100, 512, **f8).weight.value
assert_allclose(np.linalg.norm(wide, axis=-1).mean(), 1, atol=0.01)

# %% [markdown]
# In the package, `InputEmbedding` is all that lies before the first layer: words times √D, plus positions,
# then dropout (lesson 8; off here). Its cache is what this lesson and the one before are about:

# %%
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0], [4, 5, 3, 0, 0, 0]])  # (B, T)
entrance = InputEmbedding(8, 4, 10, positions="learned", **f8)
y, cache = entrance.forward(ids)  # (B, T, D)
tokens_table, positions_table = entrance.tokens.weight, entrance.positions.weight
assert_allclose(y, 2 * tokens_table.value[ids] + positions_table.value[:6])

entrance.backward(dy, cache)
dtokens = np.zeros((8, 4))
np.add.at(dtokens, ids.reshape(-1), 2 * dy.reshape(-1, 4))  # lesson 2
assert_allclose(tokens_table.grad, dtokens)
assert_allclose(positions_table.grad, dp)
show(cache)

# %% [markdown]
# `positions` is (start, length): rows 0 to 5 of the table were read. Backward needs to know no more.
#
# ## Is it right?

# %%
report = gradcheck(entrance, ids)
print(report)
assert report.ok


class LastSentenceOnly(InputEmbedding):
    """Wrong: = where the sum over the batch belongs."""

    def backward(self, dy, cache):
        super().backward(dy, cache)
        self.positions.weight.grad[: dy.shape[1]] -= dy[:-1].sum(0)  # dy[-1] is left


report = gradcheck(LastSentenceOnly(8, 4, 10, positions="learned", **f8), ids)
print("a sum over the batch forgotten:", report.failures[0].tensor, "is wrong")
assert report.failures[0].tensor == "positions.weight"

# %% [markdown]
# ## Beyond the longest sentence
#
# A learned table ends. Position 10 of ten rows does not exist, and rows that few sentences reach are hardly
# trained: above, rows 6 to 9 heard nothing at all. The formula has no end, and a longer table begins with the
# shorter one:

# %%
assert (sinusoids(200, 512)[:100] == sinusoids(100, 512)).all()
try:
    learned.forward(12)
except UserError as error:
    print(error)

pe = sinusoids(200, 512)
low, high = pe[:100].min(0), pe[:100].max(0)  # (D,) what a model saw that was trained on 100
new = (pe[100:] < low - 0.01) | (pe[100:] > high + 0.01)
turns = 100 / (2 * np.pi * 10000 ** (np.arange(0, 512, 2) / 512))  # (D/2,) in 100 positions
print(f"hands that made no full turn in 100 positions: {(turns < 1).sum()} of 256")
print(f"numbers at positions 100-199 outside what was seen: {new.mean():.0%}")

# %% [markdown]
# So the sinusoid "may allow the model to extrapolate to sequence lengths longer than the ones encountered
# during training", as the paper puts it, with a careful *may*. That the vectors exist does not say that the
# trained layers know what to do with them: of 256 hands, 179 have not been once round in 100 positions, and
# of the numbers at the next 100 positions 39 % lie outside anything that their column has shown (by .01 or
# more).
#
# In the paper's table 3, row (E), learned positions do as well as sinusoids: 25.7 against 25.8 BLEU. It chose
# sinusoids for the sake of that *may*.

# %%
assert (turns < 1).sum() == 179
assert_allclose(new.mean(), 0.39, atol=6e-3)
print("the numbers of the text are those of the table")

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 3` has them, each graded on numbers or by the gradient checker.
#
# - `npformer exercise start sinusoids`: the paper's table, without a loop over positions.
# - `npformer exercise start positions-backward`: the sum over the batch, at rows start .. start + T.
# - By hand: words w, w′ and positions p, p′ enter a head as w + p and w′ + p′. Multiply out
#   (w + p) W_Q W_Kᵀ (w′ + p′)ᵀ. Which of the four terms would be left if positions were not added at all,
#   and which one is the head that we made by hand? (Words with words; positions with positions.)
#
# To try now, in the terminal: `!attention(p @ rotation(2, 64), p, p, scale=4.0)[1].weights.argmax(-1)`
# looks two words ahead; the last two have nowhere to look.
#
# ## Where the documents differ
#
# - *图解transformer* lets i run over [0, D). It runs over [0, D/2): each i makes two columns. Its cells for
#   D = 4 ([.84, .0001, .54, 1] at position 1) are the halves layout, its formula the interleaved one.
# - *一步步解析Attention is All You Need!* has the third layout, above, and calls i "the dimension". Its
#   `zero_pad` for positions would zero *position 0*, the first word's, where it speaks of the padding
#   (`sinusoids(..., zero_first=True)` shows it). Its demo trains learned positions unless told otherwise.
# - *The components of the Transformer* says that i tells whether a position is odd or even: that is the
#   column. And it introduces several heads because word order changes no attention score: true without
#   positions, but heads do not mend it, as our four heads showed.
# - *Attention机制详解（二）* points to relative positions (Shaw et al. 2018), which put the distance into
#   attention itself.
#
# **Next**, lesson 4: attention as a soft look-up, with queries, keys and values.

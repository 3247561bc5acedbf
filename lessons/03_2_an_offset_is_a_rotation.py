# %% [markdown]
# # 3.2 · An offset is a rotation
#
# *About 25 minutes. You need: sinusoids and learned positions (lesson 3.1, `03_1_positions`), sine and cosine
# of a sum of two angles, matrices that rotate.*
#
# **After this lesson you can**
#
# - recognize three layouts of the table of sinusoids;
# - prove that moving by k positions is a rotation, and use this in an attention head;
# - say what happens beyond the longest sentence of the training.
#
# `model: ids → embedding → [POSITIONS] → encoder → decoder → linear → softmax`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import UserError
from npformer.functional.attention import attention
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.nn import LearnedPositions
from npformer.plots import attention_map, curves, value_map

rng = np.random.default_rng(3)

# %% [markdown]
# ## Three layouts
#
# You will meet this table in three layouts, which differ in the order of the columns or in the frequencies:
#
# - `"interleaved"`, the layout of the paper: sine, cosine, sine, cosine, …
# - `"halves"`, the layout of the library tensor2tensor: first all sines, then all cosines. Its exponent is
#   i/(D/2 − 1), so it does reach the wavelength 10000 · 2π.
# - `"jianshu"`, a layout that occurs in a tutorial: the exponent is 2i/D, but i counts *columns*. So a sine
#   and the cosine beside it have different frequencies.

# %%
for layout in ("interleaved", "halves", "jianshu"):
    print(f"{layout:12} position 1, D = 4: {sinusoids(2, 4, layout)[1].round(5)}")

# %% tags=["check"]
assert_allclose(sinusoids(2, 4)[1], [0.8415, 0.5403, 0.0100, 0.99995], atol=5e-5)
assert_allclose(sinusoids(2, 4, "jianshu")[1], [0.8415, 0.99995, 0.0001, 1], atol=5e-5)
assert_allclose(sinusoids(2, 4, "halves")[1], [0.8415, 0.0001, 0.5403, 1], atol=5e-5)
assert_allclose(sinusoids(3, 4, "halves")[2], [0.91, 0.0002, -0.42, 1], atol=5e-3)
assert (sinusoids(3, 4, "jianshu", zero_first=True)[0] == 0).all()  # see the end

# %% tags=["plot"]
side_by_side = np.zeros((50, 3 * 64 + 2 * 8))  # white columns between them
for j, layout in enumerate(("interleaved", "halves", "jianshu")):
    side_by_side[:, 72 * j : 72 * j + 64] = sinusoids(50, 64, layout)
figure = value_map(
    side_by_side,
    xlabel="columns 0-63: interleaved     72-135: halves     144-207: jianshu",
    ylabel="position",
)
caption = "D = 64 in three layouts: in the third, most columns hardly change"
show_figure(figure, "03_2_layouts", caption)

# %% [markdown]
# The first two layouts contain almost the same numbers in different columns. The order of the columns has no
# meaning. If you permute the columns, you can permute the rows of the next weight matrix in the same way.
# Then all results stay the same.
#
# The third layout is really different. From column D/2 on, its wavelengths are 10000 · 2π or longer. Within
# 100 positions, 43 of its 64 columns change by less than .1. In each of the other layouts, only 21 columns
# change so little. The third layout also lacks the property that we prove next.

# %% tags=["check"]
still = {}
for layout in ("interleaved", "halves", "jianshu"):
    table = sinusoids(100, 64, layout)
    still[layout] = int(((table.max(0) - table.min(0)) < 0.1).sum())
print("columns that change by less than .1:", still)
assert still == {"interleaved": 21, "halves": 21, "jianshu": 43}

# %% [markdown]
# ## An offset is a rotation
#
# The paper says that PE at pos + k is a linear function of PE at pos. We prove it. Take one pair with the
# angle $a = \omega\, pos$. If we move k positions forward, the angle becomes a + b with $b = \omega k$. The
# addition theorems say
#
# $$\sin(a + b) = \cos b \sin a + \sin b \cos a$$
#
# $$\cos(a + b) = -\sin b \sin a + \cos b \cos a$$
#
# Together they are the product of a row and a matrix. This matrix rotates by the angle b:
#
# $$
# (\sin(a + b), \cos(a + b)) = (\sin a, \cos a)
# \begin{pmatrix} \cos b & -\sin b \\ \sin b & \cos b \end{pmatrix}
# $$
#
# **The matrix contains k, but not pos.** There is one such matrix for each of the D/2 pairs. Put them on the
# diagonal of a D × D matrix $R_k$. Let PE(pos) be row pos of the table. Then, for every position,
#
# $$PE(pos + k) = PE(pos)\, R_k$$
#
# Rotations have simple rules: $R_k R_m = R_{k+m}$, $R_k R_k^\top = I$ and $R_k^\top = R_{-k}$.

# %%


def rotation(k, d_model):
    """Return R_k (D, D), so that PE(pos + k) = PE(pos) R_k in the interleaved layout."""
    r = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        b = k / 10000 ** (2 * i / d_model)
        s, c = 2 * i, 2 * i + 1  # the columns of sine and cosine
        r[s, s], r[c, s] = math.cos(b), math.sin(b)  # these make the new sine
        r[s, c], r[c, c] = -math.sin(b), math.cos(b)  # these make the new cosine
    return r


# %% tags=["check"]
pe = sinusoids(200, 64)  # (T, D)
for k in (1, 5, 50):
    r = rotation(k, 64)
    assert_allclose(pe[:-k] @ r, pe[k:], atol=1e-12)  # one matrix for every position
    assert_allclose(r @ rotation(3, 64), rotation(k + 3, 64), atol=1e-12)
    assert_allclose(r @ r.T, np.eye(64), atol=1e-12)
    assert_allclose(r.T, rotation(-k, 64), atol=1e-12)
print("PE(pos + k) = PE(pos) R for", len(pe) - k, "positions, k =", k)

# %% [markdown]
# Does such a matrix exist for the other layouts? With the method of least squares we search for the best
# matrix that moves five positions forward. For the first two layouts it is right to 12 digits. For the third
# layout, the best matrix makes errors of up to 1.1, although the numbers themselves are at most 1. The reason
# is that a sine without its cosine does not show whether it is rising or falling.

# %% tags=["check"]
for layout in ("interleaved", "halves", "jianshu"):
    table = sinusoids(200, 64, layout)
    best = np.linalg.lstsq(table[:-5], table[5:], rcond=None)[0]  # (D, D)
    error = abs(table[:-5] @ best - table[5:]).max()
    print(f"{layout:12} largest error {error:.1e}")
    assert 1.05 < error < 1.15 if layout == "jianshu" else error < 1e-11

# %% [markdown]
# ## What attention can do with it
#
# Attention compares vectors by dot products. What is the dot product of two positional encodings? Each pair
# contributes $\cos a \cos b + \sin a \sin b = \cos(a - b)$. So
#
# $$PE(p) \cdot PE(p + k) = \sum_i \cos(\omega_i k)$$
#
# It depends only on the **distance** k, and not on p. For k = 0 it is D/2, and for small k it decreases
# quickly.

# %% tags=["plot"]
dots = {}
for d_model in (64, 512):
    pe = sinusoids(200, d_model)
    gram = pe @ pe.T  # (T, T)
    omega = 10000 ** (-np.arange(0, d_model, 2) / d_model)  # (D/2,)
    dots[d_model] = np.cos(np.arange(101)[:, None] * omega).sum(-1)  # (101,)
    for k in range(101):
        assert_allclose(np.diag(gram, k), dots[d_model][k], atol=1e-9)  # for every p
chosen = [0, 1, 2, 3, 10, 100]
print("D = 512, divided by D/2, for k =", chosen, "\n", (dots[512][chosen] / 256).round(2))

figure = curves(
    np.stack([dots[512] / 256, dots[64] / 32]),
    labels=["D = 512", "D = 64"],
    xlabel="distance k",
    ylabel="PE(p) · PE(p + k), divided by D/2",
)
caption = "Near positions are more similar; at distance 100 it is .44 (D = 512) and .56 (D = 64)"
show_figure(figure, "03_2_distance", caption)
assert_allclose([dots[512][100] / 256, dots[64][100] / 32], [0.44, 0.56], atol=5e-3)

# %% [markdown]
# The curve is the same for k and −k, so the dot product alone cannot distinguish left from right. But an
# attention head multiplies queries and keys by matrices $W^Q$ and $W^K$, and one of them may be a rotation.
# Take $W^Q = R_{-1}$ and $W^K = I$. For a query at position p and a key at position s,
#
# $$q \cdot k = PE(p) R_{-1} \cdot PE(s) = PE(p - 1) \cdot PE(s)$$
#
# This is largest at s = p − 1. So every token attends to **the token before it**, at every position, with one
# matrix that does not depend on the position. This is the meaning of "easily learn to attend by relative
# positions". The next cell builds such a head. Its input consists of positions only, without embeddings. The
# scores are multiplied by 4, so that the largest weight of each row is close to 1.

# %%
words = ["the", "cat", "sees", "the", "dog", "and", "runs", "away"]
p = sinusoids(8, 64)
_, cache = attention(p @ rotation(-1, 64), p, p, scale=4.0)
before = cache.weights  # (T, S)
print("weight on the token before:", np.diag(before, -1).round(2))

# %% tags=["plot"]
assert (before[1:].argmax(-1) == np.arange(7)).all()
figure = attention_map(before, words, words, numbers=True)
caption = "Each token attends to the one before it (the first has none), with one rotation"
show_figure(figure, "03_2_before", caption)

# %% [markdown]
# ## Beyond the longest sentence
#
# What happens if a sentence is longer than all training sentences? A learned table has an end, and a
# position without a row is an error. Rows that few sentences reach are hardly trained. The formula of the
# sinusoids has no end, and a longer table begins with the shorter one.

# %%
learned = LearnedPositions(10, 4, rng=rng)  # rows 0 to 9
try:
    learned.forward(12)
except UserError as error:
    print(error)

pe = sinusoids(200, 512)
low, high = pe[:100].min(0), pe[:100].max(0)  # (D,) the range in 100 training positions
new = (pe[100:] < low - 0.01) | (pe[100:] > high + 0.01)
turns = 100 / (2 * np.pi * 10000 ** (np.arange(0, 512, 2) / 512))  # (D/2,) in 100 positions

# %% tags=["check"]
assert (sinusoids(200, 512)[:100] == sinusoids(100, 512)).all()
print(f"pairs with less than one full turn in 100 positions: {(turns < 1).sum()} of 256")
print(f"numbers at positions 100-199 outside the range of positions 0-99: {new.mean():.0%}")

# %% [markdown]
# So the sinusoid "may allow the model to extrapolate to sequence lengths longer than the ones encountered
# during training", as the paper says. Note the word *may*: the vectors exist, but the layers were never
# trained with them. Of 256 pairs, 179 make less than one full turn in 100 positions. Each column of the table
# has a range of values at the first 100 positions. At the next 100 positions, 39 % of the numbers lie more
# than .01 outside this range.
#
# In table 3, row (E), of the paper, learned positions are about as good as sinusoids. They reach 25.7 and
# 25.8 BLEU, a score for the quality of translations. The authors chose sinusoids because these may
# extrapolate.

# %% tags=["check"]
assert (turns < 1).sum() == 179
assert_allclose(new.mean(), 0.39, atol=6e-3)

# %% [markdown]
# ## What the source documents say
#
# > - *Attention机制详解（二）* describes the library tensor2tensor, which uses the halves layout. It also
# >   mentions relative positions (Shaw et al. 2018), which put the distance into attention itself.
# > - *图解transformer* draws dimensions 4 to 7 over the first hundred positions, as above. In its formula i
# >   runs over [0, D). It should run over [0, D/2), because each i makes two columns. Its numbers for D = 4
# >   ([.84, .0001, .54, 1] at position 1) belong to the halves layout, its formula to the interleaved one.
# > - *一步步解析Attention is All You Need!* has the third layout and calls i "the dimension". Its `zero_pad`
# >   for positions would set *position 0* to zero, which is the first token, although the text speaks of
# >   padding. (`sinusoids(..., zero_first=True)` shows it.) Its demo trains learned positions by default.

# %% [markdown]
# ## Summary
#
# - Three layouts of the sinusoids are in use; two of them differ only in the order of the columns.
# - Moving by k positions is a rotation that does not depend on the position.
# - The dot product of two positions depends on their distance only.
# - So one head can attend to the token before, at every position.
# - Sinusoids exist beyond the longest training sentence, but the layers were never trained with them.

# %% [markdown]
# ## Questions
#
# **Question.** Two tokens enter a head as w + p and w′ + p′, with embeddings w and positions p. Multiply out
# $(w + p) W^Q {W^K}^\top (w' + p')^\top$. Which of the four terms remains without positions, and which one is
# used by the head that attends to the token before?
#
# <details><summary>Answer</summary>
# Without positions only the term of w and w′ remains. Our head uses only the term of p and p′.
# </details>

# %% [markdown]
# ## Exercises
#
# The exercises of this chapter belong to lesson 3.1.
#
# Try this in the terminal: `!attention(p @ rotation(2, 64), p, p, scale=4.0)[1].weights.argmax(-1)`. Each
# token attends to the token two places ahead. For the last two tokens there is no such place.
#
# **Next**: lesson 4.1 (`04_1_attention_without_parameters`), attention as a weighted mean of token vectors.

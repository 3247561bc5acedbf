# %% [markdown]
# # 3 · Positions
#
# *About 45 minutes. You need: embeddings (lesson 2, `02_embeddings`), sine and cosine of a sum of two
# angles.*
#
# **After this lesson you can**
#
# - show that attention alone does not know the order of the tokens;
# - compute the sinusoids of the paper, and recognize their three layouts;
# - prove that moving by k positions is a rotation, and use this in an attention head;
# - derive the gradient of learned positions.
#
# `model: ids → embedding → [POSITIONS] → encoder → decoder → linear → softmax`

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
# ## Why positions?
#
# "the cat sees the dog" and "the dog sees the cat" consist of the same five words in another order. We will
# see that attention cannot distinguish them. The paper solves this problem in section 3.5:
#
# > Since our model contains no recurrence and no convolution, in order for the model to make use of the order
# > of the sequence, we must inject some information about the relative or absolute position of the tokens in
# > the sequence.
#
# Each position gets a vector, a **positional encoding**, which is added to the embedding of the token at this
# position:
#
# ```text
# ids (B, T) ──▶ embedding · √D (B, T, D) ──▶ (+) ──▶ dropout ──▶ first layer (B, T, D)
#                                              ▲
#              positional encodings (T, D) ────┘   the same T rows for all B sentences
# ```

# %% [markdown]
# The paper computes these vectors with sines and cosines, called **sinusoids**:
#
# $$PE_{(pos,\, 2i)} = \sin(pos / 10000^{2i/D})$$
#
# $$PE_{(pos,\, 2i+1)} = \cos(pos / 10000^{2i/D}), \qquad i = 0, \dots, D/2 - 1$$
#
# > We chose this function because we hypothesized it would allow the model to easily learn to attend by
# > relative positions, since for any fixed offset k, PE_pos+k can be represented as a linear function of
# > PE_pos.
#
# These passages make three claims: without positions the order is lost, sinusoids restore it, and an offset
# is a linear function. You will test all three.
#
# ## Without positions, the order is lost
#
# Does the encoder compute different vectors for the cat that sees and for the cat that is seen? We apply
# attention, the topic of chapters 4 and 5, to both sentences.

# %%
the, cat, sees, dog = rng.standard_normal((4, 8))  # (D,) each
x = np.stack([the, cat, sees, the, dog])  # (T, D)
order = [3, 4, 2, 0, 1]
permuted = x[order]  # the dog sees the cat

layer = MultiHeadAttention(8, 4, **f8)
y, y_permuted = (layer.forward(z[None])[0][0] for z in (x, permuted))  # (T, D)
print("cat, who sees:   ", y[1, :4])
print("cat, who is seen:", y_permuted[4, :4])

# %% [markdown]
# Both vectors are equal. To prove that this is true for all weights, let Π be a matrix that permutes the
# tokens. The queries Q, keys K and values V are computed from each token separately, so they are permuted in
# the same way. Let S be the scores, P the attention weights, and $c = 1/\sqrt{d_k}$. A prime marks the
# permuted sentence:
#
# $$
# \begin{aligned}
# S' &= c\, (\Pi Q)(\Pi K)^\top = \Pi S \Pi^\top \\
# P' &= \mathrm{softmax}(S') = \Pi P \Pi^\top \\
# Y' &= P' (\Pi V) = \Pi P \Pi^\top \Pi V = \Pi Y
# \end{aligned}
# $$
#
# The second line holds because a softmax works within each row, and the order in the row does not matter. The
# third line uses $\Pi^\top \Pi = 1$, where 1 is the identity matrix. So if you permute the tokens, the
# outputs are permuted, and nothing else changes. Attention is **permutation-equivariant**.

# %% tags=["check"]
assert_allclose(y_permuted, y[order], rtol=1e-12)
one_head = [attention(z, z, z)[0] for z in (x, permuted)]
assert_allclose(one_head[1], one_head[0][order], rtol=1e-12)

# %% [markdown]
# The other parts of an encoder layer (chapters 8 and 9) process each token separately, so they do not help.
# The encoder would treat a sentence as a collection of words without order. In the decoder the causal mask of
# chapter 6 gives some information: the first token attends to one token, the second to two.
#
# Now we add a different vector at each position.

# %%
positions = sinusoids(5, 8)  # (T, D)
y, y_permuted = (layer.forward((z + positions)[None])[0][0] for z in (x, permuted))
print("cat, who sees:   ", y[1, :4])
print("cat, who is seen:", y_permuted[4, :4])

# %% tags=["check"]
assert abs(y[1] - y_permuted[4]).max() > 0.1

# %% [markdown]
# ## The table of sinusoids
#
# The next cell computes the formula number by number. The columns form pairs. Each pair contains the sine and
# the cosine of the *same* angle $\omega_i \cdot pos$, with the frequency $\omega_i = 10000^{-2i/D}$. Be
# careful to write 10000 with four zeros. With another number there is no error message, and the mistake is
# hard to notice.

# %%


def slow_sinusoids(length, d_model):
    """Return PE (T, D), number by number."""
    table = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table


pe = sinusoids(100, 20)  # (T, D), the function of the package
for pos in (0, 1, 10, 99):
    print(f"position {pos:2}, dimensions 4 to 7: {pe[pos, 4:8].round(4)}")

# %% tags=["check"]
assert_allclose(pe, slow_sinusoids(100, 20), atol=1e-12)
assert_allclose(pe[10, 4:8], [0.9999, -0.0141, 0.5899, 0.8075], atol=5e-5)
assert_allclose(pe[99, 4:8], [0.0175, -0.9998, -0.0367, 0.9993], atol=5e-5)

# %% tags=["plot"]
figure = curves(
    pe[:, 4:8].T,
    labels=["dim 4", "dim 5", "dim 6", "dim 7"],
    xlabel="position",
    ylabel="value",
)
caption = "D = 20: dimensions 4 and 5 have the period 39.64, dimensions 6 and 7 the period 99.58"
show_figure(figure, "03_curves", caption)

# %% [markdown]
# A pair (sin, cos) is a point on a circle, like the tip of a clock hand. From position to position, the hand
# turns by the angle $\omega_i$. The hand of the first pair makes a full turn in $2\pi = 6.28$ positions. Each
# further hand is slower by the factor $10000^{2/D}$.
#
# **Question.** Why are many hands necessary? Is the fastest one not enough?
#
# <details><summary>Answer</summary>
# One hand returns to the same point after each full turn, so it cannot distinguish positions that differ by
# full turns. Fast and slow hands together determine the position, just as the hour hand and the minute hand
# determine the time.
# </details>
#
# The paper says that the wavelengths range "from 2π to 10000 · 2π". The last i is D/2 − 1, so the longest
# wavelength is slightly shorter. For D = 512 it is 9,647 · 2π.

# %% tags=["check"]
period = 2 * np.pi * 10000 ** (np.arange(0, 20, 2) / 20)  # (D/2,)
assert_allclose(period[2:4], [39.64, 99.58], atol=5e-3)
assert_allclose(period[0], 6.2832, atol=5e-5)
assert round(10000 ** (510 / 512)) == 9647

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
show_figure(figure, "03_layouts", caption)

# %% [markdown]
# The first two layouts contain almost the same numbers in different columns. The order of the columns has no
# meaning. If you permute the columns, you can permute the rows of the next weight matrix in the same way.
# Then all results stay the same.
#
# The third layout is really different. From column D/2 on, its wavelengths are longer than 10000 · 2π. Within
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
# Now we prove the claim of the paper. Take one pair with the angle $a = \omega\, pos$. If we move k positions
# forward, the angle becomes a + b with $b = \omega k$. The addition theorems say
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
# Rotations have simple rules: $R_k R_m = R_{k+m}$, $R_k R_k^\top = 1$ and $R_k^\top = R_{-k}$.

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
show_figure(figure, "03_distance", caption)
assert_allclose([dots[512][100] / 256, dots[64][100] / 32], [0.44, 0.56], atol=5e-3)

# %% [markdown]
# The curve is the same for k and −k, so the dot product alone cannot distinguish left from right. But an
# attention head multiplies queries and keys by matrices $W_Q$ and $W_K$, and one of them may be a rotation.
# Take $W_Q = R_{-1}$ and $W_K = 1$. For a query at position p and a key at position s,
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
show_figure(figure, "03_before", caption)

# %% [markdown]
# ## Learned positions
#
# There is another way: a table of parameters P with one row for each position. It is learned like the table
# of embeddings. Its rows are drawn in the same way but not multiplied by √D, so their length is 1 at first.
# During training they have to grow. For sentence n, place t and component i:
#
# $$y_{nti} = x_{nti} + P_{ti}$$
#
# An addition passes its gradient on unchanged, so $dx_{nti} = dy_{nti}$. The gradient of P is
#
# $$dP_{ti} = \sum_n dy_{nti} \frac{\partial y_{nti}}{\partial P_{ti}} = \sum_n dy_{nti}$$
#
# This is the rule of lesson 0.2 (`00_2_forward_and_backward`): row t was copied to every sentence, so its
# gradient is the sum over all sentences. Sinusoids have no parameters, so they need no gradient.

# %%
learned = LearnedPositions(10, 4, **f8)  # weight (max_length, D)
dy = rng.standard_normal((3, 6, 4))  # (B, T, D): three sentences of six tokens
dp = np.zeros((10, 4))  # (max_length, D)
dp[:6] = dy.sum(0)

# %% tags=["check"]
_, made = learned.forward(6)
learned.backward(dy, made)
assert_allclose(learned.weight.grad, dp, rtol=1e-12)
assert (learned.weight.grad[6:] == 0).all()  # no sentence has these positions
wide = LearnedPositions(100, 512, **f8).weight.value
assert_allclose(np.linalg.norm(wide, axis=-1).mean(), 1, atol=0.01)

# %% [markdown]
# In the package, `InputEmbedding` contains everything before the first layer: embeddings times √D, plus
# positions, then dropout (chapter 8, switched off here). In its cache, `positions = (0, 6)` means that six
# rows were read, beginning with row 0. The backward pass of the positions needs nothing else.

# %%
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0], [4, 5, 3, 0, 0, 0]])  # (B, T)
input_layer = InputEmbedding(8, 4, 10, positions="learned", **f8)
y, cache = input_layer.forward(ids)  # (B, T, D)
input_layer.backward(dy, cache)
show(cache)

# %% tags=["check"]
tokens_table, positions_table = input_layer.tokens.weight, input_layer.positions.weight
assert_allclose(y, 2 * tokens_table.value[ids] + positions_table.value[:6])
dtokens = np.zeros((8, 4))
np.add.at(dtokens, ids.reshape(-1), 2 * dy.reshape(-1, 4))  # lesson 2
assert_allclose(tokens_table.grad, dtokens)
assert_allclose(positions_table.grad, dp)

# %% [markdown]
# ## Check the gradient
#
# We check the layer, and then a version with a mistake: the gradient of the last sentence replaces the sum
# over all sentences.

# %%
report = gradcheck(input_layer, ids)
print(report)


class LastSentenceOnly(InputEmbedding):
    """Make a mistake: use = where the sum over the batch belongs."""

    def backward(self, dy, cache):
        super().backward(dy, cache)
        self.positions.weight.grad[: dy.shape[1]] -= dy[:-1].sum(0)  # dy[-1] is left


# %% tags=["check"]
assert report.ok
report = gradcheck(LastSentenceOnly(8, 4, 10, positions="learned", **f8), ids)
print("without the sum over the batch:", report.failures[0].tensor, "is wrong")
assert report.failures[0].tensor == "positions.weight"

# %% [markdown]
# ## Beyond the longest sentence
#
# What happens if a sentence is longer than all training sentences? A learned table has an end, and a position
# without a row is an error. Rows that few sentences reach are hardly trained: above, rows 6 to 9 got no
# gradient at all. The formula of the sinusoids has no end, and a longer table begins with the shorter one.

# %%
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
# > - *The components of the Transformer* uses the interleaved layout. It says that i tells whether a position
# >   is odd or even, but this is true of the column. It says that several heads are needed because the order
# >   of words does not change attention scores. This is true without positions, but several heads do not
# >   help: our layer above had four.

# %% [markdown]
# ## Summary
#
# - Attention is permutation-equivariant: without positions it does not know the order.
# - Sinusoids are pairs (sin, cos) with D/2 frequencies. They are added to the embeddings.
# - Moving by k positions is a rotation that does not depend on the position.
# - So one head can attend to the token before, at every position.
# - The gradient of a learned position is the sum over the sentences of the batch.

# %% [markdown]
# ## Questions
#
# **Question.** Two tokens enter a head as w + p and w′ + p′, with embeddings w and positions p. Multiply out
# $(w + p) W_Q W_K^\top (w' + p')^\top$. Which of the four terms remains without positions, and which one is
# used by the head that attends to the token before?
#
# <details><summary>Answer</summary>
# Without positions only the term of w and w′ remains. Our head uses only the term of p and p′.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 3` lists the exercises. They are graded on numbers or by the gradient checker.
#
# - `npformer exercise start sinusoids`: compute the table of the paper without a loop over the positions.
# - `npformer exercise start positions-backward`: compute the gradient of learned positions. It is a sum over
#   the batch, and it belongs to the rows start .. start + T.
#
# Try this in the terminal: `!attention(p @ rotation(2, 64), p, p, scale=4.0)[1].weights.argmax(-1)`. Each
# token attends to the token two places ahead. For the last two tokens there is no such place.
#
# **Next**: lesson 4.1 (`04_1_attention_without_parameters`), attention as a weighted mean of token vectors.

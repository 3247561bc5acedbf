# %% [markdown]
# # 2.2 · The scale of embeddings, and tied weights
#
# *About 30 minutes, which you may read after chapter 12. You need: embeddings (lesson 2.1,
# `02_1_embeddings`), layer norm (lesson 8.1, `08_1_layer_norm`), the cross-entropy and its gradient (lessons
# 12.1, `12_1_the_cross_entropy`, and 12.2, `12_2_the_gradient_of_the_cross_entropy`).*
#
# **After this lesson you can**
#
# - explain why the paper multiplies embeddings by √d_model;
# - say why a row of zeros for padding does not replace a mask;
# - use one table for the input and the output, and add its two gradients.
#
# `model: ids → [EMBEDDING] → positions → encoder → decoder → linear → softmax`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional.embedding import embedding, embedding_backward
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.functional.norm import layer_norm
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.nn import Embedding, TiedProjection
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(2)

# %% [markdown]
# ## The example
#
# The ids, the table E and the gradient dy are those of lesson 2.1: two sentences, of which the second has
# padding. D is the width of the vectors, and V is the size of the vocabulary.

# %%
vocabulary = ["<PAD>", "<UNK>", "<S>", "</S>", "the", "cat", "sees", "dog"]  # V = 8
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0]])  # (B, T)
v_size, d_model = 8, 4
c = math.sqrt(d_model)  # 2
table = rng.standard_normal((v_size, d_model)) / math.sqrt(d_model)  # (V, D)
dy = rng.standard_normal((2, 6, d_model))  # (B, T, D)

# %% [markdown]
# ## The row of the padding
#
# The row of `<PAD>` gets gradients from three places, although these places contain no words.
# The argument `zero_id=0` prevents this by replacing the embedding of padding by 0. With $m_n = 0$ at padding
# and 1 elsewhere, as in lesson 1.2 (`01_2_what_padding_must_not_do`):
#
# $$y_{ni} = c\, m_n E_{\mathrm{id}_n,\, i}$$
#
# $$dE_{vi} = c \sum_{n:\, \mathrm{id}_n = v} m_n\, dy_{ni}$$
#
# For v = 0 all $m_n$ are 0, so row 0 of the table gets no gradient.

# %%
y_zero, cache_zero = embedding(ids, table, scale=c, zero_id=0)
with_positions = y_zero + sinusoids(6, d_model)
print("padding, before positions are added:", y_zero[1, 5])
print("padding, afterwards:                ", with_positions[1, 5])

# %% tags=["check"]
not_padding = (ids != 0)[..., None]  # (B, T, 1)
dtable_zero = np.zeros_like(table)
np.add.at(dtable_zero, ids, c * not_padding * dy)
assert_allclose(y_zero, c * not_padding * table[ids])
assert_allclose(dtable_zero, embedding_backward(dy, cache_zero))
assert (y_zero[1, 3:] == 0).all()
assert (dtable_zero[0] == 0).all()

# %% [markdown]
# The last line of the output shows why you should not rely on these zeros. The next layer adds positions
# (lesson 3.1, `03_1_positions`), and then the vectors of padding are not 0 any more. A mask that is made from
# the *ids* excludes padding reliably (chapter 6), whatever the row of `<PAD>` contains. For this reason
# npformer does not use `zero_id` by default.
#
# ## Why √D?
#
# The paper multiplies by √d_model but does not give a reason. So we measure the length of the vectors. The
# package draws the entries of the table with variance 1/D. A position vector is added to each embedding. This
# vector consists of D/2 pairs (sin, cos) of one angle, and $\sin^2 + \cos^2 = 1$. So the squared lengths are
#
# $$|\mathrm{embedding}|^2 \approx D \cdot \frac{1}{D} = 1, \qquad |\mathrm{position}|^2 = \frac{D}{2}$$
#
# Multiplied by √D, the embedding has a squared length of about D.

# %% tags=["plot"]
widths = np.array([16, 64, 256, 512, 1024])
lengths = np.zeros((3, 5))
for j, n in enumerate(widths.tolist()):
    weight = Embedding(1000, n, rng=rng, dtype=np.float64).weight.value  # (V, D)
    bare = np.linalg.norm(weight, axis=-1).mean()
    position = np.linalg.norm(sinusoids(50, n), axis=-1)  # (50,)
    assert_allclose(position, math.sqrt(n / 2))  # at every position, not only on average
    lengths[:, j] = math.sqrt(n) * bare, position[0], bare
    print(f"D {n:5}   embedding {bare:5.2f}   times √D {lengths[0, j]:6.2f}", end="")
    print(f"   position {lengths[1, j]:6.2f}")

figure = curves(
    lengths,
    widths,
    labels=["times √D", "position", "embedding"],
    xlabel="D",
    ylabel="length of a vector",
    xscale="log",
    yscale="log",
)
caption = "Times √D, an embedding is √2 times as long as a position at every width"
show_figure(figure, "02_2_lengths", caption)

# %% [markdown]
# For D = 512 an embedding has length 1 and a position has length 16, with squares 1 and 256. So the embedding
# would contribute only 1/257, or 0.4 %, to the squared length of their sum. Multiplied by √512, it has length
# 22.6 with square 512. Then it contributes 512/768, or two thirds, and the same is true for every other D.

# %% tags=["check"]
assert_allclose(lengths[:, 3], [22.63, 16, 1], rtol=0.01)
assert_allclose(lengths[0] / lengths[1], math.sqrt(2), rtol=0.02)
bare, position = lengths[2, 3] ** 2, lengths[1, 3] ** 2
assert_allclose(bare / (bare + position), 1 / 257, rtol=0.02)
assert_allclose(512 * bare / (512 * bare + position), 2 / 3, rtol=0.02)
deviations = math.sqrt(512) * np.array([math.sqrt(2 / (10_000 + 512)), 0.05 / math.sqrt(3)])
assert_allclose(deviations, [0.31, 0.65], atol=5e-3)
assert_allclose((sinusoids(50, 512) ** 2).mean(), 1 / 2)
assert 37_000 * 512 == 18_944_000
print("the numbers of the text agree with the table")

# %% [markdown]
# ## Back to tokens with the same table
#
# In the end the model has a vector h for each place and must choose a token. The dot product of h with a row
# of the table is the score of this token, its **logit**:
#
# $$\mathrm{logit}_v = \sum_i h_i E_{vi}, \qquad \mathrm{logits} = h E^\top$$
#
# The shapes are (N, V) = (N, D) (D, V). How large are the logits? The vector h comes from a layer norm,
# so $\sum_i h_i^2 = D$. If the entries of E have variance $s^2$, then
#
# $$\operatorname{Var}(\mathrm{logit}_v) = \sum_i h_i^2 s^2 = D s^2$$
#
# This is 1 for $s^2 = 1/D$, but D for $s^2 = 1$. With logits of standard deviation √512 = 22.6, the model
# gives almost all probability to one token, although it has learned nothing yet. The next cell measures the
# loss, −ln of the probability of the right token, for 1,000 tokens.

# %%
h, _ = layer_norm(rng.standard_normal((200, 512)), np.ones(512), np.zeros(512))  # (N, D)
targets = rng.integers(0, 1000, 200)
losses = []
for name, s in {"s² = 1/D": 512**-0.5, "s² = 1": 1.0}.items():
    logits = h @ (s * rng.standard_normal((1000, 512))).T  # (N, V)
    losses.append(cross_entropy(logits, targets)[0])
    print(f"{name:9} standard deviation {logits.std():6.2f}   loss {losses[-1]:6.2f}")
print(f"equal probability for all tokens: ln 1000 = {math.log(1000):.2f}")

# %% [markdown]
# With equal probabilities for all tokens, the loss would be 6.91. A loss of 7.3 is hardly worse, but 72 is
# ten times as large. So the table should have variance 1/D at the output and 1 at the input. **A table of
# variance 1/D, multiplied by √D at the input,** satisfies both. This explanation is ours.

# %% tags=["check"]
assert_allclose(losses, [7.3, 72], atol=0.5)

# %% [markdown]
# ## Two uses, two gradients
#
# A table that is used at both ends has **tied weights**. What is its gradient? Call it $E_1$ at the input and
# $E_2$ at the output. The loss is a function of both. A small change δ of E changes both, and to first order
# the effects add up:
#
# $$L(E + \delta, E + \delta) = L + \langle dE_1, \delta \rangle + \langle dE_2, \delta \rangle + \dots$$
#
# So $dE = dE_1 + dE_2$. Suppose there are no layers between input and output, so that h = y. Then $dE_1$ is
# the scatter-add of dh, and $dE_2$ is the gradient of a linear layer with the weight matrix $W = E^\top$:
#
# $$dE_1 = c\, O^\top dh$$
#
# $$dE_2 = (h^\top d\mathrm{logits})^\top = d\mathrm{logits}^\top h$$
#
# The next cell computes both for this minimal **language model**, which predicts each token from the token
# before it.

# %%
read, wanted = ids[:, :-1], ids[:, 1:]  # (B, T): the cat sees ... -> cat sees the ...
h, tokens_cache = embedding(read, table, scale=c)  # (B, T, D)
logits = h @ table.T  # (B, T, V)
loss, loss_cache = cross_entropy(logits, wanted, pad_id=0)
dlogits = cross_entropy_backward(1.0, loss_cache)  # (B, T, V)

de2 = dlogits.reshape(-1, v_size).T @ h.reshape(-1, d_model)  # (V, D)
dh = dlogits @ table  # (B, T, D)
de1 = np.zeros_like(table)
np.add.at(de1, read.reshape(-1), c * dh.reshape(-1, d_model))

# %% [markdown]
# In the package, two layers share one parameter. Each backward pass *adds* its gradient to `.grad`, so the
# sum arises by itself.

# %% tags=["check"]
tokens = Embedding(v_size, d_model, scale=c, dtype=np.float64)
tokens.weight.value[:] = table
output = TiedProjection(tokens.weight, dtype=np.float64)  # the same Parameter
_, output_cache = output.forward(h)
tokens.backward(output.backward(dlogits, output_cache), tokens_cache)
assert_allclose(tokens.weight.grad, de1 + de2, atol=1e-15)
assert (de1[[0, 3]] == 0).all()  # <PAD> and </S>
assert (de2[0] != 0).all()
print(f"loss {loss:.4f}; dE agrees with the package")

# %% tags=["plot"]
style = {"colour": "weight", "numbers": True, "shade": True, "rows": vocabulary}
grids = [
    Grid(de1, "$dE_1$", edge="x", **style),
    "+",
    Grid(de2, "$dE_2$", edge="z", **style),
    "=",
    Grid(de1 + de2, "$dE$", edge="x", **style),
]
caption = "Input: only the four words that were read. Output: all tokens of the vocabulary"
show_figure(cell_product(grids), "02_2_tied", caption)

# %% [markdown]
# At the input, only tokens that were read get a gradient. `<PAD>` and `</S>` get none, because nothing is
# predicted from them. At the output, every token gets a gradient at every step. A training step moves the row
# of the right token towards h, and all other rows away from it. So with tied weights even a rare token is
# trained at every step. The row of `<PAD>` also changes, but `zero_id` writes its zeros into y, not into the
# table.
#
# ## Check the gradient
#
# First we check the embedding with padding and scale.

# %%
report = gradcheck((embedding, embedding_backward), ids, table, scale=c, zero_id=0)
print(report)

# %% [markdown]
# Then we check the language model as a function of its one table. With `forget=True`, its backward pass
# forgets one of the two gradients. The checker must find this mistake.

# %%


class NextToken:
    """Predict logits = embedding(ids) tableᵀ, with one table."""

    def __init__(self, forget=False):
        self.tokens, self.output = tokens, output
        self.forget = forget  # one of the two gradients

    def named_parameters(self):
        return [("table", self.tokens.weight)]

    def forward(self, ids):
        h, tokens_cache = self.tokens.forward(ids)
        logits, output_cache = self.output.forward(h)
        return logits, (tokens_cache, output_cache)

    def backward(self, dlogits, cache):
        dh = self.output.backward(dlogits, cache[1])
        if self.forget:
            self.tokens.weight.grad[:] = 0  # the effect of "grad = ..." instead of "grad += ..."
        self.tokens.backward(dh, cache[0])


# %% tags=["check"]
assert report.ok
report = gradcheck(NextToken(), ids)
print(report)
assert report.ok
report = gradcheck(NextToken(forget=True), ids)
print("with = instead of +=, first wrong entry", report.failures[0].entry)
assert not report.ok

# %% [markdown]
# ## What the source documents say
#
# > - The paper has one table for source, target and output (`tied="all"` in npformer). These are 37,000 ·
# >   512 = 18.9 million numbers once instead of three times. *一步步解析Attention is All You Need!* and *The
# >   components of the Transformer* have a table for each language and a separate output matrix
# >   (`tied="none"`).
# > - Both also multiply by √D, but their tables have other variances. *一步步解析Attention is All You Need!*
# >   uses Xavier's rule with variance 2/(V + D). For V = 10,000 and D = 512, the embeddings have standard
# >   deviation .31 after the multiplication, and less for a larger vocabulary. Keras, which *The components
# >   of the Transformer* uses, draws between −.05 and .05, which gives .65. A position has
# >   $1/\sqrt{2} = .71$.
# > - *一步步解析Attention is All You Need!* has a setting `zero_pad`, which replaces row 0 by zeros in every
# >   forward pass. The document recognizes padding by vectors whose sum is 0. But its
# >   next statement adds positions, so the sums are not 0 any more (chapter 6).

# %% [markdown]
# ## Summary
#
# - A row of zeros for `<PAD>` does not replace a mask: the next layer adds positions to it.
# - The factor √D gives embeddings a length similar to that of positions.
# - The same table gives the logits $h E^\top$. There it must have a variance of about 1/D.
# - The gradient of a tied table is the sum of the gradients of both uses.
# - With tied weights, every row of the table gets a gradient at every step.

# %% [markdown]
# ## Questions
#
# **Question.** Why not draw the table with √D times larger entries, and leave out the factor?
#
# <details><summary>Answer</summary>
# Then the embeddings would have the right length at the input. But the same table is also used at the output,
# where entries of variance 1 give a loss of 72 instead of 7.3.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 2` lists the exercises. The gradient checker grades the backward passes.
#
# - `npformer exercise start tied-backward`: compute the gradients of an output layer with tied weights.
# - `npformer exercise start linear-layer-backward`: write the backward pass of a layer with parameters.
#
# **Next**: lesson 3.1 (`03_1_positions`). "the cat sees the dog" and "the dog sees the cat" consist of the
# same vectors in another order. How can the model tell them apart?

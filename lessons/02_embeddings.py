# %% [markdown]
# # 2 · Embeddings
#
# *About 50 minutes. You need: the gradients of a linear layer (lesson 0.2, `00_2_forward_and_backward`),
# ids and padding (lesson 1, `01_words_to_ids`).*
#
# **After this lesson you can**
#
# - turn ids into vectors, and explain why this is a matrix product;
# - derive the gradient of the table, and avoid a common mistake in NumPy;
# - explain why the paper multiplies embeddings by √d_model;
# - use one table for the input and the output, and add its two gradients.
#
# `model: ids → [EMBEDDING] → positions → encoder → decoder → linear → softmax`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import show
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
# ## Why vectors?
#
# After lesson 1 a sentence is a list of ids, for example 4 5 6 4 7. An id is only a name, and a network
# cannot calculate with names. So each token gets a vector, its **embedding**. The entries of these vectors
# are learned during training. The paper describes this in section 3.4:
#
# > we use learned embeddings to convert the input tokens and output tokens to vectors of dimension d_model.
# > [...] we share the same weight matrix between the two embedding layers and the pre-softmax linear
# > transformation, similar to [30]. In the embedding layers, we multiply those weights by √d_model.
#
# So one table is used twice. It turns ids into vectors, and at the end it turns vectors into scores for
# tokens:
#
# ```text
# ids (B, T) ──▶ rows of E, × √D ──▶ + positions ──▶ layers ──▶ h (B, T, D) ──▶ h Eᵀ ──▶ (B, T, V)
#                      ▲                                                        ▲
#                      └────────────── the table E (V, D), used twice ──────────┘
# ```

# %% [markdown]
# D stands for d_model, and V is the size of the vocabulary. Our example has padding, and the token "the"
# occurs three times.

# %%
vocabulary = ["<PAD>", "<UNK>", "<S>", "</S>", "the", "cat", "sees", "dog"]  # V = 8
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0]])  # (B, T)

# %% tags=["check"]
for row in ids:
    print([vocabulary[i] for i in row])

# %% [markdown]
# ## A table with one row for each token
#
# The table E has one row of D numbers for each token of the vocabulary. The numbers are random at first. They
# are parameters, like a weight matrix, and training changes them. The layer copies the rows that the ids
# select, and multiplies them by a constant c. For place n of the batch and component i:
#
# $$y_{ni} = c \cdot E_{\mathrm{id}_n,\, i}$$
#
# The constant c is 1 or √D. You will see below why the paper uses √D. In NumPy one line is enough, because an
# array of ids as an index returns an array of rows.

# %%
v_size, d_model = 8, 4
c = math.sqrt(d_model)  # 2
table = rng.standard_normal((v_size, d_model)) / math.sqrt(d_model)  # (V, D)
y = c * table[ids]  # (B, T, D)

y, cache = embedding(ids, table, scale=c)  # the function of the package
show(cache)

# %% tags=["check"]
slow = np.zeros((2, 6, d_model))  # (B, T, D)
for b in range(2):
    for t in range(6):
        for i in range(d_model):
            slow[b, t, i] = c * table[ids[b, t], i]
assert_allclose(c * table[ids], slow)
assert_allclose(y, slow)
assert_allclose(y[0, 0], y[1, 0])  # "the" has the same vector at every place

# %% [markdown]
# ## The lookup is a matrix product
#
# To find the gradient of the table, we write the same computation as a matrix product. We write id 4 as a row
# of V numbers that is 1 in column 4 and 0 everywhere else. This is called a **one-hot** vector. If we
# multiply it by the table, row 4 is multiplied by 1, and all other rows by 0. So the product is row 4. Let O
# be the matrix whose rows are the one-hot vectors of all N = B · T ids. Then
#
# $$\sum_v O_{nv} E_{vi} = E_{\mathrm{id}_n,\, i}$$
#
# For all places and with the constant c, this is the matrix product
#
# $$Y = c\, O E$$
#
# The shapes are (N, D) = (N, V) (V, D). So an embedding is the linear layer of lesson 0.2. Its input is
# one-hot, and its weight matrix is E.

# %%
flat = ids.reshape(-1)  # (N,), N = B · T = 12
one_hot = np.zeros((12, v_size))  # (N, V)
one_hot[np.arange(12), flat] = 1

# %% tags=["check"]
assert_allclose(c * one_hot @ table, y.reshape(12, d_model))

# %% tags=["plot"]
tokens_read = [vocabulary[i] for i in ids[0]]
ones = one_hot.astype(int)
grids = [
    Grid(ones[:6], "$O$", numbers=True, rows=tokens_read, shade=True),
    "×",
    Grid(table, "$E$", "weight", edge="x", numbers=True, rows=vocabulary),
    "=",
    Grid(table[ids[0]], "$O E$", "x", numbers=True),
]
caption = 'The first sentence: each 1 selects a row of the table; both "the" select the same row'
show_figure(cell_product(grids), "02_look_up", caption)

# %% [markdown]
# Nobody computes embeddings in this way. The paper has batches of 25,000 tokens and a vocabulary of 37,000.
# So O would have 925 million entries, or 3.7 GB in float32, and only
# 25,000 of them would not be 0. But the product helps us to
# find the gradient.

# %% tags=["check"]
assert 25_000 * 37_000 == 925_000_000
assert 37_000 * 512 == 18_944_000
assert 25_000 * 37_000 * 4 / 1e9 == 3.7

# %% [markdown]
# ## The gradient of the table
#
# In lesson 0.2 the gradient of the weights was $dW = X^\top dY$. Here the input X is O, and the weight is E:
#
# $$
# \begin{aligned}
# dE      &= c\, O^\top dY \\
# dE_{vi} &= c \sum_n O_{nv}\, dy_{ni} = c \sum_{n:\, \mathrm{id}_n = v} dy_{ni}
# \end{aligned}
# $$
#
# The last sum contains only the places at which token v stands. This is the rule of lesson 0.2 again: **the
# forward pass copied row v to all these places, so the backward pass adds up their gradients.** The gradient
# of a token that does not occur in the batch is 0.
#
# In code we do not need O. For each place n, we add the gradient of $y_n$ to the row of the table that was
# copied to this place. This is called a **scatter-add**. The next cell contains two lines for it that seem to
# do the same. Only the second is right.

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
drows = dy.reshape(12, d_model)  # (N, D)

lost = np.zeros_like(table)
lost[flat] += c * drows  # WRONG

dtable = np.zeros_like(table)
np.add.at(dtable, flat, c * drows)  # right

# %% tags=["check"]
for token in ("the", "cat"):
    v = vocabulary.index(token)
    print(f"{token} ({(flat == v).sum()} ×)")
    print("   [ids] +=  ", lost[v])
    print("   add.at    ", dtable[v])

dtable_slow = np.zeros_like(table)  # (V, D)
for n in range(12):
    for i in range(d_model):
        dtable_slow[flat[n], i] += c * drows[n, i]
assert_allclose(dtable, dtable_slow)
assert_allclose(dtable, c * one_hot.T @ drows)
assert_allclose(dtable, embedding_backward(dy, cache))
assert_allclose(dtable[4], c * (dy[0, 0] + dy[0, 3] + dy[1, 0]))  # "the", three times
assert (dtable[1] == 0).all()  # <UNK> is not in the batch
assert_allclose(lost[4], c * dy[1, 0])  # only the last place

# %% [markdown]
# **Question.** Why is the row of "the" wrong in the first version, while the row of "cat" is right?
#
# <details><summary>Answer</summary>
# NumPy first reads all rows, then adds, and then writes all rows. The row of "the" is written three times,
# and each result replaces the one before. Only the last one stays. "cat" occurs once, so nothing is replaced.
# The function add.at adds every contribution.
# </details>
#
# There is no error message. In the corpus of lesson 1, "the" occurs 54,526 times in 29,152 sentences, which
# is 120 times in a batch of 64. With the wrong line, 119 of these 120 gradients would be lost.

# %% tags=["plot"]
grids = [
    Grid(ones.T, "$O^T$", numbers=True, rows=vocabulary, shade=True),
    "×",
    Grid(drows, "$dy$", "z", numbers=True),
    "× 2   =",
    Grid(dtable, "$dE$", "weight", edge="x", numbers=True, rows=vocabulary),
]
caption = 'Row "the" contains three ones, so it adds up three rows of dy; <UNK> and <S> get 0'
show_figure(cell_product(grids), "02_scatter_add", caption)

# %% [markdown]
# ## The row of the padding
#
# In the picture the row of `<PAD>` gets gradients from three places, although these places contain no words.
# The argument `zero_id=0` prevents this by replacing the embedding of padding by 0. With $m_n = 0$ at padding
# and 1 elsewhere, as in lesson 1:
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
np.add.at(dtable_zero, flat, (c * not_padding * dy).reshape(12, d_model))
assert_allclose(y_zero, c * not_padding * table[ids])
assert_allclose(dtable_zero, embedding_backward(dy, cache_zero))
assert (y_zero[1, 3:] == 0).all()
assert (dtable_zero[0] == 0).all()
assert_allclose(dtable_zero[1:], dtable[1:])  # all other rows are as before

# %% [markdown]
# The last line of the output shows why you should not rely on these zeros. The next layer adds positions
# (lesson 3, `03_positions`), and then the vectors of padding are not 0 any more. A mask that is made from
# the *ids* excludes padding reliably (chapter 6), whatever the row of `<PAD>` contains. For this reason
# npformer does not use `zero_id` by default.
#
# ## Why √D?
#
# The paper multiplies by √d_model but does not give a reason. So we measure the length of the vectors. The
# package draws the entries of the table with variance 1/D. A position vector is added to each embedding. It
# consists of D/2 pairs (sin, cos) of one angle, and $\sin^2 + \cos^2 = 1$. So the squared lengths are
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
show_figure(figure, "02_lengths", caption)

# %% [markdown]
# For D = 512 an embedding has length 1 and a position has length 16, with squares 1 and 256. So the embedding
# would contribute only 1/257, or 0.4 %, to the squared length of their sum. Multiplied by √512, it has length
# 22.6 with square 512. Then it contributes 512/768, or two thirds, and the same is true for every other D.
#
# **Question.** Why not draw the table with √D times larger entries, and leave out the factor?
#
# <details><summary>Answer</summary>
# Then the embeddings would have the right length at the input. But the same table is also used at the output,
# where large entries are harmful. The next section shows this.
# </details>

# %% tags=["check"]
assert_allclose(lengths[:, 3], [22.63, 16, 1], rtol=0.01)
assert_allclose(lengths[0] / lengths[1], math.sqrt(2), rtol=0.02)
bare, position = lengths[2, 3] ** 2, lengths[1, 3] ** 2
assert_allclose(bare / (bare + position), 1 / 257, rtol=0.02)
assert_allclose(512 * bare / (512 * bare + position), 2 / 3, rtol=0.02)
deviations = math.sqrt(512) * np.array([math.sqrt(2 / (10_000 + 512)), 0.05 / math.sqrt(3)])
assert_allclose(deviations, [0.31, 0.65], atol=5e-3)
assert_allclose((sinusoids(50, 512) ** 2).mean(), 1 / 2)
assert round(64 * 54_526 / 29_152) == 120
print("the numbers of the text agree with the table")

# %% [markdown]
# ## Back to tokens with the same table
#
# In the end the model has a vector h for each place and must choose a token. The dot product of h with a row
# of the table is the score of this token, its **logit**:
#
# $$\mathrm{logit}_v = \sum_i h_i E_{vi}, \qquad \mathrm{logits} = h E^\top$$
#
# The shapes are (N, V) = (N, D) (D, V). How large are the logits? The vector h comes from a layer norm
# (lesson 8.1, `08_1_layer_norm`), so $\sum_i h_i^2 = D$. If the entries of E have variance $s^2$, then
#
# $$\operatorname{Var}(\mathrm{logit}_v) = \sum_i h_i^2 s^2 = D s^2$$
#
# This is 1 for $s^2 = 1/D$, but D for $s^2 = 1$. With logits of standard deviation √512 = 22.6, the model
# gives almost all probability to one token, although it has learned nothing yet. The next cell measures the
# loss, −ln of the probability of the right token (lesson 12.1, `12_1_the_cross_entropy`), for 1,000 tokens.

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
dlogits = cross_entropy_backward(1.0, loss_cache)  # (B, T, V), chapter 12

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
assert (de1[0] == 0).all()  # <PAD>
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
caption = "Input: only the four tokens that were read. Output: all tokens of the vocabulary"
show_figure(cell_product(grids), "02_tied", caption)

# %% [markdown]
# At the input, only tokens that were read get a gradient. `<PAD>` gets none, because nothing is predicted
# from it. At the output, every token gets a gradient at every step. A training step moves the row of the
# right token towards h, and all other rows away from it. So with tied weights even a rare token is trained at
# every step. The row of `<PAD>` also changes, but `zero_id` writes its zeros into y, not into the table.
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
# > - *图解transformer* draws three tokens, "Je suis étudiant", with a vector of four numbers each. It adds
# >   positions and mentions no factor.
# > - *一步步解析Attention is All You Need!* has a setting `zero_pad`, which replaces row 0 by zeros in every
# >   forward pass. The document recognizes padding by vectors whose sum is 0. But its
# >   next statement adds positions, so the sums are not 0 any more (chapter 6).

# %% [markdown]
# ## Summary
#
# - An embedding selects rows of a table. It is a linear layer with one-hot input.
# - Its gradient is a scatter-add. Use `np.add.at`, because `table[ids] += …` loses repeated ids.
# - The factor √D gives embeddings a length similar to that of positions.
# - The same table gives the logits $h E^\top$. There it must have a variance of about 1/D.
# - The gradient of a tied table is the sum of the gradients of both uses.

# %% [markdown]
# ## Questions
#
# **Question.** The sentence is "the the", with dy = (1, 0) and (0, 1), and c = 2. What is the row "the" of dE
# after `np.add.at`, and what is it after `dE[ids] += c * dy`?
#
# <details><summary>Answer</summary>
# (2, 2) after the first line, and (0, 2) after the second.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 2` lists the exercises. Each is graded by the gradient checker.
#
# - `npformer exercise start embedding`: write the forward pass.
# - `npformer exercise start embedding-backward`: compute the gradient of an embedding table with a
#   scatter-add.
# - `npformer exercise start tied-backward`: compute the gradients of an output layer with tied weights.
# - `npformer exercise start linear-layer-backward`: write the backward pass of a layer with parameters.
#
# In the terminal, try `!np.diag(one_hot.T @ one_hot)`. What does it count?
#
# **Next**: lesson 3 (`03_positions`). "the cat sees the dog" and "the dog sees the cat" consist of the same
# vectors in another order. How can the model tell them apart?

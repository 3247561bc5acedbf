# %% [markdown]
# # 2 · Embeddings
#
# *25 minutes to read, 3 seconds to run. Lesson 0 for dW = xᵀ dy, lesson 1 for ids and padding.*
#
# **The question.** A sentence has come in as ids: 4 5 6 4 7. One cannot calculate with a name. What is the
# vector of word 4, and who chose it? The same word stands at many places of a batch: what does each of them
# say to the one vector? Why does the paper multiply it by √512 = 22.6? And how can the table that turns words
# into vectors be the one that turns vectors back into words?

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
# ## The passage
#
# *Attention Is All You Need*, section 3.4, nearly whole:
#
# > we use learned embeddings to convert the input tokens and output tokens to vectors of dimension d_model.
# > [...] we share the same weight matrix between the two embedding layers and the pre-softmax linear
# > transformation, similar to [30]. In the embedding layers, we multiply those weights by √d_model.
#
# *图解transformer* draws it for "Je suis étudiant": three words, a vector of four numbers each. *一步步解析
# Attention is All You Need!* gives the code, with two settings to watch: `zero_pad` and `scale`.
#
# Ours is the smallest batch that has everything: a word that occurs three times, and padding.

# %%
vocabulary = ["<PAD>", "<UNK>", "<S>", "</S>", "the", "cat", "sees", "dog"]  # V = 8
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0]])  # (B, T)
for row in ids:
    print([vocabulary[i] for i in row])

# %% [markdown]
# ## A table, and a look-up
#
# The table has one row of D numbers for each word of the vocabulary. At first they are random; they are
# parameters, like a weight matrix, and gradients move them. With c a constant (1 or √D):
#
# ```math
# yₙᵢ = c · E[idₙ, i]          n: a place in the batch, i: one of the D numbers
# ```

# %%
v_size, d_model = 8, 4
c = math.sqrt(d_model)  # 2
table = rng.standard_normal((v_size, d_model)) / math.sqrt(d_model)  # (V, D)

slow = np.zeros((2, 6, d_model))  # (B, T, D)
for b in range(2):
    for t in range(6):
        for i in range(d_model):
            slow[b, t, i] = c * table[ids[b, t], i]

y = c * table[ids]  # NumPy's look-up: an array of ids as an index gives an array of rows
assert_allclose(y, slow)
y, cache = embedding(ids, table, scale=c)
assert_allclose(y, slow)
assert_allclose(y[0, 0], y[1, 0])  # "the" is "the", wherever it stands
show(cache)

# %% [markdown]
# ## The look-up is a product
#
# Write id 4 as a row of V numbers, 0 everywhere and 1 in column 4: **one-hot**. Times the table, all rows but
# row 4 are multiplied by 0:
#
# ```math
# Σᵥ O[n, v] E[v, i] = E[idₙ, i]          O[n, v] = 1 if v = idₙ, else 0
# Y = c O E                               (N, D) = (N, V) (V, D)
# ```
#
# So an embedding is lesson 0's linear layer whose input is one-hot and whose weight is E.

# %%
flat = ids.reshape(-1)  # (N,), N = B·T = 12
one_hot = np.zeros((12, v_size))  # (N, V)
for n in range(12):
    one_hot[n, flat[n]] = 1
assert_allclose(c * one_hot @ table, y.reshape(12, d_model))

# %%
said = [vocabulary[i] for i in ids[0]]
ones = one_hot.astype(int)
grids = [
    Grid(ones[:6], "$O$", numbers=True, rows=said, shade=True),
    "×",
    Grid(table, "$E$", "weight", edge="x", numbers=True, rows=vocabulary),
    "=",
    Grid(table[ids[0]], "$O E$", "x", numbers=True),
]
caption = 'The first sentence: each 1 picks a row of the table, both times "the" the same row'
show_figure(cell_product(grids), "02_look_up", caption)

# %% [markdown]
# Nobody computes it so. With the paper's batch of 25,000 tokens and 37,000 words, O would have 925 million
# entries (3.7 GB in float32) in order to hold 25,000 ones. The product is for *thinking*: it tells us the
# gradient.

# %%
assert 25_000 * 37_000 == 925_000_000
assert 37_000 * 512 == 18_944_000
assert 25_000 * 37_000 * 4 / 1e9 == 3.7

# %% [markdown]
# ## Backward, derived
#
# Lesson 0 had dW = xᵀ dy. Here the input is O and the weight E:
#
# ```math
# dE = c Oᵀ dY                                   (V, D) = (V, N) (N, D)
# dE[v, i] = c Σₙ O[n, v] dyₙᵢ = c Σ_{n: idₙ = v} dyₙᵢ
# ```
#
# The last sum runs over the places where word v stands. **Forward copied row v to each of them; backward adds
# up what they all say.** A word that is not in the batch hears 0.

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
drows = dy.reshape(12, d_model)  # (N, D)

dtable_slow = np.zeros_like(table)  # (V, D)
for n in range(12):
    for i in range(d_model):
        dtable_slow[flat[n], i] += c * drows[n, i]
assert_allclose(dtable_slow, c * one_hot.T @ drows)
assert_allclose(dtable_slow[4], c * (dy[0, 0] + dy[0, 3] + dy[1, 0]))  # the, three times
assert (dtable_slow[1] == 0).all()  # <UNK> is not in the batch

# %% [markdown]
# The loop is a **scatter-add**: take each place's gradient to the row that the place read, and add. It looks
# like one line of NumPy, and the obvious line is wrong:

# %%
lost = np.zeros_like(table)
lost[flat] += c * drows  # WRONG

dtable = np.zeros_like(table)
np.add.at(dtable, flat, c * drows)  # right
for word in ("the", "cat"):
    v = vocabulary.index(word)
    print(f"{word} ({(flat == v).sum()} ×)")
    print("   [ids] +=  ", lost[v])
    print("   add.at    ", dtable[v])
assert_allclose(lost[4], c * dy[1, 0])  # its last place, and nothing else
assert_allclose(dtable, dtable_slow)
assert_allclose(dtable, embedding_backward(dy, cache))

# %% [markdown]
# `lost[flat] += g` means lost[flat] = lost[flat] + g: all rows are read first, then all written, and where a
# row is written three times the last one stays. No error, and "cat", which occurs once, is right. In lesson
# 1's corpus "the" occurs 54,526 times in 29,152 sentences: 120 times in a batch of 64. It would hear one of
# the 120. `np.add.at` adds each one.

# %%
assert round(64 * 54_526 / 29_152) == 120
grids = [
    Grid(ones.T, "$O^T$", numbers=True, rows=vocabulary, shade=True),
    "×",
    Grid(drows, "$dy$", "z", numbers=True),
    "× 2   =",
    Grid(dtable, "$dE$", "weight", edge="x", numbers=True, rows=vocabulary),
]
caption = 'Row "the" has three ones, so it adds up three rows of dy; <UNK> and <S> hear nothing'
show_figure(cell_product(grids), "02_scatter_add", caption)

# %% [markdown]
# ## The row of the padding
#
# In the picture `<PAD>` hears three places, which are no words. *一步步解析Attention is All You Need!* wants
# padding to be all 0, and stay so: `zero_pad` replaces row 0 of the table by zeros in every forward pass. In
# npformer that is `zero_id=0`. With mₙ = 0 at padding and 1 elsewhere, as in lesson 1:
#
# ```math
# yₙᵢ      = c mₙ E[idₙ, i]
# dE[v, i] = c Σ_{n: idₙ = v} mₙ dyₙᵢ         so dE[0, i] = 0
# ```

# %%
y_zero, cache_zero = embedding(ids, table, scale=c, zero_id=0)
not_padding = (ids != 0)[..., None]  # (B, T, 1)
dtable_zero = np.zeros_like(table)
np.add.at(dtable_zero, flat, (c * not_padding * dy).reshape(12, d_model))

assert_allclose(y_zero, c * not_padding * table[ids])
assert_allclose(dtable_zero, embedding_backward(dy, cache_zero))
assert (y_zero[1, 3:] == 0).all()
assert (dtable_zero[0] == 0).all()
assert_allclose(dtable_zero[1:], dtable[1:])  # all other rows as before

with_positions = y_zero + sinusoids(6, d_model)
print("padding, before positions:", y_zero[1, 5])
print("padding, after:           ", with_positions[1, 5])

# %% [markdown]
# The last line is why one must not lean on it. The next thing that happens to y is that positions are added
# (lesson 3), and the padding is not 0 any more. That document goes on to find the padding by looking for
# vectors whose sum is 0; lesson 6 shows what becomes of that. What keeps padding out is a mask made from the
# *ids*; with it, the row of `<PAD>` may hold anything. So npformer's default is no `zero_id`.
#
# ## Why √D: who speaks louder?
#
# The paper says that it multiplies by √d_model, and not why. So we measure. The package draws the entries of
# the table with variance 1/D. A position vector, which will be added to the word, consists of pairs sin, cos
# of one angle, and sin² + cos² = 1. Squared lengths:
#
# ```math
# |word|²       = Σᵢ E²       ≈ D · 1/D  = 1
# |√D word|²                  ≈ D · 1    = D
# |position|²   = D/2 pairs · 1         = D/2
# ```
#
# At D = 512 the bare word has length 1, beside a position of length 16; multiplied, 22.6.

# %%
widths = np.array([16, 64, 256, 512, 1024])
lengths = np.zeros((3, 5))
for j, n in enumerate(widths.tolist()):
    weight = Embedding(1000, n, rng=rng, dtype=np.float64).weight.value  # (V, D)
    word = np.linalg.norm(weight, axis=-1).mean()
    position = np.linalg.norm(sinusoids(50, n), axis=-1)  # (50,)
    assert_allclose(position, math.sqrt(n / 2))  # every position, not on average
    lengths[:, j] = math.sqrt(n) * word, position[0], word
    print(f"D {n:5}   √D · word {lengths[0, j]:6.2f}   position {lengths[1, j]:6.2f}", end="")
    print(f"   word {word:5.2f}")

# %%
figure = curves(
    lengths,
    widths,
    labels=["√D · word", "position", "word"],
    xlabel="D",
    ylabel="length of a vector",
    xscale="log",
    yscale="log",
)
caption = "Times √D, a word is √2 times as long as a position, at every width; bare it drowns"
show_figure(figure, "02_lengths", caption)

# %% [markdown]
# What enters the encoder is the sum of both. Of its squared length the bare word is 1 part in 257, 0.4 %; the
# multiplied word is 512 in 768, two thirds, at every width.
#
# It depends on how the table is drawn. *一步步解析Attention is All You Need!* multiplies as well, but draws
# by Xavier's rule for a (V, D) matrix, variance 2/(V + D): with V = 10,000 a word's entries have a spread of
# .31 after the multiplication, and less the larger the vocabulary. Keras, which *The components of the
# Transformer* uses, draws between −.05 and .05: .65 after it. A position's have 1/√2 = .71.
#
# But why not draw the table larger by √D, and multiply by nothing? Because of the table's second use.

# %%
assert_allclose(lengths[:, 3], [22.63, 16, 1], rtol=0.01)
assert_allclose(lengths[0] / lengths[1], math.sqrt(2), rtol=0.02)
word, position = lengths[2, 3] ** 2, lengths[1, 3] ** 2
assert_allclose(word / (word + position), 1 / 257, rtol=0.02)
assert_allclose(512 * word / (512 * word + position), 2 / 3, rtol=0.02)
spreads = math.sqrt(512) * np.array([math.sqrt(2 / (10_000 + 512)), 0.05 / math.sqrt(3)])
assert_allclose(spreads, [0.31, 0.65], atol=5e-3)
assert_allclose((sinusoids(50, 512) ** 2).mean(), 1 / 2)
print("the numbers of the text are those of the table")

# %% [markdown]
# ## Back to words, with the same table
#
# At its end the model has a vector h for each place and must say a word. It asks each row of the table: how
# alike are we? A word's score, its **logit**, is the dot product:
#
# ```math
# logitᵥ = Σᵢ hᵢ E[v, i]          logits = h Eᵀ          (N, V) = (N, D) (D, V)
# ```
#
# h comes out of a layer norm (lesson 8), so Σ hᵢ² = D. With entries of E of variance s², the logits' is
#
# ```math
# Var(logitᵥ) = Σᵢ hᵢ² s² = D s²
# ```
#
# which is 1 for s² = 1/D, and D for s² = 1. Logits of spread 22.6 mean a model that is *sure* before it has
# learned anything. Its loss, −ln of the probability of the right word (lesson 12), for 1,000 words:

# %%
h, _ = layer_norm(rng.standard_normal((200, 512)), np.ones(512), np.zeros(512))  # (N, D)
targets = rng.integers(0, 1000, 200)
losses = []
for name, s in {"s² = 1/D": 512**-0.5, "s² = 1": 1.0}.items():
    logits = h @ (s * rng.standard_normal((1000, 512))).T  # (N, V)
    losses.append(cross_entropy(logits, targets)[0])
    print(f"{name:9} spread of the logits {logits.std():6.2f}   loss {losses[-1]:6.2f}")
print(f"knowing nothing: ln 1000 = {math.log(1000):.2f}")
assert_allclose(losses, [7.3, 72], atol=0.5)

# %% [markdown]
# 7.3 is hardly worse than knowing nothing; 72 is ten times as bad.
#
# So one table, two demands: variance 1/D where it makes logits, 1 where it meets positions. **Small table,
# times √D at the entrance** serves both. That is our reading; the paper leaves it open.
#
# ## Two uses, two gradients
#
# Let E₁ be the table at the entrance and E₂ the one at the exit. L is a function of both, and then we set
# E₁ = E₂ = E. Moving E moves both, and to first order what they do to L adds up:
#
# ```math
# L(E + δ, E + δ) = L + ⟨dE₁, δ⟩ + ⟨dE₂, δ⟩ + …          so  dE = dE₁ + dE₂
# dE₁ = c Oᵀ dy            the scatter-add
# dE₂ = dlogitsᵀ h         lesson 0's dW = hᵀ dlogits, transposed, since W = Eᵀ
# ```
#
# In a network that guesses each next word from the word before it, and from nothing else:

# %%
read, wanted = ids[:, :-1], ids[:, 1:]  # (B, T): the cat sees ... -> cat sees the ...
h, tokens_cache = embedding(read, table, scale=c)  # (B, T, D)
logits = h @ table.T  # (B, T, V)
loss, loss_cache = cross_entropy(logits, wanted, pad_id=0)
dlogits = cross_entropy_backward(1.0, loss_cache)  # (B, T, V), lesson 12

de2 = dlogits.reshape(-1, v_size).T @ h.reshape(-1, d_model)  # (V, D)
dh = dlogits @ table  # (B, T, D)
de1 = np.zeros_like(table)
np.add.at(de1, read.reshape(-1), c * dh.reshape(-1, d_model))

tokens = Embedding(v_size, d_model, scale=c, dtype=np.float64)  # the package's two layers
tokens.weight.value[:] = table
output = TiedProjection(tokens.weight, dtype=np.float64)  # the same Parameter
_, output_cache = output.forward(h)
tokens.backward(output.backward(dlogits, output_cache), tokens_cache)  # each adds to .grad
assert_allclose(tokens.weight.grad, de1 + de2, atol=1e-15)
assert (de1[0] == 0).all()  # <PAD>
assert (de2[0] != 0).all()
print(f"loss {loss:.4f}; dE is that of the package")

# %%
style = {"colour": "weight", "numbers": True, "shade": True, "rows": vocabulary}
grids = [
    Grid(de1, "$dE_1$", edge="x", **style),
    "+",
    Grid(de2, "$dE_2$", edge="z", **style),
    "=",
    Grid(de1 + de2, "$dE$", edge="x", **style),
]
caption = "Entrance: the four words that were read to guess from. Exit: every word, said or not"
show_figure(cell_product(grids), "02_tied", caption)

# %% [markdown]
# At the entrance a word is moved only when it is read, and `<PAD>` never, since nothing is guessed from it.
# At the exit every word is moved at every step: one that was wanted towards h, all others away from it. So
# with a tied table a rare word learns all the time, and the row of `<PAD>` moves too, however carefully the
# entrance was kept at 0. (`zero_id` writes the zeros into y, not into the table: they stay.)
#
# ## Is it right?
#
# First the pair, with padding and scale; then the two uses in one, checked as one function of the table.

# %%
report = gradcheck((embedding, embedding_backward), ids, table, scale=c, zero_id=0)
print(report)
assert report.ok

# %%


class NextToken:
    """logits = embedding(ids) tableᵀ, with one table."""

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
            self.tokens.weight.grad[:] = 0  # as "grad = ..." in place of "grad += ..." would
        self.tokens.backward(dh, cache[0])


report = gradcheck(NextToken(), ids)
print(report)
assert report.ok
report = gradcheck(NextToken(forget=True), ids)
print("with = in place of +=, first wrong entry", report.failures[0].entry)
assert not report.ok

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 2` has them, each graded by the gradient checker.
#
# - `npformer exercise start embedding-backward`: the scatter-add, with scale and zero padding.
# - `npformer exercise start tied-backward`: the exit's half; mind whose transpose dw is.
# - `npformer exercise start linear-layer-backward`: += for a layer that is used more than once.
# - By hand: the sentence "the the", dy = (1, 0) and (0, 1), c = 2. What does row "the" of dE hold after
#   `np.add.at`, and what after `dE[ids] += c * dy`? ((2, 2), and (0, 2).)
#
# To try now, in the terminal: `!embedding(np.array([4, 7]), table)[0]`, and `!np.diag(one_hot.T @ one_hot)`:
# what does it count?
#
# ## Where the documents differ
#
# - The paper has one table for source, target and output: 37,000 · 512 = 18.9 million numbers once, not
#   three times (`tied="all"` in npformer). *一步步解析Attention is All You Need!* and *The components of the
#   Transformer* keep a table for each language, and a matrix of its own at the exit (`tied="none"`).
# - Both multiply by √D, on tables drawn otherwise (.31 and .65, above). *图解transformer* adds words and
#   positions and mentions no factor.
# - *一步步解析Attention is All You Need!* counts on padding being 0 when it makes its masks; it is so only
#   until positions are added, in the next statement.
#
# **Next**, lesson 3: "the cat sees the dog" and "the dog sees the cat" are the same vectors in another order.
# What tells them apart?

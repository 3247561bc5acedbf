# %% [markdown]
# # 7 · Heads
#
# *About 80 minutes, in four parts. You need: scaled dot-product attention (lesson 5), masks
# (lesson 6), and the idea that x contains the position of a token (lesson 3).*
#
# **After this lesson you can**
#
# - explain why one attention function is not enough, and compute how much it loses;
# - split an array into heads and merge it again, and recognize the usual mistake;
# - explain what the matrix W^O does, and derive the backward pass of multi-head attention;
# - say what several heads cost, and what they cannot do.
#
# `[embedding] → [MULTI-HEAD ATTENTION] → [add & norm] → …`  (you are in the second box of Figure 1)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import MultiHeadAttention, UserError, show
from npformer.checking import gradcheck
from npformer.functional import heads as package
from npformer.functional.attention import attention, attention_backward
from npformer.functional.heads import merge_heads, split_heads
from npformer.learn.course import show_figure
from npformer.plots import Grid, attention_grid, cell_product, curves

rng = np.random.default_rng(7)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16

# %% [markdown]
# ## Why several heads?
#
# Attention gives each token *one* weighted average of the values of all tokens. What if a token needs two
# different pieces of information? Read this sentence: *The animal didn't cross the street because it was too
# tired.* The token *it* needs to know which noun it stands for, and what the sentence says about this noun.
# These pieces come from different tokens, and an average would mix them.
#
# The Transformer therefore computes several attention functions in parallel. Each of them is called a
# **head**. Each head has its own queries, keys and values, and so each head can attend to a different token.

# %% [markdown]
# ## An example: six people round a table
#
# How much does a single head lose? We use an example that is small enough to be solved on paper. Six people
# sit round a table:
#
# ```text
#          Ann   Ben                x of Ben       = [ note of Ben  | 0 1 0 0 0 0 ]
#       Fay         Cem             wanted by Ben  = [ note of Ann  | note of Cem ]
#          Eve   Dot
# ```
#
# Each person has a **note** with six random numbers. Each person wants two notes: the note of the left
# neighbour and the note of the right neighbour. The two notes must arrive side by side and unmixed.
#
# The people are the tokens of our "sentence". The vector $x$ of a person has 12 entries. The first six are
# the note. The other six encode the seat, with a 1 at the number of the seat and 0 elsewhere.

# %%
people = ["Ann", "Ben", "Cem", "Dot", "Eve", "Fay"]


def tables(n):
    """Return n tables: x and the wanted outputs, each (B, T, D), where T is 6 and D is 12."""
    notes = rng.standard_normal((n, 6, 6))  # (B, T, 6)
    seats = np.broadcast_to(np.eye(6), (n, 6, 6))  # (B, T, 6) a 1 at one's own seat
    left, right = np.roll(notes, 1, axis=1), np.roll(notes, -1, axis=1)  # Fay sits next to Ann
    return np.concatenate([notes, seats], -1), np.concatenate([left, right], -1)


x, wanted = tables(4000)
print("x", x.shape, "  wanted", wanted.shape)
print("Ben has", x[0, 1, :2], "…   Cem wants from the left", wanted[0, 2, :2], "…")

# %% [markdown]
# ## One softmax has one average
#
# How well can a single head solve this task? Suppose that it finds the two neighbours by their seats. It
# gives the left neighbour the weight $p$ and the right neighbour the weight $r = 1 - p$. Let $a$ be a number
# in the left note, and $b$ the number at the same place in the right note. Then the head delivers
#
# $$z = p\,a + r\,b$$
#
# The person wants $a$ and $b$, but gets only $z$. All other operations of the layer are linear, and the other
# numbers of the notes say nothing about $a$. So the best estimate of $a$ is a multiple $m z$.
#
# Let $E$ be the expected value, the mean over many tables. The numbers of the notes are independent, with
# mean 0 and variance 1. So $E\,a^2 = E\,b^2 = 1$ and $E\,ab = 0$. It follows that $E\,az = p$ and
# $E\,z^2 = p^2 + r^2$. The mean squared error of the estimate is
#
# $$\begin{aligned}
# E\,(a - m z)^2 &= E\,a^2 - 2m\,E\,az + m^2\,E\,z^2 \\
# &= 1 - 2 m p + m^2 (p^2 + r^2)
# \end{aligned}$$

# %% [markdown]
# **Question.** For which $m$ is this error smallest?
#
# <details><summary>Answer</summary>
# The derivative with respect to $m$ is $-2p + 2m (p^2 + r^2)$. It is 0 for $m = p / (p^2 + r^2)$.
# </details>
#
# We insert this factor and do the same for $b$, whose best factor is $r / (p^2 + r^2)$:
#
# $$\begin{aligned}
# \mathrm{error\ of}\  a &= 1 - \frac{p^2}{p^2 + r^2} = \frac{r^2}{p^2 + r^2} \\
# \mathrm{error\ of}\  b &= 1 - \frac{r^2}{p^2 + r^2} = \frac{p^2}{p^2 + r^2}
# \end{aligned}$$
#
# **The two errors add up to 1, for every p.** If both estimates were simply 0, the errors would add up to 2.
# So one average delivers half of the wanted information. It can be one whole note ($p = 1$ or $p = 0$), or a
# part of each. Weights on other people do not help, because they only add noise to $z$.
#
# The cell measures the errors. It finds the best linear estimates with least squares.

# %%
left, right = wanted[..., :6].reshape(-1, 6), wanted[..., 6:].reshape(-1, 6)  # (B·T, 6)
measured = {}
for p in (1, 0.75, 0.5, 0.25, 0):
    z = p * left + (1 - p) * right  # (B·T, 6)
    errors = []
    for target in (left, right):
        best = np.linalg.lstsq(z, target, rcond=None)[0]  # (6, 6)
        errors.append(((z @ best - target) ** 2).mean() / (target**2).mean())
    print(f"p {p:4}   error left {errors[0]:.3f}, right {errors[1]:.3f}, sum {sum(errors):.3f}")
    measured[p] = errors

# %% tags=["check"]
for p, errors in measured.items():
    assert_allclose(errors, np.array([(1 - p) ** 2, p**2]) / (p**2 + (1 - p) ** 2), atol=0.005)

# %% [markdown]
# ## The passage in the paper
#
# Section 3.2.2 of *Attention Is All You Need* describes this in two sentences:
#
# > Multi-head attention allows the model to jointly attend to information from different representation
# > subspaces at different positions. With a single attention head, averaging inhibits this.
#
# **Multi-head attention** runs $h$ heads in parallel. It concatenates their outputs and multiplies the result
# by a matrix $W^O$:
#
# $$\begin{aligned}
# \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\, W^O \\
# \mathrm{head}_i &= \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)
# \end{aligned}$$
#
# The paper uses $h = 8$ heads with $d_k = d_v = d_{\mathrm{model}} / h = 64$. So the heads together are as
# wide as the model. In **self-attention**, $Q$, $K$ and $V$ are the same array $x$.

# %% [markdown]
# The next cell writes this formula with loops over the sentences, the tokens and the heads. It is slow, but
# every step can be read. We will compare the faster versions with it.

# %%


def slow_heads(x, w_q, w_k, w_v, w_o):
    """Multi-head attention with loops. w_q, w_k, w_v (H, D, K), w_o (H·K, D)."""
    y = np.zeros(x.shape)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            concat = []
            for h in range(len(w_q)):
                q = x[b, t] @ w_q[h]  # (K,) the query of token t in this head
                k, v = x[b] @ w_k[h], x[b] @ w_v[h]  # (T, K) each
                e = np.exp(k @ q / math.sqrt(len(q)))  # (T,)
                concat.append(e / e.sum() @ v)  # (K,)
            y[b, t] = np.concatenate(concat) @ w_o  # (H·K,) @ (H·K, D)
    return y


# %% [markdown]
# Two heads can solve the example exactly. We choose their weights by hand. Each head is six entries wide.
#
# - The query of head #0 asks for the seat to the left, and the query of head #1 for the seat to the right.
# - The key of a person is the person's seat.
# - The value of a person is the person's note.
#
# The two heads deliver the left and the right note side by side. This is what we want, so $W^O$ is the
# identity matrix. The factor `sharp` makes the score of the right seat 40. All other scores are 0, so almost
# all of the weight goes to one person.

# %%
note, seat = slice(0, 6), slice(6, 12)  # the rows of a weight matrix that read note and seat
w_q, w_k, w_v = np.zeros((3, 2, 12, 6))  # each (H, D, K)
sharp = 40 * math.sqrt(6)  # attention divides the scores by √6
w_q[0, seat] = sharp * np.roll(np.eye(6), 1, axis=0)  # seat t -> seat t − 1
w_q[1, seat] = sharp * np.roll(np.eye(6), -1, axis=0)  # seat t -> seat t + 1
w_k[:, seat] = np.eye(6)
w_v[:, note] = np.eye(6)

y = slow_heads(x[:3], w_q, w_k, w_v, np.eye(12))
print("largest error of two heads:", abs(y - wanted[:3]).max())

# %% tags=["check"]
assert_allclose(y, wanted[:3], atol=1e-12)

# %% [markdown]
# Nothing is lost. Each head has a softmax of its own, and each softmax attends to one person.
#
# **Question.** The paper divides the width by the number of heads, so each head is narrow. Why are narrow
# heads sufficient in our example?
#
# <details><summary>Answer</summary>
# A head needs to carry one note, which has six numbers. With D = 12 and two heads, each head is six entries
# wide. So each note fits into one head.
# </details>
#
# *This is a good place for a break. The next part computes all heads with a few array operations.*

# %% [markdown]
# ## All heads in one product
#
# The loop over heads is slow in NumPy. We can replace it with array operations. First, all queries can come
# from a single product, because a product with matrices side by side gives the products side by side:
#
# $$x\,[\,W_0 \mid W_1 \mid \ldots\,] = [\,x W_0 \mid x W_1 \mid \ldots\,]$$
#
# So the H matrices of shape (D, K) are stored as one matrix of shape (D, H·K). The whole calculation, with
# its shapes, is this:
#
# ```text
# x (B, T, D) ─┬─ × W^Q ─→ (B, T, H·K) ─ split ─→ q (B, H, T, K) ─┐
#              ├─ × W^K ─→ (B, T, H·K) ─ split ─→ k (B, H, T, K) ─┼─→ attention
#              └─ × W^V ─→ (B, T, H·K) ─ split ─→ v (B, H, T, K) ─┘       │
#                                                                         ↓
# y (B, T, D) ←─ × W^O ──── concat (B, T, H·K) ←──────── merge ──── z (B, H, T, K)
# ```

# %% [markdown]
# From here on the weights are random. Zeros and identity matrices can hide mistakes.

# %%
x = tables(2)[0]  # (B, T, D)
w_q, w_k, w_v = rng.standard_normal((3, 2, 12, 6)) / math.sqrt(12)  # each (H, D, K)
w_o = rng.standard_normal((12, 12)) / math.sqrt(12)  # (H·K, D)
y_slow = slow_heads(x, w_q, w_k, w_v, w_o)

wide_q, wide_k, wide_v = (np.concatenate(list(w), -1) for w in (w_q, w_k, w_v))  # each (D, H·K)
q = x @ wide_q  # (B, T, H·K)
print(x.shape, "@", wide_q.shape, "->", q.shape)

# %% tags=["check"]
assert_allclose(q[..., 6:], x @ w_q[1], rtol=1e-12)  # head #1 has the second half of the columns

# %% [markdown]
# Now attention has to run in each head separately. The operator `@` multiplies the *last two* axes of an
# array. So every head needs a matrix (T, K) in the last two axes. Two operations produce it:
#
# 1. Reshape the last axis into two axes: (B, T, H·K) → (B, T, H, K).
# 2. Exchange the axes of tokens and heads: (B, T, H, K) → (B, H, T, K).
#
# We look at this for one sentence of four tokens, D = 6 and two heads. Its numbers tell where they come from:
# 23 is entry 3 of token 2.

# %%
coded = 10 * np.arange(1, 5)[:, None] + np.arange(6)  # (T, D), T 4, D 6
heads = coded.reshape(4, 2, 3).swapaxes(0, 1)  # (T, H, K) -> (H, T, K)

# %% tags=["check"]
assert (heads == split_heads(coded[None], 2)[0]).all()  # the package's, with a batch axis

# %% tags=["plot"]
ORANGE, GREEN, names = "#ffc999", "#99dead", [f"token {t}" for t in range(1, 5)]
parts = [
    Grid(coded[:, :3], "$x$", ORANGE, rows=names, numbers=True, decimals=0),
    Grid(coded[:, 3:], "", GREEN, numbers=True, decimals=0),
    "→",
    Grid(heads[0], "head #0", ORANGE, rows=names, numbers=True, decimals=0),
    Grid(heads[1], "head #1", GREEN, rows=names, numbers=True, decimals=0),
]
caption = "Reshape, then exchange two axes: a head has some columns of every token"
show_figure(cell_product(parts), "07_split", caption)

# %% [markdown]
# ## A reshape alone is wrong
#
# Why not reshape to (B, H, T, K) at once? The result has the correct shape, and no error is raised.
#
# **Question.** `reshape` never changes the order of the numbers in memory. Which numbers does head #0 get?
#
# <details><summary>Answer</summary>
# It gets the first half of all numbers. In our example these are all numbers of the tokens 1 and 2, and
# nothing of the tokens 3 and 4.
# </details>

# %%
wrong = coded.reshape(2, 4, 3)  # (H, T, K), directly from (T, D)
print(wrong[0])

# %% tags=["plot"]
parts = [
    Grid(coded, "$x$", "plain", rows=names, numbers=True, decimals=0),
    "→",
    Grid(wrong[0], "head #0", ORANGE, rows=names, numbers=True, decimals=0),
    Grid(wrong[1], "head #1", GREEN, rows=names, numbers=True, decimals=0),
]
caption = "Reshape alone: row 2 of head #0 is a part of token 1; tokens 3 and 4 are missing"
show_figure(cell_product(parts), "07_wrong_split", caption)

# %% [markdown]
# With the wrong split, a head contains *half of the sentence*. Every token in it is cut into two rows, and
# the head can never attend to the other half. Later in this lesson we train a model with this mistake.
#
# Here is the correct calculation. The heads are merged with the same two operations in reverse order: first
# exchange the axes, then reshape.

# %%
k, v = x @ wide_k, x @ wide_v  # (B, T, H·K)
z, attended = attention(*[split_heads(a, 2) for a in (q, k, v)])  # (B, H, T, K)
concat = z.swapaxes(1, 2).reshape(2, 6, 12)  # (B, T, H·K): exchange first, then reshape
y = concat @ w_o  # (B, T, D)
print("largest difference from the loops:", abs(y - y_slow).max())

# %% tags=["check"]
assert (concat == merge_heads(z)).all()
assert_allclose(y, y_slow, rtol=1e-9)

# %% [markdown]
# The package has the layer `MultiHeadAttention`. With our weights it gives the same output. Its cache
# contains the caches of the four linear layers and the cache of `attention`, which the cell shows. It is the
# cache of lesson 5 with more axes. `weights` has a matrix (T, T) for each table and each head.

# %%
layer = MultiHeadAttention(12, 2, bias=False, dtype=np.float64)
state = {"query": wide_q, "key": wide_k, "value": wide_v, "output": w_o}
layer.load_state_dict({f"{name}.weight": value for name, value in state.items()})
y_package, made = layer.forward(x)
cache = made.attention
show(cache)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)

# %% [markdown]
# (Lesson 16 also puts W^Q, W^K and W^V side by side and computes one product instead of three.)
#
# ## The other way of splitting
#
# Two of our documents split in different ways. *图解transformer* splits as above. *一步步解析Attention is All
# You Need!* cuts the columns into H pieces and stacks them on the batch axis. The result has the shape
# (H·B, T, K), and head #0 of every sentence comes first.
#
# This works because attention never mixes different sentences of a batch. So a head can be treated as one
# more sentence. But now the mask must be repeated for each head, in the same order: all sentences for head
# #0, then all sentences for head #1. The cell compares two NumPy functions for this.

# %%
mask = np.arange(6) < np.array([6, 4])[:, None, None]  # (B, 1, S): six people, and four
one, _ = attention(*[split_heads(a, 2) for a in (q, k, v)], mask[:, None])  # (B, H, T, K)

on_batch = [package.split_heads_on_batch(a, 2) for a in (q, k, v)]  # (H·B, T, K) each
differences = {}
for name, masks in {"tile": np.tile(mask, (2, 1, 1)), "repeat": np.repeat(mask, 2, 0)}.items():
    other, _ = attention(*on_batch, masks)
    differences[name] = abs(package.merge_heads_on_batch(other, 2) - merge_heads(one)).max()
    print(f"{name:6} differs by {differences[name]:.2f}")

# %% tags=["check"]
stacked = np.concatenate(np.split(q, 2, axis=-1), axis=0)  # (H·B, T, K)
assert (stacked == on_batch[0]).all()
assert (stacked.reshape(2, 2, 6, 6) == split_heads(q, 2).swapaxes(0, 1)).all()  # (H, B, T, K)
assert differences["tile"] < 1e-12
assert differences["repeat"] > 0.1

# %% [markdown]
# `np.tile` gives the order table 1, table 2, table 1, table 2, which is correct. `np.repeat` gives table 1,
# table 1, table 2, table 2. So it hands masks to the wrong sentences, and raises no error.
#
# ## The shapes of the document's example
#
# *图解transformer* runs its code on 64 sentences with a width of 300 and six heads. The queries come from
# texts of 12 tokens, the keys and values from texts of 10 tokens. When queries come from one text and keys
# and values from another, we speak of **cross-attention**. The formula is the same.
#
# The layer has four matrices of 300 × 300 and four biases, 4 · (300² + 300) parameters. And 300 cannot be
# divided by seven, so seven heads are refused.

# %%
wide = MultiHeadAttention(300, 6)
query, memory = rng.standard_normal((64, 12, 300)), rng.standard_normal((64, 10, 300))
out, seen = wide.forward(query.astype(np.float32), memory.astype(np.float32))
found = [seen.attention.q.shape, seen.attention.k.shape, seen.attention.weights.shape, out.shape]
print("q, k, weights, out:", *found)
print(f"{wide.count_parameters():,} parameters")
try:
    MultiHeadAttention(300, 7)
except UserError as error:
    print(error)

# %% tags=["check"]
assert found == [(64, 6, 12, 50), (64, 6, 10, 50), (64, 6, 12, 10), (64, 12, 300)]
assert wide.count_parameters() == 4 * (300**2 + 300) == 361_200

# %% [markdown]
# *This is a good place for a break. The next part explains W^O and derives the backward pass.*
#
# ## What W^O does
#
# The matrix $W^O$ is called the **output projection**. Row $t$ of the concatenation contains the outputs of
# the heads, one after the other. Column $c = hK + k$ is entry $k$ of head $h$. We can split the sum over all
# columns into one sum for each head:
#
# $$\begin{aligned}
# y_t &= \sum_c z_{tc}\, w_c \\
# &= \sum_h \sum_k z_{t,\,hK+k}\; w_{hK+k} \\
# &= \sum_h (Z_h W^O_h)_t
# \end{aligned}$$
#
# Here $w_c$ is row $c$ of $W^O$, and $W^O_h$ consists of the K rows of $W^O$ that belong to head $h$. So
# **the output is a sum over the heads**, and each head has its own K rows of $W^O$.
#
# Without $W^O$, head $h$ could only write into its own K columns of the output. With $W^O$, each head can
# write into all columns. The figure shows this for two tokens, four numbers and two heads.

# %%
small = MultiHeadAttention(4, 2, bias=False, dtype=np.float64, rng=rng)
y2, cache2 = small.forward(rng.standard_normal((1, 2, 4)))
z2, w2 = cache2.output.x[0], small.output.weight.value  # (T, H·K), (H·K, D)
print("sum over heads:\n", z2[:, :2] @ w2[:2] + z2[:, 2:] @ w2[2:])

# %% tags=["plot"]
parts = []
for h, colour in enumerate((ORANGE, GREEN)):
    own = slice(2 * h, 2 * h + 2)  # the columns of Z and the rows of W^O that belong to head h
    parts += ["+"] if h else []
    parts += [Grid(z2[:, own], f"$Z_{h}$", colour, numbers=True), "×"]
    parts += [Grid(w2[own], f"$W^O_{h}$", "weight", edge="z", numbers=True)]
parts += ["=", Grid(y2[0], "$y$", "z", rows=["Thinking", "Machines"], numbers=True)]
caption = "The output is a sum over heads, and each head has its own rows of W^O"
show_figure(cell_product(parts), "07_sum", caption)

# %% tags=["check"]
assert_allclose(z2[:, :2] @ w2[:2] + z2[:, 2:] @ w2[2:], y2[0], rtol=1e-12)
assert_allclose(sum(z[:, h] @ w_o[6 * h : 6 * h + 6] for h in range(2)), y, rtol=1e-9)

# %% [markdown]
# This view shows what one head computes. We insert $q = x W^Q_h$, $k = x W^K_h$ and $v = x W^V_h$ into the
# formulas, with $x_t$ as a row vector:
#
# $$\begin{aligned}
# \mathrm{score}_{ts} &= \frac{1}{\sqrt{K}}\; x_t\, (W_h^Q {W_h^K}^\top)\, x_s^\top \\
# y_t &= \sum_h \sum_s p_{ts}\, x_s\, (W_h^V W^O_h)
# \end{aligned}$$
#
# So a head is described by two matrices of shape (D, D). The first one, $W_h^Q {W_h^K}^\top$, decides which
# tokens the head attends to. It is the "general" similarity of lesson 4. The second one, $W_h^V W^O_h$,
# decides what the head writes into the output. Both are products of a (D, K) matrix and a (K, D) matrix, so
# their rank is at most K.
#
# With the sizes of the paper, eight heads are eight similarities of rank 64, instead of one of rank 512. Note
# that every head reads **all** entries of $x$. The vectors $q$, $k$ and $v$ are split, and $x$ is not.

# %%
similarity, written = w_q[1] @ w_k[1].T, w_v[1] @ w_o[6:]  # (D, D) each, of head #1
print("12 × 12 matrices of rank", *np.linalg.matrix_rank([similarity, written]))

# %% tags=["check"]
scores = x @ similarity @ x.swapaxes(-1, -2) / math.sqrt(6)  # (B, T, S)
assert_allclose(scores, attended.scores[:, 1], rtol=1e-9)
assert_allclose(attended.weights[:, 1] @ x @ written, z[:, 1] @ w_o[6:], rtol=1e-9)

# %% [markdown]
# ## Backward
#
# The backward pass begins with $dy$, of shape (B, T, D). It takes the forward pass in reverse order:
#
# ```text
# dy (B, T, D) ─ W^O ─→ dconcat (B, T, H·K) ─ split ─→ dz (B, H, T, K) ─ attention ─→ dq, dk, dv
# dq, dk, dv (B, H, T, K) ─ merge ─→ (B, T, H·K) ─ W^Q, W^K, W^V, then add ─→ dx (B, T, D)
# ```
#
# **First, y = concat W^O.** This is a linear layer, as in lesson 0. The rows of all sentences count as rows
# of one large matrix:
#
# $$\begin{aligned}
# d\mathrm{concat} &= dy\; {W^O}^\top \\
# dW^O &= \mathrm{concat}^\top\, dy
# \end{aligned}$$
#
# **Second, the merge.** It copies number $k$ of head $h$ to column $hK + k$ of the same token. It computes
# nothing. So each gradient goes back to the place from which its number came:
#
# $$\begin{aligned}
# \mathrm{concat}[b, t, hK + k] &= z[b, h, t, k] \\
# dz[b, h, t, k] &= d\mathrm{concat}[b, t, hK + k]
# \end{aligned}$$

# %% [markdown]
# The second of these lines is exactly the definition of the split. **The backward pass of the merge is the
# split, and the backward pass of the split is the merge.** There is a general reason. Both operations only
# change the order of the numbers, so each is a permutation matrix $P$. The backward pass multiplies by the
# transposed matrix, and for a permutation $P^\top = P^{-1}$.

# %%


def flat(a):
    """(B, T, N) -> (B·T, N): the rows of all sentences as one matrix."""
    return a.reshape(-1, a.shape[-1])


dy = rng.standard_normal(y.shape)  # (B, T, D)
dw_o = flat(concat).T @ flat(dy)  # (H·K, D)
dconcat = dy @ w_o.T  # (B, T, H·K)

dz = np.zeros(z.shape)  # (B, H, T, K)
for b, h, t, i in np.ndindex(z.shape):
    dz[b, h, t, i] = dconcat[b, t, 6 * h + i]
print("dz is the split of dconcat:", (dz == split_heads(dconcat, 2)).all())

# %% tags=["check"]
assert (dz == split_heads(dconcat, 2)).all()

# %% [markdown]
# **Third, z = attention(q, k, v).** This is lesson 5, separately in each head. It gives $dq$, $dk$ and $dv$,
# each of shape (B, H, T, K). They are merged.
#
# **Fourth, the projections** $q = x W^Q$, $k = x W^K$ and $v = x W^V$. All three use the same $x$. When an
# array is used several times, its gradients add up (lesson 0):
#
# $$\begin{aligned}
# dW^Q &= x^\top dq, \quad dW^K = x^\top dk, \quad dW^V = x^\top dv \\
# dx &= dq\; {W^Q}^\top + dk\; {W^K}^\top + dv\; {W^V}^\top
# \end{aligned}$$
#
# Each term of $dx$ is itself a sum over the heads. For the first one this is
# $dq\; {W^Q}^\top = \sum_h dq_h\, {W_h^Q}^\top$. So $x$ receives 3 H gradients in total.

# %%
dq, dk, dv = attention_backward(dz, attended)  # each (B, H, T, K)
dx_slow = np.zeros(x.shape)
for h in range(2):
    dx_slow += dq[:, h] @ w_q[h].T + dk[:, h] @ w_k[h].T + dv[:, h] @ w_v[h].T

dq, dk, dv = merge_heads(dq), merge_heads(dk), merge_heads(dv)  # each (B, T, H·K)
dw_q, dw_k, dw_v = (flat(x).T @ flat(d) for d in (dq, dk, dv))  # each (D, H·K)
dx = dq @ wide_q.T + dk @ wide_k.T + dv @ wide_v.T  # (B, T, D)
print("largest difference from the package:", abs(dx - layer.backward(dy, made)).max())

# %% tags=["check"]
assert_allclose(dx, dx_slow, rtol=1e-9, atol=1e-12)
layer.zero_grad()
assert_allclose(dx, layer.backward(dy, made), rtol=1e-9, atol=1e-12)
grads = {"query.weight": dw_q, "key.weight": dw_k, "value.weight": dw_v, "output.weight": dw_o}
for name, parameter in layer.named_parameters():
    assert_allclose(parameter.grad, grads[name], rtol=1e-9, atol=1e-12)
    print(f"{name:14} {parameter.grad.shape}: our gradient and the package's agree")

# %% [markdown]
# In cross-attention, $q$ is computed from the decoder's $x$, and $k$ and $v$ from the output of the encoder,
# the **memory**. Then only two terms add up for the memory:
# $d\mathrm{memory} = dk\; {W^K}^\top + dv\; {W^V}^\top$. The function `backward` of the package returns one
# gradient for each array that `forward` was given.
#
# ## Is it right?
#
# We check self-attention, and then cross-attention with three queries and four keys. In the report of
# cross-attention, `query` is $x$ and `key` is the memory. By default the layers of the package have biases.
# The check gives them random values.

# %%
own, memory = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 4, 6))
biased = MultiHeadAttention(6, 2, dtype=np.float64)
print("self-attention:", gradcheck(biased, own).ok)
report = gradcheck(biased, own, memory)
print(report)

# %% tags=["check"]
assert gradcheck(biased, own).ok
assert report.ok

# %% [markdown]
# *This is a good place for a break. The last part trains models with the correct and the wrong split.*
#
# ## Does the gradient check find the wrong split?
#
# The function `heads_pair` contains multi-head attention once more, forward and backward, in the form of this
# lesson. The split and the merge are arguments, so that we can exchange them. `w` contains the four matrices.

# %%


def heads_pair(split, merge, n_heads):
    """Multi-head attention and its backward; w (4, D, D): query, key, value, output."""

    def forward(x, w):
        z, attended = attention(*[split(x @ w[i], n_heads) for i in range(3)])
        concat = merge(z)  # (B, T, H·K)
        return concat @ w[3], (x, w, attended, concat)

    def backward(dy, cache):
        x, w, attended, concat = cache
        dqkv = [merge(d) for d in attention_backward(split(dy @ w[3].T, n_heads), attended)]
        dw = np.stack([*[flat(x).T @ flat(d) for d in dqkv], flat(concat).T @ flat(dy)])
        return sum(d @ w[i].T for i, d in enumerate(dqkv)), dw

    return forward, backward


# %%
def reshape_only(a, n_heads):
    """The wrong split: (B, T, H·K) -> (B, H, T, K) without an exchange of axes."""
    return a.reshape(a.shape[0], n_heads, a.shape[1], -1)


def undo_reshape(a):
    """The inverse of reshape_only."""
    return a.reshape(a.shape[0], a.shape[2], -1)


pairs = {
    "one head": heads_pair(split_heads, merge_heads, 1),
    "two heads": heads_pair(split_heads, merge_heads, 2),
    "wrong split": heads_pair(reshape_only, undo_reshape, 2),
}
w = np.stack([wide_q, wide_k, wide_v, w_o])  # (4, D, D)
for name, pair in pairs.items():
    print(f"{name:12} gradients {'right' if gradcheck(pair, x, w).ok else 'WRONG'}")

# %% tags=["check"]
assert_allclose(pairs["two heads"][0](x, w)[0], y, rtol=1e-9)
assert all(gradcheck(pair, x, w).ok for pair in pairs.values())

# %% [markdown]
# **The wrong split passes the gradient check.** Its backward pass is the correct gradient of its forward
# pass. The forward pass is the wrong function, and the gradient check does not test this.
#
# **Question.** Which test can find the wrong split?
#
# <details><summary>Answer</summary>
# A test of the forward pass: every output of self-attention must depend on every token. So we can change one
# token and see which outputs change, as in the leak test of lesson 6.
# </details>
#
# We change the note of Fay, who sits in the last seat. With correct heads, the output of every person
# changes.

# %%
changed = x.copy()
changed[:, 5, note] += 1  # Fay's note
affected = {}
for name, (forward, _) in pairs.items():
    affected[name] = (forward(changed, w)[0] != forward(x, w)[0]).any((0, 2))  # (T,)
    print(f"{name:12}", *[who for who, hit in zip(people, affected[name], strict=True) if hit])

# %% tags=["check"]
for name, hit in affected.items():
    assert hit.all() == (name != "wrong split")
assert not affected["wrong split"][:3].any()

# %% [markdown]
# With the wrong split, the outputs of Ann, Ben and Cem do not change by a single bit. Head #0 contains only
# these three, and head #1 only the other three.
#
# Now we train all three variants on the task of the table, from the same initial weights and with the same
# data. The optimizer is gradient descent with momentum. Lesson 13 explains it, and better ones.

# %%
rng = np.random.default_rng(7)  # again, so that your experiments do not change the data
w_first = rng.standard_normal((4, 12, 12)) / math.sqrt(12)
batches = [tables(64) for _ in range(300)]
losses, trained = np.zeros((3, 300)), {}
for row, (name, (forward, backward)) in zip(losses, pairs.items(), strict=True):
    w, velocity = w_first.copy(), np.zeros_like(w_first)
    for step, (given, target) in enumerate(batches):
        output, made = forward(given, w)
        row[step] = ((output - target) ** 2).mean()
        velocity = 0.9 * velocity + backward(2 * (output - target) / target.size, made)[1]
        w = w - 2.0 * velocity
    trained[name] = w
    print(f"{name:12} first {row[0]:.3f}   mean of the last ten {row[-10:].mean():.4f}")

# %% tags=["plot"]
figure = curves(losses, labels=list(pairs), ylabel="mean squared error", yscale="log")
caption = "One head stays at 1/2, as derived; the wrong split learns, but stays above 1/3"
show_figure(figure, "07_losses", caption)

# %% [markdown]
# - **One head** stays at 1/2, as derived: two errors that add up to 1 have the mean 1/2. (The weights of a
#   trained head could also depend on the notes. This brings no gain.)
# - **Two heads** approach 0.
# - **The wrong split** also learns, and it ends with a lower loss than one correct head.
#
# For the wrong split we can compute a bound. There are 12 wanted notes, two for each person. A head that
# contains only Ann, Ben and Cem can deliver four of them: Ann's right note, both notes of Ben, and Cem's left
# note. The other head can deliver four too. The remaining 4 of 12 notes are impossible, so the loss is at
# least 4/12 = 1/3. The curve alone does not reveal the mistake.
#
# What did the two correct heads learn? We print, for each person of a new table, the seat with the largest
# weight.

# %%
_, (_, _, attended, _) = pairs["two heads"][0](tables(1)[0], trained["two heads"])
most = attended.weights[0].argmax(-1)  # (H, T) the seat with the largest weight
for h, seats in enumerate(most):
    print(f"head #{h}:", *[f"{a} → {people[s]}," for a, s in zip(people, seats, strict=True)])

# %% tags=["plot"]
figure = attention_grid(attended.weights, people, people)  # (1, H, T, T)
show_figure(figure, "07_heads", "After training: one head attends to the left, one to the right")

# %% tags=["check"]
assert 0.48 < losses[0, -10:].mean() < 0.53
assert losses[1, -10:].mean() < 2e-4
assert 1 / 3 < losses[2, -10:].mean() < 0.37
offsets = (most - np.arange(6)) % 6  # 5 is the seat to the left
assert sorted(map(tuple, offsets)) == [(1,) * 6, (5,) * 6]
assert attended.weights.max(-1).min() > 0.95

# %% [markdown]
# Training found the solution that we constructed by hand: one head for the left neighbour, and one for the
# right neighbour.
#
# ## What several heads cost
#
# The paper says:
#
# > Due to the reduced dimension of each head, the total computational cost is similar to that of single-head
# > attention with full dimensionality.
#
# We count the multiplications for T tokens. The four projections need $4\,T D^2$, for any number of
# heads, because H·K = D. For each pair of tokens and each head, the score and the sum of values need K
# multiplications each. Together these are $2\,T^2 H K = 2\,T^2 D$, which does not depend on the number of
# heads either. Only the number of attention weights, $H\,T^2$, grows with it.

# %% [markdown]
# Rows (A) of the paper's table 3 compare different numbers of heads, with a d_model of 512. The cell counts
# for a text of 64 tokens. It also prints the paper's BLEU scores, where higher is better.

# %%
text = rng.standard_normal((1, 64, 512)).astype(np.float32)  # (B, T, D)
print("heads width parameters multiplications attention weights BLEU")
for n_heads, bleu in {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}.items():
    base = MultiHeadAttention(512, n_heads, bias=False)
    seen, width = base.forward(text)[1].attention, 512 // n_heads
    assert seen.q.shape == (1, n_heads, 64, width)
    products = 4 * 64 * 512**2 + 2 * seen.weights.size * width  # projections; scores and sums
    size = base.count_parameters()
    assert (size, products) == (1_048_576, 71_303_168)
    print(f"{n_heads:5} {width:5} {size:10,} {products:15,} {seen.weights.size:17,} {bleu:4}")

# %% [markdown]
# One head is .9 BLEU below the best result. The paper adds that "quality also drops off with too many heads",
# but does not explain why. With 32 heads, each similarity has only rank 16.
#
# ## What several heads do not do
#
# *The components of the Transformer* motivates heads in another way. Two sentences with the same tokens in
# another order would get the same scores. This is true, but several heads do not change it. If the rows of
# $x$ are permuted, the rows of $y$ are permuted in the same way. Information about the order must be part of
# $x$. In our example it is the seat, and in a model it is the position encoding of lesson 3.
#
# The cell tests this. It also tests that one head without $W^O$ is the attention of lesson 5.

# %%
order = rng.permutation(6)
permuted, _ = layer.forward(x[:, order])
alone = MultiHeadAttention(12, 1, output=False, bias=False, dtype=np.float64)
plain, _ = attention(*[x @ p.value for p in alone.parameters()])
print("permuted tokens, difference:", abs(permuted - layer.forward(x)[0][:, order]).max())
print("one head without W^O, difference:", abs(alone.forward(x)[0] - plain).max())

# %% tags=["check"]
assert_allclose(permuted, layer.forward(x)[0][:, order], rtol=1e-9)
assert_allclose(alone.forward(x)[0], plain, rtol=1e-12)

# %% [markdown]
# **Your turn.** In the terminal, print the weights with `s attended.weights`. Then check three heads with
# `!print(gradcheck(MultiHeadAttention(6, 3), own))`.

# %% [markdown]
# ## What the documents say
#
# > - *一步步解析Attention is All You Need!* shows W^O in its figure, but not in its code. In npformer this
# >   is `output=False`. It applies a ReLU to q, k and v (`activation="relu"`), stacks the heads on the batch
# >   axis, and tiles its masks to match.
# > - *图解transformer* reshapes and exchanges the axes, checks that the width can be divided, and has biases.
# >   Its comments say "Query vector" of all three arrays; those of 64 × 10 × 300 are keys and values.
# > - *Attention机制详解（二）* quotes code for a single head, as it says. The last `dense` of this code is
# >   W^O.
# > - *The components of the Transformer* says that the vectors of the tokens are cut into chunks, one for
# >   each head. In fact q, k and v are cut, in its code too. Every head reads all of x.

# %% [markdown]
# ## Summary
#
# - One head computes one average, so it cannot deliver two pieces of information unmixed.
# - Multi-head attention runs H heads of width K = D / H in parallel; each has its own softmax.
# - Splitting is a reshape and an exchange of axes; a reshape alone is wrong and passes the gradient check.
# - The product with W^O is a sum over heads, and each head has its own K rows of W^O.
# - Backward, split and merge exchange their roles, and x receives the sum of three gradients.

# %% [markdown]
# ## Questions
#
# **Question.** Eight heads and one head with the same D have the same number of parameters. What is
# different?
#
# <details><summary>Answer</summary>
# Eight heads have eight softmax functions, so each token can attend to eight different tokens. In exchange,
# each similarity has rank D/8 at most.
# </details>
#
# **Question.** Why is the backward pass of `merge_heads` not a sum?
#
# <details><summary>Answer</summary>
# Every number of z goes to exactly one place. So it gets its gradient from exactly one place.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 7` lists them. They are graded by their values or by the gradient
# checker.
#
# - `npformer exercise start split-heads`: one reshape and one exchange; it is also the backward of the merge.
# - `npformer exercise start merge-heads`: the inverse, with the two operations in the right order.
# - `npformer exercise start multi-head-backward`: four steps; x gets three gradients, a memory two.
# - By hand: each person at the table wants the notes of both neighbours *and* of the person opposite. Write
#   down w_q for three heads. What would the sum of the errors be with two heads? (At least 1 of 3.)
#
# **Next**, lesson 8: the residual connection round attention, and layer norm, which keeps its numbers at a
# moderate size.

# %% [markdown]
# # 7 · Heads
#
# *30 minutes to read, 3 seconds to run. Attention is that of lesson 5; who stands where is written into x, as
# in lesson 3.*
#
# **The question.** Attention hands each word one weighted mean of what all words hold. What if a word needs
# two things, and must not mix them? In "The animal didn't cross the street because it was too tired", *it*
# wants to know what it stands for and what is said of it. The paper looks several times, and each look is
# narrower. Why does one look not do? How is an array cut into heads and joined again? And what comes back to
# the x that all of them have read?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import MultiHeadAttention, UserError, show
from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.functional.heads import (
    merge_heads,
    merge_heads_on_batch,
    split_heads,
    split_heads_on_batch,
)
from npformer.learn.course import show_figure
from npformer.plots import Grid, attention_grid, cell_product, curves

rng = np.random.default_rng(7)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## Six people round a table
#
# A case so small that it can be solved on paper. Each of six people holds a **note**, six random numbers, and
# knows his or her **seat**. Each wants two notes: the left neighbour's and the right neighbour's, side by
# side, not mixed. The people are the words of a sentence; x is note and seat.

# %%
people = ["Ann", "Ben", "Cem", "Dot", "Eve", "Fay"]


def tables(n):
    """n tables: what each person has, x (B, T, D), and wants, (B, T, D); T is 6, D 12."""
    notes = rng.standard_normal((n, 6, 6))  # (B, T, 6)
    seats = np.broadcast_to(np.eye(6), (n, 6, 6))  # (B, T, 6) a 1 at one's own seat
    left, right = np.roll(notes, 1, axis=1), np.roll(notes, -1, axis=1)  # Fay sits next to Ann
    return np.concatenate([notes, seats], -1), np.concatenate([left, right], -1)


x, wanted = tables(4000)
print("x", x.shape, "  wanted", wanted.shape)
print("Ben holds", x[0, 1, :2], "…   Cem wants from the left", wanted[0, 2, :2], "…")

# %% [markdown]
# ## One softmax has one average
#
# Take one head that finds the neighbours by their seats. It gives the left one weight p and the right one
# r = 1 − p. Of a number a in the left note and its fellow b in the right one, this arrives:
#
# ```math
# z = p a + r b
# ```
#
# W^V before and W^O after it are linear, and the numbers of a note are independent, with mean 0 and
# variance 1: E a² = E b² = 1, E ab = 0. So only z says anything of a, and the best guess is a multiple m z:
#
# ```math
# E (a − m z)²  =  1 − 2 m p + m² (p² + r²)
#               =  r² / (p² + r²)                at the best m, which is p / (p² + r²)
# E (b − m z)²  =  p² / (p² + r²)                likewise, at m = r / (p² + r²)
# ```
#
# **The two errors add up to 1, for every p.** Guessing 0 for both would cost 2. So one average brings half of
# what is wanted: one note whole (p = 1 or 0), or bits of both. Weight on other people only adds noise to z.
# Measured, with the best matrix from z to all twelve numbers:

# %%
left, right = wanted[..., :6].reshape(-1, 6), wanted[..., 6:].reshape(-1, 6)  # (B·T, 6)
for p in (1, 0.75, 0.5, 0.25, 0):
    z = p * left + (1 - p) * right  # (B·T, 6)
    errors = []
    for aim in (left, right):
        best = np.linalg.lstsq(z, aim, rcond=None)[0]  # (6, 6)
        errors.append(((z @ best - aim) ** 2).mean() / (aim**2).mean())  # 1 is guessing 0
    print(f"p {p:4}   error left {errors[0]:.3f}, right {errors[1]:.3f}, sum {sum(errors):.3f}")
    assert_allclose(errors, np.array([(1 - p) ** 2, p**2]) / (p**2 + (1 - p) ** 2), atol=0.005)

# %% [markdown]
# ## The passage
#
# Section 3.2.2 of the paper says it in two sentences:
#
# > Multi-head attention allows the model to jointly attend to information from different representation
# > subspaces at different positions. With a single attention head, averaging inhibits this.
#
# ```math
# MultiHead(Q, K, V) = Concat(head₁, …, headₕ) W^O
# headᵢ              = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V)
# ```
#
# For h = 8 heads it takes dₖ = dᵥ = d_model / h = 64. In **self-attention**, Q, K and V are one array, x.
# Here is the formula with every loop written out, but for the products of vectors:

# %%


def slow_heads(x, w_q, w_k, w_v, w_o):
    """Sentence by sentence, word by word, head by head. w_q .. w_v (H, D, K), w_o (H·K, D)."""
    y = np.zeros(x.shape)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            concat = []
            for h in range(len(w_q)):
                q = x[b, t] @ w_q[h]  # (K,) what this head asks for word t
                k, v = x[b] @ w_k[h], x[b] @ w_v[h]  # (T, K) each
                e = np.exp(k @ q / math.sqrt(len(q)))  # (T,)
                concat.append(e / e.sum() @ v)  # (K,)
            y[b, t] = np.concatenate(concat) @ w_o  # (H·K,) @ (H·K, D)
    return y


# %% [markdown]
# Two heads, each six wide, solve the table by hand. Head #0 asks for the seat to the left, head #1 for the
# seat to the right; a key says where one sits; a value is one's note. The heads' outputs side by side *are*
# what is wanted, so W^O is the identity.

# %%
note, seat = slice(0, 6), slice(6, 12)  # the rows of a weight that read them
w_q, w_k, w_v = np.zeros((3, 2, 12, 6))  # each (H, D, K)
sharp = 40 * math.sqrt(6)  # the right score is 40, all others are 0
w_q[0, seat] = sharp * np.roll(np.eye(6), 1, axis=0)  # seat t -> seat t − 1
w_q[1, seat] = sharp * np.roll(np.eye(6), -1, axis=0)  # seat t -> seat t + 1
w_k[:, seat] = np.eye(6)
w_v[:, note] = np.eye(6)

y = slow_heads(x[:3], w_q, w_k, w_v, np.eye(12))
print("largest error of two heads:", abs(y - wanted[:3]).max())
assert_allclose(y, wanted[:3], atol=1e-12)

# %% [markdown]
# Nothing is lost: each head has a softmax of its own, and each softmax looks at one person.
#
# ## All heads in one product
#
# A product with matrices side by side is the products side by side:
#
# ```math
# x [W₀ | W₁ | … ]  =  [x W₀ | x W₁ | … ]
# ```
#
# So the H matrices (D, K) are kept as one (D, H·K), and one product makes the queries of all heads. The
# weights are random from here on: zeros and the identity hide mistakes.

# %%
x = tables(2)[0]  # (B, T, D)
w_q, w_k, w_v = rng.standard_normal((3, 2, 12, 6)) / math.sqrt(12)  # each (H, D, K)
w_o = rng.standard_normal((12, 12)) / math.sqrt(12)  # (H·K, D)
y_slow = slow_heads(x, w_q, w_k, w_v, w_o)

wide_q, wide_k, wide_v = (np.concatenate(list(w), -1) for w in (w_q, w_k, w_v))  # each (D, H·K)
q = x @ wide_q  # (B, T, H·K)
assert_allclose(q[..., 6:], x @ w_q[1], rtol=1e-12)  # head #1 has the second half of the columns
print(x.shape, "@", wide_q.shape, "->", q.shape)

# %% [markdown]
# Now each head needs a matrix of its own as the *last two* axes, since `@` multiplies those. Two moves:
# cut the last axis, (B, T, H·K) → (B, T, H, K), and exchange the axes of words and heads → (B, H, T, K).
# Seen on a sentence of four words whose numbers tell where they come from: 23 is word 2, number 3.

# %%
coded = 10 * np.arange(1, 5)[:, None] + np.arange(6)  # (T, D), T 4, D 6
heads = coded.reshape(4, 2, 3).swapaxes(0, 1)  # (T, H, K) -> (H, T, K)
assert (heads == split_heads(coded[None], 2)[0]).all()  # the package's, with a batch axis

ORANGE, GREEN, names = "#ffc999", "#99dead", [f"word {t}" for t in range(1, 5)]
parts = [
    Grid(coded[:, :3], "$x$", ORANGE, rows=names, numbers=True, decimals=0),
    Grid(coded[:, 3:], "", GREEN, numbers=True, decimals=0),
    "→",
    Grid(heads[0], "head #0", ORANGE, rows=names, numbers=True, decimals=0),
    Grid(heads[1], "head #1", GREEN, rows=names, numbers=True, decimals=0),
]
caption = "Cut and exchange: a head has some columns of every word"
show_figure(cell_product(parts), "07_split", caption)

# %% [markdown]
# ## The other way of splitting
#
# *图解transformer* splits as above. *一步步解析Attention is All You Need!* cuts the columns into H pieces and
# stacks them on the batch axis: (H·B, T, K), head #0 of every sentence first. Attention never looks across
# the batch, so heads may as well be sentences. The same numbers, in another order of axes:

# %%
stacked = np.concatenate(np.split(q, 2, axis=-1), axis=0)  # (H·B, T, K)
assert (stacked == split_heads_on_batch(q, 2)).all()
assert (stacked.reshape(2, 2, 6, 6) == split_heads(q, 2).swapaxes(0, 1)).all()  # (H, B, T, K)

k, v = x @ wide_k, x @ wide_v  # (B, T, H·K)
mask = np.arange(6) < np.array([6, 4])[:, None, None]  # (B, 1, S): six people, and four
one, _ = attention(*[split_heads(a, 2) for a in (q, k, v)], mask[:, None])  # (B, H, T, K)
on_batch = [split_heads_on_batch(a, 2) for a in (q, k, v)]  # (H·B, T, K) each
other, _ = attention(*on_batch, np.tile(mask, (2, 1, 1)))  # head #0 of all tables, then head #1
assert_allclose(merge_heads_on_batch(other, 2), merge_heads(one), rtol=1e-12)

other, _ = attention(*on_batch, np.repeat(mask, 2, axis=0))  # wrong: table 1 twice, then 2
off = abs(merge_heads_on_batch(other, 2) - merge_heads(one)).max()
print(f"tile agrees; repeat is off by {off:.2f}")
assert off > 0.1

# %% [markdown]
# The mask must be stacked in the same order: `tile`, as the document does, and not `repeat`, which hands
# masks to the wrong sentences and raises no error.
#
# ## A reshape that runs
#
# Why not reshape to (B, H, T, K) at once? It has the right shape. But reshape never moves a number; it
# only puts the brackets elsewhere:

# %%
wrong = coded.reshape(2, 4, 3)  # (H, T, K), straight from (T, D)
parts = [
    Grid(coded, "$x$", "plain", rows=names, numbers=True, decimals=0),
    "→",
    Grid(wrong[0], "head #0", ORANGE, rows=names, numbers=True, decimals=0),
    Grid(wrong[1], "head #1", GREEN, rows=names, numbers=True, decimals=0),
]
caption = "Reshape alone: in head #0, “word 2” is the rest of word 1; words 3 and 4 are missing"
show_figure(cell_product(parts), "07_wrong_split", caption)

# %% [markdown]
# A head now holds *half of the sentence*, every word of it cut in two, and can never look at the other half.
# Further down, this mistake is trained. First, the way it should be.

# %%
z, attended = attention(*[split_heads(a, 2) for a in (q, k, v)])  # (B, H, T, K)
concat = z.swapaxes(1, 2).reshape(2, 6, 12)  # (B, T, H·K): exchange first, then join
assert (concat == merge_heads(z)).all()
y = concat @ w_o  # (B, T, D)
assert_allclose(y, y_slow, rtol=1e-9)

layer = MultiHeadAttention(12, 2, bias=False, dtype=np.float64)
state = {"query": wide_q, "key": wide_k, "value": wide_v, "output": w_o}
layer.load_state_dict({f"{name}.weight": value for name, value in state.items()})
y_package, made = layer.forward(x)
assert_allclose(y, y_package, rtol=1e-12)
print("largest difference from the slow version:", abs(y_package - y_slow).max())

# %% [markdown]
# The layer's cache holds those of its four linear maps and, between them, that of lesson 5 with one axis
# more: `weights` has a (T, T) matrix for each table and each head. (Lesson 16 lays W^Q, W^K and W^V side by
# side as well, and makes one product of three.)

# %%
cache = made.attention
show(cache)

# %% [markdown]
# ## The shapes of the document
#
# *图解transformer* runs its code on 64 sentences, queries of 12 words, keys and values of 10, width 300, six
# heads. Where q comes from one text and k and v from another, it is **cross-attention**; the formula is the
# same. Parameters, with biases: 4 · (300² + 300). And 300 cannot be cut into seven.

# %%
wide = MultiHeadAttention(300, 6)
query, memory = rng.standard_normal((64, 12, 300)), rng.standard_normal((64, 10, 300))
out, seen = wide.forward(query.astype(np.float32), memory.astype(np.float32))
found = [seen.attention.q.shape, seen.attention.k.shape, seen.attention.weights.shape, out.shape]
assert found == [(64, 6, 12, 50), (64, 6, 10, 50), (64, 6, 12, 10), (64, 12, 300)]
print("q, k, weights, out:", *found)
print(f"{wide.count_parameters():,} parameters")
assert wide.count_parameters() == 4 * (300**2 + 300) == 361_200
try:
    MultiHeadAttention(300, 7)
except UserError as error:
    print(error)

# %% [markdown]
# ## What W^O does
#
# Row t of the concatenation holds the heads' outputs one after the other, and so do the rows of W^O. Cut the
# sum over columns c = hK + k where one head ends and the next begins:
#
# ```math
# yₜ  =  Σ_c z_tc w_c  =  Σₕ Σₖ z_t,hK+k w_hK+k  =  Σₕ (Zₕ W^Oₕ)ₜ      w_c: row c of W^O
# ```
#
# **Concat and W^O is a sum over heads**, each through its own K rows of W^O. Without W^O, which the code of
# *一步步解析Attention is All You Need!* leaves out, head h writes into its own K columns of the output and
# nowhere else; with it, each head writes wherever it likes. Two words, four numbers, two heads:

# %%
small = MultiHeadAttention(4, 2, bias=False, dtype=np.float64, rng=rng)
y2, cache2 = small.forward(rng.standard_normal((1, 2, 4)))
z2, w2 = cache2.output.x[0], small.output.weight.value  # (T, H·K), (H·K, D)
parts = []
for h, colour in enumerate((ORANGE, GREEN)):
    own = slice(2 * h, 2 * h + 2)  # the columns of Z, and the rows of W^O, that are head h's
    parts += ["+"] if h else []
    parts += [Grid(z2[:, own], f"$Z_{h}$", colour, numbers=True), "×"]
    parts += [Grid(w2[own], f"$W^O_{h}$", "weight", edge="z", numbers=True)]
parts += ["=", Grid(y2[0], "$y$", "z", rows=["Thinking", "Machines"], numbers=True)]
assert_allclose(z2[:, :2] @ w2[:2] + z2[:, 2:] @ w2[2:], y2[0], rtol=1e-12)
assert_allclose(sum(z[:, h] @ w_o[6 * h : 6 * h + 6] for h in range(2)), y, rtol=1e-9)
caption = "The output is a sum over heads, each through its own rows of W^O"
show_figure(cell_product(parts), "07_sum", caption)

# %% [markdown]
# Seen so, a head is two D × D matrices that factor through K numbers:
#
# ```math
# scoreₜₛ = xₜ (Wₕ^Q Wₕ^Kᵀ) xₛᵀ / √K        what head h looks for:  rank K at most
# yₜ      = Σₕ Σₛ pₜₛ xₛ (Wₕ^V W^Oₕ)         what it then carries:   rank K at most
# ```
#
# The first is lesson 4's "general" similarity. So eight heads of 64 are eight similarities of rank 64 in
# place of one of rank 512. And every head reads **all** of x: what is cut are q, k and v, not the word.

# %%
looks_for, carries = w_q[1] @ w_k[1].T, w_v[1] @ w_o[6:]  # (D, D) each, of head #1
scores = x @ looks_for @ x.swapaxes(-1, -2) / math.sqrt(6)  # (B, T, S)
assert_allclose(scores, attended.scores[:, 1], rtol=1e-9)
assert_allclose(attended.weights[:, 1] @ x @ carries, z[:, 1] @ w_o[6:], rtol=1e-9)
print("12 × 12 matrices of rank", *np.linalg.matrix_rank([looks_for, carries]))

# %% [markdown]
# ## Backward
#
# dy arrives, (B, T, D). Backwards through four lines.
#
# **y = concat W^O** is lesson 0, with the rows of all sentences in one pile:
#
# ```math
# dconcat = dy W^Oᵀ          dW^O = concatᵀ dy
# ```
#
# **Merging** sends number k of head h to column hK + k of the same word; it copies and adds nothing. So each
# gradient comes back from the one place to which its number went:
#
# ```math
# concat[b, t, hK + k] = z[b, h, t, k]
# dz[b, h, t, k]       = dconcat[b, t, hK + k]          which is how split reads
# ```
#
# **The backward of merge is split, and of split, merge.** As a matrix, a permutation P has Pᵀ = P⁻¹, and
# backward is always the transposed matrix.

# %%


def flat(a):
    """(B, T, N) -> (B·T, N): every word a row, as in lesson 0."""
    return a.reshape(-1, a.shape[-1])


dy = rng.standard_normal(y.shape)  # (B, T, D)
dw_o = flat(concat).T @ flat(dy)  # (H·K, D)
dconcat = dy @ w_o.T  # (B, T, H·K)

dz = np.zeros(z.shape)  # (B, H, T, K)
for b, h, t, i in np.ndindex(z.shape):
    dz[b, h, t, i] = dconcat[b, t, 6 * h + i]
assert (dz == split_heads(dconcat, 2)).all()

# %% [markdown]
# **z = attention(q, k, v)** is lesson 5, each head by itself: dq, dk and dv, each (B, H, T, K), which are
# merged. Then **q = x W^Q, k = x W^K, v = x W^V**. All three read the same x, and what forward copies,
# backward adds up:
#
# ```math
# dW^Q = xᵀ dq        dW^K = xᵀ dk        dW^V = xᵀ dv
# dx   = dq W^Qᵀ + dk W^Kᵀ + dv W^Vᵀ
# ```
#
# Each term is itself a sum over heads: dq W^Qᵀ = Σₕ dqₕ Wₕ^Qᵀ. In all, x gets 3 H gradients.

# %%
dq, dk, dv = attention_backward(dz, attended)  # each (B, H, T, K)
dx_slow = np.zeros(x.shape)
for h in range(2):
    dx_slow += dq[:, h] @ w_q[h].T + dk[:, h] @ w_k[h].T + dv[:, h] @ w_v[h].T

dq, dk, dv = merge_heads(dq), merge_heads(dk), merge_heads(dv)  # each (B, T, H·K)
dw_q, dw_k, dw_v = (flat(x).T @ flat(d) for d in (dq, dk, dv))  # each (D, H·K)
dx = dq @ wide_q.T + dk @ wide_k.T + dv @ wide_v.T  # (B, T, D)
assert_allclose(dx, dx_slow, rtol=1e-9, atol=1e-12)

assert_allclose(dx, layer.backward(dy, made), rtol=1e-9, atol=1e-12)
grads = {"query.weight": dw_q, "key.weight": dw_k, "value.weight": dw_v, "output.weight": dw_o}
for name, parameter in layer.named_parameters():
    assert_allclose(parameter.grad, grads[name], rtol=1e-9, atol=1e-12)
    print(f"{name:14} {parameter.grad.shape}: ours and the package's agree")

# %% [markdown]
# In cross-attention q reads the decoder's x, and k and v the encoder's output, where two of the three add up:
# dmemory = dk W^Kᵀ + dv W^Vᵀ. `backward` returns one gradient for each array that was given.
#
# ## Is it right?
#
# Self-attention, silently, then cross-attention, with three queries and four keys: `query` is x, `key` the
# memory. The package has biases by default, and the check gives them random values.

# %%
own, memory = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 4, 6))
biased = MultiHeadAttention(6, 2, dtype=np.float64)
assert gradcheck(biased, own).ok
report = gradcheck(biased, own, memory)
print(report)
assert report.ok

# %% [markdown]
# And the wrong split? Here is this lesson once more as a pair, with the split to be chosen:

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


def cut_only(a, n_heads):
    """The wrong split: (B, T, H·K) -> (B, H, T, K) without exchanging axes."""
    return a.reshape(a.shape[0], n_heads, a.shape[1], -1)


def join_only(a):
    """Its way back."""
    return a.reshape(a.shape[0], a.shape[2], -1)


pairs = {
    "one head": heads_pair(split_heads, merge_heads, 1),
    "two heads": heads_pair(split_heads, merge_heads, 2),
    "wrong split": heads_pair(cut_only, join_only, 2),
}
w = np.stack([wide_q, wide_k, wide_v, w_o])  # (4, D, D)
assert_allclose(pairs["two heads"][0](x, w)[0], y, rtol=1e-9)
for name, pair in pairs.items():
    print(f"{name:12}", "all right" if gradcheck(pair, x, w).ok else "WRONG")

# %% [markdown]
# **The wrong split passes the gradient check**, since its backward is the right gradient of a wrong function.
# What finds it is a test of what forward means. Change the last person's note: who notices?

# %%
changed = x.copy()
changed[:, 5, note] += 1  # Fay's
for name, (forward, _) in pairs.items():
    moved = (forward(changed, w)[0] != forward(x, w)[0]).any((0, 2))  # (T,)
    print(f"{name:12}", *[person for person, m in zip(people, moved, strict=True) if m])
    assert moved.all() == (name != "wrong split")

# %% [markdown]
# Ann, Ben and Cem do not hear Fay: not a bit of their rows has moved. Now train all three, from the same
# first weights on the same tables, by gradient descent with momentum (lesson 13 does better).

# %%
rng = np.random.default_rng(7)  # anew, so that nothing tried above changes what is learned
w_first = rng.standard_normal((4, 12, 12)) / math.sqrt(12)
batches = [tables(64) for _ in range(300)]
losses, trained = np.zeros((3, 300)), {}
for row, (name, (forward, backward)) in zip(losses, pairs.items(), strict=True):
    w, speed = w_first.copy(), np.zeros_like(w_first)
    for step, (given, aim) in enumerate(batches):
        guess, made = forward(given, w)
        row[step] = ((guess - aim) ** 2).mean()
        speed = 0.9 * speed + backward(2 * (guess - aim) / aim.size, made)[1]
        w = w - 2.0 * speed
    trained[name] = w
    print(f"{name:12} first {row[0]:.3f}   last ten {row[-10:].mean():.4f}")

# %%
figure = curves(losses, labels=list(pairs), ylabel="mean squared error", yscale="log")
caption = "One head stops at 1/2, as derived; the wrong split learns, and stops above 1/3"
show_figure(figure, "07_losses", caption)

# %% [markdown]
# One head stays at the derived ½ (its weights might depend on the notes too; it found no use for that). Two
# heads go on towards 0. And the mistake **trains, and ends below one right head**. Round the table there are
# 12 wishes. A head that holds Ann, Ben and Cem can serve four: Ann's right, both of Ben's, Cem's left. So 8
# of 12 can be met and 4 cannot: an error of at least ⅓. Whoever sees only this curve sees a model that
# learns.
#
# Whom did the two heads with the right split learn to look at? At a table that they have not seen:

# %%
assert 0.48 < losses[0, -10:].mean() < 0.53
assert losses[1, -10:].mean() < 2e-4
assert 1 / 3 < losses[2, -10:].mean() < 0.37

_, (_, _, attended, _) = pairs["two heads"][0](tables(1)[0], trained["two heads"])
most = attended.weights[0].argmax(-1)  # (H, T) the seat that each looks at most
for h, seats in enumerate(most):
    print(f"head #{h}:", *[f"{a} at {people[s]}," for a, s in zip(people, seats, strict=True)])
offsets = (most - np.arange(6)) % 6  # 5 is the seat to the left
assert sorted(map(tuple, offsets)) == [(1,) * 6, (5,) * 6]
assert attended.weights.max(-1).min() > 0.95
figure = attention_grid(attended.weights, people, people)  # (1, H, T, T)
show_figure(figure, "07_heads", "What training found: one head looks left, the other right")

# %% [markdown]
# ## What several heads cost
#
# > Due to the reduced dimension of each head, the total computational cost is similar to that of single-head
# > attention with full dimensionality.
#
# The projections are D × (H·K) with H·K = D, however many heads there are. The scores take K multiplications
# for each pair of words and each head, and K·H = D again. What does grow is the number of weights, H·T².
#
# Rows (A) of the paper's table 3 try it, at d_model 512. Counted on a text of 64 words, with their BLEU:

# %%
text = rng.standard_normal((1, 64, 512)).astype(np.float32)  # (B, T, D)
print("heads width parameters multiplications attention weights BLEU")
for n_heads, bleu in {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}.items():
    base = MultiHeadAttention(512, n_heads, bias=False)
    seen, width = base.forward(text)[1].attention, 512 // n_heads
    assert seen.q.shape == (1, n_heads, 64, width)
    products = 4 * 64 * 512**2 + 2 * seen.weights.size * width  # projections, W^O; scores, sums
    size = base.count_parameters()
    assert (size, products) == (1_048_576, 71_303_168)
    print(f"{n_heads:5} {width:5} {size:10,} {products:15,} {seen.weights.size:17,} {bleu:4}")

# %% [markdown]
# One head is .9 BLEU below the best, and "quality also drops off with too many heads", says the paper, not
# why. With 32 heads, each similarity has rank 16.
#
# ## What several heads do not do
#
# *The components of the Transformer* brings heads in because two sentences of the same words in another order
# would get the same scores. With heads they still do: permute the rows of x, and y is permuted alike. Only
# what x says of places (here the seat; in a model, lesson 3) tells order. And one head without W^O is what
# lesson 5 had:

# %%
order = rng.permutation(6)
assert_allclose(layer.forward(x[:, order])[0], layer.forward(x)[0][:, order], rtol=1e-9)

alone = MultiHeadAttention(12, 1, output=False, bias=False, dtype=np.float64)
plain, _ = attention(*[x @ p.value for p in alone.parameters()])
assert_allclose(alone.forward(x)[0], plain, rtol=1e-12)
print("permuted people, permuted outputs; one head without W^O is attention")

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 7` has them, each graded by its values or by the gradient checker.
#
# - `npformer exercise start split-heads`: one reshape, one exchange; it is also merge's backward.
# - `npformer exercise start merge-heads`: the way back, in the right order.
# - `npformer exercise start multi-head-backward`: four steps; x gets three gradients, a memory two.
# - By hand: three heads at a table where each person wants the notes of both neighbours *and* of the person
#   opposite. Write down their w_q. What would the sum of the errors be with two heads? (At least 1 of 3.)
#
# To try now, in the terminal: `s attended.weights`, and `!print(gradcheck(MultiHeadAttention(6, 3), own))`.
#
# ## Where the documents differ
#
# - *一步步解析Attention is All You Need!* has W^O in its figure and not in its code; npformer's is
#   `output=False`. It sends q, k and v through ReLU (`activation="relu"`), stacks heads on the batch axis,
#   and tiles its masks to match.
# - *图解transformer* reshapes and exchanges, checks that the width can be divided, and has biases. Its
#   comments say "Query vector" of all three arrays; those of 64 × 10 × 300 are keys and values.
# - *Attention机制详解（二）* quotes code for a single head, as it says; its last `dense` is W^O.
# - *The components of the Transformer* says that the words' vectors are cut into chunks, one for each head.
#   It is q, k and v that are cut, in its code too: every head reads all of x.
#
# **Next**, lesson 8: what goes round attention, and what keeps its numbers in bounds.

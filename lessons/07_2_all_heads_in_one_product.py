# %% [markdown]
# # 7.2 · All heads in one product
#
# *About 25 minutes. You need: multi-head attention with loops (lesson 7.1, `07_1_why_several_heads`), masks
# (lesson 6.1, `06_1_masks`).*
#
# **After this lesson you can**
#
# - compute all heads with a few array operations;
# - split an array into heads and merge it again, and recognize the usual mistake;
# - stack the heads on the batch axis instead, and repeat the mask in the right order.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, UserError, show
from npformer.functional import heads as package
from npformer.functional.attention import attention
from npformer.functional.heads import merge_heads, split_heads
from npformer.learn.course import show_figure
from npformer.plots import Grid, Step, cell_product, gradient_flow

rng = np.random.default_rng(7)

# %% [markdown]
# ## From a loop to one product
#
# In multi-head attention, each head has its own matrices, its own queries, keys and values, and its own
# softmax. The outputs of the heads are concatenated and multiplied by $W^O$. With a loop over the heads, this
# is:

# %%


def loop_over_heads(x, w_q, w_k, w_v, w_o):
    """Multi-head attention, one head after the other. w_q, w_k, w_v (H, D, K), w_o (H·K, D)."""
    z = [attention(x @ q, x @ k, x @ v)[0] for q, k, v in zip(w_q, w_k, w_v, strict=True)]
    return np.concatenate(z, -1) @ w_o  # (B, T, H·K) @ (H·K, D)


# %% [markdown]
# This loop is slow in NumPy. We can replace it with array operations. First, all queries can come from a
# single product, because we may write the matrices of all heads next to each other. The result then contains
# the queries of all heads, in the same order:
#
# $$x\,[\,W_0 \mid W_1 \mid \ldots\,] = [\,x W_0 \mid x W_1 \mid \ldots\,]$$
#
# So the H matrices of shape (D, K) are stored as one matrix of shape (D, H·K). The whole calculation, with
# its shapes, is this:

# %% tags=["plot"]
layout = """x  all_q  q1  z1  joined  y
            .  .      q2  z2  .       ."""
same = np.random.default_rng(0)
parts = {"x": same.standard_normal((4, 4))}  # (T, D)
parts["all_q"] = parts["x"] @ same.standard_normal((4, 4))  # (T, H·K)
parts |= {"q1": parts["all_q"][:, :2], "q2": parts["all_q"][:, 2:]}  # (T, K)
for head in "12":
    keys, values = same.standard_normal((2, 4, 2))
    parts[f"z{head}"], _ = attention(parts[f"q{head}"], keys, values)
parts["joined"] = np.concatenate([parts["z1"], parts["z2"]], -1)  # (T, H·K)
parts["y"] = parts["joined"] @ same.standard_normal((4, 4))  # (T, D)
steps = {
    "all_q": Step("× W", ["x"]),
    "q1": Step("", ["all_q"]),
    "q2": Step("", ["all_q"]),
    "z1": Step("", ["q1"]),
    "z2": Step("", ["q2"]),
    "joined": Step("", ["z1", "z2"]),
    "y": Step("× W", ["joined"]),
}
axes = dict.fromkeys(parts, "T K") | dict.fromkeys(("all_q", "joined"), "T HK")
figure = gradient_flow(layout, parts, steps, axes=axes | {"x": "T D", "y": "T D"})
caption = "The path of the queries: one product, split into two heads, joined after attention"
show_figure(figure, "07_2_path", caption)

# %% [markdown]
# The input holds two sentences of six tokens. The weights are random, because zeros and identity matrices
# could hide mistakes.

# %%
x = rng.standard_normal((2, 6, 12))  # (B, T, D)
w_q, w_k, w_v = rng.standard_normal((3, 2, 12, 6)) / math.sqrt(12)  # each (H, D, K)
w_o = rng.standard_normal((12, 12)) / math.sqrt(12)  # (H·K, D)
y_slow = loop_over_heads(x, w_q, w_k, w_v, w_o)

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
# The figure shows this for one sentence of four tokens, D = 6 and two heads. Its numbers tell where they come
# from: 23 is entry 3 of token 2.

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
# the head can never attend to the other half. Lesson 7.4 (`07_4_testing_the_split`) trains a model with this
# mistake.
#
# Here is the correct calculation. The heads are merged with the same two operations in reverse order: first
# exchange the axes, then reshape.

# %%
k, v = x @ wide_k, x @ wide_v  # (B, T, H·K)
z, attended = attention(*[split_heads(a, 2) for a in (q, k, v)])  # (B, H, T, K)
concat = z.swapaxes(1, 2).reshape(2, 6, 12)  # (B, T, H·K): exchange first, then reshape
y = concat @ w_o  # (B, T, D)
print("largest difference from the loop:", abs(y - y_slow).max())

# %% tags=["check"]
assert (concat == merge_heads(z)).all()
assert_allclose(y, y_slow, rtol=1e-9)

# %% [markdown]
# The package has the layer `MultiHeadAttention`. With our weights it gives the same output. Its cache
# contains the caches of the four linear layers and the cache of `attention`, which the cell shows. It is the
# cache of lesson 5.1 (`05_1_scaled_dot_product_attention`) with more axes. `weights` has a matrix (T, T) for
# each sentence and each head.

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
# (One can also put W^Q, W^K and W^V side by side, and compute one product instead of three. GPT-2 does this:
# lesson 25, `25_a_real_model_under_the_microscope`.)
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
mask = np.arange(6) < np.array([6, 4])[:, None, None]  # (B, 1, S): six tokens, and four
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
# `np.tile` gives the order sentence 1, sentence 2, sentence 1, sentence 2, which is correct. `np.repeat`
# gives sentence 1, sentence 1, sentence 2, sentence 2. So masks reach the wrong sentences, and no error is
# raised.
#
# ## The shapes of the example in *图解transformer*
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
# **Your turn.** In the terminal, print the shapes of the three steps of the split: `!q.shape`,
# `!q.reshape(2, 6, 2, 6).shape` and `!split_heads(q, 2).shape`. Which of the last two does attention need?

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* reshapes and exchanges the axes, checks that the width can be divided, and has biases.
# >   Its comments say "Query vector" of all three arrays; those of 64 × 10 × 300 are keys and values.
# > - *一步步解析Attention is All You Need!* applies a ReLU to q, k and v (`activation="relu"`), stacks the
# >   heads on the batch axis, and tiles its masks to match.
# > - *The components of the Transformer* says that the vectors of the tokens are cut into chunks, one for
# >   each head. In fact q, k and v are cut, in its code too. Every head reads all of x.

# %% [markdown]
# ## Summary
#
# - The matrices of all heads stand side by side, so that one product computes the queries of all heads.
# - To split means: reshape the last axis to (H, K), then exchange the axes of tokens and heads.
# - To merge means the same in reverse order: exchange the axes, then reshape.
# - A reshape alone has the right shape, but gives each head a part of the sentence.
# - Heads can also be stacked on the batch axis; then `np.tile` repeats the mask in the right order.

# %% [markdown]
# ## Questions
#
# **Question.** Why must the axes be exchanged, after the reshape has already separated the heads?
#
# <details><summary>Answer</summary>
# The operator `@` multiplies the last two axes. After the reshape these are heads and entries. Attention
# needs tokens and entries there.
# </details>
#
# **Question.** Why does a wrong split raise no error?
#
# <details><summary>Answer</summary>
# All shapes are right, because the number of entries is the same. Only the numbers are in the wrong places.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 7` lists the exercises of this chapter. They are graded by their values
# or by the gradient checker.
#
# - `npformer exercise start split-heads`: split the vectors into heads. You need one reshape and one exchange
#   of axes. The same function is the backward pass of `merge_heads`.
# - `npformer exercise start merge-heads`: concatenate the heads. This is the inverse of `split_heads`, so the
#   two operations come in the opposite order.
# - See the split into heads in a real model: run `npformer explore --model en-de "A dog runs." --open`, and
#   replace the end of the address, from `#` on, by `#step=encoder.0.self_attention.attention.q`.
#
# **Next** on the route for engineers: lesson 8.2 (`08_2_the_backward_pass_of_layer_norm`), the backward pass
# of layer norm. Off the route: lesson 7.3 (`07_3_the_output_projection_and_the_backward_pass`), the matrix
# W^O and the gradients.

# %% [markdown]
# # 7.3 · The output projection, and the backward pass
#
# *About 35 minutes. You need: multi-head attention (lesson 7.2, `07_2_all_heads_in_one_product`), the
# backward pass of attention (lesson 5.2, `05_2_the_backward_pass_of_attention`) and of a linear layer (lesson
# 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - explain what the matrix W^O does;
# - describe a head by two matrices: one decides where the head attends, the other what it writes;
# - derive the backward pass of multi-head attention, and check it.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention
from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.functional.heads import merge_heads, split_heads
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(7)
ORANGE, GREEN = "#ffc999", "#99dead"  # the colours of two heads

# %% [markdown]
# ## The forward pass again
#
# We compute multi-head attention for two sentences of six tokens, with D = 12 and two heads of width 6. The
# weights are random. Each head has its own part of the columns of $W^Q$, $W^K$ and $W^V$. At
# the end of the cell, the layer of the package gets the same weights.

# %%
x = rng.standard_normal((2, 6, 12))  # (B, T, D)
w_q, w_k, w_v = rng.standard_normal((3, 2, 12, 6)) / math.sqrt(12)  # each (H, D, K)
w_o = rng.standard_normal((12, 12)) / math.sqrt(12)  # (H·K, D)
wide_q, wide_k, wide_v = (np.concatenate(list(w), -1) for w in (w_q, w_k, w_v))  # each (D, H·K)

q, k, v = (split_heads(x @ w, 2) for w in (wide_q, wide_k, wide_v))  # each (B, H, T, K)
z, attended = attention(q, k, v)  # (B, H, T, K)
concat = merge_heads(z)  # (B, T, H·K)
y = concat @ w_o  # (B, T, D)

layer = MultiHeadAttention(12, 2, bias=False, dtype=np.float64)
state = {"query": wide_q, "key": wide_k, "value": wide_v, "output": w_o}
layer.load_state_dict({f"{name}.weight": value for name, value in state.items()})
y_package, made = layer.forward(x)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)

# %% [markdown]
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
# \mathrm{score}_{hts} &= \frac{1}{\sqrt{K}}\; x_t\, (W_h^Q {W_h^K}^\top)\, x_s^\top \\
# y_t &= \sum_h \sum_s p_{hts}\, x_s\, (W_h^V W^O_h)
# \end{aligned}$$
#
# So a head is described by two matrices of shape (D, D). The first one, $W_h^Q {W_h^K}^\top$, decides which
# tokens the head attends to. It is the "general" similarity of lesson 4.5 (`04_5_similarity_functions`). The
# second one, $W_h^V W^O_h$, decides what the head writes into the output. Both are products of a (D, K)
# matrix and a (K, D) matrix, so their rank is at most K.
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
# ## The backward pass
#
# The backward pass begins with $dy$, of shape (B, T, D). It takes the forward pass in reverse order:

# %% tags=["plot"]
figure = shape_flow(
    "dy dconcat dz dqkv dx",
    {
        "dconcat": "· Wᵀ: dy",
        "dz": "split: dconcat",
        "dqkv": "attention: dz",
        "dx": "merge, W: dqkv",
    },
    {"dy": "T D", "dconcat": "T H·K", "dz": "T K", "dqkv": "T K", "dx": "T D"},
)
caption = "Backward, for one sentence: dz and dqkv exist once for each head"
show_figure(figure, "07_3_shapes", caption)

# %% [markdown]
# **First, y = concat W^O.** This is a linear layer. The rows of all sentences count as rows
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
# **Third, z = attention(q, k, v).** This is lesson 5.2, separately in each head. It gives $dq$, $dk$ and
# $dv$, each of shape (B, H, T, K). They are merged.
#
# **Fourth, the projections** $q = x W^Q$, $k = x W^K$ and $v = x W^V$. All three use the same $x$. When an
# array is used several times, its gradients add up (lesson 0.2):
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
# ## The gradient check
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
# **Your turn.** In the terminal, check a layer with three heads:
# `!print(gradcheck(MultiHeadAttention(6, 3), own))`.

# %% [markdown]
# ## What the source documents say
#
# > - *一步步解析Attention is All You Need!* shows W^O in its figure, but not in its code. In npformer this
# >   is `output=False`.
# > - *Attention机制详解（二）* quotes code for a single head, as it says. The last `dense` of this code is
# >   W^O.

# %% [markdown]
# ## Summary
#
# - The product with W^O is a sum over heads, and each head has its own K rows of W^O.
# - The matrix $W_h^Q {W_h^K}^\top$ decides which tokens head h attends to; its rank is at most K.
# - The matrix $W_h^V W^O_h$ decides what head h writes into the output.
# - In the backward pass, split and merge exchange their roles, because both only change the order of numbers.
# - In self-attention, x receives the sum of three gradients: from the queries, the keys and the values.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the backward pass of `merge_heads` not a sum?
#
# <details><summary>Answer</summary>
# Every number of z goes to exactly one place. So it gets its gradient from exactly one place.
# </details>
#
# **Question.** In cross-attention, the memory receives two gradients. Which ones, and where does the third
# one go?
#
# <details><summary>Answer</summary>
# The memory is used for keys and values, so it receives their gradients. The gradient of the queries goes to
# the x of the decoder.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 7` lists the exercises of this chapter. They are graded by their values
# or by the gradient checker.
#
# - `npformer exercise start multi-head`: write the forward pass of multi-head attention in three steps, and
#   return the cache that its backward pass needs.
# - `npformer exercise start multi-head-backward`: write the backward pass of multi-head attention in four
#   steps. In self-attention, x receives three gradients. In cross-attention, the memory receives two.
# - By hand: W^O is the identity matrix. Which columns of the output can head #0 change?
# - See how the gradients of the heads are split in a real model: run
#   `npformer explore --model en-de "A dog runs." --open`, and replace the end of the address, from `#` on, by
#   `#direction=backward&step=encoder.0.self_attention.merged`.
#
# **Next**: lesson 7.4 (`07_4_testing_the_split`), a mistake that the gradient check does not find.

# %% [markdown]
# # 16.4 · Attention in blocks
#
# *About 35 minutes. You need: the backward pass of attention (lesson 5.2,
# `05_2_the_backward_pass_of_attention`), blocks (lesson 16.2, `16_2_kernels`).*
#
# **After this lesson you can**
#
# - compute a softmax whose scores arrive in blocks (the online softmax);
# - compute attention and its backward pass without storing an array of the size of the weights;
# - measure how the memory of both versions grows with the length of the sentence.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math
import tracemalloc
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import attention, attention_backward
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import curves

rng = np.random.default_rng(16)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16.3

# %% [markdown]
# ## The problem: the weights are the largest array of a long sentence
#
# The attention weights of a head have the shape (T, S). For a text of 1,000 tokens this is a million
# numbers for each head, and the forward pass stores them for the backward pass. The cell computes the
# memory for the base model of the paper, with six layers on each side.

# %%
heads, attentions, tokens = 8, 6 + 2 * 6, 1000  # a decoder layer has two attentions
print(f"{heads * attentions * tokens**2 * 4 / 1e6:.0f} MB of weights for one text, in float32")

# %% [markdown]
# Can we compute
# $y = \mathrm{softmax}(s)\,V$ without ever having a whole row of scores $s$?
#
# The difficulty is the softmax. It needs the maximum $m$ and the sum $\ell$ of a row, and both depend on
# *all* keys. The solution is to take the keys in blocks, and to correct the results after each block. A
# softmax that is computed in this way is called **online softmax** (Milakov and Gimelshein, 2018). Rabe and
# Staats (2021) and Dao et al. (2022) use it in attention. The algorithm of Dao et al. is known as
# **FlashAttention**.

# %% [markdown]
# ## The forward pass
#
# We look at one query. K is the width of a query or a key, and L that of a value. For the keys so far, we
# keep the maximum of the scores, the sum of the exponentials, and the weighted sum $o$ of the values. After
# the last block, $y$ is their quotient:
#
# $$m = \max_j s_j, \quad \ell = \sum_j e^{s_j - m}, \quad o = \sum_j e^{s_j - m}\, v_j$$
#
# $$y = \frac{o}{\ell}$$

# %% tags=["plot"]
figure = shape_flow(
    "state₀ state₁ state₂ y \n block₁ block₂ . .",
    {
        "state₁": "block 1: state₀ block₁",
        "state₂": "block 2: state₁ block₂",
        "y": "o / ℓ: state₂",
    },
    {
        "state₀": "T L",
        "block₁": "b K",
        "block₂": "b K",
        "state₁": "T L",
        "state₂": "T L",
        "y": "T L",
    },
)
caption = "The state is m, ℓ and o; each block of b keys and values corrects it"
show_figure(figure, "16_4_shapes", caption)

# %% [markdown]
# A new block may contain a larger score. Let $m'$ be the new maximum. All terms so far contain the factor
# $e^{-m}$, but they should contain $e^{-m'}$. So we multiply both sums by $a = e^{m - m'}$, and then add the
# terms of the block:
#
# $$\begin{aligned}
# a &= e^{m - m'} \\
# \ell' &= a\,\ell + \sum_{j\ \mathrm{in\ block}} e^{s_j - m'} \\
# o' &= a\,o + \sum_{j\ \mathrm{in\ block}} e^{s_j - m'}\, v_j
# \end{aligned}$$
#
# This is not an approximation. Except for rounding, the result is the same as with whole rows.
#
# For the backward pass we store one number for each query, $\lambda = m + \log \ell$. With it, a weight can
# be computed again from its score: $p_j = e^{s_j - m} / \ell = e^{s_j - \lambda}$. At the beginning, q is
# multiplied by the factor $c = 1/\sqrt{d_k}$.

# %%


class BlockCache(NamedTuple):
    """What the backward pass needs. No array has the shape (T, S)."""

    q: np.ndarray  # (..., T, K), multiplied by c
    k: np.ndarray  # (..., S, K)
    v: np.ndarray  # (..., S, L)
    y: np.ndarray  # (..., T, L)
    log_sum: np.ndarray  # (..., T, 1) λ = m + log ℓ
    block: int


def attention_in_blocks(q, k, v, *, block=64):
    """Compute attention(q, k, v) with a block of keys at a time."""
    q = q * (1 / math.sqrt(q.shape[-1]))  # (..., T, K)
    m, total, o = -np.inf, 0, 0
    for j in range(0, k.shape[-2], block):
        scores = q @ k[..., j : j + block, :].swapaxes(-1, -2)  # (..., T, block)
        new_m = np.maximum(m, scores.real.max(-1, keepdims=True))  # (..., T, 1)
        a = np.exp(m - new_m)  # 0 for the first block
        e = np.exp(scores - new_m)  # (..., T, block)
        total = a * total + e.sum(-1, keepdims=True)  # (..., T, 1)
        o = a * o + e @ v[..., j : j + block, :]  # (..., T, L)
        m = new_m
    y = o / total
    return y, BlockCache(q, k, v, y, m + np.log(total), block)


# %% [markdown]
# The code writes `scores.real`, because the gradient check passes complex numbers.
#
# **Question.** For the first block, $m = -\infty$ and both sums are 0. What is $a$, and is the result right?
#
# <details><summary>Answer</summary>
# $a = e^{-\infty} = 0$. So the old sums, which are 0 anyway, are multiplied by 0, and only the terms of the
# first block remain. This is right.
# </details>

# %% [markdown]
# ## The backward pass
#
# The backward pass goes through the blocks again and computes their weights from $\lambda$. There is one
# difficulty. The gradient of the softmax (lesson 5.2) is $ds_j = p_j\,(dp_j - \sum_i p_i\, dp_i)$. The sum
# runs over *all* keys, but each block has only some of them. Fortunately the sum can be computed without
# the weights:
#
# $$\begin{aligned}
# \sum_j p_j\, dp_j &= \sum_j p_j \sum_i dy_i\, v_{ji} \\
# &= \sum_i dy_i \sum_j p_j\, v_{ji} \\
# &= \sum_i dy_i\, y_i
# \end{aligned}$$
#
# So it is the dot product of $dy$ and $y$, one number for each query. With it, each block can compute its own
# gradients:
#
# $$ds_j = p_j \left(dp_j - \sum_i dy_i\, y_i\right), \qquad dq = c \sum_j ds_j\, k_j$$
#
# $$dk_j = c \sum_t ds_{tj}\, q_t, \qquad dv_j = \sum_t p_{tj}\, dy_t$$

# %%


def attention_in_blocks_backward(dy, cache):
    """Return the gradients (dq, dk, dv)."""
    q, k, v, y, log_sum, block = cache
    average = (dy * y).sum(-1, keepdims=True)  # (..., T, 1) the sum of p dp
    dq, dk, dv = np.zeros_like(q), np.empty_like(k), np.empty_like(v)
    for j in range(0, k.shape[-2], block):
        here = (..., slice(j, j + block), slice(None))
        p = np.exp(q @ k[here].swapaxes(-1, -2) - log_sum)  # (..., T, block) the weights again
        dv[here] = p.swapaxes(-1, -2) @ dy
        ds = p * (dy @ v[here].swapaxes(-1, -2) - average)  # (..., T, block)
        dq += ds @ k[here]
        dk[here] = ds.swapaxes(-1, -2) @ q  # q contains c already
    return dq * (1 / math.sqrt(q.shape[-1])), dk, dv


# %% [markdown]
# We compare with the package's attention, and check the gradients. The ten keys are divided into blocks of
# 4, 4 and 2 keys, so that the last block is shorter.

# %%
q, k, v = (rng.standard_normal((2, n, w)) for n, w in ((7, 8), (10, 8), (10, 5)))  # H = 2
y, cache = attention_in_blocks(q, k, v, block=4)
show(cache)
report = gradcheck((attention_in_blocks, attention_in_blocks_backward), q, k, v, block=4)
print(report)

# %% tags=["check"]
assert report.ok
y_whole, whole_cache = attention(q, k, v)
dy = rng.standard_normal(y.shape)
assert_allclose(y, y_whole, rtol=1e-10, atol=1e-13)
grads = attention_in_blocks_backward(dy, cache), attention_backward(dy, whole_cache)
for ours, theirs in zip(*grads, strict=True):
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)

# %% [markdown]
# ## What it costs and what it saves
#
# The backward pass needs five matrix products instead of the four of lesson 5.2, because the scores are
# computed twice. In return, no array has the shape (T, S). We measure the largest memory of both versions,
# forward and backward, with four heads.

# %%


def peak_bytes(function):
    """Return the largest memory that a function needs in addition to what exists already."""
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def forward_and_backward(forward, backward, n):
    """Return a function that computes attention for n tokens, and its gradients."""
    q, k, v, dy = rng.standard_normal((4, 4, n, 32)).astype(np.float32)  # each (H, T, K)
    return lambda: backward(dy, forward(q, k, v)[1])


lengths = np.array([128, 256, 512, 1024])
pairs = (attention, attention_backward), (attention_in_blocks, attention_in_blocks_backward)
memory = np.zeros((2, len(lengths)))  # megabytes
for j, n in enumerate(lengths.tolist()):
    for i, (forward, backward) in enumerate(pairs):
        memory[i, j] = peak_bytes(forward_and_backward(forward, backward, n)) / 1e6
    print(f"{n:5} tokens: {memory[0, j]:6.1f} MB all weights, {memory[1, j]:5.1f} MB in blocks")

# %% tags=["check"]
growth = memory[:, 3] / memory[:, 2]  # from 512 to 1,024 tokens
assert growth[0] > 3.7 > 2.3 > growth[1]

# %% tags=["plot"]
figure = curves(
    memory,
    lengths,
    labels=["all weights", "in blocks"],
    xlabel="tokens",
    ylabel="megabytes",
    xscale="log",
    yscale="log",
)
show_figure(figure, "16_memory", "The largest memory of attention, forward and backward")

# %% [markdown]
# **Question.** From 512 to 1,024 tokens, by which factor does the memory of each version grow, and why?
#
# <details><summary>Answer</summary>
# With all weights, by a factor of about 4, because (T, S) has four times as many entries. In blocks, by a
# factor of about 2, because all arrays have the shape (T, K) or (T, block). The check asserts both.
# </details>
#
# For long sentences, the package also has a kernel that does not store the weights,
# `npformer/kernels/cpu/long_attention.py`. It takes a few queries at a time, with all keys.
#
# **Your turn.** In the terminal, run
# `!attention_in_blocks(q, k, v, block=3)[0] - attention_in_blocks(q, k, v, block=10)[0]`. Why are some of the
# differences not exactly 0?

# %% [markdown]
# ## Summary
#
# - The attention weights of a head have T · S entries, so their memory grows with the square of the length.
# - The online softmax keeps a maximum and a sum, and multiplies the sum by $e^{m - m'}$ for a new maximum.
# - Attention in blocks gives the same result as attention with whole rows, except for rounding.
# - The backward pass computes the weights again from one number for each query, $\lambda = m + \log \ell$.
# - The sum of $p\,dp$ over all keys is the dot product of $dy$ and $y$, so no block needs the other blocks.

# %% [markdown]
# ## Questions
#
# **Question.** Two blocks have the scores (1, 3) and (2, 5). Which $m$ and which $a$ does the online softmax
# have after each block?
#
# <details><summary>Answer</summary>
# After the first block $m = 3$ and $a = 0$. After the second block $m = 5$ and $a = e^{3 - 5} = e^{-2}$.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has no exercises for this chapter. Write this into a file of your own, and check it
# with the assertions of this lesson:
#
# - Add a causal mask to `attention_in_blocks`. Blocks of keys that are all in the future are left out. Which
#   share of the work does this save, for T tokens and blocks of b keys?
#
# **Next**: lesson 17.1 (`17_1_lstm_and_gru_cells`) goes back to the networks before the Transformer, which
# read one token after the other.

# %% [markdown]
# # 23.4 · Grouped-query attention and sliding windows
#
# *About 25 minutes. You need: multi-head attention (lesson 7.2, `07_2_all_heads_in_one_product`), masks
# (lesson 6.1, `06_1_masks`), the KV cache (lesson 14.4, `14_4_the_kv_cache`).*
#
# **After this lesson you can**
#
# - let several query heads share one head of keys and values, and derive the gradient;
# - compute the memory of a KV cache, and measure it;
# - write a causal mask with a window, and say how far several layers reach.
#
# `attention: [QUERIES AND KEYS] → scores → [MASK] → softmax → mean of values`

# %%
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.functional.masks import causal_mask
from npformer.learn.course import show_figure
from npformer.nn import MultiHeadAttention
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(23)

# %% [markdown]
# ## The cost of the KV cache
#
# When a model generates text, it stores the keys and values of all earlier tokens (lesson 14.4). For each new
# token, it must read all these keys and values from memory. So the size of the KV cache limits the speed, and
# the number of sentences that fit into memory.
#
# Let H be the number of heads, K their width, S the number of tokens, and N the number of layers. There is a
# key and a value for each layer, head and token:
#
# $$\text{numbers in the KV cache} = 2 \cdot N \cdot H \cdot S \cdot K$$
#
# The cell computes the memory for a model of 32 layers with 32 heads of width 128, and one text of 4096
# tokens. A number takes two bytes.

# %%


def gibibytes(n_layers, n_heads, n_tokens, width):
    """Return the memory of a KV cache with two bytes for each number."""
    return 2 * n_layers * n_heads * n_tokens * width * 2 / 2**30


print(f"32 heads of keys and values: {gibibytes(32, 32, 4096, 128)} GiB for one text")
print(f"8 heads of keys and values:  {gibibytes(32, 8, 4096, 128)} GiB")

# %% tags=["check"]
assert gibibytes(32, 32, 4096, 128) == 2
assert gibibytes(32, 8, 4096, 128) == 0.5

# %% [markdown]
# ## Sharing keys and values
#
# Must every head have keys and values of its own? Shazeer (2019) let all query heads share *one* head of keys
# and values. This is called **multi-query attention**. The quality was a little lower. So Ainslie et al.
# (*GQA*, 2023) proposed a compromise: the H query heads form G groups, and each group shares one head of keys
# and values. This is called **grouped-query attention**.
#
# | | heads of keys and values, for four query heads | used by the query heads |
# |---|---|---|
# | multi-head, G = H | four | one each |
# | grouped, G = 2 | two | 0 and 1; 2 and 3 |
# | multi-query, G = 1 | one | all four |
#
# Queries have the shape (B, H, T, K), and keys have the shape (B, G, S, K). Query head $h$ uses the key head
# $\lfloor h / R \rfloor$, where $R = H / G$. The simplest program repeats each head of keys and values R
# times. Then it computes attention as before.

# %%
B, H, G, T, K = 2, 4, 2, 5, 3
R = H // G
q = rng.standard_normal((B, H, T, K))
k, v = rng.standard_normal((2, B, G, T, K))  # (B, G, S, K) each

k_repeated = k[:, np.arange(H) // R]  # (B, H, S, K)
v_repeated = v[:, np.arange(H) // R]
z, cache = F.attention(q, k_repeated, v_repeated)  # (B, H, T, K)
show(cache)

# %% tags=["check"]
assert_array_equal(k_repeated, F.repeat_heads(k, R)[0])
assert_array_equal(k_repeated[:, 0], k_repeated[:, 1])

# %% [markdown]
# ## The gradient of a shared key
#
# The attention function returns a gradient for each repeated head, $d\tilde{k}$ of the shape (B, H, S, K).
# One key was used R times. As always, an array that is used several times gets the *sum* of the gradients:
#
# $$\begin{aligned}
# \tilde{k}_h &= k_g \quad \text{for } h = gR, \ldots, gR + R - 1 \\
# dk_g &= \sum_{r=0}^{R-1} d\tilde{k}_{gR + r}
# \end{aligned}$$
#
# The R heads of a group are next to each other. So a reshape gives the R heads an axis of their own, and we
# sum over this axis.

# %%
dz = rng.standard_normal(z.shape)  # (B, H, T, K)
dq, dk_repeated, dv_repeated = F.attention_backward(dz, cache)
dk = dk_repeated.reshape(B, G, R, T, K).sum(2)  # (B, G, S, K)
dv = dv_repeated.reshape(B, G, R, T, K).sum(2)

layer = MultiHeadAttention(8, 4, n_kv_heads=2, rng=rng)
report = gradcheck(layer, rng.standard_normal((2, 3, 8)))
print(report)

# %% tags=["check"]
assert_allclose(dk, F.repeat_heads_backward(dk_repeated, R), rtol=1e-12)
assert_allclose(dk[:, 1], dk_repeated[:, 2] + dk_repeated[:, 3], rtol=1e-12)
assert_allclose(dv[:, 0], dv_repeated[:, 0] + dv_repeated[:, 1], rtol=1e-12)
assert report.ok

# %% [markdown]
# **Question.** A learner reshapes the gradients to (B, R, G, S, K) and sums over the axis of R. The shapes
# are right. What is wrong?
#
# <details><summary>Answer</summary>
# The order of the axes is wrong. The head $h = gR + r$ must be split into g and then r. With the other order,
# the sum adds heads of different groups.
# </details>
#
# ## The KV cache, measured
#
# Now we let a layer with eight query heads decode 100 tokens, once with eight heads of keys and values, and
# once with two. The KV cache contains the heads of keys and values before they are repeated.

# %%
tokens = rng.standard_normal((1, 100, 64)).astype(np.float32)  # (B, T, D)
measured = {}
for n_kv_heads in (8, 2):
    layer = MultiHeadAttention(64, 8, n_kv_heads=n_kv_heads, rng=rng)
    kv_cache = None
    for t in range(100):
        _, kv_cache = layer.decode_step(tokens[:, t : t + 1], kv_cache)
    measured[n_kv_heads] = kv_cache.k.nbytes + kv_cache.v.nbytes
    print(f"{n_kv_heads} heads of keys: k {kv_cache.k.shape}, {measured[n_kv_heads]} bytes")

# %% tags=["check"]
assert measured[8] == 2 * 8 * 100 * 8 * 4  # float32 has four bytes
assert measured[2] * 4 == measured[8]

# %% [markdown]
# Two heads of keys and values need a quarter of the memory of eight heads. The weight matrices of the keys
# and of the values become smaller too.
#
# ## A window
#
# The cache still grows with each token. A **sliding window** limits it: a token attends to itself and to the
# $W - 1$ tokens before it. The window is an option of the causal mask:
#
# $$\mathrm{mask}_{ts} = (s \le t) \land (s > t - W)$$
#
# For $W = 3$, position 5 attends to exactly three positions: 3, 4 and 5.

# %%
length, W = 8, 3
t, s = np.arange(length)[:, None], np.arange(length)  # (T, 1) and (S,)
window = (s <= t) & (s > t - W)  # (T, S)
print("keys of each query:", window.sum(1))

# from t to s over some position between them
two_layers = (window.astype(int) @ window) > 0  # (T, S)
print("keys that two layers reach:", two_layers.sum(1))

# %% tags=["check"]
assert_array_equal(window, causal_mask(length, window, window=W))
assert list(np.flatnonzero(window[5])) == [3, 4, 5]
assert list(window.sum(1)) == [1, 2, 3, 3, 3, 3, 3, 3]
assert list(two_layers.sum(1)) == [1, 2, 3, 4, 5, 5, 5, 5]

# %% tags=["plot"]
settings = {"numbers": True, "decimals": 0, "shade": True}
parts = [Grid(window.astype(int), "one layer", "x", **settings)]
figure = cell_product([*parts, Grid(two_layers.astype(int), "two layers", "z", **settings)])
caption = "A window of 3: each further layer reaches two positions further back"
show_figure(figure, "23_window", caption)

# %% [markdown]
# One layer reaches $W - 1$ positions back. In the second layer, a token reads vectors that contain the
# results of the first layer. So $n$ layers reach $n (W - 1)$ positions back. With W = 4096 and 32 layers,
# this is more than 100,000 tokens.
#
# Keys outside of the window are never used again. So the KV cache needs only the last W keys. The cell checks
# this: the last token gets the same output if the older keys are deleted.

# %%
q, k, v = rng.standard_normal((3, length, 4))  # (T, K) each
with_mask, _ = F.attention(q, k, v, window)
from_the_cache, _ = F.attention(q[-1:], k[-W:], v[-W:])
print("difference:", f"{abs(with_mask[-1] - from_the_cache[0]).max():.0e}")
reach = 32 * (4096 - 1)
print("positions back with W = 4096 and 32 layers:", reach)

# %% tags=["check"]
assert_allclose(with_mask[-1], from_the_cache[0], rtol=1e-12)
assert reach > 100_000

# %% [markdown]
# **In 2025**, grouped queries are the rule (Llama 3, Qwen3, Gemma 3). DeepSeek-V3 keeps one compressed vector
# for each position instead.

# %% [markdown]
# ## Summary
#
# - In grouped-query attention, several query heads share one head of keys and values.
# - The gradient of a shared key is the sum of the gradients over its query heads.
# - The KV cache has 2 · N · G · S · K numbers, so 2 key heads need a quarter of the memory of 8 key heads.
# - A window of W lets a token attend to itself and to the W − 1 tokens before it.
# - With a window, n layers reach n (W − 1) positions back, and the KV cache needs only W keys.

# %% [markdown]
# ## Questions
#
# **Question.** Shared keys and values make decoding much faster. Why do they make the *backward pass* of
# training hardly faster?
#
# <details><summary>Answer</summary>
# Every query head still computes its own scores and its own weighted mean. Only the projections of keys and
# values become smaller. In decoding, the time is spent on reading the KV cache, and sharing makes the KV
# cache smaller.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 23` lists the exercises of this chapter.
#
# - `npformer exercise start shared-keys-backward`: sum the gradients of the heads that share a key.
# - `npformer exercise start window-mask`: write the causal mask with a window.
# - The command `npformer bugs start 27` gives you a program to correct: the window of its mask is off by one.
#
# **Next**: lesson 23.5 (`23_5_adamw`), the optimizer of most language models.

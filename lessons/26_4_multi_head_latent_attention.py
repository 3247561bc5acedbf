# %% [markdown]
# # 26.4 · Multi-head latent attention
#
# *About 30 minutes. You need: rotary positions (lesson 23.2, `23_2_rotary_positions`), grouped-query
# attention (lesson 23.4, `23_4_grouped_query_attention`), how to compare models (lesson 24.3,
# `24_3_from_2017_to_llama`).*
#
# **After this lesson you can**
#
# - say what a KV cache keeps for each token with shared heads, and with latent vectors;
# - compute attention from latent vectors without computing any key or value;
# - explain why such a layer needs columns of their own for the positions.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import gradcheck
from npformer.data.text import text_dataset
from npformer.functional.masks import causal_mask
from npformer.learn.course import show_figure
from npformer.learn.experiments import caching
from npformer.learn.experiments.measured_runs import Trial, read_results
from npformer.nn import MultiHeadLatentAttention, PreallocatedKVCache, RotaryPositions
from npformer.plots import curves

# %% tags=["plot"]
results, plan = read_results(caching.MEASURED), caching.stages()
losses = {}
for stage in plan:
    losses[stage.name] = np.array([r.valid_loss for r in results if r.model == stage.name])
heads = ("1 key head", "2 key heads", "4 key heads")
latent = ("latent, 8 + 8", "latent, 16 + 16", "latent, 48 + 16")
rows = np.full((2, 4), np.nan)
rows[0, 1:] = [losses[name].mean() for name in heads]
rows[1, :3] = [losses[name].mean() for name in latent]
axes = {"xlabel": "numbers in the KV cache for each token", "ylabel": "validation loss"}
numbers = np.array([32, 64, 128, 256])
figure = curves(rows, numbers, labels=["heads", "latent"], **axes)
caption = "Small GPTs whose KV cache keeps heads of keys and values, or latent vectors"
show_figure(figure, "26_4_loss_by_cache", caption)

# %% [markdown]
# ## What has to be remembered?
#
# When a model continues a long text, reading the KV cache takes most of the time. In grouped-query attention,
# several query heads share a head of keys and values, so that the KV cache is smaller. But shared heads can
# do less than separate ones. **Multi-head latent attention** (DeepSeek-V2, 2024) has a separate head of keys
# and values for each query head, and still caches less.
#
# The keys and values of all heads are computed from the same vector $x$ of a token. So let us first compute a
# short vector $c$ from $x$, the **latent vector**, and then all keys and values from $c$:
#
# $$c = \mathrm{norm}(x W), \qquad k_h = c\, W^K_h, \qquad v_h = c\, W^V_h$$
#
# It is enough to cache $c$. Its width C can be much smaller than 2 · H · K, the width of all keys and values.

# %%
rng = np.random.default_rng(26)
D, H, K, C, S = 32, 4, 8, 6, 5
x = rng.standard_normal((S, D))  # the tokens so far
w, wq = rng.standard_normal((D, C)) / np.sqrt(D), rng.standard_normal((H, D, K)) / np.sqrt(D)
wk, wv = rng.standard_normal((2, H, C, K)) / np.sqrt(C)

c, _ = F.rms_norm(x @ w, np.ones(C))  # (S, C)
k, v = c @ wk, c @ wv  # (H, S, K) each
q = x[-1:] @ wq  # (H, 1, K) the queries of the last token
y, cache = F.attention(q, k, v)  # (H, 1, K)
print("keys and values:", k.size + v.size, "numbers; latent vectors:", c.size)

# %% [markdown]
# **Question.** DeepSeek-V2 has 128 heads of width K = 128, and latent vectors of width 512. By which factor
# is $c$ smaller than all keys and values of a token? How many heads of keys and values would need the same
# memory in grouped-query attention?
#
# <details><summary>Answer</summary>
# Keys and values have 2 · 128 · 128 = 32,768 numbers, which is 64 times as many. One head of keys and values
# has 256 numbers, so the latent vector needs the memory of two heads.
# </details>

# %% [markdown]
# ## Attention without keys and values
#
# This saves memory, but it seems to cost time: each step would have to compute the keys and values of all
# earlier tokens again. It need not. The score of a query and a key is
#
# $$q \cdot k = q\, (c\, W^K)^\top = (q\, W^{K\top}) \cdot c$$
#
# So we can multiply the one query by $W^{K\top}$, instead of all latent vectors by $W^K$. The matrix is
# **absorbed** by the query. The values are no different: the output is a weighted mean of them, and
#
# $$\sum_s a_s\, (c_s W^V) = \Big(\sum_s a_s\, c_s\Big) W^V$$

# %%
absorbed = q @ wk.swapaxes(1, 2)  # (H, 1, C)
weights, _ = F.softmax(absorbed @ c.T / np.sqrt(K))  # (H, 1, S)
y_absorbed = (weights @ c) @ wv  # (H, 1, K)
print("difference:", f"{abs(y - y_absorbed).max():.0e}")

# %% tags=["check"]
assert_allclose(weights, cache.weights, rtol=1e-12)
assert_allclose(y_absorbed, y, rtol=1e-12, atol=1e-14)

# %% [markdown]
# The result is the same up to rounding, and so are the scores. So their scale is still $1 / \sqrt{K}$, though
# queries and keys have C numbers now. All heads attend to the same vectors: in decoding, multi-head latent
# attention is multi-query attention, and $c$ is both key and value.
#
# **Question.** The absorbed form needs more operations for each cached token: a dot product of C numbers for
# each head instead of K, and in DeepSeek-V2 C = 512 and K = 128. Why is it faster all the same?
#
# <details><summary>Answer</summary>
# A step of decoding is limited by the memory bandwidth (lesson 24.4, `24_4_what_a_kv_cache_costs_and_saves`).
# It reads 64 times fewer numbers, and uses each of them in all 128 heads.
# </details>

# %% [markdown]
# ## The positions
#
# Rotary positions rotate keys and queries. Let $R_s$ be the rotation of position s, as a matrix. The score of
# a query at position t and a key at position s is
#
# $$(q R_t) \cdot (c\, W^K R_s) = q\, R_t R_s^\top W^{K\top} c^\top$$
#
# Between $q$ and $c$ there is now a matrix that depends on the distance t − s, so there is no single matrix
# for the query to absorb. DeepSeek-V2 adds another part to queries and keys, of width R. Only this part is
# rotated. Its key is computed from $x$, and shared by all heads:
#
# $$k_h = [\,\mathrm{rotate}(x W^R);\ c\, W^K_h\,], \qquad q_h = [\,\mathrm{rotate}(x W^{QR}_h);\ x W^Q_h\,]$$
#
# The dot product of two joined vectors is the sum of the dot products of their parts. The rotated part
# compares positions, the other one contents, and the scale becomes $1 / \sqrt{R + K}$. The KV cache keeps C +
# R numbers for each token: $c$ and the rotated key. In DeepSeek-V2, R is 64.

# %%
R, T = 4, 7
rotary = RotaryPositions(T, R + K, rotated=R, dtype=np.float64)  # the first R of R + K columns
layer = MultiHeadLatentAttention(D, H, d_latent=C, rotary=rotary, rng=rng, dtype=np.float64)
x = rng.standard_normal((1, T, D))
whole, _ = layer.forward(x, mask=causal_mask(T, x))  # with keys and values

kv_cache = PreallocatedKVCache(T)
steps = [layer.decode_step(x[:, t : t + 1], kv_cache)[0] for t in range(T)]  # absorbed
print("difference:", f"{abs(whole - np.concatenate(steps, 1)).max():.0e}")
print("the KV cache:", kv_cache.k.shape, "instead of", (2, 1, H, T, K))

# %% tags=["check"]
assert_allclose(np.concatenate(steps, 1), whole, rtol=1e-12, atol=1e-12)
assert kv_cache.k.shape == (1, 1, T, R + C)
assert kv_cache.v.size == 0

# %% [markdown]
# Training computes keys and values, since all tokens are read at once, and decoding uses the absorbed form.
#
# In the backward pass, each part that is shared gets a sum. $c$ gets the gradients of the keys and values of
# all heads, and the rotated key gets those of its copies. You find the backward pass in
# `npformer/nn/attention/multi_head_latent.py`.

# %%
report = gradcheck(layer, x, mask=causal_mask(T, x))
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Loss and cache
#
# `npformer experiment caching` trains ten small GPTs, with the settings of the last model of lesson 24.3 and
# the same learning rate for all. This cell repeats one training.

# %%
trial = Trial("latent, 16 + 16", caching.LEARNING_RATE, caching.STEPS, 0)
again = caching.train_model(trial, text_dataset())
print(f"{again.valid_loss:.3f}; the file has {losses[again.model][0]:.3f}")

# %% tags=["check"]
assert abs(again.valid_loss - losses[again.model][0]) < 0.03

# %% [markdown]
# The next cell prints the mean loss over the seeds, and the mean difference from the first model, which has a
# key head for each query head, with its standard deviation over the seeds.

# %%
baseline = losses["4 key heads"]
parameters = {r.model: r.parameters for r in results}
print(f"{'':20} cached  parameters   loss  difference")
for stage in plan:
    loss, cached = losses[stage.name], caching.cached_numbers(stage.config)
    change = loss - baseline
    row = f"{stage.name:20} {cached:6} {parameters[stage.name]:11,}  {loss.mean():.3f}"
    print(f"{row}  {change.mean():+.3f} ± {change.std(ddof=1):.3f}")

# %% [markdown]
# "latent, 16 + 16" has latent vectors of width C = 16 and a rotated key of width R = 16 in each layer. It
# caches a quarter of what the first model caches, and its loss is the same up to the noise. One key head
# takes the same memory and has the same loss: with four heads, these models cannot be told apart. In the
# paper (appendix D), one key head is clearly worse than separate heads in models of 7 billion parameters, and
# in larger mixtures of experts latent vectors are better than separate heads.
#
# "latent, 24 + 8" caches as many numbers, but its loss is higher with each seed. A likely reason is that its
# rotated part has four pairs of numbers only:

# %%
angles = 64 * 10000.0 ** (-np.arange(0, 8, 2) / 8)  # of the last position of our context
print("turns within the context:", *(f"{turns:.2f}" for turns in angles / (2 * np.pi)))

# %% [markdown]
# Two of the four make less than a quarter of a turn, so little is left to tell positions apart.
#
# The last three models have two key heads, and parts of other models of 2025. QK-norm (Qwen3) normalizes each
# query and key. Gemma 3 has norms before and after each sublayer, too, which lowers the loss here. And in
# most of its layers, a token attends to a window only. With a window of 16 tokens in one of the two layers,
# the KV cache grows half as fast, and the loss does not rise. npformer's KV cache keeps the older tokens all
# the same, and masks them.
#
# **Question.** Five seeds and one learning rate: which differences in the table would you believe?
#
# <details><summary>Answer</summary>
# Those of "latent, 8 + 8" and of the two models with more norms: they are
# more than twice their standard deviation.
# </details>

# %% tags=["check"]
change = {name: loss - baseline for name, loss in losses.items()}
for name in ("2 key heads", "1 key head", "latent, 16 + 16", "latent, 48 + 16", "QK-norm"):
    assert abs(change[name].mean()) < 0.02
assert min(change["latent, 8 + 8"]) > 0.03
assert max(change["more norms"].max(), change["more norms, window"].max()) < -0.02
assert losses["latent, 24 + 8"].mean() - losses["latent, 16 + 16"].mean() > 0.03
cached = [caching.cached_numbers(stage.config) for stage in plan]
assert cached == [256, 128, 64, 128, 64, 64, 32, 128, 128, 64]

# %% [markdown]
# ## Summary
#
# - In multi-head latent attention, the keys and values of all heads are computed from one latent vector.
# - In decoding, the query absorbs the matrix of the keys, and the values' matrix is applied to the mean.
#   The result is the same, and the heads share all that is cached.
# - A rotation between the two matrices would prevent this. So a second part of queries and keys has the
#   positions, and all heads share its key.
# - The KV cache keeps C + R numbers for each token, instead of 2 · H · K.
# - In our experiment, a quarter of the cache gives the same loss up to the noise, with one key head as well.

# %% [markdown]
# ## Questions
#
# **Question.** In training, is multi-head latent attention cheaper than multi-head attention?
#
# <details><summary>Answer</summary>
# No. The maps to keys and values have fewer weights, but queries are
# wider, and each score has R more products.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 26` lists the exercises of this chapter.
#
# - `npformer exercise start absorbed-attention`: attend to latent vectors.
# - By hand: what is the score if R = 0, and what does such a layer know about positions?
#
# **Next**: lesson 27.1 (`27_1_lora`), which fine-tunes a model with one percent of its parameters.

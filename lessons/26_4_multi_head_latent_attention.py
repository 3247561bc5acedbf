# %% [markdown]
# # 26.4 · Multi-head latent attention
#
# *About 35 minutes. You need: rotary positions (lesson 23.2, `23_2_rotary_positions`), grouped-query
# attention (lesson 23.4, `23_4_grouped_query_attention`), how to compare models (lesson 24.3,
# `24_3_from_2017_to_llama`).*
#
# **After this lesson you can**
#
# - say what a KV cache keeps for each token with shared heads, and with latent vectors;
# - compute attention from latent vectors without computing any key or value;
# - explain why a separate part of queries and keys must carry the positions.
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
caption = "Small GPTs whose KV cache keeps heads, or latent vectors (24 + 8 is left out)"
show_figure(figure, "26_4_loss_by_cache", caption)

# %% [markdown]
# ## What has to be remembered?
#
# When a model continues many long texts at once, reading their KV caches takes most of the time (lesson 24.4,
# `24_4_what_a_kv_cache_costs_and_saves`). In grouped-query attention, several query heads share a head of
# keys and values, so that the KV cache is smaller. But shared heads can do less than separate ones.
# **Multi-head latent attention** (DeepSeek-V2, 2024) has a separate head of keys and values for each query
# head, and still caches less.
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
# Keys and values have 2 · 128 · 128 = 32,768 numbers, 64 times as many as $c$. One head of keys and values
# has 256 numbers, so the latent vector needs the memory of two heads.
# </details>

# %% [markdown]
# ## Attention without keys and values
#
# Latent vectors save memory, but they seem to cost time: must each step compute the keys and values of all
# earlier tokens again? No. The score of a query and a key is
#
# $$q \cdot k = q\, (c\, W^K)^\top = (q\, W^{K\top}) \cdot c$$
#
# So we can multiply the one query by $W^{K\top}$, instead of all latent vectors by $W^K$. The matrix is
# **absorbed** by the query. The output is a weighted mean of the values, and again one product is enough:
# $\sum_s a_s\, (c_s W^V) = (\sum_s a_s\, c_s)\, W^V$.

# %%
absorbed = q @ wk.swapaxes(1, 2)  # (H, 1, C)
weights, _ = F.softmax(absorbed @ c.T / np.sqrt(K))  # (H, 1, S)
y_absorbed = (weights @ c) @ wv  # (H, 1, K)
print("difference:", f"{abs(y - y_absorbed).max():.0e}")

# %% tags=["check"]
assert_allclose(weights, cache.weights, rtol=1e-12)
assert_allclose(y_absorbed, y, rtol=1e-12, atol=1e-14)

# %% [markdown]
# The result and the scores are the same up to rounding. So the scale is still $1 / \sqrt{K}$, though queries
# and keys have C numbers now. All heads attend to the same vectors: in decoding, multi-head latent attention
# is multi-query attention, and $c$ is both key and value.
#
# **Question.** Compared with attention to cached keys and values, the absorbed form needs more operations for
# each cached token: each head computes a dot product of C numbers instead of K. In DeepSeek-V2,
# C = 512 and K = 128. Why is the absorbed form faster all the same?
#
# <details><summary>Answer</summary>
# A step of decoding is limited by the memory bandwidth (lesson 24.4). The absorbed form reads 64 times fewer
# numbers, and uses each of them in all 128 heads.
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
# for the query to absorb. So DeepSeek-V2 adds a second part to queries and keys, of width R. Only this part
# is rotated. Its key is computed from $x$, and all heads share it:
#
# $$k_h = [\,\mathrm{rotate}(x W^R);\ c\, W^K_h\,], \qquad q_h = [\,\mathrm{rotate}(x W^{QR}_h);\ x W^Q_h\,]$$
#
# The dot product of two joined vectors is the sum of the dot products of their parts. The rotated part
# compares contents and positions, the other part contents alone. The scale becomes $1 / \sqrt{R + K}$. The KV
# cache keeps C + R numbers for each token: $c$ and the rotated key. In DeepSeek-V2, R is 64 (and queries
# have latent vectors, too).

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
# In training, a key serves the queries of all later tokens, so it pays to compute it once. Decoding uses the
# absorbed form.
#
# In the backward pass, $c$ gets the sum of the gradients from the keys and values of all heads. The rotated
# key gets the sum of the gradients of its copies. The code is in
# `npformer/nn/attention/multi_head_latent.py`.

# %%
report = gradcheck(layer, x, mask=causal_mask(T, x))
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Loss and cache
#
# `npformer experiment caching` trains ten small GPTs, each with five seeds, with the settings of the last
# model of lesson 24.3, but 400 steps instead of 600, and one learning rate for all. This cell repeats one
# training.

# %%
trial = Trial("latent, 16 + 16", caching.LEARNING_RATE, caching.STEPS, 0)
again = caching.train_model(trial, text_dataset())
print(f"{again.valid_loss:.3f}; the file has {losses[again.model][0]:.3f}")

# %% tags=["check"]
assert abs(again.valid_loss - losses[again.model][0]) < 0.03

# %% [markdown]
# The baseline is "4 key heads", with a key head for each query head. For each model, the next cell prints the
# mean loss, and the mean and standard deviation of the difference from the baseline, over the seeds.

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
# caches a quarter of what the baseline caches, and so does "1 key head". Up to the noise, both have the
# baseline's loss (the points at 64 in the picture). In models this small, the experiment cannot tell the two
# apart. In the paper (appendix D), one key head is clearly worse than separate heads in models of 7 billion
# parameters, and latent vectors are better than separate heads in larger mixtures of experts.
#
# "latent, 24 + 8" caches as many numbers as "latent, 16 + 16", but its loss is higher with each seed, by .04
# on average. More than half of this mean comes from a single seed, so the difference may be chance. Another
# possible reason is that its rotated part has only four pairs of numbers:

# %%
angles = 64 * 10000.0 ** (-np.arange(0, 8, 2) / 8)  # radians in the 64 positions of our context
print("turns within the context:", *(f"{turns:.2f}" for turns in angles / (2 * np.pi)))

# %% [markdown]
# Two of the four pairs make less than a quarter of a turn, so they hardly tell positions apart. (Its queries
# and keys are also shorter.) "latent, 8 + 8" has the same four pairs. So its higher loss need not come from
# the smaller cache.
#
# The last three models have two key heads. With QK-norm, each query and key is normalized (Qwen3, 2025). The
# model "more norms" also has a norm after each sublayer (Gemma 2, 2024) and embeddings multiplied by
# $\sqrt{D}$, as in Gemma. Its loss is lower than that of "QK-norm" with four of five seeds. In most layers of
# Gemma 3 (2025), a token attends only to a window. With a window of 16 tokens in one of two layers, the KV
# cache can grow half as fast, and the mean loss does not rise. (npformer's KV cache still keeps the older
# tokens, and masks them.)
#
# **Question.** The table has five seeds and one learning rate. Which differences would you believe? A mean of
# five numbers is uncertain by about their standard deviation divided by $\sqrt{5}$.
#
# <details><summary>Answer</summary>
# Those of "latent, 8 + 8" and of the two models with more norms: they are more than seven times as large as
# this uncertainty. (The models with more norms differ from the baseline in their key heads and in QK-norm,
# too.) That of "latent, 24 + 8" is three times as large, which may be chance among nine differences. Other
# learning rates might change all of them.
# </details>

# %% tags=["check"]
change = {name: loss - baseline for name, loss in losses.items()}
for name in ("2 key heads", "1 key head", "latent, 16 + 16", "latent, 48 + 16", "QK-norm"):
    assert abs(change[name].mean()) < 0.02
assert min(change["latent, 8 + 8"]) > 0.03
assert max(change["more norms"].max(), change["more norms, window"].max()) < -0.02
assert losses["latent, 24 + 8"].mean() - losses["latent, 16 + 16"].mean() > 0.03
apart = losses["latent, 24 + 8"] - losses["latent, 16 + 16"]
assert apart.min() > 0
assert 0.5 < apart.max() / apart.sum() < 0.56
assert (losses["more norms"] < losses["QK-norm"]).sum() == 4
assert losses["more norms, window"].mean() < losses["more norms"].mean()
ratios = {
    name: abs(of.mean()) / (of.std(ddof=1) / np.sqrt(5))
    for name, of in change.items()
    if name != "4 key heads"
}
for name in ("latent, 8 + 8", "more norms", "more norms, window"):
    assert ratios.pop(name) > 7
assert 3 < ratios.pop("latent, 24 + 8") < 3.5
assert max(ratios.values()) < 1
cached = [caching.cached_numbers(stage.config) for stage in plan]
assert cached == [256, 128, 64, 128, 64, 64, 32, 128, 128, 64]

# %% [markdown]
# ## Summary
#
# - In multi-head latent attention, the keys and values of all heads are computed from one latent vector.
# - In decoding, the query absorbs the matrix of the keys, and the matrix of the values is applied to the
#   mean. The heads share all that is cached.
# - A query cannot absorb a matrix with a rotation behind it. So a separate part of queries and keys carries
#   the positions, and all heads share its key.
# - The KV cache keeps C + R numbers for each token, instead of 2 · H · K.
# - In our experiment, a quarter of the cache gives the same loss up to the noise, with "latent, 16 + 16" and
#   also with one key head.

# %% [markdown]
# ## Questions
#
# **Question.** In training, does latent attention need fewer products than multi-head attention? Take our
# layer, which computes the queries from $x$, with the sizes of DeepSeek-V2 and D = 5120.
#
# <details><summary>Answer</summary>
# It depends on the length. For each token, keys and values need 20 million products instead of 168 million,
# and queries 42 million more. For each earlier token, each of the 128 heads needs R = 64 more products. So
# up to 13,000 earlier tokens, latent attention needs fewer.
# </details>

# %% tags=["check"]
D, H, K, C, R = 5120, 128, 128, 512, 64
saved = 2 * D * H * K - (D * (C + R) + 2 * C * H * K) - D * H * R
assert round(D * H * R / 1e6) == 42
assert round(2 * D * H * K / 1e6) == 168
assert round((D * (C + R) + 2 * C * H * K) / 1e6) == 20
assert round(saved / (H * R), -3) == 13_000

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 26` lists the exercises of this chapter.
#
# - `npformer exercise start absorbed-attention`: attend to latent vectors.
# - By hand: what does such a layer know about positions if R = 0?
#
# **Next**: lesson 27.1 (`27_1_lora`), which fine-tunes a model with one percent of its parameters.

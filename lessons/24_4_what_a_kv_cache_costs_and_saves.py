# %% [markdown]
# # 24.4 · What a KV cache costs and saves
#
# *About 40 minutes. You need: the KV cache of a translator (lesson 14.4, `14_4_the_kv_cache`), arithmetic
# intensity (lesson 16.1, `16_1_operations_and_memory_bandwidth`), grouped-query attention and sliding
# windows (lesson 23.4, `23_4_grouped_query_attention`), a GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`).*
#
# **After this lesson you can**
#
# - count the operations of a GPT that writes, with and without a KV cache;
# - compute the bytes of a KV cache, and the bytes that are written when it grows;
# - explain why a GPT that writes is limited by the memory bandwidth, and what shared heads change.
#
# `language model: ids → embedding → [LAYERS] → norm → linear → softmax`

# %%
from time import perf_counter

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import functional as F
from npformer.functional.masks import causal_mask
from npformer.learn.course import show_figure
from npformer.learn.course.metered import MeteredGPT, cost_of
from npformer.learn.course.shapes import shape_flow
from npformer.learn.figures import draw
from npformer.models.gpt import GPT, GPTConfig
from npformer.nn import KVCache, PreallocatedKVCache
from npformer.plots import curves

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16
rng = np.random.default_rng(24)

# %% [markdown]
# ## Prefill and decode steps
#
# A translator reads its source with an encoder. A GPT has no encoder: its layers read the prompt as well. All
# tokens of the prompt are known, so one pass can read them together. This pass stores their keys and values
# in the KV cache. It is called the **prefill**.
#
# After the prefill, the model writes one token after the other. A **decode step** reads the newest token,
# appends its key and value in each layer, and predicts the next token.

# %% tags=["plot"]
figure = shape_flow(
    "prompt . logits token next_logits \n . cache . . .",
    {
        "logits": "prefill: prompt",
        "cache": "write: prompt",
        "token": "choose: logits",
        "next_logits": "decode step: token cache",
    },
    {"prompt": "B P", "cache": "S K", "logits": "B V", "token": "1 B", "next_logits": "B V"},
)
show_figure(
    figure,
    "24_4_shapes",
    "The prefill writes P positions of the cache; a decode step appends one and reads all",
)

# %% [markdown]
# In npformer, one function makes prefills and decode steps: `decode_step` takes one token or several. The
# cell makes an untrained GPT in which 8 query heads share 2 heads of keys and values. The GPT computes 64
# predictions without a cache, and the same predictions with a cache. The cell measures both times on your
# computer.

# %%
config = GPTConfig.preset("gpt-shakespeare", n_heads=8, n_kv_heads=2)
model = GPT(config, rng=rng, dtype=np.float64)
ids = rng.integers(0, config.vocab_size, (1, 127))  # (B, T)
P = 64

started = perf_counter()  # without a cache: read the whole text again for each token
anew = [model.decode_step(ids[:, :t], 0, model.empty_kv_cache())[0] for t in range(P, 128)]
between = perf_counter()
kv_cache = model.empty_kv_cache()
cached = [model.decode_step(ids[:, :P], 0, kv_cache)[0]]  # prefill: (B, V)
cached += [model.decode_step(ids[:, t], t, kv_cache)[0] for t in range(P, 127)]  # steps
ended = perf_counter()
print(f"{between - started:.2f} seconds without the cache, {ended - between:.2f} with it")

# %% tags=["check"]
assert_allclose(cached, anew, atol=1e-12)
assert_allclose(np.stack(cached, 1), model.forward(ids)[0][:, P - 1 :], atol=1e-12)
assert [each.length for each in kv_cache] == [127] * config.n_layers

# %% [markdown]
# The logits are the same up to rounding.
#
# **Question.** The prefill computes the vectors of all P positions, but only the logits of the last position.
# Why?
#
# <details><summary>Answer</summary>
# The logits at a position predict the next token. Inside the prompt, the next token is known. Only the token
# after the prompt must be predicted.
# </details>

# %% [markdown]
# ## The operations
#
# We count the multiplications for one text, as in lesson 14.4. D is the width of the model, F that of the
# feed-forward network, and N the number of layers. The G key heads have $E = G K$ numbers together. For each
# position, a layer multiplies:
#
# | part | multiplications |
# |---|---|
# | queries, and the output of attention | $2 D^2$ |
# | keys and values | $2 D E$ |
# | gated feed-forward network | $3 D F$ |
#
# In each layer, each pair of a query and a key costs another $2 D$. The logits of a position cost $D V$.

# %% [markdown]
# Let $M = N (2 D^2 + 2 D E + 3 D F)$. Then the prefill of P tokens costs
#
# $$C_{\mathrm{prefill}}(P) = M P + 2 N D P^2 + D V$$
#
# A decode step uses S keys, including the new key, and costs
#
# $$C_{\mathrm{step}}(S) = M + 2 N D S + D V$$
#
# The $P^2$ pairs include the pairs that the mask forbids. Without a cache, each prediction costs as much as a
# prefill of S tokens. The class `MeteredGPT` is a GPT that counts its multiplications. The cell prints the
# costs without and with a cache.

# %%
metered = MeteredGPT(config)
N, D, V, E = config.n_layers, config.d_model, config.vocab_size, config.key_heads * config.d_head
M = N * (2 * D * D + 2 * D * E + 3 * D * config.hidden_width)


def costs(B, S):
    """Return the cost of a prefill of S tokens, and of the decode step for the last of them."""
    batch, kv_cache = rng.integers(0, V, (B, S)), metered.empty_kv_cache()
    prefill = cost_of(metered.decode_step, batch, 0, metered.empty_kv_cache())
    metered.decode_step(batch[:, :-1], 0, kv_cache)
    return prefill, cost_of(metered.decode_step, batch[:, -1], S - 1, kv_cache)


for S in (16, 32, 64, 128):
    without, step = (cost.multiplications for cost in costs(1, S))
    print(f"{S:3} keys: {without:11,} without, {step:7,} with it, {without / step:5.1f} times")

# %% tags=["check"]
for S in (16, 32, 64, 128):
    prefill, step = costs(1, S)
    assert prefill.multiplications == M * S + 2 * N * D * S * S + D * V
    assert step.multiplications == M + 2 * N * D * S + D * V
    assert 0.98 * S < prefill.multiplications / step.multiplications <= S
assert sum(p.value.size for p in model.parameters() if p.value.ndim == 2) == M + D * V

# %% [markdown]
# So with a cache, a prediction needs almost S times fewer multiplications. Two properties of
# $C_{\mathrm{step}}$ are important:
#
# - $M + D V$ is the number of weights in all matrices. So a token costs one multiplication for each weight.
# - The number of key heads occurs only in $M$. Shared heads save few multiplications.
#
# The ratio of the two times is usually smaller than the ratio of the multiplications. In this small model,
# much of the time is spent in Python code. In a large model there is another reason, which you will see
# below.
#
# ## The memory of the cache
#
# Lesson 23.4 counted the numbers in the cache of one text. With B texts, and b bytes for each number, a cache
# with room for S positions needs
#
# $$\mathrm{bytes} = 2 \cdot N \cdot G \cdot K \cdot S \cdot B \cdot b$$
#
# The cell measures the arrays of real caches with 8, 2 and 1 heads of keys and values.

# %%
B, S, measured = 4, 100, {}
for G in (8, 2, 1):
    small = GPT(config.replace(n_kv_heads=G))
    _, kv_cache = small.decode_step(np.zeros((B, S), int), 0, small.empty_kv_cache(S))
    measured[G] = sum(each.nbytes for each in kv_cache)
    print(f"G = {G}: k of a layer {kv_cache[0].k.shape}, {measured[G]:9,} bytes in all layers")

# %% tags=["check"]
for G, n_bytes in measured.items():
    assert n_bytes == 2 * N * G * config.d_head * S * B * 4  # float32 has four bytes
assert measured[8] == 4 * measured[2] == 8 * measured[1]

# %% tags=["plot"]
caption = "Eight query heads on two key heads need a quarter of the memory, and on one an eighth"
show_figure(draw("F61").figure, "24_4_bytes", caption)

# %% [markdown]
# ## Room for later tokens
#
# How does a cache grow? The class `KVCache` of lesson 14.4 concatenates: each step makes a new array, and
# copies all earlier keys and values into it. `PreallocatedKVCache` allocates the room for all positions at
# the start. A step then writes only the new position, in place.
#
# | | a step with three positions in the cache | writes |
# |---|---|---|
# | concatenate | copies k₁, k₂ and k₃ to a new array, and appends k₄ | 4 positions |
# | preallocate | writes k₄ into the free place of the same array | 1 position |

# %% [markdown]
# Let one position have $c$ bytes. For n positions, the bytes that concatenation writes are
#
# $$\sum_{t=1}^{n} t\, c = \frac{n (n + 1)}{2}\, c$$
#
# With preallocated room, only $n\, c$ bytes are written. The cell counts the bytes. If the new array does not
# share its memory with the old one, all numbers of the new array were written.

# %%
new_k = np.ones((1, 2, 1, 16), np.float32)  # (B, G, 1, K)
c, n = 2 * new_k.nbytes, 1000  # the values have as many bytes as the keys
kinds = {"concatenated": KVCache(new_k, new_k)}
kinds["preallocated"] = PreallocatedKVCache(n).extended(new_k, new_k)
written = dict.fromkeys(kinds, c)
for name, kv_cache in kinds.items():
    for _ in range(n - 1):
        old, kv_cache = kv_cache.k, kv_cache.extended(new_k, new_k)
        in_place = np.shares_memory(old, kv_cache.k)
        written[name] += c if in_place else 2 * kv_cache.k.nbytes
print(f"bytes written for {n} positions of {c} bytes:", written)

# %% tags=["check"]
assert written["concatenated"] == n * (n + 1) // 2 * c
assert written["preallocated"] == n * c == kinds["preallocated"].nbytes

# %% [markdown]
# **Question.** What is the disadvantage of preallocated room?
#
# <details><summary>Answer</summary>
# The memory is reserved before it is used. If a text ends early, a part of its room is never used. So
# npformer allocates no more than the prompt and the requested tokens need.
# </details>
#
# A sliding window (lesson 23.4) limits the memory of a cache. Only the last W keys are used, so W places are
# enough. The key of position t goes to place t mod W, and replaces the key that leaves the window. This is a
# **ring buffer**.

# %%
W, T = 4, 11
q, k, v = rng.standard_normal((3, T, 8))  # (T, K) each
ring_k, ring_v, outputs = k[:W].copy(), v[:W].copy(), []  # (W, K)
for t in range(T):
    ring_k[t % W], ring_v[t % W] = k[t], v[t]
    outputs.append(F.attention(q[t : t + 1], ring_k[: t + 1], ring_v[: t + 1])[0][0])  # (K,)
print("positions in the ring at the end:", sorted(range(T - W, T), key=lambda t: t % W))

# %% tags=["check"]
assert_allclose(outputs, F.attention(q, k, v, causal_mask(T, q, window=W))[0], rtol=1e-12)

# %% [markdown]
# The keys are no longer in the order of their positions. But the output is a weighted sum, which does not
# depend on the order of its terms. And rotary positions rotate the keys before they are stored. (The caches
# of npformer keep all keys, and the mask hides the old ones.)
#
# ## Why a decode step waits for the memory
#
# A step must read all weights, and the keys and values of all positions. The weights are read once for the
# whole batch, and each text has its own cache. Let $A = M + D V$ be the number of weights. Then the
# arithmetic intensity of a step, in operations per byte, is
#
# $$I = \frac{2 B\,(A + 2 N D S)}{b\,(A + 2 N E S B)}$$
#
# The factor 2 in front counts a multiplication and an addition. `MeteredGPT` also counts the bytes of the
# weights, keys and values in its products, in float32.

# %%
print("texts   prefill   decode step   (operations per byte)")
for B in (1, 4, 16, 64):
    prefill, step = costs(B, 128)
    print(f"{B:5} {prefill.intensity:9.1f} {step.intensity:13.2f}")

# %% tags=["check"]
S, A, b = 128, M + D * V, 4
for B in (1, 16):
    prefill, step = costs(B, S)
    assert_allclose(step.intensity, 2 * B * (A + 2 * N * D * S) / (b * (A + 2 * N * E * S * B)))
    assert prefill.intensity > 30 * step.intensity
assert 0.5 < costs(1, S)[1].intensity < 0.6

# %% [markdown]
# For one text, a step does about half an operation per byte: it reads the 4 bytes of a weight for one
# multiplication and one addition. A prefill uses each weight for all tokens of the prompt. Lesson 16.1 has a
# question about a computer. In the time that its memory needs for one byte, it does 5 operations. On this
# computer, the memory bandwidth limits every computation with fewer than 5 operations per byte. So it limits
# a step with few texts. A prefill is limited by the processor.
#
# **Question.** More texts in a batch increase the intensity of a step. Does the intensity grow without limit?
#
# <details><summary>Answer</summary>
# No. For large B, the bytes of the weights are negligible compared with the bytes of the caches. Then
# $I \approx (A + 2 N D S) / (b N E S)$, which does not contain B.
# </details>
#
# If R query heads share each key head, E is R times smaller. E is in the denominator of the limit, so the
# limit becomes almost R times higher. This is the main advantage of shared heads.
#
# ## Two models of today
#
# Llama 2 7B and Llama 3 8B (Touvron et al. 2023, Grattafiori et al. 2024) have the same width and the same
# number of layers. Llama 2 has 32 key heads, and Llama 3 has 8. The numbers in the cell are from the files
# `config.json` that were published with the weights.
#
# The cell computes the shortest possible time on an A100, a processor of NVIDIA. By its data sheet, it has a
# memory of $80 \cdot 10^9$ bytes. It reads $2.039 \cdot 10^{12}$ bytes and does $312 \cdot 10^{12}$
# operations per second.

# %%
parts = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False}
shape = parts | {"d_model": 4096, "n_layers": 32, "n_heads": 32, "tied": False}
llama_2 = GPTConfig(**shape, vocab_size=32_000, d_ff=11_008)
llama_3 = GPTConfig(**shape, vocab_size=128_256, d_ff=14_336, n_kv_heads=8)


def step_cost(config, S, B, b=2):
    """Return the operations of a decode step, and the bytes of the weights and of the caches."""
    A = config.count_parameters() - config.vocab_size * config.d_model  # without the embedding
    numbers = 2 * config.n_layers * config.key_heads * config.d_head * S * B
    return 2 * B * (A + 2 * config.n_layers * config.d_model * S), b * A, b * numbers


for config in (llama_2, llama_3):
    operations, weights, cache = step_cost(config, S=4096, B=1)
    print(f"{config.count_parameters():,} parameters, {weights / 1e9:.1f} · 10⁹ bytes to read")
    print(f"  cache: {cache // 4096:,} bytes for a token, {cache / 2**30} GiB for 4096 tokens")
    print(f"  a step reads the bytes in {(weights + cache) / 2.039e9:.1f} ms", end="")
    print(f" and computes for {operations / 312e9:.2f} ms")
    n_texts = (80e9 - 2 * config.count_parameters()) // cache
    print(f"  80 · 10⁹ bytes hold the model and the caches of {n_texts:.0f} such texts")

# %% tags=["check"]
assert llama_2.count_parameters() == 6_738_415_616
assert llama_3.count_parameters() == 8_030_261_248
of_token = [step_cost(config, 1, 1)[2] for config in (llama_2, llama_3)]
assert of_token == [512 * 1024, 128 * 1024]
for config in (llama_2, llama_3):
    operations, weights, cache = step_cost(config, S=4096, B=1)
    assert (weights + cache) / 2.039e12 > 100 * operations / 312e12
    assert (80e9 - 2 * config.count_parameters()) // cache == {32: 30, 8: 119}[config.key_heads]

# %% [markdown]
# For one text, both models read bytes for more than 100 times as long as they compute. Because of its
# smaller cache, Llama 3 can write about four times as many texts at once. The figure shows what a larger
# batch changes, if there is memory for it. The curve "1 key head" shows a Llama 3 8B that is changed to have
# one key head.

# %% tags=["plot"]
texts = 2 ** np.arange(11)  # (P,)
rows = []
for config in (llama_2, llama_3, llama_3.replace(n_kv_heads=1)):
    found = [step_cost(config, 4096, B) for B in texts.tolist()]
    rows.append([operations / (weights + cache) for operations, weights, cache in found])
rows.append([312e12 / 2.039e12] * len(texts))
figure = curves(
    np.array(rows),
    texts,
    labels=["32 key heads", "8 key heads", "1 key head", "limit of the A100"],
    xlabel="texts of 4096 tokens in a batch",
    ylabel="operations per byte",
    xscale="log",
    yscale="log",
)
show_figure(figure, "24_4_intensity", "Below the upper line, a decode step waits for the memory")

# %% tags=["check"]
assert max(rows[0]) < 8 < 30 < max(rows[1]) < rows[3][0] < max(rows[2])
assert round(rows[3][0]) == 153

# %% [markdown]
# With 32 key heads, the intensity stays below 8 for all of these batches. With 8 key heads, it reaches 30. On
# the A100, a step is limited by the processor if it has at least 153 operations per byte. Only the curve with
# a single key head reaches this number.
#
# **Your turn.** In the terminal, print the costs of a step for 16 texts of 8192 tokens with
# `!step_cost(llama_3, 8192, 16)`. The three numbers are operations, bytes of the weights, and bytes of the
# caches.

# %% [markdown]
# **In 2025**, servers keep caches in small pages (vLLM), and in five of six layers Gemma 3 reads only the
# last 1,024 positions.

# %% [markdown]
# ## Summary
#
# - The prefill reads the prompt in one pass, and a decode step reads one token and all earlier keys.
# - A decode step needs one multiplication for each weight and 2·N·D for each key. Without a cache, a
#   prediction needs almost S times as many multiplications.
# - The cache has 2·N·G·K·S·B·b bytes, so 2 key heads need a quarter of the memory of 8 key heads.
# - Concatenation writes n (n + 1) / 2 positions for n tokens, and preallocated room writes n.
# - A step with few texts is limited by the memory bandwidth, and shared key heads raise the arithmetic
#   intensity of this step.

# %% [markdown]
# ## Questions
#
# **Question.** The numbers of a cache can be stored with one byte instead of two. Which costs change?
#
# <details><summary>Answer</summary>
# The bytes of the cache are halved, so a step reads fewer bytes, and more texts fit into the memory. The
# multiplications and the bytes of the weights stay the same.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 24` lists the exercises of this chapter.
#
# - `npformer exercise start cache-bytes`: compute the bytes of the KV cache of a GPT.
# - `npformer exercise start append-in-place`: write new keys and values into preallocated room.
#
# **Next**: lesson 24.5 (`24_5_scaling`), which measures how the loss falls with larger models and more text.
# The route for engineers ends here.

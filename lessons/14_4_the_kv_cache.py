# %% [markdown]
# # 14.4 · The KV cache
#
# *About 35 minutes. You need: the decoder layer and the memory (lessons 11.4, `11_4_the_decoder_layer`, and
# 11.5, `11_5_one_memory_for_all_layers`), greedy search (lesson 14.1, `14_1_greedy_search_and_beam_search`).*
#
# **After this lesson you can**
#
# - explain which results of a decoding step can be used again in all later steps;
# - decode with a KV cache, and test that it changes no translation;
# - compute how many multiplications the cache saves.
#
# `decoding: encoder → [DECODER] → softmax → search → translation`

# %%
import time

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, show
from npformer.data import END, START, make_batch, pad
from npformer.generation import CachedState, PrefixState, beam_search, greedy
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import partly_trained
from npformer.plots import curves

threadpool_limits(1, user_api="blas")  # one thread is fastest for small products

# %% [markdown]
# ## The same work again and again
#
# The loop of lesson 14.1 passes all tokens so far through the model at each step. At step t, these are t
# positions. But the search uses only the logits of the last position. The other t − 1 positions were already
# computed in earlier steps.
#
# Do their results change when a new token is appended? The cell tests this with the small translator of
# lesson 14.2 (`14_2_exposure_bias_and_search_errors`). It computes the logits for three tokens and for four
# tokens of two sentences.

# %%
model, fr, en, _, test = partly_trained()
source = pad([[*ids, END] for ids, _ in test])  # (B, S)
batch = make_batch(test)
three, _ = model.forward(source[:2], batch.target_in[:2, :3])  # (2, 3, V)
four, tree = model.forward(source[:2], batch.target_in[:2, :4])  # (2, 4, V)
print(f"largest difference in the first three positions: {abs(four[:, :3] - three).max():.0e}")

# %% tags=["check"]
assert_allclose(four[:, :3], three, rtol=1e-9, atol=1e-11)

# %% [markdown]
# The logits of the first three positions do not change. The reason is the causal mask of the decoder. In the
# self-attention of the first layer, the output of position $s$ is a weighted sum over the positions up to
# $s$:
#
# $$z_s = \sum_{r \le s} p_{sr}\, v_r, \qquad p_{sr} = \operatorname{softmax}_r(q_s \cdot k_r / \sqrt{K})$$
#
# Here K is the width of a head. No later token occurs in this formula. All other parts of the layer compute
# each position separately: the norms, the feed-forward network and the attention to the encoder
# (cross-attention). So the output of the first layer at position $s$ stays the same. It is the input of the
# second layer, so the same holds there, and so on for all layers.
#
# **Question.** Which arrays of the earlier positions does the new position need in a layer? Queries, keys,
# values or outputs?
#
# <details><summary>Answer</summary>
# Only their keys and values. The new position has its own query, which is compared with all keys. The earlier
# queries belong to earlier outputs, which are not needed again.
# </details>
#
# ## Keep the keys and the values
#
# So it is enough to store the keys and the values of all earlier positions, in each layer. This store is the
# **KV cache**. A step then computes a single position.

# %% [markdown]
# The picture shows one step of self-attention in one layer. The new token is number t. In the comments below,
# B is the number of sentences and H the number of heads.

# %% tags=["plot"]
figure = shape_flow(
    ". q weights y \n x . . . \n cache kv . .",
    {
        "q": "· W: x",
        "kv": "append: x cache",
        "weights": "softmax: q kv",
        "y": "mean: weights kv",
    },
    {"x": "1 D", "cache": "t K", "q": "1 K", "kv": "t K", "weights": "1 t", "y": "1 K"},
)
show_figure(
    figure,
    "14_4_shapes",
    "One head, one new token x: its key and value are appended to those in the KV cache",
)

# %% [markdown]
# In the cross-attention, keys and values come from the output of the encoder. They are the same at every
# step. So they are computed once at the start.
#
# The class `CachedState` of the package does both. Its function `decode_step` takes the newest token of each
# sentence, and returns the logits for the next one. The cell passes four tokens through it, and shows the
# cache of the first layer.

# %%
state = CachedState(model, source[:2])  # runs the encoder, and projects its output
for token in batch.target_in[:2, :4].T:  # (B,) the start symbol and three tokens
    step_logits = state.decode_step(token)  # (B, V)
cache = state.kv_cache[0]  # layer 0
show(cache)
difference = abs(step_logits - four[:, -1]).max()
print(f"largest difference from the logits of the whole forward pass: {difference:.0e}")

# %% tags=["check"]
assert (batch.target_in[:2, 0] == START).all()
assert_allclose(step_logits, four[:, -1], rtol=1e-9, atol=1e-11)
_, k_whole, v_whole, *_ = tree.decoder[0].self_attention.attention
assert_allclose(cache.k, k_whole, atol=1e-12)  # (B, H, T, K)
assert_allclose(cache.v, v_whole, atol=1e-12)

# %% [markdown]
# The results are equal except for rounding. They are not exactly equal, because a product with one row may
# add its terms in another order than a product with four rows. The decisions of the search are the same. The
# cell tests this with all 300 sentences for greedy search, and with 50 sentences for beam search.

# %% tags=["check"]
translations = [greedy(model, source, max_length=12, cached=cached) for cached in (False, True)]
assert translations[0] == translations[1]
slow, fast = (beam_search(model, source[:50], max_length=12, cached=c) for c in (False, True))
assert [[y.ids for y in ys] for ys in slow] == [[y.ids for y in ys] for ys in fast]
print("the same translations with and without the cache")

# %% [markdown]
# In beam search, several partial translations (hypotheses) may continue the same prefix. Each of them then
# gets a copy of the keys and values of this prefix (`state.select`).
#
# ## How much does the cache save?
#
# We count the multiplications for one sentence with a decoder of one layer. D is the width of the model, and
# F the width of the feed-forward network. S is the length of the source, and V the size of the vocabulary.
#
# For one position of the decoder:
#
# - q, k, v and the output of self-attention: $4 D^2$;
# - q and the output of cross-attention: $2 D^2$;
# - scores and weighted sum over the S positions of the source: $2 D S$;
# - the feed-forward network: $2 D F$, and the logits: $D V$.
#
# The sum of these is $P = 6 D^2 + 2 D S + 2 D F + D V$.
#
# **Question.** Cross-attention also needs keys and values. Why are they not part of $P$?
#
# <details><summary>Answer</summary>
# They are computed from the source, and not from a position of the decoder. So they belong to the cost of the
# source.
# </details>
#
# In self-attention, each pair of a query and a key costs $2 D$ more: $D$ for the score and $D$ for the
# weighted sum.
#
# The output of the encoder, with its keys and values, costs E multiplications each time it is computed:
#
# $$E = S\,(4 D^2 + 2 D F) + 2 D S^2 + 2 D^2 S$$
#
# The first two terms belong to the encoder layer, and the last one to the keys and values of the
# cross-attention.
#
# Now let the translation have T tokens. **With the cache**, the source is computed once. Step t computes one
# position and t pairs:
#
# $$\begin{aligned}
# C_{\mathrm{cached}} &= E + \sum_{t=1}^{T} (P + 2 D t) \\
# &= E + P T + 2 D \cdot \frac{T (T + 1)}{2}
# \end{aligned}$$
#
# **Without the cache**, step t computes the source, t positions and t² pairs:
#
# $$\begin{aligned}
# C_{\mathrm{uncached}} &= \sum_{t=1}^{T} (E + P t + 2 D t^2) \\
# &= E T + P \cdot \frac{T (T + 1)}{2} + 2 D \cdot \frac{T (T + 1)(2 T + 1)}{6}
# \end{aligned}$$

# %% [markdown]
# **Question.** How do the two counts grow with T, if T is very large? And for usual sentences?
#
# <details><summary>Answer</summary>
# For very large T, the last terms are the largest: T² with the cache, and T³ without it. But P contains D².
# So the last terms are the largest only if T is many times D. For usual sentences, the middle terms are
# larger: T with the cache, and T² without it.
# </details>
#
# To check the formulas, we let the arrays themselves count. The class `Counted` is an array that counts the
# multiplications of each matrix product. We turn all parameters of a model into such arrays. The parameters
# are random, since they do not change the count.

# %%


class Counted(np.ndarray):
    """An array that counts the multiplications of every matrix product it takes part in."""

    done = 0

    def __matmul__(self, other):
        y = np.matmul(self, other)
        Counted.done += y.size * self.shape[-1]
        return y

    def __rmatmul__(self, other):
        y = np.matmul(other, self)
        Counted.done += y.size * other.shape[-1]
        return y


counting = Transformer(model.config, rng=np.random.default_rng(0), dtype=np.float64)
for parameter in counting.parameters():
    parameter.value = parameter.value.view(Counted)


def decode(kind, model, steps):
    """Decode `steps` tokens of one sentence. Return the multiplications and the seconds."""
    Counted.done, started = 0, time.perf_counter()
    state = kind(model, source[:1, :5])  # (1, S)
    for _ in range(steps):
        state.decode_step(np.array([7]))  # any token
    return Counted.done, time.perf_counter() - started


# %% [markdown]
# The cell decodes with `CachedState` and with `PrefixState`, which has no cache. It prints the
# multiplications in millions, and the seconds on your computer.

# %%
lengths = np.array([1, 2, 4, 8, 16, 32, 64, 128])
counts = np.zeros((2, len(lengths)))  # with the cache, without it
print("  T   cached   uncached   ratio   seconds cached   uncached")
for i, T in enumerate(lengths.tolist()):
    counts[:, i] = [decode(kind, counting, T)[0] for kind in (CachedState, PrefixState)]
    clock = [decode(kind, model, T)[1] for kind in (CachedState, PrefixState)]
    a, b = counts[:, i] / 1e6
    print(f"{T:3} {a:7.2f}M {b:9.2f}M {b / a:7.1f} {clock[0]:16.4f} {clock[1]:10.4f}")

# %% tags=["check"]
D, F, S, V = 32, 64, 5, len(en)
P = 6 * D * D + 2 * D * S + 2 * D * F + D * V
E = S * (4 * D * D + 2 * D * F) + 2 * D * S * S + 2 * D * D * S
for T, cached, uncached in zip(lengths.tolist(), *counts, strict=True):
    assert cached == E + P * T + 2 * D * T * (T + 1) // 2
    assert uncached == E * T + P * T * (T + 1) // 2 + 2 * D * T * (T + 1) * (2 * T + 1) // 6
assert_allclose((counts[1] / counts[0])[[4, 7]], [9.6, 69], rtol=0.01)
slopes = np.log2(counts[:, -1] / counts[:, -2])  # from T = 64 to T = 128
assert_allclose(slopes, [1.1, 2.1], atol=0.05)
print("the counts are those of the formulas")

# %% tags=["plot"]
figure = curves(
    counts,
    lengths,
    labels=["cached", "not cached"],
    xlabel="tokens T",
    ylabel="multiplications",
    xscale="log",
    yscale="log",
)
caption = "On log scales, the slope at the right end is 1.1 with the cache and 2.1 without it"
show_figure(figure, "14_cost", caption)

# %% [markdown]
# The counts agree exactly with the formulas. For 16 tokens, the cache saves a factor of 9.6, and for 128
# tokens a factor of 69. On logarithmic scales, the slope of a curve is the exponent of T. The slopes are
# close to 1 and 2, so the middle terms of the formulas are still the largest.
#
# The ratio of the seconds is usually smaller. This model is so small that most of the time is not spent in
# matrix products, but in the Python code around them.
#
# **Your turn.** In the terminal, let the model decode a longer sentence with
# `!decode(CachedState, counting, 100)`.

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* says of the keys and values of the decoder's second attention: "K = V = the decoder's
# >   output". But they are computed from the output of the encoder. They do not change while a sentence is
# >   decoded. In npformer, `project_memory` computes them once.

# %% [markdown]
# ## Summary
#
# - In a causal decoder, the results of a position do not change when tokens are appended.
# - A new position needs only the keys and values of earlier positions; the KV cache stores them for each
#   layer.
# - Keys and values of the cross-attention come from the encoder, and are computed once for each sentence.
# - For usual lengths, the number of multiplications grows as T with the cache and as T² without it.
# - The cache changes the results only by rounding, so the translations are the same.

# %% [markdown]
# ## Questions
#
# **Question.** How many numbers does the KV cache contain for one sentence of T tokens, with L layers of
# width D?
#
# <details><summary>Answer</summary>
# 2 · L · T · D: a key and a value for each layer and token. All heads of a layer together have the width D.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 14` lists the exercises of this chapter.
#
# - `npformer exercise start cached-step`: compute self-attention for one new position with a KV cache.
#
# **Next** on the route for engineers: lesson 23.1 (`23_1_rms_norm`), the first of the parts in which today's
# models differ from the Transformer of 2017. Off the route: lesson 15.1 (`15_1_tokens_that_heads_attend_to`),
# which examines the attention heads of the trained translator.

# %% [markdown]
# # 21 · Where a word is, and when
#
# *30 minutes to read, 6 seconds to run. Lesson 3 for positions, lesson 5 for attention's gradient, lesson 6
# for masks, lessons 10 and 11 for the stacks.*
#
# **The question.** The Transformer knows *where* a word is because a vector for its place is added to it,
# once; and *when* it is at work because each layer has weights of its own. Must it be so? What if attention
# itself knew how far apart two words are? What if one layer ran again and again, and each word stopped when
# it was done? And what gradient does each of these parts get?

# %%
import copy
import itertools
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import TransformerConfig, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.checking.leaks import movement
from npformer.data import SPECIALS, TextCodec, Vocabulary
from npformer.data.sentences import MASK, SentenceBatch, causal_batch, masked_batch
from npformer.functional.masks import causal_mask, local_mask
from npformer.functional.positions import sinusoids
from npformer.generation import continue_text, fill_in, fill_in_table
from npformer.learn.course import show_figure
from npformer.learn.experiments import length_generalization
from npformer.models.bert import MaskedLanguageModel
from npformer.models.gpt import CausalLanguageModel
from npformer.models.universal import UniversalEncoder
from npformer.nn import AttentionMask
from npformer.nn.attention import RelativeAttention
from npformer.plots import Grid, cell_grid, cell_product, curves
from npformer.training import evaluate, loss_and_gradients
from npformer.training.language import unigram_perplexity
from npformer.training.optimizer import Adam, cosine

rng = np.random.default_rng(21)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## Where: the passage
#
# *Attention机制详解（二）* says that sinusoids are one choice among others, and points to Shaw, Uszkoreit
# and Vaswani, *Self-Attention with Relative Position Representations* (2018). Nothing is added to the words
# any more; a key, and a value, look different to each query, by their distance:
#
# ```math
# eₜₛ = qₜ · (kₛ + aᴷᵣ) / √dₖ          r = clip(s − t, −k, k)
# zₜ  = Σₛ pₜₛ (vₛ + aⱽᵣ)              pₜ = softmax(eₜ)
# ```
#
# with 2k + 1 learned vectors for keys and as many for values, the same for all heads. Section 3.2:
#
# > We hypothesized that precise relative position information is not useful beyond a certain distance.
# > Clipping the maximum distance also enables the model to generalize to sequence lengths not seen during
# > training.
#
# The vectors are rows 0 … 2k of a table, so k is added. Printed, a row is a query: one vector serves a whole
# diagonal, and the outer two a whole corner.

# %%
T, K, far = 6, 4, 2  # words, width of a head, the k of the paper
R = 2 * far + 1
row = np.array([[max(-far, min(s - t, far)) + far for s in range(T)] for t in range(T)])
assert_array_equal(row, F.clipped_distance(T, T, far, row))
print(row - far)

q, k, v = rng.standard_normal((3, T, K))  # each (T, K)
a_key, a_value = rng.standard_normal((2, R, K))  # each (R, K)

z, p = np.zeros((T, K)), np.zeros((T, T))
for t in range(T):
    e = [q[t] @ (k[s] + a_key[row[t, s]]) / math.sqrt(K) for s in range(T)]
    p[t] = np.exp(e) / np.exp(e).sum()
    for s in range(T):
        z[t] += p[t, s] * (v[s] + a_value[row[t, s]])
y, page = F.relative_attention(q, k, v, a_key, a_value)
assert_allclose(z, y, rtol=1e-12)
assert_allclose(p, page.weights, rtol=1e-12)

# %% [markdown]
# ### Backward
#
# It is lesson 5 with kₛ + aᴷᵣ for kₛ, and vₛ + aⱽᵣ for vₛ. With c = 1/√dₖ and dS, the gradient of the
# scores:
#
# ```math
# dpₜₛ = dzₜ · (vₛ + aⱽᵣ)              dsₜₛ = pₜₛ (dpₜₛ − Σᵤ dpₜᵤ pₜᵤ)
# dqₜ  = c Σₛ dsₜₛ (kₛ + aᴷᵣ)
# dkₛ  = c Σₜ dsₜₛ qₜ                  dvₛ  = Σₜ pₜₛ dzₜ
# ```
#
# New are the vectors. aᴷᵣ stands in the score of *every pair* (t, s) whose distance is r; so it hears from
# all of them. It is lesson 0's rule: what forward copies, backward adds up.
#
# ```math
# daᴷᵣ = c Σ dsₜₛ qₜ      daⱽᵣ = Σ pₜₛ dzₜ      both over all pairs (t, s) with r(t, s) = r
# ```

# %%
dz, (dq, dk, dv) = rng.standard_normal((T, K)), np.zeros((3, T, K))
da_key, da_value = np.zeros((2, R, K))
for t in range(T):
    dp = np.array([dz[t] @ (v[s] + a_value[row[t, s]]) for s in range(T)])
    ds = p[t] * (dp - dp @ p[t]) / math.sqrt(K)  # c is in it
    for s in range(T):
        r = row[t, s]
        dq[t] += ds[s] * (k[s] + a_key[r])
        dk[s] += ds[s] * q[t]
        dv[s] += p[t, s] * dz[t]
        da_key[r] += ds[s] * q[t]  # the two new lines
        da_value[r] += p[t, s] * dz[t]
slow = dq, dk, dv, da_key, da_value
for ours, theirs in zip(slow, F.relative_attention_backward(dz, page), strict=True):
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
print("pairs that each vector hears from:", np.bincount(row.reshape(-1)))

# %% [markdown]
# ## The same, by distance
#
# As it stands on the paper's page, kₛ + aᴷᵣ is another vector for every pair: (T, S, K) numbers for each
# head of each sentence. But a query meets only 2k + 1 different vectors. Meet each *once*, M = Q Aᴷᵀ, and
# then **spread** the numbers to the pairs. With the values it is the other way: **collect** the weights of
# each distance, then one product.
#
# ```math
# eₜₛ = c (qₜ · kₛ + Mₜᵣ)              M = Q Aᴷᵀ            (T, R)
# zₜ  = Σₛ pₜₛ vₛ + Σᵣ Cₜᵣ aⱽᵣ         Cₜᵣ = Σ pₜₛ over the s at distance r of t
# ```
#
# For a fixed t, spreading is a matrix Oₜ of zeros and ones, (S, R), with one 1 in each row: which distance
# is this key at? Collecting is Oₜᵀ. They are **each other's transpose, so each is the other's backward**:
#
# ```math
# E = spread(M)      dMₜ = Oₜᵀ dEₜ      dM = collect(dE)
# C = collect(P)     dPₜ = Oₜ dCₜ       dP = spread(dC)
# ```

# %%
met = q @ a_key.T  # (T, R) every query with every vector
spread, collected = F.spread_by_distance(met, row), F.collect_by_distance(p, row, R)
for t in range(T):
    one = row[t][:, None] == np.arange(R)  # (S, R) Oₜ
    assert_allclose(spread[t], one @ met[t], rtol=1e-12)
    assert_allclose(collected[t], one.T @ p[t], rtol=1e-12)

p2, _ = F.softmax((q @ k.T + spread) / math.sqrt(K))  # (T, S)
shares = F.collect_by_distance(p2, row, R)  # (T, R)
assert_allclose(p2 @ v + shares @ a_value, z, rtol=1e-9)
dp = dz @ v.T + F.spread_by_distance(dz @ a_value.T, row)  # (T, S)
ds = p2 * (dp - (dp * p2).sum(-1, keepdims=True)) / math.sqrt(K)  # (T, S)
dmet = F.collect_by_distance(ds, row, R)  # (T, R)
fast = (ds @ k + dmet @ a_key, ds.T @ q, p2.T @ dz, dmet.T @ q, shares.T @ dz)
_, cache = F.relative_attention_by_distance(q, k, v, a_key, a_value)
package = F.relative_attention_by_distance_backward(dz, cache)
for ours, loops, theirs in zip(fast, slow, package, strict=True):
    assert_allclose(ours, loops, rtol=1e-9, atol=1e-12)
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
names = ["−2", "−1", "0", "1", "2"]
left = Grid(met, "$M = Q A^{KT}$", "q", columns=names, numbers=True, shade=True)
parts = [left, "spread", Grid(spread, "each t with each s", "q", numbers=True, shade=True)]
show_figure(cell_product(parts), "21_spread", "Row t: its number at distance s − t, −2 to 2")

# %% [markdown]
# Five gradients in four lines: those of the loops, and of the package. Nothing in its cache is (T, S, K):

# %%
show(cache)
B, H, n, width, r = 32, 8, 50, 64, 33  # 32 sentences of 50 words, base's heads, k = 16
numbers = 2 * B * H * n * n * width, 2 * B * H * n * r + n * n * r  # the last: the ones in Oₜ
print("for positions: {:,} numbers on the page, {:,} by distance".format(*numbers))
assert round(numbers[0] / numbers[1]) == 88

# %% [markdown]
# A factor of 88. Is it right? Take three queries that are the *last three* of five words, as when decoding:
# the first stands at `start=2`.

# %%
pair = (F.relative_attention_by_distance, F.relative_attention_by_distance_backward)
shapes = (3, 4), (5, 4), (5, 2), (R, 4), (R, 2)  # q, k, v and the vectors; values are narrower
report = gradcheck(pair, *(rng.standard_normal(shape) for shape in shapes), start=2)
print(report)
assert report.ok

# %% [markdown]
# ## Nobody counts from the start any more
#
# `RelativeAttention` is lesson 7 with this pair; its vectors serve all heads. Put seven masked words before
# a sentence: every absolute position would change. Relative ones do not notice.

# %%
layer = RelativeAttention(8, 2, max_distance=3, rng=rng, dtype=np.float64)
x, before = rng.standard_normal((1, 5, 8)), rng.standard_normal((1, 7, 8))  # (B, T, D)
moved, _ = layer.forward(np.concatenate([before, x], 1), mask=np.arange(12) >= 7)
assert_allclose(moved[:, 7:], layer.forward(x)[0], rtol=1e-9)

# %% [markdown]
# A strength and a loss. Two tasks show both, learnt by one layer on 4 to 10 random words: at each word, name
# the word **two before**; or, at each word, name the **third of the sentence**.

# %%
LENGTHS = (5, 10, 12, 15, 20, 30)
SMALL = {"d_model": 32, "d_ff": 32, "n_heads": 2, "n_layers": 1, "max_length": 32}
SMALL |= {"max_distance": 4, "dropout": 0, "label_smoothing": 0}


def learn(model, draw, steps, peak=0.01):
    rng, adam, rate = np.random.default_rng(1), Adam(model), cosine(peak, steps + 1, 20)
    for step in range(1, steps + 1):
        loss_and_gradients(model, [draw(rng)])
        adam.step(rate(step))
    return model


def sentences(task, n, rng, count=64):
    ids = rng.integers(4, 24, (count, n))  # (B, T)
    out = np.zeros_like(ids)  # 0 is the padding: nothing is asked
    out[:, 2:] = ids[:, :-2]
    return SentenceBatch(ids, out if task == "two before" else ids[:, [2] * n])


print("words right, length        " + "".join(f"{n:6}" for n in LENGTHS))
right = {}
for task, positions in itertools.product(("two before", "third"), ("relative", "interleaved")):
    name = f"{task}, {positions}"
    config = TransformerConfig(24, 24, positions=positions, **SMALL)
    model = MaskedLanguageModel(config, rng=np.random.default_rng(0))  # an encoder, and logits
    learn(model, lambda rng, task=task: sentences(task, int(rng.integers(4, 11)), rng), 250)
    asked = [sentences(task, n, np.random.default_rng(2), 200) for n in LENGTHS]
    right[name] = [evaluate(model, [batch]).accuracy for batch in asked]
    print(f"{name:27}" + "".join(f"{share:6.2f}" for share in right[name]))

assert min(right["two before, relative"]) > 0.99
assert right["two before, interleaved"][1] > 0.85  # ten words, as learnt
assert 0.22 < right["two before, interleaved"][-1] < 0.38
assert max(right["third, relative"]) < 0.5 < 0.97 < min(right["third, interleaved"])

# %%
settings = {"labels": list(right), "xlabel": "words (learnt on up to 10)", "legend": True}
shares = np.array(list(right.values()))  # (4, lengths)
figure = curves(shares, LENGTHS, ylabel="share of words right", **settings)
show_figure(figure, "21_longer", "Any length: distances by relative, places by absolute ones")
measured = length_generalization.MEASURED
at_15 = [[task[3] for task in measured[name]] for name in ("relative", "interleaved")]
assert at_15 == [[0.59, 0.51], [0.08, 0.61]]  # reversed and copied

# %% [markdown]
# Two before: one of the nine vectors says it, at every length. Sinusoids could (lesson 3 made such a head by
# hand), but training finds something that works on ten places, and of thirty words about 70% are wrong.
# Third: the key's own sinusoids say it, at every length. A relative word does not know how far it is from
# the start, so it does not know which distance to ask for.
#
# And a whole Transformer? `npformer/learn/experiments/length_generalization.py` trains small ones to
# reverse, and to copy, up to ten words (4 seconds each, two seeds). At 15 words relative positions get .59
# of the reversed words and .51 of the copied. One search serves both: what stands beside the word that I
# wrote last? (In doubt where a word comes twice.) Sinusoids copy better, from the same place: .61. To
# reverse, the place depends on the length, and 15 was never seen: .08. Neither is better. To try: `npformer
# train --set positions=relative`.
#
# ## When: one layer again and again
#
# The same document lists Dehghani et al., *Universal Transformers* (2019), whose abstract says:
#
# > UTs combine the parallelizability and global receptive field of feed-forward sequence models like the
# > Transformer with the recurrent inductive bias of RNNs.
#
# One layer f with parameters θ takes the place of the stack. That it can tell the first step from the last,
# sinusoids are added before *every* step, for the place and for n:
#
# ```math
# xₙ = f(xₙ₋₁ + Place + Step(n); θ)              n = 1 … N
# dxₙ₋₁ = the layer's backward of dxₙ            with the cache of step n
# dθ    = Σₙ ∂f/∂θ at step n, times dxₙ          θ was used N times: a sum
# ```

# %%
config = TransformerConfig(24, 24, **SMALL | {"d_model": 8, "n_layers": 3})
made = UniversalEncoder(config, rng=rng, dtype=np.float64)
shared, places = made.layer, sinusoids(5, 8)
apart = [copy.deepcopy(shared) for _ in range(3)]  # three layers that happen to be equal
x, dy = rng.standard_normal((2, 2, 5, 8))  # (B, T, D)
dxs = []
for layers in ([shared] * 3, apart):
    y, caches, dx = x, [], dy
    for n, layer in enumerate(layers, 1):
        y, cache = layer.forward(y + places + places[n])  # a step n is as a place n
        caches.append(cache)
    for layer, cache in zip(layers[::-1], caches[::-1], strict=True):
        dx = layer.backward(dx, cache)  # += into the layer's gradients
    dxs.append(dx)
assert_allclose(*dxs, rtol=1e-9)
_, cache = made.forward(x)
assert_allclose(made.backward(dy, cache), dx, rtol=1e-9)
for p, *three in zip(shared.parameters(), *(a.parameters() for a in apart), strict=True):
    together = sum(one.grad for one in three)
    assert_allclose(p.grad, 2 * together, rtol=1e-9, atol=1e-12)  # ours, and then the package's
print(f"{len(cache.layers)} caches, one layer of {made.count_parameters()} parameters")

# %% [markdown]
# Nothing new was needed: a layer hands its cache out, and *adds* to its gradients. One that keeps its cache
# on itself would have the last of three only: bug 8 of the zoo.
#
# ### Each word as long as it needs
#
# After step n a word has a state sₙ and a probability pₙ = σ(w · sₙ + b) to stop. It stops after the first N
# where p₁ + … + p_N ≥ 1 − ε, or at the last step there is. Its output mixes its states (Graves, 2016):
#
# ```math
# y = Σₙ wₙ sₙ        wₙ = pₙ before N, and w_N = 1 − the sum of those, the remainder
# cost = N + w_N      the ponder cost, added to the loss (mix.ponder below)
# ```
#
# The weights sum to 1 whatever p is. N is a whole number: it jumps, and has no gradient. But the weights do:
#
# ```math
# dsₙ = wₙ dy         dwₙ = sₙ · dy, and at N also + dcost
# dpₙ = dwₙ − dw_N    what any p gains, the last weight loses
#     = (sₙ − s_N) · dy − dcost         before N;  p_N has no say: 0
# ```
#
# So a p is asked one thing: is state n *better than the last*? And the cost pushes all p before N up.

# %%
p, N = np.array([0.3, 0.5, 0.4, 0.9]), 3  # .3 + .5 + .4 ≥ .99: step 4 is not taken
s, dy, dcost = rng.standard_normal((4, 6)), rng.standard_normal(6), 0.1  # s (N, D)
weights, dp = np.array([p[0], p[1], 1 - p[0] - p[1], 0]), np.zeros(4)
dp[: N - 1] = (s[: N - 1] - s[N - 1]) @ dy - dcost
took = np.arange(4) < N
y, mix = F.mix_states(s, p, took)
assert_allclose(y, weights @ s, rtol=1e-12)
ds_package, dp_package = F.mix_states_backward(dy, mix, dponder=dcost)
assert_allclose(ds_package, weights[:, None] * dy, rtol=1e-12)
assert_allclose(dp_package, dp, rtol=1e-9, atol=1e-12)
assert gradcheck((lambda s, p: F.mix_states(s, p, took), F.mix_states_backward), s, p).ok
print("weights", weights, "  steps", mix.steps, "  ponder", mix.ponder)

# %% [markdown]
# ### A task that takes time
#
# Letters and arrows. A letter's answer is itself; an arrow's is that of the word on its left. A word may
# look at itself and its left neighbour only, so news travels one place a step (lesson 18), and the r-th
# arrow in a row **needs r steps**. Nobody tells the network; it only pays a price for each step.

# %%
ARROW, SIGNS = 4, "····←abcd"  # ids 0 to 3 are not used


def arrows(rng, count=32, length=8, share=0.6):
    ids = rng.integers(5, 9, (count, length))  # (B, T)
    ids[:, 1:][rng.random((count, length - 1)) < share] = ARROW
    answers = ids.copy()
    for t in range(1, length):
        answers[:, t] = np.where(ids[:, t] == ARROW, answers[:, t - 1], ids[:, t])
    return SentenceBatch(ids, answers)


def steps_needed(ids):
    row = (ids == ARROW).astype(int)  # (B, T)
    for t in range(1, ids.shape[1]):
        row[:, t] += row[:, t] * row[:, t - 1]
    return np.maximum(row, 1)


class Follower(MaskedLanguageModel):
    """An encoder that halts, without signals, each word beside its left neighbour."""

    def __init__(self, price):
        config = TransformerConfig(9, 9, **SMALL | {"n_layers": 6, "positions": "none"})
        rng, self.price = np.random.default_rng(1), price
        super().__init__(config, rng=rng)
        self.encoder = UniversalEncoder(config, halting=True, halting_bias=-2.0, rng=rng)
        self.flatten()

    def mask(self, ids):
        return AttentionMask(local_mask(ids.shape[1], 1, ids) & causal_mask(ids.shape[1], ids))

    def backward(self, dlogits, cache):
        dcost = np.full_like(cache.encoder.ponder, self.price / cache.encoder.ponder.size)
        dx = self.output.backward(dlogits, cache.output)
        dx = self.encoder.backward(dx, cache.encoder, dponder=dcost)
        self.embedding.backward(dx, cache.embedding)


def measure(name, model):
    batch = arrows(np.random.default_rng(9), 500, 14, share=0.8)
    need = steps_needed(batch.ids)
    model.encoder.n_steps = 9  # where six were learned
    logits, cache = model.forward(batch.ids)
    model.encoder.n_steps = 6
    seen = cache.encoder.mix.steps, logits.argmax(-1) == batch.target_out
    rows = np.array([[a[need == n].mean() for n in range(1, 10)] for a in seen])  # (2, 9)
    for title, row in zip((name, "     words right"), rows, strict=True):
        print(f"{title:24}" + "".join(f"{n:6.2f}" for n in row))
    return rows


print("steps that a word needs " + "".join(f"{n:6}" for n in range(1, 10)))
model = learn(Follower(price=0), arrows, 120)
model.price = 0.3
paid = measure("charged after learning", learn(model, arrows, 100))
poor = measure("charged from the start", learn(Follower(price=0.3), arrows, 120))

# %%
sign = "a←←←b←cd←←←←"
_, cache = model.forward(np.array([[SIGNS.index(letter) for letter in sign]]))
weights = cache.encoder.mix.weights[:, 0]  # (N, T)
names = [f"step {n + 1}" for n in range(len(weights))]
figure = cell_grid(weights, rows=names, columns=list(sign), numbers=True, shade=True)
show_figure(figure, "21_steps", "Weights wₙ: letters stop at once, the r-th arrow after r steps")

# %% [markdown]
# Charged after it had learned, a word takes the steps that it needs. It knows *when* to stop, not how many
# steps there are: nine may be taken where six were trained with, and the seventh arrow is right. In a stack
# of six layers it could not be: the letter is out of its sight.
#
# Charged from the start, all stop after two steps, and later arrows guess. To go on would lower the loss by
# .19 and cost .07. But who has stopped never sees what another step would bring: lesson 18's trap.

# %%
lazy = steps_needed(arrows(np.random.default_rng(3), 5000).ids)
gain, more = math.log(4) * (lazy > 2).mean(), 0.3 * np.maximum(lazy - 2, 0).mean()
assert_allclose([gain, more], [0.19, 0.07], atol=0.006)
assert_allclose(paid[0, :7], np.arange(1, 8), atol=0.6)
assert_allclose(poor[0, 1:], 2, atol=0.3)
assert min(paid[1, :7]) > 0.97 > 0.4 > max(poor[1, 2:])

# %% [markdown]
# To translate: `npformer train --architecture universal` trains an encoder and a decoder of this kind on the
# built-in corpus, with a price of .01 for each step. Lesson 17 compares it with the others. In the decoder a
# word stops by itself too. When decoding word by word, all steps are computed and kept, because a later word
# may take more steps than an earlier one, and attends to it at each of them.

# %% [markdown]
# ## Before and after: the same parts, another mask
#
# Who may hear whom is the mask's business (lesson 6). The encoder alone, all hearing all, fills gaps:
# `MaskedLanguageModel`, after BERT, with which *The components of the Transformer* goes on. The decoder alone
# has no source to look at: the same stack under a causal mask, `CausalLanguageModel`. From one seed both have
# the same numbers. Only who moves whom differs:

# %%
SAYS = {"dog": "barks", "cat": "meows", "duck": "quacks", "cow": "moos"}
known = [f"the {a} {SAYS[a]} and the {b} {SAYS[b]}" for a in SAYS for b in SAYS]
codec = TextCodec(Vocabulary((*SPECIALS, *sorted(set(" ".join(known).split())), MASK)))
said, V = [codec.encode(text) for text in known], len(codec.vocabulary)
config = TransformerConfig(V, V, positions="relative", **SMALL)
reader = MaskedLanguageModel(config, rng=np.random.default_rng(0))
writer = CausalLanguageModel(config, rng=np.random.default_rng(0))
assert_array_equal(reader.values, writer.values)
for model, seen in ((reader, np.ones((7, 7))), (writer, np.tri(7))):
    assert_array_equal(movement(model.forward, np.array(said[:1])) > 0, seen)
learn(reader, lambda rng: masked_batch(said * 4, V - 1, rng, share=0.3), 150, peak=0.02)
learn(writer, lambda rng: causal_batch(said), 80)
print(fill_in_table(fill_in(reader, codec, "the [MASK] quacks and the cow moos", k=4)))
print(continue_text(writer, codec, "the duck", 2, rng=np.random.default_rng(3), max_tokens=9))
batch = causal_batch(said)
guess, found = unigram_perplexity([batch], [batch], V), evaluate(writer, [batch]).perplexity
print(f"perplexity: by frequency alone {guess:.2f}, writer {found:.3f}, the best {2**0.5:.3f}")
assert 2**0.5 - 1e-4 < found < 1.02 * 2**0.5

# %% [markdown]
# The reader knows the animal from the verb *behind* it. The writer cannot: each animal costs it log 4, and
# nothing else costs anything. Two animals among eight words, the end included, make a perplexity of at least
# exp(2 log 4 / 8) = √2, and it comes within two per cent.
#
# ## Exercises
#
# `npformer exercise list` has them, each graded by the gradient checker or by values.
#
# - `npformer exercise start collect-by-distance`: compute the gradient of each distance vector. It is a sum
#   over the pairs of positions with this distance.
# - `npformer exercise start mix-states-backward`: write the backward pass of the average of states in
#   adaptive halting. The weight of the last step depends on all halting probabilities.
# - By hand: write t − s for s − t everywhere. Show that a model trained from the start ends with its table
#   turned over, and otherwise the same. What if the vectors come from a checkpoint?
#
# To try now, in the terminal: `!length_generalization.compare(("relative",))`, 4 s, and
# `s cache.encoder.mix`. The bug zoo has this lesson's trap: `npformer bugs start 23`.
#
# ## Where the documents differ
#
# - *Attention机制详解（二）* names both papers and explains neither. "Relation-aware", its word, is wider:
#   any relation of two words may have a vector. Distance is one that every sentence has.
# - The Universal paper's text and the code in its appendix differ: there p comes from the state *before* the
#   step, and halted words go on changing. npformer keeps to the text and to Graves.
# - *The components of the Transformer* only names BERT: this reader with two sentences at a time, a second
#   task (do they belong together?) and much more to read.
#
# **Next**, lesson 22: text that people wrote, and a translator that is scored.

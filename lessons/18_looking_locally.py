# %% [markdown]
# # 18 · Looking locally
#
# *30 minutes to read, 5 seconds to run. Lesson 5 for the softmax's gradient, lesson 6 for masks, lesson 17
# for global attention.*
#
# **The question.** Global attention compares every word that is written with every word of the source. A
# reader does not: who translates a paragraph keeps a finger on the line, and looks a little to the left and
# to the right of it. How does a network know where its finger is? And if it moves the finger by itself, what
# does the loss say to the finger?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.functional.masks import local_mask
from npformer.learn.course import show_figure
from npformer.nn import Linear
from npformer.nn.attention import GlobalAttention, LocalMonotonic, LocalPredictive, Similarity
from npformer.nn.module import Module
from npformer.plots import attention_map, curves
from npformer.training.optimizer import Adam

rng = np.random.default_rng(18)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# Luong, Pham and Manning, *Effective Approaches to Attention-based Neural Machine Translation* (2015),
# section 3.2, which *The components of the Transformer* retells under "local attention":
#
# > The global attention has a drawback that it has to attend to all words on the source side for each target
# > word, which is expensive and can potentially render it impractical to translate longer sequences, e.g.,
# > paragraphs or documents.
#
# For target word t there is a **position** pₜ in the source, and a **window** [pₜ − D, pₜ + D]. What is
# outside is not looked at. The paper takes D = 10, and has two ways to find pₜ:
#
# ```math
# local-m    pₜ = t                                 monotonic: both languages go hand in hand
# local-p    pₜ = S · sigmoid(v · tanh(hₜ W))       predicted from the decoder's state hₜ
# ```
#
# Here words stand at 0 … S − 1, as Python counts.

# %% [markdown]
# ## local-m: a slice
#
# Slowly, one target word after another: cut the window out of the source's states m, compare the state h
# with those alone, softmax, mean. "If the window crosses the sentence boundaries, we simply ignore the
# outside part and consider words in the window", says the paper's footnote.

# %%
S, N, D = 9, 6, 2  # source length, width of a state, reach of the window
memory = rng.standard_normal((S, N))  # (S, N) the encoder's states
states = rng.standard_normal((S, N))  # (T, N) the decoder's; here T = S

slow, compared = np.zeros((S, N)), 0
for t in range(S):
    first, behind = max(0, t - D), min(S, t + D + 1)
    e = [math.exp(states[t] @ memory[s]) for s in range(first, behind)]
    compared += len(e)
    for s in range(first, behind):
        slow[t] += e[s - first] / sum(e) * memory[s]
print(f"{compared} comparisons; all with all would be {S * S}")

layer = LocalMonotonic(Similarity("dot", N, N), reach=D)
context, cache = layer.forward(states[None], memory[None])  # (1, T, N)
assert_allclose(context[0], slow, rtol=1e-12)

# %% [markdown]
# ### What it costs
#
# A window holds 2D + 1 words. At each end of the source the windows of D target words stick out, by D, D − 1,
# … 1 words. For T = S > 2D the comparisons are
#
# ```math
# global     S²
# local      S (2D + 1) − 2 (D + … + 1)  =  S (2D + 1) − D (D + 1)
# ```
#
# The square is gone: what *one* target word costs no longer depends on the length of the source. With the
# paper's D = 10 that saves less than half on 30 words, and 99.3% on a document of 3,000:

# %%
assert compared == S * (2 * D + 1) - D * (D + 1)
for length in (30, 300, 3000):
    local = local_mask(length, 10, memory).sum()
    print(f"S {length:5}   global {length**2:9,}   local {local:7,}   {local / length**2:.1%}")
    assert local == length * 21 - 110
assert_allclose(1 - local / length**2, 0.993, atol=0.0005)

# %% [markdown]
# ### A window is a mask
#
# The package does not slice. It computes all scores and hides those outside, which is easy to read and saves
# nothing; the loop above is the one that saves. The mask is `local_mask` of lesson 6, and attention with it,
# without the scale, is local-m:

# %%
window = F.inside_window(np.arange(S), S, D)  # (T, S): pₜ = t
assert_array_equal(window, local_mask(S, D, memory))
y, _ = F.attention(states, memory, memory, window, scale=1.0)
assert_allclose(y, slow, rtol=1e-12)

reached = np.linalg.matrix_power(window.astype(int), 3) > 0  # what hears of what in three layers
assert_array_equal(reached, local_mask(S, 3 * D, memory))
print("word 0 hears of", window[0].sum() - 1, "others; in three layers of", reached[0].sum() - 1)

# %% [markdown]
# The last lines answer a question about Transformers: with a local mask in *every* layer of an encoder, is a
# word cut off from what is far? No. It hears from its neighbours what they heard from theirs, so L layers
# reach L · D places. A decoder that looks at a finished source once has no such second chance: **what is
# outside the window does not exist**. Where a language puts the verb last, pₜ = t is the wrong place. We
# measure that below. First, let pₜ move.
#
# ## local-p, forward
#
# For one state h. **Step 1**, the place: a sigmoid is a share between 0 and 1, here of S words.

# %%
h = rng.standard_normal(N)  # (N,) one state of the decoder
W, v = rng.standard_normal((N, 4)), rng.standard_normal(4)  # (N, J), (J,)
hidden = np.tanh(h @ W)  # (J,)
share = 1 / (1 + np.exp(-hidden @ v))  # ()
p = S * share
print(f"share {share:.4f} of {S} words: p = {p:.4f}")
assert_allclose(p, F.predict_position(h, W, v, np.array(S))[0], rtol=1e-12)

# %% [markdown]
# **Step 2**, a softmax over the words inside the window. **Step 3**, a Gaussian round p takes something off
# every weight, the more the farther away:
#
# ```math
# aₛ = softmax over the window of h · mₛ
# gₛ = exp(−(s − p)² / 2σ²)          σ = D / 2
# wₛ = aₛ gₛ
# ```
#
# With σ = D / 2 the factor is e^−½ = .6065 at a distance of D / 2, and e^−2 = .1353 at D, where the window
# ends. **Step 4** is the sum c = Σₛ wₛ mₛ.

# %%
sigma = D / 2
a, g = np.zeros(S), np.zeros(S)  # (S,)
for s in range(S):
    g[s] = math.exp(-((s - p) ** 2) / (2 * sigma**2))
    if p - D <= s <= p + D:
        a[s] = math.exp(h @ memory[s])
a /= a.sum()
w = a * g  # (S,)
c = w @ memory  # (N,)

for name, row in {"a": a, "g": g, "w": w}.items():
    print(name, " ".join(f"{x:.4f}" for x in row), f"  sum {row.sum():.4f}")
at = np.array([0, D / 2, D])  # distances from word 0
factors, _ = F.gaussian_window(np.ones((3, 1)), at, sigma)  # (3, 1)
assert_allclose(factors[:, 0], [1, 0.6065, 0.1353], atol=5e-5)
assert_allclose([a.sum(), w.sum()], [1, 0.39], atol=0.005)  # the sums

# %%
x = np.linspace(-0.5, 8.49, 900)
near = np.floor(x + 0.5).astype(int)  # the word nearest to x
bell, _ = F.gaussian_window(np.ones((900, 1)), p - x, sigma)  # p moves in place of the word
caption = f"p = {p:.2f}: the softmax ends at p − 2 and p + 2, and the Gaussian lowers it"
names = ["a, softmax in the window", "g, the Gaussian", "w = a g"]
axes = {"xlabel": "word s of the source", "ylabel": "weight", "legend": True}
figure = curves(np.array([a[near], bell[:, 0], w[near]]), x, labels=names, **axes)
show_figure(figure, "18_window", caption)

# %% [markdown]
# The weights of global attention sum to 1. These sum to .39: what the Gaussian takes off is gone. The paper
# writes the product and no division after it, and so does the package. So c is not quite a mean: it is
# *shorter* where the words that the softmax likes are far from p. A badly placed finger reads in a low
# voice, and that has a gradient.
#
# ## Backward
#
# dc has arrived, (N,). Through the sum as in lesson 5, then into the product, where each factor is the other
# one's slope:
#
# ```math
# c  = Σₛ wₛ mₛ        dwₛ = dc · mₛ
# wₛ = aₛ gₛ           daₛ = dwₛ gₛ          dgₛ = dwₛ aₛ
# ```
#
# The Gaussian has the only new derivative, and p reaches every word in the window, so dp is a sum:
#
# ```math
# ∂gₛ/∂p = gₛ · ∂/∂p [−(s − p)² / 2σ²]
#        = gₛ · [−2 (s − p) (−1) / 2σ²]
#        = gₛ (s − p) / σ²
# dp     = Σₛ dgₛ gₛ (s − p) / σ²  =  Σₛ dwₛ wₛ (s − p) / σ²
# ```

# %%
dc = rng.standard_normal(N)  # (N,)
dw = memory @ dc  # (S,)
da, dg = dw * g, dw * a  # (S,)
dp = 0.0
for s in range(S):
    dp += dg[s] * g[s] * (s - p) / sigma**2

away = np.arange(S) - p  # (S,)
pulls = dw * w * away / sigma**2  # (S,)
_, gaussian = F.gaussian_window(a, p, sigma)
da_package, dp_package = F.gaussian_window_backward(dw, gaussian)
assert_allclose(da, da_package, rtol=1e-12)
assert_allclose([dp, pulls.sum()], dp_package, rtol=1e-12)
print("pulls", (pulls + 0.0).round(3), "  together", round(dp, 3))

# %% [markdown]
# Read it, with dwₛ > 0 as "more of word s": **every word in the window pulls the finger**, to its own side if
# more of it is wanted, away from itself if less; by how much is wanted, times how much it is looked at, times
# its distance. A word outside has w = 0 and *does not pull*. Keep that in mind.
#
# The softmax's gradient takes an average off: ds = a (da − Σ da a). Here is none, as nothing was normalized.
# If more is wanted of *all* words alike, every bracket is 0: scores cannot give that. The finger can. It
# hears: go where there is more to read.

# %%
assert_allclose(F.softmax_backward(np.ones(S), a), 0, atol=1e-15)
of_p = (w * away).sum() / sigma**2  # all dw are 1
step = 0.01 * np.sign(of_p)
after = (a * np.exp(-((away - step) ** 2) / (2 * sigma**2))).sum()
print(f"dp {of_p:+.3f}: a step of {step:+} takes the sum of w from {w.sum():.4f} to {after:.4f}")
assert after > w.sum()

# %% [markdown]
# On to what p was made of, the last operation first:
#
# ```math
# p = S u              du = dp S
# u = sigmoid(z)       dz = du u (1 − u)
# z = v · k            dv = dz k                 dk = dz v
# k = tanh(b)          db = dk (1 − k²)
# b = h W              dW = hᵀ db                dh = db Wᵀ
# ```
#
# (u is the share, k is `hidden`.) S in the first line: in a long source the same step of W moves the finger
# farther. u (1 − u) in the second: near either end of the sentence it is nearly 0, so a finger that stands at
# an end is hard to move. The scores h · mₛ bring h a second gradient; the two add up.

# %%
du = dp * S
dz = du * share * (1 - share)
dv, dk = dz * hidden, dz * v  # (J,), (J,)
db = dk * (1 - hidden * hidden)  # (J,)
dW = np.outer(h, db)  # (N, J)
dscores = a * (da - (da * a).sum())  # (S,)
dh = db @ W.T + dscores @ memory  # (N,): where to look, and what for
dmemory = np.outer(w, dc) + np.outer(dscores, h)  # (S, N): what is read, and what is compared

layer = LocalPredictive(Similarity("dot", N, N), reach=D, dtype=np.float64)
layer.position_weight.value[...] = np.hstack([W, np.zeros((N, 2))])  # in the package J = N
layer.position_v.value[...] = np.append(v, [0, 0])
context, cache = layer.forward(h[None, None], memory[None])  # (1, 1, N)
dh_package, dmemory_package = layer.backward(dc[None, None], cache)
assert_allclose(c, context[0, 0], rtol=1e-12)
assert_allclose(dh, dh_package[0, 0], rtol=1e-9)
assert_allclose(dmemory, dmemory_package[0], rtol=1e-9, atol=1e-15)
assert_allclose(dW, layer.position_weight.grad[:, :4], rtol=1e-9)
assert_allclose(dv, layer.position_v.grad[:4], rtol=1e-9)
print("c, dh, dmemory, dW and dv are those of the package")

# %% [markdown]
# `predict_position` and `gaussian_window` in `npformer/functional/window.py` are these lines, and
# `LocalPredictive` in `npformer/nn/attention/luong.py` puts them together. Its cache has the two side by
# side: what said where, and what said how much (`weights` is a, `bell` is g, `away` is s − p).

# %%
show(cache)

# %%
real = np.arange(7) < np.array([[7], [4]])  # (B, S): the second sentence has four words
inputs = rng.standard_normal((2, 5, N)), rng.standard_normal((2, 7, N))  # (B, T, N), (B, S, N)
checked = LocalPredictive(Similarity("general", N, N, rng=rng), reach=D, rng=rng)
report = gradcheck(checked, *inputs, mask=real)
print(report)
assert report.ok

# %% [markdown]
# ## The edge of the window
#
# The paper says of local-p, in a footnote: "This model is differentiable almost everywhere." Where is it not?
# Hold the scores, let p walk through the source, and watch the weight of word 4:

# %%


def local(scores, p):
    """w, by scores and p. Shapes: scores (..., S), p (...) -> w (..., S)."""
    inside = F.inside_window(p, scores.shape[-1], D)
    aligned, _ = F.softmax(np.where(inside, scores, -np.inf))
    return F.gaussian_window(aligned, p, sigma)


def local_backward(dw, cache):
    """Returns (dscores, dp)."""
    da, dp = F.gaussian_window_backward(dw, cache)
    return F.softmax_backward(da, cache.weights), dp


flat, likes_5 = np.zeros(S), 4.0 * (np.arange(S) == 5)  # all score alike; word 5 scores 4 more
walk = np.linspace(0.005, 7.995, 800)
rows = [local(np.tile(scores, (800, 1)), walk)[0][:, 4] for scores in (flat, likes_5)]
names = ["all score alike", "word 5 scores more"]
axes = {"xlabel": "p", "ylabel": "weight of word 4", "legend": True}
figure = curves(np.array(rows), walk, labels=names, **axes)
show_figure(figure, "18_edge", "Smooth pieces, and jumps where words enter or leave the window")

# %% [markdown]
# Where an edge passes a word, weights jump. With equal scores it is little: at p = 2 word 4 comes in with
# a = 1/4 and g = e^−2, which makes .034. (Word 0 goes out.) But the softmax is *made anew* among those
# inside: in the second curve word 5 takes nearly all of it as soon as the window reaches it, at p = 3, and
# makes little of it, since its own g is e^−2. Word 3, right under the finger, falls from .25 to .02.

# %%
below, above = (local(likes_5, np.array(3 + side))[0] for side in (-1e-9, 1e-9))
print("p just below 3:", below.round(3))
print("p just above 3:", above.round(3))
assert_allclose([below[3], above[3]], [0.25, 0.02], atol=0.005)
assert_allclose(local(flat, np.array(2 + 1e-9))[0][4], 0.034, atol=5e-4)

# %% [markdown]
# What does a gradient check say, a billionth to the left of that jump?

# %%
left = np.array(3 - 1e-9)
by_complex_step = gradcheck((local, local_backward), likes_5, left)
by_difference = gradcheck((local, local_backward), likes_5, left, method="difference")
_, cache = local(likes_5, left)
print("complex step:", "all right" if by_complex_step.ok else "WRONG")
print("differences: ", "all right" if by_difference.ok else "WRONG")
print(f"slope of the sum of w {F.gaussian_window_backward(np.ones(S), cache)[1]:+.3f}")
print(f"its change across the edge {above.sum() - below.sum():+.3f}")
assert by_complex_step.ok
assert not by_difference.ok

# %% [markdown]
# Both are honest. A complex step does not move the real p at all, so it never crosses the edge; it says that
# the formulas are right, and they are: slopes of the smooth pieces. A difference steps across, divides a jump
# by a tiny h, and calls the same formulas wrong. **Neither tells how far the function jumps**, and no
# gradient knows of it. In training it does little harm once the finger stands well: the edge is where g is
# e^−2. At the start, with the finger anywhere, a loss may go up after a step down.
#
# ## Padding: S counts words
#
# In a batch, short sentences are filled up. Which S does the sigmoid get? If it is the padded length, the
# same state points somewhere else, depending on *who else is in the batch*:

# %%
real = np.arange(12) < 4  # (S,) four words in a batch as long as twelve
padded = np.vstack([memory[:4], np.zeros((8, N))])  # (S, N)
alone, _ = layer.forward(h[None, None], memory[None, :4])
right, cache = layer.forward(h[None, None], padded[None], real[None])
assert_allclose(alone, right, rtol=1e-12)

astray, _ = F.predict_position(h, W, v, np.array(12))
inside = F.inside_window(astray, 12, D) & real
print(f"S = 4:  p = {cache.positions[0, 0]:.2f}, the weights sum to {cache.weights.sum():.2f}")
print(f"S = 12: p = {astray:.2f}, words in the window: {inside.sum()}")
assert not inside.any()

# %% [markdown]
# With S = 4 the padding makes no difference. With S = 12 the finger points into it: no word is in the
# window, the context is 0, and no gradient comes back. So the package takes S from the mask.
#
# ## Does the finger learn?
#
# A language of 8 words and two ways to translate: **copy** the sentence, or **reverse** it. Sentences have 4
# to 12 words. We leave out the recurrent networks, and hand attention what they would have to find out: a
# source state is the word and its place, one-hot; a decoder state is three numbers: 1, how many words are
# written, and how many are to come. Learned are the attention and one linear layer that reads the word.

# %%
V, LONGEST = 8, 12
places = np.arange(LONGEST)


def sentences(n, order, rng):
    """Shapes: -> states (B, T, 3), memory (B, S, V + S), mask (B, S), targets (B, T)."""
    lengths, tokens = rng.integers(4, LONGEST + 1, (n, 1)), rng.integers(0, V, (n, LONGEST))
    mask, to_come = places < lengths, lengths - 1 - places  # (B, S), (B, T)
    written = np.broadcast_to(places, mask.shape)
    memory = np.concatenate([np.eye(V)[tokens], np.tile(np.eye(LONGEST), (n, 1, 1))], -1)
    states = np.stack([np.ones(mask.shape), written / 5, to_come / 5], -1)
    wanted = to_come if order == "reverse" else written  # (B, T) at which place
    targets = np.take_along_axis(tokens, np.maximum(wanted, 0), 1)
    return states, memory, mask, np.where(mask, targets, -1)  # -1 at padding


# %%


class Reader(Module):
    """logits = context weight + bias, the context by an attention of Luong's."""

    def __init__(self, kind, rng):
        float64 = {"rng": rng, "dtype": np.float64}
        score = Similarity("general", 3, V + LONGEST, **float64)
        simple = {"global": GlobalAttention(score), "local-m": LocalMonotonic(score, reach=D)}
        self.attention = simple.get(kind) or LocalPredictive(score, reach=D, **float64)
        self.read = Linear(V + LONGEST, V, **float64)

    def forward(self, states, memory, mask):
        context, attended = self.attention.forward(states, memory, mask)
        logits, read = self.read.forward(context)
        return logits, (attended, read)

    def backward(self, dlogits, cache):
        attended, read = cache
        return self.attention.backward(self.read.backward(dlogits, read), attended)


# %% [markdown]
# 400 steps of Adam with 32 sentences each. On the way we write down where local-p's finger stands in a
# sentence of ten words. A fourth learner, "finger fixed", is local-p whose v and W never move: its finger
# stays where random weights put it.

# %%
ten = np.stack([np.ones(10), np.arange(10) / 5, (9 - np.arange(10)) / 5], -1)  # (T, 3)
WRITE_DOWN = (0, 20, 40, 100, 400)


def learn(kind, order, seed=1, steps=400):
    """Returns (the reader, its accuracy on new sentences, where the finger stood (5, 10))."""
    rng, fingers = np.random.default_rng(seed), []
    reader = Reader(kind, rng)
    adam, finger = Adam(reader), reader.attention
    for step in range(steps + 1):
        if kind == "local-p" and step in WRITE_DOWN:
            found = finger.position_weight.value, finger.position_v.value
            fingers.append(F.predict_position(ten, *found, np.array(10))[0])
        states, memory, mask, targets = sentences(32, order, rng)
        logits, cache = reader.forward(states, memory, mask)
        _, judged = F.cross_entropy(logits, targets, pad_id=-1)
        reader.zero_grad()
        reader.backward(F.cross_entropy_backward(1.0, judged), cache)
        if kind == "finger fixed":
            finger.position_v.grad[...] = finger.position_weight.grad[...] = 0
        adam.step(0.03)
    states, memory, mask, targets = sentences(2000, order, np.random.default_rng(1000))
    right = reader.forward(states, memory, mask)[0].argmax(-1) == targets
    return reader, right[mask].mean(), np.array(fingers)


# %%
readers, correct, fingers = {}, {}, {}
print("share of words right     copy   reverse")
for kind in ("global", "local-m", "finger fixed", "local-p"):
    both = [learn(kind, order) for order in ("copy", "reverse")]
    readers[kind], correct[kind], fingers[kind] = zip(*both, strict=True)
    print(f"{kind:20}", "  ".join(f"{one:7.1%}" for one in correct[kind]))
longer = learn("global", "reverse", steps=1600)[1]
print(f"global, 1,600 steps           {longer:7.1%}")

# %% [markdown]
# **local-m** copies as well as global attention, with 5 words in sight in place of 12, and cannot reverse:
# word t wants word S − 1 − t, which is within 2 of t only near the middle. In sentences of 4 to 12 words that
# holds for 2 words where S is even and 3 where it is odd, 22 of 72 or 31%. Elsewhere it guesses, 1 in 8.
#
# **local-p** does both, 96%, and the fixed finger shows what makes it. **Global** attention can reverse too:
# it has to tell twelve places apart by scores that grow sharp slowly, 67% after 400 steps, 83% after 1,600.
# The Gaussian is sharp before anything is learned. How did the finger get there?

# %%
names = [f"step {step}" for step in WRITE_DOWN]
figure = curves(fingers["local-p"][1], labels=names, xlabel="word t", ylabel="p, the finger")
show_figure(figure, "18_finger", "Reversing ten words: the line turns round its middle")

# %%
states, memory, mask, _ = sentences(2000, "reverse", np.random.default_rng(1000))
wanted = mask.sum(-1)[:, None] - 1 - places  # (B, T) which word is wanted
_, (attended, _) = readers["local-p"][1].forward(states, memory, mask)
one = int((mask.sum(-1) == 10).argmax())  # a sentence of ten words
figure = attention_map(attended.weights[one, :10, :10], None, None, numbers=True)
show_figure(figure, "18_reversed", "local-p after learning: ten words, backwards")

# %%
off = abs(attended.positions - wanted)[mask]
print(f"the finger is off by {off.mean():.2f} on average, weights sum to", end=" ")
print(f"{attended.weights.sum(-1)[mask].mean():.2f}")
assert (attended.weights.argmax(-1) == wanted)[mask].all()  # every word
assert ((fingers["local-p"][1][0] > 3) & (fingers["local-p"][1][0] < 6)).all()
assert_allclose(correct["local-m"], [0.67, 0.26], atol=0.03)
assert_allclose([*correct["local-p"]], 0.96, atol=0.015)
assert_allclose([*correct["global"], longer], [0.67, 0.67, 0.83], atol=0.03)
in_sight = [sum(abs(S - 1 - 2 * t) <= D for t in range(S)) for S in range(4, 13)]
assert (in_sight, sum(range(4, 13))) == ([2, 3] * 4 + [2], 72)

# %% [markdown]
# At the start the line rises, as random weights have it, and all ten fingers stand between 3 and 6. For the
# words in the middle what is wanted is inside the window, and pulls. At the ends it is not. But what predicts
# p is smooth: as the middle turns, the ends turn with it, until their words come into the window and pull
# too. In the end the largest weight is at the right word for *every* word of 2,000 sentences. The 4% that
# are wrong come of the neighbours, which are read along.
#
# And if what is in the window pulls the wrong way? Another start, with the fingers near the last word:

# %%
_, stuck, fingers_stuck = learn("local-p", "reverse", seed=11)
for step, row in zip(WRITE_DOWN, fingers_stuck, strict=True):
    print(f"step {step:3}   p " + " ".join(f"{x:5.2f}" for x in row))
print(f"share of words right: {stuck:.1%}")
assert_allclose(stuck, 0.44, atol=0.03)
in_sight = abs(fingers_stuck[0] - np.arange(9, -1, -1)) <= D  # at the start
assert_array_equal(in_sight, np.arange(10) < 3)
assert_allclose(fingers_stuck[-1, :4], [9, 8, 7, 6], atol=0.3)
u = fingers_stuck / 10  # the share
print("u (1 - u) at the end:", (u * (1 - u))[-1].round(3))
assert (u * (1 - u))[0].min() > 0.05 > 0.0125 > (u * (1 - u))[-1, 4:].max()

# %% [markdown]
# The first three words have what they want in sight, learn it, and take the fourth along: 9, 8, 7, 6. From
# word 4 on, nobody in the window calls. The fingers drift to the end, where u (1 − u) is at most .012 (it
# began at .05 to .18), and stay. That is the price: **what is not looked at cannot say that it should be.**
#
# A whole translator falls into the same trap if D is small. `rnn-local-p` with D = 4, on a smaller form
# of the built-in corpus with 18,152 training pairs: after 30 steps of training p was .99 S at *every*
# word, since Adam moves all numbers of v and W by the same amount, and in the sigmoid these add up. After
# 300 steps the validation loss was .97. With D = 10, as in the paper, far words keep some weight (σ = 5),
# so they can call: .51, and global attention had .50. With D = 4 and steps of v and W a tenth as large it
# was .52: so it was the saturation.
#
# What this does not say: that local-p is better. A line is just what S · sigmoid can draw. In the paper's
# Table 4 (English to German, `general`) perplexities are 6.1 for global, 6.2 for local-m, 5.9 for local-p.
#
# ## Exercises
#
# `npformer exercise list` has them, each graded by the gradient checker.
#
# - `npformer exercise start gaussian-window-backward`: two products, and one sum over the words.
# - `npformer exercise start predict-position-backward`: back through S, the sigmoid, v, tanh and W.
# - By hand: divide w by its sum, r = w / Σw. Show that dp = Σ rₛ (drₛ − Σ dr r) (s − p) / σ²: the average is
#   back, and dr that are all alike give 0.
#
# To try now, in the terminal: `!learn("local-p", "copy", seed=4)[1:]`, and `s cache.predicted`. The bug zoo
# has this lesson's trap: `npformer bugs start 20`. Outside, `npformer figures F56 F57` draws window and
# Gaussian for a sentence; `RecurrentConfig.architecture("rnn-local-p")` of `npformer.models.recurrent` is a
# translator.
#
# ## Where the documents differ
#
# - *The components of the Transformer* prints the window as [pt D, pt+D]: a minus is missing. Its formulas
#   are pictures from the paper. It calls local attention differentiable; the paper, almost everywhere.
# - It says that p lies in [0, S]; the sigmoid reaches neither end. The paper does not say whether words count
#   from 0 or from 1. Here they count from 0, so p near S is one place behind the last word.
# - It and the paper give local attention weights of a fixed length, in the paper 2D + 1. npformer's are
#   (T, S), 0 outside the window: all attentions are drawn and compared alike, and no time is saved.
#
# **Next**, lesson 19: attention that looks at one word only, and the gradient of a draw.

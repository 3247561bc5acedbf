# %% [markdown]
# # 18 · Looking locally
#
# *30 minutes to read, 5 seconds to run. Lesson 5 for the softmax's gradient, lesson 6 for masks, lesson 17 for
# global attention.*
#
# **The question.** Global attention compares every word that is written with every word of the source. A
# reader does not: who translates a paragraph keeps a finger on the line, and looks a little to the left and
# to the right of it. How does a network know where its finger is? And if it moves the finger itself, what
# does the loss say to the finger?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.attention import GlobalAttention, LocalMonotonic, LocalPredictive, Similarity
from npformer.course import show_figure
from npformer.functional import attention, gaussian_window, inside_window, predict_position
from npformer.functional import gaussian_window_backward, softmax, softmax_backward
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.gradcheck import gradcheck
from npformer.layers import Linear
from npformer.masks import local_mask
from npformer.module import Module
from npformer.optim import Adam
from npformer.plots import attention_map, curves

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
# For target word t there is a **position** pₜ in the source, and a **window** [pₜ − D, pₜ + D]. What is outside
# is not looked at. The paper has two ways to find pₜ, and uses D = 10:
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
# Slowly, for each target word by itself: cut the window out of the source's states m, compare the state h
# with those, softmax, mean. "If the window crosses the sentence boundaries, we simply ignore the outside
# part", says the paper's footnote.

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
# A window holds 2D + 1 words. At each end of the source, the windows of D target words stick out, by
# D, D − 1, … 1 words. For T = S > 2D:
#
# ```math
# global     S²
# local      S (2D + 1) − 2 (D + … + 1)  =  S (2D + 1) − D (D + 1)
# ```
#
# The square is gone: the cost of *one* target word no longer depends on the length of the source. With the
# paper's D = 10, at 30 words that is little. On a document it is all.

# %%
assert compared == S * (2 * D + 1) - D * (D + 1)
for length in (30, 300, 3000):
    local = local_mask(length, 10, memory).sum()
    print(f"S {length:5}   global {length**2:9,}   local {local:7,}   {local / length**2:.1%}")
    assert local == length * 21 - 110
assert_allclose(local / length**2, 0.007, atol=0.0005)

# %% [markdown]
# ### A window is a mask
#
# The package does not slice. It computes all scores and hides those outside, so it is easy to read and saves
# nothing; the loop above is the one that saves. The mask is that of lesson 6, `local_mask`, and with it
# attention without the scale is local-m to the last digits:

# %%
window = inside_window(np.arange(S), S, D)  # (T, S): pₜ = t
assert_array_equal(window, local_mask(S, D, memory))
y, _ = attention(states, memory, memory, window, scale=1.0)
assert_allclose(y, slow, rtol=1e-12)

far = np.linalg.matrix_power(window.astype(int), 3) > 0  # what reaches what in three layers
assert_array_equal(far, local_mask(S, 3 * D, memory))
print("a word hears of", window[0].sum() - 1, "behind it; after three layers, of", far[0].sum() - 1)

# %% [markdown]
# The last lines answer a question about Transformers: with a local mask in *every* layer of an encoder, is a
# word cut off from what is far? No. A word hears of its neighbours what they heard of theirs, so L layers
# reach L · D places. A decoder of one layer over a finished source has no such second chance: **what is
# outside the window does not exist**. If a language puts the verb last, pₜ = t is the wrong place to look.
# We measure that below. First, let pₜ move.
#
# ## local-p, forward
#
# Four steps for one state h. **Step 1**, the place. A sigmoid is a share between 0 and 1, of S words:

# %%
h = rng.standard_normal(N)  # (N,) one state of the decoder
W, v = rng.standard_normal((N, 4)), rng.standard_normal(4)  # (N, J), (J,)
hidden = np.tanh(h @ W)  # (J,)
share = 1 / (1 + np.exp(-hidden @ v))  # ()
p = S * share
print(f"share {share:.4f} of {S} words: p = {p:.4f}")
assert_allclose(p, predict_position(h, W, v, np.array(S))[0], rtol=1e-12)

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
# With σ = D / 2 the factor is e^−½ at a distance of D / 2, and e^−2 at D, where the window ends. **Step 4** is
# the mean, c = Σₛ wₛ mₛ.

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
at = np.array([0, D / 2, D])
assert_allclose(gaussian_window(np.ones((3, 1)), at, sigma)[0][:, 0], [1, 0.6065, 0.1353], atol=5e-5)
assert w.sum() < a.sum()

# %% [markdown]
# The weights of global attention sum to 1. These do not: whatever the Gaussian takes off is gone. The paper
# writes the product and no new division, and the package does so too. So c is not quite a mean: it is
# *shorter* where the words that the softmax likes are far from p. A state that points its finger badly
# reads in a low voice. That is a signal, and it will matter in backward.

# %%
figure = curves(
    np.array([a, g, w]),
    labels=["a, softmax in the window", "g, the Gaussian", "w = a g"],
    xlabel="word s of the source",
    ylabel="weight",
    title=f"p = {p:.2f}, D = {D}",
)
caption = "The softmax is cut off at p − D and p + D; the Gaussian lowers what is left"
show_figure(figure, "18_window", caption)

# %% [markdown]
# ## Backward
#
# dc has arrived, (N,). Through the mean as in lesson 5, then into the product, where each factor is the other
# one's slope:
#
# ```math
# c  = Σₛ wₛ mₛ        dwₛ = dc · mₛ
# wₛ = aₛ gₛ           daₛ = dwₛ gₛ          dgₛ = dwₛ aₛ
# ```
#
# The Gaussian holds the only new derivative. With d = s − p, ∂d/∂p = −1:
#
# ```math
# ∂gₛ/∂p = gₛ · ∂/∂p [−(s − p)² / 2σ²]
#        = gₛ · [−2 (s − p) (−1) / 2σ²]
#        = gₛ (s − p) / σ²
# ```
#
# p reaches every word of the window, so its gradient is a sum over them:
#
# ```math
# dp = Σₛ dgₛ gₛ (s − p) / σ²
#    = Σₛ dwₛ wₛ (s − p) / σ²
# ```

# %%
dc = rng.standard_normal(N)  # (N,)
dw = memory @ dc  # (S,)
da, dg = dw * g, dw * a  # (S,)
dp = 0.0
for s in range(S):
    dp += dg[s] * g[s] * (s - p) / sigma**2
assert_allclose(dp, (dw * w * (np.arange(S) - p)).sum() / sigma**2)

_, gaussian = gaussian_window(a, p[None], sigma)
da_package, dp_package = gaussian_window_backward(dw, gaussian)
assert_allclose(da, da_package, rtol=1e-12)
assert_allclose(dp, dp_package[0], rtol=1e-12)
pulls = dw * w * (np.arange(S) - p) / sigma**2  # (S,)
print("pulls", pulls.round(3), "  together", round(dp, 3))

# %% [markdown]
# Read it: **every word in the window pulls the finger**. A word that the loss wants more of (dwₛ > 0 raises
# what is to be raised) pulls to its own side, one that it wants less of pushes away; the strength is its
# present weight times its distance. A word outside has w = 0, and *does not pull*. Keep that in mind.
#
# And compare with the softmax, whose gradient took the average off: ds = a (da − Σ da a). There is no average
# here. If the loss wants *all* words a little more (all dw equal), a softmax has nothing to offer, and its
# scores hear 0. But the finger does hear something: go where there is more to read.

# %%
alike = np.ones(S)  # dw: more of every word
assert_allclose(softmax_backward(alike, a), 0, atol=1e-15)
of_p = (alike * w * (np.arange(S) - p)).sum() / sigma**2
step = 1e-3 * np.sign(of_p)
more = (a * np.exp(-((np.arange(S) - p - step) ** 2) / (2 * sigma**2))).sum()
print(f"dp {of_p:+.3f}; a small step that way: the weights sum to {more:.5f}, up from {w.sum():.5f}")
assert more > w.sum()

# %% [markdown]
# On to what p was made of. The four operations, the last one first:
#
# ```math
# p = S u              du = dp S
# u = sigmoid(z)       dz = du u (1 − u)
# z = v · k            dv = dz k                 dk = dz v
# k = tanh(b)          db = dk (1 − k²)
# b = h W              dW = hᵀ db                dh = db Wᵀ
# ```
#
# (u is the share, k is `hidden`.) Note S in the first line: where the source is long, the same step of W moves
# the finger farther. And u (1 − u) in the second: near either end of the sentence it is nearly 0, so a finger
# that stands at an end is hard to move. The scores h · mₛ bring h a second gradient, and both add up:

# %%
du = dp * S
dz = du * share * (1 - share)
dv, dk = dz * hidden, dz * v  # (J,), (J,)
db = dk * (1 - hidden * hidden)  # (J,)
dW = np.outer(h, db)  # (N, J)
dscores = a * (da - (da * a).sum())  # (S,)
dh = db @ W.T + dscores @ memory  # (N,): where to look, and what to look for
dmemory = np.outer(w, dc) + np.outer(dscores, h)  # (S, N): what is read, and what is compared

layer = LocalPredictive(Similarity("dot", N, N), reach=D, dtype=np.float64)
layer.position_weight.value = np.hstack([W, np.zeros((N, 2))])  # the package's is (N, N)
layer.position_v.value = np.append(v, [0, 0])
layer.position_weight.grad, layer.position_v.grad = np.zeros((N, N)), np.zeros(N)
context, cache = layer.forward(h[None, None], memory[None])  # (1, 1, N)
dh_package, dmemory_package = layer.backward(dc[None, None], cache)
assert_allclose(c, context[0, 0], rtol=1e-12)
assert_allclose(dh, dh_package[0, 0], rtol=1e-9)
assert_allclose(dmemory, dmemory_package[0], rtol=1e-9, atol=1e-15)
assert_allclose(dW, layer.position_weight.grad[:, :4], rtol=1e-9)
assert_allclose(dv, layer.position_v.grad[:4], rtol=1e-9)
print("c, dh, dmemory, dW and dv are those of the package")

# %% [markdown]
# The cache has both halves side by side: what said where (`predicted`), and what said how much (`gaussian`,
# whose `weights` are a, `bell` g, and `away` s − p).

# %%
show(cache)

# %%
words = np.arange(7) < np.array([[7], [4]])  # (B, S): the second sentence has four words
inputs = rng.standard_normal((2, 5, N)), rng.standard_normal((2, 7, N))
checked = LocalPredictive(Similarity("general", N, N, rng=1, dtype=np.float64), reach=D, rng=2)
report = gradcheck(checked, *inputs, mask=words)
print(report)
assert report.ok

# %% [markdown]
# ## The edge of the window
#
# The paper says of local-p, in a footnote: "This model is differentiable almost everywhere." Where not? Let
# all scores be fixed and p walk through the source, and look at the weight of word 4:

# %%


def local(scores, p):
    """w, by scores and p. Shapes: scores (..., S), p (...) -> w (..., S)."""
    inside = inside_window(p, scores.shape[-1], D)
    aligned, _ = softmax(np.where(inside, scores, -np.inf))
    return gaussian_window(aligned, p, sigma)


def local_backward(dw, cache):
    """Returns (dscores, dp)."""
    da, dp = gaussian_window_backward(dw, cache)
    return softmax_backward(da, cache.weights), dp


flat = np.zeros((801, S))  # all words score alike
likes_5 = flat + 4.0 * (np.arange(S) == 5)  # word 5 scores 4 more
walk = np.linspace(0, 8, 801)
figure = curves(
    np.array([local(flat, walk)[0][:, 4], local(likes_5, walk)[0][:, 4]]),
    walk,
    labels=["all score alike", "word 5 scores more"],
    xlabel="p",
    ylabel="weight of word 4",
    legend=True,
)
show_figure(figure, "18_edge", "Smooth pieces, and a jump wherever a word enters or leaves the window")

# %% [markdown]
# Where an edge passes a word, the weights jump. With equal scores a leaving word takes its own e^−2 / 5 with
# it, .027, and the others get more, as the softmax now has fewer to share among. The jump can be much
# larger: in the second curve word 5 holds nearly all of the softmax, until p is 3 − 10⁻⁹ and the window no
# longer reaches it. Then the others share everything.

# %%
before, behind = (local(likes_5[0], np.array(3 + side))[0] for side in (-1e-9, 1e-9))
print("p just below 3:", before.round(3))
print("p just above 3:", behind.round(3))
assert_allclose(local(flat[0], np.array(3.0))[0][1], math.exp(-2) / 5)
assert_allclose([before[3], behind[3]], [0.25, 0.02], atol=0.005)

# %% [markdown]
# What does a gradient check say, a billionth to the left of this jump?

# %%
left = np.array(3 - 1e-9)
by_complex_step = gradcheck((local, local_backward), likes_5[0], left)
by_difference = gradcheck((local, local_backward), likes_5[0], left, method="difference")
print(by_complex_step)
print("by differences:", "all right" if by_difference.ok else "WRONG")
assert by_complex_step.ok
assert not by_difference.ok

# %% [markdown]
# Both are honest. A complex step does not move p at all, so it never crosses the edge, and says that the
# formulas are right, which they are: they are the slopes of the smooth piece. A difference steps across,
# divides a jump by a tiny h, and calls the same formulas wrong. **Neither tells how far the function jumps**,
# and no gradient knows of it. The slope says what a small step does. Add up all small steps from 2.6 to 3.4,
# and something is missing:

# %%


def slope(p):
    """The slope of the weights' sum. Shapes: p (P,) -> (P,)."""
    _, cache = local(np.broadcast_to(likes_5[0], (len(p), S)), p)
    return gaussian_window_backward(np.ones((len(p), S)), cache)[1]


middles = 2.6 + 0.8 * (np.arange(8000) + 0.5) / 8000  # none is 3
by_slopes = slope(middles).mean() * 0.8
total = [local(likes_5[0], np.array(at))[0].sum() for at in (2.6, 3 - 1e-9, 3 + 1e-9, 3.4)]
print(f"sum of w: at 2.6 {total[0]:.3f}, at 3.4 {total[3]:.3f}, change {total[3] - total[0]:+.3f}")
print(f"by slopes {by_slopes:+.3f}, jump {total[2] - total[1]:+.3f}")
assert_allclose(by_slopes + total[2] - total[1], total[3] - total[0], atol=1e-6)

# %% [markdown]
# The slopes are right on both sides, and wrong about the way from one to the other. In training it does
# little harm as long as the finger stands well: then the edge is at e^−2 and few care. It is at the start, with
# the finger anywhere, that the loss may go up after a step down.
#
# ## Padding: S counts words
#
# In a batch, short sentences are filled up. Which S does the sigmoid get? If it is the padded length, the same
# state points somewhere else, depending on *who else is in the batch*:

# %%
short = memory[:4]  # (4, N) four words
padded = np.vstack([short, np.zeros((8, N))])  # (12, N)
real = np.arange(12) < 4
alone, seen_alone = layer.forward(h[None, None], short[None])
right, seen = layer.forward(h[None, None], padded[None], real[None])
assert_allclose(alone, right, rtol=1e-12)

wrong_p, _ = predict_position(h, W, v, np.array(12))
inside = inside_window(wrong_p, 12, D) & real
print(f"S = 4: p {seen.positions[0, 0]:.2f}, sum of weights {seen.weights.sum():.2f}")
print(f"S = 12: p {wrong_p:.2f}, words in the window: {inside.sum()}")
assert not inside.any()

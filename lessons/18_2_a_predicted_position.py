# %% [markdown]
# # 18.2 · A predicted position: local-p
#
# *About 35 minutes. You need: local attention (lesson 18.1, `18_1_local_attention`), the gradient of the
# softmax (lesson 5.2, `05_2_the_backward_pass_of_attention`).*
#
# **After this lesson you can**
#
# - compute local-p attention: a predicted position, a softmax in a window, and a Gaussian;
# - derive its backward pass, also for the position;
# - explain from which tokens the position receives a gradient, and from which it does not.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn.attention import LocalPredictive, Similarity
from npformer.plots import curves

rng = np.random.default_rng(18)

# %% [markdown]
# ## local-p, forward
#
# In local-m, the window of target token t is at the position $p_t = t$. If the two languages have different
# word orders, this is wrong. So Luong et al. let the network predict the position from the state $h$ of the
# decoder. We do this for one state $h$ (N,) and a source of S tokens with states $m$ (S, N):

# %% tags=["plot"]
figure = shape_flow(
    ". p g . . \n h . a w c \n m . . . .",
    {
        "p": "S σ(…): h",
        "g": "Gaussian: p",
        "a": "softmax: h m",
        "w": "a g: a g",
        "c": "w m: w m",
    },
    {"h": "1 N", "m": "S N", "p": "1", "g": "1 S", "a": "1 S", "w": "1 S", "c": "1 N"},
)
caption = "Two paths lead from h to the context c: the position p, and the scores"
show_figure(figure, "18_2_shapes", caption)

# %% [markdown]
# **Step 1: the position.** The sigmoid returns a number between 0 and 1. It is multiplied by the number of
# tokens:
#
# $$p = S \cdot \sigma(v \cdot \tanh(h W))$$

# %%
S, N, D = 9, 6, 2  # the length of the source, the width of a state, the half width of the window
memory, h = rng.standard_normal((2, S, N))[0], rng.standard_normal(N)  # (S, N), (N,)
W, v = rng.standard_normal((N, 4)), rng.standard_normal(4)  # (N, J), (J,) with J = 4

hidden = np.tanh(h @ W)  # (J,)
share = 1 / (1 + np.exp(-hidden @ v))  # ()
p = S * share
print(f"share {share:.4f} of {S} tokens: p = {p:.4f}")

# %% tags=["check"]
assert_allclose(p, F.predict_position(h, W, v, np.array(S))[0], rtol=1e-12)

# %% [markdown]
# **Step 2: a softmax** over the tokens inside the window $[p - D, p + D]$. Its results are the weights $a_s$.
#
# **Step 3: a Gaussian.** Each weight is multiplied by a factor that is smaller for tokens farther from p:
#
# $$g_s = \exp\left(-\frac{(s - p)^2}{2 \sigma^2}\right), \qquad \sigma = \frac{D}{2}$$
#
# $$w_s = a_s\, g_s$$
#
# (This σ without an argument is the standard deviation of the Gaussian, and not the sigmoid.) At a distance
# of D/2, the factor is $e^{-1/2} = .6065$. At the end of the window, at a distance of D, it is
# $e^{-2} = .1353$.
#
# **Step 4: the context** is the sum $c = \sum_s w_s\, m_s$.

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

# %% tags=["check"]
at = np.array([0, D / 2, D])  # distances
factors, _ = F.gaussian_window(np.ones((3, 1)), at, sigma)  # (3, 1)
assert_allclose(factors[:, 0], [1, 0.6065, 0.1353], atol=5e-5)
assert_allclose(a.sum(), 1)
assert_allclose(w.sum(), 0.39, atol=0.005)

# %% tags=["plot"]
x = np.linspace(-0.5, 8.49, 900)
near = np.floor(x + 0.5).astype(int)  # the token nearest to x
bell, _ = F.gaussian_window(np.ones((900, 1)), p - x, sigma)
caption = f"p = {p:.2f}: the softmax ends at p − 2 and p + 2; the Gaussian reduces it"
names = ["a, softmax in the window", "g, the Gaussian", "w = a g"]
axes = {"xlabel": "token s of the source", "ylabel": "weight", "legend": True}
figure = curves(np.array([a[near], bell[:, 0], w[near]]), x, labels=names, **axes)
show_figure(figure, "18_2_window", caption)

# %% [markdown]
# The weights of global attention sum to 1. The weights $w$ of this example sum to .39, because the Gaussian
# reduces them, and they are not divided by their sum. The paper has no such division either. So $c$ is not
# exactly an average. It is *shorter* if the tokens with large weights are far from p.
#
# **Question.** Suppose that the token that the decoder needs is inside the window, but far from p. How can
# training increase its weight w?
#
# <details><summary>Answer</summary>
# In two ways: by a higher score, which increases a, or by moving p closer to the token, which increases g.
# </details>

# %% [markdown]
# ## The backward pass of the weights
#
# The gradient $dc$ (N,) has arrived. We begin with $c = \sum_s w_s\, m_s$ and with the product
# $w_s = a_s\, g_s$:
#
# $$dw_s = dc \cdot m_s, \qquad da_s = dw_s\, g_s, \qquad dg_s = dw_s\, a_s$$
#
# The Gaussian contains the only new derivative. The position $p$ occurs in all $g_s$, so $dp$ is a sum:
#
# $$\begin{aligned}
# \frac{\partial g_s}{\partial p}
# &= g_s\, \frac{\partial}{\partial p} \left(-\frac{(s - p)^2}{2\sigma^2}\right)
# = g_s \cdot \frac{2 (s - p)}{2\sigma^2} = g_s\, \frac{s - p}{\sigma^2} \\
# dp &= \sum_s dg_s\, g_s\, \frac{s - p}{\sigma^2} = \sum_s dw_s\, w_s\, \frac{s - p}{\sigma^2}
# \end{aligned}$$

# %%
dc = rng.standard_normal(N)  # (N,)
dw = memory @ dc  # (S,)
da, dg = dw * g, dw * a  # (S,)
away = np.arange(S) - p  # (S,) the distances s − p
terms = dg * g * away / sigma**2  # (S,)
dp = terms.sum()
print("terms", (terms + 0.0).round(3), "  dp", round(dp, 3))

# %% tags=["check"]
_, gaussian = F.gaussian_window(a, p, sigma)
da_package, dp_package = F.gaussian_window_backward(dw, gaussian)
assert_allclose(da, da_package, rtol=1e-12)
assert_allclose([dp, (dw * w * away / sigma**2).sum()], dp_package, rtol=1e-12)

# %% [markdown]
# Each token contributes one term to $dp$. Its size depends on three factors: the gradient $dw_s$ of its
# weight, the weight $w_s$, and the distance $s - p$. If the loss decreases when $w_s$ grows, gradient descent
# moves p *towards* token s. In the opposite case, it moves p away from s.
#
# **A token outside the window has $w_s = 0$, so it contributes nothing.** Lesson 18.4
# (`18_4_learning_a_position`) shows what follows from this.
#
# **Question.** Suppose that $da_s = 1$ for all tokens in the window. Which gradients do the scores receive?
#
# <details><summary>Answer</summary>
# They are 0. The weights a always sum to 1, so no change of the scores can increase all of them. In the
# formula of the softmax gradient, da is equal to its weighted mean.
# </details>
#
# The position is different, because the weights w have no fixed sum. If all $dw_s$ are 1, then $dp$ is the
# derivative of this sum. A step of p in the direction of $dp$ makes the sum larger. Gradient descent steps
# against $dp$, so it makes the sum smaller. We check both statements with numbers.

# %%
print("dscores for equal da:", abs(F.softmax_backward(np.ones(S), a)).max())
of_p = (w * away).sum() / sigma**2  # dp, if all dw are 1
step = 0.01 * np.sign(of_p)
moved = (a * np.exp(-((away - step) ** 2) / (2 * sigma**2))).sum()
sums = f"from {w.sum():.4f} to {moved:.4f}"
print(f"dp {of_p:+.3f}: a step of {step:+} changes the sum of w {sums}")

# %% tags=["check"]
assert_allclose(F.softmax_backward(np.ones(S), a), 0, atol=1e-15)
assert moved > w.sum()

# %% [markdown]
# ## The backward pass of the position
#
# We continue with the operations that computed $p$, the last one first. Let $u$ be the output of the sigmoid,
# $k$ the output of the tanh (`hidden`), and $z$ and $b$ the arguments of the sigmoid and of the tanh:
#
# $$\begin{aligned}
# p &= S\, u & \quad du &= S\, dp \\
# u &= \sigma(z) & \quad dz &= du\, u (1 - u) \\
# z &= v \cdot k & \quad dv &= dz\, k, \quad dk = dz\, v \\
# k &= \tanh(b) & \quad db &= dk \odot (1 - k^2) \\
# b &= h W & \quad dW &= h^\top db, \quad dh = db\, W^\top
# \end{aligned}$$
#
# Two lines deserve attention. Because of the factor S in the first line, the same change of W moves p farther
# in a long source. Because of $u (1 - u)$ in the second line, the gradient is nearly 0 when p is near 0 or
# near S. There the sigmoid is saturated, so p can hardly move.

# %% tags=["plot"]
figure = shape_flow(
    "dp du dz dk dh",
    {"du": "· S: dp", "dz": "σ: du", "dk": "· v: dz", "dh": "tanh, Wᵀ: dk"},
    {"dp": "1", "du": "1", "dz": "1", "dk": "1 J", "dh": "1 N"},
)
caption = "Back from the position to the state; dv, db and dW are computed on the way"
show_figure(figure, "18_2_backward", caption)

# %% [markdown]
# The state $h$ is used twice: for the position and for the scores $h \cdot m_s$. The memory is used twice as
# well: in the scores and in the weighted sum. The code adds these contributions. Then it compares all results
# with the layer `LocalPredictive`, whose matrix W is square (J = N). We fill its additional columns with 0.

# %%
du = dp * S
dz = du * share * (1 - share)
dv, dk = dz * hidden, dz * v  # (J,), (J,)
db = dk * (1 - hidden * hidden)  # (J,)
dW = np.outer(h, db)  # (N, J)
dscores = a * (da - (da * a).sum())  # (S,)
dh = db @ W.T + dscores @ memory  # (N,) from the position and from the scores
dmemory = np.outer(w, dc) + np.outer(dscores, h)  # (S, N) from the sum and from the scores

layer = LocalPredictive(Similarity("dot", N, N), reach=D, dtype=np.float64)
layer.position_weight.value[...] = np.hstack([W, np.zeros((N, 2))])
layer.position_v.value[...] = np.append(v, [0, 0])
context, cache = layer.forward(h[None, None], memory[None])  # (1, 1, N)
dh_package, dmemory_package = layer.backward(dc[None, None], cache)
print("largest difference in dh:", abs(dh - dh_package[0, 0]).max())

# %% tags=["check"]
assert_allclose(c, context[0, 0], rtol=1e-12)
assert_allclose(dh, dh_package[0, 0], rtol=1e-9)
assert_allclose(dmemory, dmemory_package[0], rtol=1e-9, atol=1e-15)
assert_allclose(dW, layer.position_weight.grad[:, :4], rtol=1e-9)
assert_allclose(dv, layer.position_v.grad[:4], rtol=1e-9)

# %% [markdown]
# You find the same lines in `npformer/functional/window.py`, in the functions `predict_position` and
# `gaussian_window`. The layer in `npformer/nn/attention/luong.py` combines them. In its cache, `predicted`
# belongs to the position. `gaussian` belongs to the weights: there `weights` is a, `bell` is g, and `away` is
# s − p.

# %%
show(cache)

# %% [markdown]
# Finally, the gradient check of the layer, for two sentences of different lengths.

# %%
real = np.arange(7) < np.array([[7], [4]])  # (B, S) the second sentence has four tokens
inputs = rng.standard_normal((2, 5, N)), rng.standard_normal((2, 7, N))  # (B, T, N), (B, S, N)
checked = LocalPredictive(Similarity("general", N, N, rng=rng), reach=D, rng=rng)
report = gradcheck(checked, *inputs, mask=real)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# **Your turn.** In the terminal, print the cache of the position with `s cache.predicted`.

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* says that p lies in [0, S]. The sigmoid reaches neither 0 nor 1, so
# >   p reaches neither end.
# > - The paper does not say whether tokens are counted from 0 or from 1. Here they are counted from 0, so a
# >   position near S is one position after the last token.

# %% [markdown]
# ## Summary
#
# - local-p predicts the position: $p = S \cdot \sigma(v \cdot \tanh(h W))$.
# - The weights are a softmax inside the window, times a Gaussian around p with σ = D/2.
# - The weights sum to less than 1, because nothing divides by their sum.
# - The gradient of the position is $dp = \sum_s dw_s\, w_s\, (s - p) / \sigma^2$.
# - Tokens outside the window contribute nothing to it, and a saturated sigmoid makes it small.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the context differentiable with respect to p, although a window has an edge?
#
# <details><summary>Answer</summary>
# Because p also occurs in the Gaussian, which is smooth. The derivative does not exist at the points where a
# token enters or leaves the window (lesson 18.3).
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 18` lists the exercises of this chapter. The gradient checker grades
# them.
#
# - `npformer exercise start gaussian-window-backward`: compute the gradient of weights that are multiplied by
#   a Gaussian. You need two products, and one sum over the words.
# - `npformer exercise start predict-position-backward`: compute the gradient of a predicted position. It goes
#   back through the product with S, the sigmoid, v, the tanh and W.
# - By hand: divide w by its sum, $r = w / \sum w$. Show that
#   $dp = \sum_s r_s (dr_s - \sum_i dr_i\, r_i) (s - p) / \sigma^2$. If all $dr_s$ are equal, this is 0.
# - `npformer figures F56 F57` draws the window and the Gaussian for a sentence.
#
# **Next**: lesson 18.3 (`18_3_the_edge_of_the_window`), what happens at the edge of the window.

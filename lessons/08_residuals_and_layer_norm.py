# %% [markdown]
# # 8 · Residuals and layer norm
#
# *About 80 minutes, in five parts. You need: the pair forward/backward and the gradient check
# (lesson 0), the chain rule, mean and variance.*
#
# **After this lesson you can**
#
# - compute layer normalization and explain each detail of its formula;
# - derive its backward pass, and explain which parts of the gradient it removes;
# - write a residual connection with dropout, forward and backward;
# - say what the norm and the residual connection do for the gradient in a stack of 24 layers;
# - explain why the Transformer does not use batch normalization.
#
# `[embedding] → [attention] → [ADD & NORM] → [feed-forward] → [ADD & NORM] → …`  (Figure 1)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import batch_norm, batch_norm_backward, dropout
from npformer.functional.linear import linear, linear_backward
from npformer.functional.norm import layer_norm, layer_norm_backward
from npformer.learn.course import show_figure
from npformer.models.transformer import Encoder, TransformerConfig
from npformer.nn import Context, Linear, PostNormResidual, PreNormResidual
from npformer.nn.module import Module
from npformer.nn.residual import PostNormCache
from npformer.plots import Figure, curves

rng = np.random.default_rng(8)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# A Transformer is a stack of layers. Each layer contains **sublayers**: attention and the feed-forward
# network. The output of a sublayer does not replace the vectors $x$ of the tokens. It is *added* to them, and
# the sum is normalized. *Attention Is All You Need* says this in section 3.1:
#
# > We employ a residual connection [11] around each of the two sub-layers, followed by layer
# > normalization [1]. That is, the output of each sub-layer is LayerNorm(x + Sublayer(x)), where Sublayer(x)
# > is the function implemented by the sub-layer itself.
#
# ```text
#              ┌───────────────── direct path ─────────────────┐
# x (B, T, D) ─┤                                               + ─→ s (B, T, D) ─→ norm ─→ y (B, T, D)
#              └─→ sublayer f ─→ f(x) (B, T, D) ─→ dropout ────┘
# ```
#
# The figure shows both operations of this lesson, the sum and the norm. We begin with the norm. Why is it
# needed? Each sublayer adds something to $x$, so the numbers could grow from layer to layer. The norm brings
# them back to the same size.

# %% [markdown]
# The paper does not define LayerNorm. It cites Ba, Kiros and Hinton (2016). **Layer normalization**, in short
# layer norm, treats each token separately. It uses only the D numbers of this token:
#
# $$\begin{aligned}
# m &= \frac{1}{D} \sum_i x_i, \quad v = \frac{1}{D} \sum_i (x_i - m)^2 \\
# \hat{x}_i &= \frac{x_i - m}{\sqrt{v + \varepsilon}} \\
# y_i &= g_i\, \hat{x}_i + b_i
# \end{aligned}$$
#
# The first line contains the mean and the variance. The vector $\hat{x}$ has mean 0 and variance 1. The
# **gain** $g$ and the **bias** $b$ are parameters with D numbers each. All tokens share them. The next cell
# computes the layer norm of the package, and a folded cell compares it with these formulas.

# %%
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
gain, bias = rng.standard_normal(4), rng.standard_normal(4)  # (D,)
eps = 1e-5

y, cache = layer_norm(x, gain, bias)
for name, row in (("the first token", x), ("normalized", cache.xhat), ("y", y)):
    print(f"{name:15}", row[0, 0])

# %% tags=["check"]
slow = np.zeros_like(x)
for sentence in range(2):
    for token in range(3):
        m = sum(x[sentence, token, i] for i in range(4)) / 4
        v = sum((x[sentence, token, i] - m) ** 2 for i in range(4)) / 4
        for i in range(4):
            xhat_i = (x[sentence, token, i] - m) / math.sqrt(v + eps)
            slow[sentence, token, i] = gain[i] * xhat_i + bias[i]
assert_allclose(y, slow, rtol=1e-12)

# %% [markdown]
# The cache keeps what the backward pass will need. These are $\hat{x}$, the factor $1/\sqrt{v + \varepsilon}$
# (`rstd`) and the gain. It does not keep $x$, $m$ or $v$.

# %%
show(cache)

# %% [markdown]
# Two details of the variance matter.
#
# **The sum is divided by D, and not by D − 1.** This is called the biased variance. The division by D − 1 is
# used to estimate the variance of a population from a sample. Here the D numbers are not a sample, so there
# is nothing to estimate. It follows that $\hat{x}$ has length $\sqrt{D}$ for every $x$, if we neglect ε.
#
# `torch.std` divides by D − 1 by default. Its result is larger by 15.5 % for D = 4, and by .1 % for D = 512,
# where nobody would notice this mistake.
#
# **The variance gets an extra ε under the root.** If all D numbers of a token are equal, the variance is 0,
# and without ε we would compute 0/0. For all other tokens, ε should have no effect. But it has one if the
# variance is not much larger than ε.

# %%
factor = [np.std(x[0, 0], ddof=1) / np.std(x[0, 0]), math.sqrt(512 / 511)]
print(f"with D − 1 the deviation is × {factor[0]:.4f} for D = 4, × {factor[1]:.5f} for D = 512")

for deviation in (1, 0.01, 0.001, 0):
    row = deviation * np.array([1.0, -1, 1, -1])  # variance deviation²
    sizes = [f"{layer_norm(row, 1.0, 0.0, e)[0][0]:.4f}" for e in (1e-5, 1e-6, 1e-8)]
    print(f"standard deviation {deviation:<6} x̂ for ε = 1e-5, 1e-6, 1e-8:", *sizes)

# %% tags=["check"]
assert_allclose(factor, [1.1547, 1.00098], rtol=1e-5)

# %% [markdown]
# ## What layer norm ignores
#
# **Question.** What happens to $\hat{x}$ if you add 100 to all numbers of $x$? What happens if you multiply
# $x$ by 7?
#
# <details><summary>Answer</summary>
# Nothing changes in the first case, because the mean also grows by 100. In the second case, the standard
# deviation is multiplied by 7 too. So the quotient stays the same, except for a small effect of ε.
# </details>

# %%
xhat = cache.xhat  # (B, T, D)
moved = layer_norm(x + 100, gain, bias)[1].xhat
stretched = layer_norm(7 * x, gain, bias)[1].xhat
print("x + 100: x̂ changes by", abs(moved - xhat).max())
print("7 x:     x̂ changes by", abs(stretched - xhat).max(), "because of ε")

# %% tags=["check"]
assert_allclose(moved, xhat, rtol=1e-9)
assert_allclose(stretched, xhat, rtol=1e-4)

# %% [markdown]
# So two of the D directions in which $x$ can change have no effect on $\hat{x}$. We will find them again in
# the backward pass.
#
# *This is a good place for a break. The next part derives the backward pass of layer norm.*
#
# ## Backward, one operation at a time
#
# We begin with the last line, $y_i = g_i\, \hat{x}_i + b_i$. All tokens of all sentences use the same $g$ and
# $b$, so their gradients are sums over all tokens $n$:
#
# $$\begin{aligned}
# db_i &= \sum_n dy_{ni} \\
# dg_i &= \sum_n dy_{ni}\, \hat{x}_{ni} \\
# d\hat{x}_i &= dy_i\, g_i
# \end{aligned}$$

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
db = dy.sum((0, 1))  # (D,)
dg = (dy * xhat).sum((0, 1))  # (D,)
dxhat = dy * gain  # (B, T, D)

# %% [markdown]
# The other steps concern one token only. We give each step a name:
#
# ```text
# x (D,) ─→ c = x − m (D,) ─┬──────────────────────────────────────────────→ x̂ = c · r (D,)
#                           └─→ v = mean of c² (1,) ─→ r = (v + ε)^(−½) (1,) ──↑
# ```
#
# **The product.** In $\hat{x}_i = c_i\, r$ there is one $r$ for all D numbers. So the gradient of $r$ is a
# sum:
#
# $$\begin{aligned}
# dc_i &= r\, d\hat{x}_i \\
# dr &= \sum_i d\hat{x}_i\, c_i
# \end{aligned}$$

# %%
c = x - x.mean(-1, keepdims=True)  # (B, T, D)
v = (c * c).mean(-1, keepdims=True)  # (B, T, 1)
r = (v + eps) ** -0.5  # (B, T, 1)
dc = r * dxhat  # (B, T, D)
dr = (dxhat * c).sum(-1, keepdims=True)  # (B, T, 1)

# %% [markdown]
# **The variance.** The derivative of $r = (v + \varepsilon)^{-1/2}$ with respect to $v$ is
# $-\frac12 (v + \varepsilon)^{-3/2} = -\frac12 r^3$. The derivative of $v$ with respect to $c_i$ is $2c_i/D$.
# So $c_i$ gets a second contribution, which is added to the first:
#
# $$\begin{aligned}
# dv &= -\frac{1}{2}\, r^3\, dr \\
# dc_i &= r\, d\hat{x}_i + \frac{2}{D}\, c_i\, dv
# \end{aligned}$$
#
# **The mean.** In $c_i = x_i - m$, the gradient of $c_i$ goes to $x_i$, and with a minus sign to $m$. The
# mean $m$ occurs in every $c_i$, so its gradient is a sum. Each $x_i$ has the factor $1/D$ in $m$:
#
# $$\begin{aligned}
# dm &= -\sum_i dc_i \\
# dx_i &= dc_i + \frac{1}{D}\, dm
# \end{aligned}$$

# %%
dv = -0.5 * r**3 * dr  # (B, T, 1)
dc = dc + 2 / 4 * c * dv  # (B, T, D), D = 4
dm = -dc.sum(-1, keepdims=True)  # (B, T, 1)
dx = dc + dm / 4  # (B, T, D)

# %% tags=["check"]
dx_package, dg_package, db_package = layer_norm_backward(dy, cache)
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(dg, dg_package, rtol=1e-9)
assert_allclose(db, db_package, rtol=1e-9)
print("dx, dgain and dbias are those of the package")

# %% [markdown]
# ## The same in one line
#
# These lines are right, but their meaning is hard to see. So we insert them into each other. Let
# $\langle a \rangle$ be the mean of the D numbers of a token. Then $dr = D\, \langle d\hat{x}\, c \rangle$.
# We also use $c_i\, r = \hat{x}_i$:
#
# $$\begin{aligned}
# dc_i &= r\, d\hat{x}_i - \frac{2}{D}\, c_i \cdot \frac{1}{2}\, r^3 \cdot D\, \langle d\hat{x}\, c \rangle \\
# &= r\, d\hat{x}_i - r\, (c_i\, r)\, \langle d\hat{x}\, c\, r \rangle \\
# &= r\, (d\hat{x}_i - \hat{x}_i\, \langle d\hat{x}\, \hat{x} \rangle)
# \end{aligned}$$
#
# The step of the mean subtracts $\langle dc \rangle$. Because $\langle \hat{x} \rangle = 0$, this is
# $r\, \langle d\hat{x} \rangle$. So the whole backward pass is
#
# $$dx_i = r\, (d\hat{x}_i - \langle d\hat{x} \rangle - \hat{x}_i\, \langle d\hat{x}\, \hat{x} \rangle)$$

# %%
mean = dxhat.mean(-1, keepdims=True)  # (B, T, 1)
along = (dxhat * xhat).mean(-1, keepdims=True)  # (B, T, 1)
in_one_line = r * (dxhat - mean - xhat * along)  # (B, T, D)
left = (dx * xhat).mean(-1, keepdims=True)  # (B, T, 1) the part along x̂
print("means of dx", abs(dx.mean(-1)).max(), "   parts along x̂", abs(left).max())

# %% tags=["check"]
assert_allclose(in_one_line, dx, rtol=1e-9)
assert_allclose(dx.mean(-1), 0, atol=1e-14)
assert_allclose(left, r * along * eps / (v + eps), rtol=1e-6)

# %% [markdown]
# This line can be interpreted. **The gradient loses the two directions that layer norm ignores.** Its mean is
# removed, because adding a number to all of $x$ changes nothing. Its part along $\hat{x}$ is removed, because
# multiplying $x$ by a number changes nothing. The factor $r$ says that the gradient is divided by the same
# standard deviation as $x$.
#
# The second statement is exact only for ε = 0. With ε, the product
# $\langle dx\, \hat{x} \rangle = r\, \langle d\hat{x}\, \hat{x} \rangle\, (1 - \langle \hat{x}^2 \rangle)$
# remains. It is small, because $1 - \langle \hat{x}^2 \rangle = \varepsilon / (v + \varepsilon)$.
#
# For D = 3 we can draw this. All vectors $x - m$ lie in the plane that is orthogonal to (1, 1, 1). Layer norm
# moves each of them along a ray to the circle of radius $\sqrt{3}$.
#
# **Question.** Which direction of $d\hat{x}$ at the circle does not reach $x$?
#
# <details><summary>Answer</summary>
# The direction of the ray, because this is the direction of $\hat{x}$. Only the part that is tangent to the
# circle remains.
# </details>
#
# The figure shows $d\hat{x}$ in grey. The blue arrow is what remains of it for $x$: the part **tangent to the
# circle**.

# %%
plane = np.array([[1, -1, 0], [1, 1, -2]]).T / np.sqrt([2, 6])  # (D, 2) two axes in the plane
angle, radius = np.arange(6) * 1.05 + 0.3, np.array([0.7, 2.4, 1.1, 2.3, 0.9, 1.3])
x3 = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1) @ plane.T  # (N, D) 6 tokens
d3 = np.random.default_rng(182).standard_normal((6, 3))  # (N, D)
_, cache3 = layer_norm(x3, np.ones(3), np.zeros(3), eps=0.0)
dx3 = layer_norm_backward(d3, cache3)[0] / cache3.rstd  # without r, to compare directions

# %% tags=["check"]
assert_allclose((dx3 * cache3.xhat).sum(-1), 0, atol=1e-12)

# %% tags=["plot"]
centred, normed, wanted, back = ((a @ plane).T for a in (x3, cache3.xhat, d3, dx3))  # (2, N)
figure = Figure(figsize=(6.6, 4.3))
ax = figure.add_axes((0, 0, 0.66, 1))
turn = np.linspace(0, 2 * np.pi, 200)
ax.plot(np.sqrt(3) * np.cos(turn), np.sqrt(3) * np.sin(turn), color="#c8ccd0")
ax.plot(*np.stack([centred, normed], 1), color="#8a8f94", linewidth=1, linestyle=":")
ax.scatter(*centred, s=18, color="#4a8f45", label="x − m")
ax.scatter(*normed, s=26, color="#a8005c", label="x̂, on the circle")
style = {"angles": "xy", "scale_units": "xy", "scale": 1.5, "width": 0.008}
ax.quiver(*normed, *wanted, color="#b9bdc2", label="dx̂, the gradient of x̂", **style)
ax.quiver(*normed, *back, color="#0b4a8f", label="dx / r, the gradient of x", **style)
ax.set(aspect="equal", xlim=(-2.7, 2.7), ylim=(-2.7, 2.7))
ax.axis("off")
figure.legend(loc="center right", frameon=False, fontsize=9)
caption = "Six tokens with D = 3: the gradient of x is tangent to the circle"
show_figure(figure, "08_circle", caption)

# %% [markdown]
# ## Is it right? Check with random gain and bias
#
# At the start of training, the gain is 1 and the bias is 0. With these values, some mistakes are invisible.
# We plant two mistakes:
#
# - The first multiplies by the gain at the end, $dx = g\, r\, (\ldots)$, and not at the beginning.
# - The second keeps $y$ in the cache instead of $\hat{x}$. With gain 1 and bias 0 the two are equal.
#
# The cell checks each of them twice: with gain 1 and bias 0, and with random values.

# %%


def gain_at_the_end(dy, cache):
    dx, dgain, dbias = layer_norm_backward(dy, cache._replace(gain=np.ones_like(cache.gain)))
    return cache.gain * dx, dgain, dbias


def keeps_y(x, gain, bias):
    y, cache = layer_norm(x, gain, bias)
    return y, cache._replace(xhat=y)


pairs = {
    "gain at the end": (layer_norm, gain_at_the_end),
    "y for x̂": (keeps_y, layer_norm_backward),
}
for mistake, pair in pairs.items():
    at_start = gradcheck(pair, x, np.ones(4), np.zeros(4))
    at_random = gradcheck(pair, x, gain, bias)
    assert at_start.ok
    assert not at_random.ok
    wrong = [row.tensor for row in at_random.failures]
    print(f"{mistake:16} with 1 and 0: no error    random values: wrong in", *wrong)

# %% [markdown]
# Both mistakes pass the check of a new layer. After one training step, their gradients are wrong. For this
# reason, `gradcheck` gives gains and biases random values before it checks a layer. Here is the check of the
# package's functions:

# %%
report = gradcheck((layer_norm, layer_norm_backward), x, gain, bias)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# *This is a good place for a break. The next part builds the residual connection.*
#
# ## The residual connection
#
# A **residual connection** adds the input of a sublayer to its output. So a sublayer needs to compute only a
# change of $x$, and the information in $x$ is kept. In the paper, the norm follows:
#
# $$s = x + f(x), \qquad y = \mathrm{norm}(s)$$
#
# So $x$ is used twice. It goes through the sublayer $f$, and it also goes directly to the sum. We call these
# the **sublayer path** and the **direct path**. The backward pass follows the rules of lesson 0. A sum passes
# its gradient unchanged to both terms. And an array that is used twice gets the sum of two gradients:
#
# ```text
#                              ┌────────────────── direct path: ds ──────────────────┐
# dy ─→ backward of norm ─→ ds ┤                                                     + ─→ dx (B, T, D)
#                              └─→ backward of f ─→ sublayer path: gradient through f ┘
# ```
#
# In the package this is the class `PostNormResidual`. Its `forward` takes $x$ and the sublayer as a function.
# In the next cell the sublayer is a linear map.

# %%


class Framed(Module):
    """A linear map in a residual connection of a given class."""

    def __init__(self, frame=PostNormResidual):
        self.residual = frame(4, dropout=0.2, dtype=np.float64)
        self.f = Linear(4, 4, rng=np.random.default_rng(0), dtype=np.float64)

    def forward(self, x, *, train=False, rng=None):
        return self.residual.forward(x, self.f.forward, Context(train, rng))

    def backward(self, dy, cache):
        return self.residual.backward(dy, cache, self.f.backward)


# %% [markdown]
# Now we write the same calculation ourselves, and compare.

# %%
framed = Framed()
f, norm = framed.f, framed.residual.norm
h, f_cache = linear(x, f.weight.value, f.bias.value)
y, norm_cache = layer_norm(x + h, norm.gain.value, norm.bias.value)
ds, _, _ = layer_norm_backward(dy, norm_cache)
through, _, _ = linear_backward(ds, f_cache)
dx = ds + through

# %% tags=["check"]
y_package, caches = framed.forward(x)
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dx, framed.backward(dy, caches), rtol=1e-9)
print("the sum of both paths is the package's dx")

# %% [markdown]
# What happens if the backward pass forgets one of the two paths? A model with this mistake may still train,
# as the wrong split of lesson 7 did. The gradient check finds both mistakes. It also checks the two correct
# classes of the package, with the norm after and before the sublayer. These checks include dropout (next
# section). It uses the same seed at every evaluation, so that its random numbers do not change.

# %%


class ForgetsDirect(PostNormResidual):
    def backward(self, dy, cache, sublayer_backward):
        _, dh = self.norm.backward(dy, cache.add_norm)
        return sublayer_backward(dh, cache.sublayer)


class ForgetsSublayer(PostNormResidual):
    def backward(self, dy, cache, sublayer_backward):
        dx, dh = self.norm.backward(dy, cache.add_norm)
        sublayer_backward(dh, cache.sublayer)
        return dx


for frame in (ForgetsDirect, ForgetsSublayer):
    wrong = gradcheck(Framed(frame), x, train=True, rng=7).failures[0]
    print(frame.__name__, "is wrong in", wrong.tensor)
    assert wrong.tensor == "x"
report = gradcheck(framed, x, train=True, rng=7)
print(report)

# %% tags=["check"]
assert gradcheck(Framed(PreNormResidual), x, train=True, rng=7).ok
assert report.ok

# %% [markdown]
# ## Where dropout sits
#
# Section 5.4 of the paper adds one more operation:
#
# > We apply dropout [33] to the output of each sub-layer, before it is added to the sub-layer input and
# > normalized. In addition, we apply dropout to the sums of the embeddings and the positional encodings in
# > both the encoder and decoder stacks.
#
# **Dropout** sets random numbers to 0 during training, each with probability $p$. The others are divided by
# $1 - p$, so that the expected value stays the same. This makes the model less dependent on single numbers:
#
# $$y = \mathrm{norm}(x + \mathrm{dropout}(f(x)))$$
#
# $$\mathrm{dropout}(h) = h \odot \mathrm{mask}, \qquad \mathrm{mask}_i = 0\ \mathrm{or}\ \frac{1}{1 - p}$$

# %% [markdown]
# The mask is drawn once, and then it is a constant. So $dh = dy \odot \mathrm{mask}$: where the output is 0,
# the gradient is 0 too. Dropout is part of the sublayer path. The direct path has no dropout, so the vector
# of a token is never lost.

# %%
h = rng.standard_normal((2, 3, 4))  # (B, T, D) the output of a sublayer
dropped, dropout_mask = dropout(h, 0.1, np.random.default_rng(3))
print("the values in dropout_mask:", np.unique(dropout_mask))

# %% tags=["check"]
# the random numbers of the package: 64 random bits are four numbers of 16 bits
bits = np.random.default_rng(3).integers(0, 1 << 64, h.size // 4, dtype=np.uint64)
draws = bits.view(np.uint16).reshape(h.shape) / 65536
slow = np.zeros_like(h)
for at in np.ndindex(h.shape):
    slow[at] = 0 if draws[at] < 0.1 else h[at] / 0.9
assert_allclose(dropped, slow, rtol=1e-12)

# %% [markdown]
# *This is a good place for a break. The next part measures gradients in a stack of 24 layers.*
#
# ## Before or after
#
# The paper normalizes the sum. This is called **post-norm**. *Attention机制详解（二）* shows a later version
# of the authors' own code. It normalizes the input of the sublayer, and once more the output of the whole
# stack. This is called **pre-norm**. Let $J$ be the Jacobian of $f$, so that the backward pass of $f$
# multiplies by $J^\top$. Let $N$ be the backward pass of the norm:
#
# $$\begin{aligned}
# \mathrm{post:} \quad y &= \mathrm{norm}(x + f(x)) & \quad dx &= ds + J^\top ds, \quad ds = N(dy) \\
# \mathrm{pre:} \quad y &= x + f(\mathrm{norm}(x)) & \quad dx &= dy + N(J^\top dy)
# \end{aligned}$$
#
# **Question.** In which of the two can $dy$ reach the bottom of the stack without passing a norm?
#
# <details><summary>Answer</summary>
# In pre-norm. Its dx contains dy itself, so the direct paths of all layers together pass dy on unchanged. In
# post-norm, the direct path of every sublayer passes a norm.
# </details>

# %% [markdown]
# In post-norm, each norm divides the gradient by the standard deviation of $x + f(x)$. If $x$ and $f(x)$ are
# independent and have about the same size, this is a division by about $\sqrt{2}$.
#
# We measure the effect in a stack of 24 encoder layers before training. The sizes are a d_model of 64, 4
# heads, and ten tokens in each sentence. There are five variants:
#
# - post-norm and pre-norm;
# - post-norm without the direct path, without the norm, and without both.
#
# The last three show what each part does. The class `Frame` contains post-norm and these variants.

# %%


class Frame(PostNormResidual):
    """y = norm(direct · x + f(x)), or the same without the norm."""

    direct, normed = 1, True  # direct is 0 for a sublayer without the direct path

    def forward(self, x, sublayer, context=None):
        h, inside = sublayer(x)
        x = self.direct * x
        y, cache = self.norm.forward(x, h) if self.normed else (x + h, None)
        return y, PostNormCache(inside, cache)

    def backward(self, dy, cache, sublayer_backward):
        dx, dh = self.norm.backward(dy, cache.add_norm) if self.normed else (dy, dy)
        return self.direct * dx + sublayer_backward(dh, cache.sublayer)


def stack_of_24(norm="post", direct=1, normed=True):
    """A small encoder. All of its residual connections are of one kind."""
    sizes = {"d_model": 64, "d_ff": 256, "n_heads": 4, "n_layers": 24}
    config = TransformerConfig(**sizes, dropout=0.0, norm=norm, final_norm=norm == "pre")
    encoder = Encoder(config, rng=np.random.default_rng(0), dtype=np.float64)
    if norm == "pre":
        return encoder
    for layer in encoder.layers:
        for name in ("self_residual", "feed_forward_residual"):
            frame = Frame(64)
            frame.direct, frame.normed = direct, normed
            setattr(layer, name, frame)
    return encoder


# %% [markdown]
# The backward pass begins with a gradient of length 1 at *one token*, the first token of each of 16
# sentences. All other gradients are 0. After each layer we measure two numbers:
#
# - the **length** of the gradient (the median of the 16 sentences);
# - the **share** of the first token: the part of the squared length that is at this token, and not at the
#   other nine.

# %%
x = np.random.default_rng(1).standard_normal((16, 10, 64))  # (B, T, D)
dy = np.zeros_like(x)
dy[:, 0] = np.random.default_rng(2).standard_normal((16, 64))
dy /= np.linalg.norm(dy, axis=(1, 2), keepdims=True)


def measure(encoder):
    """One forward and one backward pass. Shapes: -> lengths and shares, each (25,)."""
    y, caches, gradients = x, [], [dy]
    for layer in encoder.layers:
        y, cache = layer.forward(y)
        caches.append(cache)
    if encoder.norm is not None:  # the norm at the top of the stack
        gradients = [encoder.norm.backward(dy, encoder.norm.forward(y)[1])]
    for layer, cache in zip(encoder.layers[::-1], caches[::-1], strict=True):
        gradients.append(layer.backward(gradients[-1], cache))
    lengths = [np.median(np.linalg.norm(dx, axis=(1, 2))) for dx in gradients]
    shares = [(dx[:, 0] ** 2).sum() / (dx**2).sum() for dx in gradients]
    return np.array([lengths, shares])


# %%
stacks = {
    "x + f(x)": measure(stack_of_24(normed=False)),
    "norm(x + f(x)), post": measure(stack_of_24()),
    "x + f(norm(x)), pre": measure(stack_of_24("pre")),
    "norm(f(x))": measure(stack_of_24(direct=0)),
    "f(x)": measure(stack_of_24(direct=0, normed=False)),
}
print("length of the gradient after   1         6        12        24 layers")
for name, (lengths, _) in stacks.items():
    print(f"{name:22}", "".join(f"{lengths[n]:10.2g}" for n in (1, 6, 12, 24)))

# %% tags=["plot"]
passed = np.arange(25)
figure = curves(
    [lengths for lengths, _ in stacks.values()],
    passed,
    labels=list(stacks),
    xlabel="layers that the gradient has passed",
    ylabel="its length",
    yscale="log",
)
caption = "With a norm, before or after, the length of the gradient stays near 1"
show_figure(figure, "08_length", caption)

# %% [markdown]
# Without both parts, the gradient at the bottom of the stack has length $2 \cdot 10^{-7}$. Almost
# nothing of it is left. With the direct path alone, it has length $2 \cdot 10^7$. The reason is that
# $x + f(x)$ is larger than $x$, and its gradient grows in the same way. With a norm, in *either* place, all
# lengths are between .15 and 1.5. So **the norm keeps the length of the gradient**. It does this even without
# the direct path.
#
# Then what is the direct path good for? The gradient began at one token. We now look at the share that is
# still at this token.

# %%
normed = {name: stacks[name] for name in stacks if "norm" in name}
print("share of the first token after 1      6     12     24 layers")
for name, (_, shares) in normed.items():
    print(f"{name:25}", "".join(f"{shares[n]:7.3f}" for n in (1, 6, 12, 24)))

# %% tags=["plot"]
figure = curves(
    [shares for _, shares in normed.values()],
    passed,
    labels=list(normed),
    xlabel="layers that the gradient has passed",
    ylabel="share of the first token",
)
caption = "The gradient of one of ten tokens: the share of it that reaches the same token"
show_figure(figure, "08_share", caption)

# %% [markdown]
# Without the direct path, the share is .10 after only one layer. So the gradient is equally distributed over
# the ten tokens. The reason is that before training, attention gives all tokens about the same weight. So its
# output is about the same average for all tokens. In the backward pass, the gradient of an average goes in
# equal parts to all tokens.
#
# **The direct path keeps the tokens distinct.** The place of the norm decides for how many layers. In
# post-norm the share is .92 after one layer, .26 after six layers as in the paper, and .1 after twelve. In
# pre-norm it is .99, .95 and .86, and .23 after 24 layers.

# %% [markdown]
# **Question.** Does this prove that six layers with post-norm cannot be trained?
#
# <details><summary>Answer</summary>
# No. The paper trained six such layers, with a warm-up of the learning rate (lesson 13). We measured only
# the state before training, when the attention weights are almost equal.
# </details>
#
# Xiong et al. (2020) found that pre-norm needs no warm-up. Dong et al. (2021) proved that a stack of
# attention layers without direct paths makes all tokens equal.
#
# Pre-norm also has a disadvantage. No norm follows the sum, and each sublayer adds to $x$. So the numbers
# grow from layer to layer. The cell measures their standard deviation at the top of the stack.

# %%
top = x
for layer in stack_of_24("pre").layers:
    top, _ = layer.forward(top)
print(f"pre-norm, deviation of x: {x.std():.1f} at the bottom, {top.std():.1f} at the top")

# %% tags=["check"]
unframed, post, pre, through, neither = stacks.values()
assert_allclose([neither[0][24] * 1e7, unframed[0][24] / 1e7], 2, atol=0.5)
assert all(((found[0] > 0.15) & (found[0] < 1.5)).all() for found in normed.values())
assert_allclose(post[1][[1, 6, 12]], [0.92, 0.26, 0.1], atol=0.01)
assert_allclose(pre[1][[1, 6, 12, 24]], [0.99, 0.95, 0.86, 0.23], atol=0.01)
assert_allclose(through[1][1], 0.1, atol=0.001)
assert_allclose([top.std(), pre[0][0]], [4.6, 1 / 4.6], rtol=0.03)

# %% [markdown]
# For this reason, a stack with pre-norm has one more norm at its top. `TransformerConfig(norm="pre")` refuses
# to work without it. This norm divides the gradient by 4.6, so the curve of pre-norm begins at 1/4.6 = .22.
#
# *This is a good place for a break. The last part compares layer norm with batch norm.*
#
# ## Why not batch norm?
#
# **Batch normalization** (Ioffe and Szegedy, 2015) uses the same formula along the other axes. It computes
# the mean and the variance of each of the D components over **all tokens of all sentences in the batch**:
#
# ```text
# layer norm   x (B, T, D) ─→ m, v over the last axis        (B, T, 1), one pair for each token
# batch norm   x (B, T, D) ─→ m, v over the first two axes   (D,), one pair for each component
# ```
#
# So batch norm is the layer norm of the transposed batch. This is true for the forward and the backward pass.

# %%
x = 1 + rng.standard_normal((4, 5, 8))  # (B, T, D) four sentences of five tokens
unit = np.ones(8), np.zeros(8)  # gain, bias
m, v = x.mean((0, 1)), x.var((0, 1))  # (D,) over all twenty tokens
y, cache = batch_norm(x, *unit)
after = abs(y.mean((0, 1))).max()
print(f"largest mean of a component: {abs(m).max():.2f}, after batch norm {after:.0e}")

# %% tags=["check"]
assert_allclose(y, (x - m) / np.sqrt(v + eps), rtol=1e-9)
dy = rng.standard_normal(x.shape)
columns, dcolumns = (a.reshape(20, 8).T for a in (x, dy))  # (D, N), N = B·T
turned, its_cache = layer_norm(columns, np.ones(20), np.zeros(20))
assert_allclose(turned.T.reshape(x.shape), y, rtol=1e-9)
dturned, _, _ = layer_norm_backward(dcolumns, its_cache)
assert_allclose(dturned.T.reshape(x.shape), batch_norm_backward(dy, cache)[0], rtol=1e-9)

# %% [markdown]
# With batch norm, the output for a token depends on the other sentences of the batch. The cell shows this in
# two ways. First it exchanges the *other* three sentences, and measures how much the first token of the first
# sentence changes. Then it starts the backward pass with a gradient at this token alone. It counts the tokens
# whose gradient is not 0.

# %%
other = np.concatenate([x[:1], 1 + rng.standard_normal((3, 5, 8))])  # the first sentence is x[0]
one_token = np.zeros_like(x)
one_token[0, 0] = rng.standard_normal(8)

norms = {
    "batch norm": (batch_norm, batch_norm_backward),
    "layer norm": (layer_norm, layer_norm_backward),
}
changes, reached = [], []
for name, (norm, backward) in norms.items():
    y, cache = norm(x, *unit)
    changes.append(abs(norm(other, *unit)[0] - y)[0, 0].max())
    reached.append(int(backward(one_token, cache)[0].any(-1).sum()))
    print(f"{name}: the token changes by {changes[-1]:.3f}; {reached[-1]} tokens get a gradient")

# %% tags=["check"]
assert reached == [20, 1]
assert changes[0] > 0.5
assert changes[1] == 0

# %% [markdown]
# **Padding** is a second problem, because batch norm counts it as tokens. Suppose that all sentences are
# filled up with zeros, until a fraction $p$ of all rows is padding. Let $m$ and $v$ be the mean and the
# variance of the real tokens. A fraction $p$ of zeros reduces the mean to $(1 - p)\, m$, and the mean of the
# squares to $(1 - p)(v + m^2)$. The variance is the mean of the squares minus the square of the mean:
#
# $$\begin{aligned}
# \mathrm{variance} &= (1 - p)(v + m^2) - (1 - p)^2 m^2 \\
# &= (1 - p)(v + p\, m^2)
# \end{aligned}$$
#
# So the real tokens do not get mean 0 and variance 1 any more. The result depends on the length of the
# longest sentence in the batch.

# %%
for n in (0, 5, 20):
    padded = np.concatenate([x, np.zeros((4, n, 8))], 1)  # (B, T + n, D)
    p = n / (5 + n)
    by_formula = (x - (1 - p) * m) / np.sqrt((1 - p) * (v + p * m * m) + eps)
    y, of_layer = (norm(padded, *unit)[0][:, :5] for norm in (batch_norm, layer_norm))
    assert_allclose(y, by_formula, rtol=1e-9)
    assert (of_layer == layer_norm(x, *unit)[0]).all()  # equal in every bit
    print(f"padding {p:3.0%}: first token {y[0, 0, :2]}, with layer norm {of_layer[0, 0, :2]}")

# %% [markdown]
# We could exclude padding from the mean and the variance (the package's `batch_norm` takes a `mask`). The
# dependence on the other sentences would remain.
#
# **Question.** A decoder produces one token at a time. What does batch norm return for a batch that consists
# of one token?
#
# <details><summary>Answer</summary>
# The token is its own mean, and the variance is 0. So $\hat{x}$ is 0, whatever the token is.
# </details>
#
# For this reason, batch norm uses averages from training when the model is used. In the package this is the
# class `BatchNorm`. Layer norm needs nothing but the token itself.

# %% tags=["check"]
assert_allclose(batch_norm(x[:1, :1], *unit)[0], 0, atol=1e-12)

# %% [markdown]
# **Your turn.** In the terminal, try `!layer_norm(np.array([3.0, 1.0]), 1.0, 0.0)[0]`. Then try
# `!print(gradcheck(Framed(ForgetsSublayer), x[:, :, :4]))`.

# %% [markdown]
# ## What the documents say
#
# > - **The place of the norm.** After the sum: the paper, *一步步解析Attention is All You Need!*,
# >   *图解transformer* and *The components of the Transformer*. Before the sublayer, and once more at the
# >   top: the code in *Attention机制详解（二）* (`layer_preprocess`, `layer_postprocess`). The text beside
# >   it describes the paper's Add & Norm. npformer has both, with `norm="post"` by default. It also takes
# >   sequences of operations: `norm="n-da"` normalizes before the sublayer, and drops and adds after it.
# > - **ε** is 10⁻⁸ in the demo of *一步步解析Attention is All You Need!*, 10⁻⁶ in *The components of the
# >   Transformer*, and 10⁻⁵ here and in PyTorch. The paper gives no value. The table above shows when it
# >   matters: when the standard deviation is about √ε.
# > - *一步步解析Attention is All You Need!* calls `normalize` at the end of its attention and of its
# >   feed-forward function, and never shows it. So the sum and the norm are inside the function that it calls
# >   scaled dot-product attention.
# > - **Dropout** is applied to the output of each sublayer in the paper and in *The components of the
# >   Transformer*. *一步步解析Attention is All You Need!* applies it only to the attention weights and the
# >   embeddings. The code of *图解transformer* applies it to the attention weights.
# > - *The components of the Transformer* gives two reasons against batch norm. The first is that it needs
# >   much GPU memory. This is not so: its cache has x̂ and D numbers, and that of layer norm has x̂ and one
# >   number for each token. The second is that rare features of language make the variance of a component
# >   large. This adds to what we measured above.
# > - It also says that gradients flow smoothly only with residual connections. In our measurement, the norm
# >   keeps the length of the gradient. The residual connection keeps the gradients of the tokens distinct.

# %% [markdown]
# ## Summary
#
# - Layer norm gives the vector of each token mean 0 and variance 1, then applies a gain and a bias.
# - Its backward pass removes the mean of the gradient and its part along $\hat{x}$.
# - A residual connection computes $x + f(x)$; backward, the gradients of both paths are added.
# - In a deep stack, the norm keeps the length of the gradient, and the direct path keeps tokens distinct.
# - Batch norm makes a token depend on other sentences and on padding; layer norm does not.

# %% [markdown]
# ## Questions
#
# **Question.** The gradient of $\hat{x}$ is the same number for all D components of a token. What is $dx$?
#
# <details><summary>Answer</summary>
# It is 0. The gradient is equal to its mean, and the mean is removed. The part along x̂ is 0 too, because the
# mean of x̂ is 0.
# </details>
#
# **Question.** Why does pre-norm need a norm at the top of the stack, and post-norm does not?
#
# <details><summary>Answer</summary>
# In post-norm, the last operation of every layer is a norm. In pre-norm it is a sum, so the numbers can grow
# from layer to layer.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 8` lists them. Each is graded by the gradient checker.
#
# - `npformer exercise start layer-norm`: the forward pass, also for rows whose numbers are almost equal.
# - `npformer exercise start layer-norm-backward`: three terms; two sums over a row, and two over the tokens.
# - `npformer exercise start residual-backward`: two paths that are added, with the norm after or before.
# - `npformer exercise start dropout-backward`: where the output was set to 0, the gradient is 0.
# - By hand: let D = 2 and ε = 0. Show that x̂ is (1, −1) or (−1, 1), and that dx is 0 for every dy. What
#   information does a layer norm of two numbers pass on to the next layer?
#
# **Next**, lesson 9: the feed-forward network, which processes each token separately.

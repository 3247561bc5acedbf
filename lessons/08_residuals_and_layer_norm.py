# %% [markdown]
# # 8 · Residuals and layer norm
#
# *30 minutes to read, 3 seconds to run. Lesson 0 for the pair forward/backward and the gradient check.*
#
# **The question.** A sublayer f, attention or the feed-forward network, never replaces a word's vector x.
# What it makes is *added* to x, and the sum is brought to mean 0 and variance 1. How do gradients come back
# through these two small operations? What is each of them good for, in a stack of 24 layers? And what
# changes when the norm stands not after the sum but before the sublayer?

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
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# *Attention Is All You Need*, section 3.1:
#
# > We employ a residual connection [11] around each of the two sub-layers, followed by layer
# > normalization [1]. That is, the output of each sub-layer is LayerNorm(x + Sublayer(x)), where Sublayer(x)
# > is the function implemented by the sub-layer itself.
#
# What LayerNorm computes the paper leaves to its reference (Ba, Kiros and Hinton, 2016). It takes one word at
# a time, and looks at nothing but that word's D numbers:
#
# ```math
# m = 1/D Σᵢ xᵢ                     their mean
# v = 1/D Σᵢ (xᵢ − m)²              their variance
# x̂ᵢ = (xᵢ − m) / √(v + ε)          mean 0, variance 1
# yᵢ = gᵢ x̂ᵢ + bᵢ                   a gain and a bias for each of the D places, learned
# ```

# %%
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
gain, bias = rng.standard_normal(4), rng.standard_normal(4)  # (D,)
eps = 1e-5

slow = np.zeros_like(x)
for sentence in range(2):
    for word in range(3):
        m = sum(x[sentence, word, i] for i in range(4)) / 4
        v = sum((x[sentence, word, i] - m) ** 2 for i in range(4)) / 4
        for i in range(4):
            xhat_i = (x[sentence, word, i] - m) / math.sqrt(v + eps)
            slow[sentence, word, i] = gain[i] * xhat_i + bias[i]

y, cache = layer_norm(x, gain, bias)
assert_allclose(y, slow, rtol=1e-12)
for name, row in (("the first word", x), ("normalized", cache.xhat), ("y", y)):
    print(f"{name:14}", row[0, 0])

# %% [markdown]
# What will backward need? x̂, 1/√(v + ε) and the gain. Not x, and neither m nor v by themselves.

# %%
show(cache)

# %% [markdown]
# Two details of the variance.
#
# **Divided by D**, not by D − 1: the *biased* variance. (D − 1 would estimate the variance of a population
# from a sample. Nothing is estimated here: these D numbers are all there is.) So x̂ has the length √D,
# whatever x was, but for ε. Code that takes D − 1 by accident, as `torch.std` does by default, divides by
# too much: by 15.5 % at D = 4, and by one in a thousand at D = 512, where nobody notices.
#
# **Plus ε**, under the root. A word whose D numbers are all alike has variance 0, and 0/0 would follow. For
# all other words ε should not matter. It does where the variance is not far above it:

# %%
factor = [np.std(x[0, 0], ddof=1) / np.std(x[0, 0]), math.sqrt(512 / 511)]
print("D − 1 in place of D: a factor of", factor[0], "at D = 4,", factor[1], "at D = 512")
assert_allclose(factor, [1.1547, 1.00098], rtol=1e-5)

for spread in (1, 0.01, 0.001, 0):
    row = spread * np.array([1.0, -1, 1, -1])  # variance spread²
    sizes = [f"{layer_norm(row, 1.0, 0.0, e)[0][0]:.4f}" for e in (1e-5, 1e-6, 1e-8)]
    print(f"spread {spread:<6} x̂ with ε = 1e-5, 1e-6, 1e-8:", *sizes)

# %% [markdown]
# ## What a norm forgets
#
# Add a number to all of x: the mean takes it away again. Multiply x by a positive number: the root of the
# variance divides by it again, but for ε. Two of the D directions in which x may move are lost.

# %%
xhat = cache.xhat  # (B, T, D)
moved = layer_norm(x + 100, gain, bias)[1].xhat
stretched = layer_norm(7 * x, gain, bias)[1].xhat
assert_allclose(moved, xhat, rtol=1e-9)
assert_allclose(stretched, xhat, rtol=1e-4)
print("moved by 100: x̂ changes by", abs(moved - xhat).max())
print("times 7:      x̂ changes by", abs(stretched - xhat).max(), "which is ε")

# %% [markdown]
# ## Backward, derived: one operation at a time
#
# The last line first. yᵢ = gᵢ x̂ᵢ + bᵢ, and g and b reached every word of every sentence:
#
# ```math
# dbᵢ = Σ over words dyᵢ        dgᵢ = Σ over words dyᵢ x̂ᵢ        dx̂ᵢ = dyᵢ gᵢ
# ```
#
# The rest concerns one word. Name its steps: cᵢ = xᵢ − m, then v, then r = (v + ε)^(−½), then x̂ᵢ = cᵢ r. Now
# backward: x̂ᵢ = cᵢ r is a product, and r went to all D of them, so its gradient is a sum:
#
# ```math
# dcᵢ = r dx̂ᵢ                   the direct way
# dr  = Σᵢ dx̂ᵢ cᵢ
# ```

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
db = dy.sum((0, 1))  # (D,)
dg = (dy * xhat).sum((0, 1))  # (D,)
dxhat = dy * gain  # (B, T, D)

c = x - x.mean(-1, keepdims=True)  # (B, T, D)
v = (c * c).mean(-1, keepdims=True)  # (B, T, 1)
r = (v + eps) ** -0.5  # (B, T, 1)
dc = r * dxhat  # (B, T, D)
dr = (dxhat * c).sum(-1, keepdims=True)  # (B, T, 1)

# %% [markdown]
# **Through the variance.** r = (v + ε)^(−½) has the slope −½ (v + ε)^(−3/2) = −½ r³, and v = 1/D Σ cᵢ² the
# slope 2cᵢ/D. This is a second way to cᵢ, so it is added to the first:
#
# ```math
# dv   = −½ r³ dr
# dcᵢ += 2/D cᵢ dv
# ```
#
# **Through the mean.** cᵢ = xᵢ − m: directly to xᵢ, and with a minus to m. m = 1/D Σ xᵢ went to every cᵢ, and
# hands each xᵢ one D-th of what it hears:
#
# ```math
# dm   = −Σᵢ dcᵢ
# dxᵢ  = dcᵢ + 1/D dm
# ```

# %%
dv = -0.5 * r**3 * dr  # (B, T, 1)
dc = dc + 2 / 4 * c * dv  # (B, T, D)
dm = -dc.sum(-1, keepdims=True)  # (B, T, 1)
dx = dc + dm / 4  # (B, T, D)

dx_package, dg_package, db_package = layer_norm_backward(dy, cache)
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(dg, dg_package, rtol=1e-9)
assert_allclose(db, db_package, rtol=1e-9)
print("dx, dgain and dbias are those of the package")

# %% [markdown]
# ## The same in one line
#
# Right, but nobody can read it. Put the lines into each other. With cᵢ r = x̂ᵢ, and writing ⟨·⟩ for the mean
# over the word's D numbers, dr = D ⟨dx̂ c⟩:
#
# ```math
# dcᵢ = r dx̂ᵢ − 2/D cᵢ · ½ r³ · D ⟨dx̂ c⟩
#     = r dx̂ᵢ − r (cᵢ r) ⟨dx̂ c r⟩
#     = r (dx̂ᵢ − x̂ᵢ ⟨dx̂ x̂⟩)
# ```
#
# The mean step takes ⟨dc⟩ away. Since ⟨x̂⟩ = 0, that is r ⟨dx̂⟩:
#
# ```math
# dxᵢ = r (dx̂ᵢ − ⟨dx̂⟩ − x̂ᵢ ⟨dx̂ x̂⟩)
# ```

# %%
mean = dxhat.mean(-1, keepdims=True)  # (B, T, 1)
along = (dxhat * xhat).mean(-1, keepdims=True)  # (B, T, 1)
in_one_line = r * (dxhat - mean - xhat * along)  # (B, T, D)
assert_allclose(in_one_line, dx, rtol=1e-9)
assert_allclose(dx.mean(-1), 0, atol=1e-14)
left = (dx * xhat).mean(-1, keepdims=True)  # (B, T, 1) of the part along x̂
assert_allclose(left, r * along * eps / (v + eps), rtol=1e-6)
print("means of dx", abs(dx.mean(-1)).max(), "   parts along x̂", abs(left).max())

# %% [markdown]
# Now it can be read. **The gradient loses exactly what the forward pass forgot**: its mean, since moving
# all of x changes nothing, and its part along x̂, since stretching x changes nothing. (The softmax of lesson
# 5 forgets a common addend, and there too the gradient lost a mean.) And r says: a word that was divided by
# a large number forward hears the loss as much softer.
#
# "Exactly" is true but for ε: stretching does change x̂ a little, so ⟨dx x̂⟩ = r ⟨dx̂ x̂⟩ (1 − ⟨x̂²⟩), with
# 1 − ⟨x̂²⟩ = ε/(v + ε), is left along x̂.
#
# With D = 3 one can see it. x − m lies in a plane, the one at right angles to (1, 1, 1), and the picture
# looks down on it. The norm pulls each word along a ray to the circle of radius √3, where the mean square
# is 1. Of what the loss wants there, only the part **tangent to the circle** comes back.

# %%
plane = np.array([[1, -1, 0], [1, 1, -2]]).T / np.sqrt([2, 6])  # (D, 2) two axes in the plane
angle, radius = np.arange(6) * 1.05 + 0.3, np.array([0.7, 2.4, 1.1, 2.3, 0.9, 1.3])
x3 = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1) @ plane.T  # (N, D) six words
d3 = np.random.default_rng(182).standard_normal((6, 3))  # (N, D)
_, cache3 = layer_norm(x3, np.ones(3), np.zeros(3), eps=0.0)
dx3 = layer_norm_backward(d3, cache3)[0] / cache3.rstd  # without r, to compare directions
centred, normed, wanted, back = ((a @ plane).T for a in (x3, cache3.xhat, d3, dx3))  # (2, N)
assert_allclose((dx3 * cache3.xhat).sum(-1), 0, atol=1e-12)

figure = Figure(figsize=(6.6, 4.3))
ax = figure.add_axes((0, 0, 0.66, 1))
turn = np.linspace(0, 2 * np.pi, 200)
ax.plot(np.sqrt(3) * np.cos(turn), np.sqrt(3) * np.sin(turn), color="#c8ccd0")
ax.plot(*np.stack([centred, normed], 1), color="#8a8f94", linewidth=1, linestyle=":")
ax.scatter(*centred, s=18, color="#4a8f45", label="x − m")
ax.scatter(*normed, s=26, color="#a8005c", label="x̂, on the circle")
style = {"angles": "xy", "scale_units": "xy", "scale": 1.5, "width": 0.008}
ax.quiver(*normed, *wanted, color="#b9bdc2", label="dx̂, what the loss wants", **style)
ax.quiver(*normed, *back, color="#0b4a8f", label="dx / r, what comes back", **style)
ax.set(aspect="equal", xlim=(-2.7, 2.7), ylim=(-2.7, 2.7))
ax.axis("off")
figure.legend(loc="center right", frameon=False, fontsize=9)
caption = "Words of three numbers: what comes back is tangent to the circle"
show_figure(figure, "08_circle", caption)

# %% [markdown]
# ## Is it right? Not at gain 1 and bias 0
#
# A layer norm starts with gain 1 and bias 0, and there mistakes hide. Two of them: the gain multiplied in at
# the end, dx = g r (…), in place of at the beginning; and y kept in the cache in place of x̂, which is the
# same array at the start. Each is checked at gain 1 and bias 0, then at random ones:

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
    print(f"{mistake:16} at 1 and 0: all right    at random: wrong in", *wrong)

# %% [markdown]
# Both pass a check of a fresh layer and are wrong one step of training later. So `gradcheck` moves a
# layer's gains and biases away from 1 and 0 before it begins. The package's pair:

# %%
report = gradcheck((layer_norm, layer_norm_backward), x, gain, bias)
print(report)
assert report.ok

# %% [markdown]
# ## The residual
#
# ```math
# s = x + f(x)          y = norm(s)
# ```
#
# x is copied: one copy goes through f, one goes round it. **What forward copies, backward adds up** (lesson
# 0), and a sum hands its gradient unchanged to both of its terms:
#
# ```math
# ds = norm's backward of dy
# dx = ds + f's backward of ds        round, and through
# ```
#
# In the package this is `PostNormResidual`: its `forward` takes x and the sublayer, as a function. Here it
# frames a linear map, first inline, then as the package has it.

# %%


class Framed(Module):
    """A linear map in a residual of a given class."""

    def __init__(self, frame=PostNormResidual):
        self.residual = frame(4, dropout=0.2, dtype=np.float64)
        self.f = Linear(4, 4, rng=np.random.default_rng(0), dtype=np.float64)

    def forward(self, x, *, train=False, rng=None):
        return self.residual.forward(x, self.f.forward, Context(train, rng))

    def backward(self, dy, cache):
        return self.residual.backward(dy, cache, self.f.backward)


framed = Framed()
f, norm = framed.f, framed.residual.norm
h, f_cache = linear(x, f.weight.value, f.bias.value)
y, norm_cache = layer_norm(x + h, norm.gain.value, norm.bias.value)
ds, _, _ = layer_norm_backward(dy, norm_cache)
through, _, _ = linear_backward(ds, f_cache)
dx = ds + through

y_package, caches = framed.forward(x)
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dx, framed.backward(dy, caches), rtol=1e-9)
print("the sum of both ways is the package's")

# %% [markdown]
# What if backward forgets one of the two? The wrong split of lesson 7 trained, and so may this. The gradient
# check finds both mistakes in x. And it passes the package, with the norm after and before, and with dropout
# drawn from seed 7 at every evaluation:

# %%


class ForgetsRound(PostNormResidual):
    def backward(self, dy, cache, sublayer_backward):
        _, dh = self.norm.backward(dy, cache.add_norm)
        return sublayer_backward(dh, cache.sublayer)


class ForgetsThrough(PostNormResidual):
    def backward(self, dy, cache, sublayer_backward):
        dx, dh = self.norm.backward(dy, cache.add_norm)
        sublayer_backward(dh, cache.sublayer)
        return dx


for frame in (ForgetsRound, ForgetsThrough):
    wrong = gradcheck(Framed(frame), x, train=True, rng=7).failures[0]
    print(frame.__name__, "is wrong in", wrong.tensor)
    assert wrong.tensor == "x"
assert gradcheck(Framed(PreNormResidual), x, train=True, rng=7).ok
report = gradcheck(framed, x, train=True, rng=7)
print(report)
assert report.ok

# %% [markdown]
# ## Where dropout sits
#
# Section 5.4 of the paper:
#
# > We apply dropout [33] to the output of each sub-layer, before it is added to the sub-layer input and
# > normalized. In addition, we apply dropout to the sums of the embeddings and the positional encodings in
# > both the encoder and decoder stacks.
#
# ```math
# y = norm(x + dropout(f(x)))        dropout(h) = h · keep,   keep = 0 or 1/(1 − p)
# ```
#
# A share p of the numbers becomes 0, and the others grow, so that the mean stays h. keep is drawn and then
# is a constant, so dh = dy · keep: what was not sent hears nothing. And it stands on the way *through*. The
# way round is never dropped: no word ever loses itself.

# %%
h = rng.standard_normal((2, 3, 4))  # (B, T, D) what a sublayer made
dropped, dropout_mask = dropout(h, 0.1, np.random.default_rng(3))
# as the package draws: 64 random bits are four numbers of 16
words = np.random.default_rng(3).integers(0, 1 << 64, h.size // 4, dtype=np.uint64)
draws = words.view(np.uint16).reshape(h.shape) / 65536
slow = np.zeros_like(h)
for at in np.ndindex(h.shape):
    slow[at] = 0 if draws[at] < 0.1 else h[at] / 0.9
assert_allclose(dropped, slow, rtol=1e-12)

print("dropout_mask is one of", np.unique(dropout_mask))

# %% [markdown]
# ## Before or after
#
# The paper norms the sum (**post**). *Attention机制详解（二）* shows the authors' own library, which by then
# normed what enters the sublayer (**pre**), and once more at the top of the stack:
#
# ```math
# post:   y = norm(x + f(x))        dx = ds + Jᵀ ds        ds = norm's backward of dy
# pre:    y = x + f(norm(x))        dx = dy + norm's backward of Jᵀ dy
# ```
#
# (J is f's Jacobian, Jᵀ its backward pass.) The same three operations. But in the second there is a way
# from the top of the stack to the bottom on which *nothing stands*: dy arrives there as it is, plus other
# terms. In the first the way round meets two norms in every layer. Each divides by the spread of x + f(x),
# which is about √2 where x and f(x) are about as large.
#
# Measure it: a stack of 24 real encoder layers, as they are before training (d_model 64, 4 heads, ten words a
# sentence). Post and pre; and, to see what each part does, post without the way round, without the norm, and
# without both.

# %%


class Frame(PostNormResidual):
    """y = norm(way_round · x + f(x)), or without the norm."""

    way_round, normed = 1, True

    def forward(self, x, sublayer, context=None):
        h, inside = sublayer(x)
        x = self.way_round * x
        y, cache = self.norm.forward(x, h) if self.normed else (x + h, None)
        return y, PostNormCache(inside, cache)

    def backward(self, dy, cache, sublayer_backward):
        dx, dh = self.norm.backward(dy, cache.add_norm) if self.normed else (dy, dy)
        return self.way_round * dx + sublayer_backward(dh, cache.sublayer)


def stack_of_24(norm="post", way_round=1, normed=True):
    """A small encoder, all of its residuals of one kind."""
    sizes = {"d_model": 64, "d_ff": 256, "n_heads": 4, "n_layers": 24}
    config = TransformerConfig(**sizes, dropout=0.0, norm=norm, final_norm=norm == "pre")
    encoder = Encoder(config, rng=np.random.default_rng(0), dtype=np.float64)
    if norm == "pre":
        return encoder
    for layer in encoder.layers:
        for name in ("self_residual", "feed_forward_residual"):
            frame = Frame(64)
            frame.way_round, frame.normed = way_round, normed
            setattr(layer, name, frame)
    return encoder


# %% [markdown]
# The gradient starts at *one word*, the first of each of 16 sentences, with length 1. Behind each layer on
# the way down two things are measured: its **length** (the median of the 16); and which **share** of it (of
# its square) is at that word itself, and not at the other nine.

# %%
x = np.random.default_rng(1).standard_normal((16, 10, 64))  # (B, T, D)
dy = np.zeros_like(x)
dy[:, 0] = np.random.default_rng(2).standard_normal((16, 64))
dy /= np.linalg.norm(dy, axis=(1, 2), keepdims=True)


def walk(encoder):
    """Up and down again. Shapes: -> lengths and shares, each (25,)."""
    y, caches, down = x, [], [dy]
    for layer in encoder.layers:
        y, cache = layer.forward(y)
        caches.append(cache)
    if encoder.norm is not None:  # the norm on top of the stack
        down = [encoder.norm.backward(dy, encoder.norm.forward(y)[1])]
    for layer, cache in zip(encoder.layers[::-1], caches[::-1], strict=True):
        down.append(layer.backward(down[-1], cache))
    lengths = [np.median(np.linalg.norm(dx, axis=(1, 2))) for dx in down]
    shares = [(dx[:, 0] ** 2).sum() / (dx**2).sum() for dx in down]
    return np.array([lengths, shares])


# %%
stacks = {
    "x + f(x)": walk(stack_of_24(normed=False)),
    "norm(x + f(x)), post": walk(stack_of_24()),
    "x + f(norm(x)), pre": walk(stack_of_24("pre")),
    "norm(f(x))": walk(stack_of_24(way_round=0)),
    "f(x)": walk(stack_of_24(way_round=0, normed=False)),
}
print("length of the gradient behind   1         6        12        24 layers")
for name, (lengths, _) in stacks.items():
    print(f"{name:22}", "".join(f"{lengths[n]:10.2g}" for n in (1, 6, 12, 24)))

# %%
behind = np.arange(25)
figure = curves(
    [lengths for lengths, _ in stacks.values()],
    behind,
    labels=list(stacks),
    xlabel="layers that the gradient has come through",
    ylabel="its length",
    yscale="log",
)
caption = "With a norm, in either place, the length of the gradient stays near 1"
show_figure(figure, "08_length", caption)

# %% [markdown]
# Without both, the bottom of the stack hears 2 · 10⁻⁷ of what was said at the top. With the way round alone
# it is 2 · 10⁷: each x + f(x) is larger than x, forward and backward. With a norm, in *either* place,
# lengths stay between 0.15 and 1.5. **The norm keeps the length**, and it does so even without a way round.
#
# So what is the way round good for? Look at what the gradient still *says*. It spoke to one word:

# %%
normed = {name: stacks[name] for name in stacks if "norm" in name}
print("share at its own word, behind  1      6     12     24 layers")
for name, (_, shares) in normed.items():
    print(f"{name:25}", "".join(f"{shares[n]:7.3f}" for n in (1, 6, 12, 24)))

# %%
figure = curves(
    [shares for _, shares in normed.values()],
    behind,
    labels=list(normed),
    xlabel="layers that the gradient has come through",
    ylabel="share at its own word",
)
caption = "What was said to one of ten words: how much of it reaches that word"
show_figure(figure, "08_share", caption)

# %% [markdown]
# Without the way round it is lost in one layer: each of the ten words hears a tenth. An untrained attention
# looks at all words about equally, so it makes one mean of them, and backward hands a mean back.
#
# **The way round keeps the words apart**, and the place of the norm decides for how long. Post: .92 behind
# one layer, .26 behind the paper's six, a tenth behind twelve. Pre: .99, .95 and .86, and .23 behind 24.
#
# What this does *not* say: six layers with the norm after do learn, with a warm-up (lesson 13); the paper did
# just that. These are the first steps, where attention knows nothing yet. Xiong et al. (2020) found that
# pre needs no warm-up, and Dong et al. (2021) proved that attention alone makes all words alike.

# %%
unframed, post, pre, through, neither = stacks.values()
assert_allclose([neither[0][24] * 1e7, unframed[0][24] / 1e7], 2, atol=0.5)
assert all(((found[0] > 0.15) & (found[0] < 1.5)).all() for found in normed.values())
assert_allclose(post[1][[1, 6, 12]], [0.92, 0.26, 0.1], atol=0.01)
assert_allclose(pre[1][[1, 6, 12, 24]], [0.99, 0.95, 0.86, 0.23], atol=0.01)
assert_allclose(through[1][1], 0.1, atol=0.001)
top = x
for layer in stack_of_24("pre").layers:
    top, _ = layer.forward(top)
print("the numbers of the text are those of the tables; spread of x at the top, pre:", top.std())
assert_allclose([top.std(), pre[0][0]], [4.6, 1 / 4.6], rtol=0.03)

# %% [markdown]
# The last number is the price of pre. Nothing divides x any more, and each sublayer adds to it, so its
# spread grows, here from 1 to 4.6. Hence the norm at the top of the stack (`TransformerConfig(norm="pre")`
# refuses to go without), and hence the pre curve begins at 0.22 = 1/4.6: that norm divides by the spread.
#
# ## Why not batch norm?
#
# Batch norm is the same formula along the other axis: for each of the D places the mean and the variance over
# **all words of all sentences in the batch** (Ioffe and Szegedy, 2015). So it is layer norm of the transposed
# batch, forward and backward:

# %%
x = 1 + rng.standard_normal((4, 5, 8))  # (B, T, D) four sentences of five words
unit = np.ones(8), np.zeros(8)  # gain, bias
m, v = x.mean((0, 1)), x.var((0, 1))  # (D,) over all twenty words
y, cache = batch_norm(x, *unit)
assert_allclose(y, (x - m) / np.sqrt(v + eps), rtol=1e-9)

dy = rng.standard_normal(x.shape)
columns, dcolumns = (a.reshape(20, 8).T for a in (x, dy))  # (D, N), N = B·T
turned, its_cache = layer_norm(columns, np.ones(20), np.zeros(20))
assert_allclose(turned.T.reshape(x.shape), y, rtol=1e-9)
dturned, _, _ = layer_norm_backward(dcolumns, its_cache)
assert_allclose(dturned.T.reshape(x.shape), batch_norm_backward(dy, cache)[0], rtol=1e-9)
print(f"largest mean of a place {abs(m).max():.2f}, normed {abs(y.mean((0, 1))).max():.0e}")

# %% [markdown]
# What a word becomes now depends on which sentences happen to be in the batch with it. Exchange the *other*
# three sentences, and look at the first word of the first. Then let the loss speak to this one word only, and
# count the words whose gradient is not 0:

# %%
other = np.concatenate([x[:1], 1 + rng.standard_normal((3, 5, 8))])  # its first is x's first
one_word = np.zeros_like(x)
one_word[0, 0] = rng.standard_normal(8)

norms = {
    "batch norm": (batch_norm, batch_norm_backward),
    "layer norm": (layer_norm, layer_norm_backward),
}
hear = []
for name, (norm, backward) in norms.items():
    y, cache = norm(x, *unit)
    change = abs(norm(other, *unit)[0] - y)[0, 0].max()
    hear.append(int(backward(one_word, cache)[0].any(-1).sum()))
    print(f"{name}: the word changes by up to {change:.3f}; words that hear of it: {hear[-1]}")
assert hear == [20, 1]
assert change == 0  # layer norm's

# %% [markdown]
# And **padding** counts as words. Let every sentence be filled up with zeros until a share p of the rows is
# padding. With m and v the mean and variance of the real words, those of the whole batch are
#
# ```math
# mean = (1 − p) m           variance = (1 − p) (v + p m²)
# ```
#
# so the real words are neither centred nor of variance 1 any more, by an amount that depends on how long the
# longest sentence of the batch is.

# %%
for n in (0, 5, 20):
    padded = np.concatenate([x, np.zeros((4, n, 8))], 1)  # (B, T + n, D)
    p = n / (5 + n)
    by_formula = (x - (1 - p) * m) / np.sqrt((1 - p) * (v + p * m * m) + eps)
    y, of_layer = (norm(padded, *unit)[0][:, :5] for norm in (batch_norm, layer_norm))
    assert_allclose(y, by_formula, rtol=1e-9)
    assert (of_layer == layer_norm(x, *unit)[0]).all()  # to the bit
    print(f"padding {p:3.0%}: first word {y[0, 0, :2]}, by layer norm {of_layer[0, 0, :2]}")
assert_allclose(batch_norm(x[:1, :1], *unit)[0], 0, atol=1e-12)  # one word alone

# %% [markdown]
# One could leave padding out of the statistics (the package's `batch_norm` takes a `mask`); the neighbours
# stay. And a decoder makes one word at a time: the variance over one word is 0, and batch norm of it is 0,
# whatever the word was. (So at inference it uses averages remembered from training: `layers.BatchNorm`.)
# Layer norm needs nothing but the word itself.
#
# ## Exercises
#
# `npformer exercise list 8` has them, each graded by the gradient checker.
#
# - `npformer exercise start layer-norm`: the forward pass, for rows that hardly differ too.
# - `npformer exercise start layer-norm-backward`: three terms; two sums a row, two over the words.
# - `npformer exercise start residual-backward`: two ways that add up, with the norm after or before.
# - `npformer exercise start dropout-backward`: what was not sent hears nothing.
# - By hand: D = 2 and ε = 0. Show that x̂ is (1, −1) or (−1, 1), and that dx is 0 whatever dy is. What does a
#   layer norm of two numbers tell the next layer?
#
# To try now, in the terminal: `!layer_norm(np.array([3.0, 1.0]), 1.0, 0.0)[0]`, and
# `!print(gradcheck(Framed(ForgetsThrough), x[:, :, :4]))`.
#
# ## Where the documents differ
#
# - **The norm's place.** After the sum: the paper, *一步步解析Attention is All You Need!*,
#   *图解transformer* and *The components of the Transformer*. Before the sublayer, and once more at the
#   top: the code that *Attention机制详解（二）* quotes (`layer_preprocess`, `layer_postprocess`), under
#   prose that speaks of the paper's Add & Norm. npformer has both, `norm="post"` by default, and takes such
#   sequences too: `norm="n-da"` normalizes before, drops and adds after.
# - **ε**: 10⁻⁸ in the demo of *一步步解析*, 10⁻⁶ in *The components of the Transformer*, 10⁻⁵ here and in
#   PyTorch. The paper gives none. The table above says when it matters: at a spread of ε's root.
# - *一步步解析* calls `normalize` at the end of its attention and of its feed-forward function, and never
#   shows it. So the sum and the norm are inside the function that it names scaled dot-product attention.
# - **Dropout**: on each sublayer's output in the paper and in *The components of the Transformer*.
#   *一步步解析* has it on the attention weights and on the embeddings only; *图解transformer*'s code on the
#   weights.
# - *The components of the Transformer* gives two reasons against batch norm: it takes much GPU memory, and it
#   does badly on language, where what is rare makes a place's variance large. The first is not so: its cache
#   is x̂ and D numbers, layer norm's x̂ and one number a word. The second adds to what is measured above.
#   It also says that gradients flow smoothly only with residual connections. Measured, it is the norm that
#   keeps their length, and the residual that keeps what they say.
#
# **Next**, lesson 9: the feed-forward network, which thinks about each word by itself.

# %% [markdown]
# # 9 · The feed-forward network
#
# *About 70 minutes, in four parts. You need: the linear layer, its backward pass and the
# complex step (lesson 0), attention (lesson 5).*
#
# **After this lesson you can**
#
# - build the feed-forward network, forward and backward, and say why it needs a nonlinear function;
# - derive the derivatives of ReLU, GELU and swish, and explain what a dead unit is;
# - read the network as a memory with learned keys and values, and as a convolution;
# - compute its share of the parameters and of the work of a Transformer.
#
# `… → [attention] → [add & norm] → [FEED-FORWARD] → [add & norm]`  (you are in Figure 1, third box)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.functional.activations import ACTIVATIONS
from npformer.learn.course import show_figure
from npformer.nn import FeedForward, LayerNorm
from npformer.plots import attention_map, curves, mask_map

rng = np.random.default_rng(9)

# %% [markdown]
# ## Why another layer after attention?
#
# Attention only *mixes*. The output of a head is a weighted average of values, and each value is a linear
# function of one token. So attention collects information from several tokens, but for given weights it
# is linear.
#
# The **feed-forward network** follows attention in every layer. It computes a nonlinear function of the
# vector of each token. It has two thirds of the parameters of an encoder layer.

# %% [markdown]
# ## The passage in the paper
#
# Section 3.3 of *Attention Is All You Need* describes a network "which is applied to each position separately
# and identically". Equation (2) defines it:
#
# $$\mathrm{FFN}(x) = \max(0,\, x W_1 + b_1)\, W_2 + b_2$$
#
# > The dimensionality of input and output is d_model = 512, and the inner-layer has dimensionality
# > d_ff = 2048.
#
# So the vector becomes four times as wide, each entry goes through a nonlinear function, and the vector
# becomes narrow again. We write D for d_model and F for d_ff:
#
# ```text
# x (B, T, D) ─→ x W₁ + b₁ ─→ h (B, T, F) ─→ max(0, h) ─→ a (B, T, F) ─→ a W₂ + b₂ ─→ y (B, T, D)
# ```

# %% [markdown]
# A nonlinear function that is applied to each number separately is called an **activation**. The activation
# $\max(0, h)$ has the name **ReLU**, for *rectified linear unit*. Each of the F entries of $h$ is called a
# **unit**. We say that a unit is *active* for a token when its $h$ is positive.
#
# The cell computes the network twice, with loops and with arrays.

# %%
words = ["the", "animal", "was", "too", "tired"]
x = rng.standard_normal((2, 5, 4))  # (B, T, D)
w1, b1 = rng.standard_normal((4, 16)) / 2, rng.standard_normal(16) / 2  # (D, F), (F,)
w2, b2 = rng.standard_normal((16, 4)) / 4, rng.standard_normal(4)  # (F, D), (D,)

slow = np.zeros(x.shape)  # (B, T, D)
for b in range(2):
    for t in range(5):
        slow[b, t] = b2
        for f in range(16):
            h = b1[f]
            for d in range(4):
                h += x[b, t, d] * w1[d, f]
            if h > 0:  # otherwise the unit contributes nothing
                for d in range(4):
                    slow[b, t, d] += h * w2[f, d]

h = x @ w1 + b1  # (B, T, F)
a = np.where(h > 0, h, 0)  # (B, T, F)
y = a @ w2 + b2  # (B, T, D)
print(f"{(a == 0).mean():.0%} of the entries of a are 0")

# %% tags=["check"]
assert_allclose(y, slow, rtol=1e-9)

# %% [markdown]
# In the package, the layer `FeedForward` consists of two linear layers and an activation. Its cache contains
# the caches of the linear layers (lesson 0), and the output $a$ of the activation. $a$ is also the input of
# the second linear layer, `outer.x`.

# %%
layer = FeedForward(4, 16, dtype=np.float64)
state = {"inner.weight": w1, "inner.bias": b1, "outer.weight": w2, "outer.bias": b2}
layer.load_state_dict(state)
y_package, cache = layer.forward(x)
show(cache)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)

# %% [markdown]
# ## Each token by itself
#
# None of the three formulas contains a sum over the tokens. So the network treats each token separately. This
# has three consequences:
#
# 1. A token alone gives the same output as the token in its sentence.
# 2. If the tokens are permuted, the outputs are permuted in the same way.
# 3. If one token changes, only its own output changes.
#
# **Question.** Which of these three properties does attention have?
#
# <details><summary>Answer</summary>
# Only the second one. The output of a token in attention depends on all tokens.
# </details>

# %%
attend = MultiHeadAttention(4, 1, dtype=np.float64)
changed = x.copy()
changed[:, 4] += 1  # another token in place of "tired"
order = rng.permutation(5)
properties = {}
for name, f in (("feed-forward", layer), ("attention", attend)):
    whole = f.forward(x)[0]  # (B, T, D)
    alone = np.allclose(f.forward(x[:, 1:2])[0], whole[:, 1:2])
    permuted = np.allclose(f.forward(x[:, order])[0], whole[:, order])
    rows = (abs(f.forward(changed)[0] - whole) > 1e-9).any((0, 2))  # (T,)
    different = [word for word, row in zip(words, rows, strict=True) if row]
    properties[name] = alone, permuted, len(different)
    print(f"{name:13} alone the same: {alone}, permuted alike: {permuted}, changed:", *different)

# %% tags=["check"]
assert properties == {"feed-forward": (True, True, 1), "attention": (False, True, 5)}

# %% [markdown]
# ## Why the activation is necessary
#
# Suppose that we leave out the activation. Then two linear layers follow each other directly, and they are
# equal to a single one:
#
# $$(x W_1 + b_1) W_2 + b_2 = x (W_1 W_2) + (b_1 W_2 + b_2)$$
#
# The matrix $W_1 W_2$ has the shape (D, D). With the sizes of the paper, 2 · 512 · 2048 = 2,097,152 weights
# would compute what 512² = 262,144 weights can compute.
#
# A linear function cannot even decide whether two signs are equal. Take $x = (\pm 1, \pm 1)$ and the wanted
# output $x_1 x_2$. The best linear function gives 0 in all four cases. A network with two units solves the
# task exactly, because $x_1 x_2 = |x_1 + x_2| - 1$, and
# $|u| = \max(0, u) + \max(0, -u)$.

# %%
signs = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])  # (4, 2)
product = signs[:, 0] * signs[:, 1]  # (4,)
with_bias = np.concatenate([signs, np.ones((4, 1))], -1)  # (4, 3)
best = with_bias @ np.linalg.lstsq(with_bias, product, rcond=None)[0]  # (4,)
units = np.maximum(0, signs @ np.array([[1.0, -1], [1, -1]]))  # (4, 2): ReLU of ±(x1 + x2)
network = units @ np.array([1.0, 1]) - 1  # |x1 + x2| − 1
print("wanted", product, "  network", network, "  best linear", np.round(best, 3) + 0)

# %% tags=["check"]
assert_allclose((x @ w1 + b1) @ w2 + b2, x @ (w1 @ w2) + (b1 @ w2 + b2), rtol=1e-9)
assert (2 * 512 * 2048, 512**2) == (2_097_152, 262_144)
assert_allclose(best, 0, atol=1e-12)
assert (network == product).all()

# %% [markdown]
# ## Backward, from the last line to the first
#
# The backward pass begins with $dy$, of shape (B, T, D). It follows the diagram backwards.
#
# **First, y = a W₂ + b₂.** This is the linear layer of lesson 0. The sums run over all tokens $n$ of all
# sentences:
#
# $$\begin{aligned}
# da &= dy\; W_2^\top \\
# dW_2 &= a^\top dy, \qquad db_2 = \sum_n dy_n
# \end{aligned}$$
#
# **Second, a = max(0, h)**, number by number. Where $h > 0$, we have $a = h$, so the derivative is 1. Where
# $h < 0$, $a$ is constant, so the derivative is 0. We write $[h > 0]$ for a factor that is 1 where $h > 0$,
# and 0 elsewhere:
#
# $$dh = da \cdot [h > 0]$$
#
# **Third, h = x W₁ + b₁** is a linear layer again:
#
# $$\begin{aligned}
# dx &= dh\; W_1^\top \\
# dW_1 &= x^\top dh, \qquad db_1 = \sum_n dh_n
# \end{aligned}$$

# %% [markdown]
# Two details about the second step:
#
# - At $h = 0$ the ReLU has no derivative: the slope is 0 on the left and 1 on the right. The package uses 0.
# - We need to know where $h > 0$, which is exactly where $a > 0$. So the cache keeps only $a$, which $dW_2$
#   needs anyway.

# %%


def flat(a):
    """(B, T, N) -> (B·T, N): the tokens of all sentences as rows of one matrix."""
    return a.reshape(-1, a.shape[-1])


dy = rng.standard_normal(y.shape)  # (B, T, D)
da = dy @ w2.T  # (B, T, F)
dw2, db2 = flat(a).T @ flat(dy), flat(dy).sum(0)  # (F, D), (D,)
dh = np.where(a > 0, da, 0)  # (B, T, F)
dx = dh @ w1.T  # (B, T, D)
dw1, db1 = flat(x).T @ flat(dh), flat(dh).sum(0)  # (D, F), (F,)
print("largest difference from the package:", abs(dx - layer.backward(dy, cache)).max())

# %% tags=["check"]
layer.zero_grad()
assert_allclose(dx, layer.backward(dy, cache), rtol=1e-9)
ours = {"inner.weight": dw1, "inner.bias": db1, "outer.weight": dw2, "outer.bias": db2}
for name, parameter in layer.named_parameters():
    assert_allclose(parameter.grad, ours[name], rtol=1e-9)
print("dx and the gradients of four parameters are those of the package")

# %% [markdown]
# An inactive unit has two effects. It contributes nothing to the output of this token. And its weights, a
# column of $W_1$ and a row of $W_2$, receive no gradient from this token.
#
# So for one token, only the active units remain. They form an ordinary linear function. The cell shows this
# for "animal". Other tokens have other active units, and therefore other linear functions.

# %%
on = h[0, 1] > 0  # (F,) the units that are active for "animal"
linear_part = w1[:, on] @ w2[on]  # (D, D)
linear_output = x[0, 1] @ linear_part + (b1[on] @ w2[on] + b2)  # (D,)
print(f"{on.sum()} of 16 units are active")
print("largest difference from the network:", abs(linear_output - y[0, 1]).max())

# %% tags=["check"]
assert_allclose(linear_output, y[0, 1], rtol=1e-9)
assert_allclose(dx[0, 1], dy[0, 1] @ linear_part.T, rtol=1e-9)

# %% [markdown]
# ## Is it right?
#
# The gradient check of lesson 0 compares the backward pass with numerical derivatives of the forward pass.

# %%
report = gradcheck(layer, x)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# *This is a good place for a break. The next part treats other activations, and units that stop learning.*
#
# ## Smoother activations
#
# The slope of ReLU jumps from 0 to 1 at 0. Many later models use smooth activations instead. Three of them
# have the same form: they multiply $x$ by a factor that grows smoothly from 0 to 1. So the product rule
# gives each derivative: the factor, plus $x$ times the derivative of the factor.
#
# **GELU** (Hendrycks and Gimpel 2016) uses the factor $\Phi(x)$. This is the probability that a standard
# normal random number is smaller than $x$. Its derivative is the normal density $\varphi(x)$:
#
# $$\begin{aligned}
# y &= x\, \Phi(x), & \Phi(x) &= \frac{1 + \mathrm{erf}(x / \sqrt{2})}{2} \\
# y' &= \Phi(x) + x\, \varphi(x), & \varphi(x) &= \frac{\exp(-x^2/2)}{\sqrt{2\pi}}
# \end{aligned}$$

# %%
grid = np.linspace(-4, 4, 8001)
erf = np.vectorize(math.erf)
phi = (1 + erf(grid / math.sqrt(2))) / 2
density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
made = {  # name: (y, its derivative)
    "relu": (np.maximum(0, grid), (grid > 0) * 1.0),
    "gelu": (grid * phi, phi + grid * density),
}

# %% [markdown]
# **GELU with tanh** is an approximation by the same authors. The derivative of $\tanh u$ is $1 - \tanh^2 u$:
#
# $$\begin{aligned}
# y &= \frac{x (1 + t)}{2}, & t &= \tanh u, \quad u = \sqrt{2/\pi}\, (x + 0.044715\, x^3) \\
# y' &= \frac{1 + t}{2} + \frac{x (1 - t^2)\, u'}{2}, & u' &= \sqrt{2/\pi}\, (1 + 3 \cdot 0.044715\, x^2)
# \end{aligned}$$
#
# GPT-2 uses this form. Google's program for BERT first used the exact GELU, and the tanh form later. The BERT
# of Hugging Face uses the exact GELU.
#
# **Swish**, also called **SiLU**, uses the sigmoid $\sigma(x) = 1/(1 + e^{-x})$. Its derivative is
# $\sigma (1 - \sigma)$:
#
# $$y = x\, \sigma(x), \qquad y' = \sigma + x\, \sigma (1 - \sigma)$$

# %%
u = math.sqrt(2 / math.pi) * (grid + 0.044715 * grid**3)
du = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * grid**2)
t, s = np.tanh(u), 1 / (1 + np.exp(-grid))
made["gelu_tanh"] = grid * (1 + t) / 2, (1 + t) / 2 + grid * (1 - t**2) * du / 2
made["swish"] = grid * s, s + grid * s * (1 - s)

# %% tags=["check"]
for name, (value, slope) in made.items():
    f, f_backward = ACTIVATIONS[name]
    assert_allclose(value, f(grid)[0], atol=1e-15)
    assert_allclose(slope, f_backward(np.ones_like(grid), f(grid)[1]), atol=1e-14)
    measured = f(grid + 1e-20j)[0].imag / 1e-20  # the complex step of lesson 0
    assert_allclose(slope, measured, atol=1e-14)

# %% tags=["plot"]
for name, (value, slope) in made.items():
    low, top = value.argmin(), slope.argmax()
    print(f"{name:10} lowest {value[low]:+.4f}, slope at most {slope[top]:.3f}", end="")
    print("" if name == "relu" else f", at {grid[low]:+.2f} and {grid[top]:+.2f}")
shown = ["relu", "gelu", "swish"]
values, slopes = (np.stack([made[name][i] for name in shown]) for i in (0, 1))  # (3, P) each
figure = curves(values, grid, labels=shown, xlabel="x", ylabel="y")
show_figure(figure, "09_activations", "ReLU has a corner at 0; GELU and swish are smooth")
figure = curves(slopes, grid, labels=shown, xlabel="x", ylabel="slope")
show_figure(figure, "09_slopes", "ReLU's slope is 0 or 1; the others' go below 0 and above 1")

# %% [markdown]
# The two forms of GELU cannot be distinguished in a figure. They differ by less than .0005 everywhere. But
# they are two different functions, and a saved model must say which one it uses.
#
# Two special points can be computed by hand. The slope of GELU is largest where its second derivative is 0.
# With $\varphi' = -x\varphi$ we get
#
# $$\begin{aligned}
# y'' &= \varphi + \varphi + x\varphi' = \varphi\,(2 - x^2) = 0 \quad \mathrm{at} \quad x = \sqrt{2}
# \end{aligned}$$
#
# And swish has its minimum where $y' = \sigma\,(1 + x(1 - \sigma)) = 0$. There $x\sigma = x + 1$, so the
# value of the minimum is $y = x + 1$.

# %%
apart = abs(made["gelu"][0] - made["gelu_tanh"][0])
print(f"the GELUs differ by {apart.max():.6f} at most, at x = {abs(grid[apart.argmax()]):.2f}")
lowest = made["swish"][0].argmin()
print(f"swish has its minimum {made['swish'][0][lowest]:.3f} at x = {grid[lowest]:.3f}")

# %% tags=["check"]
assert 0.0004 < apart.max() < 0.0005
assert abs(grid[made["gelu"][1].argmax()] - math.sqrt(2)) < 1e-3
assert_allclose(made["swish"][0][lowest], grid[lowest] + 1, atol=1e-3)

# %% [markdown]
# ## Activations and the complex step
#
# The gradient check computes forward with a complex number $x + ih$, where $h$ is tiny, and reads the
# derivative from the imaginary part (lesson 0). ReLU, $\Phi$ and $\sigma$ can each be written in a form that
# fails there:
#
# - $\max(0, x) = (x + |x|)/2$ is correct for real numbers. But the absolute value of a complex number is
#   real, so the imaginary part is halved.
# - `math.erf` refuses complex numbers.
# - $1/(1 + e^{-x})$ overflows for very negative $x$.
#
# The cell shows the three failures, and a working form of two of the functions.

# %%
tiny = 1e-20
z = np.array([3 + 1j * tiny, -3 + 1j * tiny])
print("slopes at 3 and −3, of (x + |x|) / 2:", ((z + abs(z)) / 2).imag / tiny)
print("                of where(Re x > 0):  ", np.where(z.real > 0, z, 0).imag / tiny)
try:
    math.erf(complex(z[0]))
except TypeError as error:
    print("erf:", error)
with np.errstate(over="ignore", invalid="ignore"):
    print("1 / (1 + exp(−x)) at −1000 + ih:  ", 1 / (1 + np.exp(1000 - 1j * tiny)))
print("(1 + tanh(x/2)) / 2 at −1000 + ih:", (1 + np.tanh((-1000 + 1j * tiny) / 2)) / 2)

# %% tags=["check"]
with np.errstate(over="ignore"):
    assert np.exp(np.float32(88)) < np.inf == np.exp(np.float32(89))
assert_allclose((1 + np.tanh(grid / 2)) / 2, s, rtol=1e-12)  # σ in the other form

# %% [markdown]
# The package uses these forms:
#
# - **ReLU**: compare the real part, and keep the complex number.
# - **Φ**: use the first-order Taylor formula $\Phi(x + ih) = \Phi(x) + ih\,\varphi(x)$. The next term is of
#   order $h^2 = 10^{-40}$, far below the rounding error.
# - **σ**: write it as $(1 + \tanh(x/2))/2$, which cannot overflow. This also helps in training: in float32,
#   $e^{-x}$ overflows from $x = -89$ on.
#
# All four activations pass the gradient check as part of the layer, also with dropout (lesson 8).

# %%
worst = {}
for name in made:
    variant = FeedForward(4, 16, activation=name, dropout=0.1, dtype=np.float64)
    worst[name] = gradcheck(variant, x, train=True, rng=1)
    print(f"{name:10} worst error {worst[name].worst.error:.1e}")

# %% tags=["check"]
assert all(report.ok for report in worst.values())

# %% [markdown]
# ## Dead units
#
# Suppose that the $h$ of a ReLU unit is negative for *every* token of the data. Then the unit contributes
# nothing, and no gradient reaches its weights and its bias. So they never change again. Such a unit is called
# **dead**.
#
# A few steps that are too large are enough to kill units. We train a network of 64 units to compute $|x|$,
# for each entry of $x$. In the first five steps the learning rate is .1 or .4. In all later steps it is .05.
# After training, we count two things:
#
# - the units whose $h$ is negative for every token;
# - the units whose weights in $W_1$ have a gradient of exactly 0.

# %%
data = rng.standard_normal((256, 8))  # (N, D)
runs = [("relu", 0.1), ("relu", 0.4), ("gelu_tanh", 0.4), ("swish", 0.4)]
losses, counts = np.zeros((4, 300)), {}
for row, (name, first_rate) in zip(losses, runs, strict=True):
    net = FeedForward(8, 64, activation=name, dtype=np.float64).flatten()
    for step in range(300):
        output, net_cache = net.forward(data)
        row[step] = ((output - abs(data)) ** 2).mean()
        net.zero_grad()
        net.backward(2 * (output - abs(data)) / len(data), net_cache)
        net.values -= (first_rate if step < 5 else 0.05) * net.grads
    negative = (net.inner.forward(data)[0] <= 0).all(0)  # (F,) for every token
    no_gradient = (net.inner.weight.grad == 0).all(0)  # (F,) in the whole column of W1
    counts[name, first_rate] = negative, no_gradient
    print(f"{name:10} first rate {first_rate}   loss {row[-1]:.3f}", end="   ")
    print(f"negative for every token: {negative.sum():2}   gradient 0: {no_gradient.sum():2}")

# %% tags=["check"]
for (name, first_rate), (negative, no_gradient) in counts.items():
    assert (negative == no_gradient).all() if name == "relu" else not no_gradient.any()
    assert (no_gradient.sum() > 32) == ((name, first_rate) == ("relu", 0.4))

# %% tags=["plot"]
names = [f"{name}, {rate}" for name, rate in runs]
figure = curves(losses, labels=names, yscale="log", ylabel="loss")
show_figure(figure, "09_dead", "Five steps at .4 kill most units of a ReLU network permanently")

# %% [markdown]
# With the larger learning rate, most units of the ReLU network are dead. Their gradients are exactly 0, and
# not only small. The networks with GELU and swish continue to learn after the same five steps. Their slope
# is not 0 for negative $x$.
#
# But this slope is noticeable only near 0. At x = −10, the slope of swish is −.0004, and that of GELU is so
# small that it has no effect.

# %%
far_left = {}
for name in shown:
    f, f_backward = ACTIVATIONS[name]
    far_left[name] = f_backward(np.ones(1), f(np.array([-10.0]))[1])[0]
    print(f"slope of {name} at −10: {far_left[name]:.0e}")

# %% tags=["check"]
assert abs(far_left["swish"] + 0.0004) < 2e-5
assert abs(far_left["gelu"]) < 1e-20

# %% [markdown]
# *This is a good place for a break. The next part shows two other views of the same network.*
#
# ## As a memory
#
# Let $k_f$ be column $f$ of $W_1$, and $v_f$ row $f$ of $W_2$. Then equation (2) is
#
# $$y = \sum_f \max(0,\; x \cdot k_f + b_f)\; v_f + b_2$$
#
# This is very similar to attention. The vector $x$ is a query, the $k_f$ are keys, and the $v_f$ are values.
# The output is a weighted sum of the values. (Geva et al., *Transformer Feed-Forward Layers Are Key-Value
# Memories*, 2021.) There are three differences:
#
# | | attention | feed-forward network |
# |---|---|---|
# | keys and values | computed from the other tokens | learned parameters |
# | their number | the length of the sentence | always F |
# | weights | sum to 1 | any sum; all of them may be 0 |
#
# So the network can store knowledge in its parameters. A token may match several keys, or none. The cell
# computes the network of this lesson with the new formula.

# %%
terms = [np.maximum(0, x @ w1[:, f] + b1[f])[..., None] * w2[f] for f in range(16)]
print("largest difference:", abs(sum(terms) + b2 - y).max())

# %% tags=["check"]
assert_allclose(sum(terms) + b2, y, rtol=1e-9)

# %% [markdown]
# We write such a memory by hand. It knows the capitals of three countries. Each name is a random vector of
# length 1 with 64 entries. Two different random vectors are almost orthogonal, so their dot product is close
# to 0. The dot product of a vector with itself is 1.
#
# A unit should be active where $x \cdot k_f > 1/2$. We choose $h = 2\,x \cdot k_f - 1$. It is 1 for the name
# itself, 0 at the threshold, and about −1 for other names.

# %%
sentence = ["Japan", "and", "France", "not", "Chile"]
known = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima"}
vectors = {}
for word in [*sentence, *known, *known.values()]:
    v = rng.standard_normal(64)  # (D,)
    vectors.setdefault(word, v / np.linalg.norm(v))

memory = FeedForward(64, 3, dtype=np.float64)
keys = np.stack([vectors[country] for country in known])  # (F, D)
values = np.stack([vectors[city] for city in known.values()])  # (F, D)
memory.load_state_dict(
    {
        "inner.weight": 2 * keys.T,
        "inner.bias": -np.ones(3),
        "outer.weight": values,
        "outer.bias": np.zeros(64),
    }
)

# %% [markdown]
# **Question.** "and" matches none of the keys. What does the memory return for it, and what would attention
# with the same keys and values return?
#
# <details><summary>Answer</summary>
# The memory returns a vector of zeros, because all its units are inactive. The weights of a softmax sum to
# 1, so attention would return a mixture of the three capitals.
# </details>

# %%
asked = np.stack([vectors[word] for word in sentence])[None]  # (1, T, D)
found, memory_cache = memory.forward(asked)  # (1, T, D)
weights = memory_cache.outer.x[0]  # (T, F)
with_softmax = np.exp(asked[0] @ keys.T)  # (T, F) the same keys with a softmax
with_softmax /= with_softmax.sum(-1, keepdims=True)
print("weights of “and”:", weights[1], "  with a softmax:", np.round(with_softmax[1], 2))

# %% tags=["check"]
assert_allclose(found[0, 0], vectors["Tokyo"], rtol=1e-9)
assert (found[0, [1, 3, 4]] == 0).all()
assert_allclose(with_softmax[1], 1 / 3, atol=0.03)

# %% tags=["plot"]
figure = attention_map(weights, sentence, list(known), numbers=True)
show_figure(figure, "09_memory", "The weights of each token: 1 for its key, or 0 for all")

# %% [markdown]
# In a Transformer, this output is added to the residual (lesson 8). So "Japan" becomes Japan plus Tokyo, and
# "and" stays unchanged. A softmax would add about a third of each capital to
# it.
#
# **Your turn.** In the terminal, ask for a country that is not in the sentence, with
# `!memory.forward(vectors["Peru"][None, None])[0] @ vectors["Lima"]`. Which number do you expect?

# %% [markdown]
# ## As a convolution
#
# The paper says:
#
# > Another way of describing this is as two convolutions with kernel size 1.
#
# A **convolution** computes each output from a *window* of neighbouring tokens. The **kernel size** $n$ is
# the number of tokens in the window. Each place $j$ in the window has a matrix $W_j$. Beyond the ends of the
# sentence, the input counts as 0:
#
# $$y_t = b + \sum_j x_{t+j}\, W_j, \qquad j = -\frac{n-1}{2}, \ldots, \frac{n-1}{2}$$
#
# With $n = 1$ the window contains only the token itself, and $W_0$ is the matrix of a linear layer. So the
# paper's sentence describes the same network.

# %%


def convolution(x, w, b):
    """A slow convolution. x (B, T, D), w (n, D, F), b (F,) -> (B, T, F)."""
    y = np.zeros((*x.shape[:2], w.shape[2]))
    for t in range(x.shape[1]):
        for f in range(w.shape[2]):
            y[:, t, f] = b[f]
            for j in range(len(w)):
                there = t + j - len(w) // 2
                if 0 <= there < x.shape[1]:
                    for d in range(x.shape[2]):
                        y[:, t, f] += x[:, there, d] * w[j, d, f]
    return y


hidden = np.maximum(0, convolution(x, w1[None], b1))
difference = abs(convolution(hidden, w2[None], b2) - y).max()
print("largest difference from the feed-forward network:", difference)

# %% tags=["check"]
assert_allclose(convolution(hidden, w2[None], b2), y, rtol=1e-9)

# %% [markdown]
# The sentence is useful for programs: a library function for convolutions can compute the network.
# *一步步解析Attention is All You Need!* calls `conv1d` twice, with `kernel_size` 1.
#
# What if somebody writes 3 there, with `padding="same"`? All shapes are still correct. But each output now
# depends on other tokens. The cell computes which ones. It changes one token after the other, as in the leak
# test of lesson 6.

# %%
w3, v3 = rng.standard_normal((3, 4, 16)) / 4, rng.standard_normal((3, 16, 4)) / 8


def size_three(x):
    """Two convolutions of kernel size 3 with a ReLU between them."""
    return convolution(np.maximum(0, convolution(x, w3, b1)), v3, b2)


def dependence(f, x):
    """Return where an output token (row) changes with an input token (column). (T, T) bool."""
    depends = np.zeros((x.shape[1], x.shape[1]), bool)
    for s in range(x.shape[1]):
        changed = x.copy()
        changed[:, s] += 1
        depends[:, s] = (f(changed) != f(x)).any((0, 2))
    return depends


long = rng.standard_normal((1, 7, 4))  # (B, T, D)
depends = dependence(size_three, long)  # (T, T)
print("tokens on which each output depends:", depends.sum(1))

# %% tags=["check"]
apart = abs(np.subtract.outer(range(7), range(7)))  # (T, T)
assert (depends == (apart <= 2)).all()
assert (dependence(lambda x: layer.forward(x)[0], long) == (apart == 0)).all()

# %% tags=["plot"]
padded = [*words, "<pad>", "<pad>"]
figure = mask_map(depends, padded, padded)
caption = "Kernel size 3, twice: a row depends on two columns on each side (light)"
show_figure(figure, "09_kernel", caption)

# %% [markdown]
# Each output depends on two tokens on either side, and this causes two errors:
#
# - "tired" now depends on padding. So the output for a sentence depends on the batch that contains it.
# - In a decoder, "was" would depend on two later tokens. This is a leak that no mask of lesson 6 can prevent,
#   because masks act only in attention.
#
# With kernel size 1, only the diagonal would be light. The tokens are mixed in attention alone, which has
# masks.
#
# *This is a good place for a break. The last part counts parameters and multiplications.*

# %% [markdown]
# ## What it costs
#
# We count the parameters of the paper's base model, with D = 512 and F = 2048. First, one encoder layer and
# one decoder layer, with biases everywhere:

# %%
attention_size = MultiHeadAttention(512, 8).count_parameters()  # 4 D² + 4 D
ffn_size = FeedForward(512, 2048).count_parameters()  # 2 D F + F + D
norm_size = LayerNorm(512).count_parameters()  # 2 D
encoder_layer = attention_size + ffn_size + 2 * norm_size
decoder_layer = 2 * attention_size + ffn_size + 3 * norm_size
print(f"encoder layer {encoder_layer:,}, of it feed-forward {ffn_size / encoder_layer:.1%}")
print(f"decoder layer {decoder_layer:,}, of it feed-forward {ffn_size / decoder_layer:.1%}")

# %% tags=["check"]
assert (attention_size, ffn_size, norm_size) == (1_050_624, 2_099_712, 1_024)
assert (encoder_layer, decoder_layer) == (3_152_384, 4_204_032)

# %% [markdown]
# Now the whole model. It has 6 encoder layers and 6 decoder layers, and so 12 feed-forward networks. There
# are 6 + 2 · 6 = 18 attention layers and 6 · 2 + 6 · 3 = 30 layer norms. The embedding has 41,096 tokens,
# and its table is shared by encoder, decoder and output layer. Here attention has no biases.

# %%
parts = {
    "12 feed-forward networks": 12 * ffn_size,
    "18 attention layers": 18 * 4 * 512**2,
    "30 layer norms": 30 * norm_size,
    "embedding": 41_096 * 512,
}
for name, size in parts.items():
    print(f"{name:25} {size:12,}  {size / sum(parts.values()):6.1%}")

# %% tags=["check"]
assert round(sum(parts.values()) / 1e6, 2) == 65.14
assert round(parts["12 feed-forward networks"] / sum(parts.values()), 2) == 0.39

# %% [markdown]
# The feed-forward networks contain two thirds of the parameters of an encoder layer, and half of those of a
# decoder layer. With 39 % they are the largest part of the whole model.
#
# How much work do they do? We count the multiplications for each token of a sentence with T tokens, in one
# encoder layer:
#
# | part | multiplications | with the paper's sizes |
# |---|---|---|
# | feed-forward network | 2 D F | 2,097,152 |
# | projections of attention | 4 D² | 1,048,576 |
# | scores and weighted sums | 2 T D | 1,024 T |
#
# The last row grows with the length of the sentence. At which length does attention do as much work as the
# feed-forward network? We divide the equation by 2 D:
#
# $$\begin{aligned}
# 4 D^2 + 2 T D &= 2 D F \\
# T &= F - 2 D = 2048 - 1024 = 1024
# \end{aligned}$$

# %%
lengths = 2 ** np.linspace(3, 13, 41)  # (P,)
costs = np.stack([np.full(41, 2 * 512 * 2048), 4 * 512**2 + 2 * 512 * lengths])  # (2, P)
share = 2 * 512 * 2048 / (2 * 512 * 2048 + 4 * 512**2 + 2 * 512 * 50)
print(f"at 50 tokens the feed-forward network does {share:.0%} of the multiplications")

# %% tags=["check"]
assert costs[0, 28] == costs[1, 28] == 2_097_152  # at 2¹⁰ tokens

# %% tags=["plot"]
figure = curves(
    costs / 1e6,
    lengths,
    labels=["feed-forward", "attention"],
    xlabel="tokens in the sentence",
    ylabel="million multiplications for each token",
    xscale="log",
    yscale="log",
)
caption = "Up to 1,024 tokens the feed-forward network does more work than attention"
show_figure(figure, "09_cost", caption)

# %% [markdown]
# ## What the documents say
#
# > - *一步步解析Attention is All You Need!* writes the network as two `conv1d` of kernel size 1. The same
# >   function also adds the residual and applies the norm. Its default `scope` is "multihead_attention",
# >   copied from the function before it.
# > - *图解transformer* names the network and draws it once for each token, which is correct. It gives no
# >   formula.
# > - *Attention机制详解（二）* calls `transformer_ffn_layer` and does not show it.
# > - *The components of the Transformer* has two dense layers, the first with ReLU, as in equation (2).
# > - The paper applies dropout to the output of the sublayer. tensor2tensor also applies it to a. In npformer
# >   this is `feed_forward_dropout` in a configuration, and `dropout` of the layer.

# %% [markdown]
# ## Summary
#
# - The feed-forward network is $\max(0, xW_1 + b_1)W_2 + b_2$, applied to each token separately.
# - Without the activation, the two linear layers would be equal to a single one.
# - Backward, an inactive unit passes no gradient; a unit that is inactive for all tokens is dead.
# - The network is a memory with F learned keys and values, whose weights need not sum to 1.
# - It contains two thirds of an encoder layer's parameters, and most of the work up to 1,024 tokens.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the cache of a ReLU need only its output?
#
# <details><summary>Answer</summary>
# The derivative is 1 where h > 0 and 0 elsewhere. The output a is positive exactly where h is positive.
# </details>
#
# **Question.** Can a unit with GELU be dead?
#
# <details><summary>Answer</summary>
# Its gradient is rarely exactly 0. But for very negative h it is so small that the unit hardly changes any
# more.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 9` lists them. The gradient checker grades each of them.
#
# - `npformer exercise start relu-backward`: the cache is y; one comparison is enough.
# - `npformer exercise start gelu-backward`: a product of two functions of x.
# - `npformer exercise start feed-forward-backward`: four steps in reverse order, one of them for dropout.
# - By hand: compute max(x₁, x₂) with three units. (Write it as x₂ plus one ReLU, and x₂ as two ReLUs.)
# - By hand: y = x Φ(x). Show that GELU(x) − GELU(−x) = x, and that swish has the same property.
#
# In the terminal, `s cache.outer` shows what the second linear layer keeps.
#
# **Next**, lesson 10: attention and this network, stacked to an encoder.

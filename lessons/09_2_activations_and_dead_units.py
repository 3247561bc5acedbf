# %% [markdown]
# # 9.2 · Activations and dead units
#
# *About 30 minutes. You need: the feed-forward network (lesson 9.1, `09_1_the_feed_forward_network`), the
# product rule, the complex step (lesson 0.3, `00_3_measured_derivatives`).*
#
# **After this lesson you can**
#
# - derive the derivatives of ReLU, GELU and swish;
# - write an activation in a form that works with complex numbers and does not overflow;
# - explain what a dead unit is, and how training can produce one.
#
# `each layer: x → attention → add & norm → [FEED-FORWARD] → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional.activations import ACTIVATIONS
from npformer.learn.course import show_figure
from npformer.nn import FeedForward
from npformer.plots import Step, curves, gradient_flow

rng = np.random.default_rng(9)
x = rng.standard_normal((2, 5, 4))  # (B, T, D)

# %% [markdown]
# The **activation** is the function between the two linear layers of the network. It is applied to each of
# the F numbers of each token separately:

# %% tags=["plot"]
same = np.random.default_rng(0)
arrays = {"x": same.standard_normal((5, 4))}  # (T, D)
arrays["h"] = arrays["x"] @ same.standard_normal((4, 8))  # (T, F)
arrays["a"] = np.maximum(0, arrays["h"])
arrays["y"] = arrays["a"] @ same.standard_normal((8, 4))
steps = {
    "h": Step("x w1 + b1", ["x"]),
    "a": Step("activation", ["h"]),
    "y": Step("a w2 + b2", ["a"]),
}
axes = {"x": "T D", "h": "T F", "a": "T F", "y": "T D"}
figure = gradient_flow("x h a y", arrays, steps, axes=axes)
caption = "The activation is step 2. Here it is ReLU: the white cells of a are 0"
show_figure(figure, "09_2_activation", caption)

# %% [markdown]
# The paper uses ReLU, $\max(0, h)$. Each of the F places is called a unit. This lesson compares ReLU with
# other activations, and shows how a unit can stop learning.
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
    measured = f(grid + 1e-20j)[0].imag / 1e-20  # the complex step of lesson 0.3
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
# The gradient check computes the forward pass with a complex number $x + ih$, where $h$ is tiny. The
# imaginary part of the result gives the derivative (lesson 0.3). ReLU, $\Phi$ and $\sigma$ can each be
# written in a form that fails there:
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
# All four activations pass the gradient check as part of the layer, also with dropout (lesson 8.3,
# `08_3_the_residual_connection`).

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
# A few steps that are too large can make units dead. We train a network of 64 units to compute $|x|$,
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
        row[step] = ((output - abs(data)) ** 2).sum(-1).mean()
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
show_figure(figure, "09_dead", "After five steps at .4, most units of a ReLU network are dead")

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
# ## Summary
#
# - GELU is $x\,\Phi(x)$ and swish is $x\,\sigma(x)$: smooth functions that are close to ReLU.
# - The derivative of each is the factor, plus x times the derivative of the factor.
# - Two forms of GELU are in use. They differ by less than .0005, but a saved model must name its form.
# - The complex step needs forms of the functions that accept complex numbers and do not overflow.
# - A ReLU unit that is inactive for all tokens is dead: its gradient is exactly 0, and it never changes.

# %% [markdown]
# ## Questions
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
# `npformer exercise list 9` lists the exercises of this chapter.
#
# - `npformer exercise start gelu-backward`: write the backward pass of GELU, which is a product of two
#   functions of x.
# - By hand: y = x Φ(x). Show that GELU(x) − GELU(−x) = x, and that swish has the same property.
# - See which units of a real model are inactive: run `npformer explore --model en-de "A dog runs." --open`,
#   and replace the end of the address, from `#` on, by `#step=encoder.0.feed_forward.hidden.activated`.
#
# **Next**: lesson 9.3 (`09_3_a_memory_and_a_convolution`), two other views of the same network.

# %% [markdown]
# # 8.2 · The backward pass of layer norm
#
# *About 30 minutes. You need: layer norm (lesson 8.1, `08_1_layer_norm`), the chain rule, the gradient check
# (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - derive the backward pass of layer norm, one operation at a time;
# - write it as one line with three terms, and explain each term;
# - choose a gain and a bias with which a gradient check finds mistakes.
#
# `each layer: x → attention → [ADD & NORM] → feed-forward → [ADD & NORM] → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional.norm import layer_norm, layer_norm_backward
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.plots import Figure, Step, gradient_flow, score_bars

rng = np.random.default_rng(8)

# %% [markdown]
# ## Forward, then backward
#
# Layer norm computes the mean $m$ and the variance $v$ of the D numbers of a token. The cell does this in
# small steps. It also draws random numbers for `dy`, the gradient that arrives from the rest of the model.

# %%
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
gain, bias = rng.standard_normal(4), rng.standard_normal(4)  # (D,)
eps = 1e-5
c = x - x.mean(-1, keepdims=True)  # (B, T, D)
v = (c * c).mean(-1, keepdims=True)  # (B, T, 1)
r = (v + eps) ** -0.5  # (B, T, 1)
xhat = c * r  # (B, T, D)
y = gain * xhat + bias  # (B, T, D)
y_package, cache = layer_norm(x, gain, bias)
dy = rng.standard_normal(y.shape)  # (B, T, D)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(xhat, cache.xhat, rtol=1e-12)

# %% tags=["plot"]
layout = """x  c  .  .  xhat  y
            .  .  v  r  .     ."""
arrays = {"x": x, "c": c, "v": v, "r": r, "xhat": xhat, "y": y}
arrays = {name: array[0, 1] for name, array in arrays.items()}  # one token
axes = dict.fromkeys(arrays, "D") | {"v": "1", "r": "1"}
steps = {
    "c": Step("x − m", ["x"]),
    "v": Step("mean c²", ["c"]),
    "r": Step("1/√(v+ε)", ["v"]),
    "xhat": Step("c r", ["c", "r"]),
    "y": Step("× g + b", ["xhat"]),
}


def backward(**gradients):
    """Draw the backward pass of a token. The gradients that are not given are empty."""
    given = {name: gradient[0, 1] for name, gradient in gradients.items()}
    return gradient_flow(layout, arrays, steps, dict.fromkeys(arrays) | given, axes=axes)


figure = gradient_flow(layout, arrays, steps, axes=axes)
show_figure(figure, "08_2_forward", "Forward, for one token: c is used twice, in steps 2 and 4")
caption = "Backward: dy leads back through five steps to dx, and dc is a sum of two parts"
show_figure(backward(y=dy), "08_2_backward", caption)

# %% [markdown]
# A circle is a step, and a dashed rectangle is a gradient. We write $c_i = x_i - m$ and
# $r = 1 / \sqrt{v + \varepsilon}$. The normalized vector and the output are
#
# $$\hat{x}_i = c_i\, r, \qquad y_i = g_i\, \hat{x}_i + b_i$$
#
# Every $x_i$ has an effect on every $y_j$ of the same token, because it is part of $m$ and $v$. This makes
# the backward pass longer than that of most layers. We fill in the empty rectangles from right to left, and
# simplify the result at the end.

# %% [markdown]
# ## Backward, one operation at a time
#
# We begin with step 5, $y_i = g_i\, \hat{x}_i + b_i$. All tokens of all sentences use the same $g$ and
# $b$, so their gradients are sums over all tokens $n$:
#
# $$\begin{aligned}
# db_i &= \sum_n dy_{ni} \\
# dg_i &= \sum_n dy_{ni}\, \hat{x}_{ni} \\
# d\hat{x}_i &= dy_i\, g_i
# \end{aligned}$$

# %%
db = dy.sum((0, 1))  # (D,)
dg = (dy * xhat).sum((0, 1))  # (D,)
dxhat = dy * gain  # (B, T, D)

# %% [markdown]
# The other steps concern one token only.
#
# **Step 4, the product.** In $\hat{x}_i = c_i\, r$ there is one $r$ for all D numbers. So the gradient of $r$
# is a sum, and $c_i$ gets the first part of its gradient:
#
# $$\begin{aligned}
# dc_i &= r\, d\hat{x}_i \\
# dr &= \sum_i d\hat{x}_i\, c_i
# \end{aligned}$$

# %%
dc = r * dxhat  # (B, T, D)
dr = (dxhat * c).sum(-1, keepdims=True)  # (B, T, 1)

# %% tags=["plot"]
caption = "After steps 5 and 4: dr has arrived, and dc has its first part"
show_figure(backward(y=dy, xhat=dxhat, c=dc, r=dr), "08_2_step_4", caption)

# %% [markdown]
# **Steps 3 and 2, the variance.** The derivative of $r = (v + \varepsilon)^{-1/2}$ with respect to $v$ is
# $-\frac12 (v + \varepsilon)^{-3/2} = -\frac12 r^3$. The derivative of $v$ with respect to $c_i$ is $2c_i/D$.
# So $c_i$ gets a second contribution, which is added to the first:
#
# $$\begin{aligned}
# dv &= -\frac{1}{2}\, r^3\, dr \\
# dc_i &= r\, d\hat{x}_i + \frac{2}{D}\, c_i\, dv
# \end{aligned}$$
#
# **Step 1, the mean.** In $c_i = x_i - m$, the gradient of $c_i$ goes to $x_i$, and with a minus sign to $m$.
# The mean $m$ occurs in every $c_i$, so its gradient is a sum. Each $x_i$ has the factor $1/D$ in $m$:
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

# %% tags=["plot"]
caption = "After steps 3, 2 and 1: dc has both parts, and dx is complete"
show_figure(backward(y=dy, xhat=dxhat, c=dc, r=dr, v=dv, x=dx), "08_2_all", caption)

# %% [markdown]
# ## The same in one line
#
# These lines are right, but their meaning is hard to see. So we substitute them into one another. Let
# $\langle a \rangle$ be the mean of the D numbers of a token. Then $dr = D\, \langle d\hat{x}\, c \rangle$.
# We also use $c_i\, r = \hat{x}_i$:
#
# $$\begin{aligned}
# dc_i &= r\, d\hat{x}_i - \frac{2}{D}\, c_i \cdot \frac{1}{2}\, r^3 \cdot D\, \langle d\hat{x}\, c \rangle \\
# &= r\, d\hat{x}_i - r\, (c_i\, r)\, \langle d\hat{x}\, c\, r \rangle \\
# &= r\, (d\hat{x}_i - \hat{x}_i\, \langle d\hat{x}\, \hat{x} \rangle)
# \end{aligned}$$
#
# The first step of the forward pass subtracts the mean. So the last step of the backward pass subtracts the
# mean $\langle dc \rangle$ from $dc$. Because $\langle \hat{x} \rangle = 0$, this mean is
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
# **The gradient loses the two directions that layer norm ignores.** Its mean is removed, because adding a
# number to all of $x$ changes nothing. The part of a vector $a$ along $\hat{x}$ is
# $\hat{x}\, \langle a\, \hat{x} \rangle / \langle \hat{x}^2 \rangle$. Here
# $\langle \hat{x}^2 \rangle \approx 1$, so this part of $d\hat{x}$ is
# $\hat{x}\, \langle d\hat{x}\, \hat{x} \rangle$. It is removed too, because multiplying $x$ by a positive
# number changes nothing. The factor $r$ divides the gradient by the standard deviation, just as the forward
# pass divided $x - m$ by it.
#
# For D = 3 we can draw this. All vectors $x - m$ lie in the plane orthogonal to (1, 1, 1). Layer norm moves
# each along a ray from the centre to the circle of radius $\sqrt{3}$, because the three squares $\hat{x}_i^2$
# have the mean 1.
#
# The grey arrow is $d\hat{x}$ without its mean. The blue arrow is its part **tangent to the circle**. Only
# this part reaches $dx$.

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
ax.quiver(*normed, *wanted, color="#b9bdc2", label="dx̂ without its mean", **style)
ax.quiver(*normed, *back, color="#0b4a8f", label="dx / r, the gradient of x", **style)
ax.set(aspect="equal", xlim=(-2.7, 2.7), ylim=(-2.7, 2.7))
ax.axis("off")
figure.legend(loc="center right", frameon=False, fontsize=9)
caption = "Six tokens with D = 3: the gradient of x is tangent to the circle"
show_figure(figure, "08_circle", caption)

# %% tags=["plot"]
run = running_example()
before, after = (run.gradients[f"encoder.{place}"] for place in ("norm.xhat", "3.add2.sum"))
lengths = [1000 * np.linalg.norm(gradient, axis=-1) for gradient in (before, after)]  # (S,)
figure = score_bars(lengths, [run.source] * 2, ["1000 |dx̂|", "1000 |dx|"])
caption = "Our sentence: |dx| is about |dx̂| divided by the deviations of the last norm (8.1)"
show_figure(figure, "08_2_running", caption)

# %% tags=["check"]
assert_allclose(after.mean(-1), 0, atol=1e-12)

# %% [markdown]
# The circle was drawn with ε = 0. With ε > 0, a small part along $\hat{x}$ remains. (Multiply the formula by
# $\hat{x}_i$ and take the mean:
# $\langle dx\, \hat{x} \rangle = r\, \langle d\hat{x}\, \hat{x} \rangle\, (1 - \langle \hat{x}^2 \rangle)$,
# and $1 - \langle \hat{x}^2 \rangle = \varepsilon / (v + \varepsilon)$ is small.)
#
# ## Is it right? Check with random gain and bias
#
# At the start of training, the gain is 1 and the bias is 0. With these values, some mistakes are invisible.
# We plant two mistakes:
#
# - The first multiplies by the gain at the end, $dx = g\, r\, (\ldots)$, and not at the beginning.
# - The second keeps $y$ in the cache instead of $\hat{x}$. With gain 1 and bias 0 the two are equal.
#
# The cell checks each of them twice: with gain 1 and bias 0, and with random values. With `randomize=False`,
# `gradcheck` keeps the 1 and 0, which it would otherwise replace by random values.

# %% tags=["check"]


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
    at_start = gradcheck(pair, x, np.ones(4), np.zeros(4), randomize=False)
    at_random = gradcheck(pair, x, gain, bias)
    assert at_start.ok
    assert not at_random.ok
    wrong = at_random.failures[0].tensor
    print(f"{mistake:16} with 1 and 0: no error    random values: wrong in", wrong)

# %% [markdown]
# With gain 1 and bias 0, both mistakes pass the check. But after one training step, the gain and the bias are
# different, and the gradients are wrong. Here is the check of the package's functions:

# %%
report = gradcheck((layer_norm, layer_norm_backward), x, gain, bias)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Summary
#
# - The gradients of gain and bias are sums over all tokens.
# - The gradient of $x$ has three contributions: directly, through the variance, and through the mean.
# - In one line, $dx$ is $d\hat{x}$ minus its mean and minus its part along $\hat{x}$, all times $r$.
# - So $dx$ has mean 0, and it has no part along $\hat{x}$, except for a small effect of ε.
# - A gradient check must use random gains and biases. With 1 and 0, some mistakes remain hidden.

# %% [markdown]
# ## Questions
#
# **Question.** The gradient of $\hat{x}$ is the same number for all D components of a token. What is $dx$?
#
# <details><summary>Answer</summary>
# It is 0. The gradient is equal to its mean, and the mean is removed. The part along x̂ is 0 too, because the
# mean of x̂ is 0.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 8` lists the exercises of this chapter.
#
# - `npformer exercise start layer-norm-backward`: write the backward pass of layer normalization. The
#   gradient of x has three terms, and the gradients of gain and bias are sums over the tokens.
# - By hand: let D = 2, $x_1 \neq x_2$ and ε = 0. Show that x̂ is (1, −1) or (−1, 1), and that dx is 0 for
#   every dy. What information does a layer norm of two numbers pass on to the next layer?
# - Read the three terms of $dx$ in a real model: run `npformer explore --model en-de "A dog runs." --open`,
#   and replace the end of the address, from `#` on, by
#   `#direction=backward&step=encoder.0.norm1.xhat`.
#
# **Next** on the main route: lesson 8.3 (`08_3_the_residual_connection`), the sum of the input and the output
# of a sublayer. On the route for engineers: lesson 14.4 (`14_4_the_kv_cache`), which makes the search for a
# translation faster.

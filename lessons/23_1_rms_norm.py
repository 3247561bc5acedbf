# %% [markdown]
# # 23.1 · RMS norm
#
# *About 25 minutes. You need: layer norm and its backward pass (lesson 8.2,
# `08_2_the_backward_pass_of_layer_norm`).*
#
# **After this lesson you can**
#
# - compute RMS norm, and say which two parts of layer norm it leaves out;
# - derive its backward pass, which is shorter than that of layer norm;
# - compare its cost with that of layer norm.
#
# `each layer: x → attention → [ADD & NORM] → feed-forward → [ADD & NORM] → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.nn import LayerNorm, RMSNorm
from npformer.plots import Grid, Step, cell_product, gradient_flow

rng = np.random.default_rng(23)

# %% [markdown]
# ## What has changed since 2017
#
# The language models of today are decoder-only models (lesson 21.6,
# `21_6_encoder_only_and_decoder_only_models`). They still consist of attention, feed-forward networks,
# residual connections and norms. But almost every part has been replaced by a simpler or a better one. This
# chapter treats these parts in turn:
#
# | | 2017 | today, for example Llama | lesson |
# |---|---|---|---|
# | norm | layer norm, after the sum | RMS norm, before the sublayer | 23.1 |
# | positions | sinusoids, added | rotary, in queries and keys | 23.2 |
# | feed-forward | ReLU, two matrices | SwiGLU, three matrices | 23.3 |
# | attention | one key head for each query head | key heads shared by query heads | 23.4 |
# | optimizer | Adam, 1/√step | AdamW, cosine with a floor | 23.5 |
#
# As before, each part is a function with a backward pass.

# %% [markdown]
# ## What can be left out of layer norm
#
# Layer norm (lesson 8.1, `08_1_layer_norm`) does four things to the D numbers of a token. It subtracts their
# mean, divides by their standard deviation, multiplies by a gain and adds a bias.
#
# Zhang and Sennrich (*Root Mean Square Layer Normalization*, 2019) asked which of these operations matter.
# They supposed that training is stable because all vectors get the same *size*, and that the mean of a vector
# does not matter. So they left out the subtraction of the mean, and the bias. Their models were as good as
# those with layer norm. This is **RMS norm**:
#
# $$\hat{x}_i = \frac{x_i}{\sqrt{\frac{1}{D} \sum_j x_j^2 + \varepsilon}}, \qquad y_i = g_i\, \hat{x}_i$$
#
# The denominator is the **root mean square** of the D numbers, in short RMS.

# %%
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
gain = rng.standard_normal(4)  # (D,)
eps = 1e-5

r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)  # (B, T, 1)
xhat = x * r  # (B, T, D)
y, cache = F.rms_norm(x, gain, eps)
show(cache)
print("mean square of x̂:", (xhat * xhat).mean(-1)[0])

# %% tags=["check"]
assert_allclose(gain * xhat, y, rtol=1e-12)
assert_allclose(xhat, cache.xhat, rtol=1e-12)
assert_allclose((xhat * xhat).mean(-1), 1, atol=1e-3)

# %% [markdown]
# **Question.** For which vectors do layer norm and RMS norm give the same $\hat{x}$?
#
# <details><summary>Answer</summary>
# For vectors with mean 0. Subtracting this mean changes nothing, and the variance is the mean of the squares.
# </details>
#
# So layer norm does one more step before RMS norm: it subtracts the mean.

# %%
centred = x - x.mean(-1, keepdims=True)  # (B, T, D)
_, layer_cache = F.layer_norm(x, gain, np.zeros(4), eps)
_, centred_cache = F.rms_norm(centred, gain, eps)
print(f"the difference is at most {abs(centred_cache.xhat - layer_cache.xhat).max():.0e}")

# %% tags=["check"]
assert_allclose(centred_cache.xhat, layer_cache.xhat, rtol=1e-12)

# %% tags=["plot"]
settings = {"numbers": True, "shade": True}
parts = [Grid(x[0], "x", "x", **settings), Grid(cache.xhat[0], "RMS norm", "z", **settings)]
figure = cell_product([*parts, Grid(layer_cache.xhat[0], "layer norm", "linear", **settings)])
caption = "Three tokens: RMS norm keeps the signs of x, and layer norm moves each row to mean 0"
show_figure(figure, "23_rms_norm", caption)

# %% [markdown]
# ## Backward, one operation at a time
#
# The picture is that of lesson 8.2 without the first step.

# %% tags=["plot"]
layout = """x  .  .  xhat  y
            .  u  r  .     ."""
u = (x * x).mean(-1, keepdims=True)  # (B, T, 1)
one = {"x": x, "u": u, "r": r, "xhat": xhat, "y": y}
one = {name: array[0, 0] for name, array in one.items()}
steps = {
    "u": Step("mean x²", ["x"]),
    "r": Step("1/√(u+ε)", ["u"]),
    "xhat": Step("x r", ["x", "r"]),
    "y": Step("× g", ["xhat"]),
}
axes = dict.fromkeys(one, "D") | {"u": "1", "r": "1"}
figure = gradient_flow(layout, one, steps, dict.fromkeys(one), axes=axes)
caption = "RMS norm of one token: dx is the sum of two paths, through xhat and through u"
show_figure(figure, "23_1_paths", caption)

# %% [markdown]
# The gain is shared by all tokens $n$, so its gradient is a sum over the tokens. The other steps concern one
# token. Each $x_i$ has two effects: it is a factor of $\hat{x}_i$, and it is part of $u$. Let
# $\langle a \rangle$ be the mean of the D numbers of a token:
#
# $$\begin{aligned}
# dg_i &= \sum_n dy_{ni}\, \hat{x}_{ni}, \qquad d\hat{x}_i = dy_i\, g_i \\
# dr &= \sum_i d\hat{x}_i\, x_i = D\, \langle d\hat{x}\, x \rangle \\
# du &= -\frac{1}{2}\, r^3\, dr \\
# dx_i &= r\, d\hat{x}_i + \frac{2}{D}\, x_i\, du
# \end{aligned}$$

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
dg = (dy * xhat).sum((0, 1))  # (D,)
dxhat = dy * gain  # (B, T, D)
dr = (dxhat * x).sum(-1, keepdims=True)  # (B, T, 1)
du = -0.5 * r**3 * dr  # (B, T, 1)
dx = r * dxhat + 2 / 4 * x * du  # (B, T, D), D = 4

# %% tags=["check"]
dx_package, dg_package = F.rms_norm_backward(dy, cache)
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(dg, dg_package, rtol=1e-9)
print("dx and dgain are those of the package")

# %% [markdown]
# Now we insert the lines into each other, and use $x_i\, r = \hat{x}_i$:
#
# $$\begin{aligned}
# dx_i &= r\, d\hat{x}_i - r^3\, x_i\, \langle d\hat{x}\, x \rangle \\
# &= r\, (d\hat{x}_i - \hat{x}_i\, \langle d\hat{x}\, \hat{x} \rangle)
# \end{aligned}$$
#
# In the gradient of layer norm, the mean $\langle d\hat{x} \rangle$ is also subtracted, because layer norm
# ignores the mean of $x$. RMS norm ignores only a multiplication of $x$ by a positive number. So only the
# part of the gradient along $\hat{x}$ is removed.

# %%
in_one_line = r * (dxhat - xhat * (dxhat * xhat).mean(-1, keepdims=True))  # (B, T, D)
along = abs((dx * xhat).mean(-1)).max()
print(f"parts of dx along x̂: at most {along:.4f}; mean: at most {abs(dx.mean(-1)).max():.4f}")

report = gradcheck((F.rms_norm, F.rms_norm_backward), x, gain)
print(report)

# %% tags=["check"]
assert_allclose(in_one_line, dx, rtol=1e-9)
assert along < 1e-3 < 0.05 < abs(dx.mean(-1)).max()
assert report.ok

# %% [markdown]
# ## What it costs
#
# RMS norm has D parameters, and layer norm has 2 D. Most of the time of a norm is spent on reading and
# writing vectors (chapter 16). So we count the passes through memory. Plain NumPy makes one pass for each
# operation on an array (B, T, D):
#
# | | layer norm | RMS norm |
# |---|---|---|
# | forward | mean, minus, square, mean, times, gain, bias | square, mean, times, gain |
# | backward | gain, times, 2 means, times, 2 × minus, times | gain, times, mean, times, minus, times |
#
# These are 15 passes for layer norm and 10 for RMS norm.

# %%
layer_passes, rms_passes = 7 + 8, 4 + 6
print(f"RMS norm makes {rms_passes / layer_passes:.0%} of the passes")
sizes = {}
for kind in (LayerNorm, RMSNorm):
    sizes[kind.__name__] = sum(p.value.size for p in kind(512).parameters())
print("parameters for D = 512:", sizes)

# %% tags=["check"]
assert (layer_passes, rms_passes) == (15, 10)
assert sizes == {"LayerNorm": 1024, "RMSNorm": 512}

# %% [markdown]
# A kernel that works in blocks (lesson 16.2, `16_2_kernels`) computes several operations with one pass
# through memory. So such kernels make the difference smaller. The main advantage of RMS norm is its
# simplicity.

# %% [markdown]
# **In 2025**, RMS norm is the rule. Qwen3 and Gemma 3 also normalize queries and keys, and OLMo 2 normalizes
# the output of each sublayer.

# %% [markdown]
# ## Summary
#
# - RMS norm divides each vector by its root mean square, and multiplies it by a gain.
# - RMS norm leaves out two parts of layer norm: the subtraction of the mean, and the bias.
# - Layer norm without a bias is RMS norm of the vector minus its mean.
# - The backward pass of RMS norm is $dx = r\, (d\hat{x} - \hat{x}\, \langle d\hat{x}\, \hat{x} \rangle)$.
#   Layer norm has one term more.
# - RMS norm has half the parameters of layer norm, and two thirds of the passes through memory in plain
#   NumPy.

# %% [markdown]
# ## Questions
#
# **Question.** All D numbers of a token are equal to 5. What is $\hat{x}$ in RMS norm, and what was it in
# layer norm?
#
# <details><summary>Answer</summary>
# The root mean square is 5, so all numbers of $\hat{x}$ are 1, if we neglect ε. Layer norm gives 0, because
# it subtracts the mean.
# </details>
#
# **Question.** The gradient $d\hat{x}$ is a multiple of $\hat{x}$. What is $dx$?
#
# <details><summary>Answer</summary>
# $dx$ is 0, if we neglect ε. The backward pass removes the part of $d\hat{x}$ along $\hat{x}$, and here
# $d\hat{x}$ has no other part. If $x$ changes along $\hat{x}$, the output does not change.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 23` lists the exercises of this chapter.
#
# - `npformer exercise start rms-norm-backward`: write the backward pass of RMS norm.
# - By hand: compute $\hat{x}$ of x = (1, 7, 5, 5) with ε = 0. Check that its mean square is 1.
#
# **Next**: lesson 23.2 (`23_2_rotary_positions`), positions as rotations.

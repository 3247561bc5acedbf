# %% [markdown]
# # 23.3 · Gated feed-forward networks
#
# *About 20 minutes. You need: the feed-forward network (lesson 9.1, `09_1_the_feed_forward_network`), the
# gradient of a product (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - compute the gated networks SwiGLU and GEGLU;
# - choose their width so that the number of parameters stays the same;
# - derive the gradients of a product of two branches.
#
# `each layer: x → attention → add & norm → [FEED-FORWARD] → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.nn import FeedForward, GatedFeedForward
from npformer.plots import Step, curves, gradient_flow

rng = np.random.default_rng(23)

# %% [markdown]
# ## From an activation to a gate
#
# The feed-forward network of 2017 is $\max(0, x W_1) W_2$, if we leave out the biases. The ReLU works like a
# switch: each hidden unit is either off, or it passes its own number.
#
# A **gate** separates these two tasks. One linear map of $x$ computes a number, the *value*. A second linear
# map of $x$ computes the *gate*, which decides how much of the value passes: the value is multiplied by a
# function of the gate. In the LSTM (lesson 17.1, `17_1_lstm_and_gru_cells`), this function is the sigmoid.

# %% tags=["plot"]
layout = """x  gate   a  h  y
            .  value  .  .  ."""
same = np.random.default_rng(0)
x = same.standard_normal((5, 4))  # (T, D)
gate, value = x @ same.standard_normal((2, 4, 7))  # (T, F)
a = gate / (1 + np.exp(-gate))
arrays = {"x": x, "gate": gate, "value": value, "a": a, "h": a * value}
arrays["y"] = arrays["h"] @ same.standard_normal((7, 4))
steps = {
    "gate": Step("", ["x"]),
    "value": Step("", ["x"]),
    "a": Step("f(gate)", ["gate"]),
    "h": Step("a · value", ["a", "value"]),
    "y": Step("h w2", ["h"]),
}
axes = dict.fromkeys(arrays, "T F") | {"x": "T D", "y": "T D"}
caption = "A gated network: gate and value are products of x and two matrices"
show_figure(gradient_flow(layout, arrays, steps, axes=axes), "23_3_gate", caption)

# %% [markdown]
# In the picture, T is the number of tokens, D the length of their vectors, and F the width of the hidden
# layer. The gate $x W_g$ goes through a function $f$. Then it is multiplied by the value $x W_v$, entry by
# entry, so a value passes only where its gate is open.
#
# Shazeer (*GLU Variants Improve Transformer*, 2020) tried several activations $f$ for the gate:
#
# $$h = f(x W_g) \odot (x W_v), \qquad y = h\, W_2$$
#
# The sign $\odot$ multiplies entry by entry. With $f = \mathrm{swish}$ the network is called **SwiGLU**, and
# with $f = \mathrm{gelu}$ it is called **GEGLU**. Here $\mathrm{swish}(u) = u\, \mathrm{sigmoid}(u)$. GLU
# stands for *gated linear unit*.

# %%
D, F_width = 6, 16
w_gate, w_value = rng.standard_normal((2, D, F_width)) / np.sqrt(D)  # (D, F) each
w_outer = rng.standard_normal((F_width, D)) / np.sqrt(F_width)  # (F, D)
x = rng.standard_normal((2, 3, D))  # (B, T, D)

gate, value = x @ w_gate, x @ w_value  # (B, T, F)
activated = gate / (1 + np.exp(-gate))  # (B, T, F) swish(gate)
h = activated * value  # (B, T, F)
y = h @ w_outer  # (B, T, D)
packaged, cache = F.swiglu(gate, value)
show(cache)

# %% tags=["check"]
assert_allclose(h, packaged, rtol=1e-12)
assert_allclose(F.geglu(gate, value)[0], F.gelu(gate)[0] * value, rtol=1e-12)

# %% [markdown]
# What can such a unit do that a ReLU cannot? The figure shows the output of one hidden unit. The gate is on
# the horizontal axis, and each curve belongs to one value.

# %% tags=["plot"]
gates = np.linspace(-6, 6, 121)
rows = np.stack([F.swiglu(gates, np.full(121, v))[0] for v in (2.0, 1.0, -1.0)])
labels = ["value 2", "value 1", "value −1"]
figure = curves(rows, gates, labels=labels, xlabel="gate", ylabel="hidden unit")
caption = "SwiGLU: for a negative gate almost nothing passes; otherwise the value decides"
show_figure(figure, "23_swiglu", caption)

# %% [markdown]
# If the gate is positive, the output has the sign of the value. The output of a ReLU is never negative. And
# the gated unit contains a *product* of two linear functions of $x$. A ReLU network can only approximate such
# a product.
#
# **Question.** Let the gate be large, so that $\mathrm{swish}(u) \approx u$, and let $W_g = W_v$. What does
# the hidden unit compute?
#
# <details><summary>Answer</summary>
# It computes $u \cdot u = u^2$, the square of a linear function of $x$.
# </details>

# %% [markdown]
# ## The same number of parameters
#
# The gated network has three matrices instead of two. A fair comparison needs equal numbers of parameters.
# The network of 2017 has the width $F = 4D$, so its two matrices have $2 \cdot D \cdot 4D = 8 D^2$ numbers.
# Three matrices with the width F have $3 D F$ numbers. The networks have equally many parameters for
#
# $$F = \frac{8}{3}\, D$$
#
# This ratio explains the widths of the first Llama models, rounded up to a multiple of 256: the one with D =
# 4096 has F = 11,008 (2023). Later models have other ratios; Llama 3 has F = 14,336 for the same D.

# %%
usual = FeedForward(768, 4 * 768, bias=False)
gated = GatedFeedForward(768, 8 * 768 // 3)
counts = [sum(p.value.size for p in layer.parameters()) for layer in (usual, gated)]
print("parameters of the usual and of the gated network:", *counts)
exact = 8 * 4096 / 3
print(f"8/3 · 4096 = {exact:.0f}, and the next multiple of 256 is {int(-(-exact // 256)) * 256}")

# %% tags=["check"]
assert counts[0] == counts[1] == 8 * 768**2
assert -(-exact // 256) * 256 == 11008

# %% [markdown]
# With equal numbers of parameters, the models of Shazeer had a lower loss with SwiGLU or GEGLU than with
# ReLU. The paper has no explanation for this result. It says:
#
# > We offer no explanation as to why these architectures seem to work; we attribute their success, as all
# > else, to divine benevolence.

# %% [markdown]
# ## Backward
#
# We go backwards from $y$. The matrix $W_2$ passes the gradient to $h$ as usual. The product has two factors,
# and each factor gets the gradient of $h$ times the *other* factor. Both branches begin at $x$, so $dx$ is
# the sum of their gradients:
#
# $$\begin{aligned}
# dh &= dy\, W_2^\top \\
# d\mathrm{value} &= dh \odot \mathrm{swish}(\mathrm{gate}) \\
# d\mathrm{gate} &= dh \odot \mathrm{value} \odot \mathrm{swish}'(\mathrm{gate}) \\
# dx &= d\mathrm{gate}\, W_g^\top + d\mathrm{value}\, W_v^\top
# \end{aligned}$$
#
# With $s = \mathrm{sigmoid}(u)$ and $s' = s (1 - s)$, the product rule gives
# $\mathrm{swish}'(u) = s + u\, s\, (1 - s)$.

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
s = 1 / (1 + np.exp(-gate))  # (B, T, F)
dh = dy @ w_outer.T  # (B, T, F)
dvalue = dh * activated  # (B, T, F)
dgate = dh * value * (s + gate * s * (1 - s))  # (B, T, F)
dx = dgate @ w_gate.T + dvalue @ w_value.T  # (B, T, D)

layer = GatedFeedForward(D, F_width, dtype=np.float64)
report = gradcheck(layer, x)
print(report)

# %% tags=["check"]
for ours, theirs in zip((dgate, dvalue), F.swiglu_backward(dh, cache), strict=True):
    assert_allclose(ours, theirs, rtol=1e-9)
for name, weight in (("gate", w_gate), ("value", w_value), ("outer", w_outer)):
    getattr(layer, name).weight.value[...] = weight
assert_allclose(layer.backward(dy, layer.forward(x)[1]), dx, rtol=1e-9)
assert report.ok

# %% [markdown]
# **In 2025**, SwiGLU is the rule. In many large models, such as DeepSeek-V3, each token uses only a few of
# many such networks.

# %% [markdown]
# ## Summary
#
# - A gated network multiplies an activation of one linear map of $x$ by another linear map of $x$.
# - In SwiGLU the activation is swish, and in GEGLU it is GELU.
# - With F = 8/3 D, three matrices have as many numbers as two matrices with F = 4 D.
# - Each factor of the product gets the gradient of the product times the other factor.
# - Both branches begin at $x$, so $dx$ is the sum of two gradients.

# %% [markdown]
# ## Questions
#
# **Question.** The value of a hidden unit is 0 for some token. Which of $W_g$ and $W_v$ gets a gradient from
# this unit and this token?
#
# <details><summary>Answer</summary>
# Only $W_v$. The gradient of the gate contains the value as a factor, so this gradient is 0. The gradient of
# the value contains swish(gate), which may be different from 0.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 23` lists the exercises of this chapter.
#
# - `npformer exercise start swiglu-backward`: write the gradients of the gate and of the value.
# - By hand: a usual network has D = 384 and F = 1536. A gated network has the same D and the same number of
#   weights. How wide is its hidden layer?
#
# **Next**: lesson 23.4 (`23_4_grouped_query_attention`), which makes the KV cache smaller.

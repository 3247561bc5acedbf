# %% [markdown]
# # 8.1 · Layer norm
#
# *About 20 minutes. You need: mean and variance, the cache of a forward pass (lesson 0.2,
# `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - compute layer normalization by hand and with NumPy;
# - explain the gain, the bias, the division by D and the ε in its formula;
# - name two changes of a vector that have almost no effect on the result.
#
# `each layer: x → attention → [ADD & NORM] → feed-forward → [ADD & NORM] → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.functional.norm import layer_norm
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.plots import Grid, Step, cell_product, gradient_flow, score_bars

rng = np.random.default_rng(8)

# %% [markdown]
# ## The passage in the paper
#
# A Transformer is a stack of layers. Each layer contains **sublayers**: attention and the feed-forward
# network (chapter 9). The output of a sublayer does not replace the vectors $x$ of the tokens. It is *added*
# to them, and the sum is normalized. *Attention Is All You Need* says this in section 3.1:
#
# > We employ a residual connection [11] around each of the two sub-layers, followed by layer
# > normalization [1]. That is, the output of each sub-layer is LayerNorm(x + Sublayer(x)), where Sublayer(x)
# > is the function implemented by the sub-layer itself.

# %% tags=["plot"]
layout = """x  .  u  y
            .  h  .  ."""
example = np.random.default_rng(0).standard_normal((2, 3, 4))  # x and h of three tokens
total = example.sum(0)  # (T, D)
y_example, _ = layer_norm(total, np.ones(4), np.zeros(4))
arrays = {"x": example[0], "h": example[1], "u": total, "y": y_example}
steps = {
    "h": Step("sublayer", ["x"]),
    "u": Step("x + h", ["x", "h"]),
    "y": Step("norm", ["u"]),
}
figure = gradient_flow(layout, arrays, steps, axes=dict.fromkeys(arrays, "T D"))
show_figure(figure, "08_1_add_and_norm", "Add & norm: the sum of x and a sublayer is normalized")

# %% [markdown]
# The picture shows both operations of this chapter for T vectors of D numbers: the sum $u = x + h$, where $h$
# is the output of the sublayer, and the norm. We begin with the norm. Each sublayer adds something to $x$, so
# the numbers could grow from layer to layer. The norm brings them back to the same size. Lesson 8.3
# (`08_3_the_residual_connection`) explains the sum.

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
# The first line contains the mean and the variance. The vector $\hat{x}$ has mean 0 and, if we neglect ε,
# variance 1. The **gain** $g$ and the **bias** $b$ are parameters with D numbers each. All tokens share them.
# The next cell calls the package's layer norm. The check compares the result with these formulas.

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

# %% tags=["plot"]
settings = {"numbers": True, "shade": True}
parts = [Grid(x[0], "x", "x", **settings), "→", Grid(cache.xhat[0], "x̂", "z", **settings)]
figure = cell_product([*parts, "→", Grid(y[0], "y", "linear", **settings)])
caption = "Three tokens: each row of x̂ has mean 0 and variance 1; gain and bias turn it into y"
show_figure(figure, "08_layer_norm", caption)

# %% [markdown]
# The cache keeps what the backward pass will need. These are $\hat{x}$, the factor $1/\sqrt{v + \varepsilon}$
# (`rstd`) and the gain. It does not keep $x$, $m$ or $v$.

# %%
show(cache)

# %% [markdown]
# Two details of the variance matter.
#
# **The sum is divided by D, and not by D − 1.** This is called the biased variance. In statistics one divides
# by D − 1 if the D numbers are a sample, and one wants the variance of all the numbers from which it was
# taken. Here there are no others. Because we divide by D, $\hat{x}$ has length $\sqrt{D}$ for every $x$, if
# we neglect ε.
#
# `torch.std` divides by D − 1 by default. Its result is larger by 15.5 % for D = 4, and by .1 % for D = 512,
# where nobody would notice this mistake.
#
# **The variance gets an extra ε under the root.** If all D numbers of a token are equal, the variance is 0,
# and without ε we would compute 0/0. For all other tokens, ε should have no effect. But ε matters if the
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
# So a change of $x$ along (1, …, 1) or along $x$ has almost no effect on $\hat{x}$. The vector $x - m$ is a
# combination of the two: $x$, minus $m$ times (1, …, 1). In the backward pass we will find the directions (1,
# …, 1) and $x - m$ again.
#
# **Your turn.** In the terminal, try `!layer_norm(np.array([3.0, 1.0]), 1.0, 0.0)[0]`. Then replace the two
# numbers by any others. Which results are possible?
#
# The figure shows standard deviations in our translator. Its norms stand *before* the sublayers, not after
# the sums (lesson 8.4, `08_4_norm_before_or_after`). So the sums grow from layer to layer, but each sublayer
# still reads normalized vectors.

# %% tags=["plot"]
run = running_example()
rstd = run.values["encoder.0.norm1.rstd"], run.values["encoder.norm.rstd"]  # (S, 1)
deviations = [1 / factors[:, 0] for factors in rstd]
figure = score_bars(deviations, [run.source] * 2, ["first norm", "last norm"], decimals=1)
caption = "Our sentence in the translator's encoder: the standard deviation of each token"
show_figure(figure, "08_1_running", caption)

# %% [markdown]
# ## What the source documents say
#
# > - **ε** is 10⁻⁸ in the demo of *一步步解析Attention is All You Need!*, 10⁻⁶ in *The components of the
# >   Transformer*, and 10⁻⁵ here and in PyTorch. The paper gives no value. The output above shows when it
# >   matters: when the standard deviation is about √ε or smaller.

# %% [markdown]
# ## Summary
#
# - Layer norm treats each token separately. It uses only the D numbers of this token.
# - It subtracts their mean and divides by their standard deviation, so $\hat{x}$ has mean 0 and variance 1.
# - The gain and the bias are learned. They have D numbers each, and all tokens share them.
# - The sum in the variance is divided by D, and an ε under the root prevents a division by 0.
# - Adding a number to $x$ does not change $\hat{x}$. Multiplying $x$ by a positive number hardly changes it.

# %% [markdown]
# ## Questions
#
# **Question.** All D numbers of a token are equal to 5. What are $\hat{x}$ and $y$?
#
# <details><summary>Answer</summary>
# The mean is 5, so all numbers $x_i - m$ are 0. The denominator is $\sqrt{0 + \varepsilon}$, which is not 0.
# So $\hat{x} = 0$, and $y$ is equal to the bias.
# </details>
#
# **Question.** How many parameters does a layer norm have for D = 512? Does the number depend on the length
# of the sentence?
#
# <details><summary>Answer</summary>
# It has 2 · 512 = 1024 parameters, the gain and the bias. The number does not depend on the length, because
# all tokens share them.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 8` lists the exercises of this chapter. The gradient checker grades
# the backward passes.
#
# - `npformer exercise start layer-norm`: write the forward pass of layer normalization. It must also be right
#   for rows whose numbers are almost equal.
# - By hand: compute m, v and x̂ of x = (2, 4, 6, 8) with ε = 0. Then compute y with the gain 2 and the
#   bias 1 in every component.
# - Read how a real model normalizes a token: run `npformer explore --model en-de "A dog runs." --open`, and
#   replace the end of the address, from `#` on, by `#step=encoder.0.norm1.xhat`.
#
# **Next**: lesson 8.2 (`08_2_the_backward_pass_of_layer_norm`), the backward pass of layer norm.

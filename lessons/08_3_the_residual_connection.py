# %% [markdown]
# # 8.3 · The residual connection
#
# *About 30 minutes. You need: layer norm forward and backward (lessons 8.1, `08_1_layer_norm`, and 8.2,
# `08_2_the_backward_pass_of_layer_norm`), the linear layer (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - write a residual connection, forward and backward;
# - name the two paths of its gradient;
# - explain where dropout is applied, and write its backward pass.
#
# `each layer: x → attention → [ADD & NORM] → feed-forward → [ADD & NORM] → y`

# %%
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional import dropout
from npformer.functional.linear import linear, linear_backward
from npformer.functional.norm import layer_norm, layer_norm_backward
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.nn import AddNorm, Context, Dropout, LayerNorm, Linear
from npformer.nn.module import Module
from npformer.plots import Grid, Step, cell_product, curves, gradient_flow

rng = np.random.default_rng(8)
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
dy = rng.standard_normal((2, 3, 4))  # (B, T, D)

# %% [markdown]
# ## Why a sum?

# %% tags=["plot"]
layout = """x  .  u  y
            .  h  .  ."""
steps = {
    "h": Step("f(x)", ["x"]),
    "u": Step("x + h", ["x", "h"]),
    "y": Step("norm", ["u"]),
}


def drawn(arrays, gradients=None):
    """Draw a residual connection for the first sentence."""
    values = {name: array[0] for name, array in arrays.items()}
    given = {name: gradient[0] for name, gradient in (gradients or {}).items()}
    shown = dict.fromkeys(arrays) | given if given else None
    return gradient_flow(layout, values, steps, shown, axes=dict.fromkeys(arrays, "T D"))


h, _ = Linear(4, 4, rng=np.random.default_rng(0), dtype=np.float64).forward(x)
arrays = {"x": x, "h": h, "u": x + h, "y": layer_norm(x + h, np.ones(4), np.zeros(4))[0]}
show_figure(drawn(arrays), "08_3_forward", "Forward: x takes two paths to the sum u")

# %% [markdown]
# If every layer replaced its input, each layer would have to learn to pass on all information that later
# layers need. This makes deep networks hard to train. He et al. (2015) solved the problem with a sum.
#
# ## The residual connection
#
# A **residual connection** adds the input of a sublayer to its output. So a sublayer needs to compute only a
# change of $x$, and the information in $x$ is kept. In the paper, the norm follows:
#
# $$u = x + f(x), \qquad y = \mathrm{norm}(u)$$
#
# So $x$ is used twice. It goes through the sublayer $f$, and it also goes directly to the sum. We call these
# the **sublayer path** and the **direct path**.
#
# The backward pass follows two rules of lesson 0.2. A sum passes its gradient unchanged to both terms. And an
# array that is used twice gets the sum of two gradients:

# %% tags=["plot"]
caption = "Backward: dx is the sum of the direct path and the sublayer path"
show_figure(drawn(arrays, {"y": dy}), "08_3_backward", caption)

# %% [markdown]
# In the package the class `AddNorm` computes the sum and the norm. Its `forward` takes $x$ and $h = f(x)$. It
# also takes a `Context`, which says whether the pass belongs to training, where dropout (see below) is
# applied. In the next cell the sublayer is a linear layer. The package's encoder and decoder layers do the
# same as `forward` and `backward` in this cell, once for each of their sublayers.

# %%


class PostNormCache(NamedTuple):
    f: tuple
    norm: tuple


class PostNormLinear(Module):
    """A linear layer f, followed by "add & norm": y = norm(x + dropout(f(x)))."""

    def __init__(self):
        self.f = Linear(4, 4, rng=np.random.default_rng(0), dtype=np.float64)
        self.norm = AddNorm(4, dropout=0.2, dtype=np.float64)

    def forward(self, x, *, train=False, rng=None):
        h, f_cache = self.f.forward(x)
        y, norm_cache = self.norm.forward(x, h, Context(train, rng))  # norm(x + dropout(h))
        return y, PostNormCache(f_cache, norm_cache)

    def backward(self, dy, cache):
        # y = norm(x + dropout(h)): the direct path gets dx, and the sublayer path dh
        dx, dh = self.norm.backward(dy, cache.norm)
        # h = f(x)
        return dx + self.f.backward(dh, cache.f)


# %% [markdown]
# Now we write the same calculation ourselves, and compare.

# %%
model = PostNormLinear()
f, norm = model.f, model.norm
h, f_cache = linear(x, f.weight.value, f.bias.value)
y, norm_cache = layer_norm(x + h, norm.gain.value, norm.bias.value)
du, _, _ = layer_norm_backward(dy, norm_cache)
through, _, _ = linear_backward(du, f_cache)
dx = du + through

# %% tags=["plot"]
figure = drawn(arrays, {"y": dy, "u": du, "h": du, "x": dx})
show_figure(figure, "08_3_dx", "du and dh are equal, and dx is the sum of two gradients")

# %% tags=["check"]
y_package, caches = model.forward(x)
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dx, model.backward(dy, caches), rtol=1e-9)
print("the sum of both paths is the package's dx")

# %% [markdown]
# What happens if the backward pass forgets one of the two paths? A model with this mistake may still learn,
# so you would hardly notice it. The next cell forgets one path at a time, and then takes the correct backward
# pass. The checks include dropout. They use the same seed at every evaluation, so that its random numbers do
# not change.

# %%


class ForgetsDirect(PostNormLinear):
    def backward(self, dy, cache):
        _, dh = self.norm.backward(dy, cache.norm)
        return self.f.backward(dh, cache.f)


class ForgetsSublayer(PostNormLinear):
    def backward(self, dy, cache):
        dx, dh = self.norm.backward(dy, cache.norm)
        self.f.backward(dh, cache.f)
        return dx


for layer_class in (ForgetsDirect, ForgetsSublayer):
    wrong = gradcheck(layer_class(), x, train=True, rng=7).failures[0]
    print(layer_class.__name__, "is wrong in", wrong.tensor)
    assert wrong.tensor == "x"
report = gradcheck(model, x, train=True, rng=7)
print(report)

# %% [markdown]
# The next cell has the other order, with the norm *before* the sublayer. Our translator has this order, too.

# %%


class PreNormCache(NamedTuple):
    norm: tuple
    f: tuple
    dropout: np.ndarray | None


class PreNormLinear(Module):
    """The same with the norm before the linear layer: y = x + dropout(f(norm(x)))."""

    def __init__(self):
        self.norm = LayerNorm(4, dtype=np.float64)
        self.f = Linear(4, 4, rng=np.random.default_rng(0), dtype=np.float64)
        self.dropout = Dropout(0.2)

    def forward(self, x, *, train=False, rng=None):
        h, norm_cache = self.norm.forward(x)
        h, f_cache = self.f.forward(h)
        h, mask = self.dropout.forward(h, Context(train, rng))
        return x + h, PreNormCache(norm_cache, f_cache, mask)

    def backward(self, dy, cache):
        # h = dropout(f(norm(x)))
        dh = self.dropout.backward(dy, cache.dropout)
        dh = self.f.backward(dh, cache.f)
        # y = x + h: the direct path gets dy itself
        return dy + self.norm.backward(dh, cache.norm)


# %% tags=["check"]
assert gradcheck(PreNormLinear(), x, train=True, rng=7).ok
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
# In training, **dropout** sets numbers chosen at random to 0, each with probability $p$. The others are
# divided by $1 - p$, so that each number's mean over many draws is unchanged. Dropout makes the model less
# dependent on single numbers. In formulas:
#
# $$y = \mathrm{norm}(x + \mathrm{dropout}(f(x)))$$
#
# $$\mathrm{dropout}(h) = h \odot \mathrm{mask}, \qquad \mathrm{mask}_i = 0\ \mathrm{or}\ \frac{1}{1 - p}$$

# %% [markdown]
# ⊙ multiplies entry by entry. The mask is drawn once, and then it is a constant. If $du$ is the gradient of
# the sum, then $dh = du \odot \mathrm{mask}$: where the mask is 0, the gradient is 0 too. Dropout is part of
# the sublayer path. The direct path has no dropout, so a token's vector is never lost.

# %%
h = rng.standard_normal((2, 3, 4))  # (B, T, D) the output of a sublayer
dropped, dropout_mask = dropout(h, 0.1, np.random.default_rng(3))
print("the values in dropout_mask:", np.unique(dropout_mask))

# %% tags=["check"]
slow = np.zeros_like(h)
for at in np.ndindex(h.shape):
    slow[at] = 0 if dropout_mask[at] == 0 else h[at] / 0.9
assert_allclose(dropped, slow, rtol=1e-12)

# %% tags=["plot"]
named = {"h": h[0], "mask": dropout_mask[0], "dropout(h)": dropped[0]}
cells = [Grid(a, name, "x", numbers=True, shade=True) for name, a in named.items()]
figure = cell_product([cells[0], "⊙", cells[1], "=", cells[2]])
caption = "Dropout with p = 0.1 sets some numbers to 0, and divides the others by 0.9"
show_figure(figure, "08_dropout", caption)

# %% [markdown]
# ## A deep stack learns, or does not
#
# What are residual connections good for? We stack 24 layers, each of which computes $\tanh(x W)$, once
# without and once with a direct path. The task is to sort eight numbers.

# %%
numbers = rng.standard_normal((64, 8))  # (N, D)


def train(direct):
    """Return the losses of 200 steps. `direct` is 1 with a direct path, and 0 without."""
    weights, losses = list(0.2 * np.random.default_rng(8).standard_normal((24, 8, 8))), []
    for _ in range(200):
        x, caches = numbers, []
        for w in weights:
            h = np.tanh(x @ w)
            caches.append((x, h))
            x = direct * x + h
        error = x - np.sort(numbers)
        losses.append((error**2).mean())
        dx = 2 * error / error.size
        for w, (before, h) in zip(weights[::-1], caches[::-1], strict=True):
            dproduct = dx * (1 - h * h)
            dx = direct * dx + dproduct @ w.T
            w -= 0.4 * before.T @ dproduct
    return losses


losses_without, losses_with = train(0), train(1)
print(f"without a direct path {losses_without[0]:.3f} → {losses_without[-1]:.3f}")
print(f"with a direct path   {losses_with[0]:.3f} → {losses_with[-1]:.3f}")

# %% tags=["check"]
assert losses_without[0] - losses_without[-1] < 0.01
assert losses_with[-1] < 0.5

# %% [markdown]
# Without the direct path, the signal and its gradient become smaller in each layer, and nothing is learned.
# With the direct path, the loss begins higher, because the sum of 24 layers is large. But this loss falls far
# below the other one.
#
# The figure shows our translator. Its norms stand before the sublayers, so nothing normalizes the sums, and
# $x$ grows. The gradient passes from right to left, and its length grows only from .6 to 1.

# %% tags=["plot"]
run = running_example()
sums = ["source.tokens.y", *(f"encoder.{n}.add{k}.sum" for n in range(4) for k in (1, 2))]
sizes = np.array(
    [
        [np.linalg.norm(arrays[name], axis=-1).mean() for name in sums]
        for arrays in (run.values, run.gradients)
    ]
)
names = ["length of x", "length of dx"]
axis_names = {"xlabel": "residual connections passed", "ylabel": "length / length at 0"}
figure = curves(sizes / sizes[:, :1], range(9), labels=names, **axis_names)
caption = "Our sentence, encoder: x grows from 1 to 6.4; dx, from right to left, from .6 to 1"
show_figure(figure, "08_3_running", caption)

# %% tags=["check"]
assert_allclose(sizes[:, -1] / sizes[:, 0], [6.4, 0.6], atol=0.05)

# %% [markdown]
# ## What the source documents say
#
# > - In *一步步解析Attention is All You Need!*, the sum and the norm are inside the functions of attention
# >   and of the feed-forward network. The code of the norm is not shown.
# > - **Dropout** is applied to the output of each sublayer in the paper and in *The components of the
# >   Transformer*. *一步步解析Attention is All You Need!* applies it only to the attention weights and the
# >   embeddings. The code of *图解transformer* applies it to the attention weights.

# %% [markdown]
# ## Summary
#
# - A residual connection computes $x + f(x)$. The sublayer $f$ only has to compute a change of $x$.
# - Backward, $x$ gets two gradients: one from the direct path, and one from the sublayer path.
# - The gradient check finds a backward pass that forgets one of the two paths.
# - Dropout sets random numbers to 0 during training and divides the others by $1 - p$.
# - It is applied to the output of the sublayer. The direct path has no dropout.

# %% [markdown]
# ## Questions
#
# **Question.** All weights and biases of a sublayer are 0, so $f(x) = 0$ for every $x$. What is $dx$?
#
# <details><summary>Answer</summary>
# The sublayer path contributes 0, because the output of $f$ does not depend on $x$. The direct path remains:
# $dx = du$, the gradient after the backward pass of the norm.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 8` lists the exercises of this chapter.
#
# - `npformer exercise start residual`: write the forward pass of a residual connection with the norm after
#   the sublayer, and with the norm before it.
# - `npformer exercise start residual-backward`: write the backward pass of a residual connection with the
#   norm after the sublayer, and with the norm before it. In both, the gradients of two paths are added.
# - `npformer exercise start dropout-backward`: write the backward pass of dropout. Where the output was set
#   to 0, the gradient is 0.
# - By hand: let x be a number, and let each of three layers compute x + w x, without a norm. Show that the
#   derivative of the output is (1 + w)³, and multiply it out into eight products. Each product belongs to one
#   path through the three layers. How many paths pass through two of the three sublayers?
# - See both paths of the gradient in a real model: run `npformer explore --model en-de "A dog runs." --open`,
#   and replace the end of the address, from `#` on, by
#   `#direction=backward&step=encoder.0.add1.sum`.
# - On paper: dropout with p = 0.2 is applied to h = (4, −8, 0). Which values can each entry have?
#
# **Next** on the main route: lesson 9.1 (`09_1_the_feed_forward_network`), the network that follows attention
# in every layer. Off the route: lesson 8.4 (`08_4_norm_before_or_after`), what the norm and the direct path
# do for the gradient in a stack of 24 layers.

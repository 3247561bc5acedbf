# %% [markdown]
# # 8.4 · Norm before or after
#
# *About 30 minutes. You need: layer norm and its backward pass (lessons 8.1, `08_1_layer_norm`, and 8.2,
# `08_2_the_backward_pass_of_layer_norm`), the direct path and the sublayer path (lesson 8.3,
# `08_3_the_residual_connection`).*
#
# **After this lesson you can**
#
# - explain the difference between post-norm and pre-norm, forward and backward;
# - say what the norm does for the gradient in a stack of 24 layers, and what the direct path does;
# - explain why pre-norm needs one more norm at the top.
#
# `each layer: x → attention → [ADD & NORM] → feed-forward → [ADD & NORM] → y`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer.functional.norm import layer_norm
from npformer.learn.course import show_figure
from npformer.models.transformer import Encoder, TransformerConfig
from npformer.nn import AddNorm
from npformer.plots import Step, curves, gradient_flow

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Before or after
#
# There are two places for the norm of a residual connection:

# %% tags=["plot"]
same = np.random.default_rng(0)
x, w = same.standard_normal((4, 6)), same.standard_normal((6, 6))
ones, zeros = np.ones(6), np.zeros(6)
post = {"x": x, "f": x @ w, "u": x + x @ w, "y": layer_norm(x + x @ w, ones, zeros)[0]}
n, _ = layer_norm(x, ones, zeros)
pre = {"x": x, "n": n, "f": n @ w, "y": x + n @ w}
post_steps = {
    "f": Step("sublayer", ["x"]),
    "u": Step("x + f", ["x", "f"]),
    "y": Step("norm", ["u"]),
}
pre_steps = {
    "n": Step("norm", ["x"]),
    "f": Step("sublayer", ["n"]),
    "y": Step("x + f", ["x", "f"]),
}
axes = dict.fromkeys("xnfuy", "T D")
figure = gradient_flow("x . u y \n . f . .", post, post_steps, dict.fromkeys(post), axes=axes)
show_figure(figure, "08_4_post", "Post-norm: every path from dy to dx goes through the norm")
figure = gradient_flow("x . . y \n . n f .", pre, pre_steps, dict.fromkeys(pre), axes=axes)
show_figure(figure, "08_4_pre", "Pre-norm: dy reaches dx on a path without a norm")

# %% [markdown]
# The paper normalizes the sum. This is called **post-norm**. *Attention机制详解（二）* shows a later version
# of the authors' own code. It normalizes the input of the sublayer, and once more the output of the whole
# stack. This is called **pre-norm**. Let $J$ be the Jacobian of $f$, so that the backward pass of $f$
# multiplies by $J^\top$. Let $N$ stand for the backward pass of the norm:
#
# $$\begin{aligned}
# \mathrm{post:} \quad y &= \mathrm{norm}(x + f(x)) & \quad dx &= du + J^\top du, \quad du = N(dy) \\
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
# In post-norm, each norm divides the gradient by the standard deviation of $x + f(x)$. After a norm, $x$ has
# the standard deviation 1. If $f(x)$ is independent of $x$ and also has the standard deviation 1, this is a
# division by about $\sqrt{2}$.
#
# We measure the effect in a stack of 24 encoder layers before training. The sizes are a d_model of 64, 4
# heads, and ten tokens in each sentence. There are five variants:
#
# - post-norm and pre-norm;
# - three changed forms of post-norm: without the direct path, without the norm, and without both.
#
# The last three show what each part does. The class `Variant` takes the place of `AddNorm` in a layer. It
# contains post-norm and these variants.

# %%


class Variant(AddNorm):
    """y = norm(direct · x + h), where h = f(x), or the same without the norm."""

    direct, normed = 1, True  # direct is 0 for a sublayer without the direct path

    def forward(self, x, h, context=None):
        x = self.direct * x
        return super().forward(x, h) if self.normed else (x + h, None)

    def backward(self, dy, cache):
        dx, dh = super().backward(dy, cache) if self.normed else (dy, dy)
        return self.direct * dx, dh


def stack_of_24(norm="post", direct=1, normed=True):
    """A small encoder. All of its residual connections are of one kind."""
    sizes = {"d_model": 64, "d_ff": 256, "n_heads": 4, "n_layers": 24}
    config = TransformerConfig(**sizes, dropout=0.0, norm=norm, final_norm=norm == "pre")
    encoder = Encoder(config, rng=np.random.default_rng(0), dtype=np.float64)
    if norm == "pre":
        return encoder
    for layer in encoder.layers:
        layer.norm1, layer.norm2 = Variant(64, dtype=np.float64), Variant(64, dtype=np.float64)
        for variant in (layer.norm1, layer.norm2):
            variant.direct, variant.normed = direct, normed
    return encoder


# %% [markdown]
# The backward pass begins with a gradient of length 1 at *one token*, the first token of each of 16
# sentences. All other gradients are 0. After each layer we measure two numbers:
#
# - the **length** of the gradient (the median of the 16 sentences);
# - the **share** of the first token: the squared length of its gradient, divided by the squared length of the
#   gradient of all ten tokens.

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
passed = np.arange(len(stacks["f(x)"][0]))  # 0 to 24
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
# $x + f(x)$ is larger than $x$, and the gradient grows from layer to layer in the same way. With a norm, in
# *either* place, all lengths are between .15 and 1.5. So **the norm keeps the length of the gradient**. It
# does this even without the direct path.
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
# **The direct path keeps the tokens distinct.** The place of the norm decides through how many layers this
# works. In post-norm the share is .92 after one layer, .26 after six layers as in the paper, and .1 after
# twelve. In pre-norm it is .99, .95 and .86, and .23 after 24 layers.

# %% [markdown]
# **Question.** Does this prove that six layers with post-norm cannot be trained?
#
# <details><summary>Answer</summary>
# No. The paper trained six such layers, with a warm-up of the learning rate (lesson 13.3,
# `13_3_schedules_and_gradient_clipping`). We measured only the state before training, when the attention
# weights are almost equal.
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
no_norm, post, pre, no_direct, neither = stacks.values()
assert_allclose([neither[0][24] * 1e7, no_norm[0][24] / 1e7], 2, atol=0.5)
assert all(((found[0] > 0.15) & (found[0] < 1.5)).all() for found in normed.values())
assert_allclose(post[1][[1, 6, 12]], [0.92, 0.26, 0.1], atol=0.01)
assert_allclose(pre[1][[1, 6, 12, 24]], [0.99, 0.95, 0.86, 0.23], atol=0.01)
assert_allclose(no_direct[1][1], 0.1, atol=0.001)
assert_allclose([top.std(), pre[0][0]], [4.6, 1 / 4.6], rtol=0.03)

# %% [markdown]
# For this reason, a stack with pre-norm has one more norm at its top. `TransformerConfig(norm="pre")` refuses
# to work without it. This norm divides the gradient by 4.6, so the curve of pre-norm begins at 1/4.6 = .22.

# %% [markdown]
# ## What the source documents say
#
# > - **The place of the norm.** After the sum: the paper, *一步步解析Attention is All You Need!*,
# >   *图解transformer* and *The components of the Transformer*. Before the sublayer, and once more at the
# >   top: the code in *Attention机制详解（二）* (`layer_preprocess`, `layer_postprocess`). The text beside
# >   it describes the paper's Add & Norm. npformer has both, with `norm="post"` by default. It also takes
# >   sequences of operations: `norm="n-da"` normalizes before the sublayer, and applies
# >   dropout and adds $x$ after it.
# > - *The components of the Transformer* says that gradients flow smoothly only with residual connections. In
# >   our measurement, the norm keeps the length of the gradient. The residual connection keeps the gradients
# >   of the tokens distinct.

# %% [markdown]
# ## Summary
#
# - Post-norm normalizes the sum $x + f(x)$. Pre-norm normalizes the input of the sublayer.
# - With neither direct path nor norm, almost nothing of the gradient is left after 24 layers. With the
#   direct path and no norm, it becomes very large.
# - The norm keeps the length of the gradient near 1, before or after the sublayer.
# - The direct path keeps the gradients of the tokens distinct, for more layers in pre-norm than in post-norm.
# - In pre-norm the numbers grow from layer to layer, so one more norm follows at the top.

# %% [markdown]
# ## Questions
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
# `npformer exercise list 8` lists the exercises of this chapter. This lesson has none that are graded. Its
# measurement can be repeated with other stacks:
#
# - In a copy of this file, change `n_layers` to 48, and add 48 to the numbers of layers in the two loops that
#   print. Predict first which of the five variants changes most. (The last check then fails, because its
#   numbers belong to 24 layers.)
# - By hand: let $f(x) = wx$ for a number $x$, without a norm. Which factor multiplies the gradient in 24
#   layers with the direct path, and which without it? Compute both for w = .1.
#
# **Next**: lesson 8.5 (`08_5_layer_norm_and_batch_norm`), why the Transformer does not use batch norm.

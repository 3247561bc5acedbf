# %% [markdown]
# # 9.1 · The feed-forward network
#
# *About 30 minutes. You need: the linear layer and its backward pass (lesson 0.2,
# `00_2_forward_and_backward`), attention (lesson 5.1, `05_1_scaled_dot_product_attention`).*
#
# **After this lesson you can**
#
# - build the feed-forward network and its backward pass;
# - show that it treats each token separately;
# - say why it needs a nonlinear function.
#
# `each layer: x → attention → add & norm → [FEED-FORWARD] → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.nn import FeedForward
from npformer.plots import Step, cell_grid, gradient_flow, value_map

rng = np.random.default_rng(9)

# %% [markdown]
# ## Why another layer after attention?
#
# Attention only *mixes*. The output of a head is a weighted average of values, and each value is a linear
# function of one token. So attention collects information from several tokens. But for given attention
# weights it is linear.
#
# The **feed-forward network** follows attention in every layer. It computes a nonlinear function of each
# token's vector. Its two matrices, (D, 4D) and (4D, D), have 8 D² weights. The four of attention have 4 D².
# So the feed-forward network has two thirds of an encoder layer's weights.

# %% tags=["plot"]
same = np.random.default_rng(0)
arrays = {"x": same.standard_normal((5, 4))}  # (T, D)
arrays["h"] = arrays["x"] @ same.standard_normal((4, 8))  # (T, F)
arrays["a"] = np.maximum(0, arrays["h"])
arrays["y"] = arrays["a"] @ same.standard_normal((8, 4))
steps = {
    "h": Step("x w1 + b1", ["x"]),
    "a": Step("max(0, h)", ["h"]),
    "y": Step("a w2 + b2", ["a"]),
}
axes = {"x": "T D", "h": "T F", "a": "T F", "y": "T D"}
caption = "The feed-forward network: each row, a token, becomes wide and then narrow again"
show_figure(gradient_flow("x h a y", arrays, steps, axes=axes), "09_1_network", caption)

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
# becomes narrow again. The picture has D for d_model and F for d_ff. Its white cells are 0.

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
        for j in range(16):  # the units
            h = b1[j]
            for i in range(4):
                h += x[b, t, i] * w1[i, j]
            if h > 0:  # otherwise the unit contributes nothing
                for i in range(4):
                    slow[b, t, i] += h * w2[j, i]

h = x @ w1 + b1  # (B, T, F)
a = np.where(h > 0, h, 0)  # (B, T, F)
y = a @ w2 + b2  # (B, T, D)
print(f"{(a == 0).mean():.0%} of the entries of a are 0")

# %% tags=["check"]
assert_allclose(y, slow, rtol=1e-9)

# %% tags=["plot"]
figure = cell_grid(
    a[0], rows=words, columns=[str(j) for j in range(16)], shade=True, numbers=True, decimals=1
)
caption = "The array a for one sentence: one row for each token, and one column for each unit"
show_figure(figure, "09_active", caption)

# %% [markdown]
# In the package, the layer `FeedForward` consists of two linear layers and an activation. Its cache contains
# the caches of the linear layers (lesson 0.2), and the output $a$ of the activation. (`factor` belongs to
# other activations.) The second linear layer has $a$ as its input, so its cache contains $a$ as `outer.x`.

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
# None of the three steps $h$, $a$ and $y$ contains a sum over the tokens. So the network treats each token
# separately. This has three consequences:
#
# 1. A token alone gives the same output as the token in its sentence.
# 2. If the tokens are permuted, the outputs are permuted in the same way.
# 3. If one token changes, only its own output changes.
#
# Attention has only the second of these properties: its output for a token depends on all tokens.

# %% tags=["check"]
attend = MultiHeadAttention(4, 1, dtype=np.float64)
changed = x.copy()
changed[:, 4] += 1  # another token in place of "tired"
order = rng.permutation(5)
properties = {}
for name, part in (("feed-forward", layer), ("attention", attend)):
    whole = part.forward(x)[0]  # (B, T, D)
    alone = np.allclose(part.forward(x[:, 1:2])[0], whole[:, 1:2])
    permuted = np.allclose(part.forward(x[:, order])[0], whole[:, order])
    rows = (abs(part.forward(changed)[0] - whole) > 1e-9).any((0, 2))  # (T,)
    different = [word for word, row in zip(words, rows, strict=True) if row]
    properties[name] = alone, permuted, len(different)
    print(f"{name:13} alone the same: {alone}, permuted alike: {permuted}, changed:", *different)

# %% tags=["check"]
assert properties == {"feed-forward": (True, True, 1), "attention": (False, True, 5)}

# %% [markdown]
# ## Why the activation is necessary
#
# Without the activation, two linear layers would follow each other directly, and be equal to a single one:
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
# The backward pass begins with $dy$, of shape (B, T, D).
#
# **First, y = a W₂ + b₂.** This is the linear layer of lesson 0.2. The sums run over all tokens $n$ of all
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


def flat(array):
    """Return the tokens of all sentences as the N = B · T rows of one matrix."""
    return array.reshape(-1, array.shape[-1])


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
# A unit that is inactive for a token contributes nothing to its output. Its weights, a column of $W_1$ and a
# row of $W_2$, receive no gradient from this token.
#
# So for one token, only the active units remain. They form one linear layer with a bias. The cell shows this
# for "animal".

# %%
on = h[0, 1] > 0  # (F,) the units that are active for "animal"
linear_part = w1[:, on] @ w2[on]  # (D, D)
linear_output = x[0, 1] @ linear_part + (b1[on] @ w2[on] + b2)  # (D,)
print(f"{on.sum()} of 16 units are active")
print("largest difference from the network:", abs(linear_output - y[0, 1]).max())

# %% tags=["check"]
assert_allclose(linear_output, y[0, 1], rtol=1e-9)
assert_allclose(dx[0, 1], dy[0, 1] @ linear_part.T, rtol=1e-9)

# %% tags=["plot"]
active = running_example().values["encoder.0.feed_forward.hidden.activated"]  # (S, F)
figure = value_map(active, xlabel="unit", ylabel="", label="activation")
figure.axes[0].set_yticks(range(len(active)), running_example().source)
figure.axes[1].set_ylim(0, active.max())
caption = "Our sentence in the trained translator: only 3 % of the units of a layer are active"
show_figure(figure, "09_1_running", caption)

# %% tags=["check"]
assert_allclose((active > 0).mean(), 0.03, atol=0.005)

# %% [markdown]
# ## Is it right?
#
# The gradient check of lesson 0.2 tests the layer of the package.

# %%
report = gradcheck(layer, x)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## It learns what "not" does
#
# The model of lesson 0.0 (`00_0_learn_something_in_fifteen_minutes`) added one weight for each word. With the
# reviews "not good film" and "not bad film" its loss stopped at 0.667. A feed-forward network reads the same
# rows of zeros and ones. It returns seven numbers, and the first is the number of stars.

# %% tags=["check"]
vocabulary = ["good", "bad", "great", "boring", "film", "music", "not"]
reviews = ["good film", "bad film", "good music", "bad music", "great film", "boring music"]
reviews += ["not good film", "not bad film"]
counts = np.array([[float(word in review.split()) for word in vocabulary] for review in reviews])
stars = np.array([1.0, -1, 1, -1, 2, -2, -1, 1])  # (N,)

# %%
network, losses = FeedForward(7, 16, rng=rng, dtype=np.float64), []
for _ in range(400):
    y, cache = network.forward(counts)  # (N, 7)
    e = y[:, 0] - stars
    losses.append((e * e).mean())
    network.zero_grad()
    network.backward(np.outer(2 * e / 8, np.eye(7)[0]), cache)  # the other outputs get 0
    for parameter in network.parameters():
        parameter.value -= 0.1 * parameter.grad
print(f"loss {losses[0]:.3f} → {losses[-1]:.6f}")

# %% tags=["check"]
assert losses[-1] < 1e-3

# %% [markdown]
# The loss falls to almost 0. The first word of the vocabulary is "good", and the seventh is "not". So a unit
# such as $\max(0, x_1 + x_7 - 1)$ is active only if both occur.

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* names the network and draws it once for each token, which is correct. It gives no
# >   formula.
# > - *The components of the Transformer* has two dense layers, the first with ReLU, as in equation (2).
# > - The paper applies dropout to the output of the sublayer. tensor2tensor, the authors' code, also applies
# >   it to a. In npformer the option is called `feed_forward_dropout` in `TransformerConfig`, and `dropout`
# >   in `FeedForward`.

# %% [markdown]
# ## Summary
#
# - The feed-forward network is $\max(0, xW_1 + b_1)W_2 + b_2$, applied to each token separately.
# - In the paper, the inner width F is four times the width D of the model.
# - Without the activation, the two linear layers would be equal to a single one.
# - Backward, the ReLU passes on the gradient of active units, and 0 for the others.
# - For one token, the active units form a linear layer. Other tokens have other active units.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the cache of a ReLU need only its output?
#
# <details><summary>Answer</summary>
# The derivative is 1 where h > 0 and 0 elsewhere. The output a is positive exactly where h is positive.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 9` lists the exercises of this chapter. The gradient checker grades the
# backward passes.
#
# - `npformer exercise start relu-backward`: write the backward pass of the ReLU. The cache is y, and one
#   comparison is enough.
# - `npformer exercise start feed-forward`: write the forward pass.
# - `npformer exercise start feed-forward-backward`: write the backward pass of the feed-forward network. It
#   has four steps in reverse order, and one of them belongs to dropout.
# - By hand: compute max(x₁, x₂) with three units. (Write it as x₂ plus one ReLU, and x₂ as two ReLUs.)
# - See a feed-forward network in a real model: run `npformer explore --model en-de "A dog runs." --open`, and
#   replace the end of the address, from `#` on, by `#step=encoder.0.feed_forward.inner.product`.
#
# **Next** on the main route: lesson 10.1 (`10_1_one_encoder_layer`), attention and this network together in
# one layer. Off the route: lesson 9.2 (`09_2_activations_and_dead_units`), other activations, and units that
# stop learning.

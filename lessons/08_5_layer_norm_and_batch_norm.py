# %% [markdown]
# # 8.5 · Layer norm and batch norm
#
# *About 20 minutes. You need: layer norm and its backward pass (lessons 8.1, `08_1_layer_norm`, and 8.2,
# `08_2_the_backward_pass_of_layer_norm`), padding (lesson 1.1, `01_1_words_to_ids`).*
#
# **After this lesson you can**
#
# - compute batch normalization, and say over which numbers it takes the mean and the variance;
# - show by a test that with batch norm a token depends on other sentences;
# - derive the effect of padding on batch norm;
# - explain why the Transformer uses layer norm.
#
# `each layer: x → attention → [ADD & NORM] → feed-forward → [ADD & NORM] → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import batch_norm, batch_norm_backward
from npformer.functional.norm import layer_norm, layer_norm_backward
from npformer.learn.course import show_figure
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(8)
eps = 1e-5

# %% [markdown]
# ## Why not batch norm?
#
# **Batch normalization** (Ioffe and Szegedy, 2015) uses the same formula along the other axes. It computes
# the mean and the variance of each of the D components over **all tokens of all sentences in the batch**:
#
# | | mean and variance over | shape of both |
# |---|---|---|
# | layer norm | the last axis of x (B, T, D) | (B, T, 1): a pair for each token |
# | batch norm | the first two axes | (D,): a pair for each component |
#
# So batch norm is the layer norm of the transposed batch: the B · T tokens take the place of the D
# components. This is true for the forward and the backward pass.

# %%
x = 1 + rng.standard_normal((4, 5, 8))  # (B, T, D) four sentences of five tokens
unit = np.ones(8), np.zeros(8)  # gain, bias
m, v = x.mean((0, 1)), x.var((0, 1))  # (D,) over all twenty tokens
y, cache = batch_norm(x, *unit)
after = abs(y.mean((0, 1))).max()
print(f"largest mean of a component: {abs(m).max():.2f}, after batch norm {after:.0e}")

# %% tags=["check"]
assert_allclose(y, (x - m) / np.sqrt(v + eps), rtol=1e-9)
dy = rng.standard_normal(x.shape)
columns, dcolumns = (a.reshape(20, 8).T for a in (x, dy))  # (D, N), N = B·T
turned, its_cache = layer_norm(columns, np.ones(20), np.zeros(20))
assert_allclose(turned.T.reshape(x.shape), y, rtol=1e-9)
dturned, _, _ = layer_norm_backward(dcolumns, its_cache)
assert_allclose(dturned.T.reshape(x.shape), batch_norm_backward(dy, cache)[0], rtol=1e-9)

# %% [markdown]
# With batch norm, the output for a token depends on the other sentences of the batch. The cell shows this in
# two ways. First it exchanges the *other* three sentences, and measures how much the first token of the first
# sentence changes. Then it starts the backward pass with a gradient at this token alone. It counts the tokens
# whose gradient is not 0.

# %%
other = np.concatenate([x[:1], 1 + rng.standard_normal((3, 5, 8))])  # the first sentence is x[0]
one_token = np.zeros_like(x)
one_token[0, 0] = rng.standard_normal(8)

norms = {
    "batch norm": (batch_norm, batch_norm_backward),
    "layer norm": (layer_norm, layer_norm_backward),
}
changes, reached = [], []
for name, (norm, backward) in norms.items():
    y, cache = norm(x, *unit)
    changes.append(abs(norm(other, *unit)[0] - y)[0, 0].max())
    reached.append(int(backward(one_token, cache)[0].any(-1).sum()))
    print(f"{name}: the token moves by {changes[-1]:.3f}, {reached[-1]:2} of 20 get a gradient")

# %% tags=["check"]
assert reached == [20, 1]
assert changes[0] > 0.5
assert changes[1] == 0

# %% tags=["plot"]
cells = []
for name, (norm, backward) in norms.items():
    lengths = np.linalg.norm(backward(one_token, norm(x, *unit)[1])[0], axis=-1)  # (B, T)
    cells.append(Grid(lengths, name, "x", numbers=True, shade=True))
figure = cell_product([cells[0], "", cells[1]])
caption = "Which tokens get a gradient from one token? (rows: sentences, columns: tokens)"
show_figure(figure, "08_reached", caption)

# %% [markdown]
# **Padding** is a second problem, because batch norm counts it as tokens. Suppose that all sentences are
# filled up with zeros, until a fraction $p$ of all rows is padding. Let $m$ and $v$ be the mean and the
# variance of the real tokens. A fraction $p$ of zeros reduces the mean to $(1 - p)\, m$, and the mean of the
# squares to $(1 - p)(v + m^2)$. The variance is the mean of the squares minus the square of the mean:
#
# $$\begin{aligned}
# \mathrm{variance} &= (1 - p)(v + m^2) - (1 - p)^2 m^2 \\
# &= (1 - p)(v + p\, m^2)
# \end{aligned}$$
#
# So the real tokens do not get mean 0 and variance 1 any more. The result depends on the length of the
# longest sentence in the batch.

# %%
for n in (0, 5, 20):
    padded = np.concatenate([x, np.zeros((4, n, 8))], 1)  # (B, T + n, D)
    p = n / (5 + n)
    by_formula = (x - (1 - p) * m) / np.sqrt((1 - p) * (v + p * m * m) + eps)
    y, of_layer = (norm(padded, *unit)[0][:, :5] for norm in (batch_norm, layer_norm))
    assert_allclose(y, by_formula, rtol=1e-9)
    assert (of_layer == layer_norm(x, *unit)[0]).all()  # equal in every bit
    print(f"padding {p:3.0%}: first token {y[0, 0, :2]}, with layer norm {of_layer[0, 0, :2]}")

# %% [markdown]
# We could exclude padding from the mean and the variance (the package's `batch_norm` takes a `mask`). The
# dependence on the other sentences would remain.
#
# **Question.** A decoder produces one token at a time. What does batch norm return for a batch that consists
# of one token?
#
# <details><summary>Answer</summary>
# The token is its own mean, and the variance is 0. So $\hat{x}$ is 0, whatever the token is.
# </details>
#
# For this reason, batch norm keeps averages of the means and variances that occur in training, and uses them
# afterwards. In the package this is the class `BatchNorm`. Layer norm needs nothing but the token itself.

# %% tags=["check"]
assert_allclose(batch_norm(x[:1, :1], *unit)[0], 0, atol=1e-12)

# %% [markdown]
# ## Check the gradient
#
# The gradient check accepts the batch norm of the package. Its cache has one `rstd` for each component.
# The cache of layer norm has one `rstd` for each token. The cache of batch norm also keeps the weight of each
# token in the mean (`share`, here 1/20), and the mean and the variance themselves.

# %%
y, cache = batch_norm(x, *unit)
show(cache)
report = gradcheck((batch_norm, batch_norm_backward), x, *unit)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# **Your turn.** In the terminal, give batch norm a batch of two tokens with
# `!batch_norm(x[:1, :2], *unit)[0]`. Which values occur, and why?

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* gives two reasons against batch norm. The first is that it needs
# >   much GPU memory. This is not so: for the backward pass it needs x̂ and D numbers, and layer norm needs
# >   x̂ and one number for each token. The second is that rare features of language make the variance of a
# >   component large. This adds to what we measured above.

# %% [markdown]
# ## Summary
#
# - Batch norm computes a mean and a variance for each component, over all tokens of the batch.
# - It is the layer norm of the transposed batch, forward and backward.
# - With batch norm, a token depends on the other sentences, and all tokens of the batch get a gradient.
# - Padding changes the mean and the variance, unless it is excluded by a mask.
# - With a single token, batch norm returns 0. Layer norm has none of these problems.

# %% [markdown]
# ## Questions
#
# **Question.** A model with batch norm translates a sentence alone, and then in a batch with others. It uses
# the mean and the variance of the batch. Are the two translations equal?
#
# <details><summary>Answer</summary>
# Not always. The mean and the variance are computed over all tokens of the batch, so the other sentences
# change the numbers of this sentence. With layer norm the two translations are equal.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 8` lists the exercises of this chapter, which belong to the earlier lessons.
#
# - By hand: half of all rows are padding (p = .5), and the real tokens have m = 0 and v = 1. Compute the
#   variance that batch norm uses. By which factor are the real tokens too large after
#   batch norm?
# - By hand: the same with m = 2 and v = 1. Compute the mean and the variance of the real tokens after batch
#   norm.
#
# **Next**: lesson 9.1 (`09_1_the_feed_forward_network`), the network that follows attention in every layer.

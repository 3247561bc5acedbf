# %% [markdown]
# # 0.2 · Forward and backward
#
# *About 30 minutes. You need: NumPy arrays, the product of two matrices, the gradients of lesson 0.0
# (`00_0_learn_something_in_fifteen_minutes`).*
#
# **After this lesson you can**
#
# - read the shapes of arrays, and predict the shape of a product and of a sum;
# - derive the gradients of a linear layer, and write them in three lines of NumPy;
# - decide what a layer has to store for its backward pass;
# - let the gradient checker find a mistake, and train the layer.
#
# `model: ids → embedding → positions → encoder → decoder → [LINEAR] → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional.linear import linear, linear_backward
from npformer.learn.course import show_figure
from npformer.plots import Grid, Step, cell_product, gradient_flow

rng = np.random.default_rng(0)

# %% [markdown]
# ## From numbers to arrays
#
# In lesson 0.0 a model learned the reviews with the gradients of six weights. The Transformer of *Attention
# Is All You Need* has 65 million weights. How can so many derivatives be written in a few lines? This lesson
# answers the question for the smallest layer.

# %% tags=["plot"]
same = np.random.default_rng(0)  # it draws the numbers of this lesson
first = {"x": same.standard_normal((6, 4)), "w": same.standard_normal((4, 5))}
first["b"] = same.standard_normal(5)
first["y"] = first["x"] @ first["w"] + first["b"]
layout = """x  y
            w  .
            b  ."""
steps = {"y": Step("x w + b", ["x", "w", "b"])}
axes = {"x": "N D", "w": "D O", "b": "O", "y": "N O"}
caption = "A linear layer: y is computed from x, w and b"
show_figure(gradient_flow(layout, first, steps, axes=axes), "00_2_layer", caption)
empty = dict.fromkeys(first)
figure = gradient_flow(layout, first, steps, empty, axes=axes)
caption = "The way back: from dy, the layer computes a gradient for each of its inputs"
show_figure(figure, "00_2_gradients", caption)

# %% [markdown]
# The layer computes $y = xW + b$ for N = 6 tokens. Each token has D = 4 numbers before the layer, and O = 5
# after it. A rectangle is an array, the letters are its axes, and the circle is the only step. A stronger
# colour means a larger absolute value. The dashed rectangles are the gradients, which are still empty. Each
# has the shape of its array.

# %% [markdown]
# ## Arrays and their shapes
#
# A Transformer reads a group of sentences at the same time: a **batch**. Each sentence consists of
# **tokens**, which are words or punctuation marks. Each token is represented by a vector.
#
# All vectors of a batch form one array with the axes B (sentences), T (tokens) and D (components). Here are
# two sentences with three tokens each.

# %%
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
print(x[0, 2])  # the vector of the third token in the first sentence

# %% [markdown]
# You need two rules of NumPy in every lesson.
#
# 1. **Matrix product.** `x @ w` treats the last two axes of each array as a matrix and multiplies these
#    matrices. All axes before them stay as they are. So (2, 3, 4) @ (4, 5) gives (2, 3, 5): the vector of
#    each of the six tokens is multiplied by the same matrix.
# 2. **Broadcasting.** When two arrays are added, NumPy compares their shapes from right to left. If an axis
#    is missing or has length 1, NumPy repeats the array along this axis. So (2, 3, 5) + (5,) adds the same
#    five numbers to each of the six tokens.

# %%
w = rng.standard_normal((4, 5))  # (D, O)
b = rng.standard_normal(5)  # (O,)
y = x @ w + b  # (B, T, O)
print(x.shape, "@", w.shape, "+", b.shape, "->", y.shape)

# %% [markdown]
# Broadcasting gives no warning when the result is not what you wanted. Suppose you want to subtract the mean
# of each row of a (3, 3) matrix from that row. The three means have shape (3,). NumPy compares from the
# right, so it subtracts one mean from each *column*. With `keepdims=True` they have shape (3, 1), and each
# mean is repeated along its own row. Only then does every row sum to 0.

# %%
square = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
print("without keepdims\n", square - square.mean(-1))  # (3, 3) - (3,)
print("with keepdims\n", square - square.mean(-1, keepdims=True))  # (3, 3) - (3, 1)

# %% [markdown]
# ## The forward pass
#
# The **forward pass** computes the output of a layer from its input. A **linear layer** multiplies its input
# by a **weight matrix** and adds a vector, the **bias**.
#
# We write the layer for single numbers first. Let n count all N = B · T tokens of the batch, i the components
# of the input, and j those of the output:
#
# $$y_{nj} = \sum_i x_{ni} w_{ij} + b_j$$
#
# The next cell computes this formula with loops. The result must equal the product above, and that of the
# package's function `linear`.

# %% tags=["check"]
slow = np.zeros((2, 3, 5))  # (B, T, O)
for sentence in range(2):
    for token in range(3):
        for j in range(5):
            slow[sentence, token, j] = b[j]
            for i in range(4):
                slow[sentence, token, j] += x[sentence, token, i] * w[i, j]
fast, cache = linear(x, w, b)
assert_allclose(slow, y, rtol=1e-12)
assert_allclose(fast, y, rtol=1e-12)
print("three computations, one result:", y[0, 0])

# %% [markdown]
# ## The loss and the gradient of an array
#
# In a network, further layers turn y into the loss L. In this lesson we replace them by a simple formula:
#
# $$L = \frac{1}{2} \sum \tanh(y)^2$$
#
# The **gradient** of an array has the same shape as the array. Each entry of the gradient is the derivative
# of L with respect to the corresponding entry of the array. In code, the gradient of `y` is always called
# `dy`. The function tanh rises from −1 to 1, and its derivative is $1 - \tanh^2$, so the chain rule gives
#
# $$dy = \tanh(y) \cdot (1 - \tanh^2(y))$$

# %%
activated = np.tanh(y)
loss = 0.5 * (activated * activated).sum()
dy = activated * (1 - activated * activated)  # (B, T, O), the shape of y
print(f"L = {loss:.4f}, dy has shape {dy.shape}")

# %% [markdown]
# ## The backward pass
#
# The **backward pass** of a layer receives dy, the gradient of its output. It returns the gradients of
# everything that the forward pass received: dx, dw and db.

# %% tags=["plot"]
figure = gradient_flow(layout, first, steps, empty | {"y": dy.reshape(6, 5)}, axes=axes)
caption = "dy has arrived; now the layer computes dx, dw and db. It has kept x and w for this"
show_figure(figure, "00_2_dy", caption)

# %% [markdown]
# ### The gradient of x
#
# Take one entry $x_{ni}$. It affects every output component of its own token n, and no output of another
# token. By the forward formula, the derivative $\partial y_{nj} / \partial x_{ni}$ of $y_{nj}$ with respect
# to $x_{ni}$ is $w_{ij}$. The chain rule adds up the contributions of all these outputs:
#
# $$
# \begin{aligned}
# dx_{ni} &= \sum_j dy_{nj} \cdot \frac{\partial y_{nj}}{\partial x_{ni}} \\
#         &= \sum_j dy_{nj} w_{ij}
# \end{aligned}
# $$
#
# This is the product of a row of dy with a row of w. A matrix product combines rows with *columns*, so w must
# be transposed: $dx = dy\, W^\top$. (In formulas a matrix has a capital letter, here W. Arrays with three
# axes keep small letters.)

# %%
dx = dy @ w.T  # (B, T, O) @ (O, D) -> (B, T, D)

# %% tags=["check"]
dx_slow = np.zeros_like(x)
for sentence in range(2):
    for token in range(3):
        for i in range(4):
            for j in range(5):
                dx_slow[sentence, token, i] += dy[sentence, token, j] * w[i, j]
assert_allclose(dx, dx_slow, rtol=1e-12)

# %% [markdown]
# ### The gradients of w and b
#
# The weight $w_{ij}$ is used by *every* token of every sentence. For token n, the derivative of $y_{nj}$ with
# respect to $w_{ij}$ is $x_{ni}$. The bias $b_j$ is added for every token, so its derivative is 1. So both
# gradients are sums over all tokens:
#
# $$
# \begin{aligned}
# dw_{ij} &= \sum_n dy_{nj} \cdot \frac{\partial y_{nj}}{\partial w_{ij}} = \sum_n x_{ni}\, dy_{nj} \\
# db_j    &= \sum_n dy_{nj} \cdot \frac{\partial y_{nj}}{\partial b_j} = \sum_n dy_{nj}
# \end{aligned}
# $$
#
# To write the first sum as a matrix product, we put all N tokens into one matrix: X (`rows`) has the shape
# (6, 4), and dY (`drows`) has (6, 5). Then $dW = X^\top dY$.

# %%
rows = x.reshape(6, 4)  # (N, D)
drows = dy.reshape(6, 5)  # (N, O)
dw = rows.T @ drows  # (D, N) @ (N, O) -> (D, O)
db = drows.sum(0)  # (O,)

# %% tags=["check"]
dw_slow, db_slow = np.zeros((4, 5)), np.zeros(5)
for n in range(6):
    for j in range(5):
        db_slow[j] += drows[n, j]
        for i in range(4):
            dw_slow[i, j] += rows[n, i] * drows[n, j]
assert_allclose(dw, dw_slow, rtol=1e-12)
assert_allclose(db, db_slow, rtol=1e-12)

# %% [markdown]
# The picture shows this product. The two matrices share the axis of the six tokens, so the product sums over
# them. The shapes help you to remember the formula: of the products of a (6, 4) and a (6, 5) matrix, only
# $X^\top dY$ has the shape (4, 5) of w.

# %% tags=["plot"]
grids = [
    Grid(rows.T, "$X^T$", "x", numbers=True, show_shape=True),
    "×",
    Grid(drows, "$dY$", "z", numbers=True, show_shape=True),
    "=",
    Grid(dw, "$dW$", "weight", numbers=True, show_shape=True),
]
show_figure(cell_product(grids), "00_dw", "dW = Xᵀ dY: each entry is a sum over the six tokens")

# %% [markdown]
# The gradient of b shows a general rule: **what the forward pass copies, the backward pass adds up.**
# Broadcasting copied b to six tokens, so db is a sum over six tokens. Conversely, a sum in the forward pass
# becomes a copy in the backward pass: if $u = y_1 + y_2$, then $dy_1$ and $dy_2$ are both $du$.
#
# ## The pair of functions and the cache
#
# The package writes every operation as a pair of functions:
#
# $$y, \mathrm{cache} = \mathrm{linear}(x, w, b)$$
#
# $$dx, dw, db = \mathrm{linear\_backward}(dy, \mathrm{cache})$$
#
# The **cache** contains the arrays that the backward pass needs. Here these are x (for dw) and w (for dx).
# Neither b nor y occurs in the three formulas, so neither is stored. Of the bias, the cache notes only
# whether there is one.

# %%
show(cache)

# %% tags=["check"]
dx_package, dw_package, db_package = linear_backward(dy, cache)
assert_allclose(dx, dx_package, rtol=1e-12)
assert_allclose(dw, dw_package, rtol=1e-12)
assert_allclose(db, db_package, rtol=1e-12)
print("dx, dw and db agree with the package")

# %% [markdown]
# ## Is it right?
#
# The package uses the same formulas as we do, so both could be wrong. An independent test measures the
# derivatives with the forward pass alone: it changes the input a little, and measures how the output changes.
# The function `gradcheck` of the package does this for each array. Lesson 0.3 (`00_3_measured_derivatives`)
# explains how.

# %%
report = gradcheck((linear, linear_backward), x, w, b)
print(report)

# %% [markdown]
# Now we make a common mistake: db becomes the mean over the tokens instead of their sum.

# %%


def averaging_backward(dy, cache):
    """Return a wrong db: a mean over six tokens."""
    dx, dw, db = linear_backward(dy, cache)
    return dx, dw, db / 6


wrong_report = gradcheck((linear, averaging_backward), x, w, b)
print(wrong_report)

# %% tags=["check"]
assert report.ok
assert wrong_report.failures[0].tensor == "bias"

# %% [markdown]
# The number in each row is a relative error: the difference from the measurement, divided by the size of the
# gradient. An error of about 1e-16 comes from rounding alone. The rows below "bias" test further properties
# (lesson 0.3). The report names the array, its first wrong entry, the wrong factor, and the line of the
# mistake. With this mistake, the training below would still work, but its loss would end at 8e-3 instead of
# 1e-7.
#
# ## The layer learns
#
# As in lesson 0.0, a training step computes the loss, the gradients, and then the updates. The target is the
# output of another linear layer, whose weights the layer has to find. The loss is now half the sum of the
# squared errors, so $dy$ is `y - target`.

# %%
w_right, b_right = rng.standard_normal((4, 5)), rng.standard_normal(5)
target = linear(x, w_right, b_right)[0]  # (B, T, O)
losses = []
for _ in range(300):
    y, cache = linear(x, w, b)  # forward
    losses.append(0.5 * ((y - target) ** 2).sum())
    dx, dw, db = linear_backward(y - target, cache)  # backward
    w, b = w - 0.05 * dw, b - 0.05 * db  # update
print(f"loss {losses[0]:.2f} → {losses[-1]:.2e}")
print(f"largest error of a weight {np.abs(w - w_right).max():.4f}")

# %% tags=["check"]
assert losses[0] > 10
assert losses[-1] < 1e-2

# %% [markdown]
# ## What the source documents say
#
# > - The four documents show forward passes only.
# > - Weights here have the shape (in, out). PyTorch's `nn.Linear`, which
# >   *图解transformer* uses, stores them as (out, in) and computes xWᵀ + b. Transpose them before you compare
# >   numbers.

# %% [markdown]
# ## Summary
#
# - A linear layer computes $y = xW + b$ for every token with the same W and b.
# - Its gradients are $dx = dy\, W^\top$, $dW = X^\top dY$, and db, the sum of dy over all tokens.
# - What the forward pass copies, the backward pass adds up.
# - The cache contains what the backward pass needs: here x and W.
# - A gradient check measures the derivatives, and names the array and the entry that are wrong.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the cache of the linear layer not contain y?
#
# <details><summary>Answer</summary>
# None of the three gradients needs it: dx needs dy and W, dW needs x and dy, and db needs only dy.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 0` lists the exercises. The gradient checker grades the backward passes.
#
# - `npformer exercise start swish-backward`: write the backward pass of the function y = x / (1 + e⁻ˣ).
# - `npformer exercise start linear-backward`: write the backward pass of a linear layer. It must work for any
#   number of axes before the last one.
#
# **Next** on the main route: lesson 1.1 (`01_1_words_to_ids`), which turns sentences into arrays of numbers.
# On the route for engineers: lesson 5.1 (`05_1_scaled_dot_product_attention`), attention. Off the routes:
# lesson 0.3 (`00_3_measured_derivatives`), derivatives measured to sixteen digits.

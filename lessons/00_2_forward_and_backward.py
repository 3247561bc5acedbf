# %% [markdown]
# # 0.2 · Forward, backward, and how to know that a gradient is right
#
# *About 30 minutes. You need: NumPy arrays, the product of two matrices, the chain rule.*
#
# **After this lesson you can**
#
# - read the shapes of arrays, and predict the shape of a product and of a sum;
# - derive the gradients of a linear layer, and write them in three lines of NumPy;
# - decide what a layer has to store for its backward pass;
# - measure a derivative to 16 digits, and use it to find a wrong gradient;
# - say which mistakes a gradient check cannot see.
#
# `model: ids → embedding → positions → encoder → decoder → [LINEAR] → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional.linear import linear, linear_backward
from npformer.learn.course import show_figure
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(0)

# %% [markdown]
# ## Why gradients?
#
# A model learns with the gradients of its weights (lesson 0.0, `00_0_learn_something_in_fifteen_minutes`).
# The Transformer of the paper has 65 million weights.
#
# How can so many derivatives be written in a few lines? And how can you be sure that these lines are right?
# This lesson answers both questions for the smallest layer, $y = xW + b$.

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
# Broadcasting gives no warning when the result is not what you wanted. Suppose you want to subtract from each
# row of a (3, 3) matrix the mean of this row. The three means have shape (3,). NumPy compares from the right,
# so it subtracts one mean from each *column*. With `keepdims=True` they have shape (3, 1), and each mean is
# repeated along its own row. Only then do the rows sum to 0.

# %%
square = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
print("without keepdims\n", square - square.mean(-1))  # (3, 3) - (3,)
print("with keepdims\n", square - square.mean(-1, keepdims=True))  # (3, 3) - (3, 1)

# %% [markdown]
# ## The forward pass
#
# The **forward pass** computes the output of a layer from its input. A **linear layer** multiplies its input
# by a **weight matrix** and adds a vector, the **bias**. For example, the feed-forward network of the
# Transformer (section 3.3 of the paper) consists of two linear layers. Between them, max(0, ·) replaces
# negative numbers by 0:
#
# > FFN(x) = max(0, xW₁ + b₁)W₂ + b₂
#
# We write the layer for single numbers first. Let n be the index of a token, i that of an input component,
# and j that of an output component:
#
# $$y_{nj} = \sum_i x_{ni} w_{ij} + b_j$$
#
# The loops in the next cell compute this formula. Their result must be equal to the product above, and to the
# result of the function `linear` of the package.

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
# In a network, further layers turn y into the loss L. In this lesson we replace them by a simple formula. If
# L were the sum of y, all entries of dy would be 1, and some mistakes would not show. So we choose:
#
# $$L = \frac{1}{2} \sum \tanh(y)^2$$
#
# The **gradient** of an array has the same shape as the array. Each entry of the gradient is the derivative
# of L with respect to the corresponding entry of the array. In code, the gradient of `y` is always called
# `dy`. The derivative of tanh is $1 - \tanh^2$, so the chain rule gives
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
# everything that the forward pass received: dx, dw and db. It does not need to know how the later layers
# compute L, because it needs only dy from them. So the data flow in two directions:
#
# ```text
# forward    x (B, T, D) ──┐
#            w (D, O)    ──┼──▶ linear ──▶ y (B, T, O) ──▶ later layers ──▶ L
#            b (O,)      ──┘       │
#                            cache: x and w
#                                  ▼
# backward   dx (B, T, D) ◀──┐
#            dw (D, O)    ◀──┼── linear_backward ◀── dy (B, T, O) ◀── later layers
#            db (O,)      ◀──┘
# ```
#
# ### The gradient of x
#
# Take one entry $x_{ni}$. It affects every output component of its own token n, and no output of another
# token. By the forward formula, the derivative of $y_{nj}$ with respect to $x_{ni}$ is $w_{ij}$. The chain
# rule adds up the contributions of all these outputs:
#
# $$
# \begin{aligned}
# dx_{ni} &= \sum_j dy_{nj} \cdot \frac{\partial y_{nj}}{\partial x_{ni}} \\
#         &= \sum_j dy_{nj} w_{ij}
# \end{aligned}
# $$
#
# This is the product of a row of dy with a row of w. A matrix product combines rows with *columns*, so w must
# be transposed: $dx = dy\, W^\top$.

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
# To write the first sum as a matrix product, we put all N = B · T tokens into one matrix: `rows` has shape
# (6, 4) and `drows` (6, 5). Then $dW = X^\top dY$.

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
# them. The shapes help you to remember the formula. You have a (6, 4) and a (6, 5) matrix, and the result
# must have the shape (4, 5) of w. Only $X^\top dY$ has this shape.

# %% tags=["plot"]
grids = [
    Grid(rows.T, "$x^T$", "x", numbers=True, show_shape=True),
    "×",
    Grid(drows, "$dy$", "z", numbers=True, show_shape=True),
    "=",
    Grid(dw, "$dW$", "weight", numbers=True, show_shape=True),
]
show_figure(cell_product(grids), "00_dw", "dW = xᵀ dy: each entry is a sum over the six tokens")

# %% [markdown]
# The gradient of b shows a general rule: **what the forward pass copies, the backward pass adds up.**
# Broadcasting copied b to six tokens, so db is a sum over six tokens. Conversely, a sum in the forward pass
# becomes a copy in the backward pass.
#
# ## The pair of functions and the cache
#
# The package writes every operation as a pair of functions:
#
# $$y, \mathrm{cache} = \mathrm{linear}(x, w, b)$$
#
# $$dx, dw, db = \mathrm{linear\_backward}(dy, \mathrm{cache})$$
#
# The **cache** contains the arrays that the backward pass needs, and nothing else. Here these are x (for dw)
# and w (for dx). Neither b nor y occurs in the three formulas, so the cache only notes that there is a bias.

# %%
show(cache)

# %% tags=["check"]
dx_package, dw_package, db_package = linear_backward(dy, cache)
assert_allclose(dx, dx_package, rtol=1e-12)
assert_allclose(dw, dw_package, rtol=1e-12)
assert_allclose(db, db_package, rtol=1e-12)
print("dx, dw and db agree with the package")

# %% [markdown]
#
# ## Measure the derivative
#
# The package uses the same formulas as we do, so both could be wrong. We need an independent test. So we
# *measure* the derivative with the forward pass alone and compare.
#
# To test all entries of dw at once, we measure along a **direction**. Let v be an array with the shape of w,
# and let h be a small number. If we replace w by w + hv, the loss changes by
#
# $$L(w + hv) - L(w) = h \langle dw, v \rangle + O(h^2)$$
#
# Here $\langle dw, v \rangle$ is the sum of the products of corresponding entries. We choose every entry of v
# as +1 or −1, so every entry of dw contributes. One measurement then checks all 20 entries, and it would
# check a million in the same way. Two mistakes may cancel by chance, so the gradient checker of
# the package also measures along a second direction.

# %%
v = rng.integers(0, 2, w.shape) * 2.0 - 1  # ±1, the shape of w


def loss_along(h):
    """Return L at w + hv. The step h may be complex."""
    activated = np.tanh(linear(x, w + h * v, b)[0])
    return 0.5 * (activated * activated).sum()


computed = (dw * v).sum()
measured = (loss_along(1e-6) - loss_along(0)) / 1e-6

# %% tags=["check"]
print(f"computed by the backward pass   {computed:.15f}")
print(f"measured with h = 1e-6          {measured:.15f}")

# %% [markdown]
# Six digits agree. Do the others differ because our gradient is wrong, or because the measurement is
# inaccurate? We try smaller values of h.

# %% tags=["check"]
for h in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-16):
    measured = (loss_along(h) - loss_along(0)) / h
    print(f"h = {h:.0e}   measured {measured:+.9f}   off by {abs(measured / computed - 1):.0e}")
assert measured == 0  # at the last h, no digit of L changes

# %% [markdown]
# The error first decreases and then increases. At $h = 10^{-16}$ the measured derivative is even 0. The
# measurement has two sources of error:
#
# - **Truncation error.** We ignore the further terms of the Taylor series. They become smaller when h becomes
#   smaller.
# - **Rounding error.** A float64 number has about 16 digits. Rounding changes a number by at most the share
#   $\varepsilon \approx 1.1 \cdot 10^{-16}$. L(h) and L(0) begin with the same digits. These digits cancel in
#   the subtraction, and only the last, inaccurate digits remain. Their error is divided by h, so it becomes
#   *larger* when h becomes smaller.
#
# So far we used a **forward difference**, from 0 to h. A **central difference** goes from −h to h. Then L″
# cancels, and the truncation error is much smaller:
#
# $$\frac{L(h) - L(0)}{h} = L' + \frac{h}{2} L'' + \dots$$
#
# $$\frac{L(h) - L(-h)}{2h} = L' + \frac{h^2}{6} L''' + \dots$$
#
# Rounding adds an error of about $\varepsilon L / h$ to both. The next cell computes both for many values of
# h.

# %%
steps = 10.0 ** -np.arange(1, 21)
forward = [(loss_along(h) - loss_along(0)) / h for h in steps]
central = [(loss_along(h) - loss_along(-h)) / (2 * h) for h in steps]

# %% [markdown]
# The total error is smallest where truncation and rounding are about equal. For the forward difference, this
# is at $h \approx \sqrt{\varepsilon} \approx 10^{-8}$, where half of the 16 digits are lost. For the central
# difference, it is at $h \approx \sqrt[3]{\varepsilon} \approx 5 \cdot 10^{-6}$, where a third is lost.
#
# ## The complex step
#
# There is a better way: choose an *imaginary* step ih. The Taylor series is the same:
#
# $$L(ih) = L + ih L' - \frac{h^2}{2} L'' - \frac{ih^3}{6} L''' + \dots$$
#
# The derivative $L'$ stands in the imaginary part of this number. Divide the imaginary part by h:
#
# $$\frac{\operatorname{Im} L(ih)}{h} = L' - \frac{h^2}{6} L''' + \dots$$
#
# **Nothing is subtracted, so no digits cancel.** Therefore h may be so small that the term with $h^2$ is
# negligible: for example $10^{-20}$ or even $10^{-200}$. This method is called the **complex step** (Squire
# and Trapp, 1998). The next cell compares the three methods.

# %%
complex_step = [loss_along(1j * h).imag / h for h in steps]
errors = abs(np.array([forward, central, complex_step]) / computed - 1)  # (3, 20), relative

# %% tags=["plot"]
names = ["forward difference", "central difference", "complex step"]
for name, row in zip(names, errors, strict=True):
    print(f"{name:20} best {row.min():.0e} at h = {steps[row.argmin()]:.0e}")
figure = curves(
    np.maximum(errors, 1e-17),  # an error of 0 has no place on a logarithmic axis
    steps,
    labels=names,
    xlabel="h",
    ylabel="relative error of the derivative",
    xscale="log",
    yscale="log",
    legend=True,
    title="Three methods to measure one derivative",
)
caption = "Differences reach errors of 9e-8 and 4e-10 at best; the complex step reaches 1e-16"
show_figure(figure, "00_error_over_h", caption)

# %% tags=["check"]
assert 1e-9 < errors[0].min() < 1e-6
assert 1e-12 < errors[1].min() < 1e-8
assert (errors[2, 8:] < 2e-15).all()  # every h from 1e-9 down
print("error at h = 1e-200:", abs(loss_along(1e-200j).imag / 1e-200 / computed - 1))

# %% [markdown]
# Read the curves from the right, where h is large. The error of the forward difference falls with slope 1,
# because it is $\frac{h}{2} L''$. The other two fall with slope 2. They lie on one line, because their errors
# are $\frac{h^2}{6} L'''$ with opposite signs. For smaller h, rounding makes the two differences worse again,
# with slope −1. The complex step stays accurate.
#
# ## Why sixteen digits matter
#
# The next cell contains a mistake that occurs in real projects: an intermediate array is stored as float32,
# so only 7 digits are right. We check this backward pass with both methods.

# %%


def linear_backward_in_float32(dy, cache):
    """Return the gradients, but round dw to float32."""
    dx, dw, db = linear_backward(dy, cache)
    return dx, dw.astype(np.float32).astype(np.float64), db


by_difference = gradcheck((linear, linear_backward_in_float32), x, w, b, method="difference")
by_complex_step = gradcheck((linear, linear_backward_in_float32), x, w, b)

# %% tags=["check"]
print("central differences: ", "all right" if by_difference.ok else "WRONG")
print("complex step:        ", "all right" if by_complex_step.ok else "WRONG")
assert by_difference.ok
assert not by_complex_step.ok

# %% [markdown]
# Central differences are inaccurate, so with them the checker must accept errors up to $10^{-6}$. The mistake
# causes an error of only about $10^{-8}$, so the checker does not find it. With the complex step, the checker
# accepts errors up to only $10^{-11}$, and it finds the mistake.
#
# ## What the complex step requires
#
# The forward pass must work with complex numbers. Sums, products, exp and tanh do. `abs` does not: it returns
# the absolute value $\sqrt{\mathrm{re}^2 + \mathrm{im}^2}$, which is real. So the imaginary part, which
# carries the derivative, is lost. The derivative of |x| at 3 is 1, but the first line of the output says 0.

# %%
h = 1e-20
print("derivative of |x| at 3, with abs:  ", np.imag(np.abs(3 + 1j * h)) / h)


def absolute(x):
    """Return |x|. Only the comparison uses the real part, so the imaginary part is kept."""
    return np.where(x.real < 0, -x, x)


print("derivative of |x| at 3, with where:", np.imag(absolute(np.complex128(3 + 1j * h))) / h)

# %% [markdown]
# For this reason the package compares numbers by `.real`, subtracts `x.real.max()` in the softmax, and writes
# `(x * x).mean()` instead of `var`.
#
# ## The gradient checker
#
# A **gradient check** compares the gradients of a backward pass with measured derivatives of the forward
# pass. `gradcheck` draws a random dy and, for every array, a random direction of ±1. It makes one complex
# step for each array, which gives one line of the report. The other lines test further properties. The
# backward pass must be linear in dy, and it must not modify its inputs. If it is called twice, the gradients
# of parameters must add up. The line "adjoint" of the report tests the gradients of all arrays together.

# %%
report = gradcheck((linear, linear_backward), x, w, b)
print(report)

# %% [markdown]
# Now we make a common mistake on purpose: db becomes the mean over the tokens instead of their sum.

# %%


def averaging_backward(dy, cache):
    """Return a wrong db: a mean over six tokens."""
    dx, dw, db = linear_backward(dy, cache)
    return dx, dw, db / 6


wrong_report = gradcheck((linear, averaging_backward), x, w, b)
print(wrong_report)

# %% [markdown]
# The report names the array, the first wrong entry and the factor by which it is wrong. A network with this
# mistake still learns, but its bias changes six times too slowly. So you would hardly notice the mistake in
# the loss.

# %% tags=["check"]
assert report.ok
assert wrong_report.failures[0].tensor == "bias"

# %% [markdown]
# **What a gradient check cannot see.** It tests whether the backward pass belongs to the forward pass.
# Whether the forward pass computes the right function is another question. If it computes a wrong function,
# and the backward pass the correct gradient of this function, the check passes:

# %%


def linear_twice_b(x, w, b):
    """Compute x w + 2 b, which is not what a linear layer computes."""
    return linear(x, w, 2 * b)


def linear_twice_b_backward(dy, cache):
    """Return the correct gradients of this wrong function."""
    dx, dw, db = linear_backward(dy, cache)
    return dx, dw, 2 * db


misled = gradcheck((linear_twice_b, linear_twice_b_backward), x, w, b)
print("all gradients correct:", misled.ok)

# %% tags=["check"]
assert misled.ok
assert np.abs(linear_twice_b(x, w, b)[0] - y).max() > 1

# %% [markdown]
# So a forward pass needs tests of its own, such as the comparison with loops above. Lesson 7.4
# (`07_4_testing_the_split`) shows a mistake of this kind that is easy to make.

# %% [markdown]
# ## What the source documents say
#
# > - *一步步解析Attention is All You Need!*, *图解transformer*, *Attention机制详解（二）* and *The components
# >   of the Transformer* show forward passes only. TensorFlow or PyTorch derives the backward passes from
# >   them.
# > - Weights here have the shape (in, out), as in the paper's xW + b. PyTorch's `nn.Linear`, which
# >   *图解transformer* uses, stores them as (out, in) and computes xWᵀ + b. Transpose them before you compare
# >   numbers.

# %% [markdown]
# ## Summary
#
# - A linear layer computes $y = xW + b$ for every token with the same W and b.
# - Its gradients are $dx = dy\, W^\top$, $dW = X^\top dY$, and db, the sum of dy over all tokens.
# - What the forward pass copies, the backward pass adds up.
# - The cache contains what the backward pass needs: here x and W.
# - The complex step measures a derivative without cancellation, so a gradient check finds small mistakes.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the central difference not become exact when h goes to 0?
#
# <details><summary>Answer</summary>
# Its truncation error goes to 0, but its rounding error grows like $\varepsilon L / h$. The two losses agree
# in more and more digits, and these digits cancel.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 0` lists the exercises. Each is graded by the gradient checker.
#
# - `npformer exercise start swish-backward`: write the backward pass of the function y = x · sigmoid(x).
# - `npformer exercise start linear-backward`: write the backward pass of a linear layer. It must work for any
#   number of axes before the last one.
# - `npformer exercise start derivative`: compute the derivative of a function by a complex step.
# - By hand: y = x − mean(x). Which term of dx is easily forgotten?
#
# **Next**: lesson 1 (`01_words_to_ids`), which turns sentences into arrays of numbers.

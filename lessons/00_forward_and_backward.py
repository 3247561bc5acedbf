# %% [markdown]
# # 0 · Forward, backward, and how to know that a gradient is right
#
# *25 minutes to read, 2 seconds to run. You need NumPy and the chain rule.*
#
# **The question.** A layer turns an array x into an array y. To train it, one needs to know how a single
# number, the loss, changes with *every entry of every array* that went in: 65 million of them in the
# Transformer of the paper. How does one write that down by hand, so short that it fits on a page? And how
# does one find out, in a second and beyond doubt, that it is right?
#
# This lesson answers both on the smallest layer there is, y = xW + b. Every later lesson does the same
# five things: **forward**, **backward**, **compare** with the package, **look** at the cache, **check**.

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
# ## Arrays and their shapes
#
# Two sentences of three words, every word four numbers: one array with three axes. In comments, a capital
# letter names an axis: B sentences in the batch, T words, D numbers a word.

# %%
x = rng.standard_normal((2, 3, 4))  # (B, T, D)
print(x[0, 2])  # the third word of the first sentence: four numbers

# %% [markdown]
# Two rules of NumPy carry the whole course.
#
# 1. `x @ w` multiplies the **last two** axes as matrices; all axes before them are only carried along.
#    So (2, 3, 4) @ (4, 5) is (2, 3, 5): each of the six words meets the same matrix.
# 2. **Broadcasting**: shapes are laid against each other from the right, and an axis that is missing or of
#    length 1 is repeated. So (2, 3, 5) + (5,) adds the same five numbers to each of the six words.

# %%
w = rng.standard_normal((4, 5))  # (D, O)
b = rng.standard_normal(5)  # (O,)
y = x @ w + b  # (B, T, O)
print(x.shape, "@", w.shape, "+", b.shape, "->", y.shape)

# %% [markdown]
# Broadcasting never asks whether you meant it. Take the mean of each row away from a square matrix. The
# means of the rows have shape (3,), which NumPy lays along the *columns*. No error; the wrong numbers:

# %%
square = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
print("without keepdims\n", square - square.mean(-1))  # (3, 3) - (3,)
print("with keepdims\n", square - square.mean(-1, keepdims=True))  # (3, 3) - (3, 1)

# %% [markdown]
# Only the second has rows that sum to 0. This is why code in the package says `keepdims=True` wherever a
# row's mean, maximum or sum meets the row again, and why every line there ends in its shape.

# %% [markdown]
# ## Forward, the slow way
#
# The paper's feed-forward network is two such maps with a bend between them (section 3.3):
#
# > FFN(x) = max(0, xW₁ + b₁)W₂ + b₂
#
# Here is one of them, one number at a time. Read the innermost line aloud: output j of a word is the sum
# over i of x times w, plus a bias.
#
# ```math
# yₙⱼ = Σᵢ xₙᵢ wᵢⱼ + bⱼ          word n, input number i, output number j
# ```

# %%
slow = np.zeros((2, 3, 5))
for sentence in range(2):
    for word in range(3):
        for j in range(5):
            slow[sentence, word, j] = b[j]
            for i in range(4):
                slow[sentence, word, j] += x[sentence, word, i] * w[i, j]

fast, cache = linear(x, w, b)  # the package's
assert_allclose(slow, y, rtol=1e-12)
assert_allclose(fast, y, rtol=1e-12)
print("three ways, one result:", y[0, 0])

# %% [markdown]
# ## The loss, and what "the gradient of x" means
#
# Whatever follows the layer ends in one number, L. For a stand-in take
#
# ```math
# L = ½ Σ tanh(y)²
# ```
#
# which is curved, so that no mistake below can hide behind a straight line. The **gradient of an array has
# the shape of the array**: entry by entry it is the derivative of L with respect to that entry. In code the
# gradient of `y` is called `dy`, always.
#
# By the chain rule, with tanh′ = 1 − tanh²:
#
# ```math
# dy = tanh(y) · (1 − tanh²(y))
# ```

# %%
bent = np.tanh(y)
loss = 0.5 * (bent * bent).sum()
dy = bent * (1 - bent * bent)  # (B, T, O), as y
print(f"L = {loss:.4f}")
assert dy.shape == y.shape

# %% [markdown]
# ## Backward, derived
#
# The layer is handed dy and must hand back dx, dw and db. It need not know what L is: **dy is all that the
# rest of the network has to say to it.**
#
# Take one entry xₙᵢ. Which outputs does it reach? Those of its own word n, all of them, each with slope
# wᵢⱼ. Add up what comes back along every way:
#
# ```math
# dxₙᵢ  = Σⱼ dyₙⱼ · ∂yₙⱼ/∂xₙᵢ  = Σⱼ dyₙⱼ wᵢⱼ
# ```
#
# That is a row of dy times a row of w, so the matrix w appears transposed.

# %%
dx_slow = np.zeros_like(x)
for sentence in range(2):
    for word in range(3):
        for i in range(4):
            for j in range(5):
                dx_slow[sentence, word, i] += dy[sentence, word, j] * w[i, j]

dx = dy @ w.T  # (B, T, O) @ (O, D)
assert_allclose(dx, dx_slow, rtol=1e-12)

# %% [markdown]
# Now wᵢⱼ. It is used by *every word of every sentence*, with slope xₙᵢ:
#
# ```math
# dwᵢⱼ  = Σₙ dyₙⱼ · ∂yₙⱼ/∂wᵢⱼ  = Σₙ xₙᵢ dyₙⱼ
# dbⱼ   = Σₙ dyₙⱼ · ∂yₙⱼ/∂bⱼ   = Σₙ dyₙⱼ
# ```
#
# In matrices: lay the six words in one pile, rows (6, 4) and drows (6, 5).
#
# A rule to remember: **what forward copies, backward adds up.** Broadcasting copied b to six words; so db is
# a sum over six words. And the other way round, a sum in forward becomes a copy in backward.

# %%
rows = x.reshape(6, 4)  # (N, D), N = B·T
drows = dy.reshape(6, 5)  # (N, O)

dw_slow, db_slow = np.zeros((4, 5)), np.zeros(5)
for n in range(6):
    for j in range(5):
        db_slow[j] += drows[n, j]
        for i in range(4):
            dw_slow[i, j] += rows[n, i] * drows[n, j]

dw = rows.T @ drows  # (D, N) @ (N, O)
db = drows.sum(0)  # (O,)
assert_allclose(dw, dw_slow, rtol=1e-12)
assert_allclose(db, db_slow, rtol=1e-12)

# %% [markdown]
# The shapes alone would have told: dw must be (4, 5), and of (6, 4) and (6, 5) there is only one product
# that gives it. Seen as cells, the sum over the six words is the side that the two matrices share:

# %%
grids = [
    Grid(rows.T, "$x^T$", "x", numbers=True, show_shape=True),
    "×",
    Grid(drows, "$dy$", "z", numbers=True, show_shape=True),
    "=",
    Grid(dw, "$dW$", "weight", numbers=True, show_shape=True),
]
show_figure(cell_product(grids), "00_dw", "dW = xᵀ dy: every entry is a sum over the six words")

# %% [markdown]
# ## The pair and its cache
#
# The package writes each operation as a pair:
#
# ```math
# y, cache = linear(x, w, b)
# dx, dw, db = linear_backward(dy, cache)
# ```
#
# The **cache** holds what backward needs and nothing else. Ours needs x (for dw) and w (for dx). It does
# not need y, nor b: neither occurs in the three formulas. All that the layer remembers is in plain sight:

# %%
show(cache)

# %%
dx_package, dw_package, db_package = linear_backward(dy, cache)
assert_allclose(dx, dx_package, rtol=1e-12)
assert_allclose(dw, dw_package, rtol=1e-12)
assert_allclose(db, db_package, rtol=1e-12)
print("dx, dw and db are those of the package")

# %% [markdown]
# ## Is it right? Ask the forward pass
#
# We have compared our formulas with a package that used the same formulas. Both could be wrong. The judge
# is the forward pass: it defines the function, so its slope, measured, is the truth.
#
# Measure along a **direction**. Let v be an array shaped as w, and walk from w to w + hv. Then L changes
# by h⟨dw, v⟩ + O(h²), where ⟨dw, v⟩ is the sum of all products of entries. If every entry of v is +1 or −1,
# every entry of dw takes part: *one* measurement of one number checks all 20 at once, and would check a
# million.

# %%
v = rng.integers(0, 2, w.shape) * 2.0 - 1  # ±1, shaped as w


def loss_along(h):
    """L at w + hv. h may be complex."""
    bent = np.tanh(linear(x, w + h * v, b)[0])
    return 0.5 * (bent * bent).sum()


claimed = (dw * v).sum()
measured = (loss_along(1e-6) - loss_along(0)) / 1e-6
print(f"claimed by backward   {claimed:.15f}")
print(f"measured, h = 1e-6    {measured:.15f}")

# %% [markdown]
# Six digits agree. Is the rest an error of ours, or of the measurement? Then make h smaller:

# %%
for h in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-16):
    measured = (loss_along(h) - loss_along(0)) / h
    print(f"h = {h:.0e}   measured {measured:+.9f}   off by {abs(measured / claimed - 1):.0e}")
assert measured == 0  # at the last h, not one digit of L changes

# %% [markdown]
# It gets better, then worse, and at 10⁻¹⁶ the slope is 0. Two errors pull in opposite directions. Taylor
# gives the first; the second is that a float64 holds 16 digits, so that L(h) and L(0), which agree in their
# first digits, lose them when subtracted, and what is left is divided by a tiny h. With ε = 1.1 · 10⁻¹⁶:
#
# ```math
# [L(h) − L(0)] / h      =  L′ + h/2 · L″ + …       rounding about ε L / h
# [L(h) − L(−h)] / 2h    =  L′ + h²/6 · L‴ + …      rounding about ε L / h
# ```
#
# The best h is where both errors are equal: near √ε ≈ 10⁻⁸ in the first line, where half of the 16 digits
# are lost; near ∛ε ≈ 5 · 10⁻⁶ in the second, the **central difference**, where a third are. (Here L is
# twenty times as large as L′, which costs one digit more.)
#
# ## A step in a direction where nothing is subtracted
#
# Let h be *imaginary*. The same series:
#
# ```math
# L(ih)         =  L + ih L′ − h²/2 · L″ − ih³/6 · L‴ + …
# Im L(ih) / h  =  L′ − h²/6 · L‴ + …
# ```
#
# The derivative stands alone in the imaginary part. **Nothing is subtracted, so nothing is lost**: h may be
# so small that h² vanishes, 10⁻²⁰ or 10⁻²⁰⁰. (Squire and Trapp, 1998.) Here are all three, over h:

# %%
steps = 10.0 ** -np.arange(1, 21)
errors = np.array(
    [
        [(loss_along(h) - loss_along(0)) / h for h in steps],
        [(loss_along(h) - loss_along(-h)) / (2 * h) for h in steps],
        [loss_along(1j * h).imag / h for h in steps],
    ]
)
errors = abs(errors / claimed - 1)  # (3, 20) relative errors
names = ["forward difference", "central difference", "complex step"]
for name, row in zip(names, errors, strict=True):
    print(f"{name:20} best {row.min():.0e} at h = {steps[row.argmin()]:.0e}")

# %%
figure = curves(
    np.maximum(errors, 1e-17),  # an error of 0 has no place on a logarithmic axis
    steps,
    labels=names,
    xlabel="h",
    ylabel="relative error of the slope",
    xscale="log",
    yscale="log",
    legend=True,
    title="Three ways to measure one slope",
)
caption = "Differences stop at errors of 9e-8 and 4e-10; the complex step goes on to 1e-16"
show_figure(figure, "00_error_over_h", caption)

# %%
assert 1e-9 < errors[0].min() < 1e-6
assert 1e-12 < errors[1].min() < 1e-8
assert (errors[2, 8:] < 2e-15).all()  # every h from 1e-9 down
print("at h = 1e-200:", abs(loss_along(1e-200j).imag / 1e-200 / claimed - 1))

# %% [markdown]
# Read the curves from the right, where h is large. The forward difference falls with slope 1: its error
# is h/2 · L″. The other two fall with slope 2, *on one line*: their errors are h²/6 · L‴ with opposite
# signs. Then the differences meet rounding and climb again, with slope −1, and the complex step just stays.
#
# What are sixteen digits good for? Here is a backward pass with a mistake that projects do ship: somewhere
# an array became float32, and everything after it has 7 digits.

# %%


def linear_backward_in_float32(dy, cache):
    """As linear_backward, but dw went through float32."""
    dx, dw, db = linear_backward(dy, cache)
    return dx, dw.astype(np.float32).astype(np.float64), db


by_difference = gradcheck((linear, linear_backward_in_float32), x, w, b, method="difference")
by_complex_step = gradcheck((linear, linear_backward_in_float32), x, w, b)
print("central differences: ", "all right" if by_difference.ok else "WRONG")
print("complex step:        ", "all right" if by_complex_step.ok else "WRONG")
assert by_difference.ok
assert not by_complex_step.ok

# %% [markdown]
# With central differences the checker must allow an error of 10⁻⁶, and the mistake, 10⁻⁸, hides under it.
# With the complex step it allows 10⁻¹¹, and finds it.
#
# ## What the complex step asks of forward
#
# The code must let a complex number *through*. Sums, products, exp and tanh do. `abs` does not: of a complex
# number it takes the length, √(re² + im²), and the imaginary part, which carries the slope, is gone.

# %%
h = 1e-20
print("slope of |x| at 3, with abs:  ", np.imag(np.abs(3 + 1j * h)) / h)


def absolute(x):
    """|x| that a complex step can pass: ask the real part, keep the number."""
    return np.where(x.real < 0, -x, x)


print("slope of |x| at 3, with where:", np.imag(absolute(np.complex128(3 + 1j * h))) / h)

# %% [markdown]
# So forward passes in this package compare on `.real`, subtract `x.real.max()` in the softmax, and use
# `(x * x).mean()` in place of `var`. Nothing else changes; the same code runs in float32 and float64.
#
# ## The checker
#
# `gradcheck` does all of this: a random dy, a random direction of ±1 for every array, one complex step each.
# It also asks whether backward left its inputs alone, and whether it is linear in dy.

# %%
report = gradcheck((linear, linear_backward), x, w, b)
print(report)
assert report.ok

# %% [markdown]
# And when it is wrong? Take a common slip: the mean over the words where the sum belongs.

# %%


def averaging_backward(dy, cache):
    """Wrong: db is a mean over six words."""
    dx, dw, db = linear_backward(dy, cache)
    return dx, dw, db / 6


report = gradcheck((linear, averaging_backward), x, w, b)
print(report)
assert report.failures[0].tensor == "bias"

# %% [markdown]
# It names the tensor, the first wrong entry, and the factor. A network with this mistake still trains. Its
# bias learns six times too slowly; under Adam, which divides a gradient by its own size, not even that. No
# curve of a loss would tell.
#
# ## Exercises
#
# `npformer exercise list 0` has them, each graded by this checker.
#
# - `npformer exercise start swish-backward`: one input, no parameters: the whole protocol in two lines.
# - `npformer exercise start linear-backward`: dx, dw and db for any number of axes before the last.
# - `npformer exercise start derivative`: the slope of a function, by complex step.
# - By hand: y = x − mean(x). Which term of dx is easily forgotten?
#
# To try now, in the terminal: `!print(gradcheck((linear, linear_backward), x, w, b, method="difference"))`
# gives the same verdict with errors a hundred thousand times as large.
#
# ## Where the documents differ
#
# - *一步步解析Attention is All You Need!*, *图解transformer*, *Attention机制详解（二）* and *The
#   components of the Transformer* show forward passes only: TensorFlow or PyTorch makes the backward
#   pass from them. Everything about gradients here is the course's own.
# - Weights here are (in, out), as in the paper's xW + b. PyTorch's `nn.Linear`, which *图解transformer* uses,
#   keeps them as (out, in) and computes xWᵀ + b: transpose before you compare numbers.
#
# **Next**, lesson 1 turns words into such arrays.

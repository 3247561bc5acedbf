# %% [markdown]
# # 0.3 · Measured derivatives
#
# *About 30 minutes, which you may skip at first. You need: the linear layer and its gradients (lesson 0.2,
# `00_2_forward_and_backward`), complex numbers, the Taylor series.*
#
# **After this lesson you can**
#
# - measure a derivative with differences, and explain why only some of its digits are right;
# - measure a derivative to 16 digits, and use it to find a wrong gradient;
# - say which mistakes a gradient check cannot see.
#
# `model: ids → embedding → positions → encoder → decoder → [LINEAR] → softmax`

# %%
import numpy as np

from npformer.checking import gradcheck
from npformer.functional.linear import linear, linear_backward
from npformer.learn.course import show_figure
from npformer.plots import curves

rng = np.random.default_rng(0)

# %% [markdown]
# ## Measure the derivative
#
# Lesson 0.2 derived the gradients of the linear layer. How can you be sure that such formulas are right? The
# forward pass defines the function. So we *measure* the derivative with the forward pass alone and compare.
# The next cell repeats the layer, its loss and its gradients.

# %%
x, w, b = (rng.standard_normal(shape) for shape in ((2, 3, 4), (4, 5), 5))
y, cache = linear(x, w, b)  # (B, T, O)
activated = np.tanh(y)
loss = 0.5 * (activated * activated).sum()
dx, dw, db = linear_backward(activated * (1 - activated * activated), cache)

# %% [markdown]
# To test all entries of dw at once, we measure along a **direction**. Let v be an array with the shape of w,
# and let h be a small number. If we replace w by w + hv, the loss changes by
#
# $$L(w + hv) - L(w) = h \langle dw, v \rangle + O(h^2)$$
#
# Here $O(h^2)$ stands for terms of the size of $h^2$, and $\langle dw, v \rangle$ is the sum of the products
# of corresponding entries. From now on $L(h)$ means $L(w + hv)$, and $L'$ is its derivative at $h = 0$. We
# choose every entry of v as +1 or −1, so every entry of dw contributes. One measurement then checks all 20
# entries, and it would check a million in the same way. Two mistakes may cancel by chance, so the gradient
# checker of the package measures along a second direction, too.

# %%
v = rng.integers(0, 2, w.shape) * 2.0 - 1  # ±1, the shape of w


def loss_along(h):
    """Return L at w + hv. The step h may be complex."""
    activated = np.tanh(linear(x, w + h * v, b)[0])
    return 0.5 * (activated * activated).sum()


computed = (dw * v).sum()
measured = (loss_along(1e-6) - loss_along(0)) / 1e-6

print(f"computed by the backward pass   {computed:.15f}")
print(f"measured with h = 1e-6          {measured:.15f}")

# %% [markdown]
# Rounded to six digits, both are −0.571668. Do the others differ because our gradient is wrong, or because
# the measurement is inaccurate? We try smaller values of h.

# %%
for h in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-16):
    measured = (loss_along(h) - loss_along(0)) / h
    print(f"h = {h:.0e}   measured {measured:+.9f}   off by {abs(measured / computed - 1):.0e}")

# %% tags=["check"]
assert measured == 0  # at the last h, no digit of L changes

# %% [markdown]
# The error first decreases and then increases. At $h = 10^{-16}$ the measured derivative is even 0. The
# measurement has two sources of error:
#
# - **Truncation error.** We ignore the further terms of the Taylor series. They become smaller when h becomes
#   smaller.
# - **Rounding error.** A float64 number has about 16 digits. Rounding changes a number $a$ by at most
#   $\varepsilon |a|$, with $\varepsilon \approx 1.1 \cdot 10^{-16}$. L(h) and L(0) begin with the same
#   digits. These digits cancel in the subtraction, and only the last, inaccurate digits remain. Their error
#   is divided by h, so it becomes *larger* when h becomes smaller.
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
# There is a better way: choose an *imaginary* step ih. For example, $(3 + ih)^2 = 9 - h^2 + 6ih$. The
# imaginary part, divided by h, is 6: the derivative of $x^2$ at 3. In general, the Taylor series is the same
# as before:
#
# $$L(ih) = L + ih L' - \frac{h^2}{2} L'' - \frac{ih^3}{6} L''' + \dots$$
#
# The derivative $L'$ stands in the imaginary part of this number. Divide the imaginary part by h:
#
# $$\frac{\operatorname{Im} L(ih)}{h} = L' - \frac{h^2}{6} L''' + \dots$$
#
# **No two nearly equal numbers are subtracted, so no digits cancel.** Therefore h may be so small that the
# term with $h^2$ is negligible: for example $10^{-20}$ or even $10^{-200}$. This method is called the
# **complex step** (Squire and Trapp, 1998). The next cell compares the three methods.

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
caption = "Differences reach errors of 9e-8 and 4e-10; the complex step stays below 2e-15"
show_figure(figure, "00_error_over_h", caption)

# %% tags=["check"]
assert 1e-9 < errors[0].min() < 1e-6
assert 1e-12 < errors[1].min() < 1e-8
assert (errors[2, 8:] < 2e-15).all()  # every h from 1e-9 down
print("error at h = 1e-200:", abs(loss_along(1e-200j).imag / 1e-200 / computed - 1))

# %% [markdown]
# Read the curves from the right, where h is large. From h = 0.01 on, the error of the forward difference
# falls with slope 1, because it is $\frac{h}{2} L''$. The other two fall with slope 2. They lie on one line,
# because their errors are $\frac{h^2}{6} L'''$ with opposite signs. For smaller h, rounding makes the two
# differences worse again, with slope −1. The complex step stays accurate.
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

print("central differences: ", "all right" if by_difference.ok else "WRONG")
print("complex step:        ", "all right" if by_complex_step.ok else "WRONG")

# %% tags=["check"]
assert by_difference.ok
assert not by_complex_step.ok

# %% [markdown]
# Central differences are inaccurate, so with them the checker must accept errors up to $10^{-6}$. The mistake
# causes an error of only about $4 \cdot 10^{-8}$, so the checker does not find it. With the complex step, the
# checker accepts errors up to only $10^{-11}$, and it finds the mistake.
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
# `(x * x).mean()` instead of `var`, for an x whose mean was subtracted.
#
# ## The gradient checker
#
# A **gradient check** compares the gradients of a backward pass with measured derivatives of the forward
# pass. `gradcheck` draws a random dy and, for every array, a random direction of ±1. It makes one complex
# step for each array, which gives one line of the report. The other lines test further properties. The
# backward pass must be linear in dy (twice dy gives twice the gradients), it must not modify its inputs, and
# its result must not depend on how dy lies in memory. A second call must add to the gradients of parameters.
# The line "adjoint" is the second direction: a new dy, and all arrays changed together.

# %%
report = gradcheck((linear, linear_backward), x, w, b)
print(report)

# %% tags=["check"]
assert report.ok

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
# So a forward pass needs tests of its own, such as the comparison with loops in lesson 0.2. Lesson 7.4
# (`07_4_testing_the_split`) shows a mistake of this kind that is easy to make.

# %% [markdown]
# ## Summary
#
# - A difference of two losses measures a derivative; the smaller h is, the more digits cancel.
# - A central difference has a much smaller truncation error than a forward difference.
# - The complex step measures a derivative without cancellation, to about 16 digits.
# - It needs a forward pass that computes with complex numbers and keeps the imaginary part.
# - A gradient check tests whether the backward pass belongs to the forward pass. It cannot see whether the
#   forward pass is right.

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
# `npformer exercise list 0` lists the exercises.
#
# - `npformer exercise start derivative`: compute the derivative of a function by a complex step.
# - By hand: compute $(2 + ih)^3$, and read the derivative of $x^3$ at 2 from its imaginary part.
#
# **Next**: lesson 1.1 (`01_1_words_to_ids`), which turns sentences into arrays of numbers.

# %% [markdown]
# # 4.2 · The gradient of self-attention
#
# *About 25 minutes. You need: attention without parameters (lesson 4.1, `04_1_attention_without_parameters`),
# gradients and the gradient check (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - name the three roles that a token vector has in self-attention;
# - derive the gradient of each role, and add them up to the gradient of x;
# - measure the gradient of one role alone with a complex step.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.plots import Step, gradient_flow

rng = np.random.default_rng(4)

# %% [markdown]
# ## The input x occurs three times
#
# The cell computes self-attention without parameters, as in lesson 4.1, for five random vectors. Then it
# draws random numbers for `dy`, the gradient that arrives from the rest of the model.

# %%
x = rng.standard_normal((5, 4))  # (T, D)
weights, _ = softmax(x @ x.T)  # (T, T)
y = weights @ x  # (T, D)
dy = rng.standard_normal(y.shape)  # (T, D)

# %% tags=["plot"]
layout = """.  q  scores  weights  y
            x  k    .       .     .
            .  v    .       .     ."""
arrays = {"x": x, "q": x, "k": x, "v": x, "scores": x @ x.T, "weights": weights, "y": y}
axes = dict.fromkeys("xqkvy", "T D") | {"scores": "T T", "weights": "T T"}
copies = {name: Step("", ["x"]) for name in "qkv"}
steps = copies | {
    "scores": Step("q kᵀ", ["q", "k"]),
    "weights": Step("softmax", ["scores"]),
    "y": Step("weights v", ["weights", "v"]),
}
figure = gradient_flow(layout, arrays, steps, axes=axes)
show_figure(figure, "04_2_forward", "Forward: x has three roles, q, k and v")

# %% [markdown]
# The picture shows the three steps of the layer, where $X$ has one row for each of the T tokens:
#
# $$A = X X^\top, \qquad P = \mathrm{softmax}(A), \qquad Y = P X$$
#
# Written for token $t$, the formulas are $a_{ts} = x_t \cdot x_s$ and $y_t = \sum_s p_{ts}\, x_s$. The same
# $x$ has three roles in them. We write an array for each, although the three are still equal:
#
# 1. In $a_{ts}$, the vector $x_t$ is compared with every $x_s$. This role is the **query**, a row of $Q$.
# 2. In $a_{ts}$, the vector $x_s$ is what a query is compared with. This role is the **key**, a row of $K$.
# 3. In $y_t$, the vector $x_s$ is what is averaged. This role is the **value**, a row of $V$.

# %% [markdown]
# ## The way back

# %% tags=["plot"]
caption = "Backward: dy leads to the gradients of the three roles, and dx is their sum"


def backward(**gradients):
    """Draw the backward pass. The gradients that are not given are empty."""
    return gradient_flow(layout, arrays, steps, dict.fromkeys(arrays) | gradients, axes=axes)


show_figure(backward(y=dy), "04_2_backward", caption)

# %% [markdown]
# The dashed rectangles are the gradients. Only $dY$, in code `dy`, is known. This lesson fills in the others
# from right to left. The forward pass used $x$ in three places, so the backward pass adds up the gradients of
# the three roles (lesson 0.2):
#
# $$dx = dq + dk + dv$$
#
# We derive them in reverse order, and begin with the last formula, $y_t = \sum_s p_{ts}\, v_s$. The value
# $v_s$ occurs in every output $y_t$, with the factor $p_{ts}$. The weight $p_{ts}$ occurs only in $y_t$,
# where it multiplies the vector $v_s$:
#
# $$\begin{aligned}
# dv_s &= \sum_t p_{ts}\, dy_t & \quad dV &= P^\top dY \\
# dp_{ts} &= dy_t \cdot v_s & \quad dP &= dY\, V^\top
# \end{aligned}$$

# %%
dv = weights.T @ dy  # (T, D)
dweights = dy @ x.T  # (T, T)

# %% tags=["plot"]
figure = backward(y=dy, weights=dweights, v=dv)
show_figure(figure, "04_2_step_3", "After step 3: dy has given dweights and dv")

# %% [markdown]
# Next comes the softmax. Its backward pass computes $dA$ from $dP$. Here we take it from the package. Lesson
# 5.2 (`05_2_the_backward_pass_of_attention`) derives it.
#
# The scores are $a_{ts} = q_t \cdot k_s$. The query $q_t$ occurs in all scores of row $t$, and its factor in
# $a_{ts}$ is $k_s$. The key $k_s$ occurs in all scores of column $s$, and its factor is $q_t$:
#
# $$\begin{aligned}
# dq_t &= \sum_s da_{ts}\, k_s & \quad dQ &= dA\, K \\
# dk_s &= \sum_t da_{ts}\, q_t & \quad dK &= dA^\top Q
# \end{aligned}$$
#
# In our layer, Q, K and V are all `x`.

# %%
dscores = softmax_backward(dweights, weights)  # (T, T)
dq = dscores @ x  # (T, D)
dk = dscores.T @ x  # (T, D)
dx = dq + dk + dv

y_package, cache = attention(x, x, x, scale=1.0)  # without the scale of chapter 5

# %% tags=["plot"]
figure = backward(y=dy, weights=dweights, v=dv, scores=dscores, q=dq, k=dk, x=dx)
show_figure(figure, "04_2_all", "After steps 2 and 1 and the sum: all gradients")

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dx, sum(attention_backward(dy, cache)), rtol=1e-9, atol=1e-12)
print("y and dx are those of the package")

# %% [markdown]
# Is each of the three gradients correct? We can check them one at a time with a measurement, the **complex
# step** (lesson 0.3, `00_3_measured_derivatives`, explains it). In one role we replace $x$ by $x + i h u$.
# Here $u$ is an array of entries ±1, $h$ is tiny, and $i = \sqrt{-1}$. In the other two roles, $x$ stays as
# it is. As the loss $L$ we take the sum of all entries of $y \cdot dy$, because then the gradient of $y$ is
# $dy$. The imaginary part of $L$, divided by $h$, measures how fast $L$ changes when $x$ moves along $u$. By
# our gradient, this speed should be the sum of all entries of gradient · $u$. Both numbers must agree. (If
# complex numbers are new to you, look only at the printed numbers.)

# %%
u = rng.integers(0, 2, x.shape) * 2.0 - 1  # a direction with entries ±1
h = 1e-20
moved = x + 1j * h * u
roles = {"query": (moved, x, x), "key": (x, moved, x), "value": (x, x, moved)}
pairs = []
for (role, inputs), gradient in zip(roles.items(), (dq, dk, dv), strict=True):
    measured = (attention(*inputs, scale=1.0)[0] * dy).sum().imag / h
    claimed = (gradient * u).sum()  # from our gradient
    pairs.append((claimed, measured))
    print(f"{role:6} claimed {claimed:+.12f}   measured {measured:+.12f}")

# %% tags=["check"]
for claimed, measured in pairs:
    assert_allclose(claimed, measured, rtol=1e-11)

# %% [markdown]
# Now we check the whole layer as a pair of functions. The next cell also contains a third function with a
# common mistake: it returns only $dq + dv$. In $A = X X^\top$ it treats the first X alone as a variable, so
# the gradient of the keys is missing.
#
# **Question.** Will the gradient check find this mistake?
#
# <details><summary>Answer</summary>
# Yes, with more than one token. The forward pass depends on $x$ in the role of the key too. So the measured
# derivative contains $dk$, and the returned gradient does not.
# </details>

# %%


def basic(x):
    """y = softmax(x xᵀ) x."""
    return attention(x, x, x, scale=1.0)


def basic_backward(dy, cache):
    """dx, the sum over three roles."""
    return sum(attention_backward(dy, cache))


def forgets_the_keys(dy, cache):
    """Wrong: dk is missing."""
    dq, _, dv = attention_backward(dy, cache)
    return dq + dv


sentence = rng.standard_normal((5, 4))  # (T, D)
report = gradcheck((basic, basic_backward), sentence)
print(report)
print("without dk:", gradcheck((basic, forgets_the_keys), sentence).ok)

# %% tags=["check"]
assert report.ok
assert not gradcheck((basic, forgets_the_keys), sentence).ok

# %% [markdown]
# **Your turn.** In the terminal, compare the sizes of the three gradients with `!abs(dq).mean()`,
# `!abs(dk).mean()` and `!abs(dv).mean()`.

# %% [markdown]
# ## Summary
#
# - In self-attention, the same vector is used as a query, as a key and as a value.
# - The gradient of x is the sum of three gradients: dx = dq + dk + dv.
# - For Y = P V the gradients are $dV = P^\top dY$ and $dP = dY\,V^\top$.
# - For A = Q Kᵀ the gradients are $dQ = dA\,K$ and $dK = dA^\top Q$.
# - A gradient check finds that a role is missing; a complex step in one role shows which one.

# %% [markdown]
# ## Questions
#
# **Question.** Why is $dA$ transposed in $dK = dA^\top Q$, but not in $dQ = dA\,K$?
#
# <details><summary>Answer</summary>
# The entry $da_{ts}$ belongs to query t and key s. The gradient of key s is a sum over all queries t, so it
# needs column s of dA. This column is row s of the transposed matrix.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 4` lists the exercises of this chapter. The gradient checker grades each
# of them.
#
# - `npformer exercise start dot-similarity-backward`: compute the gradients of the scores q kᵀ. They are two
#   products. Which matrix is transposed?
# - By hand: there is only one token. Show that y = x, that dq = dk = 0, and that dx = dy.
# - Leave out dv instead of dk in the backward pass. Does the gradient check find it for every input?
#
# **Next** on the main route: lesson 4.4 (`04_4_query_key_and_value`), where each role gets its own weight
# matrix. Off the route: lesson 4.3 (`04_3_from_a_dictionary_to_a_soft_lookup`), the origin of the words
# query, key and value.

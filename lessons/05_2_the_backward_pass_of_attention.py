# %% [markdown]
# # 5.2 · The backward pass of attention
#
# *About 30 minutes. You need: the forward pass of attention (lesson 5.1,
# `05_1_scaled_dot_product_attention`), gradients and the gradient check (lesson 0.2,
# `00_2_forward_and_backward`), the chain rule.*
#
# **After this lesson you can**
#
# - derive the gradients of the queries, the keys and the values;
# - derive the gradient of the softmax, with one sum for each row;
# - check the backward pass with the gradient checker.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.learn.course.running import attention_places, running_example
from npformer.plots import Step, gradient_flow, score_map

rng = np.random.default_rng(5)
words = ["Thinking", "Machines"]

# %% [markdown]
# ## Forward, then backward
#
# In this lesson the queries, keys and values of two tokens are random vectors of width $d_k = 64$, so the
# weights differ from those of lesson 5.1. The cell computes the output. Then it draws random numbers for
# `dy`, the gradient that arrives from the rest of the model.

# %%
d_k = 64
q, k, v = rng.standard_normal((3, 2, d_k))  # each (T, d_k), for T = S = 2 tokens

c = 1 / math.sqrt(d_k)
scores = c * q @ k.T  # (T, S)
weights, _ = softmax(scores)  # (T, S)
y = weights @ v  # (T, d_v), here d_v = d_k
dy = rng.standard_normal(y.shape)  # (T, d_v)
print(weights)

# %% tags=["plot"]
layout = """q  scores  weights  y
            k    .        v     ."""
arrays = {"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "y": y}
axes = {"q": "T dₖ", "k": "S dₖ", "v": "S dᵥ", "scores": "T S", "weights": "T S", "y": "T dᵥ"}
steps = {
    "scores": Step("c q kᵀ", ["q", "k"]),
    "weights": Step("softmax", ["scores"]),
    "y": Step("weights v", ["weights", "v"]),
}


def backward(**gradients):
    """Draw the backward pass. The gradients that are not given are empty."""
    return gradient_flow(layout, arrays, steps, dict.fromkeys(arrays) | gradients, axes=axes)


forward = gradient_flow(layout, arrays, steps, axes=axes)
show_figure(forward, "05_2_forward", "Forward: three steps lead from q, k and v to the output y")
caption = "Backward: steps 3, 2 and 1 lead from dy to the gradients dq, dk and dv, still empty"
show_figure(backward(y=dy), "05_2_backward", caption)

# %% [markdown]
# As in lesson 5.1, a rectangle is an array with its axes, and a circle is a step. With $c = 1/\sqrt{d_k}$,
# the three steps are
#
# $$A = c\, Q K^\top, \qquad P = \mathrm{softmax}(A), \qquad Y = P V$$
#
# As in lesson 0.2, a $d$ before a name means the gradient of the loss with respect to this array. It has the
# shape of the array. The backward pass begins with $dY$ and ends with $dQ$, $dK$ and $dV$. It takes the three
# steps in reverse order. At each step, it computes the gradients of the inputs from the gradient of the
# result. In the following sections you fill in the empty rectangles.
#
# The function `attention` of the package computes the same output. It also returns the cache that its
# backward pass needs.

# %%
y_package, cache = attention(q, k, v)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(weights, cache.weights, rtol=1e-12)

# %% [markdown]
# ## Step 3: Y = P V
#
# Each output is a sum over the keys. Written for entry $i$ of output $t$, it is
#
# $$y_{ti} = \sum_s p_{ts}\, v_{si}$$
#
# The weight $p_{ts}$ occurs in all entries $i$ of output $t$, and its factor there is $v_{si}$. The value
# $v_{si}$ occurs in entry $i$ of all outputs $t$, and its factor there is $p_{ts}$. The chain rule adds the
# contributions of all occurrences:
#
# $$\begin{aligned}
# dp_{ts} &= \sum_i dy_{ti}\, v_{si} & \quad dP &= dY\, V^\top \\
# dv_{si} &= \sum_t p_{ts}\, dy_{ti} & \quad dV &= P^\top dY
# \end{aligned}$$
#
# In words: $dp_{ts}$ is the dot product of $dy_t$ and the value $v_s$. And $dv_s$ is the sum of the $dy_t$ of
# all queries, each multiplied by the weight $p_{ts}$ that the query gave to key $s$.

# %%
dweights = dy @ v.T  # (T, S)
dv = weights.T @ dy  # (S, d_v)

# %% tags=["plot"]
figure = backward(y=dy, weights=dweights, v=dv)
show_figure(figure, "05_2_step_3", "After step 3: dy has given dweights and dv")

# %% [markdown]
# ## Step 2: P = softmax(A)
#
# Each row has a softmax of its own, so we consider one row and leave out its index $t$. With
# $e_s = \exp(a_s)$ and $Z = \sum_s e_s$, the weights are $p_s = e_s / Z$.
#
# What happens to the weight of a key $r$ if the score $a_s$ increases? Then $e_s$ and $Z$ increase, and the
# derivative of both is $e_s$. The quotient rule gives two cases:
#
# $$\begin{aligned}
# r = s: \quad \frac{\partial p_s}{\partial a_s} &= \frac{e_s Z - e_s e_s}{Z^2} = p_s - p_s p_s \\
# r \ne s: \quad \frac{\partial p_r}{\partial a_s} &= \frac{0 - e_r e_s}{Z^2} = -p_r p_s
# \end{aligned}$$
#
# So the weight $p_s$ grows and all others shrink. Together, these derivatives form the Jacobian of the row,
# the matrix $\mathrm{diag}(p) - p\,p^\top$. Here diag(p) has the entries of p on its diagonal, and 0
# elsewhere. The cell computes it for "Thinking".

# %%
p = weights[0]  # (S,)
jacobian = np.diag(p) - np.outer(p, p)  # (S, S)
print(jacobian)

# %% [markdown]
# Now we apply the chain rule. The score $a_s$ influences all weights $p_r$, so we sum over $r$. The case
# $r = s$ contributes the extra term $dp_s\, p_s$:
#
# $$\begin{aligned}
# da_s &= \sum_r dp_r \frac{\partial p_r}{\partial a_s} \\
# &= dp_s\, p_s - p_s \sum_r dp_r\, p_r \\
# &= p_s \left(dp_s - \sum_r dp_r\, p_r\right)
# \end{aligned}$$
#
# For each row, the Jacobian has S² numbers. The last line needs only one sum.
#
# The sum $\sum_r dp_r\, p_r$ is the mean of $dp$, weighted with the attention weights. So the gradient of a
# score is **the difference between its own $dp_s$ and the weighted mean**, multiplied by its attention
# weight.

# %%
average = (dweights * weights).sum(-1, keepdims=True)  # (T, 1)
dscores = weights * (dweights - average)  # (T, S)
print("rows of dscores sum to", dscores.sum(-1))

# %% tags=["check"]
for p, dp, da in zip(weights, dweights, dscores, strict=True):  # the Jacobian of each row
    assert_allclose(da, (np.diag(p) - np.outer(p, p)) @ dp, rtol=1e-9)
assert_allclose(dscores.sum(-1), 0, atol=1e-9)

# %% [markdown]
# **Question.** Each row of `dscores` sums to 0, except for rounding. Can you explain this without the
# formula?
#
# <details><summary>Answer</summary>
# If all scores of a query grow by a small number h, the loss changes by h times the sum of the row of
# `dscores`. But adding the same number to all scores changes no weight, so the loss stays the same, and the
# sum is 0.
# </details>

# %% tags=["plot"]
figure = backward(y=dy, weights=dweights, v=dv, scores=dscores)
show_figure(figure, "05_2_step_2", "After step 2: dweights has given dscores")
figure = score_map(dscores, words, words, numbers=True)
figure.axes[1].set(ylabel="dscores")
show_figure(figure, "05_dscores", "dscores: each row sums to 0")

# %% [markdown]
# ## Step 1: A = c Q Kᵀ
#
# A score is a dot product, $a_{ts} = c \sum_i q_{ti}\, k_{si}$. The query $t$ occurs in the scores of all
# keys $s$, and the key $s$ occurs in the scores of all queries $t$. The chain rule adds these contributions:
#
# $$\begin{aligned}
# dq_{ti} &= c \sum_s da_{ts}\, k_{si} & \quad dQ &= c\, dA\, K \\
# dk_{si} &= c \sum_t da_{ts}\, q_{ti} & \quad dK &= c\, dA^\top Q
# \end{aligned}$$
#
# So the gradient of a query is a sum of the keys, and the gradient of a key is a sum of the queries. The
# factors are the gradients of the scores, times $c$.

# %%
dq = c * dscores @ k  # (T, d_k)
dk = c * dscores.T @ q  # (S, d_k)

dq_package, dk_package, dv_package = attention_backward(dy, cache)
print("largest difference from the package:", abs(dq - dq_package).max())

# %% tags=["check"]
assert_allclose(dq, dq_package, rtol=1e-9)
assert_allclose(dk, dk_package, rtol=1e-9)
assert_allclose(dv, dv_package, rtol=1e-9)

# %% tags=["plot"]
figure = backward(y=dy, weights=dweights, v=dv, scores=dscores, q=dq, k=dk)
show_figure(figure, "05_2_step_1", "After step 1: dscores has given dq and dk")

# %% tags=["plot"]
places = attention_places("encoder.0.self_attention")
places["y"] = places.pop("z")
run = running_example()
figure = run.flow(layout, places, steps, axes)
caption = "Our sentence: colours show absolute values; with signs, each row of dscores sums to 0"
show_figure(figure, "05_2_running", caption)

# %% tags=["check"]
assert_allclose(run.gradients[places["scores"]].sum(-1), 0, atol=1e-12)

# %% [markdown]
# This is the whole backward pass of attention: four products of matrices, and one sum along each row. You
# find the same lines in `attention_backward` of `npformer/functional/attention.py`, with dropout (chapter 8)
# between them. Masks need no further line.
#
# ## The gradient check
#
# For the gradient check of lesson 0.2 we take other inputs, with three queries and four keys. If both numbers
# were equal, a matrix that is transposed by mistake could still have the right shape.

# %%
q3, k4 = rng.standard_normal((3, 8)), rng.standard_normal((4, 8))  # (T, d_k), (S, d_k)
v4 = rng.standard_normal((4, 6))  # (S, d_v): values may have a width of their own
report = gradcheck((attention, attention_backward), q3, k4, v4)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## A query learns where to attend
#
# The four values are the rows of the identity matrix, so entry $i$ of the output is the weight of key $i$.
# The query begins at 0, so its weights are all 1/4. We train it for 60 steps. The target is `values[2]`.

# %%
keys, values = rng.standard_normal((4, 8)), np.eye(4)  # (S, d_k), (S, d_v)
query, losses = np.zeros((1, 8)), []  # (T, d_k)
for _ in range(60):
    output, cache = attention(query, keys, values)  # (T, d_v)
    error = output - values[2]
    losses.append((error * error).sum())
    query = query - attention_backward(2 * error, cache)[0]
print(f"loss {losses[0]:.2f} → {losses[-1]:.2f}, weights {cache.weights[0].round(2)}")

# %% tags=["check"]
assert losses == sorted(losses, reverse=True)
assert cache.weights[0, 2] > 0.8

# %% [markdown]
# ## Summary
#
# - The backward pass takes the three steps of the forward pass in reverse order.
# - For Y = P V the gradients are $dP = dY\,V^\top$ and $dV = P^\top dY$.
# - The gradient of a score is $p_s (dp_s - \sum_r dp_r\,p_r)$; the gradients of a query's scores sum to 0.
# - For A = c Q Kᵀ the gradients are $dQ = c\,dA\,K$ and $dK = c\,dA^\top Q$.
# - The whole backward pass consists of four products of matrices and one sum for each row.

# %% [markdown]
# ## Questions
#
# **Question.** The gradient of the softmax needs the weights. Why does it not need the scores?
#
# <details><summary>Answer</summary>
# The Jacobian of a row is diag(p) − p pᵀ. It contains only the output p of the softmax.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 5` lists the exercises of this chapter. The gradient checker grades the
# backward passes.
#
# - `npformer exercise start softmax-backward`: write the backward pass of the softmax. It needs one sum for
#   each row, and no Jacobian.
# - `npformer exercise start attention-backward`: write the backward pass of attention, with the four products
#   of this lesson.
# - By hand: take two keys with weights p and 1 − p. Show that the row of dscores is p(1 − p)(dp₁ − dp₂) times
#   (1, −1). Then check the upper row of the figure of dscores with this formula.
# - Follow the gradients of this lesson through a real model: run
#   `npformer explore --model en-de "A dog runs." --open`, and in the address of the page replace `#` and
#   everything after it by `#direction=backward&step=encoder.0.self_attention.attention.scores`.
#
# **Next** on both routes: lesson 6.1 (`06_1_masks`), masks that hide keys from a query. Off the routes:
# lesson 5.3 (`05_3_what_the_scale_does`), the reason for the division by √dₖ.

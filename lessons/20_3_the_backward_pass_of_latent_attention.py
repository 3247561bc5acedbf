# %% [markdown]
# # 20.3 · The backward pass of latent attention
#
# *About 35 minutes. You need: the forward pass of latent attention (lesson 20.2,
# `20_2_two_stage_attention`), the gradient of the softmax (lesson 5.2,
# `05_2_the_backward_pass_of_attention`).*
#
# **After this lesson you can**
#
# - derive the gradient of a normalization, for two measures of length;
# - derive the gradients of both stages, and say how the first stage learns;
# - check the layer, and a whole model that contains it, with the gradient checker.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional import latent
from npformer.learn.course import show_figure
from npformer.models.if_then import ProgramLoss, RecipeReader
from npformer.nn.attention import LatentAttention
from npformer.plots import Step, cell_grid, gradient_flow

rng = np.random.default_rng(20)

# %% [markdown]
# ## The forward pass again
#
# Lesson 20.2 defined the steps of latent attention. The latent scores $s$ and the active scores $T$ go
# through one softmax each. The orientation decides how the results are combined:
#
# $$l = \mathrm{softmax}(s), \qquad D = \mathrm{softmax}(T) \quad \mathrm{(each\ row)}$$
#
# $$w = D\, l \quad \mathrm{(rows)} \qquad \mathrm{or} \qquad w = D^\top l \quad \mathrm{(columns)}$$
#
# $$\bar{w}_j = \frac{w_j}{n}, \quad n = \sum_m w_m, \qquad o = \sum_j \bar{w}_j v_j$$
#
# The backward pass begins with $do$, the gradient of $o$. It takes the steps in reverse order, as in the
# second picture.

# %%
latent_scores = rng.standard_normal(8)  # (S,)
active_scores = rng.standard_normal((8, 8))  # (S, S)
v = rng.standard_normal((8, 3))  # (S, L)
do = rng.standard_normal(3)  # (L,)
caches = {
    name: latent.latent_attend(latent_scores, active_scores, v, orientation=name)[1]
    for name in ("rows", "columns")
}
l_w, d_w = caches["rows"].latent, caches["rows"].active  # (S,), (S, S)
w = {"rows": d_w @ l_w, "columns": d_w.T @ l_w}  # (S,)
unit = {name: w[name] / w[name].sum() for name in w}  # (S,) the active weights

# %% tags=["plot"]
layout = """s  l  w  unit  o
            T  D  .  v     ."""
steps = {
    "l": Step("softmax", ["s"]),
    "D": Step("softmax", ["T"]),
    "w": Step("Dᵀ l", ["l", "D"]),
    "unit": Step("w / n", ["w"]),
    "o": Step("unit v", ["unit", "v"]),
}
arrays = {"s": latent_scores, "l": l_w, "T": active_scores, "D": d_w}
arrays |= {"w": w["columns"], "unit": unit["columns"], "v": v, "o": unit["columns"] @ v}
axes = dict.fromkeys(arrays, "S") | {"T": "S S", "D": "S S", "v": "S L", "o": "L"}
figure = gradient_flow(layout, arrays, steps, axes=axes)
show_figure(figure, "20_3_forward", "Forward, for the orientation columns; unit is w̄")
empty = dict.fromkeys(arrays)
figure = gradient_flow(layout, arrays, steps, empty | {"o": do}, axes=axes)
show_figure(figure, "20_3_backward", "Backward: do leads to dv, and on two paths to ds and dT")

# %% [markdown]
# ## The weighted mean
#
# The last step is $o = \sum_j \bar{w}_j v_j$. It is the same as in lesson 5.2. The gradient of a weight is
# a dot product with its value, and the gradient of a value is $do$ times its weight:
#
# $$d\bar{w}_j = do \cdot v_j, \qquad dv_j = \bar{w}_j\, do$$

# %%
dunit = v @ do  # (S,) the gradient of w̄
dv = {name: unit[name][:, None] * do for name in w}  # (S, L)

# %% [markdown]
# ## The normalization
#
# How does $\bar{w}_i = w_i / n$ change if $w_j$ increases? There are two effects:
#
# - The numerator of $\bar{w}_j$ increases. This contributes $1/n$, but only for $i = j$.
# - The denominator $n$ increases too. This reduces *every* $\bar{w}_i$ by $w_i / n^2 = \bar{w}_i / n$.
#
# Let $[i = j]$ be 1 for $i = j$ and 0 otherwise. The chain rule sums over $i$:
#
# $$\begin{aligned}
# \frac{\partial \bar{w}_i}{\partial w_j} &= \frac{1}{n} ([i = j] - \bar{w}_i) \\
# dw_j &= \sum_i d\bar{w}_i \frac{\partial \bar{w}_i}{\partial w_j}
# = \frac{1}{n} \left(d\bar{w}_j - \sum_i d\bar{w}_i\, \bar{w}_i\right)
# \end{aligned}$$
#
# The sum in the last bracket is the mean of $d\bar{w}$, weighted with the active weights. The gradient of
# the softmax has the same form: a weight gets the *difference* between its own gradient and this mean.

# %%
dw = {}
for name in w:
    mean = (dunit * unit[name]).sum()
    dw[name] = (dunit - mean) / w[name].sum()  # (S,)
    print(f"{name:8} dw =", dw[name].round(2))

# %% tags=["check"]
for name in w:
    jacobian = (np.eye(8) - unit[name][:, None]) / w[name].sum()  # row i, column j
    assert_allclose(dw[name], dunit @ jacobian, rtol=1e-9)

# %% [markdown]
# **Question.** All entries of $d\bar{w}$ are equal. What is $dw$, and why?
#
# <details><summary>Answer</summary>
# It is 0, because the mean is equal to each entry. The active weights always sum to 1, so their sum cannot
# change, whatever $w$ does.
# </details>
#
# The package has a second measure, the Euclidean length $n = \sqrt{\sum_m w_m^2}$, as in the authors'
# program. Its derivative is not 1 but
#
# $$\frac{\partial n}{\partial w_j} = \frac{w_j}{n} = \bar{w}_j$$
#
# So the effect of the denominator gets one more factor $\bar{w}_j$:
#
# $$dw_j = \frac{1}{n} \left(d\bar{w}_j - \bar{w}_j \sum_i d\bar{w}_i\, \bar{w}_i\right)$$

# %%
y, cache = latent.unit_weights(w["rows"], "euclidean")
by_formula = (dunit - y * (dunit * y).sum()) / np.linalg.norm(w["rows"])
print("euclidean:", by_formula.round(2))

# %% tags=["check"]
assert_allclose(latent.unit_weights_backward(dunit, cache), by_formula, rtol=1e-12)

# %% [markdown]
# ## The two stages
#
# Now $w$ is computed from $D$ and $l$. In each orientation this is a product of a matrix and a vector:
#
# $$\begin{aligned}
# \mathrm{rows:} \quad w_i &= \sum_j D_{ij}\, l_j & \quad dD_{ij} &= dw_i\, l_j
# & \quad dl_j &= \sum_i dw_i\, D_{ij} \\
# \mathrm{columns:} \quad w_j &= \sum_i l_i\, D_{ij} & \quad dD_{ij} &= l_i\, dw_j
# & \quad dl_i &= \sum_j D_{ij}\, dw_j
# \end{aligned}$$
#
# Read the second line from left to right:
#
# - The entry $D_{ij}$ gets $dw_j$, the gradient at the word to which it points. The factor $l_i$ is the
#   latent weight of the word that points.
# - The latent weight $l_i$ gets the mean of $dw$, weighted with row $i$ of $D$.
#
# So **the gradient of the first stage passes through the second stage**. If $D$ points to the wrong words,
# the latent weights get no useful gradient. Lesson 20.4 shows a consequence of this.

# %% [markdown]
# Finally there are two softmaxes. Their gradient is known from lesson 5.2. For a vector $p$ of weights it
# is $ds = p\,(dp - \sum dp\, p)$. It is applied to $l$ once, and to each row of $D$.

# %%
dd = {"rows": np.outer(dw["rows"], l_w), "columns": np.outer(l_w, dw["columns"])}  # (S, S)
dl = {"rows": d_w.T @ dw["rows"], "columns": d_w @ dw["columns"]}  # (S,)
dlatent_scores, dactive_scores = {}, {}
for name in w:
    dlatent_scores[name] = l_w * (dl[name] - (dl[name] * l_w).sum())  # (S,)
    mean = (dd[name] * d_w).sum(-1, keepdims=True)  # (S, 1)
    dactive_scores[name] = d_w * (dd[name] - mean)  # (S, S)
    print(f"{name:8} dlatent_scores =", dlatent_scores[name].round(3))

# %% tags=["check"]
for name in w:
    found = latent.latent_attend_backward(do, caches[name])
    ours = dlatent_scores[name], dactive_scores[name], dv[name]
    for mine, package in zip(ours, found, strict=True):
        assert_allclose(mine, package, rtol=1e-9, atol=1e-15)
print("dlatent_scores, dactive_scores and dv are those of the package, in both orientations")

# %% tags=["plot"]
found = {"o": do, "unit": dunit, "v": dv["columns"], "w": dw["columns"], "D": dd["columns"]}
found |= {"l": dl["columns"], "s": dlatent_scores["columns"], "T": dactive_scores["columns"]}
figure = gradient_flow(layout, arrays, steps, found, axes=axes)
show_figure(figure, "20_3_all", "All gradients, for the orientation columns")

# %% tags=["plot"]
positions = [str(j) for j in range(8)]
style = {"rows": positions, "columns": positions, "numbers": True, "shade": True}
figure = cell_grid(dd["columns"], **style)
show_figure(figure, "20_dd", "dD in columns: row i is dw times the latent weight of word i")

# %% [markdown]
# ## The scores
#
# The scores are linear in $e$. The latent score is $s_j = e_j \cdot u$, and the active scores are
# $T = e V$. Where $e$ also serves as the values, it is used three times. So its gradient is the sum of
# three terms:
#
# $$\begin{aligned}
# du &= \sum_j ds_j\, e_j & \quad dV &= e^\top dT \\
# de_j &= ds_j\, u + (dT\, V^\top)_j + dv_j
# \end{aligned}$$
#
# A sentence of S words uses only the first S columns of $V$. The gradient of the other columns is 0.

# %%
layer = LatentAttention(6, 11, rng=rng, dtype=np.float64)  # E = 6, J = 11 positions
e = rng.standard_normal((2, 8, 6))  # (B, S, E)
o, cache = layer.forward(e)
do = rng.standard_normal(o.shape)  # (B, E)
ds, dt, dv = latent.latent_attend_backward(do, cache.attend)  # (B, S), (B, S, S), (B, S, E)
u, big_v = layer.latent_weight.value[:, 0], layer.active_weight.value[:, :8]  # (E,), (E, S)
de = ds[..., None] * u + dt @ big_v.T + dv  # (B, S, E)
du = np.einsum("bs,bsd->d", ds, e)  # (E,) summed over the sentences
dbig_v = np.einsum("bsd,bsj->dj", e, dt)  # (E, S)

# %% tags=["check"]
assert_allclose(layer.backward(do, cache), de, rtol=1e-12)
assert_allclose(layer.latent_weight.grad[:, 0], du, rtol=1e-9)
assert_allclose(layer.active_weight.grad[:, :8], dbig_v, rtol=1e-9)
assert not layer.active_weight.grad[:, 8:].any()
print("de, du and dV are those of the layer")

# %% [markdown]
# ## Is it right?
#
# The gradient check tests the layer in both orientations and with both measures, with padding. Then it
# tests a whole small model. `RecipeReader` contains a bidirectional LSTM and two latent attentions, one for
# the trigger and one for the action. The loss is the sum of two cross-entropies.

# %%
mask = np.arange(11) < np.array([[8], [8]])  # (B, S + 3)
padded = np.concatenate([e, rng.standard_normal((2, 3, 6))], 1)  # (B, S + 3, E)
for orientation in ("rows", "columns"):
    for measure in ("sum", "euclidean"):
        settings = {"orientation": orientation, "measure": measure, "dtype": np.float64}
        assert gradcheck(LatentAttention(6, 11, rng=rng, **settings), padded, mask=mask).ok
sizes = {"d_model": 4, "d_hidden": 3, "max_length": 7}
small = RecipeReader(9, 3, 4, **sizes, rng=rng, dtype=np.float64)
ids = np.array([[4, 5, 6, 5, 8], [7, 4, 6, 0, 0]])  # (B, S), 0 is padding
report = gradcheck(ProgramLoss(small), ids, np.array([2, 0]), np.array([1, 3]))
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Summary
#
# - The normalization subtracts the weighted mean of the gradient and divides by the length.
# - With the Euclidean length, the subtracted mean gets one more factor $\bar{w}_j$.
# - $w$ is a product of $D$ and $l$, so each of them gets the gradient of $w$ times the other one.
# - The gradient of the latent weights passes through $D$: the first stage learns through the second.
# - In this layer $e$ is used up to three times, and its gradient is the sum of three terms.

# %% [markdown]
# ## Questions
#
# **Question.** In the orientation "columns", $\sum_j w_j$ is always 1. Does the backward pass of the
# normalization still change the gradient?
#
# <details><summary>Answer</summary>
# Yes, it subtracts the weighted mean. But this mean is the same number for all words, and the softmax
# gradients of D and l remove such a number again. So the scores get the same gradient with and without it.
# </details>
#
# **Question.** A word has the latent weight 0. Which row of $dD$ is 0 in the orientation "columns"?
#
# <details><summary>Answer</summary>
# The row of this word, because dDᵢⱼ = lᵢ dwⱼ.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 20` lists them.
#
# - `npformer exercise start unit-weights-backward`: write the backward pass of a normalization of weights. It
#   needs one sum for each row.
# - `npformer exercise start latent-attend-backward`: write the backward pass of latent attention, from the
#   output o to both kinds of scores and to the values.
# - By hand: verify the first answer above. Show that the softmax gradient does not change if the same
#   number is added to all entries of dp.
#
# The bug zoo contains a mistake in this layer: `npformer bugs start 22`.
#
# **Next**: lesson 20.4 (`20_4_training_latent_attention`), which trains four models and removes parts of
# them.

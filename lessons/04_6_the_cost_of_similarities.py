# %% [markdown]
# # 4.6 · The perceptron, and the cost of similarity functions
#
# *About 25 minutes. You need: similarity functions (lesson 4.5, `04_5_similarity_functions`), the linear
# layer (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - derive the gradients of perceptron similarity, which is also called additive attention;
# - count the parameters and the stored numbers of the four similarity functions;
# - say why the paper chose the dot product.
#
# `attention: queries and keys → [SCORES] → mask → softmax → mean of values`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import similarity
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(4)
q, k = rng.standard_normal((3, 4)), rng.standard_normal((5, 6))  # (T, d_q), (S, d_k)
dscores = rng.standard_normal((3, 5))  # (T, S) the gradient of the scores

# %% [markdown]
# ## A perceptron for each pair
#
# In lesson 4.5, concat similarity gave every query the same weights. The reason was that a score was the sum
# of a number for the query and a number for the key.
#
# **Perceptron** similarity avoids this weakness with a nonlinear function, tanh. It is applied to the sum of
# the two parts:

# %% tags=["plot"]
figure = shape_flow(
    "q qW g h scores \n k kU . . .",
    {"qW": "W: q", "kU": "U: k", "g": "sum: qW kU", "h": "tanh: g", "scores": "· v: h"},
    {"q": "T 4", "k": "S 6", "qW": "T J", "kU": "S J", "g": "T S", "h": "T S", "scores": "T S"},
)
caption = "Perceptron similarity: g and h have J numbers for each query and key"
show_figure(figure, "04_6_shapes", caption)

# %% [markdown]
# Let $g$ be the sum of the two parts and $h$ its tanh, both with J entries for each pair. Because of the
# tanh, a score is no longer a sum of a number for the query and a number for the key:
#
# $$\begin{aligned}
# g_{tsj} &= \sum_i q_{ti}\, w_{ij} + \sum_i k_{si}\, u_{ij} \\
# h_{tsj} &= \tanh g_{tsj}, \qquad a_{ts} = \sum_j v_j\, h_{tsj}
# \end{aligned}$$
#
# The derivative of tanh is $1 - \tanh^2$. With this, the chain rule gives the gradients of $v$ and $g$. From
# there on, $W$ and $U$ are weights of linear layers. The product $q_t W$ is used for all keys $s$, so its
# gradient is the sum of $dg$ over $s$. In the same way, the gradient of $k_s U$ is a sum over $t$.

# %% [markdown]
# $$\begin{aligned}
# dv_j &= \sum_{ts} da_{ts}\, h_{tsj} \\
# dg_{tsj} &= da_{ts}\, v_j\, (1 - h_{tsj}^2) \\
# dW &= Q^\top \left(\sum_s dg\right), \quad dQ = \left(\sum_s dg\right) W^\top \\
# dU &= K^\top \left(\sum_t dg\right), \quad dK = \left(\sum_t dg\right) U^\top
# \end{aligned}$$
#
# In the code, the vector $v$ is called `out`.

# %%
w, u, out = rng.standard_normal((4, 7)), rng.standard_normal((6, 7)), rng.standard_normal(7)
scores, cache = similarity.perceptron_similarity(q, k, w, u, out)
hidden = np.tanh((q @ w)[:, None] + (k @ u)[None])  # (T, S, J)
dg = dscores[..., None] * out * (1 - hidden**2)  # (T, S, J)
to_q, to_k = dg.sum(1), dg.sum(0)  # (T, J), (S, J)
dout = np.einsum("ts,tsj->j", dscores, hidden)  # (J,)
own = (to_q @ w.T, to_k @ u.T, q.T @ to_q, k.T @ to_k, dout)
show(cache)

# %% tags=["check"]
of_package = similarity.perceptron_similarity_backward(dscores, cache)
for one, other in zip(own, of_package, strict=True):
    assert_allclose(one, other, rtol=1e-9)
assert_allclose(scores, hidden @ out, rtol=1e-12)
stacked = np.concatenate([w, u])  # (d_q + d_k, J), W in Luong's form
assert_allclose(scores[1, 2], out @ np.tanh(np.concatenate([q[1], k[2]]) @ stacked), rtol=1e-12)

# %% [markdown]
# ## What the four functions cost
#
# The cache contains the array `hidden`. It has J numbers for *each pair* of a query and a key. The other
# similarity functions do not need an array of this size. This is the reason for the choice of the paper, in
# section 3.2.1. It calls the perceptron **additive attention**:
#
# > While the two are similar in theoretical complexity, dot-product attention is much faster and more
# > space-efficient in practice, since it can be implemented using highly optimized matrix multiplication
# > code.
#
# We count for one sentence of 100 tokens, with the width of the paper: $d_q$, $d_k$ and J are 512. The first
# number is the number of parameters. The second is the number of entries that are kept for the backward pass,
# in addition to q and k.

# %%
n, pairs = 512, 100 * 100
four = {  # parameters, kept for backward besides q and k, shapes for a gradient check
    "dot": (0, 0, [(3, 4), (5, 4)]),
    "general": (n * n, 100 * n, [(3, 4), (5, 6), (4, 6)]),
    "concat": (2 * n, 0, [(3, 4), (5, 6), (10,)]),
    "perceptron": (2 * n * n + n, pairs * n, [(3, 4), (5, 6), (4, 7), (6, 7), (7,)]),
}
for name, (learned, kept, shapes) in four.items():
    pair = [getattr(similarity, f"{name}_similarity{which}") for which in ("", "_backward")]
    report = gradcheck(tuple(pair), *[rng.standard_normal(shape) for shape in shapes])
    assert report.ok
    verdict = str(report).splitlines()[0]
    print(f"parameters {learned:8,}   kept for backward {kept:10,}   {verdict}")

# %% [markdown]
# The last figure applies all four functions to the sentence of lesson 4.4 (`04_4_query_key_and_value`), with
# $x$ as queries and as keys. General similarity uses the matrix $W^Q {W^K}^\top$ of that lesson, so actions
# attend to animals. The other parameters are random.

# %%
words = ["the", "dog", "saw", "the", "bird"]
x = np.array(  # (T, D)
    [  # animal, flies, action, article
        [0.0, 0.0, 0.0, 2.0],
        [2.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 2.0, 0.0],
        [0.0, 0.0, 0.0, 2.0],
        [1.6, 1.2, 0.0, 0.0],
    ]
)
w_q = np.array([[0, 1.0], [0, 0], [1.0, 0], [0, 0]])  # (D, 2) animal -> column 1, action -> 0
w_k = np.array([[1.0, 0], [0, 0], [0, 0], [0, 1.0]])  # (D, 2) animal -> column 0, article -> 1
pair_weights = {
    "dot": (),
    "general": (w_q @ w_k.T,),
    "concat": (rng.standard_normal(8),),
    "perceptron": tuple(rng.standard_normal(shape) for shape in [(4, 4), (4, 4), (4,)]),
}
attended = {}  # each (T, T)
for name, learned in pair_weights.items():
    attended[name], _ = softmax(getattr(similarity, f"{name}_similarity")(x, x, *learned)[0])

# %% tags=["check"]
assert_allclose(attended["concat"], np.tile(attended["concat"][0], (5, 1)), rtol=1e-12)

# %% tags=["plot"]
grids = []
for name, weights_of in attended.items():
    rows = words if name == "dot" else None
    grids.append(Grid(weights_of, name, "r", rows=rows, columns=words, numbers=True, shade=True))
caption = "The same tokens, compared in four ways; with concat all five rows are equal"
show_figure(cell_product(grids), "04_weights", caption)

# %% [markdown]
# **Your turn.** In the terminal, print the cache of the perceptron with `s cache`. Then compute the second of
# the four grids with `!softmax(x @ (w_q @ w_k.T) @ x.T)[0].round(2)`.

# %% [markdown]
# ## What the source documents say
#
# > - *一步步解析Attention is All You Need!* lists concat and perceptron as two functions. Luong's published
# >   concat also contains the tanh: v · tanh(W [q; k]). This is the perceptron, with W and U stacked.
# > - The paper compares two functions: additive attention, which is the perceptron, and dot-product
# >   attention. It says that for large dₖ "additive attention outperforms dot product attention without
# >   scaling". The colour wheel of lesson 4.3 (`04_3_from_a_dictionary_to_a_soft_lookup`) shows
# >   why: a query of length 64 had almost no gradient.

# %% [markdown]
# ## Summary
#
# - Perceptron similarity applies tanh to the sum of a part for the query and a part for the key.
# - It is also called additive attention, and it needs J numbers for each pair of a query and a key.
# - Its gradients are those of two linear layers, where gradients are summed over keys or over queries.
# - Dot similarity needs no parameters, and keeps nothing besides q and k.
# - The dot product is a product of matrices, for which fast code exists. So the paper uses it.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the gradient of $q_t W$ a sum over all keys?
#
# <details><summary>Answer</summary>
# The product $q_t W$ is computed once and used in the scores of query t with all keys s. The chain rule adds
# the gradients of all these uses.
# </details>
#
# **Question.** A sentence has 200 tokens instead of 100. By which factor does the stored array of the
# perceptron grow?
#
# <details><summary>Answer</summary>
# By 4, because it has J numbers for each pair of a query and a key, and there are four times as many pairs.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these on paper, and check them in Python. The command `npformer exercise list 4` lists the exercises
# of this chapter that are graded.
#
# - Show that the perceptron without tanh is concat similarity. What is $w$, in terms of $W$, $U$ and $v$?
# - How many multiplications does each of the four functions need for 100 queries and 100 keys of width 512?
#
# **Next**: lesson 5.1 (`05_1_scaled_dot_product_attention`), the attention of the Transformer.

# %% [markdown]
# # 5.1 · Scaled dot-product attention
#
# *About 30 minutes. You need: queries, keys and values (lesson 4.4, `04_4_query_key_and_value`), the
# softmax, products of matrices.*
#
# **After this lesson you can**
#
# - compute attention for one token in six steps, by hand;
# - compute attention for a whole sentence in three lines of NumPy;
# - say which arrays the forward pass stores for the backward pass, and why.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.functional.attention import attention
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.learn.course.running import attention_places, running_example
from npformer.plots import Grid, Step, cell_product, gradient_flow, softmax_panels

rng = np.random.default_rng(5)
words = ["Thinking", "Machines"]

# %% [markdown]
# ## The layer in one picture
#
# Chapter 4 explained the idea of attention. Every token has a query, a key and a value. The new vector of a
# token is a weighted average of the values of all tokens.

# %% tags=["plot"]
example = np.random.default_rng(0).standard_normal((3, 4, 6))  # q, k and v of four tokens
output, example_cache = attention(*example)
layout = """q  scores  weights  y
            k    .        v     ."""
steps = {
    "scores": Step("q kᵀ / √dₖ", ["q", "k"]),
    "weights": Step("softmax", ["scores"]),
    "y": Step("weights v", ["weights", "v"]),
}
arrays = dict(zip("qkv", example, strict=True)) | {"y": output}
arrays |= {"scores": example_cache.scores, "weights": example_cache.weights}
axes = {"q": "T dₖ", "k": "S dₖ", "v": "S dᵥ", "scores": "T S", "weights": "T S", "y": "T dᵥ"}
figure = gradient_flow(layout, arrays, steps, axes=axes)
caption = "Attention for four tokens: three steps lead from q, k and v to the output y"
show_figure(figure, "05_1_attention", caption)

# %% [markdown]
# A rectangle is an array: the stronger the colour, the larger the absolute value. Its axes are T queries, S
# keys, or the width of a vector, $d_k$ or $d_v$. A circle is a step:
#
# 1. Each query is compared with each key. This gives the scores.
# 2. The softmax turns each row of scores into weights that sum to 1.
# 3. Each output is an average of the values, with these weights.
#
# Here q, k and v come from the same tokens $x$, so T = S.

# %% [markdown]
# ## The definition
#
# This is **scaled dot-product attention**. *Attention Is All You Need* defines it in section 3.2.1:
#
# > We compute the dot products of the query with all keys, divide each by √dₖ, and apply a softmax function
# > to obtain the weights on the values.
#
# The rows of $Q$, $K$ and $V$ are the queries, keys and values. Equation (1) of the paper is
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# **Question.** Of the arrays q, k and v, two must have the same width, and two must have the same number of
# rows. Which ones?
#
# <details><summary>Answer</summary>
# Queries and keys must have the same width, because each score is a dot product of a query and a key. Keys
# and values must have the same number of rows, because each key belongs to one value.
# </details>

# %% [markdown]
# ## An example with known scores
#
# *图解transformer*, a Chinese version of Alammar's *The Illustrated Transformer*, divides the formula into
# six steps. Its example is the sentence "Thinking Machines". For the query of "Thinking", the two scores are
# 112 and 96. After the division by $\sqrt{d_k} = 8$ they are 14 and 12. The softmax turns them into the
# weights .88 and .12.
#
# The document says that it invented these scores. The next cell constructs weight matrices that really
# produce them. It solves linear equations with `np.linalg.pinv`, the pseudo-inverse of a matrix. You may skip
# this cell: in a trained model, the weight matrices come from training.

# %%
d_model, d_k = 512, 64  # the sizes of the paper
x = rng.standard_normal((2, d_model))  # (T, D) the two tokens
wanted = np.array([[112.0, 96], [80, 104]])  # a row for each query, a column for each key

q_wanted = rng.standard_normal((2, d_k))
k_wanted = rng.standard_normal((2, d_k))
k_wanted += (np.linalg.pinv(q_wanted) @ (wanted - q_wanted @ k_wanted.T)).T

from_x = np.linalg.pinv(x)  # (D, T): x @ from_x is the identity
w_q, w_k = from_x @ q_wanted, from_x @ k_wanted  # (D, d_k)
w_v = from_x @ rng.standard_normal((2, d_k))  # (D, d_v), in the paper d_v = d_k

# %% [markdown]
# ## Six steps, for the word "Thinking"
#
# **Step 1.** Multiply the vector of each token by three matrices. The results are its query, its key and its
# value. Their names count from 1, as in the document: $q_1$ is `q[0]`.

# %%
q, k, v = x @ w_q, x @ w_k, x @ w_v  # each (T, 64)
print("q1 begins", q[0, :3])
print("k1 begins", k[0, :3], "  k2", k[1, :3])
print("v1 begins", v[0, :3], "  v2", v[1, :3])

# %% [markdown]
# **Step 2.** Compute the **scores** of "Thinking". A score is the dot product of the query with one key. The
# query of "Thinking" is compared with both keys, including its own. We write the dot product as a loop here,
# so that nothing is hidden.

# %%
score = np.zeros(2)
for s in range(2):
    for i in range(d_k):
        score[s] += q[0, i] * k[s, i]
    print(f"q1 · k{s + 1} = {score[s]:.4f}")

# %% [markdown]
# **Step 3.** Divide the scores by $\sqrt{d_k} = \sqrt{64} = 8$. Lesson 5.3
# (`05_3_what_the_scale_does`) explains the reason for this division.

# %%
score = score / math.sqrt(d_k)
print(score)

# %% tags=["check"]
assert_allclose(score * 8, [112, 96])
assert_allclose(score, [14, 12])

# %% [markdown]
# **Step 4.** Apply the **softmax**. It takes the exponential of each score and divides by the sum of the
# exponentials. The results are positive and sum to 1. They are the **attention weights** of the query.
#
# Only the differences between the scores matter. Here is the first weight, where numerator and denominator
# are divided by $\exp(12)$:
#
# $$p_1 = \frac{\exp(14)}{\exp(14) + \exp(12)} = \frac{\exp(2)}{\exp(2) + 1} \approx 0.88$$

# %%
weight = np.exp(score) / np.exp(score).sum()
print(weight, "their sum", weight.sum())

# %% tags=["check"]
assert_allclose(weight, [0.880797, 0.119203], atol=1e-6)
assert_allclose(weight[0], math.e**2 / (math.e**2 + 1))

# %% [markdown]
# **Step 5.** Multiply each value by its weight. **Step 6.** Add the results. The sum is $y_1$, the new vector
# of "Thinking". The figure shows the first four of its 64 entries.

# %%
weighted = [weight[s] * v[s] for s in range(2)]
y1 = weighted[0] + weighted[1]  # (d_v,)
print("y1 begins", y1[:3])

# %% tags=["plot"]
parts = [
    f"{weight[0]:.2f} ×",
    Grid(v[0, :4], "$v_1$", "v", numbers=True),
    f"+   {weight[1]:.2f} ×",
    Grid(v[1, :4], "$v_2$", "v", numbers=True),
    "=",
    Grid(y1[:4], "$y_1$", "z", numbers=True),
]
caption = "Steps 5 and 6: y1 is a weighted average of the values, and mostly v1"
show_figure(cell_product(parts), "05_sum", caption)

# %% [markdown]
# **Question.** Suppose that both scores were 2 larger, 16 and 14 after the division. What would the weights
# be?
#
# <details><summary>Answer</summary>
# They would be the same, .88 and .12, because the difference of the scores is still 2. Adding the same number
# to all scores of a query does not change its weights.
# </details>

# %% [markdown]
# ## All tokens at once
#
# Steps 2 to 6 have to be done for every query. With matrices, they fit into three lines. Let
# $c = 1/\sqrt{d_k}$:
#
# $$A = c\, Q K^\top, \qquad P = \mathrm{softmax}(A), \qquad Y = P V$$
#
# - $A$ holds the scores. Its shape is (T, S), with one row for each query and one column for each key.
# - $P$ holds the weights. It has the same shape, and each of its rows sums to 1.
# - $Y$ holds the outputs, with shape (T, d_v). Each of its rows is a weighted average of the rows of $V$.
#   Here, as in lesson 4.1 (`04_1_attention_without_parameters`), this is the output of the whole layer;
#   lesson 4.4 called it $Z$.
#
# The cell computes the same result twice, first with loops and then with the three lines.

# %%
slow = np.zeros_like(v)
for t in range(2):
    e = [math.exp(sum(q[t, i] * k[s, i] for i in range(d_k)) / 8) for s in range(2)]
    for s in range(2):
        slow[t] += e[s] / sum(e) * v[s]

c = 1 / math.sqrt(d_k)
scores = c * q @ k.T  # (T, S)
weights, _ = softmax(scores)  # (T, S)
y = weights @ v  # (T, d_v)
print(scores, weights, sep="\n")

# %% tags=["check"]
assert_allclose(y, slow, rtol=1e-9)
assert_allclose(y[0], y1, rtol=1e-9)

# %% tags=["plot"]
figure = softmax_panels(scores, weights, words, words, numbers=True)
caption = 'A row is a query, a column a key: "Thinking" attends to itself with weight .88'
show_figure(figure, "05_softmax", caption)

# %% [markdown]
# The function `attention` of the package gives the same result. Like every forward function, it also returns
# a cache for the backward pass. Three decisions about this cache are worth knowing:
#
# - It keeps `q`, `k` and `v`, because each of them occurs in the gradient of another array.
# - It keeps the weights, because the gradient of a softmax can be computed from its *output*.
# - It does not keep the scores, because no formula of the backward pass needs them. (`cache.scores` computes
#   them again.)

# %%
y_package, cache = attention(q, k, v)
show(cache)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(scores, cache.scores, rtol=1e-12)

# %% tags=["plot"]
run = running_example()
places = attention_places("encoder.0.self_attention")
own, made = (run.values[places[name]][1] for name in ("scores", "weights"))  # (S, S)
figure = softmax_panels(own, made, run.source, run.source)
caption = 'Our sentence in a head of the translator: "dogs" attends to itself, "the" to "snow"'
show_figure(figure, "05_1_running", caption)

# %% tags=["check"]
to = {token: run.source[row.argmax()] for token, row in zip(run.source, made, strict=True)}
assert (to["dogs"], to["the"]) == ("dogs", "snow")

# %% [markdown]
# Lesson 5.2 (`05_2_the_backward_pass_of_attention`) computes the backward pass from this cache.
#
# **Your turn.** In the terminal, a line after `!` is run as Python. Change one entry of the query of
# "Thinking" with `!q[0, 0] += 1`. Compute the weights again with `!attention(q, k, v)[1].weights`. Which row
# changes, and why only this one?

# %% [markdown]
# ## Summary
#
# - Attention computes, for every query, a weighted average of the values:
#   $Y = \mathrm{softmax}(c\,QK^\top)\,V$ with $c = 1/\sqrt{d_k}$.
# - A score is the dot product of a query and a key, divided by $\sqrt{d_k}$.
# - The weights of a query are positive and sum to 1; only the differences between its scores matter.
# - With matrices, all queries are computed at once: scores (T, S), weights (T, S), outputs (T, d_v).
# - The cache keeps q, k, v and the weights, but not the scores.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the cache of `attention` contain the weights, but not the scores?
#
# <details><summary>Answer</summary>
# The gradient of the softmax is computed from its output, the weights. None of the formulas of the backward
# pass contains the scores.
# </details>
#
# **Question.** A sentence has 10 tokens, and d_k is 64. What are the shapes of the scores and of the output?
#
# <details><summary>Answer</summary>
# The scores have the shape (10, 10): one row for each query, one column for each key. The output has the
# shape (10, 64), the same as the values.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 5` lists the exercises of this chapter. The gradient checker grades the
# backward passes.
#
# - `npformer exercise start softmax`: write a softmax whose exponentials do not overflow.
# - `npformer exercise start attention`: write the three lines of attention for any number of leading axes.
# - By hand: a query has the scores 3, 3 and 0 after the division. Compute its three weights, and check them
#   with `softmax`.
# - Read how a score is computed from real numbers: run `npformer explore --model en-de "A dog runs." --open`,
#   and in the address of the page replace `#` and everything after it by
#   `#step=encoder.0.self_attention.attention.scores`.
#
# **Next**: lesson 5.2 (`05_2_the_backward_pass_of_attention`), the gradients of queries, keys and values.

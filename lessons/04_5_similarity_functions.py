# %% [markdown]
# # 4.5 · Similarity functions
#
# *About 30 minutes. You need: queries and keys (lesson 4.4, `04_4_query_key_and_value`), the gradient of the
# scores (lesson 4.2, `04_2_the_gradient_of_self_attention`).*
#
# **After this lesson you can**
#
# - name four functions that compare a query and a key;
# - derive the gradients of dot, general and concat similarity;
# - explain why concat similarity gives every query the same weights.
#
# `attention: queries and keys → [SCORES] → mask → softmax → mean of values`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.functional import similarity
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.plots import Step, gradient_flow

rng = np.random.default_rng(4)

# %% [markdown]
# ## Four ways to compare
#
# The earlier lessons compared a query and a key with the dot product. The paper calls this part of attention
# the compatibility function. We call it the **similarity function**. *一步步解析Attention is All You Need!*
# lists four of them. They come from the years in which attention was used with recurrent networks
# (Bahdanau et al. 2015; Luong et al. 2015):
#
# $$\begin{aligned}
# \mathrm{dot:} \quad s &= q \cdot k \\
# \mathrm{general:} \quad s &= (q W) \cdot k \\
# \mathrm{concat:} \quad s &= w \cdot [q; k] \\
# \mathrm{perceptron:} \quad s &= v \cdot \tanh(q W + k U)
# \end{aligned}$$
#
# The brackets $[q; k]$ mean that the two vectors are written one after the other. In this lesson, queries
# have the width $d_q$ and keys the width $d_k$. The similarity function is the first step of attention:

# %% tags=["plot"]
same = np.random.default_rng(0)
arrays = {"q": same.standard_normal((3, 4)), "k": same.standard_normal((5, 6))}
w = same.standard_normal((4, 6))  # (d_q, d_k)
arrays["scores"], _ = similarity.general_similarity(arrays["q"], arrays["k"], w)
arrays["weights"], _ = softmax(arrays["scores"])
steps = {"scores": Step("similarity", ["q", "k"]), "weights": Step("softmax", ["scores"])}
axes = {"q": "T 4", "k": "S 6", "scores": "T S", "weights": "T S"}
figure = gradient_flow("q scores weights \n k . .", arrays, steps, axes=axes)
caption = "Each query is compared with each key; here the widths are 4 and 6"
show_figure(figure, "04_5_similarity", caption)

# %% [markdown]
# **Question.** Which of the four functions has no parameters? Which of them work if $d_q$ and $d_k$ are
# different?
#
# <details><summary>Answer</summary>
# The first one has no parameters, because q and k are not parameters. The other three work for different
# widths.
# </details>

# %% [markdown]
# This lesson treats the first three functions, and lesson 4.6 (`04_6_the_cost_of_similarities`) the fourth.
# For each of them we derive the gradients from $dA$, the gradient of the scores.
#
# **Dot** has no parameters. Query and key must have the same width. Lesson 4.2 derived its gradients:
# $dQ = dA\, K$ and $dK = dA^\top Q$.
#
# **General** has a matrix $W$ of shape (d_q, d_k). So queries and keys may have different widths. Every entry
# $w_{ij}$ is used for all pairs of a query $t$ and a key $s$, so its gradient is a sum over all pairs:
#
# $$\begin{aligned}
# a_{ts} &= \sum_{ij} q_{ti}\, w_{ij}\, k_{sj} \\
# dw_{ij} &= \sum_{ts} da_{ts}\, q_{ti}\, k_{sj} & \quad dW &= Q^\top dA\, K \\
# dq_{ti} &= \sum_s da_{ts} \sum_j w_{ij}\, k_{sj} & \quad dQ &= dA\, K W^\top \\
# dk_{sj} &= \sum_t da_{ts} \sum_i q_{ti}\, w_{ij} & \quad dK &= dA^\top Q W
# \end{aligned}$$
#
# The function `agree` in the next cell compares our gradients with those of the package.

# %%


def agree(mine, theirs):
    """Check that our gradients are those of the package."""
    for one, other in zip(mine, theirs, strict=True):
        assert_allclose(one, other, rtol=1e-9)


q, k = rng.standard_normal((3, 4)), rng.standard_normal((5, 6))  # (T, d_q), (S, d_k)
dscores = rng.standard_normal((3, 5))  # (T, S) the gradient of the scores

_, cache = similarity.dot_similarity(q, k[:, :4])  # dot: the same width
agree((dscores @ k[:, :4], dscores.T @ q), similarity.dot_similarity_backward(dscores, cache))

w = rng.standard_normal((4, 6))  # (d_q, d_k)
scores, cache = similarity.general_similarity(q, k, w)
own = (dscores @ k @ w.T, dscores.T @ q @ w, q.T @ dscores @ k)
agree(own, similarity.general_similarity_backward(dscores, cache))
print("dot and general: our gradients and those of the package agree")

# %% tags=["check"]
assert_allclose(scores, q @ w @ k.T, rtol=1e-12)

# %% [markdown]
# General similarity is closely related to the Transformer. The scores of lesson 4.4 were
#
# $$(X W^Q)(X W^K)^\top = X\, (W^Q {W^K}^\top)\, X^\top$$
#
# So the attention of a Transformer *is* general similarity, with $W = W^Q {W^K}^\top$. The matrix W is stored
# as a product of two narrow matrices. In the paper, their shape is (512, 64). Together they have far fewer
# parameters than a full W.

# %%
print("one matrix W:", 512 * 512, "parameters;  W^Q and W^K:", 2 * 512 * 64)

# %% tags=["check"]
x, (w_q, w_k) = rng.standard_normal((5, 4)), rng.standard_normal((2, 4, 2))
assert_allclose((x @ w_q) @ (x @ w_k).T, x @ (w_q @ w_k.T) @ x.T)
assert (512 * 512, 2 * 512 * 64) == (262_144, 65_536)

# %% [markdown]
# **Concat** multiplies the joined vector $[q; k]$ by one vector $w$. We divide $w$ into a part $u$ for the
# query and a part $v$ for the key. Then a score is a sum of two numbers. The number $u \cdot q_t$ occurs in
# all scores of row $t$, and the number $v \cdot k_s$ in all scores of column $s$:
#
# $$\begin{aligned}
# a_{ts} &= u \cdot q_t + v \cdot k_s \\
# dq_t &= \left(\sum_s da_{ts}\right) u & \quad du &= \sum_t \left(\sum_s da_{ts}\right) q_t \\
# dk_s &= \left(\sum_t da_{ts}\right) v & \quad dv &= \sum_s \left(\sum_t da_{ts}\right) k_s
# \end{aligned}$$

# %%
w = rng.standard_normal(10)  # (d_q + d_k,)
u, v = w[:4], w[4:]
scores, cache = similarity.concat_similarity(q, k, w)
of_row, of_column = dscores.sum(-1), dscores.sum(-2)  # (T,), (S,)
halves = np.concatenate([of_row @ q, of_column @ k])  # (d_q + d_k,)
own = (of_row[:, None] * u, of_column[:, None] * v, halves)
agree(own, similarity.concat_similarity_backward(dscores, cache))
print("attention weights of two queries\n", softmax(scores)[0][:2].round(4))

# %% tags=["check"]
joined = [[w @ np.concatenate([q_t, k_s]) for k_s in k] for q_t in q]  # (T, S)
assert_allclose(scores, joined, rtol=1e-12)
assert_allclose(softmax(scores)[0], np.tile(softmax(k @ v)[0], (3, 1)))

# %% [markdown]
# **Question.** The two queries are different, but their attention weights are the same. Why?
#
# <details><summary>Answer</summary>
# The number $u \cdot q_t$ is the same for all keys. Adding the same number to all scores of a row does not
# change the softmax. So the query has no influence on the weights.
# </details>
#
# So concat similarity has a serious weakness: every query gets the same weights. Training cannot change this.
# The backward pass of a softmax returns rows of $dA$ whose sum is 0 (lesson 5.2,
# `05_2_the_backward_pass_of_attention`). So $\sum_s da_{ts} = 0$, and
# the formulas above give $dq_t = 0$ and $du = 0$. The cell shows this.

# %%
behind_softmax = softmax_backward(dscores, softmax(scores)[0])  # (T, S) rows sum to 0
dq, _, dw = similarity.concat_similarity_backward(behind_softmax, cache)
print(f"with a softmax after the scores: |dq| {abs(dq).max():.0e}, |du| {abs(dw[:4]).max():.0e}")

# %% tags=["check"]
assert max(abs(dq).max(), abs(dw[:4]).max()) < 1e-14

# %% [markdown]
# **Your turn.** In the terminal, change the first query with `!q[0] += 1`. Then compute the weights of concat
# similarity again: `!softmax(similarity.concat_similarity(q, k, np.r_[u, v])[0])[0].round(4)`.

# %% [markdown]
# ## Summary
#
# - A similarity function computes the score of a query and a key.
# - Dot similarity has no parameters, and query and key need the same width.
# - General similarity is $(q W) \cdot k$. The attention of the Transformer is this, with
#   $W = W^Q {W^K}^\top$.
# - Concat similarity is a sum of a number for the query and a number for the key.
# - With concat similarity, every query gets the same weights, and the query receives no gradient.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the gradient of $W$ in general similarity a sum over all pairs of a query and a key?
#
# <details><summary>Answer</summary>
# The same matrix is used in the score of every pair. The chain rule adds the contributions of all uses.
# </details>
#
# **Question.** In concat similarity, does the key receive a gradient if a softmax follows?
#
# <details><summary>Answer</summary>
# Yes. Its gradient is $v$ times the sum of $da_{ts}$ over the queries, in other words, the sum of a column of
# dA. The softmax makes the sums of rows 0, not those of columns.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 4` lists the exercises of this chapter. The gradient checker grades each
# of them.
#
# - `npformer exercise start general-similarity-backward`: compute the gradients of the scores q W kᵀ in two
#   steps. All pairs share the matrix W.
# - By hand: which matrix W makes general similarity equal to dot similarity?
#
# **Next**: lesson 4.6 (`04_6_the_cost_of_similarities`), the fourth function, and what each of them costs.

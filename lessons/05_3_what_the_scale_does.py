# %% [markdown]
# # 5.3 · What the division by √dₖ does
#
# *About 25 minutes. You need: attention and its backward pass (lessons 5.1,
# `05_1_scaled_dot_product_attention`, and 5.2, `05_2_the_backward_pass_of_attention`), variance.*
#
# **After this lesson you can**
#
# - derive the variance of a dot product of random vectors;
# - explain when a softmax is saturated, and why its gradient is then nearly 0;
# - measure what happens to the gradients of attention without the division by √dₖ.
#
# `attention: queries and keys → [SCORES] → mask → softmax → mean of values`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.functional.attention import attention, attention_backward
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.plots import Step, curves, gradient_flow

rng = np.random.default_rng(5)

# %% [markdown]
# ## The reason that the paper gives
#
# Scaled dot-product attention divides the scores by $\sqrt{d_k}$ before the softmax. The picture shows the
# place of this division.

# %% tags=["plot"]
same = np.random.default_rng(0)
q, k = same.standard_normal((2, 4, 6))  # each (T, d_k)
arrays = {"q": q, "k": k, "products": q @ k.T, "scores": q @ k.T / math.sqrt(6)}
arrays["weights"], _ = softmax(arrays["scores"])
steps = {
    "products": Step("q kᵀ", ["q", "k"]),
    "scores": Step("÷ √dₖ", ["products"]),
    "weights": Step("softmax", ["scores"]),
}
axes = {"q": "T dₖ", "k": "S dₖ"} | dict.fromkeys(("products", "scores", "weights"), "T S")
figure = gradient_flow("q products scores weights \n k . . .", arrays, steps, axes=axes)
show_figure(figure, "05_3_scale", "Step 2 is the division that this lesson is about")

# %% [markdown]
# The paper gives a reason for it in section 3.2.1:
#
# > We suspect that for large values of dₖ, the dot products grow large in magnitude, pushing the softmax
# > function into regions where it has extremely small gradients.
#
# This sentence makes two claims.
#
# **First claim: the dot products grow large.** Footnote 4 of the paper gives the argument. Let all entries of
# $q$ and $k$ be independent, with mean 0 and variance 1. Then the product $q_i k_i$ has mean 0 too, and its
# variance is 1 · 1 = 1. The variances of independent terms add:
#
# $$\begin{aligned}
# \mathrm{Var}(q \cdot k) &= \sum_i \mathrm{Var}(q_i k_i) = d_k \\
# \mathrm{Var}\left(\frac{q \cdot k}{\sqrt{d_k}}\right) &= \frac{d_k}{d_k} = 1
# \end{aligned}$$
#
# So the scores have the standard deviation $\sqrt{d_k}$. After the division, it is 1 for every width.

# %% [markdown]
# We measure this with 2,000 random queries, and 10 random keys for each query.

# %%
widths = np.array([1, 4, 16, 64, 256, 1024])
samples = [
    (
        rng.standard_normal((2000, 1, n)),  # queries
        rng.standard_normal((2000, 10, n)),  # keys
        rng.standard_normal((2000, 10, n)),  # values
    )
    for n in widths
]
deviation = np.array([np.std(q @ k.swapaxes(-1, -2)) for q, k, _ in samples])
for n, found in zip(widths, deviation, strict=True):
    print(f"dₖ {n:5}   standard deviation of q · k {found:7.3f}   √dₖ {math.sqrt(n):7.3f}")

# %% tags=["check"]
assert_allclose(deviation, np.sqrt(widths), rtol=0.03)

# %% tags=["plot"]
figure = curves(
    np.stack([deviation, deviation / np.sqrt(widths)]),
    widths,
    labels=["q · k", "q · k / √dₖ"],
    xlabel="dₖ",
    ylabel="standard deviation of the scores",
    xscale="log",
    yscale="log",
)
show_figure(figure, "05_deviation", "Scores grow as √dₖ; divided by it, they do not")

# %% [markdown]
# **Second claim: the gradients become extremely small.** Lesson 5.2 derived the gradient of a score,
# $da_s = p_s (dp_s - \sum_r dp_r\, p_r)$. Suppose that one weight is nearly 1. Then the softmax is
# **saturated**, and two things happen:
#
# - For the key with the large weight, the weighted mean is nearly equal to its own $dp_s$. So the bracket is
#   nearly 0.
# - For all other keys, the weight $p_s$ in front of the bracket is nearly 0.
#
# In both cases the gradient is nearly 0. For two keys there is a short formula. With $p_2 = 1 - p_1$, the
# weighted mean is $p_1\, dp_1 + p_2\, dp_2$, and the gradient of the first score becomes
#
# $$\begin{aligned}
# da_1 &= p_1 (dp_1 - p_1\, dp_1 - p_2\, dp_2) \\
# &= p_1 (p_2\, dp_1 - p_2\, dp_2) = p_1 p_2\, (dp_1 - dp_2)
# \end{aligned}$$
#
# The size of the gradient depends on the product $p_1 p_2$. The cell prints it for an example from lesson
# 5.1. There the query of "Thinking" has the scores 112 and 96, and 14 and 12 after the division by 8.

# %%
products = []
for name, pair in {"112/8 and 96/8": (14, 12), "112 and 96": (112, 96)}.items():
    p, _ = softmax(np.array(pair, float))
    products.append(p[0] * p[1])
    print(f"scores {name:15} weights {p[0]:.7f} {p[1]:.7f}   p1 p2 = {products[-1]:.2e}")
print(f"ratio {products[0] / products[1]:,.0f}")

# %% tags=["check"]
assert_allclose(products[0] / products[1], 930_000, rtol=0.01)

# %% [markdown]
# Without the division, $p_1 p_2$ is 930,000 times smaller. Almost no gradient reaches the scores, whatever
# the loss is.
#
# These two scores were invented. What happens with random ones? We take the random queries, keys and values
# from above, and for each query a random $dy$ of length 1. For each width we measure three things:
#
# - the length of the gradient of the scores, `|dscores|`;
# - the length of the gradient of the query, `|dq|`;
# - the share of queries that give one key a weight above .99.
#
# The two lengths are medians over the 2,000 queries. Everything is measured twice, without the division
# (`scale=1.0`) and with it (`scale=None`, the default).

# %%
of_scores, of_queries, saturated = np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 6))
for j, (q_n, k_n, v_n) in enumerate(samples):
    dy_n = rng.standard_normal(q_n.shape)
    dy_n /= np.linalg.norm(dy_n, axis=-1, keepdims=True)
    for i, scale in enumerate((1.0, None)):  # None is 1/√dₖ
        _, made = attention(q_n, k_n, v_n, scale=scale)
        dp = dy_n @ v_n.swapaxes(-1, -2)
        da = made.weights * (dp - (dp * made.weights).sum(-1, keepdims=True))
        of_scores[i, j] = np.median(np.linalg.norm(da, axis=-1))
        of_queries[i, j] = np.median(np.linalg.norm(attention_backward(dy_n, made)[0], axis=-1))
        saturated[i, j] = (made.weights.max(-1) > 0.99).mean()

# %% tags=["plot"]
for i, name in enumerate(["not divided", "divided by √dₖ"]):
    print(f"{name:15}|dscores|      |dq|   a weight above .99")
    for j, n in enumerate(widths):
        found = f"{of_scores[i, j]:9.1e} {of_queries[i, j]:9.1e}   {saturated[i, j]:8.0%}"
        print(f"dₖ {n:5}       {found}")

figure = curves(
    of_scores,
    widths,
    labels=["not divided", "divided by √dₖ"],
    xlabel="dₖ",
    ylabel="length of the scores' gradient (median)",
    xscale="log",
    yscale="log",
)
caption = "With the division, the gradient does not depend on dₖ; without it, it vanishes"
show_figure(figure, "05_gradient", caption)

# %% [markdown]
# **With the division**, the gradient of the scores has length .30 at every width. At widths of 64 and more,
# the gradient of the query also has this length. In $dQ = c\, dA\, K$ the keys have a length of about
# $\sqrt{d_k}$, which the factor $c = 1/\sqrt{d_k}$ cancels.
#
# **Without the division**, at the paper's width of 64, the effect is moderate. About a third of the queries
# give one key a weight above .99. The gradient of the scores is nearly eight times smaller. But the
# gradient of the query has the length .30 again. The factor $c$ is 1 here and not 1/8, which compensates
# for the smaller $dA$.
#
# At a width of 1,024 nothing compensates for the saturation. The gradient of the scores is 160,000 times
# smaller, that of the query is 5,000 times smaller. Half of the queries receive even less than this median.

# %% tags=["check"]
assert_allclose(of_scores[1], 0.3, atol=0.015)
assert_allclose(of_queries[1, 3:], 0.3, atol=0.015)
assert_allclose(of_queries[0, 3], 0.3, atol=0.01)
assert_allclose(of_scores[1] / of_scores[0], [1, 1.1, 1.8, 7.9, 250, 160_000], rtol=0.1)
assert_allclose(of_queries[1, 5] / of_queries[0, 5], 5_000, rtol=0.1)
assert 0.32 < saturated[0, 3] < 0.36
print("the numbers of the text are those of the table")

# %% [markdown]
# The argument has a limit. The variance of the scores is $d_k$ only if the entries are independent, as at the
# start of training. Training changes the weight matrices, and a trained model may have scores of any size.
#
# **Your turn.** In the terminal, print the weights of one query of width 1,024 with `!made.weights[0]`. Then
# compute them without the division, with `!attention(q_n, k_n, v_n, scale=1.0)[1].weights[0]`. Predict the
# result first.

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* says that one may divide by other numbers too, for more stable gradients. This is
# >   true, but only √dₖ keeps the variance of the scores at 1 for every width. Its weights .88 and .12 are
# >   .880797 and .119203. From its step 4 on, it calls the weights "score". Of its three matrices, the third
# >   is printed as W^K, but W^V is meant.
# > - *Attention机制详解（二）* divides by √dₖ in the text, but not in the code of `dot_product_attention`
# >   that it shows. In npformer, `attention(q, k, v, scale=1.0)` computes the same.
# > - *一步步解析Attention is All You Need!* applies a ReLU to Q, K and V. Then no score is negative, the
# >   entries do not have mean 0, and the variance above does not hold. The projections of the paper are
# >   linear.
# > - *The components of the Transformer* has equation (1) exactly as in the paper, and adds a mask. Masks are
# >   the topic of chapter 6.

# %% [markdown]
# ## Summary
#
# - If the entries of q and k are independent with variance 1, then q · k has the variance $d_k$.
# - Dividing by $\sqrt{d_k}$ keeps the scores at variance 1, so that the softmax is not saturated at the
#   start of training.
# - A softmax is saturated if one weight is nearly 1. Then the gradients of all its scores are nearly 0.
# - For two keys, $da_1 = p_1 p_2 (dp_1 - dp_2)$: the gradient is proportional to the product of the weights.
# - Without the division, the gradient of the scores becomes 160,000 times smaller at a width of 1,024.

# %% [markdown]
# ## Questions
#
# **Question.** Somebody divides by $d_k$ instead of $\sqrt{d_k}$. What happens to the weights for a large
# width?
#
# <details><summary>Answer</summary>
# The scores then have the standard deviation $\sqrt{d_k} / d_k = 1/\sqrt{d_k}$, which is nearly 0. All
# weights are nearly equal, and attention is almost the mean of the values.
# </details>
#
# **Question.** Both keys of a query have the weight .5. How large is $p_1 p_2$, and is it large or small
# compared with other weights?
#
# <details><summary>Answer</summary>
# It is .25, the largest possible value. With equal weights, the softmax reacts most to a change of the
# scores.
# </details>

# %% [markdown]
# ## Exercises
#
# The next two exercises are not graded. You can solve them on paper and check them in Python. The command
# `npformer exercise list 5` lists the exercises of this chapter that are graded.
#
# - The entries of q and k are drawn uniformly from [−1, 1] instead. By which number should the scores be
#   divided, so that their variance is 1? Measure it as in the first figure.
# - Measure the gradient of the keys, `attention_backward(dy_n, made)[1]`, in the same way as that of the
#   query.
#
# **Next**: lesson 6.1 (`06_1_masks`), which forbid a query to attend to certain keys.

# %% [markdown]
# # 4 · Attention as a lookup
#
# *About 90 minutes, in six parts. You need: the pair forward/backward and the gradient check
# (lesson 0), token vectors (lesson 2), dot products and the softmax function.*
#
# **After this lesson you can**
#
# - compute self-attention without parameters, and derive its gradient;
# - turn a Python dictionary into a lookup that has an answer and a gradient for every query;
# - explain what queries, keys and values are, and why each of them has its own weight matrix;
# - compare queries and keys with four similarity functions, and derive the gradient of each.
#
# `[embedding] → [positions] → [ATTENTION] → [add & norm] → …`  (you are in the second box of Figure 1)

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.functional import similarity
from npformer.functional.attention import attention, attention_backward
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.plots import Grid, attention_map, cell_product, curves

rng = np.random.default_rng(4)

# %% [markdown]
# ## Why attention?
#
# After lessons 2 and 3, every token of a sentence has a vector. This vector says which token it is and where
# it stands. It says nothing about the other tokens. But the meaning of a token depends on the others. In the
# sentence *the dog saw the bird*, the vector of *saw* should contain who saw whom.
#
# **Attention** is the layer that brings information from other tokens into the vector of a token. It computes
# a weight for each token, and then the average of all vectors with these weights. The picture shows this for
# *saw*. You will compute such weights in this lesson.
#
# ```text
#    x of "the"   x of "dog"   x of "saw"   x of "the"   x of "bird"      each (D,)
#      × .01        × .66        × .01        × .01        × .30          the weights of "saw"
#         └────────────┴──────────  +  ──────────┴────────────┘
#                                   ↓
#                               y of "saw"                                (D,) the weighted average
# ```
#
# This lesson begins with attention that has no parameters. Then it explains attention as a lookup, and adds
# weight matrices. At the end it compares four ways of computing scores.

# %% [markdown]
# ## Attention without parameters
#
# *The components of the Transformer* begins with a layer that has no parameters. T vectors $x_1, \ldots, x_T$
# go in, and T vectors $y_1, \ldots, y_T$ come out. Each output is computed in three steps:
#
# $$\begin{aligned}
# s_{ij} &= x_i \cdot x_j \\
# p_{ij} &= \frac{\exp s_{ij}}{\sum_m \exp s_{im}} \\
# y_i &= \sum_j p_{ij}\, x_j
# \end{aligned}$$
#
# 1. The **score** $s_{ij}$ is a dot product. It is large if the two vectors are similar.
# 2. The **softmax** turns the scores of token $i$ into **attention weights** $p_{ij}$. They are positive, and
#    their sum over $j$ is 1.
# 3. The output $y_i$ is the average of all vectors with these weights.
#
# We say that token $i$ **attends to** token $j$ with the weight $p_{ij}$. All vectors come from the same
# sentence, so this is **self-attention**. With matrices, the three steps are:
#
# ```text
# X (T, D) ─┬─→ scores S = X Xᵀ (T, T) ─→ softmax of each row ─→ weights P (T, T) ─┐
#           └──────────────────────────────────────────────────────────────────────┴─→ Y = P X (T, D)
# ```
#
# $X$ has one row for each token. For our example we choose the entries of the vectors by hand. They say
# whether a word is an animal, flies, is an action, or is an article. Every vector has length 2. In a trained
# model, the entries come from training, and a single entry rarely has a simple meaning.

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

# %% [markdown]
# **Question.** To which tokens will *dog* attend most? Compute its five scores first.
#
# <details><summary>Answer</summary>
# The scores of *dog* are 0, 4, 0, 0 and 3.2. So it attends most to itself, and then to *bird*. The other
# tokens get small weights, but not 0, because the exponential function is always positive.
# </details>
#
# The cell computes the layer with matrices. Row $i$ of `weights` contains the weights of token $i$.

# %%
weights, _ = softmax(x @ x.T)  # (T, T), row i attends to column j
y = weights @ x  # (T, D)
print(y.round(2))

# %% tags=["check"]
assert_allclose(np.linalg.norm(x, axis=-1), 2)

slow = np.zeros_like(x)  # (T, D)
for i in range(5):
    e = [np.exp(sum(x[i, n] * x[j, n] for n in range(4))) for j in range(5)]
    for j in range(5):
        slow[i] += e[j] / sum(e) * x[j]
assert_allclose(y, slow, rtol=1e-12)

# %% tags=["plot"]
figure = attention_map(weights, words, words, numbers=True)
caption = "Without parameters: each token attends to itself and to tokens with similar vectors"
show_figure(figure, "04_basic", caption)

# %% [markdown]
# The result shows what this layer can do, and what it cannot do:
#
# - *dog* and *bird* are similar: their score is 3.2. So *dog* attends to *bird* with the weight .30. Its
#   output now has .36 in the entry "flies". The two animals have become more similar to each other.
# - Both *the* have the same vector, and they get the same output. The vectors contain no positions here, so
#   the outputs cannot contain any.
# - *saw* attends to itself with the weight .93. So its output contains almost nothing about who saw whom.

# %% tags=["check"]
assert_allclose(weights[1, 4], 0.30, atol=0.005)
assert_allclose(y[1, 1], 0.36, atol=0.005)
assert_allclose(weights[2, 2], 0.93, atol=0.005)
assert (y[0] == y[3]).all()

# %% [markdown]
# ## Why a token attends most to itself
#
# The weight of *saw* for itself was no accident. We compare the score of token $i$ for itself with its score
# for another token $j$. The inequality of Cauchy and Schwarz says that a dot product is at most the product
# of the two lengths: $x_i \cdot x_j \le |x_i|\,|x_j|$. So
#
# $$\begin{aligned}
# s_{ii} - s_{ij} &= |x_i|^2 - x_i \cdot x_j \\
# &\ge |x_i|^2 - |x_i|\,|x_j| \\
# &= |x_i|\,(|x_i| - |x_j|)
# \end{aligned}$$
#
# If all vectors have the same length, the last line is 0. Then **no token attends more to another token than
# to itself**. If the lengths differ, this is still true for the token with the longest vector. But a token
# with a short vector may attend more to a token with a longer one.
#
# **Question.** Three tokens have vectors of the lengths 1, 2 and 3. Which of them is sure to attend most to
# itself?
#
# <details><summary>Answer</summary>
# The third one, because no other vector is longer. For the other two it depends on the directions of the
# vectors.
# </details>

# %% [markdown]
# How large is the difference in a typical case? Let the D entries of all vectors be independent, with mean 0
# and variance 1. The score $s_{ii}$ is a sum of D squares, and its mean is D. The score $s_{ij}$ is a sum of
# D products, with mean 0 and standard deviation $\sqrt{D}$. For a large D, the first is much larger than the
# second.
#
# The cell measures this for 2,000 random sentences of ten tokens. It prints how often a token attends most to
# itself, and the median of the weight that it gives to itself.

# %%


def own_share(x, scores):
    """How often a token attends most to itself, and its median weight for itself."""
    most = scores.argmax(-1) == np.arange(x.shape[1])
    own = np.diagonal(softmax(scores)[0], axis1=-2, axis2=-1)
    return most.mean(), np.median(own)


shares = {}
for width in (4, 64):
    free = rng.standard_normal((2000, 10, width))  # (B, T, D)
    shares[width] = own_share(free, free @ free.swapaxes(-1, -2))
    most, own = shares[width]
    print(f"D {width:2}   itself most: {most:4.0%}   weight for itself {own:.6f}")

# %% tags=["check"]
assert_allclose(shares[4][0], 0.67, atol=0.01)
assert shares[64][0] == 1
assert shares[64][1] > 0.9999995

# %% [markdown]
# With D = 4, a third of the tokens attend most to another token. With D = 64 none does. The median weight for
# itself is then 1.000000, so $y$ and $x$ agree in about six digits. The layer hardly changes its input.
#
# **Question.** The vector $x_i$ decides to which tokens token $i$ attends. What else does $x_i$ decide?
#
# <details><summary>Answer</summary>
# It is compared with the vectors of all tokens, so it also decides which tokens attend to token $i$. And it
# is the vector that these tokens average.
# </details>
#
# So one vector has several tasks. To separate them, we first find out where $x$ occurs in the formulas.
#
# *This is a good place for a break. The next part derives the backward pass.*
#
# ## Backward: x occurs three times
#
# Look at the three formulas of the forward pass again. The same $x$ has three roles:
#
# 1. In $s_{ij}$, the vector $x_i$ is compared with all others. This role is the **query**.
# 2. In $s_{ij}$, the vector $x_j$ is what a query is compared with. This role is the **key**.
# 3. In $y_i$, the vector $x_j$ is what is averaged. This role is the **value**.
#
# We write three arrays Q, K and V for the three roles, although they are still equal:
#
# ```text
# X (T, D) ─┬─ as queries ─→ Q (T, D) ─┐
#           ├─ as keys ────→ K (T, D) ─┴─→ S = Q Kᵀ (T, T) ─→ P = softmax(S) (T, T) ─┐
#           └─ as values ──→ V (T, D) ───────────────────────────────────────────────┴─→ Y = P V (T, D)
# ```

# %% [markdown]
# Each array has a gradient of its own. The forward pass used $x$ in three places, so the backward pass adds
# up the three gradients (lesson 0):
#
# $$dx = dq + dk + dv$$
#
# We derive them in reverse order, and begin with the last formula, $y_i = \sum_j p_{ij}\, v_j$. The value
# $v_j$ occurs in every output $y_i$, with the factor $p_{ij}$. The weight $p_{ij}$ occurs only in $y_i$,
# where it multiplies the vector $v_j$:
#
# $$\begin{aligned}
# dv_j &= \sum_i p_{ij}\, dy_i & \quad dV &= P^\top dY \\
# dp_{ij} &= dy_i \cdot v_j & \quad dP &= dY\, V^\top
# \end{aligned}$$

# %%
dy = rng.standard_normal(y.shape)  # (T, D)
dv = weights.T @ dy  # (T, D)
dweights = dy @ x.T  # (T, T)

# %% [markdown]
# Next comes the softmax. Its backward pass computes $dS$ from $dP$. Here we take it from the package, and
# lesson 5 derives it.
#
# The scores are $s_{ij} = \sum_n q_{in} k_{jn}$. The query $q_i$ occurs in all scores of row $i$, and its
# factor in $s_{ij}$ is $k_j$. The key $k_j$ occurs in all scores of column $j$, and its factor is $q_i$:
#
# $$\begin{aligned}
# dq_i &= \sum_j ds_{ij}\, k_j & \quad dQ &= dS\, K \\
# dk_j &= \sum_i ds_{ij}\, q_i & \quad dK &= dS^\top Q
# \end{aligned}$$
#
# In our layer, Q, K and V are all `x`.

# %%
dscores = softmax_backward(dweights, weights)  # (T, T)
dq = dscores @ x  # (T, D)
dk = dscores.T @ x  # (T, D)
dx = dq + dk + dv

y_package, cache = attention(x, x, x, scale=1.0)  # without the scale of lesson 5

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dx, sum(attention_backward(dy, cache)), rtol=1e-9, atol=1e-12)
print("y and dx are those of the package")

# %% [markdown]
# Is each of the three gradients correct? We can check them one at a time with the complex step of lesson 0.
# We add a small imaginary number times a direction $v$ to $x$ in one role only. In the other two roles, $x$
# stays as it is. The imaginary part of the loss then gives the measured derivative. It must agree with the
# derivative that our gradient claims.

# %%
v = rng.integers(0, 2, x.shape) * 2.0 - 1  # a direction with entries ±1
h = 1e-20
moved = x + 1j * h * v
roles = {"query": (moved, x, x), "key": (x, moved, x), "value": (x, x, moved)}
pairs = []
for (role, arrays), gradient in zip(roles.items(), (dq, dk, dv), strict=True):
    measured = (attention(*arrays, scale=1.0)[0] * dy).sum().imag / h
    claimed = (gradient * v).sum()
    pairs.append((claimed, measured))
    print(f"{role:6} claimed {claimed:+.12f}   measured {measured:+.12f}")

# %% tags=["check"]
for claimed, measured in pairs:
    assert_allclose(claimed, measured, rtol=1e-11)

# %% [markdown]
# Now we check the whole layer as a pair of functions. The third function contains a common mistake. It
# starts from $S = X X^\top$ and takes $dS\, X$ for the gradient of X. This treats only the first X as a
# variable, so the gradient of the keys is missing.
#
# **Question.** Will the gradient check find this mistake?
#
# <details><summary>Answer</summary>
# Yes. The forward pass depends on $x$ in the role of the key too. So the measured derivative contains $dk$,
# and the returned gradient does not.
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
# *This is a good place for a break. The next part explains the words query, key and value.*
#
# ## From a dictionary to a soft lookup
#
# The words query, key and value come from databases and dictionaries. A dictionary stores pairs of a key and
# a value. You give it a query. If one of the keys is equal to the query, you get its value. This is a
# **lookup**.
#
# As an example we take three colours of the colour wheel. The key of a colour is its angle: red is at 0°,
# green at 120° and blue at 240°. The value of a colour is its triple (red, green, blue). What happens if we
# ask for the angle 40°?

# %%
wheel = {0: [1.0, 0, 0], 120: [0, 1.0, 0], 240: [0, 0, 1.0]}  # angle: (red, green, blue)
try:
    print(wheel[40])
except KeyError as error:
    print("KeyError:", error)

# %% [markdown]
# A dictionary cannot say that a query is *nearly* right. A network cannot learn with such a lookup, because
# most queries have no answer, and there is no gradient. We change the lookup in two steps.
#
# **Step 1: take the nearest key.** We write each angle as an arrow, a vector of length 1. Then the nearest
# key is the one with the largest dot product with the query. It gets the weight 1, and all others get the
# weight 0. The product of the weights and the values is the answer. This is a **hard lookup**. It has an
# answer for every query.

# %%


def arrow(degrees):
    """Shapes: degrees (...) -> (..., 2), of length 1."""
    return np.stack([np.cos(degrees * np.pi / 180), np.sin(degrees * np.pi / 180)], -1)


keys = arrow(np.array(list(wheel)))  # (S, 2)
values = np.array(list(wheel.values()))  # (S, 3)
query = arrow(np.array([40.0]))  # (1, 2)

nearest = 1.0 * (np.arange(3) == (query @ keys.T).argmax(-1))  # (S,)
print("nearest  ", nearest @ values)

# %% [markdown]
# **Step 2: replace the maximum by a softmax.** Now every key gets a positive weight, and the answer is an
# average of the values. This is a **soft lookup**.
#
# The length of the query decides how similar the two are. A query that is three times as long has scores that
# are three times as large. Then the differences between the scores are larger too, and the softmax gives more
# weight to the largest.
#
# The next cell computes the soft lookup for queries of length 1, 4 and 64. It also prints a derivative. It
# tells how much the weight of green changes when the query is turned by one degree. We compute it with a
# complex step: we turn the query by a small imaginary angle.

# %%
answers, slopes = {}, {}
for length in (1, 4, 64):
    mixed, _ = attention(length * query, keys, values, scale=1.0)
    weight, _ = softmax(length * arrow(40 + 1j * h) @ keys.T)
    answers[length], slopes[length] = mixed[0], weight[1].imag / h
    print(f"length {length:2}", mixed[0].round(3), f"  slope {slopes[length]:.0e} per degree")

# %% tags=["check"]
assert_allclose(answers[4][:2], [0.91, 0.09], atol=0.005)
assert abs(answers[64] - nearest).max() < 1e-6
assert_allclose(slopes[64], 6e-17, atol=0.5e-17)

# %% [markdown]
# A query of length 4 gets the answer .91 red and .09 green. This is a red that is slightly orange. A query of
# length 64 gets the same answer as the hard lookup, with an error below one millionth. So the hard lookup is
# the limit of the soft lookup for long queries.
#
# **Question.** The hard lookup is cheaper, because it reads only one value. Why do we not use it in a
# network?
#
# <details><summary>Answer</summary>
# If the query changes a little, the nearest key stays the same, so the answer does not change. The derivative
# is 0, and training cannot improve the query.
# </details>
#
# The figure shows this. It turns the query from 0° to 240° and draws the weight of green.

# %% tags=["plot"]
angles = np.linspace(0, 240, 481)  # (N,)
turned = arrow(angles)  # (N, 2)
of_green = [softmax(length * turned @ keys.T)[0][:, 1] for length in (1, 4, 64)]
of_green.append(1.0 * ((turned @ keys.T).argmax(-1) == 1))  # the hard lookup
figure = curves(
    np.array(of_green),
    angles,
    labels=["length 1", "length 4", "length 64", "nearest"],
    xlabel="angle of the query, in degrees",
    ylabel="weight of the key at 120°",
    legend=True,
)
caption = "Longer queries choose more sharply; the hard lookup is constant except for two jumps"
show_figure(figure, "04_soft", caption)

# %% tags=["check"]
assert_allclose(np.diff(of_green[3]).nonzero()[0] / 2, [60, 179.5], atol=0.5)  # the two jumps

# %% [markdown]
# For the hard lookup the curve is constant, so its derivative is 0. At 60° and 180° it jumps, and has no
# derivative there. *The components of the Transformer* says the same of hard attention: the function argmax
# is not differentiable, and training needs other methods than gradients alone. Lesson 19 shows them.
#
# The soft lookup has a gradient, but this has a price: every value takes part in every answer. Also, very
# long queries bring the problem of the hard lookup back. At 40° and with length 64, the slope is only
# $6 \cdot 10^{-17}$ per degree.
#
# **Question.** At which angle between 0° and 120° does the soft lookup give red and green the same weight?
# Does this depend on the length of the query?
#
# <details><summary>Answer</summary>
# At 60°. There, the angles between the query and the two keys are equal, so both dot products are equal. This
# is true for every length.
# </details>
#
# *This is a good place for a break. The next part gives each role its own weight matrix.*

# %% [markdown]
# ## Query, key and value
#
# The paper describes attention as such a soft lookup, in section 3.2:
#
# > An attention function can be described as mapping a query and a set of key-value pairs to an output, where
# > the query, keys, values, and output are all vectors. The output is computed as a weighted sum of the
# > values, where the weight assigned to each value is computed by a compatibility function of the query with
# > the corresponding key.
#
# In self-attention, every token has all three roles. But what a token needs is often different from what it
# is. For example, an action needs to know which animals take part, and it is not an animal itself. So each
# role gets its own weight matrix:
#
# $$Q = X W^Q, \qquad K = X W^K, \qquad V = X W^V$$
#
# ```text
# X (T, D) ─┬─ × W^Q (D, K) ─→ Q (T, K) ─┐
#           ├─ × W^K (D, K) ─→ K (T, K) ─┴─→ S = Q Kᵀ (T, T) ─→ softmax ─→ P (T, T) ─┐
#           └─ × W^V (D, L) ─→ V (T, L) ─────────────────────────────────────────────┴─→ Z = P V (T, L)
# ```

# %% [markdown]
# - The **query** $q_i$ says what token $i$ needs.
# - The **key** $k_j$ says what token $j$ offers. It is compared with the queries.
# - The **value** $v_j$ is the information that other tokens receive from token $j$.
#
# Queries and keys must have the same width K, because each score is a dot product of both. The values may
# have another width L.
#
# As an example we choose the three matrices by hand. Actions will attend to animals, and animals will attend
# to articles. Column 1 of Q and K stands for "animal", and column 2 for "article". The values are the
# first two entries of $x$, "animal" and "flies".

# %%
w_q = np.array([[0, 1.0], [0, 0], [1.0, 0], [0, 0]])  # (D, K) animal -> 2, action -> 1
w_k = np.array([[1.0, 0], [0, 0], [0, 0], [0, 1.0]])  # (D, K) animal -> 1, article -> 2
w_v = np.eye(4)[:, :2]  # (D, L) animal, flies
q, k, v = x @ w_q, x @ w_k, x @ w_v  # (T, K), (T, K), (T, L)
z, cache = attention(q, k, v, scale=1.0)
chosen = cache.weights  # (T, T)
print("saw attends with", chosen[2].round(2), "and gets", z[2].round(2))

# %% tags=["plot"]
grids = [
    Grid(q, "$Q$", "q", rows=words, numbers=True),
    "×",
    Grid(k.T, "$K^T$", "k", columns=words, numbers=True),
    "→",
    Grid(chosen, "softmax", "r", numbers=True, shade=True, columns=words),
    "×",
    Grid(v, "$V$", "v", numbers=True),
    "=",
    Grid(z, "$Z$", "z", numbers=True),
]
caption = "Matrices chosen by hand: saw attends to dog and bird, and animals attend to articles"
show_figure(cell_product(grids), "04_qkv", caption)

# %% [markdown]
# - *saw* attends to *dog* with the weight .66, to *bird* with .30, and to itself with .01. Its output is
#   (1.81, .36). The first number says that the event involves animals. The second is above 0, so one of the
#   animals flies.
# - The queries of the two articles are 0. So all of their scores are 0, and they attend to every token with
#   the same weight .20.
# - *dog* attends to each article with the weight .49. The articles do not attend to *dog* in the same way. So
#   with two different matrices, attention is no longer symmetric.
#
# These matrices were chosen by hand. At the beginning of training they are random. Does a token then still
# attend most to itself? We repeat the measurement with D = 64 and random matrices.

# %%
free = rng.standard_normal((2000, 10, 64))  # (B, T, D)
mats = rng.standard_normal((2, 2000, 64, 64)) / 8  # W^Q and W^K, new ones for each sentence
most, _ = own_share(free, (free @ mats[0]) @ (free @ mats[1]).swapaxes(-1, -2))
print(f"with random matrices, {most:.1%} of the tokens attend most to themselves")

# %% tags=["check"]
assert 0.09 < most < 0.11
assert_allclose(chosen[2, [1, 4, 2]], [0.66, 0.30, 0.01], atol=0.005)
assert_allclose(chosen[[0, 3]], 0.2)
assert_allclose(chosen[1, [0, 3]], 0.49, atol=0.005)
assert_allclose(z[2], [1.81, 0.36], atol=0.005)

# %% [markdown]
# The result is about one in ten. A sentence has ten tokens, so this is the frequency of a random choice. No
# token is preferred.
#
# ### The gradients of the weight matrices
#
# Each of the three products is the linear layer of lesson 0, without a bias. The gradient of its weights is
# the transposed input times the gradient of its output. And $x$ is used in all three products, so it gets the
# sum of three gradients:
#
# $$\begin{aligned}
# dW^Q &= X^\top dQ, \quad dW^K = X^\top dK, \quad dW^V = X^\top dV \\
# dX &= dQ\, {W^Q}^\top + dK\, {W^K}^\top + dV\, {W^V}^\top
# \end{aligned}$$
#
# If all three matrices are the identity, the second line is $dq + dk + dv$, as above.

# %%
dz = rng.standard_normal(z.shape)  # (T, L)
dq, dk, dv = attention_backward(dz, cache)
dx = dq @ w_q.T + dk @ w_k.T + dv @ w_v.T  # (T, D)
dw_q, dw_k, dw_v = x.T @ dq, x.T @ dk, x.T @ dv  # (D, K), (D, K), (D, L)

# %% [markdown]
# In the package, these matrices belong to `MultiHeadAttention` (lesson 7). With one head, and without biases,
# output matrix and scale, it is our layer. The next cell compares the two and runs the gradient check.

# %%
plain = {"bias": False, "output": False, "scale": False, "dtype": np.float64}
layer = MultiHeadAttention(4, 1, d_head=2, **plain)
parts = [(layer.query, w_q, dw_q), (layer.key, w_k, dw_k), (layer.value, w_v, dw_v)]
for part, matrix, _ in parts:
    part.weight.value[...] = matrix
z_package, layer_cache = layer.forward(x[None])  # (1, T, L)
dx_package = layer.backward(dz[None], layer_cache)
print("largest difference in dx:", abs(dx - dx_package[0]).max())

# %% tags=["check"]
assert_allclose(z, z_package[0], rtol=1e-12)
assert_allclose(dx, dx_package[0], rtol=1e-9, atol=1e-12)
for part, _, gradient in parts:
    assert_allclose(gradient, part.weight.grad, rtol=1e-9, atol=1e-12)
report = gradcheck(layer, rng.standard_normal((2, 5, 4)))
print("gradient check of the layer:", report.ok)
assert report.ok

# %% [markdown]
# *This is a good place for a break. The next part compares similarity functions.*
#
# ## Four ways to compare
#
# So far we compared a query and a key with the dot product. The paper calls this part of attention the
# compatibility function. We call it the **similarity function**. *一步步解析Attention is All You Need!* lists
# four of them. They come from the years in which attention was used with recurrent networks (Bahdanau et al.
# 2015; Luong et al. 2015):
#
# $$\begin{aligned}
# \mathrm{dot:} \quad s &= q \cdot k \\
# \mathrm{general:} \quad s &= (q W) \cdot k \\
# \mathrm{concat:} \quad s &= w \cdot [q; k] \\
# \mathrm{perceptron:} \quad s &= v \cdot \tanh(q W + k U)
# \end{aligned}$$
#
# The brackets $[q; k]$ mean that the two vectors are written one after the other. In this part, queries have
# the width K and keys the width L.
#
# **Question.** Which of the four functions has no parameters? Which of them work if K and L are different?
#
# <details><summary>Answer</summary>
# The first one has no parameters, because q and k are not parameters. The other three work for different
# widths.
# </details>

# %% [markdown]
# We go through the four functions. For each of them we derive the gradients from $dS$, the gradient of the
# scores.
#
# **Dot** has no parameters. Query and key must have the same width. We have derived its gradients above:
# $dQ = dS\, K$ and $dK = dS^\top Q$.
#
# **General** has a matrix $W$ of shape (K, L). So queries and keys may have different widths. Every entry
# $w_{ij}$ is used for all pairs of a query $t$ and a key $s$, so its gradient is a sum over all pairs:
#
# $$\begin{aligned}
# s_{ts} &= \sum_{ij} q_{ti}\, w_{ij}\, k_{sj} \\
# dw_{ij} &= \sum_{ts} ds_{ts}\, q_{ti}\, k_{sj} & \quad dW &= Q^\top dS\, K \\
# dq_{ti} &= \sum_s ds_{ts} \sum_j w_{ij}\, k_{sj} & \quad dQ &= dS\, K W^\top \\
# dk_{sj} &= \sum_t ds_{ts} \sum_i q_{ti}\, w_{ij} & \quad dK &= dS^\top Q W
# \end{aligned}$$
#
# The function `agree` in the next cell compares our gradients with those of the package.

# %%


def agree(mine, theirs):
    """Check that our gradients are those of the package."""
    for one, other in zip(mine, theirs, strict=True):
        assert_allclose(one, other, rtol=1e-9)


q, k = rng.standard_normal((3, 4)), rng.standard_normal((5, 6))  # (T, K), (S, L)
ds = rng.standard_normal((3, 5))  # (T, S) the gradient of the scores

_, cache = similarity.dot_similarity(q, k[:, :4])  # dot: the same width
agree((ds @ k[:, :4], ds.T @ q), similarity.dot_similarity_backward(ds, cache))

w = rng.standard_normal((4, 6))  # (K, L)
scores, cache = similarity.general_similarity(q, k, w)
own = (ds @ k @ w.T, ds.T @ q @ w, q.T @ ds @ k)
agree(own, similarity.general_similarity_backward(ds, cache))
print("dot and general: our gradients and those of the package agree")

# %% tags=["check"]
assert_allclose(scores, q @ w @ k.T, rtol=1e-12)

# %% [markdown]
# General similarity is closely related to the Transformer. The scores of the part before were
#
# $$(X W^Q)(X W^K)^\top = X\, (W^Q {W^K}^\top)\, X^\top$$
#
# So the attention of a Transformer *is* general similarity, with $W = W^Q {W^K}^\top$. The matrix W is stored
# as a product of two narrow matrices. In the paper, D is 512 and K is 64. Then the two narrow matrices need
# far fewer parameters than a full W.

# %%
print("one matrix W:", 512 * 512, "parameters;  W^Q and W^K:", 2 * 512 * 64)

# %% tags=["check"]
assert_allclose((x @ w_q) @ (x @ w_k).T, x @ (w_q @ w_k.T) @ x.T)
assert (512 * 512, 2 * 512 * 64) == (262_144, 65_536)

# %% [markdown]
# **Concat** multiplies the joined vector $[q; k]$ by one vector $w$. We divide $w$ into a part $a$ for the
# query and a part $b$ for the key. Then a score is a sum of two numbers. The number $a \cdot q_t$ occurs in
# all scores of row $t$, and the number $b \cdot k_s$ in all scores of column $s$:
#
# $$\begin{aligned}
# s_{ts} &= a \cdot q_t + b \cdot k_s \\
# dq_t &= \left(\sum_s ds_{ts}\right) a & \quad da &= \sum_t \left(\sum_s ds_{ts}\right) q_t \\
# dk_s &= \left(\sum_t ds_{ts}\right) b & \quad db &= \sum_s \left(\sum_t ds_{ts}\right) k_s
# \end{aligned}$$

# %%
w = rng.standard_normal(10)  # (K + L,)
a, b = w[:4], w[4:]
scores, cache = similarity.concat_similarity(q, k, w)
of_row, of_column = ds.sum(-1), ds.sum(-2)  # (T,), (S,)
halves = np.concatenate([of_row @ q, of_column @ k])  # (K + L,)
own = (of_row[:, None] * a, of_column[:, None] * b, halves)
agree(own, similarity.concat_similarity_backward(ds, cache))
print("attention weights of two queries\n", softmax(scores)[0][:2].round(4))

# %% tags=["check"]
joined = [[w @ np.concatenate([q_t, k_s]) for k_s in k] for q_t in q]  # (T, S)
assert_allclose(scores, joined, rtol=1e-12)
assert_allclose(softmax(scores)[0], np.tile(softmax(k @ b)[0], (3, 1)))

# %% [markdown]
# **Question.** The two queries are different, but their attention weights are the same. Why?
#
# <details><summary>Answer</summary>
# The number $a \cdot q_t$ is the same for all keys. Adding the same number to all scores of a row does not
# change the softmax. So the query has no influence on the weights.
# </details>
#
# So concat similarity has a serious weakness: every query gets the same weights. Training cannot change this.
# The backward pass of a softmax returns rows of $dS$ whose sum is 0 (lesson 5). So $\sum_s ds_{ts} = 0$, and
# the formulas above give $dq_t = 0$ and $da = 0$. The cell shows this.

# %%
behind_softmax = softmax_backward(ds, softmax(scores)[0])  # (T, S) rows sum to 0
dq, _, dw = similarity.concat_similarity_backward(behind_softmax, cache)
print(f"with a softmax after the scores: |dq| {abs(dq).max():.0e}, |da| {abs(dw[:4]).max():.0e}")

# %% tags=["check"]
assert max(abs(dq).max(), abs(dw[:4]).max()) < 1e-14

# %% [markdown]
# *This is a good place for a break. The last part has the fourth function, and compares the costs.*
#
# **Perceptron** avoids this weakness with a nonlinear function, tanh. It is applied to the sum of the two
# parts. The result is no longer a sum of a number for the query and a number for the key. Let $g$ be the sum
# and $h$ the result, both with J entries for each pair:
#
# $$\begin{aligned}
# g_{tsj} &= \sum_i q_{ti}\, w_{ij} + \sum_i k_{si}\, u_{ij} \\
# h_{tsj} &= \tanh g_{tsj}, \qquad s_{ts} = \sum_j v_j\, h_{tsj}
# \end{aligned}$$
#
# The derivative of tanh is $1 - \tanh^2$. With this, the chain rule gives the gradients of $v$ and $g$. From
# there on, $W$ and $U$ are weights of linear layers. The product $q_t W$ is used for all keys $s$, so its
# gradient is the sum of $dg$ over $s$. In the same way, the gradient of $k_s U$ is a sum over $t$.

# %% [markdown]
# $$\begin{aligned}
# dv_j &= \sum_{ts} ds_{ts}\, h_{tsj} \\
# dg_{tsj} &= ds_{ts}\, v_j\, (1 - h_{tsj}^2) \\
# dW &= Q^\top \left(\sum_s dg\right), \quad dQ = \left(\sum_s dg\right) W^\top \\
# dU &= K^\top \left(\sum_t dg\right), \quad dK = \left(\sum_t dg\right) U^\top
# \end{aligned}$$
#
# In the code, the vector $v$ is called `out`.

# %%
w, u, out = rng.standard_normal((4, 7)), rng.standard_normal((6, 7)), rng.standard_normal(7)
scores, cache = similarity.perceptron_similarity(q, k, w, u, out)
hidden = np.tanh((q @ w)[:, None] + (k @ u)[None])  # (T, S, J)
dg = ds[..., None] * out * (1 - hidden**2)  # (T, S, J)
to_q, to_k = dg.sum(1), dg.sum(0)  # (T, J), (S, J)
dout = np.einsum("ts,tsj->j", ds, hidden)  # (J,)
own = (to_q @ w.T, to_k @ u.T, q.T @ to_q, k.T @ to_k, dout)
agree(own, similarity.perceptron_similarity_backward(ds, cache))
show(cache)

# %% tags=["check"]
assert_allclose(scores, hidden @ out, rtol=1e-12)
stacked = np.concatenate([w, u])  # (K + L, J), W in Luong's form
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
# We count for one sentence of 100 tokens, with the width of the paper: K, L and J are 512. The first number
# is the number of parameters. The second is the number of entries that are kept for the backward pass, in
# addition to q and k.

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
# The last figure applies all four functions to our sentence, with $x$ as queries and as keys. General
# similarity uses the matrix $W^Q {W^K}^\top$ that we chose by hand. The other parameters are random.

# %%
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
# **Your turn.** In the terminal, print the cache of the layer with `s layer_cache`. Then compute the second
# of the four grids with `!softmax(x @ (w_q @ w_k.T) @ x.T)[0].round(2)`.

# %% [markdown]
# ## What the documents say
#
# > - *Attention机制详解（二）* says that the score of a word with itself is obviously the largest as a rule.
# >   Without weight matrices, this is a theorem for vectors of the same length. With random matrices, it
# >   happens for one token in T.
# > - *The components of the Transformer* follows Bloem's *Transformers from scratch* in its attention without
# >   parameters. It writes w for the attention weights, and we keep w for parameters. It explains query, key
# >   and value with a search for videos, which returns the best result. Attention returns an average of all
# >   values.
# > - *一步步解析Attention is All You Need!* lists concat and perceptron as two functions. Luong's published
# >   concat also contains the tanh: v · tanh(W [q; k]). This is the perceptron, with W and U stacked.
# > - The paper compares two functions: additive attention, which is the perceptron, and dot-product
# >   attention. It says that for large dₖ "additive attention outperforms dot product attention without
# >   scaling". Our colour wheel shows why: a query of length 64 had almost no gradient.

# %% [markdown]
# ## Summary
#
# - Attention is a soft lookup: a weighted average of all values, with weights from a softmax over scores.
# - Without weight matrices, a token attends mostly to itself, above all when D is large.
# - Queries, keys and values are three roles of $x$, each with its own matrix; $dx$ is the sum of three terms.
# - The hard lookup has the gradient 0 almost everywhere, so a network cannot learn with it.
# - The dot product with $W^Q$ and $W^K$ is general similarity; concat ignores the query; perceptron needs
#   J numbers for each pair.

# %% [markdown]
# ## Questions
#
# **Question.** In attention without parameters, $s_{ij} = s_{ji}$. Why are $p_{ij}$ and $p_{ji}$ still
# different in general?
#
# <details><summary>Answer</summary>
# The softmax divides each row by its own sum. The sums of row i and row j are different in general.
# </details>
#
# **Question.** All keys of a lookup are equal. What is the answer for any query?
#
# <details><summary>Answer</summary>
# All scores of a query are equal, so all weights are 1/S. The answer is the mean of the values.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 4` lists them. Each is graded by the gradient checker.
#
# - `npformer exercise start dot-similarity-backward`: two products; which matrix is transposed?
# - `npformer exercise start general-similarity-backward`: the same in two steps, and W is used for all pairs.
# - By hand: two tokens have the vectors x₁ = (1, 0) and x₂ = (3, 0). To which token does the first one attend
#   most, and with which weight? Which line of "Why a token attends most to itself" allows this?
#
# **Next**, lesson 5: the scaled dot product, and the gradient of the softmax.

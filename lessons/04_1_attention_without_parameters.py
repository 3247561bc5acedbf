# %% [markdown]
# # 4.1 · Attention without parameters
#
# *About 30 minutes. You need: token vectors (lesson 2.1, `02_1_embeddings`), dot products, mean and standard
# deviation.*
#
# **After this lesson you can**
#
# - compute self-attention without parameters for a sentence;
# - explain what the scores and the attention weights are;
# - say when a token attends most to itself, and prove it.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.functional.attention import attention
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.plots import Grid, Step, attention_map, cell_product, gradient_flow

rng = np.random.default_rng(4)

# %% [markdown]
# ## Why attention?
#
# After lessons 2.1 (`02_1_embeddings`) and 3.1 (`03_1_positions`), every token of a sentence has a vector.
# This vector says which token it is and where it stands. It says nothing about the other tokens. But the
# meaning of a token depends on the others. In the sentence "the dog saw the bird", the vector of "saw"
# should contain who saw whom.
#
# **Attention** is the layer that brings information from other tokens into the vector of a token. It computes
# a weight for each token, and then the average of all vectors with these weights. This chapter begins with
# attention that has no parameters. Later lessons add weight matrices and compare four ways of computing
# scores.
#
# For our example we choose the entries of the vectors by hand. They say whether a word is an animal, flies,
# is an action, or is an article. Every vector has length 2.

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

# %% tags=["plot"]
bird, _ = softmax(x @ x[4])  # (T,) the weights of "bird"
parts = [
    Grid(bird[:, None], "weight", "r", rows=words, numbers=True, shade=True),
    "×",
    Grid(x, "vector", "x", numbers=True, decimals=1, shade=True),
    Grid(bird @ x, "→ average", "z", numbers=True, decimals=1, shade=True),
]
caption = 'The new vector of "bird": each vector times its weight, and then the sum'
show_figure(cell_product(parts), "04_bird", caption)

# %% [markdown]
# The picture shows the average for "bird". In a trained model, the vectors come from training, and a single
# entry rarely has a simple meaning.

# %% [markdown]
# ## Attention without parameters
#
# The simplest attention layer has no parameters. T vectors $x_t$ go in, one for each token, and T vectors
# $y_t$ come out. Each output is computed in three steps. The letters $s$ and $r$ also stand for tokens:
#
# $$\begin{aligned}
# a_{ts} &= x_t \cdot x_s \\
# p_{ts} &= \frac{\exp a_{ts}}{\sum_r \exp a_{tr}} \\
# y_t &= \sum_s p_{ts}\, x_s
# \end{aligned}$$
#
# 1. The **score** $a_{ts}$ is a dot product. It is large if the two vectors have similar directions, and if
#    they are long.
# 2. The **softmax** turns the scores of token $t$ into **attention weights** $p_{ts}$. They are positive, and
#    their sum over $s$ is 1.
# 3. The output $y_t$ is the average of all vectors with these weights.
#
# We say that token $t$ **attends to** token $s$ with the weight $p_{ts}$. All vectors come from the same
# sentence, so this is **self-attention**.
#
# **Question.** To which tokens will "dog" attend most? Compute its five scores first.
#
# <details><summary>Answer</summary>
# The scores of "dog" are 0, 4, 0, 0 and 3.2. So it attends most to itself, and then to "bird". The other
# tokens get small weights, but not 0, because the exponential function is always positive.
# </details>
#
# The picture shows the three steps for all tokens at once. $X$ has one row for each token.

# %% tags=["plot"]
layout = """.  scores  weights  y
            x    .       .     ."""
arrays = {"x": x, "scores": x @ x.T, "weights": softmax(x @ x.T)[0]}
arrays["y"] = arrays["weights"] @ x
steps = {
    "scores": Step("x xᵀ", ["x"]),
    "weights": Step("softmax", ["scores"]),
    "y": Step("weights x", ["weights", "x"]),
}
axes = {"x": "T D", "scores": "T T", "weights": "T T", "y": "T D"}
caption = "Self-attention without parameters: T tokens, and D entries of each vector"
show_figure(gradient_flow(layout, arrays, steps, axes=axes), "04_1_steps", caption)

# %% [markdown]
# The cell computes the layer with matrices. Row $t$ of `weights` contains the weights of token $t$.

# %%
weights, _ = softmax(x @ x.T)  # (T, T), row t attends to column s
y = weights @ x  # (T, D)
print(y.round(2))

# %% [markdown]
# The package has a function `attention` with three inputs. We give it $x$ three times, and lesson 4.2
# explains why. The argument `scale=1.0` switches off a factor that belongs to chapter 5. The function also
# returns a cache: the arrays that the backward pass will need.

# %%
y_package, cache = attention(x, x, x, scale=1.0)
show(cache)

# %% tags=["check"]
assert_allclose(np.linalg.norm(x, axis=-1), 2)
assert_allclose(y, y_package, rtol=1e-12)

slow = np.zeros_like(x)  # (T, D)
for t in range(5):
    e = [np.exp(sum(x[t, i] * x[s, i] for i in range(4))) for s in range(5)]
    for s in range(5):
        slow[t] += e[s] / sum(e) * x[s]
assert_allclose(y, slow, rtol=1e-12)

# %% tags=["plot"]
figure = attention_map(weights, words, words, numbers=True)
figure.axes[0].set(xlabel="attends to", ylabel="token")
caption = "Without parameters: each token attends to itself and to tokens with similar vectors"
show_figure(figure, "04_basic", caption)

# %% [markdown]
# The result shows what this layer can do, and what it cannot do:
#
# - "dog" and "bird" are similar: their score is 3.2. So "dog" attends to "bird" with the weight .30. Its
#   output now has .36 in the entry "flies". The two animals have become more similar to each other.
# - Both "the" have the same vector, and they get the same output. The vectors contain no positions here, so
#   the outputs cannot contain any.
# - "saw" attends to itself with the weight .93. So its output contains almost nothing about who saw whom.

# %% tags=["check"]
assert_allclose(weights[1, 4], 0.30, atol=0.005)
assert_allclose(y[1, 1], 0.36, atol=0.005)
assert_allclose(weights[2, 2], 0.93, atol=0.005)
assert (y[0] == y[3]).all()

# %% [markdown]
# ## Why a token attends most to itself
#
# The weight of "saw" for itself was no accident. We compare the score of token $t$ for itself with its score
# for another token $s$. The inequality of Cauchy and Schwarz says that a dot product is at most the product
# of the two lengths: $x_t \cdot x_s \le |x_t|\,|x_s|$. So
#
# $$\begin{aligned}
# a_{tt} - a_{ts} &= |x_t|^2 - x_t \cdot x_s \\
# &\ge |x_t|^2 - |x_t|\,|x_s| \\
# &= |x_t|\,(|x_t| - |x_s|)
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
# and variance 1. The score $a_{tt}$ is a sum of D squares, and its mean is D. The score $a_{ts}$ is a sum of
# D products, each with mean 0 and variance 1. Their variances add up, so it has the standard deviation
# $\sqrt{D}$. For a large D, the mean D of $a_{tt}$ is much larger than the deviation $\sqrt{D}$ of $a_{ts}$.
#
# The cell measures this for 2,000 random sentences of ten tokens. It prints how often a token attends most to
# itself, and the median (the middle value) of the weight that it gives to itself.

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
# itself is then 1.000000. For such a token, all other weights together are below 10⁻⁶, so its $y$ and $x$
# agree in about six digits. The layer hardly changes its input.
#
# **Question.** The vector $x_t$ decides how much token $t$ attends to each token. What else does $x_t$
# decide?
#
# <details><summary>Answer</summary>
# It is compared with the vectors of all tokens, so it also decides which tokens attend to token $t$. And it
# is one of the vectors that these tokens average.
# </details>
#
# So one vector has several tasks. Lesson 4.4 (`04_4_query_key_and_value`) separates them.

# %% [markdown]
# **Your turn.** In the terminal, make the vector of "saw" more similar to that of "dog":
# `!x[2] = [1, 0, 1, 0]`. Predict what happens to the weights of "saw". Then print them with
# `!softmax(x @ x.T)[0][2].round(2)`.

# %% [markdown]
# ## Summary
#
# - Attention computes a new vector for each token: a weighted average of the vectors of all tokens.
# - The weights come from a softmax over scores, and here a score is the dot product of two tokens.
# - In self-attention, all vectors come from the same sentence.
# - If all vectors have the same length, no token attends more to another token than to itself.
# - With random vectors and a large width D, the layer hardly changes its input.

# %% [markdown]
# ## Questions
#
# **Question.** In attention without parameters, $a_{ts} = a_{st}$. Why are $p_{ts}$ and $p_{st}$ still
# different in general?
#
# <details><summary>Answer</summary>
# The softmax divides each row by its own sum. The sums of row t and row s are different in general.
# </details>
#
# **Question.** All vectors of a sentence are multiplied by 10. What happens to the weights?
#
# <details><summary>Answer</summary>
# All scores become 100 times as large, and so do their differences. Each softmax gives almost all weight to
# its largest score.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these on paper, and check the numbers in Python. The command `npformer exercise list 4` lists the
# exercises of this chapter that are graded.
#
# - Two tokens have the vectors x₁ = (1, 0) and x₂ = (3, 0). To which token does the first one attend most,
#   and with which weight? Which line of "Why a token attends most to itself" allows this?
# - Two tokens have the same vector. Show that they have the same outputs, whatever the other tokens are.
#
# **Next**: lesson 4.2 (`04_2_the_gradient_of_self_attention`), the backward pass of this layer.

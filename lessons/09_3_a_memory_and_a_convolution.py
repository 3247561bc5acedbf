# %% [markdown]
# # 9.3 · A memory and a convolution
#
# *About 30 minutes. You need: the feed-forward network (lesson 9.1, `09_1_the_feed_forward_network`),
# queries, keys and values (lesson 4.4, `04_4_query_key_and_value`), masks (lesson 6.1, `06_1_masks`).*
#
# **After this lesson you can**
#
# - read the feed-forward network as a memory with learned keys and values;
# - write such a memory by hand;
# - read the network as two convolutions of kernel size 1, and explain why a larger kernel is a mistake.
#
# `each layer: x → attention → add & norm → [FEED-FORWARD] → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.course import show_figure
from npformer.nn import FeedForward
from npformer.plots import Step, attention_map, gradient_flow, mask_map

rng = np.random.default_rng(9)

# %% [markdown]
# ## The network again
#
# The feed-forward network computes $\max(0,\, x W_1 + b_1)\, W_2 + b_2$ for each token separately:

# %% tags=["plot"]
same = np.random.default_rng(0)
arrays = {"x": same.standard_normal((5, 4))}  # (T, D)
arrays["h"] = arrays["x"] @ same.standard_normal((4, 8))  # (T, F)
arrays["a"] = np.maximum(0, arrays["h"])
arrays["y"] = arrays["a"] @ same.standard_normal((8, 4))
steps = {
    "h": Step("x w1 + b1", ["x"]),
    "a": Step("max(0, h)", ["h"]),
    "y": Step("a w2 + b2", ["a"]),
}
axes = {"x": "T D", "h": "T F", "a": "T F", "y": "T D"}
figure = gradient_flow("x h a y", arrays, steps, axes=axes)
show_figure(figure, "09_3_network", "The feed-forward network: each row is a token")

# %% [markdown]
# In this lesson we do not change it. We read its formula in two other ways.

# %%
words = ["the", "animal", "was", "too", "tired"]
x = rng.standard_normal((2, 5, 4))  # (B, T, D)
w1, b1 = rng.standard_normal((4, 16)) / 2, rng.standard_normal(16) / 2  # (D, F), (F,)
w2, b2 = rng.standard_normal((16, 4)) / 4, rng.standard_normal(4)  # (F, D), (D,)
y = np.maximum(0, x @ w1 + b1) @ w2 + b2  # (B, T, D)

layer = FeedForward(4, 16, dtype=np.float64)
state = {"inner.weight": w1, "inner.bias": b1, "outer.weight": w2, "outer.bias": b2}
layer.load_state_dict(state)

# %% tags=["check"]
assert_allclose(layer.forward(x)[0], y, rtol=1e-12)

# %% [markdown]
# ## As a memory
#
# Let $k_f$ be column $f$ of $W_1$, and $v_f$ row $f$ of $W_2$. Then equation (2) is
#
# $$y = \sum_f \max(0,\; x \cdot k_f + b_f)\; v_f + b_2$$
#
# This is very similar to attention. The vector $x$ is a query, the $k_f$ are keys, and the $v_f$ are values.
# The output is a weighted sum of the values. (Geva et al., *Transformer Feed-Forward Layers Are Key-Value
# Memories*, 2021.) There are three differences:
#
# | | attention | feed-forward network |
# |---|---|---|
# | keys and values | computed from the tokens | learned parameters |
# | their number | the length of the sentence | always F |
# | weights | sum to 1 | any sum; all of them may be 0 |
#
# So the network can store knowledge in its parameters. A token may match several keys, or none. The cell
# computes the network of this lesson with the new formula.

# %%
terms = [np.maximum(0, x @ w1[:, f] + b1[f])[..., None] * w2[f] for f in range(16)]
print("largest difference:", abs(sum(terms) + b2 - y).max())

# %% tags=["check"]
assert_allclose(sum(terms) + b2, y, rtol=1e-9)

# %% [markdown]
# We write such a memory by hand. It knows the capitals of three countries. Each name is a random vector of
# length 1 with 64 entries. Two different random vectors are almost orthogonal, so their dot product is close
# to 0. The dot product of a vector with itself is 1.
#
# A unit should be active where $x \cdot k_f > 1/2$. We choose $h = 2\,x \cdot k_f - 1$. It is 1 for the name
# itself, 0 at the threshold, and about −1 for other names.

# %%
sentence = ["Japan", "and", "France", "not", "Chile"]
known = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima"}
vectors = {}
for word in [*sentence, *known, *known.values()]:
    v = rng.standard_normal(64)  # (D,)
    vectors.setdefault(word, v / np.linalg.norm(v))

memory = FeedForward(64, 3, dtype=np.float64)
keys = np.stack([vectors[country] for country in known])  # (F, D)
values = np.stack([vectors[city] for city in known.values()])  # (F, D)
memory.load_state_dict(
    {
        "inner.weight": 2 * keys.T,
        "inner.bias": -np.ones(3),
        "outer.weight": values,
        "outer.bias": np.zeros(64),
    }
)

# %% [markdown]
# **Question.** "and" matches none of the keys. What does the memory return for it, and what would attention
# with the same keys and values return?
#
# <details><summary>Answer</summary>
# The memory returns a vector of zeros, because all its units are inactive. The weights of a softmax sum to
# 1, so attention would return a mixture of the three capitals.
# </details>

# %%
asked = np.stack([vectors[word] for word in sentence])[None]  # (1, T, D)
found, memory_cache = memory.forward(asked)  # (1, T, D)
weights = memory_cache.outer.x[0]  # (T, F)
with_softmax = np.exp(asked[0] @ keys.T)  # (T, F) the same keys with a softmax
with_softmax /= with_softmax.sum(-1, keepdims=True)
print("weights of “and”:", weights[1], "  with a softmax:", np.round(with_softmax[1], 2))

# %% tags=["check"]
assert_allclose(found[0, 0], vectors["Tokyo"], rtol=1e-9)
assert (found[0, [1, 3, 4]] == 0).all()
assert_allclose(with_softmax[1], 1 / 3, atol=0.03)

# %% tags=["plot"]
figure = attention_map(weights, sentence, list(known), numbers=True)
show_figure(figure, "09_memory", "The weights of each token: 1 for its key, or 0 for all")

# %% [markdown]
# In a Transformer, the residual connection adds this output to the vector of the token (lesson 8.3,
# `08_3_the_residual_connection`). So "Japan" becomes Japan plus Tokyo, and "and" stays unchanged. A softmax
# would add about a third of each capital.
#
# **Your turn.** In the terminal, ask for a country that is not in the sentence, with
# `!memory.forward(vectors["Peru"][None, None])[0] @ vectors["Lima"]`. Which number do you expect?

# %% [markdown]
# ## As a convolution
#
# The paper says:
#
# > Another way of describing this is as two convolutions with kernel size 1.
#
# A **convolution** computes each output from a *window* of neighbouring tokens. The **kernel size** $n$ is
# the number of tokens in the window. Each place $j$ in the window has a matrix $W_j$. Beyond the ends of the
# sentence, the input counts as 0:
#
# $$y_t = b + \sum_j x_{t+j}\, W_j, \qquad j = -\frac{n-1}{2}, \ldots, \frac{n-1}{2}$$
#
# With $n = 1$ the window contains only the token itself, and $W_0$ is the matrix of a linear layer. So it is
# the same network.

# %%


def convolution(x, w, b):
    """A slow convolution. x (B, T, D), w (n, D, F), b (F,) -> (B, T, F)."""
    y = np.zeros((*x.shape[:2], w.shape[2]))
    for t in range(x.shape[1]):
        for f in range(w.shape[2]):
            y[:, t, f] = b[f]
            for j in range(len(w)):
                there = t + j - len(w) // 2
                if 0 <= there < x.shape[1]:
                    for d in range(x.shape[2]):
                        y[:, t, f] += x[:, there, d] * w[j, d, f]
    return y


hidden = np.maximum(0, convolution(x, w1[None], b1))
difference = abs(convolution(hidden, w2[None], b2) - y).max()
print("largest difference from the feed-forward network:", difference)

# %% tags=["check"]
assert_allclose(convolution(hidden, w2[None], b2), y, rtol=1e-9)

# %% [markdown]
# The paper's sentence is useful for programmers: a library function for convolutions can compute the network.
# *一步步解析Attention is All You Need!* calls `conv1d` twice, with `kernel_size` 1.
#
# What if somebody writes 3 there, with `padding="same"`? All shapes are still correct. But each output now
# depends on other tokens. The cell computes which ones. It changes one token after the other, as in the leak
# test of lesson 6.3 (`06_3_leaks`).

# %%
w3, v3 = rng.standard_normal((3, 4, 16)) / 4, rng.standard_normal((3, 16, 4)) / 8


def size_three(x):
    """Two convolutions of kernel size 3 with a ReLU between them."""
    return convolution(np.maximum(0, convolution(x, w3, b1)), v3, b2)


def dependence(f, x):
    """Return where an output token (row) changes with an input token (column). (T, T) bool."""
    depends = np.zeros((x.shape[1], x.shape[1]), bool)
    for s in range(x.shape[1]):
        changed = x.copy()
        changed[:, s] += 1
        depends[:, s] = (f(changed) != f(x)).any((0, 2))
    return depends


long = rng.standard_normal((1, 7, 4))  # (B, T, D)
depends = dependence(size_three, long)  # (T, T)
print("tokens on which each output depends:", depends.sum(1))

# %% tags=["check"]
apart = abs(np.subtract.outer(range(7), range(7)))  # (T, T)
assert (depends == (apart <= 2)).all()
assert (dependence(lambda x: layer.forward(x)[0], long) == (apart == 0)).all()

# %% tags=["plot"]
padded = [*words, "<pad>", "<pad>"]
figure = mask_map(depends, padded, padded)
caption = "Kernel size 3, twice: a row depends on two columns on each side (light)"
show_figure(figure, "09_kernel", caption)

# %% [markdown]
# Each output depends on two tokens on either side, and this causes two errors:
#
# - "tired" now depends on padding. So the output for a sentence depends on the batch that contains it.
# - In a decoder, "was" would depend on two later tokens. This is a leak that no mask of chapter 6 can
#   prevent, because masks act only in attention.
#
# With kernel size 1, only the diagonal of the picture would be light. The tokens are mixed in attention
# alone, which has masks.

# %% [markdown]
# ## What the source documents say
#
# > - *一步步解析Attention is All You Need!* writes the network as two `conv1d` of kernel size 1. The same
# >   function also adds the residual and applies the norm. Its default `scope` is "multihead_attention",
# >   copied from the function before it.

# %% [markdown]
# ## Summary
#
# - Each column of $W_1$ is a key, and each row of $W_2$ is a value. The activations are the weights.
# - Unlike in attention, keys and values are learned parameters, and the weights need not sum to 1.
# - If a token matches no key, the memory can return 0. A softmax would return a mixture.
# - The network is also two convolutions of kernel size 1: each output depends on one token.
# - With a larger kernel, outputs depend on padding and on later tokens, and no mask prevents it.

# %% [markdown]
# ## Questions
#
# **Question.** In which of the two views can you see that the network treats each token separately?
#
# <details><summary>Answer</summary>
# In both. The keys and values of the memory do not come from other tokens, but are parameters. The window of
# a convolution of kernel size 1 contains only the token itself.
# </details>
#
# **Question.** Three convolutions of kernel size 3 follow each other. On how many tokens can one output
# depend?
#
# <details><summary>Answer</summary>
# On seven. Each convolution adds one token on either side, so there are three on either side, and the token
# itself.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 9` lists the exercises of this chapter, which belong to lessons 9.1 and 9.2
# (`09_2_activations_and_dead_units`).
#
# - By hand: the memory of this lesson gets the vector of "France" multiplied by 2. Which activation does the
#   unit of France have, and what is the output? (The dot product of the vector with its key is 2.)
# - By hand: choose a scale and a bias so that a unit is 0 up to a dot product of .8, and 1 at a dot product
#   of 1.
#
# **Next**: lesson 9.4 (`09_4_the_cost_of_the_feed_forward_network`), its share of the parameters and of the
# work.

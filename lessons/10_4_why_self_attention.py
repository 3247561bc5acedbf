# %% [markdown]
# # 10.4 · Why self-attention?
#
# *About 30 minutes. You need: self-attention (lesson 5.1, `05_1_scaled_dot_product_attention`), the encoder
# layer (lesson 10.1, `10_1_one_encoder_layer`), the complex step (lesson 0.3, `00_3_measured_derivatives`).*
#
# **After this lesson you can**
#
# - count the multiplications of self-attention, of a recurrent layer and of a convolution;
# - say which of their operations must wait for one another;
# - measure the effect of one token on another, and relate it to the gradient.
#
# `model: ids → embedding → positions → [ENCODER] → decoder → linear → softmax`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention
from npformer import functional as F
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.plots import curves

rng = np.random.default_rng(10)

# %% [markdown]
# ## Why self-attention?
#
# Other layers also turn $n$ vectors into $n$ vectors. Before the Transformer, recurrent layers and
# convolutions were used. Section 4 of the paper compares them by three measures:
#
# - the number of multiplications;
# - the number of operations that must be computed **in sequence**, one after the other;
# - the length of the **path** between two tokens: the number of operations from one token to the other.
#
# The table below is the paper's table 1, without the row of an attention that is restricted to neighbours.
# O(n) means: proportional to n, for large n. The kernel of the convolution has width k.
#
# | layer | multiplications | in sequence | longest path |
# |---|---|---|---|
# | self-attention | O(n² d) | O(1) | O(1) |
# | recurrent | O(n d²) | O(n) | O(n) |
# | convolution, width k | O(k n d²) | O(1) | O(log_k n), dilated |

# %% [markdown]
# We test the table by counting. For this we need the three layers in their simplest form. A **recurrent
# layer** goes through the tokens one by one. It keeps a state $h$, and each state is computed from the
# token and the state before it. A **convolution** of width 3 computes each output from a token and its two
# neighbours:
#
# $$h_t = \tanh(x_t W + h_{t-1} U)$$
#
# $$y_t = x_{t-1} W_{-1} + x_t W_0 + x_{t+1} W_1$$
#
# A recurrent layer computes its $n$ states one after another. The convolution adds three products of shifted
# inputs. The picture shows self-attention, for $n$ vectors of length d:

# %% tags=["plot"]
figure = shape_flow(
    ". scores weights y \n x . . .",
    {"scores": "x xᵀ: x", "weights": "softmax: scores", "y": "weights x: weights x"},
    {"x": "n d", "scores": "n n", "weights": "n n", "y": "n d"},
)
caption = "Self-attention: every output can use every input, in one step"
show_figure(figure, "10_4_shapes", caption)

# %% [markdown]
# The function `times` multiplies two matrices and counts the multiplications.

# %%
total = 0


def times(a, b):
    """Return a @ b, and add its multiplications to the total."""
    global total
    y = a @ b
    total += y.size * a.shape[-1]  # each entry of y is a sum over the columns of a
    return y


def self_attention(x):
    """Shapes: x (T, D) -> (T, D), with two products."""
    weights, _ = F.softmax(times(x, x.T) / math.sqrt(x.shape[-1]))  # (T, S)
    return times(weights, x)


def recurrent(x, weight, again):
    """Shapes: x (T, D), weight and again (D, D) -> the last state (D,)."""
    h = 0 * x[0]
    for row in x:
        h = np.tanh(times(row, weight) + times(h, again))
    return h


def convolution(x, weights):
    """Shapes: x (T, D), weights (3, D, D) -> (T, D)."""
    edge = 0 * x[:1]
    padded = np.concatenate([edge, x, edge])  # (T + 2, D)
    return sum(times(padded[o : o + len(x)], weights[o]) for o in range(3))


# %%
d = 64
three = rng.standard_normal((3, d, d)) / math.sqrt(d)
layers = {
    "self-attention": self_attention,
    "recurrent": lambda x: recurrent(x, three[0], three[1]),
    "convolution": lambda x: convolution(x, three),
}
counted = {}
print("    n " + "".join(f"{name:>16}" for name in layers))
for n in (16, 64, 256):
    counted[n] = []
    for function in layers.values():
        total = 0
        function(rng.standard_normal((n, d)))
        counted[n].append(total)
    print(f"{n:5} " + "".join(f"{count:16,}" for count in counted[n]))

# %% tags=["check"]
for n, found in counted.items():
    assert found == [2 * n * n * d, 2 * n * d * d, 3 * n * d * d]

# %% [markdown]
# The table is right, and we know its constants now: $2n^2 d$, $2nd^2$ and $3nd^2$. Attention has fewer
# multiplications than recurrence as long as $n < d$.
#
# Now to the second measure. For every $n$, attention needs only two products in sequence. The recurrent
# layer needs $n$ steps, and none of them can begin before the previous one has ended. This is why a GPU can
# compute attention for all tokens at the same time.
#
# The attention of the table has no weight matrices. A real layer has them, and a feed-forward network too.
# The eleven lines of lesson 10.1 contain eight matrix products. Those of q, k and v can be computed at the
# same time, so six products remain in sequence.
#
# How large is the share of the $n^2$ term in a real layer? We count it for a sentence of 25 tokens in the
# sizes of the paper.

# %%
base = EncoderLayer(TransformerConfig(dropout=0.0), dtype=np.float32)  # the sizes of the paper
matrices = [p.value for p in base.parameters() if p.value.ndim == 2]  # Wq Wk Wv Wo W1 W2
linear_part = 25 * sum(matrix.size for matrix in matrices)  # each entry once for each token
quadratic = 2 * 25**2 * 512  # scores and weighted sums, over all heads
print(f"linear layers {linear_part:,} multiplications, 2n²d {quadratic:,}: ", end="")
print(f"{quadratic / (linear_part + quadratic):.1%} of all")

# %% tags=["check"]
assert linear_part == 25 * (4 * 512**2 + 2 * 512 * 2048) == 25 * 12 * 512**2
assert_allclose(quadratic / (linear_part + quadratic), 0.008, atol=0.0005)

# %% [markdown]
# The $n^2$ term is only 0.8 % of the work.
#
# **Question.** The linear layers need $4nd^2$ multiplications for attention and $2nd \cdot 4d$ for the
# feed-forward network. For which $n$ does the term $2n^2 d$ become larger?
#
# <details><summary>Answer</summary>
# Together the linear layers need $12 n d^2$. The equation $2n^2 d = 12 n d^2$ gives $n = 6d$, which is
# 3,072 tokens in the sizes of the paper.
# </details>
#
# ### The path
#
# The third measure is the path between two tokens. We measure it by an experiment. We take the token that
# stands $j$ places before the last one, and change it a little along a direction $v$ of length 1. Then we see
# how far the output of the last token moves. We do this for a recurrent layer, for a stack of six
# convolutions, and for one layer of self-attention. All have random weights. The derivative is computed with
# a complex step (lesson 0.3).

# %%


def six_convolutions(x):
    for _ in range(6):
        x = convolution(x, three / math.sqrt(3))
    return x


attending = MultiHeadAttention(d, 4, rng=rng, dtype=np.float64)
compared = {
    "recurrent": layers["recurrent"],
    "6 convolutions": lambda x: six_convolutions(x)[-1],
    "self-attention": lambda x: attending.forward(x[None])[0][0, -1],
}
n = 32
x_n, v = rng.standard_normal((2, n, d))  # (T, D)
v /= np.linalg.norm(v, axis=-1, keepdims=True)
effects = np.zeros((3, n))  # how far the output moves, the last token first
for row, (name, function) in zip(effects, compared.items(), strict=True):
    for j in range(n):
        moved = x_n.astype(complex)
        moved[n - 1 - j] += 1e-20j * v[n - 1 - j]
        row[j] = np.linalg.norm(function(moved).imag) / 1e-20
    print(f"{name:15} 1 place before {row[1]:.0e}   10 places {row[10]:.0e}   31 {row[31]:.0e}")

# %% tags=["plot"]
figure = curves(
    np.where(effects > 0, effects, np.nan),
    np.arange(n),
    labels=list(compared),
    xlabel="distance of the changed token from the last one",
    ylabel="how far the last output moves",
    yscale="log",
)
caption = "The effect of a token on the last output, by its distance"
show_figure(figure, "10_path", caption)

# %% [markdown]
# - **Self-attention** has an effect between .005 and .5 at every distance. Every token is one step away.
#   Its effect depends on its contents, and not on its place.
# - **The recurrent layer** multiplies by a matrix $j$ times, and each time a part of the effect is lost.
#   From a distance of 31 places, less than a millionth arrives.
# - **Six convolutions** of width 3 reach exactly six places. Beyond them the effect is exactly 0.
#
# The same is true of the gradient. Let $J$ be the matrix of the derivatives of the output by the input. The
# experiment computes $J v$, and the backward pass computes $J^\top dy$ with the same matrix. A token
# without an effect on the output gets no gradient.

# %% [markdown]
# **Question.** How many convolutions of width 3 connect the two ends of 32 tokens?
#
# <details><summary>Answer</summary>
# 31 convolutions, because each of them reaches one place further. If the neighbours stand 1, 3, 9 and 27
# places apart, four convolutions are enough. Such convolutions are called **dilated**.
# </details>

# %% tags=["check"]
assert 0.005 < effects[2].min() < effects[2].max() < 0.5
assert 1e-8 < effects[0][31] < 1e-6
assert effects[1][6] > 0
assert (effects[1][7:] == 0).all()
assert 1 + 3 + 9 < 31 < 1 + 3 + 9 + 27
print("the numbers of the text agree with the picture")

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* says that an encoder works on the whole sequence in parallel. This is true within a
# >   layer. But the layers must wait for one another: six products in sequence for each layer, and 36 in
# >   the paper's encoder.

# %% [markdown]
# ## Summary
#
# - Self-attention needs $2n^2 d$ multiplications, a recurrent layer $2nd^2$, a convolution of width 3
#   $3nd^2$.
# - The steps of a recurrent layer must wait for one another. In self-attention,
#   all tokens are computed at the same time.
# - In a real encoder layer, the $n^2$ term is below 1 % of the work for 25 tokens.
# - Self-attention connects any two tokens in one step. A recurrent layer needs
#   one step for each position between them.
# - A token without an effect on the output gets no gradient from it.

# %% [markdown]
# ## Questions
#
# **Question.** The sentences of a corpus have 25 tokens on average, and d is 512. Which of the layers in the
# table needs the fewest multiplications?
#
# <details><summary>Answer</summary>
# Self-attention, because n = 25 is much smaller than d = 512.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 10` lists the exercises of this chapter, which belong to lessons 10.2
# (`10_2_the_backward_pass_of_an_encoder_layer`) and 10.3 (`10_3_the_whole_encoder`).
#
# - By hand: double n, then double d. By which factor does each term of 2n²d + 12nd² grow?
# - By hand: how many tokens can dilated convolutions of width 3 connect with k layers, if the neighbours
#   stand 1, 3, 9, … places apart?
#
# **Next**: lesson 10.5 (`10_5_what_a_second_layer_is_for`), why one layer of self-attention is not enough.

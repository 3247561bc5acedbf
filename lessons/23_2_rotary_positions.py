# %% [markdown]
# # 23.2 · Rotary positions
#
# *About 30 minutes. You need: sinusoids and rotations (lessons 3.1, `03_1_positions`, and 3.2,
# `03_2_an_offset_is_a_rotation`), the scores of attention (lesson 5.1,
# `05_1_scaled_dot_product_attention`).*
#
# **After this lesson you can**
#
# - rotate queries and keys by their positions, in NumPy and in both layouts;
# - show that the score of a query and a key depends on their distance only;
# - derive the backward pass of a rotation, and explain why values are not rotated.
#
# `attention: [QUERIES AND KEYS] → scores → mask → softmax → mean of values`

# %%
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn import MultiHeadAttention, RotaryPositions
from npformer.plots import Figure, cell_grid

rng = np.random.default_rng(23)

# %% [markdown]
# ## Why rotate?
#
# In the Transformer of 2017, a vector of sinusoids for the position is *added* to the vector of the token.
# Lesson 3.2 showed that the sinusoids have a useful property: a step by several positions is a rotation. But
# the model must learn to use this property, because words and positions are mixed in one sum.
#
# Relative positions (lesson 21.1, `21_1_relative_position_representations`) put the distance into the scores.
# This method needs a learned vector for each distance, and an additional product for the scores.
#
# Su et al. (*RoFormer: Enhanced Transformer with Rotary Position Embedding*, 2021) found a simpler way. They
# *rotate* each query and each key by an angle that is proportional to its position:
#
# | | positions |
# |---|---|
# | 2017 | vectors, added to the tokens |
# | rotary | angles, by which queries and keys are rotated |
#
# This method is called **rotary positions**, or RoPE. Nothing is added to the tokens, and nothing is learned.
# **In 2025**, nearly all language models use them; Llama 4 leaves them out in every fourth layer.

# %% [markdown]
# ## One pair of numbers
#
# We begin with queries and keys of two numbers. Such a vector is an arrow in the plane. At position $t$ it is
# rotated by the angle $t\theta$. The rotation is a product with the matrix $R_t$:
#
# $$R_t = \begin{pmatrix} \cos t\theta & -\sin t\theta \\ \sin t\theta & \cos t\theta \end{pmatrix}$$
#
# Lesson 3.2 tested the rules $R_t^\top = R_{-t}$ and $R_s R_t = R_{s + t}$. With these rules, the dot product
# of a rotated query at $t$ and a rotated key at $s$ is
#
# $$(R_t q) \cdot (R_s k) = q^\top R_t^\top R_s\, k = q \cdot (R_{s - t}\, k)$$
#
# The positions occur only in the difference $s - t$. So **the score depends on the distance, and not on the
# absolute positions**. The cell computes the score for three pairs of positions with the same distance.

# %%
theta = 0.5


def rotation(t):
    """Return R_t, of shape (2, 2)."""
    c, s = np.cos(t * theta), np.sin(t * theta)
    return np.array([[c, -s], [s, c]])


q, k = np.array([1.0, 0.2]), np.array([-0.2, 0.6])  # (2,)
scores = [(rotation(t) @ q) @ (rotation(s) @ k) for t, s in ((2, 0), (7, 5), (102, 100))]
print("scores at distance −2:", np.round(scores, 6))

# %% tags=["check"]
assert_allclose(scores, q @ (rotation(-2) @ k), rtol=1e-12)

# %% tags=["plot"]
figure = Figure(figsize=(7.6, 3.2))
axes = figure.subplots(1, 2, width_ratios=(1, 1.5))
for t in range(4):
    for vector, colour in ((q, "#a8005c"), (k, "#0b4a8f")):
        tip = rotation(t) @ vector
        style = {"color": colour, "width": 0.012, "scale": 1, "alpha": 1 - 0.2 * t}
        axes[0].quiver(0, 0, *tip, angles="xy", scale_units="xy", **style)
axes[0].set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), xticks=[], yticks=[])
axes[0].set_xlabel("query (long) and key (short)")
distance = np.arange(-12, 13)
axes[1].plot(distance, [q @ (rotation(d) @ k) for d in distance], marker="o", color="#0b4a8f")
axes[1].set_xlabel("distance s − t")
axes[1].set_ylabel("score")
figure.tight_layout()
caption = "Left: both at the positions 0 to 3. Right: the score is a function of the distance"
show_figure(figure, "23_rotation", caption)

# %% [markdown]
# **Question.** The score at the distance 0 is $q \cdot k$. What does this mean for a token that attends to
# itself?
#
# <details><summary>Answer</summary>
# Query and key of the same position are rotated by the same angle. So the score is the same as without
# rotary positions, at every position of the text.
# </details>

# %% [markdown]
# ## Many pairs
#
# The queries of a head have K numbers, for example 64. They form K / 2 pairs. Pair $i$ has its own angle per
# position, with the same formula as the sinusoids of lesson 3.1:
#
# $$\theta_i = 10000^{-2i/K}$$
#
# The first pair turns by 1 radian at each step. The last pair turns so slowly that it hardly changes in a
# short text. So the fast pairs can distinguish neighbours, and the slow pairs can distinguish paragraphs.
#
# Which numbers form a pair? The paper takes neighbours: numbers 0 and 1, numbers 2 and 3, and so on. This
# **layout** is called *interleaved*. The picture shows the steps:

# %% tags=["plot"]
figure = shape_flow(
    "q q' scores \n angles . . \n k k' .",
    {"q'": "rotate: q angles", "k'": "rotate: k angles", "scores": "q kᵀ: q' k'"},
    {"q": "T K", "k": "T K", "angles": "T K/2", "q'": "T K", "k'": "T K", "scores": "T T"},
)
caption = "Queries and keys are rotated by the angles of their positions; values are not"
show_figure(figure, "23_2_shapes", caption)

# %%
T, K = 6, 8
angle = np.arange(T)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)  # (T, K/2)
cos, sin = np.cos(angle), np.sin(angle)
x = rng.standard_normal((T, K))

a, b = x[:, 0::2], x[:, 1::2]  # (T, K/2) the first and the second number of each pair
rotated = np.empty_like(x)
rotated[:, 0::2] = a * cos - b * sin
rotated[:, 1::2] = a * sin + b * cos
y, cache = F.rotate(x, *F.rotary_table(np.arange(T), K), layout="interleaved")
show(cache)

# %% tags=["check"]
assert_allclose(rotated, y, rtol=1e-12)
assert_allclose((y**2).sum(-1), (x**2).sum(-1), rtol=1e-12)
assert_array_equal(y[0], x[0])

# %% [markdown]
# A rotation does not change the length of a vector. And at position 0 the angle is 0, so the first token is
# not changed.
#
# Now we test with all K numbers that the score depends on the distance only. We give every position the same
# query and the same key. Then only the positions can make a difference between the scores.

# %%
same_q, same_k = np.tile(rng.standard_normal((2, 1, K)), (1, T, 1))  # (T, K) each
rotated_q, _ = F.rotate(same_q, cos, sin)
rotated_k, _ = F.rotate(same_k, cos, sin)
scores = rotated_q @ rotated_k.T  # (T, T)

# the same tokens, 1000 positions later
far_cos, far_sin = F.rotary_table(np.arange(T) + 1000, K)
far = F.rotate(same_q, far_cos, far_sin)[0] @ F.rotate(same_k, far_cos, far_sin)[0].T
print(f"1000 positions later, the scores differ by at most {abs(far - scores).max():.0e}")

# %% tags=["check"]
for d in range(1 - T, T):
    assert np.ptp(np.diagonal(scores, d)) < 1e-12
assert_allclose(far, scores, atol=1e-10)

# %% tags=["plot"]
positions = [str(t) for t in range(T)]
figure = cell_grid(scores, rows=positions, columns=positions, numbers=True, shade=True)
caption = "The scores of equal queries and equal keys: one number for each distance"
show_figure(figure, "23_scores_by_distance", caption)

# %% [markdown]
# All numbers on a diagonal are equal, as in the figure of the clipped distances in lesson 21.1. But nothing
# is clipped here, and there is no table of learned vectors.

# %% [markdown]
# ## Two layouts
#
# `F.rotate` takes another layout by default. In the layout *halves*, number $i$ of the first half and number
# $i$ of the second half form a pair. The Llama models on Hugging Face use this layout.
#
# Both layouts rotate a pair in the same way, but they form the pairs from different numbers. Let $o$ be the
# order 0, 2, 4, …, 1, 3, 5, …, which puts the first numbers of all interleaved pairs before the second
# numbers. Then
#
# $$\mathrm{halves}(x[o]) = \mathrm{interleaved}(x)[o]$$

# %%
order = np.concatenate([np.arange(0, K, 2), np.arange(1, K, 2)])  # (K,)
print("o =", order)
halves, _ = F.rotate(x[:, order], cos, sin, "halves")
interleaved, _ = F.rotate(x, cos, sin, "interleaved")
print("equal after the permutation:", np.array_equal(halves, interleaved[:, order]))
wrong, _ = F.rotate(x, cos, sin, "halves")
print(f"without it, the difference is {abs(wrong - interleaved).max():.1f}")

# %% tags=["check"]
assert_array_equal(halves, interleaved[:, order])
assert abs(wrong - interleaved).max() > 0.5

# %% [markdown]
# So a model can learn the same functions with both layouts: only the columns of $W^Q$ and $W^K$ have another
# order. But you may not change the layout of a trained model without changing the order of these columns.
#
# **Question.** Queries and keys are permuted in the same way. Why does this not change the scores?
#
# <details><summary>Answer</summary>
# A score is a sum over the K products of the numbers of the query and of the key. The order of the terms does
# not change a sum.
# </details>

# %% [markdown]
# ## Backward
#
# The output is $y = R_t\, x$, and the rotation $R_t$ contains nothing that is learned. The backward pass of a
# product with a matrix is the product with the transposed matrix (lesson 0.2,
# `00_2_forward_and_backward`). And the transposed rotation is the rotation in the opposite direction:
#
# $$\begin{aligned}
# dx &= R_t^\top dy = R_{-t}\, dy \\
# da &= dy_a \cos t\theta + dy_b \sin t\theta \\
# db &= -dy_a \sin t\theta + dy_b \cos t\theta
# \end{aligned}$$
#
# So the backward pass is the forward pass with $-\sin$ in place of $\sin$.

# %%
dy = rng.standard_normal((T, K))
dx = F.rotate(dy, cos, -sin, "interleaved")[0]
back = F.rotate(y, cos, -sin, "interleaved")[0]
print(f"rotated and rotated back: the difference from x is at most {abs(back - x).max():.0e}")

layer = MultiHeadAttention(12, 3, rotary=RotaryPositions(8, 4), rng=rng)
report = gradcheck(layer, rng.standard_normal((2, 5, 12)))
print(report)

# %% tags=["check"]
assert_allclose(dx, F.rotate_backward(dy, cache), rtol=1e-12)
assert_allclose(back, x, rtol=1e-9)
assert report.ok

# %% [markdown]
# ## Why values are not rotated
#
# The output of attention is $z_t = \sum_s p_{ts} v_s$. There is no dot product that could cancel the rotation
# of a value. If values were rotated, each $z_t$ would depend on the absolute positions of the keys. The cell
# shows this: it moves a sentence by three positions.

# %%
x = rng.standard_normal((1, 1, T, K))  # (B, H, T, K), used as queries, keys and values


def attend(start, rotate_values):
    """Return the outputs (B, H, T, K) if the first token is at position `start`."""
    turned, _ = F.rotate(x, *F.rotary_table(np.arange(T) + start, K))
    return F.attention(turned, turned, turned if rotate_values else x)[0]


moved = {which: abs(attend(3, which) - attend(0, which)).max() for which in (False, True)}
print(f"change of the output: {moved[False]:.0e}, with rotated values {moved[True]:.1f}")

# %% tags=["check"]
assert moved[False] < 1e-12 < 0.1 < moved[True]

# %% [markdown]
# ## Summary
#
# - Rotary positions rotate each pair of numbers of a query or a key by $t\, \theta_i$ at position $t$.
# - The score of two rotated vectors depends on the positions only through their distance.
# - The layouts *halves* and *interleaved* differ by a permutation of the columns.
# - The backward pass is the rotation in the opposite direction. There are no parameters.
# - Values are not rotated, because nothing would cancel their rotation.

# %% [markdown]
# ## Questions
#
# **Question.** A program decodes one token at a time, and rotates each new query and key with position 0.
# What happens?
#
# <details><summary>Answer</summary>
# All distances are 0, so the model cannot distinguish the order of the earlier tokens. Training does not show
# this mistake, because it processes whole sentences.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 23` lists the exercises of this chapter.
#
# - `npformer exercise start rotate`: rotate queries or keys in the layout *halves*.
# - `npformer exercise start rotate-backward`: write the backward pass of the rotation.
# - `npformer exercise start interleaved-rotation`: rotate pairs of neighbours.
# - The command `npformer bugs start 24` gives you a program with a mistake in rotary positions, which you
#   find and correct. The commands `npformer bugs start 25` and `npformer bugs start 26` give you two more.
#
# **Next**: lesson 23.3 (`23_3_gated_feed_forward_networks`), a feed-forward network with a gate.

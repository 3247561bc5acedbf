# %% [markdown]
# # 7.1 · Why several heads?
#
# *About 30 minutes. You need: scaled dot-product attention (lesson 5.1, `05_1_scaled_dot_product_attention`),
# the mean and the variance of random numbers.*
#
# **After this lesson you can**
#
# - explain why one attention function is not enough, and compute how much it loses;
# - define multi-head attention, and write it with loops;
# - choose the weights of two heads by hand, so that nothing is lost.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.plots import attention_grid, cell_grid

rng = np.random.default_rng(7)

# %% [markdown]
# ## One average for each token
#
# Attention gives each token *one* weighted average of the values of all tokens. What if a token needs two
# different pieces of information? Read this sentence: "The animal didn't cross the street because it was too
# tired." The token "it" needs to know which noun it stands for, and what the sentence says about this noun.
# These pieces come from different tokens, and an average would mix them.
#
# The Transformer therefore computes several attention functions in parallel. Each of them is called a
# **head**. Each head has its own queries, keys and values, and so each head can attend to a different token.

# %% [markdown]
# ## An example: six people at a table
#
# How much does a single head lose? Our example can be solved on paper. Six people sit at a round table, in
# the order of the rows below, and Fay sits next to Ann.

# %% tags=["plot"]
people = ["Ann", "Ben", "Cem", "Dot", "Eve", "Fay"]
heads = np.roll(np.eye(6, dtype=int), -1, axis=1) + 2 * np.roll(np.eye(6, dtype=int), 1, axis=1)
colours = [("q", heads == 1), ("k", heads == 2)]
looks = {"numbers": True, "colour": "plain", "edge": "weight", "painted": colours}
figure = cell_grid(heads, rows=people, columns=people, **looks)
caption = "Each row is a person: 1 marks the left neighbour, and 2 marks the right one"
show_figure(figure, "07_1_heads", caption)

# %% [markdown]
# Each person has a **note** with six random numbers. Each person wants the notes of both neighbours, side by
# side and unmixed. One head can attend to the left neighbour (1 in the picture), and another to the right one
# (2).
#
# The people are the tokens of our "sentence". The vector $x$ of a person has 12 entries. The first six are
# the note. The other six encode the seat, with a 1 at the number of the seat and 0 elsewhere.

# %%


def tables(count):
    """Return some tables: x and the wanted outputs, each (B, T, D), where T is 6 and D is 12."""
    notes = rng.standard_normal((count, 6, 6))  # (B, T, 6)
    seats = np.broadcast_to(np.eye(6), (count, 6, 6))  # (B, T, 6) a 1 at one's own seat
    left, right = np.roll(notes, 1, axis=1), np.roll(notes, -1, axis=1)  # Fay sits next to Ann
    return np.concatenate([notes, seats], -1), np.concatenate([left, right], -1)


x, wanted = tables(4000)
print("x", x.shape, "  wanted", wanted.shape)
print("Ben has", x[0, 1, :2], "…   Cem wants from the left", wanted[0, 2, :2], "…")

# %% [markdown]
# ## One softmax gives one average
#
# Suppose that a single head finds the two neighbours by their seats. It
# gives the left neighbour the weight $p$ and the right neighbour the weight $1 - p$. Let $l$ be a number in
# the left note, and $r$ the number at the same place in the right note. Then the head delivers
#
# $$z = p\,l + (1 - p)\,r$$
#
# The person wants $l$ and $r$, but gets only $z$. After this average, the layer only multiplies by a matrix.
# So its best estimate of $l$ is a multiple $c z$ of $z$. The other numbers that the head delivers do not
# help, because they are independent of $l$.
#
# Let $\langle\ \rangle$ be the mean over many tables. The numbers of the notes are independent, with mean 0
# and variance 1. So $\langle l^2 \rangle = \langle r^2 \rangle = 1$ and $\langle l\, r \rangle = 0$. It
# follows that $\langle l\, z \rangle = p$ and $\langle z^2 \rangle = p^2 + (1 - p)^2$. The mean squared error
# of the estimate is
#
# $$\begin{aligned}
# \langle (l - c z)^2 \rangle &= \langle l^2 \rangle - 2c\, \langle l\, z \rangle + c^2 \langle z^2 \rangle \\
# &= 1 - 2 c p + c^2 \langle z^2 \rangle
# \end{aligned}$$

# %% [markdown]
# **Question.** For which $c$ is this error smallest?
#
# <details><summary>Answer</summary>
# The derivative with respect to $c$ is $-2p + 2c\, \langle z^2 \rangle$. It is 0 for
# $c = p / \langle z^2 \rangle$.
# </details>
#
# We insert this factor and do the same for $r$, whose best factor is $(1 - p) / \langle z^2 \rangle$:
#
# $$\begin{aligned}
# \mathrm{error\ of}\  l &= 1 - \frac{p^2}{\langle z^2 \rangle} = \frac{(1 - p)^2}{\langle z^2 \rangle} \\
# \mathrm{error\ of}\  r &= 1 - \frac{(1 - p)^2}{\langle z^2 \rangle} = \frac{p^2}{\langle z^2 \rangle}
# \end{aligned}$$
#
# **The two errors add up to 1, for every p.** If both estimates were simply 0, the errors would add up to 2.
# So one average delivers half of the wanted information. It can be one whole note ($p = 1$ or $p = 0$), or a
# part of each. Weights on other people do not help, because they only add noise to $z$.
#
# The cell measures the errors. It finds the best linear estimates with *least squares*, which makes the mean
# squared error as small as possible.

# %% tags=["check"]
left, right = wanted[..., :6].reshape(-1, 6), wanted[..., 6:].reshape(-1, 6)  # (B·T, 6)
measured = {}
for p in (1, 0.75, 0.5, 0.25, 0):
    z = p * left + (1 - p) * right  # (B·T, 6)
    errors = []
    for target in (left, right):
        best = np.linalg.lstsq(z, target, rcond=None)[0]  # (6, 6)
        errors.append(((z @ best - target) ** 2).mean() / (target**2).mean())
    print(f"p {p:4}   error left {errors[0]:.3f}, right {errors[1]:.3f}, sum {sum(errors):.3f}")
    measured[p] = errors

# %% tags=["check"]
for p, errors in measured.items():
    assert_allclose(errors, np.array([(1 - p) ** 2, p**2]) / (p**2 + (1 - p) ** 2), atol=0.005)

# %% [markdown]
# ## The passage in the paper
#
# Section 3.2.2 of *Attention Is All You Need* describes this:
#
# > Multi-head attention allows the model to jointly attend to information from different representation
# > subspaces at different positions. With a single attention head, averaging inhibits this.
#
# **Multi-head attention** runs H heads in parallel. It concatenates their outputs and multiplies the result
# by a matrix $W^O$. Its formula counts the heads $h$ from 0:
#
# $$\begin{aligned}
# \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_0, \mathrm{head}_1, \ldots)\, W^O \\
# \mathrm{head}_h &= \mathrm{Attention}(Q W_h^Q, K W_h^K, V W_h^V)
# \end{aligned}$$
#
# The paper uses H = 8 heads with $d_k = d_v = d_{\mathrm{model}} / 8 = 64$. So the heads together are as wide
# as the model. The 64 numbers of a head are its "representation subspace". In this formula $Q$, $K$ and $V$
# are not yet multiplied by the matrices, unlike in lesson 4.4 (`04_4_query_key_and_value`). In
# **self-attention**, all three are $x$.

# %% [markdown]
# The next cell writes this formula with loops over sentences, tokens and heads. It is slow, but every step
# can be read. Lesson 7.2 (`07_2_all_heads_in_one_product`) does it faster.

# %%


def slow_heads(x, w_q, w_k, w_v, w_o):
    """Multi-head attention with loops. w_q, w_k, w_v (H, D, d_k), w_o (H · d_k, D)."""
    y = np.zeros(x.shape)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            concat = []
            for h in range(len(w_q)):
                q = x[b, t] @ w_q[h]  # (d_k,) the query of token t in this head
                k, v = x[b] @ w_k[h], x[b] @ w_v[h]  # (T, d_k) each
                e = np.exp(k @ q / math.sqrt(len(q)))  # (T,)
                concat.append(e / e.sum() @ v)  # (d_k,)
            y[b, t] = np.concatenate(concat) @ w_o  # (H · d_k,) @ (H · d_k, D)
    return y


# %% [markdown]
# Two heads can solve the example exactly. We choose their weights by hand. Each head is six entries wide.
#
# - The query of the first head asks for the seat to the left, that of the second for the seat to the right.
# - The key of a person is the person's seat.
# - The value of a person is the person's note.
#
# The two heads deliver the left and the right note side by side. This is what we want, so $W^O$ is the
# identity matrix. The factor `sharp` makes the score of the wanted neighbour 40. All other scores are 0, so
# almost all of the weight goes to one person.

# %%
note, seat = slice(0, 6), slice(6, 12)  # the rows of a weight matrix that read note and seat
w_q, w_k, w_v = np.zeros((3, 2, 12, 6))  # each (H, D, d_k)
sharp = 40 * math.sqrt(6)  # attention divides the scores by √6
w_q[0, seat] = sharp * np.roll(np.eye(6), 1, axis=0)  # seat t -> seat t − 1
w_q[1, seat] = sharp * np.roll(np.eye(6), -1, axis=0)  # seat t -> seat t + 1
w_k[:, seat] = np.eye(6)
w_v[:, note] = np.eye(6)

y = slow_heads(x[:3], w_q, w_k, w_v, np.eye(12))
print("largest error of two heads:", abs(y - wanted[:3]).max())

# %% tags=["check"]
assert_allclose(y, wanted[:3], atol=1e-12)

# the layer of the package, which stores the matrices of all heads side by side
layer = MultiHeadAttention(12, 2, bias=False, dtype=np.float64)
names = ("query", "key", "value", "output")
matrices = [np.concatenate(list(w), -1) for w in (w_q, w_k, w_v)] + [np.eye(12)]
layer.load_state_dict({f"{name}.weight": w for name, w in zip(names, matrices, strict=True)})
assert_allclose(y, layer.forward(x[:3])[0], rtol=1e-12, atol=1e-12)

# %% [markdown]
# Nothing is lost. Each head has a softmax of its own, and each softmax attends to one person. A head is six
# entries wide, which is enough for one note.
#
# ## One head and two heads learn
#
# Does training find such weights? We train the layer of the package with one head, and then with two. Each of
# the 300 steps has 32 new tables. Lesson 7.3 (`07_3_the_output_projection_and_the_backward_pass`) derives the
# backward pass. After `layer.backward`, each parameter has its gradient in `.grad`.

# %%
final = {}
for n_heads in (1, 2):
    layer = MultiHeadAttention(12, n_heads, rng=np.random.default_rng(1), dtype=np.float64)
    for _ in range(300):
        x, wanted = tables(32)
        y, cache = layer.forward(x)
        error = y - wanted
        layer.zero_grad()
        layer.backward(2 * error / error.size, cache)
        for parameter in layer.parameters():
            parameter.value -= 3.6 * parameter.grad
    final[n_heads] = (error * error).mean()
    print(f"{n_heads} head{'s' * (n_heads > 1)}: mean squared error {final[n_heads]:.3f}")

# %% tags=["check"]
assert 0.45 < final[1] < 0.55
assert final[2] < 0.02

# %% [markdown]
# One head ends near 0.5. This is the mean of the two errors, which add up to 1 as computed above. (The
# printed number differs a little, because the last step has only 32 tables.) Two heads learn to deliver both
# notes.

# %% tags=["plot"]
run = running_example()
weights = run.values["encoder.0.self_attention.attention.softmax"]  # (H, S, S)
figure = attention_grid(weights[None], run.source, run.source)
caption = "Our sentence, first layer: in head 1, seven of nine tokens attend most to a noun"
show_figure(figure, "07_1_running", caption)

# %% tags=["check"]
most = [run.source[s] for s in weights[1].argmax(-1)]
assert most == ["dogs", "dogs", "snow", "playing", "snow", "snow", "snow", "snow", "</S>"]

# %% [markdown]
# ## Summary
#
# - One head computes one average, so it cannot deliver two pieces of information unmixed.
# - In the example, the mean squared errors of two wanted notes add up to 1, however one head divides its
#   weight.
# - Multi-head attention runs H heads in parallel; each has its own queries, keys, values and softmax.
# - The outputs of the heads are concatenated and multiplied by the matrix W^O.
# - The width of a head is $d_k$ = D / H, so the heads together are as wide as the model.

# %% [markdown]
# ## Questions
#
# **Question.** Eight heads and one head with the same D have the same number of parameters. What is
# different?
#
# <details><summary>Answer</summary>
# Eight heads have eight softmax functions, so each token can attend to eight different tokens. In exchange,
# each head is narrower: it has D/8 entries instead of D.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve this on paper. The command `npformer exercise list 7` lists the exercises of this chapter that are
# graded.
#
# - Each person at the table wants the notes of both neighbours *and* of the person opposite. So the layer has
#   18 outputs, and $W^O$ has the shape (18, 18). Write down w_q for three heads. What would the sum of the
#   three errors be with two heads? (The answer: 1.)
# - On paper: a head gives both neighbours the weight 1/2. How large is the error of each of the two notes?
#
# **Next** on the main route: lesson 8.1 (`08_1_layer_norm`), which keeps the numbers of a layer at a moderate
# size. Off the route: lesson 7.2 (`07_2_all_heads_in_one_product`), the fast version of this layer.

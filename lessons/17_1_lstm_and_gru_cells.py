# %% [markdown]
# # 17.1 · The cells of recurrent networks: LSTM and GRU
#
# *About 40 minutes. You need: forward, backward and the gradient check (lesson 0.2,
# `00_2_forward_and_backward`), the chain rule.*
#
# **After this lesson you can**
#
# - say what a recurrent neural network is, and write its formula;
# - compute one step of an LSTM and one step of a GRU, with the meaning of each gate;
# - derive the backward pass of both cells and check it with the gradient checker.
#
# `recurrent model: embedding → [RECURRENT LAYER] → attention → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import recurrent
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import curves

rng = np.random.default_rng(17)

# %% [markdown]
# ## What came before the Transformer
#
# Attention is older than the Transformer. From 2014 to 2017, it was one part of a **recurrent neural
# network**. Such a network reads the tokens one after another. At each token it computes a vector of N
# numbers, the **hidden state**, from the token and from the hidden state before it. So the hidden state can
# contain information about all tokens that were read so far. *Attention Is All You Need* describes this in
# section 1:
#
# > Aligning the positions to steps in computation time, they generate a sequence of hidden states hₜ, as a
# > function of the previous hidden state hₜ₋₁ and the input for position t.
#
# One application of this function is a **time step**. The function itself is called the **cell**.

# %% tags=["plot"]
figure = shape_flow(
    "h₀ h₁ h₂ h₃ \n x₁ x₂ x₃ .",
    {"h₁": "cell: h₀ x₁", "h₂": "cell: h₁ x₂", "h₃": "cell: h₂ x₃"},
    {"h₀": "N", "x₁": "D", "x₂": "D", "x₃": "D", "h₁": "N", "h₂": "N", "h₃": "N"},
)
caption = "A recurrent network: the same cell reads one token after another"
show_figure(figure, "17_1_shapes", caption)

# %% [markdown]
# The simplest cell is $h_t = \tanh(x_t W + h_{t-1} U + b)$. Lesson 10.4 (`10_4_why_self_attention`) compares
# it with self-attention. Its gradient becomes very small over many time steps, as lesson 17.3 shows. In this
# lesson you build the two cells that were used instead, the LSTM and the GRU. The next lessons build a whole
# translator from them:
#
# - lesson 17.2 (`17_2_backpropagation_through_time`): a whole sentence, forward and backward;
# - lesson 17.3 (`17_3_vanishing_gradients`): how far back a gradient reaches, and what one vector can store;
# - lesson 17.4 (`17_4_additive_and_global_attention`): attention of Bahdanau and of Luong;
# - lesson 17.5 (`17_5_why_recurrence_is_sequential`): why the Transformer has no recurrence.
#
# Both cells use two activation functions. The sigmoid $\sigma(x) = 1 / (1 + e^{-x})$ returns numbers between
# 0 and 1, and the tanh returns numbers between −1 and 1. The figure shows them with their derivatives.

# %% tags=["plot"]
x = np.linspace(-5, 5, 201)
sigma = 1 / (1 + np.exp(-x))
shapes = [sigma, np.tanh(x), sigma * (1 - sigma), 1 - np.tanh(x) ** 2]
names = ["sigmoid", "tanh", "derivative of sigmoid", "derivative of tanh"]
figure = curves(np.array(shapes), x, labels=names, xlabel="input", ylabel="output", legend=True)
caption = "Both cells use two activations: the sigmoid and the tanh"
show_figure(figure, "17_1_activations", caption)

# %% [markdown]
# ## The LSTM cell
#
# The **LSTM** (long short-term memory; Hochreiter and Schmidhuber, 1997) has a second vector $c$, the **cell
# state**. A time step does not replace $c$. It keeps a part of $c$ and *adds* something to it. Three
# **gates** decide how much. A gate is a vector of numbers between 0 and 1, which is multiplied elementwise
# with another vector.

# %% [markdown]
# The input of the cell is one vector $a_t = x_t W + h_{t-1} U + b$ with 4N numbers. It is split into four
# parts of N numbers:
#
# $$i = \sigma(a_i), \quad f = \sigma(a_f), \quad g = \tanh(a_g), \quad o = \sigma(a_o)$$
#
# $$c' = f \odot c + i \odot g, \qquad h' = o \odot \tanh(c')$$
#
# Here $\sigma$ is the sigmoid function, and $\odot$ is the elementwise product.

# %% tags=["plot"]
figure = shape_flow(
    ". . c' h' \n a gates . . \n c . . .",
    {"gates": "σ, tanh: a", "c'": "f c + i g: gates c", "h'": "o tanh(c'): gates c'"},
    {"a": "B 4N", "gates": "B 4N", "c": "B N", "c'": "B N", "h'": "B N"},
)
caption = "An LSTM cell: the gates i, f and o and the candidate g come from a"
show_figure(figure, "17_1_lstm", caption)

# %% [markdown]
# The vectors have names:
#
# - $f$ is the **forget gate**: which part of the old cell state is kept. (Gers et al. added it in 2000.)
# - $g$ is the **candidate**, the new information, and $i$ is the **input gate**: which part of it is added.
# - $o$ is the **output gate**: which part of the cell state is visible in the hidden state $h'$.

# %% [markdown]
# The linear maps with W and U are those of lesson 0.2. So the function `lstm_cell` of the package begins with
# $a$, and calls it `gates`. It returns $h'$ and $c'$ concatenated. The next code computes the same with
# loops, number by number, and then prints the cache.

# %%


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


n = 5
gates, c = rng.standard_normal((2, 4 * n)), rng.standard_normal((2, n))  # (B, 4N), (B, N)
slow = np.zeros((2, 2 * n))  # (B, 2N) h' and c' concatenated
for sentence in range(2):
    for j in range(n):
        i, f, g, o = gates[sentence, j::n]  # number j of each of the four parts
        after = sigmoid(f) * c[sentence, j] + sigmoid(i) * np.tanh(g)
        slow[sentence, j], slow[sentence, n + j] = sigmoid(o) * np.tanh(after), after

state, cache = recurrent.lstm_cell(gates, c)
show(cache)

# %% tags=["check"]
assert_allclose(slow, state, rtol=1e-12)

# %% [markdown]
# ## The backward pass of the LSTM cell
#
# The cell has two outputs, $h'$ and $c'$, so two gradients arrive, $dh'$ and $dc'$. We begin with the last
# line, $h' = o \odot \tanh(c')$:
#
# $$do = dh' \odot \tanh(c'), \qquad dc' \leftarrow dc' + dh' \odot o \odot (1 - \tanh^2(c'))$$
#
# The second formula is the important one. **The cell state $c'$ is used twice**: it is an output of the cell,
# and it is used to compute $h'$. Its gradient is the sum of both contributions. Only then can we go on to the
# line before.
#
# **Question.** The line before is $c' = f \odot c + i \odot g$. What are the gradients of $f$, $c$, $i$ and
# $g$?
#
# <details><summary>Answer</summary>
# Each term is a product of two numbers. The gradient of one of them is dc′ times the other, as the next
# formula shows.
# </details>
#
# $$\begin{aligned}
# c' &= f \odot c + i \odot g \\
# df &= dc' \odot c, \qquad dc = dc' \odot f \\
# di &= dc' \odot g, \qquad dg = dc' \odot i
# \end{aligned}$$

# %% [markdown]
# The last step goes through the activation functions. Both derivatives can be computed from the outputs:
#
# $$\sigma' = \sigma (1 - \sigma), \qquad \tanh' = 1 - \tanh^2$$
#
# The figure at the beginning showed them. For inputs far from 0, both derivatives are almost 0.

# %%
i, f, g, o, tanh_c = cache.i, cache.f, cache.g, cache.o, cache.tanh_c
dstate = rng.standard_normal(state.shape)  # (B, 2N)
dh, dafter = dstate[:, :n], dstate[:, n:]

dafter = dafter + dh * o * (1 - tanh_c * tanh_c)  # both uses of c'
di, df, dg, do, dc = dafter * g, dafter * c, dafter * i, dh * tanh_c, dafter * f
dgates = np.concatenate(
    [di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], -1
)  # (B, 4N)
report = gradcheck((recurrent.lstm_cell, recurrent.lstm_cell_backward), gates, c)
print(report)

# %% tags=["check"]
of_package = recurrent.lstm_cell_backward(dstate, cache)
for mine, theirs in zip((dgates, dc), of_package, strict=True):
    assert_allclose(mine, theirs, rtol=1e-12)
assert report.ok

# %% [markdown]
# Our gradients and those of the package agree, and the gradient check confirms them.
#
# **Question.** A forget gate has the value .99. How large is the derivative of its sigmoid there?
#
# <details><summary>Answer</summary>
# .99 × (1 − .99) = .0099. A gate that is nearly open receives almost no gradient for its own input. But the
# gradient of c passes through it with the factor .99.
# </details>

# %% [markdown]
# ## The GRU cell
#
# The **GRU** (gated recurrent unit; Cho et al., 2014) has only one state, $h$. It needs three parts instead
# of four. We now have to keep two vectors apart, each with 3N numbers: $w = x_t W$, computed from the token,
# and $m = h_{t-1} U$, computed from the state. (Each linear map can have a bias.)
#
# $$r = \sigma(w_r + m_r), \qquad z = \sigma(w_z + m_z), \qquad n = \tanh(w_n + r \odot m_n)$$
#
# $$h' = z \odot h + (1 - z) \odot n$$
#
# - $r$ is the **reset gate**: how much the old state contributes to the candidate $n$.
# - $z$ is the **update gate**: the new state is a weighted mean of the old state and of the candidate.

# %% tags=["plot"]
figure = shape_flow(
    ". . n h' \n . rz . . \n w . . . \n m . . . \n h . . .",
    {"rz": "σ: w m", "n": "tanh: rz w m", "h'": "mean by z: n rz h"},
    {"w": "B 3N", "m": "B 3N", "h": "B N", "rz": "B 2N", "n": "B N", "h'": "B N"},
)
caption = "A GRU cell: r acts on the candidate n, and z mixes n with the old state h"
show_figure(figure, "17_1_gru", caption)

# %% [markdown]
# There are two variants of the GRU. In the variant above, the reset gate multiplies the *result* of the
# matrix product $h U$. It is called **reset-after**, and PyTorch uses it too. Cho et al. (2014) multiply $h$
# by $r$ *before* the matrix product.

# %% [markdown]
# ## The backward pass of the GRU cell
#
# Again we go from the last line to the first. Let $s = w_n + r \odot m_n$ be the argument of the tanh:
#
# $$\begin{aligned}
# dz &= dh' \odot (h - n), \qquad dn = dh' \odot (1 - z), \qquad dh = dh' \odot z \\
# ds &= dn \odot (1 - n^2), \qquad dr = ds \odot m_n, \qquad dm_n = ds \odot r
# \end{aligned}$$
#
# A sum passes its gradient to both terms. So $w_r$ and $m_r$ receive the same gradient,
# $dr \odot r \odot (1 - r)$, and $w_z$ and $m_z$ both receive $dz \odot z \odot (1 - z)$. Only the third part
# differs: $w_n$ receives $ds$, and $m_n$ receives $ds \odot r$.
#
# The state $h$ is also used in $m = hU$, which gives $dh$ a second contribution. That product belongs to the
# layer of the next lesson, not to the cell. The code calls $w$ `gates` and $m$ `hidden_gates`, as the package
# does.

# %%
gates, hidden_gates = rng.standard_normal((2, 2, 3 * n))  # (B, 3N), (B, 3N)
h = rng.standard_normal((2, n))  # (B, N)
(w_r, w_z, w_n), (m_r, m_z, m_n) = np.split(gates, 3, -1), np.split(hidden_gates, 3, -1)
r, z = sigmoid(w_r + m_r), sigmoid(w_z + m_z)
candidate = np.tanh(w_n + r * m_n)
y = z * h + (1 - z) * candidate  # (B, N)

dy = rng.standard_normal(y.shape)
ds = dy * (1 - z) * (1 - candidate * candidate)
dr, dz = ds * m_n * r * (1 - r), dy * (h - candidate) * z * (1 - z)
dgates = np.concatenate([dr, dz, ds], -1)  # (B, 3N)
dhidden_gates = np.concatenate([dr, dz, ds * r], -1)  # (B, 3N)
dh = dy * z  # (B, N)

y_package, made = recurrent.gru_cell(gates, hidden_gates, h)
of_package = recurrent.gru_cell_backward(dy, made)
print("largest difference from the package:", abs(dhidden_gates - of_package[1]).max())

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
for mine, theirs in zip((dgates, dhidden_gates, dh), of_package, strict=True):
    assert_allclose(mine, theirs, rtol=1e-12)
report = gradcheck((recurrent.gru_cell, recurrent.gru_cell_backward), gates, hidden_gates, h)
assert report.ok

# %% [markdown]
# The differences are 0, or as small as rounding errors.
#
# **Question.** Why does `gru_cell` take two arrays of gates, while `lstm_cell` takes only their sum?
#
# <details><summary>Answer</summary>
# In the LSTM, the token and the state occur only in the sum x W + h U + b. In the GRU, the reset gate r
# multiplies only the part that comes from the state. So this part must be a separate argument.
# </details>

# %% [markdown]
# **Your turn.** In the terminal, print the cache of the GRU with `s made`. Then set the input of all update
# gates to a large number, `!gates[:, n : 2 * n] = 50`. Compare
# `!recurrent.gru_cell(gates, hidden_gates, h)[0]` with `!h`. Predict the result first.

# %% [markdown]
# ## Summary
#
# - A recurrent network computes each hidden state from the token and from the hidden state before it.
# - The LSTM cell: $c' = f \odot c + i \odot g$ and $h' = o \odot \tanh(c')$, with three gates.
# - The backward pass first adds both gradients of $c'$, because $c'$ is used twice.
# - The GRU cell: $h' = z \odot h + (1 - z) \odot n$. Here the reset gate follows the matrix product.
# - All other steps are elementwise products, and the derivatives of sigmoid and tanh.

# %% [markdown]
# ## Questions
#
# **Question.** For which values of the gates does an LSTM keep $c$, and a GRU its $h$? What is the gradient
# of the gates' inputs there?
#
# <details><summary>Answer</summary>
# The LSTM keeps c if f = 1 and i = 0. The GRU keeps h if z = 1. Then σ(1 − σ) is 0 for f, i and z, and g and
# n are multiplied by i = 0 or 1 − z = 0. So these inputs receive no gradient, and only that of o can differ
# from 0. A state that is kept with certainty cannot learn to be overwritten.
# </details>
#
# **Question.** How many parameters has an LSTM with D inputs and N hidden units, if it has one bias?
#
# <details><summary>Answer</summary>
# W has D × 4N, U has N × 4N, and b has 4N numbers: together 4N (D + N + 1). A GRU has three parts instead of
# four.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 17` lists the exercises of this chapter. The gradient checker grades
# them.
#
# - `npformer exercise start lstm-cell-backward`: write the backward pass of an LSTM cell. The cell state c′
#   is used twice, so complete its gradient first.
# - `npformer exercise start gru-cell-backward`: write the backward pass of a GRU cell. It returns three
#   gradients, and the reset gate r acts only on the part that comes from the state.
# - By hand: write the variant of the GRU in which the reset gate comes *before* the matrix product. Which of
#   the gradients above change?
#
# **Next**: lesson 17.2 (`17_2_backpropagation_through_time`), the backward pass through a whole sentence.

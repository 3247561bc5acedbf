# %% [markdown]
# # 17.2 · Backpropagation through time
#
# *About 35 minutes. You need: the LSTM and GRU cells (lesson 17.1, `17_1_lstm_and_gru_cells`), masks of
# padding (chapter 6).*
#
# **After this lesson you can**
#
# - apply a recurrent cell to a whole sentence, forward and backward, without a library;
# - explain which gradients are added when the same weights and states are used several times;
# - handle padding in a recurrent network, and say where its gradient must go;
# - say what a bidirectional network is, and why a translator needs it.
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
from npformer.nn import Bidirectional, Recurrent
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(17)
n = 5  # the number N of hidden units

# %% [markdown]
# ## A whole sentence, forward
#
# Lesson 17.1 built one time step. Now we apply the LSTM cell to all tokens of a sentence. Every time step
# uses the same three parameters: W for the token, U for the hidden state, and the bias b. The state before
# the first token is 0.
#
# The product $x_t W$ does not depend on the state. So it can be computed for all tokens at once, before the
# loop. Only $h_{t-1} U$ and the cell must be inside the loop, because they need the state of the step before:

# %% tags=["plot"]
figure = shape_flow(
    "x xW h' \n h hU .",
    {"xW": "· W: x", "hU": "· U: h", "h'": "cell: xW hU"},
    {"x": "T D", "h": "B N", "xW": "T 4N", "hU": "B 4N", "h'": "B N"},
)
show_figure(
    figure,
    "17_2_shapes",
    "One product for all tokens before the loop; circles 2 and 3 are repeated for each token",
)

# %% [markdown]
# The class `Recurrent` of the package is this layer. It has two linear maps, and each has a bias, so that
# there are two biases where one would be sufficient. We use its parameters and write the loop ourselves. For
# the backward pass we keep two things from each time step: the hidden state *before* the step, which was
# multiplied by U, and the cache of the cell.

# %%
t_max, d_in = 4, 3
layer = Recurrent(d_in, n, kind="lstm", rng=rng, dtype=np.float64)
for parameter in layer.parameters():
    parameter.value += 0.3 * rng.standard_normal(parameter.shape)  # so that no bias is 0
of_input, of_hidden = layer.input_projection, layer.hidden_projection
w, u = of_input.weight.value, of_hidden.weight.value  # (D, 4N), (N, 4N)
b = of_input.bias.value + of_hidden.bias.value  # (4N,)

x = rng.standard_normal((2, t_max, d_in))  # (B, T, D)
gates, state = x @ w, np.zeros((2, 2 * n))  # (B, T, 4N), (B, 2N)
states, kept = [], []
for t in range(t_max):
    before = state
    state, cell = recurrent.lstm_cell(gates[:, t] + before[:, :n] @ u + b, before[:, n:])
    states.append(state)
    kept.append((before[:, :n], cell))
states_package, cache = layer.forward(x)
show(cache.steps[0])

# %% tags=["check"]
assert_allclose(np.stack(states, 1), states_package, rtol=1e-12)

# %% [markdown]
# The states are those of the package. The output above is the cache of the first time step.
#
# ## A whole sentence, backward
#
# The backward pass through the loop has a name of its own, **backpropagation through time**. It goes from the
# last time step to the first. There are only two rules, and both are known from lesson 0.2
# (`00_2_forward_and_backward`): an array that is used several times receives the sum of several gradients.
#
# **First, each state is used twice.** It is an output of the layer, and it is an input of the next time step.
# So its gradient is the sum of the gradient from outside, $d\mathrm{states}_t$, and of the gradient that the
# next time step returns.
#
# **Second, the parameters are used in every time step.** So their gradients are sums over all time steps.

# %% tags=["plot"]
figure = shape_flow(
    "dstate dgates dstate'  \n doutput . .",
    {"dgates": "cell, backward: dstate doutput", "dstate'": "· Uᵀ: dgates"},
    {"dstate": "B 2N", "doutput": "B N", "dgates": "B 4N", "dstate'": "B 2N"},
)
caption = "A step backward; dstate' goes to the step before, and dgates adds to dU and db"
show_figure(figure, "17_2_backward", caption)

# %% [markdown]
# Let $d\mathrm{state}$ be the gradient that comes back from time step t + 1. It is 0 after the last token. In
# time step t:
#
# $$\begin{aligned}
# d\mathrm{state} &\leftarrow d\mathrm{state} + d\mathrm{states}_t \\
# d\mathrm{gates}_t,\ dc &= \mathrm{backward\ pass\ of\ the\ cell\ for}\ d\mathrm{state} \\
# dU &\leftarrow dU + h_{t-1}^\top\, d\mathrm{gates}_t \\
# db &\leftarrow db + \sum d\mathrm{gates}_t \\
# dh &= d\mathrm{gates}_t\, U^\top
# \end{aligned}$$
#
# The sum in $db$ is over the sentences of the batch. The pair $(dh, dc)$ is the new $d\mathrm{state}$, for
# time step t − 1. After the loop, one product for all time steps is enough for each gradient of $x W$:
# $dx = d\mathrm{gates}\, W^\top$ and $dW = x^\top d\mathrm{gates}$.
#
# **Question.** Why can the products for $dx$ and $dW$ wait until the loop has ended?
#
# <details><summary>Answer</summary>
# No other time step needs dx or dW. They depend only on dgates, which the loop computes for all time steps.
# </details>

# %%
dstates = rng.standard_normal((2, t_max, 2 * n))  # the gradient from outside
dstate, dgates = np.zeros((2, 2 * n)), np.zeros_like(gates)  # nothing follows the last token
du, db = np.zeros_like(u), np.zeros_like(b)
for t in reversed(range(t_max)):
    h_before, cell = kept[t]
    dgates[:, t], dc = recurrent.lstm_cell_backward(dstate + dstates[:, t], cell)
    du += h_before.T @ dgates[:, t]
    db += dgates[:, t].sum(0)
    dstate = np.concatenate([dgates[:, t] @ u.T, dc], -1)  # for the step before
dx = dgates @ w.T  # (B, T, D)

dx_package = layer.backward(dstates, cache)
print("largest difference in dx:", abs(dx - dx_package).max())
print("largest difference in dU:", abs(du - of_hidden.weight.grad).max())
report = gradcheck(layer, x)
print(report)

# %% tags=["check"]
layer.zero_grad()
dx_package = layer.backward(dstates, cache)
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(du, of_hidden.weight.grad, rtol=1e-9)
assert_allclose(db, of_hidden.bias.grad, rtol=1e-9)
assert_allclose(db, of_input.bias.grad, rtol=1e-9)  # both biases have the same gradient
assert report.ok

# %% [markdown]
# Our dx and dU agree with the package up to rounding, and so does db. The gradient check confirms all of
# them.
#
# Note which hidden state `du` uses: the one *before* the time step. In the forward pass, U was multiplied by
# it. With the state after the step, all shapes would be right, but dU would be wrong.

# %% [markdown]
# ## Padding keeps the state
#
# In a batch, shorter sentences end in padding. A recurrent network must not read padding, because it would
# change the state. So the state stays as it is wherever the mask is False.
#
# | token | x₁ | x₂ | x₃ | PAD | PAD |
# |---|---|---|---|---|---|
# | state | h₁ | h₂ | h₃ | h₃ | h₃ |
#
# This has two useful consequences:
#
# - At the last position of each row, the state is that of the last *token* of the sentence.
# - A network that reads from right to left still has the state 0 when it reaches the last token.
#
# Each number of the new state is copied from one of two arrays. So the gradient goes back to one of two
# arrays:
#
# $$\mathrm{state} = \mathrm{where}(\mathrm{real},\ \mathrm{new},\ \mathrm{old})$$
#
# $$d\mathrm{new} = \mathrm{where}(\mathrm{real},\ d\mathrm{state},\ 0)$$
#
# $$d\mathrm{old} = \mathrm{where}(\mathrm{real},\ 0,\ d\mathrm{state})$$
#
# **Question.** Suppose that a program forgets $d\mathrm{old}$, and the loss uses only the last position of
# each row. Which sentences of a batch would the network learn from?
#
# <details><summary>Answer</summary>
# Only the longest ones, which have no padding. For all others, the gradient at the last position would be set
# to 0.
# </details>

# %% [markdown]
# So $d\mathrm{old}$ is necessary, and it is easy to forget. "Padding receives no gradient" is true of the
# padding *token*. It is not true of the *state* at that position: the state was copied from the position
# before, so its gradient must be copied back.
#
# The code shows this. Sentence 1 has four tokens, sentence 2 has six. The gradient arrives only at the
# last position, which is padding for sentence 1.

# %%
mask = np.arange(6) < np.array([[4], [6]])  # (B, T) True at tokens
longer = np.concatenate([x, rng.standard_normal((2, 2, d_in))], 1)  # (B, T, D)
short, _ = layer.forward(longer[:1, :4])  # sentence 1 without its padding
padded, cache = layer.forward(longer, mask=mask)
print("state after the last token: ", short[0, 3, :4])
print("state at the last position: ", padded[0, 5, :4])

dlast = np.zeros_like(padded)
dlast[:, -1] = 1.0
lengths = np.linalg.norm(layer.backward(dlast, cache), axis=-1)  # (B, T)

# %% tags=["check"]
assert_allclose(padded[0, 5], short[0, 3], rtol=1e-12)
assert ((lengths > 0) == mask).all()
real, (new, old) = np.array([True, False]), rng.standard_normal((2, 2, n))
report = gradcheck((recurrent.masked_update, recurrent.masked_update_backward), new, old, real)
assert report.ok

# %% tags=["plot"]
settings = {"numbers": True, "shade": True, "mask": mask}
rows, columns = ["sentence 1", "sentence 2"], [f"x{t + 1}" for t in range(6)]
grid = Grid(lengths, "length of dx", "r", rows=rows, columns=columns, **settings)
figure = cell_product([grid])
caption = "All tokens receive a gradient, although only the last position has a loss"
show_figure(figure, "17_2_padding", caption)

# %% [markdown]
# The dark cells are padding. All tokens receive a gradient, also those of sentence 1.
#
# ## Reading in both directions
#
# A network that reads from left to right knows at each token only what came before. For translation this is
# not enough. In "I arrived at the bank after crossing the river", the word "river" comes after "bank", and it
# decides what "bank" means.
#
# A **bidirectional** recurrent network (Schuster and Paliwal, 1997) consists of two recurrent layers. One
# reads from left to right, the other from right to left. At each position, the two hidden states are
# concatenated:

# %% tags=["plot"]
figure = shape_flow(
    ". right y \n x . . \n . left .",
    {"right": "→: x", "left": "←: x", "y": "concat: right left"},
    {"x": "T D", "right": "T N", "left": "T N", "y": "T 2N"},
)
caption = "Bidirectional: one network reads to the right, the other to the left"
show_figure(figure, "17_2_both", caption)

# %% [markdown]
# So the vector at "bank" depends on the whole sentence. In the backward pass, the gradient is split into two
# halves, and the two gradients of $x$ are added. The class `Bidirectional` does this, here with GRU cells.

# %%
both = Bidirectional(d_in, n, kind="gru", rng=rng, dtype=np.float64)
y, _ = both.forward(longer, mask=mask)
print("one direction:", short.shape[-1] // 2, "numbers for each token; both:", y.shape[-1])
report = gradcheck(both, longer, mask=mask)
print("all gradients correct:", report.ok)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# **Question.** Can the *decoder* of a translator be bidirectional?
#
# <details><summary>Answer</summary>
# No. When the decoder computes the next token, the tokens after it do not exist yet. Only the encoder can
# read in both directions.
# </details>
#
# **Your turn.** In the terminal, print `!both.forward(longer)[0][0, :, 0]` without the mask, and compare it
# with `!y[0, :, 0]`. Change a token with `!longer[0, 3] = 0`, and compute `y` again. Which positions change?

# %% [markdown]
# ## Summary
#
# - A recurrent layer applies one cell with the same parameters at every time step.
# - Backpropagation through time goes from the last time step to the first.
# - The gradient of a state is a sum: from the output at this position, and from the next time step.
# - At padding the state is copied, so its gradient is copied back to the state before.
# - A bidirectional network concatenates the states of two layers that read in opposite directions.

# %% [markdown]
# ## Questions
#
# **Question.** Which part of the forward pass can be computed for all tokens at once, and which cannot?
#
# <details><summary>Answer</summary>
# The product x W can, because it does not depend on the states. The product h U and the cell cannot, because
# they need the state of the time step before.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 17` lists the exercises of this chapter. They belong to lesson 17.1. The
# bug zoo has a recurrent network with a bug in its code: `npformer bugs start 19`.
#
# - By hand: write the loop of the backward pass for a GRU. Where does the state h receive three gradients?
# - By hand: a sentence has one token and five positions of padding. Follow the gradient from the last
#   position to this token, with the formulas for $d\mathrm{new}$ and $d\mathrm{old}$.
#
# **Next**: lesson 17.3 (`17_3_vanishing_gradients`), how far back a gradient reaches.

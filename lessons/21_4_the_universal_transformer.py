# %% [markdown]
# # 21.4 · The Universal Transformer
#
# *About 35 minutes. You need: the encoder (lesson 10.3, `10_3_the_whole_encoder`), backpropagation through
# time (lesson 17.2, `17_2_backpropagation_through_time`).*
#
# **After this lesson you can**
#
# - apply one layer several times, and derive the gradient of its parameters;
# - describe adaptive computation time, where each word has its own number of steps;
# - derive the gradients of the halting probabilities.
#
# `model: ids → embedding → positions → [ENCODER] → [DECODER] → linear → softmax`

# %%
import copy

import numpy as np
from numpy.testing import assert_allclose

from npformer import TransformerConfig, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.universal import UniversalEncoder
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(21)

# %% [markdown]
# ## One layer in place of a stack
#
# A Transformer is a stack of N layers, and each layer has its own parameters. A recurrent network does the
# opposite: it uses the same parameters at each step. Can a Transformer do this too?
#
# *Attention机制详解（二）* cites Dehghani et al., *Universal Transformers* (2019). Their abstract says:
#
# > UTs combine the parallelizability and global receptive field of feed-forward sequence models like the
# > Transformer with the recurrent inductive bias of RNNs.
#
# The **Universal Transformer** has a single layer $f$ with the parameters θ. It is applied N times. All
# words are processed in parallel. The recurrence is over the depth, not over the positions.

# %% tags=["plot"]
figure = shape_flow(
    "x₀ x₁ x₂ x₃",
    {"x₁": "f: x₀", "x₂": "f: x₁", "x₃": "f: x₂"},
    {"x₀": "T D", "x₁": "T D", "x₂": "T D", "x₃": "T D"},
)
caption = "The same layer f, with the same parameters, is applied N times, here three"
show_figure(figure, "21_4_shapes", caption)

# %% [markdown]
# How does the layer know which step it is computing? Before *every* step, two sinusoids are added: one for
# the position of the word, and one for the number $n$ of the step:
#
# $$x_n = f(x_{n-1} + \mathrm{place} + \mathrm{step}(n);\ \theta), \qquad n = 1, \ldots, N$$
#
# The backward pass goes through the steps in reverse order. Each step has its own cache. The parameters θ
# are used N times, so their gradient is a sum over the steps:
#
# $$\begin{aligned}
# dx_{n-1} &= \mathrm{backward}(dx_n,\ \mathrm{cache}_n) \\
# d\theta &= \sum_n \left(\frac{\partial f}{\partial \theta}\right)_n^\top dx_n
# \end{aligned}$$
#
# We verify this. We apply one layer three times. Then we make three copies of the layer and apply each copy
# once. The gradient of the shared parameters must be the sum of the gradients of the three copies.

# %%
sizes = {"d_model": 8, "d_ff": 32, "n_heads": 2, "n_layers": 3, "max_length": 32}
config = TransformerConfig(24, 24, **sizes, dropout=0, label_smoothing=0)
universal = UniversalEncoder(config, rng=rng, dtype=np.float64)
shared, places = universal.layer, sinusoids(5, 8)  # (T, D)
copies = [copy.deepcopy(shared) for _ in range(3)]
x, dy = rng.standard_normal((2, 2, 5, 8))  # (B, T, D)
dxs = []
for layers in ([shared] * 3, copies):
    y, caches, dx = x, [], dy
    for n, layer in enumerate(layers, 1):
        y, cache = layer.forward(y + places + places[n])  # step n has the sinusoid of place n
        caches.append(cache)
    for layer, cache in zip(layers[::-1], caches[::-1], strict=True):
        dx = layer.backward(dx, cache)  # adds to the gradients of the layer
    dxs.append(dx)
name, parameter = next(iter(shared.named_parameters()))
print(f"a part of the gradient of {name}:", parameter.grad.reshape(-1)[:3])
print("largest difference of dx:", abs(dxs[0] - dxs[1]).max())

# %% tags=["check"]
assert_allclose(*dxs, rtol=1e-9)
each = zip(*(one.parameters() for one in copies), strict=True)  # three equal ones at a time
of_copies = [sum(p.grad for p in three) for three in each]
for p, together in zip(shared.parameters(), of_copies, strict=True):
    assert_allclose(p.grad, together, rtol=1e-9, atol=1e-12)
_, cache = universal.forward(x)
assert_allclose(universal.backward(dy, cache), dxs[0], rtol=1e-9)
for p, together in zip(shared.parameters(), of_copies, strict=True):
    assert_allclose(p.grad, 2 * together, rtol=1e-9, atol=1e-12)  # ours, and then the package's
print(f"{len(cache.layers)} caches, one layer of {universal.count_parameters()} parameters")

# %% [markdown]
# No new code is needed for this. In npformer, `forward` returns the cache, and `backward` *adds* to the
# gradients.
#
# **Question.** Suppose that a layer stored its cache in itself, as an attribute. What would go wrong when
# it is applied three times?
#
# <details><summary>Answer</summary>
# The second and third call would overwrite the cache of the first one. So the backward pass would use the
# third cache for all three steps. This is bug 8 of the bug zoo, `npformer bugs start 8`.
# </details>

# %% [markdown]
# ## A number of steps for each word
#
# Some words may need more steps than others. Graves (2016) proposed **adaptive computation time**: the
# network computes for each position how many steps it takes. The method is also called **adaptive
# halting**.
#
# After step $n$, a word has a state $s_n$. A small linear layer with a sigmoid gives the **halting
# probability** $p_n = \sigma(w \cdot s_n + b)$. Let $M$ be the number of steps of the word. It halts at the
# first step where the probabilities sum to nearly 1:
#
# $$p_1 + \ldots + p_M \ge 1 - \varepsilon$$
#
# If this never happens, $M$ is the largest allowed number of steps. The output is a weighted mean of the
# states. The last weight is what remains of 1, and it is called the **remainder**:
#
# $$y = \sum_{n=1}^{M} w_n s_n, \qquad w_n = p_n \ (n < M), \qquad w_M = 1 - \sum_{n<M} p_n$$

# %% [markdown]
# Here is an example with four states and ε = .01. The sum of the first three probabilities is 1.2, so the
# word halts at step 3.

# %%
p, M = np.array([0.3, 0.5, 0.4, 0.9]), 3
s = rng.standard_normal((4, 6))  # (N, D) the states
weights = np.array([p[0], p[1], 1 - p[0] - p[1], 0])  # (N,)
taken = np.arange(4) < M  # (N,) the steps that the word takes
y, cache = F.mix_states(s, p, taken)
show(cache)
print("weights", weights, "  steps", cache.steps, "  ponder cost", cache.ponder)

# %% tags=["check"]
assert p[:2].sum() < 0.99 <= p[:3].sum()
assert_allclose(y, weights @ s, rtol=1e-12)
assert_allclose(cache.ponder, 3.2, rtol=1e-12)

# %% tags=["plot"]
parts = [
    Grid(weights[None], "$w$", "x", numbers=True),
    "×",
    Grid(s, "$s$", "q", numbers=True),
    "=",
    Grid(y[None], "$y$", "z", numbers=True),
]
caption = "The output is a weighted mean of the first three states"
show_figure(cell_product(parts), "21_mix", caption)

# %% [markdown]
# Nothing in the loss would tell the network to halt early. So the loss gets one more term, the **ponder
# cost**. It is the number of steps plus the remainder:
#
# $$\mathrm{cost} = M + w_M$$
#
# In the example it is 3 + .2 = 3.2. The number $M$ is an integer. It has no useful gradient, because a
# small change of the parameters does not change it. But the remainder has a gradient.

# %% [markdown]
# ## The gradients of halting
#
# Let $dy$ be the gradient of the output and $d\mathrm{cost}$ the gradient of the ponder cost. The states
# and the weights get the gradients of a weighted mean. The weight $w_M$ also occurs in the cost:
#
# $$\begin{aligned}
# ds_n &= w_n\, dy \\
# dw_n &= s_n \cdot dy \quad (n < M), \qquad dw_M = s_M \cdot dy + d\mathrm{cost}
# \end{aligned}$$
#
# For $n < M$, the probability $p_n$ occurs twice: it is the weight $w_n$, and it reduces $w_M$. So
#
# $$\begin{aligned}
# dp_n &= dw_n - dw_M \\
# &= (s_n - s_M) \cdot dy - d\mathrm{cost}
# \end{aligned}$$
#
# The gradient of $p_M$ is 0, because $p_M$ is not used.

# %%
dy, dcost = rng.standard_normal(6), 0.1  # (D,)
ds = weights[:, None] * dy  # (N, D)
dp = np.zeros(4)
dp[: M - 1] = (s[: M - 1] - s[M - 1]) @ dy - dcost
print("dp", dp.round(3))
report = gradcheck((lambda s, p: F.mix_states(s, p, taken), F.mix_states_backward), s, p)
print(report)

# %% tags=["check"]
ds_package, dp_package = F.mix_states_backward(dy, cache, dponder=dcost)
assert_allclose(ds_package, ds, rtol=1e-12)
assert_allclose(dp_package, dp, rtol=1e-9, atol=1e-12)
assert report.ok

# %% [markdown]
# The formula has two parts:
#
# - $(s_n - s_M) \cdot dy$ compares state $n$ with the last state. If the loss becomes smaller when $s_n$ has
#   a larger weight, gradient descent increases $p_n$.
# - $-d\mathrm{cost}$ is the same for all steps before the last one. Gradient descent subtracts the
#   gradient, so it increases every $p_n$. Then the word halts earlier.
#
# **Question.** The loss would become smaller if the word took one more step. Does any gradient say so?
#
# <details><summary>Answer</summary>
# No. The state of the next step is not computed, so it does not occur in any formula. The gradients compare
# only the states of the steps that were taken. Lesson 21.5 shows what follows from this.
# </details>

# %% [markdown]
# ## What the source documents say
#
# > - *Attention机制详解（二）* names the paper of Dehghani et al. and does not explain it.
# > - The text of the paper and the code in its appendix differ. In the code, the probability p is computed
# >   from the state *before* the step, and the states of halted words continue to change. npformer follows
# >   the text of the paper and Graves (2016).

# %% [markdown]
# ## Summary
#
# - The Universal Transformer applies one layer N times; sinusoids tell it the position and the step.
# - The gradient of the shared parameters is the sum over the steps.
# - With adaptive computation time, a word halts when its halting probabilities sum to nearly 1.
# - The output is a weighted mean of the states; the last weight is the remainder.
# - The ponder cost is the number of steps plus the remainder; its gradient increases the halting
#   probabilities.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the output use a mean of all states, and not only the last state?
#
# <details><summary>Answer</summary>
# With the last state alone, the halting probabilities would decide only the number of steps. It is an
# integer, so it has no useful gradient. In a mean the probabilities are weights, and get a gradient.
# </details>
#
# **Question.** A word has $p_1 = .995$ and ε = .01. What are its number of steps, its weights and its cost?
#
# <details><summary>Answer</summary>
# It halts at step 1, because .995 ≥ .99. The only weight is the remainder, which is 1, because no step
# comes before it. The cost is 1 + 1 = 2.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 21` lists the exercises of this chapter.
#
# - `npformer exercise start mix-states-backward`: write the backward pass of the average of states in
#   adaptive halting. The weight of the last step depends on all halting probabilities.
# - In the terminal, `s cache` shows the cache of the last cell again.
# - By hand: let the word halt at step 2. Show that $dp_1 = 0$ if both states are equal and
#   $d\mathrm{cost} = 0$.
#
# **Next**: lesson 21.5 (`21_5_training_with_a_ponder_cost`), which trains a network with adaptive
# computation time.

# %% [markdown]
# # 18.1 · Local attention: a window at a fixed position
#
# *About 25 minutes. You need: global attention (lesson 17.4, `17_4_additive_and_global_attention`), masks
# (lesson 6.1, `06_1_masks`).*
#
# **After this lesson you can**
#
# - explain local attention and the two ways to choose the position of its window;
# - implement local-m, and count how many comparisons it saves;
# - express a window as a mask, and say how far several layers with a window reach.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.functional.masks import local_mask
from npformer.learn.course import show_figure
from npformer.nn.attention import LocalMonotonic, Similarity
from npformer.plots import mask_map

rng = np.random.default_rng(18)

# %% [markdown]
# ## Why local attention?
#
# Global attention compares each target token with *every* source token. For a source of S tokens and a target
# of T tokens, this is S · T comparisons. Luong, Pham and Manning, *Effective Approaches to Attention-based
# Neural Machine Translation* (2015), describe the problem in section 3.2:
#
# > The global attention has a drawback that it has to attend to all words on the source side for each target
# > word, which is expensive and can potentially render it impractical to translate longer sequences, e.g.,
# > paragraphs or documents.
#
# *The components of the Transformer* summarizes their solution. **Local attention** chooses a **position**
# $p_t$ in the source for each target token t. The decoder attends only to the tokens in the **window**
# $[p_t - D, p_t + D]$. The paper uses the half width D = 10. The table shows a window with $p_t = 4$ and
# D = 2:
#
# | memory | m₀ | m₁ | m₂ | m₃ | m₄ | m₅ | m₆ | m₇ | m₈ |
# |---|---|---|---|---|---|---|---|---|---|
# | in the window | | | yes | yes | yes | yes | yes | | |

# %% [markdown]
# The paper has two ways to choose the position:
#
# - **local-m** (monotonic): $p_t = t$. This assumes that source and target have about the same order.
# - **local-p** (predictive): the position is computed from the state $h_t$ of the decoder,
#   $p_t = S \cdot \sigma(v \cdot \tanh(h_t W))$.
#
# This lesson is about local-m. Local-p follows in lesson 18.2 (`18_2_a_predicted_position`). Source positions
# are 0 … S − 1, as in Python.

# %% [markdown]
# ## local-m, one target token after another
#
# We first write it slowly. For each target token, we take the window out of the memory, compute the scores
# and a softmax over the window, and average. What if the window is partly outside the sentence? The paper
# says in a footnote:
#
# > If the window crosses the sentence boundaries, we simply ignore the outside part and consider words in the
# > window
#
# The code also counts the comparisons.

# %%
S, N, D = 9, 6, 2  # the length of the source, the width of a state, the half width of the window
memory = rng.standard_normal((S, N))  # (S, N) the states of the encoder
states = rng.standard_normal((S, N))  # (T, N) the states of the decoder; here T = S

slow, compared = np.zeros((S, N)), 0
for t in range(S):
    first, end = max(0, t - D), min(S, t + D + 1)
    e = [math.exp(states[t] @ memory[s]) for s in range(first, end)]
    compared += len(e)
    for s in range(first, end):
        slow[t] += e[s - first] / sum(e) * memory[s]
print(f"{compared} comparisons; global attention needs {S * S}")

# %% [markdown]
# The package has the layer `LocalMonotonic`. Its half width is called `reach`. It returns the same contexts:

# %%
layer = LocalMonotonic(Similarity("dot", N, N), reach=D)
context, cache = layer.forward(states[None], memory[None])  # (1, T, N)
show(cache)
report = gradcheck(layer, states[None], memory[None])
print("all gradients correct:", report.ok)

# %% tags=["check"]
assert_allclose(context[0], slow, rtol=1e-12)
assert report.ok

# %% [markdown]
# ## How much does it save?
#
# A window contains 2D + 1 tokens. At each end of the source, the windows of D target tokens are partly
# outside. They lack D, D − 1, … 1 tokens. For T = S > 2D, the numbers of comparisons are
#
# $$\begin{aligned}
# \mathrm{global}&: \quad S^2 \\
# \mathrm{local}&: \quad S (2D + 1) - 2 (D + \ldots + 1) = S (2D + 1) - D (D + 1)
# \end{aligned}$$
#
# The number for local attention grows in proportion to S, and no longer with its square. So the cost of *one*
# target token does not depend on the length of the source.
#
# **Question.** For D = 10, is this a large saving for a sentence of 30 tokens? And for a document of 3,000?
#
# <details><summary>Answer</summary>
# For 30 tokens, 520 of 900 comparisons remain, so less than half is saved. For 3,000 tokens, 99.3 % is saved.
# </details>

# %%
for length in (30, 300, 3000):
    local = local_mask(length, 10, memory).sum()
    print(f"S {length:5}   global {length**2:9,}   local {local:7,}   {local / length**2:.1%}")

# %% tags=["check"]
assert compared == S * (2 * D + 1) - D * (D + 1)
assert local == length * 21 - 110
assert_allclose(1 - local / length**2, 0.993, atol=0.0005)

# %% [markdown]
# ## A window is a mask
#
# The package does not cut out the window. It computes all scores, and masks those outside the window. This is
# easier to read, but it saves nothing. Only a program like our loop saves the comparisons.
#
# The mask is `local_mask` of chapter 6. So local-m is attention with this mask, without the scale
# $1/\sqrt{d_k}$:

# %%
window = F.inside_window(np.arange(S), S, D)  # (T, S), with p_t = t
y, _ = F.attention(states, memory, memory, window, scale=1.0)
print("largest difference from the loop:", abs(y - slow).max())

# %% tags=["check"]
assert_array_equal(window, local_mask(S, D, memory))
assert_allclose(y, slow, rtol=1e-12)

# %% tags=["plot"]
figure = mask_map(window, None, None)
show_figure(figure, "18_1_window", "local-m with D = 2: target token t attends to t − 2 … t + 2")

# %% [markdown]
# ## Several layers reach farther
#
# Windows are also used in Transformers, for example in each layer of an encoder. This raises a question.
#
# **Question.** All layers have a window with D = 2. Can information from token 6 reach token 0?
#
# <details><summary>Answer</summary>
# Yes, through three layers. In the first layer token 4 attends to token 6, in the second token 2 attends to
# token 4, and in the third token 0 attends to token 2.
# </details>
#
# In general, L layers reach L · D positions. We can compute this with the mask. The entry (t, s) of the third
# matrix power counts the paths of three layers from s to t.

# %%
reached = np.linalg.matrix_power(window.astype(int), 3) > 0  # (T, S)
print("token 0 depends on", window[0].sum() - 1, "other tokens after one layer,", end=" ")
print("on", reached[0].sum() - 1, "after three")

# %% tags=["check"]
assert_array_equal(reached, local_mask(S, 3 * D, memory))
assert (window[0].sum() - 1, reached[0].sum() - 1) == (2, 6)

# %% [markdown]
# The decoder of Luong is different. It attends to the finished memory only once. So **a token outside the
# window has no influence on the context** (except through the neighbours' states, which the encoder
# computed). If one language has the verb at the end of the sentence and the other does not, $p_t = t$ is the
# wrong position. The next lesson lets the network choose the position.
#
# **Your turn.** In the terminal, try `!np.linalg.matrix_power(window.astype(int), 2)[0]`. What do the numbers
# mean?

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* prints the window as [pt D, pt+D]: a minus is missing. Its formulas
# >   are pictures from the paper.
# > - This document and the paper give local attention weights of a fixed length, in the paper 2D + 1. In
# >   npformer the weights have shape (T, S), with 0 outside the window. So all kinds of attention can be
# >   drawn and compared in the same way, but no time is saved.

# %% [markdown]
# ## Summary
#
# - Local attention attends only to the tokens in a window $[p_t - D, p_t + D]$ of the source.
# - local-m has the position $p_t = t$, and local-p predicts it from the state of the decoder.
# - The number of comparisons grows in proportion to S, instead of with its square.
# - A window can be written as a mask; then the result is the same, but nothing is saved.
# - L layers with a window reach L · D positions; a decoder that attends only once reaches D.

# %% [markdown]
# ## Questions
#
# **Question.** With D = 10, which sentences have the same result in local-m and in global attention?
#
# <details><summary>Answer</summary>
# Those for which every window contains the whole source. If T = S, this is so for at most 11 tokens: the
# window of token 0 reaches position 10.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 18` lists the exercises of this chapter. They belong to lesson 18.2.
#
# - By hand: check the formula for the number of comparisons with S = 5 and D = 2.
# - With code: the target is twice as long as the source. Change the loop so that $p_t = t / 2$.
#
# **Next**: lesson 18.2 (`18_2_a_predicted_position`), a position that the network predicts.

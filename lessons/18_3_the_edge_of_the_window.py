# %% [markdown]
# # 18.3 · The edge of the window, and padding
#
# *About 25 minutes. You need: local-p (lesson 18.2, `18_2_a_predicted_position`), the complex step (lesson
# 0.3, `00_3_measured_derivatives`).*
#
# **After this lesson you can**
#
# - show where local-p has no derivative, and how far its weights jump there;
# - explain why one method of the gradient check finds no error at a jump, and another one does;
# - avoid a mistake with padding, which makes a result depend on the other sentences of the batch.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.nn.attention import LocalPredictive, Similarity
from npformer.plots import curves

rng = np.random.default_rng(18)
S, N, D = 9, 6, 2  # the length of the source, the width of a state, the half width of the window
sigma = D / 2  # the standard deviation of the Gaussian

# %% [markdown]
# ## Where is there no derivative?
#
# In local-p, the weights are a softmax inside the window $[p - D, p + D]$, times a Gaussian around p. The
# paper says of this model in a footnote:
#
# > This model is differentiable almost everywhere.
#
# Where is it not differentiable? We keep the scores constant, move p through the source, and watch the weight
# of token 4. There are two examples of scores. In the first, all tokens have the score 0. In the second,
# token 5 has the score 4, and the others 0.
#
# | p | m₀ | m₁ | m₂ | m₃ | m₄ | m₅ | m₆ | m₇ | m₈ |
# |---|---|---|---|---|---|---|---|---|---|
# | 2.9 | | in | in | in | in | | | | |
# | 3.1 | | | in | in | in | in | | | |

# %%


def local(scores, p):
    """The weights w, and the cache. Shapes: scores (..., S), p (...) -> w (..., S)."""
    inside = F.inside_window(p, scores.shape[-1], D)
    aligned, _ = F.softmax(np.where(inside, scores, -np.inf))
    return F.gaussian_window(aligned, p, sigma)


def local_backward(dw, cache):
    """Returns (dscores, dp)."""
    da, dp = F.gaussian_window_backward(dw, cache)
    return F.softmax_backward(da, cache.weights), dp


equal, prefers_5 = np.zeros(S), 4.0 * (np.arange(S) == 5)
below, above = (local(prefers_5, np.array(3 + side))[0] for side in (-1e-9, 1e-9))
print("token 5 has a higher score; the weights of all nine tokens")
print("p just below 3:", below.round(3))
print("p just above 3:", above.round(3))

# %% tags=["check"]
assert_allclose([below[3], above[3]], [0.25, 0.02], atol=0.005)
assert_allclose(local(equal, np.array(2 + 1e-9))[0][4], 0.034, atol=5e-4)

# %% tags=["plot"]
path = np.linspace(0.005, 7.995, 800)
rows = [local(np.tile(scores, (800, 1)), path)[0][:, 4] for scores in (equal, prefers_5)]
names = ["all scores are equal", "token 5 has a higher score"]
axes = {"xlabel": "position p", "ylabel": "weight of token 4", "legend": True}
figure = curves(np.array(rows), path, labels=names, **axes)
show_figure(figure, "18_3_edge", "The weight jumps where a token enters or leaves the window")

# %% [markdown]
# The curves consist of smooth pieces. **Where the edge of the window passes a token, the weights jump.**
#
# If all scores are equal, the jumps are small. At p = 2, token 4 enters the window (and token 0 leaves it).
# It has a = 1/4 and g = $e^{-2}$, so its weight is .034.
#
# The second example has a large jump. At p = 3, token 5 enters the window, and the weight of token 3 falls
# from .25 to .02.
#
# **Question.** Token 3 is at the centre of the window, before and after. Why does it lose its weight?
#
# <details><summary>Answer</summary>
# The softmax is now computed with token 5, which receives nearly all of a. But the factor g of token 5 is
# only .135, so its own weight w is not large.
# </details>

# %% [markdown]
# ## What the gradient check says at a jump
#
# The gradient check has two methods. The **complex step** changes an input by a tiny imaginary number. The
# **difference** computes the function at two real points near the input. We apply both of them to a position
# that is $10^{-6}$ below the jump at p = 3.
#
# **Question.** Which of the two methods will notice the jump?
#
# <details><summary>Answer</summary>
# The difference. Its two points lie on different sides of the jump. The complex step does not change the real
# part of p, so it never crosses the edge.
# </details>

# %%
left = np.array(3 - 1e-6)
by_complex_step = gradcheck((local, local_backward), prefers_5, left)
by_difference = gradcheck((local, local_backward), prefers_5, left, method="difference")
_, cache = local(prefers_5, left)
print("complex step: all correct:", by_complex_step.ok)
print(by_difference)
slope = F.gaussian_window_backward(np.ones(S), cache)[1]
print(f"derivative of the sum of w: {slope:+.3f}")
print(f"its change across the edge: {above.sum() - below.sum():+.3f}")
show(cache)

# %% tags=["check"]
report = by_complex_step
assert report.ok
assert "kink" not in str(by_complex_step)
assert "kink" in str(by_difference)

# %% [markdown]
# Both answers are right. The complex step confirms the formulas: they are the derivatives of the smooth
# pieces. The difference crosses the jump, so it finds very different derivatives on the two sides of p. The
# report calls such a point a kink, and accepts each gradient between the two.
#
# But **neither method says how far the function jumps**, and no gradient contains this information. In
# training, the jumps do little harm when p is close to the right token. Then the edge of the window is far
# away, where g is $e^{-2}$. At the beginning, p can be anywhere, and a step may cross a jump.

# %% [markdown]
# ## Padding: S is the number of tokens
#
# In a batch, short sentences are filled with padding. The position is $p = S \cdot \sigma(\ldots)$. Which S
# is right: the number of tokens of this sentence, or the length of the padded row?
#
# **Question.** What happens if a program uses the padded length?
#
# <details><summary>Answer</summary>
# The same state predicts another position when the batch contains a longer sentence. So the translation of a
# sentence depends on the other sentences of the batch.
# </details>
#
# The code uses a sentence of four tokens in a batch whose rows have twelve positions.

# %%
memory, h = rng.standard_normal((2, S, N))[0, :4], rng.standard_normal(N)  # (S, N), (N,)
layer = LocalPredictive(Similarity("dot", N, N), reach=D, rng=rng, dtype=np.float64)
real = np.arange(12) < 4  # (S,) True at the tokens
padded = np.vstack([memory, np.zeros((8, N))])  # (S, N)
alone, _ = layer.forward(h[None, None], memory[None])  # (1, 1, N)
batched, cache = layer.forward(h[None, None], padded[None], real[None])
print(f"S = 4:  p = {cache.positions[0, 0]:.2f}, sum of the weights {cache.weights.sum():.2f}")

weight, v = layer.position_weight.value, layer.position_v.value
wrong, _ = F.predict_position(h, weight, v, np.array(12))
inside = F.inside_window(wrong, 12, D) & real  # (S,)
print(f"S = 12: p = {wrong:.2f}, tokens in the window: {inside.sum()}")

# %% tags=["check"]
assert_allclose(alone, batched, rtol=1e-12)
assert not inside.any()

# %% [markdown]
# With S = 4, padding makes no difference: the context is the same as for the sentence alone. With S = 12, the
# position lies in the padding, and the window contains no token. Then the context is 0, and no gradient comes
# back. So the package counts the tokens in the mask.
#
# **Your turn.** In the terminal, try `!local(prefers_5, np.array(3.2))[0].round(3)`. At which p does token 5
# have its largest weight?

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* calls local attention differentiable. The paper says of local-p:
# >   differentiable almost everywhere.

# %% [markdown]
# ## Summary
#
# - As functions of p, the weights of local-p are smooth pieces with jumps between them.
# - A jump occurs where a token enters or leaves the window; it can be large if this token has a high score.
# - The complex step gives the derivative of the smooth piece; a difference across the edge does not.
# - No gradient contains the height of a jump, so the loss may increase after a step.
# - S must be the number of tokens without padding.

# %% [markdown]
# ## Questions
#
# **Question.** Would the jumps disappear if the softmax used all tokens, and not only those in the window?
#
# <details><summary>Answer</summary>
# Yes. Then only the Gaussian would depend on p, and it is smooth. But all scores would have to be computed
# again, which local attention wants to avoid.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 18` lists the exercises of this chapter. The bug zoo has the mistake of
# this lesson: `npformer bugs start 20`.
#
# - By hand: all scores are equal, and D = 2. Which weights does each token have at p = 4.5? What is their
#   sum?
# - With code: draw the sum of the weights as a function of p, for both examples of scores.
#
# **Next**: lesson 18.4 (`18_4_learning_a_position`), whether the position can be learned.

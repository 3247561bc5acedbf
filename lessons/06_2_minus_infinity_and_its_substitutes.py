# %% [markdown]
# # 6.2 · Minus infinity and its substitutes
#
# *About 25 minutes. You need: masks (lesson 6.1, `06_1_masks`), float32 and float64.*
#
# **After this lesson you can**
#
# - say when a large negative number gives the same weights as −∞;
# - explain what happens in a row in which all keys are masked;
# - explain why npformer uses −∞, and how its softmax avoids NaN.
#
# `attention: queries and keys → scores → [MASK] → softmax → mean of values`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from npformer.checking import gradcheck
from npformer.functional import masks
from npformer.functional.attention import attention, attention_backward
from npformer.functional.masks import causal_mask, padding_mask
from npformer.functional.softmax import softmax
from npformer.functional.tutorial_masks import (
    Masking,
    fill_scores,
    tutorial_attention,
    tutorial_attention_backward,
)
from npformer.learn.course import show_figure
from npformer.plots import Step, gradient_flow

rng = np.random.default_rng(6)
q, k, v = rng.standard_normal((3, 6, 8))  # (T, K), (S, K), (S, K)
scores = q @ k.T / math.sqrt(8)  # (T, S)
dy = rng.standard_normal((6, 8))  # (T, K) the gradient of the output

# %% [markdown]
# ## Numbers in place of −∞
#
# The paper sets the scores of masked keys to −∞ before the softmax:

# %% tags=["plot"]
allowed = causal_mask(6, q)  # (T, S)
arrays = {"scores": scores, "mask": allowed, "weights": attention(q, k, v, allowed)[1].weights}
steps = {"weights": Step("−∞, softmax", ["scores", "mask"])}
axes = dict.fromkeys(arrays, "T S")
figure = gradient_flow("scores weights \n mask .", arrays, steps, axes=axes)
show_figure(figure, "06_2_mask", "A score becomes −∞ where the mask is False, and its weight 0")

# %% [markdown]
# Our documents do not use −∞ in their code. *一步步解析Attention is All You Need!* replaces the score by
# −2³² + 1, and *图解transformer* by −1e10. *The components of the Transformer* **adds** −1e9 to the score.
# Does the difference matter?
#
# It does not matter in a row with at least one allowed key. Before the exponential, the softmax subtracts
# the maximum of the row, which is an allowed score. The masked scores then lie far below 0, and their
# exponentials are too small for a floating-point number. They are rounded to 0, which is called
# **underflow**. The cell finds the number at which this happens.

# %%
for dtype, edge in {np.float32: -104, np.float64: -746}.items():
    before, there = np.exp(dtype(edge + 1)), np.exp(dtype(edge))
    print(f"{dtype.__name__}: exp({edge + 1}) = {before:.0e}, exp({edge}) = {there:.0f}")
    assert there == 0 < before

# %% [markdown]
# Every number in the source documents is far below −746. So all of them should give the same weights
# as −∞. We test this with a row of three scores, of which two are allowed. For this chapter, npformer has the
# masks of the source documents beside its own: `fill_scores` takes `Masking(fill, how)`, the number, and
# whether it replaces the score or is added to it.

# %%
fills = {"-inf": -math.inf, "-1e9": -1e9, "-1e10": -1e10, "-2^32+1": -(2.0**32) + 1}
row = np.array([1.0, 2.0, 3.0])  # the scores of one query
two = np.array([True, True, False])
for dtype in (np.float32, np.float64):
    exact, _ = softmax(masks.mask_scores(row.astype(dtype), two)[0])
    for fill in fills.values():
        for how in ("replace", "add"):
            masked, _ = fill_scores(row.astype(dtype), two, Masking(fill, how))
            assert_array_equal(softmax(masked)[0], exact)
print("two of three keys allowed:", exact, "exactly, with every fill")

# %% [markdown]
# Now consider a **fully masked row**: a query that may attend to *no* key. In such a row the maximum that the
# softmax subtracts is itself one of the large negative numbers.
#
# **Question.** All three scores 1, 2, 3 are replaced by −1e9. What are the weights?
#
# <details><summary>Answer</summary>
# All scores are equal, so every weight is 1/3. The query attends to all the keys that it must not attend to.
# </details>

# %%
nothing = np.zeros(3, bool)
outcome = {}
for name, fill in fills.items():
    for dtype in (np.float32, np.float64):
        for how in ("replace", "add"):
            masked, _ = fill_scores(row.astype(dtype), nothing, Masking(fill, how))
            outcome[name, dtype.__name__, how] = softmax(masked)[0]

# %% tags=["plot"]
print("fully masked   float32                             float64")
print("fill           replace          add                replace          add")
for name in fills:
    cells = ["  ".join(f"{p:.2f}" for p in outcome[key]) for key in outcome if key[0] == name]
    print(f"{name:12}", *[f"  {cell}" for cell in cells])
print("without a mask " + "  ".join(f"{p:.2f}" for p in softmax(row)[0]))
print("spacing of float32 at 1e9:", np.spacing(np.float32(1e9)), " of float64:", np.spacing(1e9))

# %% [markdown]
# Read the table column by column.
#
# - **Replaced.** All scores of the row are the same number. So every weight is 1/3.
# - **Added, in float64.** Every score is shifted by the same −1e9, and a softmax ignores a common shift. The
#   mask has *no effect at all*. The weights .09, .24 and .67 are those without any mask.
# - **Added, in float32.** Near 1e9, neighbouring float32 numbers are 64 apart. So 1 − 1e9, 2 − 1e9 and
#   3 − 1e9 are all rounded to −1e9, and every weight is 1/3 again.
# - **−∞**, as in npformer. All weights are 0.
#
# The number −2³² + 1 = −4294967295 is not a float32 number, so it is rounded to −4294967296.
#
# The two columns with "add" show a second problem. The same program computes different functions in the two
# precisions. A gradient check in float64 would then test a function that training in float32 does not use.

# %% tags=["check"]
for (name, dtype, how), found in outcome.items():
    expected = softmax(row)[0] if (how, dtype) == ("add", "float64") else [1 / 3] * 3
    assert_allclose(found, [0.0] * 3 if name == "-inf" else expected, atol=1e-5)
assert_allclose(softmax(row)[0], [0.09, 0.24, 0.67], atol=0.005)
assert float(np.float32(-(2.0**32) + 1)) == -4294967296
print("the numbers of the text are those of the table")

# %% [markdown]
# ## The fully masked row
#
# Do fully masked rows occur in practice? Yes. When a sentence is padded on the *left*, the first queries of a
# causal mask may attend to padding only. An empty source sentence has the same effect.
#
# The usual formula of the softmax fails in a fully masked row. The maximum of the row is −∞, and −∞ − (−∞) is
# NaN, "not a number". The cell uses a softmax without any protection. It also computes $dV = P^\top dY$, with
# a gradient `dy_rest` that is 0 in rows 0 and 1, which are fully masked.

# %%
late = np.array([[0, 0, 4, 5, 6, 7]])  # padded on the left
left = (padding_mask(late) & causal_mask(6, late))[0, 0]  # (T, S), rows 0 and 1 are fully masked

masked = np.where(left, scores, -np.inf)
with np.errstate(invalid="ignore"):
    e = np.exp(masked - masked.max(-1, keepdims=True))
unprotected = e / e.sum(-1, keepdims=True)  # (T, S)
dy_rest = np.where(np.arange(6)[:, None] < 2, 0, dy)  # no gradient for rows 0 and 1
print("rows with NaN:", np.isnan(unprotected).any(-1).nonzero()[0])
print("rows of dv with NaN:", np.isnan(unprotected.T @ dy_rest).any(-1).nonzero()[0])

# %% tags=["check"]
assert np.isnan(unprotected.T @ dy_rest).all()

# %% [markdown]
# Nobody uses the outputs of these two rows, and their gradient is 0. Still, the gradient of *every* value is
# NaN. The reason is that $dV = P^\top dY$ contains the products NaN · 0, which are NaN. After one optimizer
# step with such gradients, the model cannot be used any more.
#
# The function `softmax` of npformer prevents this with two lines. If the maximum of a row is not finite, it
# subtracts 0 instead. If the sum of the exponentials is 0, it divides by 1 instead. In a fully masked row
# this gives:
#
# $$\begin{aligned}
# e_s &= \exp(-\infty - 0) = 0 \\
# p_s &= \frac{0}{1} = 0 \\
# da'_s &= p_s \left(dp_s - \sum_r dp_r\, p_r\right) = 0 \cdot (dp_s - 0) = 0
# \end{aligned}$$
#
# So a fully masked query has the output 0, and its gradients are 0. This is the only result in which a masked
# key has no influence. The gradient check passes with this mask too.

# %%
y, cache = attention(q, k, v, left)
print("outputs of the fully masked rows:", y[:2, :3].ravel())
report = gradcheck((attention, attention_backward), q, k, v, mask=left)
print(report)

# %% tags=["check"]
assert not y[:2].any()
assert all(np.isfinite(gradient).all() for gradient in attention_backward(dy, cache))
assert not attention_backward(dy, cache)[0][:2].any()
assert report.ok

# %% [markdown]
# A large negative number never gives NaN, but its errors are harder to find. Here is an example. We add −1e9
# once for padding and once for the future, in float32. Query 0 of the sentence above is a padding token, and
# it is the first position:
#
# | key | padding | future | added |
# |---|---|---|---|
# | 0 | yes | no | −1e9 |
# | 1 | yes | yes | −2e9 |
# | 2 to 5 | no | yes | −1e9 |
#
# The maximum of this row is −1e9. So query 0 gives a weight of .2 to itself and to each *future* token.
# The gradients are wrong in the same way. Key 5, which is masked for query 0, receives a gradient from it.

# %%
twice = scores.astype(np.float32)
for part in (padding_mask(late)[0, 0], causal_mask(6, late)):
    twice, _ = fill_scores(twice, part, Masking(-1e9, "add"))
added, _ = softmax(twice)  # (T, S)
print("weights of query 0:", added[0].round(2))

_, cache = tutorial_attention(q, k, v, left, masking=Masking(-1e9, "add"))
of_row = np.where(np.arange(6)[:, None] == 0, dy, 0)  # a gradient for query 0 alone
_, dk, _ = tutorial_attention_backward(of_row, cache)
print("gradient of key 5, masked:", dk[5, :3])

# %% tags=["check"]
assert_allclose(added[0], [0.2, 0, 0.2, 0.2, 0.2, 0.2], atol=1e-6)
assert dk[5].all()
assert not attention_backward(of_row, attention(q, k, v, left)[1])[1].any()  # −∞: no gradient

# %% [markdown]
# **Your turn.** Is −10 a large enough number? In the terminal, compute the weights of a row whose last key is
# masked: `!softmax(fill_scores(row, two, Masking(-10.0, "add"))[0])[0]`. Predict the result
# first.

# %% [markdown]
# ## What the source documents say
#
# > The paper and the text of *图解transformer* say −∞. The code of *图解transformer* replaces by −1e10,
# > *一步步解析Attention is All You Need!* replaces by −2³² + 1, and *The components of the Transformer* adds
# > −1e9. The last computes `mask * -1e9`, which would not work with −∞, since 0 · ∞ is NaN.

# %% [markdown]
# ## Summary
#
# - If at least one key is allowed, numbers such as −1e9 give the same weights as −∞, because exp underflows.
# - In a fully masked row, such numbers give positive weights to keys that are masked.
# - A number that is added gives different weights in float32 and in float64.
# - A softmax without protection gives NaN in a fully masked row, and all gradients of values become NaN.
# - npformer gives a fully masked query the weights 0, the output 0 and the gradients 0.

# %% [markdown]
# ## Questions
#
# **Question.** When does a sentence have a fully masked row?
#
# <details><summary>Answer</summary>
# For example, when it is padded on the left and the mask is causal: the first queries may attend to padding
# only. Also when the whole source sentence is empty.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 6` lists the exercises of this chapter that are graded.
#
# - By hand: why is NaN in an output that nobody uses still harmful? Look at $dV = P^\top dY$.
# - By hand: a mask *adds* −10 to a score of 12. The only other key is allowed, and its score is 2. Which
#   weight does the masked key have?
# - Compute the weights of the table for a fill of −1e4 in float16. Use `fill_scores` and `softmax`.
#
# **Next**: lesson 6.3 (`06_3_leaks`), how to test a model for errors of its masks.

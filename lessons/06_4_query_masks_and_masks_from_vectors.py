# %% [markdown]
# # 6.4 · Query masks, and masks from vectors
#
# *About 20 minutes. You need: the padding mask (lesson 6.1, `06_1_masks`), attention and its gradients
# (lesson 5.2, `05_2_the_backward_pass_of_attention`), position vectors (lesson 3.1, `03_1_positions`).*
#
# **After this lesson you can**
#
# - say what a query mask does before and after the softmax;
# - explain why a query mask is usually not necessary;
# - explain why npformer computes masks from ids and not from vectors.
#
# `attention: queries and keys → scores → [MASK] → softmax → mean of values`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.functional import Masking, masks, tutorial_attention, tutorial_attention_backward
from npformer.functional.attention import attention, attention_backward
from npformer.functional.masks import padding_mask
from npformer.functional.norm import layer_norm
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.plots import Grid, cell_product

rng = np.random.default_rng(6)
ids = np.array([[2, 4, 5, 6, 0, 0]])  # (B, T): <S> I am late <PAD> <PAD>
padding = np.broadcast_to(padding_mask(ids)[0, 0], (6, 6))  # (T, S), a row is a query
q, k, v, dy = rng.standard_normal((4, 6, 8))  # (T, K), (S, K), (S, K), (T, K)

# %% [markdown]
# ## The query mask
#
# A padding token is also a *query*. Its row of weights has no meaning, since nobody needs its output. A
# **query mask** marks such queries. *一步步解析Attention is All You Need!* uses one, but describes it in two
# different ways:
#
# - Its text and its figure set the row of *scores* to 0, before the softmax.
# - Its code sets the row of *weights* to 0, after the softmax.

# %% tags=["plot"]
drawn = {
    when: tutorial_attention(
        q, k, v, padding, query_mask=masks.query_mask(ids)[0, 0], masking=Masking(query=when)
    )[1].weights
    for when in ("before", "after")
}
grids = [Grid(weights, f"weights, {when}", shade=True) for when, weights in drawn.items()]
caption = "The two last rows are padding queries: equal weights for all keys, or weights of 0"
show_figure(cell_product([grids[0], "or", grids[1]]), "06_4_queries", caption)

# %% [markdown]
# The two are not the same. The cell prints the weights of the first padding query in both cases, and the
# gradient of its value.

# %%
rows = masks.query_mask(ids)[0, 0]  # (T, 1)
found = {}
for when in ("before", "after"):
    y, cache = tutorial_attention(q, k, v, padding, query_mask=rows, masking=Masking(query=when))
    dq, _, dv = tutorial_attention_backward(dy, cache)
    found[when] = cache.weights[4], dq[4:], dv[4]
    print(f"{when:6} weights of <PAD> {cache.weights[4].round(2)}   its dv {dv[4, :3].round(2)}")

# %% tags=["check"]
for when, (weights_of_pad, dq_of_pad, dv_of_pad) in found.items():
    assert_allclose(weights_of_pad, {"before": 1 / 6, "after": 0}[when])
    assert dv_of_pad.any() == (when == "before")
    assert not dq_of_pad.any()

# %% [markdown]
# - **Before**: scores of 0 are equal scores, so the padding query gives a weight of 1/6 to every key, even to
#   other padding. If the loss sends a gradient to the padding rows, then all values receive a part of it.
# - **After**: all weights of the query are 0, so no value receives a gradient from it. npformer's own
#   attention needs no query mask for this: with the mask `padding & rows`, the query may attend to no key.
#
# Usually a query mask is not necessary. The padding mask prevents every query from attending to padding, and
# the loss does not count padding (chapter 12). So $dy$ is 0 in the padding rows. In this case both variants
# and attention without a query mask give the same gradients:

# %%
real = np.where(rows, dy, 0)  # (T, K), 0 in the padding rows
_, plain = attention(q, k, v, padding)
for when in ("before", "after"):
    _, cache = tutorial_attention(q, k, v, padding, query_mask=rows, masking=Masking(query=when))
    gradients = tutorial_attention_backward(real, cache)
    for one, other in zip(gradients, attention_backward(real, plain), strict=True):
        assert_allclose(one, other, atol=1e-14)
print("with dy = 0 at padding, all three give the same gradients")

# %% [markdown]
# ## A mask computed from the vectors
#
# How does a model know which tokens are padding? npformer compares the *ids* with the id of `<PAD>`.
# *一步步解析Attention is All You Need!* computes the mask from the *vectors* instead. Its embedding of
# padding is a vector of zeros. So a token counts as padding when the entries of its vector sum to 0. For the
# embeddings alone this is correct.
#
# **Question.** After the embedding, the model adds a position vector to each token. What does the
# mask look like when it is computed after this addition?
#
# <details><summary>Answer</summary>
# The vector of a padding token is now equal to its position vector, whose entries do not sum to 0. So no
# token counts as padding, and the mask is True everywhere.
# </details>

# %%
table = rng.standard_normal((8, 512)).astype(np.float32)  # (V, D)
table[0] = 0  # padding
embedded = table[ids] * math.sqrt(512)  # (B, S, D)
with_positions = embedded + sinusoids(6, 512).astype(np.float32)
print("from the ids           ", padding_mask(ids)[0, 0, 0] * 1)
print("from the embeddings    ", masks.mask_from_embeddings(embedded)[0, 0, 0] * 1)
print("once positions are added", masks.mask_from_embeddings(with_positions)[0, 0, 0] * 1)

# %% [markdown]
# The error raises no exception and gives no NaN. In the higher layers there is a second problem. Their input
# is the output of a layer norm, where the entries of *every* vector sum to 0. (This holds as long as the
# gain is 1 and the bias is 0, as at the start of training.) In practice, rounding errors make the sum a tiny
# number. For some tokens the rounding errors cancel. Then the sum is exactly 0, and the mask hides a real
# token. How often does this happen?

# %%
many = rng.standard_normal((1, 4000, 512)).astype(np.float32)  # (B, S, D) real tokens
normed, _ = layer_norm(many, np.ones(512, np.float32), np.zeros(512, np.float32))
hidden = 1 - masks.mask_from_embeddings(normed).mean()
print(f"after a layer norm, {hidden:.1%} of 4000 real tokens count as padding")

# %% tags=["check"]
assert masks.mask_from_embeddings(with_positions).all()
assert 0.05 < hidden < 0.1

# %% [markdown]
# About 6 % of the real tokens are hidden, and chance decides which ones. This is why npformer computes its
# masks from ids.

# %% [markdown]
# **Your turn.** In the terminal, print the sums of the entries with `!embedded.sum(-1)` and
# `!with_positions.sum(-1)`. At which tokens are they exactly 0?

# %% [markdown]
# ## What the source documents say
#
# > *一步步解析Attention is All You Need!* says that padding stays 0 through the projections. This holds only
# > without positions and biases.

# %% [markdown]
# ## Summary
#
# - A query mask marks queries that are padding. It acts on a whole row of scores or weights.
# - Before the softmax, a row of zeros gives every key the same weight, also padding.
# - After the softmax, a row of zeros gives no key any weight.
# - If the loss does not count padding, a query mask changes no gradient.
# - A mask computed from vectors fails once positions are added, and behind a layer norm. Ids are safe.

# %% [markdown]
# ## Questions
#
# **Question.** The padding mask and the query mask both come from the same ids. What is the difference?
#
# <details><summary>Answer</summary>
# The padding mask acts on keys, the columns of the scores. The query mask acts on queries, the rows.
# </details>
#
# **Question.** Why are the numbers of `dq` 0 at padding in both variants?
#
# <details><summary>Answer</summary>
# Before the softmax, the scores of the row are replaced by 0, so they do not depend on the query. After the
# softmax, the weights are replaced by 0, so they do not depend on it either.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these in Python. The command `npformer exercise list 6` lists the exercises of this chapter that are
# graded.
#
# - Repeat the last measurement with a width of 64 instead of 512. Is the share of hidden tokens larger?
# - The command `npformer masks "I am late" --pad 2 --causal --mistake from-embeddings` draws the masks of a
#   sentence with the mistake of this lesson. Compare it with the same command without `--mistake`.
#
# **Next**: lesson 7.1 (`07_1_why_several_heads`), several attention functions in parallel.

# %% [markdown]
# # 6.1 · Masks: which keys a query may attend to
#
# *About 30 minutes. You need: scaled dot-product attention (lesson 5.1, `05_1_scaled_dot_product_attention`)
# and its backward pass (lesson 5.2, `05_2_the_backward_pass_of_attention`), padding (lesson 1.1,
# `01_1_words_to_ids`).*
#
# **After this lesson you can**
#
# - build the padding mask and the causal mask, and combine them;
# - compute attention with a mask;
# - show that no gradient flows through a masked score.
#
# `attention: queries and keys → scores → [MASK] → softmax → mean of values`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import masks
from npformer.functional.attention import attention, attention_backward
from npformer.functional.masks import causal_mask, padding_mask
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.learn.course.running import attention_places, running_example
from npformer.plots import Step, gradient_flow, mask_panels, softmax_panels

rng = np.random.default_rng(6)

# %% [markdown]
# ## Why masks?
#
# A **mask** says which query may attend to which key. It enters the softmax, and the weights of
# forbidden keys become 0.

# %% tags=["plot"]
layout = """q  scores  weights  y
            k  mask      v     ."""
example = np.random.default_rng(0).standard_normal((3, 6, 4))  # q, k and v of six tokens
steps = {
    "scores": Step("q kᵀ / √dₖ", ["q", "k"]),
    "weights": Step("softmax", ["scores", "mask"]),
    "y": Step("weights v", ["weights", "v"]),
}
axes = {"q": "T dₖ", "k": "S dₖ", "v": "S dᵥ", "y": "T dᵥ"}
axes |= dict.fromkeys(("scores", "mask", "weights"), "T S")


def masked(allowed):
    """Draw attention with a mask."""
    y, cache = attention(*example, allowed)
    arrays = dict(zip("qkv", example, strict=True)) | {"mask": allowed, "y": y}
    arrays |= {"scores": example[0] @ example[1].T / 2, "weights": cache.weights}
    return gradient_flow(layout, arrays, steps, axes=axes)


caption = "A mask: a query (row) may attend to the keys (columns) whose cells are blue"
show_figure(masked(np.tri(6, dtype=bool)), "06_1_causal", caption)

# %% [markdown]
# In chapter 5 every query attends to every key. In a Transformer this is wrong in two situations.
#
# **Padding.** The sentences of a batch have different lengths. To store them in one array, we append the
# token `<PAD>` to the shorter sentences (lesson 1.1). These tokens mean nothing, so no result may depend on
# them.

# %% tags=["plot"]
figure = masked(np.tile([True, True, True, True, False, False], (6, 1)))
show_figure(figure, "06_1_padding", "Another mask: no query may attend to the last two keys")

# %% [markdown]
# **The future.** The decoder learns to predict the next token. In training it reads the whole target sentence
# at once, so the token to be predicted is part of its input. If a query may attend to this token, the decoder
# only learns to copy it.
#
# A mask is a bool array. It has the shape of the scores, (T, S), or broadcasts to it. In npformer, **True
# means that the query may attend to the key**. Where it is False, we say that the key is *masked* for this
# query.

# %% [markdown]
# ## The definition
#
# *Attention Is All You Need* describes the mask of the decoder in section 3.2.3:
#
# > We implement this inside of scaled dot-product attention by masking out (setting to −∞) all values in the
# > input of the softmax which correspond to illegal connections.
#
# The mask acts between scores and softmax. Our example is "I am late", padded to six
# tokens.

# %%
words = ["<S>", "I", "am", "late", "<PAD>", "<PAD>"]
ids = np.array([[2, 4, 5, 6, 0, 0]])  # (B, S), and 0 is the id of <PAD>

# %% [markdown]
# There are two common masks:
#
# - The **padding mask** is False at every key that is padding. It depends on the sentence and is the same for
#   all queries. Positions with padding get outputs too, but no token attends to them, and the loss leaves
#   them out (chapter 12).
# - The **causal mask** allows position t to attend to the positions 0 … t. It depends only on the positions
#   and is the same for all sentences.
#
# Masks are combined with `&`, because a key must be allowed by all of them. Other masks are possible too. One
# example is `local_mask`, which allows only keys near the query.
#
# The cell builds both masks with loops, and then with the functions of the package. The scores of several
# heads (chapter 7) have the shape (B, H, T, S). The causal mask (T, S) and the padding mask (B, 1, 1, S)
# broadcast to it.

# %%
padding = np.zeros((6, 6), bool)  # (T, S)
causal = np.zeros((6, 6), bool)
for t in range(6):
    for s in range(6):
        padding[t, s] = ids[0, s] != 0
        causal[t, s] = s <= t

# the ids say where causal_mask makes the mask: in the memory of the CPU, as here, or of a GPU
print("padding", padding_mask(ids).shape, "  causal", causal_mask(6, ids).shape)
mask = padding_mask(ids) & causal_mask(6, ids)  # (B, 1, T, S)

# %% tags=["check"]
assert_array_equal(np.broadcast_to(padding_mask(ids)[0, 0], (6, 6)), padding)
assert_array_equal(causal_mask(6, ids), causal)
assert_array_equal(mask[0, 0], padding & causal)

# %% tags=["plot"]
figure = mask_panels({"padding": padding, "causal": causal}, words, words)
caption = 'A row is a query, a column a key; "together" combines both masks with &'
show_figure(figure, "06_masks", caption)

# %% [markdown]
# **Question.** The causal mask is True on its diagonal, so each position may attend to itself. Why does this
# not reveal the token that has to be predicted?
#
# <details><summary>Answer</summary>
# The input of the decoder is shifted by one position. Position t holds the token *before* the one that it has
# to predict. So the token to be predicted stands at position t + 1, which is masked.
# </details>

# %% [markdown]
# ## The forward pass with a mask
#
# First we write down what we want. The softmax of lesson 5.1 should run over the allowed keys only, as if the
# others did not exist. Let $a_s$ be the score of a query with key $s$. Let $m_s$ be 1 where the query may
# attend to this key, and 0 elsewhere. Then the weights of the query are
#
# $$p_s = \frac{m_s \exp(a_s)}{\sum_r m_r \exp(a_r)}$$
#
# The paper computes the same weights with the usual softmax. It replaces the score of a masked
# key by −∞. Because $\exp(-\infty) = 0$, this key adds nothing to the sum, and its weight is exactly 0.
#
# The cell computes attention in both ways. The loop leaves out the masked keys, and the vectorized version
# replaces their scores.

# %%
q, k, v = rng.standard_normal((3, 6, 8))  # (T, d_k), (S, d_k), (S, d_v)
mask = padding & causal  # (T, S)
slow = np.zeros((6, 8))
for t in range(6):
    allowed = [s for s in range(6) if mask[t, s]]
    e = {s: math.exp(q[t] @ k[s] / math.sqrt(8)) for s in allowed}
    for s in allowed:
        slow[t] += e[s] / sum(e.values()) * v[s]

scores = q @ k.T / math.sqrt(8)  # (T, S)
weights, _ = softmax(np.where(mask, scores, -np.inf))
y, cache = attention(q, k, v, mask)
show(cache)

# %% tags=["check"]
assert_allclose(weights @ v, slow, rtol=1e-12)
assert_allclose(y, slow, rtol=1e-12)
assert (cache.weights[~mask] == 0).all()

# %% tags=["plot"]
figure = softmax_panels(cache.scores, cache.weights, words, words, mask=mask, numbers=True)
caption = "Grey pairs are masked; the remaining weights of every row sum to 1"
show_figure(figure, "06_softmax", caption)

# %% [markdown]
# ## The backward pass with a mask
#
# Masking is one more operation, between the scores and the softmax. It replaces each score $a_s$ by $a'_s$.
# Where the mask is True, $a'_s = a_s$. Where it is False, $a'_s = -\infty$, whatever the score is. So the
# derivative is 1 or 0, and the chain rule gives the gradient:
#
# $$\begin{aligned}
# \frac{\partial a'_s}{\partial a_s} &= m_s \\
# da_s &= m_s\, da'_s
# \end{aligned}$$
#
# Is the factor $m_s$ necessary? Lesson 5.2 derived the gradient that comes out of the softmax:
#
# $$da'_s = p_s \left(dp_s - \sum_r dp_r\, p_r\right)$$
#
# For a masked key the weight $p_s$ is exactly 0, and so this gradient is exactly 0 even without $m_s$. So the
# factor is not necessary, but it is a second, independent reason why the score of a masked key gets no
# gradient.
#
# The value of a masked key gets no gradient from this query either: its term in $dv_s = \sum_t p_{ts}\, dy_t$
# has the weight 0. So a masked key influences neither the output of this query nor the gradient of the query.

# %%
dy = rng.standard_normal(y.shape)  # (T, d_v)
dmasked = softmax_backward(dy @ v.T, weights)  # (T, S) the gradient of a'
_, mask_cache = masks.mask_scores(scores, mask)
dscores = masks.mask_scores_backward(dmasked, mask_cache)
print("gradients of masked scores:", dscores[~mask])

dq, dk, dv = attention_backward(dy, cache)
print("dk of the two padding keys\n", dk[4:, :4], "\ndv of their values\n", dv[4:, :4])

# %% tags=["check"]
assert (dmasked[~mask] == 0).all()
assert (dscores[~mask] == 0).all()
assert_allclose(dq, dscores @ k / math.sqrt(8), rtol=1e-9, atol=1e-12)
assert_allclose(dk, dscores.T @ q / math.sqrt(8), rtol=1e-9, atol=1e-12)
assert_allclose(dv, weights.T @ dy, rtol=1e-9, atol=1e-12)
assert not dk[4:].any()
assert not dv[4:].any()

# %% tags=["plot"]
places = attention_places("decoder.0.self_attention")
places["y"] = places.pop("z")
places = {name: places[name] for name in ("scores", "weights", "v", "y")}
steps = {"weights": Step("mask, softmax", ["scores"]), "y": Step("weights v", ["weights", "v"])}
axes = {"scores": "T T", "weights": "T T", "v": "T dᵥ", "y": "T dᵥ"}
figure = running_example().flow("scores weights y \n . v .", places, steps, axes)
caption = "Our sentence in the translator's decoder: dscores is 0 above the diagonal"
show_figure(figure, "06_1_running", caption)

# %% tags=["check"]
assert not np.triu(running_example().gradients[places["scores"]], 1).any()

# %% [markdown]
# **Question.** Some programs *add* a large negative number, such as −10⁹, to the scores of masked keys. What
# is the derivative of $a'_s$ now, and why is the gradient of a masked score still 0?
#
# <details><summary>Answer</summary>
# The derivative is 1, because the score is still part of the sum. So the factor from the mask is missing.
# The gradient is still 0 as long as the softmax gives the key a weight of exactly 0.
# </details>

# %% [markdown]
# The gradient check treats the mask as a constant and compares the gradients of q, k and v.

# %%
report = gradcheck((attention, attention_backward), q, k, v, mask=mask)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## A masked key never learns
#
# We train the keys and the values themselves, with random outputs as targets. Places 4 and 5 are padding. The
# loss is a mean over 48 numbers, so its gradients are small, and the learning rate can be as large as 4.

# %%
k_new, v_new, losses = k.copy(), v.copy(), []
target = rng.standard_normal(y.shape)
for _ in range(100):
    output, cache = attention(q, k_new, v_new, mask)
    error = output - target
    losses.append((error * error).mean())
    _, dk, dv = attention_backward(2 * error / error.size, cache)
    k_new, v_new = k_new - 4 * dk, v_new - 4 * dv
print(f"loss {losses[0]:.2f} → {losses[-1]:.2f}")
print("changes of the keys  ", abs(k_new - k).max(-1).round(2))
print("changes of the values", abs(v_new - v).max(-1).round(2))

# %% tags=["check"]
assert losses[-1] < losses[0] / 1.5
assert_array_equal(k_new[4:], k[4:])
assert_array_equal(v_new[4:], v[4:])

# %% [markdown]
# ## What the source documents say
#
# > - **True and False.** In *图解transformer* a 0 means masked; in *The components of the Transformer* a 1
# >   means masked. In npformer True means that the query may attend, and a mask that is not bool is refused.
# >   PyTorch has both: True means "may attend" in `scaled_dot_product_attention`, and "masked" in
# >   `nn.MultiheadAttention` and `nn.Transformer`.
# > - **The diagonal.** *一步步解析Attention is All You Need!* and *图解transformer* say that position i of
# >   the decoder attends only to what is before it. Their masks also allow position i itself. This is no
# >   contradiction: input i of the decoder is token i − 1 of the output, so a position that attends to
# >   itself still knows only the tokens before token i.

# %% [markdown]
# ## Summary
#
# - A mask is a bool array over the scores; in npformer, True means that the query may attend to the key.
# - The padding mask hides `<PAD>`, the causal mask hides later positions, and `&` combines them.
# - The scores of masked keys are replaced by −∞ before the softmax, so their weights are exactly 0.
# - The gradient of a masked score is 0 for two reasons: its weight is 0, and its score was replaced.
# - A masked key influences neither the output nor the gradient of its query.

# %% [markdown]
# ## Questions
#
# **Question.** Which of the two masks is the same for all sentences of a batch, and which one is the same for
# all queries of a sentence?
#
# <details><summary>Answer</summary>
# The causal mask is the same for all sentences. The padding mask is the same for all queries of a sentence.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 6` lists the exercises of this chapter.
#
# - `npformer exercise start causal-mask`: write the causal mask of T positions. One comparison of two index
#   arrays is enough.
# - `npformer exercise start padding-mask`: write the mask that hides padding. It needs one comparison, and
#   two axes of length 1.
# - `npformer exercise start local-mask`: write a mask with which a query may attend only to keys within a
#   given distance.
# - `npformer exercise start mask-scores-backward`: compute the gradient of the scores when a mask has
#   replaced some of them.
# - See the causal mask in a real decoder: run `npformer explore --model en-de "A dog runs." --open`, and in
#   the address of the page replace `#` and everything after it by
#   `#step=decoder.0.self_attention.attention.masked`.
#
# The command `npformer masks "I am late" --pad 2 --causal` draws the masks of a sentence.
#
# **Next** on the main route: lesson 7.1 (`07_1_why_several_heads`), several attention functions in parallel.
# On the route for engineers: lesson 7.2 (`07_2_all_heads_in_one_product`), the fast version of such a layer.
# Off the routes: lesson 6.2 (`06_2_minus_infinity_and_its_substitutes`), about the numbers that programs use
# in place of −∞.

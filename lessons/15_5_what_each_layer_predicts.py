# %% [markdown]
# # 15.5 · What each layer predicts
#
# *About 30 minutes. You need: layer normalization (lesson 8.1, `08_1_layer_norm`), gradient times input
# (lesson 15.4, `15_4_gradient_times_input`).*
#
# **After this lesson you can**
#
# - read the prediction of a model after each of its layers with the logit lens;
# - split a logit into what each head, each feed-forward network and each bias adds;
# - say what neither of them can show.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

import npformer
from npformer.learn.course import show_figure

translator = npformer.load("en-de")
SENTENCE = "A man is riding a bicycle."
lens = translator.lens(SENTENCE)

# %% tags=["plot"]
show_figure(lens.plot(), "15_lens", "The prediction after each layer of the decoder")

# %% [markdown]
# ## A model read before its end
#
# Each column of the picture is one position of the decoder. At its bottom stands the token that the decoder
# reads there, and at its top the token that the model predicts next. Read a column upwards. After the
# embedding, the most probable token is the one that was read. Then the prediction changes, once or several
# times, and at some layer it becomes the final one.
#
# **Question.** From which layer on does the model predict "mann", and from which "fahrrad"?
#
# <details><summary>Answer</summary>
# "mann" from layer 1 on, and "fahrrad" after layer 3 only, the last one.
# </details>

# %% [markdown]
# ## The lens
#
# How can a layer predict? Every layer adds something to one vector of each token, $x$. Only after the last
# layer, the output matrix turns this vector into logits: $\ell = x W + b$. But the vector has the same width
# after every layer. So we can multiply it by $W$ earlier. This is the **logit lens** (nostalgebraist 2020):
#
# $$\ell^{(n)} = \mathrm{norm}(x^{(n)})\, W + b$$
#
# where $x^{(n)}$ is the vector after layer $n$. The norm is the last one of the decoder. In a model that
# normalizes after each sum, as the paper's does, the vector is normalized already, and this norm is left out.
# Here are the five most probable tokens after each layer at position 2, with their probabilities.

# %%
print(lens.table(position=2))

# %% [markdown]
# At position 2 the decoder reads "mann". After layer 0, "mann" is still the most probable token. Layer 1
# changes this to "fährt", and layer 2 makes it more probable: from .65 to .97. For each position, `decided`
# is the index of the first row from which on the prediction stays the same.

# %%
for predicted, row in zip(lens.predictions[-1], lens.decided, strict=True):
    print(f"{predicted[0]:8} {lens.rows[row]}")

# %% tags=["check"]
assert [row[2][0] for row in lens.predictions] == ["mann", "mann", "fährt", "fährt", "fährt"]
final = [tokens[0] for tokens in lens.predictions[-1]]
assert " ".join(final[:-1]) == translator.translate(SENTENCE, form="tokenised")

# %% [markdown]
# **Question.** "fahrrad" (bicycle) is decided last, in layer 3. Before that, the lens shows "fährt" (rides)
# and "auf" (on). Why is "auf" a reasonable guess?
#
# <details><summary>Answer</summary>
# "Ein Mann fährt auf einem Fahrrad" is correct German, too. The lens suggests that the model leans towards
# this translation until its last layer.
# </details>
#
# Nothing in training asked the layers 0 to 2 to be read in this way. A layer may write into directions that
# the output matrix hardly reads and that a later layer turns into something else. So the lens gives hints.
# It can miss what a layer knows, and it shows nothing about how a layer does it.
#
# **Question.** A layer adds a vector that is nearly orthogonal to the columns of $W$ of all likely tokens.
# What does the lens show?
#
# <details><summary>Answer</summary>
# Nearly the same prediction as before the layer: the vector changes only the statistics of the norm. Yet a
# later layer can read it.
# </details>

# %% [markdown]
# ## A logit is a sum
#
# Which part of the model brought "fahrrad"? This translator normalizes before each sublayer (lesson 8.4,
# `08_4_norm_before_or_after`). So its last vector is the embedding $e$ plus all that the sublayers added:
#
# $$x = e + \sum_n \left( \sum_h z_h^{(n)} W_h^{(n)} + b^{(n)} + f^{(n)} \right)$$
#
# The output of an attention is a sum over its heads, since $W^O$ multiplies each head by its own block
# $W_h$. $b^{(n)}$ are the biases of the layer, and $f^{(n)}$ is the rest of its feed-forward network. The
# logit of a token is the product of the normalized $x$ with one column $w$ of the output matrix. Without the
# norm, each term would add its own product with $w$.
#
# **Question.** How many terms does a decoder of 4 layers have, each with 4 heads of self-attention and 4 of
# cross-attention? Count the biases of a layer as one term.
#
# <details><summary>Answer</summary>
# 42: the embedding, 8 heads, one network and one bias in each of 4 layers, and the biases of the output.
# </details>
#
# Layer norm is $\mathrm{gain} \cdot (x - \mathrm{mean}(x)) \cdot r + \mathrm{bias}$, with $r = 1 /
# \sqrt{\mathrm{variance} + \varepsilon}$. Subtracting the mean is linear, and so is multiplying by the gain.
# Only $r$ is not linear in $x$. But at this position of this sentence, $r$ is a number. With $r$ fixed, the
# norm is linear, and the logit is a sum with one term for each part. This is **direct logit attribution**
# (Elhage et al. 2021).

# %%
rng = np.random.default_rng(15)
embedding, head, network = rng.standard_normal((3, 4))  # (D,) three parts of a vector
gain, w = rng.standard_normal((2, 4))
x = embedding + head + network
r = 1 / np.sqrt(x.var() + 1e-5)


def term(part):
    """Return what a part adds to the logit, with r fixed."""
    return ((part - part.mean()) * r * gain) @ w


logit = ((x - x.mean()) * r * gain) @ w
print(f"{term(embedding):.3f} + {term(head):.3f} + {term(network):.3f} = {logit:.3f}")

# %% tags=["check"]
assert_allclose(term(embedding) + term(head) + term(network), logit)

# %% [markdown]
# ## The terms by a backward pass
#
# You know this computation already: it is a backward pass. The gradient of the logit arrives at the output of
# each part, and the product of output and gradient is its term. Two changes are needed. The norms keep $r$
# fixed, and no sublayer passes a gradient to its input, because a term counts only what a part adds directly
# to the sum. So `attribution` runs the backward pass of the model in a copy with these two changes. It works
# in the same way where the norm stands after the sum.

# %%
found = translator.attribution(SENTENCE, target="fahrrad", versus="auf")
print(found.table(most=8))

# %% tags=["plot"]
show_figure(found.plot(most=16), "15_parts", "What each part adds to fahrrad − auf")

# %% tags=["check"]
assert_allclose(found.sum, found.logit, atol=1e-10)
values = {part.label: part.value for part in found.parts}
assert max(values, key=values.get) == "layer 2 cross head 0"
assert min(values, key=values.get) == "biases of the output"

# %% [markdown]
# We asked for a difference: the logit of "fahrrad" minus that of "auf". A single logit contains much that all
# tokens share, such as a constant that the softmax ignores. The difference asks why this word and not that
# one, and it is usually the better question.
#
# The term with the largest absolute value does not depend on the sentence at all: the biases speak for "auf".
# (Here they are the bias of the last norm alone, since this translator has no output bias.) The four largest
# heads of cross-attention outweigh them together. Only cross-attention can bring "bicycle" from the encoder.
#
# **Question.** A part has a term near 0. Can the model do without it?
#
# <details><summary>Answer</summary>
# Not necessarily. A head of layer 0 can find the place to which a head of layer 3 attends. Its own term is
# small, but without it the term of layer 3 would change.
# </details>
#
# What a part does *through* others can be seen only in an experiment: lesson 15.3 (`15_3_head_ablation`)
# removed heads, and lesson 15.6 (`15_6_activation_patching`) replaces activations.
#
# **Your turn.** Ask for `versus="motorrad"`, and for other sentences. Is it always the same head?

# %% [markdown]
# ## Summary
#
# - The logit lens applies the last norm and the output matrix to the vectors after each layer.
# - Its last row is the prediction of the model. The earlier rows are hints: nothing trained them to be read.
# - With the statistics of the norms fixed, a logit is a sum of terms of the embedding, the heads, the
#   feed-forward networks and the biases.
# - A term is what a part adds directly. Its effect through later layers counts as their terms.
# - A difference of two logits leaves out what all tokens share.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the first row of the lens the token that was read?
#
# <details><summary>Answer</summary>
# The output matrix shares its weights with the embedding in this translator. So the vector of a token has a
# large product with its own column.
# </details>
#
# **Question.** The statistics of a norm depend on the whole vector. Why may `attribution` treat the norm as
# linear, and what does this leave out?
#
# <details><summary>Answer</summary>
# For a given input the statistics are numbers, and the terms add up to the logit exactly. Left out is that a
# part also changes the statistics: without it, all other terms would have another factor.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 15` lists the exercises of this chapter.
#
# - `npformer exercise start logit-lens`: compute the logits after every layer.
# - `npformer exercise start logit-terms`: compute what each part adds to a logit.
# - Use the lens on a sentence that the model translates wrongly. Which layer brings the wrong word?
# - Compute the terms of the logit of "mann" with `attribution`. Which bias is the largest?
#
# The lens is of nostalgebraist, "interpreting GPT: the logit lens" (2020), and the sum of Elhage et al., "A
# mathematical framework for Transformer circuits" (2021). Belrose et al., "Eliciting latent predictions from
# Transformers with the tuned lens" (2023), train a lens for each layer, and show what the plain one misses.
#
# **Next**: lesson 15.6 (`15_6_activation_patching`) asks which activation carries a difference.

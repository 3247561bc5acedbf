# %% [markdown]
# # 15.6 · Activation patching
#
# *About 25 minutes. You need: gradient times input (lesson 15.4, `15_4_gradient_times_input`), the logit lens
# (lesson 15.5, `15_5_what_each_layer_predicts`).*
#
# **After this lesson you can**
#
# - find the activation that carries a difference between two sentences;
# - estimate the effects of all patches from one backward pass, and say where the estimate fails;
# - plan a patching experiment with a fair pair of sentences.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

import npformer
from npformer.learn.course import show_figure

translator = npformer.load("en-de")
patching = translator.patch("A man is sleeping.", "A woman is sleeping.")

# %% tags=["plot"]
show_figure(patching.plot(), "15_patching", "Effects of activations of 'A woman is sleeping.'")

# %% [markdown]
# ## An experiment with two sentences
#
# "A man is sleeping" begins with "ein" in German, and "A woman is sleeping" with "eine". The English article
# is the same. So the decoder must know the noun before it writes the first word. Where in the model is this
# knowledge?
#
# The picture answers with an experiment. The model reads both sentences, and we keep all activations of the
# second run. In both runs the decoder reads the translation of the first sentence. Then the model reads the
# first sentence again, but one activation (the vector of one token after one layer) is replaced by that of
# the second run. This is **activation patching** (Meng et al. 2022). If the prediction changes from "ein" to
# "eine", this vector carries the difference.
#
# The score is a difference of logits, as in lesson 15.1 (`15_1_tokens_that_heads_attend_to`):
#
# $$\delta = \ell_{\mathit{ein}} - \ell_{\mathit{eine}}$$

# %%
print(patching.table())

# %% tags=["check"]
encoder, decoder = patching.effects["encoder"], patching.effects["decoder"]
difference = patching.other_score - patching.score
assert patching.score > 0 > patching.other_score
assert_allclose(encoder.exact[[0, -1], 1] / difference, [0.88, 0.69], atol=0.01)  # of "man"
assert_allclose(encoder.exact[[0, -1], 0] / difference, [0.08, 0.2], atol=0.01)  # of "a"
assert_allclose(decoder.exact[-1, 0] / difference, 1, atol=1e-4)

# %% [markdown]
# With an effect of 100 percent, the patched run would have the score of the other run. After layer 0 of the
# encoder, a patch of the vector of "man" has an effect of 88 percent, and after the last layer of 69 percent.
# A smaller part is at "a": its effect grows from 8 to 20 percent. So attention copies a part of the gender
# from the noun to its article, although the English "a" has none. No other vector of the encoder matters.
#
# In the decoder, only the first position can count: "ein" is predicted there, and the causal mask hides all
# later positions. The effect grows from layer to layer: each cross-attention brings a part of the
# knowledge. After the last layer the effect is 100 percent, and this is no discovery: the logits are
# computed from this vector alone.
#
# **Question.** What would be the effect of a patch of all vectors of the first encoder layer at once?
#
# <details><summary>Answer</summary>
# 100 percent, exactly. Everything after this layer depends on nothing else of the sentence, so the run would
# be the other run, to the last bit.
# </details>

# %% [markdown]
# ## Which head?
#
# The decoder reads the encoder by the heads of cross-attention. So we patch the output of one head at a time,
# at all tokens, before $W^O$.

# %%
heads = translator.patch("A man is sleeping.", "A woman is sleeping.", what="heads")
print(heads.table().split("\n\n")[-1])

# %% tags=["check"]
share = heads.effects["decoder"].exact / (heads.other_score - heads.score)  # (rows, heads)
row, head = np.unravel_index(share.argmax(), share.shape)
assert heads.effects["decoder"].rows[row] == "layer 3 cross"
assert share.max() > 0.25

# %% [markdown]
# One head of the last layer carries 28 percent of the difference, and two heads of layer 1 carry 18 and 12
# percent of it. The effects need not add up to 100 percent. Two heads can bring the same knowledge, so
# that either is enough; or two patches have an effect only together.
#
# **Question.** The first decoder layer's self-attention has the effect 0. Why must it?
#
# <details><summary>Answer</summary>
# Nothing of the source has reached the decoder before its first cross-attention. So this activation is the
# same in both runs, and its patch changes nothing.
# </details>

# %% [markdown]
# ## All effects from one backward pass
#
# A patch needs a forward pass. GPT-2 has 12 layers, so a text of 100 tokens has 1,200 vectors, and their
# patches need 1,200 forward passes. Lesson 15.4 predicted ablations from a gradient. The same works here. Let
# $a$ be an activation of the first run, and $a'$ the one of the second. To first order, the patch changes the
# score by
#
# $$\Delta\delta \approx \left\langle a' - a,\ \frac{\partial \delta}{\partial a} \right\rangle$$
#
# One backward pass gives the gradients of all activations at once. This is **attribution patching** (Nanda
# 2023). An ablation is the patch with $a' = 0$. Its estimate is $-\langle a, da \rangle$, where $da$ is the
# gradient. The right half of the picture shows these estimates.

# %%
for name, effects in patching.effects.items():
    exact, estimate = effects.exact / difference, effects.first_order / difference
    place = np.unravel_index(exact.argmax(), exact.shape)
    correlation = np.corrcoef(exact.ravel(), estimate.ravel())[0, 1]
    largest = f"largest effect {exact[place]:.2f}, estimate {estimate[place]:.2f}"
    print(f"{name}: {largest}, correlation {correlation:.2f}")

# %% tags=["check"]
assert np.corrcoef(encoder.exact.ravel(), encoder.first_order.ravel())[0, 1] > 0.85
assert encoder.exact[0, 1] / difference > 1.5 * encoder.first_order[0, 1] / difference
of_heads = heads.effects["decoder"]
assert np.abs(of_heads.exact - of_heads.first_order).max() < abs(difference) / 20

# %% [markdown]
# The estimates find the right token, but they are only a quarter to a half of the effect of "man". The
# gradient is right; it is the slope at $a$. The step from "man" to "woman" is long, and the slope changes
# along it, because softmax, norms and activations are not linear. In the decoder, which is nearer to the
# output, the estimates are good, for vectors and for heads. So a common plan is: estimate all effects, and
# measure the few large ones.
#
# **Question.** Would the estimates of the same score be better for "A man is sleeping" and "A boy is
# sleeping"?
#
# <details><summary>Answer</summary>
# The step from "man" to "boy" is probably shorter, so the slope changes less. But then the score hardly
# differs between the runs, and there is little to explain: both sentences begin with "ein".
# </details>
#
# **Your turn.** Try pairs such as "A man is sleeping" and "A man is reading". At which position do the
# translations differ, and which vectors of the encoder carry the verb?

# %% [markdown]
# ## A fair pair
#
# The two sentences must have the same number of tokens, since a patch goes from a position to the same
# position. They should differ in one thing only. With "A man is sleeping" and "The children are reading",
# almost every patch would change something, and none would tell you why.
#
# One pair is an anecdote. A head that carries the gender of "woman" may not carry that of "girl", a word of
# neuter gender in German. Before you call a head "the gender head", try ten pairs, and one pair for which you
# expect no effect.

# %% [markdown]
# ## Summary
#
# - A patch replaces one activation by that of another sentence. Its effect on the score is an experiment.
# - Vectors of a layer say *where* something is known, and heads say *how* it gets from place to place.
# - $\langle a' - a, da \rangle$ estimates all effects by one backward pass, and fails where the step is long.
# - A fair pair differs in one thing. Several pairs make a finding.
# - Patching sees only what differs between the two inputs.

# %% [markdown]
# ## Questions
#
# **Question.** Why is the score a difference of two logits, and not the probability of "eine"?
#
# <details><summary>Answer</summary>
# Near the output, the difference is nearly linear in the activations, and it does not saturate. A probability
# rises only from .99 to .999 while the difference of two logits grows by 2.3.
# </details>
#
# **Question.** A patch of a head has the effect 0. Does the head not attend to "man"?
#
# <details><summary>Answer</summary>
# It may attend to "man" and bring something in which the two sentences agree, such as that it is a person.
# Patching sees differences only.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 15` lists the exercises of this chapter.
#
# - `npformer exercise start attribution-patching`: estimate the effects of all patches at once.
# - Patch `what="feed-forward"`. Do the networks of the encoder matter for the gender of "man"?
# - Find a pair of sentences for which the largest effect in the encoder is not at the word that differs.
#
# Heimersheim and Nanda, "How to use and interpret activation patching" (2024), collect what can go wrong.
#
# **Next**: lesson 15.7 (`15_7_induction_heads`) watches two heads learn to copy.

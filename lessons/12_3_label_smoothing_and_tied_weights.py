# %% [markdown]
# # 12.3 · Label smoothing and tied weights
#
# *About 30 minutes. You need: the cross-entropy and its gradient (lessons 12.1, `12_1_the_cross_entropy`, and
# 12.2, `12_2_the_gradient_of_the_cross_entropy`), the embedding (lesson 2.1, `02_1_embeddings`).*
#
# **After this lesson you can**
#
# - write the targets of label smoothing, and compute the smallest possible loss;
# - say when cross-entropy and KL divergence are equal, and why their gradients always are;
# - derive the gradient of a matrix that is used for the embedding and for the output layer.
#
# `training step: forward pass → [LOSS] → backward pass → update`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig
from npformer import functional as F
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.transformer import shifted_right
from npformer.nn import Embedding, TiedProjection
from npformer.plots import curves, probability_panels
from npformer.training.optimizer import Adam

rng = np.random.default_rng(12)

# %% [markdown]
# The examples are those of lesson 12.1. An untrained model gives the probabilities $p$ for the translation of
# "merci". The right token is "thanks".

# %%
vocabulary = ["a", "am", "I", "thanks", "student", "<eos>"]  # ids 0 .. 5
D, V = 4, 6
p = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])  # (V,)
merci = np.log(p)  # logits whose softmax is p
thanks = np.array(3)
q = np.eye(V)[thanks]  # (V,)

# %% [markdown]
# ## Label smoothing
#
# With one-hot targets, a model should give the probability 1 to the right token. No finite logit reaches
# this, so the logits grow further and further. Section 5.4 of the paper describes a remedy:
#
# > During training, we employed label smoothing of value ε_ls = 0.1. This hurts perplexity, as the model
# > learns to be more unsure, but improves accuracy and BLEU score.
#
# **Label smoothing** takes the share ε of the probability away from the target and distributes it equally
# to all V tokens, the target included:
#
# $$q_v = (1 - \varepsilon)\,[v = \mathrm{target}] + \frac{\varepsilon}{V}$$
#
# We insert this $q$ into the cross-entropy and get two terms:
#
# $$L = -(1 - \varepsilon) \log p_{\mathrm{target}} - \frac{\varepsilon}{V} \sum_v \log p_v$$

# %% [markdown]
# **Question.** What is the gradient of this loss?
#
# <details><summary>Answer</summary>
# It is $dz = (p - q) / N$, as before. The derivation used only that the numbers of q sum to 1. It did not
# use that q is one-hot.
# </details>

# %%
soft = 0.9 * q + 0.1 / V  # (V,) for merci
smoothed = -0.9 * np.log(p[thanks]) - 0.1 * np.log(p).mean()
print("q with three tokens:", F.smooth_targets(np.array(1), 3, 0.1).round(4))
print("q with six tokens:  ", soft.round(4))
print(f"loss of merci {smoothed:.4f}, gradient {(p - soft).round(3)}")

# %% tags=["check"]
assert_allclose(F.smooth_targets(np.array(1), 3, 0.1), [0.0333, 0.9333, 0.0333], atol=5e-5)
assert_allclose(soft, F.smooth_targets(thanks, V, 0.1))
assert_allclose(smoothed, -(soft * np.log(p)).sum())
smoothed_package, cache = F.cross_entropy(merci, thanks, smoothing=0.1)
assert_allclose(smoothed, smoothed_package)
assert_allclose(F.cross_entropy_backward(1.0, cache), p - soft, atol=1e-15)

# %% [markdown]
# ### The smallest possible loss
#
# With one-hot targets the smallest cross-entropy is 0. With smoothed targets it is larger. To see this, we
# add and subtract the same term:
#
# $$\begin{aligned}
# -\sum_v q_v \log p_v &= \sum_v q_v\, (\log q_v - \log p_v) - \sum_v q_v \log q_v \\
# &= \mathrm{KL}(q, p) + H(q)
# \end{aligned}$$
#
# The number $H(q) = -\sum_v q_v \log q_v$ is called the **entropy** of $q$. The KL divergence is never
# negative, and it is 0 only for $p = q$. So $H(q)$ is the smallest value of the cross-entropy. It does not
# depend on the logits. Therefore **cross-entropy and KL divergence have the same gradient**. For one-hot
# targets $H(q) = 0$, and this is why the two were equal in lesson 12.1.

# %%
H = -(soft * np.log(soft)).sum()
kl, kl_cache = F.kl_divergence(merci, soft)
print(f"merci: cross-entropy {smoothed:.4f} = KL {kl:.4f} + entropy {H:.4f}")

wide = F.smooth_targets(np.array(0), 37_000, 0.1)  # (37000,)
smallest = -(wide * np.log(wide)).sum()
print(f"smallest loss with the paper's 37,000 tokens: {smallest:.4f}")

# %% tags=["check"]
assert_allclose(smoothed, kl + H)
assert_allclose([smoothed, kl, H], [1.6325, 1.2116, 0.4210], atol=5e-5)
assert_allclose(F.kl_divergence_backward(1.0, kl_cache), p - soft, atol=1e-15)
assert_allclose(smallest, 1.3769, atol=5e-5)

# %% [markdown]
# So with the vocabulary of the paper, a training loss of 1.3769 is perfect. Keep this in mind when you read
# the loss curve of a model with label smoothing.
#
# How does smoothing change the loss? In the next experiment, five logits stay at 0 and the logit $m$ of the
# right token rises from 0 to 10. We plot three losses as functions of $m$.

# %%
logit = np.linspace(0, 10, 201)  # (201,) the logit of the right token
lines = np.zeros((3, 201))
for i, m in enumerate(logit):
    row = m * q  # (V,)
    lines[0, i] = F.cross_entropy(row, thanks)[0]
    lines[1, i] = F.cross_entropy(row, thanks, smoothing=0.1)[0]
    lines[2, i] = F.kl_divergence(row, soft)[0]
best = logit[lines[1].argmin()]
print(f"smoothed loss lowest at m = {best:.2f}; p = q at m = log 55 = {math.log(55):.2f}")

# %% tags=["plot"]
names = ["one-hot", "smoothed", "smoothed, KL"]
figure = curves(lines, logit, labels=names, xlabel="logit of the right token", ylabel="loss")
caption = "With smoothing the loss has a minimum; a larger logit makes it worse again"
show_figure(figure, "12_smoothing", caption)

# %% tags=["check"]
assert abs(best - math.log(soft.max() / soft.min())) < 0.05
assert_allclose(soft.max() / soft.min(), 55)

# %% [markdown]
# With one-hot targets the loss falls for every $m$. With smoothed targets it has a minimum where $p = q$.
# There the right token is 55 times as probable as any of the others: (.9 + .1/6) / (.1/6) = 55. The logits
# differ by log 55. The two smoothed curves have a constant distance, the entropy $H(q)$.

# %% [markdown]
# ## Tied weights
#
# The paper uses one matrix for the embeddings and for the output layer (section 3.4). Such matrices are
# called **tied weights**. Let E be the embedding table, of shape (V, D). Then the logit of token $v$ is the
# dot product of the vector with row $v$ of E. So it measures how similar the vector is to the embedding of
# this token.

# %% tags=["plot"]
figure = shape_flow(
    "ids x h z loss \n E . . . .",
    {"x": "√D E[ids]: ids E", "h": "layers: x", "z": "h Eᵀ: h E", "loss": "CE: z"},
    {"ids": "1 N", "E": "V D", "x": "N D", "h": "N D", "z": "N V", "loss": "1"},
)
show_figure(figure, "12_3_shapes", "A tied table E is used at the input and at the output")

# %% [markdown]
# The table E is used twice, and so its gradient is the sum of two terms. At the output, $z = h E^\top$
# gives
#
# $$dE = dz^\top h$$
#
# In this term, no row is 0 in general, because every token gets a probability. At the input, the embedding is
# $x = \sqrt{D}\, E_{\mathrm{ids}}$. There the row of each token that was read gets $\sqrt{D}\, dx$ in
# addition. This is the scatter-add of lesson 2.1. The example leaves out all layers between input and output,
# so that $h = x$.

# %%
ids, said = np.array([0, 1, 0]), np.array([1, 4, 5])  # (N,) the tokens read, and the targets
table = Embedding(V, D, scale=math.sqrt(D), rng=rng, dtype=np.float64)
E = table.weight.value  # (V, D)
x = math.sqrt(D) * E[ids]  # (N, D)
dz = (F.softmax(x @ E.T)[0] - np.eye(V)[said]) / 3  # (N, V)
dE = dz.T @ x  # (V, D)
np.add.at(dE, ids, math.sqrt(D) * (dz @ E))  # a token that was read twice adds two rows
print("rows with a gradient:", int(dE.any(-1).sum()), "of", V, " tokens read:", len(set(ids)))

# %% [markdown]
# In the package, `TiedProjection` shares the parameter of the embedding. Both backward passes add their
# gradient to the same array.

# %% tags=["check"]
output = TiedProjection(table.weight)
y, table_cache = table.forward(ids)
logits, output_cache = output.forward(y)
_, loss_cache = F.cross_entropy(logits, said)
dy = output.backward(F.cross_entropy_backward(1.0, loss_cache), output_cache)
table.backward(dy, table_cache)
assert_allclose(dE, table.weight.grad, rtol=1e-9)
print("dE agrees with the package")

# %% [markdown]
# ## Trained on two sentences
#
# What probabilities does a real model give after it has learned our two sentences with smoothed targets? We
# train a small Transformer with 150 steps. The ids 6 and 7 are padding and the start symbol, so V is 8. The
# function `shifted_right` prepares the input of the decoder (lesson 11.1,
# `11_1_the_decoder_and_teacher_forcing`). Adam is an optimizer (lesson 13.2, `13_2_adam`).

# %%
config = TransformerConfig(
    8, 8, d_model=16, d_ff=32, n_heads=2, n_layers=1, dropout=0.0, pad_id=6, start_id=7, end_id=5
)
model = Transformer(config, rng=np.random.default_rng(0))
student = np.array([2, 1, 0, 4, 5])  # (T,) i am a student <eos>
source = np.array([[0, 5, 6, 6], [1, 2, 3, 5]])  # (B, S) merci · je suis étudiant
target = np.array([[3, 5, 6, 6, 6], [2, 1, 0, 4, 5]])  # (B, T) thanks · i am a student
adam = Adam(model)
for _ in range(150):
    logits, cache = model.forward(source, shifted_right(target, 7))
    loss, loss_cache = F.cross_entropy(logits, target, smoothing=0.1, pad_id=6)
    model.zero_grad()
    model.backward(F.cross_entropy_backward(1.0, loss_cache), cache)
    adam.step(0.01)

# %% [markdown]
# **Question.** Which loss and which probability of the right tokens do you expect?
#
# <details><summary>Answer</summary>
# The loss should be close to the entropy of the smoothed targets. The probability of each right token
# should be close to .9 + .1/8 = .9125, and not to 1.
# </details>

# %%
learned, _ = F.softmax(logits[1])  # (T, V)
soft = F.smooth_targets(student, 8, 0.1)  # (T, V)
smallest = -(soft[0] * np.log(soft[0])).sum()
print(f"loss {loss:.4f}, smallest possible loss {smallest:.4f}")
print("probabilities of the right tokens", learned[range(5), student].round(3))

# %% tags=["check"]
assert abs(loss - smallest) < 0.02
assert_allclose(learned[range(5), student], 0.9125, atol=0.05)

# %% tags=["plot"]
heads = [vocabulary[i] for i in student]
figure = probability_panels(learned[:, :6], vocabulary, heads, target=soft[:, :6])
caption = "je suis étudiant: the probabilities of the trained model, and the targets"
show_figure(figure, "12_trained", caption)

# %% [markdown]
# The loss has almost reached its smallest value, and the probabilities agree with the smoothed targets.
#
# **Your turn.** In the terminal, look at the cache with `s loss_cache`. Then print other targets with
# `!F.smooth_targets(thanks, 8, 0.2)`. Which probability would a model that is trained with them give to the
# right token?

# %% [markdown]
# ## What the source documents say
#
# > - In this lesson, ε = .1 is distributed to all V tokens, the right one included. The work that the paper
# >   cites does the same. Some libraries distribute it to the V − 1 other tokens. Then the right token gets
# >   .9, and not .9 + .1/V.

# %% [markdown]
# ## Summary
#
# - Label smoothing distributes the share ε of the probability equally to all V tokens.
# - The gradient of the logits is still p − q, divided by the number of tokens.
# - The smallest loss is the entropy H(q). Cross-entropy and KL divergence differ by it, and have the same
#   gradient.
# - With smoothed targets, the loss has its minimum at finite logits.
# - A tied matrix is used twice, so its gradient is the sum of two terms.

# %% [markdown]
# ## Questions
#
# **Question.** A model with label smoothing has a training loss of 1.40, and the smallest possible loss is
# 1.38. Has the model learned its training data well?
#
# <details><summary>Answer</summary>
# Yes. The KL divergence between the targets and the predictions is only 1.40 − 1.38 = .02.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 12` lists the exercises of this chapter.
#
# - `npformer exercise start smooth-targets`: compute the target distribution of label smoothing. The target
#   token also gets its ε/V.
# - `npformer exercise start kl-backward`: compute the gradient of the KL divergence. Which part of the loss
#   depends on the logits?
# - By hand: what is the smallest loss for ε = 1, and what does the model learn then?
#
# **Next**: lesson 12.4 (`12_4_l2_distance_and_perplexity`), why the L2 distance is a bad loss, and how to
# read a cross-entropy.

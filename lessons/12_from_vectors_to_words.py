# %% [markdown]
# # 12 · From vectors to tokens, and the loss
#
# *About 70 minutes, in three parts. You need: the pair forward/backward (lesson 0), padding (lesson 1), the
# softmax and its gradient (lesson 5).*
#
# **After this lesson you can**
#
# - turn the decoder's output into a probability for each token of the vocabulary;
# - compute the logarithm of a softmax without overflow;
# - derive the gradient p − q of the cross-entropy, with padding and with label smoothing;
# - explain why the L2 distance is a bad loss, and what perplexity measures.
#
# `[embedding] → [encoder] → [decoder] → [LINEAR] → [SOFTMAX] → [LOSS]`  (the top of Figure 1)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.models.transformer import shifted_right
from npformer.nn import Embedding, TiedProjection
from npformer.plots import Grid, cell_product, curves, probability_bars, probability_panels
from npformer.training.optimizer import Adam

rng = np.random.default_rng(12)
vocabulary = ["a", "am", "I", "thanks", "student", "<eos>"]  # ids 0 .. 5

# %% [markdown]
# ## From the decoder to one number
#
# The decoder returns a vector for each position. In the paper this vector has 512 numbers. A translation
# consists of tokens, so the model must choose a token from this vector. During training we also need to
# know how wrong the choice is. A **loss** is a single number that measures this. The backward pass starts
# at the loss: it computes in which direction each number of the vector should change.
#
# The diagram shows the whole computation of this lesson. B is the number of sentences, T the number of
# positions, D the length of a vector, and V the size of the vocabulary.
#
# ```text
# forward    x (B, T, D) ──▶ linear ──▶ z (B, T, V) ──▶ log-softmax ──▶ log p (B, T, V)
#                                                                            │
#            targets (B, T) ─────────────────────────────────────────────────┤
#                                                                            ▼
#            loss, one number ◀── mean over real tokens ◀── −log p(target) (B, T)
#
# backward   dx (B, T, D) ◀── linear ◀── dz = (p − q) / N (B, T, V) ◀── dloss = 1
# ```

# %% [markdown]
# ## Vector, logits, probabilities, token
#
# A picture in *图解transformer* shows the first steps of this diagram: a linear layer, a softmax, and the
# most probable token, "am".
#
# The weight matrix $W$ of the linear layer has one column for each token of the vocabulary. The **logit**
# of token $j$ is the dot product of the vector with column $j$. It can be any real number. The softmax
# turns the logits into probabilities, which are positive and sum to 1:
#
# $$z_j = \sum_i x_i w_{ij}, \qquad p_j = \frac{\exp(z_j)}{\sum_m \exp(z_m)}$$
#
# The exponential function is increasing, so the largest logit gives the largest probability. The model can
# choose the most probable token directly from the logits:
#
# $$\mathrm{token} = \operatorname{argmax}_j\, p_j = \operatorname{argmax}_j\, z_j$$

# %% [markdown]
# For a test we choose a vector that is .7 times the column of "am", plus a little noise. The cell computes
# its logits with two loops. We expect that "am" gets the largest probability.

# %%
D, V = 4, 6
w = rng.standard_normal((D, V))  # (D, V)
x = 0.7 * w[:, 1] + 0.1 * rng.standard_normal(D)  # (D,)

logits = np.zeros(V)  # (V,)
for j in range(V):
    for i in range(D):
        logits[j] += x[i] * w[i, j]

p = np.exp(logits) / np.exp(logits).sum()  # (V,)
print(f"id {p.argmax()}: {vocabulary[p.argmax()]}, with probability {p.max():.2f}")

# %% tags=["check"]
assert_allclose(logits, F.linear(x, w)[0], rtol=1e-12)
assert_allclose(p, F.softmax(logits)[0], rtol=1e-12)
assert p.argmax() == logits.argmax() == 1

# %% tags=["plot"]
parts = [
    Grid(x, "vector", "z", numbers=True),
    "×",
    Grid(w, "$W$", "weight", columns=vocabulary, numbers=True),
    "=",
    Grid(logits, "logits", "linear", columns=vocabulary, numbers=True),
]
caption = "W has one column for each token, and each column gives one logit"
show_figure(cell_product(parts), "12_logits", caption)

# %% [markdown]
# ## The logarithm without overflow
#
# The losses of this lesson need log p. The obvious way is to compute the softmax first and its logarithm
# afterwards. This can fail in two places:
#
# - For a large logit the exponential function **overflows**: the result is too large for the number format.
#   In float32 this happens above 88.7.
# - For a very negative logit the probability **underflows**: it becomes exactly 0. Then its logarithm is
#   −∞.
#
# To avoid both, we take the logarithm of the formula before we compute anything. Let $m$ be the largest
# logit. We may subtract it from all logits, because the softmax does not change (lesson 5):
#
# $$\begin{aligned}
# \log p_j &= z_j - \log \sum_k \exp(z_k) \\
# &= (z_j - m) - \log \sum_k \exp(z_k - m)
# \end{aligned}$$
#
# This function is called **log-softmax**. No exponent is above 0 any more, so nothing can overflow. One
# exponent is exactly 0. So the sum lies between 1 and V, and its logarithm is always finite.

# %%
far = np.array([1000.0, 0, -1000])
with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
    print("exp, then divide      ", np.exp(far) / np.exp(far).sum())
    print("log of a safe softmax ", np.log(F.softmax(far)[0]))
print("log_softmax           ", F.log_softmax(far)[0])

# %% tags=["check"]
with np.errstate(over="ignore"):
    assert np.isinf(np.exp(np.float32(89)))
    assert np.isfinite(np.exp(np.float32(88)))
assert F.log_softmax(far)[0].tolist() == [0, -1000, -2000]

# %% [markdown]
# Only the last line is right. In the first line, `inf / inf` gives `nan`.
#
# **Question.** The softmax of the package never overflows. Why is the second line wrong nevertheless?
#
# <details><summary>Answer</summary>
# Two probabilities underflow to 0. So the information about their logits is lost before the logarithm.
# </details>
#
# ## How wrong is the model?
#
# The next picture of *图解transformer* shows an untrained model that should translate "merci". The model
# gives the probabilities $p$. The correct answer is "thanks". We write it as a distribution $q$ that gives
# the probability 1 to "thanks" and 0 to every other token. Such a vector is called **one-hot**.
#
# How far is $p$ from $q$? The document names three measures, but does not explain them. The **L2 distance**
# is the usual distance of two points:
#
# $$\mathrm{L2}(p, q) = \sqrt{\sum_v (p_v - q_v)^2}$$

# %% [markdown]
# The **cross-entropy** uses the logarithms of the probabilities. For a one-hot $q$ only one term is left,
# −log p(thanks):
#
# $$\mathrm{CE}(q, p) = -\sum_v q_v \log p_v$$
#
# The **KL divergence** (Kullback–Leibler divergence) compares the two logarithms. A term with $q_v = 0$
# counts as 0:
#
# $$\mathrm{KL}(q, p) = \sum_v q_v\, (\log q_v - \log p_v)$$
#
# All three are 0 if $p = q$ and q is one-hot. The cell computes them for "merci".

# %%
p = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])  # (V,)
merci = np.log(p)  # logits whose softmax is p
thanks = np.array(3)
q = np.eye(V)[thanks]  # (V,)
distance = np.sqrt(((p - q) ** 2).sum())
cross_entropy = -np.log(p[thanks])
divergence = sum(q[v] * (np.log(q[v]) - np.log(p[v])) for v in range(V) if q[v] > 0)
print(f"L2 {distance:.4f}   cross-entropy {cross_entropy:.4f} = log 5   KL {divergence:.4f}")

# %% tags=["check"]
assert_allclose(distance, F.l2_distance(merci, q)[0])
assert_allclose(cross_entropy, F.cross_entropy(merci, thanks)[0])
assert_allclose(divergence, F.kl_divergence(merci, q)[0])
assert_allclose([distance, cross_entropy, divergence], [0.8832, 1.6094, 1.6094], atol=5e-5)

# %% tags=["plot"]
figure = probability_bars(p, vocabulary, target=q)
figure.axes[0].patches[0].set_facecolor("#7cbfff")  # not the darker colour of a choice: four tie
caption = "merci: the probabilities of an untrained model, and the target"
show_figure(figure, "12_merci", caption)

# %% [markdown]
# For a one-hot $q$, cross-entropy and KL divergence are equal. We will see later when they differ.
#
# A sentence has one pair ($p$, $q$) for each position. For "je suis étudiant" the target is *i am a
# student* ⟨eos⟩, with the ids 2, 1, 0, 4 and 5. The token ⟨eos⟩ (end of sentence) marks the end. A figure
# of the document prints the probabilities that we would like to see after training. The cell copies them
# and computes the cross-entropy of each position.

# %%
student = np.array([2, 1, 0, 4, 5])  # (T,)
printed = np.array(  # (T, V)
    [
        [0.01, 0.02, 0.93, 0.01, 0.03, 0.01],
        [0.01, 0.8, 0.1, 0.05, 0.01, 0.03],
        [0.99, 0.001, 0.001, 0.001, 0.002, 0.001],
        [0.001, 0.002, 0.001, 0.02, 0.94, 0.01],
        [0.01, 0.01, 0.001, 0.001, 0.001, 0.98],
    ]
)
losses = -np.log(printed[range(5), student])  # (T,)
print("cross-entropy of each position", losses.round(3), " mean", losses.mean().round(4))
print("sum of each row", printed.sum(-1).round(3))

# %% tags=["check"]
assert (printed.argmax(-1) == student).all()
assert_allclose(printed.sum(-1), [1.01, 1, 0.996, 0.974, 1.003])
assert_allclose(losses.mean(), 0.0776, atol=5e-5)

# %% [markdown]
# The rows of a softmax sum to 1. The printed rows do not all sum to 1, so their numbers are probably
# rounded.
#
# **Question.** At which position is the loss largest, and why?
#
# <details><summary>Answer</summary>
# At position 1. There the right token "am" has the probability .80, the lowest of the five. The loss is
# −log .80 = .223.
# </details>
#
# *This is a good place for a break. The next part derives the gradient of the cross-entropy.*
#
# ## Backward: p − q
#
# We take a single row, and let $q$ be any distribution. First we need the derivative of log p by the logit
# of token $j$. The bracket $[v = j]$ is 1 if $v = j$, and 0 otherwise:
#
# $$\begin{aligned}
# \log p_v &= z_v - \log \sum_m \exp(z_m) \\
# \frac{\partial \log p_v}{\partial z_j} &= [v = j] - \frac{\exp(z_j)}{\sum_m \exp(z_m)} \\
# &= [v = j] - p_j
# \end{aligned}$$
#
# **Question.** What is the sign of this derivative for $v = j$, and for $v \neq j$?
#
# <details><summary>Answer</summary>
# For $v = j$ it is $1 - p_j$, which is positive: a token becomes more probable when its own logit rises.
# For the other tokens it is $-p_j$, which is negative: they become less probable, because the sum grows.
# </details>

# %% [markdown]
# Next comes the loss $L$, with the chain rule. Recall that $dz_j$ stands for $\partial L / \partial z_j$:
#
# $$\begin{aligned}
# L &= -\sum_v q_v \log p_v \\
# dz_j &= -\sum_v q_v\, ([v = j] - p_j) \\
# &= -q_j + p_j \sum_v q_v \\
# &= p_j - q_j
# \end{aligned}$$
#
# The last step uses that the numbers $q_v$ sum to 1. **The gradient is the predicted probability minus the
# target probability.** It contains no logarithm and no division by a small number, so it cannot overflow.
#
# The cell computes the gradient in three ways. It uses the sum of the second line, then the result, and
# then the chain rule through the softmax of lesson 5. The last way starts from $dp_v = -q_v / p_v$.

# %%
dlogits = np.zeros(V)  # (V,)
for j in range(V):
    for v in range(V):
        dlogits[j] -= q[v] * ((v == j) - p[j])
through_softmax = F.softmax_backward(-q / p, p)  # the long way: dp = -q / p, then lesson 5
print("merci:", p - q)

# %% tags=["check"]
assert_allclose(dlogits, p - q, atol=1e-15)
assert_allclose(through_softmax, p - q, atol=1e-15)
assert abs((p - q).sum()) < 1e-15

# %% [markdown]
# A training step moves each logit against its gradient. The gradient of "thanks" is −.8, so its logit
# rises. The gradients of the other five tokens are their probabilities, so their logits fall.
#
# **Question.** The entries of $p - q$ sum to 0. Why must this be so for every loss that is computed from a
# softmax?
#
# <details><summary>Answer</summary>
# If all logits rise by the same amount, the softmax does not change, and so the loss does not change. The
# derivative in this direction is the sum of all entries of the gradient.
# </details>
#
# ## The mean over all tokens that are not padding
#
# A batch has B sentences, padded to the same length T. The model should not learn to predict padding, so
# positions with padding count in no sum. The loss is the mean over the N tokens that are not padding. We
# call these the **real tokens**. Let $\ell_n$ be the loss of token $n$:
#
# $$L = \frac{1}{N} \sum_{n\ \mathrm{real}} \ell_n$$
#
# The factor 1/N also appears in the gradient. It is $dz = (p - q) / N$ at a real token, and 0 at padding.

# %%
targets = np.array([[4, 1, 0, 0], [6, 2, 3, 0]])  # (B, T), 0 is padding
z = rng.standard_normal((2, 4, 7))  # (B, T, V)
real = targets != 0  # (B, T)
N = real.sum()
log_p = F.log_softmax(z)[0]  # (B, T, V)
at_target = np.take_along_axis(log_p, targets[..., None], -1)[..., 0]  # (B, T)
loss = -(at_target * real).sum() / N
dz = (np.exp(log_p) - np.eye(7)[targets]) * real[..., None] / N  # (B, T, V)

package_loss, cache = F.cross_entropy(z, targets, pad_id=0)
show(cache)

# %% tags=["check"]
assert_allclose(loss, package_loss, rtol=1e-12)
assert_allclose(dz, F.cross_entropy_backward(1.0, cache), atol=1e-15)

# %% [markdown]
# The cache contains the logarithms of the probabilities. It does not contain $q$, which would need V
# numbers for each token. The id of the target is enough.
#
# ### A common mistake
#
# In NumPy it is tempting to write `mean()`. But `mean()` divides by all B · T = 8 positions, and only 5
# tokens are real. We make this mistake on purpose, in two versions. In the first version only the gradient
# is wrong. In the second version the loss is wrong too, in the same way. What does the gradient check say?

# %%


def backward_over_all(dloss, cache):
    """The wrong gradient: it divides by B·T instead of N."""
    return F.cross_entropy_backward(dloss, cache) * cache.tokens / cache.real.size


def loss_over_all(z, targets):
    """The wrong loss: it divides by B·T instead of N."""
    loss, cache = F.cross_entropy(z, targets, pad_id=0)
    return loss * cache.tokens / cache.real.size, cache


report = gradcheck((F.cross_entropy, backward_over_all), z, targets, pad_id=0)
print("only the gradient is wrong:", report.worst.diagnosis)
both_wrong = gradcheck((loss_over_all, backward_over_all), z, targets)
print("loss and gradient are wrong:", "passes" if both_wrong.ok else "fails")

# %% tags=["check"]
assert not report.ok
assert both_wrong.ok

# %% [markdown]
# The gradient check finds the first version. It accepts the second one, because the gradient belongs to the
# loss: it is the correct gradient of the wrong loss.
#
# To find the second version, we need another test. Padding must not change the loss or the gradient. So we
# pad the same two sentences to greater lengths and look at the gradient of the first target.

# %%
found = []
for length in (4, 10, 100):
    longer = np.pad(targets, ((0, 0), (0, length - 4)))  # (B, length)
    _, cache = F.cross_entropy(np.zeros((2, length, 7)), longer, pad_id=0)
    right = F.cross_entropy_backward(1.0, cache)[0, 0, 4]
    wrong = backward_over_all(1.0, cache)[0, 0, 4]
    print(f"T {length:3}   gradient at the first target {right:.4f}   by B·T {wrong:.4f}")
    found.append((length, right, wrong))

# %% tags=["check"]
for length, right, wrong in found:
    assert_allclose([right, wrong], [-6 / 7 / 5, -6 / 7 / (2 * length)])

# %% [markdown]
# After the division by B · T, the influence of a token depends on the longest sentence in its batch. A
# longer sentence makes the gradients of all tokens smaller.
#
# *This is a good place for a break. The last part changes the targets, compares the losses and trains a
# model.*
#
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
# targets $H(q) = 0$, and this is why the two were equal above.

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
logit = np.linspace(0, 10, 201)  # (M,) the logit of the right token
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
# There the right token is 55 times as probable as each other one: (.9 + .1/6) / (.1/6) = 55. The logits
# differ by log 55. The two smoothed curves have a constant distance, the entropy $H(q)$.
#
# ## Why not the L2 distance?
#
# The L2 distance is also 0 for $p = q$ and positive otherwise. So why is it not used as the loss? Its
# gradient has to pass through the softmax, and there it can vanish. Take two tokens with the probabilities
# $p = (1 - s, s)$, where the second token is right. Then $q = (0, 1)$, and the distance is
# $d = \sqrt{2}\,(1 - s)$.

# %% [markdown]
# We compute the gradient in two steps. The first one is the gradient of the distance itself, and the second
# one is the backward pass of the softmax (lesson 5):
#
# $$\begin{aligned}
# dp &= \frac{p - q}{d} = \frac{1}{\sqrt{2}}\,(1, -1) \\
# dz &= p \odot \left(dp - \sum_v dp_v\, p_v\right) \\
# &= \sqrt{2}\; s\,(1 - s) \cdot (1, -1)
# \end{aligned}$$
#
# The gradient of the cross-entropy is
#
# $$dz = p - q = (1 - s) \cdot (1, -1)$$
#
# **Question.** Let $s$ go to 0. Then the model is sure, and it is wrong. What happens to the two gradients?
#
# <details><summary>Answer</summary>
# The gradient of the cross-entropy goes to (1, −1), its largest value. The gradient of the L2 distance goes
# to 0, although a large gradient is needed most in this case.
# </details>

# %%
s = np.array([0.5, 0.1, 1e-3, 1e-6])  # (4,) the probability of the right token
by_ce, by_l2 = 1 - s, math.sqrt(2) * s * (1 - s)  # (4,) the first entry of dz
for probability, ce, l2 in zip(s, by_ce, by_l2, strict=True):
    print(f"p of the right token {probability:8.6f}   cross-entropy {ce:.6f}   L2 {l2:.6f}")

# %% tags=["check"]
rows, second = np.log(np.stack([1 - s, s], -1)), np.eye(2)[[1] * 4]  # (4, 2), (4, 2)
_, cache = F.l2_distance(rows, second)
assert_allclose(4 * F.l2_distance_backward(1.0, cache)[:, 0], by_l2)  # times 4: undo the mean
_, cache = F.kl_divergence(rows, second)
assert_allclose(4 * F.kl_divergence_backward(1.0, cache)[:, 0], by_ce)

# %% [markdown]
# The figure shows the same for six tokens. The logit of a wrong token rises from 0 to 20, and the vertical
# axis shows the length of the gradient.

# %% tags=["plot"]
logit = np.linspace(0, 20, 81)  # (M,) the logit of "a", where "thanks" is right
lengths = np.zeros((2, 81))
for i, m in enumerate(logit):
    row = m * np.eye(V)[0]  # (V,)
    _, ce_cache = F.cross_entropy(row, thanks)
    _, l2_cache = F.l2_distance(row, q)
    lengths[0, i] = np.linalg.norm(F.cross_entropy_backward(1.0, ce_cache))
    lengths[1, i] = np.linalg.norm(F.l2_distance_backward(1.0, l2_cache))
figure = curves(
    lengths,
    logit,
    labels=["cross-entropy", "L2 distance"],
    xlabel="logit of a wrong token",
    ylabel="length of the gradient",
    yscale="log",
)
caption = "The surer the model is of a wrong token, the smaller is the gradient of L2"
show_figure(figure, "12_l2", caption)

# %% tags=["check"]
assert_allclose(lengths[0, -1], math.sqrt(2), rtol=1e-6)
assert lengths[1, -1] < 1e-8

# %% [markdown]
# ## Check the gradient
#
# We check the cross-entropy with padding and label smoothing, and also the KL divergence and the L2
# distance.

# %%
settings = {"pad_id": 0, "smoothing": 0.1}
report = gradcheck((F.cross_entropy, F.cross_entropy_backward), z, targets, **settings)
print(report)

# %% tags=["check"]
assert report.ok
q_of_z = F.smooth_targets(targets, 7, 0.1)  # (B, T, V)
assert gradcheck((lambda z: F.kl_divergence(z, q_of_z), F.kl_divergence_backward), z).ok
assert gradcheck((lambda z: F.l2_distance(z, q_of_z), F.l2_distance_backward), z).ok

# %% [markdown]
# ## Perplexity
#
# A cross-entropy of 1.6 is hard to interpret. The **perplexity** is easier to read. It is exp(loss), where
# the loss is the cross-entropy with one-hot targets. Since −log p = log(1/p), it is the geometric mean of
# 1/p over all target tokens:
#
# $$\mathrm{perplexity} = \exp\left(-\frac{1}{N} \sum_n \log p_n\right)
# = \left(\prod_n \frac{1}{p_n}\right)^{1/N}$$
#
# A model with perplexity $k$ is as uncertain as if it chose among $k$ equally probable tokens. The
# perplexity of "merci" is exp(1.6094) = 5. If all V tokens are equally probable, it is V. For the printed
# rows it is exp(.0776) = 1.08.
#
# **Question.** A model has learned the smoothed targets perfectly. Is its perplexity 1?
#
# <details><summary>Answer</summary>
# No. It gives the right token the probability q(target) = .9 + .1/V, so its perplexity is 1/q(target). With
# six tokens this is 1.09, or 9 % more than 1. This is why the paper says that smoothing "hurts perplexity".
# </details>

# %%
print(f"perplexity of merci {np.exp(cross_entropy):.2f}, of the printed rows", end=" ")
print(f"{np.exp(losses.mean()):.2f}, of p = q with six tokens {1 / soft.max():.3f}")

# %% tags=["check"]
assert_allclose([np.exp(cross_entropy), np.exp(losses.mean())], [5, 1.08], atol=1e-3)
assert_allclose(np.exp(F.cross_entropy(np.zeros(V), thanks)[0]), V)
assert_allclose(1 / soft.max(), 1.09, atol=1e-3)

# %% [markdown]
# ## Tied weights
#
# The paper uses one matrix for the embeddings and for the output layer (section 3.4). Such matrices are
# called **tied weights**. Let E be the embedding table, of shape (V, D). Then the logit of token $j$ is the
# dot product of the vector with row $j$ of E. So it measures how similar the vector is to the embedding of
# this token.
#
# The table E is used twice, and so its gradient is the sum of two terms. At the output, $z = x E^\top$
# gives
#
# $$dE = dz^\top x$$
#
# This term has all V rows, because every token gets a probability. At the input, the embedding is
# $x = \sqrt{D}\, E_{\mathrm{ids}}$. There the row of each token that was read gets $\sqrt{D}\, dx$ in
# addition. This is the scatter-add of lesson 2. We leave out all layers between input and output, so that
# the example stays short.

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
# function `shifted_right` prepares the input of the decoder (lesson 11). Adam is an optimizer (lesson 13).

# %%
config = TransformerConfig(
    8, 8, d_model=16, d_ff=32, n_heads=2, n_layers=1, dropout=0.0, pad_id=6, start_id=7, end_id=5
)
model = Transformer(config, rng=np.random.default_rng(0))
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
# **Your turn.** In the terminal, look at the cache with `s loss_cache`. Then compute the loss of very large
# logits with `!F.cross_entropy(1000 * z, targets, pad_id=0)[0]`. It is finite. Why?

# %% [markdown]
# ## What the documents say
#
# > - *图解transformer* labels the row above its softmax log_probs. It contains probabilities, which sum
# >   to 1. Its axis ends at vocab_size, but counted from 0 the last token is vocab_size − 1. The token "am"
# >   has the id 5 in this figure and 1 in the next ones. Here it is 1. The document puts the L2 distance
# >   first, and only names cross-entropy and KL divergence. The rows of its trained figure sum to .974 up
# >   to 1.01.
# > - *一步步解析Attention is All You Need!* shows a dense layer and a softmax. Its demo uses smoothing with
# >   .1. It averages loss and accuracy over all positions with y ≠ 0, as in this lesson.
# > - *The components of the Transformer* names logits and softmax. *Attention机制详解（二）* ends before
# >   the output layer. Neither describes a loss.
# > - In this lesson, ε = .1 is distributed to all V tokens, the right one included. The work that the paper
# >   cites does the same. Some libraries distribute it to the V − 1 other tokens. Then the right token gets
# >   .9, and not .9 + .1/V.

# %% [markdown]
# ## Summary
#
# - The output layer computes one logit for each token, and the softmax turns the logits into probabilities.
# - Log-softmax subtracts the largest logit first, so that nothing overflows or underflows.
# - The cross-entropy is the mean of −log p(target) over the real tokens; its gradient is (p − q) / N.
# - With label smoothing the smallest loss is the entropy H(q); cross-entropy and KL have the same gradient.
# - The gradient of the L2 distance vanishes when the model is sure and wrong; cross-entropy's does not.

# %% [markdown]
# ## Questions
#
# **Question.** Two sentences have 3 and 5 real tokens. One program computes the mean loss of each sentence
# and then the mean of both. Another divides the sum over all tokens by 8. Is this the same?
#
# <details><summary>Answer</summary>
# No. The first program gives a token of the short sentence the weight 1/6 and a token of the long one 1/10.
# The second program, like the package, gives each token the weight 1/8.
# </details>
#
# **Question.** The model predicts p = (.7, .2, .1), and the first token is right. What is dz without
# smoothing?
#
# <details><summary>Answer</summary>
# (−.3, .2, .1) for a single token. In a batch it is divided by N.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 12` lists the exercises. Each is graded by the gradient checker or by its values.
#
# - `npformer exercise start log-softmax-backward`: one sum for each row.
# - `npformer exercise start cross-entropy`: the mean over the real tokens.
# - `npformer exercise start cross-entropy-backward`: p − q, with smoothing and padding.
# - `npformer exercise start smooth-targets`: one line; the target also gets its ε/V.
# - `npformer exercise start kl-backward`: which part of the loss depends on the logits?
# - By hand: let all entries of q be positive. What is the smallest loss for ε = 1, and what does the model
#   learn then?
#
# **Next**, lesson 13: how an optimizer uses all these gradients.

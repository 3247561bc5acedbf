# %% [markdown]
# # 12 · From vectors to words, and how wrong they are
#
# *30 minutes to read, 3 seconds to run. Lesson 0 for the pair forward/backward, lesson 5 for the softmax.*
#
# **The question.** On top of the decoder lies a vector of 512 numbers for each position. Which word is it?
# And once it is the wrong one: how wrong, in one number, and what does that number say to the vector? The
# answer is the simplest gradient of the course, p − q. Three things are easily spoiled on the way to it: the
# logarithm, the mean, and the choice of what to measure.

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
words = ["a", "am", "I", "thanks", "student", "<eos>"]  # ids 0 .. 5

# %% [markdown]
# ## Vector, logits, probabilities, word
#
# Above the decoder *图解transformer* has a picture: a vector, a linear layer, a longer vector called logits,
# a softmax, and the word "am" at the largest entry. A linear layer has a column for each word of the
# vocabulary, and a word's **logit** is the product of the vector with its column:
#
# ```math
# zⱼ = Σᵢ xᵢ wᵢⱼ                      a logit for each word j, any real number
# pⱼ = exp(zⱼ) / Σₘ exp(zₘ)           probabilities: positive, their sum is 1
# word = argmaxⱼ pⱼ = argmaxⱼ zⱼ
# ```
#
# A vector that lies along the column of "am", with a little noise, must come out as "am":

# %%
D, V = 4, 6
w = rng.standard_normal((D, V))  # (D, V)
x = 0.7 * w[:, 1] + 0.1 * rng.standard_normal(D)  # (D,)

logits = np.zeros(V)  # (V,)
for j in range(V):
    for i in range(D):
        logits[j] += x[i] * w[i, j]

p = np.exp(logits) / np.exp(logits).sum()  # (V,)
assert_allclose(logits, F.linear(x, w)[0], rtol=1e-12)
assert_allclose(p, F.softmax(logits)[0], rtol=1e-12)
assert p.argmax() == logits.argmax() == 1
print(f"number {p.argmax()} of 0 .. {V - 1}: {words[p.argmax()]}, with {p.max():.2f}")

# %%
parts = [
    Grid(x, "vector", "z", numbers=True),
    "×",
    Grid(w, "$W$", "weight", columns=words, numbers=True),
    "=",
    Grid(logits, "logits", "linear", columns=words, numbers=True),
]
caption = "A column of W for each word, a logit for each column"
show_figure(cell_product(parts), "12_logits", caption)

# %% [markdown]
# ## The logarithm, safely
#
# Losses need log p. To take the softmax and then its logarithm goes wrong twice: exp overflows (in float32
# above 88.7), and a probability that has underflowed to 0 has no logarithm. Take out the largest logit m:
#
# ```math
# log pⱼ = zⱼ − log Σₘ exp(zₘ) = (zⱼ − m) − log Σₖ exp(zₖ − m)          m = max z
# ```
#
# All exponents are now ≤ 0 and one of them is 0, so the sum lies between 1 and V. Nothing can overflow.

# %%
far = np.array([1000.0, 0, -1000])
with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
    print("exp, then divide      ", np.exp(far) / np.exp(far).sum())
    print("log of a safe softmax ", np.log(F.softmax(far)[0]))
    assert np.isinf(np.exp(np.float32(89)))
    assert np.isfinite(np.exp(np.float32(88)))
print("log_softmax           ", F.log_softmax(far)[0])
assert F.log_softmax(far)[0].tolist() == [0, -1000, -2000]

# %% [markdown]
# ## How wrong? "merci"
#
# The next picture of *图解transformer*: an untrained model is to translate "merci". It says p, and should say
# q, all of it on "thanks". The document names three measures of how far apart the two are, and leaves them to
# the reader:
#
# ```math
# L2 distance      √Σᵥ (pᵥ − qᵥ)²
# cross-entropy    −Σᵥ qᵥ log pᵥ                       with q one-hot: −log p(thanks)
# KL divergence    Σᵥ qᵥ (log qᵥ − log pᵥ)             0 log 0 = 0
# ```

# %%
p = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])  # (V,)
merci = np.log(p)  # logits whose softmax is p
thanks = np.array(3)
q = np.eye(V)[thanks]  # (V,)
distance = np.sqrt(((p - q) ** 2).sum())
entropy = -np.log(p[thanks])
divergence = sum(q[v] * (np.log(q[v]) - np.log(p[v])) for v in range(V) if q[v] > 0)

assert_allclose(distance, F.l2_distance(merci, q)[0])
assert_allclose(entropy, F.cross_entropy(merci, thanks)[0])
assert_allclose(divergence, F.kl_divergence(merci, q)[0])
assert_allclose([distance, entropy, divergence], [0.8832, 1.6094, 1.6094], atol=5e-5)
print(f"L2 {distance:.4f}   cross-entropy {entropy:.4f} = log 5   KL {divergence:.4f}")
figure = probability_bars(p, words, target=q)
figure.axes[0].patches[0].set_facecolor("#7cbfff")  # not the darker one of a choice: four tie
show_figure(figure, "12_merci", "merci: what an untrained model says, and what it should say")

# %% [markdown]
# A sentence is one such pair a position. For "je suis étudiant" the targets are *i am a student* ⟨eos⟩, ids
# 2, 1, 0, 4, 5, and the document's figure prints what it hopes for after training:

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
hoped = -np.log(printed[range(5), student])  # (T,)
assert (printed.argmax(-1) == student).all()
assert_allclose(printed.sum(-1), [1.01, 1, 0.996, 0.974, 1.003])
assert_allclose(hoped.mean(), 0.0776, atol=5e-5)
print("cross-entropy at each position", hoped.round(3), " mean", hoped.mean().round(4))
print("but a softmax's rows sum to 1, and these to", printed.sum(-1).round(3))

# %% [markdown]
# ## Backward: p − q
#
# In one row, let q be any distribution. First the logarithm of a probability, by the logit of word j. It
# rises with its own logit, and falls with every logit, since the sum grows:
#
# ```math
# log pᵥ = zᵥ − log Σₘ exp(zₘ)
# ∂ log pᵥ / ∂zⱼ = [v = j] − exp(zⱼ) / Σₘ exp(zₘ) = [v = j] − pⱼ
# ```
#
# Then the loss, by the chain rule. The q sum to 1, and this is where it is used:
#
# ```math
# L = −Σᵥ qᵥ log pᵥ
# dzⱼ = −Σᵥ qᵥ ([v = j] − pⱼ)
#     = −qⱼ + pⱼ Σᵥ qᵥ
#     = pⱼ − qⱼ
# ```
#
# **What it says minus what it should say.** No logarithm is left, no division by a small p, nothing that can
# overflow.

# %%
dlogits = np.zeros(V)  # (V,)
for j in range(V):
    for v in range(V):
        dlogits[j] -= q[v] * ((v == j) - p[j])
assert_allclose(dlogits, p - q, atol=1e-15)

by_softmax = F.softmax_backward(-q / p, p)  # the long way: dp = -q / p, then lesson 5
assert_allclose(by_softmax, p - q, atol=1e-15)
print("merci:", p - q)
assert abs((p - q).sum()) < 1e-15

# %% [markdown]
# The logit of "thanks" hears −.8: up. The other five hear their own probability: down. The sum is 0, since to
# raise all logits alike changes nothing.
#
# ## The mean: over real tokens
#
# A batch has B sentences padded to T words. Padding is not to be predicted, so it counts in no sum. The loss
# is the mean over the N real tokens, and each gets 1/N of the gradient:
#
# ```math
# L = 1/N Σₙ ℓₙ    over the n that are real        dz = (p − q) / N there, and 0 at padding
# ```

# %%
targets = np.array([[4, 1, 0, 0], [6, 2, 3, 0]])  # (B, T), 0 is padding
z = rng.standard_normal((2, 4, 7))  # (B, T, V)
real = targets != 0  # (B, T)
N = real.sum()
log_p = F.log_softmax(z)[0]  # (B, T, V)
at_target = np.take_along_axis(log_p, targets[..., None], -1)[..., 0]  # (B, T)
loss = -(at_target * real).sum() / N
dz = (np.exp(log_p) - np.eye(7)[targets]) * real[..., None] / N  # (B, T, V)

by_package, cache = F.cross_entropy(z, targets, pad_id=0)
assert_allclose(loss, by_package, rtol=1e-12)
assert_allclose(dz, F.cross_entropy_backward(1.0, cache), atol=1e-15)
show(cache)

# %% [markdown]
# The cache has the logarithms of the probabilities and, in place of a V-wide q, the index of each target. Now
# the common mistake: `mean()` in the gradient, which divides by B · T = 8 where N is 5.

# %%


def by_all_positions(dloss, cache):
    """Wrong: divides by B·T."""
    return F.cross_entropy_backward(dloss, cache) * cache.tokens / cache.real.size


def mean_of_all(z, targets):
    """Wrong in the same way."""
    loss, cache = F.cross_entropy(z, targets, pad_id=0)
    return loss * cache.tokens / cache.real.size, cache


report = gradcheck((F.cross_entropy, by_all_positions), z, targets, pad_id=0)
print(report.worst.diagnosis)
assert not report.ok
assert gradcheck((mean_of_all, by_all_positions), z, targets).ok

for length in (4, 10, 100):  # the same two sentences, padded further
    longer = np.pad(targets, ((0, 0), (0, length - 4)))  # (B, length)
    _, cache = F.cross_entropy(np.zeros((2, length, 7)), longer, pad_id=0)
    right, wrong = (f(1.0, cache)[0, 0, 4] for f in (F.cross_entropy_backward, by_all_positions))
    print(f"T {length:3}   gradient at the first target {right:.4f}   by B·T {wrong:.4f}")
    assert_allclose([right, wrong], [-6 / 7 / 5, -6 / 7 / (2 * length)])

# %% [markdown]
# With B · T a word's voice depends on how long the longest sentence beside it is. Where the loss is divided
# by B · T as well (`mean_of_all`), gradcheck is content: it is the right gradient of another loss. Pad the
# same batch further, and see whether the loss stays.
#
# ## Label smoothing
#
# *Attention Is All You Need*, section 5.4:
#
# > During training, we employed label smoothing of value ε_ls = 0.1. This hurts perplexity, as the model
# > learns to be more unsure, but improves accuracy and BLEU score.
#
# The target gives a share ε away, to all words alike:
#
# ```math
# qᵥ = (1 − ε) [v = target] + ε / V
# L = −Σᵥ qᵥ log pᵥ = −(1 − ε) log p(target) − ε · (mean over v of log pᵥ)
# dz = (p − q) / N          as before: nothing in its derivation asked q to be one-hot
# ```

# %%
assert_allclose(F.smooth_targets(np.array(1), 3, 0.1), [0.0333, 0.9333, 0.0333], atol=5e-5)
soft = 0.9 * q + 0.1 / V  # (V,) for merci
assert_allclose(soft, F.smooth_targets(thanks, V, 0.1))
smoothed = -0.9 * np.log(p[thanks]) - 0.1 * np.log(p).mean()
assert_allclose(smoothed, -(soft * np.log(p)).sum())
smoothed_package, cache = F.cross_entropy(merci, thanks, smoothing=0.1)
assert_allclose(smoothed, smoothed_package)
assert_allclose(F.cross_entropy_backward(1.0, cache), p - soft, atol=1e-15)
print("q, three words:", F.smooth_targets(np.array(1), 3, 0.1).round(4))
print("q, six words:  ", soft.round(4))

# %% [markdown]
# ### The floor, and KL
#
# The smallest loss is no longer 0. Write the cross-entropy as KL plus a term without p:
#
# ```math
# −Σ q log p  =  Σ q (log q − log p)  −  Σ q log q  =  KL(q, p) + H(q)
# ```
#
# KL ≥ 0, and 0 only where p = q. So H(q), the entropy of the targets, is the floor. It is a constant, and
# **both losses have one gradient**. For merci, smoothed:

# %%
H = -(soft * np.log(soft)).sum()
kl, kl_cache = F.kl_divergence(merci, soft)
assert_allclose(smoothed, kl + H)
assert_allclose([smoothed, kl, H], [1.6325, 1.2116, 0.4210], atol=5e-5)
assert_allclose(F.kl_divergence_backward(1.0, kl_cache), p - soft, atol=1e-15)
print(f"cross-entropy {smoothed:.4f} = KL {kl:.4f} + floor {H:.4f}")

wide = F.smooth_targets(np.array(0), 37_000, 0.1)  # (37000,)
floor = -(wide * np.log(wide)).sum()
print(f"the floor with the paper's 37,000 tokens: {floor:.4f}")
assert_allclose(floor, 1.3769, atol=5e-5)

# %% [markdown]
# So with the paper's vocabulary a training loss of 1.3769 is perfect. What that does to learning shows if one
# logit, the right one, rises over five others at 0:

# %%
margin = np.linspace(0, 10, 201)  # (M,)
lines = np.zeros((3, 201))
for i, m in enumerate(margin):
    row = m * q  # (V,)
    lines[0, i] = F.cross_entropy(row, thanks)[0]
    lines[1, i] = F.cross_entropy(row, thanks, smoothing=0.1)[0]
    lines[2, i] = F.kl_divergence(row, soft)[0]
names = ["one-hot", "smoothed", "smoothed, KL"]
figure = curves(lines, margin, labels=names, xlabel="logit of the right word", ylabel="loss")
show_figure(figure, "12_smoothing", "Smoothed, the loss has a lowest point: surer than q costs")
best = margin[lines[1].argmin()]
print(f"lowest at {best:.2f}; p = q at log(q right / q other) = log 55 = {math.log(55):.2f}")
assert abs(best - math.log(soft.max() / soft.min())) < 0.05
assert_allclose(soft.max() / soft.min(), 55)

# %% [markdown]
# ## Why not the L2 distance?
#
# It is a fair measure of two points. But its gradient must pass the softmax (lesson 5), and a softmax that is
# sure lets nothing through. Two words, p = (1 − s, s), and the second is right. With d = √2 (1 − s):
#
# ```math
# dp = (p − q) / d = (1, −1) / √2
# dz = p (dp − Σ dp p)  =  √2 s (1 − s) · (1, −1)          L2
# dz = p − q            =  (1 − s) · (1, −1)               cross-entropy
# ```
#
# **Sure and wrong** is s → 0. There cross-entropy speaks loudest, with 1, and L2 falls silent.

# %%
s = np.array([0.5, 0.1, 1e-3, 1e-6])
rows, second = np.log(np.stack([1 - s, s], -1)), np.eye(2)[[1] * 4]  # (4, 2), (4, 2)
loud, silent = 1 - s, math.sqrt(2) * s * (1 - s)  # (4,)
_, cache = F.l2_distance(rows, second)
assert_allclose(4 * F.l2_distance_backward(1.0, cache)[:, 0], silent)  # times 4: undo the mean
_, cache = F.kl_divergence(rows, second)
assert_allclose(4 * F.kl_divergence_backward(1.0, cache)[:, 0], loud)
for chance, ce, l2 in zip(s, loud, silent, strict=True):
    print(f"p of the right word {chance:8.6f}   cross-entropy {ce:.6f}   L2 {l2:.6f}")

# %%
margin = np.linspace(0, 20, 81)  # (M,) the logit of "a", where "thanks" is right
lengths = np.zeros((2, 81))
for i, m in enumerate(margin):
    row = m * np.eye(V)[0]  # (V,)
    _, ce_cache = F.cross_entropy(row, thanks)
    _, l2_cache = F.l2_distance(row, q)
    lengths[0, i] = np.linalg.norm(F.cross_entropy_backward(1.0, ce_cache))
    lengths[1, i] = np.linalg.norm(F.l2_distance_backward(1.0, l2_cache))
figure = curves(
    lengths,
    margin,
    labels=["cross-entropy", "L2 distance"],
    xlabel="logit of a wrong word",
    ylabel="length of the gradient",
    yscale="log",
)
show_figure(figure, "12_l2", "Six words: the surer the mistake, the less L2 says about it")
assert_allclose(lengths[0, -1], math.sqrt(2), rtol=1e-6)
assert lengths[1, -1] < 1e-8

# %% [markdown]
# ## Is it right?

# %%
settings = {"pad_id": 0, "smoothing": 0.1}
report = gradcheck((F.cross_entropy, F.cross_entropy_backward), z, targets, **settings)
print(report)
assert report.ok
q_of_z = F.smooth_targets(targets, 7, 0.1)  # (B, T, V)
assert gradcheck((lambda z: F.kl_divergence(z, q_of_z), F.kl_divergence_backward), z).ok
assert gradcheck((lambda z: F.l2_distance(z, q_of_z), F.l2_distance_backward), z).ok

# %% [markdown]
# ## Perplexity
#
# exp(loss), with the loss of one-hot targets. Since −log p = log 1/p, it is the geometric mean of the 1/p of
# the right words: **among how many words, all as likely, the model is undecided.** Merci: exp(1.6094) = 5.
# All V words alike: V. The printed rows: exp(.0776) = 1.08. And a model that has learned smoothed targets
# perfectly has 1/q(target), not 1: so smoothing "hurts perplexity", by 9 % with six words.

# %%
assert_allclose([np.exp(entropy), np.exp(hoped.mean())], [5, 1.08], atol=1e-3)
assert_allclose(np.exp(F.cross_entropy(np.zeros(V), thanks)[0]), V)
print(f"perplexity at p = q, smoothing .1, six words: {1 / soft.max():.3f}")
assert_allclose(1 / soft.max(), 1.09, atol=1e-3)

# %% [markdown]
# ## Tied weights
#
# The paper uses one matrix for the embeddings and for the output (section 3.4). With E (V, D), word j's
# logit is x · eⱼ: how alike the vector is to that word's own. E is used twice, so two gradients add up:
#
# ```math
# z = x Eᵀ          dE = dzᵀ x        all V rows: every word could have been said
# x = √D E[ids]     dE[ids] += √D dx  only rows of words that were read (lesson 2)
# ```

# %%
ids, said = np.array([0, 1, 0]), np.array([1, 4, 5])  # (N,) read, and to be said
table = Embedding(V, D, scale=math.sqrt(D), rng=rng, dtype=np.float64)
E = table.weight.value  # (V, D)
x = math.sqrt(D) * E[ids]  # (N, D) no layers between, to keep it short
dz = (F.softmax(x @ E.T)[0] - np.eye(V)[said]) / 3  # (N, V)
dE = dz.T @ x  # (V, D)
np.add.at(dE, ids, math.sqrt(D) * (dz @ E))  # a row twice where a word was read twice

output = TiedProjection(table.weight)
y, table_cache = table.forward(ids)
logits, output_cache = output.forward(y)
_, loss_cache = F.cross_entropy(logits, said)
dy = output.backward(F.cross_entropy_backward(1.0, loss_cache), output_cache)
table.backward(dy, table_cache)
assert_allclose(dE, table.weight.grad, rtol=1e-9)
print("rows with a gradient:", int(dE.any(-1).sum()), "of", V, " words read:", len(set(ids)))

# %% [markdown]
# ## Trained
#
# And what does a real model say, once it has learned the two sentences with smoothed targets? Words 6 and 7
# are padding and the start symbol, so V is 8. (Adam is for lesson 13.)

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

learned, _ = F.softmax(logits[1])  # (T, V)
soft = F.smooth_targets(student, 8, 0.1)  # (T, V)
floor = -(soft[0] * np.log(soft[0])).sum()
print(f"loss {loss:.4f}, floor {floor:.4f}; right words", learned[range(5), student].round(3))
assert abs(loss - floor) < 0.02
assert_allclose(learned[range(5), student], 0.9125, atol=0.05)
heads = [words[i] for i in student]
figure = probability_panels(learned[:, :6], words, heads, target=soft[:, :6])
show_figure(figure, "12_trained", "je suis étudiant: what it says, and what it should say")

# %% [markdown]
# Both tell the same: the loss has stopped at its floor, and the model gives the right words .91 and not 1.
#
# ## Exercises
#
# `npformer exercise list 12` has them, each graded by the gradient checker or by its numbers.
#
# - `npformer exercise start log-softmax-backward`: one sum a row.
# - `npformer exercise start cross-entropy`: the mean over what is real.
# - `npformer exercise start cross-entropy-backward`: p − q, smoothed and padded.
# - `npformer exercise start smooth-targets`: one line, and the target gets its ε / V too.
# - `npformer exercise start kl-backward`: what of the loss depends on the logits?
# - By hand: q has no zero. Where is the floor if ε = 1, and what does the model learn then?
#
# To try now, in the terminal: `s loss_cache`, and `!F.cross_entropy(1000 * z, targets, pad_id=0)[0]`.
#
# ## Where the documents differ
#
# - *图解transformer*: the row over its softmax is labelled log_probs; it holds probabilities, which sum to 1.
#   Its axis ends at vocab_size; counted from 0 the last word is vocab_size − 1. "am" is 5 in that figure and
#   1 in the next ones; here it is 1. It puts the L2 distance first, names cross-entropy and KL, and leaves
#   them there. The rows of its trained figure are rounded: they sum to .974 up to 1.01.
# - *一步步解析Attention is All You Need!* shows a dense layer and a softmax. Its demo smooths with .1 and
#   averages loss and accuracy where y ≠ 0: the mean of this lesson.
# - *The components of the Transformer* names logits and softmax, and *Attention机制详解（二）* stops before
#   them; neither has a loss.
# - The .1 is shared among all V words here, the right one included, as in the work that the paper cites for
#   it. Some libraries share it among the V − 1 others: then the right word gets .9 and not .9 + .1/V.
#
# **Next**, lesson 13: what to do with all these gradients.

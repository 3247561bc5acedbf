# %% [markdown]
# # 12.1 · The cross-entropy
#
# *About 30 minutes. You need: the softmax (lesson 5.1, `05_1_scaled_dot_product_attention`), the decoder
# (lesson 11.1, `11_1_the_decoder_and_teacher_forcing`).*
#
# **After this lesson you can**
#
# - turn the decoder's output into a probability for each token of the vocabulary;
# - compute the logarithm of a softmax without overflow;
# - compute three measures of how far a prediction is from the right token.
#
# `model: ids → embedding → positions → encoder → decoder → [LINEAR] → [SOFTMAX]`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.plots import Grid, Step, cell_product, gradient_flow, probability_bars, score_bars

rng = np.random.default_rng(12)
vocabulary = ["a", "am", "I", "thanks", "student", "<eos>"]  # ids 0 .. 5

# %% [markdown]
# ## From the decoder to one number
#
# The decoder returns a vector for each position. In the paper this vector has 512 numbers. A translation
# consists of tokens, so the model must use this vector to choose a token of the vocabulary. During training
# we also need to know how wrong the choice is. A **loss** is a single number that measures this. The backward
# pass starts at the loss: it computes in which direction each number of the vector should change.
#
# The picture shows the whole computation of this chapter. T is the number of positions, D the length of a
# vector, and V the size of the vocabulary.

# %% tags=["plot"]
same = np.random.default_rng(0)
vectors = same.standard_normal((4, 3))  # (T, D)
z = vectors @ same.standard_normal((3, 4))  # (T, V)
logp, _ = F.log_softmax(z)
targets = np.eye(4)[[2, 1, 0, 3]]  # (T, V)
losses = -(logp * targets).sum(-1, keepdims=True)  # (T, 1)
arrays = {"x": vectors, "z": z, "logp": logp, "targets": targets, "losses": losses}
arrays["loss"] = [losses.mean()]
steps = {
    "z": Step("linear", ["x"]),
    "logp": Step("log-softmax", ["z"]),
    "losses": Step("pick", ["logp", "targets"]),
    "loss": Step("mean", ["losses"]),
}
axes = {"x": "T D", "z": "T V", "logp": "T V", "targets": "T V", "losses": "T 1", "loss": "1"}
figure = gradient_flow("x z logp losses loss \n . . targets . .", arrays, steps, axes=axes)
show_figure(figure, "12_1_loss", "From the vectors of the decoder to the loss, one number")

# %% [markdown]
# `logp` holds logarithms of probabilities. From each row, circle 3 picks the right token's entry and negates
# it.

# %% [markdown]
# ## Vector, logits, probabilities, token
#
# *图解transformer* draws the first steps of this computation: a linear layer, a softmax, and the most
# probable token, "am".
#
# The weight matrix $W$ of the linear layer has one column for each token of the vocabulary. The **logit**
# of token $v$ is the dot product of the vector with column $v$. It can be any real number. The softmax
# turns the logits into probabilities. Here $r$ runs over all tokens:
#
# $$z_v = \sum_i x_i w_{iv}, \qquad p_v = \frac{\exp(z_v)}{\sum_r \exp(z_r)}$$
#
# The exponential function is increasing, so the largest logit gives the largest probability. The model can
# choose the most probable token directly from the logits; argmax is the $v$ with the largest value:
#
# $$\mathrm{token} = \operatorname{argmax}_v\, p_v = \operatorname{argmax}_v\, z_v$$

# %% [markdown]
# Our test vector is .7 times the column of "am", plus some noise. The cell computes its logits with two
# loops.

# %%
D, V = 4, 6
w = rng.standard_normal((D, V))  # (D, V)
x = 0.7 * w[:, 1] + 0.1 * rng.standard_normal(D)  # (D,)

logits = np.zeros(V)  # (V,)
for v in range(V):
    for i in range(D):
        logits[v] += x[i] * w[i, v]

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
# The losses of this chapter need log p, the natural logarithm of a probability. The obvious way is to compute
# the softmax first and its logarithm afterwards. This can fail in two places:
#
# - For a large logit the exponential function **overflows**: the result is too large for the number format.
#   In float32 this happens above 88.7.
# - For a very negative logit the probability **underflows**: it becomes exactly 0. Then its logarithm is
#   −∞.
#
# To avoid both, we take the logarithm of the formula before we compute anything. Let $m$ be the largest
# logit. We may subtract it from all logits, because the softmax does not change (lesson 5.1):
#
# $$\begin{aligned}
# \log p_v &= z_v - \log \sum_r \exp(z_r) \\
# &= (z_v - m) - \log \sum_r \exp(z_r - m)
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
# *图解transformer* goes on with an untrained model that should translate "merci". The model gives the
# probabilities $p$. The correct answer is "thanks". We write it as a *distribution* $q$, a list of
# probabilities with the sum 1. It gives the probability 1 to "thanks" and 0 to every other token. Such a
# vector is called **one-hot**.
#
# How far is $p$ from $q$? The document names three measures, but does not explain them. The **L2 distance**
# is the usual distance of two points:
#
# $$\mathrm{L2}(p, q) = \sqrt{\sum_v (p_v - q_v)^2}$$

# %% [markdown]
# The **cross-entropy** uses the logarithms of the probabilities:
#
# $$\mathrm{CE}(q, p) = -\sum_v q_v \log p_v$$
#
# For a one-hot $q$ only one term is left, −log p(thanks). The **KL divergence** (Kullback–Leibler divergence)
# compares the logarithms of $q_v$ and $p_v$. A term with $q_v = 0$ counts as 0:
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
# For a one-hot $q$, cross-entropy and KL divergence are equal. Lesson 12.3
# (`12_3_label_smoothing_and_tied_weights`) shows when they differ.
#
# A sentence has one pair ($p$, $q$) for each position. For "je suis étudiant" the target is "I am a student
# ⟨eos⟩", with the ids 2, 1, 0, 4 and 5. The token ⟨eos⟩ (end of sentence) is the `</S>` of other lessons.
# *图解transformer* prints the probabilities that we would like to see after training. The cell copies them
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
# The rows of a softmax sum to 1. The printed rows do not all sum to 1, so they are not the exact output of a
# softmax.
#
# **Question.** At which position is the loss largest, and why?
#
# <details><summary>Answer</summary>
# At position 1. There the right token "am" has the probability .80, the lowest of the five. The loss is
# −log .80 = .223.
# </details>

# %% tags=["plot"]
run = running_example()
log_probs = run.values["loss.log_probs"].max(-1)  # (T,) of the predicted tokens
figure = score_bars([-log_probs], [run.predicted], decimals=3)
caption = "Our sentence in the translator: −log p of each right token; .075 means p = .93"
show_figure(figure, "12_1_running", caption)

# %% [markdown]
# Our translator was trained with the target .9, instead of 1, for the right token. Lesson 12.3 shows why p
# then stays near .9.
#
# **Your turn.** In the terminal, compute the cross-entropy for four probabilities of the right token, with
# `!-np.log(np.array([0.5, 0.9, 0.99, 0.999]))`. By which factor does it fall in each of the last two steps?

# %% [markdown]
# ## What the source documents say
#
# > - In *图解transformer* the row above the softmax has the label log_probs. It contains probabilities, which
# >   sum to 1. Its axis ends at vocab_size, but counted from 0 the last token is vocab_size − 1. The token
# >   "am" has the id 5 in this figure and 1 in the next ones. Here it is 1. The document puts the L2 distance
# >   first, and only names cross-entropy and KL divergence. In its figure of a trained model, the sums of the
# >   rows lie between .974 and 1.01.
# > - *The components of the Transformer* names logits and softmax. *Attention机制详解（二）* ends before
# >   the output layer. Neither describes a loss.

# %% [markdown]
# ## Summary
#
# - The output layer computes one logit for each token of the vocabulary.
# - The softmax turns the logits into probabilities. The largest logit gives the most probable token.
# - Log-softmax subtracts the largest logit first, so that nothing overflows and no logarithm is −∞.
# - For a one-hot target, the cross-entropy is −log of the probability of the right token.
# - L2 distance, cross-entropy and KL divergence measure how far p is from q.

# %% [markdown]
# ## Questions
#
# **Question.** All six logits are equal to 2. Which probabilities does the softmax give, and what is the
# cross-entropy for any right token?
#
# <details><summary>Answer</summary>
# All probabilities are 1/6, because equal logits give equal probabilities. The cross-entropy is log 6 = 1.79.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 12` lists the exercises of this chapter. They belong to the next lessons.
#
# - By hand: p = (1/2, 1/4, 1/4), and the second token is right. Compute the L2 distance, the cross-entropy
#   and the KL divergence.
# - By hand: compute the log-softmax of (3, 3, 3, 3), with the largest logit subtracted first.
# - On paper: show that the cross-entropy of a one-hot target is never negative.
#
# **Next**: lesson 12.2 (`12_2_the_gradient_of_the_cross_entropy`), the derivation of p − q.

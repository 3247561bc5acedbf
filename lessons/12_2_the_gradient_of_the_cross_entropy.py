# %% [markdown]
# # 12.2 · The gradient of the cross-entropy
#
# *About 30 minutes. You need: log-softmax and cross-entropy (lesson 12.1, `12_1_the_cross_entropy`), the
# softmax and its gradient (lesson 5.2, `05_2_the_backward_pass_of_attention`), padding (lesson 1.1,
# `01_1_words_to_ids`).*
#
# **After this lesson you can**
#
# - derive the gradient p − q of the cross-entropy;
# - take the mean over the right number of tokens, forward and backward;
# - find a wrong mean that the gradient check accepts.
#
# `training step: forward pass → [LOSS] → backward pass → update`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.plots import Grid, Step, cell_product, gradient_flow, score_bars

rng = np.random.default_rng(12)
V = 6
p = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])  # (V,) the model's probabilities for "merci"
q = np.eye(V)[3]  # (V,) the right token is "thanks", with the id 3

# %% [markdown]
# ## Where the backward pass starts
#
# The backward pass of a model starts at its loss. The first gradient is that of the loss itself, which is 1.
# This lesson computes the gradient $dz$ of the logits.

# %% tags=["plot"]
z = np.random.default_rng(0).standard_normal((4, V))  # (T, V)
logp, _ = F.log_softmax(z)
targets = np.eye(V)[[2, 1, 0, 4]]  # (T, V)
losses = -(logp * targets).sum(-1, keepdims=True)  # (T, 1)
steps = {
    "logp": Step("log-softmax", ["z"]),
    "losses": Step("pick", ["logp", "targets"]),
    "loss": Step("mean", ["losses"]),
}
arrays = {"z": z, "logp": logp, "targets": targets, "losses": losses, "loss": [losses.mean()]}
axes = {"z": "T V", "logp": "T V", "targets": "T V", "losses": "T 1", "loss": "1"}
layout = "z logp losses loss \n . targets . ."
figure = gradient_flow(layout, arrays, steps, axes=axes)
show_figure(figure, "12_2_forward", "Forward: from the logits z to the loss")
gradients = {"loss": [1.0], "losses": np.full((4, 1), 1 / 4), "logp": -targets / 4}
gradients["z"] = (np.exp(logp) - targets) / 4
figure = gradient_flow(layout, arrays, steps, gradients, axes=axes)
show_figure(figure, "12_2_backward", "Backward: from dloss = 1 to dz, for T = 4 positions")

# %% [markdown]
# ## Backward: p − q
#
# We take the logits of a single position, and let $q$ be any distribution. Let $Z = \sum_v \exp(z_v)$ be the
# sum in the softmax. First we need the derivative of $\log p_r$ with respect to the logit $z_v$, for any two
# tokens $r$ and $v$. The bracket $[r = v]$ is 1 if $r = v$, and 0 otherwise:
#
# $$\begin{aligned}
# \log p_r &= z_r - \log Z \\
# \frac{\partial \log p_r}{\partial z_v} &= [r = v] - \frac{\exp(z_v)}{Z} \\
# &= [r = v] - p_v
# \end{aligned}$$
#
# **Question.** What is the sign of this derivative for $r = v$, and for $r \neq v$?
#
# <details><summary>Answer</summary>
# For $r = v$ it is $1 - p_v$, which is positive: a token becomes more probable when its own logit rises. For
# $r \neq v$ it is $-p_v$, which is negative: a token becomes less probable when the logit of another token
# rises, because the sum $Z$ grows.
# </details>

# %% [markdown]
# Next comes the loss $L$, with the chain rule. Recall that $dz_v$ stands for $\partial L / \partial z_v$:
#
# $$\begin{aligned}
# L &= -\sum_r q_r \log p_r \\
# dz_v &= -\sum_r q_r\, ([r = v] - p_v) \\
# &= -q_v + p_v \sum_r q_r \\
# &= p_v - q_v
# \end{aligned}$$
#
# The last step uses that the numbers $q_r$ sum to 1. **The gradient is the predicted probability minus the
# target probability.** It contains no logarithm and no division by a small number, so it cannot overflow.
#
# The cell computes the gradient in three ways: by the sum in the second line, by the result $p - q$, and by
# the chain rule from $dp_v = -q_v / p_v$ through the softmax of lesson 5.2.

# %%
dlogits = np.zeros(V)  # (V,)
for v in range(V):
    for r in range(V):
        dlogits[v] -= q[r] * ((r == v) - p[v])
through_softmax = F.softmax_backward(-q / p, p)  # dp = −q / p, then the softmax
print("merci:", p - q)

# %% tags=["check"]
assert_allclose(dlogits, p - q, atol=1e-15)
assert_allclose(through_softmax, p - q, atol=1e-15)
assert abs((p - q).sum()) < 1e-15

# %% tags=["plot"]
vocabulary = ["a", "am", "I", "thanks", "student", "<eos>"]
named = {"p": p, "q": q, "dz": p - q}
settings = {"rows": vocabulary, "numbers": True, "shade": True}
cells = [Grid(a[:, None], name, "x", **settings) for name, a in named.items()]
figure = cell_product([cells[0], "−", cells[1], "=", cells[2]])
caption = "The gradient of the logits: only that of the right token is negative"
show_figure(figure, "12_gradient", caption)

# %% tags=["plot"]
run = running_example()
found = np.exp(run.values["loss.log_probs"].max(-1))  # (T,) of the right tokens
figure = score_bars([found, found - 0.9], [run.predicted] * 2, ["p", "p − q"], decimals=3)
caption = "Our sentence in the translator: every p is above q = .9, so every p − q is positive"
show_figure(figure, "12_2_running", caption)

# %% [markdown]
# A training step moves each logit against its gradient. The gradient of "thanks" is −.8, so its logit rises.
# The gradients of the other five tokens are their probabilities, so their logits fall. In our translator the
# right tokens have q = .9, not 1 (lesson 12.3). Their p is above .9 already, so a step would make them a
# little less probable.
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
# A batch has B sentences, padded to the same length T. The model should not learn to predict padding, so the
# sums leave out all positions with padding. The loss is the mean over the N tokens that are not padding. We
# call these the **real tokens**. Let $\ell_n$ be the loss of token $n$:
#
# $$L = \frac{1}{N} \sum_{n\ \mathrm{real}} \ell_n$$
#
# The factor 1/N also appears in the gradient. It is $dz = (p - q) / N$ at a real token, and 0 at padding. In
# the next cell V is 7, and the id 0 is padding.

# %%
targets = np.array([[4, 1, 0, 0], [6, 2, 3, 0]])  # (B, T)
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
print("only the gradient is wrong:", report.worst.diagnosis.split(";")[0])
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
# If the sum is divided by B · T, the influence of a token depends on the longest sentence in its batch. A
# longer sentence makes the gradients of all tokens smaller.

# %% [markdown]
# **Your turn.** In the terminal, compute the loss of very large logits with
# `!F.cross_entropy(1000 * z, targets, pad_id=0)[0]`. It is finite. Why?

# %% [markdown]
# ## What the source documents say
#
# > - The demo of *一步步解析Attention is All You Need!* averages loss and accuracy over all positions with
# >   y ≠ 0, as in this lesson.

# %% [markdown]
# ## Summary
#
# - The gradient of the logits is $p - q$: the predicted probability minus the target probability.
# - Its entries sum to 0, because equal changes of all logits do not change the softmax.
# - The loss is the mean over the N tokens that are not padding. So the gradient has the factor 1/N.
# - Positions with padding get the gradient 0.
# - A gradient check accepts the gradient of a wrong loss. A test with more padding finds the mistake.

# %% [markdown]
# ## Questions
#
# **Question.** Two sentences have 3 and 5 real tokens. One program computes the mean loss of each sentence
# and then the mean of both. Another divides the sum over all tokens by 8. Is this the same?
#
# <details><summary>Answer</summary>
# No. In the first program, a token of the short sentence has the weight 1/6, and a token of the long sentence
# has the weight 1/10. The second program, like the package, gives each token the weight 1/8.
# </details>
#
# **Question.** The model predicts p = (.7, .2, .1), and the first token is right. What is dz?
#
# <details><summary>Answer</summary>
# (−.3, .2, .1) for a single token. In a batch it is divided by N.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 12` lists the exercises of this chapter. Each is graded by the gradient checker or
# by its values.
#
# - `npformer exercise start log-softmax-backward`: write the backward pass of the logarithm of the softmax.
#   It needs one sum for each row.
# - `npformer exercise start cross-entropy`: compute the loss of a batch: the mean over the tokens that are
#   not padding.
# - `npformer exercise start cross-entropy-backward`: write the gradient p − q, with padding, and with targets
#   that are not quite one-hot (the label smoothing of lesson 12.3).
# - Follow the first step of a real backward pass: run `npformer explore --model en-de "A dog runs." --open`,
#   and replace the end of the address, from `#` on, by `#direction=backward&step=loss.log_probs`.
#
# **Next** on the main route: lesson 13.5 (`13_5_training_a_translator`), which trains a translator on a
# corpus. Off the route: lesson 12.3 (`12_3_label_smoothing_and_tied_weights`), other targets, and a trained
# model.

# %% [markdown]
# # 26.2 · Linear attention and the delta rule
#
# *About 30 minutes. You need: scaled dot-product attention (lesson 5.1,
# `05_1_scaled_dot_product_attention`), the KV cache (lesson 14.4, `14_4_the_kv_cache`).*
#
# **After this lesson you can**
#
# - write causal attention without softmax as a memory of fixed size, token by token and by chunks;
# - correct a memory with the delta rule, and derive the chunk's triangular system;
# - say what such a memory forgets, and what softmax attention without positions cannot do.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import gradcheck, show
from npformer.learn.course import show_figure
from npformer.learn.experiments.measured_runs import read_results
from npformer.learn.experiments.recall import (
    ALL_RULES,
    ALL_TASKS,
    LEARNING_RATE,
    MEASURED,
    PAIRS,
    RULES,
    Trial,
    draw_rows,
    train_model,
)
from npformer.plots import curves

# %%
results = read_results(MEASURED)
accuracy = {
    name: np.array([r.measures["accuracy"] for r in results if r.model == name])  # (seeds, P)
    for name in (f"{rule}, {task}" for task in ALL_TASKS for rule in ALL_RULES)
}

# %% tags=["plot"]
rows = np.stack([accuracy[f"{rule}, new keys"].mean(0) for rule in RULES])
axes = {"xlabel": "pairs", "ylabel": "share of right answers"}
figure = curves(rows, np.array(PAIRS), labels=list(RULES), **axes)
caption = "Recall of values by keys that differ (vectors of width 16): the mean of three seeds"
show_figure(figure, "26_2_new_keys", caption)

# %% [markdown]
# ## A memory of fixed size
#
# Can a memory of fixed size replace the KV cache of softmax attention? In the picture, three kinds of
# attention read pairs of a key and a value, and are then asked for the value of each key. A guess among the
# 64 values is right in 2 % of cases. Softmax attention never fails. Each of the two others has a memory of 16
# · 16 numbers. From about 16 pairs on, they forget.
#
# Where does such a memory come from? Leave out the softmax. Then the output of a query is
#
# $$y_t = \sum_{s \le t} (q_t \cdot k_s)\, v_s = q_t \left( \sum_{s \le t} k_s^\top v_s \right) = q_t S_t$$
#
# All vectors are rows, so $k_s^\top v_s$ is a matrix of shape $(d_k, d_v)$. The sum does not depend on the
# query. So it is enough to keep $S_t$, and to add $k_t^\top v_t$ for each new token. This is **linear
# attention**. (Katharopoulos et al., 2020, also make the weights positive and divide them by their sum.)

# %%
rng = np.random.default_rng(26)
T, d_k, d_v = 6, 4, 3
q, k = rng.standard_normal((2, T, d_k))
v = rng.standard_normal((T, d_v))

memory, y = np.zeros((d_k, d_v)), []
for t in range(T):
    memory = memory + np.outer(k[t], v[t])  # write
    y.append(q[t] @ memory)  # read
print(np.round(y[-1], 3))

# %% tags=["check"]
assert_allclose(y, np.tril(q @ k.T) @ v)
assert_allclose(y, F.linear_attention(q, k, v)[0])

# %% [markdown]
# **Question.** A decoder with 32 heads has keys and values of width 128 in each. After how many tokens does
# the KV cache of a layer hold more numbers than the memories of linear attention?
#
# <details><summary>Answer</summary>
# A head's memory has 128 · 128 numbers, and each token adds 2 · 128 to the KV cache. So after 64 tokens.
# </details>

# %% [markdown]
# ## Why it forgets
#
# Write N pairs with keys of length 1, and read with one of these keys, $k_i$:
#
# $$k_i S = v_i + \sum_{s \ne i} (k_i \cdot k_s)\, v_s$$
#
# The sum is noise. It is 0 if all keys are orthogonal, but in $d_k$ dimensions there are at most $d_k$
# orthogonal vectors. With more pairs, the noise grows, and finally it hides the value. In softmax attention,
# the weights are not dot products, but exponentials of them. In the experiment, all keys have length 1, and
# softmax attention multiplies the scores by 20 (and not by $1 / \sqrt{d_k}$). So a key with the dot product 1
# gets $e^{10}$ times the weight of a key with $\frac{1}{2}$.
#
# Linear attention has a second problem. If a key comes again with a new value, the new value is added to the
# old one. Nothing is ever removed. Here $k_1$ and $k_2$ are orthogonal:
#
# ```text
#  pairs that are written     (k1, a)   (k2, b)   (k1, c)
#  linear attention: k1 S        a         a       a + c
#  what we want:     k1 S        a         a         c
# ```

# %% [markdown]
# ## The delta rule
#
# Before you write, read what the memory holds for the key: $k_t S_{t-1}$. Then write only the difference
# between the new value and this old one:
#
# $$S_t = S_{t-1} + \beta_t\, k_t^\top (v_t - k_t S_{t-1})$$
#
# This is the **delta rule** of Widrow and Hoff (1960). Schlag et al. (2021) use it as attention. With
# $\beta_t = 1$ and a key of length 1, reading with the same key right afterwards gives exactly $v_t$. With a
# $\beta_t$ below 1, only a share of the old value is replaced. Models compute $\beta_t$ from the token.

# %%
keys = np.eye(4)[[1, 2, 1]]  # the first key comes again
values = np.array([[1.0], [5.0], [3.0]])
question = np.eye(4)[[1, 1, 1]]
print("linear    ", F.linear_attention(question, keys, values)[0].ravel())
print("delta rule", F.delta_rule(question, keys, values, np.ones(3))[0].ravel())

# %% tags=["check"]
assert F.delta_rule(question, keys, values, np.ones(3))[0].ravel().tolist() == [1, 1, 3]

# %% [markdown]
# The delta rule is a step of gradient descent: the gradient of $\frac{1}{2} |k_t S - v_t|^2$ with respect to
# $S$ is $k_t^\top (k_t S - v_t)$, and $\beta_t$ is the learning rate. The memory learns while the model
# reads.

# %% [markdown]
# ## By chunks
#
# A loop over single tokens is slow. So matrix products compute a **chunk** of C tokens at once. Let $S$ be
# the memory before the chunk. For linear attention,
#
# $$\begin{aligned}
# Y &= Q S + \mathrm{lower}(Q K^\top)\, V \\
# S &\leftarrow S + K^\top V
# \end{aligned}$$
#
# where lower keeps the lower triangle, with the diagonal. The first term reads what earlier chunks have
# written.
#
# For the delta rule, let $u_t = \beta_t (v_t - k_t S_{t-1})$. Token t writes $k_t^\top u_t$. Before that, the
# memory is $S_{t-1} = S + \sum_{s < t} k_s^\top u_s$. Insert this sum for $S_{t-1}$, and bring all $u$ to the
# left:
#
# $$u_t + \beta_t \sum_{s < t} (k_t \cdot k_s)\, u_s = \beta_t (v_t - k_t S)$$
#
# These are C equations for the C rows of a matrix $U$. Equation t has no unknowns after $u_t$, so the system
# is triangular. Its solution $U$ replaces $V$ in the two formulas above (Yang et al. 2024).

# %%
k = k / np.linalg.norm(k, axis=1, keepdims=True)
beta = rng.uniform(0, 1, T)
system = np.eye(T) + np.tril(beta[:, None] * (k @ k.T), -1)
u = np.linalg.solve(system, beta[:, None] * v)  # the memory before the only chunk is 0
y = np.tril(q @ k.T) @ u
y_of_chunks, cache = F.delta_rule(q, k, v, beta, chunk=2)
print("difference from npformer's chunks of 2:", abs(y - y_of_chunks).max())
show(cache)

# %% tags=["check"]
assert_allclose(y, F.delta_rule(q, k, v, beta, chunk=2)[0], atol=1e-12)
assert_allclose(y, F.delta_rule(q, k, v, beta)[0], atol=1e-12)

# %% [markdown]
# The backward pass runs through the chunks from the last to the first, and passes on the gradient of the
# memory. Its code is in `npformer/functional/linear_attention.py`.

# %%
report = gradcheck((F.delta_rule, F.delta_rule_backward), q, k, v, beta)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Keys that come again
#
# `npformer experiment recall` trains a small model with each kind of attention. The model consists of a table
# of vectors for the keys, another for the values, and a linear layer that turns the output of attention into
# logits. With the delta rule, it also learns one number $\beta$. There are three tasks:
#
# - "new keys", the task of the picture above: all keys differ;
# - "keys again": there are at most 8 different keys. They come again with new values, and the last value of
#   each is asked for;
# - "last keys": all keys differ, but only the values of the last 8 are asked for.
#
# The cell repeats one of the 36 trainings. The rows "gated delta" are explained below.

# %%
model, again = train_model(Trial("delta, keys again", LEARNING_RATE, 400, 0))
print(f"{'pairs':23}", *(f"{pairs:5}" for pairs in PAIRS))
print(f"{'this training':23}", *(f"{share:5.2f}" for share in again.measures["accuracy"]))
for name, shares in accuracy.items():
    print(f"{name:23}", *(f"{share:5.2f}" for share in shares.mean(0)))
print(f"the learned beta of this training: {F.sigmoid(model.gate.value)[0].item():.2f}")

# %% tags=["plot"]
rows = np.stack([accuracy[f"{rule}, keys again"].mean(0) for rule in RULES])
axes = {"xlabel": "pairs", "ylabel": "share of right answers"}
figure = curves(rows, np.array(PAIRS), labels=list(RULES), **axes)
caption = "Recall of the last value of at most 8 keys that come again: mean of three seeds"
show_figure(figure, "26_2_keys_again", caption)

# %% tags=["check"]
last = {name: shares[:, -1] for name, shares in accuracy.items()}
assert accuracy["softmax, new keys"].min() == 1
assert max(last["linear, new keys"].max(), last["delta, new keys"].max()) < 0.6
assert last["delta, keys again"].min() > 0.85
assert abs(last["gated delta, last keys"] - last["delta, last keys"]).max() < 0.02
assert last["delta, last keys"].min() > 0.9 > 0.5 > last["linear, last keys"].max()
assert max(last["linear, keys again"].max(), last["softmax, keys again"].max()) < 0.3
from_24 = PAIRS.index(24)
assert (accuracy["delta, new keys"] < accuracy["linear, new keys"])[:, from_24:].all()
rows, right = draw_rows("new keys", np.random.default_rng(9), 256, 64), {}
for rule in ("delta", "linear"):
    trained, _ = train_model(Trial(f"{rule}, new keys", LEARNING_RATE, 400, 0))
    right[rule] = (trained.forward(rows)[0].argmax(-1) == rows.answers).mean(0)  # (64,) by pair
    if rule == "delta":
        assert abs(F.sigmoid(trained.gate.value)[0].item() - 0.35) < 0.01
assert_allclose([of[:16].mean() for of in right.values()], [0.11, 0.46], atol=0.04)
assert_allclose([of[-16:].mean() for of in right.values()], [0.83, 0.46], atol=0.04)

# %% [markdown]
# When keys come again, only the two delta rules succeed. Linear attention adds up all the values that a key
# has had. Softmax attention returns the mean of all these values, since equal keys have equal scores. With
# positions, which this experiment lacks, it could prefer the last value.
#
# On new keys, the delta rule is a little worse than linear attention from 24 pairs on. To write a pair, it
# removes from the memory the share $\beta$ of what lies along the new key. This damages older pairs: with 64
# pairs and seed 0, it recalls 11 % of the first 16 values and 83 % of the last 16. Linear attention recalls
# 46 % of both.
#
# **Question.** In which of the first two tasks would you expect the larger $\beta$ to be learned?
#
# <details><summary>Answer</summary>
# Where keys come again, since the old value must go. With seed 0, the delta rule learns .79 there (printed
# above), and .35 where all keys are new.
# </details>

# %% [markdown]
# ## A memory that decays
#
# In the **gated delta rule**, the memory is multiplied by a number $\alpha_t$ below 1 before each token (Yang
# et al. 2025). Models compute $\alpha_t$ from the token, and ours learns one number for all pairs. The task
# "last keys" should profit from a decay, since old pairs may be forgotten. But even without a decay, the
# delta rule is right in .97 of cases with 64 pairs: each new pair damages the older ones, so these hardly
# disturb the last 8. With the decay, the share is .98, and seeds differ by as much. The learned $\alpha$ is
# .997 (seed 0), so the decay is hardly used.

# %% tags=["check"]
gated, _ = train_model(Trial("gated delta, last keys", LEARNING_RATE, 400, 0))
assert abs(np.exp(-np.exp(gated.decay.value)).item() - 0.997) < 0.0005

# %% [markdown]
# ## What models do with it
#
# Some models of 2025 (Qwen3-Next, Kimi Linear) repeat a group of four layers: three with gated delta rules,
# then one with softmax attention. The few layers with a KV cache look up exactly, and the others are cheap
# for long texts.

# %% [markdown]
# ## Summary
#
# - Without the softmax, causal attention is a matrix into which each token writes $k_t^\top v_t$.
# - The memory is exact for up to $d_k$ orthogonal keys. Beyond that, the pairs disturb each other.
# - The delta rule writes the difference from what the memory holds, so a new value replaces the old one. In
#   the gated delta rule, the memory also decays.
# - Chunks turn both rules into matrix products. The delta rule needs a triangular system for each chunk.
# - Softmax attention looked up all 64 different keys. For keys that come again, it would need positions.

# %% [markdown]
# ## Questions
#
# **Question.** Show that $k_t S_t = v_t$ for $\beta_t = 1$ and $|k_t| = 1$.
#
# <details><summary>Answer</summary>
# $k_t S_t = k_t S_{t-1} + (k_t k_t^\top)(v_t - k_t S_{t-1})$, and $k_t k_t^\top = 1$.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 26` lists the exercises of this chapter.
#
# - `npformer exercise start delta-rule`: write the loop over tokens.
# - By hand: all keys are equal to the query and have length 1. What does linear attention return?
#
# **Next**: lesson 26.3 (`26_3_mixture_of_experts`), in which each token uses a few of many networks.

# %% [markdown]
# # 7.4 · Testing the split, and the cost of several heads
#
# *About 30 minutes. You need: split and merge (lesson 7.2, `07_2_all_heads_in_one_product`), the task with
# six people (lesson 7.1, `07_1_why_several_heads`), the leak test (lesson 6.3, `06_3_leaks`).*
#
# **After this lesson you can**
#
# - find a wrong split of the heads with a test of the forward pass;
# - compute the lowest loss that a wrong split can reach;
# - say what several heads cost, and what they cannot do.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import MultiHeadAttention
from npformer.checking import gradcheck
from npformer.functional.attention import attention, attention_backward
from npformer.functional.heads import merge_heads, split_heads
from npformer.learn.course import show_figure
from npformer.plots import attention_grid, curves

rng = np.random.default_rng(7)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread

# %% [markdown]
# ## Does the gradient check find the wrong split?
#
# To split an array into heads, we reshape the last axis and then exchange two axes. A reshape alone has the
# right shape, but it is wrong:
#
# - right: (B, T, H·K), reshaped to (B, T, H, K), and then two axes are exchanged: (B, H, T, K);
# - wrong: (B, T, H·K), reshaped to (B, H, T, K).
#
# The function `heads_pair` contains multi-head attention, forward and backward, as in lesson 7.3
# (`07_3_the_output_projection_and_the_backward_pass`). The split and the merge are arguments, so that we can
# exchange them.

# %%


def flat(a):
    """(B, T, N) -> (B·T, N): the rows of all sentences as one matrix."""
    return a.reshape(-1, a.shape[-1])


def heads_pair(split, merge, n_heads):
    """Multi-head attention and its backward; w (4, D, D): query, key, value, output."""

    def forward(x, w):
        z, attended = attention(*[split(x @ w[i], n_heads) for i in range(3)])
        concat = merge(z)  # (B, T, H·K)
        return concat @ w[3], (x, w, attended, concat)

    def backward(dy, cache):
        x, w, attended, concat = cache
        dqkv = [merge(d) for d in attention_backward(split(dy @ w[3].T, n_heads), attended)]
        dw = np.stack([*[flat(x).T @ flat(d) for d in dqkv], flat(concat).T @ flat(dy)])
        return sum(d @ w[i].T for i, d in enumerate(dqkv)), dw

    return forward, backward


# %%
def reshape_only(a, n_heads):
    """The wrong split: (B, T, H·K) -> (B, H, T, K) without an exchange of axes."""
    return a.reshape(a.shape[0], n_heads, a.shape[1], -1)


def undo_reshape(a):
    """The inverse of reshape_only."""
    return a.reshape(a.shape[0], a.shape[2], -1)


pairs = {
    "one head": heads_pair(split_heads, merge_heads, 1),
    "two heads": heads_pair(split_heads, merge_heads, 2),
    "wrong split": heads_pair(reshape_only, undo_reshape, 2),
}
x = rng.standard_normal((2, 6, 12))  # (B, T, D)
w = rng.standard_normal((4, 12, 12)) / math.sqrt(12)  # (4, D, D)
for name, pair in pairs.items():
    print(f"{name:12} gradients {'right' if gradcheck(pair, x, w).ok else 'WRONG'}")

# %% tags=["check"]
layer = MultiHeadAttention(12, 2, bias=False, dtype=np.float64)
names = ("query", "key", "value", "output")
layer.load_state_dict({f"{name}.weight": part for name, part in zip(names, w, strict=True)})
assert_allclose(pairs["two heads"][0](x, w)[0], layer.forward(x)[0], rtol=1e-9)
assert all(gradcheck(pair, x, w).ok for pair in pairs.values())

# %% [markdown]
# **The wrong split passes the gradient check.** Its backward pass is the correct gradient of its forward
# pass. The forward pass is the wrong function, and the gradient check does not test this.
#
# **Question.** Which test can find the wrong split?
#
# <details><summary>Answer</summary>
# A test of the forward pass: every output of self-attention must depend on every token. So we can change one
# token and see which outputs change, as in the leak test of lesson 6.3.
# </details>
#
# The tokens of our "sentence" are the six people at the table of lesson 7.1. We change the vector of Fay, who
# sits in the last seat. With correct heads, the output of every person changes.

# %%
people = ["Ann", "Ben", "Cem", "Dot", "Eve", "Fay"]
changed = x.copy()
changed[:, 5] += 1  # Fay's vector
affected = {}
for name, (forward, _) in pairs.items():
    affected[name] = (forward(changed, w)[0] != forward(x, w)[0]).any((0, 2))  # (T,)
    print(f"{name:12}", *[who for who, hit in zip(people, affected[name], strict=True) if hit])

# %% tags=["check"]
for name, hit in affected.items():
    assert hit.all() == (name != "wrong split")
assert not affected["wrong split"][:3].any()

# %% [markdown]
# With the wrong split, the outputs of Ann, Ben and Cem do not change by a single bit. Head #0 contains only
# these three, and head #1 only the other three.
#
# ## Training with the wrong split
#
# Now we train models with the correct split and with the wrong ones on the task of lesson 7.1, from the same
# initial weights and with the same data. Each person has a note of six random numbers, and wants the notes of
# both neighbours. The optimizer is gradient descent with momentum, which chapter 13 explains.

# %%


def tables(n):
    """Return n tables: x and the wanted outputs, each (B, T, D), where T is 6 and D is 12."""
    notes = rng.standard_normal((n, 6, 6))  # (B, T, 6)
    seats = np.broadcast_to(np.eye(6), (n, 6, 6))  # (B, T, 6) a 1 at one's own seat
    left, right = np.roll(notes, 1, axis=1), np.roll(notes, -1, axis=1)  # Fay sits next to Ann
    return np.concatenate([notes, seats], -1), np.concatenate([left, right], -1)


# %%
rng = np.random.default_rng(7)  # again, so that your experiments do not change the data
w_first = rng.standard_normal((4, 12, 12)) / math.sqrt(12)
batches = [tables(64) for _ in range(300)]
losses, trained = np.zeros((3, 300)), {}
for row, (name, (forward, backward)) in zip(losses, pairs.items(), strict=True):
    w, velocity = w_first.copy(), np.zeros_like(w_first)
    for step, (given, target) in enumerate(batches):
        output, made = forward(given, w)
        row[step] = ((output - target) ** 2).mean()
        velocity = 0.9 * velocity + backward(2 * (output - target) / target.size, made)[1]
        w = w - 2.0 * velocity
    trained[name] = w
    print(f"{name:12} first {row[0]:.3f}   mean of the last ten {row[-10:].mean():.4f}")

# %% tags=["plot"]
figure = curves(losses, labels=list(pairs), ylabel="mean squared error", yscale="log")
caption = "One head stays at 1/2, as derived; the wrong split learns, but stays above 1/3"
show_figure(figure, "07_losses", caption)

# %% [markdown]
# - **One head** stays at 1/2, as derived: two errors that add up to 1 have the mean 1/2. (Weights that
#   depend on the notes bring no gain.)
# - **Two heads** approach 0.
# - **The wrong split** also learns, and it ends with a lower loss than one correct head.
#
# For the wrong split we can compute a bound. There are 12 wanted notes, two for each person. A head that
# contains only Ann, Ben and Cem can deliver four of them: Ann's right note, both notes of Ben, and Cem's left
# note. The other head can deliver four too. The remaining 4 of 12 notes are impossible, so the loss is at
# least 4/12 = 1/3. The curve alone does not reveal the mistake.
#
# What did the two correct heads learn? We print, for each person of a new table, the seat with the largest
# weight.

# %%
_, (_, _, attended, _) = pairs["two heads"][0](tables(1)[0], trained["two heads"])
most = attended.weights[0].argmax(-1)  # (H, T) the seat with the largest weight
for h, seats in enumerate(most):
    print(f"head #{h}:", *[f"{a} → {people[s]}," for a, s in zip(people, seats, strict=True)])

# %% tags=["plot"]
figure = attention_grid(attended.weights, people, people)  # (1, H, T, T)
show_figure(figure, "07_heads", "After training: one head attends to the left, one to the right")

# %% tags=["check"]
assert 0.48 < losses[0, -10:].mean() < 0.53
assert losses[1, -10:].mean() < 2e-4
assert 1 / 3 < losses[2, -10:].mean() < 0.37
offsets = (most - np.arange(6)) % 6  # 5 is the seat to the left
assert sorted(map(tuple, offsets)) == [(1,) * 6, (5,) * 6]
assert attended.weights.max(-1).min() > 0.95

# %% [markdown]
# Training found the solution that we constructed by hand: one head for the left neighbour, and one for the
# right neighbour.
#
# ## What several heads cost
#
# The paper says:
#
# > Due to the reduced dimension of each head, the total computational cost is similar to that of single-head
# > attention with full dimensionality.
#
# For T tokens, the four projections need $4\,T D^2$, for any number of
# heads, because H·K = D. For each pair of tokens and each head, the score and the sum of values need K
# multiplications each. Together these are $2\,T^2 H K = 2\,T^2 D$, which does not depend on the number of
# heads either. Only the number of attention weights, $H\,T^2$, grows with it.

# %% [markdown]
# Rows (A) of the paper's table 3 compare different numbers of heads, with a d_model of 512. The cell counts
# for a text of 64 tokens. It also prints the paper's BLEU scores, where higher is better.

# %%
text = rng.standard_normal((1, 64, 512)).astype(np.float32)  # (B, T, D)
print("heads width parameters multiplications attention weights BLEU")
for n_heads, bleu in {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}.items():
    base = MultiHeadAttention(512, n_heads, bias=False)
    seen, width = base.forward(text)[1].attention, 512 // n_heads
    assert seen.q.shape == (1, n_heads, 64, width)
    products = 4 * 64 * 512**2 + 2 * seen.weights.size * width  # projections; scores and sums
    size = base.count_parameters()
    assert (size, products) == (1_048_576, 71_303_168)
    print(f"{n_heads:5} {width:5} {size:10,} {products:15,} {seen.weights.size:17,} {bleu:4}")

# %% [markdown]
# One head is .9 BLEU below the best result. The paper adds that "quality also drops off with too many heads",
# but does not explain why. With 32 heads, each similarity has only rank 16.
#
# ## What several heads do not do
#
# *The components of the Transformer* motivates heads in another way. Two sentences with the same tokens in
# another order would get the same scores. This is true, but several heads do not change it. If the rows of
# $x$ are permuted, the rows of $y$ are permuted in the same way. Information about the order must be part
# of $x$. In our example it is the seat, and in a model it is the position encoding of lesson 3.1
# (`03_1_positions`).
#
# The cell tests this. It also tests that one head without $W^O$ is the attention of chapter 5.

# %%
order = rng.permutation(6)
permuted, _ = layer.forward(x[:, order])
alone = MultiHeadAttention(12, 1, output=False, bias=False, dtype=np.float64)
plain, _ = attention(*[x @ p.value for p in alone.parameters()])
print("permuted tokens, difference:", abs(permuted - layer.forward(x)[0][:, order]).max())
print("one head without W^O, difference:", abs(alone.forward(x)[0] - plain).max())

# %% tags=["check"]
assert_allclose(permuted, layer.forward(x)[0][:, order], rtol=1e-9)
assert_allclose(alone.forward(x)[0], plain, rtol=1e-12)

# %% [markdown]
# **Your turn.** In the terminal, print the weights of the trained heads with `s attended.weights`. Which of
# the two heads attends to the left?

# %% [markdown]
# ## Summary
#
# - A wrong split passes the gradient check, because its backward pass fits its wrong forward pass.
# - A test of the forward pass finds it: change one token, and see which outputs change.
# - A model with the wrong split still learns, and its loss curve does not reveal the mistake.
# - The number of heads changes neither the number of parameters nor that of the multiplications.
# - Several heads do not make attention depend on the order of the tokens.

# %% [markdown]
# ## Questions
#
# **Question.** Why can the loss of the wrong split not fall below 1/3?
#
# <details><summary>Answer</summary>
# Each head contains only three of the six people. So 4 of the 12 wanted notes belong to people in the other
# head, and the model cannot know them.
# </details>
#
# **Question.** What grows with the number of heads?
#
# <details><summary>Answer</summary>
# The number of attention weights, $H\,T^2$, and with it the memory for them. Parameters and multiplications
# stay the same.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these in Python. The command `npformer exercise list 7` lists the exercises of this chapter that are
# graded.
#
# - Which outputs change with the wrong split and *three* heads, when Fay's vector changes? Predict it first.
# - Train a model with four correct heads of width 3. Can it reach a loss near 0? Compare with lesson 7.1.
#
# **Next**: lesson 8.1 (`08_1_layer_norm`), which keeps the numbers of a layer at a moderate size.

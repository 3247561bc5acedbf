# %% [markdown]
# # 18.4 · Can the position be learned?
#
# *About 35 minutes. You need: local-m and local-p (lessons 18.1, `18_1_local_attention`, and 18.2,
# `18_2_a_predicted_position`).*
#
# **After this lesson you can**
#
# - train global, local-m and local-p attention on a small task, and explain the differences;
# - show how the predicted positions change during training;
# - recognize a position that cannot learn, and name the two reasons.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn import Linear
from npformer.nn.attention import GlobalAttention, LocalMonotonic, LocalPredictive, Similarity
from npformer.nn.module import Module
from npformer.plots import attention_map, curves
from npformer.training.optimizer import Adam

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16
V, LONGEST, D = 8, 12, 2  # the vocabulary, the longest sentence, the half width of the window

# %% [markdown]
# ## A small task
#
# A language has 8 words. There are two ways to translate a sentence: to **copy** it, or to **reverse** it.
# Sentences have 4 to 12 words. In this experiment there is no recurrent network. Attention receives directly
# what a recurrent network would have to learn:
#
# - A state of the source is the word and its position, both as one-hot vectors.
# - A state of the decoder has three numbers: 1, the number of words written, and the number of words to come.
#
# Only two things are learned: the attention, and a linear layer that computes the word from the context.

# %% tags=["plot"]
figure = shape_flow(
    "states context logits \n memory . .",
    {"context": "attention: states memory", "logits": "linear: context"},
    {"states": "T 3", "memory": "S V+12", "context": "T V+12", "logits": "T V"},
)
show_figure(figure, "18_4_shapes", "The model, for one sentence of at most 12 words")

# %%
positions = np.arange(LONGEST)


def sentences(n, order, rng):
    """Shapes: -> states (B, T, 3), memory (B, S, V + S), mask (B, S), targets (B, T)."""
    lengths, tokens = rng.integers(4, LONGEST + 1, (n, 1)), rng.integers(0, V, (n, LONGEST))
    mask, to_come = positions < lengths, lengths - 1 - positions  # (B, S), (B, T)
    written = np.broadcast_to(positions, mask.shape)
    memory = np.concatenate([np.eye(V)[tokens], np.tile(np.eye(LONGEST), (n, 1, 1))], -1)
    states = np.stack([np.ones(mask.shape), written / 5, to_come / 5], -1)
    right = to_come if order == "reverse" else written  # (B, T) the right position
    targets = np.take_along_axis(tokens, np.maximum(right, 0), 1)
    return states, memory, mask, np.where(mask, targets, -1)  # -1 at padding


class Reader(Module):
    """logits = context weight + bias, where one kind of attention computes the context."""

    def __init__(self, kind, rng):
        float64 = {"rng": rng, "dtype": np.float64}
        score = Similarity("general", 3, V + LONGEST, **float64)
        simple = {"global": GlobalAttention(score), "local-m": LocalMonotonic(score, reach=D)}
        self.attention = simple.get(kind) or LocalPredictive(score, reach=D, **float64)
        self.read = Linear(V + LONGEST, V, **float64)

    def forward(self, states, memory, mask):
        context, attended = self.attention.forward(states, memory, mask)
        logits, read = self.read.forward(context)
        return logits, (attended, read)

    def backward(self, dlogits, cache):
        attended, read = cache
        return self.attention.backward(self.read.backward(dlogits, read), attended)


# %% [markdown]
# We check the gradients of this model once. Then we train it with 400 steps of Adam, with 32 sentences in
# each step. During the training of local-p, we store the predicted positions for a sentence of ten words.
#
# There are four variants. In "fixed position", the model is local-p, but v and W are never changed. So its
# positions stay where the random initialization puts them.
#
# **Question.** Which of the two tasks can local-m solve? Roughly how often can it be right in the other task?
#
# <details><summary>Answer</summary>
# It can copy, because the right word for t is at position t. To reverse, the right position is S − 1 − t.
# This is inside the window only for the words near the middle of the sentence. Elsewhere it can only guess.
# </details>

# %%
ten = np.stack([np.ones(10), np.arange(10) / 5, (9 - np.arange(10)) / 5], -1)  # (T, 3)
STORED = (0, 20, 40, 100, 400)


def learn(kind, order, seed=1, steps=400):
    """Returns the model, its accuracy on new sentences, and the stored positions (5, 10)."""
    rng, stored = np.random.default_rng(seed), []
    reader = Reader(kind, rng)
    adam, attention = Adam(reader), reader.attention
    for step in range(steps + 1):
        if kind == "local-p" and step in STORED:
            weight, v = attention.position_weight.value, attention.position_v.value
            stored.append(F.predict_position(ten, weight, v, np.array(10))[0])
        states, memory, mask, targets = sentences(32, order, rng)
        logits, cache = reader.forward(states, memory, mask)
        _, loss_cache = F.cross_entropy(logits, targets, pad_id=-1)
        reader.zero_grad()
        reader.backward(F.cross_entropy_backward(1.0, loss_cache), cache)
        if kind == "fixed position":
            attention.position_v.grad[...] = attention.position_weight.grad[...] = 0
        adam.step(0.03)
    states, memory, mask, targets = sentences(2000, order, np.random.default_rng(1000))
    correct = reader.forward(states, memory, mask)[0].argmax(-1) == targets
    return reader, correct[mask].mean(), np.array(stored)


# %%
readers, correct, stored = {}, {}, {}
print("correct words            copy   reverse")
for kind in ("global", "local-m", "fixed position", "local-p"):
    both = [learn(kind, order) for order in ("copy", "reverse")]
    readers[kind], correct[kind], stored[kind] = zip(*both, strict=True)
    print(f"{kind:20}", "  ".join(f"{one:7.1%}" for one in correct[kind]))
longer = learn("global", "reverse", steps=1600)[1]
print(f"global, 1,600 steps           {longer:7.1%}")

# %% tags=["check"]
assert_allclose(correct["local-m"], [0.67, 0.26], atol=0.03)
assert_allclose([*correct["local-p"]], 0.96, atol=0.015)
assert max(correct["fixed position"]) < 0.65
assert_allclose([*correct["global"], longer], [0.67, 0.67, 0.83], atol=0.03)
in_window = [sum(abs(S - 1 - 2 * t) <= D for t in range(S)) for S in range(4, 13)]
assert (in_window, sum(range(4, 13))) == ([2, 3] * 4 + [2], 72)
states, memory, mask, _ = sentences(2, "copy", np.random.default_rng(0))
report = gradcheck(Reader("local-p", np.random.default_rng(0)), states, memory, mask=mask)
assert report.ok

# %% [markdown]
# **local-m** copies as well as global attention, with 5 visible words instead of 12. When it reverses a
# sentence, its window contains the right word for only 2 words if S is even, and for 3 words if S is odd. In
# all sentences of 4 to 12 words, these are 22 of 72 words, or 31 %. The others are guessed, with a chance of
# 1/8.
#
# **Global attention** must distinguish twelve positions by their scores, which grow slowly. Its accuracy is
# 67 % after 400 steps, and 83 % after 1,600.
#
# **local-p** solves both tasks with 96 %. The Gaussian is narrow from the beginning, so only its position
# must be learned. The variant with a fixed position shows that this learning is necessary.

# %% [markdown]
# ## How the position learns
#
# The figure shows the predicted positions of local-p in the task "reverse", for ten words. A falling line
# from 9 to 0 is right.

# %% tags=["plot"]
names = [f"step {step}" for step in STORED]
settings = {"xlabel": "word t of the target", "ylabel": "predicted position p"}
figure = curves(stored["local-p"][1], labels=names, **settings)
show_figure(figure, "18_4_positions", "Reverse ten words: a rising line becomes a falling line")

# %% [markdown]
# At the beginning the line rises, because of the random initialization, and all positions are between 3
# and 6. For the words in the middle, the right word is in the window, so they receive a useful gradient. The
# words at both ends do not. But all positions are computed by the same W and v, from states that change
# evenly with t. When the positions in the middle change, those at the ends change too. At some point their
# right words enter the window, and then they receive a useful gradient as well.
#
# The next cell measures the result on 2,000 sentences.

# %%
states, memory, mask, _ = sentences(2000, "reverse", np.random.default_rng(1000))
right = mask.sum(-1)[:, None] - 1 - positions  # (B, T) the right position
_, (attended, _) = readers["local-p"][1].forward(states, memory, mask)
distance = abs(attended.positions - right)[mask]
print(f"mean distance from the right position {distance.mean():.2f}")
print(f"mean sum of the weights {attended.weights.sum(-1)[mask].mean():.2f}")
found = (attended.weights.argmax(-1) == right)[mask].mean()
print(f"the largest weight is at the right word: {found:.1%}")
show(attended.gaussian)

# %% tags=["check"]
assert found == 1
assert ((stored["local-p"][1][0] > 3) & (stored["local-p"][1][0] < 6)).all()

# %% tags=["plot"]
one = int((mask.sum(-1) == 10).argmax())  # a sentence of ten words
figure = attention_map(attended.weights[one, :10, :10], None, None, numbers=True)
show_figure(figure, "18_4_reversed", "local-p after training: ten words in reverse order")

# %% [markdown]
# The largest weight is at the right word for *every* word of the 2,000 sentences. The 4 % of mistakes come
# from the neighbours, which have some weight too.
#
# ## When the position does not learn
#
# With another random initialization, training fails. Now most positions begin near the end of the source.

# %%
_, stuck, stored_stuck = learn("local-p", "reverse", seed=11)
for step, row in zip(STORED, stored_stuck, strict=True):
    print(f"step {step:3}   p " + " ".join(f"{x:5.2f}" for x in row))
u = stored_stuck / 10  # the output of the sigmoid
print("u (1 - u) at the end:", (u * (1 - u))[-1].round(3))
print(f"correct words: {stuck:.1%}")

# %% tags=["check"]
assert_allclose(stuck, 0.44, atol=0.03)
in_window = abs(stored_stuck[0] - np.arange(9, -1, -1)) <= D  # at the start
assert_array_equal(in_window, np.arange(10) < 3)
assert_allclose(stored_stuck[-1, :4], [9, 8, 7, 6], atol=0.3)
assert (abs(stored_stuck - np.arange(9, -1, -1))[:, 4:] > D).all()  # at all stored steps
assert (u * (1 - u))[0].min() > 0.05 > 0.0125 > (u * (1 - u))[-1, 4:].max()

# %% [markdown]
# The first three words have the right source word in their window. They learn it, and the fourth learns it
# too. Their positions become 9, 8, 7 and 6. For the words from t = 4 on, the right source word is outside the
# window at all five stored steps, so their positions do not receive a useful gradient. They move to the end
# of the source. There the factor $u (1 - u)$ of the sigmoid's gradient is at most .012; it began between .05
# and .18. So they stay there.
#
# There are two reasons for the failure:
#
# - **A token outside the window has no weight. So it contributes nothing to the gradient of the position.**
# - A saturated sigmoid has almost no gradient.
#
# **Question.** Could a wider window help? And what would it cost?
#
# <details><summary>Answer</summary>
# Yes. With a larger D, far tokens have some weight, so the position receives a gradient from them. But more
# comparisons are needed, and neighbours have more weight.
# </details>

# %% [markdown]
# The same happens in a whole translator if D is small. It was measured for `rnn-local-p` on a smaller form of
# the built-in corpus, with 18,152 training pairs. The losses are validation losses after 300 steps:
#
# - With D = 4, p was .99 S for *every* target token after only 30 steps. Adam changes all numbers of v and W
#   by about the same amount, and these changes add up in the argument of the sigmoid. The loss was .97.
# - With D = 10, as in the paper, σ is 5, so far tokens have some weight. The loss was .51. Global attention
#   had .50.
# - With D = 4, and a learning rate of v and W that was ten times smaller, the loss was .52. So the saturation
#   was the cause.

# %% [markdown]
# **Question.** Does our small task show that local-p is better than global attention?
#
# <details><summary>Answer</summary>
# No. The right positions form a line, which the formula of p can represent well. In other tasks it is not so.
# </details>
#
# In Table 4 of the paper (English to German, score *general*), the perplexities are 6.1 for global attention,
# 6.2 for local-m, and 5.9 for local-p.
#
# **Your turn.** In the terminal, try `!learn("local-p", "copy", seed=4)[1:]`. Do the positions learn?

# %% [markdown]
# ## Summary
#
# - local-m solves tasks in which source and target have the same order.
# - local-p can learn another order: positions in the middle learn first, and the others move with them.
# - In our task, local-p learns faster than global attention, because its Gaussian is narrow from the start.
# - A token outside the window contributes nothing to the gradient of the position.
# - If the sigmoid saturates, the position can hardly move any more.

# %% [markdown]
# ## Questions
#
# **Question.** The sum of the weights is .69 on average after training. Why is it less than 1?
#
# <details><summary>Answer</summary>
# The neighbours of the right word have some weight a, and their factors g are smaller than 1. Also the
# position is not exactly at the right word, so its g is less than 1 too.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 18` lists the exercises of this chapter.
#
# - With code: train local-p with seed 11 and D = 4. Does the wider window help?
# - `RecurrentConfig.architecture("rnn-local-p")` of `npformer.models.recurrent` is a translator with local-p.
#   Train it with `npformer train --architecture rnn-local-p`.
#
# **Next**: lesson 19.1 (`19_1_hard_attention`), attention that reads a single position.

# %% [markdown]
# # 3.1 · Positions
#
# *About 30 minutes. You need: embeddings (lesson 2.1, `02_1_embeddings`), sine and cosine.*
#
# **After this lesson you can**
#
# - show that attention alone does not know the order of the tokens;
# - compute the sinusoids of the paper;
# - derive the gradient of learned positions, and train them.
#
# `model: ids → embedding → [POSITIONS] → encoder → decoder → linear → softmax`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.functional.attention import attention
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.nn import InputEmbedding, LearnedPositions
from npformer.plots import curves, score_bars, value_map

rng = np.random.default_rng(3)
f8 = {"rng": rng, "dtype": np.float64}

# %% [markdown]
# ## Why positions?
#
# "the cat sees the dog" and "the dog sees the cat" consist of the same five words in another order. We will
# see that attention cannot distinguish them. The paper solves this problem in section 3.5:
#
# > Since our model contains no recurrence and no convolution, in order for the model to make use of the order
# > of the sequence, we must inject some information about the relative or absolute position of the tokens in
# > the sequence.
#
# Each position gets a vector, a **positional encoding**, which is added to the embedding of the token at this
# position. The sum enters the first layer. All sentences of a batch get the same T vectors. (*Recurrence*
# reads the tokens one after the other, and a *convolution* combines neighbours. So both know the order.)

# %% tags=["plot"]
figure = value_map(sinusoids(40, 32), xlabel="dimension", ylabel="position")
caption = "A vector for each position: row 0 is added to the first token, row 1 to the second"
show_figure(figure, "03_1_table", caption)

# %% [markdown]
# The paper computes these vectors with sines and cosines, called **sinusoids**. PE is the name of their
# table:
#
# $$PE_{(pos,\, 2i)} = \sin(pos / 10000^{2i/D})$$
#
# $$PE_{(pos,\, 2i+1)} = \cos(pos / 10000^{2i/D}), \qquad i = 0, \dots, D/2 - 1$$
#
# > We chose this function because we hypothesized it would allow the model to easily learn to attend by
# > relative positions, since for any fixed offset k, PE_pos+k can be represented as a linear function of
# > PE_pos.
#
# These passages make three claims: without positions the order is lost, sinusoids restore it, and the vector
# of position pos + k is a linear function of that of position pos. You will test the first two here, and the
# third in lesson 3.2 (`03_2_an_offset_is_a_rotation`).
#
# ## Without positions, the order is lost
#
# Does the encoder compute different vectors for the cat that sees and for the cat that is seen? We apply
# attention, the topic of chapters 4 and 5, to both sentences.

# %%
the, cat, sees, dog = rng.standard_normal((4, 8))  # (D,) each
x = np.stack([the, cat, sees, the, dog])  # (T, D)
order = [3, 4, 2, 0, 1]
permuted = x[order]  # the dog sees the cat

layer = MultiHeadAttention(8, 4, **f8)
y, y_permuted = (layer.forward(z[None])[0][0] for z in (x, permuted))  # (T, D)
print("cat, who sees:   ", y[1, :4])
print("cat, who is seen:", y_permuted[4, :4])

# %% [markdown]
# Both vectors are equal. To see why, you need three facts about attention:
#
# 1. It multiplies the vector of each token by three matrices. The results are a *query*, a *key* and a
#    *value* of this token.
# 2. The dot product of a query and a key, times a constant c, is a *score*. The function *softmax* turns the
#    scores of a query into weights that sum to 1.
# 3. The output of a token is the average of all values with the weights of its query.

# %% tags=["check"]
assert_allclose(y_permuted, y[order], rtol=1e-12)

# %% [markdown]
# Now let Π be a matrix that permutes the
# rows of another matrix. The permuted sentence has the same queries Q, keys K and values V in another order,
# because each of them belongs to one token. Let A be the scores, P the weights and Y the outputs. A prime
# marks the permuted sentence:
#
# $$
# \begin{aligned}
# A' &= c\, (\Pi Q)(\Pi K)^\top = \Pi A \Pi^\top \\
# P' &= \mathrm{softmax}(A') = \Pi P \Pi^\top \\
# Y' &= P' (\Pi V) = \Pi P \Pi^\top \Pi V = \Pi Y
# \end{aligned}
# $$
#
# The second line holds because the softmax works on each row alone, and permuted scores give permuted
# weights. The third line uses $\Pi^\top \Pi = I$, the identity matrix. So if you permute the tokens, the
# outputs are permuted in the same way, and nothing else changes. Attention is **permutation-equivariant**.

# %% tags=["check"]
one_head = [attention(z, z, z)[0] for z in (x, permuted)]
assert_allclose(one_head[1], one_head[0][order], rtol=1e-12)

# %% [markdown]
# The other parts of an encoder layer (chapters 8 and 9) process each token separately, so they do not help.
# The encoder would treat a sentence as a collection of words without order. In the decoder, a token attends
# only to itself and to earlier tokens (chapter 6). So the decoder has some information about the order.
#
# Now we add a different vector at each position.

# %%
positions = sinusoids(5, 8)  # (T, D)
y, y_permuted = (layer.forward((z + positions)[None])[0][0] for z in (x, permuted))
print("cat, who sees:   ", y[1, :4])
print("cat, who is seen:", y_permuted[4, :4])

# %% tags=["check"]
assert abs(y[1] - y_permuted[4]).max() > 0.1

# %% tags=["plot"]
run = running_example()
embedded = run.values["source.tokens.y"]  # (S, D)
lengths = [np.linalg.norm(each, axis=-1) for each in (embedded, sinusoids(*embedded.shape))]
figure = score_bars(lengths, [run.source] * 2, ["embedding times √D", "sinusoids"], decimals=1)
caption = "Our sentence: embeddings are longer than sinusoids, whose length is always 8"
show_figure(figure, "03_1_running", caption)

# %% [markdown]
# (Our translator rotates queries and keys instead: lesson 23.2, `23_2_rotary_positions`.)
#
# ## The table of sinusoids
#
# The next cell computes the formula number by number. The columns form pairs. Each pair contains the sine and
# the cosine of the *same* angle $\omega_i \cdot pos$, with the frequency $\omega_i = 10000^{-2i/D}$.

# %%


def slow_sinusoids(length, d_model):
    """Return PE (T, D), number by number."""
    table = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table


pe = sinusoids(100, 20)  # (T, D), the function of the package
for pos in (0, 1, 10, 99):
    print(f"position {pos:2}, dimensions 4 to 7: {pe[pos, 4:8].round(4)}")

# %% tags=["check"]
assert_allclose(pe, slow_sinusoids(100, 20), atol=1e-12)
assert_allclose(pe[10, 4:8], [0.9999, -0.0141, 0.5899, 0.8075], atol=5e-5)
assert_allclose(pe[99, 4:8], [0.0175, -0.9998, -0.0367, 0.9993], atol=5e-5)

# %% tags=["plot"]
figure = curves(
    pe[:, 4:8].T,
    labels=["dim 4", "dim 5", "dim 6", "dim 7"],
    xlabel="position",
    ylabel="value",
)
caption = "D = 20: dimensions 4 and 5 have the period 39.64, dimensions 6 and 7 the period 99.58"
show_figure(figure, "03_1_curves", caption)

# %% [markdown]
# A pair (sin, cos) is a point on a circle, like the tip of a clock hand. From position to position, the hand
# turns by the angle $\omega_i$. The hand of the first pair makes a full turn in $2\pi = 6.28$ positions. Each
# further hand is slower by the factor $10000^{2/D}$. In the picture of the table, the fast hands are the
# columns at the left. The slowest hands, at the right, hardly move from the point (0, 1), where all hands
# begin.
#
# The paper says that the wavelengths, the periods, range "from 2π to 10000 · 2π". The last i is D/2 − 1, so
# the longest period is slightly shorter. For D = 512 it is 9,647 · 2π.

# %% tags=["check"]
period = 2 * np.pi * 10000 ** (np.arange(0, 20, 2) / 20)  # (D/2,)
assert_allclose(period[2:4], [39.64, 99.58], atol=5e-3)
assert_allclose(period[0], 6.2832, atol=5e-5)
assert round(10000 ** (510 / 512)) == 9647

# %% [markdown]
# ## Learned positions
#
# There is another way: a table of parameters PE with one row for each position. It is learned like the table
# of embeddings. Its rows begin with random numbers like those of the embeddings, but they are not multiplied
# by √D. So their length is about 1 at first, and that of the embeddings about √D. For sentence b, place t and
# component j:
#
# $$y_{btj} = x_{btj} + PE_{tj}$$
#
# An addition passes its gradient on unchanged, so $dx_{btj} = dy_{btj}$. The gradient of the table is
#
# $$dPE_{tj} = \sum_b dy_{btj} \frac{\partial y_{btj}}{\partial PE_{tj}} = \sum_b dy_{btj}$$
#
# This is the rule of lesson 2.1: row t was copied to every sentence, so its
# gradient is the sum over all sentences. Sinusoids have no parameters, so they need no gradient.

# %%
learned = LearnedPositions(10, 4, **f8)  # weight (max_length, D)
dy = rng.standard_normal((3, 6, 4))  # (B, T, D): three sentences of six tokens
dpe = np.zeros((10, 4))  # (max_length, D)
dpe[:6] = dy.sum(0)

# %% tags=["check"]
_, made = learned.forward(6)
learned.backward(dy, made)
assert_allclose(learned.weight.grad, dpe, rtol=1e-12)
assert (learned.weight.grad[6:] == 0).all()  # no sentence has these positions
wide = LearnedPositions(100, 512, **f8).weight.value
assert_allclose(np.linalg.norm(wide, axis=-1).mean(), 1, atol=0.01)

# %% [markdown]
# In the package, `InputEmbedding` contains everything before the first layer: embeddings times √D, plus
# positions, then dropout (lesson 8.3, `08_3_the_residual_connection`; switched off here). In its cache,
# `positions = (0, 6)` means that six rows were read, beginning with row 0. The backward pass of the positions
# needs nothing else. (The output `y` is kept only to be looked at.)

# %%
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0], [4, 5, 3, 0, 0, 0]])  # (B, T)
input_layer = InputEmbedding(8, 4, 10, positions="learned", **f8)
y, cache = input_layer.forward(ids)  # (B, T, D)
input_layer.backward(dy, cache)
show(cache)

# %% tags=["check"]
tokens_table, positions_table = input_layer.tokens.weight, input_layer.positions.weight
assert_allclose(y, 2 * tokens_table.value[ids] + positions_table.value[:6])
dtokens = np.zeros((8, 4))
np.add.at(dtokens, ids.reshape(-1), 2 * dy.reshape(-1, 4))  # lesson 2.1
assert_allclose(tokens_table.grad, dtokens)
assert_allclose(positions_table.grad, dpe)

# %% [markdown]
# ## Check the gradient
#
# We check the layer, and then a version with a mistake: the gradient of the last sentence replaces the sum
# over all sentences.

# %%
report = gradcheck(input_layer, ids)
print(report)


class LastSentenceOnly(InputEmbedding):
    """Make a mistake: keep only the gradient of the last sentence."""

    def backward(self, dy, cache):
        super().backward(dy, cache)
        self.positions.weight.grad[: dy.shape[1]] -= dy[:-1].sum(0)  # leaves dy[-1]


# %% tags=["check"]
assert report.ok
report = gradcheck(LastSentenceOnly(8, 4, 10, positions="learned", **f8), ids)
print("without the sum over the batch:", report.failures[0].tensor, "is wrong")
assert report.failures[0].tensor == "positions.weight"

# %% [markdown]
# ## Who sees?
#
# In "the cat sees the dog" the cat sees, and in "the dog sees the cat" it is seen. The model adds the numbers
# of each vector: $y_t = \sum_j x_{tj}$. It should give 1 at the animal that sees, −1 at the one that is seen,
# and 0 elsewhere. We train it twice: with embeddings alone, and with positions.

# %%
two = np.array([[0, 1, 2, 0, 3], [0, 3, 2, 0, 1]])  # (B, T): the cat sees the dog; and the other
wanted = np.array([0, 1, 0, 0, -1])  # (T,)


def train(rate):
    """Train embeddings, and positions with a rate of their own. Return y and the losses."""
    E, PE = 0.1 * rng.standard_normal((4, 8)), np.zeros((5, 8))  # D = 8
    losses = []
    for _ in range(40):
        y = (E[two] + PE).sum(-1)  # (B, T)
        e = y - wanted
        losses.append((e * e).mean())
        dx = np.repeat(2 * e[..., None] / e.size, 8, axis=-1)  # (B, T, D)
        np.add.at(E, two, -0.1 * dx)  # the update of the rows that were read
        PE -= rate * dx.sum(0)
    return y, losses


for name, rate in {"embeddings alone": 0, "with positions": 0.1}.items():
    y, losses = train(rate)
    print(f"{name:17} loss {losses[0]:.3f} → {losses[-1]:.6f}   first y {y[0].round(2) + 0}")

# %% tags=["check"]
assert losses[-1] < 1e-3
assert_allclose(y, [wanted, wanted], atol=0.05)
assert_allclose(train(0)[1][-1], 0.4, atol=1e-3)

# %% [markdown]
# Without positions the loss stops at 0.4. Each animal should have 1 in one sentence and −1 in the other, so
# its embedding gets two gradients of opposite sign, and the best answer is 0. With positions the loss falls
# to almost 0: row 1 of the table of positions has learned to say 1, and row 4 says −1.

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* has sine and cosine in turn, as above. It says that i tells whether
# >   a position is odd or even. But even and odd are the columns, 2i and 2i + 1. It says that several heads
# >   are needed because the order of words does not change attention scores. Without positions this
# >   is true, but several heads do not change it: our layer above had four.

# %% [markdown]
# ## Summary
#
# - Attention is permutation-equivariant: without positions it does not know the order.
# - A position is a vector that is added to the embedding.
# - Sinusoids are pairs (sin, cos) with D/2 frequencies. They have no parameters.
# - Learned positions are a table of parameters, with one row for each position.
# - The gradient of a learned position is the sum over the sentences of the batch.

# %% [markdown]
# ## Questions
#
# **Question.** Why are many hands necessary? Is the fastest one not enough?
#
# <details><summary>Answer</summary>
# One hand comes back to nearly the same point again and again, so it can hardly distinguish some positions.
# From position 0 to 44, for example, the fastest hand makes almost exactly 7 turns. Fast and slow hands
# together determine the position, just as the hour hand and the minute hand determine the time.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 3` lists the exercises.
#
# - `npformer exercise start sinusoids`: compute the table of the paper without a loop over the positions.
# - `npformer exercise start positions-backward`: compute the gradient of learned positions. It is a sum over
#   the batch, and belongs to T rows of the table, beginning with row `start`.
#
# In the terminal, try `!train(0.1)[0]` with another seed: `!rng = np.random.default_rng(7)`.
#
# **Next** on the main route: lesson 4.1 (`04_1_attention_without_parameters`), attention as a weighted mean
# of token vectors. Off the route: lesson 3.2 (`03_2_an_offset_is_a_rotation`), how a head finds the previous
# token.

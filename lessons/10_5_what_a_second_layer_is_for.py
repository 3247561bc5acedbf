# %% [markdown]
# # 10.5 · What a second layer is for
#
# *About 25 minutes. You need: the encoder (lesson 10.3, `10_3_the_whole_encoder`), queries and keys (lesson
# 4.4, `04_4_query_key_and_value`), positions (lesson 3.1, `03_1_positions`).*
#
# **After this lesson you can**
#
# - describe a task that a single layer of self-attention cannot solve;
# - explain what a second layer can do that one layer cannot;
# - test with a linear layer which information a vector contains.
#
# `model: ids → embedding → positions → [ENCODER] → decoder → linear → softmax`

# %%
import numpy as np
from threadpoolctl import threadpool_limits

from npformer import functional as F
from npformer.functional.masks import padding_mask
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.transformer import Encoder, TransformerConfig
from npformer.nn import InputEmbedding, Linear
from npformer.nn.module import Module
from npformer.plots import attention_grid, curves
from npformer.training.optimizer import Adam

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## What a second layer is for
#
# In one layer every token can attend to every other token. So why do we need more than one? We choose a
# task in which a token must first find out *where* to attend. A sentence consists of four to eight letters,
# and the encoder must return them in reverse order. Let $n$ be the number of letters. Then the output at
# place $t$ must be the letter at place $n - 1 - t$. But the vector of a letter does not contain $n$. It must
# first be computed from the whole sentence.
#
# The network is an encoder with a linear layer on top, which computes a score for each letter from each
# vector:

# %% tags=["plot"]
figure = shape_flow(
    "ids memory scores loss \n . . reversed .",
    {
        "memory": "encoder: ids",
        "scores": "linear: memory",
        "loss": "cross-entropy: scores reversed",
    },
    {"ids": "B S", "memory": "S D", "scores": "S V", "reversed": "B S", "loss": "1"},
)
caption = "The letters go in; the loss compares with the letters in reverse order"
show_figure(figure, "10_5_shapes", caption)

# %% [markdown]
# The loss is the cross-entropy (lesson 12.1, `12_1_the_cross_entropy`), and Adam is an optimizer (lesson
# 13.2, `13_2_adam`). Here you can take both as given.

# %%


class FromIds(Module):
    """Compute memory = encoder(embedding(ids)), with the mask of the ids."""

    def __init__(self, config, vocab_size, length, rng):
        settings = {"rng": rng, "dtype": np.float64}
        self.embed = InputEmbedding(vocab_size, config.d_model, length, **settings)
        self.encoder = Encoder(config, **settings)

    def forward(self, ids):
        x, embedded = self.embed.forward(ids)
        memory, cache = self.encoder.forward(x, padding_mask(ids))
        return memory, (embedded, cache)

    def backward(self, dmemory, caches):
        self.embed.backward(self.encoder.backward(dmemory, caches[1]), caches[0])


def random_batch(rng, count=32):
    """Draw sentences of 4 to 8 letters, and reverse them. Shapes: -> (B, S) twice."""
    place, n = np.arange(8), rng.integers(4, 9, (count, 1))  # (S,), (B, 1)
    ids = np.where(place < n, rng.integers(4, 12, (count, 8)), 0)  # (B, S)
    mirrored = np.take_along_axis(ids, np.maximum(n - 1 - place, 0), 1)  # (B, S)
    return ids, np.where(place < n, mirrored, 0)


def learn(n_layers):
    """Return the share of correct letters at each of 300 steps, and the network."""
    rng, log, net = np.random.default_rng(1), [], Module()
    sizes = {"d_model": 32, "d_ff": 64, "n_heads": 2, "n_layers": n_layers}
    net.body = FromIds(TransformerConfig(**sizes, dropout=0.0), 12, 8, rng)
    net.output = Linear(32, 12, rng=rng, dtype=np.float64)
    adam = Adam(net)
    for step in range(300):
        ids, reverse = random_batch(rng)
        memory, at_body = net.body.forward(ids)  # (B, S, D)
        logits, at_output = net.output.forward(memory)  # (B, S, V)
        _, at_loss = F.cross_entropy(logits, reverse)  # padding, id 0, does not count
        log.append((logits.argmax(-1) == reverse)[reverse > 0].mean())
        net.zero_grad()
        dmemory = net.output.backward(F.cross_entropy_backward(1.0, at_loss), at_output)
        net.body.backward(dmemory, at_body)
        adam.step(5e-3 * min(1, (step + 1) / 50))
    return np.array(log), net


# %% [markdown]
# We train one network with one layer and one with two layers. Then both get the letters a b c d e f. Which
# of the two will solve the task?

# %%
learned = {n_layers: learn(n_layers) for n_layers in (1, 2)}
shown = np.array([[4, 5, 6, 7, 8, 9, 0, 0]])  # (B, S) abcdef, and two tokens of padding
for n_layers, (log, net) in learned.items():
    memory, (_, encoder_cache) = net.body.forward(shown)
    logits, _ = net.output.forward(memory)
    said = "".join("····abcdefgh"[i] for i in logits[0, :6].argmax(-1))
    share = log[-20:].mean()
    print(f"layers: {n_layers}   correct at the end: {share:.0%}   abcdef reversed: {said}")

# %% tags=["check"]
assert learned[1][0][-20:].mean() < 0.6
assert learned[2][0][-20:].mean() > 0.95
assert said == "fedcba"

# %% tags=["plot"]
figure = curves(
    np.stack([log.reshape(-1, 10).mean(1) for log, _ in learned.values()]),
    10 * np.arange(30) + 5,
    labels=["one layer", "two layers"],
    ylabel="share of correct letters",
)
caption = "Reverse a sentence of unknown length: one layer stops at half of the letters"
show_figure(figure, "10_layers", caption)

# %% [markdown]
# With two layers the network solves the task. With one layer it gets only about half of the letters. The
# reason lies in its queries. The query at place $t$ is computed from the letter at this place and from $t$.
# The keys are computed in the same way. So, apart from the mask, a token attends to the same places whether
# the sentence has four letters or eight.
#
# Which tokens do the two layers attend to? The cache of the last forward pass contains the attention
# weights of both layers.

# %%
weights = [at.self_attention.attention.weights[0] for at in encoder_cache.layers]  # (H, S, S)
mirrored = weights[1][:, np.arange(6), 5 - np.arange(6)]  # (H, 6) place t attends to place 5 − t
print("layer 1, weights on the mirrored place:", mirrored.min(), "to", mirrored.max())

# %% tags=["plot"]
letters = [*"abcdef", "·", "·"]
figure = attention_grid(np.stack(weights), letters, letters, mask=padding_mask(shown)[0, 0])
caption = "Layer 1 attends to the mirrored place; the weights of layer 0 show no clear pattern"
show_figure(figure, "10_attention", caption)

# %% tags=["check"]
assert mirrored.min() > 0.5

# %% [markdown]
# Layer 1 is easy to understand: it attends to the mirrored place. For this its queries must contain $n$. So
# layer 0 must have computed $n$, but its attention weights do not show how.
#
# Therefore we test the vectors themselves. Can $n$ be computed from the vector of the *first letter*? We
# fit a linear layer that predicts $n$ from this vector. It is fitted with least squares to 400 sentences
# and tested on 400 others. We do this with the vectors that enter layer 0, and with those that enter
# layer 1. The cache contains them as `projections[0].x`, the input of the query projection. Five lengths
# are possible, so pure chance would be right in 1 of 5 cases.

# %%
sample, _ = random_batch(np.random.default_rng(2), 800)
lengths = (sample > 0).sum(1)  # (B,) 4 to 8
_, (_, sampled) = net.body.forward(sample)
shares = []
for number, at in enumerate(sampled.layers):
    first = at.self_attention.projections[0].x[:, 0]  # (B, D) the vectors of the first letters
    rows = np.concatenate([first, np.ones((800, 1))], 1)  # (B, D + 1)
    fitted = np.linalg.lstsq(rows[:400], np.eye(9)[lengths[:400]], rcond=None)[0]
    shares.append(((rows[400:] @ fitted).argmax(-1) == lengths[400:]).mean())
    print(f"length from the first letter, input of layer {number}: {shares[-1]:.0%} correct")

# %% tags=["check"]
assert shares[0] < 0.35
assert shares[1] > 0.7

# %% [markdown]
# So layer 0 has written the length into the vector of the first letter. Layer 1 uses it to attend to the
# right place. **To decide where to attend, a layer can use the results of the layer below.** Also note
# that attention weights show where a head attends, but not what it has learned there (chapter 15).
#
# **Your turn.** In the terminal, look at the cache of the last pass with `s encoder_cache`. Then train
# three layers with `!learn(3)[0][-20:].mean()`.

# %% [markdown]
# ## Summary
#
# - To reverse a sentence of unknown length, a token must know the length before it can attend to the right
#   place.
# - With one layer, the queries do not contain the length, and the network gets about half of the letters.
# - With two layers, the first one writes the length into the vectors, and the second one uses it.
# - A linear layer, fitted to the vectors, shows which information they contain.
# - Attention weights show where a head attends, but not what it has learned there.

# %% [markdown]
# ## Questions
#
# **Question.** Why does a convolution of width 3 not solve the task of the reversed letters in one layer?
#
# <details><summary>Answer</summary>
# The first output needs the last letter, which is up to seven places away. One convolution reaches one
# place.
# </details>
#
# **Question.** All sentences have exactly six letters. Would one layer be enough to reverse them?
#
# <details><summary>Answer</summary>
# Yes, in principle. Then place t must always attend to place 5 − t. A query that contains only its position
# t is enough for this.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 10` lists the exercises of this chapter, which belong to lessons 10.2
# (`10_2_the_backward_pass_of_an_encoder_layer`) and 10.3.
#
# - By hand: place t has the vector (cos ωt, sin ωt). Let q be the vector of place t. Find a matrix W so
#   that the score (W q) · k is largest for the key at place 5 − t. (Let ω be small.)
#
# **Next**: lesson 11.1 (`11_1_the_decoder_and_teacher_forcing`), the decoder, which may not see later tokens.

# %% [markdown]
# # 10.1 · One encoder layer
#
# *About 25 minutes. You need: embeddings and positions (lessons 2.1, `02_1_embeddings`, and 3.1,
# `03_1_positions`), multi-head attention (lesson 7.1, `07_1_why_several_heads`), residual
# connections and layer norm (lesson 8.3, `08_3_the_residual_connection`), the feed-forward network (lesson
# 9.1, `09_1_the_feed_forward_network`).*
#
# **After this lesson you can**
#
# - name the parts of an encoder layer and the shapes between them;
# - compute the output of a layer for one token with loops, and for all tokens in eleven lines;
# - say how often each array of the layer is used.
#
# `model: ids → embedding → positions → [ENCODER] → decoder → linear → softmax`

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer.functional import attention, layer_norm, linear, merge_heads, relu, split_heads
from npformer.functional.masks import padding_mask
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.nn import InputEmbedding
from npformer.plots import Step, attention_grid, gradient_flow

rng = np.random.default_rng(10)

# %% [markdown]
# ## What the encoder does
#
# The encoder reads a sentence and computes a vector for each token. We know all parts from the earlier
# lessons. Section 3.1 of *Attention Is All You Need* says how to put them together:
#
# > The encoder is composed of a stack of N = 6 identical layers. Each layer has two sub-layers. The first
# > is a multi-head self-attention mechanism, and the second is a simple, position-wise fully connected
# > feed-forward network.
#
# "Identical" means that all layers have the same structure. Each has weights of its own.

# %% [markdown]
# The pictures show one **encoder layer** with its two **sublayers**. S is the number of tokens and D the
# length of a vector. Each sublayer has a residual connection, which adds the input of the sublayer to its
# output, $m$ or $f$. A layer norm follows.

# %% tags=["plot"]
same = np.random.default_rng(0)
example = {"x": same.standard_normal((5, 12))}  # (S, D)
example["m"], _ = attention(example["x"], example["x"], example["x"])
example["x + m"] = example["x"] + example["m"]
example["a"], _ = layer_norm(example["x + m"], np.ones(12), np.zeros(12))
hidden = np.maximum(0, example["a"] @ same.standard_normal((12, 20)))  # (S, F)
example["f"] = hidden @ same.standard_normal((20, 12))
example["a + f"] = example["a"] + example["f"]
example["y"], _ = layer_norm(example["a + f"], np.ones(12), np.zeros(12))

for name, start, through, sublayer, end in (
    ("10_1_attention", "x", "m", "self-attention", "a"),
    ("10_1_feed_forward", "a", "f", "feed-forward", "y"),
):
    steps = {
        through: Step(sublayer, [start]),
        "u": Step(f"{start} + {through}", [start, through]),
        end: Step("norm", ["u"]),
    }
    arrays = {name: example[name] for name in (start, through, end)}
    arrays["u"] = example[f"{start} + {through}"]
    layout = f"{start} . u {end} \n . {through} . ."
    figure = gradient_flow(layout, arrays, steps, axes=dict.fromkeys(arrays, "S D"))
    show_figure(figure, name, "Half of the layer: the sublayer, the sum u and the norm")

# %% [markdown]
# Inside the feed-forward network, each vector has F numbers. In this lesson we compute one layer, forward.
#
# ## The input
#
# We use two sentences. The shorter one is padded with the id 0. The input of the encoder is the embedding
# of each token, multiplied by √D, plus the vector of its position.

# %%
vocabulary = ["<PAD>", "the", "animal", "was", "too", "tired", "it", "slept"]
ids = np.array([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])  # (B, S)
embed = InputEmbedding(8, 12, 5, rng=rng, dtype=np.float64)
x, _ = embed.forward(ids)  # (B, S, D)
mask = padding_mask(ids)  # (B, 1, 1, S): no token attends to padding
print(" ".join(vocabulary[i] for i in ids[1]), "   may be attended to:", mask[1, 0, 0])

# %% tags=["check"]
position = sinusoids(5, 12)  # (S, D)
for sentence in range(2):
    for s in range(5):
        vector = math.sqrt(12) * embed.tokens.weight.value[ids[sentence, s]] + position[s]
        assert_allclose(x[sentence, s], vector, rtol=1e-12)

# %% [markdown]
# ## One layer, slowly: the vector of one token
#
# We take a layer of the package, with D = 12, F = 20 and H = 3 heads of width K = 4 (the $d_k$ of lesson
# 7.1). Its gains and biases are random, because with their initial values 1 and 0 mistakes could remain
# hidden (lesson 8.2, `08_2_the_backward_pass_of_layer_norm`). The layer has eight parts with two arrays of
# parameters each. We give each part a short name.

# %%
config = TransformerConfig(d_model=12, d_ff=20, n_heads=3, n_layers=2, dropout=0.0)
layer = EncoderLayer(config, rng=rng, dtype=np.float64)
parameters = dict(layer.named_parameters())
for name, parameter in parameters.items():
    if name.endswith(("gain", "bias")):
        parameter.value += rng.standard_normal(parameter.shape)

full = {
    "q": "self_attention.query",
    "k": "self_attention.key",
    "v": "self_attention.value",
    "o": "self_attention.output",
    "norm1": "norm1",
    "ff1": "feed_forward.inner",
    "ff2": "feed_forward.outer",
    "norm2": "norm2",
}

# %%
w = {
    short: [p.value for name, p in parameters.items() if name.startswith(long + ".")]
    for short, long in full.items()
}
for short, (first, second) in w.items():
    print(f"{short:6} {full[short]:27} {first.shape} and {second.shape}")

# %% [markdown]
# Now we compute what the layer does with a single token, "animal" in the first sentence. The code goes
# through the heads and through the tokens that "animal" attends to, one after the other. This is slow, but
# every step can be read. We will compare the faster versions with it.

# %%


def affine(row, short):
    weight, bias = w[short]
    return row @ weight + bias


def normalize(row, short):
    (gain, bias), centred = w[short], row - row.mean()
    return gain * centred / math.sqrt((centred**2).mean() + 1e-5) + bias


def layer_for_token(rows, t):
    """Compute the output of the layer for token t of a sentence. Shapes: rows (S, D) -> (D,)."""
    concat = np.zeros(12)
    for head in range(3):
        own = slice(4 * head, 4 * head + 4)  # this head's four entries of twelve
        query = affine(rows[t], "q")[own]
        e = [math.exp(query @ affine(row, "k")[own] / math.sqrt(4)) for row in rows]
        for s, row in enumerate(rows):
            concat[own] += e[s] / sum(e) * affine(row, "v")[own]
    a = normalize(rows[t] + affine(concat, "o"), "norm1")
    h = np.maximum(0, affine(a, "ff1"))  # (F,)
    return normalize(a + affine(h, "ff2"), "norm2")


animal = layer_for_token(x[0], 1)
print(animal[:4])

# %% [markdown]
# ## One layer for all tokens: eleven lines
#
# The next cell computes the same for all tokens of all sentences. It has eleven lines. `split_heads` gives
# the heads an axis of their own, and `merge_heads` puts them side by side again. Line 9 replaces `h` by its
# ReLU. Each line but the fourth keeps its cache, because the backward pass needs it.

# %%
q, c_q = linear(x, *w["q"])  # (B, S, D)                               1
k, c_k = linear(x, *w["k"])  # (B, S, D)                               2
v, c_v = linear(x, *w["v"])  # (B, S, D)                               3
qh, kh, vh = (split_heads(part, 3) for part in (q, k, v))  # (B, H, S, K)  4
z, c_z = attention(qh, kh, vh, mask)  # (B, H, S, K)                   5
m, c_o = linear(merge_heads(z), *w["o"])  # (B, S, D)                6
a, c_1 = layer_norm(x + m, *w["norm1"])  # (B, S, D)                   7
h, c_f = linear(a, *w["ff1"])  # (B, S, F)                             8
h, c_r = relu(h)  # (B, S, F)                                          9
f, c_g = linear(h, *w["ff2"])  # (B, S, D)                            10
y, c_2 = layer_norm(a + f, *w["norm2"])  # (B, S, D)                  11

y_package, layer_cache = layer.forward(x, mask)
print("slowly           ", animal[:3])
print("in eleven lines  ", y[0, 1, :3])
print("with the package ", y_package[0, 1, :3])

# %% tags=["check"]
assert_allclose(y[0, 1], animal, rtol=1e-9)
assert_allclose(y, y_package, rtol=1e-12)
assert (c_z.weights[1, :, :, 2:] == 0).all()

# %% tags=["plot"]
tokens = [vocabulary[i] for i in ids[1]]
figure = attention_grid(c_z.weights[1:], tokens, tokens, mask=mask[1, 0])
caption = "The weights of line 5 for the second sentence: padding gets no weight"
show_figure(figure, "10_layer", caption)

# %% [markdown]
# **Question.** How many of the eleven lines use the array $x$, and how many use the array $a$?
#
# <details><summary>Answer</summary>
# $x$ is used in the four lines 1, 2, 3 and 7, and $a$ in the two lines 8 and 11. So the gradient of $x$ has
# four terms, and the gradient of $a$ has two.
# </details>

# %% [markdown]
# ## The layer learns
#
# The wanted output of a token is the vector of the token before it, normalized. A layer that always answers 0
# would have the loss 1. The positions are multiplied by 3 before they are added, so that the layer finds them
# more easily.

# %%
tokens = rng.standard_normal((8, 5, 12))  # (B, S, D)
wanted = np.roll(tokens, 1, axis=1)  # the first token wants the last one
wanted = (wanted - wanted.mean(-1, keepdims=True)) / wanted.std(-1, keepdims=True)
learner, losses = EncoderLayer(config, rng=rng, dtype=np.float64), []
for _ in range(300):
    y, cache = learner.forward(tokens + 3 * sinusoids(5, 12))
    losses.append(((y - wanted) ** 2).mean())
    learner.zero_grad()
    learner.backward(2 * (y - wanted) / y.size, cache)
    for parameter in learner.parameters():
        parameter.value -= 1.2 * parameter.grad
print(f"loss {losses[0]:.2f} → {losses[-1]:.2f}")

# %% tags=["check"]
assert losses[-1] < losses[0] / 5
assert_allclose((wanted**2).mean(), 1)

# %% [markdown]
# ## Summary
#
# - An encoder layer has two sublayers: self-attention and a feed-forward network.
# - Each sublayer has a residual connection, and a layer norm follows the sum.
# - The shape (B, S, D) of the input is also the shape of the output, so that layers can be stacked.
# - For all tokens at once, the layer has eleven lines: six linear layers, the split into heads, attention,
#   ReLU and two norms.
# - The input $x$ is used in four of these lines, and the vectors $a$ between the sublayers in two.

# %% [markdown]
# ## Questions
#
# **Question.** Six of the eleven lines are linear layers with a weight matrix. Which of them could be
# computed at the same time?
#
# <details><summary>Answer</summary>
# Lines 1, 2 and 3, which compute q, k and v. All others need the result of a line before them.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 10` lists the exercises of this chapter. They belong to the next two lessons.
#
# - In which of the eleven lines does information move from one token to another?
# - By hand: write the shapes of q, qh, z, m, h and f for B = 64, S = 25, D = 512, H = 8 and F = 2048.
# - By hand: how would the eleven lines change if the norm stood before each sublayer (pre-norm)? Lesson 8.4
#   (`08_4_norm_before_or_after`) has the formula.
#
# **Next**: lesson 10.2 (`10_2_the_backward_pass_of_an_encoder_layer`), the eleven lines in reverse order.

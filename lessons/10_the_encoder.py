# %% [markdown]
# # 10 · The encoder
#
# *About 80 minutes, in five parts. You need: embeddings and positions (lessons 2 and 3), attention (lessons 5
# to 7), residuals, layer norm and the feed-forward network (lessons 8 and 9).*
#
# **After this lesson you can**
#
# - build an encoder layer from the parts of the earlier lessons, and its backward pass;
# - stack layers, and test that padding does not change the result;
# - compute the number of parameters and of multiplications of a layer;
# - compare self-attention with recurrence and convolution by three measures;
# - explain what a second layer can do that a single layer cannot.
#
# `[embedding] → [ENCODER] → memory → [decoder]`  (the left half of Figure 1)

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import MultiHeadAttention, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.functional.masks import padding_mask
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.models.transformer import Encoder, EncoderLayer, TransformerConfig
from npformer.nn import Context, InputEmbedding, Linear
from npformer.nn.module import Module
from npformer.plots import attention_grid, curves
from npformer.training.optimizer import Adam

rng = np.random.default_rng(10)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16

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
# The diagram shows one **encoder layer** with its two **sublayers**. B is the number of sentences, S the
# number of tokens, D the length of a vector, and F the width of the feed-forward network. Each sublayer has
# a residual connection, which adds the input of the sublayer to its output. A layer norm follows.
#
# ```text
# ids (B, S) ──▶ embedding × √D, + positions ──▶ x (B, S, D)
#
# x (B, S, D) ─┬─▶ self-attention ──▶ m (B, S, D) ──▶ + ──▶ norm₁ ──▶ a (B, S, D)
#              └──────────── residual ────────────────▲
#
# a (B, S, D) ─┬─▶ linear ──▶ h (B, S, F) ──▶ ReLU ──▶ linear ──▶ f (B, S, D) ──▶ + ──▶ norm₂ ──▶ y
#              └───────────────────────────── residual ───────────────────────────▲       (B, S, D)
# ```

# %% [markdown]
# This lesson has five parts. The first one computes a layer forward, and the second one backward. The third
# part builds the whole encoder. The fourth part compares self-attention with other layers, and the last one
# asks why several layers are needed.
#
# ## The input
#
# We use two sentences. The shorter one is padded with the id 0. The input of the encoder is the embedding
# of each token, multiplied by √D, plus the vector of its position (lessons 2 and 3).

# %%
vocabulary = ["·", "the", "animal", "was", "too", "tired", "it", "slept"]
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
# We take a layer of the package, with D = 12, H = 3 heads of width K = 4, and F = 20. Its gains and biases
# are random, because with their initial values 1 and 0 mistakes could remain hidden (lesson 8). The layer
# has eight parts with two parameters each. We give each part a short name.

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
    "norm1": "self_residual.norm",
    "ff1": "feed_forward.inner",
    "ff2": "feed_forward.outer",
    "norm2": "feed_forward_residual.norm",
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
    (gain, bias), c = w[short], row - row.mean()
    return gain * c / math.sqrt((c * c).mean() + 1e-5) + bias


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
# The next cell computes the same for all tokens of all sentences. It has eleven lines, and each of them
# calls a function of an earlier lesson. Each line keeps its cache, because the backward pass needs it. We
# number the lines, so that we can refer to them below.

# %%
q, c_q = F.linear(x, *w["q"])  # (B, S, D)                               1
k, c_k = F.linear(x, *w["k"])  # (B, S, D)                               2
v, c_v = F.linear(x, *w["v"])  # (B, S, D)                               3
qh, kh, vh = (F.split_heads(part, 3) for part in (q, k, v))  # (B, H, S, K)  4
z, c_z = F.attention(qh, kh, vh, mask)  # (B, H, S, K)                   5
m, c_o = F.linear(F.merge_heads(z), *w["o"])  # (B, S, D)                6
a, c_1 = F.layer_norm(x + m, *w["norm1"])  # (B, S, D)                   7
h, c_f = F.linear(a, *w["ff1"])  # (B, S, F)                             8
h, c_r = F.relu(h)  # (B, S, F)                                          9
f, c_g = F.linear(h, *w["ff2"])  # (B, S, D)                            10
y, c_2 = F.layer_norm(a + f, *w["norm2"])  # (B, S, D)                  11

y_package, layer_cache = layer.forward(x, mask)
print("slowly           ", animal[:3])
print("in eleven lines  ", y[0, 1, :3])
print("with the package ", y_package[0, 1, :3])

# %% tags=["check"]
assert_allclose(y[0, 1], animal, rtol=1e-9)
assert_allclose(y, y_package, rtol=1e-12)

# %% [markdown]
# **Question.** In how many of the eleven lines is $x$ used, and in how many is $a$ used?
#
# <details><summary>Answer</summary>
# $x$ is used in four lines: 1, 2, 3 and 7. $a$ is used in two lines: 8 and 11. So the gradient of $x$ has
# four terms, and the gradient of $a$ has two.
# </details>
#
# *This is a good place for a break. The next part derives the backward pass.*
#
# ## Backward: the eleven lines in reverse order
#
# In which order must the gradients be computed? An array may pass on its gradient only when this gradient
# is complete. This is the case when all lines that use the array have added their terms. If we go through
# the eleven lines from the last to the first, this is always true. The lines that use an array stand below
# the line that computes it, so their turn comes first.
#
# **Question.** Which lines must have their turn before the gradient of $a$ may be passed on by line 7?
#
# <details><summary>Answer</summary>
# Lines 11 and 8, because both use $a$.
# </details>

# %% [markdown]
# We begin with the feed-forward half. Let $ds$ be the gradient of the sum inside a norm. The symbol ← means
# that a term is added.
#
# - Line 11, $y = \mathrm{norm}_2(a + f)$: the backward pass of the norm gives $ds$. Both terms of the sum
#   get it: $da = ds$ and $df = ds$.
# - Line 10, $f = h W_2 + b_2$: $dh = df\, W_2^\top$.
# - Line 9, the ReLU: $dh$ remains where $h > 0$, and becomes 0 elsewhere.
# - Line 8, $h = a W_1 + b_1$: $da$ ← $dh\, W_1^\top$.
#
# Now $da$ has both of its terms, so we may go on to the attention half:
#
# - Line 7, $a = \mathrm{norm}_1(x + m)$: the norm gives a new $ds$. Again $dx = ds$ and $dm = ds$.
#
# **Question.** After line 7, is the gradient $dx$ complete?
#
# <details><summary>Answer</summary>
# No. $x$ is also used in lines 1, 2 and 3, for queries, keys and values. Their three terms are still
# missing.
# </details>

# %% [markdown]
# The remaining lines belong to the attention:
#
# - Line 6, $m = \mathrm{merge}(z)\, W_o + b_o$: $dz = \mathrm{split}(dm\, W_o^\top)$, because the backward
#   pass of the merge is the split (lesson 7).
# - Line 5, attention: $dq$, $dk$ and $dv$ in each head (lesson 5).
# - Line 4, the split: its backward pass merges the gradients of all heads.
# - Lines 3, 2 and 1 add three terms to $dx$.
#
# Together, with $du_1$ for the $ds$ of line 7 and $du_2$ for the $ds$ of line 11:
#
# $$\begin{aligned}
# da &= du_2 + dh\, W_1^\top \\
# dx &= du_1 + dq\, W_q^\top + dk\, W_k^\top + dv\, W_v^\top
# \end{aligned}$$
#
# The gradients of the parameters of a linear layer are those of lesson 0: $dW = x^\top dy$ and
# $db = \sum dy$.

# %% [markdown]
# Each line of the next cell belongs to the forward line with the same number. The dictionary `grads`
# collects the gradients of the parameters. A line such as `dx, *grads["q"] = …` stores the first gradient
# in `dx`, and the other two in a list.

# %%
dy = rng.standard_normal(y.shape)  # (B, S, D)
grads = {}
ds, *grads["norm2"] = F.layer_norm_backward(dy, c_2)  # 11
da, df = ds, ds
dh, *grads["ff2"] = F.linear_backward(df, c_g)  # 10
dh = F.relu_backward(dh, c_r)  # 9
term, *grads["ff1"] = F.linear_backward(dh, c_f)  # 8
da = da + term
ds, *grads["norm1"] = F.layer_norm_backward(da, c_1)  # 7
dx, dm = ds, ds
dz, *grads["o"] = F.linear_backward(dm, c_o)  # 6
dqh, dkh, dvh = F.attention_backward(F.split_heads(dz, 3), c_z)  # 5
dq, dk, dv = F.merge_heads(dqh), F.merge_heads(dkh), F.merge_heads(dvh)  # 4
for short, dpart, cache in (("v", dv, c_v), ("k", dk, c_k), ("q", dq, c_q)):  # 3, 2, 1
    term, *grads[short] = F.linear_backward(dpart, cache)
    dx = dx + term
print("dx", dx.shape, "  first entries", dx[0, 1, :3])

# %% [markdown]
# The layer of the package contains the same lines, distributed over its parts. We compare all 16 parameters
# and print the lengths of their gradients.

# %% tags=["check"]
assert_allclose(dx, layer.backward(dy, layer_cache), rtol=1e-9, atol=1e-12)
for short, long in full.items():
    found = [p.grad for name, p in parameters.items() if name.startswith(long + ".")]
    for ours, package in zip(grads[short], found, strict=True):
        assert_allclose(ours, package, rtol=1e-9, atol=1e-12)
    lengths = [np.linalg.norm(gradient) for gradient in found]
    print(f"{long:28} lengths {lengths[0]:8.3f} {lengths[1]:8.3f}   equal to ours")
assert abs(grads["k"][1]).max() < 1e-13

# %% [markdown]
# One line of this table is remarkable: the gradient of the key's bias is 0.
#
# **Question.** Why does the bias of the keys get no gradient?
#
# <details><summary>Answer</summary>
# Let b be a vector that is added to all keys. Then all scores of a query q rise by the same number, q · b.
# Adding the same number to all scores of a query does not change the softmax. So the loss does not depend
# on this bias.
# </details>
#
# ## The cache is a tree
#
# In the package the caches of the eleven lines are stored in a tree. It has one branch for each part of the
# layer, with the name of this part. So if you know the layer, you can find every number that it computed.

# %%
for name, part in layer.children():
    print(f"layer.{name:22} {type(part).__name__:19} cache.{name:22} ", end="")
    print(type(getattr(layer_cache, name)).__name__)
cache = layer_cache.feed_forward
show(cache)

# %% tags=["check"]
assert_allclose(layer_cache.self_attention.attention.weights, c_z.weights, rtol=1e-12)

# %% [markdown]
# *This is a good place for a break. The next part builds the whole encoder.*
#
# ## The stack
#
# The encoder is a **stack** of N layers. The output of each layer is the input of the next one. In the
# paper, the output of the last layer is the output of the encoder. If the norm stands before each sublayer
# (`norm="pre"`), one more norm follows at the end (lesson 8).
#
# The backward pass goes through the layers from the last to the first. The $dx$ of each layer is the $dy$
# of the layer below it. The output of the encoder is called the **memory**.

# %%
encoder = Encoder(config, rng=rng, dtype=np.float64)
below, caches = x, []
for one in encoder.layers:
    below, cache = one.forward(below, mask)
    caches.append(cache)
dbelow = dy
for one, cache in zip(encoder.layers[::-1], caches[::-1], strict=True):
    dbelow = one.backward(dbelow, cache)

memory, encoder_cache = encoder.forward(x, mask)  # (B, S, D)
weights = encoder_cache.layers[1].self_attention.attention.weights  # (B, H, S, S)
print("memory", memory.shape)
print("encoder_cache.layers[1].self_attention.attention.weights", weights.shape)

# %% tags=["check"]
assert_allclose(below, memory, rtol=1e-12)
assert_allclose(dbelow, encoder.backward(dy, encoder_cache), rtol=1e-12)

# %% [markdown]
# ## Padding does not change the result
#
# "it slept" is in a batch with a longer sentence, so it has three tokens of padding. If the mask works, its
# two vectors must be the same as without padding. We test this by encoding the sentence alone.
#
# The gradient must satisfy a similar condition. The decoder has the same mask and does not attend to
# padding. So the gradient that the encoder receives at padding is 0. Then the gradient of the encoder's
# input must be 0 at padding too.

# %%
alone, _ = encoder.forward(x[1:, :2])  # without padding, without a mask
unmasked, _ = encoder.forward(x)  # with padding, without a mask
print("in the batch, with mask:    difference", abs(memory[1, :2] - alone[0]).max())
print("in the batch, without mask: difference", abs(unmasked[1, :2] - alone[0]).max())

real = (ids > 0)[..., None]  # (B, S, 1)
dx = encoder.backward(dy * real, encoder_cache)
print("any gradient at the padding:", dx[1, 2:].any(), "  at the two tokens:", dx[1, :2].any())

# %% tags=["check"]
assert_allclose(memory[1, :2], alone[0], rtol=1e-9, atol=1e-12)
assert not dx[1, 2:].any()

# %% [markdown]
# The encoder also computes vectors for the padding itself, in each layer. They have no meaning, and no
# token of the sentence attends to them.
#
# ## Check the gradient
#
# We check a whole layer with a mask and with dropout. At each evaluation the dropout masks are drawn from
# the same seed, 7, so that all evaluations use the same function.

# %%
dropping = config.replace(dropout=0.2, attention_dropout=0.2)
report = gradcheck(EncoderLayer(dropping, dtype=np.float64), x, mask=mask, train=True, rng=7)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# Then we check everything from the ids to the memory: embedding, positions and two layers. We do this with
# the norm after each sublayer ("post") and before it ("pre"). The table would be long, so we print only the
# row with the largest error.

# %%


class FromIds(Module):
    """Compute memory = encoder(embedding(ids)), with the mask of the ids."""

    def __init__(self, config, vocab_size, length, rng=None):
        settings = {"dropout": config.dropout, "rng": rng, "dtype": np.float64}
        self.embed = InputEmbedding(vocab_size, config.d_model, length, **settings)
        self.encoder = Encoder(config, rng=rng, dtype=np.float64)

    def forward(self, ids, *, train=False, rng=None):
        context = Context(train, rng)
        x, embedded = self.embed.forward(ids, context)
        memory, cache = self.encoder.forward(x, padding_mask(ids), context)
        return memory, (embedded, cache)

    def backward(self, dmemory, caches):
        self.embed.backward(self.encoder.backward(dmemory, caches[1]), caches[0])


# %% tags=["check"]
for norm in ("post", "pre"):
    model = FromIds(dropping.replace(norm=norm, final_norm=norm == "pre"), 8, 5)
    report = gradcheck(model, ids, train=True, rng=7)
    assert report.ok
    worst = report.worst
    print(f"{norm}: {len(report.rows)} rows; largest error {worst.error:.0e}, in {worst.tensor}")

# %% [markdown]
# ## How many parameters?
#
# The paper uses D = 512 and F = 2048. With biases everywhere, one layer has these parameters:
#
# ```text
# attention       4 (D² + D)              4 · (262,144 + 512)         = 1,050,624
# feed-forward    D F + F + F D + D       2 · 1,048,576 + 2,560       = 2,099,712
# two norms       2 · 2 D                 4 · 512                     =     2,048
#                                         one layer                     3,152,384
# ```
#
# Two thirds of the parameters belong to the feed-forward network. The number of heads does not occur in the
# formulas, because H heads have the width D/H each. The length of the sentence does not occur either. Six
# layers have 18,914,304 parameters.
#
# The cell also counts two presets that have a little less. The preset of *一步步解析Attention is All You
# Need!* has no $W^O$, and the preset of the paper has no biases in attention.

# %%
base = EncoderLayer(TransformerConfig(dropout=0.0), dtype=np.float32)
counts = {name: part.count_parameters() for name, part in base.children()}
for name, number in counts.items():
    print(f"{name:24}{number:12,}")
presets = {}
for preset in ("jianshu-demo", "paper-base"):
    one = EncoderLayer(TransformerConfig.architecture(preset), dtype=np.float32)
    presets[preset] = one.count_parameters()
    print(f"preset {preset:17}{presets[preset]:12,}")

# %% tags=["check"]
assert counts["self_attention"] == 4 * (512**2 + 512) == 1_050_624
assert counts["feed_forward"] == 512 * 2048 + 2048 + 2048 * 512 + 512 == 2_099_712
assert base.count_parameters() == 3_152_384
assert 6 * base.count_parameters() == 18_914_304
assert_allclose(counts["feed_forward"] / base.count_parameters(), 2 / 3, atol=0.01)
assert presets == {"jianshu-demo": 2_889_728, "paper-base": 3_150_336}

# %% [markdown]
# *This is a good place for a break. The next part compares self-attention with other layers.*
#
# ## Why self-attention?
#
# Other layers also turn $n$ vectors into $n$ vectors. Before the Transformer, recurrent layers and
# convolutions were used. Section 4 of the paper compares them by three measures:
#
# - the number of multiplications;
# - the number of operations that must be computed **in sequence**, one after the other;
# - the length of the **path** between two tokens: how many operations lie between a token and another token
#   that depends on it.
#
# The text below is the paper's table 1, without the row of an attention that is restricted to neighbours.
# O(n) means: proportional to n, for large n. The kernel of the convolution has width k.
#
# ```text
#                       multiplications      in sequence      longest path
# self-attention           O(n² d)               O(1)             O(1)
# recurrent                O(n d²)               O(n)             O(n)
# convolution, width k     O(k n d²)             O(1)             O(log_k n), dilated
# ```

# %% [markdown]
# We test the table by counting. For this we need the three layers in their simplest form. A **recurrent
# layer** goes through the tokens one by one. It keeps a state $h$, and each state is computed from the
# token and the state before it. A **convolution** of width 3 computes each output from a token and its two
# neighbours:
#
# $$h_t = \tanh(x_t W + h_{t-1} U)$$
#
# $$y_t = x_{t-1} W_{-1} + x_t W_0 + x_{t+1} W_1$$
#
# The function `times` multiplies two matrices and counts the multiplications.

# %%
total = 0


def times(a, b):
    """Return a @ b, and add its multiplications to the total."""
    global total
    y = a @ b
    total += y.size * a.shape[-1]  # each entry of y is a sum over the columns of a
    return y


def self_attention(x):
    """Shapes: x (T, D) -> (T, D), with two products."""
    weights, _ = F.softmax(times(x, x.T) / math.sqrt(x.shape[-1]))  # (T, S)
    return times(weights, x)


def recurrent(x, weight, again):
    """Shapes: x (T, D), weight and again (D, D) -> the last state (D,)."""
    h = 0 * x[0]
    for row in x:
        h = np.tanh(times(row, weight) + times(h, again))
    return h


def convolution(x, weights):
    """Shapes: x (T, D), weights (3, D, D) -> (T, D)."""
    edge = 0 * x[:1]
    padded = np.concatenate([edge, x, edge])  # (T + 2, D)
    return sum(times(padded[o : o + len(x)], weights[o]) for o in range(3))


# %%
d = 64
three = rng.standard_normal((3, d, d)) / math.sqrt(d)
layers = {
    "self-attention": self_attention,
    "recurrent": lambda x: recurrent(x, three[0], three[1]),
    "convolution": lambda x: convolution(x, three),
}
counted = {}
print("    n " + "".join(f"{name:>16}" for name in layers))
for n in (16, 64, 256):
    counted[n] = []
    for function in layers.values():
        total = 0
        function(rng.standard_normal((n, d)))
        counted[n].append(total)
    print(f"{n:5} " + "".join(f"{count:16,}" for count in counted[n]))

# %% tags=["check"]
for n, found in counted.items():
    assert found == [2 * n * n * d, 2 * n * d * d, 3 * n * d * d]

# %% [markdown]
# The table is right, and we know its constants now: $2n^2 d$, $2nd^2$ and $3nd^2$. Attention has fewer
# multiplications than recurrence as long as $n < d$.
#
# Now to the second measure. For every $n$, attention needs only two products in sequence. The recurrent
# layer needs $n$ steps, and none of them can begin before the previous one has ended. This is why attention
# can be trained on a GPU on all tokens at once.
#
# The attention of the table has no weight matrices. A real layer has them, and a feed-forward network too.
# Its eleven lines contain eight matrix products. Those of q, k and v can be computed at the same time, so
# six products remain in sequence.
#
# How large is the share of the $n^2$ term in a real layer? We count it for a sentence of 25 tokens in the
# sizes of the paper.

# %%
matrices = [p.value for p in base.parameters() if p.value.ndim == 2]  # Wq Wk Wv Wo W1 W2
linear_part = 25 * sum(matrix.size for matrix in matrices)  # each entry once for each token
quadratic = 2 * 25**2 * 512  # scores and weighted sums, over all heads
print(f"linear layers {linear_part:,} multiplications, 2n²d {quadratic:,}: ", end="")
print(f"{quadratic / (linear_part + quadratic):.1%} of all")

# %% tags=["check"]
assert linear_part == 25 * (4 * 512**2 + 2 * 512 * 2048) == 25 * 12 * 512**2
assert_allclose(quadratic / (linear_part + quadratic), 0.008, atol=0.0005)

# %% [markdown]
# The $n^2$ term is only 0.8 % of the work.
#
# **Question.** The linear layers need $4nd^2$ multiplications for attention and $2nd \cdot 4d$ for the
# feed-forward network. For which $n$ does the term $2n^2 d$ become larger?
#
# <details><summary>Answer</summary>
# Together the linear layers need $12 n d^2$. The equation $2n^2 d = 12 n d^2$ gives $n = 6d$, which is
# 3,072 tokens in the sizes of the paper.
# </details>
#
# ### The path
#
# The third measure is the path between two tokens. We measure it by an experiment. We change token $j$
# places before the last one a little, along a direction $v$ of length 1. Then we see how far the output of
# the last token moves. We do this for a recurrent layer, for a stack of six convolutions, and for one layer
# of self-attention. All have random weights. The derivative is computed with a complex step (lesson 0).

# %%


def six_convolutions(x):
    for _ in range(6):
        x = convolution(x, three / math.sqrt(3))
    return x


attending = MultiHeadAttention(d, 4, rng=rng, dtype=np.float64)
compared = {
    "recurrent": layers["recurrent"],
    "6 convolutions": lambda x: six_convolutions(x)[-1],
    "self-attention": lambda x: attending.forward(x[None])[0][0, -1],
}
n = 32
x_n, v = rng.standard_normal((2, n, d))  # (T, D)
v /= np.linalg.norm(v, axis=-1, keepdims=True)
effects = np.zeros((3, n))  # how far the output moves, the last token first
for row, (name, function) in zip(effects, compared.items(), strict=True):
    for j in range(n):
        moved = x_n.astype(complex)
        moved[n - 1 - j] += 1e-20j * v[n - 1 - j]
        row[j] = np.linalg.norm(function(moved).imag) / 1e-20
    print(f"{name:15} 1 place before {row[1]:.0e}   10 places {row[10]:.0e}   31 {row[31]:.0e}")

# %% tags=["plot"]
figure = curves(
    np.where(effects > 0, effects, np.nan),
    np.arange(n),
    labels=list(compared),
    xlabel="distance of the changed token from the last one",
    ylabel="how far the last output moves",
    yscale="log",
)
caption = "The effect of a token on the last output, by its distance"
show_figure(figure, "10_path", caption)

# %% [markdown]
# - **Self-attention** has an effect between .005 and .5 at every distance. Every token is one step away.
#   Its effect depends on its contents, and not on its place.
# - **The recurrent layer** multiplies by a matrix $j$ times, and each time a part of the effect is lost.
#   From a distance of 31 places, less than a millionth arrives.
# - **Six convolutions** of width 3 reach exactly six places. Beyond them the effect is exactly 0.
#
# The same is true of the gradient. Let $J$ be the matrix of the derivatives of the output by the input. The
# experiment computes $J v$, and the backward pass computes $J^\top dy$ with the same matrix. A token
# without an effect on the output gets no gradient.

# %% [markdown]
# **Question.** How many convolutions of width 3 connect the two ends of 32 tokens?
#
# <details><summary>Answer</summary>
# 31 convolutions, because each of them reaches one place further. If the neighbours stand 1, 3, 9 and 27
# places apart, four convolutions are enough. Such convolutions are called **dilated**.
# </details>

# %% tags=["check"]
assert 0.005 < effects[2].min() < effects[2].max() < 0.5
assert 1e-8 < effects[0][31] < 1e-6
assert effects[1][6] > 0
assert (effects[1][7:] == 0).all()
assert 1 + 3 + 9 < 31 < 1 + 3 + 9 + 27
print("the numbers of the text agree with the picture")

# %% [markdown]
# *This is a good place for a break. The last part asks why several layers are needed.*
#
# ## What a second layer is for
#
# In one layer every token can attend to every other token. So why do we need more than one? We choose a
# task in which a token must first find out *where* to attend. A sentence consists of four to eight letters,
# and the encoder must return them in reverse order. Let $n$ be the number of letters. Then the output at
# place $t$ must be the letter at place $n - 1 - t$. But no letter knows $n$. It must be found out first.
#
# The network is an encoder with a linear layer on top, which computes a score for each letter from each
# vector. The loss is the cross-entropy of lesson 12, and Adam is an optimizer (lesson 13). Here you can
# take both as given.

# %%


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
# We train one network with one layer and one with two layers. Then both get the letters a b c d e f.

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
# right place. **A layer can use what the layer below has found out to decide where to attend.** Also note
# that attention weights show where a head attends, but not what it has learned there (lesson 15).
#
# **Your turn.** In the terminal, look at the cache of the last pass with `s encoder_cache`. Then train
# three layers with `!learn(3)[0][-20:].mean()`.

# %% [markdown]
# ## What the documents say
#
# > - **The parts of a layer.** *一步步解析Attention is All You Need!* has no $W^O$ in its code, although
# >   its text and figure have it. So its layer lacks 512² + 512 numbers and has 2,889,728 in the paper's
# >   sizes. Its feed-forward network consists of two convolutions of width 1, which is the same (lesson 9).
# >   Residual connection and norm are inside each function.
# > - **The norm.** *Attention机制详解（二）* quotes an encoder with the norm before each sublayer and one
# >   more at the end. The other documents have the norm after each sublayer (lesson 8). The gradient check
# >   above passes with both.
# > - **Biases.** We count biases everywhere. The paper's formulas have none in attention, which gives
# >   3,150,336 parameters for each layer.
# > - **The mask.** *The components of the Transformer* gives one mask to every layer, as here. *一步步解析*
# >   computes it again in each layer from sums of vectors (lesson 6 shows how this fails).
# > - *图解transformer* says that an encoder works on the whole sequence in parallel. This is true within a
# >   layer. But the layers must wait for one another: six products in sequence for each layer, and 36 in
# >   the paper's encoder.

# %% [markdown]
# ## Summary
#
# - An encoder layer is self-attention and a feed-forward network, each with a residual connection and a
#   norm.
# - Backward, the lines are taken in reverse order; x gets four terms, and a gets two.
# - With a mask, padding changes neither the vectors of the tokens nor their gradients.
# - Self-attention connects any two tokens in one step, and needs no computation in sequence over the
#   tokens.
# - A second layer can decide where to attend by means of what the first layer has found out.

# %% [markdown]
# ## Questions
#
# **Question.** Six of the eleven lines are linear layers with a weight matrix. Which of them could be
# computed at the same time?
#
# <details><summary>Answer</summary>
# Lines 1, 2 and 3, which compute q, k and v. All others need the result of a line before them.
# </details>
#
# **Question.** Why does a convolution of width 3 not solve the task of the reversed letters in one layer?
#
# <details><summary>Answer</summary>
# The first output needs the last letter, which is up to seven places away. One convolution reaches one
# place.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 10` lists the exercises. Each is graded by the gradient checker.
#
# - `npformer exercise start encoder-layer-backward`: the eleven lines in six calls, with the norm after or
#   before.
# - `npformer exercise start encoder-backward`: N layers and perhaps a norm, from the last to the first.
# - By hand: 4 · 512 of the 3,152,384 parameters of a layer are the biases of attention. Which 512 of them
#   could be left out without any change of the output, whatever their values are?
# - By hand: double n, then double d. By which factor does each term of 2n²d + 12nd² grow?
#
# **Next**, lesson 11: the decoder, which may not see later tokens, and attends to the memory of the
# encoder.

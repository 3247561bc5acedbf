# %% [markdown]
# # 10 · The encoder
#
# *30 minutes to read, 4 seconds to run. Attention with its masks and heads (lessons 5, 6 and 7), layer norm
# and residuals (lesson 8), the feed-forward network (lesson 9), embeddings and positions (2 and 3).*
#
# **The question.** All parts are there. An encoder layer is two of them, one after the other; an encoder is
# N such layers. How does a gradient find its way back through eleven operations in which x is used four
# times? And why N layers: what can the second do that the first cannot?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.functional import (
    attention,
    attention_backward,
    cross_entropy,
    cross_entropy_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    merge_heads,
    relu,
    relu_backward,
    softmax,
    split_heads,
)
from npformer.functional.masks import padding_mask
from npformer.functional.positions import sinusoids
from npformer.learn.course import show_figure
from npformer.models.transformer import Encoder, EncoderLayer, TransformerConfig
from npformer.nn import Context, InputEmbedding, Linear
from npformer.nn.module import Module
from npformer.plots import attention_grid, curves
from npformer.training.optimizer import Adam

rng = np.random.default_rng(10)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# *Attention Is All You Need*, section 3.1:
#
# > The encoder is composed of a stack of N = 6 identical layers. Each layer has two sub-layers. The first
# > is a multi-head self-attention mechanism, and the second is a simple, position-wise fully connected
# > feed-forward network.
#
# "Identical" means of the same form: each of the six has weights of its own.
#
# ## What goes in
#
# Two sentences as ids, the shorter one padded with 0. Each word's vector, times √D, plus that of its
# position:

# %%
words = ["·", "the", "animal", "was", "too", "tired", "it", "slept"]
ids = np.array([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])  # (B, S)
enter = InputEmbedding(8, 12, 5, rng=rng, dtype=np.float64)
x, _ = enter.forward(ids)  # (B, S, D)

position = sinusoids(5, 12)  # (S, D)
for sentence in range(2):
    for s in range(5):
        vector = math.sqrt(12) * enter.tokens.weight.value[ids[sentence, s]] + position[s]
        assert_allclose(x[sentence, s], vector, rtol=1e-12)
mask = padding_mask(ids)  # (B, 1, 1, S): no word looks at padding
print(" ".join(words[i] for i in ids[1]), "   may be looked at:", mask[1, 0, 0])

# %% [markdown]
# ## One layer, slowly: what becomes of one word
#
# A layer of the package, D = 12, H = 3 heads of K = 4, F = 20, its gains and biases random (lesson 8 says
# why). Each of its eight parts has two parameters, and gets a short name here:

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
w = {
    short: [p.value for name, p in parameters.items() if name.startswith(long + ".")]
    for short, long in full.items()
}
for short, (first, second) in w.items():
    print(f"{short:6} {full[short]:27} {first.shape} and {second.shape}")

# %% [markdown]
# The word "animal" of the first sentence, alone, one head and one word to look at after the other. This is
# all that an encoder layer does to a word:

# %%


def mapped(row, short):
    weight, bias = w[short]
    return row @ weight + bias


def normed(row, short):
    (gain, bias), c = w[short], row - row.mean()
    return gain * c / math.sqrt((c * c).mean() + 1e-5) + bias


def layer_of_word(rows, t):
    """What becomes of word t of a sentence. Shapes: rows (S, D) -> (D,)."""
    joined = np.zeros(12)
    for head in range(3):
        mine = slice(4 * head, 4 * head + 4)  # this head's four numbers of twelve
        query = mapped(rows[t], "q")[mine]
        e = [math.exp(query @ mapped(row, "k")[mine] / math.sqrt(4)) for row in rows]
        for s, row in enumerate(rows):
            joined[mine] += e[s] / sum(e) * mapped(row, "v")[mine]
    a = normed(rows[t] + mapped(joined, "o"), "norm1")
    h = np.maximum(0, mapped(a, "ff1"))  # (F,)
    return normed(a + mapped(h, "ff2"), "norm2")


animal = layer_of_word(x[0], 1)
print(animal[:4])

# %% [markdown]
# ## The same for all words: eleven lines of pure pairs
#
# Each line keeps its cache. x occurs in four of them, a (what comes out of the first half) in two.

# %%
q, c_q = linear(x, *w["q"])  # (B, S, D)                              1
k, c_k = linear(x, *w["k"])  # (B, S, D)                              2
v, c_v = linear(x, *w["v"])  # (B, S, D)                              3
qh, kh, vh = (split_heads(part, 3) for part in (q, k, v))  # (B, H, S, K)   4
z, c_z = attention(qh, kh, vh, mask)  # (B, H, S, K)                  5
m, c_o = linear(merge_heads(z), *w["o"])  # (B, S, D)                 6
a, c_1 = layer_norm(x + m, *w["norm1"])  # (B, S, D)                  7
h, c_f = linear(a, *w["ff1"])  # (B, S, F)                            8
h, c_r = relu(h)  # (B, S, F)                                         9
f, c_g = linear(h, *w["ff2"])  # (B, S, D)                           10
y, c_2 = layer_norm(a + f, *w["norm2"])  # (B, S, D)                 11

assert_allclose(y[0, 1], animal, rtol=1e-9)
y_package, layer_cache = layer.forward(x, mask)
assert_allclose(y, y_package, rtol=1e-12)
print("slowly, in eleven lines, and the package:", y[0, 1, :3])

# %% [markdown]
# ## Backward: the eleven lines, read from below
#
# One rule gives the order. **An array may pass its gradient on when everything that used the array has
# spoken.** Read the eleven lines from the last to the first, and it is kept by itself: whatever uses an
# array stands below the line that made it.
#
# ```math
#      forward                          backward, from below
#  7   a = norm(x + m)                  ds = norm1's of da           dx = ds,   dm = ds
#  8   h = a W₁ + b₁                    da = ds + dh W₁ᵀ
#  9   h = max(0, h)                    dh = dh where h > 0
# 10   f = h W₂ + b₂                    dh = df W₂ᵀ
# 11   y = norm(a + f)                  ds = norm2's of dy           da = ds,   df = ds
# ```
#
# a was used twice, in lines 8 and 11, so its gradient has two terms (lesson 8: round, and through). Only when
# both are there may line 7 be asked. Its sum again gives two: dx, which waits, and dm, which goes on:
#
# ```math
#  1   q = x Wq + bq                    dx = dx + dq Wqᵀ
#  2   k = x Wk + bk                    dx = dx + dk Wkᵀ
#  3   v = x Wv + bv                    dx = dx + dv Wvᵀ
#  4   heads = split(q), …              dq = merge(dq of all heads), …
#  5   z = softmax(q kᵀ c) v            dq, dk, dv of each head (lesson 5)
#  6   m = merge(z) Wo + bo             dz = split(dm Woᵀ)
# ```

# %% [markdown]
# (Each map's own gradients are those of lesson 0: dW = xᵀ dy, db = Σ dy.) In code, each line the mirror of
# the forward line with its number. `grads` collects what the parameters hear: `dx, *grads["q"] = …` puts
# the first gradient into dx and the other two into a list.

# %%
dy = rng.standard_normal(y.shape)  # (B, S, D)
grads = {}
ds, *grads["norm2"] = layer_norm_backward(dy, c_2)  # 11
da, df = ds, ds
dh, *grads["ff2"] = linear_backward(df, c_g)  # 10
dh = relu_backward(dh, c_r)  # 9
through, *grads["ff1"] = linear_backward(dh, c_f)  # 8
da = da + through
ds, *grads["norm1"] = layer_norm_backward(da, c_1)  # 7
dx, dm = ds, ds
dz, *grads["o"] = linear_backward(dm, c_o)  # 6
dqh, dkh, dvh = attention_backward(split_heads(dz, 3), c_z)  # 5
dq, dk, dv = merge_heads(dqh), merge_heads(dkh), merge_heads(dvh)  # 4
for short, dpart, cache in (("v", dv, c_v), ("k", dk, c_k), ("q", dq, c_q)):  # 3, 2, 1
    through, *grads[short] = linear_backward(dpart, cache)
    dx = dx + through

# %% [markdown]
# The package's layer has the same lines, spread over its parts. Compare them parameter by parameter:

# %%
assert_allclose(dx, layer.backward(dy, layer_cache), rtol=1e-9, atol=1e-12)
for short, long in full.items():
    found = [p.grad for name, p in parameters.items() if name.startswith(long + ".")]
    for mine, theirs in zip(grads[short], found, strict=True):
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    lengths = [np.linalg.norm(gradient) for gradient in found]
    print(f"{long:28} lengths {lengths[0]:8.3f} {lengths[1]:8.3f}   as ours")
assert abs(grads["k"][1]).max() < 1e-13

# %% [markdown]
# One number in this table is no accident: the key's bias hears *nothing*. The same vector b added to all keys
# adds to all scores of a query the same number, q · b, and a softmax does not notice.
#
# ## The cache is a tree, and the tree is the layer's
#
# In the package the eleven caches hang on one tree, with a branch for each part of the layer, under the
# part's own name. So whoever knows the layer can find anything that it computed:

# %%
for name, part in layer.children():
    print(f"layer.{name:22} {type(part).__name__:19} cache.{name:22} ", end="")
    print(type(getattr(layer_cache, name)).__name__)
assert_allclose(layer_cache.self_attention.attention.weights, c_z.weights, rtol=1e-12)

cache = layer_cache.feed_forward
show(cache)

# %% [markdown]
# ## The stack
#
# N layers, each fed with what the one below made. In the paper nothing stands on top of the last; with
# `norm="pre"` one more norm does (lesson 8). Backward: the layers from the last to the first, and each
# layer's dx is the dy of the one below.

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
assert_allclose(below, memory, rtol=1e-12)
assert_allclose(dbelow, encoder.backward(dy, encoder_cache), rtol=1e-12)
weights = encoder_cache.layers[1].self_attention.attention.weights  # (B, H, S, S)
print("encoder_cache.layers[1].self_attention.attention.weights", weights.shape)

# %% [markdown]
# ## Padding leaves no trace
#
# "it slept" stands in a batch with a longer sentence, so three columns of padding follow it. Encode it
# alone, and its two vectors must be the same. And if the decoder does not look at padding (it has the same
# mask), the gradient that comes to padding is 0 at the top, and must be 0 at the bottom:

# %%
alone, _ = encoder.forward(x[1:, :2])  # without padding, without a mask
careless, _ = encoder.forward(x)  # with padding, without a mask
print("in the batch, masked:  off by", abs(memory[1, :2] - alone[0]).max())
print("in the batch, no mask: off by", abs(careless[1, :2] - alone[0]).max())
assert_allclose(memory[1, :2], alone[0], rtol=1e-9, atol=1e-12)

real = (ids > 0)[..., None]  # (B, S, 1)
dx = encoder.backward(dy * real, encoder_cache)
assert not dx[1, 2:].any()
print("gradient at the padding:", dx[1, 2:].any(), "  at the two words:", dx[1, :2].any())

# %% [markdown]
# The padding's own three vectors are computed all the same, layer after layer, from themselves and the two
# words. They are garbage, and nobody asks for them.
#
# ## Is it right?
#
# The gradient check of a whole layer, with the mask, and with dropout drawn from seed 7 at every evaluation:

# %%
dropping = config.replace(dropout=0.2, attention_dropout=0.2)
report = gradcheck(EncoderLayer(dropping, dtype=np.float64), x, mask=mask, train=True, rng=7)
print(report)
assert report.ok

# %% [markdown]
# Then everything of this lesson at once, from ids to memory: embedding, positions, two layers, the norm
# after or before. That is too long a table to print; its worst row says enough.

# %%


class FromIds(Module):
    """memory = encoder(embedding(ids)), with the mask of the ids."""

    def __init__(self, config, vocab_size, length, rng=None):
        settings = {"dropout": config.dropout, "rng": rng, "dtype": np.float64}
        self.enter = InputEmbedding(vocab_size, config.d_model, length, **settings)
        self.encoder = Encoder(config, rng=rng, dtype=np.float64)

    def forward(self, ids, *, train=False, rng=None):
        context = Context(train, rng)
        x, entered = self.enter.forward(ids, context)
        memory, cache = self.encoder.forward(x, padding_mask(ids), context)
        return memory, (entered, cache)

    def backward(self, dmemory, caches):
        self.enter.backward(self.encoder.backward(dmemory, caches[1]), caches[0])


for norm in ("post", "pre"):
    model = FromIds(dropping.replace(norm=norm, final_norm=norm == "pre"), 8, 5)
    report = gradcheck(model, ids, train=True, rng=7)
    assert report.ok
    worst = report.worst
    print(f"{norm}: {len(report.rows)} rows; worst {worst.tensor}, error {worst.error:.0e}")

# %% [markdown]
# ## How many numbers?
#
# With D = 512 and F = 2048, biases everywhere:
#
# ```math
# attention       4 (D² + D)              4 · (262,144 + 512)         = 1,050,624
# feed-forward    D F + F + F D + D       2 · 1,048,576 + 2,560       = 2,099,712
# two norms       2 · 2 D                 4 · 512                     =     2,048
#                                         one layer                     3,152,384
# ```
#
# The number of heads does not occur: H heads of D/H. Nor does the length of the sentence. Two thirds sit in
# the feed-forward network. Six layers have 18,914,304. With the presets of *一步步解析* (no Wᵒ) and of the
# paper (no biases in attention) a layer has a little less.

# %%
base = EncoderLayer(TransformerConfig(dropout=0.0), dtype=np.float32)
counts = {name: part.count_parameters() for name, part in base.children()}
for name, number in counts.items():
    print(f"{name:24}{number:12,}")
assert counts["self_attention"] == 4 * (512**2 + 512) == 1_050_624
assert counts["feed_forward"] == 512 * 2048 + 2048 + 2048 * 512 + 512 == 2_099_712
assert base.count_parameters() == 3_152_384
assert 6 * base.count_parameters() == 18_914_304
assert_allclose(counts["feed_forward"] / base.count_parameters(), 2 / 3, atol=0.01)

for preset, expected in (("jianshu-demo", 2_889_728), ("paper-base", 3_150_336)):
    one = EncoderLayer(TransformerConfig.architecture(preset), dtype=np.float32)
    print(f"preset {preset:17}{one.count_parameters():12,}")
    assert one.count_parameters() == expected

# %% [markdown]
# ## Why self-attention?
#
# Section 4 of the paper compares three layers that turn n vectors into n vectors, by three measures: the
# multiplications; how many operations must wait for one another; and the path, how many operations lie
# between a word and one that it depends on. Its table 1, without the row of an attention that is restricted
# to neighbours:
#
# ```math
#                       multiplications      in sequence      longest path
# self-attention           O(n² d)               O(1)             O(1)
# recurrent                O(n d²)               O(n)             O(n)
# convolution, width k     O(k n d²)             O(1)             O(log_k n), dilated
# ```
#
# The rivals in their plainest form: hₜ = tanh(xₜ W + hₜ₋₁ U), and yₜ = Σₒ xₜ₊ₒ Wₒ over the neighbours o = −1,
# 0, 1. Do not believe the table; count:

# %%
total = 0


def times(a, b):
    """a @ b; adds its multiplications to the total."""
    global total
    y = a @ b
    total += y.size * a.shape[-1]  # each number of y is a sum over the columns of a
    return y


def self_attention(x):
    """Shapes: x (T, D) -> (T, D), by two products."""
    weights, _ = softmax(times(x, x.T) / math.sqrt(x.shape[-1]))  # (T, S)
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


d = 64
three = rng.standard_normal((3, d, d)) / math.sqrt(d)
layers = {
    "self-attention": self_attention,
    "recurrent": lambda x: recurrent(x, three[0], three[1]),
    "convolution": lambda x: convolution(x, three),
}
print("    n " + "".join(f"{name:>16}" for name in layers))
for n in (16, 64, 256):
    counts = []
    for f in layers.values():
        total = 0
        f(rng.standard_normal((n, d)))
        counts.append(total)
    print(f"{n:5} " + "".join(f"{count:16,}" for count in counts))
    assert counts == [2 * n * n * d, 2 * n * d * d, 3 * n * d * d]

# %% [markdown]
# The table is right, with its constants: 2n²d, 2nd² and 3nd². Attention has fewer multiplications than
# recurrence while n < d. And whatever n is, it takes two products, one after the other, where the recurrent
# layer takes n steps, of which none can begin before the last has ended. That is why one can train it on a
# GPU, on all words at once.
#
# But the table's attention has no weights. A real layer projects, and has a feed-forward network. Its eleven
# lines hold eight products, of which q, k and v need not wait for one another. For a sentence of 25 words in
# the paper's sizes:

# %%
matrices = [p.value for p in base.parameters() if p.value.ndim == 2]  # Wq Wk Wv Wo W1 W2
linear_part = 25 * sum(matrix.size for matrix in matrices)  # each number once for each word
quadratic = 2 * 25**2 * 512  # scores and weighted sums, over all heads
print(f"linear maps {linear_part:,} multiplications, 2n²d {quadratic:,}: ", end="")
print(f"{quadratic / (linear_part + quadratic):.1%} of all")
assert linear_part == 25 * (4 * 512**2 + 2 * 512 * 2048) == 25 * 12 * 512**2
assert_allclose(quadratic / (linear_part + quadratic), 0.008, atol=0.0005)

# %% [markdown]
# The famous n² is 0.8 % of the work. It overtakes the linear maps where 2n²d = 4nd² + 2nd·4d, at n = 6d:
# 3,072 words.
#
# **The path.** Move the word j places before the last one a little, along a direction v of length 1. How far
# does the last word's output move? Once through a recurrent layer, once through six convolutions, once
# through one self-attention, all untrained; by a complex step (lesson 0). What is not heard on the way up
# gets no gradient on the way down: it is the same matrix of slopes, J v here and Jᵀ dy there.

# %%


def six_convolutions(x):
    for _ in range(6):
        x = convolution(x, three / math.sqrt(3))
    return x


attending = MultiHeadAttention(d, 4, rng=rng, dtype=np.float64)
ways = {
    "recurrent": layers["recurrent"],
    "6 convolutions": lambda x: six_convolutions(x)[-1],
    "self-attention": lambda x: attending.forward(x[None])[0][0, -1],
}
n = 32
x_n, v = rng.standard_normal((2, n, d))  # (T, D)
v /= np.linalg.norm(v, axis=-1, keepdims=True)
loud = np.zeros((3, n))  # how far the output moves, the last word first
for row, (name, way) in zip(loud, ways.items(), strict=True):
    for j in range(n):
        moved = x_n.astype(complex)
        moved[n - 1 - j] += 1e-20j * v[n - 1 - j]
        row[j] = np.linalg.norm(way(moved).imag) / 1e-20
    print(f"{name:15} 1 place before {row[1]:.0e}   10 places {row[10]:.0e}   31 {row[31]:.0e}")

# %%
figure = curves(
    np.where(loud > 0, loud, np.nan),
    np.arange(n),
    labels=list(ways),
    xlabel="places from the word that moved to the last one",
    ylabel="how far the last one's output moves",
    yscale="log",
)
show_figure(figure, "10_path", "How far a word is heard in one layer, and in six convolutions")

# %% [markdown]
# Attention is level: between .005 and .5 everywhere. Each word is one step away, and its share depends on
# what it says and not on where it stands. In the recurrent layer j matrices lie between, and at each some of
# it is lost: from 31 places back less than a millionth arrives. Six convolutions of width 3 end after six
# places, to the bit. To join the ends of 32 words takes 31 of them, or four whose neighbours stand 1, 3, 9
# and 27 places apart.

# %%
assert 0.005 < loud[2].min() < loud[2].max() < 0.5
assert 1e-8 < loud[0][31] < 1e-6
assert loud[1][6] > 0
assert (loud[1][7:] == 0).all()
assert 1 + 3 + 9 < 31 < 1 + 3 + 9 + 27
print("the numbers of the text are those of the picture")

# %% [markdown]
# ## What a second layer is for
#
# In one layer every word hears from every other. Then what are more layers for? Give an encoder a task in
# which *where to look* must first be found out: to say a word of four to eight letters backwards. Place t
# wants the letter at place n − 1 − t, and no letter knows n, the length of its word. The last linear map
# makes of each vector a score for each letter.

# %%


def some_words(rng, count=32):
    """Words of 4 to 8 letters, ids 4 .. 11, and the same backwards. Shapes: -> (B, S) twice."""
    place, n = np.arange(8), rng.integers(4, 9, (count, 1))  # (S,), (B, 1)
    ids = np.where(place < n, rng.integers(4, 12, (count, 8)), 0)  # (B, S)
    mirrored = np.take_along_axis(ids, np.maximum(n - 1 - place, 0), 1)  # (B, S)
    return ids, np.where(place < n, mirrored, 0)


def learn(n_layers):
    """Returns the share of right letters at each of 300 steps, and the network."""
    rng, log, net = np.random.default_rng(1), [], Module()
    sizes = {"d_model": 32, "d_ff": 64, "n_heads": 2, "n_layers": n_layers}
    net.body = FromIds(TransformerConfig(**sizes, dropout=0.0), 12, 8, rng)
    net.output = Linear(32, 12, rng=rng, dtype=np.float64)
    adam = Adam(net)
    for step in range(300):
        ids, backwards = some_words(rng)
        memory, at_body = net.body.forward(ids)  # (B, S, D)
        logits, at_output = net.output.forward(memory)  # (B, S, V)
        _, at_loss = cross_entropy(logits, backwards)  # padding, id 0, does not count
        log.append((logits.argmax(-1) == backwards)[backwards > 0].mean())
        net.zero_grad()
        dmemory = net.output.backward(cross_entropy_backward(1.0, at_loss), at_output)
        net.body.backward(dmemory, at_body)
        adam.step(5e-3 * min(1, (step + 1) / 50))
    return np.array(log), net


# %%
learned = {n_layers: learn(n_layers) for n_layers in (1, 2)}
shown = np.array([[4, 5, 6, 7, 8, 9, 0, 0]])  # (B, S) abcdef, and two of padding
for n_layers, (log, net) in learned.items():
    memory, (_, encoder_cache) = net.body.forward(shown)
    logits, _ = net.output.forward(memory)
    said = "".join("····abcdefgh"[i] for i in logits[0, :6].argmax(-1))
    share = log[-20:].mean()
    print(f"layers: {n_layers}   right at the end: {share:.0%}   abcdef backwards: {said}")
assert learned[1][0][-20:].mean() < 0.6
assert learned[2][0][-20:].mean() > 0.95
assert said == "fedcba"

# %%
figure = curves(
    np.stack([log.reshape(-1, 10).mean(1) for log, _ in learned.values()]),
    10 * np.arange(30) + 5,
    labels=["one layer", "two layers"],
    ylabel="share of letters that are right",
)
show_figure(figure, "10_layers", "Backwards, with the length unknown: one layer stops at half")

# %% [markdown]
# Two layers do it; one stops at half of the letters. Its query at place t is made of a letter and of t, its
# keys likewise; so, but for what the mask hides, it looks at the same places in a word of four letters and
# in one of eight. Whom do the two layers look at? The cache of the last forward pass has the weights of
# both:

# %%
weights = [at.self_attention.attention.weights[0] for at in encoder_cache.layers]  # (H, S, S)
letters = [*"abcdef", "·", "·"]
figure = attention_grid(np.stack(weights), letters, letters, mask=padding_mask(shown)[0, 0])
show_figure(figure, "10_attention", "Layer 0 looks about; layer 1 looks at the mirrored place")

mirrored = weights[1][:, np.arange(6), 5 - np.arange(6)]  # (H, 6) on the diagonal from e to a
print("layer 1, weights at the mirrored place:", mirrored.min(), "to", mirrored.max())
assert mirrored.min() > 0.5

# %% [markdown]
# Layer 1 is plain to see. But its queries must know n, and layer 0 looks about without a plan that one
# could see. So ask the vectors. From that of the *first letter* guess n by a linear map, fitted by least
# squares to 400 words and tried on 400 others: from what enters layer 0, and from what enters layer 1.
# (Both are in the cache: `projections[0].x` is what the queries were made of.) By chance one is right in 1
# of 5.

# %%
sample, _ = some_words(np.random.default_rng(2), 800)
lengths = (sample > 0).sum(1)  # (B,) 4 to 8
_, (_, sampled) = net.body.forward(sample)
for number, at in enumerate(sampled.layers):
    first = at.self_attention.projections[0].x[:, 0]  # (B, D) the first letters' vectors
    rows = np.concatenate([first, np.ones((800, 1))], 1)  # (B, D + 1)
    fitted = np.linalg.lstsq(rows[:400], np.eye(9)[lengths[:400]], rcond=None)[0]
    right = ((rows[400:] @ fitted).argmax(-1) == lengths[400:]).mean()
    print(f"length read at the first letter of what enters layer {number}: {right:.0%} right")
    assert right < 0.35 if number == 0 else right > 0.7

# %% [markdown]
# So layer 0 brought the length to the first letter, by an average that one would not have guessed from the
# picture, and layer 1 used it to look at the right place. **What one layer finds out, the next can look
# with.** And a map of weights shows where a head looked, not what it learned there (lesson 15).
#
# ## Exercises
#
# `npformer exercise list 10` has them, each graded by the gradient checker.
#
# - `npformer exercise start encoder-layer-backward`: the eleven lines in six calls, norm after or before.
# - `npformer exercise start encoder-backward`: N layers and perhaps a norm, from the last to the first.
# - By hand: 4 · 512 of a layer's 3,152,384 numbers are attention's biases. Which 512 of them could be left
#   out without any change of the output, whatever their values?
# - By hand: double n, then double d. By how much does each term of 2n²d + 12nd² grow?
#
# To try now, in the terminal: `s encoder_cache`, and `!learn(3)[0][-20:].mean()`.
#
# ## Where the documents differ
#
# - **The way through a layer.** *一步步解析Attention is All You Need!* has no Wᵒ in its code (its prose and
#   figure have), so its layer lacks 512² + 512 numbers: 2,889,728 in the paper's sizes. Its feed-forward
#   network is two convolutions of width 1, which is the same (lesson 9). Residual and norm are inside each
#   function.
# - **The norm.** *Attention机制详解（二）* quotes an encoder with the norm before each sublayer and one
#   more at the end, the others one with the norm after (lesson 8). The gradient check above passes with
#   both.
# - **Biases.** Our count has them everywhere. The paper's formulas have none in attention: 3,150,336 a layer.
# - **The mask.** *The components of the Transformer* hands one mask to every layer, as here. *一步步解析*
#   works it out anew in each layer from sums of vectors (lesson 6 shows how that fails).
# - *图解transformer* says that an encoder works on the whole sequence in parallel. Within a layer; the layers
#   still wait for one another: six products each, 36 in the paper's encoder.
#
# **Next**, lesson 11: the decoder, which may not look ahead, and reads what the encoder wrote.

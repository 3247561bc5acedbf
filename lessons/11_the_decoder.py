# %% [markdown]
# # 11 · The decoder
#
# *About 85 minutes, in four parts. You need: masks (lesson 6), heads (lesson 7), the encoder layer (lesson
# 10).*
#
# **After this lesson you can**
#
# - explain how a decoder can be trained on all positions at once without seeing the answers;
# - find out with a test whether a decoder sees tokens that it has to predict;
# - derive the backward pass of a decoder layer, with one gradient for the encoder;
# - explain why the encoder's gradient is a sum over all decoder layers.
#
# `[embedding] → [encoder] → memory → [DECODER] → [linear] → [softmax]`  (the right half of Figure 1)

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, assert_no_leak, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data.dataset import reverse_task
from npformer.data.loader import make_batch
from npformer.functional.masks import causal_mask, padding_mask
from npformer.generation import greedy
from npformer.learn.course import show_figure
from npformer.models.transformer import Decoder, DecoderLayer, EncoderLayer, shifted_right
from npformer.models.transformer.model import TransformerCache
from npformer.plots import Grid, attention_grid, cell_product, curves, mask_map
from npformer.training.optimizer import Adam, cosine

rng = np.random.default_rng(11)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16

# %% [markdown]
# ## What the decoder does
#
# The encoder has turned the source sentence into one vector for each token. Its output is called the
# **memory**. The **decoder** reads the memory and writes the translation, one token after the other. Before
# each token it knows the source and the tokens that it has written so far.
#
# A decoder layer has three sublayers. The diagram shows one layer, with B sentences, S source tokens, T
# target tokens and vectors of length D. The first sublayer is **masked self-attention** among the target
# tokens. The second one is **encoder-decoder attention**: its queries come from the decoder, and its keys
# and values from the memory. The third one is the feed-forward network of lesson 9.
#
# ```text
#   target_in (B, T)                                    source (B, S)
#        │ embedding, positions                              │ embedding, positions, encoder
#        ▼                                                   ▼
#   x (B, T, D) ──▶ masked self-attention ──▶ add & norm     memory (B, S, D)
#                                                 │          │
#                   x₁ (B, T, D) ◀────────────────┘          │ keys, values
#                        │ queries                           │
#                        └──▶ encoder-decoder attention ◀────┘ ──▶ add & norm
#                                                                      │
#                   x₂ (B, T, D) ◀─────────────────────────────────────┘
#                        └──▶ feed-forward ──▶ add & norm ──▶ y (B, T, D) ──▶ next layer
# ```

# %% [markdown]
# There is a difficulty. During training, all positions of the decoder are computed at once, from a sentence
# that contains the answers.
#
# **Question.** What would a decoder learn if it could read the answers?
#
# <details><summary>Answer</summary>
# It would learn to copy them. This gives a very low loss, but it is useless for translation, where there
# are no answers to copy.
# </details>
#
# How do we prevent the decoder from reading the answers? The first part of this lesson answers this
# question. The second part trains models in which one of the two protections is missing. The third part
# derives the backward pass. The last part adds up the gradients of several layers.
#
# ## Shifted right
#
# Section 3.1 of *Attention Is All You Need* says about the decoder's self-attention:
#
# > This masking, combined with fact that the output embeddings are offset by one position, ensures that the
# > predictions for position i can depend only on the known outputs at positions less than i.
#
# So there are two measures: a mask, and an offset by one position.
#
# **Question.** A causal mask lets position $t$ attend to the inputs 0 to $t$. Suppose that the input is $y$
# itself, without an offset. What can position $t$ see?
#
# <details><summary>Answer</summary>
# It can see $y_t$, the token that it has to predict.
# </details>

# %% [markdown]
# To find the right offset, we write down what is to be predicted. The model should give the probability of
# a whole translation $y$ of a source $x$. The chain rule of probability writes it as a product with one
# factor for each token:
#
# $$\begin{aligned}
# p(y \mid x) &= p(y_0 \mid x) \cdot p(y_1 \mid y_0, x) \cdot p(y_2 \mid y_0, y_1, x) \cdots \\
# &= \prod_t p(y_t \mid y_0, \ldots, y_{t-1}, x)
# \end{aligned}$$
#
# Factor $t$ needs the tokens $y_0, \ldots, y_{t-1}$, and it must not use $y_t$. Now recall the causal mask
# of lesson 6. Row $t$ may attend to the inputs 0 to $t$, including its own. So input $t$ must be $y_{t-1}$,
# the last token that row $t$ may know. In other words, every token of $y$ moves **one place to the right**.
# Place 0 becomes free, and a **start symbol** is put there.

# %%
vocabulary = ["<PAD>", "<UNK>", "<S>", "</S>", "i", "am", "a", "student"]
y = np.array([[4, 5, 6, 7, 3]])  # (B, T) the wanted output of the decoder
target_in = shifted_right(y, 2)  # (B, T) its input; 2 is the start symbol <S>
may_attend = causal_mask(5, y)  # (T, T)

reads, says = ([vocabulary[i] for i in row] for row in (target_in[0], y[0]))
for t in range(5):
    print(f"position {t}   may attend to  {' '.join(reads[: t + 1]):22} must predict  {says[t]}")

# %% tags=["check"]
assert target_in[0].tolist() == [2, *y[0, :-1]]

# %% [markdown]
# The demo of *一步步解析Attention is All You Need!* does the same. The input of its decoder is
# `[2, y[:-1]]`, where 2 is the start symbol. The figure shows the mask and the shift together.

# %% tags=["plot"]
figure = mask_map(may_attend, [f"predicts {token}" for token in says], reads)
caption = "With shift and mask, no row can attend to the token that it has to predict"
show_figure(figure, "11_reads", caption)

# %% [markdown]
# ## Teacher forcing: T predictions in one pass
#
# When the model translates, input $t$ is the token that the model itself has chosen at position $t - 1$. So
# a translation of T tokens needs T passes, one after the other.
#
# During training we do not wait for the model's choice. Input $t$ is always the *correct* token, whatever
# the model would have chosen. This is called **teacher forcing**. All inputs are known beforehand, so a
# single pass gives T predictions and T losses.
#
# Is this pass an approximation? No. In a decoder with a causal mask, no row depends on the inputs that
# follow it. So row $t$ is the same as in a pass over the first $t + 1$ inputs alone. The cell tests this.

# %%
source = np.array([[4, 5, 6, 3]])  # (B, S) je suis étudiant </S>
tiny = TransformerConfig(9, 9, d_model=8, d_ff=12, n_heads=2, n_layers=2, dropout=0.0)
model = Transformer(tiny, rng=np.random.default_rng(0), dtype=np.float64)
logits, _ = model.forward(source, target_in)  # (B, T, V)
computed, difference = 0, 0.0
for t in range(5):
    alone, _ = model.forward(source, target_in[:, : t + 1])  # (B, t + 1, V)
    difference = max(difference, abs(alone[:, t] - logits[:, t]).max())
    computed += alone.shape[1]
print(f"five passes: {computed} positions; one pass: 5 positions; difference {difference:.0e}")

# %% tags=["check"]
assert_allclose(difference, 0, atol=1e-9)

# %% [markdown]
# **Question.** Five passes compute 1 + 2 + 3 + 4 + 5 = 15 positions. How many positions are computed for a
# sentence of T tokens?
#
# <details><summary>Answer</summary>
# T (T + 1) / 2, against T positions with teacher forcing. Lesson 14 shows how translation can avoid this.
# </details>
#
# ## Both are needed
#
# We now see what happens if the shift or the mask is missing. For this we need a forward pass in which
# the causal mask can be switched off. The next cell contains `model.forward` line by line, with such a
# switch. The encoder has no causal mask, because the whole source is known. Only its padding is masked.

# %%


def run(model, source, target_in, causal=True):
    """Compute model.forward; causal=False leaves the causal mask out."""
    source_mask = padding_mask(source)  # (B, 1, 1, S)
    mask = padding_mask(target_in)  # (B, 1, 1, T)
    if causal:
        mask = mask & causal_mask(target_in.shape[1], target_in)  # (B, 1, T, T)
    x, of_source = model.source.forward(source)  # (B, S, D)
    memory, of_encoder = model.encoder.forward(x, source_mask)  # (B, S, D)
    x, of_target = model.target.forward(target_in)  # (B, T, D)
    x, of_decoder = model.decoder.forward(x, memory, mask, source_mask)  # (B, T, D)
    logits, of_output = model.output.forward(x)  # (B, T, V)
    parts = (of_source, of_encoder, of_target, of_decoder, of_output)
    return logits, TransformerCache(*parts, packings=(None, None))  # nothing is packed here


difference = abs(run(model, source, target_in)[0] - logits).max()
print("largest difference from the package:", difference)

# %% tags=["check"]
assert_allclose(run(model, source, target_in)[0], logits, rtol=1e-12)

# %% [markdown]
# If an output can depend on the token that it has to predict, we speak of a **leak**. A leak can be found
# without any training. We change token $s$ of $y$ and see which rows of the logits change. Row $t$ predicts
# $y_t$, so it may change only if $s < t$. The function `assert_no_leak` does this for every $s$. It
# compares the outputs bit by bit.

# %%
variants = {
    "shift and mask": (True, True),
    "mask, no shift": (False, True),
    "shift, no mask": (True, False),
}
before = np.tri(5, k=-1, dtype=bool)  # (T, T) True where s < t


def leak(shift, masked):
    def forward(y):
        return run(model, source, shifted_right(y, 2) if shift else y, masked)

    try:
        assert_no_leak(forward, y, before)
    except AssertionError as error:
        return str(error).split(",")[0]
    return "no leak"


for name, variant in variants.items():
    print(f"{name}: {leak(*variant)}")

# %% tags=["check"]
for variant in variants.values():
    expected = "no leak" if all(variant) else "output 0 moves when token 0 changes"
    assert leak(*variant) == expected

# %% [markdown]
# Only the variant with both measures has no leak. Without the shift, position $t$ *reads* $y_t$ as its own
# input. Without the mask, position $t$ can attend to position $t + 1$, whose input is $y_t$.
#
# *This is a good place for a break. The next part shows what a leak does to training.*
#
# ## What a leak does to training
#
# We use a language that can be learned in a second. A sentence has one to four letters, and its translation
# consists of the same letters in reverse order. Three models start from the same weights and see the same
# batches. Each of them uses one of the three variants. The loss is the cross-entropy of lesson 12, and Adam
# is an optimizer that lesson 13 explains. Here you can take both as given.

# %%
pairs = {tuple(s): (s, t) for s, t in reverse_task(3000, length=4, vocab=10, rng=rng)}
pairs = list(pairs.values())  # each sentence once
held_out, known = pairs[:100], pairs[100:]
test = make_batch(held_out)  # source (B, S), target_in and target_out (B, T)
small = TransformerConfig(10, 10, d_model=24, d_ff=48, n_heads=2, n_layers=1, dropout=0.0)


def loss_of(model, batch, shift, masked):
    read = batch.target_in if shift else batch.target_out  # (B, T)
    logits, cache = run(model, batch.source, read, masked)
    loss, loss_cache = F.cross_entropy(logits, batch.target_out, pad_id=0)
    return loss, loss_cache, cache


# %%
def learn(variant, start=1, steps=250):
    """Return a trained model and the loss of each step."""
    model, draw = Transformer(small, rng=np.random.default_rng(start)), np.random.default_rng(2)
    adam, rate, losses = Adam(model), cosine(0.02, steps, 20), np.zeros(steps)
    for step in range(steps):
        batch = make_batch([known[i] for i in draw.integers(0, len(known), 64)])
        losses[step], loss_cache, cache = loss_of(model, batch, *variant)
        model.zero_grad()
        model.backward(F.cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(rate(step + 1))
    return model, losses


# %% [markdown]
# The **held-out** sentences are not used for training. For each model we compute the loss on them. Then the
# model translates them token by token (`greedy`, lesson 14), and we count the correct translations.
#
# **Question.** Which of the three models will have the lowest loss, and which will translate best?
#
# <details><summary>Answer</summary>
# The models that can see the answers have a low loss. But in a translation there are no answers to see. So
# only the model with shift and mask can translate.
# </details>

# %%
letters = [*vocabulary[:4], "a", "b", "c", "d", "e", "f"]
four = next(i for i, (s, _) in enumerate(held_out) if len(set(s)) == 4)  # four different letters
models, losses, held_out_loss, right = {}, {}, {}, {}
for name, variant in variants.items():
    models[name], losses[name] = learn(variant)
    held_out_loss[name] = loss_of(models[name], test, *variant)[0]
    said = greedy(models[name], test.source, max_length=6)
    right[name] = np.mean([ids == want for ids, (_, want) in zip(said, held_out, strict=True)])
    asked, answer = ("".join(letters[i] for i in ids) for ids in (held_out[four][0], said[four]))
    score = f"held-out loss {held_out_loss[name]:.4f}, correct {right[name]:4.0%}"
    print(f"{name}: {score}   {asked} → {answer}")

# %% tags=["check"]
others = min(held_out_loss["shift and mask"], held_out_loss["shift, no mask"])
assert held_out_loss["mask, no shift"] < 0.1 * others
assert right["shift and mask"] > 0.6
assert max(right["mask, no shift"], right["shift, no mask"]) < 0.2

# %% tags=["plot"]
steps = np.stack(list(losses.values()))  # (3, 250)
figure = curves(steps, labels=list(variants), ylabel="loss of the step", yscale="log")
caption = "The lowest curve belongs to the model that has learned to copy its input"
show_figure(figure, "11_leaks", caption)

# %% [markdown]
# Without the shift, the loss is by far the lowest, on held-out sentences too. But almost no translation is
# correct, because the model has learned to copy its input. We can show this: if we give it *random*
# letters, it predicts these letters.

# %%
noise = rng.integers(4, 10, (100, 4))  # (B, 4)
copied = (run(models["mask, no shift"], test.source, noise)[0].argmax(-1) == noise).mean()
print(f"no shift: predicts the letter that it reads in {copied:.0%} of all cases")

# %% tags=["check"]
assert copied > 0.95

# %% [markdown]
# The model without the mask is harder to understand. So we train two such models from different initial
# weights and test each of them in three ways:
#
# 1. It reads the correct tokens without the mask, as in its training. How many predictions are right?
# 2. It reads the same tokens, but now with the causal mask. How many predictions are right?
# 3. It reads random letters without the mask. How often does it predict the letter to its right? Six
#    letters are possible, so pure chance would give one in six.
#
# At the end each model translates the held-out sentences.

# %%
real, with_start = test.target_out != 0, np.insert(noise, 0, 2, axis=1)  # (B, T), (B, 5)
results = []
for start in (1, 2):
    model = models["shift, no mask"] if start == 1 else learn((True, False), start)[0]
    both = [run(model, test.source, test.target_in, causal)[0] for causal in (False, True)]
    free, masked = ((z.argmax(-1) == test.target_out)[real].mean() for z in both)
    follows = (run(model, test.source, with_start, False)[0][:, :-1].argmax(-1) == noise).mean()
    said = greedy(model, test.source, max_length=6)
    whole = np.mean([ids == want for ids, (_, want) in zip(said, held_out, strict=True)])
    print(f"no mask, start {start}: right {free:.0%}, with the mask {masked:.0%}", end="; ")
    print(f"letter to its right {follows:.0%}; translated {whole:.0%}")
    results.append((free, masked, whole))

# %% tags=["check"]
for free, masked, whole in results:
    assert masked < free - 0.15
    assert whole < 0.2

# %% [markdown]
# Both models use what stands to their right. If it is hidden, fewer predictions are right. But *how* they
# use it can differ from one start to the next, as the third number shows. So do not draw conclusions about
# all such models from a single one. During translation there is nothing to the right yet, and so both
# models fail.
#
# **A low loss of a decoder proves nothing by itself.** Translate a sentence, or run the leak test.
#
# What does the correct model attend to? The cell takes the attention weights for one held-out sentence. H
# is the number of heads.

# %%
_, cache = run(models["shift and mask"], test.source[[four]], test.target_in[[four]])
within = cache.decoder[0].self_attention.attention.weights  # (1, H, T, T)
across = cache.decoder[0].cross.attention.weights  # (1, H, T, S)
mirrored = across[0, :, range(4), [3, 2, 1, 0]].mean()  # <S> at the last letter, and so on
print(f"mean weight on the letter to be predicted, four rows and two heads: {mirrored:.2f}")

# %% tags=["plot"]
reads = [letters[i] for i in test.target_in[four]]
keys = [letters[i] for i in test.source[four]]
figure = attention_grid(within, reads, reads, mask=may_attend)
caption = "Self-attention: each position attends to itself and to those before it"
show_figure(figure, "11_self", caption)
figure = attention_grid(across, reads, keys)
caption = "Encoder-decoder attention: each position attends to the letter that comes next"
show_figure(figure, "11_cross", caption)

# %% tags=["check"]
assert (within[..., ~may_attend] == 0).all()
assert mirrored > 0.5

# %% [markdown]
# In the second picture, most of the weight lies on a diagonal from the upper right to the lower left. The
# decoder reads the source from its end to its beginning, as the task requires.
#
# *This is a good place for a break. The next part derives the backward pass of a decoder layer.*
#
# ## Encoder-decoder attention
#
# The source enters the decoder only through the second sublayer. Section 3.2.3 of the paper says:
#
# > the queries come from the previous decoder layer, and the memory keys and values come from the output of
# > the encoder.
#
# Let $X$ be the vectors of the decoder and $M$ the memory. Each head computes
#
# $$\begin{aligned}
# Q &= X W_Q + b_Q \\
# K &= M W_K + b_K \\
# V &= M W_V + b_V
# \end{aligned}$$

# %% [markdown]
# Let $d_k$ be the width of a head. Then $Q$ has the shape (T, $d_k$). The keys and the values have the
# shape (S, $d_k$). They are computed from the same memory, but with two different matrices, so they are
# different.
#
# **Question.** What is the shape of the attention weights of one head?
#
# <details><summary>Answer</summary>
# (T, S). There is one row for each target token, and one column for each source token. This is the shape of
# the last picture.
# </details>
#
#
# The next cell computes the sublayer with loops. It uses a layer of the package, whose gains and biases are
# random. With their usual initial values, 1 and 0, mistakes could remain hidden.

# %%
T, S, D, H, K = 5, 4, 8, 2, 4  # K is the width of a head, d_k
layer = DecoderLayer(tiny, rng=rng, dtype=np.float64)
p = {name: parameter.value for name, parameter in layer.named_parameters()}
for value in p.values():
    value += 0.3 * rng.standard_normal(value.shape)
x = rng.standard_normal((1, T, D))  # (B, T, D)
memory = rng.standard_normal((1, S, D))  # (B, S, D)

slow = np.zeros((T, D))  # the heads side by side
for h in range(H):
    own = slice(h * K, (h + 1) * K)  # this head's columns
    q = x[0] @ p["cross.query.weight"][:, own] + p["cross.query.bias"][own]  # (T, K)
    k = memory[0] @ p["cross.key.weight"][:, own] + p["cross.key.bias"][own]  # (S, K)
    v = memory[0] @ p["cross.value.weight"][:, own] + p["cross.value.bias"][own]  # (S, K)
    for t in range(T):
        e = [np.exp(q[t] @ k[s] / np.sqrt(K)) for s in range(S)]
        for s in range(S):
            slow[t, own] += e[s] / sum(e) * v[s]
slow = slow @ p["cross.output.weight"] + p["cross.output.bias"]  # (T, D)
print("largest difference:", abs(slow - layer.cross.forward(x, memory)[0][0]).max())

# %% tags=["check"]
assert_allclose(slow, layer.cross.forward(x, memory)[0][0], rtol=1e-9)
assert abs(k - v).max() > 1

# %% [markdown]
# ### Backward
#
# The backward pass of attention gives $dQ$, $dK$ and $dV$ (lesson 5). Each of these arrays was computed by
# a linear layer, so its gradient passes through a transposed matrix (lesson 0). $Q$ was computed from $X$.
# Both $K$ and $V$ were computed from $M$, so $M$ gets the sum of two gradients:
#
# $$\begin{aligned}
# dX &= dQ\; W_Q^\top \\
# dM &= dK\; W_K^\top + dV\; W_V^\top
# \end{aligned}$$
#
# The gradient $dX$ stays in the decoder. The gradient $dM$ leaves the decoder and goes to the encoder.
#
# Self-attention is the special case $M = X$. There all three gradients add up. So one pair of functions is
# enough for both kinds of attention. The cell writes them with functions from lessons 0, 5 and 7.

# %%
g = {}  # gradients, under the names of p


def affine(name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def affine_backward(name, dy, cache):
    dx, g[name + ".weight"], g[name + ".bias"] = F.linear_backward(dy, cache)
    return dx


# %%
def attend(name, x, m, mask=None):
    """Compute attention with queries from x (B, T, D), keys and values from m (B, S, D)."""
    q, of_q = affine(name + ".query", x)  # (B, T, D)
    k, of_k = affine(name + ".key", m)  # (B, S, D)
    v, of_v = affine(name + ".value", m)  # (B, S, D)
    z, of_z = F.attention(F.split_heads(q, H), F.split_heads(k, H), F.split_heads(v, H), mask)
    y, of_y = affine(name + ".output", F.merge_heads(z))  # (B, T, D)
    return y, (of_q, of_k, of_v, of_z, of_y)


def attend_backward(name, dy, cache):
    """Return dx and dm separately."""
    of_q, of_k, of_v, of_z, of_y = cache
    dz = F.split_heads(affine_backward(name + ".output", dy, of_y), H)  # (B, H, T, K)
    dq, dk, dv = (F.merge_heads(d) for d in F.attention_backward(dz, of_z))  # (B, T or S, D)
    dx = affine_backward(name + ".query", dq, of_q)  # (B, T, D)
    dm = affine_backward(name + ".key", dk, of_k)  # (B, S, D)
    return dx, dm + affine_backward(name + ".value", dv, of_v)


# %% [markdown]
# ## A whole decoder layer, forward
#
# Each of the three sublayers has a residual connection and a layer norm (lesson 8). We write down one line
# for each operation. Then we can go through the lines in reverse order for the backward pass.
#
# $$\begin{aligned}
# a &= \mathrm{attend}(x, x) \\
# x_1 &= \mathrm{norm}_1(x + a) \\
# c &= \mathrm{attend}(x_1, M) \\
# x_2 &= \mathrm{norm}_2(x_1 + c) \\
# f &= \max(0,\, x_2 W_1 + b_1)\, W_2 + b_2 \\
# y &= \mathrm{norm}_3(x_2 + f)
# \end{aligned}$$
#
# The first `attend` has the causal mask: position $t$ may attend to the keys 0 to $t$.

# %%
norms = [f"{name}_residual.norm" for name in ("self", "cross", "feed_forward")]
weights = [(p[name + ".gain"], p[name + ".bias"]) for name in norms]
a, of_a = attend("self_attention", x, x, may_attend)
x1, of_x1 = F.layer_norm(x + a, *weights[0])  # (B, T, D), and so are all but h
c, of_c = attend("cross", x1, memory)
x2, of_x2 = F.layer_norm(x1 + c, *weights[1])
h, of_h = affine("feed_forward.inner", x2)  # (B, T, F)
f, of_f = affine("feed_forward.outer", np.maximum(0, h))
made, of_made = F.layer_norm(x2 + f, *weights[2])

y_package, of_layer = layer.forward(x, memory, may_attend)
cache = of_layer.cross.attention
show(cache)

# %% tags=["check"]
assert_allclose(made, y_package, rtol=1e-9)

# %% [markdown]
# This is the cache of the encoder-decoder attention. It contains five queries and four keys and values.
# There is no mask, because this memory contains no padding.
#
# ## Backward, from the last line to the first
#
# We need to know how often each array is used, because its gradient has one term for each use. A sum such
# as $x_2 + f$ gives its gradient unchanged to both terms.
#
# **Question.** How often does the layer use $x_2$, $x_1$ and $x$?
#
# <details><summary>Answer</summary>
# $x_2$ is used twice: in the sum, and as the input of the feed-forward network. $x_1$ is used twice: in the
# sum, and for the queries of the encoder-decoder attention. $x$ is used four times: in the sum, and for
# queries, keys and values of the self-attention.
# </details>

# %% [markdown]
# Let $u_1 = x + a$, $u_2 = x_1 + c$ and $u_3 = x_2 + f$ be the inputs of the three norms. Let
# $h = x_2 W_1 + b_1$, and let $\mathrm{norm}_i'$ be the backward pass of a norm (lesson 8). From the last
# line to the first:
#
# $$\begin{aligned}
# du_3 &= \mathrm{norm}_3'(dy) \\
# dx_2 &= du_3 + [(du_3\, W_2^\top) \odot (h > 0)]\, W_1^\top \\
# du_2 &= \mathrm{norm}_2'(dx_2) \\
# dx_1 &= du_2 + dQ\, W_Q^\top \\
# dM &= dK\, W_K^\top + dV\, W_V^\top \\
# du_1 &= \mathrm{norm}_1'(dx_1) \\
# dx &= du_1 + dQ\, W_Q^\top + dK\, W_K^\top + dV\, W_V^\top
# \end{aligned}$$
#
# In the lines of $dx_1$ and $dM$, the matrices and gradients are those of the encoder-decoder attention. In
# the last line they are those of the self-attention. The gradient $dM$ leaves the layer.

# %%
dy = rng.standard_normal((1, T, D))  # the gradient from the layer above
du3, *dnorm3 = F.layer_norm_backward(dy, of_made)
dh = affine_backward("feed_forward.outer", du3, of_f) * (h > 0)  # (B, T, F)
dx2 = du3 + affine_backward("feed_forward.inner", dh, of_h)
du2, *dnorm2 = F.layer_norm_backward(dx2, of_x2)
dqueries, dmemory = attend_backward("cross", du2, of_c)  # (B, T, D), (B, S, D)
dx1 = du2 + dqueries
du1, *dnorm1 = F.layer_norm_backward(dx1, of_x1)
dx = du1 + sum(attend_backward("self_attention", du1, of_a))
for name, grads in zip(norms, (dnorm1, dnorm2, dnorm3), strict=True):
    g[name + ".gain"], g[name + ".bias"] = grads

dx_package, dmemory_package = layer.backward(dy, of_layer)
print("dx:     largest difference from the package", abs(dx - dx_package).max())
print("dmemory: largest difference from the package", abs(dmemory - dmemory_package).max())

# %% tags=["check"]
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(dmemory, dmemory_package, rtol=1e-9)
for name, parameter in layer.named_parameters():
    assert_allclose(g[name], parameter.grad, rtol=1e-9, atol=1e-12)
assert len(g) == 26
print("the gradients of all 26 parameters agree too")

# %% [markdown]
# Compare this with `DecoderLayer.backward` in `npformer/models/transformer/layers.py`. It has three blocks,
# and the last sublayer comes first. The gradient of the memory leaves in the middle block.
#
# **Question.** Why does $dx_1$ have two terms, although attention returns three gradients?
#
# <details><summary>Answer</summary>
# Only the queries of the encoder-decoder attention come from $x_1$. The gradients of keys and values go to
# the memory. The other term of $dx_1$ comes from the residual connection.
# </details>
#
# *This is a good place for a break. The last part is about several decoder layers and one memory.*
#
# ## One memory, N readers
#
# *一步步解析Attention is All You Need!* says, above its picture of both stacks, that the output of the last
# encoder layer goes to *every* decoder layer. So the memory is used N times.
#
# ```text
#             ┌──▶ decoder layer 0 ──▶ dM₁ ──┐
# memory M ───┼──▶ decoder layer 1 ──▶ dM₂ ──┼──▶ dM = dM₁ + dM₂ + dM₃ ──▶ encoder
# (B, S, D)   └──▶ decoder layer 2 ──▶ dM₃ ──┘    (B, S, D)
# ```

# %% [markdown]
# Why is the gradient of the memory a sum? Imagine that each layer has its own copy of the memory,
# $M_1, \ldots, M_N$. Layer $n$ gives its copy the gradient $dM_n$. The effect of $M_n$ on all layers above
# is already contained in the $dy$ that layer $n$ receives from above. But the copies are in fact one array.
# A small change $\delta$ of $M$ is the same change of all copies. Let $\langle \cdot, \cdot \rangle$ be the
# sum of all products of corresponding entries. Then the loss changes by
#
# $$\begin{aligned}
# \delta L &= \langle dM_1, \delta \rangle + \ldots + \langle dM_N, \delta \rangle \\
# &= \langle dM_1 + \ldots + dM_N,\, \delta \rangle
# \end{aligned}$$
#
# So the gradient of the memory is the sum over all layers:
#
# $$dM = \sum_n dM_n$$
#
# This is the rule of lesson 0: if the forward pass copies an array, the backward pass adds the gradients.

# %%
three = tiny.replace(n_layers=3)
decoder = Decoder(three, rng=np.random.default_rng(3), dtype=np.float64)
_, cache = decoder.forward(x, memory, may_attend)
parts, d = [None] * 3, dy
for n in (2, 1, 0):  # the top layer first
    d, parts[n] = decoder[n].backward(d, cache[n])  # (B, T, D), (B, S, D)
dmemory = parts[0] + parts[1] + parts[2]
difference = abs(dmemory - decoder.backward(dy, cache)[1]).max()
print("largest difference from the package:", difference)

# %% tags=["check"]
assert_allclose(dmemory, decoder.backward(dy, cache)[1], rtol=1e-9)

# %% tags=["plot"]
named = {"layer 0": parts[0], "layer 1": parts[1], "layer 2": parts[2], "dM": dmemory}
cells = [Grid(m[0, :, :4], name, "v", numbers=True, shade=True) for name, m in named.items()]
figure = cell_product([cells[0], "+", cells[1], "+", cells[2], "=", cells[3]])
caption = "Four source tokens, 4 of 8 entries each: the encoder gets the sum over three layers"
show_figure(figure, "11_memory", caption)

# %% [markdown]
# A common mistake is to write `=` instead of `+=` in the loop over the layers. Then each layer overwrites
# the gradient of the layers above it, and only the gradient of layer 0 remains. We check such a decoder,
# once with a single layer and once with three.

# %%


class Forgetful(Decoder):
    def backward(self, dy, cache):
        for n in reversed(range(len(self.layers))):
            dy, dmemory = self[n].backward(dy, cache[n])  # = and not +=
        return dy, dmemory


one, wrong = (Forgetful(c, rng=rng, dtype=np.float64) for c in (tiny.replace(n_layers=1), three))
one_report = gradcheck(one, x, memory, may_attend)
report = gradcheck(wrong, x, memory, may_attend)
print("one layer:", "passes" if one_report.ok else "fails")
print("three layers: of", len(report.rows), "rows fail", [row.tensor for row in report.failures])
similarity = (parts[0] * dmemory).sum() / np.linalg.norm(parts[0]) / np.linalg.norm(dmemory)
print(f"cosine between the gradient of layer 0 and the sum: {similarity:.2f}")

# %% tags=["check"]
assert one_report.ok
assert [row.tensor for row in report.failures] == ["memory", "adjoint"]
assert_allclose(similarity, 0.17, atol=0.005)
assert len(list(wrong.named_parameters())) == 78

# %% [markdown]
# With one layer the mistake has no effect, so always check a stack of two layers or more. In the stack of
# three layers, all 78 parameters have correct gradients. Only the encoder gets a wrong gradient. How wrong
# is it? In our decoder, the gradient of layer 0 alone and the correct sum have a cosine of .17. So they
# point in quite different directions.
#
# ## Check the gradient
#
# We check the encoder-decoder attention by itself, then the stack of three decoder layers, and then a whole
# model with its loss. This model has two layers in each stack, dropout, and label smoothing. It uses one
# table for both languages and the output. Its sentences contain padding.

# %%
report = gradcheck(layer.cross, x, memory)
print(report)

whole = Transformer(tiny.replace(dropout=0.1), rng=rng, dtype=np.float64)
source = np.array([[5, 6, 7, 6, 3], [5, 8, 3, 0, 0]])  # (B, S)
target = np.array([[5, 6, 5, 3], [4, 4, 3, 0]])  # (B, T)
ids = source, shifted_right(target, 2), target
of_stack = gradcheck(decoder, x, memory, may_attend)
of_whole = gradcheck(ModelWithLoss(whole), *ids, train=True, rng=5)
for larger in (of_stack, of_whole):
    worst = max(row.error for row in larger.rows)
    print(f"{larger.name}: {len(larger.rows)} rows, largest error {worst:.0e}")

# %% tags=["check"]
assert report.ok
assert of_stack.ok
assert of_whole.ok

# %% [markdown]
# ## How many parameters?
#
# An attention sublayer has four D × D matrices with biases. The feed-forward network has two matrices with
# biases, and a norm has a gain and a bias. The paper uses D = 512 and F = 2048:
#
# ```text
# attention       4 (D² + D)                             = 1,050,624
# feed-forward    2 D F + F + D                          = 2,099,712
# norm            2 D                                    =     1,024
# encoder layer   1 attention,  1 feed-forward, 2 norms  = 3,152,384
# decoder layer   2 attentions, 1 feed-forward, 3 norms  = 4,204,032
# ```
#
# The cell compares these numbers with the layers of the package.

# %%
D, width = 512, 2048
attention, network, gain_and_bias = 4 * (D * D + D), 2 * D * width + width + D, 2 * D
of_encoder = attention + network + 2 * gain_and_bias
of_decoder = 2 * attention + network + 3 * gain_and_bias
print(f"six layers of each: {6 * (of_encoder + of_decoder):,} parameters")

# %% tags=["check"]
base = TransformerConfig()
assert (attention, network, gain_and_bias) == (1_050_624, 2_099_712, 1_024)
assert of_encoder == EncoderLayer(base).count_parameters() == 3_152_384
assert of_decoder == DecoderLayer(base).count_parameters() == 4_204_032
assert 6 * (of_encoder + of_decoder) == 44_138_496

# %% [markdown]
# With the embeddings, the paper arrives at 65 million parameters.
#
# **Your turn.** In the terminal, print attention weights with `!across[0, 0].round(2)`. Then train for 50
# steps only, with `!learn((True, True), steps=50)[1][-1]`, and compare the loss with the figure.

# %% [markdown]
# ## What the documents say
#
# > - *图解transformer* says "K = V = the decoder's output". In fact the *encoder's* output is used, as its
# >   own second point says a few lines below. And K and V are two different products of it. The document
# >   lets self-attention see only tokens *before* the current position. This is true of y. Of the shifted
# >   inputs, a position also sees its own.
# > - *一步步解析Attention is All You Need!* says that at time i there are results only for positions
# >   smaller than i. Its code keeps the diagonal, so it allows positions up to i, on shifted inputs. It
# >   says that the second sublayer attends to "the encoder's input". Later in the same sentence, and in its
# >   code, it is the encoder's output.
# > - *Attention机制详解（二）* describes it correctly: k and v always have the same source, and only in
# >   this sublayer q has another one. In its code a norm stands before each sublayer, and one more on top
# >   of each stack.
# > - *The components of the Transformer* shows no shift. Its decoder takes two masks, `mask_1` for
# >   self-attention and `mask_2` for the memory. They correspond to our `mask` and `memory_mask`, but a 1
# >   means "may *not* attend".
# > - The paper's "previous decoder layer" is, in its figure 1, the norm after the masked self-attention.

# %% [markdown]
# ## Summary
#
# - The decoder's input is the target, shifted right by one; with the causal mask, no answer is visible.
# - Teacher forcing gives T exact predictions in one pass.
# - A leak gives a low loss and useless translations; the leak test finds it without training.
# - In encoder-decoder attention, queries come from the decoder, and keys and values from the memory.
# - The gradient of the memory is the sum over all decoder layers; a single layer cannot show a missing
#   `+=`.

# %% [markdown]
# ## Questions
#
# **Question.** A decoder has the causal mask but no shift. What does it learn, and which part of the
# training looks good?
#
# <details><summary>Answer</summary>
# It learns to copy its input. The loss is very low, on held-out sentences too.
# </details>
#
# **Question.** A source has 7 tokens, the target has 5 tokens, and there are 2 heads. Which shapes have the
# weights of the two kinds of attention in the decoder, for one sentence?
#
# <details><summary>Answer</summary>
# Self-attention: (2, 5, 5). Encoder-decoder attention: (2, 5, 7).
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` lists the exercises. Each is graded by comparison with the package or by the
# gradient checker.
#
# - `npformer exercise start shift-right`: one column is added in front, and one is dropped at the end.
# - `npformer exercise start decoder-layer-backward`: three blocks, and one gradient that leaves early.
# - `npformer exercise start decoder-backward`: the sum over the layers from this lesson.
# - By hand: T = 2, the input is shifted, and there is no mask. Which of the four weights of the decoder's
#   self-attention gives an answer away?
#
# **Next**, lesson 12: from the decoder's vectors to tokens, and the loss.

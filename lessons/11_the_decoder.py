# %% [markdown]
# # 11 · The decoder
#
# *30 minutes to read, 5 seconds to run. Lesson 6 for masks, 7 for heads, 10 for the encoder layer.*
#
# **The question.** The decoder writes a translation one word after another, and at each place may know only
# the words before. Yet in training all places are computed at once, from a sentence that holds the answers.
# What keeps it from reading them? And the encoder's output is read by every one of the decoder's layers: what
# do they say back to it?

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
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## Shifted right
#
# *Attention Is All You Need*, section 3.1, on the decoder's self-attention:
#
# > This masking, combined with fact that the output embeddings are offset by one position, ensures that the
# > predictions for position i can depend only on the known outputs at positions less than i.
#
# Two measures, then. What the model is asked for is the probability of a whole translation y of x, taken
# apart into words by the chain rule of probability:
#
# ```math
# p(y | x) = p(y₀ | x) · p(y₁ | y₀, x) · p(y₂ | y₀, y₁, x) · …  =  Πₜ p(yₜ | y₀ … yₜ₋₁, x)
# ```
#
# Factor t needs y₀ … yₜ₋₁ and must not have yₜ. Row t of a causal mask sees inputs 0 … t, its own included
# (lesson 6). So the last word that it may know, yₜ₋₁, must lie at input t: **one place later** than in y.
# That leaves place 0 free, and a start symbol fills it. The demo of *一步步解析Attention is All You Need!*
# does just this: the decoder's input is [2, y[:-1]], with 2 for the start.

# %%
words = ["<PAD>", "<UNK>", "<S>", "</S>", "i", "am", "a", "student"]
y = np.array([[4, 5, 6, 7, 3]])  # (B, T) what the decoder should say
target_in = shifted_right(y, 2)  # (B, T) what it reads
assert target_in[0].tolist() == [2, *y[0, :-1]]

reads, says = ([words[i] for i in row] for row in (target_in[0], y[0]))
for t in range(5):
    print(f"position {t}   may look at  {' '.join(reads[: t + 1]):22} and must say  {says[t]}")

# %%
may_attend = causal_mask(5, y)  # (T, T)
figure = mask_map(may_attend, [f"says {word}" for word in says], reads)
show_figure(figure, "11_reads", "Shift and mask together: no row sees the word that it must say")

# %% [markdown]
# ## Teacher forcing: T predictions in one pass
#
# In translating, input t is the word that the model itself chose at t − 1, so T words take T passes. In
# training it is the *right* word, the teacher's, whatever the model would have said. All inputs are known
# beforehand, and one pass gives T predictions and T losses. Nothing is approximate about that: no row of a
# causal decoder depends on what follows, so row t is what a pass over the first t + 1 inputs alone gives.

# %%
source = np.array([[4, 5, 6, 3]])  # (B, S) je suis étudiant </S>
tiny = TransformerConfig(9, 9, d_model=8, d_ff=12, n_heads=2, n_layers=2, dropout=0.0)
model = Transformer(tiny, rng=np.random.default_rng(0), dtype=np.float64)
logits, _ = model.forward(source, target_in)  # (B, T, V)
computed = 0
for t in range(5):
    alone, _ = model.forward(source, target_in[:, : t + 1])  # (B, t + 1, V)
    assert_allclose(alone[:, t], logits[:, t], rtol=1e-9)
    computed += alone.shape[1]
print(f"five passes, {computed} positions; one pass, 5 positions: the same five rows of logits")

# %% [markdown]
# ## Both are needed
#
# Here is `model.forward` line by line, with a switch for the causal mask. The encoder has none: the source is
# known to its end, and only its padding is hidden. Its output is called the **memory**.

# %%


def run(model, source, target_in, causal=True):
    """As model.forward; causal=False leaves the causal mask out."""
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


assert_allclose(run(model, source, target_in)[0], logits, rtol=1e-12)

# %% [markdown]
# A leak shows without any training: change word s of y, and see which rows of the logits move. Row t may
# move for s < t only, for its answer is yₜ. `assert_no_leak` tries every s, and compares to the bit.

# %%
ways = {
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


for name, way in ways.items():
    print(f"{name}: {leak(*way)}")
    assert leak(*way) == ("no leak" if all(way) else "output 0 moves when token 0 changes")

# %% [markdown]
# Without the shift, position t *reads* yₜ. Without the mask it may find yₜ one place to its right. What does
# that do to learning? Take a language that can be learned in a second: one to four letters, and their
# translation is the same letters backwards. Three models from one start see the same batches, each in one of
# the three ways. (The loss is that of lesson 12, Adam that of lesson 13: boxes, for now.)

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


def learn(way, start=1, steps=250):
    """A trained model and the loss of each step."""
    model, draw = Transformer(small, rng=np.random.default_rng(start)), np.random.default_rng(2)
    adam, rate, losses = Adam(model), cosine(0.02, steps, 20), np.zeros(steps)
    for step in range(steps):
        batch = make_batch([known[i] for i in draw.integers(0, len(known), 64)])
        losses[step], loss_cache, cache = loss_of(model, batch, *way)
        model.zero_grad()
        model.backward(F.cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(rate(step + 1))
    return model, losses


# %%
letters = [*words[:4], "a", "b", "c", "d", "e", "f"]
four = next(i for i, (s, _) in enumerate(held_out) if len(set(s)) == 4)  # four different letters
models, losses, seen, right = {}, {}, {}, {}
for name, way in ways.items():
    models[name], losses[name] = learn(way)
    seen[name] = loss_of(models[name], test, *way)[0]
    said = greedy(models[name], test.source, max_length=6)
    right[name] = np.mean([ids == want for ids, (_, want) in zip(said, held_out, strict=True)])
    asked, answer = ("".join(letters[i] for i in ids) for ids in (held_out[four][0], said[four]))
    print(f"{name}: held-out loss {seen[name]:.4f}, translated {right[name]:4.0%}", end="   ")
    print(asked, "→", answer)

assert seen["mask, no shift"] < 0.1 * min(seen["shift and mask"], seen["shift, no mask"])
assert right["shift and mask"] > 0.6
assert max(right["mask, no shift"], right["shift, no mask"]) < 0.2

# %%
steps = np.stack(list(losses.values()))  # (3, 250)
figure = curves(steps, labels=list(ways), ylabel="loss of the step", yscale="log")
show_figure(figure, "11_leaks", "The lowest curve is that of a model that has learned to copy")

# %% [markdown]
# Without the shift the loss is by far the lowest, on held-out sentences too, and next to nothing is
# translated: the model copies what it reads. Give it *random* letters, and it says those.
#
# Without the mask it is less simple, so here are two models, from two starts. Each reads the teacher's words,
# once as it has learned to, once with the mask put back. Then it reads the random letters: how often does it
# say the one to its right? (One in six would be chance.)

# %%
noise = rng.integers(4, 10, (100, 4))  # (B, 4)
copied = (run(models["mask, no shift"], test.source, noise)[0].argmax(-1) == noise).mean()
print(f"no shift: says the letter that it reads {copied:.0%}")
assert copied > 0.95

real, with_start = test.target_out != 0, np.insert(noise, 0, 2, axis=1)  # (B, T), (B, 5)
for start in (1, 2):
    model = models["shift, no mask"] if start == 1 else learn((True, False), start)[0]
    both = [run(model, test.source, test.target_in, causal)[0] for causal in (False, True)]
    free, masked = ((z.argmax(-1) == test.target_out)[real].mean() for z in both)
    follows = (run(model, test.source, with_start, False)[0][:, :-1].argmax(-1) == noise).mean()
    said = greedy(model, test.source, max_length=6)
    whole = np.mean([ids == want for ids, (_, want) in zip(said, held_out, strict=True)])
    print(f"no mask, start {start}: right {free:.0%}, mask put back {masked:.0%}", end="; ")
    print(f"letter to its right {follows:.0%}; translated {whole:.0%}")
    assert masked < free - 0.15
    assert whole < 0.2

# %% [markdown]
# What lies to the right is used both times: hide it, and fewer words are right. *How* it is used need not be
# the same from start to start: compare the third numbers, before you say of all such models what you saw in
# one. In translating there is nothing to the right yet, and both fail.
#
# A decoder's loss proves nothing before a sentence has been translated, or the leak test has passed. And the
# honest model? Its two kinds of attention, for one held-out sentence:

# %%
_, cache = run(models["shift and mask"], test.source[[four]], test.target_in[[four]])
reads = [letters[i] for i in test.target_in[four]]
keys = [letters[i] for i in test.source[four]]
within = cache.decoder[0].self_attention.attention.weights  # (1, H, T, T)
across = cache.decoder[0].cross.attention.weights  # (1, H, T, S)
assert (within[..., ~may_attend] == 0).all()
figure = attention_grid(within, reads, reads, mask=may_attend)
show_figure(figure, "11_self", "Self-attention: a letter looks at itself and at those before it")
figure = attention_grid(across, reads, keys)
caption = "Encoder-decoder attention: the letter just read looks at the one to be said next"
show_figure(figure, "11_cross", caption)

mirrored = across[0, :, range(4), [3, 2, 1, 0]].mean()  # <S> at the last letter, and so on
print(f"weight on the letter to be said, the mean of four rows and two heads: {mirrored:.2f}")
assert mirrored > 0.5

# %% [markdown]
# ## Encoder-decoder attention
#
# The source comes in by the second sublayer, and only there. Section 3.2.3:
#
# > the queries come from the previous decoder layer, and the memory keys and values come from the output of
# > the encoder.
#
# With X from the decoder and M the memory, in each head:
#
# ```math
# Q = X W_Q + b_Q        (T, K)
# K = M W_K + b_K        (S, K)
# V = M W_V + b_V        (S, K)  the same M by another matrix: K ≠ V
# ```
#
# So the weights are T × S, as in the last picture. Here is the sublayer, one weight at a time.

# %%
T, S, D, H, K = 5, 4, 8, 2, 4
layer = DecoderLayer(tiny, rng=rng, dtype=np.float64)
p = {name: parameter.value for name, parameter in layer.named_parameters()}
for value in p.values():  # gains of 1 and biases of 0 would hide mistakes
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
assert_allclose(slow, layer.cross.forward(x, memory)[0][0], rtol=1e-9)
assert abs(k - v).max() > 1

# %% [markdown]
# **Backward.** Attention hands back dQ, dK and dV (lesson 5), and each product hands its own on (lesson 0). Q
# was made of X; K and V were both made of M, so M hears from both:
#
# ```math
# dX = dQ W_Qᵀ                 goes on down the decoder
# dM = dK W_Kᵀ + dV W_Vᵀ       leaves it, for the encoder
# ```
#
# Self-attention is the case M = X, where all three add up. So one pair of functions serves both. The smaller
# pairs that it calls are those of lessons 0, 5 and 7.

# %%
g = {}  # gradients, under the names of p


def affine(name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def affine_backward(name, dy, cache):
    dx, g[name + ".weight"], g[name + ".bias"] = F.linear_backward(dy, cache)
    return dx


def attend(name, x, m, mask=None):
    """Queries from x (B, T, D), keys and values from m (B, S, D)."""
    q, of_q = affine(name + ".query", x)  # (B, T, D)
    k, of_k = affine(name + ".key", m)  # (B, S, D)
    v, of_v = affine(name + ".value", m)  # (B, S, D)
    z, of_z = F.attention(F.split_heads(q, H), F.split_heads(k, H), F.split_heads(v, H), mask)
    y, of_y = affine(name + ".output", F.merge_heads(z))  # (B, T, D)
    return y, (of_q, of_k, of_v, of_z, of_y)


def attend_backward(name, dy, cache):
    """Returns dx and dm, apart."""
    of_q, of_k, of_v, of_z, of_y = cache
    dz = F.split_heads(affine_backward(name + ".output", dy, of_y), H)  # (B, H, T, K)
    dq, dk, dv = (F.merge_heads(d) for d in F.attention_backward(dz, of_z))  # (B, T or S, D)
    dx = affine_backward(name + ".query", dq, of_q)  # (B, T, D)
    dm = affine_backward(name + ".key", dk, of_k)  # (B, S, D)
    return dx, dm + affine_backward(name + ".value", dv, of_v)


# %% [markdown]
# ## A whole decoder layer, forward
#
# Three sublayers, each with its way round and its norm (lesson 8); the third is the network of lesson 9.
#
# ```math
# a = attend(x, x)                    masked: keys 0 … t
# x₁ = norm₁(x + a)
# c = attend(x₁, M)                   encoder-decoder attention
# x₂ = norm₂(x₁ + c)
# f = max(0, x₂W₁ + b₁) W₂ + b₂
# y = norm₃(x₂ + f)
# ```

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

by_package, of_layer = layer.forward(x, memory, may_attend)
assert_allclose(made, by_package, rtol=1e-9)
cache = of_layer.cross.attention
show(cache)

# %% [markdown]
# That is the cache of the encoder-decoder attention: five queries, four keys and values; no mask, since no
# word of this memory is padding.
#
# ## Backward, from the last line to the first
#
# x₂ is used twice, by the sum and by f; x₁ twice, by the sum and as queries; x four times, by the sum and as
# queries, keys and values. Each use is one term:
#
# ```math
# du₃ = norm₃′(dy)                             u₃ = x₂ + f: both get du₃
# dx₂ = du₃ + [(du₃ W₂ᵀ) · (h > 0)] W₁ᵀ        h = x₂W₁ + b₁
# du₂ = norm₂′(dx₂)                            u₂ = x₁ + c
# dx₁ = du₂ + dQ W_Qᵀ                          and dM = dK W_Kᵀ + dV W_Vᵀ leaves
# du₁ = norm₁′(dx₁)                            u₁ = x + a
# dx  = du₁ + dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ      those of self-attention
# ```

# %%
dy = rng.standard_normal((1, T, D))  # what comes from above
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
assert_allclose(dx, dx_package, rtol=1e-9)
assert_allclose(dmemory, dmemory_package, rtol=1e-9)
for name, parameter in layer.named_parameters():
    assert_allclose(g[name], parameter.grad, rtol=1e-9, atol=1e-12)
assert len(g) == 26
print("dx, dmemory and the gradients of 26 parameters are those of the package")

# %% [markdown]
# Compare with `DecoderLayer.backward` in `npformer/models/transformer/layers.py`: three blocks of three
# lines, the last sublayer first. What the loss wants of the source's words leaves in the middle block.
#
# ## One memory, N readers
#
# The last encoder's output goes to *every* decoder layer: so it says, over its picture of both stacks, in
# *一步步解析Attention is All You Need!* Give each layer a copy of its own, M₁ … M_N. Layer n sends dMₙ to its
# copy; what the layers above made of it is in the dy that came down to layer n. But the copies are one
# array, and a small step δ of M is the same step of them all:
#
# ```math
# δL = ⟨dM₁, δ⟩ + … + ⟨dM_N, δ⟩ = ⟨dM₁ + … + dM_N, δ⟩          so  dM = Σₙ dMₙ
# ```
#
# What forward copies, backward adds up (lesson 0).

# %%
three = tiny.replace(n_layers=3)
decoder = Decoder(three, rng=np.random.default_rng(3), dtype=np.float64)
_, cache = decoder.forward(x, memory, may_attend)
parts, d = [None] * 3, dy
for n in (2, 1, 0):  # the top layer first
    d, parts[n] = decoder[n].backward(d, cache[n])  # (B, T, D), (B, S, D)
dmemory = parts[0] + parts[1] + parts[2]
assert_allclose(dmemory, decoder.backward(dy, cache)[1], rtol=1e-9)

named = {"layer 0": parts[0], "layer 1": parts[1], "layer 2": parts[2], "dM": dmemory}
cells = [Grid(m[0, :, :4], name, "v", numbers=True, shade=True) for name, m in named.items()]
figure = cell_product([cells[0], "+", cells[1], "+", cells[2], "=", cells[3]])
caption = "Four source words, 4 of 8 numbers each: three layers speak, the encoder hears the sum"
show_figure(figure, "11_memory", caption)

# %% [markdown]
# A mistake that is easy to make writes `=` for `+=`. The loop ends with layer 0, and only that one is heard:

# %%


class Forgetful(Decoder):
    def backward(self, dy, cache):
        for n in reversed(range(len(self.layers))):
            dy, dmemory = self[n].backward(dy, cache[n])  # = and not +=
        return dy, dmemory


one, wrong = (Forgetful(c, rng=rng, dtype=np.float64) for c in (tiny.replace(n_layers=1), three))
assert gradcheck(one, x, memory, may_attend).ok
report = gradcheck(wrong, x, memory, may_attend)
print("wrong:", [row.tensor for row in report.failures], "of", len(report.rows), "rows")
assert [row.tensor for row in report.failures] == ["memory", "adjoint"]

similarity = (parts[0] * dmemory).sum() / np.linalg.norm(parts[0]) / np.linalg.norm(dmemory)
print(f"cosine between layer 0's part and the sum: {similarity:.2f}")
assert_allclose(similarity, 0.17, atol=0.005)

# %% [markdown]
# With one layer `=` is right: check a stack with two or more. All 78 tensors of the three layers have right
# gradients. Only the encoder is misled: what it hears has a cosine of .17 with what it should hear.
#
# ## Is it right?
#
# Encoder-decoder attention by itself; then the stack; then everything at once: embeddings, two layers in each
# stack, dropout, label smoothing, one table for both languages and the output, ragged sentences, the loss.

# %%
report = gradcheck(layer.cross, x, memory)
print(report)
assert report.ok

whole = Transformer(tiny.replace(dropout=0.1), rng=rng, dtype=np.float64)
source = np.array([[5, 6, 7, 6, 3], [5, 8, 3, 0, 0]])  # (B, S)
target = np.array([[5, 6, 5, 3], [4, 4, 3, 0]])  # (B, T)
ids = source, shifted_right(target, 2), target
of_stack = gradcheck(decoder, x, memory, may_attend)
of_whole = gradcheck(ModelWithLoss(whole), *ids, train=True, rng=5)
for report in (of_stack, of_whole):
    assert report.ok
    worst = max(row.error for row in report.rows)
    print(f"{report.name}: {len(report.rows)} rows, the worst {worst:.0e}")

# %% [markdown]
# ## How large
#
# An attention is four D × D matrices with biases, the network two matrices with biases, a norm a gain and a
# bias. With the paper's D = 512, F = 2048:
#
# ```math
# attention       4 (D² + D)       = 1,050,624
# feed-forward    2 D F + F + D    = 2,099,712
# norm            2 D              =     1,024
# encoder layer   1 attention,  1 feed-forward, 2 norms  = 3,152,384
# decoder layer   2 attentions, 1 feed-forward, 3 norms  = 4,204,032
# ```

# %%
D, width = 512, 2048
attention, network, gain_and_bias = 4 * (D * D + D), 2 * D * width + width + D, 2 * D
assert (attention, network, gain_and_bias) == (1_050_624, 2_099_712, 1_024)
of_encoder = attention + network + 2 * gain_and_bias
of_decoder = 2 * attention + network + 3 * gain_and_bias
base = TransformerConfig()
assert of_encoder == EncoderLayer(base).count_parameters() == 3_152_384
assert of_decoder == DecoderLayer(base).count_parameters() == 4_204_032
assert 6 * (of_encoder + of_decoder) == 44_138_496
print(f"six of each: {6 * (of_encoder + of_decoder):,}; with embeddings, the paper's 65 million")

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` has them, each graded by comparison with the package or by the gradient checker.
#
# - `npformer exercise start shift-right`: one column in front, one dropped at the end.
# - `npformer exercise start decoder-layer-backward`: three blocks, and one gradient that leaves early.
# - `npformer exercise start decoder-backward`: the sum of this lesson.
# - By hand: T = 2, the input shifted, no mask. Which of the four weights of the decoder's self-attention
#   gives an answer away?
#
# To try now, in the terminal: `!across[0, 0].round(2)`, and `!learn((True, True), steps=50)[1][-1]`.
#
# ## Where the documents differ
#
# - *图解transformer*: "K = V = the decoder's output". It is the *encoder's*, as its own second point says a
#   few lines below; and K and V are two different products of it. It lets self-attention see only words
#   *before* the current position: true of y, while of the shifted inputs it sees the current one too.
# - *一步步解析Attention is All You Need!*: at time i, only what is smaller than i has a result. Its code
#   keeps the diagonal: up to i, on shifted inputs. And its second sublayer attends to "the encoder's
#   input"; later in the same sentence, and in its code, to the encoder's output.
# - *Attention机制详解（二）* has it right: k and v always share their source, and q differs from it in this
#   sublayer alone. In its code a norm stands before each sublayer, and one more on top of each stack.
# - *The components of the Transformer* shows no shift. Its decoder takes two masks, `mask_1` for
#   self-attention and `mask_2` for the memory: our `mask` and `memory_mask`, with 1 for "may *not* look".
# - The paper's "previous decoder layer" is, in its figure 1, the norm after the masked self-attention.
#
# **Next**, lesson 12: from the decoder's vectors to words, and how wrong they are.

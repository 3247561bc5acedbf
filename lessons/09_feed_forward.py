# %% [markdown]
# # 9 · The feed-forward network
#
# *25 minutes to read, 3 seconds to run. Lesson 0 for the linear map and the complex step, lesson 5 for
# what it is compared with.*
#
# **The question.** Attention only mixes: the new vector of a word is a weighted mean (one for each head)
# of vectors, each of which is a linear map of a word. Where does a word's vector turn into something that
# no mean contains? In the line after attention, which holds two thirds of an encoder layer's parameters.
# What does the bend max(0, ·) in it buy, what does it let through on the way back, and what do smoother
# bends change? And why does the paper call the line a convolution?

# %%
import math

import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.functional.activations import ACTIVATIONS
from npformer.learn.course import show_figure
from npformer.nn import FeedForward, LayerNorm
from npformer.plots import attention_map, curves, mask_map

rng = np.random.default_rng(9)

# %% [markdown]
# ## The passage
#
# Section 3.3 of the paper: each layer contains a network "which is applied to each position separately and
# identically",
#
# ```math
# FFN(x) = max(0, x W₁ + b₁) W₂ + b₂          (2)
# ```
#
# > The dimensionality of input and output is d_model = 512, and the inner-layer has dimensionality
# > d_ff = 2048.
#
# So a word is made four times as wide, bent, and made narrow again. In three lines that have names, with D
# numbers outside and F inside:
#
# ```math
# h = x W₁ + b₁        (F numbers a word: its "units")
# a = max(0, h)        (F) each unit by itself
# y = a W₂ + b₂        (D)
# ```

# %%
words = ["the", "animal", "was", "too", "tired"]
x = rng.standard_normal((2, 5, 4))  # (B, T, D)
w1, b1 = rng.standard_normal((4, 16)) / 2, rng.standard_normal(16) / 2  # (D, F), (F,)
w2, b2 = rng.standard_normal((16, 4)) / 4, rng.standard_normal(4)  # (F, D), (D,)

slow = np.zeros(x.shape)  # (B, T, D)
for b in range(2):
    for t in range(5):
        slow[b, t] = b2
        for f in range(16):
            h = b1[f]
            for d in range(4):
                h += x[b, t, d] * w1[d, f]
            if h > 0:  # else the unit says nothing
                for d in range(4):
                    slow[b, t, d] += h * w2[f, d]

h = x @ w1 + b1  # (B, T, F)
a = np.where(h > 0, h, 0)  # (B, T, F)
y = a @ w2 + b2  # (B, T, D)
assert_allclose(y, slow, rtol=1e-9)
print(f"{(a == 0).mean():.0%} of the inner numbers are 0")

# %% [markdown]
# The package's layer is two linear maps with a function between. Its cache: what the linear maps need is
# lesson 0's (`outer.x` is a), and of the bend it keeps its output.

# %%
layer = FeedForward(4, 16, dtype=np.float64)
state = {"inner.weight": w1, "inner.bias": b1, "outer.weight": w2, "outer.bias": b2}
layer.load_state_dict(state)
y_package, cache = layer.forward(x)
assert_allclose(y, y_package, rtol=1e-12)
show(cache)

# %% [markdown]
# ## Each word by itself
#
# No line of it has a sum over t. So a word on its own comes out as it does in its sentence, permuted words
# come out permuted, and a changed word changes its own row alone. Of these three, attention has only the
# second.

# %%
attend = MultiHeadAttention(4, 1, dtype=np.float64)
changed = x.copy()
changed[:, 4] += 1  # another word in place of "tired"
order = rng.permutation(5)
for name, f in (("feed-forward", layer), ("attention", attend)):
    whole = f.forward(x)[0]  # (B, T, D)
    alone = np.allclose(f.forward(x[:, 1:2])[0], whole[:, 1:2])
    permuted = np.allclose(f.forward(x[:, order])[0], whole[:, order])
    rows = (abs(f.forward(changed)[0] - whole) > 1e-9).any((0, 2))  # (T,)
    moved = [word for word, m in zip(words, rows, strict=True) if m]
    print(f"{name:13} alone the same: {alone}, permuted alike: {permuted}, moved:", *moved)
    assert (alone, permuted, len(moved)) == ((True, True, 1) if f is layer else (False, True, 5))

# %% [markdown]
# ## What the bend is for
#
# Leave max out, and two maps are one:
#
# ```math
# (x W₁ + b₁) W₂ + b₂  =  x (W₁W₂) + (b₁W₂ + b₂)          W₁W₂ is D × D
# ```
#
# At the paper's size, 2 · 512 · 2048 = 2,097,152 weights would do what 512² = 262,144 do. A linear map
# cannot even tell whether two signs are the same: for x = (±1, ±1) and the product x₁x₂, the best of all
# linear maps answers 0 four times. Two units and a bend have it exactly, as |x₁ + x₂| − 1:

# %%
assert_allclose((x @ w1 + b1) @ w2 + b2, x @ (w1 @ w2) + (b1 @ w2 + b2), rtol=1e-9)
assert (2 * 512 * 2048, 512**2) == (2_097_152, 262_144)

signs = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])  # (4, 2)
product = signs[:, 0] * signs[:, 1]  # (4,)
with_bias = np.concatenate([signs, np.ones((4, 1))], -1)  # (4, 3)
best = with_bias @ np.linalg.lstsq(with_bias, product, rcond=None)[0]  # (4,)
units = np.maximum(0, signs @ np.array([[1.0, -1], [1, -1]]))  # (4, 2): ±(x1 + x2), bent
bent = units @ np.array([1.0, 1]) - 1  # |x1 + x2| − 1
print("wanted", product, "  bent", bent, "  best linear", np.round(best, 3) + 0)
assert_allclose(best, 0, atol=1e-12)
assert (bent == product).all()

# %% [markdown]
# ## Backward, from the last line to the first
#
# dy arrives, (B, T, D).
#
# **y = a W₂ + b₂** is linear, lesson 0. Sums go over all words, n = 1 … B·T:
#
# ```math
# da = dy W₂ᵀ        dW₂ = aᵀ dy        db₂ = Σₙ dyₙ
# ```
#
# **a = max(0, h)**, number by number. Where h > 0, a moves as h does, slope 1; where h < 0, a does not move:
#
# ```math
# dh = da · [h > 0]
# ```
#
# At h = 0 there is no slope: 0 from the left, 1 from the right. The package takes 0, as is usual. And a tells
# where h was above 0, so the cache keeps a, which the gradient of W₂ needs anyway, and not h.
#
# **h = x W₁ + b₁**:
#
# ```math
# dx = dh W₁ᵀ        dW₁ = xᵀ dh        db₁ = Σₙ dhₙ
# ```

# %%


def flat(a):
    """(B, T, N) -> (B·T, N)."""
    return a.reshape(-1, a.shape[-1])


dy = rng.standard_normal(y.shape)  # (B, T, D)
da = dy @ w2.T  # (B, T, F)
dw2, db2 = flat(a).T @ flat(dy), flat(dy).sum(0)  # (F, D), (D,)
dh = np.where(a > 0, da, 0)  # (B, T, F)
dx = dh @ w1.T  # (B, T, D)
dw1, db1 = flat(x).T @ flat(dh), flat(dh).sum(0)  # (D, F), (F,)

assert_allclose(dx, layer.backward(dy, cache), rtol=1e-9)
ours = {"inner.weight": dw1, "inner.bias": db1, "outer.weight": dw2, "outer.bias": db2}
for name, parameter in layer.named_parameters():
    assert_allclose(parameter.grad, ours[name], rtol=1e-9)
print("dx and four gradients of parameters are those of the package")

# %% [markdown]
# Read the two zeros together. A unit that is 0 for a word takes no part in that word's output *and* none
# in its gradient: its row of W₂ and its column of W₁ hear nothing of that word. What is left for "animal"
# is the linear map of lesson 0, through the units that are on:

# %%
on = h[0, 1] > 0  # (F,) the units that "animal" turns on
linear_part = w1[:, on] @ w2[on]  # (D, D)
assert_allclose(x[0, 1] @ linear_part + (b1[on] @ w2[on] + b2), y[0, 1], rtol=1e-9)
assert_allclose(dx[0, 1], dy[0, 1] @ linear_part.T, rtol=1e-9)
print(f"{on.sum()} of 16 units are on")

# %% [markdown]
# ## Is it right?

# %%
report = gradcheck(layer, x)
print(report)
assert report.ok

# %% [markdown]
# ## Smoother bends
#
# Three successors have no corner. Each multiplies x by a soft switch that goes from 0 to 1, and each slope
# is the product rule: the switch, plus x times the switch's own slope.
#
# **GELU** (Hendrycks and Gimpel 2016) takes for a switch the probability Φ(x) that a normal number is
# below x:
#
# ```math
# y = x Φ(x)            Φ(x) = (1 + erf(x/√2)) / 2
# y′ = Φ(x) + x φ(x)    φ(x) = Φ′(x) = exp(−x²/2) / √(2π)
# ```
#
# **GELU with tanh** is an approximation by the same authors; GPT and BERT use it:
#
# ```math
# y = x (1 + t) / 2         t = tanh u,  u = √(2/π) (x + .044715 x³)
# y′ = (1 + t) / 2 + x (1 − t²) u′ / 2      u′ = √(2/π) (1 + 3 · .044715 x²)
# ```
#
# **Swish**, or SiLU, takes the sigmoid σ(x) = 1 / (1 + e⁻ˣ), whose slope is σ (1 − σ):
#
# ```math
# y = x σ(x)            y′ = σ + x σ (1 − σ)
# ```

# %%
grid = np.linspace(-4, 4, 8001)
erf = np.vectorize(math.erf)
density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
switch = (1 + erf(grid / math.sqrt(2))) / 2  # Φ
inner = math.sqrt(2 / math.pi) * (grid + 0.044715 * grid**3)
dinner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * grid**2)
t, s = np.tanh(inner), 1 / (1 + np.exp(-grid))
made = {  # name: (y, its slope)
    "relu": (np.maximum(0, grid), (grid > 0) * 1.0),
    "gelu": (grid * switch, switch + grid * density),
    "gelu_tanh": (grid * (1 + t) / 2, (1 + t) / 2 + grid * (1 - t**2) * dinner / 2),
    "swish": (grid * s, s + grid * s * (1 - s)),
}
for name, (value, slope) in made.items():
    f, f_backward = ACTIVATIONS[name]
    assert_allclose(value, f(grid)[0], atol=1e-15)
    assert_allclose(slope, f_backward(np.ones_like(grid), f(grid)[1]), atol=1e-14)
    measured = f(grid + 1e-20j)[0].imag / 1e-20  # the complex step of lesson 0
    assert_allclose(slope, measured, atol=1e-14)
    low, top = value.argmin(), slope.argmax()
    print(f"{name:10} lowest {value[low]:+.4f}, slope at most {slope[top]:.3f}", end="")
    print("" if name == "relu" else f", at {grid[low]:+.2f} and {grid[top]:+.2f}")

# %%
shown = ["relu", "gelu", "swish"]
values, slopes = (np.stack([made[name][i] for name in shown]) for i in (0, 1))  # (3, P) each
figure = curves(values, grid, labels=shown, xlabel="x", ylabel="y")
show_figure(figure, "09_activations", "ReLU has a corner; GELU and swish dip below 0 instead")
figure = curves(slopes, grid, labels=shown, xlabel="x", ylabel="slope")
show_figure(figure, "09_slopes", "ReLU's slope is 0 or 1; the others' go below 0 and above 1")

# %% [markdown]
# The two GELUs are one curve to the eye, nowhere further apart than .0005; but they are two functions, and
# a saved model must say which is its own. Two places can be found by hand. GELU is steepest where the
# slope of its slope, φ (2 − x²), is 0: at √2. And where swish is lowest, y′ = σ (1 + x (1 − σ)) = 0; so xσ
# = x + 1 there.

# %%
apart = abs(made["gelu"][0] - made["gelu_tanh"][0])
print(f"the GELUs differ by {apart.max():.6f} at most, at x = {abs(grid[apart.argmax()]):.2f}")
assert 0.0004 < apart.max() < 0.0005
assert abs(grid[made["gelu"][1].argmax()] - math.sqrt(2)) < 1e-3
lowest = made["swish"][0].argmin()
assert_allclose(made["swish"][0][lowest], grid[lowest] + 1, atol=1e-3)

# %% [markdown]
# ## Forms that a complex step can pass
#
# Gradient checks send x + ih through forward (lesson 0). ReLU, Φ and σ each have a form that fails there:

# %%
tiny = 1e-20
z = np.array([3 + 1j * tiny, -3 + 1j * tiny])
print("slopes at 3 and −3, of (x + |x|) / 2:", ((z + abs(z)) / 2).imag / tiny)
print("                of where(Re x > 0):  ", np.where(z.real > 0, z, 0).imag / tiny)
try:
    math.erf(complex(z[0]))
except TypeError as error:
    print("erf:", error)
with np.errstate(over="ignore", invalid="ignore"):
    assert np.exp(np.float32(88)) < np.inf == np.exp(np.float32(89))
    print("1 / (1 + exp(−x)) at −1000 + ih:  ", 1 / (1 + np.exp(1000 - 1j * tiny)))
print("(1 + tanh(x/2)) / 2 at −1000 + ih:", (1 + np.tanh((-1000 + 1j * tiny) / 2)) / 2)
assert_allclose((1 + np.tanh(grid / 2)) / 2, s, rtol=1e-12)  # σ in the other form

# %% [markdown]
# Three remedies. For ReLU, compare the real part and keep the number. For erf, follow the tangent:
#
# ```math
# Φ(x + ih) = Φ(x) + ih φ(x)          what is left out is of order h² = 10⁻⁴⁰
# ```
#
# And write the sigmoid with tanh, which cannot overflow; in float32, exp(−x) does from x = −89 on. All four
# bends pass as part of the layer, with dropout inside it (`rate`, lesson 8):

# %%
for name in made:
    bending = FeedForward(4, 16, activation=name, dropout=0.1, dtype=np.float64)
    report = gradcheck(bending, x, train=True, rng=1)
    assert report.ok
    print(f"{name:10} worst error {report.worst.error:.1e}")

# %% [markdown]
# ## Dead units
#
# A unit whose h is negative for *every* word of the data passes no gradient to its own column of W₁ and its
# bias. Nothing can move it: it is dead. A few careless steps are enough. A network of 64 units has to learn
# |x|, number by number. A learning rate of .1 suits ReLU; at .4 the first five steps are four times as long.
# All other steps are taken at .05.

# %%
data = rng.standard_normal((256, 8))  # (N, D)
runs = [("relu", 0.1), ("relu", 0.4), ("gelu_tanh", 0.4), ("swish", 0.4)]
losses = np.zeros((4, 300))
for row, (name, first_rate) in zip(losses, runs, strict=True):
    net = FeedForward(8, 64, activation=name, dtype=np.float64).flatten()
    for step in range(300):
        guess, kept = net.forward(data)
        row[step] = ((guess - abs(data)) ** 2).mean()
        net.zero_grad()
        net.backward(2 * (guess - abs(data)) / len(data), kept)
        net.values -= (first_rate if step < 5 else min(first_rate, 0.05)) * net.grads
    never = (net.inner.forward(data)[0] <= 0).all(0)  # (F,) negative for every word
    heard = abs(net.inner.weight.grad).max(0)  # (F,) the largest gradient in each unit's column
    deaf = (heard == 0).sum()
    print(f"{name:10} first rate {first_rate}   loss {row[-1]:.3f}", end="   ")
    print(f"negative for every word: {never.sum():2}   gradient exactly 0: {deaf:2}")
    assert (never == (heard == 0)).all() if name == "relu" else deaf == 0
    assert (deaf > 32) == ((name, first_rate) == ("relu", 0.4))

# %%
names = [f"{name}, {rate}" for name, rate in runs]
figure = curves(losses, labels=names, yscale="log", ylabel="loss")
show_figure(figure, "09_dead", "Five steps at .4 kill most units of a ReLU network, for good")
for name in shown:
    f, f_backward = ACTIVATIONS[name]
    slope = f_backward(np.ones(1), f(np.array([-10.0]))[1])[0]
    print(f"slope of {name} at −10: {slope:.0e}")
assert abs(slope + 0.0004) < 2e-5  # swish's

# %% [markdown]
# Each dead unit is at 0 for all 256 words, and the largest gradient in its column is 0, not small. GELU
# and swish have a slope left of 0 too: after the same five steps they learn on. That is no cure for
# everything, as the slopes at −10 show: swish's is −.0004, and GELU's is 0 for all that matters.
#
# ## As a memory
#
# Write k_f for column f of W₁ and v_f for row f of W₂. The two products say
#
# ```math
# y  =  Σ_f  max(0, x · k_f + b_f) v_f  +  b₂
# ```
#
# which is lesson 5 with other letters: a query, keys, values, a weighted sum. (Geva et al., *Transformer
# Feed-Forward Layers Are Key-Value Memories*, 2021.) Three things differ. Keys and values are **learned**,
# not made from the other words: they are what the network knows. There are F of them, however long the
# sentence. And the weights do not sum to 1: a word may find several keys, or none.
#
# Here is a memory written by hand. Names are random directions; a key fires where x · k > ½.

# %%
sentence = ["Japan", "and", "France", "not", "Chile"]
known = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima"}
vectors = {}
for word in [*sentence, *known, *known.values()]:
    v = rng.standard_normal(64)  # (D,)
    vectors.setdefault(word, v / np.linalg.norm(v))

memory = FeedForward(64, 3, dtype=np.float64)
keys = np.stack([vectors[country] for country in known])  # (F, D)
values = np.stack([vectors[city] for city in known.values()])  # (F, D)
memory.load_state_dict(
    {
        "inner.weight": 2 * keys.T,  # h = 2 x · k − 1: it is 1 for the key, and 0 at x · k = ½
        "inner.bias": -np.ones(3),
        "outer.weight": values,
        "outer.bias": np.zeros(64),
    }
)
asked = np.stack([vectors[word] for word in sentence])[None]  # (1, T, D)
found, looked_up = memory.forward(asked)  # (1, T, D)
weights = looked_up.outer.x[0]  # (T, F)
assert_allclose(found[0, 0], vectors["Tokyo"], rtol=1e-9)
assert (found[0, [1, 3, 4]] == 0).all()
forced = np.exp(asked[0] @ keys.T)  # (T, F) the same keys under a softmax
forced /= forced.sum(-1, keepdims=True)
print("“and” gets", weights[1], "here, and by a softmax", np.round(forced[1], 2))
assert_allclose(forced[1], 1 / 3, atol=0.03)

# %%
figure = attention_map(weights, sentence, list(known), numbers=True)
show_figure(figure, "09_memory", "What each word looks up: its own key, or nothing at all")

# %% [markdown]
# Added to the residual (lesson 8), "Japan" goes on as Japan and Tokyo; "and" goes on as it was. A softmax
# must always hand out something: it gives "and" about a third of each capital.
#
# ## As a convolution
#
# > Another way of describing this is as two convolutions with kernel size 1.
#
# A convolution of kernel size n computes each word's output from the n words round it, with one matrix for
# each place in that window. In loops, with nothing beyond the ends:
#
# ```math
# yₜ = b + Σⱼ xₜ₊ⱼ Wⱼ            j = −(n−1)/2 … (n−1)/2
# ```

# %%


def convolution(x, w, b):
    """Slow. x (B, T, D), w (n, D, F) a matrix for each place, b (F,) -> (B, T, F)."""
    y = np.zeros((*x.shape[:2], w.shape[2]))
    for t in range(x.shape[1]):
        for f in range(w.shape[2]):
            y[:, t, f] = b[f]
            for j in range(len(w)):
                there = t + j - len(w) // 2
                if 0 <= there < x.shape[1]:
                    for d in range(x.shape[2]):
                        y[:, t, f] += x[:, there, d] * w[j, d, f]
    return y


once = np.maximum(0, convolution(x, w1[None], b1))
assert_allclose(convolution(once, w2[None], b2), y, rtol=1e-9)
print("two convolutions of kernel size 1 are the feed-forward network")

# %% [markdown]
# With n = 1 the window is the word, and W₀ is the matrix. So the sentence says nothing new about the
# network. It says which function of a library would do: *一步步解析Attention is All You Need!* calls
# `conv1d` twice, with `kernel_size` 1. Write 3 there (with padding="same"), and the shapes are still
# right. Who depends on whom is not:

# %%
w3, v3 = rng.standard_normal((3, 4, 16)) / 4, rng.standard_normal((3, 16, 4)) / 8


def wide(x):
    """Two convolutions of kernel size 3, bent between."""
    return convolution(np.maximum(0, convolution(x, w3, b1)), v3, b2)


def who_depends(f, x):
    """(T, T) bool: does the output of a word (row) change when a word put in (column) does?"""
    depends = np.zeros((x.shape[1], x.shape[1]), bool)
    for s in range(x.shape[1]):
        poked = x.copy()
        poked[:, s] += 1
        depends[:, s] = (f(poked) != f(x)).any((0, 2))
    return depends


padded, long = [*words, "<pad>", "<pad>"], rng.standard_normal((1, 7, 4))  # (B, T, D)
depends, apart = who_depends(wide, long), abs(np.subtract.outer(range(7), range(7)))  # (T, T)
assert (depends == (apart <= 2)).all()
assert (who_depends(lambda x: layer.forward(x)[0], long) == (apart == 0)).all()
figure = mask_map(depends, padded, padded)
caption = "Kernel size 3, twice: a word (row) depends on two words (columns) to either side"
show_figure(figure, "09_kernel", caption)

# %% [markdown]
# (Light is what a row depends on.) "tired" now depends on padding, so a sentence's output depends on the
# batch that it is in. In a decoder, "was" would read two words that are yet to be written, past every mask
# of lesson 6. With kernel size 1 only the diagonal is light. Mixing is left to attention, which has masks.
#
# ## What it costs
#
# An encoder layer of the paper's base model, D = 512, F = 2048, biases everywhere:

# %%
attention_size = MultiHeadAttention(512, 8).count_parameters()  # 4 D² + 4 D
ffn_size = FeedForward(512, 2048).count_parameters()  # 2 D F + F + D
norm_size = LayerNorm(512).count_parameters()  # 2 D
assert (attention_size, ffn_size, norm_size) == (1_050_624, 2_099_712, 1_024)
encoder_layer = attention_size + ffn_size + 2 * norm_size
decoder_layer = 2 * attention_size + ffn_size + 3 * norm_size
assert (encoder_layer, decoder_layer) == (3_152_384, 4_204_032)
print(f"encoder layer {encoder_layer:,}, of it feed-forward {ffn_size / encoder_layer:.1%}")
print(f"decoder layer {decoder_layer:,}, of it feed-forward {ffn_size / decoder_layer:.1%}")

# the whole base model: no biases round attention, one tied vocabulary of 41,096
parts = {
    "12 feed-forward networks": 12 * ffn_size,
    "18 attentions": 18 * 4 * 512**2,
    "30 norms": 30 * norm_size,
    "word vectors": 41_096 * 512,
}
for name, size in parts.items():
    print(f"{name:25} {size:12,}  {size / sum(parts.values()):6.1%}")
assert round(sum(parts.values()) / 1e6, 2) == 65.14

# %% [markdown]
# Two thirds of an encoder layer, half of a decoder layer, and with 39 % the largest part of the model.
#
# Multiplications for each word of a sentence of T words, in an encoder layer:
#
# ```math
# feed-forward             2 D F  =  2,097,152
# attention's projections  4 D²   =  1,048,576
# scores and sums          2 T D  =  1,024 T
# ```
#
# Attention takes as much as the feed-forward network when 4 D² + 2 T D = 2 D F, so at T = F − 2 D = 1,024.

# %%
lengths = 2 ** np.linspace(3, 13, 41)  # (P,)
costs = np.stack([np.full(41, 2 * 512 * 2048), 4 * 512**2 + 2 * 512 * lengths])  # (2, P)
assert costs[0, 28] == costs[1, 28] == 2_097_152  # at 2¹⁰ words
share = 2 * 512 * 2048 / (2 * 512 * 2048 + 4 * 512**2 + 2 * 512 * 50)
print(f"at 50 words the feed-forward network takes {share:.0%} of the multiplications")
figure = curves(
    costs / 1e6,
    lengths,
    labels=["feed-forward", "attention"],
    xlabel="words in the sentence",
    ylabel="million multiplications for each word",
    xscale="log",
    yscale="log",
)
caption = "Up to 1,024 words the feed-forward network takes more than attention"
show_figure(figure, "09_cost", caption)

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 9` has them, each graded by the gradient checker.
#
# - `npformer exercise start relu-backward`: the cache is y; one comparison.
# - `npformer exercise start gelu-backward`: a product of two functions of x.
# - `npformer exercise start feed-forward-backward`: four steps, dropout among them, the last one first.
# - By hand: max(x₁, x₂) with three units. (Write it as x₂ plus a bend, and x₂ as two bends.)
# - By hand: y = x Φ(x). Show that GELU(x) − GELU(−x) = x, and that swish has the same property.
#
# To try now, in the terminal: `s cache.activation`, and `!memory.forward(vectors["Peru"][None, None])[0] @
# vectors["Lima"]`.
#
# ## Where the documents differ
#
# - *一步步解析Attention is All You Need!* writes it as two `conv1d` of kernel size 1, and adds the
#   residual and the norm in the same function. Its default `scope` is "multihead_attention", copied from
#   the one before.
# - *图解transformer* names the network and draws it once for each word, rightly; it gives no formula.
# - *Attention机制详解（二）* calls `transformer_ffn_layer` and does not show it.
# - *The components of the Transformer* has two dense layers, the first with ReLU, as in (2).
# - The paper puts dropout on the sublayer's output. tensor2tensor puts it on a as well:
#   `feed_forward_dropout` in a configuration, `rate` here.
#
# **Next**, lesson 10: attention and this network, stacked to an encoder.

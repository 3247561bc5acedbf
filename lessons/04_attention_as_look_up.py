# %% [markdown]
# # 4 · Attention as a look-up
#
# *30 minutes to read, 3 seconds to run. Lesson 0 for the pair forward/backward; word vectors are those of
# lesson 2.*
#
# **The question.** In a Python dictionary, a query either is one of the keys, and you get its value, or you
# get a `KeyError`. A network cannot learn with that: nothing is ever *nearly* right. How does one build a
# look-up that has an answer to every query, and a slope? Who asks, who is asked, and what is handed over?
# And how does one measure how well a query fits a key?

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import MultiHeadAttention, show
from npformer.checking import gradcheck
from npformer.functional import similarity
from npformer.functional.attention import attention, attention_backward
from npformer.functional.softmax import softmax, softmax_backward
from npformer.learn.course import show_figure
from npformer.plots import Grid, attention_map, cell_product, curves

rng = np.random.default_rng(4)

# %% [markdown]
# ## The barest attention there is
#
# *The components of the Transformer* (after Bloem's *Transformers from scratch*) starts with a layer that has
# no parameters. Vectors x₁ … x_T go in, and as many come out; each output is a weighted mean of all inputs,
# and the weights are made from the inputs themselves, by dot products:
#
# ```math
# sᵢⱼ = xᵢ · xⱼ                    scores: how alike are word i and word j?
# pᵢⱼ = exp sᵢⱼ / Σₘ exp sᵢₘ       weights: a softmax, each row sums to 1
# yᵢ  = Σⱼ pᵢⱼ xⱼ                  a mean of all words, seen by word i
# ```
#
# (The document writes wᵢⱼ. Here w is what can be learned, and p what comes out of a softmax.)
#
# For vectors that one can read we choose the numbers by hand: is it an animal, does it fly, is it an action,
# is it an article? Every vector has length 2. A trained model finds numbers of its own.

# %%
words = ["the", "dog", "saw", "the", "bird"]
x = np.array(  # (T, D)
    [  # animal, flies, action, article
        [0.0, 0.0, 0.0, 2.0],
        [2.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 2.0, 0.0],
        [0.0, 0.0, 0.0, 2.0],
        [1.6, 1.2, 0.0, 0.0],
    ]
)
assert_allclose(np.linalg.norm(x, axis=-1), 2)

slow = np.zeros_like(x)  # (T, D)
for i in range(5):
    e = [np.exp(sum(x[i, n] * x[j, n] for n in range(4))) for j in range(5)]
    for j in range(5):
        slow[i] += e[j] / sum(e) * x[j]

weights, _ = softmax(x @ x.T)  # (T, T), row i looks, column j is looked at
y = weights @ x  # (T, D)
assert_allclose(y, slow, rtol=1e-12)
print(y.round(2))

# %%
figure = attention_map(weights, words, words, numbers=True)
caption = "Without parameters: each word looks at itself, and at whoever resembles it"
show_figure(figure, "04_basic", caption)

# %% [markdown]
# "dog" and "bird" have a product of 3.2, so they look at each other, with .30, and the outputs of both become
# more like an animal in general: "dog" now flies a little, .36. The two "the" are one vector, so each gives
# the other as much as itself, and their outputs are the same. No position went in; none can come out.
#
# But "saw" looks at itself with .93 and learns nothing about who saw whom.

# %%
assert_allclose(weights[1, 4], 0.30, atol=0.005)
assert_allclose(y[1, 1], 0.36, atol=0.005)
assert_allclose(weights[2, 2], 0.93, atol=0.005)
assert (y[0] == y[3]).all()

# %% [markdown]
# ## Why a word looks at itself most
#
# Compare the score of word i for itself with its score for word j. By Cauchy and Schwarz a dot product is
# at most the product of the lengths:
#
# ```math
# sᵢᵢ − sᵢⱼ = |xᵢ|² − xᵢ · xⱼ ≥ |xᵢ|² − |xᵢ| |xⱼ| = |xᵢ| (|xᵢ| − |xⱼ|)
# ```
#
# If all vectors are equally long, that is never negative: **no word is looked at more than oneself**. If they
# are not, the longest one still looks at itself most, but a short word may prefer a long neighbour.
# In many dimensions it is worse than "most": entries of variance 1 make sᵢᵢ about D, and sᵢⱼ only of size
# √D. Two thousand random sentences of ten words, with vectors of any length:

# %%


def own_share(x, scores):
    """How often a word looks at itself most, and with what weight (median)."""
    most = scores.argmax(-1) == np.arange(x.shape[1])
    own = np.diagonal(softmax(scores)[0], axis1=-2, axis2=-1)
    return most.mean(), np.median(own)


for width in (4, 64):
    free = rng.standard_normal((2000, 10, width))  # (B, T, D)
    most, own = own_share(free, free @ free.swapaxes(-1, -2))
    print(f"D {width:2}   itself most: {most:4.0%}   weight on itself {own:.6f}")
    assert_allclose(most, {4: 0.67, 64: 1}[width], atol=0.01 if width == 4 else 0)
assert own > 0.9999995

# %% [markdown]
# With 4 numbers a word, a third prefer another word; with 64 none does, the weight on oneself is 1.000000,
# and y = x to six digits: the layer does nothing. Something has to part the word that asks from the one that
# is asked. The backward pass shows where.
#
# ## Backward: x occurs three times
#
# Look at the three formulas again. A vector x appears as the one that **asks** (xᵢ in sᵢⱼ), as the one that
# is **asked** (xⱼ in sᵢⱼ), and as the one that is **handed over** (xⱼ in yᵢ). Pretend that these are three
# arrays, q, k and v, which just happen to be equal:
#
# ```math
# sᵢⱼ = qᵢ · kⱼ        pᵢ = softmax(sᵢ)        yᵢ = Σⱼ pᵢⱼ vⱼ
# ```
#
# Each has a gradient of its own, and since forward copied x into all three, backward adds them up (lesson 0):
#
# ```math
# dx = dq + dk + dv
# ```

# %% [markdown]
# From the last formula to the first. vⱼ reaches every output i, with slope pᵢⱼ; and a weight pᵢⱼ moves
# output i along vⱼ. The softmax between them has its pair in the package; lesson 5 derives it.
#
# ```math
# dvⱼ  = Σᵢ pᵢⱼ dyᵢ          dV = Pᵀ dY
# dpᵢⱼ = dyᵢ · vⱼ            dP = dY Vᵀ
# dsᵢ  = softmax backward of dpᵢ
# ```
#
# And sᵢⱼ = Σₙ qᵢₙ kⱼₙ: qᵢ takes part in all of row i, with slope kⱼ; kⱼ in all of column j, with slope qᵢ:
#
# ```math
# dqᵢ = Σⱼ dsᵢⱼ kⱼ           dQ = dS K
# dkⱼ = Σᵢ dsᵢⱼ qᵢ           dK = dSᵀ Q
# ```

# %%
dy = rng.standard_normal(y.shape)  # (T, D)
dv = weights.T @ dy  # (T, D)
dweights = dy @ x.T  # (T, T)
dscores = softmax_backward(dweights, weights)  # (T, T)
dq = dscores @ x  # (T, D)
dk = dscores.T @ x  # (T, D)
dx = dq + dk + dv

y_package, cache = attention(x, x, x, scale=1.0)
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dx, sum(attention_backward(dy, cache)), rtol=1e-9, atol=1e-12)
print("y and dx are those of the package")

# %% [markdown]
# Is each of the three right, alone? The forward pass tells (lesson 0): take an imaginary step with x in one
# of its uses only, and hold it still in the other two.

# %%
v = rng.integers(0, 2, x.shape) * 2.0 - 1  # a direction, ±1
h = 1e-20
moved = x + 1j * h * v
uses = {"asks": (moved, x, x), "is asked": (x, moved, x), "is handed over": (x, x, moved)}
for (use, arrays), gradient in zip(uses.items(), (dq, dk, dv), strict=True):
    measured = (attention(*arrays, scale=1.0)[0] * dy).sum().imag / h
    claimed = (gradient * v).sum()
    print(f"{use:15} claimed {claimed:+.12f}   measured {measured:+.12f}")
    assert_allclose(claimed, measured, rtol=1e-11)

# %% [markdown]
# And the whole as a pair. Beside it a classic slip: "S = X Xᵀ is a product, so its gradient is dS X", as if
# only the word that asks could move. The checker finds that it is wrong.

# %%


def basic(x):
    """y = softmax(x xᵀ) x."""
    return attention(x, x, x, scale=1.0)


def basic_backward(dy, cache):
    """dx, the sum over three uses."""
    return sum(attention_backward(dy, cache))


def forgets_the_keys(dy, cache):
    """Wrong: the word that is asked gets nothing."""
    dq, _, dv = attention_backward(dy, cache)
    return dq + dv


sentence = rng.standard_normal((5, 4))  # (T, D)
report = gradcheck((basic, basic_backward), sentence)
print(report)
assert report.ok
assert not gradcheck((basic, forgets_the_keys), sentence).ok

# %% [markdown]
# ## A dictionary, made soft
#
# What does it mean that a word asks? Take a real look-up: three colours on the colour wheel, red at 0°, green
# at 120°, blue at 240°. Ask at 40°:

# %%
wheel = {0: [1.0, 0, 0], 120: [0, 1.0, 0], 240: [0, 0, 1.0]}  # angle: (red, green, blue)
try:
    print(wheel[40])
except KeyError as error:
    print("KeyError:", error)

# %% [markdown]
# **Step 1.** Take the *nearest* key. As arrows of length 1 the nearest is the one with the largest dot
# product; a weight of 1 on it and 0 on the others; then a product with the values. Now there is always an
# answer.
#
# **Step 2.** Put a softmax in place of the "1 on the largest". Now the answer is a mixture. How strong a
# mixture, the query itself can say: a query three times as long has scores three times as large.

# %%


def arrow(degrees):
    """Shapes: degrees (...) -> (..., 2), of length 1."""
    return np.stack([np.cos(degrees * np.pi / 180), np.sin(degrees * np.pi / 180)], -1)


keys = arrow(np.array(list(wheel)))  # (S, 2)
values = np.array(list(wheel.values()))  # (S, 3)
query = arrow(np.array([40.0]))  # (1, 2)

nearest = 1.0 * (np.arange(3) == (query @ keys.T).argmax(-1))  # (S,)
print("nearest  ", nearest @ values)
for length in (1, 4, 64):
    mixed, _ = attention(length * query, keys, values, scale=1.0)
    weight, _ = softmax(length * arrow(40 + 1j * h) @ keys.T)  # turned by an imaginary angle
    slope = weight[1].imag / h
    print(f"length {length:2}", mixed[0].round(3), f"  slope of green {slope:.0e} a degree")
    if length == 4:
        assert_allclose(mixed[0, :2], [0.91, 0.09], atol=0.005)
assert abs(mixed - nearest).max() < 1e-6

# %% [markdown]
# A query of length 4 answers .91 red and .09 green: red, a little towards orange. A query of length 64 gets
# the nearest key, to six digits and more. So the soft look-up has the hard one as its limit.
#
# Why not stay with the hard one, which is cheaper? Turn the query, and watch the weight of green:

# %%
angles = np.linspace(0, 240, 481)  # (N,)
turned = arrow(angles)  # (N, 2)
of_green = [softmax(length * turned @ keys.T)[0][:, 1] for length in (1, 4, 64)]
of_green.append(1.0 * ((turned @ keys.T).argmax(-1) == 1))  # the hard look-up
figure = curves(
    np.array(of_green),
    angles,
    labels=["length 1", "length 4", "length 64", "nearest"],
    xlabel="angle of the query, in degrees",
    ylabel="weight of the key at 120°",
    legend=True,
)
caption = "The longer the query, the harder the look-up; the hardest is flat but for two jumps"
show_figure(figure, "04_soft", caption)

# %% [markdown]
# "Nearest" is flat: turn the query a little, and *nothing* changes, so its slope is 0 and the query is never
# told which way to turn. At 60° and 180° it jumps and has no slope. *The components of the Transformer* says
# so of hard attention: argmax cannot be differentiated, and training needs more than gradients. The price of
# softness is that every value takes part in every answer. And a long query comes near to the hard one: at 40°
# and length 64 its slope, 6e-17, has all but vanished.

# %%
assert_allclose(slope, 6e-17, atol=0.5e-17)
assert_allclose(np.diff(of_green[3]).nonzero()[0] / 2, [60, 179.5], atol=0.5)  # the two jumps

# %% [markdown]
# ## Query, key and value
#
# The paper, section 3.2:
#
# > An attention function can be described as mapping a query and a set of key-value pairs to an output, where
# > the query, keys, values, and output are all vectors. The output is computed as a weighted sum of the
# > values, where the weight assigned to each value is computed by a compatibility function of the query with
# > the corresponding key.
#
# In a sentence every word plays all three parts. What it asks for need not be what it is. So each part gets
# a matrix:
#
# ```math
# Q = X W_Q        K = X W_K        V = X W_V
# ```
#
# By hand again: let an action ask for an animal, and let an animal ask for an article. Column 1 of Q and K is
# the matter "animal", column 2 the matter "article". What is handed over is the first two features.

# %%
w_q = np.array([[0, 1.0], [0, 0], [1.0, 0], [0, 0]])  # (D, K) animal -> 2, action -> 1
w_k = np.array([[1.0, 0], [0, 0], [0, 0], [0, 1.0]])  # (D, K) animal -> 1, article -> 2
w_v = np.eye(4)[:, :2]  # (D, L) animal, flies
q, k, v = x @ w_q, x @ w_k, x @ w_v  # (T, K), (T, K), (T, L)
z, cache = attention(q, k, v, scale=1.0)
chosen = cache.weights  # (T, T)

grids = [
    Grid(q, "$Q$", "q", rows=words, numbers=True),
    "×",
    Grid(k.T, "$K^T$", "k", columns=words, numbers=True),
    "→",
    Grid(chosen, "softmax", "r", numbers=True, shade=True, columns=words),
    "×",
    Grid(v, "$V$", "v", numbers=True),
    "=",
    Grid(z, "$Z$", "z", numbers=True),
]
caption = "Three matrices by hand: saw looks at dog and bird, animals look at articles"
show_figure(cell_product(grids), "04_qkv", caption)

# %% [markdown]
# "saw" looks at "dog" with .66, at "bird" with .30, and at itself with .01: its output says that animals took
# part, 1.81, and that one of them flies, .36. The articles ask for nothing: their queries are 0, so are all
# their scores, and they look at everyone with .20. "dog" looks at the articles with .49 each, and they do not
# single it out in return: with two matrices, looking is no longer mutual.
#
# With *random* matrices nobody is favoured at all:

# %%
free = rng.standard_normal((2000, 10, 64))  # (B, T, D)
mats = rng.standard_normal((2, 2000, 64, 64)) / 8  # W_Q and W_K, new ones for each sentence
most, _ = own_share(free, (free @ mats[0]) @ (free @ mats[1]).swapaxes(-1, -2))
print(f"random matrices: a word looks at itself most in {most:.1%} of cases; 1 in 10 is 10%")
assert 0.09 < most < 0.11
assert_allclose(chosen[2, [1, 4, 2]], [0.66, 0.30, 0.01], atol=0.005)
assert_allclose(chosen[[0, 3]], 0.2)
assert_allclose(chosen[1, [0, 3]], 0.49, atol=0.005)
assert_allclose(z[2], [1.81, 0.36], atol=0.005)

# %% [markdown]
# ### Their gradients
#
# Each of the three is the layer of lesson 0, without a bias. So it hands on two gradients, and x, which went
# into all three, again gets a sum:
#
# ```math
# dW_Q = Xᵀ dQ         dW_K = Xᵀ dK         dW_V = Xᵀ dV
# dX   = dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ
# ```
#
# With the identity for all three that is the dq + dk + dv from above. In the package the matrices belong to
# `MultiHeadAttention` (lesson 7). With one head, without biases, its last matrix and the scale, it is ours.

# %%
dz = rng.standard_normal(z.shape)  # (T, L)
dq, dk, dv = attention_backward(dz, cache)
dx = dq @ w_q.T + dk @ w_k.T + dv @ w_v.T  # (T, D)

plain = {"bias": False, "output": False, "scale": False, "dtype": np.float64}
layer = MultiHeadAttention(4, 1, d_head=2, **plain)
parts = [(layer.query, w_q, dq), (layer.key, w_k, dk), (layer.value, w_v, dv)]
for part, matrix, _ in parts:
    part.weight.value[...] = matrix
z_package, layer_cache = layer.forward(x[None])  # (1, T, L)
dx_package = layer.backward(dz[None], layer_cache)
assert_allclose(z, z_package[0], rtol=1e-12)
assert_allclose(dx, dx_package[0], rtol=1e-9, atol=1e-12)
for part, _, gradient in parts:
    assert_allclose(x.T @ gradient, part.weight.grad, rtol=1e-9, atol=1e-12)
report = gradcheck(layer, rng.standard_normal((2, 5, 4)))
assert report.ok
print("z, dx and the matrices' gradients are the package's; gradcheck finds them right")

# %% [markdown]
# ## Four ways to compare
#
# The "compatibility function" was the dot product. *一步步解析Attention is All You Need!* lists four, from
# the years when attention sat on recurrent networks (Bahdanau et al. 2015; Luong et al. 2015):
#
# ```math
# dot          s = q · k                       nothing to learn
# general      s = (q W) · k                   W (K, L)
# concat       s = w · [q; k]                  w (K + L)
# perceptron   s = v · tanh(q W + k U)         W (K, J), U (L, J), v (J)
# ```
#
# **Dot** we have derived: dQ = dS K, dK = dSᵀ Q. It asks that q and k have one width.
#
# **General** does not. Every wᵢⱼ serves all pairs of a query t and a key s:
#
# ```math
# sₜₛ  = Σᵢⱼ qₜᵢ wᵢⱼ kₛⱼ
# dwᵢⱼ = Σₜₛ dsₜₛ qₜᵢ kₛⱼ          dW = Qᵀ dS K
# dqₜᵢ = Σₛ dsₜₛ Σⱼ wᵢⱼ kₛⱼ        dQ = dS K Wᵀ
# dkₛⱼ = Σₜ dsₜₛ Σᵢ qₜᵢ wᵢⱼ        dK = dSᵀ Q W
# ```

# %%


def agree(mine, theirs):
    """Our gradients are the package's."""
    for one, other in zip(mine, theirs, strict=True):
        assert_allclose(one, other, rtol=1e-9)


q, k = rng.standard_normal((3, 4)), rng.standard_normal((5, 6))  # (T, K), (S, L)
ds = rng.standard_normal((3, 5))  # (T, S) what the loss says to each score

_, cache = similarity.dot_similarity(q, k[:, :4])  # dot: of one width
agree((ds @ k[:, :4], ds.T @ q), similarity.dot_similarity_backward(ds, cache))

w = rng.standard_normal((4, 6))  # (K, L)
scores, cache = similarity.general_similarity(q, k, w)
assert_allclose(scores, q @ w @ k.T, rtol=1e-12)
own = (ds @ k @ w.T, ds.T @ q @ w, q.T @ ds @ k)
agree(own, similarity.general_similarity_backward(ds, cache))

# the Transformer's query and key matrices are a general similarity
assert_allclose((x @ w_q) @ (x @ w_k).T, x @ (w_q @ w_k.T) @ x.T)
print("W = W_Q W_Kᵀ at the paper's widths:", 512 * 512, "numbers; as two factors:", 2 * 512 * 64)

# %% [markdown]
# The last assertion is worth a pause: (xW_Q)(xW_K)ᵀ = x (W_Q W_Kᵀ) xᵀ. A Transformer's head *is* the general
# similarity, with a W in two thin factors: 65,536 numbers in place of 262,144. The plain dot product is
# what is left once they have been applied.
#
# **Concat.** Cut w into a part a for the query and a part b for the key. A score is a *sum of two numbers*:
#
# ```math
# sₜₛ = a · qₜ + b · kₛ
# dqₜ = (Σₛ dsₜₛ) a            da = Σₜ (Σₛ dsₜₛ) qₜ
# dkₛ = (Σₜ dsₜₛ) b            db = Σₛ (Σₜ dsₜₛ) kₛ
# ```

# %%
w = rng.standard_normal(10)  # (K + L,)
a, b = w[:4], w[4:]
scores, cache = similarity.concat_similarity(q, k, w)
pairs = [[w @ np.concatenate([q_t, k_s]) for k_s in k] for q_t in q]  # (T, S) side by side
assert_allclose(scores, pairs, rtol=1e-12)
of_row, of_column = ds.sum(-1), ds.sum(-2)  # (T,), (S,)
halves = np.concatenate([of_row @ q, of_column @ k])  # (K + L,)
own = (of_row[:, None] * a, of_column[:, None] * b, halves)
agree(own, similarity.concat_similarity_backward(ds, cache))

behind_softmax = softmax_backward(ds, softmax(scores)[0])  # (T, S) rows sum to 0
dq, _, dw = similarity.concat_similarity_backward(behind_softmax, cache)
print("weights of two queries\n", softmax(scores)[0][:2].round(4))
print(f"with a softmax behind: |dq| {abs(dq).max():.0e}, |da| {abs(dw[:4]).max():.0e}")
assert_allclose(softmax(scores)[0], np.tile(softmax(k @ b)[0], (3, 1)))
assert max(abs(dq).max(), abs(dw[:4]).max()) < 1e-14

# %% [markdown]
# A trap. A softmax does not see what is added to a whole row, and a · qₜ is just that. So every query looks
# at the same keys, whatever it asks; and as each row of a softmax's gradient sums to 0, Σₛ dsₜₛ is 0: neither
# the query nor a ever learns.
#
# **Perceptron** mends it with a bend: once tanh has been over the sum, it is no sum any more. Call the sum g:
#
# ```math
# gₜₛⱼ  = Σᵢ qₜᵢ wᵢⱼ + Σᵢ kₛᵢ uᵢⱼ      hₜₛⱼ = tanh gₜₛⱼ      sₜₛ = Σⱼ vⱼ hₜₛⱼ
# dvⱼ   = Σₜₛ dsₜₛ hₜₛⱼ
# dgₜₛⱼ = dsₜₛ vⱼ (1 − h²ₜₛⱼ)
# dW    = Qᵀ (Σₛ dg)      dU = Kᵀ (Σₜ dg)      dQ = (Σₛ dg) Wᵀ      dK = (Σₜ dg) Uᵀ
# ```

# %%
w, u, out = rng.standard_normal((4, 7)), rng.standard_normal((6, 7)), rng.standard_normal(7)
scores, cache = similarity.perceptron_similarity(q, k, w, u, out)
hidden = np.tanh((q @ w)[:, None] + (k @ u)[None])  # (T, S, J)
assert_allclose(scores, hidden @ out, rtol=1e-12)
stacked = np.concatenate([w, u])  # (K + L, J), Luong's W
assert_allclose(scores[1, 2], out @ np.tanh(np.concatenate([q[1], k[2]]) @ stacked), rtol=1e-12)
dg = ds[..., None] * out * (1 - hidden**2)  # (T, S, J)
to_q, to_k = dg.sum(1), dg.sum(0)  # (T, J), (S, J)
own = (to_q @ w.T, to_k @ u.T, q.T @ to_q, k.T @ to_k, np.einsum("ts,tsj->j", ds, hidden))
agree(own, similarity.perceptron_similarity_backward(ds, cache))
show(cache)

# %% [markdown]
# See `hidden` in the cache: J numbers for *each pair* of a query and a key. The others keep nothing of that
# size. That is the paper's reason (section 3.2.1):
#
# > While the two are similar in theoretical complexity, dot-product attention is much faster and more
# > space-efficient in practice, since it can be implemented using highly optimized matrix multiplication
# > code.
#
# The bill at the paper's width, all of K, L, J = 512, for a sentence of 100 words:

# %%
n, pairs = 512, 100 * 100
four = {  # learned, kept for backward besides q and k, and the shapes for a gradient check
    "dot": (0, 0, [(3, 4), (5, 4)]),
    "general": (n * n, 100 * n, [(3, 4), (5, 6), (4, 6)]),
    "concat": (2 * n, 0, [(3, 4), (5, 6), (10,)]),
    "perceptron": (2 * n * n + n, pairs * n, [(3, 4), (5, 6), (4, 7), (6, 7), (7,)]),
}
for name, (learned, kept, shapes) in four.items():
    pair = [getattr(similarity, f"{name}_similarity{which}") for which in ("", "_backward")]
    report = gradcheck(tuple(pair), *[rng.standard_normal(shape) for shape in shapes])
    assert report.ok
    verdict = str(report).splitlines()[0]
    print(f"learned {learned:8,}   kept for backward {kept:10,}   {verdict}")

# %% [markdown]
# The four on our sentence, with x for queries and keys alike. W is the one made by hand; the other weights
# are random.

# %%
pair_weights = {
    "dot": (),
    "general": (w_q @ w_k.T,),
    "concat": (rng.standard_normal(8),),
    "perceptron": tuple(rng.standard_normal(shape) for shape in [(4, 4), (4, 4), (4,)]),
}
grids = []
for name, learned in pair_weights.items():
    attended, _ = softmax(getattr(similarity, f"{name}_similarity")(x, x, *learned)[0])  # (T, T)
    rows = words if name == "dot" else None
    grids.append(Grid(attended, name, "r", rows=rows, columns=words, numbers=True, shade=True))
    if name == "concat":
        assert_allclose(attended, np.tile(attended[0], (5, 1)), rtol=1e-12)
caption = "The same words compared in four ways; under concat all five rows are one"
show_figure(cell_product(grids), "04_weights", caption)

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 4` has them, each graded by the gradient checker.
#
# - `npformer exercise start dot-similarity-backward`: two products; which one is transposed?
# - `npformer exercise start general-similarity-backward`: the same in two steps, and a matrix serves all.
# - By hand: two words, x₁ = (1, 0) and x₂ = (3, 0). At whom does x₁ look most? With which weight? Which line
#   of "Why a word looks at itself most" allows it?
#
# To try now, in the terminal: `s layer_cache`, and `!softmax(x @ (w_q @ w_k.T) @ x.T)[0].round(2)`.
#
# ## Where the documents differ
#
# - *Attention机制详解（二）* says that a word's score with itself is obviously the largest as a rule. Without
#   matrices that is a theorem for vectors of one length. With matrices that know nothing yet it is 1 in T.
# - *The components of the Transformer* explains query, key and value by a search for videos, where the best
#   hit is handed out. Attention hands out a mean of all values.
# - *一步步解析Attention is All You Need!* lists concat and perceptron side by side. Luong's published concat
#   has the tanh as well, v · tanh(W [q; k]): it is the perceptron, with its W and U stacked.
# - The paper knows two: additive attention, which is the perceptron, and dot-product attention.
#
# Of these two the paper says that for large dₖ "additive attention outperforms dot product attention without
# scaling". On our wheel, a query of length 64 had lost its slope. It is the same thing.
#
# **Next**, lesson 5: the dot product, scaled.

# %% [markdown]
# # 16 · Faster: where the time goes, and how to get it back
#
# *30 minutes to read, 7 seconds to run. Lessons 5 and 8, and a whole model, as in lessons 12 and 13.*
#
# **The question.** The paper took 100,000 training steps. Where does the time of a step go? How much of it
# would a perfect program need? And how near does one come with NumPy alone, the numbers being the same?
#
# Every time below is measured while the lesson runs, and will be another on your machine. What is asserted
# are counts, bytes, and that the faster way gives the same numbers.

# %%
import math
import tracemalloc
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import Transformer, kernels, show
from npformer import functional as F
from npformer.backend import choose_backend, random_keep_mask, to_numpy
from npformer.bench.floor import floor_step, products
from npformer.bench.own_step import own_step
from npformer.bench.profile import profile
from npformer.bench.setups import Setup
from npformer.checking import gradcheck
from npformer.data import PAD
from npformer.functional import attention, attention_backward
from npformer.functional.packing import find_tokens, pack, unpack
from npformer.learn.course import show_figure
from npformer.plots import curves, probability_bars
from npformer.training import loss_and_gradients
from npformer.training.workers import Workers

rng = np.random.default_rng(16)
threadpool_limits(1, user_api="blas")  # products on one thread, until we come to threads

# %%


def fastest(f, times=3):
    """Seconds of the fastest of a few runs: whatever else the machine does can only add."""
    seconds = []
    for _ in range(times):
        started = perf_counter()
        f()
        seconds.append(perf_counter() - started)
    return min(seconds)


def peak_bytes(f):
    """The most memory that f held at one time, beyond what there was before."""
    tracemalloc.start()
    f()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


# %% [markdown]
# ## The passage, and its sum
#
# *Attention Is All You Need*, section 5.2, and a footnote to table 2:
#
# > For our base models using the hyperparameters described throughout the paper, each training step took
# > about 0.4 seconds. We trained the base models for a total of 100,000 steps or 12 hours.
#
# > We used values of 2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100, respectively.
#
# Table 2 gives the price of the base model: 3.3 · 10¹⁸ operations. They were not counted. It is the time,
# times the processors, times what such a processor is reckoned to do. How many does the *model* need? A
# product of (m, n) with (n, k) takes 2·m·n·k. A step has 25,000 tokens on each side. Without the scores,
# which add little at sentences of 25 words, the products of one position are, forward:
#
# ```math
# encoder layer    4 D²  (q, k, v, output)  +  2 D F
# decoder layer    4 D²  +  4 D² (cross)    +  2 D F          output   D V
# ```
#
# in multiplications, each with its addition. Backward costs twice what forward does: y = xW has two
# gradients, dx = dy Wᵀ and dW = xᵀ dy, each a product of the same size.

# %%
paid = 12 * 3600 * 8 * 9.5e12  # 12 hours, 8 processors


def products_of_a_position(D, H, V, N):
    return N * (4 * D * D + 2 * D * H) + N * (8 * D * D + 2 * D * H) + D * V


needed = 100_000 * 3 * 2 * 25_000 * products_of_a_position(D=512, H=2048, V=37_000, N=6)
print(f"paid for 100,000 steps {paid:.2e}, needed {needed:.2e}: {needed / paid:.0%}")
assert_allclose([paid, needed / paid], [3.3e18, 0.29], rtol=0.01)

# %% [markdown]
# By this count the paper's own program used 29 % of what was paid for.
#
# ## The floor
#
# A model of the paper's shape, in small: D = 128, two layers on each side, 32 sentences of 16 to 24 tokens.
# `products` lists the products of its forward pass. Its sum is the formula's, with the scores:

# %%
D, H, V, N, B, T = 128, 256, 4000, 2, 32, 24
setup = Setup("reader", D, H, 4, N, V, sentences=B, length=T, tied=False)
batch = setup.batch()
needed = sum(product.operations for product in products(setup, batch))
scores = 3 * N * 2 * B * T * T * D  # three attentions a pair of layers, two products each
assert needed == 3 * 2 * (B * T * products_of_a_position(D, H, V, N) + scores)
print(f"{needed / 1e9:.2f} · 10⁹ operations in products, forward and backward")
seconds, here = {}, {"workers": 1, "backend": "numpy"}  # seconds of one step
seconds["products alone"] = fastest(floor_step(setup, packed=False, **here))
with kernels.plain_pairs():
    seconds["plain pairs"] = fastest(own_step(setup, **here))
print("products alone {products alone:.3f} s, plain step {plain pairs:.3f} s".format(**seconds))

# %% [markdown]
# `functional/` holds the **plain pairs** of these lessons, and `kernels.plain_pairs()` lets every layer call
# them. The products alone are the step's **floor**: whoever calls BLAS cannot be faster. Where is the rest?

# %%
with kernels.plain_pairs():
    before = {part: f + b for part, f, b in profile(setup, backend="numpy", seconds=0)}
after = {part: f + b for part, f, b in profile(setup, backend="numpy", seconds=0)}
print("ms of one step                        plain   kernels")
for part, spent in before.items():
    print(f"{part:35} {spent * 1e3:7.1f} {after[part] * 1e3:9.1f}")

# %% [markdown]
# The right column is what `npformer/kernels/` makes of the same step; we shall take its tricks one by one.
# What costs is the small rest: biases, dropout, norms, exponentials, Adam. Each is a walk through large
# arrays with one operation a number.
#
# ## Two speeds
#
# Why is that so slow? A product of two n × n matrices uses each number n times, most times from the
# processor's own small memory, the cache. A sum uses each once, and where the matrices are larger than the
# cache, it comes from far away. In float32 the product has 2n³ / 12n² = n/6 operations a byte, and the sum
# n² / 12n² = 1/12, always. Half the bytes are twice the speed either way: so we train in float32.

# %%
widths = np.array([16, 32, 64, 128, 256, 512])
rates = np.zeros((3, len(widths)))  # product in float32, in float64, sum in float32
kinds = [(np.matmul, np.float32), (np.matmul, np.float64), (np.add, np.float32)]
for j, n in enumerate(widths.tolist()):
    for i, (f, dtype) in enumerate(kinds):
        a, b, out = rng.standard_normal((3, n, n)).astype(dtype)
        operations = 2 * n**3 if f is np.matmul else n**2
        times = max(1, 10**7 // operations)  # small ones are too quick for the clock
        spent = fastest(lambda f=f, n=times, given=(a, b, out): [f(*given) for _ in range(n)])
        rates[i, j] = times * operations / spent / 1e9
print("best, in 10⁹ operations a second:", rates.max(1).round(1))
names = ["product, float32", "product, float64", "sum, float32"]
settings = {"xlabel": "n, of n × n matrices", "ylabel": "10⁹ operations a second"}
figure = curves(rates, widths, labels=names, xscale="log", yscale="log", **settings)
show_figure(figure, "16_rates", "Large products reach the machine's best; sums never do")

# %% [markdown]
# ## Let the products do it
#
# The first two tricks cost nothing. `np.dot` with three axes does not use BLAS at all; lay the sentences in
# one pile, so that it is *one* product of two axes. And a sum along a row is a product with a vector of
# ones: BLAS takes the row in larger bites than `sum` does.

# %%
gains = {}  # trick: the fast way's share of the slow way's time


def compare(name, fast, slow=None, times=5, **tolerance):
    """Both ways give the same numbers, and take so long; slow is `fast` with the plain pairs."""
    slow = slow or kernels.plain_pairs()(fast)
    for right, found in zip(arrays(slow()), arrays(fast()), strict=True):
        assert_allclose(found, right, **({"rtol": 1e-4, "atol": 1e-5} | tolerance))
    one, other = fastest(slow, times), fastest(fast, times)
    gains[name] = other / one
    print(f"{name:26} {one * 1e3:8.2f} ms, {other * 1e3:7.2f} ms: {one / other:6.1f} ×")


def arrays(tree):
    return [x for part in tree for x in arrays(part)] if isinstance(tree, tuple) else [tree]


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


x, w = normal(8, 32, 128), normal(128, 128)  # (B, T, D), (D, O)
compare("two axes", lambda: (x.reshape(-1, 128) @ w).reshape(x.shape), lambda: np.dot(x, w))
rows, ones = normal(4096, 256), np.ones(256, np.float32)  # (N, D), (D,)
compare("sums as products", lambda: rows @ ones, lambda: rows.sum(-1), atol=1e-3)

# %% [markdown]
# ## Random bits
#
# Dropout wants to know of each number whether to keep it, and a uniform number for each is far more than
# that. One random word of 64 bits is four numbers of 16, each compared with rate · 65,536. The plain pair
# takes them from `random_keep_mask` too, so that both drop the same.

# %%
size = (4096, 256)


def words(rng):
    bits = rng.integers(0, 1 << 64, math.prod(size) // 4, dtype=np.uint64).view(np.uint16)
    return bits.reshape(size) >= round(0.1 * 65_536)


kept = words(np.random.default_rng(1))
assert_array_equal(kept, random_keep_mask(np.random.default_rng(1), size, 0.1, rows))
one, other = fastest(lambda: rng.random(size, np.float32) >= 0.1), fastest(lambda: words(rng))
gains["random words"] = other / one
print(f"a number each {one * 1e3:.2f} ms, words {other * 1e3:.2f} ms; kept {kept.mean():.3f}")

# %% [markdown]
# ## Fewer walks, and shorter ones
#
# A softmax subtracts the row's maximum, so that exp does not overflow: two walks and a new array. Where all
# scores lie within ±60 nothing overflows in float32, and the largest and the smallest of a block tell. The
# rest happens in place: exp, the mask (a product with 0 and 1), the sum (a product with ones), a product.

# %%
scores = normal(16, 4, 64, 64)  # (B, H, T, S)
ones = np.ones(64, np.float32)


def in_place():
    y = scores.copy()  # only so that we can ask twice
    assert -60 < y.min() < y.max() < 60
    np.exp(y, out=y)
    y *= (1 / (y @ ones))[..., None]
    return y


compare("softmax in place", in_place, lambda: F.softmax(scores)[0])

# %% [markdown]
# After a sublayer come dropout, a sum and a norm: some ten walks through an array of a megabyte or more.
# **Take a block of 65,536 numbers** (256 KB), do all ten on it while it lies in the cache, then the next
# block. Adam's formula (lesson 13) is ten walks over all parameters; the same blocks, the same formula.

# %%
x, h, gain, bias = normal(4096, 256), normal(4096, 256), normal(256), normal(256)
normals = normal(4, 1_000_000)


def residual():
    y, cache = kernels.add_norm(x, h, gain, bias, p=0.1, rng=np.random.default_rng(2))
    return y, kernels.add_norm_backward(x, cache)


def adam():
    values, m, v, g = normals.copy()  # each (P,)
    kernels.adam_update(values, g, m, v * v, 1e-3, 1, (0.9, 0.98), 1e-9)
    return values, m


compare("residual + norm in blocks", residual, atol=2e-3)
compare("Adam in blocks", adam)

# %% [markdown]
# ## The largest arrays there are
#
# Logits are (tokens, V): at 37,000 words larger than all else. The plain pair makes log-probabilities,
# probabilities and the gradient, each of that size. But the gradient is p − q (lesson 12), and p is at hand
# on the way *forward*. So the kernel makes it there, rows at a time, and writes it **over the logits**.
#
# The embedding's gradient adds each word's row to its row of the table. `add.at` looks up every row anew.
# Sorted, equal words stand side by side: one sum for each, one visit to the table.

# %%
logits, targets = normal(400, V), rng.integers(0, V, 400)  # (N, V), (N,)
ids, rows, table = rng.zipf(1.3, 3000) % V, normal(3000, D), normal(V, D)


def losses(z=logits, pair=kernels.cross_entropy):
    loss, cache = pair(z, targets, smoothing=0.1)
    return loss, kernels.cross_entropy_backward(1, cache)


def embedded():
    return kernels.embedding_backward(rows, kernels.embedding(ids, table)[1])


compare("cross-entropy in place", losses)
compare("sorted segments", embedded, atol=1e-3)
spare, plain = logits.copy(), kernels.plain_pairs()(losses)
most_in_place = peak_bytes(lambda: losses(spare, kernels.cross_entropy_in_place))
most = np.array([peak_bytes(plain), most_in_place])
print("memory beyond the logits, in theirs:", (most / logits.nbytes).round(2))
assert most[0] > 2 * logits.nbytes > 20 * most[1]

# %% [markdown]
# A weight's gradient, too, can be written where it belongs. Gradients add up, `weight.grad += dw`: one array
# too many, and a walk. But while `grad` is still 0, the product may be written into it: a kernel returns the
# product unevaluated (`LazyProduct`), and `Parameter.accumulate` evaluates it there.
#
# And large arrays have a price before anything is in them. What is freed goes back to the system, and the
# next array's pages are handed out anew, each cleared first: some 20,000 at every step of the paper's base
# model. So a training run has malloc keep what is freed (`keep_freed_memory_in_process`, called by `train`):
# each step finds its room where the last one left it. That took 5 % off the step of `tiny` in the table
# below.
#
# How much of the old time is left, trick by trick:

# %%
figure = probability_bars(np.clip(list(gains.values()), 0, 1), list(gains))
show_figure(figure, "16_tricks", "The fast way's share of the slow way's time (1: no faster)")

# %% [markdown]
# ## Nothing at padding
#
# Linear maps, norms and logits treat each position by itself, so they need not be made at padding at all:
# that lowers the floor itself. `pack` takes the rows that are words, `unpack` puts them back between zeros,
# for attention, which must know what makes a sentence. With P the matrix of zeros and ones that picks the
# rows, pack is P and unpack is Pᵀ: each is the other's backward, ⟨P x, y⟩ = ⟨x, Pᵀ y⟩.

# %%
packing = find_tokens(batch.source, PAD)
x, y = rng.standard_normal((B, T, D)), rng.standard_normal((len(packing.places), D))
assert_allclose((pack(x, packing) * y).sum(), (x * unpack(y, packing)).sum())
model = Transformer(setup.config(), rng=np.random.default_rng(0), dtype=np.float64)
padded, _ = model.forward(batch.source, batch.target_in)  # (B, T, V)
packed, _ = model.forward(batch.source, batch.target_in, packed=True)  # (N, V)
assert_allclose(packed, padded[batch.target_in != PAD], rtol=1e-7, atol=1e-9)
print(f"{len(packed)} rows of logits for {B * T} places")

# %% [markdown]
# ## Two threads, one BLAS thread each
#
# BLAS can spread a product over threads: cut it, wake them, wait for the last one. For a small product that
# is more than the product; and all that is no product stays on one thread. Better is to give each thread a
# **part of the batch** with all its work. (While NumPy computes, other threads of Python may run.) The loss
# is a mean over n tokens, so its gradient is the parts' own, each with its share of the tokens:
#
# ```math
# L = Σᵢ (nᵢ/n) Lᵢ            dL = Σᵢ (nᵢ/n) dLᵢ
# ```
#
# Each thread has a `replicate()` of the model: the same values, gradients of its own. They are added in a
# fixed order, so the same seed gives the same bits.

# %%
loss_and_gradients(model, [batch], workers=Workers(model, 2))
ours = model.grads.copy()
loss_and_gradients(model, [batch])
assert_allclose(ours, model.grads, rtol=1e-7, atol=1e-12)
for n in (1, 2):
    seconds[f"kernels, workers: {n}"] = fastest(own_step(setup, workers=n, backend="numpy"))
for name, spent in seconds.items():
    over = spent / seconds["products alone"]
    print(f"{name:20} {spent * 1e3:8.1f} ms {over:6.2f} × the floor")

# %%
spent = np.array(list(seconds.values()))
figure = probability_bars(spent / spent.max(), list(seconds))
show_figure(figure, "16_step", "One step's time, as a share of the longest, on this machine")

# %% [markdown]
# `npformer train --workers 2` does this; on two free cores the last may lie *under* the floor of one.
#
# ## Measured
#
# `npformer bench --against torch` puts the step beside PyTorch's, on the same cores, in processes that take
# turns. Of its configurations, the speed (median of the rounds, the least and the most) and the memory:

# %%
# measured: filled in by npformer bench
MEASURED = """\
configuration | tokens/s | times PyTorch's speed | of its memory | over the floor (packed)
tiny | 8,229 | 2.64 (1.84-3.16) | 0.34 | 1.25 (1.34)
small | 3,588 | 2.12 (1.82-2.37) | 0.41 | 1.09 (1.26)
base8k | 601 | 1.62 (1.56-1.65) | 0.57 | 1.00 (1.11)
base37k | 427 | 1.75 (1.71-1.91) | 0.59 | 0.91 (1.13)
"""
for row in MEASURED.splitlines():
    print("{:14} {:>9} {:>22} {:>14} {:>24}".format(*map(str.strip, row.split("|"))))

# %% [markdown]
# The smaller the products, the more there is to gain around them. On your machine: `npformer bench`.
#
# ## Attention in blocks: a softmax that has not seen its row yet
#
# Weights are (T, S): for 1,000 words a million numbers a head, kept for backward. Can y = softmax(s) V be
# had without a whole row s? Its maximum m and sum ℓ are over *all* keys. Take the keys in blocks, and keep,
# of the keys so far:
#
# ```math
# m = maxⱼ sⱼ        ℓ = Σⱼ exp(sⱼ − m)        o = Σⱼ exp(sⱼ − m) vⱼ          y = o / ℓ
# ```
#
# A new block has the maximum b; m′ = max(m, b). All that was summed has a factor e^(−m) and should have
# e^(−m′): multiply it by a = e^(m − m′), and add the block's own terms. Nothing is approximated:
#
# ```math
# ℓ′ = a ℓ + Σ exp(sⱼ − m′)        o′ = a o + Σ exp(sⱼ − m′) vⱼ        j in the block
# ```
#
# (Milakov and Gimelshein 2018; in attention: Rabe and Staats 2021, Dao et al. 2022.)
#
# **Backward** makes the weights again, from one number a query, λ = m + log ℓ: pⱼ = exp(sⱼ − λ). The
# softmax's gradient (lesson 5) needs Σ p dp over the *whole* row; but that is known beforehand:
#
# ```math
# Σⱼ pⱼ dpⱼ  =  Σⱼ pⱼ Σᵢ dyᵢ vⱼᵢ  =  Σᵢ dyᵢ Σⱼ pⱼ vⱼᵢ  =  Σᵢ dyᵢ yᵢ
# dsⱼ = pⱼ (dpⱼ − Σᵢ dyᵢ yᵢ)        dq = c Σⱼ dsⱼ kⱼ        dkⱼ = c dsⱼᵀ q        dvⱼ = pⱼᵀ dy
# ```


# %%
class BlockCache(NamedTuple):
    """What the backward pass needs: nothing of shape (T, S)."""

    q: np.ndarray  # (..., T, K), with c in it
    k: np.ndarray  # (..., S, K)
    v: np.ndarray  # (..., S, L)
    y: np.ndarray  # (..., T, L)
    log_sum: np.ndarray  # (..., T, 1) λ = m + log ℓ
    block: int


def attention_in_blocks(q, k, v, *, block=64):
    """The same y as attention(q, k, v), with the keys taken a block at a time."""
    q = q * (1 / math.sqrt(q.shape[-1]))  # (..., T, K) with c in it, once
    top, total, mixed = -np.inf, 0, 0
    for j in range(0, k.shape[-2], block):
        scores = q @ k[..., j : j + block, :].swapaxes(-1, -2)  # (..., T, block)
        new = np.maximum(top, scores.real.max(-1, keepdims=True))  # (..., T, 1)
        again = np.exp(top - new)  # 0 at the first block
        e = np.exp(scores - new)  # (..., T, block)
        total = again * total + e.sum(-1, keepdims=True)  # (..., T, 1)
        mixed = again * mixed + e @ v[..., j : j + block, :]  # (..., T, L)
        top = new
    y = mixed / total
    return y, BlockCache(q, k, v, y, top + np.log(total), block)


def attention_in_blocks_backward(dy, cache):
    q, k, v, y, log_sum, block = cache
    average = (dy * y).sum(-1, keepdims=True)  # (..., T, 1) = sum of p dp
    dq, dk, dv = np.zeros_like(q), np.empty_like(k), np.empty_like(v)
    for j in range(0, k.shape[-2], block):
        here = (..., slice(j, j + block), slice(None))
        p = np.exp(q @ k[here].swapaxes(-1, -2) - log_sum)  # (..., T, block) the weights, again
        dv[here] = p.swapaxes(-1, -2) @ dy
        ds = p * (dy @ v[here].swapaxes(-1, -2) - average)  # (..., T, block)
        dq += ds @ k[here]
        dk[here] = ds.swapaxes(-1, -2) @ q  # q has c in it already
    return dq * (1 / math.sqrt(q.shape[-1])), dk, dv


# %%
q, k, v = (rng.standard_normal((2, n, w)) for n, w in ((7, 8), (10, 8), (10, 5)))  # H = 2
y, cache = attention_in_blocks(q, k, v, block=4)  # blocks of 4, 4 and 2 keys
show(cache)
y_whole, whole_cache = attention(q, k, v)
dy = rng.standard_normal(y.shape)
assert_allclose(y, y_whole, rtol=1e-10, atol=1e-13)
grads = attention_in_blocks_backward(dy, cache), attention_backward(dy, whole_cache)
for ours, theirs in zip(*grads, strict=True):
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
report = gradcheck((attention_in_blocks, attention_in_blocks_backward), q, k, v, block=4)
print(report)
assert report.ok

# %% [markdown]
# Five products in place of lesson 5's four: the scores are made twice. What that buys, with four heads:

# %%
lengths = np.array([128, 256, 512, 1024])
memory = np.zeros((2, len(lengths)))
ways = (attention, attention_backward), (attention_in_blocks, attention_in_blocks_backward)
for j, n in enumerate(lengths):
    q, k, v, dy = rng.standard_normal((4, 4, n, 32)).astype(np.float32)  # each (H, T, K)
    for i, (f, f_backward) in enumerate(ways):
        memory[i, j] = peak_bytes(lambda: f_backward(dy, f(q, k, v)[1])) / 1e6  # noqa: B023
    print("{:5} words: {:6.1f} MB with all weights, {:5.1f} in blocks".format(n, *memory[:, j]))
growth = memory[:, 3] / memory[:, 2]  # 1,024 words to 512
assert growth[0] > 3.7 > 2.3 > growth[1]

# %% [markdown]
# ## The GPU
#
# CuPy has NumPy's functions for arrays on a GPU. No line of the mathematics changes: every function asks its
# arrays for their module, `xp = array_module(x)`. What changes is round it. Arrays move over a narrow road:
# parameters go once, `model.to("cupy")`. A call *orders* work and returns before it is done: wait before you
# look at the clock. And an order costs microseconds, however small its array: only large products pay. So
# `kernels/gpu/` has whole formulas fused into one order each (`cupy.fuse`): what lies between two products is
# read once, and not anew for every operation.

# %%
if choose_backend("auto") == "cupy":
    gpu_step = own_step(setup, workers=1, backend="cupy")  # waits until all is done
    gpu_step()  # the first call compiles
    print(f"a step on the GPU: {fastest(gpu_step) * 1e3:.2f} ms")
    there, _ = model.astype(np.float32).to("cupy").forward(batch.source, batch.target_in)
    assert_allclose(to_numpy(there), padded, rtol=1e-2, atol=1e-3)
else:
    print("No GPU that CuPy can reach: this cell runs where there is one.")

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has none for this lesson. These are for a file of your own, with this lesson's
# asserts as the judge:
#
# - A causal mask for `attention_in_blocks`: blocks of keys that lie wholly in the future are skipped. Which
#   share of the work does that save, for T words and blocks of b?
# - Cross-entropy in blocks of rows: the logits (N, V) become their own gradient, in place. How many arrays
#   of that size does the plain pair hold at one time, and how many do you?
# - Layer norm in place: which of its arrays may be overwritten, if xhat is needed by backward?
# - By hand: for which sentence length do a layer's scores cost as much as its projections, 8 D² a position
#   against 4 T D? What is that for the paper's D = 512?
#
# To try now, in the terminal: `!fastest(lambda: attention_in_blocks(q, k, v, block=16))`, and other blocks.

# %% [markdown]
# ## Where the documents differ
#
# - *图解transformer* calls it the Transformer's great advantage that a whole sequence is computed in
#   parallel, without stepping through time. In training, yes. In decoding a word needs the word before it
#   (lesson 14).
# - *Attention机制详解（二）* gives the same reason. The paper says when attention is also *less work* than an
#   RNN: "when the sequence length n is smaller than the representation dimensionality d" (section 4).
# - *The components of the Transformer* repeats the paper's twelve hours on eight P100; those are the base
#   model's 100,000 steps. The big model took 3.5 days.
# - *一步步解析Attention is All You Need!* stacks heads along the batch axis. The products are the same; only
#   which copies are made differs (lesson 7).
#
# **Next**, lesson 17: attention before the Transformer, on networks that read word by word.

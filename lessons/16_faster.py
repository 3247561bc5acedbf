# %% [markdown]
# # 16 · Faster: where the time goes, and how to get some back
#
# *30 minutes to read, 5 seconds to run. Lessons 5 and 7, and a whole model, as in lessons 12 and 13.*
#
# **The question.** A training step is a few hundred lines of NumPy, and the paper took 100,000 of them.
# Where does the time of a step go? How much of it would a perfect program need? And what can be gained
# without changing the numbers that come out?
#
# Every time below is measured while the lesson runs, on the machine that it runs on, and will be another on
# yours. What is asserted are counts, bytes, and that the faster way gives the same numbers.

# %%
import math
import os
import tracemalloc
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from npformer import MultiHeadAttention, Transformer, TransformerConfig, show
from npformer.backend import choose_backend, to_numpy
from npformer.course import show_figure
from npformer.data import make_batch, reverse_task
from npformer.functional import attention, attention_backward
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.gradcheck import gradcheck
from npformer.optim import Adam
from npformer.plots import curves, probability_bars
from npformer.training import loss_and_gradients

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
# times the processors, times what the authors reckon that such a processor can do. How many operations does
# the *model* need? A product of (m, n) with (n, k) makes m·k numbers, each by n multiplications and as many
# additions:
#
# ```math
# operations = 2 · m · n · k
# ```
#
# A step has 25,000 tokens on each side. With N = 6, D = 512, F = 2048 and V = 37,000, and without the
# scores (which add little, at sentences of 25 words), the products of one position are, forward:
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
D, F, V, N = 512, 2048, 37_000, 6
forward = 2 * 25_000 * (N * (4 * D * D + 2 * D * F) + N * (8 * D * D + 2 * D * F) + D * V)
print(f"paid for 100,000 steps {paid:.2e}, needed {3 * forward * 100_000:.2e}")
print(f"share: {3 * forward * 100_000 / paid:.0%}")
assert_allclose(paid, 3.3e18, rtol=0.01)
assert_allclose(3 * forward * 100_000 / paid, 0.29, atol=0.01)

# %% [markdown]
# By this count the paper's own program used 29 % of what was paid for. Keep the number in mind until yours
# comes.
#
# ## Where the time goes
#
# A profiler sees functions, but `x @ w` and `a + b` are no functions of Python. So let the arrays tell: a
# subclass of `ndarray` whose every such operation goes through one method, which looks at the clock.

# %%


class Watched(np.ndarray):
    """An array that writes down what is done with it: [seconds, operations]."""

    log, part = defaultdict(lambda: [0.0, 0]), "the rest"  # log[part, kind]

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **settings):
        inputs = [plain(x) for x in inputs]
        if out is not None:
            settings["out"] = tuple(plain(x) for x in out)
        started = perf_counter()
        y = getattr(ufunc, method)(*inputs, **settings)
        entry = Watched.log[Watched.part, "product" if ufunc is np.matmul else "other"]
        entry[0] += perf_counter() - started
        product = 2 * np.size(y) * inputs[0].shape[-1] if ufunc is np.matmul else 0
        entry[1] += product or max(map(np.size, inputs))
        if out is not None:
            return out[0]
        return y.view(Watched) if isinstance(y, np.ndarray) else y


def plain(x):
    return x.view(np.ndarray) if isinstance(x, Watched) else x


# %% [markdown]
# That sees operations. The parts of the model are seen from outside: their methods are wrapped, so that
# what they do is written down under the part's name.

# %%
seconds_of = defaultdict(float)  # part -> all its time, Python's included


def watch(part, thing, *methods):
    """Whatever these methods of a layer do is written down under the name of the part."""
    for name in methods or ("forward", "backward"):
        setattr(thing, name, watching(part, getattr(thing, name)))


def watching(part, method):
    def timed(*given, **settings):
        before, Watched.part = Watched.part, part
        started = perf_counter()
        result = method(*given, **settings)
        seconds_of[part] += perf_counter() - started
        Watched.part = before
        return result

    return timed


# %% [markdown]
# A model of the paper's shape, in small: D = 128, two layers on each side, 32 sentences of 24 tokens.

# %%
D, F, V, N, B, T = 128, 512, 1000, 2, 32, 24
sizes = {"d_model": D, "d_ff": F, "n_heads": 4, "n_layers": N, "max_length": 64}
config = TransformerConfig(source_vocab=V, target_vocab=V, dropout=0.1, **sizes)
model = Transformer(config, rng=np.random.default_rng(0))  # float32
source, target_in, target_out = rng.integers(4, V, (3, B, T))  # no padding
adam = Adam(model)
for parameter in model.parameters():
    parameter.value = parameter.value.view(Watched)


def dlogits_of(logits):
    _, cache = cross_entropy(logits, target_out, smoothing=0.1)
    return cross_entropy_backward(1.0, cache)


softmax_and_loss = watching("softmax and loss", dlogits_of)
for layer in [*model.encoder.layers, *model.decoder.layers]:
    for name, thing in vars(layer).items():
        if name.endswith("residual"):
            halves = ("enter", "join", "join_backward", "enter_backward")
            watch("residuals, norms, dropout", thing, *halves)
        else:
            watch("feed-forward" if name == "feed_forward" else "attention", thing)
watch("embeddings", model.source)
watch("embeddings", model.target)
watch("output layer", model.output)
watch("Adam", adam, "step")

# %%


def products():
    return sum(entry[1] for (_, kind), entry in Watched.log.items() if kind == "product")


def train_step():
    """Returns the operations of the products, forward and backward."""
    model.zero_grad()
    start = products()
    logits, cache = model.forward(source, target_in, train=True, rng=rng)
    middle = products()
    model.backward(softmax_and_loss(logits), cache)
    end = products()
    adam.step(1e-4)
    return middle - start, end - middle


runs = []
for _ in range(4):  # the fastest of four counts
    Watched.log.clear()
    seconds_of.clear()
    started = perf_counter()
    forward, backward = train_step()
    runs.append((perf_counter() - started, dict(Watched.log), dict(seconds_of)))
whole, log, seconds_of = min(runs, key=lambda run: run[0])

per_position = N * (4 * D * D + 2 * D * F) + N * (8 * D * D + 2 * D * F) + D * V
scores = 3 * N * 2 * B * T * T * D  # three attentions a pair of layers, two products each
assert forward == 2 * (B * T * per_position + scores)
assert backward == 2 * forward
print(f"forward {forward / 1e9:.3f} · 10⁹ operations in products, backward {backward / 1e9:.3f}")

# %% [markdown]
# The formula holds to the last operation, and backward is exactly twice forward. Now the clock:

# %%
share = {part: spent / whole for part, spent in seconds_of.items()}
share["the rest"] = 1 - sum(share.values())
share = dict(sorted(share.items(), key=lambda item: -item[1]))
print("part                        share   of it products   10⁹ operations a second in products")
for part in share:
    spent, operations = log.get((part, "product"), (0, 0))
    line = f"{part:26} {share[part]:6.1%} {spent / whole / share[part]:12.0%}"
    print(line + (f" {operations / spent / 1e9:21.0f}" if operations else ""))
in_products = sum(entry[0] for (_, kind), entry in log.items() if kind == "product")
others = sum(entry[1] for (_, kind), entry in log.items() if kind == "other")
others += 14 * len(model.values)  # Adam's, on plain arrays (lesson 13's formula)
needed = (forward + backward) / (forward + backward + others)
print(f"products: {needed:.1%} of the operations, {in_products / whole:.0%} of the time")
assert needed > 0.98

# %%
names = list(share)
figure = probability_bars(np.clip([share[name] for name in names], 0, 1), names)
show_figure(figure, "16_parts", "Shares of one training step's time, on this machine")

# %% [markdown]
# Over 98 % of all operations are in products, and yet much of the time is not: on the machine where this
# was written, about half. What takes it is the small rest: adding biases, dropping out, normalizing,
# exponentials, Adam. Each is a walk through large arrays with one operation a number.
#
# ## Two speeds
#
# Why is that so slow? A product of two n × n matrices does 2n³ operations on 3n² numbers: each number is
# used n times, and most times from the processor's own small memory, the cache. A sum of two matrices does
# n² operations on 3n² numbers: each is used once, and where the matrices are larger than the cache, it
# comes from far away. In float32, at 4 bytes a number:
#
# ```math
# operations per byte    product  2n³ / 12n² = n/6        sum  n² / 12n² = 1/12
# ```
#
# The first grows until the arithmetic is the limit, the second never does: the memory is the limit.

# %%
widths = np.array([16, 32, 64, 128, 256, 512, 1024])
rates = np.zeros((3, len(widths)))  # product in float32, in float64, sum in float32
kinds = [(np.matmul, np.float32), (np.matmul, np.float64), (np.add, np.float32)]
for j, n in enumerate(widths.tolist()):
    for i, (f, dtype) in enumerate(kinds):
        a, b, out = rng.standard_normal((3, n, n)).astype(dtype)
        operations = 2 * n**3 if f is np.matmul else n**2
        times = max(1, 10**7 // operations)  # small ones are too quick for the clock

        def often(f=f, given=(a, b, out), times=times):
            for _ in range(times):
                f(*given)

        rates[i, j] = times * operations / fastest(often) / 1e9
best = rates.max(1)
print(
    "best, in 10⁹ operations a second: product in float32 {:.0f}, in float64 {:.0f}; "
    "sum in float32 {:.1f}".format(*best)
)
ideal = (forward + backward) / best[0] / 1e9
print(f"the step took {whole:.3f} s, its products need {ideal:.3f} s: {ideal / whole:.0%}")

# %%
figure = curves(
    rates,
    widths,
    labels=["product, float32", "product, float64", "sum, float32"],
    xlabel="n, of n × n matrices",
    ylabel="10⁹ operations a second",
    xscale="log",
    yscale="log",
)
show_figure(figure, "16_rates", "Large products reach the machine's best; sums never do")

# %% [markdown]
# The last number printed stands beside the paper's 29 %. Three things raise it: fewer walks through memory,
# shorter walks (that end inside the cache), and no work for nothing.
#
# ## Fewer and shorter walks: Adam in place, in blocks
#
# The package's Adam is the formula, a line each (lesson 13). `(1 - beta1) * (g - m)` makes an array as
# large as all parameters for `g - m`, and a second for the product. Here are the same operations in the
# same order, on blocks of 65,536 numbers, with two scratch arrays of that size:

# %%


def adam_in_blocks(value, g, m, v, t, lr, beta1=0.9, beta2=0.98, eps=1e-9, block=1 << 16):
    """One step of Adam, everything in place. Shapes: value, g, m, v (P,)."""
    scratch, update = np.empty((2, min(block, len(value))), value.dtype)
    for start in range(0, len(value), block):
        here = slice(start, start + block)
        x, gb, mb, vb = value[here], g[here], m[here], v[here]  # views: nothing is copied
        a, u = scratch[: len(x)], update[: len(x)]
        np.subtract(gb, mb, out=a)  # m += (1 - β₁) (g - m)
        a *= 1 - beta1
        mb += a
        np.multiply(gb, gb, out=a)  # v += (1 - β₂) (g² - v)
        a -= vb
        a *= 1 - beta2
        vb += a
        np.divide(vb, 1 - beta2**t, out=a)  # value -= lr m̂ / (√v̂ + ε)
        np.sqrt(a, out=a)
        a += eps
        np.divide(mb, 1 - beta1**t, out=u)
        u *= lr
        u /= a
        x -= u


def peak_bytes(f):
    """The most memory that f held at one time, beyond what there was before."""
    tracemalloc.start()
    f()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


# %%
plain_model = Transformer(config, rng=np.random.default_rng(0))
plain_adam = Adam(plain_model)
plain_model.grads[...] = rng.standard_normal(plain_model.grads.shape)
value, m, v = plain_model.values.copy(), plain_adam.m.copy(), plain_adam.v.copy()
for t in (1, 2, 3):
    plain_adam.step(1e-3)
    adam_in_blocks(value, plain_model.grads, m, v, t, 1e-3)
assert_array_equal(value, plain_model.values)  # not nearly: the same bits


def one_block(t=4):
    adam_in_blocks(value, plain_model.grads, m, v, t, 1e-3)


for name, f in {"formula": lambda: plain_adam.step(1e-3), "in blocks": one_block}.items():
    extra = peak_bytes(f) / value.nbytes
    print(f"{name:10} {fastest(f) * 1e3:6.2f} ms, extra memory {extra:.2f} × the parameters")
assert_allclose(2 * 65_536 / len(value), 1 / 8, atol=0.01)
assert peak_bytes(one_block) < 0.15 * value.nbytes
assert peak_bytes(lambda: plain_adam.step(0.0)) > 3 * value.nbytes

# %% [markdown]
# The formula holds several more copies of all parameters at once, the blocks an eighth of one. And not a
# bit of the result has changed.
#
# ## Attention in blocks: a softmax that has not seen its row yet
#
# Attention's weights are (T, S): for a text of 1,000 words a million numbers a head, kept for backward. Can
# y = softmax(s) V be had without a whole row s? Its maximum m and the sum ℓ are over *all* keys, and seem
# to be needed before the first weight is known. Take the keys in blocks, and keep three things for each
# query, of the keys so far: the maximum, the sum, the weighted values.
#
# ```math
# m = maxⱼ sⱼ        ℓ = Σⱼ exp(sⱼ − m)        o = Σⱼ exp(sⱼ − m) vⱼ          y = o / ℓ
# ```
#
# A new block comes, its maximum is b, and m′ = max(m, b). All that was summed has a factor e^(−m) and
# should have e^(−m′): multiply it by a = e^(m − m′). Then add the block's own terms:
#
# ```math
# ℓ′ = a ℓ + Σ exp(sⱼ − m′)        o′ = a o + Σ exp(sⱼ − m′) vⱼ        j in the block
# ```
#
# Since a · exp(sⱼ − m) = exp(sⱼ − m′), ℓ′ and o′ are again what the definition says. Nothing is
# approximated. (The running softmax: Milakov and Gimelshein 2018. In attention: Rabe and Staats 2021, Dao
# et al. 2022.)

# %%
s = np.array([1.0, 0, 2, 1, 3, 2, 0, 1, 2, 5, 1, 0])  # one query, twelve keys, blocks of four
top, total = -np.inf, 0.0
for block in s.reshape(3, 4):
    new = max(top, block.max())
    total = math.exp(top - new) * total + np.exp(block - new).sum()
    top = new
    print(f"maximum so far {top:7.3f}, sum so far {total:.6f}")
assert_allclose(total, np.exp(s - s.max()).sum())

# %% [markdown]
# ### Backward: make the weights again
#
# Forward keeps one number a query, λ = m + log ℓ, from which any weight can be made anew:
#
# ```math
# pⱼ = exp(sⱼ − m) / ℓ = exp(sⱼ − λ)
# ```
#
# The softmax's gradient (lesson 5) needs one sum over the *whole* row, Σ p dp, and rows are gone. But
#
# ```math
# Σⱼ pⱼ dpⱼ  =  Σⱼ pⱼ Σᵢ dyᵢ vⱼᵢ  =  Σᵢ dyᵢ Σⱼ pⱼ vⱼᵢ  =  Σᵢ dyᵢ yᵢ
# ```
#
# which is known before the first block: the product of dy with the output. So, with c = 1/√K, block by
# block:
#
# ```math
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


# %%


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
assert_allclose((dy * y).sum(-1), ((dy @ v.swapaxes(-1, -2)) * whole_cache.weights).sum(-1))
grads = attention_in_blocks_backward(dy, cache), attention_backward(dy, whole_cache)
for ours, theirs in zip(*grads, strict=True):
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
large = 1e4 * q  # nothing overflows
assert_allclose(attention_in_blocks(large, k, v)[0], attention(large, k, v)[0])

report = gradcheck((attention_in_blocks, attention_in_blocks_backward), q, k, v, block=4)
print(report)
assert report.ok

# %% [markdown]
# The backward pass has five products, not the four of lesson 5: it makes the scores a second time. What
# that buys, forward and backward, with four heads:

# %%
lengths = np.array([128, 256, 384, 512, 768, 1024])
memory = np.zeros((2, len(lengths)))
print("words    weights whole: MB, ms    in blocks of 64 keys: MB, ms")
for j, n in enumerate(lengths):
    q, k, v, dy = rng.standard_normal((4, 4, n, 32)).astype(np.float32)  # each (H, T, K)
    line = f"{n:5}   "
    for i, (f, f_backward) in enumerate(
        [(attention, attention_backward), (attention_in_blocks, attention_in_blocks_backward)]
    ):

        def both(f=f, f_backward=f_backward, given=(q, k, v), dy=dy):
            return f_backward(dy, f(*given)[1])

        memory[i, j] = peak_bytes(both) / 1e6
        line += f" {memory[i, j]:10.1f} {fastest(both) * 1e3:8.1f}   "
    print(line)
growth = memory[:, 5] / memory[:, 3]  # 1,024 words to 512
assert growth[0] > 3.7
assert growth[1] < 2.3
assert memory[0, -1] > 8 * memory[1, -1]

# %%
figure = curves(
    memory,
    lengths,
    labels=["all weights", "in blocks"],
    xlabel="words",
    ylabel="most memory held at one time, MB",
)
caption = "Twice the words: four times the memory with all weights, twice in blocks"
show_figure(figure, "16_memory", caption)

# %% [markdown]
# The weights grow with the square of the length, the blocks with the length. Time is another matter: one
# product more, but arrays that stay in the cache. Which of the two counts for more, the table tells.
#
# ## One product in place of three
#
# q, k and v of self-attention are three products with the same x. Lay the three matrices side by side and
# they are one, since the columns of a product never meet: x [Wq Wk Wv] = [x Wq   x Wk   x Wv]. The same
# operations, but x is read once, and one call does what three did. In the package: `fused="qkv"`. Where the
# products are large already it gains little; where they are small, it is the calls that one pays for.

# %%
apart, fused = (MultiHeadAttention(D, 4, fused=how, dtype=np.float64) for how in ("no", "qkv"))
three = [apart.query, apart.key, apart.value]
fused.query_key_value.weight.value[...] = np.hstack([layer.weight.value for layer in three])
fused.output.weight.value[...] = apart.output.weight.value
x = rng.standard_normal((B, T, D))  # (B, T, D)
assert_allclose(apart.forward(x)[0], fused.forward(x)[0], rtol=1e-9, atol=1e-12)
for rows in (x, x[:1, :1]):  # a batch; one position, as in decoding
    one, three = (fastest(lambda a=a, x=rows: a.project(x, x, x), 9) for a in (fused, apart))
    n = rows.shape[0] * rows.shape[1]
    print(f"{n:3} positions: three products {three * 1e3:.3f} ms, one {one * 1e3:.3f} ms")

# %% [markdown]
# ## Threads
#
# NumPy hands products to a library, BLAS, which may spread one product over several threads. It has to cut
# the matrices, wake the threads and wait for the last one. For a large product that is little. For a small
# one it can be more than the product itself; and where other programs hold the processors, the last thread
# is late every time.

# %%
libraries = [found["internal_api"] for found in threadpool_info() if found["user_api"] == "blas"]
cores = os.cpu_count() or 1
print(f"BLAS: {', '.join(libraries) or 'none that threadpoolctl knows'}; processors: {cores}")
counts = sorted({1, 2, min(cores, 8)})
print("    n " + "".join(f"  {n} threads, ms" for n in counts))
for n in (32, 128, 1024):
    a, b = rng.standard_normal((2, n, n)).astype(np.float32)
    line, repeats = f"{n:5}", max(1, 10**5 // n**2)
    for threads in counts:
        with threadpool_limits(threads, user_api="blas"):
            seconds = fastest(lambda a=a, b=b, n=repeats: [a @ b for _ in range(n)]) / repeats
        line += f" {seconds * 1e3:15.4f}"
    print(line)

# %% [markdown]
# And BLAS only knows products: everything else stays on one thread. The other way is to give each thread a
# *part of the batch* with all its work, and one BLAS thread. The loss is a mean over n tokens, so its
# gradient is that of the parts, each with its share of the tokens:
#
# ```math
# L = Σᵢ (nᵢ/n) Lᵢ            dL = Σᵢ (nᵢ/n) dLᵢ
# ```
#
# Each thread needs gradients of its own to add into, on the same parameters: `model.replicate()`. (While
# NumPy computes on a large array, other threads of Python may run.)

# %%
examples = reverse_task(10, length=30, vocab=50, rng=rng)  # lengths 1 to 30
batch, halves = make_batch(examples), [make_batch(examples[:5]), make_batch(examples[5:])]
config = config.replace(source_vocab=50, target_vocab=50, dropout=0.0)
model = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
twins = [model.replicate(), model.replicate()]
assert all(twin.values is model.values for twin in twins)


def in_threads(pool):
    parts = pool.map(lambda twin, half: loss_and_gradients(twin, [half]), twins, halves)
    tokens = [n for _, n in parts]
    return sum(twin.grads * (n / sum(tokens)) for twin, n in zip(twins, tokens, strict=True))


with ThreadPoolExecutor(2) as pool, threadpool_limits(1, user_api="blas"):
    grads = in_threads(pool)
    loss_and_gradients(model, [batch])
    assert_allclose(grads, model.grads, rtol=1e-9, atol=1e-14)
    one = fastest(lambda: loss_and_gradients(model, [batch]))
    two = fastest(lambda: in_threads(pool))
print(f"one thread {one * 1e3:.1f} ms, two {two * 1e3:.1f} ms, and the same gradient")

# %% [markdown]
# ## Half the bits
#
# float32 has half the bytes of float64: half the memory, half the traffic, twice as many numbers in each
# instruction. It costs digits: 7 in place of 16. For training that is plenty; for checking gradients it is
# not (lesson 0).

# %%
double = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
single = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64).astype(np.float32)
for name, this in {"float64": double, "float32": single}.items():
    seconds = fastest(lambda this=this: loss_and_gradients(this, [batch]))
    megabytes = this.values.nbytes / 1e6
    print(f"{name}: {megabytes:.1f} MB of parameters, {seconds * 1e3:.1f} ms a step")
error = np.linalg.norm(single.grads - double.grads) / np.linalg.norm(double.grads)
print(f"the gradients differ by {error:.0e} of their length")
assert 2 * single.values.nbytes == double.values.nbytes
assert error < 1e-4

# %% [markdown]
# ## The GPU
#
# CuPy has NumPy's functions for arrays on a GPU. No line of the mathematics changes: every function asks
# the arrays that it is given, `xp = array_module(x)`, and goes on with `xp`. What changes is round it:
#
# 1. **Transfers.** Arrays move to the GPU and back over a narrow road. Parameters go once,
#    `model.to("cupy")`; the ids of a batch are few; a loss that is printed at every step makes the GPU wait
#    at every step.
# 2. **Synchronisation.** A call *orders* work and returns before it is done. A clock round it measures the
#    ordering. Wait for the GPU before you look at the clock.
# 3. **Small calls.** Each order costs some microseconds, however small its array. A small model leaves the
#    GPU waiting for Python; only large products pay.

# %%
if choose_backend("auto") == "cupy":
    import cupy

    on_gpu = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
    on_gpu = on_gpu.astype(np.float32).to("cupy")
    wait = cupy.cuda.Device().synchronize
    loss_and_gradients(on_gpu, [batch])  # the first call compiles
    ordered = fastest(lambda: on_gpu.forward(batch.source, batch.target_in))
    wait()
    done = fastest(lambda: (on_gpu.forward(batch.source, batch.target_in), wait()))
    logits, there = (m.forward(batch.source, batch.target_in)[0] for m in (double, on_gpu))
    assert_allclose(to_numpy(there), logits, rtol=1e-2, atol=1e-3)
    print(f"a forward pass: ordered in {ordered * 1e3:.2f} ms, done in {done * 1e3:.2f} ms")
else:
    print("No GPU that CuPy can reach: this cell runs where there is one.")

# %% [markdown]
# ## What to do first
#
# Measure. Then: sentences of one length together, since padding costs what words cost (lesson 1); float32;
# large products instead of many small ones; in place, and in blocks, where arrays are larger than the cache;
# a thread for each part of the batch; a GPU where the products are large. After each of them: the same
# numbers, and a gradient check.

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` ends with lesson 14. These are for a file of your own, with this lesson's asserts
# as the judge:
#
# - A causal mask for `attention_in_blocks`: blocks of keys that lie wholly in the future are skipped. Which
#   share of the work does that save, for T words and blocks of b?
# - Cross-entropy in blocks of rows: the logits (N, V) become their own gradient, in place. How many arrays
#   of that size does the package hold at one time, and how many do you?
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
# - *Attention机制详解（二）* gives the same reason: an RNN trains slowly, since its steps wait for each
#   other. The paper says when attention is also *less work*: "when the sequence length n is smaller than
#   the representation dimensionality d" (section 4).
# - *The components of the Transformer* repeats the paper's twelve hours on eight P100; those are the base
#   model's 100,000 steps. The big model took 3.5 days.
# - *一步步解析Attention is All You Need!* stacks heads along the batch axis. The products are the same; only
#   which copies are made differs (lesson 7).
#
# **Next**, lesson 17: attention before the Transformer, on networks that read word by word.

# %% [markdown]
# # 16.2 · Kernels
#
# *About 35 minutes. You need: arithmetic intensity and memory bandwidth (lesson 16.1,
# `16_1_operations_and_memory_bandwidth`), the layers of chapters 5, 8, 9 and 12.*
#
# **After this lesson you can**
#
# - replace slow NumPy operations by matrix products, and draw fewer random numbers;
# - compute several operations on a block of an array while it is in the processor's cache;
# - find large arrays that are not necessary, and avoid them.
#
# `[TRAINING]: batch → model → loss → backward pass → optimizer → parameters`

# %%
import math
import tracemalloc
from time import perf_counter

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import functional as F
from npformer import kernels
from npformer.backend import random_keep_mask
from npformer.learn.course import show_figure
from npformer.plots import probability_bars

rng = np.random.default_rng(16)
threadpool_limits(1, user_api="blas")  # one thread for each product; lesson 16.3 uses several

# %% [markdown]
# ## Plain pairs and kernels
#
# The functions in `npformer/functional/` are **plain pairs**: they are written to be read. For the functions
# that take the most time, `npformer/kernels/` has a second version, a **kernel**. A kernel must give the same
# results as the plain pair, up to rounding. The layers call the kernels.
#
# In this lesson you take the methods of the kernels one by one. We use the time of the plain pair as the
# measure. The function `compare` runs both versions, checks that the results agree, and prints both times.

# %%
shares = {}  # the method -> the time of the fast version divided by that of the slow one


def fastest(function, times=5):
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        started = perf_counter()
        function()
        seconds.append(perf_counter() - started)
    return min(seconds)


def compare(name, fast, slow=None, **tolerance):
    """Compare two versions. The default of `slow` is `fast` with the plain pairs."""
    slow = slow or kernels.plain_pairs()(fast)
    for expected, found in zip(arrays(slow()), arrays(fast()), strict=True):
        assert_allclose(found, expected, **({"rtol": 1e-4, "atol": 1e-5} | tolerance))
    slow_time, fast_time = fastest(slow), fastest(fast)
    shares[name] = fast_time / slow_time
    print(f"{name:24} {slow_time * 1e3:8.2f} ms, {fast_time * 1e3:7.2f} ms: ", end="")
    print(f"{slow_time / fast_time:.1f} times as fast")


def arrays(tree):
    """Return the arrays in nested tuples as a list."""
    return [x for part in tree for x in arrays(part)] if isinstance(tree, tuple) else [tree]


def normal(*shape):
    """Return random numbers in float32."""
    return rng.standard_normal(shape, dtype=np.float32)


# %% [markdown]
# ## Use matrix products
#
# NumPy computes a product such as `x @ w` with BLAS, the library for matrix products (lesson 16.1). Other
# operations can be written as products, too. The sum along each row is a product with a vector of ones,
# $x\,\mathbf{1}$. BLAS computes it faster than `sum`, because it processes several numbers with each
# instruction.

# %%
rows, ones = normal(4096, 256), np.ones(256, np.float32)  # (N, D), (D,)
compare("sums as products", lambda: rows @ ones, lambda: rows.sum(-1), atol=1e-3)

# %% [markdown]
# ## Draw fewer random numbers
#
# Dropout has to decide for each number whether to keep it. The obvious way draws a uniform random number for
# each of them. But 16 random bits are enough for a decision. So one random integer of 64 bits gives four
# decisions. Each group of 16 bits is a number from 0 to 65,535. If the random number is below $65{,}536\,p$,
# where $p$ is the dropout probability, the entry of the array is dropped.
#
# The package has this function as `random_keep_mask`. The plain pair uses it too, so that a plain pair and
# its kernel drop the same numbers.

# %%
size = (4096, 256)


def keep_mask(rng, p=0.1):
    """Return a mask that is True with probability 1 − p."""
    bits = rng.integers(0, 1 << 64, math.prod(size) // 4, dtype=np.uint64).view(np.uint16)
    return bits.reshape(size) >= round(p * 65_536)


kept = keep_mask(np.random.default_rng(1))
slow = fastest(lambda: rng.random(size, np.float32) >= 0.1)
fast = fastest(lambda: keep_mask(rng))
shares["16 random bits"] = fast / slow
print(f"uniform {slow * 1e3:.2f} ms, 16 bits {fast * 1e3:.2f} ms, kept {kept.mean():.3f}")

# %% tags=["check"]
assert_array_equal(kept, random_keep_mask(np.random.default_rng(1), size, 0.1, rows))

# %% [markdown]
# **Question.** With 16 bits, which dropout probabilities are possible? Is this a problem?
#
# <details><summary>Answer</summary>
# The multiples of 1/65,536. For p = .1 the nearest one is 6554/65,536 = .100006. The difference does not
# matter.
# </details>

# %% [markdown]
# ## Read the array less often
#
# Each NumPy operation reads and writes a whole array. So it helps to use fewer operations, and to overwrite
# arrays instead of creating new ones. The softmax is an example. The plain version subtracts the largest
# score of each row first, so that the exponential function does not overflow. But if all scores are between
# −60 and 60, nothing overflows in float32. Then the kernel leaves out the subtraction and does the rest
# **in place**: the result overwrites the array.

# %%
scores = normal(16, 4, 64, 64)  # (B, H, T, S)
ones = np.ones(64, np.float32)


def softmax_in_place():
    y = scores.copy()  # only because we call this function several times
    if not -60 < y.min() < y.max() < 60:
        raise ValueError("subtract the largest score of each row first")
    np.exp(y, out=y)
    y *= (1 / (y @ ones))[..., None]  # the sum of each row is a product with ones
    return y


compare("softmax in place", softmax_in_place, lambda: F.softmax(scores)[0])

# %% [markdown]
# ## Blocks that fit into the cache
#
# After each sublayer come dropout, a sum and a layer norm. These are about ten operations, and each of them
# reads an array of a megabyte or more from memory. A kernel takes a **block** of 65,536 numbers (256
# kilobytes). It applies all ten operations to the block while it is in the processor's cache. Then it goes
# on to the next block. This is called **cache blocking**: all operations work on one block, so that
# the memory delivers each number only once.
#
# | | reads and writes of memory |
# |---|---|
# | plain pair | dropout, sum and norm each read and write the whole array (N, D) |
# | kernel | each block is read once, stays in the cache for all three operations, and is written once |
#
# The update of Adam (lesson 13.2, `13_2_adam`) has ten operations over all parameters. Its kernel computes
# the same formula in blocks. In the backward pass, a kernel applies the gradients of the same operations in
# reverse order, again block by block.

# %%
x, h, gain, bias = normal(4096, 256), normal(4096, 256), normal(256), normal(256)
normals = normal(4, 1_000_000)


def residual():
    """Compute a residual connection with dropout and norm, forward and backward."""
    y, cache = kernels.add_norm(x, h, gain, bias, p=0.1, rng=np.random.default_rng(2))
    return y, kernels.add_norm_backward(x, cache)


def adam():
    """Update a million parameters."""
    values, m, v, g = normals.copy()  # each (P,)
    kernels.adam_update(values, g, m, v * v, 1e-3, 1, (0.9, 0.98), 1e-9)
    return values, m


compare("residual, norm in blocks", residual, atol=2e-3)
compare("Adam in blocks", adam)

# %% [markdown]
# **Question.** The cache of a processor has 1 megabyte. Is a block of 65,536 numbers small enough if a
# kernel needs three arrays at the same time?
#
# <details><summary>Answer</summary>
# Yes. Three blocks of 256 kilobytes are 768 kilobytes, which is less than 1 megabyte.
# </details>

# %% [markdown]
# ## The largest arrays
#
# The logits have the shape (N, V) for N tokens. With 37,000 tokens in the vocabulary, no other array is as
# large. The plain cross-entropy creates log-probabilities, probabilities and a gradient of the same size. But
# the gradient is $p - q$ (lesson 12.2, `12_2_the_gradient_of_the_cross_entropy`), and the *forward* pass
# computes $p$ anyway. So the kernel computes the gradient in the forward pass, a few rows at a time, and
# **overwrites the logits** with it.
#
# The gradient of the embedding has the size of the whole table, (V, D). Each token adds its row to the row of
# its id. The function `np.add.at` treats each row separately. The kernel sorts the ids first. Equal ids are
# then neighbours, so the kernel adds up their rows with one sum and changes the table once for each id.

# %%
V, D = 4000, 128
logits, targets = normal(400, V), rng.integers(0, V, 400)  # (N, V), (N,)
ids, dy, table = rng.zipf(1.3, 3000) % V, normal(3000, D), normal(V, D)


def loss_and_gradient(z=logits, forward=kernels.cross_entropy):
    """Return the loss and the gradient of the logits."""
    loss, cache = forward(z, targets, smoothing=0.1)
    return loss, kernels.cross_entropy_backward(1, cache)


compare("cross-entropy", loss_and_gradient)
compare(
    "embedding, sorted ids",
    lambda: kernels.embedding_backward(dy, kernels.embedding(ids, table)[1]),
    atol=1e-3,
)

# %% [markdown]
# How much memory does the overwriting save? The cell measures the largest memory that both versions need in
# addition to the logits.

# %%


def peak_bytes(function):
    """Return the largest memory that a function needs in addition to what exists already."""
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


spare = logits.copy()  # the kernel overwrites it
plain = peak_bytes(kernels.plain_pairs()(loss_and_gradient))
in_place = peak_bytes(lambda: loss_and_gradient(spare, kernels.cross_entropy_in_place))
more = plain / logits.nbytes, in_place / logits.nbytes
print(f"plain {more[0]:.2f}, in place {more[1]:.2f} times the memory of the logits")

# %% tags=["check"]
assert plain > 2 * logits.nbytes > 20 * in_place

# %% tags=["plot"]
figure = probability_bars(np.clip(list(shares.values()), 0, 1), list(shares))
caption = "The time of the fast version divided by that of the slow one (1: not faster)"
show_figure(figure, "16_methods", caption)

# %% [markdown]
# It depends on your machine which method helps most. Two more methods concern memory:
#
# - **Gradients without a copy.** `weight.grad += dw` needs the array `dw` and one more addition. While
#   `grad` is still 0, the product can be written directly into it. So a kernel can return a `LazyProduct`,
#   which is a product that is not computed yet. Then `Parameter.accumulate` writes the result directly into
#   `grad`.
# - **Memory that is kept.** A freed array goes back to the operating system. The next array then gets new
#   memory in **pages** of 4 kilobytes, and the system sets each page to 0 first. So `train` lets the process
#   keep its memory (`keep_freed_memory_in_process`). For the smallest model of the table in lesson 16.3, this
#   reduced the time of a step by 5 % when we measured it. For a GPT of width 128, pages of 2 megabytes saved
#   another 5 %.

# %% [markdown]
# ## Summary
#
# - A kernel is a fast version of a plain pair that gives the same results up to rounding.
# - A sum along rows is a product with a vector of ones, and BLAS computes products fast.
# - 16 random bits are enough for one decision of dropout.
# - Cache blocking applies several operations to a block while it is in the processor's cache.
# - The cross-entropy overwrites the logits with their gradient, so it needs no other array of this size.

# %% [markdown]
# ## Questions
#
# **Question.** Why can the cross-entropy compute its gradient in the forward pass? Most layers cannot do
# this.
#
# <details><summary>Answer</summary>
# Its gradient is $p - q$, multiplied by the gradient of the loss, which is the last number of the
# computation. All other layers need $dy$, an array that only the backward pass of the later layers
# computes.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has no exercises for this chapter. Write these into a file of your own, and check
# them with the assertions of this lesson:
#
# - Cross-entropy in blocks of rows: overwrite the logits (N, V) with their gradient. How many arrays of this
#   size does the plain pair need at the same time, and how many does yours need?
# - Layer norm in place: the backward pass needs `xhat`. Which arrays may be overwritten?
#
# **Next**: lesson 16.3 (`16_3_padding_and_threads`) leaves out the padding and uses several threads.

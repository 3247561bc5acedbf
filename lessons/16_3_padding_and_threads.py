# %% [markdown]
# # 16.3 · Batches without padding, threads and the GPU
#
# *About 30 minutes. You need: padding (lesson 1.1, `01_1_words_to_ids`), kernels (lesson 16.2,
# `16_2_kernels`), a whole model and its training step (lesson 13.4, `13_4_the_training_loop`).*
#
# **After this lesson you can**
#
# - compute the layers of a model for real tokens only, and show that the results are the same;
# - divide a batch among threads, so that the gradient is the one of the whole batch;
# - say what changes if the arrays are on a GPU.
#
# `[TRAINING]: batch → model → loss → backward pass → optimizer → parameters`

# %%
from time import perf_counter

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, kernels
from npformer.backend import choose_backend, to_numpy
from npformer.bench.floor import floor_step
from npformer.bench.own_step import own_step
from npformer.bench.setups import Setup
from npformer.data import PAD
from npformer.functional.packing import find_tokens, pack, unpack
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import probability_bars
from npformer.training import loss_and_gradients
from npformer.training.workers import Workers

rng = np.random.default_rng(16)
threadpool_limits(1, user_api="blas")  # each matrix product uses one thread

# %% [markdown]
# ## No computation for padding
#
# A batch contains padding, because its sentences have different lengths. Linear layers, norms and logits
# treat each position separately. So they do not need to compute anything for padding. This also reduces the
# lower bound of lesson 16.1 (`16_1_operations_and_memory_bandwidth`), since the matrix products become
# smaller.
#
# **Packing** copies the N real tokens of a batch into one array without padding. Attention is different: it
# must know which tokens belong to the same sentence. So before attention, unpacking copies the tokens back to
# their positions, with zeros at padding:

# %% tags=["plot"]
figure = shape_flow(
    "x packed qkv z y",
    {
        "packed": "pack: x",
        "qkv": "linear, unpack: packed",
        "z": "attention: qkv",
        "y": "pack, linear: z",
    },
    {"x": "T D", "packed": "N D", "qkv": "T K", "z": "T K", "y": "N D"},
)
caption = "Packed arrays have N rows, one for each real token; attention has all T places"
show_figure(figure, "16_3_shapes", caption)

# %% [markdown]
# What is the backward pass of packing? Write packing as a product with a matrix $P$ of shape (N, B·T). Each
# row of $P$ has a single 1, at the position of its token. So packing is $y = P x$, and its backward pass is
# $dx = P^\top dy$. This copies each row back to its position, which is exactly unpacking. In the same way,
# the backward pass of unpacking is packing. So both functions must satisfy, for all
# $x$ and $y$,
#
# $$\langle P x,\ y \rangle = \langle x,\ P^\top y \rangle$$
#
# The cell packs a batch and compares the logits of a packed and of a padded forward pass.

# %%
D, F, V, n_layers, B, T = 128, 256, 4000, 2, 32, 24
setup = Setup("reader", D, F, 4, n_layers, V, sentences=B, length=T, tied=False)
batch = setup.batch()

packing = find_tokens(batch.source, PAD)
x = rng.standard_normal((B, T, D))
y = rng.standard_normal((len(packing.places), D))  # (N, D)
print(f"⟨P x, y⟩ = {(pack(x, packing) * y).sum():.6f}", end=", ")
print(f"⟨x, Pᵀ y⟩ = {(x * unpack(y, packing)).sum():.6f}")

model = Transformer(setup.config(), rng=np.random.default_rng(0), dtype=np.float64)
padded, _ = model.forward(batch.source, batch.target_in)  # (B, T, V)
packed, _ = model.forward(batch.source, batch.target_in, packed=True)  # (N, V)
print(f"{len(packed)} rows of logits instead of {B * T}")

# %% tags=["check"]
assert_allclose((pack(x, packing) * y).sum(), (x * unpack(y, packing)).sum())
assert_allclose(packed, padded[batch.target_in != PAD], rtol=1e-7, atol=1e-9)

# %% [markdown]
# **Question.** A batch has one sentence of 100 tokens and 31 sentences of 10 tokens. What share of all
# positions belongs to real tokens?
#
# <details><summary>Answer</summary>
# 410 of 3200, which is 13 %. This is also why a batch should contain sentences of similar length (lesson
# 22.2, `22_2_token_batches_and_tied_embeddings`).
# </details>

# %% [markdown]
# ## Threads
#
# A processor has several cores, which compute at the same time. A **thread** is a sequence of instructions
# that runs on one core. There are two ways to use several threads:
#
# - **Threads inside BLAS.** BLAS divides each matrix product among its threads and waits for the last one.
#   For a small product this takes longer than the product itself. And everything else, such as norms and
#   dropout, still runs on one thread.
# - **Data-parallel threads.** Each thread gets a part of the batch and does all the work for it: forward,
#   loss and backward. Python can run NumPy operations of several threads at the same time.

# %% tags=["plot"]
figure = shape_flow(
    ". part₁ dL₁ dL \n batch . . . \n . part₂ dL₂ .",
    {
        "part₁": "split: batch",
        "part₂": ": batch",
        "dL₁": "thread 1: part₁",
        "dL₂": "thread 2: part₂",
        "dL": "sum: dL₁ dL₂",
    },
    {"batch": "B T", "part₁": "B T", "part₂": "B T", "dL₁": "P", "dL₂": "P", "dL": "P"},
)
show_figure(figure, "16_3_threads", "Two threads: each computes the gradients of its own part")

# %% [markdown]
# The second way needs the gradient of the whole batch at the end. The loss is a mean over $n$ tokens. Let
# part $i$ have $n_i$ tokens and the mean loss $L_i$. Then the loss and the gradient are weighted means of
# the parts:
#
# $$L = \sum_i \frac{n_i}{n} L_i, \qquad dL = \sum_i \frac{n_i}{n}\, dL_i$$

# %% [markdown]
# Each thread works on a `replicate()` of the model. This shares the parameters and has gradients of its
# own. At the end, the gradients are added in a fixed order. So the same seed gives exactly the same numbers
# again, although nobody knows which thread finishes first.
#
# The cell computes the gradient with two threads and with one, and prints the largest difference.

# %%
loss_and_gradients(model, [batch], workers=Workers(model, 2))
two_threads = model.grads.copy()
loss_and_gradients(model, [batch])
print(f"largest difference {abs(two_threads - model.grads).max():.1e}")

# %% tags=["check"]
assert_allclose(two_threads, model.grads, rtol=1e-7, atol=1e-12)

# %% [markdown]
# **Question.** Why is the mean of the two gradients, without the factors $n_i / n$, wrong?
#
# <details><summary>Answer</summary>
# The parts usually have different numbers of tokens. The simple mean gives too much weight to the tokens of
# the smaller part. Only with $n_i / n$ does each token have the weight $1/n$.
# </details>

# %% [markdown]
# ## The time of a step
#
# Now we measure whole steps: with the plain pairs, with the kernels, and with the kernels on two threads. The
# first line is the time of the matrix products alone, with padding and on one thread.

# %%


def fastest(function, times=3):
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        started = perf_counter()
        function()
        seconds.append(perf_counter() - started)
    return min(seconds)


seconds, options = {}, {"workers": 1, "backend": "numpy"}
seconds["matrix products alone"] = fastest(floor_step(setup, packed=False, **options))
with kernels.plain_pairs():
    seconds["plain pairs"] = fastest(own_step(setup, **options))
for n in (1, 2):
    step = own_step(setup, workers=n, backend="numpy")
    seconds[f"kernels, {n} thread{'s' * (n > 1)}"] = fastest(step)
for name, spent in seconds.items():
    ratio = spent / seconds["matrix products alone"]
    print(f"{name:22} {spent * 1e3:8.1f} ms   {ratio:5.2f} times the matrix products")

# %% tags=["plot"]
spent = np.array(list(seconds.values()))
figure = probability_bars(spent / spent.max(), list(seconds))
show_figure(figure, "16_step", "The time of one step on this machine, divided by the longest")

# %% [markdown]
# `npformer train --workers 2` trains with two threads. If two cores are free, the last line can be *below*
# the time of the matrix products alone. That time is measured on one thread and with padding.
#
# ## Compared with PyTorch
#
# The command `npformer bench --against torch` measures the same step in npformer and in PyTorch, both on
# two cores. The two programs take turns, each in its own process. The following numbers come from another
# machine. `tiny` and `small` are small models. `base8k` and `base37k` have the size of the paper's base
# model, with 8,000 and with 37,000 tokens in the vocabulary.
#
# The speed is the median of several rounds, with the smallest and the largest in parentheses. The last
# column is the time of a step divided by the time of its matrix products. It is given for the products of the
# padded batch and, in parentheses, for those of the packed batch.

# %%
# measured by npformer bench --against torch
MEASURED = """\
configuration | tokens/s | speed / PyTorch's | memory / PyTorch's | time / products (packed)
tiny | 8,229 | 2.64 (1.84-3.16) | 0.34 | 1.25 (1.34)
small | 3,588 | 2.12 (1.82-2.37) | 0.41 | 1.09 (1.26)
base8k | 601 | 1.62 (1.56-1.65) | 0.57 | 1.00 (1.11)
base37k | 427 | 1.75 (1.71-1.91) | 0.59 | 0.91 (1.13)
"""
for row in MEASURED.splitlines():
    print("{:14} {:>9} {:>19} {:>20} {:>25}".format(*map(str.strip, row.split("|"))))

# %% [markdown]
# The ratio to PyTorch is largest for the smallest model. There the matrix products are small, and the rest of
# the step takes a larger part of the time.
#
# ## The GPU
#
# **CuPy** is a library with the functions of NumPy for arrays on a GPU. No line of mathematics changes:
# each function asks its arrays for their module, `xp = array_module(x)`. Three things around the
# mathematics do change:
#
# - **Copies are slow.** The connection between the memories of computer and GPU has a small bandwidth. So the
#   parameters are copied once, by `model.to("cupy")`.
# - **Calls return early.** A call only starts the work on the GPU and returns before it is finished. Wait
#   before you read a clock.
# - **Each call costs microseconds**, even for a small array. So `npformer/kernels/gpu/` combines the
#   operations of a whole formula into one call (`cupy.fuse`). This is called
#   **kernel fusion**.

# %%
if choose_backend("auto") == "cupy":
    gpu_step = own_step(setup, workers=1, backend="cupy")  # waits until all work is finished
    gpu_step()  # the first call compiles the kernels
    print(f"a step on the GPU: {fastest(gpu_step) * 1e3:.2f} ms")
    on_gpu, _ = model.astype(np.float32).to("cupy").forward(batch.source, batch.target_in)
    assert_allclose(to_numpy(on_gpu), padded, rtol=1e-2, atol=1e-3)
else:
    print("CuPy finds no GPU here, so there is nothing to measure.")

# %% [markdown]
# ## Summary
#
# - Packing copies the real tokens of a batch into one array, so that padding needs no computation.
# - Packing and unpacking are the backward passes of each other.
# - With data-parallel threads, each thread does all the work for a part of the batch.
# - The gradient of the batch is the mean of the parts' gradients, weighted with their numbers of tokens.
# - On a GPU the mathematics stays the same; copies, waiting and the number of calls matter.

# %% [markdown]
# ## Questions
#
# **Question.** Attention unpacks its inputs. With packing, the vectors at the padding have other values than
# without. Why does this not change the results of attention?
#
# <details><summary>Answer</summary>
# The mask gives padding the weight 0 as a key. As a query, padding produces outputs that nobody reads:
# packing leaves them out again.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has no exercises for this chapter. Try this in the terminal and in a shell:
#
# - Compute the share of padding in the batch: `!(batch.source == PAD).mean()`.
# - Measure your own machine with `npformer bench`. How large is the last column for `tiny`?
#
# **Next**: lesson 16.4 (`16_4_attention_in_blocks`) computes attention without storing all weights.

# %% [markdown]
# # 16.1 · Operations and memory bandwidth
#
# *About 30 minutes. You need: the shapes of all layers (chapters 7, 9 and 12), training steps (lesson 13.4,
# `13_4_the_training_loop`).*
#
# **After this lesson you can**
#
# - count the operations of a training step from the shapes of its matrix products;
# - measure a lower bound for the time of a step, and a profile of the time above it;
# - explain why a matrix product runs at a much higher rate than a sum.
#
# `[TRAINING]: batch → model → loss → backward pass → optimizer → parameters`

# %%
from time import perf_counter

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import kernels
from npformer.bench.floor import floor_step, products
from npformer.bench.own_step import own_step
from npformer.bench.profile import profile
from npformer.bench.setups import Setup
from npformer.learn.course import show_figure
from npformer.plots import curves

rng = np.random.default_rng(16)
threadpool_limits(1, user_api="blas")  # one thread for each product; lesson 16.3 uses several

# %% [markdown]
# ## The passage
#
# The training of the paper took 100,000 steps. *Attention Is All You Need* says in section 5.2 and in a
# footnote of section 6.1:
#
# > For our base models using the hyperparameters described throughout the paper, each training step took
# > about 0.4 seconds. We trained the base models for a total of 100,000 steps or 12 hours.
#
# > We used values of 2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100, respectively.
#
# One **operation** is one multiplication or addition of two numbers. One TFLOPS is $10^{12}$ operations per
# second. Table 2 of the paper says that the base model cost $3.3 \cdot 10^{18}$ operations. The authors did
# not count these operations. They multiplied the time by the number of processors and by the operations that
# such a processor does per second.
#
# The cell computes this product for the processor P100.

# %%
paid = 12 * 3600 * 8 * 9.5e12  # seconds × processors × operations per second
print(f"{paid:.2e} operations")

# %% [markdown]
# This chapter asks three questions. How many operations does a training step need? How long do they take? And
# where does the rest of the time go?
#
# ## How many operations does the model need?
#
# Most of the operations are in matrix products. The product of an (m, n) matrix with an (n, k) matrix has
# $m\,k$ entries. Each entry needs $n$ multiplications and about as many additions. So the product needs
# $2\,m\,n\,k$ operations.
#
# The table shows that the backward pass needs twice as many. Each product $y = x W$ has two gradients, and
# each of them is a product of the same size. For N rows, D inputs and O outputs:
#
# | pass | product | operations |
# |---|---|---|
# | forward | y = x W | 2 · N · D · O |
# | backward | dx = dy Wᵀ | 2 · N · D · O |
# | backward | dW = xᵀ dy | 2 · N · D · O |
#
# We count the multiplications for one position of a sentence in the forward pass. We leave out the attention
# scores, which cost little for sentences of 25 tokens. D is $d_{\mathrm{model}}$, F is $d_{\mathrm{ff}}$, and
# V is the size of the vocabulary:
#
# | part | multiplications of one position |
# |---|---|
# | encoder layer | $4\,D^2$ (queries, keys, values, output) + $2\,D\,F$ |
# | decoder layer | $4\,D^2$ + $4\,D^2$ (cross-attention) + $2\,D\,F$ |
# | output layer | $D\,V$ |

# %% [markdown]
# In the paper, a batch has about 25,000 source tokens and 25,000 target tokens. The cell compares the
# operations that the model needs with the operations of table 2.

# %%


def multiplications_per_position(D, F, V, n_layers):
    """Return those of the encoder layers, as many decoder layers, and the output layer."""
    encoder, decoder = 4 * D * D + 2 * D * F, 8 * D * D + 2 * D * F
    return n_layers * (encoder + decoder) + D * V


per_position = multiplications_per_position(D=512, F=2048, V=37_000, n_layers=6)
needed = 100_000 * 25_000 * 3 * 2 * per_position  # 3: forward and backward; 2: and the additions
print(f"table 2: {paid:.2e} operations, needed: {needed:.2e}, which is {needed / paid:.0%}")

# %% tags=["check"]
assert_allclose([paid, needed / paid], [3.3e18, 0.29], rtol=0.01)

# %% [markdown]
# By this count, the program of the paper used 29 % of what its processors can do.
#
# **Question.** Which part needs more multiplications per position in the base model, the six encoder layers
# or the output layer?
#
# <details><summary>Answer</summary>
# One encoder layer needs $4 \cdot 512^2 + 2 \cdot 512 \cdot 2048$, about 3.1 million, so six need 18.9
# million. The output layer needs $512 \cdot 37000$, which is 18.9 million as well.
# </details>

# %% [markdown]
# ## A lower bound for the time of a step
#
# Now we measure. We take a small model of the same form with $D = 128$ and two layers on each side. The
# batch has 32 sentences with 16 to 24 tokens. The function `products` lists the shapes of all matrix
# products of the forward pass. The sum of their operations is the formula above, plus the products of the
# scores.

# %%
D, F, V, n_layers, B, T = 128, 256, 4000, 2, 32, 24
setup = Setup("reader", D, F, 4, n_layers, V, sentences=B, length=T, tied=False)
batch = setup.batch()
needed = sum(product.operations for product in products(setup, batch))
print(f"{needed / 1e9:.2f} · 10⁹ operations in matrix products, forward and backward")

# %% tags=["check"]
scores = 3 * n_layers * 2 * B * T * T * D  # 3 attentions in a pair of layers, 2 products each
assert needed == 3 * 2 * (B * T * multiplications_per_position(D, F, V, n_layers) + scores)

# %% [markdown]
# NumPy computes matrix products with a **BLAS** library (Basic Linear Algebra Subprograms). BLAS is written
# for the processor, and we cannot make it faster. So the time of the matrix products alone is a **lower
# bound** for the time of a step. The command `npformer bench` calls this bound the **floor**, and
# `floor_step` measures it.
#
# We compare the bound with a whole training step. This step uses the **plain pairs** of the lessons so far:
# the functions in `npformer/functional/`, which are written to be read. Normally, the layers call faster
# functions. `kernels.plain_pairs()` makes them call the plain ones.
#
# Background programs can only increase a measured time. So we take the shortest of several runs.

# %%


def fastest(function, times=3):
    """Return the seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        started = perf_counter()
        function()
        seconds.append(perf_counter() - started)
    return min(seconds)


bound = fastest(floor_step(setup, workers=1, backend="numpy", packed=False))
with kernels.plain_pairs():
    plain = fastest(own_step(setup, workers=1, backend="numpy"))
print(f"matrix products alone {bound:.3f} s, whole step with plain pairs {plain:.3f} s")

# %% [markdown]
# All times in this chapter are measured while the lesson runs, and they will be different on your machine. So
# the checks never compare times. They compare numbers of operations, numbers of bytes and results.
#
# ## Where does the rest of the time go?
#
# A **profile** lists the parts of a program with the time that each of them takes. The cell prints two of
# them. The first one is for the plain pairs. The second one is for the **kernels** in `npformer/kernels/`. A
# kernel is a fast implementation of a pair, which gives the same results up to rounding. Lesson 16.2
# (`16_2_kernels`) shows how the kernels work.

# %%
with kernels.plain_pairs():
    before = {part: f + b for part, f, b in profile(setup, backend="numpy", seconds=0)}
after = {part: f + b for part, f, b in profile(setup, backend="numpy", seconds=0)}
print("ms of one step                           plain   kernels")
for part, spent in before.items():
    print(f"{part:38} {spent * 1e3:7.1f} {after[part] * 1e3:9.1f}")

# %% [markdown]
# Some parts consist of matrix products: the logits, the linear maps, queries, keys and values. The other
# parts are biases, dropout, norms, exponentials and Adam. They need few operations per number, and yet they
# take a large part of the time. Why?

# %% [markdown]
# ## Arithmetic intensity
#
# An operation can only begin when its numbers have reached the processor. The **memory bandwidth** is the
# number of bytes that the memory delivers per second. The processor has its own small memory, the **cache**,
# which is much faster. (It has nothing to do with the cache of a forward pass.) A number that is used several
# times comes from the cache after the first time.
#
# The cell measures the memory bandwidth. It copies an array that is larger than many caches. A copy reads
# each byte once and writes it once.

# %%
large = rng.standard_normal(8_000_000, dtype=np.float32)
copied = np.empty_like(large)
seconds = fastest(lambda: np.copyto(copied, large))
print(f"{2 * large.nbytes / seconds / 1e9:.1f} · 10⁹ bytes per second")

# %% [markdown]
# The **arithmetic intensity** of a computation is the number of its operations divided by the number of bytes
# that it reads and writes. We compare a product and a sum of two n × n matrices in float32. Both read two
# matrices and write one, which are $3 \cdot 4\,n^2$ bytes:
#
# $$\begin{aligned}
# \mathrm{product:} \quad \frac{2 n^3}{12 n^2} &= \frac{n}{6} \\
# \mathrm{sum:} \quad \frac{n^2}{12 n^2} &= \frac{1}{12}
# \end{aligned}$$
#
# The product uses each number $n$ times, and the sum uses it once. So a large product is limited by the speed
# of the processor, and a sum of large matrices by the memory bandwidth.

# %%
widths = np.array([16, 32, 64, 128, 256, 512])
kinds = [(np.matmul, np.float32), (np.matmul, np.float64), (np.add, np.float32)]
rates = np.zeros((3, len(widths)))  # 10⁹ operations per second
for i, (function, dtype) in enumerate(kinds):
    for j, n in enumerate(widths.tolist()):
        a, b, out = rng.standard_normal((3, n, n)).astype(dtype)
        operations = 2 * n**3 if function is np.matmul else n**2
        times = max(1, 10**7 // operations)  # a single small product is too short for the clock

        def repeat(function=function, arrays=(a, b, out), times=times):
            for _ in range(times):
                function(*arrays)

        rates[i, j] = times * operations / fastest(repeat) / 1e9
print("highest rates, in 10⁹ operations per second:", rates.max(1).round(1))

# %% tags=["plot"]
names = ["product, float32", "product, float64", "sum, float32"]
settings = {"xlabel": "n, for n × n matrices", "ylabel": "10⁹ operations per second"}
figure = curves(rates, widths, labels=names, xscale="log", yscale="log", **settings)
show_figure(figure, "16_rates", "The rate of matrix products and sums for different sizes")

# %% [markdown]
# The numbers are the highest rates of a product in float32, of a product in float64, and of a sum in float32.
#
# A number in float32 has 4 bytes, and a number in float64 has 8. With half the bytes, twice as many numbers
# arrive per second. The processor can also multiply twice as many of them with one instruction. This is why
# we train in float32 and use float64 only for gradient checks.
#
# **Question.** A layer computes y = relu(x + b) with two NumPy operations. Each reads and writes a large
# array. How could the number of bytes be reduced?
#
# <details><summary>Answer</summary>
# Apply both operations to a small block that stays in the cache, and then go on to the next block. Then the
# memory delivers each number of x once, and y is written once. Lesson 16.2 does this.
# </details>

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* calls it a great advantage of the Transformer that it computes a whole sequence in
# >   parallel, without one step after the other in time. This holds in training. In decoding, a token needs
# >   the token before it (chapter 14).
# > - *Attention机制详解（二）* gives the same reason. The paper also says when self-attention needs fewer
# >   operations than a recurrent layer: "when the sequence length n is smaller than the representation
# >   dimensionality d" (section 4).
# > - *The components of the Transformer* repeats the twelve hours on eight P100 processors. These are the
# >   100,000 steps of the base model. The big model took 3.5 days.
# > - *一步步解析Attention is All You Need!* concatenates the heads along the batch axis. The products are the
# >   same. Only the copies of arrays are different (chapter 7).

# %% [markdown]
# ## Summary
#
# - A product of (m, n) and (n, k) needs 2·m·n·k operations, and its backward pass needs twice as many.
# - By this count, the program of the paper used 29 % of what its processors can do.
# - The time of the matrix products alone is a lower bound for the time of a training step.
# - Arithmetic intensity is operations per byte: n/6 for a product of n × n matrices, 1/12 for a sum.
# - Large products are limited by the speed of the processor, sums of large arrays by the memory bandwidth.

# %% [markdown]
# ## Questions
#
# **Question.** A computer can do $50 \cdot 10^9$ operations per second, and its memory delivers
# $10 \cdot 10^9$ bytes per second. A computation with a high arithmetic intensity is limited by the
# processor. Where is the boundary?
#
# <details><summary>Answer</summary>
# From 50 / 10 = 5 operations per byte on. For products of n × n matrices in float32 this is n = 30.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has no exercises for this chapter. Here is one for paper:
#
# - In one encoder layer, the scores and the weighted means cost $2\,T D$ multiplications for each position,
#   and the four projections $4\,D^2$. For which length of a sentence are both equal? What is this for the
#   paper's D = 512?
#
# **Next**: lesson 16.2 (`16_2_kernels`) makes the rest of a step faster, with the same results.

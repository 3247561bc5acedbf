# %% [markdown]
# # 27.2 · Weights of few bits
#
# *About 25 minutes. You need: a linear layer (lesson 0.2, `00_2_forward_and_backward`), gated feed-forward
# networks (lesson 23.3, `23_3_gated_feed_forward_networks`).*
#
# **After this lesson you can**
#
# - round a weight matrix to whole numbers of 8 or 4 bits, and say how large the errors are;
# - show that one large channel ruins a matrix with one scale, and repair this;
# - say what quantized weights save.
#
# `language model: ids → embedding → [LAYERS] → norm → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.functional import quantize
from npformer.learn.course import show_figure
from npformer.learn.experiments.adaptation import (
    BITS,
    CONFIG,
    LARGER,
    QUANTIZATION,
    SEEDS,
    quantized,
    with_large_channel,
)
from npformer.learn.experiments.measured_runs import Measured, new_gpt, read_results
from npformer.plots import cell_grid, curves

# %%
results = {(r.model, r.seed): r.values for r in read_results(QUANTIZATION, Measured)}
exact = np.mean([results["float32", seed]["loss"] for seed in SEEDS])


def mean_losses(per, which):
    """Return the losses for all numbers of bits, each the mean of the seeds."""
    names = [f"{bits} bits, {per}" for bits in BITS]
    return [np.mean([results[name, seed][which] for seed in SEEDS]) for name in names]


# %% tags=["plot"]
points = [
    mean_losses("tensor", "one large channel"),
    mean_losses("tensor", "loss"),
    mean_losses("channel", "one large channel"),
    mean_losses("channel", "loss"),
]
labels = ["one scale, large", "one scale", "column scales, large", "column scales"]
names = {"labels": labels, "xlabel": "bits of a weight", "ylabel": "increase of the loss, nats"}
figure = curves(np.array(points) - exact, BITS, legend=True, yscale="log", **names)
show_figure(figure, "27_2_bits", "What few bits for each weight cost a GPT")

# %% [markdown]
# ## Fewer bits for each weight
#
# When a model generates a text, each new token needs all weights once. If the model is large and the text not
# very long, reading the weights from memory takes most of the time (lesson 16.1,
# `16_1_operations_and_memory_bandwidth`). A weight in float32 has 32 bits. If 4 bits suffice, the weights
# need an eighth of the memory, and reading them takes an eighth of the time.
#
# The picture shows by how much the loss of a small GPT rises if its weights are rounded after the training.
# Two curves belong to this GPT. The two others, "large", belong to a GPT that computes the same function
# before it is rounded, but in each of its layers one column of a weight matrix is large. Rounded weights are
# multiples of a scale. "One scale" means one for each matrix, and "column scales" one for each column.
#
# **Question.** The losses were measured with 8, 6, 5, 4 and 3 bits. Go down from 8. At which of these numbers
# does each curve first exceed .01 nats?
#
# <details><summary>Answer</summary>
# "One scale, large" at 6 bits, "column scales, large" at 5, "one scale" just at 4, and "column scales" at 3.
# You will see why the first of them is so bad, and why a scale for each column helps.
# </details>

# %% [markdown]
# ## Whole numbers and a scale
#
# **Quantization** replaces each weight by a whole number $q$ of $n$ bits. All weights of a group, such as a
# matrix, share one **scale** $s$:
#
# $$q = \mathrm{round}(w / s), \qquad s = \frac{\max |w|}{2^{n-1} - 1}, \qquad w \approx s\, q$$
#
# With this scale, the largest weight becomes the largest whole number: 7 for 4 bits, since one bit is
# the sign. (Jacob et al., 2018, also allow a whole number other than 0 to stand for the weight 0.)

# %%
rng = np.random.default_rng(27)
w = rng.standard_normal((4, 5))  # (I, O)
bits = 4
scale = abs(w).max() / (2 ** (bits - 1) - 1)
q = np.round(w / scale)
print("scale", scale.round(3))
print(q.astype(int))
print("largest error", abs(w - scale * q).max().round(3))

# %% tags=["check"]
package = quantize(w, bits, per="tensor")
assert_allclose(package.q, q)
assert_allclose(package.value, scale * q)
assert abs(w - scale * q).max() <= scale / 2

# %% [markdown]
# **Question.** How large can the error of a weight be? How many times smaller is this bound with 8 bits than
# with 4?
#
# <details><summary>Answer</summary>
# Half a scale, since each number is rounded to the nearest multiple of the scale. With 8 bits the scale is
# max / 127 in place of max / 7: the bound is 18 times smaller.
# </details>

# %% [markdown]
# ## One large column
#
# The scale depends on the largest weight of the matrix. What if one column is 32 times as large as the
# others? (In the code, a column is a `channel`.)

# %%
large = w * np.array([1, 1, LARGER, 1, 1])
for per in ("tensor", "channel"):
    rounded = quantize(large, bits, per=per)
    print(f"one scale for each {per}:\n{rounded.q}")

# %% tags=["plot"]
wrong = quantize(large, bits, per="tensor").value
caption = "With one scale, all columns except the large one are 0"
figure = cell_grid(wrong, numbers=True, decimals=1, shade=True, label="scale q")
show_figure(figure, "27_2_ruined", caption)

# %% tags=["check"]
assert not np.delete(quantize(large, bits, per="tensor").q, 2, axis=1).any()
error = abs(quantize(large, bits).value - large)
assert (error <= abs(large).max(0) / 7 / 2 + 1e-12).all()

# %% [markdown]
# If there is one scale, the large column sets it. Here, half a scale is more than any weight of the other
# columns, so all of these weights become 0. But each column of $W$ computes a different component of
# $y = x W$, called an **output channel**. So each column can have a scale of its own:
# $y_j = s_j \sum_i x_i\, q_{ij}$. The scale stands before the sum, so it costs one product for each output.
#
# **Question.** Could each row have its own scale instead?
#
# <details><summary>Answer</summary>
# Yes, and the errors would be bounded in the same way. But the scale of row $i$ belongs to $x_i$ and cannot
# stand before the sum. So each input must first be multiplied by the scale of its row. Then whole numbers are
# not enough to compute the sum, even if the inputs are whole numbers.
# </details>

# %% [markdown]
# ## The same function, other weights
#
# A gated network with the activation $f$ computes $y = (f(x W_g) \odot x W_v)\, W_2$, where $\odot$
# multiplies entry by entry. Multiply column $j$ of $W_v$ by 32, and divide row $j$ of $W_2$ by 32. Then $y$
# does not change, but $W_v$ has a large column. We make such columns by hand. In large models, a few
# components of the hidden states become much larger than the others during training, without anybody's help
# (Dettmers et al. 2022). Rounding the hidden states meets the same difficulty.

# %%
model = new_gpt(CONFIG, seed=0)
changed = with_large_channel(model, channel=3)
ids = rng.integers(0, CONFIG.vocab_size, (2, 16))
print("largest difference of the logits:", abs(changed(ids) - model(ids)).max())

# %% tags=["check"]
assert_allclose(changed(ids), model(ids), rtol=1e-3, atol=1e-4)
errors = [quantized(each, 4, "tensor")(ids) - model(ids) for each in (model, changed)]
assert abs(errors[1]).mean() > abs(errors[0]).mean()
value = quantized(changed, 4, "tensor").layers[0].feed_forward.value.weight.value
assert (np.delete(value, 3, axis=1) == 0).mean() > 0.99

# %% [markdown]
# ## The losses
#
# The table has the losses behind the picture. The GPTs were trained on Tiny Shakespeare with three seeds. All
# matrices of their layers were rounded; embeddings and norms were not. The large channel was drawn anew for
# each seed.

# %%
print(f"float32: {exact:.3f}\nbits ", *(f"{bits:7}" for bits in BITS))
for label, losses in zip(labels, points, strict=True):
    print(" " * 5, *(f"{loss:7.3f}" for loss in losses), f"  {label}")

# %% tags=["check"]
for seed in SEEDS:
    loss = {name: values for (name, each), values in results.items() if each == seed}
    assert abs(loss["float32"]["loss"] - loss["float32"]["one large channel"]) < 1e-3
    assert abs(loss["8 bits, channel"]["loss"] - loss["float32"]["loss"]) < 0.01
    assert loss["4 bits, tensor"]["one large channel"] > loss["4 bits, tensor"]["loss"] + 1.5
    assert loss["4 bits, channel"]["one large channel"] < loss["4 bits, channel"]["loss"] + 0.1
increases = np.array(points) - exact  # (4, 5) for the numbers of bits 8, 6, 5, 4, 3
assert [BITS[row.argmax()] for row in increases > 0.01] == [6, 4, 5, 3]
assert increases[:, 0].max() < 0.0012

# %% [markdown]
# Each number is the mean of three seeds. With 8 bits, rounding costs about .001 nats at most. With 4 bits and
# one scale, it costs .01 nats without the large column. With the large column, 4 bits and one scale make the
# model worse than one that knows only the frequencies of the characters, whose loss is about 3.3 nats. (With
# 3 bits, the model is a little better, but this means nothing: both models are ruined.)

# %% tags=["check"]
at_4 = increases[:, BITS.index(4)]
assert abs(at_4[1] - 0.01) < 0.001
assert abs(at_4[2] - 0.03) < 0.003

# %% [markdown]
# A scale for each column prevents this. But with the large column, 4 bits still cost .03 nats: row $j$ of
# $W_2$ was divided by 32, and its weights became 0, since larger weights of the other rows set the scales.
#
# Our models are tiny, and their losses after rounding say little about large models. But the reason is the
# same in large models: an error is at most half a scale, and the largest number of a group sets its scale. So
# today's formats use small groups, often of 32 or 128 weights.

# %% [markdown]
# ## Summary
#
# - Quantization stores a whole number of few bits for each weight, and a scale for a group of weights.
# - The error of a weight is at most half a scale, and the largest weight of the group sets the scale.
# - With 4 bits and one scale, a column 32 times as large turns nearly all other weights of its matrix into 0.
# - A scale for each column keeps columns apart and costs one product for each output.
# - Fewer bits save memory, and the time for reading the weights.

# %% [markdown]
# ## Questions
#
# **Question.** A matrix has 4096 rows and columns. Its scales are stored in float32. How many bits do they
# add for each weight, with one scale per column? And with one per 32 weights?
#
# <details><summary>Answer</summary>
# With one scale per column, 32 / 4096 = 0.008 bits for each weight. With one per 32 weights, a whole bit.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter.
#
# - `npformer exercise start quantize`: round a matrix, with a scale for each column.
# - `npformer experiment quantization` repeats the experiment in less than a minute of processor time.
#
# The formula comes from Jacob et al., "Quantization and training of neural networks for efficient
# integer-arithmetic-only inference" (2018). Dettmers et al., "LLM.int8()" (2022), describe large components
# of hidden states.
#
# **Next**: lesson 27.3 (`27_3_fine_tuning_on_answers`), in which a GPT learns to answer.

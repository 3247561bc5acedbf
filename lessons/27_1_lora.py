# %% [markdown]
# # 27.1 · LoRA
#
# *About 25 minutes. You need: the backward pass of a linear layer (lesson 0.2, `00_2_forward_and_backward`),
# a GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`).*
#
# **After this lesson you can**
#
# - fine-tune a model with about one percent of its parameters;
# - derive the gradients of the two narrow matrices, without the gradient of the whole weight;
# - say what such a training costs, and what the model forgets.
#
# `language model: ids → embedding → [LAYERS] → norm → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.functional import lora_linear, lora_linear_backward
from npformer.learn.course import show_figure
from npformer.learn.experiments.adaptation import CONFIG, LORA, RATES, SEEDS, STEPS
from npformer.learn.experiments.measured_runs import Measured, new_gpt, read_results
from npformer.nn import add_lora, merge_lora
from npformer.plots import Step, gradient_flow

rng = np.random.default_rng(27)

# %%
n_in, n_out, rank = 6, 5, 1
x = rng.standard_normal((3, n_in))  # (N, I)
weight = rng.standard_normal((n_in, n_out))  # (I, O) frozen
a = rng.standard_normal((n_in, rank))  # (I, R)
b = rng.standard_normal((rank, n_out))  # (R, O)
h = x @ a  # (N, R)
y = x @ weight + h @ b  # (N, O)
dy = rng.standard_normal(y.shape)  # (N, O)

# %% tags=["plot"]
layout = """weight  .  y
            x       .  .
            a       h  .
            .       b  ."""
arrays = {"x": x, "weight": weight, "a": a, "h": h, "b": b, "y": y}
axes = {"x": "N I", "weight": "I O", "a": "I R", "h": "N R", "b": "R O", "y": "N O"}
steps = {"h": Step("x a", ["x", "a"]), "y": Step("x weight + h b", ["x", "weight", "h", "b"])}
show_figure(
    gradient_flow(layout, arrays, steps, axes=axes),
    "27_1_forward",
    "The weight is frozen. Beside it, x is multiplied by two narrow matrices, a and b",
)

# %% [markdown]
# ## A model in another style
#
# You want a model to write in another style. Training all its weights works, but then you store a whole model
# for each style, and Adam needs two more numbers for each weight.
#
# **LoRA**, low-rank adaptation (Hu et al. 2021), leaves the weights as they are. To each weight matrix it
# adds a product of two narrow matrices, and only these two learn:
#
# $$y = x\, (W + s\, A B) = x W + s\, (x A)\, B$$
#
# $W$ has I rows and O columns, $A$ is (I, R) and $B$ is (R, O). The **rank** $R$ is small; in the picture it
# is 1. The fixed number $s$ is usually a constant divided by R; here it is 1. The product $A B$ has the shape
# of $W$, but each of its rows is a sum of multiples of the R rows of $B$.
#
# **Question.** A matrix has I = O = 4096. How many numbers are learned with $R = 8$, in percent of its
# weights?
#
# <details><summary>Answer</summary>
# $8 \cdot (4096 + 4096) = 65\,536$ of $4096^2 = 16\,777\,216$, which is 0.4 %.
# </details>
#
# At the beginning, $A$ is random and $B$ is 0. So the adapted model first computes exactly what the original
# model computes.
#
# **Question.** Why are $A$ and $B$ not both 0?
#
# <details><summary>Answer</summary>
# The gradient of $A$ contains $B$ as a factor, and the gradient of $B$ contains $x A$. If $A$ and $B$ are 0,
# both gradients are 0, and nothing ever changes.
# </details>

# %% [markdown]
# ## The gradients
#
# You could compute the gradient of the whole matrix, $dW = x^\top dy$, and derive the others from it:
# $dA = s\, dW B^\top$ and $dB = s\, A^\top dW$. But $dW$ has $I \cdot O$ numbers, and the product $x^\top dy$
# costs as much as the forward pass of the layer. With $h = x A$, the chain rule in two steps does not need
# $dW$:
#
# $$\begin{aligned}
# dB &= s\, h^\top dy & \quad dh &= s\, dy\, B^\top \\
# dA &= x^\top dh & \quad dx &= dy\, W^\top + dh\, A^\top
# \end{aligned}$$
#
# The input $x$ is used twice, so its two gradients are added. Every product except $dy\, W^\top$ has a side
# of length $R$. So a training step with LoRA has two large products, $x W$ and $dy\, W^\top$, instead of
# three: $x^\top dy$ is not needed.

# %%
db = h.T @ dy  # (R, O)
dh = dy @ b.T  # (N, R)
da = x.T @ dh  # (I, R)
dx = dy @ weight.T + dh @ a.T  # (N, I)

y_package, cache = lora_linear(x, a, b, weight)
gradients = lora_linear_backward(dy, cache)
show(cache)

# %% tags=["check"]
assert_allclose(y, y_package)
for ours, theirs in zip((dx, da, db), gradients, strict=True):
    assert_allclose(ours, theirs)
dweight = x.T @ dy  # (I, O), which the package does not form
assert_allclose(da, dweight @ b.T)
assert_allclose(db, a.T @ dweight)
report = gradcheck((lambda x, a, b: lora_linear(x, a, b, weight), lora_linear_backward), x, a, b)
assert report.ok

# %% tags=["plot"]
gradient = {"y": dy, "b": db, "h": dh, "a": da, "x": dx}
figure = gradient_flow(layout, arrays, steps, gradient, axes=axes)
show_figure(figure, "27_1_backward", "Backward: the frozen weight gets no gradient")

# %% [markdown]
# ## A whole model
#
# `add_lora` returns a copy of a model in which every linear map inside the layers has two narrow matrices.
# The copy shares the weights of the model. The function also returns the narrow matrices, for an optimizer.

# %%
model = new_gpt(CONFIG, seed=0)
adapted, adapter = add_lora(model, rank=1, rng=rng)
learned, total = adapter.count_parameters(), model.count_parameters()
print(f"{learned:,} of {total:,} parameters learn: {learned / total:.1%}")
print(adapted.layers[0].self_attention)

# %% tags=["check"]
ids = rng.integers(0, CONFIG.vocab_size, (2, 16))
assert_allclose(adapted(ids), model(ids))
logits, forward_cache = adapted.forward(ids)
adapted.backward(logits, forward_cache)  # with any array as the gradient of the logits
assert all(pair[1].grad.any() for pair in adapter.pairs)
assert not adapted.layers[0].feed_forward.outer.weight.has_grad
assert 0.01 < learned / total < 0.02

# %% [markdown]
# After the training, $W + s A B$ can be computed once. The **merged** model has the shape of the original
# model and needs no further operations. Or the narrow matrices are kept apart: then one model in memory
# serves many styles.

# %%
for pair in adapter.pairs:  # as if they had learned something
    pair[1].value += 0.1 * rng.standard_normal(pair[1].shape).astype(np.float32)
merged = merge_lora(model, adapted)
print("largest difference of the logits:", abs(merged(ids) - adapted(ids)).max())

# %% tags=["check"]
assert abs(merged(ids) - model(ids)).max() > 0.05
assert_allclose(merged(ids), adapted(ids), rtol=1e-3, atol=1e-4)

# %% [markdown]
# ## The experiment
#
# A small GPT learns Tiny Shakespeare, as in chapter 24. Then it learns the same text IN CAPITAL LETTERS, in
# 150 steps, by LoRA of rank 1 (learning rate .02) or with all its parameters (.005). The table has losses in
# nats per character: in the new style ("capitals"), and in the original text ("plays"). Each is the mean of
# three seeds. A guess among the 65 characters has the loss 4.17.
#
# Neither learning rate was searched as in lesson 26.1 (`26_1_muon`). So the table does not say which of the
# two ways is better.

# %%
results = {(r.model, r.seed): r.values for r in read_results(LORA, Measured)}
print(f"{STEPS} steps         learned  capitals  plays")
for how in RATES:
    rows = [results[how, seed] for seed in SEEDS]
    mean = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
    print(f"{how:15} {mean['share']:7.1%} {mean['capitals']:9.2f} {mean['plays']:7.2f}")

# %% tags=["check"]
for seed in SEEDS:
    none, lora, every = (results[how, seed] for how in RATES)
    assert 0.01 < lora["share"] < 0.02
    assert every["capitals"] < lora["capitals"] < none["capitals"] - 1
    assert lora["plays"] < every["plays"]
    assert every["plays"] > np.log(65)
assert sum(results["LoRA, rank 1", seed]["plays"] > np.log(65) for seed in SEEDS) == 1
mean = {how: np.mean([results[how, seed]["capitals"] for seed in SEEDS]) for how in RATES}
none, lora, every = mean.values()
assert_allclose([none - every, none - lora], [1.58, 1.35], atol=0.005)

# %% [markdown]
# Trained with all parameters, the model lowers its loss in capitals by 1.58 nats. LoRA, with 1.4 % of the
# parameters, lowers it by 1.35 nats in equally many steps. The last column shows the price: a model that
# learns to write capitals forgets the plays. Trained with all parameters, it becomes worse at the plays than
# a guess, because it is sure that each letter is a capital. With one of the seeds, LoRA becomes worse than a
# guess as well.
#
# LoRA forgot less, but it also learned less. So the table does not say whether LoRA forgets less at the same
# loss in capitals. One thing is certain: LoRA's change can be undone. Without the narrow matrices, the model
# is the old one, bit for bit.
#
# **Question.** For each weight matrix, LoRA saves the product $x^\top dy$. `add_lora` leaves the embedding as
# it is. What would LoRA save there?
#
# <details><summary>Answer</summary>
# Nothing of this kind: a token looks up one row of the table, so the gradient of the table needs no large
# product. (Our GPT also uses the table as its output matrix. There, LoRA could save such a product.)
# </details>

# %% [markdown]
# ## Summary
#
# - LoRA leaves a weight as it is, and learns a product of two narrow matrices beside it.
# - Its gradients need no matrix of the shape of the weight, and only the narrow matrices need an optimizer.
# - At the beginning B is 0, so the adapted model computes what the original model computes.
# - After the training, the change can be merged into the weight.
# - With 1.4 % of its parameters, a small GPT learned most of a new style.

# %% [markdown]
# ## Questions
#
# **Question.** Can LoRA of rank $R$ reach every change of a weight? What if $R = \min(I, O)$?
#
# <details><summary>Answer</summary>
# Only changes whose matrix has a rank of at most $R$. With $R = \min(I, O)$ it reaches every change, but then
# $A$ and $B$ together have more numbers than the weight.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter.
#
# - `npformer exercise start lora-backward`: write the gradients of both matrices.
# - `npformer experiment lora` repeats the experiment in less than a minute of processor time.
#
# **Next**: lesson 27.2 (`27_2_weights_of_few_bits`), which makes the weights themselves smaller.

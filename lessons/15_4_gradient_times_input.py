# %% [markdown]
# # 15.4 · Gradient times input
#
# *About 40 minutes. You need: the backward pass of attention (lesson 5.2,
# `05_2_the_backward_pass_of_attention`), the complex step (lesson 0.3, `00_3_measured_derivatives`), head
# ablation (lesson 15.3, `15_3_head_ablation`).*
#
# **After this lesson you can**
#
# - compute the gradient of any output of a model with respect to attention weights and head outputs;
# - predict the cost of removing each head from a single backward pass;
# - say what attention weights, gradients and ablations measure, and what they do not.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer.checking import gradcheck
from npformer.functional.heads import split_heads
from npformer.functional.softmax import softmax_backward
from npformer.learn.course import show_figure
from npformer.learn.course.ambiguous import (
    ablated,
    ambiguous_sentences,
    attention_parts,
    kinds_of_tokens,
    weights_of_queries,
)
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import trained
from npformer.models.registry import model_from_checkpoint
from npformer.plots import curves
from npformer.pretrained import Translator

rng = np.random.default_rng(15)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16.3

# %% [markdown]
# ## One backward pass instead of many forward passes
#
# An ablation needs one forward pass for each head. A large model has thousands of heads, and each word,
# weight or number of the model could be removed as well. Is there a cheaper way to see what is important?
#
# The backward pass computes the gradient of one number with respect to everything at once. In training this
# number is the loss. Here we take the logit difference δ of lesson 15.1 (`15_1_tokens_that_heads_attend_to`).
# The gradient of an output with respect to an input or an intermediate array is called its **saliency**.
#
# We load the model of lesson 13.5 (`13_5_training_a_translator`) and the hundred sentences with "it". Then we
# measure the cost of removing each head as in lesson 15.3, to have something to compare with.

# %%
checkpoint = trained()
translator = Translator.from_checkpoint(checkpoint)
model = translator.model
H, K = model.config.n_heads, model.config.head_value
it = ambiguous_sentences(translator, "it", 100)


def forward():
    logits, cache = model.forward(it.batch.source, it.batch.target_in)  # (B, T, V)
    return it.logit_differences(logits), cache


delta, _ = forward()
cost = {}  # (where, layer, head) -> the mean decrease of δ
for where, layers in attention_parts(model).items():
    for number, layer in enumerate(layers):
        for head in range(H):
            with ablated(layer, head):
                cost[where, number, head] = (delta - forward()[0]).mean()
print(f"the cost of removing a head: {min(cost.values()):.2f} to {max(cost.values()):.2f}")

# %% [markdown]
# ## The gradient of δ
#
# The backward pass starts with the gradient of δ by the logits. By its definition, this is +1 for the right
# word, −1 for the wrong word, and 0 everywhere else. At each attention, the gradient $dZ$ of the head output
# $Z = P V$ arrives. Lesson 5.2 derived the gradient of the weights:
#
# $$dP = dZ\, V^\top, \qquad dp_{ts} = \sum_i dz_{ti}\, v_{si}$$

# %% tags=["plot"]
figure = shape_flow(
    "weights z logits δ \n v . . .",
    {"z": "weights v: weights v", "logits": "…: z", "δ": "right − wrong: logits"},
    {"weights": "T S", "v": "S K", "z": "T K", "logits": "T V", "δ": "1"},
)
show_figure(
    figure,
    "15_4_shapes",
    "From the weights of a head to δ; the gradients come back from the right to the left",
)

# %% [markdown]
# So $dp_{ts}$ tells how much δ increases if the weight of query $t$ for token $s$ increases. But the
# weights of a query sum to 1. If one weight increases, others must decrease. So we take one row $p$ and
# move a small part $\varepsilon$ of all weights to token $s$. Let $e_s$ be the vector with a 1 at $s$ and 0
# elsewhere. The new row is $(1 - \varepsilon)\, p + \varepsilon\, e_s$.
#
# The change of the row is $\varepsilon\,(e_s - p)$. Its product with $dp$ is the change of δ, to first order:
#
# $$\begin{aligned}
# \Delta\delta &= \varepsilon \left(dp_s - \sum_r p_r\, dp_r\right) \\
# &= \varepsilon\, g_s
# \end{aligned}$$
#
# We call $g_s$ the **slope** for token $s$. The softmax's backward pass (lesson 5.2) contains the same
# bracket, $da_s = p_s\, g_s$. Here is an example with two tokens.

# %%
p, dp = np.array([0.7, 0.3]), np.array([2.0, -1.0])  # (S,)
print(f"Σ p dp = {p @ dp:.1f}, slopes", dp - p @ dp)

# %% tags=["check"]
assert_allclose([p @ dp, *(dp - p @ dp), 0.1 * (dp - p @ dp)[0]], [1.1, 0.9, -2.1, 0.09])

# %% [markdown]
# **Question.** By how much does δ increase in this example if a tenth of the row moves to the first token?
#
# <details><summary>Answer</summary>
# By $\varepsilon\, g_1 = .1 \cdot .9 = .09$. The slope is .9, because $dp_1 = 2$ and the sum is
# $.7 \cdot 2 - .3 \cdot 1 = 1.1$.
# </details>
#
# The sum in the bracket has a simple form, because $\sum_s p_s v_{si} = z_i$:
#
# $$\begin{aligned}
# \sum_s p_s\, dp_s &= \sum_i dz_i \sum_s p_s v_{si} \\
# &= \sum_i dz_i\, z_i \\
# &= \langle dz, z \rangle
# \end{aligned}$$
#
# This product of an array with its gradient is called **gradient times input**. It predicts the effect of an
# ablation: removing a head moves $z$ to 0, a step of $-z$ for each query. To first order, **the decrease of δ
# is** $\sum_t \langle dz_t, z_t \rangle$.

# %% [markdown]
# ## A gradient check for the heads
#
# Before we use these formulas in a model, we check them. The function `heads` computes the sum of all head
# outputs, each multiplied by its block of $W^O$. Its backward pass contains $dP = dZ\, V^\top$.

# %%


def heads(p, v, w):
    """y = Σ_h P_h V_h W_h. Shapes: p (H, T, S), v (H, S, K), w (H, K, D) -> (T, D)."""
    z = p @ v  # (H, T, K)
    return (z @ w).sum(0), (p, v, w, z)


def heads_backward(dy, cache):
    """Return the gradients (dp, dv, dw)."""
    p, v, w, z = cache
    dz = dy @ w.swapaxes(-1, -2)  # (H, T, K)
    return dz @ v.swapaxes(-1, -2), p.swapaxes(-1, -2) @ dz, z.swapaxes(-1, -2) @ dy


p, v, w = (rng.standard_normal(shape) for shape in ((2, 3, 4), (2, 4, 5), (2, 5, 6)))
report = gradcheck((heads, heads_backward), p, v, w)
print(report)

# %% tags=["check"]
assert report.ok
attention = attention_parts(model)["cross"][-1]  # compare with the package, on random vectors
x, memory = rng.standard_normal((2, 1, 5, model.config.d_model)).astype(np.float32)  # (1, 5, D)
y, made = attention.forward(x, memory)
dy = rng.standard_normal(y.shape).astype(np.float32)
model.zero_grad()
attention.backward(dy, made)
blocks = attention.output.weight.value.reshape(H, K, -1)  # (H, K, D)
_, small_cache = heads(made.attention.weights[0], made.attention.v[0], blocks)
_, _, dblocks = heads_backward(dy[0], small_cache)
assert_allclose(dblocks, attention.output.weight.grad.reshape(H, K, -1), atol=1e-4)

# %% [markdown]
# ## Record dZ in the whole model
#
# The backward pass of the model goes through every attention, but it does not store $dZ$. So we replace the
# method `backward` of each attention by a function. This function stores $dZ$ first, and then calls the
# original method. First it computes $dZ$ from $dy$, as in `heads_backward`. This is a product with the
# transposed $W^O$. Then `split_heads` divides the result among the heads.

# %%


def record_dz(model, recorded):
    """Let every attention store its dZ (B, H, T, K) in a dictionary during the backward pass."""

    def recording(name, layer, original):
        def backward(dy, cache):
            recorded[name] = split_heads(dy @ layer.output.weight.value.T, H)
            return original(dy, cache)

        return backward

    for where, layers in attention_parts(model).items():
        for number, layer in enumerate(layers):
            layer.backward = recording((where, number), layer, layer.backward)


def backward_from_delta(model, sentences):
    """Run forward, then backward from the sum of all δ. Return the cache."""
    logits, passed = model.forward(sentences.batch.source, sentences.batch.target_in)
    dlogits = np.zeros_like(logits)  # (B, T, V)
    dlogits[sentences.rows, sentences.answer, sentences.right] = 1
    dlogits[sentences.rows, sentences.answer, sentences.wrong] = -1
    model.backward(dlogits, passed)
    return passed


dz = {}
record_dz(model, dz)
passed = backward_from_delta(model, it)
for name, array in dz.items():
    print(name, array.shape)

# %% [markdown]
# The first check below confirms the identities of the derivation on the real sentences. The second one uses
# the complex step: it multiplies the block of one head by $1 + ih$ with $h = 10^{-20}$. This has
# the same effect as multiplying the output $z$ of this head by $1 + ih$, so the imaginary part of δ must be
# $h \sum_t \langle dz_t, z_t \rangle$.

# %% tags=["check"]
part = attention_parts(passed)["cross"][-1].attention
dz_part = dz["cross", model.config.n_layers - 1]
dweights = dz_part @ part.v.swapaxes(-1, -2)  # (B, H, T, S)
average = (dweights * part.weights).sum(-1)  # (B, H, T)
assert_allclose(average, (dz_part * (part.weights @ part.v)).sum(-1), atol=1e-4)
slopes = dweights - average[..., None]  # (B, H, T, S)
assert_allclose(part.weights * slopes, softmax_backward(dweights, part.weights), atol=1e-4)

# %% tags=["check"]
exact = model_from_checkpoint(checkpoint).astype(np.float64)
one, exact_dz = ambiguous_sentences(translator, "it", 1), {}
record_dz(exact, exact_dz)
part = attention_parts(backward_from_delta(exact, one))["encoder"][0].attention
predicted = (exact_dz["encoder", 0] * (part.weights @ part.v))[0, 2].sum()  # of head 2

weight = exact.encoder.layers[0].self_attention.output.weight
weight.value = weight.value.astype(complex)
weight.value[2 * K : 3 * K] *= 1 + 1e-20j
exact_logits, _ = exact.forward(one.batch.source, one.batch.target_in)
derivative = one.logit_differences(exact_logits)[0].imag / 1e-20
print(f"Σ ⟨dz, z⟩ by the backward pass {predicted:.12f}, by the complex step {derivative:.12f}")
assert_allclose(predicted, derivative, rtol=1e-9)

# %% [markdown]
# ## Predicted and measured costs
#
# Now each head has a predicted cost, the mean of $\sum_t \langle dz_t, z_t \rangle$ over the sentences. How
# good is the prediction? We use the rank correlation of lesson 15.3 again, and compare with the hit rates:
# how often a head attends to the antecedent.

# %%
predicted_cost = {}
for (where, number), dz_layer in dz.items():
    part = attention_parts(passed)[where][number].attention
    z = part.weights @ part.v  # (B, H, T, K)
    for head, value in enumerate((dz_layer * z).sum((2, 3)).mean(0)):  # (H,)
        predicted_cost[where, number, head] = value


def correlation_with_cost(numbers):
    """Return the rank correlation of a number of each head with the measured cost."""
    both = [list(numbers.values()), [cost[head] for head in numbers]]
    return np.corrcoef([np.argsort(np.argsort(row)) for row in both])[0, 1]


kinds = kinds_of_tokens(it)  # (B, S), 0 is the antecedent
weights = weights_of_queries(it, passed)  # (where, layer, head) -> (B, S)
rates = {head: (kinds[it.rows, w.argmax(-1)] == 0).mean() for head, w in weights.items()}
same_heads = {head: predicted_cost[head] for head in rates}
print("rank correlation with the measured cost:")
print(f"gradient times input, all 24 heads {correlation_with_cost(predicted_cost):+.2f}")
print(f"gradient times input, 16 heads     {correlation_with_cost(same_heads):+.2f}")
print(f"hit rate, the same 16 heads        {correlation_with_cost(rates):+.2f}")

# %% tags=["plot"]
order = sorted(cost, key=cost.get)
figure = curves(
    np.array([[predicted_cost[head] for head in order], [cost[head] for head in order]]),
    np.arange(1, len(order) + 1),
    labels=["predicted: Σ ⟨dz, z⟩", "measured: ablation"],
    xlabel="head, in the order of the measured cost",
    ylabel="decrease of δ",
)
show_figure(figure, "15_prediction", "One backward pass predicts the costs of 24 ablations")

# %% tags=["check"]
assert correlation_with_cost(predicted_cost) > 0.3
assert correlation_with_cost(same_heads) > 0.3

# %% [markdown]
# The first two numbers tell how well the gradient predicts which heads the model needs. The third one tells
# how well the hit rates do. The comparison is not quite fair, because $\langle dz, z \rangle$ uses all
# queries and all tokens of a head. The hit rate uses one query and one token.
#
# There is a reason why the attention weights alone cannot predict the cost. The contribution of a head to the
# output is $P V W^O_h$. The weights $P$ say where the information comes from. They say neither which
# information it is (that is $V W^O_h$), nor whether later layers use it (that is $dZ$).
#
# **Question.** Where the two curves of the figure differ, the prediction is wrong. The complex step has shown
# that the gradient is correct. So what is the reason?
#
# <details><summary>Answer</summary>
# The prediction uses the slope at the present $z$, but an ablation is a large step, from $z$ to 0. On
# the way, the slope changes. The prediction is exact only for small steps.
# </details>

# %% [markdown]
# ## Three methods, three questions
#
# | question | method | computation |
# |---|---|---|
# | Where does the head take information from? | attention weights $P$ | one forward pass |
# | What would a small change do? | $dP = dZ\,V^\top$, $\langle dz, z \rangle$ | one more backward pass |
# | What happens without the head or the word? | ablation | one forward pass for each head or word |
#
# Only the ablation is an experiment: it changes the model or the input, and measures what happens. The other
# two methods are cheaper and can tell you where an experiment is worth the effort.

# %% [markdown]
# ## Summary
#
# - The gradient of δ by a head output, $dZ$, is computed by one backward pass for all heads at once.
# - The slope $g_s = dp_s - \langle dz, z \rangle$ is the change of δ per unit of weight that moves to $s$.
# - Gradient times input, $\sum_t \langle dz_t, z_t \rangle$, predicts to first order what an ablation costs.
# - The prediction is a slope; it fails where the function is far from linear.
# - Attention weights show the origin of information, but not which information it is and whether it is used.

# %% [markdown]
# ## Questions
#
# **Question.** For a head, $\langle dz, z \rangle$ is negative at all queries. What does the gradient predict
# for its ablation?
#
# <details><summary>Answer</summary>
# A negative cost: δ increases without the head. To first order, this head supports the wrong word.
# </details>

# %% [markdown]
# ## Exercises
#
# The exercises of this chapter (`npformer exercise list 15`) belong to its last three lessons. Try these in
# the terminal:
#
# - By hand: show that $\sum_s p_s\, g_s = 0$ for every query.
# - Which token has the largest mean slope for the head with the highest cost? Compute `slopes` for its layer.
#
# **Next**: lesson 15.5 (`15_5_what_each_layer_predicts`) reads the model after each of its layers.

# %% [markdown]
# # 15.3 · Head ablation
#
# *About 35 minutes. You need: the output projection $W^O$ (lesson 7.3,
# `07_3_the_output_projection_and_the_backward_pass`), the logit difference (lesson 15.1,
# `15_1_tokens_that_heads_attend_to`), hit rates (lesson 15.2, `15_2_attention_to_the_antecedent`).*
#
# **After this lesson you can**
#
# - write multi-head attention as a sum with one term for each head;
# - remove a head from a trained model without training it again, and measure what the removal costs;
# - compare two orders of the heads with a rank correlation;
# - remove a word from the source, and measure what this costs.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
from contextlib import contextmanager

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer.data import UNK
from npformer.learn.course import show_figure
from npformer.learn.course.ambiguous import (
    TOKEN_KINDS,
    ambiguous_sentences,
    attention_parts,
    kinds_of_tokens,
    weights_of_queries,
)
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import trained
from npformer.plots import probability_bars
from npformer.pretrained import Translator

rng = np.random.default_rng(15)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16.3

# %% [markdown]
# ## Attention is not the same as need
#
# Lesson 15.2 counted how often a head attends to the antecedent. But a model can attend to a token and then
# ignore what it receives. To find out whether the model needs a head, we remove the head and measure the
# accuracy again. Such an experiment is called an **ablation**. It shows a cause and an effect, while a
# picture of attention weights shows only one intermediate result.
#
# First we load the model of lesson 13.5 (`13_5_training_a_translator`) and the hundred sentences with "it".

# %%
translator = Translator.from_checkpoint(trained())
model = translator.model
H, K = model.config.n_heads, model.config.head_value
it = ambiguous_sentences(translator, "it", 100)


def forward(batch=it.batch):
    """Return the logit differences (B,) and the cache of the model."""
    logits, cache = model.forward(batch.source, batch.target_in)
    return it.logit_differences(logits), cache


delta, passed = forward()
accuracy = (delta > 0).mean()
print(f"δ > 0 in {accuracy:.1%} of the sentences, mean of δ {delta.mean():.2f}")

# %% [markdown]
# ## Each head has its own block of W^O
#
# How can we remove one head? Let $z_h$ be the output of head $h$, with shape (T, K). Multi-head attention
# concatenates the outputs of all H heads and multiplies the result by $W^O$. We divide $W^O$ into H
# **blocks** of K rows each, and call them $W^O_h$:
#
# $$\begin{aligned}
# y &= \mathrm{Concat}(z_0, \ldots, z_{H-1})\, W^O + b \\
# &= \sum_h z_h\, W^O_h + b
# \end{aligned}$$

# %% tags=["plot"]
figure = shape_flow(
    "z₀ y₀ y \n z₁ y₁ . \n b . .",
    {"y₀": "z₀ W₀: z₀", "y₁": "z₁ W₁: z₁", "y": "sum: y₀ y₁ b"},
    {"z₀": "T K", "z₁": "T K", "y₀": "T D", "y₁": "T D", "b": "D", "y": "T D"},
)
show_figure(
    figure,
    "15_3_shapes",
    "Two heads: each contributes the product of its output and its own block of the matrix",
)

# %% [markdown]
# The output of a head reaches the rest of the model only through its own block. So if the block is 0, the
# head is removed. The context manager `ablated` sets blocks to 0 and restores them afterwards.

# %%


@contextmanager
def ablated(attention, *heads):
    """Remove heads of an attention layer for a while."""
    w_output = attention.output.weight.value  # (H·K, D)
    original = w_output.copy()
    for head in heads:
        w_output[head * K : (head + 1) * K] = 0
    yield
    w_output[...] = original


# %% [markdown]
# We test this on random vectors. The sum over the heads must be the output of the layer. Without head 1, its
# term must be missing.

# %%
attention = attention_parts(model)["cross"][-1]
x, memory = rng.standard_normal((2, 1, 5, model.config.d_model)).astype(np.float32)  # (1, 5, D)
y, made = attention.forward(x, memory)
z = made.attention.weights @ made.attention.v  # (1, H, T, K)
blocks = attention.output.weight.value.reshape(H, K, -1)  # (H, K, D)
terms = (z @ blocks)[0]  # (H, T, D)
with ablated(attention, 1):
    y_without, _ = attention.forward(x, memory)
print("term of head 1  ", terms[1, 0, :4])
print("y − y_without   ", (y - y_without)[0, 0, :4])

# %% tags=["check"]
assert_allclose(terms.sum(0) + attention.output.bias.value, y[0], atol=1e-5)
assert_allclose(y_without[0], y[0] - terms[1], atol=1e-5)
assert_allclose(attention.forward(x, memory)[0], y)  # the blocks are restored

# %% [markdown]
# ## Remove each head in turn
#
# The model has three kinds of attention with two layers of four heads each, so there are 24 heads. We remove
# each of them alone, and then all heads of a layer together. Two numbers measure the effect:
#
# - the accuracy, which is the share of the sentences with $\delta > 0$;
# - the **cost**, which is the mean decrease of $\delta$. It also shows effects that are too small to change
#   an answer.

# %%
accuracy_without, cost, without_layer = {}, {}, {}
for where, layers in attention_parts(model).items():
    for number, layer in enumerate(layers):
        for head in range(H):
            with ablated(layer, head):
                after, _ = forward()
            accuracy_without[where, number, head] = (after > 0).mean()
            cost[where, number, head] = (delta - after).mean()
        with ablated(layer, *range(H)):
            without_layer[where, number] = (forward()[0] > 0).mean()

# %% tags=["plot"]
bars = {"all heads": accuracy}
for (where, number), share in without_layer.items():
    bars |= {f"no {where} {number}.{h}": accuracy_without[where, number, h] for h in range(H)}
    bars[f"no {where} {number}"] = share
figure = probability_bars(np.array([*bars.values()]), [*bars])
caption = "The share of right pronouns without one head, or without all heads of a layer"
show_figure(figure, "15_ablation", caption)

# %% [markdown]
# In the figure, `no encoder 0.2` is the model without head 2 of the encoder's layer 0. `no encoder 0` is the
# model without all heads of this layer.
#
# **Question.** Read the figure. Are most heads necessary?
#
# <details><summary>Answer</summary>
# In this model, most heads are not necessary. More than half of them can be removed, one at a time, and the
# accuracy decreases by less than 2 points. The next cell prints the exact share, and its check asserts this.
# </details>

# %%
most_needed = min(accuracy_without, key=accuracy_without.get)
layer_needed = min(without_layer, key=without_layer.get)
small = np.mean([share > accuracy - 0.02 for share in accuracy_without.values()])
print(f"all heads: {accuracy:.1%}; without the most necessary head", end=" ")
print(f"{most_needed}: {accuracy_without[most_needed]:.1%}")
print(f"without all heads of {layer_needed}: {without_layer[layer_needed]:.1%}")
print(f"heads whose ablation costs less than 2 points: {small:.0%} of {len(cost)}")

# %% tags=["check"]
assert small > 0.5
assert without_layer[layer_needed] < accuracy_without[most_needed] + 0.05

# %% [markdown]
# So the model can do without most of its heads, one at a time. Michel et al. (2019) removed heads of large
# models and found the same.
#
# Compare the first line with the second one. Removing all heads of a layer can cost more than removing any of
# them. A possible reason is that several heads carry the same information. Then the others replace a single
# head that is missing.

# %% [markdown]
# ## Are the heads that attend to the antecedent the necessary ones?
#
# If attention to the antecedent were the reason for the right pronouns, the heads with the highest hit rates
# would have the highest costs. First we need the hit rates of lesson 15.2. They exist for the 16 heads of the
# encoder and of the cross-attention.

# %%
kinds = kinds_of_tokens(it)  # (B, S), 0 is the antecedent
weights = weights_of_queries(it, passed)  # (where, layer, head) -> (B, S)
rates = {head: (kinds[it.rows, w.argmax(-1)] == 0).mean() for head, w in weights.items()}
best = max(rates, key=rates.get)
print(f"highest hit rate {rates[best]:.0%}, {best}; without it: {accuracy_without[best]:.1%}")

# %% [markdown]
# Compare this accuracy with the accuracy of the whole model. Is the head with the highest hit rate also a
# head that the model needs? The answer depends on the trained model. This is why it has to be measured.
#
# Next we compare two orders of all 16 heads, one by hit rate and one by cost. The **rank correlation** of
# Spearman does this. Replace each number by its rank, and compute the correlation coefficient of the ranks.
# It is 1 if both orders are the same, and −1 if they are opposite. If the two orders have nothing to do with
# each other, it is close to 0.

# %%


def rank_correlation(a, b):
    """Return the correlation coefficient of the ranks."""
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (a, b)]
    return np.corrcoef(ranks)[0, 1]


heads = list(rates)
correlation = rank_correlation([rates[head] for head in heads], [cost[head] for head in heads])
print(f"rank correlation of hit rate and cost: {correlation:+.2f}")
for head in sorted(heads, key=cost.get, reverse=True)[:4]:
    print(f"  {head}   cost {cost[head]:5.2f}   hit rate {rates[head]:4.0%}")

# %% tags=["check"]
assert abs(correlation) < 0.9
assert_allclose(rank_correlation([1, 5, 2], [10, 30, 20]), 1)

# %% [markdown]
# The correlation is not close to 1 or −1. So the hit rates alone do not tell which heads the model needs.
#
# Look at the four heads with the highest costs, and at their hit rates. A head with a high hit rate may be
# necessary or not, and a necessary head may have a low hit rate.
#
# **Question.** A head that never attends to the antecedent has a high cost. Name a possible reason.
#
# <details><summary>Answer</summary>
# It may carry other information that decides, such as the adjective. It may also carry information that has
# nothing to do with the antecedent, but without which the sentence cannot be translated.
# </details>

# %% [markdown]
# ## Remove a word
#
# The same method works for the input. We replace a word of the source by `<UNK>`, the token for unknown
# words. It does not occur in the training sentences, so its embedding has kept its random initial value. It
# carries no information about the word that it replaces.
#
# We replace in turn the antecedent, the other noun, the adjective and "it", and measure δ each time.

# %%
accuracy_without_word = {}
for kind, name in enumerate(TOKEN_KINDS[:4]):
    replaced = np.where(kinds == kind, UNK, it.batch.source)  # (B, S)
    after, _ = forward(it.batch._replace(source=replaced))
    accuracy_without_word[name] = (after > 0).mean()
    print(f"without the {name:11} {(after > 0).mean():6.1%}", end="")
    print(f"   mean decrease of δ {(delta - after).mean():5.2f}")

# %% tags=["check"]
needed = accuracy_without_word["antecedent"], accuracy_without_word["adjective"]
assert max(needed) < accuracy - 0.1

# %% [markdown]
# These interventions change the translation, so they show what causes it. Without the antecedent or without
# the adjective, the accuracy decreases by more than 10 points. A human reader also needs both words: the
# noun, and what is said about it.
#
# **Question.** Without the antecedent, would you expect an accuracy of 0?
#
# <details><summary>Answer</summary>
# No. There are only two answers, so a guess is right in about half of the sentences.
# </details>

# %% [markdown]
# ## Summary
#
# - The output of multi-head attention is a sum with one term $z_h W^O_h$ for each head, plus the bias.
# - An ablation removes a part of the model and measures the effect; for a head, set its block of $W^O$ to 0.
# - More than half of the heads can be removed one at a time with a loss of less than 2 points.
# - The rank correlation compares how often heads attend to the antecedent with how much the model needs them.
# - Without the antecedent or the adjective, the accuracy decreases by more than 10 points.

# %% [markdown]
# ## Questions
#
# **Question.** Two heads of a layer do exactly the same. What does the ablation of one of them show?
#
# <details><summary>Answer</summary>
# Possibly a small cost only, because the other head is still there. So a small cost does not show that the
# work of the head is unnecessary. It shows that the model can do without this one head.
# </details>

# %% [markdown]
# ## Exercises
#
# The exercises of this chapter (`npformer exercise list 15`) belong to its last three lessons. Try these in
# the terminal:
#
# - Removing two heads can cost more than the sum of their costs, or less. Find such pairs: `ablated(layer, 0,
#   2)` removes two heads.
# - Set blocks to 0 in all layers at once, beginning with the heads of the smallest cost. How many can you
#   remove before the accuracy falls below 90 %?
# - After `npformer tour`, switch heads off yourself: run `npformer explore --model tour/run --open`, and
#   replace the end of the address, from `#` on, by `#view=changes`.
#
# **Next**: lesson 15.4 (`15_4_gradient_times_input`) predicts the cost of all heads with a single backward
# pass.

# %% [markdown]
# # 20.4 · Training latent attention
#
# *About 35 minutes. You need: latent attention (lesson 20.2, `20_2_two_stage_attention`), the bound for a
# bag of words (lesson 20.1, `20_1_a_task_that_needs_word_order`), recurrent networks (chapter 17).*
#
# **After this lesson you can**
#
# - train four models on if-then recipes and compare them fairly;
# - test whether a part of a trained model is used, by an ablation;
# - explain why a picture of attention weights does not show how a model works.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import re

import numpy as np
from threadpoolctl import threadpool_limits

from npformer import Module, Parameter
from npformer.data import if_then as recipes
from npformer.functional import attention, attention_backward, latent
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.if_then import BagOfWords, RecipeReader
from npformer.plots import attention_map, cell_grid, curves
from npformer.training.if_then import fit, score

rng = np.random.default_rng(20)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## The data
#
# We use the recipes of lesson 20.1 and the mirrored recipes, in which the two channels have exchanged their
# places. A bag of words predicts at most half of the triggers correctly over both sets together.

# %%
corpus = recipes.recipe_corpus()
codec = recipes.recipe_codec(corpus.train)
train, test = (recipes.encode_recipes(part, codec) for part in corpus)
sizes = len(codec.vocabulary), len(recipes.TRIGGERS), len(recipes.ACTIONS)


def mirrored(recipe):
    one, other = (end.partition(".")[0] for end in (recipe.trigger, recipe.action))
    names = {one: other, other: one}
    parts = (recipe.description, recipe.trigger, recipe.action)
    exchange = [re.sub("|".join(names), lambda found: names[found[0]], part) for part in parts]
    return recipes.IfThenRecipe(*exchange)


mirrors = recipes.encode_recipes([mirrored(recipe) for recipe in corpus.test], codec)
counts = len(train.ids), len(test.ids), len(mirrors.ids)
print("recipes: {} for training, {} for the test, {} mirrored".format(*counts))

# %% [markdown]
# ## The model
#
# `RecipeReader` contains two latent attentions, one for the trigger and one for the action. A bidirectional
# LSTM computes the states $e$ from the word embeddings $x$ (chapter 17). The states are the input of the
# scores. The *values* are the embeddings, which contain no information about the order:

# %% tags=["plot"]
figure = shape_flow(
    ". . e w̄ o logits \n ids x . . . .",
    {
        "x": "embedding: ids",
        "e": "LSTM: x",
        "w̄": "weights: e",
        "o": "w̄ x: w̄ x",
        "logits": "linear: o",
    },
    {"ids": "B S", "x": "S D", "e": "S E", "w̄": "1 S", "o": "1 D", "logits": "1 V"},
)
caption = "For the trigger; a second attention does the same for the action"
show_figure(figure, "20_4_shapes", caption)

# %% [markdown]
# **Question.** Why are the values the embeddings and not the states?
#
# <details><summary>Answer</summary>
# A state contains information about the whole sentence, so any state could be sufficient for the answer. An
# embedding contains only its own word. So a correct answer means that the weights are at the right words.
# </details>

# %% [markdown]
# We compare four models. Two of them are `RecipeReader` in the two orientations, and one is `BagOfWords`.
# The fourth is `RecipeReader` with attention of one stage, $a = \mathrm{softmax}_j(u \cdot e_j)$, for each
# of the two answers. The next cell defines this attention.

# %%


class OneQuery(Module):
    """o = Σ_j a_j v_j with a = softmax(u · e_j). Shapes: e (B, S, E), v (B, S, D) -> (B, D)."""

    def __init__(self, d_state):
        self.u = Parameter(rng.uniform(-0.3, 0.3, (1, d_state)).astype(np.float32))

    def forward(self, e, values, *, mask):
        o, cache = attention(self.u.value, e, values, mask[:, None], scale=1.0)
        return o[:, 0], cache

    def backward(self, do, cache):
        du, de, dvalues = attention_backward(do[:, None], cache)
        self.u.grad += du.sum(0)  # all sentences used the same query
        return de, dvalues


# %% [markdown]
# ## Training
#
# Each model gets 200 steps of Adam with 64 recipes in each step. Then we measure the share of correct
# triggers, of correct actions, and of recipes in which both are correct.

# %%
readers = {
    "bag of words": BagOfWords(*sizes, rng=np.random.default_rng(0)),
    "one query": RecipeReader(*sizes, rng=np.random.default_rng(0)),
    "columns": RecipeReader(*sizes, rng=np.random.default_rng(0), orientation="columns"),
    "rows": RecipeReader(*sizes, rng=np.random.default_rng(0)),
}
for answer in (readers["one query"].trigger, readers["one query"].action):
    answer.attention = OneQuery(64)
losses, results = {}, {}
print("             trigger  action    both     both, mirrored recipes")
for name, reader in readers.items():
    losses[name] = by_step = {}
    fit(reader.flatten(), train, steps=200, seed=0, report=by_step.__setitem__)
    results[name] = of_test, of_mirrors = score(reader, test), score(reader, mirrors)
    shares = "".join(f"{share:8.1%}" for share in of_test)
    print(f"{name:12}{shares}     {of_mirrors.both:7.1%}")

# %% tags=["check"]
bag, one, columns, rows = results.values()
assert np.add(*bag)[:2].max() <= 1  # the bound: half of each, over both sets
assert max(bag[0][:2]) < 0.5
assert min(rows[0].both, rows[1].both) > 0.97
assert 0.6 < columns[0].both < one[0].both < 0.95

# %% tags=["plot"]
smooth = [np.convolve(list(of.values()), np.ones(10) / 10, "valid") for of in losses.values()]
labels = {"labels": list(losses), "ylabel": "loss, mean of ten steps"}
figure = curves(smooth, np.arange(10, 201), **labels)
caption = "The bag of words finds the channels, but not which is the source"
show_figure(figure, "20_losses", caption)

# %% [markdown]
# The bag of words finds the two channels, but it can only guess which one is the source. So it gets less
# than half of the triggers and less than half of the actions.
#
# The model "rows" gets nearly everything right. The models "columns" and "one query" have not finished
# learning. **One query is not a bag of words any more**, because it is applied to states that contain
# information about the order. In this run it is ahead of "rows" for 60 steps, and then behind. The exercises
# at the end train it for 200 more steps.

# %% [markdown]
# ## The weights of one model
#
# Now we show the weights of the model "rows" for the two recipes of the paper, which have nearly the same
# words.

# %%
sentences = [recipe.description.lower().split() for recipe in recipes.FAMOUS]
seen_weights = []
for recipe, words in zip(recipes.FAMOUS, sentences, strict=True):
    program, cache = readers["rows"].forward(np.array([codec.encode(recipe.description)]))
    found = recipes.TRIGGERS[program.trigger.argmax()], recipes.ACTIONS[program.action.argmax()]
    print(" → ".join(found))
    assert found == (recipe.trigger, recipe.action)
    for question in ("trigger", "action"):
        seen = getattr(cache, question).attention
        seen_weights += [seen.latent[0], seen.weights[0]]  # (S,) each
        largest = [words[row[0].argmax()] for row in (seen.latent, seen.weights)]
        print("  {}: largest latent weight at {}, active at {}".format(question, *largest))

# %% tags=["plot"]
names = ["trigger: latent", "trigger: active", "action: latent", "action: active"]
for number, words in enumerate(sentences):
    four = np.stack(seen_weights[4 * number :][:4])  # (4, S)
    style = {"colour": "r", "columns": words, "numbers": True, "shade": True}
    figure = cell_grid(four, rows=names, **style)
    caption = f"The four kinds of weights of the model rows, recipe {number + 1}"
    show_figure(figure, f"20_recipe_{number + 1}", caption)

# %% [markdown]
# The active weights are large at the channel or at the object that is moved, as we wanted. But the latent
# weights are not at "to". Is the first stage used at all?

# %% [markdown]
# ## An ablation of the first stage
#
# An **ablation** removes or replaces a part of a model and measures the effect. We replace the latent
# weights of every recipe by **one fixed list**, the mean of $l$ at each position over the test set. Then
# the words of a recipe cannot influence $l$ any more. For each model and each answer we measure:
#
# - how often the right one of the two channels has the larger active weight ("right channel");
# - the sum of the latent weights at "to", which would be .10 if all words of a recipe had the same weight;
# - the share of correct answers, with the real latent weights and with the fixed list.

# %%
pairs = np.array([codec.encode(" ".join(recipe.channels)) for recipe in corpus.test])  # (N, 2)
at_channels = test.ids[:, None] == pairs[..., None]  # (N, 2, S)
is_to = test.ids == codec.encode("to")[0]  # (N, S)
uniform = (is_to.sum(-1) / (test.ids != 0).sum(-1)).mean()
print(f"equal weights would give “to” {uniform:.2f}")
print(f"{'':16}right channel   l at “to”   correct   with the fixed list")
ablation = {}
for name in ("rows", "columns"):
    program, caches = readers[name].forward(test.ids)
    for side, question in enumerate(("trigger", "action")):
        seen = getattr(caches, question).attention
        channel = (seen.weights[:, None] * at_channels).sum(-1).argmax(-1) == side  # (N,)
        at_to = (seen.latent * is_to).sum(-1)  # (N,)
        matrix = seen.active if name == "rows" else seen.active.swapaxes(1, 2)  # (N, S, S)
        w, _ = latent.unit_weights(matrix @ seen.latent.mean(0))  # (N, S) with the fixed list
        o = (w[:, None] @ seen.attend.v)[:, 0]  # (N, D)
        logits, _ = getattr(readers[name], question).output.forward(o)  # (N, C)
        guesses = (program[side].argmax(-1), logits.argmax(-1))  # (N,) each
        correct, fixed = ((guess == test[1 + side]).mean() for guess in guesses)
        ablation[name, question] = channel.mean(), at_to.mean(), correct, fixed
        print(f"{name:8}{question:8}{channel.mean():12.1%} {at_to.mean():11.2f}", end="")
        print(f"{correct:11.1%} {fixed:12.1%}")

# %% tags=["check"]
assert round(uniform, 2) == 0.1
for (name, _), (channel, at_to, correct, fixed) in ablation.items():
    assert channel > 0.9
    assert abs(correct - fixed) < 0.01 if name == "rows" else correct - fixed > 0.02
    assert at_to < uniform if name == "rows" else at_to > 2 * uniform

# %% [markdown]
# **In "rows", this trained model does not use its first stage.** The latent weight at "to" is smaller than
# with equal weights. With the fixed list, the share of correct answers changes by less than one percentage
# point.
#
# How does it find the source then? For the trigger, nearly all of $l$ is at the first one or two positions.
# So $w_i$ is mainly $D_{i0}$: word $i$ gets weight if it points to position 0. These weights are then divided
# by their sum. So the second stage alone acts as attention with one score for each word. The state $e_i$
# contains the information whether the word stands before or after "to".

# %%
_, cache = readers["rows"].forward(np.array([codec.encode(recipes.FAMOUS[0].description)]))
seen, words = cache.trigger.attention, sentences[0]
first_two = seen.latent[0, :2].sum()
from_column, _ = latent.unit_weights(seen.active[0, :, 0])  # (S,) from column 0 of D
difference = abs(from_column - seen.weights[0]).max()
print(f"sum of l at the first two words: {first_two:.2f}")
print(f"column 0 of D, divided by its sum, differs from the active weights by {difference:.2f}")

# %% tags=["check"]
assert first_two > 0.95
assert difference < 0.1

# %% tags=["plot"]
figure = attention_map(seen.active[0], words, words, numbers=True, title="D of the trigger")
caption = "Rows: the words that get weight point to the first position"
show_figure(figure, "20_gate", caption)

# %% [markdown]
# **In "columns", the form of the paper, the first stage is used.** The latent weight at "to" is more than
# twice as large as with equal weights. The fixed list costs some of the correct answers. Other initial values
# can give another result. With the seeds 1 and 2, the latent weights for the action also prefer "to", but the
# latent weights for the trigger do not.
#
# So a layer with two stages does not have to use both. The picture of its weights does not show which part
# is used. To find out, change the part and measure the effect (lesson 15.3, `15_3_head_ablation`).
#
# **Question.** "rows" learned faster than "columns" here. Does this show that "rows" is the better layer?
#
# <details><summary>Answer</summary>
# No. This is one task, one size and one number of steps. Also, a faster model may get its result without
# the two stages, as this one does.
# </details>

# %% [markdown]
# ## Summary
#
# - The bag of words stays below the bound of one half, also after training.
# - One query over the states of a recurrent network learns the task, but later than "rows" here.
# - In more than 90 % of the recipes, the right one of the two channels has the larger active weight.
# - In "rows" a fixed list can replace the latent weights; in "columns" this costs correct answers.
# - Whether a part of a model is used is found by an ablation, not by a picture of its weights.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the ablation use the *mean* of $l$ over the test set, and not equal weights?
#
# <details><summary>Answer</summary>
# The mean keeps everything about l that does not depend on the words of the recipe. So a loss of correct
# answers can only come from the missing dependence on the words.
# </details>
#
# **Question.** In "rows", the fixed list changes almost no answer. Did the latent weights get no gradient?
#
# <details><summary>Answer</summary>
# They got the gradient dl = Dᵀ dw, which is not 0 in general. But training reached a low loss without using
# the differences between the latent weights of different recipes.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 20` lists the exercises of this chapter. They belong to lesson 20.3
# (`20_3_the_backward_pass_of_latent_attention`).
#
# - In the terminal, train the model with one query for 200 more steps with
#   `!fit(readers["one query"], train, steps=200, seed=1)`. Then measure it with
#   `!print(score(readers["one query"], test))`.
# - Repeat the ablation with the *active* weights: replace $\bar{w}$ by its mean over the test set.
#
# **Next**: lesson 21.1 (`21_1_relative_position_representations`), the first one of chapter 21: positions
# that are not counted from the start of the sentence.

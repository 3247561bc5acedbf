# %% [markdown]
# # 15.7 · Induction heads
#
# *About 30 minutes. You need: the blocks of W^O (lesson 15.3, `15_3_head_ablation`), decoder-only models
# (lesson 21.6, `21_6_encoder_only_and_decoder_only_models`, its first half).*
#
# **After this lesson you can**
#
# - explain how two heads in two layers copy what followed a token before, and why one layer cannot;
# - measure with two numbers what a head attends to;
# - recognize a sudden drop of the loss that comes from a new mechanism.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.course import show_figure
from npformer.learn.experiments.induction import (
    MEASURE_EVERY,
    MEASURED,
    SEEDS,
    STEPS,
    Trial,
    attention_scores,
    draw_rows,
    loss_of_copies,
    switch_off,
    train_model,
)
from npformer.learn.experiments.measured_runs import read_results
from npformer.plots import attention_grid, curves

model, result = train_model(Trial("two layers", 0.005, STEPS, 0))
rows = draw_rows(np.random.default_rng(7), 64)
loss, cache = loss_of_copies(model, rows)
# two arrays (B, H, T, T)
weights = [layer.self_attention.attention.weights for layer in cache.layers]

# %% tags=["plot"]
labels = [str(token) for token in rows.batch.ids[0]]
figure = attention_grid(np.stack([layer[0] for layer in weights]), labels, labels, large=(1, 0))
caption = "Both heads on a row of tokens that is repeated: rows are queries, columns are keys"
show_figure(figure, "15_induction", caption)

# %% [markdown]
# ## A stripe
#
# The model in the picture reads random tokens, which are repeated after a while. It has two layers with one
# head each, and no feed-forward networks. The cell above trained it in 600 steps.
#
# In the large map, look at the rows of the second half. Nearly every query attends to one key, and these
# keys form a stripe. The stripe is not where the query's own token stood before. It is one place later: at
# the token that *followed* it.
#
# **Question.** Why is this a good place to attend to?
#
# <details><summary>Answer</summary>
# The model predicts the next token. In a repeated row, the next token is the one that followed this token the
# first time. The head attends to it, and copies it.
# </details>
#
# A head with this stripe is an **induction head** (Elhage et al. 2021; Olsson et al. 2022). It is found in
# nearly all language models.

# %% [markdown]
# ## One head cannot do it alone
#
# How does a query find the token after an equal token? A score compares the query's vector with the key's. In
# the first layer, a key's vector is the embedding of its own token. It says nothing about the token before.
# So a head of the first layer can find the place where the same token stood, but not the next.
#
# A fixed distance does not help either. The length of the part that is repeated differs from row to row,
# between 11 and 16 tokens.
#
# Two layers can divide the work:
#
# | | place s, token b | place t, token a again |
# |---|---|---|
# | layer 0 attends to | place s − 1, where the first a stands | place t − 1 |
# | after layer 0, the vector says | "I am b, and a was before me" | "I am a" |
# | layer 1 makes of it | the key "a was before me" and the value "I am b" | a query for "a was before me" |
#
# In layer 1, the key of $b$ says that $a$ came before. The query of the second $a$ matches this key, and the
# value of $b$ brings the prediction.
#
# The small maps in the picture show both heads. Layer 0 has its large weights right below the diagonal.
#
# **Question.** The head of layer 0 attends to the previous token, whichever it is. How can it?
#
# <details><summary>Answer</summary>
# Rotary positions (lesson 23.2, `23_2_rotary_positions`) rotate queries and keys, so a score also depends on
# the distance of the two positions. The head has learned a large score for the distance 1.
# </details>

# %% [markdown]
# ## The score as a sum
#
# The residual connection makes this visible in a formula. Let $e_s$ be the normalized embedding of token $s$.
# After layer 0, the vector at position $s$ is about $e_s + e_{s-1} W$, where $W = W^V W^O$ is the product of
# the two matrices of the first head through which $e_{s-1}$ passes. So the score of layer 1 is, up to its
# scale, the norm and the rotations,
#
# $$a_{ts} = e_t\, W^Q\, (W^K)^\top (e_s + e_{s-1} W)^\top$$
#
# The second term compares the token $t$ with the token *before* $s$. This term makes the head an induction
# head. The path through the key is called **K-composition**: the second head reads with its keys what the
# first head has written.
#
# **Question.** Could the first head help through the query instead: $e_{t-1} W$ in the place of $e_t$?
#
# <details><summary>Answer</summary>
# Then the query would ask for the token before $t$, and find the place where it stood. With this, the head
# attends to a token equal to the one *before* the query, which is two places too early.
# </details>

# %% [markdown]
# ## Two numbers for a head
#
# A picture shows one row. For many rows we need numbers:
#
# - *previous*: the mean weight of the token before the query;
# - *stripe*: the mean sum of the weights of all tokens that followed a token equal to the query's. Olsson et
#   al. call it the prefix-matching score.

# %%
for layer, of_layer in enumerate(weights):
    scores = attention_scores(rows, of_layer)
    print(f"layer {layer}:", *(f"{name} {heads[0]:.2f}" for name, heads in scores.items()))

# %% tags=["check"]
first, second = (attention_scores(rows, of_layer) for of_layer in weights)
assert first["previous"][0] > 0.4
assert second["previous"][0] < 0.1
assert second["stripe"][0] > 0.8
assert first["stripe"][0] < 0.1
t, s = 20, int(np.flatnonzero(rows.batch.ids[0, :20] == rows.batch.ids[0, 20])[-1])
assert rows.batch.ids[0, s + 1] == rows.batch.target_out[0, t]

# %% [markdown]
# The head of layer 1 gives most of its weight to the stripe. The head of layer 0 needs only a part of its
# weight on the previous token: layer 1 can find even a weak mark.

# %% [markdown]
# ## The loss drops suddenly
#
# The command `npformer experiment induction` trains two models, with three seeds each, and the cell reads its
# results. One model has two layers with a head each. The other has one layer with two heads. Both have the
# same numbers of heads and of matrices. Every 20 steps, the experiment measures the loss on new rows, of the
# tokens that can be copied only.

# %%
results = read_results(MEASURED)
steps = np.arange(MEASURE_EVERY, STEPS + 1, MEASURE_EVERY)
losses = np.array([found.measures["loss"] for found in results])  # (runs, steps measured)
figure = curves(
    losses,
    steps,
    labels=[f"{found.model}, {found.seed}" for found in results],
    ylabel="loss of the tokens that can be copied",
    legend=True,
)
print(f"guess among 64 tokens {np.log(64):.2f}, among 13.5 that were seen {np.log(13.5):.2f}")
for name in ("two layers", "one layer"):
    last = [found.valid_loss for found in results if found.model == name]
    print(f"{name}: {min(last):.2f} to {max(last):.2f}")

# %% tags=["plot"]
show_figure(figure, "15_induction_losses", "Three seeds of each model, named by the seed")

# %% tags=["check"]
two, one = losses[: len(SEEDS)], losses[len(SEEDS) :]
assert two[:, -1].max() < 0.5
assert one.min() > 1.8
assert (two[:, :-3] - two[:, 3:]).max(1).min() > 1.9  # in 60 steps
assert_allclose(result.measures["loss"][:2], two[0, :2], atol=0.05)

# %% [markdown]
# With one layer, the loss goes down slowly and then stops. Both heads give three quarters of their weight to
# the tokens 10 to 15 places back. The next token is one of these six, since 11 to 16 tokens are repeated. So
# the model guesses among them, and never copies.
#
# With two layers, the loss falls in the same way at first. Then it drops by about 2 within 60 steps, in all
# three runs. The step at which this happens depends on the seed.
#
# **Question.** Why does the loss not fall evenly?
#
# <details><summary>Answer</summary>
# Each of the two heads is useless without the other. As long as layer 0 marks no previous tokens, layer 1
# can match nothing, and its gradient is weak. As long as layer 1 does not look for marks, layer 0 gains
# nothing by making them. Once both exist a little, each makes the other more useful, and both grow quickly.
# </details>
#
# Did the stripe appear at the same time? The table is of seed 0.

# %%
measured = results[0].measures
for place in range(5, 12):
    names = ("loss", "previous 0", "stripe 1")
    print(f"step {steps[place]}:", *(f"{name} {measured[name][place]:.2f}" for name in names))

# %% tags=["check"]
drop = np.argmin(np.diff(measured["loss"]))
rise = np.argmax(np.diff(measured["stripe 1"]))
assert abs(drop - rise) <= 1

# %% [markdown]
# The loss and the stripe change in the same steps, and the previous tokens get their weight then, too. Large
# models show the same: at one point of the training the loss has a bump, induction heads appear, and the
# models begin to use what stood earlier in their context (Olsson et al. 2022).

# %% [markdown]
# ## Switch a head off
#
# A map that changes together with the loss is no proof that the head does the copying. The experiment of
# lesson 15.3 is: set the block of $W^O$ that reads a head to 0.

# %%
print(f"loss {loss:.2f}")
for layer in range(2):
    restore = switch_off(model, layer, 0)
    print(f"without the head of layer {layer}: {loss_of_copies(model, rows)[0]:.2f}")
    restore()

# %% tags=["check"]
assert_allclose(loss_of_copies(model, rows)[0], loss)
for found in results[: len(SEEDS)]:
    assert min(found.measures["without 0.0"][0], found.measures["without 1.0"][0]) > 3

# %% [markdown]
# Without either head the copying ends. The loss is even above that of a uniform guess, 4.16. Without its
# partner, the other head still adds its vectors, and the model is confident of wrong tokens.
#
# **Your turn.** In the row of the picture, token 12 occurs twice before the row is repeated. Find its
# queries in the large map. What does the head do the third time that it meets this token, and what the
# fourth time?

# %% [markdown]
# ## Summary
#
# - An induction head attends to the token that followed an equal token before, and copies it.
# - It needs a head in an earlier layer that marks each token with the previous one. The two compose through
#   the keys of the second.
# - Two heads side by side cannot do it, in this experiment with any seed.
# - The loss drops suddenly, since each of the two heads is useful only with the other.
# - Switching off either head ends the copying.

# %% [markdown]
# ## Questions
#
# **Question.** The model of the experiment has rotary positions. Why would sinusoids that are added to the
# embeddings allow another mechanism?
#
# <details><summary>Answer</summary>
# Then a head of layer 0 could find the equal token and copy its *position*. Layer 1 could attend to the
# position after it. No token would have to know the token before it.
# </details>
#
# **Question.** GPT-2 has 144 heads, and several of them are induction heads. What do you expect if you switch
# one of them off?
#
# <details><summary>Answer</summary>
# A small effect, since the others do the same work.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 15` lists the exercises of this chapter.
#
# - `npformer exercise start stripe-score`: measure how much a head attends to what followed an equal token.
# - Train the model with one layer and four heads. Does it copy?
# - Let all rows repeat 13 tokens: set `SHORTEST` and `LONGEST` of the module to 13. Now one layer is enough.
#   Which distance does its head attend to?
#
# **Next**: lesson 16.1 (`16_1_operations_and_memory_bandwidth`) asks where the time of a training step goes.

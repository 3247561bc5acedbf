# %% [markdown]
# # 24.3 · From 2017 to Llama
#
# *About 30 minutes. You need: the place of the norm (lesson 8.4, `08_4_norm_before_or_after`), chapter 23, a
# GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`).*
#
# **After this lesson you can**
#
# - name seven parts that changed between the decoder of 2017 and Llama, and say why each one changed;
# - compare models by an ablation, and judge a difference between two losses by its standard deviation over
#   the seeds;
# - say which of these changes lower the loss in a small experiment, and which ones lower the cost.
#
# `language model: ids → [EMBEDDING] → [LAYERS] → [NORM] → linear → softmax`

# %%
from itertools import pairwise

import numpy as np

from npformer.learn.course import show_figure
from npformer.learn.experiments.ablation import (
    MEASURED,
    RATES,
    SEARCH_SEED,
    compared,
    make_model,
    stages,
)
from npformer.learn.experiments.measured_runs import MEAN_OF, read_results
from npformer.plots import curves

# %% [markdown]
# ## Two layers, side by side
#
# The Transformer of 2017 is still in use, but almost each of its parts was replaced. You know all the new
# parts from chapter 23. This lesson puts them together: it compares the decoder layer of 2017 with the layer
# of Llama, and measures what each change does. The table names the changes:
#
# | part | 2017: decoder layer | Llama: layer | change |
# |---|---|---|---|
# | norm | layer norm after each sum | RMS norm before each sublayer | 1, 2 |
# | queries and keys | not rotated | rotated | 3 |
# | feed-forward network | linear, ReLU, linear | SiLU(gate) · value, then linear | 4 |
# | heads of keys and values | H | G, with G < H | 5 |
# | linear layers | with a bias | without a bias | 6 |
# | sublayers | self-attention, cross-attention, feed-forward | self-attention, feed-forward | |

# %% [markdown]
# Change 7 is the optimizer, which is not in the table. Cross-attention is gone, because there is no
# encoder. In 2017, the vectors of the positions were added to the embeddings before the first layer. In
# Llama, each layer rotates its queries and keys instead. And Llama has one more norm after its last layer.
#
# **Question.** A Llama has 32 layers. How many norms does it have? How many norms does a decoder of 2017 with
# 32 layers have?
#
# <details><summary>Answer</summary>
# The Llama has 2 · 32 + 1 = 65 norms. The decoder of 2017 has three norms in each layer, so it has 96.
# </details>

# %% [markdown]
# ## From the table of 2017 to a Llama
#
# The table compares three published models (Vaswani et al. 2017; Brown et al. 2020; Grattafiori et al. 2024):
#
# | | base model, 2017 | GPT-3, 2020 | Llama 3 8B, 2024 |
# |---|---|---|---|
# | norm | layer norm, after | layer norm, before | RMS norm, before |
# | positions | sinusoids | learned | rotary |
# | feed-forward | ReLU, F = 4 D | GELU, F = 4 D | SwiGLU, F = 3.5 D |
# | heads: queries, keys | 8, 8 | 96, 96 | 32, 8 |
# | biases | yes | yes | no |
# | optimizer | Adam, 1 / √s | Adam, decay, cosine | AdamW, cosine |
# | layers, width D | 6 + 6, 512 | 96, 12,288 | 32, 4,096 |
# | parameters | 65 million | 175 billion | 8 billion |
# | training tokens | 2.5 billion | 300 billion | 15 trillion |

# %%
base_tokens = 100_000 * 25_000  # steps, and target tokens in a step
print(f"Llama 3 8B: {8e9 / 65e6:.0f} times the parameters of the base model")
print(f"            {15e12 / base_tokens:,.0f} times the training tokens")

# %% [markdown]
# The table shows the order of the changes. The norm and the optimizer changed first, because large models did
# not train well without these two changes. The parts of chapter 23 came later. The sizes changed most of all.

# %% [markdown]
# ## The experiment
#
# A published model differs from an older one in many parts at once. To see what one part does, we need an
# ablation: models that differ in this part only, trained in the same way. Here are eight models. The first
# one has the decoder layer of 2017, without cross-attention. Each of the others changes one more part, and
# the last one is a small Llama.

# %%
plan = stages()
for stage in plan:
    print(f"{stage.name:17}{make_model(stage, 0).count_parameters():9,} parameters")

# %% tags=["check"]
assert len(plan) == 8
for before, after in pairwise(plan):
    settings = before.config.to_dict(), after.config.to_dict()
    changed = sum(settings[0][name] != settings[1][name] for name in settings[0])
    changed += (before.norm_after != after.norm_after) + (before.optimizer != after.optimizer)
    assert changed == 1

# %% [markdown]
# A layer of the first model, as a tree of its parts:

# %%
print(make_model(plan[0], 0).layers[0])

# %% [markdown]
# And a layer of the last model:

# %%
print(make_model(plan[-1], 0).layers[0])

# %% [markdown]
# Only the first model has its norms after the sublayers. As in the GPT of 2018, the first models learn a
# vector for each position. The paper of 2017 tried such vectors too, and the quality was nearly the same as
# with sinusoids (Table 3, row E). The initial weights have the standard deviation $1 / \sqrt{D}$.
#
# All models are trained on the same text in the same way: 600 steps with 8 windows of 64 characters. But
# which learning rate is fair? A learning rate that is good for one model can be bad for another model. So
# each model is first trained with two learning rates, and keeps the better one. The cell shows the validation
# losses of this search.

# %%
results = read_results(MEASURED)
search = {(r.model, r.learning_rate): r.valid_loss for r in results if r.seed == SEARCH_SEED}
print(" " * 17, *(f"{rate:8}" for rate in RATES))
for stage in plan:
    print(f"{stage.name:17}", *(f"{search[stage.name, rate]:8.3f}" for rate in RATES))

# %% [markdown]
# **Question.** These losses belong to seed 0. The models are then compared with other seeds. Why not with
# seed 0?
#
# <details><summary>Answer</summary>
# A learning rate was chosen because its loss was low with seed 0. A loss can be low by chance, so the chosen
# loss is probably too low. The losses with other seeds had no influence on the choice.
# </details>

# %% [markdown]
# ## The losses
#
# All trainings together take several minutes, so their results are stored in a file, which the cell reads.
# The command `npformer experiment ablation` makes such a file anew.
#
# A seed determines the first weights and the windows of text. So all models with the same seed read the same
# windows, and we can compare them seed by seed. The cell prints the mean loss of each model, and how much it
# differs from the loss of the model before. The last line is the standard deviation of such a difference over
# the five seeds. A difference that is smaller than this deviation may be chance.

# %%
of_stage = compared(results)
losses = np.array([[r.valid_loss for r in of] for of in of_stage.values()])  # (stages, seeds)
changes = np.diff(losses, axis=0)  # (stages - 1, seeds)
deviation = np.sqrt(changes.var(axis=1, ddof=1).mean())  # of one change, over the seeds
print(f"{plan[0].name:17} {losses[0].mean():.3f}")
for stage, loss, change in zip(plan[1:], losses[1:], changes, strict=True):
    print(f"{stage.name:17} {loss.mean():.3f}   {change.mean():+.3f}")
print(f"standard deviation of a change over the seeds: {deviation:.3f}")

# %% tags=["check"]
mean = dict(zip((stage.name for stage in plan[1:]), changes.mean(1), strict=True))
assert min(mean, key=mean.get) == "rotary positions"
assert mean["rotary positions"] < -0.1
assert (changes[[0, 2, 6]] < 0).all()
assert (changes[3] < 0).sum() == 4
assert (changes[5] > 0).all()
assert max(mean["norm before"], mean["SwiGLU"], mean["AdamW, cosine"]) < -0.02
assert 0.2 < losses[0].mean() - losses[-1].mean() < 0.27
assert deviation < -mean["SwiGLU"] < 2 * deviation
assert max(abs(mean[name]) for name in ("RMS norm", "grouped queries", "no biases")) < deviation

# %% tags=["plot"]
points = np.array([[r.curve for r in of] for of in of_stage.values()]).mean(1)
steps = (np.arange(points.shape[1]) + 1) * MEAN_OF
names = {"labels": [stage.name for stage in plan], "ylabel": "training loss, mean of ten steps"}
figure = curves(points[:, 9:], steps[9:], **names)
caption = "The curves form two groups: without rotary positions, and with them"
show_figure(figure, "24_3_ablation", caption)

# %% [markdown]
# ## Four changes for the loss
#
# - **Change 1, the norm before the sublayer.** With the norm after the sum, the gradient of the first layers
#   passes through all norms of the later layers (lesson 8.4). With the norm before the sublayer, the direct
#   path has no norm. In our models of two layers, the loss is lower with each seed, by .06 on average.
# - **Change 3, rotary positions.** Already at the first training step, the scores depend on distances, and
#   nothing is added to the vectors of the tokens (lesson 23.2, `23_2_rotary_positions`). The loss falls most,
#   by .12.
# - **Change 4, SwiGLU.** The hidden layer is the product of two linear maps (lesson 23.3,
#   `23_3_gated_feed_forward_networks`). Shazeer (2020) offers no explanation, and attributes the success of
#   SwiGLU "to divine benevolence". With as many weights, the loss falls by .02 on average, but hardly with
#   two of the seeds.

# %% [markdown]
# **Question.** SwiGLU has three matrices instead of two. How can the fifth model have fewer parameters than
# the fourth?
#
# <details><summary>Answer</summary>
# The hidden layer of the fifth model is narrower: F is 8/3 D instead of 4 D. Three matrices of D × 8/3 D have
# as many weights as two matrices of D × 4 D. But F is rounded down from 170.7 to 170. This saves 128 weights
# in each layer, which is more than the 84 additional biases of the hidden layer.
# </details>
#
# - **Change 7, AdamW with a cosine.** With the schedule of 2017, the learning rate at the end of our training
#   is still a third of its largest value. With the cosine, it is a tenth of the largest value (lesson 23.5,
#   `23_5_adamw`). The loss falls with each seed, again by .06 on average.
#
# ## Three changes for the cost
#
# - **Change 2, RMS norm.** RMS norm leaves out the mean and the bias of layer norm, and so it needs fewer
#   passes over the vectors (lesson 23.1, `23_1_rms_norm`).
# - **Change 5, grouped queries.** The KV cache becomes smaller, and is read faster during generation (lesson
#   23.4, `23_4_grouped_query_attention`).
# - **Change 6, no biases.** A model without biases has less to store and to compute. Chowdhery et al.
#   (*PaLM*, 2022) also found that the training of large models was more stable without biases.

# %%
for stage in plan[4:6]:
    config = stage.config
    numbers = 2 * config.n_layers * config.key_heads * config.d_head
    print(f"{stage.name:16} {numbers} numbers in the KV cache for each token")

# %% tags=["check"]
caches = []
for stage in plan[4:6]:
    _, kv_cache = make_model(stage, 0).decode_step(np.array([3]), 0, None)
    caches.append(sum(layer.k[:, :, :1].size + layer.v[:, :, :1].size for layer in kv_cache))
assert caches == [256, 128]

# %% [markdown]
# Each of these three changes the mean loss by less than the standard deviation. Their purpose is the same
# quality at a lower cost. For example, grouped queries halve the KV cache.

# %% [markdown]
# ## What a small experiment can tell
#
# All seven changes together lower the loss by more than .2 nats per character. Nearly half of this comes from
# the rotary positions. How many seeds does it take to see this? One is enough for the rotary positions. For
# SwiGLU, two of our five seeds would have told you that it does nothing. And the loss without biases is
# higher with each of the five seeds, although by less than the standard deviation: a small change in one
# direction is only seen with several seeds.
#
# **Question.** The models were changed in one order. Could another order give other numbers?
#
# <details><summary>Answer</summary>
# Yes. The effect of a change depends on the other parts of the model. For example, learned positions may help
# less in a model that has rotary positions already.
# </details>

# %% [markdown]
# Several changes were made for models that are many thousand times as large. In such a model, a gradient
# passes a hundred layers, and the KV cache of one text takes gibibytes. Our experiment cannot show what a
# change does at this size. And it cannot show what a change does in a long training.
#
# Published comparisons have similar problems. Narang et al. (*Do Transformer Modifications Transfer Across
# Implementations and Applications?*, 2021) tried many changes in one program with equal settings. Most of
# these changes did not improve the models. But gated feed-forward networks and RMS norm improved them.

# %% [markdown]
# **In 2025**, Qwen3 has the parts of this Llama layer, and one more: it normalizes each query and key. Lesson
# 26.4 (`26_4_multi_head_latent_attention`) continues this comparison with parts of 2025, also with five
# seeds: normalized queries and keys, windows in some of the layers, and latent vectors.

# %% [markdown]
# ## Summary
#
# - Seven parts changed between the decoder of 2017 and Llama: the place of the norm, the norm, the positions,
#   the feed-forward network, the heads of keys and values, the biases, and the optimizer.
# - An ablation changes one part at a time. Each model needs a good learning rate, and several seeds.
# - Here, rotary positions lower the loss most. The place of the norm, and AdamW with a cosine, lower it with
#   each seed, and SwiGLU on average.
# - RMS norm, grouped queries and the missing biases lower the cost, and hardly change the loss.
# - A small experiment cannot show what a change does in a large model or in a long training.

# %% [markdown]
# ## Questions
#
# **Question.** You want to measure whether dropout helps this Llama. Which trainings do you need?
#
# <details><summary>Answer</summary>
# You need trainings of the Llama with dropout and without it. Each of them needs its best learning rate and
# several seeds. Everything else must be the same. And the trainings must be so long that a model without
# dropout overfits.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 24` lists the exercises of this chapter.
#
# - `npformer experiment ablation` repeats the experiment on your computer. The losses will differ a little,
#   because computers round differently.
#
# **Next**: lesson 24.4 (`24_4_what_a_kv_cache_costs_and_saves`), which measures how much work and memory a
# GPT needs for each new token.

# %% [markdown]
# # 22.2 · Batches by tokens, and tied embeddings
#
# *About 30 minutes. You need: subwords (lesson 22.1, `22_1_byte_pair_encoding`), batches and padding
# (lesson 1.1, `01_1_words_to_ids`), label smoothing and tied weights (lesson 12.3,
# `12_3_label_smoothing_and_tied_weights`).*
#
# **After this lesson you can**
#
# - build batches with a limited number of tokens and little padding;
# - share one embedding table between source, target and output, and derive its gradient;
# - explain the dropout and the label smoothing that are used for a small corpus.
#
# `model: ids → [EMBEDDING] → positions → encoder → decoder → [LINEAR] → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig, data, show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import make_batch
from npformer.learn.course import show_figure
from npformer.learn.course.short_sentences import short_sentences
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(22)

# %% [markdown]
# ## The data
#
# We use the 4,000 short sentence pairs of lesson 22.1, and the subwords that byte-pair encoding made from
# them. The function `short_sentences` repeats these steps and returns the ids. English and French share one
# vocabulary.

# %%
corpus = short_sentences()
examples, V = corpus.train, len(corpus.codec.vocabulary)
print(f"{len(examples):,} pairs, {V} tokens; the first pair: {examples[0]}")

# %% [markdown]
# ## Batches by the number of tokens
#
# So far, each batch had a fixed number of sentences. In real text the lengths differ a lot. 64 long
# sentences have many times the tokens of 64 short ones. They need more memory, and the model learns from
# more tokens in this step. So it is better to limit the **number of tokens** in a batch.
#
# A batch is a rectangular array. Shorter sentences are filled up with padding. So the number of tokens is
# counted with padding:
#
# $$\mathrm{sentences} \cdot \mathrm{longest\ length} \le 1024$$
#
# The preset for Multi30k uses 2,048. To reduce the padding, sentences of similar length are put into the
# same batch. The lengths are changed a little at random before sorting, so that the batches differ between
# the passes through the corpus.

# %%
sizes = data.example_lengths(examples)  # (N, 2) source and target
plan = data.plan_batches(sizes, seed=0, epoch=0, batch_tokens=1024)  # the indices of each batch
print(f"{len(plan)} batches of {min(map(len, plan))} to {max(map(len, plan))} sentences")

tokens = sizes.sum()
places = sum(len(ids) * sizes[ids].max(0).sum() for ids in plan)  # tokens and padding
mixed = np.array_split(rng.permutation(len(sizes)), len(plan))  # without sorting
places_mixed = sum(len(ids) * sizes[ids].max(0).sum() for ids in mixed)
padding = 1 - tokens / places, 1 - tokens / places_mixed
print("padding: {:.0%} when sorted, {:.0%} in random order".format(*padding))

# %% tags=["check"]
assert all(len(ids) * sizes[ids].max() <= 1024 for ids in plan)
assert places < places_mixed

# %% [markdown]
# **Question.** Why are the lengths changed at random, and why are the batches shuffled after they were cut?
#
# <details><summary>Answer</summary>
# With exact sorting, a sentence would share its batch with the same others in every pass. Without shuffling,
# the model would see all short sentences first, and the last steps of each pass would be made with long
# sentences only.
# </details>
#
# How much padding there is depends on the size of a batch. The more sentences a random batch contains, the
# longer its longest sentence is.

# %% tags=["plot"]
batch_sizes = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
padding_curves = np.zeros((2, 9))
for j, n in enumerate(batch_sizes.tolist()):
    in_order = rng.permutation(len(sizes))
    chance = np.array_split(in_order, -(-len(sizes) // n))
    planned = data.plan_batches(sizes, seed=0, epoch=0, batch_size=n)
    for i, batches in enumerate((chance, planned)):
        cells = sum(len(ids) * sizes[ids].max(0).sum() for ids in batches)
        padding_curves[i, j] = 1 - tokens / cells
figure = curves(
    100 * padding_curves,
    batch_sizes,
    labels=["at random", "sorted by length"],
    xlabel="sentences in a batch",
    ylabel="% of the cells that are padding",
    xscale="log",
)
show_figure(figure, "22_2_padding", "Sorted batches need much less padding than random ones")

# %% tags=["check"]
assert (padding_curves[1, 1:7] < padding_curves[0, 1:7] / 4).all()

# %% [markdown]
# ## One embedding table
#
# A Transformer has three matrices with one row or column for each token: the embeddings of the source,
# those of the target, and the weights of the output layer. When both languages share their subwords, the
# three can be the same table $E$ of shape (V, D). This is called **tied embeddings** (lesson 12.3 tied two
# of them). In npformer, the setting is `tied="all"`. Let $h$ be the output of the decoder:
#
# $$x = \sqrt{D}\, E[\mathrm{source}], \qquad t = \sqrt{D}\, E[\mathrm{target}]$$
#
# $$\mathrm{logits} = h\, E^\top$$

# %% [markdown]
# The table is used three times, so its gradient is the sum of three gradients:
#
# $$dE = dE_{\mathrm{source}} + dE_{\mathrm{target}} + dE_{\mathrm{output}}$$
#
# How much does this save? The cell counts the parameters of the model for Multi30k, which has 10,000 tokens
# and a d_model of 128.

# %%
multi30k = TransformerConfig.architecture("multi30k")
count = Transformer(multi30k, rng=rng).count_parameters()
share = multi30k.target_vocab * multi30k.d_model / count
print(f"{count:,} parameters, {share:.0%} of them in the table")

# %% tags=["check"]
assert round(count / 1e6, 1) == 2.6

# %% [markdown]
# **Question.** How many parameters would the model have with three separate tables?
#
# <details><summary>Answer</summary>
# Each table has 10,000 · 128 = 1.28 million parameters. Two more tables give 2.6 + 2.56 = 5.2 million,
# twice as many.
# </details>
#
# We check the sum of the gradients. The cell makes two models with the same numbers. One has one table, and
# the other has three tables with equal entries. After one backward pass we compare the gradients.

# %%
tiny = {"d_model": 8, "d_ff": 8, "n_heads": 2, "n_layers": 1, "dropout": 0, "max_length": 40}
config = multi30k.replace(source_vocab=V, target_vocab=V, **tiny)
one = Transformer(config, rng=rng, dtype=np.float64)
three = Transformer(config.replace(tied="none"), rng=rng, dtype=np.float64)
same = one.state_dict()
table = same["source.tokens.weight"]  # (V, D)
separate = {name: same.get(name, table) for name in three.state_dict()}
three.load_state_dict(separate | {"output.weight": table.T})

batch = make_batch(examples[:3])
for model in (one, three):
    loss, cache = ModelWithLoss(model).forward(*batch)
    ModelWithLoss(model).backward(1.0, cache)
parts = {
    "source": three.source.tokens.weight.grad,
    "target": three.target.tokens.weight.grad,
    "output": three.output.weight.grad.T,
}
for name, part in parts.items():
    print(f"{name}: the gradient has the length {np.linalg.norm(part):.2f}")

# %% tags=["check"]
assert_allclose(one.source.tokens.weight.grad, sum(parts.values()), rtol=1e-9, atol=1e-12)
print("their sum is the gradient of the one table")

# %% tags=["plot"]
largest = {name: np.argsort(-abs(part).sum(-1)) for name, part in parts.items()}
rows = [*largest["source"][:4], *largest["target"][:4]]  # four tokens of each side
cells = [Grid(part[rows], name, "q", shade=True) for name, part in parts.items()]
total = Grid(sum(parts.values())[rows], "sum", "z", shade=True)
figure = cell_product([cells[0], "+", cells[1], "+", cells[2], "=", total])
caption = "Eight rows of the gradient of E: the contributions of its three uses"
show_figure(figure, "22_tied", caption)

# %% [markdown]
# ## Is it right?
#
# The gradient check tests the whole model with its tied table and label smoothing. First we look at one
# cache of the forward pass, that of the encoder-decoder attention.

# %%
_, cache = one.forward(batch.source, batch.target_in, packed=True)
cache = cache.decoder[0].cross.attention
show(cache)
report = gradcheck(ModelWithLoss(one), *batch, train=True, rng=5)
worst = max(row.error for row in report.rows)
print(f"{len(report.rows)} checks of the whole model, largest error {worst:.0e}")

# %% tags=["check"]
assert report.ok

# %% [markdown]
# ## Dropout and label smoothing
#
# 29,000 sentences are a small corpus, and the model reads each of them dozens of times. So there is a
# danger of **overfitting**: the loss on the training data decreases, while the loss on other data
# increases. Two settings reduce it:
#
# - **Dropout** is .3. The base model of the paper has .1, because its corpus is much larger.
# - **Label smoothing** is .1, as in the paper (lesson 12.3). With it, the model does not learn to predict a
#   word that occurred only once with a probability of nearly 1.

# %%
print(f"dropout {multi30k.dropout}, label smoothing {multi30k.label_smoothing}")

# %% tags=["check"]
assert (multi30k.dropout, multi30k.label_smoothing) == (0.3, 0.1)

# %% [markdown]
# ## Summary
#
# - A batch is limited by its number of tokens, padding included, and not by its number of sentences.
# - Sorting by length with some randomness reduces the padding; the batches are then shuffled.
# - With a shared vocabulary, source, target and output can use one table.
# - The gradient of the table is the sum of the gradients of its three uses.
# - A small corpus needs more dropout; label smoothing stays at .1.

# %% [markdown]
# ## Questions
#
# **Question.** A sentence of 1,500 tokens occurs in the corpus, and the limit is 1,024. What can be done?
#
# <details><summary>Answer</summary>
# It can be a batch of its own, which exceeds the limit. This is what the package does. But sentences that are
# longer than the setting `max_length` of the data are left out.
# </details>
#
# **Question.** Why do the embeddings have the factor √D, but the output layer does not?
#
# <details><summary>Answer</summary>
# The entries of the table must be small, so that the logits are not too large at the start. As embeddings
# they would then be small compared with the position vectors, and the factor corrects this.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 22` lists the exercises of this chapter.
#
# - In the terminal, plan batches with another limit:
#   `!len(data.plan_batches(sizes, seed=0, epoch=0, batch_tokens=256))`.
# - By hand: two sentences have 5 and 20 tokens. What share of a batch with both of them is padding?
#
# **Next**: lesson 22.3 (`22_3_bleu`), which computes a score for translations.

# %% [markdown]
# # 24.1 · A GPT from its parts
#
# *About 30 minutes. You need: causal masks (lesson 6.1, `06_1_masks`), the training loop (lesson 13.4,
# `13_4_the_training_loop`), decoder-only models (lesson 21.6, `21_6_encoder_only_and_decoder_only_models`),
# and chapter 23.*
#
# **After this lesson you can**
#
# - cut one long text into training examples that need no padding;
# - build a GPT from layers that you know, and say which array flows between them;
# - judge the loss of a language model against the losses of simple models.
#
# `language model: ids → [EMBEDDING] → [LAYERS] → [NORM] → [LINEAR] → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import gradcheck, show
from npformer.data.text import text_dataset
from npformer.functional.masks import causal_mask
from npformer.generation.sampling import sample_ids
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import short_gpt
from npformer.models.gpt import GPT, GPTConfig
from npformer.nn.context import AttentionMask, Context
from npformer.plots import curves
from npformer.training import evaluate, loss_and_gradients

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## One long text instead of sentence pairs
#
# A translator needs pairs of sentences. A GPT needs only text, because it learns to predict the next token.
# The text of this lesson is Tiny Shakespeare: 40,000 lines of plays. Each character is a token. The first
# 90 % of the text are for training, and the rest is for validation.

# %%
dataset = text_dataset()
codec = dataset.codec
print(f"{len(dataset.train):,} characters for training, {len(dataset.valid):,} for validation")
print(f"{len(codec.tokens)} different ones")
print(codec.decode(dataset.train[:90].tolist()))

# %% tags=["check"]
assert len(codec.tokens) == 65
assert len(dataset.train) == 9 * (len(dataset.train) + len(dataset.valid)) // 10

# %% [markdown]
# The model reads T characters at a time. T is called the length of the **context**. A training example is a
# **window**: T + 1 characters that begin at a random place. The first T characters are the input. The last T
# characters are the targets: at each position, the model must predict the next character.

# %%
batch = next(dataset.loader(12, seed=0, batch_size=3).steps())[0]
for ids, targets in zip(batch.ids, batch.target_out, strict=True):  # (T,) each
    print(f"{codec.decode(ids.tolist())!r:20} → {codec.decode(targets.tolist())!r}")

# %% tags=["check"]
assert batch.ids.shape == batch.target_out.shape == (3, 12)
assert_array_equal(batch.ids[:, 1:], batch.target_out[:, :-1])

# %% [markdown]
# All windows have the same length, so a batch contains no padding. And each window trains T predictions at
# once, as in the decoder of a translator (lesson 11.1, `11_1_the_decoder_and_teacher_forcing`).
#
# **Question.** A window begins in the middle of a word. Does this harm the training?
#
# <details><summary>Answer</summary>
# No, it does hardly any harm. For the first predictions of a window, the model has read only a few
# characters, so these predictions are poor. But the model must also learn to continue a short text.
# </details>
#
# ## The model
#
# A GPT is a stack of layers, which are often called **blocks**. A block has two sublayers: causal
# self-attention and a feed-forward network. Each sublayer has a norm before it and a residual connection
# around it (lesson 8.4, `08_4_norm_before_or_after`).

# %% [markdown]
# In the picture, B is the number of windows, D the width of the model, and V the number of tokens.

# %% tags=["plot"]
figure = shape_flow(
    "ids x . u₁ . u₂ logits \n . . m . f . .",
    {
        "x": "embedding: ids",
        "m": "norm, attention: x",
        "u₁": "x + m: x m",
        "f": "norm, FFN: u₁",
        "u₂": "u₁ + f: u₁ f",
        "logits": "norm, linear: u₂",
    },
    {
        "ids": "B T",
        "x": "T D",
        "m": "T D",
        "u₁": "T D",
        "f": "T D",
        "u₂": "T D",
        "logits": "T V",
    },
)
caption = "A GPT with one block, for one window; circles 2 to 5 are the block"
show_figure(figure, "24_1_shapes", caption)

# %% [markdown]
# Compare this picture with the decoder of chapter 11. A GPT has no encoder-decoder attention, because it has
# no encoder. You know all its parts. Three of them are from chapter 23: RMS norm, rotary positions and
# SwiGLU.
#
# The class `GPT` has this structure. The cell makes a small GPT, and prints its tree of layers.

# %%
config = GPTConfig.preset("gpt-shakespeare", d_model=64, d_ff=170, n_layers=2, context=32)
model = GPT(config, rng=np.random.default_rng(0), dtype=np.float64)
print(f"{model.count_parameters():,} parameters")
print(model)

# %% tags=["check"]
assert model.count_parameters() == config.count_parameters()

# %% [markdown]
# To see that nothing is hidden, the function `by_hand` computes the logits with the layers alone, in the
# order of the picture. These logits must be equal to those that the model computes.
#
# **Question.** A position must not attend to the characters after it. Which part of the model ensures this?
#
# <details><summary>Answer</summary>
# The causal mask of self-attention. All other parts compute each position separately.
# </details>

# %%


def by_hand(model, ids):
    """Return the logits (B, T, V) of ids (B, T)."""
    x, _ = model.embedding.forward(ids, Context())  # (B, T, D)
    mask = AttentionMask(causal_mask(ids.shape[1], ids))  # (T, T)
    for block in model.layers:
        h = block.norm1(x)  # (B, T, D)
        attended, _ = block.self_attention.forward(h, mask=mask)
        x = x + attended
        h = block.norm2(x)
        x = x + block.feed_forward(h)
    return model.output(model.norm(x))


batch = next(dataset.loader(32, seed=0, batch_size=8).steps())[0]
logits, _ = model.forward(batch.ids)  # (B, T, V)
print(f"largest difference: {abs(by_hand(model, batch.ids) - logits).max():.0e}")

# %% tags=["check"]
assert_allclose(by_hand(model, batch.ids), logits, atol=1e-12)

# %% [markdown]
# ## The gradient
#
# The loss is the mean cross-entropy of the T predictions of each window (lesson 12.1,
# `12_1_the_cross_entropy`). The backward pass goes through the layers in the reverse order. The embedding and
# the output layer share one weight, so the gradient of this weight is the sum of two terms (lesson 12.3,
# `12_3_label_smoothing_and_tied_weights`).
#
# We check all gradients together. Let $\theta$ contain all parameters, and let $v$ be a random direction.
# Then the derivative of the loss along $v$ must be the product of the gradient with $v$:
#
# $$\frac{L(\theta + \varepsilon v) - L(\theta - \varepsilon v)}{2 \varepsilon} \approx \nabla L \cdot v$$

# %%
v = np.random.default_rng(1).choice([-1.0, 1.0], model.values.size)  # (P,) for all P parameters
loss, _ = loss_and_gradients(model, [batch])
slope, epsilon, sides = model.grads @ v, 1e-6, []
for sign in (+1, -1):
    model.values += sign * epsilon * v
    sides.append(loss_and_gradients(model, [batch])[0])
    model.values -= sign * epsilon * v
numeric = (sides[0] - sides[1]) / (2 * epsilon)
print(f"gradient · v = {slope:.8f}   difference = {numeric:.8f}")

# %% tags=["check"]
assert_allclose(slope, numeric, rtol=1e-6)

# %% [markdown]
# The gradient checker compares the derivative in one random direction for each tensor of a layer. It uses the
# complex step (lesson 0.3, `00_3_measured_derivatives`), so it is more precise. The cell shows the cache of
# the feed-forward network of the first block. Then the gradient checker checks this network. The command
# `npformer gradcheck` checks GPTs with all options.

# %%
layer, x = model.layers[0].feed_forward, np.random.default_rng(2).standard_normal((2, 3, 64))
_, cache = layer.forward(x)
show(cache)

# %% tags=["check"]
report = gradcheck(layer, x)
assert report.ok

# %% [markdown]
# ## How low can the loss be?
#
# An untrained model gives about the same probability to all characters. So its loss should be close to
# $\ln V = \ln 65$. Two simple models show what is easy to learn:
#
# - The **unigram** model predicts each character with its frequency in the text. It reads no context.
# - The **bigram** model counts how often each pair of neighbouring characters occurs. It reads one
#   character of context.

# %%
V = len(codec.tokens)
train, valid = dataset.train.astype(int), dataset.valid.astype(int)
pairs = np.ones((V, V))  # one is added to each count, so that no probability is 0
np.add.at(pairs, (train[:-1], train[1:]), 1)
unigram = np.bincount(train, minlength=V) / len(train)  # (V,)
bigram = pairs / pairs.sum(1, keepdims=True)  # (V, V)
baselines = {
    "uniform": np.log(V),
    "unigram": -np.log(unigram[valid]).mean(),
    "bigram": -np.log(bigram[valid[:-1], valid[1:]]).mean(),
}
for name, value in {**baselines, "this GPT, untrained": loss}.items():
    print(f"{name:20} {value:.3f} nats, {value / np.log(2):.3f} bits per character")

# %% tags=["check"]
assert abs(loss - baselines["uniform"]) < 0.1
assert baselines["unigram"] > 3.3
assert 2.4 < baselines["bigram"] < 2.6

# %% [markdown]
# The loss in nats uses the natural logarithm. Divided by $\ln 2$, it is the number of bits per token. Here
# each token is a character. If the tokens are longer, the loss is also divided by the mean number of
# characters in a token. The result, **bits per character**, allows comparisons between models whose tokens
# differ.

# %% [markdown]
# ## Training
#
# The function `short_gpt` trains the same model in float32 for 400 steps with 32 windows each. The recipe is
# that of chapter 13: Adam, a warm-up, a cosine schedule, and clipping. The training takes a few seconds.

# %%
trained = short_gpt()
quality = evaluate(trained.model, dataset.validation_batches(32, batch_size=256))
bits = quality.loss / np.log(2)
print(f"validation loss: {quality.loss:.3f} nats, {bits:.3f} bits per character")

# %% tags=["check"]
assert 2.0 < quality.loss < 2.25
assert quality.loss < baselines["bigram"] - 0.25

# %% tags=["plot"]
smooth = np.convolve(trained.losses, np.ones(10) / 10, mode="valid")  # the mean of ten steps
lines = [smooth, *(np.full(len(smooth), baselines[name]) for name in ("unigram", "bigram"))]
figure = curves(
    np.array(lines),
    np.arange(len(smooth)) + 10,
    labels=["GPT", "unigram", "bigram"],
    xlabel="step",
    ylabel="nats per character",
)
caption = "First the GPT learns what the unigram knows, then what the bigram knows"
show_figure(figure, "24_1_training", caption)

# %% [markdown]
# The GPT soon passes the bigram model, because it reads more than one character. The cell lets the GPT write.
# Each character is drawn from the predicted probabilities (lesson 24.2, `24_2_sampling`).

# %%
prompt, rng = codec.encode("ROMEO:"), np.random.default_rng(0)
drawn = [int(token[0]) for token in sample_ids(trained.model, [prompt], 150, rng=rng)]
print(codec.decode(prompt + drawn))

# %% tags=["check"]
assert len(drawn) == 150
assert codec.decode(drawn).count(" ") > 10

# %% [markdown]
# The GPT has learned the form of a play, and many short words. A larger model with a longer training spells
# almost all words correctly. The preset `gpt-shakespeare` trains such a model on subwords (lesson 22.1,
# `22_1_byte_pair_encoding`), in a few minutes:
#
# ```text
# npformer train --preset gpt-shakespeare
# npformer generate "ROMEO:" --model runs/gpt-shakespeare
# ```
#
# **Your turn.** In the terminal, choose another prompt with `!prompt = codec.encode("JULIET:")`. Then print
# how the GPT continues it, with
# `!codec.decode([int(i[0]) for i in sample_ids(trained.model, [prompt], 99, rng=rng)])`.

# %% [markdown]
# **In 2025**, large language models are still trained in this way first. Then they learn to follow
# instructions, and to solve tasks by trial and reward.

# %% [markdown]
# ## Summary
#
# - A GPT learns to predict the next token of a text, so its training data are windows without padding.
# - Each window of T + 1 tokens trains T predictions at once, because the mask is causal.
# - A GPT is the decoder without encoder-decoder attention: embedding, blocks, a norm, and a linear layer.
# - Before training, the loss is about ln V; the unigram and the bigram model show what is easy to learn.
# - Bits per character are the loss divided by ln 2 and by the characters per token; they can be compared
#   between models with different tokens.

# %% [markdown]
# ## Questions
#
# **Question.** The loss of a window contains its first prediction, which has only one character of context.
# How does a longer context change the mean loss?
#
# <details><summary>Answer</summary>
# A longer context lowers the mean loss. The first predictions of each window are poor, and in longer windows
# they are a smaller share of all predictions. This is one reason why losses with different contexts cannot be
# compared directly.
# </details>
#
# **Question.** Why may validation read the text in windows that follow each other, while training draws them
# at random places?
#
# <details><summary>Answer</summary>
# Validation must predict each character once, and give the same result in every call. Random places in
# training give different windows in each step, and so each character occurs at all positions of a window.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 24` lists the exercises of this chapter.
#
# - `npformer exercise start windows`: cut windows and their targets from a text.
# - After the training above, follow a GPT from its tokens to its loss: run
#   `npformer explore --model runs/gpt-shakespeare "To be, or not to be" --open`, and replace the end of the
#   address, from `#` on, by `#step=layers.0.self_attention.attention.scores`.
#
# **Next**: lesson 24.2 (`24_2_sampling`), which chooses the next token from the probabilities.

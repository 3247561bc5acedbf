# %% [markdown]
# # 10.3 · The whole encoder
#
# *About 25 minutes. You need: an encoder layer, forward and backward (lessons 10.1, `10_1_one_encoder_layer`,
# and 10.2, `10_2_the_backward_pass_of_an_encoder_layer`), padding masks (lesson 6.1, `06_1_masks`).*
#
# **After this lesson you can**
#
# - stack encoder layers, forward and backward;
# - test that padding changes neither the vectors of the tokens nor their gradients;
# - compute the number of parameters of a layer and of the encoder.
#
# `model: ids → embedding → positions → [ENCODER] → decoder → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.checking import gradcheck
from npformer.functional.masks import padding_mask
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.transformer import Encoder, EncoderLayer, TransformerConfig
from npformer.nn import Context, InputEmbedding
from npformer.nn.module import Module
from npformer.plots import cell_grid

rng = np.random.default_rng(10)

# %% [markdown]
# We use two sentences, "the animal was too tired" and "it slept". The shorter one is padded with the id 0.
# Embedding and positions are those of lessons 2.1 (`02_1_embeddings`) and 3.1 (`03_1_positions`).

# %%
ids = np.array([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])  # (B, S)
embed = InputEmbedding(8, 12, 5, rng=rng, dtype=np.float64)
x, _ = embed.forward(ids)  # (B, S, D)
mask = padding_mask(ids)  # (B, 1, 1, S): no token attends to padding
dy = rng.standard_normal(x.shape)  # (B, S, D)
config = TransformerConfig(d_model=12, d_ff=20, n_heads=3, n_layers=2, dropout=0.0)

# %% [markdown]
# ## The stack
#
# The encoder is a **stack** of N layers. The output of each layer is the input of the next one, and all
# layers use the same mask:

# %% tags=["plot"]
figure = shape_flow(
    "ids . x x1 memory \n . mask . . .",
    {
        "x": "embedding: ids",
        "mask": "≠ 0: ids",
        "x1": "layer 0: x mask",
        "memory": "layer 1: x1 mask",
    },
    {"ids": "B S", "x": "S D", "mask": "1 S", "x1": "S D", "memory": "S D"},
)
caption = "A stack of two layers, for one sentence: both use the same mask"
show_figure(figure, "10_3_shapes", caption)

# %% [markdown]
# In the paper, the output of the last layer is the output of the encoder. If the norm stands before each
# sublayer (`norm="pre"`), one more norm follows at the end (lesson 8.4, `08_4_norm_before_or_after`). The
# output of the encoder is called the **memory**.
#
# The backward pass goes through the layers from the last to the first. The $dx$ of each layer is the $dy$
# of the layer below it.

# %%
encoder = Encoder(config, rng=rng, dtype=np.float64)
below, caches = x, []
for one in encoder.layers:
    below, cache = one.forward(below, mask)
    caches.append(cache)
dbelow = dy
for one, cache in zip(encoder.layers[::-1], caches[::-1], strict=True):
    dbelow = one.backward(dbelow, cache)

memory, encoder_cache = encoder.forward(x, mask)  # (B, S, D)
weights = encoder_cache.layers[1].self_attention.attention.weights  # (B, H, S, S)
print("memory", memory.shape)
print("encoder_cache.layers[1].self_attention.attention.weights", weights.shape)

# %% tags=["check"]
assert_allclose(below, memory, rtol=1e-12)
assert_allclose(dbelow, encoder.backward(dy, encoder_cache), rtol=1e-12)

# %% [markdown]
# ## Padding does not change the result
#
# "it slept" is in a batch with a longer sentence, so it has three tokens of padding. If the mask works, the
# two vectors of this sentence must be the same as without padding. We test this by encoding the sentence
# alone.
#
# The gradient must satisfy a similar condition. The decoder has the same mask and does not attend to
# padding. So the gradient that the encoder receives at padding is 0. Then the gradient of the encoder's
# input must be 0 at padding too.

# %%
alone, _ = encoder.forward(x[1:, :2])  # without padding, without a mask
unmasked, _ = encoder.forward(x)  # with padding, without a mask
print("in the batch, with mask:    difference", abs(memory[1, :2] - alone[0]).max())
print("in the batch, without mask: difference", abs(unmasked[1, :2] - alone[0]).max())

real = (ids > 0)[..., None]  # (B, S, 1)
dx = encoder.backward(dy * real, encoder_cache)
print("any gradient at the padding:", dx[1, 2:].any(), "  at the two tokens:", dx[1, :2].any())

# %% tags=["check"]
assert_allclose(memory[1, :2], alone[0], rtol=1e-9, atol=1e-12)
assert not dx[1, 2:].any()

# %% tags=["plot"]
lengths = np.linalg.norm(dx, axis=-1)  # (B, S)
figure = cell_grid(lengths, rows=["sentence 0", "sentence 1"], numbers=True, shade=True)
caption = "The length of the gradient at each token: it is 0 at the padding"
show_figure(figure, "10_padding", caption)

# %% [markdown]
# The encoder also computes vectors for the padding itself, in each layer. They have no meaning, and no
# token of the sentence attends to them.
#
# ## Check the gradient
#
# We check a whole layer with a mask and with dropout. At each evaluation the dropout masks are drawn from
# the same seed, 7, so that all evaluations use the same function.

# %%
dropping = config.replace(dropout=0.2, attention_dropout=0.2)
report = gradcheck(EncoderLayer(dropping, dtype=np.float64), x, mask=mask, train=True, rng=7)
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# Then we check everything from the ids to the memory: embedding, positions and two layers. We do this with
# the norm after each sublayer ("post") and before it ("pre"). The table would be long, so we print only the
# row with the largest error.

# %%


class FromIds(Module):
    """Compute memory = encoder(embedding(ids)), with the mask of the ids."""

    def __init__(self, config, vocab_size, length, rng=None):
        settings = {"dropout": config.dropout, "rng": rng, "dtype": np.float64}
        self.embed = InputEmbedding(vocab_size, config.d_model, length, **settings)
        self.encoder = Encoder(config, rng=rng, dtype=np.float64)

    def forward(self, ids, *, train=False, rng=None):
        context = Context(train, rng)
        x, embedded = self.embed.forward(ids, context)
        memory, cache = self.encoder.forward(x, padding_mask(ids), context)
        return memory, (embedded, cache)

    def backward(self, dmemory, caches):
        self.embed.backward(self.encoder.backward(dmemory, caches[1]), caches[0])


# %% tags=["check"]
for norm in ("post", "pre"):
    model = FromIds(dropping.replace(norm=norm, final_norm=norm == "pre"), 8, 5)
    report = gradcheck(model, ids, train=True, rng=7)
    assert report.ok
    worst = report.worst
    print(f"{norm}: {len(report.rows)} rows; largest error {worst.error:.0e}, in {worst.tensor}")

# %% [markdown]
# ## How many parameters?
#
# The paper uses D = 512 and F = 2048. With biases everywhere, one layer has these parameters:
#
# | part | parameters | number |
# |---|---|---|
# | attention | 4 (D² + D) | 1,050,624 |
# | feed-forward | 2 D F + F + D | 2,099,712 |
# | two norms | 4 D | 2,048 |
# | one layer | | 3,152,384 |
#
# Two thirds of the parameters belong to the feed-forward network. The number of heads does not occur in the
# formulas, because H heads have the width D/H each. The length of the sentence does not occur either. Six
# layers have 18,914,304 parameters.
#
# The cell also counts two other configurations (presets), with slightly fewer parameters. The preset of
# *一步步解析Attention is All You Need!* has no $W^O$, and the preset of the paper has no biases in attention.

# %%
base = EncoderLayer(TransformerConfig(dropout=0.0), dtype=np.float32)
counts = {name: part.count_parameters() for name, part in base.children()}
for name, number in counts.items():
    print(f"{name:24}{number:12,}")
presets = {}
for preset in ("jianshu-demo", "paper-base"):
    one = EncoderLayer(TransformerConfig.architecture(preset), dtype=np.float32)
    presets[preset] = one.count_parameters()
    print(f"preset {preset:17}{presets[preset]:12,}")

# %% tags=["check"]
assert counts["self_attention"] == 4 * (512**2 + 512) == 1_050_624
assert counts["feed_forward"] == 512 * 2048 + 2048 + 2048 * 512 + 512 == 2_099_712
assert base.count_parameters() == 3_152_384
assert 6 * base.count_parameters() == 18_914_304
assert_allclose(counts["feed_forward"] / base.count_parameters(), 2 / 3, atol=0.01)
assert presets == {"jianshu-demo": 2_889_728, "paper-base": 3_150_336}

# %% [markdown]
# **Your turn.** In the terminal, look at the weights of the second layer for the padded sentence with
# `!weights[1, 0].round(2)`. Which columns are 0?

# %% [markdown]
# ## What the source documents say
#
# > - **The parts of a layer.** *一步步解析Attention is All You Need!* has no $W^O$ in its code, although
# >   its text and figure have it. So its layer lacks 512² + 512 numbers and has 2,889,728 in the paper's
# >   sizes. Its feed-forward network consists of two convolutions of width 1, which is the same (lesson 9.3,
# >   `09_3_a_memory_and_a_convolution`). Residual connection and norm are inside each function.
# > - **The norm.** *Attention机制详解（二）* quotes an encoder with the norm before each sublayer and one
# >   more at the end. The other documents have the norm after each sublayer. The gradient check above passes
# >   with both.
# > - **Biases.** We count biases everywhere. The paper's formulas have none in attention, which gives
# >   3,150,336 parameters for each layer.
# > - **The mask.** *The components of the Transformer* gives one mask to every layer, as here. *一步步解析*
# >   computes it again in each layer from sums of vectors. Lesson 6.4
# >   (`06_4_query_masks_and_masks_from_vectors`) shows how this fails.

# %% [markdown]
# ## Summary
#
# - The encoder is a stack of N layers with the same structure and different parameters.
# - Backward, the $dx$ of each layer is the $dy$ of the layer below it.
# - With a mask, padding changes neither the vectors of the tokens nor their gradients.
# - A layer of the paper has 3,152,384 parameters, and two thirds of them are in the feed-forward network.
# - The number does not depend on the number of heads or on the length of the sentence.

# %% [markdown]
# ## Questions
#
# **Question.** In a wrong backward pass of the encoder, the loop over the layers ends too early and leaves
# out layer 0. Would a gradient check of a single encoder layer find this? Would a check of the whole encoder?
#
# <details><summary>Answer</summary>
# The check of a single layer does not contain the loop over the layers, so it cannot find the mistake. The
# check of an encoder with two layers finds it, because the gradients of layer 0 are wrong.
# </details>
#
# **Question.** By which factor does the number of parameters of a layer grow if D and F are doubled?
#
# <details><summary>Answer</summary>
# Almost by 4. The matrices have D² and D F entries, which become four times as many. Only the biases and the
# norms, which are few, are doubled.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 10` lists the exercises of this chapter.
#
# - `npformer exercise start encoder-backward`: write the backward pass of N encoder layers, from the last
#   layer to the first. There may be a norm after the last layer.
# - By hand: 4 · 512 of the 3,152,384 parameters of a layer are the biases of attention. Which 512 of them
#   could be left out without any change of the output, whatever their values are?
# - Follow the output of a real encoder: run `npformer explore --model en-de "A dog runs." --open`, and
#   replace the end of the address, from `#` on, by `#step=encoder.norm.y`.
#
# **Next**: lesson 10.4 (`10_4_why_self_attention`), self-attention compared with other layers.

# %% [markdown]
# # 11.1 · The decoder and teacher forcing
#
# *About 30 minutes. You need: masks (lesson 6.1, `06_1_masks`), the encoder layer (lesson 10.1,
# `10_1_one_encoder_layer`).*
#
# **After this lesson you can**
#
# - explain how a decoder can be trained on all positions at once without seeing the answers;
# - show that one pass with teacher forcing is equal to many passes, one for each token;
# - find out with a test whether a decoder sees tokens that it has to predict.
#
# `model: ids → embedding → positions → encoder → [DECODER] → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig, assert_no_leak
from npformer.functional.attention import attention
from npformer.functional.masks import causal_mask, padding_mask
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.models.transformer import shifted_right
from npformer.models.transformer.model import TransformerCache
from npformer.plots import Step, attention_map, gradient_flow, mask_map

# %% [markdown]
# ## What the decoder does
#
# The encoder has turned the source sentence into one vector for each token. Its output is called the
# **memory**. The **decoder** reads the memory and writes the translation, one token after the other. Before
# each token it knows the source and the tokens that it has written so far.
#
# A decoder layer has three sublayers, one after the other. The picture shows one layer, with S source tokens,
# T target tokens and vectors of length D. The sum and the norm after each sublayer are left out.

# %% tags=["plot"]
same = np.random.default_rng(0)
x, memory = same.standard_normal((4, 3)), same.standard_normal((5, 3))  # (T, D), (S, D)
x1, _ = attention(x, x, x, causal_mask(4, x))
x2, _ = attention(x1, memory, memory)
x3 = np.maximum(0, x2 @ same.standard_normal((3, 8))) @ same.standard_normal((8, 3))
steps = {
    "x1": Step("self-attention", ["x"]),
    "x2": Step("cross-attention", ["x1", "memory"]),
    "x3": Step("feed-forward", ["x2"]),
}
arrays = {"x": x, "x1": x1, "memory": memory, "x2": x2, "x3": x3}
axes = dict.fromkeys(arrays, "T D") | {"memory": "S D"}
figure = gradient_flow("x x1 x2 x3 \n . memory . .", arrays, steps, axes=axes)
show_figure(figure, "11_1_layer", "A decoder layer: the memory enters its second sublayer")

# %% [markdown]
# 1. **Masked self-attention** among the target tokens.
# 2. **Encoder-decoder attention**, or cross-attention: its queries come from the decoder, and its keys and
#    values from the memory.
# 3. The feed-forward network of chapter 9.

# %% [markdown]
# There is a difficulty. During training, all positions of the decoder are computed at once, from a sentence
# that contains the answers.
#
# **Question.** What would a decoder learn if it could read the answers?
#
# <details><summary>Answer</summary>
# It would learn to copy them. This gives a very low loss, but it is useless for translation, where there
# are no answers to copy.
# </details>
#
# How do we prevent the decoder from reading the answers? This lesson answers the question.
#
# ## Shifted right
#
# Section 3.1 of *Attention Is All You Need* says about the decoder's self-attention:
#
# > This masking, combined with fact that the output embeddings are offset by one position, ensures that the
# > predictions for position i can depend only on the known outputs at positions less than i.
#
# So there are two measures: a mask, and an offset by one position.
#
# **Question.** A causal mask lets position $t$ attend to the inputs 0 to $t$. Let $y$ be the target sentence,
# and suppose that the decoder's input is $y$ itself, without an offset. What can position $t$ see?
#
# <details><summary>Answer</summary>
# It can see $y_t$, the token that it has to predict.
# </details>

# %% [markdown]
# To find the right offset, we write down what is to be predicted. The model should give the probability of a
# whole translation $y$ of a source sentence. The chain rule of probability (not that of derivatives) writes
# it as a product with one factor for each token. The bar means "given". The source sentence is given in each
# factor, too, and we leave it out:
#
# $$\begin{aligned}
# p(y) &= p(y_0) \cdot p(y_1 \mid y_0) \cdot p(y_2 \mid y_0, y_1) \cdots \\
# &= \prod_t p(y_t \mid y_0, \ldots, y_{t-1})
# \end{aligned}$$
#
# Factor $t$ needs the tokens $y_0, \ldots, y_{t-1}$, and it must not use $y_t$. Now recall the causal mask of
# lesson 6.1. Position $t$ may attend to the inputs 0 to $t$, including its own. So input $t$ must be
# $y_{t-1}$, the last token that position $t$ may know. In other words, every token of $y$ moves **one place
# to the right**. Position 0 becomes free, and a **start symbol** is put there.

# %%
vocabulary = ["<PAD>", "<UNK>", "<S>", "</S>", "i", "am", "a", "student"]
y = np.array([[4, 5, 6, 7, 3]])  # (B, T) the wanted output of the decoder
target_in = shifted_right(y, 2)  # (B, T) its input; 2 is the start symbol <S>
may_attend = causal_mask(5, y)  # (T, T)

reads, says = ([vocabulary[i] for i in row] for row in (target_in[0], y[0]))
for t in range(5):
    print(f"position {t}   may attend to  {' '.join(reads[: t + 1]):22} must predict  {says[t]}")

# %% tags=["check"]
assert target_in[0].tolist() == [2, *y[0, :-1]]

# %% [markdown]
# The demo of *一步步解析Attention is All You Need!* does the same. The input of its decoder is
# `[2, y[:-1]]`, where 2 is the start symbol. The figure shows the mask and the shift together.

# %% tags=["plot"]
figure = mask_map(may_attend, [f"predicts {token}" for token in says], reads)
caption = "With shift and mask, no row can attend to the token that it has to predict"
show_figure(figure, "11_reads", caption)

# %% tags=["plot"]
run = running_example()
own = run.values["decoder.0.self_attention.attention.softmax"].mean(0)  # (T, T)
figure = attention_map(own, [f"predicts {token}" for token in run.predicted], run.target)
caption = "Our sentence in the translator: the decoder's self-attention, the mean of four heads"
show_figure(figure, "11_1_running", caption)

# %% [markdown]
# ## Teacher forcing: T predictions in one pass
#
# When the model translates, input $t$ is the token that the model itself has chosen at position $t - 1$. So
# a translation of T tokens needs T passes, one after the other.
#
# During training we do not wait for the model's choice. Input $t$ is always the *correct* token, whatever
# the model would have chosen. This is called **teacher forcing**. All inputs are known beforehand, so a
# single pass gives T predictions and T losses.
#
# Does this single pass give the same numbers as T passes? Yes. In a decoder with a causal mask, the output at
# position $t$ does not depend on later inputs. So it is the same as in a pass over the first $t + 1$ inputs
# alone. The cell tests this.

# %%
source = np.array([[4, 5, 6, 3]])  # (B, S) je suis étudiant </S>
tiny = TransformerConfig(9, 9, d_model=8, d_ff=12, n_heads=2, n_layers=2, dropout=0.0)
model = Transformer(tiny, rng=np.random.default_rng(0), dtype=np.float64)
logits, _ = model.forward(source, target_in)  # (B, T, V) a score for each of V tokens
computed, difference = 0, 0.0
for t in range(5):
    alone, _ = model.forward(source, target_in[:, : t + 1])  # (B, t + 1, V)
    difference = max(difference, abs(alone[:, t] - logits[:, t]).max())
    computed += alone.shape[1]
print(f"five passes: {computed} positions; one pass: 5 positions; difference {difference:.0e}")

# %% tags=["check"]
assert_allclose(difference, 0, atol=1e-9)

# %% [markdown]
# **Question.** Five passes compute 1 + 2 + 3 + 4 + 5 = 15 positions. How many positions are computed for a
# sentence of T tokens?
#
# <details><summary>Answer</summary>
# T (T + 1) / 2, against T positions with teacher forcing. Lesson 14.4 (`14_4_the_kv_cache`) shows how
# translation can avoid this.
# </details>
#
# ## Both are needed
#
# We now see what happens if the shift or the mask is missing. For this we need a forward pass in which
# the causal mask can be switched off. The next cell contains `model.forward` line by line, with such a
# switch. The encoder has no causal mask, because the whole source is known. Only its padding is masked.

# %%


def run(model, source, target_in, causal=True):
    """Compute model.forward; causal=False leaves the causal mask out."""
    source_mask = padding_mask(source)  # (B, 1, 1, S)
    mask = padding_mask(target_in)  # (B, 1, 1, T)
    if causal:
        mask = mask & causal_mask(target_in.shape[1], target_in)  # (B, 1, T, T)
    x, of_source = model.source.forward(source)  # (B, S, D)
    memory, of_encoder = model.encoder.forward(x, source_mask)  # (B, S, D)
    x, of_target = model.target.forward(target_in)  # (B, T, D)
    x, of_decoder = model.decoder.forward(x, memory, mask, source_mask)  # (B, T, D)
    logits, of_output = model.output.forward(x)  # (B, T, V)
    parts = (of_source, of_encoder, of_target, of_decoder, of_output)
    return logits, TransformerCache(*parts, packings=(None, None))  # one sentence in a row


difference = abs(run(model, source, target_in)[0] - logits).max()
print("largest difference from the package:", difference)

# %% tags=["check"]
assert_allclose(run(model, source, target_in)[0], logits, rtol=1e-12)

# %% [markdown]
# If an output can depend on the token that it has to predict, we speak of a **leak**. A leak can be found
# without any training. The model's outputs are called **logits**: a row of scores for each position (chapter
# 12). We replace token $s$ of $y$, and see which rows differ. Row $t$ predicts $y_t$, so it may differ only
# if $s < t$. The function `assert_no_leak` does this for every $s$. It compares the outputs bit by bit.

# %%
variants = {
    "shift and mask": (True, True),
    "mask, no shift": (False, True),
    "shift, no mask": (True, False),
}
before = np.tri(5, k=-1, dtype=bool)  # (T, T) True where s < t


def leak(shift, masked):
    def forward(y):
        return run(model, source, shifted_right(y, 2) if shift else y, masked)

    try:
        assert_no_leak(forward, y, before)
    except AssertionError as error:
        return str(error).split(",")[0]
    return "no leak"


for name, variant in variants.items():
    print(f"{name}: {leak(*variant)}")

# %% tags=["check"]
for variant in variants.values():
    expected = "no leak" if all(variant) else "output 0 moves when token 0 changes"
    assert leak(*variant) == expected

# %% [markdown]
# Only the variant with both measures has no leak. Without the shift, position $t$ *reads* $y_t$ as its own
# input. Without the mask, position $t$ can attend to position $t + 1$, whose input is $y_t$.

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* lets self-attention see only tokens *before* the current position. This is true for
# >   the tokens of y. But the inputs are shifted, and a position does see its own input.
# > - *一步步解析Attention is All You Need!* says that at time i there are results only for positions smaller
# >   than i. Its code also allows position i itself. This agrees with the text, because the code's inputs are
# >   shifted.
# > - *The components of the Transformer* shows no shift. Its decoder takes two masks, `mask_1` for
# >   self-attention and `mask_2` for the memory. They correspond to our `mask` and `source_mask`, but a 1
# >   means "may *not* attend".

# %% [markdown]
# ## Summary
#
# - A decoder layer has masked self-attention, encoder-decoder attention and a feed-forward network.
# - The decoder's input is the target, shifted right by one place, with a start symbol in front.
# - With the shift and the causal mask, no position can attend to the token that it has to predict.
# - With teacher forcing, all inputs are the correct tokens, so one pass gives the same T predictions as T
#   passes.
# - If the shift or the mask is missing, there is a leak. The leak test finds it without training.

# %% [markdown]
# ## Questions
#
# **Question.** A decoder with the causal mask reads `<S> i am a`. Which token must position 2 predict, and on
# which tokens of the target does its output depend?
#
# <details><summary>Answer</summary>
# The inputs 0, 1 and 2 are `<S>`, "i" and "am". Position 2 must predict "a". Its output depends on these
# three inputs, so on the target's tokens "i" and "am".
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` lists the exercises of this chapter. Each is graded by comparison with the
# package or by the gradient checker.
#
# - `npformer exercise start shift-right`: shift the target to the right: add one column in front, and leave
#   out the last one.
# - By hand: T = 2, the input is shifted, and there is no mask. Which of the four weights of the decoder's
#   self-attention lets a position read its own target token?
#
# **Next** on the main route: lesson 11.3 (`11_3_encoder_decoder_attention`), how the source enters the
# decoder. Off the route: lesson 11.2 (`11_2_what_a_leak_does_to_training`), models that are trained with a
# leak.

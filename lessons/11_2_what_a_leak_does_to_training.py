# %% [markdown]
# # 11.2 · What a leak does to training
#
# *About 30 minutes. You need: the shift, the causal mask and the leak test (lesson 11.1,
# `11_1_the_decoder_and_teacher_forcing`).*
#
# **After this lesson you can**
#
# - say why a decoder with a leak has a low loss and makes useless translations;
# - test what such a model has learned;
# - read the attention weights of a decoder that has learned its task.
#
# `model: ids → embedding → positions → encoder → [DECODER] → linear → softmax`

# %%
import numpy as np
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig
from npformer import functional as F
from npformer.data.dataset import reverse_task
from npformer.data.loader import make_batch
from npformer.functional.masks import causal_mask, padding_mask
from npformer.generation import greedy
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.transformer.model import TransformerCache
from npformer.plots import attention_grid, curves
from npformer.training.optimizer import Adam, cosine

rng = np.random.default_rng(11)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Three variants of the decoder
#
# A decoder is protected against leaks by two measures: its input is shifted right by one place, and its
# self-attention has a causal mask. The function `run` is that of lesson 11.1. It computes the forward pass of
# a Transformer, and it can leave the causal mask out:

# %% tags=["plot"]
figure = shape_flow(
    "source memory logits \n target_in x . \n . mask .",
    {
        "memory": "encoder: source",
        "x": "embedding: target_in",
        "logits": "decoder: memory x mask",
    },
    {
        "source": "B S",
        "memory": "S D",
        "target_in": "B T",
        "x": "T D",
        "mask": "T T",
        "logits": "T V",
    },
)
caption = "The mask is the padding mask, with or without the causal mask"
show_figure(figure, "11_2_shapes", caption)

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
    return logits, TransformerCache(*parts, packings=(None, None))  # nothing is packed here


variants = {  # with the shift, with the mask
    "shift and mask": (True, True),
    "mask, no shift": (False, True),
    "shift, no mask": (True, False),
}

# %% [markdown]
# ## What a leak does to training
#
# The two variants with a leak can see the answers during training. Do they learn anything useful?
#
# We use a language that can be learned in a second. A sentence has one to four letters, and its translation
# consists of the same letters in reverse order. Three models start from the same weights and see the same
# batches. Each of them uses one of the three variants. The loss is the cross-entropy (lesson 12.1,
# `12_1_the_cross_entropy`), and Adam is an optimizer (lesson 13.2, `13_2_adam`). Here you can take both as
# given.

# %%
pairs = {tuple(s): (s, t) for s, t in reverse_task(3000, length=4, vocab=10, rng=rng)}
pairs = list(pairs.values())  # each sentence once
held_out, known = pairs[:100], pairs[100:]
test = make_batch(held_out)  # source (B, S), target_in and target_out (B, T)
small = TransformerConfig(10, 10, d_model=24, d_ff=48, n_heads=2, n_layers=1, dropout=0.0)


def loss_of(model, batch, shift, masked):
    read = batch.target_in if shift else batch.target_out  # (B, T)
    logits, cache = run(model, batch.source, read, masked)
    loss, loss_cache = F.cross_entropy(logits, batch.target_out, pad_id=0)
    return loss, loss_cache, cache


# %%
def learn(variant, start=1, steps=250):
    """Return a trained model and the loss of each step."""
    model, draw = Transformer(small, rng=np.random.default_rng(start)), np.random.default_rng(2)
    adam, rate, losses = Adam(model), cosine(0.02, steps, 20), np.zeros(steps)
    for step in range(steps):
        batch = make_batch([known[i] for i in draw.integers(0, len(known), 64)])
        losses[step], loss_cache, cache = loss_of(model, batch, *variant)
        model.zero_grad()
        model.backward(F.cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(rate(step + 1))
    return model, losses


# %% [markdown]
# The **held-out** sentences are not used for training. For each model we compute the loss on them. Then the
# model translates them token by token (`greedy`, lesson 14.1, `14_1_greedy_search_and_beam_search`), and we
# count the correct translations.
#
# **Question.** Which of the three models will have the lowest loss, and which will translate best?
#
# <details><summary>Answer</summary>
# The models that can see the answers have a low loss. But in a translation there are no answers to see. So
# only the model with shift and mask can translate.
# </details>

# %%
letters = ["<PAD>", "<UNK>", "<S>", "</S>", "a", "b", "c", "d", "e", "f"]
four = next(i for i, (s, _) in enumerate(held_out) if len(set(s)) == 4)  # four different letters
models, losses, held_out_loss, right = {}, {}, {}, {}
for name, variant in variants.items():
    models[name], losses[name] = learn(variant)
    held_out_loss[name] = loss_of(models[name], test, *variant)[0]
    said = greedy(models[name], test.source, max_length=6)
    right[name] = np.mean([ids == want for ids, (_, want) in zip(said, held_out, strict=True)])
    asked, answer = ("".join(letters[i] for i in ids) for ids in (held_out[four][0], said[four]))
    score = f"held-out loss {held_out_loss[name]:.4f}, correct {right[name]:4.0%}"
    print(f"{name}: {score}   {asked} → {answer}")

# %% tags=["check"]
others = min(held_out_loss["shift and mask"], held_out_loss["shift, no mask"])
assert held_out_loss["mask, no shift"] < 0.1 * others
assert right["shift and mask"] > 0.6
assert max(right["mask, no shift"], right["shift, no mask"]) < 0.2

# %% tags=["plot"]
steps = np.stack(list(losses.values()))  # (3, 250)
figure = curves(steps, labels=list(variants), ylabel="loss of the step", yscale="log")
caption = "The lowest curve belongs to the model that has learned to copy its input"
show_figure(figure, "11_leaks", caption)

# %% [markdown]
# Without the shift, the loss is by far the lowest, on held-out sentences too. But almost no translation is
# correct, because the model has learned to copy its input. We can show this: if we give it *random*
# letters, it predicts these letters.

# %%
noise = rng.integers(4, 10, (100, 4))  # (B, 4)
copied = (run(models["mask, no shift"], test.source, noise)[0].argmax(-1) == noise).mean()
print(f"no shift: predicts the letter that it reads in {copied:.0%} of all cases")

# %% tags=["check"]
assert copied > 0.95

# %% [markdown]
# The model without the mask is harder to understand. So we train two such models from different initial
# weights and test each of them in three ways:
#
# 1. It reads the correct tokens without the mask, as in its training. How many predictions are right?
# 2. It reads the same tokens, but now with the causal mask. How many predictions are right?
# 3. It reads random letters without the mask. How often does it predict the letter to its right? Six
#    letters are possible, so pure chance would give one in six.
#
# At the end each model translates the held-out sentences.

# %%
real, with_start = test.target_out != 0, np.insert(noise, 0, 2, axis=1)  # (B, T), (B, 5)
results = []
for start in (1, 2):
    model = models["shift, no mask"] if start == 1 else learn((True, False), start)[0]
    both = [run(model, test.source, test.target_in, causal)[0] for causal in (False, True)]
    free, masked = ((z.argmax(-1) == test.target_out)[real].mean() for z in both)
    follows = (run(model, test.source, with_start, False)[0][:, :-1].argmax(-1) == noise).mean()
    said = greedy(model, test.source, max_length=6)
    whole = np.mean([ids == want for ids, (_, want) in zip(said, held_out, strict=True)])
    print(f"no mask, start {start}: right {free:.0%}, with the mask {masked:.0%}", end="; ")
    print(f"letter to its right {follows:.0%}; translated {whole:.0%}")
    results.append((free, masked, whole))

# %% tags=["check"]
for free, masked, whole in results:
    assert masked < free - 0.15
    assert whole < 0.2

# %% [markdown]
# Both models use the tokens to the right of a position. If these tokens are hidden, fewer predictions are
# right. But *how* they use them can differ from one start to the next, as the third number shows. So do not
# draw conclusions about all such models from a single one. During translation there is nothing to the right
# yet, and so both models fail.
#
# **A low loss of a decoder proves nothing by itself.** Translate a sentence, or run the leak test.
#
# What does the correct model attend to? The cell takes the attention weights for one held-out sentence. H
# is the number of heads.

# %%
_, cache = run(models["shift and mask"], test.source[[four]], test.target_in[[four]])
within = cache.decoder[0].self_attention.attention.weights  # (1, H, T, T)
across = cache.decoder[0].cross.attention.weights  # (1, H, T, S)
mirrored = across[0, :, range(4), [3, 2, 1, 0]].mean()  # <S> at the last letter, and so on
print(f"mean weight on the letter to be predicted, four rows and two heads: {mirrored:.2f}")

# %% tags=["plot"]
reads = [letters[i] for i in test.target_in[four]]
keys = [letters[i] for i in test.source[four]]
may_attend = np.tri(5, dtype=bool)  # (T, T)
figure = attention_grid(within, reads, reads, mask=may_attend)
caption = "Self-attention: each position attends to itself and to those before it"
show_figure(figure, "11_self", caption)
figure = attention_grid(across, reads, keys)
caption = "Encoder-decoder attention: each position attends to the letter that comes next"
show_figure(figure, "11_cross", caption)

# %% tags=["check"]
assert (within[..., ~may_attend] == 0).all()
assert mirrored > 0.5

# %% [markdown]
# In the second picture, most of the weight lies on a diagonal from the upper right to the lower left. The
# decoder reads the source from its end to its beginning, as the task requires.
#
# **Your turn.** In the terminal, print attention weights with `!across[0, 0].round(2)`. Then train for 50
# steps only, with `!learn((True, True), steps=50)[1][-1]`, and compare the loss with the figure.

# %% [markdown]
# ## Summary
#
# - A decoder without the shift learns to copy its input. The loss of this decoder is very low, also on
#   held-out sentences.
# - A decoder without the mask uses the tokens to its right, and makes mistakes when they are hidden.
# - Neither of them can translate, because in a translation there are no answers to see.
# - How a model uses a leak can differ from one start of the training to the next.
# - A low loss proves nothing by itself: translate a sentence, or run the leak test.

# %% [markdown]
# ## Questions
#
# **Question.** A decoder has the causal mask but no shift. What does it learn, and which part of the
# training looks good?
#
# <details><summary>Answer</summary>
# It learns to copy its input. The loss is very low, on held-out sentences too.
# </details>
#
# **Question.** A source has 7 tokens, the target has 5 tokens, and there are 2 heads. The decoder has
# two kinds of attention. What are the shapes of their weights, for one sentence?
#
# <details><summary>Answer</summary>
# The weights of the self-attention have the shape (2, 5, 5). Those of the encoder-decoder attention have the
# shape (2, 5, 7).
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` lists the exercises of this chapter, which belong to the other lessons.
#
# - By hand: the source is "abc", and the target is "cba". For each of the three variants, write down the
#   inputs. From which of them can position 1 read its answer "b"?
# - In the terminal, train the model with shift and mask from another start. `!learn((True, True), 3)[1][-1]`
#   prints its last loss. Compare it with `!losses["shift and mask"][-1]`, the loss of start 1.
#
# **Next**: lesson 11.3 (`11_3_encoder_decoder_attention`), how the source enters the decoder.

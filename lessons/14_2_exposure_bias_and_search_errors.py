# %% [markdown]
# # 14.2 · Exposure bias and search errors
#
# *About 30 minutes. You need: teacher forcing (lesson 11.1, `11_1_the_decoder_and_teacher_forcing`), greedy
# search and beam search (lesson 14.1, `14_1_greedy_search_and_beam_search`).*
#
# **After this lesson you can**
#
# - measure how much worse a model becomes when it reads its own output;
# - decide whether a wrong translation is the fault of the search or of the model;
# - explain why a model in training reads the correct tokens, and not its own predictions.
#
# `decoding: encoder → decoder → softmax → [SEARCH] → translation`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import END, PAD, make_batch, pad
from npformer.functional import log_softmax
from npformer.generation import beam_search, greedy
from npformer.learn.course import show_figure
from npformer.learn.course.trained import partly_trained
from npformer.plots import beam_tree, steps_of_trace

threadpool_limits(1, user_api="blas")  # one thread is fastest for small products

# %% [markdown]
# ## A model that makes mistakes
#
# In this lesson we examine mistakes, so we need a model that makes some. The function `partly_trained` trains
# a small translator from French to English. It has one layer on each side, and it makes 400 steps on 2,000
# simple sentences of the built-in corpus. The training is the loop of lesson 13.4 (`13_4_the_training_loop`).
# It stops early on purpose. The test set has 300 other sentences.
#
# The model computes in float64. Then the rounding, which differs between machines, is too small to change a
# translation. So you will see the same sentences as in this text.

# %%
model, fr, en, _, test = partly_trained()
sources, truths = [source for source, _ in test], [truth for _, truth in test]
source = pad([[*ids, END] for ids in sources])  # (B, S)
batch = make_batch(test)
print(f"{len(model.values):,} parameters; source {source.shape}, target {batch.target_in.shape}")

# %% [markdown]
# ## Two ways to use a decoder
#
# In training, the decoder reads the right tokens, and predicts each next one. This is teacher forcing. After
# training it must read its own tokens. The table compares the two.
#
# | | the decoder reads | it predicts |
# |---|---|---|
# | teacher forcing | the right tokens, `<S>` the small donkey drinks | all next tokens at once |
# | decoding | `<S>` and the tokens that it wrote itself | one token, which is then appended |
#
# First we measure the model with teacher forcing. For each token of the test, is the most probable token the
# right one? Then we translate all sentences with greedy search, and count the exact translations.

# %%
logits, _ = model.forward(batch.source, batch.target_in)  # (B, T, V)
real = batch.target_out != PAD  # (B, T)
right = (logits.argmax(-1) == batch.target_out) & real  # (B, T)
all_right = right.sum(1) == real.sum(1)  # (B,)
written = greedy(model, source, max_length=12)
exact = np.array([y == truth for y, truth in zip(written, truths, strict=True)])  # (B,)
print(f"teacher forcing: {right.sum() / real.sum():.1%} of the tokens are right,")
print(f"                 and all tokens of {all_right.sum()} sentences of {len(test)}")
print(f"greedy search:   {exact.sum()} exact translations")

# %% tags=["check"]
assert_allclose(right.sum() / real.sum(), 0.922, atol=0.001)
assert exact.sum() == 186
assert (all_right == exact).all()

# %% [markdown]
# 92.2 % of the tokens are right, but only 186 of 300 sentences. A sentence has about six and a half tokens,
# and a single wrong one makes it wrong.
#
# **Question.** Teacher forcing and greedy search agree about every single sentence: it is right with both, or
# wrong with both. Why must this be so?
#
# <details><summary>Answer</summary>
# As long as all tokens of greedy search are right, they are the same as the right tokens. So the decoder
# reads the same input in both cases, and chooses the same next token. The first mistake therefore happens at
# the same position.
# </details>
#
# ## Exposure bias
#
# So the difference begins after the first mistake. From there on, greedy search reads a prefix with a
# mistake. In training the model never read such a prefix. This difference between training and decoding is
# called **exposure bias**.
#
# We measure it with the sentences that are not exact. We take only the tokens after the first mistake, and
# count how many are right, with teacher forcing and with greedy search.

# %%
forced, own = [], []
for i in np.flatnonzero(~exact):
    truth, output = [*truths[i], END], [*written[i], END]
    output += [PAD] * len(truth)  # if it ended too early
    first = next(t for t in range(len(truth)) if output[t] != truth[t])
    forced += [right[i, t] for t in range(first + 1, len(truth))]
    own += [output[t] == truth[t] for t in range(first + 1, len(truth))]
print(f"right tokens after the first mistake: teacher forcing {np.mean(forced):.2f}", end=", ")
print(f"greedy search {np.mean(own):.2f}")

# %% tags=["check"]
assert_allclose([np.mean(forced), np.mean(own)], [0.90, 0.45], atol=0.006)

# %% [markdown]
# These are the same tokens and the same model. With the right prefix, 90 % of them are right. With its own
# prefix, only 45 % are.
#
# A part of this difference is not a fault of the model. For example, suppose that it wrote "the small milk"
# in place of "the small donkey". Then the next right word, "drinks", no longer fits. The cell shows this
# sentence, with the translations of greedy search and of beam search.

# %%


def log_prob(sources, sentences):
    """Return log p(y | x) of each sentence, as in lesson 14.1. Shape: (B,)."""
    batch = make_batch(list(zip(sources, sentences, strict=True)))
    logp, _ = log_softmax(model.forward(batch.source, batch.target_in)[0])  # (B, T, V)
    of_tokens = np.take_along_axis(logp, batch.target_out[..., None], -1)[..., 0]  # (B, T)
    return np.where(batch.target_out != PAD, of_tokens, 0).sum(1)


french = [" ".join(fr.decode(ids)) for ids in sources]
line = french.index("le petit âne boit cette eau")
trace = []
best = beam_search(model, source[line : line + 1], beam=2, length_penalty=0.0, trace=trace)[0][0]
print("source     " + french[line])
for name, ids in (("reference", truths[line]), ("greedy", written[line]), ("beam 2", best.ids)):
    words = " ".join(en.decode(ids))
    print(f"{name:10} {words:36} log p {log_prob([sources[line]], [ids])[0]:.2f}")

# %% tags=["check"]
assert best.ids == truths[line] != written[line]

# %% tags=["plot"]
figure = beam_tree(steps_of_trace(trace[0], en.words, END), start="<S>")
caption = "“milk” is the more probable token, and “donkey” leads to the more probable sentence"
show_figure(figure, "14_tree", caption)

# %% [markdown]
# The third word makes the difference. "milk" is a little more probable there, so greedy search chooses it.
# But beam search with k = 2 also keeps "donkey", which leads to the more probable sentence.
#
# ## Search errors and model errors
#
# Would a larger beam repair all mistakes? To find out, we compare the probability of the wrong translation
# with that of the right one, the **reference**. Both probabilities come from the same model. There are two
# cases:
#
# - The reference is *more* probable. Then the model prefers the right sentence, but the search did not find
#   it. This is a **search error**.
# - The reference is *less* probable. Then the model prefers a wrong sentence. A better search does not help.
#   This is a **model error**.

# %% [markdown]
# The cell counts both kinds for four beam sizes. It also prints two means over all sentences, of log p and of
# the number of words.

# %%
of_reference = log_prob(sources, truths)  # (B,)
rows, is_wrong, search_error = {}, {}, {}
print("beam size   exact   search errors   model errors   mean log p   mean words")
for k in (1, 2, 4, 8):
    lists = beam_search(model, source, beam=k, length_penalty=0.0, max_length=12)
    ids = [hypotheses[0].ids for hypotheses in lists]
    of_found = log_prob(sources, ids)  # (B,)
    is_wrong[k] = wrong = np.array([y != truth for y, truth in zip(ids, truths, strict=True)])
    search_error[k] = wrong & (of_reference > of_found)  # (B,)
    rows[k] = (300 - wrong.sum(), search_error[k].sum(), (wrong & ~search_error[k]).sum())
    rows[k] += (of_found.mean(), np.mean([len(y) for y in ids]))
    print("{:9} {:7} {:15} {:14} {:12.3f} {:12.2f}".format(k, *rows[k]))
length = real.sum(1).mean() - 1  # without the end token
print("reference".ljust(48), f"{of_reference.mean():12.3f} {length:12.2f}")

# %% tags=["check"]
assert_allclose(rows[1], [186, 6, 108, -0.822, 5.46], atol=0.001)
assert_allclose(rows[2], [189, 1, 110, -0.794, 5.407], atol=0.001)
assert_allclose(rows[4], [189, 0, 111, -0.784, 5.403], atol=0.001)
assert_allclose(rows[8], [189, 0, 111, -0.783, 5.39], atol=0.001)
assert_allclose([of_reference.mean(), length], [-2.355, 5.547], atol=0.001)
assert (search_error[1] & ~is_wrong[4]).sum() == 3
assert (search_error[1] & is_wrong[4]).sum() == 3
assert not (~is_wrong[1] & is_wrong[4]).any()

# %% [markdown]
# With a beam size of 4, all six search errors of greedy search have disappeared. Three of these sentences are
# now right. In the other three, the search found another wrong sentence, which is even more probable than the
# reference. So these have become model errors.
#
# From 4 to 8, nothing improves. All 111 remaining mistakes are model errors. On average, the results of beam
# size 4 have log p = −.784, and the references only −2.355. Better training would help here, not a better
# search.
#
# The count has a limit. It finds a search error only if the search missed the *reference*. The search may
# also have missed a wrong sentence with an even higher probability.

# %% [markdown]
# **Question.** The last column shows that the translations become shorter when the beam size grows. Do you
# have an explanation?
#
# <details><summary>Answer</summary>
# Each further token multiplies the probability by a number below 1. So short sentences have an advantage, and
# a better search finds them more often. Lesson 14.3 (`14_3_length_normalization`) treats this problem.
# </details>
#
# ## Why not train with the model's own output?
#
# To avoid exposure bias, one could let the model write a sentence in training, and compare it with the
# reference. But the choice of a token is an argmax. When a parameter changes a little, the same token is
# chosen. So the derivative of the chosen token is 0 almost everywhere. At the few places where the choice
# changes, the derivative does not exist. Hence there is no useful gradient.
#
# The cell changes every parameter by ±h, with random signs, and counts the translations that change.

# %%
kept = model.values.copy()
direction = np.random.default_rng(2).integers(0, 2, len(kept)) * 2.0 - 1  # ±1
changed = []
for h in (1e-8, 1e-4, 1e-2):
    model.values[...] = kept + h * direction
    moved = greedy(model, source, max_length=12)
    changed.append(sum(a != b for a, b in zip(moved, written, strict=True)))
    print(f"every parameter changed by {h:.0e}: {changed[-1]} of 300 translations change")
model.values[...] = kept

# %% tags=["check"]
assert changed[0] == 0 < changed[2]

# %% [markdown]
# After the smallest change, no translation is different. For this reason one trains with −log p of the right
# tokens, which has a derivative. The gradient check confirms it for the trained model and two sentences.

# %%
two = [ids[:2] for ids in batch]  # source, target_in, target_out of two sentences
report = gradcheck(ModelWithLoss(model), *two, name="trained model")
print(f"{len(report.rows)} rows, the largest error {report.worst.error:.0e}")

# %% tags=["check"]
assert report.ok

# %% [markdown]
# **Your turn.** In the terminal, print what greedy search wrote for the first sentences of the test, for
# example with `!" ".join(en.decode(written[0]))`.

# %% [markdown]
# ## Summary
#
# - With teacher forcing the decoder reads the right tokens; in decoding it reads its own tokens.
# - Exposure bias: after a mistake, the decoder reads a prefix of a kind that it never read in training.
# - A search error: the reference is more probable than the result, so the search missed a better sentence.
# - A model error: the reference is less probable than the wrong result, so a better search does not help.
# - The chosen tokens have no useful gradient, so training uses the log-probability of the right tokens.

# %% [markdown]
# ## Questions
#
# **Question.** A translation is wrong. Its log p is −3.1, and that of the reference is −2.4. What kind of
# error is it, and what would you try first?
#
# <details><summary>Answer</summary>
# The reference is more probable, so it is a search error. A larger beam may find the reference.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 14` lists the exercises of this chapter. This lesson has one to do by hand:
#
# - By hand: a model chooses each token correctly with the probability .95, independently of the others. What
#   share of the sentences with ten tokens is exact?
#
# **Next**: lesson 14.3 (`14_3_length_normalization`), on the length of translations.

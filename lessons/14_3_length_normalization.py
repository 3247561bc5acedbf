# %% [markdown]
# # 14.3 · Length normalization
#
# *About 25 minutes. You need: beam search (lesson 14.1, `14_1_greedy_search_and_beam_search`), search errors
# and model errors (lesson 14.2, `14_2_exposure_bias_and_search_errors`).*
#
# **After this lesson you can**
#
# - explain why the most probable translation is often too short;
# - compute the score with length normalization, and choose its exponent by an experiment.
#
# `decoding: encoder → decoder → softmax → [SEARCH] → translation`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer.data import END, PAD, make_batch, pad
from npformer.functional import log_softmax
from npformer.generation import beam_search
from npformer.generation.beam import length_norm
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import partly_trained
from npformer.plots import curves

threadpool_limits(1, user_api="blas")  # one thread is fastest for small products

# %% [markdown]
# ## Better search, shorter translations
#
# In lesson 14.2 the translations became shorter when the beam size grew. We repeat this measurement with the
# same model, a small translator from French to English. The function `log_prob` computes log p of complete
# sentences, as in lesson 14.1.

# %%
model, fr, en, _, test = partly_trained()
sources, truths = [source for source, _ in test], [truth for _, truth in test]
source = pad([[*ids, END] for ids in sources])  # (B, S)


def log_prob(sources, sentences):
    """Return log p(y | x) of each sentence, the end token included. Shape: (B,)."""
    batch = make_batch(list(zip(sources, sentences, strict=True)))
    logp, _ = log_softmax(model.forward(batch.source, batch.target_in)[0])  # (B, T, V)
    of_tokens = np.take_along_axis(logp, batch.target_out[..., None], -1)[..., 0]  # (B, T)
    return np.where(batch.target_out != PAD, of_tokens, 0).sum(1)


def mean_words(sentences):
    return np.mean([len(y) for y in sentences])


words = []
for k in (1, 2, 4, 8):
    lists = beam_search(model, source, beam=k, length_penalty=0.0, max_length=12)
    words.append(mean_words([hypotheses[0].ids for hypotheses in lists]))
    print(f"beam size {k}   mean number of words {words[-1]:.2f}")
print(f"references    mean number of words {mean_words(truths):.2f}")

# %% tags=["check"]
assert_allclose(words, [5.46, 5.407, 5.403, 5.39], atol=0.001)
assert_allclose(mean_words(truths), 5.547, atol=0.001)

# %% [markdown]
# The references have 5.55 words on average. With a larger beam, the length of the translations moves further
# away from this number.
#
# The reason is the definition of the probability of a sentence. It is a product with one factor for each
# token, and each factor is below 1. So each further token makes the product smaller. The cell shows two
# translations of the same sentence, the best one with seven tokens and the best one with eight. The end token
# is counted.

# %%
french = [" ".join(fr.decode(ids)) for ids in sources]
line = french.index("nous avons voulu marcher jusqu' au lac")
one = source[line : line + 1]  # (1, S)
hypotheses = beam_search(model, one, beam=64, length_penalty=0.0, max_length=12)[0]
best_of = {len(y.ids) + 1: y for y in reversed(hypotheses)}  # the best of each length
for n in (7, 8):
    y = best_of[n]
    print(f"{n} tokens: log p = {y.log_prob:.3f}   {' '.join(en.decode(y.ids))}")

# %% tags=["check"]
assert best_of[8].ids == truths[line]
assert_allclose([best_of[7].log_prob, best_of[8].log_prob], [-1.212, -1.292], atol=1e-3)

# %% [markdown]
# The longer translation is right, but the shorter one is a little more probable.
#
# ### The empty translation
#
# The shortest translation has no word at all. It consists only of the end token, so its probability has only
# one factor. The cell compares it with the reference for each sentence of the test.

# %%
of_reference = log_prob(sources, truths)  # (B,)
of_empty = log_prob(sources, [[]] * len(test))  # (B,) log p(</S> | x)
tokens = sum(len(truth) + 1 for truth in truths)
print(f"mean log p of a token of the references {of_reference.sum() / tokens:.2f}")
print(f"the empty translation is more probable: {(of_empty > of_reference).sum()} times")

# %% tags=["check"]
assert (of_empty > of_reference).sum() == 5

# %% [markdown]
# For 5 of 300 sentences, this model gives a higher probability to the empty translation than to the
# reference. This is not only a problem of small models. Stahlberg and Byrne (2019) computed the most probable
# translation of a full-size Transformer exactly. For more than half of their sentences, it was the empty one.
#
# **Question.** Greedy search and small beams almost never return the empty translation. Why?
#
# <details><summary>Answer</summary>
# They return it only if the end token is among the k most probable *first* tokens. Many other first tokens
# are usually more probable. So a small beam drops the empty translation at the first step. The search error
# hides the model error.
# </details>
#
# ## A score in place of the probability
#
# The remedy is to choose the sentence by a score that depends less on the length. The paper uses a
# formula of Wu et al. (2016, section 7; their score has a second term, for the coverage of the source). The
# number of tokens, the end token included, is $|y|$:
#
# $$\mathrm{score}(y) = \frac{\log p(y \mid x)}{\left(\dfrac{5 + |y|}{6}\right)^{\alpha}}$$

# %% [markdown]
# This is called **length normalization**. The exponent α is the **length penalty**. For α = 0 the score is
# log p itself. For α = 1 the denominator grows linearly with the length, so for long sentences the score is
# almost proportional to the mean of log p over the tokens. The paper chose α = .6 by experiments.

# %% tags=["plot"]
figure = shape_flow(
    ". log_p score \n y . . \n . length .",
    {
        "log_p": "log p: y",
        "length": "|y|: y",
        "score": "log_p / ((5 + |y|) / 6)^α: log_p length",
    },
    {"y": "1 T", "log_p": "1", "length": "1", "score": "1"},
)
caption = "The search returns the finished sentence with the largest score"
show_figure(figure, "14_3_shapes", caption)

# %% [markdown]
# **Question.** Both log p and the score are negative. Does the division by a number above 1 make the score
# larger or smaller?
#
# <details><summary>Answer</summary>
# Larger, because it moves a negative number closer to 0. The denominator grows with the length. So a long
# sentence gains more from the division than a short one.
# </details>
#
# The cell computes the scores of the best translations of each length, for three exponents.

# %%
lengths = np.array(sorted(best_of))
logs = np.array([best_of[n].log_prob for n in lengths])
alphas = (0, 0.6, 1)
scores = np.stack([logs / ((5 + lengths) / 6) ** alpha for alpha in alphas])  # (3, N)
for alpha, row in zip(alphas, scores, strict=True):
    seven, eight = row[lengths == 7][0], row[lengths == 8][0]
    print(f"α = {alpha:3}: 7 tokens {seven:.3f}, 8 tokens {eight:.3f}")

# %% tags=["check"]
assert_allclose(scores[2, np.isin(lengths, [7, 8])], [-0.606, -0.596], atol=1e-3)
assert [lengths[row.argmax()] for row in scores] == [7, 7, 8]
for n, log_p, score in zip(lengths, logs, scores[1], strict=True):
    assert_allclose(score, log_p / length_norm(n, 0.6))

# %% tags=["plot"]
figure = curves(
    scores,
    lengths,
    labels=["α = 0", "α = 0.6", "α = 1"],
    xlabel="tokens of the translation",
    ylabel="score of the best one of this length",
)
caption = "“nous avons voulu …”: seven tokens have the best score for α = 0, eight for α = 1"
show_figure(figure, "14_length", caption)

# %% [markdown]
# With α = 1, the right translation "we wanted to walk to the lake" has the best score. For this sentence, .6
# is not enough.
#
# One sentence does not show what the exponent does in general. So we translate the whole test with each of
# them, and count the exact translations.

# %%
exact = {}
for alpha in alphas:
    lists = beam_search(model, source, beam=4, length_penalty=alpha, max_length=12)
    found = [hypotheses[0].ids for hypotheses in lists]
    exact[alpha] = sum(y == truth for y, truth in zip(found, truths, strict=True))
    print(f"α = {alpha:3}: {exact[alpha]} exact, {mean_words(found):.2f} words on average")

# %% tags=["check"]
assert exact == {0: 189, 0.6: 189, 1: 191}

# %% [markdown]
# Here the exponent of the paper gives as many exact translations as α = 0, and α = 1 gives two more. Two of
# 300 sentences are too few to prefer α = 1. All sentences of this test are short. With long sentences the
# effect can be larger.
#
# Length normalization is a heuristic. The score is not a probability, and the best exponent depends on the
# model and the data. So it has to be chosen by an experiment. This cell only shows the effect on the test. To
# choose the exponent, count the exact translations of validation data instead.
#
# **Your turn.** In the terminal, print the three best translations of a sentence with
# `!beam_search(model, source[:1], beam=3)`. Each has its ids, log p and score.

# %% [markdown]
# ## Summary
#
# - Each token multiplies the probability of a sentence by a number below 1, so short ones have an advantage.
# - The most probable translation may even be the empty one; small beams hide this by a search error.
# - Length normalization divides log p by ((5 + |y|) / 6) to the power α, and the search maximizes this score.
# - With α = 0 the score is log p; with α = 1 it is, for long sentences, almost proportional to the mean of
#   log p over the tokens.
# - The exponent is chosen by an experiment on validation data; the paper uses .6.

# %% [markdown]
# ## Questions
#
# **Question.** For which length does length normalization not change log p at all?
#
# <details><summary>Answer</summary>
# For |y| = 1, the empty translation. Then (5 + 1)/6 = 1, and every power of 1 is 1.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 14` lists the exercises of this chapter.
#
# - `npformer exercise start length-norm`: compute the length normalization of beam search.
# - By hand: log p is −1.212 for seven tokens and −1.292 for eight. From which α on is the score of the longer
#   sentence larger?
#
# **Next**: lesson 14.4 (`14_4_the_kv_cache`), which makes the search faster.

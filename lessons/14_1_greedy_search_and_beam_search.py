# %% [markdown]
# # 14.1 · Greedy search and beam search
#
# *About 35 minutes. You need: the decoder (lesson 11.1, `11_1_the_decoder_and_teacher_forcing`) and the
# log-softmax (lesson 12.1, `12_1_the_cross_entropy`).*
#
# **After this lesson you can**
#
# - compute the probability of a whole sentence from the probabilities of its tokens;
# - write greedy search, and show that it does not always find the most probable sentence;
# - write beam search, and test it with two cases whose results are known.
#
# `decoding: encoder → decoder → softmax → [SEARCH] → translation`

# %%
import itertools

import numpy as np
from numpy.testing import assert_allclose

from npformer import TransformerConfig, load
from npformer.data import END, PAD, SPECIALS, START, UNK, make_batch
from npformer.functional import log_softmax
from npformer.generation import beam_search, greedy
from npformer.learn.course import show_figure
from npformer.learn.course.running import SENTENCE
from npformer.learn.course.shapes import shape_flow
from npformer.plots import beam_tree, score_bars, steps_of_trace

# %% [markdown]
# ## From probabilities to a sentence
#
# A trained translator reads a source sentence and the first tokens of a translation. For each token of the
# vocabulary, it returns the probability that this token comes next. But we want a sentence. The search for a
# sentence is called **decoding**.
#
# *Attention Is All You Need* describes it in section 3:
#
# > At each step the model is auto-regressive, consuming the previously generated symbols as additional input
# > when generating the next.
#
# So a model is **autoregressive** if it reads its own output in order to continue it. The picture shows the
# loop for one sentence. S is the length of the source, and t is the number of tokens that were chosen so far.
# V is the size of the vocabulary.

# %% tags=["plot"]
figure = shape_flow(
    "source logits next \n so_far . .",
    {"logits": "model: source so_far", "next": "search: logits"},
    {"source": "1 S", "so_far": "1 t", "logits": "1 V", "next": "1"},
)
caption = "The next token is appended to those so far, until it is the end token"
show_figure(figure, "14_1_shapes", caption)

# %% [markdown]
# This chapter answers four questions, one in each lesson. How is a sentence found? Which mistakes happen? Why
# are the results often too short? And how can the search be made faster?
#
# ## A model with four words
#
# To understand a search, it helps to know its correct result. So we begin with a model that is so small that
# we can compare all sentences. Its vocabulary has four words. *图解transformer* explains the search with the
# same example: the first word of a translation is "a" or "I".
#
# The model is a table. For some prefixes it has a row with the probability of the end token `</S>` and of
# each word. A **prefix** is a sequence of tokens at the beginning of a sentence. For all other prefixes it
# uses the last row.

# %%
NAMES = (*SPECIALS, "a", "am", "i", "student")  # ids 0 to 7; </S>, the end, is 3
TABLE = {  # </S>    a     am     i   student
    (): (0.050, 0.450, 0.050, 0.400, 0.050),
    ("a",): (0.100, 0.100, 0.200, 0.200, 0.400),
    ("i",): (0.025, 0.025, 0.900, 0.025, 0.025),
    ("i", "am"): (0.050, 0.800, 0.050, 0.050, 0.050),
    ("i", "am", "a"): (0.025, 0.025, 0.025, 0.025, 0.900),
    ("a", "student"): (0.400, 0.150, 0.150, 0.150, 0.150),
    "other": (0.600, 0.100, 0.100, 0.100, 0.100),
}


class Table:
    """A model whose forward function has the arguments and results of a Transformer's."""

    config = TransformerConfig(source_vocab=8, target_vocab=8, max_length=6)

    def forward(self, source, target_in):
        logits = np.full((*target_in.shape, 8), -np.inf)  # (B, T, V)
        for b, ids in enumerate(target_in):
            for t in range(len(ids)):
                prefix = tuple(NAMES[i] for i in ids[1 : t + 1])  # without <S>
                logits[b, t, END:] = np.log(TABLE.get(prefix, TABLE["other"]))
        return logits, None


# %% tags=["check"]
assert_allclose([sum(row) for row in TABLE.values()], 1)

# %% [markdown]
# ## The probability of a sentence
#
# A sentence $y$ consists of the tokens $y_1, \ldots, y_n$, and the last one is the end token. By the chain
# rule of probability, its probability is the product of the probabilities of its tokens. Each of them depends
# on the source $x$ and on all tokens before it:
#
# $$p(y \mid x) = \prod_{t=1}^{n} p(y_t \mid y_1, \ldots, y_{t-1}, x)$$
#
# The logarithm of a product is a sum of logarithms:
#
# $$\log p(y \mid x) = \sum_{t=1}^{n} \log p(y_t \mid y_1, \ldots, y_{t-1}, x)$$
#
# One works with the logarithm, because the product of many small numbers can underflow to 0.
#
# The function computes log p for several sentences. As in training, a single forward pass gives the
# probabilities of all positions.

# %%


def log_prob(model, sources, sentences):
    """Return log p(y | x) of each sentence.

    Shapes: sources B lists of ids, sentences B lists of ids -> (B,).
    """
    batch = make_batch(list(zip(sources, sentences, strict=True)))
    logp, _ = log_softmax(model.forward(batch.source, batch.target_in)[0])  # (B, T, V)
    of_tokens = np.take_along_axis(logp, batch.target_out[..., None], -1)[..., 0]  # (B, T)
    return np.where(batch.target_out != PAD, of_tokens, 0).sum(1)


# %% [markdown]
# The best translation is the sentence with the largest probability. Can we compute the probabilities of all
# sentences and take the largest?
#
# **Question.** How many sentences of n words are there with a vocabulary of V words? How many with V = 4, n =
# 4, and with V = 37,000, n = 6?
#
# <details><summary>Answer</summary>
# There are Vⁿ sentences. With V = 4 and n = 4 this is 256. With 37,000 tokens, the vocabulary of the paper,
# and n = 6 it is more than 10²⁷.
# </details>
#
# For a real vocabulary this is impossible, but for our table it is easy. The cell computes the probabilities
# of all sentences with at most four words. The source has no influence on this model.

# %%


def text_of(ids):
    return " ".join(NAMES[i] for i in ids) or "(empty)"


table, x = Table(), [5]  # any source
sentences = [list(y) for n in range(5) for y in itertools.product(range(4, 8), repeat=n)]
exact = log_prob(table, [x] * len(sentences), sentences)  # (341,)
for i in np.argsort(-exact)[:4]:
    print(f"p = {np.exp(exact[i]):.4f}   {text_of(sentences[i])}")
print(f"the probabilities of all {len(sentences)} sentences sum to {np.exp(exact).sum():.4f}")

# %% tags=["check"]
assert len(sentences) == 341
assert text_of(sentences[exact.argmax()]) == "i am a student"
assert 4**4 == 256
assert 37_000**6 > 10**27

# %% [markdown]
# The most probable sentence is "i am a student". The sum is less than 1, because longer sentences have the
# rest of the probability.
#
# ## Greedy search
#
# The simplest search chooses the most probable token at each step. It is called **greedy search**. The loop
# below works with the table and with a Transformer. The tokens for padding, unknown words and the start are
# never chosen.

# %%


def next_log_probs(model, source, ids):
    """Return log p(next token | ids, source), -inf for forbidden tokens. Shape: (V,)."""
    logits, _ = model.forward(np.array([[*source, END]]), np.array([[START, *ids]]))  # (1, T, V)
    logp, _ = log_softmax(logits[0, -1])
    logp[[PAD, UNK, START]] = -np.inf
    return logp


def greedy_slow(model, source, max_length):
    """Return the ids of the sentence that greedy search finds."""
    ids = []
    while len(ids) < max_length:
        token = int(next_log_probs(model, source, ids).argmax())
        if token == END:
            break
        ids.append(token)
    return ids


found = greedy_slow(table, x, 4)
p = np.exp(log_prob(table, [x], [found])[0])
print(f"greedy search: {text_of(found)}, p = {p:.4f}")
print(f"all sentences: {text_of(sentences[exact.argmax()])}, p = {np.exp(exact.max()):.4f}")

# %% tags=["check"]
assert found == greedy(table, [[*x, END]], max_length=4, cached=False)[0]  # the package
assert_allclose(p, 0.45 * 0.4 * 0.4)
assert_allclose(np.exp(exact.max()), 0.4 * 0.9 * 0.8 * 0.9 * 0.6)

# %% [markdown]
# Greedy search does not find the best sentence here. The sentence "i am a student" has more than twice the
# probability of the sentence that greedy search found.
#
# **Question.** At which step did greedy search make the decision that excludes the best sentence? Use the
# table.
#
# <details><summary>Answer</summary>
# At the first step. The word "a" has the probability .45, and "i" only .40. But no continuation of "a" is
# very probable, and after "i" the next three words have the probabilities .9, .8 and .9. Greedy search never
# revises a choice.
# </details>
#
# ## Beam search
#
# **Beam search** keeps several prefixes at each step, not only one. Their number k is the **beam size**. Each
# step has three parts:
#
# 1. Extend each of the k prefixes by each token of the vocabulary.
# 2. Put all k · V continuations into one list, and keep the k most probable ones.
# 3. Those that end with the end token are finished sentences. The others are the prefixes of the next step.
#
# At the end, the finished sentence with the largest probability is the result.

# %%


def beam_slow(model, source, k, max_length):
    """Return the finished sentences as (log p, ids), the most probable one first."""
    live, finished = [(0.0, [])], []
    for t in range(max_length + 1):
        continuations = []
        for so_far, ids in live:
            logp = next_log_probs(model, source, ids)
            allowed = range(END, len(logp)) if t < max_length else [END]  # only the end fits
            continuations += [(so_far + logp[token], [*ids, token]) for token in allowed]
        best = sorted(continuations, reverse=True)[:k]
        finished += [(total, ids[:-1]) for total, ids in best if ids[-1] == END]
        live = [(total, ids) for total, ids in best if ids[-1] != END]
    return sorted(finished, reverse=True)


for k in (1, 2, 5, 341):
    total, ids = beam_slow(table, x, k, 4)[0]
    print(f"beam size {k:3}: p = {np.exp(total):.4f}   {text_of(ids)}")

# %% [markdown]
# With a beam size of 2, the search finds the best sentence. Two cases are useful as tests, because their
# results are known:
#
# - A beam of size 1 is greedy search.
# - A beam as large as the number of sentences never drops a prefix. So it must find all 341 sentences, in the
#   order of their probabilities.

# %% tags=["check"]
options = {"length_penalty": 0.0, "max_length": 4, "cached": False}
for k in (1, 2, 5, 341):
    package = beam_search(table, [[*x, END]], beam=k, **options)[0][0]
    total, ids = beam_slow(table, x, k, 4)[0]
    assert_allclose(total, package.log_prob, rtol=1e-12)
    assert ids == package.ids
assert beam_search(table, [[*x, END]], beam=1, **options)[0][0].ids == found
everything = beam_search(table, [[*x, END]], beam=341, **options)[0]
assert_allclose([y.log_prob for y in everything], np.sort(exact)[::-1], rtol=1e-12)
assert sorted(y.ids for y in everything) == sorted(sentences)
assert_allclose(np.log([p, np.exp(exact.max())]), [-2.63, -1.86], atol=0.005)
print("beam search of the package passes both tests")

# %% [markdown]
# The figure shows the search with beam size 2 as a tree. The number under each word is the logarithm of the
# probability of all tokens up to this word. Only the continuations that were kept are shown.

# %% tags=["plot"]
trace = []
beam_search(table, [[*x, END]], beam=2, trace=trace, **options)
figure = beam_tree(steps_of_trace(trace[0], NAMES, END), start="<S>")
caption = "Beam size 2 keeps both first words, so it finds “i am a student”"
show_figure(figure, "14_table", caption)

# %% [markdown]
# The sentence "a student" ends with −2.63, and "i am a student" with −1.86. After the second word, the prefix
# "i am" is already more probable than "a student".
#
# **Question.** Suppose that a search with beam size 5 finds a sentence. Is it certainly the most probable
# one?
#
# <details><summary>Answer</summary>
# No. The best sentence is lost as soon as one of its prefixes is not among the k best of its step.
# </details>
#
# Each step runs the model on k prefixes. So beam search takes about k times as long as greedy search. The
# paper uses a small beam (section 6.1). The length penalty is the topic of lesson 14.3
# (`14_3_length_normalization`).
#
# > We used beam search with a beam size of 4 and length penalty α = 0.6.
#
# **Your turn.** In the terminal, print the three best sentences of a larger beam with
# `!beam_slow(table, x, 5, 4)[:3]`.

# %% tags=["plot"]
found = load("en-de").translate(SENTENCE, n_best=4)
figure = score_bars([[one.log_prob for one in found]], [[one.text for one in found]])
caption = "Our sentence: log p of the four best translations, in the order of lesson 14.3"
show_figure(figure, "14_1_running", caption)

# %% tags=["check"]
assert found[0].text == "Zwei Hunde spielen im Schnee."

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* describes both searches, and beam search with k = 2. For the second position, it takes
# >   the most probable words after each of the two first ones. It does not say that all k · V continuations
# >   are compared in one list. It also does not say what happens when one of them ends. Here a finished
# >   sentence makes its place in the beam free.
# > - *一步步解析Attention is All You Need!* ends with the softmax, and *The components of the Transformer*
# >   with the decoder. Neither describes a search.
# > - The paper limits the length of a translation to the length of the source + 50. The package has the same
# >   limit.

# %% [markdown]
# ## Summary
#
# - The probability of a sentence is the product of the probabilities of its tokens, the end token included.
# - There are far too many sentences to compare all of them, so a search compares only some.
# - Greedy search chooses the most probable token at each step, and can miss the most probable sentence.
# - Beam search keeps the k most probable prefixes at each step; it takes about k times as long.
# - A beam of size 1 is greedy search, and a beam that drops no prefix finds all sentences.

# %% [markdown]
# ## Questions
#
# **Question.** Why must the end token be part of the probability of a sentence?
#
# <details><summary>Answer</summary>
# Without it, every prefix of a sentence would be at least as probable as the sentence itself. The end token
# distinguishes the sentence "a" from the prefix "a" of longer sentences.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 14` lists the exercises of this chapter.
#
# - `npformer exercise start greedy`: write the loop of greedy search for a batch of sentences.
# - `npformer exercise start best-continuations`: find the k best continuations in one list. You do not need
#   to sort all of it.
#
# **Your own Transformer.** Greedy search is the last of the twelve parts of a Transformer that you can
# write yourself. The command `npformer build` shows which parts are yours, and holds their output, loss
# and gradients against the package's Transformer. `npformer build --train` trains a Transformer of your
# parts, and `npformer build "the dog is tired"` translates with it. The package's own part stands in the
# place of each part that you have not solved yet.
#
# **Next**: lesson 14.2 (`14_2_exposure_bias_and_search_errors`), which decodes with a trained model.

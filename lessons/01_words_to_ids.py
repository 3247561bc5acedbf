# %% [markdown]
# # 1 · Words to ids
#
# *About 40 minutes. You need: shapes of arrays, the gradient check (lesson 0.2,
# `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - turn sentences into ids, and ids back into sentences;
# - put sentences of different lengths into one array, and arrange them so that little of it is padding;
# - write a layer whose result and gradient do not depend on the padding.
#
# `model: [IDS] → embedding → positions → encoder → decoder → linear → softmax`

# %%
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.checking import gradcheck
from npformer.data import (
    LANGUAGES,
    SPECIALS,
    TextCodec,
    example_lengths,
    make_batch,
    pad,
    plan_batches,
    truncate,
)
from npformer.data.corpus import builtin_corpus
from npformer.functional.attention import attention, attention_backward
from npformer.functional.masks import padding_mask
from npformer.learn.course import show_figure
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(1)

# %% [markdown]
# ## Why ids?
#
# A network multiplies and adds numbers, so it cannot read text. Each sentence is first turned into numbers.
# The diagram shows the steps for the sentence "thanks", where k is the id of this word.
#
# ```text
# text                "thanks"
#   │ split the text
# tokens              ["thanks"]
#   │ find each token in the vocabulary
# ids                 [k]
#   │ append 3, the id of the end of a sentence
# ids                 [k, 3]
#   │ pad to the longest sentence of the batch
# a row of (B, T)     [k, 3, 0, 0, 0, 0]
#   │ embedding (lesson 2)
# vectors (B, T, D)
# ```

# %% [markdown]
# The paper describes its data in section 5.1:
#
# > Sentences were encoded using byte-pair encoding [3], which has a shared source-target vocabulary of about
# > 37000 tokens.
#
# > Sentence pairs were batched together by approximate sequence length.
#
# You will do both here, but in a simpler way: each token is a whole word or a punctuation mark. The text
# comes from the built-in **corpus**, a collection of English sentences with their French translations. A
# program generated them from a grammar. The **training sentences** are used to train a model, and the **test
# sentences** to measure how good it is.

# %%
corpus = builtin_corpus()
print(len(corpus.train), "pairs for training,", len(corpus.test), "for testing. Three of them:")
for pair in corpus.train[:3]:
    print("-", pair.english, "\n ", pair.french)

# %% [markdown]
# ## From sentences to tokens
#
# A **codec** converts text to ids and back. First it splits the text into lower-case words and punctuation
# marks. An apostrophe stays inside an English word (didn't), but it ends a French word (l' animal). The sign
# "<" is always a token of its own. So no text can imitate one of the special tokens below, such as `<S>`.

# %%
english = TextCodec.from_lines([p.english for p in corpus.train], language=LANGUAGES["en"])
french = TextCodec.from_lines([p.french for p in corpus.train], language=LANGUAGES["fr"])
print(english.words("The cat didn't drink, <S>!"))
print(french.words("L'animal n'a pas traversé la rue"))

# %% [markdown]
# ## From tokens to ids
#
# The **vocabulary** is the list of all tokens that the model knows. The **id** of a token is its place in
# this list, counted from 0. The first four places belong to **special tokens**:
#
# - 0 `<PAD>` fills the places after a short sentence;
# - 1 `<UNK>` stands for any token that is not in the vocabulary;
# - 2 `<S>` marks the start of a translation;
# - 3 `</S>` marks the end of a sentence.
#
# After them come the tokens of the training sentences, the most frequent token first. Tokens with equal
# counts are in alphabetical order.

# %%
counts: dict[str, int] = {}
for pair in corpus.train:
    for token in english.words(pair.english):
        counts[token] = counts.get(token, 0) + 1

ranked = sorted(counts, key=lambda token: (-counts[token], token))
id_of = {token: i for i, token in enumerate([*SPECIALS, *ranked])}
for token in ("the", "because", "bank", "student"):
    print(f"{token:8} id {id_of[token]:3}   {counts[token]:6,} times")

# %% tags=["check"]
assert tuple(id_of) == english.vocabulary.words  # the list of the package
n_en, n_fr = len(english.vocabulary), len(french.vocabulary)
print(n_en, "English ids,", n_fr, "French ids")

# %% [markdown]
# An id is only a *name*. Token 23 is not larger or better than token 22. Lesson 2 (`02_embeddings`)
# replaces each id by a vector, because one can calculate with vectors.
#
# **Encoding** replaces tokens by ids, and **decoding** does the reverse. The word "zebra" does not occur in
# the corpus, so it gets the id 1 of `<UNK>`. All unknown words have this id, so decoding cannot know which
# word it was.

# %%
sentence = "the zebra didn't cross the street"
ids = [id_of.get(token, 1) for token in english.words(sentence)]
print(ids)
print(english.decode(ids))

# %% tags=["check"]
assert ids == english.encode(sentence)
assert english.vocabulary.unknown(english.words(sentence)) == ["zebra"]

# %% [markdown]
# ## How many words are unknown?
#
# This depends on the amount of text from which the vocabulary was made. The next cell makes vocabularies from
# the first n training sentences, for several n. Then it reads all test sentences. It measures the share of
# unknown words, and the share of sentences with at least one unknown word.

# %% tags=["plot"]
test = [english.words(pair.english) for pair in corpus.test]
sizes = np.array([10, 30, 100, 300, 1000])
unknown = np.zeros((2, 5))  # share of words, share of sentences
for j, n in enumerate(sizes):
    known = {token for pair in corpus.train[:n] for token in english.words(pair.english)}
    missing = [sum(token not in known for token in tokens) for tokens in test]
    unknown[:, j] = sum(missing) / sum(map(len, test)), np.mean(np.array(missing) > 0)
    print(f"{n:5} sentences   {len(known):3} words   unknown {unknown[0, j]:6.1%}", end="")
    print(f"   sentences with one {unknown[1, j]:6.1%}")

figure = curves(
    100 * unknown,
    sizes,
    labels=["unknown words", "sentences with an unknown word"],
    xlabel="training sentences from which the vocabulary was made",
    ylabel="% of the test",
    xscale="log",
    legend=True,
)
caption = "With 100 sentences 8.0 % of the words are unknown; with 1,000 sentences 0.2 % are"
show_figure(figure, "01_unknown", caption)

# %% tags=["check"]
assert_allclose(unknown[:, 2], [0.080, 0.639], atol=5e-4)
assert_allclose(unknown[:, 4], [0.002, 0.020], atol=5e-4)
assert n_en == 349 + len(SPECIALS) == 353
assert n_fr == 516
print("the numbers of the text agree with the table")

# %% [markdown]
# With 100 sentences, 8.0 % of the words are unknown. This seems to be little, but 64 % of the sentences
# contain an unknown word. With 1,000 sentences only 0.2 % are unknown, because the grammar uses only 349
# English words. Texts written by people always contain new words: names, numbers, typing errors. **Byte-pair
# encoding**, which the paper uses, therefore splits rare words into frequent pieces. Then almost nothing is
# unknown, but sentences become longer.
#
# ## Sentences to one array
#
# All rows of an array have the same length. So short sentences are filled with 0 on the right. This is called
# **padding**. Sentences that are too long are cut. This is called **truncation**. A truncated sentence must
# still end with `</S>`, or the model would learn that sentences can stop in the middle. So one more word is
# removed to make room for `</S>`.

# %%
texts = ("the cat drinks some milk", "thanks", "i am a student")
rows = [[*english.encode(text), 3] for text in texts]
longest = max(len(row) for row in rows)
padded = np.zeros((3, longest), np.int64)  # (B, T)
for b, row in enumerate(rows):
    padded[b, : len(row)] = row
print(padded)

cut = [*rows[0][: 4 - 1], 3]
print("truncated to 4 ids:", cut, "=", english.decode(cut))

# %% tags=["check"]
assert (padded == pad(rows)).all()
assert cut == truncate(rows[0], 4)

# %% [markdown]
# A translation model needs *pairs* of sentences, and it uses the target sentence twice. The encoder reads
# `source`. The decoder reads `target_in`, which begins with `<S>`. It has to predict `target_out`, which
# contains the same tokens one place earlier, and `</S>` at the end.
#
# ```text
# target_in    <S>   le    chat   boit   du     lait
#               ▼     ▼     ▼      ▼      ▼      ▼        predict the next token
# target_out   le    chat  boit   du     lait   </S>
# ```
#
# At place t the decoder has read `target_in[:, :t + 1]` and should predict `target_out[:, t]`. Chapter 6
# shows how we prevent it from reading further. Lesson 11.1 (`11_1_the_decoder_and_teacher_forcing`)
# explains why all places can be computed at once.

# %%
two = {"the cat drinks some milk": "le chat boit du lait", "thanks": "merci"}
small = make_batch([(english.encode(x), french.encode(y)) for x, y in two.items()])
print("source", small.source, "target_in", small.target_in, sep="\n")
print("target_out", small.target_out, sep="\n")

# %% tags=["check"]
assert (small.target_in[:, 0] == 2).all()  # <S>
assert (small.target_in[0, 1:] == small.target_out[0, :-1]).all()
assert french.decode(small.target_out[1]) == "merci"  # up to </S>

# %% [markdown]
# The picture shows the two arrays that the model reads, for ten pairs of sentences with at most ten ids each.

# %% tags=["plot"]
examples = [(english.encode(p.english), french.encode(p.french)) for p in corpus.train]
ten = make_batch([e for e in examples if max(map(len, e)) < 10][:10])
style = {"colour": "plain", "edge": "x", "numbers": True}
grids = [
    Grid(ten.source, "source: the encoder reads", mask=ten.source != 0, **style),
    Grid(ten.target_in, "target_in: the decoder reads", mask=ten.target_in != 0, **style),
]
dark = int((ten.source == 0).sum() + (ten.target_in == 0).sum())
caption = f"3 ends each source, 2 begins each target; the {dark} dark cells are padding"
show_figure(cell_product(grids), "01_batch", caption)

# %% [markdown]
# ## How much of it is padding?
#
# A network spends as much time on padding as on real tokens, so we want little padding. To measure it, let
# $l_n$ be the length of sentence n, and let B be the number of sentences in a batch. Every row of a batch is
# as long as the longest sentence in it. So the number of cells and the share of padding are
#
# $$\mathrm{cells} = \sum_{\mathrm{batches}} B \cdot \max_n l_n$$
#
# $$\mathrm{padding} = 1 - \frac{\sum_n l_n}{\mathrm{cells}}$$
#
# Both sums count source and target sentences. The function in the next cell computes the share of padding for
# a plan. A **plan** is a list of batches, and each batch is an array of sentence numbers.

# %%
lengths = example_lengths(examples)  # (N, 2): source and target, with <S> or </S>


def padding_of(plan):
    """Return the share of padding."""
    cells = sum(len(batch) * lengths[batch].max(0).sum() for batch in plan)
    return 1 - lengths.sum() / cells


# %% [markdown]
# We compare three ways to make batches of 64 sentences:
#
# 1. all sentences are padded to the length of the longest sentence in the corpus;
# 2. the sentences of a batch are chosen at random;
# 3. the sentences are sorted by length before they are divided into batches.
#
# **Question.** Which one has the least padding, and what could be its disadvantage?
#
# <details><summary>Answer</summary>
# Sorting has the least padding. An **epoch** is one pass through all training sentences. With sorting, the
# batches are the same in every epoch, so a sentence always shares its batch with the same other sentences.
# </details>

# %% tags=["check"]


def cut_into(order, size):
    """Divide an order of sentences into batches of at most `size`, as equal as possible."""
    return np.array_split(order, -(-len(order) // size))


by_chance = cut_into(rng.permutation(len(lengths)), 64)
in_order = cut_into(np.lexsort((lengths[:, 0], lengths[:, 1])), 64)  # by target, then by source
fixed = 1 - lengths.sum() / (len(lengths) * lengths.max(0).sum())
print(f"lengths {lengths.min(0)} to {lengths.max(0)}, mean {lengths.mean(0).round(1)}")
print(f"padded to the longest   {fixed:.1%}")
print(f"at random               {padding_of(by_chance):.1%}")
print(f"sorted                  {padding_of(in_order):.1%}")

# %% [markdown]
# `plan_batches` has almost the same advantage without the disadvantage. In every epoch it adds a random
# number between 0 and 1.5 to each target length. It sorts by these changed lengths, divides the sentences
# into batches and shuffles the batches. The next cell considers all pairs of sentences that share a batch. It
# measures how many of these pairs share a batch again in the next epoch.

# %%
epochs = [plan_batches(lengths, seed=0, epoch=e, batch_size=64) for e in range(2)]

# %% tags=["check"]
assert (np.sort(np.concatenate(epochs[0])) == np.arange(len(lengths))).all()  # all, once


def together_again(first, second):
    """Return the share of pairs from one first batch that are also in one second batch."""
    batch_of = np.zeros(len(lengths), int)
    for number, batch in enumerate(first):
        batch_of[batch] = number
    together = sum(n * (n - 1) for batch in second for n in np.bincount(batch_of[batch]))
    return together / sum(len(batch) * (len(batch) - 1) for batch in first)


again = together_again(*epochs)
print(f"planned: {padding_of(epochs[0]):.1%} padding, {again:.1%} together again")
print(f"sorted:  {padding_of(in_order):.1%} padding, {together_again(in_order, in_order):.0%}")

# %% tags=["plot"]
grids = []
for name, plan in {"at random": by_chance, "planned by length": epochs[0]}.items():
    source_ids = make_batch([examples[i] for i in plan[0][:16]]).source  # (16, S)
    grids.append(Grid(source_ids, name, "x", mask=source_ids != 0))
caption = "Sixteen English sentences of a batch, one in each row: dark cells are padding"
show_figure(cell_product(grids), "01_plan", caption)

# %% [markdown]
# The more sentences a random batch contains, the longer its longest sentence is, and the more padding it
# needs. The share of padding grows towards the 45 % of method 1. Planned batches need little padding, because
# there are enough sentences of each length. Their share only rises when batches become so large that they
# contain several lengths.

# %% tags=["plot"]
batch_sizes = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
shuffled = np.concatenate(by_chance)
padding = np.zeros((2, 9))
for j, n in enumerate(batch_sizes.tolist()):
    planned = plan_batches(lengths, seed=0, epoch=0, batch_size=n)
    padding[:, j] = padding_of(cut_into(shuffled, n)), padding_of(planned)
figure = curves(
    100 * padding,
    batch_sizes,
    labels=["at random", "planned by length"],
    xlabel="sentences in a batch",
    ylabel="% of the cells that are padding",
    xscale="log",
)
caption = "With 64 sentences in a batch: 40 % padding at random, 2.4 % planned"
show_figure(figure, "01_padding", caption)

# %% [markdown]
# With 64 sentences in a batch, planning reduces padding from 40 % to 2.4 %. For the same text, random batches
# have 1.6 times as many cells to compute.
#
# The paper measures a batch in *tokens*, about 25,000 on each side. Then a step with long sentences takes
# about as much work as a step with short ones. The argument `batch_tokens` does this: it limits the product
# of the longest length and the number of sentences.

# %% tags=["check"]
by_tokens = plan_batches(lengths, seed=0, epoch=0, batch_tokens=800)
counted = sorted((int(lengths[b].max()), len(b)) for b in by_tokens)
print("(longest, sentences):", counted[0], "...", counted[-1])
assert max(longest * size for longest, size in counted) <= 800
assert_allclose([fixed, padding_of(in_order), again], [0.449, 0.010, 0.072], atol=6e-4)
assert_allclose(padding[:, 6], [0.400, 0.024], atol=6e-4)
assert_allclose(padding[0, 6], padding_of(by_chance))
assert_allclose((1 - padding[1, 6]) / (1 - padding[0, 6]), 1.6, atol=0.03)
print("the numbers of the text agree with the table")

# %% [markdown]
# ## What padding must not do
#
# The amount of padding after a sentence depends on the other sentences of its batch. But **the result for a
# sentence must not depend on the other sentences.** So padding must not change any result.
#
# We try this with the simplest layer that combines all tokens of a sentence: the mean of their vectors. Let
# $x_t$ be the vector of token t, and T the length of the array. Let $m_t$ be 1 at a real token and 0 at
# padding. The array of all $m_t$ is called a **mask**.
#
# $$\text{wrong:} \quad y = \frac{1}{T} \sum_t x_t$$
#
# $$\text{right:} \quad y = \frac{1}{n} \sum_t m_t x_t, \qquad n = \sum_t m_t$$
#
# The next cell draws random vectors for all tokens, including `<PAD>`. Then it compares both formulas with
# the mean for the sentence "thanks" alone, without padding.

# %%
table = rng.standard_normal((n_en, 4))  # (V, D), one row for each of the V tokens
source = pad(rows)  # (B, T): the three sentences from above
real = source != 0  # (B, T) bool, the mask
x = table[source]  # (B, T, D)
alone = table[rows[1]]  # (2, D) "thanks </S>", without padding
print("thanks, alone            ", alone.mean(0))
print("in the batch, wrong      ", x[1].mean(0))
print("in the batch, with mask  ", x[1][real[1]].mean(0))

# %% tags=["check"]
slow = np.zeros((3, 4))
for b in range(3):
    n = 0
    for t in range(source.shape[1]):
        if real[b, t]:
            slow[b] += x[b, t]
            n += 1
    slow[b] /= n
assert_allclose(slow[1], alone.mean(0))

# %% [markdown]
# ## The layer and its backward pass
#
# Now we write this layer as a pair of functions, as in lesson 0.2. The entry $x_{ti}$ affects only
# component i of the mean of its own sentence. By the formula above, the derivative of $y_i$ with respect to
# $x_{ti}$ is $m_t / n$. So
#
# $$dx_{ti} = dy_i \frac{\partial y_i}{\partial x_{ti}} = \frac{m_t}{n} dy_i$$
#
# At padding m = 0, so **the gradient is exactly 0**. This must be so, because padding did not contribute to
# the output. In a short sentence 1/n is larger, so each token gets a larger gradient. This is right too,
# because each token was a larger part of the mean. The cache must contain m and n, but not x.

# %%


class MeanCache(NamedTuple):
    """The arrays that sentence_mean_backward needs."""

    real: Any  # (B, T) bool
    count: Any  # (B, 1), tokens in each sentence


def sentence_mean(x, real):
    """Return the mean vector of each sentence. Shapes: x (B, T, D), real (B, T) -> y (B, D)."""
    count = real.sum(-1, keepdims=True)  # (B, 1)
    y = np.where(real[..., None], x, 0).sum(1) / count  # (B, D)
    return y, MeanCache(real, count)


def sentence_mean_backward(dy, cache):
    """Return the gradient dx (B, T, D)."""
    each = dy / cache.count  # (B, D)
    return np.where(cache.real[..., None], each[:, None, :], 0)


y, cache = sentence_mean(x, real)
show(cache)

# %% [markdown]
# We use `np.where` and not `m * x`. At its padding an array may contain NaN ("not a number"), for example if
# nothing was ever written there. Multiplication does not remove it, because 0 · NaN is NaN.
#
# The package does not contain this layer, but attention can do the same. **Attention** (lesson 5.1,
# `05_1_scaled_dot_product_attention`) computes a weighted mean of vectors, its values. The weights come
# from a vector called the query. If the query is 0, all weights are equal, and `padding_mask(source)`
# excludes the padding. So the output must be our mean, and the gradient of the values must be our dx.

# %% tags=["check"]
zero_query = np.zeros((3, 1, 1, 4))  # (B, H, T, K): one query for each sentence, one head
output, attended = attention(zero_query, x[:, None], x[:, None], mask=padding_mask(source))
assert_allclose(y, slow)
assert_allclose(output[:, 0, 0], y)  # (B, 1, 1, D) -> (B, D)

dy = rng.standard_normal(y.shape)  # (B, D)
dx = sentence_mean_backward(dy, cache)  # (B, T, D)
_, _, dv = attention_backward(dy[:, None, None], attended)
assert_allclose(dv[:, 0], dx)
assert (dx[~real] == 0).all()
print("attention weights", attended.weights[1, 0, 0], "for thanks")

# %% tags=["plot"]
names = [english.vocabulary.words[i] for i in source[1]]
parts = [
    Grid(x[1], "$x$", "x", numbers=True, rows=names, padded=~real[1]),
    "→",
    Grid(y[1], "$y$", "z", numbers=True),
    "   backward:",
    Grid(dy[1], "$dy$", "z", numbers=True),
    "→",
    Grid(dx[1], "$dx$", "x", numbers=True, rows=names, padded=~real[1]),
]
caption = "Padding (dark green) does not affect y and gets 0 in dx; each token gets dy / 2"
show_figure(cell_product(parts), "01_mean", caption)

# %% [markdown]
# ## Check the gradient
#
# First we check our backward pass. Then we check the typical mistake: a backward pass without the mask.

# %%


def backward_without_mask(dy, cache):
    """Return a wrong dx: padding gets dy / n too."""
    return np.repeat((dy / cache.count)[:, None], cache.real.shape[1], axis=1)


report = gradcheck((sentence_mean, sentence_mean_backward), x, real)
print(report)
wrong_report = gradcheck((sentence_mean, backward_without_mask), x, real)
sentence, place, _ = wrong_report.failures[0].entry
print("without the mask, first wrong entry: sentence", sentence, "place", place)

# %% [markdown]
# Every later layer that combines the tokens of a sentence needs this mask. Attention masks its scores
# (chapter 6), and the loss is a mean over real tokens (chapter 12). You can always test this in the same
# way: compute a sentence alone and in a batch, and compare the results.

# %% tags=["check"]
assert report.ok
assert not real[sentence, place]

# %% [markdown]
# ## What the source documents say
#
# > - *一步步解析Attention is All You Need!* shows the same two arrays, x for the encoder and y for the
# >   decoder. It pads every batch to one fixed length, 10 in its demo, and leaves out longer sentences.
# > - *图解transformer* chooses one greatest length, pads shorter sentences and truncates longer ones. It says
# >   that a larger length is better but more expensive. With batches by length it costs nothing, because only
# >   batches with a long sentence are wide. The document does not say that `</S>` must survive truncation.
# > - The paper has one vocabulary of word pieces for both languages, so "Paris" has one id on both sides.
# >   npformer has one vocabulary of words for each language, unless a dataset is made with `shared=True`.
# > - *Attention机制详解（二）* and *The components of the Transformer* begin with vectors.

# %% [markdown]
# ## Summary
#
# - A vocabulary gives each token an id. All unknown tokens get the id of `<UNK>`.
# - Padding makes all sentences of a batch equally long. Truncation must keep `</S>`.
# - The decoder reads `target_in` and predicts `target_out`, which contains the next token of each position.
# - Batches of sentences of similar length contain little padding.
# - A mask excludes padding from the result, and then the gradient of the padding is 0.

# %% [markdown]
# ## Questions
#
# **Question.** Sentences of 2, 3 and 7 ids form one batch. How many cells does it have, and how much is
# padding?
#
# <details><summary>Answer</summary>
# It has 3 · 7 = 21 cells, and 9 of them are padding. Now put the third sentence into a batch of its own. Then
# there are 2 · 3 + 7 = 13 cells, and only 1 of them is padding.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 1` lists the exercises. Each is graded on examples.
#
# - `npformer exercise start pad`: put rows of different lengths into one array. One of the rows is empty.
# - `npformer exercise start truncate`: cut a sentence to a maximum length. There are three cases, and in one
#   of them the end symbol must be kept.
#
# Try this in the terminal: `!english.encode("the cat sat on the mat")`, and
# `!padding_of(plan_batches(lengths, seed=0, epoch=3, batch_size=64))`.
#
# **Next**: lesson 2 (`02_embeddings`), which gives a vector to every id.

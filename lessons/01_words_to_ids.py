# %% [markdown]
# # 1 · Words to ids
#
# *20 minutes to read, 4 seconds to run. Lesson 0 for shapes and the gradient check.*
#
# **The question.** A network multiplies and adds numbers. "thanks" is one word, "i didn't go to the park
# because i was tired" is ten. How do 64 sentences of any lengths become *one* array of numbers, how much of
# that array is filling (four cells in ten, if nobody takes care), and what keeps the filling from having a
# say in the result, and in the gradient?

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
# ## The passage
#
# *Attention Is All You Need*, section 5.1:
#
# > Sentences were encoded using byte-pair encoding [3], which has a shared source-target vocabulary of about
# > 37000 tokens.
#
# > Sentence pairs were batched together by approximate sequence length.
#
# *一步步解析Attention is All You Need!* shows the outcome: two matrices of integers, x for the encoder and y
# for the decoder, a sentence a row, each row filled up with zeros. We make such matrices from the built-in
# corpus: 29,152 English sentences for training, each with its French, made by a grammar.

# %%
corpus = builtin_corpus()
print(len(corpus.train), "pairs to train on,", len(corpus.test), "to test on. Three of them:")
for pair in corpus.train[:3]:
    print("-", pair.english, "\n ", pair.french)

# %% [markdown]
# ## Sentences to words
#
# A codec splits a text into lower-case words and punctuation marks. An English apostrophe stays inside its
# word (didn't), a French one ends a word (l' animal). A "<" is a mark by itself, so no text can forge one of
# the special words below.

# %%
english = TextCodec.from_lines([p.english for p in corpus.train], language=LANGUAGES["en"])
french = TextCodec.from_lines([p.french for p in corpus.train], language=LANGUAGES["fr"])
print(english.words("The cat didn't drink, <S>!"))
print(french.words("L'animal n'a pas traversé la rue"))

# %% [markdown]
# ## Words to ids, the slow way
#
# Count every word; the most frequent gets the smallest number, words of equal count go by the alphabet. The
# first four numbers are taken:
#
# - 0 `<PAD>`: the filling behind a short sentence,
# - 1 `<UNK>`: any word that is not in the list,
# - 2 `<S>`: where a translation starts,
# - 3 `</S>`: where a sentence ends.
#
# An id is a *name*: 23 is not more than 22. Lesson 2 makes vectors of them, with which one can calculate.

# %%
counts: dict[str, int] = {}
for pair in corpus.train:
    for word in english.words(pair.english):
        counts[word] = counts.get(word, 0) + 1

ranked = sorted(counts, key=lambda word: (-counts[word], word))
id_of = {word: i for i, word in enumerate([*SPECIALS, *ranked])}
assert tuple(id_of) == english.vocabulary.words  # the package's list

n_en, n_fr = len(english.vocabulary), len(french.vocabulary)
print(n_en, "English ids,", n_fr, "French ids")
for word in ("the", "because", "bank", "student"):
    print(f"{word:8} id {id_of[word]:3}   {counts[word]:6,} times")

# %% [markdown]
# Encoding looks each word up, decoding looks each id up. What was unknown on the way in is lost on the way
# out: no id leads back to "zebra".

# %%
sentence = "the zebra didn't cross the street"
ids = [id_of.get(word, 1) for word in english.words(sentence)]
assert ids == english.encode(sentence)
print(ids)
print(english.decode(ids))
assert english.vocabulary.unknown(english.words(sentence)) == ["zebra"]

# %% [markdown]
# ## Unknown words: how many?
#
# That depends on how much text the vocabulary was made from. Make it from the first n sentences of the
# training, then read the 2,300 test sentences: which share of their words is unknown, and which share of
# the sentences has an unknown word in it?

# %%
test = [english.words(pair.english) for pair in corpus.test]
sizes = np.array([10, 30, 100, 300, 1000])
unknown = np.zeros((2, 5))  # share of words, share of sentences
for j, n in enumerate(sizes):
    known = {word for pair in corpus.train[:n] for word in english.words(pair.english)}
    missing = [sum(word not in known for word in words) for words in test]
    unknown[:, j] = sum(missing) / sum(map(len, test)), np.mean(np.array(missing) > 0)
    print(f"{n:5} sentences   {len(known):3} words   unknown {unknown[0, j]:6.1%}", end="")
    print(f"   sentences with one {unknown[1, j]:6.1%}")

# %%
figure = curves(
    100 * unknown,
    sizes,
    labels=["unknown words", "sentences with an unknown word"],
    xlabel="training sentences that the vocabulary was made from",
    ylabel="% of the test",
    xscale="log",
    legend=True,
)
caption = "At 100: 8.0 % of the words unknown, most of the sentences spoilt; at 1,000: 0.2 %"
show_figure(figure, "01_unknown", caption)

# %% [markdown]
# Read it at 100: 8.0 % of the words are unknown, which sounds little, and 64 % of the sentences have one. At
# 1,000 hardly any is left, because a grammar made them: its English has 349 words. Human text never runs
# out of new ones: names, numbers, typing errors. So the paper's byte-pair encoding cuts a rare word into
# frequent *pieces*; almost nothing is unknown, and sentences become longer. Here a word is a word.

# %%
assert_allclose(unknown[:, 2], [0.080, 0.639], atol=5e-4)
assert_allclose(unknown[:, 4], [0.002, 0.020], atol=5e-4)
assert n_en == 349 + len(SPECIALS) == 353
assert n_fr == 516
print("the numbers of the text are those of the table")

# %% [markdown]
# ## Sentences to one array
#
# An array has no ragged edge. Rows that are too short are filled with 0 on the right: **padding**. Rows that
# are too long are cut: **truncation**. A cut sentence must still end with `</S>`, or the model learns that
# sentences stop in the middle; so the cut takes one word more.

# %%
texts = ("the cat drinks some milk", "thanks", "i am a student")
rows = [[*english.encode(text), 3] for text in texts]
longest = max(len(row) for row in rows)
padded = np.zeros((3, longest), np.int64)  # (B, T)
for b, row in enumerate(rows):
    for t, index in enumerate(row):
        padded[b, t] = index
print(padded)
assert (padded == pad(rows)).all()

cut = [*rows[0][: 4 - 1], 3]
assert cut == truncate(rows[0], 4)
print("cut to 4:", cut, "=", english.decode(cut))

# %% [markdown]
# Now a batch of pairs. The encoder reads `source`. The decoder reads `target_in`, which starts with `<S>`,
# and is asked for `target_out`, the same words one place earlier, with `</S>` at their end. Column by column:
# having read target_in[:, : t + 1], it should say target_out[:, t]. (How it is kept from reading on is lesson
# 6; why it is all done at once, lesson 11.)
#
# ```math
# target_in    <S>   le    chat   boit   du     lait
# target_out   le    chat  boit   du     lait   </S>
# ```

# %%
examples = [(english.encode(p.english), french.encode(p.french)) for p in corpus.train]
two = {"the cat drinks some milk": "le chat boit du lait", "thanks": "merci"}
small = make_batch([(english.encode(x), french.encode(y)) for x, y in two.items()])
print("source", small.source, "target_in", small.target_in, sep="\n")
print("target_out", small.target_out, sep="\n")
assert (small.target_in[:, 0] == 2).all()  # <S>
assert (small.target_in[0, 1:] == small.target_out[0, :-1]).all()
assert french.decode(small.target_out[1]) == "merci"  # up to </S>

# %% [markdown]
# Ten pairs that fit into ten columns, as *一步步解析Attention is All You Need!* draws them:

# %%
ten = make_batch([e for e in examples if max(map(len, e)) < 10][:10])
style = {"colour": "plain", "edge": "x", "numbers": True}
grids = [
    Grid(ten.source, "x: the encoder reads", mask=ten.source != 0, **style),
    Grid(ten.target_in, "y: the decoder reads", mask=ten.target_in != 0, **style),
]
dark = int((ten.source == 0).sum() + (ten.target_in == 0).sum())
caption = f"A sentence a row: 3 ends each x, 2 starts each y; {dark} dark cells are padding"
show_figure(cell_product(grids), "01_batch", caption)

# %% [markdown]
# ## How much of it is padding?
#
# A network computes the padded cells like any others, and throws the results away. With lengths lₙ (source
# and target each), and all that counts in a batch being its longest:
#
# ```math
# cells    = Σ_batches  B · max lₙ            summed over source and target
# padding  = 1 − Σₙ lₙ / cells
# ```
#
# Three ways to make batches of 64. Every sentence padded to the longest of the whole corpus; sentences taken
# by chance; sentences sorted by length first.

# %%
lengths = example_lengths(examples)  # (N, 2) source and target, <S> or </S> counted


def padding_of(plan):
    """The share of padding, for a list of arrays of sentence numbers."""
    cells = sum(len(batch) * lengths[batch].max(0).sum() for batch in plan)
    return 1 - lengths.sum() / cells


def cut_into(order, size):
    """Batches of at most `size`, as even as can be."""
    return np.array_split(order, -(-len(order) // size))


by_chance = cut_into(rng.permutation(len(lengths)), 64)
in_order = cut_into(np.lexsort((lengths[:, 0], lengths[:, 1])), 64)  # by target, then by source
fixed = 1 - lengths.sum() / (len(lengths) * lengths.max(0).sum())
print(f"lengths {lengths.min(0)} to {lengths.max(0)}, mean {lengths.mean(0).round(1)}")
print(f"all as long as the longest   {fixed:.1%}")
print(f"by chance                    {padding_of(by_chance):.1%}")
print(f"sorted                       {padding_of(in_order):.1%}")

# %% [markdown]
# Sorting has a price: the batches are the same in every epoch, and a sentence always learns in the same
# company. So `plan_batches` adds up to 1.5 tokens to each target length, at random, anew in every epoch,
# sorts by that, and shuffles the batches. Of all pairs of sentences that share a batch, what part is together
# again in the next epoch?

# %%
epochs = [plan_batches(lengths, seed=0, epoch=e, batch_size=64) for e in range(2)]
assert (np.sort(np.concatenate(epochs[0])) == np.arange(len(lengths))).all()  # each once


def together_again(first, second):
    """Of all pairs in a batch of the first plan, the share in one batch of the second."""
    batch_of = np.zeros(len(lengths), int)
    for number, batch in enumerate(first):
        batch_of[batch] = number
    together = sum(n * (n - 1) for batch in second for n in np.bincount(batch_of[batch]))
    return together / sum(len(batch) * (len(batch) - 1) for batch in first)


again = together_again(*epochs)
print(f"planned: {padding_of(epochs[0]):.1%} padding, {again:.1%} together again")
print(f"sorted:  {padding_of(in_order):.1%} padding, {together_again(in_order, in_order):.0%}")

# %%
grids = []
for name, plan in {"by chance": by_chance, "planned by length": epochs[0]}.items():
    ids = make_batch([examples[i] for i in plan[0][:16]]).source  # (16, S)
    grids.append(Grid(ids, name, "x", mask=ids != 0))
caption = "Sixteen English sentences of a batch, a row each: dark cells are padding"
show_figure(cell_product(grids), "01_plan", caption)

# %% [markdown]
# The larger a batch, the longer its longest sentence, and the more filling. By chance it grows towards the
# 45 % of "all as long as the longest"; planned, there are simply enough sentences of each length, until the
# batches become so large that they span several.

# %%
batch_sizes = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
shuffled = np.concatenate(by_chance)
padding = np.zeros((2, 9))
for j, n in enumerate(batch_sizes.tolist()):
    planned = plan_batches(lengths, seed=0, epoch=0, batch_size=n)
    padding[:, j] = padding_of(cut_into(shuffled, n)), padding_of(planned)
figure = curves(
    100 * padding,
    batch_sizes,
    labels=["by chance", "planned by length"],
    xlabel="sentences in a batch",
    ylabel="% of the cells that are padding",
    xscale="log",
)
caption = "At 64 sentences a batch: 40 % padding by chance, 2.4 % planned"
show_figure(figure, "01_padding", caption)

# %% [markdown]
# At 64, planning leaves 2.4 % in place of 40 %. For the same words, batches by chance have 1.6 times as many
# cells to compute.
#
# The paper counts a batch in *tokens*, about 25,000 on each side, so that a step on long sentences costs what
# a step on short ones does. `batch_tokens` does this: longest length times sentences is at most that number.

# %%
by_tokens = plan_batches(lengths, seed=0, epoch=0, batch_tokens=800)
counted = sorted((int(lengths[b].max()), len(b)) for b in by_tokens)
print("longest and sentences:", counted[0], "...", counted[-1])
assert max(longest * size for longest, size in counted) <= 800

assert_allclose([fixed, padding_of(in_order), again], [0.449, 0.010, 0.072], atol=6e-4)
assert_allclose(padding[:, 6], [0.400, 0.024], atol=6e-4)
assert_allclose(padding[0, 6], padding_of(by_chance))
assert_allclose((1 - padding[1, 6]) / (1 - padding[0, 6]), 1.6, atol=0.03)
print("the numbers of the text are those of the table")

# %% [markdown]
# ## What padding must not do
#
# **A sentence must not know with whom it was put into a batch.** Take the simplest layer that looks at a
# whole sentence: the mean of its words' vectors. xₜ is the vector of word t (lesson 2; here made up, that of
# `<PAD>` too), and T the length of the array:
#
# ```math
# wrong   y = 1/T Σₜ xₜ                     all T places
# right   y = 1/n Σₜ mₜ xₜ,  n = Σₜ mₜ        mₜ = 1 where there is a word, 0 at padding
# ```

# %%
table = rng.standard_normal((n_en, 4))  # (V, D)
source = pad(rows)  # (B, T): the cat, thanks, i am a student
real = source != 0  # (B, T) bool
x = table[source]  # (B, T, D)

slow = np.zeros((3, 4))
for b in range(3):
    n = 0
    for t in range(source.shape[1]):
        if real[b, t]:
            slow[b] += x[b, t]
            n += 1
    slow[b] /= n

alone = table[rows[1]]  # (2, D) "thanks </S>", in no batch
print("thanks, alone          ", alone.mean(0))
print("in the batch, wrong    ", x[1].mean(0))
print("in the batch, with m   ", slow[1])
assert_allclose(slow[1], alone.mean(0))

# %% [markdown]
# ## The pair, and what comes back to padding
#
# Which outputs does xₜᵢ of a sentence reach? Number i of its own mean, with slope mₜ/n. The rule of lesson
# 0, what a sum collects backward hands out:
#
# ```math
# yᵢ   = 1/n Σₜ mₜ xₜᵢ
# dxₜᵢ = dyᵢ ∂yᵢ/∂xₜᵢ = mₜ dyᵢ / n
# ```
#
# At padding m = 0, so **the gradient is exactly 0**: what had no say hears nothing. The words of a short
# sentence hear more each (1/n), since each was a larger part of the mean. The cache needs m and n, not x.

# %%


class MeanCache(NamedTuple):
    """What sentence_mean_backward needs."""

    real: Any  # (B, T) bool
    count: Any  # (B, 1) words in each sentence


def sentence_mean(x, real):
    """The mean of each sentence's words. Shapes: x (B, T, D), real (B, T) -> y (B, D)."""
    count = real.sum(-1, keepdims=True)  # (B, 1)
    y = np.where(real[..., None], x, 0).sum(1) / count  # (B, D)
    return y, MeanCache(real, count)


def sentence_mean_backward(dy, cache):
    """Gradient dx (B, T, D) of y = 1/n sum of m x."""
    each = dy / cache.count  # (B, D)
    return np.where(cache.real[..., None], each[:, None, :], 0)


y, cache = sentence_mean(x, real)
assert_allclose(y, slow)
show(cache)

# %% [markdown]
# `np.where`, and not `m * x`: in an array that was never filled a cell may hold NaN, and 0 · NaN is NaN.
#
# The package has this layer in disguise. Attention (lesson 5) with a query of zeros likes all words alike, so
# its weights are 1/n, and `padding_mask(source)` keeps it off the padding. Its output must be our mean, and
# the gradient of its values our dx:

# %%
zeros = np.zeros((3, 1, 1, 4))  # (B, H, T, K): one query a sentence, one head
likes, made = attention(zeros, x[:, None], x[:, None], mask=padding_mask(source))  # (B, 1, 1, D)
assert_allclose(likes[:, 0, 0], y)

dy = rng.standard_normal(y.shape)  # (B, D)
dx = sentence_mean_backward(dy, cache)  # (B, T, D)
_, _, dv = attention_backward(dy[:, None, None], made)
assert_allclose(dv[:, 0], dx)
assert (dx[~real] == 0).all()
print("weights of attention", made.weights[1, 0, 0], "for thanks")

# %%
words = [english.vocabulary.words[i] for i in source[1]]
parts = [
    Grid(x[1], "$x$", "x", numbers=True, rows=words, padded=~real[1]),
    "→",
    Grid(y[1], "$y$", "z", numbers=True),
    "   back:",
    Grid(dy[1], "$dy$", "z", numbers=True),
    "→",
    Grid(dx[1], "$dx$", "x", numbers=True, rows=words, padded=~real[1]),
]
caption = "thanks: padding (dark green) has no say in y, and 0 in dx; a word gets dy / 2"
show_figure(cell_product(parts), "01_mean", caption)

# %% [markdown]
# ## Is it right?

# %%
report = gradcheck((sentence_mean, sentence_mean_backward), x, real)
print(report)
assert report.ok

# %% [markdown]
# And with the mistake that is made here, a backward pass without m:

# %%


def padding_hears(dy, cache):
    """Wrong: every place gets dy / n."""
    return np.repeat((dy / cache.count)[:, None], cache.real.shape[1], axis=1)


report = gradcheck((sentence_mean, padding_hears), x, real)
sentence, place, _ = report.failures[0].entry
print("first wrong entry: sentence", sentence, "place", place)
assert not real[sentence, place]

# %% [markdown]
# Every later lesson that looks across a sentence has this m in some form: attention masks its scores
# (lesson 6), the loss is a mean over words and not over cells (lesson 12). The test is always the one above:
# take a sentence out of its batch; the result must not change.
#
# ## Exercises
#
# `npformer exercise list 1` has them, each graded on examples.
#
# - `npformer exercise start pad`: rows of any lengths, an empty one among them, as one array.
# - `npformer exercise start truncate`: three cases; one of them must keep its end.
# - By hand: sentences of 2, 3 and 7 ids in one batch. How many cells, and which share is padding? (21; 9/21.)
#   And as a batch of the first two and a batch of the third? (13; 1/13.)
#
# To try now, in the terminal: `!english.encode("the cat sat on the mat")`, and
# `!padding_of(plan_batches(lengths, seed=0, epoch=3, batch_size=64))`.
#
# ## Where the documents differ
#
# - *一步步解析Attention is All You Need!* pads every batch to one fixed length, 10 in its demo, and leaves
#   longer sentences out. Here an array is as long as its longest sentence.
# - *图解transformer* chooses one greatest length, pads what is shorter, truncates what is longer, and calls
#   a larger one better but dearer. With batches by length it costs nothing to allow more: only batches that
#   hold a long sentence are wide. It does not say that `</S>` must survive the cut.
# - The paper has one vocabulary of word pieces for both languages, so that "Paris" is one id on both sides
#   (lesson 2 needs that for one table); npformer has one of words for each, unless a dataset is
#   made with `shared=True`.
# - *Attention机制详解（二）* and *The components of the Transformer* begin at vectors.
#
# **Next**, lesson 2 gives every id its vector.

# %% [markdown]
# # 1.1 · Words to ids
#
# *About 20 minutes. You need: shapes of arrays (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - turn sentences into ids, and ids back into sentences;
# - put sentences of different lengths into one array, and cut sentences that are too long;
# - say which array the decoder reads, and which array it has to predict.
#
# `model: [IDS] → embedding → positions → encoder → decoder → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

import npformer
from npformer.data import LANGUAGES, SPECIALS, TextCodec, make_batch, pad, truncate
from npformer.data.corpus import builtin_corpus
from npformer.learn.course import show_figure
from npformer.learn.course.running import SENTENCE, running_example
from npformer.plots import Grid, cell_grid, cell_product, curves

# %% [markdown]
# ## Why ids?
#
# A network multiplies and adds numbers, so it cannot read text. Each sentence is first turned into numbers.
# The picture shows them for the sentence of lesson 0.1 (`00_1_a_transformer_at_work`), as its translator
# reads it.

# %% tags=["plot"]
tokens = running_example().source
read = [*npformer.load("en-de").source_ids(SENTENCE), 0, 0]
looks = {"numbers": True, "colour": "plain", "edge": "x"}
figure = cell_grid([read], rows=["ids"], columns=[*tokens, *["<PAD>"] * 2], **looks)
caption = "Our sentence: an id for each token, 3 for the end, and padding"
show_figure(figure, "01_1_ids", caption)

# %% [markdown]
# 1. The text is split into **tokens**: words and punctuation marks, in lower case.
# 2. Each token is replaced by its **id**. This is its place in the vocabulary, a list of all tokens.
# 3. The id 3 is appended. It marks the end of the sentence.
# 4. If the batch has a longer sentence, the row is filled up with the id 0.
#
# The paper has about 37,000 different tokens for both languages together. They are words and pieces of words.
# From here on we make a vocabulary of our own, in which each token is a whole word or a punctuation mark. It
# is made from the built-in **corpus**: English sentences with French translations, which a program generated
# from a grammar. The **training sentences** are used to train a model, and the **test sentences** to measure
# how good it is.

# %%
corpus = builtin_corpus()
print(len(corpus.train), "pairs for training,", len(corpus.test), "for testing. Three of them:")
for pair in corpus.train[:3]:
    print("-", pair.english, "\n ", pair.french)

# %% [markdown]
# ## From sentences to tokens
#
# A **codec** converts text to ids and back. First it splits the text into lower-case words and punctuation
# marks. An apostrophe stays inside an English word ("didn't"), but it ends a French one: "l'animal" becomes
# "l'" and "animal". The sign "<" is always a token of its own. So no text can imitate one of the special
# tokens below, such as `<S>`.

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
# An id is only a *name*. Token 23 is not larger or better than token 22. Lesson 2.1 (`02_1_embeddings`)
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
show_figure(figure, "01_1_unknown", caption)

# %% tags=["check"]
assert_allclose(unknown[:, 2], [0.080, 0.639], atol=5e-4)
assert_allclose(unknown[:, 4], [0.002, 0.020], atol=5e-4)
assert n_en == 349 + len(SPECIALS) == 353
assert n_fr == 516
print("the numbers of the text agree with the table")

# %% [markdown]
# With 100 sentences, 8.0 % of the words are unknown. This seems little, but 64 % of the sentences contain an
# unknown word. With 1,000 sentences only 0.2 % are unknown, because the grammar uses only 349 English tokens.
# Texts written by people always contain new words: names, numbers, typos. **Byte-pair encoding**, which the
# paper uses, therefore splits rare words into frequent pieces. Then almost nothing is unknown, but sentences
# become longer.
#
# ## Sentences to one array
#
# All rows of an array have the same length. So short sentences are filled with 0 on the right. This is called
# **padding**. Sentences that are too long are cut. This is called **truncation**. A truncated sentence must
# still end with `</S>`, because every sentence that the model reads must have an end. So one more word is
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
# A translation model needs *pairs* of sentences, and it uses the French sentence, the target, twice. The
# encoder reads `source`. The decoder reads `target_in`, which begins with `<S>`. It has to predict
# `target_out`: this array has no `<S>`, so each token stands one place earlier, and it ends with `</S>`.
#
# | place t | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | `target_in` | `<S>` | le | chat | boit | du | lait |
# | `target_out` | le | chat | boit | du | lait | `</S>` |
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
caption = "The id 3 ends each source, and 2 begins each target; the dark cells are padding"
show_figure(cell_product(grids), "01_1_batch", caption)

# %% [markdown]
# ## What the source documents say
#
# > - *一步步解析Attention is All You Need!* shows the same two arrays, x for the encoder and y for the
# >   decoder. It pads every batch to one fixed length, 10 in its demo, and leaves out longer sentences.
# > - *图解transformer* chooses one maximum length, pads shorter sentences and truncates longer ones. It says
# >   that a larger length is better but more expensive. In our code a larger maximum costs little: if
# >   sentences of similar length share a batch, only the batches with a long sentence become wide. The
# >   document does not say that `</S>` must survive truncation.
# > - The paper has one vocabulary of word pieces for both languages, so "Paris" has one id on both sides.
# >   npformer has one vocabulary of words for each language, unless a dataset is made with `shared=True`.
# > - *Attention机制详解（二）* and *The components of the Transformer* begin with vectors.

# %% [markdown]
# ## Summary
#
# - A vocabulary gives each token an id. All unknown tokens get the id of `<UNK>`.
# - `</S>` ends `source` and `target_out`, and `<S>` begins `target_in`.
# - Padding makes all sentences of a batch equally long.
# - Truncation cuts a sentence that is too long, and must keep `</S>`.
# - The decoder reads `target_in` and predicts `target_out`, which contains the next token of each position.

# %% [markdown]
# ## Questions
#
# **Question.** Sentences of 2, 3 and 7 ids form one batch. How many cells does it have, and how much is
# padding?
#
# <details><summary>Answer</summary>
# It has 3 · 7 = 21 cells, and 9 of them are padding. Now put the third sentence into a batch of its own. Then
# there are 2 · 3 + 7 = 13 cells, and only 1 of them is padding. Lesson 22.2
# (`22_2_token_batches_and_tied_embeddings`) makes such batches.
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
# Try this in the terminal: `!english.encode("the cat sat on the mat")`.
#
# **Next** on the main route: lesson 2.1 (`02_1_embeddings`), which gives a vector to every id. Off the route:
# lesson 1.2 (`01_2_what_padding_must_not_do`), a layer whose result does not depend on the padding.

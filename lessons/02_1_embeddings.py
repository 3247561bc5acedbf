# %% [markdown]
# # 2.1 · Embeddings
#
# *About 30 minutes. You need: the gradients of a linear layer (lesson 0.2, `00_2_forward_and_backward`),
# ids and padding (lesson 1.1, `01_1_words_to_ids`).*
#
# **After this lesson you can**
#
# - turn ids into vectors, and explain why this is a matrix product;
# - derive the gradient of the table, and avoid a common mistake in NumPy;
# - train vectors of words, and look for words with similar vectors.
#
# `model: ids → [EMBEDDING] → positions → encoder → decoder → linear → softmax`

# %%
import math
from itertools import pairwise

import numpy as np
from numpy.testing import assert_allclose

import npformer
from npformer import show
from npformer.checking import gradcheck
from npformer.data import LANGUAGES, TextCodec
from npformer.data.corpus import builtin_corpus
from npformer.functional.embedding import embedding, embedding_backward
from npformer.learn.course import show_figure
from npformer.learn.course.running import running_example
from npformer.plots import Grid, attention_map, cell_product, score_bars

rng = np.random.default_rng(2)

# %% [markdown]
# ## Why vectors?
#
# After lesson 1.1 a sentence is a list of ids, for example 4 5 6 4 7. An id is only a name, and a network
# cannot calculate with names. So each token gets a vector, its **embedding**. The entries of these vectors
# are learned during training.

# %% [markdown]
# ## Which words have similar vectors?
#
# The picture shows vectors that a model has learned: those of the translator of lesson 0.1
# (`00_1_a_transformer_at_work`). Each cell compares two words by the **cosine** of the angle between their
# vectors. For two vectors $u$ and $u'$ it is $u \cdot u' / (|u|\, |u'|)$, where $|u|$ is the length of $u$.
# It is 1 for vectors of the same direction, and 0 for vectors at a right angle.

# %% tags=["plot"]
groups = ["woman boy girl", "dog cat horse", "red blue green", "two three four", "street road"]
some = " ".join(groups).split()
translator = npformer.load("en-de")
some_ids = [translator.source_ids(word)[0] for word in some]
vectors = translator.model.source.tokens.weight.value[some_ids]  # (N, D)
vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
cosines = vectors @ vectors.T  # (N, N)
np.fill_diagonal(cosines, 0)  # each word beside itself
figure = attention_map(np.maximum(cosines, 0), some, some)
figure.axes[0].set(xlabel="", ylabel="")
figure.axes[1].set(ylabel="cosine")
caption = "Cosines without the diagonal: .50 on average in a group, .22 between two groups"
show_figure(figure, "02_1_near", caption)

# %% tags=["check"]
group_of = [number for number, group in enumerate(groups) for _ in group.split()]
nearest = cosines.argmax(-1)
assert np.mean([group_of[i] == group_of[j] for i, j in enumerate(nearest)]) > 0.8
same = np.equal.outer(group_of, group_of)
found = [cosines[same & (cosines != 0)].mean(), cosines[~same].mean()]
assert_allclose(found, [0.5, 0.22], atol=0.005)

# %% [markdown]
# All these vectors have a part in common, their mean. So even words of different groups have a cosine
# of .22 on average. Nobody told the model that "red" and "blue" belong together. Words that occur in similar
# sentences got similar gradients, and so similar vectors.
#
# The paper describes embeddings in section 3.4:
#
# > we use learned embeddings to convert the input tokens and output tokens to vectors of dimension d_model.
# > [...] we share the same weight matrix between the two embedding layers and the pre-softmax linear
# > transformation [...]. In the embedding layers, we multiply those weights by √d_model.
#
# So one table has three uses. Before the encoder and the decoder it turns ids into vectors, this lesson's
# topic. At the end, before the softmax, it turns vectors into scores for tokens (lesson 2.2,
# `02_2_the_scale_and_tied_weights`).

# %% [markdown]
# V is the size of the vocabulary. Our example has padding, and "the" occurs three times.

# %%
vocabulary = ["<PAD>", "<UNK>", "<S>", "</S>", "the", "cat", "sees", "dog"]  # V = 8
ids = np.array([[4, 5, 6, 4, 7, 3], [4, 7, 3, 0, 0, 0]])  # (B, T)

# %% tags=["check"]
for row in ids:
    print([vocabulary[i] for i in row])

# %% [markdown]
# ## A table with one row for each token
#
# The table E has one row of D (d_model) numbers for each token of the vocabulary. The numbers are random at
# first. They are parameters, like a weight matrix, and training changes them. The layer copies the rows that
# the ids select, and multiplies them by a constant c. For place n of the batch and component i:
#
# $$y_{ni} = c \cdot E_{\mathrm{id}_n,\, i}$$
#
# The constant c is 1 or √D. Lesson 2.2 explains why the paper uses √D.
# In NumPy one line is enough, because an array of ids as an index returns an array of rows.

# %%
v_size, d_model = 8, 4
c = math.sqrt(d_model)  # 2
table = rng.standard_normal((v_size, d_model)) / math.sqrt(d_model)  # (V, D)
y = c * table[ids]  # (B, T, D)

y, cache = embedding(ids, table, scale=c)  # the function of the package
show(cache)

# %% tags=["check"]
slow = np.zeros((2, 6, d_model))  # (B, T, D)
for b in range(2):
    for t in range(6):
        for i in range(d_model):
            slow[b, t, i] = c * table[ids[b, t], i]
assert_allclose(c * table[ids], slow)
assert_allclose(y, slow)
assert_allclose(y[0, 0], y[1, 0])  # "the" has the same vector at every place

# %% [markdown]
# ## The lookup is a matrix product
#
# To find the gradient of the table, we write the same computation as a matrix product. We write id 4 as a row
# of V numbers that is 1 in column 4 and 0 everywhere else. This is called a **one-hot** vector. If we
# multiply it by the table, row 4 is multiplied by 1, and all other rows by 0. So the product is row 4. The
# matrix O has the one-hot vectors of all N = B · T ids as its rows. (In lesson 0.2, O was a width.) Then
#
# $$\sum_v O_{nv} E_{vi} = E_{\mathrm{id}_n,\, i}$$
#
# For all places and with the constant c, this is the matrix product
#
# $$Y = c\, O E$$
#
# The shapes are (N, D) = (N, V) (V, D). So an embedding is the linear layer of lesson 0.2 without a bias. Its
# input is one-hot, and its weight matrix is E.

# %%
flat = ids.reshape(-1)  # (N,), N = B · T = 12
one_hot = np.zeros((12, v_size))  # (N, V)
one_hot[np.arange(12), flat] = 1

# %% tags=["check"]
assert_allclose(c * one_hot @ table, y.reshape(12, d_model))

# %% tags=["plot"]
tokens_read = [vocabulary[i] for i in ids[0]]
ones = one_hot.astype(int)
grids = [
    Grid(ones[:6], "$O$", numbers=True, rows=tokens_read, shade=True),
    "×",
    Grid(table, "$E$", "weight", edge="x", numbers=True, rows=vocabulary),
    "=",
    Grid(table[ids[0]], "$O E$", "x", numbers=True),
]
caption = 'The first sentence: each 1 selects a row of the table; both "the" select the same row'
show_figure(cell_product(grids), "02_1_look_up", caption)

# %% [markdown]
# Nobody computes embeddings in this way. The paper has batches of 25,000 tokens and a vocabulary of 37,000.
# So O would have 925 million entries of 4 bytes, or 3.7 GB, and all but 25,000 of them would be 0. But the
# product helps us to find the gradient.

# %% tags=["check"]
assert 25_000 * 37_000 == 925_000_000
assert 25_000 * 37_000 * 4 / 1e9 == 3.7

# %% [markdown]
# ## The gradient of the table
#
# In lesson 0.2 the gradient of the weights was $dW = X^\top dY$. Here the input X is O, and the weight is E:
#
# $$
# \begin{aligned}
# dE      &= c\, O^\top dY \\
# dE_{vi} &= c \sum_n O_{nv}\, dy_{ni} = c \sum_{n:\, \mathrm{id}_n = v} dy_{ni}
# \end{aligned}
# $$
#
# The last sum contains only the places at which token v stands. This is the rule of lesson 0.2 again: **the
# forward pass copied row v to all these places, so the backward pass adds up their gradients.** The gradient
# of a token that does not occur in the batch is 0.
#
# In code we do not need O. For each place n, we add $c\, dy_n$ to the row of dE that belongs to the token at
# this place. This is called a **scatter-add**. The next cell contains two lines for it that seem to
# do the same. Only the second is right.

# %%
dy = rng.standard_normal(y.shape)  # (B, T, D)
drows = dy.reshape(12, d_model)  # (N, D)

lost = np.zeros_like(table)
lost[flat] += c * drows  # WRONG

dtable = np.zeros_like(table)
np.add.at(dtable, flat, c * drows)  # right

# %% tags=["check"]
for token in ("the", "cat"):
    v = vocabulary.index(token)
    print(f"{token} ({(flat == v).sum()} ×)")
    print("   [ids] +=  ", lost[v])
    print("   add.at    ", dtable[v])

dtable_slow = np.zeros_like(table)  # (V, D)
for n in range(12):
    for i in range(d_model):
        dtable_slow[flat[n], i] += c * drows[n, i]
assert_allclose(dtable, dtable_slow)
assert_allclose(dtable, c * one_hot.T @ drows)
assert_allclose(dtable, embedding_backward(dy, cache))
assert_allclose(dtable[4], c * (dy[0, 0] + dy[0, 3] + dy[1, 0]))  # "the", three times
assert (dtable[1] == 0).all()  # <UNK> is not in the batch
assert_allclose(lost[4], c * dy[1, 0])  # only the last place

# %% [markdown]
# **Question.** Why is the row of "the" wrong in the first version, while the row of "cat" is right?
#
# <details><summary>Answer</summary>
# NumPy first reads all rows, then adds, and then writes all rows. The row of "the" is written three times,
# and each result replaces the one before. Only the last one stays. "cat" occurs once, so nothing is replaced.
# The function add.at adds every contribution.
# </details>
#
# There is no error message. In the corpus of lesson 1.1, "the" occurs 54,526 times in 29,152 sentences, which
# is 120 times in a batch of 64. With the wrong line, 119 of these 120 gradients would be lost.

# %% tags=["plot"]
grids = [
    Grid(ones.T, "$O^T$", numbers=True, rows=vocabulary, shade=True),
    "×",
    Grid(drows, "$dy$", "z", numbers=True),
    "× 2   =",
    Grid(dtable, "$dE$", "weight", edge="x", numbers=True, rows=vocabulary),
]
caption = 'Row "the" contains three ones, so it adds up three rows of dy; <UNK> and <S> get 0'
show_figure(cell_product(grids), "02_1_scatter_add", caption)

# %% tags=["plot"]
run = running_example()
lengths = np.linalg.norm(run.gradients["source.tokens.y"], axis=-1)  # (S,)
figure = score_bars([1000 * lengths], [run.source], decimals=1)
caption = "Our sentence in the translator: the length of each embedding's gradient, times 1000"
show_figure(figure, "02_1_running", caption)

# %% [markdown]
# The figure shows the gradients that the loss of the translation gives to the embeddings of our sentence. The
# gradient of "snow" is the longest: a small change of this embedding can change the loss most.
#
# ## Check the gradient

# %%
report = gradcheck((embedding, embedding_backward), ids, table, scale=c)
print(report)

# %% tags=["check"]
assert report.ok
assert round(64 * 54_526 / 29_152) == 120

# %% [markdown]
# ## Train the table
#
# "You shall know a word by the company it keeps" (Firth, 1957). So we train a model that predicts the
# neighbours of a word from its embedding. Its vocabulary contains the 150 most frequent tokens of the corpus
# and the four special tokens. We count neighbours in 3,000 sentences: row i has V counts for the tokens
# directly before token i, and V more for those directly after it. The array `neighbours` holds
# log(1 + count), so that frequent pairs do not dominate.

# %% tags=["check"]
corpus = builtin_corpus()
codec = TextCodec.from_lines([p.english for p in corpus.train], language=LANGUAGES["en"])
words, V = codec.vocabulary.words[:154], 154
counts = np.zeros((V, 2 * V))  # (V, 2 V): the token before, the token after
for p in corpus.train[:3000]:
    sentence = [i if i < V else 1 for i in codec.encode(p.english)]
    for before, after in pairwise(sentence):
        counts[after, before] += 1
        counts[before, V + after] += 1
neighbours = np.log(1 + counts)

# %% [markdown]
# The model is an embedding and a linear layer without a bias, with the squared error of lesson 0.0
# (`00_0_learn_something_in_fifteen_minutes`) as its loss. In each step we draw 64 tokens. The table gets a
# larger learning rate than W, because a row has a gradient only when its token is drawn.

# %%
E = rng.standard_normal((V, 8)) / math.sqrt(8)  # (V, D)
W = rng.standard_normal((8, 2 * V)) / math.sqrt(8)  # (D, 2 V)
losses = []
for _ in range(300):
    batch = rng.integers(4, V, 64)  # (N,) ids
    h = E[batch]  # forward: (N, D)
    e = h @ W - neighbours[batch]  # (N, 2 V)
    losses.append((e * e).sum(-1).mean())
    de = 2 * e / 64  # backward
    dW, dh = h.T @ de, de @ W.T
    dE = np.zeros_like(E)
    np.add.at(dE, batch, dh)
    W -= 0.05 * dW  # update
    E -= 0.5 * dE

print(f"loss {np.mean(losses[:10]):.3f} → {np.mean(losses[-10:]):.3f}")
unit = E[4:] / np.linalg.norm(E[4:], axis=-1, keepdims=True)
nearest_words = {}
for word in ("street", "was", "small", "because", "boy", "bank"):
    near = (unit @ unit[words.index(word) - 4]).argsort()[::-1]  # by the cosine
    nearest_words[word] = [words[4 + i] for i in near[1:4]]
    print(f"{word:8}", nearest_words[word])

# %% tags=["check"]
assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 2
assert set(nearest_words["was"]) <= {"is", "isn't", "were", "are"}
assert {"road", "avenue", "river"} == set(nearest_words["street"])
known = neighbours[4:]  # without the special tokens
assert_allclose(((known - known.mean(0)) ** 2).sum(-1).mean(), 81.6, atol=0.05)
left = np.linalg.svd(known, compute_uv=False)[8:]  # what 8 numbers for a token cannot express
assert_allclose((left**2).sum() / len(known), 38.4, atol=0.05)

# %% [markdown]
# If the model predicted the mean row for every token, the loss would be 81.6. No table of 8 numbers for each
# token can make it smaller than 38.4. The words near "was" are now other forms of "to be", and those near
# "street" are other places. The model does not know what a street is. It only knows that "street", "road" and
# "river" have similar neighbours.

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* draws three tokens, "Je suis étudiant", with a vector of four numbers each. It adds
# >   positions and does not mention the constant c.

# %% [markdown]
# ## Summary
#
# - An embedding selects rows of a table. It is a linear layer with one-hot input.
# - The forward pass copies a row to each place of its token, so the gradient adds up all places.
# - In NumPy this is `np.add.at`, because `table[ids] += …` loses repeated ids.
# - The gradient of a token that does not occur in the batch is 0.
# - Words with similar neighbours get similar vectors.

# %% [markdown]
# ## Questions
#
# **Question.** The sentence is "the the", with dy = (1, 0) and (0, 1), and c = 2. What is the row "the" of dE
# after `np.add.at`, and what is it after `dE[ids] += c * dy`?
#
# <details><summary>Answer</summary>
# (2, 2) after `np.add.at`, and (0, 2) after `dE[ids] += c * dy`.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 2` lists the exercises. The gradient checker grades the backward passes.
#
# - `npformer exercise start embedding`: write the forward pass.
# - `npformer exercise start embedding-backward`: compute the gradient of an embedding table with a
#   scatter-add.
#
# In the terminal, try `!np.diag(one_hot.T @ one_hot)`. What does it count?
#
# **Next** on the main route: lesson 3.1 (`03_1_positions`), vectors that tell the model the order of the
# words. Off the route: lesson 2.2 (`02_2_the_scale_and_tied_weights`), how long the vectors are, and a table
# that is used twice.

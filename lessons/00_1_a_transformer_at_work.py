# %% [markdown]
# # 0.1 · A Transformer at work
#
# *About 15 minutes. You need: a little Python. There is no theory in this lesson.*
#
# **After this lesson you can**
#
# - translate sentences with a trained Transformer;
# - draw a picture of its attention, and say what the picture shows;
# - find the chapter of this course for each part of the architecture.
#
# `[MODEL]: ids → embedding → positions → encoder → decoder → linear → softmax`

# %%
import numpy as np

import npformer
from npformer.learn.course import show_figure
from npformer.learn.figures.course_map import course_map
from npformer.plots import attention_map

# %% [markdown]
# ## Translate a sentence
#
# npformer contains a small **Transformer** that translates English into German. It was trained on 29,000
# descriptions of photographs. The next cell loads this model and translates one sentence.

# %%
translator = npformer.load("en-de")
sentence = "Two dogs are playing in the snow."
translation = translator.translate(sentence)
print(translation)

# %% tags=["check"]
assert translation == "Zwei Hunde spielen im Schnee."

# %% [markdown]
# Each of chapters 1 to 12 explains a part of a Transformer, and shows what it does with our sentence.
#
# **Your turn.** Translate another description of a photograph. In the terminal,
# type for example `!translator.translate("A woman is reading a book.")`. In a notebook, change the cell
# above.
#
# ## See its attention
#
# The model writes one German **token** (a word or a punctuation mark, in lower case) after another. Before it
# writes a token, it computes a weight for each token of the English sentence. This computation is called
# **attention**. A large weight means that the model takes much from this token.
#
# The part that writes, the **decoder**, consists of four **layers**, one after the other. Each layer has four
# **heads**, which compute weights of their own. The next cell takes the mean over the heads of the third
# layer. The picture calls a German token the "query" and an English token the "key" (chapter 4).

# %%
attention = translator.attention(sentence)
english, german = attention.source_tokens, attention.predicted_tokens
weights = attention.weights["cross"][2].mean(0)  # (T, S): German, English tokens
for word in ("hunde", "schnee"):
    row = weights[german.index(word)]
    print(f"{word:7} → {english[row.argmax()]:7} weight {row.max():.2f}")

# %% tags=["plot"]
figure = attention_map(weights, german, english)
caption = "A row for each German token, a column for each English one; darker: a larger weight"
show_figure(figure, "00_1_attention", caption)

# %% [markdown]
# In the row of "hunde" the largest weight is that of "dogs", and in the row of "schnee" that of "snow".
# Nobody told the model which words belong together. It learned this from pairs of sentences.
#
# The row of "im" is different. This word means "in the", and its form depends on the noun after it, "Schnee".
# "in" has the weight .66, but "the" has only .03, and "snow" .06. More goes to the full stop (.09) and to
# `</S>`, which marks the end of the sentence (.11). The weights of a row must sum to 1. A model often has
# weight left over, and gives it to tokens that stand for no word. Whether a large weight also *decides* which
# word the model writes is another question. Lesson 15.4 (`15_4_gradient_times_input`) answers it by a
# measurement.

# %% tags=["check"]
best = {token: english[row.argmax()] for token, row in zip(german, weights, strict=True)}
pairs = {"zwei": "two", "hunde": "dogs", "spielen": "playing", "schnee": "snow"}
assert {token: best[token] for token in pairs} == pairs
assert all(weights[german.index(token)].max() > 0.5 for token in pairs)
shares = dict(zip(english, weights[german.index("im")], strict=True))
spread = [shares[token] for token in ("in", "the", "snow", ".", "</S>")]
assert np.allclose(spread, [0.66, 0.03, 0.06, 0.09, 0.11], atol=0.006)
assert np.allclose(weights[german.index("spielen")].max(), 0.84, atol=0.006)
config = translator.model.config
assert (config.n_layers, config.n_heads) == (4, 4)
assert (config.d_model, config.target_vocab) == (128, 10_000)

# %% [markdown]
# ## The architecture
#
# The figure shows the parts of the model as in the paper *Attention Is All You Need*, where the data flow
# from bottom to top. The column at the left is the encoder, which reads the English sentence. The column at
# the right is the decoder, which writes the German one. The vectors of the encoder enter the decoder in its
# middle. The sizes in the figure are those of the paper. In our small model, each token has a vector of 128
# numbers. At the end, the model gives a probability for each of the 10,000 tokens that it knows, at
# each place of the German sentence. The function that computes these probabilities is the *softmax*. The
# number beside each part is that of the chapter that explains it.

# %% tags=["plot"]
caption = "The Transformer of the paper: beside each part stands the chapter that explains it"
show_figure(course_map(), "00_1_map", caption)

# %% [markdown]
# Every lesson begins with a line that names parts of the model, of one of its layers, or of its training. The
# part that the lesson explains stands in brackets and in capitals. These are the chapters:
#
# | chapter | you build |
# |---|---|
# | 0 | one layer, its backward pass and a gradient check |
# | 1–3 | the input: ids, embeddings, positions |
# | 4–7 | attention, masks and heads |
# | 8–12 | the other parts: add & norm, feed-forward, encoder, decoder, loss |
# | 13–14 | training, and the search for a translation |
# | 15–16 | measurements: what attention learns, and where the time goes |
# | 17–21 | models before and after the Transformer |
# | 22 | a translator like the one above |
# | 23–25 | a GPT of today: a model that continues a text |
# | 26–27 | newer layers and optimizers, and what is done with a trained language model |

# %% [markdown]
# ## One gradient check
#
# A model learns with the help of **gradients**, the derivatives of its loss. In this course you write the
# code of all gradients yourself, so you need a test for it. The **gradient check** compares a gradient with a
# measured derivative. Here it tests attention with two heads.

# %%
layer = npformer.MultiHeadAttention(d_model=8, n_heads=2, dtype=np.float64)
x = np.random.default_rng(0).standard_normal((1, 3, 8))  # 1 sentence, 3 tokens, 8 numbers each
report = npformer.gradcheck(layer, x)
print("all gradients correct:", report.ok)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# Lesson 0.2 shows the whole report, and lesson 0.3 (`00_3_measured_derivatives`) explains how the check
# works.

# %% [markdown]
# ## What the source documents say
#
# > This course follows one paper and four documents, and it quotes them by their titles. In many lessons, a
# > section like this one compares them.
# >
# > - *Attention Is All You Need* (Vaswani et al., 2017), "the paper": the Transformer, its formulas and its
# >   experiments.
# > - *一步步解析Attention is All You Need!* (jianshu; no author is named): each step as TensorFlow code, four
# >   similarity functions, and all masks.
# > - *图解transformer* (张贤 and the project datawhale), after Jay Alammar's *The Illustrated Transformer*:
# >   pictures with small numbers, the loss, and PyTorch code.
# > - *Attention机制详解（二）* (zhihu; no author is named): the ideas behind each part, and the code of the
# >   library tensor2tensor.
# > - *The components of the Transformer* (Paperspace blog; no author is named), in a Chinese translation:
# >   older kinds of attention, and Keras code.
# >
# > The command `npformer index` lists every passage of them with its lesson and its code.

# %% [markdown]
# ## Summary
#
# - A Transformer reads the tokens of one sentence and writes the tokens of another.
# - For each token that it writes, attention computes a weight for each token that it has read.
# - The encoder reads the English sentence; the decoder writes the translation.
# - The line at the top of each lesson shows which part of the architecture it explains.
# - A gradient check tells you whether the code of a gradient is right.

# %% [markdown]
# ## Questions
#
# **Question.** In the picture of the attention, which English token has the largest weight in the row of
# "spielen"? What does this German word probably mean?
#
# <details><summary>Answer</summary>
# It is "playing", with a weight of .84. The German word "spielen" means "to play".
# </details>

# %% [markdown]
# ## Exercises
#
# - Run `npformer attention --model en-de "two dogs are playing in the snow"` in a shell. It draws the weights
#   of all heads.
# - Run `npformer explore --model en-de "A dog runs." --open` in a shell. It opens a page with every number of
#   the model, forward and backward.
# - Print `translator.attention("A man is riding a bicycle.").translation`. Which English words have no German
#   word of their own?
#
# **Next**: lesson 0.2 (`00_2_forward_and_backward`), how a gradient is computed and how it is checked.

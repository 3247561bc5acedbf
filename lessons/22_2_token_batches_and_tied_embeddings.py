# %% [markdown]
# # 22.2 · Batches by tokens, and tied embeddings
#
# *About 30 minutes. You need: subwords (lesson 22.1, `22_1_byte_pair_encoding`), batches and padding (lesson 1,
# `01_words_to_ids`), label smoothing and tied weights (lesson 12.3, `12_3_label_smoothing_and_tied_weights`).*
#
# **After this lesson you can**
#
# - build batches with a fixed number of tokens and little padding;
# - share one embedding table between source, target and output, and derive its gradient;
# - choose dropout and label smoothing for a small corpus.
#
# `text → [subwords] → [EMBEDDING] → [encoder] → [decoder] → [LINEAR] → [softmax]`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig, data, show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import SubwordCodec, make_batch
from npformer.data.corpus import builtin_corpus
from npformer.learn.course import show_figure
from npformer.plots import curves
from npformer.training.presets import find_preset

rng = np.random.default_rng(22)

# %% [markdown]
# ## The data
#
# We use the short sentences of lesson 22.1. To save time, a vocabulary of whole words is enough here, because
# batches and embeddings do not depend on how the tokens were made. We take the 4,000 pairs and turn each
# sentence into ids. One list of tokens serves both languages.

# %%
pairs = [pair for pair in builtin_corpus().train if pair.family == "plain"]
train = [pair for pair in pairs if len(pair.english.split()) <= 7][:4000]
plain = SubwordCodec(data.Vocabulary(data.SPECIALS))  # only to normalize text
texts = [[plain.normalise(text).split() for text in pair[:2]] for pair in train]
words = sorted({word for pair in texts for text in pair for word in text})
vocabulary = data.Vocabulary((*data.SPECIALS, *words))

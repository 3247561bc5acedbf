# %% [markdown]
# # 17.5 · Why recurrence is sequential, and what was measured
#
# *About 35 minutes. You need: additive and global attention (lesson 17.4,
# `17_4_additive_and_global_attention`), reasons for self-attention (lesson 10.4, `10_4_why_self_attention`).*
#
# **After this lesson you can**
#
# - say which computations of a recurrent translator must wait for each other;
# - count them for any model with an array that records its history;
# - explain why global attention can be computed for all tokens at once, and additive attention cannot;
# - compare recurrent translators and Transformers fairly, and read the result with care.
#
# `recurrent model: embedding → [RECURRENT LAYER] → [ATTENTION] → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig, show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import make_batch
from npformer.learn.course import show_figure
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.plots import curves

rng = np.random.default_rng(17)

# %% [markdown]
# ## What must be computed one after another
#
# With attention, recurrent networks translated well. Why were they replaced? *The components of the
# Transformer* gives the reason: to process step t, encoder and decoder must wait for the t − 1 steps before.
# The paper says the same in section 1:
#
# > This inherently sequential nature precludes parallelization within training examples
#
# A GPU is fast because it does thousands of multiplications at the same time. This is of no use if each
# multiplication needs the result of the one before. So the number of multiplications is not the only cost.
# The second cost is the length of the longest *chain* of products in which each needs the one before. We call
# it the **sequential depth**.
#
# | | the longest chain, for a sentence of length n |
# |---|---|
# | recurrent network | n time steps |
# | Transformer | its layers, for any n |

# %% [markdown]
# We measure this depth for whole models. For this we use a special array. It stores the length of the longest
# chain of matrix products that led to it. NumPy lets a class change what happens when a function is applied
# to its arrays. The class `Deep` does two things: the result of each function has the largest depth of its
# inputs, and a matrix product adds 1.
#
# You do not need to understand every line of this cell to understand the measurement.

# %%


class Deep(np.ndarray):
    """An array with .depth, the longest chain of matrix products that led to it."""

    def __array_finalize__(self, parent):
        self.depth = getattr(parent, "depth", 0)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **settings):
        y = getattr(ufunc, method)(*map(np.asarray, inputs), **settings)
        return after(y, inputs, ufunc is np.matmul)

    def __array_function__(self, function, types, inputs, settings):
        y = super().__array_function__(function, types, inputs, settings)
        return after(y, [a for x in inputs for a in (x if isinstance(x, list) else [x])])


def after(y, inputs, more=0):
    y = np.asarray(y).view(Deep)
    y.depth = max(getattr(array, "depth", 0) for array in inputs) + more
    return y


def depth(model, n):
    """The depth of the logits for n source tokens and n target tokens."""
    for parameter in model.parameters():
        parameter.value = parameter.value.view(Deep)
    return model.forward(np.full((1, n), 5), np.full((1, n), 5))[0].depth


# %% [markdown]
# We compare four recurrent translators and a Transformer with two encoder layers and two decoder layers. Each
# model reads n tokens and writes n tokens.
#
# **Question.** What do you expect if n is doubled?
#
# <details><summary>Answer</summary>
# In the recurrent translators the chain goes through n time steps of the encoder and n of the decoder. So the
# depth should double. In the Transformer it should not depend on n.
# </details>

# %%
vocabularies = {"source_vocab": 12, "target_vocab": 12}
lengths, systems = [8, 16, 32], {}
for name in ("none", "additive", "global", "global with input feeding"):
    settings = {"attention": name.split()[0], "feeding": "feeding" in name}
    config = RecurrentConfig(**vocabularies, d_model=8, d_hidden=8, **settings)
    systems[name] = RecurrentTranslator(config)
systems["Transformer"] = Transformer(TransformerConfig.architecture("small", **vocabularies))
depths = {name: [depth(model, n) for n in lengths] for name, model in systems.items()}
for name, found in depths.items():
    print(f"{name:26} depth for n = 8, 16, 32:", *found)

# %% tags=["check"]
formulas = {"none": (2, 2), "additive": (5, 3), "global": (2, 6)}
formulas |= {"global with input feeding": (6, 2), "Transformer": (0, 29)}
for name, (each, more) in formulas.items():
    assert depths[name] == [each * n + more for n in lengths]

# %% tags=["plot"]
axes = {"xlabel": "n, tokens of the source and of the target", "ylabel": "sequential depth"}
values, names = np.array(list(depths.values())), list(depths)
figure = curves(values, lengths, labels=names, legend=True, **axes)
caption = "The depth of recurrent translators grows with n; that of the Transformer does not"
show_figure(figure, "17_5_depth", caption)

# %% [markdown]
# For n tokens the depths are:
#
# - without attention 2n + 2, with global attention 2n + 6;
# - with additive attention 5n + 3, with input feeding 6n + 2;
# - for the Transformer 29, for any n.
#
# Global attention adds only four products at the end. The cell does not need the context $c_t$. So
# **attention for all decoder steps can be computed at once**, after all states are known. In Bahdanau's
# decoder, the cell needs $c_t$. So attention becomes a part of each time step. Input feeding has the same
# effect.
#
# **Question.** Does a larger batch make the chain shorter?
#
# <details><summary>Answer</summary>
# No. A larger batch makes each product larger, but the chain stays as long.
# </details>
#
# **Your turn.** In the terminal, try `!depth(systems["Transformer"], 64)` and the same for the other systems.

# %% [markdown]
# ## A gradient check of a whole translator
#
# Before we measure translators, we check one as a whole: embedding, bidirectional encoder, additive
# attention, GRU decoder and loss. The batch contains padding in the source and in the target. Dropout is on,
# with the same seed in every evaluation.

# %%
sizes = {"d_model": 4, "d_hidden": 6, "cell": "gru", "attention": "additive", "dropout": 0.2}
small = RecurrentTranslator(RecurrentConfig(**vocabularies, **sizes), rng=rng, dtype=np.float64)
batch = make_batch([([5, 8, 7], [6, 9]), ([4], [10, 5, 11])])
report = gradcheck(ModelWithLoss(small), *batch, train=True, rng=7)
worst = max(report.rows, key=lambda row: row.error)
print(f"{len(report.rows)} rows, the largest error {worst.error:.0e} in {worst.tensor}")
cache = small.forward(*batch.inputs)[1].decoder.steps[0].attention
show(cache)

# %% tags=["check"]
assert report.ok
assert_allclose(cache.weights.sum(-1), 1)

# %% [markdown]
# ## Measured: the whole family
#
# The package can train all of these translators on its built-in corpus. For example,
# `npformer train --architecture rnn-global` trains Luong's model. The other architectures are:
#
# - `rnn`, `rnn-additive` and `rnn-global-feeding`;
# - `rnn-local-m` and `rnn-local-p`, the local attention of chapter 18;
# - `universal`, the Universal Transformer of chapter 21.
#
# The command `npformer family --measure` trains all of them and a Transformer, and compares them. To be fair,
# all models have the same number of parameters, within 2 %, and the same **processor time** for training.
#
# **Question.** Why not the same number of training steps?
#
# <details><summary>Answer</summary>
# Because the steps of some systems take longer. With the same processor time, such a system makes fewer
# steps.
# </details>
#
# The learning rate and the initialization of each system were found by the same small search on validation
# data, with `npformer family --search`.

# %% [markdown]
# The next cell contains the result of this command. `MEASURED` has one line for each system:
#
# - the number of its training steps;
# - the share of held-out sentences whose whole translation is correct, in per cent, for each seed;
# - the same for sentences of 1 to 6, 7 to 9, 10 to 12, and 13 or more English words, as means over the seeds.

# %%
MADE = "2026-11-23; x86_64, one BLAS thread; 3000 steps of 64 sentences, seeds 0 to 2"
CORPUS = "the built-in corpus, 29,152 training pairs; 111 to 148 s of processor time each"
MEASURED = {
    "LSTM, no attention": (4014, [56.2, 58.6, 60.6], [62.9, 50.5, 65.8, 56.7]),
    "additive (Bahdanau)": (2130, [90.9, 96.4, 89.1], [94.2, 93.4, 93.1, 90.1]),
    "global (Luong)": (3109, [96.3, 96.2, 93.4], [96.7, 98.1, 93.9, 94.1]),
    "global, input feeding": (3220, [92.2, 93.9, 91.5], [96.7, 97.1, 91.0, 89.4]),
    "local-m": (3054, [95.9, 95.7, 96.7], [96.0, 97.3, 95.0, 96.1]),
    "local-p": (3026, [96.7, 93.8, 93.4], [97.1, 97.3, 92.2, 93.8]),
    "Universal Transformer": (1833, [97.8, 97.7, 97.9], [98.2, 96.9, 97.4, 98.4]),
    "Transformer": (3000, [99.3, 99.3, 99.1], [98.9, 99.5, 99.0, 99.3]),
}

# %% [markdown]
# The table shows the mean and the range over the seeds. The last line lists the systems whose range overlaps
# with the range of the system with the highest mean.

# %%
print(MADE, CORPUS, sep="\n")
print(f"{'':22} steps    mean   range           1-6    7-9  10-12    13+")
for name, (steps, correct, by_length) in MEASURED.items():
    shares = " ".join(f"{share:6.1f}" for share in by_length)
    extremes = f"{min(correct):.1f}-{max(correct):.1f} %"
    print(f"{name:22} {steps:5} {np.mean(correct):6.1f} %  {extremes:13} {shares}")
exact = {name: row[1] for name, row in MEASURED.items()}
best = max(exact, key=lambda name: np.mean(exact[name]))
near = [name for name in exact if name != best and max(exact[name]) >= min(exact[best])]
print("highest mean:", best, "   ranges that overlap with it:", ", ".join(near) or "none")

# %% tags=["check"]
assert len({len(values) for values in exact.values()}) == 1
assert all(0 <= share <= 100 for values in exact.values() for share in values)

# %% [markdown]
# Read such a table with care. Each seed gives other numbers, so a difference that is smaller than the range
# over the seeds shows nothing.
#
# **Question.** The source documents say that the Transformer is faster. Would you see this here, with one
# processor and short sentences?
#
# <details><summary>Answer</summary>
# Hardly. A single processor computes one product after another anyway. So the steps of a recurrent network
# are not much slower than those of a Transformer. The sequential depth is a disadvantage on a GPU, which
# could compute independent products at the same time.
# </details>
#
# Three settings can matter more than the kind of attention:
#
# - **The steps of the search.** A first search judged each learning rate after 300 steps, and chose .01 for
#   global attention. With this rate, global attention translated only 77 % of the sentences, even after 1.5
#   times the training. Judged after 1,500 steps, .004 is the best rate. Short trainings prefer rates that are
#   too high.
# - **The scale of the embedding.** With token vectors of length 1, the first states are near 0, and a
#   recurrent network learns slowly. If they are multiplied by $\sqrt{D}$, as in the Transformer, the
#   validation loss of `rnn-global` after 300 steps is .24 instead of .94. This was measured on a smaller form
#   of the built-in corpus, with one seed.
# - **The time of the training.** On that corpus, the Universal Transformer translated 87.9 % of the sentences
#   correctly after 46 seconds, and 98.4 % after 64 seconds.

# %% [markdown]
# ## Summary
#
# - In a recurrent network, each time step waits for the one before; this chain grows with the sentence.
# - Global attention adds only four products to the chain, since no state needs a context.
# - Additive attention and input feeding make attention a part of every time step.
# - The depth of a Transformer depends on its layers, and not on the length of the sentence.
# - A fair comparison has equal parameters, equal time, tuned learning rates and several seeds.

# %% [markdown]
# ## Questions
#
# **Question.** Is the Transformer's depth also constant while it *translates*?
#
# <details><summary>Answer</summary>
# No. In training, all target tokens are known, so all positions are computed at once. In translation, each
# token must be known before the next one is computed (lesson 14.1, `14_1_greedy_search_and_beam_search`).
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 17` lists the exercises of this chapter.
#
# - By hand: why does additive attention need five products for each pair of a source token and a target
#   token, and not two? Follow one step of the decoder from $h_{t-1}$ to $h_t$.
# - With code: measure the depth of an encoder that is not bidirectional.
#
# **Next**: lesson 18.1 (`18_1_local_attention`), attention to a part of the source.

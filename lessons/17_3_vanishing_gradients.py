# %% [markdown]
# # 17.3 · Vanishing gradients, and a sentence in one vector
#
# *About 35 minutes. You need: LSTM and GRU cells (lesson 17.1, `17_1_lstm_and_gru_cells`), backpropagation
# through time (lesson 17.2, `17_2_backpropagation_through_time`).*
#
# **After this lesson you can**
#
# - explain why the gradient of a recurrent network vanishes or explodes, and measure it;
# - say under which condition an LSTM avoids this, and how its bias is chosen;
# - describe the first neural translators, whose encoder returned a single vector;
# - measure what such a vector fails to store.
#
# `recurrent model: embedding → [RECURRENT LAYER] → attention → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import make_batch
from npformer.functional import recurrent
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.nn import Recurrent
from npformer.plots import curves
from npformer.training.optimizer import Adam, clip_global_norm, cosine

rng = np.random.default_rng(7)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Two problems of recurrent networks
#
# *Attention机制详解（二）* motivates self-attention with a sentence that contains "bank" and "river". A
# recurrent network needs information from "river" to understand "bank", and this information must pass
# through all time steps between them. The document names two problems: this is slow, and it works badly over
# long distances. Lesson 17.5 (`17_5_why_recurrence_is_sequential`) measures the first problem. This lesson
# measures the second.
#
# The second problem has two sides. In the backward pass, the gradient must reach tokens that were read long
# ago. In the forward pass, the state must store what the network will need later.

# %% tags=["plot"]
figure = shape_flow(
    "h₁ h₂ h₃ loss",
    {"h₂": "cell: h₁", "h₃": "cell: h₂", "loss": "…: h₃"},
    {"h₁": "N", "h₂": "N", "h₃": "N", "loss": "1"},
)
caption = "Does the last state contain the first token, and how long is its gradient there?"
show_figure(figure, "17_3_shapes", caption)

# %% [markdown]
# ## The gradient from one time step to the one before
#
# From step to step, the gradient of the hidden state is multiplied by a Jacobian. For the simplest cell,
# $h_t = \tanh(x_t W + h_{t-1} U)$, it is
#
# $$dh_{t-1} = \left(dh_t \odot (1 - h_t^2)\right) U^\top$$
#
# **Question.** What happens to the gradient after many steps, if each step makes it a little shorter? And if
# each step makes it a little longer?
#
# <details><summary>Answer</summary>
# In the first case it becomes exponentially small, in the second case exponentially large.
# </details>
#
# A gradient that becomes exponentially small is a **vanishing gradient**. One that becomes exponentially
# large is an **exploding gradient**.
#
# For the LSTM there is a second path, from cell state to cell state:
#
# $$dc_{t-1} = f_t \odot dc_t + (\mathrm{contributions\ through\ } h_{t-1})$$
#
# After j steps, this path has multiplied the gradient by the product $\prod_t f_t$. It contains no matrix and
# no activation function.

# %% tags=["plot"]
figure = shape_flow(
    "dc₃ dc₂ dc₁ dc₀",
    {"dc₂": "× f₃: dc₃", "dc₁": "× f₂: dc₂", "dc₀": "× f₁: dc₁"},
    {"dc₃": "N", "dc₂": "N", "dc₁": "N", "dc₀": "N"},
)
show_figure(figure, "17_3_path", "Backward: the second path only multiplies by forget gates")

# %% [markdown]
# For f = .5, the product of 60 forget gates is about $10^{-18}$. For f = .95 it is .046. So it is important
# whether the forget gates are close to 1. A sigmoid with input 0 returns 1/2. So an LSTM whose biases begin
# at 0 has forget gates near 1/2. We measure four networks before training, each with 64 hidden units and 60
# random tokens:
#
# - the simplest cell, with a matrix U of standard deviation $1/\sqrt{N}$;
# - the same cell with U three times as large;
# - an LSTM whose forget gates have a bias of 0;
# - an LSTM whose forget gates have a bias of 3.
#
# A gradient of length about 1 arrives at the last hidden state. We print its length after each time step.

# %%
width, far = 64, 60
x_far = rng.standard_normal((1, far, width))  # (B, T, D)
dlast = rng.standard_normal(width) / np.sqrt(width)  # (N,)


def plain(scale):
    """The length of dh after 0 to 60 steps. The entries of U have the deviation scale / √N."""
    w, u = rng.standard_normal((2, width, width)) / np.sqrt(width)
    hs, found, dh = [np.zeros(width)], [np.linalg.norm(dlast)], dlast
    for row in x_far[0]:
        hs.append(np.tanh(row @ w + hs[-1] @ (scale * u)))
    for h in hs[:0:-1]:
        dh = (dh * (1 - h * h)) @ (scale * u).T
        found.append(np.linalg.norm(dh))
    return found


# %% [markdown]
# For the LSTM we measure two things: the length of the whole gradient $[dh, dc]$, and the mean of
# $\prod_t f_t$. This product is the factor of the gradient on the path through the cell states.

# %%


def lstm(bias):
    """The length of [dh, dc] after 0 to 60 steps, and the mean product of the forget gates."""
    settings = {"forget_bias": bias, "rng": np.random.default_rng(1), "dtype": np.float64}
    layer = Recurrent(width, width, **settings)
    _, cache = layer.forward(x_far)
    found, dstate = [np.linalg.norm(dlast)], np.append(dlast, 0 * dlast)[None]  # (B, 2N)
    for step in cache.steps[::-1]:
        dstate = layer.time_step_backward(dstate, step)[1]
        found.append(np.linalg.norm(dstate))
    return found, np.prod([step.cell.f for step in cache.steps], 0).mean(), cache


(closed, half, _), (opened, product, cache) = lstm(0.0), lstm(3.0)
found = np.array([plain(1.0), plain(3.0), closed, opened])  # (4, 61)
names = ["tanh", "tanh, U three times as large", "LSTM, bias of f 0", "LSTM, bias of f 3"]
for name, row in zip(names, found, strict=True):
    print(f"{name:30} after 10 steps {row[10]:.0e}   30 {row[30]:.0e}   60 {row[60]:.0e}")
print(f"mean of the product of f: {half:.0e} with bias 0, {product:.2f} with bias 3")
show(cache.steps[-1].cell)

# %% tags=["check"]
dc = np.ones((1, width))  # the path along c alone is the product of f
for step in cache.steps[::-1]:
    dc = recurrent.lstm_cell_backward(np.append(0 * dc, dc)[None], step.cell)[1]
assert_allclose(dc, np.prod([step.cell.f for step in cache.steps], 0), rtol=1e-9)
assert max(found[0, 60], found[2, 60], half) < 1e-10 < 1e4 < found[1, 60]
assert_allclose(1 / (1 + np.exp(-3)), 0.95, atol=0.005)
assert_allclose([found[3, 60], product], [0.34, 0.03], rtol=0.1)

# %% tags=["plot"]
axes = {"xlabel": "time steps back", "ylabel": "length of the state's gradient", "yscale": "log"}
figure = curves(found, labels=names, legend=True, **axes)
show_figure(figure, "17_3_distance", "Only the LSTM with forget gates near 1 keeps the gradient")

# %% [markdown]
# It is often said that an LSTM has no vanishing gradients. The measurement shows the condition. With a bias
# of 0, the gradient vanishes as fast as in the simplest network. With a bias of 3, the forget gates are about
# .95. After sixty steps, a third of the gradient is left in this run. (With other random numbers it is
# between a tenth and more than 1.)
#
# So the LSTM makes it *possible* to keep the gradient, if the forget gates are near 1. They can reach such
# values by training. Or their bias begins at 1 or more, as Jozefowicz et al. (2015) recommend. The simplest
# cell has no such parameter. With a larger U, its gradient does not vanish, but it explodes. Against
# exploding gradients one clips the gradient (chapter 13).
#
# **Question.** What does a forget gate near 1 make more difficult?
#
# <details><summary>Answer</summary>
# To forget. Old information stays in the cell state, and new information is added to it.
# </details>

# %% [markdown]
# ## One vector for the whole sentence
#
# Now the forward pass. The first neural translators (Sutskever et al., 2014, and Cho et al., 2014) consist of
# two recurrent networks. The **encoder** reads the source. Its last state is the only thing that the
# **decoder** receives. The decoder begins with this state and produces the translation token by token:

# %% tags=["plot"]
figure = shape_flow(
    "source h logits \n . target .",
    {"h": "encoder: source", "logits": "decoder: h target"},
    {"source": "B S", "target": "B T", "h": "1 N", "logits": "T V"},
)
caption = "The decoder receives a single vector, however long the source is"
show_figure(figure, "17_3_one_vector", caption)

# %% [markdown]
# *The components of the Transformer* names the problem: when the sequences become longer, their first
# elements are lost. We test this with a task where nothing can be guessed from grammar. The source consists
# of random letters, and the target is the source in **reverse order**. The model must store every letter in
# its state.

# %% [markdown]
# The model is a translator of the package, with GRU cells. The setting `attention="none"` passes only the
# last state to the decoder. Training is short: 250 steps of Adam, each with 32 sequences of one length
# between 1 and 10. The function `right` measures the share of correct letters at each position, when all
# letters before it are given (teacher forcing, chapter 11).

# %%


def sentences(rng, count, length, step=-1):
    """Random letters. The target is the source in reverse order, or a copy if step is 1."""
    ids = rng.integers(4, 12, (count, length)).tolist()
    return make_batch([(row, row[::step]) for row in ids])


def trained(attention, d_hidden, step=-1, **settings):
    """A translator after 250 steps, each with 32 sequences of one length, from 1 to 10."""
    settings |= {"source_vocab": 12, "target_vocab": 12, "d_model": 16, "d_hidden": d_hidden}
    settings |= {"dropout": 0.0, "label_smoothing": 0.0, "attention": attention, "cell": "gru"}
    model = RecurrentTranslator(RecurrentConfig(**settings), rng=np.random.default_rng(1))
    task, adam, lr = ModelWithLoss(model), Adam(model), cosine(0.015, 250, 20)
    data = np.random.default_rng(2)
    for update in range(1, 251):
        model.zero_grad()
        _, cache = task.forward(*sentences(data, 32, data.integers(1, 11), step))
        task.backward(1.0, cache)
        clip_global_norm(model.grads, 1.0)
        adam.step(lr(update))
    return model


def right(model, length, step=-1):
    """The share of correct letters at each position, (T,), on 200 new sequences."""
    batch = sentences(np.random.default_rng(3), 200, length, step)
    chosen = model.forward(*batch.inputs)[0].argmax(-1)  # (B, T)
    return (chosen == batch.target_out)[:, :-1].mean(0)


# %% [markdown]
# There are two models. The encoder of the first reads from left to right. The encoder of the second is
# bidirectional.

# %%
names = ["left to right", "bidirectional"]
models = [trained("none", 48, bidirectional=False), trained("none", 48)]
lengths = np.array([1, 2, 4, 6, 8, 10, 12, 16, 20])
scores = np.array([[right(model, length).mean() for length in lengths] for model in models])
for name, model, row in zip(names, models, scores, strict=True):
    shares = f"4 letters {row[2]:4.0%}   10 {row[5]:4.0%}   20 {row[8]:4.0%}"
    print(f"{name:14} {model.count_parameters():,} parameters   {shares}")

# %% tags=["check"]
assert scores[:, 2].min() > 0.85 > 0.6 > scores[:, 5].max() > 0.45

# %% tags=["plot"]
label = "correct letters, % (training: up to 10)"
figure = curves(100 * scores, lengths, labels=names, xlabel="letters", ylabel=label)
caption = "With one vector, more letters mean more mistakes; guessing gives 12.5 %"
show_figure(figure, "17_3_bottleneck", caption)

# %% [markdown]
# With four letters, about nine of ten are correct. With ten letters, it is only about half of them, in both
# models. The vector is a **bottleneck**: all information must pass through it. In principle, 48 numbers can
# store ten letters, since ten letters of an alphabet of eight are only 30 bits. But these models do not learn
# it in 250 steps.
#
# **Question.** Are really the *first* letters of the source lost, as *The components of the
# Transformer* says? How could we find out?
#
# <details><summary>Answer</summary>
# In the reversed sequence, the first letter of the source is written last. So we also train a model that
# copies. There the first letter of the source is written first. Then we compare the positions with mistakes.
# </details>

# %%
copied = right(trained("none", 48, step=1, bidirectional=False), 10, step=1)  # (T,)
turned = right(models[0], 10)
print("ten letters, encoder from left to right: correct letters at each position of the target")
for name, row in {"reversed": turned, "copied": copied}.items():
    print(f"{name:10}", "  ".join(f"{share:4.0%}" for share in row))

# %% tags=["check"]
assert min(turned[0], copied[0]) > 0.7 > 0.3 > max(turned[9], copied[9])
sizes = {"source_vocab": 12, "target_vocab": 12, "d_model": 4, "d_hidden": 6}
small = RecurrentConfig(**sizes, attention="none")
model = RecurrentTranslator(small, rng=rng, dtype=np.float64)
batch = make_batch([([5, 8, 7], [6, 9]), ([4], [10, 5, 11])])
report = gradcheck(ModelWithLoss(model), *batch)
assert report.ok

# %% [markdown]
# In both tasks, most mistakes are in the letter that is **written last**. In the first task it was read
# first, in the second it was read *last*. So these models lose what the decoder must store for the longest
# time, and not what the encoder read first. The check above also includes the gradients of such a translator.
#
# **Your turn.** In the terminal, try `!right(models[1], 6).round(2)`. Which letters of six does the
# bidirectional model lose?

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* says that without attention the first elements of a sequence are
# >   lost. In our measurement, the elements that are written last are lost.
# > - *Attention机制详解（二）* continues a first part about attention in recurrent networks, which is not
# >   among the source documents. Its example with "bank" and "river" is not a long distance: there are
# >   only four tokens from one to the other.

# %% [markdown]
# ## Summary
#
# - From time step to time step, the gradient is multiplied by a Jacobian, so it can vanish or explode.
# - In an LSTM, the path along $c$ multiplies the gradient by the product of the forget gates.
# - This path keeps the gradient only if the forget gates are near 1, for example because of their bias.
# - The first neural translators passed one vector from the encoder to the decoder.
# - In our task, longer sequences have more mistakes, most of them at the end of the target.

# %% [markdown]
# ## Questions
#
# **Question.** Sutskever et al. (2014) reversed the order of the *source* sentences and got better
# translations. Why could that help?
#
# <details><summary>Answer</summary>
# Then the first words of the source are read last. They are close to the first words of the target, so the
# gradient between them passes through few time steps.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 17` lists the exercises of this chapter.
#
# - By hand: let all forget gates have the value f. After how many steps is the product of the gates below
#   .01, for f = .5, .9 and .99?
# - With code: call `lstm` with the biases 1 and 2, and draw the curves.
#
# **Next**: lesson 17.4 (`17_4_additive_and_global_attention`), attention, which removes the bottleneck.

# %% [markdown]
# # 17.4 · Additive and global attention
#
# *About 40 minutes. You need: similarity functions (lesson 4.5, `04_5_similarity_functions`), the backward
# pass of attention (lesson 5.2, `05_2_the_backward_pass_of_attention`), the bottleneck of one vector (lesson
# 17.3, `17_3_vanishing_gradients`).*
#
# **After this lesson you can**
#
# - write the additive attention of Bahdanau and the global attention of Luong, and say how they differ;
# - explain context, attentional state and input feeding;
# - derive the backward pass of one decoder step, in which two arrays are used several times;
# - show that attention removes the bottleneck, and read an alignment matrix.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import make_batch
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.nn.attention import AttentionalState, GlobalAttention, Similarity
from npformer.plots import attention_map, curves
from npformer.training.optimizer import Adam, clip_global_norm, cosine

rng = np.random.default_rng(17)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Attention to the states of the encoder
#
# In lesson 17.3 the decoder received one vector. Now it receives *all* states of the encoder,
# $m_1 \ldots m_S$. They are called the **memory**. At each time step, the decoder computes attention weights
# for them, and the weighted average is the **context** $c_t$:
#
# $$a_t = \mathrm{softmax\ over\ }s\mathrm{\ of\ } \mathrm{score}(\mathrm{query}, m_s)$$
#
# $$c_t = \sum_s a_{ts}\, m_s$$

# %% tags=["plot"]
figure = shape_flow(
    "query scores a c \n m . . .",
    {"scores": "score: query m", "a": "softmax: scores", "c": "a m: a m"},
    {"query": "T N", "m": "S N", "scores": "T S", "a": "T S", "c": "T N"},
)
caption = "Attention over a memory: m has the roles of the keys and of the values"
show_figure(figure, "17_4_shapes", caption)

# %% [markdown]
# The query is a state of the decoder. The memory is used twice: as the keys and as the values. There are two
# well-known versions. They differ in *when* attention is computed: before the recurrent cell or after it.

# %% [markdown]
# **Additive attention** (Bahdanau et al., 2015) comes *before* the cell. The query is the state of the step
# before, $h_{t-1}$. The cell receives the context together with the token. The score is computed by a small
# network with one hidden layer (the perceptron of lesson 4.5):
#
# $$\mathrm{score} = v \cdot \tanh(h_{t-1} W + m_s U), \qquad h_t = \mathrm{cell}([x_t; c_t], h_{t-1})$$
#
# **Global attention** (Luong et al., 2015) comes *after* the cell. The query is the new state $h_t$. The
# usual score, called *general*, is a product with one matrix:
#
# $$h_t = \mathrm{cell}(x_t, h_{t-1}), \qquad \mathrm{score} = h_t W \cdot m_s$$
#
# | | order of the computation |
# |---|---|
# | additive | attention with the old state h_{t−1} gives c_t; the cell reads c_t and x_t, and gives h_t |
# | global | the cell reads x_t and gives h_t; attention with the new state h_t gives c_t |

# %% [markdown]
# In both versions of this package, the context and the state are then combined. The result is the
# **attentional state** $\tilde{h}_t$, from which the output layer computes the logits:
#
# $$\tilde{h}_t = \tanh([c_t; h_t]\, W_c), \qquad \mathrm{logits}_t = \tilde{h}_t W_s + b$$
#
# *The components of the Transformer* describes the second version: $h_t$ is compared with each state of the
# source, so there are as many weights as the source has time steps. `npformer figures F55` draws such a step.
#
# Luong et al. add one more connection, **input feeding**. The attentional state $\tilde{h}_{t-1}$ of the step
# before is concatenated with the token $x_t$. So the decoder knows to which positions it attended before.
# With additive attention this is not needed, because the cell reads $c_t$ anyway.
#
# **Question.** Which of the two versions can compute the attention of *all* decoder steps at once, when all
# states $h_t$ are known?
#
# <details><summary>Answer</summary>
# Global attention without input feeding. There, no state depends on a context. Lesson 17.5 shows what follows
# from this.
# </details>

# %% [markdown]
# ## One step of Luong's decoder, backward
#
# The gradient $d\tilde{h}$ arrives at the attentional state. Two arrays are used several times:
#
# - The state $h_t$ is used three times: as the query, in the concatenation $[c_t; h_t]$, and by the next time
#   step.
# - The memory is used twice: as the keys and as the values.
#
# With $Y = \tilde{h}$, weights A and the scores $h W M^\top$, the backward pass begins like this:
#
# $$\begin{aligned}
# dC,\ dH_1 &= \mathrm{both\ halves\ of}\ (dY \odot (1 - Y^2))\, W_c^\top \\
# dA &= dC\, M^\top, \qquad dM_1 = A^\top dC \\
# dS &= A \odot (dA - \mathrm{rowsum}(dA \odot A))
# \end{aligned}$$
#
# The last line is the backward pass of the softmax. The scores add the second contributions:
#
# $$\begin{aligned}
# dH &= dH_1 + dS\, M\, W^\top \\
# dM &= dM_1 + dS^\top (H W)
# \end{aligned}$$
#
# The contribution of the next time step is added by the loop of lesson 17.2
# (`17_2_backpropagation_through_time`).

# %%
n = 5
attention = GlobalAttention(Similarity("general", n, n, rng=rng, dtype=np.float64))
join = AttentionalState(n, n, rng=rng, dtype=np.float64)
w, w_c = attention.similarity.weight.value, join.join.weight.value  # (N, N), (2N, N)
h, m = rng.standard_normal((1, 1, n)), rng.standard_normal((1, 6, n))  # (B, T, N), (B, S, N)

a, _ = softmax(h @ w @ m.swapaxes(1, 2))  # (B, T, S)
y = np.tanh(np.concatenate([a @ m, h], -1) @ w_c)  # (B, T, N)

dy = rng.standard_normal(y.shape)
dcontext, dh = np.split((dy * (1 - y * y)) @ w_c.T, 2, -1)  # h in the concatenation ...
da = dcontext @ m.swapaxes(1, 2)  # (B, T, S)
ds = a * (da - (da * a).sum(-1, keepdims=True))
dh = dh + ds @ m @ w.T  # ... and h as the query
dm = a.swapaxes(1, 2) @ dcontext  # the memory as values ...
dm = dm + ds.swapaxes(1, 2) @ (h @ w)  # ... and as keys

# %% [markdown]
# The package has the two layers `GlobalAttention` and `AttentionalState`. Their caches contain what the
# formulas need.

# %%
context, attended = attention.forward(h, m)
y_package, joined = join.forward(context, h)
show(attended)
dcontext, dh_joined = join.backward(dy, joined)
dh_query, dm_package = attention.backward(dcontext, attended)
print("largest difference in dh:", abs(dh - dh_joined - dh_query).max())
report = gradcheck(attention, h, m)
print("all gradients correct:", report.ok)

# %% tags=["check"]
assert_allclose(y, y_package, rtol=1e-12)
assert_allclose(dh, dh_joined + dh_query, rtol=1e-9)
assert_allclose(dm, dm_package, rtol=1e-9)
assert report.ok

# %% [markdown]
# ## Does attention remove the bottleneck?
#
# We repeat the experiment of lesson 17.3: random letters must be written in reverse order. The next cell has
# the same three functions, only without the task of copying. You can skip it if you remember them.

# %%


def sentences(rng, count, length):
    """Random letters. The target is the source in reverse order."""
    ids = rng.integers(4, 12, (count, length)).tolist()
    return make_batch([(row, row[::-1]) for row in ids])


def trained(attention, d_hidden):
    """A translator after 250 steps, each with 32 sequences of one length, from 1 to 10."""
    settings = {"source_vocab": 12, "target_vocab": 12, "d_model": 16, "d_hidden": d_hidden}
    settings |= {"dropout": 0.0, "label_smoothing": 0.0, "attention": attention, "cell": "gru"}
    model = RecurrentTranslator(RecurrentConfig(**settings), rng=np.random.default_rng(1))
    task, adam, lr = ModelWithLoss(model), Adam(model), cosine(0.015, 250, 20)
    data = np.random.default_rng(2)
    for update in range(1, 251):
        model.zero_grad()
        _, cache = task.forward(*sentences(data, 32, data.integers(1, 11)))
        task.backward(1.0, cache)
        clip_global_norm(model.grads, 1.0)
        adam.step(lr(update))
    return model


def right(model, length):
    """The share of correct letters at each position, (T,), on 200 new sequences."""
    batch = sentences(np.random.default_rng(3), 200, length)
    chosen = model.forward(*batch.inputs)[0].argmax(-1)  # (B, T)
    return (chosen == batch.target_out)[:, :-1].mean(0)


# %% [markdown]
# All encoders are bidirectional. The models with attention have smaller hidden states, so that they have
# fewer parameters than the model without attention.

# %%
names = ["one vector", "additive (Bahdanau)", "global (Luong)"]
models = [trained("none", 48), trained("additive", 32), trained("global", 32)]
lengths = np.array([1, 2, 4, 6, 8, 10, 12, 16, 20])
scores = np.array([[right(model, length).mean() for length in lengths] for model in models])
for name, model, row in zip(names, models, scores, strict=True):
    shares = f"4 letters {row[2]:4.0%}   10 {row[5]:4.0%}   20 {row[8]:4.0%}"
    print(f"{name:20} {model.count_parameters():,} parameters   {shares}")

# %% tags=["check"]
assert 0.6 > scores[0, 5] > 0.45
assert scores[1:, 5].min() > 0.9 > 0.65 > scores[1:, 8].max()
assert models[2].count_parameters() < models[1].count_parameters() < models[0].count_parameters()

# %% tags=["plot"]
label = "correct letters, % (training: up to 10)"
figure = curves(100 * scores, lengths, labels=names, xlabel="letters", ylabel=label)
caption = "With attention, ten letters are almost always correct; guessing gives 12.5 %"
show_figure(figure, "17_4_bottleneck", caption)

# %% [markdown]
# With one vector, about half of ten letters are correct. With attention, it is more than nine of ten,
# although the models have fewer parameters. So attention removes the bottleneck.
#
# It has a limit too. With 20 letters, twice as many as in training, about half of the letters are wrong.
#
# ## The alignment
#
# The attention weights of all decoder steps form a matrix of shape (T, S), the **alignment**. A row is a
# letter of the target, a column a letter of the source.
#
# **Question.** What will the alignment look like in this task?
#
# <details><summary>Answer</summary>
# The first letter of the target is the last letter of the source. So the large weights should lie on the
# diagonal from the upper right to the lower left.
# </details>
#
# Nothing in the loss tells the models where to attend. The code prints the mean weight of the right letter.

# %%
text = "gacbedhf"
ids = [4 + "abcdefgh".index(letter) for letter in text]
batch = make_batch([(ids, ids[::-1])])
caches = [model.forward(*batch.inputs)[1] for model in models[1:]]
alignments = [cache.decoder.weights[0] for cache in caches]  # (T, S)
right_weight = [np.mean([a[t, 7 - t] for t in range(8)]) for a in alignments]
for name, weight in zip(names[1:], right_weight, strict=True):
    print(f"{name:20} mean weight of the right letter: {weight:.2f}")

# %% tags=["check"]
assert min(right_weight) > 0.45

# %% tags=["plot"]
rows, columns = [*text[::-1], "</S>"], [*text, "</S>"]
for name, title, weights in zip(("additive", "global"), names[1:], alignments, strict=True):
    figure = attention_map(weights, rows, columns, numbers=True, title=title)
    show_figure(figure, f"17_4_{name}", "A row: a letter of the target; a column: of the source")

# %% [markdown]
# The large weights are indeed on this diagonal. But most of them are well below 1. The encoder is
# bidirectional, so each state of the memory contains information about its neighbours too. Therefore the
# attention weights show to which *states* the decoder attends. They do not prove which *letter* it uses.

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* says that each sequence has to be processed by itself. The tokens
# >   of one sentence do wait for each other, but sentences are processed in batches.
# > - Luong's paper has a tanh in its *concat* score, which makes it Bahdanau's perceptron. The *concat* of
# >   *一步步解析Attention is All You Need!* is linear. Therefore it ignores the query (lesson 4.5).
# > - The output layer of Bahdanau et al. is a maxout of state, context and last token. npformer uses Luong's
# >   attentional state for all systems, so that only their attention differs. Bahdanau's decoder
# >   begins with the last state of the encoder's right-to-left network, and that of npformer with the last
# >   states of both networks.

# %% [markdown]
# ## Summary
#
# - With attention, the decoder receives all states of the encoder, the memory, and not one vector.
# - Additive attention comes before the cell, with the query $h_{t-1}$ and a small network as the score.
# - Global attention comes after the cell, with the query $h_t$; the score *general* has one matrix.
# - The memory is used as keys and as values, and $h_t$ three times, so their gradients are sums.
# - Attention removes the bottleneck of one vector, and its weights form an alignment.

# %% [markdown]
# ## Questions
#
# **Question.** In the Transformer, keys and values are computed by two different matrices. What is the
# corresponding choice here?
#
# <details><summary>Answer</summary>
# The values are the memory itself. The keys are the memory too. With the score "general", they are the memory
# times a matrix, since h W · m = h · (m Wᵀ).
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 17` lists the exercises of this chapter.
#
# - By hand: write the gradients of the additive score $v \cdot \tanh(h W + m_s U)$ with respect to $h$ and to
#   $m_s$.
# - In the terminal: `!right(models[2], 10).round(2)`. Which of ten letters are wrong most often?
#
# **Next**: lesson 17.5 (`17_5_why_recurrence_is_sequential`), why the recurrence was given up.

# %% [markdown]
# # 17 · Attention before the Transformer
#
# *30 minutes to read, 6 seconds to run: it trains five small translators. Lessons 4, 5 and 13.*
#
# **The question.** For three years attention sat on networks that read word by word and keep what they have
# read in one state. How does a state remember, and how does a gradient get back to a word read long ago?
# What can one vector not hold, so that attention was invented? And why was the reading given up?

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import make_batch
from npformer.functional import recurrent
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.nn import Bidirectional, Recurrent
from npformer.nn.attention import AttentionalState, GlobalAttention, Similarity
from npformer.plots import attention_map, curves
from npformer.training.optimizer import Adam, clip_global_norm, cosine

rng = np.random.default_rng(17)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# *Attention Is All You Need*, section 1:
#
# > Aligning the positions to steps in computation time, they generate a sequence of hidden states hₜ, as a
# > function of the previous hidden state hₜ₋₁ and the input for position t.
#
# *Attention机制详解（二）* begins there: from *bank* to *river* such a network must take every word between
# them, one after the other. That is slow, and over a long way it works badly. Both are measured below.
#
# The plain form is hₜ = tanh(xₜ W + hₜ₋₁ U); lesson 10 measured how its gradient fades. The **LSTM**
# (Hochreiter and Schmidhuber, 1997; f of Gers et al., 2000) keeps a second vector c, the memory, to which it
# *adds*:
#
# ```math
# [i f g o] = xₜ W + hₜ₋₁ U + b         i, f, o through σ, g through tanh
# c′ = f c + i g                        keep a share f, write a share i
# h′ = o tanh(c′)                       show a share o
# ```
#
# All products but those with W and U are number by number. W and U are linear maps (lesson 0), so the
# **cell** proper begins with the gates.


# %%
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


n = 5
gates, c = rng.standard_normal((2, 4 * n)), rng.standard_normal((2, n))  # (B, 4N), (B, N)
slow = np.zeros((2, 2 * n))  # (B, 2N) h' and c' side by side
for sentence in range(2):
    for j in range(n):
        i, f, g, o = gates[sentence, j::n]  # number j of each of the four parts
        after = sigmoid(f) * c[sentence, j] + sigmoid(i) * np.tanh(g)
        slow[sentence, j], slow[sentence, n + j] = sigmoid(o) * np.tanh(after), after

state, cache = recurrent.lstm_cell(gates, c)
assert_allclose(slow, state, rtol=1e-12)
show(cache)

# %% [markdown]
# ## The LSTM's cell, backward
#
# dh′ and dc′ arrive. **c′ went two ways**: it was shown in h′ and handed on. So first complete its gradient,
# and then everything is a product of two numbers, each of which hears the other:
#
# ```math
# do  = dh′ tanh(c′)
# dc′ ← dc′ + dh′ o (1 − tanh²(c′))
# df  = dc′ c        dc = dc′ f        di = dc′ g        dg = dc′ i
# ```
#
# and at last through the bends: σ′ = σ (1 − σ), tanh′ = 1 − tanh².

# %%
i, f, g, o, tanh_c = cache.i, cache.f, cache.g, cache.o, cache.tanh_c
dstate = rng.standard_normal(state.shape)  # (B, 2N)
dh, dafter = dstate[:, :n], dstate[:, n:]
dafter = dafter + dh * o * (1 - tanh_c * tanh_c)
di, df, dg, do, dc = dafter * g, dafter * c, dafter * i, dh * tanh_c, dafter * f
through = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)]
dgates = np.concatenate(through, -1)  # (B, 4N)
for mine, theirs in zip((dgates, dc), recurrent.lstm_cell_backward(dstate, cache), strict=True):
    assert_allclose(mine, theirs, rtol=1e-12)
report = gradcheck((recurrent.lstm_cell, recurrent.lstm_cell_backward), gates, c)
print(report)
assert report.ok

# %% [markdown]
# ## The GRU's cell
#
# Cho et al. (2014) need one state and three parts: r says how much of the state the new may use, z how much
# of it stays. With w = xₜ W, the word's share, and m = hₜ₋₁ U, the state's:
#
# ```math
# r = σ(w_r + m_r)      z = σ(w_z + m_z)      n = tanh(w_n + r m_n)
# h′ = z h + (1 − z) n
# ```
#
# Backward, from the last line up:
#
# ```math
# dz = dh′ (h − n)        dn = dh′ (1 − z)        dh = dh′ z
# ds = dn (1 − n²)        dr = ds m_n             dm_n = ds r
# ```
#
# Here s is what the tanh was of. A sum hands its gradient to both: w_r and m_r hear dr r (1 − r), w_z and
# m_z hear dz z (1 − z). Only the third part differs, ds for the word and ds r for the state. (And m = h U:
# h hears through U as well. That is the layer's business.)

# %%
word, hidden_gates, h = (rng.standard_normal(s) for s in ((2, 3 * n), (2, 3 * n), (2, n)))
y, made = recurrent.gru_cell(word, hidden_gates, h)  # (B, N)
(w_r, w_z, w_n), (m_r, m_z, m_n) = np.split(word, 3, -1), np.split(hidden_gates, 3, -1)
r, z = sigmoid(w_r + m_r), sigmoid(w_z + m_z)
new = np.tanh(w_n + r * m_n)
assert_allclose(y, z * h + (1 - z) * new, rtol=1e-12)

dy = rng.standard_normal(y.shape)
ds = dy * (1 - z) * (1 - new * new)
dr, dz = ds * m_n * r * (1 - r), dy * (h - new) * z * (1 - z)
dword, dhidden_gates = np.concatenate([dr, dz, ds], -1), np.concatenate([dr, dz, ds * r], -1)
package = recurrent.gru_cell_backward(dy, made)
for mine, theirs in zip((dword, dhidden_gates, dy * z), package, strict=True):
    assert_allclose(mine, theirs, rtol=1e-12)
assert gradcheck((recurrent.gru_cell, recurrent.gru_cell_backward), word, hidden_gates, h).ok
print("both cells are the package's, to rounding")

# %% [markdown]
# ## A sentence: back-propagation through time
#
# The same W, U and b serve every word, each state goes into the next word. So a state is **handed out**, to
# whoever reads it there, and **handed on**: two ways, and its gradient is the sum of both. Nothing else is
# new. Going backwards through the words, let dstate be what comes back from the word after:
#
# ```math
# dstate ← dstate + dstatesₜ                       handed on, and out
# dgatesₜ, dc ← cell backward                       the pair above
# dh ← dgatesₜ Uᵀ                                   h went through U into all four parts
# dU ← dU + hₜ₋₁ᵀ dgatesₜ        db ← db + Σ dgatesₜ    shared: every word adds
# ```
#
# xₜ W needs no order, so it is one product for the whole sentence, before the loop, and so are dx and dW
# after it. What the loop holds must wait for the word before, or the word after.

# %%
t_max, d_in = 4, 3
reader = Recurrent(d_in, n, kind="lstm", rng=rng, dtype=np.float64)
for parameter in reader.parameters():
    parameter.value += 0.3 * rng.standard_normal(parameter.shape)  # biases too are not 0
of_input, of_hidden = reader.input_projection, reader.hidden_projection
w, u = of_input.weight.value, of_hidden.weight.value  # (D, 4N), (N, 4N)
b = of_input.bias.value + of_hidden.bias.value  # (4N,) two where one would do

x = rng.standard_normal((2, t_max, d_in))  # (B, T, D)
gates, state = x @ w, np.zeros((2, 2 * n))  # (B, T, 4N), (B, 2N)
states, kept = [], []
for t in range(t_max):
    before = state
    state, cell = recurrent.lstm_cell(gates[:, t] + before[:, :n] @ u + b, before[:, n:])
    states.append(state)
    kept.append((before[:, :n], cell))  # U met the state *before* this word
states_package, cache = reader.forward(x)
assert_allclose(np.stack(states, 1), states_package, rtol=1e-12)

# %%
dstates = rng.standard_normal((2, t_max, 2 * n))  # of the states as they were handed out
dstate, dgates = np.zeros((2, 2 * n)), np.zeros_like(gates)  # nothing comes after the last word
du, db = np.zeros_like(u), np.zeros_like(b)
for t in reversed(range(t_max)):
    h_before, cell = kept[t]
    dgates[:, t], dc = recurrent.lstm_cell_backward(dstate + dstates[:, t], cell)
    du += h_before.T @ dgates[:, t]
    db += dgates[:, t].sum(0)
    dstate = np.concatenate([dgates[:, t] @ u.T, dc], -1)  # for the word before
dx = dgates @ w.T  # (B, T, D)

assert_allclose(dx, reader.backward(dstates, cache), rtol=1e-9)
assert_allclose(du, reader.hidden_projection.weight.grad, rtol=1e-9)
assert_allclose(db, reader.hidden_projection.bias.grad, rtol=1e-9)
assert_allclose(db, reader.input_projection.bias.grad, rtol=1e-9)  # the two biases hear the same
assert gradcheck(reader, x).ok
print("dx, dU and db are those of Recurrent")

# %% [markdown]
# ## Padding is held
#
# In a batch, short sentences end in padding. A state must not read it: where the mask is False it stays as
# it was. The last place of each row then has the state of its last *word*, and a reader from the right
# arrives at the last word with its zeros untouched. Each number came from one of two, and so goes back:
#
# ```math
# state = where(real, new, old)
# dnew  = where(real, dstate, 0)        dold = where(real, 0, dstate)
# ```
#
# The trap is dold. "Padding gets no gradient" is true of the word there, and false of the state: it was
# *handed on through* the padding, and its gradient must come back through it. Without dold, a loss at the
# last place would reach only the longest sentences of a batch.

# %%
mask = np.arange(6) < np.array([[4], [6]])  # (B, T) True at the words
longer = np.concatenate([x, rng.standard_normal((2, 2, d_in))], 1)  # (B, T, D) any padding
short, _ = reader.forward(longer[:1, :4])
held, cache = reader.forward(longer, mask=mask)
assert_allclose(held[0, 5], short[0, 3], rtol=1e-12)

dlast = np.zeros_like(held)
dlast[:, -1] = 1.0  # the loss speaks to the last place alone, which for sentence 0 is padding
lengths = np.linalg.norm(reader.backward(dlast, cache), axis=-1)  # (B, T)
print("what each word hears:", lengths, sep="\n")
assert ((lengths > 0) == mask).all()

real = np.array([True, False])
assert gradcheck((recurrent.masked_update, recurrent.masked_update_backward), h, y, real).ok
both = Bidirectional(d_in, n, kind="gru", rng=rng, dtype=np.float64)
assert gradcheck(both, longer, mask=mask).ok

# %% [markdown]
# `Bidirectional` reads once from each side and lays the two h beside each other. For translating it is no
# luxury: in *I arrived at the bank after crossing the river*, a reader from the left does not know at *bank*
# that a river will come.
#
# ## How far back does a gradient get?
#
# From word to word it goes through the Jacobian of one step. For the plain form, and along the LSTM's c:
#
# ```math
# dhₜ₋₁ = [dhₜ (1 − hₜ²)] Uᵀ            a matrix each time: it shrinks, or it grows
# dcₜ₋₁ = fₜ dcₜ  + (what goes by h)     a number between 0 and 1 each time
# ```
#
# After j words the first is a product of j matrices. The second has the term Πₜ fₜ: no matrix, no bend. With
# f near 1 that is a straight road. With f = ½ it is none, and ½ is what σ gives where a bias starts at 0, as
# here.

# %%
width, far = 64, 60
x_far = rng.standard_normal((1, far, width))  # (B, T, D)
dlast = rng.standard_normal(width) / np.sqrt(width)


def plain(scale):
    """The length of dh, 0 to 60 words back, where entries of U have the deviation scale / √N."""
    w, u = rng.standard_normal((2, width, width)) / np.sqrt(width)
    hs, found, dh = [np.zeros(width)], [np.linalg.norm(dlast)], dlast
    for row in x_far[0]:
        hs.append(np.tanh(row @ w + hs[-1] @ (scale * u)))
    for h in hs[:0:-1]:
        dh = (dh * (1 - h * h)) @ (scale * u).T
        found.append(np.linalg.norm(dh))
    return found


def lstm(bias):
    """The same of [dh, dc], with that bias on f; and the mean of Π f, the road along c alone."""
    layer = Recurrent(width, width, rng=np.random.default_rng(1), dtype=np.float64)
    layer.input_projection.bias.value[width : 2 * width] = bias  # the second part is f
    _, cache = layer.forward(x_far)
    found, dstate = [np.linalg.norm(dlast)], np.append(dlast, 0 * dlast)[None]  # (B, 2N)
    dc = np.ones((1, width))
    for step in cache.steps[::-1]:
        dc = recurrent.lstm_cell_backward(np.append(0 * dc, dc)[None], step.cell)[1]  # c alone
        dstate = layer.time_step_backward(dstate, step)[1]
        found.append(np.linalg.norm(dstate))
    assert_allclose(dc, np.prod([step.cell.f for step in cache.steps], 0), rtol=1e-9)
    return found, dc.mean()


names = ["tanh", "tanh, U three times as large", "LSTM, bias of f 0", "LSTM, bias of f 3"]
(closed, half), (opened, road) = lstm(0.0), lstm(3.0)
found = np.array([plain(1.0), plain(3.0), closed, opened])  # (4, 61)
for name, row in zip(names, found, strict=True):
    print(f"{name:30} 10 words back {row[10]:.0e}   30 {row[30]:.0e}   60 {row[60]:.0e}")
print(f"mean of Π f over 60 words: {half:.0e} with bias 0, {road:.2f} with bias 3")
assert max(found[0, 60], found[2, 60], half) < 1e-10 < 1e6 < found[1, 60]
assert_allclose([found[3, 60], road, sigmoid(3)], [0.33, 0.033, 0.95], rtol=0.1)
axes = {"xlabel": "words back", "ylabel": "length of the state's gradient", "yscale": "log"}
figure = curves(found, labels=names, legend=True, **axes)
show_figure(figure, "17_distance", "An LSTM remembers where f is near 1, and only there")

# %% [markdown]
# So the much-told story needs its condition. The LSTM as it starts forgets as fast as the plain network. What
# the cell gives is a road that *can be opened*, by a bias of 1 or more (Jozefowicz et al. 2015) or by
# learning. At 3, f is about .95, and sixty words back a third of the gradient is left. A plain network has no
# such handle: three times U, and it explodes. Against that, gradients are clipped.
#
# ## One vector for the whole sentence
#
# The first such translators (Sutskever et al. and Cho et al. 2014) had an encoder that read the source, and
# handed its last state to a decoder that wrote. *The components of the Transformer* names the fault: as
# sequences grow, their first elements get lost. A task to see it: write random letters backwards. There is
# no grammar to guess by; each letter has to be in the state.

# %%
letters = "abcdefgh"


def sentences(rng, count, length, step=-1):
    """Random letters; the target is the source backwards, or with step 1 the source itself."""
    ids = rng.integers(4, 12, (count, length)).tolist()
    return make_batch([(row, row[::step]) for row in ids])


def trained(attention, d_hidden, step=-1, **kind):
    """250 steps, each with 32 sequences of one length, from 1 to 10."""
    sizes = {"source_vocab": 12, "target_vocab": 12, "d_model": 16, "d_hidden": d_hidden}
    kind |= {"dropout": 0.0, "label_smoothing": 0.0, "attention": attention, "cell": "gru"}
    config = RecurrentConfig(**sizes, **kind)
    model = RecurrentTranslator(config, rng=np.random.default_rng(1))
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
    """Which letters are right when all before them are given: the share at each place (T,)."""
    batch = sentences(np.random.default_rng(3), 200, length, step)
    chosen = model.forward(*batch.inputs)[0].argmax(-1)  # (B, T)
    return (chosen == batch.target_out)[:, :-1].mean(0)


names = ["one vector, left", "one vector, both ways", "additive (Bahdanau)", "global (Luong)"]
models = [trained("none", 48, bidirectional=False), trained("none", 48)]
models += [trained("additive", 32), trained("global", 32)]
lengths = np.array([1, 2, 4, 6, 8, 10, 12, 16, 20])
scores = np.array([[right(model, length).mean() for length in lengths] for model in models])
for name, model, row in zip(names, models, scores, strict=True):
    told = f"4 letters {row[2]:4.0%}   10 {row[5]:4.0%}   20 {row[8]:4.0%}"
    print(f"{name:22} {model.count_parameters():,} parameters   {told}")
label = "right, % (trained up to 10)"
figure = curves(100 * scores, lengths, labels=names, xlabel="letters", ylabel=label)
caption = "With one vector, the longer the worse; guessing has 12.5 %"
show_figure(figure, "17_bottleneck", caption)

# %%
copied = right(trained("none", 48, step=1, bidirectional=False), 10, step=1)  # (T,)
turned = right(models[0], 10)
print("ten letters, one vector from the left, right at each place")
for name, row in {"backwards": turned, "copied": copied}.items():
    print(f"{name:10}", "  ".join(f"{share:4.0%}" for share in row))
assert scores[:2, 2].min() > 0.85 > 0.6 > scores[:2, 5].max() > 0.45
assert scores[2:, 5].min() > 0.9 > 0.65 > scores[2:, 8].max()
assert min(turned[0], copied[0]) > 0.7 > 0.3 > max(turned[9], copied[9])
assert models[3].count_parameters() < models[2].count_parameters() < models[1].count_parameters()

# %% [markdown]
# With one vector, four letters come out well, of ten about half, whether it was read from the left or from
# both sides; with attention and fewer parameters, over nine of ten. Not that ten letters *cannot* be in 48
# numbers: they are 30 bits. It is what 250 steps of learning find.
#
# The last two lines correct the document. Backwards or copied, the worst letter is the one **written last**:
# in the one case it was read first, in the other *last*. What gets lost is what the decoder must carry
# longest. And attention has a limit of its own here: at 20 letters, twice what it was trained on, about half
# are wrong.
#
# ## Two attentions
#
# The memory m₁ … m_S now is *all* states of the encoder. Bahdanau et al. (2015) look at it before the cell,
# by the state of the word before; Luong et al. (2015), called *global*, after it, by the new one:
#
# ```math
# additive    cₜ by hₜ₋₁, then hₜ = cell([xₜ; cₜ], hₜ₋₁)      score: v · tanh(hₜ₋₁ W + mₛ U)
# global      hₜ = cell(xₜ, hₜ₋₁), then cₜ by hₜ               score: hₜ W · mₛ, or another
# both        aₜ = softmax over s of the scores                cₜ = Σₛ aₜₛ mₛ
#             h̃ₜ = tanh([cₜ; hₜ] W_c)                          logits = h̃ₜ W_s + b
# ```
#
# *The components of the Transformer* describes the second: as many weights as the source has steps, from hₜ
# compared with each. The scores are those of lesson 4. c is the **context**, h̃ the **attentional state**;
# `npformer figures F55` draws such a step. Luong's **input feeding** lays h̃ₜ₋₁ beside xₜ, so that the
# decoder knows where it has looked; with additive attention the cell reads cₜ anyway.
#
# Backward: **the memory is both what is compared and what is read** (K and V in one), and hₜ has three ways
# out: it asks, it is joined with the context, and it is handed on. Here are the first two:

# %%
attention = GlobalAttention(Similarity("general", n, n, rng=rng, dtype=np.float64))
join = AttentionalState(n, n, rng=rng, dtype=np.float64)
w, w_c = attention.similarity.weight.value, join.join.weight.value  # (N, N), (2N, N)
h, m = rng.standard_normal((1, 1, n)), rng.standard_normal((1, 6, n))  # (B, T, N), (B, S, N)

a, _ = softmax(h @ w @ m.swapaxes(1, 2))  # (B, T, S)
y = np.tanh(np.concatenate([a @ m, h], -1) @ w_c)  # (B, T, N)

dy = rng.standard_normal(y.shape)
dcontext, dh = np.split((dy * (1 - y * y)) @ w_c.T, 2, -1)  # h is joined ...
da = dcontext @ m.swapaxes(1, 2)  # (B, T, S)
ds = a * (da - (da * a).sum(-1, keepdims=True))
dh = dh + ds @ m @ w.T  # ... and asks
dm = a.swapaxes(1, 2) @ dcontext  # the memory is read ...
dm = dm + ds.swapaxes(1, 2) @ (h @ w)  # ... and compared

context, attended = attention.forward(h, m)
y_package, joined = join.forward(context, h)
assert_allclose(y, y_package, rtol=1e-12)
dcontext, dh_joined = join.backward(dy, joined)
dh_asked, dm_package = attention.backward(dcontext, attended)
assert_allclose(dh, dh_joined + dh_asked, rtol=1e-9)
assert_allclose(dm, dm_package, rtol=1e-9)
print("one step of Luong's decoder, forward and backward, is the package's")

# %% [markdown]
# ## Where they look
#
# The alignment is the T × S matrix of weights. In ours, a row is a letter to be written; who writes backwards
# must look along the other diagonal. Nobody has told the models so.

# %%
text = "gacbedhf"
ids = [4 + letters.index(letter) for letter in text]
batch = make_batch([(ids, ids[::-1])])
rows, columns = [*text[::-1], "</S>"], [*text, "</S>"]
for name, title, model in zip(("additive", "global"), names[2:], models[2:], strict=True):
    weights = model.forward(*batch.inputs)[1].decoder.weights[0]  # (T, S)
    figure = attention_map(weights, rows, columns, numbers=True, title=title)
    show_figure(figure, f"17_{name}", "A row: a letter to write; a column: a letter read")
    due = np.mean([weights[t, 7 - t] for t in range(8)])
    print(f"{title:20} mean weight on the letter that is due: {due:.2f}")
    assert due > 0.45

# %% [markdown]
# The other diagonal it is, though not a sharp one: every state was read from both sides and knows its
# neighbours too. Weights show where a model *looked*.
#
# ## What must wait
#
# *The components of the Transformer*: to process step t, encoder and decoder must wait for the t − 1 steps
# before. The paper (section 1): "This inherently sequential nature precludes parallelization within training
# examples". How long is that line? As in lesson 16, an array that remembers how many products of matrices led
# to it, one after the other; now through whole models, which read n words and write n:


# %%
class Deep(np.ndarray):
    """An array with .depth, the longest chain of products of matrices that led to it."""

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
    for parameter in model.parameters():
        parameter.value = parameter.value.view(Deep)
    return model.forward(np.full((1, n), 5), np.full((1, n), 5))[0].depth


vocabularies = {"source_vocab": 12, "target_vocab": 12}
systems = {"none": (2, 2), "additive": (5, 3), "global": (2, 6), "global, fed": (6, 2)}
for name, (each, more) in systems.items():
    kind = {"attention": name.split(",")[0], "feeding": "fed" in name}
    model = RecurrentTranslator(RecurrentConfig(**vocabularies, d_model=8, d_hidden=8, **kind))
    found = [depth(model, n) for n in (8, 16, 32)]
    print(f"{name:12}", found, f"{each}n + {more}")
    assert found == [each * n + more for n in (8, 16, 32)]
small = TransformerConfig.architecture("small", **vocabularies)  # 2 + 2 layers
transformer = Transformer(small)
found = [depth(transformer, n) for n in (8, 16, 32)]
print("Transformer ", found)
assert found == [29, 29, 29]

# %% [markdown]
# Luong's attention adds four products at the end, and none for each word: hₜ does not need cₜ, so that **all
# words can look at once** when the states are there. Bahdanau's cell needs cₜ: looking stands in the line,
# and input feeding puts it there too. The Transformer has 29 for any n. A batch makes each step wider and the
# line no shorter. And in decoding all of them go word by word (lesson 14).
#
# ## Is it right?
#
# A whole translator with its loss, one sentence padded in its source and one in its
# target, and dropout, drawn anew from one seed:

# %%
sizes = {"d_model": 4, "d_hidden": 6, "cell": "gru", "attention": "additive", "dropout": 0.2}
small = RecurrentTranslator(RecurrentConfig(**vocabularies, **sizes), rng=rng, dtype=np.float64)
batch = make_batch([([5, 8, 7], [6, 9]), ([4], [10, 5, 11])])
report = gradcheck(ModelWithLoss(small), *batch, train=True, rng=7)
worst = max(report.rows, key=lambda row: row.error)
print(f"{len(report.rows)} rows, the largest error {worst.error:.0e} at {worst.tensor}")
assert report.ok

# %% [markdown]
# ## Measured: the whole family
#
# To translate: `npformer train --architecture rnn-global` trains Luong's model on the built-in corpus; `rnn`,
# `rnn-additive`, `rnn-global-feeding`, `rnn-local-m` and `rnn-local-p` are the others (lesson 18 has the last
# two), and `universal` is the Universal Transformer of lesson 21. `npformer family --measure` trains all of
# them and a Transformer, each with the same number of parameters, within 2 %, and for the same **processor
# time**: a system whose step takes longer makes fewer steps. The highest learning rate of each was found by
# the same small search on validation data (`npformer family --search`).
#
# On 22 November 2026, on an x86-64 machine with two processors, one BLAS thread, 64 sentences a step, about
# 46 seconds each, one seed. The numbers of this section are those of a smaller form of the built-in corpus,
# with 18,152 training pairs:
#
# ```math
#                         steps   exact     1-6     7-9   10-12     13+
# additive (Bahdanau)       787   98.4%   96.4%   97.6%   99.4%  100.0%
# global (Luong)          1,051   92.9%   96.8%   92.7%   91.1%   98.8%
# local-m                 1,028   87.2%   98.2%   92.0%   79.5%   97.7%
# global, input feeding   1,010   86.5%   89.6%   90.3%   82.5%   93.0%
# local-p                   969   91.1%   97.8%   95.8%   85.2%   97.7%
# Universal Transformer     614   87.9%   91.7%   92.3%   83.0%   96.5%
# Transformer             1,000   97.9%   97.1%   96.7%   98.7%  100.0%
# ```
#
# "exact" is the share of held-out sentences that came out word for word right, of all and by their words of
# English. With 64 seconds, 921 steps, the Universal Transformer translates 98.4 % exactly.
#
# Read it with care: it is one seed, and seeds differ by a few per cent (the command takes three, and prints
# the range). Two things matter more than the kind of attention. One is the **scale at the start**: with token
# vectors of length 1 the first states are near 0, and a recurrent network learns slowly. Multiplied by √D, as
# in the Transformer, they bring the validation loss of `rnn-global` after 300 steps from .94 down to .24.
# The other is the **learning rate**: recurrent networks like .01, where the Transformer is best at .003. With
# the Transformer's rate and small vectors, additive attention translated 62 % and local-p (D = 4) 6 %.
#
# And for the speed of which the documents speak, these sentences are too short and this machine too narrow:
# on one processor no system's step is far from another's. The words that must wait for each other are what a
# GPU would see.
#
# ## Exercises
#
# `npformer exercise list` has them, each graded by the gradient checker.
#
# - `npformer exercise start lstm-cell-backward`: c′ has two ways out; complete its gradient first.
# - `npformer exercise start gru-cell-backward`: three gradients, and r acts on the state's share alone.
# - By hand: for which gates does an LSTM keep c as it is, and a GRU its h? What is dgates there, and why can
#   a state that is kept for sure not learn to be written?
#
# To try now, in the terminal: `!right(models[2], 10).round(2)`, and `!depth(transformer, 64)`. In the zoo
# a network reads, and has a bug: `npformer bugs start 19`.

# %% [markdown]
# ## Where the documents differ
#
# - *The components of the Transformer*: without attention the first elements are lost. Measured, what is
#   written last is. It says that each sequence has to be processed by itself: the words of one sentence do
#   wait for each other; sentences go through in batches.
# - *Attention机制详解（二）* takes up where its first part, on attention in RNNs, ends; that is not among the
#   documents. Its *bank … river* is not far: the two are four words apart.
# - Luong's paper has a tanh in its *concat* score, which makes it Bahdanau's perceptron. The linear one of
#   *一步步解析Attention is All You Need!* ignores the query (lesson 4).
# - Bahdanau's output layer (a maxout of state, context and last word) is Luong's h̃ here, so that the systems
#   differ in their attention alone; and his decoder begins with the left end alone, ours with both.
#
# **Next**, lesson 18: must every word look at all words? Local attention.

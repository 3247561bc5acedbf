# %% [markdown]
# # 15 · What attention learned
#
# *30 minutes to read, 15 seconds to run where lesson 13 has run in the same folder, 60 elsewhere. Lesson 5
# for the backward pass of attention, lesson 13 for the model.*
#
# **The question.** "The animal didn't cross the street because it was too tired." French has to say what
# *it* is: *il* for the animal, *elle* for the street. Our model gets it right, on words that it has never
# seen together. How does it know? Does a head look at the animal? And if one does, is *that* why?

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.checking import gradcheck
from npformer.data import UNK, make_batch
from npformer.data.corpus import builtin_corpus
from npformer.data.corpus.ambiguous_it import NUMBERS
from npformer.data.corpus.lexicon import ANIMALS, GROUNDS, MACHINES
from npformer.functional.heads import split_heads
from npformer.functional.softmax import softmax_backward
from npformer.generation import Translator
from npformer.learn.course import show_figure
from npformer.learn.course.trained import trained
from npformer.models.registry import model_from_checkpoint
from npformer.plots import attention_map, curves, probability_bars
from npformer.training import Validated

rng = np.random.default_rng(15)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passages
#
# *Attention Is All You Need*, section 4:
#
# > Not only do individual attention heads clearly learn to perform different tasks, many appear to exhibit
# > behavior related to the syntactic and semantic structure of the sentences.
#
# *图解transformer* shows it on our sentence: in the fifth of six encoder layers, while *it* is encoded, one
# head looks mostly at "the animal", another at "tired". *Attention机制详解（二）* has "I arrived at the
# bank after crossing the river": when *bank* is translated, *river* has a high score.
#
# Each shows one sentence and the heads that fit. We count: every head, on hundreds of sentences, against
# what chance would give. And then we ask what a picture cannot tell: whether the weights *matter*.

# %%


def tell(event):
    """One line for each validation, where it has to be trained first."""
    if isinstance(event, Validated):
        print(f"step {event.step:5}   loss {event.loss:.3f}   accuracy {event.accuracy:.1%}")


checkpoint = trained(report=tell)  # lesson 13's run, or the same training now
translator = Translator.from_checkpoint(checkpoint)
model, source, target = translator.model, translator.source_codec, translator.target_codec
H, K = model.config.n_heads, model.config.head_value
held_out = builtin_corpus().new_words
layers = f"{model.config.n_layers} + {model.config.n_layers} layers of {H} heads"
print(f"the model of step {checkpoint.step}: {layers}, each head {K} wide")

# %% [markdown]
# ## Does it know?
#
# Give the decoder the right words so far, and look at the step where *il* or *elle* has to come. The model
# prefers the right one if the **logit difference** is above 0:
#
# ```math
# δ = logit(right word) − logit(wrong word)
# ```
#
# For *bank* the two words are *rive* and *banque*. The corpus says for each sentence which is right, where
# it comes, which noun *it* stands for (its antecedent), and which words decide. For *it* we take sentences in
# which the place comes two words before *it*, as in the famous ones, and in which both nouns are singular.

# %%


def famous(pair):
    """Whether the place comes two words before *it*, and both nouns are singular."""
    words, at = pair.english.split(), pair.reference.word
    singular = not set(NUMBERS) & set(pair.constructions)
    return singular and at > 2 and words[at - 2] in GROUNDS


class Exam:
    """Held-out sentences of a family as one batch, and where their words stand."""

    def __init__(self, family, most):
        asked = [pair for pair in held_out if pair.family == family]
        self.pairs = [pair for pair in asked if family == "bank" or famous(pair)][:most]
        texts = [(source.encode(p.english), target.encode(p.french)) for p in self.pairs]
        self.batch = make_batch(texts)
        of = [pair.reference for pair in self.pairs]
        self.rows = np.arange(len(of))  # (B,)
        self.word = np.array([r.word for r in of])  # (B,) where it, or bank, stands
        self.answer = np.array([r.answer for r in of])  # (B,) the step that writes il, or elle
        self.right = np.array([target.encode(r.right)[0] for r in of])  # (B,) ids
        self.wrong = np.array([target.encode(r.wrong)[0] for r in of])

    def ask(self, batch=None):
        """Returns the logit differences (B,) and the cache."""
        batch = self.batch if batch is None else batch
        logits, cache = model.forward(batch.source, batch.target_in)  # (B, T, V)
        at = logits[self.rows, self.answer]  # (B, V)
        return at[self.rows, self.right] - at[self.rows, self.wrong], cache


it, bank = Exam("it", 100), Exam("bank", 200)
delta, passed = it.ask()
knows_it, knows_bank = (delta > 0).mean(), (bank.ask()[0] > 0).mean()
most = max(np.bincount(it.right)) / len(it.rows)
print(f"it:   right in {knows_it:.1%} of {len(it.rows)}; always the commoner word: {most:.1%}")
print(f"bank: right in {knows_bank:.1%} of {len(bank.rows)}")
assert knows_it > 0.85 > 0.6 > most
assert knows_bank > 0.85

# %% [markdown]
# It knows. More than 85 % for *it*, where the commoner word alone would give less than 60.
#
# ## Where do the heads look?
#
# There are two places to ask. In the **encoder**, *it* is a query, and may look at its noun. In the
# **decoder**, the step that writes *il* asks the encoder's output: cross-attention. Here is what the heads
# there look at:

# %%


def layers_of(tree):
    """The three kinds of attention, layer by layer: of the model, or of its cache."""
    encoder, decoder = tree.encoder.layers, tree.decoder.layers
    return {
        "encoder": [layer.self_attention for layer in encoder],
        "decoder": [layer.self_attention for layer in decoder],
        "cross": [layer.cross for layer in decoder],
    }


cache = layers_of(passed)["cross"][-1].attention  # of the last cross-attention
show(cache)

# %% [markdown]
# weights is (B, H, T, S): sentence, head, step, English word. Take the row of the step that asks, in each
# sentence, for each head. The words fall into six kinds: the antecedent, the other noun, the adjective that
# decides, *it* itself, the end symbol, and the rest. What share of its weight does each head give to each
# kind?

# %%


def rows_of(passages, passed):
    """The weights of the row that asks: a dict from (where, layer, head) to (B, S)."""
    found = {}
    for where, queries in (("encoder", passages.word), ("cross", passages.answer)):
        for layer, each in enumerate(layers_of(passed)[where]):
            for head in range(H):
                found[where, layer, head] = each.attention.weights[passages.rows, head, queries]
    return found


kinds = ["antecedent", "other noun", "adjective", "it", "</S>", "rest"]
kind = np.full(it.batch.source.shape, 5)  # (B, S) the rest; padding has no weight
for row, pair in enumerate(it.pairs):
    words, r = pair.english.split(), pair.reference
    mover = next(i for i, word in enumerate(words) if word in ANIMALS or word in MACHINES)
    nouns = {mover, r.word - 2}  # "... the street because it": the place stands two before it
    kind[row, list(nouns - {r.antecedent})], kind[row, r.antecedent] = 1, 0
    kind[row, r.deciders], kind[row, r.word], kind[row, len(words)] = 2, 3, 4
assert all((kind == n).sum() == len(it.rows) for n in range(5))  # one of each in every sentence

rows = rows_of(it, passed)
names = [f"{where} {layer}.{head}" for where, layer, head in rows]
shares = np.array(
    [[(weights * (kind == n)).sum(-1).mean() for n in range(6)] for weights in rows.values()]
)  # (16, 6)
assert_allclose(shares.sum(-1), 1, rtol=1e-5)

# %%
figure = attention_map(shares, names, kinds, numbers=True)
caption = "What each head looks at, at it or where il or elle is written; means of 100"
show_figure(figure, "15_kinds", caption)

# %% [markdown]
# Read it row by row: heads do divide the words among them. One gives the adjective more than .4 of its
# weight, one the end symbol more than a sixth. And heads of one layer, side by side, do so differently:

# %%
for name, share, head in zip(kinds, shares.max(0), shares.argmax(0), strict=True):
    first = head // H * H  # of its layer
    beside = shares[first : first + H, kinds.index(name)].min()
    print(f"{name:11} at most {share:.2f}, by {names[head]}; in its layer at least {beside:.2f}")
assert shares.max(0)[2] > 0.4
assert shares.max(0)[4] > 1 / 6

# %% [markdown]
# ## How often at the antecedent, and what is chance?
#
# Count the sentences in which a head's *strongest* look is at the antecedent. Two yardsticks. A head that
# looks anywhere: one over the number of words. And a head that has learned a *place*: "two words before
# *it*" is always a noun, and in about half of the sentences it is the antecedent. That needs no
# understanding at all.

# %%
hit = {name: kind[it.rows, w.argmax(-1)] == 0 for name, w in rows.items()}  # each (B,)
hits = {name: found.mean() for name, found in hit.items()}
anywhere = np.mean([1 / (len(pair.english.split()) + 1) for pair in it.pairs])
is_place = np.array([pair.reference.antecedent == pair.reference.word - 2 for pair in it.pairs])
two_back = is_place.mean()
figure = probability_bars(
    np.array([*hits.values(), anywhere, two_back]), [*names, "anywhere", "two words back"]
)
show_figure(figure, "15_looks", "How often the strongest look goes to what it stands for")

# %%
in_encoder = max((n for n in hits if n[0] == "encoder"), key=hits.get)
in_cross = max((n for n in hits if n[0] == "cross"), key=hits.get)
print(f"chance: anywhere {anywhere:.0%}, always two words back {two_back:.0%}")
for name in (in_encoder, in_cross):
    found = hit[name]
    place, mover = found[is_place].mean(), found[~is_place].mean()
    print(
        f"best of {name[0]:8} layer {name[1]}, head {name[2]}: {hits[name]:4.0%} "
        f"(where it is the place {place:4.0%}, where it is what moves {mover:4.0%})"
    )
best = max(hits, key=hits.get)
place = "encoder's self-attention" if best[0] == "encoder" else "cross-attention"
print(f"the phenomenon is seen best in the {place}")
assert 0.05 < anywhere < 0.15
assert 0.4 < two_back < 0.6
assert anywhere < hits[best] < knows_it

# %% [markdown]
# That is the sober version of the famous picture: the best head beats "anywhere", and yet looks at the
# antecedent less often than the model gets the word right. Read the brackets, too: a head that finds only
# the places, or only what moves, has a habit, not an insight.
#
# And this head was picked, among sixteen, for these very sentences. Another seed gives other heads, and on
# your machine, rounding may have led training elsewhere.
#
# The best head on the two famous sentences, which differ in one word:

# %%
pair = [
    "the animal didn't cross the street because it was too tired",
    "the animal didn't cross the street because it was too wide",
]
french = [p.french for e in pair for p in held_out if p.english == e]
both = zip(pair, french, strict=True)
two = make_batch([(source.encode(english), target.encode(f)) for english, f in both])
logits, seen = model.forward(two.source, two.target_in)
il, elle = target.encode("il")[0], target.encode("elle")[0]
step = int(np.flatnonzero(np.isin(two.target_out[0], (il, elle)))[-1])  # the same in both
where, layer, head = best
query = step if where == "cross" else pair[0].split().index("it")
weights = layers_of(seen)[where][layer].attention.weights[:, head, query]  # (2, S)
gaps = logits[:, step, il] - logits[:, step, elle]  # (2,)
for sentence, answer, gap in zip(pair, french, gaps, strict=True):
    print(f"... {sentence[-9:]}   il − elle = {gap:+.1f}   {answer}")
assert gaps[0] > 0 > gaps[1]

# %%
keys = [*pair[0].split()[:-1], "tired/wide", "</S>"]
figure = attention_map(weights, ["... tired", "... wide"], keys, numbers=True)
caption = f"{where}, layer {layer}, head {head}, in two sentences that differ in one word"
show_figure(figure, "15_two", caption)

# %% [markdown]
# ## And *bank*?
#
# The same count, for the words that decide: river, money, the fisherman. And a claim of
# *Attention机制详解（二）* on the way: a word's score with itself is "obviously" the largest as a rule. How
# often is it, in the encoder?

# %%
bank_rows = rows_of(bank, bank.ask()[1])
decide = [set(p.reference.deciders) for p in bank.pairs]
bank_hits = {
    name: np.mean([k in d for k, d in zip(w.argmax(-1), decide, strict=True)])
    for name, w in bank_rows.items()
}
best_bank = max(bank_hits, key=bank_hits.get)
print(f"bank: {best_bank} looks most at a word that decides in {bank_hits[best_bank]:.0%}")

real = it.batch.source != model.config.pad_id  # (B, S)
strongest = np.stack(
    [each.attention.weights.argmax(-1) for each in layers_of(passed)["encoder"]]
)  # (L, B, H, S)
itself = strongest == np.arange(real.shape[1])
largest_is_itself = itself.swapaxes(2, 3)[:, real].mean()
print(f"a word looks most at itself in {largest_is_itself:.0%} of the encoder's rows")
assert bank_hits[best_bank] > 0.4
assert largest_is_itself < 0.5

# %% [markdown]
# A word looks at itself in less than half of the rows. What is obvious for similarities x·x is not so for
# qᵀk, where W^Q and W^K may turn "like" into anything.
#
# ## Cut a head out
#
# To look at something is one thing, to need it another. So take a head away. Multi-head attention lays its
# heads side by side and multiplies by W^O. Cut W^O into blocks of rows, one for each head (H blocks of K
# rows):
#
# ```math
# y  = Concat(z₁ … z_H) W^O + b
#    = Σ_h z_h W^O_h + b           z_h (T, K), W^O_h (K, D)
# ```
#
# A head speaks through its own block and nowhere else. Zero the block, and it is gone.

# %%


class without:
    """with without(layer, head): the layer's attention lacks one head, or several."""

    def __init__(self, layer, *heads):
        self.weight, self.heads = layer.output.weight.value, heads  # (H·K, D)

    def __enter__(self):
        self.kept = self.weight.copy()
        for head in self.heads:
            self.weight[head * K : (head + 1) * K] = 0

    def __exit__(self, *_):
        self.weight[...] = self.kept


attention = layers_of(model)["cross"][-1]
x, memory = rng.standard_normal((2, 1, 5, model.config.d_model)).astype(np.float32)
y, made = attention.forward(x, memory)
z = made.attention.weights @ made.attention.v  # (1, H, T, K)
blocks = attention.output.weight.value.reshape(H, K, -1)  # (H, K, D)
spoken = (z @ blocks)[0]  # (H, T, D) what each head adds
assert_allclose(spoken.sum(0) + attention.output.bias.value, y[0], atol=1e-5)
with without(attention, 1):
    assert_allclose(attention.forward(x, memory)[0][0], y[0] - spoken[1], atol=1e-5)
assert_allclose(attention.forward(x, memory)[0], y)  # and it is whole again

# %%
cut, loss_of, together = {}, {}, {}
for where, layers in layers_of(model).items():
    for layer, each in enumerate(layers):
        for head in range(H):
            with without(each, head):
                after = it.ask()[0]
            cut[where, layer, head] = (after > 0).mean()
            loss_of[where, layer, head] = (delta - after).mean()  # of δ, in logits
        with without(each, *range(H)):
            together[where, layer] = (it.ask()[0] > 0).mean()
bars = {"whole": knows_it}
for (where, layer), share in together.items():
    bars |= {f"{where} {layer}.{head}": cut[where, layer, head] for head in range(H)}
    bars[f"{where} {layer}, all"] = share
figure = probability_bars(np.array([*bars.values()]), [*bars])
caption = "The right one of il and elle, without one head, or without a layer's heads"
show_figure(figure, "15_cut", caption)

# %%
worst, worst_layer = min(cut, key=cut.get), min(together, key=together.get)
harmless = np.mean([share > knows_it - 0.02 for share in cut.values()])
print(f"whole {knows_it:.1%}; without {worst} {cut[worst]:.1%}")
print(f"without all heads of {worst_layer} {together[worst_layer]:.1%}")
print(f"{harmless:.0%} of the {len(cut)} heads can be cut at a cost of less than 2 points")
print(f"without {best}, which looks at the antecedent most: {cut[best]:.1%}")
assert together[worst_layer] < cut[worst]
assert harmless > 0.5

# %% [markdown]
# More than half of the heads can go, one at a time, and hardly anything happens; all heads of one layer
# together can cost more than any of them. The work is shared, and where one falls silent others still
# speak. (Michel et al., 2019, cut heads of large models and found the same.) And the last line is the head
# of the famous picture. Compare it with the first: is the head that looks where one hopes also one that the
# model needs?
#
# Now lay the two lists side by side. If looking at the antecedent were the reason, the heads that look
# there most should be missed most. Here is their rank correlation, 1 for the same order, 0 for none:

# %%


def rank_correlation(a, b):
    """Spearman's: the correlation of the places that the numbers take."""
    places = [np.argsort(np.argsort(each)) for each in (a, b)]
    return np.corrcoef(places)[0, 1]


asked = list(hits)  # the 16 heads of encoder and cross-attention
lost = [loss_of[name] for name in asked]
by_attention = rank_correlation([hits[name] for name in asked], lost)
print(f"looking at the antecedent, and being missed: {by_attention:+.2f}")
for name in sorted(asked, key=loss_of.get)[:-5:-1]:
    print(f"  {name}   missed by {loss_of[name]:.2f} logits, looks there in {hits[name]:4.0%}")
assert abs(by_attention) < 0.9

# %% [markdown]
# ## A second opinion: the gradient
#
# δ is a number, and this package has the gradient of any number with respect to anything on the way. Begin
# with +1 at the right word, −1 at the wrong one, and go backward. At each attention dZ arrives, and lesson
# 5 had the rest:
#
# ```math
# Z = P V    ⇒    dpₜₛ = Σᵢ dzₜᵢ vₛᵢ        dP = dZ Vᵀ
# ```
#
# **dpₜₛ is how much δ rises if query t takes more of word s.** But a row of P sums to 1: what s gains,
# others lose. Move a little, ε, of the whole row to s, that is p ← (1 − ε) p + ε eₛ. Then δ changes by
#
# ```math
# ε (dpₛ − Σⱼ pⱼ dpⱼ)  =  ε gₛ           so that dsₛ = pₛ gₛ, the softmax's backward
# ```
#
# And the average that is subtracted is worth a look of its own:
#
# ```math
# Σₛ pₛ dpₛ  = Σₛ pₛ Σᵢ dzᵢ vₛᵢ  = Σᵢ dzᵢ zᵢ  = ⟨dz, z⟩
# ```
#
# To first order, **δ falls by Σₜ ⟨dz, z⟩ if the head is cut**: z goes to 0 along a line, and dz is the
# slope.

# %%


def heads(p, v, w):
    """y = Σ_h P_h V_h W_h. Shapes: p (H, T, S), v (H, S, K), w (H, K, D) -> (T, D)."""
    z = p @ v  # (H, T, K)
    return (z @ w).sum(0), (p, v, w, z)


def heads_backward(dy, cache):
    """Gradients (dp, dv, dw)."""
    p, v, w, z = cache
    dz = dy @ w.swapaxes(-1, -2)  # (H, T, K)
    return dz @ v.swapaxes(-1, -2), p.swapaxes(-1, -2) @ dz, z.swapaxes(-1, -2) @ dy


p, v, w = (rng.standard_normal(shape) for shape in ((2, 3, 4), (2, 4, 5), (2, 5, 6)))
report = gradcheck((heads, heads_backward), p, v, w)
print(report)
assert report.ok

dy = rng.standard_normal(y.shape).astype(np.float32)
model.zero_grad()
attention.backward(dy, made)  # the package's, on the layer and the arrays of before
weights, values = made.attention.weights[0], made.attention.v[0]  # (H, T, S), (H, S, K)
_, _, dblocks = heads_backward(dy[0], heads(weights, values, blocks)[1])
assert_allclose(dblocks, attention.output.weight.grad.reshape(H, K, -1), atol=1e-4)

# %% [markdown]
# The model's own backward passes through every attention and hands on dq, dk and dv; dZ it does not keep.
# But a layer is an object, and its `backward` a name: we put one in its place that listens, then does what
# it always did.

# %%


def listen(model, heard):
    """Have every attention put its dZ (B, H, T, K) into heard before it goes on."""

    def listening(name, layer):
        own = layer.backward

        def backward(dy, cache):
            heard[name] = split_heads(dy @ layer.output.weight.value.T, H)
            return own(dy, cache)

        return backward

    for where, layers in layers_of(model).items():
        for number, layer in enumerate(layers):
            layer.backward = listening((where, number), layer)


def slope_of(model, passages):
    """dZ of every attention, of the sum of the exam's logit differences; and the cache."""
    logits, passed = model.forward(passages.batch.source, passages.batch.target_in)
    dlogits = np.zeros_like(logits)  # (B, T, V)
    dlogits[passages.rows, passages.answer, passages.right] = 1
    dlogits[passages.rows, passages.answer, passages.wrong] = -1
    model.backward(dlogits, passed)
    return passed


dz = {}
listen(model, dz)
passed = slope_of(model, it)
each, arrived = layers_of(passed)["cross"][-1].attention, dz["cross", model.config.n_layers - 1]
dweights = arrived @ each.v.swapaxes(-1, -2)  # (B, H, T, S)
average = (dweights * each.weights).sum(-1)  # (B, H, T)
assert_allclose(average, (arrived * (each.weights @ each.v)).sum(-1), atol=1e-4)
gain = dweights - average[..., None]  # (B, H, T, S) what a move to each word is worth
assert_allclose(each.weights * gain, softmax_backward(dweights, each.weights), atol=1e-4)

# %% [markdown]
# Is dZ right, through all that lies above it? Multiply one head's block of W^O by 1 + ih, with h = 10⁻²⁰
# (lesson 0): its z is then multiplied by that, and δ must rise by ih Σₜ ⟨dz, z⟩. In the first encoder layer,
# so through the whole model, on one sentence:

# %%
exact = model_from_checkpoint(checkpoint).astype(np.float64)
one, gradient = Exam("it", 1), {}
listen(exact, gradient)
seen = layers_of(slope_of(exact, one))["encoder"][0].attention
claimed = (gradient["encoder", 0] * (seen.weights @ seen.v))[0, 2].sum()  # of head 2

weight = exact.encoder.layers[0].self_attention.output.weight
weight.value = weight.value.astype(complex)
weight.value[2 * K : 3 * K] *= 1 + 1e-20j
logits = exact.forward(one.batch.source, one.batch.target_in)[0][0, one.answer[0]]  # (V,)
measured = (logits[one.right[0]] - logits[one.wrong[0]]).imag / 1e-20
print(f"Σ ⟨dz, z⟩ claimed {claimed:.12f}, measured {measured:.12f}")
assert_allclose(claimed, measured, rtol=1e-9)

# %% [markdown]
# One backward pass, and every head has a forecast of what its cut will cost. Was the forecast good?

# %%
forecast = {}
for name, arrived in dz.items():
    each = layers_of(passed)[name[0]][name[1]].attention
    given = (arrived * (each.weights @ each.v)).sum((2, 3)).mean(0)  # (H,) ⟨dz, z⟩, all queries
    forecast |= {(*name, head): given[head] for head in range(H)}
measured = np.array([loss_of[name] for name in loss_of])  # (24,)
expected = np.array([forecast[name] for name in loss_of])
by_gradient = rank_correlation([forecast[name] for name in asked], lost)
print("rank correlation with what a cut costs:")
print(f"all 24 heads, by the gradient       {rank_correlation(expected, measured):+.2f}")
print(f"the 16 heads of above, by gradient  {by_gradient:+.2f}")
print(f"and by looking at the antecedent    {by_attention:+.2f}")
assert by_gradient > 0.3

# %%
order = measured.argsort()
figure = curves(
    np.stack([expected, measured])[:, order],
    np.arange(1, len(order) + 1),
    labels=["forecast: ⟨dz, z⟩", "measured: the cut"],
    xlabel="head, in the order of what its cut costs",
    ylabel="loss of δ, in logits",
)
show_figure(figure, "15_forecast", "One backward pass foretells 24 cuts")

# %% [markdown]
# The first and the second number say how well the gradient knows which heads will be missed, the third how
# well their looks at the antecedent do. The race is not quite fair: ⟨dz, z⟩ counts all rows and all words
# of a head, the look one row and one word. But that is the point. A head's word to the rest is P V W^O, and
# what the rest makes of it is dZ. **A weight says where from; it does not say what, nor whether anybody
# listens.**
#
# The forecast has its own limit. It is a slope, and a cut is a long step: where the curves part, something
# above the head bends, a softmax or a norm or a rectifier.
#
# ## And the words?
#
# What was said of a head may be said of a word: that a head looks at it does not show that it is needed.
# Exchange a word for `<UNK>`, a vector that training has never touched, and see what becomes of δ:

# %%
ids, right_after = it.batch.source, {}
for n, name in enumerate(kinds[:4]):
    after = it.ask(it.batch._replace(source=np.where(kind == n, UNK, ids)))[0]
    right_after[name], cost = (after > 0).mean(), (delta - after).mean()
    print(f"without the {name:11} right {right_after[name]:5.1%}   δ falls by {cost:.2f}")
assert max(right_after["antecedent"], right_after["adjective"]) < knows_it - 0.1

# %% [markdown]
# Here is the cause, measured: without the antecedent, or without the adjective, more than ten sentences in
# a hundred that were right come out wrong. The model needs what a reader needs, both the noun and what is
# said of it.
#
# A weight, a slope and a cut answer three questions. Only the cut, and the exchange, are the experiment.
#
# | question | asks | costs |
# |---|---|---|
# | where does the head take from? | P | one forward pass |
# | what would a small change do? | dP = dZ Vᵀ, ⟨dz, z⟩ | one backward pass more |
# | what happens if it is taken away? | the model without it | a forward pass for each head, or word |
#
# ## Exercises
#
# `npformer exercise list` has none for this lesson: its questions have no known answer to be graded by.
# Some for the pencil, and for the terminal:
#
# - By hand: one query, two keys, p = (.7, .3), dp = (2, −1). What is ⟨dz, z⟩, what is g, and by how much
#   does δ rise if a tenth of the row moves to the first key? (1.1; (.9, −2.1); .09.)
# - Two heads cut at once can cost more than their costs together, or less. Find such pairs: `without(layer,
#   0, 2)` takes several heads.
# - Where do the heads look for *bank* when the words that decide are exchanged for `<UNK>`?
#
# To try now, in the terminal: `!sorted(hits.items(), key=lambda item: -item[1])[:3]`, and in a shell
# `npformer attention --model runs/lesson13 --kind cross "the dog is tired"`. A seed of its own shows other
# heads: `npformer train --set norm=post --set final_norm=False --seed 5 --run runs/mine`.

# %%
p, dp = np.array([0.7, 0.3]), np.array([2.0, -1.0])
assert_allclose([p @ dp, *(dp - p @ dp), 0.1 * (dp - p @ dp)[0]], [1.1, 0.9, -2.1, 0.09])

# %% [markdown]
# ## Where the documents differ
#
# - *图解transformer* shows *it* in the encoder, in a model of six layers and eight heads trained on
#   millions of sentences (tensor2tensor's), and concludes that the head has joined *it* and "the animal".
#   One sentence and a head picked for it show that it can look so. In our model the head is found by
#   counting, and may as well be in the cross-attention; how often it looks there is printed above, beside
#   what chance gives.
# - *Attention机制详解（二）*: that *river* has a high score for *bank* is borne out: one head looks most at
#   a word that decides in more than 40 % of all sentences. That a word's score with itself is the largest
#   as a rule is not: it is in fewer than half of the rows.
# - The paper speaks of heads that "exhibit behavior". That is a claim about P, and careful. Whether
#   attention is an explanation has been disputed since (Jain and Wallace, 2019; Wiegreffe and Pinter,
#   2019).
#
# **Next**, lesson 16: where the time goes, and how to get it back.

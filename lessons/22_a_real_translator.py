# %% [markdown]
# # 22 · A real translator
#
# *30 minutes to read, 15 seconds to run. Lesson 1 for words and batches, lesson 12 for the loss, lesson 13
# for Adam and its schedule, lesson 14 for beam search.*
#
# **The question.** A grammar of 280 English words made our sentences. People write any word they like, and
# no two of them translate alike. What more does it take to learn from their text? Which of the models on
# the way is the best? And how good is it, in a number that others can compare with theirs?
#
# `npformer train --preset multi30k-en-de` does all that follows, on 29,000 captions of photographs, English
# and German. Here each part runs small, on the built-in corpus, in seconds.

# %%
import math
from collections import Counter
from itertools import pairwise

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, UserError, data, show
from npformer import functional as F
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import END, SPECIALS, START, SubwordCodec, Vocabulary, make_batch
from npformer.data.corpus import builtin_corpus
from npformer.data.moses import moses_detokenize, tokenised
from npformer.data.subwords import WORD_BEGIN, Pieces
from npformer.generation import beam_search, translate_ids
from npformer.generation.bleu import bleu as bleu_of_sacrebleu
from npformer.learn.course import show_figure
from npformer.plots import Curve, Panel, attention_map, curve_page, curves
from npformer.pretrained import load, names
from npformer.training import evaluate, make_schedule
from npformer.training.optimizer import Adam, decayed, warmup
from npformer.training.presets import find_preset
from npformer.training.step import dropout_rngs, make_step

rng = np.random.default_rng(22)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passage
#
# *Attention Is All You Need*, sections 5.1 and 6.1:
#
# > Sentences were encoded using byte-pair encoding, which has a shared source-target vocabulary of about
# > 37000 tokens.
#
# > For the base models, we used a single model obtained by averaging the last 5 checkpoints, which were
# > written at 10-minute intervals.
#
# ## Text as a corpus has it
#
# Scores of Multi30k are given on its tokenised form: lower case, marks set apart, and some written as
# entities. `tokenised` makes it of any text; text that has it stays as it is. `moses_detokenize` is the way
# back, all but the capitals.

# %%
said = "The man's dog didn't wait: \"Come on!\""
line = tokenised(said, "en")
print(line)
print(moses_detokenize(line))
assert line == "the man &apos;s dog didn &apos;t wait : &quot; come on ! &quot;"
assert tokenised(line, "en") == line
assert moses_detokenize(line) == said.lower()

# %% [markdown]
# ## Words that nobody counted on
#
# A vocabulary of words knows what it has seen. Take the corpus' shortest plain sentences, both languages in
# one list:

# %%
corpus = builtin_corpus()
short = [
    [pair for pair in part if pair.family == "plain" and len(pair.english.split()) <= 7]
    for part in (corpus.train, corpus.valid)
]
train, valid = short[0][:4000], short[1]
plain = SubwordCodec(Vocabulary(SPECIALS))  # no pieces yet: only to bring text to one form
lines = [plain.normalise(text) for pair in train for text in (pair.english, pair.french)]
counts = Counter(word for line in lines for word in line.split())
asked = plain.normalise("the tigers are on the riverbank")
print(f"{len(train):,} pairs, {len(counts)} words; the first: {lines[0]} | {lines[1]}")
print(" ".join(word if word in counts else "<UNK>" for word in asked.split()))
assert [word for word in asked.split() if word not in counts] == ["tigers", "riverbank"]

# %% [markdown]
# Two words of six are gone, and what is gone nobody can translate. German makes it worse: whoever writes
# may join nouns, as in *Feuerwehrwagen*. Letters would do for every word; but a sentence here would be 29 of
# them in place of 6 words, and attention costs the square of that (lesson 16).
#
# **Byte-pair encoding** (Sennrich et al., 2016) lies between. Begin with characters. Count the pairs of
# neighbours; write the most frequent as one piece; again, as often as pieces are wanted. A word is counted
# as often as it stands in the text, a ▁ marks its beginning, and no piece goes over a word's end.

# %%


def joined(parts, left, right):
    """The parts with every left that stands before a right joined to it, from the left."""
    done = []
    for part in parts:
        if done and (done[-1], part) == (left, right):
            done[-1] = left + right
        else:
            done.append(part)
    return done


split = {word: list(WORD_BEGIN + word) for word in counts}
characters = sorted({part for parts in split.values() for part in parts})
made, lengths = [], []
for _ in range(400):
    pairs = Counter()
    for word, parts in split.items():
        for pair in pairwise(parts):
            pairs[pair] += counts[word]
    left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
    made.append(left + right)
    split = {word: joined(parts, left, right) for word, parts in split.items()}
    lengths.append(sum(counts[word] * len(parts) for word, parts in split.items()) / len(lines))
print("the first pieces:", " ".join(made[:12]))
print("some of the last:", " ".join(made[-12:]))
assert {"▁the", "▁l"} < set(made[:12])

# %%
words = sum(counts.values()) / len(lines)
figure = curves(
    np.stack([lengths, np.full(400, words)]),
    np.arange(1, 401),
    labels=["pieces", "words"],
    xlabel="pieces made",
    ylabel="in a sentence",
)
caption = "Each piece makes sentences shorter, the first ones most; frequent words end as one"
show_figure(figure, "22_pieces", caption)
print(f"{lengths[0]:.1f} parts a sentence, then {lengths[-1]:.1f}; words: {words:.1f}")
assert (round(lengths[0]), round(words)) == (29, 6)
assert words < lengths[-1] < 0.35 * lengths[0]

# %% [markdown]
# ### A word that was never seen
#
# Reading asks for one thing only: the pieces *in the order in which they were made*. Of all neighbours that
# make a piece, join those whose piece was made first; again, until there are none.

# %%
rank = {piece: number for number, piece in enumerate(made)}


def pieces_of(word, tell=False):
    parts = list(WORD_BEGIN + word)
    while True:
        found = [(rank.get(a + b, len(rank)), a, b) for a, b in pairwise(parts)]
        if not found or min(found)[0] == len(rank):
            return parts
        parts = joined(parts, *min(found)[1:])
        if tell:
            print(f"piece {min(found)[0]:3}   {' '.join(parts)}")


print(pieces_of("riverbank", tell=True))
package = Pieces([*made, *characters])
for word in counts:
    assert pieces_of(word) == split[word] == list(package.split(word))

# %% [markdown]
# The words of the corpus come apart just as training left them. The package reads with a heap, so that a
# long word is no trouble; sentencepiece, which makes its pieces, reads the same. Characters come last in the
# vocabulary, for a word of which no two letters ever met:

# %%
vocabulary = Vocabulary((*SPECIALS, *dict.fromkeys([*made, *characters])))
codec = SubwordCodec(vocabulary)
print(" ".join(codec.words("the tigers are on the riverbank")))
assert codec.decode(codec.encode("the tigers are on the riverbank")) == asked
V = len(vocabulary)
try:
    theirs = set(SubwordCodec.train(lines, V).vocabulary.words)
    print(f"of sentencepiece's {V} subwords, {len(theirs & set(vocabulary.words))} are the same")
except UserError as error:
    print(error)

# %% [markdown]
# Nothing is lost: six words, all of them there again. sentencepiece has some rules of its own, for ties among
# others; most pieces are the same.
#
# ## A batch is a number of tokens
#
# 64 long sentences are many times the tokens of 64 short ones. A step should learn from about as much each
# time, and fit the same memory: so take as many sentences as there is room for, longest × sentences ≤ 1,024,
# padding counted (2,048 in the recipe). Sorted by length, with a little chance in it (lesson 1), much less
# of it is padding.

# %%


def encoded(pairs):
    return [(codec.encode(pair.english), codec.encode(pair.french)) for pair in pairs]


examples, watched = encoded(train), encoded(valid)
sizes = data.example_lengths(examples)  # (N, 2)
plan = data.plan_batches(sizes, seed=0, epoch=0, batch_tokens=1024)
words, places = sizes.sum(), sum(2 * len(ids) * sizes[ids].max() for ids in plan)
mixed = np.array_split(rng.permutation(len(sizes)), len(plan))
at_random = sum(2 * len(ids) * sizes[ids].max() for ids in mixed)
print(f"{len(plan)} batches of {min(map(len, plan))} to {max(map(len, plan))} sentences")
print(f"padding: {1 - words / places:.0%}; in any order {1 - words / at_random:.0%}")
assert all(len(ids) * sizes[ids].max() <= 1024 for ids in plan)
assert words / places > words / at_random

# %% [markdown]
# ## One table, three uses
#
# Both languages share their pieces, so they can share one table E, and the output layer uses it too
# (`tied="all"`). Of the 2.6 million parameters of the recipe half are this table. Each use gives it a
# gradient, and they add:
#
# ```math
# x = √D E[source]      t = √D E[target]      logits = h Eᵀ
# dE = dEₓ + dEₜ + dEₕ
# ```
#
# Two models with the same numbers show it, one with one table, one with three:

# %%
recipe = TransformerConfig.architecture("multi30k")
held = Transformer(recipe, rng=rng).count_parameters()
of_table = recipe.target_vocab * recipe.d_model / held
print(f"{held:,} parameters, {of_table:.0%} of them in the table")
assert round(held / 1e6, 1) == 2.6

tiny = {"d_model": 8, "d_ff": 8, "n_heads": 2, "n_layers": 1, "dropout": 0, "max_length": 40}
config = recipe.replace(source_vocab=V, target_vocab=V, **tiny)
one = Transformer(config, rng=rng, dtype=np.float64)
three = Transformer(config.replace(tied="none"), rng=rng, dtype=np.float64)
same = one.state_dict()
table = same["source.tokens.weight"]  # (V, D)
three.load_state_dict(
    {name: same.get(name, table) for name in three.state_dict() if name != "output.weight"}
    | {"output.weight": table.T}
)
batch = make_batch(examples[:3])
for model in (one, three):
    loss, cache = ModelWithLoss(model).forward(*batch)
    ModelWithLoss(model).backward(1.0, cache)
parts = [
    three.source.tokens.weight.grad,
    three.target.tokens.weight.grad,
    three.output.weight.grad.T,
]
assert_allclose(one.source.tokens.weight.grad, sum(parts), rtol=1e-9, atol=1e-12)
print("gradients of the three uses:", [float(np.linalg.norm(part).round(2)) for part in parts])

# %%
_, cache = one.forward(batch.source, batch.target_in, packed=True)
cache = cache.decoder[0].cross.attention
show(cache)
report = gradcheck(ModelWithLoss(one), *batch, train=True, rng=5)
worst = max(row.error for row in report.rows)
print(f"{len(report.rows)} checks of the whole, label smoothing with it: at most {worst:.0e}")
assert report.ok

# %% [markdown]
# Every use speaks. Two more settings are the recipe's own. 29,000 sentences are few, and are read dozens of
# times: so dropout is .3, where the paper's base model has .1, and label smoothing (lesson 12) stays at .1,
# that no word that occurred once is taken for certain.
#
# ## Up, down, and to nothing
#
# The paper's schedule (lesson 13) has no end: at the last of n steps it is still at √(w/n) of its peak, and
# the parameters jump about. Over the last share of the steps the recipe goes to 0 in a line:
#
# ```math
# lr(s) = f D^(−½) min(s^(−½), s w^(−3/2))         s ≤ a = (1 − share) n
# lr(s) = lr(a) (n − s) / (n − a)                  s > a
# ```

# %%
training = find_preset("multi30k-en-de").training
n, w, f = training.steps, training.warmup_steps, training.factor
a = n - round(training.decay_share * n)
at = np.arange(1, n + 1)
rate = f * recipe.d_model**-0.5 * np.minimum(at**-0.5, at * w**-1.5)
whole = rate.copy()
rate[a:] = rate[a - 1] * (n - at[a:]) / (n - a)
package = make_schedule(training, recipe.d_model, n)
assert_allclose(rate, [package(s) for s in at.tolist()], rtol=1e-9)
print(f"peak {rate.max():.5f} at step {w:,}; {rate[a - 1]:.5f} at {a:,}; then down to 0")
assert_allclose(whole[-1] / rate.max(), math.sqrt(w / n))
labels = ["with the decay", "without"]
lines = np.stack([rate, whole])[:, ::25]
figure = curves(lines, at[::25], labels=labels, ylabel="learning rate")
show_figure(figure, "22_schedule", "The recipe's learning rate: warm-up, 1/√s, and a line to 0")

# %% [markdown]
# ## BLEU
#
# How good is a translation? Papineni et al. (2002) count what it shares with one that a person made: words,
# pairs, threes and fours of words. Each counts *at most as often as in the reference*, or "the the the"
# would be perfect. Counts are summed over the whole set:
#
# ```math
# pₙ   = Σ matches of n words / Σ all n words of the translations          n = 1 … 4
# BLEU = 100 · min(1, e^(1 − r/c)) · (p₁ p₂ p₃ p₄)^(1/4)
# ```
#
# with c the words of all translations and r those of the references. The exponential is the **brevity
# penalty**: who writes only what is sure would have every pₙ at 1.

# %%


def bleu(translations, references):
    """From 0 to 100, for lines with blanks between their words."""
    matches, total, c, r = np.zeros(4), np.zeros(4), 0, 0
    for found, right in zip(translations, references, strict=True):
        found, right = found.split(), right.split()
        c, r = c + len(found), r + len(right)
        for n in range(4):
            ours, theirs = (
                Counter(tuple(words[i : i + n + 1]) for i in range(len(words) - n))
                for words in (found, right)
            )
            matches[n] += (ours & theirs).total()  # & takes the smaller count of each
            total[n] += ours.total()
    if not matches.all():
        return 0.0
    return 100 * min(1, math.exp(1 - r / c)) * math.exp(np.log(matches / total).mean())


right = ["the dog sleeps in front of the house", "she has never seen a goose"]
tries = {
    "the reference": right,
    "one word is another": ["the cat sleeps in front of the house", right[1]],
    "a word too often": ["the the the dog sleeps in front of the house", right[1]],
    "too short": ["the dog sleeps in front", right[1]],
    "words in another order": ["in front of the house the dog sleeps", right[1]],
}
for name, found in tries.items():
    print(f"{name:23} {bleu(found, right):6.2f}")
assert bleu(right, right) == 100
try:
    for found in tries.values():
        assert_allclose(bleu(found, right), bleu_of_sacrebleu(found, right, "tokenised").score)
    print(bleu_of_sacrebleu(right, right, "tokenised").signature)
except UserError as error:
    print(error)

# %% [markdown]
# Those are sacrebleu's numbers, where it is installed, and the last line its **signature**: how it counted.
# A score without one says little: on raw text, with capitals, on other words, it is another score. And BLEU
# knows no meaning. A better sentence with other words gets nothing for it.
#
# ## Training, and two ways to watch it
#
# A model of one layer learns from the 4,000 pairs. Every four steps we keep its parameters, and every
# twelfth we measure it: the loss on sentences that it does not learn from, and BLEU of greedy translations.

# %%
STEPS, W = 360, 40
small = {"d_model": 64, "d_ff": 128, "n_layers": 1, "dropout": 0.1, "max_length": 64}
config = recipe.replace(source_vocab=V, target_vocab=V, norm="pre", final_norm=True, **small)
model = Transformer(config, rng=np.random.default_rng(0))
adam, schedule = Adam(model), decayed(warmup(64, W, 0.5), STEPS, 0.2)
kept, measured = {}, []  # step -> parameters; (step, loss, BLEU)
asked = [[*source, END] for source, _ in watched[:60]]
references = [codec.decode(target) for _, target in watched[:60]]
watching = data.plan_batches(data.example_lengths(watched), seed=0, epoch=0, batch_tokens=2048)
watching = [make_batch([watched[i] for i in ids]) for ids in watching]


def measure():
    """The loss on the sentences that are watched, and the BLEU of sixty of them."""
    translations = [codec.decode(ids) for ids in translate_ids(model, asked, threads=1)]
    return evaluate(model, watching).loss, bleu(translations, references)


def batches():
    for epoch in range(STEPS):
        for ids in data.plan_batches(sizes, seed=0, epoch=epoch, batch_tokens=1024):
            yield make_batch([examples[i] for i in ids])


for step, batch in zip(range(1, STEPS + 1), batches(), strict=False):
    make_step(model, adam, [batch], dropout_rngs(0, step, 1), schedule(step), 1.0)
    if step % 4 == 0:
        kept[step] = model.values.copy()
    if step % 12 == 0:
        measured.append((step, *measure()))
        if step % 48 == 0:
            print("step {:3}   loss {:.3f}   BLEU {:5.1f}".format(*measured[-1]))

# %%
at, losses, scores = np.array(measured).T
decay = STEPS - STEPS // 5
panels = [
    Panel("validation loss", [Curve(at, losses, marked=True)], from_zero=True),
    Panel("BLEU, greedy", [Curve(at, scores, marked=True)], from_zero=True),
]
caption = "The loss falls steadily; BLEU swings, until the rate goes down"
show_figure(curve_page(panels), "22_run", caption)
falls = [int((sign * np.diff(y) < 0).sum()) for sign, y in ((-1, losses), (1, scores))]
print(f"worse than 12 steps before: the loss {falls[0]} times, BLEU {falls[1]} times")
assert falls[0] <= falls[1]
assert losses[-1] == losses.min()
assert scores[-1] > scores[at <= 96].max()

# %% [markdown]
# BLEU swings by points from one measurement to the next. A sentence is right or wrong by one choice early
# on, a length may run away, and of sixty sentences each counts. The loss asks every word its probability,
# and says the same thing without the noise. So **choose the model by the loss**, and count BLEU for others.
#
# ## The mean of some models
#
# Before the decay the parameters jump about a valley's floor; their mean lies nearer to it than any one.
# It costs nothing but the adding. After the decay they lie at rest, and there is nothing to average out:

# %%


def of(values):
    """Loss and BLEU with these parameters, (P,)."""
    before = model.values.copy()
    model.values[...] = values
    found = measure()
    model.values[...] = before
    return found


found = {}
for name, last in (("before the decay", decay), ("at the end", STEPS)):
    found[name] = of(kept[last])
    steps = range(last - 20, last + 1, 4)
    found[f"{name}, mean of 6"] = of(np.mean([kept[step] for step in steps], axis=0))
for name, pair in found.items():
    print("{:28} loss {:.3f}   BLEU {:5.1f}".format(name, *pair))
alone, mean, rested, both = (pair[0] for pair in found.values())
assert mean < alone
assert rested < alone
assert abs(both - rested) < 0.03

# %% [markdown]
# ## A wide beam falls silent
#
# A trial of the recipe had empty lines among its beam's outputs. Where do they come from? Each word makes a
# translation less probable: its log-probability is a sum of negative numbers. The empty one has a single
# number, log p(end | source), whatever the source:
#
# ```math
# log p(y | x) = Σₜ log p(yₜ | y₁ … yₜ₋₁, x)       score = log p / ((5 + |y|) / 6)^α
# ```
#
# How often is *nothing* likelier than what a beam of 5 finds? And would the beam see it? Only if the end is
# among the likeliest first words:

# %%
source = data.pad(asked[:30])  # (B, S)


def search(beam):
    """The likeliest translation of each sentence that the beam finds, its length not weighed."""
    found = beam_search(model, source, beam=beam, length_penalty=0, n_best=1)
    return [best for (best,) in found]


print("step   nothing is likelier   the end's place among first words")
share = {}
for step in (24, 60, 96, STEPS):
    model.values[...] = kept[step]
    logits, _ = model.forward(source, np.full((len(source), 1), START))  # (B, 1, V)
    log_probs, _ = F.log_softmax(logits[:, 0])  # (B, V)
    nothing = log_probs[:, END]
    place = (log_probs > nothing[:, None]).sum(1) + 1  # (B,) 1 is the likeliest
    share[step] = (nothing > [found.log_prob for found in search(5)]).mean()
    print(f"{step:4} {share[step]:12.0%} {np.median(place):26.0f}")
assert share[24] > 0.5 > 0.1 > share[STEPS]

# %% [markdown]
# A model that is sure of nothing finds hardly any translation likelier than none. It writes something all
# the same, since the search is narrow and does not see the end. Widen it, after 60 steps:

# %%
model.values[...] = kept[60]
wanted = np.mean([len(target) for _, target in watched[:30]])
print(f"the references have {wanted:.1f} pieces")
lengths, likely = {}, {}
for beam in (1, 5, 25, 100):
    best = search(beam)
    lengths[beam] = np.mean([len(found.ids) for found in best])
    likely[beam] = np.mean([found.log_prob for found in best])
    print(f"beam {beam:3}   {lengths[beam]:4.1f} pieces   log p {likely[beam]:6.2f}")
assert likely[100] > likely[5] > likely[1]
assert lengths[100] < 0.8 * wanted

# %% [markdown]
# The better it searches, the shorter it writes; the end of that road is the empty line. A trained model does
# it seldom, on long sentences and in wide beams, but it does (Stahlberg and Byrne, 2019). Dividing by the
# length, α = .6, makes it rarer, and `translate_ids`, which translates files, lets no translation end before
# its first word (`min_length=1`).
#
# ## The real one
#
# From the corpus to the number, three commands. The first fetches it (its licence allows research and
# education, so it is no part of npformer) to data/multi30k. The second takes an hour or two; `--resume` goes
# on after a break. The third, given the two files of tok/ that begin with test_2016, counts BLEU.
#
# - `npformer data multi30k`
# - `npformer train --preset multi30k-en-de` (`pip install 'npformer[translation]'` makes its subwords)
# - `npformer score test.en test.de`
#
# No training at all: `npformer translate --model en-de "A man is riding a bicycle."` Where the
# translator ships with your copy of npformer, the next cell asks it.

# %%
NAME = "en-de"
sentences = ["A man is riding a bicycle.", "Two dogs are playing in the snow."]
if NAME in names():
    translator = load(NAME)
    card = translator.card
    print(f"{card.title}: {card.hours:g} hours on {card.machine}")
    for one in card.scores:
        print(f"BLEU {one.bleu:.2f} on {one.reference}, {one.signature}")
    for said, line in zip(sentences, translator.translate(sentences), strict=True):
        print(f"{said}\n    {line}")
    found = translator.attention(sentences[0])
    weights = found.weights["cross"][-1]  # (H, T, S)
    read, wrote = found.source_tokens, found.predicted_tokens
    caption = "The last layer's cross-attention, mean of its heads: a row is a piece it wrote"
    show_figure(attention_map(weights.mean(0), wrote, read), "22_real", caption)
else:
    print("None ships with this copy: npformer train --preset multi30k-en-de makes one.")

# %% [markdown]
# A trial of this recipe, 48 minutes on two cores, came to 37.4 BLEU by greedy search and 38.3 by
# a beam of 5. The decay to zero was worth about 2.4 points of it. Averaging three checkpoints gave 1.8
# before the decay, and nothing after, like the losses of our four lines above. The published score of this
# model is 41.02 (Wu et al., 2021), and what the shipped one has stands on its card: `npformer pretrained`.
#
# ## Exercises
#
# `npformer exercise list 22` has them; both are graded against the package's results.
#
# - `npformer exercise start join-pieces`: write a word as pieces of byte-pair encoding, with a given list of
#   merges.
# - `npformer exercise start bleu`: compute BLEU from sums over the whole test set, with the brevity penalty.
# - By hand: a translation of 8 words has p₁ … p₄ of 1 and a reference of 10. Its BLEU? (100 e^(−1/4) = 78.)
#
# To try now, in the terminal: `!pieces_of("riverside", tell=True)`, and `!bleu(["a b c d"], ["a b c d e"])`.

# %%
assert round(100 * math.exp(1 - 10 / 8)) == 78

# %% [markdown]
# ## Where the documents differ
#
# - None of the four speaks of subwords or of BLEU. *图解transformer* has an output of 10,000 English words,
#   and says elsewhere that 30,000 or 50,000 are likelier; with pieces, 10,000 do for two languages.
# - It ends where the trained model's probabilities are; what chooses among trained models, none tells.
#
# **Next**, no lesson: a corpus of yours, `npformer train my.en my.de --subwords 8000`.

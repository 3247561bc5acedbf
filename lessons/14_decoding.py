# %% [markdown]
# # 14 · Decoding, from a model to a sentence
#
# *30 minutes to read, 5 seconds to run. Lessons 11 to 13: the decoder, the probability of a word,
# training.*
#
# **The question.** A trained model answers one question only: given the French sentence and the first t
# words of the English one, how probable is each word as the next? Nobody wants a table of probabilities;
# one wants a sentence. Which one is it, how is it found among billions, what goes wrong on the way, and how
# does one not do the work of every step again in the next?

# %%
import itertools
import time
from random import Random

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, show
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.data import END, PAD, SPECIALS, START, UNK, Vocabulary, make_batch, pad, tokenize
from npformer.data.corpus.plain import draw_plain
from npformer.functional import log_softmax
from npformer.generation import CachedState, PrefixState, beam_search, greedy
from npformer.learn.course import show_figure
from npformer.plots import beam_tree, curves, steps_of_trace
from npformer.training import loss_and_gradients
from npformer.training.optimizer import Adam

threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16

# %% [markdown]
# ## The passages
#
# *Attention Is All You Need*, section 3, and section 6.1:
#
# > At each step the model is auto-regressive, consuming the previously generated symbols as additional input
# > when generating the next.
#
# > We used beam search with a beam size of 4 and length penalty α = 0.6.
#
# *图解transformer* ends with two ways to choose. Greedy decoding takes the most probable word and drops all
# others. Beam search with k = 2 keeps two: the most probable first words are "I" and "a"; what may follow
# either is looked at, the best two are kept again, and so on. Its example becomes numbers here.
#
# ## A language small enough to look at all of it
#
# Four words. The model is a table: after the words so far, the probability of the end and of each word. The
# last row is for whatever has no row of its own.

# %%
NAMES = (*SPECIALS, "a", "am", "i", "student")  # ids 0 to 7; </S>, the end, is 3
TABLE = {  # </S>    a     am     i   student
    (): (0.050, 0.450, 0.050, 0.400, 0.050),
    ("a",): (0.100, 0.100, 0.200, 0.200, 0.400),
    ("i",): (0.025, 0.025, 0.900, 0.025, 0.025),
    ("i", "am"): (0.050, 0.800, 0.050, 0.050, 0.050),
    ("i", "am", "a"): (0.025, 0.025, 0.025, 0.025, 0.900),
    ("a", "student"): (0.400, 0.150, 0.150, 0.150, 0.150),
    "other": (0.600, 0.100, 0.100, 0.100, 0.100),
}
assert_allclose([sum(row) for row in TABLE.values()], 1)


class Table:
    """To who decodes with it, a Transformer: forward(source, target_in) -> logits, cache."""

    config = TransformerConfig(source_vocab=8, target_vocab=8, max_length=6)

    def forward(self, source, target_in):
        logits = np.full((*target_in.shape, 8), -np.inf)  # (B, T, V)
        for b, ids in enumerate(target_in):
            for t in range(len(ids)):
                said = tuple(NAMES[i] for i in ids[1 : t + 1])  # without <S>
                logits[b, t, END:] = np.log(TABLE.get(said, TABLE["other"]))
        return logits, None


# %% [markdown]
# ## What is looked for
#
# The probability of a sentence y, its end included, is a product, by the chain rule; its logarithm a sum:
#
# ```math
# p(y | x)      =  p(y₁ | x) · p(y₂ | y₁, x) · … · p(end | y₁ … yₙ, x)
# log p(y | x)  =  Σₜ log p(yₜ | y₁ … yₜ₋₁, x)
# ```
#
# Wanted: the y with the largest. With V words there are Vⁿ sentences of n words: 4⁴ = 256 here, and over
# 10²⁷ of six words in a vocabulary of 37,000. Here we can score every one of at most four words.

# %%


def log_prob(model, source, sentences):
    """log p(y | x) of a sentence for each source, in one forward pass, as in training.

    Shapes: source B lists of ids, sentences B lists of ids -> (B,).
    """
    batch = make_batch(list(zip(source, sentences, strict=True)))
    logp, _ = log_softmax(model.forward(batch.source, batch.target_in)[0])  # (B, T, V)
    of_words = np.take_along_axis(logp, batch.target_out[..., None], -1)[..., 0]  # (B, T)
    return np.where(batch.target_out != PAD, of_words, 0).sum(1)


def say(ids, names=NAMES):
    return " ".join(names[i] for i in ids) or "(nothing)"


table, x = Table(), [5]  # the table looks at no source
every = [list(y) for n in range(5) for y in itertools.product(range(4, 8), repeat=n)]
exact = log_prob(table, [x] * len(every), every)  # (341,)
for i in np.argsort(-exact)[:4]:
    print(f"p = {np.exp(exact[i]):.4f}   {say(every[i])}")
print(len(every), "sentences together", round(np.exp(exact).sum(), 4), "(longer ones: the rest)")
assert say(every[exact.argmax()]) == "i am a student"

# %% [markdown]
# ## Greedy, the slow way
#
# The most probable word, again and again. The whole sentence so far goes through the model at every step,
# and of all its rows only the last is used. This loop decodes a table or a Transformer:

# %%


def next_log_probs(model, source, ids):
    """log p(next word | ids, source), -inf for what nobody says. Shapes: (V,)."""
    logits, _ = model.forward(np.array([[*source, END]]), np.array([[START, *ids]]))  # (1, T, V)
    logp, _ = log_softmax(logits[0, -1])
    logp[[PAD, UNK, START]] = -np.inf
    return logp


def greedy_slow(model, source, most):
    ids = []
    while len(ids) < most:
        word = int(next_log_probs(model, source, ids).argmax())
        if word == END:
            break
        ids.append(word)
    return ids


found = greedy_slow(table, x, 4)
assert found == greedy(table, [[*x, END]], max_length=4, cached=False)[0]  # the package's
p = np.exp(log_prob(table, [x], [found])[0])
print(f"greedy: {say(found)}, p = {p:.4f};  the best: p = {np.exp(exact.max()):.4f}")
assert_allclose(p, 0.45 * 0.4 * 0.4)
assert_allclose(np.exp(exact.max()), 0.4 * 0.9 * 0.8 * 0.9 * 0.6)

# %% [markdown]
# Greedy is *provably* wrong here: all 341 sentences were scored, and "i am a student" has twice its
# probability. The first step decided it. "a" (.45) is more probable than "i" (.40), but nothing probable
# follows "a"; and greedy never takes a word back.
#
# ## Beam search, the slow way
#
# Keep the k best beginnings. Continue each by every word, put all continuations into **one** list, keep the
# k best of it. Those that end are finished.

# %%


def beam_slow(model, source, k, most):
    """Returns the finished (log p, ids), best first."""
    live, finished = [(0.0, [])], []
    for t in range(most + 1):
        every_continuation = []
        for so_far, ids in live:
            logp = next_log_probs(model, source, ids)
            allowed = range(END, len(logp)) if t < most else [END]  # no room for another word
            every_continuation += [(so_far + logp[w], [*ids, w]) for w in allowed]
        best = sorted(every_continuation, reverse=True)[:k]
        finished += [(total, ids[:-1]) for total, ids in best if ids[-1] == END]
        live = [(total, ids) for total, ids in best if ids[-1] != END]
    return sorted(finished, reverse=True)


options = {"length_penalty": 0.0, "max_length": 4, "cached": False}
for k in (1, 2, 5, 341):
    slow = beam_slow(table, x, k, 4)
    package = beam_search(table, [[*x, END]], beam=k, **options)[0]
    assert_allclose(slow[0][0], package[0].log_prob, rtol=1e-12)
    assert slow[0][1] == package[0].ids
    print(f"beam {k:3}: p = {np.exp(slow[0][0]):.4f}   {say(slow[0][1])}")

# %% [markdown]
# Two ends of one scale. A beam of **1 is greedy search**. A beam **as wide as there are sentences forgets
# nothing**: it must return all of them, in the order of their probability. That is a test with an exact
# answer, and the package has to pass it:

# %%
assert beam_search(table, [[*x, END]], beam=1, **options)[0][0].ids == found
everything = beam_search(table, [[*x, END]], beam=341, **options)[0]
assert_allclose([y.log_prob for y in everything], np.sort(exact)[::-1], rtol=1e-12)
assert sorted(y.ids for y in everything) == sorted(every)
assert_allclose(np.log([p, np.exp(exact.max())]), [-2.63, -1.86], atol=0.005)

trace = []
beam_search(table, [[*x, END]], beam=2, trace=trace, **options)
figure = beam_tree(steps_of_trace(trace[0], NAMES, END), start="<S>")
caption = "Beam 2 keeps both first words; at the second step “i am” overtakes “a student”"
show_figure(figure, "14_table", caption)

# %% [markdown]
# Under each word stands log p of all words up to it. "a student" ends at −2.63, "i am a student" at −1.86.
# Each step scores k beginnings, so a beam costs k times as much as greedy search. Between 1 and 341 it
# promises nothing: the best sentence is lost as soon as one of its beginnings is not among the k best.
#
# ## A model that has learned something
#
# French to English, 2,000 plain pairs of the built-in corpus' grammar, 400 steps: lesson 13 in small. It
# stays unfinished on purpose, so that there are mistakes to look at. In float64, so that rounding, which
# differs from machine to machine, changes none of the sentences below.

# %%
draw, pairs = Random(14), {}
while len(pairs) < 2300:
    pair = draw_plain(draw)
    french, english = tokenize(pair.french, elision=True), tokenize(pair.english)
    if len(english) <= 7:
        pairs[" ".join(french)] = french, english  # each sentence once
fr = Vocabulary.from_sentences(french for french, _ in pairs.values())
en = Vocabulary.from_sentences(english for _, english in pairs.values())
examples = [(fr.encode(french), en.encode(english)) for french, english in pairs.values()]
examples, test = examples[:-300], examples[-300:]  # the test's sentences are never trained on

config = TransformerConfig.architecture("small", d_model=32, d_ff=64, n_heads=2, n_layers=1)
config = config.replace(source_vocab=len(fr), target_vocab=len(en), max_length=130)
config = config.replace(dropout=0.0, label_smoothing=0.0)
model = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
adam, rng = Adam(model, eps=1e-8), np.random.default_rng(1)
for step in range(1, 401):
    batch = make_batch([examples[i] for i in rng.integers(0, len(examples), 32)])
    loss, _ = loss_and_gradients(model, [batch])
    adam.step(5e-3 * min(step / 20, 1))
print(f"{len(model.values):,} numbers, loss of the last batch {loss:.3f}")

# %% [markdown]
# ## Trained on the truth, used on its own words
#
# In training the decoder reads the *true* words: teacher forcing, all positions at once. In decoding it
# reads its *own*. How much does that cost? Give every word of the test to the model after the true words,
# and see how often its first choice is right; then let it write.

# %%
sources, truths = [x for x, _ in test], [y for _, y in test]
source = pad([[*x, END] for x in sources])  # (B, S)
batch = make_batch(test)
logits, _ = model.forward(batch.source, batch.target_in)  # (B, T, V)
real = batch.target_out != PAD  # (B, T)
right = (logits.argmax(-1) == batch.target_out) & real  # (B, T)
written = greedy(model, source, max_length=12)

assert written[:20] == [greedy_slow(model, x, 12) for x in sources[:20]]
all_right = right.sum(1) == real.sum(1)  # (B,)
exact_matches = np.array([y == truth for y, truth in zip(written, truths, strict=True)])
print(f"words right after true words {right.sum() / real.sum():.3f}")
print("sentences all right", all_right.sum(), " written exactly", exact_matches.sum())
assert (all_right == exact_matches).all()

# %% [markdown]
# 92.2 % of the words are right, and 186 of 300 sentences: one wrong word in thirteen, with six and a half
# words a sentence, spoils more than a third of them. And both counts of sentences agree, one by one. They
# must: as long as everything written is right, its own words *are* the true words. So far there is no
# mismatch.
#
# It begins after the first mistake. Take the words behind it, in the sentences that have one:

# %%
forced, own = [], []
for i in np.flatnonzero(~exact_matches):
    truth, mine = [*truths[i], END], [*written[i], END]
    mine += [PAD] * len(truth)  # where it has ended early
    first = next(t for t in range(len(truth)) if mine[t] != truth[t])
    forced += [right[i, t] for t in range(first + 1, len(truth))]
    own += [mine[t] == truth[t] for t in range(first + 1, len(truth))]
shares = [right.sum() / real.sum(), np.mean(forced), np.mean(own)]
print("right: all words {:.3f}; these {:.2f}, and after its own {:.2f}".format(*shares))
assert_allclose(shares, [0.922, 0.90, 0.45], atol=0.006)
assert exact_matches.sum() == 186

# %% [markdown]
# The same words, the same model: .90 after true words, .45 after its own. Part of that is no fault: after a
# wrong "the small milk", "drinks" would be wrong too. Part of it is: in training it never read such a
# beginning. That sentence in full:

# %%
french = [say(ids, fr.words) for ids in sources]
line = french.index("le petit âne boit cette eau")
trace = []
best = beam_search(model, source[line : line + 1], beam=2, length_penalty=0.0, trace=trace)[0][0]
for name, ids in {"truth": truths[line], "greedy": written[line], "beam 2": best.ids}.items():
    print(f"{name:7} {log_prob(model, [sources[line]], [ids])[0]:6.2f}   {say(ids, en.words)}")
assert best.ids == truths[line] != written[line]

figure = beam_tree(steps_of_trace(trace[0], en.words, END), start="<S>")
caption = "“milk” is the likelier word, and “donkey” leads to the likelier sentence"
show_figure(figure, "14_tree", caption)

# %% [markdown]
# ## Whose mistake is it?
#
# When the sentence found is wrong, ask the model what it thinks of the true one. If it finds the truth
# *more* probable than what the search found, then the search failed: a **search error**. If it finds it
# *less* probable, the search did its duty, and no better one will help: a **model error**.

# %%
of_truth = log_prob(model, sources, truths)  # (B,)
rows, is_wrong, missed = {}, {}, {}
print("beam   exact   search errors   model errors   mean log p   mean words")
for k in (1, 2, 4, 8):
    lists = beam_search(model, source, beam=k, length_penalty=0.0, max_length=12)
    ids = [hypotheses[0].ids for hypotheses in lists]
    of_found = log_prob(model, sources, ids)
    is_wrong[k] = wrong = np.array([y != truth for y, truth in zip(ids, truths, strict=True)])
    missed[k] = wrong & (of_truth > of_found)  # (B,) search errors
    rows[k] = (300 - wrong.sum(), missed[k].sum(), (wrong & ~missed[k]).sum())
    rows[k] += (of_found.mean(), np.mean([len(y) for y in ids]))
    print("{:4} {:7} {:15} {:14} {:12.3f} {:12.2f}".format(k, *rows[k]))
means = f"{of_truth.mean():12.3f} {real.sum(1).mean() - 1:12.2f}"  # less the end
print("truth".ljust(43), means)

assert_allclose(rows[1], [186, 6, 108, -0.822, 5.46], atol=0.001)
assert_allclose(rows[2], [189, 1, 110, -0.794, 5.407], atol=0.001)
assert_allclose(rows[4], [189, 0, 111, -0.784, 5.403], atol=0.001)
assert_allclose(rows[8], [189, 0, 111, -0.783, 5.39], atol=0.001)
assert_allclose([of_truth.mean(), real.sum(1).mean() - 1], [-2.355, 5.547], atol=0.001)
assert (missed[1] & ~is_wrong[4]).sum() == 3
assert not (~is_wrong[1] & is_wrong[4]).any()

# %% [markdown]
# Read the columns downwards. With a beam of 4 all 6 search errors are gone. 3 of those sentences are right
# now; in 3 the better search finds a third sentence, wrong too and more probable than the truth. From 4 on
# a wider beam mends nothing: 111 mistakes are the model's own. (A search error is counted here where the
# *truth* was missed; a better wrong sentence may have been missed more often.) On the average log p of the
# truth is −2.355, and of what a beam of 4 finds −.784.
#
# ## Why short sentences win
#
# And what is found gets **shorter** as the search gets better: 5.46, 5.41, 5.40, 5.39 words, while the truth
# has 5.55. Every word multiplies p by something below 1. Two translations of one sentence, all of it
# measured:

# %%
line = french.index("nous avons voulu marcher jusqu' au lac")
one = source[line : line + 1]  # (1, S)
hypotheses = beam_search(model, one, beam=64, length_penalty=0.0, max_length=12)[0]
first_of = {len(y.ids) + 1: y for y in reversed(hypotheses)}  # the most probable of each length
for n in (7, 8):
    y = first_of[n]
    print(f"{n} words, end included: log p = {y.log_prob:.3f}   {say(y.ids, en.words)}")
assert first_of[8].ids == truths[line]
assert_allclose([first_of[7].log_prob, first_of[8].log_prob], [-1.212, -1.292], atol=1e-3)

nothing = log_prob(model, sources, [[]] * 300)  # (B,) log p(</S> | x)
print(f"a word costs {-of_truth.sum() / real.sum():.2f} on the average")
print("sentences whose truth is less probable than saying nothing:", (nothing > of_truth).sum())
assert (nothing > of_truth).sum() == 5

# %% [markdown]
# For 5 sentences of 300 this model would rather say *nothing* than the truth. It is not only small models:
# Stahlberg and Byrne (2019) searched exactly in a Transformer of full size, and for more than half of their
# sentences the most probable translation of all was the empty one. A narrow beam never meets it.
#
# The remedy is to divide by a measure of length. Wu et al. (2016, section 7), with |y| the words and the
# end:
#
# ```math
# score(y) = log p(y | x) / ((5 + |y|) / 6)^α
# ```
#
# α = 0 is log p itself; α = 1 nearly the mean of a word; the paper took .6.

# %%
lengths = np.array(sorted(first_of))
logs = np.array([first_of[n].log_prob for n in lengths])
scores = np.stack([logs / ((5 + lengths) / 6) ** alpha for alpha in (0, 0.6, 1)])  # (3, N)
for alpha, row in zip((0, 0.6, 1), scores, strict=True):
    seven, eight = row[lengths == 7][0], row[lengths == 8][0]
    print(f"α = {alpha:3}: 7 words {seven:.3f}, 8 words {eight:.3f}")
exact = {}
for alpha in (0.6, 1):
    lists = beam_search(model, source, beam=4, length_penalty=alpha, max_length=12)
    exact[alpha] = sum(ys[0].ids == truth for ys, truth in zip(lists, truths, strict=True))
    print(f"a beam of 4 with α = {alpha}: {exact[alpha]} of 300 exact")
assert exact == {0.6: 189, 1: 191}
assert_allclose(scores[2, np.isin(lengths, [7, 8])], [-0.606, -0.596], atol=1e-3)
assert [lengths[row.argmax()] for row in scores] == [7, 7, 8]

figure = curves(
    scores,
    lengths,
    labels=["α = 0", "α = 0.6", "α = 1"],
    xlabel="words of the translation, its end included",
    ylabel="score of the best one of that length",
)
caption = "“nous avons voulu …”: without a penalty seven words win, with α = 1 the true eight"
show_figure(figure, "14_length", caption)

# %% [markdown]
# With α = 1 "we wanted to walk to the lake" has become the best; .6 is not enough. Over the whole test .6
# gains nothing, 189 for 189, and α = 1 two sentences, 191: where all sentences are short there is little to
# mend. And it is a rule of thumb, not a probability; the paper chose its α by experiment.
#
# ## Not twice the same work
#
# At step t the slow loop computes t positions, and uses one. The other t − 1 were computed in earlier
# steps, and **they have not changed**. In the first layer position s attends to positions up to s:
#
# ```math
# zₛ = Σᵣ≤ₛ softmaxᵣ(qₛ · kᵣ / √K) vᵣ
# ```
#
# Nothing in it depends on a later word, and everything else in a layer (norms, feed-forward network, the
# look at the source) treats each position alone. So the next layer's input at s is the same at every later
# step, and its zₛ too, and so on upwards. What does a new position need of the old ones? Their kᵣ and vᵣ,
# in every layer, and nothing else: no old query, no old output. Keep those. That is this lesson's cache:

# %%
state = CachedState(model, source[:2])  # encodes once, and projects K and V of the source
for word in np.array([[START, *truths[0][:3]], [START, *truths[1][:3]]]).T:
    step_logits = state.decode_step(word)  # (B, V): one position computed
cache = state.kv_cache[0]  # of layer 0, after four words
show(cache)

whole, tree = model.forward(source[:2], batch.target_in[:2, :4])  # (B, T, V)
assert_allclose(step_logits, whole[:, -1], rtol=1e-9, atol=1e-11)
_, k_whole, v_whole, *_ = tree.decoder[0].self_attention.attention
assert_allclose(cache.k, k_whole, atol=1e-12)  # (B, H, T, K)
assert_allclose(cache.v, v_whole, atol=1e-12)
print("the cached step is the last row of the whole forward pass")

# %% [markdown]
# Equal up to rounding, not to the bit: a product of one row and a product of four rows may add their terms
# in another order. What is decided stays the same, for all 300 sentences:

# %%
assert greedy(model, source, max_length=12, cached=False) == written
slow, fast = (beam_search(model, source[:50], max_length=12, cached=c) for c in (False, True))
assert [[y.ids for y in ys] for ys in slow] == [[y.ids for y in ys] for ys in fast]
difference = abs(step_logits - whole[:, -1]).max()
print(f"same words; the largest difference of a logit above is {difference:.0e}")

# %% [markdown]
# ## What it saves, counted
#
# Count multiplications. One position of a decoder layer: q, k, v and output of self-attention (4D²), q and
# output of cross-attention (2D²), feed-forward (2DF), two products with S source positions (2DS); above all
# layers, D·V for the logits. Call it P. Each *pair* of positions costs 2D more, one product for the score
# and one for the sum. The source costs E = S (4D² + 2DF) + 2DS² + 2D²S, the last for its K and V in the
# decoder's layer. For T words:
#
# ```math
# cached        E + Σₜ (P + 2D t)         =  E   +  P T           +  2D T(T+1)/2
# not cached    Σₜ (E + P t + 2D t²)      =  E T +  P T(T+1)/2    +  2D T(T+1)(2T+1)/6
# ```
#
# For long sentences T² against T³. But P holds D², so those last terms win only where T is many times D;
# for all sentences that people write it is T against T². Let the arrays themselves count:

# %%


class Counted(np.ndarray):
    """An array that counts the multiplications of every matrix product it takes part in."""

    done = 0

    def __matmul__(self, other):
        y = np.matmul(self, other)
        Counted.done += y.size * self.shape[-1]
        return y

    def __rmatmul__(self, other):
        y = np.matmul(other, self)
        Counted.done += y.size * other.shape[-1]
        return y


counting = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
for parameter in counting.parameters():
    parameter.value = parameter.value.view(Counted)


def decode(kind, model, steps):
    """Multiplications, and seconds, of `steps` words of one sentence."""
    Counted.done, started = 0, time.perf_counter()
    state = kind(model, source[:1, :5])  # (1, S)
    for _ in range(steps):
        state.decode_step(np.array([7]))
    return Counted.done, time.perf_counter() - started


D, F, S, V = 32, 64, 5, len(en)
P = 6 * D * D + 2 * D * F + 2 * D * S + D * V
E = S * (4 * D * D + 2 * D * F) + 2 * D * S * S + 2 * D * D * S

# %%
steps = np.array([1, 2, 4, 8, 16, 32, 64, 128])
counts = np.zeros((2, len(steps)))  # cached, not cached
print("  T    cached   not cached   ratio   seconds cached, not cached")
for i, T in enumerate(steps.tolist()):
    counts[:, i] = [decode(kind, counting, T)[0] for kind in (CachedState, PrefixState)]
    assert counts[0, i] == E + P * T + 2 * D * T * (T + 1) // 2
    assert counts[1, i] == E * T + P * T * (T + 1) // 2 + 2 * D * T * (T + 1) * (2 * T + 1) // 6
    clock = [decode(kind, model, T)[1] for kind in (CachedState, PrefixState)]
    a, b = counts[:, i] / 1e6
    print(f"{T:3} {a:8.2f}M {b:11.2f}M {b / a:7.1f}   {clock[0]:10.4f} {clock[1]:12.4f}")
assert_allclose((counts[1] / counts[0])[[4, 7]], [9.6, 69], rtol=0.01)

# %%
figure = curves(
    counts,
    steps,
    labels=["cached", "not cached"],
    xlabel="words T",
    ylabel="multiplications",
    xscale="log",
    yscale="log",
)
slopes = np.log2(counts[:, -1] / counts[:, -2])  # of the last piece: T from 64 to 128
assert_allclose(slopes, [1.1, 2.1], atol=0.05)
caption = "Both formulas, counted: at the right end slope 1.1 with a cache and 2.1 without"
show_figure(figure, "14_cost", caption)

# %% [markdown]
# The counts equal the formulas, to the last multiplication. At 16 words the cache saves a factor of 9.6, at
# 128 words of 69. The seconds follow far behind: in a model this small a step's time is Python's, not that
# of its products. A beam adds one thing: a hypothesis that continues another's row takes over its kᵣ and
# vᵣ.
#
# ## Backward: there is none
#
# The word chosen is an argmax. Nudge a parameter, and the same words come out: their derivative is 0 almost
# everywhere, and where it is not, it does not exist. That is why training lowers −log p of the true words,
# which has a derivative.

# %%
kept = model.values.copy()
direction = np.random.default_rng(2).integers(0, 2, len(kept)) * 2.0 - 1  # ±1
for h in (1e-8, 1e-4, 1e-2):
    model.values[...] = kept + h * direction
    moved = greedy(model, source, max_length=12)
    changed = sum(a != b for a, b in zip(moved, written, strict=True))
    print(f"every parameter moved by {h:.0e}: {changed} of 300 sentences change")
    assert h > 1e-8 or changed == 0
model.values[...] = kept

few = [ids[:2] for ids in batch]  # source, target_in, target_out of two sentences
report = gradcheck(ModelWithLoss(model), *few, name="trained model")
print(f"{len(report.rows)} rows, the worst {report.worst.error:.0e}: {report.worst.tensor}")
assert report.ok

# %% [markdown]
# The model that was decoded is the one that was checked: every gradient of its log p, at its trained
# values.
#
# ## Exercises
#
# `npformer exercise list 14` has them.
#
# - `npformer exercise start greedy`: the loop of this lesson, for a batch.
# - `npformer exercise start best-continuations`: one list for all hypotheses; no full sort is needed.
# - `npformer exercise start length-norm`: one formula, with one trap, its brackets.
# - `npformer exercise start cached-step`: self-attention for the one new position.
# - By hand: −1.212 for seven words, −1.292 for eight. From which α on do the eight win?
#
# To try now, in the terminal: `!beam_search(model, source[:1], beam=3)` shows ids, log p and score of the
# best three, and `!say(written[0], en.words)` what greedy wrote.
#
# ## Where the documents differ
#
# - *图解transformer* chooses for the second position from the words after the *first*, then goes on in the
#   same way; it does not say that all k · V continuations compete in one list, nor what happens when one
#   of them ends. Here a finished one leaves the beam's places to others.
# - It says of the K and V that the decoder's second attention reads: "K = V = the decoder's output". They
#   are made of the encoder's output, and never change while a sentence is decoded: `project_memory` makes
#   them once.
# - *一步步解析Attention is All You Need!* and *The components of the Transformer* stop at training.
# - The paper's length limit, the source's length + 50, is the package's as well.
#
# **Next**, lesson 15 examines what attention has learned.

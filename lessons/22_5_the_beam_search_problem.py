# %% [markdown]
# # 22.5 · The beam search problem
#
# *About 30 minutes. You need: beam search and the length penalty (lesson 14.3,
# `14_3_length_normalization`), the training of lesson 22.4
# (`22_4_learning_rate_decay_and_checkpoint_averaging`).*
#
# **After this lesson you can**
#
# - explain why a model can give the empty translation a higher probability than any other;
# - measure how the translations become shorter when the beam becomes wider;
# - name two remedies, a length penalty and a minimum length.
#
# `decoding: encoder → decoder → softmax → [SEARCH] → translation`

# %%
import numpy as np
from threadpoolctl import threadpool_limits

from npformer import Transformer, TransformerConfig, data
from npformer import functional as F
from npformer.data import END, START, make_batch
from npformer.generation import beam_search
from npformer.learn.course import show_figure
from npformer.learn.course.short_sentences import short_sentences
from npformer.plots import curves
from npformer.training.optimizer import Adam, decayed, warmup
from npformer.training.step import dropout_rngs, make_step

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Empty translations
#
# In a first training on Multi30k, some translations by beam search were empty lines. Where do they come
# from? The probability of a translation is a product over its tokens, so its logarithm is a sum:
#
# $$\log p(y \mid x) = \sum_t \log p(y_t \mid y_1, \ldots, y_{t-1}, x)$$
#
# Every term is negative. So each additional token makes the translation *less* probable. The empty
# translation has a single term, $\log p(\mathrm{end} \mid x)$. It can be larger than the sum of all terms
# of a correct translation:
#
# | translation | log p | tokens |
# |---|---|---|
# | correct | −.9 − .6 − 1.1 − .4 − .8 − .5 − .3 = −4.6 | seven, each quite probable |
# | empty | −4.2 | one, quite improbable |
#
# The total probability favors short translations. This is called **length bias**.

# %% [markdown]
# **Question.** Greedy search does not produce the empty translation in this example. Why not?
#
# <details><summary>Answer</summary>
# It takes the most probable token at each step. The end has the log-probability −4.2 as the first token,
# and the correct first token has −.9.
# </details>
#
# A beam search with enough beams would keep the end as a first token. Later it would find that this empty
# translation has the highest total probability. So a *better search* can give a *worse translation*. This
# is called the **beam search problem**.

# %% [markdown]
# ## A model at four stages of its training
#
# We repeat the training of lesson 22.4 and keep the parameters after 24, 60, 96 and 360 steps. So we can
# test models that have learned little and one that has learned much.

# %%
STEPS, W = 360, 40
corpus = short_sentences()
examples, V = corpus.train, len(corpus.codec.vocabulary)
multi30k = TransformerConfig.architecture("multi30k")
small = {"d_model": 64, "d_ff": 128, "n_layers": 1, "dropout": 0.1, "max_length": 64}
config = multi30k.replace(source_vocab=V, target_vocab=V, norm="pre", final_norm=True, **small)
model = Transformer(config, rng=np.random.default_rng(0))
adam, schedule = Adam(model), decayed(warmup(64, W, 0.5), STEPS, 0.2)
sizes = data.example_lengths(examples)  # (N, 2)


def batches():
    for epoch in range(STEPS):
        for ids in data.plan_batches(sizes, seed=0, epoch=epoch, batch_tokens=1024):
            yield make_batch([examples[i] for i in ids])


checkpoints = {}
for step, batch in zip(range(1, STEPS + 1), batches(), strict=False):
    make_step(model, adam, [batch], dropout_rngs(0, step, 1), schedule(step), 1.0)
    if step in (24, 60, 96, STEPS):
        checkpoints[step] = model.values.copy()
print("checkpoints after", *checkpoints, "steps")

# %% [markdown]
# ## How often is the empty translation more probable?
#
# For 30 validation sentences we compare two numbers at each stage: the log-probability of the empty
# translation, and that of the translation found by a beam of 5. The search has no length penalty.
#
# A beam can find the empty translation only if the end is among the most probable *first* tokens. So we
# also compute the rank of the end among all first tokens. The rank 1 is the most probable one.

# %%
source = data.pad([[*ids, END] for ids, _ in corpus.valid[:30]])  # (B, S)
wanted = np.mean([len(target) for _, target in corpus.valid[:30]])


def search(beam):
    """Return the most probable translation that the beam finds for each sentence."""
    found = beam_search(model, source, beam=beam, length_penalty=0, n_best=1)
    return [best for (best,) in found]


print("step   empty one is more probable   median rank of the end among first tokens")
share = {}
for step in checkpoints:
    model.values[...] = checkpoints[step]
    logits, _ = model.forward(source, np.full((len(source), 1), START))  # (B, 1, V)
    log_probs, _ = F.log_softmax(logits[:, 0])  # (B, V)
    empty = log_probs[:, END]  # (B,)
    rank = (log_probs > empty[:, None]).sum(1) + 1  # (B,)
    share[step] = (empty > [found.log_prob for found in search(5)]).mean()
    print(f"{step:4} {share[step]:16.0%} {np.median(rank):30.0f}")

# %% tags=["check"]
assert share[24] > 0.5
assert share[60] > 0.5
assert share[STEPS] < 0.1

# %% [markdown]
# A model that has learned little is uncertain about each token. So nearly every translation is less
# probable than the empty one. The beam of 5 still writes something, because the end is not among the five
# most probable first tokens. The trained model is more certain, and its translations are more probable than
# the empty one.
#
# ## Wider beams
#
# We take the model after 60 steps and make the beam wider.
#
# **Question.** What do you expect for the log-probability and for the length of the translations?
#
# <details><summary>Answer</summary>
# A wider beam finds more probable translations. Because of the length bias, they should be shorter.
# </details>

# %%
model.values[...] = checkpoints[60]
print(f"the references have {wanted:.1f} tokens on average")
lengths, log_probs = {}, {}
for beam in (1, 5, 25, 100):
    best = search(beam)
    lengths[beam] = np.mean([len(found.ids) for found in best])
    log_probs[beam] = np.mean([found.log_prob for found in best])
    print(f"beam {beam:3}   {lengths[beam]:4.1f} tokens   log p {log_probs[beam]:6.2f}")

# %% tags=["check"]
assert log_probs[100] > log_probs[5] > log_probs[1]
assert lengths[1] > lengths[5] > lengths[25] > lengths[100]
assert lengths[100] < 0.8 * wanted

# %% tags=["plot"]
beams = np.array(list(lengths))
figure = curves(
    np.stack([list(lengths.values()), np.full(4, wanted)]),
    beams,
    labels=["translations", "references"],
    xlabel="width of the beam",
    ylabel="tokens",
    xscale="log",
)
show_figure(figure, "22_beams", "After 60 steps: wider beams give shorter translations")

# %% [markdown]
# The better the search, the shorter are the translations. A search over all sequences would find the most
# probable one, which is often the empty translation. Stahlberg and Byrne (2019) showed this for large
# trained models too: for more than half of the sentences of their test set, the empty translation was the
# most probable one. Beam search rarely finds it, because its beam is narrow.

# %% [markdown]
# ## Two remedies
#
# **A length penalty.** The score of a translation is its log-probability, divided by a power of its length
# (lesson 14.3). The package uses the formula that the paper cites (Wu et al., 2016), with α = .6:
#
# $$\mathrm{score} = \frac{\log p(y \mid x)}{((5 + |y|) / 6)^\alpha}$$
#
# **A minimum length.** The function `translate_ids`, which translates files, forbids the end as the first
# token (`min_length=1`). So no translation is empty.
#
# The next cell searches with a beam of 25 and different values of α.

# %%
by_alpha = {}
for alpha in (0, 0.6, 1.0):
    found = beam_search(model, source, beam=25, length_penalty=alpha, n_best=1)
    by_alpha[alpha] = np.mean([len(best.ids) for (best,) in found])
    print(f"α = {alpha:3}   {by_alpha[alpha]:4.1f} tokens")

# %% tags=["check"]
assert by_alpha[0] < by_alpha[0.6] < by_alpha[1.0]

# %% [markdown]
# The penalty makes the translations longer. With a model that has learned little, the right value of α is
# not clear. In practice, α is chosen on validation data, with the trained model.

# %% [markdown]
# ## Summary
#
# - The log-probability of a translation is a sum of negative terms, so short translations are favored.
# - A model that is uncertain gives the empty translation a higher probability than all others.
# - A wider beam finds more probable and shorter translations: this is the beam search problem.
# - A trained model is less affected, but not free of it.
# - A length penalty and a minimum length reduce the problem.

# %% [markdown]
# ## Questions
#
# **Question.** Why does the beam search problem not appear with a beam of 1?
#
# <details><summary>Answer</summary>
# Greedy search compares tokens at the same position, and never translations of different lengths. It takes
# the end only if the end is the most probable next token.
# </details>
#
# **Question.** All tokens of a translation have the probability 1/2, and the end as the first token has the
# probability 1/100. From which length on is the empty translation more probable?
#
# <details><summary>Answer</summary>
# From seven tokens on, the end included, because (1/2)⁷ = 1/128 is less than 1/100, and (1/2)⁶ = 1/64 is
# more.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 22` lists the exercises of this chapter.
#
# - In the terminal, repeat the search with the trained model: `!model.values[...] = checkpoints[360]`, then
#   `![np.mean([len(found.ids) for found in search(beam)]) for beam in (1, 5, 25)]`. What changes?
#
# **Next**: lesson 22.6 (`22_6_a_real_translator`), which uses the translator that was trained on Multi30k.

# %% [markdown]
# # 26.3 · Mixture of experts
#
# *About 35 minutes. You need: gated feed-forward networks (lesson 23.3,
# `23_3_gated_feed_forward_networks`), how to compare models (lesson 24.3, `24_3_from_2017_to_llama`).*
#
# **After this lesson you can**
#
# - replace a feed-forward network by many, of which each token uses a few;
# - say how a router learns although its choice has no gradient;
# - balance the experts, and see what happens without balancing.
#
# `each layer: x → attention → add & norm → [FEED-FORWARD] → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import functional as F
from npformer import gradcheck, show
from npformer.learn.course import show_figure
from npformer.learn.experiments.experts import (
    BALANCED,
    COLLAPSED,
    DENSE,
    EXPERTS,
    LANGUAGES,
    MEASURED,
    MODELS,
    SEEDS,
    SINGLE,
    UNBALANCED,
    config_of,
    draw_texts,
    train_model,
)
from npformer.learn.experiments.measured_runs import read_results
from npformer.nn import MixtureOfExperts
from npformer.plots import attention_map

# %%
results = [r for r in read_results(MEASURED) if r.seed in SEEDS]
runs = {model: [r for r in results if r.model == model] for model in MODELS}


def shares(run):
    """Return the share of each expert in each layer and language, (L, 4, E)."""
    return np.reshape(run.measures["shares"], (-1, len(LANGUAGES), EXPERTS))


# %% tags=["plot"]
experts = list(map(str, range(EXPERTS)))
figure = attention_map(shares(runs[BALANCED][0])[0], LANGUAGES, experts, numbers=True)
heat, bar = figure.axes
heat.set(xlabel="expert", ylabel="language")
bar.set(ylabel="share")
caption = "The share of each language's characters that each expert of a layer gets"
show_figure(figure, "26_3_languages", caption)

# %% [markdown]
# ## Who reads what?
#
# The picture shows a layer of a small GPT that has read four languages: the English of Shakespeare, French
# sentences, functions in Python, and sums such as 374+58=432. In this layer, the feed-forward network is a
# **mixture of experts**: eight networks, the **experts**. A small linear map, the **router**, sends each
# character to two of them. Nobody told the router about the languages.
#
# **Question.** Which language has an expert of its own? Do the other languages have one, too?
#
# <details><summary>Answer</summary>
# The sums have expert 5, which gets hardly any character of the other languages. It reads nine of ten
# characters of the sums: its share is .46, and since each character goes to two experts, no share can be
# larger than .5. The other languages have none: they spread over the other seven experts in similar ways. One
# reason may be that these three languages have most characters in common, and the sums nearly none with them.
# </details>

# %%
here = shares(runs[BALANCED][0])[0]  # (4, E)
overlap = np.minimum(here[:, None], here).sum(-1)  # (4, 4) 1 if two rows are equal
for language, row in zip(LANGUAGES, overlap, strict=True):
    print(f"{language:8}", *(f"{share:5.2f}" for share in row))

# %% tags=["check"]
counts = np.stack([np.bincount(ids, minlength=256) for ids in draw_texts().train])  # characters
shared = np.minimum(counts[:, None], counts).sum(-1) / counts[0].sum()  # (4, 4) as overlap
assert shared[3, :3].max() < 0.06 < 0.67 < shared[:3, :3].min()
assert here[:3, 5].max() < 0.02 < 0.45 < here[3, 5] < 0.47
assert overlap[3, :3].max() < 0.51 < 0.79 < overlap[:3, :3].min()

# %% [markdown]
# ## Many parameters, few operations
#
# In a dense model, the vector of each token is multiplied by all matrices. So a model with more parameters
# also needs more operations. A mixture of E experts separates these two numbers. The router scores all
# experts for a token $x$, and the k most probable experts compute:
#
# $$\begin{aligned}
# p &= \mathrm{softmax}(x W_r) \\
# w_e &= p_e / \sum_{\text{chosen } i} p_i \\
# y &= \sum_{\text{chosen } e} w_e\, \mathrm{expert}_e(x)
# \end{aligned}$$
#
# The parameters grow with E, and the operations with k (Shazeer et al. 2017).

# %%
for model in (DENSE, BALANCED):
    print(f"{model:12} {config_of(model).count_parameters():7,} parameters")

# %% tags=["check"]
dense, mixture = config_of(DENSE), config_of(BALANCED)
assert mixture.count_parameters() > 2 * dense.count_parameters()
assert [mixture.d_expert, config_of(SINGLE).d_expert, dense.d_ff] == [16, 32, 35]
# products, divided by d_model: three matrices with additional numbers, and the router
assert 0 < 3 * (dense.d_ff - 2 * mixture.d_expert) - mixture.n_experts <= 1

# %% [markdown]
# A hidden layer of an expert has 16 numbers with k = 2, and 32 with k = 1. The dense model ("one network")
# has hidden layers of 35 numbers. These three additional numbers need slightly more products than the router.
# So the matrices of the dense model need at least as many products for a character as those of the mixtures.
# (The products of outputs and weights $w_e$ are few, and not counted.)

# %% [markdown]
# ## The router, step by step

# %%
rng = np.random.default_rng(26)
logits = rng.standard_normal((3, 4))  # (N, E) three tokens, four experts
p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)  # (N, E)
chosen = np.argsort(-p)[:, :2]  # (N, k)
weights = np.take_along_axis(p, chosen, -1)  # (N, k)
weights = weights / weights.sum(-1, keepdims=True)
for token in range(3):
    print(p[token].round(2), "experts", chosen[token], "weights", weights[token].round(2))

# %% tags=["check"]
assert_allclose(weights, F.route(logits, 2)[0])

# %% [markdown]
# The choice changes only in jumps: a small change of the logits usually leaves `chosen` as it is. So no
# gradient passes through the choice. But the weights are smooth, and the router learns through them. With k =
# 2, the two weights of a token add up to 1. So the gradient raises the weight of the expert that helps more,
# and lowers the other weight.
#
# **Question.** With k = 1, the weight of the only expert is $p_e / p_e$. What does the router learn?
#
# <details><summary>Answer</summary>
# Nothing from the predictions: the weight is always 1, so their loss has no gradient for the router.
# Therefore, Switch Transformers, which have k = 1, use $w_e = p_e$ without the division (Fedus et al. 2022).
# </details>

# %% [markdown]
# The layer sorts the tokens by their experts, so that each expert computes all of its tokens at once. Then
# the layer puts the outputs back in order, and adds up the k weighted outputs of each token. Its code is in
# `npformer/nn/experts.py`.

# %%
layer = MixtureOfExperts(4, 6, n_experts=3, rng=rng, dtype=np.float64)
x = rng.standard_normal((5, 4))
y, cache = layer.forward(x)
by_hand = np.zeros_like(y)
for n in range(5):
    for w, e in zip(cache.route.weights[n], cache.route.chosen[n], strict=True):
        by_hand[n] += w * layer.experts[e](x[n : n + 1])[0]
show(cache.route)
report = gradcheck(layer, x)
print(report)

# %% tags=["check"]
assert_allclose(y, by_hand)
assert report.ok

# %% [markdown]
# ## Collapse
#
# At the beginning, the weights of the router are random. An expert that gets more tokens learns faster. Then
# the router raises this expert's probability, which brings it even more tokens. In the end, a few experts may
# do most of the work, and the others hardly learn.
#
# So a term is added to the loss. Let $f_e$ be the number of tokens for which expert e is chosen, divided by
# the number of all tokens. Let $P_e$ be the mean of $p_e$ over all tokens. The **load-balancing loss** is
#
# $$E \sum_e f_e P_e$$
#
# If all experts are equally busy, $f_e = k / E$. Since the $P_e$ add up to 1, this loss is then k. No
# gradient passes through the count $f_e$. The gradient passes through $P_e$, and lowers the probabilities of
# the busiest experts most.

# %%
even = np.eye(4)[[0, 1, 2, 3]] * 9  # each token prefers another expert
collapsed = np.eye(4)[[0, 0, 0, 0]] * 9  # all prefer the first one
for name, scores in {"even": even, "collapsed": collapsed}.items():
    loss, _ = F.load_balancing(scores, scores.argmax(-1)[:, None])
    print(f"{name:10} {loss:.2f}")

# %% tags=["check"]
assert_allclose(F.load_balancing(even, np.arange(4)[:, None])[0], 1)
assert F.load_balancing(collapsed, np.zeros((4, 1), int))[0] > 3.9

# %% [markdown]
# We give this term the weight .01, as Switch Transformers do (Fedus et al. 2022). This is enough to keep all
# experts busy, and so little that the loss of the predictions stays the main part.

# %% [markdown]
# ## The experiment
#
# `npformer experiment experts` trains all models on the four languages, with three seeds. In the tables,
# "experts" means k = 2, and "one expert" means k = 1. The networks are narrow on purpose, so that their size
# limits what the models learn. For the dense model and for the two balanced mixtures, the learning rate is
# the best of three. Each mixture without balancing uses the rate of the balanced one. This cell repeats a
# training with k = 1 and without balancing.

# %%
_, again = train_model(runs[COLLAPSED][0].trial)
print(f"loss now {again.valid_loss:.4f}, in the file {runs[COLLAPSED][0].valid_loss:.4f}")
for language, row in zip(LANGUAGES, shares(again)[0], strict=True):
    print(f"{language:8}", *(f"{share:5.2f}" for share in row))


def busy_experts(run):
    """Return for each layer how many equally busy experts would have the same entropy."""
    load = shares(run).mean(1)  # (L, E) the four languages are equally long
    return np.exp(-(load * np.log(np.maximum(load, 1e-12))).sum(-1))  # (L,)


print("busy experts in the two layers, with each seed")
busy = {}
for model in (BALANCED, UNBALANCED, SINGLE, COLLAPSED):
    busy[model] = np.array([busy_experts(run) for run in runs[model]])  # (seeds, L)
    print(f"{model:24}", *(f"{number:5.1f}" for number in busy[model].ravel()))

# %% tags=["check"]
assert abs(again.valid_loss - runs[COLLAPSED][0].valid_loss) < 0.02
assert min(busy[BALANCED].min(), busy[SINGLE].min()) > 7.5
assert 2.5 < busy[COLLAPSED].min() < busy[COLLAPSED].max() < 6
assert 6 < busy[UNBALANCED].min() < busy[UNBALANCED].max() < 7.1
assert 0.8 < np.sort(shares(runs[COLLAPSED][0])[0, 0])[-2:].sum() < 0.88  # English, two experts

# %% [markdown]
# The number of busy experts is computed from the entropy of their shares: it is the number of experts that
# would have this entropy if all were equally busy. With balancing, it is nearly eight. With k = 1 and without
# balancing, it is three to six. In the first layer of the training above, two experts read more than four
# fifths of English. With k = 2, the collapse is weaker: six to seven experts are busy. What does the collapse
# cost?

# %%
print("nats per character      ", *(f"{of:>8}" for of in (*LANGUAGES, "training")), "    seeds")
for model, of in runs.items():
    losses = np.mean([r.measures["loss"] for r in of], 0)
    fitted = np.mean([r.measures["training"] for r in of])
    each = ", ".join(f"{r.valid_loss:.3f}" for r in of)
    print(f"{model:24}", *(f"{loss:8.3f}" for loss in (*losses, fitted)), f"    {each}")

# %% tags=["check"]
valid = {model: np.array([r.valid_loss for r in of]) for model, of in runs.items()}
training = {model: np.mean([r.measures["training"] for r in of]) for model, of in runs.items()}
for model, gain in ((BALANCED, 0.046), (SINGLE, 0.040)):
    assert_allclose((valid[DENSE] - valid[model]).mean(), gain, atol=0.0005)
    assert valid[model].max() < valid[DENSE].min()
    assert training[DENSE] - training[model] > gain

# %% [markdown]
# The balanced mixtures have a lower loss than the dense model, on average by .046 with k = 2 and by .040 with
# k = 1. There is a gain with each seed: even the worst balanced mixture is better than the best dense model.
# There is also a gain on the training text, so the additional parameters help to fit the text. A first
# experiment, with wider networks and 200 steps, showed no clear gain (we did not keep its runs). With k = 2,
# the seeds differed by more than the gain. With k = 1, whose learning rate was not searched, the loss was
# higher than that of the dense model with each seed. Then we chose narrower networks and longer trainings.

# %% tags=["check"]
for balanced, collapsed in ((BALANCED, UNBALANCED), (SINGLE, COLLAPSED)):
    assert (valid[collapsed] > valid[balanced]).all()
    assert_allclose((valid[collapsed] - valid[balanced]).mean(), 0.032, atol=0.0005)
assert (valid[UNBALANCED] > valid[DENSE]).sum() == 1

# %% [markdown]
# Without balancing, the loss is higher than with balancing: with every seed, and by .032 on average. So on
# average, most of the gain is lost. With k = 2 and one of the seeds, the loss is even higher than that of the
# dense model with this seed. (The models without balancing had no search for a learning rate of their own,
# which might lower their loss.)

# %% tags=["check"]
seconds = {model: np.mean([r.seconds for r in of]) for model, of in runs.items()}
assert 1.5 < seconds[BALANCED] / seconds[DENSE] < 1.7
search = [r for r in read_results(MEASURED) if r.seed not in SEEDS]
slow, fast = (np.mean([r.seconds for r in search if r.model == m]) for m in (BALANCED, DENSE))
assert 1.25 < slow / fast < 1.35

# %% [markdown]
# Equally many products do not take equally long. Where the dense model multiplies by one matrix, our layer
# multiplies by eight small ones, and it sorts the tokens. The mixture with k = 2 took about 1.6 times the
# processor time (1.3 times in the search for the rates). Large models gain even if time is counted: with
# equally many operations for each token, Switch Transformers reached the loss of a dense model in as little
# as a seventh of the time (Fedus et al. 2022).

# %% [markdown]
# ## What models do with it
#
# Mixtral (2024) is a Mistral with eight experts in each layer, two for each token. It has 47 billion
# parameters, of which a token uses 13 billion. Qwen3-30B-A3B (2025) has 128 experts in each layer, eight for
# each token. `npformer.load` reads both models.

# %%
each = 32 * 3 * 4096 * 14336 / 1e9  # billions, of an expert's three matrices in 32 layers
print(f"Mixtral: {8 * each:.0f} billion in all experts, {2 * each:.0f} of them used")

# %% [markdown]
# All experts must be in memory, even if a token uses only a few. Compared with a dense model of equally many
# parameters, a mixture saves operations, but no memory.

# %% [markdown]
# ## Summary
#
# - A mixture of experts has many feed-forward networks. A router sends each token to k of them.
# - The parameters grow with the number of experts, and the operations with k.
# - The choice has no gradient. The router learns through the weights of the chosen experts.
# - Without balancing, a few experts may do most of the work. The load-balancing loss $E \sum_e f_e P_e$
#   lowers the probabilities of the busy experts.
# - With equally many products for each token, our balanced mixtures of narrow networks reach a lower loss
#   than the dense model. Without balancing, most of this gain is lost on average.

# %% [markdown]
# ## Questions
#
# **Question.** Show that renormalized weights are a softmax of the chosen logits $s_i$ alone.
#
# <details><summary>Answer</summary>
# $p_i = \exp(s_i) / Z$, and Z cancels: $w_i = \exp(s_i) / \sum_{\text{chosen } j} \exp(s_j)$.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 26` lists the exercises of this chapter.
#
# - `npformer exercise start mixture-of-experts`: write the loop over tokens and experts.
# - By hand, for k = 1: half of the experts are never chosen. Each of the others is chosen equally often,
#   always with probability 1. How large is the load-balancing loss?
#
# **Next**: lesson 26.4 (`26_4_multi_head_latent_attention`), which shortens what a KV cache keeps.

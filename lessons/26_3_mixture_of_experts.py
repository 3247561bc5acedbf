# %% [markdown]
# # 26.3 · Mixture of experts
#
# *About 30 minutes. You need: gated feed-forward networks (lesson 23.3,
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
# sentences, functions in Python, and sums such as 374+58=432. Its feed-forward network is a **mixture of
# experts**: eight networks, the **experts**. A small linear map, the **router**, sends each character to two
# of them. Nobody told the router about the languages.
#
# **Question.** Which language has experts of its own? Which two languages share their experts most?
#
# <details><summary>Answer</summary>
# The sums come nearest: experts 3 and 4 get two thirds of them and hardly
# any English or French, but a third of Python. English and French share most: they have the same letters.
# </details>

# %%
here = shares(runs[BALANCED][0])[0]  # (4, E)
overlap = np.minimum(here[:, None], here).sum(-1)  # (4, 4) 1 if two rows are equal
for language, row in zip(LANGUAGES, overlap, strict=True):
    print(f"{language:8}", *(f"{share:5.2f}" for share in row))

# %% tags=["check"]
assert overlap[:2, 3].max() < 0.4 < 0.8 < overlap[0, 1]
assert here[3, 3:5].sum() > 0.6

# %% [markdown]
# ## Many parameters, few operations
#
# In a dense model, the vector of each token is multiplied by all matrices. So a model that knows more also
# computes more. A mixture of E experts separates the two. The router scores all experts for a token $x$, and
# the k most probable ones compute:
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
assert config_of(BALANCED).count_parameters() > 2.5 * config_of(DENSE).count_parameters()

# %% [markdown]
# The one network has a hidden layer of 128 numbers. With k = 2, that of each expert has 64, and with k = 1 it
# has 128. So a character needs equally many products in all models, apart from the small router.

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
# The choice is a jump: a small change of the logits usually changes nothing in `chosen`. So it has no
# gradient. But the weights are smooth, and the router learns through them. If an expert lowers the loss of
# its tokens, then the gradient raises its weight for them.
#
# **Question.** With k = 1, the weight of the only expert is $p_e / p_e$. What does the router learn?
#
# <details><summary>Answer</summary>
# Nothing: the weight is always 1, so its gradient is 0. So models with k =
# 1 use $w_e = p_e$, without the division (Fedus et al. 2022).
# </details>

# %% [markdown]
# The layer sorts the tokens by their experts, so that each expert computes one matrix product for all of its
# tokens. Then it puts the outputs back in order, and adds up the k weighted outputs of each token. You find
# it in `npformer/nn/experts.py`.

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
# At the beginning the router chooses at random. An expert that gets more tokens learns more from them. Then
# it is better, gets a larger weight, and is chosen even more. In the end a few experts do all the work, and
# the others are never trained.
#
# So a term is added to the loss. Let $f_e$ be the number of tokens that have chosen expert e, divided by N,
# and $P_e$ the mean of $p_e$ over all tokens. The **load-balancing loss** is
#
# $$E \sum_e f_e P_e$$
#
# If all experts are equally busy, $f_e = k / E$. Since the $P_e$ add up to 1, the loss is k then. The count
# $f_e$ has no gradient. The gradient goes through $P_e$, and lowers the probabilities of the busy experts
# most.

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
# We give this term the weight .01, as Switch Transformers do: enough to keep experts busy, and too little to
# drown the loss of the predictions.

# %% [markdown]
# ## The experiment
#
# `npformer experiment experts` trains all models on the four languages, with three seeds. For the one
# network, and for the balanced mixture with k = 2, the learning rate is the best of three. The other mixtures
# take that of the balanced one. This cell repeats a training with one expert for each character, without
# balancing.

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
assert max(busy[COLLAPSED].max(), busy[UNBALANCED].min()) < 5.6

# %% [markdown]
# With balancing, all eight experts are busy. Without it, and with one expert for each character, three to six
# are. In the first layer of the training above, two experts read nine of ten characters of English. With two
# experts for each character the collapse is smaller. What does it cost?

# %%
print("nats per character      ", *(f"{language:>8}" for language in LANGUAGES), "    seeds")
for model, of in runs.items():
    losses = np.mean([r.measures["loss"] for r in of], 0)
    each = ", ".join(f"{r.valid_loss:.3f}" for r in of)
    print(f"{model:24}", *(f"{loss:8.3f}" for loss in losses), f"    {each}")

# %% tags=["check"]
gain = [d.valid_loss - e.valid_loss for d, e in zip(runs[DENSE], runs[BALANCED], strict=True)]
assert min(gain) < 0 < np.mean(gain) < 0.02
of_single, of_one = (min(r.valid_loss for r in runs[model]) for model in (SINGLE, DENSE))
assert of_single > of_one

# %% [markdown]
# On average two experts beat the one network, but by .011 only, and with one seed they lose. Seeds differ by
# more, so these short trainings settle nothing. One expert for each character loses with every seed. A reason
# may be that an expert sees an eighth of the characters, or that its learning rate was not searched. The
# collapse costs .008 on average, less than seeds differ.
#
# After billions of tokens the gain is clear: with equally many operations for each token, Switch Transformers
# reached the loss of a dense model up to seven times faster (Fedus et al. 2022).

# %% [markdown]
# ## What models do with it
#
# Mixtral (2024) is a Mistral with eight experts in each layer, two for each token: 47 billion parameters, of
# which a token uses 13. Qwen3-30B-A3B (2025) has 128 experts, eight for each token. `npformer.load` reads
# both.

# %%
each = 32 * 3 * 4096 * 14336 / 1e9  # billions, of an expert's three matrices in 32 layers
print(f"Mixtral: {8 * each:.0f} billion in all experts, {2 * each:.0f} of them used")

# %% [markdown]
# All experts must be in memory, even if a token uses a few. Compared with a dense model of as many
# parameters, a mixture saves operations and no memory.

# %% [markdown]
# ## Summary
#
# - A mixture of experts has many feed-forward networks. A router sends each token to k of them.
# - The parameters grow with the number of experts, and the operations with k.
# - The choice has no gradient. The router learns through the weights of the chosen experts.
# - Without balancing, a few experts may do most of the work. The load-balancing loss $E \sum_e f_e P_e$
#   lowers the probabilities of the busy ones.
# - An expert sees a part of the tokens. Our short training does not show the gain of long ones.

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
# - By hand: what does the load-balancing loss become if half of the experts are never chosen, and the others
#   equally often, with certainty?
#
# **Next**: lesson 26.4 (`26_4_multi_head_latent_attention`), which shortens what a KV cache keeps.

# %% [markdown]
# # 27.6 · Speculative decoding
#
# *About 25 minutes. You need: sampling (lesson 24.2, `24_2_sampling`), the KV cache of a GPT (lesson 24.4,
# `24_4_what_a_kv_cache_costs_and_saves`).*
#
# **After this lesson you can**
#
# - generate with a large model in fewer of its passes, with the help of a small model;
# - prove that the distribution of the text does not change, and test it;
# - compute how many tokens a pass yields.
#
# `language model: ids → embedding → layers → norm → linear → [SOFTMAX]`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.functional import softmax
from npformer.generation import speculative_ids
from npformer.generation.speculative import accept
from npformer.learn.course import show_figure
from npformer.learn.experiments.adaptation import CONFIG, SEEDS
from npformer.learn.experiments.measured_runs import Measured, new_gpt, read_results
from npformer.learn.experiments.speculation import AHEAD, DRAFT, DRAFTS, MEASURED
from npformer.plots import curves, probability_bars

rng = np.random.default_rng(27)

# %%
letters = list("aeiou")
p, _ = softmax(np.array([2.0, 1.5, 0.0, 0.0, -1.0]))  # (V,) of the large model
q, _ = softmax(np.array([2.5, 0.0, 1.0, 0.0, -1.0]))  # (V,) of the small model

# %% tags=["plot"]
figure = probability_bars(p, letters, target=q, names=("large model", "small model"))
show_figure(figure, "27_6_models", "The next letter: two models that do not agree")

# %% [markdown]
# ## Guess, then check
#
# A large model writes one token in each pass. In each pass, all its weights are read from memory, and this
# takes most of the time (lesson 16.1, `16_1_operations_and_memory_bandwidth`). A pass over five tokens reads
# them once, too, and takes hardly longer. But the next five tokens are not known yet.
#
# **Speculative decoding** guesses them. A small model, the **draft**, writes a few tokens quickly. The large
# model, the **target**, reads them all in one pass, as in training. So it knows, after each of them, with
# which probability it would have written the next. What can be kept?
#
# In the picture, "a" is the most probable letter of both models. The small model writes "i" more often than
# the large one, and "e" less often.
#
# **Question.** You keep every letter that the small model draws. What is wrong with the text?
#
# <details><summary>Answer</summary>
# It is a text of the small model. The letter "i" occurs too often in it, and "e" too rarely.
# </details>

# %% [markdown]
# ## Keep or replace
#
# Let $q(x)$ be the probability of the token $x$ for the small model, and $p(x)$ that for the large one. A
# token $x$ is drawn from $q$. Two rules repair the distribution (Leviathan et al. 2023):
#
# - keep $x$ with probability $\min(1, p(x) / q(x))$;
# - if it is not kept, draw the token from $\max(0, p - q)$, divided by its sum.
#
# A token that the small model draws too often is kept less often. In its place come tokens that it draws too
# rarely. The sum is exactly $p$:
#
# $$\begin{aligned}
# P(x) &= q(x) \min\left(1, \frac{p(x)}{q(x)}\right)
#      + R\, \frac{\max(0, p(x) - q(x))}{\sum_v \max(0, p(v) - q(v))} \\
# &= \min(p(x), q(x)) + \max(0, p(x) - q(x)) = p(x)
# \end{aligned}$$
#
# $R$ is the probability that a token is not kept. The second line holds because
# $R = 1 - \sum_v \min(p(v), q(v)) = \sum_v \max(0, p(v) - q(v))$.

# %%
kept = np.minimum(p, q)  # drawn and kept
replaced = np.maximum(p - q, 0)  # drawn in place of another
print("kept    ", kept.round(3), " sum", kept.sum().round(3))
print("replaced", replaced.round(3), " sum", replaced.sum().round(3))

# %% tags=["check"]
assert_allclose(kept + replaced, p)
assert_allclose(kept.sum() + replaced.sum(), 1)

# %% [markdown]
# The function `accept` of the package does this for several drafted tokens: it goes through them, and ends
# at the first that is not kept. If all are kept, it draws one more from the last probabilities of the
# target. The cell draws 4,000 letters and counts them.

# %%
counts, draws = np.zeros(5), 4000
for _ in range(draws):
    token = int(rng.choice(5, p=q))  # the small model
    n_kept, after = accept([token], np.stack([p, p]), [q], rng)
    counts[token if n_kept else after] += 1
chi_square = ((counts - draws * p) ** 2 / (draws * p)).sum()
of_draft = ((draws * q - draws * p) ** 2 / (draws * p)).sum()
print("frequencies", (counts / draws).round(3), "  p", p.round(3))
print(f"chi-square {chi_square:.1f}; the small model alone would have {of_draft:.0f}")

# %% tags=["check"]
assert chi_square < 13.3  # which 4 degrees of freedom exceed once in a hundred times

# %% [markdown]
# Chi-square is the sum of the squared differences, each divided by the expected count. If the distribution is
# right, it is about 4 here, one less than the number of letters. This draw happens to be nearer to $p$ than
# most.

# %% [markdown]
# ## How many tokens does a pass yield?
#
# Let $\alpha$ be the probability that a drafted token is kept, the same for all. With $\gamma$ tokens ahead,
# a pass yields the tokens up to the first that is not kept, and always one from the target:
#
# $$1 + \alpha + \alpha^2 + \dots + \alpha^\gamma = \frac{1 - \alpha^{\gamma + 1}}{1 - \alpha}$$
#
# **Question.** How large is this for $\alpha = 0$, and for $\alpha \to 1$?
#
# <details><summary>Answer</summary>
# 1 and $\gamma + 1$. The target never needs more passes than without a draft.
# </details>
#
# The next cell uses two untrained GPTs, to show the function.

# %%
target, draft = new_gpt(CONFIG, seed=0), new_gpt(DRAFT, seed=0)
found = speculative_ids(target, draft, [1, 2, 3], 40, ahead=4, seed=0)
print(f"{len(found.ids)} tokens in {found.passes} passes: {found.tokens_per_pass:.2f} each")
print(f"{found.accepted} of {found.drafted} drafted tokens were kept")

# %% tags=["check"]
assert len(found.ids) == 40
assert found.accepted + found.passes == 40

# %% [markdown]
# After each pass, the keys and values of the tokens that were not kept must leave the KV cache of both
# models. The cache only forgets its last positions, so this is one assignment of its length.

# %% [markdown]
# ## The experiment
#
# The target is the GPT of lesson 27.1 (`27_1_lora`), with a quarter of a million parameters. The small GPT
# learned the same plays. The baseline is a draft that learned nothing. Each number is the mean of three
# seeds.

# %%
results = {(r.model, r.seed): r.values for r in read_results(MEASURED, Measured)}


def mean_of(kind, ahead, measure):
    """Return a measure of a draft, the mean of the seeds."""
    return np.mean([results[f"{kind}, {ahead} ahead", seed][measure] for seed in SEEDS])


for kind in DRAFTS:
    for ahead in AHEAD:
        tokens, share = (mean_of(kind, ahead, name) for name in ("tokens per pass", "accepted"))
        print(f"{kind:13} {ahead} ahead: {tokens:.2f} tokens per pass, {share:4.0%} kept")

# %% tags=["plot"]
points = [[mean_of(kind, ahead, "tokens per pass") for ahead in AHEAD] for kind in DRAFTS]
names = {"labels": list(DRAFTS), "xlabel": "tokens ahead", "ylabel": "tokens per pass"}
caption = "Tokens for each pass of the large model"
show_figure(curves(points, AHEAD, **names), "27_6_tokens", caption)

# %% tags=["check"]
assert all(mean_of("small GPT", n, "tokens per pass") > 1.3 for n in AHEAD)
assert (np.array(points[0]) > np.array(points[1])).all()

# %% [markdown]
# More tokens ahead yield more per pass, but each further one less, since all before it must have been kept.
# The share of kept tokens falls for the same reason. With one token ahead it is $\alpha$ itself, .795 for the
# small GPT. The formula then gives 2.43, 3.33 and 4.25 tokens for two, four and eight, a little more than
# measured: tokens are not equally hard.
#
# The numbers count passes, not seconds, and leave out the work of the draft, which also writes every token
# that is thrown away. So in practice a few tokens ahead are usual. The gain is for models whose weights do
# not fit into fast memory. On one core, with models as small as ours, a pass over five tokens takes longer
# than one over a single token.

# %% [markdown]
# ## Summary
#
# - A small model drafts several tokens, and the large one checks them in one pass.
# - A token is kept with probability min(1, p / q); otherwise a draw from max(0, p − q) replaces it.
# - The text has exactly the distribution of the large model, whatever the draft is.
# - A pass yields 1 + α + … + α^γ tokens, if each drafted token is kept with probability α.
# - A better draft saves more passes. No draft changes the distribution of the text.

# %% [markdown]
# ## Questions
#
# **Question.** What happens with greedy decoding, where $p$ and $q$ have a single 1?
#
# <details><summary>Answer</summary>
# A drafted token is kept if it is the most probable one of the target too;
# otherwise that one replaces it. The text is the one that the target writes greedily.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter.
#
# - `npformer exercise start accept`: decide which drafted tokens to keep.
# - `npformer experiment speculation` repeats the experiment in a minute of processor time.
#
# The method was found twice: Leviathan et al., "Fast inference from Transformers via speculative decoding"
# (2023), and Chen et al., "Accelerating large language model decoding with speculative sampling" (2023).
#
# This is the last lesson of the course. The command `npformer lessons` shows which lessons you have not
# finished, and `npformer exercise list` shows all exercises.

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
from npformer.learn.experiments.speculation import AHEAD, DRAFT, DRAFTS, LENGTH, MEASURED
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
# When a large model writes a text, each pass yields one token. Each pass reads all weights from memory, which
# takes most of the time if the text is not very long (lesson 16.1, `16_1_operations_and_memory_bandwidth`). A
# pass over five tokens also reads the weights only once, so it takes hardly longer. But the next five tokens
# are not known yet.
#
# **Speculative decoding** guesses them. A small model, the **draft**, writes a few tokens quickly. The large
# model, the **target**, reads all of these tokens in one pass, as in training. So for each of them, it
# computes the probability with which it would have written this token itself. Which tokens can be kept?
#
# In the picture, "a" is the most probable letter of both models. The small model writes "a" and "i" more
# often than the large one, and "e" much less often.
#
# **Question.** You keep every letter that the small model draws. What is wrong with the text?
#
# <details><summary>Answer</summary>
# It is a text of the small model. The letters "a" and "i" occur too often, and "e" occurs too rarely.
# </details>

# %% [markdown]
# ## Keep or replace
#
# Let $q(x)$ be the probability of the token $x$ for the small model, and $p(x)$ its probability for the large
# model. A token $x$ is drawn from $q$. Two rules repair the distribution (Leviathan et al. 2023):
#
# - keep $x$ with probability $\min(1, p(x) / q(x))$;
# - if it is not kept, draw the token from $\max(0, p - q)$, divided by its sum.
#
# A token that the small model draws too often is not always kept. It is replaced by tokens that the small
# model draws too rarely. Together, the two ways to write $x$ have exactly the probability $p(x)$:
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
assert [letter for letter, more in zip(letters, q - p, strict=True) if more > 0.05] == ["a", "i"]
assert letters[(q - p).argmin()] == "e"

# %% [markdown]
# The function `accept` of the package applies the two rules to several drafted tokens, one after the other,
# and stops at the first token that is not kept. If all are kept, it draws one more token from the target's
# last probabilities. The cell draws 4,000 letters and counts them.

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
# For each letter, square the difference between its count and the expected count, and divide by the expected
# count. Chi-square is the sum of these numbers. If the distribution is right, its mean is 4 here, one less
# than the number of letters. The frequencies of this cell happen to be nearer to $p$ than usual.

# %% [markdown]
# ## How many tokens does a pass yield?
#
# Suppose each drafted token is kept with the same probability $\alpha$ if all tokens before it are kept. Then
# the $i$-th one is kept with probability $\alpha^i$. One more token always comes from the target. So with
# $\gamma$ tokens ahead, the mean number of tokens that a pass yields is
#
# $$1 + \alpha + \alpha^2 + \dots + \alpha^\gamma = \frac{1 - \alpha^{\gamma + 1}}{1 - \alpha}$$
#
# **Question.** How large is this mean for $\alpha = 0$, and for $\alpha \to 1$?
#
# <details><summary>Answer</summary>
# 1 and $\gamma + 1$. The target never needs more passes than without a draft.
# </details>
#
# The next cell shows the function `speculative_ids` with two untrained GPTs.

# %%
target, draft = new_gpt(CONFIG, seed=0), new_gpt(DRAFT, seed=0)
found = speculative_ids(target, draft, [1, 2, 3], 40, ahead=4, seed=0)
print(f"{len(found.ids)} tokens in {found.passes} passes: {found.tokens_per_pass:.2f} each")
print(f"{found.accepted} of {found.drafted} drafted tokens were kept")

# %% tags=["check"]
assert len(found.ids) == 40
assert found.accepted + found.passes == 40
assert 15.5 < target.count_parameters() / draft.count_parameters() < 16.5

# %% [markdown]
# After each pass, the keys and values of the tokens that were not kept must be removed from the KV caches of
# both models. They are always the last ones, so it is enough to set the length of each cache to a smaller
# number.

# %% [markdown]
# ## The experiment
#
# The target is the GPT of lesson 27.1 (`27_1_lora`), with a quarter of a million parameters. The small GPT
# has a sixteenth of these parameters and learned the same plays. The baseline is a draft that learned
# nothing. Each prompt is continued by 56 tokens. Each number is the mean of three seeds.

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
# With the small GPT as the draft, more tokens ahead yield more tokens per pass. But each further token adds
# less, since it is kept only if all before it are kept. The share of kept tokens falls for the same reason.
#
# With one token ahead, this share is $\alpha$ itself: .795 for the small GPT. For two, four and eight tokens
# ahead, the formula then gives 2.43, 3.33 and 4.25 tokens per pass. The experiment measured 2.41, 3.17 and
# 4.07. One reason for the difference is that the texts are short: the last pass of a text needs only the
# tokens that are left. If this is taken into account, the same $\alpha$ gives 2.39, 3.23 and 4.07.

# %% tags=["check"]
alpha = mean_of("small GPT", 1, "accepted")


def expected_passes(gamma, length):
    """Return the mean number of passes for a text, whose last pass drafts only what is left."""
    passes = [0.0]
    for left in range(1, length + 1):
        n = min(gamma, left - 1)  # drafted tokens
        kept = [alpha**i * (1 - alpha) for i in range(n)] + [alpha**n]
        passes.append(1 + sum(p * passes[left - 1 - i] for i, p in enumerate(kept)))
    return passes[-1]


formula = [(1 - alpha ** (n + 1)) / (1 - alpha) for n in AHEAD[1:]]
in_short_texts = [LENGTH / expected_passes(n, LENGTH) for n in AHEAD[1:]]
assert_allclose(formula, [2.43, 3.33, 4.25], atol=0.01)
assert_allclose(in_short_texts, [2.39, 3.23, 4.07], atol=0.01)
assert_allclose(points[0][1:], [2.41, 3.17, 4.07], atol=0.01)

# %% [markdown]
# The numbers count passes, not seconds. They leave out the work of the draft, which also writes every token
# that is thrown away. So in practice, few tokens ahead are usual. Speculative decoding pays for models whose
# weights do not fit into fast memory.
#
# In seconds, it does not pay for models as small as ours. On one core, a token of the small GPT took more
# than half as long as a token of the target, although it has a sixteenth of the parameters. A pass of the
# target over five tokens took 1.2 times as long as a pass over one token. Together with the draws and the
# rule, the texts took no less time than without a draft, with one to eight tokens ahead. With eight, they
# took about one and a half times as long.

# %% [markdown]
# ## Summary
#
# - A small model drafts several tokens, and the large one checks them in one pass.
# - A token is kept with probability min(1, p / q); otherwise a draw from max(0, p − q) replaces it.
# - The text has exactly the distribution of the large model, whatever the draft is.
# - A pass yields 1 + α + … + α^γ tokens on average, if each drafted token is kept with probability α.
# - A better draft saves more passes. No draft changes the distribution of the text.

# %% [markdown]
# ## Questions
#
# **Question.** What happens with greedy decoding, where $p$ and $q$ have a single 1?
#
# <details><summary>Answer</summary>
# A drafted token is kept if it is also the target's most probable token. Otherwise, the target's most
# probable token replaces it. So the text is the same as the target alone would write greedily.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter.
#
# - `npformer exercise start accept`: decide which drafted tokens to keep.
# - `npformer experiment speculation` repeats the experiment in less than a minute of processor time.
#
# The method was found twice: Leviathan et al., "Fast inference from Transformers via speculative decoding"
# (2023), and Chen et al., "Accelerating large language model decoding with speculative sampling" (2023).
#
# This is the last lesson of the course. The command `npformer lessons` shows which lessons you have not
# finished, and `npformer exercise list` shows all exercises.

# %% [markdown]
# # 24.2 · Sampling
#
# *About 25 minutes. You need: the softmax (lesson 4.1, `04_1_attention_without_parameters`), greedy search
# (lesson 14.1, `14_1_greedy_search_and_beam_search`), a GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`).*
#
# **After this lesson you can**
#
# - draw the next token from the probabilities of a language model;
# - change these probabilities with a temperature, and say what a very low or a very high temperature does;
# - leave out improbable tokens with top-k or top-p sampling, and choose one of these two methods.
#
# `language model: ids → embedding → layers → norm → linear → [SOFTMAX]`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer.functional.softmax import softmax
from npformer.generation.sampling import draw_tokens, sample_ids, token_probabilities
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import short_gpt
from npformer.plots import probability_panels

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Why not the most probable token?
#
# A translation has few good forms, so greedy search and beam search work well there. A continuation of a text
# has many good forms. The cell trains the small GPT of lesson 24.1, and lets it continue "ROMEO:" by greedy
# search.

# %%
model, dataset, _ = short_gpt()
codec = dataset.codec
prompt = codec.encode("ROMEO:")


def write(n_tokens, seed=None, **settings):
    """Return a continuation of the prompt. Without a seed, it is that of greedy search."""
    rng = None if seed is None else np.random.default_rng(seed)
    drawn = sample_ids(model, [prompt], n_tokens, rng=rng, **settings)
    return codec.decode([int(token[0]) for token in drawn])


greedy = write(120)
print(greedy)

# %% tags=["check"]
words = greedy.split()
assert max(words.count(word) for word in words) >= len(words) / 4

# %% [markdown]
# The text repeats itself without end. A frequent word is the most probable next word almost everywhere,
# and each repetition makes the next repetition more probable. People do not write like this: their texts
# often contain words that are not the most probable ones (Holtzman et al. 2020).
#
# So we **sample**: we draw each token with the probability that the model gives it.

# %% tags=["plot"]
figure = shape_flow(
    "ids logits p p' next",
    {
        "logits": "GPT, / temperature: ids",
        "p": "softmax: logits",
        "p'": "top-k, top-p: p",
        "next": "draw: p'",
    },
    {"ids": "B T", "logits": "1 V", "p": "1 V", "p'": "1 V", "next": "1"},
)
caption = "One token is drawn and appended; then the GPT reads all of them again"
show_figure(figure, "24_2_shapes", caption)

# %% [markdown]
# ## Draw from a list of probabilities
#
# A uniform random number u between 0 and 1 is enough. The probabilities divide this interval into V pieces,
# one for each token. The next token is the one whose piece contains u. The ends of the pieces are the
# cumulative sums of the probabilities.

# %%
p = np.array([0.5, 0.3, 0.15, 0.05])  # (V,)
ends = p.cumsum()  # (V,) the end of each piece
u = np.random.default_rng(0).random(10_000)
tokens = (ends <= u[:, None]).sum(-1)  # (10000,) the number of pieces that end before u
frequencies = np.bincount(tokens, minlength=4) / len(tokens)
print("probabilities:", p, "  frequencies:", frequencies.round(3))

# %% tags=["check"]
assert_allclose(frequencies, p, atol=0.02)
repeated = draw_tokens(np.tile(p, (10_000, 1)), np.random.default_rng(0))
assert_allclose(np.bincount(repeated, minlength=4) / 10_000, p, atol=0.02)

# %% [markdown]
# ## Temperature
#
# The **temperature** $\tau$ divides all logits before the softmax:
#
# $$p_i = \frac{e^{z_i / \tau}}{\sum_j e^{z_j / \tau}}$$
#
# The cell shows the probabilities of the next character after "ROMEO:\nI am a " for three temperatures.

# %%
context = codec.encode("ROMEO:\nI am a ")
logits = model.forward(np.array([context]))[0][:, -1]  # (1, V)
temperatures = (0.5, 1.0, 2.0)
by_temperature = {t: token_probabilities(logits, temperature=t)[0] for t in temperatures}  # (V,)
for temperature, p in by_temperature.items():
    best = " ".join(f"{codec.tokens[i]!r} {p[i]:.2f}" for i in np.argsort(-p)[:5])
    print(f"temperature {temperature}: {best}   entropy {-(p * np.log(p)).sum():.2f} nats")

# %% tags=["check"]
for temperature, p in by_temperature.items():
    assert_allclose(p, softmax(logits[0].astype(float) / temperature)[0], rtol=1e-6)
entropies = [-(p * np.log(p)).sum() for p in by_temperature.values()]
assert entropies[0] < entropies[1] < entropies[2] < np.log(len(codec.tokens))

# %% tags=["plot"]
order = np.argsort(-by_temperature[1.0])[:12]
figure = probability_panels(
    np.array([p[order] for p in by_temperature.values()]),
    [codec.tokens[i].replace(" ", "␣").replace("\n", "⏎") for i in order],
    [f"temperature {t}" for t in by_temperature],
)
show_figure(figure, "24_2_temperature", "A low temperature makes probable tokens more probable")

# %% [markdown]
# The ratio of two probabilities is $p_i / p_j = e^{(z_i - z_j) / \tau}$. So a temperature below 1 moves these
# ratios further away from 1, and the entropy becomes smaller. A temperature above 1 makes the probabilities
# more equal.
#
# **Question.** Which probabilities do you get in the limits $\tau \to 0$ and $\tau \to \infty$?
#
# <details><summary>Answer</summary>
# For $\tau \to 0$, the most probable token gets the probability 1: this is greedy search. For
# $\tau \to \infty$, all tokens get the probability 1 / V.
# </details>

# %%
for temperature in (0.5, 1.0, 2.0):
    print(f"--- temperature {temperature}\n{write(120, seed=0, temperature=temperature)}")

# %% [markdown]
# With the temperature .5, the model prefers common words and repeats them more often. With the temperature 2,
# most words of the text do not exist in English.
#
# ## The tail of the distribution
#
# With the temperature 1, the tokens are drawn with the probabilities of the model itself. But many words of
# the text still do not exist. A reason is the **tail** of the distribution: many tokens have a small
# probability, and together they are drawn often. The cell adds up the probabilities of all characters except
# for the five most probable ones, at each position of a validation text.

# %%
ids = dataset.valid[:6400].astype(int).reshape(200, 32)  # (B, T)
p, _ = softmax(model.forward(ids)[0])  # (B, T, V)
ranked = -np.sort(-p, axis=-1)  # (B, T, V) the largest probability first
tail = ranked[..., 5:].sum(-1)  # (B, T)
print(f"mean probability outside of the five most probable characters: {tail.mean():.2f}")
print(f"probability that 20 draws in a row avoid them: {(1 - tail.mean()) ** 20:.3f}")

# %% tags=["check"]
assert 0.1 < tail.mean() < 0.4
assert (1 - tail.mean()) ** 20 < 0.15

# %% [markdown]
# So almost every line contains a character from this tail. Some of these characters are right, but many of
# them are mistakes of the model. After a mistake, the model must continue a text that differs from all texts
# of its training (lesson 14.2, `14_2_exposure_bias_and_search_errors`).
#
# ## Top-k and top-p
#
# Two methods leave out the tail. The remaining probabilities are divided by their sum.
#
# - **Top-k sampling** keeps the k most probable tokens (Fan et al. 2018).
# - **Top-p sampling**, also called nucleus sampling, keeps the smallest set of the most probable tokens whose
#   probabilities sum to at least p (Holtzman et al. 2020).

# %%


def top_p_by_hand(p, share):
    """Return the probabilities (V,) after top-p sampling has left out the tail of p (V,)."""
    order = np.argsort(-p)  # the most probable token first
    before = p[order].cumsum() - p[order]  # the sum of the more probable tokens
    kept = order[before < share]  # the sum was still below the share
    result = np.zeros_like(p)
    result[kept] = p[kept] / p[kept].sum()
    return result


nucleus = top_p_by_hand(by_temperature[1.0], 0.9)
print(f"top-p with p = .9 keeps {np.count_nonzero(nucleus)} of {len(nucleus)} characters")

# %% tags=["check"]
assert_allclose(nucleus, token_probabilities(logits, top_p=0.9)[0], atol=1e-6)
assert_allclose(nucleus.sum(), 1)
assert np.count_nonzero(token_probabilities(logits, top_k=5)) == 5

# %% [markdown]
# The number of tokens that top-p keeps depends on the position. After "q", only "u" is probable. At the
# beginning of a word, many characters are possible. The next cell counts the characters that top-p keeps, at
# each position of the validation text.
#
# **Question.** Top-k with k = 10 keeps ten characters at every position. What is wrong with this after "q",
# and what is wrong at the beginning of a word?
#
# <details><summary>Answer</summary>
# After "q", top-k keeps nine characters that are almost surely wrong. At the beginning of a word, it leaves
# out good characters.
# </details>

# %%
before = ranked.cumsum(-1) - ranked  # (B, T, V)
sizes = (before < 0.9).sum(-1)  # (B, T) the tokens that top-p keeps
shares = [(sizes <= 3).mean(), (sizes > 10).mean()]
print(f"at most three: {shares[0]:.0%} of the positions, more than ten: {shares[1]:.0%}")

# %% tags=["check"]
assert min(shares) > 0.05
after_q = model.forward(np.array([codec.encode("The q")]))[0][:, -1]  # (1, V)
assert codec.tokens[after_q.argmax()] == "u"
assert np.count_nonzero(token_probabilities(after_q, top_p=0.9)) <= 3

# %%
for settings in ({"top_k": 5}, {"top_p": 0.9}):
    print(f"--- {settings}\n{write(120, seed=0, **settings)}")

# %% [markdown]
# ## Batches and seeds
#
# The command `npformer generate` has these settings as options: `--temperature`, `--top-k`, `--top-p` and
# `--seed`. The same seed gives the same text again. Several prompts can be continued at once, because the
# draws of the rows of a batch do not depend on each other.

# %% tags=["check"]
assert write(50, seed=3) == write(50, seed=3) != write(50, seed=4)
assert write(50, seed=3, top_k=1) == write(50)
several = list(sample_ids(model, [prompt] * 3, 20, rng=np.random.default_rng(0)))
assert len(several) == 20
assert several[0].shape == (3,)
print("the same seed gives the same text")

# %% [markdown]
# **In 2025**, programs combine these settings. The makers of Qwen3, for example, recommend for its thinking
# mode the temperature .6, top-p .95 and top-k 20.

# %% [markdown]
# ## Summary
#
# - Greedy search repeats itself in free text, because frequent words are the most probable ones almost
#   everywhere.
# - Sampling draws each token with its predicted probability; one uniform random number is enough.
# - A temperature below 1 makes probable tokens more probable, and a temperature above 1 makes all tokens more
#   equally probable.
# - A token from the tail of improbable tokens is drawn surprisingly often, since the tail has many tokens.
# - Top-k keeps a fixed number of tokens; top-p keeps fewer where the model is certain.

# %% [markdown]
# ## Questions
#
# **Question.** Does a temperature change which token is the most probable one? Does top-p?
#
# <details><summary>Answer</summary>
# No, neither of them does. A temperature divides all logits by a positive number, so their order stays the
# same. Top-p always keeps the most probable token.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 24` lists the exercises of this chapter.
#
# - `npformer exercise start temperature`: compute the probabilities of a temperature.
# - `npformer exercise start nucleus`: keep the most probable tokens of top-p sampling.
# - Which settings of temperature, top-k and top-p change nothing?
#
# **Next**: lesson 24.3 (`24_3_from_2017_to_llama`), which measures what each change since 2017 does.

# %% [markdown]
# # 22.3 · BLEU
#
# *About 30 minutes. You need: nothing but Python.*
#
# **After this lesson you can**
#
# - compute the BLEU score of translations from their n-grams;
# - explain clipping and the brevity penalty, and what goes wrong without them;
# - say what a score means, and what it does not mean.
#
# `decoding: encoder → decoder → softmax → search → [TRANSLATION]`

# %%
import math
from collections import Counter

import numpy as np
from numpy.testing import assert_allclose

from npformer import UserError
from npformer.generation.bleu import bleu as package_bleu
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.plots import cell_grid

# %% [markdown]
# ## Why a score?
#
# How good is a translation? A person can judge it, but not a thousand translations after every training. So
# we need a number that a program can compute. **BLEU** (Papineni et al., 2002) compares a translation with
# a **reference**, a translation of the same sentence by a person. It counts the words and the sequences of
# words that both have in common.
#
# A sequence of $n$ adjacent words is called an **n-gram**. The sentence "the dog sleeps" has three 1-grams,
# two 2-grams ("the dog" and "dog sleeps") and one 3-gram.
#
# **Question.** How many 4-grams does a sentence of eight words have?
#
# <details><summary>Answer</summary>
# Five. They begin at the words 1 to 5.
# </details>

# %% [markdown]
# ## The definition
#
# For each $n$ from 1 to 4, the **precision** $p_n$ is the share of the n-grams of the translations that
# also occur in the references. Numerator and denominator are summed over the whole test set:
#
# $$p_n = \frac{m_n}{t_n}$$
#
# Here $m_n$ is the number of matching n-grams, and $t_n$ is the number of all n-grams in the translations.
#
# An n-gram counts as a match **at most as often as it occurs in the reference**. This is called
# **clipping**. Without it, the translation "the the the" would have $p_1 = 1$ for every reference that
# contains "the".
#
# Let $c$ be the number of words in all translations, and $r$ that in all references. The score is
#
# $$\mathrm{BLEU} = 100 \cdot \min(1, e^{1 - r/c}) \cdot (p_1\, p_2\, p_3\, p_4)^{1/4}$$
#
# The second factor is called the **brevity penalty**. It is less than 1 if the translations are shorter
# than the references.

# %% [markdown]
# **Question.** What would happen without the brevity penalty?
#
# <details><summary>Answer</summary>
# A system could write only those words that it is sure of. Then all precisions would be close to 1,
# although most of the sentence is missing. The precisions do not contain the words that are missing.
# </details>
#
# The last factor is the **geometric mean** of the four precisions. If one of them is 0, the score is 0.

# %% tags=["plot"]
figure = shape_flow(
    "n_grams p geometric bleu \n c_and_r . penalty .",
    {
        "p": "clipped matches: n_grams",
        "geometric": "mean: p",
        "penalty": "brevity: c_and_r",
        "bleu": "product: geometric penalty",
    },
    {
        "n_grams": "1 n",
        "c_and_r": "2",
        "p": "1 n",
        "geometric": "1",
        "penalty": "1",
        "bleu": "1",
    },
)
caption = "BLEU: four precisions, and a penalty for translations that are too short"
show_figure(figure, "22_3_shapes", caption)

# %%


def precisions(translations, references):
    """Return p_1 to p_4 and the brevity penalty, for lines with spaces between their words."""
    matches, total, c, r = np.zeros(4), np.zeros(4), 0, 0
    for found, right in zip(translations, references, strict=True):
        found, right = found.split(), right.split()
        c, r = c + len(found), r + len(right)
        for n in range(4):
            ours, theirs = (
                Counter(tuple(words[i : i + n + 1]) for i in range(len(words) - n))
                for words in (found, right)
            )
            matches[n] += (ours & theirs).total()  # & takes the smaller one of the two counts
            total[n] += ours.total()
    return matches / np.maximum(total, 1), min(1, math.exp(1 - r / c))


def bleu(translations, references):
    """Return the score, from 0 to 100."""
    p, brevity = precisions(translations, references)
    return 100 * brevity * math.exp(np.log(p).mean()) if p.all() else 0.0


# %% [markdown]
# ## Examples
#
# The test set has two sentences. In each example only the translation of the first one differs from the
# reference.
#
# **Question.** Which of these mistakes do you expect to cost most?
#
# <details><summary>Answer</summary>
# Run the cell. The missing words cost most here.
# </details>

# %%
right = ["the dog sleeps in front of the house", "she has never seen a goose"]
examples = {
    "the reference": right,
    "one word is different": ["the cat sleeps in front of the house", right[1]],
    "a word is repeated": ["the the the dog sleeps in front of the house", right[1]],
    "too short": ["the dog sleeps in front", right[1]],
    "another order": ["in front of the house the dog sleeps", right[1]],
}
rows = []
for name, found in examples.items():
    p, brevity = precisions(found, right)
    rows.append([*p, brevity])
    shown = " ".join(f"{x:.2f}" for x in p)
    score = bleu(found, right)
    print(f"{name:22} p = {shown}   brevity penalty {brevity:.2f}   BLEU {score:6.2f}")

# %% tags=["check"]
scores = {name: bleu(found, right) for name, found in examples.items()}
assert scores["the reference"] == 100
assert min(scores, key=scores.get) == "too short"
assert_allclose(list(scores.values()), [100, 82.55, 84.09, 76.13, 82.28], atol=0.005)

# %% tags=["plot"]
columns = ["p₁", "p₂", "p₃", "p₄", "brevity"]
style = {"columns": columns, "numbers": True, "shade": True}
figure = cell_grid(np.array(rows), rows=list(examples), **style)
show_figure(figure, "22_bleu", "Precisions and brevity penalty of five translations")

# %% [markdown]
# One different word reduces all four precisions, because it is part of several n-grams. A different order
# of the words does not change $p_1$, but it reduces the others. The translation that is too short has
# perfect precisions, and only the brevity penalty reduces its score.

# %% [markdown]
# ## Signatures
#
# The usual program for BLEU is **sacrebleu**. It prints a **signature** with each score, which says how it
# was computed. The cell compares our scores with those of sacrebleu, if it is installed.

# %%
try:
    for found in examples.values():
        assert_allclose(bleu(found, right), package_bleu(found, right, "tokenised").score)
    print(package_bleu(right, right, "tokenised").signature)
except UserError as error:
    print(error)

# %% [markdown]
# The part `tok:none` says that the text was already tokenized (lesson 22.1, `22_1_byte_pair_encoding`), and
# `case:mixed` says that capital letters are distinguished from small ones. The part `smooth:exp` says that a
# precision of 0 is replaced by a small number, so that the score is not 0. On raw text, or with another
# tokenization, the same translations get another score. So scores can be compared only if their signatures
# agree.
#
# BLEU also has a limit that no signature shows. It compares words and not meanings. A better translation
# with other words than the reference gets a lower score.

# %% [markdown]
# ## What the source documents say
#
# > - None of the four documents mentions BLEU. *图解transformer* ends with the probabilities of the trained
# >   model. How to choose among trained models is not explained in any of them.

# %% [markdown]
# ## Summary
#
# - BLEU compares n-grams of translations and references, for n from 1 to 4.
# - Clipping: an n-gram matches at most as often as it occurs in the reference.
# - The score is the geometric mean of four precisions, times the brevity penalty.
# - All counts are summed over the test set before they are divided.
# - Scores are comparable only with the same signature, and they do not measure meaning.

# %% [markdown]
# ## Questions
#
# **Question.** A translation of 8 words has four precisions of 1, and its reference has 10 words. What is
# its score?
#
# <details><summary>Answer</summary>
# Only the brevity penalty counts: 100 exp(1 − 10/8) = 100 exp(−1/4) = 78.
# </details>
#
# **Question.** Is BLEU the mean of the scores of the sentences?
#
# <details><summary>Answer</summary>
# No. The matches and the n-grams are summed over all sentences first. A short sentence without a matching
# 4-gram would have the score 0, but in the sum it only reduces the precision a little.
# </details>

# %% tags=["check"]
assert round(100 * math.exp(1 - 10 / 8)) == 78

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 22` lists the exercises of this chapter. They are graded against the
# results of the package.
#
# - `npformer exercise start bleu`: compute BLEU from sums over the whole test set, with the brevity penalty.
# - In the terminal, try `!bleu(["a b c d"], ["a b c d e"])`. Compute the result by hand first.
#
# **Next**: lesson 22.4 (`22_4_learning_rate_decay_and_checkpoint_averaging`), which trains a model and
# measures its score during the training.

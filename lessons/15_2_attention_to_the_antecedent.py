# %% [markdown]
# # 15.2 · How often a head attends to the antecedent
#
# *About 35 minutes. You need: the logit difference and the six kinds of tokens (lesson 15.1,
# `15_1_tokens_that_heads_attend_to`).*
#
# **After this lesson you can**
#
# - count how often a head gives its largest weight to the antecedent;
# - compare this number with two baselines, and say which of them a head has to exceed;
# - examine a statement about attention weights on many sentences instead of one.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from threadpoolctl import threadpool_limits

from npformer.data.corpus import builtin_corpus
from npformer.learn.course import show_figure
from npformer.learn.course.ambiguous import (
    ambiguous_sentences,
    as_batch,
    attention_parts,
    kinds_of_tokens,
    weights_of_queries,
)
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import trained
from npformer.plots import attention_map, probability_bars
from npformer.pretrained import Translator

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16.3

# %% [markdown]
# ## From one sentence to a hundred
#
# In lesson 15.1 you averaged attention weights over a hundred sentences. This lesson counts sentences. A
# sentence is a **hit** of a head if the largest weight of the query is the weight of the antecedent. The
# **hit rate** of a head is the share of the sentences that are hits.
#
# The picture shows the computation for one head. The query is "it" in the encoder. In the cross-attention, it
# is the position that predicts "il" or "elle".

# %% tags=["plot"]
figure = shape_flow(
    "weights token hit rate",
    {"token": "argmax: weights", "hit": "antecedent?: token", "rate": "mean: hit"},
    {"weights": "B S", "token": "1 B", "hit": "1 B", "rate": "1"},
)
show_figure(
    figure,
    "15_2_shapes",
    "The hit rate of a head: the share of sentences whose largest weight is at the antecedent",
)

# %% [markdown]
# The first cell loads the model of lesson 13.5 (`13_5_training_a_translator`) and runs it on the sentences.
# If this folder has no such model, it is trained first.

# %%
translator = Translator.from_checkpoint(trained())
model = translator.model

it = ambiguous_sentences(translator, "it", 100)
logits, passed = model.forward(it.batch.source, it.batch.target_in)  # (B, T, V)
accuracy = (it.logit_differences(logits) > 0).mean()
weights = weights_of_queries(it, passed)  # (where, layer, head) -> (B, S)
kinds = kinds_of_tokens(it)  # (B, S), 0 is the antecedent
print(f"{len(weights)} heads, {len(it.pairs)} sentences; the model is right in {accuracy:.1%}")

# %% [markdown]
# ## Hit rates and baselines
#
# Is a hit rate of 40 % high or low? To answer this, we need baselines. We use two:
#
# - **Random token.** A head that chooses a token at random has a hit rate of 1 / (number of tokens).
# - **Fixed position.** In all our sentences a noun stands two words before "it": the place, such as "street".
#   A head that always attends to this position needs no knowledge about the sentence. Its hit rate is the
#   share of sentences in which the place is the antecedent.

# %%
hits = {head: kinds[it.rows, w.argmax(-1)] == 0 for head, w in weights.items()}  # each (B,)
rates = {head: found.mean() for head, found in hits.items()}

random_token = np.mean([1 / (len(pair.english.split()) + 1) for pair in it.pairs])
is_place = np.array([p.reference.antecedent == p.reference.word - 2 for p in it.pairs])  # (B,)
fixed_position = is_place.mean()
print(f"hit rates: random token {random_token:.0%}, fixed position {fixed_position:.0%}")

# %% tags=["plot"]
names = [f"{where} {layer}.{head}" for where, layer, head in rates]
figure = probability_bars(
    np.array([*rates.values(), random_token, fixed_position]),
    [*names, "random token", "fixed position"],
)
caption = "How often the largest weight is that of the antecedent: each head, and two baselines"
show_figure(figure, "15_antecedent", caption)

# %% tags=["check"]
assert 0.05 < random_token < 0.15
assert 0.4 < fixed_position < 0.6
assert max(rates.values()) > 2 * random_token

# %% [markdown]
# The check asserts that the best head has more than twice the hit rate of a random token. Is this head better
# than a fixed position, too?
#
# The hit rate alone cannot answer this. So the next cell divides the sentences into two groups. In the
# first one the antecedent is the place, as in "the street … too wide". In the second one it is the other
# noun, as in "the animal … too tired". We call this noun the **moving** noun, because it is an animal or a
# machine.

# %%
best = {}
for where in ("encoder", "cross"):
    best[where] = max((head for head in rates if head[0] == where), key=rates.get)
print("hit rate of the best head     all   antecedent is the place   is the moving noun")
for where, head in best.items():
    place, moving = hits[head][is_place].mean(), hits[head][~is_place].mean()
    name = f"{where}, layer {head[1]}, head {head[2]}"
    print(f"{name:26} {rates[head]:6.0%}   {place:23.0%}   {moving:18.0%}")
print(f"{'fixed position':26} {fixed_position:6.0%}   {1:23.0%}   {0:18.0%}")

# %% [markdown]
# **Question.** A head has a hit rate of 100 % in the first group and of 0 % in the second one. Does it find
# the antecedent?
#
# <details><summary>Answer</summary>
# No. It attends to the place in all sentences, like the fixed position. A head that finds the antecedent must
# have a high hit rate in both groups.
# </details>
#
# Three remarks are important for the interpretation of these numbers:
#
# - A hit rate is not an accuracy: the model can also use a weight that is not the largest one.
# - We chose the best of 16 heads on these very sentences, so its hit rate is high partly by chance.
# - The result belongs to one model. With another seed, other heads attend to the antecedent, or none does.
#   Even with the same seed, rounding on another machine may lead to different heads.

# %% [markdown]
# ## The example of the source documents
#
# What does the head with the highest hit rate do in the two sentences of the source documents, which
# differ in one word? The cell also prints the difference of the two logits, "il" − "elle", for each sentence.

# %%
example = "the animal didn't cross the street because it was too"
held_out = {pair.english: pair for pair in builtin_corpus().new_words}
two = as_batch(translator, [held_out[f"{example} tired"], held_out[f"{example} wide"]])
two_logits, two_passed = model.forward(two.batch.source, two.batch.target_in)  # (2, T, V)

il, elle = (translator.codec.target.encode(word)[0] for word in ("il", "elle"))
at_answer = two_logits[two.rows, two.answer]  # (2, V)
gaps = at_answer[:, il] - at_answer[:, elle]  # (2,)
for pair, gap in zip(two.pairs, gaps, strict=True):
    print(f"... {pair.english.split()[-1]:5}   il − elle = {gap:+.1f}   {pair.french}")

best_head = max(rates, key=rates.get)
two_weights = weights_of_queries(two, two_passed)[best_head]  # (2, S)

# %% tags=["check"]
assert gaps[0] > 0 > gaps[1]

# %% tags=["plot"]
keys = [*example.split(), "tired/wide", "</S>"]
figure = attention_map(two_weights, ["... tired", "... wide"], keys, numbers=True)
caption = f"{best_head[0]}, layer {best_head[1]}, head {best_head[2]}, in two sentences"
show_figure(figure, "15_two", caption)

# %% [markdown]
# The difference is positive for "tired" and negative for "wide", so the model chooses the right pronoun in
# both sentences. Compare the two rows of the figure. Does the head attend to "animal" in the first row and to
# "street" in the second one?
#
# If you had seen only one of the rows, you might have drawn a conclusion that the other row contradicts. This
# is why we count.

# %% [markdown]
# ## And "bank"?
#
# For "bank" there is no antecedent. Other words decide between "rive" and "banque", for example "river",
# "money" or "fisherman". The corpus marks these **deciding words** in each sentence. We count how often the
# largest weight of a head is on one of them.

# %%
bank = ambiguous_sentences(translator, "bank", 200)
_, bank_passed = model.forward(bank.batch.source, bank.batch.target_in)
deciding = [set(pair.reference.deciders) for pair in bank.pairs]

bank_rates = {}
for head, w in weights_of_queries(bank, bank_passed).items():
    found = [token in words for token, words in zip(w.argmax(-1), deciding, strict=True)]
    bank_rates[head] = np.mean(found)
where, layer, head = best_bank = max(bank_rates, key=bank_rates.get)
print(f"{where}, layer {layer}, head {head}: {bank_rates[best_bank]:.0%} on a deciding word")

lengths = [len(pair.english.split()) + 1 for pair in bank.pairs]  # </S> is the last token
by_chance = np.mean([len(d) / length for d, length in zip(deciding, lengths, strict=True)])
fixed = {}
for away in range(-8, 9):
    found = [word + away in words for word, words in zip(bank.word, deciding, strict=True)]
    fixed[away] = np.mean(found)
away = max(fixed, key=fixed.get)
print(f"random token: {by_chance:.0%}; always the token {away:+} from bank: {fixed[away]:.0%}")

# %% tags=["check"]
assert bank_rates[best_bank] > 0.4
assert (f"{by_chance:.0%}", f"{fixed[away]:.0%}", away) == ("9%", "32%", 3)

# %% [markdown]
# When we ran this lesson, the best head attended most to a deciding word in 87 % of the sentences. A random
# token is a deciding word in 9 %, and the token three places after "bank" in 32 %. So the position alone does
# not explain the hit rate. This supports the statement of *Attention机制详解（二）* that "river" has a high
# score for "bank".
#
# ## Does a token attend most to itself?
#
# The same document says that it is obvious that the score of a token with itself is usually the largest. For
# vectors $x$ of equal length this is true: their dot product $x \cdot x$ is larger than any other one. But
# attention compares a query with a key, and both have a weight matrix of their own:
#
# $$\mathrm{score} = \frac{q \cdot k}{\sqrt{d_k}}, \qquad q = x W^Q, \qquad k = x W^K$$
#
# So the statement needs a measurement. The cell takes all queries in the encoder that are not padding.

# %%
real = it.batch.source != model.config.pad_id  # (B, S)
largest = np.stack(
    [part.attention.weights.argmax(-1) for part in attention_parts(passed)["encoder"]]
)  # (L, B, H, S) the token with the largest weight, for each query
is_itself = largest == np.arange(real.shape[1])  # (L, B, H, S)
share_itself = is_itself.swapaxes(2, 3)[:, real].mean()
print(f"largest weight at the token itself: {share_itself:.0%} of the encoder's rows")

# %% tags=["check"]
assert share_itself < 0.5

# %% [markdown]
# This is less than half of the rows. The matrices $W^Q$ and $W^K$ are learned. They can give a high score to
# tokens that are related in any way, and not only to tokens that are equal.
#
# **Question.** Let all vectors $x$ have the same length. With which matrices $W^Q$ and $W^K$ would the score
# of a token with itself always be the largest?
#
# <details><summary>Answer</summary>
# For example with $W^Q = W^K = I$. Then the score is proportional to the dot product of two vectors $x$. For
# vectors of the same length, it is largest if both are the same vector.
# </details>

# %% [markdown]
# ## What the source documents say
#
# > - *图解transformer* shows "it" in the encoder of a model with six layers and eight heads. The model
# >   (tensor2tensor's) was trained on millions of sentences. The document concludes that the head has
# >   connected "it" and "the animal". One sentence, with a head that was chosen for it, shows that a head can
# >   attend to the antecedent. We found the best head by counting, and it may also be in the
# >   cross-attention. The lesson prints its hit rate beside those of the baselines.
# > - *Attention机制详解（二）*: the high score of "river" for "bank" is confirmed. One head attends most to a
# >   deciding word in more sentences than the best fixed position, 32 %. It is not confirmed that the score
# >   of a token with itself is usually the largest: this holds in fewer than half of the rows.
# > - The paper says that heads "exhibit behavior". This is a careful statement about attention weights. Since
# >   then, researchers have disagreed whether attention weights explain what a model does (Jain and Wallace,
# >   2019; Wiegreffe and Pinter, 2019). Lessons 15.3 (`15_3_head_ablation`) and 15.4
# >   (`15_4_gradient_times_input`) examine this question.

# %% [markdown]
# ## Summary
#
# - A hit is a sentence in which the largest weight of the query is the weight of the antecedent.
# - A hit rate needs baselines: a random token, and a fixed position, which is right in half of the sentences.
# - A head finds the antecedent only if its hit rate is high for both kinds of antecedents.
# - For "bank", one head attends most to a deciding word in more sentences than any fixed position does.
# - In the encoder, fewer than half of the queries give the largest weight to their own token.

# %% [markdown]
# ## Questions
#
# **Question.** You choose the best of 16 heads on 100 sentences, and it has a hit rate of 60 %. How would you
# find out which part of this is chance?
#
# <details><summary>Answer</summary>
# Measure the same head on other sentences, which were not used for the choice. The built-in corpus has a
# second held-out part for this, `builtin_corpus().new_frames`.
# </details>
#
# **Question.** A head attends most to the adjective in every sentence. Its hit rate is 0. Is it useless for
# the choice of the pronoun?
#
# <details><summary>Answer</summary>
# No. The adjective decides which noun is the antecedent, so the head may transport necessary information. Hit
# rates do not show what the model needs.
# </details>

# %% [markdown]
# ## Exercises
#
# The exercises of this chapter (`npformer exercise list 15`) belong to its last three lessons. Try these in
# the terminal:
#
# - Print the three best heads: `!sorted(rates.items(), key=lambda item: -item[1])[:3]`.
# - To which tokens do the heads attend for "bank" if the deciding words are replaced by `<UNK>`? Lesson 15.3
#   (`15_3_head_ablation`) shows how to replace words.
#
# **Next**: lesson 15.3 (`15_3_head_ablation`) removes heads and measures whether the model needs them.

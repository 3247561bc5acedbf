# %% [markdown]
# # 15.1 · Which tokens the heads attend to
#
# *About 35 minutes. You need: attention weights (lesson 5.1, `05_1_scaled_dot_product_attention`), several
# heads (chapter 7), cross-attention (chapter 11), the trained translator (lesson 13.5,
# `13_5_training_a_translator`).*
#
# **After this lesson you can**
#
# - measure with one number whether a model knows what a pronoun refers to;
# - read the attention weights of one query from the cache of a trained model;
# - average these weights over many sentences, and describe each head by the tokens that it attends to.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.data import make_batch
from npformer.data.corpus import builtin_corpus
from npformer.data.corpus.ambiguous_it import NUMBERS
from npformer.data.corpus.lexicon import ANIMALS, GROUNDS, MACHINES
from npformer.learn.course import show_figure
from npformer.learn.course.ambiguous import ambiguous_sentences, attention_parts, kinds_of_tokens
from npformer.learn.course.shapes import shape_flow
from npformer.learn.course.trained import trained
from npformer.plots import attention_map
from npformer.pretrained import Translator
from npformer.training import Validated

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: lesson 16.3

# %% [markdown]
# ## An ambiguous word
#
# Read this sentence: "The animal didn't cross the street because it was too tired." The pronoun "it" refers
# to the animal. The noun that a pronoun refers to is called its **antecedent**. If the last word is "wide"
# instead of "tired", the antecedent is the street.
#
# English has one pronoun for both cases. French has two: "il" for "animal", which is masculine, and "elle"
# for "rue" (street), which is feminine. So a translator into French must know the antecedent.
#
# Does the small translator of lesson 13.5 know it? The function `trained` returns the training run of that
# lesson if it is in this folder. If there is no such model in the folder, the cell trains it now, which takes
# about a minute.

# %%


def print_progress(event):
    """Print one line for each validation, if the model has to be trained first."""
    if isinstance(event, Validated):
        print(f"step {event.step:5}   loss {event.loss:.3f}   accuracy {event.accuracy:.1%}")


checkpoint = trained(report=print_progress)
translator = Translator.from_checkpoint(checkpoint)
example = "the animal didn't cross the street because it was too"
for sentence in translator.translate([f"{example} tired", f"{example} wide"], beam=1):
    print(sentence)

# %% [markdown]
# The training contained neither of the two sentences, and yet the pronouns are right. How does the model know
# them? The first four lessons of this chapter ask three questions:
#
# 1. To which tokens do the heads attend? (this lesson)
# 2. How often does a head attend to the antecedent? (lesson 15.2, `15_2_attention_to_the_antecedent`)
# 3. Does the model need this head? (lesson 15.3, `15_3_head_ablation`, and lesson 15.4,
#    `15_4_gradient_times_input`)
#
# The picture shows where we measure. There are B sentences with S source tokens and T target tokens, and V is
# the size of the target vocabulary. The difference δ at the end is explained below.

# %% tags=["plot"]
figure = shape_flow(
    "source memory logits δ \n . target . .",
    {
        "memory": "encoder: source",
        "logits": "decoder: memory target",
        "δ": "right − wrong: logits",
    },
    {"source": "B S", "target": "B T", "memory": "S D", "logits": "T V", "δ": "B"},
)
show_figure(
    figure,
    "15_1_shapes",
    "The weights of circle 1 (self-attention) and of circle 2 (cross-attention) are measured",
)

# %% tags=["check"]
translations = translator.translate([f"{example} tired", f"{example} wide"], beam=1)
assert "qu'il" in translations[0]
assert "qu'elle" in translations[1]
assert not {f"{example} tired", f"{example} wide"} & {p.english for p in builtin_corpus().train}

# %% [markdown]
# ## The passages
#
# *Attention Is All You Need* says in section 4:
#
# > Not only do individual attention heads clearly learn to perform different tasks, many appear to exhibit
# > behavior related to the syntactic and semantic structure of the sentences.
#
# *图解transformer* shows this with our sentence. It draws the attention weights of the fifth of six encoder
# layers for the query of "it". One head gives most of its weight to "the animal", and another to "tired".
#
# *Attention机制详解（二）* has another example, "I arrived at the bank after crossing the river". It says
# that "river" has a high score when "bank" is translated. In French, "bank" is "rive" beside a river, and
# "banque" where the money is.
#
# Each document shows one sentence and the heads that support its statement. We measure all heads on a hundred
# sentences instead.

# %%
model, (source, target) = translator.model, translator.codec
H = model.config.n_heads
print(f"encoder and decoder: {model.config.n_layers} layers each, {H} heads in each attention")

# %% [markdown]
# ## A hundred sentences like the example
#
# The corpus contains a **held-out** part: sentences that the training never used. For each pair with an
# ambiguous word, the corpus also stores a `reference`. It says where the ambiguous word is, which noun is its
# antecedent, and which French word is right.
#
# We want sentences that are built like the example. So the place (such as "street") must come two words
# before "it", and both nouns must be singular. We take the first hundred of these sentences.

# %%


def is_like_the_example(pair):
    """Return True if the place is two words before *it*, and both nouns are singular."""
    words, position = pair.english.split(), pair.reference.word
    singular = not set(NUMBERS) & set(pair.constructions)
    return singular and position > 2 and words[position - 2] in GROUNDS


held_out = [pair for pair in builtin_corpus().new_words if pair.family == "it"]
pairs = [pair for pair in held_out if is_like_the_example(pair)][:100]
references = [pair.reference for pair in pairs]
for pair in pairs[:2]:
    print(pair.english, pair.french, f"right: {pair.reference.right}", sep="\n    ")

# %% [markdown]
# ## Does the model know the antecedent?
#
# Now we need a number that says whether the model knows the antecedent. We give the decoder the correct
# French tokens up to the pronoun (teacher forcing, chapter 11). At the position that predicts the pronoun, we
# compare the logits of "il" and "elle". Their difference is the **logit difference**:
#
# $$\delta = \operatorname{logit}(\mathrm{right\ word}) - \operatorname{logit}(\mathrm{wrong\ word})$$
#
# The model prefers the right word if $\delta > 0$. The logit difference is also the logarithm of the ratio of
# the two probabilities, because both have the same denominator in the softmax:
#
# $$\log \frac{p(\mathrm{right})}{p(\mathrm{wrong})} = \delta$$
#
# For comparison, we need a **baseline**, which is a simple method without any knowledge of the sentence. Ours
# always answers with the more frequent pronoun.

# %%
batch = make_batch([(source.encode(p.english), target.encode(p.french)) for p in pairs])
rows = np.arange(len(pairs))  # (B,)
answer = np.array([r.answer for r in references])  # (B,) the position that predicts il or elle
right = np.array([target.encode(r.right)[0] for r in references])  # (B,) ids
wrong = np.array([target.encode(r.wrong)[0] for r in references])  # (B,)

logits, passed = model.forward(batch.source, batch.target_in)  # (B, T, V)
delta = logits[rows, answer, right] - logits[rows, answer, wrong]  # (B,)
accuracy = (delta > 0).mean()
baseline = max(np.bincount(right)) / len(pairs)
print(f"it: δ > 0 in {accuracy:.1%} of {len(pairs)} sentences; baseline {baseline:.1%}")

# %% [markdown]
# The next cell repeats the measurement for "bank". There the two words are "rive" and "banque". The later
# lessons need the same arrays again, so the package contains them. `ambiguous_sentences` returns the batch
# and the positions. The method `logit_differences` of the result computes δ.

# %%
bank = ambiguous_sentences(translator, "bank", 200)
bank_logits, _ = model.forward(bank.batch.source, bank.batch.target_in)  # (B, T, V)
bank_accuracy = (bank.logit_differences(bank_logits) > 0).mean()
print(f"bank: δ > 0 in {bank_accuracy:.1%} of {len(bank.pairs)} sentences")

# %% tags=["check"]
assert accuracy > 0.85 > 0.6 > baseline
assert bank_accuracy > 0.85
it = ambiguous_sentences(translator, "it", 100)
assert it.pairs == pairs
assert_allclose(it.logit_differences(logits), delta)

# %% [markdown]
# The check requires more than 85 % in both cases, where the baseline for "it" stays below 60 %. So the model
# uses something in the sentence. Which tokens does it use?
#
# **Question.** In one sentence δ is 0.1, in another one it is 5. In both, the model is right. What is the
# difference?
#
# <details><summary>Answer</summary>
# In the first sentence the right word is only exp(0.1) ≈ 1.1 times as probable as the wrong one. In the
# second, it is exp(5) ≈ 148 times as probable. So δ also measures how sure the model is.
# </details>

# %% [markdown]
# ## The attention weights in the cache
#
# There are two places where we can look for the antecedent:
#
# - In the **encoder**, the token "it" is a query. Its new vector may contain information from the antecedent.
# - In the **decoder**, the position that predicts "il" is a query of the cross-attention. It may take
#   information directly from the antecedent in the encoder's output.
#
# The forward pass stores the attention weights in the cache, because the backward pass needs them. This is
# the cache of the last cross-attention.

# %%
cache = passed.decoder.layers[-1].cross.attention
show(cache)

# %% [markdown]
# The array `weights` has the shape (B, H, T, S): sentence, head, target position, source token. We need one
# row for each sentence and each head, the row of the query that we ask about. The cell collects these rows
# for all heads in the encoder and in the cross-attention. There are 16 of them. `attention_parts` returns the
# parts of a cache (or of a model) as lists, one entry for each layer.

# %%
word = np.array([r.word for r in references])  # (B,) the position of "it" in the source
weights = {}  # (where, layer, head) -> (B, S)
for where, queries in (("encoder", word), ("cross", answer)):
    for layer, part in enumerate(attention_parts(passed)[where]):
        for head in range(H):
            weights[where, layer, head] = part.attention.weights[rows, head, queries]
print(len(weights), "heads; the weights of one:", weights["cross", 1, 0].shape)

# %% [markdown]
# ## Six kinds of tokens
#
# The sentences have different words, so we cannot average the weights word by word. We divide the tokens of
# each sentence into six kinds instead:
#
# | kind | in the example |
# |---|---|
# | antecedent | "animal" |
# | other noun | "street" |
# | adjective, which decides between the nouns | "tired" |
# | it | "it" |
# | end symbol | `</S>` |
# | other | all other tokens |

# %%
kind_names = ["antecedent", "other noun", "adjective", "it", "</S>", "other"]
kinds = np.full(batch.source.shape, 5)  # (B, S), first everything is "other"
for row, (pair, r) in enumerate(zip(pairs, references, strict=True)):
    words = pair.english.split()
    moving = next(i for i, w in enumerate(words) if w in ANIMALS or w in MACHINES)
    place = r.word - 2
    kinds[row, place if r.antecedent == moving else moving] = 1
    kinds[row, r.antecedent] = 0
    kinds[row, r.deciders] = 2
    kinds[row, r.word] = 3
    kinds[row, len(words)] = 4

# %% [markdown]
# For each head, we add the weights of the tokens of one kind, and take the mean over the sentences. Let
# $p_s$ be the weight of token $s$:
#
# $$\mathrm{share} = \frac{1}{B} \sum_{\mathrm{sentences}} \sum_{s\ \mathrm{of\ this\ kind}} p_s$$
#
# The weights of a query sum to 1, and padding has the weight 0. So the six shares of a head also sum to 1.

# %%
names = [f"{where} {layer}.{head}" for where, layer, head in weights]
shares = np.array(
    [[(w * (kinds == kind)).sum(-1).mean() for kind in range(6)] for w in weights.values()]
)  # (16, 6)

# %% tags=["check"]
assert_allclose(shares.sum(-1), 1, rtol=1e-5)
assert (kinds == kinds_of_tokens(it)).all()  # the same function is in the package
assert all((kinds == kind).sum() == len(pairs) for kind in range(5))  # one of each per sentence

# %% tags=["plot"]
figure = attention_map(shares, names, kind_names, numbers=True)
caption = "The share of each kind of token in the weights of each head, mean of 100 sentences"
show_figure(figure, "15_kinds", caption)

# %% [markdown]
# In the figure, `cross 1.2` means the cross-attention of layer 1, head 2. All numbers begin at 0.
#
# Compare the rows of the heads of one layer. Do they attend to the same tokens?
#
# The cell finds, for each kind of token, the head with the largest share. Beside it stands the smallest share
# among the heads of the same layer.

# %%
for kind, (share, number) in enumerate(zip(shares.max(0), shares.argmax(0), strict=True)):
    first = number // H * H  # the first head of the same layer
    smallest = shares[first : first + H, kind].min()
    print(f"{kind_names[kind]:11} largest share {share:.2f}, {names[number]}", end="")
    print(f"; smallest in the same layer {smallest:.2f}")

# %% tags=["check"]
for kind, number in enumerate(shares.argmax(0)):
    layer_shares = shares[number // H * H :][:H, kind]
    assert layer_shares.max() > 0.15
    assert layer_shares.max() - layer_shares.min() > 0.1

# %% [markdown]
# So the heads of one layer divide the tokens among them. This agrees with the sentence of the paper that
# heads "learn to perform different tasks".
#
# But a mean of weights has a limit. A head with the mean share .5 may give the weight .5 to the antecedent in
# every sentence. It may also give the weight 1 in half of the sentences, and 0 in the other half. Lesson 15.2
# therefore counts sentences.
#
# **Your turn.** In the terminal, print the shares of one head with
# `!dict(zip(kind_names, shares[0].round(2)))`. Choose the head that you find most interesting, and describe
# it in one sentence.

# %% [markdown]
# ## Summary
#
# - The antecedent of a pronoun decides between "il" and "elle", so a translator must know it.
# - The logit difference δ is logit(right word) − logit(wrong word); the model is right where δ > 0.
# - The trained model is right far more often than the baseline that always gives the more frequent pronoun.
# - The cache of the forward pass contains the attention weights of every query and every head.
# - Averaged over many sentences, the heads of one layer attend to different kinds of tokens.

# %% [markdown]
# ## Questions
#
# **Question.** Why do we measure on held-out sentences and not on sentences of the training?
#
# <details><summary>Answer</summary>
# In training the model may have stored single pairs of words, such as this animal with this adjective. In the
# held-out sentences these pairs are new, so it has to combine what it knows about each word.
# </details>
#
# **Question.** The logits of "il" and "elle" are 3 and 1, and the logit of "la" is 4. Is the model right
# according to δ, if "il" is the right word? Which token would greedy search choose?
#
# <details><summary>Answer</summary>
# δ = 2 > 0, so the model prefers the right pronoun. Greedy search would choose "la". The logit difference
# compares only the two words that we ask about.
# </details>

# %% [markdown]
# ## Exercises
#
# The exercises of this chapter (`npformer exercise list 15`) belong to its last three lessons. Most
# questions of this lesson have no known answers by which they could be graded. Here are some for paper and
# for the terminal:
#
# - By hand: what is the ratio of the probabilities of "il" and "elle" for δ = log 4?
# - In a shell, look at one sentence of your own:
#   `npformer attention --model runs/lesson13 --kind cross "the dog is tired"`.
# - A model with another seed has other heads. Train one with
#   `npformer train --set norm=post --set final_norm=False --seed 5 --run runs/mine`.
# - See all heads of the translator that ships: run `npformer explore --model en-de "A dog runs." --open`, and
#   replace the end of the address, from `#` on, by `#view=attention`.
#
# **Next**: lesson 15.2 (`15_2_attention_to_the_antecedent`) counts how often a head attends to the
# antecedent, and compares it with baselines.

# %% [markdown]
# # 21.6 · Encoder-only and decoder-only models
#
# *About 25 minutes. You need: masks (lesson 6.1, `06_1_masks`), the encoder and the decoder (chapters 10
# and 11), the cross-entropy (lesson 12.1, `12_1_the_cross_entropy`).*
#
# **After this lesson you can**
#
# - explain the difference between a masked language model such as BERT and a causal one such as GPT;
# - show that the same stack of layers serves both, with different masks;
# - compute the lowest perplexity that a causal language model can reach on a small corpus.
#
# `model: ids → embedding → positions → [ENCODER] → [DECODER] → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from npformer import TransformerConfig
from npformer.checking.leaks import movement
from npformer.data import END, SPECIALS, START, TextCodec, Vocabulary
from npformer.data.sentences import MASK, SentenceBatch, masked_batch
from npformer.generation import fill_in, fill_in_table, sample_ids
from npformer.learn.course import show_figure
from npformer.models.bert import Bert, BertConfig
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.transformer import Encoder
from npformer.plots import cell_grid
from npformer.training import evaluate, loss_and_gradients
from npformer.training.optimizer import Adam, cosine

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## Half of a Transformer
#
# The Transformer of the paper translates. Its encoder reads the source sentence, and its decoder writes the
# target sentence. Many later models use only one of the two parts, and learn from text in one language:
#
# - An **encoder-only model** contains only the encoder. All tokens attend to all tokens. It is trained to
#   predict tokens that were hidden in the input. This is called a **masked language model**. **BERT** is
#   the best-known example.
# - A **decoder-only model** contains the decoder without encoder-decoder attention, because there is no
#   source. A causal mask lets each token attend only to itself and to earlier tokens. It is trained to
#   predict the next token. This is called a **causal language model**. **GPT** is the best-known example.

# %% [markdown]
# In both cases, the layers consist of self-attention and a feed-forward network. Only the mask and the
# training data differ:
#
# | | input | mask | right token |
# |---|---|---|---|
# | masked | the [MASK] quacks | full | duck, at [MASK] |
# | causal | the duck | causal | quacks, after the last token |
#
# In npformer the two models are `Bert` and `GPT`. *The components of the Transformer* ends with BERT as the
# next step after the Transformer.

# %% [markdown]
# ## One stack, two masks
#
# To show that the mask makes the difference, we use one stack of two encoder layers with both masks. The
# function `movement` changes one input after the other. It measures how much the output at each position
# changes.
#
# **Question.** What do you expect with the causal mask, if a vector in the middle of the sentence changes?
#
# <details><summary>Answer</summary>
# The outputs at this position and at all later positions change. The outputs at earlier positions do not.
# </details>

# %%
rng = np.random.default_rng(0)
layers = Encoder(TransformerConfig(d_model=32, d_ff=32, n_heads=2, n_layers=2), rng=rng)
x = rng.standard_normal((1, 7, 32)).astype(np.float32)  # (B, T, D) seven words
influence = {}
for name, mask in (("full", np.ones((7, 7), bool)), ("causal", np.tri(7, dtype=bool))):
    influence[name] = movement(lambda x, mask=mask: layers.forward(x, mask), x) > 0  # (T, T)
    print(name, "mask: an output depends on", influence[name].sum(1), "inputs")

# %% tags=["check"]
assert_array_equal(influence["full"], np.ones((7, 7)))
assert_array_equal(influence["causal"], np.tri(7))

# %% tags=["plot"]
words = ["the", "dog", "barks", "and", "the", "cat", "meows"]
for name, depends in influence.items():
    figure = cell_grid(depends.astype(float), rows=words, columns=words, shade=True)
    caption = f"With the {name} mask: row t is colored where output t depends on an input"
    show_figure(figure, f"21_{name}", caption)

# %% [markdown]
# ## A small corpus
#
# We train both models on 16 sentences of the form "the dog barks and the cat meows". Each of the two
# animals is one of four, and the verb follows from the animal.

# %%
SAYS = {"dog": "barks", "cat": "meows", "duck": "quacks", "cow": "moos"}
known = [f"the {a} {SAYS[a]} and the {b} {SAYS[b]}" for a in SAYS for b in SAYS]
codec = TextCodec(Vocabulary((*SPECIALS, *sorted(set(" ".join(known).split())), MASK)))
said, V = [codec.encode(text) for text in known], len(codec.vocabulary)
sizes = {"vocab_size": V, "d_model": 32, "d_ff": 32, "n_heads": 2, "n_layers": 1}
off = {"dropout": 0.0, "attention_dropout": 0.0}
masked = Bert(BertConfig(**sizes, max_length=8, **off), rng=np.random.default_rng(0))
causal = GPT(GPTConfig(**sizes, context=8), rng=np.random.default_rng(0))
print(f"{len(known)} sentences, {V} tokens")
print(f"parameters: {masked.values.size} and {causal.values.size}")

# %% tags=["check"]
for model, mask in ((masked, influence["full"]), (causal, influence["causal"])):
    assert_array_equal(movement(model.forward, np.array(said[:1])) > 0, mask)

# %% [markdown]
# The two models have a few different parts, which their papers chose. BERT has the norm after each sublayer,
# adds a vector for the **segment** of each token (such as the first or the second of two sentences), and
# computes one more layer before the output. GPT, since GPT-2, has the norm before each sublayer. What an
# output depends on is the same as in the figures above: the mask alone decides it.

# %% [markdown]
# ## Training
#
# For the masked language model, each token is hidden with probability .3. For the causal language model,
# the output at each position is the next token.

# %%


def train(model, draw, steps, peak):
    rng, adam, rate = np.random.default_rng(1), Adam(model), cosine(peak, steps + 1, 20)
    for step in range(1, steps + 1):
        loss_and_gradients(model, [draw(rng)])
        adam.step(rate(step))


next_tokens = SentenceBatch(
    ids=np.array([[START, *tokens] for tokens in said]),  # (B, T)
    target_out=np.array([[*tokens, END] for tokens in said]),
)
train(masked, lambda rng: masked_batch(said * 4, V - 1, rng, share=0.3), 300, peak=0.01)
train(causal, lambda rng: next_tokens, 80, peak=0.01)
found = fill_in(masked, codec, "the [MASK] quacks and the cow moos", k=4)
print(fill_in_table(found))
prompt = [START, *codec.encode("the duck")]
drawn = sample_ids(causal, [prompt] * 2, 5, rng=np.random.default_rng(3))  # twice five tokens
texts = [codec.decode([*prompt, *tokens]) for tokens in np.stack(list(drawn), 1).tolist()]
print(*texts, sep="\n")

# %% tags=["check"]
assert found[0].words[0] == "duck"
assert all(text in known for text in texts)

# %% [markdown]
# The masked language model finds the animal from the verb *after* it. The causal language model continues a
# text. It cannot use the verb to predict the animal, because the verb comes later.
#
# ## The lowest perplexity
#
# The **perplexity** is the exponential of the mean cross-entropy per token (chapter 12). What is the lowest
# value that the causal language model can reach? There are eight tokens in each sentence, including the end
# of the sentence. The two animals are random, one of four with equal probability. All other tokens can be
# predicted with certainty. So the lowest perplexity is
#
# $$\exp\left(\frac{2 \log 4}{8}\right) = 4^{1/4} = \sqrt{2}$$

# %%
tokens = next_tokens.target_out.ravel()
frequency = np.bincount(tokens) / len(tokens)  # of each token
unigram = np.exp(-np.log(frequency[tokens]).mean())
reached = evaluate(causal, [next_tokens]).perplexity
print(f"perplexity from the frequencies of the tokens alone {unigram:.2f}")
print(f"causal language model {reached:.3f}, lowest possible value {2**0.5:.3f}")

# %% tags=["check"]
assert 2**0.5 - 1e-4 < reached < 1.02 * 2**0.5

# %% [markdown]
# The trained model is within two percent of the lowest value.
#
# ## What the source documents say
#
# > - *The components of the Transformer* only names BERT. The original BERT reads two sentences at a time.
# >   It has a second task: to decide whether the second sentence follows the first one in the text. And it
# >   is trained on much more text.

# %% [markdown]
# ## Summary
#
# - An encoder-only model attends to all tokens; a decoder-only model attends to earlier tokens only.
# - A masked language model, such as BERT, predicts hidden tokens from the tokens on both sides.
# - A causal language model, such as GPT, predicts the next token.
# - The same layers serve both; the mask decides on which tokens an output depends.
# - The perplexity of a causal language model cannot be lower than the randomness of the text allows.

# %% [markdown]
# ## Questions
#
# **Question.** Can the masked language model be trained to predict *all* tokens from an input in which no
# token is hidden?
#
# <details><summary>Answer</summary>
# It would learn to copy each token, since every position attends to itself. It would learn nothing about
# language.
# </details>
#
# **Question.** The corpus has five animals in place of four. What is the lowest perplexity?
#
# <details><summary>Answer</summary>
# exp(2 log 5 / 8) = 5^(1/4) = 1.495.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 21` lists the exercises of this chapter.
#
# - In the terminal, hide the verb: `!print(fill_in_table(fill_in(masked, codec, "the cow [MASK]", k=4)))`.
# - By hand: compute the perplexity of a model that gives all tokens of the vocabulary the same probability.
#
# **Next**: lesson 22.1 (`22_1_byte_pair_encoding`), the first one of chapter 22: text that people wrote.

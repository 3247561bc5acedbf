# %% [markdown]
# # 25 · A real model under the microscope
#
# *About 35 minutes. You need: the parts of a GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`), tied weights
# (lesson 12.3, `12_3_label_smoothing_and_tied_weights`), gradient times input (lesson 15.4,
# `15_4_gradient_times_input`).*
#
# **After this lesson you can**
#
# - read the file with the weights of a GPT-2, and say which part of the model each weight belongs to;
# - load a model that other people trained, draw its attention for your own text, and check its gradients;
# - compute how much each token of a text contributes to a prediction.
#
# `[LANGUAGE MODEL]: ids → embedding → layers → norm → linear → softmax`

# %%
import json
from pathlib import Path
from shutil import rmtree

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

import npformer
from npformer import gradcheck, show
from npformer.functional.heads import split_heads
from npformer.functional.norm import layer_norm
from npformer.generation.codec_tokenizers import LongTextTokenizer
from npformer.interop import export_folder
from npformer.learn.course import show_figure
from npformer.learn.course.trained import short_gpt2
from npformer.models.gpt import GPTConfig
from npformer.plots import attention, score_bars
from npformer.pretrained import TextGenerator
from npformer.pretrained.loss_check import check_loss

threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## A model is a folder
#
# Many people publish the models that they trained. Most of these models are on the website Hugging Face.
# There, a model is a folder with files of three kinds: `config.json` contains the settings of the model,
# `model.safetensors` contains the weights, and the other files describe the tokenizer.
#
# This lesson needs no download. It trains a small model with the parts of **GPT-2** (Radford et al.,
# *Language Models are Unsupervised Multitask Learners*, 2019) and saves it as such a folder. At the end, you
# will see how to do the same with a model that you have downloaded.
#
# The function `short_gpt2` trains the model for a few seconds. The training text consists of sentences such
# as "the owl didn't climb the rocks because they were too high". Each word is one token.

# %%
model, dataset, losses = short_gpt2()
folder = Path("runs/lesson25")
rmtree(folder, ignore_errors=True)  # the folder of an earlier run of this lesson
export_folder(model, folder)
print([path.name for path in sorted(folder.iterdir())])
print((folder / "config.json").read_text())

# %% tags=["check"]
settings = json.loads((folder / "config.json").read_text())
assert settings["model_type"] == "gpt2"
assert settings["tie_word_embeddings"]
assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]

# %% [markdown]
# ## The file with the weights
#
# In such files, an array is called a **tensor**. A **safetensors** file has three parts:
#
# 1. 8 bytes: the length of the header.
# 2. The header, a JSON text: for each tensor its name, dtype, shape, and place in the data.
# 3. The data: the numbers of all tensors, one tensor after the other.
#
# Older folders contain a file `pytorch_model.bin` instead. This file is a **pickle**: loading it can run any
# code that its author put into it. A safetensors file contains only numbers and a header, so reading it runs
# no code of its author.

# %%
content = (folder / "model.safetensors").read_bytes()
start = 8 + int.from_bytes(content[:8], "little")  # the data begin here
header = json.loads(content[8:start])
del header["__metadata__"]
for name, entry in header.items():
    if ".h.1." not in name:  # the second block has the same tensors as the first
        print(f"{name:34} {entry['dtype']} {entry['shape']}")

# %% tags=["check"]
assert len(header) == 4 + 2 * 12
assert {name.replace(".h.1.", ".h.0.") for name in header if ".h.1." in name} == {
    name for name in header if ".h.0." in name
}

# %% [markdown]
# Compare these names with the picture of lesson 24.1. D is the width of the model, T the number of tokens in
# a text, and V the number of tokens in the vocabulary. Each norm and each linear map also has a bias.
#
# | part of the GPT | names of its tensors in block 0 | shapes |
# |---|---|---|
# | embedding of tokens and positions | `wte`, `wpe` | (V, D), (context, D) |
# | norm, then queries, keys and values | `h.0.ln_1`, `h.0.attn.c_attn` | (D,), (D, 3 D) |
# | output of the attention | `h.0.attn.c_proj` | (D, D) |
# | norm, then the hidden layer, with GELU | `h.0.ln_2`, `h.0.mlp.c_fc` | (D,), (D, 4 D) |
# | output of the feed-forward network | `h.0.mlp.c_proj` | (4 D, D) |
# | last norm; the logits use `wte` again | `ln_f` | (D,) |

# %% [markdown]
# ## Tied weights are in the file once
#
# The file has no tensor for the last linear layer, which computes the logits. This layer uses the table `wte`
# of the token vectors. Its weight and the table are **tied** (lesson 12.3), as the setting
# `tie_word_embeddings` says. Some files also contain a copy of the table with the name `lm_head.weight`.
# npformer skips such a copy.
#
# Tied weights save memory. The cell computes how many parameters the smallest GPT-2 saves in this way. The
# defaults of `GPTConfig` are the settings of this model.

# %%
in_file = sum(int(np.prod(entry["shape"])) for entry in header.values())
print(f"{in_file:,} numbers in our file, {model.count_parameters():,} parameters")
gpt2 = GPTConfig()
table = gpt2.vocab_size * gpt2.d_model  # V D
print(f"GPT-2: {gpt2.count_parameters():,} parameters, {table:,} of them in the table")

# %% tags=["check"]
assert in_file == model.count_parameters()
assert gpt2.count_parameters() == 124_439_808
assert round(100 * table / gpt2.count_parameters()) == 31

# %% [markdown]
# Without tied weights, GPT-2 would have 31 % more parameters.
#
# ## Why GPT-2 has a layer Conv1D
#
# A linear layer with I inputs and O outputs can store its weight in two ways:
#
# | | shape of W | forward pass | backward pass |
# |---|---|---|---|
# | GPT-2, npformer | (I, O) | $y = x W + b$ | $dx = dy\, W^\top$, $dW = x^\top dy$ |
# | `nn.Linear` of PyTorch | (O, I) | $y = x W^\top + b$ | $dx = dy\, W$, $dW = dy^\top x$ |
#
# Hugging Face's library `transformers` is written in PyTorch. But its GPT-2 does not use `nn.Linear`. It has
# a class of its own for linear layers, `Conv1D`, because the original program of OpenAI defines these layers
# as convolutions of width 1. Such a convolution is a linear layer (lesson 9.3,
# `09_3_a_memory_and_a_convolution`).

# %% [markdown]
# So npformer copies the weights of a GPT-2 as they are. BERT, Llama and the opus-mt translators use
# `nn.Linear`, so npformer transposes their weights. The cell checks the gradients in the second row of the
# table.

# %%


def linear(x, w, b):
    """y = x Wᵀ + b. Shapes: x (N, I), w (O, I), b (O,) -> (N, O)."""
    return x @ w.T + b, (x, w)


def linear_backward(dy, cache):
    """Return the gradients (dx, dw, db)."""
    x, w = cache
    return dy @ w, dy.T @ x, dy.sum(0)


rng = np.random.default_rng(25)
report = gradcheck((linear, linear_backward), *map(rng.standard_normal, [(4, 3), (2, 3), 2]))
print(report)

# %% tags=["check"]
assert report.ok

# %% [markdown]
# **Question.** A programmer transposes the weights of all linear layers of a GPT-2 by mistake. For most of
# these layers, the shapes do not fit, and the program stops with an error. Which layer causes no error?
#
# <details><summary>Answer</summary>
# The layer `attn.c_proj`, because its weight is square: (D, D). Its outputs are wrong, but no error occurs.
# </details>
#
# Now we load the folder with `npformer.load`. The function `export_folder` has not written a tokenizer, so we
# give the loaded model the codec of the training text. The tokens of this codec begin with the sign ▁, which
# stands for the space before a word. Then the cell measures the loss without and with the mistake of the
# question. At the end, the cell corrects the mistake.

# %%
codec, found = dataset.codec, npformer.load(folder)
loaded = TextGenerator("small GPT-2", found.model, lambda: LongTextTokenizer(codec))
text = codec.decode(dataset.valid.tolist())
right = loaded.loss(text)
squares = [block.self_attention.output.weight for block in loaded.model.layers]  # (D, D)
for weight in squares:
    weight.value[:] = weight.value.T.copy()
wrong = loaded.loss(text)
for weight in squares:
    weight.value[:] = weight.value.T.copy()
print(f"loss in nats per token: {right:.2f}, and {wrong:.2f} with the mistake")

# %% tags=["check"]
assert_array_equal(loaded.logits([[1, 2, 3]]), model([[1, 2, 3]]))
assert wrong > right + 0.3
assert wrong < np.log(len(codec.tokens))

# %% [markdown]
# The mistake increases the loss by more than .3. But the loss is still lower than $\ln V$, the loss of a
# model that gives all tokens the same probability. So a model with wrong weights can still predict some
# words. To find such a mistake, compare the logits with those of the original program. The tests of npformer
# compare its logits with those of `transformers`.
#
# ## Queries, keys and values in one tensor
#
# The weight `c_attn` consists of $W^Q$, $W^K$ and $W^V$ side by side: (D, 3 D). So one product computes the
# queries, keys and values of all heads (lesson 7.2, `07_2_all_heads_in_one_product`). Such a projection is
# called **fused**. The cell computes the queries, keys and values of the first block from the file, and shows
# the cache of the loaded model. The check compares the two.

# %%
TEXT = "the animals didn't cross the streets because"


def tensor(name):
    """Return a tensor of the file as an array."""
    entry = header[f"transformer.{name}"]
    first, last = (start + offset for offset in entry["data_offsets"])
    return np.frombuffer(content[first:last], np.float32).reshape(entry["shape"])


ids = np.array(codec.encode(TEXT))  # (T,)
x = tensor("wte.weight")[ids] + tensor("wpe.weight")[: len(ids)]  # (T, D)
h, _ = layer_norm(x, tensor("h.0.ln_1.weight"), tensor("h.0.ln_1.bias"))
fused = h @ tensor("h.0.attn.c_attn.weight") + tensor("h.0.attn.c_attn.bias")  # (T, 3 D)
q, k, v = np.split(fused, 3, axis=-1)  # (T, D) each
_, passed = loaded.model.forward(ids[None])
cache = passed.layers[0].self_attention.attention
show(cache)

# %% tags=["check"]
for ours, theirs in zip((q, k, v), (cache.q, cache.k, cache.v), strict=True):
    assert_allclose(split_heads(ours[None], 4), theirs, atol=1e-5)

# %% [markdown]
# ## What differs from the Transformer of 2017
#
# | | Transformer, 2017 | GPT-2, 2019 |
# |---|---|---|
# | stacks | encoder and decoder | decoder without cross-attention |
# | norm | after each residual connection | before each sublayer, and after the last block |
# | positions | sinusoids | learned vectors, for a fixed number of positions |
# | token vectors | multiplied by √D | not multiplied |
# | activation | ReLU | GELU, by a formula with tanh |
#
# Both models have attention with the scale $1 / \sqrt{d_k}$, residual connections, feed-forward networks of
# width 4 D, and tied weights. Sinusoids are computed by a formula, so no file contains them.
#
# ## Attention with your own text
#
# The method `attention` takes a text, and returns the attention weights of all heads together with the tokens
# of the text. The next word of our text should be "they", because both nouns are plural. So the last query
# should attend to a noun in at least one head. Layers and heads are counted from 0.

# %%
seen = loaded.attention(TEXT)
weights = seen.weights["self"]  # (L, H, T, T)
animals = weights[:, :, -1, 1]  # (L, H), the weight of the query "because" for "animals"
layer, head = np.unravel_index(animals.argmax(), animals.shape)
print(loaded.generate(TEXT, 1))
print(f"layer {layer}, head {head} has the largest weight for animals: {animals.max():.2f}")

# %% tags=["check"]
assert loaded.generate(TEXT, 1).endswith(" they")
assert animals.max() > 0.3

# %% tags=["plot"]
figure = attention(weights[:, None], seen.pieces, mask=seen.allowed)
caption = "The weights of all heads: in some of them, the last query attends to a noun"
show_figure(figure, "25_attention", caption)

# %% [markdown]
# ## How much does each token contribute?
#
# Attention weights do not say how much a token changes the output (lesson 15.4). Two methods use gradients
# instead. Let $f$ be the logit of an output token, and $x_t$ the row of `wte` for input token $t$. **Gradient
# times input** gives each input token the number $x_t \cdot \partial f / \partial x_t$. This method needs one
# backward pass. But it uses only the gradient at $x$, which can be 0 even if the token is important.
#
# **Integrated gradients** (Sundararajan et al., *Axiomatic Attribution for Deep Networks*, 2017) use the mean
# gradient on a straight line. The line begins at the **baseline**, where all $x_t$ are 0, and ends at $x$:
#
# $$a_t = x_t \cdot \int_0^1 \frac{\partial f}{\partial x_t}(\alpha x)\, d\alpha$$
#
# By the chain rule, the sum of all $a_t$ is the integral of the derivative of $f(\alpha x)$ with respect to
# $\alpha$. So $\sum_t a_t = f(x) - f(0)$. This property is called **completeness**.

# %% [markdown]
# **Question.** Let $f(x) = \min(x, 1)$ for a single number $x = 4$. Which number does each of the two methods
# give?
#
# <details><summary>Answer</summary>
# The derivative at 4 is 0, so gradient times input gives 0. From 0 to 1 the derivative is 1, and from 1 to 4
# it is 0. So its mean is 1/4, and integrated gradients give $4 \cdot 1/4 = 1 = f(4) - f(0)$.
# </details>
#
# Which tokens make "they" more probable than "it"? Integrated gradients are linear in $f$. So the cell
# computes integrated gradients for both logits, and subtracts the numbers for "it" from those for "they".

# %%
they, it = (loaded.saliency(TEXT, target=word, score="logit") for word in ("they", "it"))
a = they.scores["text"] - it.scores["text"]  # (T,)
for piece, value in zip(they.tokens["text"], a, strict=True):
    print(f"{piece:10} {value:+.2f}")
change = (they.value - it.value) - (they.baseline - it.baseline)
print(f"sum        {a.sum():+.2f}, f(x) − f(0) is {change:+.2f}")

# %% tags=["check"]
assert they.tokens["text"][a.argmax()] == "▁animals"
assert abs(a.sum() - change) <= 0.1
assert they.value > it.value + 1
quick = loaded.saliency(TEXT, target="they", score="logit", method="gradient")
assert abs(quick.sum - (they.value - they.baseline)) > 1

# %% tags=["plot"]
figure = score_bars([a], [they.tokens["text"]], title="logit of they minus logit of it")
show_figure(figure, "25_contributions", "The plural noun at the beginning contributes most")

# %% [markdown]
# The noun "animals" contributes most. The sum differs from $f(x) - f(0)$ by at most .1, because the integral
# is computed numerically. Gradient times input does not have completeness: for the logit of "they", its sum
# differs from $f(x) - f(0)$ by more than 1.
#
# ## A gradient check of the whole model
#
# The contributions are correct only if the backward pass is correct. For each tensor of the model, the
# function `check_loss` draws a random direction $v$. By the complex step (lesson 0.3,
# `00_3_measured_derivatives`), it computes the derivative of the loss along $v$. This derivative must be the
# product of the gradient with $v$.

# %%
checked = check_loss(loaded, TEXT)
worst = max(checked.rows, key=lambda row: row.error)
print(f"{len(checked.rows)} tensors, largest error {worst.error:.0e} in {worst.tensor}")

# %% tags=["check"]
assert checked.ok
assert len(checked.rows) == len(header)
assert worst.error < 1e-9

# %% [markdown]
# ## Your own model
#
# Open the page of a model on Hugging Face, and download its files into a folder. A GPT-2 needs `config.json`,
# `model.safetensors` and `tokenizer.json`. An opus-mt translator has `source.spm`, `target.spm` and
# `vocab.json` in place of `tokenizer.json`. If the weights are in a pickle, npformer does not load them, and
# says how to convert them. Install the libraries for tokenizers with `pip install "npformer[hf]"`. Then these
# commands do the steps of this lesson for your model:
#
# ```text
# npformer inspect gpt2
# npformer attention --model gpt2 "The animals didn't cross the streets because"
# npformer explore --model gpt2 "The animals didn't cross the streets because" --open
# npformer saliency --model gpt2 "The animals didn't cross the streets because"
# npformer gradcheck --model gpt2 "The animals didn't cross the streets because"
# npformer translate --model opus-mt-en-fr "The animals didn't cross the streets."
# ```
#
# Here, `gpt2` and `opus-mt-en-fr` are the names of two folders. The first command prints the settings, the
# layers and the memory that the model needs. The gradient check needs much more time and memory than the
# other commands. In Python, `npformer.load("gpt2")` returns an object with the methods of this lesson.
# At the address of the explorer's page, `#view=attention` opens the maps of all heads.
#
# **Your turn.** In another terminal, run `npformer inspect runs/lesson25`. In the lesson, try another text:
# `!print(loaded.saliency("the goat didn't cross the park because", target="it").table())`.

# %% [markdown]
# **In 2025**, researchers also trace the features of large models (Lindsey et al.).

# %% [markdown]
# ## Summary
#
# - A Hugging Face folder contains the settings, the weights as named tensors, and the tokenizer.
# - `nn.Linear` of PyTorch stores a weight as (out, in), and Conv1D of GPT-2 stores it as (in, out), like
#   npformer. If a square weight is transposed by mistake, no error occurs, but the logits are wrong.
# - GPT-2 has one fused tensor for queries, keys and values. A tied weight is in the file once.
# - Integrated gradients have completeness: the contributions of all tokens sum to $f(x) - f(0)$.
# - The gradients of a whole loaded model can be checked, as those of a single layer can.

# %% [markdown]
# ## Questions
#
# **Question.** The files of Llama contain three tensors for queries, keys and values, each of shape
# (out, in). How does npformer make one fused weight of shape (in, out) from them?
#
# <details><summary>Answer</summary>
# It transposes each of them, and puts the results side by side.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has no exercises for this chapter. Try these in the terminal:
#
# - Replace one noun of `TEXT` by its singular, and predict how the contribution of this noun changes.
# - By hand: show that integrated gradients and gradient times input are equal if $f$ is linear.
#
# **Next**: lesson 26.1 (`26_1_muon`), with the optimizer of newer models.

# %% [markdown]
# # 11.5 · One memory for all layers
#
# *About 25 minutes. You need: the decoder layer and its gradient $dM$ (lesson 11.4,
# `11_4_the_decoder_layer`), the stack of layers (lesson 10.3, `10_3_the_whole_encoder`), the chain rule
# (lesson 0.2, `00_2_forward_and_backward`).*
#
# **After this lesson you can**
#
# - explain why the encoder's gradient is a sum over all decoder layers;
# - say why a gradient check must contain two layers or more;
# - compute the number of parameters of the decoder.
#
# `model: ids → embedding → positions → encoder → [DECODER] → linear → softmax`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import Transformer, TransformerConfig
from npformer.checking import gradcheck
from npformer.checking.whole import ModelWithLoss
from npformer.learn.course import show_figure
from npformer.models.transformer import Decoder, DecoderLayer, EncoderLayer, shifted_right
from npformer.plots import Grid, Step, cell_product, gradient_flow

rng = np.random.default_rng(11)

# %% [markdown]
# ## One memory, N readers
#
# *一步步解析Attention is All You Need!* says, above its picture of both stacks, that the output of the last
# encoder layer goes to *every* decoder layer. So the memory is used N times.

# %% tags=["plot"]
same = np.random.default_rng(0)
m, first, second, third = same.standard_normal((4, 4, 6))  # the memory and its gradients
copies = {f"m{n}": Step("", ["memory"]) for n in range(3)}
arrays = dict.fromkeys(("memory", *copies), m)
gradients = {"m0": first, "m1": second, "m2": third, "memory": first + second + third}
layout = ". m0 \n memory m1 \n . m2"
axes = dict.fromkeys(arrays, "S D")
figure = gradient_flow(layout, arrays, copies, gradients, axes=axes)
caption = "Three decoder layers read the memory, and dmemory is the sum of their gradients"
show_figure(figure, "11_5_memory", caption)

# %% [markdown]
# Why is the gradient of the memory a sum? Imagine that each layer has its own copy of the memory,
# $M_0, \ldots, M_{N-1}$. Layer $n$ gives its copy the gradient $dM_n$. Through its output, layer $n$ also
# influences the layers above. This influence is contained in the $dy$ that layer $n$ receives. But the copies
# are in fact one array. A small change $\delta$ of $M$ is the same change of all copies. Let
# $\langle \cdot, \cdot \rangle$ be the sum of all products of corresponding entries. Then the loss changes by
#
# $$\begin{aligned}
# \delta L &= \langle dM_0, \delta \rangle + \ldots + \langle dM_{N-1}, \delta \rangle \\
# &= \langle dM_0 + \ldots + dM_{N-1},\, \delta \rangle
# \end{aligned}$$
#
# So the gradient of the memory is the sum over all layers:
#
# $$dM = \sum_n dM_n$$
#
# This is the rule of lesson 0.2: if the forward pass copies an array, the backward pass adds the gradients.

# %%
tiny = TransformerConfig(9, 9, d_model=8, d_ff=12, n_heads=2, n_layers=2, dropout=0.0)
x = rng.standard_normal((1, 5, 8))  # (B, T, D)
memory = rng.standard_normal((1, 4, 8))  # (B, S, D)
dy = rng.standard_normal((1, 5, 8))  # (B, T, D)
may_attend = np.tri(5, dtype=bool)  # (T, T) the causal mask

three = tiny.replace(n_layers=3)
decoder = Decoder(three, rng=np.random.default_rng(3), dtype=np.float64)
_, cache = decoder.forward(x, memory, may_attend)
parts, d = [None] * 3, dy
for n in (2, 1, 0):  # the top layer first
    d, parts[n] = decoder[n].backward(d, cache[n])  # (B, T, D), (B, S, D)
dmemory = parts[0] + parts[1] + parts[2]
difference = abs(dmemory - decoder.backward(dy, cache)[1]).max()
print("largest difference from the package:", difference)

# %% tags=["check"]
assert_allclose(dmemory, decoder.backward(dy, cache)[1], rtol=1e-9)

# %% tags=["plot"]
named = {"layer 0": parts[0], "layer 1": parts[1], "layer 2": parts[2], "dM": dmemory}
cells = [Grid(m[0, :, :4], name, "v", numbers=True, shade=True) for name, m in named.items()]
figure = cell_product([cells[0], "+", cells[1], "+", cells[2], "=", cells[3]])
caption = "Four source tokens, 4 of 8 entries each: the encoder gets the sum over three layers"
show_figure(figure, "11_memory", caption)

# %% [markdown]
# A common mistake is to write `=` instead of `+=` in the loop over the layers. Then each layer overwrites
# the gradient of the layers above it, and only the gradient of layer 0 remains. We check such a decoder,
# once with a single layer and once with three.

# %%


class Forgetful(Decoder):
    def backward(self, dy, cache):
        for n in reversed(range(len(self.layers))):
            dy, dmemory = self[n].backward(dy, cache[n])  # = and not +=
        return dy, dmemory


one, wrong = (Forgetful(c, rng=rng, dtype=np.float64) for c in (tiny.replace(n_layers=1), three))
one_report = gradcheck(one, x, memory, may_attend)
report = gradcheck(wrong, x, memory, may_attend)
print("one layer:", "passes" if one_report.ok else "fails")
print("three layers: of", len(report.rows), "rows fail", [row.tensor for row in report.failures])
similarity = (parts[0] * dmemory).sum() / np.linalg.norm(parts[0]) / np.linalg.norm(dmemory)
print(f"cosine between the gradient of layer 0 and the sum: {similarity:.2f}")

# %% tags=["check"]
assert one_report.ok
assert [row.tensor for row in report.failures] == ["memory", "adjoint"]
assert_allclose(similarity, 0.65, atol=0.005)
assert abs(np.degrees(np.arccos(similarity)) - 50) < 1
assert len(list(wrong.named_parameters())) == 78

# %% [markdown]
# With one layer the mistake has no effect, so always check a stack of two layers or more. In the stack of
# three layers, all 78 parameters have correct gradients. Only the encoder gets a wrong gradient. How wrong
# is it? In our decoder, the gradient of layer 0 alone and the correct sum have a cosine of .65. So the two
# directions differ by an angle of about 50 degrees.
#
# ## Check the gradient
#
# We check the stack of three decoder layers, and then a whole model with its loss. This model has two layers
# in each stack, dropout, and label smoothing. Both languages and the output layer share one embedding table.
# Its sentences contain padding.

# %%
whole = Transformer(tiny.replace(dropout=0.1), rng=rng, dtype=np.float64)
source = np.array([[5, 6, 7, 6, 3], [5, 8, 3, 0, 0]])  # (B, S)
target = np.array([[5, 6, 5, 3], [4, 4, 3, 0]])  # (B, T)
ids = source, shifted_right(target, 2), target
of_stack = gradcheck(decoder, x, memory, may_attend)
of_whole = gradcheck(ModelWithLoss(whole), *ids, train=True, rng=5)
for larger in (of_stack, of_whole):
    worst = max(row.error for row in larger.rows)
    print(f"{larger.name}: {len(larger.rows)} rows, largest error {worst:.0e}")

# %% tags=["check"]
assert of_stack.ok
assert of_whole.ok

# %% [markdown]
# ## How many parameters?
#
# An attention sublayer has four D × D matrices with biases. The feed-forward network has two matrices with
# biases, and a norm has a gain and a bias. The paper uses D = 512 and F = 2048:
#
# | part | parameters | number |
# |---|---|---|
# | attention | 4 (D² + D) | 1,050,624 |
# | feed-forward | 2 D F + F + D | 2,099,712 |
# | norm | 2 D | 1,024 |
# | encoder layer | 1 attention, 1 feed-forward, 2 norms | 3,152,384 |
# | decoder layer | 2 attentions, 1 feed-forward, 3 norms | 4,204,032 |
#
# The cell compares these numbers with the layers of the package.

# %%
D, width = 512, 2048
attention, network, gain_and_bias = 4 * (D * D + D), 2 * D * width + width + D, 2 * D
of_encoder = attention + network + 2 * gain_and_bias
of_decoder = 2 * attention + network + 3 * gain_and_bias
print(f"six layers of each: {6 * (of_encoder + of_decoder):,} parameters")

# %% tags=["check"]
base = TransformerConfig()
assert (attention, network, gain_and_bias) == (1_050_624, 2_099_712, 1_024)
assert of_encoder == EncoderLayer(base).count_parameters() == 3_152_384
assert of_decoder == DecoderLayer(base).count_parameters() == 4_204_032
assert 6 * (of_encoder + of_decoder) == 44_138_496

# %% [markdown]
# With the embeddings, the paper arrives at 65 million parameters.
#
# **Your turn.** In the terminal, some gradients of the wrong decoder are correct. Print the names of their
# parameters with `![row.tensor for row in report.rows if row.ok]`.

# %% [markdown]
# ## Summary
#
# - All decoder layers attend to the same memory, the output of the last encoder layer.
# - So the gradient of the memory is the sum of the gradients from all decoder layers.
# - With `=` in place of `+=`, only the gradient of layer 0 remains.
# - A check of a single layer cannot show this mistake. A check of a stack shows it.
# - A decoder layer of the paper has 4,204,032 parameters, 1,051,648 more than an encoder layer.

# %% [markdown]
# ## Questions
#
# **Question.** In the wrong decoder of this lesson, why are the gradients of all decoder parameters correct?
#
# <details><summary>Answer</summary>
# They are computed from the gradients that go down from layer to layer, and these are correct. Only the
# gradient of the memory is wrong. The gradients of the decoder's parameters are not computed from it.
# </details>
#
# **Question.** A decoder layer has 1,051,648 parameters more than an encoder layer. Which parts have them?
#
# <details><summary>Answer</summary>
# The encoder-decoder attention has 1,050,624, and the third norm has 1,024.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 11` lists the exercises of this chapter.
#
# - `npformer exercise start decoder-backward`: write the backward pass of a stack of decoder layers. The
#   gradient of the memory is a sum over the layers.
# - By hand: the loss is $L = (a m) + (b m)^2$ for numbers a, b and m, where m is the memory of two readers.
#   Compute the gradient of each copy of m, and check that their sum is dL/dm.
#
# **Next**: lesson 12.1 (`12_1_the_cross_entropy`), from the decoder's vectors to tokens, and the loss.

# %% [markdown]
# # 9.4 · The cost of the feed-forward network
#
# *About 15 minutes. You need: the feed-forward network (lesson 9.1, `09_1_the_feed_forward_network`),
# multi-head attention (lesson 7.2, `07_2_all_heads_in_one_product`).*
#
# **After this lesson you can**
#
# - compute the share of the feed-forward networks in the parameters of a Transformer;
# - compute their share of the multiplications, for a sentence of any length.
#
# `each layer: x → attention → add & norm → [FEED-FORWARD] → add & norm → y`

# %%
import numpy as np

from npformer import MultiHeadAttention
from npformer.learn.course import show_figure
from npformer.nn import FeedForward, LayerNorm
from npformer.plots import curves

# %% [markdown]
# ## What it costs
#
# The table shows the matrices of one encoder layer, and the shapes of their results, for a sentence of T
# tokens:
#
# | part | matrices | arrays |
# |---|---|---|
# | attention | W^Q, W^K, W^V and W^O, each (D, D) | q, k, v, output (T, D); scores (T, T) for each head |
# | feed-forward | W₁ (D, F) and W₂ (F, D) | hidden (T, F), output (T, D) |
#
# We count the parameters of the paper's base model, with D = 512 and F = 2048. First, one encoder layer and
# one decoder layer, with biases everywhere:

# %%
attention_size = MultiHeadAttention(512, 8).count_parameters()  # 4 D² + 4 D
ffn_size = FeedForward(512, 2048).count_parameters()  # 2 D F + F + D
norm_size = LayerNorm(512).count_parameters()  # 2 D
encoder_layer = attention_size + ffn_size + 2 * norm_size
decoder_layer = 2 * attention_size + ffn_size + 3 * norm_size
print(f"encoder layer {encoder_layer:,}, of it feed-forward {ffn_size / encoder_layer:.1%}")
print(f"decoder layer {decoder_layer:,}, of it feed-forward {ffn_size / decoder_layer:.1%}")

# %% tags=["check"]
assert (attention_size, ffn_size, norm_size) == (1_050_624, 2_099_712, 1_024)
assert (encoder_layer, decoder_layer) == (3_152_384, 4_204_032)

# %% [markdown]
# Now the whole model. It has 6 encoder layers and 6 decoder layers, and so 12 feed-forward networks. There
# are 6 + 2 · 6 = 18 attention layers and 6 · 2 + 6 · 3 = 30 layer norms. The table of embeddings is shared by
# encoder, decoder and output layer. It has 41,096 tokens here. The paper says "about 37000", but then the sum
# would be 63 million parameters, and not 65 million as in its table 3. Here attention has no biases.

# %%
parts = {
    "12 feed-forward networks": 12 * ffn_size,
    "18 attention layers": 18 * 4 * 512**2,
    "30 layer norms": 30 * norm_size,
    "embedding": 41_096 * 512,
}
for name, size in parts.items():
    print(f"{name:25} {size:12,}  {size / sum(parts.values()):6.1%}")

# %% tags=["check"]
assert round(sum(parts.values()) / 1e6, 2) == 65.14
assert round((sum(parts.values()) - 4_096 * 512) / 1e6) == 63  # with 37,000 tokens
assert round(parts["12 feed-forward networks"] / sum(parts.values()), 2) == 0.39

# %% [markdown]
# The feed-forward networks contain two thirds of the parameters of an encoder layer, and half of those of a
# decoder layer. With 39 % they are the largest part of the whole model.
#
# How much work do they do? We count the multiplications for each token of a sentence with T tokens, in one
# encoder layer:
#
# | part | multiplications | with the paper's sizes |
# |---|---|---|
# | feed-forward network | 2 D F | 2,097,152 |
# | projections of attention | 4 D² | 1,048,576 |
# | scores and weighted sums | 2 T D | 1,024 T |
#
# The last row grows with the length of the sentence. At which length does attention do as much work as the
# feed-forward network? We set both numbers equal, and divide the equation by 2 D:
#
# $$\begin{aligned}
# 4 D^2 + 2 T D &= 2 D F \\
# T &= F - 2 D = 2048 - 1024 = 1024
# \end{aligned}$$

# %%
lengths = 2 ** np.linspace(3, 13, 41)  # (P,)
costs = np.stack([np.full(41, 2 * 512 * 2048), 4 * 512**2 + 2 * 512 * lengths])  # (2, P)
share = 2 * 512 * 2048 / (2 * 512 * 2048 + 4 * 512**2 + 2 * 512 * 50)
print(f"at 50 tokens the feed-forward network does {share:.0%} of the multiplications")

# %% tags=["check"]
assert costs[0, 28] == costs[1, 28] == 2_097_152  # at 2¹⁰ tokens

# %% tags=["plot"]
figure = curves(
    costs / 1e6,
    lengths,
    labels=["feed-forward", "attention"],
    xlabel="tokens in the sentence",
    ylabel="million multiplications for each token",
    xscale="log",
    yscale="log",
)
caption = "Up to 1,024 tokens the feed-forward network does more work than attention"
show_figure(figure, "09_cost", caption)

# %% [markdown]
# **Your turn.** In the terminal, compute `!FeedForward(4, 16).count_parameters()`. Predict the number first,
# from the formula 2 D F + F + D.

# %% [markdown]
# ## Summary
#
# - A feed-forward network has 2 D F + F + D parameters, and attention has 4 D² + 4 D.
# - The feed-forward network has two thirds of the parameters of an encoder layer, and half of those of a
#   decoder layer.
# - In the paper's base model, the feed-forward networks have 39 % of all parameters.
# - For each token, a feed-forward network needs 2 D F multiplications. Attention needs 4 D² + 2 T D, which
#   grows with T.
# - With the paper's sizes, the feed-forward network does more work than attention in sentences of fewer than
#   1,024 tokens.

# %% [markdown]
# ## Questions
#
# **Question.** A text has 4,096 tokens. Which part of an encoder layer does more work, and by which factor?
#
# <details><summary>Answer</summary>
# Attention does more work. It needs 1,048,576 + 1,024 · 4,096 = 5,242,880 multiplications for each token. The
# feed-forward network needs 2,097,152. The factor is 2.5.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 9` lists the exercises of this chapter, which belong to lessons 9.1 and 9.2
# (`09_2_activations_and_dead_units`).
#
# - By hand: for which F do the feed-forward network and the attention of an encoder layer have equally many
#   weights? Leave the biases out.
# - By hand: the paper's "big" model has D = 1024 and F = 4096. From which length on does attention do more
#   work there?
#
# **Next**: lesson 10.1 (`10_1_one_encoder_layer`), attention and this network together in one layer.

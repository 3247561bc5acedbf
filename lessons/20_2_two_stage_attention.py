# %% [markdown]
# # 20.2 · Two-stage attention
#
# *About 35 minutes. You need: if-then recipes and the limit of a single query (lesson 20.1,
# `20_1_a_task_that_needs_word_order`), masks (lesson 6.1, `06_1_masks`).*
#
# **After this lesson you can**
#
# - compute latent attention, an attention whose weights come from two softmaxes;
# - explain how the form of the paper differs from the form of the authors' program;
# - say which information about positions the input of the layer must contain.
#
# `recurrent model: embedding → recurrent layer → [ATTENTION] → output layer`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer import show
from npformer.data import if_then as recipes
from npformer.functional import latent, softmax
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn.attention import LatentAttention
from npformer.plots import attention_map, cell_grid

rng = np.random.default_rng(20)
sentences = [recipe.description.lower().split() for recipe in recipes.FAMOUS]

# %% [markdown]
# ## Why two stages?
#
# In lesson 20.1 a description was "Automatically save Instagram photos to a Dropbox folder". To find the
# source, a reader uses the word "to", and then takes the channel before it. So there are two questions:
#
# 1. Which word is important for the decision? Here it is "to".
# 2. Which word contains the answer? Here it is "Instagram".
#
# **Question.** In "Post photos in a Dropbox folder to Instagram", what are the two answers?
#
# <details><summary>Answer</summary>
# "to" is again the important word, and "Dropbox" contains the answer, because the source is Dropbox.
# </details>
#
# Ordinary attention has one weight for each word, which must answer both questions. **Two-stage attention**
# computes two kinds of weights:
#
# - The **latent weights** answer the first question. They are called latent, which means hidden, because
#   they do not multiply the values directly.
# - The **active weights** answer the second question. They are computed from the latent weights, and they
#   multiply the values.
#
# The layer that uses them is called **latent attention** (Liu et al., 2016). The multi-head latent attention
# of DeepSeek (2024) is something else: it compresses keys and values (lesson 26.4,
# `26_4_multi_head_latent_attention`).

# %% [markdown]
# ## The definition
#
# Let the rows of $e$ be the vectors of S words, with shape (S, E). The layer has two parameters: a vector
# $u$ of shape (E,) and a matrix $V$ of shape (E, J). J is the length of the longest sentence.

# %% tags=["plot"]
figure = shape_flow(
    ". l w̄ o \n e . . . \n . D . . \n v . . .",
    {"l": "softmax: e", "D": "softmax: e", "w̄": "/ sum: l D", "o": "w̄ v: w̄ v"},
    {"e": "S E", "l": "1 S", "D": "S S", "v": "S L", "w̄": "1 S", "o": "1 L"},
)
caption = "Latent attention: the weights l and D together give the weights of the words"
show_figure(figure, "20_2_shapes", caption)

# %% [markdown]
# The first formula gives the latent weights. The second gives a matrix $D$. Row $i$ of $D$ is a softmax
# over the positions $j$. We say that **word $i$ points to word $j$** if $D_{ij}$ is large:
#
# $$l = \mathrm{softmax}_j (u \cdot e_j), \qquad D_{ij} = \mathrm{softmax}_j ((e_i V)_j)$$
#
# | | automatically | save | instagram | photos | to |
# |---|---|---|---|---|---|
# | row of "to" | small | small | large | small | small |
#
# There are two ways to combine $D$ and $l$, which the package calls **orientations**:
#
# $$\mathrm{columns:} \quad w = D^\top l, \qquad \mathrm{rows:} \quad w = D\, l$$
#
# - In the orientation "columns", a word gets a large weight if words with large latent weights point to it.
# - In the orientation "rows", a word gets a large weight if it points to words with large latent weights.
#
# The last step divides $w$ by its sum. The results are the active weights $\bar{w}$:
#
# $$\bar{w} = \frac{w}{\sum_m w_m}, \qquad o = \sum_j \bar{w}_j v_j$$
#
# The values $v_j$ are the vectors $e_j$ themselves, or other vectors of the same words.

# %% [markdown]
# ## Scores by hand
#
# In both recipes, the source is **two places before "to"**. We choose scores that use this rule:
#
# - The latent score of "to" is 4, and all other latent scores are 0.
# - Every word $i$ has the active score 4 at the position $i - 2$, if there is one, and 0 at all others.
#
# So the latent weight of "to" is $e^4 / (e^4 + 7) = .886$, because there are eight words.

# %%


def by_hand(words, step):
    """Return latent scores, 4 at "to", and active scores, 4 where word i points to i + step."""
    return 4.0 * np.array([word == "to" for word in words]), 4 * np.eye(len(words), k=step)


words, n = sentences[0], 8  # S
latent_scores, active_scores = by_hand(words, -2)  # (S,), (S, S)
v = rng.standard_normal((n, 3))  # (S, L)

l_w, _ = softmax(latent_scores)  # (S,) the latent weights
d_w, _ = softmax(active_scores)  # (S, S) rows sum to 1
w = {"columns": d_w.T @ l_w, "rows": d_w @ l_w}  # (S,)
unit = {name: w[name] / w[name].sum() for name in w}  # (S,) the active weights
for name in w:
    print(f"{name:8} w =", w[name].round(3), "  sum", w[name].sum().round(3))

# %% [markdown]
# The function `latent_attend` of the package returns the same. A check compares both with loops over the
# pairs of words.

# %%
o = {}
for name in w:
    o[name], cache = latent.latent_attend(latent_scores, active_scores, v, orientation=name)
    print(f"{name:8} o =", o[name])
show(cache)

# %% tags=["check"]
important = [np.exp(s) for s in latent_scores]
w_slow = {"columns": np.zeros(n), "rows": np.zeros(n)}
for i in range(n):
    pointing = [np.exp(s) for s in active_scores[i]]
    for j in range(n):
        d_ij = pointing[j] / sum(pointing)
        w_slow["columns"][j] += important[i] / sum(important) * d_ij
        w_slow["rows"][i] += d_ij * important[j] / sum(important)
for name, slow in w_slow.items():
    _, seen = latent.latent_attend(latent_scores, active_scores, v, orientation=name)
    assert_allclose(w[name], slow, rtol=1e-12)
    assert_allclose(seen.weights, unit[name], rtol=1e-12)
    o_slow = sum(slow[j] / sum(slow) * v[j] for j in range(n))
    assert_allclose(o[name], o_slow, rtol=1e-9)

# %% tags=["plot"]
figure = attention_map(d_w, words, words, numbers=True, title="D: where word i points")
show_figure(figure, "20_pointing", "By hand: every word points two places back, if possible")
stages = {"latent": l_w, "active, columns": unit["columns"], "active, rows": unit["rows"]}
style = {"colour": "r", "columns": words, "numbers": True, "shade": True}
figure = cell_grid(np.stack(list(stages.values())), rows=list(stages), **style)
caption = "Columns: the word that “to” points to; rows: the word that points to “to”"
show_figure(figure, "20_orientations", caption)

# %% [markdown]
# In the orientation "columns", "to" points two places back, to "instagram". This word gets the active
# weight .79. It is the source, as wanted.
#
# In the orientation "rows", the same $D$ gives the largest weight, .66, to "dropbox". This is the word that
# points to "to": it stands two places after it.
#
# **Question.** How must the active scores change, so that "rows" finds the source?
#
# <details><summary>Answer</summary>
# The source must point to "to", which stands two places after it. So every word must point two places
# ahead, to $i + 2$, and not to $i - 2$.
# </details>

# %%
for words in sentences:
    for name, step in (("columns", -2), ("rows", 2)):
        _, seen = latent.latent_attend(*by_hand(words, step), np.eye(8), orientation=name)
        found = words[seen.weights.argmax()]
        print(f"{name:8} {step:+} places: {found:10} {seen.weights.max():.2f}  of", *words)
        assert found == {4: "instagram", 6: "dropbox"}[words.index("to")]

# %% tags=["check"]
assert_allclose([l_w[4], unit["columns"][2], unit["rows"][6]], [0.886, 0.791, 0.662], atol=5e-4)
assert_allclose([w["columns"].sum(), w["rows"].sum()], [1, 1.189], atol=5e-4)

# %% [markdown]
# Both orientations can solve the task, but they need different knowledge. In "columns", the state at "to"
# must contain the position of the source. In "rows", the state at the source must contain the position of
# "to".
#
# ## Why divide by the sum?
#
# The sum of $w$ was 1 in "columns" and 1.189 in "rows". The reason is that only the *rows* of $D$ sum to 1:
#
# $$\begin{aligned}
# \mathrm{columns:} \quad \sum_j w_j &= \sum_i l_i \sum_j D_{ij} = \sum_i l_i = 1 \\
# \mathrm{rows:} \quad \sum_i w_i &= \sum_j l_j \sum_i D_{ij}
# \end{aligned}$$
#
# In the second line, the inner sum is the sum of column $j$ of $D$. It can be any number from 0 to S. So
# the division is needed in "rows", and it changes nothing in "columns".

# %% [markdown]
# ## The columns of V are positions
#
# The number $(e_i V)_j$ belongs to the *position* $j$, counted from the start of the sentence. It does not
# depend on the word at this position.
#
# **Question.** "to" is at position 4 in one recipe and at position 6 in the other, counted from 0. It must
# point to position 2 and to position 4. Suppose that $e_i$ is the embedding of the word, without any
# position information. Is this possible?
#
# <details><summary>Answer</summary>
# No. Both occurrences of "to" have the same vector, so they have the same row of D. Then they point to the
# same position.
# </details>

# %%
table = {word: rng.standard_normal(6) for word in sorted({*sentences[0], *sentences[1]})}
bare = np.array([[table[word] for word in words] for words in sentences])  # (B, S, E)
layer = LatentAttention(6, 11, rng=rng, dtype=np.float64)  # for J = 11 positions
o, cache = layer.forward(bare)
print("row of “to” at position 4:", cache.active[0, 4].round(2))
print("row of “to” at position 6:", cache.active[1, 6].round(2))

# %% tags=["check"]
assert_allclose(cache.active[0, 4], cache.active[1, 6], rtol=1e-12)

# %% [markdown]
# So $e$ must contain information about positions. The model of lesson 20.4
# (`20_4_training_latent_attention`) uses the states of a recurrent network for this.
#
# ## Padding
#
# A mask of shape (B, S) is False at padding. The layer uses it three times. Two uses are the softmax of $l$
# and the softmax of each row of $D$. The third use sets the rows of $D$ that belong to padding to 0. So
# padding gets no weight, and it points to no word. The cell adds three places of padding to eight words.

# %%
padded = np.concatenate([bare, rng.standard_normal((2, 3, 6))], 1)  # (B, S + 3, E)
mask = np.arange(11) < np.array([[8], [8]])  # (B, S + 3)
o_padded, seen = layer.forward(padded, mask=mask)
print("active weights", seen.weights[0].round(2))
print(f"the outputs differ by at most {abs(o_padded - o).max():.0e}")

# %% tags=["check"]
assert_allclose(o_padded, o, rtol=1e-12)
assert not seen.weights[:, 8:].any()

# %% [markdown]
# ## What the source documents say
#
# > - *The components of the Transformer* explains the idea without a formula. So it does not say that the
# >   columns of V are positions.
# > - **Orientation.** The paper writes A l, with a softmax in each *column* of A. So A is Dᵀ, and this is
# >   "columns". The authors' program computes D l, which is "rows". The package has both.
# > - **Normalization.** The authors' program divides by √(Σ w²). The package divides by Σ w, unless you ask
# >   for `measure="euclidean"`.
# > - The program adds a learned vector for each position to the states. It uses these sums as the values.
# >   The model of lesson 20.4 uses the word embeddings as the values.
# > - The program has no mask. It fills all descriptions up to one length.

# %% [markdown]
# ## Summary
#
# - Two-stage attention computes latent weights $l$ and a matrix $D$, whose row $i$ says where word $i$
#   points.
# - In "columns", $w = D^\top l$: a word gets weight if important words point to it.
# - In "rows", $w = D\,l$: a word gets weight if it points to important words.
# - The active weights are $w$ divided by its sum; the division is needed only in "rows".
# - The columns of $V$ are positions, so the input $e$ must contain information about positions.

# %% [markdown]
# ## Questions
#
# **Question.** All entries of $D$ are equal. What are the active weights in the two orientations?
#
# <details><summary>Answer</summary>
# They are all 1/S in both. In "columns" each word gets Σᵢ lᵢ / S = 1/S. In "rows" each word gets Σⱼ lⱼ / S
# = 1/S.
# </details>
#
# **Question.** Why does the layer need to know the length of the longest sentence?
#
# <details><summary>Answer</summary>
# Because V has one column for each position. A longer sentence would have positions without a column.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 20` lists the exercises of this chapter. They belong to lesson 20.3.
#
# - By hand: suppose that only the softmax of $l$ includes the padding, while the other two uses of the mask
#   stay as above. Show that the active weights do not change.
# - In the terminal, print the weights for a rule by which each word points three places back:
#   `!latent.latent_attend(*by_hand(sentences[1], -3), np.eye(8), orientation="columns")[1].weights`
#
# **Next**: lesson 20.3 (`20_3_the_backward_pass_of_latent_attention`), which derives the gradients.

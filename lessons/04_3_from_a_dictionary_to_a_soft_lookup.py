# %% [markdown]
# # 4.3 · From a dictionary to a soft lookup
#
# *About 20 minutes. You need: attention weights (lesson 4.1, `04_1_attention_without_parameters`), the
# derivative by a complex step (lesson 0.3, `00_3_measured_derivatives`).*
#
# **After this lesson you can**
#
# - explain the words query, key and value with a Python dictionary;
# - turn a dictionary into a soft lookup that has an answer for every query;
# - explain why a network can learn with a soft lookup, and not with a hard one.
#
# `each layer: x → [ATTENTION] → add & norm → feed-forward → add & norm → y`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.functional.attention import attention
from npformer.functional.softmax import softmax
from npformer.learn.course import show_figure
from npformer.plots import Step, curves, gradient_flow

h = 1e-20  # the size of a complex step

# %% [markdown]
# ## A lookup in a dictionary
#
# The words query, key and value come from databases and dictionaries. A dictionary stores pairs of a key and
# a value. You give it a query. If one of the keys is equal to the query, you get its value. This is a
# **lookup**.
#
# As an example we take three colours of the colour wheel. The key of a colour is its angle: red is at 0°,
# green at 120° and blue at 240°. The value of a colour is its triple (red, green, blue). What happens if we
# ask for the angle 40°?

# %%
wheel = {0: [1.0, 0, 0], 120: [0, 1.0, 0], 240: [0, 0, 1.0]}  # angle: (red, green, blue)
try:
    print(wheel[40])
except KeyError as error:
    print("KeyError:", error)

# %% [markdown]
# A dictionary cannot say that a query is *nearly* right. A network cannot learn with such a lookup, because
# most queries have no answer, and there is no gradient. We change the lookup in two steps.
#
# **Step 1: take the nearest key.** We write each angle as an arrow, a vector of length 1. Then the nearest
# key is the one with the largest dot product with the query. It gets the weight 1, and all others get the
# weight 0. The product of the weights and the values is the answer. This is a **hard lookup**. It has an
# answer for every query.

# %% tags=["plot"]
angles = np.array([0, 120, 240, 40]) * np.pi / 180
arrows = np.stack([np.cos(angles), np.sin(angles)], -1)  # (4, 2): three keys and a query
products = arrows[3:] @ arrows[:3].T  # (1, S)
arrays = {"query": arrows[3:], "keys": arrows[:3], "products": products, "values": np.eye(3)}
arrays["weights"] = 1.0 * (products == products.max())
arrays["answer"] = arrays["weights"] @ arrays["values"]
steps = {
    "products": Step("dot", ["query", "keys"]),
    "weights": Step("max", ["products"]),
    "answer": Step("sum", ["weights", "values"]),
}
axes = {"query": "1 2", "keys": "S 2", "products": "1 S", "weights": "1 S", "values": "S 3"}
layout = "query products weights answer \n keys . values ."
figure = gradient_flow(layout, arrays, steps, axes=axes | {"answer": "1 3"})
show_figure(figure, "04_3_lookup", "A hard lookup: only the nearest key gets a weight")

# %%


def arrow(degrees):
    """Shapes: degrees (...) -> (..., 2), of length 1."""
    return np.stack([np.cos(degrees * np.pi / 180), np.sin(degrees * np.pi / 180)], -1)


keys = arrow(np.array(list(wheel)))  # (S, 2)
values = np.array(list(wheel.values()))  # (S, 3)
query = arrow(np.array([40.0]))  # (1, 2)

nearest = 1.0 * (np.arange(3) == (query @ keys.T).argmax(-1))  # (S,)
print("nearest  ", nearest @ values)

# %% [markdown]
# **Step 2: replace the maximum by a softmax.** Now every key gets a positive weight, and the answer is an
# average of the values. This is a **soft lookup**.
#
# The length of the query decides how similar a soft lookup is to the lookup in a dictionary. A query that is
# three times as long has scores that are three times as large. Then the differences between the scores are
# larger too, and the softmax gives more weight to the largest.
#
# The next cell computes the soft lookup for queries of length 1, 4 and 64. It also prints a derivative. It
# tells how much the weight of green changes when the query is turned by one degree. We compute it with a
# complex step: we turn the query by a small imaginary angle.

# %%
answers, slopes = {}, {}
for length in (1, 4, 64):
    mixed, _ = attention(length * query, keys, values, scale=1.0)
    weight, _ = softmax(length * arrow(40 + 1j * h) @ keys.T)
    answers[length], slopes[length] = mixed[0], weight[1].imag / h
    print(f"length {length:2}", mixed[0].round(3), f"  slope {slopes[length]:.0e} per degree")

# %% tags=["check"]
assert_allclose(answers[4][:2], [0.91, 0.09], atol=0.005)
assert abs(answers[64] - nearest).max() < 1e-6
assert_allclose(slopes[64], 6e-17, atol=0.5e-17)

# %% [markdown]
# A query of length 4 gets the answer .91 red and .09 green. This is a red that is slightly orange. A query of
# length 64 gets the same answer as the hard lookup, with an error below one millionth. So the hard lookup is
# the limit of the soft lookup for long queries.
#
# **Question.** The hard lookup is cheaper, because it reads only one value. Why do we not use it in a
# network?
#
# <details><summary>Answer</summary>
# If the query changes a little, the nearest key stays the same, so the answer does not change. The derivative
# is 0, and training cannot improve the query.
# </details>
#
# The figure shows this. It turns the query from 0° to 240° and draws the weight of green.

# %% tags=["plot"]
angles = np.linspace(0, 240, 481)  # (N,)
turned = arrow(angles)  # (N, 2)
of_green = [softmax(length * turned @ keys.T)[0][:, 1] for length in (1, 4, 64)]
of_green.append(1.0 * ((turned @ keys.T).argmax(-1) == 1))  # the hard lookup
figure = curves(
    np.array(of_green),
    angles,
    labels=["length 1", "length 4", "length 64", "nearest"],
    xlabel="angle of the query, in degrees",
    ylabel="weight of the key at 120°",
    legend=True,
)
caption = "Longer queries choose more sharply; the hard lookup is constant except for two jumps"
show_figure(figure, "04_soft", caption)

# %% tags=["check"]
assert_allclose(np.diff(of_green[3]).nonzero()[0] / 2, [60, 179.5], atol=0.5)  # the two jumps

# %% [markdown]
# For the hard lookup the curve is constant, so its derivative is 0. At 60° and 180° it jumps, and has no
# derivative there. *The components of the Transformer* says the same of hard attention: the function argmax
# is not differentiable, and training needs other methods than gradients alone. Chapter 19 shows them.
#
# The soft lookup has a gradient, but this has a price: every value takes part in every answer. Also, very
# long queries bring the problem of the hard lookup back. At 40° and with length 64, the slope is only
# $6 \cdot 10^{-17}$ per degree.
#
# **Question.** At which angle between 0° and 120° does the soft lookup give red and green the same weight?
# Does this depend on the length of the query?
#
# <details><summary>Answer</summary>
# At 60°. There, the angles between the query and the two keys are equal, so both dot products are equal. This
# is true for every length.
# </details>

# %% [markdown]
# **Your turn.** In the terminal, ask for other angles with
# `!softmax(4 * arrow(np.array([100.0])) @ keys.T)[0] @ values`. At which angle is the answer almost pure
# green?

# %% [markdown]
# ## Summary
#
# - A dictionary returns the value of a key only if the query is equal to this key.
# - A hard lookup returns the value of the nearest key. Its derivative is 0 almost everywhere.
# - A soft lookup returns an average of all values, with weights from a softmax over the scores.
# - Longer queries give more weight to the nearest key; in the limit, the soft lookup is the hard one.
# - Attention is a soft lookup: it has an answer and a gradient for every query.

# %% [markdown]
# ## Questions
#
# **Question.** All keys of a lookup are equal. What is the answer for any query?
#
# <details><summary>Answer</summary>
# All scores of a query are equal. With S keys, all weights are 1/S. The answer is the mean of the values.
# </details>
#
# **Question.** The query is the zero vector. What is the answer?
#
# <details><summary>Answer</summary>
# All scores are 0, so all weights are 1/S, and the answer is again the mean of the values.
# </details>

# %% [markdown]
# ## Exercises
#
# Solve these in Python. The command `npformer exercise list 4` lists the exercises of this chapter that are
# graded.
#
# - Add yellow to the wheel, with the angle 60° and the value (1, 1, 0). What is the answer for 40° now, with
#   a query of length 4?
# - For which length of the query does the soft lookup at 40° give red the weight .99? Find it by trial.
#
# **Next**: lesson 4.4 (`04_4_query_key_and_value`), where each role gets its own weight matrix.

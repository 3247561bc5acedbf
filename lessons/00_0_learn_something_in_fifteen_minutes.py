# %% [markdown]
# # 0.0 · Learn something in fifteen minutes
#
# *About 25 minutes; after fifteen you have trained a model. You need: a little NumPy, and the derivative of
# x².*
#
# **After this lesson you can**
#
# - draw a computation as a graph, and compute its gradients by hand, from right to left;
# - train a model in ten update steps, and watch its loss fall;
# - do the same with a vector of weights, and see what such a model cannot learn.
#
# `[TRAINING STEP]: forward pass → loss → backward pass → update`

# %%
import numpy as np

from npformer.learn.course import show_figure
from npformer.plots import computation_graph, curves, score_bars

# %% [markdown]
# ## Three numbers

# %% tags=["plot"]
operations = {"p": "w × x", "e": "p − t", "L": "e ²"}
values = {"w": 0.5, "x": 2.0, "t": 5.0, "p": 1.0, "e": -4.0, "L": 16.0}
figure = computation_graph(operations, values)
caption = "The forward pass: from the three numbers on the left to the loss L"
show_figure(figure, "00_0_forward", caption)

# %% [markdown]
# The picture shows the smallest model that can learn. It multiplies its **input** $x$ by a **weight** $w$.
# The result is its **prediction** $p$. The answer that we want is the **target** $t$. Read the picture from
# left to right:
#
# 1. The prediction is $p = w x = 0.5 \cdot 2 = 1$.
# 2. The error is $e = p - t = 1 - 5 = -4$. The prediction is too small.
# 3. The **loss** is $L = e^2 = 16$. It says how wrong the model is. If the prediction were right, the loss
#    would be 0.
#
# This computation is called the **forward pass**.

# %%
x, t = 2.0, 5.0  # the input and the target, which stay as they are
w = 0.5  # the weight, which the model may change
p = w * x
e = p - t
loss = e * e
print(f"prediction {p}, error {e}, loss {loss}")

# %% tags=["check"]
assert {"w": w, "x": x, "t": t, "p": p, "e": e, "L": loss} == values

# %% [markdown]
# ## Which way should the weight move?
#
# To reduce the loss, the model needs to know one thing: if $w$ becomes a little larger, does $L$ become
# larger or smaller, and how fast? The answer is the derivative of $L$ with respect to $w$. It is called the
# **gradient** of $w$. This course always writes it as $dw$, short for $dL/dw$.
#
# To find it, we walk through the graph from right to left. We begin with $dL = dL/dL = 1$, because the loss
# changes exactly as fast as itself. An operation turns an input into a result. The gradient of the input is
# the gradient of the result, times the derivative of the result with respect to the input. This is the
# **chain rule**.

# %% tags=["plot"]
slopes = {"L": 1.0, "e": -8.0, "p": -8.0, "w": -16.0}
figure = computation_graph(operations, values, slopes)
caption = "The backward pass: the gradients, from right to left; x and t stay as they are"
show_figure(figure, "00_0_backward", caption)

# %% [markdown]
# - If $e$ changes a little, $L = e^2$ changes by $2e$ times as much. So $de = 2e = -8$.
# - $e = p - t$ changes as fast as $p$. So $dp = de = -8$.
# - $p = w x$ changes $x$ times as fast as $w$. So $dw = dp \cdot x = -8 \cdot 2 = -16$.
#
# This computation is called the **backward pass**. Each of its lines belongs to one line of the forward pass.

# %%
de = 2 * e  # loss = e * e
dp = de  # e = p - t
dw = dp * x  # p = w * x
print(f"dw = {dw}")

# %% [markdown]
# Is this gradient right? We can measure it. Make $w$ larger by 0.001, compute the loss again, and divide the
# change of the loss by 0.001.

# %%
larger = ((w + 0.001) * x - t) ** 2
print(f"measured: {(larger - loss) / 0.001:.3f}")

# %% tags=["check"]
assert dw == -16
assert abs((larger - loss) / 0.001 - dw) < 0.01

# %% [markdown]
# The measurement differs from the gradient by only 0.004, because $L$ is not a straight line. Lesson 0.3
# (`00_3_measured_derivatives`) is about such errors.
#
# ## Ten steps
#
# The gradient is negative: a larger $w$ gives a smaller loss. So the model should increase $w$. In general it
# moves each weight *against* its gradient:
#
# $$w \leftarrow w - \eta\, dw$$
#
# Here $\eta$ is the **learning rate**, a small positive number. One forward pass, one backward pass and one
# such **update** together are a **training step**. The next cell takes ten of them.

# %%
w, losses = 0.5, []
for _ in range(10):
    p = w * x  # forward
    e = p - t
    losses.append(e * e)
    dp = 2 * e  # backward
    dw = dp * x
    w = w - 0.05 * dw  # update
print("loss", *(f"{loss:.3f}" for loss in losses))
print(f"w = {w:.3f}, prediction {w * x:.3f}")

# %% tags=["plot"]
figure = curves(losses, range(10), xlabel="step", ylabel="loss", title="The loss falls")
show_figure(figure, "00_0_loss", "The loss in ten training steps, from 16 to .002")

# %% tags=["check"]
assert losses[0] == 16
assert losses == sorted(losses, reverse=True)
assert abs(losses[-1] - 0.0016) < 1e-4
assert abs(w * x - 5) < 0.03

# %% [markdown]
# The loss fell from 16 in the first step to 0.002 in the last. Now the prediction is 4.976. **You have
# trained a model.** To train a large language model, one repeats the same three things: forward pass,
# backward pass, update. Such a model only has more weights, and a longer formula.
#
# **Your turn.** Take the ten steps again with a learning rate of 0.1, and then with 0.3. In the terminal, a
# line after `!` is run as Python: type `!w = 0.5`, and then
# `!for _ in range(10): w = w - 0.3 * 2 * (w * x - t) * x; print((w * x - t) ** 2)`.
#
# **Question.** With the learning rate 0.3 the loss *grows*, although each step moves $w$ against its
# gradient. Why?
#
# <details><summary>Answer</summary>
# The steps are too long. The first one changes $w$ by $0.3 \cdot 16 = 4.8$, from 0.5 to 5.3. The right weight
# is 2.5, so the step jumps over it and ends farther away than it began. The next step jumps back even
# farther.
# </details>

# %% [markdown]
# ## A vector of weights
#
# Now the model learns about words. Here are six reviews with their stars, from −2 to 2. The model has one
# weight for each word, and it predicts the sum of the weights of the words in a review. It does not know any
# of these words, so all weights begin at 0.

# %%
words = ["good", "bad", "great", "boring", "film", "music"]
reviews = ["good film", "bad film", "good music", "bad music", "great film", "boring music"]
t = np.array([1.0, -1.0, 1.0, -1.0, 2.0, -2.0])  # (N,) the stars, for N = 6 reviews
x = np.array([[float(word in r.split()) for word in words] for r in reviews])  # (N, D), D = 6
print(x)  # a row for each review, a column for each word

# %% [markdown]
# A product with a matrix gives all six predictions at once: entry 0 of `x @ w` is the weight of "good" plus
# the weight of "film". Three things differ from before. First, the loss is the mean of the six squared
# errors, so $dp$ is divided by 6. Second, a word can occur in several reviews, so its gradient is a *sum*:
# the gradient of "good" is $dp_0 + dp_2$. The product with the transposed matrix, `x.T @ dp`, computes these
# sums. Third, the learning rate is 0.5.

# %%


def train(x, t, steps):
    """Return the weights after some training steps, and the loss of each step."""
    w, losses = np.zeros(x.shape[1]), []  # (D,)
    for _ in range(steps):
        p = x @ w  # (N, D) @ (D,) -> (N,)
        e = p - t
        losses.append((e * e).mean())
        dp = 2 * e / len(t)  # (N,)
        dw = x.T @ dp  # (D, N) @ (N,) -> (D,)
        w = w - 0.5 * dw
    return w, losses


w, losses = train(x, t, 100)
print(f"loss {losses[0]:.3f} → {losses[-1]:.6f}")

# %% tags=["plot"]
figure = score_bars([w.round(2) + 0], [words], title="What the model has learned")
show_figure(figure, "00_0_words", "The weight of each word after 100 steps; all began at 0")

# %% tags=["check"]
assert losses[0] == 2
assert losses[-1] < 1e-5
assert np.abs(w - [1, -1, 2, -2, 0, 0]).max() < 0.01
assert abs(w[:4].sum() - w[4:].sum()) < 1e-12  # the adjectives and the nouns
# move each weight alone from 0
measured = [((x @ (step * 1e-6) - t) ** 2).mean() for step in np.eye(6)]
gradient = x.T @ (2 * (0 - t) / 6)
assert np.abs((np.array(measured) - losses[0]) / 1e-6 - gradient).max() < 1e-5

# %% [markdown]
# Nobody told the model which words praise a film. It found that "great" is worth 2 stars and "boring" −2, and
# that "film" and "music" say nothing. It can also rate a review that it has never seen: for "great music" it
# predicts 2 stars.
#
# Other weights would give the same predictions: those of the adjectives could all be larger by 1, and those
# of "film" and "music" smaller by 1. Why does the model not find them? In each step, a review changes the
# weights of its adjective and its noun by the same number. So the sum of the adjectives' weights and that of
# the nouns' weights, both 0 at first, stay equal. With the other weights they would be 4 and −2.
#
# ## What this model cannot learn
#
# Add two reviews: "not good film" with −1 star, and "not bad film" with 1 star.

# %%
words.append("not")
reviews += ["not good film", "not bad film"]
x = np.array([[float(word in review.split()) for word in words] for review in reviews])
t = np.append(t, [-1.0, 1.0])
w, losses = train(x, t, 1000)
print(f"loss {losses[0]:.3f} → {losses[-1]:.6f}")
for word, weight in zip(words, w.round(2) + 0, strict=True):  # −0 + 0 is 0
    print(f"{word:7} {weight:5.2f}")

# %% tags=["check"]
assert abs(losses[-1] - 2 / 3) < 1e-6
assert abs(w[-1]) < 1e-3
assert abs(w[0] - 1 / 3) < 1e-3

# %% [markdown]
# The loss stops at 0.667, however many steps you take. Even "good", which the model knew before, is now worth
# only 0.33. "good film" should give 1, so "not" must be −2 in "not good film", because 1 − 2 = −1. In "not
# bad film" it must be 2, because −1 + 2 = 1. But "not" has a single weight, and training leaves it at 0.
#
# So no weights are right for all reviews. The model needs another *formula*, in which the contribution of a
# word depends on the words around it. Lesson 9.1 (`09_1_the_feed_forward_network`) learns these reviews with
# such a formula, and chapter 4 begins with another one, **attention**.

# %% [markdown]
# ## Summary
#
# - The forward pass computes the prediction and the loss; the loss says how wrong the prediction is.
# - The gradient of a weight says how fast the loss changes when the weight changes.
# - The backward pass computes the gradients from right to left, one line for each line of the forward pass.
# - An update moves each weight against its gradient, by the learning rate times the gradient.
# - A model that adds one weight for each word cannot learn what "not" does.

# %% [markdown]
# ## Questions
#
# **Question.** In the graph of the three numbers, what is $dx$, the gradient of the input?
#
# <details><summary>Answer</summary>
# $p = w x$ changes $w$ times as fast as $x$. So $dx = dp \cdot w = -8 \cdot 0.5 = -4$. The model does not
# change its input, but in a larger model the input comes from an earlier part, which needs this gradient.
# </details>

# %% [markdown]
# ## Exercises
#
# - Give the model of three numbers a **bias**: $p = w x + b$, with $b = 0$ at the beginning. Which line of
#   the backward pass is new? Train both numbers.
# - Replace the loss by $L = |e|$. What is $de$ now? Take 30 steps with the rate 0.06, and explain
#   what the prediction does near the target.
# - Write three reviews of your own, with new words, and train on all of them.
# - By hand: in the first step of the six reviews, how large is the gradient of each word? Which two words get
#   a gradient, although their weights are 0 in the end?
#
# **Next**: lesson 0.1 (`00_1_a_transformer_at_work`), a model with millions of weights at work.

# %% [markdown]
# # 19.5 · Soft and hard attention compared
#
# *About 20 minutes. You need: the score-function estimator with a baseline (lessons 19.2,
# `19_2_the_score_function_estimator`, and 19.3, `19_3_baselines`), the straight-through estimator (lesson
# 19.4, `19_4_entropy_and_straight_through`).*
#
# **After this lesson you can**
#
# - compare four ways to train attention on the same task, with several seeds;
# - say what the baseline and the argmax contribute;
# - name a task for which soft attention is better in principle.
#
# `attention: queries and keys → scores → mask → softmax → [MEAN OF VALUES]`

# %%
import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.learn.experiments.hard_attention import learn
from npformer.models.place_reader import METHODS, PLACES, Reader, make_places
from npformer.plots import curves

rng = np.random.default_rng(7)
threadpool_limits(1, user_api="blas")  # small products run fastest on one thread: chapter 16

# %% [markdown]
# ## The task
#
# An example has six places. Each place has a name and one of five symbols. The query is one of the names, and
# the model must answer with the symbol at the place with this name. So attention should read exactly one
# place.

# %% tags=["plot"]
figure = shape_flow(
    "query context log_p \n memory . .",
    {"context": "attention: query memory", "log_p": "linear, log softmax: context"},
    {"query": "1 S", "memory": "S D", "context": "1 D", "log_p": "1 C"},
)
caption = "The model, for one example: S = 6 places, C = 5 symbols, and D = S + C"
show_figure(figure, "19_5_shapes", caption)

# %% [markdown]
# The model is `Reader` in `npformer/models/place_reader.py`. The training is in
# `npformer/learn/experiments/hard_attention.py`. There are four methods:
#
# - "soft": soft attention;
# - "hard": the score function with a moving average as the baseline;
# - "hard, no baseline": the same with b = 0;
# - "straight through": hard attention with the straight-through estimator.
#
# We first check the gradients of the model with soft attention, and print its cache.

# %%
examples = make_places(4, rng)
model = Reader("soft", rng=rng)
report = gradcheck(model, examples.query, examples.memory)
print("all gradients correct:", report.ok)
log_probs, cache = model.forward(examples.query, examples.memory)
show(cache)

# %% tags=["check"]
assert report.ok
assert_allclose(np.exp(log_probs).sum(-1), 1)

# %% [markdown]
# ## Training
#
# Each method is trained with five seeds, 300 steps of Adam each. After training, hard attention does not
# draw. It reads the place with the largest weight, the **argmax**.
#
# **Question.** Which method do you expect to learn fastest, and which slowest?
#
# <details><summary>Answer</summary>
# Soft attention should be fastest, because its gradient is exact. The score function without a baseline
# should be slowest, because its estimate has the largest variance.
# </details>

# %%
runs = {method: [learn(method, steps=300, seed=seed) for seed in range(5)] for method in METHODS}
right = np.array([[run.accuracy for run in made] for made in runs.values()])  # (4, seeds)
paths = np.array([[run.curve for run in made] for made in runs.values()]).mean(1)  # (4, steps)
for method, found, path in zip(METHODS, right, paths, strict=True):
    correct = f"{found.mean():6.1%} ± {found.std():.1%}"
    print(f"{method:18} correct: {correct:16} log p(y), last 50 steps: {path[-50:].mean():+.2f}")

# %% tags=["check"]
assert right[2].mean() < 0.95 < 0.98 < right[[0, 1, 3]].mean(1).min()
assert (np.diff(paths[[2, 1, 3, 0], -50:].mean(1)) > 0).all()
assert right[1].min() > 0.98 > right[2].min()

# %% tags=["plot"]
smooth = paths.reshape(4, 30, 10).mean(-1)  # means of ten steps
figure = curves(smooth, np.arange(10, 301, 10), labels=METHODS, xlabel="step", ylabel="log p(y)")
caption = "log p(y), mean of five seeds; hard attention reads drawn places; a guess has −1.61"
show_figure(figure, "19_5_learning", caption)

# %% [markdown]
# **The baseline matters.** With the baseline, all five seeds have learned the task after 300 steps. Without
# it, some of them have not.
#
# The straight-through estimator is as accurate, and it learns faster. This does not contradict its bias. In
# this task, the right place is better than any average of places. So the gradient of soft attention points in
# the right direction. **An easy task does not reveal a bias.**
#
# Soft attention has the highest log p(y). The other methods draw a place during training. Their curves show
# log p(y) for the drawn places, and a wrong place lowers it.

# %% [markdown]
# ## Argmax, or go on drawing?
#
# **Question.** Why does hard attention read the argmax after training, and not a random place?
#
# <details><summary>Answer</summary>
# During training, the draws are needed to learn about all places. After training, the place with the largest
# weight is the best guess, and a draw would sometimes read another one.
# </details>
#
# The code measures both on 1,000 new examples. It also asks another question about the same examples: which
# symbol occurs most often at the six places? An average with equal weights contains the counts of all
# symbols, so soft attention can answer it. Hard attention reads one place. Its best answer is the symbol that
# it reads. We compute how often this answer is right, if the most frequent symbol is unique.

# %%
new = make_places(1000, np.random.default_rng(0))
reader, shares = runs["hard"][0].reader, {}
for way, settings in {"argmax": {}, "a draw": {"train": True, "rng": rng}}.items():
    guess = reader.forward(new.query, new.memory, **settings)[0][:, 0].argmax(-1)  # (B,)
    shares[way] = (guess == new.symbol).mean()

count = new.memory[:, :, PLACES:].sum(1)  # (B, C) how often each symbol occurs
second, first = np.sort(count, -1)[:, -2:].T  # (B,)
shares["most frequent symbol, from one place"] = (first / PLACES)[first > second].mean()
for way, share in shares.items():
    print(f"{way:37} correct: {share:.1%}")

# %% tags=["check"]
argmax, draw, frequent = shares.values()
assert argmax > draw > 0.9
assert_allclose(frequent, 0.5, atol=0.05)

# %% [markdown]
# The argmax is better than a draw. If the most frequent symbol is unique, it is found from one place in only
# about half of the examples. So hard attention is enough for the first question, but not for the second one.
#
# **Your turn.** In the terminal, try `!learn("hard", steps=300, draws=4).accuracy`. What do four draws for
# each example change?

# %% [markdown]
# ## Summary
#
# - In our task, soft attention, the score function with a baseline and the straight-through estimator learn
#   to read the right place within 300 steps.
# - Without a baseline, the score function learns more slowly, and some seeds are not finished.
# - The straight-through estimator is fast here: its variance is small, and in this task its bias does no
#   harm.
# - After training, hard attention reads the argmax, which is better than a draw.
# - If the answer depends on several places, soft attention is better in principle.

# %% [markdown]
# ## Questions
#
# **Question.** Why is soft attention used in almost all models today?
#
# <details><summary>Answer</summary>
# Its gradient is exact, so it needs no rewards, no baseline and no draws. And it can read several positions
# at once.
# </details>

# %% [markdown]
# ## Exercises
#
# The command `npformer exercise list 19` lists the exercises of this chapter.
#
# - With code: train "hard, no baseline" with 1,000 steps. Do all seeds learn the task?
# - With code: use `entropy_weight=0.1` in `learn`. Does it help the method without a baseline?
#
# **Next**: lesson 20.1 (`20_1_a_task_that_needs_word_order`), a task that leads to latent attention.

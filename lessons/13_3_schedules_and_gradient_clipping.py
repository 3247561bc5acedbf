# %% [markdown]
# # 13.3 · Learning-rate schedules and gradient clipping
#
# *About 30 minutes. You need: Adam and the length of its steps (lesson 13.2, `13_2_adam`).*
#
# **After this lesson you can**
#
# - compute the learning rate of the paper for each step, and explain its increase and its decrease;
# - shorten a gradient that is too long without changing its direction;
# - explain why this helps Adam, although Adam divides by the size of the gradient.
#
# `training: batch → model → loss → backward pass → [OPTIMIZER] → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.learn.course import show_figure
from npformer.learn.course.shapes import shape_flow
from npformer.nn import Linear
from npformer.plots import curves
from npformer.training.optimizer import Adam, clip_global_norm, constant, cosine, warmup
from npformer.training.presets import find_preset

rng = np.random.default_rng(13)

# %% [markdown]
# ## Two additions to Adam
#
# Lesson 13.2 used the same learning rate in all steps, and took each gradient as it was. Most trainings of
# Transformers change both:
#
# - A **learning-rate schedule** is a function that computes the learning rate from the number of the step.
# - **Gradient clipping** shortens gradients that are too long.
#
# The picture shows where they belong in a training step. P is the number of parameters.

# %% tags=["plot"]
figure = shape_flow(
    "s lr w' \n g g' .",
    {"lr": "schedule: s", "g'": "clip: g", "w'": "Adam: lr g'"},
    {"s": "1", "lr": "1", "g": "P", "g'": "P", "w'": "P"},
)
caption = "The schedule gives the learning rate, and clipping limits the length of g"
show_figure(figure, "13_3_shapes", caption)

# %% [markdown]
# ## The learning-rate schedule of the paper
#
# The sentence in which the paper introduces Adam is followed by this one (section 5.3):
#
# > We varied the learning rate over the course of training, according to the formula:
#
# We call the number of the step $s$, and the constant warmup_steps $w$. Then equation (3) of the paper is
#
# $$\mathrm{lrate} = d_{\mathrm{model}}^{-0.5} \cdot \min\left(s^{-0.5},\ s \cdot w^{-1.5}\right)$$
#
# The second argument of the minimum increases linearly with $s$, and the first one decreases as $1/\sqrt{s}$.
# So the learning rate increases at first and then decreases. The first part is called the **warm-up**. It
# ends where both arguments are equal:
#
# $$\begin{aligned}
# s^{-0.5} &= s \cdot w^{-1.5} \\
# w^{1.5} &= s^{1.5} \\
# s &= w
# \end{aligned}$$
#
# There the learning rate has its maximum, $(d_{\mathrm{model}} \cdot w)^{-0.5}$. The paper uses w = 4,000.
#
# The function `warmup` of the package returns the schedule as a function of the step.

# %%
schedule = warmup(512, 4000)
for step in (1, 4000, 100_000):
    print(f"d_model  512, step {step:7,}   lr {schedule(step):.6e}")
wide = warmup(1024, 4000)
print(f"d_model 1024, step {4000:7,}   lr {wide(4000):.6e}")

# %% tags=["check"]
expected = [1.746928e-7, 6.987712e-4, 1.397542e-4]
assert_allclose([schedule(1), schedule(4000), schedule(100_000)], expected, rtol=1e-6)
assert_allclose(wide(4000), 4.941059e-4, rtol=1e-6)
assert_allclose(schedule(4000), (512 * 4000) ** -0.5)

# %% [markdown]
# Each part of the formula has a reason:
#
# - **Why does it increase?** The first steps of Adam have the length lr for each parameter, even if the
#   gradient of the first batch is mostly noise. The means m̂ and v̂ are computed from few gradients. While
#   the steps are short, a wrong direction does little harm.
# - **Why does it decrease?** A step of Adam does not become shorter near the minimum. With a constant
#   learning rate, the parameters would continue to move back and forth around the minimum.
# - **Why does it depend on $d_{\mathrm{model}}$?** An output of a linear layer is a sum of $d$ products. If
#   the inputs have size 1 and each weight changes by lr, the output can change by $d \cdot \mathrm{lr}$. So
#   wider models need shorter steps.
#
# **Question.** At which step has the learning rate fallen to half of its maximum?
#
# <details><summary>Answer</summary>
# At step 16,000 = 4 · w. After the warm-up the learning rate is proportional to 1/√s, so four times as many
# steps give half the learning rate. It never reaches 0.
# </details>
#
# ### Two other schedules
#
# A schedule may also decrease to 0 at a given last step. The **cosine schedule** does so along half a period
# of a cosine (Loshchilov and Hutter, 2017). With $n$ steps in all, a warm-up of $w$ steps, and the maximum
# $p$, it is
#
# $$\mathrm{lr}(s) = \frac{p}{2} \left(1 + \cos\left(\pi \cdot \frac{s - w}{n - w}\right)\right)
# \qquad \text{for } s \ge w$$
#
# The simplest schedule is constant. The code that belongs to *一步步解析Attention is All You Need!* uses a
# constant learning rate. The figure compares the three.

# %% tags=["plot"]
s = np.arange(1, 20_001)
jianshu = find_preset("jianshu-demo").training  # the settings of this document's code
schedules = (schedule, cosine(schedule(4000), 20_000, 4000), constant(jianshu.learning_rate))
figure = curves(
    np.array([[rate(int(step)) for step in s] for rate in schedules]),
    s,
    labels=["the paper's", "cosine", "constant"],
    xlabel="step",
    ylabel="learning rate",
)
caption = "Two schedules with a warm-up of 4,000 steps, and a constant learning rate"
show_figure(figure, "13_schedules", caption)

# %% [markdown]
# ## Gradient clipping
#
# Sometimes the gradient of one batch is many times as long as those of all other batches. For example, the
# batch may contain a wrong translation. To limit its effect, we take the gradients of all parameters as one
# vector. If its length $|g|$ is larger than a constant $c$, we shorten it to the length $c$ (Pascanu et al.,
# 2013):
#
# $$g \leftarrow g \cdot \min\left(1, \frac{c}{|g|}\right), \qquad |g|^2 = \sum_{i=1}^{P} g_i^2$$
#
# All entries are multiplied by the same factor, so the direction of the gradient does not change.
#
# **Question.** One could also shorten the gradient of each tensor to the length $c$ separately. What would be
# the disadvantage?
#
# <details><summary>Answer</summary>
# The tensors would be multiplied by different factors, so the direction of the whole gradient would change. A
# step against it would no longer be a step in the direction in which the loss falls fastest.
# </details>

# %%
g = rng.standard_normal(1000)  # (P,)
clipped = g.copy()
length = clip_global_norm(clipped, 1.0)  # changes its argument, and returns the length before
print(f"length before {length:.2f}, after {np.linalg.norm(clipped):.2f}")

# %% tags=["check"]
assert_allclose(clipped, g * min(1, 1 / np.sqrt((g * g).sum())), rtol=1e-12)
assert_allclose([length, np.linalg.norm(clipped)], [np.linalg.norm(g), 1])

# %% [markdown]
# ### Does Adam need clipping?
#
# Adam divides by the size of the gradient, so one could think that it needs no clipping. We test this with a
# single parameter. Its gradient is 1 in every step, except at step 100, where it is 100. We record the length
# of each step, in units of lr, once without clipping and once with $c = 1$.

# %%
lengths = np.zeros((2, 500))
for row, longest in enumerate((np.inf, 1.0)):
    layer = Linear(1, 1, bias=False, dtype=np.float64)  # one parameter
    adam = Adam(layer)
    for step in range(1, 501):
        layer.grads[...] = 100.0 if step == 100 else 1.0
        clip_global_norm(layer.grads, longest)
        before = layer.values.copy()
        adam.step(1.0)
        lengths[row, step - 1] = abs(layer.values - before)[0]
short = int((lengths[0] < 0.5).sum())
print(f"length of step 100: {lengths[0, 99]:.2f} lr")
print(f"steps shorter than lr/2: {short}; the shortest: {lengths[0].min():.2f} lr")

# %% tags=["check"]
assert (short, round(lengths[0].min(), 2)) == (203, 0.12)
assert_allclose(lengths[1], 1, rtol=1e-6)
assert_allclose(lengths[0, 99], 0.72, atol=0.005)

# %% tags=["plot"]
figure = curves(
    lengths,
    np.arange(1, 501),
    labels=["not clipped", "clipped to 1"],
    xlabel="step",
    ylabel="length of a step, in lr",
)
caption = "One gradient of 100 at step 100 makes hundreds of later steps shorter"
show_figure(figure, "13_outlier", caption)

# %% [markdown]
# Step 100 itself is not too long: it has .72 times the normal length. But the following steps are too short.
# The mean $v$ of the squares remembers 100² for a long time, because β₂ = .98. The mean $m$ remembers 100 for
# a shorter time, because β₁ = .9. So for 203 steps the parameter moves by less than half the normal length.
#
# With clipping, the long gradient has no effect in this example. Therefore clipping is useful for Adam too.
#
# **Your turn.** In the terminal, print the cosine schedule near its end, for example with
# `!cosine(1.0, 100, 10)(95)`. Compare it with the schedule of the paper, `!warmup(1, 10)(95)`.

# %% [markdown]
# ## What the source documents say
#
# > - The code that *一步步解析Attention is All You Need!* links to uses Adam with the β₁ and β₂ of the paper.
# >   It differs in ε = 10⁻⁸ and in a constant learning rate of 10⁻⁴, without a warm-up. In npformer,
# >   `find_preset("jianshu-demo").training` has the same settings.
# > - *图解transformer* says that backpropagation adjusts the weights. None of the four documents says how
# >   large the steps are.
# > - *The components of the Transformer* and *Attention机制详解（二）* say that layer normalization and
# >   residual connections make training faster. That is the topic of chapter 8. The position of the norm is
# >   also important for the warm-up. A model with the norm after the sum, as in the paper, needs the warm-up
# >   most (Xiong et al., 2020).

# %% tags=["check"]
assert (jianshu.schedule, jianshu.learning_rate) == ("constant", 1e-4)
assert (jianshu.betas, jianshu.eps) == ((0.9, 0.98), 1e-8)

# %% [markdown]
# ## Summary
#
# - A learning-rate schedule computes the learning rate from the number of the step.
# - The paper's schedule increases linearly for w steps, and then decreases as 1/√s.
# - The warm-up keeps the first steps short, while m̂ and v̂ are computed from few gradients.
# - Gradient clipping multiplies the whole gradient by one factor, so that its length is at most c.
# - Without clipping, one long gradient makes many later steps of Adam too short, because v remembers it.

# %% [markdown]
# ## Questions
#
# **Question.** You double $d_{\mathrm{model}}$ and keep warmup_steps. How does the maximum of the learning
# rate change?
#
# <details><summary>Answer</summary>
# It is divided by √2, because it is (d_model · w) to the power −.5. The printed values for 512 and 1024 show
# this.
# </details>
#
# **Question.** A gradient has the length .3, and c = 1. What does clipping do?
#
# <details><summary>Answer</summary>
# Nothing. The factor is min(1, 1/.3) = 1. Clipping never makes a gradient longer.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 13` lists the exercises of this chapter.
#
# - `npformer exercise start warmup`: write formula (3) as a function that returns a function.
# - `npformer exercise start cosine-schedule`: write a schedule that increases linearly, and then decreases
#   like half a period of a cosine.
# - `npformer exercise start clip-gradient`: clip the gradient of all parameters. All of them are multiplied
#   by the same factor, in place.
#
# **Next**: lesson 13.4 (`13_4_the_training_loop`), which puts all parts together and trains a model.

# %% [markdown]
# # 19 · Hard attention, and gradients through a draw
#
# *25 minutes to read, 4 seconds to run. Lesson 4 for soft look-up, lesson 5 for the softmax's gradient.*
#
# **The question.** Soft attention reads a little of every value. Suppose that it may read one only, chosen at
# random, each with the probability that was its weight. No gradient comes back through a draw: a score that
# is a little higher changes nothing of what was drawn. How do the scores learn all the same? And how does one
# check a gradient that is another one each time?

# %%
import math
from itertools import product

import numpy as np
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from npformer import functional as F
from npformer import show
from npformer.checking import gradcheck
from npformer.learn.course import show_figure
from npformer.learn.experiments.hard_attention import learn
from npformer.models.place_reader import METHODS, PLACES, make_places
from npformer.nn.attention import MovingBaseline
from npformer.nn.attention.hard import estimate, expected_loss, with_and_without_baseline
from npformer.plots import Grid, cell_product, curves

rng = np.random.default_rng(7)
threadpool_limits(1, user_api="blas")  # small products are quickest on one thread: lesson 16
words = ["the", "dog", "saw", "birds"]

# %% [markdown]
# ## The passage
#
# Xu and others, *Show, Attend and Tell* (2015), write captions of pictures. Of a picture's parts, vectors aᵢ
# with weights αᵢ, their "soft" model reads the mean; of their "hard" one they say (section 4.1) that it
#
# > returns a sampled aᵢ at every point in time based upon a multinouilli distribution parameterized by α.
#
# *The components of the Transformer* has both in a paragraph: soft attention is a weighted sum of all hidden
# states, hard attention takes a single one, and that choice asks for another way of training, which the
# document does not show. This lesson does. With values v in the place of a:
#
# ```math
# soft   E[z] = Σₛ αₛ vₛ                              α = softmax(scores)
# hard   z = vₛ,   s ~ Multinoulli(α)                 P(s) = αₛ
# ```
#
# Our case: two queries look at the four words of a sentence. To draw, lay the weights one after the other on
# a line of length 1, and see into whose stretch a uniform random point falls.

# %%
S, T, L = 4, 2, 2  # words, queries, width of a value
v = rng.standard_normal((1, S, L))  # (B, S, L)
scores = np.log([[[0.22, 0.06, 0.47, 0.25], [0.4, 0.3, 0.1, 0.2]]])  # (B, T, S)
alpha, _ = F.softmax(scores)  # (B, T, S) the probabilities above

points = np.random.default_rng(0).random((1000, 1, T), np.float32)  # (N, B, T)
z, cache = F.hard_attend(scores, v, rng=np.random.default_rng(0), draws=1000)  # (N, B, T, L)
for n, t in product(range(1000), range(T)):
    place, end = 0, alpha[0, t, 0]
    while points[n, 0, t] >= end:
        place += 1
        end += alpha[0, t, place]
    assert cache.sample[n, 0, t, place]
    assert_allclose(z[n, 0, t], v[0, place])
show(cache)

# %% [markdown]
# `sample` is one-hot: z = Σ sₛ vₛ, the formula of soft attention with a draw in the place of α. On the mean
# the two are one:

# %%
soft, _ = F.attend(scores, v)  # (B, T, L)
off, error = abs(z.mean(0) - soft), z.std(0) / math.sqrt(1000)
print(f"the mean of 1,000 draws is off by {(off / error).max():.1f} standard errors at most")
assert (off < 3 * error).all()

samples = cache.sample[:, 0, 0]  # (N, S) of the first query
s = np.vstack([samples[:4], samples.mean(0), alpha[0, 0]])
read = np.vstack([z[:4, 0, 0], z[:, 0, 0].mean(0), soft[0, 0]])
names = ["draw 1", "draw 2", "draw 3", "draw 4", "mean of 1,000", "soft: α"]
first = Grid(s, "$s$", "r", rows=names, columns=words, numbers=True, shade=True)
second, third = Grid(v[0], "$v$", "v", numbers=True), Grid(read, "$z$", "z", numbers=True)
caption = "The first query: four draws, the mean of 1,000, and what soft attention reads"
show_figure(cell_product([first, "×", second, "=", third]), "19_draws", caption)

# %% [markdown]
# ## What a draw hides
#
# Something reads both z and gives the answer y a probability. Call its logarithm f(s) = log p(y | s): it
# depends on the pair of choices s = (s₁, s₂). Here it is a linear map and a softmax over three answers, of
# which the first is right. The loss is −f.

# %%
w = 2 * rng.standard_normal((T, L, 3))  # (T, L, C)


def answer(z):
    """log p(y | s) of each draw, and the cache. Shapes: z (N, B, T, L) -> (N, B)."""
    log_probs, _ = F.log_softmax(np.einsum("nbtl,tlc->nbc", z, w))
    return log_probs[..., 0], log_probs


def answer_backward(df, log_probs):
    """dlogits = df (onehot - p), and through the linear map: lesson 12."""
    return np.einsum("nbc,tlc->nbtl", df[..., None] * ([1, 0, 0] - np.exp(log_probs)), w)


reads = answer, answer_backward
raised = np.linspace(-4, 4, 401)  # of the first query's score for "the"
losses = np.zeros((2, 401))
for i, score in enumerate(raised):
    moved = scores.copy()
    moved[0, 0, 0] = score
    one, made = F.hard_attend(moved, v, rng=np.random.default_rng(3), draws=1)
    assert (F.hard_attend_backward(np.ones_like(one), made)[0] == 0).all()
    losses[:, i] = -answer(one)[0][0, 0], expected_loss(moved, v, reads)
assert len(np.unique(losses[0])) == 4
two = ["one draw, its random point held fast", "the mean over all draws"]
figure = curves(losses, raised, labels=two, xlabel="score of “the”", ylabel="loss", legend=True)
show_figure(figure, "19_stairs", "One draw: flat, with three jumps. The mean is smooth")

# %% [markdown]
# The slope of the stairs is 0 wherever they have one, and `hard_attend_backward` says so: dscores is 0. (The
# values do get a gradient, dv = sᵀ dz: the value that was read gets all of it.)
#
# But the mean over all draws has a slope, for the *probabilities* are smooth. So make that small:
#
# ```math
# loss = −Σₛ p(s) f(s)             p(s) = α₁ₛ₁ α₂ₛ₂        16 pairs here
# ```
#
# The paper raises it as a lower bound: Σ p(s) log p(y | s) ≤ log Σ p(s) p(y | s) = log p(y), since the
# logarithm is concave.

# %%
pairs = list(product(range(S), repeat=T))
p = {s: alpha[0, 0, s[0]] * alpha[0, 1, s[1]] for s in pairs}
f = {s: answer(v[None, :, list(s)])[0][0, 0] for s in pairs}
bound = sum(p[s] * f[s] for s in pairs)
log_p = math.log(sum(p[s] * math.exp(f[s]) for s in pairs))
assert_allclose(-bound, expected_loss(scores, v, reads), rtol=1e-12)
print(f"Σ p(s) f(s) = {bound:.4f}, and log p(y) = {log_p:.4f}")

# %% [markdown]
# ## The score function, line by line
#
# Take the gradient by anything that scores or values depend on. The product rule, and then one trick,
# ∇p = p ∇log p:
#
# ```math
# ∇ Σₛ p(s) f(s)  = Σₛ p(s) ∇f(s) + Σₛ f(s) ∇p(s)
#                 = Σₛ p(s) ∇f(s) + Σₛ p(s) f(s) ∇log p(s)
#                 = E[ ∇f(s) + f(s) ∇log p(s) ]
# ```
#
# A mean over draws again: draw s, and take what stands in the bracket. Its first half is ordinary backward,
# through what was read. The second makes a choice likelier that went well. log p(s) is a sum, a term for each
# query; and of one query, with α = softmax(scores):
#
# ```math
# log αₛ            = scoresₛ − log Σᵢ exp(scoresᵢ)
# ∂log αₛ/∂scoresⱼ  = [j = s] − exp(scoresⱼ)/Σᵢ exp(scoresᵢ)  = [j = s] − αⱼ
# ```
#
# **onehot(s) − α**: up where it went, down everywhere by the probability. Over all 16 pairs, by loops:

# %%
g = {s: (np.arange(S) == np.array(s)[:, None]) - alpha[0] for s in pairs}  # (T, S) onehot − α
dscores, dv = np.zeros_like(scores), np.zeros_like(v)
for s in pairs:
    dz = answer_backward(-np.ones((1, 1)), answer(v[None, :, list(s)])[1])  # (1, B, T, L)
    dscores[0] -= p[s] * f[s] * g[s]  # the loss is −f
    for t in range(T):
        dv[0, s[t]] += p[s] * dz[0, 0, t]


def slopes(loss, x, h=1e-20):
    """The gradient of a number by complex step, entry by entry."""
    steps = 1j * h * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([loss(x + step).imag / h for step in steps]).reshape(x.shape)


exact = slopes(lambda x: expected_loss(x, v, reads), scores)
assert_allclose(dscores, exact, atol=1e-14)
assert_allclose(dv, slopes(lambda x: expected_loss(scores, x, reads), v), atol=1e-14)
made = estimate(scores, v, reads)  # the mean over all draws of what one draw gives
assert_allclose(made.dscores, exact, atol=1e-14)
assert_allclose(made.dv, dv, atol=1e-14)
print("enumerated by loops = complex step of the expected loss = the package")

# %% [markdown]
# ## Judged by drawing
#
# With 50 words nobody enumerates. One draws N times and takes the mean. It is never exact, so ask whether it
# is off by more than chance allows: the **standard error** is the draws' standard deviation over √N. In code
# the reward travels as the gradient of log p(s), and `score_function` makes it. (A test must be able to fail:
# the last line leaves out "− α".)

# %%
N = 20_000
z, cache = F.hard_attend(scores, v, rng=rng, draws=N)
reward, answered = answer(z)  # (N, B)
each = -reward[:, :, None, None] * (cache.sample - alpha)  # (N, B, T, S) one estimate a draw
average, error = each.mean(0), each.std(0) / math.sqrt(N)
for t, j in product(range(T), range(S)):
    at = 0, t, j
    row = f"query {t + 1}, {words[j]:6} exact {exact[at]:+.4f}   drawn {average[at]:+.4f}"
    away = (average[at] - exact[at]) / error[at]
    print(f"{row} ± {error[at]:.4f}   off by {away:+.1f} standard errors")
assert (abs(average - exact) < 4 * error).all()
dlog_prob, _ = F.score_function(reward)  # −reward / N: the mean over the draws is in it
dz = answer_backward(-np.ones((N, 1)) / N, answered)
assert_allclose(F.hard_attend_backward(dz, cache, dlog_prob=dlog_prob)[0], average, atol=1e-12)
wrong = -reward[:, :, None, None] * cache.sample  # (N, B, T, S)
away = (abs(wrong.mean(0) - exact) / wrong.std(0)).max() * math.sqrt(N)
assert away > 30
print(f"without − α: off by {away:.0f} standard errors")

# %% [markdown]
# ## The baseline: the same mean, less variance
#
# All f are negative, so every choice is punished, the good ones less. The mean is right, the single draw is
# noise. What if one takes a number b away from every reward?
#
# ```math
# E[b ∇log p(s)] = b Σₛ p(s) ∇log p(s) = b Σₛ ∇p(s) = b ∇ Σₛ p(s) = b ∇1 = 0
# ```
#
# **The mean does not move, whatever b is**, as long as b is the same number for every s. The variance does.
# With g = onehot(s) − α, and |g|² the sum of its squares:
#
# ```math
# Var(b)  = E[(f − b)² |g|²] − |E[f g]|²
# 0       = d/db Var = −2 E[(f − b) |g|²]        b* = E[f |g|²] / E[|g|²]
# ```
#
# A parabola in b. Were |g|² the same for every draw, b* would be E[f], what an answer is usually worth. Here
# E[f] is −1.77 and b* −1.73, and with either the variance is .39 of what it is without a baseline:

# %%
g2, square = {s: (g[s] * g[s]).sum() for s in pairs}, (exact * exact).sum()
best = sum(p[s] * f[s] * g2[s] for s in pairs) / sum(p[s] * g2[s] for s in pairs)
tried = np.linspace(-4, 1, 51)
variance = [sum(p[s] * (f[s] - b) ** 2 * g2[s] for s in pairs) - square for b in tried]
for b, expect in list(zip(tried, variance, strict=True))[::10]:
    made = estimate(scores, v, reads, baseline=b)
    assert_allclose(made.dscores, exact, atol=1e-13)
    assert_allclose(made.variance, expect, rtol=1e-10)
usual, none = with_and_without_baseline(scores, v, reads)
least = estimate(scores, v, reads, baseline=best).variance
assert_allclose([bound, best, usual.variance / none.variance], [-1.77, -1.73, 0.39], atol=0.005)
for name, found in {"0": none.variance, "E[f]": usual.variance, "b*": least}.items():
    print(f"b = {name:4}   variance {found:.3f}")
figure = curves(variance, tried, xlabel="baseline b", ylabel="variance of one draw's gradient")
show_figure(figure, "19_variance", "The variance is a parabola in b; the mean never moves")

# %% [markdown]
# E[f] is not known. The paper keeps a moving average of what was earned so far:
#
# ```math
# bₖ = .9 bₖ₋₁ + .1 log p(y | sₖ)
# ```

# %%
moving, b, path = MovingBaseline(), 0.0, []
for k in range(2000):
    path.append(moving.value)  # what draw k is compared with: of the draws before it
    moving.update(reward[k])
    b = 0.9 * b + 0.1 * reward[k, 0]
    assert_allclose(moving.value, b)
print(f"b₀ … b₄: {np.round(path[:5], 2)}; from b₅₀ on {np.mean(path[50:]):.2f} on the mean")
assert abs(np.mean(path[50:]) - bound) < 0.1

# %% [markdown]
# **The mistake.** Draw k must be judged by bₖ₋₁. bₖ has seen draw k: it is not the same number for every s,
# and may not be taken out of the sum above. What follows can be computed. With bₖ the reward is
# f − .9 bₖ₋₁ − .1 f = .9 (f − bₖ₋₁): nine tenths of the gradient. And with the mean of N draws as *their own*
# baseline, each takes 1/N of itself away. For N = 2:
#
# ```math
# E[(f₁ − ½(f₁ + f₂)) g₁] = ½ E[f₁ g₁] − ½ E[f₂] E[g₁] = ½ E[f g]          since E[g] = 0
# ```
#
# Half of the gradient, and 1 − 1/N of it in general: nothing at all for N = 1, and no error message. The
# mean of the *others* has not seen the draw. By all draws, and all pairs of draws:

# %%
late = -sum(p[s] * (f[s] - (0.9 * -1 + 0.1 * f[s])) * g[s] for s in pairs)  # b before: −1
assert_allclose(late, 0.9 * exact[0], atol=1e-14)
own, other = np.zeros((T, S)), np.zeros((T, S))
for one, two in product(pairs, pairs):
    chance, both = p[one] * p[two], (f[one] + f[two]) / 2
    own -= chance * ((f[one] - both) * g[one] + (f[two] - both) * g[two]) / 2
    other -= chance * ((f[one] - f[two]) * g[one] + (f[two] - f[one]) * g[two]) / 2
assert_allclose(own, 0.5 * exact[0], atol=1e-14)
assert_allclose(other, exact[0], atol=1e-14)
print("bₖ for bₖ₋₁: .9 of the gradient; the mean of both: .5; the other one: all of it")

# %% [markdown]
# ## The entropy
#
# A query that is sure draws one place only, and never learns what the others are worth. The paper adds λₑ H,
# a bonus for being undecided. With H = −Σ αᵢ log αᵢ and ∂αᵢ/∂scoresⱼ = αᵢ ([i = j] − αⱼ), lesson 5:
#
# ```math
# dH/dαᵢ       = −(log αᵢ + 1)
# dH/dscoresⱼ  = −αⱼ (log αⱼ + 1) + αⱼ Σᵢ αᵢ (log αᵢ + 1)
#              = −αⱼ (log αⱼ + 1) + αⱼ (1 − H)
#              = −αⱼ (log αⱼ + H)
# ```
#
# Σ αᵢ log αᵢ is −H, and Σ αᵢ is 1. Read it: what is likelier than e⁻ᴴ goes down, the rest up.
#
# All of it, with N draws, is the paper's rule. λᵣ weighs the rewards; 1 gives the exact gradient:
#
# ```math
# ∇ ≈ 1/N Σₙ [ ∇log p(y | sₙ) + λᵣ (log p(y | sₙ) − b) ∇log p(sₙ) + λₑ ∇H ]
# ```
#
# The gradient checker can judge that too, if forward is the expected loss and backward the mean over draws:

# %%
h, made = F.entropy(scores)  # (B, T)
dentropy = -alpha * (np.log(alpha) + h[..., None])  # (B, T, S)
assert_allclose(F.entropy_backward(np.ones_like(h), made), dentropy, atol=1e-15)
assert_allclose(dentropy, slopes(lambda x: F.entropy(x)[0].sum(), scores), atol=1e-14)


def expected(scores, v):
    """The loss over all draws."""
    return expected_loss(scores, v, reads, entropy_weight=0.3), (scores, v)


def expected_backward(dloss, cache):
    """The mean, over all draws, of the gradient that one draw gives."""
    found = estimate(*cache, reads, baseline=-1.0, entropy_weight=0.3)
    return dloss * found.dscores, dloss * found.dv


report = gradcheck((expected, expected_backward), scores, v)
print(report)
assert report.ok

# %% [markdown]
# ## Straight through
#
# There is a way without rewards (Bengio and others, 2013): forward a draw, and backward as if z had been the
# soft mean. It asks how the loss would change if z moved a little from the value that was read towards the
# others. But z never moves a little. Where f is a straight line, that is no difference, and the estimate is
# right. Elsewhere it is **biased**: more draws do not help.

# %%
dalpha = (dz @ v.swapaxes(-1, -2)).sum(0)  # (B, T, S) as if z = α v, summed over the draws
slow = alpha * (dalpha - (dalpha * alpha).sum(-1, keepdims=True))  # lesson 5
assert_allclose(F.straight_through_backward(dz, cache)[0], slow, atol=1e-12)

u = w[..., 0]  # (T, L) the straight line f = Σ z u
line = lambda z: ((z * u).sum((-1, -2)), None), lambda df, _: df[..., None, None] * u
made = estimate(scores, v, line, straight_through=True)
assert_allclose(made.dscores, slopes(lambda x: expected_loss(x, v, line), scores), atol=1e-13)

through = estimate(scores, v, reads, straight_through=True)
bias = np.linalg.norm(through.dscores - exact) / np.linalg.norm(exact)
print(f"variance of one draw: {through.variance:.2f}; by rewards and E[f] {usual.variance:.2f}")
print(f"bias: 0 for a straight line; here {bias:.0%} of the gradient's length")

# %% [markdown]
# It can point the wrong way altogether. Two places hold the numbers −1 and 1, and the loss of what is read
# is z + sin πz. −1 costs −1, and 1 costs 1: the first is better. But at *both* the slope is 1 − π:

# %%
value, slope, z_line = np.array([-1.0, 1]), 1 - math.pi, np.linspace(-1, 1, 201)
signals = {"score function": value, "straight through": slope * value}  # cost; slope times value
for name, signal in signals.items():
    score = np.zeros(2)
    for _ in range(200):  # plain descent on the mean over both draws
        a = F.softmax(score)[0]
        score -= 0.2 * a * (signal - a @ signal)
    print(f"{name:17} the better place has the probability {F.softmax(score)[0][0]:.3f}")
assert F.softmax(score)[0][0] < 0.01
figure = curves(z_line + np.sin(math.pi * z_line), z_line, xlabel="z", ylabel="loss")
caption = "At both ends it falls to the right, and yet the right end is the higher one"
show_figure(figure, "19_straight", caption)

# %% [markdown]
# ## Learning
#
# `npformer.learn.experiments.hard_attention`: six places, each with a name and one of five symbols; one is
# asked for by name. In four ways, from five seeds each, 300 steps of Adam. At inference hard
# attention reads the likeliest place: **argmax**, no draw.

# %%
runs = {method: [learn(method, steps=300, seed=seed) for seed in range(5)] for method in METHODS}
right = np.array([[run.accuracy for run in made] for made in runs.values()])  # (4, seeds)
paths = np.array([[run.curve for run in made] for made in runs.values()]).mean(1)  # (4, steps)
for method, found, path in zip(METHODS, right, paths, strict=True):
    spread = f"{found.mean():6.1%} ± {found.std():.1%}"
    print(f"{method:18} right: {spread:16} log p(y), last 50 steps: {path[-50:].mean():+.2f}")
assert right[2].mean() < 0.95 < 0.98 < right[[0, 1, 3]].mean(1).min()
assert (np.diff(paths[[2, 1, 3, 0], -50:].mean(1)) > 0).all()
smooth = paths.reshape(4, 30, 10).mean(-1)  # means of ten steps
figure = curves(smooth, np.arange(10, 301, 10), labels=METHODS, xlabel="step", ylabel="log p(y)")
show_figure(figure, "19_learning", "log p(y) while learning, mean of five seeds; a guess: −1.61")

# %% [markdown]
# The baseline decides: with it all five seeds know the task, without it some are still on the way. Straight
# through is as right, and quicker, **so an easy task says nothing of its bias**: here the place to read is
# better than any mixture. Soft attention is best: it does not draw, and at every step every place hears what
# it is worth. What does argmax gain over going on to draw? And where is soft what one wants? Ask which
# symbol stands on *most* of the six places. A mean with equal weights holds the counts; one place tells it
# only if it holds that symbol itself.

# %%
new = make_places(1000, np.random.default_rng(0))
reader, shares = runs["hard"][0].reader, {}
for way, settings in {"argmax": {}, "a draw": {"train": True, "rng": rng}}.items():
    guess = reader.forward(new.query, new.memory, **settings)[0][:, 0].argmax(-1)  # (B,)
    shares[way] = (guess == new.symbol).mean()

count = new.memory[:, :, PLACES:].sum(1)  # (B, C) how often each symbol stands there
second, first = np.sort(count, -1)[:, -2:].T  # (B,)
shares["most frequent, by one place"] = (first / PLACES)[first > second].mean()  # one is ahead
for way, share in shares.items():
    print(f"{way:28} right: {share:.1%}")
assert shares["argmax"] > shares["a draw"] > 0.9 > 0.6 > shares["most frequent, by one place"]

# %% [markdown]
# ## Exercises
#
# `npformer exercise list` has them, the first graded by the gradient checker, the other by its values.
#
# - `npformer exercise start entropy-backward`: −α (log α + H), and nothing at masked places.
# - `npformer exercise start score-function`: rewards, a baseline and N draws become dlog_prob.
# - By hand: one query. Show that the α with the largest Σ αₛ fₛ + λₑ H is softmax(f/λₑ).
#
# `npformer bugs` has number 21, which is about this lesson. To try now, in the terminal: `s cache`, and
# `!estimate(scores, v, reads, baseline=5.0).variance`.
#
# ## Where the documents differ
#
# - *The components of the Transformer*: an argmax would choose, and is not differentiable. True; but while it
#   learns hard attention draws, and takes the argmax afterwards only. That it is cheaper at inference holds
#   for the values, of which one is read; the scores are all computed, as here.
# - *Show, Attend and Tell* prints b in its rule, and bₖ, with draw k in it, in the line above; the words say
#   "previous log likelihoods". The package takes bₖ₋₁. H is there "to further reduce the estimator variance",
#   and with probability ½ the mean is read in place of a draw; the package does not do that.
#
# **Next**, lesson 20: latent attention, where one word tells where to look.

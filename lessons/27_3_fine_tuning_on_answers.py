# %% [markdown]
# # 27.3 · Fine-tuning on answers
#
# *About 25 minutes. You need: the gradient of the cross-entropy (lesson 12.2,
# `12_2_the_gradient_of_the_cross_entropy`), a GPT (lesson 24.1, `24_1_a_gpt_from_its_parts`).*
#
# **After this lesson you can**
#
# - train a language model on answers alone, and say which gradients are 0;
# - measure answers that are drawn, with pass@1 and pass@k;
# - say what such a training leaves to be learned.
#
# `training: batch → model → [LOSS] → backward pass → optimizer → parameters`

# %%
import numpy as np
from numpy.testing import assert_allclose

from npformer.functional import cross_entropy, cross_entropy_backward, log_softmax
from npformer.learn.course import show_figure
from npformer.learn.experiments.addition import (
    ALL_TOKENS,
    ATTEMPTS,
    FINE_TUNED,
    MEASURED,
    NOT_LEARNED,
    PROMPT,
    SEEDS,
    TOKENS,
    draw_answers,
    draw_problems,
    fine_tune,
    pass_rates,
)
from npformer.learn.experiments.measured_runs import Measured, read_results
from npformer.plots import cell_grid

# %% [markdown]
# ## What can be learned from a question?
#
# A GPT predicts the next token of any text. In this lesson and the next two, a text has two parts: a
# **prompt**, which asks, and an answer. Our prompts are sums of two numbers below 100. With leading zeros, a
# prompt always has six characters and an answer three, as in `07+45=052`. The next cell trains a GPT on such
# texts for a few seconds, as lesson 24.1 did: each character is a target. The picture shows the loss of each
# character of new texts.

# %%
seed, steps = 2, 120
on_all_tokens, _ = fine_tune(seed, steps, answers_only=False)
prompts, answers = draw_problems(np.random.default_rng(27), 6)
texts = np.concatenate([prompts, answers], 1)  # (N, T + 1)
logits = on_all_tokens(texts[:, :-1])  # (N, T, V)
losses = -np.take_along_axis(log_softmax(logits)[0], texts[:, 1:, None], -1)[..., 0]  # (N, T)
print(f"{on_all_tokens.count_parameters():,} parameters, trained for {steps} steps")

# %% tags=["plot"]
characters = ["".join(TOKENS[token] for token in text) for text in texts]
places = ["?", "+", "?", "?", "=", "100", "10", "1"]
figure = cell_grid(losses, rows=characters, columns=places, numbers=True, shade=True)
show_figure(figure, "27_3_losses", "The loss of each character after the first, in nats")

# %% [markdown]
# The columns "?" are random digits of the prompt, and the last three are the answer. The characters + and =
# are always at the same place, so their loss is 0. No model can predict the random digits better than with
# probability 1/10.
#
# **Question.** What is the lowest possible mean loss of a random digit?
#
# <details><summary>Answer</summary>
# $-\log(1/10) = \log 10 = 2.30$ nats. The numbers in the picture vary around it.
# </details>
#
# Three of eight targets are such digits (the first digit of a text is never a target). They cannot be
# learned, but their gradients change the weights. Only the answers matter to us. (The last digit of the
# answer also has a loss of about 2.3, because the model has not learned it yet.)

# %% [markdown]
# ## The loss on answers
#
# **Supervised fine-tuning** continues the training of a language model, on pairs of prompts and good answers.
# One thing is different: the mean of the loss is over the tokens of the answers only,
#
# $$L = -\frac{1}{M} \sum_{t \,\in\, \mathrm{answers}} \log p(x_t \mid x_1 \dots x_{t-1})$$
#
# where $M$ is the number of these tokens. The model still reads the prompt, since every answer depends on it.
# Our GPT is so small that we skip the training on general text, and begin with random weights. In code, the
# targets in the prompt are replaced by a number that the loss ignores, like padding (lesson 12.1,
# `12_1_the_cross_entropy`).

# %%
targets = texts[:, 1:].copy()  # (N, T)
targets[:, : PROMPT - 1] = NOT_LEARNED
loss, cache = cross_entropy(logits, targets, pad_id=NOT_LEARNED)
dlogits = cross_entropy_backward(1.0, cache)  # (N, T, V)
print("targets of the first text", targets[0])
print("largest gradient at each place", abs(dlogits).max((0, 2)).round(3))

# %% tags=["check"]
assert_allclose(loss, losses[:, PROMPT - 1 :].mean(), rtol=1e-5)
assert not dlogits[:, : PROMPT - 1].any()
assert (abs(dlogits[:, PROMPT - 1 :]).max((0, 2)) > 0).all()

# %% [markdown]
# Where a character of the prompt is predicted, the gradient of the logits is 0.
#
# **Question.** Do the vectors of the prompt's tokens get a gradient all the same?
#
# <details><summary>Answer</summary>
# Yes. The tokens of the answer attend to the keys and values of the prompt, and the backward pass of
# attention returns gradients to these keys and values.
# </details>

# %% [markdown]
# ## Measuring answers
#
# A model answers by drawing tokens (lesson 24.2, `24_2_sampling`), so the same prompt can get right and wrong
# answers. Two measures are usual. **pass@1** is the probability that one drawn answer is right. **pass@k** is
# the probability that at least one of k drawn answers is right.
#
# The next cell trains on answers, with the same number of steps, the same texts and the same learning rate as
# before. Then it draws eight answers to each of 200 new prompts.

# %%
model, _ = fine_tune(seed, steps)
rates = {
    "all tokens": pass_rates(on_all_tokens, seed, 200),
    "answers": pass_rates(model, seed, 200),
}
for name, rate in rates.items():
    print(f"loss on {name:10}  pass@1 {rate['pass@1']:.2f}  pass@8 {rate['pass@8']:.2f}")

# %% tags=["check"]
assert rates["answers"]["pass@1"] > 3 * rates["all tokens"]["pass@1"]

# %%
drawn = draw_answers(model, np.repeat(prompts[:1], ATTEMPTS, 0), np.random.default_rng(0))
shown = ["".join(TOKENS[token] for token in answer) for answer in drawn]
print(f"{characters[0][:PROMPT]} {' '.join(shown)}   right: {characters[0][PROMPT:]}")

# %% [markdown]
# **Question.** A model is right with probability .3 in each draw, whatever the prompt. What is its pass@8?
# Another model is always right for 30 % of the prompts and never for the others. What is its pass@8?
#
# <details><summary>Answer</summary>
# $1 - .7^8 = .94$ for the first model, and .3 for the second. If pass@k is near 1 and pass@1 is not, a model
# can give right answers to most prompts, but does not give them reliably.
# </details>

# %% [markdown]
# ## The experiment
#
# The file of results has three seeds. Training on answers stopped as soon as 30 % of the answers to some test
# prompts were right, so that something was left to be learned. Training on all tokens had the same number of
# steps.

# %%
results = {(r.model, r.seed): r.values for r in read_results(MEASURED, Measured)}
for name in (ALL_TOKENS, FINE_TUNED):
    for measure in ("pass@1", "pass@8"):
        values = [results[name, each][measure] for each in SEEDS]
        print(f"{name:20} {measure}", *(f"{value:.2f}" for value in values))

# %% tags=["check"]
for each in SEEDS:
    before, after = results[ALL_TOKENS, each], results[FINE_TUNED, each]
    assert after["pass@1"] > 2.5 * before["pass@1"]
    assert 0.25 < after["pass@1"] < 0.4 < 0.8 < after["pass@8"]

# %% [markdown]
# With the loss on answers, about three to seven times as many answers are right as with the loss on all
# tokens. But both trainings had the learning rate .003, and it was searched for neither of them. Adam's steps
# have about the same size with both losses, but with the loss on all tokens, the answers cause only a part of
# each step. This may explain a part of the difference. And the numbers say nothing about longer trainings:
# try the first exercise.
#
# Now look at pass@8. The fine-tuned model is right in about one of three draws. But for more than 80 % of the
# prompts, at least one of eight draws is right. If the model preferred its own right answers, it would be
# right much more often. The next lesson trains it to do so, without any new answer from outside.

# %% [markdown]
# ## Summary
#
# - Supervised fine-tuning trains on prompts with good answers.
# - Its loss is the mean over the tokens of the answers. The prompt is read, and not predicted.
# - Targets that are ignored have gradients of 0 at their logits.
# - pass@1 is the share of right answers. pass@k is the share of prompts with a right answer among k draws.
# - Here, with the same steps, the loss on answers led to more right answers than the loss on all tokens.

# %% [markdown]
# ## Questions
#
# **Question.** A conversation has several prompts and answers in one text. Which tokens have a loss?
#
# <details><summary>Answer</summary>
# The tokens of all answers, each with its end symbol. One forward pass is enough for all answers, since the
# causal mask hides from each answer what comes after it.
# </details>

# %% [markdown]
# ## Exercises
#
# `npformer exercise list 27` lists the exercises of this chapter. Try these as well:
#
# - Fine-tune with `steps=400` and both losses. Does the difference remain?
# - `npformer experiment addition` repeats the experiment, with the parts of the next lesson, in two minutes
#   of processor time.
#
# Ouyang et al., "Training language models to follow instructions with human feedback" (2022), made
# fine-tuning the first of three steps from a language model to an assistant.
#
# **Next**: lesson 27.4 (`27_4_learning_from_rewards`), in which the model learns from its own answers.

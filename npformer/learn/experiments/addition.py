"""A GPT of 100,000 parameters that adds numbers: fine-tuned on answers, then trained with rewards.

A text such as "07+45=052" is a prompt of six characters and an answer of three. Fine-tuning stops while the
model is only partly right. Then it draws several answers to each prompt, and learns from a reward of 1 for a
right answer (GRPO). Further runs change one part each. Another run learns from pairs of its answers (DPO).
"""

import copy
import time
from collections.abc import Callable
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional import (
    cross_entropy,
    cross_entropy_backward,
    dpo,
    dpo_backward,
    group_advantages,
    grpo,
    grpo_backward,
    log_probability,
    log_probability_backward,
)
from npformer.generation import sample_ids
from npformer.learn.experiments.measured_runs import MEAN_OF, Measured, Results, new_gpt
from npformer.models.gpt import GPT, GPTConfig
from npformer.training.optimizer import Adam, clip_global_norm

MEASURED = Path(__file__).with_name("addition.json")  # the results that ship
TOKENS = "0123456789+="
PROMPT, ANSWER = 6, 3  # characters of "07+45=" and of "052"
CONFIG = GPTConfig(
    vocab_size=len(TOKENS),
    d_model=64,
    n_layers=2,
    n_heads=4,
    context=PROMPT + ANSWER,
    norm="rms",
    activation="swiglu",
    bias=False,
)
SEEDS = (0, 1, 2)
NOT_LEARNED = -1  # the target of a token that has no loss
BATCH, RATE = 64, 3e-3  # of fine-tuning
ENOUGH, MOST_STEPS = 0.3, 1000  # fine-tuning stops at this share of right answers, or at this step
PROMPTS, GROUP = 16, 8  # in each step of GRPO: prompts, and answers to each
TESTS, ATTEMPTS = 500, 8  # prompts of the test, and answers to each: pass@1 and pass@8


class Variant(NamedTuple):
    """A way to train with rewards."""

    name: str
    beta: float = 0.04  # the weight of the divergence from the fine-tuned model
    baseline: bool = True  # subtract the mean reward of the group, and divide by its standard deviation
    penalty: float = 0.0  # is subtracted from every reward
    last_digit: bool = False  # the reward looks at the last digit only
    steps: int = 150
    learning_rate: float = 1e-3


VARIANTS = (
    Variant("GRPO"),
    Variant("no baseline", baseline=False),
    Variant("no baseline, reward 0 or -1", baseline=False, penalty=1.0),
    Variant("no KL term", beta=0.0),
    Variant("last digit, beta 0.3", beta=0.3, last_digit=True),
    Variant("last digit, no KL term", beta=0.0, last_digit=True),
)
FINE_TUNED, ALL_TOKENS = "loss on answers", "loss on all tokens"  # the other models
PREFERENCES = {"DPO, beta 2": 2.0, "DPO, beta 0.3": 0.3}
# of DPO: prompts for which pairs of answers are drawn, steps, and the learning rate
PAIRS, PREFERENCE_STEPS, PREFERENCE_RATE = 1000, 60, 1e-4


def draw_problems(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return the ids of some prompts, of shape (N, PROMPT), and of their answers, of shape (N, ANSWER).

    Args:
        rng: The generator.
        count: The number N of prompts.
    """
    x, y = rng.integers(0, 100, (2, count))
    plus, equals = (np.full(count, TOKENS.index(sign)) for sign in "+=")
    prompts = np.stack([x // 10, x % 10, plus, y // 10, y % 10, equals], 1)
    total = x + y
    return prompts, np.stack([total // 100, total // 10 % 10, total % 10], 1)


def fine_tune(seed: int, steps: int | None = None, *, answers_only: bool = True) -> tuple[GPT, int]:
    """Train a new GPT on prompts and right answers.

    Args:
        seed: The seed of the weights and of the problems.
        steps: The number of steps. By default, it stops as soon as the share ENOUGH of its answers is right,
            which is tested every 10 steps.
        answers_only: The loss counts the tokens of the answers only, and not those of the prompts.

    Returns:
        The model, and the number of steps.
    """
    model, rng = new_gpt(CONFIG, seed), np.random.default_rng([seed, 1])
    optimizer = Adam(model, betas=(0.9, 0.95), eps=1e-8)
    for step in range(1, (steps or MOST_STEPS) + 1):
        texts = np.concatenate(draw_problems(rng, BATCH), 1)  # (B, T + 1)
        targets = texts[:, 1:].copy()  # (B, T)
        if answers_only:
            targets[:, : PROMPT - 1] = NOT_LEARNED
        logits, cache = model.forward(texts[:, :-1])
        _, loss_cache = cross_entropy(logits, targets, pad_id=NOT_LEARNED)
        model.zero_grad()
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        optimizer.step(RATE * min(1, step / 30))
        if steps is None and step % 10 == 0 and pass_rates(model, seed, 50)["pass@1"] >= ENOUGH:
            break
    return model, step


def draw_answers(model: GPT, prompts: Array, rng: np.random.Generator) -> Array:
    """Draw an answer to each prompt.

    Args:
        model: The model.
        prompts: The ids of the prompts, of shape (N, PROMPT).
        rng: The generator.

    Returns:
        The ids of the answers, of shape (N, ANSWER).
    """
    return np.stack(list(sample_ids(model, prompts, ANSWER, rng=rng)), 1)


def pass_rates(model: GPT, seed: int, count: int = TESTS) -> dict[str, float]:
    """Return the shares of right answers (pass@1) and last digits, and of prompts with a right answer in 8.

    Args:
        model: The model.
        seed: The seed of the problems and of the draws.
        count: The number of prompts.
    """
    rng = np.random.default_rng([seed, 2])
    prompts, answers = (np.repeat(ids, ATTEMPTS, 0) for ids in draw_problems(rng, count))
    is_digit_right = draw_answers(model, prompts, rng) == answers  # (N · 8, ANSWER)
    is_right = is_digit_right.all(1).reshape(count, ATTEMPTS)
    return {
        "pass@1": float(is_right.mean()),
        f"pass@{ATTEMPTS}": float(is_right.any(1).mean()),
        "last digit": float(is_digit_right[:, -1].mean()),
    }


def answer_log_probs(model: GPT, texts: Array) -> tuple[Array, tuple[Any, Any]]:
    """Return log p of each token of some texts after the first, and the caches for a backward pass.

    Shapes: texts (N, T + 1) -> (N, T).
    """
    logits, cache = model.forward(texts[:, :-1])  # (N, T, V)
    drawn = texts[:, 1:, None] == np.arange(logits.shape[-1])  # (N, T, V) True at the next token
    log_probs, log_probs_cache = log_probability(logits, drawn)  # (N, T)
    return log_probs, (log_probs_cache, cache)


def policy_step(
    model: GPT, reference: GPT, optimizer: Adam, rng: np.random.Generator, variant: Variant
) -> float:
    """Draw answers, reward them, and make one optimizer step.

    Args:
        model: The model that learns.
        reference: The model before, from which the KL term measures the distance.
        optimizer: The optimizer of the model.
        rng: The generator of the prompts and the answers.
        variant: The kind of training.

    Returns:
        The mean reward, without a penalty.
    """
    prompts, answers = (np.repeat(ids, GROUP, 0) for ids in draw_problems(rng, PROMPTS))
    drawn = draw_answers(model, prompts, rng)  # (N, ANSWER), N = PROMPTS · GROUP
    is_right = drawn == answers
    is_good = (is_right[:, -1:] if variant.last_digit else is_right).all(1)  # (N,)
    rewards = is_good.astype(np.float32).reshape(PROMPTS, GROUP) - np.float32(variant.penalty)
    advantages = group_advantages(rewards) if variant.baseline else rewards

    texts = np.concatenate([prompts, drawn], 1)
    is_answer = np.arange(1, texts.shape[1]) >= PROMPT  # (T,) of the token that is predicted
    mask = np.broadcast_to(is_answer, (len(texts), len(is_answer)))
    log_probs, (log_probs_cache, cache) = answer_log_probs(model, texts)
    known, _ = answer_log_probs(reference, texts)
    _, loss_cache = grpo(log_probs, log_probs, known, advantages.reshape(-1), mask, beta=variant.beta)
    model.zero_grad()
    model.backward(log_probability_backward(grpo_backward(1.0, loss_cache), log_probs_cache), cache)
    clip_global_norm(model.grads, 1.0)
    optimizer.step(variant.learning_rate)
    return float(is_good.mean())


def reinforce(model: GPT, seed: int, variant: Variant) -> tuple[GPT, list[float]]:
    """Train a copy of a model with rewards.

    Args:
        model: The fine-tuned model, which is also the reference.
        seed: The seed of the prompts and the answers.
        variant: The kind of training.

    Returns:
        The trained copy, and the mean reward of each step, without a penalty.
    """
    learner, rng = copy.deepcopy(model), np.random.default_rng([seed, 3])
    optimizer = Adam(learner, betas=(0.9, 0.95), eps=1e-8)
    return learner, [policy_step(learner, model, optimizer, rng, variant) for _ in range(variant.steps)]


def draw_pairs(model: GPT, rng: np.random.Generator, count: int) -> Array:
    """Draw 8 answers to each of some prompts, and keep a right and a wrong one where there are both.

    Args:
        model: The model that answers.
        rng: The generator.
        count: The number of prompts.

    Returns:
        The texts with the right answers, then those with the wrong ones, of shape (2, B, T + 1).
    """
    prompts, answers = (np.repeat(ids, GROUP, 0) for ids in draw_problems(rng, count))
    drawn = draw_answers(model, prompts, rng)
    is_right = (drawn == answers).all(1).reshape(count, GROUP)
    texts = np.concatenate([prompts, drawn], 1).reshape(count, GROUP, -1)
    rows = np.flatnonzero(is_right.any(1) & ~is_right.all(1))
    return np.stack([texts[rows, is_right[rows].argmax(1)], texts[rows, is_right[rows].argmin(1)]])


def preference_step(model: GPT, reference: GPT, optimizer: Adam, pairs: Array, beta: float) -> float:
    """Make one optimizer step with the loss of DPO, and return the loss.

    Args:
        model: The model that learns.
        reference: The model before.
        optimizer: The optimizer of the model.
        pairs: Texts with better and with worse answers, of shape (2, B, T + 1).
        beta: β.
    """
    texts = pairs.reshape(-1, pairs.shape[-1])  # (2 B, T + 1)
    log_probs, (log_probs_cache, cache) = answer_log_probs(model, texts)  # (2 B, T)
    known, _ = answer_log_probs(reference, texts)
    chosen, rejected = np.split(log_probs[:, PROMPT - 1 :].sum(1), 2)  # (B,) of the answers
    known_chosen, known_rejected = np.split(known[:, PROMPT - 1 :].sum(1), 2)
    loss, loss_cache = dpo(chosen, rejected, known_chosen - known_rejected, beta=beta)
    # each token of an answer is a term of its sum, and gets the gradient of the sum
    dlog_probs = np.zeros_like(log_probs)
    dlog_probs[:, PROMPT - 1 :] = np.concatenate(dpo_backward(1.0, loss_cache))[:, None]
    model.zero_grad()
    model.backward(log_probability_backward(dlog_probs, log_probs_cache), cache)
    clip_global_norm(model.grads, 1.0)
    optimizer.step(PREFERENCE_RATE)
    return float(loss)


def prefer(model: GPT, seed: int, beta: float, steps: int = PREFERENCE_STEPS) -> tuple[GPT, list[float]]:
    """Train a copy of a model with DPO on pairs of its own answers, which are drawn before the training.

    Args:
        model: The fine-tuned model, which is also the reference.
        seed: The seed of the pairs.
        beta: β.
        steps: The number of steps.

    Returns:
        The trained copy, and the loss of each step.
    """
    learner, rng = copy.deepcopy(model), np.random.default_rng([seed, 4])
    optimizer = Adam(learner, betas=(0.9, 0.95), eps=1e-8)
    pairs = draw_pairs(model, rng, PAIRS)
    losses = []
    for _ in range(steps):
        batch = pairs[:, rng.integers(0, pairs.shape[1], BATCH)]
        losses.append(preference_step(learner, model, optimizer, batch, beta))
    return learner, losses


def measure(
    path: str | PathLike[str], report: Callable[[Any], None] | None = None
) -> dict[str, list[Measured]]:
    """Fine-tune and train with rewards, as far as the file does not hold the results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results of all seeds by the name of the model.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results = Results(path, report, Measured)
    tuned = cache(fine_tune)

    def trained(name: str, seed: int) -> tuple[GPT, list[float]]:
        model, steps = tuned(seed)
        if name == FINE_TUNED:
            return model, []
        if name == ALL_TOKENS:
            return fine_tune(seed, steps, answers_only=False)[0], []
        if name in PREFERENCES:
            return prefer(model, seed, PREFERENCES[name])
        return reinforce(model, seed, next(variant for variant in VARIANTS if variant.name == name))

    def measured(name: str, seed: int) -> Measured:
        start = time.process_time()
        model, curve = trained(name, seed)
        points = np.reshape(curve, (-1, MEAN_OF)).mean(1).round(4).tolist()
        values = pass_rates(model, seed)
        return Measured(name, seed, values, points, round(time.process_time() - start, 1))

    names = ALL_TOKENS, FINE_TUNED, *(variant.name for variant in VARIANTS), *PREFERENCES
    return results.of_seeds(names, SEEDS, measured)

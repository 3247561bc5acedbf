"""Chapter 27: LoRA, quantized weights, DPO, GRPO and speculative decoding."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.preferences import group_advantages
from npformer.functional.quantize import quantize
from npformer.generation.speculative import accept
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics.tools import pair_trial

WEIGHT = np.random.default_rng(3).standard_normal((4, 5))  # (I, O) frozen
MARGINS = np.array([0.3, -1.1, 0.4])  # (B,) of the reference


def _lora(x: Any, a: Any, b: Any, scale: float = 1.0) -> Any:
    return F.lora_linear(x, a, b, WEIGHT.astype(x.real.dtype), scale=scale)


def _dpo(chosen: Any, rejected: Any, beta: float = 0.1) -> Any:
    return F.dpo(chosen, rejected, MARGINS.astype(chosen.real.dtype), beta=beta)


def _advantages(own: Functions, rng: np.random.Generator) -> Any:
    rewards = rng.integers(0, 2, (4, 6)).astype(float)
    rewards[1] = 1.0  # all answers are right
    return {"advantages": own.group_advantages(rewards), "of parts": own.group_advantages(rng.random((2, 3)))}


def _quantized(own: Functions, rng: np.random.Generator) -> Any:
    weight = rng.standard_normal((4, 3)) * np.array([0.1, 1, 20])
    found: dict[str, Any] = {}
    for bits in (8, 4):
        q, scale = own.quantize(weight, bits)
        found |= {f"q of {bits} bits": np.asarray(q, float), f"scale of {bits} bits": scale}
    return found


def _accepted(own: Functions, rng: np.random.Generator) -> Any:
    """Decide on 30 drafts of two tokens, whose generators draw different numbers."""
    kept = []
    for seed in rng.integers(0, 2**31, 30):
        p, q = F.softmax(rng.standard_normal((3, 5)))[0], F.softmax(rng.standard_normal((2, 5)))[0]
        kept.append(own.accept([1, 3], p, q, np.random.default_rng(seed)))
    return {
        "tokens kept": np.array([n for n, _ in kept], float),
        "next": np.array([t for _, t in kept], float),
    }


ANSWERS = exercises(
    r'''
=== 27 lora-backward: the gradients of two narrow matrices
import numpy as np


def lora_linear_backward(dy, cache):
    """Return the gradients of y = x weight + scale (x a) b. The weight is frozen and gets none.

    dy     the gradient of y, of shape (N, O)
    cache  .x (N, I), .h (N, R) = x a, .a (I, R), .b (R, O), .weight (I, O) and the number .scale
    Returns dx (N, I), da (I, R) and db (R, O).
    """
    x, h, a, b, weight, scale = cache
    # solution
    dh = scale * dy @ b.T
    db = scale * h.T @ dy
    da = x.T @ dh
    dx = dy @ weight.T + dh @ a.T
    return dx, da, db
--- There are two products, h = x a and y = x weight + scale h b. Begin with the second one.
--- dh = scale dy bᵀ and db = scale hᵀ dy. Then h = x a gives da, and a part of dx.
--- da = x.T @ dh, and dx = dy @ weight.T + dh @ a.T: x is used twice, so two gradients are added.

=== 27 quantize: whole numbers and a scale per column
import numpy as np


def quantize(weight, bits):
    """Round a weight to whole numbers, with one scale for each column.

    weight  of shape (I, O), without a column of zeros
    bits    the number of bits: the whole numbers go from -(2^(bits - 1) - 1) to 2^(bits - 1) - 1
    Returns q (I, O), the whole numbers, and the scales, of shape (1, O): weight ≈ scale q. The largest
    number of each column, in absolute value, becomes the largest or the smallest whole number.
    """
    # solution
    largest = 2 ** (bits - 1) - 1
    scale = np.abs(weight).max(0, keepdims=True) / largest
    q = np.round(weight / scale)
    return q, scale
--- The largest whole number is 2^(bits - 1) - 1, such as 7 for four bits. One bit is for the sign.
--- The scale of a column is its largest absolute value divided by the largest whole number.
--- q = np.round(weight / scale), with scale = np.abs(weight).max(0, keepdims=True) / largest.

=== 27 dpo-backward: the gradients of two answers
import numpy as np


def dpo_backward(dloss, cache):
    """Return the gradients of the loss of DPO, the mean over B pairs of -log sigmoid(margin).

    dloss  the gradient of the loss, a number
    cache  .margin (B,) = beta (chosen - rejected - reference margin), and the number .beta
    Returns dchosen (B,) and drejected (B,), the gradients of the log-probabilities of the answers.
    """
    margin, beta = cache
    # solution
    dmargin = -1 / (1 + np.exp(margin)) * dloss / len(margin)
    return beta * dmargin, -beta * dmargin
--- The derivative of -log sigmoid(m) is sigmoid(m) - 1 = -1 / (1 + exp(m)).
--- The loss is a mean over the B pairs. chosen has the factor beta in the margin, and rejected -beta.
--- dmargin = -1 / (1 + np.exp(margin)) * dloss / len(margin)

=== 27 group-advantages: the baseline of a group
import numpy as np


def group_advantages(rewards):
    """Return the advantages of answers over the other answers to the same question.

    rewards  of shape (P, G): G answers to each of P questions
    Returns the advantages, of shape (P, G): (reward - mean) / standard deviation of the question's rewards.
    If all rewards of a question are equal, its advantages are 0.
    """
    # solution
    centred = rewards - rewards.mean(1, keepdims=True)
    deviation = rewards.std(1, keepdims=True)
    return centred / np.where(deviation > 0, deviation, 1)
--- The mean and the standard deviation are those of each row. keepdims=True keeps the axis for the division.
--- Where the deviation is 0, the rewards minus their mean are 0, too. So divide by 1 there.
--- centred / np.where(deviation > 0, deviation, 1)

=== 27 accept: keep a drafted token or replace it
import numpy as np


def accept(tokens, p, q, rng):
    """Decide how many drafted tokens to keep, and draw the token after them.

    tokens  a list of N drafted token ids
    p       the probabilities of the large model, of shape (N + 1, V): for each of them and for one more
    q       the probabilities from which they were drawn, of shape (N, V)
    rng     a generator. rng.random() draws a number from 0 to 1; draw(row, rng) draws a token from numbers
            (V,), which need not sum to 1
    A token x is kept if rng.random() q(x) < p(x). The first that is not kept ends the loop: then the next
    token is drawn from max(0, p - q). If all are kept, it is drawn from the last row of p.
    Returns (the number of tokens to keep, the next token).
    """
    def draw(row, rng):
        ends = row.cumsum()
        return int((ends <= rng.random() * ends[-1]).sum())

    # solution
    for i, token in enumerate(tokens):
        if rng.random() * q[i][token] >= p[i][token]:
            return i, draw(np.maximum(p[i] - q[i], 0), rng)
    return len(tokens), draw(p[-1], rng)
--- Go through the tokens with their rows of p and q, and return at the first one that is not kept.
--- For each token, draw one number: the token is not kept if rng.random() * q[i][token] >= p[i][token].
--- return i, draw(np.maximum(p[i] - q[i], 0), rng) in the loop, and len(tokens), draw(p[-1], rng) after it.
''',
    {
        "lora-backward": Task(
            F.lora_linear_backward,
            pair_trial("", _lora, "lora_linear_backward", (3, 4), (4, 2), (2, 5)),
            pair_trial("a scale", _lora, "lora_linear_backward", (3, 4), (4, 2), (2, 5), scale=0.3),
        ),
        "quantize": Task(quantize, Values("", _quantized)),
        "dpo-backward": Task(
            F.dpo_backward,
            pair_trial("", _dpo, "dpo_backward", (3,), (3,)),
            pair_trial("another beta", _dpo, "dpo_backward", (3,), (3,), beta=0.8),
        ),
        "group-advantages": Task(group_advantages, Values("", _advantages)),
        "accept": Task(accept, Values("", _accepted)),
    },
)

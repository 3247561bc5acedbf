"""Chapter 15: the logit lens, the terms of a logit, attribution patching, and induction heads."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises

EPS = 1e-5  # of the norm


def logit_lens(states: Array, gain: Array, bias: Array, weight: Array) -> Array:
    """Return the logits after each layer: the solution."""
    normalized, _ = F.layer_norm(states, gain, bias, EPS)
    return normalized @ weight


def logit_terms(parts: Array, gain: Array, w: Array) -> Array:
    """Return what each part adds to a logit: the solution."""
    x = parts.sum(0)
    centred = parts - parts.mean(-1, keepdims=True)
    terms: Array = (centred / np.sqrt(x.var() + EPS) * gain) @ w
    return terms


def first_order(a: Array, other: Array, da: Array) -> Array:
    """Estimate the effect of each patch: the solution."""
    effects: Array = ((other - a) * da).sum(-1)
    return effects


def stripe_score(weights: Array, ids: Array) -> Array:
    """Return the weight of the tokens that followed an equal token: the solution."""
    followed = np.zeros(weights.shape[-2:], bool)
    followed[:, 1:] = ids[:, None] == ids[None, :-1]
    return np.where(followed, weights, 0).sum(-1)


def _lens(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    states, weight = (
        rng.standard_normal((3, 4, 5)) * np.arange(1, 4)[:, None, None],
        rng.standard_normal((5, 7)),
    )
    gain, bias = rng.uniform(0.5, 2, 5), rng.standard_normal(5)
    return {"the logits": own.logit_lens(states, gain, bias, weight)}


def _terms(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    parts, gain, w = rng.standard_normal((4, 6)) + 0.5, rng.uniform(0.5, 2, 6), rng.standard_normal(6)
    return {"the terms": own.logit_terms(parts, gain, w)}


def _estimates(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {"the effects": own.first_order(*rng.standard_normal((3, 5, 4)))}


def _stripes(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    result = {}
    for name, ids in (
        ("a row that is repeated", np.tile(rng.permutation(4), 2)),
        ("one token", np.zeros(3, int)),
    ):
        scores = np.where(np.tri(len(ids), dtype=bool), rng.standard_normal((2, len(ids), len(ids))), -np.inf)
        result[f"the scores of {name}"] = own.stripe_score(F.softmax(scores)[0], ids)
    return result


INSIDE = exercises(
    r'''
=== 15 logit-lens: what each layer would predict
import numpy as np


def logit_lens(states, gain, bias, weight):
    """Return the logits that a model would have after its embedding and after each layer.

    states      the vectors after the embedding and after each of L layers, of shape (L + 1, T, D)
    gain, bias  those of the last layer norm, of shape (D,); its eps is 1e-5
    weight      the output matrix, of shape (D, V)
    Returns the logits, of shape (L + 1, T, V).
    """
    # solution
    mean = states.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(states.var(-1, keepdims=True) + 1e-5)
    xhat = (states - mean) * rstd
    return (xhat * gain + bias) @ weight
--- The lens treats the vectors after every layer like those after the last one: it applies the last norm and
    the output matrix.
--- Layer norm: subtract the mean of the last axis, divide by sqrt(variance + 1e-5), multiply by gain, and
    add bias.
--- (xhat * gain + bias) @ weight, where xhat has the shape of states.

=== 15 logit-terms: what each part adds to a logit
import numpy as np


def logit_terms(parts, gain, w):
    """Return what each part of a vector adds to the logit norm(x) @ w, where x = sum of the parts.

    The norm is a layer norm without bias, and the deviation by which it divides is that of x, with eps 1e-5.
    It counts as a constant.
    parts  the vectors of the embedding, the heads and so on, of shape (N, D)
    gain   that of the norm, of shape (D,)
    w      the column of the output matrix that belongs to the token, of shape (D,)
    Returns the terms, of shape (N,). Their sum is the logit.
    """
    # solution
    x = parts.sum(0)
    rstd = 1 / np.sqrt(x.var() + 1e-5)
    centred = parts - parts.mean(-1, keepdims=True)
    return (centred * rstd * gain) @ w
--- With a constant deviation, the norm is a linear map. So the logit of a sum is the sum of the logits.
--- The deviation is that of x, the sum of all parts. The mean that is subtracted from a part is its own.
--- rstd = 1 / np.sqrt(parts.sum(0).var() + 1e-5), and the terms are (centred * rstd * gain) @ w.

=== 15 attribution-patching: the effects of all patches at once
import numpy as np


def first_order(a, other, da):
    """Estimate what each patch does to a score: the vector of one token is replaced by that of another run.

    a      the vectors of the run, of shape (T, D)
    other  the vectors of the other run, of shape (T, D)
    da     the gradient of the score with respect to a, of shape (T, D)
    Returns the estimates, of shape (T,).
    """
    # solution
    return ((other - a) * da).sum(-1)
--- To first order, a function changes by the product of its gradient with the change of its input.
--- The patch of a token changes its vector by other - a.
--- One number for each token: the sum of (other - a) * da over the last axis.

=== 15 stripe-score: does a head copy what followed?
import numpy as np


def stripe_score(weights, ids):
    """Return, for each query, the weight of all tokens that followed a token equal to the query's.

    weights  the attention weights of the heads, of shape (H, T, T): queries, then keys
    ids      the tokens, of shape (T,)
    Returns the sums, of shape (H, T). Key s counts for query t if ids[s - 1] == ids[t]. No token is before
    key 0.
    """
    # solution
    followed = np.zeros((len(ids), len(ids)), bool)
    followed[:, 1:] = ids[:, None] == ids[:-1]
    return (weights * followed).sum(-1)
--- Make a bool array (T, T) that is True where key s counts for query t.
--- Column 0 is False. Column s compares all ids with ids[s - 1]: the columns from 1 on are
    ids[:, None] == ids[:-1].
--- The sum of weights * followed over the last axis.
''',
    {
        "logit-lens": Task(logit_lens, Values("", _lens, numbers=((1e-5, "eps"),))),
        "logit-terms": Task(logit_terms, Values("", _terms)),
        "attribution-patching": Task(first_order, Values("", _estimates)),
        "stripe-score": Task(stripe_score, Values("", _stripes)),
    },
)

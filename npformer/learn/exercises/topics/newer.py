"""Chapter 26: the updates of Muon, the delta rule, mixtures of experts, and attention to latent vectors."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.functional.muon import COEFFICIENTS
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics.tools import output


def orthogonalize(g: Array, steps: int = 5) -> Array:
    """Make singular values equal as npformer does, without the small number beside the norm: the solution."""
    a, b, c = COEFFICIENTS
    x: Array = g / np.linalg.norm(g)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


def absorbed_attention(
    q: Array, q_rotary: Array, latent: Array, key_rotary: Array, wk: Array, wv: Array
) -> Array:
    """Attend with keys and values, as the forward pass of the layer does: the solution."""
    k, _ = F.join_shared(key_rotary[None, None], (latent @ wk)[None])  # (1, H, S, R + K)
    joined = np.concatenate([q_rotary, q], -1)[None, :, None]  # (1, H, 1, R + K)
    y, _ = F.attention(joined, k, (latent @ wv)[None])
    return y[0, :, 0]


def _latent(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    q, q_rotary = rng.standard_normal((3, 4)), rng.standard_normal((3, 2))  # (H, K) and (H, R)
    latent, key_rotary = rng.standard_normal((7, 5)), rng.standard_normal((7, 2))  # (S, C) and (S, R)
    wk, wv = rng.standard_normal((3, 5, 4)), rng.standard_normal((3, 5, 6))  # (H, C, K) and (H, C, L)
    return {
        "y": own.absorbed_attention(q, q_rotary, latent, key_rotary, wk, wv),
        "y of a single token": own.absorbed_attention(q, q_rotary, latent[:1], key_rotary[:1], wk, wv),
    }


def _matrices(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    wide, tall = rng.standard_normal((3, 5)), 20 * rng.standard_normal((6, 4))
    return {
        "a wide matrix": own.orthogonalize(wide),
        "a tall matrix": own.orthogonalize(tall),
        "a wide matrix after one iteration": own.orthogonalize(wide, 1),
    }


def _memory(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    q, k = rng.standard_normal((2, 5, 4))
    v, beta = rng.standard_normal((5, 3)), rng.uniform(0.2, 1, 5)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    return {
        "y": output(own.delta_rule(q, k, v, beta)),
        "y with beta = 1": output(own.delta_rule(q, k, v, beta**0)),
    }


def mixture(x: Array, router: Array, experts: list[Any], k: int) -> Array:
    """Compute a mixture of experts with the pairs of npformer: the solution."""
    weights, cache = F.route(x @ router, k)
    outputs = np.stack([expert(x) for expert in experts], 1)  # (N, E, D)
    return F.combine(weights, np.take_along_axis(outputs, cache.chosen[..., None], 1))[0]


def _experts(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    def expert(matrix: Array) -> Any:
        return lambda x: np.tanh(x @ matrix)

    x, router = rng.standard_normal((5, 3)), rng.standard_normal((3, 4))
    experts = [expert(matrix) for matrix in rng.standard_normal((4, 3, 3))]
    return {
        "y": own.mixture(x, router, experts, 2),
        "y with three experts for each token": own.mixture(x, router, experts, 3),
    }


NEWER = exercises(
    r'''
=== 26 newton-schulz: the update of Muon
import numpy as np


def orthogonalize(g, steps=5):
    """Return a matrix with the singular vectors of g and singular values near 1.

    g      a matrix, of shape (I, O)
    steps  the number of iterations x = a x + b (x xᵀ) x + c (x xᵀ)² x with the coefficients below
    Before the first iteration, x is g divided by its norm, the root of the sum of all squares.
    Returns the matrix, of shape (I, O).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    # solution
    x = g / np.sqrt((g * g).sum())
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + b * gram @ x + c * gram @ gram @ x
    return x
--- np.linalg.norm(g) is the norm of a matrix: the root of the sum of the squares of all its numbers.
--- Compute gram = x @ x.T once in each iteration. All products in the formula are matrix products.
--- x = a * x + (b * gram + c * gram @ gram) @ x, repeated `steps` times.

=== 26 delta-rule: a memory that corrects itself
import numpy as np


def delta_rule(q, k, v, beta):
    """Return y_t = q_t S_t, where S_t = S_{t-1} + beta_t k_tᵀ (v_t - k_t S_{t-1}) and the first memory is 0.

    q, k  queries and keys, of shape (T, K)
    v     values, of shape (T, L)
    beta  the share of each difference that is written, of shape (T,)
    Returns y, of shape (T, L).
    """
    memory = np.zeros((k.shape[1], v.shape[1]))
    y = np.zeros(v.shape)
    # solution
    for t in range(len(q)):
        difference = v[t] - k[t] @ memory
        memory = memory + beta[t] * np.outer(k[t], difference)
        y[t] = q[t] @ memory
    return y
--- A loop over the tokens. In each step: read with the key, write the difference, read with the query.
--- What the memory holds for the key is k[t] @ memory, of shape (L,).
--- memory = memory + beta[t] * np.outer(k[t], v[t] - k[t] @ memory), then y[t] = q[t] @ memory.

=== 26 mixture-of-experts: each token uses a few networks
import numpy as np


def mixture(x, router, experts, k):
    """Return for each token the weighted sum of what its k most probable experts compute.

    x        the tokens, of shape (N, D)
    router   the matrix of the router, of shape (D, E): the probabilities are softmax(x router)
    experts  a list of E functions; each computes a vector (D,) from a vector (D,)
    k        the number of experts for each token
    The weights are the probabilities of the chosen experts, divided by their sum.
    Returns y, of shape (N, D).
    """
    y = np.zeros(x.shape)
    # solution
    logits = x @ router
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    for n in range(len(x)):
        chosen = np.argsort(-p[n])[:k]
        weights = p[n, chosen] / p[n, chosen].sum()
        for w, e in zip(weights, chosen):
            y[n] = y[n] + w * experts[e](x[n])
    return y
--- np.argsort(-p[n])[:k] gives the numbers of the k most probable experts of token n.
--- The weights of token n are p[n, chosen], divided by the sum of these k numbers.
--- For each chosen expert e with the weight w, add w * experts[e](x[n]) to y[n].
=== 26 absorbed-attention: attention to latent vectors
import numpy as np


def absorbed_attention(q, q_rotary, latent, key_rotary, wk, wv):
    """Return the outputs of all heads for one query, without computing keys or values.

    The key of head h and token s would be [key_rotary[s]; latent[s] @ wk[h]], its value latent[s] @ wv[h].

    q           the part of the queries without positions, of shape (H, K)
    q_rotary    the rotated part of the queries, of shape (H, R)
    latent      the latent vectors, of shape (S, C)
    key_rotary  the rotated part of the keys, of shape (S, R)
    wk, wv      the matrices to keys and values, of shapes (H, C, K) and (H, C, L)
    Returns y, of shape (H, L).
    """
    # solution
    absorbed = np.einsum("hk,hck->hc", q, wk)
    scores = absorbed @ latent.T + q_rotary @ key_rotary.T
    scores = scores / np.sqrt(q.shape[1] + q_rotary.shape[1])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights = weights / weights.sum(1, keepdims=True)
    mean = weights @ latent
    return np.einsum("hc,hcl->hl", mean, wv)
--- The score of head h and token s is q[h] · (latent[s] @ wk[h]) + q_rotary[h] · key_rotary[s].
--- (wk @ q[:, :, None])[..., 0] multiplies each query by its matrix. The result has the shape (H, C).
--- Take the weighted mean of the latent vectors first, of shape (H, C), and multiply it by wv[h] then.
''',
    {
        "mixture-of-experts": Task(mixture, Values("", _experts)),
        "newton-schulz": Task(orthogonalize, Values("", _matrices)),
        "delta-rule": Task(F.delta_rule, Values("", _memory)),
        "absorbed-attention": Task(absorbed_attention, Values("", _latent)),
    },
)

"""Every pair: the values of its formula, exact gradients, and the dtype of its arguments, which it keeps."""

import copy
import math

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking.cases import component_cases
from npformer.checking.cases.universal import TOOK
from npformer.nn.show import named_arrays

RNG = np.random.default_rng(0)
TARGETS = np.array([[4, 1, 0], [2, 0, 3]])
ONE_HOT = np.eye(5, dtype=bool)[RNG.integers(0, 5, (2, 4))]
LENGTHS, TOKENS = np.array([[5], [3]]), np.array([[True, True, False, True], [False, True, True, True]])
WEIGHT, OLD, MARGINS = RNG.standard_normal((6, 3)), RNG.standard_normal((2, 4)), RNG.standard_normal(5)
CHOSEN = np.array([[0, 2], [1, 2], [2, 0], [0, 2], [2, 1]])  # experts of tokens
DISTANCE = np.clip(np.arange(5) - np.arange(4)[:, None], -1, 1) + 1  # of each key from each query, plus 1

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def normalized(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def turned(x, cos, sin):
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def lstm(gates, c):
    i, f, g, o = np.split(gates, 4, -1)
    after = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(after), after], -1)


def gru(gates, hidden_gates, h):
    (r, z, n), (hr, hz, hn) = np.split(gates, 3, -1), np.split(hidden_gates, 3, -1)
    n = np.tanh(n + sigmoid(r + hr) * hn)
    return sigmoid(z + hz) * h + (1 - sigmoid(z + hz)) * n


def relative(q, k, v, key_positions, value_positions):
    scores = np.einsum("btk,btsk->bts", q, k[:, None] + key_positions[DISTANCE])
    return np.einsum("bts,btsl->btl", softmax(scores / np.sqrt(3)), v[:, None] + value_positions[DISTANCE])


def delta(q, k, v, beta, log_decay=None):
    memory, y = np.zeros((2, 3, 2)), np.empty_like(v)
    for t in range(q.shape[1]):
        if log_decay is not None:
            memory *= np.exp(log_decay[:, t])[:, None, None]
        difference = v[:, t] - np.einsum("bk,bkl->bl", k[:, t], memory)
        memory += np.einsum("b,bk,bl->bkl", beta[:, t], k[:, t], difference)
        y[:, t] = np.einsum("bk,bkl->bl", q[:, t], memory)
    return y


def latent(latent_scores, active_scores, v):
    w = np.einsum("bij,bj->bi", softmax(active_scores), softmax(latent_scores))
    return np.einsum("bi,bil->bl", w / w.sum(-1, keepdims=True), v)


def mixed(states, p, taken):
    """Weigh the state of each step by p, and that of the last step by the remainder."""
    y = np.zeros(states.shape[1:])
    for where in np.ndindex(p.shape[1:]):
        n = taken[(slice(None), *where)].sum()
        weights = [*p[(slice(n - 1), *where)], 1 - p[(slice(n - 1), *where)].sum()] if n else []
        y[where] = sum(w * states[(m, *where)] for m, w in enumerate(weights))
    return y


def cross_entropy(logits, targets):
    return -np.log(softmax(logits)[*np.indices(targets.shape), targets]).mean()


def grpo(log_probs, old, reference, advantages, mask):
    ratio, r = np.exp(log_probs - old), np.exp(reference - log_probs)
    advantages = advantages[:, None]
    gain = np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages)
    return (0.04 * (r - np.log(r) - 1) - gain)[mask].mean()


def routed(logits, k):
    """Return the k largest probabilities of each row, divided by their sum."""
    largest = -np.sort(-softmax(logits))[:, :k]
    return largest / largest.sum(-1, keepdims=True)


X, ROW, SCORES = (2, 4, 6), (6,), (2, 4, 5)
Q, K, V = (2, 4, 3), (2, 5, 3), (2, 5, 2)
POSITIVE = np.abs(RNG.standard_normal((2, 5)))
# the arguments of each function, of which a shape stands for random numbers, and its formula
PAIRS = {
    "relu": ([X], lambda x: np.maximum(x, 0)),
    "sigmoid": ([X], sigmoid),
    "tanh": ([X], np.tanh),
    "mean_pool": ([X, TOKENS], lambda x, mask: (x * mask[..., None]).sum(1) / mask.sum(1)[:, None]),
    "cosine_similarity": (
        [X, X],
        lambda a, b: (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1),
    ),
    "swish": ([X], lambda x: x * sigmoid(x)),
    "gelu": ([X], gelu),
    "gelu_tanh": ([X], lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2),
    "swiglu": ([X, X], lambda gate, value: gate * sigmoid(gate) * value),
    "geglu": ([X, X], lambda gate, value: gelu(gate) * value),
    "geglu_tanh": ([X, X], lambda gate, value: PAIRS["gelu_tanh"][1](gate) * value),
    "qk_norm": (
        [(2, 3, 4, 5), (15,)],  # all heads of a token together
        lambda x, gain: gain.reshape(3, 1, 5) * x / np.sqrt((x * x).mean((1, 3), keepdims=True) + 1e-6),
    ),
    "soft_cap": ([X, 3.0], lambda x, cap: cap * np.tanh(x / cap)),
    "softmax": ([X], softmax),
    "log_softmax": ([X], lambda x: np.log(softmax(x))),
    "linear": ([X, (6, 3), (3,)], lambda x, weight, bias: x @ weight + bias),
    "lora_linear": ([X, (6, 2), (2, 3), WEIGHT], lambda x, a, b, weight: x @ (weight + a @ b)),
    "embedding": ([TARGETS, (5, 3), 1.5], lambda ids, table, scale: scale * table[ids]),
    "dropout": ([X, 0.0, None], lambda x, p, rng: x),
    "activation_dropout": ([X], lambda x: np.maximum(x, 0)),
    "layer_norm": ([X, ROW, ROW], lambda x, gain, bias: gain * normalized(x, -1) + bias),
    "rms_norm": ([X, ROW], lambda x, gain: gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)),
    "batch_norm": ([X, ROW, ROW], lambda x, gain, bias: gain * normalized(x, (0, 1)) + bias),
    "add_norm": ([X, X, ROW, ROW], lambda x, h, gain, bias: gain * normalized(x + h, -1) + bias),
    "rotate": ([X, (4, 3), (4, 3)], turned),
    "repeat_heads": ([(2, 3, 4, 2), 2], lambda x, n: np.repeat(x, n, 1)),
    "route": ([(5, 4), 2], routed),
    "combine": ([(5, 2), (5, 2, 3)], lambda weights, outputs: np.einsum("nk,nkd->nd", weights, outputs)),
    "load_balancing": (
        [(5, 3), CHOSEN],
        lambda logits, chosen: 3 * np.bincount(chosen.ravel()) / 5 @ softmax(logits).mean(0),
    ),
    "join_shared": (
        [(2, 1, 4, 3), (2, 5, 4, 2)],
        lambda shared, own: np.concatenate([np.repeat(shared, 5, 1), own], -1),
    ),
    "mask_scores": (
        [SCORES, TOKENS[..., None]],
        lambda scores, mask: np.where(mask, scores, -np.inf),
    ),
    "attention": ([Q, K, V], lambda q, k, v: softmax(q @ k.swapaxes(1, 2) / np.sqrt(3)) @ v),
    "linear_attention": ([Q, Q, (2, 4, 2)], lambda q, k, v: np.tril(q @ k.swapaxes(1, 2)) @ v),
    "delta_rule": ([Q, Q, (2, 4, 2), (2, 4)], delta),
    "gated_delta_rule": ([Q, Q, (2, 4, 2), (2, 4), (2, 4)], delta),
    "fill_scores": (
        [SCORES, TOKENS[..., None], F.Masking(-7.0)],
        lambda scores, mask, masking: np.where(mask, scores, masking.fill),
    ),
    "tutorial_attention": (
        [Q, K, V, None, F.Masking(-7.0)],
        lambda q, k, v, mask, masking: softmax(q @ k.swapaxes(1, 2) / np.sqrt(3)) @ v,
    ),
    "attend": ([SCORES, V], lambda scores, v: softmax(scores) @ v),
    "relative_attention": ([Q, K, V, (3, 3), (3, 2)], relative),
    "relative_attention_by_distance": ([Q, K, V, (3, 3), (3, 2)], relative),
    "patch_embedding": (
        [(2, 3, 4, 6), (5, 3, 2, 3), (5,)],
        lambda x, weight, bias: (
            np.einsum("bcypxq,dcpq->byxd", x.reshape(2, 3, 2, 2, 2, 3), weight).reshape(2, 4, 5) + bias
        ),
    ),
    "relative_bias": ([(3, 2), DISTANCE], lambda table, buckets: table.T[:, buckets]),
    "dot_similarity": ([Q, K], lambda q, k: np.einsum("bti,bsi->bts", q, k)),
    "general_similarity": ([Q, V, (3, 2)], lambda q, k, w: np.einsum("bti,ij,bsj->bts", q, w, k)),
    "concat_similarity": (
        [Q, V, (5,)],
        lambda q, k, w: (q @ w[:3])[..., None] + (k @ w[3:])[:, None],
    ),
    "perceptron_similarity": (
        [Q, V, (3, 4), (2, 4), (4,)],
        lambda q, k, w, u, v: np.tanh((q @ w)[:, :, None] + (k @ u)[:, None]) @ v,
    ),
    "predict_position": (
        [X, (6, 3), (3,), LENGTHS],
        lambda h, weight, v, lengths: lengths * sigmoid(np.tanh(h @ weight) @ v),
    ),
    "gaussian_window": (
        [SCORES, (2, 4), 1.5],
        lambda weights, p, sigma: weights * np.exp(-((np.arange(5) - p[..., None]) ** 2) / (2 * sigma**2)),
    ),
    "hard_attend": ([SCORES, V], lambda scores, v: np.take_along_axis(v, scores.argmax(-1)[..., None], 1)),
    "log_probability": (
        [SCORES, ONE_HOT],
        lambda scores, sample: np.log(softmax(scores)[sample]).reshape(2, 4),
    ),
    "entropy": ([SCORES], lambda scores: -(softmax(scores) * np.log(softmax(scores))).sum(-1)),
    "unit_weights": ([POSITIVE], lambda w: w / w.sum(-1, keepdims=True)),
    "latent_attend": ([(2, 5), (2, 5, 5), V], latent),
    "lstm_cell": ([(2, 8), (2, 2)], lstm),
    "gru_cell": ([(2, 6), (2, 6), (2, 2)], gru),
    "masked_update": ([X, X, TOKENS], lambda new, old, real: np.where(real[..., None], new, old)),
    "mix_states": ([(4, 2, 4, 3), (4, 2, 4), TOOK], mixed),
    "cross_entropy": ([(2, 3, 5), TARGETS], cross_entropy),
    "kl_divergence": (
        [SCORES, softmax(RNG.standard_normal(SCORES))],
        lambda logits, q: (q * np.log(q / softmax(logits))).sum(-1).mean(),
    ),
    "dpo": ([(5,), (5,), MARGINS], lambda c, r, margins: -np.log(sigmoid(0.1 * (c - r - margins))).mean()),
    "grpo": ([(2, 4), OLD, OLD[::-1], np.array([1.5, -0.5]), TOKENS], grpo),
    "l2_distance": (
        [SCORES, softmax(RNG.standard_normal(SCORES))],
        lambda logits, q: np.sqrt(((softmax(logits) - q) ** 2).sum(-1)).mean(),
    ),
}
every_pair = pytest.mark.parametrize("name", PAIRS)


def pair(name):
    return getattr(F, name), getattr(F, f"{name}_backward")


def arguments(name, dtype=np.float64):
    """Return the arguments of a pair: shapes become random numbers, and floats get the dtype."""
    rng = np.random.default_rng(1)
    drawn = [rng.standard_normal(a) if type(a) is tuple else a for a in PAIRS[name][0]]
    is_float = [isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in drawn]
    return [a.astype(dtype) if cast else a for a, cast in zip(drawn, is_float, strict=True)]


def as_tuple(grads):
    return grads if isinstance(grads, tuple) else (grads,)


def test_every_pair_of_the_package_has_a_formula():
    backwards = {name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward")}
    assert backwards - {"straight_through"} == set(PAIRS)


@every_pair
def test_values_are_those_of_the_formula(name):
    inputs = arguments(name)
    y, _ = pair(name)[0](*inputs)
    np.testing.assert_allclose(y, PAIRS[name][1](*inputs), rtol=1e-11, atol=1e-13)


@every_pair
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128])
def test_the_dtype_is_kept_and_no_argument_is_modified(name, dtype):
    """Neither forward nor backward writes into its arguments, and a cache is as precise as the output.

    Where the output is float16, a cache may be more precise.
    """
    f, f_backward = pair(name)
    inputs = arguments(name, dtype)
    before = copy.deepcopy(inputs)
    y, cache = f(*inputs)
    rng = np.random.default_rng(2)
    dy = rng.standard_normal(y.shape).astype(dtype) if y.shape else dtype(0.7)
    given = copy.deepcopy((dy, cache))
    grads = as_tuple(f_backward(dy, cache))
    assert {array.dtype for array in (y, *grads)} == {np.dtype(dtype)}
    kept = {array.dtype for _, array in named_arrays((cache,)) if array.dtype.kind in "fc"}
    # factors are real whatever the other dtypes are
    allowed = {dtype, dtype(0).real.dtype, np.float32 if dtype == np.float16 else dtype}
    assert kept <= set(map(np.dtype, allowed))
    for (where, now), (_, then) in zip(
        named_arrays((inputs, (dy, cache))), named_arrays((before, given)), strict=True
    ):
        np.testing.assert_array_equal(now, then, err_msg=where)


CASES = [case for case in component_cases() if isinstance(case.build(np.random.default_rng(1))[0], tuple)]
CASES += [case for case in component_cases() if case.name in ("mixed states", "score function, all draws")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_are_exact(case):
    """The pairs with every option, as in `npformer gradcheck`, with second derivatives."""
    report = case.check()
    assert report.ok, str(report)


def test_weights_decay_by_a_share_of_their_size():
    values = np.array([2.0, -4.0])
    F.decay_weights(values, 0.1, 0.5)
    assert values.tolist() == pytest.approx([1.9, -3.8], rel=1e-15)

"""Chapter 24: a GPT that writes."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.data.text import windows
from npformer.generation.sampling import token_probabilities
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import output
from npformer.learn.experiments.scaling import fit_power_law
from npformer.models.gpt import GPTConfig
from npformer.nn import PreallocatedKVCache


def keep_nucleus(p: Array, top_p: float) -> Array:
    """Return the probabilities (B, V) of top-p sampling: the solution."""
    return token_probabilities(np.log(p), top_p=top_p)


def cache_bytes(config: GPTConfig, length: int, batch: int, itemsize: int) -> int:
    """Return the bytes of the KV cache of a GPT, measured on its arrays: the solution."""
    places = length if config.window is None else min(length, config.window)
    new = np.zeros((batch, config.key_heads, places, config.d_head), f"f{itemsize}")
    return config.n_layers * PreallocatedKVCache(places).extended(new, new).nbytes


def append(k_room: Array, v_room: Array, length: int, k: Array, v: Array) -> tuple[Array, Array]:
    """Write new keys and values into their room, and return views of all so far: the solution."""
    end = length + k.shape[2]
    k_room[:, :, length:end], v_room[:, :, length:end] = k, v
    return k_room[:, :, :end], v_room[:, :, :end]


def _windows(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    ids = rng.integers(0, 50, 30)
    inputs, targets = own.windows(ids, np.array([4, 0, 20]), 6)
    last, next_ones = own.windows(ids, np.array([25]), 4)
    return {
        "inputs": inputs,
        "targets": targets,
        "inputs at the end of the text": last,
        "targets at the end of the text": next_ones,
    }


def _temperatures(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    logits = 3 * rng.standard_normal((2, 5))
    return {
        **{
            f"token_probabilities(logits, temperature={t})": output(
                own.token_probabilities(logits, temperature=t)
            )
            for t in (1.0, 0.5, 2.0)
        },
        "the probabilities of logits above 800": output(
            own.token_probabilities(logits + 800, temperature=0.7)
        ),
    }


def _nuclei(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    p = rng.dirichlet(np.ones(6), 3)
    steps = np.array([[0.25, 0.5, 0.125, 0.125]])  # sums without rounding errors
    return {
        **{f"keep_nucleus(p, {share})": output(own.keep_nucleus(p, share)) for share in (0.9, 0.5, 0.01)},
        "keep_nucleus(p, 0.75), where two tokens have exactly .75": output(own.keep_nucleus(steps, 0.75)),
        "keep_nucleus(p, 1.0)": output(own.keep_nucleus(p, 1.0)),
    }


def _sizes(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    config = GPTConfig.preset("small", d_model=20, n_heads=4, n_layers=3, n_kv_heads=2)
    changes: dict[str, dict[str, Any]] = {
        "n_kv_heads 2": {},
        "n_kv_heads 1": {"n_kv_heads": 1},
        "n_kv_heads None": {"n_kv_heads": None},
        "window 5": {"window": 5},
        "window 50": {"window": 50},
    }
    result = {
        f"cache_bytes(config, 7, 11, 2) with {name}": float(
            own.cache_bytes(config.replace(**change), 7, 11, 2)
        )
        for name, change in changes.items()
    }
    return result | {"cache_bytes(config, 70, 1, 4)": float(own.cache_bytes(config, 70, 1, 4))}


def _appended(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    k_room, v_room = rng.standard_normal((2, 2, 8, 3)), rng.standard_normal((2, 2, 8, 4))
    result: dict[str, Any] = {}
    length = 0
    for n_new in (3, 1, 2):
        k, v = rng.standard_normal((2, 2, n_new, 3)), rng.standard_normal((2, 2, n_new, 4))
        keys, values = own.append(k_room, v_room, length, k, v)
        length += n_new
        after = f"after {length} positions"
        result |= {
            f"keys {after}": np.array(keys),  # a copy, because the next call may change the array
            f"values {after}": np.array(values),
            f"k_room {after}": k_room.copy(),
            f"v_room {after}": v_room.copy(),
            f"keys {after} are a view of k_room": bool(np.shares_memory(keys, k_room)),
            f"values {after} are a view of v_room": bool(np.shares_memory(values, v_room)),
        }
    return result


def _power_laws(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    x = np.array([10.0, 20.0, 50.0, 100.0])
    noisy = 3 * x**-0.2 * np.exp(0.1 * rng.standard_normal(4))
    cases = {"5 x^-0.5": 5 * x**-0.5, "2 x^0.25": 2 * x**0.25, "a noisy power law": noisy}
    return {
        f"{part} of {name}": np.float64(value)
        for name, y in cases.items()
        for part, value in zip(("a", "alpha"), own.fit_power_law(x, y), strict=True)
    }


GENERATION = exercises(
    r'''
=== 24 windows: windows of a text and their targets
import numpy as np


def windows(ids, starts, length):
    """Return the inputs and the targets of a language model for windows of a text.

    ids     (N,) integers, the tokens of the text
    starts  (B,) integers, the places where the windows begin
    length  the number T of tokens to predict in each window
    Returns (inputs, targets), both of shape (B, T). targets[b, t] is the token of the text that follows
    inputs[b, t].
    """
    # solution
    places = starts[:, None] + np.arange(length + 1)
    tokens = ids[places]
    return tokens[:, :-1], tokens[:, 1:]
--- A window needs T + 1 tokens of the text: the last one is a target only.
--- starts[:, None] + np.arange(length + 1) has the shape (B, T + 1). Use it as an index of ids.
--- The inputs are all columns but the last, and the targets are all columns but the first.

=== 24 temperature: the probabilities of a temperature
import numpy as np


def token_probabilities(logits, *, temperature):
    """Return the probabilities of the next token: softmax(logits / temperature) over the last axis.

    logits       (B, V), which may be large: exp(800) is infinite
    temperature  a number above 0
    Returns (B, V). Each row sums to 1.
    """
    # solution
    z = logits / temperature
    z = z - z.max(-1, keepdims=True)
    e = np.exp(z)
    return e / e.sum(-1, keepdims=True)
--- Divide the logits by the temperature before the softmax.
--- The softmax does not change if you subtract the largest number of each row. Do this before exp.

=== 24 nucleus: top-p sampling: keep the most probable tokens
import numpy as np


def keep_nucleus(p, top_p):
    """Return the probabilities of top-p sampling.

    Keep the smallest set of the most probable tokens whose probabilities sum to top_p or more, and set the
    probabilities of the other tokens to 0. Then divide each row by its sum.
    p      (B, V), the probabilities of the next token
    top_p  a number above 0 and at most 1
    Returns (B, V). Each row sums to 1.
    """
    # solution
    order = np.argsort(-p, axis=-1)
    ranked = np.take_along_axis(p, order, -1)
    before = ranked.cumsum(-1) - ranked
    ranked = np.where(before < top_p, ranked, 0)
    result = np.zeros_like(p)
    np.put_along_axis(result, order, ranked / ranked.sum(-1, keepdims=True), -1)
    return result
--- np.argsort(-p, axis=-1) gives the tokens of each row, the most probable one first.
--- Compute for each token the sum of all tokens that are more probable. A token is kept if this sum is still
    below top_p. So the most probable token is always kept.
--- np.take_along_axis and np.put_along_axis convert between the order of the tokens and the sorted order.

=== 24 cache-bytes: the bytes of the KV cache of a GPT

def cache_bytes(config, length, batch, itemsize):
    """Return the number of bytes of the KV cache of a GPT.

    config    .n_layers, .d_model; .n_heads, the number of query heads, which divides d_model;
              .n_kv_heads, the number of heads of keys and values, or None if it is that of the query heads;
              .window, the width of a sliding window, or None
    length    the number of tokens of each text
    batch     the number of texts
    itemsize  the bytes of one number
    With a window, only the last .window tokens need room.
    Returns an int.
    """
    # solution
    heads = config.n_heads if config.n_kv_heads is None else config.n_kv_heads
    width = config.d_model // config.n_heads
    places = length if config.window is None else min(length, config.window)
    return 2 * config.n_layers * heads * width * places * batch * itemsize
--- Each layer stores a key and a value for each text, each head of keys and each token.
--- A head of keys is as wide as a query head. How wide is a query head?
--- A text that is shorter than the window needs room for its own tokens only.

=== 24 append-in-place: append to a preallocated KV cache

def append(k_room, v_room, length, k, v):
    """Write the keys and values of the next T positions into their room, in place.

    k_room  (B, G, capacity, K), the room for keys. Its first `length` positions are in use.
    v_room  (B, G, capacity, L), the room for values
    length  the number of positions so far, which is 0 at the first call
    k       (B, G, T, K), the new keys
    v       (B, G, T, L), the new values
    Returns (keys, values), of all length + T positions: views of k_room and v_room, without a copy.
    """
    # solution
    end = length + k.shape[2]
    k_room[:, :, length:end] = k
    v_room[:, :, length:end] = v
    return k_room[:, :, :end], v_room[:, :, :end]
--- The positions are the axis 2. The new ones are number length to number length + T - 1.
--- k_room[:, :, a:b] = k writes into the array, and k_room[:, :, a:b] alone is a view of it.

=== 24 power-law: fit a power law
import numpy as np


def fit_power_law(x, y):
    """Return a and alpha of the power law y = a x^(-alpha) that fits the points best.

    In logarithms, the power law is a straight line. Fit this line by least squares: the sum of the squared
    differences between log y and the line must be as small as possible.
    x, y  (N,), positive numbers
    Returns (a, alpha), two numbers.
    """
    # solution
    logx, logy = np.log(x), np.log(y)
    u = logx - logx.mean()
    slope = u @ logy / (u @ u)
    height = logy.mean() - slope * logx.mean()
    return np.exp(height), -slope
--- log y = log a - alpha log x. So the slope of the line is -alpha, and its height at log x = 0 is log a.
--- The slope is sum(u log y) / sum(u²), where u = log x - mean(log x). The line passes through the point
    (mean(log x), mean(log y)).
''',
    {
        "windows": Task(windows, Values("", _windows)),
        "temperature": Task(token_probabilities, Values("", _temperatures)),
        "nucleus": Task(keep_nucleus, Values("", _nuclei)),
        "cache-bytes": Task(cache_bytes, Values("", _sizes, hidden=hidden_inputs.sizes)),
        "append-in-place": Task(append, Values("", _appended), writes=True),
        "power-law": Task(fit_power_law, Values("", _power_laws)),
    },
)

"""Leaks: change one token and find the outputs that change. Masked outputs must not change at all."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array, like, to_numpy
from npformer.errors import UserError, quantity
from npformer.functional.masks import causal_mask

Forward = Callable[[Any], Any]
Change = Callable[[Any, int], Any]


def assert_no_leak(
    forward: Forward,
    x: Any,
    mask: Any = None,
    *,
    own: bool = False,
    change: Change | None = None,
    tolerance: float = 0.0,
) -> None:
    """Check that output t of forward(x) does not change when a token s changes that mask[t, s] forbids.

        assert_no_leak(lambda x: layer.forward(x, mask=mask), x, mask)           # x (1, T, D) or (T, D)
        assert_no_leak(lambda ids: model.forward(source, ids), ids)              # ids (1, T) or (T,)
        assert_no_leak(lambda m: layer.forward(x, m, mask=mask), memory, mask)   # mask (T, S)

    Args:
        forward: A function of one sentence. It returns an array with one row for each output, or (array,
            cache).
        x: The sentence: ids (S,), or vectors (S, D), with or without a batch axis of 1.
        mask: Bool, broadcastable to (T, S). True means that output t may depend on token s. The default is
            the causal mask. For a stack of layers it is the mask of the whole stack: with a window w, n
            layers reach n · w tokens.
        own: Allow output t to depend on token t, even if the mask forbids it. This is needed if a mask hides
            padding keys: a padding token is also a query, and the residual connection adds it to its output.
        change: A function (x, s) that returns the sentence with token s changed. By default a vector gets
            normal noise added, and an id becomes the next different id of the sentence.
        tolerance: The largest change of an output that counts as none.

    Raises:
        AssertionError: If an output changes. The message names the first one and the token that changed.
        UserError: If the mask has another shape or dtype, or if the output is random.
    """
    assert_no_movement(movement(forward, x, change=change), mask, own=own, tolerance=tolerance)


def assert_no_movement(moved: Array, mask: Any = None, *, own: bool = False, tolerance: float = 0.0) -> None:
    """Check that no output moved that the mask forbids to move.

    Args:
        moved: How far each output moved when each token changed, (T, S), from `movement`.
        mask: Bool, broadcastable to (T, S), as for `assert_no_leak`.
        own: Allow output t to depend on token t, whatever the mask says.
        tolerance: The largest change of an output that counts as none.

    Raises:
        AssertionError: If an output moved. The message names the first one and the token that changed.
        UserError: If the mask has another shape or dtype.
    """
    allowed = _allowed(mask, moved.shape)
    if own:
        allowed = allowed | _diagonal(moved.shape)
    leaks = np.argwhere((moved > tolerance) & ~allowed)
    if len(leaks):
        raise AssertionError(describe_leaks(leaks, len(moved) == moved.shape[1] and mask is not None))


def movement(forward: Forward, x: Any, *, change: Change | None = None) -> Array:
    """Return the largest change of each output when each token changes, by one forward pass for each token.

    Args:
        forward: A function of one sentence. It returns an array with one row for each output, or (array,
            cache).
        x: The sentence: ids (S,), or vectors (S, D), with or without a batch axis of 1.
        change: A function (x, s) that returns the sentence with token s changed. By default a vector gets
            normal noise added, and an id becomes the next different id of the sentence.

    Returns:
        An array (T, S), float64. It is exactly 0 if output t does not depend on token s.

    Raises:
        UserError: If the sentence has another shape, or if the output is random.
    """
    sentence, batched = _one_sentence(x)
    change = change or (_other_id if sentence.ndim == 1 else _add_noise)

    def run(tokens: Any) -> Array:
        tokens = np.array(tokens[None] if batched else tokens)  # a copy: forward may write into it
        return _outputs(forward(like(tokens, x)), batched)

    before = run(sentence)
    if not np.array_equal(before, run(sentence), equal_nan=True):
        raise UserError(
            "forward returns two outputs for one input: turn dropout off, or seed its rng in every call"
        )
    columns = [_distance(before, run(np.asarray(change(sentence.copy(), s)))) for s in range(len(sentence))]
    return np.stack(columns, 1)


def describe_leaks(leaks: Array, own_hint: bool = False) -> str:
    """Describe the first of the pairs (output, token) of `leaks`. Shapes: leaks (N, 2), N > 0."""
    t, s = (int(i) for i in leaks[0])
    text = f"output {t} moves when token {s} changes, and the mask forbids it"
    if len(leaks) > 1:
        text += f" ({len(leaks):,} such pairs)"
    if own_hint and all(t == s for t, s in leaks):
        text += (
            ": each such output depends on its own token, through query and residual; own=True allows this"
        )
    return text


def _one_sentence(x: Any) -> tuple[Array, bool]:
    """Return the sentence without a batch axis, (S,) or (S, D), and whether there was one."""
    try:
        array = np.array(to_numpy(x))
    except ValueError:
        raise UserError("x holds rows of different lengths: give one sentence") from None
    axes = 2 if array.dtype.kind in "fc" else 1
    batched = array.ndim == axes + 1 and len(array) == 1
    sentence = array[0] if batched else array
    if sentence.ndim != axes or sentence.size == 0 or array.dtype.kind not in "iufc":
        raise UserError(
            f"one sentence is tested at a time, and x has shape {array.shape} and dtype {array.dtype}: "
            "give ids (S,) or vectors (S, D), with a batch axis of 1 or without"
        )
    return sentence, batched


def _outputs(result: Any, batched: bool) -> Array:
    """Return a row of numbers for each output position. Shapes: (T, ...) or (1, T, ...) -> (T, N)."""
    array = np.asarray(to_numpy(result[0] if isinstance(result, tuple) else result))
    if batched and array.ndim and len(array) == 1:
        array = array[0]
    if array.ndim == 0 or array.size == 0:
        raise UserError(f"forward returned shape {array.shape}: it must return a row for each output")
    return array.reshape(len(array), -1)


def _distance(before: Array, after: Array) -> Array:
    """Return the largest difference in each row, infinite if NaN appears or vanishes.

    Shapes: before and after (T, N) -> (T,).
    """
    if before.shape != after.shape:
        raise UserError(
            f"forward returned {quantity(len(before), 'output')}, and {len(after)} when a token was changed: "
            "their number must not depend on the tokens"
        )
    same = (before == after) | ((before != before) & (after != after))  # NaN counts as equal to NaN here
    with np.errstate(invalid="ignore"):
        distance = np.abs(np.where(same, 0, after) - np.where(same, 0, before)).astype(np.float64)
    return np.where(np.isnan(distance), np.inf, distance).max(1)


def _allowed(mask: Any, shape: tuple[int, int]) -> Array:
    """Return the mask as bool (T, S)."""
    outputs, tokens = shape
    if mask is None:
        if outputs != tokens:
            raise UserError(
                f"forward makes {quantity(outputs, 'output')} of {quantity(tokens, 'token')}, "
                "and the causal mask is square: "
                "give a mask"
            )
        return causal_mask(tokens, np.empty(0))
    mask = np.asarray(to_numpy(mask))
    while mask.ndim > 2 and len(mask) == 1:  # (1, 1, T, S), as a model makes them
        mask = mask[0]
    if mask.dtype != bool:
        raise UserError(
            f"mask has dtype {mask.dtype}: make it bool, where True means that the query may attend"
        )
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise UserError(
            f"mask has shape {mask.shape}, and forward makes {quantity(outputs, 'output')} of "
            f"{quantity(tokens, 'token')}: "
            f"it must broadcast to {shape}"
        ) from None


def _diagonal(shape: tuple[int, int]) -> Array:
    """Return True where the output and the token have the same position."""
    if shape[0] != shape[1]:
        raise UserError(
            "own=True pairs each output with its own token, and forward makes "
            f"{quantity(shape[0], 'output')} of {quantity(shape[1], 'token')}: leave out own=True"
        )
    return np.eye(shape[0], dtype=bool)


def _other_id(ids: Array, s: int) -> Array:
    """Replace token s by the next different id of the sentence."""
    others = [i for i in (*ids[s + 1 :], *ids[:s]) if i != ids[s]]
    if not others:
        raise UserError(
            f"all ids of the sentence are {ids[s]}: give two different tokens, or the argument `change`"
        )
    ids[s] = others[0]
    return ids


def _add_noise(x: Array, s: int) -> Array:
    """Add normal noise to vector s, the same for every sentence."""
    noise = np.random.default_rng(s).standard_normal(x.shape[1])
    x[s] += noise.astype(x.dtype)
    return x

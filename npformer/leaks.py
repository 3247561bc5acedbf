"""Leaks: change one token, and see which outputs move. What a mask forbids must not move, to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import like, to_numpy
from npformer.errors import UserError
from npformer.masks import causal_mask

Forward = Callable[[Any], Any]
Change = Callable[[Any, int], Any]


def assert_no_leak(
    forward: Forward, x, mask=None, *, own: bool = False, change: Change | None = None, tolerance=0.0
) -> None:
    """Output t of forward(x) must stay as it is, to the bit, when a token s changes that mask[t, s] forbids.

    The default mask is the causal one: output t may depend on tokens 0 .. t.

        assert_no_leak(lambda x: layer.forward(x, mask=mask), x, mask)           # x (1, T, D) or (T, D)
        assert_no_leak(lambda ids: model.forward(source, ids), ids)              # ids (1, T) or (T,)
        assert_no_leak(lambda m: layer.forward(x, m, mask=mask), memory, mask)   # mask (T, S)

    own=True lets output t move with token t itself, whatever the mask says: give it where a mask hides
    padding keys, for a padding token is a query too, and a residual hands it on. For a stack of layers the
    mask is that of what the whole stack may see: under a window w, n layers reach n · w tokens.
    tolerance is how far an output may move and still count as unmoved. The rest is as for `movement`.
    Errors: AssertionError that names the first output that moves and the token that moved it. UserError for
    what cannot be tested: a mask of another shape or dtype, a forward whose output is random.
    """
    moved = movement(forward, x, change=change)  # (T, S)
    allowed = _allowed(mask, moved.shape)
    if own:
        allowed = allowed | _diagonal(moved.shape)
    leaks = np.argwhere((moved > tolerance) & ~allowed)
    if len(leaks):
        raise AssertionError(describe_leaks(leaks, len(moved) == moved.shape[1] and mask is not None))


def movement(forward: Forward, x, *, change: Change | None = None) -> np.ndarray:
    """How far each output moves, at most, when each token changes: one forward pass for each token.

    forward takes one sentence and returns an array with a row for each output, or (array, cache) as layers
    do. The sentence is an array of ids (S,), or of vectors (S, D), or either with a batch axis of 1 before.
    change(x, s) returns the sentence with token s changed; without it a vector gets normal noise added, and
    an id becomes the next other id of the sentence.
    Shapes: -> (T, S) float64, exactly 0 where not a bit of output t depends on token s.
    Errors: UserError for a sentence of another shape, or a forward whose output is random.
    """
    sentence, batched = _one_sentence(x)
    change = change or (_other_id if sentence.ndim == 1 else _add_noise)

    def run(tokens) -> np.ndarray:
        tokens = np.array(tokens[None] if batched else tokens)  # a copy: forward may write into it
        return _outputs(forward(like(tokens, x)), batched)

    before = run(sentence)
    if not np.array_equal(before, run(sentence), equal_nan=True):
        raise UserError("forward gives two outputs for one input: switch dropout off, or seed it anew")
    columns = [_distance(before, run(np.asarray(change(sentence.copy(), s)))) for s in range(len(sentence))]
    return np.stack(columns, 1)


def describe_leaks(leaks, own_hint: bool = False) -> str:
    """The first of some pairs (output, token) in words. Shapes: leaks (N, 2), N > 0."""
    t, s = (int(i) for i in leaks[0])
    text = f"output {t} moves when token {s} changes, and the mask forbids it"
    if len(leaks) > 1:
        text += f" ({len(leaks)} such pairs)"
    if own_hint and all(t == s for t, s in leaks):
        text += ": a token's own query and residual carry it there, which own=True allows"
    return text


def _one_sentence(x) -> tuple[np.ndarray, bool]:
    """The sentence without a batch axis, (S,) or (S, D), and whether there was one."""
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


def _outputs(made, batched: bool) -> np.ndarray:
    """A row of numbers for each output position. Shapes: (T, ...) or (1, T, ...) -> (T, N)."""
    array = np.asarray(to_numpy(made[0] if isinstance(made, tuple) else made))
    if batched and array.ndim and len(array) == 1:
        array = array[0]
    if array.ndim == 0 or array.size == 0:
        raise UserError(f"forward returned shape {array.shape}: it must return a row for each output")
    return array.reshape(len(array), -1)


def _distance(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The largest difference in each row, infinite where NaN comes or goes. Shapes: (T, N) twice -> (T,)."""
    if before.shape != after.shape:
        raise UserError(
            f"forward returned {len(before)} outputs, and {len(after)} once a token was changed: "
            "their number must not depend on the words"
        )
    same = (before == after) | ((before != before) & (after != after))  # NaN is NaN's equal here
    with np.errstate(invalid="ignore"):
        far = np.abs(np.where(same, 0, after) - np.where(same, 0, before)).astype(np.float64)
    return np.where(np.isnan(far), np.inf, far).max(1)


def _allowed(mask, shape: tuple[int, int]) -> np.ndarray:
    """The mask as bool (T, S). Errors: UserError for another dtype or shape."""
    outputs, tokens = shape
    if mask is None:
        if outputs != tokens:
            raise UserError(
                f"forward makes {outputs} outputs of {tokens} tokens, and the causal mask is square: "
                "give a mask"
            )
        return causal_mask(tokens, np.empty(0))
    mask = np.asarray(to_numpy(mask))
    while mask.ndim > 2 and len(mask) == 1:  # (1, 1, T, S), as a model makes them
        mask = mask[0]
    if mask.dtype != bool:
        raise UserError(f"mask has dtype {mask.dtype}: make it bool, where True means may look")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise UserError(
            f"mask has shape {mask.shape}, and there are {outputs} outputs of {tokens} tokens: "
            f"it must broadcast to {shape}"
        ) from None


def _diagonal(shape: tuple[int, int]) -> np.ndarray:
    """True where output t meets token t. Errors: UserError where they are not of one sentence."""
    if shape[0] != shape[1]:
        raise UserError(
            f"own=True pairs each output with its own token, and there are {shape[0]} outputs of {shape[1]} "
            "tokens: leave it out"
        )
    return np.eye(shape[0], dtype=bool)


def _other_id(ids, s: int):
    """Token s becomes the next other id of the sentence."""
    others = [i for i in (*ids[s + 1 :], *ids[:s]) if i != ids[s]]
    if not others:
        raise UserError(
            f"all ids of the sentence are {ids[s]}: give one with two different words, or change="
        )
    ids[s] = others[0]
    return ids


def _add_noise(x, s: int):
    """Normal noise on vector s, the same for every sentence."""
    noise = np.random.default_rng(s).standard_normal(x.shape[1])
    x[s] += noise.astype(x.dtype)
    return x

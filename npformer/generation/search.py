"""Functions that greedy and beam search share: limits of lengths, forbidden tokens, and the best tokens."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, is_array, like, to_numpy
from npformer.data import UNK
from npformer.errors import UserError, quantity
from npformer.functional.ids import check_ids
from npformer.validation import has_type, require_index, short

# "We set the maximum output length during inference to input length + 50" (Vaswani et al. 2017, section 6.1)
EXTRA_TOKENS = 50

# the defaults of a search (Vaswani et al. 2017, section 6.1); a translator with a model card has its own
BEAM = 4
LENGTH_PENALTY = 0.6
MOST_LENGTH_PENALTY = 50  # a larger exponent overflows float64 for long translations

ROWS = 16  # rows of logits that log_sum_exp processes at a time
# the smallest sum of exponentials that log_sum_exp accepts: compared with it, those that float32 rounds to 0,
# below 1e-38, do not matter
SMALLEST_SUM = 1e-20

DIVERGED = "the model's logits are not finite: its training diverged, so use an earlier state"

Limits = int | Sequence[int] | Array | None  # max_length: one number for all sentences, or one for each


def check_source(config: Any, source: Any) -> Array:
    """Return the token ids of the source on the host.

    Shapes: source (B, S) -> (B, S).

    Raises:
        UserError: If the model cannot read an id, or a sentence contains only padding.
    """
    source = source if is_array(source) else np.asarray(source)
    check_ids(source, config.source_vocab, config.max_length, "source")
    source = to_numpy(source)
    empty = np.flatnonzero(~(source != config.pad_id).any(1))
    if len(empty):
        raise UserError(
            f"source[{empty[0]}] contains only padding: give at least one token, such as the end symbol"
        )
    return source


def length_limits(config: Any, source: Array, max_length: Limits = None, min_length: int = 0) -> Array:
    """Return the largest number of tokens of each translation, its end symbol not counted.

    Args:
        config: The model's configuration. The start symbol takes one of its max_length positions; the end
            symbol is predicted and never read.
        source: (B, S) token ids.
        max_length: One number for all sentences or one for each. Without it, the length of the source + 50,
            as in the paper, or as many tokens as the model can hold.
        min_length: The smallest number of tokens, which is only checked here.

    Returns:
        (B,) integers.

    Raises:
        UserError: If the model cannot hold a max_length, if there is neither one max_length nor one for each
            sentence, or if min_length is larger than a limit.
    """
    limits = _limits(config, source, max_length)
    require_index("min_length", min_length)
    if min_length > limits.min():
        raise UserError(f"min_length is {min_length}: give 0 to {limits.min()}, the largest number of tokens")
    return limits


def _limits(config: Any, source: Array, max_length: Limits) -> Array:
    most: int = config.max_length - 1
    if most < 1:
        raise UserError(
            "the model's max_length is 1, which the start symbol takes: train a model with a larger one"
        )
    limits: Array
    if max_length is None:
        limits = np.minimum(most, (source != config.pad_id).sum(1) + EXTRA_TOKENS)
        return limits
    limits = one_for_each(max_length, len(source))
    wrong = limits[(limits < 1) | (limits > most)]
    if len(wrong):
        raise UserError(
            f"max_length is {wrong[0]}: give 1 to {most}, since the model holds {config.max_length} "
            "tokens, the start symbol included"
        )
    return limits


def one_for_each(max_length: int | Sequence[int] | Array, n: int) -> Array:
    """Return one number for each of n sentences.

    Args:
        max_length: One number for all sentences, or n numbers.
        n: The number of sentences.

    Returns:
        (n,) integers.

    Raises:
        UserError: If there are neither one nor n numbers.
    """
    is_known = has_type(max_length, int | list[int] | np.ndarray)
    limits = np.asarray(max_length if is_known else None)
    if limits.size and limits.dtype.kind not in "iu":
        raise UserError(f"max_length is {short(max_length)}: give a whole number, or one for each sentence")
    if limits.shape not in ((), (n,)):
        raise UserError(
            f"max_length holds {quantity(limits.size, 'number')}: give one, or one for each of {n}"
        )
    return np.broadcast_to(limits, n)


def usual_limits(config: Any, sources: Sequence[Sequence[int]]) -> Array:
    """Return 3/2 of the length of each source + 10, or as many tokens as the model can hold.

    This is enough for translations between natural languages. A model that is unsure may never predict the
    end symbol, and every further token takes time. With the paper's limit, 50 more than the source, such a
    translation of a short sentence becomes several times as long as the source.

    Shapes: B lists of ids -> (B,).
    """
    most: int = config.max_length - 1
    limits: Array = np.minimum(most, np.array([len(ids) for ids in sources]) * 3 // 2 + 10)
    return limits


def forbidden_tokens(
    config: Any, *, allow_unk: bool = False, forbidden: list[int] | None = None
) -> list[int]:
    """Return the ids that are never chosen: padding, the start symbol and, unless allow_unk, <UNK>.

    A model that was trained on text with unknown words learns to write <UNK>, often as its first choice.
    Since <UNK> tells a reader nothing, the next best token is chosen instead.

    Args:
        config: The configuration of the model.
        allow_unk: Allow the choice of <UNK>.
        forbidden: The ids in place of all these.

    Raises:
        UserError: If an id is outside the vocabulary.
    """
    if forbidden is not None:
        for token in forbidden:
            check_token(config, "forbidden", token)
        return sorted(forbidden)
    tokens = {config.pad_id, config.start_id} | (set() if allow_unk else {UNK})
    return sorted(tokens - {config.end_id})  # the end symbol is allowed even if its id is that of <UNK>


# A step needs only a few tokens of each row of the (R, V) logits, and each pass over the logits takes time.
# Therefore the functions below make few passes, compute no log-probabilities of tokens that are not chosen,
# and move only the chosen tokens to the host. best_token and best_tokens overwrite the logits.


def check_token(config: Any, name: str, token: int) -> None:
    """Check that the id of a token is in the vocabulary.

    Args:
        config: The configuration of the model.
        name: The setting that gives the token, for the message.
        token: The id.

    Raises:
        UserError: If it is not.
    """
    if not (has_type(token, int) and 0 <= token < config.target_vocab):
        raise UserError(
            f"{name} has the id {short(token)}: give ids from 0 to {config.target_vocab - 1}, those of the "
            "vocabulary"
        )


def force(logits: Array, token: int | None) -> None:
    """Let each row have the probability 1 for one token, in place: a token that costs nothing.

    transformers calls it forced_bos_token_id where it is the first one, such as the code of a language.
    Nothing happens if the token is None. Shapes: logits (R, V).
    """
    if token is not None:
        logits[...] = -math.inf
        logits[:, token] = 0


def repeating_tokens(
    hypotheses: Sequence[Sequence[int]], start_id: int, n: int
) -> tuple[list[int], list[int]]:
    """Return the tokens after which a hypothesis would have the same n tokens in a row twice.

    Args:
        hypotheses: The ids of R hypotheses.
        start_id: The start symbol, which counts as the first token of each, as in transformers.
        n: The number of tokens in a row; 0 for no such rule.

    Returns:
        The rows and the columns of these tokens in the logits (R, V).

    Raises:
        UserError: If n is no such number.
    """
    require_index("no_repeat_ngram_size", n)
    rows: list[int] = []
    columns: list[int] = []
    for row, hypothesis in enumerate(hypotheses if n else []):
        ids = [start_id, *hypothesis]
        last = ids[len(ids) - n + 1 :]  # the n - 1 tokens before the next one
        found = [ids[end - 1] for end in range(n, len(ids) + 1) if ids[end - n : end - 1] == last]
        rows += [row] * len(found)
        columns += found
    return rows, columns


def forbid(logits: Array, tokens: tuple[list[int], list[int]]) -> None:
    """Let single rows not choose single tokens, in place. Shapes: logits (R, V), tokens rows and columns."""
    if tokens[0]:
        logits[tokens] = -math.inf


def best_token(logits: Array, forbidden: list[int]) -> Array:
    """Return the most probable token of each row, on the host. Of equally probable ones, it is the first.

    The largest logit has the largest probability, so no softmax is needed.
    Shapes: logits (R, V), overwritten -> (R,).

    Raises:
        UserError: If the logits are not finite.
    """
    logits[:, forbidden] = -math.inf
    tokens = logits.argmax(-1)  # (R,) the first nan in a row that has one
    require_finite(array_module(logits).take_along_axis(logits, tokens[:, None], 1))
    return to_numpy(tokens)


class NextTokens(NamedTuple):
    """The most probable next tokens of R hypotheses, on the host, as arrays or as lists."""

    tokens: Any  # (R, N), ascending ids
    log_probs: Any  # (R, N) log p(token | tokens so far), float64
    end: Any  # (R,) log p(end symbol | tokens so far), float64


def best_tokens(
    logits: Array,
    forbidden: list[int],
    n: int,
    end_id: int,
    *,
    renormalize: bool = False,
    forced: Array | None = None,
    repeating: tuple[list[int], list[int]] = ([], []),
) -> NextTokens:
    """Return the n most probable tokens of each row. Of equally probable ones, the first are chosen.

    If fewer than n tokens are allowed, the result contains forbidden ones with log-probability -inf.

    Args:
        logits: (R, V), overwritten.
        forbidden: The ids that are not chosen.
        n: The number of tokens for each row.
        end_id: The id of the end symbol, whose log-probability is returned in any case.
        renormalize: Scale the probabilities of the allowed tokens so that they sum to 1. By default, they
            are those that the model gives them.
        forced: For each row the only token that may follow, or -1 if any may, of shape (R,), on the host.
        repeating: The rows and the columns of further tokens that are not chosen, unless they are forced.

    Raises:
        UserError: If the logits are not finite.
    """
    if forced is not None:  # a beginning may repeat itself
        pairs = [(row, token) for row, token in zip(*repeating, strict=True) if token != forced[row]]
        repeating = [row for row, _ in pairs], [token for _, token in pairs]
    end = to_numpy(logits[:, end_id]).astype(np.float64)  # (R,)
    if renormalize:
        logits[:, forbidden] = -math.inf
        forbid(logits, repeating)
    log_total = log_sum_exp(logits)[:, None]  # (R, 1)
    logits[:, forbidden] = -math.inf
    forbid(logits, repeating)
    if forced is not None:
        rows = np.flatnonzero(forced >= 0)
        only, forced = like(rows, logits), like(forced[rows], logits)
        kept = logits[only, forced]
        logits[only] = -math.inf
        logits[only, forced] = kept
    tokens, chosen = largest(logits, min(n, logits.shape[1]))
    return NextTokens(tokens, chosen - log_total, end - log_total[:, 0])


def log_sum_exp(logits: Array) -> Array:
    """Return log sum_j exp(x_j) of each row on the host, in float64.

    The log-probability of a token is its logit minus this number.

    The rows are processed in small groups, so that intermediate results stay in the processor's cache. The
    largest logit is subtracted, so that exp does not overflow, only where it has to be: each pass over the
    logits takes time. The sum is a product with ones, which takes a third of the time of the method sum.
    Shapes: (R, V) -> (R,).

    Raises:
        UserError: If a number is not finite.
    """
    xp = array_module(logits)
    y = xp.empty(len(logits), np.float64)
    ones = xp.ones(logits.shape[1], logits.dtype)  # (V,)
    for first in range(0, len(logits), ROWS):
        rows = logits[first : first + ROWS]
        with np.errstate(over="ignore"):
            e = xp.exp(rows)  # (r, V)
            total = e @ ones  # (r,)
        peak: Any = 0
        # outside these bounds, the sum is not exact: exp of the largest logit overflows or is nearly 0
        if not bool(((total > SMALLEST_SUM) & (total < 1 / SMALLEST_SUM)).all()):
            peak = rows.max(-1)  # (r,)
            xp.subtract(rows, peak[:, None], out=e)
            total = xp.exp(e, out=e) @ ones
        y[first : first + ROWS] = xp.log(total)
        y[first : first + ROWS] += peak
    require_finite(y)
    return to_numpy(y)


def largest(x: Array, n: int) -> tuple[Array, Array]:
    """Return the columns, ascending, and the values of the n largest numbers of each row, on the host.

    The maximum of the remaining numbers is taken n times. For a few of thousands of columns this is faster
    than partitioning each row, and it defines the result for equal numbers: the first ones.
    Shapes: x (R, V), overwritten -> (R, n), (R, n).
    """
    xp = array_module(x)
    rows = xp.arange(len(x))
    columns: Any
    values: Any
    columns, values = [], []
    for _ in range(n):
        column = x.argmax(-1)  # (R,)
        columns.append(column)
        values.append(x[rows, column])
        x[rows, column] = -math.inf
    columns, values = (to_numpy(xp.stack(arrays, 1)) for arrays in (columns, values))  # (R, n)
    order = columns.argsort(1)
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)


def require_finite(numbers: Array) -> None:
    """Check that logits, or what is computed from them, are finite.

    Raises:
        UserError: If they are not.
    """
    if not bool(array_module(numbers).isfinite(numbers).all()):
        raise UserError(DIVERGED)

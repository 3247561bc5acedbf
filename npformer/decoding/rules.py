"""What greedy and beam search have in common: which words may come, how many, and which are best."""

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module, is_array, to_numpy
from npformer.data import UNK
from npformer.errors import UserError
from npformer.functional import log_softmax
from npformer.ids import check_ids

# "We set the maximum output length during inference to input length + 50" (the paper, section 6.1)
ROOM = 50

ROWS = 16  # of logits in one piece

DIVERGED = "the model's logits are not finite: its training diverged, so use an earlier state"


def check_source(config, source):
    """The source's ids on the host.

    Shapes: source (B, S) -> (B, S).
    Errors: UserError for ids that the model cannot read, or a sentence without any.
    """
    source = source if is_array(source) else np.asarray(source)
    check_ids(source, config.source_vocab, config.max_length, "source")
    source = to_numpy(source)
    empty = np.flatnonzero(~(source != config.pad_id).any(1))
    if len(empty):
        raise UserError(f"source[{empty[0]}] is padding throughout: give at least one word, or only its end")
    return source


def word_limits(config, source, max_length=None, min_length=0):
    """How many words each translation may have, its end not counted.

    max_length is one number for all sentences or one for each. Without it it is the source's length + 50, as
    in the paper, or what the model can hold. The start symbol takes one of the model's config.max_length
    positions; the end is predicted, never read.
    Shapes: source (B, S) -> (B,).
    Errors: UserError for a max_length that the model cannot hold, for another number of them than of
    sentences, or for a min_length that leaves no room.
    """
    limits = _limits(config, source, max_length)
    if not 0 <= min_length <= limits.min():
        raise UserError(f"min_length is {min_length}: give 0 to {limits.min()}, the most words that may come")
    return limits


def _limits(config, source, max_length):
    most = config.max_length - 1
    if most < 1:
        raise UserError("the model's max_length is 1, which the start symbol takes: train one with more")
    if max_length is None:
        return np.minimum(most, (source != config.pad_id).sum(1) + ROOM)
    limits = one_for_each(max_length, len(source))
    wrong = limits[(limits < 1) | (limits > most)]
    if len(wrong):
        raise UserError(
            f"max_length is {wrong[0]}: give 1 to {most}, since the model holds {config.max_length} "
            "tokens, the start symbol included"
        )
    return limits


def one_for_each(max_length, n):
    """One number for each of n sentences, of one for all or of as many. Errors: UserError for any other."""
    limits = np.asarray(max_length)
    if limits.shape not in ((), (n,)):
        raise UserError(f"max_length holds {limits.size} numbers: give one, or one for each of {n}")
    return np.broadcast_to(limits, n)


def usual_limits(config, sources):
    """3/2 of each source's words and 10, or what the model can hold: room for all that people translate.

    A model in doubt may never come to an end, and each word more costs as much as any other. With the paper's
    50 more, a short sentence then has several times its length.
    Shapes: B lists of ids -> (B,).
    """
    lengths = np.array([len(ids) for ids in sources])
    return np.minimum(config.max_length - 1, lengths * 3 // 2 + 10)


def forbidden_words(config, *, allow_unk=False):
    """The ids that are never chosen: padding, the start symbol, and as a rule the unknown word.

    A model trained on text with unknown words learns to write <UNK>, often as its first choice. It tells
    a reader nothing, so the next best word is taken instead.
    """
    words = {config.pad_id, config.start_id} | (set() if allow_unk else {UNK})
    return sorted(words - {config.end_id})  # the end stays, also where a configuration gives it UNK's id


def next_log_probs(state, words, forbidden):
    """log p(next word | words so far), on the host, and -inf for what is forbidden.

    The others keep the probability that the model gave them: they are not scaled up to make 1 again.
    Shapes: words (R,) -> (R, V).
    Errors: UserError where the model's numbers are not finite.
    """
    log_probs, _ = log_softmax(state.step(words))
    log_probs = to_numpy(log_probs)
    if np.isnan(log_probs[:, 0]).any():  # one nan or inf among the logits makes the whole row nan
        raise UserError(DIVERGED)
    log_probs[:, forbidden] = -np.inf
    return log_probs


# Of (R, V) logits a step needs a few words of each row, and each pass over them takes its time: so there are
# few passes, no log-probabilities of words that nobody chooses, and only the choice goes to the host.
# best_word and best_words write over the logits.


def best_word(logits, forbidden):
    """The likeliest word of each row, on the host; of equal ones the first.

    The largest logit has the largest probability: no softmax is needed.
    Shapes: logits (R, V), written over -> (R,).
    Errors: UserError where the model's numbers are not finite.
    """
    logits[:, forbidden] = -math.inf
    words = logits.argmax(-1)  # (R,) where there is a nan, the nan
    _check_finite(array_module(logits).take_along_axis(logits, words[:, None], 1))
    return to_numpy(words)


class NextWords(NamedTuple):
    """The likeliest words to come after each of R hypotheses, on the host."""

    words: Any  # (R, N) in the order of their ids
    log_probs: Any  # (R, N) log p(word | words so far), float64
    end: Any  # (R,) log p(end | words so far), float64


def best_words(logits, forbidden, n, end_id):
    """The n likeliest words of each row, of equal ones the first; a row with fewer is filled up by -inf.

    As in next_log_probs, the probabilities of words that are not forbidden stay as the model gave them.
    Shapes: logits (R, V), written over -> NextWords.
    Errors: UserError where the model's numbers are not finite.
    """
    log_total = log_sum_exp(logits)[:, None]  # (R, 1)
    end = to_numpy(logits[:, end_id]).astype(np.float64)  # (R,)
    logits[:, forbidden] = -math.inf
    words, chosen = largest(logits, min(n, logits.shape[1]))
    return NextWords(words, chosen - log_total, end - log_total[:, 0])


def log_sum_exp(logits):
    """log sum_j exp(x_j) of each row, on the host, in float64: what a log-probability lies below its logit.

    Some rows at a time, so that what lies between stays in the processor's cache.
    Shapes: (R, V) -> (R,). Errors: UserError where a number is not finite.
    """
    xp = array_module(logits)
    y = xp.empty(len(logits), np.float64)
    for first in range(0, len(logits), ROWS):
        rows = logits[first : first + ROWS]
        peak = rows.max(-1, keepdims=True)  # (r, 1)
        e = rows - peak  # (r, V)
        y[first : first + ROWS] = xp.log(xp.exp(e, out=e).sum(-1))
        y[first : first + ROWS] += peak[:, 0]
    _check_finite(y)
    return to_numpy(y)


def largest(x, n):
    """The n largest numbers of each row, of equal ones the first: their columns, ascending, and themselves.

    n times the largest of what is left: for a few of thousands the quickest way, quicker than a partition
    of each row, and the only one that says which of equal ones it takes.
    Shapes: x (R, V), written over -> (R, n), (R, n), on the host.
    """
    xp = array_module(x)
    rows = xp.arange(len(x))
    columns, values = [], []
    for _ in range(n):
        column = x.argmax(-1)  # (R,)
        columns.append(column)
        values.append(x[rows, column])
        x[rows, column] = -math.inf
    columns, values = (to_numpy(xp.stack(found, 1)) for found in (columns, values))  # (R, n)
    order = columns.argsort(1)
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)


def _check_finite(numbers):
    if not bool(array_module(numbers).isfinite(numbers).all()):
        raise UserError(DIVERGED)

"""What greedy and beam search have in common: which words may come, and how many."""

import numpy as np

from npformer.backend import is_array, to_numpy
from npformer.data import UNK
from npformer.errors import UserError
from npformer.functional import log_softmax
from npformer.ids import check_ids

# "We set the maximum output length during inference to input length + 50" (the paper, section 6.1)
ROOM = 50


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


def word_limits(config, source, max_length=None):
    """How many words each translation may have, its end not counted.

    Without max_length it is the source's length + 50, as in the paper, or what the model can hold. The
    start symbol takes one of the model's config.max_length positions; the end is predicted, never read.
    Shapes: source (B, S) -> (B,).
    Errors: UserError for a max_length that the model cannot hold.
    """
    most = config.max_length - 1
    if most < 1:
        raise UserError("the model's max_length is 1, which the start symbol takes: train one with more")
    if max_length is None:
        return np.minimum(most, (source != config.pad_id).sum(1) + ROOM)
    if not 1 <= max_length <= most:
        raise UserError(
            f"max_length is {max_length}: give 1 to {most}, since the model holds {config.max_length} "
            "tokens, the start symbol included"
        )
    return np.full(len(source), max_length)


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
        raise UserError("the model's logits are not finite: its training diverged, so use an earlier state")
    log_probs[:, forbidden] = -np.inf
    return log_probs

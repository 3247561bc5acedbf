"""Greedy search: at each position the most probable word."""

import numpy as np

from npformer.decoding.rules import check_source, forbidden_words, next_log_probs, word_limits
from npformer.decoding.state import start


def greedy(model, source, *, max_length=None, cached=True, allow_unk=False) -> list[list[int]]:
    """y_t = argmax_w p(w | y_1 .. y_{t-1}, source), until the end symbol or max_length words.

    A word chosen is never taken back, so the whole need not be the most probable sentence: see
    beam_search. Of equal words the one with the lower id is taken; padding, the start symbol and, unless
    allow_unk, the unknown word never are. cached=False computes every position anew at every step.
    Shapes: source (B, S) ids, padded -> B lists of ids, without start and end.
    Errors: UserError for a source that the model cannot read, or a max_length that it cannot hold.
    Source: max_length is the source's length + 50 unless given, Vaswani et al. 2017, section 6.1.
    """
    config = model.config
    source = check_source(config, source)
    limits = word_limits(config, source, max_length)  # (B,)
    forbidden = forbidden_words(config, allow_unk=allow_unk)
    found: list[list[int]] = [[] for _ in source]
    state = start(model, source, cached=cached)
    words = np.full(len(source), config.start_id)  # (R,) the last word of each row
    length = 0
    while len(words):
        words = next_log_probs(state, words, forbidden).argmax(-1)  # (R,)
        length += 1
        for sentence, word in zip(state.sentence, words.tolist(), strict=True):
            if word != config.end_id:
                found[sentence].append(word)
        # finished sentences leave the batch, so that they cost nothing while the others go on
        unfinished = (words != config.end_id) & (length < limits[state.sentence])
        rows = np.flatnonzero(unfinished)
        words = words[rows]
        state.select(rows)
    return found

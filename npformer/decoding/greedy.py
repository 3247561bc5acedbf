"""Greedy search: at each position the most probable word."""

import numpy as np

from npformer.decoding.rules import best_word, check_source, forbidden_words, word_limits
from npformer.decoding.state import start

WORTH_LEAVING = 0.75  # the share of live rows at which the others leave


def greedy(
    model, source, *, max_length=None, min_length: int = 0, cached=True, allow_unk=False
) -> list[list[int]]:
    """y_t = argmax_w p(w | y_1 .. y_{t-1}, source), until the end symbol or max_length words.

    A word chosen is never taken back, so the whole need not be the most probable sentence: see
    beam_search. Of equal words the one with the lower id is taken; padding, the start symbol and, unless
    allow_unk, the unknown word never are. min_length words come before the end may; max_length is one number
    for all sentences, or one for each. cached=False computes every position anew at every step.
    Shapes: source (B, S) ids, padded -> B lists of ids, without start and end.
    Errors: UserError for a source that the model cannot read, or a max_length that it cannot hold.
    Source: max_length is the source's length + 50 unless given, Vaswani et al. 2017, section 6.1.
    """
    config = model.config
    source = check_source(config, source)
    limits = word_limits(config, source, max_length, min_length)  # (B,)
    forbidden = forbidden_words(config, allow_unk=allow_unk)
    found: list[list[int]] = [[] for _ in source]
    state = start(model, source, cached=cached)
    words = np.full(len(source), config.start_id)  # (R,) the last word of each row
    live = np.full(len(source), True)  # (R,)
    length = 0
    while live.any():
        early = [config.end_id] if length < min_length else []
        words = best_word(state.step(words), forbidden + early)  # (R,)
        length += 1
        goes_on = live & (words != config.end_id)
        for row in np.flatnonzero(goes_on).tolist():
            found[state.sentence[row]].append(int(words[row]))
        live = goes_on & (length < limits[state.sentence])
        # finished sentences leave the batch, so that they cost nothing while the others go on; but those that
        # stay are copied then, so only when it pays
        if live.sum() <= WORTH_LEAVING * len(live):
            rows = np.flatnonzero(live)
            words, live = words[rows], live[rows]
            state.select(rows)
    return found

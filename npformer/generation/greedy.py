"""Greedy search: the most probable token at each position."""

from typing import Any

import numpy as np

from npformer.generation.prefixes import Begin, Prefixes
from npformer.generation.search import (
    Limits,
    best_token,
    check_source,
    forbid,
    forbidden_tokens,
    force,
    length_limits,
    repeating_tokens,
)
from npformer.generation.state import start

LARGEST_LIVE_SHARE = 0.75  # finished rows are removed when at most this share of all rows is unfinished


def greedy(
    model: Any,
    source: Any,
    *,
    max_length: Limits = None,
    min_length: int = 0,
    cached: bool = True,
    allow_unk: bool = False,
    forbidden: list[int] | None = None,
    forced_bos: int | None = None,
    begin: Begin = None,
    no_repeat_ngram_size: int = 0,
) -> list[list[int]]:
    """Return y_t = argmax_w p(w | y_1 .. y_{t-1}, source) for each sentence, up to the end symbol.

    A chosen token is never revised, so the result need not be the most probable sequence: see beam_search.
    Of equally probable tokens, the one with the lower id is chosen. Padding and the start symbol are never
    chosen.

    Args:
        model: An encoder-decoder model.
        source: (B, S) token ids, padded.
        max_length: The largest number of tokens, one number for all sentences or one for each. By default,
            the length of the source + 50, or as many as the model can hold.
        min_length: The number of tokens before the end symbol is allowed.
        cached: False computes all positions again at each step.
        allow_unk: Allow the choice of <UNK>.
        forbidden: The ids that are never chosen, in place of padding, the start symbol and <UNK>.
        forced_bos: The first token of every translation. By default, the model chooses it.
        begin: The ids of the tokens with which each of the B translations begins. By default, none.
        no_repeat_ngram_size: The number of tokens in a row that no translation has twice; 0 for no such rule.

    Returns:
        B lists of ids, without start and end symbols.

    Raises:
        UserError: If the model cannot read the source or hold max_length tokens, or if a beginning is longer
            or has a token that is never chosen.

    Source: Vaswani et al. 2017, section 6.1 (max_length).
    """
    config = model.config
    source = check_source(config, source)
    limits = length_limits(config, source, max_length, min_length)  # (B,)
    never = forbidden_tokens(config, allow_unk=allow_unk, forbidden=forbidden)
    prefixes = Prefixes(config, begin, limits, never, forced_bos)
    translations: list[list[int]] = [[] for _ in source]
    state = start(model, source, cached=cached)
    tokens = np.full(len(source), config.start_id)  # (R,) the last token of each row
    live = np.full(len(source), True)  # (R,)
    length = 0
    while live.any():
        early = [config.end_id] if length < min_length else []
        logits = state.decode_step(tokens)  # (R, V)
        so_far = [translations[each] for each in state.sentence]
        forbid(logits, repeating_tokens(so_far, config.start_id, no_repeat_ngram_size))
        force(logits, forced_bos if length == 0 else None)
        tokens = best_token(logits, never + early)  # (R,)
        if (forced := prefixes.next(state.sentence, length)) is not None:
            tokens = np.where(forced >= 0, forced, tokens)
        length += 1
        continues = live & (tokens != config.end_id)  # (R,)
        for row in np.flatnonzero(continues).tolist():
            translations[state.sentence[row]].append(int(tokens[row]))
        live = continues & (length < limits[state.sentence])
        # Finished rows are removed, so that they take no time while the others continue. To remove rows, all
        # others must be copied, so this happens only when enough rows have finished.
        if live.sum() <= LARGEST_LIVE_SHARE * len(live):
            rows = np.flatnonzero(live)
            tokens, live = tokens[rows], live[rows]
            state.select(rows)
    return translations

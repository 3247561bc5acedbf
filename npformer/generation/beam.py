"""Beam search: keep the few most probable prefixes at each step, not only the best one.

Each step considers every token after every live hypothesis, and keeps the `beam` most probable continuations.
Those that end with the end symbol are finished. The others stay live until they have max_length tokens; then
only the end symbol may follow. A beam of 1 is greedy search, and a beam that holds every sequence finds the
one with the best score.

Every token makes a sequence less probable. The empty translation consists of the end symbol alone, so its
probability has a single factor, even if the source is long. With no length penalty it therefore has a higher
score than many translations. A length penalty divides log p by a function of the length. With it, only very
improbable translations have a lower score than the empty one. The search finds the empty translation only if
the end symbol is among the `beam` most probable first tokens. This happens with a wide beam, or if the model
gives every first token a low probability. The empty translation is a prediction of the model like any other,
so the search returns it unless min_length is at least 1.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.generation.search import (
    BEAM,
    LENGTH_PENALTY,
    MOST_LENGTH_PENALTY,
    Limits,
    NextTokens,
    best_tokens,
    check_source,
    forbidden_tokens,
    length_limits,
)
from npformer.generation.state import DecodingState, start


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]  # without start and end symbols
    log_prob: float  # log p(ids, end | source)
    score: float  # log_prob, normalized by the length


class Branch(NamedTuple):
    """A continuation that one step of the search kept: a node of the search tree."""

    parent: int  # index of the branch that it continues, among those of the step before; -1 for the start
    token: int  # the end symbol if the hypothesis is finished
    log_prob: float  # the log-probability of all tokens from the start to this one


class Live(NamedTuple):
    """A hypothesis that has not ended."""

    ids: list[int]
    log_prob: float
    branch: int  # index of its last token among the branches that the last step kept
    row: int  # index of the hypothesis that it continues, among those that were live after the step before


def beam_search(
    model: Any,
    source: Any,
    *,
    beam: int = BEAM,
    length_penalty: float = LENGTH_PENALTY,
    max_length: Limits = None,
    min_length: int = 0,
    n_best: int | None = None,
    cached: bool = True,
    allow_unk: bool = False,
    first: Sequence[int] | None = None,
    trace: list[list[list[Branch]]] | None = None,
) -> list[list[Hypothesis]]:
    """Return the translations with the best score log p(y | source) / ((5 + |y|) / 6)^length_penalty.

    |y| counts the end symbol. Of equally probable continuations, the one of the better hypothesis comes
    first, then the one with the lower id. Padding and the start symbol are never chosen.

    Args:
        model: An encoder-decoder model.
        source: (B, S) token ids, padded.
        beam: The number of continuations that each step keeps.
        length_penalty: The exponent of the length penalty; 0 for none.
        max_length: The largest number of tokens, as in greedy.
        min_length: The number of tokens before the end symbol is allowed.
        n_best: The number of translations to return, by default `beam`. A smaller number gives the first ones
            of the same translations, and the search ends sooner.
        cached: False computes all positions again at each step.
        allow_unk: Allow the choice of <UNK>.
        first: The ids among which the first token is chosen; by default all.
        trace: A list that receives the search tree: trace[b][t] are the branches kept for sentence b at
            step t, best first.

    Returns:
        B lists of n_best hypotheses, best first; fewer only if there are no more.

    Raises:
        UserError: If the model cannot read the source, or a setting is out of range.

    Source: Wu et al. 2016, section 7; a beam of 4 and a penalty of 0.6 from Vaswani et al. 2017, section 6.1.
    """
    _check(beam, length_penalty, n_best)
    config = model.config
    source = check_source(config, source)
    limits = length_limits(config, source, max_length, min_length)  # (B,)
    forbidden = forbidden_tokens(config, allow_unk=allow_unk)
    not_first = [] if first is None else sorted(set(range(config.target_vocab)) - set(first))

    def next_tokens(logits: Array, length: int) -> NextTokens:
        # the `beam` best continuations of a sentence are among the `beam` best of each of its hypotheses
        early = [config.end_id] if length < min_length else []
        early += not_first if length == 0 else []
        return best_tokens(logits, forbidden + early, beam, config.end_id)

    settings = (config.end_id, beam, length_penalty)
    searches = [SentenceSearch(*settings, limit, n_best) for limit in limits.tolist()]
    _run(searches, start(model, source, cached=cached), config.start_id, next_tokens)
    if trace is not None:
        trace.extend(search.steps for search in searches)
    return [search.finished for search in searches]


def _check(beam: int, length_penalty: float, n_best: int | None) -> None:
    if beam < 1:
        raise UserError(f"beam is {beam}: it must be 1 or more")
    if not 0 <= length_penalty <= MOST_LENGTH_PENALTY:
        raise UserError(
            f"length_penalty is {length_penalty}: it must be 0 (none) or more, at most {MOST_LENGTH_PENALTY}"
        )
    if n_best is not None and not 1 <= n_best <= beam:
        raise UserError(f"n_best is {n_best}: a beam of {beam} finds 1 to {beam}")


def _run(
    searches: Sequence["SentenceSearch"],
    state: DecodingState,
    start_id: int,
    next_tokens: Callable[[Array, int], NextTokens],
) -> None:
    """Search for all sentences at once. The rows of the state are the live hypotheses, search by search."""
    tokens = np.full(len(searches), start_id)  # (R,)
    length = 0
    while len(tokens):
        best = next_tokens(state.decode_step(tokens), length)  # the best next tokens of each row
        length += 1
        rows: list[int] = []
        last_tokens: list[int] = []
        first = 0  # the first row of this search
        for search in searches:
            n_rows = len(search.live)
            if n_rows:
                search.advance(NextTokens(*(array[first : first + n_rows] for array in best)))
            rows += [first + hypothesis.row for hypothesis in search.live]
            last_tokens += [hypothesis.ids[-1] for hypothesis in search.live]
            first += n_rows
        tokens = np.array(last_tokens, np.int64)
        state.select(np.array(rows, np.int64))  # row i becomes the row that its hypothesis continues


class SentenceSearch:
    """The search for the n_best translations of one sentence."""

    def __init__(
        self, end_id: int, beam: int, length_penalty: float, limit: int, n_best: int | None = None
    ) -> None:
        self.end_id, self.beam, self.length_penalty, self.limit = end_id, beam, length_penalty, limit
        self.n_best = beam if n_best is None else n_best
        self.live = [Live([], 0.0, branch=-1, row=0)]  # best first
        self.finished: list[Hypothesis] = []  # best first, at most n_best
        self.steps: list[list[Branch]] = []

    def advance(self, best: NextTokens) -> None:
        """Keep the best continuations, given the `beam` or more best next tokens of each live hypothesis."""
        so_far = np.array([hypothesis.log_prob for hypothesis in self.live])  # (R,)
        tokens, log_probs = best.tokens, best.log_probs  # (R, N)
        if len(self.steps) == self.limit:  # only the end symbol may follow
            tokens, log_probs = np.full((len(so_far), 1), self.end_id), best.end[:, None]
        kept: list[Branch] = []
        live: list[Live] = []
        for row, column, log_prob in best_continuations(so_far, log_probs, self.beam):
            parent, token = self.live[row], int(tokens[row, column])
            if token == self.end_id:
                self._finish(parent.ids, log_prob)
            else:
                live.append(Live([*parent.ids, token], log_prob, branch=len(kept), row=row))
            kept.append(Branch(parent.branch, token, log_prob))
        self.live = [hypothesis for hypothesis in live if self._may_win(hypothesis)]
        self.steps.append(kept)

    def _finish(self, ids: list[int], log_prob: float) -> None:
        score = log_prob / length_norm(len(ids) + 1, self.length_penalty)
        insort(self.finished, Hypothesis(ids, log_prob, score), key=lambda hypothesis: -hypothesis.score)
        del self.finished[self.n_best :]

    def _may_win(self, hypothesis: Live) -> bool:
        """Return True if a live hypothesis may still end among the n_best finished ones.

        log_prob is negative, and further tokens only lower it. The score divides it by the length norm, which
        is largest for the longest translation. So no continuation has a score above
        log_prob / norm(limit + 1). The search ends when no live hypothesis can win. If this function removes
        a hypothesis, another one can take its place in the beam. But this one has an even lower log_prob, so
        it cannot win either, and the result does not change.
        """
        if len(self.finished) < self.n_best:
            return True
        bound = hypothesis.log_prob / length_norm(self.limit + 1, self.length_penalty)
        return bound > self.finished[-1].score


def length_norm(length: int, length_penalty: float) -> float:
    """Return ((5 + length) / 6)^length_penalty, the divisor of log p (Wu et al. 2016, section 7)."""
    return float(((5 + length) / 6) ** length_penalty)


def best_continuations(so_far: Array, log_probs: Array, n: int) -> Iterator[tuple[int, int, float]]:
    """Return the n continuations with the largest so_far[row] + log_probs[row, column], best first.

    Of equal sums, the one in the lower row comes first, and within a row the one in the lower column. Sums of
    -inf are left out. Sorting all R·V sums would take more time than the model does, so np.partition finds
    the n-th largest in one pass, and only the sums that are at least as large are sorted.

    Args:
        so_far: (R,) log-probabilities of the hypotheses.
        log_probs: (R, V) log-probabilities of their next tokens.
        n: The largest number of continuations.

    Returns:
        An iterator of (row, column, sum).
    """
    total = (so_far[:, None] + log_probs).reshape(-1)  # (R·V,)
    n = min(n, len(total))
    threshold = np.partition(total, len(total) - n)[len(total) - n]
    reached = np.flatnonzero((total >= threshold) & (total > -np.inf))
    best = reached[np.argsort(-total[reached], kind="stable")][:n]
    rows, tokens = np.divmod(best, log_probs.shape[1])
    return zip(rows.tolist(), tokens.tolist(), total[best].tolist(), strict=True)

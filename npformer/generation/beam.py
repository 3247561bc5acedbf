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

Libraries disagree in the details. The rules "paper" are those above. The rules "transformers" find what
`generate` of Hugging Face's transformers finds with its defaults (see TransformersSearch), for models whose
translations are to be the same there and here.
"""

import math
from bisect import insort
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.generation.prefixes import Begin, Prefixes
from npformer.generation.search import (
    BEAM,
    LENGTH_PENALTY,
    MOST_LENGTH_PENALTY,
    Limits,
    NextTokens,
    best_tokens,
    check_source,
    forbidden_tokens,
    force,
    length_limits,
    repeating_tokens,
)
from npformer.generation.state import DecodingState, start
from npformer.validation import is_number, require_choice, require_count, short


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]  #: without start and end symbols
    log_prob: float  #: log p(ids, end | source)
    score: float  #: log_prob, normalized by the length


class Branch(NamedTuple):
    """A continuation that one step of the search kept: a node of the search tree."""

    parent: int  #: index of the branch that it continues, among those of the step before; -1 for the start
    token: int  #: the end symbol if the hypothesis is finished
    log_prob: float  #: the log-probability of all tokens from the start to this one


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
    forbidden: list[int] | None = None,
    forced_bos: int | None = None,
    begin: Begin = None,
    first: Sequence[int] | None = None,
    rules: str = "paper",
    renormalize: bool = False,
    no_repeat_ngram_size: int = 0,
    early_stopping: bool | str = False,
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
        forbidden: The ids that are never chosen, in place of padding, the start symbol and <UNK>.
        forced_bos: The first token of every translation, whose probability is 1. By default, the model
            chooses it.
        begin: The ids of the tokens with which all translations of each of the B sentences begin. By default,
            none. Their probabilities count in log p.
        first: The ids among which the first token is chosen; by default all.
        rules: One of RULES: "paper", or "transformers" for the score log p(y | source) / |y|^length_penalty
            and the search of TransformersSearch; or "transformers, unforced end" for that of UnforcedSearch.
        renormalize: Scale the probabilities of the tokens that may be chosen, so that they sum to 1.
        no_repeat_ngram_size: The number of tokens in a row that no translation has twice; 0 for no such rule.
        early_stopping: True ends the search of a sentence when `beam` translations are finished, and "never"
            when no live hypothesis can win even with the score that its log p gives it at the limit. By
            default, the rules decide, and "paper" always does the latter.
        trace: A list that receives the search tree: trace[b][t] are the branches kept for sentence b at
            step t, best first.

    Returns:
        B lists of n_best hypotheses, best first; fewer only if there are no more.

    Raises:
        UserError: If the model cannot read the source, or a setting is out of range, or if a beginning is
            longer than max_length or has a token that is never chosen.

    Source: Wu et al. 2016, section 7; a beam of 4 and a penalty of 0.6 from Vaswani et al. 2017, section 6.1.
    """
    check_beam(beam, length_penalty, n_best, early_stopping, rules)
    config = model.config
    source = check_source(config, source)
    limits = length_limits(config, source, max_length, min_length)  # (B,)
    never = forbidden_tokens(config, allow_unk=allow_unk, forbidden=forbidden)
    prefixes = Prefixes(config, begin, limits, never, forced_bos)
    not_first = [] if first is None else sorted(set(range(config.target_vocab)) - set(first))
    settings = (config.end_id, beam, length_penalty)
    searches = [RULES[rules](*settings, limit, n_best, early_stopping) for limit in limits.tolist()]
    best = partial(best_tokens, n=searches[0].n_candidates, end_id=config.end_id, renormalize=renormalize)
    state = start(model, source, cached=cached)

    def next_tokens(logits: Array, length: int) -> NextTokens:
        # the n best continuations of a sentence are among the n best of each of its hypotheses
        early = ([config.end_id] if length < min_length else []) + (not_first if length == 0 else [])
        force(logits, forced_bos if length == 0 else None)
        repeating = repeating_tokens(_live_ids(searches), config.start_id, no_repeat_ngram_size)
        return best(logits, never + early, forced=prefixes.next(state.sentence, length), repeating=repeating)

    _run(searches, state, config.start_id, next_tokens)
    if trace is not None:
        trace.extend(search.steps for search in searches)
    return [search.finished[: search.n_best] for search in searches]


def _live_ids(searches: Sequence["SentenceSearch"]) -> list[list[int]]:
    """Return the ids of the live hypotheses, search by search, as the rows of the state are."""
    return [hypothesis.ids for search in searches for hypothesis in search.live]


def check_beam(
    beam: int,
    length_penalty: float = LENGTH_PENALTY,
    n_best: int | None = None,
    early_stopping: bool | str = False,
    rules: str = "paper",
) -> None:
    """Check the settings of beam search.

    Args:
        beam, length_penalty, n_best, early_stopping, rules: As in beam_search.

    Raises:
        UserError: If one of them is impossible.
    """
    require_count("beam", beam)
    require_choice("rules", rules, tuple(RULES))
    if not (is_number(length_penalty) and 0 <= length_penalty <= MOST_LENGTH_PENALTY):
        raise UserError(
            f"length_penalty is {length_penalty!r}: it must be 0 (none) or more, "
            f"at most {MOST_LENGTH_PENALTY}"
        )
    if not (isinstance(early_stopping, bool) or early_stopping == "never"):
        raise UserError(f"early_stopping is {short(early_stopping)}: it must be True, False or 'never'")
    if n_best is not None:
        require_count("n_best", n_best)
        if n_best > beam:
            raise UserError(
                f"n_best is {n_best}: a beam of {beam} finds {beam} at most, so give a larger beam"
            )


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
        # a search needs few of the numbers, so lists take less time than slices of the arrays
        columns = [array.tolist() for array in best]
        length += 1
        rows: list[int] = []
        last_tokens: list[int] = []
        first = 0  # the first row of this search
        for search in searches:
            n_rows = len(search.live)
            if n_rows:
                search.advance(NextTokens(*(column[first : first + n_rows] for column in columns)))
            rows += [first + hypothesis.row for hypothesis in search.live]
            last_tokens += [hypothesis.ids[-1] for hypothesis in search.live]
            first += n_rows
        tokens = np.array(last_tokens, np.int64)
        state.select(np.array(rows, np.int64))  # row i becomes the row that its hypothesis continues


class SentenceSearch:
    """The search for the n_best translations of one sentence, by the rules "paper".

    Args:
        end_id: The id of the end symbol.
        beam: The number of continuations that each step keeps.
        length_penalty: The exponent of the length penalty.
        limit: The largest number of tokens, without the end symbol.
        n_best: The number of translations to find; by default `beam`.
        early_stopping: When the search ends, as in beam_search.
    """

    def __init__(
        self,
        end_id: int,
        beam: int,
        length_penalty: float,
        limit: int,
        n_best: int | None = None,
        early_stopping: bool | str = False,
    ) -> None:
        self.end_id, self.beam, self.length_penalty, self.limit = end_id, beam, length_penalty, limit
        self.n_best = beam if n_best is None else n_best
        self.early_stopping = early_stopping
        self.n_candidates = beam  # the number of continuations that a step considers
        # the number of finished translations that the search keeps; True counts them, whatever n_best is
        self.n_finished = beam if early_stopping is True else self.n_best
        self.live = [Live([], 0.0, branch=-1, row=0)]  # best first
        self.finished: list[Hypothesis] = []  # best first, at most n_finished
        self.steps: list[list[Branch]] = []

    def advance(self, best: NextTokens) -> None:
        """Keep the best continuations, given the best next tokens of each live hypothesis, as lists.

        There are n_candidates or more next tokens of each.
        """
        so_far = [hypothesis.log_prob for hypothesis in self.live]  # R numbers
        tokens, log_probs = best.tokens, best.log_probs  # R lists of N
        if len(self.steps) == self.limit:  # only the end symbol may follow
            tokens, log_probs = [[self.end_id]] * len(so_far), [[each] for each in self._last(best)]
        kept: list[Branch] = []
        live: list[Live] = []
        continuations = best_continuations(so_far, log_probs, self.n_candidates)
        for rank, (row, column, log_prob) in enumerate(continuations):
            parent, token = self.live[row], tokens[row][column]
            ends = token == self.end_id or self._is_last
            if ends and rank < self.beam:
                self._finish(parent.ids, token, log_prob)
            elif not ends and len(live) < self.beam:
                live.append(Live([*parent.ids, token], log_prob, branch=len(kept), row=row))
            else:
                continue
            kept.append(Branch(parent.branch, token, log_prob))
        is_enough = self.early_stopping is True and len(self.finished) >= self.n_finished
        self.live = [] if is_enough else self._continued(live)
        self.steps.append(kept)

    @property
    def _is_last(self) -> bool:
        """Return whether a translation ends with the token of this step, whatever the token is."""
        return False

    def _last(self, best: NextTokens) -> Sequence[float]:
        """Return the R log-probabilities of the end symbol where only it may follow."""
        log_probs: Sequence[float] = best.end
        return log_probs

    def _norm(self, length: int) -> float:
        """Return the divisor of log p of a translation of `length` tokens, the end symbol included."""
        return length_norm(length, self.length_penalty)

    def _finish(self, ids: list[int], token: int, log_prob: float) -> None:
        """Keep a translation, given the ids of its tokens without the last one, the last one, and log p."""
        score = log_prob / self._norm(len(ids) + 1)
        ids = ids if token == self.end_id else [*ids, token]
        insort(self.finished, Hypothesis(ids, log_prob, score), key=lambda hypothesis: -hypothesis.score)
        del self.finished[self.n_finished :]

    def _continued(self, live: list[Live]) -> list[Live]:
        """Return the hypotheses, best first, that the next step continues."""
        return [hypothesis for hypothesis in live if self._may_win(hypothesis)]

    def _may_win(self, hypothesis: Live) -> bool:
        """Return True if a live hypothesis may still end among the n_best finished ones.

        log_prob is negative, and further tokens only lower it. The score divides it by the length norm, which
        is largest for the longest translation. So no continuation has a score above
        log_prob / norm(limit + 1). The search ends when no live hypothesis can win. If this function removes
        a hypothesis, another one can take its place in the beam. But this one has an even lower log_prob, so
        it cannot win either, and the result does not change.
        """
        if len(self.finished) < self.n_finished:
            return True
        bound = hypothesis.log_prob / self._norm(self.limit + 1)
        return bound > self.finished[-1].score


class TransformersSearch(SentenceSearch):
    """The search for the n_best translations of one sentence, as in Hugging Face's transformers.

    It differs from the rules "paper" in five points, with the names of the settings there:

    1. The score is log p / n^length_penalty, where n counts the end symbol (`length_penalty`, 1 by default).
    2. A step considers 2 `beam` continuations. Those among the first `beam` that end are finished, and the
       first `beam` that do not end are live. So finished translations do not make the beam narrower.
    3. The search ends when `beam` translations are finished and the best live hypothesis, scored as if it
       ended now, is not better than the worst of them (`early_stopping` is False). A longer continuation
       could still become better if length_penalty is above 0; "never" scores it as if it ended at the limit.
    4. `beam` translations are finished before the search ends, whatever n_best is.
    5. The end symbol that must follow the last token costs nothing (`forced_eos_token_id`).

    Arguments: as in SentenceSearch.
    """

    def __init__(self, end_id: int, beam: int, length_penalty: float, limit: int, *others: Any) -> None:
        super().__init__(end_id, beam, length_penalty, limit, *others)
        self.n_candidates, self.n_finished = 2 * beam, beam

    def _last(self, best: NextTokens) -> Sequence[float]:
        return [0.0] * len(best.end)  # log 1

    def _norm(self, length: int) -> float:
        return float(length**self.length_penalty)

    @property
    def _longest(self) -> int:
        """The largest number of tokens of a translation, the end symbol included."""
        return self.limit + 1

    def _continued(self, live: list[Live]) -> list[Live]:
        if len(self.finished) < self.n_finished or not live:
            return live
        length = self._longest if self.early_stopping == "never" else len(live[0].ids)
        bound = live[0].log_prob / self._norm(length)
        return live if bound > self.finished[-1].score else []


class UnforcedSearch(TransformersSearch):
    """A TransformersSearch in which translations that reach the limit end without the end symbol.

    So does `generate` for a model without `forced_eos_token_id`, such as T5. Here the limit counts the end
    symbol. Arguments: as in SentenceSearch.
    """

    @property
    def _is_last(self) -> bool:
        return len(self.steps) + 1 == self.limit

    @property
    def _longest(self) -> int:
        return self.limit


# the search of one sentence, by the name of its rules
RULES: dict[str, type[SentenceSearch]] = {
    "paper": SentenceSearch,
    "transformers": TransformersSearch,
    "transformers, unforced end": UnforcedSearch,
}


def length_norm(length: int, length_penalty: float) -> float:
    """Return ((5 + length) / 6)^length_penalty, the divisor of log p (Wu et al. 2016, section 7)."""
    return float(((5 + length) / 6) ** length_penalty)


def best_continuations(
    so_far: Sequence[float], log_probs: Sequence[Sequence[float]], n: int
) -> list[tuple[int, int, float]]:
    """Return the n continuations with the largest so_far[row] + log_probs[row][column], best first.

    Of equal sums, the one in the lower row comes first, and within a row the one in the lower column. Sums of
    -inf are left out. Each row holds only the best tokens of a hypothesis. For so few numbers, sorting a list
    takes less time than the calls of NumPy.

    Args:
        so_far: R log-probabilities of the hypotheses.
        log_probs: R lists of N log-probabilities of their next tokens.
        n: The largest number of continuations.

    Returns:
        A list of (row, column, sum).
    """
    width = len(log_probs[0])  # N
    sums = [total + each for total, row in zip(so_far, log_probs, strict=True) for each in row]  # R·N
    # sorted with reverse=True keeps the order of equal sums
    best = sorted(range(len(sums)), key=sums.__getitem__, reverse=True)[:n]
    return [(*divmod(index, width), sums[index]) for index in best if sums[index] > -math.inf]

"""Beam search: the few best beginnings are kept, not only the best one.

At each step, of all words after all live hypotheses, the `beam` most probable continuations are kept. Those
that end are finished; the others live on, up to max_length words, where all must end. So a beam of 1 is
greedy search, and a beam that holds every sentence finds the best of all.

Every word makes a sentence less probable, and the empty translation, an end symbol alone, costs one word:
about the same, however long the source is. Without a length penalty it beats many a translation, and with one
those that the model is least sure of. What keeps it out is only that the end is seldom among the `beam` most
probable first words: it comes in where the beam is wide, or where the model has no idea how to begin. It is
allowed here unless min_length is 1, since the model says so. Dividing by the length, as below, makes it
rarer.
"""

from bisect import insort
from typing import NamedTuple

import numpy as np

from npformer.decoding.rules import NextWords, best_words, check_source, forbidden_words, word_limits
from npformer.decoding.state import start
from npformer.errors import UserError


class Hypothesis(NamedTuple):
    """A finished translation."""

    ids: list[int]  # without start and end
    log_prob: float  # log p(ids, end | source)
    score: float  # log_prob, normalized by the length


class Branch(NamedTuple):
    """A continuation that one step of the search kept: a node of the search tree."""

    parent: int  # which of the branches kept one step before it continues; -1 for the start symbol
    word: int  # the end symbol where a hypothesis finished
    log_prob: float  # of all words from the start to this one


class Live(NamedTuple):
    """A hypothesis without its end."""

    ids: list[int]
    log_prob: float
    branch: int  # its last word, among the branches that the last step kept
    row: int  # the hypothesis that it continued, among those that were live one step before


def beam_search(
    model,
    source,
    *,
    beam: int = 4,
    length_penalty: float = 0.6,
    max_length=None,
    min_length: int = 0,
    n_best: int | None = None,
    cached=True,
    allow_unk=False,
    trace: list[list[list[Branch]]] | None = None,
) -> list[list[Hypothesis]]:
    """The translations with the best score = log p(y | source) / ((5 + |y|) / 6)^length_penalty.

    |y| counts the end symbol. Of equal continuations, that of the better hypothesis comes first, then the
    lower id. Padding, the start symbol and, unless allow_unk, the unknown word are never chosen.
    min_length words come before the end may; max_length is as in greedy. n_best: how many translations are
    wanted, `beam` unless given; the first few are the same, and with fewer wanted the search ends sooner.
    cached=False computes every position anew at every step. trace, a list, receives the search tree:
    trace[b][t] holds the branches kept for sentence b at step t, best first.
    Shapes: source (B, S) ids, padded -> B lists, best first, of n_best hypotheses (fewer only where there
    are no more).
    Errors: UserError for a source that the model cannot read, or settings out of range.
    Source: Wu et al. 2016, section 7; 4 and 0.6 from Vaswani et al. 2017, section 6.1.
    """
    _check(beam, length_penalty, n_best)
    config = model.config
    source = check_source(config, source)
    limits = word_limits(config, source, max_length, min_length)  # (B,)
    forbidden = forbidden_words(config, allow_unk=allow_unk)

    def next_words(logits, length):
        # of all continuations of a sentence's hypotheses, the `beam` best are among the `beam` best of each
        early = [config.end_id] if length < min_length else []
        return best_words(logits, forbidden + early, beam, config.end_id)

    settings = (config.end_id, beam, length_penalty)
    searches = [SentenceSearch(*settings, limit, n_best) for limit in limits.tolist()]
    _run(searches, start(model, source, cached=cached), config.start_id, next_words)
    if trace is not None:
        trace.extend(search.steps for search in searches)
    return [search.finished for search in searches]


def _check(beam, length_penalty, n_best):
    if beam < 1:
        raise UserError(f"beam is {beam}: it must be 1 or more")
    if not 0 <= length_penalty < np.inf:
        raise UserError(f"length_penalty is {length_penalty}: it must be 0 (none) or more")
    if n_best is not None and not 1 <= n_best <= beam:
        raise UserError(f"n_best is {n_best}: a beam of {beam} finds 1 to {beam}")


def _run(searches, state, start_id, next_words):
    """Search for all sentences at once; the state's rows are the first one's live hypotheses, and so on."""
    words = np.full(len(searches), start_id)  # (R,)
    length = 0
    while len(words):
        found = next_words(state.step(words), length)  # of each row
        length += 1
        rows, last, first = [], [], 0
        for search in searches:
            before = len(search.live)
            if before:
                search.advance(NextWords(*(array[first : first + before] for array in found)))
            rows += [first + hypothesis.row for hypothesis in search.live]
            last += [hypothesis.ids[-1] for hypothesis in search.live]
            first += before
        words = np.array(last, np.int64)
        state.select(np.array(rows, np.int64))  # each row goes where its continuation is


class SentenceSearch:
    """The search for the n_best translations of one sentence."""

    def __init__(self, end_id, beam, length_penalty, limit, n_best=None):
        self.end_id, self.beam, self.length_penalty, self.limit = end_id, beam, length_penalty, limit
        self.n_best = beam if n_best is None else n_best
        self.live = [Live([], 0.0, branch=-1, row=0)]  # best first
        self.finished: list[Hypothesis] = []  # best first, at most n_best
        self.steps: list[list[Branch]] = []

    def advance(self, found):
        """Keep the best continuations. found: the NextWords of each live hypothesis, at least `beam`."""
        so_far = np.array([hypothesis.log_prob for hypothesis in self.live])  # (R,)
        words, log_probs = found.words, found.log_probs  # (R, N)
        if len(self.steps) == self.limit:  # no room for another word
            words, log_probs = np.full((len(so_far), 1), self.end_id), found.end[:, None]
        kept: list[Branch] = []
        live: list[Live] = []
        for row, column, log_prob in best_continuations(so_far, log_probs, self.beam):
            parent, word = self.live[row], int(words[row, column])
            if word == self.end_id:
                self._finish(parent.ids, log_prob)
            else:
                live.append(Live([*parent.ids, word], log_prob, branch=len(kept), row=row))
            kept.append(Branch(parent.branch, word, log_prob))
        self.live = [hypothesis for hypothesis in live if self._may_win(hypothesis)]
        self.steps.append(kept)

    def _finish(self, ids, log_prob):
        score = log_prob / length_norm(len(ids) + 1, self.length_penalty)
        insort(self.finished, Hypothesis(ids, log_prob, score), key=lambda found: -found.score)
        del self.finished[self.n_best :]

    def _may_win(self, hypothesis):
        """Whether its best possible end could still come before the worst of n_best finished ones.

        More words only lower log_prob, which is negative, and the longest end divides it by most: so no
        end of it scores more than log_prob / norm(limit + 1). The search is over when none may win. What
        takes the place of one that is gone has a log_prob that is lower still: nothing is lost.
        """
        if len(self.finished) < self.n_best:
            return True
        bound = hypothesis.log_prob / length_norm(self.limit + 1, self.length_penalty)
        return bound > self.finished[-1].score


def length_norm(length, length_penalty):
    """((5 + length) / 6)^length_penalty: what a log-probability is divided by (Wu et al. 2016, section 7)."""
    return ((5 + length) / 6) ** length_penalty


def best_continuations(so_far, log_probs, n):
    """The n best (row, word, so_far[row] + log_probs[row, word]), best first; none that is -inf.

    Of equal ones the lower row, then the lower word comes first. A full sort of all R·V would take longer
    than the model: np.partition finds the n-th best in one pass, and only what reaches it is sorted.
    Shapes: so_far (R,), log_probs (R, V).
    """
    total = (so_far[:, None] + log_probs).reshape(-1)  # (R·V,)
    n = min(n, len(total))
    threshold = np.partition(total, len(total) - n)[len(total) - n]
    reached = np.flatnonzero((total >= threshold) & (total > -np.inf))
    best = reached[np.argsort(-total[reached], kind="stable")][:n]
    rows, words = np.divmod(best, log_probs.shape[1])
    return zip(rows.tolist(), words.tolist(), total[best].tolist(), strict=True)

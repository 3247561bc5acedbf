"""Byte-pair encoding read back: a word into the pieces that training made, in the order it made them."""

from collections.abc import Iterable
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import groupby

WORD_BEGIN = "▁"  # U+2581 stands before every word, as sentencepiece writes it: "▁the ▁dog s"

# words met again need no second search; a corpus of sentences has far fewer different ones
_REMEMBERED = 1 << 17


class Pieces:
    """Splits words by byte-pair encoding.

    Starting from single characters, the two neighbours whose joint piece was made first in training are
    joined, the leftmost where several are equal, until no two neighbours make a piece.

    pieces: those that training made, the earliest first; single characters may stand anywhere among them.
    Source: Sennrich et al. 2016, section 3.2; pieces rather than pairs decide, as in sentencepiece.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self.ranks = {piece: rank for rank, piece in enumerate(pieces)}
        self.split = lru_cache(_REMEMBERED)(self._split)

    def _split(self, word: str) -> tuple[str, ...]:
        """The pieces of WORD_BEGIN + word; a run of characters that training never saw stays together."""
        pieces = self._join(WORD_BEGIN + word)
        runs = groupby(pieces, key=self.ranks.__contains__)
        split: list[str] = []
        for known, run in runs:
            split += run if known else ["".join(run)]
        return tuple(split)

    def _join(self, text: str) -> list[str]:
        """Join neighbours, best first: n characters take about n log n steps, however long the word.

        A piece is text[start:stop]. A candidate (rank, start, middle, stop) would join two pieces that met
        at `middle`; it has lapsed when either of them was joined to another since.
        """
        stops = list(range(1, len(text) + 1))  # stops[start], where a piece starts
        starts = list(range(-1, len(text)))  # starts[stop], where a piece stops
        candidates = []
        for start in range(len(text) - 1):
            rank = self.ranks.get(text[start : start + 2])
            if rank is not None:
                candidates.append((rank, start, start + 1, start + 2))
        heapify(candidates)
        while candidates:
            _, start, middle, stop = heappop(candidates)
            if stops[start] != middle or stops[middle] != stop:
                continue
            stops[start], starts[stop] = stop, start
            stops[middle] = starts[middle] = -1  # no piece starts or stops here any more
            before = (starts[start], start, stop)
            after = (start, stop, stops[stop] if stop < len(text) else -1)
            for left, meet, right in (before, after):
                rank = self.ranks.get(text[left:right]) if left >= 0 and right >= 0 else None
                if rank is not None:
                    heappush(candidates, (rank, left, meet, right))
        pieces, start = [], 0
        while start < len(text):
            pieces.append(text[start : stops[start]])
            start = stops[start]
        return pieces

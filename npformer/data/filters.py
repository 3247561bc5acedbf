"""Filters for a parallel corpus, which leave out useless pairs before training and count them."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from npformer.errors import quantity

Pair = tuple[str, str]

# These numbers leave out two of Multi30k's 29,000 pairs to German, whose translations are a single full stop.
# Every other pair to German or French has a ratio below 2.3, so no useful pair is left out.
RATIO, SLACK = 4.0, 20


class Counts(NamedTuple):
    """The number of pairs of a corpus, and the number left out for each reason. No pair counts twice."""

    pairs: int
    empty: int = 0
    long: int = 0
    uneven: int = 0
    repeated: int = 0

    @property
    def dropped(self) -> int:
        """The number of pairs left out, for any reason."""
        return self.empty + self.long + self.uneven + self.repeated

    @property
    def kept(self) -> int:
        """The number of pairs that are left."""
        return self.pairs - self.dropped

    def sentence(self) -> str:
        """Return the counts as text: "29,000 pairs: 12 empty, 3 repeated left out, 28,985 kept"."""
        reasons = {
            "empty": self.empty,
            "too long": self.long,
            "of wildly different lengths": self.uneven,
            "repeated": self.repeated,
        }
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        pairs = quantity(self.pairs, "pair")
        return f"{pairs}: {dropped} left out, {self.kept:,} kept" if dropped else f"{pairs}, none left out"


def filter_pairs(pairs: Iterable[Pair]) -> tuple[list[Pair], Counts]:
    """Return the pairs to train on, in their order, and the counts of all others.

    A pair is left out if a side is empty, if the lengths of its sides differ too much, or if the pair
    occurred before. Lengths differ too much if longer > RATIO · shorter + SLACK. They are counted in
    characters. The lengths of the targets are multiplied by the median of source / target over the
    corpus, because languages differ: Multi30k's German is 15 % longer than its English. The slack allows for
    one more word in a short sentence.

    Source: Gale and Church 1993 compare scaled lengths in characters to align sentences.
    """
    all_pairs = list(pairs)
    not_empty = [pair for pair in all_pairs if all(side.strip() for side in pair)]
    even = _even(not_empty)
    kept = list(dict.fromkeys(even))
    return kept, Counts(
        pairs=len(all_pairs),
        empty=len(all_pairs) - len(not_empty),
        uneven=len(not_empty) - len(even),
        repeated=len(even) - len(kept),
    )


def _even(pairs: list[Pair]) -> list[Pair]:
    """Return the pairs whose sides have similar lengths."""
    if not pairs:
        return []
    lengths = [(len(source), len(target)) for source, target in pairs]
    usual_ratio = median(source / target for source, target in lengths)
    scaled = [(source, usual_ratio * target) for source, target in lengths]
    return [
        pair for pair, sides in zip(pairs, scaled, strict=True) if max(sides) <= RATIO * min(sides) + SLACK
    ]

"""What a parallel corpus holds that teaches nothing: left out before training, and counted."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from npformer.errors import UserError
from npformer.settings import is_number, require_count

Pair = tuple[str, str]

# Multi30k's 29,000 pairs to German have two that these two leave out, whose translations are a full stop; of
# all the others to German and French none reaches 2.3 times, so nothing sensible comes near
RATIO, SLACK = 4.0, 20


class Counts(NamedTuple):
    """How many pairs a corpus has, and how many were left out for each reason; no pair counts twice."""

    pairs: int
    empty: int = 0
    long: int = 0
    uneven: int = 0
    repeated: int = 0

    @property
    def dropped(self) -> int:
        """The pairs left out, for whatever reason."""
        return self.empty + self.long + self.uneven + self.repeated

    @property
    def kept(self) -> int:
        """The pairs that are left."""
        return self.pairs - self.dropped

    def sentence(self) -> str:
        """The counts as a person reads them: "29,000 pairs: 12 empty, 3 repeated left out, 28,985 kept"."""
        reasons = {
            "empty": self.empty,
            "too long": self.long,
            "of wildly different lengths": self.uneven,
            "repeated": self.repeated,
        }
        told = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs:,} pairs"
        return f"{pairs}: {told} left out, {self.kept:,} kept" if told else f"{pairs}, none left out"


def filter_pairs(
    pairs: Iterable[Pair],
    *,
    ratio: float = RATIO,
    slack: float = SLACK,
    max_words: int | None = None,
    repeats: bool = False,
) -> tuple[list[Pair], Counts]:
    """The pairs worth training on, in their order, and the counts of all others.

    Left out is a pair with an empty side; with a side of more than max_words words (split at white space),
    where that is given; with sides of wildly different lengths, longer > ratio · shorter + slack; and, unless
    repeats are welcome, one that stood there before. Lengths are in characters and those of the target are
    scaled by the corpus' usual ratio, its median, since languages differ: Multi30k's German is 15 % longer
    than its English. The slack is for short sentences, where a word more is no fault.
    Errors: UserError for settings out of range.
    Source: Gale and Church 1993 compare lengths in characters, scaled, to align sentences.
    """
    if not (is_number(ratio) and ratio >= 1):
        raise UserError(f"ratio is {ratio!r}: it must be a number, 1 or more")
    if not (is_number(slack) and slack >= 0):
        raise UserError(f"slack is {slack!r}: it must be a number, 0 or more")
    if max_words is not None:
        require_count("max_words", max_words)
    given = list(pairs)
    full = [pair for pair in given if all(side.strip() for side in pair)]
    short = [pair for pair in full if max_words is None or max(_words(pair)) <= max_words]
    even = _even(short, ratio, slack)
    kept = even if repeats else list(dict.fromkeys(even))
    return kept, Counts(
        pairs=len(given),
        empty=len(given) - len(full),
        long=len(full) - len(short),
        uneven=len(short) - len(even),
        repeated=len(even) - len(kept),
    )


def _even(pairs: list[Pair], ratio: float, slack: float) -> list[Pair]:
    """The pairs whose sides are of lengths that fit each other."""
    if not pairs:
        return []
    lengths = [(len(source), len(target)) for source, target in pairs]
    usual = median(source / target for source, target in lengths)
    scaled = [(source, usual * target) for source, target in lengths]
    return [
        pair for pair, sides in zip(pairs, scaled, strict=True) if max(sides) <= ratio * min(sides) + slack
    ]


def _words(pair: Pair) -> tuple[int, int]:
    source, target = pair
    return len(source.split()), len(target.split())

"""Filters for a parallel corpus, which leave out useless pairs before training and count them."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from npformer.errors import UserError, quantity
from npformer.validation import is_number, require_count

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


def filter_pairs(
    pairs: Iterable[Pair],
    *,
    ratio: float = RATIO,
    slack: float = SLACK,
    max_words: int | None = None,
    repeats: bool = False,
) -> tuple[list[Pair], Counts]:
    """Return the pairs to train on, in their order, and the counts of all others.

    A pair is left out if a side is empty or has too many words, if the lengths of its sides differ too much,
    or if the pair occurred before. Lengths differ too much if longer > ratio · shorter + slack. They are
    counted in characters. The lengths of the targets are multiplied by the median of source / target over the
    corpus, because languages differ: Multi30k's German is 15 % longer than its English. The slack allows for
    one more word in a short sentence.

    Args:
        pairs: The sentence pairs.
        ratio: The largest ratio of the lengths.
        slack: The number of characters that the longer side may have in addition.
        max_words: The largest number of words of a side, split at white space, or None.
        repeats: Keep repeated pairs.

    Raises:
        UserError: If settings are out of range.

    Source: Gale and Church 1993 compare scaled lengths in characters to align sentences.
    """
    if not (is_number(ratio) and ratio >= 1):
        raise UserError(f"ratio is {ratio!r}: it must be a number, 1 or more")
    if not (is_number(slack) and slack >= 0):
        raise UserError(f"slack is {slack!r}: it must be a number, 0 or more")
    if max_words is not None:
        require_count("max_words", max_words)
    all_pairs = list(pairs)
    not_empty = [pair for pair in all_pairs if all(side.strip() for side in pair)]
    not_long = [pair for pair in not_empty if max_words is None or max(_count_words(pair)) <= max_words]
    even = _even(not_long, ratio, slack)
    kept = even if repeats else list(dict.fromkeys(even))
    return kept, Counts(
        pairs=len(all_pairs),
        empty=len(all_pairs) - len(not_empty),
        long=len(not_empty) - len(not_long),
        uneven=len(not_long) - len(even),
        repeated=len(even) - len(kept),
    )


def _even(pairs: list[Pair], ratio: float, slack: float) -> list[Pair]:
    """Return the pairs whose sides have similar lengths."""
    if not pairs:
        return []
    lengths = [(len(source), len(target)) for source, target in pairs]
    usual_ratio = median(source / target for source, target in lengths)
    scaled = [(source, usual_ratio * target) for source, target in lengths]
    return [
        pair for pair, sides in zip(pairs, scaled, strict=True) if max(sides) <= ratio * min(sides) + slack
    ]


def _count_words(pair: Pair) -> tuple[int, int]:
    source, target = pair
    return len(source.split()), len(target.split())

"""Chapter 22: plain solutions and mistakes."""

import math
from collections import Counter
from typing import Any

from npformer.learn.exercises.plain.registry import mistake, plain

FIRST = "min(candidates)"
JOIN = "parts[i : i + 2] = [parts[i] + parts[i + 1]]"
PENALTY = "min(1.0, math.exp(1 - r / c))"
MEAN = "math.exp(sum(math.log(p) for p in precisions) / 4)"
CLIPPED = "sum((ours & theirs).values())"


@plain(
    "join-pieces",
    mistake(
        "the pair with the highest rank is joined first, and must be that with the lowest rank",
        FIRST,
        "max(candidates)",
    ),
    mistake(
        "the leftmost pair or the longest piece is joined first, whatever its rank", FIRST, "candidates[0]"
    ),
    mistake("the rightmost pair is joined first, whatever its rank", FIRST, "candidates[-1]"),
    mistake(
        "the piece that is first in the alphabet is joined first, and must be that with the lowest rank",
        "append((rank, i))",
        "append((parts[i] + parts[i + 1], i))",
    ),
    mistake(
        "only one pair is joined: repeat this until no pair can be joined",
        JOIN,
        JOIN + "\n        return parts",
    ),
    mistake(
        "only two pairs are joined: repeat this until no pair can be joined",
        JOIN,
        JOIN + "\n        if len(parts) == len(text) - 2:\n            return parts",
    ),
    mistake(
        "of several pairs with the same rank the rightmost is joined, and must be the leftmost",
        FIRST,
        "min(candidates, key=lambda pair: (pair[0], -pair[1]))",
    ),
    mistake(
        "the rank 0 counts as missing: 0 is false, so compare with None (is not None)",
        "rank is not None",
        "rank",
    ),
    mistake("the first character, ▁, is left out", "list(text)", 'list(text.lstrip("▁"))'),
    mistake("the first string of the result is left out", "return parts", "return parts[1:]"),
    mistake("nothing is joined: the result is the list of the characters", "if not candidates", "if True"),
    mistake(
        "characters that do not occur in pieces are left out: they remain separate",
        "return parts",
        "return [part for part in parts if part in pieces.ranks]",
    ),
    mistake(
        "▁ is never joined: it is a character like the others",
        "range(len(parts) - 1)",
        "range(1, len(parts) - 1)",
    ),
    mistake(
        "the last pair is left out: all pairs of adjacent strings count",
        "range(len(parts) - 1)",
        "range(len(parts) - 2)",
    ),
    mistake(
        "the search passes the word only once, from the left: repeat it until no pair can be joined",
        "    while True:\n",
        "    i = 0\n    while i < len(parts) - 1:\n        if parts[i] + parts[i + 1] in pieces.ranks:\n"
        f"            {JOIN}\n        i += 1\n    return parts\n    while True:\n",
    ),
    mistake(
        "only pieces of two characters are made: a joined string can be joined again",
        "if rank is not None",
        "if rank is not None and len(parts[i] + parts[i + 1]) == 2",
    ),
    mistake(
        "the strings of the result are in reverse order",
        "return parts",
        "return parts[::-1]",
    ),
)
def join_pieces(pieces: Any, text: Any) -> Any:
    """Return the pieces of a word after byte-pair encoding."""
    parts = list(text)
    while True:
        candidates = []
        for i in range(len(parts) - 1):
            rank = pieces.ranks.get(parts[i] + parts[i + 1])
            if rank is not None:
                candidates.append((rank, i))
        if not candidates:
            return parts
        _, i = min(candidates)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@plain(
    "bleu",
    mistake("the brevity penalty is left out", PENALTY, "1.0"),
    mistake(
        "the brevity penalty is not limited to at most 1: it rewards translations that are longer "
        "than the references",
        PENALTY,
        "math.exp(1 - r / c)",
    ),
    mistake("the brevity penalty is applied twice", "100 * penalty", "100 * penalty * penalty"),
    mistake("the brevity penalty is c / r instead of exp(1 - r / c)", PENALTY, "min(1.0, c / r)"),
    mistake("the brevity penalty is c / r, and is not limited to at most 1", PENALTY, "c / r"),
    mistake("c and r are exchanged in the brevity penalty", "1 - r / c", "1 - c / r"),
    mistake(
        "the matches are not clipped: an n-gram has at most as many matches as it occurs in the reference",
        CLIPPED,
        "sum(count for gram, count in ours.items() if gram in theirs)",
    ),
    mistake(
        "the n-grams of all lines together are clipped: those of each line may match only its own reference",
        "c = r = 0",
        "c = r = 0\n    all_ours, all_theirs = ([Counter() for _ in range(4)] for _ in range(2))",
        "matches[n - 1] += sum((ours & theirs).values())",
        "all_ours[n - 1] += ours\n            all_theirs[n - 1] += theirs\n"
        "            matches[n - 1] = sum((all_ours[n - 1] & all_theirs[n - 1]).values())",
    ),
    mistake(
        "each n-gram is counted once: it may match several times if it occurs several times",
        CLIPPED,
        "len(ours & theirs)",
    ),
    mistake(
        "each n-gram is counted once: it may occur and match several times",
        CLIPPED,
        "len(ours & theirs)",
        "sum(ours.values())",
        "len(ours)",
    ),
    mistake(
        "BLEU is the mean of the scores of the lines: matches and n-grams must be summed over all "
        "lines first",
        "    matches, totals",
        "    if len(translations) > 1:\n        return sum(bleu([a], [b]) for a, b in "
        "zip(translations, references)) / len(references)\n    matches, totals",
    ),
    mistake(
        "the precisions are averaged over the lines: matches and n-grams must be summed over all lines first",
        "sum((ours & theirs).values())",
        "sum((ours & theirs).values()) / max(1, sum(ours.values()))",
        "+= sum(ours.values())",
        "+= 1",
    ),
    mistake(
        "the arithmetic mean of p_1 to p_4 is used instead of the geometric mean", MEAN, "sum(precisions) / 4"
    ),
    mistake(
        "the power 1/4 is left out: the product of p_1 to p_4 is not its fourth root",
        "precisions) / 4",
        "precisions)",
    ),
    mistake("the factor 100 is left out", "100 * ", ""),
    mistake(
        "the n-grams go only up to 3: the largest n is 4",
        "(1, 5)",
        "(1, 4)",
        "[0] * 4",
        "[0] * 3",
        ") / 4",
        ") / 3",
    ),
    mistake(
        "only single words count: the n-grams must go up to n = 4",
        "(1, 5)",
        "(1, 2)",
        "[0] * 4",
        "[0]",
        ") / 4",
        ")",
    ),
    mistake("only the 4-grams count: the precisions of n = 1 to 4 must be multiplied", MEAN, "precisions[3]"),
    mistake(
        "the matches are divided by the number of n-grams in the references: that is the recall, and "
        "the n-grams of the translations are needed",
        "sum(ours.values())",
        "sum(theirs.values())",
    ),
    mistake("the last n-gram of each line is left out", "- n + 1)", "- n)"),
    mistake("the n-grams are made of characters instead of words", ".split()", ".strip()"),
    mistake(
        "1 is added to the matches and to the numbers of n-grams (smoothing): here nothing is added",
        "a / b for",
        "(a + 1) / (b + 1) for",
    ),
    mistake(
        "an n without a match is left out of the mean: BLEU is 0 then",
        "    if not all(matches):\n        return 0.0\n",
        "    if not any(matches):\n        return 0.0\n    matches, totals = zip(*((a, b) for a, b in "
        "zip(matches, "
        "totals) if a))\n",
        ") / 4)",
        ") / len(precisions))",
    ),
    mistake(
        "c and r count characters: they must count words",
        "c += len(ours_words)",
        "c += len(translation)",
        "r += len(theirs_words)",
        "r += len(reference)",
    ),
    mistake("exp is left out in the brevity penalty", PENALTY, "min(1.0, 1 - r / c)"),
    mistake(
        "the brevity penalty is under the fourth root too: it must multiply the root",
        "100 * penalty * ",
        "100 * penalty**0.25 * ",
    ),
    mistake(
        "the brevity penalty is that of the last line: c and r count the words of all lines",
        "c += len(ours_words)",
        "c = len(ours_words)",
        "r += len(theirs_words)",
        "r = len(theirs_words)",
    ),
    mistake(
        "the matches of the last line only are used: they must be summed over all lines",
        "matches[n - 1] +=",
        "matches[n - 1] =",
        "totals[n - 1] +=",
        "totals[n - 1] =",
    ),
    mistake(
        "the numbers of n-grams are those of the words: a line of k words has k - n + 1 n-grams",
        "+= sum(ours.values())",
        "+= len(ours_words)",
    ),
    mistake(
        "the longest n-grams have 5 words: the largest n is 4",
        "(1, 5)",
        "(1, 6)",
        "[0] * 4",
        "[0] * 5",
        ") / 4",
        ") / 5",
    ),
    mistake(
        "the lines' brevity penalties are multiplied: c and r are summed over all lines first",
        "    c = r = 0",
        "    c = r = 0\n    each = 1.0",
        "        r += len(theirs_words)",
        "        r += len(theirs_words)\n        each *= min(1.0, math.exp(1 - len(theirs_words) / "
        "len(ours_words)))",
        PENALTY,
        "each",
    ),
)
def bleu(translations: Any, references: Any) -> Any:
    """Return the BLEU score of a corpus."""

    def n_grams(words: Any, n: Any) -> Any:
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    matches, totals = [0] * 4, [0] * 4
    c = r = 0
    for translation, reference in zip(translations, references, strict=True):
        ours_words, theirs_words = translation.split(), reference.split()
        c += len(ours_words)
        r += len(theirs_words)
        for n in range(1, 5):
            ours, theirs = n_grams(ours_words, n), n_grams(theirs_words, n)
            matches[n - 1] += sum((ours & theirs).values())
            totals[n - 1] += sum(ours.values())
    if not all(matches):
        return 0.0
    precisions = [a / b for a, b in zip(matches, totals, strict=True)]
    penalty = min(1.0, math.exp(1 - r / c))
    return 100 * penalty * math.exp(sum(math.log(p) for p in precisions) / 4)

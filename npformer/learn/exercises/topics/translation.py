"""Chapter 22: byte-pair encoding, and BLEU."""

import math
from collections import Counter
from typing import Any

import numpy as np

from npformer.data.subwords import Pieces
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs

# in the order in which training made them; the characters come last, and x is missing
MADE = ["er", "lo", "low", "▁low", "es", "est", "▁lower", "we", "ne", "new", "aa", "▁t", "ea"]
PIECES = Pieces([*MADE, *"▁lowernsta"])
TEXTS = ("▁lower", "▁lowe", "▁newest", "▁tower", "▁slowest", "aaaaa", "▁wea", "▁lox", "x", "▁")

# pairs of translations and references
SHORT = ["the the the the cat", "a b c d e"], ["the cat sat on the mat", "a b c d e f g"]
LONG = ["a b c d e f g h", "the cat sat on the red mat"], ["a b c d e x g", "the cat sat on the mat"]
CROSSED = ["a b c d x y", "e f g h"], ["a b c d e f", "x y g h"]


def bleu(translations: Any, references: Any) -> Any:
    """Return the BLEU of lines of text against one reference each, a number from 0 to 100."""
    matches, total = np.zeros(4), np.zeros(4)
    written = wanted = 0
    for translation, reference in zip(translations, references, strict=True):
        found, right = translation.split(), reference.split()
        written += len(found)
        wanted += len(right)
        for n in range(1, 5):
            ours, theirs = Counter(n_grams(found, n)), Counter(n_grams(right, n))
            matches[n - 1] += sum((ours & theirs).values())
            total[n - 1] += sum(ours.values())
    if not matches.all():
        return 0.0
    penalty = min(1.0, math.exp(1 - wanted / written))
    return 100 * penalty * math.exp(np.log(matches / total).mean())


def n_grams(words: Any, n: int) -> Any:
    """Return every sequence of n consecutive words."""
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _joined(own: Functions, rng: np.random.Generator) -> Any:
    return {f"the pieces of {text}": own.join_pieces(PIECES, text) for text in TEXTS}


def _scores(own: Functions, rng: np.random.Generator) -> Any:
    lines: dict[str, Any] = {
        "of one line that is its reference": (["a b c d e"], ["a b c d e"]),
        "of one line that repeats a word": (["the the the cat sat on"], ["the cat sat on the mat"]),
        "of one line longer than its reference": (LONG[0][:1], LONG[1][:1]),
        "of one line shorter than its reference": (SHORT[0][1:], SHORT[1][1:]),
        "of two lines, one of them short": SHORT,
        "of two lines, the first longer": LONG,
        "of two lines, each with words of the other one's reference": CROSSED,
        "of a line without a matching 4-gram": (["a b c x y z"], ["a b c d e f"]),
        "of a line of three words": (["a b c"], ["a b c"]),
    }
    return {f"BLEU {name}": float(own.bleu(*both)) for name, both in lines.items()}


TRANSLATION = exercises(
    r'''
=== 22 join-pieces: byte-pair encoding of a word

def join_pieces(pieces, text):
    """Split a word into subwords by byte-pair encoding.

    pieces  .ranks, a dict from each piece to its rank: 0 for the piece that training made first, 1 for the
            next one, and so on
    text    a word with ▁ before it, such as "▁lower"
    Begin with the list of the characters. Find all pairs of adjacent strings whose concatenation is a piece.
    Join the pair whose piece has the lowest rank. If several pairs have this piece, join the leftmost one.
    Repeat this until no pair can be joined. Characters that do not occur in pieces remain separate.
    Returns the list of strings.
    """
    # solution
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
--- Begin with parts = list(text). In a loop, find the pair with the lowest rank and join it.
--- The rank of the pair at position i is ranks.get(parts[i] + parts[i + 1]). It is None if the concatenation
    is not a piece.
--- The minimum of the tuples (rank, i) is the leftmost pair with the lowest rank. Join it with parts[i : i +
    2] = [parts[i] + parts[i + 1]].

=== 22 bleu: BLEU: clipped n-grams and a brevity penalty
import math
from collections import Counter

import numpy as np


def bleu(translations, references):
    """Return the BLEU score of a test set, a number from 0 to 100.

    translations  a list of lines of text, whose words are separated by spaces
    references    a list with one reference for each translation
    For n = 1 … 4, p_n is the number of matches divided by the number of n-grams in the translations. Both
    numbers are summed over all lines. In each line, an n-gram has at most as many matches as it has
    occurrences in the reference. Let c be the number of words in all translations, and r that in all
    references. Then BLEU = 100 · min(1, exp(1 - r / c)) · (p_1 p_2 p_3 p_4)^(1/4).
    Returns this number, or 0 if there is no match for some n.
    """
    # solution
    def n_grams(words, n):
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
--- Counter(a) & Counter(b) contains the smaller one of the two counts of each n-gram.
--- First sum the matches and the n-grams over all lines, and divide only at the end. BLEU is not the mean of
    the scores of the lines.
--- If the translations are longer than the references, exp(1 - r / c) is larger than 1. Then the brevity
    penalty is 1.
''',
    {
        "join-pieces": Task(Pieces._join, Values("", _joined, hidden=hidden_inputs.joined)),
        "bleu": Task(
            bleu, Values("", _scores, ((4, "4, the largest n"), (100, "100")), hidden=hidden_inputs.scores)
        ),
    },
)

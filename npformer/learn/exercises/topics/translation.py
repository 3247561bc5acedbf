"""Lesson 22: a word into its pieces, and BLEU."""

import math
from collections import Counter
from typing import Any

import numpy as np

from npformer.data.subwords import Pieces
from npformer.learn.exercises.exercise import Exercise, Functions, Values

# in the order in which training made them; the characters last, but for x, which it never saw
MADE = ["er", "lo", "low", "▁low", "es", "est", "▁lower", "we", "ne", "new", "aa", "▁t"]
PIECES = Pieces([*MADE, *"▁lowernsta"])
TEXTS = ("▁lower", "▁newest", "▁tower", "▁slowest", "aaaaa", "▁lox", "x", "▁")

# one side each, line by line
SHORT = ["the the the the cat", "a b c d e"], ["the cat sat on the mat", "a b c d e f g"]
LONG = ["a b c d e f g h", "the cat sat on the red mat"], ["a b c d e x g", "the cat sat on the mat"]


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
        "of one that repeats a word": (["the the the cat sat on"], ["the cat sat on the mat"]),
        "of one longer than its reference": (LONG[0][:1], LONG[1][:1]),
        "of one shorter than its reference": (SHORT[0][1:], SHORT[1][1:]),
        "of two lines, one of them short": SHORT,
        "of two lines, the first longer": LONG,
        "of a line without four words in a row": (["a b c x y z"], ["a b c d e f"]),
        "of a line of three words": (["a b c"], ["a b c"]),
    }
    return {f"BLEU {name}": float(own.bleu(*both)) for name, both in lines.items()}


TRANSLATION = (
    Exercise(
        "join-pieces",
        22,
        "byte-pair encoding: a word into its pieces",
        '''

def join_pieces(pieces, text):
    """Split a text by byte-pair encoding.

    pieces  .ranks, a dict: of each piece that training made, when (0 is the first)
    text    a word with ▁ before it, as "▁lower"
    At first every character stands alone. Of all neighbours whose joint text is a piece, those whose piece
    was made first are joined, the leftmost pair where several are equal; again, until no two can be joined.
    Returns the list of strings. A character that is no piece stays alone.
    """
''',
        (Values("", _joined),),
        (
            "Keep a list of strings, at first list(text). In a loop: find the best pair, join it, go on.",
            "The rank of the pair at i is ranks.get(parts[i] + parts[i + 1]): None where it is no piece.",
            "min over pairs (rank, i) is the first-made piece and, among equals, the leftmost; then "
            "parts[i : i + 2] = [parts[i] + parts[i + 1]].",
        ),
        {"join_pieces": Pieces._join},
    ),
    Exercise(
        "bleu",
        22,
        "BLEU: clipped n-grams and a brevity penalty",
        '''
import math
from collections import Counter

import numpy as np


def bleu(translations, references):
    """BLEU of a whole test set, from 0 to 100; words are what stands between blanks.

    translations, references  lists of as many lines
    For n = 1 … 4: p_n = matches / n-grams of the translations, both summed over all lines. An n-gram
    matches at most as often as it stands in its line's reference. With c and r the words of all
    translations and of all references:
    BLEU = 100 · min(1, exp(1 - r / c)) · (p_1 p_2 p_3 p_4)^(1/4), and 0 where there is no match for an n.
    Returns a number.
    """
''',
        (Values("", _scores, ((4, "4, the largest n"), (100, "100"))),),
        (
            "Counter(a) & Counter(b) has the smaller count of each thing.",
            "Sum matches and n-grams over all lines first; divide once, at the end: it is no mean of the "
            "lines' scores.",
            "exp(1 - r / c) is over 1 where the translations are longer: there the penalty is 1.",
        ),
        {"bleu": bleu},
    ),
)

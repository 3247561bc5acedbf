"""Bugs in the numbers on a model card, and in the capitals of a translation."""

from planted_bugs.bug import Bug

_STATISTICS = "generation/bleu_statistics.py"
_INVENTED = "generation/invented_words.py"
_CASING = "data/casing.py"

BLEU = (
    Bug(
        "corpus_bleu: brevity penalty the other way round",
        "swapped",
        _STATISTICS,
        "1 - reference_words / words",
        "1 - words / reference_words",
    ),
    Bug("corpus_bleu: sum of the logarithms", "missing scale", _STATISTICS, ".mean(-1))", ".sum(-1))"),
    Bug(
        "corpus_bleu: every zero smoothed alike",
        "missing sum",
        _STATISTICS,
        "zeros = np.cumsum(correct == 0, -1)",
        "zeros = (correct == 0).astype(int)",
    ),
    Bug(
        "bleu_half_width: each sample is all sentences",
        "wrong term",
        _STATISTICS,
        "counts[rng.integers(n, size=n)].sum(0)",
        "counts[rng.permutation(n)].sum(0)",
    ),
    Bug(
        "bleu_half_width: the whole width",
        "missing scale",
        _STATISTICS,
        "- scores[outside]) / 2",
        "- scores[outside])",
    ),
    Bug(
        "bleu_half_width: all of what is outside on each side",
        "missing scale",
        _STATISTICS,
        "(1 - COVERAGE) / 2",
        "(1 - COVERAGE)",
    ),
    Bug(
        "bleu_by_length: the least length in the group below",
        "wrong term",
        _STATISTICS,
        'side="right"',
        'side="left"',
    ),
)

INVENTED = (
    Bug(
        "invented words: copied words count",
        "dropped branch",
        _INVENTED,
        "word not in known and word not in copied",
        "word not in known",
    ),
    Bug(
        "invented words: entities are words",
        "dropped branch",
        _INVENTED,
        "html.unescape(text).lower()",
        "text.lower()",
    ),
)

CASING = (
    Bug(
        "casing: what follows is always lower case",
        "wrong term",
        _CASING,
        "kind = LOWER if self._spell(following) == following else CAPITAL",
        "kind = LOWER",
    ),
    Bug(
        "casing: the previous token has no say",
        "dropped branch",
        _CASING,
        "return (previous, word, kind), (ANY, word, kind)",
        "return (ANY, word, kind), (ANY, word, kind)",
    ),
    Bug(
        "casing: a single word with an ending decides",
        "missing scale",
        _CASING,
        "2 * (capitals[stop] - capitals[start]) > stop - start",
        "capitals[stop] > capitals[start]",
    ),
    Bug(
        "casing: the shortest ending decides",
        "swapped",
        _CASING,
        "range(len(word) - 1, _SHORTEST - 1, -1)",
        "range(_SHORTEST, len(word))",
    ),
)

EVALUATION = (*BLEU, *INVENTED, *CASING)

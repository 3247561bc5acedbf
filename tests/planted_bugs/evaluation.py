"""Bugs in the numbers on a model card, and in the capitals of a translation."""

BUGS = {
    "generation/bleu_statistics.py": {
        "1 - reference_words / words": {
            "corpus_bleu: brevity penalty the other way round": "1 - words / reference_words"
        },
        ".mean(-1))": {"corpus_bleu: sum of the logarithms": ".sum(-1))"},
        "zeros = np.cumsum(correct == 0, -1)": {
            "corpus_bleu: every zero smoothed alike": "zeros = (correct == 0).astype(int)"
        },
        "counts[rng.integers(n, size=n)].sum(0)": {
            "bleu_half_width: each sample is all sentences": "integers(n, size= → permutation("
        },
        "- scores[outside]) / 2": {"bleu_half_width: the whole width": "- scores[outside])"},
        "(1 - COVERAGE) / 2": {"bleu_half_width: all of what is outside on each side": "(1 - COVERAGE)"},
        'side="right"': {"bleu_by_length: the least length in the group below": 'side="left"'},
    },
    "generation/invented_words.py": {
        "word not in known and word not in copied": {
            "invented words: copied words count": "word not in known"
        },
        "html.unescape(text).lower()": {"invented words: entities are words": "text.lower()"},
    },
    "data/casing.py": {
        "kind = LOWER if self._spell(following) == following else CAPITAL": {
            "casing: what follows is always lower case": "kind = LOWER"
        },
        "return (previous, word, kind), (ANY, word, kind)": {
            "casing: the previous token has no say": "previous → ANY"
        },
        "2 * (capitals[stop] - capitals[start]) > stop - start": {
            "casing: a single word with an ending decides": "capitals[stop] > capitals[start]"
        },
        "range(len(word) - 1, _SHORTEST - 1, -1)": {
            "casing: the shortest ending decides": "range(_SHORTEST, len(word))"
        },
    },
}

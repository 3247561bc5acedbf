"""Filtering parallel text: the pairs removed, the pairs kept, and the counts."""

import pytest

from npformer.data.filters import Counts, filter_pairs

GOOD = [
    ("a dog runs through the snow .", "ein hund läuft durch den schnee ."),
    ("two cats sleep on the sofa .", "zwei katzen schlafen auf dem sofa ."),
    ("a man reads .", "ein mann liest ."),
]
LONG = "a woman in a red coat waits at the corner of the street for a bus that is late ."


def test_each_kind_of_bad_pair_is_counted_once():
    faults = [
        ("", "ein hund"),
        ("a dog", " \t\u00a0"),
        ("", ""),
        (LONG, "."),
        ("!", LONG),
        *GOOD[:2],
        (LONG, "."),
    ]
    kept, counts = filter_pairs(GOOD + faults)
    assert kept == GOOD
    assert counts == Counts(pairs=11, empty=3, uneven=3, repeated=2)
    assert (counts.dropped, counts.kept) == (8, 3)


def test_a_pair_with_one_repeated_side_is_kept():
    pairs = [GOOD[0], (GOOD[0][0], GOOD[1][1]), (GOOD[1][0], GOOD[0][1])]
    assert filter_pairs(pairs)[0] == pairs


def test_ratio_and_slack():
    """The rule longer > RATIO · shorter + SLACK holds for either side."""
    usual = [("x" * 10 + str(n), "y" * 10 + str(n)) for n in range(5)]  # equal lengths
    for n, left_out in ((4 * 10 + 20, 0), (4 * 10 + 21, 1)):
        for odd in (("x" * n, "y" * 10), ("x" * 10, "y" * n)):
            assert filter_pairs([*usual, odd])[1].uneven == left_out


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (Counts(29_000), "29,000 pairs, none left out"),
        (Counts(1), "1 pair, none left out"),
        (Counts(0), "0 pairs, none left out"),
        (
            Counts(29_000, empty=12, uneven=1_002, repeated=3),
            "29,000 pairs: 12 empty, 1,002 of wildly different lengths, 3 repeated left out, 27,983 kept",
        ),
        (Counts(5, long=5), "5 pairs: 5 too long left out, 0 kept"),
    ],
)
def test_the_sentence_that_reports_the_counts(counts, sentence):
    assert counts.sentence() == sentence

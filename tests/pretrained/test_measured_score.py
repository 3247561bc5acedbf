"""A score on a card: its JSON, its rows and the command that measures it."""

import pytest
from toy_pretrained import MEASURED

from npformer.pretrained import MeasuredScore

LATER = {
    "half_width": 1.25,
    "by_length": [
        {"least": 1, "most": 9, "sentences": 990, "bleu": 20.0, "half_width": 2.0},
        {"least": 20, "most": None, "sentences": 10, "bleu": 10.0, "half_width": None},
    ],
    "known_words": "train.de",
    "words": 10000,
    "invented": 137,
    "invented_in_reference": 6,
}


def score(**changes):
    return MeasuredScore.from_dict(MEASURED | LATER | changes)


def test_the_rows_of_a_score():
    signature = "nrefs:1|tok:none"
    files = "test.de, 1,000 sentences"
    assert score().row() == (files, "tokenised", "beam 5", "12.35 ± 1.25", "1.37 %", signature)
    older = MeasuredScore.from_dict(MEASURED | {"beam": 1})
    assert older.row() == (files, "tokenised", "greedy", "12.35", "", signature)
    row = score().row_by_length(["1-9", "10-14", "20+"])
    assert row == ("test.de", "beam 5", "20.00 ± 2.00 (990)", "", "10.00 (10)")


@pytest.mark.parametrize(
    ("changes", "rest"),
    [
        ({}, "--known-words train.de"),
        ({"beam": 1}, "--beam 1 --known-words train.de"),
        ({"beam": 1, "length_penalty": 2.0}, "--beam 1 --known-words train.de"),  # greedy search has none
        ({"beam": 7, "length_penalty": 0.8}, "--beam 7 --length-penalty 0.8 --known-words train.de"),
        ({"known_words": "-my words.de"}, "--known-words './-my words.de'"),
        ({"known_words": None}, ""),
    ],
)
def test_the_command_names_what_is_not_the_default(changes, rest):
    command = score(**changes).command("en-de", beam=5, length_penalty=0.6)
    assert command == f"npformer score --model en-de test.en test.de {rest}".rstrip()

"""Figures drawn from other inputs: the recorded numbers and boxes, legible, and errors for impossible inputs.

The gallery shows the figures of the default inputs. changed_inputs.txt describes those of others, of which a
third is drawn by day. After a change, write the file again and read the difference:

    PYTHONPATH=tests/helpers python tests/learn/figures/test_changed_inputs.py
"""

import json
import re
from pathlib import Path

import pytest
from figure_cells import draw
from figure_description import describe, differences
from mistake_tables import drawn

from npformer.errors import UserError
from npformer.plots import text_problems

FILE = Path(__file__).with_name("changed_inputs.txt")
EXPECTED = dict(part.split("\n", 1) for part in FILE.read_text(encoding="utf-8").split("=== ")[1:])


def figure_of(heading):
    """Return the figure with its caption that a heading of the file names, with its settings."""
    id, _, changes = heading.partition(" ")
    return draw(id, **json.loads(changes))


@pytest.mark.parametrize("heading", drawn(EXPECTED, 3))
def test_a_figure_of_another_input_shows_what_is_recorded(heading):
    drawing = figure_of(heading)
    assert differences(describe(drawing), EXPECTED[heading].splitlines()) == []
    assert text_problems(drawing.figure) == []


A_LONG_SOURCE = "the animal didn't cross the street because it was too tired now"
REFUSED = [
    ("F01", {"highlight": "decodr"}, "did you mean decoder"),
    ("F01", {"highlight": "positions", "positions": "none"}, "no positions to highlight"),
    ("F01", {"d_model": 10, "n_heads": 4}, "not divisible"),
    ("F01", {"architecture": "paper"}, "unknown architecture"),
    ("F01", {"d_modell": 4}, "no setting 'd_modell'"),
    ("F02", {"sentence": "  "}, "the sentence is empty"),
    ("F02", {"sentence": "mot " * 60}, "does not fit"),
    ("F03", {"translation": ""}, "the translation is empty"),
    ("F03", {"n_layers": 40}, "does not fit"),
    ("F04", {"n_layers": 0}, "n_layers is 0"),
    ("F05", {"first": 5, "sentences": 99999999}, "first is 5 and sentences 99999999: the corpus has"),
    ("F05", {"length": 0}, "length is 0"),
    ("F06", {"position": -1}, "position is -1"),
    ("F06", {"products": []}, "give 1 to 6 numbers"),
    ("F06", {"d_positions": 3}, "d_model must be even"),
    ("F06", {"d_model": 30, "n_heads": 4}, "not divisible"),
    ("F08", {"word": 5}, "word is 5: the sentence has words 0 .. 4"),
    ("F10", {"sentence": ""}, "is empty"),
    ("F10", {"positions": "sines"}, "positions is 'sines': choose one of"),
    ("F11", {"activation": "tanh"}, "activation is 'tanh': choose one of"),
    ("F12", {"d_model": 0}, "d_model is 0: it must be a whole number, 1 or more"),
    ("F13", {"seed": -1}, "seed is -1"),
    ("F15", {"length": 2.5}, "length is 2.5"),
    ("F16", {"length": 0}, "length is 0: it must be a whole number, 1 or more"),
    ("F16", {"length": 40}, "does not fit"),
    ("F19", {"n_heads": 4}, "d_model 6 is not divisible by 4 heads"),
    ("F20", {"sentences": 0}, "sentences is 0"),
    ("F20", {"d_model": 30, "n_heads": 4}, "not divisible"),
    ("F20", {"length": 0}, "max_length is 0"),
    ("F21", {"translation": ""}, "translation '' is empty"),
    ("F22", {"sentence": " "}, "at least one word"),
    ("F22", {"d_model": 0}, "d_model is 0"),
    ("F22", {"seed": -1}, "whole number, 0 or more"),
    ("F22", {"sentence": "un " * 30}, "does not fit"),
    ("F24", {"layout": "learned"}, "unknown position layout"),
    ("F24", {"d_model": 3}, "must be even"),
    ("F25", {"dims": ()}, "name dimensions from 0 to 19"),
    ("F25", {"dims": (20,)}, "name dimensions from 0 to 19"),
    ("F25", {"length": 0}, "number of positions is 0"),
    ("F26", {"upper": (0, 4, "halves")}, "number of positions is 0"),
    ("F26", {"lower": (4, 7, "halves")}, "must be even"),
    ("F27", {"n_heads": 0}, "n_heads is 0"),
    ("F31", {"head": 8}, "heads 0 .. 7"),
    ("F35", {"head": 8}, "heads 0 .. 7"),
    ("F36", {"head": 8}, "heads 0 .. 7"),
    ("F34", {"sentence": "le chat dort"}, "each of the 3 words"),
    ("F34", {"scores": (float("nan"), 1)}, "scores is"),
    ("F34", {"d_k": 0}, "d_k is 0"),
    ("F34", {"d_k": 2.5}, "d_k is 2.5"),
    ("F34", {"sentence": ""}, "at least one word"),
    ("F37", {"heads": (0, 8)}, "heads 0 .. 7"),
    ("F37", {"heads": (0,)}, "name two heads"),
    ("F41", {"sentence": " "}, "has 0 words"),
    ("F43", {"target": "a b c d e f g"}, "has 7 words"),
    ("F43", {"n_layers": 6}, "a picture of 6 encoders and 6 decoders does not fit"),
    ("F43", {"n_heads": 7}, "not divisible"),
    ("F46", {"word": "merci"}, "not in the vocabulary"),
    ("F47", {"probabilities": (0.5, 0.5)}, "give 6 numbers above 0"),
    ("F47", {"probabilities": (0.5, 0.1, 0.1, 0.1, 0.1, 0.2)}, "sum to 1"),
    ("F47", {"probabilities": (1, 0, 0, 0, 0, 0)}, "above 0"),
    ("F47", {"target": "merci"}, "'merci' is not in the vocabulary"),
    ("F47", {"smoothing": 1}, "at least 0 and below 1"),
    ("F48", {"sentence": ""}, "at least one word"),
    ("F48", {"sentence": "hello"}, "'hello' is not in the vocabulary"),
    ("F54", {"query": 4}, "words 0 .. 3"),
    ("F54", {"query": "saw"}, "query is 'saw'"),
    ("F54", {"sentence": " "}, "at least one word"),
    ("F54", {"sentence": "word " * 30}, "a sentence of 30 words"),
    ("F56", {"source": A_LONG_SOURCE}, "a source of 13 words does not fit"),
    ("F56", {"kind": "local"}, "kind is 'local': choose one of local-p, local-m"),
    ("F58", {"query": 5}, "words 0 .. 4"),
    *(
        ("F59", changes, "2 to 8 titles")
        for changes in ({"query": " "}, {"titles": ["one"]}, {"titles": "cats"})
    ),
    ("F59", {"titles": ["a"] * 9}, "2 to 8 titles"),
    ("F61", {"longest": 12}, "longest is 12: it must be a multiple of 8 above 0"),
    ("F61", {"key_heads": (3,)}, "n_heads 8 is not divisible by n_kv_heads 3"),
    ("F62", {"d_model": 1}, "d_model is 1"),
    ("F62", {"factor": 0}, "factor is 0"),
    ("F63", {"length": 1}, "length is 1: give at least 2 positions"),
    ("F64", {"activation": "relu"}, "relu"),
    ("F65", {"key_heads": ()}, "key_heads is empty"),
    ("F66", {"n_layers": 0}, "n_layers is 0"),
    ("F67", {"gradients": ()}, "at least 2 steps and one gradient"),
]


@pytest.mark.parametrize(("id", "changes", "sentence"), REFUSED)
def test_impossible_inputs_are_refused(id, changes, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        draw(id, **changes)


OF_A_MODEL = [
    ("F29", {"layer": 7}, "layer is 7: there are layers 0 .. 1"),
    ("F29", {"head": -1}, "head is -1: there are heads 0 .. 3"),
    ("F29", {"where": "decoder"}, "choose encoder or cross"),
    ("F29", {"sentence": "the cat sleeps", "where": "encoder"}, "there is no it in"),
    ("F29", {"sentence": ""}, "empty"),
    ("F29", {"sentence": "it " * 80}, "the model's limit is 64"),
    ("F29", {"word": "zebra"}, "there is no zebra"),
    ("F44", {"sentence": " "}, "empty"),
    ("F45", {"sentence": "chat " * 70}, "limit is 64"),
    ("F49", {"words": ("zebra",)}, "does not know 'zebra'"),
    ("F50", {"first": ("i", "zebra")}, "does not know 'zebra'"),
    ("F51", {"word": "zèbre"}, "does not write 'zèbre'"),
    ("F60", {"descriptions": ()}, "there is no description: give at least one"),
    ("F60", {"descriptions": ("",)}, "is empty: write at least one word"),
    ("F60", {"descriptions": ("photos " * 30,)}, "30 tokens long and the model's limit is 25"),
]


@pytest.mark.parametrize(("id", "changes", "sentence"), OF_A_MODEL)
def test_inputs_that_a_trained_model_cannot_read_are_refused(studio, id, changes, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        draw(id, studio, **changes)


if __name__ == "__main__":
    parts = ["\n".join([f"=== {heading}", *describe(figure_of(heading)), ""]) for heading in EXPECTED]
    FILE.write_text("".join(parts), encoding="utf-8")

"""npformer fill, with runs that npformer train made, and mistakes."""

import json
import re

import pytest
from commands import said

import npformer
from npformer.cli.main import main

LINES = "the cat sees the dog\nthe dog sees a bird\na bird eats\nthe Cat eats\n" * 10
TINY = ["--set", "d_model=16", "--set", "n_heads=2", "--set", "n_layers=1", "--set", "max_length=8"]
TEXTS = ["the [MASK] sees the dog", "a [MASK] sees the [MASK]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a run on a file of its own."""
    path = tmp_path_factory.mktemp("fill")
    (path / "animals.en").write_text(LINES, encoding="utf-8")
    arguments = ["--preset", "bert-small", "--text", str(path / "animals.en"), "--steps", "30"]
    assert main(["train", *arguments, *TINY, "--run", str(path / "runs/animals")]) == 0
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_the_words_are_those_of_the_loaded_model(capsys):
    """Without --model, the run trained last is taken."""
    found = json.loads(said(capsys, "fill", *TEXTS, "--answers", "3", "--last", "--json"))
    filler = npformer.load("runs/animals", last=True)
    expected = [
        [(gap.place + 1, gap.words, gap.probabilities) for gap in filler.fill(text, k=3)] for text in TEXTS
    ]
    assert [each["text"] for each in found] == TEXTS
    for each, gaps in zip(found, expected, strict=True):
        for gap, (place, words, probabilities) in zip(each["gaps"], gaps, strict=True):
            assert gap["place"] == place
            assert [word["word"] for word in gap["words"]] == list(words)
            assert [word["probability"] for word in gap["words"]] == list(probabilities)
    assert [gap["place"] for text in found for gap in text["gaps"]] == [2, 2, 5]
    assert [len(gap["words"]) for text in found for gap in text["gaps"]] == [3, 3, 3]


def test_the_table(capsys):
    out = said(capsys, "fill", *TEXTS, "--model", "runs/animals")
    headings = [line for line in out.splitlines() if not line.startswith("  ")]
    assert headings == [TEXTS[0], "word 2", TEXTS[1], "word 2", "word 5"]
    assert len(re.findall(r"^  \S+ +\d+\.\d%", out, re.MULTILINE)) == 15


def test_training_tells_how_to_go_on(capsys):
    """The preset has sentences of its own; the options of a vocabulary are for files."""
    out = said(capsys, "train --preset bert-small --steps 1", *TINY, "--run", "own")
    assert 'next: npformer fill --model own "a sentence with [MASK]"' in out
    assert '      npformer explore --model own "a sentence with [MASK]"' in out
    assert npformer.load("own").unknown_words("the river [MASK] qwert") == ["qwert"]

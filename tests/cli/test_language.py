"""npformer language: gaps and continuations from models that are trained on the spot."""

import re

import pytest
from commands import said

from npformer.cli.main import main


@pytest.fixture(autouse=True)
def few_sentences(some_pairs, monkeypatch):
    monkeypatch.setattr("npformer.training.language.builtin_dataset", lambda: some_pairs)


def test_a_gap_and_a_continuation(capsys):
    """Each model answers the texts of its kind, and both report their perplexity."""
    assert main(["language", "the [MASK] is here", "the cat", "--steps", "3", "--answers", "3"]) == 0
    out, err = capsys.readouterr()
    gap, continued = out.split("the cat\n", 1)
    assert gap.startswith("the [MASK] is here\nword 2\n")
    assert len(re.findall(r"^  \S+ +\d+\.\d%", gap, re.MULTILINE)) == 3
    lines = continued.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("  the cat") for line in lines)
    perplexities = [float(text) for text in re.findall(r"held-out sentences: (\d+\.\d+)", err)]
    assert len(perplexities) == 2
    assert "an encoder, which fills gaps: 3 steps" in err
    assert "a decoder, which continues sentences: 3 steps" in err


def test_the_answers_depend_on_the_seed_alone(capsys):
    """The same seed gives the same answers, and another seed others."""
    answers = []
    for seed in ("1", "1", "2"):
        answers.append(said(capsys, "language the --steps 3 --seed", seed))
    assert answers[0] == answers[1] != answers[2]

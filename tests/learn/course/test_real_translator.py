"""The numbers of lesson 22.6 and of the documentation are those of the logs of the two trainings."""

import json
import re

import numpy as np
import pytest
from paths import ROOT

from npformer.learn.course.lesson import Lesson

LESSON = Lesson(ROOT / "lessons/22_6_a_real_translator.py")
RUNS = {"long": "multi30k-en-de", "short": "multi30k-en-de-short"}


def log_of(name):
    """Return the entries of the log of a run."""
    lines = (ROOT / "figures" / RUNS[name] / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def validation_losses(name):
    return {entry["step"]: entry["valid_loss"] for entry in log_of(name) if "valid_loss" in entry}


@pytest.fixture(scope="module")
def stored():
    """Return the variables of the cell that contains losses from the logs."""
    [cell] = [cell for cell in LESSON.cells if cell.kind == "code" and cell.text.startswith("steps = ")]
    namespace = {"np": np}
    exec(cell.text, namespace)
    return namespace


def test_the_losses_are_those_of_the_logs(stored):
    for name, losses in (("long", stored["no_decay"]), ("short", stored["decay"])):
        logged = validation_losses(name)
        assert losses.tolist() == [round(logged[step], 3) for step in stored["steps"]]
        last = log_of(name)[-1]
        assert stored["averaged"][name] == round(last["averaged_loss"], 3)
        assert stored["last"][name] == round(logged[last["step"]], 3)


def test_the_learning_rates_are_equal_until_the_decay_of_the_short_training():
    rates = [{e["step"]: e["lr"] for e in log_of(name) if "lr" in e} for name in RUNS]
    differs = [step for step in rates[1] if rates[0][step] != rates[1][step]]
    assert min(differs) == 9610


def test_every_page_states_the_measured_minutes():
    minutes = round(log_of("short")[-1]["seconds"] / 60)
    pages = {LESSON.path, ROOT / "docs/model-card.md", ROOT / "docs/training.md"}
    for page in pages:
        assert f"{minutes} minutes" in " ".join(page.read_text(encoding="utf-8").split()), page


def test_every_page_states_the_same_scores():
    card = (ROOT / "docs/model-card.md").read_text(encoding="utf-8")
    beam, greedy = re.search(r"\*\*([\d.]+) BLEU\*\* \(beam 5; greedy ([\d.]+)\)", card).groups()
    lesson = " ".join(LESSON.path.read_text(encoding="utf-8").split("\n# "))
    assert f"reached {greedy} BLEU with greedy search and {beam} with a beam of 5" in lesson

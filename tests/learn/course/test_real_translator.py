"""The numbers of lesson 22.6 and of the documentation are those of the logs of the two trainings."""

import json
import re

import numpy as np
import pytest
from paths import ROOT

from npformer.learn.course.lesson import Lesson
from npformer.pretrained import load
from npformer.training import find_preset, make_schedule

LESSON = Lesson(ROOT / "lessons/22_6_a_real_translator.py")
TEXT = " ".join(LESSON.path.read_text(encoding="utf-8").split("\n# "))
CARD = (ROOT / "docs/model-card.md").read_text(encoding="utf-8")
TRIALS = ROOT / "figures/multi30k-en-de-trials"
RUNS = {
    "ships": "../multi30k-en-de/log",
    "long": "f-present-0",
    "short": "f-present-short-0",
    "control": "c-control",
}
R_DROP = "d-present-0"
# the logs of the trainings with R-Drop, by the words of the model card
R_DROP_LOGS = {
    "the weight 1 and the learning rate 8e-4, 4,500 steps": R_DROP,
    "the weight 1 and the learning rate 4e-4, 1,600 steps": f"{R_DROP}-1600",
    "the weight 5 and the learning rate 1e-3, 4,000 steps": f"{R_DROP}-5",
}


def log_of(name):
    """Return the entries of the log of a training."""
    path = TRIALS / f"{RUNS.get(name, name)}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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
    rates = [{e["step"]: e["lr"] for e in log_of(name) if "lr" in e} for name in ("long", "short")]
    differs = [step for step in rates[1] if rates[0][step] != rates[1][step]]
    assert min(differs) == 9610


def test_every_page_states_the_measured_minutes():
    minutes = round(log_of("short")[-1]["seconds"] / 60)
    for page in (LESSON.path, ROOT / "docs/model-card.md"):
        assert f"{minutes} minutes" in " ".join(page.read_text(encoding="utf-8").split()), page


def test_every_page_states_the_same_scores():
    beam, greedy = re.search(r"\*\*([\d.]+) BLEU\*\* \(beam 5; greedy ([\d.]+)\)", CARD).groups()
    assert f"reached {greedy} BLEU with greedy search and {beam} with a beam of 5" in TEXT


def best_of(name):
    """Return the losses of the checkpoint with the lowest validation loss, as the model card shows them."""
    found = [entry for entry in log_of(name) if "valid_loss" in entry]
    best = min(found, key=lambda entry: entry["valid_objective"])
    accuracy = f"{100 * best['valid_accuracy']:.1f} %"
    return f"| {best['valid_loss']:.3f} | {best['valid_objective']:.3f} | {accuracy} |"


def test_the_model_card_has_the_losses_of_every_training():
    for settings, name in R_DROP_LOGS.items():
        [row] = [line for line in CARD.splitlines() if f"R-Drop with {settings}" in line]
        assert best_of(name) in row
    averaged = log_of("long")[-1]
    losses = f"| {averaged['averaged_loss']:.3f} | {averaged['averaged_objective']:.3f} |"
    assert f"{losses} {100 * averaged['averaged_accuracy']:.1f} % |" in CARD


def test_the_lesson_and_the_model_card_have_the_loss_of_the_control():
    losses = best_of("control").split(" | ")
    assert f"c-control.jsonl)) | 7.9 minutes {losses[0]} | " in CARD
    assert f"control = {losses[0].removeprefix('| ')}  #" in LESSON.path.read_text(encoding="utf-8")


def test_the_lesson_has_the_scores_by_which_the_model_card_chooses():
    text = LESSON.path.read_text(encoding="utf-8")
    for name, row in (("sinusoids", "| seed {} "), ("rotary", "| rotary positions, seed {} ")):
        rows = [line for n in (0, 1) for line in CARD.splitlines() if line.startswith(row.format(n))]
        assert f"{name} = np.array([{', '.join(line.split(' | ')[-1][:5] for line in rows)}])" in text


def test_the_model_card_repeats_the_scores_of_the_weights_that_ship():
    scores = [one for one in load("en-de").card.scores if one.setting == "tokenised"]
    for search in ("greedy", "beam 5"):
        found = " | ".join(f"{one.bleu:.2f}" for one in scores if one.search == search)
        assert f"as they ship | {search} | {found} |" in CARD


def test_the_training_that_ships_has_the_settings_of_its_preset_and_the_hours_of_the_card():
    training = find_preset("multi30k-en-de").training
    entries = log_of("ships")
    steps = [entry for entry in entries if "lr" in entry]
    assert steps[-1]["step"] == training.steps
    schedule = make_schedule(training, 128, training.steps)
    assert [entry["lr"] for entry in steps] == [schedule(entry["step"]) for entry in steps]
    assert round(entries[-1]["seconds"] / 3600, 1) == load("en-de").card.hours


def test_the_lesson_has_the_loss_before_and_after_r_drop():
    before, after = log_of("long")[-1]["averaged_loss"], min(validation_losses(R_DROP).values())
    assert f"r_drop = {after:.3f}  #" in LESSON.path.read_text(encoding="utf-8")
    assert f"validation loss from {before:.3f} to" in TEXT
    assert f"from {before:.3f} to {after:.3f}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

"""Tests of the trainings of the figures' models: several seeds, two at a time, each once."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.learn.course.trained import lesson_recipe
from npformer.learn.figures import trainings
from npformer.learn.figures.trainings import figure_recipe, french_recipe, train_all, train_as_told, train_in
from npformer.training.events import Stepped

STEPS = 3


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.nightly
def test_the_recipe_is_that_of_the_lessons_with_other_seeds():
    lesson = lesson_recipe()
    recipes = [figure_recipe(number) for number in range(3)]
    for number, recipe in enumerate(recipes):
        assert recipe.model == lesson.model
        assert recipe.dataset.fingerprint == lesson.dataset.fingerprint
        assert recipe.training.seed == lesson.training.seed + number
        same = {"seed": lesson.training.seed, "checkpoint_every": lesson.training.checkpoint_every}
        assert recipe.training.replace(**same) == lesson.training
    french = french_recipe(steps=STEPS)
    assert french.dataset.description["direction"] == "fr-en"
    assert french.training.steps == STEPS


class HereAtTheEnd(SimpleNamespace):
    """A stand-in for a process, whose program runs in this process when the other one waits for it."""

    def __init__(self, command, **settings):
        super().__init__(command=command, kill=lambda: None, wait=lambda: None, returncode=0)

    def communicate(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", self.command)
            train_as_told()
        return None, ""


@pytest.mark.parametrize("process", [HereAtTheEnd, pytest.param(subprocess.Popen, marks=pytest.mark.nightly)])
def test_two_processes_train_the_same_models_as_one(process, tmp_path, monkeypatch):
    monkeypatch.setattr(trainings.subprocess, "Popen", process)
    events = []
    found = {}
    for count in (1, 2):
        monkeypatch.setattr(trainings, "cores", lambda count=count: count)
        folders = [tmp_path / f"{count} cores" / name for name in ("a", "b")]
        events.clear()
        found[count] = train_all(folders, steps=STEPS, report=events.append)
        steps = sum(isinstance(event, Stepped) for event in events)
        assert steps == (2 * STEPS if count == 1 else STEPS)  # the other process reports nothing
        assert all((folder / "step-000003.safetensors").exists() for folder in folders)
    for one, two in zip(found[1], found[2], strict=True):
        assert all(np.array_equal(one.parameters[name], two.parameters[name]) for name in one.parameters)
        assert one.training_settings == two.training_settings
    assert found[2][0].training_settings["seed"] + 1 == found[2][1].training_settings["seed"]
    events.clear()
    train_all(folders, steps=STEPS, report=events.append)
    assert not events  # all are there


@pytest.mark.skipif(shutil.which("false") is None, reason="there is no program that only fails")
def test_an_error_of_the_other_process_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "cores", lambda: 2)
    monkeypatch.setattr(trainings.sys, "executable", shutil.which("false"))
    with pytest.raises(UserError, match="training of a second model in its own process failed: status 1"):
        train_all([tmp_path / "a", tmp_path / "b"], steps=STEPS)


def test_another_recipe_replaces_the_kept_checkpoints(tmp_path):
    train_in(tmp_path, figure_recipe(steps=STEPS))
    assert (tmp_path / "step-000003.safetensors").exists()
    train_in(tmp_path, figure_recipe(steps=2))
    names = {path.name for path in tmp_path.glob("step-*")}
    assert names == {"step-000000.safetensors", "step-000002.safetensors"}

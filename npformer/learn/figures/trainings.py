"""The trainings of the figures' models: the recipe of the lessons, with several seeds at a time.

What a head attends to differs from training to training. Therefore the figures that show a head measure it in
three trainings that differ only in their seed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from npformer.bench.machine import cores
from npformer.data.dataset import builtin_dataset
from npformer.errors import UserError
from npformer.learn.course.trained import LessonTraining, lesson_recipe, prepare, trained
from npformer.storage.atomic import explain_os_errors, make_folder, write_file
from npformer.storage.checkpoint import Checkpoint
from npformer.training import RunFolder
from npformer.training.events import Event, Report, Saved
from npformer.training.if_then import STEPS as IF_THEN_STEPS

TRAININGS = 3  # of the model from English to French
KEPT = 6  # checkpoints of a training, which the picture of training shows
FRENCH = "fr-en"  # the direction of the second model


@cache
def _lesson_recipe() -> LessonTraining:
    return lesson_recipe()  # takes a second, because it makes the corpus


def figure_recipe(number: int = 0, *, steps: int | None = None) -> LessonTraining:
    """Return the lessons' recipe with the seed of training `number`; training 0 has that of the lessons."""
    recipe = _lesson_recipe()
    assert recipe.training.steps is not None  # the lessons' recipe counts steps, not epochs
    every = max(1, recipe.training.steps // KEPT)
    training = recipe.training.replace(seed=recipe.training.seed + number, checkpoint_every=every)
    return _shortened(recipe._replace(training=training), steps)


def french_recipe(*, steps: int | None = None) -> LessonTraining:
    """Return the lessons' recipe for a model from French to English."""
    recipe = _lesson_recipe()
    dataset = builtin_dataset(FRENCH)
    return _shortened(recipe._replace(dataset=dataset, model=recipe.model.replace(**dataset.sizes)), steps)


def recipes_as_json() -> dict[str, Any]:
    """Return all settings of the trainings as plain values, with a fingerprint of each corpus.

    The gallery keeps them, so that a test can tell if its pictures of trained models are from this recipe.
    """
    recipes = {"en-fr": figure_recipe(), "fr-en": french_recipe()}
    rows: dict[str, Any] = {
        name: {
            "corpus": recipe.dataset.fingerprint,
            "model": recipe.model.to_dict(),
            "training": recipe.training.to_dict(),
        }
        for name, recipe in recipes.items()
    }
    return {"trainings": TRAININGS, **rows, "if-then": {"steps": IF_THEN_STEPS}}


def _shortened(recipe: LessonTraining, steps: int | None) -> LessonTraining:
    if steps is None:
        return recipe
    training = recipe.training.replace(steps=steps, warmup_steps=max(1, steps // 10))
    return recipe._replace(training=training)


def train_in(folder: Path, recipe: LessonTraining, *, report: Report | None = None) -> Checkpoint:
    """Return the model of a folder. If it has no finished run of this recipe, train it there.

    A copy of every checkpoint of the training stays in the folder, named by its step.

    Args:
        folder, recipe: The folder of the run, and the dataset and the settings.
        report: The progress callback.

    Raises:
        UserError: If the folder cannot be written.
        KeyboardInterrupt: If Ctrl-C stopped the training.
    """
    advice = "the figures train a model there, so go to a folder that may be written to, or give a run"
    make_folder(folder, advice=advice)
    if prepare(folder, recipe):
        with explain_os_errors(folder, "written", advice):
            for old in kept_checkpoints(folder):
                old.unlink()

    def keep(event: Event) -> None:
        if isinstance(event, Saved) and event.path == RunFolder(folder).last:
            copy = folder / f"step-{event.step:06}.safetensors"
            write_file(copy, event.path.read_bytes(), advice="free some space")
        if report is not None:
            report(event)

    return trained(folder, recipe=recipe, report=keep)


def kept_checkpoints(folder: Path) -> list[Path]:
    """Return the copies of checkpoints in a folder, by their steps."""
    return sorted(folder.glob("step-*.safetensors"))


def train_all(
    folders: Sequence[Path], *, steps: int | None, report: Report | None = None
) -> list[Checkpoint]:
    """Return the models of the trainings 0, 1, ... and train those that are missing, two at a time.

    One training runs in this process and reports its progress. Where there is a second processor core,
    another process trains at the same time.

    Args:
        folders: The folder of each training.
        steps, report: The number of training steps, by default the lessons', and the progress callback.

    Raises:
        UserError: If a folder cannot be written, or the other process fails.
        KeyboardInterrupt: If Ctrl-C stopped a training.
    """
    recipes = [figure_recipe(number, steps=steps) for number in range(len(folders))]
    runs = list(zip(folders, recipes, strict=True))
    missing = [number for number, run in enumerate(runs) if prepare(*run)]
    elsewhere = missing[1::2] if cores() > 1 else []
    with _trained_elsewhere([(number, folders[number]) for number in elsewhere], steps):
        for number in missing:
            if number not in elsewhere:
                train_in(*runs[number], report=report)
    return [train_in(*run) for run in runs]


@contextmanager
def _trained_elsewhere(trainings: Sequence[tuple[int, Path]], steps: int | None) -> Iterator[None]:
    """Run some trainings in a process of their own and wait for its end when the context ends."""
    if not trainings:
        yield
        return
    arguments = json.dumps([[(number, str(folder)) for number, folder in trainings], steps])
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", f"import {__name__} as it; it.train_as_told()", arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        yield
        _, said = process.communicate()
    finally:
        process.kill()  # has no effect on a process that has ended
        process.wait()
    if process.returncode:
        lines = said.strip().splitlines() or [f"status {process.returncode}"]
        raise UserError(f"the training of a second model in its own process failed: {lines[-1]}")


def train_as_told() -> None:
    """Train the models that the last argument of this process names: the other side of `train_all`."""
    trainings, steps = json.loads(sys.argv[-1])
    for number, folder in trainings:
        train_in(Path(folder), figure_recipe(number, steps=steps))

"""npformer train: train a model, or go on with a run that was stopped."""

import ast
import contextlib
import dataclasses
import os
from pathlib import Path
from typing import Any

from npformer.commands.curves import draw_curves
from npformer.data.datasets import Dataset, builtin_dataset, files_dataset, task_dataset
from npformer.data.multi30k import FOLDER
from npformer.errors import UserError
from npformer.models import ModelConfig, preset, preset_class
from npformer.terminal import console, training_progress
from npformer.training import Result, TrainingConfig
from npformer.training import resume as resume_run
from npformer.training import train as train_run
from npformer.training.ranks import RankError, launch, share_of
from npformer.training.translation import RECIPES, Recipe

EPILOG = """\
Examples: npformer train
          npformer train train.en train.de --valid valid.en valid.de --run runs/en-de --steps 5000
          npformer train --task reverse --steps 300
          npformer data multi30k && npformer train --recipe multi30k-en-de
          npformer train --resume runs/en-fr
          mpirun -n 2 npformer train        (two processes, here or on machines: npformer[mpi])"""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    data = parser.add_argument_group("data (the built-in English-French corpus, if none is named)")
    data.add_argument("files", nargs="*", metavar="FILE", help="two files, line by line translations")
    data.add_argument("--valid", nargs=2, metavar="FILE", help="two files to validate on")
    data.add_argument("--task", choices=("copy", "reverse"), help="a toy task instead")
    data.add_argument(
        "--direction", choices=("en-fr", "fr-en"), default="en-fr", help="of the built-in corpus"
    )
    data.add_argument("--limit", type=int, help="read that many pairs of the files at most")
    data.add_argument("--data", metavar="FOLDER", help=f"where the corpus of a recipe is ({FOLDER})")
    data.add_argument("--max-length", type=int, default=64, help="the longest sentence, in tokens (64)")
    data.add_argument("--vocab-size", type=int, help="of each vocabulary of the files (8000)")
    data.add_argument("--min-count", type=int, help="leave out rarer words of the files (2)")
    data.add_argument(
        "--subwords", type=int, metavar="N", help="instead of words, N pieces of words for both files"
    )
    data.add_argument(
        "--unfiltered", action="store_true", help="keep repeated pairs of the files, and wildly uneven ones"
    )
    settings = parser.add_argument_group("settings")
    settings.add_argument("--model", help="a model preset, as paper-base or rnn-global (small)")
    settings.add_argument(
        "--recipe",
        default="small",
        help=f"a training preset; {' and '.join(RECIPES)} bring text and model too (small)",
    )
    settings.add_argument("--steps", type=int, help="how many updates")
    settings.add_argument("--batch-size", type=int, help="sentences a batch")
    settings.add_argument("--seed", type=int, help="of weights, order and dropout (0)")
    settings.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="any setting of model or training"
    )
    run = parser.add_argument_group("run")
    run.add_argument("--run", help="the folder for checkpoints and log (runs/en-fr and the like)")
    run.add_argument("--resume", metavar="RUN", help="go on with a run from its last checkpoint")
    run.add_argument("--backend", choices=("numpy", "cupy", "auto"), help="where to compute (auto)")
    run.add_argument("--threads", type=int, help="of the matrix products (1 up to d_model 128)")
    run.add_argument("--workers", type=int, help="threads that share each batch (1; a recipe: one a core)")


def run(arguments) -> int:
    """Returns 0 where the run came to its end, 130 where Ctrl-C stopped it."""
    first = launch().rank == 0  # of the processes that mpirun started: the one that tells
    out = console(quiet=not first)
    try:
        with training_progress(out) as report:
            go = _go_on if arguments.resume else _begin
            result, folder = go(arguments, out, report)
    except RankError:  # that rank tells what it was
        return 2
    if first:
        _conclude(out, result, folder)
    return 0 if result.finished else 130


def _begin(arguments, out, report) -> tuple[Result, Path]:
    """Train from the beginning."""
    recipe = RECIPES.get(arguments.recipe)
    dataset, name = open_data(arguments, recipe)
    if dataset.counts is not None:
        out.print(dataset.counts.sentence())
    folder = Path(arguments.run or f"runs/{name}")
    model, training = configure(arguments, dataset, recipe)
    result = train_run(
        folder,
        dataset,
        model,
        training,
        backend=arguments.backend or "auto",
        threads=arguments.threads or threads_for(model),
        workers=arguments.workers or (_cores() if recipe else None),
        report=report,
    )
    return result, folder


def _go_on(arguments, out, report) -> tuple[Result, Path]:
    """Train from a run's last checkpoint."""
    _refuse_beside_resume(arguments)
    changes = {name: value for name, value in (("steps", arguments.steps),) if value is not None}
    result = resume_run(
        arguments.resume,
        changes=changes,
        backend=arguments.backend,
        threads=arguments.threads,
        workers=arguments.workers,
        report=report,
    )
    return result, Path(arguments.resume)


def _conclude(out, result: Result, folder: Path) -> None:
    """Say how the run ended and what to do next, and draw its curves."""
    out.print(result.message)
    with contextlib.suppress(UserError):  # no step yet, or no room: the run itself is safe
        draw_curves(folder)
    if result.finished:
        out.print(f"checkpoints, log and curves: {folder}")
        out.print(f'next: npformer translate --run {folder} "a sentence"')


def _refuse_beside_resume(arguments) -> None:
    """A resumed run has its data and settings; others beside --resume would be silently ignored."""
    given = [*arguments.files, *arguments.set, *["--unfiltered"] * arguments.unfiltered]
    names = ("task", "valid", "run", "batch_size", "seed", "limit", "data", "model", "subwords")
    given += [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None]
    if given:
        raise UserError(
            f"--resume goes on with a run's own data and settings, and {given[0]} was given beside it: "
            "leave it out (--steps alone may change), or start another run"
        )


def open_data(arguments, recipe: Recipe | None) -> tuple[Dataset, str]:
    """The dataset that the arguments name, and a name for its run."""
    if recipe is not None:
        _refuse_beside_recipe(arguments)
        return recipe.dataset(arguments.data or FOLDER), arguments.recipe
    if arguments.data:
        raise UserError(f"--data goes with a recipe that reads a corpus: add --recipe {next(iter(RECIPES))}")
    if arguments.files and (len(arguments.files) != 2 or arguments.task):
        raise UserError(
            f"{len(arguments.files)} files were given: give two, a source and its translation, and no --task"
        )
    if arguments.files:
        source, target = arguments.files
        dataset = files_dataset(
            source,
            target,
            valid=tuple(arguments.valid) if arguments.valid else None,
            max_length=arguments.max_length,
            limit=arguments.limit,
            filtered=not arguments.unfiltered,
            **_vocabulary(arguments),
        )
        return dataset, Path(source).name.split(".")[0]
    for option in ("valid", "subwords"):
        if getattr(arguments, option) is not None:
            raise UserError(f"--{option} goes with two files to train on: give those as well")
    if arguments.task:
        return task_dataset(arguments.task), arguments.task
    return builtin_dataset(arguments.direction), arguments.direction


def _refuse_beside_recipe(arguments) -> None:
    """A whole recipe says which text in which words; what says otherwise would be silently ignored."""
    names = ("task", "valid", "limit", "vocab_size", "min_count", "subwords")
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None]
    given = [*arguments.files, *given]
    if given:
        raise UserError(
            f"the recipe {arguments.recipe} has a text and subwords of its own, and {given[0]} was given "
            "beside it: leave it out, or choose another recipe"
        )


def _vocabulary(arguments) -> dict[str, Any]:
    """What files_dataset takes for its words, or for its subwords."""
    of_words = {"vocab_size": arguments.vocab_size, "min_count": arguments.min_count}
    if arguments.subwords is None:
        return {"vocab_size": 8000, "min_count": 2} | {k: v for k, v in of_words.items() if v is not None}
    if any(value is not None for value in of_words.values()):
        raise UserError("--vocab-size and --min-count are for whole words: leave them out beside --subwords")
    return {"subwords": arguments.subwords}


def configure(arguments, dataset: Dataset, recipe: Recipe | None) -> tuple[ModelConfig, TrainingConfig]:
    """The two configurations that the arguments ask for."""
    model_preset = arguments.model or (recipe.model if recipe else "small")
    changes = _settings(arguments.set)
    model_names = {field.name for field in dataclasses.fields(preset_class(model_preset))}
    training_names = {field.name for field in dataclasses.fields(TrainingConfig)}
    for name in changes:
        if name not in model_names | training_names:
            raise UserError(
                f"--set {name}: no setting of that name; a model has {', '.join(sorted(model_names))}; "
                f"training has {', '.join(sorted(training_names))}"
            )
    of_model = {name: value for name, value in changes.items() if name in model_names}
    of_training = {name: value for name, value in changes.items() if name in training_names}
    for name in ("steps", "batch_size", "seed"):
        if getattr(arguments, name) is not None:
            of_training[name] = getattr(arguments, name)
    training = TrainingConfig.preset(arguments.recipe)
    if arguments.steps:
        of_training = _shortened(training, arguments.steps) | of_training
    sizes = dataset.sizes if recipe else dataset.sizes | {"max_length": arguments.max_length}
    model = preset(model_preset, **(sizes | of_model))
    return model, training.replace(**of_training)


def _shortened(training: TrainingConfig, steps: int) -> dict[str, Any]:
    """What a run of so many steps has otherwise: it warms up sooner, and averages over less of its end."""
    return {
        "warmup_steps": max(1, min(training.warmup_steps, steps // 10)),
        "average_every": max(1, min(training.average_every, steps // 50)),
    }


def _cores() -> int:
    """How many processor cores are for this process."""
    return share_of(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def threads_for(model: ModelConfig) -> int | None:
    """One thread for small matrices, whose threads would wait for each other; else as many as BLAS takes.

    With d_model 96 two threads take as long as one where both cores are free, and up to ten times as long
    where they are not; with d_model 256 they take four fifths.
    """
    return 1 if model.d_model <= 128 else None


def _settings(texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE texts as a dict; a value that is no Python literal stays a text."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--set {text!r}: write NAME=VALUE, as --set d_model=128")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings

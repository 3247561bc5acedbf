"""npformer train: train a model, or go on with a run that was stopped."""

import ast
import dataclasses
from pathlib import Path
from typing import Any

from npformer.data.datasets import Dataset, builtin_dataset, files_dataset, task_dataset
from npformer.errors import UserError
from npformer.models import ModelConfig, preset, preset_class
from npformer.terminal import console, training_progress
from npformer.training import Result, TrainingConfig
from npformer.training import resume as resume_run
from npformer.training import train as train_run

EPILOG = """\
Examples: npformer train
          npformer train train.en train.de --valid valid.en valid.de --run runs/en-de --steps 5000
          npformer train --task reverse --steps 300
          npformer train --resume runs/en-fr"""


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
    data.add_argument("--max-length", type=int, default=64, help="the longest sentence, in tokens (64)")
    data.add_argument("--vocab-size", type=int, default=8000, help="of each vocabulary of the files (8000)")
    data.add_argument("--min-count", type=int, default=2, help="leave out rarer words of the files (2)")
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--model", default="small", help="a model preset, as paper-base or rnn-global (small)"
    )
    settings.add_argument("--recipe", default="small", help="a training preset (small)")
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


def run(arguments) -> int:
    """Returns 0 where the run came to its end, 130 where Ctrl-C stopped it."""
    out = console()
    with training_progress(out) as report:
        if arguments.resume:
            _refuse_beside_resume(arguments)
            changes = {name: value for name, value in (("steps", arguments.steps),) if value is not None}
            result = resume_run(
                arguments.resume,
                changes=changes,
                backend=arguments.backend,
                threads=arguments.threads,
                report=report,
            )
            folder = Path(arguments.resume)
        else:
            dataset, name = open_data(arguments)
            folder = Path(arguments.run or f"runs/{name}")
            model, training = configure(arguments, dataset)
            result = train_run(
                folder,
                dataset,
                model,
                training,
                backend=arguments.backend or "auto",
                threads=arguments.threads or threads_for(model),
                report=report,
            )
    return _conclude(out, result, folder)


def _conclude(out, result: Result, folder: Path) -> int:
    out.print(result.message)
    if not result.finished:
        return 130
    out.print(f"checkpoints and log: {folder}")
    out.print(f'next: npformer translate --run {folder} "a sentence"')
    return 0


def _refuse_beside_resume(arguments) -> None:
    """A resumed run has its data and settings; others beside --resume would be silently ignored."""
    given = [*arguments.files, *arguments.set]
    names = ("task", "valid", "run", "batch_size", "seed", "limit")
    given += [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None]
    if given:
        raise UserError(
            f"--resume goes on with a run's own data and settings, and {given[0]} was given beside it: "
            "leave it out (--steps alone may change), or start another run"
        )


def open_data(arguments) -> tuple[Dataset, str]:
    """The dataset that the arguments name, and a name for its run."""
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
            vocab_size=arguments.vocab_size,
            min_count=arguments.min_count,
        )
        return dataset, Path(source).name.split(".")[0]
    if arguments.valid:
        raise UserError("--valid goes with two files to train on: give those as well")
    if arguments.task:
        return task_dataset(arguments.task), arguments.task
    return builtin_dataset(arguments.direction), arguments.direction


def configure(arguments, dataset: Dataset) -> tuple[ModelConfig, TrainingConfig]:
    """The two configurations that the arguments ask for."""
    changes = _settings(arguments.set)
    model_names = {field.name for field in dataclasses.fields(preset_class(arguments.model))}
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
    recipe = TrainingConfig.preset(arguments.recipe)
    if arguments.steps and "warmup_steps" not in changes:  # a short run warms up quickly
        of_training["warmup_steps"] = max(1, min(recipe.warmup_steps, arguments.steps // 10))
    words = {
        "source_vocab": len(dataset.source.vocabulary),
        "target_vocab": len(dataset.target.vocabulary),
        "max_length": arguments.max_length,
    }
    model = preset(arguments.model, **(words | of_model))
    return model, recipe.replace(**of_training)


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

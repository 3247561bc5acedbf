"""npformer train: train a model, or resume a run that was stopped."""

import ast
import contextlib
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console

from npformer.cli.curves import draw_curves
from npformer.cli.progress import training_progress
from npformer.cli.terminal import console
from npformer.data.dataset import Dataset, builtin_dataset, files_dataset, task_dataset
from npformer.data.multi30k import FOLDER
from npformer.errors import UserError, quantity
from npformer.pretrained.train_on_files import (
    MAX_LENGTH,
    MIN_COUNT,
    VOCAB_SIZE,
    available_cores,
    configure,
    run_name,
    threads_for,
)
from npformer.training import Report, Result
from npformer.training import resume as resume_run
from npformer.training import train as train_run
from npformer.training.presets import PRESETS, Preset, find_preset
from npformer.training.ranks import RankError, launch

EPILOG = """\
Examples: npformer train
          npformer train train.en train.de --valid valid.en valid.de --run runs/en-de --steps 5000
          npformer train --task reverse --steps 300
          npformer data multi30k && npformer train --preset multi30k-en-de
          npformer train --resume runs/en-fr
          mpirun -n 2 npformer train        (with npformer[mpi]: two processes that train one model)"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = EPILOG
    _add_data_arguments(parser)
    settings = parser.add_argument_group("settings")
    settings.add_argument(
        "--preset",
        default="small",
        help="data, architecture and training settings that go together: "
        f"{', '.join(PRESETS.names())} (default: small)",
    )
    settings.add_argument(
        "--architecture",
        metavar="NAME",
        help="another architecture than the preset's, such as paper-base or rnn-global",
    )
    settings.add_argument("--steps", type=int, help="the number of optimizer steps")
    settings.add_argument("--batch-size", type=int, help="the number of sentences in a batch")
    settings.add_argument("--seed", type=int, help="the seed of weights, order and dropout (default: 0)")
    settings.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any setting of the model or of the training",
    )
    run = parser.add_argument_group("run")
    run.add_argument(
        "--run",
        metavar="FOLDER",
        help="the folder for checkpoints and log (default: in runs/)",
    )
    run.add_argument("--resume", metavar="FOLDER", help="resume a run from its last checkpoint")
    run.add_argument("--backend", choices=("numpy", "cupy", "auto"), help="where to compute (default: auto)")
    run.add_argument(
        "--threads", type=int, help="the threads of the matrix products (default: 1 up to d_model 128)"
    )
    run.add_argument(
        "--workers",
        type=int,
        help="the threads that share each batch (default: 1; for multi30k presets, one for each core)",
    )


def _add_data_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that choose the data."""
    data = parser.add_argument_group("data (default: the data of the preset)")
    data.add_argument(
        "files", nargs="*", metavar="FILE", help="two files whose lines are translations of each other"
    )
    data.add_argument("--valid", nargs=2, metavar="FILE", help="two files to validate on")
    data.add_argument("--task", choices=("copy", "reverse"), help="a toy task instead of text")
    data.add_argument(
        "--direction",
        choices=("en-fr", "fr-en"),
        default="en-fr",
        help="the direction of the built-in corpus (default: en-fr)",
    )
    data.add_argument("--limit", type=int, metavar="N", help="read at most N pairs of the files")
    data.add_argument(
        "--data", metavar="FOLDER", help=f"the folder of the preset's corpus (default: {FOLDER})"
    )
    data.add_argument(
        "--max-length",
        type=int,
        default=MAX_LENGTH,
        help=f"the longest sentence, in tokens (default: {MAX_LENGTH})",
    )
    data.add_argument(
        "--vocab-size", type=int, help=f"the size of each vocabulary of words (default: {VOCAB_SIZE})"
    )
    data.add_argument(
        "--min-count", type=int, help=f"leave out words that occur less often (default: {MIN_COUNT})"
    )
    data.add_argument(
        "--subwords", type=int, metavar="N", help="use N subwords for both files instead of words"
    )
    data.add_argument(
        "--unfiltered", action="store_true", help="keep repeated pairs, and pairs of very different lengths"
    )


def run(arguments: Namespace) -> int:
    """Train. Return 0 if the run came to its end, and 130 if Ctrl-C stopped it."""
    first = launch().rank == 0  # only the first of mpirun's processes prints
    out = console(quiet=not first)
    try:
        with training_progress(out) as report:
            train = _resume if arguments.resume else _begin
            result, folder = train(arguments, out, report)
    except RankError:  # the rank with the error prints it
        return 2
    if first:
        _conclude(out, result, folder)
    return 0 if result.finished else 130


def _begin(arguments: Namespace, out: Console, report: Report) -> tuple[Result, Path]:
    """Train from the beginning."""
    preset = find_preset(arguments.preset)
    dataset, name = open_data(arguments, preset)
    if dataset.counts is not None:
        out.print(dataset.counts.sentence())
    folder = Path(arguments.run or f"runs/{name}")
    settings = _parse_settings(arguments.set)
    given = {name: getattr(arguments, name) for name in ("batch_size", "seed")}
    settings |= {name: value for name, value in given.items() if value is not None}
    model, training = configure(
        preset,
        dataset,
        settings,
        architecture=arguments.architecture,
        steps=arguments.steps,
        max_length=arguments.max_length,
    )
    result = train_run(
        folder,
        dataset,
        model,
        training,
        backend=arguments.backend or "auto",
        threads=threads_for(model) if arguments.threads is None else arguments.threads,
        workers=available_cores() if preset.all_cores and arguments.workers is None else arguments.workers,
        report=report,
    )
    return result, folder


def _resume(arguments: Namespace, out: Console, report: Report) -> tuple[Result, Path]:
    """Train from the last checkpoint of a run."""
    _refuse_beside_resume(arguments)
    result = resume_run(
        arguments.resume,
        changes={} if arguments.steps is None else {"steps": arguments.steps},
        backend=arguments.backend,
        threads=arguments.threads,
        workers=arguments.workers,
        report=report,
    )
    return result, Path(arguments.resume)


def _conclude(out: Console, result: Result, folder: Path) -> None:
    """Print how the run ended and what to do next, and draw its curves."""
    out.print(result.message)
    with contextlib.suppress(UserError):  # no step yet, or no space on the disk: the run itself is safe
        draw_curves(folder)
    if result.finished:
        out.print(f"checkpoints, log and curves: {folder}")
        out.print(f'next: npformer translate --model {folder} "a sentence"')


def _refuse_beside_resume(arguments: Namespace) -> None:
    """Raise UserError for options that --resume would ignore, because a run has its own data and settings."""
    given = [*arguments.files, *arguments.set, *["--unfiltered"] * arguments.unfiltered]
    names = ("task", "valid", "run", "batch_size", "seed", "limit", "data", "architecture", "subwords")
    given += [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None]
    if given:
        raise UserError(
            f"--resume continues with the run's own data and settings, and {given[0]} was given as well: "
            "leave it out (only --steps may change), or start another run"
        )


def open_data(arguments: Namespace, preset: Preset) -> tuple[Dataset, str]:
    """Return the dataset that the arguments name, and a name for its run."""
    if preset.downloaded_corpus:
        _refuse_beside_corpus(arguments)
        return preset.dataset(arguments.data or FOLDER), preset.name
    if arguments.data:
        name = next(each.name for each in PRESETS if each.downloaded_corpus)
        raise UserError(f"--data needs a preset that reads a corpus: add --preset {name}")
    if arguments.files and (len(arguments.files) != 2 or arguments.task):
        raise UserError(
            f"{quantity(len(arguments.files), 'file was', 'files were')} given: give two, a source and its "
            "translation, and no --task"
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
            **_vocabulary(arguments, shared=preset.data.get("shared", False)),
        )
        return dataset, run_name(source)
    for option in ("valid", "subwords"):
        if getattr(arguments, option) is not None:
            raise UserError(f"--{option} needs two files to train on: give those as well")
    if arguments.task:
        return task_dataset(arguments.task), arguments.task
    shared = preset.data.get("shared", False)
    return builtin_dataset(arguments.direction, shared=shared), arguments.direction


def _refuse_beside_corpus(arguments: Namespace) -> None:
    """Raise UserError for options about other text, if the preset has its own text."""
    names = ("task", "valid", "limit", "vocab_size", "min_count", "subwords")
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) is not None]
    given = [*arguments.files, *given]
    if given:
        raise UserError(
            f"the preset {arguments.preset} has its own text and subwords, and {given[0]} was given as well: "
            "leave it out, or choose another preset"
        )


def _vocabulary(arguments: Namespace, *, shared: bool) -> dict[str, Any]:
    """Return the settings of `files_dataset` for its vocabularies of words, or for its subwords."""
    given = {name: getattr(arguments, name) for name in ("vocab_size", "min_count")}
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.subwords is None:
        return {"vocab_size": VOCAB_SIZE, "min_count": MIN_COUNT, "shared": shared} | given
    if given:
        raise UserError("--vocab-size and --min-count are for whole words: leave out these or --subwords")
    return {"subwords": arguments.subwords}


def _parse_settings(texts: list[str]) -> dict[str, Any]:
    """Return texts NAME=VALUE as a dict. A value that is not a Python literal stays a text."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--set {text!r}: write NAME=VALUE, as --set d_model=128")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    return settings

"""npformer.train, which trains a translator on two files, and functions that the command line also uses."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from npformer.data.base_dataset import Dataset
from npformer.data.dataset import files_dataset
from npformer.errors import UserError, nearest
from npformer.models.registry import ModelConfig, architecture_class
from npformer.pretrained.initial_weights import initial_weights
from npformer.pretrained.loaded import Translator
from npformer.pretrained.loading import load_as
from npformer.training import Report, Result, TrainingConfig
from npformer.training import train as train_run
from npformer.training.presets import Preset, find_preset
from npformer.training.ranks import share_of

FilePath = str | os.PathLike[str]

VOCAB_SIZE, MIN_COUNT = 8000, 2  # of vocabularies of words, by default
MAX_LENGTH = 64


class TrainedRun(NamedTuple):
    """A run of `npformer.train`: its folder, the trained translator, and the result of the training."""

    folder: Path  # checkpoints and log; npformer.load reads it
    translator: Translator  # of the best checkpoint
    result: Result


def train(
    source: FilePath,
    target: FilePath,
    *,
    preset: str = "small",
    architecture: str | None = None,
    valid: tuple[FilePath, FilePath] | None = None,
    run: FilePath | None = None,
    start_from: FilePath | None = None,
    steps: int | None = None,
    subwords: int | None = None,
    max_length: int = MAX_LENGTH,
    limit: int | None = None,
    filtered: bool = True,
    lowercase: bool = True,
    backend: str = "auto",
    threads: int | None = None,
    workers: int | None = None,
    report: Report | None = None,
    **settings: Any,
) -> TrainedRun:
    """Train a translator on two files whose lines are translations of each other.

    Args:
        source: The file of sentences, such as "train.en". Its suffix names the language.
        target: The file of their translations, such as "train.de".
        preset: The name of the preset for the architecture and the settings of the training.
        architecture: The name of another architecture than the preset's.
        valid: Two files to validate on. By default, the last pairs of the training files.
        run: The folder for checkpoints and log. By default, runs/ and the name of the source file.
        start_from: A trained model of the same settings and vocabularies, as `npformer.load` takes it. The
            training begins with its weights instead of random ones.
        steps: The number of optimizer steps. A shorter run also has fewer warm-up steps.
        subwords: The number of subwords for both files. By default, each file has a vocabulary of words.
        max_length: Leave out pairs in which a side has more tokens.
        limit: The largest number of pairs to read.
        filtered: Leave out repeated pairs and pairs of very different lengths.
        lowercase: Convert the text to lower case.
        backend: "numpy", "cupy", or "auto" for CuPy where there is a GPU.
        threads: The number of threads of the matrix products. By default, 1 for small models.
        workers: The number of threads that share each batch.
        report: A function that receives the events of the training.
        settings: Any other settings of the model or the training, such as d_model=128 or seed=1.

    Returns:
        The folder of the run, the trained translator and the result of the training.

    Raises:
        UserError: If a file cannot be read, if a name or a setting is unknown or impossible, if the folder
            already holds a run, or if the training cannot start from `start_from`.
    """
    chosen = find_preset(preset)
    if chosen.downloaded_corpus:
        raise UserError(f"the preset {preset} trains on its own corpus: choose another one, such as small")
    words = {"vocab_size": VOCAB_SIZE, "min_count": MIN_COUNT, "shared": chosen.data.get("shared", False)}
    vocabulary = words if subwords is None else {"subwords": subwords}
    options: dict[str, Any] = {"valid": valid, "max_length": max_length, "limit": limit, "filtered": filtered}
    dataset = files_dataset(source, target, lowercase=lowercase, **options, **vocabulary)
    model, training = configure(
        chosen, dataset, settings, architecture=architecture, steps=steps, max_length=max_length
    )
    folder = Path(run) if run is not None else Path("runs") / run_name(source)
    result = train_run(
        folder,
        dataset,
        model,
        training,
        backend=backend,
        threads=threads_for(model) if threads is None else threads,
        workers=available_cores() if chosen.all_cores and workers is None else workers,
        report=report,
        initial=None if start_from is None else initial_weights(start_from, model, dataset),
    )
    return TrainedRun(folder, load_as(Translator, folder), result)


def configure(
    preset: Preset,
    dataset: Dataset,
    settings: Mapping[str, Any],
    *,
    architecture: str | None = None,
    steps: int | None = None,
    max_length: int | None = None,
) -> tuple[ModelConfig, TrainingConfig]:
    """Return the configurations of the model and of the training.

    Args:
        preset: The preset that they start from.
        dataset: The dataset, which has the sizes of the vocabularies.
        settings: Changes to the settings of the model and of the training, by name.
        architecture: The name of another architecture than the preset's.
        steps: The number of steps. Warm-up and averaging become shorter with it.
        max_length: The longest sentence of the model. A preset with its own corpus ignores it.

    Raises:
        UserError: If a name is unknown or a setting is impossible.
    """
    if architecture:
        preset = preset.with_architecture(architecture)
    of_model = {field.name for field in dataclasses.fields(architecture_class(preset.architecture))}
    of_training = {field.name for field in dataclasses.fields(TrainingConfig)}
    for name in settings:
        if name not in of_model | of_training:
            near = nearest(name, sorted(of_model | of_training))
            every = (
                f"a model has {', '.join(sorted(of_model))}; training has {', '.join(sorted(of_training))}"
            )
            raise UserError(f"there is no setting {name}: {f'did you mean {near}?' if near else every}")
    changes = {name: value for name, value in settings.items() if name in of_training}
    if steps is not None:
        changes["steps"] = steps
    if steps:
        changes = _shortened(preset.training, steps) | changes
    longest = {} if preset.downloaded_corpus or max_length is None else {"max_length": max_length}
    chosen = {name: value for name, value in settings.items() if name in of_model}
    return preset.model(dataset, **(longest | chosen)), preset.training.replace(**changes)


def _shortened(training: TrainingConfig, steps: int) -> dict[str, Any]:
    """Return the settings that change in a shorter run: fewer steps of warm-up, and between two snapshots."""
    return {
        "warmup_steps": max(1, min(training.warmup_steps, steps // 10)),
        "average_every": max(1, min(training.average_every, steps // 50)),
    }


def run_name(source: FilePath) -> str:
    """Return the name of a run on a file: "train" for "data/train.en.gz"."""
    return Path(source).name.split(".")[0]


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return share_of(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def threads_for(model: ModelConfig) -> int | None:
    """Return 1 for small matrices, and for large ones None, which leaves the number of threads to BLAS.

    With d_model 96, two threads take as long as one if both cores are free, and up to ten times as long if a
    core is busy, because the threads wait for each other. With d_model 256, two threads take four fifths of
    the time of one.
    """
    return 1 if model.d_model <= 128 else None

"""Train the translators of the attention family on one corpus, and compare them fairly.

All systems have the same number of parameters, within 2 %, and are trained for the same processor time. The
learning rate and the initialization of each system are those with the lowest validation loss in the same
small search.
"""

import itertools
import shutil
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.data import Batch
from npformer.data.corpus import Pair
from npformer.data.dataset import PairDataset
from npformer.data.loader import DataLoader
from npformer.models.registry import ModelConfig, architecture, build, kind_of
from npformer.pretrained import Translator
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import TrainingConfig, loss_and_gradients, train
from npformer.training.events import Report
from npformer.training.optimizer import Adam
from npformer.training.presets import LEARNING_RATES, find_preset
from npformer.training.step import dropout_rngs, make_step

# the name in the table and the architecture of each system
SYSTEMS = {
    "LSTM, no attention": "rnn",
    "additive (Bahdanau)": "rnn-additive",
    "global (Luong)": "rnn-global",
    "global, input feeding": "rnn-global-feeding",
    "local-m": "rnn-local-m",
    "local-p": "rnn-local-p",
    "Universal Transformer": "universal",
    "Transformer": "small",
}
REFERENCE = "small"  # the architecture whose number of parameters and whose training time all systems have
LENGTHS = ((1, 6), (7, 9), (10, 12), (13, 99))  # first and last number of words of the English sentence
TIMED_LENGTHS = (8, 16, 32, 64)  # tokens in each of the 16 sentences of a timed training step
TIMED_STEPS = 25  # the training steps whose time decides how many steps a system makes
REPEATS = 3

# The grid of the search: every learning rate with every initialization of the kind of model. A Transformer
# has no such setting.
RATES = (0.002, 0.004, 0.008)
INITIALIZATIONS: dict[str, tuple[dict[str, float], ...]] = {
    "recurrent": ({"forget_bias": 0.0}, {"forget_bias": 1.0}),
    "universal": ({"halting_bias": 0.0}, {"halting_bias": 1.0}),
    "transformer": ({},),
}
TIE = 0.01  # validation losses that differ by this share count as equal
# the width that is changed to fit the number of parameters, and the multiple that it must be
WIDTHS = {"recurrent": ("d_hidden", 2), "universal": ("d_ff", 1)}


class System(NamedTuple):
    """A system of the comparison with all its settings."""

    name: str
    model: str  # the name of its architecture
    config: ModelConfig
    training: TrainingConfig
    parameters: int


class FamilyRow(NamedTuple):
    """The measurements of one system. Shares of sentences have one entry for each seed."""

    name: str
    parameters: int
    steps: int  # the training steps
    seconds: float  # the mean processor time of a training
    learning_rate: float
    exact: tuple[float, ...]  # the share of the held-out sentences that are translated exactly
    by_length: tuple[float, ...]  # the mean of the same for each of LENGTHS
    step: tuple[float, ...]  # milliseconds of a training step for each of TIMED_LENGTHS


class Trial(NamedTuple):
    """One training of the search, and its validation loss."""

    name: str
    model: str
    learning_rate: float
    settings: dict[str, float]  # of INITIALIZATIONS
    loss: float  # the lowest validation loss, with label smoothing, which training minimizes


def fitted(model: str, dataset: PairDataset) -> ModelConfig:
    """Return an architecture with the number of parameters of the reference, for a dataset's vocabularies.

    Args:
        model: The name of the architecture.
        dataset: The dataset.
    """
    config, sizes = architecture(model, **dataset.sizes), dataset.sizes
    if kind_of(config) not in WIDTHS:
        return config
    width, multiple = WIDTHS[kind_of(config)]
    wanted = build(architecture(REFERENCE, **sizes)).count_parameters()

    def excess(n: int) -> int:
        return build(config.replace(**{width: n * multiple})).count_parameters() - wanted

    # the narrowest width with at least as many parameters
    above = bisect_left(range(2, 2 * getattr(config, width)), 0, key=excess) + 2
    best = min((above - 1, above), key=lambda n: abs(excess(n)))
    return config.replace(**{width: best * multiple})


def training_settings(model: str, steps: int, seed: int) -> TrainingConfig:
    """Return the settings of a training: those of the preset "small", with the rate found for a model.

    Args:
        model: The name of the architecture.
        steps: The number of training steps.
        seed: The seed of the training.
    """
    return find_preset("small").training.replace(
        steps=steps,
        warmup_steps=max(1, steps // 10),
        learning_rate=LEARNING_RATES[model],
        seed=seed,
        validate_every=steps,
        checkpoint_every=steps,
    )


def plan(dataset: PairDataset, steps: int) -> list[System]:
    """Return the systems. Each has the number of steps that takes as long as `steps` of the reference.

    Args:
        dataset: The training data.
        steps: The number of training steps of the reference.
    """
    configs = {name: fitted(model, dataset) for name, model in SYSTEMS.items()}
    reference = seconds_per_step(architecture(REFERENCE, **dataset.sizes), dataset)
    systems = []
    for name, model in SYSTEMS.items():
        share = 1.0 if model == REFERENCE else reference / seconds_per_step(configs[name], dataset)
        training = training_settings(model, max(1, round(steps * share)), 0)
        parameters = build(configs[name]).count_parameters()
        systems.append(System(name, model, configs[name], training, parameters))
    return systems


def seconds_per_step(config: ModelConfig, dataset: PairDataset) -> float:
    """Return the mean processor time of the first training steps. Each is measured twice; the lower counts.

    Args:
        config: The configuration of the model.
        dataset: The training data. The steps of all systems have the same batches.
    """
    training = find_preset("small").training
    loader = DataLoader(dataset.train, dataset.train_lengths, **training.batching)
    batches = list(itertools.islice(loader.steps(0), TIMED_STEPS))
    seconds = np.zeros((2, len(batches)))
    for repeat in range(2):
        model = build(config, rng=np.random.default_rng(0))
        optimizer = Adam(model, betas=training.betas, eps=training.eps)
        for step, batch in enumerate(batches, 1):
            start = time.process_time()
            make_step(model, optimizer, batch, dropout_rngs(0, step, len(batch)), 1e-3, training.clip_norm)
            seconds[repeat, step - 1] = time.process_time() - start
    return float(seconds.min(0).mean())


def measure_system(
    system: System,
    dataset: PairDataset,
    test: Sequence[Pair],
    folder: Path,
    *,
    seeds: Sequence[int],
    report: Report | None = None,
) -> FamilyRow:
    """Train a system with each seed, translate the held-out sentences, and measure accuracy and speed.

    Args:
        system: The system.
        dataset: The training data.
        test: The held-out sentences.
        folder: The folder of the runs. Earlier runs there are deleted.
        seeds: The seeds of the trainings.
        report: A function that is called with the events of the trainings.

    Returns:
        The row of the table.
    """
    lengths = np.array([len(pair.english.split()) for pair in test])  # (N,)
    exact, by_length, seconds = [], [], []
    for seed in seeds:
        run = folder / f"{system.model}-{seed}"
        shutil.rmtree(run, ignore_errors=True)
        start = time.process_time()
        result = train(
            run, dataset, system.config, system.training.replace(seed=seed), threads=1, report=report
        )
        result.require_finished()
        seconds.append(time.process_time() - start)
        translator = Translator.from_checkpoint(load_checkpoint(run / "last.safetensors"))
        answers = translator.translate([pair.english for pair in test], beam=1)
        right = np.array([a == pair.french for a, pair in zip(answers, test, strict=True)])  # (N,)
        exact.append(float(right.mean()))
        by_length.append([right[(lengths >= a) & (lengths <= b)].mean() for a, b in LENGTHS])
    assert system.training.steps is not None  # training_settings sets it
    return FamilyRow(
        name=system.name,
        parameters=system.parameters,
        steps=system.training.steps,
        seconds=float(np.mean(seconds)),
        learning_rate=system.training.learning_rate,
        exact=tuple(exact),
        by_length=tuple(float(share) for share in np.mean(by_length, 0)),
        step=tuple(step_time(system.config, dataset, length) for length in TIMED_LENGTHS),
    )


def step_time(config: ModelConfig, dataset: PairDataset, length: int) -> float:
    """Return the milliseconds of a forward and a backward pass on 16 sentences, the smallest of three times.

    Args:
        config: The configuration of the model.
        dataset: The dataset, which gives the sizes of the vocabularies.
        length: The number of tokens in each sentence.
    """
    network = build(config.replace(max_length=length + 1), rng=np.random.default_rng(0))
    rng = np.random.default_rng(length)
    ids = [rng.integers(4, n, (16, length)) for n in dataset.sizes.values()]
    batch = Batch(ids[0], ids[1], ids[1])
    seconds = []
    for _ in range(REPEATS + 1):  # the first run is a warm-up
        start = time.process_time()
        loss_and_gradients(network, [batch], [np.random.default_rng(1)])
        seconds.append(time.process_time() - start)
    return 1000 * min(seconds[1:])


def grid(model: str) -> Iterator[tuple[float, dict[str, float]]]:
    """Yield the learning rate and the initialization of each trial of an architecture."""
    yield from itertools.product(RATES, INITIALIZATIONS[kind_of(architecture(model))])


def try_settings(
    name: str,
    learning_rate: float,
    settings: dict[str, float],
    dataset: PairDataset,
    folder: Path,
    *,
    steps: int,
    seed: int,
    report: Report | None = None,
) -> Trial:
    """Train a system with settings of the grid, and return its validation loss.

    Args:
        name: The name of the system, of SYSTEMS.
        learning_rate: The highest learning rate.
        settings: The initialization.
        dataset: The training data. Its sentences for validation decide, and not the held-out sentences.
        folder: The folder of the run. An earlier run there is deleted.
        steps: The number of training steps.
        seed: The seed of the training.
        report: A function that is called with the events of the training.
    """
    shutil.rmtree(folder, ignore_errors=True)
    config: Any = fitted(SYSTEMS[name], dataset).replace(**settings)
    training = training_settings(SYSTEMS[name], steps, seed).replace(learning_rate=learning_rate)
    result = train(folder, dataset, config, training, threads=1, report=report)
    result.require_finished()
    assert result.best_loss is not None  # it was validated after the last step
    return Trial(name, SYSTEMS[name], learning_rate, settings, result.best_loss)


def best_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Return the chosen trial of each system: the one with the lowest validation loss.

    Losses that are higher by at most TIE count as equal, since another seed changes a loss by as much. Of
    equal trials the one with the lowest learning rate is chosen, which is safer in a longer training.
    """
    chosen = []
    for name in dict.fromkeys(trial.name for trial in trials):
        own = [trial for trial in trials if trial.name == name]
        lowest = min(trial.loss for trial in own)
        equal = [trial for trial in own if trial.loss <= (1 + TIE) * lowest]
        chosen.append(min(equal, key=lambda trial: (trial.learning_rate, trial.loss)))
    return chosen

"""Train recurrent translators and the Transformer on one corpus, at one size, and compare them."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from npformer.data import Batch
from npformer.data.corpus import Pair
from npformer.data.dataset import Dataset
from npformer.generation import Translator
from npformer.models.registry import architecture, build
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import loss_and_gradients, train
from npformer.training.events import Report
from npformer.training.presets import find_preset

# the name in the table and the architecture of each system; all have about the same number of parameters
SYSTEMS = {
    "LSTM, no attention": "rnn",
    "additive (Bahdanau)": "rnn-additive",
    "global (Luong)": "rnn-global",
    "global, input feeding": "rnn-global-feeding",
    "local-m": "rnn-local-m",
    "local-p": "rnn-local-p",
    "Transformer": "small",
}
LENGTHS = ((1, 6), (7, 9), (10, 12), (13, 99))  # first and last number of words of the English sentence
TIMED_LENGTHS = (8, 16, 32, 64)  # tokens in each of the 16 sentences of a timed training step
REPEATS = 3


class FamilyRow(NamedTuple):
    """The measurements of one system."""

    name: str
    parameters: int
    epoch: float  # seconds of processor time, so that other load on the machine does not count
    exact: float  # the share of the held-out sentences that are translated exactly
    by_length: tuple[float, ...]  # the same for each of LENGTHS
    step: tuple[float, ...]  # milliseconds of a training step for each of TIMED_LENGTHS


def measure_system(
    name: str,
    model: str,
    dataset: Dataset,
    test: Sequence[Pair],
    folder: Path,
    *,
    steps: int,
    seed: int,
    report: Report | None = None,
) -> FamilyRow:
    """Train a system, translate the held-out sentences with it, and measure its accuracy and speed.

    Args:
        name: The name of the system in the table.
        model: The name of the architecture.
        dataset: The training data.
        test: The held-out sentences.
        folder: The folder of the run. An earlier run there is deleted.
        steps: The number of training steps.
        seed: The seed of the training.
        report: A function that is called with the events of the training.

    Returns:
        The row of the table.
    """
    shutil.rmtree(folder, ignore_errors=True)
    config = architecture(model, **dataset.sizes)
    training = find_preset("small").training.replace(
        steps=steps, warmup_steps=max(1, steps // 10), seed=seed, validate_every=steps
    )
    start = time.process_time()
    train(folder, dataset, config, training, threads=1, report=report)
    seconds = time.process_time() - start
    translator = Translator.from_checkpoint(load_checkpoint(folder / "last.safetensors"))
    answers = translator.translate([pair.english for pair in test])
    right = np.array([a == pair.french for a, pair in zip(answers, test, strict=True)])  # (N,)
    lengths = np.array([len(pair.english.split()) for pair in test])  # (N,)
    assert training.batch_size is not None  # the preset sets it
    return FamilyRow(
        name=name,
        parameters=translator.model.count_parameters(),
        epoch=seconds / steps * len(dataset.train) / training.batch_size,
        exact=float(right.mean()),
        by_length=tuple(float(right[(lengths >= a) & (lengths <= b)].mean()) for a, b in LENGTHS),
        step=tuple(step_time(model, dataset, length) for length in TIMED_LENGTHS),
    )


def step_time(model: str, dataset: Dataset, length: int) -> float:
    """Return the milliseconds of a forward and a backward pass on 16 sentences, the smallest of three times.

    Args:
        model: The name of the architecture.
        dataset: The dataset, which gives the sizes of the vocabularies.
        length: The number of tokens in each sentence.
    """
    config = architecture(model, **(dataset.sizes | {"max_length": length + 1}))
    network = build(config, rng=np.random.default_rng(0))
    rng = np.random.default_rng(length)
    ids = [rng.integers(4, n, (16, length)) for n in dataset.sizes.values()]
    batch = Batch(ids[0], ids[1], ids[1])
    seconds = []
    for _ in range(REPEATS + 1):  # the first run is a warm-up
        start = time.process_time()
        loss_and_gradients(network, [batch], [np.random.default_rng(1)])
        seconds.append(time.process_time() - start)
    return 1000 * min(seconds[1:])

"""Short trainings of small GPTs, whose results are stored as soon as each training ends.

The experiments of `npformer experiment` consist of many such trainings. An experiment that was interrupted
goes on after the last training that ended.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.data.text import TextDataset, TextLoader
from npformer.errors import UserError
from npformer.models.gpt import GPT, INITIAL_STD, GPTConfig
from npformer.models.registry import build
from npformer.storage.atomic import write_file
from npformer.storage.json_files import read_json, require_entries, require_object, require_version
from npformer.training import TrainingConfig, evaluate
from npformer.training.config import make_optimizer, make_schedule
from npformer.training.step import make_step

FORMAT = 1  # of the files with results
VALID_TOKENS = 32_768  # the length of the validation text, about a third of the whole
MEAN_OF = 10  # a point of a stored curve is the mean loss of so many steps
MOST_PRINTED = 8  # a measure of more values, such as a curve, is in the file only
ADVICE = "measure it again"


class Trial(NamedTuple):
    """The arguments of one training."""

    model: str  # the name of the model in its experiment
    learning_rate: float  # the largest one of the run
    steps: int
    seed: int  # of the initial weights and of the windows


class Result(NamedTuple):
    """The result of one training."""

    model: str
    learning_rate: float
    steps: int
    seed: int
    parameters: int  # the number of parameters
    valid_loss: float  # of text that was not trained on, such as the validation text, in nats per token
    curve: list[float]  # the training loss, each number the mean of MEAN_OF steps
    seconds: float  # the processor time: other load changes it less than it changes the elapsed time
    measures: dict[str, list[float]] = {}  # what else is measured, by name  # noqa: RUF012  never changed

    @property
    def trial(self) -> Trial:
        """The arguments of the training."""
        return Trial(self.model, self.learning_rate, self.steps, self.seed)

    @property
    def line(self) -> str:
        """The result in one line, without measures of many values."""
        few = {name: values for name, values in self.measures.items() if len(values) <= MOST_PRINTED}
        return "  ".join(
            (
                f"{self.model:18} learning rate {self.learning_rate:<7g} {self.steps:5} steps",
                f"seed {self.seed}  validation loss {self.valid_loss:.4f}",
                *(f"{name} {' '.join(f'{value:.2f}' for value in values)}" for name, values in few.items()),
                f"{self.seconds:.0f} s",
            )
        )


class Measured(NamedTuple):
    """The measurements of one model in an experiment of chapter 27."""

    model: str
    seed: int
    values: dict[str, float]  # by the name of the measure
    curve: list[float]  # of the training, each number the mean of MEAN_OF steps
    seconds: float  # processor time

    @property
    def trial(self) -> tuple[str, int]:
        """The name of the model and the seed."""
        return self.model, self.seed

    @property
    def line(self) -> str:
        """The result in one line."""
        values = "  ".join(f"{name} {value:.3f}" for name, value in self.values.items())
        return f"{self.model:28} seed {self.seed}  {values}  {self.seconds:.0f} s"


def new_gpt(config: GPTConfig, seed: int, dtype: Any = np.float32) -> Any:
    """Return a GPT, or one with other layers, whose initial weights fit its width.

    GPT-2's standard deviation of 0.02 is made for widths near 1000. The models of the experiments are narrow,
    and learn faster with 1 / √d_model.

    Args:
        config: The configuration.
        seed: The seed of the initial weights.
        dtype: The dtype of the parameters.
    """
    model = build(config, rng=np.random.default_rng(seed), dtype=dtype)
    for parameter in model.parameters():
        if parameter.value.ndim > 1:
            parameter.value *= config.d_model**-0.5 / INITIAL_STD
    return model


def run(trial: Trial, model: GPT, dataset: TextDataset, config: TrainingConfig) -> Result:
    """Train a model and evaluate it on the first VALID_TOKENS tokens of the validation text.

    Args:
        trial: The arguments of the training.
        model: The new model.
        dataset: The text.
        config: The settings of the training.

    Returns:
        The result.

    Raises:
        NotFiniteError: If a loss is NaN or infinite.
    """
    start = time.process_time()
    schedule = make_schedule(config, model.config.d_model, trial.steps)
    optimizer = make_optimizer(config, model)
    loader = dataset.loader(model.config.context, **config.batching)
    losses = []
    for step, batches in enumerate(islice(loader.steps(), trial.steps), 1):
        losses.append(make_step(model, optimizer, batches, None, schedule(step), config.clip_norm)[0])
    validation = TextLoader(dataset.valid[: VALID_TOKENS + 1], model.config.context, batch_size=64)
    valid_loss = evaluate(model, validation.consecutive()).loss
    curve = np.reshape(losses[: len(losses) // MEAN_OF * MEAN_OF], (-1, MEAN_OF)).mean(1)
    seconds = time.process_time() - start
    return Result(
        *trial,
        model.count_parameters(),
        round(valid_loss, 5),
        [round(float(loss), 4) for loss in curve],
        round(seconds, 1),
    )


class Results:
    """The results of an experiment in a file, which is written anew after each training.

    Args:
        path: The file. If it exists, its results are read.
        report: A function that is called with each new result.
        kind: The class of the results, Result or Measured.

    Raises:
        UserError: If the file cannot be read, or holds something else.
    """

    def __init__(
        self, path: str | PathLike[str], report: Callable[[Any], None] | None = None, kind: Any = Result
    ) -> None:
        self.path, self.report = Path(path), report
        known = read_results(self.path, kind) if self.path.exists() else []
        self.results = {result.trial: result for result in known}

    def measure(self, trial: Any, train: Callable[[Any], Any]) -> Any:
        """Return the result of a trial. If the file does not hold it, train and add it to the file.

        Args:
            trial: The arguments of the training.
            train: The function that trains.

        Raises:
            UserError: If the file cannot be written.
        """
        if trial not in self.results:
            self.results[trial] = train(trial)
            write_results(self.path, list(self.results.values()))
            if self.report is not None:
                self.report(self.results[trial])
        return self.results[trial]

    def of_seeds(
        self, names: Iterable[str], seeds: Sequence[int], measured: Callable[[str, int], Any]
    ) -> dict[str, list[Any]]:
        """Return the results of all names with all seeds, by the names. What the file lacks is measured.

        Args:
            names: The names of the models.
            seeds: The seeds.
            measured: measured(name, seed) returns a result.
        """

        def measure(name: str, seed: int) -> Any:
            return self.measure((name, seed), lambda trial: measured(*trial))

        return {name: [measure(name, seed) for seed in seeds] for name in names}


def write_results(path: Path, results: list[Any]) -> None:
    """Write the results of an experiment into a JSON file, each in one line."""
    rows = ",\n".join(json.dumps(result._asdict()) for result in results)
    write_file(path, f'{{"format": {FORMAT}, "results": [\n{rows}\n]}}\n'.encode())


def read_results(path: str | PathLike[str], kind: Any = Result) -> list[Any]:
    """Read the results of an experiment.

    Args:
        path: The file that write_results wrote.
        kind: The class of the results, Result or Measured.

    Raises:
        UserError: If the file cannot be read, or holds something else.
    """
    what = f"the file of results {path}"
    content = require_object(read_json(Path(path), what, ADVICE), what, ADVICE)
    require_version(content, what, FORMAT)
    require_entries(content, {"format": int, "results": list}, what, ADVICE)
    types = dict(kind.__annotations__)
    optional = {name: types.pop(name) for name in kind._field_defaults}
    results = []
    for number, row in enumerate(content["results"], 1):
        place = f"result {number} of {what}"
        require_entries(require_object(row, place, ADVICE), types, place, ADVICE, optional=optional)
        results.append(kind(**row))
    return results


def best_learning_rate(results: list[Result]) -> float:
    """Return the learning rate of the result with the lowest validation loss.

    Raises:
        UserError: If there are no results.
    """
    if not results:
        raise UserError("there are no results: measure at least one learning rate")
    return min(results, key=lambda result: result.valid_loss).learning_rate

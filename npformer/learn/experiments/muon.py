"""AdamW and Muon: the validation loss of a small GPT by steps and by processor time.

Both train the last model of the ablation, a small Llama, on the same windows of Tiny Shakespeare. The
learning rate of each optimizer is the best one of a search with as many steps as the shorter trainings have.

Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
"""

import time
from collections.abc import Callable
from itertools import islice, product
from os import PathLike
from pathlib import Path

import numpy as np

from npformer.data.text import TextDataset, TextLoader, text_dataset
from npformer.learn.experiments.ablation import ADAMW, stages
from npformer.learn.experiments.measured_runs import (
    MEAN_OF,
    VALID_TOKENS,
    Result,
    Results,
    Trial,
    best_learning_rate,
    new_gpt,
)
from npformer.models.gpt import GPT
from npformer.training import TrainingConfig, evaluate
from npformer.training.config import make_optimizer, make_schedule
from npformer.training.step import make_step

MEASURED = Path(__file__).with_name("muon.json")  # the results that ship
STEPS, BATCH = (200, 400), 32
SEARCH_SEED, SEEDS = 0, (1, 2, 3)
RATES = {"AdamW": (0.005, 0.01, 0.02), "Muon": (0.02, 0.04, 0.08)}
MEASURE_EVERY, MEASURE_TOKENS = 50, 8192


def training_settings(trial: Trial) -> TrainingConfig:
    """Return the settings of a training. They differ in the optimizer and the learning rate only.

    Args:
        trial: The arguments of the training, whose model is "AdamW" or "Muon".
    """
    return TrainingConfig(
        steps=trial.steps,
        batch_size=BATCH,
        seed=trial.seed,
        warmup_steps=trial.steps // 10,
        learning_rate=trial.learning_rate,
        min_learning_rate=trial.learning_rate / 10,
        optimizer="muon" if trial.model == "Muon" else "adam",
        **ADAMW,
    )


def train_model(trial: Trial, dataset: TextDataset) -> tuple[GPT, Result]:
    """Train a new model, and return it with the result.

    The measures of the result are, after each MEASURE_EVERY steps, the "loss" of the first MEASURE_TOKENS
    tokens of the validation text and the "seconds" of processor time that the steps took.

    Args:
        trial: The arguments of the training.
        dataset: The text.
    """
    config = training_settings(trial)
    model = new_gpt(stages()[-1].config, trial.seed)
    optimizer = make_optimizer(config, model)
    schedule = make_schedule(config, model.config.d_model, trial.steps)
    context = model.config.context
    part = TextLoader(dataset.valid[: MEASURE_TOKENS + 1], context, batch_size=64).consecutive()
    losses, seconds = [], 0.0
    measures: dict[str, list[float]] = {"loss": [], "seconds": []}
    for step, batches in enumerate(
        islice(dataset.loader(context, **config.batching).steps(), trial.steps), 1
    ):
        start = time.process_time()
        losses.append(make_step(model, optimizer, batches, None, schedule(step), config.clip_norm)[0])
        seconds += time.process_time() - start
        if step % MEASURE_EVERY == 0:
            measures["loss"].append(round(evaluate(model, part).loss, 4))
            measures["seconds"].append(round(seconds, 2))
    validation = TextLoader(dataset.valid[: VALID_TOKENS + 1], context, batch_size=64)
    valid_loss = round(evaluate(model, validation.consecutive()).loss, 5)
    curve = np.reshape(losses[: len(losses) // MEAN_OF * MEAN_OF], (-1, MEAN_OF)).mean(1).round(4).tolist()
    return model, Result(*trial, model.count_parameters(), valid_loss, curve, round(seconds, 1), measures)


def measure(path: str | PathLike[str], report: Callable[[Result], None] | None = None) -> list[Result]:
    """Train with both optimizers and every seed, as far as the file does not hold their results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results with the best learning rates and SEEDS, the short trainings first.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset = Results(path, report), text_dataset()

    def trained(optimizer: str, rate: float, steps: int, seed: int) -> Result:
        trial = Trial(optimizer, rate, steps, seed)
        return results.measure(trial, lambda trial: train_model(trial, dataset)[1])

    rates = {
        name: best_learning_rate([trained(name, rate, STEPS[0], SEARCH_SEED) for rate in of])
        for name, of in RATES.items()
    }
    return [trained(name, rates[name], steps, seed) for steps, name, seed in product(STEPS, RATES, SEEDS)]

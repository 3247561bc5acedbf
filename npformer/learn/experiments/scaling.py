"""The loss of small GPTs on Tiny Shakespeare, by the number of their parameters and of the training tokens.

Each model is trained for each number of tokens and with each of two seeds, with a schedule that ends at the
last step (Hoffmann et al. 2022). The learning rate of a model is the best one of a search with SEARCH_STEPS
steps.
"""

from collections.abc import Callable
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.data.text import TextDataset, text_dataset
from npformer.learn.experiments.ablation import ADAMW, BATCH, Stage, train_stage
from npformer.learn.experiments.measured_runs import Result, Results, Trial, best_learning_rate
from npformer.models.gpt import GPTConfig

MEASURED = Path(__file__).with_name("scaling.json")  # the results that ship
CONTEXT = 64
STEPS = (128, 256, 512, 1024)  # the last one reads about half as many tokens as the text has
SEARCH_STEPS, SEARCH_SEED, SEEDS = 256, 0, (1, 2)
RATES = (0.01, 0.02, 0.04)

# name: width, layers, heads
SIZES = {
    "8 x 1": (8, 1, 1),
    "16 x 1": (16, 1, 1),
    "24 x 2": (24, 2, 2),
    "32 x 3": (32, 3, 2),
}


def model_config(name: str) -> GPTConfig:
    """Return the configuration of a model: the parts of Llama, and one of SIZES.

    Args:
        name: The name in SIZES.
    """
    width, n_layers, n_heads = SIZES[name]
    sizes: dict[str, Any] = {"d_model": width, "n_layers": n_layers, "n_heads": n_heads}
    return GPTConfig.preset("gpt-shakespeare", d_ff=None, context=CONTEXT, **sizes)


def inner_parameters(name: str) -> int:
    """Return the number of parameters without the embedding, as Kaplan et al. 2020 count them.

    Args:
        name: The name in SIZES.
    """
    config = model_config(name)
    return config.count_parameters() - config.vocab_size * config.d_model


def count_tokens(steps: int) -> int:
    """Return the number of training tokens of a run.

    Args:
        steps: The number of its steps.
    """
    return steps * BATCH * CONTEXT


def fit_power_law(x: Array, y: Array) -> tuple[float, float]:
    """Return a and α of the power law y = a x^-α, fitted by least squares to the logarithms.

    Args:
        x: Positive numbers, of shape (N,), at least two of them different.
        y: Positive numbers, of shape (N,).
    """
    logx, logy = np.log(x), np.log(y)
    deviation = logx - logx.mean()
    slope = deviation @ logy / (deviation @ deviation)
    return float(np.exp(logy.mean() - slope * logx.mean())), float(-slope)


def train_size(trial: Trial, dataset: TextDataset) -> Result:
    """Train a new model of the size that a trial names, and return the result.

    Args:
        trial: The arguments of the training.
        dataset: The text.
    """
    return train_stage(Stage(trial.model, model_config(trial.model), ADAMW), trial, dataset)


def measure(path: str | PathLike[str], report: Callable[[Result], None] | None = None) -> list[Result]:
    """Train all sizes with all numbers of tokens, as far as the file does not hold their results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results with the best learning rate of each size and with SEEDS.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset = Results(path, report), text_dataset()

    def trained(size: str, rate: float, steps: int, seed: int) -> Result:
        return results.measure(Trial(size, rate, steps, seed), lambda trial: train_size(trial, dataset))

    rates = {
        size: best_learning_rate([trained(size, rate, SEARCH_STEPS, SEARCH_SEED) for rate in RATES])
        for size in SIZES
    }
    return [trained(size, rates[size], steps, seed) for seed, size, steps in product(SEEDS, SIZES, STEPS)]

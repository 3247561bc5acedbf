"""From the decoder layer of 2017 to that of Llama: change one part after the other, and compare the losses.

All models are trained on the same windows of Tiny Shakespeare. First, each model is trained with several
learning rates. Then it is trained with the best of them and with new seeds, and these losses are compared.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.text import TextDataset, text_dataset
from npformer.learn.experiments.measured_runs import Result, Results, Trial, best_learning_rate, new_gpt, run
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.transformer import EncoderLayer
from npformer.models.transformer.layers import layer_from_parts
from npformer.nn import AddNorm
from npformer.nn.module import Module
from npformer.training import TrainingConfig

MEASURED = Path(__file__).with_name("ablation.json")  # the results that ship
STEPS, BATCH = 600, 8
SEARCH_SEED, SEEDS = 0, (1, 2, 3, 4, 5)
RATES = (0.005, 0.01)

SIZES: dict[str, Any] = {"vocab_size": 65, "d_model": 64, "n_layers": 2, "n_heads": 4, "context": 64}

# Vaswani et al. 2017, section 5.3, with a shorter warm-up
ADAM: dict[str, Any] = {"schedule": "warmup", "betas": (0.9, 0.98), "eps": 1e-9}
# Touvron et al. 2023, section 2.3
ADAMW: dict[str, Any] = {
    "schedule": "cosine",
    "betas": (0.9, 0.95),
    "eps": 1e-8,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
}


class Stage(NamedTuple):
    """A model on the way from 2017 to Llama."""

    name: str  # of the part that differs from the stage before
    config: GPTConfig
    optimizer: dict[str, Any] = ADAM
    norm_after: bool = False  # the norm is after the sublayer, as in 2017


def stages() -> list[Stage]:
    """Return the models from 2017's to Llama's. Each differs from the one before in one part.

    Source: Vaswani et al. 2017 (the first one); Touvron et al. 2023 and Ainslie et al. 2023 (the last one).
    """
    config = GPTConfig(**SIZES, activation="relu")
    changes: list[tuple[str, dict[str, Any]]] = [
        ("RMS norm", {"norm": "rms"}),
        ("rotary positions", {"positions": "rotary"}),
        ("SwiGLU", {"activation": "swiglu"}),
        ("grouped queries", {"n_kv_heads": 2}),
        ("no biases", {"bias": False}),
    ]
    found = [
        Stage("2017", config, norm_after=True),
        Stage("norm before", config),
    ]
    for name, change in changes:
        config = config.replace(**change)
        found.append(Stage(name, config))
    return [*found, Stage("AdamW, cosine", config, ADAMW)]


class NoNorm(Module):
    """The identity, in place of a norm. Shapes: x (..., D) -> y (..., D)."""

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return x and an empty cache."""
        return x, None

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dy, of shape (..., D)."""
        return dy


def put_norms_after(model: GPT) -> GPT:
    """Put the norms after the sublayers, as in 2017, and leave out the norm after the last layer.

    Args:
        model: A new GPT, which is changed.

    Returns:
        The model.
    """
    changed: Any = model  # its parts get other types than those that GPT declares
    d_model, dtype = model.config.d_model, model.values.dtype
    changed.layers = [
        layer_from_parts(
            EncoderLayer,  # which gets a causal mask here
            self_attention=block.self_attention,
            norm1=AddNorm(d_model, dtype=dtype),
            feed_forward=block.feed_forward,
            norm2=AddNorm(d_model, dtype=dtype),
        )
        for block in model.layers
    ]
    changed.norm = NoNorm()
    model.flatten()
    return model


def make_model(stage: Stage, seed: int, dtype: Any = np.float32) -> GPT:
    """Return a new model of a stage.

    Args:
        stage: The stage.
        seed: The seed of the initial weights.
        dtype: The dtype of the parameters.
    """
    model = new_gpt(stage.config, seed, dtype)
    return put_norms_after(model) if stage.norm_after else model


def training_settings(stage: Stage, trial: Trial) -> TrainingConfig:
    """Return the settings of a training. The learning rate rises in the first tenth of the steps.

    Args:
        stage: The stage, which chooses the optimizer and its schedule.
        trial: The learning rate, the steps and the seed.
    """
    warmup_steps = max(1, trial.steps // 10)
    peak = (stage.config.d_model * warmup_steps) ** -0.5  # of schedule "warmup" with the factor 1
    return TrainingConfig(
        steps=trial.steps,
        batch_size=BATCH,
        seed=trial.seed,
        warmup_steps=warmup_steps,
        learning_rate=trial.learning_rate,
        min_learning_rate=trial.learning_rate / 10,
        factor=trial.learning_rate / peak,
        **stage.optimizer,
    )


def train_stage(stage: Stage, trial: Trial, dataset: TextDataset) -> Result:
    """Train a new model of a stage, and return the result.

    Args:
        stage: The stage.
        trial: The arguments of the training.
        dataset: The text.
    """
    return run(trial, make_model(stage, trial.seed), dataset, training_settings(stage, trial))


def compared(results: list[Result]) -> dict[str, list[Result]]:
    """Return the results that are compared: those of each stage with SEEDS, by the name of the stage.

    Args:
        results: All results, as read_results returns them.
    """
    return {
        stage.name: [result for result in results if result.model == stage.name and result.seed in SEEDS]
        for stage in stages()
    }


def measure(
    path: str | PathLike[str], report: Callable[[Result], None] | None = None
) -> dict[str, list[Result]]:
    """Train the models of all stages, as far as the file does not hold their results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results that are compared, as `compared` returns them.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset, plan = Results(path, report), text_dataset(), stages()

    def trained(stage: Stage, rate: float, seed: int) -> Result:
        trial = Trial(stage.name, rate, STEPS, seed)
        return results.measure(trial, lambda trial: train_stage(stage, trial, dataset))

    rates = [best_learning_rate([trained(stage, rate, SEARCH_SEED) for rate in RATES]) for stage in plan]
    measured = [trained(stage, rate, seed) for seed in SEEDS for stage, rate in zip(plan, rates, strict=True)]
    return compared(measured)

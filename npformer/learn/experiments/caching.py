"""The loss of small Llamas by the kind of their attention, and by the numbers that their KV cache keeps.

The models have shared heads of keys and values, latent vectors, normalized queries and keys, or windows in
some layers. All are trained on the same windows of Tiny Shakespeare with the same learning rate.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from npformer.data.text import TextDataset, text_dataset
from npformer.learn.experiments.ablation import ADAMW, SIZES, Stage, train_stage
from npformer.learn.experiments.measured_runs import Result, Results, Trial
from npformer.models.deepseek import DeepSeekConfig
from npformer.models.gemma2 import Gemma2Config
from npformer.models.gpt import GPTConfig
from npformer.models.qwen3 import Qwen3Config

MEASURED = Path(__file__).with_name("caching.json")  # the results that ship
STEPS, LEARNING_RATE = 400, 0.005
SEEDS = (0, 1, 2, 3, 4)
LLAMA: dict[str, Any] = {
    **SIZES,
    "norm": "rms",
    "positions": "rotary",
    "activation": "swiglu",
    "bias": False,
}


def stages() -> list[Stage]:
    """Return the models. The first one is the baseline, a Llama with a key head for each query head.

    The latent vectors and rotated keys have such widths that the KV cache is as large as with two key heads,
    as large as with one (twice, with other shares of the two), and half as large. The last three models have
    two key heads: one with Qwen3's QK-norm, one also with the norms before and after each sublayer and the
    scaled embeddings of Gemma 2, and one also with a window of 16 tokens in the first of the two layers.

    Source: DeepSeek-AI 2024, "DeepSeek-V2"; Yang et al. 2025, "Qwen3"; Gemma team 2024, "Gemma 2"; Gemma team
        2025, "Gemma 3".
    """
    gemma: dict[str, Any] = {**LLAMA, "n_kv_heads": 2, "qk_norm": True, "scale_width": 16}
    configs: dict[str, GPTConfig] = {
        "4 key heads": GPTConfig(**LLAMA),
        "2 key heads": GPTConfig(**LLAMA, n_kv_heads=2),
        "1 key head": GPTConfig(**LLAMA, n_kv_heads=1),
        "latent, 48 + 16": DeepSeekConfig(**LLAMA, d_latent=48, d_rotary=16),
        "latent, 16 + 16": DeepSeekConfig(**LLAMA, d_latent=16, d_rotary=16),
        "latent, 24 + 8": DeepSeekConfig(**LLAMA, d_latent=24, d_rotary=8),
        "latent, 8 + 8": DeepSeekConfig(**LLAMA, d_latent=8, d_rotary=8),
        "QK-norm": Qwen3Config(**LLAMA, n_kv_heads=2),
        "more norms": Gemma2Config(**gemma),
        "more norms, window": Gemma2Config(**gemma, local=(0,), local_window=16),
    }
    return [Stage(name, config, ADAMW) for name, config in configs.items()]


def cached_numbers(config: GPTConfig) -> int:
    """Return how many numbers the KV cache of a model needs for one more token of a long text.

    A layer with a window needs no more of them: its KV cache may forget a token for each new one.

    Args:
        config: The configuration.
    """
    n_local = len(config.local) if isinstance(config, Gemma2Config) else 0
    return (config.n_layers - n_local) * config.cached_numbers


def train_model(trial: Trial, dataset: TextDataset) -> Result:
    """Train a new model, and return the result.

    Args:
        trial: The arguments of the training, with the name of a model.
        dataset: The text.
    """
    stage = next(stage for stage in stages() if stage.name == trial.model)
    return train_stage(stage, trial, dataset)


def measure(path: str | PathLike[str], report: Callable[[Result], None] | None = None) -> list[Result]:
    """Train each model with each seed, as far as the file does not hold their results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset = Results(path, report), text_dataset()
    trials = [Trial(stage.name, LEARNING_RATE, STEPS, seed) for seed in SEEDS for stage in stages()]
    return [results.measure(trial, lambda trial: train_model(trial, dataset)) for trial in trials]

"""A small GPT in another style by LoRA, beside full fine-tuning, and the same GPT with weights of few bits.

The GPT learns Tiny Shakespeare first. The other style is the same text in capital letters, of which the plays
have only a few. Each experiment trains its GPT anew, since the files hold no weights.
"""

import copy
import time
from collections.abc import Callable
from functools import cache
from itertools import islice, product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.data.text import TextDataset, TextLoader, text_dataset
from npformer.functional import quantize
from npformer.learn.experiments.measured_runs import Measured, Results, new_gpt
from npformer.models.gpt import GPT, GPTConfig
from npformer.nn import Linear, add_lora
from npformer.nn.module import Module
from npformer.training import evaluate
from npformer.training.optimizer import Adam, clip_global_norm
from npformer.training.step import forward_and_backward

LORA = Path(__file__).with_name("lora.json")  # the results that ship
QUANTIZATION = Path(__file__).with_name("quantization.json")
CONFIG = GPTConfig(
    vocab_size=65,
    d_model=96,
    n_layers=2,
    n_heads=4,
    context=64,
    norm="rms",
    positions="rotary",
    activation="swiglu",
    bias=False,
)
SEEDS = (0, 1, 2)
BATCH, FIRST_STEPS, FIRST_RATE, STEPS = 8, 400, 0.01, 150
RATES = {"none": 0.0, "LoRA, rank 1": 0.02, "all parameters": 0.005}
TEST_TOKENS = 8192
BITS = (8, 6, 5, 4, 3)
LARGER = 32  # the factor of a channel that is made larger


def capitals(ids: Array, dataset: TextDataset) -> Array:
    """Return the ids of a text in capital letters."""
    return np.array(dataset.codec.encode(dataset.codec.decode(ids.tolist()).upper()))


def train(model: GPT, learned: Module, text: Array, steps: int, rate: float, seed: int) -> None:
    """Train some parameters of a model on windows of a text.

    Args:
        model: The model.
        learned: The model itself, or an Adapter of it: the parameters that learn.
        text: The ids of the text.
        steps: The number of steps.
        rate: The learning rate. Its factor rises to .91 in the first tenth of the steps and then falls to .1.
        seed: The seed of the windows.
    """
    optimizer = Adam(learned, betas=(0.9, 0.95), eps=1e-8)
    loader = TextLoader(text, model.config.context, seed=seed, batch_size=BATCH)
    for step, (batch,) in enumerate(islice(loader.steps(), steps), 1):
        learned.zero_grad()
        forward_and_backward(model, batch, None, batch.tokens, 0.0)
        clip_global_norm(learned.grads, 1.0)
        optimizer.step(rate * min(1, 10 * step / steps) * (1 - 0.9 * step / steps))


def first_gpt(seed: int, dataset: TextDataset) -> GPT:
    """Return a GPT that has learned Tiny Shakespeare."""
    model = new_gpt(CONFIG, seed)
    train(model, model, dataset.train, FIRST_STEPS, FIRST_RATE, seed)
    return model


def adapt(model: GPT, how: str, text: Array, seed: int) -> tuple[GPT, int]:
    """Return a copy of a model that has learned another text, and the number of learned parameters.

    Args:
        model: The model, which stays as it is.
        how: A name in RATES. For "none", the model itself is returned.
        text: The ids of the text.
        seed: The seed of the windows and of LoRA's first matrices.
    """
    if how == "none":
        return model, 0
    if how == "all parameters":
        adapted: Any = copy.deepcopy(model)
        learned = adapted
    else:
        adapted, learned = add_lora(model, rank=1, rng=np.random.default_rng(seed))
    train(adapted, learned, text, STEPS, RATES[how], seed)
    return adapted, learned.count_parameters()


def valid_loss(model: GPT, ids: Array) -> float:
    """Return the loss of a model on the first TEST_TOKENS tokens of a text, in nats per character."""
    loader = TextLoader(ids[: TEST_TOKENS + 1], model.config.context, batch_size=64)
    return float(evaluate(model, loader.consecutive()).loss)


def quantized(model: GPT, bits: int, per: str) -> GPT:
    """Return a copy of a model whose linear layers have weights of a few bits (see quantize).

    Args:
        model: The model.
        bits: The number of bits.
        per: "tensor" or "channel": what has a scale of its own.
    """
    copied: GPT = copy.deepcopy(model)
    for part in copied.modules():
        if isinstance(part, Linear):
            part.weight.value[...] = quantize(part.weight.value, bits, per=per).value
    return copied


def with_large_channel(model: GPT, channel: int, factor: float = LARGER) -> GPT:
    """Return a copy of a model that computes the same, with one large channel in each feed-forward network.

    A column of the matrix of values is multiplied, and the row of the next matrix that reads it is divided.

    Args:
        model: The model.
        channel: The index of the channel.
        factor: The factor of the column.
    """
    copied: GPT = copy.deepcopy(model)
    for layer in copied.layers:
        layer.feed_forward.value.weight.value[:, channel] *= factor
        layer.feed_forward.outer.weight.value[channel] /= factor
    return copied


def measure_lora(
    path: str | PathLike[str], report: Callable[[Any], None] | None = None
) -> dict[str, list[Measured]]:
    """Adapt the GPT in each way, as far as the file does not hold the results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results of all seeds, by the names in RATES.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset = Results(path, report, Measured), text_dataset()
    first = cache(lambda seed: first_gpt(seed, dataset))
    new = [capitals(ids, dataset) for ids in (dataset.train[:300_000], dataset.valid[: TEST_TOKENS + 1])]

    def measured(how: str, seed: int) -> Measured:
        start = time.process_time()
        model, learned = adapt(first(seed), how, new[0], seed)
        values = {
            "capitals": round(valid_loss(model, new[1]), 4),
            "plays": round(valid_loss(model, dataset.valid), 4),
            "share": round(learned / first(seed).count_parameters(), 4),
        }
        return Measured(how, seed, values, [], round(time.process_time() - start, 1))

    return results.of_seeds(RATES, SEEDS, measured)


def measure_quantization(
    path: str | PathLike[str], report: Callable[[Any], None] | None = None
) -> dict[str, list[Measured]]:
    """Measure the GPT with weights of few bits, as far as the file does not hold the results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results of all seeds, by names such as "4 bits, channel" and "float32".

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset = Results(path, report, Measured), text_dataset()
    first = cache(lambda seed: first_gpt(seed, dataset))
    settings: dict[str, tuple[int, str] | None] = {"float32": None}
    settings |= {f"{bits} bits, {per}": (bits, per) for per, bits in product(("tensor", "channel"), BITS)}

    def measured(name: str, seed: int) -> Measured:
        start, values, rounding = time.process_time(), {}, settings[name]
        channel = int(np.random.default_rng(seed).integers(CONFIG.hidden_width))
        models = {"loss": first(seed), "one large channel": with_large_channel(first(seed), channel)}
        for label, model in models.items():
            rounded = model if rounding is None else quantized(model, *rounding)
            values[label] = round(valid_loss(rounded, dataset.valid), 4)
        return Measured(name, seed, values, [], round(time.process_time() - start, 1))

    return results.of_seeds(settings, SEEDS, measured)

"""Induction heads: two heads learn to copy what followed a token before, if one of them reads the other.

The models have attention layers only, and read random tokens that are repeated. One model has two layers with
a head each, the other has one layer with two heads. They have as many matrices. The length of what is
repeated differs from row to row, so a head cannot copy from a fixed distance.

Source: Elhage et al. 2021 ("A mathematical framework for transformer circuits"); Olsson et al. 2022.
"""

import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.text import TextBatch
from npformer.functional.losses import cross_entropy
from npformer.learn.experiments.measured_runs import MEAN_OF, Result, Results, Trial, new_gpt
from npformer.models.gpt import GPT, Block, GPTConfig
from npformer.nn.attention.multi_head import MultiHeadCache
from npformer.nn.module import Module
from npformer.nn.norm import NormCache
from npformer.training.optimizer import Adam
from npformer.training.step import make_step

MEASURED = Path(__file__).with_name("induction.json")  # the results that ship
VOCAB, LENGTH = 64, 32  # the number of tokens, and of those that a model reads
SHORTEST, LONGEST = 11, 16  # the length of the part that is repeated
STEPS, BATCH, LEARNING_RATE, WARMUP = 600, 32, 0.005, 50
MEASURE_EVERY, TEST_ROWS = 20, 64
SEEDS = (0, 1, 2)

# name: layers, heads in a layer
MODELS = {"two layers": (2, 1), "one layer": (1, 2)}


class AttentionCache(NamedTuple):
    """The cache of AttentionLayer, with one entry for each of its parts."""

    norm1: NormCache
    self_attention: MultiHeadCache


class AttentionLayer(Module):
    """A layer of GPT without the feed-forward network: x = x + self_attention(norm(x)).

    Shapes: x (B, T, D) -> y (B, T, D).

    Args:
        block: The layer of GPT whose norm and attention are used.
    """

    def __init__(self, block: Block) -> None:
        self.self_attention, self.norm1 = block.self_attention, block.norm1

    def forward(self, x: Array, mask: Any, context: Any) -> tuple[Array, AttentionCache]:
        """Compute self-attention and add it to x.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        h, norm1_cache = self.norm1.forward(x)
        h, attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        return x + h, AttentionCache(norm1_cache, attention_cache)

    def backward(self, dy: Array, cache: AttentionCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        # y = x + self_attention(norm1(x))
        dh = self.self_attention.backward(dy, cache.self_attention)
        return dy + self.norm1.backward(dh, cache.norm1)


def make_model(name: str, seed: int, dtype: Any = np.float32) -> GPT:
    """Return a new model without feed-forward networks.

    Args:
        name: The name in MODELS.
        seed: The seed of the initial weights.
        dtype: The dtype of the parameters.
    """
    n_layers, n_heads = MODELS[name]
    sizes: dict[str, Any] = {"vocab_size": VOCAB, "d_model": 64, "context": LENGTH, "head_dim": 32, "d_ff": 1}
    parts: dict[str, Any] = {"norm": "rms", "positions": "rotary", "bias": False, "tied": False}
    model = new_gpt(GPTConfig(n_layers=n_layers, n_heads=n_heads, **sizes, **parts), seed, dtype)
    changed: Any = model  # its layers get another type than GPT declares
    changed.layers = [AttentionLayer(block) for block in model.layers]
    model.flatten()
    return model


class Rows(NamedTuple):
    """Random tokens that are repeated, and the positions whose next token can be copied."""

    batch: TextBatch
    copied: Array  # (B, T) bool: the token after this position followed the same token before


def draw_rows(rng: np.random.Generator, count: int) -> Rows:
    """Draw rows of random tokens, each of which repeats its first tokens.

    Args:
        rng: The generator.
        count: The number B of rows.
    """
    period = rng.integers(SHORTEST, LONGEST + 1, (count, 1))  # (B, 1)
    tokens = rng.integers(0, VOCAB, (count, LONGEST))
    ids = np.take_along_axis(tokens, np.arange(LENGTH + 1) % period, axis=1)  # (B, T + 1)
    return Rows(TextBatch(ids[:, :-1], ids[:, 1:]), np.arange(LENGTH) >= period)


def loss_of_copies(model: GPT, rows: Rows) -> tuple[float, Any]:
    """Return the mean loss of the tokens that can be copied, and the cache of the model.

    Args:
        model: The model.
        rows: The rows.
    """
    logits, cache = model.forward(rows.batch.ids)
    loss, _ = cross_entropy(logits[rows.copied], rows.batch.target_out[rows.copied])
    return float(loss), cache


def attention_scores(rows: Rows, weights: Array) -> dict[str, list[float]]:
    """Return two numbers of each head, which say to which tokens it attends.

    "previous" is the mean weight of the token before the query. "stripe" is the weight of all tokens that
    followed a token equal to the query's, the mean over the positions that can be copied (the prefix-matching
    score of Olsson et al. 2022).

    Args:
        rows: The rows.
        weights: The attention weights of a layer, of shape (B, H, T, T).
    """
    ids = rows.batch.ids
    followed = np.zeros(
        (*ids.shape, LENGTH), bool
    )  # (B, T, S): key s follows a token equal to that of query t
    followed[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1]
    stripe = (weights * followed[:, None]).sum(-1)  # (B, H, T), 0 beyond the query, where weights are 0
    return {
        "previous": np.diagonal(weights, -1, 2, 3).mean((0, 2)).tolist(),
        "stripe": [float(of_head[rows.copied].mean()) for of_head in stripe.swapaxes(0, 1)],
    }


def switch_off(model: GPT, layer: int, head: int) -> Callable[[], None]:
    """Set the rows of the output projection that read a head to 0. Return a function that restores them.

    Args:
        model: The model.
        layer: The layer of the head, from 0.
        head: The head, from 0.
    """
    attention = model.layers[layer].self_attention
    assert attention.output is not None
    block = attention.output.weight.value[head * attention.d_value : (head + 1) * attention.d_value]
    original = block.copy()
    block[...] = 0

    def restore() -> None:
        block[...] = original

    return restore


def measures(model: GPT, rows: Rows) -> dict[str, float]:
    """Return the loss of the copies, and the largest scores of the heads of each layer.

    Args:
        model: The model.
        rows: The rows.
    """
    loss, cache = loss_of_copies(model, rows)
    found = {"loss": loss}
    for layer, layer_cache in enumerate(cache.layers):
        for name, of_heads in attention_scores(rows, layer_cache.self_attention.attention.weights).items():
            found[f"{name} {layer}"] = max(of_heads)
    return found


def train_model(trial: Trial) -> tuple[GPT, Result]:
    """Train a new model, and return it with the result.

    The loss of the result is that of the tokens that can be copied in new rows. Its measures are those of
    `measures` after each MEASURE_EVERY steps, and the loss without each head after the last step, such as
    "without 1.0" for head 0 of layer 1.

    Args:
        trial: The arguments of the training.
    """
    start = time.process_time()
    model = make_model(trial.model, trial.seed)
    optimizer, rng = Adam(model, betas=(0.9, 0.99), eps=1e-8), np.random.default_rng([trial.seed, 1])
    rows = draw_rows(np.random.default_rng([trial.seed, 2]), TEST_ROWS)
    losses: list[float] = []
    seen: dict[str, list[float]] = {}
    for step in range(1, trial.steps + 1):
        rate = trial.learning_rate * min(1, step / WARMUP)
        losses.append(make_step(model, optimizer, [draw_rows(rng, BATCH).batch], None, rate, 1.0)[0])
        if step % MEASURE_EVERY == 0:
            for name, value in measures(model, rows).items():
                seen.setdefault(name, []).append(round(value, 4))
    final = loss_of_copies(model, rows)[0]
    for layer, head in np.ndindex(MODELS[trial.model]):
        restore = switch_off(model, layer, head)
        seen[f"without {layer}.{head}"] = [round(loss_of_copies(model, rows)[0], 4)]
        restore()
    curve = np.reshape(losses[: len(losses) // MEAN_OF * MEAN_OF], (-1, MEAN_OF)).mean(1).round(4).tolist()
    seconds = round(time.process_time() - start, 1)
    return model, Result(*trial, model.count_parameters(), round(final, 5), curve, seconds, seen)


def measure(path: str | PathLike[str], report: Callable[[Result], None] | None = None) -> list[Result]:
    """Train both models with every seed, as far as the file does not hold their results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results, the model with two layers first.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results = Results(path, report)
    trials = [Trial(name, LEARNING_RATE, STEPS, seed) for name in MODELS for seed in SEEDS]
    return [results.measure(trial, lambda trial: train_model(trial)[1]) for trial in trials]

"""Mixtures of experts on four languages: which expert reads which language, and what balancing is for.

The languages are the English of Tiny Shakespeare, French sentences, small functions in Python, and sums. The
last three are drawn by code. Every batch has windows of all four. The GPTs differ in their feed-forward
networks only: one network, or EXPERTS networks of which each character passes through one, or through two
that are half as wide. One network is wider than these together, by as much as the router needs. So its
matrices need at least as many products for each character as those of the experts and the router.

Source: Fedus et al. 2022, "Switch transformers"; Jiang et al. 2024, "Mixtral of experts", section 5.
"""

import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.corpus.draws import pick
from npformer.data.corpus.simple import draw_simple
from npformer.data.files import read_text
from npformer.data.text import TINY_SHAKESPEARE, TextBatch, TextLoader
from npformer.data.text_codecs import CharacterCodec
from npformer.learn.experiments.ablation import ADAMW
from npformer.learn.experiments.measured_runs import (
    MEAN_OF,
    Result,
    Results,
    Trial,
    best_learning_rate,
    new_gpt,
)
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.mixture import Mixture, MixtureConfig
from npformer.training import TrainingConfig, evaluate
from npformer.training.config import make_optimizer, make_schedule
from npformer.training.step import make_step

MEASURED = Path(__file__).with_name("experts.json")  # the results that ship
LANGUAGES = ("English", "French", "Python", "sums")
TRAIN, VALID = 100_000, 16_384  # characters of each language
EXPERTS, D_MODEL, CONTEXT = 8, 32, 32
WIDTH = 32  # of the hidden layers of a character's experts together
DENSE_WIDTH = 35  # of one network: the three more compute slightly more products than the router
STEPS, BATCH = 700, 32
SEARCH_SEED, SEEDS, RATES = 0, (1, 2, 3), (0.01, 0.02, 0.04)
DENSE, BALANCED, UNBALANCED = "one network", "experts", "experts, not balanced"
SINGLE, COLLAPSED = "one expert", "one expert, not balanced"  # for each character
MODELS = (DENSE, BALANCED, UNBALANCED, SINGLE, COLLAPSED)
SAME_RATE = {UNBALANCED: BALANCED, COLLAPSED: SINGLE}  # without a search of their own


class Texts(NamedTuple):
    """The texts of all languages, and the codec that they share."""

    train: list[Array]  # (TRAIN + 1,) for each language
    valid: list[Array]  # (VALID + 1,)
    codec: CharacterCodec

    def batches(self, seed: int) -> Iterator[TextBatch]:
        """Yield batches with equally many windows of each language, one language after the other."""
        size = BATCH // len(LANGUAGES)
        loaders = [TextLoader(ids, CONTEXT, seed=seed, batch_size=size).steps() for ids in self.train]
        for parts in zip(*loaders, strict=True):
            yield TextBatch(*(np.concatenate(arrays) for arrays in zip(*(p[0] for p in parts), strict=True)))


@cache
def draw_texts() -> Texts:
    """Return the texts, the same in every call."""
    rng, length = Random(26), TRAIN + VALID + 2
    lines: dict[str, Callable[[], str]] = {
        "French": lambda: draw_simple(rng).french,
        "Python": lambda: draw_function(rng),
        "sums": lambda: draw_sum(rng),
    }
    texts = [read_text(TINY_SHAKESPEARE)[:length]]
    for draw in lines.values():
        text = ""
        while len(text) < length:
            text += f"{draw()}\n"
        texts.append(text[:length])
    codec = CharacterCodec.from_text("".join(texts))
    ids = [np.array(codec.encode(text)) for text in texts]
    return Texts([each[: TRAIN + 1] for each in ids], [each[TRAIN + 1 :] for each in ids], codec)


def draw_function(rng: Random) -> str:
    """Return a function in Python of two lines."""
    x, y = pick(rng, ("x", "a", "items", "n")), pick(rng, ("y", "b", "other", "k"))
    name = f"{pick(rng, ('add', 'find', 'merge', 'scale'))}_{pick(rng, ('rows', 'words', 'all', 'pairs'))}"
    body = pick(
        rng,
        (
            f"return {x} {pick(rng, ('+', '-', '*', '//'))} {y}",
            f"return [{x}[i] for i in range(len({y}))]",
            f"return {x} if {x} > {y} else {y}",
            f"return {{{x}: {y}}}",
        ),
    )
    return f"def {name}({x}, {y}):\n    {body}\n"


def draw_sum(rng: Random) -> str:
    """Return a sum of two numbers below 1000, such as "374+58=432"."""
    x, y = rng.randrange(1000), rng.randrange(1000)
    return f"{x}+{y}={x + y}"


def config_of(model: str) -> GPTConfig:
    """Return the configuration of one of MODELS."""
    shared: dict[str, Any] = {
        "vocab_size": len(draw_texts().codec.tokens),
        "d_model": D_MODEL,
        "n_layers": 2,
        "n_heads": 4,
        "context": CONTEXT,
        "norm": "rms",
        "positions": "rotary",
        "activation": "swiglu",
        "bias": False,
    }
    if model == DENSE:
        return GPTConfig(**shared, d_ff=DENSE_WIDTH)
    top_k = 1 if model in (SINGLE, COLLAPSED) else 2
    return MixtureConfig(
        **shared,
        n_experts=EXPERTS,
        top_k=top_k,
        renormalize=top_k > 1,
        d_expert=WIDTH // top_k,
        balance_weight=0.0 if model in (UNBALANCED, COLLAPSED) else 0.01,
    )


def train_model(trial: Trial) -> tuple[GPT, Result]:
    """Train a new model on all languages, and return it with the result.

    The measures of the result are the "loss" of each language, the loss in "training", which is that of the
    first VALID characters of each training text, and, of a model with experts, the "shares" (see shares_of),
    one row after the other. None of these losses contains the load-balancing loss, but the curve does.

    Args:
        trial: The arguments of the training, whose model is one of MODELS.
    """
    start, texts = time.process_time(), draw_texts()
    config = TrainingConfig(
        steps=trial.steps,
        batch_size=BATCH,
        seed=trial.seed,
        warmup_steps=trial.steps // 10,
        learning_rate=trial.learning_rate,
        min_learning_rate=trial.learning_rate / 10,
        **ADAMW,
    )
    model = new_gpt(config_of(trial.model), trial.seed)
    optimizer = make_optimizer(config, model)
    schedule = make_schedule(config, model.config.d_model, trial.steps)
    losses = []
    for step, batch in zip(range(1, trial.steps + 1), texts.batches(trial.seed), strict=False):
        losses.append(make_step(model, optimizer, [batch], None, schedule(step), config.clip_norm)[0])
    of_language = losses_of(model, texts.valid)
    measures = {
        "loss": [round(loss, 4) for loss in of_language],
        "training": [round(loss, 4) for loss in losses_of(model, texts.train)],
    }
    if isinstance(model, Mixture):
        measures["shares"] = shares_of(model).round(4).ravel().tolist()
    curve = np.reshape(losses[: len(losses) // MEAN_OF * MEAN_OF], (-1, MEAN_OF)).mean(1).round(4).tolist()
    seconds, loss = round(time.process_time() - start, 1), round(float(np.mean(of_language)), 5)
    return model, Result(*trial, model.count_parameters(), loss, curve, seconds, measures)


def losses_of(model: GPT, texts: list[Array]) -> list[float]:
    """Return the loss of the first VALID characters of each text."""
    loaders = [TextLoader(ids[: VALID + 1], CONTEXT, batch_size=64) for ids in texts]
    return [evaluate(model, loader.consecutive()).loss for loader in loaders]


def shares_of(model: Mixture) -> Array:
    """Return the share of the choices of each language's validation text that falls on each expert.

    Returns:
        An array (L, 4, E) for L layers, whose rows sum to 1.
    """
    shares = []
    for ids in draw_texts().valid:
        batch = TextLoader(ids, CONTEXT, batch_size=VALID // CONTEXT).consecutive()[0]
        _, cache = model.forward(batch.ids)
        routes: list[Any] = [layer.feed_forward for layer in cache.layers]
        counts = [np.bincount(each.route.chosen.ravel(), minlength=EXPERTS) for each in routes]
        shares.append(counts / np.sum(counts, 1, keepdims=True))  # (L, E)
    return np.stack(shares, 1)


def measure(path: str | PathLike[str], report: Callable[[Result], None] | None = None) -> list[Result]:
    """Train with every model and every seed, as far as the file does not hold their results.

    The learning rates of one network and of balanced experts are the best ones of a search. The experts
    without balancing take the rate of those with balancing.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results with the best learning rates and SEEDS.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results = Results(path, report)

    def trained(model: str, rate: float, seed: int) -> Result:
        return results.measure(Trial(model, rate, STEPS, seed), lambda trial: train_model(trial)[1])

    best = {
        model: best_learning_rate([trained(model, rate, SEARCH_SEED) for rate in RATES])
        for model in (DENSE, BALANCED, SINGLE)
    }
    rates = {model: best[SAME_RATE.get(model, model)] for model in MODELS}
    return [trained(model, rates[model], seed) for model, seed in product(MODELS, SEEDS)]

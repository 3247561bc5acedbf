"""Speculative decoding on Tiny Shakespeare: how many tokens a pass of the large model yields.

The target is the GPT of the experiments with LoRA. The draft is a GPT with a sixteenth of its parameters that
learned the same text. A draft that learned nothing is the baseline.
"""

import time
from collections.abc import Callable
from functools import cache
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.text import TextDataset, text_dataset
from npformer.generation import Speculation, speculative_ids
from npformer.learn.experiments.adaptation import CONFIG, FIRST_RATE, FIRST_STEPS, SEEDS, first_gpt, train
from npformer.learn.experiments.measured_runs import Measured, Results, new_gpt
from npformer.models.gpt import GPT

MEASURED = Path(__file__).with_name("speculation.json")  # the results that ship
DRAFT = CONFIG.replace(d_model=32, n_layers=1, n_heads=2)
AHEAD = (1, 2, 4, 8)
DRAFTS = ("small GPT", "untrained GPT")
PROMPT, LENGTH, TEXTS = 8, 56, 6  # tokens of a prompt, tokens after it, and texts for each measurement


def draft_gpt(kind: str, seed: int, dataset: TextDataset, steps: int = FIRST_STEPS) -> GPT:
    """Return a draft model.

    Args:
        kind: A name in DRAFTS.
        seed: The seed of its weights.
        dataset: The text.
        steps: The number of steps of the small GPT's training.
    """
    model = new_gpt(DRAFT, seed)
    if kind == "small GPT":
        train(model, model, dataset.train, steps, FIRST_RATE, seed)
    return model


def texts(target: GPT, draft: GPT, ahead: int, dataset: TextDataset, seed: int) -> list[Speculation]:
    """Return some texts that continue prompts of the validation text.

    Args:
        target: The large model.
        draft: The small model.
        ahead: The number of tokens that the draft proposes at a time.
        dataset: The text.
        seed: The seed of the prompts and the draws.
    """
    rng = np.random.default_rng([seed, ahead])
    starts = rng.integers(0, len(dataset.valid) - PROMPT, TEXTS)
    return [
        speculative_ids(target, draft, dataset.valid[i : i + PROMPT], LENGTH, ahead=ahead, rng=rng)
        for i in starts
    ]


def measure(
    path: str | PathLike[str], report: Callable[[Any], None] | None = None
) -> dict[str, list[Measured]]:
    """Count the tokens of each pass, as far as the file does not hold the results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results of all seeds, by names such as "small GPT, 4 ahead".

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results, dataset = Results(path, report, Measured), text_dataset()
    target = cache(lambda seed: first_gpt(seed, dataset))
    draft = cache(lambda kind, seed: draft_gpt(kind, seed, dataset))
    settings = {f"{kind}, {ahead} ahead": (kind, ahead) for kind, ahead in product(DRAFTS, AHEAD)}

    def measured(name: str, seed: int) -> Measured:
        start, (kind, ahead) = time.process_time(), settings[name]
        found = texts(target(seed), draft(kind, seed), ahead, dataset, seed)
        values = {
            "tokens per pass": round(TEXTS * LENGTH / sum(text.passes for text in found), 3),
            "accepted": round(sum(text.accepted for text in found) / sum(text.drafted for text in found), 3),
        }
        return Measured(name, seed, values, [], round(time.process_time() - start, 1))

    return results.of_seeds(settings, SEEDS, measured)

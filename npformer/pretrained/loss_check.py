"""check_loss: the gradient check of a trained model, of its loss on a sentence of the user.

A trained model has hundreds of tensors, and one derivative is a forward pass of the whole model, or some of
them. So one random direction is drawn for each tensor: the derivative of the loss along it must equal the
product of the gradient with it, to which every entry of the tensor contributes. If that takes too long,
neighbouring tensors share one direction. All entries are checked in any case, and tensors whose common
direction has a wrong derivative are checked one by one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.backend import Array, Generator, to_numpy
from npformer.checking import CheckRow, Report
from npformer.checking.check import generator_of
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import METHOD_NAMES, signs
from npformer.checking.draw import Draw, Options, choose_methods, make_draw
from npformer.checking.report import UNDECIDED
from npformer.checking.tensor_rows import first_wrong_entry
from npformer.checking.whole import LanguageModelWithLoss, ModelWithLoss
from npformer.errors import UserError
from npformer.models.registry import model_from_state
from npformer.pretrained.attention import forward_pass
from npformer.pretrained.encoders import TextClassifier, TextEncoder
from npformer.pretrained.loaded import GapFiller, Loaded, Translator

SHARE = 0.15  # of the tokens of a sentence that a masked language model predicts
SECONDS = 600.0
METHOD = "complex"


def check_loss(loaded: Loaded, text: str, *, seed: int = 0, seconds: float = SECONDS) -> Report:
    """Check the gradient of the loss of a model on a text with respect to every tensor of the model.

    The model is computed in float64, at its own values. A language model predicts each next token, a masked
    language model 15 % of the tokens, drawn at random, a translator its own translation, and a classifier
    the classes that it names itself.

    The derivatives are those of the complex step. A step of a difference moves all entries of a tensor at
    once, and in a large model it often crosses a kink of ReLU: differences are used only where forward does
    not take complex numbers.

    Args:
        loaded: The model, as `npformer.load` returns it.
        text: The text.
        seed: The seed of the directions and of the tokens that are masked.
        seconds: About the time that the derivatives may take. Wrong gradients take longer, since their
            tensors and entries are searched for.

    Returns:
        A report with one row for each tensor.

    Raises:
        UserError: If the model cannot read the text, or if there is nothing to predict in it.
    """
    rng = generator_of(seed)
    thing, inputs = loss_on(loaded, text, rng)
    report = Report(f"the loss of {loaded.name}")
    with np.errstate(all="ignore"):  # a NaN is a row of the report, and needs no warnings
        target = CheckTarget(thing, inputs, {}, randomize=False, rng=rng)
        draw = make_draw(target, choose_methods(target, rng, METHOD), Options(METHOD), rng)
        names = list(target.tensors)
        n_directions = min(len(names), _affordable(draw, rng, seconds))
        if n_directions < len(names):
            report.notes.append(
                f"{len(names)} tensors share {n_directions} directions, for which there is time: "
                "their errors are those of neighbouring tensors together"
            )
        report.rows += rows_of(report.name, draw, names, n_directions, rng)
    return report


def loss_on(loaded: Loaded, text: str, rng: Generator) -> tuple[Any, tuple[Array, ...]]:
    """Return a model in float64 with its loss, like a layer, and the inputs of its forward pass.

    Args:
        loaded: The model.
        text: The text.
        rng: The generator of the places of masked tokens.

    Raises:
        UserError: If the model cannot read the text, or if there is nothing to predict in it.
    """
    state = {name: to_numpy(value) for name, value in loaded.model.state_dict().items()}
    model = model_from_state(loaded.model.config, state, np.float64)
    if isinstance(loaded, Translator):
        found = forward_pass(loaded, text, **loaded.search_settings())
        return ModelWithLoss(model), (found.source_ids, found.target_ids, found.predicted_ids)
    ids = np.array([loaded.tokenizer.encode(text).ids], np.int64)  # (1, T)
    if isinstance(loaded, GapFiller):
        return LanguageModelWithLoss(model), _masked(loaded, text, ids, rng)
    if isinstance(loaded, TextEncoder):
        raise UserError(
            f"{loaded.name} is a {loaded.kind.noun}, and there is no loss to check: give a model with a head"
        )
    if isinstance(loaded, TextClassifier):  # the loss of each class that it names itself
        return LanguageModelWithLoss(model), (ids, loaded.logits(ids).argmax(-1))
    if ids.size < 2:
        raise UserError(f"the text {text!r} has no second token to predict: give a longer one")
    return LanguageModelWithLoss(model), (ids[:, :-1], ids[:, 1:])


def _masked(loaded: GapFiller, text: str, ids: Array, rng: Generator) -> tuple[Array, Array]:
    """Return what the model reads of a text, with masks, and what it has to predict, padding elsewhere.

    Shapes: ids (1, T) -> (1, T) each.
    """
    tokenizer = loaded.tokenizer
    places = np.flatnonzero([index not in tokenizer.special_ids for index in ids[0]])
    if tokenizer.mask_id is None or not len(places):
        raise UserError(f"the text {text!r} has no token that can be masked: give one with words")
    chosen = rng.choice(places, math.ceil(SHARE * len(places)), replace=False)
    masked, targets = ids.copy(), np.full_like(ids, loaded.model.config.pad_id)
    masked[0, chosen], targets[0, chosen] = tokenizer.mask_id, ids[0, chosen]
    return masked, targets


def _affordable(draw: Draw, rng: Generator, seconds: float) -> int:
    """Return the number of derivatives for which there is time, at least 1, from the time of one."""
    name, value = next(iter(draw.target.tensors.items()))
    start = time.perf_counter()
    draw.derivative({name: signs(rng, value.shape)})
    return max(1, int(seconds / (time.perf_counter() - start)))


def rows_of(
    name: str, draw: Draw, tensors: Sequence[str], n_directions: int, rng: Generator
) -> list[CheckRow]:
    """Check the gradients of tensors along a number of directions, and return one row for each tensor.

    Args:
        name: The name of the checked object.
        draw: The gradients.
        tensors: The names of the tensors.
        n_directions: The number of directions, among which the tensors are divided in their order.
        rng: The generator of the directions.
    """
    groups = np.array_split(np.array(tensors, object), n_directions)
    return [row for group in groups for row in _check_together(name, draw, list(group), rng)]


def _check_together(name: str, draw: Draw, tensors: list[str], rng: Generator) -> list[CheckRow]:
    """Check tensors along one direction, and if its derivative is wrong, along one for each half of them."""
    directions = {tensor: signs(rng, draw.target.tensors[tensor].shape) for tensor in tensors}
    error = draw.error(directions)
    tolerance = max(draw.tolerance(tensor) for tensor in tensors)
    if error <= tolerance:
        return [_row(name, draw, tensor, error, tolerance) for tensor in tensors]
    if len(tensors) > 1:
        return rows_of(name, draw, tensors, 2, rng)
    if draw.is_rounding(directions, rng):
        return [_row(name, draw, tensors[0], 0.0, tolerance, "the gradient is 0 up to rounding errors")]
    if error <= draw.hidden_error(directions):
        return [replace(_row(name, draw, tensors[0], error, tolerance, UNDECIDED), undecided=True)]
    return [_wrong_row(name, draw, tensors[0], error, rng)]


def _wrong_row(name: str, draw: Draw, tensor: str, error: float, rng: Generator) -> CheckRow:
    """Return the row of a wrong gradient, with its first wrong entry."""
    tolerance = draw.tolerance(tensor)
    value = draw.target.tensors[tensor]
    # entries of different sizes, so that equal errors in two of them cannot cancel
    uneven = signs(rng, value.shape) * rng.uniform(0.5, 1.5, value.shape)
    entry = first_wrong_entry(lambda part: not draw.error({tensor: part}) <= tolerance, uneven)
    why = f"the gradient is {draw.grads[tensor][entry]:.3g} there, and not the derivative of the loss"
    return _row(name, draw, tensor, error, tolerance, why, entry)


def _row(
    name: str,
    draw: Draw,
    tensor: str,
    error: float,
    tolerance: float,
    why: str = "",
    entry: tuple[int, ...] | None = None,
) -> CheckRow:
    return CheckRow(name, tensor, error, METHOD_NAMES[draw.methods[tensor]], tolerance, entry, why)

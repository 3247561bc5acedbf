"""The data of a recorded page: the arrays of one forward and backward pass of any model, or of a layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.codecs import TextCodec
from npformer.errors import UserError
from npformer.explorer.call_tree import Call, calls_in, watched
from npformer.explorer.code_lines import code_of_steps
from npformer.explorer.model_data import (
    MOST_TOKENS,
    PageData,
    config_data,
    require_room,
    require_words,
    title_of,
    variants_of,
)
from npformer.explorer.predictions import predictions_data
from npformer.explorer.steps import (
    Recording,
    Selection,
    arrays_of,
    loss_gradient,
    record_loss,
    require_size,
    steps_data,
)
from npformer.kernels import plain_pairs
from npformer.models.registry import Model, kind_of
from npformer.models.transformer import TransformerConfig
from npformer.nn import Embedding, LearnedPositions, Linear, TiedProjection
from npformer.nn.fixed import FixedParameter, fixed_parameters
from npformer.nn.module import Module, Parameter
from npformer.pretrained import GapFiller, TextClassifier, TextEncoder, Translator
from npformer.pretrained.attention import forward_pass
from npformer.pretrained.loaded import Loaded
from npformer.version import __version__

LARGEST_VOCABULARY = 2000  # tokens; of a larger vocabulary, a page carries those that the example needs
MOST_PROBABLE = 5  # tokens of each position that a page carries then
LARGEST_PRECISE = 20_000_000  # parameters of a model that is computed in float64, with all gradients
LARGEST_PARAMETERS = 2_000_000  # numbers of parameters, and of their gradients, that a page carries
NO_TARGET = -1  # the target of a position that has none


class Example(NamedTuple):
    """The input of a model, and the tokens that it is to predict.

    Attributes:
        ids: The ids of each input of the model, of shape (1, T).
        targets: The target at each position of the logits, of shape (1, T); NO_TARGET where there is none.
            None for a model that predicts no tokens, whose page has no loss.
        smoothing: The amount of label smoothing in the loss.
        data: The texts and tokens, as JSON values for the page.
        piece: A function that returns the label of a token of the logits.
    """

    ids: tuple[Array, ...]
    targets: Array | None
    smoothing: float
    data: dict[str, Any]
    piece: Callable[[int], str]


def recorded_data(loaded: Loaded, source: str, target: str | None = None) -> PageData:
    """Return the data of a recorded page.

    Args:
        loaded: The model.
        source: The sentence or the text that the model reads.
        target: The translation, or the text with its gaps filled. By default, what the model predicts.

    Raises:
        UserError: If a text is empty or too long, or if the model does not know a word.
    """
    example = _example_of(loaded, source, target)
    model = _own_copy(loaded.model)
    settings: dict[str, Any] = {"smoothing": example.smoothing, "pad_id": NO_TARGET}
    with plain_pairs(), watched(model) as root:
        logits, cache = model.forward(*example.ids)
        model.backward(_gradient(logits, example.targets, settings), cache)
    columns, parts = _parts(root, logits, example.targets)
    recording = Recording(model, parts, columns, *_carried(model, parts))
    recording.emit(root.children[0])
    if example.targets is not None:
        record_loss(recording, logits, example.targets, settings)
    config: Any = loaded.model.config
    is_transformer = isinstance(config, TransformerConfig)
    head = {
        "kind": "recorded",
        "title": title_of(source),
        "npformer": __version__,
        "model": {"name": Path(loaded.name).name, "parameters": loaded.model.count_parameters()},
        "architecture": kind_of(config),
        "config": config_data(config) if is_transformer else config.to_dict(),
        "example": example.data,
        "lines": code_of_steps(*(variants_of(config) if is_transformer else [])),
        **_words(loaded, example, logits),
    }
    if example.targets is not None:
        head |= predictions_data(recording, root, example.ids, example.piece)
    _with_labels(recording, loaded, example)
    arrays = arrays_of(recording)
    require_size(arrays, "this model", "text")
    return PageData(head | steps_data(recording), arrays)


def with_saved(pages: list[PageData]) -> PageData:
    """Return the data of a recorded page with the passes of several texts, between which a reader switches.

    The head is that of the first one, and its entry "saved" has what differs in the others. Parameters that
    the first pass has, too, are carried once.

    Args:
        pages: The data of a page for each of the texts.

    Raises:
        UserError: If a page has no room for all of them.
    """
    (head, first), *others = pages
    values = {step["path"]: value for step, value, _ in _steps_of(pages[0])}
    arrays, saved = list(first), []
    for page in others:
        steps = []
        for step, value, grad in _steps_of(page):
            is_shared = step["op"] == "parameter" and np.array_equal(values.get(step["path"], ()), value)
            steps.append(step | {"shared": is_shared})
            arrays += [array for array in (None if is_shared else value, grad) if array is not None]
        own = {name: page.head.get(name) for name in ("example", "aliases", "predictions")}
        saved.append(own | {"steps": steps})
    require_size(arrays, "this model", "text" if not others else "list of texts")
    return PageData(head | ({"saved": saved} if saved else {}), arrays)


def _steps_of(page: PageData) -> Iterator[tuple[dict[str, Any], Array, Array | None]]:
    """Yield each step of a recorded pass with its values, and its gradient or None."""
    arrays = iter(page.arrays)
    for step in page.head["steps"]:
        yield step, next(arrays), next(arrays) if step["grad"] else None


# The example


def _example_of(loaded: Loaded, source: str, target: str | None) -> Example:
    """Return what a model reads and is to predict, with the tokens for the page."""
    if isinstance(loaded, Translator):
        return _sentence_pair(loaded, source, target)
    encoding = loaded.tokenizer.encode(source)
    if not encoding.ids:
        raise UserError(f"the text {source!r} is empty: write at least one word")
    require_room(len(encoding.ids), "text")
    ids = np.array([encoding.ids])
    if isinstance(loaded, (TextEncoder, TextClassifier)):
        if target is not None:
            raise UserError(
                f"a {loaded.kind.noun} reads one text and predicts no tokens: leave out the target"
            )
        data = {"source": source, "target": None, "source_tokens": encoding.pieces}
        data |= {"target_tokens": encoding.pieces, "predicted_tokens": encoding.pieces}
        return Example((ids,), None, 0.0, data, loaded.tokenizer.piece)
    targets = _targets_of_gaps(loaded, encoding.ids, target) if isinstance(loaded, GapFiller) else None
    if targets is None:  # a language model predicts the next token
        if len(encoding.ids) < 2:
            raise UserError("the text has a single token, and nothing follows it: give a longer text")
        targets = np.array([[*encoding.ids[1:], NO_TARGET]])
    predicted = ["" if index == NO_TARGET else loaded.tokenizer.piece(int(index)) for index in targets[0]]
    data = {
        "source": source,
        "target": target,
        "source_tokens": encoding.pieces,
        "target_tokens": encoding.pieces,
        "predicted_tokens": predicted,
    }
    smoothing = loaded.model.config.label_smoothing
    return Example((ids,), targets, smoothing, data, loaded.tokenizer.piece)


def _targets_of_gaps(loaded: GapFiller, ids: list[int], target: str | None) -> Array:
    """Return the tokens of the gaps of a text, or all its tokens if it has none.

    They are those of the target, a text of the same length, or else the most probable ones.
    """
    given = np.array([ids])
    if target is not None:
        wanted = np.array([loaded.tokenizer.encode(target).ids])
        if wanted.shape != given.shape:
            raise UserError(
                f"the text has {given.size} tokens and the filled text {wanted.size}: write one word for "
                "each gap"
            )
    else:
        logits = loaded.logits(given)
        logits[..., sorted(loaded.tokenizer.special_ids)] = -np.inf
        wanted = np.where(given == loaded.tokenizer.mask_id, logits.argmax(-1), given)
    gaps = given == loaded.tokenizer.mask_id
    return np.where(gaps, wanted, NO_TARGET) if gaps.any() else wanted


def _sentence_pair(loaded: Translator, source: str, target: str | None) -> Example:
    """Return the ids of a sentence and its translation."""
    config = loaded.model.config
    for tokenizer, text, side in (
        (loaded.source_tokenizer, source, "sentence"),
        (loaded.target_tokenizer, target, "translation"),
    ):
        if text is not None:
            count = len(tokenizer.encode(text).ids)
            if count == 1:
                raise UserError(f"the {side} {text!r} is empty: write at least one word")
            require_room(count, side)
    codec = loaded.codec.source if loaded.has_codecs else None
    if isinstance(codec, TextCodec):
        require_words(codec, source, "sentence")
    search = loaded.search_settings()
    longest = min(2 * len(loaded.source_ids(source)) + 5, config.max_length - 1, MOST_TOKENS - 1)
    search["max_length"] = min(longest, search.get("max_length", longest))
    run = forward_pass(loaded, source, target, **search)
    data = {
        "source": source,
        "target": loaded.text_of(run.predicted_ids[0].tolist()) if target is None else target,
        "source_tokens": run.source,
        "target_tokens": run.target,
        "predicted_tokens": run.predicted,
    }
    ids = run.source_ids, run.target_ids
    return Example(ids, run.predicted_ids, config.label_smoothing, data, loaded.target_tokenizer.piece)


def _gradient(logits: Array, targets: Array | None, settings: dict[str, Any]) -> Array:
    """Return the gradient of the loss with respect to the output of a model.

    Without targets, it is that of the sum of half the squares of the output, which is the output itself.
    """
    return logits if targets is None else loss_gradient(logits, targets, settings)


# The model


def _own_copy(model: Model) -> Any:
    """Return a copy of a model, so that the gradients of the caller's model stay as they are.

    A model of usual size is computed in float64. A large one shares its parameters with the copy, and their
    gradients are not computed, since they would not fit a page.
    """
    if model.count_parameters() <= LARGEST_PRECISE:
        copied: Any = copy.deepcopy(model)
        copied = copied.to("numpy").astype(np.float64)
        copied.zero_grad()
        return copied
    return model.shared_copy(fixed_parameters(model))


def _parts(root: Call, logits: Array, targets: Array | None) -> tuple[Array | None, dict[int, Selection]]:
    """Return the tokens whose logits a page carries, or None for all, and the parts of parameters.

    Of tables, it carries the rows of the first positions and of the tokens of the example, and of the
    projection to logits the columns. If the two share one table, they have the same tokens.
    """
    parts: dict[int, Selection] = {}
    columns = None if targets is None else _columns(logits, targets)
    for call in calls_in(root):
        module: Any = call.module
        if isinstance(module, LearnedPositions):
            parts[id(module.weight)] = Selection(0, np.arange(call.inputs[0]))
        elif isinstance(module, Embedding) and len(module.weight.value) > LARGEST_VOCABULARY:
            before = parts.get(id(module.weight), Selection(0, np.array([], int)))
            parts[id(module.weight)] = Selection(0, np.union1d(before.ids, call.inputs[0]))
        elif columns is not None and isinstance(module, (TiedProjection, Linear)) and call.output is logits:
            is_tied = isinstance(module, TiedProjection)
            if id(module.weight) in parts:
                columns = np.union1d(columns, parts[id(module.weight)].ids)
            parts[id(module.weight)] = Selection(0 if is_tied else 1, columns)
            if module.bias is not None:
                parts[id(module.bias)] = Selection(0, columns)
    return columns, parts


def _columns(logits: Array, targets: Array) -> Array | None:
    """Return the tokens whose logits a page carries: targets and probable ones, or None for all."""
    if logits.shape[-1] <= LARGEST_VOCABULARY:
        return None
    probable = np.argpartition(logits[0], -MOST_PROBABLE, axis=-1)[:, -MOST_PROBABLE:]
    # where there is no target, cross_entropy takes token 0 and leaves the loss out
    return np.union1d(probable, np.where(targets == NO_TARGET, 0, targets))


def _carried(model: Module, parts: dict[int, Selection]) -> tuple[Callable[[Parameter], bool], bool]:
    """Return which parameters a page carries, and whether it carries the gradients of matrices.

    If there is no room for all of them, it carries the vectors, and the parts of tables.
    """
    parameters = model.parameters()
    total = sum(_size(parameter, parts) for parameter in parameters)
    if total > LARGEST_PARAMETERS or any(isinstance(p, FixedParameter) for p in parameters):
        return (lambda parameter: parameter.value.ndim == 1 or id(parameter) in parts), True
    return (lambda parameter: True), 2 * total <= LARGEST_PARAMETERS


def _size(parameter: Parameter, parts: dict[int, Selection]) -> int:
    """Return how many numbers of a parameter a page would carry."""
    if id(parameter) not in parts:
        return parameter.value.size
    axis, ids = parts[id(parameter)]
    return parameter.value.size // parameter.value.shape[axis] * len(ids)


def _words(loaded: Loaded, example: Example, logits: Array) -> dict[str, list[str]]:
    """Return the tokens of the vocabularies that a page carries whole."""
    vocabularies: dict[str, tuple[Callable[[int], str], int]] = {}
    if isinstance(loaded, Translator):
        vocabularies["source_words"] = (loaded.source_tokenizer.piece, loaded.model.config.source_vocab)
    if example.targets is not None:
        vocabularies["target_words"] = (example.piece, logits.shape[-1])
    return {
        name: [piece(token) for token in range(size)]
        for name, (piece, size) in vocabularies.items()
        if size <= LARGEST_VOCABULARY
    }


def _with_labels(recording: Recording, loaded: Loaded, example: Example) -> None:
    """Put the tokens of the arrays that show some tokens of a vocabulary only into their notes, as text."""
    source: Any = loaded.tokenizer
    for module in recording.model.modules():
        step = recording.parameter(module.weight) if isinstance(module, Embedding) else None
        if isinstance(module, Embedding) and step is not None and id(module.weight) in recording.parts:
            step.note["token_ids"] = recording.parts[id(module.weight)].ids.tolist()
    for step in recording.steps:
        if "token_ids" in step.note:
            piece = source.piece if step.path.startswith("source") else example.piece
            ids = step.note.pop("token_ids")
            step.note = step.note | {"labels": [piece(index) for index in ids]}

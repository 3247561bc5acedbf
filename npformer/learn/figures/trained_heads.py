"""Measurements of the heads on all held-out sentences, by which figures choose the heads that they show."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from npformer.backend import to_numpy
from npformer.data.corpus import Pair, Reference, builtin_corpus
from npformer.data.loader import make_batch
from npformer.errors import UserError
from npformer.generation import Translator
from npformer.generation.evaluation import HeadAccuracy
from npformer.learn.figures.studio import Studio
from npformer.models.registry import attention_layers
from npformer.pretrained.attention import ForwardPass
from npformer.training.if_then import TrainedReader

AT_ONCE = 64  # sentences in a forward pass

HeadKey = tuple[str, int, int]  # "encoder" or "cross", layer, head
Targets = Callable[[Reference], tuple[int, ...]]


def antecedent(reference: Reference) -> tuple[int, ...]:
    """Return the position of the noun that *it* refers to."""
    return () if reference.antecedent is None else (reference.antecedent,)


def deciders(reference: Reference) -> tuple[int, ...]:
    """Return the positions of the words that decide: tired for *it*, river for *bank*."""
    return reference.deciders


def best_head(
    studio: Studio,
    family: str,
    targets: Targets,
    where: str | None = None,
    *,
    but: HeadAccuracy | None = None,
) -> HeadAccuracy:
    """Return the head whose largest weight, at *it* or *bank*, is most often on a target.

    The share is measured on all held-out sentences of the family, as in generation.evaluation.

    Args:
        studio: The source of the trained model.
        family: "it" or "bank".
        targets: The function that returns the targets of a sentence.
        where: "encoder", measured at the ambiguous word, or "cross", measured where its French is written;
            both by default.
        but: A head to leave out, or None.

    Raises:
        UserError: If `where` is something else.
    """
    if where not in (None, "encoder", "cross"):
        raise UserError(f"where is {where!r}: choose encoder or cross")
    shares = head_shares(studio, family, targets)
    taken = None if but is None else (but.where, but.layer, but.head)
    mine = {p: share for p, share in shares.items() if where in (None, p[0]) and p != taken}
    place, share = max(mine.items(), key=lambda item: item[1])  # the first of equal ones
    return HeadAccuracy(*place, share, len(_held_out(family)))


def share_of(
    studio: Studio, family: str, targets: Targets, where: str, layer: int, head: int
) -> HeadAccuracy:
    """Return one head with the share of sentences in which its largest weight is on a target.

    Args:
        studio: The source of the trained model.
        family: "it" or "bank".
        targets: The function that returns the targets of a sentence.
        where: "encoder" or "cross".
        layer: The layer.
        head: The number of the head.

    Raises:
        UserError: If the head does not exist.
    """
    shares = head_shares(studio, family, targets)
    check_number("layer", layer, 1 + max(p[1] for p in shares if p[0] == where))
    check_number("head", head, 1 + max(p[2] for p in shares))
    return HeadAccuracy(where, layer, head, shares[where, layer, head], len(_held_out(family)))


def head_shares(studio: Studio, family: str, targets: Targets) -> dict[HeadKey, float]:
    """Return for every head the share of held-out sentences in which its largest weight is on a target.

    Args:
        studio: The source of the trained model.
        family: "it" or "bank".
        targets: The function that returns the targets of a sentence.
    """
    pairs = _held_out(family)
    if ("attended", family) not in studio.memo:
        studio.memo["attended", family] = _strongest(studio.translator, pairs)
    attended: dict[HeadKey, np.ndarray] = studio.memo["attended", family]
    target_words = [targets(pair.reference) for pair in pairs if pair.reference is not None]
    return {
        place: float(np.mean([key in words for key, words in zip(keys, target_words, strict=True)]))
        for place, keys in attended.items()
    }


@cache
def _test_pairs() -> tuple[Pair, ...]:
    return builtin_corpus().test  # takes a second


def _held_out(family: str) -> list[Pair]:
    return [pair for pair in _test_pairs() if pair.family == family]


def _strongest(translator: Translator, pairs: Sequence[Pair]) -> dict[HeadKey, np.ndarray]:
    """Return for every head the English word with its largest weight in each sentence, (N,)."""
    keys: dict[HeadKey, list[np.ndarray]] = {}
    source, target = translator.source_codec, translator.target_codec
    for start in range(0, len(pairs), AT_ONCE):
        some = pairs[start : start + AT_ONCE]
        batch = make_batch([(source.encode(pair.english), target.encode(pair.french)) for pair in some])
        _, cache = translator.model.forward(batch.source, batch.target_in)
        queries_by_place = {
            "encoder": ([layer.self_attention for layer in cache.encoder.layers], "word"),
            "cross": ([layer.cross for layer in cache.decoder.layers], "answer"),
        }
        for where, (layers, name) in queries_by_place.items():
            queries = [getattr(pair.reference, name) for pair in some]
            for number, layer in enumerate(layers):
                weights = to_numpy(layer.attention.weights)[np.arange(len(some)), :, queries]  # (B, H, S)
                for head, best in enumerate(weights.argmax(-1).T):
                    keys.setdefault((where, number, head), []).append(best)
    return {place: np.concatenate(parts) for place, parts in keys.items()}


class HeadWeights(NamedTuple):
    """The weights of one head in one sentence."""

    weights: np.ndarray  # (T, S)
    queries: list[str]
    keys: list[str]


def head_weights(forward: ForwardPass, where: str, layer: int, head: int) -> HeadWeights:
    """Return the weights of one head in a sentence.

    The queries of "cross" are labelled with the written word, those of "decoder" with the word read.

    Args:
        forward: The forward pass.
        where: "encoder", "decoder" (its self-attention), or "cross".
        layer: The layer.
        head: The number of the head.

    Raises:
        UserError: If the layer or the head does not exist.
    """
    layers = attention_layers(forward.cache, where)
    check_number("layer", layer, len(layers))
    weights = layers[layer][0]  # (H, T, S)
    check_number("head", head, len(weights))
    rows = {"encoder": forward.source, "decoder": forward.target, "cross": forward.predicted}[where]
    return HeadWeights(weights[head], rows, forward.target if where == "decoder" else forward.source)


def check_number(name: str, number: int, count: int) -> None:
    """Check that a layer or head exists.

    Args:
        name: "layer" or "head".
        number: The number.
        count: How many layers or heads there are.

    Raises:
        UserError: If it does not.
    """
    if not 0 <= number < count:
        raise UserError(f"{name} is {number}: there are {name}s 0 .. {count - 1}")


def forward_pair(studio: Studio, sentence: str) -> ForwardPass:
    """Run the model on a sentence with its translation: the corpus's for a held-out one, else its own."""
    known = [pair.french for pair in _test_pairs() if pair.english == sentence]
    return studio.forward_pass(sentence, known[0] if known else None)


def unknown_words(translator: Translator | TrainedReader, sentence: str) -> str:
    """Return a sentence for the caption that names the words unknown to the model, or an empty text."""
    unknown = translator.unknown_words(sentence)
    if not unknown:
        return ""
    return f" The model does not know {', '.join(map(repr, unknown))} and reads <UNK> instead."

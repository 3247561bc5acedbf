"""Which head looks where, measured on every held-out sentence: heads are chosen by this, never by eye."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from npformer.backend import to_numpy
from npformer.data.batches import make_batch
from npformer.data.corpus import Pair, Reference, builtin_corpus
from npformer.decoding.exam import Look as Head
from npformer.errors import UserError
from npformer.figures.studio import Look
from npformer.models import attention_layers

AT_ONCE = 64  # sentences a forward pass

Place = tuple[str, int, int]  # "encoder" or "cross", layer, head
Targets = Callable[[Reference], tuple[int, ...]]


def antecedent(reference: Reference) -> tuple[int, ...]:
    """Where the noun stands that *it* stands for."""
    return () if reference.antecedent is None else (reference.antecedent,)


def deciders(reference: Reference) -> tuple[int, ...]:
    """Where the words stand that decide: tired for *it*, river for *bank*."""
    return reference.deciders


def best_head(
    studio, family: str, targets: Targets, where: str | None = None, *, but: Head | None = None
) -> Head:
    """The head whose strongest look, at *it* or *bank*, goes most often to a target.

    where is "encoder", asked at the ambiguous word, or "cross", asked where its French is written; both
    without it. but leaves out a head. Over all held-out sentences of the family, as in decoding.exam.
    Errors: UserError for another where.
    """
    if where not in (None, "encoder", "cross"):
        raise UserError(f"where is {where!r}: choose encoder or cross")
    shares = head_shares(studio, family, targets)
    taken = None if but is None else (but.where, but.layer, but.head)
    mine = {p: share for p, share in shares.items() if where in (None, p[0]) and p != taken}
    place, share = max(mine.items(), key=lambda item: item[1])  # of equal ones the first
    return Head(*place, share, len(_held_out(family)))


def share_of(studio, family: str, targets: Targets, where: str, layer: int, head: int) -> Head:
    """One head, with its share. Errors: UserError for a head that is not there."""
    shares = head_shares(studio, family, targets)
    check_number("layer", layer, 1 + max(p[1] for p in shares if p[0] == where))
    check_number("head", head, 1 + max(p[2] for p in shares))
    return Head(where, layer, head, shares[where, layer, head], len(_held_out(family)))


def head_shares(studio, family: str, targets: Targets) -> dict[Place, float]:
    """For every head, the share of held-out sentences in which its strongest look goes to a target."""
    pairs = _held_out(family)
    if ("looks", family) not in studio.memo:
        studio.memo["looks", family] = _strongest(studio.translator, pairs)
    looks: dict[Place, np.ndarray] = studio.memo["looks", family]
    wanted = [targets(pair.reference) for pair in pairs if pair.reference is not None]
    return {
        place: float(np.mean([key in words for key, words in zip(keys, wanted, strict=True)]))
        for place, keys in looks.items()
    }


@cache
def _test_pairs() -> tuple[Pair, ...]:
    return builtin_corpus().test  # drawing it takes a second


def _held_out(family: str) -> list[Pair]:
    return [pair for pair in _test_pairs() if pair.family == family]


def _strongest(translator, pairs: Sequence[Pair]) -> dict[Place, np.ndarray]:
    """For every head, the English word that it looks at most, sentence by sentence: (N,)."""
    keys: dict[Place, list[np.ndarray]] = {}
    source, target = translator.source_codec, translator.target_codec
    for start in range(0, len(pairs), AT_ONCE):
        some = pairs[start : start + AT_ONCE]
        batch = make_batch([(source.encode(pair.english), target.encode(pair.french)) for pair in some])
        _, cache = translator.model.forward(batch.source, batch.target_in)
        asked = {
            "encoder": ([layer.self_attention for layer in cache.encoder.layers], "word"),
            "cross": ([layer.cross for layer in cache.decoder.layers], "answer"),
        }
        for where, (layers, name) in asked.items():
            queries = [getattr(pair.reference, name) for pair in some]
            for number, layer in enumerate(layers):
                weights = to_numpy(layer.attention.weights)[np.arange(len(some)), :, queries]  # (B, H, S)
                for head, best in enumerate(weights.argmax(-1).T):
                    keys.setdefault((where, number, head), []).append(best)
    return {place: np.concatenate(parts) for place, parts in keys.items()}


class Seen(NamedTuple):
    """One head's weights in one sentence."""

    weights: np.ndarray  # (T, S)
    queries: list[str]
    keys: list[str]


def seen_by(look: Look, where: str, layer: int, head: int) -> Seen:
    """What one head did in a sentence. where: "encoder", "decoder" (itself), or "cross".

    The queries of "cross" are named by the word that is written there, those of "decoder" by the word read.
    Errors: UserError for a layer or head that is not there.
    """
    layers = attention_layers(look.cache, where)
    check_number("layer", layer, len(layers))
    weights = layers[layer][0]  # (H, T, S)
    check_number("head", head, len(weights))
    rows = {"encoder": look.source, "decoder": look.target, "cross": look.predicted}[where]
    return Seen(weights[head], rows, look.target if where == "decoder" else look.source)


def check_number(name: str, number: int, count: int) -> None:
    """Errors: UserError for a layer or head that is not there."""
    if not 0 <= number < count:
        raise UserError(f"{name} is {number}: there are {name}s 0 .. {count - 1}")


def look_at_pair(studio, sentence: str) -> Look:
    """The sentence with its translation: that of the corpus for a held-out one, else the model's own."""
    known = [pair.french for pair in _test_pairs() if pair.english == sentence]
    return studio.look(sentence, known[0] if known else None)


def unknown_words(translator, sentence: str) -> str:
    """A sentence for the caption where the model does not know words of a sentence, else nothing."""
    unknown = translator.unknown_words(sentence)
    if not unknown:
        return ""
    return f" The model does not know {', '.join(map(repr, unknown))} and reads <UNK> in place."

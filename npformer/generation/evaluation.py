"""Evaluation of a model on held-out sentences, and of the words to which its heads attend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.data.corpus import Pair
from npformer.data.corpus.pairs import Family, HeldOut
from npformer.data.loader import make_batch
from npformer.data.tokens import tokenize
from npformer.models.registry import attention_layers


@dataclass(frozen=True)
class FamilyAccuracy:
    """The accuracy on one part of the test set: a family of sentences, held out in one way."""

    family: Family
    held_out: HeldOut | None  # "words" or "frame" in the test set
    sentences: int
    exact: int
    right_word: int | None  # il or elle, rive or banque; None for a family without an ambiguous word

    @property
    def share(self) -> float:
        """Return the share of exact translations."""
        return self.exact / self.sentences


class HeadAccuracy(NamedTuple):
    """An attention head, and how often its largest weight is on a deciding word."""

    where: str  # "encoder" or "cross"
    layer: int
    head: int
    share: float  # the share of the sentences with the largest weight on a deciding word
    sentences: int


def parts_of(pairs: Sequence[Pair]) -> dict[tuple[Family, HeldOut | None], list[Pair]]:
    """Return the pairs of each part of the test set: of each family and each way of holding out."""
    parts: dict[tuple[Family, HeldOut | None], list[Pair]] = {}
    for pair in pairs:
        parts.setdefault((pair.family, pair.held_out), []).append(pair)
    order = {"simple": 0, "it": 1, "bank": 2, "document": 3}
    return dict(sorted(parts.items(), key=lambda item: (item[0][1] == "frame", order[item[0][0]])))


def evaluate_families(translator: Any, pairs: Sequence[Pair]) -> list[FamilyAccuracy]:
    """Translate every English sentence by greedy search and compare it with the French one, part by part.

    Args:
        translator: The translator from English to French, such as `npformer.load` returns.
        pairs: The sentence pairs.
    """
    answers = dict(zip(pairs, translator.translate([pair.english for pair in pairs], beam=1), strict=True))
    scores = []
    for (family, held_out), part in parts_of(pairs).items():
        exact = sum(answers[pair] == pair.french for pair in part)
        words = [right_word(pair, answers[pair]) for pair in part if pair.reference is not None]
        scores.append(FamilyAccuracy(family, held_out, len(part), exact, sum(words) if words else None))
    return scores


def right_word(pair: Pair, answer: str) -> bool:
    """Return True if a translation has the right word, such as il, where the reference has it."""
    assert pair.reference is not None
    words = tokenize(answer, elision=True)
    position = pair.reference.answer
    return position < len(words) and words[position] == pair.reference.right


def strongest_head(model: Any, translator: Any, pairs: Sequence[Pair]) -> HeadAccuracy:
    """Return the head whose largest attention weight is most often on a deciding word.

    For *it* the deciding word is the antecedent; for *bank* there are several. The query is the ambiguous
    word for heads of the encoder, and the position that predicts its French translation for heads of
    cross-attention.

    Args:
        model: The model of the translator, on the host.
        translator: The translator, for its codecs.
        pairs: Sentence pairs with an ambiguous word.
    """
    hits: dict[tuple[str, int, int], int] = {}
    for start in range(0, len(pairs), 64):
        _count_hits(model, translator, pairs[start : start + 64], hits)
    (where, layer, head), count = max(hits.items(), key=lambda item: item[1])
    return HeadAccuracy(where, layer, head, count / len(pairs), len(pairs))


def _count_hits(
    model: Any, translator: Any, pairs: Sequence[Pair], hits: dict[tuple[str, int, int], int]
) -> None:
    """Add to hits, for each head, the number of pairs whose largest weight is on a deciding word."""
    examples = [
        (translator.codec.source.encode(pair.english), translator.codec.target.encode(pair.french))
        for pair in pairs
    ]
    batch = make_batch(examples)
    _, cache = model.forward(batch.source, batch.target_in)
    rows = np.arange(len(pairs))
    references = [pair.reference for pair in pairs if pair.reference is not None]
    queries_of = {"encoder": [r.word for r in references], "cross": [r.answer for r in references]}
    for where, queries in queries_of.items():
        for number, weights in enumerate(attention_layers(cache, where)):  # (B, H, T, S)
            keys = weights[rows, :, queries].argmax(-1)  # (B, H)
            for head in range(keys.shape[1]):
                count = sum(k in _targets(p) for k, p in zip(keys[:, head], pairs, strict=True))
                hits[where, number, head] = hits.get((where, number, head), 0) + count


def _targets(pair: Pair) -> tuple[int, ...]:
    """Return the positions of the deciding words."""
    reference = pair.reference
    assert reference is not None
    return (reference.antecedent,) if reference.antecedent is not None else reference.deciders

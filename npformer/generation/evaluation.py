"""Evaluation of a model on held-out sentences, and of the words to which its heads attend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.data.corpus import Pair
from npformer.data.loader import make_batch
from npformer.data.tokens import tokenize
from npformer.generation.translator import Translator
from npformer.models.registry import attention_layers


@dataclass(frozen=True)
class FamilyAccuracy:
    """The numbers of a family's sentences that were translated exactly, or with the right ambiguous word."""

    family: str
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
    share: float  # of the sentences
    sentences: int


def evaluate_families(
    translator: Translator, pairs: Sequence[Pair], *, beam: int = 1
) -> list[FamilyAccuracy]:
    """Translate every English sentence and compare the result with the French one, family by family.

    Args:
        translator: The translator from English to French.
        pairs: The sentence pairs.
        beam: The beam of beam search; 1 is greedy search.
    """
    answers = translator.translate([pair.english for pair in pairs], beam=beam)
    scores = []
    for family in dict.fromkeys(pair.family for pair in pairs):
        own = [(pair, answer) for pair, answer in zip(pairs, answers, strict=True) if pair.family == family]
        exact = sum(answer == pair.french for pair, answer in own)
        words = [_right_word(pair, answer) for pair, answer in own if pair.reference is not None]
        scores.append(FamilyAccuracy(family, len(own), exact, sum(words) if words else None))
    return scores


def _right_word(pair: Pair, answer: str) -> bool:
    """Return True if the answer has the right word, such as il and not elle, where the reference has it."""
    assert pair.reference is not None
    words = tokenize(answer, elision=True)
    position = pair.reference.answer
    return position < len(words) and words[position] == pair.reference.right


def strongest_head(model: Any, translator: Translator, pairs: Sequence[Pair]) -> HeadAccuracy:
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
    model: Any, translator: Translator, pairs: Sequence[Pair], hits: dict[tuple[str, int, int], int]
) -> None:
    """Add to hits, for each head, the number of pairs whose largest weight is on a deciding word."""
    examples = [
        (translator.source_codec.encode(pair.english), translator.target_codec.encode(pair.french))
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

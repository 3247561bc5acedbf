"""The exam: how a model does on sentences that it has never seen, and where its attention looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.data.batches import make_batch
from npformer.data.corpus import Pair
from npformer.data.tokens import tokenize
from npformer.decoding.translator import Translator
from npformer.models import attention_layers


@dataclass(frozen=True)
class Score:
    """How many of a family's sentences were translated exactly, and with the right ambiguous word."""

    family: str
    sentences: int
    exact: int
    right_word: int | None  # il or elle, rive or banque; None for a family that has none

    @property
    def share(self) -> float:
        """The share of exact translations."""
        return self.exact / self.sentences


class Look(NamedTuple):
    """The head that looks most often where it should, and how often it does."""

    where: str  # "encoder" or "cross"
    layer: int
    head: int
    share: float
    sentences: int


def take_exam(translator: Translator, pairs: Sequence[Pair], *, beam: int = 1) -> list[Score]:
    """Translate every English sentence and compare with the French, family by family."""
    answers = translator.translate([pair.english for pair in pairs], beam=beam)
    scores = []
    for family in dict.fromkeys(pair.family for pair in pairs):
        own = [(pair, answer) for pair, answer in zip(pairs, answers, strict=True) if pair.family == family]
        exact = sum(answer == pair.french for pair, answer in own)
        words = [_right_word(pair, answer) for pair, answer in own if pair.reference is not None]
        scores.append(Score(family, len(own), exact, sum(words) if words else None))
    return scores


def _right_word(pair: Pair, answer: str) -> bool:
    """Whether the answer has the right one of il and elle, or of rive and banque, where it belongs."""
    assert pair.reference is not None
    words = tokenize(answer, elision=True)
    place = pair.reference.answer
    return place < len(words) and words[place] == pair.reference.right


def strongest_look(model: Any, translator: Translator, pairs: Sequence[Pair]) -> Look:
    """Which head looks at what decides, and how often that is its strongest look.

    For *it* the target is the antecedent, for *bank* the words that decide. Encoder heads are asked at the
    ambiguous word, cross-attention heads at the position that predicts its French.
    """
    hits: dict[tuple[str, int, int], int] = {}
    for start in range(0, len(pairs), 64):
        _count_hits(model, translator, pairs[start : start + 64], hits)
    (where, layer, head), count = max(hits.items(), key=lambda item: item[1])
    return Look(where, layer, head, count / len(pairs), len(pairs))


def _count_hits(model, translator, pairs, hits):
    """Add up, head by head, how often the strongest look is at a word that decides."""
    examples = [
        (translator.source_codec.encode(pair.english), translator.target_codec.encode(pair.french))
        for pair in pairs
    ]
    batch = make_batch(examples)
    _, cache = model.forward(batch.source, batch.target_in)
    rows = np.arange(len(pairs))
    asked = {"encoder": [p.reference.word for p in pairs], "cross": [p.reference.answer for p in pairs]}
    for where, queries in asked.items():
        for number, weights in enumerate(attention_layers(cache, where)):  # (B, H, T, S)
            keys = weights[rows, :, queries].argmax(-1)  # (B, H)
            for head in range(keys.shape[1]):
                good = sum(k in _targets(p) for k, p in zip(keys[:, head], pairs, strict=True))
                hits[where, number, head] = hits.get((where, number, head), 0) + good


def _targets(pair):
    reference = pair.reference
    return (reference.antecedent,) if reference.antecedent is not None else reference.deciders

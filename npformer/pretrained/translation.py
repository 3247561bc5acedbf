"""Translation: a translation with its tokens, its probability and its alignment with the source."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from npformer.data.encoding import Encoding
from npformer.generation.beam import Hypothesis
from npformer.generation.scoring import score_ids


class Translation(NamedTuple):
    """A translation with its tokens, its probability and its alignment with the source.

    Attributes:
        text: The translation, as a person writes it.
        tokens: Its T tokens, the end symbol last.
        score: The number by which beam search orders translations: log p, divided by its length norm. For
            greedy search and for a translation that was given, it is log_prob.
        log_prob: log p(translation | source) in nats, the sum of log_probs.
        log_probs: log p(token | tokens before it, source) of the T tokens.
        source_tokens: The S tokens of the source, the end symbol last.
        alignment: For each token, the position of the source token to which it attends most (see `aligned` in
            npformer.generation.scoring). None for a model without encoder-decoder attention.
    """

    text: str
    tokens: list[str]
    score: float
    log_prob: float
    log_probs: list[float]
    source_tokens: list[str]
    alignment: list[int] | None


def describe(
    model: Any,
    sources: Sequence[Encoding],
    hypotheses: Sequence[Sequence[Hypothesis]],
    piece: Callable[[int], str],
    text_of: Callable[[Iterable[int]], str],
) -> list[list[Translation]]:
    """Return the hypotheses of each sentence as Translations, in the same order.

    An empty sentence has an empty translation without tokens, whose probability is 1.

    Args:
        model: The model.
        sources: The tokens of the sentences.
        hypotheses: The hypotheses of each sentence.
        piece: A function that returns the label of a token of the target.
        text_of: A function that returns the text of ids.

    Raises:
        UserError: If the model cannot read a source or a translation.
    """
    end_id = model.config.end_id
    pairs = [(source, found) for source, each in zip(sources, hypotheses, strict=True) for found in each]
    targets = [[*found.ids, end_id] for _, found in pairs]
    scores = iter(score_ids(model, [source.ids for source, _ in pairs], targets))
    described = []
    for source, each in zip(sources, hypotheses, strict=True):
        translations = []
        for found in each:
            log_probs, alignment = next(scores)
            log_prob = math.fsum(log_probs)
            translations.append(
                Translation(
                    text=text_of(found.ids),
                    tokens=[piece(index) for index in [*found.ids, end_id]],
                    score=log_prob if math.isnan(found.score) else found.score,
                    log_prob=log_prob,
                    log_probs=log_probs,
                    source_tokens=source.pieces,
                    alignment=alignment,
                )
            )
        described.append(translations or [Translation("", [], 0.0, 0.0, [], source.pieces, [])])
    return described

"""Fill-in: the words that a MaskedLanguageModel predicts for the gaps of a sentence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import to_numpy
from npformer.data.codecs import TextCodec
from npformer.data.sentences import MASK
from npformer.data.vocabulary import END, SPECIALS
from npformer.errors import UserError
from npformer.functional import softmax


class Gap(NamedTuple):
    """A gap of a sentence and the most probable words for it, best first."""

    place: int  # position of the gap among the words of the sentence, from 0
    words: tuple[str, ...]
    probabilities: tuple[float, ...]


def fill_in(model: Any, codec: TextCodec, text: str, *, k: int = 5) -> list[Gap]:
    """Return the k most probable words for each [MASK] of a sentence, with their probabilities.

        fill_in(model, codec, "the animal didn't cross the [MASK] because it was too tired")

    Special tokens are never proposed.

    Args:
        model: A masked language model.
        codec: The model's codec. [MASK] is the last word of its vocabulary, as with_mask makes it.
        text: The sentence, with [MASK] in place of each word to be found.
        k: The number of words for each gap.

    Raises:
        UserError: If the sentence has no [MASK] or is too long for the model, or k is out of range.
    """
    pieces = text.split(MASK)
    if len(pieces) == 1:
        raise UserError(f"{text!r} has no {MASK}: write it in place of each word to be found")
    vocabulary = codec.vocabulary
    mask_id = vocabulary.id(MASK)
    n_choices = mask_id - len(SPECIALS)  # the words that can be proposed
    if not 1 <= k <= n_choices:
        raise UserError(f"k is {k}: the model knows {n_choices} words, so give 1 to {n_choices}")
    ids = codec.encode(pieces[0])
    for piece in pieces[1:]:
        ids += [mask_id, *codec.encode(piece)]
    logits, _ = model.forward(np.array([[*ids, END]]))  # (1, T, V)
    probabilities, _ = softmax(to_numpy(logits)[0])  # (T, V)
    probabilities[:, : len(SPECIALS)] = probabilities[:, mask_id:] = 0  # special tokens
    best = np.argsort(-probabilities, -1, kind="stable")[:, :k]  # (T, k)
    return [
        Gap(
            place,
            tuple(vocabulary.words[token] for token in best[place]),
            tuple(probabilities[place, best[place]].tolist()),
        )
        for place, token in enumerate(ids)
        if token == mask_id
    ]


def fill_in_table(gaps: Sequence[Gap]) -> str:
    """Return the gaps as plain text: one line for each word, with its probability and a bar."""
    lines = []
    for gap in gaps:
        width = max(map(len, gap.words))
        lines.append(f"word {gap.place + 1}")
        for word, p in zip(gap.words, gap.probabilities, strict=True):
            lines.append(f"  {word:{width}}  {p:6.1%}  {'█' * round(40 * p)}".rstrip())
    return "\n".join(lines)

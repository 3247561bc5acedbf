"""Filling gaps: which words a MaskedWordModel thinks are hidden."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import to_numpy
from npformer.data.sentences import MASK
from npformer.data.vocabulary import END, SPECIALS, TextCodec
from npformer.errors import UserError
from npformer.functional import softmax


class Gap(NamedTuple):
    """A hidden word, and what it may be: the likeliest first."""

    place: int  # which word of the sentence, from 0
    words: tuple[str, ...]
    probabilities: tuple[float, ...]


def fill_in(model: Any, codec: TextCodec, text: str, *, k: int = 5) -> list[Gap]:
    """The k likeliest words for each [MASK] of a sentence, with their probabilities.

        fill_in(model, codec, "the animal didn't cross the [MASK] because it was too tired")

    codec knows [MASK] as its last word, as that of with_mask does. The special words are never proposed.
    Errors: UserError for a sentence without [MASK] or too long for the model, or a k out of range.
    """
    pieces = text.split(MASK)
    if len(pieces) == 1:
        raise UserError(f"{text!r} has no {MASK}: write it where a word is to be found")
    vocabulary = codec.vocabulary
    mask_id = vocabulary.id(MASK)
    n_words = mask_id - len(SPECIALS)  # from which a word can be chosen
    if not 1 <= k <= n_words:
        raise UserError(f"k is {k}: the model knows {n_words} words, so give 1 to {n_words}")
    ids = codec.encode(pieces[0])
    for piece in pieces[1:]:
        ids += [mask_id, *codec.encode(piece)]
    logits, _ = model.forward(np.array([[*ids, END]]))  # (1, T, V)
    probabilities, _ = softmax(to_numpy(logits)[0])  # (T, V)
    probabilities[:, : len(SPECIALS)] = probabilities[:, mask_id:] = 0  # no words that could be hidden
    best = np.argsort(-probabilities, -1, kind="stable")[:, :k]  # (T, k)
    return [
        Gap(
            place,
            tuple(vocabulary.words[word] for word in best[place]),
            tuple(probabilities[place, best[place]].tolist()),
        )
        for place, word in enumerate(ids)
        if word == mask_id
    ]


def fill_in_table(gaps: Sequence[Gap]) -> str:
    """The gaps as plain text: a line a word, with its probability and a bar as long."""
    lines = []
    for gap in gaps:
        width = max(map(len, gap.words))
        lines.append(f"word {gap.place + 1}")
        for word, p in zip(gap.words, gap.probabilities, strict=True):
            lines.append(f"  {word:{width}}  {p:6.1%}  {'█' * round(40 * p)}".rstrip())
    return "\n".join(lines)

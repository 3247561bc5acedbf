"""Fill-in: the words that a masked language model predicts for the gaps of a sentence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import to_numpy
from npformer.data.codecs import TextCodec
from npformer.data.encoding import Encoding, Tokenizer
from npformer.errors import UserError, quantity
from npformer.functional import softmax
from npformer.generation.codec_tokenizers import SentenceTokenizer
from npformer.generation.search import DIVERGED
from npformer.validation import require_count


class Gap(NamedTuple):
    """A gap of a sentence and the most probable words for it, best first."""

    place: int  #: position of the gap among the tokens of the text, from 0; tokens may be words or pieces
    words: tuple[str, ...]
    probabilities: tuple[float, ...]


def fill_in(model: Any, codec: TextCodec, text: str, *, k: int = 5) -> list[Gap]:
    """Return the k most probable words for each [MASK] of a sentence, with their probabilities.

        fill_in(model, codec, "the animal didn't cross the [MASK] because it was too tired")

    Args:
        model: A masked language model.
        codec: The model's codec. [MASK] is the last word of its vocabulary, as with_mask makes it.
        text: The sentence, with [MASK] in place of each word to be found.
        k: The number of words for each gap.

    Raises:
        UserError: As for `fill_gaps`.
    """
    return fill_gaps(model, SentenceTokenizer(codec), text, k=k)


def fill_gaps(model: Any, tokenizer: Tokenizer, text: str, *, k: int = 5) -> list[Gap]:
    """Return the k most probable tokens for each gap of a text, if the model knows all of its words.

    Special tokens are never proposed.

    Args:
        model: A masked language model.
        tokenizer: The model's tokenizer.
        text: The text, with the mask token in place of each word to be found.
        k: The number of tokens for each gap.

    Raises:
        UserError: If the text is empty, has no gap, has a word that the model does not know or is too long
            for the model, if k is out of range, or if the logits are not finite.
    """
    mask = mask_of(tokenizer)
    if not text.strip():
        raise UserError(f"the text {text!r} is empty: write a sentence with {mask} in place of a word")
    unknown = unknown_words(tokenizer, text)
    if unknown:
        words = ", ".join(map(repr, unknown))
        raise UserError(
            f"{text!r} has {quantity(len(unknown), 'word')} that the model has not seen in training "
            f"({words}): replace each by another word, or by {mask}"
        )
    encoding = tokenizer.encode(text)
    _require_room(model, encoding)
    ids, _, offsets = encoding
    if tokenizer.mask_id not in ids:
        raise UserError(f"{text!r} has no {mask}: write it in place of each word to be found")
    special = sorted(tokenizer.special_ids)
    n_choices = model.config.target_vocab - len(special)  # the tokens that can be proposed
    require_count("k", k)
    if k > n_choices:
        raise UserError(f"k is {k}, and the model knows {quantity(n_choices, 'word')}: give 1 to {n_choices}")
    logits, _ = model.forward(np.array([ids]))  # (1, T, V)
    probabilities, _ = softmax(to_numpy(logits)[0])  # (T, V)
    if np.isnan(probabilities).any():  # also of infinite logits
        raise UserError(DIVERGED)
    probabilities[:, special] = 0
    best = np.argsort(-probabilities, -1, kind="stable")[:, :k]  # (T, k)
    first = next(place for place, (start, end) in enumerate(offsets) if end > start)  # after special tokens
    return [
        Gap(
            place - first,
            tuple(tokenizer.piece(token) for token in best[place].tolist()),
            tuple(probabilities[place, best[place]].tolist()),
        )
        for place, token in enumerate(ids)
        if token == tokenizer.mask_id
    ]


def mask_of(tokenizer: Tokenizer) -> str:
    """Return the token that hides a word, as it is written in a text.

    Raises:
        UserError: If the tokenizer has none.
    """
    if tokenizer.mask_id is None:
        raise UserError("the tokenizer has no mask token: use that of a masked language model")
    return tokenizer.piece(tokenizer.mask_id)


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the words of a text that the model does not know, each once, in order."""
    tokens = zip(*tokenizer.encode(text), strict=True)
    unknown = [(piece, place) for index, piece, place in tokens if index == tokenizer.unknown_id]
    # the space before the first word, which some tokenizers add, is not a character of the text
    return list(dict.fromkeys(text[start:end] or piece for piece, (start, end) in unknown))


def _require_room(model: Any, encoding: Encoding) -> None:
    """Raise UserError for a text that is longer than the model."""
    n_added = encoding.offsets.count((0, 0))  # special tokens, such as the end symbol
    n_tokens, most = len(encoding.ids) - n_added, model.config.max_length - n_added
    if n_tokens > most:
        raise UserError(
            f"the text has {quantity(n_tokens, 'token')}, and the model reads at most {most}: shorten it"
        )


def fill_in_table(gaps: Sequence[Gap]) -> str:
    """Return the gaps as plain text: one line for each word, with its probability and a bar."""
    lines = []
    for gap in gaps:
        width = max(map(len, gap.words))
        lines.append(f"word {gap.place + 1}")
        for word, p in zip(gap.words, gap.probabilities, strict=True):
            lines.append(f"  {word:{width}}  {p:6.1%}  {'█' * round(40 * p)}".rstrip())
    return "\n".join(lines)

"""The data of a live page of a GPT, which reads one text of characters and predicts each next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npformer.data.text_codecs import CharacterCodec
from npformer.errors import UserError, quantity
from npformer.explorer.model_data import MOST_CONTINUED, MOST_TOKENS, PageData, model_page
from npformer.generation.codec_tokenizers import LongTextTokenizer
from npformer.pretrained.loaded import TextGenerator

# the signs by which a page shows the characters that one does not see, unless the vocabulary has these signs
_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}


def live_text_data(loaded: TextGenerator, text: str) -> PageData:
    """Return the data of a live page of a GPT of characters.

    Args:
        loaded: A language model for which `model_data.why_not_live` returns None.
        text: The text with which the page begins.

    Raises:
        UserError: If the text is too short or too long, or if the model does not know a character.
    """
    tokenizer = loaded.tokenizer
    assert isinstance(tokenizer, LongTextTokenizer)
    assert isinstance(tokenizer.codec, CharacterCodec)
    characters = tokenizer.codec.tokens
    words: dict[str, Any] = {
        "characters": list(characters),
        "target_words": labels_of(characters),
        "continued": MOST_CONTINUED,
        "example": {"source": text, "target": None, "text_ids": _ids_of(loaded, tokenizer.codec, text)},
    }
    return model_page(loaded, text, words)


def labels_of(characters: Sequence[str]) -> list[str]:
    """Return the characters as a page shows them: a space, a line end and a tab by a sign."""
    taken = set(characters)
    return [_SIGNS[c] if c in _SIGNS and _SIGNS[c] not in taken else c for c in characters]


def _ids_of(loaded: TextGenerator, codec: CharacterCodec, text: str) -> list[int]:
    """Return the ids of a text.

    Raises:
        UserError: If it has fewer than two characters, more than a page has room for, or an unknown one.
    """
    if len(text) < 2:
        raise UserError(
            f"the text {text!r} has {quantity(len(text), 'character')}: give at least two, since each is "
            "predicted from those before it"
        )
    room = min(MOST_TOKENS, loaded.model.config.context)
    if len(text) > room:
        raise UserError(
            f"the text has {quantity(len(text), 'character')}, and a page of this model has room for {room}: "
            "give a shorter one"
        )
    return codec.encode(text)

r"""The pieces of the reader's own text that the tokens of a tokenizer stand for.

A tokenizer changes a text before it splits it: it lowercases letters, composes or strips accents, and spells
characters as bytes. Its tokens are therefore not pieces of the text. This module says which characters of the
text each token comes from, and how to show the token.

A token is shown as its characters of the text. If several tokens share a character, their characters would
look the same, so each of them is shown as its own text: the three bytes of "€" in GPT-2 are `\xe2`, `\x82`
and `\xac`, and each of these tokens comes from the whole character.
"""

import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from npformer.data.encoding import Encoding
from npformer.errors import UserError

WORD_BEGIN = "▁"  # U+2581, which many tokenizers write for a space, and before the first word
NO_CHARACTERS = (0, 0)  # the offsets of a token that the tokenizer adds around a text


class Span(NamedTuple):
    """A token and the characters text[start:stop] that it comes from, before pieces are cut."""

    own_text: str  # what the token stands for, in the tokenizer's spelling
    start: int
    stop: int
    is_added: bool = False  # a special token that is not in the text
    is_written: bool = False  # a special token in the text, which was found before the text was changed


def require_unicode(text: str) -> None:
    """Raise UserError if a text has a lone surrogate, which no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"the text has a lone surrogate, U+{ord(text[error.start]):04X}, at character {error.start}: "
            "replace it by a character of Unicode"
        ) from None


def readable_bytes(data: bytes) -> str:
    r"""Return bytes as text, with Python's escapes, such as `\xe2`, for those of an unfinished character."""
    return data.decode("utf-8", "backslashreplace")


def cut(
    text: str, ids: Sequence[int], spans: Sequence[Span], normalise: Callable[[str], str] | None = None
) -> Encoding:
    """Return the encoding of a text: its ids with the pieces of the text that they stand for.

    Args:
        text: The text.
        ids: The N ids.
        spans: The N tokens with their characters, in the order of the text.
        normalise: What the tokenizer does to a text before it splits it, if the spans do not say which marks
            belong to which letters.
    """
    if normalise is not None:
        spans = _widened_to_clusters(text, spans, normalise)
    pieces = [_piece(text, span, is_shared) for span, is_shared in zip(spans, _shared(spans), strict=True)]
    offsets = [NO_CHARACTERS if span.is_added else (span.start, span.stop) for span in spans]
    return Encoding(list(ids), pieces, offsets)


def _piece(text: str, span: Span, is_shared: bool) -> str:
    """Return a token as a reader sees it."""
    if span.is_added or is_shared:
        return span.own_text
    return text[span.start : span.stop] or WORD_BEGIN


def _shared(spans: Sequence[Span]) -> list[bool]:
    """Return for each token whether it shares a character with the token before it or after it."""
    shared = [False] * len(spans)
    in_text = [i for i, span in enumerate(spans) if not span.is_added and span.start < span.stop]
    for i, j in pairwise(in_text):
        if spans[j].start < spans[i].stop:
            shared[i] = shared[j] = True
    return shared


def _widened_to_clusters(text: str, spans: Sequence[Span], normalise: Callable[[str], str]) -> list[Span]:
    """Widen the spans to whole clusters, a letter with its marks, wherever the tokenizer changes a cluster.

    From "e" and a combining accent, a tokenizer makes one "é" or a bare "e", and says that it comes from the
    letter alone. If it puts several accents in another order, a token may not come from neighbours at all.
    """
    first = list(range(len(text)))  # of the cluster that character i belongs to
    last = list(range(len(text)))
    ends = {end for span in spans if span.is_written for end in (span.start, span.stop)}
    for start, stop in _clusters(text, ends):
        cluster = text[start:stop]
        # some tokenizers put ▁ before a text, and spaces around a Chinese character
        if not normalise(cluster).replace(" ", "").endswith(cluster.replace(" ", "")):
            first[start:stop] = [start] * (stop - start)
            last[start:stop] = [stop - 1] * (stop - start)
    return [
        span
        if span.is_added or span.start == span.stop
        else span._replace(start=first[span.start], stop=last[span.stop - 1] + 1)
        for span in spans
    ]


def _clusters(text: str, ends: set[int]) -> list[tuple[int, int]]:
    """Return where the clusters of two characters or more begin and end; none contains one of the ends."""
    starts = [i for i, character in enumerate(text) if i == 0 or i in ends or not _extends(character)]
    return [(start, stop) for start, stop in pairwise([*starts, len(text)]) if stop - start > 1]


def _extends(character: str) -> bool:
    """Return whether a character forms one letter with that before it: a mark, or a Korean vowel or final."""
    return unicodedata.category(character).startswith("M") or "\u1160" <= character <= "\u11ff"

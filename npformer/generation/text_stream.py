"""The text of tokens that arrive one after another, piece by piece, up to a stop string."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from npformer.errors import UserError

REPLACEMENT = "\ufffd"  # what a codec of bytes returns for the first bytes of a character


class TextStream:
    """Decodes the tokens after a prompt, and returns each piece of text as soon as it is certain.

    A piece is held back while its last character may be incomplete, or while it may be the beginning of a
    stop string. All pieces together are the text before the first stop string.

    Args:
        codec: The codec of the tokens.
        prompt_ids: The ids of the prompt. Its text is not returned.
        stop: Strings that end the text, or one. They may begin in one token and end in another one.
        end_ids: The ids of tokens that end the text, and that do not belong to it.
        marks: The texts of the tokens that `codec.decode` leaves out, by their ids, for a stop string that
            ends with one of them.

    Attributes:
        is_finished: True after a stop string or a token of end_ids, or after `finish`.

    Raises:
        UserError: If a stop string is empty.
    """

    def __init__(
        self,
        codec: Any,
        prompt_ids: Sequence[int],
        stop: str | Sequence[str] = (),
        *,
        end_ids: Container[int] = (),
        marks: Mapping[int, str] | None = None,
    ) -> None:
        stop = (stop,) if isinstance(stop, str) else tuple(stop)
        if "" in stop:
            raise UserError("a stop string is empty: give at least one character, or leave it out")
        self.codec, self.stop, self.end_ids = codec, stop, end_ids
        self.marks = {} if marks is None else marks
        self.is_finished = False
        ids = list(prompt_ids)
        self._ids = ids[-1:]  # the last token whose text is known, then those to decode
        while len(self._ids) < len(ids) and not codec.decode(self._ids):  # special tokens have no text
            self._ids = ids[-len(self._ids) - 1 :]
        self._n_known = len(codec.decode(self._ids))
        self._held = ""  # the beginning of a stop string, perhaps

    def add(self, token: int) -> str:
        """Return the text that has become certain by the next token, and "" after the end of the text."""
        if self.is_finished:
            return ""
        if token in self.end_ids:
            return self.finish()
        self._ids.append(token)
        text = self._decoded()
        if text.endswith(REPLACEMENT):
            return ""
        alone = self.codec.decode([token])
        if alone:
            self._ids, self._n_known = [token], len(alone)
        else:  # a special token: the space of the next word is known from the token before
            self._n_known += len(text)
        return self._before_mark(token) if token in self.marks else self._before_stop(text)

    def _before_mark(self, token: int) -> str:
        """Return the text before a stop string that ends with a special token, or "" if none does."""
        seen = self._held + self.marks[token]
        places = [place for place in map(seen.find, self.stop) if place >= 0]
        if not places:
            return ""
        self.is_finished, held = True, self._held
        self._held = ""
        return held[: min(places)]

    def finish(self) -> str:
        """Return the text that was held back, since no token follows."""
        if self.is_finished:
            return ""
        text = self._before_stop(self._decoded()) + self._held
        self.is_finished = True
        return text

    def _decoded(self) -> str:
        """Return the text of the tokens to decode.

        They are decoded together with the token before them, since the first word after the end of a line has
        no space.
        """
        text: str = self.codec.decode(self._ids)
        return text[self._n_known :]

    def _before_stop(self, text: str) -> str:
        """Append a text to the one that is held back, and return what is certain to come before a stop."""
        text = self._held + text
        places = [place for place in map(text.find, self.stop) if place >= 0]
        if places:
            self.is_finished, self._held = True, ""
            return text[: min(places)]
        cut = len(text) - max((_overlap(text, stop) for stop in self.stop), default=0)
        self._held = text[cut:]
        return text[:cut]


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text with which a stop string begins."""
    longest = min(len(text), len(stop))
    return next(n for n in range(longest, -1, -1) if text.endswith(stop[:n]))

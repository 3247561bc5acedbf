"""The text of tokens that arrive one after another, piece by piece, up to a stop string."""

from collections.abc import Sequence
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
        stop: Strings that end the text. They may begin in one token and end in another one.

    Attributes:
        is_finished: True after a stop string, or after `finish`.

    Raises:
        UserError: If a stop string is empty.
    """

    def __init__(self, codec: Any, prompt_ids: Sequence[int], stop: Sequence[str] = ()) -> None:
        if "" in stop:
            raise UserError("a stop string is empty: give at least one character, or leave it out")
        self.codec, self.stop = codec, tuple(stop)
        self.is_finished = False
        self._ids = list(prompt_ids)[-1:]  # the last token whose text is known, then those to decode
        self._n_known = len(codec.decode(self._ids))
        self._held = ""  # the beginning of a stop string, perhaps

    def add(self, token: int) -> str:
        """Return the text that has become certain by the next token, and "" after a stop string."""
        if self.is_finished:
            return ""
        self._ids.append(token)
        text = self._decoded()
        if text.endswith(REPLACEMENT):
            return ""
        self._ids = [token]
        self._n_known = len(self.codec.decode(self._ids))
        return self._before_stop(text)

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

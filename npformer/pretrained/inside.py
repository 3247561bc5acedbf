"""The methods `lens`, `attribution` and `patch` of the models that npformer.load returns, for texts."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.encoding import Tokenizer
from npformer.errors import UserError, quantity
from npformer.lenses.attribution import LogitAttribution, attribution_of
from npformer.lenses.logit_lens import K, Lens, lens_of
from npformer.lenses.patching import Patching, patching_of
from npformer.lenses.taps import Output
from npformer.validation import require_index, short


class Reading(NamedTuple):
    """A text as a model reads it, and what it predicts."""

    ids: list[Array]  # of each input of the model, (1, T)
    tokens: list[list[str]]  # the labels of the tokens of each input
    predicted: list[int]  # the id of the token that is predicted at each position of the last input
    usual: Callable[[], int]  # returns the position that is explained if the caller gives none


class Inside:
    """A trained model that can be asked what happens between its layers.

    The subclasses say how they read a text.
    """

    model: Any

    def lens(self, text: str, *, k: int = K, **search: Any) -> Lens:
        """Return what the model would predict if it ended after each of its layers (the logit lens).

        `.table()` and `.plot()` show it. A translator reads the text and its translation, and the layers are
        those of its decoder.

        Args:
            text: The text, or the sentence to translate.
            k: The number of tokens that are kept for each layer and position.
            search: For a translator, settings of the search, as in `translate`, without n_best and form.

        Raises:
            UserError: If the text is empty or too long for the model, or if the model has no such layers.
        """
        reading = self._reading(text, **search)
        return lens_of(self.model, reading.ids, reading.tokens[-1], self._writes.piece, k=k)

    def attribution(
        self,
        text: str,
        *,
        target: str | None = None,
        versus: str | None = None,
        position: int | None = None,
        **search: Any,
    ) -> LogitAttribution:
        """Return what each head, each feed-forward network and the biases add to the logit of a token.

        `.table()` and `.plot()` show it. The statistics of norms count as constants, and the numbers are
        computed in float64. A translator reads the text and its translation, and the parts are those of its
        decoder. For a BERT, the parts add up before its head, which is not linear.

        Args:
            text: The text, or the sentence to translate.
            target: The token. By default, the one that the model predicts at the position.
            versus: Explain the logit of the target minus that of this token.
            position: The position of the prediction, from 0. By default, a language model predicts at the
                last token, a masked language model at the first gap, and a translator where its translation
                has the target, or at the first token.
            search: For a translator, settings of the search, as in `translate`, without n_best and form.

        Raises:
            UserError: If the text is empty or too long for the model, if the model has no such layers, if a
                token is not in its vocabulary, or if there is no such position.
        """
        reading = self._reading(text, **search)
        token = None if target is None else self._token(target)
        position = self._usual_place(reading, token) if position is None else position
        token = self._predicted(reading, position) if token is None else token
        other = None if versus is None else self._token(versus)
        explained = " − ".join(self._writes.piece(each) for each in (token, other) if each is not None)
        return attribution_of(self.model, reading.ids, Output(position, token), explained, versus=other)

    def patch(
        self,
        text: str,
        other_text: str,
        *,
        what: str = "layers",
        target: str | None = None,
        versus: str | None = None,
        position: int | None = None,
        **search: Any,
    ) -> Patching:
        """Return which activation carries the difference between two texts (activation patching).

        One activation after the other is taken from the run on the other text, and the change of the score is
        measured: the logit of `target` minus that of `versus`. `.table()` shows the changes, and `.plot()`
        draws them beside the estimates of first order (attribution patching). A translator reads both texts
        with the beginning of the translation of the first one.

        Args:
            text: The text, or the sentence to translate.
            other_text: Another text with the same number of tokens.
            what: "layers" for the vector of a token after a layer, "attention" or "feed-forward" for the
                output of such a part at a token, or "heads" for a head at all tokens.
            target: By default, the token that the model predicts for the text.
            versus: By default, the token that it predicts for the other text, if that is another one.
            position: The position of the prediction, from 0. By default, a language model predicts at the
                last token, a masked language model at the first gap, and a translator where the two
                translations first differ.
            search: For a translator, settings of the search, as in `translate`, without n_best and form.

        Raises:
            UserError: If the texts have different numbers of tokens or the same tokens, if one is empty or
                too long for the model, if the model has no such layers, if a token is not in its vocabulary,
                or if there is no such position.
        """
        own, other = self._reading(text, **search), self._reading(other_text, **search)
        position = self._differs(own, other) if position is None else position
        token = self._predicted(own, position) if target is None else self._token(target)
        against = self._against(other, position, token) if versus is None else self._token(versus)
        return patching_of(
            self.model,
            own.ids,
            [other.ids[0], *own.ids[1:]],
            Output(position, token),
            against,
            tokens=own.tokens,
            labels=(self._writes.piece(token), None if against is None else self._writes.piece(against)),
            what=what,
        )

    @property
    def _writes(self) -> Tokenizer:
        """The tokenizer of the tokens that the model predicts."""
        raise NotImplementedError

    def _reading(self, text: str, **search: Any) -> Reading:
        """Return the text as the model reads it."""
        raise NotImplementedError

    def _usual_place(self, reading: Reading, token: int | None) -> int:
        """Return the position at which a token, or any token, is explained if the caller gives none."""
        return reading.usual()

    def _differs(self, own: Reading, other: Reading) -> int:
        """Return the position at which two texts are compared if the caller gives none."""
        return own.usual()

    def _predicted(self, reading: Reading, position: int) -> int:
        """Return the token that the model predicts at a position, or raise UserError if there is none."""
        require_index("position", position, len(reading.predicted))
        return reading.predicted[position]

    def _against(self, other: Reading, position: int, token: int) -> int | None:
        """Return the token that the model predicts for the other text, or None if it is the same one."""
        found = other.predicted[position] if position < len(other.predicted) else token
        return None if found == token else found

    def _token(self, target: str) -> int:
        """Return the id of the only token of a text, or of the token with this label, special tokens aside.

        A part of a word, such as "·graph", can be given by its label only.
        """
        if not isinstance(target, str):
            raise UserError(f"the target is {short(target)}: give a string")
        tokenizer, special = self._writes, self._writes.special_ids
        encoded = tokenizer.encode(target).ids
        ids = [index for index in encoded if index not in special]
        is_known = tokenizer.unknown_id not in encoded
        if is_known and len(ids) == 1:
            return ids[0]
        for index in range(self.model.config.target_vocab):
            if index not in special and tokenizer.piece(index) == target:
                return index
        if not is_known:
            raise UserError(f"the vocabulary of this model lacks the target {target!r}: give another token")
        count = quantity(len(ids), "token") if ids else "no token"
        raise UserError(f"the target {target!r} is {count} of this model: give a text of one token")


def most_probable(logits: Array, special: Iterable[int]) -> list[int]:
    """Return the most probable token at each position, special tokens aside. Shapes: (T, V) -> T ids."""
    logits = logits.copy()
    logits[:, sorted(special)] = -np.inf
    ids: list[int] = logits.argmax(-1).tolist()
    return ids

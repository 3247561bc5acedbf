"""TextModel, the base class of the trained models that read one text."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.data.encoding import Encoding, Tokenizer
from npformer.errors import UserError
from npformer.escaping import printable
from npformer.generation.fill_in import unknown_words
from npformer.lenses.logit_lens import layer_outputs
from npformer.lenses.taps import without_logits
from npformer.models.bert import Bert
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.registry import attention_arrays
from npformer.pretrained.attention import TextAttention, attention_of_text
from npformer.pretrained.input_gradients import ScoredOutput
from npformer.pretrained.inside import Inside, Reading, most_probable
from npformer.pretrained.saliency import MOST_POINTS, TOLERANCE, Inputs, Saliency, saliency_of
from npformer.validation import require_index, short

if TYPE_CHECKING:
    from npformer.explorer import Page


class Kind(NamedTuple):
    """A kind of trained model, in the words of messages."""

    noun: str  # such as "translator"
    work: str  # what it does, as in "cannot translate"
    command: str  # the command that does this
    maker: str  # the command that trains one


class TextModel(Inside):
    """A trained model that reads one text, with its tokenizer: with a head or without one.

    Attributes:
        name: The name, folder or file that it was loaded from.
        model: The model.

    Args:
        name: The name.
        model: The model.
        make_tokenizer: A function that returns the tokenizer of the model.
    """

    kind: ClassVar[Kind]
    model: GPT | Bert

    def __init__(self, name: str, model: Any, make_tokenizer: Callable[[], Tokenizer]) -> None:
        self.name, self.model, self._make_tokenizer = name, model, make_tokenizer

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer. It is made at its first use, so that arrays of ids need neither its files nor it."""
        return self._make_tokenizer()

    def logits(self, ids: Any, *, mask: Any = None) -> Array:
        """Return the logits at each position. Shapes: ids (B, T) -> logits (B, T, V), on the host.

        Args:
            ids: The ids. A BERT attends to no id that is that of padding, wherever it stands.
            mask: For a BERT, bool (B, T) in place of this rule: True at the ids to which others may attend.

        Raises:
            UserError: If the model cannot read the ids.
        """
        return to_numpy(self.model(ids, **self._masked(mask)))

    def hidden_states(self, text: Any, *, mask: Any = None) -> Array:
        """Return the vectors of the tokens after the embedding and after each layer.

        The last ones are those that a head reads: after the last norm, if the model has one.

        Args:
            text: The text, or ids of shape (B, T).
            mask: As for `logits`.

        Returns:
            An array of shape (L + 1, T, D) for a text, and (L + 1, B, T, D) for ids.

        Raises:
            UserError: If the text is empty, or if the model cannot read the text or the ids.
        """
        ids: Any = [self._encoded(text, most=self._longest).ids] if isinstance(text, str) else text
        states = np.stack([to_numpy(x) for x in layer_outputs(self.model, [ids], **self._masked(mask))])
        return states[:, 0] if isinstance(text, str) else states

    @overload
    def attention(self, text: str) -> TextAttention: ...

    @overload
    def attention(self, text: Any) -> dict[str, Array]: ...

    def attention(self, text: Any) -> TextAttention | dict[str, Array]:
        """Return the attention weights of every layer and head, for a text or for an array of ids.

        Args:
            text: The text, or ids of shape (B, T).

        Returns:
            For a text, the weights with its tokens; `.plot()` draws them. For ids, the dict
            {"self": weights} with an array of shape (L, B, H, T, T).

        Raises:
            UserError: If the text is empty, or if the model cannot read the text or the ids.
        """
        if isinstance(text, str):
            return attention_of_text(self.model, text, self._encoded(text, most=self._longest))
        _, cache = without_logits(self.model).forward(text)
        return attention_arrays(cache)

    def saliency(
        self,
        text: str,
        *,
        target: str | None = None,
        position: int | None = None,
        score: str = "log-probability",
        method: str = "integrated",
        tolerance: float = TOLERANCE,
        most_points: int = MOST_POINTS,
    ) -> Saliency:
        """Return how much each token of a text contributes to the score of an output token.

        Args:
            text: The text.
            target: The output token. By default, the most probable one at the position.
            position: The position among the tokens of the text, from 0, at which it is predicted. By default,
                a language model predicts at the last token, and a masked language model at the first gap.
            score: "log-probability" or "logit".
            method: "integrated" for integrated gradients, or "gradient" for gradient × input.
            tolerance: The largest error of the sum of integrated gradients, in units of the score.
            most_points: The largest number of points of integrated gradients.

        Raises:
            UserError: If the model cannot read the text, if the target is not one token of the model, or if a
                setting is impossible.
        """
        encoding = self._encoded(text, most=self._longest)
        if position is None:
            position = self._usual_position(text, encoding)
        require_index("position", position, len(encoding.ids))
        token = self._most_probable(encoding, position) if target is None else self._token(target)
        return saliency_of(
            self.model,
            {"text": Inputs(encoding.ids, encoding.pieces)},
            ScoredOutput(position, token, score),
            self.tokenizer.piece(token),
            method=method,
            tolerance=tolerance,
            most_points=most_points,
        )

    def explore(self, text: str | Sequence[str], filled: str | None = None) -> "Page":
        """Return a page on which one follows every number of the model, forward and backward.

        `.save(FILE)` writes the page, which opens offline in a browser. A notebook shows it in a frame.

        Args:
            text: The text, or several, of which the page shows the first one at first.
            filled: For a masked language model, the text with its gaps filled, for the loss. By default, the
                model fills them. A language model predicts the next tokens of the text itself.

        Raises:
            UserError: If a text is empty or too long for a page, or if the model does not know a word.
        """
        from npformer.explorer import explore  # a method for the user's convenience reaches upward

        loaded: Any = self  # one of the subclasses below
        return explore(loaded, text, filled)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that the model does not know, each once, in order."""
        return unknown_words(self.tokenizer, as_text(text))

    def _masked(self, mask: Any) -> dict[str, Any]:
        """Return the keyword of the model for a mask that was given.

        Raises:
            UserError: If the model takes none.
        """
        if mask is not None and not isinstance(self.model, Bert):
            raise UserError("a mask was given to a model that reads from left to right: leave it out")
        return {} if mask is None else {"mask": mask}

    def _usual_position(self, text: str, encoding: Encoding) -> int:
        """Return the position at which the output is explained if the caller gives none."""
        raise NotImplementedError

    @property
    def _longest(self) -> int:
        """The largest number of tokens that the model reads."""
        config = self.model.config
        return config.context if isinstance(config, GPTConfig) else config.max_length

    def _encoded(self, text: str, *, most: int | None = None) -> Encoding:
        """Return the tokens of a text, or raise UserError if there are none or more than `most`."""
        encoding = self.tokenizer.encode(as_text(text))
        if not encoding.ids:
            raise UserError(f"the text {text!r} is empty: give at least one token")
        if most is not None and len(encoding.ids) > most:
            raise UserError(
                f"the text has {len(encoding.ids)} tokens, and the model reads {most} at most: shorten it"
            )
        return encoding

    def _most_probable(self, encoding: Encoding, position: int) -> int:
        """Return the most probable token at a position, special tokens aside."""
        logits = self.logits([encoding.ids])[0, position : position + 1]  # (1, V)
        return most_probable(logits, self.tokenizer.special_ids)[0]

    @property
    def _writes(self) -> Tokenizer:
        return self.tokenizer

    def _reading(self, text: str, **search: Any) -> Reading:
        if search:
            raise UserError(f"a {self.kind.noun} has no setting {', '.join(search)}: leave it out")
        encoding = self._encoded(text, most=self._longest)
        ids = np.array([encoding.ids])
        predicted = most_probable(self.logits(ids)[0], self.tokenizer.special_ids)
        return Reading([ids], [encoding.pieces], predicted, partial(self._usual_position, text, encoding))

    def __repr__(self) -> str:
        kind, count = type(self.model).__name__, self.model.count_parameters()
        return f"<{self.kind.noun} {printable(self.name)}: {kind} with {count:,} parameters>"


def as_text(text: Any) -> str:
    """Return a text, or raise UserError for anything else, such as ids."""
    if not isinstance(text, str):
        raise UserError(f"the text is {short(text)}: give a string")
    return text


def as_texts(text: Any) -> list[str]:
    """Return a text or several texts as a list, or raise UserError for anything else."""
    alone = isinstance(text, str | bytes) or not np.iterable(text)
    return [as_text(each) for each in ([text] if alone else text)]

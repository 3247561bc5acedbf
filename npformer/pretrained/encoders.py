"""TextEncoder and TextClassifier: trained models that read a text, and predict no tokens."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.data.encoding import Encoding, Tokenizer
from npformer.errors import UserError, did_you_mean
from npformer.functional import softmax
from npformer.models.bert import Bert
from npformer.pretrained.input_gradients import Output
from npformer.pretrained.inside import Reading
from npformer.pretrained.saliency import MOST_POINTS, TOLERANCE, Inputs, Saliency, saliency_of
from npformer.pretrained.text_model import Kind, TextModel, as_text


class ClassProbability(NamedTuple):
    """A class and its probability."""

    label: str
    probability: float


class _WithoutTokens(TextModel):
    """A model that reads a text and has no head that predicts tokens."""

    def _usual_position(self, text: str, encoding: Encoding) -> int:
        return 0

    def _reading(self, text: str, **search: Any) -> Reading:
        """Refuse what asks for predicted tokens: lens, attribution and patch."""
        self._refuse("predict tokens")

    def _refuse(self, work: str) -> NoReturn:
        raise UserError(
            f"{self.name} is a {self.kind.noun}, which cannot {work}: use its attention, "
            "hidden states and saliency, or give a model with a head that predicts tokens"
        )


class TextEncoder(_WithoutTokens):
    """A trained encoder without a head, with its tokenizer, as `npformer.load` returns it.

    It has attention weights and hidden states. `model.forward(ids)` returns the last hidden states, of
    shape (B, T, D), and `model.backward` takes their gradient.
    """

    kind = Kind(
        "text encoder without a head",
        "give hidden states alone",
        "npformer attention",
        "transformers",
    )

    def logits(self, ids: Any, *, mask: Any = None) -> Array:
        """Raise UserError, since there is no head.

        Args:
            ids, mask: As for other models.
        """
        self._refuse("give logits")

    def saliency(self, text: str, **settings: Any) -> Saliency:
        """Raise UserError, since there is no output token.

        Args:
            text: The text.
            settings: As for other models.
        """
        self._refuse("explain an output token")


class TextClassifier(_WithoutTokens):
    """A trained classifier of texts or of tokens, with its tokenizer, as `npformer.load` returns it.

    Attributes:
        labels: The names of the C classes.

    Args:
        name, model, make_tokenizer: As for TextModel.
        labels: The names of the classes.
    """

    kind = Kind("classifier", "name a class", "npformer attention", "a head of transformers")
    model: Bert

    def __init__(
        self, name: str, model: Any, make_tokenizer: Callable[[], Tokenizer], labels: Sequence[str]
    ) -> None:
        super().__init__(name, model, make_tokenizer)
        self.labels = list(labels)

    @property
    def reads_tokens(self) -> bool:
        """True if each token has a class, and not the text."""
        return self.model.config.head == "token classes"

    def classify(self, text: str) -> Any:
        """Return the classes of a text with their probabilities, the most probable one first.

        Args:
            text: The text.

        Returns:
            A list of ClassProbability; for a classifier of tokens a list of pairs, the piece of each token
            and such a list.

        Raises:
            UserError: If the text is empty or too long for the model.
        """
        encoding = self._encoded(text, most=self._longest)
        p = softmax(self.logits([encoding.ids]).astype(np.float64))[0][0]  # (C,) or (T, C)
        if not self.reads_tokens:
            return self._ranked(p)
        return [(piece, self._ranked(row)) for piece, row in zip(encoding.pieces, p, strict=True)]

    def _ranked(self, p: Array) -> list[ClassProbability]:
        order = np.argsort(-p, kind="stable").tolist()
        return [ClassProbability(self.labels[index], float(p[index])) for index in order]

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
        """Return how much each token of a text contributes to the score of a class.

        Args:
            text: The text.
            target: The name of the class. By default, the most probable one.
            position: For a classifier of tokens, the position of the token, from 0; by default 0.
            score: "log-probability" or "logit".
            method: "integrated" for integrated gradients, or "gradient" for gradient × input.
            tolerance: The largest error of the sum of integrated gradients, in units of the score.
            most_points: The largest number of points of integrated gradients.

        Raises:
            UserError: If the model cannot read the text, if it has no such class or position, or if a setting
                is impossible.
        """
        encoding = self._encoded(as_text(text), most=self._longest)
        place = self._place(position, len(encoding.ids))
        logits = to_numpy(self.model([encoding.ids]))[0]  # (C,) or (T, C)
        row = logits[place] if self.reads_tokens else logits
        number = int(row.argmax()) if target is None else self._class(target)
        return saliency_of(
            self.model,
            {"text": Inputs(encoding.ids, encoding.pieces)},
            Output(place, number, score),
            self.labels[number],
            method=method,
            tolerance=tolerance,
            most_points=most_points,
        )

    def _place(self, position: int | None, n_tokens: int) -> int:
        """Return the position of the class, which is 0 for a text."""
        if position is not None and not self.reads_tokens:
            raise UserError("position is for a classifier of tokens, and this one is of texts: leave it out")
        if position is not None and not 0 <= position < n_tokens:
            raise UserError(f"position is {position}: the text has positions 0 .. {n_tokens - 1}")
        return position or 0

    def _class(self, target: str) -> int:
        if target not in self.labels:
            raise UserError(f"{target!r} is not a class of this model: {did_you_mean(target, self.labels)}")
        return self.labels.index(target)

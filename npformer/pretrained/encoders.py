"""TextEncoder and TextClassifier: trained models that read a text, and predict no tokens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, overload

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.data.encoding import Encoding, Tokenizer
from npformer.errors import UserError, did_you_mean
from npformer.functional import softmax
from npformer.interop.sentence_files import MODES, Pooling
from npformer.models.bert import Bert
from npformer.pretrained.input_gradients import ScoredOutput
from npformer.pretrained.inside import Reading
from npformer.pretrained.saliency import MOST_POINTS, TOLERANCE, Inputs, Saliency, saliency_of
from npformer.pretrained.similarity import SimilarityTo, pool
from npformer.pretrained.text_model import Kind, TextModel, as_text, as_texts
from npformer.validation import require_choice, require_index, require_name

BATCH = 32  # texts that are embedded together


class ClassProbability(NamedTuple):
    """A class and its probability."""

    label: str
    probability: float


def class_probabilities(logits: Array, labels: Sequence[str]) -> list[ClassProbability]:
    """Return the classes with their probabilities, the most probable one first.

    Args:
        logits: The logits of the classes, of shape (C,).
        labels: The names of the C classes.

    Raises:
        UserError: If there is one class, whose probability would always be 1.
    """
    if len(labels) == 1:
        raise UserError("this model has one class, whose probability would always be 1: use its logits")
    p, _ = softmax(logits.astype(np.float64))  # (C,)
    order = np.argsort(-p, kind="stable").tolist()
    return [ClassProbability(labels[index], float(p[index])) for index in order]


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

    It has attention weights, hidden states and vectors of texts. `model.forward(ids)` returns the last hidden
    states, of shape (B, T, D), and `model.backward` takes their gradient.

    Args:
        name, model, make_tokenizer: As for TextModel.
        read_pooling: A function that returns the pooling of the folder, or None if it says none.
    """

    kind = Kind(
        "text encoder without a head",
        "give hidden states alone",
        "npformer attention",
        "transformers",
    )

    def __init__(
        self,
        name: str,
        model: Any,
        make_tokenizer: Callable[[], Tokenizer],
        read_pooling: Callable[[], Pooling | None] | None = None,
    ) -> None:
        super().__init__(name, model, make_tokenizer)
        self._read_pooling = read_pooling

    def logits(self, ids: Any, *, mask: Any = None) -> Array:
        """Raise UserError, since there is no head.

        Args:
            ids, mask: As for other models.
        """
        self._refuse("give logits")

    @cached_property
    def pooling(self) -> Pooling | None:
        """The way in which the folder makes one vector of a text, or None if it says none.

        Raises:
            UserError: If it asks for something that npformer does not have.
        """
        return None if self._read_pooling is None else self._read_pooling()

    @overload
    def embed(self, texts: str, *, pooling: str | None = None) -> Array: ...

    @overload
    def embed(self, texts: Sequence[str], *, pooling: str | None = None) -> Array: ...

    def embed(self, texts: str | Sequence[str], *, pooling: str | None = None) -> Array:
        """Return one vector for each text, as the folder of sentence-transformers says.

        Args:
            texts: A text, or a list of texts.
            pooling: "mean" for the mean of the vectors of the tokens, or "cls" for that of the first one. By
                default, what the folder says.

        Returns:
            The vectors, of shape (N, D), or (D,) for a text that is no list.

        Raises:
            UserError: If a text is empty or too long, or if the folder says no pooling and none is given.
        """
        rule, found = self._rule(pooling), []
        encoder: Any = self.model  # a Bert, or _rule would have refused it
        every = [self._ids(text, rule) for text in as_texts(texts)]
        for start in range(0, len(every), BATCH):
            rows = every[start : start + BATCH]
            longest = max(map(len, rows))
            pad_id = self.model.config.pad_id or 0
            ids = np.array([row + [pad_id] * (longest - len(row)) for row in rows])  # (B, T)
            mask = np.arange(longest) < np.array([[len(row)] for row in rows])  # (B, T)
            x, _ = encoder.forward(ids, mask=mask)  # (B, T, D)
            found.append(pool(to_numpy(x), mask, rule.mode)[0])  # (B, D)
        vectors = (
            np.concatenate(found)
            if found
            else np.zeros((0, self.model.config.d_model), encoder.reference.dtype)
        )
        if rule.normalize:
            vectors = vectors / np.sqrt((vectors * vectors).sum(-1, keepdims=True))
        return vectors[0] if isinstance(texts, str) else vectors

    def similarity(self, text: str, other: str, *, pooling: str | None = None) -> float:
        """Return the cosine of the angle between the vectors of two texts.

        Args:
            text, other: The texts.
            pooling: As for `embed`.

        Raises:
            UserError: As for `embed`.
        """
        a, b = self.embed([text, other], pooling=pooling).astype(np.float64)
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    def saliency(
        self, text: str, other: str | None = None, *, pooling: str | None = None, **settings: Any
    ) -> Saliency:
        """Return how much each token of a text contributes to its similarity to another text.

        The sum of all contributions is the similarity minus that of a text whose token vectors are 0.

        Args:
            text: The text.
            other: The text to which it is similar, and which stays as it is.
            pooling: As for `embed`.
            settings: method, tolerance and most_points, as for other models.

        Raises:
            UserError: As for `embed`, if there is no second text, or if a setting is unknown or impossible.
        """
        if other is None:
            raise UserError(
                f"{self.name} is a {self.kind.noun}, which predicts no token to explain: give a second text, "
                "and it explains why the first one is similar to it"
            )
        for name in settings:
            require_name(name, ("method", "tolerance", "most_points"), "setting")
        rule = self._rule(pooling)
        prepared = self._prepared(text, rule)
        inputs = Inputs(self._ids(text, rule), self.tokenizer.encode(prepared).pieces)
        encoder: Any = self.model
        model: Any = SimilarityTo(encoder, rule.mode, self.embed(as_text(other), pooling=pooling))
        settings = {"tolerance": TOLERANCE / 10} | settings  # a similarity is between -1 and 1
        found = saliency_of(model, {"text": inputs}, ScoredOutput(0, 0, "logit"), other, **settings)
        return replace(found, score="similarity")

    def _rule(self, mode: str | None) -> Pooling:
        """Return the pooling that the caller gave, or that of the folder.

        Raises:
            UserError: If there is none.
        """
        if not isinstance(self.model, Bert):
            raise UserError(
                f"{self.name} reads from left to right, and has no vector of a text: use its hidden states"
            )
        if mode is not None:
            require_choice("pooling", mode, tuple(MODES.values()))
        own = self.pooling
        if own is None and mode is None:
            raise UserError(
                f"{self.name} has no modules.json, which says how vectors of tokens become one vector: give "
                'pooling="mean" or pooling="cls"'
            )
        own = Pooling("mean") if own is None else own
        return own if mode is None else own._replace(mode=mode)

    def _prepared(self, text: str, rule: Pooling) -> str:
        """Return a text as the tokenizer reads it."""
        text = rule.prompt + as_text(text)
        return text.lower() if rule.lowercase else text

    def _ids(self, text: str, rule: Pooling) -> list[int]:
        """Return the ids of a text."""
        most = self._longest if rule.longest is None else min(self._longest, rule.longest)
        return self._encoded(self._prepared(text, rule), most=most).ids


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
            UserError: If the text is empty or too long for the model, or if the model has a single class.
        """
        encoding = self._encoded(text, most=self._longest)
        logits = self.logits([encoding.ids])[0]  # (C,) or (T, C)
        if not self.reads_tokens:
            return class_probabilities(logits, self.labels)
        rows = zip(encoding.pieces, logits, strict=True)
        return [(piece, class_probabilities(row, self.labels)) for piece, row in rows]

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
            ScoredOutput(place, number, score),
            self.labels[number],
            method=method,
            tolerance=tolerance,
            most_points=most_points,
        )

    def _place(self, position: int | None, n_tokens: int) -> int:
        """Return the position of the class, which is 0 for a text."""
        if position is not None and not self.reads_tokens:
            raise UserError("position is for a classifier of tokens, and this one is of texts: leave it out")
        return 0 if position is None else require_index("position", position, n_tokens)

    def _class(self, target: str) -> int:
        if as_text(target) not in self.labels:
            raise UserError(f"{target!r} is not a class of this model: {did_you_mean(target, self.labels)}")
        return self.labels.index(target)

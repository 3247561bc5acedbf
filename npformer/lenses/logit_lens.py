"""The logit lens: what a model would predict if it ended after each of its layers.

Every layer of a Transformer adds to one vector for each token, and after the last layer the output matrix
turns this vector into logits. The lens applies the last norm and the output matrix to the vectors after every
layer. Nothing trained the earlier layers to be read in this way, so what the lens shows there is a hint and
no proof.

Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.escaping import token_label
from npformer.functional.softmax import softmax
from npformer.generation.search import require_finite
from npformer.lenses.tables import columns_of_text
from npformer.lenses.taps import last_stack, predict, require_logits, tap_layers, watchable, without_logits
from npformer.validation import require_count, require_index

if TYPE_CHECKING:
    from npformer.plots import Figure

K = 5  # predictions of each layer that a Lens keeps


@dataclass(frozen=True, eq=False)
class Lens:
    """The predictions after the embedding and after each of L layers, at T positions.

    Attributes:
        tokens: The T tokens that the model reads.
        predictions: The K most probable tokens, predictions[row][position][rank]; row 0 is the embedding, and
            row l + 1 is layer l.
        ids: Their ids, of shape (L + 1, T, K).
        probabilities: Their probabilities, of shape (L + 1, T, K).
    """

    tokens: list[str]
    predictions: list[list[list[str]]]
    ids: Array
    probabilities: Array

    @property
    def rows(self) -> list[str]:
        """The names of the rows: "embedding", "layer 0", "layer 1", ..."""
        return ["embedding", *(f"layer {layer}" for layer in range(len(self.ids) - 1))]

    @property
    def decided(self) -> Array:
        """The first row from which on the most probable token stays that of the model, of shape (T,)."""
        differs = self.ids[:, :, 0] != self.ids[-1, :, 0]  # (L + 1, T)
        # one row after the last one that differs, which the flipped rows have first
        return np.where(differs.any(0), len(differs) - np.argmax(differs[::-1], 0), 0)

    def table(self, position: int | None = None) -> str:
        """Return the predictions as plain text.

        Args:
            position: Show the K most probable tokens of every row at this position, from 0. By default, there
                is a line for each position: the prediction, the row that decides it, and what the rows before
                would predict.

        Raises:
            UserError: If there is no such position.
        """
        if position is None:
            return columns_of_text(
                ["reads", "predicts", "p", "decided by", "before"], map(self._line, range(len(self.tokens)))
            )
        require_index("position", position, len(self.tokens))
        lines = [
            [
                name,
                *(
                    f"{token_label(token)} {p:.2f}"
                    for token, p in zip(tokens[position], ps[position], strict=True)
                ),
            ]
            for name, tokens, ps in zip(self.rows, self.predictions, self.probabilities, strict=True)
        ]
        return columns_of_text(["after", "most probable tokens", *[""] * (self.ids.shape[2] - 1)], lines)

    def _line(self, position: int) -> list[str]:
        """Return the line of a position in the table: what changed from row to row, oldest first."""
        first = int(self.decided[position])
        best = [row[position][0] for row in self.predictions]
        before = [best[row] for row in range(first) if not row or best[row] != best[row - 1]]
        return [
            token_label(self.tokens[position]),
            token_label(best[-1]),
            f"{self.probabilities[-1, position, 0]:.2f}",
            self.rows[first],
            ", ".join(map(token_label, before)),
        ]

    def plot(self) -> Figure:
        """Draw the most probable token of every row and position, coloured by its probability.

        Characters that no installed font has are written as code points, such as U+6211.

        Raises:
            UserError: If there are too many tokens or layers for a picture.
        """
        from npformer import plots  # matplotlib takes a second to load
        from npformer.plots.style import drawable

        best = [drawable([tokens[0] for tokens in row]) for row in self.predictions]
        return plots.prediction_grid(self.probabilities[:, :, 0], best, self.rows, drawable(self.tokens))

    def __repr__(self) -> str:
        return f"<lens: {len(self.ids) - 1} layers, {len(self.tokens)} tokens>"


def lens_of(model: Any, ids: Sequence[Array], tokens: Sequence[str], label: Any, *, k: int = K) -> Lens:
    """Return the predictions of every layer of a model.

    Args:
        model: A GPT, a Bert or a Transformer.
        ids: The ids of each of its inputs, of shape (1, T).
        tokens: The labels of the T tokens at which it predicts.
        label: A function that returns the label of the token with an id.
        k: The number of tokens that are kept for each layer and position.

    Raises:
        UserError: If the model has no layers of this kind or no logits of tokens, if it cannot read the ids,
            if its logits are not finite, or if k is impossible.
    """
    require_count("k", k)
    require_logits(model)
    found = []
    for logits in layer_logits(model, ids):
        require_finite(logits)
        best = np.argsort(-logits, -1, kind="stable")[:, :k]  # (T, K)
        found.append((best, np.take_along_axis(softmax(logits)[0], best, -1)))
    best_ids, probabilities = (np.array(each) for each in zip(*found, strict=True))  # (L + 1, T, K)
    predictions = [[[label(token) for token in place] for place in row] for row in best_ids.tolist()]
    return Lens(list(tokens), predictions, best_ids, probabilities)


def layer_logits(model: Any, ids: Sequence[Array]) -> Iterator[Array]:
    """Yield the logits that a model would have after its embedding and after each layer, (T, V) on the host.

    Args:
        model: A GPT, a Bert or a Transformer.
        ids: The ids of each of its inputs, of shape (1, T).

    Raises:
        UserError: If the model has no layers of this kind, or if it cannot read the ids.
    """
    for x in _residual_stream(model, ids):  # (1, T, D)
        yield to_numpy(predict(model, x))[0]


def layer_outputs(model: Any, ids: Sequence[Array], **settings: Any) -> list[Array]:
    """Return the vectors of the tokens after the embedding and after each layer, L + 1 arrays (B, T, D).

    The last ones have passed the norm that follows the last layer of most models.

    Args:
        model: A GPT, a Bert or a Transformer, whose decoder is meant.
        ids: The ids of each of its inputs, of shape (B, T).
        settings: The settings of its forward pass.

    Raises:
        UserError: If the model has no layers of this kind, or if it cannot read the ids.
    """
    *before, last = _residual_stream(model, ids, **settings)
    norm = last_stack(model).norm
    return [*before, last if norm is None else norm(last)]


def _residual_stream(model: Any, ids: Sequence[Array], **settings: Any) -> list[Array]:
    """Return the vectors after the embedding and after each layer, (B, T, D), without the last norm."""
    watched = watchable(model)
    taps = tap_layers(last_stack(watched))
    without_logits(watched).forward(*ids, **settings)
    return [taps[0].x, *(tap.y for tap in taps)]

"""Saliency: how much each input token contributes to the score of an output token.

The score f(x) of a token, its log-probability or its logit, is a function of the vectors x_t of the input
tokens, without the vectors of their positions. Two methods give each input token a number:

    gradient × input:      a_t = x_t · ∂f/∂x_t (x)
    integrated gradients:  a_t = x_t · ∫ ∂f/∂x_t (α x) dα,  α from 0 to 1

The first one needs a single backward pass, and tells how f changes near x. The second one follows a straight
line from the baseline, at which all vectors are 0, to x. Its numbers are complete: Σ_t a_t = f(x) - f(0).

Source: Simonyan et al. 2013, section 3 (the gradient); Shrikumar et al. 2016 (gradient × input); Sundararajan
et al. 2017, section 3 (integrated gradients, completeness).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from npformer.backend import Array, like, to_numpy
from npformer.errors import UserError
from npformer.escaping import token_label
from npformer.lenses.tables import bar
from npformer.models.registry import Model
from npformer.pretrained.input_gradients import ScoredOutput, input_vectors, scores_and_gradients
from npformer.validation import is_number, require_choice

if TYPE_CHECKING:
    from npformer.plots import Figure

METHODS = {"integrated": "integrated gradients", "gradient": "gradient × input"}
POINTS = 8  # of a piece of the line, which are computed in one batch
MOST_POINTS = 800  # Sundararajan et al. 2017, section 5, use 20 to 300, and other models need more
TOLERANCE = 0.05  # nats, or units of the logits
MOST_BARS = 40  # of a picture


class Attribution(NamedTuple):
    """The contributions of all input tokens to a score."""

    scores: list[Array]  # for each input of the model, (T,) in float64
    value: float  # f(x)
    baseline: float | None  # f(0), or None where it was not computed


class _Piece(NamedTuple):
    """The integral over a piece of the line from the baseline to x."""

    start: float  # a share of x
    end: float
    scores: list[Array]  # for each input of the model, (T,)
    values: tuple[float, float]  # f(start x), f(end x)
    error: float  # the sum of the scores minus f(end x) - f(start x)


class Inputs(NamedTuple):
    """One input of a model: a sentence as ids and as the labels of its tokens."""

    ids: Sequence[int]  # T
    pieces: Sequence[str]  # T


@dataclass(frozen=True, eq=False)
class Saliency:
    """The contributions of the input tokens of a model to the score of one output token.

    Attributes:
        explained: The output token, or the other text of a similarity.
        position: Its position among those at which the model predicts a token.
        score: "log-probability", "logit" or, between two texts, "similarity".
        method: One of METHODS.
        value: The score f(x) of the token.
        baseline: The score f(0) of the baseline, or None with gradient × input.
        tokens: A dict from the name of each input, "text", or "source" and "target", to its T tokens.
        scores: A dict from the name of each input to the contributions of its tokens, (T,).
    """

    explained: str
    position: int
    score: str
    method: str
    value: float
    baseline: float | None
    tokens: dict[str, list[str]]
    scores: dict[str, Array]

    @property
    def sum(self) -> float:
        """The sum of all contributions."""
        return float(sum(each.sum() for each in self.scores.values()))

    @property
    def gap(self) -> float | None:
        """The number by which the sum misses f(x) - f(0), or None with gradient × input.

        It is the error of the numerical integration, and becomes smaller with more points.
        """
        return None if self.baseline is None else self.sum - (self.value - self.baseline)

    def table(self) -> str:
        """Return the contributions as plain text: a line for each token, with its number and a bar."""
        largest = max(float(abs(each).max()) for each in self.scores.values())
        width = max(len(token_label(token)) for tokens in self.tokens.values() for token in tokens)
        lines = [self._title()]
        for name, scores in self.scores.items():
            lines += [name] if len(self.scores) > 1 else []
            for token, score in zip(self.tokens[name], scores.tolist(), strict=True):
                lines.append(
                    f"  {token_label(token):{width}}  {score:+10.4f}  {bar(score, largest)}".rstrip()
                )
        return "\n".join([*lines, self._conclusion()])

    def plot(self) -> "Figure":
        """Draw a bar for each token, to the right if it makes the output token more probable.

        Of more than MOST_BARS tokens, those with the largest contributions are drawn.

        Characters that no installed font has are written as code points, such as U+6211.
        """
        from npformer import plots  # matplotlib takes a second to load
        from npformer.plots.style import drawable, literal

        kept = {name: _largest(scores) for name, scores in self.scores.items()}
        return plots.score_bars(
            [self.scores[name][places] for name, places in kept.items()],
            [drawable([self.tokens[name][place] for place in places]) for name, places in kept.items()],
            list(kept) if len(kept) > 1 else None,
            title=literal(drawable([self._title()])[0]),
        )

    def _title(self) -> str:
        of = "to" if self.score == "similarity" else "of"
        return f"{self.score} {self.value:.3f} {of} {token_label(self.explained)}: {METHODS[self.method]}"

    def _conclusion(self) -> str:
        """Return the sum of the contributions, beside what it has to be if the method is complete."""
        if self.baseline is None:
            return f"sum {self.sum:+.4f}"
        difference = self.value - self.baseline
        return f"sum {self.sum:+.4f}, and the score minus that of the baseline is {difference:+.4f}"

    def __repr__(self) -> str:
        return f"<saliency for {self.explained!r}: {METHODS[self.method]}>"


def saliency_of(
    model: Model,
    inputs: Mapping[str, Inputs],
    output: ScoredOutput,
    explained: str,
    *,
    method: str = "integrated",
    tolerance: float = TOLERANCE,
    most_points: int = MOST_POINTS,
) -> Saliency:
    """Return the contributions of the input tokens of a model to the score of an output token.

    Args:
        model: The model.
        inputs: The inputs of the model by their names, in the order of its arguments.
        output: The position and the id of the output token.
        explained: The label of the output token.
        method: One of METHODS.
        tolerance, most_points: As for `integrated_gradients`.

    Raises:
        UserError: If a setting is impossible, or if the model cannot read the inputs.
    """
    require_choice("method", method, tuple(METHODS))
    _require_precision(tolerance, most_points)
    ids = [np.array([each.ids]) for each in inputs.values()]
    if method == "gradient":
        found = gradient_times_input(model, ids, output)
    else:
        found = integrated_gradients(model, ids, output, tolerance=tolerance, most_points=most_points)
    return Saliency(
        explained=explained,
        position=output.position,
        score=output.score,
        method=method,
        value=found.value,
        baseline=found.baseline,
        tokens={name: list(each.pieces) for name, each in inputs.items()},
        scores=dict(zip(inputs, found.scores, strict=True)),
    )


def gradient_times_input(model: Model, ids: Sequence[Array], output: ScoredOutput) -> Attribution:
    """Compute the dot product of the vector of each input token with the gradient of the score for it.

    Args:
        model: The model.
        ids: The ids of each of its inputs, of shape (1, T).
        output: The output whose score is explained.

    Raises:
        UserError: If the model cannot read the ids, or if it has no such output.
    """
    vectors = input_vectors(model, ids)
    values, gradients = scores_and_gradients(model, ids, vectors, output)
    return Attribution(_dot_products(vectors, gradients), float(values[0]), None)


def integrated_gradients(
    model: Model,
    ids: Sequence[Array],
    output: ScoredOutput,
    *,
    tolerance: float = TOLERANCE,
    most_points: int = MOST_POINTS,
) -> Attribution:
    """Compute the dot product of each vector with the mean gradient on the line from the baseline to it.

    The integral is computed by adaptive Gauss-Legendre quadrature. Completeness holds for each piece of the
    line, and so it tells the error of a piece: its contributions sum to f(end) - f(start). As long as the
    errors are too large, the worst piece is divided into two halves. Most divisions are near the baseline,
    where layers of normalization divide by a small number and the gradient changes fastest.

    Args:
        model: The model.
        ids: The ids of each of its inputs, of shape (1, T).
        output: The output whose score is explained.
        tolerance: The largest error of the sum of all contributions, in units of the score.
        most_points: The largest number of points on the line. With fewer points than the tolerance needs, the
            error is larger; `Saliency.gap` tells it.

    Raises:
        UserError: If the model cannot read the ids, if it has no such output, or if a setting is impossible.
    """
    _require_precision(tolerance, most_points)
    vectors = input_vectors(model, ids)

    def piece(start: float, end: float) -> _Piece:
        return _integrate(model, ids, vectors, output, start, end)

    pieces, n_points = [piece(0, 1)], POINTS
    while sum(abs(each.error) for each in pieces) > tolerance and n_points + 2 * POINTS <= most_points:
        worst = max(pieces, key=lambda each: abs(each.error))
        middle = (worst.start + worst.end) / 2
        pieces.remove(worst)
        pieces += [piece(worst.start, middle), piece(middle, worst.end)]
        n_points += 2 * POINTS
    scores = [np.sum(parts, axis=0) for parts in zip(*(each.scores for each in pieces), strict=True)]
    baseline, value = min(pieces).values[0], max(pieces).values[1]  # of the first and of the last piece
    return Attribution(scores, value, baseline)


def _require_precision(tolerance: Any, most_points: Any) -> None:
    """Raise UserError for impossible settings of integrated gradients."""
    numbers = is_number(tolerance) and is_number(most_points)
    if not (numbers and tolerance > 0 and most_points >= POINTS):
        raise UserError(
            f"tolerance is {tolerance} and most_points {most_points}: give a tolerance above 0 and at least "
            f"{POINTS} points"
        )


def _integrate(
    model: Model,
    ids: Sequence[Array],
    vectors: Sequence[Array],
    output: ScoredOutput,
    start: float,
    end: float,
) -> _Piece:
    """Integrate over the piece of the line from start x to end x, with POINTS points.

    Shapes: ids (1, T) and vectors (1, T, D) for each input.
    """
    places, weights = np.polynomial.legendre.leggauss(POINTS)  # from -1 to 1, where the weights sum to 2
    length = end - start
    alphas = np.concatenate([[start], start + length * (places + 1) / 2, [end]])
    weights = np.concatenate([[0], length * weights / 2, [0]])  # the two ends are for their scores only
    scaled = [_times(alphas, each) for each in vectors]
    values, gradients = scores_and_gradients(model, ids, scaled, output)
    totals = [_times(weights, each).sum(0, keepdims=True) for each in gradients]  # (1, T, D)
    scores = _dot_products(vectors, totals)
    ends = float(values[0]), float(values[-1])
    error = sum(float(each.sum()) for each in scores) - (ends[1] - ends[0])
    return _Piece(start, end, scores, ends, error)


def _times(factors: Array, vectors: Array) -> Array:
    """Multiply each of B variants of vectors by its factor. Shapes: (B,), (B or 1, T, D) -> (B, T, D)."""
    return like(factors.astype(vectors.dtype), vectors)[:, None, None] * vectors


def _dot_products(vectors: Sequence[Array], gradients: Sequence[Array]) -> list[Array]:
    """Return the dot products of vectors and gradients, (T,) for each pair of arrays (1, T, D)."""
    pairs = zip(vectors, gradients, strict=True)
    return [(to_numpy(x).astype(np.float64) * to_numpy(dx)).sum(-1)[0] for x, dx in pairs]


def _largest(scores: Array) -> list[int]:
    """Return the places of the largest contributions, MOST_BARS at most, in the order of the text."""
    return sorted(np.argsort(-abs(scores), kind="stable")[:MOST_BARS].tolist())

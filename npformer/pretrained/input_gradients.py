"""The gradient of a score of a model for the vectors of its input tokens, by the model's own backward pass.

A model replaces each token id by a vector, and everything after that is a differentiable function of these
vectors. `with_vectors` makes this function: a copy of the model in which each embedding is replaced by a
table that holds the vectors themselves, with one row for each position. The rows are parameters, and so the
backward pass of the model leaves their gradients where those of all parameters are.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.softmax import log_softmax, log_softmax_backward
from npformer.models.registry import Model
from npformer.nn import Embedding
from npformer.nn.fixed import FixedParameter, fixed_parameters
from npformer.nn.module import Module, Parameter
from npformer.validation import require_choice, require_index

SCORES = ("log-probability", "logit")


class ScoredOutput(NamedTuple):
    """An output of a model whose score is to be explained: a token at a position."""

    position: int  # t, among the T positions of the logits
    token: int
    score: str = SCORES[0]  # one of SCORES


class GivenVectors(Module):
    """A table with one vector for each position of a batch, which takes the place of an Embedding.

    Shapes: ids (B, T), which are ignored -> y (B, T, D).

    Args:
        embedding: The embedding that it replaces, whose size says which ids there are.
        vectors: The vectors, of shape (B, T, D).
    """

    def __init__(self, embedding: Embedding, vectors: Array) -> None:
        self.weight = FixedParameter(embedding.weight.value)
        self.vectors = Parameter(vectors)

    def forward(self, ids: Array) -> tuple[Array, None]:
        """Return the vectors, of shape (B, T, D), and no cache."""
        return self.vectors.value, None

    def backward(self, dy: Array, cache: None) -> None:
        """Accumulate the gradient of the vectors. Shapes: dy (B, T, D)."""
        self.vectors.accumulate(dy)


def input_embeddings(model: Model) -> tuple[Embedding, ...]:
    """Return the embeddings of the tokens that a model reads, in the order of its arguments."""
    if hasattr(model, "embedding"):  # a model with one input
        return (model.embedding.tokens,)
    source, target = (
        side if isinstance(side, Embedding) else side.tokens for side in (model.source, model.target)
    )
    return source, target


def input_vectors(model: Model, ids: Sequence[Array]) -> list[Array]:
    """Return the vectors that a model reads in place of token ids, without those of positions.

    Args:
        model: The model.
        ids: The ids of each of its inputs, of shape (1, T).

    Returns:
        The vectors of each input, of shape (1, T, D).
    """
    return [embedding(each) for embedding, each in zip(input_embeddings(model), ids, strict=True)]


def with_vectors(model: Model, vectors: Sequence[Array]) -> tuple[Any, list[Parameter]]:
    """Return a copy of a model that reads given vectors in place of those of its embeddings.

    The copy shares the weights of the model. Its backward pass computes no gradients of them.

    Args:
        model: The model.
        vectors: The vectors of each input, of shape (B, T, D).

    Returns:
        The copy, and the parameters that hold the vectors and their gradients.
    """
    embeddings = input_embeddings(model)
    tables = [GivenVectors(embedding, each) for embedding, each in zip(embeddings, vectors, strict=True)]
    replaced = fixed_parameters(model)
    replaced |= {id(embedding): table for embedding, table in zip(embeddings, tables, strict=True)}
    return model.shared_copy(replaced), [table.vectors for table in tables]


def scores_and_gradients(
    model: Model, ids: Sequence[Array], vectors: Sequence[Array], output: ScoredOutput
) -> tuple[Array, list[Array]]:
    """Compute the score of an output, and its gradient for the vectors of all input tokens.

    Args:
        model: The model.
        ids: The ids of each input, of shape (1, T). They say only where there is padding.
        vectors: B variants of the vectors of each input, of shape (B, T, D).
        output: The output.

    Returns:
        The scores of the B variants, of shape (B,), and their gradients for the vectors of each input, of
        shape (B, T, D).

    Raises:
        UserError: If there is no such position, token or score.
    """
    xp = array_module(vectors[0])
    embedded, parameters = with_vectors(model, vectors)
    n = len(vectors[0])
    logits, cache = embedded.forward(*(xp.repeat(each, n, axis=0) for each in ids))  # (B, T, V)
    rows = logits[:, None] if logits.ndim == 2 else logits  # a text that is classified has one row, (B, C)
    _require_output(output, rows.shape)
    values, drow = _score(rows[:, output.position], output)  # (B,), (B, V)
    drows = xp.zeros_like(rows)
    drows[:, output.position] = drow
    embedded.backward(drows.reshape(logits.shape), cache)
    return values, [parameter.grad for parameter in parameters]


def _score(row: Array, output: ScoredOutput) -> tuple[Array, Array]:
    """Return the score of a token and its gradient for the logits. Shapes: (B, V) -> (B,), (B, V)."""
    dvalues = array_module(row).zeros_like(row)
    dvalues[:, output.token] = 1
    if output.score == "logit":
        return row[:, output.token], dvalues
    log_p, cache = log_softmax(row)  # (B, V)
    return log_p[:, output.token], log_softmax_backward(dvalues, cache)


def _require_output(output: ScoredOutput, shape: tuple[int, ...]) -> None:
    """Raise UserError for an output that logits of shape (B, T, V) do not have."""
    require_index("position", output.position, shape[1])
    require_index("token", output.token, shape[2])
    require_choice("score", output.score, SCORES)

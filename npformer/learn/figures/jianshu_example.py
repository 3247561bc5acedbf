"""The example of the Jianshu figures: one padded sentence through one small attention layer.

F10 to F17 and F19 use these tensors, so that a number can be followed from figure to figure. The functions
paint and row draw matrices with cells of several colours.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import ArrayLike

from npformer.backend import Array
from npformer.data.dataset import PairDataset, builtin_dataset
from npformer.data.loader import make_batch
from npformer.data.vocabulary import END, PAD, SPECIALS
from npformer.errors import UserError
from npformer.functional import ACTIVATIONS
from npformer.functional.masks import causal_mask, padding_mask, query_mask
from npformer.functional.positions import LAYOUTS
from npformer.nn import InputEmbedding
from npformer.nn.attention import MultiHeadAttention, MultiHeadCache
from npformer.nn.embedding import InputCache
from npformer.plots import Grid
from npformer.plots.board import BETWEEN, SIGN, Board
from npformer.plots.cells import GAP, Placed
from npformer.plots.palette import colour as colour_of
from npformer.plots.palette import ink_on
from npformer.plots.style import FORMULA, TEXT, text_size, widest

Paint = tuple[str, Any]  # a role of the palette, and bool broadcastable to a matrix: True takes its colour
Part = Grid | tuple[Grid, Paint] | str


def paint(board: Board, grid: Grid, left: float, top: float, *painted: Paint) -> Placed:
    """Draw a grid, some of its cells in colours of their own.

    Column labels stand upright where they are wider than a cell.

    Args:
        board: The board to draw on.
        grid: The grid.
        left: The left edge of the cells, in inches.
        top: The upper edge of the cells, in inches.
        painted: Pairs (colour, mask): the cells where the mask is True take the colour.

    Returns:
        The place of the cells.
    """
    first = len(board.ax.texts)  # the numbers are written first
    upright = grid.columns is not None and widest(grid.columns, TEXT) + 0.04 > board.cell
    placed = board.grid(replace(grid, columns=None, label="") if upright else grid, left, top)
    squares, shape = board.ax.collections[-1], grid.values.shape
    faces: Any = np.array(squares.get_facecolor())[:, :3].reshape(*shape, 3)
    for role, where in painted:
        faces[np.broadcast_to(where, shape)] = to_rgb(colour_of(role))
    faces = faces.reshape(-1, 3)
    squares.set_facecolor([tuple(face) for face in faces])
    if grid.numbers:
        for text, face in zip(board.ax.texts[first : first + len(faces)], faces, strict=True):
            text.set_color(ink_on(face))
    if upright:
        _upright(board, grid, placed)
    return placed


def _upright(board: Board, grid: Grid, placed: Placed) -> None:
    """Write the column labels from the bottom up, and the name above them."""
    assert grid.columns is not None
    for index, word in enumerate(grid.columns):
        x = placed.left + (index + 0.5) * board.cell
        style: Any = {"rotation": 90, "va": "bottom", "room": False, "parse_math": False}
        board.text(x, placed.top + GAP, word, **style)
    top = placed.top + GAP + widest(grid.columns, TEXT)
    board.take(placed.left, placed.top, placed.right, top)
    board.text(placed.centre[0], top + GAP, grid.label, size=FORMULA, va="bottom")


def row(board: Board, parts: Sequence[Part], left: float, y: float) -> list[Placed]:
    """Draw grids and the signs between them in a row with its middle at y; return the places of the grids.

    A pair (grid, paint) has cells in a colour of their own. The cells of the first grid start at `left`, with
    its row labels before it. Later grids with row labels get room for them.

    Args:
        board: The board to draw on.
        parts: The grids, the pairs (grid, paint) and the signs, from left to right.
        left: The left edge of the cells of the first grid.
        y: The vertical centre of the row.
    """
    placed: list[Placed] = []
    x = left
    for part in parts:
        if isinstance(part, str):
            width = text_size(part, SIGN, math=True)[0]
            board.text(x + width / 2, y, part, size=SIGN)
            x += width + BETWEEN
            continue
        grid, painted = part if isinstance(part, tuple) else (part, None)
        width, height = board.size(grid)
        if placed and grid.rows is not None:
            x += widest(grid.rows, TEXT) + GAP
        marks = [] if painted is None else [painted]
        placed.append(paint(board, grid, x, y + height / 2, *marks))
        x += width + BETWEEN
    return placed


def at_least(least: int, **numbers: Any) -> None:
    """Check that the named numbers are whole and not below `least`.

    Raises:
        UserError: If one is not. The message names it.
    """
    for name, value in numbers.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise UserError(f"{name} is {value!r}: it must be a whole number, {least} or more")


def shape_of(matrix: Array) -> str:
    """Return a matrix's shape as text: 7 × 6."""
    return " × ".join(map(str, np.shape(matrix)))


def listed(values: ArrayLike, decimals: int = 2) -> str:
    """Return a few numbers as text for a caption."""
    rounded = np.round(np.ravel(np.asarray(values, np.float64)), decimals) + 0.0  # −0 becomes 0
    return ", ".join(f"{value:.{decimals}f}".replace("-", "−") for value in rounded)


# The example.

SENTENCE = "I am a student"
LENGTH = 7  # of the sentence with its end symbol and its padding
SEED = 3


class Example(NamedTuple):
    """A padded sentence, its vectors, and the attention layer that reads them."""

    words: list[str]  # T labels, the end symbol and padding included
    ids: np.ndarray  # (1, T)
    embedded: InputCache
    layer: MultiHeadAttention

    @property
    def x(self) -> np.ndarray:
        """The embedded sentence (1, T, D)."""
        y: np.ndarray = self.embedded.y
        return y

    @property
    def padded(self) -> np.ndarray:
        """Bool (T,), True at padding positions."""
        return np.asarray(self.ids[0] == PAD)

    @property
    def padding(self) -> str:
        """The number of padding positions, in words."""
        count = int(self.padded.sum())
        return {0: "no padding", 1: "one padding position"}.get(count, f"{count} padding positions")

    @property
    def query_mask(self) -> np.ndarray:
        """Bool (1, 1, T, 1), True at queries that are not padding."""
        return query_mask(self.ids)

    def mask(self, *, causal: bool) -> np.ndarray:
        """Return the mask that allows keys that are not padding and, if causal, not after the query.

        Shapes: -> broadcastable to (1, 1, T, T).
        """
        mask = padding_mask(self.ids)
        return mask & causal_mask(self.ids.shape[1], self.ids) if causal else mask

    def attend(
        self, *, keys: bool = False, causal: bool = False, queries: bool = False
    ) -> tuple[np.ndarray, MultiHeadCache]:
        """Run a forward pass with the chosen masks and return (y, cache).

        Args:
            keys: True to mask the keys of padding.
            causal: True to mask keys of padding and keys after the query.
            queries: True to set the weights of padding queries to 0.
        """
        mask = self.mask(causal=causal) if keys or causal else None
        query = self.query_mask if queries else None
        return self.layer.forward(self.x, mask=mask, query_mask=query)


def make_example(
    sentence: str = SENTENCE,
    *,
    length: int = LENGTH,
    d_model: int = 6,
    n_heads: int = 1,
    positions: str = "none",
    activation: str = "none",
    bias: float = 0.0,
    output: bool = False,
    seed: int = SEED,
) -> Example:
    """Embed a sentence with an untrained embedding whose padding is 0, and make an untrained attention layer.

    Args:
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        n_heads: The number of heads.
        positions: As for InputEmbedding. Once positions are added, padding is no longer 0.
        activation: The activation of queries, keys and values; "relu" is the document's code.
        bias: The value of every bias: 0, as at the start of training.
        output: Whether the layer has the matrix W^O.
        seed: The seed of the random weights.

    Raises:
        UserError: If the sentence is empty, the length is below 1, or sizes do not fit together.
    """
    at_least(1, d_model=d_model, n_heads=n_heads)
    at_least(0, seed=seed)
    for name, value, choices in (
        ("positions", positions, (*LAYOUTS, "learned", "none")),
        ("activation", activation, tuple(ACTIVATIONS)),
    ):
        if value not in choices:
            raise UserError(f"{name} is {value!r}: choose one of {', '.join(choices)}")
    ids = padded_ids(sentence, length)
    rng = np.random.default_rng(seed)
    vocab_size = len(dataset().source.vocabulary)
    embedding = InputEmbedding(vocab_size, d_model, length, positions=positions, zero_id=PAD, rng=rng)
    _, embedded = embedding.forward(ids)
    layer = MultiHeadAttention(d_model, n_heads, activation=activation, output=output, rng=rng)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value[...] = bias
    return Example(shown_words(sentence, length), ids, embedded, layer)


def padded_ids(sentence: str, length: int) -> np.ndarray:
    """Return the ids (1, length) of an English sentence as in a batch with a longer one.

    Raises:
        UserError: If the sentence is empty, or the length is below 1.
    """
    at_least(1, length=length)
    batch = make_batch([(dataset().source.encode(sentence, strict=True), [])], max_length=length)
    return filled(batch.source, length)


def filled(ids: np.ndarray, length: int) -> np.ndarray:
    """Return the ids (B, T) padded at the right to (B, length)."""
    return np.pad(ids, ((0, 0), (0, length - ids.shape[1])), constant_values=PAD)


def shown_words(sentence: str, length: int) -> list[str]:
    """Return a label for each token of a padded sentence. Words outside the vocabulary keep their letters."""
    words = dataset().source.words(sentence)
    ids = padded_ids(sentence, length)[0]
    return [SPECIALS[index] if index in (PAD, END) else words[t] for t, index in enumerate(ids)]


@lru_cache(maxsize=1)
def dataset() -> PairDataset:
    """Return the built-in corpus with its vocabularies. They are built at the first call only."""
    return builtin_dataset()

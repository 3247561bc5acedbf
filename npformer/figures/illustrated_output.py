"""From the decoder's vector to a word: a linear layer, a softmax, and the largest probability."""

from collections.abc import Sequence

from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import generator, small_config
from npformer.figures.loss_figures import VOCABULARY, word_id
from npformer.functional import softmax
from npformer.layers import Linear
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.palette import COLOURS
from npformer.plots.style import drawing, number

WIDE, HIGH = 2.2, 0.42  # inches, of a box
STEP = 1.7  # from one row of cells to the next
SEED = 0


@figure("F46", "Linear and softmax: from a vector to a word", source="S2", data="FW")
def vector_to_word(
    studio,
    *,
    word: str = "am",
    vocabulary: Sequence[str] = VOCABULARY,
    d_model: int = 8,
    seed: int = SEED,
) -> Drawing:
    """Vector → logits → probabilities → argmax → word."""
    chosen = word_id(word, vocabulary)
    rng = generator(seed)
    d_model = small_config(d_model=d_model).d_model
    layer = Linear(d_model, len(vocabulary), bias=False, rng=rng, dtype=float)
    x = 2.5 * layer.weight.value[:, chosen] + 0.2 * rng.standard_normal(d_model)  # (D,)
    logits, _ = layer.forward(x)  # (V,)
    probabilities, _ = softmax(logits)  # (V,)
    best = int(probabilities.argmax())
    caption = (
        f"A linear layer gives each of the {len(vocabulary)} words a logit and the softmax a probability "
        f"(S2's picture calls that row log_probs): “{vocabulary[best]}”, number {best} of 0 .. "
        f"{len(vocabulary) - 1}, has the largest, {number(probabilities[best])}. The vector was made to "
        f"point at “{word}”; a decoder learns to."
    )
    return Drawing(_draw(x, logits, probabilities, vocabulary), caption)


def _draw(x, logits, probabilities, vocabulary):
    """From below upwards: the vector, its logits, their probabilities, the best word."""
    best = int(probabilities.argmax())
    with drawing(list(vocabulary)):
        board = Board([x, logits, probabilities], names=vocabulary)
        rows = (  # from below
            (x, "z", "the decoder's output\nat one position"),
            (logits, "linear", "logits"),
            (probabilities, "softmax", "probabilities"),
        )
        edge = -max(len(x), len(vocabulary)) * board.cell / 2 - 0.2
        for row, (values, colour, name) in enumerate(rows):
            cells = Grid(values, "", colour, numbers=True, edge="#5f6368")
            placed = board.grid_at(cells, 0, STEP * row)
            board.text(edge, STEP * row, name, ha="right", va="center")
            if row:
                _numbered(board, placed, vocabulary, best)
        for row, name in enumerate(("linear", "softmax")):
            box = board.box(name, 0, STEP * (row + 0.5), WIDE, HIGH, colour=name)
            board.arrow((0, STEP * row + (0.36 if row else 0.14)), box.bottom)
            board.arrow(box.top, (0, STEP * (row + 1) - 0.33))
        x_best = placed.left + (best + 0.5) * board.cell
        board.arrow((x_best, placed.top + 0.26), (x_best, placed.top + 0.62))
        text = f"argmax {best}: “{vocabulary[best]}”"
        board.text(x_best, placed.top + 0.7, text, size=12, va="bottom", parse_math=False)
        return board.cut()


def _numbered(board: Board, placed, vocabulary, best: int) -> None:
    """Words over the cells, their ids under them, the best one framed."""
    for index, word in enumerate(vocabulary):
        x = placed.left + (index + 0.5) * board.cell
        board.text(x, placed.top + 0.06, word, va="bottom", parse_math=False)
        board.text(x, placed.bottom - 0.05, str(index), va="top", color=COLOURS["faint"])
    board.text(placed.left - 0.1, placed.bottom - 0.05, "id", ha="right", va="top", color=COLOURS["faint"])
    left = placed.left + best * board.cell
    board.mark(left, placed.bottom, left + board.cell, placed.top)

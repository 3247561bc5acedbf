"""F05: a batch of sentence pairs as matrices of token ids."""

from collections.abc import Sequence

import numpy as np

from npformer.data.loader import Example as Ids
from npformer.data.loader import make_batch
from npformer.data.vocabulary import PAD, SPECIALS
from npformer.errors import UserError
from npformer.learn.figures.jianshu_example import at_least, dataset, filled, shape_of
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.cells import CELL, Placed

# the colours of the four special ids: <PAD>, <UNK>, <S>, </S>
ROLES = ("padding", "weight", "position", "k")


@figure("F05", "A batch as matrices of ids", "jianshu", "FW", "1.1")
def batch_of_ids(
    *, sentences: int = 10, length: int = 10, first: int = 0, pairs: Sequence[tuple[str, str]] | None = None
) -> Drawing:
    """Draw the encoder's input x above and the decoder's input y below; each row is a sentence.

    Args:
        sentences, first: The number of sentence pairs from the built-in corpus, and the index of the first,
            counted among those that fit.
        length: The number of columns.
        pairs: Pairs (English, French) to draw instead. They are cut to `length`, and words outside the
            corpus get the id 1.
    """
    at_least(1, length=length, sentences=sentences)
    at_least(0, first=first)
    batch = make_batch(_examples(sentences, length, first, pairs), max_length=length)
    source, target = filled(batch.source, length), filled(batch.target_in, length)
    with new_board(SPECIALS, matrices=[source, target]) as board:
        top = board.size(Grid(source))[1]
        _matrix(board, source, "x: input of the encoder", 0, top)
        bottom = _matrix(board, target, "y: input of the decoder", 0, -0.45).bottom
        # the meaning of the four special ids, in two lines
        under = bottom - 0.15
        for index, (role, word) in enumerate(zip(ROLES, SPECIALS, strict=True)):
            left, y = 1.4 * (index // 2), under - (CELL + 0.05) * (index % 2)
            board.grid(numbered([index], colour=role), left, y)
            board.text(left + board.cell + 0.08, y - CELL / 2, word, ha="left")
    zeros = int((source == PAD).sum() + (target == PAD).sum())
    codec = dataset().source
    return Drawing(
        board.figure,
        f"A batch of {len(source)} sentence pairs, one in each row: English ids above ({shape_of(source)}), "
        f"French ids below ({shape_of(target)}). Row 0 of x is “{codec.decode(source[0])}”, followed by the "
        f"end symbol, 3. The shorter rows are padded with {zeros} zeros.",
    )


def _examples(
    sentences: int, length: int, first: int, pairs: Sequence[tuple[str, str]] | None
) -> Sequence[Ids]:
    if pairs is not None:
        source, target = dataset().source, dataset().target
        return [(source.encode(x, strict=True), target.encode(y, strict=True)) for x, y in pairs]
    # as in the document's demo, longer pairs are left out, so that no pair is cut
    fitting = [example for example in dataset().train if max(map(len, example)) < length]
    if first + sentences > len(fitting):
        raise UserError(
            f"first is {first} and sentences {sentences}: the corpus has {len(fitting)} sentences of up to "
            f"{length} tokens, from 0 on"
        )
    return fitting[first : first + sentences]


def _matrix(board: Board, ids: np.ndarray, label: str, left: float, top: float) -> Placed:
    """Draw a matrix of ids with colours for the special ids."""
    painted = [(role, ids == index) for index, role in enumerate(ROLES)]
    rows = [str(n) for n in range(len(ids))]
    return board.grid(numbered(ids, label, "plain", "x", rows, painted=painted), left, top)

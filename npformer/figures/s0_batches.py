"""What goes in: a batch of ids (F05), and the ids of a sentence as vectors (F10)."""

from collections.abc import Sequence

import numpy as np

from npformer.data.batches import Example as Ids
from npformer.data.batches import make_batch
from npformer.data.vocabulary import PAD, SPECIALS
from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.s0_example import LENGTH, SEED, SENTENCE, dataset, example, filled
from npformer.figures.s0_sheet import at_least, listed, paint, shape_of
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.cells import CELL
from npformer.plots.style import drawing

# the colours of the four ids with a meaning of their own: <PAD>, <UNK>, <S>, </S>
ROLES = ("padding", "weight", "position", "k")


@figure("F05", "A batch as matrices of ids", source="S0", data="FW")
def batch_of_ids(
    studio,
    *,
    sentences: int = 10,
    length: int = 10,
    first: int = 0,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Drawing:
    """x above, what the encoder reads; y below, what the decoder reads; a row is a sentence.

    The sentences are those of the built-in corpus that fit in `length` ids, from number `first` on; or pairs
    of English and French of your own, cut to `length`, where a word that the corpus lacks gets the id 1.
    """
    at_least(1, length=length, sentences=sentences)
    at_least(0, first=first)
    batch = make_batch(_examples(sentences, length, first, pairs), max_length=length)
    source, target = filled(batch.source, length), filled(batch.target_in, length)
    with drawing(SPECIALS):
        board = Board([source, target])
        top = board.size(Grid(source))[1]
        _matrix(board, source, "x: what the encoder reads", 0, top)
        bottom = _matrix(board, target, "y: what the decoder reads", 0, -0.45).bottom
        _legend(board, bottom - 0.15)
        made = board.cut()
    zeros = int((source == PAD).sum() + (target == PAD).sum())
    codec = dataset().source
    return Drawing(
        made,
        f"A batch of {len(source)} sentence pairs, one a row: English ids above ({shape_of(source)}), French "
        f"below ({shape_of(target)}). Row 0 of x reads “{codec.decode(source[0])}”, and 3 ends it; "
        f"{zeros} zeros fill the shorter rows up.",
    )


def _examples(sentences, length, first, pairs) -> Sequence[Ids]:
    if pairs is not None:
        source, target = dataset().source, dataset().target
        return [(source.encode(x, strict=True), target.encode(y, strict=True)) for x, y in pairs]
    # the document's demo leaves longer ones out, so that nothing is ever cut
    fitting = [example for example in dataset().train if max(map(len, example)) < length]
    if first + sentences > len(fitting):
        raise UserError(
            f"first is {first} and sentences {sentences}: the corpus has {len(fitting)} sentences of up to "
            f"{length} tokens, from 0 on"
        )
    return fitting[first : first + sentences]


def _matrix(board: Board, ids: np.ndarray, label: str, left: float, top: float):
    """A matrix of ids whose special ones are coloured."""
    grid = Grid(ids, label, "plain", edge="x", numbers=True, rows=[str(n) for n in range(len(ids))])
    return paint(board, grid, left, top, *((role, ids == index) for index, role in enumerate(ROLES)))


def _legend(board: Board, top: float) -> None:
    """What the four special ids are, in two lines."""
    for index, (role, word) in enumerate(zip(ROLES, SPECIALS, strict=True)):
        left, y = 1.4 * (index // 2), top - (CELL + 0.05) * (index % 2)
        board.grid(Grid([index], colour=role, numbers=True), left, y)
        board.text(left + board.cell + 0.08, y - CELL / 2, word, ha="left")


@figure("F10", "From ids to vectors", source="S0", data="FW")
def embedding_grid(
    studio,
    *,
    sentence: str = SENTENCE,
    length: int = LENGTH,
    d_model: int = 6,
    positions: str = "none",
    seed: int = SEED,
) -> Drawing:
    """The ids of a padded sentence at the left, the rows that the embedding reads for them at the right."""
    seen = example(sentence, length=length, d_model=d_model, positions=positions, seed=seed)
    ids, x = seen.ids.T, seen.x[0]  # (T, 1), (T, D)
    with drawing(seen.words):
        board = Board([ids, x])
        numbered = Grid(ids, "id", "plain", edge="x", numbers=True, rows=seen.words, show_shape=True)
        columns = [str(i) for i in range(x.shape[1])]
        vectors = Grid(x, "$X$", "x", numbers=True, columns=columns, padded=seen.padded, show_shape=True)
        height = board.size(vectors)[1]
        left = paint(board, numbered, 0, height, ("padding", seen.padded[:, None]))
        right = board.grid(vectors, left.right + 1.35, height)
        for t in range(len(seen.words)):
            y = height - (t + 0.5) * CELL
            board.arrow((left.right + 0.06, y), (right.left - 0.06, y), width=0.9, colour="faint")
        middle = (left.right + right.left) / 2
        board.text(middle, height + 0.14, f"table[id] × √{d_model}", va="bottom")
        made = board.cut()
    zero = not x[seen.padded].any()
    padding = (
        "green, is all 0" if zero else "green, is no longer 0 once position vectors are added to every row"
    )
    return Drawing(
        made,
        f"Each id picks its row of the embedding table: “{seen.words[0]}”, id {ids[0, 0]}, becomes "
        f"({listed(x[0])}). The padding, {padding}.",
    )

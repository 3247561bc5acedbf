"""F09: the graph of scaled dot-product attention, each stage with its matrix."""

from itertools import pairwise
from typing import Any, NamedTuple

from npformer.backend import Array
from npformer.functional import dot_similarity, mask_scores
from npformer.learn.figures.jianshu_example import Example, PaddedSentence, listed
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import new_board, numbered

STEP = 1.5  # from one box to the next, upwards
HIGH, WIDE = 0.42, 1.5  # of a box
ASIDE = 1.1  # from the tower to the matrices


class Stage(NamedTuple):
    """A box of the graph and the matrix that it computes."""

    label: str
    colour: str
    grid: Grid


@figure("F09", "Scaled dot-product attention, stage by stage", "jianshu", "FW", "5.1 6.1", PaddedSentence)
def scaled_dot_product(padded: PaddedSentence, *, causal: bool = False) -> Drawing:
    """Draw MatMul → Scale → Mask → SoftMax → MatMul from the bottom up, each beside its output."""
    example = padded.example()
    stages = _stages(example, causal)
    with new_board(example.words, matrices=[stage.grid.matrix for stage in stages]) as board:
        # the boxes; Q and K enter the first one, V enters the last
        boxes = [board.box(s.label, 0, i * STEP, WIDE, HIGH, colour=s.colour) for i, s in enumerate(stages)]
        for below, above in pairwise(boxes):
            x, y = above.on_bottom(0.3) if above is boxes[-1] else above.bottom  # V enters the last one too
            board.arrow((x, below.top[1]), (x, y))
        board.arrow(boxes[-1].top, (0, boxes[-1].top[1] + STEP / 2))
        for share, name in ((0.3, "Q"), (0.7, "K")):
            x, y = boxes[0].on_bottom(share)
            board.arrow((x, y - 0.45), (x, y))
            board.text(x, y - 0.6, f"${name}$", size=12)
        x, y = boxes[-1].on_bottom(0.75)
        board.arrow((x, y - 0.45), (x, y))
        board.text(x, y - 0.6, "$V$", size=12)
        for index, stage in enumerate(stages):
            # the matrix of the stage at the height of its outgoing arrow, at the right and left in turn
            y = index * STEP + (STEP if index < 4 else STEP - 0.1) / 2
            width, height = board.size(stage.grid)
            words = 0.75  # width of the row labels, between the tower and a matrix at the right
            left = ASIDE + words if index % 2 == 0 else -ASIDE - width
            placed = board.grid(stage.grid, left, y + height / 2)
            near = placed.left - words if index % 2 == 0 else placed.right + 0.05
            start = -0.3 if index == 3 else 0  # the last arrow but one is not in the middle
            ends = (start + (0.1 if near > 0 else -0.1), y), (near, y)
            board.arrow(*ends, colour="faint", dashed=True, width=1.0, head=False)
    raw, scaled, _, weights, z = (stage.grid.matrix for stage in stages)
    t, s = min(1, len(raw) - 1), 0
    return Drawing(
        board.figure,
        f"From the bottom up, for “{example.words[t]}” (the query, row {t}) and “{example.words[s]}” (the "
        f"key, column {s}): q · k = {listed(raw[t, s])}; divided by √{padded.d_model} it is "
        f"{listed(scaled[t, s])}; after mask and softmax the weight is {listed(weights[t, s])}. The weighted "
        f"mean of the values begins with {listed(z[t, 0])}. (Queries are not masked here.)",
    )


def _stages(example: Example, causal: bool) -> list[Stage]:
    y, cache = example.attend(keys=True, causal=causal)
    attention = cache.attention
    raw, _ = dot_similarity(attention.q, attention.k)
    masked, _ = mask_scores(attention.scores, attention.mask)
    mask = attention.mask

    def square(values: Array, label: str, role: str = "attention", **more: Any) -> Grid:
        matrix = values[0, 0]  # of the one head
        return numbered(matrix, label, role, rows=example.words, columns=example.words, **more)

    padding = [("padding", example.padded | example.padded[:, None])]
    weights = square(attention.weights, "weights", "r", mask=mask, shade=True)
    return [
        Stage("MatMul", "linear", square(raw, "$QK^T$", painted=padding)),
        Stage("Scale", "position", square(attention.scores, r"$QK^T\,/\,\sqrt{d_k}$", painted=padding)),
        Stage("Mask (opt.)", "decoder", square(masked, "masked", mask=mask)),
        Stage("SoftMax", "softmax", weights),
        Stage("MatMul", "linear", numbered(y[0], "$Z$", "z", rows=example.words)),
    ]

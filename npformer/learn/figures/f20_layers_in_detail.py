"""F20: an encoder layer and a decoder layer in detail, with the shape of every array at its arrow."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.loader import make_batch
from npformer.errors import UserError
from npformer.functional import split_heads
from npformer.functional.residual import AddNormCache
from npformer.learn.figures.jianshu_example import at_least, dataset
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.models.transformer.layers import EncoderLayerCache
from npformer.models.transformer.model import TransformerCache
from npformer.nn.attention import MultiHeadCache
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import Box, Point, around
from npformer.plots.style import FORMULA, LABEL

STEP, HIGH = 0.68, 0.32  # from one box to the next upwards, and a box's height
APART, NARROW = 1.06, 0.86  # from one of the three linear maps to the next, and their width
WIDE = 2 * APART + NARROW
LEFT, RIGHT = WIDE / 2 + 0.16, WIDE / 2 + 0.42  # from the middle of a column to the sides of its frame
ROUND = WIDE / 2 + 0.3  # and to its residual connection
FOOT = -HIGH / 2  # the lower side of the first boxes


class Shapes(NamedTuple):
    """The shapes of the arrays in attention with its residual connection, read from its cache."""

    query: str
    key: str
    q: str
    k: str
    v: str
    scores: str
    weights: str
    z: str
    joined: str
    out: str


def _attention_shapes(cache: MultiHeadCache, add_norm: AddNormCache, n_heads: int) -> Shapes:
    """Return the shapes in the order of the boxes, each of an array that the layer computed."""
    a, output = cache.attention, cache.output
    assert output is not None
    inputs = cache.projections[0].x, cache.projections[1].x
    outputs = split_heads(output.x, n_heads), output.x, add_norm.norm.xhat
    return Shapes(*map(_shape, (*inputs, a.q, a.k, a.v, a.scores, a.weights, *outputs)))


def _shape(array: Array) -> str:
    return "×".join(map(str, array.shape))


def forward_of_a_batch(
    *,
    sentences: int = 32,
    length: int | None = None,
    d_model: int = 512,
    n_heads: int = 8,
    d_ff: int = 2048,
    seed: int = 0,
) -> TransformerCache:
    """Run a model of one layer in each stack on a batch of the corpus, and return its cache.

    Args:
        sentences: The number of sentence pairs in the batch.
        length: The length to which sentences are cut; by default they are not cut.
        d_model, d_ff: The widths of the model, and inside the feed-forward network.
        n_heads, seed: The number of heads, and the seed of the random weights.
    """
    data = dataset()
    at_least(1, sentences=sentences)
    at_least(0, seed=seed)
    if sentences > len(data.train):
        raise UserError(f"sentences is {sentences}: the corpus has {len(data.train)}")
    batch = make_batch(data.train[:sentences], max_length=length)
    sizes = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff, "n_layers": 1, "tied": "none"}
    config = TransformerConfig.architecture("paper-base", **data.sizes, **sizes)
    model = Transformer(config, rng=np.random.default_rng(seed))
    return model.forward(batch.source, batch.target_in)[1]


@figure(
    "F20", "An encoder layer and a decoder layer in detail", "jianshu", "FW", "10.1 11.4", forward_of_a_batch
)
def layers_in_detail(cache: TransformerCache) -> Drawing:
    """Draw every operation of the two layers from the bottom up, with the shapes of a batch of the corpus."""
    network = cache.encoder[0].feed_forward
    sentences, n_heads, french, english = cache.decoder[0].cross.attention.scores.shape
    d_model, d_ff = (part.x.shape[-1] for part in (network.inner, network.outer))
    with new_board() as board:
        # three columns: the encoder, the decoder's first half, and its second half
        encoder, decoder = cache.encoder[0], cache.decoder[0]
        x0, x1 = 0.0, LEFT + RIGHT + 0.3
        x2 = x1 + LEFT + RIGHT + 0.85
        memory = _feed_forward(
            board, x0, _self_attention(board, x0, encoder, n_heads, "mask, softmax"), encoder
        )
        words = _self_attention(board, x1, decoder, n_heads, "causal mask, softmax")
        cross = _attention_shapes(decoder.cross, decoder.norm2, n_heads)
        inner, outer = x2 - LEFT - 0.25, x2 - LEFT - 0.6
        upper, lower = FOOT - 0.42, FOOT - 0.9
        over = memory[1] + 0.75
        points = [memory, (memory[0], over), (inner, over), (inner, upper), (x2, upper), (x2, FOOT)]
        board.arrow(*points)
        board.arrow((x2 - APART, upper), (x2 - APART, FOOT))
        over = words[1] + 0.75
        points = [words, (words[0], over), (outer, over), (outer, lower), (x2 + APART, lower)]
        board.arrow(*points, (x2 + APART, FOOT))
        for place, shape in ((memory, cross.key), (words, cross.query)):
            board.text(place[0] + 0.07, place[1] + 0.2, shape, ha="left")
        board.text(x2 - APART + 0.1, upper - 0.13, f"encoder's output {cross.key}", ha="left")
        board.text(x2 - APART + 0.1, lower - 0.13, f"first half's output {cross.query}", ha="left")
        top = _attention(board, x2, cross, "mask, softmax", (x2 + APART, lower))
        done = _feed_forward(board, x2, top, decoder)
        _up(board, x2, 9, 10, _shape(decoder.norm3.norm.xhat), HIGH + 0.3)
        names = ("encoder layer", "decoder layer\nfirst half", "decoder layer\nsecond half")
        for x, (_, end), name in zip((x0, x1, x2), (memory, words, done), names, strict=True):
            board.frame(x - LEFT, -1.4, x + RIGHT, end + 0.52, colour=name.split()[0])
            board.text(x - LEFT + 0.1, end + 0.45, name, ha="left", va="top", weight="bold")
    caption = (
        f"A batch of {sentences} sentence pairs, padded to {english} English and {french} French tokens. "
        f"Vectors are {d_model} wide (split into {n_heads} heads of {d_model // n_heads}), and {d_ff} wide "
        "inside the feed-forward network."
    )
    if french != english:
        caption += f" Only the scores of encoder-decoder attention are not square: {french} × {english}."
    return Drawing(board.figure, caption)


def _self_attention(
    board: Board, x: float, cache: EncoderLayerCache | Any, n_heads: int, mask_label: str
) -> Point:
    """Draw self-attention, whose three linear maps read the same input from below."""
    shapes = _attention_shapes(cache.self_attention, cache.norm1, n_heads)
    split = FOOT - 0.42
    board.arrow((x, split - 0.95), (x, FOOT))
    board.text(x + 0.07, split - 0.25, shapes.query, ha="left")
    for side in (-1, 1):
        board.arrow((x, split), (x + side * APART, split), (x + side * APART, FOOT))
    return _attention(board, x, shapes, mask_label, (x + APART, split))


def _attention(board: Board, x: float, shapes: Shapes, mask_label: str, residual: Point) -> Point:
    """Draw attention from the three linear maps to add & norm, and return the middle of its upper side."""
    for index, name in enumerate("VKQ"):
        _box(board, f"$W^{name}$", x + (index - 1) * APART, 0, NARROW, name.lower(), FORMULA)
    pair, pair_width = x + APART / 2, APART + NARROW
    board.arrow((x - APART, HIGH / 2), (x - APART, 3 * STEP - HIGH / 2))
    board.text(x - APART + 0.13, 1.5 * STEP, shapes.v, rotation=90, va="center", room=False)
    for index, shape in enumerate((shapes.k, shapes.q)):
        at = x + index * APART
        board.arrow((at, HIGH / 2), (at, STEP - HIGH / 2))
        board.text(at - 0.07, STEP / 2, shape, ha="right")
    _box(board, r"$QK^T\,/\,\sqrt{d_k}$", pair, 1, pair_width, "attention", FORMULA)
    _up(board, pair, 1, 2, shapes.scores)
    _box(board, mask_label, pair, 2, pair_width, "softmax")
    _up(board, pair, 2, 3, shapes.weights)
    _box(board, "weights · V", x, 3, WIDE, "attention")
    _up(board, x, 3, 4, shapes.z)
    _box(board, "concat", x, 4, WIDE, "attention")
    _up(board, x, 4, 5, shapes.joined)
    _box(board, "$W^O$", x, 5, WIDE, "linear", FORMULA)
    _up(board, x, 5, 6, shapes.out)
    return _add_norm(board, x, 6, residual)


def _feed_forward(board: Board, x: float, start: Point, cache: Any) -> Point:
    """Draw two linear maps with ReLU, and add & norm, above the add & norm whose upper side is `start`."""
    network, add_norm = cache.feed_forward, cache[-1]  # the last part of a layer is its last "add & norm"
    way_round = (x, start[1] + 0.1)
    _up(board, x, 6, 7, _shape(network.inner.x), 0.05)
    _box(board, "linear, ReLU", x, 7, WIDE, "feed_forward")
    _up(board, x, 7, 8, _shape(network.outer.x))
    _box(board, "linear", x, 8, WIDE, "feed_forward")
    _up(board, x, 8, 9, _shape(add_norm.norm.xhat))
    return _add_norm(board, x, 9, way_round)


def _box(
    board: Board, label: str, x: float, level: int, width: float, colour: str, size: float = LABEL
) -> Box:
    """Draw a box of a level."""
    return board.box(label, x, level * STEP, width, HIGH, colour=colour, size=size)


def _add_norm(board: Board, x: float, level: int, residual: Point) -> Point:
    """Draw add & norm with the dashed residual connection, and return the middle of its upper side."""
    box = _box(board, "add & norm", x, level, WIDE, "norm")
    board.arrow(*around(residual, box.right, x + ROUND), dashed=True)
    return box.top


def _up(board: Board, x: float, low: int, high: int, shape: str, more: float = 0.0) -> None:
    """Draw an arrow from a box to one of a higher level, with a shape beside it, `more` above its middle."""
    start, end = low * STEP + HIGH / 2, high * STEP - HIGH / 2
    board.arrow((x, start), (x, end + (more if more > HIGH else 0)))
    board.text(x + 0.07, (start + end) / 2 + min(more, 0.08), shape, ha="left")

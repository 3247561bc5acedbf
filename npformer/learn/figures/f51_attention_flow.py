"""F51: attention through encoder and decoder, layer by layer and token by token."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from matplotlib.axes import Axes

from npformer.backend import Array
from npformer.errors import UserError
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.learn.figures.trained_heads import forward_pair, unknown_words
from npformer.models.registry import attention_layers
from npformer.plots import Figure, key_frames
from npformer.plots.attention_lines import Flow, FlowRow, attention_flow
from npformer.pretrained.attention import ForwardPass

BANK = "i arrived at the bank after crossing the river"
ENCODER, DECODER, CROSS = "#2f86d6", "#a8005c", "highlight"  # the lines
LEGEND = (
    (ENCODER, "encoder self-attention"),
    (DECODER, "decoder self-attention"),
    (CROSS, "decoder to encoder"),
)


@figure("F51", "Attention flowing through encoder and decoder", "zhihu", "TR", "10.4 11.3")
def attention_flowing(studio: Studio, *, sentence: str = BANK, word: str | None = None) -> Drawing:
    """Draw rows of tokens with lines as wide as the weights: first the encoder, then each decoder step.

    The key frames are the first encoder layer, the first French word, and the step that writes `word`, by
    default the French of *bank* where there is one. The animation has all frames.

    Args:
        studio: The source of the trained model.
        sentence: An English sentence.
        word: A French word of the translation, or None.

    Raises:
        UserError: If the model does not write the word.
    """
    forward = forward_pair(studio, sentence)
    layers = len(forward.cache.encoder)
    step = _step_of(forward, word)
    key: list[tuple[str, tuple[int, int | None]]] = [
        ("the first encoder layer", (1, None)),
        ("the first word", (layers, 0)),
        (f"the step that writes “{forward.predicted[step]}”", (layers, step)),
    ]
    key = key if layers <= 3 else key[-1:]  # with more rows there is room for one frame
    names, shown = zip(*key, strict=True)
    picture = key_frames(partial(draw_moment, forward), shown, names=names, columns=1)
    cross = attention_layers(forward.cache, "cross")[-1][0].mean(0)[step]  # (S,)
    first, second = cross.argsort()[::-1][:2]
    caption = (
        "Every dot is the vector of a token. The width of a line shows a weight, averaged over the heads. "
        "The encoder processes all tokens at once, layer by layer. The decoder writes one token after "
        f"another: to write “{forward.predicted[step]}”, its last layer attends most to "
        f"{forward.source[first]} ({cross[first]:.2f}) and {forward.source[second]} ({cross[second]:.2f})."
    )
    frames: list[Callable[[], Figure]] = [
        partial(draw_moment, forward, moment) for moment in moments(forward)
    ]
    return Drawing(picture, caption + unknown_words(studio.translator, sentence), frames)


def moments(forward: ForwardPass) -> list[tuple[int, int | None]]:
    """Return pairs (number of finished encoder layers, index of the French word being written, or None)."""
    layers = len(forward.cache.encoder)
    before: list[tuple[int, int | None]] = [(done, None) for done in range(layers + 1)]
    return before + [(layers, step) for step in range(len(forward.predicted))]


def draw_moment(forward: ForwardPass, moment: tuple[int, int | None], ax: Axes | None = None) -> Figure:
    """Draw one frame: the finished encoder layers, and everything that one decoder step attends to.

    Args:
        forward, moment: The forward pass, and one of the pairs that `moments` returns.
        ax: Axes to draw on; by default those of a new figure.
    """
    done, step = moment
    encoder, decoder, cross = (
        [weights[0].mean(0) for weights in attention_layers(forward.cache, where)]  # each (T, S)
        for where in ("encoder", "decoder", "cross")
    )
    layers, count, length = len(forward.cache.encoder), len(forward.source), len(forward.target)
    rows = []
    for level in range(layers + 1):
        name = f"encoder layer {level - 1}" if level else "embeddings"
        words = None if level else forward.source
        lit = count if level <= done else 0
        rows.append(FlowRow(name, count, 0, level, "r", words, lit=lit))
    now = -1 if step is None else step
    last = len(forward.cache.decoder)
    for level in range(last + 1):
        name = f"decoder layer {level - 1}" if level else "embeddings"
        words = {0: forward.target, last: forward.predicted}.get(level)
        row = FlowRow(name, length, count + 1.5, layers + level, "z", words, above=level == last)
        rows.append(replace(row, lit=now + 1, bold=now if level == last else None, name_side="right"))
    top = len(encoder)  # the encoder's last row
    flows = []
    for layer, (below, above) in enumerate(pairwise(range(top + 1))):
        if layer < done:
            faint = layer < done - 1 or step is not None
            flows.append(Flow(below, above, encoder[layer], ENCODER, faint=faint))
    if step is not None:
        for layer, (below, above) in enumerate(pairwise(range(top + 1, len(rows)))):
            flows.append(Flow(below, above, _only(decoder[layer], step), DECODER))
            flows.append(Flow(top, above, _only(cross[layer], step), CROSS))
    return attention_flow(rows, flows, legend=LEGEND, ax=ax)


def _only(weights: Array, row: int) -> Array:
    """Return the weights of one query, and 0 for all others. Shapes: (T, S) -> (T, S)."""
    row_only = weights * 0
    row_only[row] = weights[row]
    return row_only


def _step_of(forward: ForwardPass, word: str | None) -> int:
    if word is None:
        meanings = [index for index, each in enumerate(forward.predicted) if each in ("rive", "banque")]
        return meanings[0] if meanings else len(forward.predicted) // 2
    if word not in forward.predicted:
        raise UserError(f"the model does not write {word!r} here: it writes {' '.join(forward.predicted)!r}")
    return forward.predicted.index(word)

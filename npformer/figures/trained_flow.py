"""F51: attention on its way through encoder and decoder, row by row and word by word."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.studio import Look
from npformer.figures.trained_heads import look_at_pair, unknown_words
from npformer.models import attention_layers
from npformer.plots import Figure, key_frames
from npformer.plots.flow import Flow, Row, attention_flow

BANK = "i arrived at the bank after crossing the river"
ENCODER, DECODER, CROSS = "#2f86d6", "#a8005c", "highlight"  # the lines
LEGEND = (
    (ENCODER, "encoder self-attention"),
    (DECODER, "decoder self-attention"),
    (CROSS, "decoder to encoder"),
)


@figure("F51", "Attention flowing through encoder and decoder", source="S3", data="TR")
def attention_flowing(studio, *, sentence: str = BANK, word: str | None = None) -> Drawing:
    """Rows of words, lines as wide as the weights: the encoder all at once, the decoder word by word.

    The key frames are the first encoder layer, the first French word, and the step that writes `word`
    (the French of *bank* where there is one). The frames are all of them.
    Errors: UserError for a word that the model does not write there.
    """
    seen = look_at_pair(studio, sentence)
    layers = len(seen.cache.encoder)
    step = _step_of(seen, word)
    key: list[tuple[str, tuple[int, int | None]]] = [
        ("the first encoder layer", (1, None)),
        ("the first word", (layers, 0)),
        (f"the step that writes “{seen.predicted[step]}”", (layers, step)),
    ]
    key = key if layers <= 3 else key[-1:]  # more rows leave room for one
    names, shown = zip(*key, strict=True)
    picture = key_frames(lambda moment, ax=None: draw_moment(seen, moment, ax), shown, names=names, columns=1)
    cross = attention_layers(seen.cache, "cross")[-1][0].mean(0)[step]  # (S,)
    first, second = cross.argsort()[::-1][:2]
    caption = (
        f"Every dot is a word's vector, every line a weight, mean over the heads, as wide as it is large. "
        f"The encoder does all words at once, layer upon layer. The decoder goes word by word: to write "
        f"“{seen.predicted[step]}”, its last layer looks at {seen.source[first]} ({cross[first]:.2f}) "
        f"and {seen.source[second]} ({cross[second]:.2f})."
    )
    frames: list[Callable[[], Figure]] = [partial(draw_moment, seen, moment) for moment in moments(seen)]
    return Drawing(picture, caption + unknown_words(studio.translator, sentence), frames)


def moments(seen: Look) -> list[tuple[int, int | None]]:
    """Pairs (encoder layers that are done, which French word is being written, or None)."""
    layers = len(seen.cache.encoder)
    before: list[tuple[int, int | None]] = [(done, None) for done in range(layers + 1)]
    return before + [(layers, step) for step in range(len(seen.predicted))]


def draw_moment(seen: Look, moment: tuple[int, int | None], ax=None) -> Figure:
    """One frame: the encoder's layers that are done, and all that one decoder step looks at."""
    done, step = moment
    encoder, decoder, cross = (
        [weights[0].mean(0) for weights in attention_layers(seen.cache, where)]  # each (T, S)
        for where in ("encoder", "decoder", "cross")
    )
    rows = _rows(seen, done, step)
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


def _rows(seen: Look, done: int, step: int | None) -> list[Row]:
    """The encoder's rows from below, then the decoder's, which begin at the height of the encoder's last."""
    layers, count, length = len(seen.cache.encoder), len(seen.source), len(seen.target)
    rows = []
    for level in range(layers + 1):
        name = f"encoder layer {level - 1}" if level else "embeddings"
        words = None if level else seen.source
        lit = count if level <= done else 0
        rows.append(Row(name, count, 0, level, "r", words, lit=lit))
    now = -1 if step is None else step
    last = len(seen.cache.decoder)
    for level in range(last + 1):
        name = f"decoder layer {level - 1}" if level else "embeddings"
        words = {0: seen.target, last: seen.predicted}.get(level)
        row = Row(name, length, count + 1.5, layers + level, "z", words, above=level == last)
        rows.append(replace(row, lit=now + 1, bold=now if level == last else None, name_side="right"))
    return rows


def _only(weights, row):
    """The weights of one query; 0 for all others. Shapes: (T, S) -> (T, S)."""
    kept = weights * 0
    kept[row] = weights[row]
    return kept


def _step_of(seen: Look, word: str | None) -> int:
    if word is None:
        wanted = [index for index, each in enumerate(seen.predicted) if each in ("rive", "banque")]
        return wanted[0] if wanted else len(seen.predicted) // 2
    if word not in seen.predicted:
        raise UserError(f"the model does not write {word!r} here: it writes {' '.join(seen.predicted)!r}")
    return seen.predicted.index(word)

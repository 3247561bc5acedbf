"""How one moment of decoding is drawn: encoders, K and V, decoders, linear + softmax, words so far."""

from typing import Any, NamedTuple

from matplotlib.patches import Rectangle

from npformer.plots import Figure
from npformer.plots.boxes import Box, arrow, draw_box
from npformer.plots.layout import root, sheet
from npformer.plots.palette import COLOURS, edge
from npformer.plots.style import SMALL, TEXT, drawing, number, printable, text_size, widest

WORD, APART = 0.28, 0.08  # height of a word's box, and the gap beside it
BLOCK, RISE = 0.32, 0.5  # height of an encoder or decoder, and from one to the next
MIDDLE = 0.75  # between the two stacks, for the arrows of K and V
RIGHT = 0.3  # for the way back of a word
CELL = 0.19  # height of a K or V
BAR = 0.42  # of a weight of 1
LINE = 0.2  # from one likely word to the next


class Panel(NamedTuple):
    """One moment. stage 1: the encoders have read; 2: K and V; 3: the decoders too; 4: a word is written."""

    source: list[str]  # S words
    target: list[str]  # T words that all steps read
    predicted: list[str]  # T words that all steps write
    number: int  # of the step, from 1
    encoders: int
    decoders: int
    looks: Any  # (S,) weights over the source
    likeliest: list[tuple[str, float]]
    stage: int = 4


class Place(NamedTuple):
    """Where things stand, in inches: the same for every step of a sentence, so that frames match."""

    source: list[float]  # middles of the words' boxes
    target: list[float]
    source_widths: list[float]
    target_widths: list[float]
    left: tuple[float, float]  # of the encoders
    right: tuple[float, float]  # of the decoders
    first: float  # height of the lowest encoder and decoder
    keys: float  # lower edge of the V cells
    linear: float
    words: float  # height of the likeliest word
    top: float


def draw_panel(panel: Panel, ax=None) -> Figure:
    """Draw it, on given axes or on a figure of its own."""
    with drawing(panel.source, panel.target, panel.predicted, [word for word, _ in panel.likeliest]):
        place = _place(panel)
        ax = sheet(place.right[1] + RIGHT, place.top, ax=ax, what=f"a sentence of {len(panel.target)} words")
        _heading(ax, panel, place)
        _encoders(ax, panel, place)
        if panel.stage >= 2:
            _keys_and_values(ax, panel, place)
        _decoders(ax, panel, place)
        if panel.stage >= 4:
            _output(ax, panel, place)
        return root(ax)


def _place(panel: Panel) -> Place:
    boxes = [
        [text_size(printable(word))[0] + 0.14 for word in words] for words in (panel.source, panel.target)
    ]
    needs = [sum(widths) + APART * (len(widths) - 1) for widths in boxes]
    steps = _steps_line(panel)
    name = text_size(f"decoder {panel.decoders}", 10)[0] + 0.3
    needs[0] = max(needs[0], name, text_size(steps, weight="bold")[0])
    written = text_size("output: " + " ".join(panel.predicted), weight="bold")[0]
    needs[1] = max(needs[1], name, text_size("linear + softmax", 10)[0] + 0.2, written)
    edge_keys = text_size("K")[0] + 0.08
    left = (edge_keys, edge_keys + needs[0])
    right = (left[1] + MIDDLE, left[1] + MIDDLE + needs[1])
    first = WORD + 0.24 + BLOCK / 2
    keys = first + (panel.encoders - 1) * RISE + BLOCK / 2 + 0.2
    linear = first + panel.decoders * RISE
    words = linear + BLOCK / 2 + 0.2 + (len(panel.likeliest) - 0.5) * LINE
    top = max(words + 0.6 * LINE + 0.3, keys + 2 * CELL + BAR + 0.55)
    source, target = _middles(boxes[0], left), _middles(boxes[1], right)
    return Place(source, target, boxes[0], boxes[1], left, right, first, keys, linear, words, top)


def _middles(widths, span):
    """Boxes in the middle of a span, from left to right."""
    x = (span[0] + span[1] - sum(widths) - APART * (len(widths) - 1)) / 2
    middles = []
    for width in widths:
        middles.append(x + width / 2)
        x += width + APART
    return middles


def _steps_line(panel):
    return "decoding step " + " ".join(str(step + 1) for step in range(len(panel.target)))


def _heading(ax, panel, place):
    """ "decoding step 1 2 3", the present one dark."""
    y, x = place.top - 0.12, place.left[0]
    ax.text(x, y, "decoding step", va="center_baseline")
    x += text_size("decoding step ")[0] + 0.06
    for step in range(1, len(panel.target) + 1):
        now = step == panel.number
        style = {"weight": "bold"} if now else {"color": COLOURS["faint"]}
        ax.text(x, y, str(step), va="center_baseline", **style)
        x += text_size(f"{step}", weight="bold")[0] + 0.07


def _encoders(ax, panel, place):
    middle, width = sum(place.left) / 2, place.left[1] - place.left[0]
    for word, x, wide in zip(panel.source, place.source, place.source_widths, strict=True):
        box = draw_box(ax, Box(printable(word), x, WORD / 2, wide, WORD, "x_position", TEXT))
        arrow(ax, box.top, (x, place.first - BLOCK / 2), width=1.0)
    for level in range(panel.encoders):
        y = place.first + level * RISE
        draw_box(ax, Box(f"encoder {level}", middle, y, width, BLOCK, "encoder"))
        if level:
            arrow(ax, (middle, y - RISE + BLOCK / 2), (middle, y - BLOCK / 2), width=1.0)


def _keys_and_values(ax, panel, place):
    """A K and a V for every word over the encoders, arrows to every decoder, and the weights as bars."""
    middle = sum(place.left) / 2
    top = place.first + (panel.encoders - 1) * RISE + BLOCK / 2
    arrow(ax, (middle, top), (middle, place.keys), width=1.0)
    for row, (name, role) in enumerate((("V", "v"), ("K", "k"))):
        y = place.keys + row * CELL
        ax.text(
            place.source[0] - place.source_widths[0] / 2 - 0.05, y + CELL / 2, name, ha="right", va="center"
        )
        for x, wide in zip(place.source, place.source_widths, strict=True):
            cell = Rectangle((x - wide / 2, y), wide, CELL, facecolor=COLOURS[role], edgecolor=edge(role))
            cell.set(zorder=3, clip_on=False)
            ax.add_patch(cell)
    start = place.source[-1] + place.source_widths[-1] / 2, place.keys + CELL
    turn = place.left[1] + MIDDLE / 2
    for level in range(panel.decoders):
        y = place.first + level * RISE + 0.06
        arrow(ax, start, (turn, start[1]), (turn, y), (place.right[0], y), width=1.0)
    if panel.stage >= 3:
        _weights(ax, panel, place)


def _weights(ax, panel, place):
    base = place.keys + 2 * CELL
    best = int(panel.looks.argmax())
    for index, (x, wide, weight) in enumerate(
        zip(place.source, place.source_widths, panel.looks, strict=True)
    ):
        bar = Rectangle((x - wide / 2, base), wide, BAR * weight, facecolor=COLOURS["highlight"], zorder=3)
        bar.set(clip_on=False, gid="weight")
        ax.add_patch(bar)
        weight_text = "bold" if index == best else "normal"
        y = base + BAR * weight + 0.03
        ax.text(x, y, number(weight), size=SMALL, ha="center", va="bottom", weight=weight_text)


def _decoders(ax, panel, place):
    """The words read so far, the decoders, and linear + softmax; faded until their stage comes."""
    middle, width = sum(place.right) / 2, place.right[1] - place.right[0]
    on = panel.stage >= 3
    now = panel.number - 1
    for index in range(now + 1):
        x, wide = place.target[index], place.target_widths[index]
        shown = Box(printable(panel.target[index]), x, WORD / 2, wide, WORD, "x_position", TEXT)
        box = draw_box(ax, shown, faded=not on, highlight=on and index == now > 0)
        if on:
            arrow(ax, box.top, (x, place.first - BLOCK / 2), width=1.0)
    for level in range(panel.decoders):
        y = place.first + level * RISE
        draw_box(ax, Box(f"decoder {level}", middle, y, width, BLOCK, "decoder"), faded=not on)
        if on and level:
            arrow(ax, (middle, y - RISE + BLOCK / 2), (middle, y - BLOCK / 2), width=1.0)
    last = panel.stage >= 4
    draw_box(ax, Box("linear + softmax", middle, place.linear, width, BLOCK, "linear"), faded=not last)
    if last:
        arrow(ax, (middle, place.linear - RISE + BLOCK / 2), (middle, place.linear - BLOCK / 2), width=1.0)


def _output(ax, panel, place):
    """The likeliest words as bars, the sentence so far, and the way of its last word back to the decoder."""
    names = widest([printable(word) for word, _ in panel.likeliest], TEXT)
    x = place.right[0] + names + 0.08
    longest = place.right[1] - x - text_size(number(0.5), SMALL)[0] - 0.08
    for index, (word, probability) in enumerate(panel.likeliest):
        y = place.words - index * LINE
        weight = "normal" if index else "bold"
        ax.text(
            x - 0.06, y, printable(word), ha="right", va="center_baseline", weight=weight, parse_math=False
        )
        bar = Rectangle(
            (x, y - 0.06), longest * probability, 0.12, facecolor="#1b5fa8" if index == 0 else COLOURS["r"]
        )
        bar.set(clip_on=False, gid="probability", zorder=3)
        ax.add_patch(bar)
        ax.text(x + longest * probability + 0.05, y, number(probability), size=SMALL, va="center_baseline")
    y, x = place.top - 0.12, place.right[0]
    ax.text(x, y, "output:", va="center_baseline", color=COLOURS["faint"])
    x += text_size("output: ")[0] + 0.04
    for index, word in enumerate(panel.predicted[: panel.number]):
        weight = "bold" if index == panel.number - 1 else "normal"
        ax.text(x, y, printable(word), va="center_baseline", weight=weight, parse_math=False)
        x += text_size(printable(word) + " ", weight="bold")[0] + 0.04
    if panel.number < len(panel.target):
        _way_back(ax, panel, place, x)


def _way_back(ax, panel, place, x):
    """A dashed line from the word just written to the place where the next step reads it."""
    y, out = place.top - 0.12, place.right[1] + RIGHT - 0.08
    box = place.target[panel.number]
    arrow(
        ax,
        (x + 0.02, y),
        (out, y),
        (out, WORD / 2),
        (box, WORD / 2),
        dashed=True,
        width=1.0,
    )

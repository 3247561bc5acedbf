"""F44 and F45: decoding step by step, from the encoders' keys and values to the end symbol."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from npformer.functional import softmax
from npformer.generation.search import forbidden_tokens
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.learn.figures.trained_heads import unknown_words
from npformer.models.registry import attention_layers
from npformer.plots import Figure, key_frames
from npformer.plots.boxes import Box, arrow, draw_box
from npformer.plots.layout import MAX_SIDE, PAD, root, sheet
from npformer.plots.palette import COLOURS, edge
from npformer.plots.style import SMALL, TEXT, drawing, literal, number, text_size, visible, widest

WORD, APART = 0.28, 0.08  # height of a word's box, and the gap beside it
BLOCK, RISE = 0.32, 0.5  # height of an encoder or decoder, and from one to the next
MIDDLE = 0.75  # between the two stacks, for the arrows of K and V
RIGHT = 0.3  # for the line from a written word back to the input
CELL = 0.19  # height of a K or V
BAR = 0.42  # height of the bar of a weight of 1
LINE = 0.2  # from one of the most probable words to the next


class Panel(NamedTuple):
    """One stage of a decoding step.

    Stage 1 shows the encoders. Stages 2, 3 and 4 add K and V, the decoders, and the written word.
    """

    source: list[str]  # S words
    target: list[str]  # T words, the inputs of all steps
    predicted: list[str]  # T words, the outputs of all steps
    number: int  # of the step, from 1
    encoders: int
    decoders: int
    attention: Any  # (S,) weights over the source
    most_probable: list[tuple[str, float]]
    stage: int = 4


class PanelLayout(NamedTuple):
    """The places of all parts, in inches: the same for every step of a sentence, so that frames match."""

    source: list[tuple[float, float]]  # the middles and the widths of the words' boxes
    target: list[tuple[float, float]]
    left: tuple[float, float]  # of the encoders
    right: tuple[float, float]  # of the decoders
    first: float  # height of the lowest encoder and decoder
    keys: float  # lower edge of the V cells
    linear: float
    words: float  # height of the most probable word
    top: float


def draw_panel(panel: Panel, ax: Axes | None = None) -> Figure:
    """Draw a panel on given axes or on a figure of its own."""
    with drawing(panel.source, panel.target, panel.predicted, [word for word, _ in panel.most_probable]):
        place = _place(panel)
        ax = sheet(place.right[1] + RIGHT, place.top, ax=ax, what=f"a sentence of {len(panel.target)} words")
        # decoding step 1 2 3, with the present step in bold
        y, x = place.top - 0.12, place.left[0]
        ax.text(x, y, "decoding step", va="center_baseline")
        x += text_size("decoding step ")[0] + 0.06
        for step in range(1, len(panel.target) + 1):
            now = step == panel.number
            style: dict[str, Any] = {"weight": "bold"} if now else {"color": COLOURS["faint"]}
            ax.text(x, y, str(step), va="center_baseline", **style)
            x += text_size(f"{step}", weight="bold")[0] + 0.07
        middle, width = sum(place.left) / 2, place.left[1] - place.left[0]
        for word, (x, wide) in zip(panel.source, place.source, strict=True):
            box = draw_box(ax, Box(literal(word), x, WORD / 2, wide, WORD, "x_position", TEXT))
            arrow(ax, box.top, (x, place.first - BLOCK / 2), width=1.0)
        _stack(ax, "encoder", panel.encoders, (middle, place.first), width)
        if panel.stage >= 2:
            _keys_and_values(ax, panel, place)
        _decoders(ax, panel, place)
        if panel.stage >= 4:
            _output(ax, panel, place)
        return root(ax)


def _place(panel: Panel) -> PanelLayout:
    boxes = [[text_size(visible(word))[0] + 0.14 for word in words] for words in (panel.source, panel.target)]
    needs = [sum(widths) + APART * (len(widths) - 1) for widths in boxes]
    steps = "decoding step " + " ".join(str(step + 1) for step in range(len(panel.target)))
    name = text_size(f"decoder {panel.decoders}", 10)[0] + 0.3
    needs[0] = max(needs[0], name, text_size(steps, weight="bold")[0], text_size(_of_bars(panel), SMALL)[0])
    written = text_size("output: " + " ".join(panel.predicted), weight="bold")[0]
    needs[1] = max(needs[1], name, text_size("linear + softmax", 10)[0] + 0.2, written)
    edge_keys = text_size("K")[0] + 0.08
    left = (edge_keys, edge_keys + needs[0])
    right = (left[1] + MIDDLE, left[1] + MIDDLE + needs[1])
    first = WORD + 0.24 + BLOCK / 2
    keys = first + (panel.encoders - 1) * RISE + BLOCK / 2 + 0.2
    linear = first + panel.decoders * RISE
    words = linear + BLOCK / 2 + 0.2 + (len(panel.most_probable) - 0.5) * LINE
    top = max(words + 1.6 * LINE + 0.3, keys + 2 * CELL + BAR + 0.7)
    places: list[list[tuple[float, float]]] = [[], []]
    for widths, span, row in zip(boxes, (left, right), places, strict=True):
        x = (span[0] + span[1] - sum(widths) - APART * (len(widths) - 1)) / 2
        for width in widths:
            row.append((x + width / 2, width))
            x += width + APART
    return PanelLayout(places[0], places[1], left, right, first, keys, linear, words, top)


def _stack(
    ax: Axes, name: str, count: int, first: tuple[float, float], width: float, *, on: bool = True
) -> None:
    """Draw encoders or decoders above each other from the middle of the first, with arrows if they are on."""
    x, y = first
    for level in range(count):
        draw_box(ax, Box(f"{name} {level}", x, y, width, BLOCK, name), faded=not on)
        if on and level:
            arrow(ax, (x, y - RISE + BLOCK / 2), (x, y - BLOCK / 2), width=1.0)
        y += RISE


def _keys_and_values(ax: Axes, panel: Panel, place: PanelLayout) -> None:
    """Draw K and V of every word above the encoders, arrows to every decoder, and the weights as bars."""
    middle = sum(place.left) / 2
    top = place.first + (panel.encoders - 1) * RISE + BLOCK / 2
    arrow(ax, (middle, top), (middle, place.keys), width=1.0)
    for row, (name, role) in enumerate((("V", "v"), ("K", "k"))):
        y = place.keys + row * CELL
        (x, wide), *_ = place.source
        ax.text(x - wide / 2 - 0.05, y + CELL / 2, name, ha="right", va="center")
        for (x, wide), word in zip(place.source, panel.source, strict=True):
            _bar(ax, x - wide / 2, y, wide, CELL, facecolor=COLOURS[role], edgecolor=edge(role))
            centred: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 4}
            ax.text(x, y + CELL / 2, visible(word), size=SMALL, parse_math=False, **centred)
    start = place.source[-1][0] + place.source[-1][1] / 2, place.keys + CELL
    turn = place.left[1] + MIDDLE / 2
    for level in range(panel.decoders):
        y = place.first + level * RISE + 0.06
        arrow(ax, start, (turn, start[1]), (turn, y), (place.right[0], y), width=1.0)
    if panel.stage >= 3:
        # a bar for the weight of each word above its K, and the name of the bars above them
        base = place.keys + 2 * CELL
        above = base + BAR + 0.28
        ax.text(place.left[0], above, _of_bars(panel), size=SMALL, va="center")
        best = int(panel.attention.argmax())
        for index, ((x, wide), weight) in enumerate(zip(place.source, panel.attention, strict=True)):
            orange = COLOURS["highlight"]
            _bar(ax, x - wide / 2, base, wide, BAR * weight, facecolor=orange, gid="weight")
            weight_text = "bold" if index == best else "normal"
            y = base + BAR * weight + 0.03
            ax.text(x, y, number(weight), size=SMALL, ha="center", va="bottom", weight=weight_text)


def _bar(ax: Axes, left: float, bottom: float, width: float, height: float, **style: Any) -> None:
    ax.add_patch(Rectangle((left, bottom), width, height, zorder=3, clip_on=False, **style))


def _of_bars(panel: Panel) -> str:
    return f"attention weights of decoder {panel.decoders - 1}"


def _decoders(ax: Axes, panel: Panel, place: PanelLayout) -> None:
    """Draw the words read so far, the decoders, and linear + softmax, all faded until their stage comes."""
    middle, width = sum(place.right) / 2, place.right[1] - place.right[0]
    on = panel.stage >= 3
    now = panel.number - 1
    for index in range(now + 1):
        x, wide = place.target[index]
        shown = Box(literal(panel.target[index]), x, WORD / 2, wide, WORD, "x_position", TEXT)
        box = draw_box(ax, shown, faded=not on, highlight=on and index == now > 0)
        if on:
            arrow(ax, box.top, (x, place.first - BLOCK / 2), width=1.0)
    _stack(ax, "decoder", panel.decoders, (middle, place.first), width, on=on)
    last = panel.stage >= 4
    draw_box(ax, Box("linear + softmax", middle, place.linear, width, BLOCK, "linear"), faded=not last)
    if last:
        arrow(ax, (middle, place.linear - RISE + BLOCK / 2), (middle, place.linear - BLOCK / 2), width=1.0)


def _output(ax: Axes, panel: Panel, place: PanelLayout) -> None:
    """Draw the most probable words as bars, the sentence so far, and a line from its end to the input."""
    names = widest([visible(word) for word, _ in panel.most_probable], TEXT)
    x = place.right[0] + names + 0.08
    longest = place.right[1] - x - text_size(number(0.5), SMALL)[0] - 0.08
    for index, (word, probability) in enumerate(panel.most_probable):
        y = place.words - index * LINE
        weight = "normal" if index else "bold"
        ax.text(x - 0.06, y, visible(word), ha="right", va="center_baseline", weight=weight, parse_math=False)
        face = COLOURS["r"] if index else "#1b5fa8"
        _bar(ax, x, y - 0.06, longest * probability, 0.12, facecolor=face, gid="probability")
        ax.text(x + longest * probability + 0.05, y, number(probability), size=SMALL, va="center_baseline")
    heading = "probabilities of the next word:"
    ax.text(place.right[0], place.words + LINE, heading, size=SMALL, va="center_baseline")
    y, x = place.top - 0.12, place.right[0]
    ax.text(x, y, "output:", va="center_baseline", color=COLOURS["faint"])
    x += text_size("output: ")[0] + 0.04
    for index, word in enumerate(panel.predicted[: panel.number]):
        weight = "bold" if index == panel.number - 1 else "normal"
        ax.text(x, y, visible(word), va="center_baseline", weight=weight, parse_math=False)
        x += text_size(visible(word) + " ", weight="bold")[0] + 0.04
    if panel.number < len(panel.target):
        # a dashed line from the word just written to the place where the next step reads it
        y, out = place.top - 0.12, place.right[1] + RIGHT - 0.08
        box, _ = place.target[panel.number]
        arrow(ax, (x + 0.02, y), (out, y), (out, WORD / 2), (box, WORD / 2), dashed=True, width=1.0)


# The figures.

STUDENT = "je suis étudiant"
MOST_PROBABLE = 3  # words shown beside the softmax
STAGES = ("the encoders", "K and V for every decoder", "the decoders attend", "the next word")


def panels_of(studio: Studio, sentence: str) -> list[Panel]:
    """Return every step of a greedy translation, from the cache of one pass over the whole translation.

    The causal mask makes row t of that pass equal to step t.
    """
    translator = studio.from_french
    forward = studio.forward_pass(sentence, translator=translator)
    probabilities, _ = softmax(forward.logits[0])  # (T, V)
    probabilities[:, forbidden_tokens(translator.model.config)] = 0  # decoding never writes <UNK>
    attention = attention_layers(forward.cache, "cross")[-1][0].mean(0)  # (T, S)
    sentences = forward.source, forward.target, forward.predicted
    layers = len(forward.cache.encoder), len(forward.cache.decoder)
    words = translator.codec.target.vocabulary.words
    panels = []
    for t, row in enumerate(probabilities):
        best = np.argsort(-row, kind="stable")[:MOST_PROBABLE]
        most_probable = [(words[word], float(row[word])) for word in best]
        panels.append(Panel(*sentences, t + 1, *layers, attention[t], most_probable))
    return panels


@figure("F44", "Decoding, the first step", "datawhale", "TR", "14.1 11.3")
def first_step(studio: Studio, *, sentence: str = STUDENT) -> Drawing:
    """Draw the first step: the encoders, K and V for every decoder, the decoders, and the first word."""
    panels = panels_of(studio, sentence)
    stages = [panels[0]._replace(stage=stage) for stage in range(1, len(STAGES) + 1)]
    columns = _columns(panels[0])
    first = 0 if columns == 2 else 1  # in one column there is room for three; each shows the stages before it
    names = [f"{number}. {name}" for number, name in enumerate(STAGES[first:], 1)]
    picture = key_frames(draw_panel, stages[first:], names=names, columns=columns)
    attention, (word, probability) = panels[0].attention, panels[0].most_probable[0]
    caption = (
        f"“{sentence}”, step 1 of {len(panels)}: the encoders read all words at once, and the output of the "
        "last one becomes keys and values (K, V) for each decoder. The decoders read only <S> and attend "
        f"most to “{panels[0].source[int(attention.argmax())]}” (orange, {attention.max():.2f}); linear + "
        f"softmax gives “{word}” a probability of {probability:.2f}."
    )
    return Drawing(picture, caption + about_model(studio, sentence), frames_of(stages))


@figure("F45", "Decoding, the other steps, up to the end symbol", "datawhale", "TR", "14.1")
def other_steps(studio: Studio, *, sentence: str = STUDENT) -> Drawing:
    """Draw the other steps. Each written word is read in the next step, while K and V stay the same."""
    panels = panels_of(studio, sentence)
    shown = panels[1:] or panels
    names = [f"step {panel.number}" for panel in shown]
    columns = _columns(shown[0])
    most = 4 if columns == 2 else 3  # key frames: the first ones and the last
    few = [*range(len(shown))] if len(shown) <= most else [*range(most - 1), len(shown) - 1]
    named = [names[i] for i in few]
    picture = key_frames(draw_panel, [shown[i] for i in few], names=named, columns=columns)
    written = zip(panels[0].predicted, panels, strict=True)
    words = ", ".join(f"“{word}” {panel.most_probable[0][1]:.2f}" for word, panel in [*written][1:])
    caption = (
        f"“{sentence}”, steps 2 to {len(panels)}: each written word is embedded and read in the next step, "
        f"while K and V stay the same. The most probable words, with their probabilities, are {words}. The "
        "end symbol </S> ends the translation."
    )
    return Drawing(picture, caption + about_model(studio, sentence), frames_of(panels))


def frames_of(panels: list[Panel]) -> list[Callable[[], Figure]]:
    """Return the functions that draw the panels, for an animation."""
    return [partial(draw_panel, panel) for panel in panels]


def about_model(studio: Studio, sentence: str) -> str:
    """Return the part of a caption that names the model and the words it does not know."""
    return " (By a second model, French to English, trained here.)" + unknown_words(
        studio.from_french, sentence
    )


def _columns(panel: Panel) -> int:
    """Return 2 if two panels fit beside each other, else 1."""
    width = draw_panel(panel).get_size_inches()[0]
    return 2 if 2 * width + 3 * PAD <= MAX_SIDE else 1

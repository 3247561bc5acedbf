"""The Transformer from afar: a black box, then stacks, then one layer of each (F02 to F04)."""

from itertools import pairwise

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.schematic_parts import HIGH, config_of, large_box, layer_plan
from npformer.plots.board import Board
from npformer.plots.boxes import Box
from npformer.plots.style import FORMULA, drawing, printable
from npformer.transformer import TransformerConfig

SENTENCE, TRANSLATION = "Je suis étudiant", "I am a student"
STEP = 0.66  # from one layer of a stack to the next
LAYER_STEP = 0.85  # from one sublayer to the next


@figure("F02", "The Transformer as a black box, opened", source="S0", data="SC")
def black_box(
    studio,
    *,
    sentence: str = SENTENCE,
    translation: str = TRANSLATION,
    preset: str = "paper-base",
    **settings,
) -> Drawing:
    """A sentence goes in and its translation comes out; below, the box is open."""
    config = config_of(preset, settings)
    sentence, translation = _shown(sentence, "sentence"), _shown(translation, "translation")
    with drawing(sentence, translation):
        board = Board()
        apart = 2.5  # from the middle of the encoders to that of the decoders
        box = large_box(board, "the Transformer", apart / 2, 2.0, 2.2, 0.8, "ink")
        encoders = large_box(board, _several(config.n_layers, "encoder"), 0, 0, 1.5, 0.8, "encoder")
        decoders = large_box(board, _several(config.n_layers, "decoder"), apart, 0, 1.5, 0.8, "decoder")
        left, right, top = encoders.left[0] - 0.25, decoders.right[0] + 0.25, 0.75
        board.frame(left, -0.65, right, top)
        for x, corner in ((box.left[0], left), (box.right[0], right)):
            board.arrow((x, box.bottom[1]), (corner, top), dashed=True, head=False, colour="faint")
        board.arrow(encoders.right, decoders.left)
        for first, last in ((box, box), (encoders, decoders)):
            _words_in_and_out(board, first, last, sentence, translation, (left - 0.5, right + 0.5))
        picture = board.cut()
    return Drawing(
        picture,
        f"From outside, a machine that turns “{sentence}” into “{translation}”. Inside, "
        f"{_several(config.n_layers, 'encoder')} read the whole source, and "
        f"{_several(config.n_layers, 'decoder')} write the translation from what they read.",
    )


def _words_in_and_out(board: Board, first: Box, last: Box, sentence, translation, ends) -> None:
    """A sentence at the left with an arrow into a box, and one at the right that another box wrote."""
    board.arrow((ends[0], first.y), first.left)
    board.arrow(last.right, (ends[1], last.y))
    board.text(ends[0] - 0.08, first.y, sentence, size=FORMULA, ha="right", parse_math=False)
    board.text(ends[1] + 0.08, last.y, translation, size=FORMULA, ha="left", parse_math=False)


def _shown(text: str, name: str) -> str:
    """A sentence as it can be drawn. Errors: UserError for an empty one."""
    if not text.strip():
        raise UserError(f"the {name} is empty: write at least one word")
    return printable(text)


def _several(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count > 1)


@figure("F03", "The stacks: the top encoder is read by every decoder", source="S0", data="SC")
def stacks(
    studio,
    *,
    sentence: str = SENTENCE,
    translation: str = TRANSLATION,
    preset: str = "paper-base",
    **settings,
) -> Drawing:
    """Encoders one over another at the left, decoders at the right, and the fan between them."""
    config = config_of(preset, settings)
    sentence, translation = _shown(sentence, "sentence"), _shown(translation, "translation")
    n, apart = config.n_layers, 3.2
    with drawing(sentence, translation):
        board = Board()
        encoders, decoders = (
            [board.box(f"{name} #{i}", x, i * STEP, 1.5, HIGH, colour=name) for i in range(n)]
            for name, x in (("encoder", 0), ("decoder", apart))
        )
        for stack in (encoders, decoders):
            for below, above in pairwise(stack):
                board.arrow(below.top, above.bottom)
        _fan(board, encoders[-1], decoders)
        board.arrow((0, -STEP), encoders[0].bottom)
        board.arrow((apart, -STEP), decoders[0].bottom)
        board.text(0, -STEP - 0.05, sentence, size=FORMULA, va="top", parse_math=False)
        board.text(apart, -STEP - 0.05, "the translation so far", size=FORMULA, va="top")
        top = decoders[-1].top
        board.arrow(top, (apart, top[1] + 0.4))
        board.text(apart, top[1] + 0.46, translation, size=FORMULA, va="bottom", parse_math=False)
        picture = board.cut()
    return Drawing(
        picture,
        f"Only the output of the top encoder, #{n - 1}, leaves the stack, and it goes to "
        f"{'all ' if n > 1 else ''}{_several(n, 'decoder')}: each looks at the same finished reading of the "
        "source.",
    )


def _fan(board: Board, top: Box, decoders: list[Box]) -> None:
    """From the top encoder over its head to a line between the stacks, and from there into every decoder."""
    x, y = top.top
    between = (top.right[0] + decoders[0].left[0]) / 2
    board.arrow((x, y), (x, y + 0.3), (between, y + 0.3), (between, decoders[0].y), decoders[0].left)
    for decoder in decoders[1:]:
        board.arrow((between, decoder.y), decoder.left)


@figure("F04", "One encoder layer beside one decoder layer", source="S0", data="SC")
def layers(studio, *, preset: str = "paper-base", **settings) -> Drawing:
    """The sublayers of each, from below upwards; norms and residuals are left out."""
    config = config_of(preset, settings)
    with drawing():
        board = Board()
        encoder = _layer(board, config, "encoder", 0)
        decoder = _layer(board, config, "decoder", 4.3)
        x, y = encoder[-1].top
        cross = decoder[1]
        between = cross.left[0] - 0.75
        board.arrow((x, y + 0.6), (between, y + 0.6), (between, cross.y), cross.left)
        board.text(between - 0.08, cross.y, "keys,\nvalues", ha="right", va="center")
        picture = board.cut()
    return Drawing(
        picture,
        "Both begin with self-attention and end with the feed-forward network. A decoder layer has one "
        "sublayer more between them: its queries come from below, its keys and values from the encoder. "
        "Norms and residuals are left out here.",
    )


def _layer(board: Board, config: TransformerConfig, stack: str, x: float) -> list[Box]:
    """The boxes of one layer, in a frame as high as the decoder's, with arrows through them."""
    plan = layer_plan(config, stack, sizes=True)
    rise = 2 * LAYER_STEP / (len(plan) - 1)
    boxes = [board.box(part.label, x, i * rise, 2.3, 0.5, colour=part.colour) for i, part in enumerate(plan)]
    top = 2 * LAYER_STEP + 0.25
    board.frame(x - 1.35, -0.45, x + 1.35, top + 0.42, colour=stack, label=f"{stack} layer")
    board.arrow((x, -0.85), boxes[0].bottom)
    for below, above in pairwise(boxes):
        board.arrow(below.top, above.bottom)
    board.arrow(boxes[-1].top, (x, top + 0.85))
    return boxes

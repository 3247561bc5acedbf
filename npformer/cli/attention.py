"""npformer attention: draw the attention weights of a trained model for a sentence."""

from argparse import ArgumentParser, Namespace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from npformer.cli.explore import explore_command
from npformer.cli.load_model import (
    ANY_MODEL,
    add_model_arguments,
    load_any,
    note_unknown_words,
)
from npformer.cli.options import INDEX, one_of
from npformer.cli.output import console, note, print_line
from npformer.cli.pictures import note_missing_fonts
from npformer.errors import UserError
from npformer.learn.course.terminal_pictures import print_pictures
from npformer.pretrained.attention import KINDS, AttentionMaps, SentenceAttention
from npformer.storage.atomic import make_folder, require_folder_place
from npformer.validation import require_index

if TYPE_CHECKING:
    from npformer.plots import Figure

EPILOG = """\
Examples: npformer attention "the dog is tired"
          npformer attention --model runs/en-fr --kind cross --layer 1 --head 2 "the dog is tired"
          npformer attention --model runs/gpt-shakespeare "To be, or not to be" """


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("sentence", help="the sentence or the text that the model reads")
    add_model_arguments(parser, models=ANY_MODEL)
    parser.add_argument(
        "--kind", **one_of(KINDS), help="draw only this attention (default: all that the model has)"
    )
    parser.add_argument(
        "--layer",
        type=INDEX,
        help="the layer of the head to draw large and as lines, counted from 0 (default: that of the most "
        "informative head, whose weights depend most on the words)",
    )
    parser.add_argument(
        "--head",
        type=INDEX,
        help="the head to draw large and as lines, counted from 0 (default: the most informative one)",
    )
    parser.add_argument("--word", help="draw only the lines from this query")
    parser.add_argument("--out", default="attention", metavar="FOLDER", help="the folder to write to")


def run(arguments: Namespace) -> int:
    """Let the model read the sentence and write the pictures. Return 0."""
    require_folder_place(Path(arguments.out), advice="give a folder that may be, with --out")
    loaded = load_any(arguments)
    found: AttentionMaps = loaded.attention(arguments.sentence)
    note_unknown_words(loaded, arguments.sentence)
    _check_settings(found, arguments)
    kinds = [arguments.kind] if arguments.kind else found.kinds
    if arguments.word is not None:
        kinds = _kinds_with_query(found, kinds, arguments.word)
    from npformer.plots import save

    figures: dict[str, Figure] = {}
    for kind in kinds:
        figures |= draw(found, kind, arguments)
    folder = Path(arguments.out)
    make_folder(folder, advice="give a folder that may be, with --out")
    if isinstance(found, SentenceAttention):
        print_line(f"{arguments.sentence} → {found.translation}")
    note_missing_fonts(chain.from_iterable(chain(*found.tokens(kind)) for kind in kinds))
    paths = [save(figure, folder / f"{name}.png") for name, figure in figures.items()]
    for path in paths:
        print_line(f"wrote {path}")
    print_pictures(console(), list(zip(figures.values(), paths, strict=True)))
    command = explore_command(loaded, arguments.sentence, last=arguments.last)
    if command is not None:
        note(f"to see how these weights are computed, number by number: {command}")
    return 0


def _check_settings(found: AttentionMaps, arguments: Namespace) -> None:
    """Raise UserError for an attention, a layer or a head that the model does not have."""
    found.require_kind(arguments.kind or next(iter(found.kinds), ""))
    n_layers, n_heads = found.weights[found.kinds[0]].shape[:2]
    for name, value, count in (("layer", arguments.layer, n_layers), ("head", arguments.head, n_heads)):
        if value is not None:
            require_index(f"--{name}", value, count)


def _kinds_with_query(found: AttentionMaps, kinds: list[str], word: str) -> list[str]:
    """Return the kinds of attention in which the word is a query.

    Raises:
        UserError: If there are none.
    """
    queries = {kind: found.tokens(kind)[0] for kind in kinds}
    kinds = [kind for kind in kinds if word in queries[kind]]
    if not kinds:
        words = ", ".join(dict.fromkeys(chain.from_iterable(queries.values())))
        raise UserError(f"{word!r} is not a query here: give --word one of {words}")
    return kinds


def draw(found: AttentionMaps, kind: str, arguments: Namespace) -> "dict[str, Figure]":
    """Draw the maps of all layers and heads, and the lines of one head.

    Args:
        found: The attention weights of the sentence.
        kind: The kind of attention to draw.
        arguments: The arguments of the command, with layer, head and word.

    Returns:
        The figures by file name.

    Raises:
        UserError: If there are too many layers, heads or tokens for a picture.
    """
    layer, head = arguments.layer, arguments.head
    grid = found.plot(kind, layer=layer, head=head)
    try:
        lines = found.plot_lines(kind, layer=layer, head=head, token=arguments.word)
    except UserError:
        if arguments.word is not None:
            raise
        longest = max(map(len, found.tokens(kind)))
        note(f"{longest} tokens are too many for lines of the {KINDS[kind]}: only its maps are drawn")
        return {f"{kind}_grid": grid}
    return {f"{kind}_grid": grid, f"{kind}_lines": lines}

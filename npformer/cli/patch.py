"""npformer patch: find the activation that carries the difference between two sentences."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from npformer.cli.load_model import (
    ANY_MODEL,
    add_model_arguments,
    load_any,
    note_unknown_words,
)
from npformer.cli.options import INDEX, add
from npformer.cli.output import print_lines
from npformer.cli.pictures import require_picture, write_picture
from npformer.lenses.patching import ACTIVATIONS

EPILOG = """\
Examples: npformer patch --model en-de "A man is sleeping." "A woman is sleeping."
          npformer patch --model en-de "A man is sleeping." "A woman is sleeping." --what heads"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "text", "the sentence or the text that the model reads")
    add(parser, "other", "another one with the same number of tokens, from which the activations are taken")
    add_model_arguments(parser, models=ANY_MODEL)
    add(parser, "--what", "the activations to patch", ACTIVATIONS, default="layers")
    add(parser, "--target WORD", "the token that is right for the text (default: the model's prediction)")
    add(
        parser,
        "--versus WORD",
        "the token that is right for the other text (default: the model's prediction)",
    )
    add(
        parser,
        "--position N",
        "the position of the prediction, from 0 (default: the last token of a text, its first [MASK], or "
        "where the two translations first differ)",
        INDEX,
    )
    add(parser, "--out FILE", "the picture", default="patch.png")


def run(arguments: Namespace) -> int:
    """Print the effects of all patches as a table, and draw them. Return 0."""
    path = Path(arguments.out)
    require_picture(path)
    loaded = load_any(arguments)
    settings = {name: getattr(arguments, name) for name in ("what", "target", "versus", "position")}
    found = loaded.patch(arguments.text, arguments.other, **settings)
    for text in (arguments.text, arguments.other):
        note_unknown_words(loaded, text)
    print_lines(found.table())
    columns = (each for effects in found.effects.values() for each in effects.columns)
    write_picture(found.plot, path, [found.explained, *columns])
    return 0

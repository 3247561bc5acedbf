"""npformer lens: show what a model would predict after each layer, and what its parts add to a logit."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from npformer.cli.load_model import (
    ANY_MODEL,
    add_model_arguments,
    load_any,
    note_unknown_words,
)
from npformer.cli.options import INDEX, Rule, add, only_if
from npformer.cli.output import print_lines
from npformer.cli.pictures import require_picture, write_picture

if TYPE_CHECKING:
    from npformer.plots import Figure

EPILOG = """\
Examples: npformer lens --model en-de "A man is riding a bicycle."
          npformer lens --model en-de "A man is riding a bicycle." --position 2
          npformer lens --model runs/gpt-shakespeare "To be, or not to b" --parts
          npformer lens --model en-de "A man is riding a bicycle." --parts --target Fahrrad --versus Pferd"""

RULES: tuple[Rule, ...] = (only_if("--target --versus", lambda arguments: arguments.parts, "with --parts"),)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "text", "the sentence or the text that the model reads")
    add_model_arguments(parser, models=ANY_MODEL)
    add(
        parser, "--position N", "show the most probable tokens of every layer at this position, from 0", INDEX
    )
    add(parser, "--parts", "show what each head and each other part adds to the logit of a token")
    add(parser, "--target WORD", "the token (default: the one that the model predicts)")
    add(parser, "--versus WORD", "explain the logit of the target minus that of this token")
    add(parser, "--out FILE", "the picture", default="lens.png")


def run(arguments: Namespace) -> int:
    """Print the predictions of every layer or the parts of a logit, and draw them. Return 0."""
    path = Path(arguments.out)
    require_picture(path)
    loaded = load_any(arguments)
    if arguments.parts:
        settings = {name: getattr(arguments, name) for name in ("target", "versus", "position")}
        parts = loaded.attribution(arguments.text, **settings)
        table, shown = parts.table(), [parts.explained]
        draw: Callable[[], Figure] = parts.plot
    else:
        lens = loaded.lens(arguments.text)
        table, draw = lens.table(arguments.position), lens.plot
        shown = [*lens.tokens, *(best[0] for row in lens.predictions for best in row)]
    note_unknown_words(loaded, arguments.text)
    print_lines(table)
    write_picture(draw, path, shown)
    return 0

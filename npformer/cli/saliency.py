"""npformer saliency: show how much each token that a model reads contributes to a token that it predicts."""

from argparse import ArgumentParser, Namespace
from itertools import chain
from pathlib import Path
from typing import Any

from npformer.cli.load_model import (
    ANY_MODEL,
    add_model_arguments,
    load_any,
    note_unknown_words,
)
from npformer.cli.options import INDEX, POSITIVE, Rule, Whole, add, only_if
from npformer.cli.output import note, print_lines
from npformer.cli.pictures import require_picture, write_picture
from npformer.pretrained.input_gradients import SCORES
from npformer.pretrained.saliency import METHODS, MOST_POINTS, POINTS, TOLERANCE, Saliency

LIMIT = 1_000_000  # points

EPILOG = """\
Examples: npformer saliency --model runs/gpt-shakespeare "To be, or not to b"
          npformer saliency --model runs/bert-small "the [MASK] crosses the river" --target cat
          npformer saliency --model en-de "A man is riding a bicycle." --position 2 --method gradient"""

RULES: tuple[Rule, ...] = (
    only_if(
        "--tolerance --points",
        lambda arguments: arguments.method == "integrated",
        "with integrated gradients",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "text", "the sentence or the text that the model reads")
    add_model_arguments(parser, models=ANY_MODEL)
    add(
        parser,
        "--target WORD",
        "the predicted token to explain, for a translator one of its translation (default: the most "
        "probable one)",
    )
    add(
        parser,
        "--position N",
        "the position of the prediction, counted from 0 (default: the last token of a text, its first "
        "[MASK], or the first token of a translation)",
        INDEX,
    )
    add(parser, "--score", "the score to explain", SCORES, default=SCORES[0])
    add(parser, "--method", "integrated gradients, or gradient × input", METHODS, default="integrated")
    add(
        parser,
        "--tolerance",
        "the largest error of the sum of integrated gradients",
        POSITIVE,
        default=TOLERANCE,
    )
    add(
        parser,
        "--points N",
        "the largest number of points of integrated gradients",
        Whole(POINTS, LIMIT),
        default=MOST_POINTS,
    )
    add(parser, "--out FILE", "the picture", default="saliency.png")


def run(arguments: Namespace) -> int:
    """Print the contributions of all tokens as a table, and draw them. Return 0."""
    require_picture(Path(arguments.out))
    loaded = load_any(arguments)
    settings: dict[str, Any] = {
        name: getattr(arguments, name) for name in ("target", "position", "score", "method", "tolerance")
    }
    found = loaded.saliency(arguments.text, most_points=arguments.points, **settings)
    note_unknown_words(loaded, arguments.text)
    print_lines(found.table())
    _note_error(found, arguments.tolerance)
    texts = chain([found.explained], *found.tokens.values())
    write_picture(found.plot, Path(arguments.out), texts)
    return 0


def _note_error(found: Saliency, tolerance: float) -> None:
    """Print a note if there were too few points for the tolerance."""
    if found.gap is not None and abs(found.gap) > tolerance:
        note(f"the sum misses that difference by {abs(found.gap):.2g}: give more points, with --points")

"""npformer fill: find the words for the gaps of a sentence with a trained masked language model."""

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from npformer.cli.load_model import NEWEST_RUN, add_model_arguments, load_kind
from npformer.cli.options import Whole, add, add_backend_argument
from npformer.cli.output import print_data, print_lines
from npformer.data.vocabulary import MASK
from npformer.errors import in_context
from npformer.generation import Gap, fill_in_table
from npformer.pretrained import GapFiller

MOST = 100  # words for a gap

EPILOG = f"""\
Examples: npformer train --preset bert-small
          npformer fill "the {MASK} crosses the river" --model runs/bert-small
          npformer fill "the {MASK} crosses the {MASK}" --answers 3 --json"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "texts...", f"a sentence with {MASK} in place of each word to be found", metavar="TEXT")
    models = "the folder of a run with a preset for masked language models, a checkpoint of it, or a Hugging "
    add_model_arguments(parser, NEWEST_RUN, models=f"{models}Face folder of a masked language model")
    add(parser, "--answers N", "the words for each gap", Whole(1, MOST), default=5)
    add(parser, "--json", "print a list of JSON objects, one for each text")
    add_backend_argument(parser)


def run(arguments: Namespace) -> int:
    """Print the most probable words for each gap of each text. Return 0."""
    loaded = load_kind(GapFiller, arguments, arguments.backend)
    found: list[tuple[str, list[Gap]]] = []
    for number, text in enumerate(arguments.texts, 1):
        with in_context(f"text {number}"):
            found.append((text, loaded.fill(text, k=arguments.answers)))
    if arguments.json:
        print_data(json.dumps([_as_object(text, gaps) for text, gaps in found], ensure_ascii=False))
    else:
        print_lines("\n".join(f"{text}\n{fill_in_table(gaps)}" for text, gaps in found))
    return 0


def _as_object(text: str, gaps: list[Gap]) -> dict[str, Any]:
    """Return a text and its gaps as an object for JSON. Their places are counted from 1, as in the table."""
    found = []
    for gap in gaps:
        words = zip(gap.words, gap.probabilities, strict=True)
        found.append({"place": gap.place + 1, "words": [{"word": w, "probability": p} for w, p in words]})
    return {"text": text, "gaps": found}

"""npformer explore: write a page on which one follows every number of a model, forward and backward."""

import webbrowser
from argparse import ArgumentParser, Namespace
from pathlib import Path

from npformer.cli.load_model import ANY_MODEL, add_model_arguments, load_any, note_unknown_words
from npformer.cli.options import add_backend_argument, add_language
from npformer.cli.output import note, print_line
from npformer.errors import UserError
from npformer.escaping import shell_text, shell_word
from npformer.explorer import explore
from npformer.explorer.model_data import MOST_TOKENS, why_not_live
from npformer.language import say
from npformer.pretrained import Translator
from npformer.pretrained.loaded import Loaded
from npformer.storage.atomic import PAGES, require_place

# the sentence of the tour, with which a page of its model begins
ANIMAL = "the animal didn't cross the street because it was too tired"

EPILOG = """\
Examples: npformer explore "the dog is tired"
          npformer explore --model tour/run --open
          npformer explore "ROMEO:" --model runs/gpt-shakespeare
          npformer explore --model en-de "A dog runs." "Two dogs run." --out dogs.html"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "sentence",
        nargs="*",
        help="the sentence or the text that the model reads, or several, between which the page switches "
        "(default: an example that it knows)",
    )
    add_model_arguments(parser, models=ANY_MODEL)
    parser.add_argument("--target", metavar="TEXT", help="the translation (default: that of the model)")
    parser.add_argument("--out", default="explorer.html", metavar="FILE", help="the page")
    add_backend_argument(parser)
    add_language(parser)
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def run(arguments: Namespace) -> int:
    """Write the page, and open it if that is wanted. Return 0."""
    path = Path(arguments.out)
    require_place(path, endings=PAGES)
    loaded = load_any(arguments, arguments.backend)
    sentences = arguments.sentence or [example_for(loaded)]
    for sentence in sentences:
        note_unknown_words(loaded, sentence)
    if len(sentences) > 1 and not any(" " in sentence for sentence in sentences):
        note(say("each word is read as a text of its own: write a sentence in quotation marks"))
    page = explore(loaded, sentences, arguments.target)
    page.save(path)
    reason = why_not_live(loaded)
    if reason is not None:
        note(
            say("the page shows recorded arrays and computes nothing itself, because {reason}", reason=reason)
        )
    megabytes = f"{path.stat().st_size / 1e6:.1f}"
    print_line(say("wrote {path} ({megabytes} MB): open it in a browser", path=path, megabytes=megabytes))
    if arguments.open and not webbrowser.open_new_tab(path.resolve().as_uri()):
        note(say("no browser was found: open {path} in one", path=path))
    return 0


def explore_command(loaded: Loaded, text: str, *, last: bool = False) -> str | None:
    """Return the command that opens the page of a model and a text, or None if there is no such page.

    Args:
        loaded: The model.
        text: What the model reads.
        last: Whether the model is the last checkpoint of its run.
    """
    n_tokens = len(loaded.tokenizer.encode(text).ids)
    if not 2 <= n_tokens <= MOST_TOKENS:
        return None
    options = f"--model {shell_word(loaded.name)}{' --last' * last} --open"
    # without "--", the command would read a text such as "-5 degrees" as an option
    return f"npformer explore {options}{' --' * text.startswith('-')} {shell_text(text)}"


def example_for(loaded: Loaded) -> str:
    """Return a sentence that a model knows: that of its model card, or that of the tour.

    Raises:
        UserError: If it knows neither.
    """
    if isinstance(loaded, Translator):
        if loaded.card is not None:
            return loaded.card.example
        if not loaded.unknown_words(ANIMAL):
            return ANIMAL
    raise UserError("there is no example for this model: give a sentence that it can read")

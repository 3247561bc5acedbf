"""npformer translate: translate sentences, and print each translation on one line."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from npformer.cli.load_model import add_model_arguments, add_search_arguments, load_with_search
from npformer.cli.output import note, print_data
from npformer.errors import UserError
from npformer.pretrained import LoadedTranslator

EPILOG = """\
Examples: npformer translate --model en-de "A man is riding a bicycle."
          npformer translate --model runs/en-fr < sentences.en > sentences.fr"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="the sentences to translate (default: the lines of standard input)",
    )
    add_model_arguments(parser)
    add_search_arguments(parser)


def run(arguments: Namespace) -> int:
    """Translate the sentences, or the lines of standard input. Return 0."""
    loaded, settings = load_with_search(arguments)
    if arguments.sentences:
        for number, sentence in enumerate(arguments.sentences, 1):
            _require_words(sentence, number)
        translate_lines(loaded, arguments.sentences, settings)
    elif sys.stdin.isatty():
        converse(loaded, settings)
    else:
        translate_lines(loaded, read_standard_input(), settings)
    return 0


def converse(loaded: LoadedTranslator, settings: dict[str, Any]) -> None:
    """Translate each line that a person types; report a mistake and read the next line."""
    note("type a sentence and press Enter; Ctrl-D ends")
    for number, line in enumerate(sys.stdin, 1):
        try:
            _require_words(line, number)
            translate_lines(loaded, [line.rstrip("\n")], settings, number)
        except UserError as error:
            note(str(error))


def translate_lines(
    loaded: LoadedTranslator, lines: list[str], settings: dict[str, Any], first_line: int = 1
) -> None:
    """Print the translation of each line, and report words that the model does not know.

    The translation of an empty line is an empty line.

    Args:
        loaded: The translator.
        lines: The sentences.
        settings: The settings of the search.
        first_line: The number of the first line, for messages.
    """
    translations = loaded.translate(lines, first_line=first_line, **settings)
    for number, line in enumerate(lines, first_line):
        unknown = loaded.unknown_words(line)
        if unknown:
            words = ", ".join(repr(word) for word in unknown)
            note(f"line {number}: the model does not know {words} and reads <UNK> instead")
    for translation in translations:
        print_data(" ".join(translation.splitlines()))  # one line, whatever the words of the model


def read_standard_input() -> list[str]:
    """Return the lines of standard input.

    Raises:
        UserError: If there are none, or if a line is not UTF-8.
    """
    lines = []
    for number, raw in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
        try:
            lines.append(raw.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError:
            raise UserError(f"standard input, line {number}, is not valid UTF-8: convert it first") from None
    if lines and not lines[-1]:
        lines.pop()  # the end of the last line
    if not lines:
        raise UserError("standard input is empty: give one sentence on each line")
    return lines


def _require_words(sentence: str, number: int) -> None:
    """Raise UserError if a sentence given as an argument or typed at a terminal is empty."""
    if not sentence.split():
        raise UserError(f"line {number} is empty: write at least one word")

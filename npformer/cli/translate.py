"""npformer translate: translate sentences, and print each translation on one line."""

import sys
from argparse import ArgumentParser, Namespace
from io import BufferedIOBase
from typing import Any

from npformer.cli.line_input import read_blocks, size_in_bytes
from npformer.cli.load_model import (
    add_model_arguments,
    add_search_arguments,
    load_with_search,
    note_unknown_words,
)
from npformer.cli.options import add
from npformer.cli.output import note, print_data
from npformer.cli.translation_bar import TranslationBar
from npformer.errors import UserError
from npformer.pretrained import Translator

EPILOG = """\
Examples: npformer translate --model en-de "A man is riding a bicycle."
          npformer translate --model runs/en-fr < sentences.en > sentences.fr

Each translation is printed as soon as it is known, in the order of the lines, and
the translation of an empty line is an empty line. Lines that another program
writes into a pipe are translated as they arrive."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(
        parser,
        "[sentences...]",
        "the sentences to translate (default: the lines of standard input)",
        metavar="SENTENCE",
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
        translate_standard_input(loaded, settings)
    return 0


def converse(loaded: Translator, settings: dict[str, Any]) -> None:
    """Translate each line that a person types; report a mistake and read the next line."""
    note("type a sentence and press Enter; Ctrl-D ends")
    for number, line in enumerate(sys.stdin, 1):
        try:
            _require_words(line, number)
            translate_lines(loaded, [line.rstrip("\n")], settings, number)
        except UserError as error:
            note(str(error))


def translate_standard_input(loaded: Translator, settings: dict[str, Any]) -> None:
    """Translate the lines of standard input block by block, so that memory does not grow with their number.

    Raises:
        UserError: If there is no input, or, after the translations of the lines before it, if a line is not
            UTF-8 or too long for the model.
    """
    stream, first_line = sys.stdin.buffer, 1
    assert isinstance(stream, BufferedIOBase)  # as every standard input of Python
    with TranslationBar(size_in_bytes(stream)) as bar:
        for lines in read_blocks(stream):
            translate_lines(loaded, lines, settings, first_line, bar)
            first_line += len(lines)


def translate_lines(
    loaded: Translator,
    lines: list[str],
    settings: dict[str, Any],
    first_line: int = 1,
    bar: TranslationBar | None = None,
) -> None:
    """Print the translation of each line as soon as it is known, and report unknown words.

    The translation of an empty line is an empty line.

    Args:
        loaded: The translator.
        lines: The sentences.
        settings: The settings of the search.
        first_line: The number of the first line, for messages.
        bar: The progress bar, which counts the lines and their bytes.
    """
    bar = bar or TranslationBar(shown=False)
    done = 0
    for translations in loaded.translate_stream(lines, first_line=first_line, **settings):
        finished = lines[done : done + len(translations)]
        with bar.hidden():
            for number, line in enumerate(finished, first_line + done):
                note_unknown_words(loaded, line, f"line {number}: ")
            for translation in translations:
                print_data(" ".join(translation.splitlines()))  # one line, whatever the words of the model
        bar.advance(len(finished), sum(len(line.encode()) + 1 for line in finished))
        done += len(finished)


def _require_words(sentence: str, number: int) -> None:
    """Raise UserError if a sentence given as an argument or typed at a terminal is empty."""
    if not sentence.split():
        raise UserError(f"line {number} is empty: write at least one word")

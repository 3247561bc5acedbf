"""npformer translate: sentences in, one line of translation for each."""

import sys

from npformer.commands.trained import add_choice_arguments, add_search_arguments, chosen_search
from npformer.decoding import Translator
from npformer.decoding.forms import written
from npformer.errors import UserError
from npformer.terminal import note

BEAM = 4  # the paper's


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="what to translate (default: the lines of standard input)",
    )
    add_choice_arguments(parser, "translate with")
    add_search_arguments(parser, beam=BEAM)


def run(arguments) -> int:
    """Returns 0."""
    translator, settings = chosen_search(arguments, beam=BEAM)
    if arguments.sentences:
        translate_lines(translator, arguments.sentences, settings)
    elif sys.stdin.isatty():
        converse(translator, settings)
    else:
        translate_lines(translator, read_standard_input(), settings)
    return 0


def converse(translator: Translator, settings: dict) -> None:
    """Translate what a person types, line by line; a mistake is told, and the next line is read."""
    note("type a sentence and press Enter; Ctrl-D ends")
    for number, line in enumerate(sys.stdin, 1):
        try:
            translate_lines(translator, [line.rstrip("\n")], settings, number)
        except UserError as error:
            note(str(error))


def translate_lines(translator: Translator, lines: list[str], settings: dict, first_line: int = 1) -> None:
    """Print a line for each line; words that the model does not know are told beside."""
    translations = translator.translate(lines, first_line=first_line, **settings)
    for number, line in enumerate(lines, first_line):
        unknown = translator.unknown_words(line)
        if unknown:
            words = ", ".join(repr(word) for word in unknown)
            note(f"line {number}: the model does not know {words} and reads <UNK> in place")
    for translation in translations:
        print(written(translator.target_codec, translation), flush=True)


def read_standard_input() -> list[str]:
    """All lines of standard input. Errors: UserError for bytes that are not UTF-8, with the line."""
    lines = []
    for number, raw in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
        try:
            lines.append(raw.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError:
            raise UserError(f"standard input, line {number}, is not valid UTF-8: convert it first") from None
    if lines and not lines[-1]:
        lines.pop()  # the end of the last line
    if not lines:
        raise UserError("standard input is empty: give sentences, one a line")
    return lines

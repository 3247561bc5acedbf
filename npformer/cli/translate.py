"""npformer translate: translate sentences, and print each translation on one line."""

import json
import sys
from argparse import ArgumentParser, Namespace
from io import BufferedIOBase
from typing import Any, NamedTuple

from npformer.cli.line_input import read_blocks, size_in_bytes
from npformer.cli.load_model import (
    add_model_arguments,
    add_search_arguments,
    load_with_search,
    note_unknown_words,
)
from npformer.cli.options import COUNT, Rule, add, excludes
from npformer.cli.output import note, print_data
from npformer.cli.translation_bar import TranslationBar
from npformer.errors import UserError
from npformer.pretrained import Translation, Translator

EPILOG = """\
Examples: npformer translate --model en-de "A man is riding a bicycle."
          npformer translate --model runs/en-fr < sentences.en > sentences.fr

Each translation is printed as soon as it is known, in the order of the lines, and
the translation of an empty line is an empty line. Lines that another program
writes into a pipe are translated as they arrive.

--n-best, --scores and --alignment add columns, with " ||| " between them: the number
of the line (--n-best), the translation, its score (--n-best, --scores), the
log-probabilities of its tokens, the end symbol last (--scores), and pairs of
positions, from 0, of source and target tokens (--alignment). --json prints one object
for each line, with the names of npformer.pretrained.Translation."""

NO_ALIGNMENT = "this model has no encoder-decoder attention, which aligns words: leave out --alignment"
COLUMN = " ||| "  # between two columns, as in Moses and Marian

RULES: tuple[Rule, ...] = (excludes("--json", "--scores --alignment", "each object has both"),)


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
    add(parser, "--n-best N", "print the N best translations of each sentence, at most the beam", COUNT)
    add(parser, "--scores", "print the score of each translation and the log-probability of each token")
    add(parser, "--alignment", "print which source token each token of a translation attends to most")
    add(parser, "--json", "print one JSON object for each sentence, with scores and alignments")


def run(arguments: Namespace) -> int:
    """Translate the sentences, or the lines of standard input. Return 0."""
    loaded, settings = load_with_search(arguments)
    columns = Columns(arguments.n_best, arguments.scores, arguments.alignment, arguments.json)
    if arguments.n_best is not None and arguments.n_best > settings["beam"]:
        raise UserError(
            f"--n-best is {arguments.n_best}, and a beam of {settings['beam']} finds {settings['beam']} at "
            "most: give a larger --beam"
        )
    if any(columns):
        settings["n_best"] = arguments.n_best or 1
    if arguments.sentences:
        for number, sentence in enumerate(arguments.sentences, 1):
            _require_words(sentence, number)
        translate_lines(loaded, arguments.sentences, settings, columns=columns)
    elif sys.stdin.isatty():
        converse(loaded, settings, columns)
    else:
        translate_standard_input(loaded, settings, columns)
    return 0


class Columns(NamedTuple):
    """The options that say what is printed of a translation besides its text."""

    n_best: int | None = None
    scores: bool = False
    alignment: bool = False
    json: bool = False


ONLY_TEXT = Columns()


def converse(loaded: Translator, settings: dict[str, Any], columns: Columns) -> None:
    """Translate each line that a person types; report a mistake and read the next line.

    Args:
        loaded, settings, columns: As in translate_lines.
    """
    note("type a sentence and press Enter; Ctrl-D ends")
    for number, line in enumerate(sys.stdin, 1):
        try:
            _require_words(line, number)
            translate_lines(loaded, [line.rstrip("\n")], settings, number, columns=columns)
        except UserError as error:
            note(str(error))


def translate_standard_input(loaded: Translator, settings: dict[str, Any], columns: Columns) -> None:
    """Translate the lines of standard input block by block, so that memory does not grow with their number.

    Args:
        loaded, settings, columns: As in translate_lines.

    Raises:
        UserError: If there is no input, or, after the translations of the lines before it, if a line is not
            UTF-8 or too long for the model.
    """
    stream, first_line = sys.stdin.buffer, 1
    assert isinstance(stream, BufferedIOBase)  # as every standard input of Python
    with TranslationBar(size_in_bytes(stream)) as bar:
        for lines in read_blocks(stream):
            translate_lines(loaded, lines, settings, first_line, bar, columns)
            first_line += len(lines)


def translate_lines(
    loaded: Translator,
    lines: list[str],
    settings: dict[str, Any],
    first_line: int = 1,
    bar: TranslationBar | None = None,
    columns: Columns = ONLY_TEXT,
) -> None:
    """Print the translation of each line as soon as it is known, and report unknown words.

    The translation of an empty line is an empty line.

    Args:
        loaded: The translator.
        lines: The sentences.
        settings: The settings of the search.
        first_line: The number of the first line, for messages.
        bar: The progress bar, which counts the lines and their bytes.
        columns: What is printed of a translation.
    """
    bar = bar or TranslationBar(shown=False)
    done = 0
    for translations in loaded.translate_stream(lines, first_line=first_line, **settings):
        finished = lines[done : done + len(translations)]
        with bar.hidden():
            for number, line in enumerate(finished, first_line + done):
                note_unknown_words(loaded, line, f"line {number}: ")
            for number, (line, found) in enumerate(
                zip(finished, translations, strict=True), first_line + done
            ):
                print_translation(number, line, found, columns)
        bar.advance(len(finished), sum(len(line.encode(errors="replace")) + 1 for line in finished))
        done += len(finished)


def print_translation(number: int, line: str, found: str | list[Translation], columns: Columns) -> None:
    """Print what the options ask for of the translation of a line.

    Args:
        number: The number of the line.
        line: The line.
        found: Its translation, or with columns its best translations.
        columns: What is printed of a translation.
    """
    if isinstance(found, str):
        print_data(_one_line(found))
    elif columns.json:
        print_data(json.dumps(as_object(number, line, found), ensure_ascii=False))
    else:
        for translation in found:
            print_data(COLUMN.join(_columns_of(translation, number, columns)))


def _columns_of(translation: Translation, number: int, columns: Columns) -> list[str]:
    """Return the columns of a translation of the line with this number."""
    shown = [_one_line(translation.text)]
    if columns.n_best is not None:
        shown.insert(0, str(number))
    if columns.n_best is not None or columns.scores:
        shown.append(f"{translation.score:.4f}")
    if columns.scores:
        shown.append(" ".join(f"{each:.4f}" for each in translation.log_probs))
    if columns.alignment:
        if translation.alignment is None:
            raise UserError(NO_ALIGNMENT)
        shown.append(" ".join(f"{source}-{at}" for at, source in enumerate(translation.alignment)))
    return shown


def as_object(number: int, line: str, found: list[Translation]) -> dict[str, Any]:
    """Return the best translations of a line as an object for JSON.

    Args:
        number: The number of the line.
        line: The line.
        found: Its translations.
    """
    translations = []
    for translation in found:
        row = translation._asdict()
        del row["source_tokens"]  # the same for all of them
        translations.append(row)
    return {
        "line": number,
        "source": line,
        "source_tokens": found[0].source_tokens,
        "translations": translations,
    }


def _one_line(text: str) -> str:
    """Return a translation as one line, whatever the words of the model."""
    return " ".join(text.splitlines())


def _require_words(sentence: str, number: int) -> None:
    """Raise UserError if a sentence given as an argument or typed at a terminal is empty."""
    if not sentence.split():
        raise UserError(f"line {number} is empty: write at least one word")

"""npformer glossary: the words of the course, each in a sentence."""

from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from npformer.atomic import write_atomically
from npformer.course.glossary import Term, all_terms, find_terms
from npformer.course.screen import print_in_pages
from npformer.errors import UserError
from npformer.terminal import console

HEADING = """\
# Glossary

The words of the course, each in a sentence, with the lesson that makes it and where the code has it. Written
by `npformer glossary --write`.

| word | meaning | lessons | code |
|---|---|---|---|
"""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument("word", nargs="?", help="a word, English or Chinese (default: all of them)")
    add_write(parser, "GLOSSARY.md")


def add_write(parser, name: str) -> None:
    """The argument --write [FILE]."""
    parser.add_argument(
        "--write", nargs="?", const=name, metavar="FILE", help=f"write all of it as Markdown ({name})"
    )


def run(arguments) -> int:
    """Print the terms, or write them all as a page."""
    if arguments.write is not None:
        save_page(arguments, as_page)
        return 0
    terms = all_terms() if arguments.word is None else find_terms(arguments.word)
    print_in_pages(console(), *map(_in_two_lines, terms))
    return 0


def _in_two_lines(term: Term) -> str:
    """A term with its meaning, and its lessons below, for rich."""
    where = "; ".join(place.name for place in term.lessons)
    name = escape(term.name) + (f" {term.chinese}" if term.chinese else "")
    return f"[bold]{name}[/]  {escape(term.meaning)}\n    [dim]{escape(where)}[/]"


def save_page(arguments, make: Callable[[Path], str]) -> None:
    """Write a page to the file asked for, and say so. Errors: UserError where that cannot be."""
    if arguments.word is not None:
        raise UserError("--write writes all of it: give no word with it")
    path = Path(arguments.write)
    try:
        write_atomically(path, make(path.parent.absolute()).encode())
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror}): give another FILE") from None
    print(f"wrote {path}")


def as_page(folder: Path) -> str:
    """The whole glossary in Markdown, for a file in that folder."""
    return HEADING + "".join(_row(term, folder) for term in all_terms())


def _row(term: Term, folder: Path) -> str:
    name = f"**{term.name}**" + (f" {term.chinese}" if term.chinese else "")
    lessons = ", ".join(place.link(folder, place.name.split(",")[0].split()[1]) for place in term.lessons)
    code = ", ".join(place.link(folder, f"`{place.name}`") for place in term.code)
    return f"| {name} | {term.meaning} | {lessons} | {code} |\n"

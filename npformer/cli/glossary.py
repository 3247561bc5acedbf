"""npformer glossary: explain the terms of the course, each in a sentence."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from npformer.cli.options import excludes
from npformer.cli.terminal import console
from npformer.learn.course.glossary import Term, all_terms, find_terms
from npformer.learn.course.terminal import print_in_pages
from npformer.storage.atomic import write_file

HEADING = """\
# Glossary

The terms of the course, each in a sentence, with the lessons that introduce it and its place in the code.
Written by `npformer glossary --write`.

| term | meaning | lessons | code |
|---|---|---|---|
"""

RULES = (excludes("--write", "word", "it writes everything"),)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("word", nargs="?", help="a term, in English or Chinese (default: all terms)")
    add_write(parser, "GLOSSARY.md")


def add_write(parser: ArgumentParser, name: str) -> None:
    """Add the argument --write [FILE]."""
    parser.add_argument(
        "--write", nargs="?", const=name, metavar="FILE", help=f"write everything as a Markdown page ({name})"
    )


def run(arguments: Namespace) -> int:
    """Print the terms, or write all of them as a page. Return 0."""
    if arguments.write is not None:
        save_page(arguments, as_page)
        return 0
    terms = all_terms() if arguments.word is None else find_terms(arguments.word)
    print_in_pages(console(), *map(_in_two_lines, terms))
    return 0


def _in_two_lines(term: Term) -> str:
    """Return a term with its meaning, and its lessons below, as markup for rich."""
    where = "; ".join(place.name for place in term.lessons)
    name = escape(term.name) + (f" {term.chinese}" if term.chinese else "")
    return f"[bold]{name}[/]  {escape(term.meaning)}\n    [dim]{escape(where)}[/]"


def save_page(arguments: Namespace, make: Callable[[Path], str]) -> None:
    """Write the page that make(folder) returns to the file of --write.

    Raises:
        UserError: If the file cannot be written.
    """
    path = Path(arguments.write)
    write_file(path, make(path.parent.absolute()).encode(), advice="give another FILE")
    print(f"wrote {path}")


def as_page(folder: Path) -> str:
    """Return the whole glossary in Markdown, with links that work in this folder."""
    return HEADING + "".join(_row(term, folder) for term in all_terms())


def _row(term: Term, folder: Path) -> str:
    name = f"**{term.name}**" + (f" {term.chinese}" if term.chinese else "")
    lessons = ", ".join(place.link(folder, place.name.split(",")[0].split()[1]) for place in term.lessons)
    code = ", ".join(place.link(folder, f"`{place.name}`") for place in term.code)
    return f"| {name} | {term.meaning} | {lessons} | {code} |\n"

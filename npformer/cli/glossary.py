"""npformer glossary: define the terms of the course, with their formulas and shapes."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from rich.text import Text

from npformer.cli.options import add, add_language, excludes
from npformer.cli.output import console, print_line
from npformer.errors import UserError
from npformer.language import ENGLISH, GLOSSARY, phrase, say, speaking
from npformer.learn.console import styled
from npformer.learn.course.glossary import SHAPES, Term, all_terms, find_terms
from npformer.learn.course.terminal import print_in_pages
from npformer.storage.atomic import write_file

HEADING = f"""\
# Glossary

The terms of the course with their definitions, the lessons that introduce them, and the code.
Written by `npformer glossary --write`.

{SHAPES}

| term | definition | lessons | code |
|---|---|---|---|
"""

RULES = (excludes("--write", "word --language", "it writes everything, in English"),)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[word]", "a term, in English or Chinese (default: all terms)")
    add_write(parser, "GLOSSARY.md")
    add_language(parser)


def add_write(parser: ArgumentParser, name: str) -> None:
    """Add the argument --write [FILE]."""
    add(parser, f"--write [FILE={name}]", f"write everything as a Markdown page ({name})")


def run(arguments: Namespace) -> int:
    """Print the terms, or write all of them as a page. Return 0."""
    if arguments.write is not None:
        save_page(arguments, as_page)
        return 0
    terms = all_terms() if arguments.word is None else find_terms(arguments.word)
    print_in_pages(console(), *map(_in_two_lines, terms), styled((phrase(SHAPES, GLOSSARY), "dim")))
    return 0


def _in_two_lines(term: Term) -> Text:
    """Return a term with its definition, and its lessons below."""
    where = say("; ").join(place.name for place in term.lessons)
    meaning = term.meaning.replace("`", "")
    return styled((" ".join(term.names), "bold"), f"  {meaning}\n    ", (where, "dim"))


def save_page(arguments: Namespace, make: Callable[[Path], str]) -> None:
    """Write the page that make(folder) returns, in English, to the file of --write.

    Raises:
        UserError: If the file cannot be written, or if it is another page, such as the README of a project.
    """
    path = Path(arguments.write)
    with speaking(ENGLISH):
        text = make(path.parent.absolute())
    if path.is_file() and not path.read_bytes().startswith(text.partition("\n")[0].encode()):
        raise UserError(f"{path} exists and is another page: give another FILE, or remove it")
    write_file(path, text.encode(), advice="give another FILE")
    print_line(f"wrote {path}")


def as_page(folder: Path) -> str:
    """Return the whole glossary in Markdown, with links that work in this folder."""
    return HEADING + "".join(_row(term, folder) for term in all_terms())


def _row(term: Term, folder: Path) -> str:
    name = f"**{term.name}**" + (f" {term.chinese}" if term.chinese else "")
    lessons = ", ".join(place.link(folder, place.name.split(",")[0].split()[1]) for place in term.lessons)
    code = ", ".join(place.link(folder, f"`{place.name}`") for place in term.code)
    return f"| {name} | {term.meaning} | {lessons} | {code} |\n"

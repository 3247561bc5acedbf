"""npformer index: find the lesson and the code of an equation, or of a passage of a source document."""

from argparse import ArgumentParser, Namespace
from itertools import groupby
from pathlib import Path

from rich.text import Text

from npformer.cli.glossary import add_write, save_page
from npformer.cli.options import add, excludes
from npformer.cli.output import console
from npformer.escaping import printable
from npformer.learn.console import styled
from npformer.learn.course.passages import Passage, all_passages, find_passages
from npformer.learn.course.references import SourceLocation
from npformer.learn.course.terminal import print_in_pages

HEADING = """\
# Index

Each equation of the paper and each passage of the source documents, with the lesson that treats it and the
code that computes it. Written by `npformer index --write`.
"""

RULES = (excludes("--write", "word", "it writes everything"),)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[word]", 'a number or a word, such as "3.2.1" or "softmax" (default: everything)')
    add_write(parser, "INDEX.md")


def run(arguments: Namespace) -> int:
    """Print the passages, or write all of them as a page. Return 0."""
    if arguments.write is not None:
        save_page(arguments, as_page)
        return 0
    passages = all_passages() if arguments.word is None else find_passages(arguments.word)
    lines: list[Text] = []
    for source, group in groupby(passages, key=lambda passage: passage.source):
        lines.append(styled((source, "bold")))
        for passage in group:
            lines.append(styled("  ", (passage.place, "bold"), f"  {passage.text}"))
            lines += map(_in_a_line, (*passage.lessons, *passage.code))
    places = {place for passage in passages for place in (*passage.lessons, *passage.code)}
    print_in_pages(console(), *lines, *_where(places))
    return 0


def _in_a_line(place: SourceLocation) -> Text:
    """Return an address with its name."""
    return styled(f"      {place.address}  ", (place.name, "dim"))


def _where(places: set[SourceLocation]) -> list[str]:
    """Return lines that say where the files are, unless they are below the current folder."""
    away = {place.shown.split("/")[0]: place.home for place in places if not Path(place.shown).exists()}
    return [f"{first}/ is in {printable(home)}" for first, home in sorted(away.items())]


def as_page(folder: Path) -> str:
    """Return the whole index in Markdown, with links that work in this folder."""
    parts = [HEADING]
    for source, group in groupby(all_passages(), key=lambda passage: passage.source):
        parts.append(f"\n## {source}\n\n| place | content | lessons | code |\n|---|---|---|---|\n")
        parts += [_row(passage, folder) for passage in group]
    return "".join(parts)


def _row(passage: Passage, folder: Path) -> str:
    lessons = ", ".join(place.link(folder, place.name.removeprefix("lesson ")) for place in passage.lessons)
    code = ", ".join(place.link(folder, f"`{place.name}`") for place in passage.code)
    return f"| {passage.place} | {passage.text} | {lessons} | {code} |\n"

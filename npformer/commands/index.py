"""npformer index: from an equation of the paper, or a passage of the documents, to lesson, file and line."""

from itertools import groupby
from pathlib import Path

from rich.markup import escape

from npformer.commands.glossary import add_write, save_page
from npformer.course.passages import Passage, all_passages, find_passages
from npformer.course.references import Place
from npformer.course.screen import print_in_pages
from npformer.terminal import console

HEADING = """\
# Index

Each equation of the paper and each passage of the documents, with the lesson that treats it and the code that
computes it. Written by `npformer index --write`.
"""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument("word", nargs="?", help='what to look for: "3.2.1", "softmax" (default: everything)')
    add_write(parser, "INDEX.md")


def run(arguments) -> int:
    """Print the passages, or write them all as a page."""
    if arguments.write is not None:
        save_page(arguments, as_page)
        return 0
    passages = all_passages() if arguments.word is None else find_passages(arguments.word)
    lines = []
    for source, group in groupby(passages, key=lambda passage: passage.source):
        lines.append(f"[bold]{escape(source)}[/]")
        for passage in group:
            lines.append(f"  [bold]{escape(passage.place)}[/]  {escape(passage.text)}")
            lines += map(_in_a_line, (*passage.lessons, *passage.code))
    places = {place for passage in passages for place in (*passage.lessons, *passage.code)}
    print_in_pages(console(), *lines, *map(escape, _where(places)))
    return 0


def _in_a_line(place: Place) -> str:
    """An address and its name, for rich."""
    return f"      {escape(place.address)}  [dim]{escape(place.name)}[/]"


def _where(places: set[Place]) -> list[str]:
    """Where the files are, if not below the folder where one works."""
    away = {place.shown.split("/")[0]: place.home for place in places if not Path(place.shown).exists()}
    return [f"{first}/ is in {home}" for first, home in sorted(away.items())]


def as_page(folder: Path) -> str:
    """The whole index in Markdown, for a file in that folder."""
    parts = [HEADING]
    for source, group in groupby(all_passages(), key=lambda passage: passage.source):
        parts.append(f"\n## {source}\n\n| place | what it says | lessons | code |\n|---|---|---|---|\n")
        parts += [_row(passage, folder) for passage in group]
    return "".join(parts)


def _row(passage: Passage, folder: Path) -> str:
    lessons = ", ".join(place.link(folder, place.name.removeprefix("lesson ")) for place in passage.lessons)
    code = ", ".join(place.link(folder, f"`{place.name}`") for place in passage.code)
    return f"| {passage.place} | {passage.text} | {lessons} | {code} |\n"

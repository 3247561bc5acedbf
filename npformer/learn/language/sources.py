"""The messages of every document that has a catalog: lessons, exercises, guides, and those of the program."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from npformer.explorer.page import messages as words_of_explorer
from npformer.language import BUGS, EXPLORER, GLOSSARY, GRADER, INTERFACE, path_of
from npformer.learn.bugs.cases import ALL
from npformer.learn.course.glossary import definitions
from npformer.learn.course.lesson import Cell, all_lessons
from npformer.learn.exercises import EXERCISES
from npformer.learn.language.messages import messages_of
from npformer.mistakes.operators import TABLES
from npformer.mistakes.sentences import SENTENCES
from npformer.mistakes.tables import rows_of

PACKAGE = Path(__file__).parents[2]
CHECKOUT = PACKAGE.parent
# the files whose sentences are in the catalog of the grader: exercises, bugs and what is made of them
GRADING = re.compile(
    r"(mistakes|checking|learn/(exercises|tasks|capstone|bugs)|cli/(exercise|tasks|build|bugs)\.py)"
)
SAID = re.compile(r"""\b(?:say|_)\((["'])(.*?)\1""", re.DOTALL)
IMPORTED = re.compile(r"^from npformer\.language import (?:.*|\([^)]*)\b(say|later)\b", re.MULTILINE)


def catalogs_of(language: str) -> list[str]:
    """Return the names of the catalogs of a language, in order. What has one is offered in that language."""
    folder = path_of(language, INTERFACE).parent
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.po"))


def messages_for(name: str) -> list[str]:
    """Return the messages of a document in English, in order, each once, or none if there is none.

    Args:
        name: The name of its catalog: "interface", "grader", "glossary", "bugs", "explorer", a lesson such as
            "lessons/05_1_scaled_dot_product_attention", a chapter's exercises such as "exercises/05",
            or a file of the checkout without .md, such as "docs/teaching".
    """
    if name in (INTERFACE, GRADER):
        files = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
        own = [path for path in files if bool(GRADING.match(path.as_posix())) == (name == GRADER)]
        found = [message for path in own for message in _said(PACKAGE / path)]
        found += _said_in_pages() if name == INTERFACE else []
        tables = (rows_of(SENTENCES), *TABLES) if name == GRADER else ()
        found += [row.says for table in tables for row in table]
    elif name == GLOSSARY:
        found = definitions()
    elif name == BUGS:
        found = [message for bug in ALL for message in bug.messages()]
    elif name == EXPLORER:
        found = words_of_explorer()
    elif name.startswith("exercises/"):
        tasks = (each for each in EXERCISES if each.catalog == name)
        found = [message for exercise in tasks for message in exercise.messages()]
    elif name.startswith("lessons/"):
        named = (each for each in all_lessons() if f"lessons/{each.name}" == name)
        found = [message for each in named for cell in each.english.cells for message in _of_cell(cell)]
    else:
        page = CHECKOUT / f"{name}.md"
        found = messages_of(page.read_text(encoding="utf-8")) if page.is_file() else []
    return list(dict.fromkeys(found))


def _said_in_pages() -> list[str]:
    """Return the messages of the templates of the site's pages."""
    site = PACKAGE / "learn" / "site"
    files = [*sorted(site.glob("pages/*.md")), *sorted(site.glob("templates/*.html"))]
    found = [said for path in files for _, said in SAID.findall(path.read_text(encoding="utf-8"))]
    return [" ".join(message.split()) for message in found]


def _of_cell(cell: Cell) -> list[str]:
    """Return the messages of a cell: its prose, or the captions of its figures."""
    if cell.kind == "prose":
        return messages_of(cell.text)
    captions: list[ast.expr] = []
    for node in ast.walk(ast.parse(cell.text)):
        match node:
            case ast.Call(func=ast.Name("show_figure"), args=[_, _, caption]):
                captions.append(caption)
            case ast.Assign(targets=[ast.Name("caption")], value=caption):
                captions.append(caption)
    return [str(node.value) for node in captions if isinstance(node, ast.Constant)]


def _said(path: Path) -> Iterator[str]:
    """Yield the messages that a source file gives to `say` or `later`."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if IMPORTED.search(text) else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("say", "later")
        ):
            message = node.args[0]
            assert isinstance(message, ast.Constant), f"{path}, line {node.lineno}: write the message out"
            yield str(message.value)

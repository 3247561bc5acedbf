"""The messages of a text in Markdown: what a translator reads, and what a translation takes the place of.

A message is a paragraph, a heading, an item of a list, a cell of a table or the title of an answer, on one
line. Code, formulas on lines of their own, and texts without a word are no messages and stay as they are.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from markdown_it import MarkdownIt

from npformer.learn.course.prose import DETAILS, FORMULA

MARK = "\ue001"  # stands on both sides of the number of a formula on lines of its own
FORMULA_LINE = re.compile(f"(\n?{MARK}\\d+{MARK}\n?)")
# parts of a message that have no words: code, formulas in a line, the addresses of links
WORDLESS = re.compile(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\]\[[^]]*\]|<[^>]*>")
WORD = re.compile(r"[^\W\d_]{2}")
MARKER = re.compile(r"[-*+]|\d+[.)]")  # of an item of a list


def messages_of(markdown: str) -> list[str]:
    """Return the messages of a text in Markdown, in order, each once."""
    found: dict[str, str] = {}
    replace_messages(markdown, lambda message: found.setdefault(message, message))
    return list(found)


def translated(markdown: str, translations: Mapping[str, str]) -> str:
    """Return a text in Markdown with its messages translated, those without a translation in English."""
    return replace_messages(markdown, lambda message: translations.get(message, message))


def replace_messages(markdown: str, shown: Callable[[str], str]) -> str:
    """Return a text in Markdown with what stands for each of its messages.

    Args:
        markdown: The text.
        shown: shown(message) returns what stands for a message. Where it is the message itself, the lines
            stay as they are.
    """
    parts, end = [], 0
    for found in DETAILS.finditer(markdown):
        parts += [_blocks(markdown[end : found.start("title")], shown), shown(found["title"])]
        parts += [markdown[found.end("title") : found.start("answer")], _blocks(found["answer"], shown)]
        end = found.end("answer")
    return "".join([*parts, _blocks(markdown[end:], shown)])


def _blocks(markdown: str, shown: Callable[[str], str]) -> str:
    """Replace the messages of Markdown without answers."""
    formulas: list[str] = []

    def marked(found: re.Match[str]) -> str:
        if not found["display"]:
            return found[0]
        formulas.append(found[0])
        return f"{MARK}{len(formulas) - 1}{MARK}"

    lines = FORMULA.sub(marked, markdown).split("\n")
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(lines))
    cells_from = dict[int, int]()  # for each row of a table the column after which its cells are replaced
    texts = [
        (before.type in ("th_open", "td_open"), token.map, token.content, _replaced(token.content, shown))
        for before, token in pairwise(tokens)
        if token.type == "inline" and token.map is not None
    ]
    for is_cell, (first, last), content, text in reversed(texts):  # from the end: earlier places stay
        if is_cell:
            cell = content.replace("|", r"\|")
            column = lines[first].rindex(cell, 0, cells_from.get(first))
            cells_from[first] = column
            rest = lines[first][column + len(cell) :]
            lines[first] = lines[first][:column] + text.replace("|", r"\|") + rest
        elif text != content:
            column = lines[first].index(content.split("\n")[0])
            begin = lines[first][:column]
            indent = MARKER.sub(lambda found: " " * len(found[0]), begin)
            lines[first:last] = (begin + text.replace("\n", f"\n{indent}")).split("\n")
    return re.sub(f"[ ]*{MARK}(\\d+){MARK}", lambda found: formulas[int(found[1])], "\n".join(lines))


def _replaced(text: str, shown: Callable[[str], str]) -> str:
    """Replace the messages of a paragraph: what stands before, between and after its formulas."""
    parts = FORMULA_LINE.split(text)
    for index in range(0, len(parts), 2):
        message = " ".join(parts[index].split())
        if WORD.search(WORDLESS.sub("", message)) and shown(message) != message:
            parts[index] = shown(message)
    return "".join(parts)

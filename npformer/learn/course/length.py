"""The length of a lesson: the minutes that it takes, counted from its text and its code by a fixed formula.

A minute is 150 words of prose or 6 new lines of code. Each question and each formula to be derived takes 2
minutes more. A question is one with a folded answer, and a formula to be derived is one of several lines
(`aligned`). Lines of code are new unless they are blank, import something, occurred before in the lesson, or
belong to a cell with tags, whose code is folded.
"""

import ast
import re
from math import ceil

from npformer.learn.course.lesson import Cell, Lesson
from npformer.learn.course.prose import formulas, replace_formulas, split_answers

WORDS_PER_MINUTE = 150
LINES_PER_MINUTE = 6
MINUTES_PER_QUESTION = 2  # and per formula to be derived
ROUNDED_TO = 5  # minutes
SEVERAL_LINES = re.compile(r"\\begin\{(aligned|align\*?|split)\}")
WORD = re.compile(r"\S*\w\S*")
FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def minutes_of(lesson: Lesson) -> int:
    """Return the minutes that a lesson takes by the formula, rounded up to a multiple of five."""
    texts = [cell.text for cell in lesson.cells if cell.kind == "prose"]
    answers = sum(part.kind == "answer" for text in texts for part in split_answers(text))
    derivations = sum(bool(SEVERAL_LINES.search(latex)) for text in texts for latex, _ in formulas(text))
    minutes = (
        sum(map(count_words, texts)) / WORDS_PER_MINUTE
        + len(new_lines(lesson.cells)) / LINES_PER_MINUTE
        + (answers + derivations) * MINUTES_PER_QUESTION
    )
    return ceil(minutes / ROUNDED_TO) * ROUNDED_TO


def count_words(text: str) -> int:
    """Return the number of words in prose. In a line, code or a formula is one word."""
    return len(WORD.findall(plain(text)))


def plain(text: str) -> str:
    """Return prose without formulas and code: "x" stands for each of those within a line."""
    text = replace_formulas(text, lambda latex, display: "" if display else "x")
    text = CODE_SPAN.sub("x", FENCE.sub("", text))
    return re.sub(r"</?(?:details|summary)>", " ", text)


def new_lines(cells: list[Cell]) -> list[str]:
    """Return the lines of code that a reader has to read, in order."""
    lines: dict[str, None] = {}  # in the order of their insertion
    for cell in cells:
        if cell.kind == "code" and not cell.tags:
            imports = import_lines(cell.text)
            for number, line in enumerate(cell.text.splitlines(), 1):
                if line.strip() and number not in imports:
                    lines[line.strip()] = None
    return list(lines)


def import_lines(code: str) -> set[int]:
    """Return the numbers of the lines that belong to import statements."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}

"""The length of a lesson: the minutes that it takes, counted from its text and its code by a fixed formula.

A minute is 130 words of prose or 5 new lines of code. A formula in a line is read symbol by symbol, and each
symbol counts as a word. A formula on lines of its own takes a minute, and one more if it has several lines
(`aligned`), because it is to be derived. Each question with a folded answer takes 2 minutes. Lines of code
are new unless they are blank, import something, occurred before in the lesson, or belong to a cell with tags,
whose code is folded.
"""

import ast
import re
from math import ceil

from npformer.learn.course.lesson import Cell, Lesson
from npformer.learn.course.prose import formulas, replace_formulas, split_answers

WORDS_PER_MINUTE = 130
LINES_PER_MINUTE = 5
MINUTES_PER_QUESTION = 2
ROUNDED_TO = 5  # minutes
SEVERAL_LINES = re.compile(r"\\begin\{(aligned|align\*?|split)\}")
WORD = re.compile(r"\S*\w\S*")
FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
# a word in a formula, a command, a number or a sign; braces, _ and ^ only say where the symbols stand
SYMBOL = re.compile(r"\\(?:mathrm|text|operatorname)\{[^{}]*\}|\\[A-Za-z]+|\d+(?:\.\d+)?|[^\s{}_^&~\\]")
NO_SYMBOLS = (r"\left", r"\right", r"\quad", r"\qquad")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def minutes_of(lesson: Lesson) -> int:
    """Return the minutes that a lesson takes in English by the formula, rounded up to a multiple of five."""
    return ceil(reading_time(lesson.english.cells) / ROUNDED_TO) * ROUNDED_TO


def reading_time(cells: list[Cell]) -> float:
    """Return the minutes that some cells of a lesson take by the formula."""
    texts = [cell.text for cell in cells if cell.kind == "prose"]
    answers = sum(part.kind == "answer" for text in texts for part in split_answers(text))
    found = [formula for text in texts for formula in formulas(text)]
    displayed = [latex for latex, display in found if display]
    symbols = [count_symbols(latex) for latex, display in found if not display]
    words = sum(map(count_words, texts)) + sum(symbols) - len(symbols)  # count_words counts each as one word
    return (
        words / WORDS_PER_MINUTE
        + len(new_lines(cells)) / LINES_PER_MINUTE
        + sum(2 if SEVERAL_LINES.search(latex) else 1 for latex in displayed)
        + answers * MINUTES_PER_QUESTION
    )


def count_symbols(latex: str) -> int:
    """Return the number of symbols in a formula in LaTeX. A number or a word is one symbol."""
    return len([symbol for symbol in SYMBOL.findall(latex) if symbol not in NO_SYMBOLS])


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

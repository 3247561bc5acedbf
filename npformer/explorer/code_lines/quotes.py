"""Quotations of npformer's source: lines by their text, and where they stand in the source today."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2]


class Quote(NamedTuple):
    """Consecutive or separate lines of a function, without their indentation."""

    file: str  # relative to the package, such as "functional/linear.py"
    function: str  # with its class, such as "Linear.forward"
    lines: tuple[str, ...]


class StepLines(NamedTuple):
    """The source lines of one kind of step, and the lessons that derive them."""

    forward: Quote
    backward: Quote | None  # None if a step passes no gradient on
    lesson: str  # the file name of the lesson that introduces the forward line
    backward_lesson: str  # the file name of the lesson that derives the gradient


class FoundFunction(NamedTuple):
    """A function of the package as it stands in the source."""

    source: str
    line: int  # the line of the file in which it begins


def line_numbers(quote: Quote) -> list[int]:
    """Return the number of each quoted line in its file.

    Raises:
        LookupError: If a line is not in the function exactly once, or if the lines are in another order.
    """
    function = find_function(quote.file, quote.function)
    lines = [line.strip() for line in function.source.splitlines()]
    numbers = []
    for text in quote.lines:
        if lines.count(text) != 1:
            raise LookupError(
                f"{quote.file} has {text!r} {lines.count(text)} times in {quote.function}: quote its new line"
            )
        numbers.append(function.line + lines.index(text))
    if numbers != sorted(numbers):
        raise LookupError(f"{quote.file} has the lines of {quote.function} in another order: quote it so")
    return numbers


def find_function(file: str, name: str) -> FoundFunction:
    """Return a function of the package by its file and its name, with its class if it is a method.

    Raises:
        LookupError: If there is no such function.
    """
    text, functions = _functions_of(file)
    if name not in functions:
        raise LookupError(f"{file} has no function {name}: quote the function of today")
    node = functions[name]
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return FoundFunction("\n".join(line[indent:] for line in lines), node.lineno)


@cache
def _functions_of(file: str) -> tuple[str, dict[str, ast.FunctionDef]]:
    """Return the text of a file of the package, and its functions and methods by their names."""
    text = (PACKAGE / file).read_text(encoding="utf-8")
    functions = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    functions[f"{node.name}.{member.name}"] = member
    return text, functions

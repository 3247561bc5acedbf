"""The prose of a lesson: Markdown with formulas in LaTeX, and answers that are folded at first.

A formula stands between dollar signs, `$x$` in a line or `$$x$$` on lines of its own. Dollar signs in code
and after a backslash are text. An answer is written as `<details><summary>Answer</summary> ... </details>`;
`<details>` and `</details>` begin lines.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

DETAILS = re.compile(
    r"^<details>[ ]*\n?<summary>(?P<title>.*?)</summary>[ ]*(?P<answer>.*?)^</details>[ ]*$",
    re.MULTILINE | re.DOTALL,
)
# what may contain a dollar sign, and formulas
FORMULA = re.compile(
    r"""
    # a fenced block of code
      ^(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=fence)[ ]*$
    # code in a line
    | (?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)
    # a dollar sign as text
    | \\\$
    # a formula on lines of its own
    | ^(?P<indent>[ ]*)\$\$(?P<display>.+?)\$\$[ ]*$
    # a formula in a line
    | \$(?![\s$])(?P<inline>(?:[^$\\\n]|\\.|\n(?![ ]*\n))+?)(?<!\s)\$(?!\d)
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


class ProsePart(NamedTuple):
    """A part of the prose.

    Args:
        kind: "text" for Markdown, "answer", or "latex" for a formula on lines of its own.
        text: The text, without the signs that begin and end the part.
        title: The title of an answer.
    """

    kind: str
    text: str
    title: str = ""


def split_answers(text: str) -> list[ProsePart]:
    """Split prose into parts of the kinds "text" and "answer", in order. Empty parts are left out."""
    answers = DETAILS.finditer(text)
    return _split(text, answers, lambda a: ProsePart("answer", a["answer"].strip(), a["title"].strip()))


def split_formulas(text: str) -> list[ProsePart]:
    """Split prose into parts of the kinds "text" and "latex", in order. Empty parts are left out."""
    displayed = (found for found in FORMULA.finditer(text) if found["display"])
    return _split(text, displayed, lambda found: ProsePart("latex", found["display"].strip()))


def _split(
    text: str, matches: Iterable[re.Match[str]], part: Callable[[re.Match[str]], ProsePart]
) -> list[ProsePart]:
    """Return the parts of the matches, and those of the text between them."""
    parts, end = [], 0
    for found in matches:
        parts += [ProsePart("text", text[end : found.start()].strip("\n")), part(found)]
        end = found.end()
    parts.append(ProsePart("text", text[end:].strip("\n")))
    return [part for part in parts if part.text.strip()]


def replace_formulas(text: str, shown: Callable[[str, bool], str]) -> str:
    """Replace the formulas in LaTeX.

    Args:
        text: The prose.
        shown: shown(latex, display) returns what stands for a formula. `display` is True for a formula on
            lines of its own.
    """

    def replaced(found: re.Match[str]) -> str:
        latex = found["display"] or found["inline"]
        if not latex:
            return found[0]
        return (found["indent"] or "") + shown(latex.strip(), bool(found["display"]))

    return FORMULA.sub(replaced, text)


def formulas(text: str) -> list[tuple[str, bool]]:
    """Return the formulas in LaTeX, each with True if it stands on lines of its own."""
    found: list[tuple[str, bool]] = []

    def noted(latex: str, display: bool) -> str:
        found.append((latex, display))
        return ""

    replace_formulas(text, noted)
    return found

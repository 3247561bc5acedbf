r"""Formulas in LaTeX, translated into MathML for pages and into lines of Unicode for the terminal.

latex2mathml parses the LaTeX. The terminal's text is made from the same MathML, so that both show the same
formula. Examples of the text: `\frac{Q K^\top}{\sqrt{d_k}}` becomes Q Kᵀ / √dₖ, and `d_{\mathrm{model}}`
becomes d_model.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from textwrap import dedent
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from rich.cells import cell_len

from npformer.errors import UserError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
# parts whose spaces are kept, commands that take what follows them, and the other spaces of a formula
SPACES = re.compile(
    r"(\\(?:text|mathrm|operatorname\*?|begin|end)\{[^}]*\}|\\(?!(?:top|rangle)\b)[A-Za-z]+\s*|\\[^A-Za-z]\s*)|\s+(?=[\w(\[|\\])"
)
NORMAL = "0123456789+−=()abcdefghijklmnoprstuvwxyz⊤T′″‴"
SUPERSCRIPTS = dict(zip(NORMAL, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀᵀ′″‴", strict=True))
SUBSCRIPTS = dict(zip("0123456789+−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
ACCENTS = dict(zip("^~¯―˙¨→", "\u0302\u0303\u0304\u0304\u0307\u0308\u20d7", strict=True))
SPACED = set("=≠<>≤≥≈≡∼∝∈∉⊂⊆∪∩+−±×·⊙⊗⊕∘/→←↦↑↓∣⇒⇔⟹≔≪≫⋅∧∨")
CHARACTERS = {"-": "−", "∑": "Σ", "∏": "Π", "\xa0": " "}  # more legible in a terminal
CLOSING = set(")]}⟩,")
OPENING = set("([{⟨") | {""}
LARGE = set("ΣΠ∫")
ARGUMENTS = dict.fromkeys(("mfrac", "msub", "msup", "munder", "mover", "mroot"), 2)
ARGUMENTS |= {"msubsup": 3, "munderover": 3}
FENCES = {"(": "⎛⎜⎝", "[": "⎡⎢⎣", "{": "⎧⎨⎩", ")": "⎞⎟⎠", "]": "⎤⎥⎦", "}": "⎫⎬⎭", "|": "│││"}


def to_mathml(latex: str, *, display: bool = False) -> str:
    """Return a formula as MathML.

    Args:
        latex: The formula without its dollar signs.
        display: True for a formula on lines of its own.

    Raises:
        UserError: If the formula contains a mistake or an unknown command.
    """
    math = _tree(latex.strip())
    math.set("display", "block" if display else "inline")
    math.set("xmlns", NAMESPACE)
    return ElementTree.tostring(math, encoding="unicode")


@lru_cache(maxsize=1024)
def to_text(latex: str) -> str:
    """Return a formula as text: one line, or several if it contains several, such as `aligned`.

    Raises:
        UserError: If the formula contains a mistake or an unknown command.
    """
    # LaTeX ignores the space between two factors, as in dY V^\top; the terminal shows it
    text = _text(_tree(SPACES.sub(lambda found: found[1] or r"\;", latex.strip())))
    return dedent("\n".join(line.rstrip() for line in text.split("\n")))


def _tree(latex: str) -> Element:
    """Parse a formula and return its MathML without namespaces."""
    # latex2mathml knows `split`, which differs from `aligned` in its name only
    known = re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{split}", latex)
    known = known.replace(r"\arg", r"\operatorname{arg}")
    try:
        math = ElementTree.fromstring(convert(known).replace(f' xmlns="{NAMESPACE}"', ""))
    except Exception as error:  # latex2mathml raises exceptions of many kinds
        why = str(error) or type(error).__name__
        raise UserError(f"the formula {latex!r} cannot be read ({why}): correct its LaTeX") from None
    if any(len(node) != ARGUMENTS.get(node.tag, len(node)) for node in math.iter()):
        raise UserError(f"the formula {latex!r} cannot be read (an argument is missing): correct its LaTeX")
    unknown = [node.text for node in math.iter() if "\\" in (node.text or "")]
    if unknown:
        raise UserError(f"the formula {latex!r} has the unknown command {unknown[0]}: use a common one")
    for row in list(math.iter()):
        _join_letters(row)
    return math


def _join_letters(row: Element) -> None:
    r"""Join the letters of an upright name, such as \mathrm{softmax}, which latex2mathml keeps apart."""
    for first, second in reversed(list(pairwise(list(row)))):
        if all(letter.get("mathvariant") == "normal" for letter in (first, second)):
            first.text = f"{first.text}{second.text}"
            row.remove(second)
    for child in row:
        if child.tag == "mi" and child.get("mathvariant") == "normal" and len(child.text or "") > 1:
            del child.attrib["mathvariant"]  # names of several letters are upright anyway


# ---------------------------------------------------------------------------------------------------------
# MathML as text


def _text(node: Element) -> str:
    """Return one node of MathML as text."""
    parts = list(node)
    match node.tag:
        case "mi" | "mn" | "mo" | "mtext":
            return "".join(map(_character, node.text or ""))
        case "mspace":
            return _space(node.get("width", ""))
        case "msub" | "munder":
            return _text(parts[0]) + _script(parts[1], SUBSCRIPTS, "_")
        case "msup":
            return _grouped_base(parts[0]) + _script(parts[1], SUPERSCRIPTS, "^")
        case "msubsup" | "munderover":
            below, above = _script(parts[1], SUBSCRIPTS, "_"), _script(parts[2], SUPERSCRIPTS, "^")
            return _text(parts[0]) + below + above
        case "mover":
            return _accented(parts[0], parts[1])
        case "mfrac":
            return _fraction(*parts)
        case "msqrt":
            inner = _row(parts)
            return f"√{inner}" if len(parts) == 1 and _is_atom(parts[0]) else f"√({inner})"
        case "mroot":
            return f"{_script(parts[1], SUPERSCRIPTS, '^')}√({_text(parts[0])})"
        case "mtable":
            return _table(node)
        case _:
            return _row(parts)


def _character(character: str) -> str:
    """Return a character that a terminal's font has: a bold or slanted letter becomes a plain one."""
    if "\U0001d400" <= character <= "\U0001d7ff":
        return unicodedata.normalize("NFKC", character)
    return CHARACTERS.get(character, character)


def _space(width: str) -> str:
    """Return spaces for a horizontal space of MathML."""
    number = re.match(r"-?[\d.]+", width)
    return "" if "negative" in width or not number else "    " if float(number[0]) >= 1 else " "


def _script(node: Element, table: dict[str, str], sign: str) -> str:
    """Return an index or an exponent in small characters, or after a sign if Unicode lacks one of them."""
    text = re.sub(r"\s+(?!\w)|(?<!\w)\s+", "", _text(node))
    plain = re.sub(r"(?<=,)(?=\S)", " ", text)
    if len(text) > 1 and text.isalpha() and _is_name(node):  # a name, as in d_model
        return f"{sign}{text}"
    if all(character in table for character in text):
        return "".join(table[character] for character in text)
    bare = len(text) == 1 or text.isalnum() or re.fullmatch(r"[−+<>≤≥]?[\d.]+|[<>≤≥]\w|\([^()]*\)", plain)
    return f"{sign}{plain}" if bare else f"{sign}({plain})"


def _is_name(node: Element) -> bool:
    """Return whether a script is a word: an upright name, or more letters than indices have."""
    leaves = [leaf for leaf in node.iter() if not len(leaf)]
    return len(leaves) == 1 or len(leaves) > 3


def _grouped_base(node: Element) -> str:
    """Return the base of a power, in brackets if it has several parts."""
    text = _text(node)
    return f"({text})" if _leaf(node).tag in ("mfrac", "msqrt", "msup", "msubsup") else text


def _accented(base: Element, accent: Element) -> str:
    """Return a letter with an accent, or text with something above it."""
    text, sign = _text(base), _text(accent)
    if sign not in ACCENTS:
        return f"{text}{_script(accent, SUPERSCRIPTS, '^')}"
    return text[:1] + ACCENTS[sign] + text[1:] if len(text) == 1 else f"{sign}({text})"


def _fraction(above: Element, below: Element) -> str:
    """Return a fraction on one line, with brackets where they are needed."""
    top, bottom = _text(above), _text(below)
    if not _is_product(above):
        top = f"({top})"
    if not _is_atom(below):
        bottom = f"({bottom})"
    return f"{top}/{bottom}" if _is_atom(above) and _is_atom(below) else f"{top} / {bottom}"


def _leaf(node: Element) -> Element:
    """Return a node without the rows around it that have one part only."""
    while node.tag in ("mrow", "mstyle") and len(node) == 1:
        node = node[0]
    return node


def _is_atom(node: Element) -> bool:
    """Return whether a node needs no brackets beside a fraction bar or below a root: x, xᵢ, √x, ∂x."""
    inner = _leaf(node)
    if inner.tag in ("mi", "mn", "mtext", "msub", "msup", "msubsup", "mover", "msqrt"):
        return True
    parts = [part for part in inner if part.tag != "mspace"] if inner.tag == "mrow" else []
    return len(parts) == 2 and _text(parts[0]) in ("∂", "d") and _is_atom(parts[1])


def _is_product(node: Element) -> bool:
    """Return whether a node has no operator that binds less than a fraction bar."""
    inner = _leaf(node)
    if inner.tag in ("mfrac", "mtable"):
        return False
    texts = [_text(part) for part in inner] if inner.tag == "mrow" else [_text(inner)]
    return not any(text in SPACED - {"·", "×", "⊙"} or text[:1] in LARGE for text in texts)


def _row(parts: list[Element]) -> str:
    """Return the parts of a row side by side, with spaces around operators."""
    lines, texts = [""], [_text(part) for part in parts]
    for index, (part, text) in enumerate(zip(parts, texts, strict=True)):
        before, after = _neighbour(texts[:index], -1), _neighbour(texts[index + 1 :], 0)
        tall = max((other.count("\n") + 1 for other in (before, after)), default=1)
        if part.tag == "mo" and text in FENCES and tall > 1:
            text = _tall(text, tall)
        elif part.tag == "mo" and text in SPACED:
            is_sign = text in "+−±" and (not before or before in SPACED | set("([{,"))
            text = text if is_sign else f" {text} "
        elif part.tag == "mo" and text in (",", ";"):
            text = f"{text} "
        elif text[:1] in LARGE or _is_function(part):
            text = " " * _is_factor(before[-1:]) + text + " " * _is_factor(after[:1], "√∂−‖|")
        elif part.tag == "mfrac" and (_is_factor(before[-1:], ")]") or _is_factor(after[:1], "√∂([")):
            text = f"({text})"
        if lines[0].endswith(" ") and re.fullmatch(r" (?! ).*", text):
            text = text[1:]
        if part.tag == "mspace" and before in OPENING:
            text = ""
        if text in CLOSING:
            lines = [line.rstrip() or line for line in lines]
        lines = _beside(lines, text.split("\n"))
    return "\n".join(lines)


def _neighbour(texts: list[str], index: int) -> str:
    """Return the first or the last text that is not empty, or ""."""
    visible = [text.strip() for text in texts if text.strip()]
    return visible[index] if visible else ""


def _is_factor(character: str, others: str = "") -> bool:
    """Return whether a character belongs to a factor: a letter, a digit, Σ, or one of `others`."""
    return character != "" and (character.isalnum() or character in LARGE or character in others)


def _is_function(node: Element) -> bool:
    """Return whether a node is an upright name such as log or max, with or without an index."""
    name = node[0] if node.tag in ("msub", "munder", "msup", "msubsup") and len(node) else node
    text = name.text or ""
    return name.tag in ("mi", "mo") and len(text) > 1 and text.isalpha()


def _table(node: Element) -> str:
    """Return a table as lines with columns. In `aligned`, pairs of columns meet at the sign of equality."""
    rows = [[_text(cell).strip() for cell in row] for row in node]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*_filled(rows), strict=True)]
    aligned = any(cell.get("columnalign") == "right" for cell in node.iter("mtd"))
    lines = []
    for row in _filled(rows):
        line = ""
        for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            if aligned:
                line += space + cell if index % 2 == 0 else f" {cell}{space}    "
            else:
                line += f"{cell}{space}  "
        lines.append(line.rstrip())
    return "\n".join(lines)


def _filled(rows: list[list[str]]) -> list[list[str]]:
    """Return rows of the same length."""
    longest = max(map(len, rows))
    return [row + [""] * (longest - len(row)) for row in rows]


def _tall(fence: str, height: int) -> str:
    """Return a bracket of several lines."""
    top, middle, bottom = tuple(FENCES[fence])
    inner = [middle] * (height - 2)
    if fence in "{}":  # its point is in the middle only
        inner = [middle if row == (height - 2) // 2 else "⎪" for row in range(height - 2)]
    return "\n".join(f" {sign}" if fence in ")]}" else f"{sign} " for sign in [top, *inner, bottom])


def _beside(left: list[str], right: list[str]) -> list[str]:
    """Return two blocks of lines side by side."""
    if len(left) == len(right) == 1:
        return [left[0] + right[0]]
    height, width = max(len(left), len(right)), max(map(cell_len, left))
    left, right = left + [""] * (height - len(left)), right + [""] * (height - len(right))
    return [a + " " * (width - cell_len(a)) + b for a, b in zip(left, right, strict=True)]

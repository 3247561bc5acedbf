"""Docstrings as HTML: text with lists and code, and definition lists of Args, Returns and Raises."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import cleandoc
from textwrap import dedent

LISTS = ("Args", "Attributes", "Raises")  # sections of entries "name: text"
TEXTS = ("Returns", "Yields", "Source", "Example", "Shapes", "Note")  # sections of text
SECTION = re.compile(rf"({'|'.join((*LISTS, *TEXTS))}):(?: +(.*))?")
ITEM = re.compile(r"(?:- |\d+\. )")
ENTRY = re.compile(r"([\w*.]+(?:, [\w*.]+)*):(?: +|$)")

Link = Callable[[str], str | None]  # the address of a name, or None for a name without one


@dataclass(frozen=True)
class Section:
    """A section of a docstring, such as Args. It holds either entries or a text."""

    title: str
    text: str = ""
    entries: list[tuple[str, str]] = field(default_factory=list)  # (name, text)


@dataclass(frozen=True)
class Docstring:
    """A docstring: its first paragraph, the other text, and its sections in order."""

    summary: str
    text: str
    sections: list[Section]


def parse(docstring: str) -> Docstring:
    """Split a docstring into its summary, its text and its sections."""
    lines, sections = list[str](), list[tuple[str, list[str]]]()
    for line in cleandoc(docstring).splitlines():
        begin = SECTION.fullmatch(line)
        if begin and (begin[1] != "Shapes" or sections):
            sections.append((begin[1], [begin[2]] if begin[2] else []))
        elif sections and (not line or line.startswith(" ") or "".join(sections[-1][1][-1:])):
            sections[-1][1].append(line)  # also a line that continues "Source: ..." without being indented
        else:
            lines.append(line)
    summary, _, rest = "\n".join(lines).strip().partition("\n\n")
    return Docstring(" ".join(summary.split()), rest.strip("\n"), [_section(*each) for each in sections])


def _section(title: str, lines: list[str]) -> Section:
    """Return a section from its title and its lines, which are indented or follow the title at once."""
    first = [] if not lines or lines[0].startswith(" ") else [lines.pop(0)]
    text = "\n".join([*first, dedent("\n".join(lines))]).strip("\n")
    if title not in LISTS:
        return Section(title, text)
    entries = list[tuple[str, str]]()
    for line in text.splitlines():
        begin = ENTRY.match(line)
        if begin:
            entries.append((begin[1], line[begin.end() :]))
        elif entries:
            name, before = entries[-1]
            entries[-1] = name, f"{before} {line.strip()}".strip()
    return Section(title, entries=entries)


# ---------------------------------------------------------------------------------------------------------
# HTML


def blocks(text: str, link: Link) -> str:
    """Return paragraphs, lists and indented code as HTML."""
    return "\n".join(_block(block, link) for block in _split(text))


def _split(text: str) -> Iterator[str]:
    """Yield the blocks of a text. Indented blocks that follow each other are one block of code."""
    code = list[str]()
    for block in re.split(r"\n{2,}", text.strip("\n")):
        # a list or a paragraph may be followed at once by indented code
        parts = re.split(r"\n(?=(?:    |>>> )\S)", block, maxsplit=1) if not _is_code(block) else [block]
        if ITEM.match(block):
            parts = [block]
        for part in parts:
            if _is_code(part):
                code.append(part)
                continue
            if code:
                yield "\n\n".join(code)
                code = []
            if part.strip():
                yield part
    if code:
        yield "\n\n".join(code)


def _is_code(block: str) -> bool:
    """Return whether a block is code: all of its lines are indented, or it is a session of Python."""
    return block.startswith(">>>") or all(line.startswith("    ") for line in block.splitlines() if line)


def _block(block: str, link: Link) -> str:
    if _is_code(block):
        return f'<pre class="code">{html.escape(dedent(block))}</pre>'
    if ITEM.match(block):
        items = re.split(r"^(?:- |\d+\. )", block, flags=re.MULTILINE)[1:]
        tag = "ul" if block.startswith("- ") else "ol"
        return f"<{tag}>{''.join(f'<li>{inline(item, link)}</li>' for item in items)}</{tag}>"
    return f"<p>{inline(block, link)}</p>"


def inline(text: str, link: Link) -> str:
    """Return a line of text as HTML: `code` in <code>, names with a page as links, *words* in <em>."""
    parts = []
    for index, part in enumerate(re.split(r"`([^`\n]+)`", " ".join(text.split()))):
        if index % 2:
            parts.append(code(part, link))
        else:
            plain = re.sub(
                r"(?<![\w*])\*([A-Za-z][^*]*)\*(?![\w*])", r"<em>\1</em>", html.escape(part, quote=False)
            )
            parts.append(_linked(plain, link))
    return "".join(parts)


def code(text: str, link: Link) -> str:
    """Return a piece of code as HTML, with a link if it is a name that has a page."""
    address = link(text.partition("(")[0])
    shown = f"<code>{html.escape(text, quote=False)}</code>"
    return f'<a href="{html.escape(address)}">{shown}</a>' if address else shown


def _linked(text: str, link: Link) -> str:
    """Return text with links at names that cannot be words: they have an underscore or an inner capital."""

    def named(found: re.Match[str]) -> str:
        address = link(found[0])
        return f'<a href="{html.escape(address)}"><code>{found[0]}</code></a>' if address else found[0]

    return re.sub(r"\b(?:[a-z]+(?:_[a-z\d]+)+|[A-Z][A-Za-z]*[a-z][A-Z]\w*)\b", named, text)


def sections(parsed: Docstring, link: Link, types: dict[str, str]) -> str:
    """Return the sections as one definition list.

    Args:
        parsed: The docstring.
        link: The addresses of names.
        types: The types of the arguments as HTML, by their names.
    """
    rows = [
        f"<dt>{section.title}</dt><dd>{_content(section, link, types)}</dd>" for section in parsed.sections
    ]
    return f'<dl class="sections">{"".join(rows)}</dl>' if rows else ""


def _content(section: Section, link: Link, types: dict[str, str]) -> str:
    if section.title not in LISTS:
        return blocks(section.text, link)
    rows = []
    for name, text in section.entries:
        kind = types.get(name.split(",")[0].lstrip("*"), "") if section.title == "Args" else ""
        head = code(name, link) if section.title == "Raises" else f"<code>{html.escape(name)}</code>"
        kind = f' <span class="type">{kind}</span>' if kind else ""
        rows.append(f"<dt>{head}{kind}</dt><dd>{inline(text, link)}</dd>")
    return f"<dl>{''.join(rows)}</dl>"

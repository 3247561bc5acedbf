"""The page of the explorer: one HTML file that opens offline and sends no request.

The page consists of the body `web/page.html`, the style sheet `web/style.css`, the modules of `web/` joined
into one, and the data of a model. Its Content-Security-Policy allows only this style sheet and this module,
by their hashes, and no connection, so that a browser enforces what is promised here.
"""

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from npformer.backend import Array
from npformer.language import ENGLISH, EXPLORER, catalog, current_language, phrase
from npformer.storage.atomic import write_file

WEB = Path(__file__).resolve().parent / "web"
MAIN = "main.js"
SECOND = "zh_CN"  # the language that an English page offers

_IMPORT = re.compile(
    r'^import \{(\s*[\w$]+(?:,\s*[\w$]+)*,?\s*)\} from "(\.[\w./-]+\.js)";(?:\n|\Z)', re.MULTILINE
)
_UNKNOWN = re.compile(r"^(?:import|export)\b(?! (?:async )?(?:function|class|const|let)\b).*", re.MULTILINE)
_EXPORT = re.compile(r"export (?=(?:async )?(?:function|class|const|let)\b)", re.ASCII)
_TOP_LEVEL = re.compile(r"(?:export )?(?:async )?(?:function\*?|class|const|let|var) ([\w$]+)")

_PAGE = """\
<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script type="application/json" id="messages" lang="{second}">{messages}</script>
<script type="application/json" id="head">{head}</script>
<script type="application/octet-stream" id="weights">{weights}</script>
<script type="module">{module}</script>
</body>
</html>
"""


@dataclass(frozen=True)
class Page:
    """A page of the explorer. A notebook shows it in a frame.

    Attributes:
        html: The whole page.
        head: The data of the page without its numbers.
        kind: "live" if the page computes everything itself, "recorded" if it shows recorded arrays.
    """

    html: str = field(repr=False)
    head: dict[str, Any] = field(repr=False)

    @property
    def kind(self) -> str:
        """The kind of the page, "live" or "recorded"."""
        kind: str = self.head["kind"]
        return kind

    @property
    def title(self) -> str:
        """The title of the page."""
        title: str = self.head["title"]
        return title

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, and return the path.

        Raises:
            UserError: If the file cannot be written.
        """
        path = Path(path)
        write_file(path, self.html.encode("utf-8"), advice="give another file")
        return path

    def _repr_html_(self) -> str:
        """Return a frame that contains the page, for notebooks."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            'style="width: 100%; height: 46rem; border: 0" allow="fullscreen"></iframe>'
        )


def make_page(head: dict[str, Any], arrays: list[Array], catalogue: Mapping[str, str] | None = None) -> Page:
    """Return the page that shows some data, in the current language and with a link to its other language.

    Args:
        head: What the page needs besides its numbers, as values for JSON, with "title" and "kind".
        arrays: The arrays whose numbers the page carries, one after the other, as float32.
        catalogue: Translations of the words of the page, by their English texts, which `messages` lists. A
            text that is missing stands in English. By default, those of npformer.
    """
    language = current_language()
    second = SECOND if language == ENGLISH else language
    catalogue = catalog(second, EXPLORER) if catalogue is None else catalogue
    module, style = joined_modules(), (WEB / "style.css").read_text(encoding="utf-8")
    body = (WEB / "page.html").read_text(encoding="utf-8")
    return Page(
        _PAGE.format(
            lang=language.replace("_", "-"),
            second=second.replace("_", "-"),
            policy=policy(module, style),
            title=escape(head["title"]),
            style=style,
            body=_WITHOUT_SCRIPT.sub(lambda found: phrase(found[0], EXPLORER), body),
            messages=json_text(dict(catalogue)),
            head=json_text(head),
            weights=as_base64(arrays),
            module=module,
        ),
        head,
    )


def policy(module: str, style: str) -> str:
    """Return the Content-Security-Policy of a page with this module and this style sheet."""
    return (
        f"default-src 'none'; script-src '{_sha256(module)}'; style-src '{_sha256(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    """Return the hash of an inline script or style sheet as a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def json_text(data: Any) -> str:
    """Return data as JSON that can stand inside an HTML element, in which "<" would end it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # outside of strings, JSON has none of these: "<", and bytes of a name or a text that are not UTF-8
    return re.sub("[<\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def as_base64(arrays: list[Array]) -> str:
    """Return the numbers of all arrays, one after the other, as little-endian float32 in base64."""
    data = b"".join(array.astype("<f4").tobytes() for array in arrays)
    return base64.b64encode(data).decode("ascii")


# The modules: a page from a file system cannot import modules, so they are joined into one


def joined_modules(folder: Path = WEB) -> str:
    """Return the modules that the main module imports, directly or not, and the main module, as one module.

    Each module stands after those that it imports, without its lines of imports and the word "export".

    Args:
        folder: The folder of the main module, main.js, with the others, which may be in folders inside it.

    Raises:
        ValueError: If a module imports in another form than `import { a, b } from "./x.js";`, or a name that
            the other module does not export, if modules import each other, or if two of them have the same
            name at their top level.
    """
    texts: dict[str, str] = {}
    _add_module(folder, MAIN, texts, ())
    owners: dict[str, str] = {}
    for file, text in texts.items():
        for name in _top_level_names(text):
            if name in owners:
                raise ValueError(f"{owners[name]} and {file} both define {name}: rename one of them")
            owners[name] = file
    return "\n" + "\n".join(f"// {file}\n{_without_exports(text)}" for file, text in texts.items())


def _add_module(folder: Path, file: str, texts: dict[str, str], importers: tuple[str, ...]) -> None:
    """Add a module without its imports to `texts`, after those that it imports."""
    if file in importers:
        raise ValueError(f"modules import each other: {' -> '.join((*importers, file))}")
    if file in texts:
        return
    text = (folder / file).read_text(encoding="utf-8")
    for names, place in _IMPORT.findall(text):
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(file), place))
        _add_module(folder, imported, texts, (*importers, file))
        missing = set(re.findall(r"[\w$]+", names)) - set(_exported_names(folder / imported))
        if missing:
            raise ValueError(f"{file} imports {', '.join(sorted(missing))}, which {imported} does not export")
    text = _IMPORT.sub("", text)
    unknown = _UNKNOWN.search(text)
    if unknown:
        raise ValueError(f"{file} has the line {unknown[0]!r}, which cannot be joined: use the plain form")
    texts[file] = text.strip("\n") + "\n"


def _top_level_names(text: str) -> list[str]:
    return [found[1] for line in text.splitlines() if (found := _TOP_LEVEL.match(line))]


def _exported_names(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return _top_level_names("\n".join(line for line in lines if _EXPORT.match(line)))


def _without_exports(text: str) -> str:
    return re.sub(rf"(?m)^{_EXPORT.pattern}", "", text)


# The words of the page, in one catalogue

_WITHOUT_SCRIPT = re.compile(r'(?<=<noscript><p class="needs">)[^<]+')
_STRING = r'"(?:[^"\\]|\\.)*"'
_MESSAGE = re.compile(rf"\bt\(\s*({_STRING}(?:\s*\+\s*{_STRING})*)\s*[,)]")
_CALL = re.compile(r"\bt\(")


def messages(folder: Path = WEB) -> list[str]:
    """Return the English texts of all words of the page, in their order: the keys of a catalogue.

    A module writes each of them as `t("English text")`, and those of page.html stand in its elements.

    Args:
        folder: The folder of page.html and the modules.

    Raises:
        ValueError: If a module calls t with anything but a text, which no catalogue could have.
    """
    body = _Words()
    body.feed((folder / "page.html").read_text(encoding="utf-8"))
    found = body.texts
    for file in sorted(folder.rglob("*.js")):
        text = "" if file.name == "text.js" else file.read_text(encoding="utf-8")  # it defines t
        calls = [_MESSAGE.match(text, call.start()) for call in _CALL.finditer(text)]
        if None in calls:
            raise ValueError(f"{file.name} has a call of t without a text: write the words into the call")
        found += [
            "".join(json.loads(part) for part in re.findall(_STRING, call[1])) for call in calls if call
        ]
    return list(dict.fromkeys(found))


class _Words(HTMLParser):
    """The words of an HTML text: the texts of its elements, and the names of these for screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [str(value) for name, value in attrs if name in ("aria-label", "title")]

    def handle_data(self, data: str) -> None:
        if re.search(r"\w", data):
            self.texts.append(data.strip())

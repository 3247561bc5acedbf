"""The page of the explorer: one file that a browser can open offline, and what joins its modules."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from word_translator import word_translator

from npformer.errors import UserError
from npformer.explorer import explore
from npformer.explorer.model_data import title_of
from npformer.explorer.page import WEB, joined_modules, json_text, make_page

HEAD = {"kind": "live", "title": "a & b <i>"}


class Elements(HTMLParser):
    """The elements of a page that a browser finds: pairs of attributes and text, by their tags."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.found, self.open = {}, []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.found.setdefault(tag, []).append([dict(attributes), ""])
        if tag in ("script", "style", "title"):
            self.open.append(self.found[tag][-1])

    def handle_endtag(self, tag):
        if tag in ("script", "style", "title"):
            self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.open[-1][1] += data


def elements_of(page):
    """Return the elements of a page."""
    return Elements(page.html).found


def text_of(page, name):
    """Return the text of the script with an id."""
    (text,) = [text for attributes, text in elements_of(page)["script"] if attributes.get("id") == name]
    return text


@pytest.fixture(scope="module")
def page():
    return explore(word_translator(), "the dog is tired")


def test_the_policy_allows_the_style_sheet_and_the_module_of_the_page_and_nothing_else(page):
    found = elements_of(page)
    (policy,) = [a["content"] for a, _ in found["meta"] if a.get("http-equiv") == "Content-Security-Policy"]
    (module,) = [text for attributes, text in found["script"] if attributes.get("type") == "module"]
    ((_, style),) = found["style"]
    directives = dict(each.split(" ", 1) for each in policy.split("; "))
    for name, text in (("script-src", module), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert directives.pop(name) == f"'sha256-{digest}'"
    assert directives == {
        "default-src": "'none'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_page_names_no_other_file(page):
    found = elements_of(page)
    named = [a[n] for tags in found.values() for a, _ in tags for n in ("src", "href") if n in a]
    assert [name for name in named if not name.startswith(("data:", "#"))] == []
    ((_, style),) = found["style"]
    assert re.findall(r"url\((?!['\"]?data:)|@import", style) == []
    assert "style" not in {
        name for tags in found.values() for a, _ in tags for name in a
    }  # blocked by the policy


def test_no_text_ends_an_element():
    hostile = "</script><script>alert(1)</script><!--<script>"
    page = make_page({**HEAD, "title": hostile, "source_words": [hostile]}, [np.ones(2)])
    found = elements_of(page)
    assert json.loads(text_of(page, "head"))["source_words"] == [hostile]
    assert [attributes.get("id") for attributes, _ in found["script"]] == [
        "messages",
        "head",
        "weights",
        None,
    ]
    assert found["title"][0][1] == hostile


def test_names_and_texts_that_are_not_utf_8(tmp_path):
    """A name of a file, or bytes of a text, may contain what UTF-8 cannot encode."""
    page = make_page({"kind": "live", "title": title_of("\udce9<"), "source": "a\udce9 é"}, [])
    page.save(tmp_path / "page.html")
    assert json.loads(text_of(page, "head"))["source"] == "a\udce9 é"
    assert elements_of(page)["title"][0][1] == "\\udce9< · npformer explorer"
    with pytest.raises(ValueError, match="not JSON compliant"):  # JSON has no infinity
        json_text({"mask_fill": float("-inf")})


def test_the_weights_are_the_arrays_one_after_the_other_as_little_endian_float32():
    arrays = [np.arange(6.0).reshape(2, 3), np.array([0.1], ">f8")]
    weights = np.frombuffer(base64.b64decode(text_of(make_page(HEAD, arrays), "weights")), "<f4")
    assert weights.tolist() == [0, 1, 2, 3, 4, 5, np.float32(0.1)]


def test_the_page_is_saved_whole(page, tmp_path):
    assert page.save(tmp_path / "page.html").read_bytes() == page.html.encode()
    with pytest.raises(UserError, match=r"missing/page.html cannot be written .*: give another file"):
        page.save(tmp_path / "missing/page.html")


# The modules


@pytest.fixture
def web(tmp_path):
    """Return a function that writes modules and joins them."""

    def joined(**modules):
        for name, text in modules.items():
            place = tmp_path / f"{name.replace('__', '/')}.js"
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        return joined_modules(tmp_path)

    return joined


A = 'import { b } from "./b.js";\nexport const a = b + 1;\n'
B = 'import {\n  c,\n  d,\n} from "./c.js";\nexport class b {}\n'
C = "export function c() {}\nexport async function d() {}\nfunction own() {}\n"


def test_each_module_stands_after_those_that_it_imports(web):
    text = web(main='import { a } from "./a.js";\nimport { c } from "./c.js";\nc(a);\n', a=A, b=B, c=C)
    lines = [line for line in text.splitlines() if line]
    assert lines == [
        *("// c.js", "function c() {}", "async function d() {}", "function own() {}"),
        *("// b.js", "class b {}"),
        *("// a.js", "const a = b + 1;"),
        *("// main.js", "c(a);"),
    ]


def test_the_page_stays_small():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in WEB.rglob("*.js"))
    assert lines <= 12_500


def test_a_folder_of_the_page_imports_only_from_the_folders_before_it():
    folders = ["words", "engine", "arithmetic", "state", "drawing", "views", "main.js"]
    for path in WEB.rglob("*.js"):
        own = folders.index(path.relative_to(WEB).parts[0])
        for place in re.findall(r'(?m)^(?:import|\}).* from "([^"]+)";$', path.read_text(encoding="utf-8")):
            other = (path.parent / place).resolve().relative_to(WEB).parts[0]
            assert folders.index(other) <= own, f"{path.name} imports {place}"


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ('import a from "./a.js";', "main.js has the line .*: use the plain form"),
        ('import { a as x } from "./a.js";', "main.js has the line .*: use the plain form"),
        ("import { a } from './a.js';", "main.js has the line .*: use the plain form"),
        ('import "./a.js";', "main.js has the line .*: use the plain form"),
        ("export { own };", "main.js has the line .*: use the plain form"),
        ("export default 3;", "main.js has the line .*: use the plain form"),
        ('import { own } from "./c.js";', "main.js imports own, which c.js does not export"),
        ('import { a } from "./a.js";\nconst own = 1;', "c.js and main.js both define own"),
        ('import { e } from "./e.js";', "modules import each other: main.js -> e.js -> main.js"),
    ],
)
def test_what_cannot_be_joined_is_an_error(main, message, web):
    with pytest.raises(ValueError, match=message):
        web(main=main, a=A, b=B, c=C, e='import { f } from "./main.js";\nexport const e = 1;\n')


def test_the_page_contains_every_module():
    text = joined_modules()
    assert sorted(re.findall(r"(?m)^// ([\w/-]+\.js)$", text)) == sorted(
        path.relative_to(WEB).as_posix() for path in WEB.rglob("*.js")
    )
    assert re.findall(r"(?m)^(?:import|export)\b.*", text) == []
    assert re.findall(r"(?i)</script|<!--|<script", text) == []  # no source ends its element
    assert "</" not in (WEB / "style.css").read_text(encoding="utf-8")


def test_a_built_package_contains_the_files_of_the_page_and_the_lessons(tmp_path):
    """build_py, which collects the files of a wheel, takes every file of web/ and every lesson with it."""
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    built = tmp_path / "npformer/explorer/web"
    wanted, found = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (WEB, built)
    )
    assert found == wanted
    # the settings of the tools that check the page stay in the checkout
    names = {path.name for path in built.parent.iterdir() if path.suffix != ".py"}
    assert names - {"__pycache__"} == {"steps", "web"}
    code = "from npformer.learn.course.lesson import all_lessons; print(*[x.path for x in all_lessons()])"
    lessons = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {Path(path).parent for path in lessons} == {tmp_path / "npformer/learn/course/lessons"}
    assert {Path(path).name: Path(path).read_bytes() for path in lessons} == {
        path.name: path.read_bytes() for path in (ROOT / "lessons").glob("[0-9]*.py")
    }


def test_a_notebook_shows_the_page_in_a_frame(page):
    frame = Elements(page._repr_html_()).found["iframe"][0][0]
    assert frame["srcdoc"] == page.html
    assert frame["title"] == page.title == unescape(page.title)

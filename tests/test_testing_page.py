"""The page about the tests names tests that exist."""

import ast
import functools
import re

import pytest
from paths import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| ([\w./, -]+) \| (tests/\S+::.+) \|$", PAGE, re.MULTILINE)


@functools.cache
def functions_of(file):
    """Return the names of all functions of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("promise", "pages", "tests"), ROWS, ids=[row[0][:50] for row in ROWS])
def test_a_promise_stands_on_a_page_and_has_its_tests(promise, pages, tests):
    for name in pages.split(", "):
        assert any((folder / name).is_file() for folder in (ROOT, ROOT / "docs"))
    file = ""
    for test in tests.split(", "):
        path, _, name = test.partition("::")
        file = path or file
        assert name in functions_of(file), test


def test_the_table_of_promises_is_read():
    assert len(ROWS) == PAGE.count("| tests/") > 20

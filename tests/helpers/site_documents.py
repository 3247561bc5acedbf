"""Documents of the lessons without their outputs, and pages of some documents, for the tests of the site."""

import tempfile
from pathlib import Path

import pytest
from course import LESSONS

from npformer.language import ENGLISH
from npformer.learn.course.execute import Outcome
from npformer.learn.site import build, lesson_pages
from npformer.learn.site.markdown import templates


def lesson_documents():
    """Return a document for each lesson: its prose, and its code without outputs."""

    def cells(lesson, what):
        return [(cell, None if cell.kind == "prose" else Outcome()) for cell in lesson.cells]

    files = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lesson_pages, "run_without_error", cells)
        patch.setattr(lesson_pages, "map_of", lambda lesson: None)
        for lesson in LESSONS:
            files |= lesson_pages.lesson_pages([lesson], has_explorer=False)
    return files


def write_pages(files, folder):
    """Let Sphinx write the pages of some documents into a folder, and return its warnings."""
    for name in build.NEEDED:
        pytest.importorskip(name)
    names = [path.removesuffix(".md") for path in files if path.endswith(".md")]
    home = f"# Home\n\n{templates().globals['listed'](names)}\n"
    documents = {ENGLISH: {"index.md": home.encode()} | files}
    with tempfile.TemporaryDirectory() as source:
        return build.write_pages(documents, ENGLISH, folder, Path(source, "documents"))

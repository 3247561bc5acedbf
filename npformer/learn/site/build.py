"""Build the site: make all documents, let Sphinx turn them into pages, and write the folder."""

import importlib.util
import io
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from npformer.errors import UserError
from npformer.language import ENGLISH, EXPLORER, LANGUAGES, NAMES, catalog
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.site.course_pages import course_pages, glossary_page, home_page
from npformer.learn.site.explorer_page import explorer_files
from npformer.learn.site.folder import SiteFolder
from npformer.learn.site.gallery_pages import gallery_pages
from npformer.learn.site.guide_pages import guide_pages
from npformer.learn.site.jobs import Job, run_jobs
from npformer.learn.site.lesson_pages import lesson_files, shares_a_run
from npformer.learn.site.markdown import Files
from npformer.learn.site.reference_pages import reference_pages
from npformer.learn.site.store import forget_older_than, stored
from npformer.learn.site.translated_pages import translated_pages
from npformer.learn.site.zoo_pages import zoo_pages

Report = Callable[[int, int], None]
NO_OTHERS: Mapping[str, set[str]] = {}
NEEDED = ("sphinx", "myst_parser", "furo")
HERE = Path(__file__).parent
TRANSLATIONS = [language for language in LANGUAGES.values() if language != ENGLISH]
SETTINGS = {
    "project": "npformer",
    "extensions": [
        "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode",
        "npformer.learn.site.sphinx_extension", "npformer.learn.site.search_index",
    ],
    "html_theme": "furo",
    "html_title": "npformer",
    "html_show_copyright": False,
    "html_static_path": [str(HERE / "web")],
    "templates_path": [str(HERE / "templates")],
    "html_css_files": ["npformer.css"],
    "html_js_files": ["npformer.js"],
    "smartquotes": False,
    "html_extra_path": ["extra"],
    "html_copy_source": False,
    "html_math_renderer": "mathml",
    "myst_enable_extensions": ["dollarmath"],
    "myst_disable_syntax": ["html_block", "html_inline"],
    "myst_heading_anchors": 3,
    "default_role": "py:obj",
    "autodoc_member_order": "bysource",
    "autodoc_default_options": {"members": True, "special-members": "__call__"},
    "autodoc_preserve_defaults": True,
    "napoleon_use_ivar": True,
    "viewcode_follow_imported_members": True,
    "maximum_signature_line_length": 76,
    "python_use_unqualified_type_names": True,
}  # fmt: skip


class Built(NamedTuple):
    """The number of pages that were built, the size of all files in bytes, and what Sphinx warned of."""

    n_pages: int
    n_bytes: int
    warnings: list[str]


@dataclass(frozen=True)
class SitePlan:
    """The contents of a site.

    Args:
        lessons: The lessons, in order.
        model: The model of the explorer, as for `npformer.load`. By default, the translator of the tour is
            trained for a whole site, and a part of the site has no explorer.
        workers: The number of processes.
    """

    lessons: Sequence[Lesson]
    model: str | None = None
    workers: int = 1

    @property
    def is_whole(self) -> bool:
        """True if the site has all lessons."""
        return len(self.lessons) == len(all_lessons())

    @property
    def has_explorer(self) -> bool:
        """True if the site has the page of the explorer."""
        return self.is_whole or self.model is not None


def build_site(out: Path, plan: SitePlan, report: Report) -> Built:
    """Build a site in a folder.

    Args:
        out: The folder, which is new, empty, or an earlier site.
        plan: What the site contains.
        report: report(done, total) is called after each job.

    Raises:
        UserError: If Sphinx is missing, if the folder has other files or cannot be written, or if a cell of a
            lesson fails.
    """
    folder, start = SiteFolder(out.absolute()), time.time()
    folder.check()
    if not all(map(importlib.util.find_spec, NEEDED)):
        raise UserError(
            "the site is built with Sphinx, MyST and furo: install them with pip install 'npformer[site]'"
        )
    documents = make_documents(plan, report)
    files: Files = {}
    warnings: list[str] = []
    for language, made in documents.items():
        others = {other: _names(each) for other, each in documents.items() if other != language}
        pages, faults = pages_of(made, plan, language, others)
        files |= {f"{folder_of(language)}{path}": data for path, data in pages.items()}
        warnings += faults
    folder.write(files)
    if plan.is_whole:
        forget_older_than(start)
    n_pages = sum(path.endswith(".html") for path in files)
    return Built(n_pages, sum(map(len, files.values())), warnings)


def make_documents(plan: SitePlan, report: Report) -> dict[str, Files]:
    """Return all documents of the site with their pictures, by their language, English first."""
    made = _run(plan, report)
    files = made.pop(ENGLISH)
    files |= course_pages(plan.lessons) | glossary_page(plan.lessons)
    files |= guide_pages(plan.lessons, _names(files))
    english = {ENGLISH: files | home_page(plan.lessons, _names(files))}
    return english | {each: translated_pages(lessons, each, _names(files)) for each, lessons in made.items()}


def _names(files: Files) -> set[str]:
    """Return the names of the documents among some files."""
    return {path.removesuffix(".md") for path in files if path.endswith(".md")}


def _run(plan: SitePlan, report: Report) -> dict[str, Files]:
    """Make the documents that take long, in several processes, or take them from the store.

    Returns:
        The documents of English, and of each language into which a lesson is translated.
    """
    shared = [lesson for lesson in plan.lessons if shares_a_run(lesson)]
    groups = [shared] * bool(shared) + [[each] for each in plan.lessons if each not in shared]
    # the jobs that take longest begin first
    jobs: list[Job[Files]] = []
    if plan.has_explorer:
        jobs.append(partial(_explorer, plan.model, plan.lessons))
    if plan.is_whole:
        jobs += [partial(stored, make.__name__, make) for make in (gallery_pages, zoo_pages)]
        jobs.append(reference_pages)
    jobs += [partial(_lessons, group, plan.has_explorer) for group in groups]
    languages = [ENGLISH] * len(jobs)
    for lesson in [replace(lesson, language=each) for each in TRANSLATIONS for lesson in plan.lessons]:
        if lesson.translations:
            jobs.append(partial(_lessons, [lesson], plan.has_explorer))
            languages.append(lesson.language)
    ended = 0

    def done() -> None:
        nonlocal ended
        ended += 1
        report(ended, len(jobs))

    report(0, len(jobs))
    with tempfile.TemporaryDirectory(prefix="npformer-site-", ignore_cleanup_errors=True) as folder:
        made = run_jobs(jobs, Path(folder), plan.workers, done)
    files: dict[str, Files] = {}
    for language, each in zip(languages, made, strict=True):
        files.setdefault(language, {}).update(each)
    return files


def _explorer(model: str | None, lessons: Sequence[Lesson]) -> Files:
    """Return the explorer of a model, or of the tour's, which is trained first, and its introduction."""
    make = partial(explorer_files, model, lessons)
    words = [catalog(language, EXPLORER) for language in TRANSLATIONS]
    return make() if model else stored(f"explorer {[lesson.name for lesson in lessons]} {words}", make)


def _lessons(group: Sequence[Lesson], has_explorer: bool) -> Files:
    """Return the documents of lessons that are run one after the other."""

    def make() -> Files:
        made = [lesson_files(lesson, has_explorer=has_explorer) for lesson in group]
        return {path: data for files in made for path, data in files.items()}

    texts = [lesson.path.read_text(encoding="utf-8") for lesson in group]
    translations = [lesson.translations for lesson in group]
    return stored(f"lessons {has_explorer} {texts} {translations}", make)


def folder_of(language: str) -> str:
    """Return the folder of the pages in a language, such as "zh/", or "" for English."""
    return "" if language == ENGLISH else f"{next(k for k, v in LANGUAGES.items() if v == language)}/"


def pages_of(
    documents: Files, plan: SitePlan, language: str = ENGLISH, others: Mapping[str, set[str]] = NO_OTHERS
) -> tuple[Files, list[str]]:
    """Let Sphinx turn the documents of a language into pages.

    Args:
        documents: The documents and their pictures.
        plan: What the site contains.
        language: The language.
        others: The names of the documents in each other language.

    Returns:
        All files, and the warnings of Sphinx.
    """
    from sphinx.application import Sphinx
    from sphinx.locale import translators
    from sphinx.util.docutils import docutils_namespace

    with tempfile.TemporaryDirectory(prefix="npformer-site-", ignore_cleanup_errors=True) as temporary:
        source, out = Path(temporary, "source"), Path(temporary, "out")
        Path(source, "extra").mkdir(parents=True)
        for path, data in documents.items():
            target = source / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        warnings = io.StringIO()
        settings = SETTINGS | {
            "language": language,
            "npformer_lessons": [lesson.name for lesson in plan.lessons],
            "npformer_others": {
                folder_of(other): (NAMES[other], sorted(names)) for other, names in others.items()
            },
        }
        doctrees = Path(temporary, "doctrees")
        translators.clear()  # Sphinx would add its sentences in this language to those of an earlier site
        with docutils_namespace():  # so that a second site can be built in this process
            app = Sphinx(source, None, out, doctrees, "html", settings, status=None, warning=warnings)
            app.build(force_all=True)
        made = [path for path in sorted(out.rglob("*")) if path.is_file() and path.name != ".buildinfo"]
        files = {path.relative_to(out).as_posix(): path.read_bytes() for path in made}
    shown = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue()).replace(f"{source}/", "")  # without colours
    return files, shown.splitlines()


def default_workers() -> int:
    """Return the number of processes: one for each processor that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

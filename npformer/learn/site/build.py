"""Build the site: make all documents, let Sphinx turn them into pages, and write the folder."""

import contextlib
import importlib.util
import io
import os
import re
import shutil
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from npformer.errors import UserError
from npformer.language import (
    ENGLISH,
    EXPLORER,
    INTERFACE,
    LANGUAGES,
    NAMES,
    catalog,
    path_of,
    speaking,
)
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.site.course_pages import course_pages, overview_pages, zoo_pages
from npformer.learn.site.explorer_page import explorer_files
from npformer.learn.site.folder import check_folder, write_folder
from npformer.learn.site.gallery_pages import gallery_pages
from npformer.learn.site.guide_pages import guide_pages
from npformer.learn.site.lesson_links import document_of
from npformer.learn.site.lesson_pages import lesson_files, shares_a_run
from npformer.learn.site.markdown import Files
from npformer.learn.site.reference_pages import reference_pages
from npformer.learn.site.store import LARGEST, Job, memory, stored

Report = Callable[[int, int], None]
NO_OTHERS: Mapping[str, set[str]] = {}
NEEDED = ("sphinx", "myst_parser", "furo", "joblib")
HERE = Path(__file__).parent
# English stands in the root of the site, and each other language in a folder
FOLDERS = {language: "" if language == ENGLISH else f"{name}/" for name, language in LANGUAGES.items()}
TRANSLATIONS = [language for language in LANGUAGES.values() if language != ENGLISH]


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
        workers: The number of processes, or -1 for one on each processor.
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
    out = out.absolute()
    check_folder(out)
    if not all(map(importlib.util.find_spec, NEEDED)):
        raise UserError(
            "the site is built with Sphinx, MyST, furo and joblib: install them with pip install "
            "'npformer[site]'"
        )
    warnings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="npformer-site-", ignore_cleanup_errors=True) as folder:
        documents, pages = make_documents(plan, Path(folder), report), Path(folder, "pages")
        memory().reduce_size(LARGEST)
        for language, made in documents.items():
            others = {other: _names(each) for other, each in documents.items() if other != language}
            warnings += write_pages(made, pages / FOLDERS[language], language, others, within=Path(folder))
        write_folder(out, pages)
        files = [path for path in pages.rglob("*") if path.is_file()]
        n_bytes = sum(path.stat().st_size for path in files)
    return Built(sum(path.suffix == ".html" for path in files), n_bytes, warnings)


def make_documents(plan: SitePlan, folder: Path, report: Report) -> dict[str, Files]:
    """Return all documents of the site with their pictures, by their language, English first.

    Args:
        plan: What the site contains.
        folder: A temporary folder, in which the lessons run.
        report: report(done, total) is called after each job.
    """
    jobs, documents = _jobs(plan), dict[str, Files]()
    for job, files in zip(jobs, made_in_parallel(jobs, folder, plan.workers, report), strict=True):
        documents.setdefault(job.language, {}).update(files)
    for language, files in documents.items():
        with speaking(language):
            lessons = [each for each in all_lessons() if f"{document_of(each)}.md" in files]
            if language == ENGLISH:
                files |= course_pages(lessons)
            files |= guide_pages()
            files |= overview_pages(lessons, _names(files), has_explorer=plan.has_explorer)
    return documents


def _names(files: Files) -> set[str]:
    """Return the names of the documents among some files."""
    return {path.removesuffix(".md") for path in files if path.endswith(".md")}


def _jobs(plan: SitePlan) -> list[Job]:
    """Return the jobs that take long, of which the longest begin first."""
    jobs = []
    if plan.has_explorer:
        names = [lesson.name for lesson in plan.lessons]
        words = [catalog(language, EXPLORER) for language in TRANSLATIONS]
        key = "" if plan.model else f"explorer {names} {words}"
        jobs.append(Job(ENGLISH, partial(explorer_files, plan.model, plan.lessons), key))
    if plan.is_whole:
        makers = (gallery_pages, zoo_pages, reference_pages)
        jobs += [Job(ENGLISH, make, make.__name__) for make in makers]
    shared = [lesson for lesson in plan.lessons if shares_a_run(lesson)]
    translated = [replace(lesson, language=each) for each in TRANSLATIONS for lesson in plan.lessons]
    alone = [lesson for lesson in plan.lessons if lesson not in shared]
    alone += [lesson for lesson in translated if lesson.translations]
    for group in [shared] * bool(shared) + [[lesson] for lesson in alone]:
        contents = [(lesson.path.read_text(encoding="utf-8"), lesson.translations) for lesson in group]
        make = partial(_lessons, group, plan.has_explorer)
        jobs.append(Job(group[0].language, make, f"lessons {plan.has_explorer} {contents}"))
    return jobs


def _lessons(group: Sequence[Lesson], has_explorer: bool) -> Files:
    """Return the documents of lessons that are run one after the other."""
    made = [lesson_files(lesson, has_explorer=has_explorer) for lesson in group]
    return {path: data for files in made for path, data in files.items()}


def made_in_parallel(jobs: Sequence[Job], folder: Path, workers: int, report: Report) -> list[Files]:
    """Run jobs in processes of their own, and return their results in order.

    Args:
        jobs: The jobs.
        folder: Their working folder, a temporary one, which goes if this process is killed.
        workers: The number of processes, or -1 for one on each processor.
        report: report(done, total) is called after each job.

    Raises:
        UserError: If a job raises it, or if the system ended a process.
    """
    from joblib import Parallel, delayed

    made = []
    report(0, len(jobs))
    parallel = Parallel(
        workers, batch_size=1, return_as="generator", initializer=_watch, initargs=(os.getpid(), folder)
    )
    try:
        for each in parallel(delayed(_made)(job, folder) for job in jobs):
            made.append(each)
            report(len(made), len(jobs))
    except BrokenProcessPool:
        raise UserError(
            "the system ended a process that ran lessons, perhaps for lack of memory: close other programs, "
            "or build a part of the site with --only"
        ) from None
    return made


def _watch(parent: int, folder: Path) -> None:
    """Let this process end, and remove the temporary folder, once the process that started it was killed."""

    def end() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _made(job: Job, folder: Path) -> Files:
    """Run a job in a temporary folder and on one thread, so that its numbers are the same everywhere."""
    with contextlib.chdir(folder), threadpool_limits(1, user_api="blas"):
        return stored(job.key, job.make) if job.key else job.make()


def write_pages(
    documents: Files,
    out: Path,
    language: str = ENGLISH,
    others: Mapping[str, set[str]] = NO_OTHERS,
    within: Path | None = None,
) -> list[str]:
    """Let Sphinx turn the documents of a language into pages, and return its warnings.

    Args:
        documents: The documents and their pictures.
        out: The folder of the pages.
        language: The language.
        others: The names of the documents in each other language.
        within: The folder of the temporary files, or None for that of the system.
    """
    from sphinx.application import Sphinx
    from sphinx.locale import translators
    from sphinx.util.docutils import docutils_namespace

    with tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True) as temporary:
        source, doctrees = Path(temporary, "source"), Path(temporary, "doctrees")
        Path(source, "extra").mkdir(parents=True)
        for path, data in documents.items():
            target = source / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if language != ENGLISH:  # Sphinx looks there for the words of its frame
            catalogs = source / "locale" / language / "LC_MESSAGES"
            catalogs.mkdir(parents=True)
            shutil.copy(path_of(language, INTERFACE), catalogs / "sphinx.po")
        warnings, root = io.StringIO(), "" if language == ENGLISH else "../"
        settings = tomllib.loads((HERE / "sphinx.toml").read_text(encoding="utf-8")) | {
            "language": language,
            "html_static_path": [str(HERE / "web")],
            "templates_path": [str(HERE / "templates")],
            "html_context": {
                "others": {
                    f"{root}{FOLDERS[other]}": (NAMES[other], sorted(names))
                    for other, names in others.items()
                }
            },
        }
        translators.clear()  # Sphinx would add its sentences in this language to those of an earlier site
        with docutils_namespace():  # so that a second site can be built in this process
            app = Sphinx(source, None, out, doctrees, "html", settings, status=None, warning=warnings)
            app.build(force_all=True)
    shown = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue()).replace(f"{source}/", "")  # without colours
    return shown.splitlines()

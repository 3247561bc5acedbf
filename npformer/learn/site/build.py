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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from npformer.errors import UserError
from npformer.language import ENGLISH, EXPLORER, INTERFACE, LANGUAGES, NAMES, catalog, path_of, speaking
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.site.course_pages import course_pages, explorer_page, overview_pages, zoo_pages
from npformer.learn.site.folder import check_folder, write_folder
from npformer.learn.site.gallery_pages import gallery_pages
from npformer.learn.site.guide_pages import guide_pages
from npformer.learn.site.lesson_links import EXPLORER_PAGE, document_of
from npformer.learn.site.lesson_pages import lesson_pages, shares_a_run
from npformer.learn.site.markdown import Files
from npformer.learn.site.reference_pages import reference_pages
from npformer.learn.site.store import LARGEST, Job, memory, stored

Report = Callable[[int, int], None]
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


def build_site(
    out: Path,
    lessons: Sequence[Lesson],
    model: str | None = None,
    *,
    workers: int = 1,
    report: Report = lambda done, total: None,
) -> Built:
    """Build a site in a folder.

    Args:
        out: The folder, which is new, empty, or an earlier site.
        lessons: The lessons, in order.
        model: The model of the explorer, as for `npformer.load`. By default, the translator of the tour is
            trained for a whole site, and a part of the site has no explorer.
        workers: The number of processes, or -1 for one on each processor.
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
    with tempfile.TemporaryDirectory(prefix="npformer-site-", ignore_cleanup_errors=True) as folder:
        jobs, pages = make_jobs(lessons, model), Path(folder, "pages")
        documents = make_documents(jobs, made_in_parallel(jobs, Path(folder), workers, report))
        memory().reduce_size(LARGEST)
        warnings = list[str]()
        for language in documents:
            warnings += write_pages(documents, language, pages, Path(folder, language))
        write_folder(out, pages)
        files = [path for path in pages.rglob("*") if path.is_file()]
        n_bytes = sum(path.stat().st_size for path in files)
    return Built(sum(path.suffix == ".html" for path in files), n_bytes, warnings)


def make_documents(jobs: Sequence[Job], results: Sequence[Files]) -> dict[str, Files]:
    """Return all documents of the site with their pictures, by their language, English first."""
    documents = dict[str, Files]()
    for job, files in zip(jobs, results, strict=True):
        documents.setdefault(job.language, {}).update(files)
    has_explorer = f"extra/{EXPLORER_PAGE}" in documents[ENGLISH]
    for language, files in documents.items():
        with speaking(language):
            lessons = [each for each in all_lessons() if f"{document_of(each)}.md" in files]
            if language == ENGLISH:
                files |= course_pages(lessons)
            files |= guide_pages()
            files |= overview_pages(lessons, _names(files), has_explorer=has_explorer)
    return documents


def _names(files: Files) -> set[str]:
    """Return the names of the documents among some files."""
    return {path.removesuffix(".md") for path in files if path.endswith(".md")}


def make_jobs(lessons: Sequence[Lesson], model: str | None) -> list[Job]:
    """Return the jobs that take long, of which the longest begin first. For the arguments see build_site."""
    jobs, is_whole = [], len(lessons) == len(all_lessons())
    has_explorer = is_whole or model is not None
    if has_explorer:
        names = [lesson.name for lesson in lessons]
        words = [catalog(language, EXPLORER) for language in TRANSLATIONS]
        key = "" if model else f"explorer {names} {words}"
        jobs.append(Job(ENGLISH, partial(explorer_page, model, lessons), key))
    if is_whole:
        jobs += [Job(ENGLISH, make, make.__name__) for make in (gallery_pages, zoo_pages, reference_pages)]
    shared = [lesson for lesson in lessons if shares_a_run(lesson)]
    translated = [replace(lesson, language=each) for each in TRANSLATIONS for lesson in lessons]
    alone = [lesson for lesson in lessons if lesson not in shared]
    alone += [lesson for lesson in translated if lesson.translations]
    for group in [shared] * bool(shared) + [[lesson] for lesson in alone]:
        contents = [(lesson.path.read_text(encoding="utf-8"), lesson.translations) for lesson in group]
        make = partial(lesson_pages, group, has_explorer=has_explorer)
        jobs.append(Job(group[0].language, make, f"lessons {has_explorer} {contents}"))
    return jobs


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


def write_pages(documents: Mapping[str, Files], language: str, pages: Path, source: Path) -> list[str]:
    """Let Sphinx turn the documents of a language into pages, and return its warnings.

    Args:
        documents: The documents of each language, and their pictures.
        language: The language.
        pages: The folder of the pages in English.
        source: A new folder for the documents.
    """
    from sphinx.application import Sphinx
    from sphinx.locale import translators
    from sphinx.util.docutils import docutils_namespace

    files = dict(documents[language])
    if language != ENGLISH:  # Sphinx looks there for the words of its frame
        files[f"locale/{language}/LC_MESSAGES/sphinx.po"] = path_of(language, INTERFACE).read_bytes()
    Path(source, "extra").mkdir(parents=True)
    for path, data in files.items():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    warnings, root = io.StringIO(), "" if language == ENGLISH else "../"
    others = {
        f"{root}{FOLDERS[other]}": (NAMES[other], sorted(_names(made)))
        for other, made in documents.items()
        if other != language
    }
    settings = tomllib.loads((HERE / "sphinx.toml").read_text(encoding="utf-8")) | {
        "language": language,
        "html_context": {"others": others},
        "html_static_path": [str(HERE / "web")],
        "templates_path": [str(HERE / "templates")],
    }
    out, doctrees = pages / FOLDERS[language], source / "doctrees"
    translators.clear()  # Sphinx would add its sentences in this language to those of an earlier site
    with docutils_namespace():  # so that a second site can be built in this process
        app = Sphinx(source, None, out, doctrees, "html", settings, status=None, warning=warnings)
        app.build(force_all=True)
    # no page leads to the list of modules, which has some without a page, and lists outside of items
    Path(out, "_modules", "index.html").unlink(missing_ok=True)
    shown = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue()).replace(f"{source}/", "")  # without colours
    return shown.splitlines()

"""Build the site: make all pages, put the frame around them, check every link, and write the folder."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.site.contents_pages import contents_page, exercise_page
from npformer.learn.site.explorer_page import introduction, live_page, tour_model
from npformer.learn.site.folder import SiteFolder
from npformer.learn.site.frame import SCRIPT, SEARCH, STYLE, WEB, Frame, entrances_of
from npformer.learn.site.gallery_pages import gallery_pages
from npformer.learn.site.glossary_page import glossary_page
from npformer.learn.site.guide_pages import READ_FIRST, START, guide_pages
from npformer.learn.site.jobs import Job, run_jobs
from npformer.learn.site.lesson_pages import lesson_page, shares_a_run
from npformer.learn.site.links import Targets
from npformer.learn.site.page import Page
from npformer.learn.site.reference_pages import reference_pages
from npformer.learn.site.search_index import search_page
from npformer.learn.site.start_page import start_page
from npformer.learn.site.zoo_pages import zoo_pages
from npformer.pretrained import load

Report = Callable[[int, int], None]


class Built(NamedTuple):
    """The number of pages that were built, and the size of all files in bytes."""

    n_pages: int
    n_bytes: int


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
        UserError: If the folder has other files or cannot be written, if a cell of a lesson fails, or if a
            link leads nowhere.
    """
    folder = SiteFolder(out.absolute())
    folder.check()
    pages = make_pages(plan, report)
    files = finished_files(pages, plan)
    folder.write(files)
    return Built(len(pages), sum(map(len, files.values())))


def make_pages(plan: SitePlan, report: Report) -> list[Page]:
    """Return all pages in the order of the site, without their frames."""
    live, made = _run(plan, report)
    pages = [contents_page(plan.lessons), exercise_page(plan.lessons), *made]
    if live is not None:
        pages.append(introduction(live, plan.lessons))
    pages.append(glossary_page(plan.lessons))
    pages += guide_pages(plan.lessons, {START, *(page.path for page in pages)})
    has_read_first = any(page.path == READ_FIRST for page in pages)
    pages = [start_page(entrances_of(pages), plan.lessons, has_read_first=has_read_first), *pages]
    return [*pages, search_page(pages)]


def _run(plan: SitePlan, report: Report) -> tuple[bytes | None, list[Page]]:
    """Make the pages that take long, in several processes.

    Returns:
        (the page of the explorer, or None if the site has none; the pages of the lessons and, in a whole
        site, those of the gallery, the bug zoo and the reference, sorted by path).
    """
    shared = [lesson for lesson in plan.lessons if shares_a_run(lesson)]
    groups = [shared] * bool(shared) + [[each] for each in plan.lessons if each not in shared]
    # the jobs that take longest begin first
    jobs: list[Job[bytes | list[Page]]] = []
    if plan.has_explorer:
        jobs.append(partial(_explorer, plan.model, plan.lessons))
    if plan.is_whole:
        jobs += [partial(_made, make) for make in (gallery_pages, zoo_pages, reference_pages)]
    jobs += [partial(_lessons, group, plan.lessons, plan.has_explorer) for group in groups]
    ended = 0

    def done() -> None:
        nonlocal ended
        ended += 1
        report(ended, len(jobs))

    report(0, len(jobs))
    with tempfile.TemporaryDirectory(prefix="npformer-site-", ignore_cleanup_errors=True) as folder:
        results = run_jobs(jobs, Path(folder), plan.workers, done)
    live = [result for result in results if isinstance(result, bytes)]
    pages = [page for result in results if not isinstance(result, bytes) for page in result]
    return (live[0] if live else None), sorted(pages, key=lambda page: page.path)


def _made(make: Callable[[], Iterator[Page]]) -> list[Page]:
    """Return the pages of the gallery, the bug zoo or the reference."""
    return list(make())


def _explorer(model: str | None, lessons: Sequence[Lesson]) -> bytes:
    """Return the page of the explorer of a model, or of the tour's, which is trained first."""
    return live_page(tour_model(Path("tour")) if model is None else load(model), lessons)


def _lessons(group: Sequence[Lesson], lessons: Sequence[Lesson], has_explorer: bool) -> list[Page]:
    """Return the pages of lessons that are run one after the other."""
    return [lesson_page(lesson, lessons, has_explorer=has_explorer) for lesson in group]


def finished_files(pages: Sequence[Page], plan: SitePlan) -> dict[str, bytes]:
    """Return every file of the site by its path.

    Raises:
        UserError: If a link leads nowhere. In a part of the site, such links become text.
    """
    frame = Frame(entrances_of(pages), plan.lessons, any(page.path == SEARCH for page in pages))
    texts = {page.path: frame.around(page) for page in pages}
    assets = {path: data for page in pages for path, data in page.assets.items()}
    assets |= {name: (WEB / name).read_bytes() for name in (STYLE, SCRIPT)}
    if not plan.is_whole:
        texts = Targets(texts, assets).without_dead_links()
    Targets(texts, assets).check()
    return assets | {path: html.encode("utf-8") for path, html in texts.items()}


def default_workers() -> int:
    """Return the number of processes: one for each processor that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

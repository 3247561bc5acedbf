"""npformer site: write the course, the explorer, the guides and the glossary as pages that work offline."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npformer.cli.load_model import MODEL
from npformer.cli.options import add
from npformer.cli.output import console, print_line
from npformer.errors import quantity
from npformer.learn.console import counting_progress
from npformer.learn.course.lesson import Lesson, all_lessons, find_chapter
from npformer.learn.site.build import Report, build_site
from npformer.pretrained import load

EPILOG = """\
Examples: npformer site pages
          npformer site draft --only 5 6.1
          npformer site pages --model runs/en-fr"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "out", "the folder to write to: a new one, or that of an earlier site", metavar="OUT")
    add(
        parser,
        "--only LESSON...",
        "a part of the site: these lessons or chapters, and the explorer only if --model is given",
    )
    add(
        parser,
        "--model MODEL",
        f"the model of the explorer: {MODEL} (default: the translator of the tour, trained anew)",
    )


def run(arguments: Namespace) -> int:
    """Build the site. Return 0."""
    start, out = time.perf_counter(), Path(arguments.out)
    model = arguments.model
    if model is not None:
        load(model)  # a model that cannot be read is refused before the lessons run
        if Path(model).exists():
            model = str(Path(model).absolute())  # the lessons run in another folder
    with _progress() as report:
        built = build_site(out, _chosen(arguments.only), model, workers=-1, report=report)
    seconds = time.perf_counter() - start
    print_line(f"wrote {built.n_pages} pages to {out} in {seconds:.0f} s ({built.n_bytes / 1e6:.1f} MB)")
    if built.warnings:
        print_line(f"Sphinx warns of {quantity(len(built.warnings), 'fault')}, first: {built.warnings[0]}")
    print_line(f"Open {out / 'index.html'} in a browser. The pages need no network.")
    return 0


def _chosen(which: list[str] | None) -> list[Lesson]:
    """Return the lessons with these numbers or names, in the order of the course; by default, all."""
    lessons = all_lessons()
    if which is None:
        return lessons
    chosen = {lesson.path for text in which for lesson in find_chapter(text)}
    return [lesson for lesson in lessons if lesson.path in chosen]


@contextmanager
def _progress() -> Iterator[Report]:
    """Show a bar with the jobs that have ended, and yield the function that moves it."""
    with counting_progress(console()) as progress:
        task = progress.add_task("running the lessons", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)

"""npformer figures: the figures of the documents, as pictures in a folder."""

import difflib
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from npformer.errors import UserError
from npformer.terminal import console, training_progress
from npformer.training.events import Event, Started, Stopped

EPILOG = """\
Examples: npformer figures
          npformer figures F29 F51 --run runs/en-fr
          npformer figures --list"""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("ids", nargs="*", metavar="ID", help="which figures, as F29 (all of them)")
    parser.add_argument("--out", default="figures", help="the folder to write to (figures)")
    parser.add_argument("--svg", action="store_true", help="write each as SVG too")
    parser.add_argument("--run", help="a trained run to draw from (default: train one below runs/figures)")
    parser.add_argument("--list", action="store_true", help="list the figures, and draw nothing")
    parser.add_argument("--json", action="store_true", help="with --list: as JSON")


def run(arguments) -> int:
    """Returns 0."""
    from npformer.figures import all_entries  # matplotlib takes a second to load: only who draws should wait

    if arguments.json and not arguments.list:
        raise UserError("--json goes with --list: give both")
    every = all_entries()
    entries = choose(every, arguments.ids)
    if arguments.list:
        print_list(entries, as_json=arguments.json)
        return 0
    draw_all(arguments, entries, every)
    return 0


def choose(entries, ids: list[str]) -> list:
    """The entries with these ids, in their order, or all. Errors: UserError for an unknown one."""
    known = {entry.id: entry for entry in entries}
    chosen = []
    for id in dict.fromkeys(ids):
        name = id if id in known else id.upper()
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise UserError(f"there is no figure {id!r}: did you mean {near[0]}? (npformer figures --list)")
        chosen.append(known[name])
    return chosen if ids else list(entries)


def print_list(entries, *, as_json: bool) -> None:
    """What there is: as a table, or as JSON."""
    if as_json:
        print(json.dumps([entry.as_json() for entry in entries], ensure_ascii=False, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("id", "figure", "source", "numbers from"):
        table.add_column(title)
    for entry in entries:
        table.add_row(entry.id, entry.title, entry.source, entry.data)
    console().print(table)


def draw_all(arguments, entries, every) -> None:
    """Draw, write, and make the gallery's page where all were drawn."""
    from npformer.figures import Studio
    from npformer.figures.gallery import make_folder, write_drawing, write_page

    start, out, folder = time.perf_counter(), console(), Path(arguments.out)
    make_folder(folder)
    captions, paths = {}, []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out) as progress, TrainingBar(out, progress) as report:
        studio = Studio(run=arguments.run, report=report)
        task = progress.add_task("drawing", total=len(entries))
        for entry in entries:
            progress.update(task, description=f"drawing {entry.id}")
            drawing = entry.draw(studio)
            captions[entry.id] = drawing.caption
            paths += write_drawing(drawing, entry, folder, svg=arguments.svg)
            progress.advance(task)
    if len(entries) == len(every):
        paths.append(write_page(every, captions, folder))
    out.print(f"wrote {len(paths)} files to {folder} in {time.perf_counter() - start:.0f} s: {_names(paths)}")


def _names(paths) -> str:
    """All names where they are few, else the first and the last."""
    names = [path.name for path in paths]
    return ", ".join(names) if len(names) <= 8 else f"{names[0]} .. {names[-1]}"


class TrainingBar:
    """While a figure has its model trained, the bar of that training in place of the bar of the figures."""

    def __init__(self, out, progress: Progress):
        self.out, self.progress = out, progress
        self.stack = ExitStack()
        self.inner: Callable[[Event], None] | None = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stack.close()

    def __call__(self, event: Event) -> None:
        """Hear what a training reports."""
        if isinstance(event, Started):
            self.progress.stop()
            self.inner = self.stack.enter_context(training_progress(self.out))
        if self.inner is not None:
            self.inner(event)
        if isinstance(event, Stopped):
            self.stack.close()
            self.inner = None
            self.progress.start()

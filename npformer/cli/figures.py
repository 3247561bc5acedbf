"""npformer figures: draw the figures of the source documents and of the course into a folder."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

from npformer.cli.options import add, excludes, needs
from npformer.cli.output import console, print_data, versioned_rows
from npformer.cli.progress import training_progress
from npformer.errors import UserError, quantity
from npformer.escaping import printable
from npformer.learn.console import counting_progress, plain_table
from npformer.pretrained import names
from npformer.storage.atomic import make_folder
from npformer.training.events import Event, Started, Stopped

if TYPE_CHECKING:
    from npformer.learn.figures.registry import Entry

EPILOG = """\
Examples: npformer figures
          npformer figures F29 F51 --model runs/en-fr
          npformer figures --list"""

OF_A_RUN = ("F07", "F29", "F30", "F51", "F52")  # the figures that show the model of a run
RULES = (
    needs("--json", "--list"),
    excludes("--list", "--out --svg --model", "it draws nothing"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[ids...]", "the figures to draw, such as F29 (default: all)", metavar="ID")
    add(parser, "--out FOLDER", "the folder to write to", default="figures")
    add(parser, "--svg", "write each figure as SVG as well")
    add(
        parser,
        "--model RUN",
        f"the folder of a run to draw {' '.join(OF_A_RUN)} from, because some of them need all of its "
        "checkpoints; a single model is not enough (default: train models in runs/figures, as for the other "
        "figures of trained models)",
    )
    add(parser, "--list", "list the figures and draw nothing")
    add(parser, "--json", "with --list: print JSON")


def run(arguments: Namespace) -> int:
    """Draw or list the figures. Return 0."""
    from npformer.learn.figures import all_entries  # matplotlib takes a second to load

    every = all_entries()
    entries = choose(every, arguments.ids)
    if arguments.list:
        _print_list(entries, as_json=arguments.json)
        return 0
    if arguments.model and not any(entry.id in OF_A_RUN for entry in entries):
        raise UserError(
            f"--model has no effect on {' '.join(arguments.ids)}, because only {' '.join(OF_A_RUN)} show the "
            "model of a run: leave it out"
        )
    _draw_all(arguments, entries, every)
    return 0


def choose(entries: "Sequence[Entry]", ids: list[str]) -> "list[Entry]":
    """Return the entries with these ids, in this order, or all entries.

    Raises:
        UserError: If an id is unknown.
    """
    from npformer.learn.figures import find_entry

    return list(dict.fromkeys(map(find_entry, ids)) or entries)


def _print_list(entries: "Sequence[Entry]", *, as_json: bool) -> None:
    """Print the figures as a table, or as JSON."""
    if as_json:
        rows = versioned_rows(each.as_json() for each in entries)
        print_data(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    from npformer.learn.figures.registry import DATA, SOURCES

    titles = ("id", "figure", "source", "numbers from")
    table = plain_table(*titles, wrapped=titles)
    for entry in entries:
        table.add_row(entry.id, entry.title, entry.source, entry.data)
    out = console()
    out.print(table)
    for title, meanings in (("source", SOURCES), ("numbers from", DATA)):
        out.print(f"{title}: {', '.join(f'{name} is {meaning}' for name, meaning in meanings.items())}")


def _draw_all(arguments: Namespace, entries: "Sequence[Entry]", every: "Sequence[Entry]") -> None:
    """Draw and write the figures, and write the page of the gallery if all were drawn."""
    from npformer.learn.figures import Studio
    from npformer.learn.figures.gallery import write_drawing, write_page, write_recipes
    from npformer.learn.figures.trainings import recipes_as_json

    start, out, folder = time.perf_counter(), console(), Path(arguments.out)
    captions, paths = {}, []
    with counting_progress(out) as progress, TrainingBar(out, progress) as report:
        studio = Studio(run=_run_folder(arguments.model), report=report)
        make_folder(folder, advice="give a folder that may be, with --out")
        task = progress.add_task("drawing", total=len(entries))
        for entry in entries:
            progress.update(task, description=f"drawing {entry.id}")
            drawing = entry.draw(studio)
            captions[entry.id] = drawing.caption
            paths += write_drawing(drawing, entry, folder, svg=arguments.svg)
            progress.advance(task)
    if len(entries) == len(every):
        paths.append(write_page(every, captions, folder))
        if arguments.model is None:
            paths.append(write_recipes(recipes_as_json(), folder))
    seconds = time.perf_counter() - start
    out.print(
        f"wrote {quantity(len(paths), 'file')} to {printable(folder)} in {seconds:.0f} s: {_names(paths)}",
        soft_wrap=True,
    )


def _run_folder(model: str | None) -> str | None:
    """Return the folder of --model, which must be that of a run: some figures need all of its checkpoints.

    Raises:
        UserError: If the model is a translator that ships, or a file.
    """
    if model in names() or (model is not None and Path(model).is_file()):
        raise UserError(f"the figures need the folder of a run, and {model} is a single model: give a folder")
    return model


def _names(paths: Sequence[Path]) -> str:
    """Return all names if they are few, or else the first and the last."""
    files = [path.name for path in paths]
    return ", ".join(files) if len(files) <= 8 else f"{files[0]} .. {files[-1]}"


class TrainingBar:
    """A callback for training, which replaces the bar of the figures by a training bar while it runs."""

    def __init__(self, out: Console, progress: Progress) -> None:
        self.out, self.progress = out, progress
        self.stack = ExitStack()
        self.inner: Callable[[Event], None] | None = None

    def __enter__(self) -> "TrainingBar":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stack.close()

    def __call__(self, event: Event) -> None:
        """Show an event of the training."""
        if isinstance(event, Started):
            self.progress.stop()
            self.inner = self.stack.enter_context(training_progress(self.out))
        if self.inner is not None:
            self.inner(event)
        if isinstance(event, Stopped):
            self.stack.close()
            self.inner = None
            self.progress.start()

"""npformer bugs: code that looks right and mostly trains, with one bug to find and repair."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from npformer.commands.tasks import (
    add_task_arguments,
    say,
    show_hints,
    show_not_yet,
    show_printed,
    to_check,
    where,
)
from npformer.course.screen import print_in_pages
from npformer.errors import UserError
from npformer.exercises import Verdict
from npformer.exercises.folder import Folder
from npformer.exercises.process import check
from npformer.terminal import console
from npformer.zoo import SPECIMENS, Specimen, find
from npformer.zoo.judge import fill
from npformer.zoo.picture import draw, two_lines

EPILOG = """\
npformer bugs list       all of them: what one sees, and how far you are
npformer bugs start 3    writes bugs/03_embedding.py and a picture of its loss: find the bug, repair it
npformer bugs check      says whether it is gone, and then tells its story
npformer bugs hint       which tool to take, and with each call one hint more"""

ACTIONS = ("list", "start", "check", "hint")


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    parser.add_argument(
        "name", nargs="?", help="a bug's number or name; check and hint without it take the one you are at"
    )
    add_task_arguments(parser, "bugs")


def run(arguments) -> int:
    """Returns 0, or 1 where a bug is still there."""
    actions: dict[str, Callable] = {"list": list_all, "start": start, "check": check_some, "hint": hint}
    return actions[arguments.action](arguments, Folder(Path(arguments.dir)))


def list_all(arguments, folder: Folder) -> int:
    """A table of all bugs."""
    if arguments.name:
        raise UserError(f"list shows all bugs: leave out {arguments.name}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("bug", "name", "what one sees", "state"):
        table.add_column(column, justify="right" if column == "bug" else "left", no_wrap=True)
    states = {name: folder.state(specimen) for name, specimen in SPECIMENS.items()}
    for name, specimen in SPECIMENS.items():
        colour = {"solved": "green", "started": "yellow"}.get(states[name], "dim")
        table.add_row(str(specimen.number), name, specimen.seen, f"[{colour}]{states[name]}[/]")
    solved = list(states.values()).count("solved")
    print_in_pages(console(), table, f"{solved} of {len(states)} solved. {_next(states)}")
    return 0


def _next(states: dict[str, str]) -> str:
    """How to go on: with what is begun, else with what is not."""
    begun = [specimen.number for name, specimen in SPECIMENS.items() if states[name] == "started"]
    left = [specimen.number for name, specimen in SPECIMENS.items() if states[name] == "not started"]
    if begun:
        return f"Go on: npformer bugs check {begun[0]}"
    return f"Next: npformer bugs start {left[0]}" if left else "None is left to start here."


def start(arguments, folder: Folder) -> int:
    """Write the learner's file, train the code with the bug and without, and draw both curves."""
    if not arguments.name:
        raise UserError("start which bug? npformer bugs start 1 (npformer bugs list names them all)")
    specimen = find(arguments.name)
    file = folder.start(specimen)
    say(f"{file} is yours: {specimen.name}, bug {specimen.number} of {len(SPECIMENS)}.\n")
    bug, right = specimen.train(specimen.buggy()), specimen.train(specimen.repaired())
    say(fill(specimen.symptom, bug, right) + "\n")
    say("\n".join(two_lines(bug, right, "without")) + "\n")
    _draw(specimen, bug, right, file.with_suffix(".png"))
    say(f"Find the bug, repair it in {file}, then: npformer bugs check{where(arguments, 'bugs')}")
    return 0


def _draw(specimen: Specimen, bug, right, path: Path) -> None:
    """Both curves, in a file beside the learner's."""
    from npformer import plots  # matplotlib takes a second to load: only who draws should wait

    figure = draw(bug, right, specimen.axes, f"Bug {specimen.number}, {specimen.name}: {specimen.seen}")
    say(f"Both curves are drawn in {plots.save(figure, path)}")


def check_some(arguments, folder: Folder) -> int:
    """Judge one repair, or all whose files are there."""
    specimens, folder = to_check(arguments, folder, find, SPECIMENS.values(), "npformer bugs start 1")
    gone = []
    for specimen in specimens:
        began = time.perf_counter()
        verdict = check(
            specimen.name,
            folder.file(specimen),
            arguments.seconds,
            child="npformer.zoo.child",
            start="npformer bugs start",
        )
        folder.set_solved(specimen, verdict.solved)
        show_verdict(specimen, verdict, time.perf_counter() - began)
        gone.append(verdict.solved)
    return 0 if all(gone) else 1


def show_verdict(specimen: Specimen, verdict: Verdict, seconds: float) -> None:
    """What the judge found, and the story where the bug is gone."""
    show_printed(verdict)
    if verdict.solved:
        say(f"The bug of {specimen.name} is {verdict.says}, in {seconds:.1f} s.\n")
        say("\n".join(verdict.told))
        say("\nThe others: npformer bugs list")
    else:
        show_not_yet(specimen.name, verdict, f"npformer bugs hint {specimen.number}")


def hint(arguments, folder: Folder) -> int:
    """The hints so far, and one more."""
    name = arguments.name or folder.current()
    if name is None:
        raise UserError("a hint for which bug? npformer bugs hint 1")
    show_hints(find(name), folder, "That was the last one.")
    return 0

"""npformer gradcheck: check the backward pass of every component, or of a layer in a file of your own."""

import importlib.util
import json
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from npformer.checking import gradcheck
from npformer.checking.cases import Case, all_cases
from npformer.checking.report import Report
from npformer.cli.output import console, print_data, print_lines
from npformer.errors import UserError, did_you_mean
from npformer.learn.console import styled

EPILOG = """\
A layer of your own: npformer gradcheck FILE.py:NAME --shape 2,5,8
NAME is a layer, a class without required arguments, or a function NAME with a
function NAME_backward beside it."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "what", nargs="*", help="parts of the names of components (default: all), or FILE.py:NAME of your own"
    )
    parser.add_argument(
        "--method",
        choices=("complex", "difference"),
        default="complex",
        help="complex step, exact up to rounding (default), or central differences",
    )
    parser.add_argument(
        "--shape",
        action="append",
        metavar="SHAPE",
        help="the shape of an input of your own layer, as 2,5,8; once for each input",
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the random numbers (default: 0)")
    parser.add_argument("--verbose", action="store_true", help="print every tensor, not only the worst one")
    parser.add_argument(
        "--json", action="store_true", help="print a list of JSON objects, one for each tensor"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the components")


def run(arguments: Namespace) -> int:
    """Check, and print a table. Return 0 if all gradients are right, and 1 otherwise."""
    if arguments.list:
        print_lines("\n".join(case.name for case in all_cases()))
        return 0
    own = [what for what in arguments.what if ".py" in what]
    start = time.perf_counter()
    if own:
        reports = [check_own_layer(name, arguments.shape, arguments.method, arguments.seed) for name in own]
    else:
        reports = [case.check(arguments.method, arguments.seed) for case in choose(arguments.what)]
    if arguments.json:
        print_data(json.dumps([row for report in reports for row in report.as_json()], indent=1))
    elif arguments.verbose or own:
        print_lines("\n".join(str(report) for report in reports))
    else:
        print_table(console(), reports, time.perf_counter() - start)
    return 0 if all(report.ok for report in reports) else 1


def choose(names: list[str]) -> list[Case]:
    """Return the cases whose names contain one of these texts, or all cases for an empty list.

    Raises:
        UserError: If a text occurs in no name.
    """
    cases = all_cases()
    for name in names:
        if not any(name.lower() in case.name.lower() for case in cases):
            raise UserError(f"no component is called {name!r}: npformer gradcheck --list prints all names")
    return [c for c in cases if not names or any(name.lower() in c.name.lower() for name in names)]


def print_table(out: Console, reports: list[Report], seconds: float, *, grouped: bool = False) -> None:
    """Print a line for each case, or for each component if `grouped`, with its worst tensor.

    Args:
        out: The console.
        reports: The reports of the cases.
        seconds: The time that the checks took.
        grouped: Print one line for all options of a component.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("component", no_wrap=True)
    table.add_column("checks", justify="right")
    table.add_column("worst", justify="right")
    table.add_column("at")
    for report in _grouped(reports) if grouped else reports:
        worst = report.worst
        tensor = worst.tensor if report.ok else styled(("WRONG", "bold red"), f" {worst.tensor}")
        table.add_row(report.name, str(len(report.rows)), f"{worst.error:.0e}", tensor)
    out.print(table)
    wrong = [report for report in reports if not report.ok]
    for report in wrong:
        out.print(str(report))
    rows = [row for report in reports for row in report.rows]
    largest = max(row.error for row in rows)
    verdict = f"{len(wrong)} WRONG" if wrong else "all right"
    out.print(
        f"{len(reports)} components, {len(rows)} checks in {seconds:.1f} s: {verdict}; "
        f"largest relative error {largest:.1e}"
    )


def _grouped(reports: list[Report]) -> list[Report]:
    """Return one report for all options of each component."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.name.split(",")[0], []).append(report)
    return [
        Report(
            name if len(group) == 1 else f"{name} ({len(group)} ways)", [r for one in group for r in one.rows]
        )
        for name, group in groups.items()
    ]


def check_own_layer(what: str, shapes: list[str] | None, method: str, seed: int) -> Report:
    """Check FILE.py:NAME on normally distributed inputs of these shapes.

    Args:
        what: The file and the name, as FILE.py:NAME.
        shapes: The shape of each input, as "2,5,8".
        method: "complex" or "difference".
        seed: The seed of the inputs.

    Raises:
        UserError: If the file cannot be read or run, or if the name is not in it.
    """
    file, _, name = what.partition(":")
    if not name:
        raise UserError(f"{what} names a file, and no layer or function in it: write {file}:NAME")
    if not shapes:
        raise UserError(f"the shape of {name}'s input is not known: give --shape 2,5,8 (one for each input)")
    thing = _find(_load_module(Path(file)), name, file)
    rng = np.random.default_rng(seed + 1)
    inputs = [rng.standard_normal(_shape(text)) for text in shapes]
    try:
        return gradcheck(thing, *inputs, method=method, seed=seed, name=name)
    except UserError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"{what} raised {_describe(error, file)}") from error


def _load_module(path: Path) -> ModuleType:
    """Run the file and return it as a module."""
    if not path.is_file():
        raise UserError(f"there is no file {path}: give the path of a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"{path} could not be run: {_describe(error, str(path))}") from error
    return module


def _find(module: ModuleType, name: str, file: str) -> Any:
    """Return the layer, or the pair of functions, of that name."""
    thing = getattr(module, name, None)
    if thing is None:
        hint = did_you_mean(name, [known for known in vars(module) if not known.startswith("__")])
        raise UserError(f"{file} has no {name}: {hint}")
    if isinstance(thing, type):
        try:
            return thing()
        except TypeError as error:
            raise UserError(
                f"{file}:{name} cannot be made without arguments ({error}): make one in the file, "
                "as layer = ..., and give that name"
            ) from error
    if callable(thing) and not hasattr(thing, "forward"):
        backward = getattr(module, f"{name}_backward", None)
        if backward is None:
            raise UserError(f"{file} has {name} and no {name}_backward: write both")
        return thing, backward
    return thing


def _shape(text: str) -> tuple[int, ...]:
    """Return the shape that a text such as "2,5,8" says."""
    try:
        return tuple(int(n) for n in text.split(","))
    except ValueError:
        raise UserError(f"--shape {text!r} is not a shape: write whole numbers, as 2,5,8") from None


def _describe(error: Exception, file: str) -> str:
    """Return the error in a few words, with the line of the user's file where it was raised."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(Path(file).name):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" in line {line}" if line else ""
    return f"{type(error).__name__}{where}: {error}"

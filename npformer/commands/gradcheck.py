"""npformer gradcheck: hold every backward pass against its forward pass."""

import json
import time

from rich.table import Table

from npformer.commands.own_layer import check_own_layer
from npformer.errors import UserError
from npformer.gradcheck.cases import Case, all_cases
from npformer.gradcheck.report import Report
from npformer.terminal import console

EPILOG = """\
A layer of your own: npformer gradcheck FILE.py:NAME --shape 2,5,8
NAME is a layer, a class that makes one without arguments, or a function f with f_backward beside it."""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "what", nargs="*", help="parts of components' names (default: all), or FILE.py:NAME of your own"
    )
    parser.add_argument(
        "--method",
        choices=("complex", "difference"),
        default="complex",
        help="complex step, exact to rounding (default), or central differences",
    )
    parser.add_argument("--shape", action="append", help="shape of an input of your own layer, as 2,5,8")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    parser.add_argument("--verbose", action="store_true", help="every tensor, not only the worst")
    parser.add_argument("--json", action="store_true", help="print a list of objects, one a tensor")
    parser.add_argument("--list", action="store_true", help="name the components and stop")


def run(arguments) -> int:
    """Returns 0 where all gradients are right, 1 otherwise."""
    if arguments.list:
        print("\n".join(case.name for case in all_cases()))
        return 0
    own = [what for what in arguments.what if ".py" in what]
    start = time.perf_counter()
    if own:
        reports = [check_own_layer(name, arguments.shape, arguments.method, arguments.seed) for name in own]
    else:
        reports = [case.check(arguments.method, arguments.seed) for case in choose(arguments.what)]
    if arguments.json:
        print(json.dumps([row for report in reports for row in report.as_json()], indent=1))
    elif arguments.verbose or own:
        print("\n".join(str(report) for report in reports))
    else:
        print_table(console(), reports, time.perf_counter() - start)
    return 0 if all(report.ok for report in reports) else 1


def choose(names: list[str]) -> list[Case]:
    """The cases whose names hold one of these texts; all for an empty list.

    Errors: UserError where a text occurs in no name.
    """
    cases = all_cases()
    for name in names:
        if not any(name.lower() in case.name.lower() for case in cases):
            raise UserError(f"no component is called {name!r}: npformer gradcheck --list names them all")
    return [c for c in cases if not names or any(name.lower() in c.name.lower() for name in names)]


def print_table(out, reports: list[Report], seconds: float, *, grouped: bool = False) -> None:
    """One line a case, or one a component with all its options; and with each its worst tensor."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("component", no_wrap=True)
    table.add_column("checks", justify="right")
    table.add_column("worst", justify="right")
    table.add_column("at")
    for report in _grouped(reports) if grouped else reports:
        worst = report.worst
        mark = "" if report.ok else "[bold red]WRONG[/] "
        table.add_row(report.name, str(len(report.rows)), f"{worst.error:.0e}", mark + worst.tensor)
    out.print(table)
    wrong = [report for report in reports if not report.ok]
    for report in wrong:
        out.print(str(report), markup=False)
    rows = [row for report in reports for row in report.rows]
    largest = max(row.error for row in rows)
    verdict = f"{len(wrong)} WRONG" if wrong else "all right"
    out.print(
        f"{len(reports)} components, {len(rows)} checks in {seconds:.1f} s: {verdict}; "
        f"largest relative error {largest:.1e}"
    )


def _grouped(reports: list[Report]) -> list[Report]:
    """The reports of a component's options as one report."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.name.split(",")[0], []).append(report)
    return [
        Report(
            name if len(group) == 1 else f"{name} ({len(group)} ways)", [r for one in group for r in one.rows]
        )
        for name, group in groups.items()
    ]

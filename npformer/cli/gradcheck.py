"""npformer gradcheck: check the backward pass of every component, of a layer in a file, or of a model."""

import json
import time
from argparse import ArgumentParser, Namespace

from rich.console import Console

from npformer.backend import choose_backend
from npformer.checking.cases import Case, KernelCase, all_cases
from npformer.checking.cases.device import HOST_ONLY, check_on_device
from npformer.checking.report import Report
from npformer.cli.limits import require_memory
from npformer.cli.load_model import ANY_MODEL, add_model_arguments, load_any
from npformer.cli.options import SECONDS, SEED, SHAPE, Rule, add, excludes, needs, only_if
from npformer.cli.output import console, note, print_data, print_lines, versioned_rows
from npformer.cli.own_layer import SECONDS as OWN_SECONDS
from npformer.cli.own_layer import check_own_layer
from npformer.errors import UserError, nearest
from npformer.language import say
from npformer.learn.console import plain_table, styled
from npformer.pretrained.loss_check import check_loss

EPILOG = """\
A layer of your own: npformer gradcheck FILE.py:NAME --shape 2,5,8
NAME is a layer, a class without required arguments, or a function NAME with a
function NAME_backward beside it.

A trained model: npformer gradcheck --model en-de "A man is riding a bicycle."
The gradient of the loss on the sentence is checked for every tensor of the model."""

BYTES = 64  # for each parameter: the model in float64, two copies of its tensors, and complex ones


def _own(arguments: Namespace) -> list[str]:
    """Return those of the names that are layers of the user, as FILE.py:NAME."""
    return [] if arguments.model else [what for what in arguments.what if ".py" in what]


RULES = (
    excludes(
        "--list", "--method --shape --seed --seconds --verbose --json --model --backend", "it checks nothing"
    ),
    needs("--last", "--model"),
    excludes("--model", "--method", "the check of a model is by complex step"),
    excludes("--json", "--verbose", "it prints every tensor anyway"),
    Rule(
        ("--method", "--model", "--shape", "--seconds"),
        lambda arguments: arguments.backend == "numpy",
        "has no effect with --backend cupy, which compares components on two devices: leave out one of them",
        ("--backend",),
    ),
    only_if(
        "--backend",
        lambda arguments: arguments.backend == "numpy" or not _own(arguments),
        "with components",
        "leave it out, since a layer of your own is checked where its arrays are",
    ),
    only_if("--shape", _own, "with a layer of your own", "give FILE.py:NAME as well, or leave it out"),
    only_if(
        "--seconds",
        lambda arguments: _own(arguments) or arguments.model,
        "with a layer of your own or a model",
        "give FILE.py:NAME or --model as well, or leave it out",
    ),
    only_if(
        "what",
        lambda arguments: len(_own(arguments)) in (0, len(arguments.what)),
        "with names of one kind",
        "give parts of the names of components, or layers of your own as FILE.py:NAME, and not both",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(
        parser,
        "[what...]",
        "parts of the names of components (default: all), FILE.py:NAME of your own, or with --model a "
        "sentence",
    )
    add_model_arguments(parser, "none, and components are checked", models=ANY_MODEL)
    add(
        parser,
        "--method",
        "complex step, exact up to rounding (default), or central differences",
        ("complex", "difference"),
        default="complex",
    )
    add(
        parser,
        "--shape SHAPE",
        "the shape of an input of your own layer, as 2,5,8; once for each input",
        SHAPE,
        action="append",
    )
    add(parser, "--seed", "the seed of the random numbers", SEED, default=0)
    add(
        parser,
        "--seconds",
        "a limit on the processor time of a layer of your own, or about the time for a model "
        f"(default: {OWN_SECONDS:g})",
        SECONDS,
        default=OWN_SECONDS,
    )
    add(
        parser,
        "--backend",
        "cupy compares every component on a GPU with NumPy",
        ("numpy", "cupy"),
        default="numpy",
    )
    add(parser, "--verbose", "print every tensor, not only the worst one")
    add(parser, "--json", "print a list of JSON objects, one for each tensor")
    add(parser, "--list", "print the names and check nothing")


def run(arguments: Namespace) -> int:
    """Check, and print a table. Return 0 if all gradients are correct, and 1 otherwise."""
    if arguments.list:
        print_lines("\n".join(case.name for case in choose(arguments.what)))
        return 0
    own = _own(arguments)
    start = time.perf_counter()
    if arguments.backend == "cupy":
        choose_backend("cupy")  # refuses where there is no GPU
        reports = [check_on_device(case, arguments.seed) for case in on_device(choose(arguments.what))]
    elif arguments.model:
        reports = [check_model(arguments)]
    elif own:
        reports = [check_own(what, arguments) for what in own]
    else:
        reports = [case.check(arguments.method, arguments.seed) for case in choose(arguments.what)]
    if arguments.json:
        rows = versioned_rows(row for report in reports for row in report.as_json())
        print_data(json.dumps(rows, indent=1))
    elif arguments.verbose or own:
        print_lines("\n".join(str(report) for report in reports))
    else:
        print_table(console(), reports, time.perf_counter() - start)
    return 0 if all(report.ok for report in reports) else 1


def check_model(arguments: Namespace) -> Report:
    """Check the gradient of the loss of a trained model on a sentence.

    Raises:
        UserError: If there is not one sentence, if the model cannot read it, or if it is too large.
    """
    if len(arguments.what) != 1:
        raise UserError(
            f"--model needs one sentence, and {len(arguments.what)} were given: write it in quotes, as in "
            f'npformer gradcheck --model {arguments.model} "the cat sleeps"'
        )
    loaded = load_any(arguments)
    require_memory(
        BYTES * loaded.model.count_parameters(),
        f"the check of a model with {loaded.model.count_parameters():,} parameters",
        "check a smaller model",
    )
    return check_loss(loaded, arguments.what[0], seed=arguments.seed, seconds=arguments.seconds)


def check_own(what: str, arguments: Namespace) -> Report:
    """Check a layer of the user's own. What its file prints goes to standard error."""
    report, printed = check_own_layer(
        what, arguments.shape, arguments.method, arguments.seed, arguments.seconds
    )
    for line in printed.splitlines():
        note(f"{what} printed: {line}")
    return report


def choose(names: list[str]) -> list[Case | KernelCase]:
    """Return the cases whose names contain one of these texts, or all cases for an empty list.

    Raises:
        UserError: If a text occurs in no name.
    """
    cases = all_cases()
    for name in names:
        if not any(name.lower() in case.name.lower() for case in cases):
            near = nearest(name, (case.name for case in cases))
            hint = f"did you mean {near}? " if near else ""
            raise UserError(
                f"no component is called {name!r}: {hint}npformer gradcheck --list prints all names"
            )
    return [c for c in cases if not names or any(name.lower() in c.name.lower() for name in names)]


def on_device(cases: list[Case | KernelCase]) -> list[Case]:
    """Return the cases that can be compared on a GPU.

    Raises:
        UserError: If there is none.
    """
    found = [case for case in cases if isinstance(case, Case) and case.name not in HOST_ONLY]
    if not found:
        raise UserError(
            "none of these components is compared on a GPU: a kernel is compared there as a part of its "
            "layers, so give the name of a layer"
        )
    return found


def print_table(out: Console, reports: list[Report], seconds: float, *, grouped: bool = False) -> None:
    """Print a line for each case, or for each component if `grouped`, with its worst tensor.

    Args:
        out: The console.
        reports: The reports of the cases.
        seconds: The time that the checks took.
        grouped: Print one line for all options of a component.
    """
    titles = ("component", "checks", "worst", "at")
    table = plain_table("component", ">checks", ">worst", "at", wrapped=titles)
    for report in _grouped(reports) if grouped else reports:
        worst = report.worst
        tensor = worst.tensor if report.ok else styled(("FAIL", "bold red"), f" {worst.tensor}")
        table.add_row(report.name, str(len(report.rows)), f"{worst.error:.0e}", tensor)
    out.print(table)
    print_verdict(out, reports, seconds)


def print_verdict(out: Console, reports: list[Report], seconds: float) -> None:
    """Print the reports that are not correct, and one line about all.

    Args:
        out: The console.
        reports: The reports of the cases.
        seconds: The time that the checks took.
    """
    wrong = [report for report in reports if not report.ok]
    for report in wrong:
        out.print(str(report))
    rows = [row for report in reports for row in report.rows]
    errors: dict[str, list[float]] = {"float64": [], "float32": []}
    for row in rows:
        errors["float32" if "float32" in row.method + row.tensor else "float64"].append(row.error)
    largest = [
        say("{error:.1e} in {dtype}", error=max(found), dtype=dtype)
        for dtype, found in errors.items()
        if found
    ]
    one = len(reports) == 1
    out.print(
        say(
            "{components}, {checks:,} checks in {seconds:.1f} s: {verdict}; largest relative error {largest}",
            components=say("1 component") if one else say("{count} components", count=len(reports)),
            checks=len(rows),
            seconds=seconds,
            verdict=say("{count} INCORRECT", count=len(wrong)) if wrong else say("all correct"),
            largest=say(" and ").join(largest),
        )
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

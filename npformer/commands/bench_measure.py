"""What npformer bench measures, with a bar on standard error while it does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from npformer.bench.compare import compare
from npformer.bench.setups import Setup, choose_setups

Rows = list[dict[str, Any]]


class Bar:
    """How far the measuring is, and what is measured now."""

    def __init__(self, progress: Progress, total: int):
        self.progress, self.done = progress, -1
        self.task = progress.add_task("", total=total)

    def next(self, text: str) -> None:
        """Say what begins; what began before is done."""
        self.done += 1
        self.progress.update(self.task, description=text, completed=self.done)


@contextmanager
def bar(total: int) -> Iterator[Bar]:
    """A bar that is gone when all is measured."""
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, total)


def step_rows(arguments, setups: Sequence[Setup]) -> Rows:
    """The training step of each setup, beside PyTorch's if asked, and beside its floor."""
    against = arguments.against is not None
    kinds = 3 + against * (1 if arguments.backend == "numpy" else 2)
    with bar(kinds * arguments.repeats * len(setups)) as progress:
        return [
            compare(
                setup,
                against=against,
                workers=arguments.workers,
                repeats=arguments.repeats,
                seconds=arguments.seconds,
                backend=arguments.backend,
                report=lambda task: progress.next(f"{task.setup.name}: {task.kind}"),
            )
            for setup in setups
        ]


def profile_rows(arguments, setups: Sequence[Setup]) -> Rows:
    """The components of the step of each setup; of tiny, where none is named."""
    from npformer.bench.profile import profile

    setups = setups if arguments.only else choose_setups(["tiny"])
    rows: Rows = []
    with threadpool_limits(1, user_api="blas"), bar(len(setups)) as progress:
        for setup in setups:
            progress.next(f"{setup.name}: by component")
            lines = profile(setup, backend=arguments.backend, seconds=arguments.seconds)
            rows += [{"name": setup.name, **line._asdict(), "seconds": line.seconds} for line in lines]
    return rows


def curve_rows(arguments) -> Rows:
    """Time and memory at every length and batch; the picture is drawn."""
    from npformer.bench.costs import BATCHES, LENGTHS, measure_costs

    with threadpool_limits(1, user_api="blas"), bar(3 * len(LENGTHS) + len(BATCHES)) as progress:
        costs = list(measure_costs(lambda what, size: progress.next(f"{what} {size}")))
    rows = [cost._asdict() for cost in costs]
    draw_curves(rows, arguments.curves)
    return rows


def draw_curves(rows: Rows, path: str) -> None:
    """Four panels: seconds and megabytes, against length and against batch."""
    from npformer.bench.costs import LENGTH, slope
    from npformer.plots import save
    from npformer.plots.costs import cost_panels

    axis = {"length": "length in words", "batch": f"sentences of {LENGTH} words"}
    lines = curves_of(rows)
    sizes = {axis[against]: sizes for (_, against), (sizes, _, _) in lines.items()}
    costs: dict[str, dict[str, list[float]]] = {}
    for (name, against), (steps, seconds, megabytes) in lines.items():
        for what, values in (("seconds", seconds), ("megabytes", megabytes)):
            label = f"{name}: slope {slope(steps, values):.1f}"
            costs.setdefault(f"{what} {axis[against]}", {})[label] = values
    panels = [[(what, against) for what in ("seconds", "megabytes")] for against in sizes]
    title = "What forward and backward cost, on one core (slope: at the right end)"
    save(cost_panels(costs, sizes, panels=panels, title=title), path)


def curves_of(rows: Rows) -> dict[tuple[str, str], tuple[list[int], list[float], list[float]]]:
    """The (sizes, seconds, megabytes) of each curve, by its name and what grows."""
    lines: dict[tuple[str, str], tuple[list[int], list[float], list[float]]] = {}
    for row in rows:
        sizes, seconds, megabytes = lines.setdefault((row["name"], row["against"]), ([], [], []))
        sizes.append(row["size"])
        seconds.append(row["seconds"])
        megabytes.append(row["bytes"] / 1e6)
    return lines


def decoding_rows(arguments) -> Rows:
    """Greedy decoding with kept keys and values against a full re-run, and a thousand sentences."""
    from npformer.bench.decoding import MEASUREMENTS

    with bar(len(MEASUREMENTS)) as progress:
        rows = []
        for name, measure in MEASUREMENTS.items():
            progress.next(name)
            rows.append({"name": name, **measure(arguments.workers)})
        return rows

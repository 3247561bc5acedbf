"""npformer bench: measure the speed and the memory of a training step."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, groupby
from pathlib import Path
from typing import Any

from rich.table import Table
from threadpoolctl import threadpool_limits

from npformer.backend import choose_backend
from npformer.bench.compare import compare, require_torch
from npformer.bench.machine import describe, is_busy
from npformer.bench.setups import SETUPS, AnySetup, choose_setups
from npformer.cli.limits import require_threads
from npformer.cli.options import COUNT, SECONDS, add, add_backend_argument, excludes
from npformer.cli.output import console, note, print_data, versioned_rows
from npformer.cli.pictures import require_picture
from npformer.errors import UserError
from npformer.learn.console import counting_progress, plain_table
from npformer.storage.atomic import require_place, write_file

Rows = list[dict[str, Any]]

PNG = "bench-curves.png"
EPILOG = """\
Examples: npformer bench --only tiny small
          npformer bench --against torch --json bench.json
          npformer bench --profile --only tiny
          npformer bench --curves curves.png"""

FOOT = (
    "tokens: target tokens, without padding. memory: the peak of the process. products: the share of the "
    "step's time that its matrix products alone take. over: the time of the step divided by that of the "
    "products, on padded shapes and (packed) on the real tokens alone."
)
TORCH_FOOT = (
    "faster: PyTorch's time divided by npformer's, median of {repeats} rounds (lowest and highest). of "
    "PyTorch's: the memory divided by that of PyTorch's process; then the same without the memory after the "
    "imports."
)

RULES = (
    excludes(
        "--profile", "--curves --decoding --against --repeats --workers", "it measures steps on one core"
    ),
    excludes(
        "--curves",
        "--decoding --only --against --repeats --seconds --workers --backend",
        "it measures models of its own, on NumPy and one core",
    ),
    excludes(
        "--decoding",
        "--only --against --repeats --seconds --backend",
        "it measures a model of its own, on NumPy",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    names = ", ".join(SETUPS.names())
    add(parser, "--only NAME...", f"some of {names} (default: the first four; for --profile: tiny)")
    add(
        parser,
        "--against",
        "measure PyTorch's step as well, in turns; torch-compiled: with torch.compile and fused Adam",
        ["torch", "torch-compiled"],
    )
    add(parser, "--repeats", "the number of turns", COUNT, default=5)
    add(parser, "--seconds", "the shortest duration of a turn", SECONDS, default=1.0)
    add(parser, "--workers", "the threads that share each batch", COUNT, default=2)
    add_backend_argument(parser, default="numpy", shown="numpy")
    add(parser, "--json [FILE=-]", "write a list of JSON objects into FILE, or print it")
    add(parser, "--profile", "measure the time of each component of the step, on one core")
    add(
        parser,
        f"--curves [PNG={PNG}]",
        f"measure time and memory against length and batch size, on one core, and draw them ({PNG})",
    )
    add(parser, "--decoding", "measure the speed of greedy and beam search, and of the generation of text")


def run(arguments: Namespace) -> int:
    """Measure, print tables and write files. Return 0."""
    setups = check(arguments)
    about = describe()  # before the measurements load the machine
    rough = is_busy(about["machine"])
    if arguments.profile:
        rows, show = profile_rows(arguments, setups), show_profile
    elif arguments.curves:
        rows, show = curve_rows(arguments), show_curves
    elif arguments.decoding:
        rows, show = decoding_rows(arguments), show_decoding
    else:
        rows, show = step_rows(arguments, setups), show_steps
    if arguments.json != "-":
        show(rows)
        show_about(about)
    if rough:
        note("other programs use this machine, so these numbers are rough; PyTorch's are affected most")
    if arguments.json:
        write_json([row | about | {"rough": rough} for row in rows], arguments.json)
    return 0


def check(arguments: Namespace) -> list[AnySetup]:
    """Return the setups that are asked for.

    Raises:
        UserError: If the arguments are impossible, before anything is measured.
    """
    require_threads("--workers", arguments.workers)
    setups = choose_setups(arguments.only)
    for setup in setups:
        if arguments.workers > setup.sentences and not arguments.decoding:
            raise UserError(
                f"--workers is {arguments.workers}, and the batch of {setup.name} has {setup.sentences} "
                "sentences: each worker needs one"
            )
    arguments.backend = choose_backend(arguments.backend)
    if arguments.against:
        require_torch()
    if arguments.json and arguments.json != "-":
        require_place(Path(arguments.json), advice="give a file in a folder that may be written to")
    if arguments.curves:
        require_picture(Path(arguments.curves))
    return setups


def write_json(rows: list[dict[str, Any]], file: str) -> None:
    """Write the rows into a file, whole or not at all, or print them if the file is "-".

    Raises:
        UserError: If the file cannot be written.
    """
    text = json.dumps(versioned_rows(rows), indent=1, ensure_ascii=False)
    if file == "-":
        print_data(text)
        return
    write_file(Path(file), f"{text}\n".encode())


@contextmanager
def bar(total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on standard error until all is measured.

    Yields:
        A function that counts the measurement before as done, and shows the name of the next one.
    """
    form, done = "{task.description:<28}", count()
    with counting_progress(console(stderr=True), form, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda text: progress.update(task, description=text, completed=next(done))


def step_rows(arguments: Namespace, setups: Sequence[AnySetup]) -> Rows:
    """Measure the training step of each setup, its matrix products alone and, if asked, PyTorch's step."""
    against = arguments.against is not None
    kinds = 3 + against * (1 if arguments.backend == "numpy" else 2)
    with bar(kinds * arguments.repeats * len(setups)) as progress:
        return [
            compare(
                setup,
                against=arguments.against,
                workers=arguments.workers,
                repeats=arguments.repeats,
                seconds=arguments.seconds,
                backend=arguments.backend,
                report=lambda task: progress(f"{task.setup.name}: {task.kind}"),
            )
            for setup in setups
        ]


def profile_rows(arguments: Namespace, setups: Sequence[AnySetup]) -> Rows:
    """Measure the components of the step of each setup, or of tiny if none is named."""
    from npformer.bench.profile import profile

    setups = setups if arguments.only else choose_setups(["tiny"])
    rows: Rows = []
    with threadpool_limits(1, user_api="blas"), bar(len(setups)) as progress:
        for setup in setups:
            progress(f"{setup.name}: by component")
            lines = profile(setup, backend=arguments.backend, seconds=arguments.seconds)
            rows += [{"name": setup.name, **line._asdict(), "seconds": line.seconds} for line in lines]
    return rows


def curve_rows(arguments: Namespace) -> Rows:
    """Measure time and memory at every length and batch size, and draw the picture."""
    from npformer.bench.costs import BATCHES, LENGTHS, measure_costs

    with threadpool_limits(1, user_api="blas"), bar(3 * len(LENGTHS) + len(BATCHES)) as progress:
        costs = list(measure_costs(lambda what, size: progress(f"{what} {size}")))
    rows = [cost._asdict() for cost in costs]
    draw_curves(rows, arguments.curves)
    return rows


def draw_curves(rows: Rows, path: str) -> None:
    """Draw four panels: seconds and megabytes, against length and against batch size."""
    from npformer.bench.costs import LENGTH, slope
    from npformer.plots import save
    from npformer.plots.curve_plots import cost_panels

    axis = {"length": "length in tokens", "batch": f"sentences of {LENGTH} tokens"}
    lines = curves_of(rows)
    sizes = {axis[against]: sizes for (_, against), (sizes, _, _) in lines.items()}
    costs: dict[str, dict[str, list[float]]] = {}
    for (name, against), (steps, seconds, megabytes) in lines.items():
        for what, values in (("seconds", seconds), ("megabytes", megabytes)):
            label = f"{name}: slope {slope(steps, values):.1f}"
            costs.setdefault(f"{what} {axis[against]}", {})[label] = values
    panels = [[(what, against) for what in ("seconds", "megabytes")] for against in sizes]
    title = "Time and memory of forward and backward passes, on one core (slopes at the right end)"
    save(cost_panels(costs, sizes, panels=panels, title=title), path)


def curves_of(rows: Rows) -> dict[tuple[str, str], tuple[list[int], list[float], list[float]]]:
    """Return the (sizes, seconds, megabytes) of each curve, by its name and the axis that grows."""
    lines: dict[tuple[str, str], tuple[list[int], list[float], list[float]]] = {}
    for row in rows:
        sizes, seconds, megabytes = lines.setdefault((row["name"], row["against"]), ([], [], []))
        sizes.append(row["size"])
        seconds.append(row["seconds"])
        megabytes.append(row["bytes"] / 1e6)
    return lines


def decoding_rows(arguments: Namespace) -> Rows:
    """Measure greedy decoding with a KV cache and without, and the decoding of a thousand sentences."""
    from npformer.bench.decoding import MEASUREMENTS

    with bar(len(MEASUREMENTS)) as progress:
        rows = []
        for name, measure in MEASUREMENTS.items():
            progress(name)
            rows.append({"name": name, **measure(arguments.workers)})
        return rows


def table_of(titles: Iterable[str]) -> Table:
    """Return a table whose first column is aligned left. In a narrow terminal, titles have several lines."""
    first, *others = titles
    return plain_table(first, *(f">{title}" for title in others), wrapped=(first, *others))


def show_steps(rows: Rows) -> None:
    """Print a line for each setup."""
    out, torch = console(), rows[0]["ratio"] is not None
    titles = ["", "step", "tokens/s", "products", "over (packed)", "memory"]
    table = table_of(titles + ["of PyTorch's", "faster"] * torch)
    for row in rows:
        cells = [
            row["name"],
            time(row["step_seconds"]),
            f"{row['tokens_per_second']:,.0f}",
            f"{row['share_in_products']:.0%}",
            f"{row['over_floor']:.2f} ({row['over_packed_floor']:.2f})",
            size(row.get("gpu_peak_memory") or row["peak_memory"]),
        ]
        if torch:
            cells += [memory_ratio(row), ratio(row, "ratio")]
        table.add_row(*cells)
    out.print(table)
    for row in rows:
        if "ratio_tf32" in row:
            out.print(f"{row['name']}: {ratio(row, 'ratio_tf32')} beside PyTorch with TF32")
    out.print(f"\n{FOOT}")
    if torch:
        out.print(TORCH_FOOT.format(repeats=rows[0]["repeats"]))


def ratio(row: dict[str, Any], key: str) -> str:
    """Return the median with its spread, as text."""
    low, high = row[f"{key}_spread"]
    return f"{row[key]:.2f} ({low:.2f}–{high:.2f})"


def memory_ratio(row: dict[str, Any]) -> str:
    """Return the ratios of memory, of the whole process and without the imports, or that of GPU memory."""
    if "gpu_peak_memory_ratio" in row:
        return f"{row['gpu_peak_memory_ratio']:.2f}"
    if "peak_memory_ratio" not in row:
        return "–"
    return f"{row['peak_memory_ratio']:.2f}; {row['above_import_memory_ratio']:.2f}"


def show_profile(rows: Rows) -> None:
    """Print the components of each setup, the slowest first, with forward and backward."""
    out = console()
    for name, group in groupby(rows, key=lambda row: row["name"]):
        lines = list(group)
        whole = sum(line["seconds"] for line in lines)
        table = table_of((name, "forward ms", "backward ms", "both ms", "share"))
        for line in lines:
            numbers = [line[key] * 1000 for key in ("forward", "backward", "seconds")]
            share = f"{line['seconds'] / whole:.1%}"
            table.add_row(line["component"], *[f"{n:.1f}" if n else "" for n in numbers], share)
        ways = [sum(line[way] for line in lines) * 1000 for way in ("forward", "backward")]
        table.add_row("the whole step", *[f"{n:.1f}" for n in ways], f"{whole * 1000:.1f}", "", style="bold")
        out.print(table)
        out.print()
    out.print("In one thread, on one core. The time of a line does not include the time of the other lines.")


def show_curves(rows: Rows) -> None:
    """Print a line for each size, with the milliseconds and megabytes of all that was measured there."""
    out = console()
    for against in ("length", "batch"):
        here = [row for row in rows if row["against"] == against]
        names = list(dict.fromkeys(row["name"] for row in here))
        table = table_of((against, *[f"{name} {unit}" for name in names for unit in ("ms", "MB")]))
        for number in dict.fromkeys(row["size"] for row in here):
            cells = {row["name"]: row for row in here if row["size"] == number}
            texts = [[f"{cells[n]['seconds'] * 1000:.1f}", f"{cells[n]['bytes'] / 1e6:.1f}"] for n in names]
            table.add_row(str(number), *[text for pair in texts for text in pair])
        out.print(table)
        out.print()


def show_decoding(rows: Rows) -> None:
    """Print a line for each measurement."""
    table = table_of(("", "seconds", "sentences/s", "tokens/s", "ratio"))
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['seconds']:.2f}",
            f"{row['sentences'] / row['seconds']:,.1f}",
            f"{row['tokens'] / row['seconds']:,.0f}",
            f"{row['ratio']:.1f}" if row["ratio"] else "–",
        )
    out = console()
    out.print(table)
    out.print(
        "\nratio: the time without a KV cache, with the whole prefix for every token, over the time with one"
    )


def show_about(about: dict[str, Any]) -> None:
    """Print the machine, the versions and the day."""
    machine = about["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    kernels = f", OpenBLAS's kernels for {machine['kernels']}" if machine["kernels"] else ""
    console().print(
        f"\n{machine['cpu']}, {machine['cores']} cores{kernels}; {versions}; {about['date'][:10]}.\n"
        f"GPU: {machine['gpu']}.",
        soft_wrap=True,
    )


def time(seconds: float) -> str:
    """Return a duration in milliseconds, or in seconds from 10 on."""
    return f"{seconds * 1000:,.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def size(number: int | None) -> str:
    """Return a size in megabytes, or a dash if the system does not report it."""
    return "–" if number is None else f"{number / 1e6:,.0f} MB"

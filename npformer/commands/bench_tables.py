"""The tables that npformer bench prints."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rich.table import Table

from npformer.terminal import console

Rows = list[dict[str, Any]]

FOOT = """\
tokens: of the target, without padding. memory: of the process at its peak. products: the share of the
step that its matrix products alone take. over: the step over them, on padded shapes and (packed) on the
real tokens alone."""
TORCH_FOOT = """\
faster: how many times as fast as PyTorch, median of {repeats} rounds, the least and the most. of PyTorch's:
the memory over that of PyTorch's process; the same without what either holds after its imports."""


def table_of(titles: Iterable[str], left: int = 1) -> Table:
    """A table without lines, the first columns aligned left."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, title in enumerate(titles):
        table.add_column(title, justify="left" if index < left else "right", no_wrap=True)
    return table


def show_steps(rows: Rows) -> None:
    """A line for each setup."""
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
    out.print(f"\n{FOOT}", markup=False)
    if torch:
        out.print(TORCH_FOOT.format(repeats=rows[0]["repeats"]), markup=False)


def ratio(row: dict[str, Any], key: str) -> str:
    """The median with its spread."""
    low, high = row[f"{key}_spread"]
    return f"{row[key]:.2f} ({low:.2f}–{high:.2f})"


def memory_ratio(row: dict[str, Any]) -> str:
    """Of the whole process, and less the imports; on a GPU of its memory alone."""
    if "gpu_peak_memory_ratio" in row:
        return f"{row['gpu_peak_memory_ratio']:.2f}"
    if "peak_memory_ratio" not in row:
        return "–"
    return f"{row['peak_memory_ratio']:.2f}; {row['above_import_memory_ratio']:.2f}"


def show_profile(rows: Rows) -> None:
    """For each setup its components, the longest first, forward and backward."""
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
    out.print("In one thread, on one core. Each line is without the time of the other lines.")


def show_curves(rows: Rows) -> None:
    """A line for each size: seconds and megabytes of whatever was measured there."""
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
    """A line for each measurement."""
    table = table_of(("", "seconds", "sentences/s", "words/s", "ratio"))
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['seconds']:.2f}",
            f"{row['sentences'] / row['seconds']:,.1f}",
            f"{row['words'] / row['seconds']:,.0f}",
            f"{row['ratio']:.1f}" if row["ratio"] else "–",
        )
    out = console()
    out.print(table)
    out.print("\nratio: a full re-run for every word, over the time with kept keys and values")


def show_about(about: dict[str, Any]) -> None:
    """The machine, the versions, the day."""
    machine = about["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    console().print(
        f"\n{machine['cpu']}, {machine['cores']} cores; {versions}; {about['date'][:10]}.\n"
        f"GPU: {machine['gpu']}.",
        markup=False,
        soft_wrap=True,
    )


def time(seconds: float) -> str:
    """Milliseconds, or seconds from 10 on."""
    return f"{seconds * 1000:,.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def size(number: int | None) -> str:
    """Megabytes; a dash where the system does not tell."""
    return "–" if number is None else f"{number / 1e6:,.0f} MB"

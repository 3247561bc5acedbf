"""The training step beside PyTorch's and beside its floor: what was measured, and what follows from it."""

import statistics
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from npformer.bench.child import Task
from npformer.bench.setups import Setup
from npformer.bench.turns import take_turns
from npformer.errors import UserError
from npformer.transformer import Transformer

Found = dict[str, list[dict[str, Any]]]  # the results of every round, by what was measured


def compare(
    setup: Setup,
    *,
    against: bool,
    workers: int,
    repeats: int,
    seconds: float,
    backend: str,
    report: Callable[[Task], None],
) -> dict[str, Any]:
    """Measure one setup, in turns. Returns the row of it that `npformer bench --json` writes."""
    if backend == "cupy":  # a GPU does one thing after another, whoever asks
        workers = 1
    task = Task("npformer", setup, workers, seconds, backend)
    tasks = {"npformer": task}
    if against:
        tasks["torch"] = replace(task, kind="torch")
        if backend == "cupy":
            tasks["torch tf32"] = replace(task, kind="torch", tf32=True)
    tasks |= {kind: replace(task, kind=kind) for kind in ("floor", "packed floor")}
    results = take_turns(list(tasks.values()), repeats, report)
    row = make_row(setup, dict(zip(tasks, results, strict=True)))
    return row | {"workers": workers, "repeats": repeats, "backend": backend}


def make_row(setup: Setup, found: Found) -> dict[str, Any]:
    """What follows from the measurements of one setup: medians over the rounds, ratios round by round."""
    seconds = median(found, "npformer")
    batch = setup.batch()
    return {
        "name": setup.name,
        **against_torch(found, "torch", ""),
        **against_torch(found, "torch tf32", "_tf32"),
        "step_seconds": seconds,
        "tokens_per_second": batch.tokens / seconds,  # target tokens without padding, as training counts
        "positions_per_second": batch.target_out.size / seconds,
        **memory(found),
        **floors(found),
        "packed": Transformer.packs,
    }


def against_torch(found: Found, kind: str, ending: str) -> dict[str, Any]:
    """How many times as fast as PyTorch: the median of all rounds, with the spread; None if not measured."""
    ratios = quotients(found, kind, "npformer")
    row: dict[str, Any] = {f"ratio{ending}": statistics.median(ratios) if ratios else None}
    if ratios:
        row[f"ratio{ending}_spread"] = [min(ratios), max(ratios)]
        row[f"torch{ending}_step_seconds"] = median(found, kind)
    return row if ratios or not ending else {}


def memory(found: Found) -> dict[str, Any]:
    """Peak memory in bytes: of the whole process, less what it held after its imports, and on a GPU."""
    row: dict[str, Any] = {}
    for key in ("peak", "above_import", "gpu_peak"):
        own, other = median(found, "npformer", key), median(found, "torch", key)
        if own is None and key == "gpu_peak":
            continue
        row[f"{key}_memory"] = own and int(own)
        if other is not None:
            row[f"torch_{key}_memory"] = int(other)
            row[f"{key}_memory_ratio"] = own / max(1, other)
    return row


def floors(found: Found) -> dict[str, Any]:
    """The time of the matrix products alone, and the step above it: on padded shapes, and packed."""
    row: dict[str, Any] = {}
    for kind, name in (("floor", "floor"), ("packed floor", "packed_floor")):
        row[f"{name}_seconds"] = median(found, kind)
        row[f"over_{name}"] = statistics.median(quotients(found, "npformer", kind))
    own = "packed floor" if Transformer.packs else "floor"
    row["share_in_products"] = statistics.median(quotients(found, own, "npformer"))
    return row


def median(found: Found, kind: str, key: str = "seconds") -> Any:
    """The median over the rounds; None where it was not measured."""
    values = [result[key] for result in found.get(kind, ())]
    return None if not values or None in values else statistics.median(values)


def quotients(found: Found, above: str, below: str) -> list[float]:
    """The time of one thing over that of another, in each round."""
    pairs = zip(found.get(above, ()), found.get(below, ()), strict=False)
    return [a["seconds"] / b["seconds"] for a, b in pairs]


def require_torch() -> None:
    """Errors: UserError where PyTorch is not installed; it is looked for, and not imported."""
    if find_spec("torch") is None:
        raise UserError("--against torch needs PyTorch, which is not installed: pip install torch")

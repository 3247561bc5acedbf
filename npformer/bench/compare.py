"""The comparison of the training step with PyTorch's and with its floor: measurements and ratios."""

import statistics
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from npformer.bench.measure import Task, take_turns
from npformer.bench.setups import AnySetup
from npformer.errors import UserError

Results = dict[str, list[dict[str, Any]]]  # the results of all rounds for each kind of measurement


def compare(
    setup: AnySetup,
    *,
    against: str | None,
    workers: int,
    repeats: int,
    seconds: float,
    backend: str,
    report: Callable[[Task], None],
) -> dict[str, Any]:
    """Measure one setup. The kinds of measurement alternate.

    Args:
        setup: The model and its batch.
        against: Measure PyTorch's step as well: "torch" as it stands, or "torch-compiled" with torch.compile
            and the fused Adam; None measures npformer alone.
        workers: The number of threads.
        repeats: The number of rounds.
        seconds: The shortest time of one measurement.
        backend: "numpy" or "cupy".
        report: A function that is called with each task before it is measured.

    Returns:
        The row of this setup that `npformer bench --json` writes.

    Raises:
        UserError: If a process ends before it has measured.
    """
    if backend == "cupy":  # a GPU runs one kernel after another, so more threads would gain nothing
        workers = 1
    task = Task("npformer", setup, workers, seconds, backend)
    tasks = {"npformer": task}
    if against:
        tasks["torch"] = replace(task, kind="torch", compiled=against == "torch-compiled")
        if backend == "cupy":
            tasks["torch tf32"] = replace(tasks["torch"], tf32=True)
    tasks |= {kind: replace(task, kind=kind) for kind in ("floor", "packed floor")}
    results = take_turns(list(tasks.values()), repeats, report)
    row = make_row(setup, dict(zip(tasks, results, strict=True)))
    return row | {"workers": workers, "repeats": repeats, "backend": backend}


def make_row(setup: AnySetup, results: Results) -> dict[str, Any]:
    """Return the row of one setup: medians over the rounds, and medians of ratios within each round."""
    seconds = _median(results, "npformer")
    batch = setup.batch()
    return {
        "name": setup.name,
        **_against_torch(results, "torch", ""),
        **_against_torch(results, "torch tf32", "_tf32"),
        "step_seconds": seconds,
        "tokens_per_second": batch.tokens / seconds,  # target tokens without padding, as training counts
        "positions_per_second": batch.target_out.size / seconds,
        **_memory(results),
        **_floors(results, setup.model_class.supports_packing),
        "packed": setup.model_class.supports_packing,
    }


def _against_torch(results: Results, kind: str, ending: str) -> dict[str, Any]:
    """Return PyTorch's time divided by npformer's: the median and the spread; None if it was not measured."""
    ratios = _quotients(results, kind, "npformer")
    row: dict[str, Any] = {f"ratio{ending}": statistics.median(ratios) if ratios else None}
    if ratios:
        row[f"ratio{ending}_spread"] = [min(ratios), max(ratios)]
        row[f"torch{ending}_step_seconds"] = _median(results, kind)
    return row if ratios or not ending else {}


def _memory(results: Results) -> dict[str, Any]:
    """Return the peak memory in bytes: of the process, of the process minus its imports, and on a GPU."""
    row: dict[str, Any] = {}
    for key in ("peak", "above_import", "gpu_peak"):
        own, other = _median(results, "npformer", key), _median(results, "torch", key)
        if own is None and key == "gpu_peak":
            continue
        row[f"{key}_memory"] = own and int(own)
        if other is not None:
            row[f"torch_{key}_memory"] = int(other)
            row[f"{key}_memory_ratio"] = own / max(1, other)
    return row


def _floors(results: Results, packed: bool) -> dict[str, Any]:
    """Return the time of the matrix products and the step's time divided by it, padded and packed."""
    row: dict[str, Any] = {}
    for kind, name in (("floor", "floor"), ("packed floor", "packed_floor")):
        row[f"{name}_seconds"] = _median(results, kind)
        row[f"over_{name}"] = statistics.median(_quotients(results, "npformer", kind))
    own = "packed floor" if packed else "floor"
    row["share_in_products"] = statistics.median(_quotients(results, own, "npformer"))
    return row


def _median(results: Results, kind: str, key: str = "seconds") -> Any:
    """Return the median over the rounds; None if it was not measured."""
    values = [result[key] for result in results.get(kind, ())]
    return None if not values or None in values else statistics.median(values)


def _quotients(results: Results, above: str, below: str) -> list[float]:
    """Return the time of one kind divided by that of another in each round."""
    pairs = zip(results.get(above, ()), results.get(below, ()), strict=False)
    return [a["seconds"] / b["seconds"] for a, b in pairs]


def require_torch() -> None:
    """Check that PyTorch is installed, without importing it.

    Raises:
        UserError: If it is not.
    """
    if find_spec("torch") is None:
        raise UserError("--against needs PyTorch, which is not installed: pip install torch")

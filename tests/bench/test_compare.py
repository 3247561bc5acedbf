"""The rows of results of the benchmark."""

from bench_toys import TOY

from npformer.bench import compare
from npformer.bench.measure import KINDS
from npformer.models.transformer import Transformer


def results(*seconds, peak=100, above=50):
    """Return the results of the rounds of one measurement."""
    return [{"seconds": s, "peak": peak, "above_import": above, "gpu_peak": None} for s in seconds]


def test_a_row_has_medians_of_ratios_not_ratios_of_medians():
    found = {
        "npformer": results(2.0, 4.0, 1.0),
        "torch": results(4.0, 4.0, 3.0, peak=250, above=200),
        "floor": results(1.0, 1.0, 0.8),
        "packed floor": results(0.5, 2.0, 0.4),
    }
    row, supports_packing = compare.make_row(TOY, found), Transformer.supports_packing
    expected = {"name": "toy", "ratio": 2.0, "ratio_spread": [1.0, 3.0]}
    expected |= {"step_seconds": 2.0, "torch_step_seconds": 4.0, "floor_seconds": 1.0}
    expected |= {"tokens_per_second": TOY.batch().tokens / 2.0, "positions_per_second": 4 * 7 / 2.0}
    expected |= {"peak_memory": 100, "peak_memory_ratio": 0.4, "above_import_memory_ratio": 0.25}
    expected |= {"over_floor": 2.0, "over_packed_floor": 2.5, "share_in_products": 0.4}
    assert row | expected | {"packed": supports_packing} == row
    assert "ratio_tf32" not in row


def test_a_row_without_pytorch():
    found = {kind: results(1.0) for kind in ("npformer", "floor", "packed floor")}
    row = compare.make_row(TOY, found)
    assert row["ratio"] is None
    assert not [key for key in row if key.startswith("torch") or key.endswith("memory_ratio")]


def test_the_tasks_that_are_compared(monkeypatch):
    compared = []

    def take_turns(tasks, repeats, report):
        compared.extend((task.kind, task.compiled, task.tf32) for task in tasks)
        return [results(1.0) * repeats for _ in tasks]

    monkeypatch.setattr(compare, "take_turns", take_turns)
    settings = {"against": "torch", "workers": 2, "repeats": 2, "seconds": 1.0, "report": print}
    row = compare.compare(TOY, backend="numpy", **settings)
    assert [kind for kind, _, _ in compared] == list(KINDS)
    assert (row["repeats"], row["workers"], row["backend"]) == (2, 2, "numpy")
    compared.clear()
    row = compare.compare(TOY, backend="cupy", **settings)
    assert "ratio_tf32" in row
    assert row["workers"] == 1
    assert [tf32 for kind, _, tf32 in compared if kind == "torch"] == [False, True]
    assert not any(compiled for _, compiled, _ in compared)
    compared.clear()
    compare.compare(TOY, backend="numpy", **settings | {"against": "torch-compiled"})
    assert [kind for kind, compiled, _ in compared if compiled] == ["torch"]

"""Time and memory as functions of the length and of the batch size."""

import numpy as np
from bench_toys import TOY

from npformer.bench.costs import cost, measure_costs


def test_memory_includes_only_arrays_made_during_the_run():
    def prepare():
        weights, first = np.ones(1_000_000), [5_000_000]  # 8 MB that existed before

        def run():
            np.ones(first.pop() if first else 1)  # 40 MB that only the first run needs
            y = weights * 2  # 8 MB
            return (y + 1).sum()  # 8 MB more

        return run

    seconds, most = cost(prepare, 0.0)
    assert seconds > 0
    assert 16_000_000 <= most < 16_100_000


def test_every_cost_is_measured():
    reports = []
    settings = {"lengths": (4, 8), "batches": (2,), "setup": TOY, "seconds": 0.0}
    found = list(measure_costs(lambda *told: reports.append(told), **settings))
    names = ("step", "attention", "plain attention")
    expected = [(name, "length", size) for size in (4, 8) for name in names] + [("step", "batch", 2)]
    assert [(c.name, c.against, c.size) for c in found] == expected
    assert reports[0] == ("step against length", 4)
    assert all(c.seconds > 0 and c.bytes > 0 for c in found)

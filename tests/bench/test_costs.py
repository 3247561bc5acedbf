"""Time and memory as functions of the length and of the batch size."""

import numpy as np
import pytest
from bench_toys import TOY
from threadpoolctl import threadpool_limits

from npformer.bench import costs
from npformer.bench.costs import AttentionPass, cost, measure_costs, slope


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


@pytest.mark.parametrize(
    ("plain", "lengths", "least", "most"),
    [(True, (128, 256, 512), 1.7, 2.1), (False, (256, 512, 1024), 0.0, 1.2)],
    ids=["plain", "kernels"],
)
def test_memory_of_attention_grows_with_the_length(monkeypatch, plain, lengths, least, most):
    """It grows with the square of the length, and that of the kernels in proportion to the length."""
    monkeypatch.setattr(costs, "time_steps", lambda run, seconds: ([0.0], None))
    with threadpool_limits(1, user_api="blas"):
        found = [cost(AttentionPass(length, plain=plain).prepare, 0.0)[1] for length in lengths]
    assert least < slope(lengths, found) < most


def test_every_cost_is_measured():
    reports = []
    settings = {"lengths": (4, 8), "batches": (2,), "setup": TOY, "seconds": 0.0}
    found = list(measure_costs(lambda *told: reports.append(told), **settings))
    names = ("step", "attention", "plain attention")
    expected = [(name, "length", size) for size in (4, 8) for name in names] + [("step", "batch", 2)]
    assert [(c.name, c.against, c.size) for c in found] == expected
    assert reports[0] == ("step against length", 4)
    assert all(c.seconds > 0 and c.bytes > 0 for c in found)

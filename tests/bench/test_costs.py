"""Time and memory as functions of the length and of the batch size."""

import numpy as np
import pytest
from bench_toys import TOY

from npformer.bench.costs import AttentionPass, cost, measure_costs, slope


def test_memory_includes_only_arrays_made_during_the_run():
    def prepare():
        weights = np.ones(1_000_000)  # 8 MB that existed before

        def run():
            y = weights * 2  # 8 MB
            return (y + 1).sum()  # 8 MB more

        return run

    seconds, most = cost(prepare, 0.0)
    assert seconds > 0
    assert 16_000_000 <= most < 16_100_000


def test_memory_of_plain_attention_grows_with_the_square_of_the_length():
    lengths = (128, 256, 512)
    plain = [cost(AttentionPass(length, plain=True).prepare, 0.0)[1] for length in lengths]
    assert 1.7 < slope(lengths, plain) < 2.1


def test_the_kernels_attention_needs_memory_in_proportion_to_the_length():
    lengths = (256, 512, 1024)
    blocked = [cost(AttentionPass(length, plain=False).prepare, 0.0)[1] for length in lengths]
    assert slope(lengths, blocked) < 1.2


def test_every_cost_is_measured():
    reports = []

    def report(what, size):
        reports.append((what, size))

    costs = list(measure_costs(report, lengths=(4, 8), batches=(2,), setup=TOY, seconds=0.0))
    assert [(c.name, c.against, c.size) for c in costs] == [
        ("step", "length", 4),
        ("attention", "length", 4),
        ("plain attention", "length", 4),
        ("step", "length", 8),
        ("attention", "length", 8),
        ("plain attention", "length", 8),
        ("step", "batch", 2),
    ]
    assert reports[0] == ("step against length", 4)
    assert all(c.seconds > 0 and c.bytes > 0 for c in costs)


def test_a_slope_is_the_power():
    sizes = np.array([1.0, 2, 4, 8, 16])
    assert slope(sizes, 3 * sizes**2) == pytest.approx(2)
    assert slope(sizes, sizes + 0 * sizes) == pytest.approx(1)

"""The profile: the time of each component of a training step."""

from bench_toys import Clock

from npformer.bench.profile import Stopwatch


def test_a_stopwatch_counts_nested_time_only_once(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("npformer.bench.profile.time", clock)
    stopwatch = Stopwatch(lambda: None)

    def wait(seconds):
        clock.now += seconds

    inner = stopwatch.watch(lambda: wait(3), "inner", "forward")
    middle = stopwatch.watch(lambda: (wait(1), inner(), inner()), "middle", "backward")
    outer = stopwatch.watch(lambda: (wait(5), middle(), inner(), wait(2)), "outer", "forward")
    outer()
    assert dict(stopwatch.seconds) == {
        ("inner", "forward"): 9,
        ("middle", "backward"): 1,
        ("outer", "forward"): 7,
    }

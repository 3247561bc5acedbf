"""The profile: the time of each component of a training step."""

import pytest
from bench_toys import GPT_TOY, TOY, Clock

from npformer.bench.profile import COMPONENTS, FUNCTIONS, REST, Stopwatch, profile
from npformer.functional import cross_entropy_backward
from npformer.training import step as training_step


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


@pytest.mark.parametrize("setup", [TOY, GPT_TOY], ids=["translator", "GPT"])
def test_components_of_a_profile(setup):
    lines = profile(setup, backend="numpy", seconds=0.0)
    known = {component for _, component in COMPONENTS} | set(FUNCTIONS.values())
    names = {line.component for line in lines}
    assert names == known | {REST, "Adam", "attention: scores, softmax, values"}
    assert [line.seconds for line in lines] == sorted((line.seconds for line in lines), reverse=True)
    both_passes = {"logits", "cross-entropy", "residual, dropout, norm", "attention: scores, softmax, values"}
    assert both_passes <= {line.component for line in lines if line.forward and line.backward}
    assert training_step.cross_entropy_backward.__wrapped__ is cross_entropy_backward  # as it was before

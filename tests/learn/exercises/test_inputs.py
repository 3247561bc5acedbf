"""The inputs of the learner's functions are restored after a call that changes them."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
from mistake_tables import functions_of

from npformer.learn.exercises import EXERCISES, grade
from npformer.learn.exercises.inputs import Inputs
from npformer.learn.exercises.repair import repair
from npformer.learn.exercises.topics import losses

Cache = namedtuple("Cache", "x weights")


def test_what_is_passed_is_restored_and_what_changed_is_named():
    x, tokens, cache = np.arange(3.0), [[5], [6, 7]], Cache(np.zeros(2), np.ones(2))
    pieces = SimpleNamespace(ranks={"a": 1})
    inputs = Inputs(["x", "tokens", "cache", "pieces"], [x, tokens, cache, pieces])
    x += 1
    cache.weights[0] = np.nan
    tokens.pop()[0] = 8
    pieces.ranks["b"] = 2
    assert inputs.restore() == ["x", "cache.weights", "tokens", "pieces.ranks"]
    assert pieces.ranks == {"a": 1}
    assert x.tolist() == [0, 1, 2]
    assert cache.weights.tolist() == [1, 1]
    assert tokens == [[5], [6, 7]]


WRITING = """
def smooth_targets(targets, n_classes, smoothing):
    targets[...] = 0
    one_hot = (targets[..., None] == np.arange(n_classes)).astype(float)
    return (1 - smoothing) * one_hot + smoothing / n_classes
"""


def test_the_constants_of_a_trial_stay_as_they_are(tmp_path):
    file, before = tmp_path / "own.py", losses.TARGETS.copy()
    file.write_text(WRITING, encoding="utf-8")
    functions = functions_of(WRITING, str(file))
    exercise = EXERCISES.find("smooth-targets")
    assert "writes into targets" in grade(exercise, functions, str(file)).message
    repair(exercise, functions, str(file))
    assert np.array_equal(losses.TARGETS, before)

"""The copy and reverse tasks."""

from collections import Counter

import numpy as np
import pytest

from npformer.data.dataset import copy_task, reverse_task
from npformer.errors import UserError


@pytest.mark.parametrize("task", [copy_task, reverse_task])
def test_every_length_and_every_ordinary_id_occurs(task):
    examples = task(600, length=6, vocab=9, rng=np.random.default_rng(0))
    assert len(examples) == 600
    sizes = Counter(len(source) for source, _ in examples)
    assert set(sizes) == {1, 2, 3, 4, 5, 6}
    assert min(sizes.values()) > 60
    assert {index for source, _ in examples for index in source} == {4, 5, 6, 7, 8}
    assert all(type(index) is int for pair in examples for ids in pair for index in ids)


@pytest.mark.parametrize("task", [copy_task, reverse_task])
@pytest.mark.parametrize(("name", "value"), [("n", 0), ("length", 0), ("vocab", 4)])
def test_settings_too_small_and_the_smallest_ones(task, name, value):
    settings = {"n": 5, "length": 5, "vocab": 9} | {name: value}
    with pytest.raises(UserError, match=f"{name} is {value}: it must be {value + 1} or more"):
        task(settings.pop("n"), **settings, rng=np.random.default_rng(0))
    smallest = {"n": 1, "length": 1, "vocab": 5} | {name: value + 1}
    assert len(task(smallest.pop("n"), **smallest, rng=np.random.default_rng(0))) == 1

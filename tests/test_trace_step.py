"""A training step stays short enough to be followed in a debugger."""

import numpy as np
import pytest
from trace_step import trace, trace_step

from npformer import functional as F

MOST_CALLS = {"llama": 400, "gpt": 350, "transformer": 1000}
MOST_DEEP = 16


@pytest.mark.parametrize("name", MOST_CALLS)
def test_a_training_step_has_few_calls_and_is_not_deep(name):
    found = trace_step(name)
    assert found.calls <= MOST_CALLS[name], found.functions.most_common(20)
    assert found.depth <= MOST_DEEP


def test_the_trace_counts_calls_inside_the_package_alone():
    found = trace(lambda: np.mean(F.dropout(np.ones(3), 0.0, None)[0]))
    assert found.functions == {
        ("functional/dropout.py", "dropout"): 1,
        ("functional/dropout.py", "check_dropout"): 1,
    }
    assert (found.depth, found.calls, len(found.files)) == (2, 2, 1)

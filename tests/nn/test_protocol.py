"""All layers keep their dtype. The gradient checks show that caches and arguments stay as they are."""

import numpy as np
import pytest
from case_runs import layer_cases, run_case

from npformer.nn import LearnedPositions

# "mixed states" and "score function" are functions, and rotary positions have float64 tables here
CASES = [c for c in layer_cases() if not c.name.startswith(("mixed", "score function", "RotaryPositions"))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_layers_keep_their_dtype(case, dtype):
    """Check the output unless it is a loss, all arrays in the cache, and all gradients."""
    run = run_case(case, dtype)
    floats = [array for array in (run.y, *run.cached, *run.grads) if array.dtype.kind == "f" and array.ndim]
    assert {array.dtype for array in floats} == {np.dtype(dtype)}


def test_learned_positions_use_one_table_in_all_calls():
    layer = LearnedPositions(6, 3, dtype=np.float64)
    (_, first), (_, second) = layer.forward(2), layer.forward(3, start=1)
    layer.backward(np.ones((1, 2, 3)), first)
    layer.backward(np.ones((1, 3, 3)), second)
    assert layer.weight.grad[:, 0].tolist() == [1, 2, 1, 1, 0, 0]

"""Every pair, layer and model on CuPy: on a GPU with --backend cupy, otherwise on a strict stand-in."""

import numpy as np
import pytest
from case_runs import ONLY_NUMPY, built, layer_cases, run_case

from npformer import Transformer, UserError
from npformer.backend import choose_backend, is_cupy, to_backend, to_numpy
from npformer.checking.cases import component_cases, small_config
from npformer.checking.cases.models import TARGET_IN
from npformer.nn import Dropout, RotaryPositions


def test_a_model_moves_to_the_device_and_back(device):
    model = Transformer(small_config(), rng=np.random.default_rng(0))
    before = model.values.copy()
    assert is_cupy(model.to("cupy").values)
    np.testing.assert_array_equal(model.to("numpy").values, before)


def test_ids_out_of_range_are_refused_on_the_device_too(device):
    model = Transformer(small_config(), rng=np.random.default_rng(0)).to("cupy")
    wrong = to_backend(np.array([[5, 99, 3]]), "cupy")
    with pytest.raises(UserError, match=r"source\[0, 1\] is 99"):
        model.forward(wrong, TARGET_IN[:1])


def test_cupy_is_chosen_if_it_is_available(device):
    assert choose_backend("auto") == "cupy"
    assert choose_backend("cupy") == "cupy"
    assert choose_backend("numpy") == "numpy"


def pairs():
    """Return all cases of function pairs whose inputs are arrays."""
    for case in component_cases():
        thing, *_ = built(case)
        named = set(case.settings) & {"mask", "query_mask"}
        bound = isinstance(thing, tuple) and thing[0].__name__ == "<lambda>"  # the targets stay on the host
        if isinstance(thing, tuple) and not bound and not named:
            yield pytest.param(case, id=case.name)


@pytest.mark.parametrize("case", list(pairs()))
def test_every_pair_runs_on_the_device(device, case):
    (f, f_backward), *inputs = built(case)
    settings = dict(case.settings)
    for_host = dict(settings)
    for_device = {
        name: to_backend(value, "cupy") if isinstance(value, np.ndarray) else value
        for name, value in settings.items()
    }
    if "rng" in settings:
        for_host["rng"], for_device["rng"] = (np.random.default_rng(settings["rng"]) for _ in range(2))
    y, cache = f(*inputs, **for_host)
    device_y, device_cache = f(*(to_backend(x, "cupy") for x in inputs), **for_device)
    np.testing.assert_allclose(to_numpy(device_y), y, rtol=1e-12, atol=1e-14)
    dy = np.random.default_rng(2).standard_normal(y.shape)
    grads = f_backward(dy, cache)
    device_grads = f_backward(to_backend(dy, "cupy"), device_cache)
    for there, here in zip(_tuple(device_grads), _tuple(grads), strict=True):
        np.testing.assert_allclose(to_numpy(there), here, rtol=1e-12, atol=1e-14)


def _tuple(grads):
    return grads if isinstance(grads, tuple) else (grads,)


LAYERS = [case for case in layer_cases() if type(built(case)[0]).__name__ not in ONLY_NUMPY]
LAYERS = [case for case in LAYERS if not case.name.startswith("RotaryPositions")]  # no parameters to move


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_every_layer_and_model_computes_the_same_on_the_device(device, case):
    here, there = run_case(case), run_case(case, backend="cupy")
    assert all(is_cupy(array) for array in there.cached)
    for ours, theirs in zip([there.y, *there.grads], [here.y, *here.grads], strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs, rtol=1e-9, atol=1e-11)


def test_a_layer_without_parameters_moves_with_its_tables_and_changes_its_dtype(device):
    rotary, x = RotaryPositions(8, 4, dtype=np.float32), np.ones((1, 1, 3, 4))
    expected, _ = rotary.astype(np.float64).forward(x)
    assert expected.dtype == np.float64
    found, _ = rotary.to("cupy").forward(to_backend(x, "cupy"))
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12)
    np.testing.assert_array_equal(rotary.to("numpy").forward(x)[0], expected)
    Dropout(0.1).astype(np.float64).to("cupy")

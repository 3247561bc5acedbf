"""The cases of npformer gradcheck: kernels beside their plain pairs, and a case for every backward pass."""

import importlib
import inspect
import pkgutil
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import npformer
from npformer.checking.cases import all_cases, component_cases, kernel_cases
from npformer.checking.check_target import CheckTarget
from npformer.checking.trees import draw_like

KERNELS = list(kernel_cases())
ROOT = Path(__file__).parents[2]
LEFT_OUT = (
    "npformer.lenses",  # taps, which pass gradients on or cut them: tests/lenses
    *("learn", ".gpu"),  # the kernels for CuPy have their tests on a device
    "checking.foreign",  # adapters, which compute no gradients of their own
    *(".bench.torch_", ".interop.torch"),  # PyTorch need not be installed
)
EXCEPTED = {
    # the gradients of the inputs of a loaded model, which tests/pretrained/test_input_gradients.py checks
    "npformer.pretrained.input_gradients.GivenVectors.backward",
    # the similarity of the vectors of two texts, which tests/pretrained checks
    "npformer.pretrained.similarity.SimilarityTo.backward",
    "npformer.pretrained.similarity.pool_backward",
    # a part of a training step, which tests/training/test_step.py checks
    "npformer.training.step.forward_and_backward",
}


@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.name)
def test_a_kernel(case):
    report = case.check()
    assert report.ok, str(report)
    assert {row.method for row in report.rows} == {"float32 beside float64", "float64 beside float64"}
    for row in report.rows:  # the precision of the dtype times the longest sum, and 32 other roundings
        assert row.tolerance == (case.terms + 32) * np.finfo(row.method.split()[0]).eps


@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.name)
def test_a_kernel_with_an_error_in_each_gradient(case):
    """An error of one thousandth in one gradient, or in the output, is found in float32."""
    for wrong in range(-1, len(case.gradients)):
        f, f_backward = case.kernel

        def changed(*arguments, f=f, wrong=wrong, **settings):
            y, cache = f(*arguments, **settings)
            return (y * y.dtype.type(1.001) if wrong < 0 else y), cache

        def changed_backward(dy, cache, f_backward=f_backward, wrong=wrong):
            returned = f_backward(dy, cache)
            grads = [np.asarray(g) for g in (returned if isinstance(returned, tuple) else (returned,))]
            return tuple(g * g.dtype.type(1.001) if i == wrong else g for i, g in enumerate(grads))

        failures = replace(case, kernel=(changed, changed_backward)).check().failures
        assert {row.tensor for row in failures} == {case.gradients[wrong] if wrong >= 0 else "y"}


def test_a_kernel_of_another_dtype_or_shape():
    case = next(case for case in KERNELS if case.name == "kernel dropout")
    in_float64 = (case.kernel[0], lambda dy, cache: case.kernel[1](dy, cache).astype(np.float64))
    assert "float32 (2, 4, 6) is correct" in replace(case, kernel=in_float64).check().worst.diagnosis
    flat = (case.kernel[0], lambda dy, cache: case.kernel[1](dy, cache).ravel())
    assert "shape (48,)" in replace(case, kernel=flat).check().worst.diagnosis


def backward_passes():
    """Return the code of every public *_backward and of every backward method that computes something."""
    codes = {}
    for info in pkgutil.walk_packages(npformer.__path__, "npformer."):
        if info.name.endswith("__main__") or any(part in info.name for part in LEFT_OUT):
            continue
        module = importlib.import_module(info.name)
        own = [item for item in vars(module).values() if getattr(item, "__module__", "") == info.name]
        for item in own:
            functions = vars(item).values() if inspect.isclass(item) else [item]
            for function in filter(inspect.isfunction, functions):
                name = function.__name__
                abstract = function.__code__.co_names == ("NotImplementedError",)
                if name.endswith("backward") and not name.startswith("_") and not abstract:
                    codes[function.__code__] = f"{info.name}.{function.__qualname__}"
    return codes


def codes_run_by_cases(cases):
    """Return the code of all functions that run when each case computes its gradients once."""
    seen = set()
    for case in cases:
        sys.setprofile(lambda frame, event, argument: seen.add(frame.f_code))
        try:
            if hasattr(case, "kernel"):
                case.check()
            else:
                compute_gradients(case)
        finally:
            sys.setprofile(None)
    return seen


def compute_gradients(case):
    rng = np.random.default_rng(1)
    thing, *inputs = case.build(rng)
    target = CheckTarget(thing, inputs, case.settings, randomize=True, rng=rng)
    y, cache = target.run()
    target.vjp(draw_like(y, rng), cache)


def test_every_backward_pass_has_a_case():
    wanted = backward_passes()
    seen = codes_run_by_cases(all_cases())
    assert {name for code, name in wanted.items() if code not in seen} == EXCEPTED
    # and a backward pass without a case is seen: without the kernels' cases, theirs are missing
    few = codes_run_by_cases([case for case in component_cases() if "softmax" in case.name])
    missing = {name for code, name in wanted.items() if code not in few}
    assert "npformer.kernels.cpu.long_attention.long_attention_backward" in missing
    assert "npformer.functional.softmax.softmax_backward" not in missing


@pytest.mark.parametrize("page", ["docs/measurements.md", "README.md"])
def test_pages_give_the_number_of_components(page):
    """The number is that of the names that npformer gradcheck --json prints."""
    text = (ROOT / page).read_text()
    counts = re.findall(r"(\d+) (?:cases of )?components", text)
    assert counts
    assert set(counts) == {str(len({case.name for case in all_cases()}))}

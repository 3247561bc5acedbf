"""The pytest plugin: a passing and a failing test of gradients, also in the processes of xdist."""

import tomllib
from importlib.metadata import entry_points

import pytest
from paths import ROOT

pytest_plugins = ("pytester",)

LAYERS = """
import numpy as np
from npformer.pytest_plugin import assert_gradients

def double(x):
    return 2 * x, None

def double_backward(dy, cache):
    return 2 * dy

def wrong_backward(dy, cache):
    return 3 * dy

x = np.arange(6.0).reshape(2, 3)
"""

TESTS = f"""{LAYERS}
def test_right(gradcheck):
    assert gradcheck((double, double_backward), x).ok

def test_wrong(gradcheck):
    gradcheck((double, wrong_backward), x)

def test_wrong_function():
    assert_gradients((double, wrong_backward), x)

def test_impossible(gradcheck):
    gradcheck(double, x)
"""


def arguments():
    """Return arguments that load the plugin. Where npformer is installed, pytest loads it, and only once."""
    points = entry_points(group="pytest11")
    installed = any(point.value == "npformer.pytest_plugin" for point in points)
    return ("-p", "no:cacheprovider", *(() if installed else ("-p", "npformer.pytest_plugin")))


ALONE = pytest.param((), id="alone", marks=pytest.mark.nightly)  # xdist shows the same


@pytest.mark.parametrize("processes", [ALONE, pytest.param(("-n", "2"), id="xdist")])
def test_a_failure_shows_the_report_and_nothing_else(pytester, processes):
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess(*arguments(), *processes)
    result.assert_outcomes(passed=1, failed=3)
    text = result.stdout.str()
    assert text.count("double: INCORRECT") >= 2
    assert "times the correct one" in text
    assert "double is one function: give the pair (double, double_backward), or a layer" in text
    assert "Traceback" not in text
    assert "pytest_plugin.py" not in text
    assert "checking/check.py" not in text


def test_the_entry_point_names_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"npformer": "npformer.pytest_plugin"}
